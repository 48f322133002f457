/* meter-nvml: energy and power of NVIDIA cards by NVML, loaded at run time. For a root other than
 * "/": ROOT/usr/lib/libnvidia-ml.so.1. */
#include "gauge.h"
#include <cnnrun/kit.h>
#include <stdio.h>

struct nvml_field;

/* Part of NVML's stable ABI: 0 is success; handles are pointers. */
typedef struct nvml {
    void *library;
    int (*start)(void);
    int (*stop)(void);
    int (*count)(unsigned *n);
    int (*handle)(unsigned index, void **device);
    int (*energy)(void *device, unsigned long long *millijoules);
    int (*power)(void *device, unsigned *milliwatts);
    int (*fields)(void *device, int n, struct nvml_field *fields);
    const char *(*text)(int code);
} nvml;

/* A value requested by field number. */
struct nvml_field {
    unsigned id, scope;
    long long time_us, latency_us;
    int type, status;
    union {
        unsigned whole;
        double real;
        unsigned long long bits;
    } value;
};
/* from Ampere on, the older function returns the mean of the last second */
enum { POWER_INSTANT = 186 };

enum { PERIOD_MS = 100, MOST_CARDS = 64 }; /* cards update both about this often */

/* A card that is measured; counter: it has a counter of energy, else only its power is read. */
typedef struct card_domain {
    void *device;
    int counter;
    cnr_meter_domain domain;
} card_domain;

/* The library and all cards that are measured. */
typedef struct cards {
    nvml lib;
    card_domain *at;
    int32_t n;
} cards;

/* ---- the library ---- */

/* Opens NVIDIA's library; fails if it is not there. */
static cnr_status open_library(nvml *lib, const char *root, cnr_error *err) {
    static const char name[] = "libnvidia-ml.so.1";
    void *library = gauge_library(root, name, err);
    if (!library) return CNR_E_NOT_FOUND;
    const int whole = gauge_symbol(library, "nvmlInit_v2", &lib->start) &&
                      gauge_symbol(library, "nvmlShutdown", &lib->stop) &&
                      gauge_symbol(library, "nvmlDeviceGetCount_v2", &lib->count) &&
                      gauge_symbol(library, "nvmlDeviceGetHandleByIndex_v2", &lib->handle) &&
                      gauge_symbol(library, "nvmlDeviceGetPowerUsage", &lib->power) &&
                      gauge_symbol(library, "nvmlErrorString", &lib->text);
    gauge_symbol(library, "nvmlDeviceGetTotalEnergyConsumption",
                 &lib->energy); /* missing in old versions */
    gauge_symbol(library, "nvmlDeviceGetFieldValues", &lib->fields);
    if (whole) lib->library = library;
    return whole ? CNR_OK
                 : gauge_host->fail(err, CNR_E_UNSUPPORTED, name,
                                    "is too old: it lacks functions wanted");
}

/* Fails with CNR_E_DEVICE: `what`, and the library's text of its error code. */
static cnr_status complain(const nvml *lib, int code, const char *what, cnr_error *err) {
    const char *text = lib->text(code);
    return gauge_host->fail(err, CNR_E_DEVICE, "nvml", "%s: %s", what, text ? text : "?");
}

/* Power of a card now, in milliwatts; returns the library's code, 0 if good. */
static int power_of(const nvml *lib, void *device, unsigned *milliwatts) {
    struct nvml_field now = {.id = POWER_INSTANT};
    if (lib->fields && lib->fields(device, 1, &now) == 0 && now.status == 0 &&
        now.value.whole > 0) {
        *milliwatts = now.value.whole;
        return 0;
    }
    return lib->power(device, milliwatts);
}

/* ---- its cards ---- */

/* Adds a domain: counter 1: an energy counter, 0: power; NULL: out of memory. */
static card_domain *add(cards *c, void *device, unsigned card, int counter) {
    card_domain *at = gauge_host->resize(c->at, (size_t)(c->n + 1) * sizeof *at);
    if (!at) return NULL;
    c->at = at;
    at = &c->at[c->n++];
    *at =
        (card_domain){.device = device, .counter = counter, .domain = {.size = sizeof at->domain}};
    at->domain.quantity = counter ? CNR_QUANTITY_ENERGY : CNR_QUANTITY_POWER;
    at->domain.period_ms = PERIOD_MS;
    snprintf(at->domain.name, sizeof at->domain.name, counter ? "gpu%u" : "gpu%u power", card);
    snprintf(at->domain.device, sizeof at->domain.device, "opencl:%u", card);
    return at;
}

/* Adds the energy counter if the card has one, and its power, which is then a part of it. */
static cnr_status add_card(cards *c, unsigned card, cnr_error *err) {
    void *device;
    unsigned long long energy;
    unsigned power;
    const int failed = c->lib.handle(card, &device);
    if (failed) {
        gauge_host->log(CNR_LOG_WARN, "meter-nvml", "card %u: %s", card, c->lib.text(failed));
        return CNR_OK;
    }
    const int counter = c->lib.energy && c->lib.energy(device, &energy) == 0;
    if (counter && !add(c, device, card, 1)) goto no_memory;
    const int32_t within = counter ? c->n : 0;
    if (power_of(&c->lib, device, &power) == 0 || !counter) {
        card_domain *d = add(c, device, card, 0);
        if (!d) goto no_memory;
        d->domain.parent = within;
    }
    return CNR_OK;
no_memory:
    return gauge_host->fail(err, CNR_E_MEMORY, "nvml", "out of memory");
}

/* NVML stays loaded: it has threads and handlers of its own. */
static void close_meter(void *state) {
    cards *c = state;
    if (c->lib.library) c->lib.stop();
    gauge_host->free(c->at);
    gauge_host->free(c);
}

/* Opens and starts the library, and adds each card that can be measured; fails where there is no
 * library or no memory. */
static cnr_status open_cards(cards *c, const char *root, cnr_error *err) {
    unsigned n = 0;
    CNR_TRY(open_library(&c->lib, root, err));
    int code = c->lib.start();
    if (code) {
        c->lib.library = NULL; /* not initialised, so not to be shut down */
        return gauge_host->fail(err, CNR_E_NOT_FOUND, "nvml", "%s", c->lib.text(code));
    }
    code = c->lib.count(&n);
    if (code) return complain(&c->lib, code, "counting the cards", err);
    for (unsigned i = 0; i < n && i < MOST_CARDS; i++) CNR_TRY(add_card(c, i, err));
    return c->n ? CNR_OK
                : gauge_host->fail(err, CNR_E_NOT_FOUND, "nvml", "this machine has no card");
}

/* Opens the meter: *state receives the cards, *n their number. */
static cnr_status open_meter(const cnr_gauge_options *options, void **state, int32_t *n,
                             cnr_error *err) {
    cards *c = gauge_state(sizeof *c, "nvml", err);
    if (!c) return CNR_E_MEMORY;
    return gauge_state_opened(open_cards(c, options->root, err), c, &c->n, close_meter, state, n);
}

/* Copies the description of a card to *out, as many bytes as out->size says. */
static cnr_status describe(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err) {
    (void)err;
    return gauge_tell(out, &((cards *)state)->at[domain].domain, sizeof *out);
}

/* Reads the energy counter or the power of a card into *out. */
static cnr_status read_meter(void *state, int32_t domain, cnr_reading *out, cnr_error *err) {
    const cards *c = state;
    const card_domain *d = &c->at[domain];
    unsigned long long millijoules = 0;
    unsigned milliwatts = 0;
    const int code = d->counter ? c->lib.energy(d->device, &millijoules)
                                : power_of(&c->lib, d->device, &milliwatts);
    if (code) return complain(&c->lib, code, d->domain.name, err);
    out->value = d->counter ? (int64_t)millijoules * 1000 : (int64_t)milliwatts * 1000;
    return CNR_OK;
}

static const cnr_meter meter = {.size = sizeof(cnr_meter),
                                .name = "nvml",
                                .summary = "energy and power of NVIDIA's cards",
                                .open = open_meter,
                                .describe = describe,
                                .read = read_meter,
                                .close = close_meter};

GAUGE_PLUGIN("meter-nvml", "energy and power of NVIDIA's cards, by their library", CNR_KIND_METER,
             meter)
