/* CNNdroid: a NetFile and MessagePack files written here against arithmetic done by hand, what it
 * says about running carried into the plan, paths that lead outside, damage, and the real net. */
#include "plugins/importing.h"
#include <sys/stat.h>

/* ---- a writer of MessagePack ---- */

/* Bytes that are written. */
typedef struct writer {
    uint8_t at[1 << 13];
    size_t n;
} writer;

static void list(writer *w, uint32_t n) { /* array 16 */
    const uint8_t head[] = {0xdc, (uint8_t)(n >> 8), (uint8_t)n};
    memcpy(w->at + w->n, head, 3);
    w->n += 3;
}
static void number(writer *w, float value) { /* float 32, or a fixnum where it is one */
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (value >= 0 && value < 128 && value == floorf(value)) {
        w->at[w->n++] = (uint8_t)value;
        return;
    }
    w->at[w->n++] = 0xca;
    for (int i = 24; i >= 0; i -= 8) w->at[w->n++] = (uint8_t)(bits >> i);
}
/* Writes a list of floats. */
static void floats(writer *w, const float *data, uint32_t n) {
    list(w, n);
    for (uint32_t i = 0; i < n; i++) number(w, data[i]);
}
/* Writes floats as lists nested by the `rank` sizes of dim. */
static void nested(writer *w, const float *data, const uint32_t *dim, int rank) {
    uint32_t inner = 1;
    if (rank == 1) return floats(w, data, *dim);
    for (int i = 1; i < rank; i++) inner *= dim[i];
    list(w, *dim);
    for (uint32_t i = 0; i < *dim; i++) nested(w, data + i * inner, dim + 1, rank - 1);
}

static writer w;

/* Writes the bytes to a file. */
static void save(const char *name) {
    cnrt_write(cnrt_path(name), w.at, w.n);
    w.n = 0;
}

/* Writes a net file; returns its path. */
static const char *netfile(const char *name, const char *head, const char *file) {
    char text[2048];
    snprintf(text, sizeof text,
             "root_directory: \"/sdcard/x/\"\n%s\n"
             "layer {\n  type: \"Convolution\"\n  name: \"c\"\n  parameters_file: \"%s\"\n"
             "  pad: 0\n  stride: 1\n  group: 1\n}\n"
             "layer {\n type: \"Pooling\"\n name: \"p\"\n pool: \"ave\"\n kernel_size: 2\n pad: 0\n"
             " stride: 2 }\n"
             "layer{type:\"ReLU\" name:\"r\"}\n"
             "layer {\n  type: \"FullyConnected\"\n name: \"f\"\n parameters_file: \"f.msg\"\n}\n",
             head, file);
    const char *path = cnrt_path(name);
    cnrt_write(path, text, strlen(text));
    return path;
}

/* Writes the weights. */
static void write_weights(void) {
    nested(&w, (const float[]){1, -1}, (const uint32_t[]){1, 1, 1, 2}, 4);
    floats(&w, (const float[]){0.5f}, 1);
    save("c.msg");
    floats(&w, (const float[]){1, 0, 0, 1, 1, 1, 1, 1}, 8);
    floats(&w, (const float[]){0, -1}, 2);
    save("f.msg");
}

/* A small net with each layer gives the right numbers. */
static void test_small(void) {
    /* 3 x 4: differences of neighbours, + 0.5: 3 x 3; means of 2 x 2 windows that hang over, cut
     * to the picture: 2 x 2; two sums of those */
    static const float x[] = {4, 2, 1, 0, 3, 2, 2, 2, 0, 1, 2, 4};
    write_weights();
    const char *path = netfile("net.txt",
                               "allocated_ram: 2\nexecution_mode: \"sequential\"\n"
                               "auto_tuning: \"off\"",
                               "c.msg");
    cnr_model *m = cnrt_model("cnndroid", path, NULL, "shape=1,3,4");
    if (!m) note("%s", cnrt_err.text);
    /* rows: 2.5 1.5 1.5; 1.5 .5 .5; -.5 -.5 -1.5; means 1.5 1, -.5 -1.5; relu 1.5 1 0 0 */
    const cnr_tensor *y = cnrt_run(m, x, (const int64_t[]){1, 1, 3, 4}, 4);
    ok(y && cnrt_distance(y, (const float[]){1.5f, 1.5f}, 2) < 1e-6, "a small net");
    if (m) {
        is_int((long long)m->plan_options.memory_bound, 2 << 20, "allocated_ram bounds weights");
        is_text(m->plan_options.device, "cpu", "sequential: the processor");
        is_text(m->plan_options.kernels ? m->plan_options.kernels[0] : NULL, "*=reference",
                "and the plain C of each operator");
        ok(m->plan_options.deterministic, "auto_tuning off: no clock chooses");
    }
    m = cnrt_model("cnndroid", netfile("net.txt", "auto_tuning: \"on\"", "c.msg"), NULL, NULL);
    ok(m && !m->plan_options.memory_bound && !m->plan_options.deterministic, "none asked, none");
    if (m) is_text(cnri_graph_meta(m->graph, "plan.adapt"), "1", "auto_tuning on: the net adapts");
    if (m) is_int(cnr_input_type(m, 0)->dim[3], 4, "the input's size, told by the layers");
    cnr_graph *g = NULL;
    const cnr_load_options own = {.size = sizeof own, .memory_bound = 77};
    path = netfile("net.txt", "allocated_ram: 2", "c.msg");
    if (cnri_load_graph(cnrt_runtime, path, NULL, &g, &cnrt_err) == CNR_OK &&
        cnri_model_from_graph(cnrt_runtime, g, &own, &m, &cnrt_err) == CNR_OK)
        is_int((long long)m->plan_options.memory_bound, 77, "the caller's wish goes first");
    else ok(0, "the net is known by its content: %s", cnrt_err.text);
}

/* As CNNdroid reads and computes: any case, outputs rounded up, borders of zeros, doubles. */
static void test_spelling(void) {
    static const char text[] =
        "ROOT_directory: \"/sdcard/x/\"\r\n# a remark\r\n"
        "Execution_Mode: \"Sequential\"\r\n\r\nLayer\r\n{\r\n\tTYPE: \"convolution\"\r\n"
        "\tParameters_File: \"c.msg\"\r\n\tstride: 2\r\n}\r\n"
        "layer {\r\n\ttype : \"pooling\"\r\n\tpool: \"max\"\r\n\tkernel_size: 2\r\n"
        "\tpad: 1\r\n\tstride: 2\r\n}\r\n"
        "layer {\r\n\ttype: \"fullyconnected\"\r\n\tparameters_file: \"f.msg\"\r\n}\r\n"
        "layer {\r\n\ttype: \"Accuracy\"\r\n\tparameters_file: \"labels.msg\"\r\n"
        "\ttopk: 1\r\n}\r\nAllocated_RAM: 2 \r\n";
    /* every other pixel: -1 -3, and with the last window half outside -5; windows of 2 x 2, each
     * of which sees the border of zeros: 2 rows of 3 zeros */
    static const float x[] = {-1, -2, -3, -4, -5};
    static const uint8_t half[] = {0xcb, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0}; /* 0.5 as a double */
    nested(&w, (const float[]){1, 0}, (const uint32_t[]){1, 1, 1, 2}, 4);
    floats(&w, (const float[]){0}, 1);
    save("c.msg");
    nested(&w, (const float[]){1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6}, (const uint32_t[]){2, 6}, 2);
    list(&w, 2);
    for (int i = 0; i < 2; i++) {
        memcpy(w.at + w.n, half, sizeof half);
        w.n += sizeof half;
    }
    save("f.msg");
    const char *path = cnrt_path("any.txt");
    cnrt_write(path, text, strlen(text));
    cnr_model *m = cnrt_model("cnndroid", path, NULL, "shape=1,1,5");
    if (!m) note("%s", cnrt_err.text);
    const cnr_tensor *y = cnrt_run(m, x, (const int64_t[]){1, 1, 1, 5}, 4);
    ok(y && cnrt_distance(y, (const float[]){0.5f, 0.5f}, 2) < 1e-6, "a net in another spelling");
    if (m) is_text(m->plan_options.device, "cpu", "Sequential is sequential");
    if (m) is_int((long long)m->plan_options.memory_bound, 2 << 20, "keys behind the layers");
}

/* Files with mistakes, or that point outside, are refused. */
static void test_problems(void) {
    static const char *const outside[] = {"../c.msg", "/etc/passwd", "a/../../c.msg", ".."};
    for (size_t i = 0; i < CNRI_COUNT(outside); i++) {
        ok(!cnrt_model("cnndroid", netfile("out.txt", "", outside[i]), NULL, NULL),
           "%s is not read", outside[i]);
        has_text(cnrt_err.text, "folder", "with the reason");
    }
    const char *path = cnrt_path("bad.txt");
    const char *text = "layer { type: \"Bogus\" name: \"one\" }\nlayer { type: \"Strange\" }\n"
                       "layer { type: \"Convolution\" parameters_file: \"none.msg\" }\n";
    cnrt_write(path, text, strlen(text));
    ok(!cnrt_model("cnndroid", path, NULL, "shape=3"), "a bad net is refused");
    has_text(cnrt_err.text, "Bogus", "the first unsupported layer is named");
    has_text(cnrt_err.text, "Strange", "and the second");
    has_text(cnrt_err.text, "none.msg", "and the missing file");
    /* an array of 4 thousand million, and one inside itself a hundred times */
    static const uint8_t large[] = {0xdd, 0xff, 0xff, 0xff, 0xff, 1};
    uint8_t deep[100];
    memset(deep, 0x91, sizeof deep);
    cnrt_write(cnrt_path("c.msg"), large, sizeof large);
    ok(!cnrt_model("cnndroid", netfile("net.txt", "", "c.msg"), NULL, NULL), "a lying length");
    cnrt_write(cnrt_path("c.msg"), deep, sizeof deep);
    ok(!cnrt_model("cnndroid", netfile("net.txt", "", "c.msg"), NULL, NULL), "deep nesting");
    nested(&w, (const float[]){1, 2, 3, 4}, (const uint32_t[]){1, 1, 2, 2}, 4);
    w.at[9 + 3 + 2] = 1; /* the first row now has one number */
    save("c.msg");
    ok(!cnrt_model("cnndroid", netfile("net.txt", "", "c.msg"), NULL, NULL), "ragged rows");
    write_weights();
}

/* Changed bytes are refused or harmless. */
static void test_damage(void) {
    const char *path = netfile("net.txt", "allocated_ram: 2", "c.msg");
    char name[256], weights[256];
    size_t bytes;
    uint8_t copy[4096];
    int refused = 0;
    snprintf(name, sizeof name, "%s", path);
    const char *paths[] = {name};
    cnrt_survives("cnndroid", paths, 1, 0, "shape=1,3,4", 1000);
    snprintf(weights, sizeof weights, "%s", cnrt_path("c.msg"));
    uint8_t *whole = cnrt_read(weights, &bytes);
    cnrt_state = 9;
    for (int i = 0; i < 1000; i++) {
        cnrt_write(weights, copy, cnrt_damage(whole, bytes, copy));
        cnr_graph *g = cnrt_import("cnndroid", paths, 1, NULL, 0);
        refused += !g;
        cnri_graph_free(g);
    }
    ok(refused > 500, "1000 damaged weights: %d refused, no harm", refused);
    cnri_free(whole);
}

/* The CIFAR-10 net of CNNdroid. */
static void test_real(void) {
    const char *shared = tap_shared();
    char path[1200];
    if (!shared) return skip("Cifar10", "shared data");
    snprintf(path, sizeof path, "%s/cnndroid/cifar10/Cifar10_def.txt", shared);
    static float x[2 * 3 * 32 * 32];
    cnr_model *m = cnrt_model("cnndroid", path, NULL, NULL);
    const cnr_tensor *y = cnrt_run(m, x, (const int64_t[]){2, 3, 32, 32}, 4);
    ok(y && y->rank == 2 && y->dim[1] == 10, "Cifar10: 3 x 32 x 32 in, ten classes out");
    if (m) is_int((long long)m->plan_options.memory_bound, 20 << 20, "20 MB for weights");
}

int main(void) {
    if (!cnrt_begin("cnndroid")) {
        skip("cnndroid", "plugin import-cnndroid");
        return cnrt_end();
    }
    test_small();
    test_spelling();
    test_problems();
    test_damage();
    test_real();
    return cnrt_end();
}
