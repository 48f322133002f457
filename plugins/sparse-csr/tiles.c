/* Sparse matrix times a matrix with adjacent columns (pixels, or the samples of a batch): block by
 * block of rows, with a tile of columns that stays in the cache. */
#include "sparse.h"

#include <math.h>

enum { TASKS = 4, WIDEST = CSR_WIDEST * 16 }; /* tasks for each thread; floats of a tile */

/* The blob: this, then u32 begin[blocks + 1], u32 offset[entries], f32 value[entries * block]. */
struct csr_rows {
    uint64_t rows, blocks, block, entries;
    uint64_t offset_at, value_at;
};

static const void *part(const csr_rows *s, uint64_t at) { return (const char *)s + at; }
static const uint32_t *begin_of(const csr_rows *s) { return (const uint32_t *)part(s, sizeof *s); }
static uint64_t to_line(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/* The image's head, with the places of its parts. */
static csr_rows head_of(const csr_header *h) {
    csr_rows s = {.rows = h->rows,
                  .blocks = csr_blocks(h),
                  .block = h->block,
                  .entries = h->entries};
    s.offset_at = to_line(sizeof s + (s.blocks + 1) * 4);
    s.value_at = to_line(s.offset_at + s.entries * 4);
    return s;
}

/* Bytes of the image by rows, aligned to lines. */
uint64_t csr_rows_size(const csr_header *h) {
    const csr_rows s = head_of(h);
    return to_line(s.value_at + s.entries * s.block * 4);
}

cnr_status csr_rows_make(const csr_matrix *m, const uint32_t *offset, void *blob, cnr_error *err) {
    const csr_rows s = head_of(&m->head);
    char *to = (char *)blob;
    uint32_t *at = (uint32_t *)(void *)(to + s.offset_at);
    float *value = (float *)(void *)(to + s.value_at);
    float *row = (float *)csr_host->alloc((m->head.columns + 1) * sizeof *row);
    uint64_t cursor = 0;
    if (!row) return csr_host->fail(err, CNR_E_MEMORY, "sparse-csr", "out of memory");
    memset(blob, 0, csr_rows_size(&m->head));
    memcpy(blob, &s, sizeof s);
    memcpy(to + sizeof s, m->row_begin, (s.blocks + 1) * 4);
    for (uint64_t b = 0; b < s.blocks; b++) {
        const uint64_t first = m->row_begin[b], n = m->row_begin[b + 1] - first;
        csr_columns(m, b, &cursor, at + first);
        for (uint64_t i = first; i < first + n; i++) at[i] = offset[at[i]];
        for (uint64_t r = 0; r < s.block; r++) {
            csr_values(m, b, r, first, n, row);
            for (uint64_t i = 0; i < n; i++) value[(first + i) * s.block + r] = row[i];
        }
    }
    csr_host->free(row);
    return CNR_OK;
}

/* ---- running ---- */

/* Arguments of the tasks of a product by tiles. */
typedef struct tiles_job {
    const csr_tiles_job *job;
    int64_t first, end;       /* range of blocks of rows */
    int64_t columns, vectors; /* columns computed; vectors of a tile */
    int64_t parts, tiles;     /* number of tasks along rows and along columns */
} tiles_job;

/* First block of a part; parts have about equal numbers of entries. */
static int64_t part_begin(const tiles_job *t, int64_t i) {
    const uint32_t *begin = begin_of(t->job->blob);
    const int64_t from = begin[t->first], all = begin[t->end] - from;
    int64_t low = t->first, high = t->end;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if ((begin[middle] - from) * t->parts < all * i) low = middle + 1;
        else high = middle;
    }
    return i == t->parts ? t->end : low;
}

/* Wanted products of a tile that are consecutive in a row of output 0. */
typedef struct run_of {
    int64_t from, to, n;
} run_of;
/* The runs of adjacent columns that make up one tile. */
typedef struct tile_runs {
    int32_t n;
    run_of at[WIDEST + 1];
} tile_runs;

/* Finds the runs of products [column, column + n), which start at `from` in the tile. */
static void find_runs(const csr_tiles_job *j, int64_t from, int64_t column, int64_t n,
                      tile_runs *out) {
    int64_t line = column / j->pitch, x = column % j->pitch;
    out->n = 0;
    while (n > 0 && line < j->lines) {
        const int64_t some = cnr_min(n, j->pitch - x), wanted = cnr_min(some, j->width - x);
        run_of *last = out->n ? &out->at[out->n - 1] : NULL;
        const int64_t to = line * j->width + x;
        if (last && wanted > 0 && last->to + last->n == to && last->from + last->n == from)
            last->n += wanted; /* consecutive rows */
        else if (wanted > 0) out->at[out->n++] = (run_of){from, to, wanted};
        n -= some;
        from += some;
        x = 0;
        line++;
    }
}

/* Copies a row of the tile to the output and applies the epilogue. */
static void put(const csr_tiles_job *j, int64_t row, const tile_runs *runs, const float *tile) {
    const int32_t done = csr_tiles_done(&j->chain);
    for (int32_t i = 0; i < runs->n; i++) {
        const run_of *r = &runs->at[i];
        const float *from = tile + r->from;
        const int64_t at = row * j->row_floats + r->to * j->column_floats;
        float *to = j->y + at;
        if (!j->chained)
            for (int64_t k = 0; k < r->n; k++) to[k * j->column_floats] = from[k];
        else if (from != to) memcpy(to, from, (size_t)r->n * sizeof *to);
        if (j->chained && j->chain.n > done)
            csr_chain_run(&j->chain, done, j->run->node, to, j->at + at, r->n);
    }
}

/* Computes one tile: blocks [from, to) by some vectors of columns. */
static void one_tile(const tiles_job *t, int64_t from, int64_t to, int64_t column,
                     int64_t vectors) {
    const csr_tiles_job *j = t->job;
    const csr_rows *s = j->blob;
    const uint32_t *begin = begin_of(s), *offset = (const uint32_t *)part(s, s->offset_at);
    const float *value = (const float *)part(s, s->value_at);
    const csr_tile_fn run = csr_uk->tile[s->block > 1][vectors - 1];
    const csr_link *bound = csr_tiles_done(&j->chain) ? &j->chain.link[0] : NULL;
    const int64_t n = vectors * csr_uk->vl, block = (int64_t)s->block;
    /* For a narrow remainder, the columns before it are computed again but not stored again. */
    const int64_t at = cnr_max(0, cnr_min(column, j->readable - n));
    tile_runs runs;
    find_runs(j, column - at, column, cnr_min(n - (column - at), t->columns - column), &runs);
    const int whole = j->chained && runs.n == 1 && runs.at[0].n == n;
    for (int64_t b = from; b < to; b++) {
        float out[CSR_BLOCK * WIDEST], bias[CSR_BLOCK] = {0};
        const int64_t row = b * block;
        const int there = whole && row >= j->first && row + block <= j->end; /* no copy is needed */
        float *tile_at = there ? j->y + row * j->row_floats + runs.at[0].to : out;
        const int64_t ld = there ? j->row_floats : n;
        for (int64_t r = 0; r < block && j->bias && row + r < (int64_t)s->rows; r++)
            bias[r] = j->bias[row + r];
        const csr_tile tile = {.x = j->x + row / j->group_rows * j->group_floats + at,
                               .value = value + begin[b] * block,
                               .bias = bias,
                               .offset = offset + begin[b],
                               .n = begin[b + 1] - begin[b],
                               .ld = ld,
                               .out = tile_at,
                               .low = bound ? bound->low : -INFINITY,
                               .high = bound ? bound->high : INFINITY};
        run(&tile);
        for (int64_t r = 0; r < block; r++)
            if (row + r >= j->first && row + r < j->end) put(j, row + r, &runs, tile_at + r * ld);
    }
}

/* Task: computes one part of the rows for some tiles of columns. */
static void some_tiles(void *arg, int64_t task, int32_t thread) {
    const tiles_job *t = (const tiles_job *)arg;
    const int64_t p = task % t->parts, vl = csr_uk->vl;
    const int64_t from = part_begin(t, p), to = part_begin(t, p + 1);
    const int64_t column = task / t->parts * t->vectors * vl;
    (void)thread;
    if (from >= to || cnr_cancelled(t->job->run->stream)) return;
    one_tile(t, from, to, column, cnr_min(t->vectors, cnr_div_up(t->columns - column, vl)));
}

/* Vectors of a tile, so that tiles for all columns are as few as possible and of equal size. */
static int64_t vectors_for(int64_t columns, int64_t block) {
    const int64_t vl = csr_uk->vl, tiles = cnr_div_up(columns, csr_uk->widest[block > 1] * vl);
    return cnr_div_up(cnr_div_up(columns, tiles), vl);
}

int64_t csr_tiles_reads(int64_t columns, int64_t block) {
    return columns < 1 ? 0 : vectors_for(columns, block) * csr_uk->vl;
}

/* Multiplies by the rows [first, end), on the threads of the run. */
void csr_tiles_run(const csr_tiles_job *job) {
    const int64_t block = (int64_t)job->blob->block, vl = csr_uk->vl;
    tiles_job t = {.job = job, .first = job->first / block, .end = cnr_div_up(job->end, block)};
    t.columns = (job->lines - 1) * job->pitch + job->width;
    if (job->lines < 1 || job->width < 1 || t.end <= t.first) return;
    t.vectors = vectors_for(t.columns, block);
    t.tiles = cnr_div_up(t.columns, t.vectors * vl);
    const int64_t threads = job->run->stream->device->concurrency;
    t.parts = threads > 1 ? cnr_min(t.end - t.first, cnr_div_up(TASKS * threads, t.tiles)) : 1;
    cnr_parallel(job->run->stream, t.tiles * t.parts, some_tiles, &t);
}
