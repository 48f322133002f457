/* Fingerprints: a 128-bit hash at the speed of memory, to tell large data apart. It does not
 * protect against collisions made on purpose; sha256.c does. */
#include "base/base.h"

#define PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)
/* Bytes to prefetch; the hardware's own prefetch stops at the end of a page. */
enum { AHEAD = 2048 };

static inline uint64_t turn(uint64_t x, int n) { return x << n | x >> (64 - n); }

/* Mixes a word into a lane. The step is invertible, so two inputs that differ in one word never
 * become equal again. */
static inline uint64_t step(uint64_t lane, uint64_t word) {
    return turn((lane ^ word) * PRIME_1, 29);
}

/* Mixes the bits of a word, so that each input bit changes about half of the output. */
static uint64_t scatter(uint64_t x) {
    x = (x ^ x >> 32) * PRIME_2;
    x = (x ^ x >> 29) * PRIME_1;
    return x ^ x >> 32;
}

/* Reads 8 bytes as a word, at any address. */
static inline uint64_t word_at(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Mixes 32 bytes into the four lanes. */
static inline void round_of(uint64_t lane[4], const uint8_t *at) {
    lane[0] = step(lane[0], word_at(at));
    lane[1] = step(lane[1], word_at(at + 8));
    lane[2] = step(lane[2], word_at(at + 16));
    lane[3] = step(lane[3], word_at(at + 24));
}

void cnri_fingerprint(const void *data, uint64_t bytes, uint8_t out[16]) {
    const uint8_t *at = data;
    uint64_t lane[4] = {1, 2, 3, 4}, word[4];
    uint64_t left = bytes;
    for (; left >= 64; left -= 64, at += 64) {
        __builtin_prefetch(at + AHEAD);
        round_of(lane, at);
        round_of(lane, at + 32);
    }
    for (; left >= 32; left -= 32, at += 32) round_of(lane, at);
    memset(word, 0, sizeof word);
    if (left) memcpy(word, at, (size_t)left);
    for (int i = 0; i < 4; i++) lane[i] = scatter(step(step(lane[i], word[i]), bytes));
    const uint64_t a = step(step(lane[0], lane[1]), step(lane[2], lane[3]));
    const uint64_t b = step(step(lane[3], lane[0]), step(lane[1], lane[2]));
    const uint64_t both[2] = {scatter(a), scatter(b ^ a)};
    for (int i = 0; i < 16; i++) out[i] = (uint8_t)(both[i / 8] >> 8 * (i % 8));
}

bool cnri_same_fingerprint(const void *data, uint64_t bytes, const uint8_t print[16]) {
    uint8_t now[16];
    cnri_fingerprint(data, bytes, now);
    return memcmp(now, print, sizeof now) == 0;
}
