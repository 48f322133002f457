/* MXNet symbols and parameters: nets written here in all forms of both files against arithmetic
 * done by hand, damage, and MTCNN against the same nets from Caffe. */
#include "plugins/importing.h"

/* ---- a writer of parameters ---- */

/* Bytes that are written. */
typedef struct writer {
    uint8_t at[1 << 14];
    size_t n;
} writer;

/* Writes n bytes. */
static void put(writer *w, const void *data, size_t n) {
    memcpy(w->at + w->n, data, n);
    w->n += n;
}
static void put32(writer *w, uint32_t v) { put(w, &v, 4); }
static void put64(writer *w, uint64_t v) { put(w, &v, 8); }

/* An array of the file. */
typedef struct array {
    const char *name;
    const float *data;
    int rank;
    int64_t dim[4];
} array;

enum { LEGACY, V1, V2, V3 };
/* Writes n arrays in a form of the file. */
static void write_params(writer *w, const array *list, int n, int form) {
    static const uint32_t magic[] = {0, 0xF993FAC8u, 0xF993FAC9u, 0xF993FACAu};
    w->n = 0;
    put64(w, 0x112);
    put64(w, 0);
    put64(w, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        int64_t count = 1;
        if (form != LEGACY) put32(w, magic[form]);
        if (form >= V2) put32(w, 0);
        put32(w, (uint32_t)list[i].rank);
        for (int k = 0; k < list[i].rank; k++) {
            if (form == LEGACY) put32(w, (uint32_t)list[i].dim[k]);
            else put64(w, (uint64_t)list[i].dim[k]);
            count *= list[i].dim[k];
        }
        put32(w, 1);
        put32(w, 0);
        put32(w, 0);
        put(w, list[i].data, (size_t)count * 4);
    }
    put64(w, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        put64(w, strlen(list[i].name));
        put(w, list[i].name, strlen(list[i].name));
    }
}

/* ---- made-up nets; %s: the key of attributes, which the years have changed ---- */

static const char net_text[] =
    "{\"nodes\": [\n"
    "{\"op\": \"null\", \"name\": \"data\", \"inputs\": []},\n"
    "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []},\n"
    "{\"op\": \"Convolution\", \"name\": \"c\", \"%1$s\": {\"kernel\": \"(1, 2)\", "
    "\"num_filter\": \"2\", \"no_bias\": \"True\"}, \"inputs\": [[0, 0], [1, 0]]},\n"
    "{\"op\": \"null\", \"name\": \"g\", \"inputs\": []},\n"
    "{\"op\": \"null\", \"name\": \"b\", \"inputs\": []},\n"
    "{\"op\": \"BatchNorm\", \"name\": \"n\", \"%1$s\": {\"eps\": \"0\", \"fix_gamma\": \"True\"}, "
    "\"inputs\": [[2, 0], [3, 0], [4, 0]]},\n"
    "{\"op\": \"Pooling\", \"name\": \"p\", \"%1$s\": {\"kernel\": \"(1, 2)\", \"stride\": "
    "\"(1, 2)\", \"pool_type\": \"max\", \"pooling_convention\": \"full\"}, "
    "\"inputs\": [[5, 0]]},\n"
    "{\"op\": \"_RMinusScalar\", \"name\": \"m\", \"%1$s\": {\"scalar\": \"1e+1\"}, "
    "\"inputs\": [[6, 0]]},\n"
    "{\"op\": \"SliceChannel\", \"name\": \"s\", \"%1$s\": {\"num_outputs\": \"2\"}, "
    "\"inputs\": [[7, 0]]},\n"
    "{\"op\": \"Concat\", \"name\": \"j\", \"%1$s\": {\"dim\": \"1\"}, "
    "\"inputs\": [[8, 1], [8, 0]]},\n"
    "{\"op\": \"relu\", \"name\": \"j\", \"inputs\": [[9, 0]]}\n"
    "], \"arg_nodes\": [0, 1, 3, 4], \"heads\": [[10, 0]]}\n"; /* two of one name */

static const float conv[] = {1, 0, 0, 1}, five[] = {5, 5}, shift[] = {0, 1}, mean[] = {1, 1};
static const float var[] = {1, 4};
static const array arrays[] = {{"arg:w", conv, 4, {2, 1, 1, 2}},
                               {"arg:g", five, 1, {2}},
                               {"arg:b", shift, 1, {2}},
                               {"aux:n_moving_mean", mean, 1, {2}},
                               {"aux:n_moving_var", var, 1, {2}}};

static writer w;

/* Writes a file; returns its path. */
static const char *saved(const char *name, const void *data, size_t n) {
    const char *path = cnrt_path(name);
    cnrt_write(path, data, n);
    return path;
}

/* Writes a symbol file; returns its path. */
static const char *symbol(const char *name, const char *key) {
    char text[4096];
    snprintf(text, sizeof text, net_text, key);
    return saved(name, text, strlen(text));
}

/* Files of each version give the same net. */
static void test_forms(void) {
    static const char *const keys[] = {"param", "attr", "attrs", "attrs"};
    /* x 1 2 3 4: channels (1 2 3) and (2 3 4); normalised (0 1 2), (1.5 2 2.5); maxima of 1 x 2
     * windows, the last hanging over: (1 2), (2 2.5); 10 less that; channels exchanged */
    static const float x[] = {1, 2, 3, 4}, want[] = {8, 7.5f, 9, 8};
    for (int form = LEGACY; form <= V3; form++) {
        write_params(&w, arrays, 5, form);
        const char *params = saved("n.params", w.at, w.n), *json = symbol("n.json", keys[form]);
        cnr_model *m = cnrt_model("mxnet", json, params, NULL);
        if (!m) note("%s", cnrt_err.text);
        const cnr_tensor *y = cnrt_run(m, x, (const int64_t[]){1, 1, 1, 4}, 4);
        ok(cnrt_distance(y, want, 4) < 1e-6, "arrays of form %d, attributes as \"%s\"", form,
           keys[form]);
        for (int64_t i = 0; y && i < cnr_count(y); i++)
            if (((const float *)y->data)[i] != want[i])
                note("%d: %g", (int)i, (double)((const float *)y->data)[i]);
    }
}

/* One operator on 1..n, or on given numbers; `attrs` as JSON; n_want 0: it is refused. */
static const struct one {
    const char *op, *attrs, *shape;
    int64_t dim[5]; /* with a batch of 1 in front; 0: the end */
    int n_want;
    float want[12];
} ones[] = {
    /* a border of the old poolings is made of zeros, and a mean counts whole windows */
    {"Pooling_v1",
     "'kernel': '(2,)', 'pad': '(1,)', 'stride': '(2,)', 'pool_type': 'max'",
     "1,2",
     {1, 1, 2},
     2,
     {0, 0}},
    {"Pooling_v1",
     "'kernel': '(2,)', 'stride': '(2,)', 'pool_type': 'avg', "
     "'pooling_convention': 'full'",
     "1,3",
     {1, 1, 3},
     2,
     {-2.5f, -0.5f}},
    {"Pooling",
     "'kernel': '(2,)', 'stride': '(2,)', 'pool_type': 'sum', "
     "'pooling_convention': 'full'",
     "1,3",
     {1, 1, 3},
     2,
     {-5, -1}},
    {"Pooling",
     "'kernel': '(2,)', 'stride': '(2,)', 'pool_type': 'lp'",
     "1,2",
     {1, 1, 2},
     1,
     {2.236068f}},
    {"Pooling",
     "'global_pool': 'True', 'pool_type': 'sum', 'kernel': '(1, 1)'",
     "1,1,3",
     {1, 1, 1, 3},
     1,
     {-6}},
    /* the last window would see no pixel: MXNet gives -FLT_MAX for it */
    {"Pooling",
     "'kernel': '(1, 1)', 'stride': '(3, 3)', 'pooling_convention': 'full'",
     "1,5,5",
     {1, 1, 5, 5},
     0,
     {0}},
    {"Cast", "'dtype': 'int32'", "3", {1, 3}, 3, {-3, -2, -1}},
    {"round", "", "2", {1, 2}, 2, {-2, -1}},
    {"SoftmaxActivation", "", "2,1,1", {1, 2, 1, 1}, 2, {1, 1}},
    {"SoftmaxOutput", "", "2,1,1", {1, 2, 1, 1}, 2, {0.2689414f, 0.7310586f}},
    {"softmin", "'axis': '1'", "2", {1, 2}, 2, {0.7310586f, 0.2689414f}},
    {"softmax", "'temperature': '2'", "2", {1, 2}, 2, {0.3775407f, 0.6224593f}},
    {"Reshape",
     "'shape': '(-1, 0)', 'reverse': 'True'",
     "2,3",
     {1, 2, 3},
     6,
     {-6, -5, -4, -3, -2, -1}},
    {"reverse", "'axis': '(1,)'", "3", {1, 3}, 3, {-1, -2, -3}},
    {"slice",
     "'begin': '(None, None)', 'end': '(None, None)', 'step': '(None, -2)'",
     "3",
     {1, 3},
     2,
     {-1, -3}},
    {"repeat", "'repeats': '2', 'axis': '1'", "2", {1, 2}, 4, {-2, -2, -1, -1}},
    {"tile", "'reps': '(2,)'", "2", {1, 2}, 4, {-2, -1, -2, -1}},
    {"argmax", "'axis': '1'", "3", {1, 3}, 1, {2}},
    {"norm", "'axis': '1'", "2", {1, 2}, 1, {2.236068f}},
    {"_lesser_equal_scalar", "'scalar': '-2'", "3", {1, 3}, 3, {1, 1, 0}},
    {"_RDivScalar", "'scalar': '6'", "3", {1, 3}, 3, {-2, -3, -6}},
    {"_contrib_AdaptiveAvgPooling2D",
     "'output_size': '(1, 2)'",
     "1,1,3",
     {1, 1, 1, 3},
     2,
     {-2.5f, -1.5f}},
    {"_contrib_MultiBoxPrior",
     "'sizes': '(0.5,)', 'ratios': '(1.0,)'",
     "1,1,2",
     {1, 1, 1, 2},
     8,
     {0.125f, 0.25f, 0.375f, 0.75f, 0.625f, 0.25f, 0.875f, 0.75f}},
    {"_contrib_box_nms",
     "'valid_thresh': '-99'",
     "2,6",
     {1, 2, 6},
     12,
     {-6, -5, -4, -3, -2, -1, -12, -11, -10, -9, -8, -7}},
    {"RNN", "'mode': 'lstm'", "3", {1, 3}, 0, {0}},
    {"Custom", "", "3", {1, 3}, 0, {0}},
    {"Embedding", "'input_dim': '3', 'output_dim': '2'", "3", {1, 3}, 0, {0}},
};

/* What single operators compute. */
static void test_ones(void) {
    for (size_t i = 0; i < CNRI_COUNT(ones); i++) {
        const struct one *t = &ones[i];
        char text[1024], shape[64];
        float x[32];
        int64_t n = 1;
        int32_t rank = 0;
        snprintf(text, sizeof text,
                 "{'nodes': [{'op': 'null', 'name': 'data', 'inputs': []}, {'op': '%s', 'name': "
                 "'y', 'attrs': {%s}, 'inputs': [[0, 0]]}], 'heads': [[1, 0]]}",
                 t->op, t->attrs);
        for (char *c = text; *c; c++)
            if (*c == '\'') *c = '"';
        for (; t->dim[rank]; rank++) n *= t->dim[rank];
        for (int64_t k = 0; k < n; k++) x[k] = (float)(k - n);
        snprintf(shape, sizeof shape, "shape=%s", t->shape);
        cnr_model *m = cnrt_model("mxnet", saved("one.json", text, strlen(text)), NULL, shape);
        if (!m && t->n_want) note("%s", cnrt_err.text);
        const cnr_tensor *y = m ? cnrt_run(m, x, t->dim, rank) : NULL;
        if (t->n_want) ok(cnrt_distance(y, t->want, t->n_want) < 1e-6, "%s %s", t->op, t->attrs);
        else ok(!m, "%s %s: refused", t->op, t->attrs);
    }
}

/* Boxes (0 .1 .2 .3) and (.4 .5 .6 .7) that stay where they are: each as its best class alone. */
static void test_detection(void) {
    static const char text[] =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []},"
        "{\"op\": \"_zeros\", \"name\": \"z\", \"attrs\": {\"shape\": \"(1, 8)\"}, \"inputs\": []},"
        "{\"op\": \"_arange\", \"name\": \"a\", \"attrs\": {\"start\": \"0\", \"stop\": \"8\"}, "
        "\"inputs\": []},"
        "{\"op\": \"_div_scalar\", \"name\": \"d\", \"attrs\": {\"scalar\": \"10\"}, "
        "\"inputs\": [[2, 0]]},"
        "{\"op\": \"Reshape\", \"name\": \"b\", \"attrs\": {\"shape\": \"(1, 2, 4)\"}, "
        "\"inputs\": [[3, 0]]},"
        "{\"op\": \"_contrib_MultiBoxDetection\", \"name\": \"y\", \"inputs\": [[0, 0], [1, 0], "
        "[4, 0]]}], \"heads\": [[5, 0]]}";
    static const float x[] = {0, 0.1f, 0.9f, 0.2f, 0.1f, 0.7f}; /* background, two classes */
    static const float want[] = {0, 1, 0.9f, 0,    0.1f, 0.2f, 0.3f,
                                 0, 2, 0.7f, 0.4f, 0.5f, 0.6f, 0.7f};
    cnr_model *m = cnrt_model("mxnet", saved("ssd.json", text, strlen(text)), NULL, "shape=3,2");
    if (!m) note("%s", cnrt_err.text);
    ok(cnrt_distance(cnrt_run(m, x, (const int64_t[]){1, 3, 2}, 3), want, 14) < 1e-6,
       "MultiBoxDetection gives a list of boxes");
}

static const char behind[] = /* what stands behind a global pooling lets any size in */
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []},"
    "{\"op\": \"null\", \"name\": \"w\", \"inputs\": []},"
    "{\"op\": \"Convolution\", \"name\": \"c\", \"attrs\": {\"kernel\": \"(1, 2)\", "
    "\"num_filter\": \"2\", \"no_bias\": \"True\"}, \"inputs\": [[0, 0], [1, 0]]},"
    "{\"op\": \"Pooling\", \"name\": \"p\", \"attrs\": {\"global_pool\": \"True\", \"kernel\": "
    "\"(7, 7)\", \"pool_type\": \"max\"}, \"inputs\": [[2, 0]]},"
    "{\"op\": \"Flatten\", \"name\": \"f\", \"inputs\": [[3, 0]]}], \"heads\": [[4, 0]]}";

/* A net with an open batch. */
static void test_open(void) {
    static const float x[] = {1, 2, 3, 4}, want[] = {3, 4};
    write_params(&w, arrays, 5, V2);
    const char *params = saved("n.params", w.at, w.n);
    cnr_model *m = cnrt_model("mxnet", saved("open.json", behind, strlen(behind)), params, NULL);
    ok(cnrt_distance(cnrt_run(m, x, (const int64_t[]){1, 1, 1, 4}, 4), want, 2) < 1e-6,
       "a net with a global pooling needs no shape");
}

/* Files with mistakes are refused with their reasons. */
static void test_problems(void) {
    static const char bad[] =
        "{\"nodes\": [{\"op\": \"null\", \"name\": \"data\", \"inputs\": []},"
        "{\"op\": \"Bogus\", \"name\": \"one\", \"inputs\": [[0, 0]]},"
        "{\"op\": \"Pooling\", \"name\": \"two\", \"inputs\": [[1, 0]]},"
        "{\"op\": \"Strange\", \"name\": \"three\", \"inputs\": [[2, 0], [3, 0]]}],"
        "\"heads\": [[3, 0]]}";
    const char *path = saved("bad.json", bad, strlen(bad));
    ok(!cnrt_model("mxnet", path, NULL, "shape=3"), "unsupported operators are refused");
    has_text(cnrt_err.text, "Bogus", "the first is named");
    has_text(cnrt_err.text, "Strange", "and so is the last");
    write_params(&w, arrays, 3, V2);
    const char *params = saved("short.params", w.at, w.n);
    ok(!cnrt_model("mxnet", symbol("n.json", "attrs"), params, NULL), "missing statistics");
    has_text(cnrt_err.text, "n_moving_mean", "are named");
    const char *own = "{\"nodes\": [{\"op\": \"relu\", \"name\": \"a\", \"inputs\": [[0, 0]]}]}";
    ok(!cnrt_model("mxnet", saved("own.json", own, strlen(own)), NULL, NULL), "no cycles");
    char *deep = malloc(100001);
    memset(deep, '[', 100000);
    ok(!cnrt_model("mxnet", saved("deep.json", deep, 100000), NULL, NULL), "no deep nesting");
    free(deep);
    const char *alone[] = {params};
    cnr_graph *g = cnrt_import("mxnet", alone, 1, NULL, 0);
    ok(g && cnri_graph_find(g, "w") >= 0, "parameters alone are named constants");
    cnri_graph_free(g);
}

/* Parameters without a symbol, for a net in Lua. */
static void test_weights(void) {
    static const char lua[] = "local c = require 'cnnrun'\n"
                              "return c.net { weights = 'net.params',\n"
                              "  input = { 'data', shape = { 'batch', 1, 1, 3 } },\n"
                              "  c.conv2d { 'c', out = 2, kernel = { 1, 2 }, bias = false },\n"
                              "  c.batch_norm { 'n' } }\n";
    static const array named[] = {{"arg:net0_c_weight", conv, 4, {2, 1, 1, 2}},
                                  {"arg:n_gamma", five, 1, {2}},
                                  {"arg:n_beta", shift, 1, {2}},
                                  {"aux:n_moving_mean", mean, 1, {2}},
                                  {"aux:n_moving_var", var, 1, {2}}};
    static const char *const names[] = {"c.weight", "n.scale", "n.b", "n.mean", "n.var"};
    const cnr_load_options options = {.size = sizeof options};
    cnr_graph *g = NULL;
    write_params(&w, named, 5, V2);
    saved("net.params", w.at, w.n);
    const char *path = saved("net.lua", lua, sizeof lua - 1);
    if (!ok(cnri_load_graph(cnrt_runtime, path, &options, &g, &cnrt_err) == CNR_OK,
            "parameters alone fill a net in Lua"))
        note("%s", cnrt_err.text);
    for (int i = 0; g && i < 5; i++) {
        const cnr_tensor *t = cnri_graph_type(g, cnri_graph_find(g, names[i]));
        ok(cnrt_distance(t, named[i].data, i ? 2 : 4) == 0, "%s is %s", names[i], named[i].name);
    }
    cnri_graph_free(g);
    g = NULL;
    write_params(&w, named, 4, V2);
    saved("net.params", w.at, w.n);
    ok(cnri_load_graph(cnrt_runtime, path, &options, &g, &cnrt_err) != CNR_OK, "too few do not");
    has_text(cnrt_err.text, "no array for n.var, 2 numbers", "and it is told which");
}

/* ---- the real ones ---- */

/* out: rows and columns exchanged, and (reverse) three channels in reverse order. */
static void turn(const float *in, float *out, int64_t c, int64_t h, int64_t width, int reverse) {
    for (int64_t k = 0; k < c; k++)
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < width; x++)
                out[((reverse ? c - 1 - k : k) * width + x) * h + y] = in[(k * h + y) * width + x];
}

/* The output whose name has `part`, or NULL. */
static const cnr_tensor *named(cnr_model *m, const cnr_tensor *const *out, const char *part) {
    for (int32_t i = 0; m && i < cnr_output_count(m); i++)
        if (strstr(cnr_output_name(m, i), part)) return out[i];
    return NULL;
}

/* Runs the net; 0: it fails. */
static int run_all(cnr_model *m, const float *data, int64_t h, int64_t width,
                   const cnr_tensor **out) {
    cnr_tensor t = {.size = sizeof t,
                    .dtype = CNR_f32,
                    .rank = 4,
                    .dim = {1, 3, h, width},
                    .data = (void *)data};
    const cnr_tensor *in = &t;
    t.bytes = cnr_dense_bytes(&t);
    if (m && cnr_run_tensors(m, &in, 1, out, cnr_output_count(m), &cnrt_err) == CNR_OK) return 1;
    note("%s: %s", cnrt_err.where, cnrt_err.text);
    return 0;
}

/* A stage of MTCNN by Caffe's and MXNet's files. */
static void test_mtcnn(const char *shared, int stage, int64_t h, int64_t width, const char *shape) {
    static const char *const heads[3][3][2] =
        {{{"prob1", "prob1"}, {"conv4_2", "conv4-2"}, {NULL, NULL}},
         {{"prob1", "prob1"}, {"conv5_2", "conv5-2"}, {NULL, NULL}},
         {{"prob1", "prob1"}, {"conv6_2", "conv6-2"}, {"conv6_3", "conv6-3"}}};
    static float x[3 * 64 * 64], xt[3 * 64 * 64], yt[1 << 14];
    char json[1200], params[1200];
    const cnr_tensor *a[4], *b[4];
    snprintf(json, sizeof json, "%s/mxnet/mtcnn/det%d-symbol.json", shared, stage);
    snprintf(params, sizeof params, "%s/mxnet/mtcnn/det%d-0001.params", shared, stage);
    cnr_model *mx = cnrt_model("mxnet", json, params, shape);
    if (!mx) note("%s", cnrt_err.text);
    snprintf(json, sizeof json, "%s/caffe/mtcnn/det%d.prototxt", shared, stage);
    snprintf(params, sizeof params, "%s/caffe/mtcnn/det%d.caffemodel", shared, stage);
    cnr_model *caffe = cnrt_model("caffe", json, params, NULL);
    if (!caffe) note("%s", cnrt_err.text);
    cnrt_noise(x, (size_t)(3 * h * width), (uint64_t)stage);
    turn(x, xt, 3, h, width, 1);
    const int good = run_all(mx, x, h, width, a) && run_all(caffe, xt, width, h, b);
    for (int i = 0; i < 3 && heads[stage - 1][i][0]; i++) {
        const cnr_tensor *y = good ? named(mx, a, heads[stage - 1][i][0]) : NULL;
        const cnr_tensor *z = good ? named(caffe, b, heads[stage - 1][i][1]) : NULL;
        if (y && y->rank == 4) turn((const float *)y->data, yt, y->dim[1], y->dim[2], y->dim[3], 0);
        else if (y) memcpy(yt, y->data, y->bytes);
        const double d = y ? cnrt_distance(z, yt, cnr_count(y)) : 1e30;
        ok(d < 1e-5, "det%d %s as from Caffe, turned (%g)", stage, heads[stage - 1][i][0], d);
    }
}

/* LeNet and MTCNN of the shared data. */
static void test_real(void) {
    const char *shared = tap_shared();
    static float x[2 * 784];
    char json[1200], params[1200];
    if (!shared) return skip("LeNet, MTCNN", "shared data");
    snprintf(json, sizeof json, "%s/mxnet/lenet/lenet-symbol.json", shared);
    snprintf(params, sizeof params, "%s/mxnet/lenet/lenet-0001.params", shared);
    const cnr_tensor *y = cnrt_run(cnrt_model("mxnet", json, params, "shape=1,28,28"), x,
                                   (const int64_t[]){2, 1, 28, 28}, 4);
    ok(y && y->rank == 2 && y->dim[0] == 2 && y->dim[1] == 10, "LeNet runs, two at once");
    const char *both[] = {json, params};
    cnrt_survives("mxnet", both, 2, 0, "shape=1,28,28", 1000);
    cnrt_survives("mxnet", both, 2, 1, "shape=1,28,28", 1000);
    if (!cnri_descriptor_find(CNR_KIND_IMPORTER, "caffe"))
        return skip("MTCNN", "plugin import-caffe");
    test_mtcnn(shared, 1, 31, 40, NULL);
    test_mtcnn(shared, 2, 24, 24, "shape=3,24,24");
    test_mtcnn(shared, 3, 48, 48, "shape=3,48,48");
}

int main(void) {
    if (!cnrt_begin("mxnet")) {
        skip("mxnet", "plugin import-mxnet");
        return cnrt_end();
    }
    test_forms();
    test_ones();
    test_detection();
    test_open();
    test_problems();
    test_weights();
    const char *json = symbol("n.json", "attrs");
    write_params(&w, arrays, 5, V2);
    const char *both[] = {json, saved("n.params", w.at, w.n)};
    cnrt_survives("mxnet", both, 2, 0, NULL, 1000);
    cnrt_survives("mxnet", both, 2, 1, NULL, 1000);
    test_real();
    return cnrt_end();
}
