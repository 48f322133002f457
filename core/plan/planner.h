/* What the planner knows while it works; inside plan/ only.
 *
 *   wish.c    wishes that the graph has             set.c     devices, found and opened
 *   place.c   wish per node -> device(s)          choose.c  kernel, layout and fusion per node
 *   emit.c    steps and homes, copies between     alias.c   views, joins, in-place
 *   lay.c     lifetimes, storages, waits          finish.c  views, kernel states, constants
 *   memo.c    what was decided, for the next process    tuning.c  times of kernels */
#ifndef CNRI_PLANNER_H
#define CNRI_PLANNER_H

#include "core/plan/plan.h"

/* What one kernel on one device answered for (a part of) a node. */
typedef struct cnri_choice {
    int32_t device;
    const cnr_kernel *kernel; /* NULL: the reference */
    uint32_t prepared;
    bool ranges; /* computes the part alone; false: all of it, of which the part is copied */
    bool measured; /* ns is of a clock, not the kernel's estimate */
    bool passes, dense; /* dense: encoded inputs are replaced by their twins */
    int32_t n_chain, score, way; /* way: see cnri_decision */
    double ns;       /* < 0: not known */
    int32_t *layout; /* in_block, in_class (n_in each), out_block, out_class (n_out each) */
    int64_t begin, end; /* of the split axis */
} cnri_choice;

/* A node with the epilogue chain that it takes along. */
typedef struct cnri_pick {
    bool absorbed;   /* computed by an earlier node */
    int32_t n_chain; /* nodes behind this one that are computed with it */
    int32_t *chain;  /* as many as could be */
    int32_t n_in, n_out, n_parts, axis; /* axis -1: not split */
    cnr_value *in;   /* own inputs, then the operands of the chain */
    cnr_node view;
    const cnr_tensor **inputs, **outputs;
    cnr_epilogue *epilogues;
    const cnr_epilogue **epilogue;
    cnri_choice *parts;
} cnri_pick;

/* Which of a home's elements are there already: spans on one axis, or all (axis -1). */
typedef struct cnri_reach {
    int32_t next; /* home of the same value, -1 */
    int32_t axis; /* -1: whole; -2: nothing yet */
    bool hidden;  /* a scratch result; nobody else reads it */
    struct { int64_t begin, end; } *spans;
    int32_t n_spans, room;
} cnri_reach;

typedef struct cnri_planner {
    cnr_plan *plan;
    cnr_graph *graph;
    const cnri_device_set *set; /* in the order of plan->devices */
    const cnri_plan_options *options;
    char key[CNRI_TUNING_KEY]; /* of the node that is being chosen for; "": times do not count */
    const cnri_decision *told; /* by the memo, for the part that is being chosen; NULL */
    bool fuse, alias, layout;
    const cnri_placement **wish; /* by node; NULL none */
    int32_t n_picks, n_offers;
    int32_t *only_user; /* by value: the node that alone uses it; -1 */
    cnri_pick *picks; /* by node */
    struct cnri_offer { int32_t device, block, memory_class; } *offers; /* by value: as produced */
    CNRI_VEC(cnri_reach) reach; /* beside plan->homes */
    int32_t *first_home; /* by value */
    int32_t n_first;
    bool *elided;        /* by step: an alias did it */
} cnri_planner;

static inline bool cnri_is_host(const cnr_device *device) {
    return (device->memory[0].flags & CNR_MEMORY_HOST) != 0;
}
static inline bool cnri_in_host(const cnr_device *device, int32_t memory_class) {
    return (device->memory[memory_class].flags & CNR_MEMORY_HOST) != 0;
}
/* Streams of such a device have finished when a call returns. */
static inline bool cnri_is_async(const cnr_device *device) {
    return CNRI_HAS(device->cls, record);
}
static inline bool cnri_off(const char *const *names, const char *name) {
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0) return true;
    return false;
}
/* A weight: known before anything runs, or changed only between runs. */
static inline bool cnri_is_weight(const cnr_graph *g, cnr_value v) {
    return v >= 0 && g->values.at[v].producer < 0 && !g->values.at[v].is_input;
}
cnr_status cnri_no_memory(cnr_error *err);
const char *cnri_node_name(const cnri_planner *p, int32_t node);

/* place.c */
cnr_status cnri_plan_place(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_host(cnri_planner *p, int32_t *device, cnr_error *err);
/* Devices and ranges of a node's parts; `parts` gets n_parts entries. */
cnr_status cnri_plan_parts(cnri_planner *p, int32_t node, cnri_pick *pick, cnr_error *err);

/* choose.c, view.c */
cnr_status cnri_plan_choose(cnri_planner *p, cnr_error *err);
cnr_status cnri_pick_chain(cnri_planner *p, int32_t node, cnr_error *err);
cnr_status cnri_pick_view(cnri_planner *p, int32_t node, int32_t n_chain, cnr_error *err);
cnr_status cnri_plan_twin(cnri_planner *p, cnr_value encoded, cnr_value *dense, cnr_error *err);
int32_t *cnri_choice_layout(const cnri_choice *c, const cnri_pick *pick, int32_t which);
enum { CNRI_IN_BLOCK, CNRI_IN_CLASS, CNRI_OUT_BLOCK, CNRI_OUT_CLASS };

/* emit.c */
cnr_status cnri_plan_emit(cnri_planner *p, cnr_error *err);
/* homes.c: a home of `value` with the given layout that holds `region` (axis -1: everything),
 * adding the copies and conversions that takes. */
cnr_status cnri_plan_ensure(cnri_planner *p, cnr_value value, int32_t device, int32_t memory_class,
                            int32_t block, cnr_region region, int32_t *home, cnr_error *err);
cnr_status cnri_plan_home(cnri_planner *p, cnr_value value, int32_t device, int32_t memory_class,
                          int32_t block, bool hidden, int32_t *home, cnr_error *err);
cnr_status cnri_plan_copy(cnri_planner *p, int32_t from, int32_t to, cnr_region region,
                          cnr_error *err);
cnr_status cnri_reach_add(cnri_planner *p, int32_t home, cnr_region region, cnr_error *err);
/* Pixels of a tensor in an image class. */
void cnri_image_size(const cnr_tensor *type, int64_t *width, int64_t *height);

/* alias.c, finish.c, lay.c, waits.c */
cnr_status cnri_plan_alias(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_views(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_lay(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_waits(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_constants(cnr_plan *plan, cnr_value only, cnr_error *err);
/* memo.c */
/* What the memo says of a part of a node. CNR_E_VERSION when it says nothing of it. */
cnr_status cnri_memo_tell(cnri_planner *p, int32_t node, int32_t part, const cnri_decision **out,
                          cnr_error *err);
/* CNR_E_VERSION when the choice for the part is not what was told. */
cnr_status cnri_memo_agrees(const cnri_planner *p, int32_t node, const cnri_choice *c,
                            cnr_error *err);
cnr_status cnri_memo_keep(cnri_planner *p, int32_t node, cnr_error *err);
/* tuning.c: sets p->key for the part's device; measures if that is wanted. The view holds the whole
 * chain. */
cnr_status cnri_tuning_begin(cnri_planner *p, int32_t node, int32_t device, cnr_error *err);
bool cnri_kernel_only_forced(const cnr_kernel *k); /* never chosen by itself */
bool cnri_kernel_drives(const cnr_kernel *k, const cnr_device *device);
/* residency.c */
cnr_status cnri_residency_make(cnr_plan *plan, const cnri_memo *memo, cnr_error *err);
void cnri_residency_free(cnr_plan *plan);

/* ---- residency.c ---- */
bool cnri_residency_kept(const cnr_plan *plan, int32_t index); /* the blob is another process's */

#endif
