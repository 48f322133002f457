/* A stream's own part: the queue, and kernels that no other thread sets arguments of. */
#ifndef OCL_STREAM_H
#define OCL_STREAM_H

#include "ocl.h"

enum { OCL_MOST_ARGS = 32, OCL_MOST_ARG = 64 };

typedef struct ocl_arg {
    uint8_t bytes; /* 0: unset */
    uint8_t value[OCL_MOST_ARG];
} ocl_arg;

/* A kernel object, and what its arguments were last set to: most are the same in every run. */
typedef struct ocl_slot {
    cl_kernel kernel;
    uint32_t frees; /* of the device when they were set: a handle may be another memory's since */
    ocl_arg args[OCL_MOST_ARGS];
} ocl_slot;

/* A batch of launches as it was last, and the one command that it became (batch.c). */
typedef struct ocl_batch {
    struct ocl_command *commands;
    int32_t n, room, at;            /* at: of the batch under way, so many are as they were */
    int32_t alike, misses, differs; /* differs 2: what is left of the batch is queued at once */
    int off, under_way;             /* under_way: queued, and nothing waited for since */
    uint32_t frees;                 /* of the device when it began to learn */
    void *buffer;                   /* NULL: it learns */
    cl_int late;                    /* what failed when launches that had waited were queued */
} ocl_batch;

typedef struct ocl_stream {
    cl_command_queue queue;
    int timed;
    int32_t n;
    ocl_slot **slots; /* by ocl_code.id; NULL until first launched */
    ocl_batch batch;
} ocl_stream;

/* This stream's kernel object of `code`; NULL and *error. */
ocl_slot *ocl_stream_slot(cnr_stream *stream, const ocl_code *code, cl_int *error);

/* ---- batch.c ---- */
void ocl_batch_open(ocl_device *d);
/* 1: it waits; 0: to be queued now. */
int ocl_batch_launch(cnr_stream *stream, ocl_slot *slot, const size_t from[3],
                     const size_t global[3], const size_t local[3]);
void ocl_batch_end(cnr_stream *stream); /* before anything else is queued */
void ocl_batch_close(cnr_stream *stream, int lost);

#endif
