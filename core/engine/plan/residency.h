/* Prepared weights (blobs) of a plan; inside plan/ only.
 *
 *   blobs.c      which blobs a plan has, and of which constants
 *   pack.c       has kernels prepare them
 *   stays.c      under a memory bound: which stay
 *   residency.c  brings them when they are needed, and drops them */
#ifndef CNRI_RESIDENCY_H
#define CNRI_RESIDENCY_H

#include "plan/planner.h"
#include <stdatomic.h>

/* The prepared weights of one step or of several that share them. */
typedef struct cnri_blob {
    int32_t step, slice; /* the step whose kernel prepares it, and which slice of that */
    int32_t holders;
    atomic_bool resident;
    bool stays, mapped; /* mapped: mem points into the kept blob */
    uint64_t bytes, used;
    cnr_mem mem;
    /* The blob that another process prepared; NULL: none, or it is out of date. */
    const cnri_kept_blob *kept;
} cnri_blob;

/* Prepared weights of a plan and what they may take. */
struct cnri_residency {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    CNRI_VEC(cnri_blob) blobs;
    cnri_kept_blob *kept; /* by blob; NULL without a memo */
    uint64_t clock, room; /* room: of blobs, under a bound */
    cnri_residency_stats stats;
    cnr_value late; /* the late weight of which rows are in `scratch` now; -1: none */
    /* Late_home: the data pointer that the graph's value has otherwise. */
    void *scratch, *late_home;
    uint64_t scratch_bytes;
    /* Under a bound: memory of the last blob that was dropped. */
    uint64_t slot; /* bytes for each blob that does not stay, so that the next takes its memory */
    cnr_mem spare;
    const cnr_device *spare_of; /* NULL: there is none */
};

/* ---- pack.c ---- */
/* Prepares the weights of a blob into its memory `mem`, which the device allocated. */
cnr_status cnri_blob_prepare(cnr_plan *plan, const cnri_blob *b, const cnr_mem *mem,
                             cnr_error *err);
/* Sets s->blob_space to what the kernel's prepared weights take; fails for impossible sizes. */
cnr_status cnri_blob_size(cnr_plan *plan, cnri_step *s, cnr_error *err);
/* Frees the memory in which late weights are computed. */
void cnri_residency_drop_scratch(struct cnri_residency *r);
/* True if some step reads the weight unprepared. */
bool cnri_residency_reads(const cnr_plan *plan, cnr_value v);
/* Releases the pages of weights that were packed into a blob that stays: no one reads them. */
void cnri_blob_release_inputs(const cnr_plan *plan, const cnri_step *s);

/* ---- stays.c ---- */
/* Chooses which weights stay in memory under the bound; without one all do. */
cnr_status cnri_residency_choose(cnr_plan *plan, cnr_error *err);
/* Bytes that are needed beside a blob while it is prepared: pages of the file, and what is computed
 * of them. 0: a stored copy is used. */
uint64_t cnri_blob_making(const cnr_plan *plan, const cnri_blob *b);

#endif
