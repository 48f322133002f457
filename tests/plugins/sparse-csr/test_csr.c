/* sparse-csr: what is kept, to and fro, stored bytes that lie, and its kernel against dense. */
#include "plugins/int8/int8call.h"

static const cnr_encoding *e;

static cnr_tensor *encoded(const cnr_tensor *dense, double keep, cnr_error *err) {
    const cnr_attr attr = {.name = "keep", .type = CNR_ATTR_FLOAT, .set = 1, .f = keep};
    const cnr_attr *attrs[] = {&attr};
    uint64_t bytes;
    if (e->encode_size(dense, attrs, &bytes, err) != CNR_OK) return NULL;
    cnr_tensor *t = t_copy(dense);
    t->data = kernel_memory(bytes);
    t->bytes = bytes;
    t->encoding = cnri_intern("sparse-csr");
    return e->encode(dense, attrs, t->data, bytes, err) == CNR_OK ? t : NULL;
}

static cnr_tensor *decoded(const cnr_tensor *coded) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *t = t_type(CNR_f32, "");
    t->rank = coded->rank;
    memcpy(t->dim, coded->dim, sizeof t->dim);
    t_alloc(t);
    return e->check(coded, &err) || e->decode(coded, t->data, &err) ? NULL : t;
}

/* Exactly the wanted number survive, unchanged, and none of them is smaller than one that went. */
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

static void round_trip(void) {
    static const char *const shapes[] = {"1", "9", "13x7", "5x4x3x3", "3x70000", "0x4", "4x0"};
    static const double keeps[] = {1, 0.5, 0.1, 0};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        int good = 0;
        for (size_t k = 0; k < 4; k++) good += prunes(t_random(CNR_f32, shapes[s], 11 + s), keeps[k]);
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

/* Every byte of small stored matrices changed, and every length: refused, or else harmless. */
static void hostile(void) {
    static const char *const shapes[] = {"3x5", "1x70000"};
    cnr_error err = CNR_ERROR_INIT;
    for (size_t s = 0; s < 2; s++) {
        cnr_tensor *dense = t_random(CNR_f32, shapes[s], 4);
        cnr_tensor *good = encoded(dense, s ? 0.0001 : 0.6, &err);
        int refused = 0, passed = 0;
        for (uint64_t byte = 0; byte < good->bytes; byte++)
            for (int way = 0; way < 4; way++) {
                static const uint8_t ways[] = {0x01, 0x80, 0xff, 0x40};
                cnr_tensor bad = *good;
                bad.data = kernel_memory(good->bytes);
                memcpy(bad.data, good->data, good->bytes);
                ((uint8_t *)bad.data)[byte] ^= ways[way];
                float *out = kernel_memory(cnr_dense_bytes(dense));
                if (e->check(&bad, &err)) refused++;
                else passed += e->decode(&bad, out, &err) == CNR_OK;
            }
        ok(refused > 0 && passed > 0, "%s: %d damaged ones refused, %d harmless", shapes[s],
           refused, passed);
        int wrong = 0;
        for (uint64_t n = 0; n < good->bytes + 5; n++) {
            cnr_tensor cut = *good;
            cut.data = kernel_memory(n);
            memcpy(cut.data, good->data, n < good->bytes ? n : good->bytes);
            cut.bytes = n;
            wrong += (e->check(&cut, &err) == CNR_OK) != (n == good->bytes);
        }
        is_int(wrong, 0, "only the right length passes");
        cnr_tensor other = *good;
        other.dim[0]++;
        ok(e->check(&other, &err) != CNR_OK, "it stands for a tensor of its own shape only");
    }
}

/* The kernel of an encoded weight against the reference of the decoded one. */
static int dense_agrees(int64_t batch, int64_t k, int64_t m, double keep, int with_bias,
                        const char *chain) {
    char xs[64], ws[64], bs[64];
    cnr_error err = CNR_ERROR_INIT;
    static cnri_case c;
    cnr_device devices[3];
    snprintf(xs, sizeof xs, "%lldx%lld", (long long)batch, (long long)k);
    snprintf(ws, sizeof ws, "%lldx%lld", (long long)m, (long long)k);
    snprintf(bs, sizeof bs, "%lld", (long long)m);
    cnr_tensor *x = t_random(CNR_f32, xs, 1), *b = t_random(CNR_f32, bs, 3);
    cnr_tensor *coded = encoded(t_random(CNR_f32, ws, 2), keep, &err), *w = decoded(coded);
    const cnr_tensor *in[3] = {x, w, b};
    w->flags = CNR_TENSOR_CONST;
    int good = neon_state.n_kernels == 1 && kernel_case(&c, "dense", "", chain, 2 + with_bias, in);
    c.encoded[1] = *coded; /* what the kernel reads in its place */
    c.encoded[1].flags = CNR_TENSOR_CONST;
    c.encoded[1].data = cnri_alloc((size_t)coded->bytes + 1);
    memcpy(c.encoded[1].data, coded->data, (size_t)coded->bytes);
    neon_devices(devices, 2);
    for (int32_t d = 0; d < 2 && good; d++)
        good = kernel_run(neon_state.kernels[0], &devices[d], &c) > 0;
    neon_devices_close(devices, 2);
    cnri_case_free(&c);
    return good;
}

static void kernel(void) {
    int good = 0;
    for (int i = 0; i < 60; i++)
        good += dense_agrees(int8_draw(1, 19), int8_draw(1, 200), int8_draw(1, 90),
                             (double)int8_draw(0, 10) / 10, (int)int8_draw(0, 1),
                             int8_draw(0, 1) ? "relu" : "");
    is_int(good, 60, "60 drawn layers, whole and in ranges");
    ok(dense_agrees(3, 70000, 5, 0.01, 1, "relu; leaky_relu alpha=0.1"), "columns past 65536");
    ok(dense_agrees(9, 40, 33, 0, 1, ""), "nothing kept: the bias alone");
}

/* What the neighbours offer is preset: a kernel that reads no channel blocks says so. */
static void declines_blocks(void) {
    cnr_error err = CNR_ERROR_INIT;
    int32_t in_block[4] = {4, 0, 0, 0}, out_block[1] = {4}, none[4] = {0};
    cnr_accept a = {.size = sizeof a, .in_block = in_block, .out_block = out_block,
                    .in_class = none, .out_class = none};
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
    round_trip();
    hostile();
    kernel();
    declines_blocks();
    return op_done();
}
