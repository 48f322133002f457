/* Assigns devices to nodes: by placements, by default, and with the host for what no other
 * device takes. */
#include "plan/planner.h"

cnr_status cnri_plan_host(cnri_planner *p, int32_t *device, cnr_error *err) {
    *device = p->set->host;
    if (*device >= 0) return CNR_OK;
    return cnri_fail(err, CNR_E_NOT_FOUND, "plan",
                     "no device with host memory: want a plugin that drives one (see \"cnnrun "
                     "plugins\")");
}

/* Applies placement `w` to the nodes that its name or pattern matches. Fails if its ratios don't
 * sum to 1. A name without a node is only logged, because rewriting may have removed the node. */
static cnr_status apply_placement(cnri_planner *p, const cnri_placement *w, cnr_error *err) {
    cnr_graph *g = p->graph;
    const bool all = strcmp(w->node, "*") == 0, pattern = strchr(w->node, '*') != NULL;
    bool found = all;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const char *name = g->nodes.at[i]->name;
        if (!all && !(name && cnri_matches_pattern(w->node, name))) continue;
        if (!pattern || !p->wish[i]) p->wish[i] = w;
        found = true;
    }
    double sum = 0;
    for (int32_t i = 0; i < w->n_parts; i++) {
        if (!(w->parts[i].ratio >= 0)) sum = -1e9;
        sum += w->parts[i].ratio;
    }
    if (w->n_parts < 1 || (w->n_parts > 1 && !(sum > 0.999 && sum < 1.001)))
        return cnri_fail(err, CNR_E_ARG, w->node,
                         "ratios of a placement want to be >= 0 and sum to 1");
    if (!found)
        cnri_log(CNR_LOG_INFO, "plan", "placement of \"%s\": no such node after rewriting",
                 w->node);
    return CNR_OK;
}

cnr_status cnri_plan_place(cnri_planner *p, cnr_error *err) {
    cnr_status status = CNR_OK;
    p->wish = cnri_alloc_zero((size_t)(p->graph->nodes.n + 1) * sizeof *p->wish);
    if (!p->wish) return cnri_no_memory(err);
    const int32_t own = p->set->own.n;
    /* Names first, then patterns, then "*"; of two placements for a name the later one counts. */
    for (int32_t pass = 0; pass < 3; pass++)
        for (int32_t i = 0; i < own + p->options->n_placements && !status; i++) {
            const cnri_placement *w =
                i < own ? &p->set->own.at[i] : &p->options->placements[i - own];
            const bool all = strcmp(w->node, "*") == 0, pattern = strchr(w->node, '*') && !all;
            if (pass != (all ? 2 : pattern ? 1 : 0)) continue;
            status = apply_placement(p, w, err);
        }
    return status;
}

/* The alignment that the operator requires of ranges on `axis`; 0: it can't be split there.
 * `can` gets the axes where it can. */
static int64_t split_alignment(const cnr_node *node, int32_t axis, cnri_text *can) {
    if (node->desc->flags & CNR_OP_ELEMENTWISE) return 1;
    cnr_split_axis axes[CNR_MAX_RANK];
    int32_t n = 0;
    if (CNRI_HAS(node->desc, split_axes)) n = node->desc->split_axes(node, axes, CNR_MAX_RANK);
    if (n > CNR_MAX_RANK) n = CNR_MAX_RANK;
    for (int32_t i = 0; i < n; i++) {
        if (axes[i].axis == axis) return axes[i].alignment > 0 ? axes[i].alignment : 1;
        cnri_text_add(can, "%s%d", i ? ", " : "", (int)axes[i].axis);
    }
    return 0;
}

uint32_t cnri_split_axes(const cnri_planner *p, int32_t node) {
    const cnri_node *n = p->graph->nodes.at[node];
    const cnr_tensor *out = n->view.n_outputs == 1 ? n->view.outputs[0] : NULL;
    uint32_t axes = 0;
    if (!out || cnr_dtype_bits(out->dtype) < 8 || cnri_node_updates(p->graph, n, 0) >= 0) return 0;
    for (int32_t a = 0; a < out->rank; a++) {
        cnri_text can = {0};
        if (split_alignment(&n->view, a, &can) > 0) axes |= 1u << a;
        cnri_text_free(&can);
    }
    return axes;
}

int32_t cnri_default_axis(uint32_t axes) { return axes & 2 ? 1 : axes ? __builtin_ctz(axes) : -1; }

int64_t cnri_split_pieces(const cnri_planner *p, int32_t node, int32_t axis) {
    const cnr_node *view = &p->graph->nodes.at[node]->view;
    cnri_text can = {0};
    const int64_t step = axis >= 0 ? split_alignment(view, axis, &can) : 0;
    cnri_text_free(&can);
    return step > 0 ? (view->outputs[0]->dim[axis] + step - 1) / step : 1;
}

/* Splits a node into ranges of its output, one for each device of the placement, where kernels
 * allow it. */
static cnr_status ranges(cnri_planner *p, int32_t node, const cnri_placement *w, cnri_pick *pick,
                         cnr_error *err) {
    const cnr_node *view = &p->graph->nodes.at[node]->view;
    const cnr_tensor *out = view->outputs[0];
    cnri_text can = {0};
    int64_t step = 0;
    if (w->axis >= 0 && w->axis < out->rank && cnr_dtype_bits(out->dtype) >= 8 &&
        cnri_node_updates(p->graph, p->graph->nodes.at[node], 0) < 0)
        step = split_alignment(view, w->axis, &can);
    if (step == 0 || view->n_outputs != 1) {
        const cnr_status status =
            cnri_fail(err, CNR_E_ARG, cnri_node_name(p, node),
                      "operator \"%s\" is not split along axis %d; it can be along: %s",
                      view->desc->name, (int)w->axis, can.n ? can.at : "none");
        cnri_text_free(&can);
        return status;
    }
    cnri_text_free(&can);
    const int64_t dim = out->dim[w->axis];
    double sum = 0;
    int64_t at = 0;
    for (int32_t i = 0; i < pick->n_parts; i++) {
        sum += w->parts[i].ratio;
        int64_t end = ((int64_t)(sum * (double)dim / (double)step + 0.5)) * step;
        if (end > dim || i == pick->n_parts - 1) end = dim;
        if (end < at) end = at;
        pick->parts[i].begin = at;
        pick->parts[i].end = at = end;
    }
    pick->axis = w->axis;
    return CNR_OK;
}

cnr_status cnri_plan_parts(cnri_planner *p, int32_t node, cnri_pick *pick, cnr_error *err) {
    const cnri_placement *w = p->wish[node];
    const bool split = w && w->n_parts > 1;
    pick->axis = -1;
    pick->n_parts = split ? w->n_parts : 1;
    pick->parts = cnri_alloc_zero((size_t)pick->n_parts * sizeof *pick->parts);
    if (!pick->parts) return cnri_no_memory(err);
    for (int32_t i = 0; i < pick->n_parts; i++) {
        pick->parts[i].device =
            w ? cnri_device_set_find(p->set, w->parts[i].device) : p->set->fallback;
        /* A placement that came from neither the graph nor the options. */
        if (pick->parts[i].device < 0)
            return cnri_fail(err, CNR_E_NOT_FOUND, w->parts[i].device, "not among the devices");
    }
    return split ? ranges(p, node, w, pick, err) : CNR_OK;
}
