/* Inside quantize-layers: its work on a graph; what stands between layers. */
#ifndef INT8_QUANTIZE_H
#define INT8_QUANTIZE_H

#include "graphs.h"

enum { NONE = -1, LAYER = 1, FOLLOWER = 2 };

typedef struct value_group { /* values of one scale; `of` finds it by value */
    double low, high;
    int known;
    float scale;
    int32_t zero;
    cnr_value scale_at, zero_at; /* constants of the graph, once made */
} value_group;

typedef struct work {
    graph *g;
    int32_t n_nodes, n_values;
    int32_t *of;         /* value -> value that stands for its group */
    uint8_t *layer;      /* node: will be quantised: LAYER, or FOLLOWER of some */
    int32_t *relu_of;    /* relu node -> the layer it becomes part of, or NONE */
    uint8_t *banned;     /* relu node: is no layer's saturation; 2: nor a follower */
    uint8_t *is_byte;    /* value: all of it comes from quantised layers */
    uint8_t *is_wanted;  /* value: a quantised layer reads it */
    uint8_t *cut;        /* value: stands before such a relu, and is held cut off at 0 */
    value_group *groups; /* by standing value */
} work;

/* The value that stands for v's group, and the group's two constants. */
int32_t quantize_find(work *w, cnr_value v);
void quantize_constants(work *w, cnr_value v, cnr_value *scale, cnr_value *zero);

/* ---- rewrite_follow.c: sums, products, functions and means between quantised layers ---- */

/* The node can work on whole numbers. */
int follow_can(const cnr_node *node, const cnr_value *in, const graph *g);
/* How many of its inputs are values, and the i-th. */
int32_t follow_values(const cnr_node *node);
/* Withdraws followers that read anything but quantised layers' results, or that none reads. 1:
 * some were. */
int follow_withdraw(work *w);
/* Nodes before `index` do what it did; itself goes. */
cnr_status follow_quantise(work *w, int32_t index);

#endif
