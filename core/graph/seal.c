/* Weights of a file are compared with its digests when they are first read, not when they are mapped. */
#include "core/graph/graph.h"

static bool is_sound(const cnri_seal *seal) {
    return atomic_load_explicit(&seal->sound, memory_order_acquire);
}

static cnr_status check_seals(cnri_seal *const *seals, int32_t n, int32_t threads, cnr_error *err) {
    int32_t open = 0;
    for (int32_t i = 0; i < n; i++) open += !is_sound(seals[i]);
    if (open == 0) return CNR_OK;
    cnri_digest *list = cnri_alloc((size_t)n * sizeof *list);
    if (!list) return cnri_fail(err, CNR_E_MEMORY, seals[0]->file, "out of memory");
    for (int32_t i = 0; i < n; i++) /* what is sound costs nothing */
        list[i] = (cnri_digest){seals[i]->data, is_sound(seals[i]) ? 0 : seals[i]->bytes, {0}};
    cnri_digests(list, n, threads);
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n; i++) {
        if (list[i].bytes == seals[i]->bytes &&
            memcmp(list[i].sha256, seals[i]->digest, sizeof list[i].sha256) == 0)
            atomic_store_explicit(&seals[i]->sound, true, memory_order_release);
        else if (!status && !is_sound(seals[i]))
            status = cnri_fail(err, CNR_E_FORMAT, seals[i]->file,
                               "damaged: the data of %s does not have the digest that was written "
                               "with it (\"cnnrun check\" tells all that is wrong)",
                               seals[i]->name);
    }
    cnri_free(list);
    return status;
}

cnr_status cnri_graph_sound(const cnr_graph *g, const bool *wanted, int32_t threads,
                            cnr_error *err) {
    cnri_seal **list = cnri_alloc(((size_t)g->values.n + 1) * sizeof *list);
    int32_t n = 0;
    if (!list) return cnri_fail(err, CNR_E_MEMORY, g->name, "out of memory");
    for (int32_t i = 0; i < g->values.n; i++)
        if (g->values.at[i].seal && (wanted ? wanted[i] : g->values.at[i].uses > 0))
            list[n++] = g->values.at[i].seal;
    const cnr_status status = check_seals(list, n, threads, err);
    cnri_free(list);
    return status;
}

cnr_status cnri_value_sound(const cnri_value *v, cnr_error *err) {
    return v->seal ? check_seals(&v->seal, 1, 1, err) : CNR_OK;
}
