/* Devices: memory, streams and events of whatever runs kernels. */
#ifndef CNNRUN_DEVICE_H
#define CNNRUN_DEVICE_H

#include <cnnrun/tensor.h>

CNR_BEGIN_C

enum {
    CNR_MEMORY_HOST = 1 << 0,  /* handle is a host address; data can be used in place */
    CNR_MEMORY_PARTS = 1 << 1, /* may be sub-allocated at offsets; an image may not */
    CNR_MEMORY_IMAGE = 1 << 2  /* has width and height */
};

typedef struct cnr_memory_class {
    const char *name; /* "buffer", "image2d" */
    uint32_t flags;
    uint32_t alignment; /* of parts, bytes, a power of two */
    uint64_t max_bytes; /* of one allocation */
    int64_t max_width, max_height;
} cnr_memory_class;

/* What a device is, before it is opened. Plugins that can drive the same piece of hardware give
 * the same family and key; the highest score gets it. Scores are compared among plugins that come
 * with cnnrun, and among those that do not; the former go before the latter. */
typedef struct cnr_device_info {
    uint32_t size;
    int32_t score;    /* 0: can't be driven; `why` then says so */
    char key[128];    /* identifies the hardware within the family */
    char name[128];   /* for people: "Mali-G78" */
    char driver[128]; /* vendor and driver version; part of every cache key */
    char why[128];
    int32_t concurrency;   /* threads or compute units */
    uint64_t memory_bytes; /* 0: unknown */
    /* "big": a part of the family's hardware that users may select, as "cpu:big"; "": all of it. */
    char part[24];
} cnr_device_info;

struct cnr_device_class;
struct cnr_subgraph;

/* Nodes that a device computes in one step, by a kernel for CNR_REGION (kernel.h). */
typedef struct cnr_claim {
    uint32_t size;
    int32_t n_nodes;
    const int32_t *nodes;   /* of the subgraph that was shown, ascending; connected */
    const char *kernel;     /* name of the kernel that runs it */
    double cost_ns, joules; /* estimates of one run; 0: not known */
} cnr_claim;
typedef void (*cnr_claim_fn)(void *arg, const cnr_claim *claim); /* copies what it is given */

/* An open device. */
typedef struct cnr_device {
    uint32_t size;
    int32_t index; /* within its class */
    const struct cnr_device_class *cls;
    const char *name;               /* "cpu", "opencl:0" */
    void *state;                    /* the plugin's */
    const cnr_memory_class *memory; /* class 0 is the default one; filled by open */
    int32_t n_memory;
    int32_t concurrency; /* threads that streams of this device use; filled by open */
    /* for host->cache_load and cache_save; NULL: the user's own folder. Set before open; NULL may
     * change to a folder while no call is under way. */
    const char *cache_dir;
    /* An open CPU device, for work on the host such as packing weights: a stream of it has
     * `parallel`. NULL: none. Set before open. */
    const struct cnr_device *host;
    void *of_host; /* the host's own; NULL in devices that others make, for tests */
} cnr_device;

/* A queue of work; used by one thread at a time. In-order. */
typedef struct cnr_stream {
    uint32_t size;
    const cnr_device *device;
    void *state; /* the plugin's */
    /* Devices with host memory: calls fn(arg, i, thread) for all i < n on up to `concurrency`
     * threads, thread < concurrency; returns when all are done. NULL elsewhere. */
    void (*parallel)(struct cnr_stream *stream, int64_t n,
                     void (*fn)(void *arg, int64_t i, int32_t thread), void *arg);
    /* non-zero: long kernels are asked to return early; set by other threads: see cnr_cancelled */
    const volatile int32_t *cancel;
    uint32_t flags; /* CNR_STREAM_...; set before stream_open, and constant */
} cnr_stream;

enum {
    /* event_elapsed and counters are called for its marks: other streams need not prepare for them.
     * A sync that was cancelled
     * for a second or two may give the device up, with CNR_E_CANCELLED, though something still runs
     * there. */
    CNR_STREAM_TIMED = 1 << 0
};

/* Whether whoever runs on the stream (may be NULL) is asked to return early. */
static inline int cnr_cancelled(const cnr_stream *stream) {
#if defined(__GNUC__)
    return stream && stream->cancel && __atomic_load_n(stream->cancel, __ATOMIC_RELAXED) != 0;
#else
    return stream && stream->cancel && *stream->cancel != 0;
#endif
}

typedef struct cnr_device_options {
    uint32_t size;
    int32_t threads; /* 0: as many as the machine has cores to give */
} cnr_device_options;

enum {
    /* the host's own processor: its streams have `parallel`, and no time limit holds for its
     * calls */
    CNR_DEVICE_HOST = 1 << 1,
    CNR_DEVICE_SINGLE = 1 << 0 /* there is never a second one: named family, not family:0 */
};

/* One property of a device: a text, or (text NULL) a number. `name` is of a-z, 0-9 and _;
 * "caches.l2" is l2 within caches. Both are copied. */
typedef void (*cnr_property_fn)(void *arg, const char *name, const char *text, double value);

/* A device class. Constant, owned by the plugin. */
typedef struct cnr_device_class {
    uint32_t size, flags; /* CNR_DEVICE_... */
    const char *name;     /* "cpu-neon", "opencl-mali" */
    const char *family;   /* "cpu", "opencl": devices are named family:N, or family with SINGLE */
    const char *summary;
    /* How many devices there are; 0 is fine. Negative: a cnr_status, err filled. */
    int32_t (*count)(cnr_error *err);
    cnr_status (*describe)(int32_t index, cnr_device_info *out, cnr_error *err);
    /* (optional: unknown) The highest score that a device of this class could have on this machine.
     * Must not initialise a driver: `count` is not called while better devices are known, or the
     * user names another. */
    int32_t (*max_score)(void);
    /* Fills state, memory, n_memory, concurrency. */
    cnr_status (*open)(cnr_device *device, const cnr_device_options *options, cnr_error *err);
    void (*close)(cnr_device *device);

    /* Memory; alloc sets handle and offset of `out`, whose bytes, class, width, height are set. */
    cnr_status (*alloc)(const cnr_device *device, cnr_mem *out, cnr_error *err);
    void (*free)(const cnr_device *device, cnr_mem *mem);
    /* (optional: handle + offset) A part of `whole`, which stays the owner; classes with PARTS. */
    cnr_status (*view)(const cnr_device *device, const cnr_mem *whole, uint64_t offset,
                       uint64_t bytes, cnr_mem *out, cnr_error *err);
    void (*unview)(const cnr_device *device, cnr_mem *part);
    /* Host address of memory; may wait for the stream. (optional: NULL means copy) */
    void *(*map)(cnr_stream *stream, const cnr_mem *mem, int32_t write, cnr_error *err);
    void (*unmap)(cnr_stream *stream, const cnr_mem *mem, void *address);
    /* Queued in order; the host side may be reused after sync. Bytes outside: an error. */
    cnr_status (*write)(cnr_stream *stream, const cnr_mem *to, uint64_t offset, const void *from,
                        uint64_t bytes, cnr_error *err);
    cnr_status (*read)(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                       uint64_t bytes, cnr_error *err);
    /* (optional: through the host) between two memories of this device */
    cnr_status (*copy)(cnr_stream *stream, const cnr_mem *from, const cnr_mem *to, uint64_t bytes,
                       cnr_error *err);

    cnr_status (*stream_open)(const cnr_device *device, cnr_stream *stream, cnr_error *err);
    void (*stream_close)(cnr_stream *stream);
    cnr_status (*sync)(cnr_stream *stream, cnr_error *err); /* all that was queued has run */
    /* (optional: streams finish at once) A mark in the queue; another stream may wait for it. */
    cnr_status (*event_record)(cnr_stream *stream, void **event, cnr_error *err);
    cnr_status (*event_wait)(cnr_stream *stream, void *event, cnr_error *err);
    void (*event_free)(const cnr_device *device, void *event);
    /* (optional: sync) Returns when what was queued before the mark has run; what was queued
     * behind it may go on. */
    cnr_status (*event_sync)(const cnr_device *device, void *event, cnr_error *err);
    /* (optional) nanoseconds between two recorded marks that have passed */
    int64_t (*event_elapsed)(const cnr_device *device, void *from, void *to);
    /* (optional: none) Counters of the device between two recorded marks that have passed, such as
     * "cycles" or "bytes_read", each by a call of `tell`. Only streams with CNR_STREAM_TIMED. */
    cnr_status (*counters)(const cnr_device *device, void *from, void *to, cnr_property_fn tell,
                           void *arg, cnr_error *err);
    /* (optional) starts what was queued */
    void (*flush)(cnr_stream *stream);

    /* (optional: none) Properties of device `index`. stream NULL: those that are known without
     * opening it, such as "caches.NAME", bytes of a cache. Else its stream, open and idle, and the
     * device also times itself, within a second or so: "fma_gflops", its peak arithmetic in f32 (a
     * multiply-add is two), and "read_gbs", 1e9 bytes a second read from its own memory. A device
     * may have names of its own. */
    cnr_status (*properties)(int32_t index, cnr_stream *stream, cnr_property_fn tell, void *arg,
                             cnr_error *err);

    /* (optional: nothing to finish) The calling thread has made all its calls of kernels' `plan`.
     * Returns when work that they started on other threads, such as compilation, has ended, with
     * its error if it failed. Also called after planning failed. */
    cnr_status (*plan_finish)(const cnr_device *device, cnr_error *err);

    /* (optional: none) Tells the regions that the device would compute, each by a call of `claim`.
     * `graph`: nodes that may run on it, with shapes, types and constants; of their inputs and
     * outputs none has an encoding or a size that is not known. Regions may overlap: at most one of
     * them gets a node. The host takes a region where that costs less than its nodes one by one, or
     * where one of those would run elsewhere; or as a policy says. What reads a value of a region
     * stands behind all of its nodes: other claims are refused, with a message. */
    cnr_status (*claim)(const cnr_device *device, const struct cnr_subgraph *graph,
                        cnr_claim_fn claim, void *arg, cnr_error *err);
    /* (optional, both or none: ordinary memory) Host memory, aligned to 64 bytes, between which and
     * the device `write` and `read` are fastest, as page-locked memory is. NULL: none is left, or
     * it would not help. A session keeps its inputs and outputs there. */
    void *(*host_alloc)(const cnr_device *device, uint64_t bytes);
    void (*host_free)(const cnr_device *device, void *memory);
    /* (optional: none) An object of the device's driver, for applications that make memory for it
     * (cnr_device_native): of OpenCL "context" and "device". The device owns it. NULL: none has
     * that name. */
    void *(*native)(const cnr_device *device, const char *name);
} cnr_device_class;

CNR_END_C
#endif
