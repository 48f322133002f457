/* Reads the header and directory of a .cnr file. Files are not trusted: each count is checked
 * against the bytes that are left before memory is allocated, and each offset against the file. */
#include "store/format.h"

/* Reading position, with the first fault. */
typedef struct cursor {
    const uint8_t *at, *end;
    const uint8_t *print, *prints_end; /* next fingerprint (NULL: none), and their end */
    const char *fault;                 /* the first error; all reads return zero after it */
    cnri_stored *s;
    bool no_memory;
} cursor;

/* Records the first error and ends reading. */
static void fault(cursor *c, const char *text) {
    if (!c->fault) c->fault = text;
    c->at = c->end;
}

/* Returns the next `bytes` bytes and moves past them; NULL: fewer are left. */
static const uint8_t *take(cursor *c, uint64_t bytes) {
    if ((uint64_t)(c->end - c->at) < bytes || c->fault) {
        fault(c, "it ends early");
        return NULL;
    }
    const uint8_t *at = c->at;
    c->at += bytes;
    return at;
}

/* A little-endian number of that many bytes. */
static uint64_t number_at(const uint8_t *p, int bytes) {
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++) x |= (uint64_t)p[i] << 8 * i;
    return x;
}
/* Reads a number of that many bytes; 0 after a fault. */
static uint64_t get(cursor *c, int bytes) {
    const uint8_t *p = take(c, (uint64_t)bytes);
    return p ? number_at(p, bytes) : 0;
}
static uint8_t get_u8(cursor *c) { return (uint8_t)get(c, 1); }
static uint32_t get_u32(cursor *c) { return (uint32_t)get(c, 4); }
static int32_t get_i32(cursor *c) { return (int32_t)(uint32_t)get(c, 4); }
static int64_t get_i64(cursor *c) { return (int64_t)get(c, 8); }
/* Reads a double; 0 after a fault. */
static double get_f64(cursor *c) {
    const uint64_t bits = get(c, 8);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
/* Reads a float; 0 after a fault. */
static float get_f32(cursor *c) {
    const uint32_t bits = get_u32(c);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Reads a text with its length and end; "" after a fault. */
static const char *get_string(cursor *c) {
    const uint32_t n = get_u32(c);
    const uint8_t *p = take(c, (uint64_t)n + 1);
    if (!p) return "";
    if (p[n] != 0 || memchr(p, 0, n)) {
        fault(c, "a text is malformed");
        return "";
    }
    return (const char *)p;
}

/* Allocates a zeroed list of n elements of `bytes` each. In the file, each element takes at least
 * `minimum` bytes (0: n was checked before). NULL: n is 0, or after an error. */
static void *list(cursor *c, uint32_t n, size_t minimum, size_t bytes) {
    if (c->fault || n == 0) return NULL;
    if (n > INT32_MAX / 2 || (minimum && n > (uint64_t)(c->end - c->at) / minimum)) {
        fault(c, "a count is larger than the directory");
        return NULL;
    }
    bool overflow = false;
    const size_t size = cnri_mul(n, bytes, &overflow);
    void *block = overflow ? NULL : cnri_alloc_zero(size);
    void **slot = block ? cnri_push(&c->s->blocks) : NULL;
    if (!slot) {
        cnri_free(block);
        c->no_memory = true;
        fault(c, "");
        return NULL;
    }
    *slot = block;
    return block;
}

/* Reads a length and allocates a list; minimum: fewest bytes of an entry in the file. */
#define LIST(c, where, count, minimum) \
    do { \
        const uint32_t n_ = get_u32(c); \
        (where) = list(c, n_, minimum, sizeof *(where)); \
        (count) = (where) ? (int32_t)n_ : 0; \
    } while (0)

/* ---- values ---- */

/* Reads the quantisation of a value, if it has one. */
static void parse_quant(cursor *c, cnri_stored_value *v) {
    const uint32_t n = get_u32(c);
    if (n == 0 || c->fault) return;
    v->quant.size = sizeof v->quant;
    v->quant.count = n;
    v->quant.axis = get_i32(c);
    if (v->quant.axis < -1 || v->quant.axis >= v->type.rank ||
        (int64_t)n != (v->quant.axis < 0 ? 1 : v->type.dim[v->quant.axis])) {
        fault(c, "a quantisation does not fit its tensor");
        return;
    }
    float *scale = list(c, n, 4, sizeof *scale);
    for (uint32_t i = 0; scale && i < n; i++) scale[i] = get_f32(c);
    v->quant.scale = scale;
    if (get_u8(c)) {
        int32_t *zero = list(c, n, 4, sizeof *zero);
        for (uint32_t i = 0; zero && i < n; i++) zero[i] = get_i32(c);
        v->quant.zero_point = zero;
    }
    v->type.quant = &v->quant;
}

/* Reads a value's element type, encoding, flags and shape into v; a bad one is a fault. */
static void parse_type(cursor *c, cnri_stored_value *v) {
    cnr_tensor *t = &v->type;
    t->size = sizeof *t;
    t->dtype = get_u8(c);
    v->encoding = get_u32(c);
    t->flags = get_u32(c);
    t->rank = get_u8(c);
    if (c->fault) return;
    if (cnr_dtype_bits(t->dtype) == 0) fault(c, "an element type is unknown");
    else if (v->encoding > (uint32_t)c->s->n_encodings) fault(c, "an encoding is not in the list");
    else if (t->flags & ~(uint32_t)CNR_TENSOR_VARIABLE) fault(c, "a tensor's flags are unknown");
    else if (t->rank > CNR_MAX_RANK) fault(c, "a rank is larger than 8");
    for (int32_t i = 0; i < t->rank && !c->fault; i++) {
        t->dim[i] = get_i64(c);
        const bool symbol =
            t->dim[i] < CNR_DIM_UNKNOWN && t->dim[i] >= -1 - (int64_t)c->s->n_symbols;
        if (t->dim[i] >= 0) continue;
        if (v->kind != CNRI_STORED_INPUT || (t->dim[i] != CNR_DIM_UNKNOWN && !symbol))
            fault(c, "a dimension is negative");
    }
    if (!c->fault) parse_quant(c, v);
}

/* Reads offset, length, digest and fingerprint of a weight. */
static void parse_weight(cursor *c, cnri_stored_value *v) {
    const uint64_t offset = get(c, 8), bytes = get(c, 8);
    v->digest = take(c, 32);
    if (c->print && c->prints_end - c->print < 16) fault(c, "its fingerprints end early");
    if (c->fault) return;
    v->print = c->print;
    if (c->print) c->print += 16;
    const uint64_t dense = cnr_dense_bytes(&v->type);
    if (dense == UINT64_MAX) fault(c, "a tensor is too large");
    else if (!v->encoding && bytes != dense) fault(c, "a tensor's size does not fit its shape");
    else if (offset % CNRI_STORE_ALIGN != 0 || offset > c->s->data_bytes ||
             bytes > c->s->data_bytes - offset)
        fault(c, "a tensor lies outside of the file");
    if (c->fault) return;
    v->offset = offset;
    v->type.bytes = bytes;
    v->type.data = (uint8_t *)(uintptr_t)c->s->at + c->s->data_offset + offset;
}

/* Reads one value into v: name, kind, type, and what its kind needs. A bad one is a fault. */
static void parse_value(cursor *c, cnri_stored_value *v) {
    v->name = get_string(c);
    v->kind = get_u8(c);
    if (!c->fault && !v->name[0]) fault(c, "a value has no name");
    parse_type(c, v);
    if (v->kind == CNRI_STORED_WEIGHT) parse_weight(c, v);
    else if (v->kind == CNRI_STORED_UNFILLED) {
        v->init.kind = get_i32(c);
        v->init.fan_in = get_i64(c);
        v->init.value = get_f64(c);
        if (!c->fault && cnr_dense_bytes(&v->type) == UINT64_MAX) fault(c, "a tensor is too large");
    } else if (v->kind != CNRI_STORED_INPUT) fault(c, "a value is of no known kind");
    if (v->kind != CNRI_STORED_WEIGHT && v->encoding) fault(c, "only weights can be encoded");
}

/* ---- nodes ---- */

/* Reads one attribute into a; the reader owns its lists. A bad one is a fault. */
static void parse_attr(cursor *c, cnr_attr *a) {
    a->name = get_string(c);
    a->type = get_u8(c);
    a->set = 1;
    if (a->type == CNR_ATTR_FLOAT) a->f = get_f64(c);
    else if (a->type == CNR_ATTR_ENUM || a->type == CNR_ATTR_STRING) a->s = get_string(c);
    else if (a->type == CNR_ATTR_INTS) {
        const uint32_t n = get_u32(c);
        int64_t *ints = list(c, n, 8, sizeof *ints);
        for (uint32_t i = 0; ints && i < n; i++) ints[i] = get_i64(c);
        a->ints = ints;
        a->n = ints ? n : 0;
    } else if (a->type == CNR_ATTR_FLOATS) {
        const uint32_t n = get_u32(c);
        double *floats = list(c, n, 8, sizeof *floats);
        for (uint32_t i = 0; floats && i < n; i++) floats[i] = get_f64(c);
        a->floats = floats;
        a->n = floats ? n : 0;
    } else if (a->type == CNR_ATTR_INT || a->type == CNR_ATTR_BOOL || a->type == CNR_ATTR_DTYPE)
        a->i = get_i64(c);
    else fault(c, "an attribute is of no known type");
}

/* *known: number of values so far; the outputs of the node are added to it. */
static void parse_node(cursor *c, cnri_stored_node *n, int64_t *known) {
    n->op = get_u32(c);
    n->name = get_string(c);
    n->where = get_string(c);
    LIST(c, n->in, n->n_in, 4);
    for (int32_t i = 0; i < n->n_in; i++) {
        n->in[i] = get_i32(c);
        if (n->in[i] < -1 || n->in[i] >= *known) fault(c, "a node reads a value that is not there");
    }
    /* Each output takes a byte in the file, so a small file can't declare many. */
    const uint32_t outputs = get_u32(c);
    take(c, outputs);
    LIST(c, n->attrs, n->n_attrs, 10);
    for (int32_t i = 0; i < n->n_attrs; i++) parse_attr(c, &n->attrs[i]);
    n->attr_list = n->n_attrs ? list(c, (uint32_t)n->n_attrs, 0, sizeof *n->attr_list) : NULL;
    for (int32_t i = 0; n->attr_list && i < n->n_attrs; i++) n->attr_list[i] = &n->attrs[i];
    if (!c->fault && n->op >= (uint32_t)c->s->n_ops) fault(c, "an operator is not in the list");
    if (c->fault) return;
    n->n_out = (int32_t)outputs;
    *known += outputs;
    if (outputs > INT32_MAX / 2 || *known > INT32_MAX / 2) fault(c, "it has too many values");
}

/* ---- directory and header ---- */

/* Reads names and versions of operators or encodings. */
static void parse_uses(cursor *c, cnri_stored_use **uses, int32_t *n) {
    LIST(c, *uses, *n, 9);
    for (int32_t i = 0; i < *n; i++) {
        (*uses)[i].name = get_string(c);
        (*uses)[i].version = get_u32(c);
    }
}

/* Reads the name and the lists before the values: operators, encodings, symbols and metadata. */
static void parse_lists(cursor *c) {
    cnri_stored *s = c->s;
    s->name = get_string(c);
    parse_uses(c, &s->ops, &s->n_ops);
    parse_uses(c, &s->encodings, &s->n_encodings);
    LIST(c, s->symbols, s->n_symbols, 5);
    for (int32_t i = 0; i < s->n_symbols; i++) s->symbols[i] = get_string(c);
    LIST(c, s->meta, s->n_meta, 10);
    for (int32_t i = 0; i < s->n_meta; i++) {
        s->meta[i].key = get_string(c);
        s->meta[i].text = get_string(c);
    }
}

/* Reads the whole directory into c->s; c->fault says what is wrong. */
static void parse_directory(cursor *c) {
    cnri_stored *s = c->s;
    parse_lists(c);
    LIST(c, s->values, s->n_values, 20);
    for (int32_t i = 0; i < s->n_values && !c->fault; i++) parse_value(c, &s->values[i]);
    LIST(c, s->inputs, s->n_inputs, 4);
    for (int32_t i = 0; i < s->n_inputs && !c->fault; i++) {
        s->inputs[i] = get_i32(c);
        if (s->inputs[i] < 0 || s->inputs[i] >= s->n_values ||
            s->values[s->inputs[i]].kind != CNRI_STORED_INPUT)
            fault(c, "an input is not a value of that kind");
    }
    int64_t known = s->n_values;
    LIST(c, s->nodes, s->n_nodes, 26);
    for (int32_t i = 0; i < s->n_nodes && !c->fault; i++) parse_node(c, &s->nodes[i], &known);
    LIST(c, s->outputs, s->n_outputs, 9);
    for (int32_t i = 0; i < s->n_outputs && !c->fault; i++) {
        s->outputs[i].value = get_i32(c);
        s->outputs[i].name = get_string(c);
        if (s->outputs[i].value < 0 || s->outputs[i].value >= known)
            fault(c, "an output is not a value");
    }
    if (!c->fault && c->at != c->end) fault(c, "it has bytes to spare");
}

/* Fills err: the file is damaged. */
static cnr_status format_error(const cnri_stored *s, cnr_error *err, const char *text) {
    return cnri_fail(err, CNR_E_FORMAT, s->path, "damaged or not a .cnr file: %s", text);
}

bool cnri_store_begins(const void *head, size_t bytes) {
    return (bytes >= 8 && memcmp(head, CNRI_STORE_MAGIC, 8) == 0) ||
           cnri_cached_begins(head, bytes);
}

/* Checks the header and both digests; sets the cursor to the directory and the fingerprints. */
static cnr_status parse_header(cnri_stored *s, cursor *c, cnr_error *err) {
    const uint8_t *h = s->at;
    const uint64_t size = s->bytes;
    uint8_t digest[32];
    if (size < 8 || memcmp(h, CNRI_STORE_MAGIC, 8) != 0)
        return cnri_fail(err, CNR_E_FORMAT, s->path, "not a .cnr file, nor a compiled model");
    if (size < CNRI_STORE_HEADER) return format_error(s, err, "the header is cut off");
    if (number_at(h + 8, 4) != CNRI_STORE_VERSION)
        return cnri_fail(err, CNR_E_VERSION, s->path, "format version %llu; %d is wanted",
                         (unsigned long long)number_at(h + 8, 4), CNRI_STORE_VERSION);
    cnri_sha256_of(h, CNRI_STORE_SIGNED, digest);
    if (memcmp(digest, h + CNRI_STORE_SIGNED, 32) != 0)
        return format_error(s, err, "the header's digest does not match");
    const uint64_t at = number_at(h + 24, 8), bytes = number_at(h + 32, 8);
    const uint64_t prints = number_at(h + 88, 8);
    s->data_offset = number_at(h + 40, 8);
    s->data_bytes = number_at(h + 48, 8);
    if (number_at(h + 12, 4) != CNRI_STORE_HEADER || at != CNRI_STORE_HEADER)
        return format_error(s, err, "the header has another size");
    if (number_at(h + 16, 8) != size)
        return cnri_fail(err, CNR_E_FORMAT, s->path,
                         "damaged: the file has %llu bytes, %llu are wanted",
                         (unsigned long long)size, (unsigned long long)number_at(h + 16, 8));
    if (bytes > size - at || s->data_offset % CNRI_STORE_ALIGN != 0 ||
        s->data_offset < at + bytes || s->data_offset > size ||
        s->data_bytes != size - s->data_offset ||
        (prints && (prints < at + bytes || prints > s->data_offset)))
        return format_error(s, err, "its parts lie outside of it");
    *c = (cursor){.at = h + at,
                  .end = h + at + bytes,
                  .s = s,
                  .print = prints ? h + prints : NULL,
                  .prints_end = h + s->data_offset};
    cnri_sha256_of(c->at, bytes, digest);
    if (memcmp(digest, h + 56, 32) != 0)
        return format_error(s, err, "the directory's digest does not match");
    return CNR_OK;
}

void cnri_store_release(cnri_stored *s) {
    for (int32_t i = 0; i < s->blocks.n; i++) cnri_free(s->blocks.at[i]);
    cnri_vec_free(&s->blocks);
    if (s->file.at) cnri_unmap_file(&s->file);
    *s = (cnri_stored){0};
}

/* Where the .cnr lies in what is mapped: it is the file, or a part of a compiled model. */
static cnr_status locate(cnri_stored *s, cnr_error *err) {
    cnri_cached c;
    s->at = s->file.at;
    s->bytes = s->file.bytes;
    if (!cnri_cached_begins(s->at, (size_t)s->bytes)) return CNR_OK;
    CNR_TRY(cnri_cached_read(s->path, s->file, &c, err));
    const cnri_cached_blob *model = cnri_cached_part(&c, CNRI_PART_MODEL);
    if (model) {
        s->at = model->data;
        s->bytes = model->bytes;
    }
    cnri_free(c.blobs);
    return model
               ? CNR_OK
               : cnri_fail(err, CNR_E_FORMAT, s->path,
                           "is a stored plan without its net: want what \"cnnrun compile\" wrote");
}

cnr_status cnri_store_parse(const char *path, cnri_stored *out, cnr_error *err) {
    *out = (cnri_stored){.path = path};
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__)
        return cnri_fail(err, CNR_E_UNSUPPORTED, path, ".cnr needs a little-endian machine");
    cnr_status status = cnri_map_file(path, &out->file, err);
    if (status != CNR_OK) return status;
    cursor c;
    status = locate(out, err);
    if (status == CNR_OK) status = parse_header(out, &c, err);
    if (status == CNR_OK) {
        parse_directory(&c);
        if (c.no_memory) status = cnri_out_of_memory(err, path);
        else if (c.fault) status = format_error(out, err, c.fault);
    }
    if (status != CNR_OK) cnri_store_release(out);
    return status;
}
