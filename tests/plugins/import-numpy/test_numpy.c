/* Arrays of NumPy as weights of nets in Lua: types, orders and heads, archives, names, places and
 * layouts, against numbers known here; mistakes, hostile archives, damage. */
#include "files/files.h"
#include "arrays.h"
#include "store/store.h"

#include <sys/stat.h>
#include <cnnrun/half.h>

/* ---- nets ---- */

/* The net with these weights, or NULL. */
static cnr_graph *load(const char *weights, const char *layers) {
    char text[2000];
    cnr_graph *g = NULL;
    cnrt_err = (cnr_error)CNR_ERROR_INIT;
    snprintf(text, sizeof text, "local c = require 'cnnrun'\nreturn c.net { weights = %s,\n%s }\n",
             weights, layers);
    const char *path = cnrt_path("net.lua");
    cnrt_write(path, text, strlen(text));
    const cnr_load_options options = {.size = sizeof options};
    return cnri_load_graph(cnrt_runtime, path, &options, &g, &cnrt_err) == CNR_OK ? g : NULL;
}

/* A test: a weight holds these numbers. */
static int holds(const cnr_graph *g, const char *name, const float *want, int64_t n,
                 const char *what) {
    const cnr_value v = g ? cnri_graph_find(g, name) : -1;
    const cnr_tensor *t = v >= 0 ? cnri_graph_type(g, v) : NULL;
    int good = t && t->data && cnr_count(t) == n && t->dtype == CNR_f32;
    for (int64_t i = 0; good && i < n; i++)
        if (!(fabsf(((const float *)t->data)[i] - want[i]) <= 1e-6f * fabsf(want[i]))) good = 0;
    if (!ok(good, "%s", what)) {
        if (!g) note("%s: %s", cnrt_err.where, cnrt_err.text);
        for (int64_t i = 0; t && t->data && i < cnr_count(t) && i < 12; i++)
            note("%g", (double)((const float *)t->data)[i]);
    }
    return good;
}

/* A test: the net was refused, with such a message. */
static void refused(cnr_graph *g, const char *text, const char *what) {
    if (ok(g == NULL, "%s", what)) has_text(cnrt_err.text, text, "  for this reason");
    cnri_graph_free(g);
}

static const char dense23[] = "input = { 'x', shape = { 'b', 3 } }, "
                              "c.dense { 'fc', out = 2, bias = false }";
static const float six[] = {1, 2, 3, 4, 5, 6};

/* ---- one array ---- */

/* Writes an element of a type. */
static void put_element(bytes *b, const char *type, double value) {
    const int width = type[2] - '0';
    const float f = (float)value;
    uint64_t raw = 0;
    if (type[1] == 'f' && width == 2) raw = cnr_f32_to_f16(f);
    else if (type[1] == 'f') memcpy(&raw, width == 4 ? (const void *)&f : &value, (size_t)width);
    else raw = (uint64_t)(int64_t)value;
    for (int i = 0; i < width; i++)
        put_number(b, raw >> 8 * (type[0] == '>' ? width - 1 - i : i), 1);
}

/* Arrays of each type. */
static void test_types(void) {
    static const char *const types[] = {"<f2", ">f2", "<f4", ">f4", "=f4", "<f8", ">f8", "|i1",
                                        "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "|u1", "<u2",
                                        ">u2", "<u4", ">u4", "<u8", ">u8", "|b1"};
    for (size_t i = 0; i < CNRI_COUNT(types); i++) {
        const char *type = types[i];
        float want[6];
        bytes data = {0};
        for (int k = 0; k < 6; k++) {
            want[k] = type[1] == 'f'   ? (float)k / 4 - 1
                      : type[1] == 'i' ? (float)(20 * k - 50)
                      : type[1] == 'u' ? (float)(40 * k)
                                       : (float)(k % 2);
            put_element(&data, type, (double)want[k]);
        }
        npy_save("w.npy", npy(type, 0, "(2, 3)", data.at, data.n));
        free(data.at);
        cnr_graph *g = load("'w.npy'", dense23);
        holds(g, "fc.weight", want, 6, type);
        cnri_graph_free(g);
    }
    const float turned[] = {1, 4, 2, 5, 3, 6};
    npy_save("w.npy", npy("<f4", 1, "(2, 3)", turned, sizeof turned));
    cnr_graph *g = load("'w.npy'", dense23);
    holds(g, "fc.weight", six, 6, "Fortran's order");
    cnri_graph_free(g);
    npy_save("w.npy", npy("<f4", 0, "()", six, 4));
    g = load("'w.npy'", "input = { 'x', shape = { 'b', 3 } },\n"
                        "function(x) return c.mul { x, c.weight { 'gain', shape = {} } } end");
    holds(g, "gain", six, 1, "a single number");
    cnri_graph_free(g);
}

/* Heads of each form, right and wrong. */
static void test_heads(void) {
    static const struct {
        int version;
        const char *text, *wrong;
    } heads[] = {
        {1, "{'shape': (2, 3), 'descr': '<f4', 'fortran_order': False}\n", NULL},
        {2, "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,3,)}\n", NULL},
        {3, " { 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2L , 3L ) , } \n", NULL},
        {1, "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }\n", "Python objects"},
        {1, "{'descr': '<U7', 'fortran_order': False, 'shape': (2, 3), }\n", "'<U7' (texts)"},
        {1, "{'descr': '|S4', 'fortran_order': False, 'shape': (2, 3), }\n", "texts"},
        {1, "{'descr': '<c8', 'fortran_order': False, 'shape': (2, 3), }\n", "complex"},
        {1, "{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2, 3), }\n", "dates"},
        {1, "{'descr': '<f16', 'fortran_order': False, 'shape': (2, 3), }\n", "another size"},
        {1, "{'descr': '', 'fortran_order': False, 'shape': (2, 3), }\n", "unknown"},
        {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }\n", "structures"},
        {1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3), }\n", "neither True nor False"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }\n", "than sizes"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (6), }\n", "no tuple"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': [2, 3], }\n", "no tuple"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 9999999999), }\n",
         "too large"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n",
         "too large"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,2,3), }\n", "8 axes"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }\n", "tells of"},
        {1, "{'descr': '<f4', 'fortran_order': False, }\n", "lacks"},
        {1, "{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3), }\n", "second key"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}\n", "odd"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } + {}\n", "behind"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)\n", "comma"},
        {1, "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (2, 3), }\n", "does not end"},
        {1, "__import__('os').system('true')\n", "no dictionary"},
        {1, "", "no dictionary"},
    };
    for (size_t i = 0; i < CNRI_COUNT(heads); i++) {
        npy_save("w.npy", npy_text(heads[i].version, heads[i].text, six, sizeof six));
        cnr_graph *g = load("'w.npy'", dense23);
        if (!heads[i].wrong) {
            holds(g, "fc.weight", six, 6, "a head as Python writes it");
            cnri_graph_free(g);
        } else refused(g, heads[i].wrong, "another head");
    }
    bytes huge = npy_text(2, "{}", six, sizeof six);
    huge.at[11] = 0x70;
    npy_save("w.npy", huge);
    refused(load("'w.npy'", dense23), "head", "a head of gigabytes");
}

/* ---- archives ---- */

static const char conv_net[] =
    "input = { 'data', shape = { 'batch', 1, 4, 4 } },\n"
    "c.conv2d { 'conv1', out = 2, kernel = 2 }, c.relu {}, c.flatten {},\n"
    "c.dense { 'fc', out = 2 }";
static float kernel[8], bias[2] = {0.5f, -1}, matrix[36], shift[2] = {3, 4};

/* Adds four arrays with these names to an archive, packed as the flags say. */
static void add_all(archive *z, const char *const names[4], int flags) {
    zip_add(z, names[0], floats("(2, 1, 2, 2)", kernel, 8), flags, 0);
    zip_add(z, names[1], floats("(2,)", bias, 2), flags, 0);
    zip_add(z, names[2], floats("(2, 18)", matrix, 36), flags, 0);
    zip_add(z, names[3], floats("(2,)", shift, 2), flags, 0);
}

/* A test: all weights hold their numbers. */
static void holds_all(cnr_graph *g, const char *what) {
    if (holds(g, "conv1.weight", kernel, 8, what)) {
        holds(g, "conv1.bias", bias, 2, "  conv1.bias");
        holds(g, "fc.weight", matrix, 36, "  fc.weight");
        holds(g, "fc.bias", shift, 2, "  fc.bias");
    }
    cnri_graph_free(g);
}

/* Archives by their names. */
static void test_archives(void) {
    static const char *const names[][4] = {
        {"conv1.weight.npy", "conv1.bias.npy", "fc.weight.npy", "fc.bias.npy"},
        {"conv1/W.npy", "conv1.b.npy", "fc_W.npy", "fc/b.npy"},
        {"conv1/kernel:0.npy", "conv1/bias:0.npy", "m/fc/kernel:0.npy", "m/fc/bias:0.npy"},
        {"module.conv1.weight", "module.conv1.bias", "module.fc.weight", "module.fc.bias"},
        {"arr_0.npy", "arr_1.npy", "arr_2.npy", "arr_3.npy"},
        {"8.npy", "9.npy", "10.npy", "11.npy"},
    };
    archive z = {0};
    for (size_t i = 0; i < CNRI_COUNT(names); i++) {
        add_all(&z, names[i], 0);
        zip_save(&z, "w.npz");
        holds_all(load("'w.npz'", conv_net), names[i][0]);
    }
    add_all(&z, names[0], ZIP_DEFLATED);
    zip_save(&z, "w.npz");
    holds_all(load("'w.npz'", conv_net), "deflated members");
    add_all(&z, names[0], ZIP_64);
    zip_save(&z, "w.npz");
    holds_all(load("'w.npz'", conv_net), "64-bit sizes");
    add_all(&z, names[0], ZIP_DEFLATED | ZIP_64);
    zip_save(&z, "archive");
    holds_all(load("'archive'", conv_net), "an archive without its ending");
    add_all(&z, names[0], 0);
    zip_add(&z, "conv1.num_batches_tracked.npy", npy("<i8", 0, "()", "\0\0\0\0\0\0\0", 8), 0, 0);
    zip_save(&z, "w.npz");
    holds_all(load("'w.npz'", conv_net), "a counter that PyTorch keeps is no parameter");

    npy_save("a.npy", floats("(2, 1, 2, 2)", kernel, 8));
    npy_save("b.npy", floats("(2,)", bias, 2));
    npy_save("c.npy", floats("(2, 18)", matrix, 36));
    npy_save("d.npy", floats("(2,)", shift, 2));
    holds_all(load("{ 'a.npy', 'b.npy', 'c.npy', 'd.npy' }", conv_net), "a list of files");
    mkdir(cnrt_path("folder"), 0777);
    npy_save("folder/conv1_W.npy", floats("(2, 1, 2, 2)", kernel, 8));
    npy_save("folder/conv1_b.npy", floats("(2,)", bias, 2));
    npy_save("folder/fc_W.npy", floats("(2, 18)", matrix, 36));
    npy_save("folder/fc_b.npy", floats("(2,)", shift, 2));
    holds_all(load("'folder'", conv_net), "a folder");
}

/* ---- what is told ---- */

/* Arrays that don't fit are refused. */
static void test_mistakes(void) {
    static const char *const names[] = {"conv1.W.npy", "conv1.b.npy", "fc.W.npy", "other.npy"};
    archive z = {0};
    zip_add(&z, names[0], floats("(2, 2, 2)", kernel, 8), 0, 0);
    zip_add(&z, names[1], npy("|O", 0, "(2,)", "??", 2), 0, 0);
    zip_add(&z, "fc.W.npy", floats("(2, 18)", matrix, 36), 0, 0);
    zip_add(&z, "fc.weight.npy", floats("(2, 18)", matrix, 36), 0, 0);
    zip_add(&z, names[3], floats("(2,)", shift, 2), 0, 0);
    zip_save(&z, "w.npz");
    refused(load("'w.npz'", conv_net),
            "'conv1.W' is 2x2x2, but "
            "conv1.weight wants 2x1x2x2",
            "a shape: both are told");
    has_text(cnrt_err.text, "'conv1.b': its elements are '|O' (Python objects); want f2",
             "and the type of another");
    has_text(cnrt_err.text, "'other', 2 numbers, is no parameter", "and what is left over");
    has_text(cnrt_err.text, "no array for fc.bias, 2 numbers", "and what is missing");
    refused(load("{ 'w.npz', flop = true }", conv_net),
            "no option \"flop\", did you mean \"flip\"?", "what no setting is called");
    zip_add(&z, "fc.W.npy", floats("(2, 18)", matrix, 36), 0, 0);
    zip_add(&z, "fc_weight.npy", floats("(2, 18)", matrix, 36), 0, 0);
    zip_save(&z, "w.npz");
    refused(load("'w.npz'", conv_net), "'fc.W' and 'fc_weight' both are fc.weight", "two for one");
    zip_add(&z, "arr_0.npy", floats("(2, 1, 2, 2)", kernel, 8), 0, 0);
    zip_save(&z, "w.npz");
    refused(load("'w.npz'", conv_net), "1 arrays without names for 4 parameters", "too few");
    zip_save(&z, "w.npz");
    refused(load("'w.npz'", conv_net), "no array for conv1.weight", "an empty archive");
    refused(load("'none.npz'", conv_net), "there is no ", "no file");
    refused(load("'/tmp/w.npz'", conv_net), "outside the script's folder", "a file elsewhere");
    refused(load("{ 'a.npy', '../b.npy' }", conv_net), "outside the script's folder", "another");
    refused(load("{ flip = true }", conv_net), "want a file's name", "settings alone");
    refused(load("{ 'w.npz', flip = {} }", conv_net), "weights.flip: want", "no setting");
    refused(load("{ 'a.npy', layout = 'chwn' }", conv_net), "want oihw or hwio", "no such layout");
    refused(load("{ 'w.npz', 3 }", conv_net), "want a file's name", "a number as a file");
    refused(load("{ 'w.cnr', 'v.cnr' }", conv_net), "there is no", "two native files");
    cnrt_write(cnrt_path("text.npz"), "hello", 5);
    refused(load("'text.npz'", conv_net), "in a format that is known here", "no array at all");
    static const char sum[] = "input = { 'x', shape = { 'b', 2 } },\n"
                              "function(x) return c.add { x, c.weight { 'w', shape = { 2 } } } end";
    cnr_graph *g = load("'d.npy'", sum);
    const char *native = cnrt_path("native.cnr"), *renamed = cnrt_path("renamed");
    ok(g && cnri_store_write(g, native, &cnrt_err) == CNR_OK && rename(native, renamed) == 0,
       "weights as a native file");
    cnri_graph_free(g);
    g = load("'renamed'", sum);
    holds(g, "w", shift, 2, "which is known by its content too");
    cnri_graph_free(g);
    refused(load("{ 'renamed', flip = true }", conv_net), "takes no option \"flip=true\"",
            "and takes no settings");
    refused(load("{ 'renamed', 'd.npy' }", conv_net), "one file too many", "nor other files");
    const char *paths[] = {cnrt_path("a.npy")};
    refused(cnrt_import("numpy", paths, 1, NULL, 0),
            "describe the net in Lua with weights = \"a.npy\"", "arrays alone are no net");
    has_text(cnrt_err.text, "a 2x1x2x2", "but are listed");
    npy_save("w.npy", floats("(18, 2)", matrix, 36));
    refused(load("'w.npy'", "input = { 'x', shape = { 'b', 1, 4, 4 } }, "
                            "c.conv2d { 'k', out = 2, kernel = 2, bias = false }"),
            "18x2", "a matrix is no kernel");
    npy_save("w.npy", floats("(2, 2, 1, 2)", kernel, 8));
    refused(load("'w.npy'", "input = { 'x', shape = { 'b', 1, 4, 4 } }, "
                            "c.conv2d { 'k', out = 2, kernel = 2, bias = false }"),
            "layout = \"hwio\" would fit", "a hint");
}

/* ---- hostile archives ---- */

/* Archives that claim too much are refused. */
static void test_hostile(void) {
    archive z = {0};
    bytes long_array = floats("(2, 3)", six, 6);
    const size_t told = long_array.n;
    uint8_t *zeros = calloc(1, 64 << 20);
    put(&long_array, zeros, 64 << 20);
    zip_add(&z, "fc.weight.npy", long_array, ZIP_DEFLATED, told);
    zip_save(&z, "bomb.npz");
    refused(load("'bomb.npz'", dense23), "'fc.weight' is damaged", "more than the head tells");
    bytes wide = npy("<f4", 0, "(4096, 4096)", zeros, 64 << 20);
    zip_add(&z, "fc.weight.npy", wide, ZIP_DEFLATED, 0);
    zip_save(&z, "bomb.npz");
    refused(load("'bomb.npz'", dense23), "is 4096x4096, but", "what does not fit is not unpacked");
    free(zeros);
    zip_add(&z, "fc.weight.npy", floats("(2, 3)", six, 6), ZIP_BAD_SUM, 0);
    zip_save(&z, "w.npz");
    refused(load("'w.npz'", dense23), "damaged", "a wrong checksum");
    zip_add(&z, "fc.weight.npy", floats("(2, 3)", six, 6), 0, told + 4);
    zip_save(&z, "w.npz");
    refused(load("'w.npz'", dense23), "'fc.weight'", "a wrong size");
    bytes two = floats("(2, 3)", six, 6), more = floats("(2, 3)", six, 6);
    put(&two, more.at, more.n);
    free(more.at);
    npy_save("two.npy", two);
    refused(load("'two.npy'", dense23), "its head tells of", "two arrays in one file");
    zip_add(&z, "../../fc.weight.npy", floats("(2, 3)", six, 6), 0, 0);
    zip_save(&z, "w.npz");
    cnr_graph *g = load("'w.npz'", dense23);
    holds(g, "fc.weight", six, 6, "a path in an archive is only a name");
    cnri_graph_free(g);
}

/* Changed bytes are refused or harmless. */
static void test_damage(void) {
    static const char *const names[] = {"conv1.weight.npy", "conv1.bias.npy", "fc.W.npy",
                                        "fc.bias.npy"};
    archive z = {0};
    int taken = 0, silent = 0;
    add_all(&z, names, ZIP_DEFLATED);
    size_t n;
    uint8_t *whole = cnrt_read(zip_save(&z, "w.npz"), &n), *copy = malloc(n + 1);
    cnrt_state = 11;
    for (int i = 0; i < 1000; i++) {
        cnrt_write(cnrt_path("w.npz"), copy, cnrt_damage(whole, n, copy));
        cnr_graph *g = load("'w.npz'", conv_net);
        taken += g != NULL;
        silent += !g && !cnrt_err.text[0];
        cnri_graph_free(g);
    }
    ok(taken < 1000 && silent == 0, "1000 damaged archives: %d taken, no harm", taken);
    free(copy);
    cnri_free(whole);
}

int main(void) {
    if (!cnrt_begin("numpy")) {
        skip("numpy", "import-numpy.so, which needs libzip");
        return cnrt_end();
    }
    cnrt_noise(kernel, 8, 1);
    cnrt_noise(matrix, 36, 2);
    test_types();
    test_heads();
    test_archives();
    test_mistakes();
    test_hostile();
    test_damage();
    return cnrt_end();
}
