/* normalized_cross_correlation: each row of a with each row of b, -1 to 1. */
#include "ops.h"
#include <math.h>

static const cnr_port in[] = {{.name = "a", .help = "f32, m x k: patches"},
                              {.name = "b", .help = "f32, n x k: others"}};
static const cnr_port out[] = {{.name = "y", .help = "f32, m x n; 0 where a patch is constant"}};

/* Output 0: f32 of rows of a x rows of b; fails unless both are f32 matrices of as many columns. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(tld_want(node, 0, CNR_f32, 2, err));
    CNR_TRY(tld_want(node, 1, CNR_f32, 2, err));
    CNR_TRY(tld_want_size(node, 1, 1, node->inputs[0]->dim[1], err));
    outputs[0]->dtype = CNR_f32;
    outputs[0]->rank = 2;
    outputs[0]->dim[0] = node->inputs[0]->dim[0];
    outputs[0]->dim[1] = node->inputs[1]->dim[0];
    return CNR_OK;
}

/* Sets c->macs to the multiply-accumulates. */
static void cost(const cnr_node *node, cnr_cost *c) {
    c->macs = (uint64_t)(cnr_count(node->outputs[0]) * node->inputs[0]->dim[1]);
}

/* Rows of a that output rows need; all of b. */
static void region(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *r) {
    (void)node;
    (void)axis;
    *r = port == 0 ? (cnr_input_range){0, begin, end} : (cnr_input_range){-1, 0, 0};
}

/* 1 / norm of a row less its mean, which *mean receives; 0 for a constant row: one whose deviation
 * is within f32's rounding. */
static double scale_of(const float *v, int64_t n, double *mean) {
    double sum = 0, squares = 0, most = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)v[i];
    *mean = n ? sum / (double)n : 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = (double)v[i] - *mean;
        squares += d * d;
        most = fmax(most, fabs((double)v[i]));
    }
    return squares > 1e-10 * most * most * (double)n ? 1 / sqrt(squares) : 0;
}

/* Correlation of each row of a with each row of b; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *a = run->node->inputs[0], *b = run->node->inputs[1];
    const int64_t k = a->dim[1], n = b->dim[0];
    int64_t lo, hi;
    (void)err;
    tld_range(run, &lo, &hi);
    for (int64_t i = lo; i < hi; i++)
        for (int64_t j = 0; j < n; j++) {
            const float *p = (const float *)a->data + i * k, *q = (const float *)b->data + j * k;
            double mp, mq, sum = 0;
            const double sp = scale_of(p, k, &mp), sq = scale_of(q, k, &mq);
            for (int64_t c = 0; c < k; c++) sum += ((double)p[c] - mp) * ((double)q[c] - mq);
            ((float *)run->outputs[0]->data)[i * n + j] = (float)(sum * sp * sq);
        }
    return CNR_OK;
}

const cnr_op tld_op_correlation =
    {CNR_OP_SIZES,
     .name = "normalized_cross_correlation",
     .summary = "Normalised cross-correlation of each patch of a with each patch of b.",
     .flags = CNR_OP_PURE | CNR_OP_RANGES,
     CNR_OP_PORTS(in, out),
     .infer = infer,
     .cost = cost,
     .split_axes = tld_split_windows,
     .input_range = region,
     .reference = reference};

/* ---- CPU kernel: normalises both sides, then multiplies ---- */

/* Takes patches of at most 240 numbers. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *a) {
    (void)device;
    if (node->inputs[0]->dim[1] > TLD_PATCH_PITCH)
        return cnr_refuse(a, "patches of 240 numbers at most");
    if (cnr_max(node->inputs[0]->dim[0], node->inputs[1]->dim[0]) > INT32_MAX / TLD_PATCH_PITCH)
        return cnr_refuse(a, "fewer patches are wanted");
    cnr_take(node, a, 500);
    a->ranges = 1;
    return CNR_OK;
}

/* Sets the workspace to room for the normalised rows of both inputs. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)state;
    (void)err;
    workspace->bytes = (uint64_t)(node->inputs[0]->dim[0] + node->inputs[1]->dim[0]) *
                       TLD_PATCH_PITCH * sizeof(float);
    return CNR_OK;
}

enum { ROWS = 16 };

/* Task i of the cnr_run `arg`: normalises some rows of both inputs into the workspace. */
static void normalise(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *a = run->node->inputs[0], *b = run->node->inputs[1];
    const int64_t k = a->dim[1], all = a->dim[0] + b->dim[0];
    (void)thread;
    for (int64_t row = i * ROWS; row < cnr_min(all, (i + 1) * ROWS); row++) {
        const float *from = row < a->dim[0] ? (const float *)a->data + row * k
                                            : (const float *)b->data + (row - a->dim[0]) * k;
        float *to = (float *)run->workspace_data + row * TLD_PATCH_PITCH;
        double mean;
        const double scale = scale_of(from, k, &mean);
        for (int64_t c = 0; c < k; c++) to[c] = (float)(((double)from[c] - mean) * scale);
        memset(to + k, 0, (size_t)(TLD_PATCH_PITCH - k) * sizeof *to);
    }
}

/* Task i of the cnr_run `arg`: products of some normalised rows of input 0 with all of input 1. */
static void multiply(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const int64_t n = run->outputs[0]->dim[1];
    const float *room = run->workspace_data;
    int64_t lo, hi;
    (void)thread;
    tld_range(run, &lo, &hi);
    lo += i * ROWS;
    hi = cnr_min(hi, lo + ROWS);
    tld_v->products(room + lo * TLD_PATCH_PITCH, (int32_t)(hi - lo),
                    room + run->outputs[0]->dim[0] * TLD_PATCH_PITCH, (int32_t)n,
                    (float *)run->outputs[0]->data + lo * n);
}

/* Normalises, then multiplies on the stream's threads; returns CNR_OK. */
static cnr_status run_cpu(const cnr_run *run, cnr_error *err) {
    const int64_t all = run->node->inputs[0]->dim[0] + run->node->inputs[1]->dim[0];
    int64_t lo, hi;
    (void)err;
    tld_range(run, &lo, &hi);
    cnr_parallel(run->stream, cnr_div_up(all, ROWS), normalise, (void *)run);
    cnr_parallel(run->stream, cnr_div_up(hi - lo, ROWS), multiply, (void *)run);
    return CNR_OK;
}

const cnr_kernel tld_cpu_correlation = {.size = sizeof(cnr_kernel),
                                        .version = 1,
                                        .name = "correlation_f32",
                                        .op = "normalized_cross_correlation",
                                        .device = "cpu",
                                        .accepts = accepts,
                                        .plan = plan,
                                        .plan_free = tld_unplan,
                                        .run = run_cpu};
