/* Groups: several processes of one job that train, evaluate and sweep together, started by a
 * launcher such as mpirun. */
#ifndef CNNRUN_GROUP_H
#define CNNRUN_GROUP_H

#include <cnnrun/status.h>

CNR_BEGIN_C

/* How a process joins its group. */
typedef struct cnr_group_options {
    uint32_t size;
    /* If *cancel is not 0, the process is asked to end: half a second later, calls that wait for
     * other ranks fail with CNR_E_CANCELLED. NULL: no such request is possible. */
    const volatile int32_t *cancel;
} cnr_group_options;

/* A group of processes, numbered by rank from 0. The plugin owns this constant struct, which stays
 * valid until exit. All ranks must make the same calls in the same order, on one thread at a time.
 * Network errors are CNR_E_IO. */
typedef struct cnr_group {
    uint32_t size;
    const char *name;
    const char *summary;
    /* Returns the number of processes that the launcher started, and this one's rank. It reads only
     * environment variables. 0: no launcher of this group started the process. */
    int32_t (*launched)(int32_t *rank);
    /* Joins the group, once per process, and sets this process' rank and the number of ranks. */
    cnr_status (*open)(const cnr_group_options *options, void **state, int32_t *rank,
                       int32_t *ranks, cnr_error *err);
    /* Begins to sum n numbers over all ranks, in place; dtype is CNR_f32 or CNR_f64. The caller
     * must not touch `data` until sum_wait. Several sums may be in progress. All ranks get bitwise
     * equal results. */
    cnr_status (*sum_begin)(void *state, void *data, int64_t n, int32_t dtype, cnr_error *err);
    /* Waits for the sum that began with this `data`. Returns at once if there is none. */
    cnr_status (*sum_wait)(void *state, void *data, cnr_error *err);
    /* Copies rank 0's bytes to all ranks. */
    cnr_status (*broadcast)(void *state, void *data, uint64_t bytes, cnr_error *err);
    /* Returns when all ranks have called it. */
    cnr_status (*barrier)(void *state, cnr_error *err);
    /* Ends all processes of the job. It returns only if that fails. */
    void (*abort)(void *state, int32_t code);
    /* Leaves the group. All ranks must call it. */
    void (*close)(void *state);
    /* Operators that sum within a graph, so that communication overlaps with computation of other
     * gradients. sum_begin_op takes any number of f32 tensors, multiplies them by its attribute
     * `multiplier` and begins to sum them; its output is f32 [elements of all inputs]. sum_wait_op
     * waits for that value, and copies elements from its attribute `offset` on to a tensor of its
     * attribute `dims`. */
    const char *sum_begin_op, *sum_wait_op;
} cnr_group;

CNR_END_C
#endif
