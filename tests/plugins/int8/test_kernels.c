/* int8: every kernel gives the bytes of its operator's reference, on drawn shapes and scales. */
#include "plugins/int8/int8call.h"

static const char *const isas[] = {"generic", "avx2", "avx512", "neon", "dotprod", "i8mm"};
enum { X_SCALE = 1, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS, SLOPE };

static int32_t byte_type(void) { return int8_draw(0, 1) ? CNR_u8 : CNR_i8; }

/* Adds a slope for negative results, one or one an output of m, to n inputs, or not; returns their
 * number. */
static int32_t with_slope(const cnr_tensor **in, int32_t n, int64_t m) {
    if (int8_draw(0, 2)) return n;
    const int each = int8_draw(0, 1);
    char dims[32];
    snprintf(dims, sizeof dims, "%lld", (long long)m);
    if (n == BIAS) in[BIAS] = NULL;
    in[SLOPE] = each ? int8_const(t_random(CNR_f32, dims, (uint64_t)int8_draw(1, 1 << 30)))
                     : int8_number(CNR_f32, 0.1);
    return SLOPE + 1;
}

/* The inputs of a layer of x with w; depth: products a sum. */
static int32_t layer_inputs(const cnr_tensor **in, cnr_tensor *x, cnr_tensor *w, int64_t depth) {
    const int32_t y_type = byte_type();
    const int64_t m = w->dim[0];
    const int each = int8_draw(0, 3) > 0;
    char dims[32];
    snprintf(dims, sizeof dims, "%lld", (long long)m);
    cnr_tensor *scale = each ? t_random(CNR_f32, dims, (uint64_t)int8_draw(1, 1 << 30))
                             : t_of(CNR_f32, "scalar", (double[]){0.01});
    for (int64_t i = 0; each && i < m; i++)
        ((float *)scale->data)[i] = 0.02f + 0.01f * ((float *)scale->data)[i];
    in[0] = x;
    in[X_SCALE] = int8_number(CNR_f32, 0.037);
    in[X_ZERO] = int8_number(x->dtype, (double)int8_draw(x->dtype == CNR_u8 ? 0 : -128,
                                                         x->dtype == CNR_u8 ? 255 : 127));
    in[W] = int8_const(w);
    in[W_SCALE] = int8_const(scale);
    in[W_ZERO] = int8_number(w->dtype, w->dtype == CNR_u8 ? 128 : 0);
    if (!int8_draw(0, 3)) {
        cnr_tensor *zero = t_type(w->dtype, each ? dims : "scalar");
        t_alloc(zero);
        for (int64_t i = 0; i < cnr_count(zero); i++)
            ((uint8_t *)zero->data)[i] = (uint8_t)int8_draw(0, 255);
        ((uint8_t *)zero->data)[0] = 5; /* never the middle of all */
        in[W_ZERO] = int8_const(zero);
    }
    /* some outputs saturate, some do not */
    in[Y_SCALE] =
        int8_number(CNR_f32, 0.037 * 0.02 * 70 * sqrt((double)depth) * (double)int8_draw(1, 4) / 2);
    in[Y_ZERO] = int8_number(y_type, (double)int8_draw(y_type == CNR_u8 ? 0 : -60, 90));
    if (!int8_draw(0, 3)) return with_slope(in, 8, m);
    cnr_tensor *bias = t_type(CNR_i32, dims);
    t_alloc(bias);
    for (int64_t i = 0; i < m; i++) ((int32_t *)bias->data)[i] = (int32_t)int8_draw(-9000, 9000);
    in[BIAS] = int8_const(bias);
    return with_slope(in, 9, m);
}

/* 1 if a weight is farther from its zero point than two signed bytes reach. */
static int is_wide(const cnr_tensor *const *in) {
    const int64_t each = cnr_count(in[W]) / in[W]->dim[0];
    for (int64_t i = 0; i < cnr_count(in[W]); i++) {
        const int64_t z = cnr_count(in[W_ZERO]) > 1 ? i / each : 0;
        const uint8_t *w = in[W]->data, *zero = in[W_ZERO]->data;
        const int far = in[W]->dtype == CNR_u8 ? w[i] - zero[z] : (int8_t)w[i] - (int8_t)zero[z];
        if (far > 254) return 1;
    }
    return 0;
}

/* Draws a convolution; 1: its kernels agree. */
static int draw_conv(const char *isa) {
    const int32_t spatial = (int32_t)int8_draw(1, 3);
    const int blocks = !int8_draw(0, 2), depthwise = blocks && int8_draw(0, 1);
    const int64_t groups = depthwise                   ? 8 * int8_draw(1, 6)
                           : int8_draw(0, 2) || blocks ? 1
                                                       : int8_draw(1, 4);
    int64_t x_dim[5] = {int8_draw(1, 3), groups * int8_draw(1, int8_draw(0, 4) ? 9 : 70)};
    int64_t w_dim[5] = {groups * int8_draw(1, 21), x_dim[1] / groups};
    if (blocks) {
        x_dim[1] = depthwise ? groups : 8 * int8_draw(1, 9);
        w_dim[0] = depthwise ? groups : 8 * int8_draw(1, 9);
        w_dim[1] = x_dim[1] / groups;
    }
    char attrs[256], strides[64] = "", dilations[64] = "", pads[64] = "", ends[64] = "";
    const int pointwise = !int8_draw(0, 2);
    int64_t depth = w_dim[1];
    for (int32_t i = 0; i < spatial; i++) {
        const int64_t k = pointwise ? 1 : int8_draw(1, spatial == 2 ? 7 : 4);
        const int64_t d = pointwise ? 1 : int8_draw(1, int8_draw(0, 2) ? 1 : 2);
        const int64_t reach = (k - 1) * d + 1;
        x_dim[2 + i] = reach + int8_draw(0, spatial == 1 ? 90 : spatial == 2 ? 17 : 6);
        w_dim[2 + i] = k;
        depth *= k;
        snprintf(strides + strlen(strides), 16, "%s%d", i ? "," : "",
                 pointwise ? 1 : (int)int8_draw(1, 3));
        snprintf(dilations + strlen(dilations), 16, "%s%d", i ? "," : "", (int)d);
        snprintf(pads + strlen(pads), 16, "%d,", pointwise ? 0 : (int)int8_draw(0, k));
        snprintf(ends + strlen(ends), 16, "%s%d", i ? "," : "",
                 pointwise ? 0 : (int)int8_draw(0, k));
    }
    snprintf(attrs, sizeof attrs, "group=%d; strides=%s; dilations=%s; pads=%s%s", (int)groups,
             strides, dilations, pads, ends);
    const cnr_tensor *in[10];
    const int32_t n = layer_inputs(in, int8_bytes(byte_type(), spatial + 2, x_dim),
                                   int8_bytes(byte_type(), spatial + 2, w_dim), depth);
    int good;
    const int taken = int8_run("qlinear_conv", attrs, n, in, &good);
    const int middle = *(const uint8_t *)in[W_ZERO]->data != 5;
    const int more = depthwise ? middle || !is_wide(in) : middle && groups == 1;
    if (taken == 1 + more && good) return 1;
    note("%s: x %lldx%lldx%lld.., w %lldx%lld, %s: %d kernels", isa, (long long)x_dim[0],
         (long long)x_dim[1], (long long)x_dim[2], (long long)w_dim[0], (long long)w_dim[1], attrs,
         taken);
    return 0;
}

/* Draws a dense layer; 1: its kernels agree. */
static int draw_dense(const char *isa) {
    const int64_t k = int8_draw(0, 3) ? int8_draw(1, 200) : 64 * int8_draw(1, 9);
    const int64_t x_dim[3] = {int8_draw(1, int8_draw(0, 1) ? 5 : 70), k % 4 ? 1 : 4,
                              k % 4 ? k : k / 4};
    const int64_t w_dim[2] = {int8_draw(1, 45), k};
    const cnr_tensor *in[10];
    const int32_t n =
        layer_inputs(in, int8_bytes(byte_type(), 3, x_dim), int8_bytes(byte_type(), 2, w_dim), k);
    int good;
    const int taken = int8_run("qlinear_dense", "", n, in, &good);
    if (taken == (x_dim[0] < 8 ? 1 : 2) && good) return 1;
    note("%s: dense %lld of %lld: %d kernels", isa, (long long)w_dim[0], (long long)k, taken);
    return 0;
}

/* Draws a pooling; 1: its kernels agree. */
static int draw_pool(const char *isa) {
    const int32_t spatial = (int32_t)int8_draw(1, 3);
    int64_t dim[5] = {int8_draw(1, 2), int8_draw(0, 1) ? int8_draw(1, 5) : 8 * int8_draw(1, 5)};
    char attrs[256], kernel[64] = "", strides[64] = "", pads[64] = "", ends[64] = "";
    for (int32_t i = 0; i < spatial; i++) {
        const int64_t k = int8_draw(1, 4);
        dim[2 + i] = k + int8_draw(0, spatial == 3 ? 5 : 40);
        snprintf(kernel + strlen(kernel), 16, "%s%d", i ? "," : "", (int)k);
        snprintf(strides + strlen(strides), 16, "%s%d", i ? "," : "", (int)int8_draw(1, 3));
        snprintf(pads + strlen(pads), 16, "%d,", (int)int8_draw(0, k - 1));
        snprintf(ends + strlen(ends), 16, "%s%d", i ? "," : "", (int)int8_draw(0, k - 1));
    }
    snprintf(attrs, sizeof attrs, "kernel_shape=%s; strides=%s; pads=%s%s; ceil_mode=%d", kernel,
             strides, pads, ends, (int)int8_draw(0, 1));
    const cnr_tensor *in[1] = {int8_bytes(byte_type(), spatial + 2, dim)};
    int good;
    const int taken = int8_run("max_pool", attrs, 1, in, &good);
    if (good && taken == 1) return 1;
    note("%s: %s: %d kernels", isa, attrs, taken);
    return 0;
}

/* Draws a concat of channels in blocks of 16, of 8, or of which only some can be, and judges it; 1:
 * right. */
static int draw_concat(const char *isa) {
    const int32_t n = (int32_t)int8_draw(1, 4), type = byte_type();
    const int64_t unit = int8_draw(0, 2) ? 16 : 8;
    int64_t dim[4] = {int8_draw(1, 3), 0, int8_draw(1, 9), int8_draw(1, 9)};
    const cnr_tensor *in[4];
    for (int32_t i = 0; i < n; i++) {
        dim[1] = unit * int8_draw(1, 3);
        in[i] = int8_bytes(type, 4, dim);
    }
    int good;
    const int taken = int8_run("concat", "axis=1", n, in, &good);
    if (good && taken == 1) return 1;
    note("%s: concat of %d: %d kernels", isa, n, taken);
    return 0;
}

/* Draws a sum, product, table or mean, and judges it; 1: right. */
static int draw_pointwise(const char *isa) {
    static const char *const ops[] = {"qlinear_add", "qlinear_mul", "qlinear_mul", "qlinear_table",
                                      "qlinear_global_average_pool"};
    const int which = (int)int8_draw(0, 4), type = byte_type(), other = byte_type();
    int64_t dim[4] = {int8_draw(1, 3), int8_draw(0, 1) ? int8_draw(1, 20) : 8 * int8_draw(1, 6),
                      int8_draw(1, 40), int8_draw(1, 40)};
    const cnr_tensor *in[8] = {int8_bytes(type, 4, dim)};
    const int64_t y_type = byte_type(), all = 256;
    in[1] = int8_number(CNR_f32, 0.01 * (double)int8_draw(1, 9));
    in[2] = int8_number(type, (double)int8_draw(type == CNR_u8 ? 0 : -128, 127));
    int32_t n = 8, b_rank = 4;
    if (which == 2) dim[2] = dim[3] = 1;
    if (which < 2 && !int8_draw(0, 2)) { /* one b for all before its axes */
        const int32_t from = (int32_t)int8_draw(1, 3);
        b_rank = int8_draw(0, 1) ? 4 - from : 4;
        if (b_rank == 4)
            for (int32_t i = 0; i < from; i++) dim[i] = 1;
    }
    if (which < 3) {
        in[3] = int8_bytes(other, b_rank, dim + 4 - b_rank);
        in[4] = int8_number(CNR_f32, 0.01 * (double)int8_draw(1, 9));
        in[5] = int8_number(other, (double)int8_draw(other == CNR_u8 ? 0 : -128, 127));
        in[6] = int8_number(CNR_f32, (which ? 0.5 : 0.07) * (double)int8_draw(1, 5) / 3);
        in[7] = int8_number((int32_t)y_type, (double)int8_draw(y_type == CNR_u8 ? 0 : -60, 90));
    } else if (which == 3) {
        in[1] = int8_const(int8_bytes(other, 1, &all));
        n = 2;
    } else {
        in[3] = int8_number(CNR_f32, 0.01 * (double)int8_draw(1, 9));
        in[4] = int8_number((int32_t)y_type, (double)int8_draw(y_type == CNR_u8 ? 0 : -60, 90));
        n = 5;
    }
    int good;
    const int taken = int8_run(ops[which], "", n, in, &good);
    if (good && taken == 1) return 1;
    note("%s: %s, %lldx%lldx%lldx%lld: %d kernels", isa, ops[which], (long long)dim[0],
         (long long)dim[1], (long long)dim[2], (long long)dim[3], taken);
    return 0;
}

/* Draws a conv_integer or matmul_integer, whose zero points are known, or not before the run, or
 * none, and judges it; 1: right. */
static int draw_integer(const char *isa) {
    const int conv = int8_draw(0, 1);
    const int32_t type = byte_type(), w_type = byte_type();
    const int64_t k = int8_draw(1, 3), m = int8_draw(1, 40), c = int8_draw(1, 30);
    const int64_t x_dim[4] = {int8_draw(1, 2), c, int8_draw(3, 12),
                              conv ? int8_draw(3, 40) : k * c};
    const int64_t w_dim[4] = {conv ? m : k * c, conv ? c : m, k, k};
    const int32_t rank = conv ? 4 : 2, each = int8_draw(0, 1) && m > 1;
    const cnr_tensor *in[4] = {int8_bytes(type, 4, x_dim),
                               int8_const(int8_bytes(w_type, rank, w_dim)),
                               int8_bytes(type, 0, NULL),
                               int8_const(int8_bytes(w_type, each ? 1 : 0, &m))};
    int good;
    const int taken = int8_run(conv ? "conv_integer" : "matmul_integer",
                               conv && k > 1 ? "pads=1,0,1,1; strides=2,1" : "",
                               (int32_t)int8_draw(2, 4), in, &good);
    if (good && taken == 1) return 1;
    note("%s: %s by whole numbers, %lld to %lld: %d kernels", isa, conv ? "conv" : "product",
         (long long)c, (long long)m, taken);
    return 0;
}

/* Draws a cast; 1: its kernels agree. */
static int draw_cast(const char *isa) {
    const int64_t n = int8_draw(1, 40000);
    (void)isa;
    cnr_tensor *x = t_type(CNR_i32, "");
    x->rank = 1;
    x->dim[0] = n;
    t_alloc(x);
    for (int64_t i = 0; i < n; i++)
        ((int32_t *)x->data)[i] = (int32_t)int8_draw(INT32_MIN, INT32_MAX);
    const cnr_tensor *in[1] = {x};
    int good;
    return int8_run("cast", "to=f32", 1, in, &good) == 1 && good;
}

/* Draws a quantise or dequantise; 1: its kernels agree. */
static int draw_linear(const char *isa) {
    const int32_t type = byte_type();
    const int64_t n = int8_draw(1, 40000);
    const double scale = (double)int8_draw(1, 1000) / 512;
    const cnr_tensor *in[3] = {NULL, int8_number(CNR_f32, scale),
                               int8_number(type,
                                           (double)int8_draw(type == CNR_u8 ? 0 : -128, 127))};
    const int32_t n_in = int8_draw(0, 3) || type == CNR_i8 ? 3 : 2;
    cnr_tensor *x = t_type(CNR_f32, "");
    x->rank = 1;
    x->dim[0] = n;
    t_alloc(x);
    for (int64_t i = 0; i < n; i++) /* half of them are ties */
        ((float *)x->data)[i] = (float)(scale * ((double)int8_draw(-700, 700) / 2));
    const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, -0.0f, 1e-40f};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0] && (int64_t)i < n; i++)
        ((float *)x->data)[i] = odd[i];
    in[0] = x;
    int good, back;
    int taken = int8_run("quantize_linear", "", n_in, in, &good);
    in[0] = int8_bytes(n_in == 2 ? CNR_u8 : type, 1, &n);
    taken += int8_run("dequantize_linear", "", n_in, in, &back);
    if (good && back && taken == 2) return 1;
    note("%s: %lld numbers, scale %g: %d kernels", isa, (long long)n, scale, taken);
    return 0;
}

/* Sums at the edge of 32 bits, and what no kernel may take. */
static void edges(const char *isa) {
    const int64_t k = INT32_MAX / (255 * 128), x_dim[2] = {2, k}, w_dim[2] = {3, k};
    cnr_tensor *x = int8_bytes(CNR_u8, 2, x_dim), *w = int8_bytes(CNR_i8, 2, w_dim);
    const cnr_tensor *in[9];
    int good;
    const int32_t n = (int32_t)cnr_min(8, layer_inputs(in, x, w, k)); /* a bias would not fit */
    in[W_ZERO] = int8_number(CNR_i8, 0);
    memset(x->data, 255, (size_t)(2 * k));
    memset(w->data, 0x80, (size_t)k);
    memset((char *)w->data + k, 0x7f, (size_t)k);
    ok(int8_run("qlinear_dense", "", n, in, &good) == 1 && good, "%s: the largest sums", isa);
    in[W_ZERO] = int8_number(CNR_i8, 3);
    ok(int8_run("qlinear_dense", "", n, in, &good) == 0, "%s: not of weights off centre", isa);
    in[W_ZERO] = int8_number(CNR_i8, 0);
    in[Y_SCALE] = int8_number(CNR_f32, 0);
    ok(int8_run("qlinear_dense", "", n, in, &good) == 0, "%s: a scale of 0 is refused", isa);
    const int64_t more = k + 1, x_more[2] = {1, more}, w_more[2] = {1, more};
    const int32_t m =
        layer_inputs(in, int8_bytes(CNR_u8, 2, x_more), int8_bytes(CNR_i8, 2, w_more), k);
    ok(int8_run("qlinear_dense", "", m, in, &good) == 0, "%s: longer sums are refused", isa);
}

/* Draws `most` cases, or a part of them under an emulator ($CNNRUN_TEST_EVERY), which are all good.
 */
static void drawn(const char *isa, const char *what, int most, int (*draw)(const char *)) {
    const char *every = getenv("CNNRUN_TEST_EVERY");
    const int n = (int)cnr_max(2, most / (every ? atoll(every) : 1));
    int good = 0;
    for (int c = 0; c < n; c++) good += draw(isa);
    ok(good == n, "%s: %d %s", isa, n, what);
}

int main(void) {
    int8_open("int8");
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        const char *isa = isas[i];
        if (!int8_use(isa)) continue;
        drawn(isa, "convolutions, byte for byte", 200, draw_conv);
        drawn(isa, "dense layers", 60, draw_dense);
        drawn(isa, "pools", 80, draw_pool);
        drawn(isa, "concatenations of blocks", 30, draw_concat);
        drawn(isa, "sums, products, tables and means", 60, draw_pointwise);
        drawn(isa, "to bytes and back, ties and oddities too", 12, draw_linear);
        drawn(isa, "products of whole numbers", 60, draw_integer);
        drawn(isa, "whole numbers as floats", 4, draw_cast);
        edges(isa);
    }
    return op_done();
}
