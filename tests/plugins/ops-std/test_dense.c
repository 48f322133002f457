/* dense, gemm, matmul: hand-worked products, gradients, splits, refusals. */
#include "opcall.h"
#include <unistd.h>

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* Tests: products. */
static void products(void) {
    cnr_tensor *y[1];
    cnr_tensor *x = t_of(CNR_f32, "2x2x1", (double[]){1, 2, 3, 4});
    cnr_tensor *w = t_of(CNR_f32, "3x2", (double[]){1, 0, 0, 1, 2, -1});
    cnr_tensor *b = t_of(CNR_f32, "3", (double[]){10, 20, 30});
    op_call("dense", "out=3", y, 1, 3, x, w, b);
    t_near(y[0], (double[]){11, 22, 30, 13, 24, 32}, 1e-6, "dense flattens and adds the bias");
    op_call("dense", "", y, 1, 2, x, w);
    t_near(y[0], (double[]){1, 2, 0, 3, 4, 2}, 1e-6, "dense without a bias");

    cnr_tensor *a = t_of(CNR_f32, "2x3", (double[]){1, 2, 3, 4, 5, 6});
    cnr_tensor *c = t_of(CNR_f32, "2x1", (double[]){100, 200});
    op_call("gemm", "transB=1;alpha=2;beta=0.5", y, 1, 3, a, a, c);
    t_near(y[0], (double[]){78, 114, 164, 254}, 1e-6, "a times its transpose, c broadcast");
    op_call("gemm", "transA=1", y, 1, 2, a, a);
    t_near(y[0], (double[]){17, 22, 27, 22, 29, 36, 27, 36, 45}, 1e-6, "transposed a times a");
    cnr_tensor *big = t_of(CNR_i64, "1x1", (double[]){4611686018427387904.0});
    op_call("gemm", "", y, 1, 3, big, t_of(CNR_i64, "1x1", (double[]){1}),
            t_of(CNR_i64, "", (double[]){1}));
    ok(((int64_t *)y[0]->data)[0] == 4611686018427387905, "i64 is exact");
}

/* Tests: broadcasting. */
static void broadcasting(void) {
    cnr_tensor *y[1];
    cnr_tensor *a = t_random(CNR_f64, "2x1x3x4", 1), *b = t_random(CNR_f64, "5x4x2", 2);
    op_call("matmul", "", y, 1, 2, a, b);
    t_shape(y[0], "2x5x3x2", "matmul broadcasts");
    double want[60];
    for (int i = 0; i < 60; i++) {
        const int n = i % 2, m = i / 2 % 3, q = i / 6 % 5, p = i / 30;
        want[i] = 0;
        for (int k = 0; k < 4; k++)
            want[i] += t_get(a, (p * 3 + m) * 4 + k) * t_get(b, (q * 4 + k) * 2 + n);
    }
    t_near(y[0], want, 1e-12, "its values");
    cnr_tensor *v = t_of(CNR_f32, "2", (double[]){1, 2});
    cnr_tensor *m = t_of(CNR_f32, "2x3", (double[]){1, 2, 3, 4, 5, 6});
    op_call("matmul", "", y, 1, 2, v, m);
    t_shape(y[0], "3", "a vector times a matrix");
    t_near(y[0], (double[]){9, 12, 15}, 1e-6, "its values");
    op_call("matmul", "", y, 1, 2, v, v);
    t_shape(y[0], "", "a dot product is a scalar");
    t_near(y[0], (double[]){5}, 1e-6, "its value");
    cnr_tensor *n = t_of(CNR_i32, "2x2", (double[]){1, -2, 3, 4});
    op_call("matmul", "", y, 1, 2, n, n);
    t_near(y[0], (double[]){-5, -10, 15, 10}, 0, "i32");
    op_call("matmul", "", y, 1, 2, t_random(CNR_f32, "2x0", 1), t_random(CNR_f32, "0x2", 1));
    t_near(y[0], (double[]){0, 0, 0, 0}, 0, "an empty sum is 0");
}

/* Tests: gradients and splits. */
static void gradients_and_splits(void) {
    cnr_tensor *x = t_random(CNR_f64, "3x2x2", 1), *w = t_random(CNR_f64, "5x4", 2);
    cnr_tensor *b = t_random(CNR_f64, "5", 3);
    for (int32_t p = 0; p < 3; p++) op_gradcheck("dense", "", p, 3, IN(x, w, b));
    op_splitcheck("dense", "", 3, IN(x, w, b));
    cnr_tensor *a[2] = {t_random(CNR_f64, "3x4", 4), t_random(CNR_f64, "4x3", 5)};
    cnr_tensor *c[2] = {t_random(CNR_f64, "4x5", 6), t_random(CNR_f64, "5x4", 7)};
    for (int ta = 0; ta < 2; ta++)
        for (int tb = 0; tb < 2; tb++) {
            char attrs[64];
            snprintf(attrs, sizeof attrs, "transA=%d;transB=%d;alpha=0.5;beta=3", ta, tb);
            for (int32_t p = 0; p < 3; p++)
                op_gradcheck("gemm", attrs, p, 3, IN(a[ta], c[tb], t_random(CNR_f64, "3x1", 8)));
            op_splitcheck("gemm", attrs, 3, IN(a[ta], c[tb], t_random(CNR_f64, "5", 8)));
        }
    cnr_tensor *p = t_random(CNR_f64, "2x1x3x4", 1), *q = t_random(CNR_f64, "5x4x2", 2);
    op_splitcheck("matmul", "", 2, IN(p, q));
    op_gradcheck("matmul", "", 0, 2, IN(p, q));
    op_gradcheck("matmul", "", 1, 2, IN(p, q));
}

/* Tests: what is refused. */
static void refusals(void) {
    cnr_tensor *m = t_random(CNR_f32, "2x3", 1);
    op_refused("dense", "", "weight", 2, IN(m, t_random(CNR_f32, "4x2", 1)));
    op_refused("dense", "", "bias", 3,
               IN(m, t_random(CNR_f32, "4x3", 1), t_random(CNR_f32, "3", 1)));
    op_refused("gemm", "", "rows of 3", 2, IN(m, m));
    op_refused("gemm", "transB=1", "broadcast", 3, IN(m, m, t_random(CNR_f32, "3", 1)));
    op_refused("matmul", "", "rows of 3", 2, IN(m, m));
    op_refused("matmul", "", "one type", 2, IN(m, t_random(CNR_f64, "3x2", 1)));
    op_refused("matmul", "", "rank", 2, IN(m, t_random(CNR_f32, "", 1)));
}

/* Nothing is worked out, however many matrices of no elements there are. */
static void empty(void) {
    static const char *const ops[] = {"matmul", "matmul_integer"};
    cnr_tensor *y[1];
    alarm(60); /* else it would go on for days */
    for (int32_t i = 0; i < 2; i++) {
        const int32_t dtype = i ? CNR_u8 : CNR_f32;
        op_call(ops[i], "", y, 1, 2, t_of(dtype, "30000x30000x30000x0x3", NULL),
                t_of(dtype, "3x2", (double[]){1, 2, 3, 4, 5, 6}));
        t_shape(y[0], "30000x30000x30000x0x2", ops[i]);
    }
    alarm(0);
}

int main(void) {
    op_open();
    empty();
    products();
    broadcasting();
    gradients_and_splits();
    refusals();
    return op_done();
}
