/* Attributes, values and steps of the node under way. */
#include "job.h"

#include <stdio.h>

void tf_problem(tf_job *j, const char *text) {
    tf_host->graph_problem(j->net->graph, j->net->path, "node %s (%s): %s", j->name, j->op, text);
    j->entry->failed = 1;
}

/* ---- attributes of theirs ---- */

const Tf__AttrValue *tf_attr(const tf_job *j, const char *key) {
    const Tf__NodeDef *n = j->entry->node;
    for (size_t i = 0; i < n->n_attr; i++)
        if (n->attr[i]->key && strcmp(n->attr[i]->key, key) == 0) return n->attr[i]->value;
    return NULL;
}
int tf_attr_is(const tf_job *j, const char *key, const char *value) {
    const Tf__AttrValue *a = tf_attr(j, key);
    return a && a->has_s && a->s.len == strlen(value) && memcmp(a->s.data, value, a->s.len) == 0;
}
int64_t tf_attr_int(const tf_job *j, const char *key, int64_t fallback) {
    const Tf__AttrValue *a = tf_attr(j, key);
    return a && a->has_i ? a->i : fallback;
}
int tf_attr_bool(const tf_job *j, const char *key) {
    const Tf__AttrValue *a = tf_attr(j, key);
    return a && a->has_b && a->b;
}
double tf_attr_float(const tf_job *j, const char *key, double fallback) {
    const Tf__AttrValue *a = tf_attr(j, key);
    return a && a->has_f ? (double)a->f : fallback;
}

/* ---- attributes of ours ---- */

cnr_attr *tf_put(tf_attrs *l, const char *name, int32_t type) {
    cnr_attr *a = &l->at[l->n];
    memset(a, 0, sizeof *a);
    a->name = name;
    a->type = type;
    l->ptr[l->n++] = a;
    return a;
}
void tf_put_int(tf_attrs *l, const char *name, int64_t v) {
    tf_put(l, name, CNR_ATTR_INT)->i = v;
}
void tf_put_bool(tf_attrs *l, const char *name, int v) {
    tf_put(l, name, CNR_ATTR_BOOL)->i = v != 0;
}
void tf_put_float(tf_attrs *l, const char *name, double v) {
    tf_put(l, name, CNR_ATTR_FLOAT)->f = v;
}
void tf_put_enum(tf_attrs *l, const char *name, const char *v) {
    tf_put(l, name, CNR_ATTR_ENUM)->s = v;
}
void tf_put_ints(tf_attrs *l, const char *name, const int64_t *v, int64_t n) {
    cnr_attr *a = tf_put(l, name, CNR_ATTR_INTS);
    a->ints = v;
    a->n = n;
}

/* ---- values ---- */

void tf_give(tf_job *j, int32_t k, cnr_value plain, cnr_value turned) {
    if (k < j->entry->n_out) j->entry->out[k] = (tf_twins){plain, turned};
}
cnr_value tf_in_plain(tf_job *j, int32_t k) {
    return k < j->n_in ? tf_plain(j->net, j->in[k]) : -1;
}
cnr_value tf_in_turned(tf_job *j, int32_t k) {
    return k < j->n_in ? tf_turned(j->net, j->in[k]) : -1;
}
int32_t tf_in_dims(const tf_job *j, int32_t k, int64_t *dim) {
    return k < j->n_in ? tf_dims(j->net, j->in[k], dim) : -1;
}
cnr_value tf_step(tf_job *j, const char *op, const char *name, const cnr_value *in, int32_t n,
                  const tf_attrs *l) {
    return tf_node(j->net, op, name, in, n, l ? l->ptr : NULL, l ? l->n : 0);
}

cnr_value tf_constant(tf_job *j, const cnr_tensor *t) {
    char name[64];
    snprintf(name, sizeof name, "step%d.value", (int)++j->net->n_made);
    return tf_host->graph_constant(j->net->graph, name, t);
}
cnr_value tf_constant_f32(tf_job *j, const float *v, int64_t n, int32_t rank) {
    const cnr_tensor t = {.size = sizeof t,
                          .dtype = CNR_f32,
                          .rank = rank,
                          .dim = {n},
                          .flags = CNR_TENSOR_CONST,
                          .data = (void *)v,
                          .bytes = (uint64_t)n * 4};
    return tf_constant(j, &t);
}

/* The integers of input k when they are known now; -1 with a problem otherwise. */
int64_t tf_known_ints(tf_job *j, int32_t k, int64_t *out, int64_t max) {
    const cnr_value v = tf_in_plain(j, k);
    const cnr_tensor *t = v < 0 ? NULL : tf_host->graph_type(j->net->graph, v);
    const int64_t n = t ? cnr_count(t) : -1;
    if (!t || !(t->flags & CNR_TENSOR_CONST) || !t->data || n < 0 || n > max ||
        (t->dtype != CNR_i32 && t->dtype != CNR_i64)) {
        if (!j->entry->failed)
            tf_problem(j, "an input that shapes depend on is not a known constant");
        return -1;
    }
    for (int64_t i = 0; i < n; i++)
        out[i] =
            t->dtype == CNR_i32 ? ((const int32_t *)t->data)[i] : ((const int64_t *)t->data)[i];
    return n;
}

/* An axis of theirs as one of the twin that is used: turned ones have C at 1. */
int64_t tf_turn_axis(int64_t axis) {
    static const int64_t to[] = {0, 2, 3, 1};
    return axis >= 0 && axis < 4 ? to[axis] : axis;
}

int tf_is_nchw(const tf_job *j) {
    return tf_attr_is(j, "data_format", "NCHW");
}

/* A picture input as N C H W, whatever data_format says of it. */
cnr_value tf_picture(tf_job *j, int32_t k) {
    return tf_is_nchw(j) ? tf_in_plain(j, k) : tf_in_turned(j, k);
}
void tf_give_picture(tf_job *j, cnr_value v) {
    if (tf_is_nchw(j))
        tf_give(j, 0, v, -1);
    else
        tf_give(j, 0, -1, v);
}
