/* average_pool: the mean of each window. */
#include "ops_window.h"

const cnr_attr_spec ops_average_pool_attrs[] = {
    OPS_POOL_ROWS, OPS_WINDOW_ROWS,
    {.name = "count_include_pad", .type = CNR_ATTR_BOOL,
     .help = "divide by the window's part that lies in the input or its padding (Caffe's rule), "
             "not by the part in the input alone"}};
_Static_assert(OPS_ROWS(ops_average_pool_attrs) == OPS_AVERAGE_POOL_N_ATTRS, "the schema's length");

static const cnr_port in[] = {{.name = "x", .help = "N C and one to three spatial axes"}};
static const cnr_port out[] = {{.name = "y", .help = "the mean of each window"}};
static const char *const aliases[] = {"avgpool", "avg_pool", NULL};

double ops_average_divisor(const ops_geometry *g, int count_include_pad, const int64_t *o) {
    double n = 1;
    for (int a = 0; a < 3; a++) {
        int64_t first, last;
        ops_taps(g, a, o[a], &first, &last);
        if (count_include_pad) { /* taps over the edge that ceil_mode allows are in no padding */
            const int64_t room = g->in[a] + g->e[a] - (o[a] * g->s[a] - g->p[a]);
            first = 0;
            last = room <= 0 ? 0 : (room + g->d[a] - 1) / g->d[a];
            if (last > g->k[a]) last = g->k[a];
        }
        n *= (double)(last - first);
    }
    return n;
}

static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return ops_pool_infer(node, OPS_FLOATS, outputs, err);
}

OPS_INLINE void body(const cnr_run *run, const ops_geometry *g, int32_t dtype) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int include = cnr_attr_int(run->node, "count_include_pad") != 0;
    int64_t o[3];
    for (int64_t n = g->lo[0]; n < g->hi[0]; n++)
        for (int64_t c = g->lo[1]; c < g->hi[1]; c++) {
            const int64_t from = (n * g->c + c) * ops_volume(g->in);
            const int64_t to = (n * g->c + c) * ops_volume(g->out);
            if (ops_cancelled(run)) return;
            for (o[0] = g->lo[2]; o[0] < g->hi[2]; o[0]++)
                for (o[1] = g->lo[3]; o[1] < g->hi[3]; o[1]++)
                    for (o[2] = g->lo[4]; o[2] < g->hi[4]; o[2]++) {
                        double sum = 0;
                        OPS_EACH_TAP(g, o, index, sum += ops_get(dtype, x->data, from + index));
                        const double many = ops_average_divisor(g, include, o);
                        ops_put(dtype, y->data, to + (o[0] * g->out[1] + o[1]) * g->out[2] + o[2],
                                many > 0 ? sum / many : 0);
                    }
        }
}

static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    cnr_window w;
    ops_geometry g;
    const cnr_status status = ops_pool_window(run->node, x, &w, err);
    if (status != CNR_OK) return status;
    ops_geometry_of(&w, x, run, &g);
    OPS_SPECIALISE(x->dtype, body(run, &g, dtype));
    return CNR_OK;
}

static cnr_status gradient(OPS_GRADIENT_ARGS) {
    return ops_grad_of_input("average_pool_grad", host, graph, node, inputs, outputs, grad_out,
                             want, grad_in, err);
}

const cnr_op ops_average_pool = {
    OPS_SIZES,
    .name = "average_pool",
    .summary = "The mean of each window.",
    .aliases = aliases,
    .flags = CNR_OP_PURE,
    .n_attrs = OPS_AVERAGE_POOL_N_ATTRS,
    .attrs = ops_average_pool_attrs,
    OPS_PORTS(in, out),
    .infer = infer,
    .cost = ops_pool_cost,
    .split_axes = ops_pool_split,
    .region = ops_pool_region,
    .gradient = gradient,
    .reference = reference,
};
