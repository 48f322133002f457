/* SHA-256 (FIPS 180-4), for digests of files and cache keys; sha256_mix.c takes blocks in. */
#include "base/sha256.h"
#include <string.h>

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
        if (have == 0 && bytes >= 64) { /* whole blocks are hashed without a copy */
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

/* Writes the bytes as 2 * bytes digits and a NUL to out. */
void cnri_hex(const uint8_t *data, size_t bytes, char *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes; i++) {
        out[2 * i] = digits[data[i] >> 4];
        out[2 * i + 1] = digits[data[i] & 15];
    }
    out[2 * bytes] = 0;
}
