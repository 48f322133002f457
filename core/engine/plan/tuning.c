/* Choice by measured time: the key under which the record has a node, and the small net in which
 * its kernels are timed. */
#include "plan/planner.h"

/* ---- the key ---- */

/* Appends a tensor's type to the text whose digest is the key; "-": an omitted one. */
static void add_type(cnri_text *out, const cnr_tensor *t) {
    if (!t) {
        cnri_text_add(out, " -");
        return;
    }
    cnri_text_add(out, " %s", cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++) cnri_text_add(out, "x%lld", (long long)t->dim[i]);
    cnri_text_add(out, "%s%s", t->flags & CNR_TENSOR_CONST ? "c" : "", cnri_name(t->encoding));
    if (t->flags & CNR_TENSOR_VARIABLE) cnri_text_add(out, "v");
}

/* Adds operator, attributes and input types to the key. The output types follow from these. */
static void add_node(cnri_text *out, const cnr_node *node) {
    cnri_text_add(out, "%s %u", node->desc->name, (unsigned)node->desc->version);
    for (int32_t i = 0; i < node->n_attrs; i++) {
        cnri_text_add(out, " ");
        cnri_attr_print(node->attrs[i], out);
    }
    for (int32_t i = 0; i < node->n_inputs; i++) add_type(out, node->inputs[i]);
    cnri_text_add(out, "\n");
}

/* Writes the digest of the gathered text as the key; frees the text. */
static cnr_status digest_key(cnri_text *t, char key[CNRI_TUNING_KEY], cnr_error *err) {
    const bool failed = t->failed;
    uint8_t digest[32];
    if (!failed) cnri_sha256_of(t->at, t->n, digest);
    cnri_text_free(t);
    if (failed) return cnri_no_memory(err);
    cnri_hex(digest, 16, key);
    return CNR_OK;
}

/* Adds class, name, concurrency and driver of a device, as it reports them. */
static void add_device(cnri_text *t, const cnri_device *on) {
    const cnr_device *d = &on->device;
    cnri_text_add(t, "%s %s %d\n", d->cls->name, d->name, (int)d->concurrency);
    cnri_text_add(t, "%s %s\n", on->info.name, on->info.driver);
}

cnr_status cnri_tuning_device_key(const cnri_device *d, char key[CNRI_TUNING_KEY], cnr_error *err) {
    cnri_text t = {0};
    add_device(&t, d);
    return digest_key(&t, key, err);
}

cnr_status cnri_tuning_link_key(const cnri_device *from, const cnri_device *to,
                                char key[CNRI_TUNING_KEY], cnr_error *err) {
    cnri_text t = {0};
    add_device(&t, from);
    add_device(&t, to);
    return digest_key(&t, key, err);
}

/* Writes the key, for measured times, of a node with its chain on a device. */
static cnr_status make_key(const cnri_planner *p, const cnri_chain *chain, int32_t device,
                           char key[CNRI_TUNING_KEY], cnr_error *err) {
    cnri_text t = {0};
    add_device(&t, p->set->at[device]);
    add_node(&t, &p->graph->nodes.at[chain->node]->view);
    for (int32_t i = 0; i < chain->n; i++) {
        cnri_text_add(&t, "%d ", (int)chain->epilogues[i].chain_port);
        add_node(&t, chain->epilogues[i].node);
    }
    return digest_key(&t, key, err);
}

/* Writes the key of a region on a device: its nodes, and how they read each other. */
static cnr_status make_region_key(const cnri_planner *p, const cnr_subgraph *s, int32_t device,
                                  char key[CNRI_TUNING_KEY], cnr_error *err) {
    cnri_text t = {0};
    add_device(&t, p->set->at[device]);
    for (int32_t i = 0; i < s->n_nodes; i++) {
        for (int32_t k = 0; k < s->nodes[i].node->n_inputs; k++)
            cnri_text_add(&t, "%d ", (int)s->nodes[i].inputs[k]);
        add_node(&t, s->nodes[i].node);
    }
    for (int32_t i = 0; i < s->n_outputs; i++) cnri_text_add(&t, ">%d", (int)s->outputs[i]);
    return digest_key(&t, key, err);
}

/* ---- the small net ---- */

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
    cnri_cost *costs = cnri_alloc_zero(((size_t)n + 1) * sizeof *costs);
    cnr_status status = costs ? CNR_OK : cnri_no_memory(err);
    *any = false;
    if (!status && n > 0) status = t->measure(t->arg, segment, device, names, n, costs, err);
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
static cnr_status measure(cnri_planner *p, const cnri_chain *chain, int32_t device, const char *key,
                          cnr_error *err) {
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

cnr_status cnri_tuning_begin(cnri_planner *p, const cnri_chain *chain, const cnri_kernel_query *q,
                             char key[CNRI_TUNING_KEY], cnr_error *err) {
    const cnri_tuning *t = p->options->tuning;
    key[0] = 0;
    if (!t || q->ignores_times || q->dynamic || q->stored_choice || q->axis >= 0) return CNR_OK;
    const cnr_status status = make_key(p, chain, q->device, key, err);
    if (status || !t->measure || q->unmeasured || cnri_tuning_knows(t, key)) return status;
    return measure(p, chain, q->device, key, err);
}

cnr_status cnri_tuning_begin_region(cnri_planner *p, const cnri_chain *chain, int32_t device,
                                    const char *kernel, char key[CNRI_TUNING_KEY], cnr_error *err) {
    cnri_tuning *t = p->options->tuning;
    const cnr_device *d = p->plan->devices[device];
    bool any;
    key[0] = 0;
    if (!t || p->options->deterministic || p->options->memo) return CNR_OK;
    CNR_TRY(make_region_key(p, chain->region->subgraph, device, key, err));
    if (!t->measure || cnri_tuning_find(t, key, kernel)) return CNR_OK;
    cnr_graph *segment = segment_of(p, chain);
    const cnr_status status =
        segment ? time_all(t, segment, d->name, key, &kernel, 1, &any, err) : CNR_OK;
    cnri_graph_free(segment);
    return status;
}
