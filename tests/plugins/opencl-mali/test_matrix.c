/* dense, gemm and matmul by OpenCL against the references. */
#include "plugins/opencl-mali/oclcall.h"

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
    static const int sizes[][3] = {{1, 1, 1},  {1, 7, 10},   {1, 800, 500}, {3, 33, 49},
                                   {4, 18, 6}, {5, 1100, 7}, {63, 50, 97}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
        cnr_tensor *x = k % 2 ? draw(0, "%dx%d", m, k) : draw(0, "%dx2x%d", m, k / 2);
        cnr_tensor *w = draw(1, "%dx%d", n, k), *b = draw(1, "%d", n);
        ocl_check("dense", "", "relu", 3, x, w, b);
        ocl_check("dense", "", i == 3 ? "add" : "", 2, x, w);
        w = draw(0, "%dx%d", n, k);
        w->flags = CNR_TENSOR_VARIABLE;
        ocl_check("dense", "", "", 2, x, w);
    }
}

/* Tests: gemm. */
static void gemm(void) {
    static const int sizes[][3] = {{1, 1, 1}, {5, 3, 7}, {9, 49, 300}, {17, 241, 5}};
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
            ocl_check("gemm", attrs, "relu", 3, a, b, c);
            snprintf(attrs, sizeof attrs, "transA=%d; transB=%d", t & 1, t >> 1);
            ocl_check("gemm", attrs, "", 2, a, b);
        }
        cnr_tensor *x = draw(0, "%dx%d", m, k), *w = draw(1, "%dx%d", n, k);
        ocl_check("gemm", "transB=1", "relu", 3, x, w, draw(1, "%d", n));
    }
}

/* Tests: matmul. */
static void matmul(void) {
    static const char *const shapes[][2] = {{"5x7", "7x9"},
                                            {"2x3x20x30", "2x3x30x40"},
                                            {"4x5x6", "6x50"},
                                            {"3x1x2x9", "9x5"},
                                            {"2x9", "4x9x5"}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int constant = 0; constant < 2; constant++)
            ocl_check("matmul", "", i == 0 ? "relu" : "", 2, draw(0, "%s", shapes[i][0]),
                      draw(constant, "%s", shapes[i][1]));
}

/* Tests dense, gemm and matmul of plugin opencl-mali against the references on each OpenCL device;
 * skipped without plugin or device. */
int main(void) {
    ocl_open("opencl-mali");
    OCL_EACH_DEVICE {
        dense();
        gemm();
        matmul();
    }
    return ocl_done();
}
