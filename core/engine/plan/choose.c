/* Chooses node by node: makes the rows, applies the rules, and keeps the row that was picked. */
#include "plan/planner.h"

/* Makes row `i` the part's choice; the part keeps its range. */
static void take(cnri_planner *p, int32_t i, cnri_candidate *part) {
    const cnri_candidate was = *part;
    const cnri_candidate *row = &p->rows.at[i];
    *part = *row;
    part->layout = was.layout;
    part->begin = was.begin;
    part->end = was.end;
    memcpy(part->layout, row->layout, 2 * (size_t)(row->n_in + row->n_out) * sizeof *row->layout);
}

/* Says that neither a kernel nor a reference computes a node on the device. */
static cnr_status none_takes(const cnri_planner *p, const cnri_kernel_query *q, cnr_error *err) {
    return cnri_fail(err, CNR_E_UNSUPPORTED, cnri_node_name(p, q->node),
                     "operator \"%s\" has no reference, and no kernel takes this node on \"%s\"",
                     p->graph->nodes.at[q->node]->view.desc->name,
                     p->plan->devices[q->device]->name);
}

/* Says that a kernel forced by --kernel refuses the node, and why. */
static cnr_status not_as_forced(const cnri_planner *p, const cnri_kernel_query *q, cnr_error *err) {
    return cnri_fail(err, CNR_E_ARG, cnri_node_name(p, q->node),
                     "kernel \"%s\" was asked for but does not take this node%s%s", q->forced_name,
                     p->rows.refusal ? ": " : "", p->rows.refusal ? p->rows.refusal : "");
}

/* The row that the policy picked for the node, if it belongs to this device; else NULL. */
static const cnri_candidate *answer_of(const cnri_planner *p, int32_t node, int32_t device) {
    const cnri_candidate *c = p->answers ? p->answers[node] : NULL;
    return c && c->device == device ? c : NULL;
}

/* Chooses a row for a part. If the device has none, the device with host memory takes it. */
static cnr_status choose_part(cnri_planner *p, cnri_pick *pick, cnri_kernel_query *q,
                              cnri_candidate *part, cnr_error *err) {
    q->policy_row = answer_of(p, q->node, part->device);
    for (int32_t device = part->device;;) {
        cnri_query_set_device(p, q, device);
        char key[CNRI_TUNING_KEY] = "";
        const cnri_rule *rule = cnri_rule_for(q);
        cnr_status status = cnri_tuning_begin(p, &pick->chain, q, key, err);
        if (!status) status = cnri_candidates_make(p, &pick->chain, q, rule, key, err);
        if (status) return status;
        const int32_t i = cnri_rule_pick(&rule, q, &p->rows);
        if (q->policy_row && (i < 0 || p->rows.at[i].kernel != q->policy_row->kernel)) {
            /* Neighbours have other layouts now than in the table: the other rules choose. */
            q->policy_row = NULL;
            continue;
        }
        if (i >= 0) {
            take(p, i, part);
            part->by = rule->name;
            return CNR_OK;
        }
        if (!q->dynamic && q->forced_name && (p->rows.named || q->forced_here) &&
            strcmp(q->forced_name, cnri_reference_name) != 0)
            return not_as_forced(p, q, err);
        if (cnri_is_host(p->plan->devices[q->device])) return none_takes(p, q, err);
        if ((status = cnri_plan_host(p, &device, err)) != CNR_OK) return status;
    }
}

/* Chooses for all parts. *cap: the number of chain operators that all parts compute. */
static cnr_status choose_parts(cnri_planner *p, cnri_pick *pick, int32_t *cap, cnr_error *err) {
    cnri_kernel_query q = cnri_query_of(p, pick->chain.node, pick->axis);
    cnr_status status = CNR_OK;
    *cap = pick->chain.n;
    for (bool agreed = false; !agreed && !status;) {
        int32_t minimum = *cap;
        agreed = true;
        for (int32_t i = 0; i < pick->n_parts && !status; i++) {
            status = cnri_memo_find(p, q.node, i, &q.stored_choice, err);
            if (!status && q.stored_choice && q.stored_choice->n_chain < *cap)
                *cap = minimum = q.stored_choice->n_chain;
            const cnri_candidate *answer = answer_of(p, q.node, pick->parts[i].device);
            if (!status && answer && answer->n_chain < *cap) *cap = minimum = answer->n_chain;
            q.cap = *cap;
            if (!status) status = choose_part(p, pick, &q, &pick->parts[i], err);
            if (!status && q.stored_choice)
                status = cnri_memo_check(p, q.node, q.stored_choice, &pick->parts[i], err);
            if (pick->parts[i].n_chain < minimum) minimum = pick->parts[i].n_chain;
        }
        if (pick->n_parts > 1 && minimum < *cap) agreed = false;
        *cap = minimum;
    }
    return status;
}

/* Records the layouts that later nodes are offered. */
static void keep_offers(cnri_planner *p, const cnri_pick *pick) {
    const cnri_candidate *first = &pick->parts[0];
    for (int32_t i = 0; i < pick->view.n_out; i++)
        p->offers[pick->view.out[i]] =
            (cnri_offer){first->device, cnri_layout(first, CNRI_OUT_BLOCK)[i],
                         cnri_layout(first, CNRI_OUT_CLASS)[i]};
}

/* Allocates the parts and, behind them, layouts wide enough for the longest chain. */
static cnr_status alloc_parts(cnri_planner *p, int32_t node, cnri_pick *pick, cnr_error *err) {
    const size_t n_out = (size_t)p->graph->nodes.at[node]->view.n_outputs;
    const size_t width = 2 * ((size_t)pick->chain.n_in[pick->chain.n] + n_out);
    pick->layouts = cnri_alloc((width * (size_t)pick->n_parts + 1) * sizeof *pick->layouts);
    if (!pick->layouts) return cnri_no_memory(err);
    for (int32_t i = 0; i < pick->n_parts; i++)
        pick->parts[i].layout = pick->layouts + width * (size_t)i;
    return CNR_OK;
}

/* Makes the node's pick from the row of a region that is taken, with copies of its layouts. */
static cnr_status choose_region(cnri_planner *p, const cnri_region *r, cnr_error *err) {
    cnri_pick *pick = &p->picks[r->chain.node];
    const size_t n = 2 * (size_t)(r->row.n_in + r->row.n_out);
    *pick = (cnri_pick){.absorbed_by = -1, .n_parts = 1, .axis = -1, .chain = r->chain};
    pick->parts = cnri_alloc(sizeof *pick->parts);
    pick->layouts = cnri_alloc((n + 1) * sizeof *pick->layouts);
    if (!pick->parts || !pick->layouts) return cnri_no_memory(err);
    pick->parts[0] = r->row;
    pick->parts[0].by = r->taken;
    pick->parts[0].layout = memcpy(pick->layouts, r->row.layout, n * sizeof *pick->layouts);
    pick->view = cnri_view_of(p, &pick->chain, pick->chain.n, false);
    keep_offers(p, pick);
    return cnri_memo_keep(p, r->chain.node, err);
}

/* Chooses device, parts, chain and kernel of one node. */
static cnr_status choose_node(cnri_planner *p, int32_t node, cnr_error *err) {
    cnri_pick *pick = &p->picks[node];
    const cnri_region *region = cnri_region_at(p, node);
    int32_t cap = 0;
    if (region) return choose_region(p, region, err);
    cnr_status status = cnri_plan_parts(p, node, pick, err);
    if (!status) status = cnri_chain_make(p, node, &pick->chain, err);
    if (!status) status = alloc_parts(p, node, pick, err);
    if (!status) status = choose_parts(p, pick, &cap, err);
    if (status) return status;
    pick->view = cnri_view_of(p, &pick->chain, cap, false);
    for (int32_t i = 0; i < cap; i++) p->picks[pick->chain.at[i]].absorbed_by = node;
    keep_offers(p, pick);
    return cnri_memo_keep(p, node, err);
}

/* Finds for each value the only node that reads it; -1: several, or it is an output. */
static void find_only_users(cnri_planner *p) {
    const cnr_graph *g = p->graph;
    for (int32_t v = 0; v < p->n_offers; v++) p->only_user[v] = -2;
    for (int32_t i = 0; i < g->nodes.n; i++)
        for (int32_t k = 0; k < g->nodes.at[i]->view.n_inputs; k++) {
            const cnr_value v = g->nodes.at[i]->in[k];
            if (v >= 0) p->only_user[v] = p->only_user[v] == -2 ? i : -1;
        }
    for (int32_t i = 0; i < g->outputs.n; i++) p->only_user[g->outputs.at[i]] = -1;
}

void cnri_choices_drop(cnri_planner *p) {
    for (int32_t i = 0; i < p->n_picks && p->picks; i++) {
        cnri_free(p->picks[i].parts);
        cnri_free(p->picks[i].layouts);
        cnri_chain_free(&p->picks[i].chain);
    }
    cnri_free(p->picks);
    cnri_free(p->offers);
    cnri_free(p->only_user);
    p->picks = NULL;
    p->offers = NULL;
    p->only_user = NULL;
    p->n_picks = 0;
}

cnr_status cnri_plan_choose(cnri_planner *p, cnr_error *err) {
    const cnr_graph *g = p->graph;
    p->n_offers = g->values.n;
    p->n_picks = g->nodes.n;
    p->plan->decisions.n = 0;
    p->offers = cnri_alloc_zero((size_t)(g->values.n + 1) * sizeof *p->offers);
    p->only_user = cnri_alloc((size_t)(g->values.n + 1) * sizeof *p->only_user);
    p->picks = cnri_alloc_zero((size_t)(g->nodes.n + 1) * sizeof *p->picks);
    if (!p->offers || !p->only_user || !p->picks) return cnri_no_memory(err);
    for (int32_t v = 0; v < p->n_offers; v++) p->offers[v].device = -1;
    for (int32_t i = 0; i < p->n_picks; i++) p->picks[i].absorbed_by = -1;
    find_only_users(p);
    for (int32_t i = 0; i < p->n_picks; i++) { /* other nodes compute no node of a region */
        const cnri_region *r = cnri_region_at(p, i);
        for (int32_t k = 0; r && k < r->chain.n; k++) p->picks[r->chain.at[k]].absorbed_by = i;
    }
    for (int32_t i = 0; i < p->n_picks; i++) {
        if (p->picks[i].absorbed_by >= 0) continue;
        const cnr_status status = choose_node(p, i, err);
        if (status) return status;
    }
    return CNR_OK;
}
