/* Finds steps on other devices that each step waits for: those that touch the same bytes. */
#include "plan/planner.h"

/* True if two homes overlap in memory. */
static bool touch(const cnr_plan *plan, int32_t a, int32_t b) {
    if (a < 0 || b < 0) return false;
    const cnri_home *x = &plan->homes.at[a], *y = &plan->homes.at[b];
    if (x->storage < 0 && y->storage < 0) return x->value == y->value; /* a weight in host memory */
    if (x->storage != y->storage) return false;
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* Home i that a step reads; -2: there are no more. */
static int32_t reads(const cnri_step *s, int32_t i) {
    return i < s->n_in ? s->in[i] : i == s->n_in ? s->from : -2;
}
/* Home i that a step writes; -2: there are no more. */
static int32_t writes(const cnri_step *s, int32_t i) {
    return i < s->n_out ? s->out[i] : i == s->n_out ? s->to : -2;
}

/* True if a home shares bytes with the step's workspace. */
static bool in_scratch(const cnr_plan *plan, const cnri_step *s, int32_t home) {
    if (home < 0 || s->workspace < 0) return false;
    const cnri_home *h = &plan->homes.at[home];
    return h->storage == s->workspace &&
           h->offset < s->workspace_offset + s->workspace_space.bytes &&
           s->workspace_offset < h->offset + h->bytes;
}

/* True if one of the steps writes bytes that the other touches. */
static bool conflict(const cnr_plan *plan, const cnri_step *a, const cnri_step *b) {
    for (int32_t i = 0, w; (w = writes(a, i)) != -2; i++) {
        for (int32_t k = 0, r; (r = reads(b, k)) != -2; k++)
            if (touch(plan, w, r)) return true;
        for (int32_t k = 0, o; (o = writes(b, k)) != -2; k++)
            if (touch(plan, w, o)) return true;
        if (in_scratch(plan, b, w)) return true;
    }
    for (int32_t i = 0, r; (r = reads(a, i)) != -2; i++) {
        for (int32_t k = 0, w; (w = writes(b, k)) != -2; k++)
            if (touch(plan, r, w)) return true;
        if (in_scratch(plan, b, r)) return true;
    }
    for (int32_t k = 0, w; (w = writes(b, k)) != -2; k++)
        if (in_scratch(plan, a, w)) return true;
    for (int32_t k = 0, r; (r = reads(b, k)) != -2; k++)
        if (in_scratch(plan, a, r)) return true;
    return false;
}

cnr_status cnri_plan_waits(cnri_planner *p, cnr_error *err) {
    cnr_plan *plan = p->plan;
    const int32_t n = plan->n_devices;
    if (n < 2) return CNR_OK;
    /* seen[d * n + e]: index of the last step on device e that device d has waited for */
    int32_t *seen = cnri_alloc((size_t)n * (size_t)n * sizeof *seen);
    if (!seen) return cnri_no_memory(err);
    for (int32_t i = 0; i < n * n; i++) seen[i] = -1;
    for (int32_t t = 0; t < plan->steps.n; t++) {
        cnri_step *step = &plan->steps.at[t];
        for (int32_t d = 0; d < n; d++) {
            if (d == step->device || !cnri_is_async(plan->devices[d])) continue;
            int32_t *known = &seen[step->device * n + d], s = t - 1;
            while (s > *known &&
                   (plan->steps.at[s].device != d || !conflict(plan, &plan->steps.at[s], step)))
                s--;
            if (s <= *known) continue;
            int32_t *grown = cnri_resize(step->waits, (size_t)(step->n_waits + 1) * sizeof *grown);
            if (!grown) {
                cnri_free(seen);
                return cnri_no_memory(err);
            }
            step->waits = grown;
            grown[step->n_waits++] = s;
            plan->steps.at[s].marks = true;
            *known = s;
        }
    }
    cnri_free(seen);
    return CNR_OK;
}
