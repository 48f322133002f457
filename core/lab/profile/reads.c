/* What of a step's reading comes from memory: what its device used last so long ago that other data
 * has filled the caches since. A model of one cache, of the largest one's size, that drops what was
 * used the longest ago; runs follow each other, so that weights were used one run before. */
#include "profile/profile.h"

/* Memory that a step uses: a home (for homes that share bytes, their root), or a blob. */
typedef struct use {
    int32_t of;
    bool read;
    double bytes;
} use;
/* List of reads and writes of a step. */
typedef struct uses {
    use *at;
    int32_t n, capacity;
} uses;

/* Adds one read or write of `bytes` bytes of home `of`. False: out of memory. */
static bool add(uses *list, int32_t of, bool read, double bytes) {
    use *to = cnri_push(list);
    if (to) *to = (use){of, read, bytes};
    return to != NULL;
}

/* The home whose memory this one shares in the end. */
static int32_t root_of(const cnr_plan *plan, int32_t home) {
    while (plan->homes.at[home].alias_of >= 0) home = plan->homes.at[home].alias_of;
    return home;
}

/* At least the number of blobs: slices have one each. */
static int32_t most_blobs(const cnr_plan *plan) {
    int32_t n = 0;
    for (int32_t i = 0; i < plan->steps.n; i++) n += cnr_max(1, plan->steps.at[i].slices);
    return n;
}

/* Lists the memory that a step reads and writes, in bytes; false: out of memory. Numbers of blobs
 * follow those of homes, and workspaces follow blobs. */
static bool uses_of(const cnr_plan *plan, int32_t step, uses *list) {
    const cnri_step *s = &plan->steps.at[step];
    bool good = true;
    list->n = 0;
    if (s->kind != CNRI_STEP_KERNEL) {
        const cnri_home *from = &plan->homes.at[s->from];
        return add(list, root_of(plan, s->from), true, (double)from->bytes) &&
               add(list, root_of(plan, s->to), false, (double)plan->homes.at[s->to].bytes);
    }
    for (int32_t i = 0; i < s->n_in && good; i++)
        if (s->in[i] >= 0 && !cnri_step_prepares(s, i))
            good = add(list, root_of(plan, s->in[i]), true, (double)plan->homes.at[s->in[i]].bytes);
    for (int32_t i = 0; i < s->n_out && good; i++)
        if (s->out[i] >= 0)
            good =
                add(list, root_of(plan, s->out[i]), false, (double)plan->homes.at[s->out[i]].bytes);
    if (good && s->blob >= 0)
        good = add(list, plan->homes.n + s->blob, true,
                   (double)s->blob_space.bytes * cnr_max(1, s->slices));
    if (good && s->workspace_space.bytes)
        good = add(list, plan->homes.n + most_blobs(plan), false, (double)s->workspace_space.bytes);
    return good;
}

/* True if the list holds a use of home `of`. */
static bool used_by(const uses *list, int32_t of) {
    for (int32_t i = 0; i < list->n; i++)
        if (list->at[i].of == of) return true;
    return false;
}

/* True if the cache still holds the memory `u` when step `at` begins: walks back to its last
 * use. `seen`: by memory, the last walk that counted it. */
static bool is_kept(const cnr_plan *plan, const uses *lists, int32_t at, const use *u, double cache,
                    int64_t *seen, int64_t walk) {
    const int32_t n = plan->steps.n, device = plan->steps.at[at].device;
    double between = u->bytes;
    for (int32_t back = 1; back <= n && between <= cache; back++) {
        const int32_t step = (at - back + n) % n;
        if (plan->steps.at[step].device != device) continue;
        if (used_by(&lists[step], u->of)) return true;
        for (int32_t i = 0; i < lists[step].n; i++) {
            const use *other = &lists[step].at[i];
            if (seen[other->of] == walk) continue;
            seen[other->of] = walk;
            between += other->bytes;
        }
    }
    return between <= cache;
}

bool cnri_profile_reads(const cnr_plan *plan, const double *caches, double *out) {
    const int32_t n = plan->steps.n;
    uses *lists = cnri_alloc_zero(((size_t)n + 1) * sizeof *lists);
    int64_t walk = 0;
    int64_t *seen =
        cnri_alloc_zero(((size_t)plan->homes.n + (size_t)most_blobs(plan) + 1) * sizeof *seen);
    bool good = lists && seen;
    for (int32_t i = 0; i < n && good; i++) good = uses_of(plan, i, &lists[i]);
    for (int32_t i = 0; i < n && good; i++) {
        out[i] = 0;
        for (int32_t k = 0; k < lists[i].n; k++) {
            const use *u = &lists[i].at[k];
            if (u->read &&
                !is_kept(plan, lists, i, u, caches[plan->steps.at[i].device], seen, ++walk))
                out[i] += u->bytes;
        }
    }
    for (int32_t i = 0; lists && i < n; i++) cnri_vec_free(&lists[i]);
    cnri_free(lists);
    cnri_free(seen);
    return good;
}
