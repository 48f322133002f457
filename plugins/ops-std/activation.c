/* Activations of one operand; each is a row of formulas (unary.h). */
#include "unary.h"

#include <tgmath.h>

/* The row of a float attribute: its name, default and help. */
#define FLOAT_ATTR(NAME, DEFAULT, HELP) \
    { .name = NAME, .type = CNR_ATTR_FLOAT, .help = HELP, .default_f = DEFAULT }

static const cnr_attr_spec leaky_relu_attrs[] = {FLOAT_ATTR("alpha", 0.01, "slope below 0")};
static const cnr_attr_spec thresholded_relu_attrs[] = {
    FLOAT_ATTR("alpha", 1, "values up to this become 0")};
static const cnr_attr_spec elu_attrs[] = {FLOAT_ATTR("alpha", 1, "-alpha is the lower limit")};
static const cnr_attr_spec celu_attrs[] = {FLOAT_ATTR("alpha", 1, "-alpha is the lower limit")};
static const cnr_attr_spec selu_attrs[] = {FLOAT_ATTR("alpha", 1.67326319217681884765625,
                                                      "scale of the part below 0"),
                                           FLOAT_ATTR("gamma", 1.05070102214813232421875,
                                                      "scale of everything")};
static const cnr_attr_spec hard_sigmoid_attrs[] = {FLOAT_ATTR("alpha", 0.2, "slope"),
                                                   FLOAT_ATTR("beta", 0.5, "value at 0")};
static const cnr_attr_spec swish_attrs[] = {
    FLOAT_ATTR("alpha", 1, "scale of the sigmoid's argument")};
static const cnr_attr_spec shrink_attrs[] =
    {FLOAT_ATTR("lambd", 0.5, "values within this distance of 0 become 0"),
     FLOAT_ATTR("bias", 0, "distance by which other values move towards 0")};
static const char *const gelu_choices[] = {"none", "tanh", NULL};
static const cnr_attr_spec gelu_attrs[] = {
    {.name = "approximate",
     .type = CNR_ATTR_ENUM,
     .default_s = "none",
     .choices = gelu_choices,
     .help = "none: by the error function; tanh: the approximation of that name"}};

static const char *const swish_aliases[] = {"silu", NULL};
static const char *const sigmoid_aliases[] = {"logistic", NULL};
static const char *const leaky_relu_aliases[] = {"leaky", NULL};

/* 1 / (1 + e^-v), in the type R. */
#define SIGMOID(v) (R(1) / (R(1) + exp(-(v))))
/* ln(1 + e^v), without overflow. */
#define SOFTPLUS(v) ((v) > R(0) ? (v) + log1p(exp(-(v))) : log1p(exp(v)))
/* v limited to [low, high]; not-a-number stays. */
#define BETWEEN(v, low, high) ((v) < R(low) ? R(low) : (v) > R(high) ? R(high) : (v))
/* Argument of tanh in the approximation of GELU. */
#define GELU_U(v) (R(0.7978845608028653559) * ((v) + R(0.044715) * (v) * (v) * (v)))
/* The normal distribution function at v: 0.5 (1 + erf(v / sqrt(2))). */
#define GELU_ERF(v) (R(0.5) * (R(1) + erf((v)*R(0.70710678118654752440))))

/* name, aliases, summary, attributes, coefficients, input types, y = F(x), derivative D as a
 * function of v = x or (OF Y) v = y, and F in OpenCL. */
#define ACTIVATIONS(ROW) \
    ROW(relu, NULL, "max(x, 0); NaN stays NaN", UNARY_PLAIN, UNARY_COEF(NULL), \
        OPS_FLOATS | OPS_SIGNED, x < R(0) ? R(0) : x, v > 0 ? 1 : 0, OF_Y, \
        "(x < 0.0f ? 0.0f : x)") \
    ROW(relu6, NULL, "min(max(x, 0), 6); NaN stays NaN", UNARY_PLAIN, UNARY_COEF(NULL), \
        OPS_FLOATS, BETWEEN(x, 0, 6), v > 0 && v < 6 ? 1 : 0, OF_Y, \
        "(x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x)") \
    ROW(leaky_relu, leaky_relu_aliases, "x, or alpha x below 0; NaN stays NaN", \
        UNARY_ATTRS(leaky_relu), UNARY_COEF("alpha"), OPS_FLOATS, x < R(0) ? a * x : x, \
        v < 0 ? a : 1, OF_X, "(x < 0.0f ? $a * x : x)") \
    ROW(thresholded_relu, NULL, "x where it is above alpha, else 0; NaN gives 0", \
        UNARY_ATTRS(thresholded_relu), UNARY_COEF("alpha"), OPS_FLOATS, x > a ? x : R(0), \
        v > a ? 1 : 0, OF_X, "(x > $a ? x : 0.0f)") \
    ROW(elu, NULL, "x, or alpha (exp(x) - 1) below 0; NaN stays NaN", UNARY_ATTRS(elu), \
        UNARY_COEF("alpha"), OPS_FLOATS, x < R(0) ? a * expm1(x) : x, v < 0 ? a * exp(v) : 1, \
        OF_X, "(x < 0.0f ? $a * expm1(x) : x)") \
    ROW(selu, NULL, "gamma x, or gamma alpha (exp(x) - 1) below 0; NaN stays NaN", \
        UNARY_ATTRS(selu), UNARY_COEF("alpha", "gamma"), OPS_FLOATS, \
        x > R(0) ? b * x : b * a * expm1(x), v > 0 ? b : b * a * exp(v), OF_X, \
        "(x > 0.0f ? $b * x : $b * $a * expm1(x))") \
    ROW(celu, NULL, "x, or alpha (exp(x / alpha) - 1) below 0; NaN stays NaN", UNARY_ATTRS(celu), \
        UNARY_COEF("alpha"), OPS_FLOATS, x < R(0) ? a * expm1(x / a) : x, v < 0 ? exp(v / a) : 1, \
        OF_X, "(x < 0.0f ? $a * expm1(x / $a) : x)") \
    ROW(hard_sigmoid, NULL, "alpha x + beta, limited to 0 .. 1; NaN stays NaN", \
        UNARY_ATTRS(hard_sigmoid), UNARY_COEF("alpha", "beta"), OPS_FLOATS, \
        BETWEEN(a *x + b, 0, 1), a *v + b > 0 && a * v + b < 1 ? a : 0, OF_X, \
        "($a * x + $b < 0.0f ? 0.0f : $a * x + $b > 1.0f ? 1.0f : $a * x + $b)") \
    ROW(hard_swish, NULL, "x times (x / 6 + 1/2 limited to 0 .. 1); NaN for NaN and -infinity", \
        UNARY_PLAIN, UNARY_COEF(NULL), OPS_FLOATS, x *BETWEEN(x / R(6) + R(0.5), 0, 1), \
        v <= -3  ? 0 \
        : v >= 3 ? 1 \
                 : v / 3 + 0.5, \
        OF_X, "x * (x < -3.0f ? 0.0f : x > 3.0f ? 1.0f : x * 0.16666667f + 0.5f)") \
    ROW(sigmoid, sigmoid_aliases, "1 / (1 + exp(-x))", UNARY_PLAIN, UNARY_COEF(NULL), OPS_FLOATS, \
        SIGMOID(x), v *(1 - v), OF_Y, "1.0f / (1.0f + exp(-x))") \
    ROW(swish, swish_aliases, "x sigmoid(alpha x)", UNARY_ATTRS(swish), UNARY_COEF("alpha"), \
        OPS_FLOATS, x *SIGMOID(a *x), SIGMOID(a *v) * (1 + a * v * (1 - SIGMOID(a * v))), OF_X, \
        "x / (1.0f + exp(-$a * x))") \
    ROW(mish, NULL, "x tanh(softplus(x))", UNARY_PLAIN, UNARY_COEF(NULL), OPS_FLOATS, \
        x *tanh(SOFTPLUS(x)), \
        tanh(SOFTPLUS(v)) + v * SIGMOID(v) * (1 - tanh(SOFTPLUS(v)) * tanh(SOFTPLUS(v))), OF_X, \
        "x * tanh(x > 0.0f ? x + log1p(exp(-x)) : log1p(exp(x)))") \
    ROW(gelu, NULL, "x times the normal distribution function at x", UNARY_ATTRS(gelu), \
        UNARY_COEF("approximate"), OPS_FLOATS, \
        a == R(0) ? x * GELU_ERF(x) : R(0.5) * x * (R(1) + tanh(GELU_U(x))), \
        a == 0 ? GELU_ERF(v) + v * 0.39894228040143267794 * exp(-0.5 * v * v) \
               : 0.5 * (1 + tanh(GELU_U(v))) + 0.5 * v * (1 - tanh(GELU_U(v)) * tanh(GELU_U(v))) * \
                                                   0.7978845608028653559 * \
                                                   (1 + 3 * 0.044715 * v * v), \
        OF_X, \
        "($a == 0.0f ? 0.5f * x * (1.0f + erf(x * 0.70710678f)) : " \
        "0.5f * x * (1.0f + tanh(0.79788456f * (x + 0.044715f * x * x * x))))") \
    ROW(softplus, NULL, "log(1 + exp(x))", UNARY_PLAIN, UNARY_COEF(NULL), OPS_FLOATS, SOFTPLUS(x), \
        SIGMOID(v), OF_X, "(x > 0.0f ? x + log1p(exp(-x)) : log1p(exp(x)))") \
    ROW(softsign, NULL, "x / (1 + |x|)", UNARY_PLAIN, UNARY_COEF(NULL), OPS_FLOATS, \
        x / (R(1) + fabs(x)), 1 / ((1 + fabs(v)) * (1 + fabs(v))), OF_X, "x / (1.0f + fabs(x))") \
    ROW(tanh, NULL, "hyperbolic tangent", UNARY_PLAIN, UNARY_COEF(NULL), OPS_FLOATS, tanh(x), \
        1 - v * v, OF_Y, "tanh(x)") \
    ROW(erf, NULL, "error function", UNARY_PLAIN, UNARY_COEF(NULL), OPS_NUMBERS, erf(x), \
        1.12837916709551257390 * exp(-v * v), OF_X, "erf(x)") \
    ROW(shrink, NULL, "x moved towards 0 by bias; 0 within lambd of 0, and for NaN", \
        UNARY_ATTRS(shrink), UNARY_COEF("lambd", "bias"), OPS_NUMBERS, \
        x<-a ? x + b : x> a ? x - b : R(0), v<-a || v> a ? 1 : 0, OF_X, \
        "(x < -$a ? x + $b : x > $a ? x - $b : 0.0f)")

#define OF_X 0
#define OF_Y 1
/* Operator NAME with the value formula F and the derivative D. */
#define ROW(NAME, ALIASES, SUMMARY, ATTRS, COEF, DTYPES, F, D, OF, OPENCL) \
    UNARY_LOOP(double, NAME##_f64, F) \
    UNARY_LOOP(float, NAME##_f32, F) \
    static const unary_row NAME##_row = {.dtypes = DTYPES, \
                                         .coef = UNARY_LIST COEF, \
                                         .opencl = OPENCL, \
                                         .f64 = NAME##_f64, \
                                         .f32 = NAME##_f32, \
                                         .grad = #NAME "_grad", \
                                         .grad_of_y = OF}; \
    UNARY_OP(NAME, ALIASES, SUMMARY, ATTRS, CNR_OP_EPILOGUE, UNARY_GRAD) \
    UNARY_GRAD_OP(NAME, ATTRS, COEF, D)
ACTIVATIONS(ROW)
#undef ROW
