/* Groups: several processes of one job that train, judge and sweep together, as a launcher such as
 * mpirun started them. */
#ifndef CNNRUN_GROUP_H
#define CNNRUN_GROUP_H

#include <cnnrun/status.h>

CNR_BEGIN_C

typedef struct cnr_group_options {
    uint32_t size;
    /* Not 0: the process is asked to end. Calls that wait for other ranks then give up half a
     * second later with CNR_E_CANCELLED. NULL: nobody asks. */
    const volatile int32_t *cancel;
} cnr_group_options;

/* A group of processes, numbered by rank from 0 on. Constant, owned by the plugin, valid until
 * exit. All ranks make the same calls in the same order, each on one thread at a time. Errors of
 * the network are CNR_E_IO. */
typedef struct cnr_group {
    uint32_t size;
    const char *name;
    const char *summary;
    /* How many processes a launcher started this one among, and its rank; it reads the environment
     * alone. 0: no launcher of this group did. */
    int32_t (*launched)(int32_t *rank);
    /* Joins the group: rank and ranks as the group has them. Once a process. */
    cnr_status (*open)(const cnr_group_options *options, void **state, int32_t *rank,
                       int32_t *ranks, cnr_error *err);
    /* Begins to sum n numbers of type CNR_f32 or CNR_f64 over all ranks, in place. `data` stays
     * untouched until sum_wait; several sums may be under way. All ranks get the same bits. */
    cnr_status (*sum_begin)(void *state, void *data, int64_t n, int32_t dtype, cnr_error *err);
    /* Waits for the sum that began with this `data`; returns at once where none is under way. */
    cnr_status (*sum_wait)(void *state, void *data, cnr_error *err);
    /* The bytes of rank 0 go to all. */
    cnr_status (*broadcast)(void *state, void *data, uint64_t bytes, cnr_error *err);
    /* Returns when all ranks have called it. */
    cnr_status (*barrier)(void *state, cnr_error *err);
    /* Ends all processes of the job; returns only if that fails. */
    void (*abort)(void *state, int32_t code);
    /* Leaves the group: all ranks call it. */
    void (*close)(void *state);
    /* Operators that sum within a graph, so that gradients travel while others are computed. The
     * first takes any number of f32 tensors, multiplies them by its attribute `multiplier` and
     * begins to sum them; its output is f32 [elements of all inputs]. The second waits for that
     * value and copies the elements from its attribute `offset` on into a tensor of its attribute
     * `dims`. */
    const char *sum_begin_op, *sum_wait_op;
} cnr_group;

CNR_END_C
#endif
