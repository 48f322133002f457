/* Choice by measured time: the key under which the record has a node or a region. */
#include "plan/planner.h"

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

cnr_status cnri_tuning_begin(cnri_planner *p, const cnri_chain *chain, const cnri_kernel_query *q,
                             char key[CNRI_TUNING_KEY], cnr_error *err) {
    const cnri_tuning *t = p->options->tuning;
    key[0] = 0;
    if (!t || q->ignores_times || q->dynamic || q->stored_choice || q->axis >= 0) return CNR_OK;
    const cnr_status status = make_key(p, chain, q->device, key, err);
    if (status || !t->measure || q->unmeasured || cnri_tuning_knows(t, key)) return status;
    return t->measure(p, chain, q->device, NULL, key, err);
}

cnr_status cnri_tuning_begin_region(cnri_planner *p, const cnri_chain *chain, int32_t device,
                                    const char *kernel, char key[CNRI_TUNING_KEY], cnr_error *err) {
    const cnri_tuning *t = p->options->tuning;
    key[0] = 0;
    if (!t || p->options->deterministic || p->options->memo) return CNR_OK;
    CNR_TRY(make_region_key(p, chain->region->subgraph, device, key, err));
    if (!t->measure || cnri_tuning_find(t, key, kernel)) return CNR_OK;
    return t->measure(p, chain, device, kernel, key, err);
}
