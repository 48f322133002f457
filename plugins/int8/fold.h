/* Internals of fold-quantized: a node between dequantising nodes and a quantising one. */
#ifndef INT8_FOLD_H
#define INT8_FOLD_H

#include "graphs.h"

enum { FOLD_NOT = -2 }; /* FOLD_NOT: not folded; -1: failed */

typedef struct fold_operand { /* quantised bytes: (q - offset) step is the value */
    cnr_value q, scale, zero; /* zero -1: none, which means 0 */
    int32_t dtype, offset;
    float step;
} fold_operand;

typedef struct fold_work {
    graph *g;
    const cnr_node *node; /* the computing node, with its inputs and output */
    const cnr_value *in;
    cnr_value out;
    fold_operand y;  /* the result */
    float low, high; /* limits of the result, as real numbers */
    char name[256];  /* of new nodes */
} fold_work;

/* The quantised operand, of one scale, from which `value` is dequantised; 0: there is none. */
int fold_operand_of(const graph *g, cnr_value value, fold_operand *out);
/* The constant zero point of the operand; -1: failed. */
cnr_value fold_zero(graph *g, const fold_operand *o);

/* Fold a node; return the quantised result, or FOLD_NOT. fold_layer.c: conv, dense, gemm, and
 * matmul by a constant; average_pool as a depthwise convolution with ones. */
cnr_value fold_layer(fold_work *f);
cnr_value fold_mean_window(fold_work *f);
/* Replaces node `index` by qlinear_dense if it is qlinear_matmul by a constant matrix; 1: done. */
int32_t fold_product(graph *g, int32_t index, cnr_error *err);

#endif
