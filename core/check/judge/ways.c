/* The ways in which the core may run a node: ranges and what they read, and results in place of
 * inputs. */
#include "judge/judge.h"

int64_t cnri_ways_alignment(const cnr_node *node, int32_t axis) {
    cnr_split_axis axes[CNR_MAX_RANK];
    const cnr_op *op = node->desc;
    if (!CNRI_HAS(op, split_axes)) return op->flags & CNR_OP_ELEMENTWISE ? 1 : 0;
    const int32_t n = op->split_axes(node, axes, CNR_MAX_RANK);
    for (int32_t i = 0; i < n && i < CNR_MAX_RANK; i++)
        if (axes[i].axis == axis) return axes[i].alignment;
    return 0;
}

/* Divides an extent into up to three ranges cuts[k] to cuts[k + 1]: its first step, the rest of its
 * first half, and the second half, cut at multiples of step. Returns their number; 0: it is shorter
 * than two steps. */
int32_t cnri_ways_cut(int64_t extent, int64_t step, int64_t cuts[4]) {
    if (step < 1 || extent < 2 * step) return 0;
    const int64_t half = (extent / step + 1) / 2 * step, all[] = {0, step, half, extent};
    int32_t n = 0;
    for (int32_t i = 0; i < 4; i++)
        if (n == 0 || all[i] > cuts[n - 1]) cuts[n++] = all[i];
    return n - 1;
}

cnr_input_range cnri_ways_region(const cnr_node *node, int32_t input, int32_t axis, int64_t begin,
                                 int64_t end) {
    cnr_input_range r = {.axis = -1};
    const cnr_op *op = node->desc;
    const cnr_tensor *x = node->inputs[input];
    if (axis < 0 || !x) return r;
    if (CNRI_HAS(op, input_range)) op->input_range(node, axis, begin, end, input, &r);
    else if (op->flags & CNR_OP_ELEMENTWISE && cnr_same_shape(x, node->outputs[0]))
        r = (cnr_input_range){axis, begin, end};
    return r;
}

bool cnri_ways_in_place(const cnr_node *node, int32_t input, int32_t output) {
    cnr_alias found[16];
    const cnr_op *op = node->desc;
    const cnr_tensor *x = node->inputs[input], *y = node->outputs[output];
    if (!x || (x->flags | y->flags) & CNR_TENSOR_DYNAMIC || x->flags & CNR_TENSOR_CONST)
        return false;
    if (cnr_dense_bytes(x) != cnr_dense_bytes(y)) return false;
    if (op->flags & CNR_OP_ELEMENTWISE && node->n_outputs == 1 && cnr_same_shape(x, y) &&
        (input == 0 || node->n_inputs <= 2))
        return true;
    const int32_t n = CNRI_HAS(op, buffer_aliases) ? op->buffer_aliases(node, found, 16) : 0;
    for (int32_t k = 0; k < n && k < 16; k++)
        if ((found[k].kind == CNR_ALIAS_INPLACE || found[k].kind == CNR_ALIAS_UPDATE) &&
            found[k].input == input && found[k].output == output)
            return true;
    return false;
}
