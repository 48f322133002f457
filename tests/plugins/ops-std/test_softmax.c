/* softmax, log_softmax, hardmax, the classifier's loss, and their gradients. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* Tests: values. */
static void values(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f32, "2x2", (double[]){0, log(3), 1000, 1000});
    op_call("softmax", "", y, 1, 1, x);
    t_near(y[0], (double[]){0.25, 0.75, 0.5, 0.5}, 1e-6, "softmax of large numbers");
    op_call("softmax", "axis=0", y, 1, 1, t_of(CNR_f64, "2x1", (double[]){0, log(3)}));
    t_near(y[0], (double[]){0.25, 0.75}, 1e-12, "along axis 0");
    op_call("log_softmax", "axis=1", y, 1, 1, t_of(CNR_f64, "1x2", (double[]){-5000, 0}));
    t_near(y[0], (double[]){-5000, 0}, 1e-12, "log_softmax does not underflow");
    op_call("hardmax", "axis=-2", y, 1, 1, t_of(CNR_f32, "3x2", (double[]){1, 5, 7, 5, 7, 4}));
    t_near(y[0], (double[]){0, 1, 1, 0, 0, 0}, 0, "hardmax takes the first of equals");
    op_call("softmax", "", y, 1, 1, t_of(CNR_f32, "", (double[]){4}));
    t_near(y[0], (double[]){1}, 0, "of a scalar");
    op_call("softmax", "", y, 1, 1, t_random(CNR_f32, "2x0x3", 1));
    t_shape(y[0], "2x0x3", "of nothing");
    op_call("softmax", "", y, 1, 1, t_random(CNR_f32, "3x0", 1));
    t_shape(y[0], "3x0", "along an empty axis");
    op_refused("softmax", "axis=2", "axis", 1, IN(x));
    op_refused("softmax", "axis=-3", "axis", 1, IN(x));
    op_refused("softmax", "", "not supported", 1, IN(t_random(CNR_i32, "2x2", 1)));
}

/* Tests: derivatives. */
static void derivatives(void) {
    cnr_tensor *x = t_random(CNR_f64, "2x3x4", 1);
    static const char *const axes[] = {"axis=0", "axis=1", "axis=-1"};
    for (int i = 0; i < 3; i++) {
        op_gradcheck("softmax", axes[i], 0, 1, IN(x));
        op_gradcheck("log_softmax", axes[i], 0, 1, IN(x));
        op_splitcheck("softmax", axes[i], 1, IN(x));
        op_splitcheck("hardmax", axes[i], 1, IN(x));
        op_splitcheck("softmax_grad", axes[i], 2, IN(x, t_random(CNR_f64, "2x3x4", 2)));
    }
}

/* Tests: the loss. */
static void loss(void) {
    cnr_tensor *y[1], *x = t_of(CNR_f32, "2x2", (double[]){0, log(3), 0, 0});
    op_call("softmax_cross_entropy", "", y, 1, 2, x, t_of(CNR_i64, "2", (double[]){1, 0}));
    t_shape(y[0], "", "the loss is a scalar");
    t_near(y[0], (double[]){(log(4. / 3) + log(2)) / 2}, 1e-6, "and the mean");
    op_call("softmax_cross_entropy", "", y, 1, 2, x, t_of(CNR_f32, "2x1", (double[]){1, 0}));
    t_near(y[0], (double[]){(log(4. / 3) + log(2)) / 2}, 1e-6, "labels may be floats");
    cnr_tensor *out[1];
    ok(op_try("softmax_cross_entropy", "", out, 1, 2,
              IN(x, t_of(CNR_i32, "2", (double[]){0, 2}))) == CNR_E_ARG,
       "a label out of range");
    has_text(op_state.problem, "label 1", "is named");
    ok(op_try("softmax_cross_entropy", "", out, 1, 2,
              IN(x, t_of(CNR_f32, "2", (double[]){0, NAN}))) == CNR_E_ARG,
       "NaN is no label");
    op_gradcheck("softmax_cross_entropy", "", 0, 2,
                 IN(t_random(CNR_f64, "3x4", 1), t_of(CNR_u8, "3", (double[]){3, 0, 1})));
    op_refused("softmax_cross_entropy", "", "labels", 2, IN(x, t_random(CNR_u8, "3", 1)));
}

/* Tests: shapes. */
static void shapes(void) {
    cnr_tensor *y[2], *x = t_random(CNR_f32, "2x3x4", 1);
    op_call("flatten", "", y, 1, 1, x);
    t_shape(y[0], "2x12", "flatten");
    op_call("flatten", "axis=0", y, 1, 1, x);
    t_shape(y[0], "1x24", "flatten at 0");
    op_call("flatten", "axis=3", y, 1, 1, x);
    t_shape(y[0], "24x1", "flatten past the last");
    op_call("flatten", "axis=-1", y, 1, 1, x);
    t_shape(y[0], "6x4", "flatten from the end");
    op_refused("flatten", "axis=4", "axis", 1, IN(x));
    op_gradcheck("flatten", "", 0, 1, IN(t_random(CNR_f64, "2x3x2", 1)));
    op_call("dropout", "", y, 2, 1, x);
    t_same(y[0], x, 0, "dropout changes nothing");
    ok(y[1]->dtype == CNR_bool && t_get(y[1], 23) == 1, "its mask keeps all");
    op_gradcheck("dropout", "ratio=0.3", 0, 1, IN(t_random(CNR_f64, "2x3", 1)));
    op_call("identity", "", y, 1, 1, t_of(CNR_i64, "2", (double[]){7, -7}));
    t_near(y[0], (double[]){7, -7}, 0, "identity of integers");
}

int main(void) {
    op_open();
    values();
    derivatives();
    loss();
    shapes();
    return op_done();
}
