/* Arguments of a kernel, and its launch. */
#include "stream.h"

#include <stdio.h>

void ocl_begin(ocl_call *call, cnr_stream *stream, const ocl_code *code) {
    *call = (ocl_call){.stream = stream, .code = code};
    call->slot = ocl_stream_slot(stream, code, &call->error);
}

/* Sets the launch's next argument to these bytes; a failure is kept in call->error, and later calls
 * do nothing. */
static void set(ocl_call *call, size_t bytes, const void *value) {
    const cl_uint n = call->n++;
    if (call->error != CL_SUCCESS) return;
    if (n >= OCL_MOST_ARGS || bytes > OCL_MOST_ARG) { /* nobody knows what it was last */
        ocl_batch_end(call->stream);
        ((ocl_stream *)call->stream->state)->batch.off = 1;
        call->error = ocl_cl.clSetKernelArg(call->slot->kernel, n, bytes, value);
        return;
    }
    if (call->slot->args[n].bytes == bytes && memcmp(call->slot->args[n].value, value, bytes) == 0)
        return;
    call->error = ocl_cl.clSetKernelArg(call->slot->kernel, n, bytes, value);
    call->slot->args[n].bytes = call->error == CL_SUCCESS ? (uint8_t)bytes : 0;
    memcpy(call->slot->args[n].value, value, bytes);
}

void ocl_arg_image(ocl_call *call, const cnr_mem *mem) {
    const cl_mem handle = mem->handle;
    set(call, sizeof handle, &handle);
}

void ocl_arg_buffer(ocl_call *call, const cnr_mem *mem) {
    ocl_arg_image(call, mem);
    ocl_arg_int(call, (int64_t)(mem->offset / 4));
}

void ocl_arg_int(ocl_call *call, int64_t value) {
    const cl_int v = (cl_int)value;
    set(call, sizeof v, &v);
}

void ocl_arg_ints(ocl_call *call, const cl_int *values, int32_t n) {
    set(call, (size_t)n * sizeof *values, values);
}

void ocl_arg_longs(ocl_call *call, const int64_t *values, int32_t n) {
    cl_int v[16];
    for (int32_t i = 0; i < n && i < 16; i++) v[i] = (cl_int)values[i];
    ocl_arg_ints(call, v, n);
}

/* Most groups along the second and third side of a grid on NVIDIA. */
#define MOST_GROUPS 65535

/* Work-groups of the next piece of a large launch: those left of `all` after `from`, at most
 * MOST_GROUPS. */
static size_t piece(int64_t all, int64_t from) {
    return (size_t)(all - from < MOST_GROUPS ? all - from : MOST_GROUPS);
}

/* Used with CNNRUN_OPENCL_WAIT: waits after each launch, because a kernel that faults breaks the
 * queue, and drivers report it only at the next wait. */
static cnr_status wait_for(const ocl_call *call, const size_t global[3], const size_t local[3],
                           cnr_error *err) {
    const ocl_stream *s = call->stream->state;
    const cl_int code = ocl_cl.clFinish(s->queue);
    char what[160];
    if (code == CL_SUCCESS) return CNR_OK;
    snprintf(what, sizeof what, "clFinish after %zu x %zu x %zu work-items in groups of %zu",
             global[0], global[1], global[2], local[0]);
    return ocl_fail(err, call->code->kernel, what, code);
}

cnr_status ocl_launch(ocl_call *call, int64_t x, int64_t y, int64_t z, int32_t line,
                      cnr_error *err) {
    ocl_stream *s = call->stream->state;
    const ocl_device *d = call->stream->device->state;
    size_t local[3] = {(size_t)line, 1, 1};
    if (call->error != CL_SUCCESS)
        return ocl_fail(err, call->code->kernel, "clSetKernelArg", call->error);
    if (x <= 0 || y <= 0 || z <= 0) return CNR_OK;
    while (local[0] > 1 && (local[0] > call->code->most || local[0] > d->most_items[0]))
        local[0] /= 2;
    const size_t row = ((size_t)x + local[0] - 1) / local[0] * local[0];
    cl_int code = CL_SUCCESS;
    for (int64_t z0 = 0; z0 < z; z0 += MOST_GROUPS)
        for (int64_t y0 = 0; y0 < y && code == CL_SUCCESS; y0 += MOST_GROUPS) {
            const size_t from[3] = {0, (size_t)y0, (size_t)z0};
            const size_t global[3] = {row, piece(y, y0), piece(z, z0)};
            if (ocl_batch_launch(call->stream, call->slot, from, global, local)) continue;
            code = ocl_cl.clEnqueueNDRangeKernel(s->queue, call->slot->kernel, 3, from, global,
                                                 local, 0, NULL, NULL);
            if (d->waits && code == CL_SUCCESS) CNR_TRY(wait_for(call, global, local, err));
        }
    return code == CL_SUCCESS ? CNR_OK
                              : ocl_fail(err, call->code->kernel, "clEnqueueNDRangeKernel", code);
}
