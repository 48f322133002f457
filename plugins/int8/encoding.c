/* Encoding int8: weights as integers of 2 to 8 bits with one scale (packed.h). It makes files
 * small, and products with few samples fast, since their time is mostly that of reading the
 * weights. */
#include "int8.h"
#include "packed.h"

static const cnr_attr_spec attrs[] = {
    {.name = "bits",
     .type = CNR_ATTR_INT,
     .flags = CNR_ATTR_BOUNDED,
     .min = PACKED_LEAST_BITS,
     .max = PACKED_MOST_BITS,
     .default_i = 8,
     .help = "of a number, 2 to 8"},
};

/* Bytes of an encoded tensor of `count` numbers of `bits` each, with its header. */
static uint64_t packed_bytes(uint64_t count, uint32_t bits) {
    return sizeof(packed_header) + count / 8 * bits + (count % 8 * bits + 7) / 8;
}

static int fits(int64_t bits) { return bits >= PACKED_LEAST_BITS && bits <= PACKED_MOST_BITS; }

/* Computes the header: position and scale for the data. Refuses infinity and NaN. */
static cnr_status measure(const cnr_tensor *t, const cnr_attr *const *a, packed_header *head,
                          cnr_error *err) {
    const int64_t n = cnr_count(t), bits = a && a[0] ? a[0]->i : 8;
    const float *v = t->data;
    float most = 0;
    if (t->dtype != CNR_f32 || n < 0)
        return int8_host->fail(err, CNR_E_UNSUPPORTED, "int8",
                               "an f32 tensor is wanted, this is %s", cnr_dtype_name(t->dtype));
    if (!fits(bits))
        return int8_host->fail(err, CNR_E_ARG, "int8", "bits must be 2 to 8, not %lld",
                               (long long)bits);
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            return int8_host->fail(err, CNR_E_UNSUPPORTED, "int8", "weight %lld is not a number",
                                   (long long)i);
        most = fmaxf(most, fabsf(v[i]));
    }
    *head = (packed_header){PACKED_MAGIC, (uint32_t)bits, 0, 1, (uint64_t)n};
    if (most == 0) return CNR_OK;
    int exponent;
    const double step = (double)most / (double)((1 << (bits - 1)) - 1);
    const double part = frexp(step, &exponent); /* in [1/2, 1) */
    head->position = part == 0.5 ? exponent - 1 : exponent;
    head->scale = (float)ldexp(step, -head->position);
    if (head->scale <= 0.5f) head->scale = nextafterf(0.5f, 1); /* rounding reached the bound */
    return CNR_OK;
}

/* Sets *bytes to the size of the tensor encoded with these attributes; fails where `measure`
 * does. */
static cnr_status encode_size(const cnr_tensor *dense, const cnr_attr *const *a, uint64_t *bytes,
                              cnr_error *err) {
    packed_header head;
    CNR_TRY(measure(dense, a, &head, err));
    *bytes = packed_bytes(head.count, head.bits);
    return CNR_OK;
}

/* Encodes: numbers of few bits behind a header. */
static cnr_status encode(const cnr_tensor *dense, const cnr_attr *const *a, void *out,
                         uint64_t bytes, cnr_error *err) {
    packed_header head;
    CNR_TRY(measure(dense, a, &head, err));
    if (bytes != packed_bytes(head.count, head.bits))
        return int8_host->fail(err, CNR_E_ARG, "int8", "the room does not fit the data");
    const float *v = dense->data;
    const double unit = packed_unit(&head), top = (1 << (head.bits - 1)) - 1;
    uint8_t *to = (uint8_t *)out + sizeof head;
    memset(out, 0, (size_t)bytes);
    memcpy(out, &head, sizeof head);
    for (uint64_t i = 0; i < head.count; i++) {
        const double q = fmin(top, fmax(-top, rint((double)v[i] / unit)));
        const uint64_t at = i * head.bits;
        const uint32_t code = ((uint32_t)(int32_t)q & ((1u << head.bits) - 1)) << at % 8;
        to[at / 8] |= (uint8_t)code;
        if (code >> 8) to[at / 8 + 1] |= (uint8_t)(code >> 8);
    }
    return CNR_OK;
}

/* Checks that an encoded tensor from a file has a whole header and just the bytes that it
 * announces; fails else. */
static cnr_status check(const cnr_tensor *t, cnr_error *err) {
    packed_header head;
    const int64_t n = cnr_count(t);
    const char *wrong = NULL;
    memset(&head, 0, sizeof head);
    if (t->data && t->bytes >= sizeof head) memcpy(&head, t->data, sizeof head);
    if (t->dtype != CNR_f32 || n < 0) wrong = "the tensor it stands for is not f32";
    else if (head.magic != PACKED_MAGIC) wrong = "the header is damaged";
    else if (!fits(head.bits)) wrong = "bits is not 2 to 8";
    else if (!(head.scale > 0.5f && head.scale <= 1) || head.position < -160 || head.position > 128)
        wrong = "position or scale is out of range";
    else if (head.count != (uint64_t)n || t->bytes != packed_bytes(head.count, head.bits))
        wrong = "its size does not fit the tensor";
    return wrong ? int8_host->fail(err, CNR_E_FORMAT, "int8", "%s", wrong) : CNR_OK;
}

/* Decodes all numbers to f32 in `dense`, which has room for them. Always CNR_OK. */
static cnr_status decode(const cnr_tensor *t, void *dense, cnr_error *err) {
    const packed_header head = packed_header_of(t);
    const double unit = packed_unit(&head);
    float *out = dense;
    (void)err;
    for (uint64_t i = 0; i < head.count; i++)
        out[i] = (float)(packed_number_at(t, &head, i) * unit);
    return CNR_OK;
}

const cnr_encoding int8_encoding = {
    .size = sizeof(cnr_encoding),
    .version = 1,
    .name = "int8",
    .summary = "weights of 2 to 8 bits with one scale a tensor",
    .n_attrs = 1,
    .attr_spec_size = sizeof(cnr_attr_spec),
    .attrs = attrs,
    .encode_size = encode_size,
    .encode = encode,
    .check = check,
    .decode = decode,
    .flags = CNR_ENCODING_STORED,
};
