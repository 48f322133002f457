/* Knobs: clock domains that can be read, bounded and set, and whose cores can be switched. */
#ifndef CNNRUN_KNOB_H
#define CNNRUN_KNOB_H

#include <cnnrun/meter.h>
#include <stddef.h>

CNR_BEGIN_C

typedef struct cnr_knob_domain {
    uint32_t size;
    int32_t n_steps;  /* 0: any frequency from min to max */
    char name[64];    /* "gpu", "cpu0-3" */
    char devices[64]; /* the device it clocks, as a meter's; several with commas between */
    int32_t is_writable;
    int32_t period_ms;            /* least time between two settings */
    uint64_t min_hz, max_hz;      /* the bounds found; the host never exceeds them */
    int32_t min_cores, max_cores; /* that may be on; max_cores 0: they are not switched */
} cnr_knob_domain;

typedef struct cnr_knob_state {
    uint32_t size;
    int32_t load_percent;   /* -1: not told */
    int32_t cores;          /* that are on; -1: not told */
    int32_t temperature_mc; /* thousandths of a degree Celsius; INT32_MIN: not told */
    uint64_t hz;
    uint64_t time_ns; /* as a reading's */
} cnr_knob_state;

/* Constant, owned by the plugin, valid until exit. One thread at a time. */
typedef struct cnr_knob {
    uint32_t size;
    const char *name;
    const char *summary;
    cnr_status (*open)(const cnr_gauge_options *options, void **state, int32_t *n_domains,
                       cnr_error *err);
    cnr_status (*describe)(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err);
    /* Frequency `index` of n_steps, rising. (optional where there are none) */
    cnr_status (*step)(void *state, int32_t domain, int32_t index, uint64_t *hz, cnr_error *err);
    cnr_status (*read)(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err);
    /* hz 0, cores -1: left as it is */
    cnr_status (*set)(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err);
    cnr_status (*restore)(void *state, cnr_error *err); /* all as found at open */
    void (*close)(void *state);
    /* ---- for processes that are killed before they can restore ---- */
    /* (optional) What restore puts back, as a text for load_state: the host keeps it in a file from
     * before the first setting until restore. Returns its length, as snprintf does. */
    int32_t (*save_state)(void *state, char *text, size_t room);
    /* (with save_state) Between open and describe: puts that back, which counts as what open found.
     */
    cnr_status (*load_state)(void *state, const char *text, cnr_error *err);
    /* (optional) restore in a signal handler, of a process that ends: only calls that handlers may
     * do */
    void (*restore_in_signal)(void *state);
} cnr_knob;

CNR_END_C
#endif
