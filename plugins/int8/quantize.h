/* Internals of the rewrite quantize-layers: its state, and operators between layers. */
#ifndef INT8_QUANTIZE_H
#define INT8_QUANTIZE_H

#include "graphs.h"

enum { NONE = -1, LAYER = 1, FOLLOWER = 2 };

typedef struct value_group { /* values that share a scale; `of` maps a value to its group */
    double low, high;
    int known;
    float scale;
    int32_t zero;
    cnr_value scale_at, zero_at; /* constants of the graph, once added */
} value_group;

/* What the rewrite knows of a graph. */
typedef struct work {
    graph *g;
    int32_t n_nodes, n_values;
    int32_t *of;       /* maps a value to the representative of its group */
    uint8_t *layer;    /* for each node: LAYER or FOLLOWER if it is quantised; 0: stays float */
    int32_t *relu_of;  /* maps a relu or sloped node to the layer that it is merged into, or NONE */
    cnr_value *slope;  /* for each layer: slopes of the node merged into it, or NONE */
    cnr_value *result; /* for each layer with slopes: the value behind them */
    uint8_t *banned;   /* for each relu node: 1: not merged into a layer; 2: nor a follower */
    uint8_t *is_byte;  /* for each value: computed from quantised layers only */
    uint8_t *is_wanted;  /* for each value: a quantised layer reads it */
    uint8_t *cut;        /* for each value: before a merged relu, so stored clipped at 0 */
    value_group *groups; /* indexed by the representative */
} work;

/* The representative of v's group of values that share a scale; shortens the paths in w->of. */
int32_t quantize_find(work *w, cnr_value v);
/* Scale and zero point of a value's group as constants. */
void quantize_constants(work *w, cnr_value v, cnr_value *scale, cnr_value *zero);

/* ---- rewrite_follow.c: sums, products, functions and means between quantised layers ---- */

/* 1 if the node can work on quantised values: its inputs are computed f32 values, and it adds or
 * multiplies two pictures, is a function of one value, or a global average pool. */
int follow_can(const cnr_node *node, const cnr_value *in, const graph *g);
/* Number of the node's inputs that are values; the others are constants. */
int32_t follow_values(const cnr_node *node);
/* Withdraws followers that read a value which no quantised layer produces, or whose result no
 * quantised layer reads. 1: there were some. */
int follow_withdraw(work *w);
/* Replaces node `index` by quantised nodes that are inserted before it. */
cnr_status follow_quantise(work *w, int32_t index);

#endif
