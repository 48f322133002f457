/* Part of template.h: loops that keep a core's multipliers, or its loads, busy. */

/* Multiplies and adds in registers, `rounds` times; returns a sum that keeps the work from being
 * left out. */
static float peak(int64_t rounds, float by) {
    vec acc[NEON_PEAK];
    const vec factor = splat(by), more = splat(1.0f - by);
    for (int i = 0; i < NEON_PEAK; i++) acc[i] = splat((float)i);
    for (int64_t r = 0; r < rounds; r++) {
        UNROLL(12)
        for (int i = 0; i < NEON_PEAK; i++) acc[i] = fuse(acc[i], factor, more);
    }
    vec all = acc[0];
    for (int i = 1; i < NEON_PEAK; i++) all += acc[i];
    return all[0] + all[VL - 1];
}

/* Reads n floats, as fast as it can, for a test of memory's speed; the sum returned only keeps the
 * reads. */
static float read_all(const float *x, int64_t n) {
    vec acc[16];
    for (int i = 0; i < 16; i++) acc[i] = splat(0.0f);
    for (int64_t at = 0; at + 16 * VL <= n; at += 16 * VL) {
        UNROLL(16)
        for (int i = 0; i < 16; i++) acc[i] += load(x + at + i * VL);
    }
    vec all = acc[0];
    for (int i = 1; i < 16; i++) all += acc[i];
    return all[0] + all[VL - 1];
}
