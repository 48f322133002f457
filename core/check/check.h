/* check: every kernel against its operator's reference, on nodes drawn from the operator's schema.
 *
 *     draft --build--> case --(the kernel accepts)--> reference, bounds --> trials on the device
 *
 * A draft is plain numbers and can be changed and copied; a case is a node with data on the host.
 * All is decided by (seed, kernel, number of the case), so that one case can be run again alone. */
#ifndef CNRI_CHECK_H
#define CNRI_CHECK_H

#include "core/host/host.h"

enum { CNRI_CHECK_PORTS = 12, CNRI_CHECK_ATTRS = 40, CNRI_CHECK_LIST = 10, CNRI_CHECK_CHAIN = 3 };

/* ---- dice.c: splitmix64 ---- */
typedef struct cnri_dice { uint64_t state; } cnri_dice;
uint64_t cnri_dice_next(cnri_dice *d);
int64_t cnri_dice_below(cnri_dice *d, int64_t n); /* 0 to n - 1; 0 for n < 1 */
bool cnri_dice_chance(cnri_dice *d, int32_t percent);
cnri_dice cnri_dice_of(uint64_t seed, const char *name, int64_t number);

/* ---- draft.c ---- */
typedef struct cnri_draft_attr {
    bool given;
    int32_t n;
    int64_t i, ints[CNRI_CHECK_LIST];
    double f, floats[CNRI_CHECK_LIST];
} cnri_draft_attr;

typedef enum cnri_values {
    CNRI_VALUES_SIGNED,   /* about 0 */
    CNRI_VALUES_POSITIVE,
    CNRI_VALUES_SPARSE,   /* mostly 0 */
    CNRI_VALUES_WIDE,     /* all that an integer type holds */
    CNRI_VALUES_LIST      /* `list`: a shape, axes */
} cnri_values;

typedef struct cnri_draft_input {
    bool present;
    bool made;     /* a weight as the operator's `parameters` says */
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
    int64_t elements;               /* wanted of input 0, at most */
} cnri_draft;

/* What the last refusal named: an input, and numbers, good guesses for what would have fitted. */
typedef struct cnri_hints {
    int32_t n, input; /* input -1: none named */
    int64_t at[8];
    uint64_t text; /* digest of the words alone */
} cnri_hints;
void cnri_hints_read(cnri_hints *h, const cnr_op *op, const char *text);

void cnri_draft_attrs(cnri_draft *d, cnri_dice *dice); /* only those, by d->op and d->in[0] */
void cnri_draft_fresh(cnri_draft *d, const cnr_op *op, cnri_dice *dice);
void cnri_draft_mutate(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints);

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
    cnr_tensor encoded[CNRI_CHECK_PORTS]; /* data NULL: this input is dense */
    int32_t n_chain; /* operators behind it */
    cnri_link chain[CNRI_CHECK_CHAIN];
    double *bound[CNRI_CHECK_PORTS]; /* by element of each output of the last link, or the node's */
} cnri_case;

/* Limits that keep one case within milliseconds. */
#define CNRI_CHECK_MOST_BYTES ((uint64_t)4 << 20)
#define CNRI_CHECK_MOST_WORK ((uint64_t)6 << 20)

/* Attributes, parameters, shapes and data. Fails as the operator's infer does. */
cnr_status cnri_case_build(cnri_case *c, const cnri_draft *d, cnr_error *err);
/* Operators behind it, as many as fit. */
void cnri_case_chain(cnri_case *c, uint64_t seed);
/* Weights in the encodings that a kernel reads. */
cnr_status cnri_case_encode(cnri_case *c, const cnr_kernel *k, cnr_error *err);
void cnri_case_free(cnri_case *c);
/* "conv x f32[1,3,8,8] ... pads=1; relu" */
void cnri_case_text(const cnri_case *c, cnri_text *out);
/* The outputs of the first `links` operators behind the node. */
static inline cnr_tensor *cnri_case_out(cnri_case *c, int32_t links, int32_t output) {
    return links ? &c->chain[links - 1].out : &c->out[output];
}

/* ---- values.c ---- */
bool cnri_dtype_floats(int32_t dtype);
double cnri_dtype_epsilon(int32_t dtype); /* 0 for integers */
void cnri_values_fill(cnr_tensor *t, cnri_values values, const int64_t *list, cnri_dice *dice);
/* Between plain and channel blocks; `to` may not be `from`. */
void cnri_values_block(const cnr_tensor *type, const void *from, int32_t from_block, void *to,
                       int32_t to_block);

/* ---- judge.c ---- */
/* Runs the reference and those of the first `links` behind it: fills the outputs and the bounds. */
cnr_status cnri_judge_reference(cnri_case *c, int32_t links, uint64_t seed, cnr_error *err);
/* Is `got` (dense, plain) what the case says of output `output` behind `links` operators? When not,
 * `why` says where. With axis >= 0 only [begin, end) on that axis counts. */
bool cnri_judge(cnri_case *c, int32_t links, int32_t output, const cnr_tensor *got, int32_t axis,
                int64_t begin, int64_t end, cnri_text *why);

/* ---- trial.c: one kernel on one device ---- */
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
    cnr_accept answer;
} cnri_trial;

/* Asks the kernel, as a planner would; false when it will not, `why` (static) says why if known. */
bool cnri_trial_ask(cnri_trial *t, const cnr_device *device, const cnr_kernel *kernel, cnri_case *c,
                    cnri_dice *dice, const char **why);
/* Every way of running it. False: `why` says what was wrong. */
bool cnri_trial_run(cnri_trial *t, cnri_text *why);
/* Times it: milliseconds, the least of several runs; negative when it fails. */
double cnri_trial_bench(cnri_trial *t, cnri_text *why);

/* ---- worker.c: one kernel on one device, case by case, told as lines on stdout ----
 *     draw 3                          a case is looked for
 *     case 3 TEXT                     and found; now it runs
 *     pass 3  |  fail 3 WHY           (with bench: "time 3 MS GFLOPS" first)
 *     end 20 TEXT                     how many there were; why there were none */
typedef struct cnri_work {
    const cnr_kernel *kernel;
    const char *device; /* name */
    uint64_t seed;
    int64_t first, cases, only; /* only >= 0: this case alone */
    int32_t threads;
    const cnr_op *op; /* (optional) of a kernel of any operator: this one alone */
    bool bench;
} cnri_work;
cnr_status cnri_work_run(const cnri_work *w, cnr_error *err);

#endif
