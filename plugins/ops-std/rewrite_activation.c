/* fuse-activations: replaces GELU, SiLU and hard-swish written as several nodes by one node,
 * whatever the order of factors and constants. */
#include "ops_kit.h"

extern const cnr_rewrite ops_fuse_activations;

enum { DEGREE = 4, DEPTH = 8, MOST_VALUES = 24 };

/* A value as a polynomial in x and S: coefficient [s][d] of S^s x^d, where S is a bounded function
 * of x, such as erf. */
typedef struct poly {
    double at[2][DEGREE];
} poly;

/* The net, and the values x and S(x) in which a formula is written. */
typedef struct match {
    const struct cnr_graph *g;
    cnr_value x, s; /* s is -1: none */
} match;

/* 1: the value is a constant of one element, and *out receives it. */
static int scalar_of(const struct cnr_graph *g, cnr_value value, double *out) {
    const cnr_tensor *t = ops_host->graph_type(g, value);
    if (!cnr_is_constant(t) || cnr_count(t) != 1 || !cnr_is_plain(t, OPS_FLOATS)) return 0;
    *out = elem_f64(t, 0);
    return 1;
}

/* Whether the node is an operator of two operands that polynomials allow. */
static int is_arithmetic(const cnr_node *node) {
    static const char *const names[] = {"add", "sub", "mul", "div", "pow"};
    for (size_t i = 0; i < CNR_ROWS(names); i++)
        if (kit_is(node, names[i]))
            return node->n_inputs == 2 && node->inputs[0] && node->inputs[1];
    return 0;
}

/* *out receives the product; 0: its degree is too high. */
static int multiply(const poly *a, const poly *b, poly *out) {
    poly sum = {{{0}}};
    for (int i = 0; i < 2 * DEGREE; i++)
        for (int j = 0; j < 2 * DEGREE; j++) {
            const double v = a->at[i / DEGREE][i % DEGREE] * b->at[j / DEGREE][j % DEGREE];
            const int s = i / DEGREE + j / DEGREE, d = i % DEGREE + j % DEGREE;
            if (v == 0) continue;
            if (s > 1 || d >= DEGREE) return 0;
            sum.at[s][d] += v;
        }
    *out = sum;
    return 1;
}

/* 1: the polynomial is constant, and *out receives it. */
static int is_number(const poly *p, double *out) {
    for (int i = 1; i < 2 * DEGREE; i++)
        if (p->at[i / DEGREE][i % DEGREE] != 0) return 0;
    *out = p->at[0][0];
    return 1;
}

/* *out receives the polynomial of the node's output from those of its inputs; 0: it has none. */
static int combine(const cnr_node *node, const poly *a, const poly *b, poly *out) {
    poly by = {{{0}}};
    double number;
    if (kit_is(node, "mul")) return multiply(a, b, out);
    if (kit_is(node, "div")) {
        if (!is_number(b, &number) || number == 0) return 0;
        by.at[0][0] = 1 / number;
        return multiply(a, &by, out);
    }
    if (kit_is(node, "pow")) {
        by.at[0][0] = 1;
        if (!is_number(b, &number) || number != rint(number) || number < 1 || number >= DEGREE)
            return 0;
        for (int i = 0; i < (int)number; i++)
            if (!multiply(&by, a, &by)) return 0;
        *out = by;
        return 1;
    }
    for (int i = 0; i < 2 * DEGREE; i++) {
        const double v = b->at[i / DEGREE][i % DEGREE];
        out->at[i / DEGREE][i % DEGREE] =
            a->at[i / DEGREE][i % DEGREE] + (kit_is(node, "sub") ? -v : v);
    }
    return 1;
}

/* Writes `value` as a polynomial of x and S; 0: it is none. */
static int poly_of(const match *m, cnr_value value, int depth, poly *out) {
    const cnr_value *in;
    poly a, b;
    memset(out, 0, sizeof *out);
    if (value == m->x || value == m->s) {
        out->at[value == m->s][value == m->x] = 1;
        return 1;
    }
    if (value < 0) return 0;
    if (scalar_of(m->g, value, &out->at[0][0])) return 1;
    const cnr_node *node = kit_maker(m->g, value, &in);
    if (!node || depth >= DEPTH || !is_arithmetic(node)) return 0;
    const cnr_value left = in[0], right = in[1];
    return poly_of(m, left, depth + 1, &a) && poly_of(m, right, depth + 1, &b) &&
           combine(node, &a, &b, out);
}

/* 1: the coefficients equal `want`, each within tolerance of its size. */
static int near(const double *p, const double *want, double tolerance) {
    for (int i = 0; i < DEGREE; i++)
        if (!(fabs(p[i] - want[i]) <= tolerance * fabs(want[i]))) return 0;
    return 1;
}

/* ---- the bounded function S and the activations made of it ---- */

/* 1: the node limits to [low, high] by constants. */
static int is_clip(const cnr_node *node, double low, double high) {
    int known[2] = {0};
    if (!kit_is(node, "clip")) return 0;
    const double least = kit_scalar(node, 1, "min", &known[0]);
    const double most = kit_scalar(node, 2, "max", &known[1]);
    return known[0] && known[1] && least == low && most == high;
}

/* Bounded functions S that the formulas are made of. */
typedef enum bounded { NONE, ERF, TANH, SIGMOID, SIX, ONE, HARD_SIGMOID } bounded;

/* The bounded function that the node computes; NONE: another operator. */
static bounded bounded_of(const cnr_node *node) {
    if (kit_is(node, "erf")) return ERF;
    if (kit_is(node, "tanh")) return TANH;
    if (kit_is(node, "sigmoid")) return SIGMOID;
    if (kit_is(node, "relu6") || is_clip(node, 0, 6)) return SIX;
    if (is_clip(node, 0, 1)) return ONE;
    if (kit_is(node, "hard_sigmoid") && fabs(cnr_attr_float(node, "alpha") - 1.0 / 6) < 1e-6 &&
        cnr_attr_float(node, "beta") == 0.5)
        return HARD_SIGMOID;
    return NONE;
}

/* A known activation: x by a polynomial of S. */
typedef struct activation {
    bounded kind;
    double argument[DEGREE];            /* the argument of S, as a polynomial of x */
    double without[DEGREE], by[DEGREE]; /* the result is without + by * S */
    const char *op, *approximate;
} activation;

static const activation activations[] = {
    {ERF, {0, M_SQRT1_2}, {0, 0.5}, {0, 0.5}, "gelu", "none"},
    {TANH,
     {0, 0.7978845608028653559, 0, 0.7978845608028653559 * 0.044715},
     {0, 0.5},
     {0, 0.5},
     "gelu",
     "tanh"},
    {SIGMOID, {0, 1}, {0}, {0, 1}, "swish", NULL}, /* the argument may be any multiple of x */
    {SIX, {3, 1}, {0}, {0, 1.0 / 6}, "hard_swish", NULL},
    {ONE, {0.5, 1.0 / 6}, {0}, {0, 1}, "hard_swish", NULL},
    {HARD_SIGMOID, {0, 1}, {0}, {0, 1}, "hard_swish", NULL},
};

/* The row of the activation that has these polynomials, within the type's precision, and its
 * *alpha; NULL: none. */
static const activation *find(bounded kind, const poly *argument, const poly *result, int32_t dtype,
                              double *alpha) {
    const double tolerance = dtype == CNR_f16 ? 1e-3 : dtype == CNR_bf16 ? 8e-3 : 4e-6;
    for (size_t i = 0; i < CNR_ROWS(activations); i++) {
        const activation *a = &activations[i];
        double want[DEGREE];
        if (a->kind != kind) continue;
        memcpy(want, a->argument, sizeof want);
        if (kind == SIGMOID) want[1] = *alpha = argument->at[0][1];
        if (want[1] != 0 && near(argument->at[0], want, tolerance) &&
            near(result->at[0], a->without, tolerance) && near(result->at[1], a->by, tolerance))
            return a;
    }
    return NULL;
}

/* ---- search ---- */

/* Values that were visited, at most MOST_VALUES. */
typedef struct values {
    cnr_value at[MOST_VALUES];
    int n;
} values;

/* Appends to `out` `value` and the values from which arithmetic makes it, DEPTH nodes back at most
 * (`depth`: those passed so far); only_bounded: those of bounded functions. */
static void gather(const struct cnr_graph *g, cnr_value value, int only_bounded, int depth,
                   values *out) {
    const cnr_value *in;
    const cnr_node *node = kit_maker(g, value, &in);
    if (!only_bounded || (node && bounded_of(node) != NONE)) {
        for (int i = 0; i < out->n; i++)
            if (out->at[i] == value) return;
        if (out->n < MOST_VALUES) out->at[out->n++] = value;
    }
    if (!node || depth >= DEPTH || !is_arithmetic(node)) return;
    const cnr_value left = in[0], right = in[1];
    double number;
    if (!scalar_of(g, left, &number)) gather(g, left, only_bounded, depth + 1, out);
    if (!scalar_of(g, right, &number)) gather(g, right, only_bounded, depth + 1, out);
}

/* The activation that `root` computes, as a function of *x; NULL: none. */
static const activation *recognise(const struct cnr_graph *g, cnr_value root, cnr_value *x,
                                   double *alpha) {
    values bounds = {.n = 0};
    gather(g, root, 1, 0, &bounds);
    for (int k = 0; k < bounds.n; k++) {
        const cnr_value *in;
        const cnr_node *node = kit_maker(g, bounds.at[k], &in);
        const bounded kind = bounded_of(node);
        const cnr_value argument = in[0];
        values from = {.n = 0};
        gather(g, argument, 0, 0, &from);
        for (int i = 0; i < from.n; i++) {
            const match inner = {g, from.at[i], -1}, outer = {g, from.at[i], bounds.at[k]};
            const cnr_tensor *t = ops_host->graph_type(g, from.at[i]);
            const cnr_tensor *y = ops_host->graph_type(g, root);
            poly p, q;
            if (t->dtype != y->dtype || !cnr_same_shape(t, y)) continue;
            if (!poly_of(&inner, argument, 0, &p) || !poly_of(&outer, root, 0, &q)) continue;
            const activation *a = find(kind, &p, &q, t->dtype, alpha);
            *x = from.at[i];
            if (a) return a;
        }
    }
    return NULL;
}

/* Replaces `old` by a node of the activation a of x, before node `index`. */
static cnr_status replace(struct cnr_graph *g, int32_t index, const activation *a, cnr_value x,
                          double alpha, cnr_value old) {
    cnr_value made = -1;
    cnr_attr attr = kit_attr_float("alpha", alpha);
    const cnr_attr *const attrs[] = {&attr};
    const int32_t n = a->kind == SIGMOID || a->approximate != NULL;
    if (a->approximate)
        attr = (cnr_attr){.name = "approximate",
                          .type = CNR_ATTR_STRING,
                          .set = 1,
                          .s = a->approximate};
    ops_host->graph_insert_before(g, index);
    CNR_TRY(ops_host->graph_node(g, a->op, NULL, NULL, &x, 1, attrs, n, &made, 1));
    return ops_host->graph_replace(g, old, made);
}

/* The rewrite: returns how many changes it made, negative on failure. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < ops_host->graph_node_count(g); i++) {
        const cnr_value *out;
        const cnr_node *node = ops_host->graph_node_at(g, i, NULL, &out);
        if ((!kit_is(node, "mul") && !kit_is(node, "div")) || !is_arithmetic(node) ||
            ops_host->graph_use_count(g, out[0]) == 0)
            continue;
        const cnr_value old = out[0];
        cnr_value x;
        double alpha = 1;
        const activation *a = recognise(g, old, &x, &alpha);
        if (!a) continue;
        const cnr_status status = replace(g, i, a, x, alpha, old);
        if (status != CNR_OK)
            return ops_host->fail(err, status, ops_fuse_activations.name, "could not be applied");
        changes++;
    }
    return changes;
}

const cnr_rewrite ops_fuse_activations = {
    .size = sizeof(cnr_rewrite),
    .order = 5,
    .name = "fuse-activations",
    .summary = "makes one node of GELU, SiLU and hard-swish that are written as several",
    .apply = apply,
    .flags = CNR_REWRITE_STRUCTURE,
    .example = ops_example_activations,
};
