/* Sums of a few elements each, addressed by tables: resize along its last axis. */

INLINE vec gather(const float *x, const int32_t *at) {
#if defined(__AVX512F__)
    return (vec)_mm512_i32gather_ps(_mm512_loadu_si512(at), x, 4);
#elif defined(__AVX2__)
    return (vec)_mm256_i32gather_ps(x, _mm256_loadu_si256((const __m256i *)at), 4);
#else
    return (vec){x[at[0]], x[at[1]], x[at[2]], x[at[3]]};
#endif
}

INLINE void resample_single(const neon_resample *by, const float *x, float *out) {
    for (int64_t i = 0; i < by->n; i += VL) {
        vec sum = gather(x, by->at + i) * load(by->weight + i);
        for (int64_t k = 1; k < by->taps; k++)
            sum = fuse(gather(x, by->at + k * by->pitch + i), load(by->weight + k * by->pitch + i),
                       sum);
        if (i + VL <= by->n) store(out + i, sum);
        else store_part(out + i, sum, by->n - i);
    }
}

INLINE void resample_many(const neon_resample *by, const float *x, float *out) {
    for (int64_t i = 0; i < by->n; i++)
        for (int64_t j = 0; j < by->inner; j += VL) {
            const int64_t here = by->inner - j < VL ? by->inner - j : VL;
            const int whole = here == VL;
            vec sum = {0};
            for (int64_t k = 0; k < by->taps; k++) {
                const float *from = x + by->at[k * by->pitch + i] * by->inner + j;
                const vec v = (whole ? load(from) : load_part(from, here)) *
                              splat(by->weight[k * by->pitch + i]);
                sum = k ? sum + v : v;
            }
            if (whole) store(out + i * by->inner + j, sum);
            else store_part(out + i * by->inner + j, sum, here);
        }
}

/* Resamples a row, of one or several numbers a pixel. */
static void resample(const neon_resample *by, const float *x, float *out) {
    if (by->inner == 1) resample_single(by, x, out);
    else resample_many(by, x, out);
}

/* x += scale * y. */
static void add_scaled(float *x, const float *y, float scale, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] += scale * y[i];
}
