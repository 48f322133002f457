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
    double ratio; /* of the output range on `axis`; ratios of a layer sum to 1 */
} cnri_part;

/* The kernel that every operator has: its own plain C, where a kernel's name is wanted. */
#define cnri_reference_name "reference"

#define CNRI_PLACE_PREFIX "place." /* of metadata with the net's own wishes; see wish.c */
typedef struct cnri_placement {    /* a wish for one node, from the script or a policy */
    char *node;                    /* its name; "*": every node */
    int32_t n_parts, axis; /* axis of output 0 along which it is split; n_parts 1: not split */
    cnri_part *parts;
} cnri_placement;

/* wish.c: what the graph's metadata wishes. To be freed after an error too. */
typedef CNRI_VEC(cnri_placement) cnri_wishes;
cnr_status cnri_wishes_read(const cnr_graph *graph, cnri_wishes *out, cnr_error *err);
void cnri_wishes_free(cnri_wishes *wishes);

/* set.c: the devices of a plan, found and opened once: the default one, those wished for in the
 * order of the wishes, and one with host memory for what no other takes, unless one of them has it
 * already. What is planned, and what a stored plan depends on, is this list. */
struct cnri_plan_options;
typedef struct cnri_device_set {
    const cnri_device **at;
    int32_t n, capacity;    /* open; the default first */
    int32_t fallback, host; /* indices; host -1: there is none */
    cnri_wishes own;        /* the graph's */
    cnri_devices *devices;  /* where they come from */
} cnri_device_set;
/* Without an error to be freed. */
cnr_status cnri_device_set_make(cnri_device_set *set, cnri_devices *devices, const cnr_graph *graph,
                                const struct cnri_plan_options *options, cnr_error *err);
int32_t cnri_device_set_find(const cnri_device_set *set, const char *name); /* -1: not in it */
void cnri_device_set_free(cnri_device_set *set);

/* What was chosen for one part of one node: enough to ask one kernel once. */
typedef struct cnri_decision {
    int32_t node, part, n_chain;
    /* bit 0: not in the layout that was offered; bit 1: encoded inputs were decoded; from bit 2 on:
     * which region (region.c); 0: none */
    int32_t way;
    const char *device, *kernel; /* kernel "": the reference */
    uint32_t version;            /* of the kernel */
} cnri_decision;

/* The device (or devices) that a policy chose for a node. */
typedef struct cnri_placed {
    int32_t node;
    cnri_placement where;
} cnri_placed;

/* A blob that was prepared before; `data` stays where it is as long as the plan lives. */
typedef struct cnri_kept_blob {
    const char *name;
    const void *data;
    uint64_t bytes;
    uint8_t print[16]; /* fingerprint, looked at when the blob is wanted */
    const char *file;  /* whose damage is an error; NULL: a damaged blob is prepared again */
    uint8_t from[16];  /* of the constants that it was made of; zeros: not known */
} cnri_kept_blob;

/* memo.c: what another process decided and prepared for the same graph, devices and options.
 * Kernels are asked all the same, so a wrong memo is found out: planning then fails with
 * CNR_E_VERSION. */
typedef struct cnri_memo {
    CNRI_VEC(cnri_decision) decisions; /* by node, then part */
    CNRI_VEC(cnri_placed) placed;      /* by node: what a policy wished */
    CNRI_VEC(cnri_kept_blob) blobs;    /* in the order of cnri_residency_blob */
    const char *reads;                 /* as cnri_plan_reads gives it; NULL: not stored */
    bool replaces; /* weights are others now: only blobs whose constants are the same are taken */
    char *text;    /* that the names point into */
} cnri_memo;

/* tuning.c: how long kernels were seen to take. A key stands for a node with what follows it, its
 * types and its device, so that it holds in any net. */
enum { CNRI_TUNING_KEY = 33 };
typedef enum cnri_source { CNRI_GUESSED, CNRI_ESTIMATED, CNRI_MEASURED } cnri_source;
typedef struct cnri_cost { /* of a kernel, once; 0: not known */
    /* remainder_ns: the part of ns that other kernels take for what this one leaves of the chain */
    double ns, remainder_ns;
    double joules, mhz; /* mhz: of the device while it was measured */
    cnri_source from;
} cnri_cost;
/* What is on record of devices: an idle one, and copies of two sizes from one to another. */
#define CNRI_TUNING_IDLE "(idle)"
#define CNRI_TUNING_COPY_LESS "(copy 4K)"
#define CNRI_TUNING_COPY_MORE "(copy 4M)"
/* ns of a kernel that did not end: it is never asked again, nor taken unless by name. */
#define CNRI_TUNING_HANGS 9e14
enum { CNRI_TUNING_BYTES_LESS = 4 << 10, CNRI_TUNING_BYTES_MORE = 4 << 20 };
typedef struct cnri_timed {
    char key[CNRI_TUNING_KEY], kernel[96];
    cnri_cost cost;
} cnri_timed;
/* Fills costs[i] with the cost of kernel i of n on `segment`, a net of one node and its chain; ns
 * <= 0: the kernel does not take it. */
typedef cnr_status (*cnri_measure_fn)(void *arg, const cnr_graph *segment, const char *device,
                                      const char *const *kernels, int32_t n, cnri_cost *costs,
                                      cnr_error *err);
typedef struct cnri_tuning {
    CNRI_VEC(cnri_timed) rows;
    cnri_measure_fn measure; /* called where rows have no times; NULL: nothing is timed */
    void *arg;
} cnri_tuning;

/* ---- table.c: all rows of a net, for whoever looks at them and for policies of the whole net.
 *
 *   nodes    conv1: rows 0..2          relu1: rows 3..4         (of the net as it is planned)
 *   rows     cpu gemm, takes 2 | cpu direct, takes 2 | opencl:0 ... | cpu relu | ...
 *   links    cpu -> opencl:0: so much a byte
 *
 * What a policy sees is in here and nowhere else: record, estimates, guesses, and constants of the
 * net and the devices, so that a plan's identity covers it. ---- */
typedef struct cnri_table_row {
    int32_t node, device, takes, score; /* takes: nodes that it computes; score 0: the reference */
    const char *kernel, *layout_in, *layout_out, *encodings;
    cnri_cost cost;        /* of these nodes; ns is there, if only guessed */
    double guess;          /* ns, by arithmetic and bytes alone */
    uint64_t bytes, flops; /* inputs, weights and outputs; a multiply-accumulate is two */
    bool splits;           /* the kernel can compute ranges */
    bool extrapolated;     /* its time is simulated from figures for another class of operators */
    const char *by;        /* the rule that took it; NULL: none did */
    double share;          /* of the node, if it was taken */
} cnri_table_row;
typedef struct cnri_table_node {
    const char *name, *op;
    int32_t first, n_rows;
    const int32_t *inputs;
    int32_t n_inputs; /* nodes that compute them; -1: none does */
    uint64_t out_bytes, flops;
    uint32_t axes;  /* along which it can be split */
    int64_t pieces; /* into which, along the usual one of them (cnri_default_axis); 1: into none */
    const char *wished; /* device where it was placed by hand; NULL: none */
    const char *forced; /* the kernel that the options ask for; NULL */
    const char *with;   /* the node that is computed along with; NULL: by itself */
} cnri_table_node;
/* The axis along which a node is split by default: channels, else the first; -1: there is none. */
int32_t cnri_default_axis(uint32_t axes);
typedef struct cnri_table_device {
    const char *name, *cls;
    bool host, wanted; /* wanted: a policy is to see its rows */
    int32_t units;
    double idle_watts, busy_watts, mhz; /* as measured; 0: not known */
} cnri_table_device;
typedef struct cnri_table_link {
    int32_t from, to; /* devices */
    double ns_per_byte, ns_fixed;
    cnri_source source;
} cnri_table_link;
typedef struct cnri_table {
    const char *net;
    CNRI_VEC(cnri_table_row) rows;
    CNRI_VEC(cnri_table_node) nodes;
    CNRI_VEC(cnri_table_device) devices;
    CNRI_VEC(cnri_table_link) links;
    const char *policy;          /* the name of the policy that was asked; NULL: none */
    char *notes;                 /* JSON that the policy adds to its answer; NULL */
    char *failure;               /* why its answer was not followed; NULL */
    struct cnri_kept_rows *kept; /* the planner's candidates behind the rows */
} cnri_table;
/* Nanoseconds to bring the output of row a to row b, which reads it: conversion and transfer. */
double cnri_table_between(const cnri_table *t, int32_t a, int32_t b);
void cnri_table_free(cnri_table *t);

/* A policy picks rows for a whole net. Scripts implement it (lua/policy.c). It must be a pure
 * function of the table; several threads may call it. */
typedef struct cnri_policy_answer { /* for one node; blank (row -1, no parts): as by default */
    int32_t row;                    /* of the table */
    int32_t n_parts, axis;          /* axis -1: whichever it can be split along */
    cnri_part parts[8];             /* one: a device, of whose rows the usual rules take one */
} cnri_policy_answer;
typedef struct cnri_policy {
    const char *name, *where;   /* as shown: "fastest.lua", "fastest.lua:3" */
    const char *const *devices; /* devices that it wants rows of; NULL-terminated */
    /* what its plans minimise: "edp", "energy", "time", constant texts; NULL: not declared */
    const char *objective;
    uint8_t print[16]; /* fingerprint of its text and options */
    /* answers: by node, blank. *notes: JSON, for cnri_free. */
    cnr_status (*place)(struct cnri_policy *self, const cnri_table *t, cnri_policy_answer *answers,
                        char **notes, cnr_error *err);
    /* A number of a table that the policy has beside `place`; NaN: it has none. NULL: there are
     * no tables. */
    double (*number)(const struct cnri_policy *self, const char *table, const char *name);
    void (*free)(struct cnri_policy *self);
    atomic_int refs;      /* besides the first */
    atomic_bool reported; /* its error was logged */
} cnri_policy;
cnri_policy *cnri_policy_retain(cnri_policy *policy);
void cnri_policy_release(cnri_policy *policy); /* NULL: does nothing */

typedef struct cnri_plan_options {
    const char *device; /* default device; NULL: best */
    const cnri_placement *placements;
    int32_t n_placements;
    uint64_t memory_bound;         /* of weights as they are, prepared ones and arena; 0: none */
    const char *const *no_rewrite; /* rewrites; "fuse", "alias", "layout" switch planning off */
    const char *const *kernels;    /* "node=kernel", "op=kernel" forced; NULL-terminated */
    uint64_t memory_limit;         /* of what a session takes, bytes; 0: a share of what there is */
    uint64_t hang_ms; /* after which a device's call counts as one that hangs; 0: usual */
    bool deterministic, training; /* training: weights flagged VARIABLE keep changing */
    const cnri_memo *memo;        /* only while planning */
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

typedef enum cnri_step_kind { CNRI_STEP_KERNEL, CNRI_STEP_COPY, CNRI_STEP_LAYOUT } cnri_step_kind;

/* Where a value lives on one device. A value used on several devices has one home each, and one
 * more for each other layout. In an image class, the last dimension is a row of pixels, a channel
 * block is one pixel, and the other dimensions are rows. */
typedef struct cnri_home {
    cnr_value value;
    int32_t device;                 /* index into plan->devices */
    int32_t memory_class, block_of; /* channel block, 0 plain */
    int32_t storage;                /* index into plan->storages; -1: graph constant on the host */
    uint64_t offset, bytes;         /* inside the storage */
    cnr_tensor type;                /* bound shape, block set */
    int32_t first, last;   /* steps between which it is alive; inputs -1, outputs n_steps */
    int32_t alias_of;      /* home whose bytes it shares, -1 */
    uint64_t alias_offset; /* bytes */
    cnr_tensor flat;       /* type with its block hidden: for steps that pass blocks through */
} cnri_home;

/* One allocation of a session: the arena of a class that can be divided, or one image. */
typedef struct cnri_storage {
    int32_t device, memory_class;
    uint64_t bytes;
    int64_t width, height;
    bool constant; /* weights that kernels read plainly: one per plan, not per session */
} cnri_storage;

typedef struct cnri_step {
    cnri_step_kind kind;
    int32_t device, node;     /* node of plan->graph; -1 for copies and conversions */
    const cnr_kernel *kernel; /* NULL: the operator's reference */
    cnr_node view;            /* with epilogue; tensors are those of the homes */
    int32_t n_in, n_out;
    int32_t *in, *out;  /* homes; -1: omitted input */
    int32_t range_axis; /* -1 whole */
    int64_t range_begin, range_end;
    int32_t from, to;       /* copy, layout: homes */
    cnr_input_range region; /* copy: only this part */
    uint32_t prepared;      /* inputs consumed by prepare: bits, see cnri_prepares */
    int32_t prepared_from;
    cnr_space blob_space, workspace_space;
    int32_t workspace; /* home-like: storage and offset */
    uint64_t workspace_offset;
    void *state;    /* kernel's plan state */
    int32_t blob;   /* index into residency; -1 none */
    int32_t *waits; /* steps on other devices that must have finished */
    int32_t n_waits;
    bool extrapolated; /* its time is a simulated one, of figures for another class of operators */
    bool passes;       /* operates element by element in whatever block its tensors have */
    void *view_memory; /* owns the arrays of `view` */
    bool marks;        /* another step waits for this one: an event is recorded behind it */
    uint32_t ranges;   /* axes of output 0 of which the kernel accepts a range: bits */
    int32_t piece_axis;
    int64_t piece; /* under a memory bound: so many rows are computed at a time; 0: all */
} cnri_step;

struct cnr_plan;
/* A weight in a mapped file that kernels read as it is, under a memory bound. */
typedef struct cnri_raw {
    cnr_value value;
    int32_t step;            /* the first that reads it */
    uint64_t bytes, passing; /* passing: in memory at once, if it does not stay */
    bool stays;
} cnri_raw;

/* ---- raw.c ---- */
/* Behind the step, or its piece [begin, end): pages of weights that do not stay are released, those
 * of the next piece read ahead. end 0: all of the step. */
void cnri_raw_release(const struct cnr_plan *plan, const cnri_step *s, int64_t begin, int64_t end);

/* Whether input i is consumed by prepare: the kernel said so, or of a region's step it is one of
 * the constants, from `from` on (0: of no region). */
static inline bool cnri_prepares(uint32_t bits, int32_t from, int32_t i) {
    return (i < 32 && bits >> i & 1) || (from > 0 && i >= from);
}
static inline bool cnri_step_prepares(const cnri_step *s, int32_t i) {
    return cnri_prepares(s->prepared, s->prepared_from, i);
}

/* The nodes that are computed along with the first one: of its chain, or of its region. */
static inline int32_t cnri_n_taken(const cnr_node *n) {
    return n->subgraph ? n->subgraph->n_nodes - 1 : n->n_epilogue;
}
static inline const cnr_node *cnri_taken(const cnr_node *n, int32_t i) {
    return n->subgraph ? n->subgraph->nodes[i + 1].node : n->epilogue[i]->node;
}

/* A dense copy of an encoded weight, for kernels that cannot read the encoding. */
typedef struct cnri_twin {
    cnr_value encoded, dense;
    bool decoded; /* its data is there: memory alone is enough to ask kernels by */
    bool kept; /* read while running, so decoded as long as the plan lives; else only to prepare */
} cnri_twin;

typedef struct cnr_plan {
    struct cnri_kept_plan *keeper; /* entry of the model that made it (run/plans.c); NULL: none */
    cnr_graph *graph;              /* bound and rewritten; weights borrowed from the model's */
    const cnr_device **devices;
    int32_t n_devices;
    CNRI_VEC(cnri_step) steps;
    CNRI_VEC(cnri_home) homes;
    CNRI_VEC(cnri_storage) storages;
    struct cnri_residency *residency;
    CNRI_VEC(cnri_raw) raw;
    uint64_t arena_bytes;  /* of all non-constant storages */
    uint64_t bound_bytes;  /* most bytes alive at once: no plan of this order can take less */
    uint64_t weight_bytes; /* prepared blobs and plain constants if all are resident */
    uint64_t memory_bound, memory_limit, hang_ms; /* as the options have them */
    double flops;                                 /* of a run */
    bool gives_up;         /* calls that hang are given up: a limit, or a fallback, was asked for */
    uint64_t params;       /* learned numbers of the net as it was written, before rewriting */
    cnr_mem *constants;    /* memory of the constant storages, by storage index */
    int32_t *input_homes;  /* of each graph input; -1: nothing reads it */
    int32_t *output_homes; /* of each graph output; -1: a constant */
    CNRI_VEC(cnri_twin) twins;
    CNRI_VEC(cnri_decision) decisions; /* names are the devices' and kernels' own */
    atomic_bool sound;                 /* the weights that it reads have their digests */
    struct cnri_regions *regions;      /* that devices claimed; NULL: none */
    cnri_mapping kept;                 /* the file behind blobs that were prepared before */
    cnri_table *table;                 /* NULL: nobody asked for it */
    CNRI_VEC(cnri_table_link) links;   /* those that its steps copy over */
    CNRI_VEC(cnri_placement) placed;   /* by the policy; `node` is none's */
    int32_t *placed_as;                /* by node: of those, -1 none; NULL: it placed nothing */
    bool policy_failed;                /* so this is the default plan; the table says why */
    bool own_weights; /* it was given some that the model does not have: no other plan stands in for
                         it */
    char *origin;     /* "hit", "miss: ..." or "stale: ..."; NULL: no cache was asked */
} cnr_plan;

/* What no_rewrite may name besides rewrites. */
extern const char *const cnri_plan_steps[];
/* What the net itself asks for where `options` leave it open: metadata "plan.device",
 * "plan.memory_bound" (bytes), "plan.deterministic" ("1"). The device's name stays the graph's. */
void cnri_plan_defaults(const cnr_graph *graph, cnri_plan_options *options);
cnr_status cnri_plan_make(const cnr_graph *graph, cnri_devices *devices,
                          const cnri_plan_options *options, const cnr_tensor *const *input_types,
                          int32_t n_inputs, cnr_plan **out, cnr_error *err);
/* The same on a set that was made for this graph and these options. */
cnr_status cnri_plan_make_on(const cnr_graph *graph, const cnri_device_set *set,
                             const cnri_plan_options *options, const cnr_tensor *const *input_types,
                             int32_t n_inputs, cnr_plan **out, cnr_error *err);
void cnri_plan_free(cnr_plan *plan);
uint64_t cnri_node_macs(const cnr_node *node); /* 0: its operator does not say */
/* The share of the multiplications that are done if weights are read as they are stored. */
double cnri_stored_share(const cnr_node *node);
/* Learned weights of a node's ports that `seen` (by value) does not hold yet; marks them there. */
uint64_t cnri_node_params(const cnr_graph *g, int32_t node, bool *seen);
/* Copies the current value of a variable, which a training plan writes to, to the host. */
cnr_status cnri_plan_fetch(const cnr_plan *plan, cnr_value value, cnr_error *err);

/* ---- arena.c: offsets for blocks alive over [first, last]; tested against brute force ---- */
typedef struct cnri_block {
    uint64_t bytes;
    int32_t first, last;
    uint64_t offset;
} cnri_block;
/* Fills offsets (multiples of alignment); returns the total. */
uint64_t cnri_arena_place(cnri_block *blocks, int32_t n, uint64_t alignment);
uint64_t cnri_arena_bound(const cnri_block *blocks, int32_t n, uint64_t alignment);

/* ---- memo.c ---- */
void cnri_memo_print(const cnr_plan *plan, cnri_text *out);
/* Decisions from what cnri_memo_print wrote; CNR_E_FORMAT. Blobs are the caller's to add. */
cnr_status cnri_memo_parse(cnri_memo *memo, const char *text, cnr_error *err);
void cnri_memo_free(cnri_memo *memo);

/* ---- tuning.c: the keys of a device, and of the way from one to another ---- */
cnr_status cnri_tuning_device_key(const cnri_device *d, char key[CNRI_TUNING_KEY], cnr_error *err);
cnr_status cnri_tuning_link_key(const cnri_device *from, const cnri_device *to,
                                char key[CNRI_TUNING_KEY], cnr_error *err);

/* ---- record.c ---- */
/* Kernel "": any of that key. NULL: nothing is on record. */
const cnri_timed *cnri_tuning_find(const cnri_tuning *t, const char *key, const char *kernel);
/* Whether something of that key was timed. */
bool cnri_tuning_knows(const cnri_tuning *t, const char *key);
/* Replaces what is known of the same key and kernel. */
cnr_status cnri_tuning_set(cnri_tuning *t, const char *key, const char *kernel, cnri_cost cost,
                           cnr_error *err);
/* A JSON object a line. Parsing adds rows; what is malformed is skipped: it is only advice. */
void cnri_tuning_print(const cnri_tuning *t, cnri_text *out);
cnr_status cnri_tuning_parse(cnri_tuning *t, const char *text, cnr_error *err);

/* sound.c: compares the weights that the plan will read from a file with their fingerprints, or if
 * `exact` with their digests. To be called before anything runs. */
cnr_status cnri_plan_verify_weights(cnr_plan *plan, bool exact, int32_t threads, cnr_error *err);
/* A fingerprint of that data in 32 hex digits: a stored plan that has it need not check digests
 * again. "": the plan reads no file's data. False: out of memory. */
bool cnri_plan_reads(const cnr_plan *plan, char print[33]);

/* ---- residency.c: prepared blobs under a bound; largest stay, the rest come and go ---- */
/* The blob for step, prepared and on its device; hold until release. Thread-safe. */
cnr_status cnri_residency_acquire(cnr_plan *plan, int32_t step, cnr_stream *stream, cnr_mem **out,
                                  cnr_error *err);
void cnri_residency_release(cnr_plan *plan, int32_t step);
/* False: the blob may go when released, so work that uses it must have finished by then. */
bool cnri_residency_stays(const cnr_plan *plan, int32_t step);
/* Under a memory bound: which weights stay, and how the others come. */
void cnri_residency_print(const cnr_plan *plan, bool json, cnri_text *out);
/* Makes everything that may stay resident now, so the first run is like the others. */
cnr_status cnri_residency_warm(cnr_plan *plan, cnr_error *err);
/* Weight `value` changed: its blobs are made again in place, or dropped. */
cnr_status cnri_residency_renew(cnr_plan *plan, cnr_value value, cnr_error *err);
/* Whether some blob was prepared from the weight. */
bool cnri_residency_uses(const cnr_plan *plan, cnr_value value);
/* prepared: made by a kernel; kept: taken over from a memo. */
typedef struct cnri_residency_stats {
    uint64_t now, peak, prepared, evicted, kept;
} cnri_residency_stats;
void cnri_residency_stats_of(const cnr_plan *plan, cnri_residency_stats *out);
/* Name and size of blob `index`; false past the end. The name lives as long as the plan. */
bool cnri_residency_blob(const cnr_plan *plan, int32_t index, const char **name, uint64_t *bytes);
bool cnri_residency_kept(const cnr_plan *plan, int32_t index); /* the blob is another process's */
/* A print of the constants that a blob is made of, zeros where they are not known; false: past the
 * end. */
bool cnri_residency_sources(const cnr_plan *plan, int32_t index, uint8_t print[16]);
/* The bytes of a blob on the host, prepared if need be; valid until the next call for this plan.
 * *buffer holds them if the device has no host memory: NULL at first; the caller frees it. */
cnr_status cnri_residency_read(cnr_plan *plan, int32_t index, void **buffer, const void **data,
                               cnr_error *err);

/* names.c: names of a step; the texts belong to the plan. */
typedef struct cnri_step_names {
    const char *node, *op, *kernel, *device;
} cnri_step_names;
cnri_step_names cnri_step_names_of(const cnr_plan *plan, int32_t step);

#endif
