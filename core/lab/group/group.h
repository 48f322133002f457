/* group: the processes that this one works together with. There is one group a process at most; the
 * program opens it, and training and evaluation ask for it. Without one all calls are no work:
 * rank 0 of 1. All ranks make the same calls in the same order. */
#ifndef CNRI_GROUP_H
#define CNRI_GROUP_H

#include "host/host.h"

/* Opens the group of that name, or with NULL the first whose launcher started this process. `none`
 * and a group of one process open nothing. cancel: as of cnr_group_options. A second call changes
 * nothing. */
cnr_status cnri_group_open(const char *name, const volatile int32_t *cancel, cnr_error *err);
/* What a launcher says before anything is opened: how many processes; 1: none started this one. */
int32_t cnri_group_launched(int32_t *rank);
const cnr_group *cnri_group_descriptor(void); /* NULL: no group is open */
int32_t cnri_group_rank(void);
int32_t cnri_group_ranks(void);

/* Sums over all ranks, in place, until it is done. */
cnr_status cnri_group_sum(double *data, int64_t n, cnr_error *err);
cnr_status cnri_group_sum_floats(float *data, int64_t n, cnr_error *err);
/* *any: it is so on some rank. */
cnr_status cnri_group_any(bool here, bool *any, cnr_error *err);
/* The bytes of rank 0 go to all. */
cnr_status cnri_group_broadcast(void *data, uint64_t bytes, cnr_error *err);
cnr_status cnri_group_barrier(cnr_error *err);
/* This rank's part of n things: [*begin, *end), as even as can be. */
void cnri_group_part(int64_t n, int64_t *begin, int64_t *end);
/* Ends all processes of the job, if there is a group. */
void cnri_group_abort(int32_t code);
/* Leaves the group; all ranks have ended well. */
void cnri_group_close(void);

#endif
