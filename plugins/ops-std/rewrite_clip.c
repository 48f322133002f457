/* clip-limits: moves constant limits of a clip from inputs (ONNX from opset 11 on) to attributes,
 * so that the clip can be fused as an activation. */
#include "ops_kit.h"

extern const cnr_rewrite ops_clip_limits;

/* The limits of a clip of floats if they are constants; 0: not so. */
static int limits_of(const cnr_node *node, double limits[2]) {
    static const char *const names[] = {"min", "max"};
    int given = 0;
    if (strcmp(node->desc->name, "clip") != 0) return 0;
    if (!node->inputs[0] || !(OPS_FLOATS >> node->inputs[0]->dtype & 1u)) return 0;
    for (int32_t i = 0; i < 2; i++) {
        const cnr_tensor *t = cnr_own_input(node, 1 + i);
        int known = 1;
        limits[i] = cnr_attr_float(node, names[i]);
        if (!t) continue;
        if (!cnr_is_constant(t) || cnr_count(t) != 1) return 0;
        limits[i] = kit_scalar(node, 1 + i, names[i], &known);
        if (!known || limits[i] != limits[i]) return 0;
        given = 1;
    }
    return given;
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *in, *out;
        double limits[2];
        const cnr_node *node = ops_host->graph_node_at(g, i, &in, &out);
        if (!limits_of(node, limits) || ops_host->graph_use_count(g, out[0]) == 0) continue;
        const cnr_attr least = kit_attr_float("min", limits[0]),
                       most = kit_attr_float("max", limits[1]);
        const cnr_attr *const attrs[] = {&least, &most};
        const cnr_value x = in[0], old = out[0];
        cnr_value made = -1;
        ops_host->graph_insert_before(g, i);
        cnr_status status =
            ops_host->graph_node(g, "clip", node->name, NULL, &x, 1, attrs, 2, &made, 1);
        if (status == CNR_OK) status = ops_host->graph_replace(g, old, made);
        if (status == CNR_OK)
            status = ops_host->graph_remove(g, i + 1); /* x has one reader again */
        if (status != CNR_OK)
            return ops_host->fail(err, status, ops_clip_limits.name, "could not be applied");
        changes++;
    }
    return changes;
}

const cnr_rewrite ops_clip_limits = {
    .size = sizeof(cnr_rewrite),
    .order = 6,
    .name = "clip-limits",
    .summary = "makes constant inputs that limit a clip its attributes",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
};
