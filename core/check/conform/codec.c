/* Codecs: judges that data comes back, that nothing is written beyond the bound, and that decode is
 * safe for any bytes. */
#include "conform/judging.h"
#include <cnnrun/codec.h>

enum { ALIGNMENT = 1, MUTANTS = 400 };

static const size_t lengths[] = {1, 7, 64, 4095, 4096, 100001};
static const char key[] = "a key of the judgement", other_key[] = "a key of the judgemenT";

/* Data before and after it was encoded. */
typedef struct coded {
    cnri_edge data, encoded;
    uint64_t n; /* bytes that encode wrote */
} coded;

static void release(coded *c) {
    cnri_edge_free(&c->data);
    cnri_edge_free(&c->encoded);
}

/* Encodes `length` bytes that repeat (`round` 0), or random ones. */
static bool encode(cnri_judging *j, size_t length, int32_t round, coded *c) {
    const cnr_codec *codec = j->descriptor;
    cnr_error err = CNR_ERROR_INIT;
    const uint64_t most = codec->bound(length);
    *c = (coded){.n = most};
    if (most < 1 || most > (uint64_t)length * 8 + 65536)
        return cnri_judging_fail(j, "bound says %llu bytes for %zu", (unsigned long long)most,
                                 length);
    if (!cnri_edge_make(&c->data, length, ALIGNMENT) ||
        !cnri_edge_make(&c->encoded, (size_t)most, ALIGNMENT))
        return cnri_judging_fail(j, "out of memory");
    for (size_t i = 0; i < length; i++)
        c->data.at[i] = round ? (uint8_t)cnri_dice_next(&j->dice) : (uint8_t)(i % 7);
    const cnr_status status =
        codec->encode(key, sizeof key, c->data.at, length, c->encoded.at, &c->n, &err);
    if (!cnri_judging_ok(j, "encode", status, &err)) return false;
    if (c->n > most || !cnri_edge_is_whole(&c->encoded) || !cnri_edge_is_whole(&c->data))
        return cnri_judging_fail(j, "encode wrote more than its bound, or elsewhere");
    return true;
}

/* Decodes n bytes with a key to the length of the data; fills *status. False: it wrote elsewhere,
 * or failed without saying why. */
static bool decode(cnri_judging *j, const coded *c, const void *from, uint64_t n, const char *by,
                   cnr_status *status, bool *same) {
    const cnr_codec *codec = j->descriptor;
    cnr_error err = CNR_ERROR_INIT;
    cnri_edge in = {0}, out = {0};
    bool good =
        cnri_edge_make(&in, (size_t)n, ALIGNMENT) && cnri_edge_make(&out, c->data.bytes, ALIGNMENT);
    if (!good) cnri_judging_fail(j, "out of memory");
    if (good) {
        memcpy(in.at, from, (size_t)n);
        *status = codec->decode(by, sizeof key, in.at, n, out.at, c->data.bytes, &err);
        *same = memcmp(out.at, c->data.at, c->data.bytes) == 0;
        good = cnri_judging_spoke(j, "decode", *status, &err);
        if (good && !cnri_edge_is_whole(&out))
            good = cnri_judging_fail(j, "decode wrote more than the length that it was given");
    }
    cnri_edge_free(&in);
    cnri_edge_free(&out);
    return good;
}

/* What was encoded comes back; with another key a codec that needs one refuses it. */
static bool comes_back(cnri_judging *j, const coded *c) {
    const cnr_codec *codec = j->descriptor;
    cnr_status status;
    bool same = false;
    if (!decode(j, c, c->encoded.at, c->n, key, &status, &same)) return false;
    if (status || !same) return cnri_judging_fail(j, "decode does not give back what was encoded");
    if (!(codec->flags & CNR_CODEC_KEYED)) return true;
    if (!decode(j, c, c->encoded.at, c->n, other_key, &status, &same)) return false;
    return status || cnri_judging_fail(j, "decode takes another key");
}

bool cnri_judge_codec(cnri_judging *j) {
    bool good = true;
    for (size_t i = 0; i < CNRI_COUNT(lengths) && good; i++)
        for (int32_t round = 0; round < 2 && good; round++) {
            coded c;
            cnri_judging_case(j, "%zu bytes, %s", lengths[i], round ? "random" : "repeated");
            good = encode(j, lengths[i], round, &c) && comes_back(j, &c);
            release(&c);
        }
    return good;
}

/* Changes a byte, cuts, or fills at random; returns how many bytes are left. */
static uint64_t damage(uint8_t *at, uint64_t n, cnri_dice *dice) {
    const int64_t way = cnri_dice_below(dice, 4);
    if (way == 0) return (uint64_t)cnri_dice_below(dice, (int64_t)n);
    for (uint64_t i = 0; way == 1 && i < n; i++) at[i] = (uint8_t)cnri_dice_next(dice);
    const int64_t within =
        way == 2 ? cnr_min((int64_t)n, 24) : (int64_t)n; /* headers lie in front */
    at[cnri_dice_below(dice, within)] ^= (uint8_t)(1 + cnri_dice_below(dice, 255));
    return n;
}

bool cnri_judge_codec_hostile(cnri_judging *j) {
    coded c;
    bool good = encode(j, 5000, 0, &c);
    uint8_t *changed = good ? cnri_alloc((size_t)c.n) : NULL;
    if (good && !changed) good = cnri_judging_fail(j, "out of memory");
    for (int32_t k = 0; k < MUTANTS && good; k++) {
        cnr_status status;
        bool same;
        memcpy(changed, c.encoded.at, (size_t)c.n);
        const uint64_t left = damage(changed, c.n, &j->dice);
        cnri_judging_case(j, "damaged in way %d of seed %lld", (int)k, (long long)j->o->check.seed);
        good = decode(j, &c, changed, left, key, &status, &same);
    }
    cnri_free(changed);
    release(&c);
    return good;
}
