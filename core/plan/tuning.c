/* Choice by measured time: the record of times, the key under which a node is found in it, and the
 * small net in which its kernels are timed. */
#include "core/plan/planner.h"
#include <stdlib.h>

/* ---- the record ---- */

/* Rows are in the order of key and kernel, so that a record of any size is looked up quickly. */
static int compare(const cnri_timed *row, const char *key, const char *kernel) {
    const int order = strcmp(row->key, key);
    return order ? order : strcmp(row->kernel, kernel);
}

/* The first row that is not before (key, kernel). */
static int32_t place_of(const cnri_tuning *t, const char *key, const char *kernel) {
    int32_t low = 0, high = t->rows.n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (compare(&t->rows.at[middle], key, kernel) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* kernel "": of any. */
static cnri_timed *find(const cnri_tuning *t, const char *key, const char *kernel) {
    const int32_t i = place_of(t, key, kernel);
    cnri_timed *row = i < t->rows.n ? &t->rows.at[i] : NULL;
    return row && strcmp(row->key, key) == 0 && (!*kernel || strcmp(row->kernel, kernel) == 0)
               ? row : NULL;
}

double cnri_tuning_ns(const cnri_tuning *t, const char *key, const char *kernel) {
    const cnri_timed *row = find(t, key, kernel);
    return row ? row->ns : -1;
}

cnr_status cnri_tuning_set(cnri_tuning *t, const char *key, const char *kernel, double ns,
                           cnr_error *err) {
    cnri_timed *row = find(t, key, kernel);
    if (!row && strlen(key) < sizeof row->key && strlen(kernel) < sizeof row->kernel) {
        const int32_t at = place_of(t, key, kernel);
        if (!cnri_push(&t->rows)) return cnri_no_memory(err);
        row = &t->rows.at[at];
        memmove(row + 1, row, (size_t)(t->rows.n - 1 - at) * sizeof *row);
        memset(row, 0, sizeof *row);
        snprintf(row->key, sizeof row->key, "%s", key);
        snprintf(row->kernel, sizeof row->kernel, "%s", kernel);
    }
    if (row) row->ns = ns;
    return CNR_OK;
}

/* Behind the rows stands what tells whether they are all there, as they were. */
static const char seal[] = "{\"sha256\":\"";
enum { SEAL = sizeof seal - 1 + 64 + 3 };

void cnri_tuning_print(const cnri_tuning *t, cnri_text *out) {
    const size_t begin = out->n;
    for (int32_t i = 0; i < t->rows.n; i++) {
        char number[64];
        cnri_print_double(number, sizeof number, t->rows.at[i].ns);
        cnri_text_add(out, "{\"key\":");
        cnri_text_json(out, t->rows.at[i].key);
        cnri_text_add(out, ",\"kernel\":");
        cnri_text_json(out, t->rows.at[i].kernel);
        cnri_text_add(out, ",\"ns\":%s}\n", number);
    }
    uint8_t digest[32];
    char hex[65];
    if (out->failed) return;
    cnri_sha256_of(out->at + begin, out->n - begin, digest);
    cnri_hex(digest, sizeof digest, hex);
    cnri_text_add(out, "%s%s\"}\n", seal, hex);
}

/* Copies the text behind `before` up to the next quote; false when it does not stand there. */
static bool quoted(const char **at, const char *before, char *out, size_t room) {
    const size_t n = strlen(before);
    if (strncmp(*at, before, n) != 0) return false;
    const size_t length = strcspn(*at + n, "\"\\\n");
    if ((*at)[n + length] != '"' || length == 0 || length >= room) return false;
    memcpy(out, *at + n, length);
    out[length] = 0;
    *at += n + length + 1;
    return true;
}

static bool parse_row(const char *at, cnri_timed *row) {
    const char *end;
    return quoted(&at, "{\"key\":\"", row->key, sizeof row->key) &&
           quoted(&at, ",\"kernel\":\"", row->kernel, sizeof row->kernel) &&
           strncmp(at, ",\"ns\":", 6) == 0 && cnri_parse_double(at + 6, &end, &row->ns) &&
           *end == '}' && row->ns > 0 && row->ns < 1e15;
}

static int by_name(const void *a, const void *b) {
    const cnri_timed *x = a, *y = b;
    return compare(x, y->key, y->kernel);
}

static bool sealed(const char *text, size_t n) {
    uint8_t digest[32];
    char hex[65];
    if (n < SEAL || memcmp(text + n - SEAL, seal, sizeof seal - 1) != 0) return false;
    cnri_sha256_of(text, n - SEAL, digest);
    cnri_hex(digest, sizeof digest, hex);
    return memcmp(text + n - SEAL + sizeof seal - 1, hex, 64) == 0;
}

cnr_status cnri_tuning_parse(cnri_tuning *t, const char *text, cnr_error *err) {
    const size_t n = strlen(text);
    if (!sealed(text, n))
        return cnri_fail(err, CNR_E_FORMAT, "", "its digest is missing or wrong: it was changed or "
                         "cut short");
    for (const char *end = text + n - SEAL; text < end;) {
        cnri_timed row = {.ns = 0}, *slot;
        const char *line = text;
        text += strcspn(text, "\n") + 1;
        if (!parse_row(line, &row)) continue;
        if (!(slot = cnri_push(&t->rows))) return cnri_no_memory(err);
        *slot = row;
    }
    if (t->rows.n) qsort(t->rows.at, (size_t)t->rows.n, sizeof *t->rows.at, by_name);
    return CNR_OK;
}

/* ---- the key ---- */

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

static void add_node(cnri_text *out, const cnr_node *node) {
    cnri_text_add(out, "%s %u", node->desc->name, (unsigned)node->desc->version);
    for (int32_t i = 0; i < node->n_attrs; i++) {
        cnri_text_add(out, " ");
        cnri_attr_print(node->attrs[i], out);
    }
    for (int32_t i = 0; i < node->n_inputs; i++) add_type(out, node->inputs[i]);
    cnri_text_add(out, "\n");
}

static cnr_status make_key(cnri_planner *p, int32_t node, int32_t device, cnr_error *err) {
    const cnri_pick *pick = &p->picks[node];
    const cnri_device *on = p->set->at[device];
    const cnr_device *d = &on->device;
    cnri_text t = {0};
    uint8_t digest[32];
    cnri_text_add(&t, "%s %s %d\n", d->cls->name, d->name, (int)d->concurrency);
    cnri_text_add(&t, "%s %s\n", on->info.name, on->info.driver);
    add_node(&t, &p->graph->nodes.at[node]->view);
    for (int32_t i = 0; i < pick->n_chain; i++) {
        cnri_text_add(&t, "%d ", (int)pick->epilogues[i].chain_port);
        add_node(&t, &p->graph->nodes.at[pick->chain[i]]->view);
    }
    const bool failed = t.failed;
    if (!failed) cnri_sha256_of(t.at, t.n, digest);
    cnri_text_free(&t);
    if (failed) return cnri_no_memory(err);
    cnri_hex(digest, 16, p->key);
    return CNR_OK;
}

/* ---- the small net ---- */

/* The value in the segment: its own constants, inputs for what others compute. */
static cnr_value in_segment(const cnri_planner *p, cnr_graph *s, cnr_value v, cnr_value *map) {
    char name[32];
    if (v < 0 || map[v] >= 0) return v < 0 ? -1 : map[v];
    const cnr_tensor *type = p->graph->values.at[v].type;
    snprintf(name, sizeof name, "v%d", (int)v);
    map[v] = cnri_is_weight(p->graph, v) ? cnri_graph_borrow(s, name, type)
                                         : cnri_graph_input(s, name, type);
    return map[v];
}

static bool add_to(const cnri_planner *p, cnr_graph *s, int32_t node, cnr_value *map) {
    const cnri_node *n = p->graph->nodes.at[node];
    const size_t n_in = (size_t)n->view.n_inputs, n_out = (size_t)n->view.n_outputs;
    char name[32];
    snprintf(name, sizeof name, "n%d", (int)node);
    cnr_value *values = cnri_alloc((n_in + n_out + 1) * sizeof *values);
    if (!values) return false;
    for (size_t i = 0; i < n_in; i++) values[i] = in_segment(p, s, n->in[i], map);
    const bool good = !cnri_node_load(s, n->view.desc->name, name, NULL, values, (int32_t)n_in,
                                      n->view.attrs, n->view.n_attrs, values + n_in,
                                      (int32_t)n_out);
    for (size_t i = 0; good && i < n_out; i++) map[n->out[i]] = values[n_in + i];
    cnri_free(values);
    return good;
}

/* NULL: it can't be made, so its kernels can't be timed. */
static cnr_graph *segment_of(const cnri_planner *p, int32_t node) {
    const cnri_pick *pick = &p->picks[node];
    cnr_graph *s = cnri_graph_new("segment");
    cnr_value *map = cnri_alloc((size_t)(p->graph->values.n + 1) * sizeof *map);
    bool good = s && map;
    for (int32_t v = 0; good && v < p->graph->values.n; v++) map[v] = -1;
    int32_t last = node;
    good = good && add_to(p, s, node, map);
    for (int32_t i = 0; i < pick->n_chain && good; i++)
        good = add_to(p, s, last = pick->chain[i], map);
    const cnri_node *end = p->graph->nodes.at[last];
    for (int32_t i = 0; i < end->view.n_outputs && good; i++)
        good = !cnri_graph_output(s, map[end->out[i]], NULL);
    cnri_free(map);
    if (good && s->problems.n == 0) return s;
    cnri_graph_free(s);
    return NULL;
}

static cnr_status measure(cnri_planner *p, int32_t node, int32_t device, cnr_error *err) {
    cnri_tuning *t = p->options->tuning;
    const cnr_device *d = p->plan->devices[device];
    const cnr_kernel *const *all = NULL;
    const int32_t n = cnri_kernels_for(p->graph->nodes.at[node]->view.desc, &all);
    const cnr_kernel **list = cnri_alloc((size_t)(n + 1) * sizeof *list);
    double *ns = cnri_alloc_zero((size_t)(n + 1) * sizeof *ns);
    cnr_graph *segment = list && ns ? segment_of(p, node) : NULL;
    cnr_status status = list && ns ? CNR_OK : cnri_no_memory(err);
    int32_t count = 0;
    for (int32_t i = 0; list && i < n; i++)
        if (cnri_kernel_drives(all[i], d) && !cnri_kernel_only_forced(all[i])) list[count++] = all[i];
    if (segment && count > 1) status = t->measure(t->arg, segment, d->name, list, count, ns, err);
    for (int32_t i = 0; i < count && !status; i++)
        if (ns[i] > 0) status = cnri_tuning_set(t, p->key, list[i]->name, ns[i], err);
    cnri_graph_free(segment);
    cnri_free(list);
    cnri_free(ns);
    return status;
}

cnr_status cnri_tuning_begin(cnri_planner *p, int32_t node, int32_t device, cnr_error *err) {
    const cnri_tuning *t = p->options->tuning;
    p->key[0] = 0;
    if (!t || p->options->deterministic || p->told || p->picks[node].axis >= 0) return CNR_OK;
    const cnr_status status = make_key(p, node, device, err);
    if (status || !t->measure || find(t, p->key, "")) return status;
    return measure(p, node, device, err);
}
