/* merge-transposes: merges two successive transposes, and removes those that move nothing. */
#include "move.h"

extern const cnr_rewrite ops_merge_transposes;

/* 1: the permutation leaves every axis. */
static int moves_nothing(const int32_t *perm, int32_t rank) {
    for (int32_t i = 0; i < rank; i++)
        if (perm[i] != i) return 0;
    return 1;
}

/* 1: the node is a transpose; NULL: 0. */
static int is_transpose(const cnr_node *node) {
    return node && strcmp(node->desc->name, ops_transpose.name) == 0;
}

/* Combines node `index` with the transposes before it: *from, the source value, and perm. Returns 1
 * if there was another transpose. */
static int follow(const struct cnr_graph *g, int32_t index, cnr_value *from, int32_t *perm) {
    const cnr_value *in, *before;
    const cnr_node *node = ops_host->graph_node_at(g, index, &in, NULL);
    const int32_t rank = node->inputs[0]->rank;
    int32_t own[CNR_MAX_RANK], first[CNR_MAX_RANK];
    move_perm(node, rank, own);
    memcpy(perm, own, sizeof own);
    *from = in[0];
    const cnr_node *previous = kit_maker(g, in[0], &before);
    if (!is_transpose(previous)) return 0;
    move_perm(previous, rank, first);
    for (int32_t i = 0; i < rank; i++) perm[i] = first[own[i]];
    *from = before[0];
    return 1;
}

/* Replaces node `index` by one transpose of `from`. */
static cnr_status merge(struct cnr_graph *g, int32_t index, cnr_value from, const int32_t *perm,
                        int32_t rank, cnr_value old) {
    int64_t list[CNR_MAX_RANK];
    cnr_value made = -1;
    for (int32_t i = 0; i < rank; i++) list[i] = perm[i];
    const cnr_attr attr = kit_attr_ints("perm", list, rank);
    const cnr_attr *const attrs[] = {&attr};
    ops_host->graph_insert_before(g, index);
    CNR_TRY(ops_host->graph_node(g, ops_transpose.name, NULL, NULL, &from, 1, attrs, 1, &made, 1));
    return ops_host->graph_replace(g, old, made);
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *out;
        int32_t perm[CNR_MAX_RANK];
        cnr_value from;
        const cnr_node *node = ops_host->graph_node_at(g, i, NULL, &out);
        if (!is_transpose(node) || ops_host->graph_use_count(g, out[0]) == 0) continue;
        const int32_t rank = node->inputs[0]->rank;
        const cnr_value old = out[0];
        const int merged = follow(g, i, &from, perm);
        /* A net output must be computed by a node. */
        const int bypass = moves_nothing(perm, rank) &&
                           (ops_host->graph_producer(g, from) >= 0 || !kit_is_output(g, old));
        if (!merged && !bypass) continue;
        const cnr_status status =
            bypass ? ops_host->graph_replace(g, old, from) : merge(g, i, from, perm, rank, old);
        if (status != CNR_OK)
            return ops_host->fail(err, status, ops_merge_transposes.name, "could not be applied");
        changes++;
    }
    return changes;
}

const cnr_rewrite ops_merge_transposes = {
    .size = sizeof(cnr_rewrite),
    .order = 40,
    .name = "merge-transposes",
    .summary = "makes one transpose of two, and none of one that moves nothing",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
};
