/* Compares a file's weights with their digests when they are first read, not when mapped. */
#include "graph/graph.h"

enum { OPEN, BY_PRINT, BY_DIGEST };

/* True if the data was checked already: by digest, or if not `exact` at least by fingerprint. */
static bool is_sound(const cnri_seal *seal, bool exact) {
    const int sound = atomic_load_explicit(&seal->sound, memory_order_acquire);
    return sound >= (exact ? BY_DIGEST : BY_PRINT);
}

/* True if the comparison by digest (by_digest) or else by fingerprint is the one still to be done;
 * `exact`, and weights without fingerprint in their file, want the digest. */
static bool is_due(const cnri_seal *seal, bool exact, bool by_digest) {
    return !is_sound(seal, exact) && (exact || !seal->print) == by_digest;
}

/* Compares those of n weights that are due (is_due) with their sums, on `threads` threads. `list`
 * has room for n. CNR_E_FORMAT: one differs. */
static cnr_status compare(cnri_seal *const *seals, cnri_digest *list, int32_t n, bool exact,
                          bool by_digest, int32_t threads, cnr_error *err) {
    int32_t due = 0;
    for (int32_t i = 0; i < n; i++) {
        const bool wanted = is_due(seals[i], exact, by_digest);
        list[i] = (cnri_digest){.data = seals[i]->data,
                                .bytes = wanted ? seals[i]->bytes : 0,
                                .releases = atomic_load(&seals[i]->releases)};
        due += wanted;
    }
    if (due == 0) return CNR_OK;
    if (by_digest) cnri_digests(list, n, threads);
    else if (!cnri_fingerprints(list, n, threads)) return cnri_out_of_memory(err, seals[0]->file);
    for (int32_t i = 0; i < n; i++) {
        cnri_seal *seal = seals[i];
        if (!is_due(seal, exact, by_digest) || list[i].bytes != seal->bytes) continue;
        if (memcmp(list[i].sum, by_digest ? seal->digest : seal->print, by_digest ? 32 : 16) != 0)
            return cnri_fail(err, CNR_E_FORMAT, seal->file,
                             "damaged: the data of %s does not have the digest that was written "
                             "with it (\"cnnrun check\" tells all that is wrong)",
                             seal->name);
        atomic_store_explicit(&seal->sound, by_digest ? BY_DIGEST : BY_PRINT, memory_order_release);
    }
    return CNR_OK;
}

/* Checks those of n sealed blocks that were not checked yet; exact: by digests, not fingerprints.
 * CNR_E_FORMAT: one is damaged. */
static cnr_status check_seals(cnri_seal *const *seals, int32_t n, bool exact, int32_t threads,
                              cnr_error *err) {
    int32_t open = 0;
    for (int32_t i = 0; i < n; i++) open += !is_sound(seals[i], exact);
    if (open == 0) return CNR_OK;
    cnri_digest *list = cnri_alloc((size_t)n * sizeof *list);
    if (!list) return cnri_out_of_memory(err, seals[0]->file);
    cnr_status status = compare(seals, list, n, exact, false, threads, err);
    if (!status) status = compare(seals, list, n, exact, true, threads, err);
    cnri_free(list);
    return status;
}

cnr_status cnri_graph_verify_weights(const cnr_graph *g, const bool *wanted, bool exact,
                                     int32_t threads, cnr_error *err) {
    cnri_seal **list = cnri_alloc(((size_t)g->values.n + 1) * sizeof *list);
    int32_t n = 0;
    if (!list) return cnri_out_of_memory(err, g->name);
    for (int32_t i = 0; i < g->values.n; i++)
        if (g->values.at[i].seal && (wanted ? wanted[i] : g->values.at[i].uses > 0))
            list[n++] = g->values.at[i].seal;
    const cnr_status status = check_seals(list, n, exact, threads, err);
    cnri_free(list);
    return status;
}

cnr_status cnri_value_verify(const cnri_value *v, bool exact, int32_t threads, cnr_error *err) {
    return v->seal ? check_seals(&v->seal, 1, exact, threads, err) : CNR_OK;
}
