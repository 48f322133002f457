/* Opening a device: context, limits, memory. */
#define _GNU_SOURCE
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

/* The name of an OpenCL error code; a sentence for NVIDIA's -9999, and "error" for unknown ones. */
static const char *code_name(cl_int code) {
    static const struct {
        cl_int code;
        const char *name;
    } names[] = {
/* a code and its name */
#define X(name) {name, #name},
        X(CL_DEVICE_NOT_FOUND) X(CL_DEVICE_NOT_AVAILABLE) X(CL_COMPILER_NOT_AVAILABLE)
            X(CL_MEM_OBJECT_ALLOCATION_FAILURE) X(CL_OUT_OF_RESOURCES) X(CL_OUT_OF_HOST_MEMORY) X(
                CL_MEM_COPY_OVERLAP) X(CL_IMAGE_FORMAT_NOT_SUPPORTED) X(CL_BUILD_PROGRAM_FAILURE)
                X(CL_MAP_FAILURE) X(CL_INVALID_VALUE) X(CL_INVALID_CONTEXT) X(CL_INVALID_MEM_OBJECT)
                    X(CL_INVALID_IMAGE_SIZE) X(CL_INVALID_BINARY) X(CL_INVALID_BUILD_OPTIONS)
                        X(CL_INVALID_KERNEL_NAME) X(CL_INVALID_KERNEL_DEFINITION)
                            X(CL_INVALID_ARG_INDEX) X(CL_INVALID_ARG_VALUE) X(CL_INVALID_ARG_SIZE)
                                X(CL_INVALID_KERNEL_ARGS) X(CL_INVALID_WORK_GROUP_SIZE)
                                    X(CL_INVALID_WORK_ITEM_SIZE) X(CL_INVALID_GLOBAL_OFFSET)
                                        X(CL_INVALID_COMMAND_QUEUE) X(CL_INVALID_EVENT)
                                            X(CL_INVALID_BUFFER_SIZE) X(CL_INVALID_OPERATION)
                                                X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
#undef X
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == code) return names[i].name;
    return code == -9999 ? "NVIDIA: a kernel accessed memory that is not its own" : "error";
}

cnr_status ocl_fail(cnr_error *err, const char *where, const char *call, cl_int code) {
    const int memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
    return ocl_host->fail(err, memory ? CNR_E_MEMORY : CNR_E_DEVICE, where, "%s: %s (%d)", call,
                          code_name(code), (int)code);
}

/* The row for a device: the first of the family that $CNNRUN_OPENCL_TUNE names, else the first
 * whose name the device's names contain, else the last. */
static const ocl_tune *choose_tune(const ocl_tune *tunes, int32_t n, const ocl_found *f) {
    const char *forced = secure_getenv("CNNRUN_OPENCL_TUNE");
    for (int32_t i = 0; forced && *forced && i < n; i++)
        if (strcmp(forced, tunes[i].family) == 0) return &tunes[i];
    for (int32_t i = 0; i < n - 1; i++)
        if (ocl_contains(f->name, tunes[i].name) || ocl_contains(f->vendor, tunes[i].name) ||
            ocl_contains(f->platform_name, tunes[i].name))
            return &tunes[i];
    return &tunes[n - 1];
}

/* A number that a device tells; 0: it does not. */
static cl_ulong number(const ocl_device *d, cl_device_info what, size_t bytes) {
    union {
        cl_ulong wide;
        cl_uint narrow;
        size_t size;
    } v = {.wide = 0};
    if (ocl_cl.clGetDeviceInfo(d->found->device, what, bytes, &v, NULL) != CL_SUCCESS) return 0;
    return bytes == sizeof(cl_uint) ? v.narrow : bytes == sizeof(size_t) ? v.size : v.wide;
}

/* Kernels count elements of 4 bytes in an int. */
#define MOST_BYTES ((cl_ulong)INT32_MAX * 4 - 63)

/* Fills d's memory classes: buffers, and images where the device has them, with their limits. */
static void describe_memory(ocl_device *d) {
    const cl_device_id id = d->found->device;
    cl_ulong most = number(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong));
    cl_bool images = CL_FALSE, unified = CL_FALSE;
    if (most > MOST_BYTES) most = MOST_BYTES;
    ocl_cl.clGetDeviceInfo(id, CL_DEVICE_IMAGE_SUPPORT, sizeof images, &images, NULL);
    ocl_cl.clGetDeviceInfo(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof unified, &unified, NULL);
    d->unified = unified != CL_FALSE;
    /* Parts are a buffer and an offset that kernels add: sub-buffers would have to begin at
     * multiples of CL_DEVICE_MEM_BASE_ADDR_ALIGN. 64 bytes are a line of every cache we met. */
    d->memory[OCL_BUFFER] = (cnr_memory_class){.name = "buffer",
                                               .flags = CNR_MEMORY_PARTS,
                                               .alignment = 64,
                                               .max_bytes = most};
    d->n_memory = 1;
    const int made =
        d->found->level < 12 ? ocl_cl.clCreateImage2D != NULL : ocl_cl.clCreateImage != NULL;
    if (!images || !made || (d->found->quirks & OCL_NO_IMAGES)) return;
    d->memory[OCL_IMAGE] =
        (cnr_memory_class){.name = "image2d",
                           .flags = CNR_MEMORY_IMAGE,
                           .alignment = 16,
                           .max_bytes = most,
                           .max_width =
                               (int64_t)number(d, CL_DEVICE_IMAGE2D_MAX_WIDTH, sizeof(size_t)),
                           .max_height =
                               (int64_t)number(d, CL_DEVICE_IMAGE2D_MAX_HEIGHT, sizeof(size_t))};
    d->n_memory = 2;
}

cnr_status ocl_device_open(cnr_device *device, const ocl_tune *tunes, int32_t n_tunes,
                           cnr_error *err) {
    cnr_device_info unused = {.size = sizeof unused};
    const ocl_found *found = ocl_describe(device->index, &unused);
    if (!found) return ocl_host->fail(err, CNR_E_NOT_FOUND, "opencl", "the device has gone");
    ocl_device *d = ocl_host->alloc(sizeof *d);
    if (!d) return ocl_host->fail(err, CNR_E_MEMORY, device->name, "no memory for the device");
    memset(d, 0, sizeof *d);
    d->layout = OCL_LAYOUT;
    d->found = found;
    d->device = device;
    d->tune = choose_tune(tunes, n_tunes, found);
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                                (cl_context_properties)found->platform, 0};
    cl_int code;
    d->context = ocl_cl.clCreateContext(properties, 1, &found->device, NULL, NULL, &code);
    if (!d->context) {
        ocl_host->free(d);
        return ocl_fail(err, device->name, "clCreateContext", code);
    }
    ocl_cl.clGetDeviceInfo(found->device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof d->most_items,
                           d->most_items, NULL);
    d->most_group = number(d, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->built, NULL);
    describe_memory(d);
    const char *wait = secure_getenv("CNNRUN_OPENCL_WAIT");
    d->waits = wait && *wait && strcmp(wait, "0") != 0;
    if (!d->waits) ocl_batch_open(d);
    device->state = d;
    device->memory = d->memory;
    device->n_memory = d->n_memory;
    device->concurrency = 1; /* the queue's own affair */
    return CNR_OK;
}

/* Waits for builds and frees the device's programs, context and state; nothing of a lost device is
 * released. State NULL: nothing. */
void ocl_device_close(cnr_device *device) {
    ocl_device *d = device->state;
    if (!d) return;
    device->state = NULL;
    if (d->lost) return; /* with all that may still be in use */
    ocl_programs_free(d);
    ocl_cl.clReleaseContext(d->context);
    pthread_cond_destroy(&d->built);
    pthread_mutex_destroy(&d->lock);
    ocl_host->free(d);
}

/* Creates an image as wide and high as mem says; mem->bytes tells whether a pixel is one float,
 * four halves or four floats. *code receives OpenCL's code. NULL: failed. */
static cl_mem make_image(const ocl_device *d, const cnr_mem *mem, cl_int *code) {
    const uint64_t pixels = (uint64_t)mem->width * (uint64_t)mem->height;
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D,
                                .image_width = (size_t)mem->width,
                                .image_height = (size_t)mem->height};
    cl_image_format format = {CL_RGBA, CL_FLOAT};
    *code = CL_INVALID_IMAGE_SIZE;
    if (mem->width < 1 || mem->height < 1) return NULL;
    if (mem->bytes == pixels * 4) format.image_channel_order = CL_R;
    else if (mem->bytes == pixels * 8) format.image_channel_data_type = CL_HALF_FLOAT;
    else if (mem->bytes != pixels * 16) return NULL;
    if (d->found->level < 12)
        return ocl_cl.clCreateImage2D(d->context, CL_MEM_READ_WRITE, &format, desc.image_width,
                                      desc.image_height, 0, NULL, code);
    return ocl_cl.clCreateImage(d->context, CL_MEM_READ_WRITE, &format, &desc, NULL, code);
}

cnr_status ocl_alloc(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    const ocl_device *d = device->state;
    cl_int code = CL_SUCCESS;
    const cl_mem_flags flags = CL_MEM_READ_WRITE | (d->unified ? CL_MEM_ALLOC_HOST_PTR : 0);
    out->offset = 0;
    if (out->memory_class < 0 || out->memory_class >= d->n_memory)
        return ocl_host->fail(err, CNR_E_ARG, device->name, "no such memory class");
    if (out->bytes > d->memory[out->memory_class].max_bytes)
        return ocl_host->fail(err, CNR_E_LIMIT, device->name,
                              "%llu bytes wanted; one allocation holds at most %llu",
                              (unsigned long long)out->bytes,
                              (unsigned long long)d->memory[out->memory_class].max_bytes);
    if (out->memory_class == OCL_IMAGE) out->handle = make_image(d, out, &code);
    else /* whole 4-byte elements */
        out->handle =
            ocl_cl.clCreateBuffer(d->context, flags,
                                  (size_t)(out->bytes ? (out->bytes + 3) / 4 * 4 : 4), NULL, &code);
    if (out->handle) return CNR_OK;
    return ocl_fail(err, device->name,
                    out->memory_class == OCL_IMAGE ? "clCreateImage" : "clCreateBuffer", code);
}

void ocl_free(const cnr_device *device, cnr_mem *mem) {
    ocl_device *d = device->state;
    if (mem->handle && !d->lost) ocl_cl.clReleaseMemObject(mem->handle);
    __atomic_fetch_add(&d->frees, 1, __ATOMIC_RELEASE);
    mem->handle = NULL;
}

/* ---- host memory that drivers transfer without a copy of their own ---- */

/* A mapped buffer that drivers are asked to put into the host's memory. What it belongs to stands
 * before what the caller gets. */
enum { OWNER_BYTES = 64 };

/* True if page-locked host memory makes transfers faster; a unified GPU reads ordinary memory as
 * fast. */
static int helps(const ocl_device *d) {
    return !(d->unified && d->found->type & CL_DEVICE_TYPE_GPU);
}

void *ocl_host_alloc(const cnr_device *device, uint64_t bytes) {
    ocl_device *d = device->state;
    void *at = NULL;
    if (!helps(d) || d->lost || bytes > d->memory[OCL_BUFFER].max_bytes - OWNER_BYTES) return NULL;
    cl_int code;
    cl_mem buffer = ocl_cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                          (size_t)(bytes + OWNER_BYTES), NULL, &code);
    cl_command_queue queue = ocl_cl.clCreateCommandQueue(d->context, d->found->device, 0, &code);
    if (buffer && queue)
        at = ocl_cl.clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                       (size_t)(bytes + OWNER_BYTES), 0, NULL, NULL, &code);
    if (queue) ocl_cl.clReleaseCommandQueue(queue);
    if (!at) {
        if (buffer) ocl_cl.clReleaseMemObject(buffer);
        return NULL;
    }
    memcpy(at, &buffer, sizeof buffer);
    return (char *)at + OWNER_BYTES;
}

void ocl_host_free(const cnr_device *device, void *memory) {
    ocl_device *d = device->state;
    cl_mem buffer;
    if (!memory || d->lost) return;
    void *at = (char *)memory - OWNER_BYTES;
    memcpy(&buffer, at, sizeof buffer);
    cl_int code;
    cl_command_queue queue = ocl_cl.clCreateCommandQueue(d->context, d->found->device, 0, &code);
    if (queue) {
        ocl_cl.clEnqueueUnmapMemObject(queue, buffer, at, 0, NULL, NULL);
        ocl_cl.clFinish(queue);
        ocl_cl.clReleaseCommandQueue(queue);
    }
    ocl_cl.clReleaseMemObject(buffer);
}

void *ocl_native(const cnr_device *device, const char *name) {
    const ocl_device *d = device->state;
    if (strcmp(name, "context") == 0) return d->context;
    return strcmp(name, "device") == 0 ? d->found->device : NULL;
}
