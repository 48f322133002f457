/* random_ferns: codes from comparisons of pixels of each window, and the mean of their
 * posteriors. */
#include "ops.h"
#include <math.h>

static const cnr_attr_spec attrs[] = {
    {.name = "least",
     .type = CNR_ATTR_FLOAT,
     .help = "windows whose gate is below this get 0 without evaluation"}};
static const cnr_port in[] =
    {{.name = "x", .help = "a blurred grey picture: u8, height x width"},
     {.name = "windows", .help = "i32, n x 4: x, y, width, height"},
     {.name = "points",
      .help = "f32, ferns x comparisons x 4: x, y of two points in the window, 0 to 1"},
     {.name = "posteriors", .help = "f32, ferns x codes; larger codes wrap around"},
     {.name = "gate",
      .flags = CNR_PORT_OPTIONAL,
      .help = "f32, n: the result of an earlier stage"}};
static const cnr_port out[] = {{.name = "y", .help = "f32, n: mean posteriors"}};

/* Checks types and ranks of the inputs; the output has one f32 for each window. */
static cnr_status infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    static const int32_t dtypes[] = {CNR_u8, CNR_i32, CNR_f32, CNR_f32, CNR_f32},
                         ranks[] = {2, 2, 3, 2, 1};
    for (int32_t i = 0; i < 5; i++)
        if (i < 4 || (node->n_inputs > 4 && node->inputs[4]))
            CNR_TRY(tld_want(node, i, dtypes[i], ranks[i], err));
    const cnr_tensor *const *x = node->inputs;
    CNR_TRY(tld_want_size(node, 1, 1, 4, err));
    CNR_TRY(tld_want_size(node, 2, 2, 4, err));
    CNR_TRY(tld_want_size(node, 3, 0, x[2]->dim[0], err));
    if (x[2]->dim[0] == 0 || x[3]->dim[1] == 0 || x[2]->dim[1] > 24)
        return tld_host->fail(err, CNR_E_LIMIT, node->name,
                              "want ferns, codes and at most 24 comparisons");
    if (node->n_inputs > 4 && x[4]) CNR_TRY(tld_want_size(node, 4, 0, x[1]->dim[0], err));
    tld_by_window(node, outputs);
    return CNR_OK;
}

/* Sets c->flops to one comparison for each window, fern and bit. */
static void cost(const cnr_node *node, cnr_cost *c) {
    c->flops = (uint64_t)(node->outputs[0]->dim[0] * cnr_count(node->inputs[2]));
}

/* The pixel at a point, 0 to 1, of the window; computed in float, so that GPUs round alike. */
static inline int seen(const cnr_tensor *x, tld_window4 w, float px, float py) {
    const float fx = fminf(fmaxf(px, 0), 1), fy = fminf(fmaxf(py, 0), 1);
    const float ax = fx * (float)(w.w - 1), ay = fy * (float)(w.h - 1);
    const int64_t ix = w.x + (int64_t)floorf(ax + 0.5f), iy = w.y + (int64_t)floorf(ay + 0.5f);
    return ((const uint8_t *)x->data)[iy * x->dim[1] + ix];
}

/* Mean posterior of the codes of window i, over all ferns; 0 for an empty window and where the gate
 * refuses it. */
static float score(const cnr_node *node, int64_t i) {
    const cnr_tensor *const *in_ = node->inputs, *x = in_[0];
    const float *p = in_[2]->data, *posterior = in_[3]->data;
    const int64_t ferns = in_[2]->dim[0], bits = in_[2]->dim[1], codes = in_[3]->dim[1];
    const tld_window4 w = tld_within((const int32_t *)in_[1]->data + 4 * i, x->dim[1], x->dim[0]);
    float sum = 0;
    if (w.w < 1 || w.h < 1) return 0;
    if (node->n_inputs > 4 && in_[4] &&
        ((const float *)in_[4]->data)[i] < (float)cnr_attr_float(node, "least"))
        return 0;
    for (int64_t f = 0; f < ferns; f++, posterior += codes) {
        int64_t code = 0;
        for (int64_t b = 0; b < bits; b++, p += 4)
            code = 2 * code + (seen(x, w, p[0], p[1]) > seen(x, w, p[2], p[3]));
        sum += posterior[code % codes];
    }
    return sum / (float)ferns;
}

/* Scores of the run's range of windows; returns CNR_OK. */
static cnr_status reference(const cnr_run *run, cnr_error *err) {
    int64_t lo, hi;
    (void)err;
    tld_range(run, &lo, &hi);
    for (int64_t i = lo; i < hi; i++) ((float *)run->outputs[0]->data)[i] = score(run->node, i);
    return CNR_OK;
}

const cnr_op tld_op_random_ferns = {CNR_OP_SIZES,
                                    .name = "random_ferns",
                                    .summary = "Windows scored by an ensemble of random ferns: "
                                               "comparisons of pixels, posteriors of codes.",
                                    .flags = CNR_OP_PURE | CNR_OP_RANGES,
                                    CNR_OP_ATTRS(attrs),
                                    CNR_OP_PORTS(in, out),
                                    .infer = infer,
                                    .cost = cost,
                                    .split_axes = tld_split_windows,
                                    .input_range = tld_region_of,
                                    .reference = reference};

/* ---- CPU kernel ---- */

enum { MOST_POINTS = 2 * 32 * 16 };

/* Takes pictures and ferns of a possible size. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *a) {
    (void)device;
    if (cnr_count(node->inputs[2]) > 2 * MOST_POINTS || cnr_count(node->inputs[0]) > INT32_MAX)
        return cnr_refuse(a, "fewer comparisons, and a smaller picture, are wanted");
    cnr_take(node, a, 500);
    a->ranges = 1;
    return CNR_OK;
}

/* Offsets of all points in a window of w x h. */
static void find_places(const cnr_node *node, int64_t w, int64_t h, int32_t *out) {
    const float *p = node->inputs[2]->data;
    const int64_t n = cnr_count(node->inputs[2]) / 2, pitch = node->inputs[0]->dim[1];
    for (int64_t k = 0; k < n; k++, p += 2) {
        const float ax = fminf(fmaxf(p[0], 0), 1) * (float)(w - 1),
                    ay = fminf(fmaxf(p[1], 0), 1) * (float)(h - 1);
        out[k] = (int32_t)((int64_t)floorf(ay + 0.5f) * pitch + (int64_t)floorf(ax + 0.5f));
    }
}

/* Task i of the cnr_run `arg`: windows of the same size are adjacent: point offsets are computed
 * once for all of them. */
static void part(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const cnr_tensor *const *in_ = run->node->inputs, *x = in_[0];
    const float *gate = run->node->n_inputs > 4 && in_[4] ? in_[4]->data : NULL;
    const float least = (float)cnr_attr_float(run->node, "least");
    const int64_t ferns = in_[2]->dim[0], bits = in_[2]->dim[1], codes = in_[3]->dim[1];
    int32_t at[MOST_POINTS];
    int64_t lo, hi, w_now = -1, h_now = -1;
    (void)thread;
    tld_range(run, &lo, &hi);
    lo += i * TLD_PART;
    hi = cnr_min(hi, lo + TLD_PART);
    for (int64_t k = lo; k < hi; k++) {
        const tld_window4 w =
            tld_within((const int32_t *)in_[1]->data + 4 * k, x->dim[1], x->dim[0]);
        const uint8_t *base = (const uint8_t *)x->data + w.y * x->dim[1] + w.x;
        const float *posterior = in_[3]->data;
        const int32_t *place = at;
        float sum = 0;
        ((float *)run->outputs[0]->data)[k] = 0;
        if (w.w < 1 || w.h < 1 || (gate && gate[k] < least)) continue;
        if (w.w != w_now || w.h != h_now) find_places(run->node, w_now = w.w, h_now = w.h, at);
        for (int64_t f = 0; f < ferns; f++, posterior += codes) {
            int64_t code = 0;
            for (int64_t b = 0; b < bits; b++, place += 2)
                code = 2 * code + (base[place[0]] > base[place[1]]);
            sum += posterior[code % codes];
        }
        ((float *)run->outputs[0]->data)[k] = sum / (float)ferns;
    }
}

/* Scores of all windows on the stream's threads; returns CNR_OK. */
static cnr_status run_cpu(const cnr_run *run, cnr_error *err) {
    int64_t lo, hi;
    (void)err;
    tld_range(run, &lo, &hi);
    cnr_parallel(run->stream, cnr_div_up(hi - lo, TLD_PART), part, (void *)run);
    return CNR_OK;
}

const cnr_kernel tld_cpu_random_ferns = {.size = sizeof(cnr_kernel),
                                         .version = 1,
                                         .name = "random_ferns_u8",
                                         .op = "random_ferns",
                                         .device = "cpu",
                                         .accepts = accepts,
                                         .run = run_cpu};
