/* Converts nets: weights to another encoding, and nets to files of other formats. */
#include "work/work.h"
#include <fnmatch.h>
#include <math.h>

/* Options and result of an encoding. */
typedef struct job {
    const cnri_encode_options *o;
    cnri_encoded *out;
} job;

/* True if some kernel reads input `port` of this operator in the encoding. */
static bool is_read(const cnr_op *op, int32_t port, const char *encoding) {
    const cnr_kernel *const *kernels;
    const int32_t n = cnri_kernels_for(op, &kernels);
    for (int32_t i = 0; i < n; i++) {
        const char *const *names = CNRI_HAS(kernels[i], encodings) ? kernels[i]->encodings : NULL;
        for (int32_t p = 0; names && names[p]; p++)
            if (p == port && strcmp(names[p], encoding) == 0) return true;
    }
    return false;
}

/* True if an input of the operator is learned. */
static bool is_learned(const cnr_op *op, int32_t port) {
    if (port >= op->n_inputs) return false;
    const size_t at = (size_t)port * op->port_size;
    const uint32_t flags = ((const cnr_port *)(const void *)((const char *)op->inputs + at))->flags;
    return (flags & CNR_PORT_PARAMETER) && !(flags & CNR_PORT_STATISTIC);
}

/* True if no kernel reads the encoding, so that weights are decoded before use. */
static bool is_stored(const job *c) {
    return CNRI_HAS(c->o->encoding, flags) && (c->o->encoding->flags & CNR_ENCODING_STORED);
}

/* True if every node that uses the weight can read the encoding and is among the wanted layers.
 * An encoding that is only for storage is for learned weights of several rows. */
static bool can_encode(const job *c, const cnr_graph *g, cnr_value value) {
    const bool stored = is_stored(c);
    bool used = false;
    if (stored && g->values.at[value].type->rank < 2) return false;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        for (int32_t p = 0; p < node->view.n_inputs; p++) {
            if (node->in[p] != value) continue;
            const bool read = stored ? is_learned(node->view.desc, p)
                                     : is_read(node->view.desc, p, c->o->encoding->name);
            if (!read) return false;
            if (c->o->layers && fnmatch(c->o->layers, node->name, 0) != 0) return false;
            used = true;
        }
    }
    return used;
}

/* Gives a weight its encoded data, which it then owns. */
static void take_data(cnri_value *v, const cnr_encoding *encoding, void *data, uint64_t bytes) {
    if (!v->borrowed) cnri_free(v->type->data);
    v->borrowed = false;
    v->seal = NULL;
    v->type->data = data;
    v->type->bytes = bytes;
    v->type->encoding = cnri_intern(encoding->name);
}

/* Name of the first layer that reads a value; "": none. */
static const char *layer_of(const cnr_graph *g, cnr_value value) {
    for (int32_t i = 0; i < g->nodes.n; i++)
        for (int32_t p = 0; p < g->nodes.at[i]->view.n_inputs; p++)
            if (g->nodes.at[i]->in[p] == value) return g->nodes.at[i]->name;
    return "";
}

/* Encodes a value, and keeps the result only if it takes fewer bytes or if the layer was asked
 * for by name. */
static cnr_status encode_value(job *c, const cnr_graph *g, cnr_value value, cnr_error *err) {
    const cnr_encoding *encoding = c->o->encoding;
    const cnr_attr *const *settings = c->o->settings;
    cnri_value *v = &g->values.at[value];
    cnri_encoded_layer *layer = &c->out->layers[c->out->n_layers];
    const int64_t failed = cnri_alloc_failures();
    uint64_t bytes = 0;
    cnr_status status = encoding->encode_size(v->type, settings, &bytes, err);
    if (status) return status;
    *layer = (cnri_encoded_layer){.layer = layer_of(g, value),
                                  .weight = v->name,
                                  .after = bytes,
                                  .before = cnr_dense_bytes(v->type),
                                  .kept = NAN};
    layer->encoded = c->o->layers || bytes < layer->before;
    layer->pays = bytes < layer->before ? "bytes" : "nothing";
    c->out->n_layers++;
    if (!layer->encoded) return cnri_alloc_verdict(failed, CNR_OK, v->name, err);
    status = cnri_value_verify(v, false, 0, err);
    if (status) return status;
    void *data = bytes < SIZE_MAX ? cnri_alloc(bytes ? (size_t)bytes : 1) : NULL;
    if (!data) return cnri_out_of_memory(err, v->name);
    status = encoding->encode(v->type, settings, data, bytes, err);
    if (status) {
        cnri_free(data);
        return status;
    }
    c->out->encoded++;
    c->out->before += layer->before;
    c->out->after += bytes;
    take_data(v, encoding, data, bytes);
    if (CNRI_HAS(encoding, stored_count) && cnr_count(v->type) > 0)
        layer->kept = (double)encoding->stored_count(v->type) / (double)cnr_count(v->type);
    return cnri_alloc_verdict(failed, CNR_OK, v->name, err);
}

cnr_status cnri_encode_weights(cnr_graph *g, const cnri_encode_options *options, cnri_encoded *out,
                               cnr_error *err) {
    job c = {options, out};
    const size_t maximum = 2 * (size_t)g->values.n + 1; /* folding adds constants */
    *out = (cnri_encoded){.layers = cnri_alloc_zero(maximum * sizeof *out->layers)};
    if (!out->layers) return cnri_out_of_memory(err, g->name);
    cnr_status status = is_stored(&c) ? CNR_OK : cnri_graph_verify_weights(g, NULL, false, 0, err);
    if (!status && !is_stored(&c)) status = cnri_graph_fold(g, err);
    if (status) return status;
    for (cnr_value i = 0; i < g->values.n; i++) {
        const cnri_value *v = &g->values.at[i];
        if (v->producer >= 0 || v->is_input || !v->type->data || v->type->encoding ||
            !can_encode(&c, g, i))
            continue;
        status = encode_value(&c, g, i, err);
        if (status) return status;
    }
    if (out->n_layers) return CNR_OK;
    return cnri_fail(err, CNR_E_NOT_FOUND, options->encoding->name,
                     "no layer%s%s has weights that a kernel reads as %s",
                     options->layers ? " named like " : "", options->layers ? options->layers : "",
                     options->encoding->name);
}

/* Name of the layer's kernel if it reads some input in its stored form; else NULL. */
static const char *reader(const cnr_plan *plan, const char *layer) {
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL || !s->kernel || strcmp(s->view.name, layer) != 0) continue;
        for (int32_t p = 0; p < s->view.n_inputs; p++)
            if (s->view.inputs[p] && s->view.inputs[p]->encoding) return s->kernel->name;
    }
    return NULL;
}

void cnri_encoded_judge(cnri_encoded *e, const cnr_plan *plan) {
    for (int32_t i = 0; i < e->n_layers; i++) {
        cnri_encoded_layer *l = &e->layers[i];
        l->kernel = l->encoded ? reader(plan, l->layer) : NULL;
        if (l->kernel) l->pays = l->after < l->before ? "bytes and time" : "time";
    }
}

/* Frees the list of layers; the struct is zero then. */
void cnri_encoded_free(cnri_encoded *e) {
    cnri_free(e->layers);
    *e = (cnri_encoded){0};
}

/* ---- in other formats ---- */

/* The exporter that scores highest for the path's name; NULL: none writes it. */
static const cnr_exporter *exporter_for(const char *path) {
    const cnr_exporter *best = NULL;
    int32_t score = 0;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_EXPORTER); i++) {
        const cnr_exporter *e = cnri_descriptor_at(CNR_KIND_EXPORTER, i);
        const int32_t s = e->accepts(path);
        if (s > score) {
            score = s;
            best = e;
        }
    }
    return best;
}

cnr_status cnri_export(cnr_graph *g, const char *path, cnr_error *err) {
    const cnr_exporter *e = exporter_for(path);
    cnr_status status = cnri_graph_status(g, true, err);
    if (!status) status = cnri_graph_verify_weights(g, NULL, false, 0, err);
    if (!status)
        status = e ? e->write(g, path, err)
                   : cnri_none_such(CNR_E_UNSUPPORTED, CNR_KIND_EXPORTER, path,
                                    "no exporter writes a file of such a name", err);
    return status;
}
