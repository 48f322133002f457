/* conv_transpose: hand-worked values, the adjoint of conv, output sizes, gradients, splits. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* Tests: values. */
static void values(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f32, "1x1x3", (double[]){1, 2, 3});
    cnr_tensor *w = t_of(CNR_f32, "1x1x3", (double[]){1, 10, 100});
    cnr_tensor *b = t_of(CNR_f32, "1", (double[]){0.5});
    op_call("conv_transpose", "", y, 1, 2, x, w);
    t_near(y[0], (double[]){1, 12, 123, 230, 300}, 1e-6, "stride 1");
    op_call("deconv", "strides=2;bias=1", y, 1, 3, x, w, b);
    t_near(y[0], (double[]){1.5, 10.5, 102.5, 20.5, 203.5, 30.5, 300.5}, 1e-6, "stride 2, bias");
    op_call("conv_transpose", "strides=2;pads=1,0;output_padding=1", y, 1, 2, x, w);
    t_near(y[0], (double[]){10, 102, 20, 203, 30, 300, 0}, 1e-6, "pads and output_padding");
    op_call("conv_transpose", "strides=2;output_shape=6;auto_pad=SAME_UPPER", y, 1, 2, x, w);
    t_near(y[0], (double[]){1, 10, 102, 20, 203, 30}, 1e-6, "SAME_UPPER cuts the end");
    op_call("conv_transpose", "strides=2;auto_pad=SAME_LOWER", y, 1, 2, x, w);
    t_near(y[0], (double[]){10, 102, 20, 203, 30, 300}, 1e-6, "SAME_LOWER cuts the begin");
    op_call("conv_transpose", "strides=2;output_shape=8", y, 1, 2, x, w);
    t_near(y[0], (double[]){1, 10, 102, 20, 203, 30, 300, 0}, 1e-6, "a larger output_shape");
    op_call("conv_transpose", "dilations=2", y, 1, 2, x, w);
    t_near(y[0], (double[]){1, 2, 13, 20, 130, 200, 300}, 1e-6, "dilated");
}

/* <conv(a), b> == <a, conv_transpose(b)>, whatever the attributes. */
static void adjoint(void) {
    static const struct {
        const char *a, *w, *b, *attrs;
    } at[] = {
        {"2x4x7x8", "6x2x3x2", "2x6x4x3", "strides=2,3;pads=1,0,1,0;group=2"},
        {"1x3x5x4x6", "2x3x2x2x3", "1x2x4x3x4", ""},
        {"1x4x9", "4x1x3", "1x4x5", "dilations=2;group=4"},
    };
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        cnr_tensor *a = t_random(CNR_f64, at[i].a, 1), *w = t_random(CNR_f64, at[i].w, 2);
        cnr_tensor *b = t_random(CNR_f64, at[i].b, 3), *ya[1], *yb[1];
        op_call("conv", at[i].attrs, ya, 1, 2, a, w);
        op_call("conv_transpose", at[i].attrs, yb, 1, 2, b, w);
        if (!t_shape(yb[0], at[i].a, "the shape goes back")) continue;
        ok(fabs(op_dot(ya[0], b) - op_dot(a, yb[0])) < 1e-9, "adjoint of conv: %s", at[i].attrs);
    }
}

/* Tests: gradients and ranges. */
static void hooks(void) {
    cnr_tensor *x = t_random(CNR_f64, "2x4x4x3", 1), *w = t_random(CNR_f64, "4x2x3x2", 2);
    cnr_tensor *b = t_random(CNR_f64, "4", 3);
    for (int32_t p = 0; p < 3; p++)
        op_gradcheck("conv_transpose", "strides=2;pads=1,0,0,1;group=2;output_padding=1,0", p, 3,
                     IN(x, w, b));
    op_splitcheck("conv_transpose", "strides=2;pads=1;group=2;dilations=1,2", 3, IN(x, w, b));
    op_splitcheck("conv_transpose", "strides=3", 2, IN(x, w));
    op_refused("conv_transpose", "group=3", "groups", 2, IN(x, w));
    op_refused("conv_transpose", "pads=9", "nothing", 2, IN(x, w));
    op_refused("conv_transpose", "output_shape=9", "output_shape", 2, IN(x, w));
    op_refused("conv_transpose", "", "bias", 3, IN(x, w, b));
    op_refused("conv_transpose", "", "channels", 2, IN(t_random(CNR_f64, "1x3x4x4", 1), w));
}

int main(void) {
    op_open();
    values();
    adjoint();
    hooks();
    return op_done();
}
