/* Encodings of f32 as halves behind a count, each with one planted fault. */
#include "faulty.h"
#include <cnnrun/half.h>

/* Head of an encoded weight. */
typedef struct header {
    uint64_t magic, n;
} header;
enum { MAGIC = 0x51 };

/* Method encode_size: *bytes of the image; fails unless the weight is f32. */
static cnr_status encode_size(const cnr_tensor *t, const cnr_attr *const *attrs, uint64_t *bytes,
                              cnr_error *err) {
    (void)attrs;
    if (t->dtype != CNR_f32) return faulty_host->fail(err, CNR_E_UNSUPPORTED, "halves", "want f32");
    *bytes = sizeof(header) + 2 * (uint64_t)cnr_count(t);
    return CNR_OK;
}

/* Method encode, without a fault: a header, then the numbers as f16; returns CNR_OK. */
static cnr_status encode(const cnr_tensor *t, const cnr_attr *const *attrs, void *out,
                         uint64_t bytes, cnr_error *err) {
    const header h = {MAGIC, (uint64_t)cnr_count(t)};
    uint16_t *to = (uint16_t *)(void *)((char *)out + sizeof h);
    (void)attrs, (void)bytes, (void)err;
    memcpy(out, &h, sizeof h);
    for (uint64_t i = 0; i < h.n; i++) to[i] = cnr_f32_to_f16(((const float *)t->data)[i]);
    return CNR_OK;
}

/* Fault: writes past the end. */
static cnr_status encode_over(const cnr_tensor *t, const cnr_attr *const *attrs, void *out,
                              uint64_t bytes, cnr_error *err) {
    ((char *)out)[bytes] = 0;
    return encode(t, attrs, out, bytes, err);
}

/* Fault: leaves a byte unwritten. */
static cnr_status encode_hole(const cnr_tensor *t, const cnr_attr *const *attrs, void *out,
                              uint64_t bytes, cnr_error *err) {
    uint64_t was;
    memcpy(&was, out, sizeof was); /* the magic number is never written */
    const cnr_status status = encode(t, attrs, out, bytes, err);
    memcpy(out, &was, sizeof was);
    return status;
}

/* Method check, without a fault: CNR_E_FORMAT unless magic, count and bytes fit the header. */
static cnr_status check(const cnr_tensor *t, cnr_error *err) {
    const header *h = t->data;
    if (t->bytes < sizeof *h || h->magic != MAGIC || h->n != (uint64_t)cnr_count(t) ||
        t->bytes != sizeof *h + 2 * h->n)
        return faulty_host->fail(err, CNR_E_FORMAT, "halves", "damaged");
    return CNR_OK;
}
/* Fault: checks nothing. */
static cnr_status check_nothing(const cnr_tensor *t, cnr_error *err) {
    (void)t, (void)err;
    return CNR_OK;
}

/* Method decode, without a fault: the numbers as f32; returns CNR_OK. */
static cnr_status decode(const cnr_tensor *t, void *dense, cnr_error *err) {
    const header *h = t->data;
    const uint16_t *from = (const uint16_t *)(const void *)(h + 1);
    (void)err;
    for (uint64_t i = 0; i < h->n; i++) ((float *)dense)[i] = cnr_f16_to_f32(from[i]);
    return CNR_OK;
}

/* Fault: decodes half of the numbers. */
static cnr_status decode_half(const cnr_tensor *t, void *dense, cnr_error *err) {
    const cnr_status status = decode(t, dense, err);
    for (int64_t i = 0; i < cnr_count(t); i += 2) ((float *)dense)[i] = 0;
    return status;
}

/* Fault: forgets the last number where the rest of a block of four is odd. */
static cnr_status decode_short(const cnr_tensor *t, void *dense, cnr_error *err) {
    const cnr_status status = decode(t, dense, err);
    if (cnr_count(t) % 4 == 3) ((float *)dense)[cnr_count(t) - 1] = 0;
    return status;
}

/* An encoding with these hooks. */
#define ENCODING(word, enc, chk, dec) \
    { \
        .size = sizeof(cnr_encoding), .version = 1, .name = word, .summary = "for tests", \
        .attr_spec_size = sizeof(cnr_attr_spec), .encode_size = encode_size, .encode = enc, \
        .check = chk, .decode = dec, .flags = CNR_ENCODING_STORED \
    }
static const cnr_encoding encodings[] = {
    ENCODING("halves", encode, check, decode),
    ENCODING("halves_lossy", encode, check, decode_half),
    ENCODING("halves_over", encode_over, check, decode),
    ENCODING("halves_hole", encode_hole, check_nothing, decode),
    ENCODING("halves_trusting", encode, check_nothing, decode),
    ENCODING("halves_short", encode, check, decode_short),
};

cnr_status faulty_add_encodings(struct cnr_registrar *r) {
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(encodings); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_ENCODING, &encodings[i]));
    return CNR_OK;
}
