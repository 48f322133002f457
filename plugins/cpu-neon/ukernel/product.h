/* Products of matrices: tiles of packed panels, and dot products of rows; included by template.h.
 */

/* ---- matrix product, vectorised along the columns ---- */

INLINE void tile(int64_t k, const float *restrict a, const float *restrict b, float *restrict c,
                 int64_t ldc, const int m, const int nv, int64_t last, const float *bias, int add) {
    vec acc[MR][NV];
    UNROLL(8)
    for (int i = 0; i < m; i++) {
        UNROLL(3)
        for (int j = 0; j < nv; j++) {
            if (!add) acc[i][j] = splat(bias ? bias[i] : 0.0f);
            else if (j == nv - 1 && last < VL) acc[i][j] = load_part(c + i * ldc + j * VL, last);
            else acc[i][j] = load(c + i * ldc + j * VL);
        }
    }
    for (; k > 0; k--) {
        vec row[NV];
        UNROLL(3)
        for (int j = 0; j < nv; j++) row[j] = load(b + j * VL);
        UNROLL(8)
        for (int i = 0; i < m; i++) {
            const vec x = splat(a[i]);
            UNROLL(3)
            for (int j = 0; j < nv; j++) acc[i][j] = fuse(x, row[j], acc[i][j]);
        }
        a += MR;
        b += nv * VL;
    }
    UNROLL(8)
    for (int i = 0; i < m; i++) {
        UNROLL(3)
        for (int j = 0; j < nv; j++) {
            if (j == nv - 1 && last < VL) store_part(c + i * ldc + j * VL, acc[i][j], last);
            else store(c + i * ldc + j * VL, acc[i][j]);
        }
    }
}

/* Case of a tile of m rows and nv vectors. */
#define TILE(m, nv) \
    case (m)*4 + (nv): tile(k, a, b, c, ldc, m, nv, n - ((nv)-1) * VL, bias, add); break;
/* Cases of tiles of m rows. */
#define TILES(m) TILE(m, 1) TILE(m, 2) TILE(m, 3)

/* C = A B, or (add) C += A B, for one tile of m rows and n columns, from packed panels; bias: one
 * for each row, or NULL. */
static void sgemm(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int64_t m,
                  int64_t n, const float *bias, int add) {
    switch (m * 4 + (n + VL - 1) / VL) {
        TILES(1)
        TILES(2)
        TILES(3)
        TILES(4)
#if MR == 8
        TILES(5)
        TILES(6)
        TILES(7)
        TILES(8)
#endif
    default: break;
    }
}

/* ---- matrix product, vectorised along the summed axis ---- */

/* Prefetching this many floats ahead helps weights that come from memory (4096 x 9216 in 6.65 ms
 * instead of 7.1) but delays those in the L2 cache (500 x 800: 14.7 us instead of 13.4), so only
 * long rows are prefetched. */
#define DOT_AHEAD 128
#define DOT_LONG 2048

INLINE void dot_tile(const neon_stored as, int64_t k, const float *restrict a, int64_t lda,
                     const char *restrict b, int64_t ldb, float *restrict c, int64_t ldc,
                     const int m, const int n, const float *bias, int add) {
    const int ahead = m == 1 && k >= DOT_LONG;
    const int64_t size = as == NEON_F32 ? 4 : 2;
    ldb *= size;
    vec acc[DOT_M][DOT_N];
    UNROLL(4)
    for (int i = 0; i < m; i++) {
        UNROLL(6)
        for (int j = 0; j < n; j++) acc[i][j] = (vec){0};
    }
    for (; k >= VL; k -= VL) {
        vec x[DOT_M];
        UNROLL(4)
        for (int i = 0; i < m; i++) x[i] = load(a + i * lda);
        UNROLL(6)
        for (int j = 0; j < n; j++) {
            if (ahead) __builtin_prefetch(b + j * ldb + DOT_AHEAD * 4);
            const vec y = load_as(as, b + j * ldb);
            UNROLL(4)
            for (int i = 0; i < m; i++) acc[i][j] = fuse(x[i], y, acc[i][j]);
        }
        a += VL;
        b += VL * size;
    }
    if (k) {
        vec x[DOT_M];
        UNROLL(4)
        for (int i = 0; i < m; i++) x[i] = load_part(a + i * lda, k);
        UNROLL(6)
        for (int j = 0; j < n; j++) {
            const char *row = b + j * ldb;
            const vec y =
                as == NEON_F32 ? load_part((const float *)(const void *)row, k) : load_as(as, row);
            UNROLL(4)
            for (int i = 0; i < m; i++) acc[i][j] = fuse(x[i], y, acc[i][j]);
        }
    }
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            const float start = add ? c[i * ldc + j] : bias ? bias[j] : 0.0f;
            c[i * ldc + j] = start + sum_lanes(acc[i][j]);
        }
    }
}

/* Case of a tile of m rows and n columns of dot products. */
#define DOT(as, m, n) \
    case (m)*8 + (n): \
        dot_tile(as, k, a, lda, b, ldb, c, ldc, m, n, bias, add); \
        break;
#if DOT_N == 6
/* Cases of tiles of m rows. */
#define DOTS(as, m) \
    DOT(as, m, 1) DOT(as, m, 2) DOT(as, m, 3) DOT(as, m, 4) DOT(as, m, 5) DOT(as, m, 6)
/* Cases of all tiles. */
#define ALL_DOTS(as) DOTS(as, 1) DOTS(as, 2) DOTS(as, 3) DOTS(as, 4)
#else
/* Cases of tiles of m rows. */
#define DOTS(as, m) DOT(as, m, 1) DOT(as, m, 2) DOT(as, m, 3) DOT(as, m, 4)
/* Cases of all tiles. */
#define ALL_DOTS(as) DOTS(as, 1) DOTS(as, 2) DOTS(as, 3)
#endif
/* Defines a function of dot products with matrix b stored as `as`. */
#define DOT_OF(name, as) \
    static void name(int64_t k, const float *a, int64_t lda, const void *b, int64_t ldb, float *c, \
                     int64_t ldc, int64_t m, int64_t n, const float *bias, int add) { \
        switch (m * 8 + n) { \
            ALL_DOTS(as) \
        default: break; \
        } \
    }
DOT_OF(dot_f32, NEON_F32)
DOT_OF(dot_f16, NEON_F16)
DOT_OF(dot_bf16, NEON_BF16)
