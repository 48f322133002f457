/* average_pool: the mean of each window. */
#include "ops_window.h"

const cnr_attr_spec ops_average_pool_attrs[] =
    {OPS_POOL_ROWS,
     OPS_WINDOW_ROWS,
     {.name = "count_include_pad",
      .type = CNR_ATTR_BOOL,
      .help = "divide by the number of elements in the input or its padding (Caffe's rule), not by "
              "those in the input alone"}};
_Static_assert(CNR_ROWS(ops_average_pool_attrs) == OPS_AVERAGE_POOL_N_ATTRS, "the schema's length");

static const cnr_port in[] = {{.name = "x", .help = "N C and one to three spatial axes"}};
static const cnr_port out[] = {{.name = "y", .help = "the mean of each window"}};
static const char *const aliases[] = {"avgpool", "avg_pool", NULL};

double ops_average_divisor(const ops_geometry *g, int count_include_pad, const int64_t *o) {
    double n = 1;
    for (int a = 0; a < 3; a++) {
        int64_t first, last;
        ops_taps(g, a, o[a], &first, &last);
        if (count_include_pad) { /* positions beyond the edge due to ceil_mode are not padding */
            const int64_t room = g->in[a] + g->e[a] - (o[a] * g->s[a] - g->p[a]);
            first = 0;
            last = room <= 0 ? 0 : (room + g->d[a] - 1) / g->d[a];
            if (last > g->k[a]) last = g->k[a];
        }
        n *= (double)(last - first);
    }
    return n;
}

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return ops_pool_infer(node, OPS_FLOATS, outputs, err);
}

OPS_INLINE double mean(const ops_geometry *g, int32_t dtype, const void *x, int64_t base,
                       const int64_t *o, double include) {
    double sum = 0;
    OPS_EACH_TAP(g, o, index, sum += ops_get(dtype, x, base + index));
    const double many = ops_average_divisor(g, include != 0, o);
    return many > 0 ? sum / many : 0;
}

/* Method reference of average_pool: the mean of each window. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    ops_geometry g;
    const cnr_status status = ops_pool_geometry(run, x, &g, err);
    if (status != CNR_OK) return status;
    const double include = (double)cnr_attr_int(run->node, "count_include_pad");
    OPS_SPECIALISE(x->dtype, ops_pool_body(run, &g, dtype, mean, include));
    return CNR_OK;
}

/* Method gradient: adds a node average_pool_grad that computes the wanted gradient of the input. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    return ops_grad_of_input("average_pool_grad", host, graph, node, inputs, outputs, grad_out,
                             want, grad_in, err);
}

const cnr_op ops_average_pool = {
    CNR_OP_SIZES,
    .name = "average_pool",
    .summary = "The mean of each window.",
    .aliases = aliases,
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    .n_attrs = OPS_AVERAGE_POOL_N_ATTRS,
    .attrs = ops_average_pool_attrs,
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = ops_pool_cost,
    .split_axes = ops_split_all,
    .input_range = ops_pool_region,
    .gradient = gradient,
    .reference = reference,
};
