/* Pooling, padding and resizing. */
#include "torch7.h"

/* Adds a padding with actual zeros, which sums count too, and clears pad; returns the padded
 * value. */
static cnr_value with_border(t7_job *j, const int64_t kernel[2], const int64_t stride[2],
                             int64_t pad[4], int ceil) {
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    int64_t pads[8] = {0, 0, pad[0], pad[1], 0, 0, pad[2], pad[3]};
    imp_attrs l = {.n = 0};
    for (int i = 0; ceil && x && i < 2; i++) {
        const int64_t n = x->rank == 4 ? x->dim[2 + i] + 2 * pad[i] - kernel[i] : -1;
        if (x->dim[2 + i] < 1 || n < 0) return t7_problem(j, "sums want known sizes here"), -1;
        /* where the last window begins */
        int64_t last = (n + stride[i] - 1) / stride[i] * stride[i];
        if (last >= x->dim[2 + i] + pad[i]) last -= stride[i];
        if (last > n) pads[6 + i] += last - n;
    }
    imp_ints(&l, "pads", pads, 8);
    memset(pad, 0, 4 * sizeof pad[0]);
    return t7_op(j, "pad", ".border", &j->x, 1, &l);
}

/* Whether ceil mode gives a window without pixels; Torch returns -inf there. */
static int hangs_over(t7_job *j, const int64_t kernel[2], const int64_t stride[2],
                      const int64_t pad[4]) {
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    for (int i = 0; x && x->rank == 4 && i < 2; i++) {
        const int64_t n = x->dim[2 + i];
        if (pad[0] || pad[1] || kernel[i] >= stride[i]) continue;
        if (n < 0 || (n - kernel[i] + stride[i] - 1) / stride[i] * stride[i] >= n) return 1;
    }
    return 0;
}

/* Converts SpatialMaxPooling and SpatialAveragePooling; what does not fit is noted as a problem and
 * sets j->failed. */
static void pooling(t7_job *j) {
    const int max = strcmp(j->kind, "SpatialMaxPooling") == 0;
    const int divide = max || t7_bool(j->m, "divide", 1), ceil = t7_bool(j->m, "ceil_mode", 0);
    int64_t kernel[2], stride[2], pad[4];
    imp_attrs l = {.n = 0};
    if (!t7_window(j, &l, kernel, stride, pad)) return;
    if (ceil && hangs_over(j, kernel, stride, pad))
        return t7_problem(j, "its last window lies outside of its input");
    cnr_value x = j->x;
    if (!divide && (ceil || pad[0] || pad[1])) x = with_border(j, kernel, stride, pad, ceil);
    if (j->failed) return;
    imp_bool(&l, "ceil_mode", divide && ceil);
    if (!max) imp_bool(&l, "count_include_pad", t7_bool(j->m, "count_include_pad", 1));
    cnr_value y = t7_op(j, max ? "max_pool" : "average_pool", divide ? "" : ".mean", &x, 1, &l);
    if (!divide) y = imp_affine(&j->net->b, j->name, y, (double)(kernel[0] * kernel[1]), 0);
    t7_give(j, y);
}

/* Converts SpatialAdaptiveAveragePooling and SpatialAdaptiveMaxPooling; what does not fit is noted
 * as a problem and sets j->failed. */
static void adaptive_pooling(t7_job *j) {
    const int64_t size[] = {t7_int(j->m, "H", 0), t7_int(j->m, "W", 0)};
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    int64_t step[2];
    if (!strstr(j->kind, "Max"))
        return t7_give(j, imp_adaptive_average(&j->net->b, j->name, j->x, size));
    if (size[0] == 1 && size[1] == 1) return t7_give_op(j, "global_max_pool", NULL);
    for (int i = 0; i < 2; i++) {
        if (!x || x->rank != 4 || x->dim[2 + i] < 1 || size[i] < 1 || x->dim[2 + i] % size[i])
            return t7_problem(j, "its sizes do not divide its input's, or are not known");
        step[i] = x->dim[2 + i] / size[i];
    }
    imp_attrs l = {.n = 0};
    imp_ints(&l, "kernel_shape", step, 2);
    imp_ints(&l, "strides", step, 2);
    t7_give_op(j, "max_pool", &l);
}

/* Converts SpatialZeroPadding, reflection and replication; negative pads crop. */
static void spatial_padding(t7_job *j) {
    static const char *const modes[][2] = {{"SpatialReflectionPadding", "reflect"},
                                           {"SpatialReplicationPadding", "edge"}};
    const int64_t l = t7_int(j->m, "pad_l", 0), r = t7_int(j->m, "pad_r", 0);
    const int64_t t = t7_int(j->m, "pad_t", 0), b = t7_int(j->m, "pad_b", 0);
    const int64_t pads[] = {0, 0, t, l, 0, 0, b, r};
    imp_attrs a = {.n = 0};
    imp_ints(&a, "pads", pads, 8);
    for (int i = 0; i < 2; i++)
        if (strcmp(modes[i][0], j->kind) == 0) imp_enum(&a, "mode", modes[i][1]);
    t7_give_op(j, "pad", &a);
}

/* Converts ShaveImage: crops a border of `size` pixels; what does not fit is noted as a problem and
 * sets j->failed. */
static void shave(t7_job *j) {
    const int64_t n = t7_int(j->m, "size", 0), axes[] = {2, 3}, from[] = {n, n}, to[] = {-n, -n};
    imp_attrs l = {.n = 0};
    if (n < 0) return t7_problem(j, "size is wrong");
    if (n == 0) return t7_give(j, j->x);
    imp_ints(&l, "starts", from, 2);
    imp_ints(&l, "ends", to, 2);
    imp_ints(&l, "axes", axes, 2);
    t7_give_op(j, "slice", &l);
}

/* nn.Padding(dim, pad, nInputDim, value, index): pads at the end; a negative pad: at the
 * beginning. */
static void padding(t7_job *j) {
    const int64_t pad = t7_int(j->m, "pad", 0);
    const cnr_tensor *x = imp_type(&j->net->b, j->x);
    const int64_t given = t7_int(j->m, "nInputDim", 0);
    const int64_t axis = t7_axis(j, t7_int(j->m, "dim", 0), x && given == x->rank ? 0 : given);
    int64_t pads[2 * CNR_MAX_RANK] = {0};
    if (j->failed || axis < 0) return;
    if (t7_int(j->m, "index", 1) != 1) return t7_problem(j, "index other than 1");
    pads[axis + (pad > 0 ? x->rank : 0)] = pad < 0 ? -pad : pad;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "pads", pads, 2 * x->rank);
    imp_float(&l, "value", t7_number(j->m, "value", 0));
    t7_give_op(j, "pad", &l);
}

/* Converts SpatialUpSamplingNearest and bilinear by a whole factor; what does not fit is noted as a
 * problem and sets j->failed. */
static void upsampling(t7_job *j) {
    const int64_t scale = t7_int(j->m, "scale_factor", 0);
    if (scale < 1 || scale > 1 << 10) return t7_problem(j, "scale_factor is wrong");
    t7_give(j, imp_upscale(&j->net->b, j->name, j->x, scale, strstr(j->kind, "Bilinear") != NULL));
}

const t7_row *t7_window_row(const char *kind) {
    static const t7_row rows[] = {
        IMP_LAYER("Padding", padding),
        IMP_LAYER("ShaveImage", shave),
        IMP_LAYER("SpatialAdaptiveAveragePooling", adaptive_pooling),
        IMP_LAYER("SpatialAdaptiveMaxPooling", adaptive_pooling),
        IMP_LAYER("SpatialAveragePooling", pooling),
        IMP_LAYER("SpatialMaxPooling", pooling),
        IMP_LAYER("SpatialReflectionPadding", spatial_padding),
        IMP_LAYER("SpatialReplicationPadding", spatial_padding),
        IMP_LAYER("SpatialUpSamplingBilinear", upsampling),
        IMP_LAYER("SpatialUpSamplingNearest", upsampling),
        IMP_LAYER("SpatialZeroPadding", spatial_padding),
    };
    return IMP_ROW_OF(rows, kind);
}
