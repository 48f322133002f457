/* Stored sparse matrices, judged and read. Files are hostile: nothing is believed before csr_check. */
#include "csr.h"

static uint64_t to_four(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

csr_parts csr_parts_of(const csr_header *h) {
    csr_parts p = {.table = csr_table_length(h) * sizeof(float),
                   .row_begin = (csr_blocks(h) + 1) * sizeof(uint32_t),
                   .index = to_four(h->indices * h->index_bytes),
                   .value = to_four(h->entries * h->block * csr_value_bytes(h))};
    p.all = sizeof *h + p.table + p.row_begin + p.index + p.value;
    return p;
}

const char *csr_header_fault(const csr_header *h, const cnr_tensor *t) {
    const int64_t n = cnr_count(t);
    if (t->dtype != CNR_f32 || t->rank < 1 || n < 0) return "the tensor it stands for is not f32";
    if (h->magic != CSR_MAGIC) return "the header is damaged";
    if (h->block != 1 && h->block != CSR_BLOCK) return "blocks are not of 1 or 4 rows";
    if (h->index_bytes != 1 && h->index_bytes != 2 && h->index_bytes != 4)
        return "indices are not of 1, 2 or 4 bytes";
    if (h->value != CNR_f32 && h->value != CNR_f16 && h->value != CNR_i8 && h->value != CSR_SHARED)
        return "its values are of no type that is known";
    if (h->value == CSR_SHARED ? h->bits < 1 || h->bits > 8 : h->bits != 0)
        return "shared values are not of 1 to 8 bits";
    if (h->rows != (uint64_t)t->dim[0] || h->rows >= UINT32_MAX ||
        h->columns != (h->rows ? (uint64_t)n / h->rows : 0) ||
        h->columns > (h->index_bytes == 2 ? 65536u : UINT32_MAX - 1))
        return "rows and columns are not those of the tensor";
    const uint64_t blocks = csr_blocks(h);
    if (h->entries >= UINT32_MAX / CSR_BLOCK ||
        (blocks ? h->entries / blocks > h->columns : h->entries > 0))
        return "there are too many entries";
    if (h->index_bytes > 1 ? h->indices != h->entries
                           : h->indices < h->entries ||
                                 h->indices - h->entries > blocks * (h->columns / CSR_SKIP))
        return "there are not as many indices as entries need";
    return NULL;
}

/* The header, of either form; 0: there is none. */
static int read_header(const void *data, uint64_t bytes, csr_header *h, uint64_t *at) {
    uint32_t magic = 0;
    if (!data || bytes < sizeof magic) return 0;
    memcpy(&magic, data, sizeof magic);
    if (magic != CSR_MAGIC_1) {
        if (bytes < sizeof *h) return 0;
        memcpy(h, data, sizeof *h);
        *at = sizeof *h;
        return 1;
    }
    csr_header_1 old;
    if (bytes < sizeof old) return 0;
    memcpy(&old, data, sizeof old);
    if (old.index_bytes != 2 && old.index_bytes != 4) return 0;
    *h = (csr_header){.magic = CSR_MAGIC, .index_bytes = (uint8_t)old.index_bytes, .value = CNR_f32,
                      .block = 1, .rows = old.rows, .columns = old.columns, .entries = old.entries,
                      .indices = old.entries};
    *at = sizeof old;
    return 1;
}

/* The parts behind the header. */
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
    read_header(data, UINT64_MAX, &h, &at);
    return take_apart(&h, (const char *)data + at);
}

static uint32_t column_at(const csr_matrix *m, uint64_t i) {
    return m->head.index_bytes == 2 ? ((const uint16_t *)m->index)[i] : ((const uint32_t *)m->index)[i];
}

static const char *check_columns(const csr_matrix *m) {
    for (uint64_t b = 0; b < m->blocks; b++)
        for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1]; i++)
            if (column_at(m, i) >= m->head.columns ||
                (i > m->row_begin[b] && column_at(m, i) <= column_at(m, i - 1)))
                return "the columns of a row do not rise";
    return NULL;
}

/* As many gaps as entries: none of them may be a skip, and their sum is where a row ends. */
static const char *check_short_gaps(const csr_matrix *m) {
    const uint8_t *gap = (const uint8_t *)m->index;
    for (uint64_t b = 0; b < m->blocks; b++) {
        uint64_t sum = 0;
        uint32_t skips = 0;
        for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1]; i++) {
            sum += gap[i];
            skips += gap[i] == CSR_SKIP;
        }
        if (skips) return "there are fewer gaps than entries";
        if (sum + m->row_begin[b + 1] - m->row_begin[b] > m->head.columns)
            return "a gap leads out of its row";
    }
    return NULL;
}

static const char *check_gaps(const csr_matrix *m) {
    const uint8_t *gap = (const uint8_t *)m->index;
    uint64_t at = 0;
    if (csr_has_short_gaps(&m->head)) return check_short_gaps(m);
    for (uint64_t b = 0; b < m->blocks; b++) {
        uint64_t next = 0; /* the column behind the entry before */
        for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1]; i++) {
            while (at < m->head.indices && gap[at] == CSR_SKIP) next += CSR_SKIP, at++;
            if (at == m->head.indices) return "there are fewer gaps than entries";
            next += gap[at++] + 1u;
            if (next > m->head.columns) return "a gap leads out of its row";
        }
    }
    return at == m->head.indices ? NULL : "there are more gaps than entries";
}

static const char *check_table(const csr_matrix *m) {
    for (uint64_t i = 0; i < csr_table_length(&m->head); i++)
        if (!(m->table[i] - m->table[i] == 0)) return "its table has what is not a number";
    return NULL;
}

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
    if (!read_header(t->data, t->bytes, &h, &at)) return "the header is damaged";
    const char *wrong = csr_header_fault(&h, t);
    if (wrong) return wrong;
    if (t->bytes != csr_parts_of(&h).all - sizeof h + at) return "its size does not fit its entries";
    const csr_matrix m = take_apart(&h, (const char *)t->data + at);
    if (m.row_begin[0] != 0 || m.row_begin[m.blocks] != h.entries)
        return "the row pointers do not cover the entries";
    for (uint64_t b = 0; b < m.blocks; b++)
        if (m.row_begin[b] > m.row_begin[b + 1] || m.row_begin[b + 1] > h.entries)
            return "the row pointers do not rise";
    wrong = h.index_bytes == 1 ? check_gaps(&m) : check_columns(&m);
    if (!wrong) wrong = check_table(&m);
    return wrong ? wrong : check_values(&m);
}

void csr_columns(const csr_matrix *m, uint64_t b, uint64_t *cursor, uint32_t *column) {
    const uint64_t n = m->row_begin[b + 1] - m->row_begin[b];
    if (m->head.index_bytes > 1) {
        for (uint64_t i = 0; i < n; i++) column[i] = column_at(m, m->row_begin[b] + i);
        *cursor += n;
        return;
    }
    const uint8_t *gap = (const uint8_t *)m->index + *cursor;
    uint32_t next = 0;
    for (uint64_t i = 0; i < n; i++) {
        while (*gap == CSR_SKIP) next += CSR_SKIP, gap++;
        next += *gap++;
        column[i] = next++;
    }
    *cursor = (uint64_t)(gap - (const uint8_t *)m->index);
}

uint64_t csr_cursor(const csr_matrix *m, uint64_t b) {
    const uint8_t *gap = (const uint8_t *)m->index;
    uint64_t at = 0;
    if (m->head.index_bytes > 1) return m->row_begin[b];
    for (uint64_t left = m->row_begin[b]; left > 0; at++) left -= gap[at] != CSR_SKIP;
    return at;
}

void csr_values(const csr_matrix *m, uint64_t b, uint64_t r, uint64_t first, uint64_t n, float *out) {
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

void csr_decode(const csr_matrix *m, float *dense) {
    const csr_header *h = &m->head;
    uint64_t at = 0; /* of the gaps */
    const uint8_t *gap = (const uint8_t *)m->index;
    memset(dense, 0, (size_t)(h->rows * h->columns) * sizeof *dense);
    for (uint64_t b = 0; b < m->blocks; b++) {
        const uint64_t rows = h->rows - b * h->block < h->block ? h->rows - b * h->block : h->block;
        uint32_t column[PIECE], next = 0;
        float value[PIECE];
        for (uint64_t i = m->row_begin[b]; i < m->row_begin[b + 1];) {
            uint64_t n = m->row_begin[b + 1] - i;
            if (n > PIECE) n = PIECE;
            for (uint64_t k = 0; k < n; k++) {
                if (h->index_bytes > 1) {
                    column[k] = column_at(m, i + k);
                    continue;
                }
                while (gap[at] == CSR_SKIP) next += CSR_SKIP, at++;
                next += gap[at++];
                column[k] = next++;
            }
            for (uint64_t r = 0; r < rows; r++) {
                float *row = dense + (b * h->block + r) * h->columns;
                csr_values(m, b, r, i, n, value);
                for (uint64_t k = 0; k < n; k++) row[column[k]] = value[k];
            }
            i += n;
        }
    }
}
