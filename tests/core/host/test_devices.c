/* Devices: the best driver of each piece of hardware, names, opening by name. */
#include "host/internal.h"
#include "tests/tap.h"

/* Two drivers of one family: `plain` knows boards A, B and a broken one; `fast` drives B better. */
static int opened, closed, asked; /* asked: of the boards */
static const cnr_memory_class memory = {.name = "ram", .flags = CNR_MEMORY_HOST, .alignment = 64};

/* Method count: three, and counts its calls. */
static int32_t count_three(cnr_error *err) {
    (void)err;
    asked++;
    return 3;
}
/* Method count: one. */
static int32_t count_one(cnr_error *err) {
    (void)err;
    return 1;
}
/* Method count: fails. */
static int32_t count_fails(cnr_error *err) {
    snprintf(err->text, sizeof err->text, "no driver");
    return CNR_E_DEVICE;
}
/* Method describe of slow devices: score scores[index] and a key; returns CNR_OK. */
static cnr_status describe_plain(int32_t index, cnr_device_info *out, cnr_error *err) {
    static const int scores[] = {10, 20, 0};
    (void)err;
    out->score = scores[index];
    snprintf(out->key, sizeof out->key, "board %c", 'A' + index);
    if (index == 2) snprintf(out->why, sizeof out->why, "too old");
    return CNR_OK;
}
/* Method describe of a fast device: score 50 and a key; returns CNR_OK. */
static cnr_status describe_fast(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index, (void)err;
    out->score = 50;
    memset(out->key, 'x', sizeof out->key); /* without an end, to see whether anyone looks */
    snprintf(out->key, sizeof out->key, "board B");
    memset(out->name, 'n', sizeof out->name);
    return CNR_OK;
}
/* Method describe of the only device: score 30 and no key; returns CNR_OK. */
static cnr_status describe_only(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index, (void)err;
    out->score = 30;
    return CNR_OK;
}
/* Method open; counts its calls. */
static cnr_status open_it(cnr_device *d, const cnr_device_options *options, cnr_error *err) {
    (void)err;
    opened++;
    d->memory = &memory;
    d->n_memory = 1;
    d->concurrency = options->threads;
    return CNR_OK;
}
/* Method open that fails. */
static cnr_status open_badly(cnr_device *d, const cnr_device_options *options, cnr_error *err) {
    (void)d, (void)options, (void)err;
    return CNR_OK;
}
/* Method close; counts its calls. */
static void close_it(cnr_device *d) {
    (void)d;
    closed++;
}
/* Method alloc: not called, returns CNR_E_MEMORY. */
static cnr_status alloc_none(const cnr_device *d, cnr_mem *out, cnr_error *err) {
    (void)d, (void)out, (void)err;
    return CNR_E_MEMORY;
}
static void free_none(const cnr_device *d, cnr_mem *mem) { (void)d, (void)mem; }
/* Method write: not called, does nothing and returns CNR_OK. */
static cnr_status write_none(cnr_stream *s, const cnr_mem *to, uint64_t offset, const void *from,
                             uint64_t bytes, cnr_error *err) {
    (void)s, (void)to, (void)offset, (void)from, (void)bytes, (void)err;
    return CNR_OK;
}
/* Method read: not called, does nothing and returns CNR_OK. */
static cnr_status read_none(cnr_stream *s, const cnr_mem *from, uint64_t offset, void *to,
                            uint64_t bytes, cnr_error *err) {
    (void)s, (void)from, (void)offset, (void)to, (void)bytes, (void)err;
    return CNR_OK;
}
/* Method stream_open: does nothing and returns CNR_OK. */
static cnr_status stream_open(const cnr_device *d, cnr_stream *s, cnr_error *err) {
    (void)d, (void)s, (void)err;
    return CNR_OK;
}
static void stream_close(cnr_stream *s) { (void)s; }
/* Method sync: not called, does nothing and returns CNR_OK. */
static cnr_status sync_none(cnr_stream *s, cnr_error *err) {
    (void)s, (void)err;
    return CNR_OK;
}

static int32_t most;
static int32_t most_of_boards(void) { return most; }
static int32_t most_of_none(void) { return 0; }

/* A device class with these hooks. */
#define CLASS(var, text, of, bits, count_fn, describe_fn, open_fn, most_fn) \
    static const cnr_device_class var = {.size = sizeof(cnr_device_class), \
                                         .flags = bits, \
                                         .name = text, \
                                         .family = of, \
                                         .count = count_fn, \
                                         .describe = describe_fn, \
                                         .open = open_fn, \
                                         .close = close_it, \
                                         .alloc = alloc_none, \
                                         .free = free_none, \
                                         .write = write_none, \
                                         .read = read_none, \
                                         .stream_open = stream_open, \
                                         .stream_close = stream_close, \
                                         .sync = sync_none, \
                                         .max_score = most_fn}
CLASS(plain, "plain", "board", 0, count_three, describe_plain, open_it, most_of_boards);
CLASS(fast, "fast", "board", 0, count_one, describe_fast, open_it, most_of_boards);
CLASS(single, "single", "own", CNR_DEVICE_SINGLE, count_one, describe_only, open_it, NULL);
CLASS(absent, "absent", "ghost", 0, count_fails, describe_only, open_it, NULL);
CLASS(broken, "broken", "hollow", 0, count_one, describe_only, open_badly, most_of_none);

static char heard[1024];
/* A log: keeps what is told. */
static void listen(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level;
    const size_t n = strlen(heard);
    snprintf(heard + n, sizeof heard - n, "%s: %s\n", who, text);
}

/* Without devices, nothing is found or opened. */
static void test_none(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_devices set;
    const cnr_device *d;
    const cnri_device *best;
    cnri_devices_init(&set, 0);
    is_int(cnri_device_open(&set, "board", &d, &err), CNR_E_NOT_FOUND, "no drivers, no devices");
    has_text(err.text, "no plugin has brought any", "politely");
    is_int(cnri_device_best(&set, false, &best, &err), CNR_E_NOT_FOUND, "nor is any the best");
    cnri_devices_close(&set);
}

/* The boards' drivers say that 50 is the most they give; "own" has 30 and never says. */
static void test_asking(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_devices set;
    const cnri_device *d;
    cnri_devices_init(&set, 1);
    ok(asked == 0 && set.n == 0, "nobody is asked before anyone wants a device");
    is_int(cnri_device_find(&set, "own", &d, &err), CNR_OK, "one is wanted by name");
    ok(set.n == 1 && asked == 0 && opened == 0, "only its family is asked, nothing is opened");
    most = 30;
    is_int(cnri_device_best(&set, false, &d, &err), CNR_OK, "the best is wanted");
    ok(strcmp(d->name, "own") == 0 && asked == 0, "who has no better ones is not asked");
    most = 50;
    is_int(cnri_device_best(&set, true, &d, &err), CNR_OK, "the best with host memory");
    ok(strcmp(d->name, "own") == 0 && asked == 0, "is the one that is open");
    is_int(cnri_device_best(&set, false, &d, &err), CNR_OK, "the best of all is wanted");
    ok(strcmp(d->name, "board:1") == 0 && asked == 1, "who could have a better one is asked");
    cnri_device_find(&set, "board:0", &d, &err);
    cnri_devices_ask(&set, NULL, &err);
    ok(asked == 1 && set.n == 4, "once");
    cnri_devices_close(&set);
    cnri_devices_init(&set, 1);
    is_int(cnri_device_find(&set, "bored", &d, &err), CNR_E_NOT_FOUND, "a name with a mistake");
    has_text(err.text, "board:1", "all are asked, to tell what there is");
    cnri_devices_close(&set);
    opened = 0;
}

/* Devices are found in all plugins, also when memory lacks. */
static void test_finding(cnri_devices *set) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_log_to(listen, NULL, CNR_LOG_INFO);
    int64_t n = 1;
    cnr_status status;
    cnri_devices_init(set, 3);
    do {
        cnri_alloc_fail_at(n++);
        status = cnri_devices_ask(set, NULL, &err);
        cnri_alloc_fail_at(0);
    } while (status == CNR_E_MEMORY);
    cnri_log_to(NULL, NULL, CNR_LOG_WARN);
    ok(status == CNR_OK && n > 2, "found, after memory ran out at each point");
    is_int(set->n, 4, "boards A and B, the single one and the hollow one");
    ok(set->at[0]->device.cls == &fast && strcmp(set->at[0]->name, "board:1") == 0,
       "best first: board B by its faster driver, numbered in the order of discovery");
    is_text(set->at[1]->name, "own", "an only device has no number");
    is_text(set->at[3]->name, "board:0", "the other board");
    ok(strlen(set->at[0]->info.name) == sizeof set->at[0]->info.name - 1, "texts are ended");
    has_text(heard, "plain: device 2 is left out: too old", "what can't be driven is told");
    has_text(heard, "absent: no devices: no driver", "and what can't be counted");
}

/* Devices are opened once, by name or as the best. */
static void test_opening(cnri_devices *set) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_device *d, *again;
    is_int(cnri_device_open(set, "board:1", &d, &err), CNR_OK, "opened by name");
    ok(d->concurrency == 3 && strcmp(d->name, "board:1") == 0 && d->index == 0, "with its options");
    cnri_device_open(set, "board:1", &again, &err);
    ok(again == d && opened == 1, "once");
    ok(cnri_device_open(set, "board", &d, &err) == CNR_OK && strcmp(d->name, "board:0") == 0,
       "a family is its first");
    ok(cnri_device_open(set, "own:0", &d, &err) == CNR_OK && strcmp(d->name, "own") == 0,
       "an only device may be numbered");
    is_int(cnri_device_open(set, "boards", &d, &err), CNR_E_NOT_FOUND, "an unknown one");
    has_text(err.text, "there are: board:1, own, hollow:0, board:0", "lists those there");
    is_int(cnri_device_open(set, "hollow", &d, &err), CNR_E_DEVICE, "a device without memory");
    ok(d == NULL, "is not handed out");
    closed = 0;
    cnri_devices_close(set);
    ok(closed == 3 && set->n == 0, "all that were opened are closed");
}

int main(void) {
    static cnri_plugin plugin = {.name = (char *)"test"};
    static const cnr_device_class *const classes[] = {&plain, &fast, &single, &absent, &broken};
    struct cnr_registrar r = {.plugin = &plugin, .open = true};
    cnri_devices set;
    test_none();
    for (size_t i = 0; i < CNRI_COUNT(classes); i++)
        is_int(cnri_registrar_add(&r, CNR_KIND_DEVICE, classes[i]), CNR_OK, "a driver");
    cnri_registry_commit(&r);
    cnri_registrar_free(&r);
    test_asking();
    test_finding(&set);
    test_opening(&set);
    return done();
}
