/* group: the processes that this one works together with. A process has at most one group. The
 * program opens it, and training and evaluation use it. Without a group the calls do nothing,
 * and this process is rank 0 of 1. All ranks make the same calls in the same order. */
#ifndef CNRI_GROUP_H
#define CNRI_GROUP_H

#include "host/host.h"

/* Opens the group of that name, or with NULL the first group whose launcher started this
 * process. `none`, and a group of one process, open nothing. cancel: as in cnr_group_options.
 * Further calls change nothing. */
cnr_status cnri_group_open(const char *name, const volatile int32_t *cancel, cnr_error *err);
/* The number of processes that the launcher started, before anything is opened, and this one's
 * rank; 1: no launcher started it. */
int32_t cnri_group_launched(int32_t *rank);
/* The open group's descriptor; NULL: no group is open. */
const cnr_group *cnri_group_descriptor(void);
/* Number of this process in the group, from 0; 0: it is alone. */
int32_t cnri_group_rank(void);
/* Number of processes in the group; 1: it is alone. */
int32_t cnri_group_ranks(void);

/* Sums `data` over all ranks, in place; returns when the sum is complete. */
cnr_status cnri_group_sum(double *data, int64_t n, cnr_error *err);
/* Replaces n floats by their sums over all ranks; every rank must call it. */
cnr_status cnri_group_sum_floats(float *data, int64_t n, cnr_error *err);
/* *any: true if `here` is true on some rank. */
cnr_status cnri_group_any(bool here, bool *any, cnr_error *err);
/* Lets sums advance that were begun within a graph, without waiting for any. */
void cnri_group_poke(void);
/* Copies the bytes of rank 0 to all ranks. */
cnr_status cnri_group_broadcast(void *data, uint64_t bytes, cnr_error *err);
/* Waits until all ranks have called it; with one rank it returns at once. */
cnr_status cnri_group_barrier(cnr_error *err);
/* This rank's part of n things, [*begin, *end); parts differ by at most one. */
void cnri_group_part(int64_t n, int64_t *begin, int64_t *end);
/* Ends all processes of the job at once, if there is a group. */
void cnri_group_abort(int32_t code);
/* Leaves the group after all ranks succeeded: this process is a single rank again. Not joined:
 * nothing. */
void cnri_group_close(void);

#endif
