/* Quantised values, and fake quantisation. */
#include "job.h"

#include <math.h>

/* real = (stored + before) * factor + behind, for one slice. Computed in double: some files have
 * ranges of 1e-38 for constants that are 0, which in float would give 0 / 0. */
typedef struct scheme {
    double before, factor, behind;
} scheme;

/* Fills *out with shift and scale that map integers of dtype to low..high, by the node's mode. 0:
 * the mode is unknown (it is neither MIN_COMBINED, MIN_FIRST nor SCALED). */
static int scheme_of(const tf_job *j, int32_t dtype, double low, double high, scheme *out) {
    const int is_signed = dtype == CNR_i8 || dtype == CNR_i16 || dtype == CNR_i32;
    const int bits = dtype == CNR_i8 || dtype == CNR_u8     ? 8
                     : dtype == CNR_i16 || dtype == CNR_u16 ? 16
                                                            : 32;
    const double steps = ldexp(1, bits) - 1, lowest = is_signed ? -ldexp(1, bits - 1) : 0;
    const double highest = lowest + steps, step = (high - low) / steps;
    *out = (scheme){-lowest, step, low};
    if (!tf_attr(j, "mode") || tf_attr_is(j, "mode", "MIN_COMBINED")) return 1;
    if (tf_attr_is(j, "mode", "MIN_FIRST")) { /* shifts the range by part of a step, so that it
                                                 represents 0 exactly */
        if (high != low) out->behind = round(low / step) * step;
        return 1;
    }
    if (!tf_attr_is(j, "mode", "SCALED")) return 0;
    const double least = lowest + (tf_attr_bool(j, "narrow_range") ? 1 : 0);
    *out = (scheme){0, is_signed ? fmax(low / least, high / highest) : high / highest, 0};
    return 1;
}

/* Floats of a constant input, and their number *n; NULL: it is none. */
static const float *floats(const tf_job *j, int32_t k, int64_t *n) {
    const cnr_tensor *t = tf_known(j->net, j->in[k]);
    *n = t && t->dtype == CNR_f32 ? cnr_count(t) : 0;
    return *n ? (const float *)t->data : NULL;
}

/* Adds a constant with a value for each slice along `axis` of a tensor of `rank`, or one for all (n
 * 1). */
static cnr_value along(tf_job *j, float *values, int64_t n, int64_t axis, int32_t rank) {
    if (n == 1) return tf_scalar(j, (double)values[0]);
    const cnr_tensor t = {.size = sizeof t,
                          .dtype = CNR_f32,
                          .rank = 1,
                          .dim = {n},
                          .data = values,
                          .flags = CNR_TENSOR_CONST,
                          .bytes = (uint64_t)n * 4};
    return tf_unsqueeze(j, imp_host->graph_constant(j->net->b.graph, NULL, &t), 1, rank - axis - 1);
}

void tf_op_dequantize(tf_job *j) {
    const cnr_value q = tf_in_plain(j, 0);
    const cnr_tensor *type = imp_type(&j->net->b, q);
    int64_t n, m, axis = tf_attr_int(j, "axis", -1), d[CNR_MAX_RANK];
    const float *low = floats(j, 1, &n), *high = floats(j, 2, &m);
    const int32_t rank = tf_in_dims(j, 0, d), dtype = type ? type->dtype : 0;
    if (dtype != CNR_u8 && dtype != CNR_i8 && dtype != CNR_u16 && dtype != CNR_i16 &&
        dtype != CNR_i32)
        return tf_problem(j, "8 to 32 bits are wanted");
    if (!n || n != m || (n > 1 && (axis < 0 || axis >= rank || d[axis] != n)))
        return tf_problem(j, "its range is not a known constant of the right size");
    float *parts = (float *)tf_block(j->net, (size_t)n * 3 * sizeof *parts);
    if (!parts) return;
    for (int64_t i = 0; i < n; i++) {
        scheme s;
        if (!scheme_of(j, dtype, (double)low[i], (double)high[i], &s))
            return tf_problem(j, "only the modes MIN_COMBINED, MIN_FIRST and SCALED are supported");
        parts[i] = (float)s.factor;
        parts[n + i] = (float)(s.before * s.factor + s.behind);
    }
    cnr_value x = tf_cast(j, q, CNR_f32);
    x = tf_step(j, "mul", (cnr_value[]){x, along(j, parts, n, axis, rank)}, 2, NULL);
    x = tf_last(j, "add", (cnr_value[]){x, along(j, parts + n, n, axis, rank)}, 2, NULL);
    const int32_t to = tf_attr_dtype(j, "dtype");
    tf_give(j, 0, to ? tf_cast(j, x, to) : x);
}

/* round(clip(x)) to 2^bits levels, shifted so that 0 is a level. */
void tf_op_fake_quantize(tf_job *j) {
    const int64_t bits = tf_attr_int(j, "num_bits", 8);
    const int args = j->n_in < 3;
    const float own[] = {(float)tf_attr_float(j, "min", -6), (float)tf_attr_float(j, "max", 6)};
    int64_t n = 1, m = 1, d[CNR_MAX_RANK];
    const float *low = args ? &own[0] : floats(j, 1, &n), *high = args ? &own[1] : floats(j, 2, &m);
    const int32_t rank = tf_in_dims(j, 0, d);
    if (bits < 2 || bits > 16 || !n || n != m || (n > 1 && (rank < 1 || d[rank - 1] != n)))
        return tf_problem(j, "its range is not a known constant of the right size");
    const double least = tf_attr_bool(j, "narrow_range") ? 1 : 0, most = ldexp(1, (int)bits) - 1;
    float *parts = (float *)tf_block(j->net, (size_t)n * 3 * sizeof *parts);
    if (!parts) return;
    for (int64_t i = 0; i < n; i++) { /* step, lowest and highest value */
        const double step = ((double)high[i] - (double)low[i]) / (most - least);
        const double zero = step > 0 ? least - (double)low[i] / step : 0;
        const double nudged = zero < least ? least : zero > most ? most : floor(zero + 0.5);
        parts[i] = (float)step;
        parts[n + i] = (float)((least - nudged) * step);
        parts[2 * n + i] = (float)((most - nudged) * step);
    }
    const int64_t axis = rank - 1;
    cnr_value x = tf_in_plain(j, 0), step = along(j, parts, n, axis, rank);
    const cnr_value bottom = along(j, parts + n, n, axis, rank);
    x = tf_step(j, "max", (cnr_value[]){x, bottom}, 2, NULL);
    x = tf_step(j, "min", (cnr_value[]){x, along(j, parts + 2 * n, n, axis, rank)}, 2, NULL);
    x = tf_step(j, "sub", (cnr_value[]){x, bottom}, 2, NULL);
    x = tf_step(j, "div", (cnr_value[]){x, step}, 2, NULL);
    x = tf_step(j, "add", (cnr_value[]){x, tf_scalar(j, 0.5)}, 2, NULL);
    x = tf_step(j, "floor", &x, 1, NULL);
    x = tf_step(j, "mul", (cnr_value[]){x, step}, 2, NULL);
    tf_give(j, 0, tf_last(j, "add", (cnr_value[]){x, bottom}, 2, NULL));
}
