/* Conversion between f32 and the two 16-bit floating-point types, f16 and bf16. */
#pragma once

#include <stdint.h>
#include <string.h>

/* The float with these 32 bits. */
static inline float cnr_f32_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The 32 bits of a float. */
static inline uint32_t cnr_bits_of_f32(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* Half-precision number as a float. */
static inline float cnr_f16_to_f32(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exp = h >> 10 & 0x1fu, mant = h & 0x3ffu;
    if (exp == 0) /* zero or subnormal: mant * 2^-24 */
        return (sign ? -5.9604644775390625e-8f : 5.9604644775390625e-8f) * (float)mant;
    return cnr_f32_of_bits(sign | (exp == 31 ? 0x7f800000u : (exp + 112) << 23) | mant << 13);
}

/* Rounds to nearest even. Overflow gives infinity; NaN stays NaN. */
static inline uint16_t cnr_f32_to_f16(float f) {
    const uint32_t x = cnr_bits_of_f32(f) & 0x7fffffffu, sign = cnr_bits_of_f32(f) >> 16 & 0x8000u;
    const int subnormal = x < 0x38800000u; /* below 2^-14 */
    if (x > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (x >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (x < 0x33000000u) return (uint16_t)sign;
    /* the result's exponent and mantissa, followed by `rest` bits to round off */
    const uint32_t bits = subnormal ? (x & 0x7fffffu) | 0x800000u : x - 0x38000000u;
    const uint32_t rest = subnormal ? 126 - (x >> 23) : 13;
    return (uint16_t)(sign | (bits + (1u << (rest - 1)) - 1 + (bits >> rest & 1)) >> rest);
}

/* bfloat16 number as a float. */
static inline float cnr_bf16_to_f32(uint16_t h) { return cnr_f32_of_bits((uint32_t)h << 16); }

/* Nearest bfloat16; ties go to even. */
static inline uint16_t cnr_f32_to_bf16(float f) {
    const uint32_t x = cnr_bits_of_f32(f);
    if ((x & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((x >> 16) | 0x40u);
    return (uint16_t)((x + 0x7fffu + ((x >> 16) & 1)) >> 16);
}
