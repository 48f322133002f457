/* Constants and placeholders. */
#include "job.h"

#include <stdio.h>

void tf_op_constant_node(tf_job *j) {
    const Tf__AttrValue *value = tf_attr(j, "value");
    cnr_tensor t;
    if (!value || !value->tensor) return tf_problem(j, "it has no value");
    const char *wrong = tf_tensor(value->tensor, &t);
    if (wrong && value->tensor->dtype == 7) { /* strings: for assertions and messages only */
        return tf_problem(j, "string constants are not supported");
    }
    if (wrong) return tf_problem(j, wrong);
    tf_give(j, 0, tf_host->graph_constant(j->net->graph, j->name, &t), -1);
    tf_host->free(t.data);
}

/* The rank that the readers of a placeholder without one imply, with its channels or width when
 * their weights tell: a convolution's filter, a matrix, a bias. */
static int32_t implied(tf_job *j, int64_t dim[CNR_MAX_RANK]) {
    const tf_net *net = j->net;
    for (int32_t i = 0; i < net->n; i++) {
        const Tf__NodeDef *n = net->entries[i].node;
        int32_t output;
        if (!n->op || n->n_input < 1 || tf_input(net, n->input[0], &output) != j->entry) continue;
        const int conv =
            strcmp(n->op, "Conv2D") == 0 || strcmp(n->op, "DepthwiseConv2dNative") == 0;
        const int matrix = strcmp(n->op, "MatMul") == 0;
        tf_entry *w = n->n_input > 1 ? tf_input(net, n->input[1], &output) : NULL;
        for (int hops = 0; w && hops < 4 && w->node->op && strcmp(w->node->op, "Identity") == 0 &&
                           w->node->n_input;
             hops++)
            w = tf_input(net, w->node->input[0], &output);
        const Tf__Shape *s = NULL;
        for (size_t k = 0; w && k < w->node->n_attr; k++)
            if (w->node->attr[k]->key && strcmp(w->node->attr[k]->key, "value") == 0 &&
                w->node->attr[k]->value && w->node->attr[k]->value->tensor)
                s = w->node->attr[k]->value->tensor->tensor_shape;
        if (conv || strncmp(n->op, "FusedBatchNorm", 14) == 0) {
            dim[0] = dim[1] = dim[2] = dim[3] = -1;
            if (conv && s && s->n_dim == 4) dim[3] = s->dim[2]->size;
            if (!conv && s && s->n_dim == 1) dim[3] = s->dim[0]->size;
            return 4;
        }
        if (matrix) {
            dim[0] = dim[1] = -1;
            if (s && s->n_dim == 2) dim[1] = s->dim[0]->size;
            return 2;
        }
    }
    return -1;
}

void tf_op_placeholder(tf_job *j) {
    const Tf__AttrValue *type = tf_attr(j, "dtype"), *shape = tf_attr(j, "shape");
    cnr_tensor t = {.size = sizeof t, .dtype = type ? tf_dtype(type->type) : CNR_f32};
    const Tf__Shape *s = shape ? shape->shape : NULL;
    if (!t.dtype) return tf_problem(j, "its data type is not supported");
    /* Old files write an unknown shape as no dimensions at all. */
    const int open = !s || (s->has_unknown_rank && s->unknown_rank) || s->n_dim == 0;
    t.rank = open ? tf_shape_option(j->net, t.dim) : (int32_t)s->n_dim;
    if (open && t.rank < 0) t.rank = implied(j, t.dim);
    if (t.rank < 0 && s && !(s->has_unknown_rank && s->unknown_rank))
        t.rank = 0; /* a true scalar */
    if (t.rank < 0 || t.rank > CNR_MAX_RANK)
        return tf_problem(j, "its shape is not known: give --option shape=HEIGHT,WIDTH,CHANNELS");
    for (int32_t i = 0; i < t.rank; i++) {
        if (!open) t.dim[i] = s->dim[i]->size;
        if (t.dim[i] < 0) {
            char name[300];
            snprintf(name, sizeof name, i == 0 ? "batch" : "%.250s_dim%d", j->name, (int)i);
            const int32_t k = tf_host->graph_symbol(j->net->graph, name);
            t.dim[i] = k < 0 ? CNR_DIM_UNKNOWN : CNR_DIM_SYMBOL(k);
        }
    }
    tf_give(j, 0, tf_host->graph_input(j->net->graph, j->name, &t), -1);
}
