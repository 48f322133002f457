/* Conversion between f32 and the two 16-bit floating-point types, f16 and bf16. */
#pragma once

#include <stdint.h>
#include <string.h>

/* Half-precision number as a float. */
static inline float cnr_f16_to_f32(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, mant = h & 0x3ffu;
    const uint32_t exp = (h >> 10) & 0x1fu;
    uint32_t bits;
    float f;
    if (exp == 31) bits = sign | 0x7f800000u | (mant << 13);
    else if (exp != 0) bits = sign | ((exp + 112) << 23) | (mant << 13);
    else { /* zero or subnormal: mant * 2^-24 */ f = (float)mant * 5.9604644775390625e-8f;
        return sign ? -f : f;
    }
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Rounds to nearest even. Overflow gives infinity; NaN stays NaN. */
static inline uint16_t cnr_f32_to_f16(float f) {
    uint32_t x;
    memcpy(&x, &f, sizeof x);
    const uint16_t sign = (uint16_t)((x >> 16) & 0x8000u);
    x &= 0x7fffffffu;
    if (x > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (x >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (x < 0x38800000u) { /* below 2^-14: a subnormal half */
        if (x < 0x33000000u) return sign;
        const uint32_t exp = x >> 23, mant = (x & 0x7fffffu) | 0x800000u;
        const uint32_t shift = 126 - exp, half = 1u << (shift - 1);
        uint32_t r = mant >> shift;
        const uint32_t rest = mant & ((1u << shift) - 1);
        if (rest > half || (rest == half && (r & 1))) r++;
        return (uint16_t)(sign | r);
    }
    x += 0xc8000fffu + ((x >> 13) & 1);
    return (uint16_t)(sign | (x >> 13));
}

/* bfloat16 number as a float. */
static inline float cnr_bf16_to_f32(uint16_t h) {
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Nearest bfloat16; ties go to even. */
static inline uint16_t cnr_f32_to_bf16(float f) {
    uint32_t x;
    memcpy(&x, &f, sizeof x);
    if ((x & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((x >> 16) | 0x40u);
    return (uint16_t)((x + 0x7fffu + ((x >> 16) & 1)) >> 16);
}
