/* col2im: sums columns of windows back to the pictures from which im2col took them. */
#include "ops_kit.h"
#include "ops_window.h"

static const cnr_port in[] =
    {{.name = "x", .help = "N, C times a window's elements, windows"},
     {.name = "image_shape", .flags = CNR_PORT_CONST, .help = "the spatial axes of y"},
     {.name = "block_shape", .flags = CNR_PORT_CONST, .help = "extents of a window"}};
static const cnr_port out[] = {{.name = "y", .help = "N C spatial"}};
/* Own attributes: x has no spatial axes from which other windows take their rank. */
static const cnr_attr_spec attrs[] = {{.name = "strides",
                                       .type = CNR_ATTR_INTS,
                                       .help = "step of the window, 1 each"},
                                      {.name = "pads",
                                       .type = CNR_ATTR_INTS,
                                       .help = "border that is removed from y, all begins first"},
                                      {.name = "dilations",
                                       .type = CNR_ATTR_INTS,
                                       .help = "distance between the window's elements, 1 each"}};

/* The windows over y; both lists are known. */
static cnr_status windows(const cnr_node *node, const kit_list *image, const kit_list *block,
                          cnr_window *w, cnr_error *err) {
    static const char *const lists[] = {"strides", "dilations", "pads"};
    cnr_tensor y = {.size = sizeof y, .rank = 2 + (int32_t)image->n, .dim = {1, 1}};
    for (int i = 0; i < 3; i++) {
        int64_t n;
        cnr_attr_ints(node, lists[i], &n);
        if (n != 0 && n != (i == 2 ? 2 : 1) * image->n)
            return ops_fail(err, CNR_E_ARG, node, "%lld %s for %lld axes", (long long)n, lists[i],
                            (long long)image->n);
    }
    for (int64_t i = 0; i < image->n; i++) {
        y.dim[2 + i] = image->at[i];
        if (image->at[i] < 1 || image->at[i] > OPS_MAX_DIM)
            return ops_fail(err, CNR_E_SHAPE, node, "%lld is no size", (long long)image->at[i]);
    }
    const char *wrong = ops_host->window_resolve(node, &y, block->at, w);
    return wrong ? ops_fail(err, CNR_E_SHAPE, node, "%s", wrong) : CNR_OK;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    cnr_tensor *y = outputs[0];
    kit_list image, block;
    cnr_window w;
    int64_t elements = 1, count = 1;
    CNR_TRY(ops_want(node, 0, OPS_FLOATS, 3, 3, err));
    CNR_TRY(kit_ints(node, 1, NULL, &image, err));
    CNR_TRY(kit_ints(node, 2, NULL, &block, err));
    if (image.n != block.n || image.n < 1 || image.n > CNR_MAX_SPATIAL)
        return ops_fail(err, CNR_E_SHAPE, node, "image and block must have the same 1 to %d axes",
                        CNR_MAX_SPATIAL);
    y->dtype = x->dtype;
    y->rank = 2 + (int32_t)image.n;
    y->dim[0] = x->dim[0];
    for (int32_t i = 1; i < y->rank; i++) y->dim[i] = CNR_DIM_UNKNOWN;
    if (!image.known || !block.known) return CNR_OK;
    CNR_TRY(windows(node, &image, &block, &w, err));
    for (int32_t i = 0; i < w.spatial; i++) {
        y->dim[2 + i] = w.in[i];
        CNR_TRY(kit_mul(node, elements, w.kernel[i], &elements, err));
        CNR_TRY(kit_mul(node, count, w.out[i], &count, err));
    }
    if (x->dim[1] >= 0 && x->dim[1] % elements)
        return ops_fail(err, CNR_E_SHAPE, node, "%lld rows for windows of %lld",
                        (long long)x->dim[1], (long long)elements);
    if (x->dim[1] >= 0) y->dim[1] = x->dim[1] / elements;
    return kit_same(node, x->dim[2], count, &count, err);
}

/* Adds a row of x, element k of every window of a channel, to the channel's plane of y at
 * `plane`. */
OPS_INLINE void add_row(const ops_geometry *g, int32_t dtype, const int64_t *k, const void *x,
                        int64_t from, void *y, int64_t plane) {
    int64_t o[3], p[3];
    for (o[0] = 0; o[0] < g->out[0]; o[0]++)
        for (o[1] = 0; o[1] < g->out[1]; o[1]++)
            for (o[2] = 0; o[2] < g->out[2]; o[2]++, from++) {
                int inside = 1;
                for (int a = 0; a < 3; a++) {
                    p[a] = o[a] * g->s[a] - g->p[a] + k[a] * g->d[a];
                    inside &= p[a] >= 0 && p[a] < g->in[a];
                }
                if (!inside) continue;
                const int64_t to = plane + (p[0] * g->in[1] + p[1]) * g->in[2] + p[2];
                ops_put(dtype, y, to, ops_get(dtype, y, to) + ops_get(dtype, x, from));
            }
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int64_t plane = ops_volume(g->in), row = ops_volume(g->out);
    const size_t size = ops_size(dtype);
    int64_t k[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = 0; c < g->c; c++) {
            const int64_t to = (n * g->c + c) * plane;
            int64_t from = (n * g->c + c) * ops_volume(g->k) * row;
            if (ops_cancelled(run)) return;
            memset((char *)y->data + (size_t)to * size, 0, (size_t)plane * size);
            for (k[0] = 0; k[0] < g->k[0]; k[0]++)
                for (k[1] = 0; k[1] < g->k[1]; k[1]++)
                    for (k[2] = 0; k[2] < g->k[2]; k[2]++, from += row)
                        add_row(g, dtype, k, x->data, from, y->data, to);
        }
}

/* Method reference of col2im: adds columns of windows to the pictures from which they were taken
 * (the inverse of im2col). */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    kit_list image, block;
    cnr_window w;
    ops_geometry g;
    CNR_TRY(kit_ints(run->node, 1, NULL, &image, err));
    CNR_TRY(kit_ints(run->node, 2, NULL, &block, err));
    CNR_TRY(windows(run->node, &image, &block, &w, err));
    ops_geometry_of(&w, run->outputs[0], run, &g);
    OPS_SPECIALISE(run->outputs[0]->dtype, body(run, &g, dtype));
    return CNR_OK;
}

const cnr_op ops_col2im = {
    CNR_OP_SIZES,
    .name = "col2im",
    .summary = "Adds columns of windows to the pictures from which they were taken (the inverse of "
               "im2col).",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = kit_cost_flops,
    .split_axes = ops_split_first,
    .input_range = ops_region_first,
    .reference = reference,
};
