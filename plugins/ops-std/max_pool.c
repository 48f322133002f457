/* max_pool: the maximum of each window, and its index. */
#include "ops_window.h"

const cnr_attr_spec ops_max_pool_attrs[] =
    {OPS_POOL_ROWS,
     OPS_WINDOW_ROWS,
     {.name = "storage_order",
      .type = CNR_ATTR_INT,
      .flags = CNR_ATTR_BOUNDED,
      .min = 0,
      .max = 1,
      .help = "how indices count a picture's elements: 0 along rows, 1 along columns"}};
_Static_assert(CNR_ROWS(ops_max_pool_attrs) == OPS_MAX_POOL_N_ATTRS, "the schema's length");

static const cnr_port in[] = {{.name = "x", .help = "N C and one to three spatial axes"}};
static const cnr_port out[] = {{.name = "y", .help = "the largest of each window"},
                               {.name = "indices",
                                .flags = CNR_PORT_OPTIONAL,
                                .help = "its index in x (i64)"}};
static const char *const aliases[] = {"maxpool", NULL};

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    /* Types that double holds exactly. */
    const uint32_t dtypes = OPS_FLOATS | (OPS_INTS & ~(1u << CNR_i64 | 1u << CNR_u64));
    const cnr_status status = ops_pool_infer(node, dtypes, outputs, err);
    if (status != CNR_OK) return status;
    if (node->n_outputs > 1) {
        ops_like(outputs[1], outputs[0]);
        outputs[1]->dtype = CNR_i64;
    }
    return CNR_OK;
}

/* Converts an index within a plane to column-major order. */
static int64_t by_column(const ops_geometry *g, int64_t at) {
    const int64_t w = at % g->in[2], h = at / g->in[2] % g->in[1], d = at / g->in[2] / g->in[1];
    return (w * g->in[1] + h) * g->in[0] + d;
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    int64_t *indices = run->node->n_outputs > 1 ? run->outputs[1]->data : NULL;
    const int columns = cnr_attr_int(run->node, "storage_order") == 1;
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = g->lo[1]; c < g->hi[1]; c++) {
            const int64_t from = (n * g->c + c) * ops_volume(g->in);
            const int64_t to = (n * g->c + c) * ops_volume(g->out);
            if (ops_cancelled(run)) return;
            for (o[0] = g->lo[2]; o[0] < g->hi[2]; o[0]++)
                for (o[1] = g->lo[3]; o[1] < g->hi[3]; o[1]++)
                    for (o[2] = g->lo[4]; o[2] < g->hi[4]; o[2]++) {
                        double best = -INFINITY;
                        int64_t at = ops_window_max(g, dtype, x->data, from, o, &best);
                        const int64_t i = to + (o[0] * g->out[1] + o[1]) * g->out[2] + o[2];
                        ops_put(dtype, y->data, i, best);
                        if (!indices) continue;
                        if (at >= 0) at = from + (columns ? by_column(g, at) : at);
                        indices[i] = at;
                    }
        }
}

/* Method reference of max_pool: the largest element of each window, and its index; NaN is larger
 * than all. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    ops_geometry g;
    const cnr_status status = ops_pool_geometry(run, x, &g, err);
    if (status != CNR_OK) return status;
    OPS_SPECIALISE(x->dtype, body(run, &g, dtype));
    return CNR_OK;
}

/* Method gradient: adds a node max_pool_grad that computes the wanted gradient of the input. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    return ops_grad_of_input("max_pool_grad", host, graph, node, inputs, outputs, grad_out, want,
                             grad_in, err);
}

const cnr_op ops_max_pool = {
    CNR_OP_SIZES,
    .name = "max_pool",
    .summary = "The largest element of each window, and its index; NaN is larger than all.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    .n_attrs = OPS_MAX_POOL_N_ATTRS,
    .attrs = ops_max_pool_attrs,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_pool_cost,
    .split_axes = ops_split_all,
    .input_range = ops_pool_region,
    .gradient = gradient,
    .reference = reference,
};
