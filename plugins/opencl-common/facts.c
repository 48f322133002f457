/* Properties of an OpenCL device: those that it reports, and measured speeds of arithmetic,
 * memory, transfers and launches. */
#include "ocl.h"

#include "measure.cl.h"

#include <stdio.h>

enum { ROUNDS = 5, LAUNCHES = 500, ITEMS = 1 << 16, CHAINS = 8, GROUP = 64, LOADS = 4 };
#define MOST_BYTES ((uint64_t)128 << 20)

/* A measurement: its stream, two buffers of `bytes`, host memory, and the function that receives
 * results. */
typedef struct measure {
    cnr_stream *stream;
    const cnr_device *device;
    cnr_mem x, y;
    void *host;
    cnr_property_fn tell;
    void *arg;
    uint64_t bytes;
} measure;

/* ---- what is known ---- */

/* A number that a device tells; 0: it does not. */
static double number(const ocl_found *f, cl_device_info what, size_t bytes) {
    union {
        cl_ulong wide;
        cl_uint narrow;
    } v = {.wide = 0};
    if (ocl_cl.clGetDeviceInfo(f->device, what, bytes, &v, NULL) != CL_SUCCESS) return 0;
    return bytes == sizeof(cl_uint) ? (double)v.narrow : (double)v.wide;
}

int ocl_has_extension(const ocl_found *f, const char *name) {
    char text[8192] = "";
    return ocl_cl.clGetDeviceInfo(f->device, CL_DEVICE_EXTENSIONS, sizeof text - 1, text, NULL) ==
               CL_SUCCESS &&
           strstr(text, name) != NULL;
}

/* Tells `tell` the properties that are known without measuring. */
static void tell_known(const ocl_found *f, cnr_property_fn tell, void *arg) {
    const int half = ocl_has_extension(f, "cl_khr_fp16");
    tell(arg, "version", f->version, 0);
    tell(arg, "units", NULL, f->units);
    tell(arg, "max_clock_mhz", NULL, number(f, CL_DEVICE_MAX_CLOCK_FREQUENCY, sizeof(cl_uint)));
    tell(arg, "fp16", NULL, half);
    tell(arg, "fp16_arithmetic",
         half ? "its kernels never ran on real fp16 hardware" : "no (cl_khr_fp16)", 0);
    tell(arg, "images", NULL, number(f, CL_DEVICE_IMAGE_SUPPORT, sizeof(cl_uint)));
    const double cache = number(f, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, sizeof(cl_ulong));
    if (cache > 0) tell(arg, "caches.global", NULL, cache);
    tell(arg, "local_bytes", NULL, (double)f->local_bytes);
    tell(arg, "local_own", NULL, f->local_real);
}

/* ---- what is measured ---- */

static const ocl_source source = OCL_SOURCE("common/measure.cl", measure_cl);

/* 1 if the device is a processor, not a GPU, as the tuning table knows it: only PoCL's row has
 * `rows`, which is then 1. */
static int processor(const measure *m) {
    return ((const ocl_device *)m->device->state)->tune->rows;
}

static const char *options_of(const measure *m) { return processor(m) ? "-DPROCESSOR" : ""; }

/* Seconds of the best of some calls of `work`, which queues; negative: it failed. */
static double least(measure *m, cnr_status (*work)(measure *m, const void *what, cnr_error *err),
                    const void *what, cnr_error *err) {
    double best = -1;
    for (int32_t i = 0; i <= ROUNDS; i++) { /* the first warms up */
        const uint64_t begin = ocl_host->now_ns();
        if (work(m, what, err) || ocl_sync(m->stream, err)) return -1;
        const double took = (double)(ocl_host->now_ns() - begin) / 1e9;
        if (i > 0 && (best < 0 || took < best)) best = took;
    }
    return best;
}

/* A kernel of arithmetic, and how often it repeats. */
typedef struct arithmetic {
    const ocl_code *code;
    int32_t rounds;
} arithmetic;

/* Launches the kernel of multiply-adds. */
static cnr_status do_fma(measure *m, const void *what, cnr_error *err) {
    const arithmetic *a = what;
    const union {
        cl_float f;
        cl_int i;
    } by = {0.5f};
    ocl_call call;
    ocl_begin(&call, m->stream, a->code);
    ocl_arg_buffer(&call, &m->y);
    ocl_arg_int(&call, a->rounds);
    ocl_arg_ints(&call, &by.i, 1);
    ocl_arg_ints(&call, &by.i, 1);
    return ocl_launch(&call, ITEMS, 1, 1, GROUP, err);
}

/* A GPU is through with one in the time that the host takes to hear of it. */
static int32_t passes(const measure *m) { return processor(m) ? 1 : 8; }

/* Launches the kernel that reads or copies memory, `passes` times. */
static cnr_status do_memory(measure *m, const void *what, cnr_error *err) {
    /* a GPU hides what memory takes behind many work-items of a few loads */
    const int64_t items = processor(m) ? ITEMS : cnr_max(ITEMS, (int64_t)(m->bytes / 16 / LOADS));
    for (int32_t i = 0; i < passes(m); i++) {
        ocl_call call;
        ocl_begin(&call, m->stream, what);
        ocl_arg_buffer(&call, &m->x);
        ocl_arg_buffer(&call, &m->y);
        ocl_arg_int(&call, (int64_t)(m->bytes / 16 / ITEMS));
        ocl_arg_int(&call, (int64_t)(m->bytes / 16));
        CNR_TRY(ocl_launch(&call, items, 1, 1, processor(m) ? GROUP : 4 * GROUP, err));
    }
    return CNR_OK;
}

/* Launches empty kernels. */
static cnr_status do_launches(measure *m, const void *what, cnr_error *err) {
    for (int32_t i = 0; i < LAUNCHES; i++) {
        ocl_call call;
        ocl_begin(&call, m->stream, what);
        ocl_arg_buffer(&call, &m->y);
        CNR_TRY(ocl_launch(&call, 1, 1, 1, 1, err));
    }
    return CNR_OK;
}

/* Queues a write of all bytes from host to x. */
static cnr_status do_write(measure *m, const void *what, cnr_error *err) {
    (void)what;
    return ocl_write(m->stream, &m->x, 0, m->host, m->bytes, err);
}

/* Queues a read of all bytes from x to host. */
static cnr_status do_read(measure *m, const void *what, cnr_error *err) {
    (void)what;
    return ocl_read(m->stream, &m->x, 0, m->host, m->bytes, err);
}

/* Measures multiply-adds in f32 and tells "fma_gflops"; fails where the kernel cannot be built or
 * run. */
static cnr_status tell_fma(measure *m, cnr_error *err) {
    arithmetic a = {.rounds = 64};
    cnr_status status =
        ocl_code_get(m->device, &source, NULL, options_of(m), "measure_fma", &a.code, err);
    double took = status ? -1 : least(m, do_fma, &a, err);
    for (; took >= 0 && took < 0.02 && a.rounds < 1 << 20; took = least(m, do_fma, &a, err))
        a.rounds *= took < 0.002 ? 8 : 2;
    if (took > 0)
        m->tell(m->arg, "fma_gflops", NULL,
                2.0 * CHAINS * (processor(m) ? 16 : 4) * a.rounds * ITEMS / took / 1e9);
    return took < 0 && !status ? CNR_E_DEVICE : status;
}

/* Measures `work`, with device code `kernel` (NULL: none), and tells `name` in GB/s; `times`: how
 * often m->bytes pass in a call. */
static cnr_status tell_rate(measure *m, const char *name, const char *kernel,
                            cnr_status (*work)(measure *, const void *, cnr_error *), double times,
                            cnr_error *err) {
    const ocl_code *code = NULL;
    if (kernel) CNR_TRY(ocl_code_get(m->device, &source, NULL, options_of(m), kernel, &code, err));
    const double took = least(m, work, code, err);
    if (took <= 0) return CNR_E_DEVICE;
    m->tell(m->arg, name, NULL, times * (double)m->bytes / took / 1e9);
    return CNR_OK;
}

/* Measures and tells the time of a launch in microseconds. */
static cnr_status tell_launch(measure *m, cnr_error *err) {
    const ocl_code *code;
    CNR_TRY(ocl_code_get(m->device, &source, NULL, options_of(m), "measure_launch", &code, err));
    const double took = least(m, do_launches, code, err);
    if (took <= 0) return CNR_E_DEVICE;
    m->tell(m->arg, "launch_us", NULL, took * 1e6 / LAUNCHES);
    return CNR_OK;
}

/* Tells the width of a wave in work-items, as the driver prefers it. */
static cnr_status tell_wave(measure *m, cnr_error *err) {
    const ocl_device *d = m->device->state;
    const ocl_code *code;
    size_t wave = 0;
    cl_int error;
    CNR_TRY(ocl_code_get(m->device, &source, NULL, options_of(m), "measure_copy", &code, err));
    CNR_TRY(ocl_planned(m->device, err));
    cl_kernel kernel = ocl_cl.clCreateKernel(code->program, code->kernel, &error);
    if (!kernel) return ocl_fail(err, m->device->name, "clCreateKernel", error);
    ocl_cl.clGetKernelWorkGroupInfo(kernel, d->found->device,
                                    CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof wave,
                                    &wave, NULL);
    ocl_cl.clReleaseKernel(kernel);
    m->tell(m->arg, "wave", NULL, (double)wave);
    return CNR_OK;
}

/* Measures and tells all; stops at the first failure. */
static cnr_status measure_all(measure *m, cnr_error *err) {
    CNR_TRY(tell_wave(m, err));
    CNR_TRY(tell_fma(m, err));
    CNR_TRY(tell_rate(m, "read_gbs", "measure_read", do_memory, passes(m), err));
    CNR_TRY(tell_rate(m, "copy_gbs", "measure_copy", do_memory, 2 * passes(m), err));
    CNR_TRY(tell_rate(m, "to_device_gbs", NULL, do_write, 1, err));
    CNR_TRY(tell_rate(m, "from_device_gbs", NULL, do_read, 1, err));
    return tell_launch(m, err);
}

cnr_status ocl_facts(int32_t index, cnr_stream *stream, cnr_property_fn tell, void *arg,
                     cnr_error *err) {
    cnr_device_info unused = {.size = sizeof unused};
    const ocl_found *f = ocl_describe(index, &unused);
    if (!f) return ocl_host->fail(err, CNR_E_NOT_FOUND, "opencl", "the device has gone");
    tell_known(f, tell, arg);
    if (!stream) return CNR_OK;
    const cnr_device *device = stream->device;
    measure m = {.stream = stream, .device = device, .tell = tell, .arg = arg, .bytes = MOST_BYTES};
    while (m.bytes > device->memory[0].max_bytes || m.bytes * 4 > f->memory) m.bytes /= 2;
    m.x.bytes = m.y.bytes = m.bytes;
    m.host = ocl_host->alloc((size_t)m.bytes);
    cnr_status status = m.host ? ocl_alloc(device, &m.x, err) : CNR_E_MEMORY;
    if (!m.host) ocl_host->fail(err, status, device->name, "no memory to measure with");
    else memset(m.host, 0, (size_t)m.bytes);
    if (status == CNR_OK) status = ocl_alloc(device, &m.y, err);
    if (status == CNR_OK) status = measure_all(&m, err);
    if (m.x.handle) ocl_free(device, &m.x);
    if (m.y.handle) ocl_free(device, &m.y);
    ocl_host->free(m.host);
    return status;
}
