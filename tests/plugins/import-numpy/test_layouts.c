/* Weights as Lasagne, Theano and Keras lay them out: nets of a few layers computed here the way
 * those programs do, and LeNet's weights turned about and back. */
#include "arrays.h"

/* The net of a text, or NULL. */
static cnr_graph *load(const char *text) {
    cnr_graph *g = NULL;
    cnrt_err = (cnr_error)CNR_ERROR_INIT;
    const char *path = cnrt_path("net.lua");
    cnrt_write(path, text, strlen(text));
    const cnr_load_options options = {.size = sizeof options};
    if (cnri_load_graph(cnrt_runtime, path, &options, &g, &cnrt_err) == CNR_OK) return g;
    note("%s: %s", cnrt_err.where, cnrt_err.text);
    return NULL;
}

/* A test called `what`: the net of the Lua script `text` gives the n numbers `want` for input x of
 * these dims, at a distance (cnrt_distance) below 1e-5. */
static void same_answer(const char *text, const float *x, const int64_t dim[4], const float *want,
                        int64_t n, const char *what) {
    cnr_model *m = NULL;
    cnr_graph *g = load(text);
    if (g && cnri_model_from_graph(cnrt_runtime, g, NULL, &m, &cnrt_err) != CNR_OK) m = NULL;
    const cnr_tensor *y = cnrt_run(m, x, dim, 4);
    ok(cnrt_distance(y, want, n) < 1e-5, "%s", what);
    for (int64_t i = 0; y && i < n; i++)
        if (fabsf(((const float *)y->data)[i] - want[i]) > 1e-3f)
            note("%d: %g, want %g", (int)i, (double)((const float *)y->data)[i], (double)want[i]);
    cnr_release(m);
}

/* 3 channels of 5 x 5, kernels 3 x 3, 4 channels out, a matrix of 36 -> 3. */
enum { C = 3, S = 5, K = 3, O = 4, R = S - K + 1, M = 3 };
static float x[C * S * S], w[O * C * K * K], b[O], d[O * R * R * M], e[M];
static float beta[O], scale[O], mean[O], inv_std[O];

/* ---- Lasagne: true convolution, batch normalisation by 1 / deviation, (in, out) ---- */

/* out: the net's answer as Lasagne has it, with a normalisation (norm) or a bias. */
static void lasagne(float out[M], int norm) {
    float y[O * R * R];
    for (int o = 0; o < O; o++)
        for (int i = 0; i < R * R; i++) {
            float sum = norm ? 0 : b[o];
            for (int c = 0; c < C; c++)
                for (int k = 0; k < K * K; k++) /* the kernel runs backwards */
                    sum += w[(o * C + c) * K * K + K * K - 1 - k] *
                           x[c * S * S + (i / R + k / K) * S + i % R + k % K];
            if (norm) sum = (sum - mean[o]) * scale[o] * inv_std[o] + beta[o];
            y[o * R * R + i] = sum > 0 ? sum : 0;
        }
    for (int m = 0; m < M; m++) {
        out[m] = e[m];
        for (int i = 0; i < O * R * R; i++) out[m] += y[i] * d[i * M + m];
    }
}

/* Last things first: names count, not the order in the archive. */
static void save_norm(const char *const names[7]) {
    const float *const small[] = {beta, scale, mean, inv_std};
    archive z = {0};
    zip_add(&z, names[6], floats("(3,)", e, M), 0, 0);
    zip_add(&z, names[5], floats("(36, 3)", d, CNRI_COUNT(d)), 0, 0);
    for (int i = 4; i > 0; i--) zip_add(&z, names[i], floats("(4,)", small[i - 1], O), 0, 0);
    zip_add(&z, names[0], floats("(4, 3, 3, 3)", w, CNRI_COUNT(w)), 0, 0);
    zip_save(&z, "norm.npz");
}

/* Weights of Lasagne, whose windows are turned. */
static void test_lasagne(void) {
    static const char *const layers =
        "  input = { 'data', shape = { 'batch', 3, 5, 5 } },\n"
        "  c.conv2d { 'conv1', out = 4, kernel = 3%s }, %s c.relu {},\n"
        "  c.dense { 'fc', out = 3 } }\n";
    char text[800], head[300];
    float want[M];
    archive z = {0};
    lasagne(want, 0);
    zip_add(&z, "arr_0.npy", floats("(4, 3, 3, 3)", w, CNRI_COUNT(w)), 0, 0);
    zip_add(&z, "arr_1.npy", floats("(4,)", b, O), 0, 0);
    zip_add(&z, "arr_2.npy", floats("(36, 3)", d, CNRI_COUNT(d)), 0, 0);
    zip_add(&z, "arr_3.npy", floats("(3,)", e, M), 0, 0);
    zip_save(&z, "net.npz");
    snprintf(head, sizeof head,
             "local c = require 'cnnrun'\nreturn c.net {\n"
             "  weights = { 'net.npz', flip = true },\n%s",
             layers);
    snprintf(text, sizeof text, head, "", "");
    same_answer(text, x, (const int64_t[]){1, C, S, S}, want, M, "Lasagne, by position");

    lasagne(want, 1);
    save_norm((const char *const[]){"arr_0.npy", "arr_1.npy", "arr_2.npy", "arr_3.npy", "arr_4.npy",
                                    "arr_5.npy", "arr_6.npy"});
    snprintf(head, sizeof head,
             "local c = require 'cnnrun'\nreturn c.net {\nweights = { "
             "'norm.npz', flip = true, batch_norm = 'beta,gamma,mean,inv_std' },\n%s",
             layers);
    snprintf(text, sizeof text, head, ", bias = false", "c.batch_norm { 'bn' },");
    same_answer(text, x, (const int64_t[]){1, C, S, S}, want, M, "with a normalisation");
    snprintf(head, sizeof head,
             "local c = require 'cnnrun'\nreturn c.net {\nweights = { "
             "'norm.npz', flip = true },\n%s",
             layers);
    snprintf(text, sizeof text, head, ", bias = false", "c.batch_norm { 'bn' },");
    ok(!load(text), "a normalisation without names in no given order");
    has_text(cnrt_err.text, "batch_norm = \"beta,gamma,mean,inv_std\" (Lasagne)", "is refused");

    save_norm((const char *const[]){"conv1.W.npy", "bn.beta.npy", "bn.gamma.npy", "bn.mean.npy",
                                    "bn.inv_std.npy", "fc.W.npy", "fc.b.npy"});
    same_answer(text, x, (const int64_t[]){1, C, S, S}, want, M, "its arrays by name");
}

/* ---- Keras: height, width, channel everywhere ---- */

/* x as (h, w, c); kernels (h, w, in, out); one depthwise layer; rows in the order (h, w, c). */
static void test_keras(void) {
    float y[R * R * O], u[R * R * O], want[M] = {0}, deep[2 * 2 * O];
    cnrt_noise(deep, CNRI_COUNT(deep), 21);
    for (int i = 0; i < R * R; i++)
        for (int o = 0; o < O; o++) {
            float sum = b[o];
            for (int k = 0; k < K * K; k++)
                for (int c = 0; c < C; c++)
                    sum +=
                        w[(k * C + c) * O + o] * x[c * S * S + (i / R + k / K) * S + i % R + k % K];
            y[i * O + o] = sum;
        }
    enum { Q = R - 1 }; /* depthwise 2 x 2, multiplier 1: (h, w, in, 1) */
    for (int i = 0; i < Q * Q; i++)
        for (int o = 0; o < O; o++) {
            float sum = 0;
            for (int k = 0; k < 4; k++)
                sum += deep[k * O + o] * y[((i / Q + k / 2) * R + i % Q + k % 2) * O + o];
            u[i * O + o] = sum > 0 ? sum : 0;
        }
    for (int m = 0; m < M; m++) {
        want[m] = e[m];
        for (int i = 0; i < Q * Q * O; i++) want[m] += u[i] * d[i * M + m];
    }
    archive z = {0};
    zip_add(&z, "conv/kernel:0.npy", floats("(3, 3, 3, 4)", w, CNRI_COUNT(w)), 0, 0);
    zip_add(&z, "conv/bias:0.npy", floats("(4,)", b, O), 0, 0);
    zip_add(&z, "deep/depthwise_kernel:0.npy", floats("(2, 2, 4, 1)", deep, CNRI_COUNT(deep)), 0,
            0);
    zip_add(&z, "fc/kernel:0.npy", floats("(16, 3)", d, Q * Q * O * M), 0, 0);
    zip_add(&z, "fc/bias:0.npy", floats("(3,)", e, M), 0, 0);
    zip_save(&z, "keras.npz");
    same_answer("local c = require 'cnnrun'\n"
                "return c.net { weights = { 'keras.npz', layout = 'hwio' },\n"
                "  input = { 'data', shape = { 'batch', 3, 5, 5 } },\n"
                "  c.conv2d { 'conv', out = 4, kernel = 3 },\n"
                "  c.conv2d { 'deep', out = 4, kernel = 2, group = 4, bias = false },\n"
                "  c.flatten {}, c.relu {}, c.dropout {}, c.dense { 'fc', out = 3 } }\n",
                x, (const int64_t[]){1, C, S, S}, want, M, "Keras, with a depthwise layer");
}

/* ---- shapes that fit both ways, and other kernels ---- */

/* A test: a weight holds these numbers. */
static void holds(const char *settings, const char *layers, const char *name, const float *want,
                  int64_t n, const char *what) {
    char text[800];
    snprintf(text, sizeof text,
             "local c = require 'cnnrun'\nreturn c.net { weights = { "
             "'w.npy'%s },\n%s }\n",
             settings, layers);
    cnr_graph *g = load(text);
    const cnr_value v = g ? cnri_graph_find(g, name) : -1;
    ok(v >= 0 && cnrt_distance(cnri_graph_type(g, v), want, n) < 1e-7, "%s", what);
    cnri_graph_free(g);
}

/* Weights of transposed matrices are recognised. */
static void test_turns(void) {
    static const char square[] = "input = { 'x', shape = { 'b', 2 } }, "
                                 "c.dense { 'fc', out = 2, bias = false }";
    static const char wide[] = "input = { 'x', shape = { 'b', 3 } }, "
                               "c.dense { 'fc', out = 2, bias = false }";
    static const float n[] = {1, 2, 3, 4, 5, 6, 7, 8}, turned[] = {1, 3, 2, 4};
    static const float turned_wide[] = {1, 3, 5, 2, 4, 6};
    npy_save("w.npy", floats("(2, 2)", n, 4));
    holds("", square, "fc.weight", n, 4, "a square matrix stays");
    holds(", transpose = true", square, "fc.weight", turned, 4, "unless it is to be turned");
    holds(", layout = 'hwio'", square, "fc.weight", turned, 4, "as Keras' are");
    holds(", layout = 'hwio', transpose = false", square, "fc.weight", n, 4, "or not");
    npy_save("w.npy", floats("(3, 2)", n, 6));
    holds("", wide, "fc.weight", turned_wide, 6, "others turn by their shape");
    npy_save("w.npy", floats("(2, 3)", n, 6));
    holds(", transpose = true", wide, "fc.weight", n, 6, "either way");
    npy_save("w.npy", npy("<f4", 1, "(3, 2)", n, sizeof n - 8));
    holds("", wide, "fc.weight", n, 6, "a turned one in Fortran's order");

    /* a transposed convolution: (h, w, out, in) becomes in, out, h, w */
    static const float back[] = {1, 3, 5, 7, 2, 4, 6, 8};
    npy_save("w.npy", floats("(1, 2, 2, 2)", n, 8)); /* h 1, w 2, out 2, in 2 */
    static const float up[] = {1, 5, 3, 7, 2, 6, 4, 8};
    holds(", layout = 'hwio'",
          "input = { 'x', shape = { 'b', 2, 4, 4 } }, c.conv_transpose { 't', "
          "out = 2, kernel = { 1, 2 }, bias = false }",
          "t.weight", up, 8, "transposed kernels");
    npy_save("w.npy", floats("(4, 1, 2)", n, 8)); /* w 4, in 1, out 2 */
    holds(", layout = 'hwio'",
          "input = { 'x', shape = { 'b', 1, 9 } }, c.conv1d { 'k', out = 2, "
          "kernel = 4, bias = false }",
          "k.weight", back, 8, "kernels of one axis");
    npy_save("w.npy", floats("(2, 1, 4)", n, 8));
    static const float flipped[] = {4, 3, 2, 1, 8, 7, 6, 5};
    holds(", flip = true",
          "input = { 'x', shape = { 'b', 1, 9 } }, c.conv1d { 'k', out = 2, "
          "kernel = 4, bias = false }",
          "k.weight", flipped, 8, "turned");
    npy_save("w.npy", floats("(1, 2, 2, 2)", n, 8)); /* h 1, w 2, in 2, multiplier 2 */
    holds(", layout = 'hwio'",
          "input = { 'x', shape = { 'b', 2, 4, 4 } }, c.conv2d { 'k', "
          "out = 4, group = 2, kernel = { 1, 2 }, bias = false }",
          "k.weight", (const float[]){1, 5, 2, 6, 3, 7, 4, 8}, 8,
          "kernels of each channel its own");
    npy_save("w.npy", floats("(8, 1)", n, 8));
    holds(", layout = 'hwio'",
          "input = { 'x', shape = { 'b', 2, 2, 2 } }, "
          "c.dense { 'fc', out = 1, bias = false }",
          "fc.weight", back, 8, "rows behind pictures");
    holds(", layout = 'hwio', flatten = 'chw'",
          "input = { 'x', shape = { 'b', 2, 2, 2 } }, "
          "c.dense { 'fc', out = 1, bias = false }",
          "fc.weight", n, 8, "of channels first");
}

/* PReLU: PyTorch keeps a slope for each channel, Keras one for each element or (1, 1, channels). */
static void test_slopes(void) {
    static const char net[] = "input = { 'x', shape = { 'b', 2, 2, 2 } }, function(x)\n"
                              "return c.prelu { x, slope = c.weight { 's', shape = { 2, %s } } } "
                              "end";
    static const float n[] = {1, 2, 3, 4, 5, 6, 7, 8}, back[] = {1, 3, 5, 7, 2, 4, 6, 8};
    char one[200], each[200];
    snprintf(one, sizeof one, net, "1, 1");
    snprintf(each, sizeof each, net, "2, 2");
    npy_save("w.npy", floats("(2,)", n, 2));
    holds("", one, "s", n, 2, "slopes of channels");
    npy_save("w.npy", floats("(1, 1, 2)", n, 2));
    holds(", layout = 'hwio'", one, "s", n, 2, "with axes of size 1");
    npy_save("w.npy", floats("(2, 2, 2)", n, 8));
    holds("", each, "s", n, 8, "slopes of elements");
    holds(", layout = 'hwio'", each, "s", back, 8, "with channels last");
}

/* ---- LeNet, as Lasagne would have kept it ---- */

/* The weight as a .npy file, as Lasagne would keep it: filters turned by 180 degrees, matrices
 * transposed, others as they are. */
static bytes turned_about(const cnr_tensor *t) {
    const float *from = (const float *)t->data;
    const int64_t n = cnr_count(t), rows = t->dim[0], row = n / rows;
    float *to = malloc((size_t)n * sizeof *to);
    char shape[100];
    if (t->rank == 4)
        snprintf(shape, sizeof shape, "(%d, %d, %d, %d)", (int)rows, (int)t->dim[1], (int)t->dim[2],
                 (int)t->dim[3]);
    else if (t->rank == 2) snprintf(shape, sizeof shape, "(%d, %d)", (int)row, (int)rows);
    else snprintf(shape, sizeof shape, "(%d,)", (int)n);
    const int64_t k = t->rank == 4 ? t->dim[2] * t->dim[3] : 1;
    for (int64_t i = 0; to && i < n; i++) {
        if (t->rank == 4) to[i / k * k + k - 1 - i % k] = from[i];
        else if (t->rank == 2) to[i % row * rows + i / row] = from[i];
        else to[i] = from[i];
    }
    bytes b = floats(shape, to, n);
    free(to);
    return b;
}

/* LeNet's weights in several orders. */
static void test_lenet(void) {
    static const char *const names[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                        "ip1.weight",   "ip1.bias",   "ip2.weight",   "ip2.bias"};
    cnr_graph *g = NULL, *h;
    archive z = {0};
    char name[32];
    const cnr_load_options options = {.size = sizeof options};
    const char *path = CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua";
    if (cnri_load_graph(cnrt_runtime, path, &options, &g, &cnrt_err) != CNR_OK) {
        ok(0, "%s: %s", path, cnrt_err.text);
        return;
    }
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof name, "arr_%d.npy", i);
        zip_add(&z, name, turned_about(cnri_graph_type(g, cnri_graph_find(g, names[i]))),
                i % 2 ? ZIP_DEFLATED : 0, 0);
    }
    zip_save(&z, "lenet.npz");
    h = load("local c = require 'cnnrun'\n"
             "return c.net { weights = { 'lenet.npz', flip = true },\n"
             "  input = { 'data', shape = { 'batch', 1, 28, 28 } },\n"
             "  c.conv2d { 'conv1', out = 20, kernel = 5 }, c.maxpool { kernel = 2, stride = 2 },\n"
             "  c.conv2d { 'conv2', out = 50, kernel = 5 }, c.maxpool { kernel = 2, stride = 2 },\n"
             "  c.dense { 'ip1', out = 500 }, c.relu {}, c.dense { 'ip2', out = 10 } }\n");
    int same = h != NULL;
    for (int i = 0; h && i < 8; i++) {
        const cnr_tensor *a = cnri_graph_type(g, cnri_graph_find(g, names[i]));
        const cnr_tensor *b = cnri_graph_type(h, cnri_graph_find(h, names[i]));
        same = same && cnr_same_shape(a, b) && memcmp(a->data, b->data, a->bytes) == 0;
    }
    ok(same, "LeNet's weights, flipped and transposed, come back bit for bit");
    cnri_graph_free(h);
    cnri_graph_free(g);
}

int main(void) {
    if (!cnrt_begin("numpy")) {
        skip("numpy", "import-numpy.so, which needs libzip");
        return cnrt_end();
    }
    float *const all[] = {x, w, b, d, e, beta, scale, mean, inv_std};
    const size_t sizes[] = {CNRI_COUNT(x), CNRI_COUNT(w), O, CNRI_COUNT(d), M, O, O, O, O};
    for (size_t i = 0; i < CNRI_COUNT(all); i++) cnrt_noise(all[i], sizes[i], i + 1);
    for (int i = 0; i < O; i++) inv_std[i] = 0.3f + inv_std[i] * inv_std[i] * 4;
    test_lasagne();
    test_keras();
    test_turns();
    test_slopes();
    test_lenet();
    return cnrt_end();
}
