/* What the planner knows while it works; inside plan/ only. What is chosen, by whom, and how that
 * is carried out are three things:
 *
 *   set.c     devices, found and opened               wish.c    wishes that the graph has
 *   place.c   wish per node -> device(s)              view.c    a node with what may follow it
 *
 *   candidates.c  rows: kernels that take a node      tuning.c  times and joules on record
 *   rules.c       which row is taken, by which rule   memo.c    what another process took
 *   choose.c      node by node: makes rows, applies rules, keeps what was taken
 *   table.c, links.c  all rows of the net       answer.c  what a policy picks of them
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
    int32_t *at; /* the n operators behind it */
    /* inputs when the first k are taken: the node's own, then operands; k = 0 .. n */
    int32_t *n_in;
    /* dense: twins of what is encoded, once cnri_chain_decode made them */
    cnr_value *in, *dense_in;
    const cnr_tensor **inputs, **dense_inputs;
    cnr_epilogue *epilogues;
    const cnr_epilogue **epilogue;
    bool decoded;
    const cnr_node *region; /* the chain is a region's, whose memory it is: all of it, or nothing */
    const cnr_value *out;   /* the region's */
} cnri_chain;

/* A node as a kernel sees it, with n_chain operators taken along: a value, as long as its chain
 * lives. */
typedef struct cnri_view {
    int32_t n_chain, n_in, n_out;
    const cnr_value *in, *out; /* out: of the last operator */
    cnr_node node;
} cnri_view;

/* A kernel, or the reference, that takes a node (or its part) on one device: a row to pick from. */
typedef struct cnri_candidate {
    int32_t device;
    const cnr_kernel *kernel;  /* NULL: the reference */
    uint32_t prepared, splits; /* splits: axes on which it computes ranges */
    int32_t prepared_from;     /* see cnri_prepares */
    bool ranges;        /* computes the part alone; false: all of it, of which the part is copied */
    bool extrapolated;  /* the kernel says so of its time */
    bool passes, dense; /* dense: encoded inputs are replaced by their twins */
    int32_t n_chain, score, way; /* way: see cnri_decision; score 0: the reference */
    cnri_cost cost;              /* of what it computes; from CNRI_GUESS: ns is not known */
    double guess_ns;             /* where it is not: by arithmetic and bytes alone */
    double around_ns; /* conversions before it, and passes over memory for what it leaves over */
    int32_t n_in, n_out;
    int32_t *layout;    /* in_block, in_class (n_in each), out_block, out_class (n_out each) */
    int64_t begin, end; /* of the split axis */
    const char *by;     /* the rule that took it; NULL: nobody */
} cnri_candidate;
enum { CNRI_IN_BLOCK, CNRI_IN_CLASS, CNRI_OUT_BLOCK, CNRI_OUT_CLASS };
static inline int32_t *cnri_layout(const cnri_candidate *c, int32_t which) {
    const int32_t at[] = {0, c->n_in, 2 * c->n_in, 2 * c->n_in + c->n_out};
    return c->layout + at[which];
}

static inline const char *cnri_candidate_name(const cnri_candidate *c) {
    return c->kernel ? c->kernel->name : cnri_reference_name;
}

/* Rows of one node on one device; the memory is used again for the next. */
typedef struct cnri_rows {
    cnri_candidate *at;
    int32_t n, capacity;
    int32_t *layouts;
    size_t width; /* of each row's */
    bool named; /* a kernel that was wanted by name is there for the device, whatever it answered */
} cnri_rows;

/* What rules are asked: which row a node (or its part) gets on a device. */
typedef struct cnri_kernel_query {
    /* axis -1: not split; cap: how many operators of the chain may be taken at most */
    int32_t node, device, axis, cap;
    const cnri_decision *stored_choice; /* of a stored plan; NULL */
    const char *forced_name;            /* the kernel that the options force; NULL */
    bool forced_here;                   /* the options name this node, not its operator */
    const cnri_candidate *policy_row;   /* the row that the policy took; NULL */
    bool dynamic;                       /* some input's size is not known yet */
    bool ignores_times;                 /* a deterministic plan */
    uint32_t stores;                    /* as of the options */
    bool unmeasured;                    /* times on record count, but nothing is timed for this */
} cnri_kernel_query;
/* One way to choose; a pure function: the same rows give the same answer. */
typedef struct cnri_rule {
    const char *name;                                               /* as it is shown: "record" */
    bool (*applies)(const cnri_kernel_query *q);                    /* whether it decides this */
    bool (*wants)(const cnri_kernel_query *q, const cnr_kernel *k); /* whether to make rows of k */
    int32_t (*pick)(const cnri_kernel_query *q, const cnri_rows *rows); /* -1: none of them */
} cnri_rule;

/* The decision for a node. */
typedef struct cnri_pick {
    int32_t absorbed_by;   /* the node that computes it along; -1: it is computed by itself */
    int32_t n_parts, axis; /* axis -1: not split */
    cnri_chain chain;
    cnri_view view; /* with as much of the chain as is taken */
    cnri_candidate *parts;
    int32_t *layouts; /* of all parts */
} cnri_pick;

/* Which of a home's elements are there already: spans on one axis, or all (axis -1). */
typedef struct cnri_reach {
    int32_t next; /* home of the same value, -1 */
    int32_t axis; /* -1: whole; -2: nothing yet */
    bool hidden;  /* a scratch result; nobody else reads it */
    struct {
        int64_t begin, end;
    } * spans;
    int32_t n_spans, capacity;
} cnri_reach;

typedef struct cnri_offer {
    int32_t device, block, memory_class;
} cnri_offer;

typedef struct cnri_planner {
    cnr_plan *plan;
    cnr_graph *graph;
    const cnri_device_set *set; /* in the order of plan->devices */
    const cnri_plan_options *options;
    bool fuse, alias, layout;
    const cnri_placement **wish; /* by node; NULL none */
    int32_t n_picks, n_offers;
    int32_t *only_user; /* by value: the node that alone uses it; -1 */
    cnri_pick *picks;   /* by node */
    /* by node: the row that the policy took; NULL: none; or no policy */
    const cnri_candidate **answers;
    cnri_offer *offers; /* by value: as produced */
    cnri_rows rows;
    CNRI_VEC(cnri_reach) reach; /* beside plan->homes */
    int32_t *first_home;        /* by value */
    int32_t n_first;
    bool *elided; /* by step: an alias did it */
} cnri_planner;

static inline bool cnri_is_host(const cnr_device *device) {
    return (device->memory[0].flags & CNR_MEMORY_HOST) != 0;
}
static inline bool cnri_in_host(const cnr_device *device, int32_t memory_class) {
    return (device->memory[memory_class].flags & CNR_MEMORY_HOST) != 0;
}
/* Streams of such a device have finished when a call returns. */
static inline bool cnri_is_async(const cnr_device *device) {
    return CNRI_HAS(device->cls, event_record);
}
static inline uint64_t cnri_stored_bytes(const cnr_tensor *t) {
    return !t ? 0 : t->encoding ? t->bytes : cnr_dense_bytes(t);
}
/* Nanoseconds to move a byte between layouts, a guess: read and write at about 10 GB/s, a tenth of
 * that where it must pass through the host. */
static inline double cnri_conversion_rate(bool host) { return host ? 0.2 : 2.0; }
/* A weight: known before anything runs, or changed only between runs. */
static inline bool cnri_is_weight(const cnr_graph *g, cnr_value v) {
    return v >= 0 && g->values.at[v].producer < 0 && !g->values.at[v].is_input;
}
static inline cnr_status cnri_no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "plan", "out of memory while planning");
}

static inline const char *cnri_node_name(const cnri_planner *p, int32_t node) {
    const char *name = p->graph->nodes.at[node]->name;
    return name ? name : "";
}

/* place.c */
cnr_status cnri_plan_place(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_host(cnri_planner *p, int32_t *device, cnr_error *err);
/* The axes of output 0 along which a node can be split. */
uint32_t cnri_split_axes(const cnri_planner *p, int32_t node);
/* How many pieces it may be cut into along that axis. */
int64_t cnri_split_pieces(const cnri_planner *p, int32_t node, int32_t axis);
/* Devices and ranges of a node's parts; `parts` gets n_parts entries. */
cnr_status cnri_plan_parts(cnri_planner *p, int32_t node, cnri_pick *pick, cnr_error *err);

/* region.c: connected nodes that one step on a device computes. Its chain is the first of them with
 * the others behind it. */
typedef struct cnri_region {
    int32_t device;
    cnri_chain chain;
    cnri_candidate row;       /* of the kernel that takes it */
    const char *rule, *taken; /* who takes it by default, and now; NULL: nobody */
    struct cnri_part_of_graph *parts;
    cnr_node node;
} cnri_region;
struct cnri_regions {
    CNRI_VEC(cnri_region) at;
};
cnr_status cnri_regions_find(cnri_planner *p, cnr_error *err); /* asks the devices */
/* After nodes were chosen one by one: whether regions are taken, so that all is chosen again. */
bool cnri_regions_take(cnri_planner *p);
cnr_status cnri_regions_follow_memo(cnri_planner *p, cnr_error *err); /* takes those stored */
/* The policy answered: of its nodes' regions those are taken whose rows it picked. */
void cnri_regions_follow_policy(cnri_planner *p);
void cnri_regions_reset(cnri_planner *p); /* those of the default again */
/* The region of a row; NULL: of none. */
const cnri_region *cnri_region_of(const cnri_planner *p, const cnri_candidate *c);
/* The region that is taken and begins with the node; NULL: none. */
const cnri_region *cnri_region_at(const cnri_planner *p, int32_t node);
void cnri_regions_free(struct cnri_regions *regions);

/* view.c */
cnr_status cnri_chain_make(cnri_planner *p, int32_t node, cnri_chain *out, cnr_error *err);
void cnri_chain_free(cnri_chain *chain);
cnri_view cnri_view_of(const cnri_planner *p, const cnri_chain *chain, int32_t n_chain, bool dense);
/* Makes the twins that a dense view needs. */
cnr_status cnri_chain_decode(cnri_planner *p, cnri_chain *chain, cnr_error *err);
cnr_status cnri_plan_twin(cnri_planner *p, cnr_value encoded, cnr_value *dense, cnr_error *err);
/* The same with its data decoded, which every hook but `accepts` needs. */
cnr_status cnri_plan_twin_read(cnri_planner *p, cnr_value encoded, cnr_value *dense,
                               cnr_error *err);

/* candidates.c: fills p->rows. `key`: of the record; "": times do not count. */
cnr_status cnri_candidates_make(cnri_planner *p, cnri_chain *chain, const cnri_kernel_query *q,
                                const cnri_rule *rule, const char *key, cnr_error *err);
void cnri_rows_free(cnri_rows *rows);
/* Bytes and operations of a view, whose first node is `own`; the time that they are guessed to take
 * with a kernel of that score (0: the reference). */
void cnri_count_work(const cnri_view *v, const cnr_node *own, bool as_stored, uint64_t *bytes,
                     uint64_t *flops);
double cnri_guess_ns(const cnr_device *d, int32_t score, uint64_t bytes, uint64_t flops);
/* rules.c: what is asked for a node; of that device; then the first rule that applies. */
cnri_kernel_query cnri_query_of(const cnri_planner *p, int32_t node, int32_t axis);
void cnri_query_set_device(const cnri_planner *p, cnri_kernel_query *q, int32_t device);
const cnri_rule *cnri_rule_for(const cnri_kernel_query *q);
/* The row that is taken, -1: none. *rule becomes the next one if the first leaves it to that. */
int32_t cnri_rule_pick(const cnri_rule **rule, const cnri_kernel_query *q, const cnri_rows *rows);

/* table.c: the rows of a net; then those that were taken are marked. */
struct cnri_kept_rows {
    CNRI_VEC(cnri_candidate) at; /* beside the table's rows; `layout` goes on with the values */
    CNRI_VEC(int32_t *) lists;
    CNRI_VEC(char *) texts;
    uint64_t *value_bytes;
};
static inline const cnr_value *cnri_kept_values(const cnri_candidate *c) {
    return c->layout + 2 * (c->n_in + c->n_out);
}
cnr_status cnri_table_make(cnri_planner *p, cnr_error *err); /* into the plan */
void cnri_table_mark(cnri_planner *p);
/* links.c */
cnr_status cnri_table_add_devices_links(cnri_planner *p, cnri_table *t, cnr_error *err);
cnr_status cnri_plan_links(cnri_planner *p, cnr_error *err); /* of its copies, into the plan */
/* answer.c: asks the policy, and makes its answer the planner's wishes and rows; CNR_E_MEMORY, or
 * an answer that cannot be followed. */
cnr_status cnri_answer_take(cnri_planner *p, cnr_error *err);
void cnri_answer_drop(cnri_planner *p); /* back to the wishes of before */
void cnri_plan_unplace(cnr_plan *plan);

/* choose.c: may be called again, once what was chosen is dropped */
void cnri_choices_drop(cnri_planner *p);
cnr_status cnri_plan_choose(cnri_planner *p, cnr_error *err);

/* emit.c */
cnr_status cnri_plan_emit(cnri_planner *p, cnr_error *err);
/* homes.c: a home of `value` with the given layout that holds `region` (axis -1: everything),
 * adding the copies and conversions that takes. */
cnr_status cnri_plan_ensure(cnri_planner *p, cnr_value value, int32_t device, int32_t memory_class,
                            int32_t block, cnr_input_range region, int32_t *home, cnr_error *err);
cnr_status cnri_plan_home(cnri_planner *p, cnr_value value, int32_t device, int32_t memory_class,
                          int32_t block, bool hidden, int32_t *home, cnr_error *err);
cnr_status cnri_plan_copy(cnri_planner *p, int32_t from, int32_t to, cnr_input_range region,
                          cnr_error *err);
cnr_status cnri_reach_add(cnri_planner *p, int32_t home, cnr_input_range region, cnr_error *err);
/* Pixels of a tensor in an image class. */
void cnri_image_size(const cnr_tensor *type, int64_t *width, int64_t *height);

/* alias.c, finish.c, lay.c, waits.c */
cnr_status cnri_plan_alias(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_views(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_lay(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_waits(cnri_planner *p, cnr_error *err);
cnr_status cnri_plan_constants(cnr_plan *plan, cnr_value only, cnr_error *err);
/* wish.c: one wish from its text; to be freed after an error too */
cnr_status cnri_wish_read(cnri_placement *w, const char *node, const char *text, cnr_error *err);
void cnri_placement_free(cnri_placement *w);
/* memo.c */
void cnri_memo_place(cnri_planner *p); /* takes over the wishes of the policy that it stored */
/* The memo's decision for a part of a node. CNR_E_VERSION if it has none. */
cnr_status cnri_memo_find(cnri_planner *p, int32_t node, int32_t part, const cnri_decision **out,
                          cnr_error *err);
/* CNR_E_VERSION if the choice for the part is not the stored one. */
cnr_status cnri_memo_check(const cnri_planner *p, int32_t node, const cnri_decision *told,
                           const cnri_candidate *c, cnr_error *err);
cnr_status cnri_memo_keep(cnri_planner *p, int32_t node, cnr_error *err);
/* tuning.c: the key under which the record has a node with all of its chain on a device, "" when
 * times do not count; measures if that is wanted. */
cnr_status cnri_tuning_begin(cnri_planner *p, const cnri_chain *chain, const cnri_kernel_query *q,
                             char key[CNRI_TUNING_KEY], cnr_error *err);
/* The same of a region, by the kernel that is to compute it. */
cnr_status cnri_tuning_begin_region(cnri_planner *p, const cnri_chain *chain, int32_t device,
                                    const char *kernel, char key[CNRI_TUNING_KEY], cnr_error *err);
/* Whether the node computes nothing: its output shares the bytes of its input. */
bool cnri_only_shares(const cnri_planner *p, const cnr_node *node);
bool cnri_kernel_only_forced(const cnr_kernel *k); /* never chosen by itself */
/* Whether the kernel keeps weights and arithmetic in f32, or in a type that the options allow. */
bool cnri_kernel_storage_allowed(const cnri_kernel_query *q, const cnr_kernel *k);
bool cnri_kernel_drives(const cnr_kernel *k, const cnr_device *device);
/* residency.c */
cnr_status cnri_residency_make(cnr_plan *plan, const cnri_memo *memo, cnr_error *err);
void cnri_residency_free(cnr_plan *plan);

/* ---- ranges.c ---- */
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
