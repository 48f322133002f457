/* Writes a graph as a .cnr file: first the directory, then the tensors (format: store/store.h). */
#include "files/files.h"

/* Bytes that grow as they are appended; `failed`: out of memory, or a text is too long. */
typedef struct buffer {
    uint8_t *at;
    size_t n, capacity;
    bool failed;
} buffer;

/* Appends bytes to the growing buffer; sets b->failed, and then does nothing, when out of
 * memory. */
static void put(buffer *b, const void *data, size_t bytes) {
    if (b->failed || bytes == 0) return;
    if (b->capacity - b->n < bytes) {
        size_t capacity = b->capacity ? b->capacity : 4096;
        while (capacity - b->n < bytes && capacity < SIZE_MAX / 4) capacity *= 2;
        uint8_t *at = capacity - b->n >= bytes ? cnri_resize(b->at, capacity) : NULL;
        if (!at) {
            b->failed = true;
            return;
        }
        b->at = at;
        b->capacity = capacity;
    }
    memcpy(b->at + b->n, data, bytes);
    b->n += bytes;
}

/* Appends a little-endian number of that many bytes. */
static void put_number(buffer *b, uint64_t x, size_t bytes) {
    uint8_t le[8];
    for (size_t i = 0; i < bytes; i++) le[i] = (uint8_t)(x >> 8 * i);
    put(b, le, bytes);
}
static void put_u8(buffer *b, uint8_t x) { put(b, &x, 1); }
static void put_u32(buffer *b, uint32_t x) { put_number(b, x, 4); }
static void put_i32(buffer *b, int32_t x) { put_number(b, (uint32_t)x, 4); }
static void put_u64(buffer *b, uint64_t x) { put_number(b, x, 8); }
static void put_i64(buffer *b, int64_t x) { put_number(b, (uint64_t)x, 8); }
/* Appends a double. */
static void put_f64(buffer *b, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_u64(b, bits);
}
/* Appends a float. */
static void put_f32(buffer *b, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_u32(b, bits);
}
/* Appends a text: length, bytes, a NUL; NULL counts as "". */
static void put_string(buffer *b, const char *text) {
    const size_t n = text ? strlen(text) : 0;
    if (n > UINT32_MAX) b->failed = true;
    put_u32(b, (uint32_t)n);
    put(b, n ? text : "", n);
    put_u8(b, 0);
}

/* State of writing a graph: numbers of values, operators and encodings in the file. */
typedef struct writing {
    const cnr_graph *g;
    buffer directory, fingerprints;
    int32_t *number;    /* number of each graph value in the file; -1: not written */
    const cnr_op **ops; /* operators that the graph uses, each once */
    cnr_id *encodings;
    cnri_digest *digests, *prints; /* one for each value of the graph; no bytes: no data */
    int32_t n_ops, n_encodings, n_values;
    uint64_t data_bytes;
} writing;

/* Whether the value is a weight that is written: some node reads it, and its type is known. */
static bool is_constant(const cnri_value *v) {
    return v->producer < 0 && !v->is_input && v->uses > 0 && !cnri_is_type_unknown(v->type);
}

/* Index of the operator in the file's list; w->n_ops: it is not there. */
static int32_t op_index(const writing *w, const cnr_op *op) {
    int32_t i = 0;
    while (i < w->n_ops && w->ops[i] != op) i++;
    return i;
}

/* Index of the encoding in the file's list; w->n_encodings: it is not there. */
static int32_t encoding_index(const writing *w, cnr_id id) {
    int32_t i = 0;
    while (i < w->n_encodings && w->encodings[i] != id) i++;
    return i;
}

/* Numbers values, operators and encodings; false: out of memory. */
static bool prepare(writing *w) {
    const cnr_graph *g = w->g;
    w->number = cnri_alloc(((size_t)g->values.n + 1) * sizeof *w->number);
    w->ops = cnri_alloc(((size_t)g->nodes.n + 1) * sizeof *w->ops);
    w->encodings = cnri_alloc(((size_t)g->values.n + 1) * sizeof *w->encodings);
    w->digests = cnri_alloc(((size_t)g->values.n + 1) * sizeof *w->digests);
    w->prints = cnri_alloc(((size_t)g->values.n + 1) * sizeof *w->prints);
    if (!w->number || !w->ops || !w->encodings || !w->digests || !w->prints) return false;
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnri_value *v = &g->values.at[i];
        const bool keep = v->is_input || is_constant(v);
        w->number[i] = keep ? w->n_values++ : -1;
        const cnr_id id = keep ? v->type->encoding : 0;
        if (id && encoding_index(w, id) == w->n_encodings) w->encodings[w->n_encodings++] = id;
    }
    int32_t next = w->n_values;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        if (op_index(w, node->view.desc) == w->n_ops) w->ops[w->n_ops++] = node->view.desc;
        for (int32_t k = 0; k < node->view.n_outputs; k++) w->number[node->out[k]] = next++;
    }
    return true;
}

/* Computes digests and fingerprints of all data. Fails if data that came from a file does not have
 * the digest stored there. */
static cnr_status digest(writing *w, cnr_error *err) {
    const int32_t n = w->g->values.n;
    for (int32_t i = 0; i < n; i++) {
        const cnri_value *v = &w->g->values.at[i];
        const bool stored = is_constant(v) && v->type->data;
        w->digests[i] = (cnri_digest){v->type->data, stored ? v->type->bytes : 0, {0}, false};
    }
    memcpy(w->prints, w->digests, (size_t)n * sizeof *w->prints);
    cnri_digests(w->digests, n, 0);
    if (!cnri_fingerprints(w->prints, n, 0)) return cnri_out_of_memory(err, w->g->name);
    for (int32_t i = 0; i < n; i++) {
        const cnri_seal *seal = w->digests[i].bytes > 0 ? w->g->values.at[i].seal : NULL;
        if (seal && memcmp(seal->digest, w->digests[i].sum, sizeof w->digests->sum) != 0)
            return cnri_value_verify(&w->g->values.at[i], true, 0, err); /* reports the error */
    }
    return CNR_OK;
}

/* Appends a tensor's type: dtype, encoding, shape and quantisation. */
static void put_type(writing *w, const cnr_tensor *t) {
    buffer *b = &w->directory;
    put_u8(b, (uint8_t)t->dtype);
    put_u32(b, t->encoding ? (uint32_t)encoding_index(w, t->encoding) + 1 : 0);
    put_u32(b, t->flags & CNR_TENSOR_VARIABLE);
    put_u8(b, (uint8_t)t->rank);
    for (int32_t i = 0; i < t->rank; i++) put_i64(b, t->dim[i]);
    put_u32(b, t->quant ? (uint32_t)t->quant->count : 0);
    if (!t->quant) return;
    put_i32(b, t->quant->axis);
    for (int64_t i = 0; i < t->quant->count; i++) put_f32(b, t->quant->scale[i]);
    put_u8(b, t->quant->zero_point != NULL);
    for (int64_t i = 0; t->quant->zero_point && i < t->quant->count; i++)
        put_i32(b, t->quant->zero_point[i]);
}

/* Appends an input, a weight or an unfilled weight, and the weight's fingerprint. */
static void put_value(writing *w, const cnri_value *v) {
    buffer *b = &w->directory;
    put_string(b, v->name);
    put_u8(b, v->is_input     ? CNRI_STORED_INPUT
              : v->type->data ? CNRI_STORED_WEIGHT
                              : CNRI_STORED_UNFILLED);
    put_type(w, v->type);
    if (v->is_input) return;
    if (!v->type->data) {
        put_i32(b, v->init.kind);
        put_i64(b, v->init.fan_in);
        put_f64(b, v->init.value);
        return;
    }
    put_u64(b, w->data_bytes);
    put_u64(b, v->type->bytes);
    put(b, w->digests[v - w->g->values.at].sum, sizeof w->digests->sum);
    put(&w->fingerprints, w->prints[v - w->g->values.at].sum, 16);
    w->data_bytes = cnri_store_align(w->data_bytes + v->type->bytes);
}

/* Appends an attribute: name, type, value. */
static void put_attr(buffer *b, const cnr_attr *a) {
    put_string(b, a->name);
    put_u8(b, (uint8_t)a->type);
    if (a->type == CNR_ATTR_FLOAT) put_f64(b, a->f);
    else if (a->type == CNR_ATTR_ENUM || a->type == CNR_ATTR_STRING) put_string(b, a->s);
    else if (a->type == CNR_ATTR_INTS) {
        put_u32(b, (uint32_t)a->n);
        for (int64_t i = 0; i < a->n; i++) put_i64(b, a->ints[i]);
    } else if (a->type == CNR_ATTR_FLOATS) {
        put_u32(b, (uint32_t)a->n);
        for (int64_t i = 0; i < a->n; i++) put_f64(b, a->floats[i]);
    } else put_i64(b, a->i);
}

/* Appends a node. Defaults of attributes are not stored: the operator's version defines them. */
static void put_node(writing *w, const cnri_node *node) {
    buffer *b = &w->directory;
    put_u32(b, (uint32_t)op_index(w, node->view.desc));
    put_string(b, node->name);
    put_string(b, node->where);
    put_u32(b, (uint32_t)node->view.n_inputs);
    for (int32_t i = 0; i < node->view.n_inputs; i++)
        put_i32(b, node->in[i] >= 0 ? w->number[node->in[i]] : -1);
    put_u32(b, (uint32_t)node->view.n_outputs);
    for (int32_t i = 0; i < node->view.n_outputs; i++) put_u8(b, 0);
    uint32_t n = 0;
    for (int32_t i = 0; i < node->view.n_attrs; i++) n += node->view.attrs[i]->set != 0;
    put_u32(b, n);
    for (int32_t i = 0; i < node->view.n_attrs; i++)
        if (node->view.attrs[i]->set) put_attr(b, node->view.attrs[i]);
}

/* Appends the metadata sorted by key, so that equal nets give equal files. */
static void put_meta(writing *w) {
    const cnr_graph *g = w->g;
    const char *last = NULL;
    put_u32(&w->directory, (uint32_t)g->meta.n);
    for (int32_t n = 0; n < g->meta.n; n++) {
        int32_t next = -1;
        for (int32_t i = 0; i < g->meta.n; i++)
            if ((!last || strcmp(g->meta.keys[i], last) > 0) &&
                (next < 0 || strcmp(g->meta.keys[i], g->meta.keys[next]) < 0))
                next = i;
        last = g->meta.keys[next];
        put_string(&w->directory, last);
        put_string(&w->directory, g->meta.texts[next]);
    }
}

/* Builds the directory: operators, encodings, metadata, values and nodes. */
static void put_directory(writing *w) {
    const cnr_graph *g = w->g;
    buffer *b = &w->directory;
    put_string(b, g->name);
    put_u32(b, (uint32_t)w->n_ops);
    for (int32_t i = 0; i < w->n_ops; i++) {
        put_string(b, w->ops[i]->name);
        put_u32(b, w->ops[i]->version);
    }
    put_u32(b, (uint32_t)w->n_encodings);
    for (int32_t i = 0; i < w->n_encodings; i++) {
        const char *name = cnri_name(w->encodings[i]);
        const cnr_encoding *encoding = cnri_descriptor_find(CNR_KIND_ENCODING, name);
        put_string(b, name);
        put_u32(b, encoding ? encoding->version : 0);
    }
    put_u32(b, (uint32_t)g->symbols.n);
    for (int32_t i = 0; i < g->symbols.n; i++) put_string(b, g->symbols.at[i]);
    put_meta(w);
    put_u32(b, (uint32_t)w->n_values);
    for (int32_t i = 0; i < g->values.n; i++)
        if (g->values.at[i].is_input || is_constant(&g->values.at[i]))
            put_value(w, &g->values.at[i]);
    put_u32(b, (uint32_t)g->inputs.n);
    for (int32_t i = 0; i < g->inputs.n; i++) put_u32(b, (uint32_t)w->number[g->inputs.at[i]]);
    put_u32(b, (uint32_t)g->nodes.n);
    for (int32_t i = 0; i < g->nodes.n; i++) put_node(w, g->nodes.at[i]);
    put_u32(b, (uint32_t)g->outputs.n);
    for (int32_t i = 0; i < g->outputs.n; i++) {
        put_u32(b, (uint32_t)w->number[g->outputs.at[i]]);
        put_string(b, g->outputs.names[i]);
    }
}

/* Builds the header: magic, version, offsets, lengths, the directory's digest, and last the digest
 * of the header itself. */
static void make_header(const writing *w, buffer *header) {
    const uint64_t prints = CNRI_STORE_HEADER + w->directory.n;
    const uint64_t data = cnri_store_align(prints + w->fingerprints.n);
    uint8_t digest[32];
    put(header, CNRI_STORE_MAGIC, 8);
    put_u32(header, CNRI_STORE_VERSION);
    put_u32(header, CNRI_STORE_HEADER);
    put_u64(header, data + w->data_bytes);
    put_u64(header, CNRI_STORE_HEADER);
    put_u64(header, w->directory.n);
    put_u64(header, data);
    put_u64(header, w->data_bytes);
    cnri_sha256_of(w->directory.at, w->directory.n, digest);
    put(header, digest, sizeof digest);
    put_u64(header, prints);
    if (header->failed) return;
    cnri_sha256_of(header->at, CNRI_STORE_SIGNED, digest);
    put(header, digest, sizeof digest);
}

/* Writes zeros up to the next alignment behind `bytes` bytes. */
static cnr_status pad(cnri_writer *out, uint64_t bytes, cnr_error *err) {
    static const uint8_t zeros[CNRI_STORE_ALIGN];
    return cnri_write(out, zeros, cnri_store_align(bytes) - bytes, err);
}

/* Writes header, directory, fingerprints and all weights. */
static cnr_status write_all(const writing *w, const buffer *header, cnri_writer *out,
                            cnr_error *err) {
    cnr_status status = cnri_write(out, header->at, header->n, err);
    if (status == CNR_OK) status = cnri_write(out, w->directory.at, w->directory.n, err);
    if (status == CNR_OK) status = cnri_write(out, w->fingerprints.at, w->fingerprints.n, err);
    if (status == CNR_OK)
        status = pad(out, CNRI_STORE_HEADER + w->directory.n + w->fingerprints.n, err);
    for (int32_t i = 0; i < w->g->values.n && status == CNR_OK; i++) {
        const cnri_value *v = &w->g->values.at[i];
        if (!is_constant(v) || !v->type->data) continue;
        status = cnri_write(out, v->type->data, v->type->bytes, err);
        if (status == CNR_OK) status = pad(out, v->type->bytes, err);
    }
    return status;
}

cnr_status cnri_store_write(const cnr_graph *graph, const char *path, cnr_error *err) {
    cnri_writer out;
    cnr_status status = cnri_graph_status(graph, false, err);
    if (!status) status = cnri_write_begin(&out, path, 0, err);
    if (status) return status;
    status = cnri_store_write_to(graph, &out, err);
    if (!status) return cnri_write_commit(&out, err);
    cnri_write_abandon(&out);
    return status;
}

cnr_status cnri_store_write_to(const cnr_graph *graph, cnri_writer *out, cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    writing w = {.g = graph};
    buffer header = {0};
    cnr_status status = prepare(&w) ? CNR_OK : cnri_out_of_memory(err, out->path);
    if (status == CNR_OK) status = digest(&w, err);
    if (status == CNR_OK) {
        put_directory(&w);
        make_header(&w, &header);
        const bool good = !w.directory.failed && !w.fingerprints.failed && !header.failed &&
                          cnri_alloc_failures() == before;
        status = good ? write_all(&w, &header, out, err) : cnri_out_of_memory(err, out->path);
    }
    cnri_free(w.number);
    cnri_free(w.ops);
    cnri_free(w.encodings);
    cnri_free(w.digests);
    cnri_free(w.prints);
    cnri_free(w.directory.at);
    cnri_free(w.fingerprints.at);
    cnri_free(header.at);
    return status;
}
