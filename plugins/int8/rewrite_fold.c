/* fold-quantized: replaces a node between DequantizeLinear and QuantizeLinear, as other quantisers
 * write it, by a node that computes with the stored bytes.
 *     quantize(f(dequantize(a), ..))          -> qlinear_f(a, ..)
 *     quantize(dequantize(a)), other scale    -> a by a table
 *     quantize(prelu(layer(..)))              -> a layer with slopes
 *     quantize(g(f(..)))                      -> g(quantize(f(..)))    g moves, picks or limits
 *     qlinear_matmul(a, constant matrix, ..)  -> qlinear_dense(a, ..)
 * It runs before constants are folded, which would turn the weights into floats. Sums are exact,
 * and a result is rounded once; the original nodes round after float arithmetic. */
#include "fold.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "shapes.h"

enum { REAL = 1u << CNR_f32, BYTES = 1u << CNR_u8 | 1u << CNR_i8 };

/* ---- quantised operands ---- */

/* Whether the scale and zero point of this (de)quantising node are scalars. */
static int has_one_scale(const cnr_node *node) {
    const cnr_tensor *zero = cnr_own_input(node, 2);
    return int8_is_scalar(cnr_own_input(node, 1), REAL) && (!zero || int8_is_scalar(zero, BYTES)) &&
           cnr_attr_int(node, "block_size") == 0;
}

/* Reads scale and zero point of a quantise or dequantise node. */
static void scale_of(const cnr_node *node, const cnr_value *in, int32_t dtype, fold_operand *out) {
    const cnr_tensor *zero = cnr_own_input(node, 2);
    *out = (fold_operand){.q = in[0],
                          .scale = in[1],
                          .zero = zero ? in[2] : -1,
                          .dtype = dtype,
                          .step = *(const float *)node->inputs[1]->data,
                          .offset = zero ? int8_byte_at(zero, 0) : 0};
}

int fold_operand_of(const graph *g, cnr_value value, fold_operand *out) {
    const cnr_value *in;
    const int32_t producer = value < 0 ? -1 : int8_host->graph_producer(g, value);
    const cnr_node *node = producer < 0 ? NULL : int8_host->graph_node_at(g, producer, &in, NULL);
    if (!node || !graph_is(node, "dequantize_linear") || !int8_is_byte(node->inputs[0]) ||
        node->outputs[0]->dtype != CNR_f32 || !has_one_scale(node))
        return 0;
    scale_of(node, in, node->inputs[0]->dtype, out);
    return 1;
}

/* The operand's constant zero point; adds a zero where it has none. -1: failed. */
cnr_value fold_zero(graph *g, const fold_operand *o) {
    const uint8_t none = 0;
    if (o->zero >= 0) return o->zero;
    return graph_bytes(g, NULL, NULL, o->dtype, &none, 0, NULL);
}

/* 1 if two operands have the same type, scale and zero point. */
static int same_scale(const fold_operand *a, const fold_operand *b) {
    return a->dtype == b->dtype && a->step == b->step && a->offset == b->offset;
}

/* v quantised as y is: scaled, rounded to even, clamped and moved by the zero point. */
static uint8_t byte_of(const fold_operand *y, float v) {
    float low, high;
    int8_bounds(y->dtype, y->offset, &low, &high);
    v = rintf(v / y->step);
    v = v > high ? high : v >= low ? v : low;
    return (uint8_t)((int32_t)v + y->offset);
}

/* out[i]: the real value of byte i of an operand, for all 256. */
static void all_reals(const fold_operand *x, float *out) {
    for (int32_t i = 0; i < 256; i++)
        out[i] = (float)((x->dtype == CNR_i8 ? (int8_t)i : i) - x->offset) * x->step;
}

/* Adds qlinear_table with these 256 entries of type dtype; returns its output, or -1. */
static cnr_value by_table(graph *g, const char *name, cnr_value q, const uint8_t *table,
                          int32_t dtype) {
    const int64_t n = 256;
    const cnr_value in[] = {q, graph_bytes(g, NULL, NULL, dtype, table, 1, &n)};
    return in[1] < 0 ? -1 : graph_add(g, "qlinear_table", name, NULL, in, 2);
}

/* Requantises x to the scale of f->y by a table; returns x's own value where they are the same, -1
 * on failure. */
static cnr_value rescaled(fold_work *f, const fold_operand *x) {
    float real[256];
    uint8_t table[256];
    if (same_scale(x, &f->y)) return x->q;
    all_reals(x, real);
    for (int32_t i = 0; i < 256; i++) table[i] = byte_of(&f->y, real[i]);
    return by_table(f->g, f->name, x->q, table, f->y.dtype);
}

/* ---- functions of one value ---- */

/* *out receives the single number in this value; 0: it has none that is known. */
static int number_of(const graph *g, cnr_value value, const cnr_tensor *t, float *out) {
    fold_operand o;
    if (int8_is_scalar(t, REAL)) {
        *out = *(const float *)t->data;
        return 1;
    }
    if (!fold_operand_of(g, value, &o)) return 0;
    const cnr_tensor *q = int8_host->graph_type(g, o.q);
    if (!int8_is_scalar(q, BYTES)) return 0;
    *out = (float)(int8_byte_at(q, 0) - o.offset) * o.step;
    return 1;
}

/* A function of the input at `port`. All other inputs are constants. */
typedef struct fold_link {
    const cnr_node *node;
    int32_t port;
    float other;
} fold_link;

/* 1 if the node is a function of one value, with constants. */
static int is_function(const graph *g, const cnr_node *node, const cnr_value *in, fold_link *out) {
    int32_t values = 0;
    *out = (fold_link){.node = node};
    if (!(node->desc->flags & CNR_OP_ELEMENTWISE) || !CNR_HAS(node->desc, apply_f32)) return 0;
    for (int32_t i = 0; i < node->n_inputs; i++) {
        if (!node->inputs[i]) continue;
        if (number_of(g, in[i], node->inputs[i], &out->other)) {
            /* the operator itself reads the limits from its inputs */
            if (node->n_inputs > 2 && !int8_is_scalar(node->inputs[i], REAL)) return 0;
            continue;
        }
        out->port = i;
        values++;
    }
    return values == 1 && (out->port == 0 || node->n_inputs == 2) &&
           node->outputs[0]->dtype == CNR_f32 && !node->n_epilogue &&
           cnr_same_shape(node->inputs[out->port], node->outputs[0]);
}

/* Applies the link's function, with its constant operand if it has two, to 256 numbers in place. */
static void apply_link(const fold_link *link, float *v) {
    float second[256];
    const int two = link->node->n_inputs == 2;
    for (int32_t i = 0; i < 256; i++) second[i] = link->other;
    const float *x = link->port ? second : v, *y = link->port ? v : second;
    link->node->desc->apply_f32(link->node, x, two ? y : NULL, v, 256);
}

enum { MOST_LINKS = 12 };

/* Collects the functions whose composition is applied to a dequantised value, in reverse order.
 * Returns their number; 0: there are none. */
static int32_t functions(const fold_work *f, fold_link *links, fold_operand *x) {
    const cnr_node *node = f->node;
    const cnr_value *in = f->in;
    for (int32_t n = 0; n < MOST_LINKS;) {
        if (!is_function(f->g, node, in, &links[n])) return 0;
        const cnr_value v = in[links[n++].port];
        if (fold_operand_of(f->g, v, x)) return n;
        const int32_t producer = v < 0 ? -1 : int8_host->graph_producer(f->g, v);
        if (producer < 0 || int8_host->graph_use_count(f->g, v) != 1) return 0;
        node = int8_host->graph_node_at(f->g, producer, &in, NULL);
    }
    return 0;
}

/* Folds functions of one value into a table; returns the new value, -1 on failure, FOLD_NOT: they
 * are none. */
static cnr_value function(fold_work *f) {
    fold_link links[MOST_LINKS];
    fold_operand x;
    float v[256];
    uint8_t table[256];
    const int32_t n = functions(f, links, &x);
    if (n == 0 || cnr_is_constant(int8_host->graph_type(f->g, x.q))) return FOLD_NOT;
    all_reals(&x, v);
    for (int32_t i = n - 1; i >= 0; i--) apply_link(&links[i], v);
    for (int32_t i = 0; i < 256; i++) table[i] = byte_of(&f->y, v[i]);
    return by_table(f->g, f->name, x.q, table, f->y.dtype);
}

/* ---- sums, products, means, joins ---- */

/* Folds add and mul of two quantised values; returns the new value, -1 on failure, FOLD_NOT: it is
 * none. */
static cnr_value pair(fold_work *f) {
    const int multiplies = graph_is(f->node, "mul");
    fold_operand x[2];
    cnr_value in[8];
    if ((!multiplies && !graph_is(f->node, "add")) || f->node->n_inputs != 2) return FOLD_NOT;
    if (!fold_operand_of(f->g, f->in[0], &x[0]) || !fold_operand_of(f->g, f->in[1], &x[1]))
        return FOLD_NOT;
    const cnr_tensor *a = f->node->inputs[0], *b = f->node->inputs[1];
    const int turned = !int8_pair_form(a, b, multiplies);
    if (turned && !int8_pair_form(b, a, multiplies)) return FOLD_NOT;
    if (!cnr_same_shape(turned ? b : a, f->node->outputs[0])) return FOLD_NOT;
    for (int32_t i = 0; i < 2; i++) {
        const fold_operand *o = &x[i ^ turned];
        in[3 * i] = o->q;
        in[3 * i + 1] = o->scale;
        in[3 * i + 2] = fold_zero(f->g, o);
    }
    in[6] = f->y.scale;
    in[7] = fold_zero(f->g, &f->y);
    return graph_add(f->g, multiplies ? "qlinear_mul" : "qlinear_add", f->name, NULL, in, 8);
}

/* Whether the node is a mean over all axes after the channels. */
static int is_mean(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0];
    int64_t n;
    if (!x || x->rank < 3) return 0;
    if (graph_is(node, "global_average_pool")) return 1;
    if (!graph_is(node, "reduce_mean")) return 0;
    const int64_t *axes = cnr_attr_ints(node, "axes", &n);
    const cnr_tensor *given = cnr_own_input(node, 1);
    if (given) {
        if (!cnr_is_constant(given) || given->dtype != CNR_i64) return 0;
        axes = given->data;
        n = cnr_count(given);
    }
    if (n != x->rank - 2) return 0;
    uint32_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        const int32_t axis = shape_axis(axes[i], x->rank);
        if (axis < 2) return 0;
        seen |= 1u << axis;
    }
    return seen == (1u << x->rank) - 4;
}

/* Folds the mean of planes; returns the new value, -1 on failure, FOLD_NOT: it is none. */
static cnr_value mean(fold_work *f) {
    const cnr_attr axis = {.name = "axis", .type = CNR_ATTR_INT, .set = 1, .i = 1};
    fold_operand x;
    if (!is_mean(f->node) || !fold_operand_of(f->g, f->in[0], &x)) return FOLD_NOT;
    const int flat = f->node->outputs[0]->rank != f->node->inputs[0]->rank;
    const cnr_value in[] = {x.q, x.scale, fold_zero(f->g, &x), f->y.scale, fold_zero(f->g, &f->y)};
    const cnr_value made = graph_add(f->g, "qlinear_global_average_pool", f->name, NULL, in, 5);
    if (made < 0 || !flat) return made;
    return graph_add_with(f->g, "flatten", f->name, NULL, &axis, 1, &made, 1);
}

/* Quantises inputs that are not quantised yet; the node then joins bytes. Returns the new value, -1
 * on failure, FOLD_NOT: it is none. */
static cnr_value joined(fold_work *f) {
    const int32_t n = f->node->n_inputs;
    if (!graph_joins(f->node) || n < 1) return FOLD_NOT;
    cnr_value *list = int8_host->alloc((size_t)n * sizeof *list), made = 0;
    if (!list) return -1;
    for (int32_t i = 0; i < n && made >= 0; i++) {
        fold_operand x;
        const cnr_value in[] = {f->in[i], f->y.scale, f->y.zero};
        if (fold_operand_of(f->g, f->in[i], &x)) made = rescaled(f, &x);
        else made = graph_add(f->g, "quantize_linear", NULL, NULL, in, f->y.zero < 0 ? 2 : 3);
        list[i] = made;
    }
    if (made >= 0) made = graph_add(f->g, f->node->desc->name, f->name, f->node, list, n);
    int8_host->free(list);
    return made;
}

/* Folds a dequantise with the quantise behind it into a table; returns the new value, -1 on
 * failure, FOLD_NOT: it is none. */
static cnr_value requantized(fold_work *f) {
    fold_operand x;
    const cnr_value dequantized = f->out;
    if (!graph_is(f->node, "dequantize_linear") || !fold_operand_of(f->g, dequantized, &x))
        return FOLD_NOT;
    /* rewrite_pass.c handles equal scales */
    if (same_scale(&x, &f->y) || cnr_is_constant(int8_host->graph_type(f->g, x.q))) return FOLD_NOT;
    return rescaled(f, &x);
}

/* ---- operators after the node that only limit or move its values ---- */

/* Narrows *low and *high if the node is max(x, a) or min(x, b); 0: it is not. */
static int is_limit(const cnr_node *node, float *low, float *high) {
    float limit[2] = {0, INFINITY};
    if (graph_is(node, "clip")) {
        limit[0] = (float)cnr_attr_float(node, "min");
        limit[1] = (float)cnr_attr_float(node, "max");
        for (int32_t i = 0; i < 2; i++) {
            const cnr_tensor *t = cnr_own_input(node, i + 1);
            if (t && !int8_is_scalar(t, REAL)) return 0;
            if (t) limit[i] = *(const float *)t->data;
        }
    } else if (graph_is(node, "relu6")) {
        limit[1] = 6;
    } else if (!graph_is(node, "relu")) {
        return 0;
    }
    if (!(limit[0] <= limit[1])) return 0;
    limit[0] = fminf(fmaxf(limit[0], *low), *high); /* limits found earlier are applied later */
    *high = fminf(fmaxf(limit[1], *low), *high);
    *low = limit[0];
    return 1;
}

/* Clips bytes to the quantised limits f->low and f->high by a table; returns q where none would
 * change, -1 on failure. */
static cnr_value limited(fold_work *f, cnr_value q) {
    uint8_t table[256];
    int differs = 0;
    const int32_t low = byte_of(&f->y, f->low), high = byte_of(&f->y, f->high);
    for (int32_t i = 0; i < 256; i++) {
        const int32_t flip = f->y.dtype == CNR_i8 ? 0x80 : 0;
        const int32_t at = i ^ flip, least = low ^ flip, most = high ^ flip;
        table[i] = (uint8_t)((at < least ? least : at > most ? most : at) ^ flip);
        differs |= table[i] != i;
    }
    return differs ? by_table(f->g, f->name, q, table, f->y.dtype) : q;
}

/* Adds the node again, of bytes q instead of real values; returns its output, or -1. */
static cnr_value moved(fold_work *f, const cnr_node *node, const cnr_value *in, cnr_value q) {
    cnr_value list[8] = {q};
    if (node->n_inputs > 8) return -1;
    for (int32_t i = 1; i < node->n_inputs; i++) list[i] = in[i];
    return graph_add(f->g, node->desc->name, node->name, node, list, node->n_inputs);
}

/* ---- the rewrite ---- */

enum { MOST_BEHIND = 8 };

/* Reads the pattern that ends in a quantising node; 0: it can't be folded. */
static int begin(fold_work *f, graph *g, int32_t index) {
    const cnr_value *in, *out;
    const cnr_node *node = int8_host->graph_node_at(g, index, &in, &out);
    if (!graph_is(node, "quantize_linear") || int8_host->graph_use_count(g, out[0]) == 0) return 0;
    if (!has_one_scale(node) || !int8_is_byte(node->outputs[0]) ||
        node->inputs[0]->dtype != CNR_f32)
        return 0;
    if (node->outputs[0]->flags & CNR_TENSOR_DYNAMIC) return 0; /* kernels need known sizes */
    *f = (fold_work){.g = g, .low = -INFINITY, .high = INFINITY};
    scale_of(node, in, node->outputs[0]->dtype, &f->y);
    f->y.q = out[0]; /* the zero point's name is derived from it */
    f->out = in[0];
    return isnormal(f->y.step) && f->y.step > 0;
}

/* Moves f from a leaky relu or prelu to the layer that only it reads; 0: there is none. */
static int before_slopes(fold_work *f) {
    const cnr_value *in;
    const int32_t producer = int8_host->graph_producer(f->g, f->in[0]);
    if (!graph_slopes(f->node, NULL) || producer < 0) return 0;
    const cnr_node *node = int8_host->graph_node_at(f->g, producer, &in, NULL);
    if (int8_host->graph_use_count(f->g, f->in[0]) != 1 || graph_is(node, "dequantize_linear"))
        return 0;
    f->sloped = f->node;
    f->out = f->in[0];
    f->node = node;
    f->in = in;
    return 1;
}

/* Collects the nodes between the computing node and the quantising one, the last first, with their
 * inputs; returns how many, negative: they can't be moved. */
static int32_t behind(fold_work *f, const cnr_node **nodes, const cnr_value **inputs) {
    int32_t n = 0;
    for (;;) {
        const cnr_value *in, *out;
        const int32_t producer = int8_host->graph_producer(f->g, f->out);
        fold_operand x;
        if (producer < 0) return -1;
        f->node = int8_host->graph_node_at(f->g, producer, &in, &out);
        f->in = in;
        if (graph_is(f->node, "dequantize_linear")) return n;
        if (int8_host->graph_use_count(f->g, f->out) != 1 || f->node->n_inputs < 1 || in[0] < 0)
            return -1;
        for (int32_t i = 1; i < f->node->n_outputs; i++)
            if (int8_host->graph_use_count(f->g, out[i]) > 0) return -1;
        const int moves = graph_passes(f->node) && !graph_joins(f->node);
        if (!moves) {
            /* a limit of a dequantised value becomes a table */
            if (fold_operand_of(f->g, in[0], &x)) return n;
            if (before_slopes(f) || !is_limit(f->node, &f->low, &f->high)) return n;
        } else {
            if (n == MOST_BEHIND || f->node->n_inputs > 8) return -1;
            nodes[n] = f->node;
            inputs[n++] = in;
        }
        f->out = in[0];
    }
}

/* Folds a node by the first form that fits; returns changes, or a negative status. */
static int32_t fold_one(graph *g, int32_t index, cnr_error *err) {
    static cnr_value (*const forms[])(fold_work *) = {fold_layer,       function, pair,       mean,
                                                      fold_mean_window, joined,   requantized};
    const cnr_node *nodes[MOST_BEHIND];
    const cnr_value *inputs[MOST_BEHIND];
    fold_work f;
    if (!begin(&f, g, index)) return 0;
    const cnr_value old = f.y.q;
    const int32_t n = behind(&f, nodes, inputs);
    if (n < 0 || f.node->n_epilogue || f.node->outputs[0]->dtype != CNR_f32) return 0;
    snprintf(f.name, sizeof f.name, "%.240s.int8", f.node->name);
    int8_host->graph_insert_before(g, index);
    cnr_value made = FOLD_NOT;
    const size_t n_forms =
        f.sloped ? 1 : sizeof forms / sizeof forms[0]; /* only layers have slopes */
    for (size_t i = 0; i < n_forms && made == FOLD_NOT; i++) made = forms[i](&f);
    if (made == FOLD_NOT) return 0;
    if (made >= 0) made = limited(&f, made);
    for (int32_t i = n - 1; i >= 0 && made >= 0; i--) made = moved(&f, nodes[i], inputs[i], made);
    if (made < 0 || int8_host->graph_replace(g, old, made) != CNR_OK)
        return int8_host->fail(err, CNR_E_STATE, "fold-quantized", "could not be applied");
    return 1;
}

/* Applies the rewrite until nothing changes; returns changes, or a negative status. */
static int32_t apply(graph *g, cnr_error *err) {
    int32_t changes = 0, found = 1;
    while (found) {
        found = 0;
        for (int32_t i = 0; i < int8_host->graph_node_count(g); i++) {
            int32_t done = fold_one(g, i, err);
            if (done == 0) done = fold_product(g, i, err);
            if (done < 0) return done;
            found += done;
        }
        changes += found;
    }
    return changes;
}

const cnr_rewrite int8_fold = {
    .size = sizeof(cnr_rewrite),
    .order = 15,
    .name = "fold-quantized",
    .summary = "nodes between dequantising and quantising ones work on whole numbers",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE, /* the resulting weights are bytes, into which no later rewrite
                                       can fold */
    .example = int8_example_fold,
};
