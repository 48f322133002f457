/* plan: from a graph with known shapes to steps, each a kernel on a device, and their memory.
 *
 *   graph --bind, rewrite--> place --> split --> order --> lifetime --> arena --> residency
 *
 *   step 0  conv1 (+relu)   cpu conv_f32_gemm     in v0        out v4 @ cpu arena 0+50176
 *   step 1  copy v4 cpu -> opencl:0
 *   step 2  pool1           opencl:0 ...
 *
 * Immutable once made, but for residency (weights come and go) which has its own lock. */
#ifndef CNRI_PLAN_H
#define CNRI_PLAN_H

#include "graph/graph.h"

/* How kernels store weights and multiply: those that do so only where it is asked for. */
#define CNRI_KERNEL_PRECISIONS \
    (CNR_KERNEL_F16 | CNR_KERNEL_BF16 | CNR_KERNEL_F16_MATH | CNR_KERNEL_BF16_MATH)

typedef struct cnri_part { /* one device's share of a layer */
    char device[32];
    double ratio; /* share of the output on `axis`; the ratios of a layer sum to 1 */
} cnri_part;

/* The name that stands for an operator's reference where a kernel is named. */
#define cnri_reference_name "reference"

/* Prefix of metadata keys with the net's own placements (wish.c). */
#define CNRI_PLACE_PREFIX "place."
typedef struct cnri_placement { /* where to run one node, by the script or a policy */
    char *node;                 /* name of the node; "*": every node */
    int32_t n_parts, axis; /* n_parts 1: not split; else axis of output 0 along which it is split */
    cnri_part *parts;
} cnri_placement;

/* wish.c: placements in the graph's metadata. Free with cnri_wishes_free, even after an error. */
typedef CNRI_VEC(cnri_placement) cnri_wishes;
/* Parses one placement; free it with cnri_placement_free, after an error too */
cnr_status cnri_wish_read(cnri_placement *w, const char *node, const char *text, cnr_error *err);
void cnri_placement_free(cnri_placement *w); /* frees its texts and parts, not w */
/* Reads the placements that a net's own metadata holds. */
cnr_status cnri_wishes_read(const cnr_graph *graph, cnri_wishes *out, cnr_error *err);
void cnri_wishes_free(cnri_wishes *wishes); /* frees the placements and empties the list */

/* set.c: the devices of a plan, found and opened once: the default one, those of the placements
 * in their order, and one with host memory for what no other takes (unless one of them has it).
 * Plans, and the identity of stored plans, depend on this list. */
struct cnri_plan_options;
/* The devices that a plan may use, all open. */
typedef struct cnri_device_set {
    const cnri_device **at;
    int32_t n, capacity; /* all are open; the default device comes first */
    /* Indices of the default and of a host device; host -1: there is none. */
    int32_t fallback, host;
    cnri_wishes own;       /* the graph's own placements */
    cnri_devices *devices; /* the runtime's devices */
} cnri_device_set;
/* Makes a set; free it with cnri_device_set_free unless this fails. */
cnr_status cnri_device_set_make(cnri_device_set *set, cnri_devices *devices, const cnr_graph *graph,
                                const struct cnri_plan_options *options, cnr_error *err);
/* Index in the set; -1: it is not in it. */
int32_t cnri_device_set_find(const cnri_device_set *set, const char *name);
void cnri_device_set_free(cnri_device_set *set); /* frees the list and its placements, no device */

/* The choice for one part of one node, from which one kernel can be asked once. */
typedef struct cnri_decision {
    int32_t node, part, n_chain;
    /* Bit 0: not in the offered layouts; bit 1: encoded inputs were decoded; from bit 2 on:
     * number of the region (region.c), 0: none. */
    int32_t way;
    const char *device, *kernel; /* kernel "": the reference */
    uint32_t version;            /* version of the kernel */
} cnri_decision;
/* True if a comes before b, by node and part. */
static inline bool cnri_decides_before(const cnri_decision *a, const cnri_decision *b) {
    return a->node < b->node || (a->node == b->node && a->part < b->part);
}

/* The device (or devices) that a policy chose for a node. */
typedef struct cnri_placed {
    int32_t node;
    cnri_placement where;
} cnri_placed;

/* A blob that was prepared before; `data` must stay valid as long as the plan lives. */
typedef struct cnri_kept_blob {
    const char *name;
    const void *data;
    uint64_t bytes;
    uint8_t print[16]; /* fingerprint, checked when the blob is used */
    bool sound;        /* it need not be: the data was decoded from a file that was checked */
    const char *file;  /* file whose damage is an error; NULL: a damaged blob is prepared again */
    uint8_t from[16]; /* fingerprint of the constants that the blob was made of; zeros: not known */
} cnri_kept_blob;

/* memo.c: the decisions and blobs of another process for the same graph, devices and options.
 * Kernels are still asked, so a wrong memo is noticed: planning then fails with CNR_E_VERSION. */
typedef struct cnri_memo {
    CNRI_VEC(cnri_decision) decisions; /* sorted by node, then by part */
    CNRI_VEC(cnri_placed) placed;      /* sorted by node: where a policy placed it */
    CNRI_VEC(cnri_kept_blob) blobs;    /* in the order of cnri_residency_blob */
    CNRI_VEC(cnr_value) unfolded;      /* as in the plan */
    int64_t tightness;                 /* as in the plan */
    const char *reads;                 /* as cnri_plan_reads returns it; NULL: not stored */
    bool replaces; /* the weights have changed: only blobs made of unchanged constants are used */
    char *text;    /* the text that the names point into */
} cnri_memo;

/* tuning.c: recorded times of kernels. A key stands for a node with its chain, its types and its
 * device, so that it applies to any net. */
enum { CNRI_TUNING_KEY = 33 };
/* Where a time comes from: guessed from work, estimated by a kernel, or measured. */
typedef enum cnri_source { CNRI_GUESSED, CNRI_ESTIMATED, CNRI_MEASURED } cnri_source;
typedef struct cnri_cost { /* of one call of a kernel; 0: not known */
    /* remainder_ns: the part of ns spent by other kernels on the operators of the chain that
     * this kernel leaves. */
    double ns, remainder_ns;
    double joules, mhz; /* mhz: the device's frequency while it was measured */
    cnri_source from;
} cnri_cost;
/* Pseudo-kernels in the record: an idle device, and copies of two sizes between two devices. */
#define CNRI_TUNING_IDLE "(idle)"
#define CNRI_TUNING_COPY_LESS "(copy 4K)"
#define CNRI_TUNING_COPY_MORE "(copy 4M)"
/* Recorded ns of a kernel that did not return: never timed again, runs only if forced by name. */
#define CNRI_TUNING_HANGS 9e14
enum { CNRI_TUNING_BYTES_LESS = 4 << 10, CNRI_TUNING_BYTES_MORE = 4 << 20 };
/* One measured time of a kernel, under the key of its node. */
typedef struct cnri_timed {
    char key[CNRI_TUNING_KEY], kernel[96];
    cnri_cost cost;
} cnri_timed;
struct cnri_planner;
struct cnri_chain;
/* Measured times, and a function that measures those that lack. */
typedef struct cnri_tuning {
    CNRI_VEC(cnri_timed) rows;
    /* Times what could compute the chain on the device and has no row under `key`, and adds rows.
     * kernel: the one that may compute the region; NULL: all kernels of the chain's first node.
     * measure NULL: nothing is timed. */
    cnr_status (*measure)(struct cnri_planner *p, const struct cnri_chain *chain, int32_t device,
                          const char *kernel, const char *key, cnr_error *err);
    void *arg; /* of `measure` */
} cnri_tuning;

/* The axis along which a node is split by default: channels, else the first possible; -1: none. */
int32_t cnri_default_axis(uint32_t axes);

/* Policies, and the table of all candidates of a net that they pick from, are in lab (policy/). */
struct cnri_table;
struct cnri_policy_answer;
/* A policy picks rows for a whole net. Scripts implement it (lua/policy.c). It must be a pure
 * function of the table, and several threads may call it. */
typedef struct cnri_policy {
    const char *name, *where;   /* for people: "fastest.lua", "fastest.lua:3" */
    const char *const *devices; /* devices whose rows it wants; NULL-terminated */
    /* What its plans minimise: "edp", "energy" or "time", constant texts; NULL: not declared. */
    const char *objective;
    uint8_t print[16]; /* fingerprint of its script and options */
    /* Fills `answers`, which are blank and indexed by node. *notes: JSON, for cnri_free. */
    cnr_status (*place)(struct cnri_policy *self, const struct cnri_table *t,
                        struct cnri_policy_answer *answers, char **notes, cnr_error *err);
    /* Returns a number from a table that the script has beside `place`; NaN: it has none. The
     * member is NULL if the script has no tables. */
    double (*number)(const struct cnri_policy *self, const char *table, const char *name);
    void (*free)(struct cnri_policy *self);
    atomic_int refs;      /* references beside the first */
    atomic_bool reported; /* an error of it was logged */
} cnri_policy;
/* Takes a reference and returns the policy; NULL: does nothing. */
cnri_policy *cnri_policy_retain(cnri_policy *policy);
/* Gives up one user of a policy; the last one frees it. NULL: nothing. */
void cnri_policy_release(cnri_policy *policy);

/* How a plan is made; from load options and the net. */
typedef struct cnri_plan_options {
    const char *device; /* default device; NULL: the best */
    const cnri_placement *placements;
    int32_t n_placements;
    uint64_t memory_bound;         /* of weights as they are, prepared ones and arena; 0: none */
    const char *const *no_rewrite; /* rewrites, "all" of plugins, steps of planning */
    const char *const *kernels;    /* "node=kernel", "op=kernel" forced; NULL-terminated */
    uint64_t memory_limit;         /* of what a session takes, bytes; 0: a share of what there is */
    uint64_t hang_ms; /* after which a device's call counts as one that hangs; 0: usual */
    bool deterministic, training; /* training: weights flagged VARIABLE keep changing */
    const cnri_memo *memo;        /* stored decisions, only while planning; NULL: none */
    cnri_tuning *tuning;          /* the same; looked at unless deterministic; NULL: none */
    const char *const *devices;   /* of which rows are made, besides; the first is where nodes go by
                                     default if `device` says nothing; NULL-terminated; NULL */
    cnri_policy *policy;          /* NULL: rules alone */
    bool candidates;              /* the plan keeps its table */
    const char *forced_region;    /* the kernel of the one region that takes all nodes; NULL */
    /* devices that are left for when this one fails; NULL-terminated */
    const char *const *fallback;
    bool on_fallback; /* `device` is one of those: the net's own wishes no longer count */
    uint32_t stores;  /* of CNRI_KERNEL_PRECISIONS: kernels that do are chosen from */
} cnri_plan_options;

/* Kinds of steps: a kernel, a copy between devices, a conversion of layout. */
typedef enum cnri_step_kind { CNRI_STEP_KERNEL, CNRI_STEP_COPY, CNRI_STEP_LAYOUT } cnri_step_kind;

/* A home: where a value lies on one device, in one layout. A value used on several devices or in
 * several layouts has several homes. In an image class the last dimension is a row of pixels, a
 * channel block is one pixel, and the other dimensions are rows. */
typedef struct cnri_home {
    cnr_value value;
    int32_t device;                 /* index into plan->devices */
    int32_t memory_class, block_of; /* block_of: channels in a block; 0: plain */
    int32_t storage; /* index into plan->storages; -1: a constant in the graph's own memory */
    uint64_t offset, bytes; /* place inside the storage */
    cnr_tensor type;        /* with known dimensions and its block */
    /* Steps between which it is alive; inputs begin at -1, outputs end at n_steps. */
    int32_t first, last;
    int32_t alias_of;      /* the home whose bytes it shares; -1: none */
    uint64_t alias_offset; /* bytes from the beginning of that home */
    cnr_tensor flat; /* the type without its block, for steps that process elements in any block */
} cnri_home;

/* One allocation of a session: the arena of a memory class that can be divided, or one image. */
typedef struct cnri_storage {
    int32_t device, memory_class;
    uint64_t bytes;
    int64_t width, height;
    /* Weights that kernels read unprepared: one for the plan, not one for each session. */
    bool constant;
} cnri_storage;

/* One step of a plan. */
typedef struct cnri_step {
    cnri_step_kind kind;
    int32_t device, node;     /* index in plan->graph; -1: a copy or conversion */
    const cnr_kernel *kernel; /* NULL: the operator's reference */
    cnr_node view;            /* with its epilogue; the tensors are those of the homes */
    int32_t n_in, n_out;
    int32_t *in, *out;  /* indices of homes; -1: an omitted input */
    int32_t range_axis; /* axis of the range that it computes; -1: everything */
    int64_t range_begin, range_end;
    int32_t from, to;       /* homes of a copy or layout step */
    cnr_input_range region; /* the part that a copy moves */
    uint32_t prepared; /* bits of the inputs that prepare reads instead of run (cnri_prepares) */
    int32_t prepared_from;
    cnr_space blob_space, workspace_space;
    int32_t workspace; /* index of the storage */
    uint64_t workspace_offset;
    void *state;    /* the kernel's plan state */
    int32_t blob;   /* index into residency; -1: none */
    int32_t *waits; /* steps on other devices that must finish first */
    int32_t n_waits;
    bool extrapolated; /* its time is simulated from figures for another class of operators */
    bool passes;       /* processes element by element in whatever block its tensors have */
    void *view_memory; /* owns the arrays of `view` */
    bool marks;        /* another step waits for this one: an event is recorded behind it */
    uint32_t ranges;   /* axes of output 0 of which the kernel accepts a range: bits */
    int32_t piece_axis;
    /* under a memory bound: number of rows that are computed at a time; 0: all at once */
    int64_t piece;
    int32_t slices; /* the same with a blob for each slice, from `blob` on; 0: one for all */
    int64_t slice;  /* channels in each */
} cnri_step;

struct cnr_plan;
/* A weight in a mapped file that kernels read as it is, under a memory bound. */
typedef struct cnri_raw {
    cnr_value value;
    int32_t step;            /* the first that reads it */
    uint64_t bytes, passing; /* passing: in memory at once, if it does not stay */
    bool stays;
} cnri_raw;

/* ---- slice.c ---- */
enum { CNRI_SLICE_INPUTS = 8, CNRI_SLICE_LINKS = 4, CNRI_SLICE_PORTS = 3 };
typedef struct cnri_slice_link { /* an operator of the epilogue */
    cnr_epilogue epilogue;
    cnr_node node;
    const cnr_tensor *at[CNRI_SLICE_PORTS + 1];
    cnr_tensor tensors[CNRI_SLICE_PORTS + 1];
} cnri_slice_link;
typedef struct cnri_slice { /* a part of a step as a node of its own */
    cnr_node node;
    const cnr_epilogue *epilogue[CNRI_SLICE_LINKS];
    cnri_slice_link links[CNRI_SLICE_LINKS];
    const cnr_tensor *inputs[CNRI_SLICE_INPUTS];
    cnr_tensor tensors[CNRI_SLICE_INPUTS + 1], *outputs[1];
} cnri_slice;
/* Slice `index` of a step; `whole` is its view, or a session's. False: it can't be cut out. */
bool cnri_slice_make(const struct cnr_plan *plan, const cnri_step *s, const cnr_node *whole,
                     int32_t index, cnri_slice *out);

/* ---- raw.c ---- */
/* Behind the step, or its piece [begin, end): pages of weights that do not stay are released, those
 * of the next piece read ahead. end 0: all of the step. */
void cnri_raw_release(const struct cnr_plan *plan, const cnri_step *s, int64_t begin, int64_t end);

/* Whether input i is consumed by prepare: the kernel said so, or of a region's step it is one of
 * the constants, from `from` on (0: of no region). */
static inline bool cnri_prepares(uint32_t bits, int32_t from, int32_t i) {
    return (i < 32 && bits >> i & 1) || (from > 0 && i >= from);
}
/* True if the step reads input i in prepared form. */
static inline bool cnri_step_prepares(const cnri_step *s, int32_t i) {
    return cnri_prepares(s->prepared, s->prepared_from, i);
}

/* The number of nodes computed together with the first one: of its chain, or of its region. */
static inline int32_t cnri_n_taken(const cnr_node *n) {
    return n->subgraph ? n->subgraph->n_nodes - 1 : n->n_epilogue;
}
/* Node i that a kernel computes with n: of its subgraph, or of its epilogues. */
static inline const cnr_node *cnri_taken(const cnr_node *n, int32_t i) {
    return n->subgraph ? n->subgraph->nodes[i + 1].node : n->epilogue[i]->node;
}

/* A dense copy of an encoded weight, for kernels that can't read the encoding. */
typedef struct cnri_twin {
    cnr_value encoded, dense;
    bool decoded; /* its data is there; to ask kernels, memory without data is enough */
    /* A running kernel reads it, so it stays decoded; else it is decoded only for prepare. */
    bool kept;
} cnri_twin;

/* A plan: steps in order, the homes of values, and the memory that holds them. */
typedef struct cnr_plan {
    /* Entry in the cache of the model that made it (run/plans.c); NULL: none. */
    struct cnri_kept_plan *keeper;
    cnr_graph *graph; /* with known sizes and rewritten; borrows the model's weights */
    const cnr_device **devices;
    int32_t n_devices;
    CNRI_VEC(cnri_step) steps;
    CNRI_VEC(cnri_home) homes;
    CNRI_VEC(cnri_storage) storages;
    struct cnri_residency *residency;
    CNRI_VEC(cnri_raw) raw;
    CNRI_VEC(cnr_value) unfolded; /* weights that nothing is folded into, for the memory bound */
    int32_t tightness; /* under a bound: number of plans that were tried before and did not fit */
    uint64_t arena_bytes;  /* of all non-constant storages */
    uint64_t bound_bytes;  /* most bytes alive at once: no plan of this order can take less */
    uint64_t weight_bytes; /* prepared blobs and plain constants if all are resident */
    uint64_t memory_bound, memory_limit, hang_ms; /* as the options have them */
    double flops;                                 /* of a run */
    bool gives_up;         /* calls that hang are given up: a limit, or a fallback, was asked for */
    uint64_t params;       /* learned numbers of the net as it was written, before rewriting */
    cnr_mem *constants;    /* memory of the constant storages, by storage index */
    int32_t *input_homes;  /* home of each graph input; -1: nothing reads it */
    int32_t *output_homes; /* home of each graph output; -1: it is a constant */
    CNRI_VEC(cnri_twin) twins;
    CNRI_VEC(cnri_decision) decisions; /* the names belong to the devices and kernels */
    atomic_bool sound;            /* the weights that it reads were compared with their digests */
    struct cnri_regions *regions; /* regions that devices claimed; NULL: none */
    cnri_mapping kept;            /* the file that holds blobs prepared before */
    struct cnri_table *table;     /* NULL: it was not requested */
    CNRI_VEC(struct cnri_table_link) links; /* links that its copies use */
    CNRI_VEC(cnri_placement) placed;        /* placements by the policy; their `node` is not set */
    /* By node: index into `placed`, -1: none; NULL: the policy placed nothing. */
    int32_t *placed_as;
    bool policy_failed; /* the policy failed, so this is the default plan; the table says why */
    /* It was made for weights that the model does not have, so no other plan can replace it. */
    bool own_weights;
    char *origin; /* "hit", "miss: ..." or "stale: ..."; NULL: there is no cache */
} cnr_plan;

/* The steps of planning that no_rewrite may switch off, beside names of rewrites. "inplace":
 * results take the place of operands; "share": values that are not needed together share memory. */
extern const char *const cnri_plan_steps[];
/* Fills options that are open from the net's metadata: "plan.device", "plan.memory_bound"
 * (bytes), "plan.deterministic" ("1"). The graph owns the device's name. */
void cnri_plan_defaults(const cnr_graph *graph, cnri_plan_options *options);
/* Makes a plan for these input types. The caller frees *out with cnri_plan_free. */
cnr_status cnri_plan_make(const cnr_graph *graph, cnri_devices *devices,
                          const cnri_plan_options *options, const cnr_tensor *const *input_types,
                          int32_t n_inputs, cnr_plan **out, cnr_error *err);
/* Like cnri_plan_make, with a device set that was made for this graph and these options; *out
 * receives the plan. */
cnr_status cnri_plan_make_on(const cnr_graph *graph, const cnri_device_set *set,
                             const cnri_plan_options *options, const cnr_tensor *const *input_types,
                             int32_t n_inputs, cnr_plan **out, cnr_error *err);
void cnri_plan_free(cnr_plan *plan);
/* Multiply-accumulates; 0: the operator does not say. */
uint64_t cnri_node_macs(const cnr_node *node);
/* The share (0 to 1) of the node's products that remain if encoded weights are read as stored. */
double cnri_stored_share(const cnr_node *node);
/* Number of learned weights (elements) on a node's ports that `seen` (by value) does not hold yet;
 * marks them there. */
uint64_t cnri_node_params(const cnr_graph *g, int32_t node, bool *seen);
/* Copies the current data of a variable, which a training plan updates, to the host. */
cnr_status cnri_plan_fetch(const cnr_plan *plan, cnr_value value, cnr_error *err);

/* ---- arena.c: offsets for blocks that are alive from step `first` to step `last`; tested
 * against brute force ---- */
/* A block of memory that is alive from step `first` to `last`. */
typedef struct cnri_block {
    uint64_t bytes;
    int32_t first, last;
    uint64_t offset;
} cnri_block;
/* Sets the offsets, multiples of alignment. Returns the bytes of the arena. */
uint64_t cnri_arena_place(cnri_block *blocks, int32_t n, uint64_t alignment);
/* Lower bound of the arena's bytes: the most that is in use at one step. */
uint64_t cnri_arena_bound(const cnri_block *blocks, int32_t n, uint64_t alignment);

/* ---- tuning.c: record keys of a device, and of the link from one to another ---- */
/* The record key of a device, in key. */
cnr_status cnri_tuning_device_key(const cnri_device *d, char key[CNRI_TUNING_KEY], cnr_error *err);
/* Key under which transfers between two devices are recorded. */
cnr_status cnri_tuning_link_key(const cnri_device *from, const cnri_device *to,
                                char key[CNRI_TUNING_KEY], cnr_error *err);

/* ---- record.c ---- */
/* Finds a recorded row. Kernel "": any row with that key. NULL: there is none. */
const cnri_timed *cnri_tuning_find(const cnri_tuning *t, const char *key, const char *kernel);
/* True if any kernel was timed under that key. */
bool cnri_tuning_knows(const cnri_tuning *t, const char *key);
/* Sets the cost of a key and kernel, replacing an earlier one. */
cnr_status cnri_tuning_set(cnri_tuning *t, const char *key, const char *kernel, cnri_cost cost,
                           cnr_error *err);
/* sound.c: compares the weights that the plan will read from a file with their fingerprints, or
 * with their digests if `exact`. Call it before anything runs. */
cnr_status cnri_plan_verify_weights(cnr_plan *plan, bool exact, int32_t threads, cnr_error *err);
/* Writes a fingerprint of those weights as 32 hex digits. A stored plan with the same one need
 * not check digests again. "": the plan reads no data from a file. False: out of memory. */
bool cnri_plan_reads(const cnr_plan *plan, char print[33]);

/* ---- residency.c: prepared blobs within a memory bound; the largest stay, the others are made
 * and dropped as needed ---- */
/* *out: the blob of a step or its slice, prepared and on its device, to be held until
 * cnri_residency_release; NULL: it has none. Thread-safe. */
cnr_status cnri_residency_acquire(cnr_plan *plan, int32_t step, int32_t slice, cnr_mem **out,
                                  cnr_error *err);
/* ends the use of a step's blob, which may then be dropped */
void cnri_residency_release(cnr_plan *plan, int32_t step, int32_t slice);
/* False: the blob may be dropped after release, so work that reads it must be done by then. */
bool cnri_residency_stays(const cnr_plan *plan, int32_t step);
/* Whether the weights of a step stay in memory under a bound. */
typedef struct cnri_resident {
    const char *node, *how; /* how: such as "come and go" */
    uint64_t bytes, at_once;
} cnri_resident;
/* Lists, under a memory bound, whether the weights of each step stay. Returns the number of rows,
 * in *out for cnri_free; 0: there is no bound, or memory is out. */
int32_t cnri_residency_list(const cnr_plan *plan, cnri_resident **out);
/* Makes everything that may stay resident now, so the first run is like the others. */
cnr_status cnri_residency_warm(cnr_plan *plan, cnr_error *err);
/* Weight `value` has changed: prepares its blobs again in place, or drops them. */
cnr_status cnri_residency_renew(cnr_plan *plan, cnr_value value, cnr_error *err);
/* True if any blob was prepared from the weight. */
bool cnri_residency_uses(const cnr_plan *plan, cnr_value value);
/* now, peak: bytes of blobs that are resident, and that were at most. The others count blobs:
 * prepared by kernels, dropped, taken from a memo. */
typedef struct cnri_residency_stats {
    uint64_t now, peak, prepared, evicted, kept;
} cnri_residency_stats;
/* Copies the counters of prepared weights, under their lock. */
void cnri_residency_stats_of(const cnr_plan *plan, cnri_residency_stats *out);
/* Name and bytes of blob `index`; false past the end. The name lives as long as the plan. */
bool cnri_residency_blob(const cnr_plan *plan, int32_t index, const char **name, uint64_t *bytes);
/* True if the blob was prepared by another process. */
bool cnri_residency_kept(const cnr_plan *plan, int32_t index);
/* Fingerprint of the constants a blob is made of, zeros if not known; false past the end. */
bool cnri_residency_sources(const cnr_plan *plan, int32_t index, uint8_t print[16]);
/* Returns the bytes of a blob on the host, after preparing it if necessary; valid until the next
 * call for this plan. *buffer, NULL at first, holds them if the device has no host memory; the
 * caller frees it. */
cnr_status cnri_residency_read(cnr_plan *plan, int32_t index, void **buffer, const void **data,
                               cnr_error *err);

/* names.c: names of a step; the texts belong to the plan. */
typedef struct cnri_step_names {
    const char *node, *op, *kernel, *device;
} cnri_step_names;
/* Node, group, kernel and device of a step, as profiles print them; texts of the plan. */
cnri_step_names cnri_step_names_of(const cnr_plan *plan, int32_t step);

#endif
