/* Arithmetic, rounding, trigonometry and tests of one operand; each is a row of formulas. */
#include "unary.h"

#include <tgmath.h>

static const cnr_attr_spec is_inf_attrs[] =
    {{.name = "detect_negative", .type = CNR_ATTR_BOOL, .default_i = 1, .help = "-inf counts"},
     {.name = "detect_positive", .type = CNR_ATTR_BOOL, .default_i = 1, .help = "+inf counts"}};
static const char *const neg_aliases[] = {"negative", NULL};

/* Floats with a derivative: name, aliases, summary, y = F(x), derivative D of v, OpenCL. */
/* clang-format off */
#define SMOOTH(ROW) \
    ROW(exp, NULL, "e to the x", exp(x), v, OF_Y, "exp(x)") \
    ROW(log, NULL, "natural logarithm", log(x), 1 / v, OF_X, "log(x)") \
    ROW(sqrt, NULL, "square root", sqrt(x), 0.5 / v, OF_Y, "sqrt(x)") \
    ROW(reciprocal, NULL, "1 / x", R(1) / x, -v * v, OF_Y, "1.0f / x") \
    ROW(sin, NULL, "sine", sin(x), cos(v), OF_X, "sin(x)") \
    ROW(cos, NULL, "cosine", cos(x), -sin(v), OF_X, "cos(x)") \
    ROW(tan, NULL, "tangent", tan(x), 1 + v * v, OF_Y, "tan(x)") \
    ROW(asin, NULL, "inverse sine", asin(x), 1 / sqrt(1 - v * v), OF_X, "asin(x)") \
    ROW(acos, NULL, "inverse cosine", acos(x), -1 / sqrt(1 - v * v), OF_X, "acos(x)") \
    ROW(atan, NULL, "inverse tangent", atan(x), 1 / (1 + v * v), OF_X, "atan(x)") \
    ROW(sinh, NULL, "hyperbolic sine", sinh(x), cosh(v), OF_X, "sinh(x)") \
    ROW(cosh, NULL, "hyperbolic cosine", cosh(x), sinh(v), OF_X, "cosh(x)") \
    ROW(asinh, NULL, "inverse hyperbolic sine", asinh(x), 1 / sqrt(v * v + 1), OF_X, "asinh(x)") \
    ROW(acosh, NULL, "inverse hyperbolic cosine", acosh(x), 1 / sqrt(v * v - 1), OF_X, \
        "acosh(x)") \
    ROW(atanh, NULL, "inverse hyperbolic tangent", atanh(x), 1 / (1 - v * v), OF_X, "atanh(x)")
/* clang-format on */

#define OF_X 0
#define OF_Y 1
/* Operator NAME on floats with the formula F and the derivative D. */
#define ROW(NAME, ALIASES, SUMMARY, F, D, OF, OPENCL) \
    UNARY_LOOP(double, NAME##_f64, F) \
    UNARY_LOOP(float, NAME##_f32, F) \
    static const unary_row NAME##_row = {.dtypes = OPS_FLOATS, \
                                         .opencl = OPENCL, \
                                         .f64 = NAME##_f64, \
                                         .f32 = NAME##_f32, \
                                         .grad = #NAME "_grad", \
                                         .grad_of_y = OF}; \
    UNARY_OP(NAME, ALIASES, SUMMARY, UNARY_PLAIN, CNR_OP_EPILOGUE, UNARY_GRAD) \
    UNARY_GRAD_OP(NAME, UNARY_PLAIN, UNARY_COEF(NULL), D)
SMOOTH(ROW)
#undef ROW

/* Any numeric type: I and U are the formulas for signed and unsigned integers. */
#define NUMBERS(ROW) \
    ROW(abs, NULL, "|x|", OPS_NUMBERS, fabs(x), (int64_t)(x < 0 ? -(uint64_t)x : (uint64_t)x), x, \
        v > 0   ? 1 \
        : v < 0 ? -1 \
                : 0, \
        "fabs(x)") \
    ROW(neg, neg_aliases, "-x", OPS_FLOATS | OPS_SIGNED, -x, (int64_t) - (uint64_t)x, -x, -1, \
        "-x") \
    ROW(sign, NULL, "-1, 0 or 1; NaN for NaN", OPS_NUMBERS, \
        x > R(0)   ? R(1) \
        : x < R(0) ? R(-1) \
                   : x, \
        (x > 0) - (x < 0), x > 0, 0, "(x != x ? x : sign(x))") \
    ROW(floor, NULL, "the largest integer not above x", OPS_FLOATS, floor(x), x, x, 0, "floor(x)") \
    ROW(ceil, NULL, "the smallest integer not below x", OPS_FLOATS, ceil(x), x, x, 0, "ceil(x)") \
    ROW(round, NULL, "the nearest integer, halves to even", OPS_FLOATS, rint(x), x, x, 0, "rint(x)")

/* Operator NAME on floats and whole numbers. */
#define ROW(NAME, ALIASES, SUMMARY, DTYPES, F, I, U, D, OPENCL) \
    UNARY_LOOP(double, NAME##_f64, F) \
    UNARY_LOOP(float, NAME##_f32, F) \
    UNARY_LOOP(int64_t, NAME##_i64, I) \
    UNARY_LOOP(uint64_t, NAME##_u64, U) \
    static const unary_row NAME##_row = {.dtypes = DTYPES, \
                                         .opencl = OPENCL, \
                                         .f64 = NAME##_f64, \
                                         .f32 = NAME##_f32, \
                                         .i64 = NAME##_i64, \
                                         .u64 = NAME##_u64, \
                                         .grad = #NAME "_grad"}; \
    UNARY_OP(NAME, ALIASES, SUMMARY, UNARY_PLAIN, CNR_OP_EPILOGUE, UNARY_GRAD) \
    UNARY_GRAD_OP(NAME, UNARY_PLAIN, UNARY_COEF(NULL), D)
NUMBERS(ROW)
#undef ROW

/* Tests and bitwise operators. */
UNARY_LOOP(uint64_t, not_u64, !x)
static const unary_row not_row = {.dtypes = ELEM_BOOL, .u64 = not_u64};
UNARY_OP(not, NULL, "logical not", UNARY_PLAIN, 0, UNARY_NO_GRAD)

UNARY_LOOP(int64_t, bitwise_not_i64, ~x)
UNARY_LOOP(uint64_t, bitwise_not_u64, ~x)
static const unary_row bitwise_not_row = {.dtypes = OPS_INTS,
                                          .i64 = bitwise_not_i64,
                                          .u64 = bitwise_not_u64};
UNARY_OP(bitwise_not, NULL, "every bit inverted", UNARY_PLAIN, 0, UNARY_NO_GRAD)

UNARY_LOOP(double, is_nan_f64, isnan(x))
static const unary_row is_nan_row = {.dtypes = OPS_FLOATS, .to_bool = 1, .f64 = is_nan_f64};
UNARY_OP(is_nan, NULL, "true where x is not a number", UNARY_PLAIN, 0, UNARY_NO_GRAD)

UNARY_LOOP(double, is_inf_f64, isinf(x) && (x < 0 ? a : b) != 0)
static const unary_row is_inf_row = {.dtypes = OPS_FLOATS,
                                     .to_bool = 1,
                                     .coef = {"detect_negative", "detect_positive"},
                                     .f64 = is_inf_f64};
UNARY_OP(is_inf, NULL, "true where x is infinite", UNARY_ATTRS(is_inf), 0, UNARY_NO_GRAD)
