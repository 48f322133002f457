/* Builds the message: its memory, tensors, nodes and attributes. */
#include "export.h"

#include <stdio.h>

enum { MAX_ATTRS = 16 };
enum { T_FLOAT = 1, T_INT = 2, T_STRING = 3, T_FLOATS = 6, T_INTS = 7 }; /* AttributeProto.type */

void *out_make(out_writer *w, size_t bytes) {
    void *made = imp_take(&w->pool, bytes);
    if (!made) w->no_memory = 1;
    return made;
}

char *out_text(out_writer *w, const char *s) {
    const size_t n = strlen(s) + 1;
    char *out = (char *)out_make(w, n);
    if (out) memcpy(out, s, n);
    return out;
}

void out_unsupported(out_writer *w, const cnr_node *node, const char *why) {
    imp_host->log(CNR_LOG_ERROR, "export", "node %s (%s): %s", node->name,
                  node->desc ? node->desc->name : "", why);
    w->problems++;
}

/* Makes room for one more pointer in a list; 0: no memory. */
static int grow(out_writer *w, void ***list, size_t n, size_t *room) {
    if (n < *room) return 1;
    const size_t more = *room ? *room * 2 : 128;
    void **grown = (void **)out_make(w, more * sizeof(void *));
    if (!grown) return 0;
    if (n) memcpy(grown, *list, n * sizeof(void *));
    *list = grown;
    *room = more;
    return 1;
}

/* ---- tensors ---- */

int32_t out_data_type(int32_t dtype) {
    for (int32_t t = 1; t < 23; t++)
        if (onnx_dtype(t) == dtype) return t;
    return 0;
}

void out_tensor(out_writer *w, const char *name, int32_t dtype, const int64_t *dim, int32_t rank,
                const void *data, uint64_t bytes) {
    Onnx__TensorProto *t = (Onnx__TensorProto *)out_make(w, sizeof *t);
    if (!t || !grow(w, (void ***)&w->tensors, w->n_tensors, &w->tensors_room)) return;
    onnx__tensor_proto__init(t);
    t->name = out_text(w, name);
    t->has_data_type = 1;
    t->data_type = out_data_type(dtype);
    t->n_dims = (size_t)rank;
    t->dims = (int64_t *)out_make(w, (size_t)rank * sizeof(int64_t));
    if (t->dims) memcpy(t->dims, dim, (size_t)rank * sizeof(int64_t));
    t->has_raw_data = 1;
    t->raw_data.data = (uint8_t *)data;
    t->raw_data.len = (size_t)bytes;
    w->tensors[w->n_tensors++] = t;
}

/* Copies a constant into the model; returns its new name, which the model owns, or "": out of
 * memory. */
const char *out_constant(out_writer *w, int32_t dtype, const int64_t *dim, int32_t rank,
                         const void *data, uint64_t bytes) {
    char name[64];
    void *copy = out_make(w, (size_t)bytes);
    snprintf(name, sizeof name, "export.value%d", (int)++w->n_made);
    if (!copy) return "";
    memcpy(copy, data, (size_t)bytes);
    out_tensor(w, name, dtype, dim, rank, copy, bytes);
    return w->n_tensors ? w->tensors[w->n_tensors - 1]->name : "";
}
const char *out_ints(out_writer *w, const int64_t *values, int64_t n) {
    return out_constant(w, CNR_i64, &n, 1, values, (uint64_t)n * 8);
}
const char *out_floats(out_writer *w, const double *values, int64_t n) {
    float *own = (float *)out_make(w, (size_t)(n + 1) * sizeof(float));
    for (int64_t i = 0; own && i < n; i++) own[i] = (float)values[i];
    return own ? out_constant(w, CNR_f32, &n, 1, own, (uint64_t)n * 4) : "";
}
const char *out_scalar(out_writer *w, double value) {
    const float f = (float)value;
    return out_constant(w, CNR_f32, NULL, 0, &f, 4);
}

/* ---- nodes ---- */

Onnx__NodeProto *out_node(out_writer *w, const char *op, const char *const *in, int32_t n_in,
                          const char *const *out, int32_t n_out) {
    Onnx__NodeProto *n = (Onnx__NodeProto *)out_make(w, sizeof *n);
    if (!n || !grow(w, (void ***)&w->nodes, w->n_nodes, &w->nodes_room)) return NULL;
    onnx__node_proto__init(n);
    n->op_type = out_text(w, op);
    n->name = out_text(w, out[0]);
    n->input = (char **)out_make(w, (size_t)(n_in + 1) * sizeof(char *));
    n->output = (char **)out_make(w, (size_t)n_out * sizeof(char *));
    n->attribute = (Onnx__AttributeProto **)out_make(w, MAX_ATTRS * sizeof(void *));
    if (!n->input || !n->output || !n->attribute) return NULL;
    for (int32_t i = 0; i < n_in; i++) n->input[i] = out_text(w, in[i]);
    for (int32_t i = 0; i < n_out; i++) n->output[i] = out_text(w, out[i]);
    n->n_input = (size_t)n_in;
    n->n_output = (size_t)n_out;
    w->nodes[w->n_nodes++] = n;
    return w->no_memory ? NULL : n;
}

/* Adds an attribute of that name and type (ONNX's) to a node; NULL: no memory or too many. */
static Onnx__AttributeProto *attribute(out_writer *w, Onnx__NodeProto *n, const char *name,
                                       int type) {
    Onnx__AttributeProto *a = (Onnx__AttributeProto *)out_make(w, sizeof *a);
    if (!a || !n || n->n_attribute >= MAX_ATTRS) return NULL;
    onnx__attribute_proto__init(a);
    a->name = out_text(w, name);
    a->has_type = 1;
    a->type = type;
    n->attribute[n->n_attribute++] = a;
    return a;
}
void out_put_int(out_writer *w, Onnx__NodeProto *n, const char *name, int64_t value) {
    Onnx__AttributeProto *a = attribute(w, n, name, T_INT);
    if (a) a->has_i = 1, a->i = value;
}
void out_put_ints(out_writer *w, Onnx__NodeProto *n, const char *name, const int64_t *v,
                  int64_t k) {
    Onnx__AttributeProto *a = attribute(w, n, name, T_INTS);
    if (!a) return;
    a->ints = (int64_t *)out_make(w, (size_t)k * sizeof(int64_t));
    if (a->ints && k) memcpy(a->ints, v, (size_t)k * sizeof(int64_t));
    a->n_ints = a->ints ? (size_t)k : 0;
}

void out_put_attr(out_writer *w, Onnx__NodeProto *n, const cnr_attr *from) {
    Onnx__AttributeProto *a;
    switch (from->type) {
    case CNR_ATTR_INT:
    case CNR_ATTR_BOOL: out_put_int(w, n, from->name, from->i); break;
    case CNR_ATTR_DTYPE: out_put_int(w, n, from->name, out_data_type((int32_t)from->i)); break;
    case CNR_ATTR_FLOAT:
        if ((a = attribute(w, n, from->name, T_FLOAT))) a->has_f = 1, a->f = (float)from->f;
        break;
    case CNR_ATTR_ENUM:
    case CNR_ATTR_STRING:
        if ((a = attribute(w, n, from->name, T_STRING))) {
            a->has_s = 1;
            a->s.data = (uint8_t *)out_text(w, from->s ? from->s : "");
            a->s.len = a->s.data ? strlen((char *)a->s.data) : 0;
        }
        break;
    case CNR_ATTR_INTS:
        if (from->n) out_put_ints(w, n, from->name, from->ints, from->n);
        break;
    default:
        if (from->n && (a = attribute(w, n, from->name, T_FLOATS))) {
            a->floats = (float *)out_make(w, (size_t)from->n * sizeof(float));
            for (int64_t i = 0; a->floats && i < from->n; i++)
                a->floats[i] = (float)from->floats[i];
            a->n_floats = a->floats ? (size_t)from->n : 0;
        }
    }
}

const char *out_between(out_writer *w) {
    char name[64];
    snprintf(name, sizeof name, "export.step%d", (int)++w->n_made);
    const char *t = out_text(w, name);
    return t ? t : "";
}
