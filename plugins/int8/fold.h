/* Inside fold-quantized: a node between dequantising nodes and a quantising one. */
#ifndef INT8_FOLD_H
#define INT8_FOLD_H

#include "graphs.h"

enum { FOLD_NOT = -2 }; /* nothing was folded; -1: it failed */

typedef struct fold_operand { /* bytes and what they stand for: (q - offset) step */
    cnr_value q, scale, zero; /* zero -1: there is none, it is 0 */
    int32_t dtype, offset;
    float step;
} fold_operand;

typedef struct fold_work {
    graph *g;
    const cnr_node *node; /* that computes, with its inputs and its output */
    const cnr_value *in;
    cnr_value out;
    fold_operand y;  /* the result */
    float low, high; /* limits of the result, in numbers that it stands for */
    char name[256];  /* of new nodes */
} fold_work;

/* The operand whose bytes `value` is made of, by one scale; 0: there is none. */
int fold_operand_of(const graph *g, cnr_value value, fold_operand *out);
/* The constant that is the operand's zero point; -1: it could not be made. */
cnr_value fold_zero(graph *g, const fold_operand *o);

/* Forms of nodes: bytes of the result, or FOLD_NOT. fold_layer.c: conv, dense, gemm, and matmul by
 * a constant; average_pool, as a depthwise convolution by ones. */
cnr_value fold_layer(fold_work *f);
cnr_value fold_mean_window(fold_work *f);
/* Node `index`, if it is qlinear_matmul by a constant matrix: 1 when it was made qlinear_dense. */
int32_t fold_product(graph *g, int32_t index, cnr_error *err);

#endif
