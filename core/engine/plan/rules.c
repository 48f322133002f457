/* Selects the kernel for a node. Rules are tried in order; the first that applies decides. Each is
 * a pure function of the rows. */
#include "plan/planner.h"

bool cnri_kernel_only_forced(const cnr_kernel *k) {
    return CNRI_HAS(k, flags) && k->flags & CNR_KERNEL_BY_NAME_ONLY;
}

bool cnri_kernel_storage_allowed(const cnri_kernel_query *q, const cnr_kernel *k) {
    const uint32_t asked = CNRI_KERNEL_PRECISIONS;
    const uint32_t stores = CNRI_HAS(k, flags) ? k->flags & asked : 0;
    return (stores & ~q->stores) == 0;
}

bool cnri_kernel_drives(const cnr_kernel *k, const cnr_device *device) {
    return strcmp(k->device, device->cls->name) == 0 || strcmp(k->device, device->cls->family) == 0;
}

/* ---- what rules are made of ---- */

/* Applies to every query. */
static bool applies_always(const cnri_kernel_query *q) {
    (void)q;
    return true;
}

/* True for kernels that may be chosen without being named. */
static bool is_default_candidate(const cnri_kernel_query *q, const cnr_kernel *k) {
    return !cnri_kernel_only_forced(k) && cnri_kernel_storage_allowed(q, k);
}

/* True if a is the better row: by less time if both times are known, or if one is known and
 * below the other's guess; else by the higher score; else by the longer chain. */
static bool is_better(const cnri_candidate *a, const cnri_candidate *b) {
    if (!a->score || !b->score) return a->score > b->score; /* the reference comes last */
    const double x = a->cost.ns + a->around_ns, y = b->cost.ns + b->around_ns;
    if (a->cost.ns > 0 && b->cost.ns > 0 && x != y) return x < y;
    if (a->cost.ns > 0 && b->cost.ns <= 0 && x < b->guess_ns) return true;
    if (b->cost.ns > 0 && a->cost.ns <= 0 && y < a->guess_ns) return false;
    if (a->score != b->score) return a->score > b->score;
    return a->n_chain > b->n_chain;
}

/* True if the candidate stores weights in the requested 16-bit type and reads the original weights.
 * Rows of types that were not requested are not made. */
static bool honours_requested_precision(const cnri_candidate *c) {
    return c->kernel && CNRI_HAS(c->kernel, flags) && !c->dense &&
           c->kernel->flags & CNRI_KERNEL_PRECISIONS;
}

/* Number of the best row among those whose time comes from min_source or a surer source; -1: none.
 * Rows that honour the requested precision go first. */
static int32_t best_row(const cnri_rows *rows, cnri_source min_source) {
    int32_t found = -1;
    bool requested = false;
    for (int32_t i = 0; i < rows->n; i++)
        requested = requested || honours_requested_precision(&rows->at[i]);
    for (int32_t i = 0; i < rows->n; i++) {
        const cnri_candidate *c = &rows->at[i];
        if (requested && !honours_requested_precision(c)) continue;
        if (min_source > CNRI_GUESSED && (c->cost.from < min_source || !c->kernel)) continue;
        if (found < 0 || is_better(c, &rows->at[found])) found = i;
    }
    return found;
}

/* The row with the best score, from whatever source; -1: none. */
static int32_t by_score(const cnri_kernel_query *q, const cnri_rows *rows) {
    (void)q;
    return best_row(rows, CNRI_GUESSED);
}

/* ---- by a stored plan: only the row that it stored is made ---- */

static bool is_stored(const cnri_kernel_query *q) { return q->stored_choice != NULL; }

/* True for the kernel of a stored choice. */
static bool wants_stored(const cnri_kernel_query *q, const cnr_kernel *k) {
    return strcmp(k->name, q->stored_choice->kernel) == 0;
}

/* ---- inputs whose sizes are only known at run time: kernels are made for sizes ---- */

static bool is_dynamic(const cnri_kernel_query *q) { return q->dynamic; }

/* True for no kernel: the reference is wanted. */
static bool wants_none(const cnri_kernel_query *q, const cnr_kernel *k) {
    (void)q;
    (void)k;
    return false;
}

/* ---- forced by name ---- */

static bool is_forced(const cnri_kernel_query *q) { return q->forced_name != NULL; }

/* True if the kernel has the name that was forced. */
static bool wants_forced(const cnri_kernel_query *q, const cnr_kernel *k) {
    return strcmp(k->name, q->forced_name) == 0;
}

/* The best row with the forced kernel. -1 if that is the reference, unless it was forced itself, or
 * this device has no kernel of the name and the options name just the operator. */
static int32_t by_force(const cnri_kernel_query *q, const cnri_rows *rows) {
    const int32_t i = best_row(rows, CNRI_GUESSED);
    const bool reference = strcmp(q->forced_name, cnri_reference_name) == 0;
    if (i < 0 || rows->at[i].kernel || reference) return i;
    return rows->named || q->forced_here ? -1 : i;
}

/* ---- by a policy: its row; if layouts of neighbours changed since, the best of its kernel ---- */

static bool is_answered(const cnri_kernel_query *q) { return q->policy_row != NULL; }

/* True for the kernel that the policy chose. */
static bool wants_answered(const cnri_kernel_query *q, const cnr_kernel *k) {
    return k == q->policy_row->kernel;
}

/* True if two candidates have the same layouts. */
static bool same_layouts(const cnri_candidate *a, const cnri_candidate *b) {
    return a->n_chain == b->n_chain && a->n_in == b->n_in && a->n_out == b->n_out &&
           memcmp(a->layout, b->layout, 2 * (size_t)(a->n_in + a->n_out) * sizeof *a->layout) == 0;
}

/* The row of the policy's kernel with its layouts; else the best; -1: none. */
static int32_t by_answer(const cnri_kernel_query *q, const cnri_rows *rows) {
    for (int32_t i = 0; i < rows->n; i++)
        if (rows->at[i].kernel == q->policy_row->kernel &&
            same_layouts(&rows->at[i], q->policy_row))
            return i;
    return best_row(rows, CNRI_GUESSED);
}

/* ---- by the record, by score ---- */

static bool is_untimed(const cnri_kernel_query *q) { return q->ignores_times; }

/* The row with the best measured time; -1: none is measured. */
static int32_t by_record(const cnri_kernel_query *q, const cnri_rows *rows) {
    (void)q;
    return best_row(rows, CNRI_MEASURED);
}

static const cnri_rule rules[] = {
    {"stored", is_stored, wants_stored, by_score},
    {"dynamic", is_dynamic, wants_none, by_score},
    {"forced", is_forced, wants_forced, by_force},
    {"policy", is_answered, wants_answered, by_answer},
    {"deterministic", is_untimed, is_default_candidate, by_score},
    {"record", applies_always, is_default_candidate, by_record}, /* if the record has times */
    {"score", applies_always, is_default_candidate, by_score},
};

const cnri_rule *cnri_rule_for(const cnri_kernel_query *q) {
    const cnri_rule *rule = rules;
    while (!rule->applies(q)) rule++;
    return rule;
}

int32_t cnri_rule_pick(const cnri_rule **rule, const cnri_kernel_query *q, const cnri_rows *rows) {
    const int32_t i = (*rule)->pick(q, rows);
    if (i >= 0 || (*rule)->pick != by_record) return i;
    return (++*rule)->pick(q, rows);
}

/* ---- what they are asked ---- */

/* The kernel that the options force under this name (of a node or operator), for this device if
 * they name one; NULL: none. */
static const char *forced_as(const cnri_planner *p, const char *name, const char *device) {
    const size_t n = strlen(name), m = strlen(device);
    const char *anywhere = NULL;
    for (const char *const *k = p->options->kernels; k && *k; k++) {
        const char *at = *k + n;
        if (strncmp(*k, name, n) != 0) continue;
        if (*at == '=' && !anywhere) anywhere = at + 1;
        if (m && *at == '@' && strncmp(at + 1, device, m) == 0 && at[m + 1] == '=')
            return at + m + 2;
    }
    return anywhere;
}

/* Finds the kernel forced for the node or its operator on a device. */
static void force(const cnri_planner *p, cnri_kernel_query *q, const char *device) {
    q->forced_name = forced_as(p, cnri_node_name(p, q->node), device);
    q->forced_here = q->forced_name != NULL;
    if (!q->forced_name)
        q->forced_name = forced_as(p, p->graph->nodes.at[q->node]->view.desc->name, device);
    if (!q->forced_name) q->forced_name = forced_as(p, "*", device);
    if (q->forced_name && !*q->forced_name) q->forced_name = NULL; /* "*=": none is forced */
}

cnri_kernel_query cnri_query_of(const cnri_planner *p, int32_t node, int32_t axis) {
    const cnri_node *n = p->graph->nodes.at[node];
    cnri_kernel_query q = {.node = node,
                           .axis = axis,
                           .ignores_times = p->options->deterministic,
                           .stores = p->options->stores};
    force(p, &q, "");
    for (int32_t i = 0; i < n->view.n_inputs; i++)
        if (n->view.inputs[i] && (n->view.inputs[i]->flags & CNR_TENSOR_DYNAMIC)) q.dynamic = true;
    return q;
}

void cnri_query_set_device(const cnri_planner *p, cnri_kernel_query *q, int32_t device) {
    q->device = device;
    force(p, q, p->plan->devices[device]->name);
}
