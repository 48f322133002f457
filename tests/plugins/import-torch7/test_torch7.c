/* Torch7 files, binary and ASCII: small nets written here against arithmetic done by hand, damage,
 * and the real models with their figures. */
#include "plugins/importing.h"

/* ---- a writer ---- */

/* Bytes that are written. */
typedef struct writer {
    uint8_t at[1 << 16];
    size_t n;
    int ascii, index, narrow; /* narrow: longs of 4 bytes */
} writer;

/* Writes n bytes. */
static void bytes(writer *w, const void *data, size_t n) {
    memcpy(w->at + w->n, data, n);
    w->n += n;
}
/* Writes a number as text. */
static void number_text(writer *w, double value) {
    w->n += (size_t)sprintf((char *)w->at + w->n, "%.17g\n", value);
}
/* Writes an int. */
static void put_int(writer *w, int32_t value) {
    if (w->ascii) number_text(w, value);
    else bytes(w, &value, 4);
}
/* Writes a long. */
static void put_long(writer *w, int64_t value) {
    if (w->ascii) number_text(w, (double)value);
    else bytes(w, &value, w->narrow ? 4 : 8); /* the low half comes first */
}
/* Writes a double. */
static void put_double(writer *w, double value) {
    if (w->ascii) number_text(w, value);
    else bytes(w, &value, 8);
}
/* Writes a text with its length. */
static void text(writer *w, const char *s) {
    put_int(w, (int32_t)strlen(s));
    bytes(w, s, strlen(s));
    if (w->ascii) bytes(w, "\n", 1);
}
/* Writes a text value. */
static void string(writer *w, const char *s) {
    put_int(w, 2);
    text(w, s);
}
/* Writes a number of a table. */
static void number(writer *w, const char *key, double value) {
    string(w, key);
    put_int(w, 1);
    put_double(w, value);
}
/* Writes entry `key` of a table, a bool. */
static void boolean(writer *w, const char *key, int value) {
    string(w, key);
    put_int(w, 5);
    put_int(w, value);
}
/* Begins an object. */
static void object(writer *w, const char *class) {
    put_int(w, 4);
    put_int(w, ++w->index);
    text(w, "V 1");
    text(w, class);
}
/* Begins a table of n entries. */
static void table(writer *w, int32_t n) {
    put_int(w, 3);
    put_int(w, ++w->index);
    put_int(w, n);
}
/* Begins a module. */
static void module(writer *w, const char *class, int32_t fields) {
    object(w, class);
    table(w, fields);
}
/* `modules` of n, whose items follow each behind item(). */
static void modules(writer *w, const char *class, int32_t n) {
    module(w, class, 1);
    string(w, "modules");
    table(w, n);
}
/* Writes the key of an item. */
static void item(writer *w, int32_t index) {
    put_int(w, 1);
    put_double(w, index);
}
/* Writes entry `key`, a dense tensor of floats at the end of a storage that is one longer. */
static void tensor(writer *w, const char *key, const float *data, const int64_t *dim, int rank) {
    int64_t n = 1, stride = 1, strides[8];
    string(w, key);
    object(w, "torch.FloatTensor");
    put_int(w, rank);
    for (int i = 0; i < rank; i++) n *= dim[i];
    for (int i = rank - 1; i >= 0; i--) strides[i] = stride, stride *= dim[i];
    for (int i = 0; i < rank; i++) put_long(w, dim[i]);
    for (int i = 0; i < rank; i++) put_long(w, strides[i]);
    put_long(w, 2);
    object(w, "torch.FloatStorage");
    put_long(w, n + 1);
    for (int64_t i = 0; i < n + 1; i++) {
        const float f = i ? data[i - 1] : 77.0f;
        if (w->ascii) number_text(w, (double)f);
        else bytes(w, &f, 4);
    }
}
/* Writes a linear layer. */
static void linear(writer *w, int64_t out, int64_t in, const float *weight, const float *bias) {
    module(w, "nn.Linear", bias ? 2 : 1);
    tensor(w, "weight", weight, (const int64_t[]){out, in}, 2);
    if (bias) tensor(w, "bias", bias, &out, 1);
}
/* Writes a convolution with windows of k x k. */
static void convolution(writer *w, int64_t out, int64_t in, int k, const float *weight) {
    module(w, "nn.SpatialConvolutionMM", 5);
    number(w, "kW", k);
    number(w, "kH", k);
    number(w, "nInputPlane", (double)in);
    number(w, "nOutputPlane", (double)out);
    tensor(w, "weight", weight, (const int64_t[]){out, in * k * k}, 2);
}

/* Writes a file; returns its path. */
static const char *saved(const writer *w, const char *name) {
    const char *path = cnrt_path(name);
    cnrt_write(path, w->at, w->n);
    return path;
}

/* 1: the model gives these n numbers for x, within rounding; else a test fails. */
static int gives(cnr_model *m, const float *x, const int64_t *dim, int rank, const float *want,
                 int64_t n, const char *what) {
    const cnr_tensor *y = cnrt_run(m, x, dim, rank);
    const int good = ok(cnrt_distance(y, want, n) < 1e-6, "%s", what);
    for (int64_t i = 0; !good && y && i < cnr_count(y); i++)
        note("%lld: %g, want %g", (long long)i, (double)((const float *)y->data)[i],
             i < n ? (double)want[i] : 0);
    return good;
}

/* ---- made-up nets ---- */

static writer w;

/* Begins a file, in text (ascii) or binary. */
static void begin(int ascii) {
    w.n = 0;
    w.narrow = 0;
    w.index = 0;
    w.ascii = ascii;
}

/* Writes a perceptron, in text (ascii) or binary. */
static void write_perceptron(int ascii) {
    static const float weight[] = {1, 2, 3, -1, 0, 1}, bias[] = {10, 20};
    begin(ascii);
    modules(&w, "nn.Sequential", 3);
    item(&w, 1);
    linear(&w, 2, 3, weight, bias);
    item(&w, 2);
    module(&w, "nn.Dropout", 3); /* of old: scales at inference */
    number(&w, "p", 0.25);
    boolean(&w, "train", 0);
    string(&w, "hook");
    put_int(&w, 8); /* a function, to be passed over */
    put_int(&w, ++w.index);
    text(&w, "bytecode");
    table(&w, 0);
    item(&w, 3);
    module(&w, "nn.Threshold", 2);
    number(&w, "threshold", 0);
    number(&w, "val", 0);
}

/* A perceptron in text and binary files. */
static void test_perceptron(void) {
    static const float x[] = {1, 1, 1, -9, -9, -9}, want[] = {12, 15, 0, 15};
    for (int ascii = 0; ascii < 2; ascii++) {
        write_perceptron(ascii);
        cnr_model *m = cnrt_model("torch7", saved(&w, "net.t7"), NULL, NULL);
        if (!m) note("%s", cnrt_err.text);
        gives(m, x, (const int64_t[]){2, 3}, 2, want, 4,
              ascii ? "a perceptron in ASCII" : "a perceptron, its input's size told by Linear");
    }
}

static void test_narrow(void) { /* of a machine whose long has 32 bits */
    static const float weight[] = {1, 2, 3, -1, 0, 1}, x[] = {1, 1, 1}, want[] = {6, 0};
    begin(0);
    w.narrow = 1;
    linear(&w, 2, 3, weight, NULL);
    const char *path = saved(&w, "narrow.t7");
    gives(cnrt_model("torch7", path, NULL, "long=4"), x, (const int64_t[]){1, 3}, 2, want, 2,
          "a file of a 32-bit machine");
    gives(cnrt_model("torch7", path, NULL, NULL), x, (const int64_t[]){1, 3}, 2, want, 2,
          "and when nobody says so");
}

/* One module with fields of numbers (a key that begins with ? is of a boolean), on -n .. -1. */
static const struct one {
    const char *class, *shape;
    int64_t dim[5]; /* with a batch of 1 in front; 0: the end */
    struct {
        const char *key;
        double value;
    } fields[8];
    int n_want; /* 0: it is refused */
    float want[8];
} ones[] = {
    {"nn.SpatialLogSoftMax", "2,1,1", {1, 2, 1, 1}, {{NULL, 0}}, 2, {-1.3132617f, -0.3132617f}},
    {"nn.SoftMin", "2", {1, 2}, {{NULL, 0}}, 2, {0.7310586f, 0.2689414f}},
    {"nn.Threshold", "3", {1, 3}, {{"threshold", -2}, {"val", 9}}, 3, {9, 9, -1}},
    {"nn.SoftPlus", "1", {1, 1}, {{"beta", 2}}, 1, {0.0634640f}},
    {"nn.SoftShrink", "3", {1, 3}, {{"lambda", 2}}, 3, {-1, 0, 0}},
    {"nn.HardShrink", "3", {1, 3}, {{"lambda", 2}}, 3, {-3, 0, 0}},
    {"cudnn.ClippedReLU", "2", {1, 2}, {{"ceiling", 6}}, 2, {0, 0}},
    {"nn.Padding",
     "2",
     {1, 2},
     {{"dim", 1}, {"pad", -1}, {"nInputDim", 1}, {"value", 4}},
     3,
     {4, -2, -1}},
    {"nn.Narrow", "4", {1, 4}, {{"dimension", 2}, {"index", 2}, {"length", -2}}, 2, {-3, -2}},
    {"nn.Select", "2,2", {1, 2, 2}, {{"dimension", 2}, {"index", -1}}, 2, {-2, -1}},
    {"nn.ShaveImage", "1,3,3", {1, 1, 3, 3}, {{"size", 1}}, 1, {-5}},
    {"nn.SpatialAdaptiveAveragePooling",
     "1,1,3",
     {1, 1, 1, 3},
     {{"H", 1}, {"W", 2}},
     2,
     {-2.5f, -1.5f}},
    {"nn.SpatialAveragePooling",
     "1,1,3",
     {1, 1, 1, 3},
     {{"kW", 2}, {"kH", 1}, {"dW", 2}, {"dH", 1}, {"?ceil_mode", 1}, {"?divide", 0}},
     2,
     {-5, -1}},
    /* the second window would begin behind the picture, where Torch says -inf */
    {"nn.SpatialMaxPooling",
     "1,1,3",
     {1, 1, 1, 3},
     {{"kW", 1}, {"kH", 1}, {"dW", 3}, {"dH", 1}, {"?ceil_mode", 1}},
     0,
     {0}},
    {"nn.SpatialLPPooling", "1,1,3", {1, 1, 1, 3}, {{"kW", 1}, {"kH", 1}}, 0, {0}},
    {"nn.SpatialContrastiveNormalization", "1,1,3", {1, 1, 1, 3}, {{NULL, 0}}, 0, {0}},
};

/* What single modules compute. */
static void test_ones(void) {
    for (size_t i = 0; i < CNRI_COUNT(ones); i++) {
        const struct one *t = &ones[i];
        char shape[64];
        float x[16];
        int64_t count = 1;
        int n = 0, rank = 0;
        for (; t->dim[rank]; rank++) count *= t->dim[rank];
        for (int64_t k = 0; k < count; k++) x[k] = (float)(k - count);
        while (n < 8 && t->fields[n].key) n++;
        begin(0);
        module(&w, t->class, n);
        for (int k = 0; k < n; k++) {
            if (t->fields[k].key[0] == '?')
                boolean(&w, t->fields[k].key + 1, t->fields[k].value != 0);
            else number(&w, t->fields[k].key, t->fields[k].value);
        }
        snprintf(shape, sizeof shape, "shape=%s", t->shape);
        cnr_model *m = cnrt_model("torch7", saved(&w, "one.t7"), NULL, shape);
        if (!m && t->n_want) note("%s", cnrt_err.text);
        if (t->n_want) gives(m, x, t->dim, rank, t->want, t->n_want, t->class);
        else ok(!m && cnrt_err.text[0], "%s so is refused", t->class);
    }
}

/* Writes a node of nngraph whose data is a module of `class` (NULL: none), read from n_from
 * objects; returns its number. */
static int node(int32_t index, const char *class, const int *from, int n_from) {
    item(&w, index);
    module(&w, "nngraph.Node", 1);
    string(&w, "data");
    const int own = w.index + 1;
    table(&w, (class != NULL) + 1);
    if (class) {
        string(&w, "module");
        module(&w, class, 0);
    }
    string(&w, "mapindex");
    table(&w, n_from);
    for (int i = 0; i < n_from; i++) {
        item(&w, i + 1);
        put_int(&w, 3);
        put_int(&w, from[i]);
    }
    return own;
}

/* Nets of nngraph. */
static void test_graph(void) {
    static const float x[] = {-2, 3}, want[] = {2, 6};
    begin(0);
    module(&w, "nn.gModule", 1);
    string(&w, "forwardnodes");
    table(&w, 5);
    const int in = node(1, NULL, NULL, 0), relu = node(2, "nn.ReLU", &in, 1);
    const int size = node(3, "nn.Abs", &in, 1);
    const int sum = node(4, "nn.CAddTable", (const int[]){relu, size}, 2);
    node(5, NULL, &sum, 1);
    cnr_model *m = cnrt_model("torch7", saved(&w, "graph.t7"), NULL, "shape=2");
    if (!m) note("%s", cnrt_err.text);
    gives(m, x, (const int64_t[]){1, 2}, 2, want, 2, "a graph of nngraph");
}

/* Shared weights, tables, and a size found from the layers: the branches see the same 5 x 5. */
static void test_tables(void) {
    static const float one[] = {1, 0, 0, 0}, sum[] = {1, 1, 1, 1, 1, 1, 1, 1};
    begin(0);
    modules(&w, "nn.Sequential", 6);
    item(&w, 1);
    modules(&w, "nn.ConcatTable", 2);
    item(&w, 1);
    const int shared = w.index + 1;
    convolution(&w, 1, 1, 2, one); /* the pixel itself: 4 x 4 */
    item(&w, 2);
    put_int(&w, 4); /* the same module, referred to */
    put_int(&w, shared);
    item(&w, 2);
    module(&w, "nn.JoinTable", 2);
    number(&w, "dimension", 1);
    number(&w, "nInputDims", 3);
    item(&w, 3);
    module(&w, "nn.SpatialMaxPooling", 5);
    number(&w, "kW", 2);
    number(&w, "kH", 2);
    number(&w, "dW", 2);
    number(&w, "dH", 2);
    boolean(&w, "ceil_mode", 0);
    item(&w, 4);
    module(&w, "nn.View", 2);
    string(&w, "size");
    object(&w, "torch.LongStorage");
    put_long(&w, 1);
    put_long(&w, -1);
    number(&w, "numInputDims", 3);
    item(&w, 5);
    linear(&w, 1, 8, sum, NULL);
    item(&w, 6);
    module(&w, "nn.MulConstant", 1);
    number(&w, "constant_scalar", 0.5);
    float x[25];
    for (int i = 0; i < 25; i++) x[i] = (float)i;
    /* maxima of 2 x 2 windows of the upper left 4 x 4: 6, 8, 16, 18; twice, halved */
    cnr_model *m = cnrt_model("torch7", saved(&w, "tables.t7"), NULL, NULL);
    if (!m) note("%s", cnrt_err.text);
    gives(m, x, (const int64_t[]){1, 1, 5, 5}, 4, (const float[]){48}, 1,
          "a shared module in two branches; 5 x 5 is found");
    if (m) is_int(cnr_input_type(m, 0)->dim[2], 5, "the size where no window leaves pixels out");
}

/* Files with mistakes are refused with their reasons. */
static void test_problems(void) {
    begin(0);
    modules(&w, "nn.Sequential", 3);
    item(&w, 1);
    module(&w, "nn.Bogus", 0);
    item(&w, 2);
    module(&w, "nn.SpatialMaxPooling", 0);
    item(&w, 3);
    module(&w, "my.Own", 0);
    ok(!cnrt_model("torch7", saved(&w, "bad.t7"), NULL, NULL), "unsupported modules are refused");
    has_text(cnrt_err.text, "nn.Bogus", "the first is named");
    has_text(cnrt_err.text, "my.Own", "and so is the last");
    has_text(cnrt_err.text, "shape=", "the size is asked for");
    /* a list that holds itself */
    begin(0);
    modules(&w, "nn.Sequential", 1);
    item(&w, 1);
    put_int(&w, 4);
    put_int(&w, 1);
    ok(!cnrt_model("torch7", saved(&w, "loop.t7"), NULL, "shape=3"), "a net inside itself ends");
    has_text(cnrt_err.text, "nested too deeply", "with a reason");
    /* doubled 40 times: 2^40 layers if they were all made */
    begin(0);
    modules(&w, "nn.Sequential", 2);
    int depth = 40;
    for (int i = 0; i < depth; i++) {
        item(&w, 1);
        const int inner = w.index + 1;
        if (i + 1 < depth) modules(&w, "nn.Sequential", 2);
        else module(&w, "nn.Identity", 0);
        if (i + 1 == depth)
            for (int k = 0; k < depth; k++) {
                item(&w, 2);
                put_int(&w, 4);
                put_int(&w, inner - 3 * k);
            }
    }
    ok(!cnrt_model("torch7", saved(&w, "many.t7"), NULL, "shape=3"), "doubling modules end");
    /* a storage of one number seen as a million */
    begin(0);
    modules(&w, "nn.Sequential", 1);
    item(&w, 1);
    module(&w, "nn.Linear", 1);
    string(&w, "weight");
    object(&w, "torch.FloatTensor");
    put_int(&w, 2);
    put_long(&w, 1000);
    put_long(&w, 1000);
    put_long(&w, 0);
    put_long(&w, 0);
    put_long(&w, 1);
    object(&w, "torch.FloatStorage");
    put_long(&w, 1);
    put_int(&w, 0);
    ok(!cnrt_model("torch7", saved(&w, "wide.t7"), NULL, NULL), "a tensor larger than its storage");
}

/* ---- the real ones ---- */

/* Nets of the shared data. */
static void test_real(void) {
    const char *shared = tap_shared();
    char path[1200], weights[1200];
    static float x[4 * 784], y[40], picture[3 * 256 * 256];
    if (!shared) return skip("LeNet, perceptron, bumper", "shared data");
    snprintf(path, sizeof path, "%s/torch7/lenet5/LeNet5.nn", shared);
    cnr_model *net = cnrt_model("torch7", path, NULL, NULL);
    snprintf(path, sizeof path, "%s/caffe/lenet/lenet_deploy.prototxt", shared);
    snprintf(weights, sizeof weights, "%s/caffe/lenet/lenet_iter_10000.caffemodel", shared);
    cnrt_noise(x, 4 * 784, 3);
    const int64_t dim[] = {4, 1, 28, 28};
    const cnr_tensor *t = cnrt_run(net, x, dim, 4);
    if (!cnri_descriptor_find(CNR_KIND_IMPORTER, "caffe")) {
        skip("the same net from Caffe", "plugin import-caffe");
    } else if (t && cnr_count(t) == 40) {
        cnr_model *other = cnrt_model("caffe", path, weights, NULL);
        for (int i = 0; i < 4; i++) { /* Caffe's has a softmax behind the scores */
            const float *s = (const float *)t->data + 10 * i;
            double most = -1e30, sum = 0;
            for (int k = 0; k < 10; k++) most = fmax(most, (double)s[k]);
            for (int k = 0; k < 10; k++) sum += exp((double)s[k] - most);
            for (int k = 0; k < 10; k++) y[10 * i + k] = (float)(exp((double)s[k] - most) / sum);
        }
        const double d = cnrt_distance(cnrt_run(other, x, dim, 4), y, 40);
        ok(d < 1e-6, "LeNet answers as from Caffe, the same weights (%g)", d);
    } else ok(0, "LeNet runs");
    snprintf(path, sizeof path, "%s/torch7/hw1/model.t7", shared);
    t = cnrt_run(cnrt_model("torch7", path, NULL, NULL), x, (const int64_t[]){4, 784}, 2);
    ok(t && t->rank == 2 && t->dim[0] == 4 && t->dim[1] == 10, "a perceptron of CudaTensors");
    snprintf(path, sizeof path, "%s/torch7/bumper/model.net", shared);
    t = cnrt_run(cnrt_model("torch7", path, NULL, NULL), picture, (const int64_t[]){1, 3, 256, 256},
                 4);
    ok(t && t->rank == 2 && t->dim[1] == 2, "bumper: 3 x 256 x 256 in, two classes out");
    snprintf(path, sizeof path, "%s/torch7/hw1/model.t7", shared);
    cnrt_survives("torch7", (const char *const[]){path}, 1, 0, NULL, 50);
}

int main(void) {
    if (!cnrt_begin("torch7")) {
        skip("torch7", "plugin import-torch7");
        return cnrt_end();
    }
    test_perceptron();
    test_narrow();
    test_ones();
    test_graph();
    test_tables();
    test_problems();
    for (int ascii = 0; ascii < 2; ascii++) {
        write_perceptron(ascii);
        const char *path = saved(&w, ascii ? "ascii.t7" : "binary.t7");
        cnrt_survives("torch7", &path, 1, 0, NULL, 1000);
    }
    test_real();
    return cnrt_end();
}
