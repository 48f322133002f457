/* import-onnx on models made here: control flow, numbers known only at run, what older operator
 * sets meant, damaged files. */
#include "plugins/importing.h"

/* ---- as much of protobuf's writing as models need ---- */

/* A message that is written. */
typedef struct msg {
    uint8_t at[1 << 14];
    size_t n;
} msg;

/* Writes a whole number. */
static void varint(msg *m, uint64_t v) {
    for (; v > 0x7f; v >>= 7) m->at[m->n++] = (uint8_t)(v | 0x80);
    m->at[m->n++] = (uint8_t)v;
}
/* Writes a field of a whole number. */
static void number(msg *m, int field, int64_t v) {
    varint(m, (uint64_t)field << 3);
    varint(m, (uint64_t)v);
}
/* Writes a field of bytes. */
static void bytes(msg *m, int field, const void *data, size_t n) {
    varint(m, (uint64_t)field << 3 | 2);
    varint(m, n);
    memcpy(m->at + m->n, data, n);
    m->n += n;
}
static void text(msg *m, int field, const char *s) { bytes(m, field, s, strlen(s)); }
static void part(msg *m, int field, const msg *sub) { bytes(m, field, sub->at, sub->n); }

/* ---- models: fields are named by the format's numbers ---- */

enum { FLOAT = 1, UINT8 = 2, INT64 = 7 };

/* A node; `in` and `out` are names with blanks between them, "-" for one that is left out. */
static msg node(const char *op, const char *in, const char *out) {
    msg m = {.n = 0};
    char list[2][128];
    snprintf(list[0], sizeof list[0], "%s", in);
    snprintf(list[1], sizeof list[1], "%s", out);
    for (int i = 0; i < 2; i++)
        for (char *at = strtok(list[i], " "); at; at = strtok(NULL, " "))
            text(&m, i + 1, strcmp(at, "-") == 0 ? "" : at);
    text(&m, 4, op);
    return m;
}
/* Adds a whole attribute. */
static void attr_int(msg *n, const char *name, int64_t v) {
    msg a = {.n = 0};
    text(&a, 1, name);
    number(&a, 3, v);
    part(n, 5, &a);
}
/* Adds an attribute, a list of `count` whole numbers, to a node. */
static void attr_ints(msg *n, const char *name, const int64_t *v, int count) {
    msg a = {.n = 0};
    text(&a, 1, name);
    for (int i = 0; i < count; i++) number(&a, 8, v[i]);
    part(n, 5, &a);
}
/* Adds an attribute with this field to a node. */
static void attr_part(msg *n, const char *name, int field, const msg *value) {
    msg a = {.n = 0};
    text(&a, 1, name);
    part(&a, field, value);
    part(n, 5, &a);
}
/* A tensor of an ONNX type, rows x columns (below 0: without the axis), with its data. */
static msg tensor(const char *name, int type, int64_t rows, int64_t columns, const void *data) {
    msg t = {.n = 0};
    if (rows >= 0) number(&t, 1, rows);
    if (columns >= 0) number(&t, 1, columns);
    number(&t, 2, type);
    text(&t, 8, name);
    bytes(&t, 9, data,
          (size_t)((rows < 0 ? 1 : rows) * (columns < 0 ? 1 : columns)) * (type == FLOAT   ? 4
                                                                           : type == UINT8 ? 1
                                                                                           : 8));
    return t;
}
/* Adds an input or value, by its field, of rows x columns to a graph. */
static void value(msg *g, int field, const char *name, int64_t rows, int64_t columns) {
    const int64_t dims[] = {rows, columns};
    msg shape = {.n = 0}, type = {.n = 0}, whole = {.n = 0}, info = {.n = 0};
    for (int i = 0; i < 2; i++) {
        msg dim = {.n = 0};
        number(&dim, 1, dims[i]);
        part(&shape, 1, &dim);
    }
    number(&type, 1, FLOAT);
    part(&type, 2, &shape);
    part(&whole, 1, &type);
    text(&info, 1, name);
    part(&info, 2, &whole);
    part(g, field, &info);
}
static void add(msg *g, msg n) { part(g, 1, &n); }
static void constant(msg *g, msg t) { part(g, 5, &t); }
/* Adds an output. */
static void output(msg *g, const char *name) {
    msg info = {.n = 0};
    text(&info, 1, name);
    part(g, 12, &info);
}

/* Writes the graph as a model, whose path is returned. */
static const char *model_file(const msg *g, int64_t opset, const char *name) {
    msg set = {.n = 0};
    static msg m;
    m.n = 0;
    number(&set, 2, opset);
    number(&m, 1, 8);
    part(&m, 8, &set);
    part(&m, 7, g);
    const char *path = cnrt_path(name);
    cnrt_write(path, m.at, m.n);
    return path;
}

/* Output 0 for x of rows times columns. */
static void gives(const msg *g, int64_t opset, const float *x, int64_t rows, int64_t columns,
                  const float *want, int64_t n, const char *what) {
    cnr_model *m = cnrt_model("onnx", model_file(g, opset, "net.onnx"), NULL, NULL);
    const cnr_tensor *y = cnrt_run(m, x, (int64_t[]){rows, columns}, 2);
    ok(cnrt_distance(y, want, n) < 1e-6, "%s", what);
    if (m) cnr_release(m);
}
/* A test: the net is refused, with such a message. */
static void refuses(const msg *g, int64_t opset, const char *why, const char *what) {
    const char *path = model_file(g, opset, "net.onnx");
    cnr_graph *graph = cnrt_import("onnx", &path, 1, NULL, 0);
    if (!ok(!graph && strstr(cnrt_err.text, why), "%s is refused", what)) note("%s", cnrt_err.text);
    cnri_graph_free(graph);
}

/* ---- control flow ---- */

/* A branch of `If`. */
static msg branch(const char *op, const char *in, const char *out) {
    msg g = {.n = 0};
    if (op) add(&g, node(op, in, out));
    output(&g, out);
    return g;
}

/* y = x's elements as `yes` or `no` have them. */
static msg choice(const char *condition, const msg *yes, const msg *no) {
    msg n = node("If", condition, "y");
    attr_part(&n, "then_branch", 6, yes);
    attr_part(&n, "else_branch", 6, no);
    return n;
}

/* Tests: branches. */
static void branches(void) {
    const float x[] = {-1, 2, 3};
    const int64_t one = 1, two = 2;
    const msg yes = branch("Neg", "x", "t"), no = branch("Abs", "x", "e");
    msg g = {.n = 0}, nothing = node("Constant", "", "t"), empty = {.n = 0};
    const msg none = tensor("", FLOAT, 0, 3, "");
    attr_part(&nothing, "value", 5, &none);
    add(&empty, nothing);
    output(&empty, "t");

    value(&g, 11, "x", 1, 3);
    output(&g, "y");
    msg known = g, alike = g, found = g, unlike = g, lost = g, loop = g;
    constant(&known, tensor("one", INT64, -1, -1, &one));
    constant(&known, tensor("two", INT64, -1, -1, &two));
    add(&known, node("Less", "one two", "c"));
    add(&known, choice("c", &yes, &no));
    gives(&known, 13, x, 1, 3, (float[]){1, -2, -3}, 3, "a condition that is known");

    msg asked = {.n = 0}; /* is the largest above 2? */
    const float limit = 2;
    constant(&asked, tensor("limit", FLOAT, -1, -1, &limit));
    msg max = node("ReduceMax", "x", "max");
    attr_int(&max, "keepdims", 0);
    add(&asked, max);
    add(&asked, node("Greater", "max limit", "c"));
    memcpy(alike.at + alike.n, asked.at, asked.n);
    alike.n += asked.n;
    found = lost = unlike = alike;
    add(&alike, choice("c", &yes, &no));
    gives(&alike, 13, x, 1, 3, (float[]){1, -2, -3}, 3, "one known at run: the first branch");
    gives(&alike, 13, (float[]){-1, 2, 0}, 1, 3, (float[]){1, 2, 0}, 3, "the second");
    add(&found, choice("c", &empty, &no));
    gives(&found, 13, x, 1, 3, (float[]){1, 2, 3}, 3, "a branch for nothing is not taken");

    const msg turned = branch("Transpose", "x", "t");
    add(&unlike, choice("c", &turned, &no));
    refuses(&unlike, 13, "different shapes", "branches with shapes of their own");
    const msg absent = branch(NULL, "", "nowhere");
    add(&lost, choice("c", &yes, &absent));
    refuses(&lost, 13, "nowhere", "a branch without its result");
    add(&loop, node("Loop", "x", "y"));
    refuses(&loop, 13, "not supported", "a loop");

    msg deep = g, inner = yes;
    constant(&deep, tensor("one", INT64, -1, -1, &one));
    add(&deep, node("Equal", "one one", "c"));
    for (int i = 0; i < 9; i++) {
        msg outer = {.n = 0};
        add(&outer, choice("c", &inner, &no));
        output(&outer, "y");
        inner = outer;
    }
    add(&deep, choice("c", &inner, &no));
    refuses(&deep, 13, "deep", "ten branches in each other");
}

/* ---- numbers known only at run ---- */

/* The best three of what is not 0, or as many as there are. */
static void counted(void) {
    const int64_t second = 1, three = 3;
    msg g = {.n = 0};
    value(&g, 11, "x", 1, 6);
    constant(&g, tensor("second", INT64, 1, -1, &second));
    constant(&g, tensor("three", INT64, 1, -1, &three));
    add(&g, node("NonZero", "x", "at"));
    add(&g, node("Transpose", "at", "places"));
    add(&g, node("GatherND", "x places", "found"));
    add(&g, node("Shape", "at", "shape"));
    add(&g, node("Gather", "shape second", "n"));
    add(&g, node("Min", "n three", "k"));
    add(&g, node("TopK", "found k", "y index"));
    output(&g, "y");
    gives(&g, 13, (float[]){1, 0, 5, 4, 0, 2}, 1, 6, (float[]){5, 4, 2}, 3, "four found: three");
    gives(&g, 13, (float[]){0, 0, 5, 0, 7, 0}, 1, 6, (float[]){7, 5}, 2, "two found: both");
    gives(&g, 13, (float[]){0, 0, 0, 0, 0, 0}, 1, 6, (float[]){0}, 0, "nothing found: nothing");
}

/* ---- what operator sets meant ---- */

/* Tests: nodes of training. */
static void training(void) {
    const float x[] = {1, 5, 3, 5}, ones[] = {1, 1}, zeros[] = {0, 0};
    for (int64_t opset = 13; opset <= 15; opset += 2) {
        msg g = {.n = 0}, n = node("BatchNormalization", "x s b m v", opset < 14 ? "y a c" : "y");
        value(&g, 11, "x", 2, 2);
        constant(&g, tensor("s", FLOAT, 2, -1, ones));
        constant(&g, tensor("b", FLOAT, 2, -1, zeros));
        constant(&g, tensor("m", FLOAT, 2, -1, ones));
        constant(&g, tensor("v", FLOAT, 2, -1, ones));
        if (opset >= 14) attr_int(&n, "training_mode", 1);
        const size_t kept_size = g.n;
        add(&g, n);
        msg wants = g, kept = g;
        output(&g, "y");
        gives(&g, opset, x, 2, 2, (float[]){-0.999995f, 0, 0.999995f, 0}, 4,
              opset < 14 ? "more outputs: in training mode" : "training_mode: x's own statistics");
        output(&wants, opset < 14 ? "a" : "y");
        if (opset < 14) refuses(&wants, opset, "no node gives it", "statistics as outputs");
        if (opset < 14) continue;
        n = node("BatchNormalization", "x s b m v", "other a c");
        attr_int(&n, "training_mode", 1);
        kept.n = kept_size;
        add(&kept, n);
        output(&kept, "a");
        gives(&kept, opset, x, 2, 2, (float[]){1.1f, 1.4f}, 2, "set 14: statistics as outputs");
    }
}

/* Tests: softmax of old operator sets. */
static void softmax(void) {
    const float x[] = {0, 0, 0, 0};
    msg g = {.n = 0};
    value(&g, 11, "x", 2, 2);
    msg n = node("Softmax", "x", "y");
    attr_int(&n, "axis", 0);
    add(&g, n);
    output(&g, "y");
    gives(&g, 11, x, 2, 2, (float[]){.25f, .25f, .25f, .25f}, 4, "set 11: all from the axis on");
    gives(&g, 13, x, 2, 2, (float[]){.5f, .5f, .5f, .5f}, 4, "set 13: along the axis");
}

/* Tests: an RMS normalisation. */
static void rms_norm(void) {
    const float x[] = {3, 4, 0, 0}, scale[] = {1, 2};
    msg g = {.n = 0}, rows, wrong;
    value(&g, 11, "x", 2, 2);
    constant(&g, tensor("s", FLOAT, 2, -1, scale));
    output(&g, "y");
    rows = wrong = g;
    msg n = node("RMSNormalization", "x s", "y");
    add(&rows, n);
    gives(&rows, 23, x, 2, 2, (float[]){0.848528f, 2.262740f, 0, 0}, 4, "RMSNormalization");
    attr_int(&n, "axis", 2);
    add(&wrong, n);
    refuses(&wrong, 23, "axis does not fit", "RMSNormalization past the last axis");
}

/* A region of interest of the whole picture; the box comes with x, of 5 columns: rows of pixels. */
static void roi_align(void) {
    const float box[] = {0, 0, 2, 2}, x[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    const int64_t zero = 0, shape[] = {1, 1, 3, 3};
    msg g = {.n = 0}, n = node("RoiAlign", "image box which", "y");
    value(&g, 11, "x", 3, 3);
    constant(&g, tensor("box", FLOAT, 1, 4, box));
    constant(&g, tensor("which", INT64, 1, -1, &zero));
    constant(&g, tensor("shape", INT64, 4, -1, shape));
    add(&g, node("Reshape", "x shape", "image"));
    attr_int(&n, "sampling_ratio", 1);
    add(&g, n);
    output(&g, "y");
    gives(&g, 11, x, 3, 3, (float[]){4}, 1, "RoiAlign before set 16: the middle is at 1, 1");
    gives(&g, 16, x, 3, 3, (float[]){2}, 1, "from then on at a half");
}

/* ---- attention, positions, recurrent layers with the batch first ---- */

/* A constant of a graph, reshaped to `rank` sizes; its name is NAME + "2" before that. */
static void shaped(msg *g, const char *name, const msg *flat, const int64_t *shape, int rank) {
    char list[32], both[80];
    constant(g, *flat);
    snprintf(list, sizeof list, "%s_shape", name);
    constant(g, tensor(list, INT64, rank, -1, shape));
    snprintf(both, sizeof both, "%s2 %s", name, list);
    add(g, node("Reshape", both, name));
}

/* The definition: 4 heads of 2 columns in q, 2 in k, whose values are v's, too. Row i sees the
 * columns up to i + past, or those that the mask leaves; none: zeros. */
static void attend(const float *q, const float *k, const uint8_t *mask, int rows, int cols,
                   float *y) {
    for (int h = 0; h < 4; h++)
        for (int i = 0; i < rows; i++) {
            float sum = 0, *to = y + i * 8 + h * 2;
            to[0] = to[1] = 0;
            for (int c = 0; c < cols; c++) {
                const float *a = q + i * 8 + h * 2, *b = k + c * 4 + h / 2 * 2;
                if (mask ? !mask[i * cols + c] : c > i) continue;
                const float w = expf((a[0] * b[0] + a[1] * b[1]) / sqrtf(2));
                sum += w, to[0] += w * b[0], to[1] += w * b[1];
            }
            if (sum > 0) to[0] /= sum, to[1] /= sum;
        }
}

/* The operator Attention. */
static void attention(void) {
    const uint8_t open[] = {1, 0, 1, 0, 0, 0, 0, 1, 1};
    const int64_t small[] = {1, 3, 4}, large[] = {1, 3, 8};
    float q[24], k[12], y[24];
    msg g = {.n = 0}, n = node("Attention", "q k k", "y"), masked, lost;
    cnrt_noise(q, 24, 1);
    cnrt_noise(k, 12, 2);
    const msg keys = tensor("k2", FLOAT, 3, 4, k);
    value(&g, 11, "q2", 3, 8);
    constant(&g, tensor("q_shape", INT64, 3, -1, large));
    add(&g, node("Reshape", "q2 q_shape", "q"));
    shaped(&g, "k", &keys, small, 3);
    output(&g, "y");
    masked = lost = g;
    attr_int(&n, "q_num_heads", 4);
    attr_int(&n, "kv_num_heads", 2);
    attr_int(&n, "is_causal", 1);
    add(&g, n);
    attend(q, k, NULL, 3, 3, y);
    gives(&g, 23, q, 3, 8, y, 24, "Attention: causal, two heads of q for one of k");

    msg whole = node("Cast", "m2", "m");
    constant(&masked, tensor("m2", UINT8, 3, 3, open));
    attr_int(&whole, "to", 9); /* BOOL */
    add(&masked, whole);
    n = node("Attention", "q k k m", "y");
    attr_int(&n, "q_num_heads", 4);
    attr_int(&n, "kv_num_heads", 2);
    add(&masked, n);
    attend(q, k, open, 3, 3, y);
    gives(&masked, 23, q, 3, 8, y, 24, "Attention: a mask, a row of which is closed");

    n = node("Attention", "q k k", "y");
    attr_int(&n, "q_num_heads", 3);
    attr_int(&n, "kv_num_heads", 2);
    add(&lost, n);
    refuses(&lost, 23, "numbers of heads", "three heads for two");
}

/* The operator RotaryEmbedding. */
static void rotary(void) {
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, cosine[] = {1, 1, 0, 0}, sine[] = {0, 0, 1, 1};
    const int64_t shape[] = {1, 2, 4}, half[] = {1, 2, 2};
    for (int beside = 0; beside < 2; beside++) {
        msg g = {.n = 0}, n = node("RotaryEmbedding", "a c s", "y");
        const msg c = tensor("c2", FLOAT, 2, 2, cosine), s = tensor("s2", FLOAT, 2, 2, sine);
        value(&g, 11, "x", 2, 4);
        constant(&g, tensor("shape", INT64, 3, -1, shape));
        add(&g, node("Reshape", "x shape", "a"));
        shaped(&g, "c", &c, half, 3);
        shaped(&g, "s", &s, half, 3);
        attr_int(&n, "num_heads", 1);
        attr_int(&n, "interleaved", beside);
        add(&g, n);
        output(&g, "y");
        /* the second row is turned by a right angle: (a, b) becomes (-b, a) */
        gives(&g, 23, x, 2, 4,
              beside ? (float[]){1, 2, 3, 4, -6, 5, -8, 7} : (float[]){1, 2, 3, 4, -7, -8, 5, 6}, 8,
              beside ? "RotaryEmbedding of neighbours" : "RotaryEmbedding of halves");
    }
}

/* Recurrent layers with the batch first. */
static void batch_first(void) {
    const float x[] = {1, 2, 3, -1, 0, 1}, w = .5f, r = 2;
    const int64_t shape[] = {2, 3, 1}, one[] = {1, 1, 1};
    float y[6];
    msg g = {.n = 0}, n = node("RNN", "a w r", "y");
    const msg weight = tensor("w2", FLOAT, 1, 1, &w), state = tensor("r2", FLOAT, 1, 1, &r);
    value(&g, 11, "x", 2, 3);
    constant(&g, tensor("shape", INT64, 3, -1, shape));
    add(&g, node("Reshape", "x shape", "a"));
    shaped(&g, "w", &weight, one, 3);
    shaped(&g, "r", &state, one, 3);
    attr_int(&n, "hidden_size", 1);
    attr_int(&n, "layout", 1);
    add(&g, n);
    output(&g, "y");
    for (int i = 0; i < 6; i++) y[i] = tanhf(w * x[i] + r * (i % 3 ? y[i - 1] : 0));
    gives(&g, 14, x, 2, 3, y, 6, "RNN with the batch first");
}

/* ---- unpooling, centred crops ---- */

/* The operator MaxUnpool. */
static void unpool(void) {
    const float x[] = {1, 2, 3, 4};
    const int64_t at[] = {5, 7, 13, 15}, two[] = {2, 2}, four[] = {1, 1, 2, 2},
                  five[] = {1, 1, 5, 5};
    for (int larger = 0; larger < 2; larger++) {
        msg g = {.n = 0}, n = node("MaxUnpool", larger ? "a i size" : "a i", "y");
        const msg index = tensor("i2", INT64, 2, 2, at);
        float y[25] = {0};
        value(&g, 11, "x", 2, 2);
        constant(&g, tensor("shape", INT64, 4, -1, four));
        constant(&g, tensor("size", INT64, 4, -1, five));
        add(&g, node("Reshape", "x shape", "a"));
        shaped(&g, "i", &index, four, 4);
        attr_ints(&n, "kernel_shape", two, 2);
        attr_ints(&n, "strides", two, 2);
        add(&g, n);
        output(&g, "y");
        for (int i = 0; i < 4; i++) y[at[i] / 4 * (4 + larger) + at[i] % 4] = x[i];
        gives(&g, 11, x, 2, 2, y, larger ? 25 : 16,
              larger ? "MaxUnpool to a larger shape" : "MaxUnpool");
    }
}

/* The operator CenterCropPad. */
static void centre(void) {
    const float x[] = {1, 2, 3, 4, 5, 6};
    const int64_t size[] = {2, 4};
    msg g = {.n = 0}, wrong, n = node("CenterCropPad", "x size", "y");
    value(&g, 11, "x", 3, 2);
    constant(&g, tensor("size", INT64, 2, -1, size));
    output(&g, "y");
    wrong = g;
    add(&g, n);
    gives(&g, 18, x, 3, 2, (float[]){0, 1, 2, 0, 0, 3, 4, 0}, 8, "CenterCropPad");
    attr_ints(&n, "axes", (int64_t[]){0, 5}, 2);
    add(&wrong, n);
    refuses(&wrong, 18, "axes whose sizes are known", "an axis that is not there");
}

/* ---- the domain com.microsoft ---- */

/* Without its last input: ours would make one that is learnt. */
static void no_shift(void) {
    const float scale[] = {1, 2};
    msg g = {.n = 0};
    value(&g, 11, "x", 1, 2);
    constant(&g, tensor("s", FLOAT, 2, -1, scale));
    msg n = node("LayerNormalization", "x s", "y");
    add(&g, n);
    output(&g, "y");
    gives(&g, 17, (float[]){300, 700}, 1, 2, (float[]){-1, 2}, 2, "LayerNormalization without B");
}

/* A node of ONNX Runtime's own. */
static msg contrib(const char *op, const char *in, const char *out) {
    msg n = node(op, in, out);
    text(&n, 7, "com.microsoft");
    return n;
}

/* Tests: those nodes. */
static void contribs(void) {
    const float half = .5f, two = 2;
    const uint8_t ten = 10;
    msg g = {.n = 0};
    value(&g, 11, "x", 1, 3);
    output(&g, "y");
    msg sum = g, gelu = g, strange = g, own = g, blocked = g, n;
    constant(&sum, tensor("s", FLOAT, -1, -1, &half));
    constant(&sum, tensor("t", FLOAT, -1, -1, &two));
    constant(&sum, tensor("z", UINT8, -1, -1, &ten));
    add(&sum, node("QuantizeLinear", "x s z", "q"));
    add(&sum, contrib("QLinearAdd", "q s z q s z t z", "r"));
    add(&sum, node("DequantizeLinear", "r t z", "y"));
    /* 0.6 becomes 0.5, twice 1, of which a step of 2 leaves 0; 3.2: 3, 6; -9: -5, -10 */
    gives(&sum, 13, (float[]){.6f, 3.2f, -9}, 1, 3, (float[]){0, 6, -10}, 3, "QLinearAdd");

    add(&gelu, contrib("QuickGelu", "x", "y"));
    gives(&gelu, 13, (float[]){0, 1, -1}, 1, 3, (float[]){0, .8457957f, -.1542043f}, 3,
          "QuickGelu");
    add(&strange, contrib("Tokenizer", "x", "y"));
    refuses(&strange, 13, "com.microsoft", "what is not known of them");
    n = node("Conv", "x x", "y");
    text(&n, 7, "com.microsoft.nchwc");
    add(&blocked, n);
    refuses(&blocked, 13, "ORT_ENABLE_EXTENDED", "a layout of the machine that wrote the file");
    add(&own, node("Relu6", "x", "y"));
    refuses(&own, 13, "Relu6 is not supported", "an operator of ours that ONNX does not have");
}

/* Adds an attribute of text. */
static void attr_text(msg *n, const char *name, const char *value) {
    msg a = {.n = 0};
    text(&a, 1, name);
    text(&a, 4, value);
    part(n, 5, &a);
}
/* Adds a number with a point. */
static void attr_float(msg *n, const char *name, float value) {
    msg a = {.n = 0};
    text(&a, 1, name);
    varint(&a, 2 << 3 | 5);
    memcpy(a.at + a.n, &value, sizeof value);
    a.n += sizeof value;
    part(n, 5, &a);
}

/* A graph of input x [1,2] and output y with constants a [2,2], b and c [2]. */
static msg fused_graph(void) {
    const float a[] = {1, 2, 3, 4}, b[] = {1, -1}, c[] = {2, 3};
    msg g = {.n = 0};
    value(&g, 11, "x", 1, 2);
    output(&g, "y");
    constant(&g, tensor("a", FLOAT, 2, 2, a));
    constant(&g, tensor("b", FLOAT, 2, -1, b));
    constant(&g, tensor("c", FLOAT, 2, -1, c));
    return g;
}

/* Tests: those of them that have a constant, on numbers of 16 bits. */
static void fused_halves(void) {
    const float x[] = {1, 3};
    const int32_t half = 10; /* FLOAT16 */
    const char *op[] = {"FusedMatMul", "SkipSimplifiedLayerNormalization", "QuickGelu"};
    const char *in[] = {"xh ah", "xh bh ch", "xh"};
    const float want[][2] = {{5, 7}, {2, 3}, {.845703125f, 2.982421875f}};
    for (size_t i = 0; i < CNR_ROWS(op); i++) {
        msg g = fused_graph(), n = contrib(op[i], in[i], "yh");
        for (const char *name = "xabc"; *name; name++) {
            msg cast = node("Cast", (char[]){*name, 0}, (char[]){*name, 'h', 0});
            attr_int(&cast, "to", half);
            add(&g, cast);
        }
        if (i == 0) attr_float(&n, "alpha", .5f);
        add(&g, n);
        n = node("Cast", "yh", "y");
        attr_int(&n, "to", 1);
        add(&g, n);
        gives(&g, 17, x, 1, 2, want[i], 2, op[i]);
    }
}

/* Tests: nodes that ONNX Runtime's optimiser fuses. */
static void fused(void) {
    const float x[] = {1, 3};
    msg product = fused_graph(), gemm = product, skip = product, rms = product, gelu = product;
    msg n = contrib("FusedMatMul", "x a", "y");
    attr_float(&n, "alpha", .5f);
    attr_int(&n, "transB", 1);
    add(&product, n);
    gives(&product, 17, x, 1, 2, (float[]){3.5f, 7.5f}, 2, "FusedMatMul: transposed, and a factor");

    n = contrib("FusedGemm", "x a b", "y");
    attr_text(&n, "activation", "LeakyRelu");
    attr_float(&n, "activation_alpha", .5f);
    attr_float(&n, "alpha", -1);
    add(&gemm, n);
    gives(&gemm, 17, x, 1, 2, (float[]){-4.5f, -7.5f}, 2,
          "FusedGemm: a parameter of its activation");

    n = contrib("SkipLayerNormalization", "x b c b c", "v mean deviation s");
    add(&skip, n);
    add(&skip, node("Add", "v s", "y"));
    refuses(&skip, 17, "for training", "an output for training");
    skip = fused_graph();
    add(&skip, contrib("SkipLayerNormalization", "x b c b c", "y"));
    /* 1 + 1 + 2 and 3 - 1 + 3: -1 and 1, times c, plus b */
    gives(&skip, 17, x, 1, 2, (float[]){-1, 2}, 2, "SkipLayerNormalization: with a bias");

    add(&rms, contrib("SkipSimplifiedLayerNormalization", "x b c", "y"));
    gives(&rms, 17, (float[]){1, 3}, 1, 2, (float[]){2, 3}, 2, "its form without the mean");

    add(&gelu, contrib("FastGelu", "x b", "y"));
    gives(&gelu, 17, (float[]){0, 1}, 1, 2, (float[]){.841192f, 0}, 2, "FastGelu with a bias");
}

/* A graph of two rows of one head, whose attention reads v (the rows), k (the number of the last
 * valid row) and n (of all rows). */
static msg two_rows(const char *op, const char *in, int causal) {
    const int64_t three[] = {1, 2, 1}, two[] = {2, 1}, last = 1, all = 2;
    msg g = {.n = 0}, n = contrib(op, in, "w");
    value(&g, 11, "x", 2, 1);
    output(&g, "y");
    constant(&g, tensor("t", INT64, 3, -1, three));
    constant(&g, tensor("u", INT64, 2, -1, two));
    constant(&g, tensor("k", INT64, 1, -1, &last));
    constant(&g, tensor("n", INT64, -1, -1, &all));
    add(&g, node("Reshape", "x t", "v"));
    attr_int(&n, "num_heads", 1);
    if (strstr(op, "Query")) attr_int(&n, "kv_num_heads", 1);
    if (causal) attr_int(&n, "unidirectional", 1);
    add(&g, n);
    add(&g, node("Reshape", "w u", "y"));
    return g;
}

/* Tests: attention of ONNX Runtime's own. */
static void contrib_attentions(void) {
    const float x[] = {0, 1}, mean = .7310586f; /* of 0 and 1, by the softmax of both */
    msg g = two_rows("MultiHeadAttention", "v v v", 0);
    gives(&g, 17, x, 2, 1, (float[]){.5f, mean}, 2, "MultiHeadAttention");
    g = two_rows("MultiHeadAttention", "v v v", 1);
    gives(&g, 17, x, 2, 1, (float[]){0, mean}, 2, "its rows see those before them");
    g = two_rows("MultiHeadAttention", "v v v - k", 0);
    gives(&g, 17, x, 2, 1, (float[]){0, 0}, 2, "its lengths close columns");
    g = two_rows("GroupQueryAttention", "v v v - - k n", 0);
    gives(&g, 17, x, 2, 1, (float[]){0, mean}, 2, "GroupQueryAttention");
    g = two_rows("GroupQueryAttention", "v v - - - k n", 0);
    refuses(&g, 17, "both k and v", "k without v");
}

/* ---- the domain ai.onnx.ml ---- */

/* A node of ai.onnx.ml. */
static msg learnt(const char *op, const char *in, const char *out) {
    msg n = node(op, in, out);
    text(&n, 7, "ai.onnx.ml");
    return n;
}
/* Adds an attribute, a list of `count` floats, to a node. */
static void attr_floats(msg *n, const char *name, const float *v, int count) {
    msg a = {.n = 0};
    text(&a, 1, name);
    for (int i = 0; i < count; i++) {
        varint(&a, 7 << 3 | 5);
        memcpy(a.at + a.n, &v[i], 4);
        a.n += 4;
    }
    part(n, 5, &a);
}
/* Words with blanks between them: whole numbers, or texts as they are. */
static void attr_list(msg *n, const char *name, int texts, const char *words) {
    msg a = {.n = 0};
    char list[256];
    text(&a, 1, name);
    snprintf(list, sizeof list, "%s", words);
    for (char *at = strtok(list, " "); at; at = strtok(NULL, " "))
        if (texts) text(&a, 9, at);
        else number(&a, 8, strtol(at, NULL, 10));
    part(n, 5, &a);
}

/* Tests: linear models. */
static void linear_models(void) {
    const float by[] = {1, 0, 0, 1, .5f, -.5f}, shift[] = {0, .5f, .25f}, x[] = {1, 2};
    msg g = {.n = 0};
    value(&g, 11, "x", 1, 2);
    output(&g, "y");
    msg regression = g, names = g, n = learnt("LinearClassifier", "x", "label scores");
    attr_floats(&n, "coefficients", by, 6);
    attr_floats(&n, "intercepts", shift, 3);
    attr_text(&n, "post_transform", "LOGISTIC");
    attr_int(&n, "multi_class", 0);
    attr_list(&n, "classlabels_ints", 0, "7 8 9");
    msg norm = learnt("Normalizer", "scores", "parts"), map = learnt("ZipMap", "parts", "y");
    msg cast = node("Cast", "label", "y");
    attr_text(&norm, "norm", "L1");
    attr_list(&map, "classlabels_int64s", 0, "7 8 9");
    attr_int(&cast, "to", FLOAT);
    add(&g, n);
    add(&names, n);
    add(&names, cast);
    add(&g, norm);
    add(&g, map);
    gives(&g, 1, x, 1, 2, (float[]){.3492834f, .4415343f, .2091823f}, 3,
          "LinearClassifier, Normalizer, ZipMap: the shares of the classes");
    gives(&names, 13, x, 1, 2, (float[]){8}, 1, "the label is the best class's own number");

    n = learnt("LinearRegressor", "x", "y");
    attr_floats(&n, "coefficients", by, 4);
    attr_floats(&n, "intercepts", shift, 2);
    attr_int(&n, "targets", 2);
    add(&regression, n);
    gives(&regression, 13, x, 1, 2, (float[]){1, 2.5f}, 2, "LinearRegressor");
}

/* x0 <= .5 ? 1 : 2, where a NaN is, too; and x1 <= 1 ? 10 : x0 <= -1 ? 20 : 30. */
static msg trees(const char *op, const char *out, const char *leaves) {
    const float limits[] = {.5f, 0, 0, 1, 0, -1, 0, 0}, given[] = {1, 2, 10, 20, 30};
    msg n = learnt(op, "x", out);
    char name[4][32];
    static const char *const of[] = {"treeids", "nodeids", "ids", "weights"};
    for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "%s_%s", leaves, of[i]);
    attr_list(&n, "nodes_treeids", 0, "0 0 0 1 1 1 1 1");
    attr_list(&n, "nodes_nodeids", 0, "0 1 2 0 1 2 3 4");
    attr_list(&n, "nodes_featureids", 0, "0 0 0 1 0 0 0 0");
    attr_list(&n, "nodes_truenodeids", 0, "1 0 0 1 0 3 0 0");
    attr_list(&n, "nodes_falsenodeids", 0, "2 0 0 2 0 4 0 0");
    attr_list(&n, "nodes_missing_value_tracks_true", 0, "1 0 0 0 0 0 0 0");
    attr_list(&n, "nodes_modes", 1, "BRANCH_LEQ LEAF LEAF BRANCH_LEQ LEAF BRANCH_LEQ LEAF LEAF");
    attr_floats(&n, "nodes_values", limits, 8);
    attr_list(&n, name[0], 0, "0 0 1 1 1");
    attr_list(&n, name[1], 0, "1 2 1 3 4");
    attr_list(&n, name[2], 0, "0 0 0 0 0");
    attr_floats(&n, name[3], given, 5);
    return n;
}

/* Tests: forests. */
static void forests(void) {
    const float x[] = {0, 0, 1, 2, -2, 2, NAN, 2}, base = .5f, low = -11;
    msg g = {.n = 0};
    value(&g, 11, "x", 4, 2);
    output(&g, "y");
    msg classes = g, mixed = g, twice = g, lost = g,
        n = trees("TreeEnsembleRegressor", "y", "target");
    attr_floats(&n, "base_values", &base, 1);
    add(&g, n);
    gives(&g, 13, x, 4, 2, (float[]){11.5f, 32.5f, 21.5f, 31.5f}, 4, "TreeEnsembleRegressor");

    n = trees("TreeEnsembleClassifier", "label y", "class");
    attr_floats(&n, "base_values", &low, 1);
    attr_list(&n, "classlabels_strings", 1, "no yes");
    add(&classes, n);
    gives(&classes, 13, x, 4, 2, (float[]){1, 0, -20, 21, -9, 10, -19, 20}, 8,
          "TreeEnsembleClassifier of one score for two classes");
    cnr_model *m = cnrt_model("onnx", model_file(&classes, 13, "net.onnx"), NULL, NULL);
    const char *label = m ? cnr_label(m, 1) : NULL;
    ok(label && strcmp(label, "yes") == 0, "names of classes are the net's labels");
    if (m) cnr_release(m);
    const char *path = model_file(&classes, 13, "trees.onnx");
    cnrt_survives("onnx", &path, 1, 0, NULL, 300);

    n = trees("TreeEnsembleRegressor", "y", "target");
    attr_list(&n, "nodes_modes", 1, "BRANCH_LT LEAF LEAF BRANCH_LEQ LEAF BRANCH_LEQ LEAF LEAF");
    msg first = learnt("TreeEnsembleRegressor", "x", "y");
    attr_list(&first, "nodes_modes", 1, "BRANCH_LT LEAF LEAF BRANCH_LEQ LEAF BRANCH_LEQ LEAF LEAF");
    memcpy(first.at + first.n, n.at, n.n); /* its list of modes goes first, which is the one */
    first.n += n.n;
    add(&mixed, first);
    refuses(&mixed, 13, "modes that differ", "a tree of two comparisons");

    first = learnt("TreeEnsembleRegressor", "x", "y");
    attr_list(&first, "nodes_truenodeids", 0, "1 0 0 2 0 3 0 0"); /* 2 is the other child as well */
    memcpy(first.at + first.n, n.at, n.n);
    first.n += n.n;
    add(&twice, first);
    refuses(&twice, 13, "two parents", "a node below two others");
    first = learnt("SVMClassifier", "x", "y");
    add(&lost, first);
    refuses(&lost, 13, "this operator of ai.onnx.ml is not supported", "what is not known of them");
}

/* Tests: large data stays in the file until it is wanted. */
static void bulk(void) {
    enum { N = 1200 };
    static float w[N], x[N], want[N], twice[N];
    for (int i = 0; i < N; i++)
        w[i] = (float)(i % 7), x[i] = 1, want[i] = w[i] + 1, twice[i] = 2 * w[i] + 1;
    const msg t = tensor("w", FLOAT, 1, N, w);
    msg g = {.n = 0};
    value(&g, 11, "x", 1, N);
    output(&g, "y");
    msg listed = g, node_has = g, parts = g, elsewhere = g;
    constant(&listed, t);
    add(&listed, node("Add", "x w", "y"));
    gives(&listed, 13, x, 1, N, want, N, "a large initializer");

    msg made = node("Constant", "", "v"), again = t;
    attr_part(&made, "value", 5, &t);
    constant(&node_has, t);
    add(&node_has, made);
    add(&node_has, node("Add", "v w", "sum"));
    add(&node_has, node("Add", "x sum", "y"));
    gives(&node_has, 13, x, 1, N, twice, N, "and a large constant");

    again.n = 0;
    number(&again, 1, 1), number(&again, 1, N), number(&again, 2, FLOAT), text(&again, 8, "w");
    bytes(&again, 9, x, sizeof x);
    bytes(&again, 9, w, sizeof w);
    constant(&parts, again);
    add(&parts, node("Add", "x w", "y"));
    gives(&parts, 13, x, 1, N, want, N, "data twice: the last counts, as protobuf has it");

    const uint64_t place[] = {1u << 30, sizeof w};
    again.n = 0;
    number(&again, 1, 1), number(&again, 1, N), number(&again, 2, FLOAT), text(&again, 8, "w");
    bytes(&again, 60000, place, sizeof place);
    constant(&elsewhere, again);
    add(&elsewhere, node("Add", "x w", "y"));
    refuses(&elsewhere, 13, "cut short", "a place beyond the file");
    const char *path = model_file(&listed, 13, "bulk.onnx");
    cnrt_survives("onnx", &path, 1, 0, NULL, 1000);
}

/* Tests: damaged nets. */
static void damaged(void) {
    const msg yes = branch("Neg", "x", "t"), no = branch("Abs", "x", "e");
    const float limit = 2;
    msg g = {.n = 0};
    value(&g, 11, "x", 1, 3);
    constant(&g, tensor("limit", FLOAT, -1, -1, &limit));
    msg max = node("ReduceMax", "x", "max");
    attr_int(&max, "keepdims", 0);
    add(&g, max);
    add(&g, node("Greater", "max limit", "c"));
    add(&g, choice("c", &yes, &no));
    output(&g, "y");
    const char *path = model_file(&g, 13, "whole.onnx");
    cnrt_survives("onnx", &path, 1, 0, NULL, 1000);
}

int main(void) {
    if (!cnrt_begin("onnx")) {
        skip("import-onnx", "protobuf-c");
        return cnrt_end();
    }
    branches();
    counted();
    training();
    softmax();
    rms_norm();
    roi_align();
    attention();
    rotary();
    batch_first();
    unpool();
    centre();
    no_shift();
    contribs();
    fused();
    fused_halves();
    contrib_attentions();
    linear_models();
    forests();
    bulk();
    damaged();
    return cnrt_end();
}
