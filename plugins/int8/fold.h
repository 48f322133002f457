/* Internals of the rewrite fold-quantized: a node between dequantising nodes and a
 * quantising one. */
#ifndef INT8_FOLD_H
#define INT8_FOLD_H

#include "graphs.h"

enum { FOLD_NOT = -2 }; /* result: the node can't be folded; -1 means failure */

typedef struct fold_operand { /* quantised bytes; the real value is (q - offset) * step */
    cnr_value q, scale, zero; /* zero -1: none, which means 0 */
    int32_t dtype, offset;
    float step;
} fold_operand;

/* A node that is folded between quantise and dequantise. */
typedef struct fold_work {
    graph *g;
    const cnr_node *node; /* the computing node, with its inputs and output */
    const cnr_value *in;
    cnr_value out;
    const cnr_node *sloped; /* the node behind it that multiplies what is negative; NULL: none */
    fold_operand y;         /* the quantised result: its type, scale and zero point */
    float low, high;        /* limits of the result, as real numbers */
    char name[256];         /* stem of the names of new nodes */
} fold_work;

/* Finds the quantised operand, with one scale, from which `value` is dequantised; 0: none. */
int fold_operand_of(const graph *g, cnr_value value, fold_operand *out);
/* Returns the constant zero point of the operand, which is added if missing; -1: failed. */
cnr_value fold_zero(graph *g, const fold_operand *o);

/* fold_layer.c: fold a node; return the quantised result, or FOLD_NOT. fold_layer: conv, dense,
 * gemm, and matmul by a constant. fold_mean_window: average_pool, as a depthwise convolution by
 * ones. */
cnr_value fold_layer(fold_work *f);
/* Folds average pooling; returns the new value, -1 on failure, or FOLD_NOT if the node is none or
 * cannot be folded. */
cnr_value fold_mean_window(fold_work *f);
/* Replaces node `index` by qlinear_dense if it is qlinear_matmul by a constant matrix; 1: done. */
int32_t fold_product(graph *g, int32_t index, cnr_error *err);

#endif
