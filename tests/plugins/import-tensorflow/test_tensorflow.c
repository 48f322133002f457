/* TensorFlow's graphs, written here byte by byte: what nodes mean against arithmetic done by hand,
 * what is folded away (branches, functions, dropouts that are off), what is refused; damage. */
#include "plugins/importing.h"

/* ---- a writer of protobuf: messages are opened and closed ---- */

static uint8_t file[1 << 16];
static size_t n_file, opened[16];
static int depth;

/* Writes a whole number. */
static void varint(uint64_t v) {
    for (; v >= 128; v >>= 7) file[n_file++] = (uint8_t)(v | 128);
    file[n_file++] = (uint8_t)v;
}
/* Writes a field of a whole number. */
static void number(int field, int64_t v) {
    varint((uint64_t)field << 3);
    varint((uint64_t)v);
}
/* Writes a field of bytes. */
static void bytes(int field, const void *data, size_t n) {
    varint((uint64_t)field << 3 | 2);
    varint(n);
    memcpy(file + n_file, data, n);
    n_file += n;
}
static void text(int field, const char *s) { bytes(field, s, strlen(s)); }
/* Begins a field that is a message. */
static void open(int field) {
    varint((uint64_t)field << 3 | 2);
    opened[depth++] = n_file;
}
static void shut(void) { /* the length goes in front, in five bytes */
    const size_t at = opened[--depth], n = n_file - at;
    memmove(file + at + 5, file + at, n);
    for (int i = 0; i < 5; i++)
        file[at + (size_t)i] = (uint8_t)((n >> (7 * i) & 127) | (i < 4 ? 128 : 0));
    n_file += 5;
}

/* ---- nodes ---- */

enum { F32 = 1, I32 = 3, STRING = 7, BOOL = 10, QUINT8 = 12, BF16 = 14, HALF = 19 };
static int node_field = 1; /* 3 in a function */

/* Begins a node. */
static void node(const char *name, const char *op, const char *inputs) {
    open(node_field);
    text(1, name);
    text(2, op);
    for (size_t n; *inputs; inputs += n + (inputs[n] == ' ')) {
        n = strcspn(inputs, " ");
        bytes(3, inputs, n);
    }
}
/* Begins an attribute. */
static void attr(const char *key) {
    open(5);
    text(1, key);
    open(2);
}
/* Ends an attribute. */
static void attr_end(void) {
    shut();
    shut();
}
/* An attribute. */
#define ATTR(key, what) (attr(key), what, attr_end())
/* Writes a list of whole numbers. */
static void list(const int64_t *v, int n) {
    open(1);
    for (int i = 0; i < n; i++) number(3, v[i]);
    shut();
}
/* A list attribute. */
#define INTS(key, ...) \
    ATTR(key, list((const int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8)))
/* Writes a shape of `rank` sizes. */
static void sizes(const int64_t *d, int rank) {
    for (int i = 0; i < rank; i++) {
        open(2);
        number(1, d[i]);
        shut();
    }
}
/* A node without attributes. */
static void simple(const char *name, const char *op, const char *inputs) {
    node(name, op, inputs);
    shut();
}
/* Writes a placeholder of that name and shape. */
static void input(const char *name, int rank, const int64_t *d) {
    node(name, "Placeholder", "");
    ATTR("dtype", number(6, F32));
    ATTR("shape", (open(7), sizes(d, rank), shut()));
    shut();
}
/* A placeholder of this shape. */
#define INPUT(name, ...) \
    input(name, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[]){__VA_ARGS__})
/* Writes a constant of that type and shape, whose elements lie as they are (field 0), or as n of a
 * typed field. */
static void constant(const char *name, int type, int rank, const int64_t *d, int field,
                     const void *data, int n, size_t each) {
    node(name, "Const", "");
    ATTR("dtype", number(6, type));
    attr("value");
    open(8);
    number(1, type);
    open(2);
    sizes(d, rank);
    shut();
    if (field == 4) bytes(4, data, (size_t)n * each);
    for (int i = 0; i < n && field != 4; i++) number(field, ((const int64_t *)data)[i]);
    shut();
    attr_end();
    shut();
}
/* Writes a constant of n floats. */
static void floats(const char *name, int rank, const int64_t *d, const float *v, int n) {
    constant(name, F32, rank, d, 4, v, n, 4);
}
/* A constant vector. */
#define VECTOR(name, ...) \
    do { \
        const float v_[] = {__VA_ARGS__}; \
        const int n_ = (int)(sizeof v_ / 4); \
        floats(name, 1, (const int64_t[]){n_}, v_, n_); \
    } while (0)
/* A constant number. */
#define SCALAR(name, v) floats(name, 0, NULL, (const float[]){v}, 1)
/* A constant vector of whole numbers. */
#define WHOLE(name, ...) \
    constant(name, I32, 1, (const int64_t[]){(int)(sizeof((int64_t[]){__VA_ARGS__}) / 8)}, 7, \
             (const int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), 8)
/* A constant whole number. */
#define ONE(name, v) constant(name, I32, 0, NULL, 7, (const int64_t[]){v}, 1, 8)
/* A constant bool. */
#define FLAG(name, v) constant(name, BOOL, 0, NULL, 11, (const int64_t[]){v}, 1, 8)

/* ---- judging ---- */

/* The model of the graph; NULL: it is refused. */
static cnr_model *loaded(const char *option) {
    const char *path = cnrt_path("graph.pb");
    cnrt_write(path, file, n_file);
    n_file = 0;
    return cnrt_model("tensorflow", path, NULL, option);
}

/* Numbers of an input. */
#define X(...) \
    (const float[]) { __VA_ARGS__ }
/* A shape and its rank. */
#define DIM(...) (const int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8)
/* Wanted numbers and how many. */
#define WANT(...) (const float[]){__VA_ARGS__}, (int)(sizeof((float[]){__VA_ARGS__}) / 4)

/* A test: the graph written so far, on x of these dims, gives the n numbers of `want`. */
static void gives(const char *what, const char *option, const float *x, const int64_t *dim,
                  int rank, const float *want, int n) {
    cnr_model *m = loaded(option);
    if (!m) note("%s: %s", cnrt_err.where, cnrt_err.text);
    const cnr_tensor *y = m ? cnrt_run(m, x, dim, rank) : NULL;
    if (!ok(cnrt_distance(y, want, n) < 1e-6, "%s", what))
        for (int64_t i = 0; y && i < cnr_count(y); i++)
            note("%g, wanted %g", (double)((const float *)y->data)[i],
                 i < n ? (double)want[i] : NAN);
    if (m) cnr_release(m);
}

/* A test: the graph is refused, with such a message. */
static void refused(const char *what, const char *option, const char *why) {
    cnr_model *m = loaded(option);
    if (!ok(!m && strstr(cnrt_err.text, why), "%s", what)) note("%s", m ? "taken" : cnrt_err.text);
    if (m) cnr_release(m);
}

/* ---- numbers ---- */

/* Writes a graph that dequantises. */
static void dequantize(const char *mode, float low, float high) {
    INPUT("x", 3);
    constant("q", QUINT8, 1, (const int64_t[]){3}, 4, "\0\200\377", 3, 1);
    SCALAR("low", low);
    SCALAR("high", high);
    node("d", "Dequantize", "q low high");
    ATTR("mode", text(2, mode));
    shut();
    simple("y", "AddV2", "x d");
}

/* Dequantised constants in each mode. */
static void test_numbers(void) {
    dequantize("MIN_COMBINED", -1, 1.55f);
    gives("MIN_COMBINED begins at the lowest", NULL, X(0, 0, 0), DIM(3), WANT(-1, .28f, 1.55f));
    dequantize("MIN_FIRST", -1.003f, 1.547f);
    gives("MIN_FIRST moves the range so that 0 is in it", NULL, X(0, 0, 0), DIM(3),
          WANT(-1, .28f, 1.55f));
    dequantize("SCALED", 0, 2.55f);
    gives("SCALED has no offset", NULL, X(0, 0, 0), DIM(3), WANT(0, 1.28f, 2.55f));
    dequantize("MIN_FIRST", 0, 1.1754944e-38f);
    gives("a range too narrow for floats", NULL, X(1, 2, 3), DIM(3), WANT(1, 2, 3));
    dequantize("OTHER", 0, 1);
    refused("another mode is refused", NULL, "MIN_COMBINED, MIN_FIRST and SCALED");

    INPUT("x", 5);
    SCALAR("low", -.1f);
    SCALAR("high", 1.4f);
    node("y", "FakeQuantWithMinMaxVars", "x low high");
    ATTR("num_bits", number(3, 4));
    shut();
    gives("4 bits from -0.1 to 1.4", NULL, X(-9, .04f, .06f, 1.27f, 9), DIM(5),
          WANT(-.1f, 0, .1f, 1.3f, 1.4f));

    INPUT("x", 4);
    constant("h", HALF, 1, (const int64_t[]){4}, 13, (const int64_t[]){0x3c00, 0x4000}, 2, 8);
    constant("b", BF16, 1, (const int64_t[]){4}, 13, (const int64_t[]){0x4080}, 1, 8);
    constant("z", F32, 1, (const int64_t[]){4}, 13, NULL, 0, 8);
    for (int i = 0; i < 2; i++) {
        node(i ? "cb" : "ch", "Cast", i ? "b" : "h");
        ATTR("DstT", number(6, F32));
        shut();
    }
    simple("y", "AddN", "x ch cb z");
    gives("half and bfloat16, the last of few repeated, none at all for 0", NULL, X(0, 0, 0, 1),
          DIM(4), WANT(5, 6, 6, 7));

    INPUT("x", 2);
    node("i", "Cast", "x");
    ATTR("DstT", number(6, I32));
    shut();
    ONE("four", 4);
    simple("q", "FloorDiv", "i four");
    node("y", "Cast", "q");
    ATTR("DstT", number(6, F32));
    shut();
    gives("whole numbers are divided downwards", NULL, X(-5, 7), DIM(2), WANT(-2, 1));
}

/* ---- shapes ---- */

/* Layers whose shapes follow from others. */
static void test_shapes(void) {
    INPUT("x", -1, 2, 2, 2);
    floats("w", 4, (const int64_t[]){1, 1, 2, 2}, X(0, 1, 1, 0), 4); /* exchanges the channels */
    node("c", "Conv2D", "x w");
    INTS("strides", 1, 1, 1, 1);
    ATTR("padding", text(2, "SAME"));
    shut();
    simple("s", "Shape", "c");
    WHOLE("at0", 0);
    WHOLE("at1", 1);
    node("n", "StridedSlice", "s at0 at1 at1");
    ATTR("shrink_axis_mask", number(3, 1));
    shut();
    ONE("eight", 8);
    simple("p", "Pack", "n eight");
    simple("f", "Reshape", "c p");
    VECTOR("m", 1, 2, 3, 4, 5, 6, 7, 8);
    WHOLE("col", 8, 1);
    simple("k", "Reshape", "m col");
    simple("y", "MatMul", "f k");
    const char *path = cnrt_path("open.pb"), *paths[] = {path};
    cnrt_write(path, file, n_file);
    cnr_graph *g = cnrt_import("tensorflow", paths, 1, NULL, 0);
    const cnr_tensor *t = g ? cnri_host.graph_type(g, g->outputs.at[0]) : NULL;
    ok(t && t->rank == 2 && t->dim[1] == 1, "a shape made of parts is known but for the batch");
    cnri_graph_free(g);
    gives("flattened as TensorFlow lays pictures out", NULL,
          X(1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0), DIM(2, 2, 2, 2), WANT(2 + 7, 1));

    INPUT("x", 1, 2, 3);
    WHOLE("b", 0, 0, 1);
    WHOLE("e", 0, 0, 0);
    WHOLE("s", 1, 1, 1);
    node("y", "StridedSlice", "x b e s"); /* x[..., tf.newaxis, 1] */
    ATTR("ellipsis_mask", number(3, 1));
    ATTR("new_axis_mask", number(3, 2));
    ATTR("shrink_axis_mask", number(3, 4));
    shut();
    gives("an ellipsis, a new axis, one place", NULL, X(1, 2, 3, 4, 5, 6), DIM(1, 2, 3),
          WANT(2, 5));

    INPUT("x", 1, 5);
    ONE("axis", 1);
    WHOLE("lengths", 2, -1, 1);
    node("p", "SplitV", "x lengths axis");
    ATTR("num_split", number(3, 3));
    shut();
    simple("y", "ConcatV2", "p:2 p:1 p axis");
    gives("SplitV, one length left open", NULL, X(1, 2, 3, 4, 5), DIM(1, 5), WANT(5, 3, 4, 1, 2));

    INPUT("x", 3);
    constant("p", I32, 2, (const int64_t[]){1, 2}, 7, (const int64_t[]){2, 1}, 2, 8);
    node("y", "MirrorPad", "x p");
    ATTR("mode", text(2, "SYMMETRIC"));
    shut();
    gives("a symmetric border has the edge twice", NULL, X(1, 2, 3), DIM(3),
          WANT(2, 1, 1, 2, 3, 3));

    INPUT("x", 1, 3, 1);
    WHOLE("two", 2);
    constant("p", I32, 2, (const int64_t[]){1, 2}, 7, (const int64_t[]){0, 1}, 2, 8);
    simple("b", "SpaceToBatchND", "x two p");
    SCALAR("ten", 10);
    simple("m", "Mul", "b ten");
    simple("y", "BatchToSpaceND", "m two p");
    gives("one axis into the batch and back", NULL, X(1, 2, 3), DIM(1, 3, 1), WANT(10, 20, 30));

    INPUT("x", 1, 1, 2, 1);
    floats("w", 4, (const int64_t[]){1, 1, 1, 1}, X(3), 1);
    WHOLE("size", 1, 1, 4, 1);
    node("y", "Conv2DBackpropInput", "size w x");
    INTS("strides", 1, 1, 2, 1);
    ATTR("padding", text(2, "VALID"));
    shut();
    gives("what no window of a transposed convolution reaches is 0", NULL, X(1, 2), DIM(1, 1, 2, 1),
          WANT(3, 0, 6, 0));

    INPUT("x", -1, 1, -1, 1);
    floats("w", 4, (const int64_t[]){1, 3, 1, 1}, X(1, 2, 3), 3);
    simple("s", "Shape", "x");
    ONE("two", 2);
    WHOLE("scale", 1, 2, 2, 1);
    WHOLE("over", 0, -1, 1, 0);
    simple("m", "Mul", "s scale");
    simple("size", "AddV2", "m over");
    node("y", "Conv2DBackpropInput", "size w x");
    INTS("strides", 1, 2, 2, 1);
    ATTR("padding", text(2, "VALID"));
    shut();
    gives("one whose sizes follow from the input's, which are open", NULL, X(1, 10),
          DIM(1, 1, 2, 1), WANT(1, 2, 13, 20, 30));

    INPUT("x", 2, 1, 2);
    floats("w", 3, (const int64_t[]){1, 2, 2}, X(1, 2, 3, 4), 4);
    node("y", "Einsum", "x w");
    ATTR("equation", text(2, "abc,bcd->da"));
    shut();
    gives("a sum over two letters, turned round", NULL, X(1, 0, 0, 1), DIM(2, 1, 2),
          WANT(1, 3, 2, 4));
}

/* ---- what is folded away ---- */

/* Writes a graph of a branch. */
static void branch(void) {
    INPUT("x", 2);
    FLAG("off", 0);
    node("training", "PlaceholderWithDefault", "off");
    ATTR("dtype", number(6, BOOL));
    shut();
    simple("s", "Switch", "x training");
    simple("odd", "Mystery", "s:1");
    simple("pivot", "Switch", "training training");
    simple("side", "Identity", "pivot");
    node("seven", "Const", "^side");
    ATTR("value", (open(8), number(1, F32), bytes(4, "\0\0\340\100", 4), shut()));
    shut();
    simple("add", "AddV2", "s seven");
    simple("y", "Merge", "add odd");
}

/* Writes a graph of dropout. */
static void dropout(void) {
    INPUT("x", 2);
    WHOLE("shape", 2);
    simple("u", "RandomUniform", "shape");
    simple("a", "AddV2", "u keep");
    simple("f", "Floor", "a");
    simple("r", "RealDiv", "x keep");
    simple("y", "Mul", "r f");
    node("keep", "Placeholder", "");
    ATTR("dtype", number(6, F32));
    shut();
}

/* Branches and constants that are folded at import. */
static void test_folded(void) {
    branch();
    gives("the side that is not taken may hold anything", NULL, X(1, 2), DIM(2), WANT(8, 9));
    branch();
    refused("unless it is taken", "value.training=1", "1 node Mystery (the first: odd)");

    INPUT("x", 2);
    FLAG("on", 1);
    simple("s", "Switch", "x on");
    simple("neg", "Neg", "s");
    simple("twice", "AddN", "s:1 s:1");
    simple("y", "Merge", "neg twice");
    gives("the side that a constant takes", NULL, X(1, 2), DIM(2), WANT(2, 4));

    dropout();
    gives("a dropout that keeps all, by an option", "value.keep=1", X(1, 2), DIM(2), WANT(1, 2));
    dropout();
    refused("one that does not depends on chance", "value.keep=0.5", "random numbers");

    INPUT("x", 2);
    node("call", "PartitionedCall", "x");
    ATTR("f", (open(10), text(1, "outer"), shut()));
    shut();
    simple("y", "Neg", "call");
    open(2);
    for (int outer = 0; outer < 2; outer++) {
        open(1);
        open(1);
        text(1, outer ? "outer" : "inner");
        open(2);
        text(1, "a");
        shut();
        open(3);
        text(1, "out");
        shut();
        shut();
        node_field = 3;
        if (outer) {
            node("again", "PartitionedCall", "a");
            ATTR("f", (open(10), text(1, "inner"), shut()));
            shut();
            simple("sum", "AddV2", "again:output:0 a");
        } else simple("sum", "Mul", "a a");
        node_field = 1;
        open(4);
        text(1, "out");
        text(2, "sum:z:0");
        shut();
        shut();
    }
    shut();
    gives("functions that call functions are written out", NULL, X(1, 3), DIM(2), WANT(-2, -12));
}

/* ---- outputs, and what is refused ---- */

/* Graphs in the forms of files. */
static void test_files(void) {
    for (int wanted = 0; wanted < 2; wanted++) {
        INPUT("x", 2);
        simple("neg", "Neg", "x");
        simple("abs", "Abs", "x");
        simple("y", "AddV2", "neg abs");
        gives(wanted ? "an output in the middle, asked for" : "the output that nothing reads",
              wanted ? "outputs=neg" : NULL, X(-3, 1), DIM(2),
              wanted ? (const float[]){3, -1} : (const float[]){6, 0}, 2);
    }
    INPUT("x", 2);
    simple("a", "Strange", "x");
    simple("b", "Strange", "a");
    simple("e", "Enter", "b");
    simple("y", "Other", "e");
    refused("all kinds of nodes that are not supported are told at once", NULL,
            "2 nodes Strange (the first: a)");
    ok(strstr(cnrt_err.text, "1 node Enter (the first: e): control flow") &&
           strstr(cnrt_err.text, "1 node Other"),
       "and each once");

    number(1, 1); /* a SavedModel */
    open(2);
    open(2);
    simple("v", "VarHandleOp", "");
    shut();
    shut();
    refused("a SavedModel with variables is to be frozen first", NULL, "freeze it first");

    number(1, 1);
    open(2);
    open(2);
    INPUT("x", 2);
    simple("neg", "Neg", "x");
    simple("y", "Abs", "neg");
    shut();
    open(5); /* signature serving_default: outputs { "out": neg:0 } */
    text(1, "serving_default");
    open(2);
    open(2);
    text(1, "out");
    open(2);
    text(1, "neg:0");
    shut();
    shut();
    shut();
    shut();
    shut();
    gives("a SavedModel of constants: the outputs of its signature", NULL, X(1, -2), DIM(2),
          WANT(-1, 2));

    static const char words[] = "node {\n  name: \"x\"\n  op: \"Placeholder\"\n}\n";
    memcpy(file, words, n_file = sizeof words - 1);
    refused("text is refused with what to do", NULL, "in binary");
}

int main(void) {
    if (!cnrt_begin("tensorflow")) {
        skip("all", "import-tensorflow was not built");
        return cnrt_end();
    }
    test_numbers();
    test_shapes();
    test_folded();
    test_files();
    branch();
    const char *path = cnrt_path("damage.pb"), *paths[] = {path};
    cnrt_write(path, file, n_file);
    cnrt_survives("tensorflow", paths, 1, 0, NULL, 1000);
    return cnrt_end();
}
