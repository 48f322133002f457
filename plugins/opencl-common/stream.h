/* A stream's own part: the queue, and kernels that no other thread sets arguments of. */
#ifndef OCL_STREAM_H
#define OCL_STREAM_H

#include "ocl.h"

enum { OCL_MOST_ARGS = 32, OCL_MOST_ARG = 64 };

/* A kernel object, and what its arguments were last set to: most are the same in every run. */
typedef struct ocl_slot {
    cl_kernel kernel;
    uint32_t frees; /* of the device when they were set: a handle may be another memory's since */
    struct {
        uint8_t bytes; /* 0: unset */
        uint8_t value[OCL_MOST_ARG];
    } args[OCL_MOST_ARGS];
} ocl_slot;

typedef struct ocl_stream {
    cl_command_queue queue;
    int timed;
    int32_t n;
    ocl_slot **slots; /* by ocl_code.id; NULL until first launched */
} ocl_stream;

/* This stream's kernel object of `code`; NULL and *error. */
ocl_slot *ocl_stream_slot(cnr_stream *stream, const ocl_code *code, cl_int *error);

#endif
