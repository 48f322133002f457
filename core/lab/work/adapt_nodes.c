/* Kernels in online tuning: chooses the kernels to try, takes the time of each node with them, and
 * finds the fastest of each node. */
#include "work/adapt.h"
#include <math.h>

typedef cnri_adapt_way way;
typedef cnri_adapt_node node;

/* Returns an interned copy. */
static const char *keep(const char *text) { return cnri_name(cnri_intern(text)); }

/* Index into a->nodes of the step that computes this node; -1: none. */
static int32_t find_node(const cnri_adapt *a, const char *name) {
    return (int32_t)(intptr_t)cnri_map_get(&a->node_of, name) - 1;
}

void cnri_adapt_free_nodes(cnri_adapt *a) {
    for (int32_t i = 0; i < a->nodes.n; i++) cnri_vec_free(&a->nodes.at[i].choices);
    cnri_vec_free(&a->nodes);
    cnri_map_free(&a->node_of);
}

/* ---- times of a plan's steps, by node of the default plan ---- */

/* The node whose kernel reads the output of a layout conversion or copy; -1: none. */
static int32_t reader_of(const cnri_adapt *a, const cnr_plan *plan, int32_t step) {
    const int32_t home = plan->steps.at[step].to;
    for (int32_t i = step + 1; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL) {
            if (s->from == home) return reader_of(a, plan, i);
            continue;
        }
        for (int32_t k = 0; k < s->n_in; k++)
            if (s->in[k] == home) return find_node(a, cnri_step_names_of(plan, i).node);
    }
    return -1;
}

/* Sums the default times, in ns, of the nodes that this step fuses and the default plan computes in
 * steps of their own. */
static double also_computed(const cnri_adapt *a, const cnri_step *s, int32_t own) {
    double ns = 0;
    for (int32_t i = 0; i < cnri_n_taken(&s->view); i++) {
        const cnr_node *taken = cnri_taken(&s->view, i);
        const int32_t other = taken->name ? find_node(a, taken->name) : -1;
        if (other >= 0 && other != own && strcmp(a->nodes.at[other].name, taken->name) == 0)
            ns += a->nodes.at[other].ns;
    }
    return ns;
}

/* Adds the least time of each step, in ns, to that of its node. A node with a step that never ran
 * gets NaN. */
static void sum_steps(const cnri_adapt *a, const way *w, double *ns) {
    for (int32_t i = 0; i < w->plan->steps.n; i++) {
        const cnri_step *s = &w->plan->steps.at[i];
        const cnri_step_time t = cnri_profile_of(w->profile, i);
        const bool kernel = s->kind == CNRI_STEP_KERNEL;
        const int32_t at =
            kernel ? find_node(a, cnri_step_names_of(w->plan, i).node) : reader_of(a, w->plan, i);
        if (at < 0) continue;
        const double more = t.runs ? (double)t.least_ns : (double)NAN;
        ns[at] += kernel ? fmax(more - also_computed(a, s, at), more * 0.01) : more;
    }
}

/* ---- the default plan ---- */

/* Lists the nodes that kernels of the default plan compute, each once, with operator and device. */
static cnr_status add_nodes(cnri_adapt *a, cnr_error *err) {
    const cnr_plan *plan = a->ways.at[0]->plan;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        const cnri_step_names names = cnri_step_names_of(plan, i);
        if (s->kind != CNRI_STEP_KERNEL || find_node(a, names.node) >= 0) continue;
        node *n = cnri_push(&a->nodes);
        if (!n) return cnri_out_of_memory(err, "adapt");
        *n = (node){.name = keep(names.node),
                    .op = keep(names.op),
                    .device = keep(names.device),
                    .kernel = keep(names.kernel)};
        void *index = (void *)(intptr_t)a->nodes.n;
        cnr_status status = cnri_map_set(&a->node_of, n->name, index);
        for (int32_t k = 0; k < cnri_n_taken(&s->view) && !status; k++) {
            const char *taken = cnri_taken(&s->view, k)->name;
            if (taken && find_node(a, taken) < 0) status = cnri_map_set(&a->node_of, taken, index);
        }
        if (status) return cnri_out_of_memory(err, "adapt");
    }
    return CNR_OK;
}

/* True if the kernel is the default or among the choices. */
static bool is_known(const node *n, const char *kernel) {
    for (int32_t i = 0; i < n->choices.n; i++)
        if (strcmp(n->choices.at[i].kernel, kernel) == 0) return true;
    return strcmp(n->kernel, kernel) == 0;
}

/* Adds kernels on the node's device whose estimated time is at most `unlikely` times that of the
 * chosen kernel. */
static cnr_status add_choices(cnri_adapt *a, const cnri_table *t, int32_t index, cnr_error *err) {
    const cnri_table_node *of = &t->nodes.at[index];
    const int32_t at = find_node(a, of->name);
    node *n = at >= 0 && strcmp(a->nodes.at[at].name, of->name) == 0 ? &a->nodes.at[at] : NULL;
    double taken = 0;
    if (!n || of->forced) return CNR_OK;
    for (int32_t i = of->first; i < of->first + of->n_rows; i++)
        if (t->rows.at[i].by) taken = t->rows.at[i].share < 1 ? NAN : t->rows.at[i].cost.ns;
    for (int32_t i = of->first; i < of->first + of->n_rows; i++) {
        const cnri_table_row *row = &t->rows.at[i];
        const bool here = strcmp(t->devices.at[row->device].name, n->device) == 0;
        if (!here || row->score <= 0 || is_known(n, row->kernel)) continue;
        if (!(row->cost.ns <= a->rules.unlikely * taken)) continue;
        cnri_adapt_choice *c = cnri_push(&n->choices);
        if (!c) return cnri_out_of_memory(err, "adapt");
        *c = (cnri_adapt_choice){.kernel = keep(row->kernel), .estimate_ns = row->cost.ns};
    }
    return CNR_OK;
}

cnr_status cnri_adapt_find_nodes(cnri_adapt *a, cnr_error *err) {
    cnr_plan *plan = NULL;
    cnr_status status = add_nodes(a, err);
    double *ns = cnri_alloc_zero(((size_t)a->nodes.n + 1) * sizeof *ns);
    if (!status && !ns) status = cnri_out_of_memory(err, "adapt");
    if (!status)
        status = cnri_plan_for_inspection(a->model, a->list, a->n_inputs, true, &plan, err);
    if (!status) sum_steps(a, a->ways.at[0], ns);
    for (int32_t i = 0; i < a->nodes.n && !status; i++) a->nodes.at[i].ns = ns[i];
    for (int32_t i = 0; !status && i < plan->table->nodes.n; i++)
        status = add_choices(a, plan->table, i, err);
    cnri_plan_free(plan);
    cnri_free(ns);
    return status;
}

/* ---- rounds ---- */

/* Makes the way use a kernel for a node, on its device, by an option "NODE@DEVICE=KERNEL". */
static cnr_status add_word(way *w, const node *n, const char *kernel, cnr_error *err) {
    char *word = cnri_format("%s@%s=%s", n->name, n->device, kernel);
    char **slot = word ? cnri_push(&w->kernels) : NULL;
    if (slot) *slot = word;
    else cnri_free(word);
    return slot ? CNR_OK : cnri_out_of_memory(err, "adapt");
}

/* The kernel number `round` of those that nodes of this operator on this device try; NULL: there
 * are fewer. All these nodes try the same kernel at once, so that their layouts agree. */
static const char *kernel_of_round(const cnri_adapt *a, const node *n, int32_t round) {
    const char *seen[64];
    int32_t n_seen = 0;
    for (int32_t i = 0; i < a->nodes.n; i++) {
        const node *other = &a->nodes.at[i];
        if (strcmp(other->op, n->op) != 0 || strcmp(other->device, n->device) != 0) continue;
        for (int32_t k = 0; k < other->choices.n && n_seen < 64; k++) {
            const char *kernel = other->choices.at[k].kernel;
            int32_t at = 0;
            while (at < n_seen && strcmp(seen[at], kernel) != 0) at++;
            if (at == n_seen) seen[n_seen++] = kernel;
        }
    }
    return round < n_seen ? seen[round] : NULL;
}

/* Forces the kernels of the round in its way. */
static cnr_status force_tries(cnri_adapt *a, way *w, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < a->nodes.n && !status; i++)
        if (w->tries[i]) status = add_word(w, &a->nodes.at[i], w->tries[i], err);
    return status;
}

/* Adds a way for the current round, or for a part of it; NULL: out of memory. */
static way *add_round(cnri_adapt *a, int32_t part) {
    char name[64];
    snprintf(name, sizeof name, part ? "kernels %d, part %d" : "kernels %d", (int)a->round,
             (int)part + 1);
    way *w = cnri_adapt_add_way(a, name);
    if (w) w->tries = cnri_alloc_zero(((size_t)a->nodes.n + 1) * sizeof *w->tries);
    return w && w->tries ? w : NULL;
}

cnr_status cnri_adapt_next_round(cnri_adapt *a, way **out, cnr_error *err) {
    const int32_t round = a->round++;
    int32_t tried = 0;
    way *w = add_round(a, 0);
    *out = NULL;
    if (!w) return cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; i < a->nodes.n; i++) {
        const char *kernel = kernel_of_round(a, &a->nodes.at[i], round);
        if (!kernel || !is_known(&a->nodes.at[i], kernel) ||
            strcmp(kernel, a->nodes.at[i].kernel) == 0)
            continue;
        w->tries[i] = kernel;
        tried++;
    }
    if (tried) *out = w;
    else w->runs.failed = true;
    return tried ? force_tries(a, w, err) : CNR_OK;
}

/* The kernel of the node in the way's plan; NULL: the node is fused into another step. */
static const char *kernel_in(const way *w, const char *name) {
    for (int32_t i = 0; w->plan && i < w->plan->steps.n; i++) {
        const cnri_step_names names = cnri_step_names_of(w->plan, i);
        if (w->plan->steps.at[i].kind == CNRI_STEP_KERNEL && strcmp(names.node, name) == 0)
            return names.kernel;
    }
    return NULL;
}

/* Notes a kernel's time on a node, if it is shorter than before. */
static void set_time(node *n, const char *kernel, double ns) {
    for (int32_t i = 0; i < n->choices.n; i++) {
        cnri_adapt_choice *c = &n->choices.at[i];
        if (strcmp(c->kernel, kernel) == 0 && (c->ns <= 0 || ns < c->ns)) c->ns = ns;
    }
}

/* Marks the nodes that made a round too slow in `guilty`: the one in which it was cancelled, and
 * those that took more than `stop` times their default time. Returns the number of other nodes that
 * were not timed; 0 if none is guilty. */
static int32_t blame(const cnri_adapt *a, const way *w, const double *ns, bool *guilty) {
    const char *last = cnri_step_names_of(w->plan, w->runs.stopped_at).node;
    const int32_t at = last ? find_node(a, last) : -1;
    int32_t left = 0, found = 0;
    for (int32_t i = 0; i < a->nodes.n; i++) {
        guilty[i] = w->tries[i] && ns[i] > a->rules.stop * a->nodes.at[i].ns;
        found += guilty[i];
    }
    if (at >= 0 && w->tries[at] && !guilty[at] && !(ns[at] <= a->nodes.at[at].ns)) {
        guilty[at] = true;
        found++;
    }
    for (int32_t i = 0; i < a->nodes.n; i++) left += w->tries[i] && !guilty[i] && isnan(ns[i]);
    return found ? left : 0;
}

/* Adds a round for the untimed nodes of a cancelled round, without those that made it slow; none
 * are left: nothing. */
static cnr_status split_round(cnri_adapt *a, const way *w, const double *ns, cnr_error *err) {
    bool *guilty = cnri_alloc_zero((size_t)a->nodes.n + 1);
    if (!guilty) return cnri_out_of_memory(err, "adapt");
    cnr_status status = CNR_OK;
    const int32_t left = blame(a, w, ns, guilty);
    way *rest = left ? add_round(a, w->part + 1) : NULL;
    if (left && !rest) status = cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; rest && i < a->nodes.n; i++)
        if (w->tries[i] && !guilty[i] && isnan(ns[i])) rest->tries[i] = w->tries[i];
    if (rest) rest->part = w->part + 1;
    if (rest) status = force_tries(a, rest, err);
    cnri_free(guilty);
    return status;
}

/* Adds a round for each half of a failed round, to find the nodes whose kernels fail. */
static cnr_status halve_round(cnri_adapt *a, const way *w, cnr_error *err) {
    enum { MOST_PARTS = 6 };
    cnr_status status = CNR_OK;
    int32_t n = 0;
    for (int32_t i = 0; i < a->nodes.n; i++) n += w->tries[i] != NULL;
    if (n < 2 || w->part >= MOST_PARTS) return CNR_OK;
    for (int32_t half = 0; half < 2 && !status; half++) {
        way *own = add_round(a, w->part + 1);
        int32_t at = 0;
        if (!own) return cnri_out_of_memory(err, "adapt");
        own->part = w->part + 1;
        for (int32_t i = 0; i < a->nodes.n; i++)
            if (w->tries[i] && (at++ < n / 2) == (half == 0)) own->tries[i] = w->tries[i];
        status = force_tries(a, own, err);
    }
    return status;
}

cnr_status cnri_adapt_take_round(cnri_adapt *a, way *w, cnr_error *err) {
    double *ns = cnri_alloc_zero(((size_t)a->nodes.n + 1) * sizeof *ns);
    cnr_status status = ns ? CNR_OK : cnri_out_of_memory(err, "adapt");
    if (!status && w->runs.failed) status = halve_round(a, w, err);
    else if (!status && w->profile) {
        sum_steps(a, w, ns);
        for (int32_t i = 0; i < a->nodes.n; i++) {
            const char *kernel = w->tries[i] ? kernel_in(w, a->nodes.at[i].name) : NULL;
            if (kernel && strcmp(kernel, w->tries[i]) == 0 && ns[i] > 0)
                set_time(&a->nodes.at[i], kernel, ns[i]);
        }
        if (w->runs.stopped) status = split_round(a, w, ns, err);
    }
    cnri_free(ns);
    return status;
}

cnr_status cnri_adapt_best_kernels(cnri_adapt *a, cnr_error *err) {
    way *w = cnri_adapt_add_way(a, "fastest kernels");
    cnr_status status = w ? CNR_OK : cnri_out_of_memory(err, "adapt");
    for (int32_t i = 0; i < a->nodes.n && !status; i++) {
        const node *n = &a->nodes.at[i];
        const cnri_adapt_choice *best = NULL;
        for (int32_t k = 0; k < n->choices.n; k++) {
            const cnri_adapt_choice *c = &n->choices.at[k];
            const bool faster = c->ns > 0 && c->ns < n->ns * (1 - a->rules.margin);
            if (faster && (!best || c->ns < best->ns)) best = c;
        }
        if (best) status = add_word(w, n, best->kernel, err);
    }
    if (w && (status || !w->kernels.n)) w->runs.failed = true;
    return status;
}
