/* What sizes values can have in plans of a net whose symbols have ranges: the net is made at both
 * ends, and what it has there is compared. */
#include "plan/planner.h"

/* The net as it is made with every open size at one end (0: least, 1: most) of its range, for
 * cnri_graph_free; NULL: it can't be. */
static cnr_graph *make_end(const cnr_graph *made, const cnri_ranges_request *r, int end) {
    const int32_t n = made->inputs.n;
    cnr_tensor *types = cnri_alloc(((size_t)n + 1) * sizeof *types);
    const cnr_tensor **list = cnri_alloc(((size_t)n + 1) * sizeof *list);
    cnr_graph *g = types && list ? cnri_graph_copy(r->net) : NULL;
    cnr_error why = CNR_ERROR_INIT;
    int64_t range[2];
    for (int32_t i = 0; i < n && g; i++) {
        list[i] = &types[i];
        types[i] = *made->values.at[made->inputs.at[i]].type;
        const cnr_tensor *open = r->net->values.at[r->net->inputs.at[i]].type;
        for (int32_t a = 0; a < open->rank; a++)
            if (open->dim[a] < CNR_DIM_UNKNOWN &&
                cnri_symbol_range(g, CNR_SYMBOL_OF_DIM(open->dim[a]), range))
                types[i].dim[a] = range[end];
        types[i].bytes = cnr_dense_bytes(&types[i]);
    }
    if (g) g->late_folds = made->late_folds;
    for (int32_t v = 0; g && v < g->values.n; v++)
        g->values.at[v].unfolded = made->values.at[v].unfolded;
    bool good = g && cnri_graph_bind(g, list, n, &why) == CNR_OK &&
                cnri_graph_rewrite(g, r->off, r->devices, r->n_devices, &why) == CNR_OK;
    if (g && !good) cnri_log(CNR_LOG_INFO, "ranges", "%s: %s", why.where, why.text);
    if (!good) cnri_graph_free(g);
    cnri_free(types);
    cnri_free(list);
    return good ? g : NULL;
}

/* True if two graphs have the same operators, connected in the same way. */
static bool same_nodes(const cnr_graph *a, const cnr_graph *b) {
    if (a->nodes.n != b->nodes.n || a->values.n != b->values.n) return false;
    for (int32_t i = 0; i < a->nodes.n; i++) {
        const cnri_node *x = a->nodes.at[i], *y = b->nodes.at[i];
        const cnr_node *v = &x->view, *w = &y->view;
        if (v->desc != w->desc || v->n_inputs != w->n_inputs || v->n_outputs != w->n_outputs ||
            memcmp(x->in, y->in, (size_t)v->n_inputs * sizeof *x->in) != 0 ||
            memcmp(x->out, y->out, (size_t)v->n_outputs * sizeof *x->out) != 0)
            return false;
    }
    return true;
}

/* Fills `to` with least and most size of t's axes; false: none varies, or t lies outside. */
static bool fill_range(const cnr_tensor *t, const cnr_tensor *low, const cnr_tensor *high,
                       int64_t *to) {
    bool varies = false;
    if (low->rank != t->rank || high->rank != t->rank) return false;
    for (int32_t a = 0; a < t->rank; a++) {
        to[2 * a] = low->dim[a];
        to[2 * a + 1] = high->dim[a];
        if (low->dim[a] > t->dim[a] || t->dim[a] > high->dim[a]) return false;
        varies = varies || low->dim[a] != high->dim[a];
    }
    return varies;
}

void cnri_plan_find_ranges(cnr_graph *made, const cnri_ranges_request *r) {
    int64_t range[2];
    bool any = false;
    for (int32_t i = 0; i < r->net->symbols.n; i++)
        any = any || cnri_symbol_range(r->net, i, range);
    if (!any) return;
    cnr_graph *low = make_end(made, r, 0), *high = low ? make_end(made, r, 1) : NULL;
    const size_t each = 2 * (size_t)CNR_MAX_RANK;
    if (high && same_nodes(made, low) && same_nodes(made, high))
        made->ranges = cnri_alloc(((size_t)made->values.n + 1) * each * sizeof *made->ranges);
    for (int32_t v = 0; made->ranges && v < made->values.n; v++) {
        int64_t *to = made->ranges + (size_t)v * each;
        cnr_tensor *t = made->values.at[v].type;
        if (fill_range(t, low->values.at[v].type, high->values.at[v].type, to)) t->dim_range = to;
    }
    if (!made->ranges)
        cnri_log(CNR_LOG_INFO, "ranges", "%s: sizes of its values in the range are not known",
                 made->name ? made->name : "net");
    cnri_graph_free(low);
    cnri_graph_free(high);
}
