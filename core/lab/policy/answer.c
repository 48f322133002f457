/* A policy's answer for a whole net: asks the policy, checks the answer, and turns it into
 * placements and rows of the planner. */
#include "policy/rows.h"

/* ---- checking ---- */

/* Fills err with what is wrong in a policy's answer for a node. */
static cnr_status wrong(const cnri_planner *p, int32_t node, cnr_error *err, const char *format,
                        const char *what) {
    char text[256];
    const cnri_table_node *n = &p->plan->table->nodes.at[node];
    snprintf(text, sizeof text, format, what);
    return cnri_fail(err, CNR_E_ARG, p->options->policy->where, "its answer for \"%s\": %s",
                     n->name, text);
}

/* The axis to split along, of the bits in `axes`: the wanted one, -1 if it is not possible; if
 * wanted < 0, channels, else the first possible. */
static int32_t axis_of(uint32_t axes, int32_t wanted) {
    if (wanted < 0) return cnri_default_axis(axes);
    return wanted < 32 && axes >> wanted & 1 ? wanted : -1;
}

/* Fails unless the shares of a split are 0 or more and 1 in all, and the node can be split at
 * a->axis, which becomes an axis's index. */
static cnr_status check_split(const cnri_planner *p, int32_t node, cnri_policy_answer *a,
                              cnr_error *err) {
    double sum = 0;
    for (int32_t i = 0; i < a->n_parts; i++) {
        if (!(a->parts[i].ratio >= 0)) return wrong(p, node, err, "%s", "want shares from 0 to 1");
        sum += a->parts[i].ratio;
    }
    if (!(sum > 0.999 && sum < 1.001))
        return wrong(p, node, err, "%s", "want shares that are 1 in all");
    a->axis = axis_of(p->plan->table->nodes.at[node].axes, a->axis);
    return a->axis >= 0 ? CNR_OK : wrong(p, node, err, "%s", "it can't be split so");
}

/* Checks a policy's answer for a node: a row of that node, or known devices with shares. */
static cnr_status check(const cnri_planner *p, int32_t node, cnri_policy_answer *a,
                        cnr_error *err) {
    const cnri_table *t = p->plan->table;
    if (a->row >= t->rows.n || (a->row >= 0 && t->rows.at[a->row].node != node))
        return wrong(p, node, err, "%s", "that is a row of another node");
    if (a->row >= 0) return CNR_OK;
    for (int32_t i = 0; i < a->n_parts; i++) {
        int32_t d = 0;
        while (d < t->devices.n && strcmp(t->devices.at[d].name, a->parts[i].device) != 0) d++;
        if (d == t->devices.n)
            return wrong(p, node, err, "there are no rows of device \"%s\"", a->parts[i].device);
    }
    return a->n_parts > 1 ? check_split(p, node, a, err) : CNR_OK;
}

/* ---- following ---- */

/* Returns the number of the placement with these parts, a new one if need be; negative: no memory.
 * Nodes on one device share a placement, so that one kernel can compute several of them. */
static int32_t place_on(cnr_plan *plan, const cnri_part *parts, int32_t n, int32_t axis) {
    for (int32_t i = 0; i < plan->placed.n && n == 1; i++)
        if (plan->placed.at[i].n_parts == 1 &&
            strcmp(plan->placed.at[i].parts[0].device, parts[0].device) == 0)
            return i;
    cnri_placement *to = cnri_push(&plan->placed);
    if (!to) return -1;
    *to = (cnri_placement){.n_parts = n,
                           .axis = axis,
                           .parts = cnri_alloc((size_t)n * sizeof *parts)};
    if (!to->parts) return -1;
    memcpy(to->parts, parts, (size_t)n * sizeof *parts);
    return plan->placed.n - 1;
}

/* Places the nodes that a row computes together on the device of its first node. */
static cnr_status cover(cnri_planner *p, int32_t node, int32_t n_chain, cnr_error *err) {
    const cnri_region *region = cnri_region_of(p, p->answers[node]);
    cnri_chain own = region ? region->chain : (cnri_chain){0}, *chain = &own;
    cnr_status status = CNR_OK;
    if (!region) status = cnri_chain_make(p, node, &own, err);
    for (int32_t i = 0; i < n_chain && i < chain->n && !status; i++) {
        p->plan->placed_as[chain->at[i]] = p->plan->placed_as[node];
        p->answers[chain->at[i]] = NULL;
    }
    cnri_chain_free(&own);
    return status;
}

/* Turns a policy's answer for a node into its placement and wanted kernel. */
static cnr_status follow(cnri_planner *p, int32_t node, const cnri_policy_answer *a,
                         cnr_error *err) {
    cnr_plan *plan = p->plan;
    const cnri_table *t = plan->table;
    cnri_part alone = {.ratio = 1};
    if (a->row >= 0)
        snprintf(alone.device, sizeof alone.device, "%s",
                 t->devices.at[t->rows.at[a->row].device].name);
    plan->placed_as[node] = a->row >= 0
                                ? place_on(plan, &alone, 1, 0)
                                : place_on(plan, a->parts, a->n_parts, a->axis < 0 ? 0 : a->axis);
    if (plan->placed_as[node] < 0) return cnri_no_memory(err);
    if (a->row < 0) return CNR_OK;
    p->answers[node] = &t->kept->at.at[a->row];
    return cover(p, node, p->answers[node]->n_chain, err);
}

/* Places nodes that the policy did not answer, and that were computed together with a moved
 * node, where that node goes. */
static void bring_along(cnri_planner *p, const cnri_policy_answer *answers) {
    for (int32_t i = 0; i < p->n_picks; i++) {
        const int32_t by = p->picks[i].absorbed_by;
        if (by < 0 || answers[i].row >= 0 || answers[i].n_parts > 0) continue;
        if (p->plan->placed_as[i] < 0 && !p->wish[i])
            p->plan->placed_as[i] = p->plan->placed_as[by];
    }
}

/* True if the policy answered otherwise for one of the region's nodes. */
static bool is_answered(const cnri_planner *p, const cnri_region *r) {
    for (int32_t i = -1; i < r->chain.n; i++)
        if (p->plan->placed_as[i < 0 ? r->chain.node : r->chain.at[i]] >= 0) return true;
    return false;
}

/* After the policy answered: takes the regions whose rows it picked, and leaves those whose nodes
 * it answered otherwise. */
static void follow_in_regions(cnri_planner *p) {
    for (int32_t i = 0; p->plan->regions && i < p->plan->regions->at.n; i++) {
        cnri_region *r = &p->plan->regions->at.at[i];
        const bool picked = cnri_region_of(p, p->answers[r->chain.node]) == r;
        if (picked) p->answers[r->chain.node] = NULL;
        if (picked) r->taken = "policy";
        else if (is_answered(p, r)) r->taken = NULL;
    }
}

/* Checks all answers of a policy and follows them. */
static cnr_status take(cnri_planner *p, cnri_policy_answer *answers, cnr_error *err) {
    const int32_t n = p->graph->nodes.n;
    cnr_status status = CNR_OK;
    p->plan->placed_as = cnri_alloc(((size_t)n + 1) * sizeof *p->plan->placed_as);
    p->answers = cnri_alloc_zero(((size_t)n + 1) * sizeof *p->answers);
    if (!p->plan->placed_as || !p->answers) return cnri_no_memory(err);
    for (int32_t i = 0; i < n; i++) p->plan->placed_as[i] = -1;
    for (int32_t i = 0; i < n && !status; i++) {
        const bool given = answers[i].row >= 0 || answers[i].n_parts > 0;
        if (!given) continue;
        status = check(p, i, &answers[i], err);
        /* Placed by the user, or together with another node. */
        if (status || p->wish[i] || p->plan->placed_as[i] >= 0) continue;
        status = follow(p, i, &answers[i], err);
    }
    if (status) return status;
    bring_along(p, answers);
    follow_in_regions(p);
    for (int32_t i = 0; i < n; i++)
        if (p->plan->placed_as[i] >= 0 && !p->wish[i])
            p->wish[i] = &p->plan->placed.at[p->plan->placed_as[i]];
        else p->plan->placed_as[i] = -1;
    return CNR_OK;
}

/* Asks the policy about all nodes and places them as it answers; an answer that is wrong fails. */
static cnr_status take_answer(cnri_planner *p, cnr_error *err) {
    cnri_policy *policy = p->options->policy;
    cnri_table *t = p->plan->table;
    cnri_policy_answer *answers = cnri_alloc_zero(((size_t)t->nodes.n + 1) * sizeof *answers);
    if (!answers) return cnri_no_memory(err);
    for (int32_t i = 0; i < t->nodes.n; i++) answers[i].row = answers[i].axis = -1;
    t->policy = policy->name;
    cnr_status status = policy->place(policy, t, answers, &t->notes, err);
    if (!status) status = take(p, answers, err);
    cnri_free(answers);
    return status;
}

/* Returns to the placements from before the answer. */
static void drop(cnri_planner *p) {
    cnr_plan *plan = p->plan;
    for (int32_t i = 0; plan->placed_as && p->wish && i < p->graph->nodes.n; i++)
        for (int32_t k = 0; k < plan->placed.n; k++)
            if (p->wish[i] == &plan->placed.at[k]) p->wish[i] = NULL;
    cnri_plan_unplace(plan);
    cnri_free((void *)p->answers);
    p->answers = NULL;
    cnri_regions_reset(p);
}

/* Plans without the policy after it failed, and logs the failure once for each policy. */
static cnr_status fall_back(cnri_planner *p, const cnr_error *why, cnr_error *err) {
    cnri_policy *policy = p->options->policy;
    drop(p);
    p->plan->policy_failed = true;
    p->plan->table->failure = cnri_format("%s: %s", why->where, why->text);
    if (!p->plan->table->failure) return cnri_no_memory(err);
    if (!atomic_exchange(&policy->reported, true))
        cnri_log(CNR_LOG_WARN, "policy", "%s; the default plan stands", p->plan->table->failure);
    if (p->picks) return CNR_OK; /* the choices made before the answer still stand */
    return cnri_plan_choose(p, err);
}

cnr_status cnri_policy_ask(cnri_planner *p, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    cnr_status status = take_answer(p, &why);
    if (!status && p->plan->placed.n > 0) {
        cnri_choices_drop(p);
        status = cnri_plan_choose(p, &why);
        if (status && status != CNR_E_MEMORY) cnri_choices_drop(p);
    }
    if (status == CNR_E_MEMORY) return cnri_no_memory(err);
    return status ? fall_back(p, &why, err) : CNR_OK;
}
