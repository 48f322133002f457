/* Scaling against checksums of Pillow's results for many sizes. */
#include "pictures/pictures.h"
#include "run/run.h"
#include "tap.h"

static const struct {
    int h, w, c, out_h, out_w;
    uint32_t sum;
} cases[] = {
#include "resize_expected.inc"
};

/* Adler's checksum of n bytes. */
static uint32_t adler32(const uint8_t *data, size_t n) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/* A picture of h x w x c made-up bytes, for cnri_free. */
static uint8_t *picture(int h, int w, int c) {
    const size_t n = (size_t)(h * w * c);
    uint32_t x = (uint32_t)(h * 65536 + w * 16 + c);
    uint8_t *out = cnri_alloc(n);
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        out[i] = (uint8_t)(x >> 24);
    }
    return out;
}

int main(void) {
    int bad = 0;
    for (size_t i = 0; i < CNRI_COUNT(cases); i++) {
        const size_t n = (size_t)(cases[i].out_h * cases[i].out_w * cases[i].c);
        uint8_t *in = picture(cases[i].h, cases[i].w, cases[i].c), *out = cnri_alloc(n);
        const cnr_status status = cnri_resize_u8(in, cases[i].h, cases[i].w, cases[i].c, out,
                                                 cases[i].out_h, cases[i].out_w);
        if (status || adler32(out, n) != cases[i].sum) {
            bad++;
            note("%d x %d x %d -> %d x %d differs", cases[i].h, cases[i].w, cases[i].c,
                 cases[i].out_h, cases[i].out_w);
        }
        cnri_free(in);
        cnri_free(out);
    }
    ok(bad == 0, "%zu sizes give Pillow's bytes", CNRI_COUNT(cases));
    uint8_t pixel = 7, out[4] = {0};
    is_int(cnri_resize_u8(&pixel, 1, 1, 1, out, 2, 2), CNR_OK, "one pixel grows");
    ok(out[0] == 7 && out[3] == 7, "and keeps its value");
    is_int(cnri_resize_u8(&pixel, 0, 1, 1, out, 2, 2), CNR_E_ARG, "no rows: refused");
    is_int(cnri_resize_u8(&pixel, 1, 1, 1, out, INT64_MAX, INT64_MAX), CNR_E_LIMIT,
           "absurd sizes: refused");
    for (int n = 1; n < 8; n++) {
        uint8_t *in = picture(9, 9, 3), small[48];
        cnri_alloc_fail_at(n);
        const cnr_status status = cnri_resize_u8(in, 9, 9, 3, small, 4, 4);
        cnri_alloc_fail_at(0);
        if (status != CNR_OK && status != CNR_E_MEMORY) ok(0, "allocation %d fails", n);
        cnri_free(in);
    }
    ok(1, "failing allocations end in an error");
    return done();
}
