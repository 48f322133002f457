/* Draws values, and converts channel blocks. */
#include "judge/judge.h"
#include <math.h>

double cnri_dtype_epsilon(int32_t dtype) {
    static const struct {
        int32_t dtype;
        double epsilon;
    } floats[] = {{CNR_f32, 0x1p-23}, {CNR_f64, 0x1p-52}, {CNR_f16, 0x1p-10}, {CNR_bf16, 0x1p-7}};
    for (size_t i = 0; i < CNRI_COUNT(floats); i++)
        if (floats[i].dtype == dtype) return floats[i].epsilon;
    return 0;
}

bool cnri_dtype_floats(int32_t dtype) { return cnri_dtype_epsilon(dtype) > 0; }

/* True for whole numbers that can be below 0. */
static bool is_signed(int32_t dtype) {
    return dtype == CNR_i4 || dtype == CNR_i8 || dtype == CNR_i16 || dtype == CNR_i32 ||
           dtype == CNR_i64;
}

/* Draws a float on a grid of 2^-12, so that f16 holds most of its digits and ties are rare. */
static double draw_float(cnri_values values, cnri_dice *dice) {
    const double u = (double)cnri_dice_below(dice, 16384) / 4096 - 2; /* -2 to 2 */
    if (values == CNRI_VALUES_POSITIVE) return u < 0 ? 0.1 - u : 0.1 + u;
    if (values == CNRI_VALUES_SPARSE && cnri_dice_chance(dice, 70)) return 0;
    return values == CNRI_VALUES_MIDDLE ? 0 : u;
}

/* Draws an integer within the range of a type, by the kind of values. */
static double draw_integer(int32_t dtype, cnri_values values, cnri_dice *dice) {
    const int32_t bits = (int32_t)cnr_dtype_bits(dtype);
    const bool negative = is_signed(dtype);
    if (values == CNRI_VALUES_MIDDLE) return negative || bits > 16 ? 0 : (double)(1 << (bits - 1));
    if (dtype == CNR_bool) return (double)cnri_dice_below(dice, 2);
    if (values == CNRI_VALUES_WIDE && bits <= 8) {
        const int64_t span = (int64_t)1 << bits;
        return (double)(cnri_dice_below(dice, span) - (negative ? span / 2 : 0));
    }
    if (values == CNRI_VALUES_SPARSE && cnri_dice_chance(dice, 70)) return 0;
    if (values == CNRI_VALUES_SIGNED && negative) return (double)(cnri_dice_below(dice, 7) - 3);
    return (double)cnri_dice_below(dice, 4);
}

void cnri_values_fill(cnr_tensor *t, cnri_values values, const int64_t *list, cnri_dice *dice) {
    enum { PART = 256 };
    double v[PART];
    const int64_t n = cnr_count(t);
    const bool floats = cnri_dtype_floats(t->dtype), negative = floats || is_signed(t->dtype);
    for (int64_t at = 0, end; at < n; at = end) {
        end = n - at < PART ? n : at + PART;
        for (int64_t i = at; i < end; i++) {
            const double one = values == CNRI_VALUES_LIST ? (double)list[i % CNRI_CHECK_LIST]
                               : floats                   ? draw_float(values, dice)
                                                          : draw_integer(t->dtype, values, dice);
            v[i - at] = negative ? one : fabs(one);
        }
        cnri_elements_write(t->dtype, t->data, at, end - at, CNR_f64, v);
    }
}

/* Returns the smallest normal number of a float type. */
static double least_normal(int32_t dtype) {
    return dtype == CNR_f64 ? 0x1p-1022 : dtype == CNR_f16 ? 0x1p-14 : 0x1p-126;
}

/* Replaces a few elements of a float tensor, in place, by NaN, infinities, denormals and -0;
 * nothing for other types. */
void cnri_values_specials(cnr_tensor *t, cnri_dice *dice) {
    const int64_t n = cnr_count(t);
    if (!cnri_dtype_floats(t->dtype) || n < 1) return;
    const double denormal = least_normal(t->dtype) * 0.75;
    const double inf = (double)INFINITY, nan = (double)NAN;
    const double kinds[] = {nan, nan, inf, -inf, denormal, -denormal, -0.0};
    for (int64_t k = 1 + cnri_dice_below(dice, n < 40 ? 2 : 8); k > 0; k--) /* the last is NaN */
        cnri_element_set(t->dtype, t->data, cnri_dice_below(dice, n),
                         kinds[k == 1 ? 0 : cnri_dice_below(dice, CNRI_COUNT(kinds))]);
}

void cnri_values_flush(cnr_tensor *t) {
    const int64_t n = cnri_dtype_floats(t->dtype) ? cnr_count(t) : 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = cnri_number_at(t, i);
        if (v != 0 && fabs(v) < least_normal(t->dtype)) cnri_element_set(t->dtype, t->data, i, 0);
    }
}

void cnri_values_ordinary(cnr_tensor *t, cnri_dice *dice) {
    const int64_t n = cnri_dtype_floats(t->dtype) ? cnr_count(t) : 0;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(cnri_number_at(t, i)))
            cnri_element_set(t->dtype, t->data, i, draw_float(CNRI_VALUES_SIGNED, dice));
}

void cnri_values_block(const cnr_tensor *type, const void *from, int32_t from_block, void *to,
                       int32_t to_block) {
    const size_t size = cnr_dtype_bits(type->dtype) / 8;
    const int64_t fb = from_block > 1 ? from_block : 1, tb = to_block > 1 ? to_block : 1;
    if (fb == tb) {
        memcpy(to, from, (size_t)cnr_dense_bytes(type));
        return;
    }
    const int64_t channels = type->dim[1], inner = cnr_span(type, 2, type->rank);
    for (int64_t n = 0; n < type->dim[0]; n++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < inner; i++) {
                const int64_t base = n * channels * inner;
                const int64_t a = base + (c / fb * inner + i) * fb + c % fb;
                const int64_t b = base + (c / tb * inner + i) * tb + c % tb;
                memcpy((char *)to + (size_t)b * size, (const char *)from + (size_t)a * size, size);
            }
}
