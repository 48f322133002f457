/* Elements of any type as numbers: the only place in the core that knows how each is stored. */
#include "core/base/base.h"
#include <math.h>

/* Cut to the type's range; a NaN becomes 0. */
static double cut(double v, double low, double high) {
    return isnan(v) ? 0 : v < low ? low : v > high ? high : v;
}

#define STORED(name, type, from, to)                                                           \
    static double read_##name(const void *data, int64_t i) {                                   \
        const type v = ((const type *)data)[i];                                                \
        return from;                                                                           \
    }                                                                                          \
    static void write_##name(void *data, int64_t i, double v) { ((type *)data)[i] = (type)(to); }
#define INTEGER(name, type, low, high) STORED(name, type, (double)v, cut(v, low, high))

STORED(f32, float, (double)v, v)
STORED(f64, double, v, v)
STORED(f16, uint16_t, (double)cnr_f16_to_f32(v), cnr_f32_to_f16((float)v))
STORED(bf16, uint16_t, (double)cnr_bf16_to_f32(v), cnr_f32_to_bf16((float)v))
STORED(bool, uint8_t, (double)v, v != 0)
INTEGER(i8, int8_t, INT8_MIN, INT8_MAX)
INTEGER(u8, uint8_t, 0, UINT8_MAX)
INTEGER(i16, int16_t, INT16_MIN, INT16_MAX)
INTEGER(u16, uint16_t, 0, UINT16_MAX)
INTEGER(i32, int32_t, INT32_MIN, INT32_MAX)
INTEGER(u32, uint32_t, 0, UINT32_MAX)
/* the largest doubles below 2^63 and 2^64 */
INTEGER(i64, int64_t, -0x1p63, 0x1.fffffffffffffp62)
INTEGER(u64, uint64_t, 0, 0x1.fffffffffffffp63)

/* Two a byte, the first in the low bits. */
static int32_t nibble(const void *data, int64_t i) {
    return ((const uint8_t *)data)[i / 2] >> (i % 2 * 4) & 15;
}

static void set_nibble(void *data, int64_t i, int32_t v) {
    uint8_t *byte = (uint8_t *)data + i / 2;
    const int32_t shift = (int32_t)(i % 2 * 4);
    *byte = (uint8_t)((*byte & ~(15 << shift)) | (v & 15) << shift);
}

static double read_u4(const void *data, int64_t i) { return nibble(data, i); }
static double read_i4(const void *data, int64_t i) { return (nibble(data, i) ^ 8) - 8; }
static void write_u4(void *data, int64_t i, double v) { set_nibble(data, i, (int32_t)cut(v, 0, 15)); }
static void write_i4(void *data, int64_t i, double v) { set_nibble(data, i, (int32_t)cut(v, -8, 7)); }

static const struct {
    double (*read)(const void *data, int64_t i);
    void (*write)(void *data, int64_t i, double v);
} stored[] = {
#define X(name, value, bits) [value] = {read_##name, write_##name},
    CNR_DTYPE_LIST(X)
#undef X
};

static bool is_known(int32_t dtype) {
    return dtype > 0 && dtype < (int32_t)CNRI_COUNT(stored) && stored[dtype].read;
}

double cnri_element(int32_t dtype, const void *data, int64_t i) {
    return is_known(dtype) ? stored[dtype].read(data, i) : (double)NAN;
}

bool cnri_element_set(int32_t dtype, void *data, int64_t i, double value) {
    if (!is_known(dtype)) return false;
    stored[dtype].write(data, i, value);
    return true;
}
