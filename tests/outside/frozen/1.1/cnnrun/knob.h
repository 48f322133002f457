/* Frequency knobs: one clock domain that can be read, bounded and set. */
#ifndef CNNRUN_KNOB_H
#define CNNRUN_KNOB_H

#include <cnnrun/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cnr_knob_info {
    char name[64];       /* "gpu", "cpu0-3" */
    int32_t n_steps;     /* 0: any frequency from min to max */
    int32_t writable;
    uint64_t min_hz, max_hz; /* the bounds found; never exceeded */
} cnr_knob_info;

typedef struct cnr_knob {
    uint32_t size;
    uint32_t reserved;
    const char *name;
    const char *summary;
    cnr_status (*open)(const char *sysfs_root, void **state, int32_t *n_domains, cnr_error *err);
    cnr_status (*describe)(void *state, int32_t domain, cnr_knob_info *out, cnr_error *err);
    cnr_status (*step)(void *state, int32_t domain, int32_t index, uint64_t *hz, cnr_error *err);
    cnr_status (*read)(void *state, int32_t domain, uint64_t *hz, int32_t *load_percent,
                       cnr_error *err); /* load -1: not told */
    cnr_status (*set)(void *state, int32_t domain, uint64_t hz, cnr_error *err);
    void (*restore)(void *state); /* as found at open */
    void (*close)(void *state);
} cnr_knob;

#ifdef __cplusplus
}
#endif
#endif
