/* Checks and reads stored sparse matrices. Files may be hostile: nothing is trusted before
 * csr_check. */
#include "csr.h"
#include <cnnrun/half.h>

static uint64_t to_four(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

uint64_t csr_index_bytes(const csr_header *h) {
    const uint64_t bits = (uint64_t)h->indices * h->index_bits;
    return h->index_bits % 8 ? (bits + 7) / 8 + 8 : bits / 8;
}

/* Bytes of each part of the image that the header describes. */
csr_parts csr_parts_of(const csr_header *h) {
    csr_parts p = {.table = csr_table_length(h) * sizeof(float),
                   .row_begin = (csr_blocks(h) + 1) * sizeof(uint32_t),
                   .index = to_four(csr_index_bytes(h)),
                   .value = to_four(h->entries * h->block * csr_value_bytes(h))};
    p.all = sizeof *h + p.table + p.row_begin + p.index + p.value;
    return p;
}

const char *csr_header_fault(const csr_header *h, const cnr_tensor *t) {
    const int64_t n = cnr_count(t);
    if (t->dtype != CNR_f32 || t->rank < 1 || n < 0) return "the tensor it stands for is not f32";
    if (h->magic != CSR_MAGIC) return "the header is damaged";
    if (h->block != 1 && h->block != CSR_BLOCK) return "blocks are not of 1 or 4 rows";
    if (h->index_bits > 8 && h->index_bits != 16 && h->index_bits != 32)
        return "indices are not of 0 to 8, 16 or 32 bits";
    if (h->value != CNR_f32 && h->value != CNR_f16 && h->value != CNR_i8 && h->value != CSR_SHARED)
        return "its values are of no type that is known";
    if (h->value == CSR_SHARED ? h->bits < 1 || h->bits > 8 : h->bits != 0)
        return "shared values are not of 1 to 8 bits";
    if (h->rows != (uint64_t)t->dim[0] || h->rows >= UINT32_MAX ||
        h->columns != (h->rows ? (uint64_t)n / h->rows : 0) ||
        h->columns > (h->index_bits == 16 ? 65536u : UINT32_MAX - 1))
        return "rows and columns are not those of the tensor";
    const uint64_t blocks = csr_blocks(h);
    if (h->entries >= UINT32_MAX / CSR_BLOCK ||
        (blocks ? h->entries / blocks > h->columns : h->entries > 0))
        return "there are too many entries";
    if (h->index_bits == 0 ? h->indices != 0 || h->entries != blocks * h->columns
        : h->index_bits > 8
            ? h->indices != h->entries
            : h->indices < h->entries ||
                  h->indices - h->entries > blocks * (h->columns / csr_skip(h->index_bits)))
        return "there are not as many indices as entries need";
    return NULL;
}

int csr_header_read(const void *data, uint64_t bytes, csr_header *h, uint64_t *at) {
    uint32_t magic = 0;
    if (!data || bytes < sizeof magic) return 0;
    memcpy(&magic, data, sizeof magic);
    if (magic != CSR_MAGIC_1) {
        if (bytes < sizeof *h) return 0;
        memcpy(h, data, sizeof *h);
        *at = sizeof *h;
        if (magic == CSR_MAGIC_2) {
            if (h->index_bits != 1 && h->index_bits != 2 && h->index_bits != 4) return 0;
            h->magic = CSR_MAGIC;
            h->index_bits = (uint8_t)(8 * h->index_bits);
            h->longest = h->index_bits == 8 && h->indices == h->entries ? 254 : UINT32_MAX;
        }
        return 1;
    }
    csr_header_1 old;
    if (bytes < sizeof old) return 0;
    memcpy(&old, data, sizeof old);
    if (old.index_bytes != 2 && old.index_bytes != 4) return 0;
    *h = (csr_header){.magic = CSR_MAGIC,
                      .index_bits = (uint8_t)(8 * old.index_bytes),
                      .value = CNR_f32,
                      .block = 1,
                      .rows = old.rows,
                      .columns = old.columns,
                      .entries = old.entries,
                      .indices = (uint32_t)old.entries,
                      .longest = UINT32_MAX};
    *at = sizeof old;
    return 1;
}

/* Pointers to the parts, which lie at `behind`, after the header. */
static csr_matrix take_apart(const csr_header *h, const void *behind) {
    const csr_parts p = csr_parts_of(h);
    csr_matrix m = {.head = *h, .blocks = csr_blocks(h)};
    const char *at = (const char *)behind;
    m.table = (const float *)(const void *)at;
    m.row_begin = (const uint32_t *)(const void *)(at += p.table);
    m.index = at += p.row_begin;
    m.value = at + p.index;
    return m;
}

csr_matrix csr_view(const void *data) {
    csr_header h = {0};
    uint64_t at = 0;
    csr_header_read(data, UINT64_MAX, &h, &at);
    return take_apart(&h, (const char *)data + at);
}

/* Column of entry i, where columns are stored whole. */
static uint32_t column_at(const csr_matrix *m, uint64_t i) {
    return m->head.index_bits == 16 ? ((const uint16_t *)m->index)[i]
                                    : ((const uint32_t *)m->index)[i];
}

/* Reads the gaps of the next n entries of a row: *at is where the index continues, *next the column
 * after the last entry. Returns how many entries there were before the index ended; `column` may be
 * NULL. */
static inline uint64_t follow(const csr_matrix *m, uint64_t n, uint64_t *at, uint64_t *next,
                              uint32_t *column, uint64_t *longest) {
    const uint32_t bits = m->head.index_bits, skip = csr_skip(bits), a_word = bits == 8 ? 1 : 8;
    uint64_t i = 0, read = *at, to = *next, from = to, word = 0;
    while (i < n && read < m->head.indices) {
        const uint8_t *p = (const uint8_t *)m->index + (read * bits >> 3);
        if (a_word == 1) word = *p;
        else memcpy(&word, p, sizeof word);
        word >>= read * bits & 7;
        for (uint32_t k = 0; k < a_word && i < n && read < m->head.indices; k++, read++) {
            const uint32_t gap = word & skip, is_entry = gap != skip;
            word >>= bits & 7;
            to += gap;
            if (column) column[i] = (uint32_t)to; /* of a skip: overwritten by the next */
            if (longest && to - from > *longest) *longest = to - from;
            to += is_entry;
            from = is_entry ? to : from;
            i += is_entry;
        }
    }
    *at = read;
    *next = to;
    return i;
}

static const char too_long[] = "a gap is longer than the header says";

/* What is wrong with rows that have all columns, or NULL. */
static const char *check_all(const csr_matrix *m) {
    for (uint64_t b = 0; b < m->blocks; b++)
        if (m->row_begin[b + 1] - m->row_begin[b] != m->head.columns)
            return "a row has not all columns";
    return NULL;
}

/* What is wrong with the columns, or NULL: they must rise in a row. */
static const char *check_columns(const csr_matrix *m) {
    for (uint64_t b = 0; b < m->blocks; b++) {
        uint64_t next = 0;
        for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1]; i++) {
            const uint64_t column = column_at(m, i);
            if (column >= m->head.columns || column < next)
                return "the columns of a row do not rise";
            if (column - next > m->head.longest) return too_long;
            next = column + 1;
        }
    }
    return NULL;
}

/* NULL if the gaps, a byte for each entry, are sound: none is a skip, and their sum stays within
 * the row; else what is wrong. */
static const char *check_bytes(const csr_matrix *m) {
    const uint8_t *gap = (const uint8_t *)m->index;
    for (uint64_t b = 0; b < m->blocks; b++) {
        uint64_t sum = 0;
        uint8_t most = 0;
        for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1]; i++) {
            sum += gap[i];
            most = gap[i] > most ? gap[i] : most;
        }
        if (most == csr_skip(8)) return "there are fewer gaps than entries";
        if (most > m->head.longest) return too_long;
        if (sum + m->row_begin[b + 1] - m->row_begin[b] > m->head.columns)
            return "a gap leads out of its row";
    }
    return NULL;
}

/* What is wrong with the gaps, or NULL. */
static const char *check_gaps(const csr_matrix *m) {
    uint64_t at = 0, longest = 0;
    if (m->head.index_bits == 8 && m->head.indices == m->head.entries) return check_bytes(m);
    for (uint64_t b = 0; b < m->blocks; b++) {
        const uint64_t n = m->row_begin[b + 1] - m->row_begin[b];
        uint64_t next = 0; /* the column after the last entry */
        if (follow(m, n, &at, &next, NULL, &longest) < n)
            return "there are fewer gaps than entries";
        if (next > m->head.columns) return "a gap leads out of its row";
    }
    if (longest > m->head.longest) return too_long;
    return at == m->head.indices ? NULL : "there are more gaps than entries";
}

/* What is wrong with the table, or NULL. */
static const char *check_table(const csr_matrix *m) {
    for (uint64_t i = 0; i < csr_table_length(&m->head); i++)
        if (!(m->table[i] - m->table[i] == 0)) return "its table has what is not a number";
    return NULL;
}

/* What is wrong with the values, or NULL: each must have its place in the table. */
static const char *check_values(const csr_matrix *m) {
    const uint8_t *v = (const uint8_t *)m->value;
    const uint64_t n = m->head.entries * m->head.block;
    if (m->head.value != CSR_SHARED || m->head.bits == 8) return NULL;
    for (uint64_t i = 0; i < n; i++)
        if (v[i] >> m->head.bits) return "a value is not in its table";
    return NULL;
}

const char *csr_check(const cnr_tensor *t) {
    csr_header h;
    uint64_t at = 0;
    if (!csr_header_read(t->data, t->bytes, &h, &at)) return "the header is damaged";
    const char *wrong = csr_header_fault(&h, t);
    if (wrong) return wrong;
    if (t->bytes != csr_parts_of(&h).all - sizeof h + at)
        return "its size does not fit its entries";
    const csr_matrix m = take_apart(&h, (const char *)t->data + at);
    if (m.row_begin[0] != 0 || m.row_begin[m.blocks] != h.entries)
        return "the row pointers do not cover the entries";
    for (uint64_t b = 0; b < m.blocks; b++)
        if (m.row_begin[b] > m.row_begin[b + 1] || m.row_begin[b + 1] > h.entries)
            return "the row pointers do not rise";
    wrong = h.index_bits == 0   ? check_all(&m)
            : h.index_bits <= 8 ? check_gaps(&m)
                                : check_columns(&m);
    if (!wrong) wrong = check_table(&m);
    return wrong ? wrong : check_values(&m);
}

/* Reads the next n columns of a row, as `follow` does. */
static void read_columns(const csr_matrix *m, uint64_t n, uint64_t *at, uint64_t *next,
                         uint32_t *column) {
    const uint32_t bits = m->head.index_bits;
    if (bits > 8)
        for (uint64_t i = 0; i < n; i++) column[i] = column_at(m, (*at)++);
    else if (bits == 0)
        for (uint64_t i = 0; i < n; i++) column[i] = (uint32_t)(*next)++;
    else follow(m, n, at, next, column, NULL);
}

void csr_columns(const csr_matrix *m, uint64_t b, uint64_t *cursor, uint32_t *column) {
    uint64_t next = 0;
    read_columns(m, m->row_begin[b + 1] - m->row_begin[b], cursor, &next, column);
}

void csr_values(const csr_matrix *m, uint64_t b, uint64_t r, uint64_t first, uint64_t n,
                float *out) {
    const uint64_t step = m->head.block, from = first * step + r;
    const float *f32 = (const float *)m->value + from;
    const uint16_t *f16 = (const uint16_t *)m->value + from;
    const int8_t *i8 = (const int8_t *)m->value + from;
    const uint8_t *code = (const uint8_t *)m->value + from;
    if (m->head.value == CNR_f32)
        for (uint64_t i = 0; i < n; i++) out[i] = f32[i * step];
    else if (m->head.value == CNR_f16)
        for (uint64_t i = 0; i < n; i++) out[i] = cnr_f16_to_f32(f16[i * step]);
    else if (m->head.value == CNR_i8) {
        const float scale = b * step + r < m->head.rows ? m->table[b * step + r] : 0;
        for (uint64_t i = 0; i < n; i++) out[i] = (float)i8[i * step] * scale;
    } else
        for (uint64_t i = 0; i < n; i++) out[i] = m->table[code[i * step]];
}

enum { PIECE = 256 };

/* Writes the dense f32 rows, zeros included, to `dense`. */
void csr_decode(const csr_matrix *m, float *dense) {
    const csr_header *h = &m->head;
    uint64_t at = 0;
    memset(dense, 0, (size_t)(h->rows * h->columns) * sizeof *dense);
    for (uint64_t b = 0; b < m->blocks; b++) {
        const uint64_t rows = h->rows - b * h->block < h->block ? h->rows - b * h->block : h->block;
        uint32_t column[PIECE];
        uint64_t next = 0;
        float value[PIECE];
        for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1];) {
            uint64_t n = m->row_begin[b + 1] - i;
            if (n > PIECE) n = PIECE;
            read_columns(m, n, &at, &next, column);
            for (uint64_t r = 0; r < rows; r++) {
                float *row = dense + (b * h->block + r) * h->columns;
                csr_values(m, b, r, i, n, value);
                for (uint64_t k = 0; k < n; k++) row[column[k]] = value[k];
            }
            i += n;
        }
    }
}
