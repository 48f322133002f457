/* Devices and plugins of a runtime; on which devices the nodes of a model run. */
#pragma once

#include <cnnrun/engine.h>

CNR_BEGIN_EXPORTS

typedef struct cnr_device_entry {
    uint32_t size;
    int32_t concurrency;                    /* number of threads or compute units */
    const char *name;                       /* "cpu", "opencl:0", as in options and placements */
    const char *family, *hardware, *driver; /* "opencl"; "Mali-G78"; vendor and version */
    const char *plugin;                     /* name of the device class that drives the device */
    uint64_t memory_bytes;                  /* 0: unknown */
} cnr_device_entry;
/* Describes device `index`, best first; initialises drivers. The runtime owns the texts.
 * CNR_E_NOT_FOUND: there is no such device. */
cnr_status cnr_device_at(cnr_runtime *rt, int32_t index, cnr_device_entry *out, cnr_error *err);

/* Returns an object of the device's driver, which the device owns: "context" or "device" of OpenCL,
 * to make memory that sessions bind. Opens the device. CNR_E_NOT_FOUND: no such object. */
cnr_status cnr_device_native(cnr_runtime *rt, const char *device, const char *name, void **out,
                             cnr_error *err);

/* Tells whether `device` is the default, which runs all nodes that neither an option nor the net
 * places. It is the device with the highest score that opens, of the plugins with the highest
 * precedence (cnr_open_options.plugin_order). `reason` (may be NULL) receives up to `room` bytes of
 * text that explains the answer. */
cnr_status cnr_device_default(cnr_runtime *rt, const char *device, int32_t *is_default,
                              char *reason, size_t room, cnr_error *err);

/* A plugin that was found, by its own name and version. refused: why it did not load, or NULL. */
typedef struct cnr_plugin_entry {
    uint32_t size;
    const char *name, *version, *file, *summary, *refused;
} cnr_plugin_entry;
/* Describes plugin `index` of all that the process found. The texts live as long as the process.
 * CNR_E_NOT_FOUND: there is no such plugin. */
cnr_status cnr_plugin_at(cnr_runtime *rt, int32_t index, cnr_plugin_entry *out, cnr_error *err);

/* Calls fn(arg, ...) for each property that the device reports; device.h lists the names. With
 * measure = 1 the device is also opened and benchmarks itself. */
cnr_status cnr_device_properties(cnr_runtime *rt, const char *device, int32_t measure,
                                 cnr_property_fn fn, void *arg, cnr_error *err);

typedef struct cnr_place_options {
    uint32_t size;
    int32_t axis, n_devices;
    const char *node; /* "*": every node without a placement of its own */
    const char *const *devices;
    const double *shares; /* parts of the output along `axis`; sum 1; NULL: equal */
    /* Not NULL: a policy places the whole net, as in cnr_load_options, and `node` may be NULL. ""
     * removes the policy. */
    const char *policy;
    const char *const *policy_options;
} cnr_place_options;
/* Places a node on one device, or splits its output over several. n_devices 0 removes the
 * placement. Plans made afterwards use it. */
cnr_status cnr_place(cnr_model *model, const cnr_place_options *options, cnr_error *err);

CNR_END_EXPORTS
