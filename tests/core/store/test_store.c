/* The .cnr file: roundtrip, needs, weights by name, and damage of every kind. */
#define _GNU_SOURCE 1
#include "initial/initial.h"
#include "files/files.h"
#include "core/graph/toy.h"
#include "store/format.h"
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128], other[128];

/* A log that says nothing. */
static void quiet(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text;
}

/* ---- an encoding of one's own: bytes, half as many as elements ---- */

/* Method check of an encoding: CNR_E_FORMAT unless it has half a byte a number. */
static cnr_status half_check(const cnr_tensor *encoded, cnr_error *err) {
    if ((int64_t)encoded->bytes != cnr_count(encoded) / 2)
        return cnri_fail(err, CNR_E_FORMAT, "toy-half", "wrong size");
    return CNR_OK;
}
static cnr_encoding half = {.size = sizeof(cnr_encoding),
                            .version = 2,
                            .name = "toy-half",
                            .summary = "made up",
                            .check = half_check};
/* Method encode_size: *bytes are two for each element. */
static cnr_status half_size(const cnr_tensor *dense, const cnr_attr *const *attrs, uint64_t *bytes,
                            cnr_error *err) {
    (void)attrs, (void)err;
    *bytes = (uint64_t)cnr_count(dense) / 2;
    return CNR_OK;
}
/* Method encode: bytes of 1. */
static cnr_status half_encode(const cnr_tensor *dense, const cnr_attr *const *attrs, void *out,
                              uint64_t bytes, cnr_error *err) {
    (void)dense, (void)attrs, (void)err;
    memset(out, 1, bytes);
    return CNR_OK;
}
/* Method decode: zeros. */
static cnr_status half_decode(const cnr_tensor *encoded, void *dense, cnr_error *err) {
    (void)err;
    memset(dense, 0, cnr_dense_bytes(encoded));
    return CNR_OK;
}

static const float weights[] = {.5f, -1, 2, .25f, 3, -.5f};

/* A net for the file; whole: with all that one may hold. */
static cnr_graph *make(bool whole) {
    cnr_graph *g = cnri_graph_new("toynet");
    const int32_t batch = cnri_graph_symbol(g, "batch");
    const cnr_value x = toy_input(g, "data", TOY_TYPE(CNR_f32, CNR_DIM_SYMBOL(batch), 3));
    const cnr_value w = toy_const(g, "w", TOY_TYPE(CNR_f32, 2, 3), weights);
    g->values.at[w].type->flags |= CNR_TENSOR_VARIABLE;
    const cnr_attr label = {.name = "label", .type = CNR_ATTR_STRING, .set = 1, .s = "a \"b\"\n"};
    const cnr_attr kernel = {.name = "kernel",
                             .type = CNR_ATTR_INTS,
                             .set = 1,
                             .n = 2,
                             .ints = (const int64_t[]){3, 1}};
    const cnr_attr floats = {.name = "weights",
                             .type = CNR_ATTR_FLOATS,
                             .set = 1,
                             .n = 3,
                             .floats = (const double[]){.1, -1e300, 0}};
    const cnr_attr alpha = {.name = "alpha", .type = CNR_ATTR_FLOAT, .set = 1, .f = 0.1};
    const cnr_attr mode = {.name = "mode", .type = CNR_ATTR_ENUM, .set = 1, .s = "far"};
    const cnr_attr to = {.name = "to", .type = CNR_ATTR_DTYPE, .set = 1, .i = CNR_f16};
    const cnr_attr bias = {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1, .i = 0};
    cnr_value y = TOY_NODE(g, "toy_linear", "fc", (const cnr_attr *[]){&bias}, 1, x, w);
    cnri_graph_output(g, y, "scores");
    const cnr_value p = toy_input(g, "picture", TOY_TYPE(CNR_u8, 1, 2, 5, 7));
    y = TOY_NODE(g, "toy_window", "win",
                 ((const cnr_attr *[]){&label, &kernel, &floats, &alpha, &mode, &to}), 6, p);
    cnr_value h[2];
    cnri_graph_node(g, "toy_halves", "halves", NULL, &y, 1, NULL, 0, h, 2);
    cnri_graph_output(g, h[1], "half");
    cnr_tensor coded = TOY_TYPE(CNR_i8, 4, 4);
    const cnr_quant quant = {.size = sizeof quant,
                             .axis = 0,
                             .count = 4,
                             .scale = (const float[]){1, 2, 3, 4},
                             .zero_point = (const int32_t[]){0, -1, 5, 7}};
    coded.quant = &quant;
    coded.encoding = cnri_intern("toy-half");
    coded.bytes = 8;
    const cnr_value c = toy_const(g, "coded", coded, "12345678");
    cnri_graph_output(g, TOY_NODE(g, "toy_pass", "coded_out", NULL, 0, c), "coded");
    if (!whole) cnri_graph_output(g, TOY_NODE(g, "toy_linear", "open", NULL, 0, x), "open");
    toy_const(g, "unused", TOY_TYPE(CNR_f32, 3), weights);
    cnri_graph_set_meta(g, "labels", "cat\ndog");
    cnri_graph_set_meta(g, "empty", "");
    return g;
}

/* The bytes of a file, which the caller frees. */
static char *slurp(const char *file, size_t *bytes) {
    char *data = NULL;
    cnr_error err = CNR_ERROR_INIT;
    if (cnri_read_file(file, 1 << 28, &data, bytes, &err) != CNR_OK) note("%s", err.text);
    return data;
}

/* Writes bytes to a file; a test fails if it can't. */
static void spill(const char *file, const void *data, size_t bytes) {
    FILE *f = fopen(file, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes) ok(0, "a file is written");
    if (f) fclose(f);
}

/* Sets both digests right, so that damage gets past them. */
static void sign(uint8_t *file, size_t size) {
    uint64_t bytes = 0;
    for (int i = 0; i < 8; i++) bytes |= (uint64_t)file[32 + i] << 8 * i;
    if (bytes <= size - CNRI_STORE_HEADER)
        cnri_sha256_of(file + CNRI_STORE_HEADER, bytes, file + 56);
    cnri_sha256_of(file, CNRI_STORE_SIGNED, file + CNRI_STORE_SIGNED);
}

/* A graph that is written and read is the same. */
static void test_roundtrip(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = make(false), *back = NULL;
    if (!ok(cnri_store_write(g, path, &err) == CNR_OK, "a graph is written")) note("%s", err.text);
    if (!ok(cnri_store_read(path, true, &back, &err) == CNR_OK, "and read")) {
        note("%s: %s", err.where, err.text);
        exit(done());
    }
    is_text(back->name, "toynet", "name");
    is_int(back->nodes.n, g->nodes.n, "nodes");
    is_int(back->inputs.n, 2, "inputs");
    is_int(back->outputs.n, 4, "outputs");
    is_text(back->outputs.names[1], "half", "output names");
    is_text(cnri_graph_meta(back, "labels"), "cat\ndog", "metadata");
    is_text(cnri_graph_meta(back, "empty"), "", "empty metadata");
    is_text(cnri_graph_symbol_name(back, 0), "batch", "symbols");
    is_int(cnri_graph_type(back, back->inputs.at[0])->dim[0], CNR_DIM_SYMBOL(0), "in inputs");
    is_int(cnri_graph_find(back, "unused"), -1, "constants that nobody reads are left out");
    is_int(cnri_graph_find(back, "fc.bias"), -1, "no parameter is made that was not there");
    const cnr_tensor *w = cnri_graph_type(back, cnri_graph_find(back, "w"));
    ok(w->data && memcmp(w->data, weights, sizeof weights) == 0, "weights");
    ok((uintptr_t)w->data % 64 == 0 && (char *)w->data > (char *)back->file.at &&
           (char *)w->data < (char *)back->file.at + back->file.bytes,
       "mapped, not copied; aligned");
    ok(w->flags & CNR_TENSOR_VARIABLE, "their flags");
    const cnr_tensor *c = cnri_graph_type(back, cnri_graph_find(back, "coded"));
    is_text(cnri_name(c->encoding), "toy-half", "encoding");
    ok(c->quant && c->quant->count == 4 && c->quant->scale[2] == 3 && c->quant->zero_point[1] == -1,
       "quantisation");
    const cnri_value *open = &back->values.at[cnri_graph_find(back, "open.weight")];
    ok(open->unfilled && open->init.kind == CNR_INIT_HE && open->init.fan_in == 3,
       "a weight without data, and how to fill it");
    const cnr_node *win = &back->nodes.at[1]->view;
    int64_t n;
    is_text(cnr_attr_string(win, "label"), "a \"b\"\n", "text attribute");
    is_text(cnr_attr_string(win, "mode"), "far", "enumeration");
    is_int(cnr_attr_ints(win, "kernel", &n)[0], 3, "list of integers");
    ok(cnr_attr_floats(win, "weights", &n)[1] == -1e300 && n == 3, "list of numbers");
    ok(cnr_attr_float(win, "alpha") == 0.1, "number");
    is_int(cnr_attr_int(win, "to"), CNR_f16, "type attribute");
    is_text(back->nodes.at[1]->where, "net:1", "the place in the script");
    is_int(cnri_store_write(back, other, &err), CNR_OK, "what was read is written");
    size_t a, b;
    char *first = slurp(path, &a), *second = slurp(other, &b);
    ok(a == b && memcmp(first, second, a) == 0, "to the same bytes");
    cnri_free(first);
    cnri_free(second);
    int32_t bad = -1;
    is_int(cnri_store_check(path, &bad, &err), CNR_OK, "check reads it");
    is_int(bad, 0, "and finds it sound");
    cnri_graph_free(back);
    cnri_graph_free(g);
}

/* A net takes the weights of a file by name. */
static void test_fill(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = cnri_graph_new("script");
    const cnr_attr out = {.name = "out", .type = CNR_ATTR_INT, .set = 1, .i = 2};
    const cnr_value x = toy_input(g, "data", TOY_TYPE(CNR_f32, 1, 3));
    cnr_value y = TOY_NODE(g, "toy_linear", "fc", (const cnr_attr *[]){&out}, 1, x);
    cnri_graph_output(g, y, "y");
    is_int(cnri_fill_random(g, 3, &err), CNR_OK, "a script's net is filled");
    is_int(cnri_store_write(g, other, &err), CNR_OK, "and written");
    const float first = *(float *)cnri_graph_type(g, cnri_graph_find(g, "fc.weight"))->data;
    cnri_graph_free(g);
    g = cnri_graph_new("script");
    y = TOY_NODE(g, "toy_linear", "fc", (const cnr_attr *[]){&out}, 1,
                 toy_input(g, "data", TOY_TYPE(CNR_f32, 1, 3)));
    cnri_graph_output(g, y, "y");
    is_int(cnri_store_fill(g, other, &err), CNR_OK, "the same net takes the weights");
    is_int(cnri_graph_status(g, true, &err), CNR_OK, "all of them");
    ok(*(float *)cnri_graph_type(g, cnri_graph_find(g, "fc.weight"))->data == first,
       "as they were");
    cnri_graph_free(g);
    g = cnri_graph_new("script");
    y = TOY_NODE(g, "toy_linear", "fc", (const cnr_attr *[]){&out}, 1,
                 toy_input(g, "data", TOY_TYPE(CNR_f32, 1, 4)));
    y = TOY_NODE(g, "toy_linear", "fc9", (const cnr_attr *[]){&out}, 1, y);
    cnri_graph_output(g, y, "y");
    is_int(cnri_store_fill(g, other, &err), CNR_E_SHAPE, "another net does not");
    has_text(err.text, "fc.weight: [2,4] f32 wanted, got [2,3] f32", "wrong shapes are told");
    has_text(err.text, "fc9.weight is not in the file", "and missing weights");
    is_int(cnri_store_fill(g, path, &err), CNR_E_SHAPE, "a file of other weights neither");
    has_text(err.text, "w is not in the net", "extra ones are told");
    cnri_graph_free(g);
}

/* Operators and encodings that are not here, or are younger there. */
static void test_needs(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *back;
    size_t bytes;
    char *file = slurp(path, &bytes);
    const char *names[] = {"toy_linear", "toy_halves", "toy-half"};
    for (size_t i = 0; i < CNRI_COUNT(names); i++) {
        char *at = memmem(file, bytes, names[i], strlen(names[i]));
        if (at) at[4] = 'Z';
    }
    char *pass = memmem(file, bytes, "toy_pass", 8);
    if (pass) pass[9] = 77; /* its version */
    sign((uint8_t *)file, bytes);
    spill(other, file, bytes);
    is_int(cnri_store_read(other, true, &back, &err), CNR_E_UNSUPPORTED,
           "unknown operators: refused");
    for (size_t i = 0; i < 2; i++) {
        char want[32];
        snprintf(want, sizeof want, "toy_Z%s", names[i] + 5);
        has_text(err.text, want, "by name");
    }
    has_text(err.text, "encoding toy-Zalf", "encodings too");
    has_text(err.text, "toy_pass (version 77, here is 1)", "and versions");
    int32_t bad;
    is_int(cnri_store_check(other, &bad, &err), CNR_OK, "check needs none of them");
    cnri_free(file);
}

/* ---- damage ---- */

static uint64_t state = 42;
/* The next random number. */
static uint32_t random32(void) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* Reads a damaged file: true if that gives an error with a text, or (*loaded) a graph that is
 * walked and bound. */
static bool survives(const char *file, bool *loaded) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    const cnr_status status = cnri_store_read(file, true, &g, &err);
    *loaded = status == CNR_OK;
    if (status != CNR_OK) return g == NULL && err.text[0] != 0;
    volatile uint8_t sum = 0;
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnr_tensor *t = g->values.at[i].type;
        for (uint64_t k = 0; t->data && k < t->bytes; k++) sum += ((uint8_t *)t->data)[k];
    }
    (void)sum;
    cnri_graph_bind(g, NULL, 0, &err);
    cnri_graph_free(g);
    return true;
}

/* Damage at any byte of the header of `file`, of `bytes` bytes, is refused with an error. */
static void test_header(const char *file, size_t bytes) {
    int32_t let_through = 0, silent = 0;
    char *copy = malloc(bytes);
    for (size_t at = 0; at < CNRI_STORE_HEADER; at++)
        for (int bit = 0; bit < 8; bit += 3) {
            bool loaded;
            memcpy(copy, file, bytes);
            copy[at] ^= (char)(1 << bit);
            spill(other, copy, bytes);
            if (!survives(other, &loaded)) silent++;
            let_through += loaded;
        }
    is_int(let_through, 0, "damage at any byte of the header is refused");
    is_int(silent, 0, "with an error");
    free(copy);
}

/* Thousands of random flips and cuts of `file` give an error or a graph. */
static void test_flips(const char *file, size_t bytes) {
    int32_t silent = 0, loads = 0;
    char *copy = malloc(bytes);
    for (int i = 0; i < 3000; i++) {
        bool loaded;
        memcpy(copy, file, bytes);
        size_t n = bytes;
        for (uint32_t k = random32() % 4 + 1; k > 0; k--)
            copy[random32() % bytes] ^= (char)(1 << random32() % 8);
        if (i % 5 == 0) n = random32() % bytes;
        spill(other, copy, n);
        if (!survives(other, &loaded)) silent++;
        loads += loaded;
    }
    is_int(silent, 0, "thousands of random flips and cuts: an error or a graph");
    note("%d still loaded", loads);
    free(copy);
}

/* The same with digests made right again: now the checks themselves are on trial. */
static void test_forged(const char *file, size_t bytes) {
    static const uint8_t nasty[] = {0, 1, 0x7f, 0x80, 0xff};
    int32_t silent = 0, loads = 0;
    char *copy = malloc(bytes);
    const size_t span = 2048 < bytes ? 2048 : bytes;
    for (int i = 0; i < 6000; i++) {
        bool loaded;
        memcpy(copy, file, bytes);
        for (uint32_t k = random32() % 3 + 1; k > 0; k--) {
            const size_t at = 8 + random32() % (span - 16);
            const uint8_t by = nasty[random32() % 5];
            if (random32() % 2) copy[at] = (char)by;
            else memset(copy + at, by, random32() % 8 + 1);
        }
        sign((uint8_t *)copy, bytes);
        spill(other, copy, bytes);
        if (!survives(other, &loaded)) silent++;
        loads += loaded;
    }
    is_int(silent, 0, "forged files: an error or a graph");
    note("%d still loaded", loads);
    free(copy);
}

/* Writes a number in 8 bytes, the lowest first. */
static void put64(char *at, uint64_t x) {
    for (int i = 0; i < 8; i++) at[i] = (char)(x >> 8 * i);
}

/* Sizes near the ends of 64 bits, in the header and in a tensor. */
static void test_huge(const char *file, size_t bytes) {
    static const uint64_t huge[] = {UINT64_MAX,        UINT64_MAX - 63,  INT64_MAX,
                                    UINT64_C(1) << 63, UINT64_MAX - 127, UINT64_C(1) << 32};
    int32_t let_through = 0, silent = 0;
    bool loaded;
    char *copy = malloc(bytes);
    for (size_t i = 0; i < CNRI_COUNT(huge); i++)
        for (size_t at = 16; at < 56; at += 8) {
            memcpy(copy, file, bytes);
            put64(copy + at, huge[i]);
            sign((uint8_t *)copy, bytes);
            spill(other, copy, bytes);
            if (!survives(other, &loaded)) silent++;
            let_through += loaded;
        }
    is_int(let_through, 0, "huge sizes in the header are refused");
    /* The weight w: its two dimensions, offset and bytes follow its name. */
    const char *w = memmem(file, bytes, "\1\0\0\0w", 5);
    const size_t dims = w ? (size_t)(w - file) + 6 + 1 + 1 + 4 + 4 + 1 : 0;
    for (size_t i = 0; w && i < CNRI_COUNT(huge); i++)
        for (size_t at = dims; at < dims + 36; at += at == dims + 8 ? 12 : 8) {
            memcpy(copy, file, bytes);
            put64(copy + at, huge[i]);
            sign((uint8_t *)copy, bytes);
            spill(other, copy, bytes);
            if (!survives(other, &loaded)) silent++;
            let_through += loaded;
        }
    ok(w != NULL, "the weight is found");
    is_int(let_through, 0, "and in a tensor's shape, offset and size");
    is_int(silent, 0, "each with an error");
    free(copy);
}

/* Damaged, forged and huge files are refused. */
static void test_damage(void) {
    size_t bytes;
    cnr_error err = CNR_ERROR_INIT;
    char *file = slurp(path, &bytes);
    test_header(file, bytes);
    test_flips(file, bytes);
    test_forged(file, bytes);
    test_huge(file, bytes);
    /* A weight's own byte: it loads, and check tells. */
    int32_t bad = 0;
    char *at = memmem(file, bytes, weights, sizeof weights);
    ok(at != NULL, "the weights are in the file");
    at[5] ^= 16;
    spill(other, file, bytes);
    bool loaded;
    ok(survives(other, &loaded) && loaded, "damage in a tensor is not looked for at load");
    is_int(cnri_store_check(other, &bad, &err), CNR_OK, "check reads it");
    is_int(bad, 1, "and counts the damaged tensor");
    at[5] ^= 16;
    at[sizeof weights + 3] = 1;
    spill(other, file, bytes);
    cnri_store_check(other, &bad, &err);
    is_int(bad, 1, "bytes between tensors count too");
    cnri_free(file);
    spill(other, "", 0);
    ok(survives(other, &loaded) && !loaded, "an empty file is refused");
    cnr_graph *g;
    is_int(cnri_store_read("/nonexistent/x.cnr", true, &g, &err), CNR_E_NOT_FOUND,
           "a missing one too");
    g = make(true);
    is_int(cnri_store_write(g, "/nonexistent/x.cnr", &err) == CNR_OK, 0, "nowhere to write: error");
    cnri_graph_free(g);
}

/* The digests that a file has for each tensor: a fast fingerprint and an exact SHA-256. */
static void test_seals(void) {
    size_t bytes;
    cnr_error err = CNR_ERROR_INIT;
    char *file = slurp(path, &bytes);
    uint8_t digest[32];
    cnri_sha256_of(weights, sizeof weights, digest);
    char *own = memmem(file, bytes, digest, sizeof digest), *prints = NULL;
    cnri_digest print = {weights, sizeof weights, {0}, false};
    ok(own && cnri_fingerprints(&print, 1, 0) &&
           (prints = memmem(file, bytes, print.sum, 16)) != NULL,
       "a tensor's digest is there, and its fingerprint");
    for (int by_print = 0; own && prints && by_print < 2; by_print++) {
        cnr_graph *g = NULL;
        int32_t bad = 0;
        char *at = by_print ? prints : own;
        *at ^= 16;
        sign((uint8_t *)file, bytes);
        spill(other, file, bytes);
        cnri_store_check(other, &bad, &err);
        is_int(bad, 1, "check asks for both");
        is_int(cnri_store_read(other, true, &g, &err), CNR_OK, "loading for neither");
        is_int(cnri_graph_verify_weights(g, NULL, false, 2, &err), by_print ? CNR_E_FORMAT : CNR_OK,
               "data is compared with the fingerprint");
        is_int(cnri_graph_verify_weights(g, NULL, true, 2, &err), by_print ? CNR_OK : CNR_E_FORMAT,
               "exactly: with the digest, though the fingerprint was right");
        cnri_graph_free(g);
        *at ^= 16;
    }
    static const uint64_t elsewhere[] = {0, 1, 130, 1u << 20, UINT64_MAX};
    uint64_t data;
    memcpy(&data, file + 40, sizeof data);
    for (int i = 0; i < 6; i++) { /* the last: they would lie in the data */
        const uint64_t offset = i < 5 ? elsewhere[i] : data;
        memcpy(file + 88, &offset, sizeof offset);
        sign((uint8_t *)file, bytes);
        spill(other, file, bytes);
        cnr_graph *g = NULL;
        const cnr_status status = cnri_store_read(other, true, &g, &err);
        is_int(status, i == 0 ? CNR_OK : CNR_E_FORMAT,
               i == 0 ? "without fingerprints" : "fingerprints elsewhere");
        if (!status)
            is_int(cnri_graph_verify_weights(g, NULL, false, 2, &err), CNR_OK, "none: digests do");
        cnri_graph_free(g);
    }
    cnri_free(file);
}

/* Reading and writing fail cleanly at each allocation. */
static void test_no_memory(void) {
    int32_t failures = 0, wrong = 0;
    int64_t n = 1;
    cnr_graph *g = make(true);
    for (; n < 2000; n++) {
        cnr_error err = CNR_ERROR_INIT;
        cnr_graph *back = NULL;
        cnri_alloc_fail_at(n);
        cnr_status status = cnri_store_write(g, other, &err);
        if (status == CNR_OK) status = cnri_store_read(other, true, &back, &err);
        cnri_graph_free(back);
        cnri_alloc_fail_at(0);
        if (status == CNR_OK) break;
        failures++;
        if (status != CNR_E_MEMORY && wrong++ == 0) note("%d: %s", status, err.text);
    }
    cnri_graph_free(g);
    ok(n < 2000 && failures > 20, "allocations were made to fail (%d)", failures);
    is_int(wrong, 0, "each was reported as lack of memory");
}

/* Reading must not touch the weights: a large file is ready at once. */
static void test_large(void) {
    cnr_error err = CNR_ERROR_INIT;
    const int64_t n = 61 << 20; /* 244 MB */
    float *data = calloc((size_t)n, sizeof *data);
    cnr_graph *g = cnri_graph_new("large"), *back = NULL;
    cnr_tensor t = TOY_TYPE(CNR_f32, n / 1024, 1024);
    t.data = data;
    const cnr_value w = data ? cnri_graph_borrow(g, "w", &t) : -1;
    const cnr_value x = toy_input(g, "x", TOY_TYPE(CNR_f32, 1, 1024));
    const cnr_attr none = {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1};
    cnri_graph_output(g, TOY_NODE(g, "toy_linear", "fc", (const cnr_attr *[]){&none}, 1, x, w),
                      "y");
    if (cnri_store_write(g, other, &err) != CNR_OK) skip("a large file", err.text);
    else {
        uint64_t best = UINT64_MAX;
        for (int i = 0; i < 3; i++) {
            const uint64_t begun = cnri_now_ns();
            if (cnri_store_read(other, true, &back, &err) != CNR_OK) break;
            const uint64_t took = cnri_now_ns() - begun;
            if (took < best) best = took;
            cnri_graph_free(back);
        }
        ok(best < 10000000, "244 MB are mapped and ready within 10 ms");
        note("%.3f ms", (double)best / 1e6);
    }
    cnri_graph_free(g);
    free(data);
}

int main(void) {
    cnri_log_to(quiet, NULL, CNR_LOG_ERROR);
    snprintf(folder, sizeof folder, "/tmp/cnr-store-XXXXXX");
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/net.cnr", folder);
    snprintf(other, sizeof other, "%s/other.cnr", folder);
    toy_begin();
    half.attr_spec_size = sizeof(cnr_attr_spec);
    half.encode_size = half_size;
    half.encode = half_encode;
    half.decode = half_decode;
    toy_register(CNR_KIND_ENCODING, &half);
    test_roundtrip();
    test_fill();
    test_needs();
    test_damage();
    test_seals();
    test_no_memory();
    test_large();
    unlink(path);
    unlink(other);
    rmdir(folder);
    return done();
}
