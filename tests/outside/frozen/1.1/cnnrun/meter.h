/* Energy meters: counters or sampled power of one or more domains (a CPU cluster, the GPU). */
#ifndef CNNRUN_METER_H
#define CNNRUN_METER_H

#include <cnnrun/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cnr_meter_domain {
    char name[64];      /* "a15", "gpu", "package-0" */
    int32_t counter;    /* 1: read gives energy; 0: power */
    int32_t period_ms;  /* how often the sensor renews its value */
    uint64_t wraps_at;  /* counters: microjoules at which they start again; 0: never */
} cnr_meter_domain;

typedef struct cnr_meter {
    uint32_t size;
    uint32_t reserved;
    const char *name;
    const char *summary;
    /* sysfs_root: "/" or a tree of fixtures. E_NOT_FOUND when this machine has none. */
    cnr_status (*open)(const char *sysfs_root, void **state, int32_t *n_domains, cnr_error *err);
    cnr_status (*describe)(void *state, int32_t domain, cnr_meter_domain *out, cnr_error *err);
    /* Microjoules since some moment (counter) or microwatts now. */
    cnr_status (*read)(void *state, int32_t domain, uint64_t *value, cnr_error *err);
    void (*close)(void *state);
} cnr_meter;

#ifdef __cplusplus
}
#endif
#endif
