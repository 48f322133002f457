/* SHA-256 (FIPS 180-4), for digests of files and cache keys; sha256_fast.c has the processors' own. */
#include "core/base/sha256.h"
#include <string.h>

const uint32_t cnri_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static uint32_t big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* One round; the eight names move along from call to call, so that no value has to. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                        \
    do {                                                                                        \
        const uint32_t t = (h) + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +               \
                           (((e) & (f)) ^ (~(e) & (g))) + cnri_sha256_k[i] + w[i];              \
        (d) += t;                                                                               \
        (h) = t + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +                              \
              (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)));                                        \
    } while (0)

static void mix(uint32_t s[8], const uint8_t *block) {
    uint32_t w[64], a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (int i = 0; i < 16; i++) w[i] = big_endian(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        const uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (rotate(x, 7) ^ rotate(x, 18) ^ x >> 3) + w[i - 7] +
               (rotate(y, 17) ^ rotate(y, 19) ^ y >> 10);
    }
    for (int i = 0; i < 64; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    s[0] += a, s[1] += b, s[2] += c, s[3] += d, s[4] += e, s[5] += f, s[6] += g, s[7] += h;
}

void cnri_sha256_plain(uint32_t h[8], const uint8_t *blocks, uint64_t n) {
    for (; n > 0; n--, blocks += 64) mix(h, blocks);
}

void cnri_sha256_begin(cnri_sha256 *s) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof start);
    s->n = 0;
}

void cnri_sha256_add(cnri_sha256 *s, const void *data, uint64_t bytes) {
    const uint8_t *p = data;
    while (bytes > 0) {
        const size_t have = (size_t)(s->n % 64);
        if (have == 0 && bytes >= 64) { /* whole blocks need no copy */
            const uint64_t whole = bytes / 64 * 64;
            cnri_sha256_mix()(s->h, p, whole / 64);
            p += whole, bytes -= whole, s->n += whole;
            continue;
        }
        const size_t take = bytes < 64 - have ? (size_t)bytes : 64 - have;
        memcpy(s->block + have, p, take);
        p += take, bytes -= take, s->n += take;
        if (have + take == 64) cnri_sha256_mix()(s->h, s->block, 1);
    }
}

void cnri_sha256_end(cnri_sha256 *s, uint8_t digest[32]) {
    const uint64_t bits = s->n * 8;
    size_t have = (size_t)(s->n % 64);
    s->block[have++] = 0x80;
    if (have > 56) {
        memset(s->block + have, 0, 64 - have);
        cnri_sha256_mix()(s->h, s->block, 1);
        have = 0;
    }
    memset(s->block + have, 0, 56 - have);
    for (int i = 0; i < 8; i++) s->block[56 + i] = (uint8_t)(bits >> (56 - 8 * i));
    cnri_sha256_mix()(s->h, s->block, 1);
    for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void cnri_sha256_of(const void *data, uint64_t bytes, uint8_t digest[32]) {
    cnri_sha256 s;
    cnri_sha256_begin(&s);
    cnri_sha256_add(&s, data, bytes);
    cnri_sha256_end(&s, digest);
}

void cnri_hex(const uint8_t *data, size_t bytes, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * bytes] = 0;
}
