/* A stream's own part: the queue, and kernels that no other thread sets arguments of. */
#ifndef OCL_STREAM_H
#define OCL_STREAM_H

#include "ocl.h"

enum { OCL_MOST_ARGS = 32, OCL_MOST_ARG = 64 };

/* The last value of a kernel's argument, so that an equal one is not set again. */
typedef struct ocl_arg {
    uint8_t bytes; /* size of the value; 0: the argument was not set */
    uint8_t value[OCL_MOST_ARG];
} ocl_arg;

/* A kernel object, and the values last set as its arguments, most of which are the same in every
 * run. */
typedef struct ocl_slot {
    cl_kernel kernel;
    /* The device's count when they were set: later a handle may belong to other memory. */
    uint32_t frees;
    ocl_arg args[OCL_MOST_ARGS];
} ocl_slot;

/* A batch of launches as it was last, and the one command that it became (batch.c). */
typedef struct ocl_batch {
    struct ocl_command *commands;
    int32_t n, room, at; /* at: number of launches of this batch that equal the recorded ones */
    int32_t alike, misses, differs; /* differs 2: the rest of the batch is queued at once */
    int off, under_way;             /* under_way: queued, and nothing waited for since */
    uint32_t frees;                 /* the device's count when learning began */
    void *buffer; /* the recorded command buffer; NULL: launches are still being recorded */
    cl_int late;  /* error from queueing launches that had waited */
} ocl_batch;

/* What a stream keeps: its queue, kernel objects and the batch not sent yet. */
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
/* Finds out whether and how the driver records batches of launches. */
void ocl_batch_open(ocl_device *d);
/* 1: the launch is the next recorded one, and the whole record is sent later; 0: the caller queues
 * it now. */
int ocl_batch_launch(cnr_stream *stream, ocl_slot *slot, const size_t from[3],
                     const size_t global[3], const size_t local[3]);
/* ends a sequence of launches, sending recorded ones; called before anything else is queued */
void ocl_batch_end(cnr_stream *stream);
/* Ends the open batch; lost: the device does not answer, so its events are left. */
void ocl_batch_close(cnr_stream *stream, int lost);

#endif
