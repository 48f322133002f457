/* The judge: runs the reference, computes how far a correct kernel may be from it, and compares. */
#include "judge/judge.h"
#include <math.h>

/* Fills err: out of memory. */
static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "kernelcheck", "out of memory");
}

/* Calls the reference for a range of an axis; axis -1: for all. */
static cnr_status call_range(const cnr_node *node, cnr_tensor *const *outputs, int32_t axis,
                             int64_t begin, int64_t end, cnr_error *err) {
    const cnr_op *op = node->desc;
    const uint64_t bytes = CNRI_HAS(op, reference_workspace) ? op->reference_workspace(node) : 0;
    if (bytes > UINT64_C(1) << 30)
        return cnri_fail(err, CNR_E_LIMIT, op->name,
                         "the reference wants too much memory for a case");
    void *work = bytes ? cnri_alloc((size_t)bytes) : NULL;
    if (bytes && !work) return no_memory(err);
    const cnr_mem mem = {.handle = work, .bytes = bytes};
    const cnr_run run = {.size = sizeof run,
                         .range_axis = axis,
                         .range_begin = begin,
                         .range_end = end,
                         .node = node,
                         .outputs = outputs,
                         .workspace = bytes ? &mem : NULL,
                         .workspace_data = work};
    const cnr_status status = op->reference(&run, err);
    cnri_free(work);
    return status;
}

cnr_status cnri_judge_call(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    return call_range(node, outputs, -1, 0, 0, err);
}

/* ---- how far ---- */

/* Largest absolute value that is finite; 0: none, or no floats. */
static double largest(const cnr_tensor *t) {
    double most = 0;
    const int64_t n = t && t->data && cnri_dtype_floats(t->dtype) ? cnr_count(t) : 0;
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs(cnri_number_at(t, i));
        if (v > most && isfinite(v)) most = v;
    }
    return most;
}

/* Bound on rounding of sums: the number of terms times their size, which is the operands'
 * product if the operator multiplies and accumulates. Adding terms of one sign one by one is off
 * by the power 1.5 of their number. */
static double rounding(const cnr_node *node) {
    double first = 0, second = 0;
    cnr_cost cost = {0};
    if (CNRI_HAS(node->desc, cost)) node->desc->cost(node, &cost);
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const double v = largest(node->inputs[i]);
        if (v > first) {
            second = first;
            first = v;
        } else if (v > second) second = v;
    }
    const double outputs = (double)cnr_count(node->outputs[0]);
    const double terms = ((double)cost.macs + (double)cost.flops) / (outputs > 1 ? outputs : 1);
    const double size = cost.macs && second > 0 ? first * second + first : first;
    return (8 + terms * fmax(1, sqrt(terms) / 12)) * size;
}

/* Changes every float by two units in its last place, up or down (dice NULL: away from 0). The
 * effect on the results shows what rounding inside a kernel may do. */
static void shake(cnr_tensor *t, cnri_dice *dice) {
    const int64_t n = cnr_count(t);
    const double by = 2 * cnri_dtype_epsilon(t->dtype);
    for (int64_t i = 0; i < n; i++) {
        const double v = cnri_number_at(t, i);
        cnri_element_set(t->dtype, t->data, i,
                         v * (!dice || cnri_dice_next(dice) >> 40 & 1 ? 1 + by : 1 - by));
    }
}

/* Adds the differences of two tensors to the bounds, times a factor. */
static void add_difference(double *bound, const cnr_tensor *a, const cnr_tensor *b, double times) {
    const int64_t n = cnr_count(a);
    for (int64_t i = 0; i < n; i++) {
        const double x = cnri_number_at(a, i);
        const double y = cnri_number_at(b, i);
        if (x != y && !(isnan(x) && isnan(y))) bound[i] += times * fabs(x - y);
    }
}

/* Makes a tensor of the same type in *out, with memory that the caller frees, zero or a copy;
 * false: out of memory. */
static bool one_like(const cnr_tensor *t, cnr_tensor *out, bool copy) {
    const size_t bytes = (size_t)cnr_dense_bytes(t);
    *out = *t;
    out->data = cnri_alloc_zero(bytes + 1);
    if (out->data && copy) memcpy(out->data, t->data, bytes);
    return out->data != NULL;
}

/* Runs the reference of the case's node, possibly on other memory, for the ranges that are
 * judged. */
static cnr_status call(const cnri_case *c, const cnr_node *node, cnr_tensor *const *outputs,
                       cnr_error *err) {
    cnr_status status = c->n_parts ? CNR_OK : cnri_judge_call(node, outputs, err);
    for (int32_t k = 0; k < c->n_parts && !status; k++)
        status = call_range(node, outputs, c->part_axis, c->parts[k][0], c->parts[k][1], err);
    return status;
}

/* Ways to change the inputs. SHAKE: each number a little. SWELL: all numbers in one direction,
 * which sums of squares grow by while SHAKE cancels. FLUSH: denormals become 0, as devices may
 * treat them; a result that depends on that may be either. ORDINARY: ordinary numbers replace
 * NaN and infinities. */
typedef enum change { CHANGE_SHAKE, CHANGE_SWELL, CHANGE_FLUSH, CHANGE_ORDINARY } change;

/* Changes an input in one of the ways. */
static void change_input(cnr_tensor *t, change how, cnri_dice *dice) {
    if (how <= CHANGE_SWELL) shake(t, how == CHANGE_SHAKE ? dice : NULL);
    else if (how == CHANGE_FLUSH) cnri_values_flush(t);
    else cnri_values_ordinary(t, dice);
}

/* Adds to the bounds what changed inputs do to the outputs. ORDINARY: stores output 0 in
 * c->skipped instead. */
static cnr_status add_conditioning(cnri_case *c, change how, cnri_dice *dice) {
    cnr_tensor was[CNRI_CHECK_PORTS] = {0}, out[CNRI_CHECK_PORTS] = {0}, *outs[CNRI_CHECK_PORTS];
    const cnr_tensor *seen[CNRI_CHECK_PORTS];
    cnr_node node = c->node;
    cnr_error err = CNR_ERROR_INIT;
    bool good = true;
    node.outputs = seen;
    for (int32_t i = 0; i < node.n_outputs && good; i++) {
        good = one_like(&c->out[i], &out[i], false);
        seen[i] = outs[i] = &out[i];
    }
    for (int32_t i = 0; i < node.n_inputs && good; i++) {
        if (!c->inputs[i] || c->listed[i] || !cnri_dtype_floats(c->in[i].dtype)) continue;
        if ((good = one_like(&c->in[i], &was[i], true))) change_input(&c->in[i], how, dice);
    }
    const bool called = good && call(c, &node, outs, &err) == CNR_OK;
    for (int32_t i = 0; called && how != CHANGE_ORDINARY && i < node.n_outputs; i++)
        if (c->bound[i] && cnr_same_shape(&out[i], &c->out[i]))
            add_difference(c->bound[i], &c->out[i], &out[i], how <= CHANGE_SWELL ? 4 : 1);
    if (called && how == CHANGE_ORDINARY && cnr_same_shape(&out[0], &c->out[0])) {
        cnri_free(c->skipped.data);
        c->skipped = out[0];
        out[0].data = NULL;
    }
    for (int32_t i = 0; i < CNRI_CHECK_PORTS; i++) {
        cnri_free(out[i].data);
        if (!was[i].data) continue;
        memcpy(c->in[i].data, was[i].data, (size_t)cnr_dense_bytes(&was[i]));
        cnri_free(was[i].data);
    }
    return good ? CNR_OK : no_memory(&err);
}

/* Adds to the bound of each element of t what rounding to its type may change: epsilon * (absolute
 * + 8 * |element|). absolute: bound on the size of what is rounded on the way, as rounding() gives
 * it, or 0. */
static void add_rounding(double *bound, const cnr_tensor *t, double absolute) {
    const int64_t n = cnr_count(t);
    const double epsilon = cnri_dtype_epsilon(t->dtype);
    for (int64_t i = 0; i < n; i++) {
        const double v = fabs(cnri_number_at(t, i));
        bound[i] += epsilon * (absolute + (isfinite(v) ? 8 * v : 0)) + 1e-37;
    }
}

/* Products in halves and their sums, as kernels of CNR_KERNEL_F16_MATH or _BF16_MATH promise:
 * relative to the sum of the products' sizes, which is what the reference makes of operands without
 * signs; and what is too small for f16 is off by half of the least that is not. */
static cnr_status add_halves(cnri_case *c, cnr_error *err) {
    cnr_tensor was[CNRI_CHECK_PORTS] = {0}, out, *outs[1] = {&out};
    const cnr_tensor *seen[1] = {&out};
    cnr_node node = c->node;
    cnr_cost cost = {0};
    bool good = one_like(&c->out[0], &out, false);
    node.outputs = seen;
    for (int32_t i = 0; i < node.n_inputs && good; i++) {
        if (!c->inputs[i]) continue;
        good = one_like(&c->in[i], &was[i], true);
        for (int64_t k = 0, n = good ? cnr_count(&was[i]) : 0; k < n; k++)
            cnri_element_set(was[i].dtype, c->in[i].data, k, fabs(cnri_number_at(&was[i], k)));
    }
    cnr_status status = good ? call(c, &node, outs, err) : no_memory(err);
    if (CNRI_HAS(node.desc, cost)) node.desc->cost(&node, &cost);
    const int64_t n = cnr_count(&c->out[0]);
    const double part = c->halves & CNR_KERNEL_F16_MATH ? (CNR_F16_TERMS + 2) * 0x1p-11 : 0x1p-7;
    for (int64_t i = 0; i < n && !status; i++)
        if (isfinite(cnri_number_at(&out, i)))
            c->bound[0][i] +=
                part * cnri_number_at(&out, i) + (double)cost.macs / (double)n * 0x1p-24;
    for (int32_t i = 0; i < CNRI_CHECK_PORTS; i++) {
        if (was[i].data) memcpy(c->in[i].data, was[i].data, (size_t)cnr_dense_bytes(&was[i]));
        cnri_free(was[i].data);
    }
    cnri_free(out.data);
    return status;
}

/* Marks in c->near_special the positions within CNR_SPREAD_POSITIONS of a NaN or infinite result,
 * in all channels of its sample. False: out of memory. */
static bool near_special(cnri_case *c) {
    const cnr_tensor *y = &c->out[0];
    const int64_t inner = cnr_span(y, 2, y->rank), channels = y->rank > 1 ? y->dim[1] : 1;
    const int64_t n = cnr_count(y), cells = channels ? n / channels : 0;
    cnri_free(c->near_special);
    if (!(c->near_special = cnri_alloc_zero((size_t)cells + 1))) return false;
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(cnri_number_at(y, i)))
            c->near_special[i / inner / channels * inner + i % inner] = 1;
    for (int32_t axis = 2; axis < y->rank; axis++) {
        const int64_t step = cnr_span(y, axis + 1, y->rank), dim = y->dim[axis];
        for (int64_t i = 0; i < cells; i++)
            for (int64_t k = -CNR_SPREAD_POSITIONS;
                 c->near_special[i] & 1 && k <= CNR_SPREAD_POSITIONS; k++) {
                const int64_t at = i / step % dim + k;
                if (at >= 0 && at < dim) c->near_special[i + k * step] |= 2;
            }
        for (int64_t i = 0; i < cells; i++) c->near_special[i] = c->near_special[i] != 0;
    }
    return true;
}

/* Finds how far the outputs of a node may be from the reference. */
static cnr_status node_bounds(cnri_case *c, uint64_t seed, cnr_error *err) {
    cnri_dice dice = {seed};
    for (int32_t i = 0; i < c->node.n_outputs; i++) {
        const int64_t n = cnr_count(&c->out[i]);
        if (!cnri_dtype_floats(c->out[i].dtype)) continue; /* exact */
        c->bound[i] = cnri_alloc_zero((size_t)(n + 1) * sizeof(double));
        if (!c->bound[i]) return no_memory(err);
        add_rounding(c->bound[i], &c->out[i], rounding(&c->node));
    }
    for (int32_t way = 0; way < 2; way++)
        if (add_conditioning(c, CHANGE_SHAKE, &dice)) return no_memory(err);
    if (add_conditioning(c, CHANGE_SWELL, &dice)) return no_memory(err);
    if (c->specials && add_conditioning(c, CHANGE_FLUSH, &dice)) return no_memory(err);
    if ((c->specials || c->lenient) && c->skips && add_conditioning(c, CHANGE_ORDINARY, &dice))
        return no_memory(err);
    if ((c->specials || c->lenient) && c->spreads && !near_special(c)) return no_memory(err);
    return c->halves && c->bound[0] ? add_halves(c, err) : CNR_OK;
}

/* ---- the operators behind ---- */

/* Widens the bounds, in place, to the differences of two tensors; infinite where just one is
 * NaN. */
static void take_difference(double *bound, const cnr_tensor *a, const cnr_tensor *b) {
    const int64_t n = cnr_count(a);
    for (int64_t i = 0; i < n; i++) {
        const double x = cnri_number_at(a, i);
        const double y = cnri_number_at(b, i);
        if (isnan(x) || isnan(y)) bound[i] = isnan(x) && isnan(y) ? bound[i] : INFINITY;
        else if (x != y && fabs(x - y) > bound[i]) bound[i] = fabs(x - y);
    }
}

/* A value that is off by `part` of its bound; part 0: the nearest whole number within the bound, at
 * which powers of negative numbers and roundings jump. */
static double shifted(double value, double bound, double part) {
    if (part != 0) return value + part * bound;
    return fabs(round(value) - value) <= bound ? round(value) : value;
}

/* Computes what an operator makes of values that are off by `part` of their bound, and takes the
 * largest differences. */
static cnr_status shift_link(cnri_link *link, const double *from, double part, double *most,
                             cnr_error *err) {
    cnr_tensor value, out, *outs[1] = {&out};
    const cnr_tensor *seen[1] = {&out};
    const cnr_tensor was = link->in[0];
    cnr_node node = link->node;
    if (!one_like(&was, &value, true)) return no_memory(err);
    if (!one_like(&link->out, &out, false)) {
        cnri_free(value.data);
        return no_memory(err);
    }
    const int64_t n = cnr_count(&value);
    for (int64_t i = 0; i < n; i++)
        cnri_element_set(value.dtype, value.data, i,
                         shifted(cnri_number_at(&value, i), from[i], part));
    link->in[0] = value;
    node.outputs = seen;
    const cnr_status status = cnri_judge_call(&node, outs, err);
    if (!status) take_difference(most, &link->out, &out);
    link->in[0] = was;
    cnri_free(value.data);
    cnri_free(out.data);
    return status;
}

/* Adds the differences for all parts of the bound. The ends alone are not enough for functions
 * that rise and fall. */
static cnr_status add_shifts(cnri_link *link, const double *from, double *bound, cnr_error *err) {
    static const double parts[] = {1, -1, 0.5, -0.5, 0.25, -0.25, 0};
    const int64_t n = cnr_count(&link->out);
    double *most = cnri_alloc_zero((size_t)(n + 1) * sizeof *most);
    cnr_status status = most ? CNR_OK : no_memory(err);
    for (size_t k = 0; k < CNRI_COUNT(parts) && !status; k++)
        status = shift_link(link, from, parts[k], most, err);
    for (int64_t i = 0; i < n && !status; i++) bound[i] += 2 * most[i];
    cnri_free(most);
    return status;
}

/* True if the bound is so large that nearly any value lies within it, which then judges nothing:
 * cosh behind a sum, then sin. */
static bool ill_conditioned(const cnr_tensor *out, const double *bound) {
    const double size = largest(out);
    const int64_t n = cnr_count(out);
    for (int64_t i = 0; i < n; i++)
        if (isfinite(bound[i]) && bound[i] > 0.05 * size && bound[i] > 1e-30) return true;
    return false;
}

bool cnri_judge_is_chaotic(const cnri_case *c) {
    cnr_cost cost = {0};
    if (c->lenient || c->halves || !c->base) return false;
    if (CNRI_HAS(c->node.desc, cost)) c->node.desc->cost(&c->node, &cost);
    return cost.macs > 0 && ill_conditioned(&c->out[0], c->base);
}

/* Carries the bounds through operator i of the chain. */
static cnr_status link_bounds(cnri_case *c, int32_t i, cnr_error *err) {
    cnri_link *link = &c->chain[i];
    double *before = c->bound[0], *bound = NULL;
    cnr_status status = CNR_OK;
    if (cnri_dtype_floats(link->out.dtype)) {
        const bool each = link->node.desc->flags & CNR_OP_ELEMENTWISE;
        bound = cnri_alloc_zero((size_t)(cnr_count(&link->out) + 1) * sizeof *bound);
        if (!bound) return no_memory(err);
        add_rounding(bound, &link->out, each ? 0 : rounding(&link->node));
        for (int64_t k = 0; each && k < cnr_count(&link->out); k++) { /* 1 + erf(x) and its like */
            const double v = cnri_number_at(&link->in[0], k);
            bound[k] += before && !isfinite(before[k]) ? INFINITY
                        : isfinite(v) ? 2 * cnri_dtype_epsilon(link->out.dtype) * fabs(v)
                                      : 0;
        }
        if (before) status = add_shifts(link, before, bound, err);
        if (!status && !c->lenient && ill_conditioned(&link->out, bound))
            status = cnri_fail(err, CNR_E_LIMIT, "kernelcheck", "the chain is ill-conditioned");
    }
    cnri_free(before);
    c->bound[0] = bound;
    return status;
}

/* True if at least half of the numbers are finite. */
static bool mostly_finite(const cnr_tensor *t) {
    const int64_t n = cnr_count(t);
    int64_t finite = 0;
    for (int64_t i = 0; i < n; i++) finite += isfinite(cnri_number_at(t, i)) != 0;
    return 2 * finite >= n;
}

/* Runs the reference of the node once for a case, because that takes most of the time. */
static cnr_status judge_node(cnri_case *c, uint64_t seed, cnr_error *err) {
    cnr_tensor *outs[CNRI_CHECK_PORTS];
    if (c->judged) return CNR_OK;
    for (int32_t i = 0; i < c->node.n_outputs; i++) outs[i] = &c->out[i];
    cnr_status status = call(c, &c->node, outs, err);
    if (!status && !c->lenient && !c->specials && !mostly_finite(&c->out[0]))
        status = cnri_fail(err, CNR_E_ARG, "kernelcheck", "the results are no numbers");
    if (!status) status = node_bounds(c, seed, err);
    c->base = c->bound[0];
    c->bound[0] = NULL;
    c->judged = !status;
    c->judged_links = -1;
    return status;
}

cnr_status cnri_judge_reference(cnri_case *c, int32_t links, uint64_t seed, cnr_error *err) {
    cnr_status status = judge_node(c, seed, err);
    if (status || c->judged_links == links) return status;
    const size_t bytes = (size_t)(cnr_count(&c->out[0]) + 1) * sizeof(double);
    cnri_free(c->bound[0]);
    c->judged_links = -1;
    c->bound[0] = c->base ? cnri_alloc(bytes) : NULL;
    if (c->base && !c->bound[0]) return no_memory(err);
    if (c->base) memcpy(c->bound[0], c->base, bytes);
    for (int32_t i = 0; i < links && !status; i++) {
        cnr_tensor *out[1] = {&c->chain[i].out};
        status = cnri_judge_call(&c->chain[i].node, out, err);
        if (!status && !c->lenient && !c->specials && !mostly_finite(&c->chain[i].out))
            status = cnri_fail(err, CNR_E_ARG, "kernelcheck", "the results are no numbers");
        if (!status) status = link_bounds(c, i, err);
    }
    if (!status) c->judged_links = links;
    return status;
}

/* ---- the verdict ---- */

/* Appends the position of element i, "[0,3,1]". */
static void place(const cnr_tensor *t, int64_t i, cnri_text *out) {
    int64_t at[CNR_MAX_RANK];
    for (int32_t a = t->rank - 1; a >= 0; a--) {
        at[a] = i % t->dim[a];
        i /= t->dim[a];
    }
    cnri_text_add(out, "[");
    for (int32_t a = 0; a < t->rank; a++)
        cnri_text_add(out, "%s%lld", a ? "," : "", (long long)at[a]);
    cnri_text_add(out, "]");
}

/* True if two numbers differ by no more than *bound; NULL: not at all. */
static bool agrees(double want, double got, const double *bound) {
    if (got == want || (isnan(got) && isnan(want))) return true;
    if (!bound) return false;
    return !isfinite(*bound) || fabs(got - want) <= *bound;
}

/* True if a kernel that spreads NaN, or that leaves out products with 0, may compute `got` for
 * element i. */
static bool excused(const cnri_case *c, int32_t links, int64_t i, double want, double got,
                    const double *bound) {
    const cnr_tensor *y = &c->out[0];
    if (c->skipped.data && isnan(want)) /* all such products are left out, or some */
        return !isfinite(got) || agrees(cnri_element(y->dtype, c->skipped.data, i), got, bound);
    if (!c->near_special) return false;
    if (links && !cnr_same_shape(y, cnri_case_out((cnri_case *)c, links, 0))) return true;
    const int64_t inner = cnr_span(y, 2, y->rank), channels = y->rank > 1 ? y->dim[1] : 1;
    const bool near = c->near_special[i / inner / channels * inner + i % inner];
    return near && (links || !isfinite(got));
}

/* True if an index lies in the parts of the output that are compared. */
static bool in_parts(const cnri_case *c, int64_t at) {
    for (int32_t k = 0; k < c->n_parts; k++)
        if (at >= c->parts[k][0] && at < c->parts[k][1]) return true;
    return false;
}

/* True if `got` (dense, plain) agrees with output `output` behind `links` operators; else `why`
 * says where not. In parts that the reference did not compute, any number is accepted, but there
 * must be one. */
bool cnri_judge(cnri_case *c, int32_t links, int32_t output, const cnr_tensor *got, int32_t axis,
                int64_t begin, int64_t end, cnri_text *why) {
    const cnr_tensor *want = cnri_case_out(c, links, output);
    const double *bound = c->bound[output];
    if (!cnr_same_shape(want, got)) {
        cnri_text_add(why, "output %d has another shape than the reference gave it", output);
        return false;
    }
    const int64_t n = cnr_count(want), inner = axis < 0 ? 1 : cnr_span(want, axis + 1, want->rank);
    int64_t wrong = 0, first = -1;
    const int64_t within = c->n_parts ? cnr_span(want, c->part_axis + 1, want->rank) : 1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = axis < 0 ? 0 : i / inner % want->dim[axis];
        if (axis >= 0 && (at < begin || at >= end)) continue;
        const double w = cnri_number_at(want, i);
        const double g = cnri_number_at(got, i);
        const bool known = !c->n_parts || in_parts(c, i / within % want->dim[c->part_axis]);
        const double *room = bound ? &bound[i] : NULL;
        if (known ? agrees(w, g, room) : !isnan(g)) continue;
        if (output == 0 && excused(c, links, i, w, g, room)) continue;
        if (wrong++ == 0) first = i;
    }
    if (wrong == 0) return true;
    cnri_text_add(why, "output %d: %lld of %lld wrong, first at ", output, (long long)wrong,
                  (long long)n);
    place(want, first, why);
    const double g = cnri_number_at(got, first);
    cnri_text_add(why, ": got %.9g, want %.9g", g, cnri_number_at(want, first));
    if (bound) cnri_text_add(why, " within %.3g", bound[first]);
    return false;
}
