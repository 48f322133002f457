/* Which blobs a plan has: one for each step whose kernel prepares weights, or for several that can
 * share it; and of which constants they are made, so that stored ones are taken only if they fit.
 */
#include "plan/residency.h"

/* True if two tensors have the same type, shape and encoding. */
static bool same_type(const cnr_tensor *a, const cnr_tensor *b) {
    if (!a || !b) return a == b;
    return a->dtype == b->dtype && cnr_same_shape(a, b) && a->block == b->block &&
           a->encoding == b->encoding && a->quant == b->quant;
}

/* True if two attributes have the same value. */
static bool same_attr(const cnr_attr *a, const cnr_attr *b) {
    if (a->type != b->type || a->i != b->i || a->n != b->n || a->f != b->f) return false;
    if ((a->s || b->s) && (!a->s || !b->s || strcmp(a->s, b->s) != 0)) return false;
    const size_t n = a->n > 0 ? (size_t)a->n : 0;
    if (n && (!a->ints != !b->ints || !a->floats != !b->floats)) return false;
    if (n && a->ints && memcmp(a->ints, b->ints, n * sizeof *a->ints) != 0) return false;
    return !(n && a->floats) || memcmp(a->floats, b->floats, n * sizeof *a->floats) == 0;
}

/* True if two steps can share prepared weights: same kernel, attributes and weights. */
static bool same_blob(const cnr_plan *plan, const cnri_step *a, const cnri_step *b) {
    const cnr_node *x = &a->view, *y = &b->view;
    if (a->kernel != b->kernel || a->device != b->device || a->prepared != b->prepared)
        return false;
    if (x->op != y->op || a->slices != b->slices || x->n_attrs != y->n_attrs ||
        a->n_in != b->n_in || a->n_out != b->n_out)
        return false;
    if (cnri_n_taken(x) || cnri_n_taken(y) || x->subgraph) return a->node == b->node;
    for (int32_t i = 0; i < x->n_attrs; i++)
        if (!same_attr(x->attrs[i], y->attrs[i])) return false;
    for (int32_t i = 0; i < a->n_in; i++) {
        if (!same_type(x->inputs[i], y->inputs[i])) return false;
        const bool weight =
            a->in[i] >= 0 && cnri_is_weight(plan->graph, plan->homes.at[a->in[i]].value);
        if (weight && plan->homes.at[a->in[i]].value != plan->homes.at[b->in[i]].value)
            return false;
    }
    for (int32_t i = 0; i < a->n_out; i++)
        if (!same_type(x->outputs[i], y->outputs[i])) return false;
    return true;
}

bool cnri_residency_blob(const cnr_plan *plan, int32_t index, const char **name, uint64_t *bytes) {
    const struct cnri_residency *r = plan->residency;
    if (index < 0 || index >= r->blobs.n) return false;
    const char *node = plan->steps.at[r->blobs.at[index].step].view.name;
    *name = node ? node : "";
    *bytes = r->blobs.at[index].bytes;
    return true;
}

bool cnri_residency_kept(const cnr_plan *plan, int32_t index) {
    return plan->residency->blobs.at[index].kept != NULL;
}

/* Fingerprint of a constant, or of known sources it was rewritten from. False: it failed. */
static bool print_of(const cnr_graph *g, cnr_value value, uint8_t out[16]) {
    const cnri_value *v = &g->values.at[value];
    const cnr_tensor *t = v->type;
    uint8_t parts[4][16] = {{0}};
    if (v->late) {
        if (!print_of(g, v->late->from, parts[0])) return false;
        cnri_fingerprint(v->late->scales,
                         (uint64_t)(v->late->n * v->late->channels) * sizeof *v->late->scales,
                         parts[1]);
    } else if (v->seal) cnri_fingerprint(v->seal->digest, 32, parts[0]);
    else if (t->data) {
        cnri_fingerprint(t->data, t->encoding ? t->bytes : cnr_dense_bytes(t), parts[0]);
        if (g->releases) cnri_value_release_pages(g, value);
    } else return false;
    if (t->quant)
        cnri_fingerprint(t->quant->scale, (uint64_t)t->quant->count * sizeof *t->quant->scale,
                         parts[2]);
    if (t->quant && t->quant->zero_point)
        cnri_fingerprint(t->quant->zero_point,
                         (uint64_t)t->quant->count * sizeof *t->quant->zero_point, parts[3]);
    cnri_fingerprint(parts, sizeof parts, out);
    return true;
}

bool cnri_residency_sources(const cnr_plan *plan, int32_t index, uint8_t print[16]) {
    const struct cnri_residency *r = plan->residency;
    uint8_t prints[2][16] = {{0}}; /* of all constants so far, and of the next one */
    if (index < 0 || index >= r->blobs.n) return false;
    const cnri_step *s = &plan->steps.at[r->blobs.at[index].step];
    bool known = true;
    /* Prepare sees the weights that run reads too. */
    for (int32_t k = 0; k < s->n_in && known; k++) {
        const cnr_value v = s->in[k] < 0 ? -1 : plan->homes.at[s->in[k]].value;
        if (v < 0 || !cnri_is_weight(plan->graph, v)) continue;
        known = print_of(plan->graph, v, prints[1]);
        cnri_fingerprint(prints, sizeof prints, prints[0]);
    }
    memset(print, 0, 16);
    if (known) memcpy(print, prints[0], 16);
    return true;
}

/* True if the kept blob was made of the constants that this plan has. */
static bool same_sources(const cnr_plan *plan, int32_t index, const cnri_kept_blob *kept) {
    static const uint8_t unknown[16];
    uint8_t now[16];
    return cnri_residency_sources(plan, index, now) && memcmp(now, unknown, sizeof now) != 0 &&
           memcmp(now, kept->from, sizeof now) == 0;
}

/* Takes over the memo's blobs if they are exactly those of this plan; else none. */
static cnr_status take_kept(cnr_plan *plan, const cnri_memo *memo, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    if (!memo) return CNR_OK;
    if (memo->blobs.n != r->blobs.n)
        return cnri_fail(err, CNR_E_VERSION, "blobs", "%d are stored, %d are wanted",
                         (int)memo->blobs.n, (int)r->blobs.n);
    r->kept = cnri_alloc((size_t)(r->blobs.n + 1) * sizeof *r->kept);
    if (!r->kept) return cnri_no_memory(err);
    for (int32_t i = 0; i < r->blobs.n; i++) {
        const char *name = "";
        uint64_t bytes = 0;
        cnri_residency_blob(plan, i, &name, &bytes);
        r->kept[i] = memo->blobs.at[i];
        if (memo->replaces && !same_sources(plan, i, &r->kept[i])) continue;
        if (r->kept[i].bytes != bytes || strcmp(r->kept[i].name, name) != 0)
            return cnri_fail(err, CNR_E_VERSION, name,
                             "its blob takes %llu bytes, stored are %llu "
                             "of \"%s\"",
                             (unsigned long long)bytes, (unsigned long long)r->kept[i].bytes,
                             r->kept[i].name);
        r->blobs.at[i].kept = &r->kept[i];
    }
    return CNR_OK;
}

cnr_status cnri_residency_make(cnr_plan *plan, const cnri_memo *memo, cnr_error *err) {
    struct cnri_residency *r = cnri_alloc_zero(sizeof *r);
    if (!r) return cnri_no_memory(err);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->freed, NULL);
    plan->residency = r;
    r->late = -1;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL || !s->kernel) continue;
        if (!CNRI_HAS(s->kernel, prepare_size) || !CNRI_HAS(s->kernel, prepare)) continue;
        const cnr_status status = cnri_blob_size(plan, s, err);
        if (status) return status;
        if (s->blob_space.bytes == 0) continue;
        for (int32_t k = 0; k < r->blobs.n && s->blob < 0; k++)
            if (same_blob(plan, s, &plan->steps.at[r->blobs.at[k].step])) s->blob = k;
        if (s->blob >= 0) continue;
        s->blob = r->blobs.n;
        for (int32_t k = 0; k < cnr_max(1, s->slices); k++) {
            cnri_blob *b = cnri_push(&r->blobs);
            if (!b) return cnri_no_memory(err);
            b->step = i;
            b->slice = k;
            b->bytes = s->blob_space.bytes;
            plan->weight_bytes += b->bytes;
        }
    }
    for (cnr_value v = 0; v < plan->graph->values.n; v++)
        if (plan->graph->values.at[v].late && cnri_residency_reads(plan, v))
            cnri_late_keep(plan->graph, v);
    cnr_status status = take_kept(plan, memo, err);
    if (!status && plan->memory_bound) status = cnri_raw_find(plan, err);
    return status ? status : cnri_residency_choose(plan, err);
}
