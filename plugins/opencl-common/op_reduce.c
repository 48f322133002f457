/* reduce_* over adjacent axes. */
#include "support.h"

#include "reduce.cl.h"

enum { LINE = 128, FEW_RESULTS = 4096 };

/* What plan keeps for run: code, epilogue, and elements before, along and behind the reduced
 * axes. */
typedef struct reduce_state {
    const ocl_code *code;
    ocl_chain chain;
    int64_t outer, n, inner; /* x is outer by n by inner, and n is reduced */
    int32_t line, group;     /* group: work-items a result; 0: one */
} reduce_state;

/* An operator's formulas for the device code: initial value, joining an element, merging two sums,
 * and the end. */
typedef struct reduction {
    const char *op, *initial, *join, *merge, *finish;
} reduction;

static const reduction reductions[] = {
    {"reduce_sum", "0.0f", "(a) + (b)", "(a) + (b)", "(a)"},
    {"reduce_mean", "0.0f", "(a) + (b)", "(a) + (b)", "(a) / (n)"},
    {"reduce_max", "-INFINITY", "MAX_OF(a, b)", "MAX_OF(a, b)", "(a)"},
    {"reduce_min", "INFINITY", "MIN_OF(a, b)", "MIN_OF(a, b)", "(a)"},
    {"reduce_prod", "1.0f", "(a) * (b)", "(a) * (b)", "(a)"},
    {"reduce_l1", "0.0f", "(a) + fabs(b)", "(a) + (b)", "(a)"},
    {"reduce_l2", "0.0f", "MAD(b, b, a)", "(a) + (b)", "sqrt(a)"},
    {"reduce_sum_square", "0.0f", "MAD(b, b, a)", "(a) + (b)", "(a)"},
};

/* Reads the reduced axes into *s as outer, n and inner; returns the reduction's row, or NULL
 * where it is not one run of axes. */
static const reduction *shape_of(const cnr_node *node, reduce_state *s) {
    const cnr_tensor *x = cnr_own_input(node, 0), *y = node->outputs[0];
    const reduction *r = NULL;
    for (size_t i = 0; i < sizeof reductions / sizeof reductions[0]; i++)
        if (strcmp(node->desc->name, reductions[i].op) == 0) r = &reductions[i];
    if (!r || !x || !y || !cnr_is_plain(x, 1u << CNR_f32) || !cnr_is_plain(y, 1u << CNR_f32))
        return NULL;
    const int64_t set = shape_reduced_axes(node), many = cnr_count(x);
    if (set < 0 || many < 1 || many >= INT32_MAX) return NULL;
    return shape_reduced_stretch(x, set, &s->outer, &s->n, &s->inner) ? r : NULL;
}

/* Takes f32 reductions over one run of neighbouring axes; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *y = node->outputs[0];
    reduce_state s;
    (void)device;
    if (!shape_of(node, &s))
        return cnr_refuse(out,
                          "a reduction of dense f32 over axes that lie side by side is wanted");
    cnr_take(node, out, 500);
    out->epilogue = ocl_chain_accepts(node, y->rank, y->dim);
    if (cnr_own_input(node, 1)) out->prepared = 1 << 1;
    return CNR_OK;
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/reduce.cl", reduce_cl);
    const ocl_tune *tune = ocl_of(device)->tune;
    ocl_plan p;
    (void)workspace;
    reduce_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    const reduction *r = shape_of(node, s);
    if (!ocl_plan_unless(&p, r ? NULL : "not for this kernel")) return ocl_plan_end(&p, state);
    const int few = s->inner == 1 || s->outer * s->inner < FEW_RESULTS;
    s->line = tune->line;
    s->group = tune->gemv_line > 1 && s->n >= 64 && few ? LINE : 0;
    if (s->group) ocl_plan_options(&p, "-DLINE=%d ", LINE);
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_head(&p,
                  "#define INITIAL %s\n#define JOIN(a, b) %s\n#define MERGE(a, b) %s\n"
                  "#define FINISH(a, n) %s\n",
                  r->initial, r->join, r->merge, r->finish);
    ocl_plan_code(&p, &source, s->group ? "reduce_group" : "reduce", &s->code);
    return ocl_plan_end(&p, state);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const reduce_state *s = run->state;
    const int64_t results = s->outer * s->inner;
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_int(&call, s->n);
    ocl_arg_int(&call, s->inner);
    ocl_arg_int(&call, results);
    ocl_chain_args(&call, &s->chain, run->node);
    if (s->group) return ocl_launch(&call, results * s->group, 1, 1, s->group, err);
    return ocl_launch(&call, results, 1, 1, s->line, err);
}

OCL_KERNEL(ocl_reduce, "reduce_f32", CNR_ANY_OP, .accepts = accepts, .plan = plan, .run = run);
