/* Promises about numbers: operators that say they scale and shift channels, are linear in a
 * weight, pass their input on, or add. */
#include "judge/judge.h"
#include <math.h>

const char *cnri_promise_name(int32_t promise) {
    static const char *const names[] = {
/* Text of one promise. */
#define X(name, text) text,
        CNRI_PROMISE_LIST(X)
#undef X
    };
    return promise >= 0 && promise < CNRI_PROMISES ? names[promise] : "";
}

bool cnri_promise_fails(cnri_promise which, cnri_text *why) {
    cnri_text_add(why, " (%s)", cnri_promise_name(which));
    return false;
}

/* Notes that a promise is made and was judged. */
static void promised(cnri_promises *p, cnri_promise which) {
    p->made |= 1u << which;
    p->judged |= 1u << which;
}

static double at(const cnr_tensor *t, int64_t i) { return cnri_element(t->dtype, t->data, i); }

/* True if `got` is near output 0's element i. `slack` is in units of single precision, in which
 * scales and shifts are stored. */
static bool near(const cnri_case *c, int64_t i, double got, double slack, cnri_text *why) {
    const cnr_tensor *y = &c->out[0];
    const double want = at(y, i), bound = c->bound[0] ? c->bound[0][i] : 0;
    if (got == want || isnan(want) || isinf(want)) return true;
    if (fabs(got - want) <= bound + slack * 0x1p-23) return true;
    cnri_text_add(why, "element %lld of output 0 should be %.9g, the reference gives %.9g",
                  (long long)i, got, want);
    return false;
}

/* False, with why: scale and shift per channel, as the operator tells them, don't give its
 * output. */
static bool judge_channels(const cnri_case *c, cnri_promises *p, cnri_text *why) {
    const cnr_tensor *x = c->inputs[0], *y = &c->out[0];
    const cnr_op *op = c->node.desc;
    if (!CNRI_HAS(op, channel_affine)) return true;
    p->made |= 1u << CNRI_PROMISE_AFFINE;
    if (!x || y->rank < 2 || y->dim[1] < 1 || !cnr_same_shape(x, y)) return true;
    const int64_t channels = y->dim[1], inner = cnr_span(y, 2, y->rank), n = cnr_count(y);
    float *scale = cnri_alloc((size_t)channels * 2 * sizeof *scale), *shift = scale + channels;
    bool good = true;
    if (scale && op->channel_affine(&c->node, channels, scale, shift) == 1) {
        promised(p, CNRI_PROMISE_AFFINE);
        for (int64_t i = 0; i < n && good; i++) {
            const double a = at(x, i) * scale[i / inner % channels],
                         b = shift[i / inner % channels];
            good = near(c, i, a + b, 8 * (fabs(a) + fabs(b)), why);
        }
    }
    cnri_free(scale);
    return good ? true : cnri_promise_fails(CNRI_PROMISE_AFFINE, why);
}

/* ---- linear in a weight ---- */

/* Returns a signed power of two for a channel, which multiplies exactly. */
static double factor(int64_t channel) {
    static const double factors[] = {2, -1, 0.5, -4, 1};
    return factors[channel % (int64_t)CNRI_COUNT(factors)];
}

/* Scales each slice of a weight along an axis by a factor of its own. */
static void scale_slices(cnr_tensor *w, int32_t axis) {
    const int64_t n = cnr_count(w), inner = cnr_span(w, axis + 1, w->rank);
    for (int64_t i = 0; i < n; i++)
        cnri_element_set(w->dtype, w->data, i, at(w, i) * factor(i / inner % w->dim[axis]));
}

/* Compares the reference with scaled weights and bias against the scaled output in y; false, with
 * why. */
static bool judge_scaled(cnri_case *c, const cnr_linear *l, cnr_tensor *y, cnri_text *why) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *outs[1] = {y};
    const cnr_tensor *seen[1] = {y};
    cnr_node node = c->node;
    node.outputs = seen;
    scale_slices(&c->in[l->weight_port], l->weight_axis);
    if (l->bias_port >= 0 && l->bias_port < node.n_inputs && c->inputs[l->bias_port])
        scale_slices(&c->in[l->bias_port], 0);
    if (cnri_judge_call(&node, outs, &err)) {
        cnri_text_add(why, "the reference fails on scaled weights: %s", err.text);
        return false;
    }
    const int64_t n = cnr_count(y), inner = cnr_span(y, 2, y->rank);
    for (int64_t i = 0; i < n; i++) {
        const double f = factor(i / inner % y->dim[1]);
        if (!near(c, i, at(y, i) / f, 8 * fabs(at(&c->out[0], i)), why)) return false;
    }
    return true;
}

/* False, with why: scaled weights don't scale the output, as a linear operator promises. */
static bool judge_linear(cnri_case *c, cnri_promises *p, cnri_text *why) {
    cnr_linear l = {0};
    const cnr_op *op = c->node.desc;
    cnr_tensor y = c->out[0];
    if (!CNRI_HAS(op, linear)) return true;
    p->made |= 1u << CNRI_PROMISE_LINEAR;
    if (c->node.n_outputs != 1 || y.rank < 2 || !cnri_dtype_floats(y.dtype)) return true;
    if (op->linear(&c->node, &l) != 1) return true;
    const cnr_tensor *w =
        l.weight_port >= 0 && l.weight_port < c->node.n_inputs ? c->inputs[l.weight_port] : NULL;
    if (!w || l.weight_axis < 0 || l.weight_axis >= w->rank || w->dtype != y.dtype) return true;
    const cnr_tensor *b =
        l.bias_port >= 0 && l.bias_port < c->node.n_inputs ? c->inputs[l.bias_port] : NULL;
    if (w->dim[l.weight_axis] != y.dim[1] || (b && (b->rank != 1 || b->dim[0] != y.dim[1])))
        return true;
    const size_t bytes = (size_t)cnr_dense_bytes(&y), weight = (size_t)cnr_dense_bytes(w);
    const size_t bias = b ? (size_t)cnr_dense_bytes(b) : 0;
    uint8_t *kept = cnri_alloc(bytes + weight + bias + 1);
    if (!kept) return true;
    y.data = kept;
    memcpy(kept + bytes, w->data, weight);
    if (b) memcpy(kept + bytes + weight, b->data, bias);
    promised(p, CNRI_PROMISE_LINEAR);
    const bool good = judge_scaled(c, &l, &y, why);
    memcpy(w->data, kept + bytes, weight);
    if (b) memcpy(b->data, kept + bytes + weight, bias);
    cnri_free(kept);
    return good ? true : cnri_promise_fails(CNRI_PROMISE_LINEAR, why);
}

/* ---- flags ---- */

/* False, with why: an operator with CNR_OP_ADDS isn't the sum of its inputs. */
static bool judge_sum(const cnri_case *c, cnri_promises *p, cnri_text *why) {
    const cnr_tensor *y = &c->out[0];
    if (!(c->node.desc->flags & CNR_OP_ADDS)) return true;
    p->made |= 1u << CNRI_PROMISE_ADDS;
    for (int32_t k = 0; k < c->node.n_inputs; k++)
        if (!c->inputs[k] || !cnr_same_shape(c->inputs[k], y) || !cnri_dtype_floats(y->dtype))
            return true;
    promised(p, CNRI_PROMISE_ADDS);
    const int64_t n = cnr_count(y);
    for (int64_t i = 0; i < n; i++) {
        double sum = 0, size = 0;
        for (int32_t k = 0; k < c->node.n_inputs; k++) {
            sum += at(c->inputs[k], i);
            size += fabs(at(c->inputs[k], i));
        }
        if (!near(c, i, sum, 8 * size, why)) return cnri_promise_fails(CNRI_PROMISE_ADDS, why);
    }
    return true;
}

/* False, with why: an operator with CNR_OP_PASS doesn't give its input. */
static bool judge_pass(const cnri_case *c, cnri_promises *p, cnri_text *why) {
    const cnr_tensor *x = c->inputs[0], *y = &c->out[0];
    if (!(c->node.desc->flags & CNR_OP_PASS)) return true;
    promised(p, CNRI_PROMISE_PASS);
    bool same = x && x->dtype == y->dtype && cnr_same_shape(x, y);
    for (int64_t i = 0; same && i < cnr_count(y); i++)
        same = at(x, i) == at(y, i) || (isnan(at(x, i)) && isnan(at(y, i)));
    if (same) return true;
    cnri_text_add(why, "output 0 is not input 0");
    return cnri_promise_fails(CNRI_PROMISE_PASS, why);
}

bool cnri_affine_run(cnri_case *c, cnri_promises *which, cnri_text *why) {
    return judge_channels(c, which, why) && judge_linear(c, which, why) &&
           judge_sum(c, which, why) && judge_pass(c, which, why);
}
