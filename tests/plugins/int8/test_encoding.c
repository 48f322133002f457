/* int8, the encoding: what the scheme says, to and fro, and stored bytes that lie. */
#include "plugins/int8/int8call.h"

static const cnr_encoding *e;

/* The attribute `bits`. */
static cnr_attr bits_attr(int64_t bits) {
    return (cnr_attr){.name = "bits", .type = CNR_ATTR_INT, .set = 1, .i = bits};
}

/* The tensor that stands for `dense`; NULL when it is refused. */
static cnr_tensor *encoded(const cnr_tensor *dense, int64_t bits, cnr_error *err) {
    const cnr_attr attr = bits_attr(bits);
    const cnr_attr *attrs[] = {&attr};
    uint64_t bytes;
    if (e->encode_size(dense, attrs, &bytes, err) != CNR_OK) return NULL;
    cnr_tensor *t = t_copy(dense);
    t->data = kernel_memory(bytes);
    t->bytes = bytes;
    return e->encode(dense, attrs, t->data, bytes, err) == CNR_OK ? t : NULL;
}

/* 1 if the coded numbers follow the formula of the scheme, number by number; else notes the
 * first. */
static int follows(const cnr_tensor *dense, const cnr_tensor *coded, int64_t bits) {
    const double top = (double)((1 << (bits - 1)) - 1);
    double most = 0;
    int32_t position;
    float scale;
    memcpy(&position, (char *)coded->data + 8, 4);
    memcpy(&scale, (char *)coded->data + 12, 4);
    for (int64_t i = 0; i < cnr_count(dense); i++) most = fmax(most, fabs(t_get(dense, i)));
    const double want = most / (top * pow(2, ceil(log2(most / top))));
    if (position != (int)ceil(log2(most / top)) || fabs(scale - want) > 1e-6 || scale <= 0.5f ||
        scale > 1) {
        note("position %d, scale %g, wanted %g and %g", position, scale, ceil(log2(most / top)),
             want);
        return 0;
    }
    float *back = kernel_memory(cnr_dense_bytes(dense));
    cnr_error err = CNR_ERROR_INIT;
    if (e->check(coded, &err) || e->decode(coded, back, &err)) return 0;
    const double unit = ldexp(scale, position);
    for (int64_t i = 0; i < cnr_count(dense); i++) {
        const double q = back[i] / unit;
        if (fabs(back[i] - t_get(dense, i)) > unit * 0.5001 || fabs(q - rint(q)) > 1e-4 ||
            fabs(q) > top + 1e-4) {
            note("number %lld: %g came back as %g", (long long)i, t_get(dense, i), back[i]);
            return 0;
        }
    }
    return 1;
}

/* Tests: encoded numbers. */
static void scheme(void) {
    static const char *const shapes[] = {"1", "2x3", "7x5x3x3", "33x17", "1x1x1", "64x3x11x11"};
    cnr_error err = CNR_ERROR_INIT;
    for (int64_t bits = 2; bits <= 8; bits++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            cnr_tensor *t = t_random(CNR_f32, shapes[s], 5 + s);
            for (int64_t i = 0; i < cnr_count(t); i++)
                ((float *)t->data)[i] *= (float)pow(10, (double)s - 3);
            cnr_tensor *c = encoded(t, bits, &err);
            ok(c && follows(t, c, bits), "%s in %d bits", shapes[s], (int)bits);
        }
    cnr_tensor *power = t_of(CNR_f32, "3", (double[]){127, -63.5, 0});
    cnr_tensor *c = encoded(power, 8, &err);
    ok(c && follows(power, c, 8), "a step that is a power of two");
    cnr_tensor *zeros = t_of(CNR_f32, "4", (double[]){0, 0, 0, 0});
    c = encoded(zeros, 8, &err);
    float back[4] = {1, 1, 1, 1};
    ok(c && !e->check(c, &err) && !e->decode(c, back, &err) && !back[0] && !back[3], "all zeros");
    cnr_tensor *none = t_type(CNR_f32, "0x3");
    t_alloc(none);
    c = encoded(none, 4, &err);
    ok(c && !e->check(c, &err) && c->bytes == 24, "no numbers at all");
}

/* Tests: damaged encodings. */
static void hostile(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *t = t_random(CNR_f32, "9x5", 3), *odd = t_copy(t),
               *ints = t_random(CNR_i32, "4", 1);
    ((float *)odd->data)[7] = NAN;
    ok(!encoded(odd, 8, &err) && strstr(err.text, "weight 7"), "NaN is refused, and told where");
    ok(!encoded(ints, 8, &err), "whole numbers are refused");
    ok(!encoded(t, 1, &err) && !encoded(t, 9, &err), "1 and 9 bits are refused");
    cnr_tensor *good = encoded(t, 8, &err);
    for (uint64_t n = 0; n <= good->bytes + 1; n++) { /* cut off at each byte, and one too long */
        cnr_tensor cut = *good;
        cut.data = kernel_memory(n);
        memcpy(cut.data, good->data, n < good->bytes ? n : good->bytes);
        cut.bytes = n;
        const int passes = e->check(&cut, &err) == CNR_OK;
        if (passes != (n == good->bytes))
            ok(0, "%llu bytes of %llu", (unsigned long long)n, (unsigned long long)good->bytes);
    }
    int caught = 0, tried = 0;
    for (uint64_t byte = 0; byte < 24; byte++)
        for (int bit = 0; bit < 8; bit++) {
            cnr_tensor bad = *good;
            bad.data = kernel_memory(good->bytes);
            memcpy(bad.data, good->data, good->bytes);
            ((uint8_t *)bad.data)[byte] ^= (uint8_t)(1 << bit);
            float *out = kernel_memory(cnr_dense_bytes(t));
            tried++;
            if (e->check(&bad, &err)) caught++;
            else e->decode(&bad, out, &err); /* then it is harmless: a sanitiser would see */
        }
    ok(caught > 100 && caught < tried, "flipped bits of the header: %d of %d refused", caught,
       tried);
    ok(e->check(good, &err) == CNR_OK, "the untouched one passes");
}

/* dense with a weight as it is stored, on 1 and 2 threads, against the reference of the decoded
 * one. `large`: one input far from the others; `special`: an infinity or a NaN among them. */
static int agrees(int64_t samples, int64_t depth, int64_t rows, int64_t bits, double large,
                  double special) {
    static cnri_case c;
    cnr_error err = CNR_ERROR_INIT;
    cnr_device devices[3];
    const int64_t x_dim[2] = {samples, depth}, w_dim[2] = {rows, depth};
    cnr_tensor *x = int8_bytes(CNR_f32, 2, x_dim), *w = int8_bytes(CNR_f32, 2, w_dim);
    for (int64_t i = 0; i < cnr_count(x); i++)
        ((float *)x->data)[i] = (float)int8_draw(-999, 999) / 300;
    for (int64_t i = 0; i < cnr_count(w); i++)
        ((float *)w->data)[i] = (float)int8_draw(-999, 999) / (bits == 3 ? .1f : 4e4f);
    if (large != 0) ((float *)x->data)[int8_draw(0, depth - 1)] = (float)large;
    if (special != 0) ((float *)x->data)[int8_draw(0, depth - 1)] = (float)special;
    cnr_tensor *coded = encoded(w, bits, &err);
    if (!coded || e->decode(coded, w->data, &err)) return 0;
    const cnr_tensor *in[] = {x, int8_const(w)};
    int good = kernel_case(&c, NULL, "dense", "", "", 2, in), ran = 0;
    c.encoded[1] = *coded;
    c.encoded[1].encoding = cnri_intern("int8");
    c.encoded[1].flags = CNR_TENSOR_CONST;
    c.encoded[1].data = cnri_alloc((size_t)coded->bytes + 1);
    memcpy(c.encoded[1].data, coded->data, (size_t)coded->bytes);
    neon_devices(devices, 2);
    for (int32_t i = 0; i < neon_state.n_kernels && good; i++)
        for (int32_t d = 0; d < 2 && strcmp(neon_state.kernels[i]->op, "dense") == 0; d++) {
            const int one = kernel_run(neon_state.kernels[i], &devices[d], &c);
            good = good && one != 0;
            ran += one > 0;
        }
    neon_devices_close(devices, 2);
    cnri_case_free(&c);
    return good && ran == 2;
}

/* Tests: products of encoded weights. */
static void products(const char *isa) {
    static const double odd[] = {0, INFINITY, -INFINITY, NAN};
    int right = 0;
    enum { DRAWN = 120 };
    for (int k = 0; k < DRAWN; k++)
        right += agrees(int8_draw(k % 7 == 6 ? 2 : 1, 4),
                        k % 3 ? int8_draw(256, 3000) : int8_draw(1, 300), int8_draw(1, 40),
                        int8_draw(2, 8), k % 5 == 4 ? 1e6 : 0, k % 7 == 6 ? odd[k % 4] : 0);
    ok(right == DRAWN, "%s: %d of %d products with weights as they are stored", isa, right, DRAWN);
}

int main(void) {
    static const char *const isas[] = {"generic", "avx2", "avx512"};
    int8_open("int8");
    int8_use("generic");
    e = int8_encodings[0];
    scheme();
    hostile();
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (int8_use(isas[i])) products(isas[i]);
    return op_done();
}
