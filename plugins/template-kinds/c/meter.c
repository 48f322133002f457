/* A meter: the power of a board, in microwatts, from an attribute below /sys. */
#include <cnnrun/kit.h>

#include <stdio.h>

/* The board's file of power. */
typedef struct board {
    char path[512];
} board;
static const cnr_host *host;

/* Whatever can't be read is an error, never 0. */
static cnr_status power(const board *b, int64_t *out, cnr_error *err) {
    void *text = NULL;
    const char *end = NULL;
    uint64_t bytes;
    double value;
    CNR_TRY(host->file_read(b->path, 64, &text, &bytes, err));
    const int32_t good =
        host->parse_number(text, &end, &value) && *end == '\n' && value >= 0 && value < 1e12;
    host->free(text);
    if (!good) return host->fail(err, CNR_E_FORMAT, b->path, "microwatts are wanted");
    *out = (int64_t)value;
    return CNR_OK;
}

/* `root` is "/", or a tree of fixtures: --sysfs-root. */
static cnr_status open_board(const cnr_gauge_options *o, void **state, int32_t *n_domains,
                             cnr_error *err) {
    board *b = host->alloc(sizeof *b);
    int64_t value;
    if (!b) return host->fail(err, CNR_E_MEMORY, "acme-board", "out of memory");
    snprintf(b->path, sizeof b->path, "%s/sys/class/example/board/power_uw", o->root);
    if (power(b, &value, NULL)) {
        const cnr_status status = host->fail(err, CNR_E_NOT_FOUND, b->path, "is not there");
        host->free(b);
        return status;
    }
    *state = b;
    *n_domains = 1;
    return CNR_OK;
}

/* Method describe: power in watts. */
static cnr_status describe(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err) {
    (void)state, (void)domain, (void)err;
    snprintf(out->name, sizeof out->name, "board");
    out->quantity = CNR_QUANTITY_POWER;
    out->period_ms = 10; /* the sensor renews its value so often */
    out->is_whole_machine = 1;
    return CNR_OK;
}

/* Method read: the power now. */
static cnr_status read_board(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    (void)domain;
    return power(state, &out->value, err);
}

static void close_board(void *state) { host->free(state); }

static const cnr_meter meter = {
    .size = sizeof(cnr_meter),
    .name = "acme-board",
    .summary = "power of a board",
    .open = open_board,
    .describe = describe,
    .read = read_board,
    .close = close_board,
};

/* Registers the meter. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    return h->add(registrar, CNR_KIND_METER, &meter);
}

CNR_PLUGIN("c-meter", "1.0", "an example meter", "MIT", init, CNR_TOUCHES_FILES)
