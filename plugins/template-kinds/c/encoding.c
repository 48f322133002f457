/* An encoding: weights as f16 behind a header. Files are hostile: `check` refuses all that `decode`
 * could trip over. */
#include <cnnrun/kit.h>

/* Head of an encoded weight: magic and number of elements. */
typedef struct header {
    uint64_t magic, n;
} header;
static const uint64_t magic = 0x66697674;
static const cnr_host *host;
static const char name[] = "acme.halves";

/* Method encode_size: *bytes of the image; fails unless the weight is f32. */
static cnr_status encode_size(const cnr_tensor *t, const cnr_attr *const *attrs, uint64_t *bytes,
                              cnr_error *err) {
    (void)attrs;
    if (t->dtype != CNR_f32)
        return host->fail(err, CNR_E_UNSUPPORTED, name, "f32 weights are wanted");
    *bytes = sizeof(header) + 2 * (uint64_t)cnr_count(t);
    return CNR_OK;
}

/* Method encode: writes head and halves to `out`. */
static cnr_status encode(const cnr_tensor *t, const cnr_attr *const *attrs, void *out,
                         uint64_t bytes, cnr_error *err) {
    const header h = {magic, (uint64_t)cnr_count(t)};
    (void)attrs, (void)bytes, (void)err;
    memcpy(out, &h, sizeof h);
    host->elements_write(CNR_f16, (char *)out + sizeof h, 0, (int64_t)h.n, CNR_f32, t->data);
    return CNR_OK;
}

/* The tensor has the type and dims of the dense one, and data and bytes of the encoded one. */
static cnr_status check(const cnr_tensor *t, cnr_error *err) {
    header h;
    if (t->dtype != CNR_f32 || t->bytes < sizeof h)
        return host->fail(err, CNR_E_FORMAT, name, "it is cut");
    memcpy(&h, t->data, sizeof h);
    if (h.magic != magic)
        return host->fail(err, CNR_E_FORMAT, name, "it does not begin with the magic number");
    if (h.n != (uint64_t)cnr_count(t) || t->bytes != sizeof h + 2 * h.n)
        return host->fail(err, CNR_E_FORMAT, name, "its size is not that of its shape");
    return CNR_OK;
}

/* Method decode: writes the weight as f32 to `dense`. */
static cnr_status decode(const cnr_tensor *t, void *dense, cnr_error *err) {
    const void *halves = (const char *)t->data + sizeof(header);
    (void)err;
    host->elements_read(CNR_f16, halves, 0, 1, cnr_count(t), CNR_f32, dense);
    return CNR_OK;
}

static const cnr_encoding halves = {
    .size = sizeof(cnr_encoding),
    .version = 1,
    .name = name,
    .summary = "f32 weights as f16",
    .attr_spec_size = sizeof(cnr_attr_spec),
    .encode_size = encode_size,
    .encode = encode,
    .check = check,
    .decode = decode,
    .flags = CNR_ENCODING_STORED, /* decoded before a kernel reads it */
};

/* Registers the encoding. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    return h->add(registrar, CNR_KIND_ENCODING, &halves);
}

CNR_PLUGIN("c-encoding", "1.0", "an example encoding", "MIT", init, CNR_TOUCHES_NOTHING)
