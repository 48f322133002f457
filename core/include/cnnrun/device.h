/* Devices: memory, streams and events of hardware that runs kernels. */
#pragma once

#include <cnnrun/tensor.h>

enum {
    CNR_MEMORY_HOST = 1 << 0,  /* handle is a host address, and data can be used in place */
    CNR_MEMORY_PARTS = 1 << 1, /* memory can be divided into parts at offsets; an image can't */
    CNR_MEMORY_IMAGE = 1 << 2  /* memory has width and height */
};

/* A class of a device's memory. */
typedef struct cnr_memory_class {
    const char *name; /* such as "buffer" or "image2d" */
    uint32_t flags;
    uint32_t alignment; /* alignment of parts in bytes, a power of two */
    uint64_t max_bytes; /* maximum for one allocation */
    int64_t max_width, max_height;
} cnr_memory_class;

/* Description of a device that need not be open. Plugins that can drive the same hardware give the
 * same family and key; the highest score gets the device. Plugins that come with cnnrun precede all
 * others; scores are compared only within each of the two sets. */
typedef struct cnr_device_info {
    uint32_t size;
    int32_t score;    /* 0: the device can't be driven, and `why` has the reason */
    char key[128];    /* identifies the hardware within the family */
    char name[128];   /* name for users: "Mali-G78" */
    char driver[128]; /* vendor and driver version; part of every cache key */
    char why[128];
    int32_t concurrency;   /* number of threads or compute units */
    uint64_t memory_bytes; /* 0: unknown */
    /* Part of the family's hardware that users may select: "big" is "cpu:big". "": all of it. */
    char part[24];
} cnr_device_info;

struct cnr_device_class;
struct cnr_subgraph;

/* A region: nodes that a device computes in one step, by a kernel for CNR_REGION (kernel.h). */
typedef struct cnr_claim {
    uint32_t size;
    int32_t n_nodes;
    const int32_t *nodes;   /* indices in the subgraph, ascending; the nodes are connected */
    const char *kernel;     /* name of the kernel that runs the region */
    double cost_ns, joules; /* estimates for one run; 0: unknown */
} cnr_claim;
/* Receives a claim, and copies it. */
typedef void (*cnr_claim_fn)(void *arg, const cnr_claim *claim);

/* An open device. */
typedef struct cnr_device {
    uint32_t size;
    int32_t index; /* index within its class */
    const struct cnr_device_class *cls;
    const char *name;               /* such as "cpu" or "opencl:0" */
    void *state;                    /* belongs to the plugin */
    const cnr_memory_class *memory; /* n_memory classes, set by open; class 0 is the default */
    int32_t n_memory;
    int32_t concurrency; /* number of threads that the device's streams use; set by open */
    /* Folder for host->cache_load and cache_save; NULL: the user's default folder. Set before open.
     * NULL may be replaced by a folder while no call is in progress. */
    const char *cache_dir;
    /* An open CPU device for work on the host, such as weight packing; its streams have `parallel`.
     * NULL: there is none. Set before open. */
    const struct cnr_device *host;
    void *of_host; /* belongs to the host; NULL in devices that tests make */
} cnr_device;

/* An in-order queue of work. One thread at a time uses it. */
typedef struct cnr_stream {
    uint32_t size;
    const cnr_device *device;
    void *state; /* belongs to the plugin */
    /* Only on devices with host memory, else NULL: calls fn(arg, i, thread) for 0 <= i < n on up to
     * `concurrency` threads, where thread < concurrency. Returns when all calls are done. */
    void (*parallel)(struct cnr_stream *stream, int64_t n,
                     void (*fn)(void *arg, int64_t i, int32_t thread), void *arg);
    /* While *cancel is not 0, long kernels should return early. Other threads set it: see
     * cnr_cancelled. */
    const volatile int32_t *cancel;
    uint32_t flags; /* CNR_STREAM_...; set before stream_open, then constant */
} cnr_stream;

/* The stream's marks are used with event_elapsed and counters, which other streams need not
 * support. If the stream is cancelled for a second or two, its sync may give up the device with
 * CNR_E_CANCELLED although work is still running there. */
enum { CNR_STREAM_TIMED = 1 << 0 };

/* Returns 1 if work on the stream is asked to return early. stream may be NULL. */
static inline int cnr_cancelled(const cnr_stream *stream) {
    return stream && stream->cancel && __atomic_load_n(stream->cancel, __ATOMIC_RELAXED) != 0;
}

/* How devices are opened. */
typedef struct cnr_device_options {
    uint32_t size;
    int32_t threads; /* 0: one thread per available core */
} cnr_device_options;

enum {
    /* The device is the host's processor: its streams have `parallel`, and its calls have no time
     * limit. */
    CNR_DEVICE_HOST = 1 << 1,
    CNR_DEVICE_SINGLE = 1 << 0 /* there is only one device, named family, not family:0 */
};

/* A device class. The plugin owns this constant struct. */
typedef struct cnr_device_class {
    uint32_t size, flags; /* CNR_DEVICE_... */
    const char *name;     /* such as "cpu-neon" or "opencl-mali" */
    /* such as "cpu" or "opencl"; devices are named family:N, or family with SINGLE */
    const char *family;
    const char *summary;
    /* Returns the number of devices, which may be 0, or a negative cnr_status with err set. */
    int32_t (*count)(cnr_error *err);
    cnr_status (*describe)(int32_t index, cnr_device_info *out, cnr_error *err);
    /* (optional: unknown) Returns the highest score that a device of this class can have on this
     * machine. It must not initialise a driver. `count` is not called if a better device is known
     * or the user names another. */
    int32_t (*max_score)(void);
    /* Opens a device: sets state, memory, n_memory and concurrency. */
    cnr_status (*open)(cnr_device *device, const cnr_device_options *options, cnr_error *err);
    void (*close)(cnr_device *device);

    /* Allocates memory: sets handle and offset of `out`, whose bytes, class, width and height are
     * given. */
    cnr_status (*alloc)(const cnr_device *device, cnr_mem *out, cnr_error *err);
    void (*free)(const cnr_device *device, cnr_mem *mem);
    /* (optional: handle + offset) Makes a part of `whole`, which keeps the ownership; for classes
     * with CNR_MEMORY_PARTS. unview releases the part. */
    cnr_status (*view)(const cnr_device *device, const cnr_mem *whole, uint64_t offset,
                       uint64_t bytes, cnr_mem *out, cnr_error *err);
    void (*unview)(const cnr_device *device, cnr_mem *part);
    /* (optional: NULL means copy) Returns a host address for the memory; it may wait for the
     * stream. unmap ends the access. */
    void *(*map)(cnr_stream *stream, const cnr_mem *mem, int32_t write, cnr_error *err);
    void (*unmap)(cnr_stream *stream, const cnr_mem *mem, void *address);
    /* Queue copies between host and device, in order. The host memory must stay unchanged until
     * sync. Bytes outside the device memory are an error. */
    cnr_status (*write)(cnr_stream *stream, const cnr_mem *to, uint64_t offset, const void *from,
                        uint64_t bytes, cnr_error *err);
    cnr_status (*read)(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                       uint64_t bytes, cnr_error *err);
    /* (optional: copy by way of the host) Copies between two memories of this device. */
    cnr_status (*copy)(cnr_stream *stream, const cnr_mem *from, const cnr_mem *to, uint64_t bytes,
                       cnr_error *err);

    cnr_status (*stream_open)(const cnr_device *device, cnr_stream *stream, cnr_error *err);
    void (*stream_close)(cnr_stream *stream);
    cnr_status (*sync)(cnr_stream *stream, cnr_error *err); /* waits for all queued work */
    /* (optional: streams finish at once) event_record puts a mark in the queue; event_wait makes
     * another stream wait for it. */
    cnr_status (*event_record)(cnr_stream *stream, void **event, cnr_error *err);
    cnr_status (*event_wait)(cnr_stream *stream, void *event, cnr_error *err);
    void (*event_free)(const cnr_device *device, void *event);
    /* (optional: sync) Waits for work queued before the mark; later work may continue. */
    cnr_status (*event_sync)(const cnr_device *device, void *event, cnr_error *err);
    /* (optional) Returns the nanoseconds between two recorded marks that have passed. */
    int64_t (*event_elapsed)(const cnr_device *device, void *from, void *to);
    /* (optional: none) Reports the device's counters between two recorded marks that have passed,
     * such as "cycles" or "bytes_read", each by a call of `tell`. Only for CNR_STREAM_TIMED
     * streams. */
    cnr_status (*counters)(const cnr_device *device, void *from, void *to, cnr_property_fn tell,
                           void *arg, cnr_error *err);
    /* (optional) Starts the queued work. */
    void (*flush)(cnr_stream *stream);

    /* (optional: none) Reports properties of device `index`. stream NULL: those that are known
     * without opening it, such as "caches.NAME", the bytes of a cache. Otherwise stream is open and
     * idle, and the device also benchmarks itself, in about a second. "fma_gflops": peak arithmetic
     * in f32 (a multiply-add is two). "read_gbs": read bandwidth of its memory in 1e9 bytes per
     * second. Other names are allowed. */
    cnr_status (*properties)(int32_t index, cnr_stream *stream, cnr_property_fn tell, void *arg,
                             cnr_error *err);

    /* (optional: nothing to wait for) Called when the calling thread has made all calls of kernels'
     * `plan`, also if planning failed. Waits for work that they started on other threads, such as
     * compilation, and returns its error if it failed. */
    cnr_status (*plan_finish)(const cnr_device *device, cnr_error *err);

    /* (optional: none) Reports the regions that the device can compute, each by a call of `claim`.
     *
     * `graph` has the nodes that may run on the device, with shapes, types and constants. Their
     * inputs and outputs have no encoding and no unknown size. Regions may overlap; a node becomes
     * part of at most one. The host uses a region if it costs less than its nodes one by one, if a
     * node would otherwise run on another device, or if a policy says so. Nodes that read a value
     * of a region must follow all of its nodes: other claims are refused with a message. */
    cnr_status (*claim)(const cnr_device *device, const struct cnr_subgraph *graph,
                        cnr_claim_fn claim, void *arg, cnr_error *err);
    /* (optional, both or none: ordinary memory) Host memory, aligned to 64 bytes, for the fastest
     * `write` and `read`, such as page-locked memory. Sessions keep their inputs and outputs there.
     * NULL: none is left, or it would not help. */
    void *(*host_alloc)(const cnr_device *device, uint64_t bytes);
    void (*host_free)(const cnr_device *device, void *memory);
    /* (optional: none) Returns an object of the device's driver, with which applications make
     * memory for it (cnr_device_native): "context" or "device" for OpenCL. The device owns it.
     * NULL: unknown name. */
    void *(*native)(const cnr_device *device, const char *name);
} cnr_device_class;
