/* Meters: energy, power or temperature of one or more domains (a CPU cluster, the GPU, the board).
 * Knobs: clock domains whose frequency can be read, limited and set, and whose cores can be
 * switched on and off. */
#pragma once

#include <cnnrun/status.h>

#include <stddef.h>

/* Where a meter or a knob looks for its sensors. */
typedef struct cnr_gauge_options {
    uint32_t size;
    const char *root;    /* root above /sys and the like: "/", or a tree of test files */
    const char *address; /* sensor without a file: "/dev/ttyUSB0", "i2c:1:0x40"; NULL: none */
} cnr_gauge_options;

enum {
    CNR_QUANTITY_ENERGY = 1,      /* counter in microjoules, with any origin */
    CNR_QUANTITY_POWER = 2,       /* present power in microwatts */
    CNR_QUANTITY_TEMPERATURE = 3, /* thousandths of a degree Celsius */
};

/* A sensor of a meter. */
typedef struct cnr_meter_domain {
    uint32_t size;
    int32_t quantity;     /* unit of readings, CNR_QUANTITY_... */
    char name[64];        /* such as "a15", "gpu" or "package-0" */
    char device[64];      /* supplied device, "cpu:big", "opencl:0"; "": unknown, or several */
    int32_t period_ms;    /* update interval of the sensor; 0: each reading is new */
    int32_t is_estimated; /* 1: computed from a model of the machine, not measured */
    uint64_t wraps_at;    /* ENERGY: value at which the counter restarts from 0; 0: never */
    /* 1 + index of the domain of this meter that includes this one's energy; 0: none */
    int32_t parent;
    /* 1: the whole machine, which includes all other domains of all meters */
    int32_t is_whole_machine;
} cnr_meter_domain;

/* A reading of a sensor, in the unit of its quantity. */
typedef struct cnr_reading {
    uint32_t size;
    int64_t value;
    uint64_t time_ns; /* time of the reading, by host->now_ns; the host presets the present time */
} cnr_reading;

/* A meter plugin. The plugin owns this constant struct, which stays valid until exit. One thread at
 * a time. */
typedef struct cnr_meter {
    uint32_t size;
    const char *name;
    const char *summary;
    /* Opens the meter. CNR_E_NOT_FOUND: this machine has no such sensor. */
    cnr_status (*open)(const cnr_gauge_options *options, void **state, int32_t *n_domains,
                       cnr_error *err);
    cnr_status (*describe)(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err);
    cnr_status (*read)(void *state, int32_t domain, cnr_reading *out, cnr_error *err);
    void (*close)(void *state);
} cnr_meter;

/* ---- knobs ---- */

/* A clock of a knob. */
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

/* State of a clock. */
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
     * found at open. CNR_E_FORMAT: it never saved such a text. */
    cnr_status (*load_state)(void *state, const char *text, cnr_error *err);
    /* (optional) Does restore's work in a signal handler of a process that ends. It may only make
     * async-signal-safe calls. */
    void (*restore_in_signal)(void *state);
} cnr_knob;
