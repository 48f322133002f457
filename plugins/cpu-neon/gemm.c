/* Matrix products from packed panels: blocking, and division of the work among threads. */
#include "gemm.h"

/* Packing writes up to a vector beyond a panel. */
static int64_t panel_room(int64_t k) { return k * neon_uk->nr + 16; }

int64_t neon_block_room(int64_t n, int64_t k) {
    const int64_t panels = cnr_div_up(cnr_min(n, NEON_NC), neon_uk->nr);
    return panels * panel_room(cnr_min(k, NEON_KC));
}

enum {
    MOST_MR = 8,
    MOST_NR = 48,
    STORED_K = 64,     /* part of k that is packed on the stack at a time */
    CHAINED_ROWS = 128 /* rows whose sums stay in the L2 cache until the epilogue runs */
};

/* Applies the epilogue to rows that are summed. */
static void run_chain(const neon_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1) {
    for (int64_t r = m0; r < m1 && p->chain && p->chain->n; r++)
        neon_chain_run(p->chain, p->node, p->c + r * p->ldc + n0, p->c_first + r * p->ldc + n0,
                       n1 - n0);
}

/* Multiplies one block of k: B's panels are in the L2 cache, A's in the L1. */
static void block_of_k(const neon_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                       int64_t k0, int64_t kn, const float *b, int64_t b_stride) {
    const neon_ukernels *uk = neon_uk;
    const int ends = k0 + kn == p->k && !p->b;
    _Alignas(64) float room[NEON_MOST_KC * MOST_MR];
    for (int64_t i = m0; i < m1;) {
        const int64_t panel = i / uk->mr, skip = i % uk->mr;
        const int64_t rows = cnr_min(uk->mr - skip, m1 - i);
        const float *a =
            skip + neon_widened(p->a_as, p->a, (panel * p->k + k0) * uk->mr, kn * uk->mr, room);
        const float *bias = p->bias && k0 == 0 ? p->bias + i : NULL;
        for (int64_t j = n0, q = 0; j < n1; j += uk->nr, q++)
            uk->sgemm(kn, a, b + q * b_stride, p->c + i * p->ldc + j, p->ldc, rows,
                      cnr_min(uk->nr, n1 - j), bias, p->add || k0 > 0);
        if (ends) run_chain(p, i, i + rows, n0, n1);
        i += rows;
    }
}

/* Computes rows m0 to m1 of columns n0 to n1 where B was packed as a whole: its last panel is
 * narrower, so panels are processed one by one; then the epilogue, on whole rows. */
static void packed_block(const neon_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                         float *room) {
    const int64_t nr = neon_uk->nr, vl = neon_uk->vl;
    for (int64_t k0 = 0; k0 < p->k || k0 == 0; k0 += NEON_KC) {
        const int64_t kn = cnr_min(NEON_KC, p->k - k0);
        for (int64_t j = n0; j < n1; j += nr) {
            const int64_t width = cnr_min(nr, cnr_round_up(p->n - j, vl));
            block_of_k(p, m0, m1, j, cnr_min(n1, j + nr), k0, kn,
                       neon_widened(p->b_as, p->b, j * p->k + k0 * width, kn * width, room), 0);
        }
    }
    run_chain(p, m0, m1, n0, n1);
}

void neon_block(const neon_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                float *room) {
    const int64_t nr = neon_uk->nr, mr = neon_uk->mr;
    const int64_t stride = panel_room(cnr_min(p->k, NEON_KC));
    const int64_t most = p->chain && p->chain->n ? CHAINED_ROWS : m1 - m0;
    for (int64_t m = m0, end; m < m1 && p->b; m = end) {
        end = m1 - m > most ? (m + most) / mr * mr : m1;
        packed_block(p, m, end, n0, n1, room);
    }
    for (int64_t k0 = 0; !p->b && (k0 < p->k || k0 == 0); k0 += NEON_KC) {
        const int64_t kn = cnr_min(NEON_KC, p->k - k0);
        for (int64_t j = n0, q = 0; j < n1; j += nr, q++)
            p->pack(p->pack_arg, k0, kn, j, cnr_min(nr, n1 - j), room + q * stride);
        block_of_k(p, m0, m1, n0, n1, k0, kn, room, stride);
    }
}

/* Returns the cost of a block of m x n results, in rows of vectors. A narrow last panel is slower,
 * since each element of A meets fewer vectors; packing B costs 4 rows. */
static int64_t block_cost(int64_t m, int64_t n) {
    const int64_t nv = neon_uk->nr / neon_uk->vl, vectors = cnr_div_up(n, neon_uk->vl);
    const int64_t rest = vectors % nv;
    return (m + 16) * (2 * vectors + (rest ? nv - rest : 0));
}

/* Returns the cost of the slowest thread for the grid's blocks of `copies` products; blocks of the
 * last column are smaller. */
static int64_t grid_cost(const neon_grid *g, int64_t m, int64_t n, int64_t copies,
                         int32_t threads) {
    const int64_t rows = cnr_div_up(m, g->rows), lasts = copies * g->rows,
                  wholes = lasts * (g->columns - 1);
    const int64_t whole = block_cost(rows, cnr_min(n, g->nb));
    const int64_t last = block_cost(rows, n - (g->columns - 1) * g->nb);
    const int64_t each = cnr_div_up(wholes, threads), idle = each * threads - wholes;
    const int64_t slowest = each * whole + cnr_div_up(cnr_max(0, lasts - idle), threads) * last;
    return cnr_max(cnr_div_up(wholes * whole + lasts * last, threads), slowest) +
           16 * cnr_div_up(wholes + lasts, threads);
}

neon_grid neon_grid_of(int64_t m, int64_t n, int64_t copies, int packed, int32_t threads) {
    const int64_t mr = neon_uk->mr, fewest = cnr_max(1, cnr_div_up(n, NEON_NC));
    neon_grid best = {0};
    int64_t least = INT64_MAX;
    for (int64_t columns = fewest, tasks = 0; columns == fewest || tasks < 4 * threads; columns++) {
        tasks = columns * copies;
        for (int64_t rows = 1; rows <= 2 || tasks * rows <= 8 * threads; rows++) {
            for (int fine = 0; fine <= !packed; fine++) {
                const int64_t step = fine ? neon_uk->vl : neon_uk->nr;
                neon_grid g;
                g.nb = cnr_min(NEON_NC, cnr_round_up(cnr_div_up(cnr_max(n, 1), columns), step));
                g.mb = cnr_round_up(cnr_div_up(cnr_max(m, 1), rows), mr);
                g.columns = cnr_max(1, cnr_div_up(n, g.nb));
                g.rows = cnr_max(1, cnr_div_up(m, g.mb));
                const int64_t cost = grid_cost(&g, m, n, copies, threads);
                if (cost >= least) continue;
                least = cost;
                best = g;
            }
        }
    }
    return best;
}

/* Arguments of the tasks of a product. */
typedef struct multiply_task {
    const neon_product *p;
    neon_grid grid;
    float *scratch;
    int64_t room, m0, m1;
} multiply_task;

/* Task i of the multiply_task `arg`: computes tile i of the product's grid. */
static void multiply_tile(void *arg, int64_t i, int32_t thread) {
    const multiply_task *t = arg;
    /* a thread's tasks have the same rows, so that their panels of A stay in its cache */
    const int64_t m0 = t->m0 + i / t->grid.columns * t->grid.mb,
                  n0 = i % t->grid.columns * t->grid.nb;
    neon_block(t->p, m0, cnr_min(t->m1, m0 + t->grid.mb), n0, cnr_min(t->p->n, n0 + t->grid.nb),
               t->scratch + thread * t->room);
}

void neon_multiply(const neon_product *p, int64_t m0, int64_t m1, cnr_stream *stream,
                   float *scratch) {
    multiply_task t = {p,
                       neon_grid_of(m1 - m0, p->n, 1, p->b != NULL, stream->device->concurrency),
                       scratch,
                       neon_block_room(p->n, p->k),
                       m0,
                       m1};
    if (m1 > m0 && p->n > 0) cnr_parallel(stream, t.grid.rows * t.grid.columns, multiply_tile, &t);
}

/* ---- packing ---- */

int64_t neon_packed_a(int64_t m, int64_t k) { return cnr_round_up(m, neon_uk->mr) * k; }

void neon_pack_a(const float *a, int64_t rs, int64_t cs, int64_t m, int64_t k, float scale,
                 int64_t first, int64_t last, float *out) {
    const int64_t mr = neon_uk->mr;
    for (int64_t p = first; p < last; p++) {
        float *to = out + p * k * mr;
        const float *from = a + p * mr * rs;
        const int64_t rows = cnr_min(mr, m - p * mr);
        if (rows == mr && cs == 1) {
            neon_uk->pack_columns(to, k, from, rs, scale);
            continue;
        }
        if (rows < mr) memset(to, 0, (size_t)(k * mr) * sizeof *to);
        for (int64_t j = 0; j < k; j++)
            for (int64_t i = 0; i < rows; i++) to[j * mr + i] = from[i * rs + j * cs] * scale;
    }
}

int64_t neon_packed_b(int64_t n, int64_t k) { return cnr_round_up(n, neon_uk->vl) * k; }

/* neon_pack_fn of a strided matrix (neon_strided): packs rows k to kn - 1, n columns from col on,
 * into the panel. */
void neon_pack_strided(const void *arg, int64_t k, int64_t kn, int64_t col, int64_t n,
                       float *panel) {
    const neon_strided *s = arg;
    const int64_t width = cnr_round_up(n, neon_uk->vl);
    const float *b = s->b + k * s->rs + col * s->cs;
    if (s->cs == 1) {
        neon_uk->pack_rows(panel, width, n, kn, b, s->rs);
        return;
    }
    if (n < width) memset(panel, 0, (size_t)(kn * width) * sizeof *panel);
    /* 16 rows at a time: a cache line of each column is read completely */
    for (int64_t i0 = 0; i0 < kn; i0 += 16)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = i0; i < cnr_min(i0 + 16, kn); i++)
                panel[i * width + j] = b[i * s->rs + j * s->cs];
}

void neon_pack_b(const float *b, int64_t rs, int64_t cs, int64_t n, int64_t k, int64_t first,
                 int64_t last, float *out) {
    const int64_t nr = neon_uk->nr;
    const neon_strided s = {b, rs, cs};
    for (int64_t p = first; p < last; p++)
        neon_pack_strided(&s, 0, k, p * nr, cnr_min(nr, n - p * nr), out + p * nr * k);
}

void neon_store_a(neon_stored as, const float *a, int64_t rs, int64_t cs, int64_t m, int64_t k,
                  int64_t panel, void *out) {
    const int64_t mr = neon_uk->mr, rows = cnr_min(mr, m - panel * mr);
    float some[STORED_K * MOST_MR];
    if (as == NEON_F32) {
        neon_pack_a(a, rs, cs, m, k, 1.0f, panel, panel + 1, out);
        return;
    }
    for (int64_t k0 = 0; k0 < k; k0 += STORED_K) {
        const int64_t kn = cnr_min(STORED_K, k - k0);
        neon_pack_a(a + panel * mr * rs + k0 * cs, rs, cs, rows, kn, 1.0f, 0, 1, some);
        neon_uk->narrow[as](some, (uint16_t *)out + (panel * k + k0) * mr, kn * mr);
    }
}

void neon_store_b(neon_stored as, const float *b, int64_t rs, int64_t cs, int64_t n, int64_t k,
                  int64_t panel, void *out) {
    const int64_t nr = neon_uk->nr, columns = cnr_min(nr, n - panel * nr);
    const int64_t width = cnr_round_up(columns, neon_uk->vl);
    const neon_strided s = {b, rs, cs};
    float some[STORED_K * MOST_NR];
    if (as == NEON_F32) {
        neon_pack_b(b, rs, cs, n, k, panel, panel + 1, out);
        return;
    }
    for (int64_t k0 = 0; k0 < k; k0 += STORED_K) {
        const int64_t kn = cnr_min(STORED_K, k - k0);
        neon_pack_strided(&s, k0, kn, panel * nr, columns, some);
        neon_uk->narrow[as](some, (uint16_t *)out + panel * nr * k + k0 * width, kn * width);
    }
}
