/* sparse-csr: compressed sparse rows, after pruning by magnitude to the share asked for. */
#include "csr.h"

#include <stdlib.h>

static const cnr_attr_spec attrs[] = {
    {.name = "keep", .type = CNR_ATTR_FLOAT, .flags = CNR_ATTR_BOUNDED, .min = 0, .max = 1,
     .default_f = 1,
     .help = "share of the entries to keep, those of largest magnitude; 1: all that are not 0"},
};

static int order(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* What is kept: magnitudes above `above`, and the first `ties` equal to it. */
typedef struct cut {
    float above;
    int64_t ties;
} cut;

static float magnitude(float v) {
    return v < 0 ? -v : v;
}

static cnr_status find_cut(const float *v, int64_t n, double keep, cut *out, cnr_error *err) {
    int64_t count = (int64_t)((double)n * keep + 0.5);
    *out = (cut){0, 0};
    if (keep >= 1 || n == 0) return CNR_OK; /* all but zeros */
    float *sorted = (float *)csr_host->alloc((size_t)n * sizeof(float));
    if (!sorted) return csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "out of memory");
    for (int64_t i = 0; i < n; i++) sorted[i] = magnitude(v[i]);
    qsort(sorted, (size_t)n, sizeof(float), order);
    if (count < 1) *out = (cut){sorted[0], 0};
    else {
        out->above = sorted[count - 1];
        for (int64_t i = count - 1; i >= 0 && sorted[i] == out->above; i--) out->ties++;
    }
    if (out->above == 0) out->ties = 0;
    csr_host->free(sorted);
    return CNR_OK;
}

static int kept(cut *c, float v) {
    const float m = magnitude(v);
    if (m > c->above) return 1;
    if (m == c->above && c->ties > 0) return c->ties--, 1;
    return 0;
}

static double keep_of(const cnr_attr *const *a) {
    return a && a[0] ? a[0]->f : 1;
}

static cnr_status measure(const cnr_tensor *dense, const cnr_attr *const *a, cut *c,
                          csr_header *head, cnr_error *err) {
    const int64_t n = cnr_count(dense);
    if (dense->dtype != CNR_f32 || dense->rank < 1 || n < 0)
        return csr_host->fail(err, CNR_E_UNSUPPORTED, "sparse-csr",
                              "an f32 tensor of rank 1 or more is wanted, this is %s of rank %d",
                              cnr_dtype_name(dense->dtype), (int)dense->rank);
    const uint64_t rows = (uint64_t)dense->dim[0], columns = rows ? (uint64_t)n / rows : 0;
    if (rows >= UINT32_MAX || columns >= UINT32_MAX || (uint64_t)n >= UINT32_MAX)
        return csr_host->fail(err, CNR_E_LIMIT, "sparse-csr", "the matrix is too large");
    const cnr_status status = find_cut((const float *)dense->data, n, keep_of(a), c, err);
    if (status) return status;
    *head = (csr_header){CSR_MAGIC, columns <= 65536 ? 2 : 4, rows, columns, 0};
    cut counting = *c;
    for (int64_t i = 0; i < n; i++)
        head->entries += (uint64_t)kept(&counting, ((const float *)dense->data)[i]);
    return CNR_OK;
}

static cnr_status encode_size(const cnr_tensor *dense, const cnr_attr *const *a, uint64_t *bytes,
                              cnr_error *err) {
    cut c;
    csr_header head;
    const cnr_status status = measure(dense, a, &c, &head, err);
    if (!status) *bytes = csr_bytes(head.rows, head.entries, head.index_bytes);
    return status;
}

static cnr_status encode(const cnr_tensor *dense, const cnr_attr *const *a, void *out,
                         uint64_t bytes, cnr_error *err) {
    cut c;
    csr_header head;
    const cnr_status status = measure(dense, a, &c, &head, err);
    if (status) return status;
    if (bytes != csr_bytes(head.rows, head.entries, head.index_bytes))
        return csr_host->fail(err, CNR_E_ARG, "sparse-csr", "the room does not fit the data");
    memset(out, 0, bytes);
    memcpy(out, &head, sizeof head);
    const csr_matrix m = csr_view(out);
    const float *v = (const float *)dense->data;
    uint32_t entry = 0;
    for (uint64_t r = 0; r < head.rows; r++) {
        ((uint32_t *)m.row_begin)[r] = entry;
        for (uint64_t k = 0; k < head.columns; k++, v++) {
            if (!kept(&c, *v)) continue;
            if (head.index_bytes == 2) ((uint16_t *)m.column)[entry] = (uint16_t)k;
            else ((uint32_t *)m.column)[entry] = (uint32_t)k;
            ((float *)m.value)[entry++] = *v;
        }
    }
    ((uint32_t *)m.row_begin)[head.rows] = entry;
    return CNR_OK;
}

static cnr_status check(const cnr_tensor *t, cnr_error *err) {
    const csr_header *head = (const csr_header *)t->data;
    const int64_t n = cnr_count(t);
    const char *wrong = NULL;
    if (t->dtype != CNR_f32 || t->rank < 1 || n < 0) wrong = "the tensor it stands for is not f32";
    else if (t->bytes < sizeof *head || head->magic != CSR_MAGIC) wrong = "the header is damaged";
    else if (head->index_bytes != 2 && head->index_bytes != 4) wrong = "index_bytes is not 2 or 4";
    else if (head->rows != (uint64_t)t->dim[0] || head->rows >= UINT32_MAX ||
             head->columns != (head->rows ? (uint64_t)n / head->rows : 0) ||
             head->columns > (head->index_bytes == 2 ? 65536u : UINT32_MAX - 1))
        wrong = "rows and columns are not those of the tensor";
    else if (head->entries > (uint64_t)n || head->entries >= UINT32_MAX) wrong = "too many entries";
    else if (t->bytes != csr_bytes(head->rows, head->entries, head->index_bytes))
        wrong = "its size does not fit its entries";
    if (!wrong) {
        const csr_matrix m = csr_view(head);
        if (m.row_begin[0] != 0 || m.row_begin[head->rows] != head->entries)
            wrong = "the row pointers do not cover the entries";
        for (uint64_t r = 0; r < head->rows && !wrong; r++) {
            if (m.row_begin[r] > m.row_begin[r + 1] || m.row_begin[r + 1] > head->entries)
                wrong = "the row pointers do not rise";
            for (uint64_t i = m.row_begin[r]; !wrong && i < m.row_begin[r + 1]; i++)
                if (csr_column_at(&m, i) >= head->columns ||
                    (i > m.row_begin[r] && csr_column_at(&m, i) <= csr_column_at(&m, i - 1)))
                    wrong = "the columns of a row do not rise";
        }
    }
    return wrong ? csr_host->fail(err, CNR_E_FORMAT, "sparse-csr", "%s", wrong) : CNR_OK;
}

static cnr_status decode(const cnr_tensor *t, void *dense, cnr_error *err) {
    (void)err;
    const csr_matrix m = csr_view(t->data);
    float *out = (float *)dense;
    memset(out, 0, (size_t)(m.head->rows * m.head->columns) * sizeof(float));
    for (uint64_t r = 0; r < m.head->rows; r++)
        for (uint64_t i = m.row_begin[r]; i < m.row_begin[r + 1]; i++)
            out[r * m.head->columns + csr_column_at(&m, i)] = m.value[i];
    return CNR_OK;
}

const cnr_encoding csr_encoding = {
    .size = sizeof(cnr_encoding),
    .version = 1,
    .name = "sparse-csr",
    .summary = "compressed sparse rows: values, columns, row pointers",
    .n_attrs = 1,
    .attr_spec_size = sizeof(cnr_attr_spec),
    .attrs = attrs,
    .encode_size = encode_size,
    .encode = encode,
    .check = check,
    .decode = decode,
};
