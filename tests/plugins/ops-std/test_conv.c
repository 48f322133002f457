/* conv and its gradients: values by hand, a naive formulation, splits, differences, refusals. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* Straight from the definition, in two dimensions, walking the input instead of the output. */
static cnr_tensor *naive(const cnr_tensor *x, const cnr_tensor *w, const cnr_tensor *b, int64_t s,
                         int64_t p, int64_t d, int64_t group, const char *dims) {
    cnr_tensor *y = t_type(x->dtype, dims);
    t_alloc(y);
    const int64_t C = x->dim[1], H = x->dim[2], W = x->dim[3], K = w->dim[2], L = w->dim[3];
    const int64_t O = y->dim[1], OH = y->dim[2], OW = y->dim[3], Cg = C / group, Og = O / group;
    for (int64_t i = 0; i < cnr_count(y); i++) t_set(y, i, b ? t_get(b, i / (OH * OW) % O) : 0);
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t o = 0; o < O; o++)
            for (int64_t c = 0; c < C; c++)
                for (int64_t h = 0; c / Cg == o / Og && h < H; h++)
                    for (int64_t v = 0; v < W; v++)
                        for (int64_t k = 0; k < K; k++)
                            for (int64_t l = 0; l < L; l++) {
                                const int64_t th = h + p - k * d, tw = v + p - l * d;
                                if (th < 0 || tw < 0 || th % s || tw % s) continue;
                                if (th / s >= OH || tw / s >= OW) continue;
                                const int64_t at = ((n * O + o) * OH + th / s) * OW + tw / s;
                                const double xv = t_get(x, ((n * C + c) * H + h) * W + v);
                                const double wv = t_get(w, ((o * Cg + c % Cg) * K + k) * L + l);
                                t_set(y, at, t_get(y, at) + xv * wv);
                            }
    return y;
}

/* Tests: convolutions against plain loops. */
static void against_naive(void) {
    static const struct {
        const char *x, *w, *y, *attrs;
        int64_t s, p, d, group;
    } at[] = {
        {"2x3x7x6", "4x3x3x3", "2x4x5x4", "", 1, 0, 1, 1},
        {"1x4x9x8", "6x2x3x2", "1x6x5x5", "strides=2;pads=1;group=2", 2, 1, 1, 2},
        {"2x4x8x8", "4x1x3x3", "2x4x8x8", "pads=2;dilations=2;group=4", 1, 2, 2, 4},
        {"1x2x5x5", "8x1x1x1", "1x8x2x2", "strides=3;groups=2", 3, 0, 1, 2},
        {"1x1x3x3", "1x1x5x5", "1x1x1x1", "pad=1", 1, 1, 1, 1},
        {"0x1x3x3", "2x1x2x2", "0x2x2x2", "", 1, 0, 1, 1},
    };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        static const int32_t types[] = {CNR_f64, CNR_f32, CNR_f16, CNR_bf16};
        static const double bounds[] = {1e-12, 1e-5, 0.02, 0.15};
        for (int t = 0; t < 4; t++) {
            cnr_tensor *x = t_random(types[t], at[i].x, 1), *w = t_random(types[t], at[i].w, 2);
            cnr_tensor *b = t_random(types[t], "8", 3), *y[1];
            char what[128];
            b->dim[0] = w->dim[0];
            snprintf(what, sizeof what, "%s by %s %s, %s", at[i].x, at[i].w, at[i].attrs,
                     cnr_dtype_name(types[t]));
            op_call("conv", at[i].attrs, y, 1, 3, x, w, b);
            t_same(y[0], naive(x, w, b, at[i].s, at[i].p, at[i].d, at[i].group, at[i].y), bounds[t],
                   what);
        }
    }
}

/* Tests: ranks and padding. */
static void ranks_and_pads(void) {
    cnr_tensor *y[1], *w = t_of(CNR_f32, "1x1x3", (double[]){1, 10, 100});
    cnr_tensor *x = t_of(CNR_f32, "1x1x4", (double[]){1, 2, 3, 4});
    op_call("conv1d", "pads=2,0", y, 1, 2, x, w);
    t_near(y[0], (double[]){100, 210, 321, 432}, 1e-6, "1-D, padded at the begin only");
    op_call("conv", "auto_pad=SAME_UPPER;strides=2", y, 1, 2, x, w);
    t_near(y[0], (double[]){321, 43}, 1e-6, "SAME_UPPER puts the odd padding at the end");
    op_call("conv", "auto_pad=SAME_LOWER;strides=2", y, 1, 2, x, w);
    t_near(y[0], (double[]){210, 432}, 1e-6, "SAME_LOWER puts it at the begin");
    op_call("conv", "auto_pad=VALID;pads=1,1", y, 1, 2, x, w);
    t_near(y[0], (double[]){321, 432}, 1e-6, "VALID takes no padding");

    cnr_tensor *cube = t_random(CNR_f64, "1x2x4x3x5", 4);
    cnr_tensor *kernel = t_random(CNR_f64, "3x2x2x3x2", 5);
    op_call("conv3d", "strides=2,1,3;pads=1,1,0,0,1,1;dilations=2,1,1", y, 1, 2, cube, kernel);
    t_shape(y[0], "1x3x2x3x2", "3-D shape");
    double sum = 0; /* one element worked out: o = (1, 1, 1) */
    for (int c = 0; c < 2; c++)
        for (int k = 0; k < 2; k++)
            for (int l = 0; l < 3; l++)
                for (int m = 0; m < 2; m++) {
                    const int d = 2 - 1 + 2 * k, h = 1 - 1 + l, v = 3 + m;
                    if (d < 4 && h < 3 && v < 5)
                        sum += t_get(cube, ((c * 4 + d) * 3 + h) * 5 + v) *
                               t_get(kernel, (((2 * 2 + c) * 2 + k) * 3 + l) * 2 + m);
                }
    ok(fabs(t_get(y[0], ((2 * 2 + 1) * 3 + 1) * 2 + 1) - sum) < 1e-12, "3-D element");
}

/* Tests: gradients. */
static void gradients(void) {
    static const struct {
        const char *x, *w, *attrs;
    } at[] = {
        {"2x2x5x4", "4x1x3x2", "strides=2,1;pads=1,0,0,1;group=2"},
        {"1x2x7", "2x2x3", "dilations=2;auto_pad=SAME_UPPER"},
        {"1x1x3x3x3", "2x1x2x2x2", "pads=1;strides=2"},
    };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        cnr_tensor *x = t_random(CNR_f64, at[i].x, 6), *w = t_random(CNR_f64, at[i].w, 7);
        cnr_tensor *b = t_random(CNR_f64, "8", 8);
        b->dim[0] = w->dim[0];
        for (int32_t port = 0; port < 3; port++)
            op_gradcheck("conv", at[i].attrs, port, 3, IN(x, w, b));
    }
}

/* Tests: what is refused. */
static void refusals(void) {
    cnr_tensor *x = t_random(CNR_f32, "1x4x5x5", 1), *w = t_random(CNR_f32, "6x2x3x3", 2);
    op_refused("conv", "", "channels", 2, IN(x, w));
    op_refused("conv", "group=4", "channels", 2, IN(x, w));
    op_refused("conv", "group=2;kernel_shape=2,2", "kernel_shape", 2, IN(x, w));
    op_refused("conv", "group=2;dilations=3", "larger", 2, IN(x, w));
    op_refused("conv", "group=2;strides=0", "strides", 2, IN(x, w));
    op_refused("conv", "group=2;pads=-1", "pads", 2, IN(x, w));
    op_refused("conv", "group=2;out=5", "out", 2, IN(x, w));
    op_refused("conv", "group=2", "bias", 3, IN(x, w, t_random(CNR_f32, "5", 3)));
    op_refused("conv", "", "rank", 2, IN(t_random(CNR_f32, "1x4", 1), w));
    op_refused("conv", "", "missing", 1, IN(x));
    cnr_tensor *huge = t_type(CNR_f32, "1x4x9223372036854775807x9223372036854775807");
    op_refused("conv", "group=2", "too large", 2, IN(huge, w));
}

/* Tests: unknown dimensions. */
static void unknown_dims(void) {
    const cnr_op *op = op_find("conv");
    cnr_tensor *x = t_type(CNR_f32, "-2x2x-1x9"), *w = t_type(CNR_f32, "3x2x3x3");
    cnr_node *node = op_node(op, NULL, 0, IN(x, w), 2, 1);
    if (!ok(node != NULL, "infers with unknown dims")) return;
    t_shape(node->outputs[0], "-2x3x-1x7", "the batch's symbol passes, the unknown stays unknown");
    op_node_free(node);
}

/* Tests: shapes of weights. */
static void parameters(void) {
    const cnr_op *op = op_find("conv");
    cnr_attr room[8];
    const cnr_attr *given[8];
    cnr_error err = CNR_ERROR_INIT;
    const int32_t n = op_parse(op, "kernel=3,5;out=8;group=2", room, 8);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    cnr_tensor *w = t_type(CNR_f32, "8x2x3x5");
    cnr_node *node = op_node(op, given, n, IN(t_type(CNR_f32, "-2x4x9x9"), w), 2, 1);
    cnr_tensor made = {.size = sizeof made};
    cnr_init init = {0};
    if (!ok(node != NULL, "a node to make parameters for")) return;
    ok(op->parameters(node, 1, &made, &init, &err) == CNR_OK && cnr_same_shape(&made, w) &&
           init.kind == CNR_INIT_HE && init.fan_in == 30,
       "the weight's shape and fan-in");
    ok(op->parameters(node, 2, &made, &init, &err) == CNR_OK && made.rank == 1 && made.dim[0] == 8,
       "the bias");
    op_node_free(node);
}

int main(void) {
    op_open();
    against_naive();
    ranks_and_pads();
    gradients();
    op_splitcheck("conv", "pads=1;strides=2;group=2", 3,
                  IN(t_random(CNR_f32, "3x4x9x8", 1), t_random(CNR_f32, "6x2x3x3", 2),
                     t_random(CNR_f32, "6", 3)));
    op_splitcheck("conv", "dilations=2", 2,
                  IN(t_random(CNR_f32, "2x3x9", 1), t_random(CNR_f32, "4x3x3", 2)));
    op_splitcheck("conv_grad_input", "pads=1", 3,
                  IN(t_random(CNR_f32, "3x2x5x5", 1), t_random(CNR_f32, "2x3x3x3", 2),
                     t_random(CNR_f32, "3x3x5x5", 3)));
    op_splitcheck("conv_grad_weight", "pads=1", 3,
                  IN(t_random(CNR_f32, "3x2x5x5", 1), t_random(CNR_f32, "3x3x5x5", 2),
                     t_random(CNR_f32, "2x3x3x3", 3)));
    refusals();
    unknown_dims();
    parameters();
    return op_done();
}
