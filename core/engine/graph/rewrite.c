/* Rewrites that keep a net's outputs: the core's own, which know operators by descriptor fields
 * only, and those of plugins. They run in turn until nothing changes. */
#include "graph/parts.h"

/* Most passes of the loop. Each pass shrinks or folds something; the limit stops a pair of
 * rewrites that undo each other. */
enum { MAX_PASSES = 64 };

/* True if the value is an output of the net. */
static bool is_output(const cnr_graph *g, cnr_value value) {
    for (int32_t i = 0; i < g->outputs.n; i++)
        if (g->outputs.at[i] == value) return true;
    return false;
}

/* ---- identities ---- */

/* True if readers of the node's output may read its first input instead. */
static bool can_bypass(const cnr_graph *g, const cnri_node *node) {
    if (!(node->view.desc->flags & CNR_OP_PASS)) return false;
    if (node->view.n_inputs < 1 || node->view.n_outputs < 1 || node->in[0] < 0) return false;
    for (int32_t i = 1; i < node->view.n_outputs; i++)
        if (g->values.at[node->out[i]].uses > 0) return false;
    /* An output of the net must be computed by some node. */
    return g->values.at[node->in[0]].producer >= 0 || !is_output(g, node->out[0]);
}

/* Bypasses nodes that change nothing. Returns how many, or a negative status. */
static int32_t remove_identity(cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = g->nodes.n - 1; i >= 0; i--) {
        cnri_node *node = g->nodes.at[i];
        if (!can_bypass(g, node)) continue;
        cnr_status status = cnri_graph_replace(g, node->out[0], node->in[0]);
        if (status == CNR_OK) status = cnri_graph_remove(g, i);
        if (status != CNR_OK) return cnri_fail(err, status, node->name, "can't be bypassed");
        changes++;
    }
    return changes;
}

/* ---- constants ---- */

/* Makes a value a constant of its own: the node that computed it no longer does. */
static void detach(cnr_graph *g, cnri_node *node) {
    for (int32_t i = 0; i < node->view.n_outputs; i++) {
        cnri_value *v = &g->values.at[node->out[i]];
        v->producer = -1;
        node->out[i] = -1;
    }
    node->view.n_outputs = 0;
}

/* True if all outputs are constant and none is the net's: those stay computed, so that a step of
 * every plan produces them. */
static bool all_constant(const cnr_graph *g, const cnri_node *node) {
    for (int32_t i = 0; i < node->view.n_outputs; i++)
        if (!(node->view.outputs[i]->flags & CNR_TENSOR_CONST) || is_output(g, node->out[i]))
            return false;
    return node->view.n_outputs > 0;
}

/* Most elements that folding may make of a constant, so that a broadcast does not fill memory. */
enum { MAX_FOLDED = 1 << 24 };

/* Computes the data of late inputs for nodes that compute constants or look at weights. */
static void keep_late(cnr_graph *g, const cnri_node *node) {
    for (int32_t i = 0; i < node->view.n_inputs; i++)
        if (node->view.inputs[i] && !(node->view.inputs[i]->flags & CNR_TENSOR_CONST)) return;
    for (int32_t i = 0; i < node->view.n_inputs; i++) cnri_late_keep(g, node->in[i]);
}

/* Computes nodes whose inputs are all constant, up to MAX_FOLDED elements. Returns how many, or a
 * negative status. */
static int32_t fold_constants(cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        cnri_node *node = g->nodes.at[i];
        bool output = false;
        for (int32_t k = 0; k < node->view.n_outputs; k++)
            output = output || is_output(g, node->out[k]);
        if (!output) {
            keep_late(g, node);
            const int32_t status = cnri_node_evaluate(node, MAX_FOLDED, err);
            if (status < 0) return status;
        }
        if (!all_constant(g, node)) continue;
        detach(g, node);
        if (cnri_graph_remove(g, i) != CNR_OK)
            return cnri_fail(err, CNR_E_STATE, node->name, "can't be folded");
        i--;
        changes++;
    }
    return changes;
}

/* ---- the dead ---- */

/* True if the node updates a variable. */
static bool has_effect(const cnr_graph *g, const cnri_node *node) {
    for (int32_t k = 0; k < node->view.n_outputs; k++)
        if (cnri_node_updates(g, node, k) >= 0) return true;
    return false;
}

/* Removes nodes whose outputs nobody reads. Returns how many. */
static int32_t remove_dead(cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    (void)err;
    for (int32_t i = g->nodes.n - 1; i >= 0; i--)
        if (!has_effect(g, g->nodes.at[i]) && cnri_graph_remove(g, i) == CNR_OK) changes++;
    return changes;
}

/* ---- all of them ---- */

static const cnr_rewrite own[] = {
    {sizeof(cnr_rewrite), 0, "remove-dead", "removes nodes whose outputs nobody reads", remove_dead,
     CNR_REWRITE_STRUCTURE, 0, NULL},
    {sizeof(cnr_rewrite), 10, "remove-identity",
     "removes nodes that pass their input on at inference", remove_identity, CNR_REWRITE_STRUCTURE,
     0, NULL},
    {sizeof(cnr_rewrite), 20, "fold-constants", "computes what follows from constants alone",
     fold_constants, CNR_REWRITE_STRUCTURE, 0, NULL},
    {sizeof(cnr_rewrite), 30, "fold-affine",
     "folds a scale and shift of channels into the weights before it", cnri_fold_affine,
     CNR_REWRITE_STRUCTURE, 0, NULL},
};

/* Rewrite i: our own first, then those of plugins; NULL: there are no more. */
static const cnr_rewrite *rewrite_at(int32_t i) {
    const int32_t n_own = (int32_t)CNRI_COUNT(own);
    if (i < n_own) return &own[i];
    return i - n_own < cnri_descriptor_count(CNR_KIND_REWRITE)
               ? (const cnr_rewrite *)cnri_descriptor_at(CNR_KIND_REWRITE, i - n_own)
               : NULL;
}

bool cnri_rewrite_at(int32_t index, const char **name, const char **summary) {
    const cnr_rewrite *r = index >= 0 ? rewrite_at(index) : NULL;
    if (!r) return false;
    *name = r->name;
    *summary = r->summary;
    return true;
}

/* True if the rewrite is for all devices, or for the family or class of one of these. */
static bool has_device(const cnr_rewrite *r, const cnr_device *const *devices, int32_t n) {
    if (!r->device) return true;
    for (int32_t i = 0; i < n; i++)
        if (strcmp(devices[i]->cls->family, r->device) == 0 ||
            strcmp(devices[i]->cls->name, r->device) == 0)
            return true;
    return false;
}

/* Lists the rewrites that are not switched off, by their order; equal ones stay as registered.
 * Returns their number. */
static int32_t sorted(const char *const *off, const cnr_device *const *devices, int32_t n_devices,
                      const cnr_rewrite **list) {
    int32_t n = 0;
    const cnr_rewrite *r;
    for (int32_t i = 0; (r = rewrite_at(i)) != NULL; i++) {
        if (cnri_is_listed(off, r->name) || !has_device(r, devices, n_devices)) continue;
        if (cnri_owner(r) && cnri_is_listed(off, "all")) continue;
        if (r->flags & CNR_REWRITE_PLAN && n_devices == 0) continue;
        int32_t at = n++;
        for (; at > 0 && list[at - 1]->order > r->order; at--) list[at] = list[at - 1];
        list[at] = r;
    }
    return n;
}

/* Applies one rewrite once. Returns the number of changes, or a negative status. */
static int32_t apply(cnr_graph *g, const cnr_rewrite *r, cnr_error *err) {
    const int32_t problems = g->problems.n;
    const bool all = !(r->flags & CNR_REWRITE_STRUCTURE);
    for (cnr_value v = 0; cnri_owner(r) && v < g->values.n; v++)
        if (all || g->values.at[v].type->rank < 2) cnri_late_keep(g, v);
    g->renames = true;
    const int32_t changes = r->apply(g, err);
    g->renames = false;
    g->insert_before = -1;
    if (changes < 0) return cnri_plugin_status(err, changes, g->name, r->name);
    if (g->out_of_memory) return cnri_out_of_memory(err, g->name);
    if (g->problems.n > problems)
        return cnri_fail(err, CNR_E_STATE, r->name, "the rewrite went wrong: %s",
                         g->problems.at[problems].text);
    if (changes > 0)
        cnri_log(CNR_LOG_DEBUG, g->name, "%s: %d change%s", r->name, changes,
                 changes == 1 ? "" : "s");
    return changes;
}

cnr_status cnri_graph_fold(cnr_graph *g, cnr_error *err) {
    const cnr_rewrite *const folds[] = {&own[3], &own[0]};
    for (size_t i = 0; i < CNRI_COUNT(folds); i++) {
        const int32_t changes = apply(g, folds[i], err);
        if (changes < 0) return (cnr_status)changes;
    }
    return CNR_OK;
}

cnr_status cnri_graph_rewrite(cnr_graph *g, const char *const *off,
                              const cnr_device *const *devices, int32_t n_devices, cnr_error *err) {
    const int32_t maximum = (int32_t)CNRI_COUNT(own) + cnri_descriptor_count(CNR_KIND_REWRITE);
    const cnr_rewrite **list = cnri_alloc((size_t)maximum * sizeof *list);
    if (!list) return cnri_out_of_memory(err, g->name);
    const int32_t n = sorted(off, devices, n_devices, list);
    cnr_status status = CNR_OK;
    int32_t pass = 0, changes = 1;
    for (; changes > 0 && pass < MAX_PASSES && status == CNR_OK; pass++) {
        changes = 0;
        for (int32_t i = 0; i < n && status == CNR_OK; i++) {
            const int32_t done = apply(g, list[i], err);
            if (done < 0) status = (cnr_status)done;
            else changes += done;
        }
    }
    cnri_free(list);
    if (status == CNR_OK && changes > 0)
        cnri_log(CNR_LOG_WARN, g->name, "rewriting stopped after %d passes", pass);
    return status;
}
