/* Which weights stay in memory under a bound: the largest, as far as there is room. */
#include "plan/residency.h"

/* What takes room under a bound: a blob, or a weight that is read as it is. */
typedef struct item {
    uint64_t bytes, passing,
        making; /* passing: if it does not stay; making: besides, for a while */
    bool *stays, seen;
    int32_t step;
} item;

uint64_t cnri_blob_making(const cnr_plan *plan, const cnri_blob *b) {
    const cnri_step *s = &plan->steps.at[b->step];
    uint64_t bytes = 0;
    if (b->kept) return 0;
    for (int32_t k = 0; k < s->n_in; k++) {
        const cnr_value v = s->in[k] < 0 ? -1 : plan->homes.at[s->in[k]].value;
        if (v < 0 || !cnri_step_prepares(s, k) || !cnri_is_weight(plan->graph, v)) continue;
        const cnri_late *late = plan->graph->values.at[v].late;
        const cnr_value from = late ? late->from : v;
        const uint64_t parts = s->slices ? (uint64_t)s->slices : 1;
        const uint64_t own = plan->graph->values.at[v].type->bytes / parts;
        const uint64_t read = plan->graph->values.at[from].type->bytes / parts;
        if (late) bytes += own;
        if (late || cnri_value_in_file(plan->graph, from)) bytes += read;
    }
    return bytes;
}

/* Lists prepared and unprepared weights with their bytes and the time to make them; NULL: out of
 * memory. */
static item *list_items(cnr_plan *plan) {
    struct cnri_residency *r = plan->residency;
    item *list = cnri_alloc_zero(((size_t)r->blobs.n + (size_t)plan->raw.n + 1) * sizeof *list);
    for (int32_t i = 0; list && i < r->blobs.n; i++) {
        cnri_blob *b = &r->blobs.at[i];
        list[i] = (item){b->bytes, b->bytes, cnri_blob_making(plan, b), &b->stays, false, b->step};
    }
    for (int32_t i = 0; list && i < plan->raw.n; i++) {
        cnri_raw *raw = &plan->raw.at[i];
        list[r->blobs.n + i] = (item){raw->bytes, raw->passing, 0, &raw->stays, false, raw->step};
    }
    return list;
}

/* The item that needs the most bytes while it is made and used, beside those that stay, if `but`
 * stays, too; *bytes: how many. NULL: n is 0. */
static const item *most_passing(const item *list, int32_t n, const item *but, uint64_t *bytes) {
    const item *most = NULL;
    *bytes = 0;
    for (int32_t i = 0; i < n; i++) {
        const bool stays = &list[i] == but || *list[i].stays;
        const uint64_t own = list[i].making + (stays ? 0 : list[i].passing);
        if (most && own <= *bytes) continue;
        most = &list[i];
        *bytes = own;
    }
    return most;
}

/* Each stays if the most of what comes and goes still fits beside: blobs first, since packing takes
 * longer than reading; of these and of the others from the largest down. */
static void take_costly(item *list, int32_t n, int32_t n_blobs, uint64_t room) {
    uint64_t sum = 0, rest;
    for (int32_t turn = 0; turn < n; turn++) {
        const int32_t first = turn < n_blobs ? 0 : n_blobs, end = turn < n_blobs ? n_blobs : n;
        item *b = NULL;
        for (int32_t i = first; i < end; i++)
            if (!list[i].seen && (!b || list[i].bytes > b->bytes)) b = &list[i];
        b->seen = true;
        (void)most_passing(list, n, b, &rest);
        if (sum + b->bytes + rest > room) continue;
        *b->stays = true;
        sum += b->bytes;
    }
}

/* Bytes that stay in memory whatever the bound: values between steps, and weights that others were
 * folded into, so that they lie in no file, and that a step reads as they are. */
static uint64_t always(const cnr_plan *plan) {
    uint64_t bytes = plan->arena_bytes;
    for (cnr_value v = 0; v < plan->graph->values.n; v++)
        if (plan->graph->values.at[v].was_late && cnri_residency_reads(plan, v))
            bytes += plan->graph->values.at[v].type->bytes;
    return bytes;
}

/* plan->residency->room becomes what blobs may take beside weights that are read as they are. */
static cnr_status fit(cnr_plan *plan, item *list, int32_t n, cnr_error *err) {
    const uint64_t held = always(plan);
    uint64_t needed, room = plan->memory_bound;
    const item *most = most_passing(list, n, NULL, &needed);
    if (plan->memory_bound < held + needed)
        return cnri_fail(err, CNR_E_LIMIT, most ? plan->steps.at[most->step].view.name : "plan",
                         "a memory bound of %llu bytes is too small: values between steps take "
                         "%llu bytes, folded weights %llu, and the weights of this node %llu, so "
                         "want at least %llu",
                         (unsigned long long)plan->memory_bound,
                         (unsigned long long)plan->arena_bytes,
                         (unsigned long long)(held - plan->arena_bytes), (unsigned long long)needed,
                         (unsigned long long)(held + needed));
    room -= held;
    /* Where weights come and go, the system maps more of a file than is read. */
    const int32_t n_blobs = plan->residency->blobs.n;
    uint64_t all = 0, around = 0;
    for (int32_t i = 0; i < n; i++) {
        all += list[i].bytes;
        if (i >= n_blobs || list[i].making)
            around = cnr_min(plan->memory_bound / 8, (uint64_t)2 << 20);
    }
    if (all > room && around) room = room - needed > around ? room - around : needed;
    uint64_t raw = 0, most_raw = 0, blobs = 0, most_blob = 0, making = 0, passing = 0;
    take_costly(list, n, n_blobs, room);
    for (int32_t i = 0; i < n; i++) {
        uint64_t *sum = i < n_blobs ? &blobs : &raw,
                 *largest = i < n_blobs ? &most_blob : &most_raw;
        const uint64_t own = list[i].making + (*list[i].stays ? 0 : list[i].passing);
        if (*list[i].stays) *sum += list[i].bytes;
        if (own > *largest) *largest = own;
        if (i < n_blobs && list[i].making > making) making = list[i].making;
        if (i < n_blobs && !*list[i].stays && list[i].passing > passing) passing = list[i].passing;
    }
    /* beside pieces of weights that come and go, but for the blob that needs all */
    const uint64_t beside = room - raw > most_raw ? room - raw - most_raw : 0;
    plan->residency->room = beside > blobs + most_blob ? beside : blobs + most_blob;
    plan->residency->slot = blobs + making + passing <= plan->residency->room ? passing : 0;
    return CNR_OK;
}

cnr_status cnri_residency_choose(cnr_plan *plan, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    for (int32_t i = 0; i < r->blobs.n; i++) r->blobs.at[i].stays = !plan->memory_bound;
    if (!plan->memory_bound) return CNR_OK;
    item *list = list_items(plan);
    if (!list) return cnri_no_memory(err);
    for (int32_t i = 0; i < plan->raw.n; i++) plan->raw.at[i].stays = false;
    const cnr_status status = fit(plan, list, r->blobs.n + plan->raw.n, err);
    cnri_free(list);
    return status;
}

int32_t cnri_residency_list(const cnr_plan *plan, cnri_resident **out) {
    item *list = plan->memory_bound ? list_items((cnr_plan *)(uintptr_t)plan) : NULL;
    const int32_t blobs = list ? plan->residency->blobs.n : 0, n = list ? blobs + plan->raw.n : 0;
    *out = list ? cnri_alloc_zero(((size_t)n + 1) * sizeof **out) : NULL;
    for (int32_t i = 0; *out && i < n; i++) {
        const item *x = &list[i];
        const char *how = *x->stays               ? "stay"
                          : x->passing < x->bytes ? "come in pieces"
                          : i < blobs             ? "come and go"
                                                  : "are read and released";
        (*out)[i] = (cnri_resident){plan->steps.at[x->step].view.name, how, x->bytes, x->passing};
    }
    cnri_free(list);
    return *out ? n : 0;
}
