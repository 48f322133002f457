/* Knobs: clock domains whose frequency can be read, limited and set, and whose cores can be
 * switched on and off. */
#ifndef CNNRUN_KNOB_H
#define CNNRUN_KNOB_H

#include <cnnrun/meter.h>
#include <stddef.h>

CNR_BEGIN_C

/* Description of one clock that a knob sets: frequencies in Hz, number of cores, and the devices
 * that run on it. */
typedef struct cnr_knob_domain {
    uint32_t size;
    int32_t n_steps;  /* 0: any frequency from min to max */
    char name[64];    /* such as "gpu" or "cpu0-3" */
    char devices[64]; /* the devices it clocks, named as in a meter; separated by commas */
    int32_t is_writable;
    int32_t period_ms;            /* minimal time between two settings */
    uint64_t min_hz, max_hz;      /* limits found at open; the host never exceeds them */
    int32_t min_cores, max_cores; /* limits of active cores; max_cores 0: can't be switched */
} cnr_knob_domain;

/* Reading of one clock: frequency, load, cores that are on, temperature and time. */
typedef struct cnr_knob_state {
    uint32_t size;
    int32_t load_percent;   /* -1: unknown */
    int32_t cores;          /* number of active cores; -1: unknown */
    int32_t temperature_mc; /* thousandths of a degree Celsius; INT32_MIN: unknown */
    uint64_t hz;
    uint64_t time_ns; /* time of the reading, as in cnr_reading */
} cnr_knob_state;

/* A knob plugin. The plugin owns this constant struct, which stays valid until exit. One thread at
 * a time. */
typedef struct cnr_knob {
    uint32_t size;
    const char *name;
    const char *summary;
    cnr_status (*open)(const cnr_gauge_options *options, void **state, int32_t *n_domains,
                       cnr_error *err);
    cnr_status (*describe)(void *state, int32_t domain, cnr_knob_domain *out, cnr_error *err);
    /* (optional if n_steps is 0) Gives frequency `index` of n_steps, in ascending order. */
    cnr_status (*step)(void *state, int32_t domain, int32_t index, uint64_t *hz, cnr_error *err);
    cnr_status (*read)(void *state, int32_t domain, cnr_knob_state *out, cnr_error *err);
    /* Sets frequency and active cores. hz 0 or cores -1: unchanged. */
    cnr_status (*set)(void *state, int32_t domain, uint64_t hz, int32_t cores, cnr_error *err);
    cnr_status (*restore)(void *state, cnr_error *err); /* restores the state found at open */
    void (*close)(void *state);
    /* ---- for processes that are killed before they can restore ---- */
    /* (optional) Writes the state that restore restores, as text for load_state. The host keeps it
     * in a file from before the first setting until restore. Returns the length, as snprintf
     * does. */
    int32_t (*save_state)(void *state, char *text, size_t room);
    /* (with save_state) Called between open and describe: sets that state, and uses it as the state
     * found at open. */
    cnr_status (*load_state)(void *state, const char *text, cnr_error *err);
    /* (optional) Does restore's work in a signal handler of a process that ends. It may only make
     * async-signal-safe calls. */
    void (*restore_in_signal)(void *state);
} cnr_knob;

CNR_END_C
#endif
