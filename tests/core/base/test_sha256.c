/* SHA-256 by the processor's own instructions and in plain C give the same, over all lengths near
 * a block and however the data comes in; fingerprints of much data. */
#include "base/base.h"
#include "base/sha256.h"
#include "tests/tap.h"

static uint8_t data[4096];

/* The SHA-256 of n bytes in plain C, into out, to compare with. */
static void by_plain(const uint8_t *at, size_t n, uint8_t out[32]) {
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t padded[sizeof data + 128] = {0};
    const size_t blocks = (n + 9 + 63) / 64;
    memcpy(padded, at, n);
    padded[n] = 0x80;
    for (size_t i = 0; i < 8; i++)
        padded[blocks * 64 - 1 - i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
    cnri_sha256_plain(h, padded, blocks);
    for (size_t i = 0; i < 32; i++) out[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
}

/* Fingerprints of 2.5 MiB and of a few bytes, on any number of threads; each byte must count. */
static void test_prints(void) {
    enum { MUCH = 5 << 19 };
    uint8_t *much = malloc(MUCH), pieces[3][16], whole[16];
    int32_t same = 0;
    for (size_t i = 0; i < MUCH; i++) much[i] = data[i * 7 % sizeof data];
    cnri_digest list[3] = {{much, MUCH, {0}, false},
                           {data, 100, {0}, false},
                           {data, 0, {0}, false}};
    for (int i = 0; i < 3; i++)
        cnri_fingerprint(much + (i << 20), i < 2 ? 1 << 20 : 1 << 19, pieces[i]);
    cnri_fingerprint(pieces, sizeof pieces, whole);
    for (int32_t threads = 0; threads < 5; threads++) {
        memset(list[0].sum, 0, sizeof list[0].sum);
        ok(cnri_fingerprints(list, 3, threads) && memcmp(list[0].sum, whole, sizeof whole) == 0,
           "the fingerprint of each MiB's, %d threads", (int)threads);
    }
    for (size_t at = 0; at < MUCH; at += at < 200 || at > MUCH - 200 ? 1 : 77777) {
        much[at] ^= 1;
        cnri_fingerprints(list, 1, 1);
        same += memcmp(list[0].sum, whole, sizeof whole) == 0;
        much[at] ^= 1;
    }
    is_int(same, 0, "a bit anywhere changes it");
    for (size_t n = 0; n < 100; n++) {
        cnri_digest a = {data, n, {0}, false}, b = {data, n + 1, {0}, false};
        same += !cnri_fingerprints(&a, 1, 1) || !cnri_fingerprints(&b, 1, 1) ||
                memcmp(a.sum, b.sum, 16) == 0;
    }
    is_int(same, 0, "so does a byte more");
    free(much);
}

int main(void) {
    uint8_t plain[32], own[32];
    char hex[65];
    int32_t other = 0;
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
    by_plain((const uint8_t *)"abc", 3, plain);
    cnri_hex(plain, 32, hex);
    is_text(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "plain C: the standard's own example");
    for (size_t n = 0; n < 300; n++) {
        by_plain(data + n % 7, n, plain);
        cnri_sha256_of(data + n % 7, n, own);
        other += memcmp(plain, own, 32) != 0;
    }
    is_int(other, 0, "300 lengths: the fastest agrees with plain C");
    by_plain(data, sizeof data, plain);
    for (size_t step = 1; step < 200; step += 13) {
        cnri_sha256 s;
        cnri_sha256_begin(&s);
        for (size_t at = 0; at < sizeof data; at += step)
            cnri_sha256_add(&s, data + at, at + step > sizeof data ? sizeof data - at : step);
        cnri_sha256_end(&s, own);
        other += memcmp(plain, own, 32) != 0;
    }
    is_int(other, 0, "in pieces of 1 to 196 bytes, too");
    if (cnri_sha256_mix() == cnri_sha256_plain)
        skip("this processor's own instructions", "it has none for SHA-256");
    else ok(1, "that was with this processor's own instructions");
    test_prints();
    return done();
}
