/* Finds the weights of a file that a plan will read, so that they are verified before anything
 * runs. */
#include "plan/planner.h"

/* Marks the values that are read. Weights that only went into kept blobs are not read (`stored`:
 * blobs that will be kept count too); weights that no step reads any more were read while the
 * plan was made. */
static void mark(const cnr_plan *plan, bool stored, bool *reads, bool *used) {
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        for (int32_t k = 0; k < s->n_in; k++) {
            if (s->in[k] < 0) continue;
            const cnr_value v = plan->homes.at[s->in[k]].value;
            const bool packed = cnri_step_prepares(s, k) && s->blob >= 0;
            used[v] = true;
            if (!packed || !(stored || cnri_residency_kept(plan, s->blob))) reads[v] = true;
        }
    }
    for (int32_t i = 0; i < plan->twins.n; i++) {
        const cnri_twin *t = &plan->twins.at[i];
        used[t->encoded] = used[t->encoded] || used[t->dense];
        reads[t->encoded] = reads[t->encoded] || reads[t->dense] || t->kept;
    }
    for (int32_t i = 0; i < plan->graph->values.n; i++) {
        const cnri_late *late = plan->graph->values.at[i].late;
        if (!late || !used[i]) continue;
        used[late->from] = true;
        reads[late->from] = reads[late->from] || reads[i];
    }
    for (int32_t i = 0; i < plan->graph->values.n; i++) reads[i] = reads[i] || !used[i];
}

bool cnri_plan_reads(const cnr_plan *plan, char print[33]) {
    const size_t n = (size_t)plan->graph->values.n + 1;
    bool *reads = cnri_alloc_zero(2 * n);
    cnri_digest *list = cnri_alloc(n * sizeof *list);
    cnri_sha256 all;
    uint8_t sum[32];
    int32_t count = 0;
    cnri_sha256_begin(&all);
    if (reads && list) mark(plan, true, reads, reads + n);
    for (size_t i = 0; reads && list && i + 1 < n; i++) {
        const cnri_seal *seal = plan->graph->values.at[i].seal;
        if (!seal || !reads[i]) continue;
        list[count++] = (cnri_digest){.data = seal->data,
                                      .bytes = seal->bytes,
                                      .releases = atomic_load(&seal->releases)};
    }
    const bool good = reads && list && (count == 0 || cnri_fingerprints(list, count, 0));
    for (int32_t i = 0; good && i < count; i++) cnri_sha256_add(&all, list[i].sum, 16);
    cnri_sha256_end(&all, sum);
    cnri_hex(sum, count > 0 ? 16 : 0, print);
    cnri_free(reads);
    cnri_free(list);
    return good;
}

cnr_status cnri_plan_verify_weights(cnr_plan *plan, bool exact, int32_t threads, cnr_error *err) {
    const size_t n = (size_t)plan->graph->values.n + 1;
    if (!exact && atomic_load_explicit(&plan->sound, memory_order_acquire)) return CNR_OK;
    bool *reads = cnri_alloc_zero(2 * n);
    if (!reads) return cnri_no_memory(err);
    mark(plan, false, reads, reads + n);
    const cnr_status status = cnri_graph_verify_weights(plan->graph, reads, exact, threads, err);
    cnri_free(reads);
    if (!status) atomic_store_explicit(&plan->sound, true, memory_order_release);
    return status;
}
