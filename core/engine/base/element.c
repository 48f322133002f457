/* Elements of any type as numbers. Only this file of the core knows how each type is stored. */
#include "base/base.h"
#include <cnnrun/half.h>
#include <math.h>
#include <string.h>

/* Floats that C has: name and C type. */
#define REAL(X) X(f32, float) X(f64, double)
/* clang-format off */
/* Integers that C has, and bool, in the same way. */
#define WHOLE(X) \
    X(i8, int8_t) X(u8, uint8_t) X(i16, int16_t) X(u16, uint16_t) X(i32, int32_t) \
    X(u32, uint32_t) X(i64, int64_t) X(u64, uint64_t) X(bool, uint8_t)
/* clang-format on */

int32_t cnri_dtype_of(const char *name) {
/* One type. */
#define X(n, value, bits) \
    if (strcmp(name, #n) == 0) return value;
    CNR_DTYPE_LIST(X)
#undef X
    return CNR_DTYPE_NONE;
}

static bool is_known(int32_t dtype) { return cnr_dtype_bits(dtype) != 0; }

/* True for floating-point types. */
static bool is_real(int32_t dtype) {
    return dtype == CNR_f32 || dtype == CNR_f64 || dtype == CNR_f16 || dtype == CNR_bf16;
}

/* ---- doubles to whole numbers: cut, kept in range, NaN as 0 ---- */

/* Rounds toward 0 and limits to int64; NaN gives 0. */
static int64_t to_i64(double v) {
    if (isnan(v)) return 0;
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* Rounds toward 0 and limits to uint64; NaN gives 0. */
static uint64_t to_u64(double v) {
    if (isnan(v) || v <= -1) return 0;
    return v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
}

/* Returns v limited to low..high, both included. */
static int64_t within(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

/* Converts v to a whole number within the range of that type. */
static int64_t stored_of(int32_t dtype, double v) {
    if (dtype == CNR_bool) return v != 0;
    if (dtype == CNR_u64) return (int64_t)to_u64(v);
    const unsigned bits = cnr_dtype_bits(dtype);
    const bool is_signed = dtype == CNR_i8 || dtype == CNR_i16 || dtype == CNR_i32 ||
                           dtype == CNR_i64 || dtype == CNR_i4;
    if (bits == 64) return to_i64(v);
    const int64_t high = ((int64_t)1 << (bits - is_signed)) - 1;
    return within(to_i64(v), is_signed ? -high - 1 : 0, high);
}

/* ---- as they lie in memory ---- */

/* Reads 4-bit element i. Two share a byte, the first in the low bits. */
static int nibble(const void *data, int64_t i) {
    return ((const uint8_t *)data)[i >> 1] >> ((i & 1) * 4) & 15;
}

/* Stores element i of a 4-bit type; even elements are in the low half of a byte. */
static void set_nibble(void *data, int64_t i, unsigned v) {
    uint8_t *byte = (uint8_t *)data + (i >> 1);
    const int shift = (int)(i & 1) * 4;
    *byte = (uint8_t)((*byte & ~(15u << shift)) | (v & 15u) << shift);
}

#define EACH for (int64_t k = 0; k < n; k++)

/* The cases of two elements a byte. */
#define NIBBLES \
    case CNR_u4: \
        EACH \
            out[k] = nibble(data, at + k * step); \
        break; \
    case CNR_i4: \
        EACH \
            out[k] = (nibble(data, at + k * step) ^ 8) - 8; \
        break;

/* Reads n elements, `step` apart, from element `at` on, as doubles. Types without a case leave out
 * as it is. */
static void read_real(int32_t dtype, const void *data, int64_t at, int64_t step, int64_t n,
                      double *out) {
    switch (dtype) {
/* Case of one C type: reads its elements as doubles. */
#define X(name, type) \
    case CNR_##name: \
        EACH \
            out[k] = (double)((const type *)data)[at + k * step]; \
        break;
        REAL(X)
        WHOLE(X)
#undef X
    case CNR_f16:
        EACH
            out[k] = cnr_f16_to_f32(((const uint16_t *)data)[at + k * step]);
        break;
    case CNR_bf16:
        EACH
            out[k] = cnr_bf16_to_f32(((const uint16_t *)data)[at + k * step]);
        break;
        NIBBLES
    default: break;
    }
}

/* Reads n elements, each `step` after the last, as int64. */
static void read_whole(int32_t dtype, const void *data, int64_t at, int64_t step, int64_t n,
                       int64_t *out) {
    switch (dtype) {
/* Case of one C type: reads its elements as int64. */
#define X(name, type) \
    case CNR_##name: \
        EACH \
            out[k] = (int64_t)((const type *)data)[at + k * step]; \
        break;
        WHOLE(X)
#undef X
        NIBBLES
    default: break;
    }
}

/* Rounds to a float whose last bit is 1 if anything was cut off (round to odd). Rounding that
 * once more to fewer bits gives the same as rounding the double at once. */
static float to_odd(double v) {
    float f = (float)v;
    uint32_t bits;
    if (isnan(v) || (double)f == v || isinf(f)) return f;
    memcpy(&bits, &f, sizeof bits);
    if (fabs((double)f) > fabs(v)) bits--; /* back towards zero */
    bits |= 1u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Stores n doubles as elements of a floating-point type, from element `at` on. */
static void write_real(int32_t dtype, void *data, int64_t at, int64_t n, const double *in) {
    switch (dtype) {
    case CNR_f32:
        EACH ((float *)data) [at + k] = (float)in[k];
        break;
    case CNR_f64:
        EACH ((double *)data) [at + k] = in[k];
        break;
    case CNR_f16:
        EACH ((uint16_t *)data) [at + k] = cnr_f32_to_f16(to_odd(in[k]));
        break;
    default:
        EACH ((uint16_t *)data) [at + k] = cnr_f32_to_bf16(to_odd(in[k]));
        break;
    }
}

/* Stores n integers from element `at` on; those that don't fit lose their high bits. */
static void write_whole(int32_t dtype, void *data, int64_t at, int64_t n, const int64_t *in) {
    if (dtype == CNR_bool) {
        EACH ((uint8_t *)data) [at + k] = in[k] != 0;
        return;
    }
    switch (cnr_dtype_bits(dtype)) {
    case 4:
        EACH
            set_nibble(data, at + k, (unsigned)in[k] & 15u);
        break;
#define X(bits) \
    case bits: \
        EACH ((uint##bits##_t *)data) [at + k] = (uint##bits##_t)in[k]; \
        break;
        X(8)
        X(16)
        X(32)
        X(64)
#undef X
    }
}

/* ---- as numbers: RUN of them at a time where one kind becomes the other ---- */

enum { RUN = 128 };

bool cnri_elements_read(int32_t dtype, const void *data, int64_t first, int64_t stride, int64_t n,
                        int32_t as, void *out) {
    if (!is_known(dtype)) return false;
    if (as == CNR_f64) read_real(dtype, data, first, stride, n, out);
    else if (as != CNR_f32 && !is_real(dtype)) read_whole(dtype, data, first, stride, n, out);
    else
        for (int64_t at = 0; at < n; at += RUN) {
            double wide[RUN];
            const int64_t end = n - at < RUN ? n : at + RUN;
            read_real(dtype, data, first + at * stride, stride, end - at, wide);
            for (int64_t k = at; k < end; k++) {
                if (as == CNR_f32) ((float *)out)[k] = (float)wide[k - at];
                else if (as == CNR_i64) ((int64_t *)out)[k] = to_i64(wide[k - at]);
                else ((uint64_t *)out)[k] = to_u64(wide[k - at]);
            }
        }
    return true;
}

/* Stores n floats: RUN of them at a time as doubles. */
static void write_floats(int32_t dtype, void *data, int64_t first, int64_t n, const float *in) {
    for (int64_t at = 0; at < n; at += RUN) {
        double wide[RUN];
        const int64_t end = n - at < RUN ? n : at + RUN;
        for (int64_t k = at; k < end; k++) wide[k - at] = (double)in[k];
        cnri_elements_write(dtype, data, first + at, end - at, CNR_f64, wide);
    }
}

bool cnri_elements_write(int32_t dtype, void *data, int64_t first, int64_t n, int32_t as,
                         const void *in) {
    if (!is_known(dtype)) return false;
    if (as == CNR_f32) {
        write_floats(dtype, data, first, n, in);
        return true;
    }
    const double *real = in;
    const int64_t *whole = in;
    if (as == CNR_f64 && is_real(dtype)) write_real(dtype, data, first, n, in);
    else if (as != CNR_f64 && !is_real(dtype)) write_whole(dtype, data, first, n, in);
    else
        for (int64_t at = 0; at < n; at += RUN) {
            double wide[RUN];
            int64_t stored[RUN];
            const int64_t end = n - at < RUN ? n : at + RUN;
            for (int64_t k = at; k < end; k++) {
                if (as == CNR_f64) stored[k - at] = stored_of(dtype, real[k]);
                else wide[k - at] = as == CNR_i64 ? (double)whole[k] : (double)(uint64_t)whole[k];
            }
            if (as == CNR_f64) write_whole(dtype, data, first + at, end - at, stored);
            else write_real(dtype, data, first + at, end - at, wide);
        }
    return true;
}

double cnri_element(int32_t dtype, const void *data, int64_t i) {
    double v = (double)NAN;
    cnri_elements_read(dtype, data, i, 1, 1, CNR_f64, &v);
    return v;
}

bool cnri_element_set(int32_t dtype, void *data, int64_t i, double value) {
    return cnri_elements_write(dtype, data, i, 1, CNR_f64, &value);
}
