/* Cases: a draft made into a node with attributes, shapes and data, and with operators behind
 * it. */
#include "judge/judge.h"
#include <math.h>

#include <math.h>

/* Fills err: out of memory. */
static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "kernelcheck", "out of memory");
}

/* ---- attributes ---- */

/* Fills err with what is wrong with an attribute. */
static void remember(void *arg, const char *path, const char *text) {
    cnri_fail(arg, CNR_E_ARG, path, "%s: %s", path, text);
}

/* Resolves a draft's attributes against the operator's schema. */
static cnr_status resolve(const cnri_draft *d, cnr_attr ***out, cnr_error *err) {
    cnr_attr room[CNRI_CHECK_ATTRS];
    const cnr_attr *given[CNRI_CHECK_ATTRS];
    const cnr_op *op = d->op;
    int32_t n = 0;
    for (int32_t i = 0; i < op->n_attrs && i < CNRI_CHECK_ATTRS; i++) {
        cnr_attr_spec space;
        const cnr_attr_spec *row = cnri_spec_at(op->attrs, op->attr_spec_size, i, &space);
        const cnri_draft_attr *a = &d->attrs[i];
        if (!a->given) continue;
        room[n] = (cnr_attr){.name = row->name,
                             .type = row->type,
                             .set = 1,
                             .i = a->i,
                             .f = a->f,
                             .n = a->n,
                             .ints = a->ints,
                             .floats = a->floats};
        if (row->type == CNR_ATTR_ENUM) room[n].s = row->choices[a->i];
        if (row->type == CNR_ATTR_STRING) room[n].s = cnri_draft_string(row, a);
        given[n] = &room[n];
        n++;
    }
    const int32_t rank = d->n_in > 0 ? d->in[0].rank : 0;
    const cnr_status status = cnri_attrs_resolve(op->attrs, op->attr_spec_size, op->n_attrs, given,
                                                 n, rank > 2 ? rank - 2 : -1, remember, err, out);
    return status == CNR_E_MEMORY ? no_memory(err) : status;
}

/* ---- data ---- */

/* Sets t->bytes; fails if they are too many for a case. */
static cnr_status measure(cnr_tensor *t, cnr_error *err) {
    t->bytes = cnr_dense_bytes(t);
    return t->bytes <= CNRI_CHECK_MOST_BYTES
               ? CNR_OK
               : cnri_fail(err, CNR_E_LIMIT, "kernelcheck", "a tensor is too large for a case");
}

/* Allocates t->data for its shape, all zero; the case owns it. Fails with CNR_E_LIMIT or
 * CNR_E_MEMORY. */
static cnr_status room_for(cnr_tensor *t, cnr_error *err) {
    const cnr_status status = measure(t, err);
    if (status) return status;
    t->data = cnri_alloc_zero((size_t)t->bytes + 1);
    return t->data ? CNR_OK : no_memory(err);
}

/* Allocates and fills an input as the draft says. */
static cnr_status fill(cnr_tensor *t, const cnri_draft_input *in, cnri_dice *dice, cnr_error *err) {
    const cnr_status status = room_for(t, err);
    if (status) return status;
    cnri_values_fill(t, in->values, in->list, dice);
    if (in->constant || in->made) t->flags |= CNR_TENSOR_CONST;
    if (in->variable) t->flags |= CNR_TENSOR_VARIABLE;
    return CNR_OK;
}

/* Puts up to 8 NaN, infinities, denormals and -0, of which one is NaN, drawn by the seed, into a
 * tensor of floats. Does nothing without data, for parameters, and for constants of operators that
 * are not element-wise, as kernels may multiply these by padding. */
static void add_specials(const cnr_op *op, int32_t port, cnr_tensor *t, uint64_t seed) {
    cnr_port room;
    cnri_dice dice = {seed + 0x51ed27u * (uint64_t)(port + 1)};
    const bool weight = cnri_check_port(op, port, &room)->flags & CNR_PORT_PARAMETER ||
                        (t->flags & CNR_TENSOR_CONST && !(op->flags & CNR_OP_ELEMENTWISE));
    if (t->data && !weight) cnri_values_specials(t, &dice);
}

/* ---- the node ---- */

/* Sets types and shapes of the inputs from a draft; no data yet. */
static void place_inputs(cnri_case *c, const cnri_draft *d) {
    for (int32_t i = 0; i < d->n_in; i++) {
        const cnri_draft_input *in = &d->in[i];
        cnr_tensor *t = &c->in[i];
        *t = (cnr_tensor){.size = sizeof *t, .dtype = in->dtype, .rank = in->rank};
        memcpy(t->dim, in->dim, sizeof t->dim);
        if (in->present && !in->made) c->inputs[i] = t;
        c->listed[i] = in->values == CNRI_VALUES_LIST;
    }
}

/* Makes weights of the shapes that the operator gives. */
static cnr_status make_parameters(cnri_case *c, const cnri_draft *d, cnr_error *err) {
    const cnr_op *op = d->op;
    for (int32_t i = 0; i < op->n_inputs && i < d->n_in; i++) {
        if (!d->in[i].present || !d->in[i].made) continue;
        cnr_tensor t = {.size = sizeof t};
        cnr_init init = {0};
        if (!CNRI_HAS(op, parameters) || !c->inputs[0])
            return cnri_fail(err, CNR_E_ARG, op->name, "a weight must be given");
        const cnr_status status = op->parameters(&c->node, i, &t, &init, err);
        if (status == CNR_E_NOT_FOUND) continue;
        if (status) return status;
        if (init.kind == CNR_INIT_HE && init.fan_in < 1 && cnr_count(&t) > 0)
            c->fault = "parameters wants HE's initial values and tells no fan_in";
        c->in[i] = t;
        c->inputs[i] = &c->in[i];
    }
    return CNR_OK;
}

/* Checks an output type and takes the data that infer computed into *known. `known` NULL: refuses
 * such results. */
static cnr_status check_output(cnr_tensor *t, void **known, cnr_error *err) {
    void *data = t->data;
    t->data = NULL;
    if (known) *known = data;
    else cnri_free(data);
    if (data && !known) return cnri_fail(err, CNR_E_ARG, "kernelcheck", "the result is a constant");
    if (cnr_dtype_bits(t->dtype) == 0 || t->rank < 0 || t->rank > CNR_MAX_RANK || cnr_count(t) < 0)
        return cnri_fail(err, CNR_E_SHAPE, "kernelcheck", "the shape of an output is not known");
    if (cnr_dense_bytes(t) > CNRI_CHECK_MOST_BYTES)
        return cnri_fail(err, CNR_E_LIMIT, "kernelcheck", "an output is too large for a case");
    return CNR_OK;
}

/* Lets the operator infer its outputs; known: it may give an output's data, which the case keeps,
 * else that is a failure. */
static cnr_status infer(cnri_case *c, bool known, cnr_error *err) {
    const cnr_op *op = c->node.desc;
    cnr_tensor *writable[CNRI_CHECK_PORTS];
    cnr_port room = {0};
    for (int32_t i = 0; i < c->node.n_inputs; i++) {
        cnri_check_port(op, i, &room);
        if (!c->inputs[i] && !(room.flags & CNR_PORT_OPTIONAL))
            return cnri_fail(err, CNR_E_ARG, op->name, "input %s is missing", room.name);
    }
    for (int32_t i = 0; i < c->node.n_outputs; i++) {
        c->out[i] = (cnr_tensor){.size = sizeof c->out[i]};
        c->outputs[i] = writable[i] = &c->out[i];
    }
    cnr_status status = op->infer(&c->node, writable, err);
    for (int32_t i = 0; i < c->node.n_outputs; i++) {
        const cnr_status one =
            check_output(&c->out[i], known ? &c->known[i] : NULL, status ? NULL : err);
        if (!status) status = one;
        memcpy(c->most[i], c->out[i].dim, sizeof c->most[i]);
    }
    return status;
}

/* Fails if a node is too much work for a case. */
static cnr_status check_work(const cnr_node *node, cnr_error *err) {
    cnr_cost cost = {0};
    if (CNRI_HAS(node->desc, cost)) node->desc->cost(node, &cost);
    if (cost.macs > CNRI_CHECK_MOST_WORK || cost.flops > CNRI_CHECK_MOST_WORK)
        return cnri_fail(err, CNR_E_LIMIT, "kernelcheck", "too much work for a case");
    return CNR_OK;
}

cnr_status cnri_case_build(cnri_case *c, const cnri_draft *d, bool bare, cnr_error *err) {
    cnri_dice dice = {d->data_seed};
    memset(c, 0, sizeof *c);
    c->node = (cnr_node){.size = sizeof c->node,
                         .op = cnri_intern(d->op->name),
                         .desc = d->op,
                         .name = "kernelcheck",
                         .n_attrs = d->op->n_attrs,
                         .n_inputs = d->n_in,
                         .n_outputs = d->n_out,
                         .inputs = c->inputs,
                         .outputs = c->outputs};
    c->specials = d->specials;
    cnr_status status = resolve(d, &c->attrs, err);
    if (status) return status;
    c->node.attrs = (const cnr_attr *const *)c->attrs;
    place_inputs(c, d);
    for (int32_t i = 0; i < d->n_in && !status; i++) /* infer may look at these */
        if (c->inputs[i] && d->in[i].values == CNRI_VALUES_LIST)
            status = fill(&c->in[i], &d->in[i], &dice, err);
    if (!status) status = make_parameters(c, d, err);
    if (!status) status = infer(c, d->known, err);
    if (!status) status = check_work(&c->node, err);
    for (int32_t i = 0; i < d->n_in && !status; i++) {
        const bool flows = !d->in[i].constant && !d->in[i].made && !d->in[i].variable;
        if (!c->inputs[i] || c->in[i].data) continue;
        status = bare && flows ? measure(&c->in[i], err) : fill(&c->in[i], &d->in[i], &dice, err);
        if (!status && d->specials) add_specials(d->op, i, &c->in[i], d->data_seed);
    }
    for (int32_t i = 0; i < d->n_out && !status; i++)
        status = bare ? measure(&c->out[i], err) : room_for(&c->out[i], err);
    return status;
}

/* ---- what stands behind it ---- */

/* Draws the other operand of a chained operator, of a shape that broadcasts to `value`, with
 * data. */
static cnr_status draw_operand(cnri_link *link, const cnr_tensor *value, int32_t i, cnri_dice *dice,
                               cnr_error *err) {
    cnr_tensor *t = &link->in[1];
    const cnri_draft_input in = {.constant = cnri_dice_chance(dice, 20)};
    *t = (cnr_tensor){.size = sizeof *t, .dtype = value->dtype, .rank = value->rank};
    memcpy(t->dim, value->dim, sizeof t->dim);
    for (int32_t k = 0; cnri_dice_chance(dice, 25) && k < t->rank; k++)
        if (k != 1) t->dim[k] = 1;
    link->inputs[i] = t;
    link->other = i;
    return fill(t, &in, dice, err);
}

/* Draws the inputs of an operator in the chain other than `value`, with data that the link owns. */
static cnr_status link_inputs(cnri_link *link, const cnr_tensor *value, cnri_dice *dice,
                              cnr_error *err) {
    const cnr_op *op = link->node.desc;
    cnr_init init;
    link->other = -1;
    link->in[0] = *value;
    link->inputs[link->port] = &link->in[0];
    for (int32_t i = 0; i < op->n_inputs && i < CNRI_CHECK_PORTS; i++) {
        cnr_port room;
        cnri_check_port(op, i, &room);
        if (i == link->port || room.flags & CNR_PORT_OPTIONAL) continue;
        if (room.flags & CNR_PORT_VARIADIC && room.min < 2) continue;
        if (link->other >= 0) return cnri_fail(err, CNR_E_ARG, op->name, "too many operands");
        cnr_status status = draw_operand(link, value, i, dice, err);
        if (status) return status;
        if (!(room.flags & CNR_PORT_PARAMETER) || !CNRI_HAS(op, parameters)) continue;
        cnri_free(link->in[1].data);
        link->in[1] = (cnr_tensor){.size = sizeof link->in[1]};
        status = op->parameters(&link->node, i, &link->in[1], &init, err);
        const cnri_draft_input in = {.constant = true};
        if (!status) status = fill(&link->in[1], &in, dice, err);
        if (status) return status;
    }
    return CNR_OK;
}

/* Frees the operand's and output's data and the attributes of a link. */
static void link_free(cnri_link *link) {
    if (link->other >= 0) cnri_free(link->in[1].data);
    cnri_free(link->out.data);
    cnri_free(link->attrs);
}

/* Adds an operator behind `value`; false: it does not fit. */
static bool link_build(cnri_link *link, const cnr_op *op, const cnr_tensor *value,
                       cnri_dice *dice) {
    static cnri_draft d; /* large; a worker has one thread */
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *writable[1] = {&link->out};
    memset(&d, 0, sizeof d);
    memset(link, 0, sizeof *link);
    d.op = op;
    d.n_in = 1;
    d.in[0].rank = value->rank;
    memcpy(d.in[0].dim, value->dim, sizeof value->dim);
    cnri_draft_attrs(&d, dice);
    const int32_t many = op->n_inputs > CNRI_CHECK_PORTS ? CNRI_CHECK_PORTS : op->n_inputs;
    link->other = -1;
    link->port = many == 2 && cnri_dice_chance(dice, 30);
    link->node = (cnr_node){.size = sizeof link->node,
                            .op = cnri_intern(op->name),
                            .desc = op,
                            .name = "behind",
                            .n_attrs = op->n_attrs,
                            .n_inputs = many,
                            .n_outputs = 1,
                            .inputs = link->inputs,
                            .outputs = link->outputs};
    link->outputs[0] = &link->out;
    link->out = (cnr_tensor){.size = sizeof link->out};
    bool good = resolve(&d, &link->attrs, &err) == CNR_OK;
    link->node.attrs = (const cnr_attr *const *)link->attrs;
    good = good && link_inputs(link, value, dice, &err) == CNR_OK;
    good = good && op->infer(&link->node, writable, &err) == CNR_OK;
    good = check_output(&link->out, NULL, NULL) == CNR_OK && good;
    if (good && op->flags & CNR_OP_ELEMENTWISE) good = cnr_same_shape(value, &link->out);
    good =
        good && !(link->out.flags & CNR_TENSOR_DYNAMIC) && check_work(&link->node, &err) == CNR_OK;
    good = good && room_for(&link->out, &err) == CNR_OK;
    if (!good) link_free(link);
    return good;
}

void cnri_case_chain(cnri_case *c, uint64_t seed) {
    cnri_dice dice = {seed};
    const int32_t wanted = 1 + (int32_t)cnri_dice_below(&dice, CNRI_CHECK_DRAWN);
    const int32_t n_ops = cnri_descriptor_count(CNR_KIND_OPERATOR);
    if (c->node.n_outputs != 1 || c->out[0].flags & CNR_TENSOR_DYNAMIC) return;
    for (int32_t tries = 0; tries < 400 && c->n_chain < wanted; tries++) {
        const cnr_op *op =
            cnri_descriptor_at(CNR_KIND_OPERATOR, (int32_t)cnri_dice_below(&dice, n_ops));
        if (!(op->flags & CNR_OP_EPILOGUE) || !CNRI_HAS(op, reference) || op->n_inputs < 1)
            continue;
        if (op->n_inputs < 2 && cnri_dice_chance(&dice, 50))
            continue; /* operands are where layouts matter */
        cnr_tensor value = *cnri_case_out(c, c->n_chain, 0);
        value.data = NULL;
        if (link_build(&c->chain[c->n_chain], op, &value, &dice)) c->n_chain++;
    }
    for (int32_t i = 0; i < c->n_chain; i++) { /* each reads what the one before wrote */
        if (c->specials && c->chain[i].other >= 0)
            add_specials(c->chain[i].node.desc, c->chain[i].other, &c->chain[i].in[1], seed);
        c->chain[i].in[0] = *cnri_case_out(c, i, 0);
        c->chain[i].inputs[c->chain[i].port] = &c->chain[i].in[0];
        c->chain[i].node.inputs = c->chain[i].inputs;
    }
}

/* ---- encodings ---- */

/* Decodes a tensor. The encoding must reproduce it up to the allowed loss, which is not a fault
 * of the kernel that reads it. */
static cnr_status decode(const cnr_tensor *encoded, cnr_tensor *dense, const cnr_encoding *how,
                         char fault[256], cnr_error *err) {
    const int64_t n = cnr_count(dense);
    double size = 0, lost = 0;
    double *was = cnri_alloc(((size_t)n + 1) * sizeof *was);
    if (!was) return no_memory(err);
    for (int64_t i = 0; i < n; i++) was[i] = cnri_number_at(dense, i);
    const cnr_status status = how->decode(encoded, dense->data, err);
    for (int64_t i = 0; i < n && !status; i++) {
        const double off = cnri_number_at(dense, i) - was[i];
        size += was[i] * was[i];
        lost += off * off;
    }
    cnri_free(was);
    if (!status && !(sqrt(lost) <= CNRI_ENCODING_MOST_LOST * sqrt(size)))
        snprintf(fault, 256,
                 "encoding \"%.60s\": decode gives weights that differ by %.3g of their root mean "
                 "square from those that were encoded; at most %.3g is right",
                 how->name, size > 0 ? sqrt(lost / size) : INFINITY, CNRI_ENCODING_MOST_LOST);
    return status;
}

/* Encodes the dense tensor into *out, with data of its own; fault: what the encoding did wrong, or
 * "". */
static cnr_status encode(cnr_tensor *dense, cnr_tensor *out, const cnr_encoding *how,
                         char fault[256], cnr_error *err) {
    cnr_attr **attrs = NULL;
    uint64_t bytes = 0;
    cnr_status status = cnri_attrs_resolve(how->attrs, how->attr_spec_size, how->n_attrs, NULL, 0,
                                           -1, remember, err, &attrs);
    if (status) return status;
    const cnr_attr *const *options = (const cnr_attr *const *)attrs;
    *out = *dense;
    out->data = NULL;
    status = how->encode_size(dense, options, &bytes, err);
    if (!status && bytes > 4 * CNRI_CHECK_MOST_BYTES)
        status =
            cnri_fail(err, CNR_E_LIMIT, how->name, "the encoded weight is too large for a case");
    if (!status && !(out->data = cnri_alloc_zero((size_t)bytes + 1))) status = no_memory(err);
    if (!status) status = how->encode(dense, options, out->data, bytes, err);
    out->bytes = bytes;
    out->encoding = cnri_intern(how->name);
    if (!status && CNRI_HAS(how, check)) status = how->check(out, err);
    if (!status) status = decode(out, dense, how, fault, err);
    cnri_free(attrs);
    return status;
}

/* Sets a share of the numbers to 0, another share in each case, because encodings may store
 * zeros specially. */
static void thin(cnr_tensor *t) {
    const int64_t n = cnr_count(t);
    cnri_dice dice = {(uint64_t)n};
    const int64_t share = cnri_dice_below(&dice, 11);
    float *v = (float *)t->data;
    for (int64_t i = 0; t->dtype == CNR_f32 && i < n; i++)
        if (cnri_dice_below(&dice, 10) < share) v[i] = 0;
}

/* Rounds n floats to a 16-bit type. Finite numbers stay finite: kernels refuse those beyond the
 * type's range, and weights may be multiplied by padding. */
static void round_floats(float *data, int64_t n, int32_t dtype) {
    enum { PART = 256 };
    const double max = dtype == CNR_f16 ? 65504 : 0x1.fep127;
    double v[PART];
    uint16_t rounded[PART];
    for (int64_t m; n > 0; n -= m, data += m) {
        m = n < PART ? n : PART;
        for (int64_t k = 0; k < m; k++)
            v[k] = isfinite(data[k]) ? fmax(-max, fmin(max, (double)data[k])) : (double)data[k];
        cnri_elements_write(dtype, rounded, 0, m, CNR_f64, v);
        cnri_elements_read(dtype, rounded, 0, 1, m, CNR_f64, v);
        for (int64_t k = 0; k < m; k++) data[k] = (float)v[k];
    }
}

/* Rounds constant f32 inputs to the 16-bit type in which the kernel stores them. */
static void round_constants(cnri_case *c, int32_t dtype) {
    for (int32_t i = 0; i < c->node.n_inputs; i++) {
        cnr_tensor *t = &c->in[i];
        if (c->inputs[i] && t->dtype == CNR_f32 && t->flags & CNR_TENSOR_CONST)
            round_floats((float *)t->data, cnr_count(t), dtype);
    }
}

void cnri_case_round(cnri_case *c, const cnr_kernel *k) {
    const uint32_t flags = k && CNRI_HAS(k, flags) ? k->flags : 0;
    c->halves = flags & (CNR_KERNEL_F16_MATH | CNR_KERNEL_BF16_MATH);
    c->spreads = (flags & CNR_KERNEL_SPREADS_NAN) != 0;
    c->skips = (flags & CNR_KERNEL_SKIPS_ZEROS) != 0;
    if (flags & (CNR_KERNEL_F16 | CNR_KERNEL_F16_MATH)) round_constants(c, CNR_f16);
    if (flags & (CNR_KERNEL_BF16 | CNR_KERNEL_BF16_MATH)) round_constants(c, CNR_bf16);
}

cnr_status cnri_case_encode(cnri_case *c, const cnr_kernel *k, cnr_error *err) {
    const char *const *names = CNRI_HAS(k, encodings) ? k->encodings : NULL;
    cnr_status status = CNR_OK;
    cnri_case_round(c, k);
    for (int32_t i = 0; names && *names && i < c->node.n_inputs && !status; i++, names++) {
        if (!**names || !c->inputs[i]) continue;
        const cnr_encoding *how = cnri_descriptor_find(CNR_KIND_ENCODING, *names);
        if (!how) return cnri_fail(err, CNR_E_NOT_FOUND, k->name, "no encoding \"%s\"", *names);
        if (!(c->in[i].flags & CNR_TENSOR_CONST) || c->in[i].flags & CNR_TENSOR_VARIABLE)
            return cnri_fail(err, CNR_E_ARG, k->name, "only constants are encoded");
        thin(&c->in[i]);
        status = encode(&c->in[i], &c->encoded[i], how, c->encoding_fault, err);
    }
    return status;
}

/* ---- the end ---- */

void cnri_case_free(cnri_case *c) {
    for (int32_t i = 0; i < CNRI_CHECK_PORTS; i++) {
        cnri_free(c->in[i].data);
        cnri_free(c->out[i].data);
        cnri_free(c->encoded[i].data);
        cnri_free(c->known[i]);
        cnri_free(c->bound[i]);
    }
    for (int32_t i = 0; i < c->n_chain; i++) link_free(&c->chain[i]);
    cnri_free(c->base);
    cnri_free(c->first);
    cnri_free(c->near_special);
    cnri_free(c->skipped.data);
    cnri_free(c->attrs);
    memset(c, 0, sizeof *c);
}

void cnri_case_type(const cnr_tensor *t, cnri_text *out) {
    cnri_text_add(out, "%s[", cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++)
        cnri_text_add(out, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    cnri_text_add(out, "]");
}

/* Appends a tensor's type; c: constant, v: variable. */
static void tensor_text(const cnr_tensor *t, const cnr_tensor *encoded, cnri_text *out) {
    if (!t) {
        cnri_text_add(out, " -");
        return;
    }
    cnri_text_add(out, " ");
    cnri_case_type(t, out);
    cnri_text_add(out, "%s",
                  t->flags & CNR_TENSOR_VARIABLE ? "v"
                  : t->flags & CNR_TENSOR_CONST  ? "c"
                                                 : "");
    if (encoded && encoded->data) cnri_text_add(out, ":%s", cnri_name(encoded->encoding));
}

/* Appends " NAME=VALUE" for each attribute that is set. */
static void attrs_text(const cnr_node *node, cnri_text *out) {
    for (int32_t i = 0; i < node->n_attrs; i++) {
        if (!node->attrs[i]->set) continue;
        cnri_text_add(out, " %s=", node->attrs[i]->name);
        cnri_attr_print(node->attrs[i], out);
    }
}

void cnri_case_text(const cnri_case *c, cnri_text *out) {
    cnri_text_add(out, "%s", c->node.desc->name);
    for (int32_t i = 0; i < c->node.n_inputs; i++) tensor_text(c->inputs[i], &c->encoded[i], out);
    attrs_text(&c->node, out);
    for (int32_t i = 0; i < c->n_chain; i++) {
        const cnri_link *link = &c->chain[i];
        cnri_text_add(out, "; %s", link->node.desc->name);
        if (link->other >= 0) tensor_text(&link->in[1], NULL, out);
        attrs_text(&link->node, out);
    }
}
