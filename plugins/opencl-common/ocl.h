/* What OpenCL device plugins share: platforms and devices, memory, streams, programs, launching.
 *
 *   api.c      functions by dlsym        found.c    devices of all platforms, quirks
 *   device.c   open, memory              stream.c   queue, transfers, events
 *   program.c  sources -> kernels        cache.c    binaries on disk
 *   builds.c   programs built at once    chain.c    epilogues as source
 *   launch.c   arguments and launches    batch.c    batches that are one command
 *   probe.c    drivers that crash        facts.c    what `cnnrun devices` tells
 *   half.c     weights, products in halves
 *   support.c  shapes, ranges            op_NAME.c  host side of an operator's kernels
 *
 * A plugin of a vendor adds its description, its scores and its tuning numbers. Each plugin has
 * its own copy of this library, so its devices never meet another's. opencl-documents opens none:
 * its kernels run on the others' devices, where both copies agree (OCL_LAYOUT). */
#ifndef OCL_H
#define OCL_H

#include "api.h"
#include "shapes.h"

#include <cnnrun/kit.h>

#include <pthread.h>

/* A work-group's tile of a product that is staged in local memory: BM channels by BN pixels, BK
 * terms at a time; each work-item has TM x TN sums. 4 divides BM, TM and TN; the number of
 * work-items is a multiple of BN, and BK is a multiple of the quotient. */
typedef struct ocl_tile {
    int16_t bm, bn, bk, tm, tn;
} ocl_tile;

/* A work-item's part of a product in registers: MT channels of NV vectors of VW pixels; `line`
 * work-items a work-group. */
typedef struct ocl_panel {
    int16_t mt, nv, vw, line;
} ocl_panel;

/* Numbers that depend on the hardware, nothing else. */
typedef struct ocl_tune {
    const char *family; /* name of the row, "nvidia" (CNNRUN_OPENCL_TUNE) */
    const char *name;   /* part of the device's name, vendor or platform; "" fits all */
    int32_t line;       /* work-items in a row of a work-group, a multiple of the warp */
    int32_t dense_line; /* work-items of a work-group for dense, whose rows are often short */
    /* scores of the packed kernels by operator and memory; 0: never */
    int32_t conv_buffer, conv_image, dense_buffer, dense_image;
    int32_t wide;          /* elements of a vector that a work-item does at once */
    int32_t rows;          /* 1: a work-item is a loop on a processor, best along rows */
    int32_t fused;         /* 1: its mad() is two operations, its fma() one */
    const ocl_tile *tiles; /* rows, at most OCL_MOST_TILES; each is a kernel */
    int32_t n_tiles;
    const ocl_panel *panels; /* rows, at most OCL_MOST_PANELS; each is a kernel */
    int32_t n_panels;
    int32_t
        winograd;  /* tiles that a work-item transforms at once, 1 or 16; 0: never; wants panels */
    int32_t cache; /* bytes that may lie between two launches; 0: no matter */
    int16_t gemv_line, gemv_wide, gemv_out; /* work-items, elements a load, rows; line 0: never */
} ocl_tune;

enum { OCL_MOST_TILES = 8, OCL_MOST_PANELS = 6 };

/* Known faults of drivers. */
enum {
    OCL_NO_IMAGES = 1 << 0,
    OCL_NO_BINARIES = 1 << 1, /* binaries are not kept on disk */
    OCL_REFUSE = 1 << 2       /* the device is not used at all */
};

/* A device that some platform offers; not opened. */
typedef struct ocl_found {
    cl_platform_id platform;
    cl_device_id device;
    char key[128];
    char name[128], vendor[128], version[128], driver[128], platform_name[128];
    cl_device_type type;
    cl_uint units;
    cl_ulong memory;
    int32_t level;      /* version of OpenCL: 11, 12, 20, 30; 0: unreadable */
    int32_t local_real; /* local memory is memory of its own, not a part of the global one */
    cl_ulong local_bytes;
    uint32_t quirks;
    const char *refused; /* why it can't be used; NULL */
} ocl_found;

/* One kernel of a built program, for one node. Streams keep its arguments from run to run. Lives
 * as long as its device. */
typedef struct ocl_code {
    int32_t id; /* its place in each stream's list of kernels */
    const char *kernel;
    /* Set once the program has been built (ocl_planned). */
    cl_program program;
    size_t most; /* work-items in a work-group */
} ocl_code;

struct ocl_program;
struct ocl_builder;

/* cl_khr_command_buffer, which is provisional, so that headers differ. */
typedef cl_uint ocl_sync_point;
/* Functions of the extension for command buffers. */
typedef struct ocl_buffers {
    void *(CL_API_CALL *create)(cl_uint, const cl_command_queue *, const void *, cl_int *);
    cl_int(CL_API_CALL *launch)(void *, cl_command_queue, const void *, cl_kernel, cl_uint,
                                const size_t *, const size_t *, const size_t *, cl_uint,
                                const ocl_sync_point *, ocl_sync_point *, void *);
    cl_int(CL_API_CALL *finalize)(void *);
    cl_int(CL_API_CALL *enqueue)(cl_uint, cl_command_queue *, void *, cl_uint, const cl_event *,
                                 cl_event *);
    cl_int(CL_API_CALL *release)(void *);
} ocl_buffers;
/* Calls X with member and name of each function of the command buffer extension. */
/* clang-format off */
#define OCL_BUFFER_FUNCTIONS(X) \
    X(create, "clCreateCommandBufferKHR") X(launch, "clCommandNDRangeKernelKHR") \
    X(finalize, "clFinalizeCommandBufferKHR") X(enqueue, "clEnqueueCommandBufferKHR") \
    X(release, "clReleaseCommandBufferKHR")
/* clang-format on */
enum { OCL_COMMAND_BUFFER_QUEUE = 0x12AA }; /* property that queues for command buffers need */

/* An open device: its context, limits, tune and programs; the lock guards programs and builds. */
typedef struct ocl_device {
    uint64_t layout; /* OCL_LAYOUT, for plugins whose kernels run on others' devices */
    const ocl_found *found;
    const cnr_device *device; /* the device as the host knows it */
    const ocl_tune *tune;
    cl_context context;
    cnr_memory_class memory[2];
    int32_t n_memory;
    int unified; /* the device's memory is the host's */
    size_t most_items[3], most_group;
    pthread_mutex_t lock; /* guards the programs; run never takes it */
    pthread_cond_t built; /* signalled when a program is built, or failed */
    struct ocl_program *programs;
    struct ocl_builder *builders; /* threads; NULL until the first program is wanted */
    int32_t n_codes;
    int32_t hits, misses;
    uint32_t frees;      /* number of memory blocks freed so far */
    int32_t half;        /* its arithmetic in halves, as half.c found it; 0: not asked yet */
    ocl_buffers buffers; /* functions for command buffers: all or none */
    int waits;           /* waits after each launch, so that a failure is reported for its launch */
    int lost; /* some work never ended: nothing on the device is waited for or freed any more */
} ocl_device;

/* Copies of this library with the same number have the same layout of a device's and a stream's
 * state. */
#define OCL_LAYOUT \
    ((uint64_t)CNR_ABI_MINOR << 56 | (uint64_t)sizeof(ocl_device) << 36 | \
     (uint64_t)sizeof(ocl_found) << 20 | (uint64_t)sizeof(ocl_tune) << 8 | sizeof(ocl_code))

enum { OCL_BUFFER = 0, OCL_IMAGE = 1 };

extern const cnr_host *ocl_host;

/* ---- found.c ---- */
/* Number of devices, looked for at the first call; negative: an error, with err set. */
int32_t ocl_count(cnr_error *err);
/* Fills *out for the device of that index and returns it, NULL: there is none; all but the score,
 * which is 0 with `why` for what can't be driven. */
const ocl_found *ocl_describe(int32_t index, cnr_device_info *out);
/* Scores the description for a device class: OCL_SCORE_OWN for its family, which the device's name
 * or version tells (NULL: none); for others by whether local memory is what the class is written
 * for.
 * $CNNRUN_OPENCL_CLASS, a class's name, has that class drive all there is. */
typedef enum ocl_local {
    OCL_LOCAL_SHARED, /* a part of the global memory */
    OCL_LOCAL_OWN,
    OCL_NO_OTHERS /* the class is for its family alone */
} ocl_local;
/* Scores a device for a class; refuses it for another plugin's. */
void ocl_score(const ocl_found *f, const char *cls, const char *family, ocl_local local,
               cnr_device_info *out);
enum { OCL_SCORE_OWN = 300, OCL_SCORE_SUITS = 40, OCL_SCORE_DRIVES = 20 };
/* `here` where one of the NULL-terminated `files` exists, which a kernel driver makes; else
 * `elsewhere`. */
int32_t ocl_most(const char *const *files, int32_t here, int32_t elsewhere);
void ocl_forget(void); /* frees the list of devices; called at exit */
/* 1: text contains part, upper and lower case alike. */
int ocl_contains(const char *text, const char *part);

/* ---- device.c ---- */
/* Opens the device with the sizes of the tune that suits it. */
cnr_status ocl_device_open(cnr_device *device, const ocl_tune *tunes, int32_t n_tunes,
                           cnr_error *err);
/* Waits for builds and frees the device's programs, context and state; nothing of a lost device is
 * released. State NULL: nothing. */
void ocl_device_close(cnr_device *device);
/* Allocates a buffer or an image of out's class and size, which ocl_free frees; fails with OpenCL's
 * reason. */
cnr_status ocl_alloc(const cnr_device *device, cnr_mem *out, cnr_error *err);
/* Host memory from which the device copies fast; NULL: there is none. */
void *ocl_host_alloc(const cnr_device *device, uint64_t bytes);
/* Frees host memory from ocl_host_alloc; NULL: nothing. */
void ocl_host_free(const cnr_device *device, void *memory);
/* Frees a buffer or an image of mem, and clears its handle. */
void ocl_free(const cnr_device *device, cnr_mem *mem);
/* Fails with a text such as "clBuildProgram: CL_OUT_OF_RESOURCES"; returns a status that fits the
 * code. */
cnr_status ocl_fail(cnr_error *err, const char *where, const char *call, cl_int code);

/* ---- stream.c: the device class's functions ---- */
/* Opens a stream, that is a command queue, in stream->state; fails on a lost device. */
cnr_status ocl_stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err);
/* Waits for the queue (not of a lost device) and frees the stream's state; state NULL: nothing. */
void ocl_stream_close(cnr_stream *stream);
/* Queues a copy from the host; `from` must last until the stream has done it. */
cnr_status ocl_write(cnr_stream *stream, const cnr_mem *to, uint64_t offset, const void *from,
                     uint64_t bytes, cnr_error *err);
/* Queues a copy to the host; `to` is written once the stream has done it. */
cnr_status ocl_read(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                    uint64_t bytes, cnr_error *err);
/* Queues a copy of the first `bytes` between two buffers, or of a whole image to another; fails
 * past the end of either, and between images and buffers. */
cnr_status ocl_copy(cnr_stream *stream, const cnr_mem *from, const cnr_mem *to, uint64_t bytes,
                    cnr_error *err);
/* Maps a buffer for the host, waiting for it; write: it will be written. NULL: failed, see err. */
void *ocl_map(cnr_stream *stream, const cnr_mem *mem, int32_t write, cnr_error *err);
/* Queues the end of a mapping; address NULL: nothing. */
void ocl_unmap(cnr_stream *stream, const cnr_mem *mem, void *address);
/* Waits for all queued work; fails if it did, or if the device is lost. */
cnr_status ocl_sync(cnr_stream *stream, cnr_error *err);
/* Queues a marker; *event receives it, for ocl_event_free. */
cnr_status ocl_record(cnr_stream *stream, void **event, cnr_error *err);
/* Lets later work of the stream wait for an event. */
cnr_status ocl_wait(cnr_stream *stream, void *event, cnr_error *err);
/* Waits on the host for an event. */
cnr_status ocl_await(const cnr_device *device, void *event, cnr_error *err);
/* Frees an event; NULL: nothing. */
void ocl_event_free(const cnr_device *device, void *event);
/* Nanoseconds between the ends of two events; negative: the driver does not tell. */
int64_t ocl_elapsed(const cnr_device *device, void *from, void *to);
/* Sends queued work to the device, without waiting. */
void ocl_flush(cnr_stream *stream);

/* ---- half.c ---- */
/* True if $CNNRUN_OPENCL_HALF is "emulated": arithmetic in halves is to be emulated. */
int ocl_half_emulated(void);

/* The device's cl_context or cl_device_id, named "context" or "device"; NULL: another name. */
void *ocl_native(const cnr_device *device, const char *name);

/* ---- facts.c ---- */
/* 1: the device has an extension whose name contains `name`. */
int ocl_has_extension(const ocl_found *f, const char *name);
/* Implements cnr_device_class.properties: tells known properties; with a stream it also times the
 * device (arithmetic, bandwidth, launch), which allocates buffers. */
cnr_status ocl_facts(int32_t index, cnr_stream *stream, cnr_property_fn tell, void *arg,
                     cnr_error *err);

#define OCL_CLASS_HOOKS \
    .size = sizeof(cnr_device_class), .family = "opencl", .count = ocl_count, \
    .close = ocl_device_close, .alloc = ocl_alloc, .free = ocl_free, .map = ocl_map, \
    .unmap = ocl_unmap, .host_alloc = ocl_host_alloc, .host_free = ocl_host_free, \
    .write = ocl_write, .read = ocl_read, .copy = ocl_copy, .stream_open = ocl_stream_open, \
    .stream_close = ocl_stream_close, .sync = ocl_sync, .event_record = ocl_record, \
    .event_wait = ocl_wait, .event_sync = ocl_await, .event_free = ocl_event_free, \
    .event_elapsed = ocl_elapsed, .flush = ocl_flush, .properties = ocl_facts, \
    .plan_finish = ocl_planned, .native = ocl_native

/* Defines the function that a plugin exports to register `device_class`, its kernels and its
 * tables. */
#define OCL_PLUGIN(device_class, plugin_name, tunes, n_tunes, text) \
    static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, \
                           cnr_error *err) { \
        (void)err; \
        return ocl_register(host, registrar, &device_class, tunes, n_tunes); \
    } \
    CNR_PLUGIN_ENTRY { \
        static const cnr_plugin plugin = {.size = sizeof plugin, \
                                          .magic = CNR_PLUGIN_MAGIC, \
                                          .abi = CNR_ABI, \
                                          .signature = CNR_SIGNATURE, \
                                          .name = plugin_name, \
                                          .version = "0.1.0", \
                                          .summary = text, \
                                          .licence = "MIT", \
                                          .init = init, \
                                          .fini = ocl_forget, \
                                          .touches = CNR_TOUCHES_DEVICES}; \
        (void)host_abi; \
        return &plugin; \
    }

/* ---- program.c, builds.c, cache.c ---- */

/* A source file of kernels/, embedded; under $CNNRUN_KERNEL_DIR its place is `path`. */
typedef struct ocl_source {
    const char *path; /* place of the text in the sources, such as "common/max_pool.cl" */
    const char *text;
} ocl_source;
/* A source of kernels that is part of the plugin. */
#define OCL_SOURCE(path, symbol) \
    { path, (const char *)symbol##_data }

/* The kernel `name` of the source, built with `options` behind the generated text `head` (NULL:
 * none). Builds once a device, on other threads: ocl_planned waits for them, and says what failed.
 */
cnr_status ocl_code_get(const cnr_device *device, const ocl_source *source, const char *head,
                        const char *options, const char *name, const ocl_code **out,
                        cnr_error *err);
/* Waits for all programs that this thread asked for. */
cnr_status ocl_planned(const cnr_device *device, cnr_error *err);
/* Waits for one program, whichever thread asked for it. */
cnr_status ocl_code_wait(const cnr_device *device, const ocl_code *code, cnr_error *err);
/* Waits for builds, logs how many programs came from the cache, and frees the device's programs. */
void ocl_programs_free(ocl_device *d);

/* Name of a file in the cache of compiled programs. */
typedef struct ocl_key {
    char hex[65];
} ocl_key;
/* The cache's name for a program: a digest of device, driver, text and options. */
ocl_key ocl_cache_key(const ocl_device *d, const char *head, const char *text, const char *options);
/* The binary, of *bytes, by host->alloc; NULL is a miss, and *why says which kind. */
unsigned char *ocl_cache_load(const ocl_device *d, const ocl_key *key, size_t *bytes,
                              const char **why);
/* Failing is no error: the next start builds again. */
void ocl_cache_store(const ocl_device *d, const ocl_key *key, const unsigned char *binary,
                     size_t bytes);

/* ---- launch.c ---- */

/* A launch that is being prepared: arguments in the order of the kernel's parameters. */
typedef struct ocl_call {
    cnr_stream *stream;
    const ocl_code *code;
    struct ocl_slot *slot;
    cl_uint n;
    cl_int error;
} ocl_call;

/* Begins a launch of a kernel: fills *call, with an error in call->error where the kernel could not
 * be made. */
void ocl_begin(ocl_call *call, cnr_stream *stream, const ocl_code *code);
/* Two parameters: the buffer, and where in it, in elements of 4 bytes. */
void ocl_arg_buffer(ocl_call *call, const cnr_mem *mem);
/* Sets the next argument to mem's image. */
void ocl_arg_image(ocl_call *call, const cnr_mem *mem);
/* Sets the next argument to a whole number. */
void ocl_arg_int(ocl_call *call, int64_t value);
/* Sets the next argument to a vector intN of n values. */
void ocl_arg_ints(ocl_call *call, const cl_int *values, int32_t n);
/* as ocl_arg_ints, from n values of 64 bits, at most 16 */
void ocl_arg_longs(ocl_call *call, const int64_t *values, int32_t n);
/* Work-items in each direction, at least; `line` of them in a row of a work-group. */
cnr_status ocl_launch(ocl_call *call, int64_t x, int64_t y, int64_t z, int32_t line,
                      cnr_error *err);

#endif
