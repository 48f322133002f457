/* check: every kernel against its operator's reference, on nodes drawn from the operator's schema.
 *
 *     draft --build--> case --(the kernel accepts)--> reference, bounds --> trials on the device
 *
 * A draft is plain numbers and can be changed and copied; a case is a node with data on the host.
 * All is decided by (seed, kernel, number of the case), so that one case can be run again alone. */
#ifndef CNRI_CHECK_H
#define CNRI_CHECK_H

#include "host/host.h"

struct cnri_check_test;
struct cnr_plan;

/* Most ports, and most operators behind a node; most operators drawn behind one. */
enum {
    CNRI_CHECK_PORTS = 40,
    CNRI_CHECK_ATTRS = 40,
    CNRI_CHECK_LIST = 10,
    CNRI_CHECK_CHAIN = 8,
    CNRI_CHECK_DRAWN = 3
};

/* ---- dice.c: splitmix64 ---- */
/* State of random numbers (splitmix64) */
typedef struct cnri_dice {
    uint64_t state;
} cnri_dice;
/* Returns the next 64 random bits; *d advances. */
uint64_t cnri_dice_next(cnri_dice *d);
int64_t cnri_dice_below(cnri_dice *d, int64_t n); /* a number from 0 to n - 1; 0 for n < 1 */
/* True with that probability in percent. */
bool cnri_dice_chance(cnri_dice *d, int32_t percent);
/* Random numbers for case `number` of something named: the same seed, name and number give the
 * same. */
cnri_dice cnri_dice_of(uint64_t seed, const char *name, int64_t number);

/* ---- draft.c, mutate.c ---- */
/* The port of input i, which may be one of many of the last port; copied to `room` if necessary. */
const cnr_port *cnri_check_port(const cnr_op *op, int32_t i, cnr_port *room);
/* An attribute's value in a draft. */
typedef struct cnri_draft_attr {
    bool given;
    int32_t n;
    int64_t i, ints[CNRI_CHECK_LIST];
    double f, floats[CNRI_CHECK_LIST];
} cnri_draft_attr;

/* The text that a drawn attribute stands for: one of the schema's examples. */
const char *cnri_draft_string(const cnr_attr_spec *row, const cnri_draft_attr *a);

/* Kinds of values of an input. */
typedef enum cnri_values {
    CNRI_VALUES_SIGNED, /* around 0 */
    CNRI_VALUES_POSITIVE,
    CNRI_VALUES_SPARSE, /* mostly 0 */
    CNRI_VALUES_WIDE,   /* the whole range of an integer type */
    CNRI_VALUES_MIDDLE, /* a single number: 0, or the middle of an unsigned type */
    CNRI_VALUES_LIST    /* the list `list`: a shape or axes */
} cnri_values;

/* An input of a draft. */
typedef struct cnri_draft_input {
    bool present;
    bool made; /* a weight whose shape the operator's `parameters` gives */
    bool constant, variable;
    int32_t dtype, rank;
    int64_t dim[CNR_MAX_RANK];
    cnri_values values;
    int64_t list[CNRI_CHECK_LIST];
} cnri_draft_input;

/* A node that is tried: attributes and inputs, before anything is inferred. */
typedef struct cnri_draft {
    const cnr_op *op;
    int32_t n_in, n_out;
    cnri_draft_attr attrs[CNRI_CHECK_ATTRS];
    cnri_draft_input in[CNRI_CHECK_PORTS];
    uint64_t data_seed, chain_seed; /* chain_seed 0: no operators behind the node */
    bool specials;    /* floats include NaN, infinities, denormals and -0, except in weights */
    int64_t elements; /* most elements of input 0 */
    bool constants;   /* all inputs but the first are usually constants */
    bool known;       /* results that infer computes are wanted; kernels never see such nodes */
} cnri_draft;

/* What the last refusal named: an input, an attribute, numbers and types that suggest what would
 * fit. */
typedef struct cnri_hints {
    int32_t n, input, attr; /* n: entries; input, attr: the first ones named, -1: none */
    uint64_t inputs, attrs; /* all that were named, as bits */
    int64_t at[8];
    /* the numbers behind the words "want", "axis", "rank" of the refusal; -1: none */
    int64_t want, axis, rank;
    bool constant; /* a constant was requested */
    bool taken;    /* the operator accepted the draft, and a kernel refused it */
    int32_t n_types, types[6];
    uint64_t text; /* digest of the words alone */
} cnri_hints;
/* Finds names and numbers in the text of a refusal. */
void cnri_hints_read(cnri_hints *h, const cnr_op *op, const char *text);

/* Draws only the attributes, by d->op and d->in[0]. */
void cnri_draft_attrs(cnri_draft *d, cnri_dice *dice);
/* Draws a new node; small: few elements, as gradients want. */
void cnri_draft_fresh(cnri_draft *d, const cnr_op *op, bool small, cnri_dice *dice);
/* Changes the draft. True: only what the hints name was changed. */
bool cnri_draft_mutate(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints);

/* ---- case.c: a node with everything it needs on the host ---- */
typedef struct cnri_link { /* an operator of the chain behind the node */
    cnr_node node;
    cnr_attr **attrs;
    cnr_tensor in[2], out;
    const cnr_tensor *inputs[CNRI_CHECK_PORTS], *outputs[1];
    /* Port: input that the value comes in by; other: input with the other operand, -1: none. */
    int32_t port, other;
} cnri_link;

/* A node with data, and the results of its reference. */
typedef struct cnri_case {
    cnr_node node;
    cnr_attr **attrs;
    cnr_tensor in[CNRI_CHECK_PORTS], out[CNRI_CHECK_PORTS]; /* out: results of the reference */
    const cnr_tensor *inputs[CNRI_CHECK_PORTS], *outputs[CNRI_CHECK_PORTS];
    /* Dimensions of the outputs before any were lowered. */
    int64_t most[CNRI_CHECK_PORTS][CNR_MAX_RANK];
    bool listed[CNRI_CHECK_PORTS];        /* the input is a list, which may decide shapes */
    cnr_tensor encoded[CNRI_CHECK_PORTS]; /* data NULL: this input is dense */
    char encoding_fault[256];             /* the decoded data differs too much from the original */
    int32_t n_chain;                      /* number of operators behind it */
    cnri_link chain[CNRI_CHECK_CHAIN];
    void *known[CNRI_CHECK_PORTS]; /* of outputs: data that infer gave, where that is wanted */
    /* CNR_KERNEL_F16_MATH or _BF16_MATH if whoever is judged by it multiplies so, else 0 */
    uint32_t halves;
    bool dense;   /* encoded inputs are given decoded */
    bool lenient; /* judged even where results are no numbers, or hardly hang on the inputs */
    /* > 0: the reference is computed for n_parts ranges on part_axis alone */
    int32_t n_parts, part_axis;
    int64_t parts[3][2];
    bool judged; /* the reference of the node has run */
    /* Number of chained operators whose references have run; -1: none were asked. */
    int32_t judged_links;
    double *base;        /* bound[0] of the node alone */
    bool specials;       /* as in the draft */
    bool spreads, skips; /* the kernel has CNR_KERNEL_SPREADS_NAN or CNR_KERNEL_SKIPS_ZEROS */
    /* If it spreads: positions of output 0, of all channels, that a NaN may spread to. */
    uint8_t *near_special;
    /* If it skips: output 0 with ordinary numbers in place of NaN and infinities. */
    cnr_tensor skipped;
    double *bound[CNRI_CHECK_PORTS]; /* bound by element, for each output of the last operator */
    /* Output 0 of kernel `first_by` in its first run, with that many chained operators. */
    void *first;
    const cnr_kernel *first_by;
    int32_t first_links, first_block; /* first_block: channels in a block of its input 0 */
    const char *fault;                /* what `parameters` said wrong; NULL: nothing */
} cnri_case;

/* The most that an encoding with default options may lose, relative to the weights' root mean
 * square. Dropping half of the weights is 0.71; signs with a scale are 0.60 for normally
 * distributed weights. */
#define CNRI_ENCODING_MOST_LOST 0.65
/* Limits that keep a case within milliseconds. */
#define CNRI_CHECK_MOST_BYTES ((uint64_t)4 << 20)
#define CNRI_CHECK_MOST_WORK ((uint64_t)6 << 20)

/* Builds attributes, parameters, shapes and data. Fails if the operator's infer does. bare:
 * without data except lists and constants, for callers that only ask. */
cnr_status cnri_case_build(cnri_case *c, const cnri_draft *d, bool bare, cnr_error *err);
/* Draws a number of operators by the seed and adds as many behind the node as fit, up to it; none
 * behind a node with several outputs or dynamic sizes. */
void cnri_case_chain(cnri_case *c, uint64_t seed);
/* Prepares the weights as kernel k stores them and the products as it computes them; NULL:
 * unchanged, in f32. */
void cnri_case_round(cnri_case *c, const cnr_kernel *k);
/* cnri_case_round, and also encodes the inputs as the kernel reads them. */
cnr_status cnri_case_encode(cnri_case *c, const cnr_kernel *k, cnr_error *err);
void cnri_case_free(cnri_case *c); /* frees what the case owns and zeroes it */
void cnri_case_type(const cnr_tensor *t, cnri_text *out); /* appends "f32[1,3,8,8]" */
/* Appends "conv f32[1,3,8,8] ... pads=1; relu". */
void cnri_case_text(const cnri_case *c, cnri_text *out);
/* Output `output` of the node (links 0), or of the chained operator number `links`. */
static inline cnr_tensor *cnri_case_out(cnri_case *c, int32_t links, int32_t output) {
    return links ? &c->chain[links - 1].out : &c->out[output];
}

/* ---- values.c ---- */
/* True for a type of floats. */
bool cnri_dtype_floats(int32_t dtype);
/* Distance from 1 to the next number of a type of floats; 0 for integers. */
double cnri_dtype_epsilon(int32_t dtype);
/* Fills a tensor with random values of a kind; of CNRI_VALUES_LIST with those of `list`, in
 * turn. */
void cnri_values_fill(cnr_tensor *t, cnri_values values, const int64_t *list, cnri_dice *dice);
/* Replaces a few elements of a float tensor, in place, by NaN, infinities, denormals and -0;
 * nothing for other types. */
void cnri_values_specials(cnr_tensor *t, cnri_dice *dice);
/* Element i as a number; floats, which nearly all are, without a call. */
static inline double cnri_number_at(const cnr_tensor *t, int64_t i) {
    return t->dtype == CNR_f32 ? (double)((const float *)t->data)[i]
                               : cnri_element(t->dtype, t->data, i);
}
/* Replaces special values: denormals by 0; NaN and infinities by drawn numbers. */
void cnri_values_flush(cnr_tensor *t);
/* Replaces NaN and infinities of a float tensor by ordinary random numbers, in place. */
void cnri_values_ordinary(cnr_tensor *t, cnri_dice *dice);
/* Converts between plain layout and channel blocks; `to` must differ from `from`. */
void cnri_values_block(const cnr_tensor *type, const void *from, int32_t from_block, void *to,
                       int32_t to_block);

/* ---- ways.c: in what ways the core may ask for a node ---- */
/* Alignment of ranges on an axis of output 0; 0: the core never asks for ranges there. */
int64_t cnri_ways_alignment(const cnr_node *node, int32_t axis);
/* Divides an extent into ranges cuts[k] to cuts[k + 1]. Returns their number; 0: it is too
 * short. */
int32_t cnri_ways_cut(int64_t extent, int64_t step, int64_t cuts[4]);
/* The part of an input that a range of output 0 may read; axis -1: all. */
cnr_input_range cnri_ways_region(const cnr_node *node, int32_t input, int32_t axis, int64_t begin,
                                 int64_t end);
/* True if the output may use the input's bytes. */
bool cnri_ways_in_place(const cnr_node *node, int32_t input, int32_t output);

/* ---- judge.c ---- */
/* Runs the operator's reference on the tensors' memory, with a workspace. */
cnr_status cnri_judge_call(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
/* Runs the references of the node and of the first `links` operators behind it; fills outputs
 * and bounds. */
cnr_status cnri_judge_reference(cnri_case *c, int32_t links, uint64_t seed, cnr_error *err);
/* True if the node's sums of products have a bound so large that nearly any value lies within
 * it, as in a sequence whose steps amplify errors. */
bool cnri_judge_is_chaotic(const cnri_case *c);
/* True if `got` (dense, plain) agrees with output `output` behind `links` operators; else `why`
 * says where not. axis >= 0: compares only [begin, end) on that axis. */
bool cnri_judge(cnri_case *c, int32_t links, int32_t output, const cnr_tensor *got, int32_t axis,
                int64_t begin, int64_t end, cnri_text *why);

/* ---- ask.c, trial.c: one kernel on one device ---- */
/* One case as one kernel on one device sees it. */
typedef struct cnri_trial {
    const cnr_device *device;
    const cnr_kernel *kernel;
    cnri_case *c;
    cnr_node node; /* as the kernel sees it */
    int32_t links; /* number of chained operators that it computes */
    int32_t n_in, n_out;
    cnr_tensor in[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN], out[CNRI_CHECK_PORTS];
    const cnr_tensor *inputs[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN], *outputs[CNRI_CHECK_PORTS];
    /* Where the inputs' data comes from. */
    const cnr_tensor *host[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN];
    /* As the kernel sees them: without data that is computed later. */
    cnri_link behind[CNRI_CHECK_CHAIN];
    cnr_epilogue links_of[CNRI_CHECK_CHAIN];
    const cnr_epilogue *epilogue[CNRI_CHECK_CHAIN];
    int32_t in_block[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN];
    int32_t in_class[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN];
    int32_t out_block[CNRI_CHECK_PORTS], out_class[CNRI_CHECK_PORTS];
    /* Offsets in bytes of these within an arena; rounded down to the memory's alignment. */
    uint64_t in_at[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN], out_at[CNRI_CHECK_PORTS], work_at;
    cnr_accept answer;
    /* Of the last run: the kernel can compute ranges; proper ranges were computed. */
    bool offers_ranges, ran_ranges;
} cnri_trial;

/* Asks the kernel as a planner does. False: it refuses; `why` (static) says why if that is
 * known. */
bool cnri_trial_ask(cnri_trial *t, const cnr_device *device, const cnr_kernel *kernel, cnri_case *c,
                    cnri_dice *dice, const char **why);
/* cnri_trial_ask with a neighbour of input 0 that offers blocks of `offer` channels; 0: plain.
 * False: refused. */
bool cnri_trial_ask_for(cnri_trial *t, const cnr_device *device, const cnr_kernel *kernel,
                        cnri_case *c, int32_t offer, const char **why);
/* Draws the offsets, 0 to 4095 bytes, at which inputs, outputs and workspace lie in memory. */
void cnri_trial_scatter(cnri_trial *t, cnri_dice *dice);
/* Appends the layouts, unless all are plain: " [in 0: block 4, image2d; ...]". */
void cnri_trial_text(const cnri_trial *t, cnri_text *out);
/* Runs the kernel in every way; `ranges`: also in ranges. False: `why` says what was wrong. */
bool cnri_trial_run(cnri_trial *t, bool ranges, cnri_text *why);
/* Returns the least milliseconds of several runs; negative: it failed. */
double cnri_trial_bench(cnri_trial *t, cnri_text *why);

/* ---- guarded.c ---- */
/* Gives kernels of the plan's steps guarded workspaces in place of the plan's: a write outside
 * one fails the step. One plan for each process. False: out of memory. */
bool cnri_guard_workspaces(struct cnr_plan *plan);
/* Gives all steps their own kernels back. */
void cnri_unguard_workspaces(void);

/* ---- promise.c, stand.c: what an operator's descriptor says of it, held against its reference
 * ---- */
/* Calls X for each promise of an operator's descriptor. */
/* clang-format off */
#define CNRI_PROMISE_LIST(X) \
    X(REFERENCE, "reference")  /* writes all of its outputs, nothing else, always the same */ \
    X(RANGES, "ranges")        /* ranges of the reference equal the same parts of the whole */ \
    X(SPLIT, "split_axes")     /* a range reads no more than its region */ \
    X(IN_PLACE, "in place")    /* an output may use an input's bytes */ \
    X(CONSTANT, "constant")    /* what infer computes is what the reference computes */ \
    X(ALIAS, "views")          /* views and joins are the same bytes */ \
    X(APPLY, "apply_f32")      /* apply_f32 equals the reference */ \
    X(AFFINE, "channel_affine") X(LINEAR, "linear in weights") X(PASS, "pass") \
    X(ADDS, "adds") \
    X(PARAMETERS, "parameters") /* infer takes the weights that it shapes, and they begin well */ \
    X(COST, "cost")             /* a node with weights costs something */ \
    X(GRADIENT, "gradient")    /* the gradient hook agrees with differences */
/* clang-format on */

/* What an operator may promise. */
typedef enum cnri_promise {
/* One promise. */
#define X(name, text) CNRI_PROMISE_##name,
    CNRI_PROMISE_LIST(X)
#undef X
        CNRI_PROMISES
} cnri_promise;

/* promises made and judged, a bit for each cnri_promise */
typedef struct cnri_promises {
    uint32_t made, judged;
} cnri_promises;
/* Text of a promise; "": there is no such. */
const char *cnri_promise_name(int32_t promise);
/* Returns false, and appends the promise's name to `why`. */
bool cnri_promise_fails(cnri_promise which, cnri_text *why);
/* Judges all promises that this case allows; its reference has run. False: `why` says which was
 * broken. */
bool cnri_promises_run(cnri_case *c, const cnri_draft *d, cnri_promises *which, cnri_text *why);

/* ---- affine.c: those that hold in numbers ---- */
/* Checks the promises that hold in numbers (affine, linear, sum, pass); false, with why: the first
 * that is broken. *which receives those made and judged. */
bool cnri_affine_run(cnri_case *c, cnri_promises *which, cnri_text *why);

/* ---- gradient.c ---- */
/* Compares the gradient hook's graph with differences of the reference; *judged: anything could
 * be compared. False: it failed. */
bool cnri_gradient_run(const cnri_draft *d, bool *judged, cnri_text *why);

/* ---- worker.c: one kernel on one device, or one operator, case by case, told as lines on stdout
 * ----
 *     draw 3                          a case is looked for
 *     case 3 TEXT                     and found; now it runs
 *     pass 3 MADE JUDGED              promises of an operator, as bits; 0 0 for a kernel
 *     fail 3 WHY                      (with bench: "time 3 MS GFLOPS" first)
 *     end 20 TEXT                     how many there were; why there were none */
/* What a child process judges: one kernel on one device, or one operator. */
typedef struct cnri_work {
    const cnr_kernel *kernel; /* NULL: `op` itself is judged */
    const char *device;       /* name of the device, for a kernel */
    uint64_t seed;
    int64_t first, cases, only; /* only >= 0: just this case */
    int64_t enough;             /* failed cases after which it ends; 0: never */
    int32_t threads;
    const cnr_op *op; /* (optional) only this operator, for a kernel for any operator */
    bool bench;
} cnri_work;
/* A number of threads above the number of cores, so that they are interrupted within a case. */
int32_t cnri_check_threads(void);
/* Does the work of a child process. */
cnr_status cnri_work_run(const cnri_work *w, cnr_error *err);
/* Prints the line "WHAT NUMBER TEXT" for the parent; newlines in the text become blanks. */
void cnri_work_tell(const char *what, int64_t number, const char *text);

/* ---- children.c: kernels and operators, each in a process of its own ---- */
/* Which kernels and operators are judged, and how. */
typedef struct cnri_check_options {
    /* only tests of this plugin, operator, kernel or device; NULL: all */
    const char *plugin, *op, *kernel, *device;
    const char *arithmetic; /* "fp16", "bf16": only kernels that multiply in it, which are left out
                               otherwise unless named */
    bool operators;         /* true: operators alone, no kernels */
    int64_t seed, cases, only, threads; /* as in cnri_work */
    int64_t enough; /* failed cases after which a kernel or operator is not judged on; 0: never */
    double timeout; /* seconds for each case */
    /* (optional) file of a net: kernels are judged on its nodes, at their own shapes (net.c). */
    const char *net;
    const char *weights_type; /* with a net: "fp16" or "bf16": also kernels that store weights so */
    /* Plans the net on that device, in a child. */
    void *net_arg; /* argument of open_net and whole_net */
    cnr_status (*open_net)(void *arg, const char *device, struct cnr_plan **plan,
                           const cnr_device **on, cnr_error *err);
    /* Judges the whole plan, reported as cases of this number. */
    bool (*whole_net)(void *arg, int64_t number, cnri_text *why);
    void (*progress)(void *arg, const char *what, int64_t done, int64_t total); /* (optional) */
    bool bench;
    /* (optional; default: this program) the program that is started for each judgement. */
    const char *program;
    char *const *words; /* words that lead to the command: "kernelcheck --plugin-dir D ..." */
    int n_words;
    void *arg;
    void (*note)(void *arg, const char *text); /* (optional) called for a failed case, or a time */
    void (*tested)(void *arg, const struct cnri_check_test *test); /* (optional) */
    bool (*cancelled)(void);                                       /* (optional) */
} cnri_check_options;

/* The result of one kernel on one device, or of one operator. */
typedef struct cnri_check_test {
    const char *name, *device; /* device NULL: an operator */
    const cnr_kernel *kernel;  /* the kernel that was judged, or NULL */
    const cnr_op *op; /* the operator that was judged, or NULL; both NULL: the plan of a net */
    int64_t cases, failures;
    cnri_promises promises;
    uint32_t unjudged; /* bits of promises that no case could judge */
    bool absent;       /* the device does not exist here */
    bool skipped;      /* there were no cases, for the reason in `why` */
    char first[2200];  /* text of the first failure */
    char why[300];
} cnri_check_test;

/* Numbers of tests by result, of nodes, and of all cases. */
typedef struct cnri_check_totals {
    /* Numbers of tests: all; with a failed case; without any case although the device exists; with
     * promises that no case could judge; of devices that do not exist here. */
    int32_t tests, failed, skipped, unjudged, absent;
    /* With a net: nodes that differ, on all devices; odd: nodes that could not be judged. */
    int32_t nodes, odd;
    int64_t cases;
} cnri_check_totals;

/* ---- child.c ---- */
/* Starts the program with o->words and `--worker WORK`, and calls `hear` for each line that it
 * prints. `why`: how the child ended, "" for well. False: no process could be started. */
bool cnri_child_run(const cnri_check_options *o, const char *work,
                    void (*hear)(void *arg, char *line), void *arg, char *why, size_t room);

/* ---- children.c, once more ---- */
/* Judges everything that the options ask for. Failures of kernels and operators are no errors. */
cnr_status cnri_check_all(const cnri_check_options *o, cnri_check_totals *sum, cnr_error *err);
/* Does the work of a child process; `work` is the word behind --worker. */
cnr_status cnri_check_work(const cnri_check_options *o, const char *work, cnr_error *err);

#endif
