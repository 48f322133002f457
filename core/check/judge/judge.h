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

/* Ports and operators behind a node, at most; operators that are drawn behind one, at most. */
enum {
    CNRI_CHECK_PORTS = 40,
    CNRI_CHECK_ATTRS = 40,
    CNRI_CHECK_LIST = 10,
    CNRI_CHECK_CHAIN = 8,
    CNRI_CHECK_DRAWN = 3
};

/* ---- dice.c: splitmix64 ---- */
typedef struct cnri_dice {
    uint64_t state;
} cnri_dice;
uint64_t cnri_dice_next(cnri_dice *d);
int64_t cnri_dice_below(cnri_dice *d, int64_t n); /* 0 to n - 1; 0 for n < 1 */
bool cnri_dice_chance(cnri_dice *d, int32_t percent);
cnri_dice cnri_dice_of(uint64_t seed, const char *name, int64_t number);

/* ---- draft.c, mutate.c ---- */
/* The row of input i, which may be one of many of the last; in `room`. */
const cnr_port *cnri_check_port(const cnr_op *op, int32_t i, cnr_port *room);
typedef struct cnri_draft_attr {
    bool given;
    int32_t n;
    int64_t i, ints[CNRI_CHECK_LIST];
    double f, floats[CNRI_CHECK_LIST];
} cnri_draft_attr;

/* The text meant: one of the schema's examples. */
const char *cnri_draft_string(const cnr_attr_spec *row, const cnri_draft_attr *a);

typedef enum cnri_values {
    CNRI_VALUES_SIGNED, /* about 0 */
    CNRI_VALUES_POSITIVE,
    CNRI_VALUES_SPARSE, /* mostly 0 */
    CNRI_VALUES_WIDE,   /* all that an integer type holds */
    CNRI_VALUES_MIDDLE, /* one number: 0, or half of what an unsigned type holds */
    CNRI_VALUES_LIST    /* `list`: a shape, axes */
} cnri_values;

typedef struct cnri_draft_input {
    bool present;
    bool made; /* a weight as the operator's `parameters` says */
    bool constant, variable;
    int32_t dtype, rank;
    int64_t dim[CNR_MAX_RANK];
    cnri_values values;
    int64_t list[CNRI_CHECK_LIST];
} cnri_draft_input;

typedef struct cnri_draft {
    const cnr_op *op;
    int32_t n_in, n_out;
    cnri_draft_attr attrs[CNRI_CHECK_ATTRS];
    cnri_draft_input in[CNRI_CHECK_PORTS];
    uint64_t data_seed, chain_seed; /* chain_seed 0: nothing behind the node */
    bool specials;    /* NaN, infinities, denormals and -0 among the floats; weights excepted */
    int64_t elements; /* wanted of input 0, at most */
    bool constants;   /* all inputs but the first are constants, mostly */
    bool known;       /* results that infer knows are welcome: no kernel sees such */
} cnri_draft;

/* What the last refusal named: an input, numbers and types, good guesses for what would have
 * fitted. */
typedef struct cnri_hints {
    int32_t n, input, attr; /* the first; -1: none named */
    uint64_t inputs, attrs; /* all that were, as bits */
    int64_t at[8];
    int64_t want, axis, rank; /* the numbers behind these words; -1 none */
    bool constant;            /* a constant was asked for */
    bool taken;               /* by the operator: a kernel refused it */
    int32_t n_types, types[6];
    uint64_t text; /* digest of the words alone */
} cnri_hints;
void cnri_hints_read(cnri_hints *h, const cnr_op *op, const char *text);

void cnri_draft_attrs(cnri_draft *d, cnri_dice *dice); /* only those, by d->op and d->in[0] */
void cnri_draft_fresh(cnri_draft *d, const cnr_op *op, bool small, cnri_dice *dice);
/* True: what the hints name was changed, and nothing else. */
bool cnri_draft_mutate(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints);

/* ---- case.c: a node with everything it needs on the host ---- */
typedef struct cnri_link { /* an operator of the epilogue */
    cnr_node node;
    cnr_attr **attrs;
    cnr_tensor in[2], out;
    const cnr_tensor *inputs[CNRI_CHECK_PORTS], *outputs[1];
    int32_t port, other; /* of the value so far, and of the one other operand; -1 none */
} cnri_link;

typedef struct cnri_case {
    cnr_node node;
    cnr_attr **attrs;
    cnr_tensor in[CNRI_CHECK_PORTS], out[CNRI_CHECK_PORTS]; /* outputs: what the reference said */
    const cnr_tensor *inputs[CNRI_CHECK_PORTS], *outputs[CNRI_CHECK_PORTS];
    int64_t most[CNRI_CHECK_PORTS][CNR_MAX_RANK]; /* dims of the outputs before any were lowered */
    bool listed[CNRI_CHECK_PORTS]; /* an input that is a list, from which shapes may follow */
    cnr_tensor encoded[CNRI_CHECK_PORTS]; /* data NULL: this input is dense */
    char encoding_fault[256];             /* what decode gives is too far from what was encoded */
    int32_t n_chain;                      /* operators behind it */
    cnri_link chain[CNRI_CHECK_CHAIN];
    void *known[CNRI_CHECK_PORTS]; /* of outputs: data that infer gave, where that is wanted */
    /* CNR_KERNEL_F16_MATH or _BF16_MATH if whoever is judged by it multiplies so, else 0 */
    uint32_t halves;
    bool dense;   /* encoded inputs are given decoded */
    bool lenient; /* judged even where results are no numbers, or hardly hang on the inputs */
    int32_t n_parts, part_axis; /* > 0: the reference is asked for these ranges alone */
    int64_t parts[3][2];
    bool judged;          /* the node's own reference has run */
    int32_t judged_links; /* behind it, whose references have run; -1: none have been asked */
    double *base;         /* bound[0] of the node alone */
    bool specials;        /* as the draft says */
    bool spreads, skips;  /* the kernel has CNR_KERNEL_SPREADS_NAN, CNR_KERNEL_SKIPS_ZEROS */
    uint8_t
        *near_special;  /* spreads: positions of output 0, of all channels, that it may spread to */
    cnr_tensor skipped; /* skips: output 0 with ordinary numbers in place of NaN and infinities */
    double *bound[CNRI_CHECK_PORTS]; /* by element of each output of the last link, or the node's */
    void *first; /* output 0 as kernel `first_by` gave it, the first time, with so many links */
    const cnr_kernel *first_by;
    int32_t first_links;
    const char *fault; /* what `parameters` said wrong; NULL: nothing */
} cnri_case;

/* An encoding with its default options may lose so much, as a share of the weights' root mean
 * square: half of the weights gone is 0.71, signs with a scale are 0.60 of normally distributed
 * ones. */
#define CNRI_ENCODING_MOST_LOST 0.65
/* Limits that keep one case within milliseconds. */
#define CNRI_CHECK_MOST_BYTES ((uint64_t)4 << 20)
#define CNRI_CHECK_MOST_WORK ((uint64_t)6 << 20)

/* Attributes, parameters, shapes and data. Fails as the operator's infer does. bare: for those who
 * ask and don't run, with what they look at alone: lists and constants. */
cnr_status cnri_case_build(cnri_case *c, const cnri_draft *d, bool bare, cnr_error *err);
/* Operators behind it, as many as fit. */
void cnri_case_chain(cnri_case *c, uint64_t seed);
/* Weights as a kernel stores them, and how it multiplies; NULL: as they are, in f32. */
void cnri_case_round(cnri_case *c, const cnr_kernel *k);
/* The same, and in the encodings that it reads. */
cnr_status cnri_case_encode(cnri_case *c, const cnr_kernel *k, cnr_error *err);
void cnri_case_free(cnri_case *c); /* frees what the case owns and zeroes it */
void cnri_case_type(const cnr_tensor *t, cnri_text *out); /* "f32[1,3,8,8]" */
/* "conv f32[1,3,8,8] ... pads=1; relu" */
void cnri_case_text(const cnri_case *c, cnri_text *out);
/* The outputs of the first `links` operators behind the node. */
static inline cnr_tensor *cnri_case_out(cnri_case *c, int32_t links, int32_t output) {
    return links ? &c->chain[links - 1].out : &c->out[output];
}

/* ---- values.c ---- */
bool cnri_dtype_floats(int32_t dtype);
double cnri_dtype_epsilon(int32_t dtype); /* 0 for integers */
void cnri_values_fill(cnr_tensor *t, cnri_values values, const int64_t *list, cnri_dice *dice);
/* Puts NaN, infinities, denormals and -0 in place of a few of a float tensor's elements. */
void cnri_values_specials(cnr_tensor *t, cnri_dice *dice);
/* Numbers in place of some: 0 for denormals, or drawn ones for NaN and infinities. */
void cnri_values_flush(cnr_tensor *t);
void cnri_values_ordinary(cnr_tensor *t, cnri_dice *dice);
/* Between plain and channel blocks; `to` may not be `from`. */
void cnri_values_block(const cnr_tensor *type, const void *from, int32_t from_block, void *to,
                       int32_t to_block);

/* ---- ways.c: in what ways the core may ask for a node ---- */
/* How ranges on an axis of output 0 must be aligned; 0: the core never asks for them. */
int64_t cnri_ways_alignment(const cnr_node *node, int32_t axis);
/* Ranges that together are the whole: cuts[k] to cuts[k + 1]. How many; 0: too short to cut. */
int32_t cnri_ways_cut(int64_t extent, int64_t step, int64_t cuts[4]);
/* What of an input a range of output 0 may read; axis -1: all. */
cnr_input_range cnri_ways_region(const cnr_node *node, int32_t input, int32_t axis, int64_t begin,
                                 int64_t end);
/* May the output take the input's bytes? */
bool cnri_ways_in_place(const cnr_node *node, int32_t input, int32_t output);

/* ---- judge.c ---- */
/* The operator's own reference, on memory that tensors have, with a workspace. */
cnr_status cnri_judge_call(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err);
/* Runs the reference and those of the first `links` behind it: fills the outputs and the bounds. */
cnr_status cnri_judge_reference(cnri_case *c, int32_t links, uint64_t seed, cnr_error *err);
/* Of a case with its reference: the node's sums of products have a bound that nearly any value lies
 * within, as in a sequence whose steps make much of little. */
bool cnri_judge_is_chaotic(const cnri_case *c);
/* Is `got` (dense, plain) what the case says of output `output` behind `links` operators? When not,
 * `why` says where. With axis >= 0 only [begin, end) on that axis counts. */
bool cnri_judge(cnri_case *c, int32_t links, int32_t output, const cnr_tensor *got, int32_t axis,
                int64_t begin, int64_t end, cnri_text *why);

/* ---- ask.c, trial.c: one kernel on one device ---- */
typedef struct cnri_trial {
    const cnr_device *device;
    const cnr_kernel *kernel;
    cnri_case *c;
    cnr_node node; /* as the kernel sees it */
    int32_t links; /* that it takes along */
    int32_t n_in, n_out;
    cnr_tensor in[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN], out[CNRI_CHECK_PORTS];
    const cnr_tensor *inputs[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN], *outputs[CNRI_CHECK_PORTS];
    const cnr_tensor *host[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN]; /* where the data is from */
    cnri_link behind[CNRI_CHECK_CHAIN]; /* as the kernel sees them: without data yet to come */
    cnr_epilogue links_of[CNRI_CHECK_CHAIN];
    const cnr_epilogue *epilogue[CNRI_CHECK_CHAIN];
    int32_t in_block[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN];
    int32_t in_class[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN];
    int32_t out_block[CNRI_CHECK_PORTS], out_class[CNRI_CHECK_PORTS];
    /* Where in an arena these lie, in bytes; rounded down to what the memory promises. */
    uint64_t in_at[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN], out_at[CNRI_CHECK_PORTS], work_at;
    cnr_accept answer;
} cnri_trial;

/* Asks the kernel, as a planner would; false when it will not, `why` (static) says why if known. */
bool cnri_trial_ask(cnri_trial *t, const cnr_device *device, const cnr_kernel *kernel, cnri_case *c,
                    cnri_dice *dice, const char **why);
/* The same, where input 0's neighbour offers blocks of so many channels; 0: it is plain. */
bool cnri_trial_ask_for(cnri_trial *t, const cnr_device *device, const cnr_kernel *kernel,
                        cnri_case *c, int32_t offer, const char **why);
/* Draws places in memory. */
void cnri_trial_scatter(cnri_trial *t, cnri_dice *dice);
/* The layouts that it runs with, when they are not all plain: " [in 0: block 4, image2d; ...]". */
void cnri_trial_text(const cnri_trial *t, cnri_text *out);
/* Every way of running it; in ranges, too, if that is wanted. False: `why` says what was wrong. */
bool cnri_trial_run(cnri_trial *t, bool ranges, cnri_text *why);
/* Times it: milliseconds, the least of several runs; negative when it fails. */
double cnri_trial_bench(cnri_trial *t, cnri_text *why);

/* ---- guarded.c ---- */
/* From now on kernels of the plan's steps get workspaces with guards, in place of those in the
 * plan's memory: a write outside fails the step. One plan a process. False: no memory. */
bool cnri_guard_workspaces(struct cnr_plan *plan);
void cnri_unguard_workspaces(void);

/* ---- promise.c, stand.c: what an operator's descriptor says of it, held against its reference
 * ---- */
/* clang-format off */
#define CNRI_PROMISE_LIST(X) \
    X(REFERENCE, "reference")  /* writes all of its outputs, nothing else, the same each time */ \
    X(RANGES, "ranges")        /* of the reference are what the whole is */ \
    X(SPLIT, "split_axes")     /* a range reads no more than its region */ \
    X(IN_PLACE, "in place")    /* an output may take an input's bytes */ \
    X(CONSTANT, "constant")    /* what infer knows already is what comes */ \
    X(ALIAS, "views")          /* views and joins: the same bytes */ \
    X(APPLY, "apply_f32")      /* is the reference */ \
    X(AFFINE, "channel_affine") X(LINEAR, "linear in weights") X(PASS, "pass") \
    X(ADDS, "adds") \
    X(GRADIENT, "gradient")    /* is what differences say */
/* clang-format on */

typedef enum cnri_promise {
#define X(name, text) CNRI_PROMISE_##name,
    CNRI_PROMISE_LIST(X)
#undef X
        CNRI_PROMISES
} cnri_promise;

/* Bits by promise. */
typedef struct cnri_promises {
    uint32_t made, judged;
} cnri_promises;
const char *cnri_promise_name(int32_t promise);
/* False, with the name of the promise behind `why`. */
bool cnri_promise_fails(cnri_promise which, cnri_text *why);
/* All that can be judged on this case, whose reference has run. False: `why` says what was broken.
 */
bool cnri_promises_run(cnri_case *c, const cnri_draft *d, cnri_promises *which, cnri_text *why);

/* ---- affine.c: those that hold in numbers ---- */
bool cnri_affine_run(cnri_case *c, cnri_promises *which, cnri_text *why);

/* ---- gradient.c ---- */
/* The gradient hook's graph against differences of the reference; *judged: any could be told. */
bool cnri_gradient_run(const cnri_draft *d, bool *judged, cnri_text *why);

/* ---- worker.c: one kernel on one device, or one operator, case by case, told as lines on stdout
 * ----
 *     draw 3                          a case is looked for
 *     case 3 TEXT                     and found; now it runs
 *     pass 3 MADE JUDGED              promises of an operator, as bits; 0 0 for a kernel
 *     fail 3 WHY                      (with bench: "time 3 MS GFLOPS" first)
 *     end 20 TEXT                     how many there were; why there were none */
typedef struct cnri_work {
    const cnr_kernel *kernel; /* NULL: `op` is judged by what it says of itself */
    const char *device;       /* name; of a kernel */
    uint64_t seed;
    int64_t first, cases, only; /* only >= 0: this case alone */
    int32_t threads;
    const cnr_op *op; /* (optional) of a kernel of any operator: this one alone */
    bool bench;
} cnri_work;
cnr_status cnri_work_run(const cnri_work *w, cnr_error *err);
/* One such line; newlines in the text become blanks. */
void cnri_work_tell(const char *what, int64_t number, const char *text);

/* ---- children.c: kernels and operators, each in a process of its own ---- */
typedef struct cnri_check_options {
    const char *plugin, *op, *kernel, *device; /* (optional) only those */
    const char *arithmetic; /* "fp16", "bf16": only kernels that multiply in it, which are left out
                               otherwise unless named */
    bool operators;         /* no kernels */
    int64_t seed, cases, only, threads; /* as in cnri_work */
    double timeout;                     /* seconds a case */
    const char
        *net; /* (optional) a file: kernels are judged on its nodes, at their own shapes (net.c) */
    const char *weights_type; /* of a net: "fp16", "bf16": kernels that store weights so, too */
    /* The net planned on that device, for children. */
    void *net_arg; /* of these two */
    cnr_status (*open_net)(void *arg, const char *device, struct cnr_plan **plan,
                           const cnr_device **on, cnr_error *err);
    /* That plan as a whole, told as cases of this number. */
    bool (*whole_net)(void *arg, int64_t number, cnri_text *why);
    void (*progress)(void *arg, const char *what, int64_t done, int64_t total); /* (optional) */
    bool bench;
    const char *program; /* (optional: this one) begun for each, which hands its words on to here */
    char *const *words;  /* that lead there: "kernelcheck --plugin-dir D ..." */
    int n_words;
    void *arg;
    void (*note)(void *arg, const char *text); /* (optional) of a failed case, or a time */
    void (*tested)(void *arg, const struct cnri_check_test *test); /* (optional) */
    bool (*cancelled)(void);                                       /* (optional) */
} cnri_check_options;

/* One kernel on one device, or one operator. */
typedef struct cnri_check_test {
    const char *name, *device; /* device: NULL for an operator */
    const cnr_kernel *kernel;  /* either this */
    const cnr_op *op;          /* or this; neither: the plan of a net */
    int64_t cases, failures;
    cnri_promises promises;
    uint32_t unjudged; /* promises that no case could show */
    bool absent;       /* there is no such device here */
    bool skipped;      /* there were no cases, as `why` says */
    char first[2200];  /* failure */
    char why[300];
} cnri_check_test;

typedef struct cnri_check_totals {
    int32_t tests, failed, skipped, unjudged, absent; /* absent ones are not among the skipped */
    int32_t nodes, odd; /* of a net: that differ, on all devices; that could not be judged */
    int64_t cases;
} cnri_check_totals;

/* ---- child.c ---- */
/* Begins the program with o->words and `--worker WORK`, and hands each line that it prints to
 * `hear`. `why` says how the child ended, "" for well. False: no process could be begun. */
bool cnri_child_run(const cnri_check_options *o, const char *work,
                    void (*hear)(void *arg, char *line), void *arg, char *why, size_t room);

/* ---- children.c, once more ---- */
/* No failure of what is judged is an error. */
cnr_status cnri_check_all(const cnri_check_options *o, cnri_check_totals *sum, cnr_error *err);
/* What the program does, in a child, with the words behind --worker. */
cnr_status cnri_check_work(const cnri_check_options *o, const char *work, cnr_error *err);

#endif
