/* knob-nvml: clocks of NVIDIA cards by NVML, loaded at run time.
 *
 * It sets the clocks for applications, the only ones that NVML can also read, so that the values
 * found can be restored. The value found is the upper limit. */
#include "gauge.h"
#include <cnnrun/kit.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Part of NVML's stable ABI: 0 is success; handles are pointers. */
enum { GRAPHICS = 0, MEMORY = 2, SET_APPLICATION_CLOCKS = 0 };
/* Load of a card in percent. */
typedef struct utilization {
    unsigned gpu, memory;
} utilization;
/* Pointers to functions of NVIDIA's library; those that return int give its error code, 0 for
 * none. */
typedef struct nvml {
    int (*start)(void);
    int (*stop)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned index, void **device);
    int (*steps)(void *device, unsigned memory, unsigned *n, unsigned *mhz);
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*found)(void *device, int type, unsigned *mhz);
    int (*set)(void *device, unsigned memory, unsigned graphics);
    int (*restricted)(void *device, int what, int *is);
    int (*busy)(void *device, utilization *out);
    int (*temperature)(void *device, int sensor, unsigned *degrees);
    const char *(*text)(int code);
} nvml;

enum { MOST_CARDS = 64, MOST_STEPS = 512 };
/* A card: the library's handle, clocks of memory and graphics that were set (MHz; 0: none), and its
 * steps. */
typedef struct card {
    void *device;
    unsigned memory, graphics;  /* megahertz, as found; 0: unknown */
    unsigned steps[MOST_STEPS]; /* frequencies in MHz, rising */
    cnr_knob_domain domain;
} card;
/* The library, whether it was started, and all cards. */
typedef struct cards {
    nvml lib;
    int started;
    card **at;
    int32_t n;
} cards;

/* Opens NVIDIA's library; fails if it is not there. */
static cnr_status open_library(nvml *lib, const char *root, cnr_error *err) {
    static const char name[] = "libnvidia-ml.so.1";
    const struct {
        const char *symbol;
        void *to;
    } wanted[] = {{"nvmlInit_v2", &lib->start},
                  {"nvmlShutdown", &lib->stop},
                  {"nvmlDeviceGetCount_v2", &lib->count},
                  {"nvmlDeviceGetHandleByIndex_v2", &lib->handle},
                  {"nvmlDeviceGetSupportedGraphicsClocks", &lib->steps},
                  {"nvmlDeviceGetClockInfo", &lib->clock},
                  {"nvmlDeviceGetApplicationsClock", &lib->found},
                  {"nvmlDeviceSetApplicationsClocks", &lib->set},
                  {"nvmlDeviceGetAPIRestriction", &lib->restricted},
                  {"nvmlDeviceGetUtilizationRates", &lib->busy},
                  {"nvmlDeviceGetTemperature", &lib->temperature},
                  {"nvmlErrorString", &lib->text}};
    void *library = gauge_library(root, name, err);
    if (!library) return CNR_E_NOT_FOUND;
    for (int i = 0; i < CNR_ROWS(wanted); i++)
        if (!gauge_symbol(library, wanted[i].symbol, wanted[i].to))
            return gauge_host->fail(err, CNR_E_UNSUPPORTED, name, "it lacks %s", wanted[i].symbol);
    return CNR_OK;
}

/* Fails with CNR_E_DEVICE: `what`, and the library's text of its error code. */
static cnr_status complain(const nvml *lib, int code, const char *where, const char *what,
                           cnr_error *err) {
    const char *text = lib->text(code);
    return gauge_host->fail(err, CNR_E_DEVICE, where, "%s: %s", what, text ? text : "?");
}

/* ---- its cards ---- */

/* Compares two numbers, for qsort. */
static int rising(const void *a, const void *b) {
    const unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* Reads the steps of a card's clock in MHz into c, sorted; none where the library does not tell. */
static void read_steps(const nvml *lib, card *c) {
    unsigned n = MOST_STEPS;
    if (!c->memory || lib->steps(c->device, c->memory, &n, c->steps) || n > MOST_STEPS) n = 0;
    qsort(c->steps, n, sizeof *c->steps, rising);
    c->domain.n_steps = (int32_t)n;
    c->domain.min_hz = n ? (uint64_t)c->steps[0] * 1000000u : 0;
    c->domain.max_hz = (uint64_t)c->graphics * 1000000u;
    if (c->domain.max_hz < c->domain.min_hz) c->domain.max_hz = c->domain.min_hz;
}

/* Adds a card; one that can't be asked is left out. */
static cnr_status add_card(cards *l, unsigned index, cnr_error *err) {
    void *device;
    int restricted = 1;
    const int failed = l->lib.handle(index, &device);
    if (failed) {
        gauge_host->log(CNR_LOG_WARN, "knob-nvml", "card %u: %s", index, l->lib.text(failed));
        return CNR_OK;
    }
    card **at = gauge_host->resize(l->at, (size_t)(l->n + 1) * sizeof *at);
    if (at) l->at = at;
    card *c = at ? gauge_host->alloc(sizeof *c) : NULL;
    if (!c) return gauge_host->fail(err, CNR_E_MEMORY, "nvml", "out of memory");
    memset(c, 0, sizeof *c);
    l->at[l->n++] = c;
    c->device = device;
    c->domain.size = sizeof c->domain;
    snprintf(c->domain.name, sizeof c->domain.name, "gpu%u", index);
    snprintf(c->domain.devices, sizeof c->domain.devices, "opencl:%u", index);
    if (l->lib.found(device, MEMORY, &c->memory)) c->memory = 0;
    if (l->lib.found(device, GRAPHICS, &c->graphics)) c->graphics = 0;
    read_steps(&l->lib, c);
    if (l->lib.restricted(device, SET_APPLICATION_CLOCKS, &restricted)) restricted = 1;
    c->domain.is_writable =
        c->memory && c->graphics && c->domain.n_steps && (!restricted || geteuid() == 0);
    return CNR_OK;
}

/* Stops the library, if it was started, and frees all. */
static void close_knob(void *state) {
    cards *l = state;
    if (l->started) l->lib.stop();
    GAUGE_EACH(i, l->n) gauge_host->free(l->at[i]);
    gauge_host->free(l->at);
    gauge_host->free(l);
}

/* Opens and starts the library, and adds each card; fails where there is no library or no
 * memory. */
static cnr_status open_cards(cards *l, const char *root, cnr_error *err) {
    unsigned n = 0;
    CNR_TRY(open_library(&l->lib, root, err));
    int code = l->lib.start();
    if (code) return gauge_host->fail(err, CNR_E_NOT_FOUND, "nvml", "%s", l->lib.text(code));
    l->started = 1;
    code = l->lib.count(&n);
    if (code) return complain(&l->lib, code, "nvml", "counting the cards", err);
    for (unsigned i = 0; i < n && i < MOST_CARDS; i++) CNR_TRY(add_card(l, i, err));
    return l->n ? CNR_OK
                : gauge_host->fail(err, CNR_E_NOT_FOUND, "nvml", "this machine has no card");
}

/* Opens the knob: *state receives the cards, *n their number. */
static cnr_status open_knob(const cnr_gauge_options *options, void **state, int32_t *n,
                            cnr_error *err) {
    cards *l = gauge_state(sizeof *l, "nvml", err);
    if (!l) return CNR_E_MEMORY;
    return gauge_state_opened(open_cards(l, options->root, err), l, &l->n, close_knob, state, n);
}

/* Copies the description of a card's clock to *out, as many bytes as out->size says. */
static cnr_status describe(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err) {
    (void)err;
    return gauge_tell(out, &((cards *)state)->at[domain]->domain, sizeof *out);
}

/* Frequency of a step in Hz. */
static cnr_status step_at(void *state, int32_t domain, int32_t index, uint64_t *hz,
                          cnr_error *err) {
    (void)err;
    *hz = (uint64_t)((cards *)state)->at[domain]->steps[index] * 1000000u;
    return CNR_OK;
}

/* Reads a card's frequency and, where known, its load in percent; fails with the library's
 * reason. */
static cnr_status read_knob(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err) {
    const cards *l = state;
    const card *c = l->at[domain];
    utilization busy;
    unsigned value;
    const int code = l->lib.clock(c->device, GRAPHICS, &value);
    if (code) return complain(&l->lib, code, c->domain.name, "its clock", err);
    out->hz = (uint64_t)value * 1000000u;
    if (!l->lib.busy(c->device, &busy)) out->load_percent = (int32_t)busy.gpu;
    if (!l->lib.temperature(c->device, 0, &value)) out->temperature_mc = (int32_t)value * 1000;
    return CNR_OK;
}

/* ---- setting and restoring ---- */

/* Sets a card's clock in MHz and checks that it has it: CNR_E_STATE if it runs faster. */
static cnr_status give(const cards *l, const card *c, unsigned mhz, cnr_error *err) {
    unsigned is = 0;
    int code = l->lib.set(c->device, c->memory, mhz);
    if (!code) code = l->lib.found(c->device, GRAPHICS, &is);
    if (code) return complain(&l->lib, code, c->domain.name, "its clock can't be set", err);
    if (is <= mhz) return CNR_OK;
    return gauge_host->fail(err, CNR_E_STATE, c->domain.name, "was set to %u MHz, and is %u still",
                            mhz, is);
}

/* Sets a card's clock to at most `hz`; 0: nothing changes. Fails with the library's reason. */
static cnr_status set(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err) {
    const cards *l = state;
    (void)cores;
    return hz ? give(l, l->at[domain], (unsigned)(hz / 1000000u), err) : CNR_OK;
}

/* Gives all cards the clocks that were found. */
static cnr_status restore(void *state, cnr_error *err) {
    const cards *l = state;
    cnr_status status = CNR_OK;
    GAUGE_EACH(i, l->n) {
        if (!l->at[i]->domain.is_writable) continue;
        const cnr_status one = give(l, l->at[i], l->at[i]->graphics, err);
        if (one) status = one;
    }
    return status;
}

/* Writes what was found (index, memory and graphics clock in MHz, a card a line) as text, cut to
 * room; returns the length of all of it. */
static int32_t found(void *state, char *text, size_t room) {
    const cards *l = state;
    int32_t n = 0;
    GAUGE_EACH(i, l->n) {
        const size_t used = (size_t)n < room ? (size_t)n : room;
        n += snprintf(text + used, room - used, "%d %u %u\n", (int)i, l->at[i]->memory,
                      l->at[i]->graphics);
    }
    return n;
}

/* Takes the clocks in a text that save_state wrote for those that the cards had, and sets the cards
 * to them. */
static cnr_status load_state(void *state, const char *text, cnr_error *err) {
    cards *l = state;
    int index, n;
    unsigned memory, graphics;
    for (; sscanf(text, "%d %u %u\n%n", &index, &memory, &graphics, &n) == 3; text += n) {
        if (index < 0 || index >= l->n || !memory || !graphics) continue;
        l->at[index]->memory = memory;
        l->at[index]->graphics = graphics;
        read_steps(&l->lib, l->at[index]);
    }
    if (*text) return gauge_host->fail(err, CNR_E_FORMAT, "nvml", "not a saved state: %.40s", text);
    return restore(l, err);
}

static const cnr_knob knob = {.size = sizeof(cnr_knob),
                              .name = "nvml",
                              .summary = "clocks of NVIDIA's cards",
                              .open = open_knob,
                              .describe = describe,
                              .step = step_at,
                              .read = read_knob,
                              .set = set,
                              .restore = restore,
                              .close = close_knob,
                              .save_state = found,
                              .load_state = load_state};

GAUGE_PLUGIN("knob-nvml", "clocks of NVIDIA's cards, by their library", CNR_KIND_KNOB, knob)
