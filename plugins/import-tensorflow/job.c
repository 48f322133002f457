/* Attributes, values and steps of the current node. */
#include "job.h"

#include <stdarg.h>
#include <stdio.h>

void tf_problem(tf_job *j, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    imp_host->graph_problem(j->net->b.graph, j->net->b.path, "node %s (%s): %s", j->name, j->op,
                            text);
    j->entry->failed = 1;
}

/* ---- attributes of the TensorFlow node ---- */

const Tf__AttrValue *tf_attr(const tf_job *j, const char *key) {
    return tf_node_attr(j->entry->node, key);
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
/* A list of integers, and its length *n; NULL and 0: there is none. */
const int64_t *tf_attr_ints(const tf_job *j, const char *key, int64_t *n) {
    const Tf__AttrValue *a = tf_attr(j, key);
    *n = a && a->list ? (int64_t)a->list->n_i : 0;
    return *n ? a->list->i : NULL;
}
int32_t tf_attr_dtype(const tf_job *j, const char *key) {
    const Tf__AttrValue *a = tf_attr(j, key);
    return a && a->has_type ? tf_dtype(a->type) : 0;
}

/* ---- steps ---- */

cnr_value tf_step(tf_job *j, const char *op, const cnr_value *in, int32_t n, const imp_attrs *l) {
    return tf_node(j->net, op, NULL, in, n, l);
}
cnr_value tf_last(tf_job *j, const char *op, const cnr_value *in, int32_t n, const imp_attrs *l) {
    return tf_node(j->net, op, j->name, in, n, l);
}
cnr_value tf_cast(tf_job *j, cnr_value v, int32_t dtype) {
    const cnr_tensor *t = imp_type(&j->net->b, v);
    imp_attrs l = {.n = 0};
    if (t && t->dtype == dtype) return v;
    imp_dtype(&l, "to", dtype);
    return tf_step(j, "cast", &v, 1, &l);
}
cnr_value tf_scalar(tf_job *j, double value) {
    char name[32];
    snprintf(name, sizeof name, "step%d.value", (int)++j->net->n_made);
    return imp_scalar(&j->net->b, name, "", value);
}
cnr_value tf_unsqueeze(tf_job *j, cnr_value v, int64_t from, int64_t n) {
    int64_t axes[CNR_MAX_RANK] = {0};
    imp_attrs l = {.n = 0};
    for (int64_t i = 0; i < n && i < CNR_MAX_RANK; i++) axes[i] = from + i;
    imp_ints(&l, "axes", axes, n);
    return n > 0 ? tf_step(j, "unsqueeze", &v, 1, &l) : v;
}
cnr_value tf_vector(tf_job *j, const int64_t *values, int64_t n, int32_t dtype) {
    char name[32];
    cnr_tensor t = {.size = sizeof t,
                    .dtype = CNR_i64,
                    .rank = 1,
                    .dim = {n},
                    .data = (void *)values,
                    .bytes = (uint64_t)n * 8,
                    .flags = CNR_TENSOR_CONST};
    snprintf(name, sizeof name, "step%d.value", (int)++j->net->n_made);
    return tf_cast(j, imp_host->graph_constant(j->net->b.graph, name, &t), dtype);
}

/* ---- inputs and outputs ---- */

cnr_value tf_in_plain(tf_job *j, int32_t k) {
    return k < j->n_in ? tf_plain(j->net, j->in[k]) : -1;
}
int32_t tf_in_dims(const tf_job *j, int32_t k, int64_t *dim) {
    return k < j->n_in ? tf_dims(j->net, j->in[k], dim) : -1;
}
cnr_value tf_in_any(tf_job *j, int32_t k, int *turned) {
    *turned = k < j->n_in && j->in[k]->turned >= 0;
    return *turned ? j->in[k]->turned : tf_in_plain(j, k);
}
void tf_give(tf_job *j, int32_t k, cnr_value plain) {
    if (k < j->entry->n_out) j->entry->out[k] = (tf_layouts){.plain = plain, .turned = -1};
}
void tf_give_turned(tf_job *j, int32_t k, cnr_value v, int32_t rank) {
    if (k < j->entry->n_out)
        j->entry->out[k] = (tf_layouts){.plain = -1, .turned = v, .rank = rank};
}
/* Sets output k to v, which is in TensorFlow's layout or (turned) has channels first. */
void tf_give_as(tf_job *j, int32_t k, cnr_value v, int turned, int32_t rank) {
    if (turned) tf_give_turned(j, k, v, rank);
    else tf_give(j, k, v);
}

/* Our index of an axis, which may count from the end, where channels come last or (turned) are
 * moved to axis 1. */
int64_t tf_axis(int64_t axis, int32_t rank, int turned) {
    if (axis < 0 && rank > 0) axis += rank;
    if (!turned || axis <= 0 || axis >= rank) return axis;
    return axis == rank - 1 ? 1 : axis + 1;
}

int tf_is_nchw(const tf_job *j) {
    const Tf__AttrValue *a = tf_attr(j, "data_format");
    return a && a->has_s && a->s.len > 1 && a->s.data[0] == 'N' && a->s.data[1] == 'C';
}
/* Input k as a picture with channels on axis 1, transposed if need be; -1: there is none. */
cnr_value tf_picture(tf_job *j, int32_t k, int32_t rank) {
    if (tf_is_nchw(j)) return tf_in_plain(j, k);
    return k < j->n_in ? tf_turned(j->net, j->in[k], rank) : -1;
}
void tf_give_picture(tf_job *j, cnr_value v, int32_t rank) {
    tf_give_as(j, 0, v, !tf_is_nchw(j), rank);
}
