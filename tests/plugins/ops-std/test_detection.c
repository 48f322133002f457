/* Quantised operators and those of detectors: hand-worked values. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* Scales that runs flush to zero; the answers are ONNX Runtime's. */
static void denormals(void) {
    cnr_tensor *y[1],
        *x =
            t_of(CNR_f32, "11",
                 (double[]){0, 1e-40, -1e-40, 3e-42, 1, -1, INFINITY, -INFINITY, NAN, 1e-30, -0.0});
    cnr_tensor *zero = t_of(CNR_u8, "", (double[]){7});
    cnr_tensor *scales[] = {t_of(CNR_f32, "", (double[]){1e-40}),
                            t_of(CNR_f32, "", (double[]){1e-45}),
                            t_of(CNR_f32, "", (double[]){1e-38}), t_of(CNR_f32, "", (double[]){0})};
    const double want[][11] = {{7, 8, 6, 7, 255, 0, 255, 0, 0, 255, 7},
                               {7, 255, 0, 255, 255, 0, 255, 0, 0, 255, 7},
                               {7, 7, 7, 7, 255, 0, 255, 0, 0, 255, 7},
                               {0, 255, 0, 255, 255, 0, 255, 0, 0, 255, 0}};
    for (int i = 0; i < 4; i++) {
#ifdef __SSE__
        const unsigned before = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(before | 0x8040u); /* as in a run */
#endif
        op_call("quantize_linear", "", y, 1, 3, x, scales[i], zero);
#ifdef __SSE__
        __builtin_ia32_ldmxcsr(before);
#endif
        t_near(y[0], want[i], 0,
               "a scale that is a denormal, or 0: 0 is the zero point where ONNX Runtime has it");
    }
}

/* Tests: quantised values. */
static void quantised(void) {
    cnr_tensor *y[3], *x = t_of(CNR_f32, "6", (double[]){0.5, 1.5, -0.5, 1000, -1000, NAN});
    cnr_tensor *one = t_of(CNR_f32, "", (double[]){1}), *zero = t_of(CNR_i8, "", (double[]){3});
    op_call("quantize_linear", "", y, 1, 3, x, one, zero);
    t_near(y[0], (double[]){3, 5, 3, 127, -128, -128}, 0, "halves to even, saturated");
    denormals();
    cnr_tensor *q = t_of(CNR_u8, "2x2", (double[]){1, 2, 3, 4});
    cnr_tensor *scales = t_of(CNR_f32, "2", (double[]){0.5, 2});
    cnr_tensor *zeros = t_of(CNR_u8, "2", (double[]){1, 0});
    op_call("dequantize_linear", "axis=1", y, 1, 3, q, scales, zeros);
    t_near(y[0], (double[]){0, 4, 1, 8}, 0, "a scale for each column");
    op_call("dynamic_quantize_linear", "", y, 3, 1, t_of(CNR_f32, "3", (double[]){0, 0, 0}));
    t_near(y[1], (double[]){1}, 0, "of zeros the scale is 1");
    cnr_tensor *a = t_of(CNR_u8, "1x1x2x2", (double[]){1, 2, 3, 4});
    cnr_tensor *w = t_of(CNR_i8, "2x1x2x2", (double[]){1, -1, 1, -1, 2, 2, 2, 2});
    cnr_tensor *az = t_of(CNR_u8, "", (double[]){1}), *wz = t_of(CNR_i8, "2", (double[]){0, 1});
    op_call("conv_integer", "", y, 1, 4, a, w, az, wz);
    is_int(y[0]->dtype, CNR_i32, "32 bits");
    t_near(y[0], (double[]){-2, 6}, 0, "zero points of each channel");
    op_call("conv_integer", "pads=1", y, 1, 4, a, w, az, wz);
    t_near(y[0], (double[]){0, -1, 1, -2, -2, 4, -2, -1, 3, 0, 1, 1, 2, 6, 4, 2, 5, 3}, 0,
           "padding counts as the zero point");
    cnr_tensor *s = t_of(CNR_f32, "", (double[]){0.5}), *ws = t_of(CNR_f32, "2", (double[]){1, 2});
    cnr_tensor *yz = t_of(CNR_u8, "", (double[]){1});
    cnr_tensor *bias = t_of(CNR_i32, "2", (double[]){0, 900});
    op_call("qlinear_conv", "", y, 1, 9, a, s, az, w, ws, wz, s, yz, bias);
    t_near(y[0], (double[]){0, 255}, 0, "requantised and saturated");
    cnr_tensor *odd = t_of(CNR_i32, "2", (double[]){16777219, 16777207});
    op_call("qlinear_conv", "", y, 1, 9, a, t_of(CNR_f32, "", (double[]){0x1p-25}), az, w,
            t_of(CNR_f32, "", (double[]){1}), t_of(CNR_i8, "", (double[]){0}),
            t_of(CNR_f32, "", (double[]){1}), yz, odd);
    t_near(y[0], (double[]){1, 2}, 0, "a sum is rounded to f32 before it is scaled");
    cnr_tensor *m = t_of(CNR_i8, "2x2", (double[]){1, 2, 3, 4});
    op_call("matmul_integer", "", y, 1, 4, m, m, t_of(CNR_i8, "2", (double[]){0, 1}),
            t_of(CNR_i8, "2", (double[]){1, 0}));
    t_near(y[0], (double[]){4, 10, 6, 16}, 0, "zero points of rows and columns");
    op_call("qlinear_matmul", "", y, 1, 8, m, s, t_of(CNR_i8, "", (double[]){0}), m, s,
            t_of(CNR_i8, "", (double[]){0}), t_of(CNR_f32, "", (double[]){0.125}),
            t_of(CNR_i8, "", (double[]){-10}));
    t_near(y[0], (double[]){4, 10, 20, 34}, 0, "a product of quantised matrices");
    op_refused("quantize_linear", "axis=0", "slice", 2, IN(x, scales));
}

/* Tests: boxes. */
static void boxes(void) {
    cnr_tensor *y[1], *map = t_type(CNR_f32, "1x8x1x2"), *image = t_type(CNR_f32, "1x3x10x20");
    op_call("prior_box", "min_size=4;max_size=9;aspect_ratio=4;variance=0.1,0.1,0.2,0.2", y, 1, 2,
            map, image);
    t_shape(y[0], "1x2x32", "4 boxes at each of 2 places");
    const double first[8] = {0.15, 0.3, 0.35, 0.7, 0.1, 0.2, 0.4, 0.8};
    int good = 1;
    for (int i = 0; i < 8; i++) good &= fabs(t_get(y[0], i) - first[i]) < 1e-6;
    ok(good, "the square and the larger square");
    ok(fabs(t_get(y[0], 8) - 0.05) < 1e-6 && fabs(t_get(y[0], 9) - 0.4) < 1e-6 &&
           fabs(t_get(y[0], 34) - 0.2) < 1e-6,
       "the wide one; variances");

    /* two priors, one class beside the background; the second box lies almost on the first */
    cnr_tensor *prior = t_of(CNR_f32, "1x2x12", (double[]){0,   0,   0.5, 0.5, 0,   0,   0.5, 0.4,
                                                           0.5, 0.5, 1,   1,   0.1, 0.1, 0.2, 0.2,
                                                           0.1, 0.1, 0.2, 0.2, 0.1, 0.1, 0.2, 0.2});
    cnr_tensor *loc = t_of(CNR_f32, "1x12", (double[]){0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
    cnr_tensor *conf = t_of(CNR_f32, "1x6", (double[]){0.1, 0.9, 0.2, 0.8, 0.4, 0.6});
    op_call("detection_output",
            "num_classes=2;code_type=CENTER_SIZE;nms_threshold=0.45;top_k=10;keep_top_k=5;"
            "confidence_threshold=0.3",
            y, 1, 3, loc, conf, prior);
    t_shape(y[0], "1x1x2x7", "one of the two, and the other");
    t_near(y[0], (double[]){0, 1, 0.9, 0, 0, 0.5, 0.5, 0, 1, 0.6, 0.55, 0.5, 1.05, 1}, 1e-6,
           "moved by its variance");

    cnr_tensor *b = t_of(CNR_f32, "1x3x4", (double[]){0, 0, 1, 1, 1, 1, 0, 0.1, 5, 5, 6, 6});
    cnr_tensor *score = t_of(CNR_f32, "1x1x3", (double[]){0.5, 0.9, 0.7});
    op_call("non_max_suppression", "", y, 1, 4, b, score, t_of(CNR_i64, "1", (double[]){3}),
            t_of(CNR_f32, "1", (double[]){0.5}));
    t_shape(y[0], "2x3", "the overlapped one is gone");
    t_near(y[0], (double[]){0, 0, 1, 0, 0, 2}, 0, "flipped corners are understood");
    op_call("non_max_suppression", "", y, 1, 2, b, score);
    t_shape(y[0], "0x3", "without a number none is kept");
}

/* Tests: heads of detectors. */
static void heads(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f32, "1x7x1x1", (double[]){0, 0, 3, 4, 0, 1, 1});
    op_call("yolo", "classes=2;num=1;scale_x_y=2", y, 1, 1, x);
    t_near(y[0], (double[]){0.5, 0.5, 3, 4, 0.5, 0.7310585786, 0.7310585786}, 1e-6, "yolo");
    op_call("region", "classes=2;num=1", y, 1, 1, x);
    t_near(y[0], (double[]){0.5, 0.5, 3, 4, 0.5, 0.5, 0.5}, 1e-6, "region: softmax of classes");
    op_refused("yolo", "classes=3;num=1", "channels", 1, IN(x));
    cnr_tensor *map =
        t_of(CNR_f32, "1x1x4x4", (double[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    double neighbours[64];
    for (int i = 0; i < 64; i++) neighbours[i] = 1e6 + i;
    cnr_tensor *no_pixels = t_type(CNR_f64, "1x2x0x3");
    no_pixels->data = neighbours + 32; /* whoever reads a pixel reads one of those */
    op_call("roi_align", "output_height=2;output_width=2;sampling_ratio=1", y, 1, 3, no_pixels,
            t_of(CNR_f64, "1x4", (double[]){0, 0, 2, 2}), t_of(CNR_i64, "1", (double[]){0}));
    t_near(y[0], (double[]){0, 0, 0, 0, 0, 0, 0, 0}, 0, "roi_align of a map without pixels");
    op_call("roi_pool", "pooled_shape=2,2;spatial_scale=0.5", y, 1, 2, map,
            t_of(CNR_f32, "1x5", (double[]){0, 0, 0, 6, 4}));
    t_near(y[0], (double[]){5, 7, 9, 11}, 0, "bins of 1.5 rows overlap");
    ok(op_try("roi_pool", "pooled_shape=1,1", y, 1, 2,
              IN(map, t_of(CNR_f32, "1x5", (double[]){7, 0, 0, 1, 1}))) == CNR_E_ARG,
       "a picture that is not there is refused");
}

/* Rows: class, score, corners. */
static void thinned(void) {
    cnr_tensor *y[1],
        *x = t_of(CNR_f32, "1x4x6", (double[]){0, 0.5, 1, 1, 3, 3,   1, 0.4, 1, 1, 3, 3,
                                               0, 0.3, 1, 1, 3, 2.5, 2, 0.6, 5, 5, 7, 8});
    op_call("box_nms", "id_index=0", y, 1, 1, x);
    t_near(y[0], (double[]){2, 0.6, 5, 5, 7, 8, 0,  0.5, 1,  1,  3,  3,
                            1, 0.4, 1, 1, 3, 3, -1, -1,  -1, -1, -1, -1},
           1e-6, "one box of a class stays, in order");
    op_call("box_nms", "id_index=0;force_suppress=1;center_out=1", y, 1, 1, x);
    t_near(y[0], (double[]){2,  0.6, 6,  6.5, 2,  3,  0,  0.5, 2,  2,  2,  2,
                            -1, -1,  -1, -1,  -1, -1, -1, -1,  -1, -1, -1, -1},
           1e-6, "whatever the class; as middles");
    op_call("box_nms", "id_index=0;background_id=2;valid_thresh=0.35;topk=1", y, 1, 1, x);
    ok(t_get(y[0], 1) == 0.5 && t_get(y[0], 7) == -1, "the best of what is an object");
    op_refused("box_nms", "coord_start=3", "row", 1, IN(x));
}

int main(void) {
    op_open();
    quantised();
    boxes();
    thinned();
    heads();
    return op_done();
}
