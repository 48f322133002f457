/* Part of neon.h: instructions of AArch64 that ARMv7 lacks, by those that it has. */

static inline int16x8_t vmull_high_s8(int8x16_t a, int8x16_t b) {
    return vmull_s8(vget_high_s8(a), vget_high_s8(b));
}

static inline int16x8_t vmlal_high_s8(int16x8_t sum, int8x16_t a, int8x16_t b) {
    return vmlal_s8(sum, vget_high_s8(a), vget_high_s8(b));
}

static inline int32x4_t vmlal_high_s16(int32x4_t sum, int16x8_t a, int16x8_t b) {
    return vmlal_s16(sum, vget_high_s16(a), vget_high_s16(b));
}

static inline int16x8_t vqmovn_high_s32(int16x4_t low, int32x4_t high) {
    return vcombine_s16(low, vqmovn_s32(high));
}

static inline uint8x16_t vqmovun_high_s16(uint8x8_t low, int16x8_t high) {
    return vcombine_u8(low, vqmovun_s16(high));
}

static inline int32x4_t vpaddq_s32(int32x4_t a, int32x4_t b) {
    return vcombine_s32(vpadd_s32(vget_low_s32(a), vget_high_s32(a)),
                        vpadd_s32(vget_low_s32(b), vget_high_s32(b)));
}

static inline int32_t vaddvq_s32(int32x4_t a) {
    const int32x2_t pair = vpadd_s32(vget_low_s32(a), vget_high_s32(a));
    return vget_lane_s32(vpadd_s32(pair, pair), 0);
}

/* A lane, which is a constant, in all lanes. */
#define vdupq_laneq_s32(v, lane) \
    ((lane) < 2 ? vdupq_lane_s32(vget_low_s32(v), (lane)&1) \
                : vdupq_lane_s32(vget_high_s32(v), (lane)&1))

/* Rounds to nearest, ties to even, by the addition of 1.5 * 2^23, which leaves no room for a
 * fraction. Larger numbers than 2^17 become 2^17, which saturates 16 bits. */
static inline int32x4_t vcvtnq_s32_f32(float32x4_t x) {
    const float32x4_t most = vdupq_n_f32(131072.0f), shift = vdupq_n_f32(12582912.0f);
    const float32x4_t near = vmaxq_f32(vminq_f32(x, most), vnegq_f32(most));
    return vsubq_s32(vreinterpretq_s32_f32(vaddq_f32(near, shift)), vreinterpretq_s32_f32(shift));
}
