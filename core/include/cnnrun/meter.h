/* Meters: energy, power or temperature of one or more domains (a CPU cluster, the GPU, the
 * board). */
#ifndef CNNRUN_METER_H
#define CNNRUN_METER_H

#include <cnnrun/status.h>

CNR_BEGIN_C

/* Where a meter or a knob looks. */
typedef struct cnr_gauge_options {
    uint32_t size;
    const char *root;    /* of /sys and the like: "/", or a tree of fixtures */
    const char *address; /* what is no file there: "/dev/ttyUSB0", "i2c:1:0x40"; NULL: none */
} cnr_gauge_options;

enum {
    CNR_QUANTITY_ENERGY = 1,      /* microjoules since some moment */
    CNR_QUANTITY_POWER = 2,       /* microwatts now */
    CNR_QUANTITY_TEMPERATURE = 3, /* thousandths of a degree Celsius */
};

typedef struct cnr_meter_domain {
    uint32_t size;
    int32_t quantity; /* CNR_QUANTITY_...: what readings are of */
    char name[64];    /* "a15", "gpu", "package-0" */
    char device[64]; /* the device it supplies, "cpu:big", "opencl:0"; "": none alone, or unknown */
    int32_t period_ms;    /* how often the sensor renews its value; 0: at each reading */
    int32_t is_estimated; /* 1: worked out from a model of the machine, measured by nothing */
    uint64_t wraps_at;    /* ENERGY: the value at which it starts again from 0; 0: never */
    /* 1 + the domain of the same meter that this one's energy is part of; 0: none */
    int32_t parent;
    int32_t
        is_whole_machine; /* 1: the whole machine, with what all other domains of all meters take */
} cnr_meter_domain;

typedef struct cnr_reading {
    uint32_t size;
    int64_t value;
    uint64_t time_ns; /* when it was so, by host->now_ns; the host presets its own now */
} cnr_reading;

/* Constant, owned by the plugin, valid until exit. One thread at a time. */
typedef struct cnr_meter {
    uint32_t size;
    const char *name;
    const char *summary;
    /* E_NOT_FOUND when this machine has none. */
    cnr_status (*open)(const cnr_gauge_options *options, void **state, int32_t *n_domains,
                       cnr_error *err);
    cnr_status (*describe)(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err);
    cnr_status (*read)(void *state, int32_t domain, cnr_reading *out, cnr_error *err);
    void (*close)(void *state);
} cnr_meter;

CNR_END_C
#endif
