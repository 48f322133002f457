/* Times kernels in a small net of their own, for the record by which plans choose. */
#include "policy/rows.h"

/* The value in the segment s: a constant of its own, or an input in place of a computed value. map
 * keeps it; -1: none. */
static cnr_value in_segment(const cnri_planner *p, cnr_graph *s, cnr_value v, cnr_value *map) {
    char name[32];
    if (v < 0 || map[v] >= 0) return v < 0 ? -1 : map[v];
    const cnr_tensor *type = p->graph->values.at[v].type;
    snprintf(name, sizeof name, "v%d", (int)v);
    cnri_late_keep(p->graph, v);
    map[v] = cnri_is_weight(p->graph, v) ? cnri_graph_borrow(s, name, type)
                                         : cnri_graph_input(s, name, type);
    return map[v];
}

/* Copies a node into a net of its own, in which it is timed. False: out of memory. */
static bool add_to(const cnri_planner *p, cnr_graph *s, int32_t node, cnr_value *map) {
    const cnri_node *n = p->graph->nodes.at[node];
    const size_t n_in = (size_t)n->view.n_inputs, n_out = (size_t)n->view.n_outputs;
    char name[32];
    snprintf(name, sizeof name, "n%d", (int)node);
    cnr_value *values = cnri_alloc((n_in + n_out + 1) * sizeof *values);
    if (!values) return false;
    for (size_t i = 0; i < n_in; i++) values[i] = in_segment(p, s, n->in[i], map);
    const bool good =
        !cnri_node_load(s, n->view.desc->name, name, NULL, values, (int32_t)n_in, n->view.attrs,
                        n->view.n_attrs, values + n_in, (int32_t)n_out);
    for (size_t i = 0; good && i < n_out; i++) map[n->out[i]] = values[n_in + i];
    cnri_free(values);
    return good;
}

/* Makes the small net; NULL: it can't be made, so its kernels can't be timed. */
static cnr_graph *segment_of(const cnri_planner *p, const cnri_chain *chain) {
    cnr_graph *s = cnri_graph_new("segment");
    cnr_value *map = cnri_alloc((size_t)(p->graph->values.n + 1) * sizeof *map);
    bool good = s && map;
    for (int32_t v = 0; good && v < p->graph->values.n; v++) map[v] = -1;
    good = good && add_to(p, s, chain->node, map);
    for (int32_t i = 0; i < chain->n && good; i++) good = add_to(p, s, chain->at[i], map);
    const cnri_view all = cnri_view_of(p, chain, chain->n, false);
    for (int32_t i = 0; i < all.n_out && good; i++)
        good = !cnri_graph_output(s, map[all.out[i]], NULL);
    cnri_free(map);
    if (good && s->problems.n == 0) return s;
    cnri_graph_free(s);
    return NULL;
}

bool cnri_only_shares(const cnri_planner *p, const cnr_node *node) {
    cnr_alias found[8];
    int32_t n = p->alias && CNRI_HAS(node->desc, buffer_aliases)
                    ? node->desc->buffer_aliases(node, found, 8)
                    : 0;
    for (int32_t i = 0; i < n && i < 8; i++)
        if (found[i].kind != CNR_ALIAS_INPLACE && found[i].kind != CNR_ALIAS_UPDATE) return true;
    return false;
}

/* Lists the kernels that could be chosen, except those that did not return before; the record
 * has these even if nothing is timed. */
static int32_t list_kernels(const cnri_planner *p, const char *key, const cnr_op *op,
                            const cnr_device *d, const char **names) {
    const cnri_kernel_query q = {.stores = p->options->stores};
    const cnr_kernel *const *all = NULL;
    const int32_t n = cnri_kernels_for(op, &all);
    int32_t count = 0;
    for (int32_t i = 0; i < n; i++)
        if (cnri_kernel_drives(all[i], d) && !cnri_kernel_only_forced(all[i]) &&
            cnri_kernel_storage_allowed(&q, all[i]) &&
            !cnri_tuning_find(p->options->tuning, key, all[i]->name))
            names[count++] = all[i]->name;
    return count;
}

/* Times the kernels and notes each time under key. *any: at least one gave a time (it may hang). */
static cnr_status time_all(cnri_tuning *t, const cnr_graph *segment, const char *device,
                           const char *key, const char *const *names, int32_t n, bool *any,
                           cnr_error *err) {
    const cnri_measuring *with = t->arg;
    cnri_cost *costs = cnri_alloc_zero(((size_t)n + 1) * sizeof *costs);
    cnr_status status = costs ? CNR_OK : cnri_no_memory(err);
    *any = false;
    if (!status && n > 0) status = with->time(with->arg, segment, device, names, n, costs, err);
    for (int32_t i = 0; costs && i < n; i++) {
        if (!(costs[i].ns > 0) || (status && costs[i].ns < CNRI_TUNING_HANGS)) continue;
        *any = true;
        const cnr_status set = cnri_tuning_set(t, key, names[i], costs[i], status ? NULL : err);
        if (!status) status = set;
    }
    cnri_free(costs);
    return status;
}

/* Times the kernels that could run the node; if none does, the reference. */
static cnr_status time_node(cnri_planner *p, const cnri_chain *chain, int32_t device,
                            const char *key, cnr_error *err) {
    static const char *const reference[] = {cnri_reference_name};
    cnri_tuning *t = p->options->tuning;
    const cnr_device *d = p->plan->devices[device];
    const cnr_node *node = &p->graph->nodes.at[chain->node]->view;
    const cnr_kernel *const *all = NULL;
    const char **names =
        cnri_alloc(((size_t)cnri_kernels_for(node->desc, &all) + 1) * sizeof *names);
    cnr_graph *segment = names ? segment_of(p, chain) : NULL;
    cnr_status status = names ? CNR_OK : cnri_no_memory(err);
    bool any = false;
    if (segment)
        status = time_all(t, segment, d->name, key, names,
                          list_kernels(p, key, node->desc, d, names), &any, err);
    if (segment && !status && !any && cnri_is_host(d) && CNRI_HAS(node->desc, reference) &&
        !cnri_only_shares(p, node))
        status = time_all(t, segment, d->name, key, reference, 1, &any, err);
    cnri_graph_free(segment);
    cnri_free((void *)names);
    return status;
}

cnr_status cnri_measure_missing(cnri_planner *p, const cnri_chain *chain, int32_t device,
                                const char *kernel, const char *key, cnr_error *err) {
    bool any;
    if (!kernel) return time_node(p, chain, device, key, err);
    cnr_graph *segment = segment_of(p, chain);
    const cnr_status status =
        segment ? time_all(p->options->tuning, segment, p->plan->devices[device]->name, key,
                           &kernel, 1, &any, err)
                : CNR_OK;
    cnri_graph_free(segment);
    return status;
}
