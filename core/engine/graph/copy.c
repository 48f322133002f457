/* Copies of graphs: for plans, which bind and rewrite them and share weights and attributes; and
 * deep copies. */
#include "graph/parts.h"

/* Copies all values under the same numbers; their data is borrowed. False: out of memory. */
static bool copy_values(const cnr_graph *g, cnr_graph *to) {
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnri_value *from = &g->values.at[i];
        const cnr_value v = cnri_value_add(to, from->name, from->type);
        if (v != i) return false;
        /* Another value may have taken the name of a removed node's value. */
        if (cnri_graph_find(g, from->name) != i) cnri_map_set(&to->value_names, from->name, NULL);
        cnri_value *own = &to->values.at[i];
        own->producer = from->producer;
        own->output = from->output;
        own->is_input = from->is_input;
        own->unfilled = from->unfilled;
        own->init = from->init;
        own->uses = from->uses;
        own->type->data = from->type->data;
        own->borrowed = from->type->data != NULL;
        own->is_aside = from->is_aside;
        own->seal = from->seal;
    }
    return true;
}

/* Copies all nodes; their attributes are borrowed. False: out of memory. */
static bool copy_nodes(const cnr_graph *g, cnr_graph *to) {
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *from = g->nodes.at[i];
        cnri_node *own = cnri_node_new(from->view.desc, from->name, from->where,
                                       from->view.n_inputs, from->view.n_outputs);
        cnri_node **slot = own ? cnri_push(&to->nodes) : NULL;
        if (!slot) {
            cnri_node_free(own);
            return false;
        }
        *slot = own;
        own->view.attrs = from->view.attrs;
        own->view.n_attrs = from->view.n_attrs;
        own->borrowed = true;
        for (int32_t k = 0; k < from->view.n_inputs; k++) own->in[k] = from->in[k];
        for (int32_t k = 0; k < from->view.n_outputs; k++) own->out[k] = from->out[k];
        cnri_node_link(to, own);
        if (cnri_map_set(&to->node_names, own->name, (void *)(intptr_t)1) != CNR_OK) return false;
    }
    return true;
}

/* Copies symbols, inputs, outputs and metadata. False: out of memory. */
static bool copy_interface(const cnr_graph *g, cnr_graph *to) {
    for (int32_t i = 0; i < g->symbols.n; i++)
        if (cnri_graph_symbol(to, g->symbols.at[i]) != i) return false;
    for (int32_t i = 0; i < g->inputs.n; i++) {
        cnr_value *slot = cnri_push(&to->inputs);
        if (!slot) return false;
        *slot = g->inputs.at[i];
    }
    for (int32_t i = 0; i < g->outputs.n; i++)
        if (cnri_graph_output(to, g->outputs.at[i], g->outputs.names[i]) != CNR_OK) return false;
    for (int32_t i = 0; i < g->meta.n; i++)
        if (cnri_graph_set_meta(to, g->meta.keys[i], g->meta.texts[i]) != CNR_OK) return false;
    for (int32_t i = 0; i < g->problems.n; i++)
        cnri_graph_problem(to, g->problems.at[i].where, "%s", g->problems.at[i].text);
    return !to->out_of_memory;
}

cnr_graph *cnri_graph_copy(const cnr_graph *g) {
    cnr_graph *to = cnri_graph_new(g->name);
    if (!to) return NULL;
    to->no_verify = g->no_verify;
    to->updates = g->updates;
    to->backing = g->backing ? g->backing : &g->file;
    if (copy_values(g, to) && copy_nodes(g, to) && copy_interface(g, to)) {
        /* The uses are counted again by cnri_graph_output. */
        for (int32_t i = 0; i < g->values.n; i++) to->values.at[i].uses = g->values.at[i].uses;
        return to;
    }
    cnri_graph_free(to);
    return NULL;
}

/* ---- whole ones ---- */

/* Copies all borrowed data, so that the copy can outlive its original. False: out of memory. */
static bool own_values(cnr_graph *g) {
    for (int32_t i = 0; i < g->values.n; i++) {
        cnri_value *v = &g->values.at[i];
        if (!v->borrowed) continue;
        if (v->uses == 0) { /* left over by rewrites */
            v->type->data = NULL;
            v->borrowed = v->is_aside = false;
            continue;
        }
        const size_t bytes = (size_t)v->type->bytes;
        void *own = cnri_alloc(bytes + 1);
        if (!own) return false;
        memcpy(own, v->type->data, bytes);
        v->type->data = own;
        v->borrowed = v->is_aside = false;
        v->seal = NULL;
    }
    return true;
}

/* Copies all borrowed attributes. False: out of memory. */
static bool own_attributes(cnr_graph *g) {
    for (int32_t i = 0; i < g->nodes.n; i++) {
        cnri_node *node = g->nodes.at[i];
        if (!node->borrowed) continue;
        cnr_attr **own = cnri_attrs_copy(node->view.attrs, node->view.n_attrs);
        if (!own) return false;
        node->view.attrs = (const cnr_attr *const *)own;
        node->borrowed = false;
    }
    return true;
}

/* Makes a deep copy in *out with weights and attributes of its own, for cnri_graph_free.
 * CNR_E_FORMAT: a weight is damaged. */
cnr_status cnri_graph_clone(const cnr_graph *g, cnr_graph **out, cnr_error *err) {
    *out = NULL;
    const cnr_status status = cnri_graph_verify_weights(g, NULL, false, 0, err);
    if (status) return status;
    cnr_graph *to = cnri_graph_copy(g);
    /* No data is the file's any more, which may be unmapped before the copy. */
    if (to) to->backing = NULL;
    if (to && own_values(to) && own_attributes(to)) *out = to;
    else cnri_graph_free(to);
    return *out ? CNR_OK : cnri_out_of_memory(err, g->name);
}
