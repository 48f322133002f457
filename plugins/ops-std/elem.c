/* Elements of any data type as double, int64 or uint64, in runs. */
#include "elem.h"

#include <math.h>

static int64_t to_i64(double v) {
    if (isnan(v)) return 0;
    if (v >= 9223372036854775808.0) return INT64_MAX;
    if (v < -9223372036854775808.0) return INT64_MIN;
    return (int64_t)v;
}

static uint64_t to_u64(double v) {
    if (isnan(v) || v <= -1) return v < 0 ? (uint64_t)to_i64(v) : 0;
    return v >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)v;
}

static int nibble(const void *data, int64_t at) {
    return ((const uint8_t *)data)[at >> 1] >> ((at & 1) * 4) & 15;
}

static void set_nibble(void *data, int64_t at, unsigned value) {
    uint8_t *byte = (uint8_t *)data + (at >> 1);
    const int shift = (int)(at & 1) * 4;
    *byte = (uint8_t)((*byte & ~(15u << shift)) | (value & 15u) << shift);
}

/* The types that C has: name, C type. */
#define PLAIN(X)                                                                       \
    X(f32, float) X(f64, double) X(i8, int8_t) X(u8, uint8_t) X(i16, int16_t)           \
    X(u16, uint16_t) X(i32, int32_t) X(u32, uint32_t) X(i64, int64_t) X(u64, uint64_t) \
    X(bool, uint8_t)

static void load_f(int32_t dtype, const void *data, int64_t at, int64_t step, int64_t n,
                   double *out) {
    switch (dtype) {
#define X(name, type)                                                                       \
    case CNR_##name:                                                                        \
        for (int64_t k = 0; k < n; k++) out[k] = (double)((const type *)data)[at + k * step]; \
        return;
        PLAIN(X)
#undef X
    case CNR_f16:
        for (int64_t k = 0; k < n; k++)
            out[k] = cnr_f16_to_f32(((const uint16_t *)data)[at + k * step]);
        return;
    case CNR_bf16:
        for (int64_t k = 0; k < n; k++)
            out[k] = cnr_bf16_to_f32(((const uint16_t *)data)[at + k * step]);
        return;
    case CNR_u4:
        for (int64_t k = 0; k < n; k++) out[k] = nibble(data, at + k * step);
        return;
    case CNR_i4:
        for (int64_t k = 0; k < n; k++) out[k] = (nibble(data, at + k * step) ^ 8) - 8;
        return;
    default: return;
    }
}

static void load_i(int32_t dtype, const void *data, int64_t at, int64_t step, int64_t n,
                   int64_t *out) {
    switch (dtype) {
#define X(name, type)                                                                        \
    case CNR_##name:                                                                         \
        for (int64_t k = 0; k < n; k++) out[k] = (int64_t)((const type *)data)[at + k * step]; \
        return;
        X(i8, int8_t) X(u8, uint8_t) X(i16, int16_t) X(u16, uint16_t) X(i32, int32_t)
        X(u32, uint32_t) X(i64, int64_t) X(u64, uint64_t) X(bool, uint8_t)
#undef X
    case CNR_u4:
        for (int64_t k = 0; k < n; k++) out[k] = nibble(data, at + k * step);
        return;
    case CNR_i4:
        for (int64_t k = 0; k < n; k++) out[k] = (nibble(data, at + k * step) ^ 8) - 8;
        return;
    default: return;
    }
}

void elem_load(int32_t dtype, const void *data, int64_t first, int64_t stride, int64_t n,
               elem_domain domain, elem_run *out) {
    if (domain == ELEM_F) {
        load_f(dtype, data, first, stride, n, out->f);
    } else if (elem_in(dtype, OPS_FLOATS)) {
        double wide[ELEM_RUN];
        load_f(dtype, data, first, stride, n, wide);
        if (domain == ELEM_I)
            for (int64_t k = 0; k < n; k++) out->i[k] = to_i64(wide[k]);
        else
            for (int64_t k = 0; k < n; k++) out->u[k] = to_u64(wide[k]);
    } else {
        load_i(dtype, data, first, stride, n, out->i);
    }
}

static void store_f(int32_t dtype, void *data, int64_t n, const double *in) {
    switch (dtype) {
    case CNR_f32:
        for (int64_t k = 0; k < n; k++) ((float *)data)[k] = (float)in[k];
        return;
    case CNR_f64: memcpy(data, in, (size_t)n * sizeof *in); return;
    case CNR_f16:
        for (int64_t k = 0; k < n; k++) ((uint16_t *)data)[k] = ops_f64_to_f16(in[k]);
        return;
    case CNR_bf16:
        for (int64_t k = 0; k < n; k++) ((uint16_t *)data)[k] = ops_f64_to_bf16(in[k]);
        return;
    default: return;
    }
}

static void store_i(int32_t dtype, void *data, int64_t first, int64_t n, const int64_t *in) {
    switch (dtype) {
#define X(name, type)                                                                    \
    case CNR_##name:                                                                     \
        for (int64_t k = 0; k < n; k++) ((type *)data)[first + k] = (type)(uint64_t)in[k]; \
        return;
        X(i8, int8_t) X(u8, uint8_t) X(i16, int16_t) X(u16, uint16_t) X(i32, int32_t)
        X(u32, uint32_t) X(i64, int64_t) X(u64, uint64_t)
#undef X
    case CNR_bool:
        for (int64_t k = 0; k < n; k++) ((uint8_t *)data)[first + k] = in[k] != 0;
        return;
    case CNR_i4: case CNR_u4:
        for (int64_t k = 0; k < n; k++) set_nibble(data, first + k, (unsigned)in[k] & 15u);
        return;
    default: return;
    }
}

void elem_store(int32_t dtype, void *data, int64_t first, int64_t n, elem_domain domain,
                const elem_run *in) {
    if (elem_in(dtype, OPS_FLOATS)) {
        void *at = (uint8_t *)data + (uint64_t)first * (cnr_dtype_bits(dtype) / 8);
        double wide[ELEM_RUN];
        if (domain == ELEM_F) {
            store_f(dtype, at, n, in->f);
            return;
        }
        for (int64_t k = 0; k < n; k++)
            wide[k] = domain == ELEM_I ? (double)in->i[k] : (double)in->u[k];
        store_f(dtype, at, n, wide);
        return;
    }
    if (domain != ELEM_F) {
        store_i(dtype, data, first, n, in->i);
        return;
    }
    int64_t whole[ELEM_RUN];
    for (int64_t k = 0; k < n; k++) {
        if (dtype == CNR_bool) whole[k] = in->f[k] != 0;
        else if (dtype == CNR_u64) whole[k] = (int64_t)to_u64(in->f[k]);
        else whole[k] = to_i64(in->f[k]);
    }
    store_i(dtype, data, first, n, whole);
}

double elem_f64(const cnr_tensor *t, int64_t index) {
    elem_run run;
    elem_load(t->dtype, t->data, index, 0, 1, ELEM_F, &run);
    return run.f[0];
}

int64_t elem_i64(const cnr_tensor *t, int64_t index) {
    elem_run run;
    elem_load(t->dtype, t->data, index, 0, 1, ELEM_I, &run);
    return run.i[0];
}

void elem_set_f64(const cnr_tensor *t, int64_t index, double value) {
    elem_run run;
    run.f[0] = value;
    elem_store(t->dtype, t->data, index, 1, ELEM_F, &run);
}

void elem_set_i64(const cnr_tensor *t, int64_t index, int64_t value) {
    elem_run run;
    run.i[0] = value;
    elem_store(t->dtype, t->data, index, 1, ELEM_I, &run);
}
