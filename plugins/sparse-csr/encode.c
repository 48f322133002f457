/* Encoding sparse-csr: selects entries, writes indices and values in the requested type, and
 * compresses if requested. */
#include "sparse.h"

#include <math.h>
#include <cnnrun/half.h>

enum { KEEP, BLOCK, VALUES, BITS, CODE };

static const char *const types[] = {"f32", "f16", "int8", "shared", NULL};
static const char *const codes[] = {"none", "zstd", NULL};
static const cnr_attr_spec attrs[] = {
    {.name = "keep",
     .type = CNR_ATTR_FLOAT,
     .flags = CNR_ATTR_BOUNDED,
     .min = 0,
     .max = 1,
     .default_f = 1,
     .help = "share of the entries to keep, those of largest magnitude; 1: all that are not 0"},
    {.name = "block",
     .type = CNR_ATTR_INT,
     .flags = CNR_ATTR_BOUNDED,
     .min = 0,
     .max = CSR_BLOCK,
     .help = "rows a block, kept or dropped as one: 1 or 4; 0: as the zeros stand"},
    {.name = "values",
     .type = CNR_ATTR_ENUM,
     .choices = types,
     .default_s = "f32",
     .help =
         "how a value is stored; shared: as a number in a table, all that differ or the nearest"},
    {.name = "bits",
     .type = CNR_ATTR_INT,
     .flags = CNR_ATTR_BOUNDED,
     .min = 1,
     .max = 8,
     .default_i = 5,
     .help = "of such a number"},
    {.name = "code",
     .type = CNR_ATTR_ENUM,
     .choices = codes,
     .default_s = "none",
     .help = "what compresses all of it further"},
};

/* Options of the encoding. */
typedef struct options {
    double keep;
    int64_t block;
    uint8_t value, bits;
    int coded;
} options;

/* Options from the attributes, in their order; missing ones are the defaults. */
static options options_of(const cnr_attr *const *a) {
    static const uint8_t values[] = {CNR_f32, CNR_f16, CNR_i8, CSR_SHARED};
    options o = {.keep = 1, .value = CNR_f32};
    if (!a) return o;
    if (a[KEEP]) o.keep = a[KEEP]->f;
    if (a[BLOCK]) o.block = a[BLOCK]->i;
    if (a[VALUES]) o.value = values[a[VALUES]->i & 3];
    if (o.value == CSR_SHARED) o.bits = (uint8_t)(a[BITS] ? a[BITS]->i : 5);
    o.coded = a[CODE] && a[CODE]->i != 0;
    return o;
}

/* Fails where the weight or the options cannot be encoded. */
static cnr_status refuse(const cnr_tensor *dense, const options *o, cnr_error *err) {
    const int64_t n = cnr_count(dense);
    const float *v = (const float *)dense->data;
    if (dense->dtype != CNR_f32 || dense->rank < 1 || n < 0)
        return csr_host->fail(err, CNR_E_UNSUPPORTED, "sparse-csr",
                              "an f32 tensor of rank 1 or more is wanted, this is %s of rank %d",
                              cnr_dtype_name(dense->dtype), (int)dense->rank);
    const int64_t rows = dense->dim[0];
    if (rows >= UINT32_MAX || (rows && n / rows >= UINT32_MAX) || n >= UINT32_MAX / CSR_BLOCK)
        return csr_host->fail(err, CNR_E_LIMIT, "sparse-csr", "the matrix is too large");
    if (o->block != 0 && o->block != 1 && o->block != CSR_BLOCK)
        return csr_host->fail(err, CNR_E_ARG, "sparse-csr", "block: want 0, 1 or 4, got %d",
                              (int)o->block);
    const float most = o->value == CNR_f16 ? 65504.0f : 3.4028235e38f;
    for (int64_t i = 0; i < n && o->value != CNR_f32; i++)
        if (!(fabsf(v[i]) <= most))
            return csr_host->fail(err, CNR_E_UNSUPPORTED, "sparse-csr",
                                  "weight %lld is %g, which such values cannot hold", (long long)i,
                                  (double)v[i]);
    return CNR_OK;
}

/* ---- the stored form ---- */

/* For 1 to 8 bits: the number of gaps and skips that the selected entries need, in n[bits]. Returns
 * the longest gap. */
static uint64_t count_gaps(const csr_kept *k, uint64_t n[9]) {
    uint64_t longest = 0;
    for (uint32_t bits = 1; bits <= 8; bits++) n[bits] = k->entries;
    for (uint64_t b = 0; b < k->blocks; b++) {
        const uint8_t *at = k->at + b * k->columns;
        uint64_t gap = 0;
        for (uint64_t c = 0; c < k->columns; c++, gap++) {
            if (!at[c]) continue;
            if (gap > longest) longest = gap;
            for (uint32_t bits = 1; bits <= 8 && gap >= csr_skip(bits); bits++)
                n[bits] += gap / csr_skip(bits);
            gap = UINT64_MAX;
        }
    }
    return longest;
}

/* Chooses the smallest index. Gaps of whole bytes are read faster and compress better, so narrower
 * ones must save enough. */
static void choose_index(const csr_kept *k, const options *o, csr_header *h) {
    uint64_t n[9];
    if (k->entries == k->blocks * k->columns) {
        h->index_bits = 0, h->indices = 0;
        return;
    }
    h->longest = (uint32_t)count_gaps(k, n);
    csr_header best = *h;
    for (uint8_t bits = 8; bits >= 1 && !(o->coded && bits < 8); bits--) {
        csr_header own = *h;
        own.index_bits = bits, own.indices = (uint32_t)n[bits];
        const uint64_t worth = bits < 8 ? csr_parts_of(&best).all / 64 : 0;
        if (csr_parts_of(&own).all + worth < csr_parts_of(&best).all) best = own;
    }
    *h = best;
}

/* The head of the image. */
static csr_header header_of(const csr_kept *k, const options *o) {
    csr_header h = {.magic = CSR_MAGIC,
                    .value = o->value,
                    .bits = o->bits,
                    .block = (uint8_t)k->block,
                    .rows = k->rows,
                    .columns = k->columns,
                    .entries = k->entries,
                    .indices = (uint32_t)k->entries,
                    .index_bits = k->columns <= 65536 ? 16 : 32};
    choose_index(k, o, &h);
    return h;
}

/* Writes a gap into an index that is zero before. */
static void put_gap(const csr_matrix *m, uint64_t i, uint32_t gap) {
    const uint64_t bit = i * m->head.index_bits;
    uint8_t *at = (uint8_t *)(uintptr_t)m->index + bit / 8;
    at[0] |= (uint8_t)(gap << bit % 8);
    if (bit % 8 + m->head.index_bits > 8) at[1] |= (uint8_t)(gap >> (8 - bit % 8));
}

/* Writes where rows begin, and columns or gaps. */
static void put_index(const csr_matrix *m, const csr_kept *k) {
    const csr_header *h = &m->head;
    const uint32_t bits = h->index_bits, skip = csr_skip(bits & 15);
    uint32_t entry = 0, *row_begin = (uint32_t *)(uintptr_t)m->row_begin;
    uint64_t n = 0;
    for (uint64_t b = 0; b < k->blocks; b++) {
        const uint8_t *at = k->at + b * k->columns;
        uint64_t gap = 0;
        row_begin[b] = entry;
        for (uint64_t c = 0; c < k->columns; c++, gap++) {
            if (!at[c]) continue;
            if (bits == 16) ((uint16_t *)(uintptr_t)m->index)[entry] = (uint16_t)c;
            else if (bits == 32) ((uint32_t *)(uintptr_t)m->index)[entry] = (uint32_t)c;
            else if (bits > 0) {
                for (; gap >= skip; gap -= skip) put_gap(m, n++, skip);
                put_gap(m, n++, (uint32_t)gap);
            }
            gap = UINT64_MAX;
            entry++;
        }
    }
    row_begin[k->blocks] = entry;
}

/* Copies the selected values in stored order; 0 where the last block has no row. */
static void gather(const cnr_tensor *dense, const csr_kept *k, float *out) {
    const float *v = (const float *)dense->data;
    for (uint64_t b = 0; b < k->blocks; b++)
        for (uint64_t c = 0; c < k->columns; c++) {
            if (!k->at[b * k->columns + c]) continue;
            for (uint64_t r = b * (uint64_t)k->block, i = 0; i < (uint64_t)k->block; i++, r++)
                *out++ = r < k->rows ? v[r * k->columns + c] : 0.0f;
        }
}

/* Writes values as bytes, with a scale for each row. */
static void put_bytes(const csr_matrix *m, const float *value) {
    float *scale = (float *)(uintptr_t)m->table;
    int8_t *out = (int8_t *)(uintptr_t)m->value;
    const uint64_t block = m->head.block;
    for (uint64_t b = 0; b < m->blocks; b++)
        for (uint64_t r = 0; r < block && b * block + r < m->head.rows; r++) {
            float most = 0;
            for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1]; i++)
                most = fmaxf(most, fabsf(value[i * block + r]));
            const float step = most / 127;
            scale[b * block + r] = step;
            for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1]; i++)
                out[i * block + r] =
                    step > 0 ? (int8_t)fmaxf(-127, fminf(127, rintf(value[i * block + r] / step)))
                             : 0;
        }
}

/* Writes the values in the wanted type, at m->value; fails with CNR_E_MEMORY. */
static cnr_status put_values(const cnr_tensor *dense, const csr_kept *k, const csr_matrix *m,
                             cnr_error *err) {
    const uint64_t n = m->head.entries * m->head.block;
    if (m->head.value == CNR_f32) {
        gather(dense, k, (float *)(uintptr_t)m->value);
        return CNR_OK;
    }
    float *value = (float *)csr_host->alloc((n ? n : 1) * sizeof *value);
    if (!value) return csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "out of memory");
    cnr_status status = CNR_OK;
    gather(dense, k, value);
    if (m->head.value == CNR_f16)
        for (uint64_t i = 0; i < n; i++)
            ((uint16_t *)(uintptr_t)m->value)[i] = cnr_f32_to_f16(value[i]);
    else if (m->head.value == CNR_i8) put_bytes(m, value);
    else
        status = csr_share(value, n, m->head.bits, (float *)(uintptr_t)m->table,
                           (uint8_t *)(uintptr_t)m->value, err);
    csr_host->free(value);
    return status;
}

/* Builds the whole image in *out, for the caller to free, and its *bytes; fails for a bad option or
 * no memory. */
static cnr_status build(const cnr_tensor *dense, const cnr_attr *const *a, void **out,
                        uint64_t *bytes, cnr_error *err) {
    const options o = options_of(a);
    csr_kept kept;
    *out = NULL;
    CNR_TRY(refuse(dense, &o, err));
    CNR_TRY(csr_keep(dense, o.keep, o.block, &kept, err));
    const csr_header h = header_of(&kept, &o);
    *bytes = csr_parts_of(&h).all;
    void *image = csr_host->alloc(*bytes);
    cnr_status status = CNR_OK;
    if (!image) status = csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "out of memory");
    else {
        memset(image, 0, *bytes);
        memcpy(image, &h, sizeof h);
        const csr_matrix m = csr_view(image);
        put_index(&m, &kept);
        status = put_values(dense, &kept, &m, err);
    }
    csr_host->free(kept.at);
    if (!status && o.coded) {
        uint64_t coded = 0;
        status = csr_code(image, *bytes, out, &coded, err);
        csr_host->free(image);
        *bytes = coded;
        return status;
    }
    if (status) csr_host->free(image);
    else *out = image;
    return status;
}

/* ---- the encoding ---- */

/* Method encode_size: *bytes of the image, which it builds for that. */
static cnr_status encode_size(const cnr_tensor *dense, const cnr_attr *const *a, uint64_t *bytes,
                              cnr_error *err) {
    void *image;
    CNR_TRY(build(dense, a, &image, bytes, err));
    csr_host->free(image);
    return CNR_OK;
}

/* Method encode: writes the image, which must have `bytes`, to out. */
static cnr_status encode(const cnr_tensor *dense, const cnr_attr *const *a, void *out,
                         uint64_t bytes, cnr_error *err) {
    void *image;
    uint64_t made = 0;
    cnr_status status = build(dense, a, &image, &made, err);
    if (status) return status;
    if (made == bytes) memcpy(out, image, bytes);
    else status = csr_host->fail(err, CNR_E_ARG, "sparse-csr", "the room does not fit the data");
    csr_host->free(image);
    return status;
}

/* Method check: fails where the image is damaged. */
static cnr_status check(const cnr_tensor *t, cnr_error *err) {
    csr_matrix m;
    void *own;
    CNR_TRY(csr_open(t, CSR_USE_JUDGED, &m, &own, err));
    csr_host->free(own);
    return CNR_OK;
}

/* Method decode: writes the dense weight to `dense`; fails where the image is damaged. */
static cnr_status decode(const cnr_tensor *t, void *dense, cnr_error *err) {
    csr_matrix m;
    void *own;
    CNR_TRY(csr_open(t, CSR_USE_ALL, &m, &own, err));
    csr_decode(&m, (float *)dense);
    csr_host->free(own);
    return CNR_OK;
}

/* Method numbers: values that the image holds. */
static uint64_t numbers(const cnr_tensor *t) {
    const csr_header h = csr_header_of(t->data);
    return h.entries * h.block;
}

const cnr_encoding csr_encoding = {
    .size = sizeof(cnr_encoding),
    .version = 2,
    .name = "sparse-csr",
    .summary = "compressed sparse rows: row pointers, columns, values; in blocks, shared, coded",
    .n_attrs = CNR_ROWS(attrs),
    .attr_spec_size = sizeof(cnr_attr_spec),
    .attrs = attrs,
    .encode_size = encode_size,
    .encode = encode,
    .check = check,
    .decode = decode,
    .stored_count = numbers,
};
