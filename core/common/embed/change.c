/* Changes of models that nobody has a plan of: weights and masks. Also copies of models, and
 * their layers. */
#include "embed/embed.h"
#include <pthread.h>

cnr_status cnri_model_idle(cnr_model *m, cnr_error *err) {
    cnr_session_close(m->session);
    m->session = NULL;
    if (m->adapting.rest) m->adapting.rest(m->adapting.state);
    pthread_mutex_lock(m->rt->lock);
    cnri_plans_invalidate(m);
    const int32_t held = cnri_plans_count(m);
    pthread_mutex_unlock(m->rt->lock);
    if (held == 0) return CNR_OK;
    return cnri_fail(err, CNR_E_STATE, m->path ? m->path : "model",
                     "is in use: %d of its plans %s held", held, held == 1 ? "is" : "are");
}

/* ---- weights ---- */

/* True if the value is a weight with data that a node reads. */
static bool is_weight(const cnr_graph *g, cnr_value v) {
    const cnri_value *value = v >= 0 && v < g->values.n ? &g->values.at[v] : NULL;
    return value && value->producer < 0 && !value->is_input && value->type->data && value->uses > 0;
}

/* Finds a weight by name. -1: there is none, and the error names the nearest. */
static cnr_value find_weight(const cnr_model *m, const char *name, cnr_error *err) {
    const cnr_graph *g = m->graph;
    const cnr_value v = cnri_graph_find(g, name);
    if (is_weight(g, v)) return v;
    CNRI_VEC(const char *) names = {0};
    for (cnr_value i = 0; i < g->values.n; i++) {
        const char **slot = is_weight(g, i) ? cnri_push(&names) : NULL;
        if (slot) *slot = g->values.at[i].name;
    }
    const char *near = cnri_nearest_word(name, names.at, names.n);
    cnri_vec_free(&names);
    cnri_fail(err, CNR_E_NOT_FOUND, name, "the net has no such weight%s%s%s",
              near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
    return -1;
}

int32_t cnr_weight_count(const cnr_model *m) {
    int32_t n = 0;
    for (cnr_value i = 0; m && i < m->graph->values.n; i++) n += is_weight(m->graph, i);
    return n;
}

const char *cnr_weight_name(const cnr_model *m, int32_t index) {
    for (cnr_value i = 0; m && i < m->graph->values.n; i++)
        if (is_weight(m->graph, i) && index-- == 0) return m->graph->values.at[i].name;
    return NULL;
}

cnr_status cnr_weight(const cnr_model *m, const char *name, const cnr_tensor **out,
                      cnr_error *err) {
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "model", m, "name", name, "out", out, NULL);
    if (status) return status;
    const cnr_value v = find_weight(m, name, err);
    if (v < 0) return CNR_E_NOT_FOUND;
    status = cnri_value_verify(&m->graph->values.at[v], false, 0, err);
    if (!status) *out = m->graph->values.at[v].type;
    return status;
}

cnr_status cnr_set_weight(cnr_model *m, const char *name, const cnr_tensor *value, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "model", m, "name", name, "value", value, NULL);
    if (!status) status = cnri_tensor_check(value, name, err);
    if (status) return status;
    const cnr_value v = find_weight(m, name, err);
    if (v < 0) return CNR_E_NOT_FOUND;
    status = cnri_model_idle(m, err);
    if (!status) status = cnri_graph_fill(m->graph, v, value, err);
    if (status || !m->learner.state) return status;
    if (CNRI_INDEX_OF(m->masked.at, m->masked.n, name) < 0 &&
        !m->learner.follow(m->learner.state, name, value, NULL))
        return CNR_OK;
    cnri_model_drop_gradients(m); /* its zeros may be others now, or it may not be trained */
    return CNR_OK;
}

/* ---- masks: names of weights whose zeros training keeps ---- */

/* Notes that a weight has a mask. */
static cnr_status add_mask(cnr_model *m, const char *weight, cnr_error *err) {
    char *own = cnri_strdup(weight), **slot = own ? cnri_push(&m->masked) : NULL;
    if (slot) *slot = own;
    else cnri_free(own);
    return slot ? CNR_OK : cnri_out_of_memory(err, "model");
}

cnr_status cnr_mask(cnr_model *m, const char *weight, int32_t on, cnr_error *err) {
    const cnr_status status = cnri_require_arguments(err, "model", m, "weight", weight, NULL);
    if (status) return status;
    if (find_weight(m, weight, err) < 0) return CNR_E_NOT_FOUND;
    const int32_t at = CNRI_INDEX_OF(m->masked.at, m->masked.n, weight);
    if (on != (at >= 0)) cnri_model_drop_gradients(m);
    if (on) return at < 0 ? add_mask(m, weight, err) : CNR_OK;
    if (at < 0) return CNR_OK;
    cnri_free(m->masked.at[at]);
    m->masked.at[at] = m->masked.at[--m->masked.n];
    return CNR_OK;
}

/* ---- copies ---- */

/* Makes a model of this graph, which it owns, also on failure, in *out, with the options and masks
 * of another model. */
cnr_status cnri_model_like(const cnr_model *like, cnr_graph *graph, cnr_model **out,
                           cnr_error *err) {
    const cnr_load_options o = {.size = sizeof o,
                                .n_symbols = like->n_symbols,
                                .symbols = (const char *const *)like->symbols,
                                .symbol_values = like->symbol_values,
                                .cache = like->cache,
                                .cache_bytes = like->cache_bytes,
                                .cache_policy = like->cache_fifo ? "fifo" : NULL};
    cnr_status status = cnri_model_from_graph(like->rt, graph, &o, out, err);
    if (status) return status;
    cnr_model *m = *out;
    status = cnri_model_set_options(m, &like->plan_options, err);
    if (!status && like->path && !(m->path = cnri_strdup(like->path)))
        status = cnri_out_of_memory(err, "model");
    for (int32_t i = 0; i < like->masked.n && !status; i++)
        if (cnri_graph_find(graph, like->masked.at[i]) >= 0)
            status = add_mask(m, like->masked.at[i], err);
    if (status) {
        cnr_release(m);
        *out = NULL;
    }
    return status;
}

cnr_status cnr_copy(const cnr_model *m, cnr_model **out, cnr_error *err) {
    cnr_graph *graph;
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "model", m, "out", out, NULL);
    if (!status) status = cnri_check_process(m->rt, err);
    if (!status) status = cnri_graph_clone(m->graph, &graph, err);
    return status ? status : cnri_model_like(m, graph, out, err);
}

/* ---- layers: those of a copy whose sizes are known, and the names of their values ---- */

/* *out: a copy of the graph with open sizes set as for pictures, where size 1 is impossible. */
static cnr_status layers_of_pictures(const cnr_model *m, cnr_graph **out, cnr_error *err) {
    cnri_shapes shapes = {0};
    cnr_status status = cnri_input_shapes(m, 1, &shapes, err);
    if (!status && !(*out = cnri_graph_copy(m->graph))) status = cnri_out_of_memory(err, "model");
    if (!status) status = cnri_graph_bind(*out, shapes.list, shapes.n, err);
    cnri_shapes_free(&shapes);
    return status;
}

/* Makes m->layers, a copy of the net with the model's known shapes, and room for its names. */
static cnr_status open_layers(cnr_model *m, cnr_error *err) {
    cnr_graph *g = cnri_graph_copy(m->graph);
    const cnr_tensor **types = cnri_alloc(((size_t)m->input_types.n + 1) * sizeof *types);
    size_t n = 1;
    for (int32_t i = 0; i < m->graph->nodes.n; i++)
        n += (size_t)m->graph->nodes.at[i]->view.n_inputs;
    m->layer_names = cnri_alloc_zero(n * sizeof *m->layer_names);
    cnr_status status = g && types && m->layer_names ? CNR_OK : cnri_out_of_memory(err, "model");
    for (int32_t i = 0; i < m->input_types.n && !status; i++) types[i] = &m->input_types.at[i];
    if (!status) status = cnri_graph_bind(g, types, m->input_types.n, err);
    cnri_free((void *)types);
    if (status && status != CNR_E_MEMORY && g) {
        cnri_graph_free(g);
        g = NULL;
        status = layers_of_pictures(m, &g, err);
    }
    if (!status) {
        m->layers = g;
        return CNR_OK;
    }
    cnri_graph_free(g);
    cnri_free((void *)m->layer_names);
    m->layer_names = NULL;
    return status;
}

/* Collects the names of the node's inputs that are weights, or of the others, in `to`; returns how
 * many. */
static int32_t take_names(const cnr_graph *g, const cnri_node *node, bool weights,
                          const char **to) {
    int32_t n = 0;
    for (int32_t k = 0; k < node->view.n_inputs; k++)
        if (node->in[k] >= 0 && is_weight(g, node->in[k]) == weights)
            to[n++] = g->values.at[node->in[k]].name;
    return n;
}

cnr_status cnr_layer_at(cnr_model *m, int32_t index, cnr_layer *out, cnr_error *err) {
    cnr_status status = cnri_require_arguments(err, "model", m, "out", out, NULL);
    if (!status && out->size < sizeof *out)
        status = cnri_fail(err, CNR_E_ARG, "out", "its size is to be set before the call");
    if (!status && !m->layers) status = open_layers(m, err);
    if (status) return status;
    const cnr_graph *g = m->layers;
    if (index < 0 || index >= g->nodes.n)
        return cnri_fail(err, CNR_E_NOT_FOUND, "layer", "there is no layer %d, but %d", (int)index,
                         (int)g->nodes.n);
    const cnri_node *node = g->nodes.at[index];
    const char **names = m->layer_names;
    for (int32_t i = 0; i < index; i++) names += g->nodes.at[i]->view.n_inputs;
    cnr_cost cost = {0, 0};
    if (CNRI_HAS(node->view.desc, cost)) node->view.desc->cost(&node->view, &cost);
    *out = (cnr_layer){.size = sizeof *out,
                       .name = node->name,
                       .op = node->view.desc->name,
                       .type = node->view.outputs[0],
                       .flops = 2 * (double)cost.macs,
                       .inputs = names};
    out->n_inputs = take_names(g, node, false, names);
    out->weights = names + out->n_inputs;
    out->n_weights = take_names(g, node, true, names + out->n_inputs);
    return CNR_OK;
}
