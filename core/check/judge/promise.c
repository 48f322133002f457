/* Promises: compares all that an operator's descriptor says with the reference's results for the
 * whole node, in guarded memory. */
#include "judge/stand.h"
#include <cnnrun/cnnrun.h>
#include <math.h>

/* Appends to why that a promise fails in the range of `a`; returns false. */
static bool range_fails(cnri_promise which, const cnri_ask *a, cnri_text *why) {
    cnri_text_add(why, " (range %lld to %lld on axis %d)", (long long)a->begin, (long long)a->end,
                  (int)a->axis);
    return cnri_promise_fails(which, why);
}

/* ---- the reference itself ---- */

/* True if `part` is the bytes of `whole` from an element on. */
static bool inside(const cnr_tensor *part, const cnr_tensor *whole, uint64_t offset) {
    const int64_t n = cnr_count(part), all = cnr_count(whole);
    if (part->dtype != whole->dtype || offset > (uint64_t)all || n > all - (int64_t)offset)
        return false;
    for (int64_t i = 0; i < n; i++) {
        const double a = cnri_element(part->dtype, part->data, i);
        const double b = cnri_element(whole->dtype, whole->data, i + (int64_t)offset);
        if (a != b && !(isnan(a) && isnan(b))) return false;
    }
    return true;
}

/* False, with why: the reference doesn't write all of its outputs, or anything else. */
static bool judge_reference(cnri_stand *s, cnri_promises *p, cnri_text *why) {
    static const uint8_t poisons[] = {0xff, 0x5a};
    p->made |= 1u << CNRI_PROMISE_REFERENCE;
    p->judged |= 1u << CNRI_PROMISE_REFERENCE;
    for (size_t k = 0; k < CNRI_COUNT(poisons); k++) {
        const cnri_ask a = {.poison = poisons[k], .in_place = -1, .axis = -1};
        cnri_stand_fill(s, &a);
        bool good = cnri_stand_call(s, &a, why) && cnri_stand_untouched(s, &a, why);
        for (int32_t i = 0; i < s->node.n_outputs && good; i++)
            good = cnri_stand_same(s, i, &a, false, why);
        if (!good) return cnri_promise_fails(CNRI_PROMISE_REFERENCE, why);
    }
    return true;
}

/* False, with why: results known by infer differ from those of the reference. */
static bool judge_known(const cnri_case *c, cnri_promises *p, cnri_text *why) {
    if (c->fault) {
        cnri_text_add(why, "%s", c->fault);
        return cnri_promise_fails(CNRI_PROMISE_REFERENCE, why);
    }
    for (int32_t i = 0; i < c->node.n_outputs; i++) {
        cnr_tensor known = c->out[i];
        if (!c->known[i]) continue;
        p->made |= 1u << CNRI_PROMISE_CONSTANT;
        p->judged |= 1u << CNRI_PROMISE_CONSTANT;
        known.data = c->known[i];
        if (inside(&known, &c->out[i], 0)) continue;
        cnri_text_add(why, "output %d as infer knew it is not what the reference gives", (int)i);
        return cnri_promise_fails(CNRI_PROMISE_CONSTANT, why);
    }
    return true;
}

/* ---- ranges, and what they read ---- */

/* True if an input range lies inside the input. */
static bool region_holds(const cnri_stand *s, int32_t i, const cnr_input_range *r, cnri_text *why) {
    if (r->axis < 0) return true;
    const cnr_tensor *x = s->inputs[i];
    if (r->axis < x->rank && r->begin >= 0 && r->begin <= r->end && r->end <= x->dim[r->axis])
        return true;
    cnri_text_add(why, "region says %lld to %lld on axis %d of input %d, which has no such",
                  (long long)r->begin, (long long)r->end, (int)r->axis, (int)i);
    return false;
}

/* False, with why: a range of outputs is wrong if inputs are spoilt outside the regions that it may
 * read. */
static bool judge_regions(cnri_stand *s, cnri_ask *a, cnri_text *why) {
    cnr_input_range regions[CNRI_CHECK_PORTS];
    bool halved = false, good = true;
    for (int32_t i = 0; i < s->node.n_inputs; i++) {
        regions[i] = cnri_ways_region(&s->node, i, a->axis, a->begin, a->end);
        if (s->inputs[i] && !region_holds(s, i, &regions[i], why)) return false;
        halved = halved || (s->inputs[i] && regions[i].axis >= 0);
    }
    for (int32_t way = 0; way < 2 && halved && good; way++) {
        cnri_ask whole = {.poison = 0xff,
                          .in_place = -1,
                          .axis = -1,
                          .regions = regions,
                          .spoil_with_nan = way == 0};
        cnri_stand_fill(s, &whole);
        good = cnri_stand_call(s, &whole, why) && cnri_stand_same(s, 0, a, false, why);
        if (!good)
            for (int32_t i = 0; i < s->node.n_inputs; i++)
                if (s->inputs[i] && regions[i].axis >= 0)
                    cnri_text_add(why, " reading input %d outside %lld to %lld on axis %d", (int)i,
                                  (long long)regions[i].begin, (long long)regions[i].end,
                                  (int)regions[i].axis);
    }
    return good;
}

/* Computes one range of outputs alone; false, with why: it differs, or something else was
 * written. */
static bool judge_range(cnri_stand *s, const cnri_ask *a, cnri_text *why) {
    cnri_stand_fill(s, a);
    return cnri_stand_call(s, a, why) && cnri_stand_untouched(s, a, why) &&
           cnri_stand_same(s, 0, a, true, why);
}

/* Judges ranges along one axis, cut at several places; false, with why. */
static bool judge_axis(cnri_stand *s, int32_t axis, cnri_promises *p, cnri_text *why) {
    int64_t cuts[4];
    const cnr_op *op = s->node.desc;
    const bool ranges = op->flags & CNR_OP_RANGES;
    const int64_t step = cnri_ways_alignment(&s->node, axis);
    const int32_t n = cnri_ways_cut(s->out[0].dim[axis], step, cuts);
    for (int32_t k = 0; k < n; k++) {
        cnri_ask a = {.poison = 0xff,
                      .in_place = -1,
                      .axis = axis,
                      .begin = cuts[k],
                      .end = cuts[k + 1]};
        p->judged |= 1u << CNRI_PROMISE_SPLIT;
        if (!judge_regions(s, &a, why)) return range_fails(CNRI_PROMISE_SPLIT, &a, why);
        if (!ranges) continue;
        p->judged |= 1u << CNRI_PROMISE_RANGES;
        if (!judge_range(s, &a, why)) return range_fails(CNRI_PROMISE_RANGES, &a, why);
    }
    return true;
}

/* Judges ranges along all axes that the operator says can be split; false, with why. */
static bool judge_ranges(cnri_stand *s, cnri_promises *p, cnri_text *why) {
    const cnr_op *op = s->node.desc;
    cnr_split_axis axes[CNR_MAX_RANK];
    if (!CNRI_HAS(op, split_axes) && !(op->flags & CNR_OP_ELEMENTWISE)) return true;
    p->made |= 1u << CNRI_PROMISE_SPLIT;
    if (op->flags & CNR_OP_RANGES) p->made |= 1u << CNRI_PROMISE_RANGES;
    if (s->node.n_outputs != 1 || s->out[0].flags & CNR_TENSOR_DYNAMIC) return true;
    if (cnr_dtype_bits(s->out[0].dtype) < 8) return true;
    for (int32_t i = 0; i < s->node.n_inputs; i++)
        if (s->inputs[i] && s->in[i].flags & CNR_TENSOR_DYNAMIC) return true;
    const int32_t n = CNRI_HAS(op, split_axes) ? op->split_axes(&s->node, axes, CNR_MAX_RANK) : 0;
    for (int32_t i = 0; i < n; i++)
        if (axes[i].axis < 0 || axes[i].axis >= s->out[0].rank || axes[i].alignment < 1) {
            cnri_text_add(why, "split_axes tells of axis %d by %lld", (int)axes[i].axis,
                          (long long)axes[i].alignment);
            return cnri_promise_fails(CNRI_PROMISE_SPLIT, why);
        }
    for (int32_t axis = 0; axis < s->out[0].rank; axis++)
        if (!judge_axis(s, axis, p, why)) return false;
    return true;
}

/* ---- shared bytes ---- */

/* Judges outputs written over inputs where the operator allows that; false, with why. */
static bool judge_in_place(cnri_stand *s, cnri_promises *p, cnri_text *why) {
    for (int32_t o = 0; o < s->node.n_outputs; o++)
        for (int32_t i = 0; i < s->node.n_inputs; i++) {
            if (!cnri_ways_in_place(&s->node, i, o)) continue;
            const cnri_ask a = {.poison = 0x5a, .in_place = i, .output = o, .axis = -1};
            p->made |= 1u << CNRI_PROMISE_IN_PLACE;
            p->judged |= 1u << CNRI_PROMISE_IN_PLACE;
            cnri_stand_fill(s, &a);
            bool good = cnri_stand_call(s, &a, why) && cnri_stand_untouched(s, &a, why);
            for (int32_t k = 0; k < s->node.n_outputs && good; k++)
                good = cnri_stand_same(s, k, &a, false, why);
            if (good) continue;
            cnri_text_add(why, " (output %d in place of input %d)", (int)o, (int)i);
            return cnri_promise_fails(CNRI_PROMISE_IN_PLACE, why);
        }
    return true;
}

/* Judges outputs that the operator says are parts of inputs; false, with why. */
static bool judge_views(const cnri_case *c, cnri_promises *p, cnri_text *why) {
    cnr_alias found[64];
    const cnr_op *op = c->node.desc;
    const int32_t n = CNRI_HAS(op, buffer_aliases) ? op->buffer_aliases(&c->node, found, 64) : 0;
    for (int32_t k = 0; k < n && k < 64; k++) {
        const cnr_alias *a = &found[k];
        const bool known = a->input >= 0 && a->input < c->node.n_inputs && a->output >= 0 &&
                           a->output < c->node.n_outputs && c->inputs[a->input];
        if (!known) {
            cnri_text_add(why, "aliases_of names input %d and output %d", (int)a->input,
                          (int)a->output);
            return cnri_promise_fails(CNRI_PROMISE_ALIAS, why);
        }
        const cnr_tensor *x = &c->in[a->input], *y = &c->out[a->output];
        if (a->kind == CNR_ALIAS_INPLACE) continue;
        if (a->kind == CNR_ALIAS_UPDATE) { /* what it is to be takes the place of what it is */
            p->made |= 1u << CNRI_PROMISE_ALIAS;
            p->judged |= 1u << CNRI_PROMISE_ALIAS;
            if (cnr_same_shape(x, y) && x->dtype == y->dtype) continue;
            cnri_text_add(why,
                          "aliases_of says that output %d is what input %d is to be, which has "
                          "another shape or type",
                          (int)a->output, (int)a->input);
            return cnri_promise_fails(CNRI_PROMISE_ALIAS, why);
        }
        p->made |= 1u << CNRI_PROMISE_ALIAS;
        if (y->flags & CNR_TENSOR_DYNAMIC) continue;
        p->judged |= 1u << CNRI_PROMISE_ALIAS;
        if (a->kind == CNR_ALIAS_VIEW ? inside(y, x, a->offset) : inside(x, y, a->offset)) continue;
        cnri_text_add(why, "aliases_of says that %s %d lies in %s %d from element %llu on",
                      a->kind == CNR_ALIAS_VIEW ? "output" : "input",
                      (int)(a->kind == CNR_ALIAS_VIEW ? a->output : a->input),
                      a->kind == CNR_ALIAS_VIEW ? "input" : "output",
                      (int)(a->kind == CNR_ALIAS_VIEW ? a->input : a->output),
                      (unsigned long long)a->offset);
        return cnri_promise_fails(CNRI_PROMISE_ALIAS, why);
    }
    return true;
}

/* ---- apply_f32 ---- */

/* Number of operands (one or two, with the output's shape) with which a kernel may call
 * apply_f32 behind another node. */
static int32_t operands_of(const cnri_stand *s) {
    int32_t n = 0;
    for (int32_t i = 0; i < s->node.n_inputs; i++) {
        const cnr_tensor *x = s->inputs[i];
        if (!x) continue;
        if (i > 1 || x->dtype != CNR_f32 || !cnr_same_shape(x, &s->out[0])) return 0;
        n = i + 1;
    }
    return s->inputs[0] && s->node.n_outputs == 1 && s->out[0].dtype == CNR_f32 ? n : 0;
}

/* Judges apply_f32 against the reference; false, with why. Without the method true. */
static bool judge_apply(cnri_stand *s, cnri_promises *p, cnri_text *why) {
    const cnr_op *op = s->node.desc;
    const cnri_ask a = {.poison = 0xff, .in_place = -1, .axis = -1};
    if (!CNRI_HAS(op, apply_f32)) return true;
    p->made |= 1u << CNRI_PROMISE_APPLY;
    const int32_t operands = operands_of(s);
    const int64_t n = cnr_count(&s->out[0]);
    if (operands == 0) return true;
    p->judged |= 1u << CNRI_PROMISE_APPLY;
    for (int32_t way = -1; way < operands; way++) { /* way: the operand that out equals */
        cnri_stand_fill(s, &a);
        float *x = (float *)s->in_at[0].data, *y = operands > 1 ? (float *)s->in_at[1].data : NULL;
        float *out = way < 0 ? (float *)s->out_at[0].data : way == 0 ? x : y;
        const int64_t first = n > 2 ? n / 3 : 0; /* two calls: nothing may hang on where one ends */
        op->apply_f32(&s->node, x, y, out, first);
        op->apply_f32(&s->node, x + first, y ? y + first : NULL, out + first, n - first);
        cnr_tensor got = s->out[0];
        got.data = out;
        const cnri_ask ends = {.in_place = way < 0 ? -1 : way, .axis = -1};
        if (cnri_stand_untouched(s, &ends, why) && cnri_judge(s->c, 0, 0, &got, -1, 0, 0, why))
            continue;
        if (way >= 0) cnri_text_add(why, " (out equal to %s)", way ? "y" : "x");
        return cnri_promise_fails(CNRI_PROMISE_APPLY, why);
    }
    return true;
}

/* Judges the text for devices: its length is returned, it ends with a NUL, and with too little room
 * nothing is written outside. False, with why. */
static bool judge_text(const cnri_case *c, cnri_text *why) {
    const cnr_op *op = c->node.desc;
    char text[4096];
    if (!CNRI_HAS(op, expression)) return true;
    memset(text, 'x', sizeof text);
    const int32_t n = op->expression(&c->node, text, sizeof text);
    const char *end = memchr(text, 0, sizeof text);
    if (n < 0) return true; /* it has none for such a node */
    if (!end || end - text != n) {
        cnri_text_add(why, "expression returns %d, and its text has %lld characters", (int)n,
                      end ? (long long)(end - text) : -1LL);
        return false;
    }
    memset(text, 'x', sizeof text);
    const int32_t less = op->expression(&c->node, text, (size_t)n);
    for (size_t i = (size_t)n; i < sizeof text && less < 0; i++)
        if (text[i] != 'x') {
            cnri_text_add(why, "expression writes outside its %d bytes", (int)n);
            return false;
        }
    if (less < 0) return true;
    cnri_text_add(why, "expression returns %d for a text that does not fit", (int)less);
    return false;
}

/* False, with why: an element-wise operator infers another shape than its operands broadcast to. */
static bool judge_shape(const cnri_case *c, cnri_text *why) {
    const cnr_node *node = &c->node;
    const cnr_tensor *y = node->outputs[0];
    if (!(node->desc->flags & CNR_OP_ELEMENTWISE) || !y) return true;
    for (int32_t a = 1; a <= y->rank; a++) {
        int64_t most = 1;
        for (int32_t i = 0; i < node->n_inputs; i++) {
            const cnr_tensor *x = node->inputs[i];
            if (x && a <= x->rank && x->dim[x->rank - a] != 1) most = x->dim[x->rank - a];
        }
        if (y->dim[y->rank - a] == most) continue;
        cnri_text_add(why,
                      "CNR_OP_ELEMENTWISE, and yet axis %d of output 0 is %lld, where operands "
                      "give %lld",
                      (int)(y->rank - a), (long long)y->dim[y->rank - a], (long long)most);
        return cnri_promise_fails(CNRI_PROMISE_REFERENCE, why);
    }
    return true;
}

/* ---- weights that the operator makes, and what a node costs ---- */

/* Describes a weight's beginning. False: it is none. */
static bool judge_init(const cnr_init *init, const cnr_tensor *t, int32_t port, cnri_text *why) {
    if (init->kind < CNR_INIT_ZERO || init->kind > CNR_INIT_CONST)
        cnri_text_add(why, "parameters begins input %d in way %d, which is none", (int)port,
                      (int)init->kind);
    else if (init->kind == CNR_INIT_HE && cnr_count(t) > 0 &&
             (init->fan_in < 1 || init->fan_in > cnr_count(t)))
        cnri_text_add(why, "parameters says that %lld inputs of a weight of %lld make one output",
                      (long long)init->fan_in, (long long)cnr_count(t));
    else return true;
    return false;
}

/* Makes the parameters of a node without weights as a script does, one after the other, and lets
 * infer judge them. */
static bool judge_parameters(const cnri_case *c, cnri_promises *p, cnri_text *why) {
    static cnr_tensor made[CNRI_CHECK_PORTS], out[CNRI_CHECK_PORTS];
    const cnr_op *op = c->node.desc;
    const cnr_tensor *inputs[CNRI_CHECK_PORTS];
    cnr_tensor *outputs[CNRI_CHECK_PORTS];
    int32_t n = 0, wide = 0, zeros = 0;
    cnr_port room;
    if (!CNRI_HAS(op, parameters)) return true;
    p->made |= 1u << CNRI_PROMISE_PARAMETERS;
    cnr_node node = c->node;
    node.inputs = inputs;
    for (int32_t i = 0; i < node.n_inputs; i++) {
        const bool is_made = cnri_check_port(op, i, &room)->flags & CNR_PORT_PARAMETER;
        inputs[i] = is_made ? NULL : c->node.inputs[i];
    }
    for (int32_t i = 0; i < node.n_inputs; i++) {
        cnr_init init = {0};
        cnr_error err = CNR_ERROR_INIT;
        if (!(cnri_check_port(op, i, &room)->flags & CNR_PORT_PARAMETER)) continue;
        made[i] = (cnr_tensor){.size = sizeof made[i]};
        const cnr_status status = op->parameters(&node, i, &made[i], &init, &err);
        if (status == CNR_E_NOT_FOUND) continue;
        if (status) return true; /* its attributes say too little */
        if (cnr_count(&made[i]) < 0) {
            cnri_text_add(why, "parameters gives input %d a size that is none", (int)i);
            return cnri_promise_fails(CNRI_PROMISE_PARAMETERS, why);
        }
        if (!judge_init(&init, &made[i], i, why))
            return cnri_promise_fails(CNRI_PROMISE_PARAMETERS, why);
        wide += made[i].rank > 1;
        zeros += made[i].rank > 1 && init.kind == CNR_INIT_ZERO;
        inputs[i] = &made[i];
        n++;
    }
    if (!n) return true;
    p->judged |= 1u << CNRI_PROMISE_PARAMETERS;
    for (int32_t i = 0; i < node.n_outputs; i++) {
        out[i] = (cnr_tensor){.size = sizeof out[i]};
        outputs[i] = &out[i];
    }
    cnr_error err = CNR_ERROR_INIT;
    node.outputs = (const cnr_tensor *const *)outputs;
    if (op->infer(&node, outputs, &err) != CNR_OK)
        cnri_text_add(why, "infer refuses the weights that parameters shapes: %.600s", err.text);
    else if (wide && wide == zeros)
        cnri_text_add(why, "parameters begins all weights of two or more axes as 0");
    else return true;
    return cnri_promise_fails(CNRI_PROMISE_PARAMETERS, why);
}

/* Judges that a node which multiplies by weights has a cost. */
static bool judge_cost(const cnri_case *c, cnri_promises *p, cnri_text *why) {
    const cnr_op *op = c->node.desc;
    cnr_cost cost = {0};
    cnr_port room;
    bool weighs = false;
    if (!CNRI_HAS(op, cost)) return true;
    p->made |= 1u << CNRI_PROMISE_COST;
    for (int32_t i = 0; i < c->node.n_inputs; i++)
        weighs = weighs || (c->inputs[i] && c->in[i].rank > 1 && cnr_count(&c->in[i]) > 0 &&
                            cnri_check_port(op, i, &room)->flags & CNR_PORT_PARAMETER);
    for (int32_t i = 0; i < c->node.n_outputs; i++)
        if (cnr_count(&c->out[i]) < 1 || c->out[i].flags & CNR_TENSOR_DYNAMIC) weighs = false;
    op->cost(&c->node, &cost);
    p->judged |= 1u << CNRI_PROMISE_COST;
    if (!weighs || cost.macs > 0 || cost.flops > 0) return true;
    cnri_text_add(why, "a node with weights and outputs costs nothing");
    return cnri_promise_fails(CNRI_PROMISE_COST, why);
}

/* ---- all ---- */

bool cnri_promises_run(cnri_case *c, const cnri_draft *d, cnri_promises *which, cnri_text *why) {
    static cnri_stand s; /* large; a worker has one thread */
    bool good = cnri_stand_open(&s, c, why);
    good = good && judge_shape(c, why) && judge_text(c, why) && judge_parameters(c, which, why) &&
           judge_cost(c, which, why) && judge_known(c, which, why) &&
           judge_reference(&s, which, why) && judge_ranges(&s, which, why) &&
           judge_in_place(&s, which, why) && judge_views(c, which, why) &&
           judge_apply(&s, which, why);
    cnri_stand_close(&s);
    good = good && cnri_affine_run(c, which, why);
    if (!good || !CNRI_HAS(c->node.desc, gradient)) return good;
    bool judged = false;
    good = cnri_gradient_run(d, &judged, why);
    which->made |= 1u << CNRI_PROMISE_GRADIENT;
    which->judged |= (uint32_t)judged << CNRI_PROMISE_GRADIENT;
    return good ? true : cnri_promise_fails(CNRI_PROMISE_GRADIENT, why);
}
