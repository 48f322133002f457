/* Builds a graph from a .cnr file, fills another graph's weights from it, or checks its data. */
#include "store/format.h"

/* ---- operators and encodings that the file requires ---- */

/* Appends the requirement to `missing` unless it is known in that version or a later one. */
static void need(cnri_text *missing, const char *what, const cnri_stored_use *use, bool known,
                 uint32_t version) {
    if (known && use->version <= version) return;
    cnri_text_add(missing, "%s%s %s", missing->n ? ", " : "", what, use->name);
    if (known) cnri_text_add(missing, " (version %u, here is %u)", use->version, version);
}

/* Lists all operators and encodings that no loaded plugin provides, or only in an older version, in
 * one error. */
static cnr_status check_needs(const cnri_stored *s, cnr_error *err) {
    cnri_text missing = {0};
    for (int32_t i = 0; i < s->n_ops; i++) {
        const cnr_op *op = cnri_op_find(s->ops[i].name);
        need(&missing, "operator", &s->ops[i], op, op ? op->version : 0);
    }
    for (int32_t i = 0; i < s->n_encodings; i++) {
        const cnr_encoding *e = cnri_descriptor_find(CNR_KIND_ENCODING, s->encodings[i].name);
        need(&missing, "encoding", &s->encodings[i], e, e ? e->version : 0);
    }
    const bool all = missing.n == 0;
    if (!all) {
        cnri_log(CNR_LOG_ERROR, s->path, "no loaded plugin has: %s", missing.at);
        cnri_fail(err, CNR_E_UNSUPPORTED, s->path, "no loaded plugin has: %s", missing.at);
    }
    cnri_text_free(&missing);
    return all ? CNR_OK : CNR_E_UNSUPPORTED;
}

/* ---- building ---- */

/* Adds a value of the file to a graph; *out: its number there. */
static cnr_status add_value(cnr_graph *g, const cnri_stored *s, const cnri_stored_value *v,
                            cnr_value *out, cnr_error *err) {
    cnr_tensor type = v->type;
    if (v->kind == CNRI_STORED_INPUT) {
        *out = cnri_graph_input(g, v->name, &type);
        return CNR_OK;
    }
    if (v->encoding) {
        const char *name = s->encodings[v->encoding - 1].name;
        const cnr_encoding *encoding = cnri_descriptor_find(CNR_KIND_ENCODING, name);
        type.encoding = cnri_intern(name);
        const cnr_status status = encoding->check(&type, err);
        if (status != CNR_OK) return status;
    }
    *out = v->kind == CNRI_STORED_WEIGHT ? cnri_graph_borrow(g, v->name, &type)
                                         : cnri_graph_constant(g, v->name, &type);
    if (*out >= 0) g->values.at[*out].init = v->init;
    if (*out >= 0 && v->kind == CNRI_STORED_WEIGHT && g->seals.at) {
        cnri_seal *seal = &g->seals.at[v - s->values];
        seal->file = g->seals.file;
        seal->name = v->name; /* in the mapping, like the digest */
        seal->data = type.data;
        seal->bytes = type.bytes;
        seal->digest = v->digest;
        seal->print = v->print;
        g->values.at[*out].seal = seal;
    }
    return CNR_OK;
}

/* Makes room for the digests of weights. False: out of memory. */
static bool make_seals(cnr_graph *g, const cnri_stored *s) {
    g->seals.at = cnri_alloc_zero(((size_t)s->n_values + 1) * sizeof *g->seals.at);
    g->seals.file = cnri_strdup(s->path);
    return g->seals.at && g->seals.file;
}

/* Orders the graph's inputs as in the file: the graph numbers them in the order of addition. */
static void order_inputs(cnr_graph *g, const cnri_stored *s, const cnr_value *at) {
    if (g->inputs.n != s->n_inputs) {
        cnri_graph_problem(g, s->path, "damaged: an input is missing or named twice");
        return;
    }
    for (int32_t i = 0; i < s->n_inputs; i++) {
        for (int32_t k = 0; k < i; k++)
            if (s->inputs[k] == s->inputs[i])
                cnri_graph_problem(g, s->path, "damaged: an input is named twice");
        g->inputs.at[i] = at[s->inputs[i]];
    }
}

/* Adds a node of the file; at: the graph's values by number, which gets its outputs; *known: how
 * many, raised by them. Faults are the graph's problems; only CNR_E_MEMORY is returned. */
static cnr_status add_node(cnr_graph *g, const cnri_stored *s, const cnri_stored_node *n,
                           cnr_value *at, int32_t *known) {
    cnr_value *in = cnri_alloc(((size_t)n->n_in + 1) * sizeof *in);
    if (!in) return CNR_E_MEMORY;
    for (int32_t i = 0; i < n->n_in; i++) in[i] = n->in[i] < 0 ? -1 : at[n->in[i]];
    const cnr_status status =
        cnri_node_load(g, s->ops[n->op].name, n->name, n->where[0] ? n->where : NULL, in, n->n_in,
                       n->attr_list, n->n_attrs, at + *known, n->n_out);
    cnri_free(in);
    *known += n->n_out;
    return status == CNR_E_MEMORY ? status : CNR_OK; /* the graph has listed other failures */
}

/* Number of values, with outputs of nodes. */
static int64_t count_values(const cnri_stored *s) {
    int64_t n = s->n_values;
    for (int32_t i = 0; i < s->n_nodes; i++) n += s->nodes[i].n_out;
    return n;
}

/* Builds a graph from the file's lists; at[i] becomes the graph's value of the file's value i. */
static cnr_status build(cnr_graph *g, const cnri_stored *s, cnr_value *at, cnr_error *err) {
    cnr_status status = CNR_OK;
    int32_t known = s->n_values;
    for (int32_t i = 0; i < s->n_symbols; i++)
        if (cnri_graph_symbol(g, s->symbols[i]) != i && !g->out_of_memory)
            cnri_graph_problem(g, s->path, "damaged: symbol %s is named twice", s->symbols[i]);
    for (int32_t i = 0; i < s->n_values && status == CNR_OK; i++)
        status = add_value(g, s, &s->values[i], &at[i], err);
    if (status != CNR_OK) return status;
    order_inputs(g, s, at);
    for (int32_t i = 0; i < s->n_nodes && status == CNR_OK; i++)
        status = add_node(g, s, &s->nodes[i], at, &known);
    if (status != CNR_OK) return cnri_fail(err, status, s->path, "out of memory");
    for (int32_t i = 0; i < s->n_outputs; i++)
        cnri_graph_output(g, at[s->outputs[i].value], s->outputs[i].name);
    for (int32_t i = 0; i < s->n_meta; i++) cnri_graph_set_meta(g, s->meta[i].key, s->meta[i].text);
    return cnri_graph_status(g, false, err);
}

/* Maps the file and builds its graph in *out. Checks the digests of header and directory. With
 * `verify`, a tensor's digest is checked when it is first read (core/engine/graph/seal.c). */
cnr_status cnri_store_read(const char *path, bool verify, cnr_graph **out, cnr_error *err) {
    cnri_stored s;
    *out = NULL;
    cnr_status status = cnri_store_parse(path, &s, err);
    if (status != CNR_OK) return status;
    status = check_needs(&s, err);
    if (status != CNR_OK) {
        cnri_store_release(&s);
        return status;
    }
    cnr_graph *g = cnri_graph_new(s.name);
    cnr_value *at = cnri_alloc(((size_t)count_values(&s) + 1) * sizeof *at);
    const bool good = g && at && (!verify || make_seals(g, &s));
    if (g) g->no_verify = !verify;
    if (good) status = build(g, &s, at, err);
    else status = cnri_out_of_memory(err, path);
    if (status == CNR_OK) {
        g->file = s.file; /* backs the weights from here on */
        s.file = (cnri_mapping){0};
        g->is_compiled = s.at != g->file.at;
        *out = g;
    } else cnri_graph_free(g);
    cnri_free(at);
    cnri_store_release(&s);
    return status;
}

/* ---- digests ---- */

#define DAMAGED "damaged: the data of %d weights does not have the digest that was written with it"

/* True if digest and fingerprint are those of the file. */
static bool is_right(const cnri_stored_value *v, const cnri_digest *digest,
                     const cnri_digest *print) {
    return memcmp(digest->sum, v->digest, 32) == 0 &&
           (!v->print || memcmp(print->sum, v->print, 16) == 0);
}

/* Checks the digests of all weights; counts the damaged ones in *bad and logs each. */
static cnr_status check_digests(const cnri_stored *s, int32_t *bad, cnr_error *err) {
    const size_t n = (size_t)s->n_values + 1;
    cnri_digest *list = cnri_alloc(n * sizeof *list), *prints = cnri_alloc(n * sizeof *prints);
    bool good = list && prints;
    for (int32_t i = 0; i < s->n_values && good; i++) {
        const cnri_stored_value *v = &s->values[i];
        const uint64_t bytes = v->kind == CNRI_STORED_WEIGHT ? v->type.bytes : 0;
        list[i] = (cnri_digest){v->type.data, bytes, {0}, false};
        prints[i] = (cnri_digest){v->type.data, v->print ? bytes : 0, {0}, false};
    }
    good = good && cnri_fingerprints(prints, s->n_values, 0);
    if (good) cnri_digests(list, s->n_values, 0);
    for (int32_t i = 0; i < s->n_values && good; i++) {
        const cnri_stored_value *v = &s->values[i];
        if (v->kind != CNRI_STORED_WEIGHT || is_right(v, &list[i], &prints[i])) continue;
        ++*bad;
        cnri_log(CNR_LOG_ERROR, s->path, "%s is damaged: its digest does not match", v->name);
    }
    cnri_free(list);
    cnri_free(prints);
    return good ? CNR_OK : cnri_out_of_memory(err, s->path);
}

/* ---- filling another graph ---- */

/* Fills one weight of a net from the file. */
static cnr_status fill_one(cnri_filling *f, const cnri_stored *s, const cnri_stored_value *v) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor type = v->type;
    cnr_status status = CNR_OK;
    if (v->encoding) {
        const char *name = s->encodings[v->encoding - 1].name;
        const cnr_encoding *encoding = cnri_descriptor_find(CNR_KIND_ENCODING, name);
        type.encoding = cnri_intern(name);
        status = encoding->check(&type, &err);
    }
    if (status == CNR_E_MEMORY) return status;
    return cnri_filling_add(f, v->name, status ? NULL : &type, &err);
}

/* Checks that all encodings of the file are known. */
static cnr_status check_fill_needs(const cnri_stored *s, cnr_error *err) {
    cnri_stored weights = *s;
    weights.n_ops = 0; /* weights alone need no operators */
    return check_needs(&weights, err);
}

cnr_status cnri_store_fill(cnr_graph *graph, const char *path, cnr_error *err) {
    cnri_stored s;
    cnri_filling filling = {.graph = graph};
    cnr_status status = cnri_store_parse(path, &s, err);
    if (status != CNR_OK) return status;
    status = check_fill_needs(&s, err);
    if (status == CNR_OK && !graph->no_verify) {
        int32_t bad = 0;
        status = check_digests(&s, &bad, err);
        if (bad > 0) status = cnri_fail(err, CNR_E_FORMAT, path, DAMAGED, bad);
    }
    if (status == CNR_OK) {
        for (int32_t i = 0; i < s.n_values && status == CNR_OK; i++)
            if (s.values[i].kind == CNRI_STORED_WEIGHT)
                status = fill_one(&filling, &s, &s.values[i]);
        status = cnri_filling_end(&filling, status, path, err);
    }
    cnri_store_release(&s);
    return status;
}

/* ---- checking ---- */

/* Checks blobs and parts if the file is a compiled model; adds the damaged ones to *bad. */
static cnr_status check_parts(const cnri_stored *s, int32_t *bad, cnr_error *err) {
    cnri_cached c;
    if (s->at == s->file.at) return CNR_OK;
    CNR_TRY(cnri_cached_read(s->path, s->file, &c, err));
    *bad += cnri_cached_damaged(&c, s->path);
    cnri_free(c.blobs);
    return CNR_OK;
}

cnr_status cnri_store_check(const char *path, int32_t *bad, cnr_error *err) {
    cnri_stored s;
    *bad = 0;
    cnr_status status = cnri_store_parse(path, &s, err);
    if (status != CNR_OK) return status;
    status = check_digests(&s, bad, err);
    if (status == CNR_OK) status = check_parts(&s, bad, err);
    for (int32_t i = 0; i < s.n_values && status == CNR_OK; i++) {
        const cnri_stored_value *v = &s.values[i];
        if (v->kind != CNRI_STORED_WEIGHT) continue;
        const uint64_t end = v->offset + v->type.bytes;
        const uint64_t gap =
            cnri_store_align(end) < s.data_bytes ? cnri_store_align(end) - end : s.data_bytes - end;
        const uint8_t *tail = (uint8_t *)v->type.data + v->type.bytes;
        if (!gap || (!*tail && memcmp(tail, tail + 1, (size_t)gap - 1) == 0)) continue;
        ++*bad;
        cnri_log(CNR_LOG_ERROR, path, "%s is damaged: bytes behind it are not zero", v->name);
    }
    cnri_store_release(&s);
    return status;
}
