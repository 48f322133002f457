/* The normalising operators: values by hand or from the definition, gradients, splits, refusals. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* Tests: batch normalisation and scales. */
static void batch_and_scale(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f32, "1x2x2", (double[]){1, 2, 3, 4});
    cnr_tensor *s = t_of(CNR_f32, "2", (double[]){2, 10});
    cnr_tensor *b = t_of(CNR_f32, "2", (double[]){1, 0});
    cnr_tensor *m = t_of(CNR_f32, "2", (double[]){1, 3}), *v = t_of(CNR_f32, "2", (double[]){3, 0});
    op_call("batch_norm", "epsilon=1", y, 1, 5, x, s, b, m, v);
    t_near(y[0], (double[]){1, 2, 0, 10}, 1e-6, "batch normalisation");
    op_call("scale", "", y, 1, 3, x, s, b);
    t_near(y[0], (double[]){3, 5, 30, 40}, 1e-6, "scale_bias along the channels");
    op_call("scale_bias", "axis=-1", y, 1, 2, x, s);
    t_near(y[0], (double[]){2, 20, 6, 40}, 1e-6, "along the last axis");
    op_call("scale_bias", "axis=1", y, 1, 2, x, t_of(CNR_f32, "2x2", (double[]){1, 2, 3, 4}));
    t_near(y[0], (double[]){1, 4, 9, 16}, 1e-6, "along two axes");
    op_call("scale_bias", "", y, 1, 2, x, t_of(CNR_f32, "", (double[]){5}));
    t_near(y[0], (double[]){5, 10, 15, 20}, 1e-6, "by a scalar");

    const cnr_op *op = op_find("batch_normalization");
    cnr_attr room[4];
    const cnr_attr *given[1] = {room};
    float scale[2], shift[2];
    op_parse(op, "epsilon=1", room, 4);
    cnr_node *node = op_node(op, given, 1, IN(x, s, b, m, v), 5, 1);
    ok(op->channel_affine(node, 2, scale, shift) == 1 && fabsf(scale[0] - 1) < 1e-6f &&
           fabsf(shift[0]) < 1e-6f && fabsf(scale[1] - 10) < 1e-5f && fabsf(shift[1] + 30) < 1e-5f,
       "batch normalisation as an affine map");
    op_node_free(node);
    op_refused("batch_norm", "", "var", 5, IN(x, s, b, m, t_random(CNR_f32, "3", 1)));
    op_refused("batch_norm", "training_mode=1", "training_mode", 5, IN(x, s, b, m, v));
    op_refused("scale_bias", "axis=2", "does not fit", 2, IN(x, t_random(CNR_f32, "2x2", 1)));
    op_refused("scale_bias", "axis=3", "axis", 2, IN(x, s));
}

/* Tests: lrn. */
static void local_response(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f64, "1x4x1", (double[]){1, 2, 3, 4});
    op_call("lrn", "size=3;alpha=3;beta=1;bias=1", y, 1, 1, x);
    t_near(y[0], (double[]){1 / 6., 2 / 15., 3 / 30., 4 / 26.}, 1e-12, "lrn");
    op_call("lrn", "size=2;alpha=2;beta=0.5;k=2", y, 1, 1, x);
    t_near(y[0], (double[]){1 / sqrt(7), 2 / sqrt(15), 3 / sqrt(27), 4 / sqrt(18)}, 1e-12,
           "lrn of an even size reaches up");
    op_call("lrn_within", "size=3;alpha=9;beta=1", y, 1, 1,
            t_of(CNR_f64, "1x1x2x2", (double[]){1, 2, 3, 4}));
    t_near(y[0], (double[]){1 / 31., 2 / 31., 3 / 31., 4 / 31.}, 1e-12, "lrn_within");
    op_call("lrn_within", "size=3;alpha=3;beta=1", y, 1, 1,
            t_of(CNR_f64, "1x1x3", (double[]){1, 2, 3}));
    t_near(y[0], (double[]){1 / 6., 2 / 15., 3 / 14.}, 1e-12, "lrn_within in 1-D");
    static const char *const names[] = {"lrn", "lrn_within"};
    for (int i = 0; i < 2; i++) { /* the square is no float, the base therefore 0 and not below */
        op_call(names[i], "size=1;alpha=-1;bias=0", y, 1, 1,
                t_of(CNR_f32, "1x1x2", (double[]){1e-30, -1e-30}));
        ok(t_get(y[0], 0) == INFINITY && t_get(y[0], 1) == -INFINITY,
           "%s of squares that underflow", names[i]);
    }
    cnr_tensor *big = t_random(CNR_f64, "2x5x3x4", 1);
    static const char *const attrs[] = {"size=3;alpha=2;beta=0.75", "size=4;alpha=2;beta=0.5;k=2",
                                        "size=11;alpha=1"};
    for (int i = 0; i < 3; i++) {
        op_gradcheck("lrn", attrs[i], 0, 1, IN(big));
        op_splitcheck("lrn", attrs[i], 1, IN(big));
        op_splitcheck("lrn_grad", attrs[i], 2, IN(t_random(CNR_f64, "2x5x3x4", 2), big));
    }
    op_gradcheck("lrn_within", "size=3;alpha=2", 0, 1, IN(big));
    op_splitcheck("lrn_within", "size=3", 1, IN(big));
    op_splitcheck("lrn_within_grad", "size=3", 2, IN(t_random(CNR_f64, "2x5x3x4", 2), big));
    op_refused("lrn_within", "size=4", "odd", 1, IN(big));
    op_refused("lrn", "", "size", 1, IN(big));
}

/* Normalises each block of n elements to mean 0, deviation 1, epsilon added to the variance;
 * op_done frees the result. */
static double *standardised(const cnr_tensor *x, int64_t n, double epsilon) {
    double *want = op_keep(malloc((size_t)cnr_count(x) * sizeof *want));
    for (int64_t b = 0; b < cnr_count(x); b += n) {
        double sum = 0, squares = 0;
        for (int64_t i = b; i < b + n; i++) {
            sum += t_get(x, i);
            squares += t_get(x, i) * t_get(x, i);
        }
        const double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
        for (int64_t i = b; i < b + n; i++)
            want[i] = (t_get(x, i) - mean) / sqrt(variance + epsilon);
    }
    return want;
}

/* Tests: normalisations in groups. */
static void blocks(void) {
    cnr_tensor *y[3], *x = t_random(CNR_f64, "2x4x3x2", 5);
    cnr_tensor *s = t_random(CNR_f64, "4", 6), *b = t_random(CNR_f64, "4", 7);
    double *want = standardised(x, 6, 1e-5);
    for (int i = 0; i < 48; i++) want[i] = want[i] * t_get(s, i / 6 % 4) + t_get(b, i / 6 % 4);
    op_call("instance_normalization", "", y, 1, 3, x, s, b);
    t_near(y[0], want, 1e-9, "instance normalisation");
    want = standardised(x, 12, 1e-5);
    double *two = standardised(x, 12, 1e-5);
    for (int i = 0; i < 48; i++) {
        want[i] = want[i] * t_get(s, i / 6 % 4) + t_get(b, i / 6 % 4);
        two[i] = two[i] * t_get(s, i / 12 % 2) + t_get(b, i / 12 % 2);
    }
    op_call("group_normalization", "num_groups=2", y, 1, 3, x, s, b);
    t_near(y[0], want, 1e-9, "group normalisation, scaled by channel");
    cnr_tensor *s2 = t_copy(s), *b2 = t_copy(b);
    s2->dim[0] = b2->dim[0] = 2;
    op_call("group_norm", "groups=2", y, 1, 3, x, s2, b2);
    t_near(y[0], two, 1e-9, "group normalisation, scaled by group");
    want = standardised(x, 6, 1e-3);
    cnr_tensor *s3 = t_random(CNR_f64, "3x2", 8), *b3 = t_random(CNR_f64, "2", 9);
    for (int i = 0; i < 48; i++) want[i] = want[i] * t_get(s3, i % 6) + t_get(b3, i % 2);
    op_call("layer_norm", "axis=2;epsilon=0.001", y, 3, 3, x, s3, b3);
    t_near(y[0], want, 1e-9, "layer normalisation, its shift broadcast");
    t_shape(y[1], "2x4x1x1", "its mean");
    ok(y[2]->dtype == CNR_f32 && t_get(y[2], 7) > 0, "and its deviation");
    cnr_tensor *s4 = t_of(CNR_f64, "3x1", (double[]){1, 2, 3});
    want = standardised(x, 6, 1e-5);
    for (int i = 0; i < 48; i++) want[i] *= t_get(s4, i / 2 % 3);
    op_call("layer_normalization", "axis=-2", y, 1, 2, x, s4);
    t_near(y[0], want, 1e-9, "layer normalisation, its scale broadcast");
    op_splitcheck("instance_normalization", "", 3, IN(x, s, b));
    op_splitcheck("group_normalization", "num_groups=2", 3, IN(x, s, b));
    op_splitcheck("group_normalization", "num_groups=2", 3, IN(x, s2, b2));
    op_splitcheck("layer_normalization", "axis=2", 3, IN(x, s3, b3));
    op_refused("group_norm", "groups=3", "groups", 3, IN(x, s, b));
    op_refused("layer_norm", "axis=-1", "broadcast", 2, IN(x, s4));
    op_refused("layer_norm", "axis=4", "axis", 2, IN(x, s4));
    op_refused("instance_norm", "", "scale", 3, IN(x, s2, b));
}

/* Tests: norms. */
static void norms(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f64, "1x2x2", (double[]){3, 5, 4, 12});
    op_call("lp_normalization", "axis=1", y, 1, 1, x);
    t_near(y[0], (double[]){0.6, 5 / 13., 0.8, 12 / 13.}, 1e-12, "L2 along the channels");
    op_call("lp_normalization", "p=1", y, 1, 1, x);
    t_near(y[0], (double[]){3 / 8., 5 / 8., 0.25, 0.75}, 1e-12, "L1 along the last axis");
    op_call("lp_normalization", "", y, 1, 1, t_of(CNR_f64, "2", (double[]){0, 0}));
    t_near(y[0], (double[]){0, 0}, 0, "zeros stay zeros");
    cnr_tensor *one = t_of(CNR_f64, "1", (double[]){2});
    cnr_tensor *two = t_of(CNR_f64, "2", (double[]){1, 10});
    op_call("normalize", "eps=0", y, 1, 2, x, one);
    const double all = sqrt(9 + 25 + 16 + 144);
    t_near(y[0], (double[]){6 / all, 10 / all, 8 / all, 24 / all}, 1e-12, "across a sample");
    op_call("normalize", "across_spatial=0;eps=0", y, 1, 2, x, two);
    t_near(y[0], (double[]){0.6, 5 / 13., 8, 120 / 13.}, 1e-12, "across channels, a scale each");
    op_call("mean_variance_normalization", "axes=2;eps=0", y, 1, 1, x);
    t_near(y[0], (double[]){-1, 1, -1, 1}, 1e-12, "mean and variance over one axis");
    op_call("mean_variance_normalization", "normalize_variance=0", y, 1, 1,
            t_of(CNR_f64, "2x2x1", (double[]){1, 10, 3, 30}));
    t_near(y[0], (double[]){-1, -10, 1, 10}, 1e-12, "over all axes but the channels', mean only");
    cnr_tensor *big = t_random(CNR_f32, "3x4x3x2", 1);
    op_splitcheck("lp_normalization", "axis=1", 1, IN(big));
    op_splitcheck("normalize", "", 2, IN(big, t_random(CNR_f32, "4", 2)));
    op_splitcheck("normalize", "across_spatial=0", 2, IN(big, t_random(CNR_f32, "4", 2)));
    op_splitcheck("mean_variance_normalization", "axes=-1,2", 1, IN(big));
    op_splitcheck("mean_variance_normalization", "", 1, IN(big));
    op_refused("mean_variance_normalization", "axes=4", "axes", 1, IN(big));
    op_refused("normalize", "", "scale", 2, IN(big, t_random(CNR_f32, "3", 1)));
}

/* Tests: gradients. */
static void gradients(void) {
    cnr_tensor *x = t_random(CNR_f64, "2x3x2x2", 1), *v = t_of(CNR_f64, "3", (double[]){0.5, 1, 2});
    cnr_tensor *p[3];
    for (uint64_t i = 0; i < 3; i++) p[i] = t_random(CNR_f64, "3", 10 + i);
    for (int32_t port = 0; port < 3; port++) {
        op_gradcheck("batch_normalization", "", port, 5, IN(x, p[0], p[1], p[2], v));
        op_gradcheck("scale_bias", "", port, 3, IN(x, p[0], p[1]));
        op_gradcheck("scale_bias", "axis=0", port, 3, /* a number for each element */
                     IN(t_random(CNR_f64, "3x2", 8), t_random(CNR_f64, "3x2", 9),
                        t_random(CNR_f64, "3x2", 10)));
        op_gradcheck("scale_bias", "axis=-3", port, 3,
                     IN(x, t_random(CNR_f64, "3x2", 3), t_random(CNR_f64, "3x2", 4)));
    }
    op_splitcheck("batch_normalization", "", 5, IN(x, p[0], p[1], p[2], v));
    op_splitcheck("scale_bias", "axis=1", 3,
                  IN(x, t_random(CNR_f64, "3x2", 3), t_random(CNR_f64, "3x2", 4)));
}

int main(void) {
    op_open();
    batch_and_scale();
    local_response();
    blocks();
    norms();
    gradients();
    return op_done();
}
