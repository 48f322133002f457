/* Operators that only move whole pieces: concat, and any whose output is its input's bytes. */
#include "support.h"

#include "copy.cl.h"
#include "shapes.h"

enum { AT_ONCE = 8, MOST_INPUTS = 1024 }; /* sources of a launch, and of a node */

/* What plan keeps for run: the axis, and a code for each launch of AT_ONCE inputs. */
typedef struct copy_state {
    int32_t axis, line;
    const ocl_code *code[]; /* one for each launch, which keeps its arguments */
} copy_state;

/* 1: t has 4-byte elements, whose number fits an int. */
static int countable(const cnr_tensor *t) {
    const int64_t n = cnr_count(t);
    return cnr_dtype_bits(t->dtype) == 32 && cnr_is_plain(t, ~0u) && n >= 0 && n < INT32_MAX;
}

/* ---- concat ---- */

/* Axis along which inputs are joined. */
static int32_t axis_of(const cnr_node *node) {
    return shape_axis(cnr_attr_int(node, "axis"), node->outputs[0]->rank);
}

/* Takes concat of elements of 4 bytes. */
static cnr_status accepts_concat(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    static const char wanted[] = "dense elements of 4 bytes are wanted, of sizes that fit an int";
    const int32_t own = cnr_own_inputs(node);
    (void)device;
    if (own > MOST_INPUTS) return cnr_refuse(out, "too many inputs");
    for (int32_t i = 0; i < own; i++)
        if (!node->inputs[i] || !countable(node->inputs[i])) return cnr_refuse(out, wanted);
    return countable(node->outputs[0]) ? cnr_take(node, out, 500) : cnr_refuse(out, wanted);
}

/* Builds a code for each AT_ONCE inputs, in a state at *state. */
static cnr_status plan_concat(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                              void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/copy.cl", copy_cl);
    ocl_plan p;
    (void)workspace;
    const int32_t launches = (node->n_inputs + AT_ONCE - 1) / AT_ONCE;
    copy_state *s =
        ocl_plan_begin(&p, device, node, sizeof *s + (size_t)launches * sizeof s->code[0], err);
    if (!s) return CNR_E_MEMORY;
    s->axis = axis_of(node);
    s->line = ocl_of(device)->tune->line;
    for (int32_t i = 0; i < launches; i++) ocl_plan_code(&p, &source, "copy_rows", &s->code[i]);
    return ocl_plan_end(&p, state);
}

/* Launches a copy for each input. */
static cnr_status run_concat(const cnr_run *run, cnr_error *err) {
    const copy_state *s = run->state;
    const cnr_node *node = run->node;
    const cnr_tensor *y = run->outputs[0];
    const int64_t rows = cnr_span(y, 0, s->axis), pitch = cnr_span(y, s->axis, y->rank);
    int64_t at = 0;
    for (int32_t i = 0; i < node->n_inputs; i += AT_ONCE) {
        int64_t ends[AT_ONCE], end = 0;
        ocl_call call;
        ocl_begin(&call, run->stream, s->code[i / AT_ONCE]);
        for (int32_t k = 0; k < AT_ONCE; k++) { /* past the last: nothing of it */
            const cnr_tensor *x = node->inputs[cnr_min(i + k, node->n_inputs - 1)];
            if (i + k < node->n_inputs) end += cnr_span(x, s->axis, x->rank);
            ends[k] = end;
            ocl_arg_buffer(&call, &x->mem);
        }
        ocl_arg_image(&call, &y->mem);
        ocl_arg_int(&call, (int64_t)(y->mem.offset / 4) + at);
        ocl_arg_longs(&call, ends, AT_ONCE);
        ocl_arg_int(&call, pitch);
        CNR_TRY(ocl_launch(&call, end, rows, 1, s->line, err));
        at += end;
    }
    return CNR_OK;
}

OCL_KERNEL(ocl_concat, "concat_copy", "concat", .accepts = accepts_concat, .plan = plan_concat,
           .run = run_concat);

/* ---- views, where the planner could not make them one memory ---- */

/* Takes operators whose output is a part of the input; for others out->why says why. */
static cnr_status accepts_view(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_alias alias[4];
    const int32_t own = cnr_own_inputs(node);
    (void)device;
    if (!CNR_HAS(node->desc, buffer_aliases) || node->n_outputs != 1 || own < 1)
        return cnr_refuse(out, "it is no view of one input");
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[0];
    if (!x || !cnr_is_plain(x, ~0u)) return cnr_refuse(out, "a dense input is wanted");
    int32_t n = node->desc->buffer_aliases(node, alias, 4);
    while (n > 0 && (alias[n - 1].kind != CNR_ALIAS_VIEW || alias[n - 1].input != 0 ||
                     alias[n - 1].offset != 0))
        n--;
    if (n <= 0 || cnr_dense_bytes(x) != cnr_dense_bytes(y))
        return cnr_refuse(out, "it is no view of all of its input");
    /* the rest is a shape, which inference has read */
    if (!ocl_rest_is_constant(node)) return cnr_refuse(out, "its shape is not constant");
    cnr_take(node, out, 300);
    for (int32_t i = 1; i < own; i++)
        if (node->inputs[i]) out->prepared |= 1u << i;
    return CNR_OK;
}

/* Copies that part. */
static cnr_status run_view(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    return ocl_copy(run->stream, &x->mem, &y->mem, cnr_dense_bytes(y), err);
}

const cnr_kernel ocl_view = {.size = sizeof(cnr_kernel),
                             .version = 1,
                             .name = "view_copy",
                             .op = CNR_ANY_OP,
                             .accepts = accepts_view,
                             .run = run_view};
