/* window_variance: variance of each window's pixels; the CPU kernel uses integral images. */
#include "ops.h"

static const cnr_port in[] = {{.name = "x", .help = "a grey picture: u8, height x width"},
                              {.name = "windows", .help = "i32, n x 4: x, y, width, height"}};
static const cnr_port out[] = {{.name = "y", .help = "f32, n"}};

/* Checks types and ranks of the inputs; the output has one f32 for each window. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(tld_want(node, 0, CNR_u8, 2, err));
    CNR_TRY(tld_want(node, 1, CNR_i32, 2, err));
    CNR_TRY(tld_want_size(node, 1, 1, 4, err));
    tld_by_window(node, outputs);
    return CNR_OK;
}

/* Sets c->flops: four for each pixel and twelve for each window. */
static void cost(const cnr_node *node, cnr_cost *c) {
    c->flops = (uint64_t)(cnr_count(node->inputs[0]) * 4 + node->outputs[0]->dim[0] * 12);
}

/* Variance of each window of the run's range; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    int64_t lo, hi;
    (void)err;
    tld_range(run, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) {
        const tld_window4 w =
            tld_within((const int32_t *)run->node->inputs[1]->data + 4 * i, x->dim[1], x->dim[0]);
        const double n = (double)w.w * (double)w.h;
        double sum = 0, squares = 0;
        for (int64_t r = 0; r < w.h; r++)
            for (int64_t c = 0; c < w.w; c++) {
                const double v = ((const uint8_t *)x->data)[(w.y + r) * x->dim[1] + w.x + c];
                sum += v;
                squares += v * v;
            }
        ((float *)run->outputs[0]->data)[i] = n > 0 ? (float)((squares - sum * sum / n) / n) : 0;
    }
    return CNR_OK;
}

const cnr_op tld_op_window_variance = {CNR_OP_SIZES,
                                       .name = "window_variance",
                                       .summary = "The variance of each window of a picture.",
                                       .flags = CNR_OP_PURE | CNR_OP_RANGES,
                                       CNR_OP_PORTS(in, out),
                                       .infer = infer,
                                       .cost = cost,
                                       .split_axes = tld_split_windows,
                                       .input_range = tld_region_of,
                                       .reference = reference};

/* ---- CPU kernel ---- */

/* Elements of an integral image of x. */
static uint64_t corners_of(const cnr_tensor *x) {
    return (uint64_t)((x->dim[0] + 1) * (x->dim[1] + 1));
}

/* Takes pictures below 2^26 pixels. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *a) {
    (void)device;
    if (cnr_count(node->inputs[0]) >= 1 << 26)
        return cnr_refuse(a, "sums of so many pixels want more bits");
    cnr_take(node, a, 500);
    a->ranges = 1;
    return CNR_OK;
}

/* Sets the workspace to room for the integral images of sums and squares. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)state;
    (void)err;
    workspace->bytes = corners_of(node->inputs[0]) * 12 + 64;
    return CNR_OK;
}

/* Task i of the cnr_run `arg`: variance of some windows, from the integral images. */
static void part(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *x = run->node->inputs[0];
    const uint64_t *squares = run->workspace_data;
    const uint32_t *sums = (const uint32_t *)(squares + corners_of(x));
    const int64_t wide = x->dim[1] + 1;
    int64_t lo, hi;
    (void)thread;
    tld_range(run, &lo, &hi);
    lo += i * TLD_PART;
    hi = cnr_min(hi, lo + TLD_PART);
    for (int64_t k = lo; k < hi; k++) {
        const tld_window4 w =
            tld_within((const int32_t *)run->node->inputs[1]->data + 4 * k, x->dim[1], x->dim[0]);
        const int64_t a = w.y * wide + w.x, b = a + w.w, c = a + w.h * wide, d = c + w.w;
        const double n = (double)w.w * (double)w.h;
        const double s = (double)(uint32_t)(sums[d] - sums[c] - sums[b] + sums[a]);
        const double q = (double)(squares[d] - squares[c] - squares[b] + squares[a]);
        ((float *)run->outputs[0]->data)[k] = n > 0 ? (float)((q - s * s / n) / n) : 0;
    }
}

/* Integrates, then computes all windows on the stream's threads; returns CNR_OK. */
static cnr_status run_cpu(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    uint64_t *squares = run->workspace_data;
    int64_t lo, hi;
    (void)err;
    tld_v->integrate(x->data, x->dim[1], (int32_t)x->dim[1], (int32_t)x->dim[0],
                     (uint32_t *)(squares + corners_of(x)), squares);
    tld_range(run, &lo, &hi);
    cnr_parallel(run->stream, cnr_div_up(hi - lo, TLD_PART), part, (void *)run);
    return CNR_OK;
}

const cnr_kernel tld_cpu_window_variance = {.size = sizeof(cnr_kernel),
                                            .version = 1,
                                            .name = "window_variance_integral",
                                            .op = "window_variance",
                                            .device = "cpu",
                                            .accepts = accepts,
                                            .plan = plan,
                                            .plan_free = tld_unplan,
                                            .run = run_cpu};
