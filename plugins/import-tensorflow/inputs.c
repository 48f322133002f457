/* Constants, placeholders, and branches with a constant condition. */
#include "job.h"

#include <stdio.h>

void tf_op_constant_node(tf_job *j) {
    const Tf__AttrValue *value = tf_attr(j, "value");
    cnr_tensor t;
    if (!value || !value->tensor) return tf_problem(j, "it has no value");
    const char *wrong = tf_tensor(j->net->b.path, value->tensor, &t);
    if (wrong) return tf_problem(j, "%s", wrong);
    tf_give(j, 0, imp_host->graph_constant(j->net->b.graph, j->name, &t));
    imp_host->free(t.data);
}

/* ---- placeholders ---- */

/* Returns the rank of a placeholder without one, and sets its channels or width in dim, from its
 * reader's weights: the filter of a convolution, a matrix, a bias. 0: nothing is implied. */
static int32_t implied_by(const tf_net *net, const Tf__NodeDef *n, int64_t dim[CNR_MAX_RANK]) {
    int32_t output;
    const int norm = strncmp(n->op, "FusedBatchNorm", 14) == 0,
              matrix = strcmp(n->op, "MatMul") == 0;
    if (strcmp(n->op, "Conv2D") != 0 && strcmp(n->op, "DepthwiseConv2dNative") != 0 && !norm &&
        !matrix)
        return -1;
    tf_entry *w = n->n_input > 1 ? tf_input(net, n->input[1], &output) : NULL;
    for (int hops = 0; hops < 4 && tf_is_op(w, "Identity") && w->node->n_input; hops++)
        w = tf_input(net, w->node->input[0], &output);
    const Tf__AttrValue *value = w ? tf_node_attr(w->node, "value") : NULL;
    const Tf__Shape *s = value && value->tensor ? value->tensor->tensor_shape : NULL;
    const size_t rank = norm ? 1 : matrix ? 2 : 4, at = norm || matrix ? 0 : 2;
    const int32_t last = matrix ? 1 : 3;
    for (int32_t i = 0; i <= last; i++) dim[i] = -1;
    if (s && s->n_dim == rank) dim[last] = s->dim[at]->size;
    return last + 1;
}

/* Rank and sizes of an input, from the nodes that read it; -1: unknown. */
static int32_t implied(const tf_job *j, int64_t dim[CNR_MAX_RANK]) {
    const tf_net *net = j->net;
    int32_t rank = -1, output;
    for (int32_t i = 0; i < net->n && rank < 0; i++) {
        const Tf__NodeDef *n = net->entries[i].node;
        if (n->n_input > 0 && tf_input(net, n->input[0], &output) == j->entry)
            rank = implied_by(net, n, dim);
    }
    return rank;
}

/* Option shape.NAME=, or shape= for the first input and those of known rank: sizes of a sample, or
 * with the batch first if the rank requires it. -1: not given, or not usable. */
static int32_t given_shape(const tf_job *j, int32_t rank, int64_t dim[CNR_MAX_RANK]) {
    char key[300];
    snprintf(key, sizeof key, "shape.%.250s", j->name);
    const char *text = imp_option(j->net->args, key);
    if (!text && (rank > 0 || imp_host->graph_input_count(j->net->b.graph) == 0))
        text = imp_option(j->net->args, "shape");
    const int32_t n = imp_shape(text, dim);
    if (n < 1) return -1;
    if (rank < 0 ? n != 3 : n != rank - 1) return rank < 0 || n == rank ? n : -1;
    memmove(dim + 1, dim, (size_t)n * sizeof dim[0]);
    dim[0] = -1;
    return n + 1;
}

/* Option value.NAME=1 makes a placeholder a constant: keep_prob of a dropout, is_training. 0: not
 * given. */
static int given_value(tf_job *j, int32_t dtype) {
    char key[300];
    snprintf(key, sizeof key, "value.%.250s", j->name);
    const char *text = imp_option(j->net->args, key), *end;
    if (!text) return 0;
    const double value = imp_number(text, &end);
    if (end == text || *end) tf_problem(j, "%s=%s: a number is wanted", key, text);
    else tf_give(j, 0, tf_cast(j, tf_scalar(j, value), dtype));
    return 1;
}

void tf_op_placeholder(tf_job *j) {
    const Tf__AttrValue *type = tf_attr(j, "dtype"), *shape = tf_attr(j, "shape");
    cnr_tensor t = {.size = sizeof t, .dtype = type ? tf_attr_dtype(j, "dtype") : CNR_f32};
    const Tf__Shape *s = shape ? shape->shape : NULL;
    int64_t given[CNR_MAX_RANK];
    if (!t.dtype) return tf_problem(j, "its data type is not supported");
    if (given_value(j, t.dtype)) return;
    /* Old files write an unknown shape without any dimension. */
    const int unknown = !s || (s->has_unknown_rank && s->unknown_rank),
              open = unknown || s->n_dim == 0;
    if (!open && s->n_dim > CNR_MAX_RANK) return tf_problem(j, "its rank is over 8");
    t.rank = open ? implied(j, t.dim) : (int32_t)s->n_dim;
    for (int32_t i = 0; i < t.rank && !open; i++) t.dim[i] = s->dim[i]->size;
    const int32_t k = given_shape(j, t.rank, given);
    if (open && k > 0) t.rank = k;
    for (int32_t i = 0; i < t.rank && k == t.rank; i++)
        if (open || t.dim[i] < 0) t.dim[i] = given[i];
    if (t.rank < 0 && !unknown) t.rank = 0; /* a scalar */
    if (t.rank < 0)
        return tf_problem(j, "its shape is not known: give --option shape=HEIGHT,WIDTH,CHANNELS");
    for (int32_t i = 0; i < t.rank; i++) {
        char name[300];
        if (t.dim[i] >= 0) continue;
        snprintf(name, sizeof name, i == 0 ? "batch" : "%.250s_dim%d", j->name, (int)i);
        const int32_t symbol = imp_host->graph_symbol(j->net->b.graph, name);
        t.dim[i] = symbol < 0 ? CNR_DIM_UNKNOWN : CNR_DIM_SYMBOL(symbol);
    }
    tf_give(j, 0, imp_host->graph_input(j->net->b.graph, j->name, &t));
}

/* PlaceholderWithDefault: a scalar switch becomes its default, a picture becomes an input. */
void tf_op_with_default(tf_job *j) {
    int64_t d[CNR_MAX_RANK];
    if (tf_in_dims(j, 0, d) >= 2) return tf_op_placeholder(j);
    const int32_t dtype = tf_attr_dtype(j, "dtype");
    if (!given_value(j, dtype ? dtype : CNR_f32)) *j->entry->out = *j->in[0];
}

/* ---- branches ---- */

/* Reports the condition once for all nodes that depend on it, with the placeholder that it may come
 * from. */
static void tell_condition(tf_job *j) {
    int32_t output;
    tf_entry *direct = tf_input(j->net, j->entry->node->input[1], &output), *from = direct;
    while (from && from->row && from->row->convert == tf_op_pass)
        from = tf_input(j->net, from->node->input[0], &output);
    if (tf_is_op(from, "Placeholder"))
        tf_problem(j, "its condition is an input: give --option value.%.200s=0, or 1",
                   from->node->name);
    else tf_problem(j, "its condition is not a constant: control flow is not supported");
    if (direct) direct->failed = 1;
}

/* Switch: output 1 if the condition is true, else output 0. */
void tf_op_switch(tf_job *j) {
    const cnr_tensor *t = tf_known(j->net, j->in[1]);
    if (!t || t->dtype != CNR_bool || cnr_count(t) != 1) return tell_condition(j);
    const int taken = *(const uint8_t *)t->data != 0;
    j->entry->out[taken] = *j->in[0];
    j->entry->out[!taken].dead = 1;
}

void tf_op_merge(tf_job *j) {
    for (int32_t i = 0; i < j->n_in; i++)
        if (!j->in[i]->dead) return (void)(j->entry->out[0] = *j->in[i]);
    j->entry->dead = 1;
}
