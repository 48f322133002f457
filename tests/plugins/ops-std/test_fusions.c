/* Rewrites with the real operators: activations, clips and normalisations that exporters write as
 * several nodes. */
#include "rewrites.h"

/* ---- activations ---- */

static cnr_value gelu_torch(cnr_graph *g, cnr_value x) { /* torch.onnx of nn.GELU */
    return MUL(MUL(x, ADD(OF("erf", DIV(x, N(1.4142135381698608))), N(1))), N(0.5));
}
static cnr_value gelu_keras(cnr_graph *g, cnr_value x) { /* tf2onnx of keras.activations.gelu */
    return MUL(MUL(N(0.5), x), ADD(N(1), OF("erf", DIV(x, N(1.4142135623730951)))));
}
static cnr_value gelu_bert(cnr_graph *g, cnr_value x) { /* the original BERT's, of TensorFlow */
    return MUL(x, MUL(N(0.5), ADD(N(1), OF("erf", MUL(x, N(0.70710678118654752))))));
}
static cnr_value tanh_transformers(cnr_graph *g, cnr_value x) { /* gelu_new */
    const cnr_value inner =
        MUL(ADD(x, MUL(NODE(g, "pow", NULL, x, N(3)), N(0.044715))), N(0.7978845608028654));
    return MUL(MUL(x, N(0.5)), ADD(OF("tanh", inner), N(1)));
}
static cnr_value tanh_torch(cnr_graph *g, cnr_value x) { /* its decomposition */
    const cnr_value cube = MUL(MUL(x, x), x);
    const cnr_value inner = MUL(N(0.7978845608028654), ADD(x, MUL(N(0.044715), cube)));
    return MUL(MUL(N(0.5), x), ADD(OF("tanh", inner), N(1)));
}
static cnr_value tanh_fast(cnr_graph *g, cnr_value x) { /* gelu_fast: factored out */
    const cnr_value inner =
        MUL(MUL(x, N(0.7978845608028654)), ADD(N(1), MUL(MUL(N(0.044715), x), x)));
    return MUL(MUL(N(0.5), x), ADD(N(1), OF("tanh", inner)));
}
static cnr_value silu(cnr_graph *g, cnr_value x) { return MUL(x, OF("sigmoid", x)); }
static cnr_value silu_left(cnr_graph *g, cnr_value x) { return MUL(OF("sigmoid", x), x); }
/* Spells an activation. */
static cnr_value silu_scaled(cnr_graph *g, cnr_value x) {
    return MUL(x, OF("sigmoid", MUL(x, N(1.702))));
}
/* Spells an activation. */
static cnr_value six(cnr_graph *g, cnr_value x) {
    return DIV(MUL(x, OF("relu6", ADD(x, N(3)))), N(6));
}
/* Spells an activation. */
static cnr_value six_first(cnr_graph *g, cnr_value x) {
    return MUL(x, MUL(OF("relu6", ADD(N(3), x)), N(1.0 / 6)));
}
/* Spells an activation. */
static cnr_value hard(cnr_graph *g, cnr_value x) {
    const cnr_attr alpha = {.name = "alpha", .type = CNR_ATTR_FLOAT, .set = 1, .f = 1.0 / 6};
    return MUL(x, NODE(g, "hard_sigmoid", &alpha, x));
}
/* These are none. */
static cnr_value other_factor(cnr_graph *g, cnr_value x) {
    return MUL(MUL(x, ADD(OF("erf", DIV(x, N(1.4))), N(1))), N(0.5));
}
static cnr_value gate(cnr_graph *g, cnr_value x) { return MUL(OF("relu", x), OF("sigmoid", x)); }

/* Tests: activations are found. */
static void activations(void) {
    static const struct {
        cnr_value (*make)(cnr_graph *g, cnr_value x);
        const char *what;
        int32_t nodes;
    } rows[] = {{gelu_torch, "gelu of erf, torch", 1},
                {gelu_keras, "keras", 1},
                {gelu_bert, "bert", 1},
                {tanh_transformers, "gelu of tanh, transformers", 1},
                {tanh_torch, "torch", 1},
                {tanh_fast, "factored", 1},
                {silu, "silu", 1},
                {silu_left, "the sigmoid first", 1},
                {silu_scaled, "a scaled one", 1},
                {six, "hard-swish of relu6", 1},
                {six_first, "the other way", 1},
                {hard, "of hard_sigmoid", 1},
                {other_factor, "another factor stays", 5},
                {gate, "a gate stays", 3}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cnr_value x;
        cnr_graph *g = begin(&x);
        compare(g, rows[i].make(g, x), rows[i].nodes, rows[i].what);
    }
    /* x is no input but computed, and of a form that the search looks into */
    cnr_value x;
    cnr_graph *g = begin(&x);
    const cnr_value scaled = MUL(OF("sin", x), N(0.5));
    compare(g, gelu_torch(g, scaled), 3, "of a value that is a product");
}

/* ---- limits of clips ---- */

/* Tests: a clip's constant limits, both or one, become attributes, and the clip keeps one input; a
 * limit that is NaN stays an input. */
static void limits(void) {
    static const struct {
        double low, high;
        int32_t inputs;
        const char *what;
    } clips[] = {{-0.5, 0.25, 1, "a clip with two constant limits"},
                 {-INFINITY, 0.25, 1, "a clip with a largest value alone"},
                 {-0.5, INFINITY, 1, "a clip with a least value alone"},
                 {NAN, 0.25, 3, "a limit that is no number stays an input"}};
    cnr_value x;
    for (size_t i = 0; i < CNR_ROWS(clips); i++) {
        cnr_graph *g = begin(&x);
        const cnr_value low = isinf(clips[i].low) ? -1 : N(clips[i].low);
        const cnr_value high = isinf(clips[i].high) ? -1 : N(clips[i].high);
        compare(g, NODE(g, "clip", NULL, OF("tanh", x), low, high), 2, clips[i].what);
        is_int(clip_inputs, clips[i].inputs, "and its inputs");
    }
}

/* ---- layer normalisation as exporters write it ---- */

static cnr_value norm_torch(cnr_graph *g, cnr_value x) { /* torch.onnx of nn.LayerNorm */
    const cnr_value d = SUB(x, MEAN(x, -1));
    const cnr_value n = DIV(d, OF("sqrt", ADD(MEAN(SQUARED(d), -1), N(1e-5))));
    return ADD(MUL(n, weight(g, "w", DIMS(5), -1, 1)), weight(g, "b", DIMS(5), -1, 1));
}
/* Spells a normalisation as Keras does. */
static cnr_value norm_keras(cnr_graph *g,
                            cnr_value x) { /* two differences, 1 / root, other orders */
    const cnr_value d = SUB(x, MEAN(x, 2, 3)), e = SUB(x, MEAN(x, 2, 3));
    const cnr_value root = OF("sqrt", ADD(N(1e-3), MEAN(MUL(e, e), 2, 3)));
    const cnr_value n = MUL(OF("reciprocal", root), d);
    return ADD(weight(g, "b", DIMS(5, 5), -1, 1), MUL(weight(g, "w", DIMS(5, 1), -1, 1), n));
}
static cnr_value norm_plain(cnr_graph *g, cnr_value x) { /* without scale and shift */
    const cnr_value d = SUB(x, MEAN(x, 1, 2, 3));
    return MUL(d, DIV(N(1), OF("sqrt", ADD(MEAN(MUL(d, d), 1, 2, 3), N(1e-5)))));
}
/* Spells a normalisation with another scale. */
static cnr_value norm_scaled(cnr_graph *g,
                             cnr_value x) { /* a scale that is no axis' own stays out */
    const cnr_value d = SUB(x, MEAN(x, -1));
    const cnr_value n = DIV(d, OF("sqrt", ADD(MEAN(SQUARED(d), -1), N(1e-5))));
    return MUL(n, weight(g, "w", DIMS(4, 1, 1), -1, 1));
}
/* These are none. */
static cnr_value norm_channels(cnr_graph *g, cnr_value x) { /* over the channels */
    const cnr_value d = SUB(x, MEAN(x, 1));
    return DIV(d, OF("sqrt", ADD(MEAN(SQUARED(d), 1), N(1e-5))));
}
static cnr_value norm_mixed(cnr_graph *g, cnr_value x) { /* of different axes */
    const cnr_value d = SUB(x, MEAN(x, -1));
    return DIV(d, OF("sqrt", ADD(MEAN(SQUARED(d), 2, 3), N(1e-5))));
}
static cnr_value norm_uncentred(cnr_graph *g, cnr_value x) { /* by the root of the mean square */
    return DIV(SUB(x, MEAN(x, -1)), OF("sqrt", ADD(MEAN(SQUARED(x), -1), N(1e-5))));
}

static cnr_value rms_torch(cnr_graph *g, cnr_value x) { /* as Llama's is exported */
    const cnr_value inverse = DIV(N(1), OF("sqrt", ADD(MEAN(SQUARED(x), -1), N(1e-6))));
    return MUL(weight(g, "w", DIMS(5), -1, 1), MUL(x, inverse));
}
static cnr_value rms_quotient(cnr_graph *g, cnr_value x) { /* as ONNX expands its own operator */
    return MUL(DIV(x, OF("sqrt", ADD(N(1e-3), MEAN(MUL(x, x), 2, 3)))),
               weight(g, "w", DIMS(5, 1), -1, 1));
}
static cnr_value rms_plain(cnr_graph *g, cnr_value x) { /* without a scale */
    return MUL(OF("reciprocal", OF("sqrt", ADD(MEAN(MUL(x, x), -1), N(1e-5)))), x);
}
static cnr_value rms_other(cnr_graph *g, cnr_value x) { /* of another value's square: none */
    return DIV(x, OF("sqrt", ADD(MEAN(SQUARED(OF("exp", x)), -1), N(1e-5))));
}

/* Tests: normalisations are found. */
static void normals(void) {
    static const struct {
        cnr_value (*make)(cnr_graph *g, cnr_value x);
        int32_t norms, nodes;
        const char *what;
    } made[] = {{norm_torch, 1, 1, "a normalisation by a quotient"},
                {norm_keras, 1, 1, "one by an inverse root"},
                {norm_plain, 1, 1, "one without scale and shift"},
                {norm_scaled, 1, 2, "a scale of another axis"},
                {norm_channels, 0, 7, "over other axes than the last ones"},
                {norm_mixed, 1, 3, "a variance of other axes is a mean square"},
                {rms_torch, 1, 1, "an RMS normalisation by an inverse root"},
                {rms_quotient, 1, 1, "one by a quotient"},
                {rms_plain, 1, 1, "one without a scale"},
                {rms_other, 0, 6, "the mean square of another value"},
                {norm_uncentred, 0, 7, "a mean square"}};
    cnr_value x;
    for (size_t i = 0; i < CNR_ROWS(made); i++) {
        cnr_graph *g = begin(&x);
        compare(g, made[i].make(g, x), made[i].nodes, made[i].what);
        is_int(norms, made[i].norms, "and how many nodes normalise");
    }
}

int main(void) {
    if (!open_runtime()) return done();
    activations();
    limits();
    normals();
    cnr_close(rt);
    return done();
}
