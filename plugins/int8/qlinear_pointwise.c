/* Operators between quantised layers: sum and product of two quantised values, a function given as
 * a table, and the mean of planes. Steps are computed in f32 and rounded, ties to even; factors are
 * computed from the scales in f64 and rounded once. */
#include "int8.h"

#include <math.h>
#include "shapes.h"

#define BYTES (1u << CNR_u8 | 1u << CNR_i8)

/* Fills err: what is wrong with the node. */
static cnr_status wrong(cnr_error *err, const cnr_node *node, const char *text) {
    return int8_host->fail(err, CNR_E_SHAPE, node->name, "%s: %s", node->desc->name, text);
}

/* Checks that all inputs exist, those in `bytes` are u8 or i8 and the others f32; scales and zero
 * points (all inputs not in `values`) must be scalars. */
static cnr_status check(const cnr_node *node, uint32_t bytes, uint32_t values, cnr_error *err) {
    if (node->n_inputs < node->desc->n_inputs) return wrong(err, node, "inputs are missing");
    for (int32_t i = 0; i < node->desc->n_inputs; i++) {
        const cnr_tensor *t = node->inputs[i];
        const int is_byte = bytes >> i & 1, is_value = values >> i & 1;
        if (!t || t->encoding || !((is_byte ? BYTES : 1u << CNR_f32) >> t->dtype & 1) ||
            (!is_value && (t->rank > 1 || (t->rank == 1 && t->dim[0] != 1 && t->dim[0] >= 0))))
            return int8_host->fail(err, CNR_E_SHAPE, node->name, "%s: input %s: want %s%s",
                                   node->desc->name, node->desc->inputs[i].name,
                                   is_byte ? "u8 or i8" : "f32", is_value ? "" : ", one number");
    }
    return CNR_OK;
}

/* Fails unless a value and its zero point have the same type. */
static cnr_status same_type(const cnr_node *node, int32_t value, int32_t zero, cnr_error *err) {
    if (node->inputs[value]->dtype == node->inputs[zero]->dtype) return CNR_OK;
    return wrong(err, node, "a value and its zero point are of different types");
}

static double real_of(const cnr_tensor *t) { return (double)*(const float *)t->data; }

/* v, clamped to the range of u8 or i8, as a byte with the bits of that type. */
static uint8_t stored(int32_t dtype, double v) {
    const double low = dtype == CNR_i8 ? -128 : 0, high = dtype == CNR_i8 ? 127 : 255;
    v = v > high ? high : v >= low ? v : low;
    return (uint8_t)(int32_t)v;
}

/* ---- qlinear_add, qlinear_mul ---- */

static const cnr_port pair_in[] = {{.name = "a", .help = "u8 or i8"},
                                   {.name = "a_scale", .help = "f32, one number"},
                                   {.name = "a_zero_point", .help = "one number"},
                                   {.name = "b", .help = "u8 or i8; broadcast to a"},
                                   {.name = "b_scale", .help = "f32, one number"},
                                   {.name = "b_zero_point", .help = "one number"},
                                   {.name = "y_scale", .help = "f32, one number"},
                                   {.name = "y_zero_point", .help = "one; gives the type of y"}};
static const cnr_port pair_out[] = {{.name = "y", .help = "the shape of a"}};

/* Checks types and scalars of both operands; y has their broadcast shape and the type of its zero
 * point. Fails with a reason. */
static cnr_status pair_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(check(node, 0xad, 0x09, err));
    CNR_TRY(same_type(node, INT8_A, INT8_A_ZERO, err));
    CNR_TRY(same_type(node, INT8_B, INT8_B_ZERO, err));
    const cnr_tensor *a = node->inputs[INT8_A], *b = node->inputs[INT8_B];
    if (b->rank > a->rank) return wrong(err, node, "b does not broadcast to the shape of a");
    for (int32_t i = 0; i < b->rank; i++) {
        const int64_t own = b->dim[i], other = a->dim[a->rank - b->rank + i];
        if (own != other && own != 1 && own >= 0 && other >= 0)
            return wrong(err, node, "b does not broadcast to the shape of a");
    }
    outputs[0]->dtype = node->inputs[INT8_PAIR_Y_ZERO]->dtype;
    outputs[0]->rank = a->rank;
    memcpy(outputs[0]->dim, a->dim, sizeof a->dim);
    return CNR_OK;
}

/* Sets out->flops to one operation for each element of input 0; unset where that number is
 * unknown. */
static void flops(const cnr_node *node, cnr_cost *out) {
    const int64_t n = cnr_count(node->inputs[0]);
    if (n > 0) out->flops = (uint64_t)n;
}

/* Computes a + b or a * b of quantised numbers; returns CNR_OK. */
static cnr_status pair_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *const *in = run->node->inputs, *y = run->outputs[0];
    const int multiplies = strcmp(run->node->desc->name, "qlinear_mul") == 0;
    const double a_scale = real_of(in[INT8_A_SCALE]), b_scale = real_of(in[INT8_B_SCALE]);
    const double y_scale = real_of(in[INT8_PAIR_Y_SCALE]);
    const float fa = (float)(a_scale / y_scale), fb = (float)(b_scale / y_scale);
    const float both = (float)(a_scale * b_scale / y_scale);
    const int32_t za = int8_byte_at(in[INT8_A_ZERO], 0), zb = int8_byte_at(in[INT8_B_ZERO], 0);
    const double zero = int8_byte_at(in[INT8_PAIR_Y_ZERO], 0);
    int64_t step[CNR_MAX_RANK], at[CNR_MAX_RANK] = {0}, from = 0;
    (void)err;
    shape_strides(in[INT8_B], y, step);
    for (int64_t i = 0; i < cnr_count(y); i++) {
        const int32_t a = int8_byte_at(in[INT8_A], i) - za;
        const int32_t b = int8_byte_at(in[INT8_B], from) - zb;
        const float v = multiplies ? (float)(a * b) * both : (float)a * fa + (float)b * fb;
        ((uint8_t *)y->data)[i] = stored(y->dtype, (double)rintf(v) + zero);
        for (int32_t k = y->rank - 1; k >= 0; k--) {
            from += step[k];
            if (++at[k] < y->dim[k]) break;
            from -= step[k] * y->dim[k];
            at[k] = 0;
        }
    }
    return CNR_OK;
}

/* Defines the operator int8_NAME, of two quantised values. */
#define PAIR(name_, text) \
    const cnr_op int8_##name_ = {CNR_OP_SIZES, \
                                 .name = #name_, \
                                 .summary = text, \
                                 .flags = CNR_OP_PURE, \
                                 CNR_OP_PORTS(pair_in, pair_out), \
                                 .infer = pair_infer, \
                                 .cost = flops, \
                                 .reference = pair_reference}
PAIR(qlinear_add, "The sum of quantised numbers, quantised.");
PAIR(qlinear_mul, "The product of quantised numbers, quantised.");

/* ---- qlinear_table ---- */

static const cnr_port table_in[] = {{.name = "x", .help = "u8 or i8"},
                                    {.name = "table",
                                     .help = "256 of u8 or i8, by the byte of x as an unsigned "
                                             "number"}};
static const cnr_port table_out[] = {{.name = "y", .help = "table[x], the shape of x"}};

/* Shape of x; the table has 256 bytes. */
static cnr_status table_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(check(node, 3, 3, err));
    const cnr_tensor *x = node->inputs[0], *table = node->inputs[1];
    if (table->rank != 1 || (table->dim[0] >= 0 && table->dim[0] != 256))
        return wrong(err, node, "input table: want 256 numbers");
    outputs[0]->dtype = table->dtype;
    outputs[0]->rank = x->rank;
    memcpy(outputs[0]->dim, x->dim, sizeof x->dim);
    return CNR_OK;
}

/* Looks up each byte in the table; returns CNR_OK. */
static cnr_status table_reference(const cnr_run *run, cnr_error *err) {
    const uint8_t *x = run->node->inputs[0]->data, *table = run->node->inputs[1]->data;
    uint8_t *y = run->outputs[0]->data;
    (void)err;
    for (int64_t i = 0; i < cnr_count(run->outputs[0]); i++) y[i] = table[x[i]];
    return CNR_OK;
}

const cnr_op int8_qlinear_table = {
    CNR_OP_SIZES,
    .name = "qlinear_table",
    .summary = "Any function of a quantised number, as the table of its 256 results.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(table_in, table_out),
    .infer = table_infer,
    .cost = flops,
    .reference = table_reference,
};

/* ---- qlinear_global_average_pool ---- */

static const cnr_port mean_in[] = {{.name = "x", .help = "N C spatial; u8 or i8"},
                                   {.name = "x_scale", .help = "f32, one number"},
                                   {.name = "x_zero_point", .help = "one number"},
                                   {.name = "y_scale", .help = "f32, one number"},
                                   {.name = "y_zero_point", .help = "one; gives the type of y"}};
static const cnr_port mean_out[] = {{.name = "y", .help = "N C 1 .."}};

/* Shape of x with one element a plane. */
static cnr_status mean_infer(const cnr_node *node, cnr_tensor *const *outputs, cnr_error *err) {
    CNR_TRY(check(node, 0x15, 0x01, err));
    CNR_TRY(same_type(node, 0, 2, err));
    const cnr_tensor *x = node->inputs[0];
    if (x->rank < 3) return wrong(err, node, "input x: want N C spatial");
    outputs[0]->dtype = node->inputs[INT8_MEAN_Y_ZERO]->dtype;
    outputs[0]->rank = x->rank;
    for (int32_t i = 0; i < x->rank; i++) outputs[0]->dim[i] = i < 2 ? x->dim[i] : 1;
    return CNR_OK;
}

/* Mean of each plane; returns CNR_OK. */
static cnr_status mean_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *const *in = run->node->inputs, *y = run->outputs[0];
    const int64_t plane = cnr_span(in[0], 2, in[0]->rank), zero = int8_byte_at(in[2], 0);
    const float factor = (float)(real_of(in[1]) / (real_of(in[3]) * (double)plane));
    const double y_zero = int8_byte_at(in[INT8_MEAN_Y_ZERO], 0);
    (void)err;
    for (int64_t i = 0; i < cnr_count(y); i++) {
        int64_t sum = 0;
        for (int64_t k = 0; k < plane; k++)
            sum += int8_byte_at(in[0], cnr_count(in[0]) == 1 ? 0 : i * plane + k) - zero;
        ((uint8_t *)y->data)[i] = stored(y->dtype, (double)rintf((float)sum * factor) + y_zero);
    }
    return CNR_OK;
}

const cnr_op int8_qlinear_global_average_pool = {
    CNR_OP_SIZES,
    .name = "qlinear_global_average_pool",
    .summary = "The mean of each plane of quantised numbers, quantised.",
    .flags = CNR_OP_PURE,
    CNR_OP_PORTS(mean_in, mean_out),
    .infer = mean_infer,
    .cost = flops,
    .reference = mean_reference,
};
