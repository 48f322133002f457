/* depth_to_space, space_to_depth, reorg, channel_shuffle, crop: rearrange channels and pixels. */
#include "move.h"

static const cnr_port in[] = {{.name = "x", .help = "N C spatial"}};
static const cnr_port out[] = {{.name = "y", .help = "the same elements in the new order"}};
static const char *const d2s_modes[] = {"DCR", "CRD", NULL};
static const cnr_attr_spec block_attrs[] = {{.name = "blocksize",
                                             .type = CNR_ATTR_INT,
                                             .flags = CNR_ATTR_REQUIRED | CNR_ATTR_BOUNDED,
                                             .alias = "block",
                                             .min = 1,
                                             .max = 1 << 20,
                                             .help = "side of a block of pixels"},
                                            {.name = "mode",
                                             .type = CNR_ATTR_ENUM,
                                             .default_s = "DCR",
                                             .choices = d2s_modes,
                                             .help =
                                                 "DCR: the position in the block is the major part "
                                                 "of the channel index; CRD: the minor part"}};
static const cnr_attr_spec reorg_attrs[] = {{.name = "stride",
                                             .type = CNR_ATTR_INT,
                                             .flags = CNR_ATTR_BOUNDED,
                                             .min = 1,
                                             .max = 1 << 20,
                                             .default_i = 2,
                                             .help = "width and height are divided by it"},
                                            {.name = "reverse",
                                             .type = CNR_ATTR_BOOL,
                                             .help = "the inverse operation"}};
static const cnr_attr_spec group_attrs[] = {{.name = "group",
                                             .type = CNR_ATTR_INT,
                                             .flags = CNR_ATTR_BOUNDED,
                                             .alias = "groups",
                                             .min = 1,
                                             .max = 1 << 20,
                                             .default_i = 1,
                                             .help = "number of groups"}};

/* *dim: x * times / over, unknown where x is; fails if `over` does not divide it. */
static cnr_status scaled(const cnr_node *node, int64_t x, int64_t times, int64_t over, int64_t *dim,
                         cnr_error *err) {
    CNR_TRY(kit_mul(node, x, times, dim, err));
    if (*dim < 0) {
        if (over != 1) *dim = CNR_DIM_UNKNOWN;
        return CNR_OK;
    }
    if (*dim % over != 0)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld can't be divided by %lld", (long long)*dim,
                        (long long)over);
    *dim /= over;
    return CNR_OK;
}

/* Gives y the shape with blocks moved from channels to space (to_space: 1) or back (0) */
static cnr_status rescale(const cnr_node *node, cnr_tensor *y, int64_t block, int to_space,
                          cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    const int64_t area = block * block;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 4, 4, err));
    ops_like(y, x);
    for (int32_t a = 1; a < 4; a++) {
        const int64_t factor = a == 1 ? area : block;
        const int grows = (a == 1) != (to_space != 0);
        CNR_TRY(scaled(node, x->dim[a], grows ? factor : 1, grows ? 1 : factor, &y->dim[a], err));
    }
    return CNR_OK;
}

/* Method infer of d2s: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status d2s_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return rescale(node, outputs[0], cnr_attr_int(node, "blocksize"), 1, err);
}

/* Method infer of s2d: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status s2d_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return rescale(node, outputs[0], cnr_attr_int(node, "blocksize"), 0, err);
}

/* Method infer of reorg: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status reorg_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t stride = cnr_attr_int(node, "stride"), channels = node->inputs[0]->dim[1];
    CNR_TRY(rescale(node, outputs[0], stride, cnr_attr_int(node, "reverse") != 0, err));
    if (channels >= 0 && channels % (stride * stride) != 0)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld channels can't be divided by %lld",
                        (long long)channels, (long long)(stride * stride));
    return CNR_OK;
}

/* Copies elements between `deep` [N, C b b, H, W] and `wide` [N, C, H b, W b], from x to y;
 * from_deep: x is the deep one. The position in the block is the minor or the major part of the
 * deep channel. */
static void blocks(const cnr_tensor *x, const cnr_tensor *y, int64_t n, int64_t c, int64_t h,
                   int64_t w, int64_t b, int minor, int from_deep) {
    const int64_t plane = h * w;
    const int64_t deep[6] = {c * b * b * plane,
                             minor ? b * b * plane : plane,
                             w,
                             minor ? b * plane : b * c * plane,
                             1,
                             minor ? plane : c * plane};
    const int64_t wide[6] = {c * b * b * plane, b * b * plane, b * w * b, w * b, b, 1};
    const int64_t dims[6] = {n, c, h, b, w, b};
    move_map m = {.rank = 0};
    for (int i = 0; i < 6; i++)
        move_axis(&m, dims[i], from_deep ? deep[i] : wide[i], from_deep ? wide[i] : deep[i]);
    move_copy(ops_size(y->dtype), x->data, y->data, &m);
}

/* Method reference of depth_to_space: channels become blocks of pixels; returns CNR_OK. */
static cnr_status d2s_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    (void)err;
    blocks(x, y, x->dim[0], y->dim[1], x->dim[2], x->dim[3], cnr_attr_int(run->node, "blocksize"),
           cnr_attr_is(run->node, "mode", "CRD"), 1);
    return CNR_OK;
}

/* Method reference of space_to_depth: blocks of pixels become channels; returns CNR_OK. */
static cnr_status s2d_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    (void)err;
    blocks(x, y, x->dim[0], x->dim[1], y->dim[2], y->dim[3], cnr_attr_int(run->node, "blocksize"),
           cnr_attr_is(run->node, "mode", "CRD"), 0);
    return CNR_OK;
}

/* As Darknet computes it: x is read as [C / ss, H s, W s], whatever its shape, and [C, H, W] of its
 * shape is written. The weights of its nets depend on this. */
static cnr_status reorg_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t s = cnr_attr_int(run->node, "stride");
    const int reverse = cnr_attr_int(run->node, "reverse") != 0;
    (void)err;
    blocks(x, y, x->dim[0], x->dim[1] / (s * s), x->dim[2], x->dim[3], s, 0, reverse);
    return CNR_OK;
}

/* Method infer of group: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status group_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int64_t group = cnr_attr_int(node, "group");
    int64_t each;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 2, CNR_MAX_RANK, err));
    ops_like(outputs[0], node->inputs[0]);
    return scaled(node, node->inputs[0]->dim[1], 1, group, &each, err);
}

/* Moves channels so that those of each group are dealt in turn. */
static void deal(const cnr_tensor *x, const cnr_tensor *y, int64_t group) {
    const int64_t each = x->dim[1] / group, inner = cnr_span(x, 2, x->rank);
    move_map m = {.rank = 0};
    move_axis(&m, x->dim[0], x->dim[1] * inner, x->dim[1] * inner);
    move_axis(&m, group, each * inner, inner);
    move_axis(&m, each, inner, group * inner);
    move_axis(&m, inner, 1, 1);
    move_copy(ops_size(y->dtype), x->data, y->data, &m);
}

/* Method reference of channel_shuffle: interleaves the channels of groups; returns CNR_OK. */
static cnr_status group_reference(const cnr_run *run, cnr_error *err) {
    (void)err;
    deal(run->node->inputs[0], run->outputs[0], cnr_attr_int(run->node, "group"));
    return CNR_OK;
}

/* Each operator is the gradient of the other, with the same attributes. */
static cnr_status back_by(const char *op, OPS_GRADIENT_ARGS) {
    (void)inputs, (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    return ops_grad_node(host, graph, node, op, &grad_out[0], 1, node->attrs, node->n_attrs,
                         &grad_in[0], err);
}

/* Method gradient of d2s: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status d2s_gradient(OPS_GRADIENT_ARGS) {
    return back_by("space_to_depth", host, graph, node, inputs, outputs, grad_out, want, grad_in,
                   err);
}

/* Method gradient of s2d: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status s2d_gradient(OPS_GRADIENT_ARGS) {
    return back_by("depth_to_space", host, graph, node, inputs, outputs, grad_out, want, grad_in,
                   err);
}

/* The inverse shuffle: as many groups as each group had channels. */
static cnr_status group_gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    (void)inputs, (void)outputs;
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    const int64_t group = cnr_attr_int(node, "group");
    const cnr_attr back = kit_attr_int("group", node->inputs[0]->dim[1] / group);
    grad_in[0] = kit_node(&b, "channel_shuffle", &grad_out[0], 1, &back, 1);
    return kit_built(&b, node, err);
}

/* Operator NAME. */
#define SHUFFLE_OP(SYMBOL, NAME, SUMMARY, HOOKS, ATTRS, GRADIENT) \
    const cnr_op ops_##SYMBOL = \
        {CNR_OP_SIZES,           .name = NAME,         .summary = SUMMARY, \
         .flags = CNR_OP_PURE,   CNR_OP_ATTRS(ATTRS),  CNR_OP_PORTS(in, out), \
         .infer = HOOKS##_infer, .gradient = GRADIENT, .reference = HOOKS##_reference}

SHUFFLE_OP(depth_to_space, "depth_to_space", "Channels become blocks of pixels.", d2s, block_attrs,
           d2s_gradient);
SHUFFLE_OP(space_to_depth, "space_to_depth", "Blocks of pixels become channels.", s2d, block_attrs,
           s2d_gradient);
SHUFFLE_OP(reorg, "reorg", "Pixels become channels in Darknet's order.", reorg, reorg_attrs, NULL);
SHUFFLE_OP(channel_shuffle, "channel_shuffle", "Interleaves the channels of groups (ShuffleNet).",
           group, group_attrs, group_gradient);

/* ---- crop ---- */

static const cnr_port crop_in[] = {{.name = "x", .help = "the tensor to crop"},
                                   {.name = "like", .help = "gives the new lengths"}};
static const cnr_attr_spec crop_attrs[] =
    {OPS_AXIS_ROW(2, "this and all later axes are cropped"),
     {.name = "offset",
      .type = CNR_ATTR_INTS,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 1 << 30,
      .help = "start of the crop: one number for all axes, or one each"}};

/* Offset of cropped axis i. */
static int64_t crop_offset(const cnr_node *node, int32_t i) {
    int64_t n;
    const int64_t *list = cnr_attr_ints(node, "offset", &n);
    return n == 0 ? 0 : n == 1 ? list[0] : i < n ? list[i] : 0;
}

/* Method infer of crop: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status crop_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *like = node->inputs[1];
    int32_t axis;
    int64_t n;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE, 1, CNR_MAX_RANK, err));
    CNR_TRY(ops_want(node, 1, ~0u, x->rank, x->rank, err));
    CNR_TRY(ops_axis(node, "axis", x->rank, 0, &axis, err));
    cnr_attr_ints(node, "offset", &n);
    if (n > 1 && n != x->rank - axis)
        return ops_fail(err, CNR_E_ARG, node, "%lld offsets for %d axes", (long long)n,
                        (int)(x->rank - axis));
    ops_like(outputs[0], x);
    for (int32_t a = axis; a < x->rank; a++) {
        const int64_t offset = crop_offset(node, a - axis);
        outputs[0]->dim[a] = like->dim[a];
        if (like->dim[a] >= 0 && x->dim[a] >= 0 && offset + like->dim[a] > x->dim[a])
            return ops_fail(err, CNR_E_SHAPE, node, "axis %d: %lld from %lld on, of only %lld", a,
                            (long long)like->dim[a], (long long)offset, (long long)x->dim[a]);
    }
    return CNR_OK;
}

/* Method reference of crop: x cut to the size of another tensor. */
static cnr_status crop_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    int64_t from[CNR_MAX_RANK], to[CNR_MAX_RANK];
    move_map m = {.rank = 0};
    int32_t axis;
    CNR_TRY(ops_axis(run->node, "axis", x->rank, 0, &axis, err));
    kit_dense_strides(x, from);
    kit_dense_strides(y, to);
    for (int32_t a = 0; a < x->rank; a++) {
        if (a >= axis) m.in_at += crop_offset(run->node, a - axis) * from[a];
        move_axis(&m, y->dim[a], from[a], to[a]);
    }
    move_copy(ops_size(y->dtype), x->data, y->data, &m);
    return CNR_OK;
}

const cnr_op ops_crop = {
    CNR_OP_SIZES,
    .name = "crop",
    .summary = "x cut to the size of another tensor.",
    .flags = CNR_OP_PURE,
    CNR_OP_ATTRS(crop_attrs),
    CNR_OP_PORTS(crop_in, out),
    .infer = crop_infer,
    .reference = crop_reference,
};
