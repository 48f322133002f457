/* reshape, squeeze, unsqueeze: the same elements in another shape. */
#include "ops_kit.h"

static const cnr_port reshape_in[] =
    {{.name = "x", .help = "the elements"},
     {.name = "shape",
      .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
      .help = "new dimensions, instead of the attribute: 0 keeps, -1 takes the rest"}};
static const cnr_port axes_in[] = {{.name = "x", .help = "the elements"},
                                   {.name = "axes",
                                    .flags = CNR_PORT_OPTIONAL | CNR_PORT_CONST,
                                    .help = "instead of the attribute"}};
static const cnr_port out[] = {{.name = "y", .help = "the elements in their new shape"}};
static const cnr_attr_spec reshape_attrs[] =
    {{.name = "shape", .type = CNR_ATTR_INTS, .help = "new dimensions: 0 keeps, -1 takes the rest"},
     {.name = "allowzero", .type = CNR_ATTR_BOOL, .help = "0 in a shape means zero elements"}};
static const cnr_attr_spec squeeze_attrs[] = {
    {.name = "axes", .type = CNR_ATTR_INTS, .help = "axes of 1 to remove; none: all of them"}};
static const cnr_attr_spec unsqueeze_attrs[] = {
    {.name = "axes", .type = CNR_ATTR_INTS, .help = "positions of the new axes in the output"}};

/* Checks that x and y have equally many elements, where both are known. */
static cnr_status check_count(const cnr_node *node, const cnr_tensor *x, const cnr_tensor *y,
                              cnr_error *err) {
    const int64_t have = cnr_count(x), wanted = cnr_count(y);
    if (have >= 0 && wanted >= 0 && have != wanted)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld elements do not fit a shape of %lld",
                        (long long)have, (long long)wanted);
    return CNR_OK;
}

/* Gives y the dimension `rest`, which was written as -1; fails if the sizes don't fit. Known dims
 * common to both shapes cancel, so that a symbolic batch stays symbolic. */
static cnr_status fill_rest(const cnr_node *node, const cnr_tensor *x, cnr_tensor *y, int32_t rest,
                            const uint8_t *copied, cnr_error *err) {
    int64_t have = 1, used = 1, symbol = 0;
    int32_t symbols = 0;
    for (int32_t i = 0; i < x->rank; i++) {
        if (x->dim[i] >= 0) CNR_TRY(kit_mul(node, have, x->dim[i], &have, err));
        else if (i < y->rank && copied[i]) continue; /* cancels */
        else symbols++, symbol = x->dim[i];
    }
    for (int32_t i = 0; i < y->rank; i++)
        if (i != rest && y->dim[i] >= 0) CNR_TRY(kit_mul(node, used, y->dim[i], &used, err));
    y->dim[rest] = CNR_DIM_UNKNOWN;
    if (symbols == 1 && have == used) y->dim[rest] = symbol;
    if (symbols > 0) return CNR_OK;
    if (used == 0 || have % used != 0)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld elements can't be divided by %lld",
                        (long long)have, (long long)used);
    y->dim[rest] = have / used;
    return CNR_OK;
}

/* Method infer of reshape: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status reshape_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    cnr_tensor *y = outputs[0];
    const int allow_zero = cnr_attr_int(node, "allowzero") != 0;
    uint8_t copied[CNR_MAX_RANK] = {0};
    int32_t rest = -1;
    kit_list shape;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE | ELEM_NIBBLES, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_ints(node, 1, "shape", &shape, err));
    if (shape.n < 0 || shape.n > CNR_MAX_RANK)
        return ops_fail(err, CNR_E_SHAPE, node, "the new rank must be known and at most %d",
                        CNR_MAX_RANK);
    y->dtype = x->dtype;
    y->rank = (int32_t)shape.n;
    for (int32_t i = 0; i < y->rank; i++) {
        y->dim[i] = shape.known ? shape.at[i] : CNR_DIM_UNKNOWN;
        if (!shape.known) continue;
        if (shape.at[i] == 0 && !allow_zero) {
            if (i >= x->rank)
                return ops_fail(err, CNR_E_SHAPE, node, "there is no dimension %d to keep", i);
            y->dim[i] = x->dim[i];
            copied[i] = 1;
        } else if (shape.at[i] == -1) {
            if (rest >= 0) return ops_fail(err, CNR_E_SHAPE, node, "-1 is given twice");
            rest = i;
        } else if (shape.at[i] < 0 || shape.at[i] > OPS_MAX_DIM) {
            return ops_fail(err, CNR_E_SHAPE, node, "%lld is no dimension", (long long)shape.at[i]);
        }
    }
    if (rest >= 0) CNR_TRY(fill_rest(node, x, y, rest, copied, err));
    return check_count(node, x, y, err);
}

/* Method infer of squeeze: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status squeeze_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    cnr_tensor *y = outputs[0];
    kit_list axes;
    uint32_t set = 0;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE | ELEM_NIBBLES, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_ints(node, 1, "axes", &axes, err));
    y->dtype = x->dtype;
    if (!axes.known) {
        if (axes.n < 0 || axes.n > x->rank)
            return ops_fail(err, CNR_E_SHAPE, node, "how many axes go must be known");
        y->rank = x->rank - (int32_t)axes.n;
        for (int32_t i = 0; i < y->rank; i++) y->dim[i] = CNR_DIM_UNKNOWN;
        return CNR_OK;
    }
    CNR_TRY(kit_axis_set(node, &axes, x->rank, &set, err));
    for (int32_t i = 0; i < x->rank; i++) {
        const int gone = axes.n > 0 ? (int)(set >> i & 1u) : x->dim[i] == 1;
        if (gone && x->dim[i] >= 0 && x->dim[i] != 1)
            return ops_fail(err, CNR_E_SHAPE, node, "axis %d is %lld, not 1", (int)i,
                            (long long)x->dim[i]);
        if (!gone) y->dim[y->rank++] = x->dim[i];
    }
    return CNR_OK;
}

/* Method infer of unsqueeze: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status unsqueeze_infer(const cnr_node *node, cnr_tensor *const *outputs,
                                  cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    cnr_tensor *y = outputs[0];
    kit_list axes;
    uint32_t set = 0;
    CNR_TRY(ops_want(node, 0, OPS_WHOLE | ELEM_NIBBLES, 0, CNR_MAX_RANK, err));
    CNR_TRY(kit_ints(node, 1, "axes", &axes, err));
    if (axes.n < 0 || x->rank + axes.n > CNR_MAX_RANK)
        return ops_fail(err, CNR_E_SHAPE, node, "the new rank must be known and at most %d",
                        CNR_MAX_RANK);
    y->dtype = x->dtype;
    y->rank = x->rank + (int32_t)axes.n;
    if (axes.known) CNR_TRY(kit_axis_set(node, &axes, y->rank, &set, err));
    for (int32_t i = 0, from = 0; i < y->rank; i++) {
        if (!axes.known) y->dim[i] = CNR_DIM_UNKNOWN;
        else y->dim[i] = set >> i & 1u ? 1 : x->dim[from++];
    }
    return CNR_OK;
}

/* The descriptor of operator NAME, with the hooks NAME_infer and so on. */
#define RESHAPE_OP(NAME, SUMMARY, IN, ATTRS) \
    const cnr_op ops_##NAME = {CNR_OP_SIZES, \
                               .name = #NAME, \
                               .summary = SUMMARY, \
                               .flags = CNR_OP_PURE, \
                               CNR_OP_ATTRS(ATTRS), \
                               CNR_OP_PORTS(IN, out), \
                               .infer = NAME##_infer, \
                               .buffer_aliases = ops_alias_view, \
                               .gradient = ops_gradient_reshape, \
                               .reference = ops_reference_copy}

RESHAPE_OP(reshape, "The same elements in another shape.", reshape_in, reshape_attrs);
RESHAPE_OP(squeeze, "Axes of 1 removed.", axes_in, squeeze_attrs);
RESHAPE_OP(unsqueeze, "Axes of 1 added.", axes_in, unsqueeze_attrs);
