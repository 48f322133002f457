/* Any element-wise operator of one or two f32 operands by its own OpenCL expression, broadcasting,
 * with the operators behind it. */
#include "support.h"

#include "elementwise.cl.h"
#include "shapes.h"

/* What plan keeps for run: code, epilogue, and the sizes and steps of both operands. */
typedef struct elementwise_state {
    const ocl_code *code;
    ocl_chain chain;
    int32_t rank, binary, line;
    cl_int dim[8], x_step[8], y_step[8]; /* merged axes, the last one first */
} elementwise_state;

/* 1 or 2 operands; 0: not for this kernel. Inputs that the formula does not mention are constants
 * which it has in itself. */
static int operands_of(const cnr_node *node, char *formula, size_t room) {
    const int32_t own = cnr_own_inputs(node);
    int64_t step[CNR_MAX_RANK];
    if (!(node->desc->flags & CNR_OP_ELEMENTWISE) || !CNR_HAS(node->desc, expression)) return 0;
    if (own < 1 || own > 31 || !cnr_own_input(node, 0) || !ocl_plain(node)) return 0;
    const int32_t n = node->desc->expression(node, formula, room);
    if (n <= 0 || (size_t)n >= room) return 0;
    const cnr_tensor *y = node->outputs[0];
    if (!shape_strides(node->inputs[0], y, step)) return 0;
    if (own == 2 && node->inputs[1] && ocl_mentions(formula, 'y'))
        return shape_strides(node->inputs[1], y, step) ? 2 : 0;
    return ocl_rest_is_constant(node) && !ocl_mentions(formula, 'y') &&
           cnr_same_shape(node->inputs[0], y);
}

#define FORMULA 768

/* Takes elementwise operators that have a formula for device code; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    char formula[FORMULA];
    (void)device;
    const int operands = operands_of(node, formula, sizeof formula);
    if (operands == 0) return cnr_refuse(out, "one or two f32 operands and a formula are wanted");
    const cnr_tensor *y = node->outputs[0];
    cnr_take(node, out, 400);
    out->epilogue = ocl_chain_accepts(node, y->rank, y->dim);
    for (int32_t axis = 0; axis < y->rank; axis++) { /* ranges that are consecutive */
        out->ranges |= 1u << axis;
        if (y->dim[axis] != 1) break;
    }
    for (int32_t i = operands; i < cnr_own_inputs(node); i++)
        if (node->inputs[i]) out->prepared |= 1u << i;
    return CNR_OK;
}

/* Neighbouring axes that both operands walk alike are one. */
static void merge_axes(elementwise_state *s, const cnr_tensor *y, const int64_t *x_step,
                       const int64_t *y_step) {
    for (int32_t i = y->rank - 1; i >= 0; i--) {
        const int32_t last = s->rank - 1;
        if (y->dim[i] == 1) continue;
        if (last >= 0 && x_step[i] == (int64_t)s->x_step[last] * s->dim[last] &&
            y_step[i] == (int64_t)s->y_step[last] * s->dim[last]) {
            s->dim[last] *= (cl_int)y->dim[i];
            continue;
        }
        s->dim[s->rank] = (cl_int)y->dim[i];
        s->x_step[s->rank] = (cl_int)x_step[i];
        s->y_step[s->rank++] = (cl_int)y_step[i];
    }
    if (s->rank == 0) s->dim[0] = s->rank = 1; /* one element */
}

/* Compiles the expression, and keeps it with what run needs in *state; fails for want of memory, or
 * where the node is not taken. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/elementwise.cl", elementwise_cl);
    int64_t x_step[CNR_MAX_RANK] = {0}, y_step[CNR_MAX_RANK] = {0};
    char formula[FORMULA];
    ocl_plan p;
    (void)workspace;
    elementwise_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    const int operands = operands_of(node, formula, sizeof formula);
    ocl_plan_unless(&p, operands == 0 ? "not for this kernel" : NULL);
    s->binary = operands == 2;
    s->line = ocl_of(device)->tune->line;
    shape_strides(node->inputs[0], node->outputs[0], x_step);
    shape_strides(node->inputs[s->binary], node->outputs[0], y_step);
    merge_axes(s, node->outputs[0], x_step, s->binary ? y_step : x_step);
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_head(&p, "float operation(float x, float y) { return %s; }\n", formula);
    ocl_plan_options(&p, "-DRANK=%d ", (int)s->rank);
    ocl_plan_code(&p, &source, "elementwise", &s->code);
    return ocl_plan_end(&p, state);
}

/* Launches the kernel that plan compiled on the run's stream; fails if it can't be queued. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const elementwise_state *s = run->state;
    const cnr_tensor *out = run->outputs[0];
    const cnr_pieces piece = cnr_pieces_of(run); /* the only one: see accepts */
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->node->inputs[s->binary]->mem);
    ocl_arg_buffer(&call, &out->mem);
    ocl_arg_int(&call, piece.first);
    ocl_arg_int(&call, piece.first + piece.length);
    ocl_arg_ints(&call, s->dim, 8);
    ocl_arg_ints(&call, s->x_step, 8);
    ocl_arg_ints(&call, s->y_step, 8);
    ocl_chain_args(&call, &s->chain, run->node);
    return ocl_launch(&call, piece.length, 1, 1, s->line, err);
}

OCL_KERNEL(ocl_elementwise, "elementwise_f32", CNR_ANY_OP, .accepts = accepts, .plan = plan,
           .run = run);
