/* Memos: a plan notes its decisions, and another process plans by them. keep/memo.c of common
 * writes and reads them as text. */
#include "plan/planner.h"

cnr_status cnri_memo_keep(cnri_planner *p, int32_t node, cnr_error *err) {
    const cnri_pick *pick = &p->picks[node];
    for (int32_t i = 0; i < pick->n_parts; i++) {
        const cnri_candidate *c = &pick->parts[i];
        cnri_decision *d = cnri_push(&p->plan->decisions);
        if (!d) return cnri_no_memory(err);
        *d = (cnri_decision){.node = node, .part = i, .n_chain = c->n_chain, .way = c->way};
        d->device = p->plan->devices[c->device]->name;
        d->kernel = c->kernel ? c->kernel->name : "";
        d->version = c->kernel ? c->kernel->version : 0;
    }
    return CNR_OK;
}

/* ---- following ---- */

void cnri_memo_place(cnri_planner *p) {
    const cnri_memo *memo = p->options->memo;
    for (int32_t i = 0; memo && i < memo->placed.n; i++) {
        const cnri_placed *placed = &memo->placed.at[i];
        if (placed->node < p->graph->nodes.n) p->wish[placed->node] = &placed->where;
    }
}

cnr_status cnri_memo_find(cnri_planner *p, int32_t node, int32_t part, const cnri_decision **out,
                          cnr_error *err) {
    const cnri_memo *memo = p->options->memo;
    const cnri_decision want = {.node = node, .part = part};
    *out = NULL;
    if (!memo) return CNR_OK;
    int32_t low = 0, high = memo->decisions.n;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (cnri_decides_before(&memo->decisions.at[middle], &want)) low = middle + 1;
        else high = middle;
    }
    const cnri_decision *d = low < memo->decisions.n ? &memo->decisions.at[low] : NULL;
    if (!d || d->node != node || d->part != part)
        return cnri_fail(err, CNR_E_VERSION, cnri_node_name(p, node),
                         "nothing is stored of this node");
    *out = d;
    return CNR_OK;
}

cnr_status cnri_memo_check(const cnri_planner *p, int32_t node, const cnri_decision *d,
                           const cnri_candidate *c, cnr_error *err) {
    const char *device = p->plan->devices[c->device]->name;
    const char *kernel = c->kernel ? c->kernel->name : "";
    if (strcmp(device, d->device) != 0 || strcmp(kernel, d->kernel) != 0 ||
        c->n_chain != d->n_chain)
        return cnri_fail(err, CNR_E_VERSION, cnri_node_name(p, node),
                         "kernel \"%s\" on %s no longer takes this node", d->kernel, d->device);
    if (c->kernel && c->kernel->version != d->version)
        return cnri_fail(err, CNR_E_VERSION, cnri_node_name(p, node),
                         "kernel \"%s\" is of version %u, stored for %u", d->kernel,
                         (unsigned)c->kernel->version, (unsigned)d->version);
    return CNR_OK;
}
