/* dense, gemm and matmul of cpu-neon against the references. */
#include "plugins/cpu-neon/neoncall.h"
#include <cnnrun/half.h>

static uint64_t seed = 11;

/* A tensor at random of a formatted shape; constant: a weight. */
static cnr_tensor *draw(int constant, const char *format, ...) {
    char dims[64];
    va_list args;
    va_start(args, format);
    vsnprintf(dims, sizeof dims, format, args);
    va_end(args);
    cnr_tensor *t = t_random(CNR_f32, dims, seed++);
    if (constant) t->flags |= CNR_TENSOR_CONST;
    return t;
}

/* Tests: dense layers. */
static void dense(void) {
    static const int sizes[][3] = {{1, 1, 1},    {1, 7, 10},    {1, 800, 500},
                                   {3, 33, 49},  {4, 17, 6},    {5, 1100, 7},
                                   {64, 50, 97}, {2, 2050, 13}, {1, 64, 1000}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
        cnr_tensor *x = k % 2 ? draw(0, "%dx%d", m, k) : draw(0, "%dx2x%d", m, k / 2);
        cnr_tensor *w = draw(1, "%dx%d", n, k), *b = draw(1, "%d", n);
        neon_check("dense", "", i % 2 ? "relu" : "", 3, x, w, b);
        neon_check("dense", "", i % 2 ? "" : "leaky_relu alpha=0.2", 2, x, w);
    }
}

/* Every half from 0 to the largest is itself again, and what lies between it and the next goes to
 * the even one: a layer of one weight an output, x 1. */
static void halves(void) {
    enum { N = 0x7bff };
    cnr_tensor *one = t_of(CNR_f32, "1x1", (double[]){1});
    cnr_tensor *w = draw(1, "%dx1", 2 * N), *right = draw(1, "1x%d", 2 * N);
    for (int i = 0; i < N; i++) {
        const double half = cnr_f16_to_f32((uint16_t)i), next = cnr_f16_to_f32((uint16_t)(i + 1));
        t_set(w, i, half);
        t_set(w, N + i, -0.5 * (half + next));
    }
    memcpy(right->data, w->data, (size_t)w->bytes);
    neon_check("dense", "", "", 2, one, w);
    neon_check("gemm", "", "", 2, one, right);
}

/* Tests: gemm. */
static void gemm(void) {
    static const int sizes[][3] = {{1, 1, 1},    {5, 3, 7},     {8, 48, 96},   {9, 49, 300},
                                   {17, 241, 5}, {50, 500, 64}, {33, 97, 257}, {300, 10, 600}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        for (int t = 0; t < 4; t++) {
            char attrs[128];
            cnr_tensor *a = t & 1 ? draw(0, "%dx%d", k, m) : draw(0, "%dx%d", m, k);
            cnr_tensor *b = t & 2 ? draw(i & 1, "%dx%d", n, k) : draw(i & 1, "%dx%d", k, n);
            cnr_tensor *c = t == 0   ? draw(1, "%d", n)
                            : t == 1 ? draw(1, "%dx1", m)
                            : t == 2 ? draw(1, "%dx%d", m, n)
                                     : draw(1, "1");
            snprintf(attrs, sizeof attrs, "transA=%d; transB=%d; alpha=0.5; beta=2", t & 1, t >> 1);
            neon_check("gemm", attrs, "relu", 3, a, b, c);
            snprintf(attrs, sizeof attrs, "transA=%d; transB=%d", t & 1, t >> 1);
            neon_check("gemm", attrs, "", 2, a, b);
        }
        cnr_tensor *x = draw(0, "%dx%d", m, k), *w = draw(1, "%dx%d", n, k);
        neon_check("gemm", "transB=1", "relu", 3, x, w, draw(1, "%d", n));
        neon_check("gemm", "transB=1", "", 3, x, w, draw(1, "1x%d", n));
    }
}

/* So many rows that tasks pack their own, on one to three threads. */
static void many_rows(void) {
    neon_check("matmul", "", "_add; relu", 2, draw(0, "1x301x7x130"), draw(1, "130x20"));
    neon_check("matmul", "", "_add", 2, draw(0, "3x101x900"), draw(1, "900x50"));
}

/* Tests: matmul. */
static void matmul(void) {
    static const char *const shapes[][2] = {{"5x7", "7x9"},       {"2x3x20x30", "2x3x30x40"},
                                            {"2x3x4x5", "3x5x6"}, {"4x5x6", "6x50"},
                                            {"1x40x9", "3x9x4"},  {"3x1x2x9", "2x9x5"},
                                            {"9", "9x4"},         {"3x9", "9"},
                                            {"1x300", "300x100"}, {"9", "9"},
                                            {"2x3x9", "9"}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int constant = 0; constant < 2; constant++)
            neon_check("matmul", "", i == 0 ? "relu" : "", 2, draw(0, "%s", shapes[i][0]),
                       draw(constant, "%s", shapes[i][1]));
}

/* Behind a product: a bias for each column, scales, and a residual; sizes that make several tasks
 * of one product. */
static void rows(void) {
    static const char *const shapes[][2] = {{"1x50x30", "30x70"},
                                            {"2x3x60x33", "2x3x33x65"},
                                            {"2x1x130x600", "2x600x9"}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        cnr_tensor *a = draw(0, "%s", shapes[i][0]), *b = draw(i == 0, "%s", shapes[i][1]);
        if (i == 2) a = draw(0, "2x130x600");
        neon_check("matmul", "", "_add; relu", 2, a, b);
        neon_check("matmul", "", ".mul; _add; add", 2, a, b);
        neon_check("matmul", "", ".div; .add; _mul", 2, a, b);
    }
    neon_check("gemm", "transB=1", "_mul", 2, draw(0, "5x40"), draw(1, "300x40"));
    neon_check("dense", "", "_add; .mul", 2, draw(0, "5x40"), draw(1, "300x40"));
    neon_check("add", "", "_mul; .add; .div", 2, draw(0, "3x1500x7"), draw(0, "3x1500x7"));
    neon_check("add", "", "^mul; ^add; ^div", 2, draw(0, "3x5x7x131"), draw(0, "3x5x7x131"));
    neon_check("instance_normalization", "", "^mul; ^add; add", 3, draw(0, "2x5x9x11"),
               draw(1, "5"), draw(1, "5"));
    neon_check("average_pool", "kernel=3; pads=1", "^mul; .add", 1, draw(0, "2x5x9x11"));
    neon_check("layer_normalization", "axis=-1", "_mul; _add", 2, draw(0, "30x70"), draw(1, "70"));
}

int main(void) {
    neon_open();
    kernel_cases.keeps = 1;
    NEON_EACH_ISA {
        seed = 11; /* the same cases, so that the reference runs once */
        dense();
        halves();
        gemm();
        matmul();
        many_rows();
        rows();
    }
    return op_done();
}
