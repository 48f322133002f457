/* gemm: alpha * a * b + beta * c on matrices, each optionally transposed. */
#include "ops_kit.h"

static const cnr_attr_spec attrs[] =
    {{.name = "alpha", .type = CNR_ATTR_FLOAT, .default_f = 1, .help = "scales the product"},
     {.name = "beta", .type = CNR_ATTR_FLOAT, .default_f = 1, .help = "scales c"},
     {.name = "transA", .type = CNR_ATTR_BOOL, .help = "a is K M"},
     {.name = "transB", .type = CNR_ATTR_BOOL, .help = "b is N K"}};
static const cnr_port in[] = {{.name = "a", .help = "M K"},
                              {.name = "b", .help = "K N"},
                              {.name = "c",
                               .flags = CNR_PORT_OPTIONAL,
                               .help = "broadcasts to M N"}};
static const cnr_port out[] = {{.name = "y", .help = "M N"}};

#define DTYPES (OPS_FLOATS | 1u << CNR_i32 | 1u << CNR_u32 | 1u << CNR_i64 | 1u << CNR_u64)

/* Method infer: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    const int ta = cnr_attr_int(node, "transA") != 0, tb = cnr_attr_int(node, "transB") != 0;
    CNR_TRY(ops_want(node, 0, DTYPES, 2, 2, err));
    CNR_TRY(ops_want(node, 1, DTYPES, 2, 2, err));
    const cnr_tensor *a = node->inputs[0], *b = node->inputs[1], *c = cnr_own_input(node, 2);
    cnr_tensor *y = outputs[0];
    if (a->dtype != b->dtype || (c && c->dtype != a->dtype))
        return ops_fail(err, CNR_E_SHAPE, node, "a, b and c must have one type");
    if (!ops_dims_agree(a->dim[ta ? 0 : 1], b->dim[tb ? 1 : 0]))
        return ops_fail(err, CNR_E_SHAPE, node, "rows of %lld by columns of %lld",
                        (long long)a->dim[ta ? 0 : 1], (long long)b->dim[tb ? 1 : 0]);
    y->dtype = a->dtype;
    y->rank = 2;
    y->dim[0] = a->dim[ta ? 1 : 0];
    y->dim[1] = b->dim[tb ? 0 : 1];
    if (c && c->rank > 2) return ops_fail(err, CNR_E_SHAPE, node, "c: want rank 0 to 2");
    for (int32_t i = 0; c && i < c->rank; i++) {
        const int64_t have = c->dim[i], want = y->dim[2 - c->rank + i];
        if (have != 1 && !ops_dims_agree(have, want))
            return ops_fail(err, CNR_E_SHAPE, node, "c: %lld does not broadcast to %lld",
                            (long long)have, (long long)want);
    }
    return CNR_OK;
}

/* Method cost: counts the multiply-adds of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const uint64_t outputs = ops_elements(node->outputs[0]);
    const int64_t k = node->inputs[0]->dim[cnr_attr_int(node, "transA") ? 0 : 1];
    c->macs = ops_mul(outputs, k < 0 ? 0 : (uint64_t)k);
    c->flops = cnr_own_input(node, 2) ? outputs : 0;
}

/* Method region: *r receives the part of input `port` that [begin, end) of the output's axis
 * needs; axis -1: all. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    *r = (cnr_input_range){.axis = -1};
    if (port == 0 && axis == 0)
        *r = (cnr_input_range){cnr_attr_int(node, "transA") ? 1 : 0, begin, end};
    if (port == 1 && axis == 1)
        *r = (cnr_input_range){cnr_attr_int(node, "transB") ? 0 : 1, begin, end};
    if (port == 2) {
        const cnr_tensor *c = cnr_own_input(node, 2);
        const int32_t own = c ? axis - (2 - c->rank) : -1;
        if (own >= 0 && c->dim[own] != 1) *r = (cnr_input_range){own, begin, end};
    }
}

/* Method linear: *l receives the ports of weight and bias; 0: the node is not linear in them. */
static int32_t linear(const cnr_node *node, cnr_linear *l) {
    const cnr_tensor *c = cnr_own_input(node, 2);
    if (cnr_attr_float(node, "alpha") != 1 || cnr_attr_float(node, "beta") != 1) return 0;
    if (c && (c->rank != 1 || c->dim[0] != node->outputs[0]->dim[1])) return 0;
    *l = (cnr_linear){.weight_port = 1,
                      .bias_port = 2,
                      .weight_axis = cnr_attr_int(node, "transB") ? 0 : 1};
    return 1;
}

/* Adds a gemm of a and b without C, transposed by ta and tb and scaled by alpha; returns its
 * output, or -1. */
static cnr_value product(kit_build *build, cnr_value a, cnr_value b, int ta, int tb, double alpha) {
    const cnr_value in_ab[] = {a, b};
    const cnr_attr list[] = {kit_attr_int("transA", ta), kit_attr_int("transB", tb),
                             kit_attr_float("alpha", alpha)};
    return kit_node(build, "gemm", in_ab, 2, list, 3);
}

/* Method gradient: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status gradient(OPS_GRADIENT_ARGS) {
    const int ta = cnr_attr_int(node, "transA") != 0, tb = cnr_attr_int(node, "transB") != 0;
    const double alpha = cnr_attr_float(node, "alpha"), beta = cnr_attr_float(node, "beta");
    const cnr_value dy = grad_out[0], a = inputs[0], b = inputs[1];
    kit_build build = {.host = host, .graph = graph};
    (void)outputs;
    if (dy < 0) return CNR_OK;
    if (want[0])
        grad_in[0] =
            ta ? product(&build, b, dy, tb, 1, alpha) : product(&build, dy, b, 0, !tb, alpha);
    if (want[1])
        grad_in[1] =
            tb ? product(&build, dy, a, 1, ta, alpha) : product(&build, a, dy, !ta, 0, alpha);
    if (node->n_inputs > 2 && want[2]) {
        grad_in[2] = kit_unbroadcast(&build, dy, node->outputs[0], node->inputs[2]);
        if (beta != 1)
            grad_in[2] = kit_node2(&build, "mul", grad_in[2],
                                   kit_constant(&build, node->inputs[2]->dtype, beta));
    }
    return build.status == CNR_OK ? CNR_OK
                                  : ops_fail(err, build.status, node, "cannot add its gradient");
}

/* Sizes, range and steps of a product. */
typedef struct problem {
    int64_t m, n, k, lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    int64_t a_row, a_step, b_column, b_step, c_row, c_column;
    double alpha, beta;
} problem;

/* Sizes, range and steps of the run's product. */
static problem problem_of(const cnr_run *run) {
    const cnr_node *node = run->node;
    const int ta = cnr_attr_int(node, "transA") != 0, tb = cnr_attr_int(node, "transB") != 0;
    const cnr_tensor *a = node->inputs[0], *b = node->inputs[1], *c = cnr_own_input(node, 2);
    problem p = {.m = a->dim[ta ? 1 : 0],
                 .k = a->dim[ta ? 0 : 1],
                 .n = b->dim[tb ? 0 : 1],
                 .alpha = cnr_attr_float(node, "alpha"),
                 .beta = cnr_attr_float(node, "beta")};
    p.a_row = ta ? 1 : p.k;
    p.a_step = ta ? p.m : 1;
    p.b_column = tb ? p.k : 1;
    p.b_step = tb ? 1 : p.n;
    if (c && c->rank > 0 && c->dim[c->rank - 1] != 1) p.c_column = 1;
    if (c && c->rank == 2 && c->dim[0] != 1) p.c_row = c->dim[1];
    cnr_range_of(run, p.lo, p.hi);
    return p;
}

OPS_INLINE void body(const cnr_run *run, const problem *p, int32_t dtype) {
    const void *a = run->node->inputs[0]->data, *b = run->node->inputs[1]->data;
    const cnr_tensor *c = cnr_own_input(run->node, 2);
    for (int64_t i = p->lo[0]; i < p->hi[0]; i++) {
        if (ops_cancelled(run)) return;
        for (int64_t j = p->lo[1]; j < p->hi[1]; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += ops_get(dtype, a, i * p->a_row + k * p->a_step) *
                       ops_get(dtype, b, j * p->b_column + k * p->b_step);
            sum *= p->alpha;
            if (c) sum += p->beta * ops_get(dtype, c->data, i * p->c_row + j * p->c_column);
            ops_put(dtype, run->outputs[0]->data, i * p->n + j, sum);
        }
    }
}

/* The product in a whole type: integers wrap, and sums are unsigned, since signed overflow is
 * undefined. */
static void body_integer(const cnr_run *run, const problem *p, int32_t dtype) {
    const void *a = run->node->inputs[0]->data, *b = run->node->inputs[1]->data;
    const cnr_tensor *c = cnr_own_input(run->node, 2);
    for (int64_t i = p->lo[0]; i < p->hi[0]; i++) {
        if (ops_cancelled(run)) return;
        for (int64_t j = p->lo[1]; j < p->hi[1]; j++) {
            uint64_t sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += (uint64_t)ops_get_int(dtype, a, i * p->a_row + k * p->a_step) *
                       (uint64_t)ops_get_int(dtype, b, j * p->b_column + k * p->b_step);
            if (c) sum += (uint64_t)ops_get_int(dtype, c->data, i * p->c_row + j * p->c_column);
            ops_put_int(dtype, run->outputs[0]->data, i * p->n + j, (int64_t)sum);
        }
    }
}

/* Method reference of gemm: alpha * a * b + beta * c on matrices, either one transposed; returns
 * CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const problem p = problem_of(run);
    const int32_t type = run->outputs[0]->dtype;
    (void)err;
    if (!ops_is_float(type) && p.alpha == 1 && p.beta == 1) body_integer(run, &p, type);
    else OPS_SPECIALISE(type, body(run, &p, dtype));
    return CNR_OK;
}

const cnr_op ops_gemm = {
    CNR_OP_SIZES,
    .name = "gemm",
    .summary = "alpha * a * b + beta * c on matrices, either one transposed.",
    .flags = CNR_OP_PURE | CNR_OP_RANGES,
    CNR_OP_ATTRS(attrs),
    CNR_OP_PORTS(in, out),
    .infer = infer,
    .cost = cost,
    .split_axes = ops_split_two,
    .input_range = region,
    .linear = linear,
    .gradient = gradient,
    .reference = reference,
};
