/* A knob: the clock of a board, any frequency between two bounds, by attributes below /sys. */
#include <cnnrun/kit.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The board, and the clock that was found. */
typedef struct board {
    char folder[400];
    uint64_t min_hz, max_hz, found_hz;
} board;
static const cnr_host *host;

/* *hz receives the number in a file of the board. */
static cnr_status read_hz(const board *b, const char *attribute, uint64_t *hz, cnr_error *err) {
    char path[512];
    void *text = NULL;
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/%s", b->folder, attribute);
    CNR_TRY(host->file_read(path, 64, &text, &bytes, err));
    *hz = strtoull(text, NULL, 10);
    host->free(text);
    return *hz ? CNR_OK : host->fail(err, CNR_E_FORMAT, path, "a frequency is wanted");
}

/* `root` is "/", or a tree of fixtures: --sysfs-root. */
static cnr_status open_board(const cnr_gauge_options *o, void **state, int32_t *n_domains,
                             cnr_error *err) {
    board *b = host->alloc(sizeof *b);
    if (!b) return host->fail(err, CNR_E_MEMORY, "acme-clock", "out of memory");
    snprintf(b->folder, sizeof b->folder, "%s/sys/class/example/board", o->root);
    if (read_hz(b, "min_hz", &b->min_hz, NULL) || read_hz(b, "max_hz", &b->max_hz, NULL) ||
        read_hz(b, "hz", &b->found_hz, NULL)) {
        const cnr_status status = host->fail(err, CNR_E_NOT_FOUND, b->folder, "no clock there");
        host->free(b);
        return status;
    }
    *state = b;
    *n_domains = 1;
    return CNR_OK;
}

static void close_board(void *state) { host->free(state); }

/* Method describe: the range of the clock, in hertz. */
static cnr_status describe(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err) {
    const board *b = state;
    (void)domain, (void)err;
    snprintf(out->name, sizeof out->name, "board");
    out->min_hz = b->min_hz; /* the host never exceeds them */
    out->max_hz = b->max_hz;
    out->is_writable = 1;
    return CNR_OK;
}

/* Method read: the clock as it is. */
static cnr_status read_board(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err) {
    (void)domain;
    return read_hz(state, "hz", &out->hz, err);
}

/* Method set: writes the frequency; 0 leaves the clock. Fails where the file does. */
static cnr_status set(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err) {
    char path[512], text[32];
    (void)domain, (void)cores;
    if (!hz) return CNR_OK; /* to be left as it is */
    snprintf(path, sizeof path, "%s/hz", ((const board *)state)->folder);
    CNR_TRY(host->may_open(path, 1, err));
    const int n = snprintf(text, sizeof text, "%llu\n", (unsigned long long)hz);
    const int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW); /* never makes a file */
    const int written = fd >= 0 && write(fd, text, (size_t)n) == n;
    const int closed = fd >= 0 && close(fd) == 0;
    return written && closed ? CNR_OK : host->fail(err, CNR_E_IO, path, "can't be written");
}

/* Method restore: the clock that was found. */
static cnr_status restore(void *state, cnr_error *err) {
    return set(state, 0, ((const board *)state)->found_hz, -1, err);
}

/* Method save_state: writes the frequency that was found, for a process that is killed before it
 * restores: the next one loads it. Returns the text's length. */
static int32_t save_state(void *state, char *text, size_t room) {
    return snprintf(text, room, "%llu", (unsigned long long)((const board *)state)->found_hz);
}
/* Method load_state: keeps in the state the clock (Hz, in text) that restore sets; CNR_E_FORMAT: it
 * is no number above 0. */
static cnr_status load_state(void *state, const char *text, cnr_error *err) {
    const uint64_t hz = strtoull(text, NULL, 10);
    if (!hz) return host->fail(err, CNR_E_FORMAT, "acme-clock", "a frequency is wanted");
    ((board *)state)->found_hz = hz;
    return CNR_OK;
}

static const cnr_knob knob = {
    .size = sizeof(cnr_knob),
    .name = "acme-clock",
    .summary = "the clock of a board",
    .open = open_board,
    .describe = describe,
    .read = read_board,
    .set = set,
    .restore = restore,
    .close = close_board,
    .save_state = save_state,
    .load_state = load_state,
};

/* Registers the knob. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    return h->add(registrar, CNR_KIND_KNOB, &knob);
}

CNR_PLUGIN("c-knob", "1.0", "an example knob", "MIT", init, CNR_TOUCHES_FILES)
