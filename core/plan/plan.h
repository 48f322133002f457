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

#include "core/graph/graph.h"

typedef struct cnri_part { /* one device's share of a layer */
    char device[32];
    double ratio; /* of the output range on `axis`; ratios of a layer sum to 1 */
} cnri_part;

/* The kernel that every operator has: its own plain C, where a kernel's name is wanted. */
#define cnri_reference_name "reference"

#define CNRI_PLACE_PREFIX "place." /* of metadata with the net's own wishes; see wish.c */
typedef struct cnri_placement { /* a wish for one node, from the script or a policy */
    char *node; /* its name; "*": every node */
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
    const cnri_device **at; int32_t n, room; /* open; the default first */
    int32_t fallback, host; /* indices; host -1: there is none */
    cnri_wishes own;        /* the graph's */
    cnri_devices *devices;  /* where they come from */
} cnri_device_set;
/* Without an error to be freed. */
cnr_status cnri_device_set_make(cnri_device_set *set, cnri_devices *devices,
                                const cnr_graph *graph, const struct cnri_plan_options *options,
                                cnr_error *err);
int32_t cnri_device_set_find(const cnri_device_set *set, const char *name); /* -1: not in it */
void cnri_device_set_free(cnri_device_set *set);

/* What was chosen for one part of one node: enough to ask one kernel once. */
typedef struct cnri_decision {
    int32_t node, part, n_chain;
    int32_t way; /* bit 0: not in the layout that was offered; bit 1: encoded inputs were decoded */
    const char *device, *kernel; /* kernel "": the reference */
    uint32_t version; /* of the kernel */
} cnri_decision;

/* Where a policy wanted a node. */
typedef struct cnri_placed { int32_t node; cnri_placement where; } cnri_placed;

/* A blob that was prepared before; `data` stays where it is as long as the plan lives. */
typedef struct cnri_kept_blob {
    const char *name;
    const void *data;
    uint64_t bytes;
    uint8_t print[16]; /* fingerprint, looked at when the blob is wanted */
} cnri_kept_blob;

/* memo.c: what another process decided and prepared for the same graph, devices and options.
 * Kernels are asked all the same, so a wrong memo is found out: planning then fails with
 * CNR_E_VERSION. */
typedef struct cnri_memo {
    CNRI_VEC(cnri_decision) decisions; /* by node, then part */
    CNRI_VEC(cnri_placed) placed;      /* by node: what a policy wished */
    CNRI_VEC(cnri_kept_blob) blobs;    /* in the order of cnri_residency_blob */
    const char *reads; /* of cnri_plan_reads; NULL: not said */
    char *text; /* behind the names */
} cnri_memo;

/* tuning.c: how long kernels were seen to take. A key stands for a node with what follows it, its
 * types and its device, so that it holds in any net. */
enum { CNRI_TUNING_KEY = 33 };
typedef enum cnri_source { CNRI_GUESSED, CNRI_ESTIMATED, CNRI_MEASURED } cnri_source;
typedef struct cnri_cost { /* of a kernel, once; 0: not known */
    double ns, rest; /* rest: of ns, by other kernels, for what this one leaves of the chain */
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
typedef struct cnri_timed { char key[CNRI_TUNING_KEY], kernel[96]; cnri_cost cost; } cnri_timed;
/* Fills costs[i] with what kernel i of n takes on `segment`, a net of that node and what follows it; its
 * ns <= 0: it does not take it. */
typedef cnr_status (*cnri_measure_fn)(void *arg, const cnr_graph *segment, const char *device,
                                      const char *const *kernels, int32_t n, cnri_cost *costs,
                                      cnr_error *err);
typedef struct cnri_tuning {
    CNRI_VEC(cnri_timed) rows;
    cnri_measure_fn measure; /* asked where rows say nothing; NULL: nobody is */
    void *arg;
} cnri_tuning;

/* ---- table.c: all rows of a net, for whoever looks at them and for policies of the whole net.
 *
 *   nodes    conv1: rows 0..2          relu1: rows 3..4         (of the net as it is planned)
 *   rows     cpu gemm, takes 2 | cpu direct, takes 2 | opencl:0 ... | cpu relu | ...
 *   links    cpu -> opencl:0: so much a byte
 *
 * What a policy sees is in here and nowhere else: record, estimates, guesses, and constants of the net
 * and the devices, so that a plan's identity covers it. ---- */
typedef struct cnri_table_row {
    int32_t node, device, takes, score; /* takes: nodes that it computes; score 0: the reference */
    const char *kernel, *layout_in, *layout_out, *encodings;
    cnri_cost cost;        /* of these nodes; ns is there, if only guessed */
    double guess;          /* ns, whatever is known */
    uint64_t bytes, flops; /* inputs, weights and outputs; a multiply-accumulate is two */
    bool splits;           /* it can compute ranges */
    bool extrapolated;     /* a simulated time, of figures for another class of operators */
    const char *by;        /* who took it; NULL: nobody */
    double share;          /* of the node, if it was taken */
} cnri_table_row;
typedef struct cnri_table_node {
    const char *name, *op;
    int32_t first, n_rows;
    const int32_t *inputs; int32_t n_inputs; /* nodes that compute them; -1: none does */
    uint64_t out_bytes, flops;
    uint32_t axes;      /* along which it can be split */
    int64_t pieces;     /* into which, along the usual one of them (cnri_usual_axis); 1: into none */
    const char *wished; /* where somebody placed it by hand; NULL: nobody did */
    const char *forced; /* the kernel that the options ask for; NULL */
    const char *with;   /* the node that is computed along with; NULL: by itself */
} cnri_table_node;
/* Of axes the one that is taken unasked: channels, else the first there is; -1: there is none. */
int32_t cnri_usual_axis(uint32_t axes);
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
    const char *policy;   /* who was asked; NULL: nobody */
    char *notes;          /* JSON: what it shows beside its answer; NULL */
    char *failure;        /* why its answer was not followed; NULL */
    struct cnri_kept_rows *kept; /* what rows are in the planner */
} cnri_table;
/* What it takes to bring the output of row a to row b, which reads it: conversion, transfer. */
double cnri_table_between(const cnri_table *t, int32_t a, int32_t b);
/* alone.c: what the net takes on that device, and what that can't run, on the first other one that can. */
cnr_status cnri_table_alone(const cnri_table *t, int32_t device, cnri_cost *out, cnr_error *err);
void cnri_table_free(cnri_table *t);
/* For people, or an object a row and one at the end; node NULL: all. */
cnr_status cnri_table_print(const cnri_table *t, const char *node, bool json, cnri_text *out,
                            cnr_error *err);
const char *cnri_source_name(cnri_source source); /* "measured" */
const char *cnri_row_why(const cnri_table *t, int32_t row); /* "": it was not taken */

/* Whoever picks rows of a whole net: a file of another room, to which plan/ has this callback. It must be
 * a pure function of the table, and may be asked by several threads. */
typedef struct cnri_policy_answer { /* for one node; blank (row -1, no parts): as by default */
    int32_t row;             /* of the table */
    int32_t n_parts, axis;   /* axis -1: whichever it can be split along */
    cnri_part parts[8];      /* one: a device, of whose rows the usual rules take one */
} cnri_policy_answer;
typedef struct cnri_policy {
    const char *name, *where;   /* as shown: "fastest.lua", "fastest.lua:3" */
    const char *const *devices; /* of which it wants rows; NULL-terminated */
    const char *objective;      /* what its plans are for: "edp", "energy", "time", which stay; NULL: it doesn't say */
    uint8_t print[16];          /* of its text and options */
    /* answers: by node, blank. *notes: JSON, for cnri_free. */
    cnr_status (*place)(struct cnri_policy *self, const cnri_table *t, cnri_policy_answer *answers,
                        char **notes, cnr_error *err);
    void (*free)(struct cnri_policy *self);
    atomic_int refs; /* besides the first */
    atomic_bool told; /* its error */
} cnri_policy;
cnri_policy *cnri_policy_hold(cnri_policy *policy);
void cnri_policy_let_go(cnri_policy *policy); /* NULL is nothing */

typedef struct cnri_plan_options {
    const char *device;              /* default device; NULL: best */
    const cnri_placement *placements;
    int32_t n_placements;
    uint64_t memory_bound;           /* of prepared weights, bytes; 0: none */
    const char *const *no_rewrite;   /* rewrites; "fuse", "alias", "layout" switch planning off */
    const char *const *kernels;      /* "node=kernel", "op=kernel" forced; NULL-terminated */
    uint64_t memory_limit;           /* of what a session takes, bytes; 0: a share of what there is */
    bool deterministic, training;    /* training: weights flagged VARIABLE keep changing */
    const cnri_memo *memo;           /* only while planning */
    cnri_tuning *tuning;             /* the same; looked at unless deterministic; NULL: none */
    const char *const *devices;      /* of which rows are made, besides; the first is where nodes go by
                                        default if `device` says nothing; NULL-terminated; NULL */
    cnri_policy *policy;             /* NULL: rules alone */
    bool candidates;                 /* the plan keeps its table */
    const char *const *fallback;     /* devices that are left for when this one fails; NULL-terminated */
    bool fell;                       /* `device` is one of those: the net's own wishes count no more */
    uint32_t stores;                 /* CNR_KERNEL_F16, _BF16, _F16_MATH: kernels that do are chosen from */
} cnri_plan_options;

typedef enum cnri_step_kind { CNRI_STEP_KERNEL, CNRI_STEP_COPY, CNRI_STEP_LAYOUT } cnri_step_kind;

/* Where a value lives on one device. A value used on several devices has one home each, and one
 * more for each other layout. In an image class, the last dimension is a row of pixels, a channel
 * block is one pixel, and the other dimensions are rows. */
typedef struct cnri_home {
    cnr_value value;
    int32_t device;        /* index into plan->devices */
    int32_t memory_class, block_of; /* channel block, 0 plain */
    int32_t storage;       /* index into plan->storages; -1: graph constant on the host */
    uint64_t offset, bytes; /* inside the storage */
    cnr_tensor type;       /* bound shape, block set */
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
    int32_t *in, *out;        /* homes; -1: omitted input */
    int32_t range_axis;       /* -1 whole */
    int64_t range_begin, range_end;
    int32_t from, to;         /* copy, layout: homes */
    cnr_region region;        /* copy: only this part */
    uint32_t prepared;        /* inputs consumed by prepare */
    cnr_space blob_space, workspace_space;
    int32_t workspace;        /* home-like: storage and offset */
    uint64_t workspace_offset;
    void *state;              /* kernel's plan state */
    int32_t blob;             /* index into residency; -1 none */
    int32_t *waits;           /* steps on other devices that must have finished */
    int32_t n_waits;
    bool extrapolated; /* its time is a simulated one, of figures for another class of operators */
    bool passes; /* operates element by element in whatever block its tensors have */
    void *room;  /* the memory behind `view` */
    bool marks;  /* another step waits for this one: an event is recorded behind it */
} cnri_step;

/* A dense copy of an encoded weight, for kernels that cannot read the encoding. */
typedef struct cnri_twin {
    cnr_value encoded, dense;
    bool decoded; /* its data is there: room alone is enough to ask kernels by */
    bool kept; /* read while running, so decoded as long as the plan lives; else only to prepare */
} cnri_twin;

typedef struct cnr_plan {
    struct cnri_kept_plan *keeper; /* the model's that made it (run/plans.c); NULL: none */
    cnr_graph *graph; /* bound and rewritten; weights borrowed from the model's */
    const cnr_device **devices; int32_t n_devices;
    CNRI_VEC(cnri_step) steps;
    CNRI_VEC(cnri_home) homes;
    CNRI_VEC(cnri_storage) storages;
    struct cnri_residency *residency;
    uint64_t arena_bytes;  /* of all non-constant storages */
    uint64_t bound_bytes;  /* most bytes alive at once: no plan of this order can take less */
    uint64_t weight_bytes; /* prepared blobs and plain constants if all are resident */
    uint64_t memory_bound, memory_limit; /* as the options have them */
    uint64_t params;       /* learned numbers of the net as it was written, before rewriting */
    cnr_mem *constants;    /* memory of the constant storages, by storage index */
    int32_t *input_homes;  /* of each graph input; -1: nothing reads it */
    int32_t *output_homes; /* of each graph output; -1: a constant */
    CNRI_VEC(cnri_twin) twins;
    CNRI_VEC(cnri_decision) decisions; /* names are the devices' and kernels' own */
    atomic_bool sound; /* the weights that it reads have their digests */
    cnri_mapping kept; /* the file behind blobs that were prepared before */
    cnri_table *table; /* NULL: nobody asked for it */
    CNRI_VEC(cnri_table_link) links; /* those that its steps copy over */
    CNRI_VEC(cnri_placement) placed; /* by the policy; `node` is none's */
    int32_t *placed_as;              /* by node: of those, -1 none; NULL: it placed nothing */
    bool policy_failed;              /* so this is the default plan; the table says why */
    bool own_weights;  /* it was given some that the model does not have: no other plan stands in for it */
    char *origin;      /* "hit", "miss: ..." or "stale: ..."; NULL: no cache was asked */
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
                             const cnri_plan_options *options,
                             const cnr_tensor *const *input_types, int32_t n_inputs,
                             cnr_plan **out, cnr_error *err);
void cnri_plan_free(cnr_plan *plan);
uint64_t cnri_node_macs(const cnr_node *node); /* 0: its operator does not say */
/* The part of the multiplications that are done where weights are read as they are stored. */
double cnri_stored_part(const cnr_node *node);
/* Of a kernel's step, of its node alone, whatever is fused behind it; of a split one the part that the
 * step computes. as_stored: only by the numbers that an encoded weight has. */
double cnri_step_macs(const cnr_plan *plan, const cnri_step *s, bool as_stored);
/* Learned weights of a node's ports that `seen` (by value) does not hold yet; marks them there. */
uint64_t cnri_node_params(const cnr_graph *g, int32_t node, bool *seen);
/* In training a plan writes to its variables: the values as they are now, on the host. */
cnr_status cnri_plan_fetch(const cnr_plan *plan, cnr_value value, cnr_error *err);
/* A table for people (`show`), or one JSON object a node and one for the net. */
void cnri_plan_print(const cnr_plan *plan, bool json, cnri_text *out);

/* ---- arena.c: offsets for blocks alive over [first, last]; tested against brute force ---- */
typedef struct cnri_block { uint64_t bytes; int32_t first, last; uint64_t offset; } cnri_block;
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

/* sound.c: compares what the plan will read of a file with its fingerprints, or `exact`, with its
 * digests. Before anything runs. */
cnr_status cnri_plan_sound(cnr_plan *plan, bool exact, int32_t threads, cnr_error *err);
/* A fingerprint of that data, 32 digits: who kept it when the digests were right can do without them.
 * "": no file's data is read. False: out of memory. */
bool cnri_plan_reads(const cnr_plan *plan, char print[33]);

/* ---- residency.c: prepared blobs under a bound; largest stay, the rest come and go ---- */
/* The blob for step, prepared and on its device; hold until release. Thread-safe. */
cnr_status cnri_residency_acquire(cnr_plan *plan, int32_t step, cnr_stream *stream, cnr_mem **out,
                                  cnr_error *err);
void cnri_residency_release(cnr_plan *plan, int32_t step);
/* False: the blob may go when released, so work that uses it must have finished by then. */
bool cnri_residency_stays(const cnr_plan *plan, int32_t step);
/* Makes everything that may stay resident now, so the first run is like the others. */
cnr_status cnri_residency_warm(cnr_plan *plan, cnr_error *err);
/* Weight `value` changed: its blobs are made again in place, or dropped. */
cnr_status cnri_residency_renew(cnr_plan *plan, cnr_value value, cnr_error *err);
/* Whether some blob is made of it. */
bool cnri_residency_uses(const cnr_plan *plan, cnr_value value);
/* prepared: made by a kernel; kept: taken over from a memo. */
typedef struct cnri_residency_stats {
    uint64_t now, peak, prepared, evicted, kept;
} cnri_residency_stats;
void cnri_residency_stats_of(const cnr_plan *plan, cnri_residency_stats *out);
/* Name and size of blob `index`; false past the end. The name lives as long as the plan. */
bool cnri_residency_blob(const cnr_plan *plan, int32_t index, const char **name, uint64_t *bytes);
/* Its bytes on the host, made if need be; good until the next call for this plan. *room is where
 * they are when the device has no host memory: NULL at first, cnri_free at last. */
cnr_status cnri_residency_read(cnr_plan *plan, int32_t index, void **room, const void **data,
                               cnr_error *err);

/* print.c: what a step is called: texts of the plan's. */
typedef struct cnri_step_names { const char *node, *op, *kernel, *device; } cnri_step_names;
cnri_step_names cnri_step_names_of(const cnr_plan *plan, int32_t step);
/* What a copy moves, from which device to which. False: the step is none. */
typedef struct cnri_transfer_row {
    const char *value, *from, *to;
    uint64_t bytes;
    double ns; /* as expected, by what the record says of the link or by a guess */
    cnri_source source;
} cnri_transfer_row;
bool cnri_step_transfer(const cnr_plan *plan, int32_t step, cnri_transfer_row *out);

#endif
