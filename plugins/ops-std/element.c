/* Conversions of single elements that are too long to inline, and plain copies. */
#include "ops.h"

#define CLAMPED(type, low, high) \
    (((type *)p)[i] = v <= (double)(low) ? (low) : v >= (double)(high) ? (high) : (type)v)

void ops_put_integer(int32_t dtype, void *p, int64_t i, double v) {
    if (v != v) v = 0;
    switch (dtype) {
    case CNR_i8: CLAMPED(int8_t, INT8_MIN, INT8_MAX); break;
    case CNR_u8: CLAMPED(uint8_t, 0, UINT8_MAX); break;
    case CNR_i16: CLAMPED(int16_t, INT16_MIN, INT16_MAX); break;
    case CNR_u16: CLAMPED(uint16_t, 0, UINT16_MAX); break;
    case CNR_i32: CLAMPED(int32_t, INT32_MIN, INT32_MAX); break;
    case CNR_u32: CLAMPED(uint32_t, 0, UINT32_MAX); break;
    case CNR_i64: CLAMPED(int64_t, INT64_MIN, INT64_MAX); break;
    case CNR_u64: CLAMPED(uint64_t, 0, UINT64_MAX); break;
    case CNR_bool: ((uint8_t *)p)[i] = v != 0; break;
    default: break;
    }
}

/* Rounded to odd: the float keeps in its last bit that something was cut off, so that rounding it
 * once more to fewer bits gives what rounding the double at once would. */
static float to_odd(double v) {
    float f = (float)v;
    uint32_t bits;
    if (v != v || (double)f == v || isinf(f)) return f;
    memcpy(&bits, &f, sizeof bits);
    if (fabs((double)f) > fabs(v)) bits--; /* back towards zero */
    bits |= 1u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

uint16_t ops_f64_to_f16(double v) {
    return cnr_f32_to_f16(to_odd(v));
}

uint16_t ops_f64_to_bf16(double v) {
    return cnr_f32_to_bf16(to_odd(v));
}

cnr_status ops_reference_copy(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    (void)err;
    if (x->data != y->data && cnr_count(x) > 0)
        memcpy(y->data, x->data, (size_t)cnr_dense_bytes(x));
    return CNR_OK;
}
