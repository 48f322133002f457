/* Graphs whose weights take other sizes: channels that go take what reads them along. */
#include "embed/embed.h"
#include "train/train.h"

/* Gives a weight the shape and data of `data`, which are copied; fails for unknown, computed or
 * encoded ones. */
static cnr_status resize_weight(cnr_graph *g, const char *name, const cnr_tensor *data,
                                cnr_error *err) {
    const cnr_value v = cnri_graph_find(g, name);
    cnr_tensor *type = v >= 0 ? g->values.at[v].type : NULL;
    if (!type || g->values.at[v].producer >= 0 || g->values.at[v].is_input)
        return cnri_fail(err, CNR_E_NOT_FOUND, name, "the net has no such weight");
    if (type->encoding)
        return cnri_fail(err, CNR_E_UNSUPPORTED, name, "is encoded as %s",
                         cnri_name(type->encoding));
    type->rank = data->rank;
    for (int32_t i = 0; i < data->rank; i++) type->dim[i] = data->dim[i];
    return cnri_graph_fill(g, v, data, err);
}

/* Sets a whole-number attribute of the node in to->name; g must own its attributes (a clone does).
 * CNR_E_NOT_FOUND: no such node or attribute. */
static cnr_status set_attribute(cnr_graph *g, const cnri_resizing *to, cnr_error *err) {
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        if (strcmp(node->name, to->name) != 0) continue;
        for (int32_t k = 0; k < node->view.n_attrs; k++) {
            cnr_attr *a = (cnr_attr *)(uintptr_t)node->view.attrs[k];
            if (strcmp(a->name, to->attribute) != 0 || a->type != CNR_ATTR_INT) continue;
            a->i = to->value;
            a->set = 1;
            return CNR_OK;
        }
        return cnri_fail(err, CNR_E_NOT_FOUND, to->name,
                         "%s has no attribute %s that is a whole number", node->view.desc->name,
                         to->attribute);
    }
    return cnri_fail(err, CNR_E_NOT_FOUND, to->name, "the net has no such layer");
}

cnr_status cnri_graph_resize(cnr_graph *g, const cnri_resizing *list, int32_t n, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n && !status; i++)
        status = list[i].attribute ? set_attribute(g, &list[i], err)
                                   : resize_weight(g, list[i].name, list[i].data, err);
    for (int32_t i = 0; i < g->nodes.n && !status; i++) (void)cnri_node_infer(g, g->nodes.at[i]);
    return status ? status : cnri_graph_status(g, false, err);
}

cnr_status cnri_model_resized(const cnr_model *m, const cnri_resizing *list, int32_t n,
                              cnr_model **out, cnr_error *err) {
    cnr_graph *graph = NULL;
    *out = NULL;
    cnr_status status = cnri_check_process(m->rt, err);
    if (!status) status = cnri_graph_clone(m->graph, &graph, err);
    if (!status) status = cnri_graph_resize(graph, list, n, err);
    if (!status) return cnri_model_like(m, graph, out, err);
    cnri_graph_free(graph);
    return status;
}
