/* A stream's own part: the queue, and kernels that no other thread sets arguments of. */
#ifndef OCL_STREAM_H
#define OCL_STREAM_H

#include "ocl.h"

typedef struct ocl_stream {
    cl_command_queue queue;
    int32_t n;
    cl_kernel *kernels; /* by ocl_code.id; NULL until first launched */
} ocl_stream;

/* This stream's kernel object of `code`. */
cl_kernel ocl_stream_kernel(cnr_stream *stream, const ocl_code *code, cl_int *error);

#endif
