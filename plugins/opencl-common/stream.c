/* Streams: an in-order queue, transfers, events. */
#define _GNU_SOURCE
#include "stream.h"

#include <unistd.h>

/* The queue, after what waits in the batch was sent: for commands other than launches. */
static cl_command_queue queue_of(cnr_stream *stream) {
    ocl_batch_end(stream);
    return ((ocl_stream *)stream->state)->queue;
}

static int is_lost(const ocl_device *d) { return __atomic_load_n(&d->lost, __ATOMIC_ACQUIRE); }

/* Fails with CNR_E_DEVICE: the device is lost. */
static cnr_status say_lost(const cnr_device *device, cnr_error *err) {
    return ocl_host->fail(err, CNR_E_DEVICE, device->name, "is lost: a kernel on it did not end");
}

cnr_status ocl_stream_open(const cnr_device *device, cnr_stream *stream, cnr_error *err) {
    ocl_device *d = device->state;
    cl_int code;
    if (is_lost(d)) return say_lost(device, err);
    pthread_mutex_lock(&d->lock);
    const int32_t n = d->n_codes; /* plans come before the sessions that run them */
    pthread_mutex_unlock(&d->lock);
    ocl_stream *s = ocl_host->alloc(sizeof *s);
    if (!s) return ocl_host->fail(err, CNR_E_MEMORY, device->name, "no memory for a stream");
    *s = (ocl_stream){.n = n, .slots = ocl_host->alloc((size_t)(n + 1) * sizeof(ocl_slot *))};
    if (!s->slots) {
        ocl_host->free(s);
        return ocl_host->fail(err, CNR_E_MEMORY, device->name, "no memory for a stream");
    }
    memset(s->slots, 0, (size_t)(n + 1) * sizeof(ocl_slot *));
    const int timed =
        stream->size > offsetof(cnr_stream, flags) && stream->flags & CNR_STREAM_TIMED;
    s->timed = timed;
    s->batch.off = timed || !d->buffers.create;
    s->batch.frees = __atomic_load_n(&d->frees, __ATOMIC_ACQUIRE);
    if (timed)
        s->queue = ocl_cl.clCreateCommandQueue(d->context, d->found->device,
                                               CL_QUEUE_PROFILING_ENABLE, &code);
    if (!s->queue) /* few refuse profiling, but some do: then elapsed tells nothing */
        s->queue = ocl_cl.clCreateCommandQueue(d->context, d->found->device, 0, &code);
    if (!s->queue) {
        ocl_host->free(s->slots);
        ocl_host->free(s);
        return ocl_fail(err, device->name, "clCreateCommandQueue", code);
    }
    stream->device = device;
    stream->state = s;
    stream->parallel = NULL;
    return CNR_OK;
}

/* Waits for the queue (not of a lost device) and frees the stream's state; state NULL: nothing. */
void ocl_stream_close(cnr_stream *stream) {
    ocl_stream *s = stream->state;
    const int lost = s && is_lost(stream->device->state);
    if (!s) return;
    if (!lost) ocl_cl.clFinish(queue_of(stream));
    ocl_batch_close(stream, lost);
    for (int32_t i = 0; i < s->n; i++) {
        if (s->slots[i] && !lost) ocl_cl.clReleaseKernel(s->slots[i]->kernel);
        ocl_host->free(s->slots[i]);
    }
    if (!lost) ocl_cl.clReleaseCommandQueue(s->queue);
    ocl_host->free(s->slots);
    ocl_host->free(s);
    stream->state = NULL;
}

/* Makes the slot of a code, with a kernel object, waiting for its program if that is still
 * building. NULL: *error says why. */
static ocl_slot *make_slot(const cnr_device *device, const ocl_code *code, cl_int *error) {
    ocl_slot *slot = ocl_host->alloc(sizeof *slot);
    *error = CL_OUT_OF_HOST_MEMORY;
    if (!slot) return NULL;
    memset(slot, 0, sizeof *slot);
    *error = CL_INVALID_PROGRAM_EXECUTABLE;
    if (code->program || !ocl_code_wait(device, code, NULL))
        slot->kernel = ocl_cl.clCreateKernel(code->program, code->kernel, error);
    if (slot->kernel) return slot;
    ocl_host->free(slot);
    return NULL;
}

ocl_slot *ocl_stream_slot(cnr_stream *stream, const ocl_code *code, cl_int *error) {
    ocl_stream *s = stream->state;
    const ocl_device *d = stream->device->state;
    *error = CL_SUCCESS;
    if (code->id >= s->n) { /* planned after this stream was opened */
        ocl_slot **grown = ocl_host->resize(s->slots, (size_t)(code->id + 1) * sizeof *grown);
        *error = CL_OUT_OF_HOST_MEMORY;
        if (!grown) return NULL;
        memset(grown + s->n, 0, (size_t)(code->id + 1 - s->n) * sizeof *grown);
        s->slots = grown;
        s->n = code->id + 1;
    }
    ocl_slot *slot = s->slots[code->id];
    if (!slot) slot = s->slots[code->id] = make_slot(stream->device, code, error);
    const uint32_t frees = __atomic_load_n(&d->frees, __ATOMIC_ACQUIRE);
    if (slot && slot->frees != frees) {
        memset(slot->args, 0, sizeof slot->args);
        slot->frees = frees;
    }
    return slot;
}

/* ---- transfers; the host's side may be used again after a sync ---- */

/* 1: `bytes` from `offset` lie in mem. */
static int inside(const cnr_mem *mem, uint64_t offset, uint64_t bytes) {
    return offset <= mem->bytes && bytes <= mem->bytes - offset;
}

/* Fails with CNR_E_ARG: a transfer would leave the memory. */
static cnr_status past_the_end(const cnr_stream *stream, cnr_error *err) {
    return ocl_host->fail(err, CNR_E_ARG, stream->device->name, "transfer past the end of memory");
}

/* 1: the transfer is of the whole image, as it must be. */
static int whole_image(const cnr_mem *mem, uint64_t offset, uint64_t bytes) {
    return offset == 0 && bytes == mem->bytes;
}

/* Queues a copy from host memory; `from` must last until the stream has done it. */
cnr_status ocl_write(cnr_stream *stream, const cnr_mem *to, uint64_t offset, const void *from,
                     uint64_t bytes, cnr_error *err) {
    cl_int code;
    if (!inside(to, offset, bytes)) return past_the_end(stream, err);
    if (bytes == 0) return CNR_OK;
    if (to->memory_class == OCL_IMAGE) {
        const size_t origin[3] = {0}, region[3] = {(size_t)to->width, (size_t)to->height, 1};
        if (!whole_image(to, offset, bytes)) return past_the_end(stream, err);
        code = ocl_cl.clEnqueueWriteImage(queue_of(stream), to->handle, CL_FALSE, origin, region, 0,
                                          0, from, 0, NULL, NULL);
    } else {
        code = ocl_cl.clEnqueueWriteBuffer(queue_of(stream), to->handle, CL_FALSE,
                                           (size_t)(to->offset + offset), (size_t)bytes, from, 0,
                                           NULL, NULL);
    }
    return code == CL_SUCCESS ? CNR_OK : ocl_fail(err, stream->device->name, "write", code);
}

/* Queues a copy to host memory; `to` is written once the stream has done it. */
cnr_status ocl_read(cnr_stream *stream, const cnr_mem *from, uint64_t offset, void *to,
                    uint64_t bytes, cnr_error *err) {
    cl_int code;
    if (!inside(from, offset, bytes)) return past_the_end(stream, err);
    if (bytes == 0) return CNR_OK;
    if (from->memory_class == OCL_IMAGE) {
        const size_t origin[3] = {0}, region[3] = {(size_t)from->width, (size_t)from->height, 1};
        if (!whole_image(from, offset, bytes)) return past_the_end(stream, err);
        code = ocl_cl.clEnqueueReadImage(queue_of(stream), from->handle, CL_FALSE, origin, region,
                                         0, 0, to, 0, NULL, NULL);
    } else {
        code = ocl_cl.clEnqueueReadBuffer(queue_of(stream), from->handle, CL_FALSE,
                                          (size_t)(from->offset + offset), (size_t)bytes, to, 0,
                                          NULL, NULL);
    }
    return code == CL_SUCCESS ? CNR_OK : ocl_fail(err, stream->device->name, "read", code);
}

/* Queues a copy of the first `bytes` between two memories of the device. */
cnr_status ocl_copy(cnr_stream *stream, const cnr_mem *from, const cnr_mem *to, uint64_t bytes,
                    cnr_error *err) {
    cl_int code;
    if (!inside(from, 0, bytes) || !inside(to, 0, bytes)) return past_the_end(stream, err);
    if (bytes == 0 || (from->handle == to->handle && from->offset == to->offset)) return CNR_OK;
    if (from->memory_class == OCL_IMAGE && to->memory_class == OCL_IMAGE) {
        const size_t origin[3] = {0}, region[3] = {(size_t)from->width, (size_t)from->height, 1};
        code = ocl_cl.clEnqueueCopyImage(queue_of(stream), from->handle, to->handle, origin, origin,
                                         region, 0, NULL, NULL);
    } else if (from->memory_class == OCL_BUFFER && to->memory_class == OCL_BUFFER) {
        code = ocl_cl.clEnqueueCopyBuffer(queue_of(stream), from->handle, to->handle,
                                          (size_t)from->offset, (size_t)to->offset, (size_t)bytes,
                                          0, NULL, NULL);
    } else {
        return ocl_host->fail(err, CNR_E_UNSUPPORTED, stream->device->name,
                              "no copies between images and buffers");
    }
    return code == CL_SUCCESS ? CNR_OK : ocl_fail(err, stream->device->name, "copy", code);
}

/* Waits for the stream and maps mem into the host's address space; NULL: it cannot be, and err
 * tells why. */
void *ocl_map(cnr_stream *stream, const cnr_mem *mem, int32_t write, cnr_error *err) {
    cl_int code = CL_INVALID_MEM_OBJECT;
    void *at = NULL;
    if (mem->memory_class == OCL_BUFFER && mem->bytes > 0)
        at =
            ocl_cl.clEnqueueMapBuffer(queue_of(stream), mem->handle, CL_TRUE,
                                      CL_MAP_READ | (write ? CL_MAP_WRITE : 0), (size_t)mem->offset,
                                      (size_t)mem->bytes, 0, NULL, NULL, &code);
    if (!at) ocl_fail(err, stream->device->name, "map", code);
    return at;
}

/* Queues the end of a mapping; address NULL: nothing. */
void ocl_unmap(cnr_stream *stream, const cnr_mem *mem, void *address) {
    if (address)
        ocl_cl.clEnqueueUnmapMemObject(queue_of(stream), mem->handle, address, 0, NULL, NULL);
}

/* ---- events, and the end of all ---- */

/* Queues a marker; *out receives its event; returns OpenCL's code. */
static cl_int mark(cnr_stream *stream, cl_event *out) {
    const ocl_device *d = stream->device->state;
    return d->found->level < 12
               ? ocl_cl.clEnqueueMarker(queue_of(stream), out)
               : ocl_cl.clEnqueueMarkerWithWaitList(queue_of(stream), 0, NULL, out);
}

enum { GRACE_US = 2000000, MOST_SLEEP_US = 1000 };

/* Waits like clFinish, which returns only when the device does. Returns early if the device is
 * given up, so that a hanging kernel does not keep this thread. */
static cnr_status finish_or_leave(cnr_stream *stream, cnr_error *err) {
    ocl_device *d = stream->device->state;
    cl_event all;
    cl_int code = mark(stream, &all), state = CL_QUEUED;
    if (code == CL_SUCCESS) code = ocl_cl.clFlush(queue_of(stream));
    for (useconds_t us = 10, left = GRACE_US; code == CL_SUCCESS && left > 0;
         us = us < MOST_SLEEP_US ? 2 * us : us) {
        code = ocl_cl.clGetEventInfo(all, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                                     NULL);
        if (state <= CL_COMPLETE) {
            ocl_cl.clReleaseEvent(all);
            return state == CL_COMPLETE ? CNR_OK
                                        : ocl_fail(err, stream->device->name, "sync", state);
        }
        usleep(us);
        if (cnr_cancelled(stream)) left = left > us ? left - us : 0;
    }
    if (code != CL_SUCCESS) return ocl_fail(err, stream->device->name, "sync", code);
    __atomic_store_n(&d->lost, 1, __ATOMIC_RELEASE);
    return ocl_host->fail(err, CNR_E_CANCELLED, stream->device->name,
                          "what runs there does not end");
}

/* Waits until all that was queued is done; fails where the device is lost. */
cnr_status ocl_sync(cnr_stream *stream, cnr_error *err) {
    ocl_stream *s = stream->state;
    if (is_lost(stream->device->state)) return say_lost(stream->device, err);
    if (s->timed) return finish_or_leave(stream, err);
    cl_int code = ocl_cl.clFinish(queue_of(stream));
    if (code == CL_SUCCESS) code = s->batch.late;
    s->batch.under_way = 0;
    s->batch.late = CL_SUCCESS;
    return code == CL_SUCCESS ? CNR_OK : ocl_fail(err, stream->device->name, "clFinish", code);
}

/* Sends what was queued to the device without a wait. */
void ocl_flush(cnr_stream *stream) { ocl_cl.clFlush(queue_of(stream)); }

/* *event receives an event that is done when all queued so far is. */
cnr_status ocl_record(cnr_stream *stream, void **event, cnr_error *err) {
    cl_event made = NULL;
    const cl_int code = mark(stream, &made);
    *event = made;
    return code == CL_SUCCESS ? CNR_OK : ocl_fail(err, stream->device->name, "record", code);
}

/* Makes the queue wait for event e; returns OpenCL's code. */
static cl_int queue_wait(const ocl_device *d, cl_command_queue queue, cl_event e) {
    if (d->found->level < 12) return ocl_cl.clEnqueueWaitForEvents(queue, 1, &e);
    return ocl_cl.clEnqueueBarrierWithWaitList(queue, 1, &e, NULL);
}

/* Lets later work of the stream wait for an event. An event of another platform or device is
 * another context's: then the host waits. */
cnr_status ocl_wait(cnr_stream *stream, void *event, cnr_error *err) {
    const ocl_device *d = stream->device->state;
    cl_event e = event;
    cl_context context = NULL;
    cl_int code = ocl_cl.clGetEventInfo(e, CL_EVENT_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = context == d->context ? queue_wait(d, queue_of(stream), e)
                                     : ocl_cl.clWaitForEvents(1, &e);
    return code == CL_SUCCESS ? CNR_OK : ocl_fail(err, stream->device->name, "wait", code);
}

/* Waits on the host for the event. */
cnr_status ocl_await(const cnr_device *device, void *event, cnr_error *err) {
    cl_event e = event;
    const cl_int code = ocl_cl.clWaitForEvents(1, &e);
    return code == CL_SUCCESS ? CNR_OK : ocl_fail(err, device->name, "await", code);
}

/* Frees an event; NULL: nothing. */
void ocl_event_free(const cnr_device *device, void *event) {
    (void)device;
    if (event) ocl_cl.clReleaseEvent(event);
}

/* Nanoseconds between the ends of two events; negative: the driver does not tell. */
int64_t ocl_elapsed(const cnr_device *device, void *from, void *to) {
    cl_ulong a = 0, b = 0;
    (void)device;
    if (ocl_cl.clGetEventProfilingInfo(from, CL_PROFILING_COMMAND_END, sizeof a, &a, NULL) ||
        ocl_cl.clGetEventProfilingInfo(to, CL_PROFILING_COMMAND_END, sizeof b, &b, NULL))
        return -1;
    return (int64_t)(b - a);
}
