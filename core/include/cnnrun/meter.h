/* Meters: energy, power or temperature of one or more domains (a CPU cluster, the GPU, the
 * board). */
#ifndef CNNRUN_METER_H
#define CNNRUN_METER_H

#include <cnnrun/status.h>

CNR_BEGIN_C

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
    int32_t
        is_whole_machine; /* 1: the whole machine, which includes all other domains of all meters */
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

CNR_END_C
#endif
