/* sparse-csr: what is kept, to and fro, stored bytes that lie, and its kernels against dense. */
#include "plugins/int8/int8call.h"

static const cnr_encoding *e;
static int packs; /* was built with zstd: else what should be coded is plain */

enum { F32, F16, INT8, SHARED }; /* values, as the schema has them */

/* The encoding's options, in the order of its schema. */
typedef struct form {
    double keep;
    int64_t block, values, bits, code;
} form;

/* The weight, encoded in a form; NULL: it is refused. */
static cnr_tensor *encoded_as(const cnr_tensor *dense, form f, cnr_error *err) {
    const cnr_attr a[] = {{.name = "keep", .type = CNR_ATTR_FLOAT, .set = 1, .f = f.keep},
                          {.name = "block", .type = CNR_ATTR_INT, .set = 1, .i = f.block},
                          {.name = "values", .type = CNR_ATTR_ENUM, .set = 1, .i = f.values},
                          {.name = "bits", .type = CNR_ATTR_INT, .set = 1, .i = f.bits},
                          {.name = "code", .type = CNR_ATTR_ENUM, .set = 1, .i = f.code && packs}};
    const cnr_attr *attrs[] = {&a[0], &a[1], &a[2], &a[3], &a[4]};
    uint64_t bytes;
    if (e->encode_size(dense, attrs, &bytes, err) != CNR_OK) return NULL;
    cnr_tensor *t = t_copy(dense);
    t->data = kernel_memory(bytes);
    t->bytes = bytes;
    t->encoding = cnri_intern("sparse-csr");
    return e->encode(dense, attrs, t->data, bytes, err) == CNR_OK ? t : NULL;
}

/* The weight, of which a part is kept. */
static cnr_tensor *encoded(const cnr_tensor *dense, double keep, cnr_error *err) {
    return encoded_as(dense, (form){.keep = keep, .bits = 5}, err);
}

/* The decoded weight, as an f32 tensor; NULL: it can't be. */
static cnr_tensor *decoded(const cnr_tensor *coded) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *t = t_type(CNR_f32, "");
    t->rank = coded->rank;
    memcpy(t->dim, coded->dim, sizeof t->dim);
    t_alloc(t);
    return e->check(coded, &err) || e->decode(coded, t->data, &err) ? NULL : t;
}

/* 1 if exactly the wanted share of numbers survives, unchanged, and none of them is smaller than
 * one that went. */
static int prunes(const cnr_tensor *dense, double keep) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *coded = encoded(dense, keep, &err), *back = coded ? decoded(coded) : NULL;
    double least = INFINITY, most = 0;
    int64_t kept = 0, nonzero = 0;
    if (!back) return 0;
    for (int64_t i = 0; i < cnr_count(dense); i++) {
        const double was = t_get(dense, i), is = t_get(back, i);
        nonzero += was != 0;
        if (is != 0 && is != was) return 0;
        if (is != 0) {
            kept++;
            least = fmin(least, fabs(was));
        } else {
            most = fmax(most, fabs(was));
        }
    }
    const int64_t wanted = (int64_t)((double)cnr_count(dense) * keep + 0.5);
    return kept == (wanted < nonzero ? wanted : nonzero) && most <= least;
}

/* Tests: encoded and decoded weights. */
static void round_trip(void) {
    static const char *const shapes[] = {"1", "9", "13x7", "5x4x3x3", "3x70000", "0x4", "4x0"};
    static const double keeps[] = {1, 0.5, 0.1, 0};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int good = 0;
        for (size_t k = 0; k < 4; k++)
            good += prunes(t_random(CNR_f32, shapes[s], 11 + s), keeps[k]);
        ok(good == 4, "%s: keeps the largest 100%%, 50%%, 10%% and none", shapes[s]);
    }
    double ties[24];
    for (int i = 0; i < 24; i++) ties[i] = i % 3 == 0 ? 0 : i % 2 ? -0.5 : 0.5;
    ok(prunes(t_of(CNR_f32, "4x6", ties), 0.25) && prunes(t_of(CNR_f32, "4x6", ties), 0.9),
       "ties and zeros are counted right");
    cnr_error err = CNR_ERROR_INIT;
    ok(!encoded(t_random(CNR_i8, "4x4", 1), 1, &err), "whole numbers are refused");
    ok(!encoded(t_random(CNR_f32, "scalar", 1), 1, &err), "a single number is refused");
}

/* Prepares for one sample and for some, which reads all that a kernel reads of the stored bytes. */
static int prepares(const cnr_tensor *coded, int64_t samples) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *w = int8_const(t_type(CNR_f32, "1x1")), *x = t_type(CNR_f32, "1x1");
    memcpy(w->dim, coded->dim, sizeof w->dim);
    x->dim[0] = samples;
    x->dim[1] = w->dim[1];
    t_alloc(x);
    w->data = coded->data;
    w->bytes = coded->bytes;
    w->encoding = coded->encoding;
    const cnr_tensor *in[] = {x, w};
    cnr_node *node = op_node(op_find("dense"), NULL, 0, in, 2, 1);
    cnr_device device = {.size = sizeof device,
                         .cls = neon_state.cls,
                         .name = "cpu",
                         .concurrency = 1};
    cnr_space space = {.size = sizeof space};
    const cnr_kernel *k = neon_state.kernels[0];
    int good = node && k->prepare_size(&device, node, &space, &err) == CNR_OK;
    if (good) good = k->prepare(&device, node, kernel_memory(space.bytes), &err) == CNR_OK;
    if (node) op_node_free(node);
    return good;
}

/* Every byte changed, and every length: refused, or else harmless. */
static void damage(const cnr_tensor *good, const char *what) {
    static const uint8_t ways[] = {0x01, 0x80, 0xff, 0x40};
    cnr_error err = CNR_ERROR_INIT;
    int refused = 0, passed = 0, tripped = 0, wrong = 0;
    for (uint64_t byte = 0; byte < good->bytes; byte++)
        for (int way = 0; way < 4; way++) {
            cnr_tensor bad = *good;
            bad.data = kernel_memory(good->bytes);
            memcpy(bad.data, good->data, good->bytes);
            ((uint8_t *)bad.data)[byte] ^= ways[way];
            float *out = kernel_memory(cnr_dense_bytes(good));
            if (e->check(&bad, &err)) refused++;
            else if (e->decode(&bad, out, &err) != CNR_OK || !prepares(&bad, 1) ||
                     !prepares(&bad, 5))
                tripped++;
            else passed++;
        }
    ok(refused > 0 && !tripped, "%s: %d damaged ones refused, %d harmless, %d tripped over", what,
       refused, passed, tripped);
    for (uint64_t n = 0; n < good->bytes + 5; n++) {
        cnr_tensor cut = *good;
        cut.data = kernel_memory(n);
        memcpy(cut.data, good->data, n < good->bytes ? n : good->bytes);
        cut.bytes = n;
        wrong += (e->check(&cut, &err) == CNR_OK) != (n == good->bytes);
    }
    ok(wrong == 0, "%s: only the right length passes", what);
    cnr_tensor other = *good;
    other.dim[0]++;
    ok(e->check(&other, &err) != CNR_OK, "%s: it stands for a tensor of its own shape only", what);
}

/* Bytes that would unpack to far more than there are of them are not packed, and refused. */
static void coded_bound(const cnr_tensor *dense) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *t = encoded_as(dense, (form){1, 1, SHARED, 1, 1}, &err);
    ok(t && t->bytes > (uint64_t)cnr_count(dense) / 64 && decoded(t),
       "what shrinks more than 64 times stays as it is: %d bytes", t ? (int)t->bytes : -1);
}

/* How far what is stored so is from what it stands for: most of a magnitude, or exact. */
static void values_of_all_kinds(void) {
    static const struct {
        form form;
        double bound;
        const char *what;
    } rows[] = {{{1, 1, F32, 5, 0}, 0, "f32"},
                {{1, 4, F32, 5, 0}, 0, "f32 in blocks"},
                {{1, 1, F16, 5, 0}, 1e-3, "f16"},
                {{1, 4, F16, 5, 1}, 1e-3, "f16 in blocks, coded"},
                {{1, 1, INT8, 5, 0}, 0.01, "int8"},
                {{1, 4, INT8, 5, 1}, 0.01, "int8 in blocks, coded"},
                {{1, 1, SHARED, 8, 0}, 0.03, "shared, 8 bits"},
                {{1, 1, SHARED, 8, 1}, 0.03, "the same coded"},
                {{1, 4, SHARED, 5, 1}, 0.2, "shared in blocks, 5 bits, coded"},
                {{1, 1, F32, 5, 1}, 0, "f32 coded"}};
    cnr_error err = CNR_ERROR_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cnr_tensor *dense = t_random(CNR_f32, "18x300", 7), *coded, *back;
        double worst = 0, most = 0;
        for (int64_t k = 0; k < cnr_count(dense); k++) {
            if ((k / 300 / 4 * 31 + k % 300) % 6) t_set(dense, k, 0); /* zeros in blocks */
            most = fmax(most, fabs(t_get(dense, k)));
        }
        coded = encoded_as(dense, rows[i].form, &err);
        back = coded ? decoded(coded) : NULL;
        for (int64_t k = 0; back && k < cnr_count(dense); k++)
            worst = fmax(worst, fabs(t_get(back, k) - t_get(dense, k)) / most);
        ok(back && worst <= rows[i].bound, "%s: within %g, %g, in %d bytes", rows[i].what,
           rows[i].bound, worst, coded ? (int)coded->bytes : -1);
    }
    cnr_tensor *few = t_random(CNR_f32, "40x50", 3);
    for (int64_t k = 0; k < 2000; k++) t_set(few, k, k % 3 ? 0 : 0.1 * (double)(k % 17) - 0.7);
    cnr_tensor *shared = encoded_as(few, (form){1, 0, SHARED, 5, 1}, &err), *back = decoded(shared);
    int same = back != NULL;
    for (int64_t k = 0; same && k < 2000; k++) same = t_get(back, k) == t_get(few, k);
    ok(same, "as many values as a table holds are kept exactly");
    cnr_tensor *large = t_of(CNR_f32, "1x2", (double[]){1, 70000});
    ok(!encoded_as(large, (form){1, 0, F16, 5, 0}, &err), "what f16 cannot hold is refused");
    ok(!encoded_as(large, (form){1, 3, F32, 5, 0}, &err), "blocks of 3 are refused");
    cnr_tensor *zeros = t_random(CNR_f32, "64x5000", 1);
    for (int64_t k = 0; k < cnr_count(zeros); k++) t_set(zeros, k, 1);
    if (packs) coded_bound(zeros);
}

/* A file as it was written before. */
static void earlier_form(const uint32_t *words, size_t bytes, const char *what) {
    static const double want[15] = {0, 1, 0, 0, -2, 0, 0, 0, 0, 0, 0.5, 0, 0, 3, 0};
    cnr_tensor *t = t_type(CNR_f32, "3x5");
    t->data = kernel_memory(bytes);
    memcpy(t->data, words, bytes);
    t->bytes = bytes;
    t->encoding = cnri_intern("sparse-csr");
    cnr_tensor *back = decoded(t);
    int same = back != NULL;
    for (int64_t i = 0; same && i < 15; i++) same = t_get(back, i) == want[i];
    ok(same, "files of the %s are read", what);
    damage(t, what);
}

/* Tests: forms of earlier releases. */
static void earlier_forms(void) {
    static const uint32_t first[] = {0x31525343,
                                     2,
                                     3,
                                     0,
                                     5,
                                     0,
                                     4,
                                     0,
                                     0,
                                     2,
                                     2,
                                     4,
                                     1u | 4u << 16,
                                     0u | 3u << 16,
                                     0x3f800000,
                                     0xc0000000,
                                     0x3f000000,
                                     0x40400000}; /* no blocks, gaps, types */
    static const uint32_t second[] = {0x32525343, 1u | CNR_f32 << 8 | 1u << 16,
                                      3,          0,
                                      5,          0,
                                      4,          0,
                                      4,          0,
                                      0,          2,
                                      2,          4,
                                      0x02000201, 0x3f800000,
                                      0xc0000000, 0x3f000000,
                                      0x40400000}; /* gaps of whole bytes */
    earlier_form(first, sizeof first, "first version");
    earlier_form(second, sizeof second, "second version");
}

/* Tests: damaged images. */
static void hostile(void) {
    static const struct {
        const char *shape;
        form form;
        const char *what;
    } rows[] = {{"3x5", {0.6, 1, F32, 5, 0}, "f32"},
                {"1x70000", {0.0001, 1, F32, 5, 0}, "wide"},
                {"9x700", {0.003, 4, F16, 5, 0}, "f16, blocks"},
                {"6x30", {0.3, 1, INT8, 5, 0}, "int8"},
                {"8x40", {0.3, 4, SHARED, 3, 0}, "shared"},
                {"12x90", {0.3, 1, SHARED, 2, 1}, "coded"},
                {"5x300", {0.02, 1, F32, 5, 1}, "f32 coded"},
                {"16x70", {0.2, 1, F16, 5, 0}, "small gaps"},
                {"3x9", {1, 0, F16, 5, 0}, "all columns"}};
    cnr_error err = CNR_ERROR_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cnr_tensor *good = encoded_as(t_random(CNR_f32, rows[i].shape, 4), rows[i].form, &err);
        damage(good, rows[i].what);
    }
}

/* 1 if the kernel of the weight encoded in form f gives what the reference of the decoded one does;
 * with a bias or without. */
static int agrees(const char *op, const char *attrs, cnr_tensor *x, cnr_tensor *dense, form f,
                  int with_bias, const char *chain) {
    cnr_error err = CNR_ERROR_INIT;
    static cnri_case c;
    cnr_device devices[3];
    char bs[64];
    snprintf(bs, sizeof bs, "%lld", (long long)dense->dim[0]);
    cnr_tensor *b = t_random(CNR_f32, bs, 3);
    cnr_tensor *coded = encoded_as(dense, f, &err), *w = coded ? decoded(coded) : NULL;
    const cnr_tensor *in[3] = {x, w, b};
    if (!w) return 0;
    w->flags = CNR_TENSOR_CONST;
    int good = kernel_case(&c, NULL, op, attrs, chain, 2 + with_bias, in), taken = 0;
    c.encoded[1] = *coded; /* what the kernel reads in its place */
    c.encoded[1].flags = CNR_TENSOR_CONST;
    c.encoded[1].data = cnri_alloc((size_t)coded->bytes + 1);
    memcpy(c.encoded[1].data, coded->data, (size_t)coded->bytes);
    neon_devices(devices, 2);
    for (int32_t k = 0; k < neon_state.n_kernels; k++)
        for (int32_t d = 0; d < 2 && good && strcmp(neon_state.kernels[k]->op, op) == 0;
             d++, taken++)
            good = kernel_run(neon_state.kernels[k], &devices[d], &c) > 0;
    neon_devices_close(devices, 2);
    cnri_case_free(&c);
    return good && taken == 2;
}

/* A form at random. */
static form drawn_form(void) {
    return (form){(double)int8_draw(0, 10) / 10, (int64_t[]){0, 1, 4}[int8_draw(0, 2)],
                  int8_draw(F32, SHARED), int8_draw(1, 8), int8_draw(0, 1)};
}

/* Draws a convolution; 1: its kernels agree. */
static int conv_agrees(void) {
    char xs[64], ws[64], attrs[160];
    const int64_t group = int8_draw(0, 3) ? 1 : 2, k = int8_draw(0, 2) ? int8_draw(1, 5) : 1;
    const int64_t in = int8_draw(1, 9) * group, out = int8_draw(1, 9) * group * 4;
    const int64_t high = int8_draw(k * 2, 21), wide = int8_draw(k * 2, 40);
    snprintf(xs, sizeof xs, "%lldx%lldx%lldx%lld", (long long)int8_draw(1, 2), (long long)in,
             (long long)high, (long long)wide);
    snprintf(ws, sizeof ws, "%lldx%lldx%lldx%lld", (long long)out, (long long)(in / group),
             (long long)k, (long long)k);
    snprintf(attrs, sizeof attrs,
             "group=%lld; strides=%lld,%lld; pads=%lld,%lld,%lld,%lld; dilations=%lld",
             (long long)group, (long long)int8_draw(1, 3), (long long)int8_draw(1, 3),
             (long long)int8_draw(0, 2), (long long)int8_draw(0, 3), (long long)int8_draw(0, 2),
             (long long)int8_draw(0, 1), (long long)(k > 1 ? int8_draw(1, 2) : 1));
    static const char *const chains[] = {"", "relu", "leaky_relu alpha=0.1", "relu; add"};
    return agrees("conv", attrs, t_random(CNR_f32, xs, 1), t_random(CNR_f32, ws, 2), drawn_form(),
                  (int)int8_draw(0, 1), chains[int8_draw(0, 3)]);
}

/* 1: the kernels of a dense layer of these sizes agree, with a bias or without. */
static int dense_agrees(int64_t batch, int64_t k, int64_t m, form f, int with_bias,
                        const char *chain) {
    char xs[64], ws[64];
    snprintf(xs, sizeof xs, "%lldx%lld", (long long)batch, (long long)k);
    snprintf(ws, sizeof ws, "%lldx%lld", (long long)m, (long long)k);
    return agrees("dense", "", t_random(CNR_f32, xs, 1), t_random(CNR_f32, ws, 2), f, with_bias,
                  chain);
}

/* Tests: all on one instruction set. */
static void one_isa(const char *isa) {
    int dense = 0, conv = 0;
    if (!int8_use(isa)) return;
    for (int i = 0; i < 60; i++) {
        dense += dense_agrees(int8_draw(0, 1) ? 1 : int8_draw(1, 40), int8_draw(1, 400),
                              int8_draw(1, 300), drawn_form(), (int)int8_draw(0, 1),
                              int8_draw(0, 1) ? "relu" : "");
        conv += conv_agrees();
    }
    ok(dense == 60, "%s: %d of 60 drawn layers of all forms, whole and in ranges", isa, dense);
    ok(conv == 60, "%s: %d of 60 drawn convolutions of all forms", isa, conv);
    const form tenth = {0.1, 1, F32, 5, 0}, none = {0, 1, F32, 5, 0};
    ok(dense_agrees(3, 70000, 5, (form){0.01, 1, F32, 5, 0}, 1, "relu; leaky_relu alpha=0.1"),
       "%s: columns past 65536, gaps above 255", isa);
    ok(dense_agrees(1, 90000, 3, (form){0.0001, 4, F16, 5, 0}, 1, ""), "%s: gaps of two bytes",
       isa);
    ok(dense_agrees(9, 40, 33, none, 1, ""), "%s: nothing kept: the bias alone", isa);
    ok(dense_agrees(150, 64, 70, tenth, 1, "leaky_relu alpha=0.1"), "%s: many samples", isa);
}

/* What the neighbours offer is preset: a kernel that reads no channel blocks says so. */
static void declines_blocks(void) {
    cnr_error err = CNR_ERROR_INIT;
    int32_t in_block[4] = {4, 0, 0, 0}, out_block[1] = {4}, none[4] = {0};
    cnr_accept a = {.size = sizeof a,
                    .in_block = in_block,
                    .out_block = out_block,
                    .in_class = none,
                    .out_class = none};
    const cnr_tensor *in[] = {t_random(CNR_f32, "1x8x3x3", 3),
                              int8_const(encoded(t_random(CNR_f32, "5x72", 4), 0.2, &err))};
    cnr_node *node = op_node(op_find("dense"), NULL, 0, in, 2, 1);
    cnr_device device = {.size = sizeof device, .cls = neon_state.cls, .name = "cpu"};
    ok(node && neon_state.kernels[0]->accepts(&device, node, &a) == CNR_OK && a.score > 0,
       "the kernel takes a sample of several axes");
    ok(in_block[0] <= 1 && out_block[0] <= 1, "but not in channel blocks");
    if (node) op_node_free(node);
}

int main(void) {
    int8_open("sparse-csr");
    int8_use("generic");
    e = int8_encodings[0];
    cnr_error err = CNR_ERROR_INIT;
    packs = 1;
    packs = encoded_as(t_random(CNR_f32, "2x2", 1), (form){1, 1, F32, 5, 1}, &err) != NULL;
    if (!packs) printf("# %s: nothing is coded\n", err.text);
    round_trip();
    values_of_all_kinds();
    earlier_forms();
    hostile();
    one_isa("generic");
#ifdef __x86_64__
    one_isa("avx2");
    one_isa("avx512");
#endif
    int8_use("generic"); /* the last of them may be none of this processor's */
    declines_blocks();
    return op_done();
}
