/* The identity of a stored plan: all that it depends on, as text. The plan is good as long as
 * this text is the same. */
#define _GNU_SOURCE /* memmem */
#include "keep/keep.h"

/* Appends "KEY HEX", a line with a digest of 16 bytes. */
static void add_digest(cnri_text *out, const char *key, const uint8_t *digest) {
    char hex[33];
    cnri_hex(digest, 16, hex);
    cnri_text_add(out, "%s %s\n", key, hex);
}

/* Adds the digest of a gathered text, and frees the text. */
static void add_digest_of(cnri_text *out, const char *key, cnri_text *gathered) {
    uint8_t digest[32];
    out->failed = out->failed || gathered->failed;
    cnri_sha256_of(gathered->at, gathered->n, digest);
    add_digest(out, key, digest);
    cnri_text_free(gathered);
}

/* Appends a type as "f32x1x3". */
static void add_type(cnri_text *out, const cnr_tensor *t) {
    cnri_text_add(out, "%s", cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++) cnri_text_add(out, "x%lld", (long long)t->dim[i]);
}

/* Appends "net" and a digest of the net's structure: values, types, nodes, attributes and outputs,
 * but no weights. */
static void add_net(cnri_text *out, const cnr_graph *g) {
    cnri_text t = {0};
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnri_value *v = &g->values.at[i];
        cnri_text_add(&t, "value %d %d ", (int)v->producer, (int)v->is_input);
        add_type(&t, v->type);
        cnri_text_add(&t, " %s %u\n", cnri_name(v->type->encoding), (unsigned)v->type->flags);
    }
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *n = g->nodes.at[i];
        cnri_text_add(&t, "node %s %u %s", n->view.desc->name, (unsigned)n->view.desc->version,
                      n->name ? n->name : "");
        for (int32_t k = 0; k < n->view.n_attrs; k++) {
            cnri_text_add(&t, " ");
            cnri_attr_print(n->view.attrs[k], &t);
        }
        for (int32_t k = 0; k < n->view.n_inputs; k++) cnri_text_add(&t, " %d", (int)n->in[k]);
        for (int32_t k = 0; k < n->view.n_outputs; k++) cnri_text_add(&t, " >%d", (int)n->out[k]);
        cnri_text_add(&t, "\n");
    }
    for (int32_t i = 0; i < g->outputs.n; i++)
        cnri_text_add(&t, "output %d\n", (int)g->outputs.at[i]);
    add_digest_of(out, "net", &t);
}

/* Computes the fingerprints of all weights without a stored digest, on all threads. list: one for
 * each value; bounded: pages of weights in files are given back. False: out of memory. */
static bool print_weights(const cnr_graph *g, bool bounded, cnri_digest *list) {
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnri_value *v = &g->values.at[i];
        const cnr_tensor *type = v->type;
        if (v->producer >= 0 || !type->data || v->seal) continue;
        list[i].data = type->data;
        list[i].bytes = type->encoding ? type->bytes : cnr_dense_bytes(type);
        list[i].releases = bounded && cnri_value_in_file(g, i);
    }
    return cnri_fingerprints(list, g->values.n, 0);
}

/* Appends a digest of all weights, from stored digests where there are some. */
static void add_weights(cnri_text *out, const cnr_graph *g, bool bounded) {
    cnri_text t = {0};
    cnri_digest *list = cnri_alloc_zero(((size_t)g->values.n + 1) * sizeof *list);
    out->failed = out->failed || !list || !print_weights(g, bounded, list);
    for (int32_t i = 0; i < g->values.n && !out->failed; i++) {
        const cnr_tensor *type = g->values.at[i].type;
        const cnr_quant *q = type->quant;
        uint8_t print[16];
        if (g->values.at[i].producer >= 0 || !type->data) continue;
        /* With stored digests no weight has to be read. */
        const cnri_seal *seal = g->values.at[i].seal;
        add_digest(&t, "w", seal ? seal->digest : list[i].sum);
        if (!q) continue;
        cnri_fingerprint(q->scale, (uint64_t)q->count * sizeof *q->scale, print);
        add_digest(&t, "q", print);
        if (!q->zero_point) continue;
        cnri_fingerprint(q->zero_point, (uint64_t)q->count * sizeof *q->zero_point, print);
        add_digest(&t, "z", print);
    }
    cnri_free(list);
    add_digest_of(out, "weights", &t);
}

/* True for metadata that says how the net is planned. Its policy has a digest of its own. */
static bool is_wish(const char *key) {
    return strncmp(key, CNRI_PLACE_PREFIX, strlen(CNRI_PLACE_PREFIX)) == 0 ||
           strncmp(key, "symbol.", 7) == 0 ||
           (strncmp(key, "plan.", 5) == 0 &&
            strncmp(key, CNRI_POLICY_META, strlen(CNRI_POLICY_META)) != 0);
}

/* Appends the options that a plan depends on. */
static void add_options(cnri_text *out, const cnri_plan_request *r) {
    const cnri_plan_options *o = r->options;
    const cnr_graph *g = r->model->graph;
    cnri_text_add(out, "options");
    cnri_load_enter(o, CNRI_ENTERS_PLAN, out);
    if (o->policy) cnri_text_add(out, " policy=%s", o->policy->name);
    if (o->on_fallback) cnri_text_add(out, " fell");
    if (o->stores) cnri_text_add(out, " stores=%u", (unsigned)o->stores);
    for (int32_t i = 0; i < o->n_placements; i++) {
        const cnri_placement *p = &o->placements[i];
        cnri_text_add(out, " place=%s/%d", p->node, (int)p->axis);
        for (int32_t k = 0; k < p->n_parts; k++) {
            char ratio[64];
            cnri_print_double(ratio, sizeof ratio, p->parts[k].ratio);
            cnri_text_add(out, ",%s:%s", p->parts[k].device, ratio);
        }
    }
    for (int32_t i = 0; i < g->meta.n; i++)
        if (is_wish(g->meta.keys[i]))
            cnri_text_add(out, " %s=%s", g->meta.keys[i], g->meta.texts[i]);
    cnri_text_add(out, "\n");
}

/* Appends the input types, and a fingerprint of the data of those that are constant. */
static void add_shapes(cnri_text *out, const cnr_tensor *const *types, int32_t n) {
    cnri_text_add(out, "shapes");
    for (int32_t i = 0; i < n; i++) {
        cnri_text_add(out, " ");
        add_type(out, types[i]);
        if (types[i]->data) { /* the input decides shapes */
            uint8_t print[16];
            char hex[33];
            cnri_fingerprint(types[i]->data, types[i]->bytes, print);
            cnri_hex(print, sizeof print, hex);
            cnri_text_add(out, "=%s", hex);
        }
    }
    cnri_text_add(out, "\n");
}

/* Bytes at the begin of a plugin's file that tell it from others: its first page if that holds the
 * linker's build ID (a note of type 3 and name "GNU", and 20 bytes), else all. */
static uint64_t telling_bytes(const cnri_mapping *file) {
    enum { FIRST = 4096, ID = 20 };
    static const uint8_t note[] = {3, 0, 0, 0, 'G', 'N', 'U', 0};
    return file->bytes > FIRST && memmem(file->at, FIRST - ID, note, sizeof note) ? FIRST
                                                                                  : file->bytes;
}

/* Adds a line for each plugin that brings one of these kinds. Plugins are identified by their
 * files, because a version is not always raised during development. */
void cnri_identity_plugins(cnri_text *out, uint32_t kinds) {
    for (int32_t i = 0; i < cnri_plugin_count(); i++) {
        const cnri_plugin *p = cnri_plugin_at(i);
        int32_t kind;
        const char *name;
        bool matters = false;
        if (!p->desc) continue;
        for (int32_t k = 0; cnri_plugin_item(i, k, &kind, &name); k++)
            matters = matters || kinds & 1u << kind;
        cnri_mapping file;
        if (!matters) continue;
        uint8_t print[16] = {0};
        uint64_t bytes = 0;
        if (cnri_map_file(p->path, &file, NULL) == CNR_OK) {
            bytes = file.bytes;
            cnri_fingerprint(file.at, telling_bytes(&file), print);
        }
        cnri_unmap_file(&file);
        char hex[33];
        cnri_hex(print, sizeof print, hex);
        cnri_text_add(out, "plugin %s %s %s, %llu bytes\n", p->name, p->version, hex,
                      (unsigned long long)bytes);
    }
}

/* Appends the devices of the set, with driver and units. */
static void add_devices(cnri_text *out, const cnri_device_set *set) {
    for (int32_t i = 0; i < set->n; i++) {
        const cnri_device *d = set->at[i];
        cnri_text_add(out, "device %s %s, %s, %s, driver %s, %d units\n", d->name,
                      d->device.cls->name, d->info.key, d->info.name, d->info.driver,
                      (int)d->info.concurrency);
    }
}

void cnri_plan_identity(const cnri_plan_request *r, cnri_text *out) {
    const cnr_model *m = r->model;
    cnri_text_add(out, "program %s abi %d.%d signature %08x\n", CNNRUN_VERSION, CNR_ABI_MAJOR,
                  CNR_ABI_MINOR, (unsigned)CNR_SIGNATURE);
    add_shapes(out, r->types, r->n);
    add_options(out, r);
    /* a policy decides by this text, its options, and the other lines */
    if (r->options->policy) add_digest(out, "policy", r->options->policy->print);
    add_devices(out, r->set);
    cnri_text_add(out, "threads %d\n", (int)m->rt->devices.options.threads);
    cnri_identity_plugins(out, 1u << CNR_KIND_OPERATOR | 1u << CNR_KIND_KERNEL |
                                   1u << CNR_KIND_DEVICE | 1u << CNR_KIND_ENCODING |
                                   1u << CNR_KIND_REWRITE);
    if (m->cache && !r->is_portable && !r->options->deterministic) {
        cnri_tuning none = {0};
        uint8_t print[16];
        (void)cnri_tuning_load(m->cache, &none, print, NULL);
        add_digest(out, "tuning", print);
        cnri_vec_free(&none.rows);
    }
    add_net(out, m->graph);
    add_weights(out, m->graph, r->options->memory_bound > 0);
}
