/* What the planner knows while it works; inside plan/, and of policy/ of lab. What is chosen, by
 * whom, and how that is carried out are three things:
 *
 *   set.c     devices, found and opened               wish.c    wishes that the graph has
 *   place.c   wish per node -> device(s)              view.c    a node with what may follow it
 *
 *   candidates.c  rows: kernels that take a node      tuning.c  times and joules on record
 *   rules.c       which row is taken, by which rule   memo.c    what another process took
 *   choose.c      node by node: makes rows, applies rules, keeps what was taken
 *
 *   region.c  nodes that a device computes in one step
 *
 *   emit.c    steps and homes, copies between         alias.c   views, joins, in-place
 *   lay.c     lifetimes, storages, waits              finish.c  views, kernel states, constants */
#ifndef CNRI_PLANNER_H
#define CNRI_PLANNER_H

#include "plan/plan.h"

/* ---- raw.c ---- */
/* Under a memory bound: fills plan->raw, and says which steps run piece by piece. */
cnr_status cnri_raw_find(cnr_plan *plan, cnr_error *err);

/* A node with the operators behind it that kernels could compute as its epilogue. Made once, and
 * only read then: whatever number of them is taken, its inputs and epilogues are the first of
 * these. */
typedef struct cnri_chain {
    int32_t node, n;
    int32_t *at; /* indices of the n operators that follow the node */
    /* Number of inputs if the kernel computes the first k operators, for k = 0 .. n: the node's
     * own, then operands. */
    int32_t *n_in;
    /* dense_in: the same with dense twins of encoded values, once cnri_chain_decode made them. */
    cnr_value *in, *dense_in;
    const cnr_tensor **inputs, **dense_inputs;
    cnr_epilogue *epilogues;
    const cnr_epilogue **epilogue;
    bool decoded;
    /* The chain is of this region, which owns its memory; kernels compute all of it or nothing. */
    const cnr_node *region;
    const cnr_value *out; /* outputs of the region */
} cnri_chain;

/* A node as a kernel sees it, with `n_chain` operators of its chain; lives as long as the chain. */
typedef struct cnri_view {
    int32_t n_chain, n_in, n_out;
    const cnr_value *in, *out; /* out: outputs of the last operator */
    cnr_node node;
} cnri_view;

/* A candidate (row): a kernel, or the reference, that computes a node or its part on one device. */
typedef struct cnri_candidate {
    int32_t device;
    const cnr_kernel *kernel;  /* NULL: the operator's reference */
    uint32_t prepared, splits; /* splits: bits of the axes on which it can compute ranges */
    int32_t prepared_from;     /* see cnri_prepares */
    /* True: it computes only the part; false: it computes all, and the part is copied out. */
    bool ranges;
    bool extrapolated;           /* the kernel says that its time is extrapolated */
    bool passes, dense;          /* dense: it reads the dense twins of encoded inputs */
    int32_t n_chain, score, way; /* way: see cnri_decision; score 0: the reference */
    cnri_cost cost;  /* of all nodes that it computes; cost.from CNRI_GUESSED: ns is not known */
    double guess_ns; /* used if ns is not known: guessed from arithmetic and bytes alone */
    /* Ns of layout conversions before it, and of memory passes for chain operators left. */
    double around_ns;
    int32_t n_in, n_out;
    int32_t *layout;    /* in_block, in_class (n_in each), then out_block, out_class (n_out each) */
    int64_t begin, end; /* the part's range on the split axis */
    const char *by;     /* name of the rule that picked it; NULL: none */
} cnri_candidate;
enum { CNRI_IN_BLOCK, CNRI_IN_CLASS, CNRI_OUT_BLOCK, CNRI_OUT_CLASS };
/* One of a candidate's lists of layouts (CNRI_IN_BLOCK ...), inside c->layout: a number for each
 * input or output. */
static inline int32_t *cnri_layout(const cnri_candidate *c, int32_t which) {
    const int32_t at[] = {0, c->n_in, 2 * c->n_in, 2 * c->n_in + c->n_out};
    return c->layout + at[which];
}

/* Name of a candidate's kernel, or that of the reference. */
static inline const char *cnri_candidate_name(const cnri_candidate *c) {
    return c->kernel ? c->kernel->name : cnri_reference_name;
}

/* The rows of one node on one device. The memory is reused for the next node. */
typedef struct cnri_rows {
    cnri_candidate *at;
    int32_t n, capacity;
    int32_t *layouts;
    size_t width; /* integers of each row's layout */
    const char
        *refusal; /* why the last kernel refused the node; NULL: it did not, or did not say */
    bool named;   /* the device has a kernel of the forced name, even if it refused the node */
} cnri_rows;

/* The question that rules answer: which row computes a node (or its part) on a device. */
typedef struct cnri_kernel_query {
    /* axis -1: not split; cap: most operators of the chain that may be computed with the node. */
    int32_t node, device, axis, cap;
    const cnri_decision *stored_choice; /* what a stored plan chose; NULL: none */
    const char *forced_name;            /* name of the kernel that the options force; NULL: none */
    bool forced_here;                   /* the options name this node, not just its operator */
    const cnri_candidate *policy_row;   /* the row that the policy picked; NULL: none */
    bool dynamic;                       /* the size of some input is known only at run time */
    bool ignores_times;                 /* the plan is deterministic, so times do not count */
    uint32_t stores;                    /* as in the options */
    bool unmeasured; /* recorded times count, but nothing is timed for this query */
} cnri_kernel_query;
/* A way to choose a row. It is a pure function: the same rows give the same answer. */
typedef struct cnri_rule {
    const char *name;                            /* for people: "record" */
    bool (*applies)(const cnri_kernel_query *q); /* true if this rule decides the query */
    /* True if a row of kernel k is to be made. */
    bool (*wants)(const cnri_kernel_query *q, const cnr_kernel *k);
    /* Index of the row; -1: none. */
    int32_t (*pick)(const cnri_kernel_query *q, const cnri_rows *rows);
} cnri_rule;

/* The decision for one node. */
typedef struct cnri_pick {
    /* The node that it is computed together with; -1: it has a kernel of its own. */
    int32_t absorbed_by;
    int32_t n_parts, axis; /* axis -1: not split */
    cnri_chain chain;
    cnri_view view; /* with the operators that its kernel computes */
    cnri_candidate *parts;
    int32_t *layouts; /* layouts of all parts */
} cnri_pick;

/* The elements that a home holds so far: spans on one axis, or all of them (axis -1). */
typedef struct cnri_reach {
    int32_t next; /* next home of the same value; -1: none */
    int32_t axis; /* -1: it holds everything; -2: nothing yet */
    bool hidden;  /* a scratch result that nothing else reads */
    struct {
        int64_t begin, end;
    } * spans;
    int32_t n_spans, capacity;
} cnri_reach;

/* The layout in which a value is available: device, channel block, memory class. */
typedef struct cnri_offer {
    int32_t device, block, memory_class;
} cnri_offer;

/* All that is known while a plan is made. */
typedef struct cnri_planner {
    cnr_plan *plan;
    cnr_graph *graph;
    const cnri_device_set *set; /* in the order of plan->devices */
    const cnri_plan_options *options;
    int32_t n_given; /* number of values of the net, before rewrites add others */
    /* Under a memory bound: rows that do not fit in slices are left out (as are those that do not
     * fit whole; all but the smallest). */
    enum { CNRI_FITS_SLICED, CNRI_FITS_WHOLE, CNRI_IS_SMALLEST } left;
    int32_t slice_share; /* largest slice, in sixteenths of the room beside values */
    bool fuse, alias, layout, in_place, share; /* false: that step of planning is left out */
    const cnri_placement **wish;               /* placement by node; NULL: none */
    int32_t n_picks, n_offers;
    int32_t *only_user; /* by value: the only node that reads it; -1: several or none do */
    cnri_pick *picks;   /* by node */
    /* By node: the row that the policy picked; NULL: none, or there is no policy. */
    const cnri_candidate **answers;
    cnri_offer *offers; /* by value: the layout that it was produced in */
    cnri_rows rows;
    CNRI_VEC(cnri_reach) reach; /* parallel to plan->homes */
    int32_t *first_home;        /* by value: its first home */
    int32_t n_first;
    bool *elided; /* by step: an alias made it unnecessary */
} cnri_planner;

/* True if the device's first memory class is host memory. */
static inline bool cnri_is_host(const cnr_device *device) {
    return (device->memory[0].flags & CNR_MEMORY_HOST) != 0;
}
/* True if that memory class of the device is host memory. */
static inline bool cnri_in_host(const cnr_device *device, int32_t memory_class) {
    return (device->memory[memory_class].flags & CNR_MEMORY_HOST) != 0;
}
/* True if streams of the device are asynchronous: a call may return before its work is done. */
static inline bool cnri_is_async(const cnr_device *device) {
    return CNRI_HAS(device->cls, event_record);
}
/* Bytes of a tensor as stored: encoded ones as they are; 0: NULL. */
static inline uint64_t cnri_stored_bytes(const cnr_tensor *t) {
    return !t ? 0 : t->encoding ? t->bytes : cnr_dense_bytes(t);
}
/* Guess of the nanoseconds to convert the layout of one byte: about 10 GB/s read and written, a
 * tenth of that if the data must pass through the host. */
static inline double cnri_conversion_rate(bool host) { return host ? 0.2 : 2.0; }
/* True for a weight: its data is known before anything runs, and changes only between runs. */
static inline bool cnri_is_weight(const cnr_graph *g, cnr_value v) {
    return v >= 0 && g->values.at[v].producer < 0 && !g->values.at[v].is_input;
}
/* Fills err: out of memory while planning. */
static inline cnr_status cnri_no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "plan", "out of memory while planning");
}

/* Name of a node; "" if it has none. */
static inline const char *cnri_node_name(const cnri_planner *p, int32_t node) {
    const char *name = p->graph->nodes.at[node]->name;
    return name ? name : "";
}

/* Gives each node its device: the wish, the policy's answer, or the usual one. */
cnr_status cnri_plan_place(cnri_planner *p, cnr_error *err);
/* Index of the host device; fails if there is none. */
cnr_status cnri_plan_host(cnri_planner *p, int32_t *device, cnr_error *err);
/* Bit i is set if a node can be split into parts along axis i of output 0; 0: it can't be split. */
uint32_t cnri_split_axes(const cnri_planner *p, int32_t node);
/* The most parts that the node can be split into along that axis; below 2: it can't be split. */
int64_t cnri_split_pieces(const cnri_planner *p, int32_t node, int32_t axis);
/* Sets the devices and ranges of a node's parts; allocates pick->parts with n_parts entries. */
cnr_status cnri_plan_parts(cnri_planner *p, int32_t node, cnri_pick *pick, cnr_error *err);

/* region.c: a region is a set of connected nodes that one step on a device computes. Its chain
 * is its first node with the others behind it. */
typedef struct cnri_region {
    int32_t device;
    cnri_chain chain;
    cnri_candidate row;       /* row of the kernel that computes it */
    const char *rule, *taken; /* names of the rules that take it by default, and now; NULL: none */
    struct cnri_part_of_graph *parts;
    cnr_node node;
} cnri_region;
/* The regions that devices claimed. */
struct cnri_regions {
    CNRI_VEC(cnri_region) at;
};
/* asks the devices for regions and keeps valid claims in the plan */
cnr_status cnri_regions_find(cnri_planner *p, cnr_error *err);
/* Call after nodes were chosen one by one. Takes the regions that are worth it; true if there
 * are any, so that all nodes must be chosen again. */
bool cnri_regions_take(cnri_planner *p);
/* Takes the regions that the stored plan took. */
cnr_status cnri_regions_follow_memo(cnri_planner *p, cnr_error *err);
void cnri_regions_reset(cnri_planner *p); /* takes the regions that rules chose again */
/* The region that a candidate belongs to; NULL: none. */
const cnri_region *cnri_region_of(const cnri_planner *p, const cnri_candidate *c);
/* The taken region that begins with the node; NULL: none. */
const cnri_region *cnri_region_at(const cnri_planner *p, int32_t node);
/* Frees all regions and the list; NULL: nothing. */
void cnri_regions_free(struct cnri_regions *regions);

/* *out receives the operators that follow the node and may be computed with it. */
cnr_status cnri_chain_make(cnri_planner *p, int32_t node, cnri_chain *out, cnr_error *err);
void cnri_chain_free(cnri_chain *chain); /* frees the chain's lists; it becomes empty */
/* The node with the first n_chain nodes of its chain, as a kernel sees it. dense: with decoded
 * weights, which cnri_chain_decode must have made before. A region is given whole, as stored. */
cnri_view cnri_view_of(const cnri_planner *p, const cnri_chain *chain, int32_t n_chain, bool dense);
/* Makes the dense twins of the chain's encoded inputs, decoded weights in the graph, unless they
 * are there. */
cnr_status cnri_chain_decode(cnri_planner *p, cnri_chain *chain, cnr_error *err);
/* *dense: the value that holds an encoded weight decoded, which is added at the first call. */
cnr_status cnri_plan_twin(cnri_planner *p, cnr_value encoded, cnr_value *dense, cnr_error *err);
/* Like cnri_plan_twin, but with the data decoded, which every hook except `accepts` needs. */
cnr_status cnri_plan_twin_read(cnri_planner *p, cnr_value encoded, cnr_value *dense,
                               cnr_error *err);

/* candidates.c: makes the rows p->rows. `key`: the node's key in the record; "": no times count. */
cnr_status cnri_candidates_make(cnri_planner *p, cnri_chain *chain, const cnri_kernel_query *q,
                                const cnri_rule *rule, const char *key, cnr_error *err);
void cnri_rows_free(cnri_rows *rows); /* frees the rows; the list becomes empty */
/* *bytes that the view's nodes read and write, and their *flops, where `own` is the first node;
 * as_stored: for an encoded weight only the stored part of these counts. */
void cnri_count_work(const cnri_view *v, const cnr_node *own, bool as_stored, uint64_t *bytes,
                     uint64_t *flops);
/* Estimated ns from the bytes moved, the operations and the kernel's score (0: the reference) */
double cnri_guess_ns(const cnr_device *d, int32_t score, uint64_t bytes, uint64_t flops);
/* The query for a node, for all devices; axis: that on which it is split, negative: not. */
cnri_kernel_query cnri_query_of(const cnri_planner *p, int32_t node, int32_t axis);
/* Sets the device of a query, and the kernel forced there. */
void cnri_query_set_device(const cnri_planner *p, cnri_kernel_query *q, int32_t device);
/* The first rule that applies to a query; the last one always does. */
const cnri_rule *cnri_rule_for(const cnri_kernel_query *q);
/* Index of the row that is picked; -1: none. *rule becomes the next rule if the first leaves the
 * choice to it. */
int32_t cnri_rule_pick(const cnri_rule **rule, const cnri_kernel_query *q, const cnri_rows *rows);

/* What a library above the engine adds (policy/ of lab): the table of all candidates, and the
 * policies that pick from it. Registered once; later calls have no effect. */
typedef struct cnri_chooser {
    cnr_status (*make)(cnri_planner *p, cnr_error *err); /* stores the table in the plan */
    /* Asks the policy if `asks`, plans by its answer, and marks the rows that the plan uses. */
    cnr_status (*choose)(cnri_planner *p, bool asks, cnr_error *err);
    cnr_status (*links)(cnri_planner *p, cnr_error *err); /* fills the plan's links */
    void (*free)(struct cnri_table *table);
} cnri_chooser;
/* sets how plans are chosen; `own` is kept, not copied */
void cnri_chooser_register(const cnri_chooser *chooser);
void cnri_plan_unplace(cnr_plan *plan); /* forgets the placements of the policy */

/* choose.c: cnri_plan_choose may be called again after cnri_choices_drop */
void cnri_choices_drop(cnri_planner *p);
/* Chooses a kernel for each node of the graph into p->picks, with devices, layouts and splits. */
cnr_status cnri_plan_choose(cnri_planner *p, cnr_error *err);

/* Makes the plan's steps: kernels, copies and changes of layout. */
cnr_status cnri_plan_emit(cnri_planner *p, cnr_error *err);
/* homes.c: finds or makes a home of `value` with the given layout that holds `region` (axis -1:
 * everything), and adds the copies and conversions that this needs. */
cnr_status cnri_plan_ensure(cnri_planner *p, cnr_value value, int32_t device, int32_t memory_class,
                            int32_t block, cnr_input_range region, int32_t *home, cnr_error *err);
/* Adds a home for a value: a place in a device's memory class with a layout; hidden: nothing else
 * reads it. *home: its index. */
cnr_status cnri_plan_home(cnri_planner *p, cnr_value value, int32_t device, int32_t memory_class,
                          int32_t block, bool hidden, int32_t *home, cnr_error *err);
/* Emits a copy of a range between two homes. */
cnr_status cnri_plan_copy(cnri_planner *p, int32_t from, int32_t to, cnr_input_range region,
                          cnr_error *err);
/* Notes that a home holds this range from now on. */
cnr_status cnri_reach_add(cnri_planner *p, int32_t home, cnr_input_range region, cnr_error *err);
/* *width and *height in pixels of a tensor in an image class. */
void cnri_image_size(const cnr_tensor *type, int64_t *width, int64_t *height);

/* Finds values that can lie in the memory of another. */
cnr_status cnri_plan_alias(cnri_planner *p, cnr_error *err);
/* Builds the nodes that kernels see, and asks the kernels to plan. */
cnr_status cnri_plan_views(cnri_planner *p, cnr_error *err);
/* Lays all homes and workspaces out in memory. */
cnr_status cnri_plan_lay(cnri_planner *p, cnr_error *err);
/* Finds which steps of other devices each step must wait for. */
cnr_status cnri_plan_waits(cnri_planner *p, cnr_error *err);
/* Brings weights that steps read unprepared into device memory; only: that value, or -1 for all. */
cnr_status cnri_plan_constants(cnr_plan *plan, cnr_value only, cnr_error *err);
/* memo.c */
/* Takes over the placements of the policy that are stored in the memo. */
void cnri_memo_place(cnri_planner *p);
/* Finds the memo's decision for a part of a node; CNR_E_VERSION: it has none. */
cnr_status cnri_memo_find(cnri_planner *p, int32_t node, int32_t part, const cnri_decision **out,
                          cnr_error *err);
/* Fails with CNR_E_VERSION if the choice for the part is not the stored one. */
cnr_status cnri_memo_check(const cnri_planner *p, int32_t node, const cnri_decision *told,
                           const cnri_candidate *c, cnr_error *err);
/* Notes the choice for a node, so that a stored plan can repeat it. */
cnr_status cnri_memo_keep(cnri_planner *p, int32_t node, cnr_error *err);
/* tuning.c: the record's key for a node with its whole chain on a device; "": times do not
 * count. Times the kernels first if the options ask for it. */
cnr_status cnri_tuning_begin(cnri_planner *p, const cnri_chain *chain, const cnri_kernel_query *q,
                             char key[CNRI_TUNING_KEY], cnr_error *err);
/* The same of a region, by the kernel that is to compute it. */
cnr_status cnri_tuning_begin_region(cnri_planner *p, const cnri_chain *chain, int32_t device,
                                    const char *kernel, char key[CNRI_TUNING_KEY], cnr_error *err);
/* True if the kernel runs only when it is forced by name. */
bool cnri_kernel_only_forced(const cnr_kernel *k);
/* True if the kernel stores weights and computes in f32, or in a type that the options allow. */
bool cnri_kernel_storage_allowed(const cnri_kernel_query *q, const cnr_kernel *k);
/* True if the kernel is for that device's class or family. */
bool cnri_kernel_drives(const cnr_kernel *k, const cnr_device *device);
/* slice.c: the most slices that a node may be divided into; 1: it can't be. */
int32_t cnri_slice_most(const cnr_node *node);
/* slice.c: divides the step so that no slice needs more than `most` bytes for its blob. */
void cnri_slice_choose(const cnr_plan *plan, cnri_step *s, uint64_t most);
/* candidates.c: the most bytes that values take at once, about the arena. 0: no memory. */
uint64_t cnri_arena_guess(const cnr_graph *g);
/* The part of the net's weights that can't stay in `room` bytes. */
double cnri_passing_share(const cnr_graph *g, uint64_t room);
/* residency.c: makes the plan's store of prepared weights; `memo` tells which stay */
cnr_status cnri_residency_make(cnr_plan *plan, const cnri_memo *memo, cnr_error *err);
void cnri_residency_free(cnr_plan *plan); /* frees all prepared weights of the plan */

/* ---- ranges.c ---- */
/* What dim_range is found from. */
typedef struct cnri_ranges_request {
    const cnr_graph *net; /* as it was loaded */
    const char *const *off;
    const cnr_device *const *devices;
    int32_t n_devices;
} cnri_ranges_request;
/* Sets dim_range of the values of `made`, the net bound and rewritten: by making it at both ends
 * of the ranges. Where that gives other nodes, nothing is set. */
void cnri_plan_find_ranges(cnr_graph *made, const cnri_ranges_request *request);

#endif
