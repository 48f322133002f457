/* A batch of launches that is queued again and again becomes one command, where the driver has
 * cl_khr_command_buffer: the host then compares each launch with what was recorded, and queues
 * once.
 *
 *   learns     each launch is queued, and remembered; twice the same batch: it is recorded
 *   recorded   launches wait; at the batch's end, if all are as they were, the one command is queued,
 *              else they are, one by one
 *
 * A batch ends with whatever else the stream is asked for. */
#define _GNU_SOURCE
#include "stream.h"

#include <stdlib.h>

enum { LEAST = 4, MOST = 4096, MOST_MISSES = 8 };

/* A launch of a kernel that waits: offset and numbers of work-items, size of a work-group, and the
 * arguments. */
typedef struct ocl_command {
    ocl_slot *slot;
    size_t from[3], global[3], local[3];
    ocl_arg args[OCL_MOST_ARGS];
} ocl_command;

/* ---- what the driver has ---- */

void ocl_batch_open(ocl_device *d) {
    const cl_platform_id platform = d->found->platform;
    char extensions[8192] = "";
    const char *wish = secure_getenv("CNNRUN_OPENCL_RECORD");
    cl_bitfield wants = 0;
    ocl_buffers b = {0};
    const int all = wish && strcmp(wish, "all") == 0, none = wish && strcmp(wish, "none") == 0;
    /* PoCL 3.1 queues squeezenet's launches in 0.20 ms so, and in 0.14 one by one */
    if (none || (d->found->type & CL_DEVICE_TYPE_CPU && !all)) return;
    if (!ocl_cl.clGetExtensionFunctionAddressForPlatform) return;
    ocl_cl.clGetDeviceInfo(d->found->device, CL_DEVICE_EXTENSIONS, sizeof extensions - 1,
                           extensions, NULL);
    if (!strstr(extensions, "cl_khr_command_buffer")) return;
    ocl_cl.clGetDeviceInfo(d->found->device, OCL_COMMAND_BUFFER_QUEUE, sizeof wants, &wants, NULL);
    if (wants) return; /* of queues that ours are not */
/* loads one function of the extension from the platform; NULL: it lacks it */
#define X(member, name) \
    *(void **)&b.member = ocl_cl.clGetExtensionFunctionAddressForPlatform(platform, name);
    OCL_BUFFER_FUNCTIONS(X)
#undef X
    if (b.create && b.launch && b.finalize && b.enqueue && b.release) d->buffers = b;
}

/* ---- commands ---- */

/* Fills a launch. */
static void fill(ocl_command *c, ocl_slot *slot, const size_t from[3], const size_t global[3],
                 const size_t local[3]) {
    c->slot = slot;
    memcpy(c->from, from, sizeof c->from);
    memcpy(c->global, global, sizeof c->global);
    memcpy(c->local, local, sizeof c->local);
    memcpy(c->args, slot->args, sizeof c->args);
}

/* 1 if the launch c has this slot and these sizes, whatever its arguments. */
static int same(const ocl_command *c, const ocl_slot *slot, const size_t from[3],
                const size_t global[3], const size_t local[3]) {
    return c->slot == slot && memcmp(c->global, global, sizeof c->global) == 0 &&
           memcmp(c->from, from, sizeof c->from) == 0 &&
           memcmp(c->local, local, sizeof c->local) == 0 &&
           memcmp(c->args, slot->args, sizeof c->args) == 0;
}

/* Sets those arguments of the slot's kernel that differ from the last set ones; returns OpenCL's
 * code. */
static cl_int apply(ocl_slot *slot, const ocl_arg *args) {
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < OCL_MOST_ARGS && code == CL_SUCCESS; i++)
        if (args[i].bytes && memcmp(&slot->args[i], &args[i], sizeof args[i]) != 0)
            code = ocl_cl.clSetKernelArg(slot->kernel, i, args[i].bytes, args[i].value);
    memcpy(slot->args, args, sizeof slot->args);
    return code;
}

/* Sets the launch's arguments and queues it; returns OpenCL's code. */
static cl_int queue_one(ocl_stream *s, const ocl_command *c) {
    const cl_int code = apply(c->slot, c->args);
    return code != CL_SUCCESS ? code
                              : ocl_cl.clEnqueueNDRangeKernel(s->queue, c->slot->kernel, 3, c->from,
                                                              c->global, c->local, 0, NULL, NULL);
}

/* Queues the first n launches of the batch. */
static void queue_first(ocl_stream *s, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        const cl_int code = queue_one(s, &s->batch.commands[i]);
        if (s->batch.late == CL_SUCCESS) s->batch.late = code;
    }
}

/* ---- recording ---- */

/* Releases the command buffer and empties the list of recorded launches. */
static void forget(const ocl_device *d, ocl_batch *b) {
    if (b->buffer) d->buffers.release(b->buffer);
    b->buffer = NULL;
    b->n = b->at = b->alike = b->differs = 0;
}

/* Records the launches in a command buffer; NULL: it can't. */
static void *make(const ocl_device *d, ocl_stream *s) {
    cl_int code;
    ocl_sync_point last = 0;
    void *buffer = d->buffers.create(1, &s->queue, NULL, &code);
    for (int32_t i = 0; buffer && i < s->batch.n && code == CL_SUCCESS; i++) {
        const ocl_command *c = &s->batch.commands[i];
        const ocl_sync_point before = last;
        code = apply(c->slot, c->args);
        if (code == CL_SUCCESS)
            code = d->buffers.launch(buffer, NULL, NULL, c->slot->kernel, 3, c->from, c->global,
                                     c->local, i > 0, i > 0 ? &before : NULL, &last, NULL);
    }
    if (buffer && code == CL_SUCCESS) code = d->buffers.finalize(buffer);
    if (buffer && code == CL_SUCCESS) return buffer;
    if (buffer) d->buffers.release(buffer);
    return NULL;
}

/* Compares a launch with the one recorded at its place; the first that differs ends the comparison,
 * and from there on launches are recorded anew. */
static void learn(ocl_stream *s, ocl_slot *slot, const size_t from[3], const size_t global[3],
                  const size_t local[3]) {
    ocl_batch *b = &s->batch;
    if (b->at < b->n && same(&b->commands[b->at], slot, from, global, local)) {
        b->at++;
        return;
    }
    b->differs = 1;
    if (b->at == b->room) {
        const int32_t room = b->room ? 2 * b->room : 16;
        ocl_command *grown =
            room > MOST ? NULL : ocl_host->resize(b->commands, (size_t)room * sizeof *grown);
        b->off = !grown;
        if (!grown) return;
        b->commands = grown;
        b->room = room;
    }
    fill(&b->commands[b->at++], slot, from, global, local);
    b->n = b->at;
}

/* 1: the launch is the next recorded one, and the whole record is sent later; 0: the caller queues
 * it now. Records launches until they repeat. */
int ocl_batch_launch(cnr_stream *stream, ocl_slot *slot, const size_t from[3],
                     const size_t global[3], const size_t local[3]) {
    ocl_stream *s = stream->state;
    ocl_device *d = stream->device->state;
    ocl_batch *b = &s->batch;
    if (b->off || b->differs > 1) return 0;
    const uint32_t frees = __atomic_load_n(&d->frees, __ATOMIC_ACQUIRE);
    if (b->frees != frees && b->at == 0) { /* a handle may be another memory's since */
        forget(d, b);
        b->frees = frees;
    }
    if (!b->buffer) {
        learn(s, slot, from, global, local);
        return 0;
    }
    if (b->at < b->n && !b->under_way && b->frees == frees &&
        same(&b->commands[b->at], slot, from, global, local)) {
        b->at++;
        return 1;
    }
    /* values of the launch itself, as the same kernel may be among those that wait */
    ocl_arg own[OCL_MOST_ARGS];
    memcpy(own, slot->args, sizeof own);
    queue_first(s, b->at);
    if (apply(slot, own) != CL_SUCCESS) b->late = CL_INVALID_KERNEL_ARGS;
    b->at = 0;
    b->differs = 2;
    return 0;
}

/* Ends a run: plays the command buffer, or queues the launches. */
static void end_recorded(const ocl_device *d, ocl_stream *s) {
    ocl_batch *b = &s->batch;
    if (b->at == b->n && b->n > 0 && !b->differs) {
        if (d->buffers.enqueue(0, NULL, b->buffer, 0, NULL, NULL) == CL_SUCCESS) {
            b->under_way = 1;
            return;
        }
        b->off = 1;
    }
    queue_first(s, b->at);
    if ((b->at > 0 || b->differs) && ++b->misses > MOST_MISSES) b->off = 1;
}

/* Ends a sequence of launches: sends those that were recorded, or, where two sequences were alike,
 * makes their record. */
void ocl_batch_end(cnr_stream *stream) {
    ocl_stream *s = stream->state;
    const ocl_device *d = stream->device->state;
    ocl_batch *b = &s->batch;
    if (b->off || (b->at == 0 && !b->differs)) return;
    if (b->buffer) end_recorded(d, s);
    else {
        b->alike = b->differs || b->at != b->n ? 0 : b->alike + 1;
        b->n = b->at;
        if (b->alike >= 1 && b->n >= LEAST) {
            b->buffer = make(d, s);
            b->off = !b->buffer;
            ocl_host->log(CNR_LOG_DEBUG, "opencl",
                          b->off ? "%s: %d launches can't be recorded"
                                 : "%s: %d launches are recorded as one command",
                          stream->device->name, (int)b->n);
        }
    }
    b->at = b->differs = 0;
}

void ocl_batch_close(cnr_stream *stream, int lost) {
    ocl_stream *s = stream->state;
    const ocl_device *d = stream->device->state;
    if (s->batch.buffer && !lost) d->buffers.release(s->batch.buffer);
    ocl_host->free(s->batch.commands);
}
