/* Every reference against ONNX's own node tests: models of one node, with inputs and outputs. */
#include "opcall.h"
#include <ctype.h>
#include <dirent.h>

/* ---- as much of protobuf as these files use ---- */

/* Bytes that are left. */
typedef struct bytes {
    const uint8_t *at, *end;
} bytes;
/* A field of a message. */
typedef struct field {
    int number, wire;
    uint64_t value;
    bytes data;
} field;

/* The next whole number. */
static uint64_t varint(bytes *b) {
    uint64_t v = 0;
    for (int shift = 0; b->at < b->end && shift < 64; shift += 7) {
        v |= (uint64_t)(*b->at & 0x7f) << shift;
        if (!(*b->at++ & 0x80)) break;
    }
    return v;
}

/* The next field; 0: there is none. */
static int next(bytes *b, field *f) {
    if (b->at >= b->end) return 0;
    const uint64_t key = varint(b);
    uint64_t n = 0;
    *f = (field){.number = (int)(key >> 3), .wire = (int)(key & 7)};
    if (f->wire == 0) f->value = varint(b);
    else n = f->wire == 1 ? 8 : f->wire == 5 ? 4 : varint(b);
    if (n > (uint64_t)(b->end - b->at)) return 0;
    f->data = (bytes){b->at, b->at + n};
    b->at += n;
    return 1;
}

/* A copy of a text, which the test's end frees. */
static char *text(bytes b) {
    char *copy = op_keep(calloc((size_t)(b.end - b.at) + 1, 1));
    memcpy(copy, b.at, (size_t)(b.end - b.at));
    return copy;
}

/* Appends one value, or packed ones, of a repeated field to the list, and counts *n up. */
static void each_int(const field *f, int64_t *list, int64_t *n) {
    bytes b = f->data;
    if (f->wire == 0) list[(*n)++] = (int64_t)f->value;
    else
        while (b.at < b.end && *n < 64) list[(*n)++] = (int64_t)varint(&b);
}

/* The bytes of a file; none: it is not there. */
static bytes whole_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return (bytes){NULL, NULL};
    fseek(file, 0, SEEK_END);
    const long n = ftell(file);
    rewind(file);
    uint8_t *at = op_keep(malloc((size_t)n + 1));
    const size_t got = fread(at, 1, (size_t)n, file);
    fclose(file);
    return (bytes){at, at + got};
}

/* Our type of an ONNX type. */
static int32_t dtype_of(uint64_t onnx) {
    static const int32_t types[] = {0,       CNR_f32, CNR_u8, CNR_i8,   CNR_u16, CNR_i16,
                                    CNR_i32, CNR_i64, 0,      CNR_bool, CNR_f16, CNR_f64,
                                    CNR_u32, CNR_u64, 0,      0,        CNR_bf16};
    return onnx < sizeof types / sizeof types[0] ? types[onnx] : 0;
}

/* The tensor of a message, with its data; NULL: its type isn't known here. */
static cnr_tensor *tensor(bytes b) {
    cnr_tensor *t = t_type(0, "");
    bytes raw = {NULL, NULL}, floats = raw, ints = raw;
    int64_t dims[64], rank = 0;
    field f;
    while (next(&b, &f)) {
        if (f.number == 1) each_int(&f, dims, &rank);
        if (f.number == 2) t->dtype = dtype_of(f.value);
        if (f.number == 4) floats = f.data;
        if (f.number == 5 || f.number == 7) ints = f.data;
        if (f.number == 9) raw = f.data;
    }
    if (!t->dtype || rank > CNR_MAX_RANK) return NULL;
    t->rank = (int32_t)rank;
    for (int64_t i = 0; i < rank; i++) t->dim[i] = dims[i];
    t_alloc(t);
    const bytes from = raw.at ? raw : floats;
    if (ints.at)
        for (int64_t i = 0; i < cnr_count(t); i++) t_set(t, i, (double)(int64_t)varint(&ints));
    else if ((uint64_t)(from.end - from.at) == t->bytes && t->bytes)
        memcpy(t->data, from.at, t->bytes);
    return t;
}

/* ---- models of one node ---- */

/* The model of a case. */
typedef struct model {
    char *op, *inputs[32], *graph_inputs[32];
    int32_t n_inputs, n_outputs, n_graph_inputs, n_nodes, n_attrs;
    cnr_attr attrs[32];
} model;

/* Reads an attribute. */
static void read_attr(bytes b, cnr_attr *a) {
    int64_t *ints = op_keep(calloc(64, sizeof *ints));
    double *floats = op_keep(calloc(64, sizeof *floats));
    float v;
    field f;
    *a = (cnr_attr){.set = 1, .ints = ints, .floats = floats, .s = ""};
    while (next(&b, &f)) {
        if (f.number == 1) a->name = text(f.data);
        if (f.number == 2) {
            memcpy(&v, f.data.at, 4);
            a->f = (double)v;
            a->type = CNR_ATTR_FLOAT;
        }
        if (f.number == 3) {
            a->i = (int64_t)f.value;
            a->f = (double)a->i;
            a->type = CNR_ATTR_INT;
        }
        if (f.number == 4) {
            a->s = text(f.data);
            a->type = CNR_ATTR_STRING;
        }
        if (f.number == 8) {
            each_int(&f, ints, &a->n);
            a->type = CNR_ATTR_INTS;
        }
        for (; f.number == 7 && f.data.at < f.data.end; f.data.at += 4, a->n++) {
            memcpy(&v, f.data.at, 4);
            floats[a->n] = (double)v;
            a->type = CNR_ATTR_FLOATS;
        }
    }
}

/* Reads a node. */
static void read_node(bytes b, model *m) {
    field f;
    m->n_nodes++;
    while (next(&b, &f)) {
        if (f.number == 1 && m->n_inputs < 32) m->inputs[m->n_inputs++] = text(f.data);
        if (f.number == 2) m->n_outputs++;
        if (f.number == 4) m->op = text(f.data);
        if (f.number == 5 && m->n_attrs < 32) read_attr(f.data, &m->attrs[m->n_attrs++]);
    }
}

/* Reads a model. */
static void read_model(bytes b, model *m) {
    field f, g, v;
    while (next(&b, &f)) {
        if (f.number != 7) continue;
        for (bytes graph = f.data; next(&graph, &g);) {
            if (g.number == 1) read_node(g.data, m);
            for (bytes info = g.data; g.number == 11 && next(&info, &v);)
                if (v.number == 1 && m->n_graph_inputs < 32)
                    m->graph_inputs[m->n_graph_inputs++] = text(v.data);
        }
    }
}

/* Our operator for ONNX's: equal but for underscores and case; NULL: none. */
static const cnr_op *operator_of(const char *onnx) {
    for (int32_t i = 0; i < op_state.n_ops; i++) {
        const char *a = op_state.ops[i]->name, *b = onnx;
        for (; *a && *b; a++) {
            if (*a == '_') continue;
            if (*a != tolower((unsigned char)*b)) break;
            b++;
        }
        if (!*a && !*b) return op_state.ops[i];
    }
    return NULL;
}

/* Attributes take the schema's type where ONNX has a wider one. */
static void fit_types(const cnr_op *op, model *m) {
    for (int32_t i = 0; i < m->n_attrs; i++)
        for (int32_t k = 0; k < op->n_attrs; k++)
            if (strcmp(op->attrs[k].name, m->attrs[i].name) == 0) {
                cnr_attr *a = &m->attrs[i];
                if (op->attrs[k].type == CNR_ATTR_DTYPE) {
                    a->i = dtype_of((uint64_t)a->i);
                    a->s = cnr_dtype_name((int32_t)a->i);
                }
                a->type = op->attrs[k].type;
            }
}

/* The i-th input or output (kind) of a case's folder; NULL: there is none. */
static cnr_tensor *vector(const char *folder, const char *kind, int32_t i) {
    char path[2048];
    snprintf(path, sizeof path, "%s/test_data_set_0/%s_%d.pb", folder, kind, i);
    const bytes b = whole_file(path);
    return b.at ? tensor(b) : NULL;
}

/* 1: both tensors agree. */
static int agrees(const cnr_tensor *got, const cnr_tensor *want) {
    if (got->dtype != want->dtype || !cnr_same_shape(got, want)) {
        note("got %s, rank %d; want %s, rank %d", cnr_dtype_name(got->dtype), got->rank,
             cnr_dtype_name(want->dtype), want->rank);
        return 0;
    }
    for (int64_t i = 0; i < cnr_count(want); i++) {
        const double g = t_get(got, i), w = t_get(want, i);
        if (g == w || (isnan(g) && isnan(w)) || fabs(g - w) <= 1e-7 + 1e-3 * fabs(w)) continue;
        note("element %lld: got %.9g, want %.9g", (long long)i, g, w);
        return 0;
    }
    return 1;
}

/* A test: one case. */
static void check(const char *name, const char *folder) {
    char path[2048];
    model m = {0};
    const cnr_tensor *inputs[32] = {NULL};
    cnr_tensor *outputs[16];
    const cnr_attr *attrs[32];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    read_model(whole_file(path), &m);
    const cnr_op *op = m.op ? operator_of(m.op) : NULL;
    if (m.n_nodes != 1 || m.n_outputs > 16) return skip(name, "left out: a model of several nodes");
    if (!op) return skip(name, m.op);
    for (int32_t i = 0; i < m.n_attrs; i++)
        if (!m.attrs[i].type)
            return skip(name, "left out: a tensor as an attribute, which the importer reads");
    /* The text says that results saturate; these two files hold results that wrapped. */
    if (strstr(name, "qlinearmatmul") && strstr(name, "_int8_"))
        return skip(name, "left out: its output contradicts ONNX's text");
    fit_types(op, &m);
    for (int32_t i = 0; i < m.n_attrs; i++) attrs[i] = &m.attrs[i];
    for (int32_t i = 0; i < m.n_inputs; i++)
        for (int32_t k = 0; k < m.n_graph_inputs; k++)
            if (m.inputs[i][0] && strcmp(m.inputs[i], m.graph_inputs[k]) == 0 &&
                (inputs[i] = vector(folder, "input", k)) == NULL)
                return skip(name, "left out: a type that tensors do not have");
    const cnr_status status =
        op_eager(op, attrs, m.n_attrs, inputs, m.n_inputs, outputs, m.n_outputs);
    int good = status == CNR_OK;
    if (!good) note("%s", op_state.problem);
    for (int32_t i = 0; good && i < m.n_outputs; i++) {
        const cnr_tensor *want = vector(folder, "output", i);
        good = !want || agrees(outputs[i], want);
    }
    ok(good, "%s", name);
}

/* Compares two names, for qsort. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(void) {
    const char *shared = tap_shared();
    char folder[1100], path[1500], *names[4096];
    size_t n = 0;
    struct dirent *entry;
    op_open();
    snprintf(folder, sizeof folder, "%s/onnx-node", shared ? shared : ".");
    DIR *list = shared ? opendir(folder) : NULL;
    if (!list) {
        skip("ONNX's node tests", "the shared data");
        return op_done();
    }
    while ((entry = readdir(list)) && n < 4096)
        if (entry->d_name[0] != '.') names[n++] = op_keep(strdup(entry->d_name));
    closedir(list);
    qsort(names, n, sizeof names[0], by_name);
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        check(names[i], path);
    }
    return op_done();
}
