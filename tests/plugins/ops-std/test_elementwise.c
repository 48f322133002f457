/* Activations, unary and binary operators: hand-worked values, fast forms, gradients, types. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

static const char *const activations[] =
    {"relu",       "relu6",    "leaky_relu", "thresholded_relu",
     "elu",        "selu",     "celu",       "hard_sigmoid",
     "hard_swish", "sigmoid",  "swish",      "mish",
     "gelu",       "softplus", "softsign",   "tanh",
     "erf",        "shrink",   "clip"};
static const char *const smooth[] = {"exp",  "sin",  "cos",   "tan",   "asin", "acos", "atan",
                                     "sinh", "cosh", "asinh", "atanh", "abs",  "neg"};
static const char *const positive[] = {"log", "sqrt", "reciprocal"};
static const char *const pairs[] = {"add", "sub", "mul",  "div",
                                    "pow", "sum", "mean", "weighted_sum"};

/* apply_f32 is what the reference gives, in f32's accuracy. */
static void fast_form(const char *name, const char *attrs, const cnr_tensor *x) {
    const cnr_op *op = op_find(name);
    cnr_attr room[8];
    const cnr_attr *given[8];
    cnr_tensor *y[1];
    if (!op || !op->apply_f32) return;
    const int32_t n = op_parse(op, attrs, room, 8);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    op_call(name, attrs, y, 1, 1, x);
    cnr_node *node = op_node(op, given, n, &x, 1, 1);
    cnr_tensor *fast = t_copy(y[0]);
    op->apply_f32(node, x->data, NULL, fast->data, cnr_count(x));
    char what[128], text[512];
    snprintf(what, sizeof what, "%s: apply_f32 and reference agree", name);
    t_same(fast, y[0], 2e-6, what);
    const int32_t length = op->expression ? op->expression(node, text, sizeof text) : -1;
    ok(length > 0 && strlen(text) == (size_t)length && strchr(text, '$') == NULL,
       "%s: its expression is whole: %s", name, text);
    ok(op->expression(node, text, 3) == -1, "%s: and is refused where it does not fit", name);
    op_node_free(node);
}

/* Tests: operators of one input. */
static void units(void) {
    cnr_tensor *x = t_random(CNR_f64, "2x3x4", 5), *f = t_random(CNR_f32, "7x9", 6);
    for (int64_t i = 0; i < cnr_count(f); i++) t_set(f, i, 4 * t_get(f, i));
    for (size_t i = 0; i < sizeof activations / sizeof activations[0]; i++) {
        const char *attrs = strcmp(activations[i], "clip") == 0 ? "min=-0.5;max=0.25" : "";
        op_gradcheck(activations[i], attrs, 0, 1, IN(x));
        fast_form(activations[i], attrs, f);
    }
    op_gradcheck("gelu", "approximate=tanh", 0, 1, IN(x));
    op_gradcheck("leaky_relu", "alpha=0.3", 0, 1, IN(x));
    for (size_t i = 0; i < sizeof smooth / sizeof smooth[0]; i++)
        op_gradcheck(smooth[i], "", 0, 1, IN(x));
    cnr_tensor *above = t_copy(x);
    for (int64_t i = 0; i < cnr_count(above); i++) t_set(above, i, 1.5 + t_get(x, i));
    for (size_t i = 0; i < sizeof positive / sizeof positive[0]; i++)
        op_gradcheck(positive[i], "", 0, 1, IN(above));
    cnr_tensor *slope = t_random(CNR_f64, "3x1", 8);
    op_gradcheck("prelu", "", 0, 2, IN(x, slope));
    op_gradcheck("prelu", "", 1, 2, IN(x, slope));
}

/* Tests: operators of two inputs. */
static void operands(void) {
    cnr_tensor *a = t_random(CNR_f64, "2x1x4", 1), *b = t_random(CNR_f64, "3x1", 2);
    cnr_tensor *c = t_of(CNR_bool, "4", (double[]){1, 0, 0, 1});
    for (int64_t i = 0; i < cnr_count(a); i++) t_set(a, i, 1.5 + t_get(a, i));
    for (int64_t i = 0; i < cnr_count(b); i++) t_set(b, i, 1.5 + t_get(b, i));
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (int32_t port = 0; port < 2; port++)
            op_gradcheck(pairs[i], strcmp(pairs[i], "weighted_sum") ? "" : "coeffs=2,-3", port, 2,
                         IN(a, b));
    const cnr_tensor *whole = t_of(CNR_i32, "4", (double[]){2, 1, 3, 0});
    op_gradcheck("pow", "", 0, 2, IN(t_random(CNR_f64, "3x4", 9), whole)); /* of whole numbers */
    const cnr_tensor *low = t_of(CNR_f64, "1", (double[]){-0.4});
    const cnr_tensor *high = t_of(CNR_f64, "", (double[]){0.3});
    for (int32_t port = 0; port < 3; port++) {
        op_gradcheck("clip", "", port, 3, IN(t_random(CNR_f64, "3x5", 4), low, high));
        op_gradcheck("clip", "min=-0.2", port ? 2 : 0, 3,
                     IN(t_random(CNR_f64, "3x5", 4), NULL, high));
    }
    op_gradcheck("where", "", 1, 3, IN(c, a, b));
    op_gradcheck("where", "", 2, 3, IN(c, a, b));
}

/* Any range of a broadcast result, along each axis, is that part of the whole. */
static void ranges(const char *name, const cnr_tensor *const *in, int32_t n_in) {
    const cnr_op *op = op_find(name);
    cnr_tensor *whole[1];
    int good = 1;
    if (op_try(name, "", whole, 1, n_in, in) != CNR_OK) exit(1);
    for (int32_t axis = 0; axis < whole[0]->rank; axis++)
        for (int64_t at = 0; at < whole[0]->dim[axis]; at++) {
            cnr_node *node = op_node(op, NULL, 0, in, n_in, 1);
            cnr_tensor *y = (cnr_tensor *)(uintptr_t)node->outputs[0];
            t_alloc(y);
            good &= op_reference(node, axis, at, at + 1) == CNR_OK;
            const int64_t inner = cnr_span(y, axis + 1, y->rank);
            const uint32_t poison = 0xabababab;
            for (int64_t i = 0; i < cnr_count(y); i++) {
                const int inside = i / inner % y->dim[axis] == at;
                const void *want = inside ? (float *)whole[0]->data + i : (const void *)&poison;
                good &= memcmp((float *)y->data + i, want, 4) == 0;
            }
            op_node_free(node);
        }
    ok(good, "%s computes just the range it is given", name);
}

/* Tests: whole numbers. */
static void whole_numbers(void) {
    cnr_tensor *y[1];
    cnr_tensor *a = t_of(CNR_i32, "6", (double[]){7, -7, 7, -7, INT32_MIN, 5});
    cnr_tensor *b = t_of(CNR_i32, "6", (double[]){2, 2, -2, -2, -1, 0});
    op_call("div", "", y, 1, 2, a, b);
    t_near(y[0], (double[]){3, -3, -3, 3, INT32_MIN, 0}, 0, "division is towards zero");
    op_call("mod", "", y, 1, 2, a, b);
    t_near(y[0], (double[]){1, 1, -1, -1, 0, 0}, 0, "mod has the divisor's sign");
    op_call("mod", "fmod=1", y, 1, 2, a, b);
    t_near(y[0], (double[]){1, -1, 1, -1, 0, 0}, 0, "fmod the dividend's");
    cnr_tensor *u = t_of(CNR_u8, "3", (double[]){250, 3, 0});
    cnr_tensor *v = t_of(CNR_u8, "3", (double[]){10, 5, 1});
    op_call("add", "", y, 1, 2, u, v);
    t_near(y[0], (double[]){4, 8, 1}, 0, "u8 wraps up");
    op_call("sub", "", y, 1, 2, u, v);
    t_near(y[0], (double[]){240, 254, 255}, 0, "u8 wraps down");
    cnr_tensor *big = t_type(CNR_i64, "2");
    t_alloc(big);
    ((int64_t *)big->data)[0] = INT64_MAX;
    ((int64_t *)big->data)[1] = (INT64_C(1) << 53) + 1;
    cnr_tensor *one = t_of(CNR_i64, "", (double[]){1});
    op_call("mul", "", y, 1, 2, big, one);
    ok(((int64_t *)y[0]->data)[0] == INT64_MAX && ((int64_t *)y[0]->data)[1] % 2 == 1,
       "64 bits are exact");
    op_call("greater", "", y, 1, 2, big, one);
    is_int(y[0]->dtype, CNR_bool, "comparisons give bool");
    cnr_tensor *half = t_of(CNR_f32, "5", (double[]){0.5, 1.5, 2.5, -0.5, -1.5});
    op_call("round", "", y, 1, 1, half);
    t_near(y[0], (double[]){0, 2, 2, -0.0, -2}, 0, "halves go to even");
    cnr_tensor *wild = t_of(CNR_f32, "4", (double[]){NAN, 1, -INFINITY, 300});
    op_call("relu", "", y, 1, 1, wild);
    t_near(y[0], (double[]){NAN, 1, 0, 300}, 0, "NaN passes through relu");
    op_call("clip", "min=0;max=6", y, 1, 1, wild);
    t_near(y[0], (double[]){NAN, 1, 0, 6}, 0, "and through clip");
    op_call("cast", "to=i8", y, 1, 1, wild);
    is_int((long long)t_get(y[0], 0), 0, "NaN becomes 0 in whole numbers");
}

/* Tests: what is refused. */
static void refusals(void) {
    cnr_tensor *a = t_type(CNR_f32, "2x3"), *b = t_type(CNR_f32, "4"), *i = t_type(CNR_i32, "3");
    op_refused("add", "", "broadcast", 2, IN(a, b));
    op_refused("add", "", "one type", 2, IN(a, i));
    op_refused("sigmoid", "", "i32", 1, IN(i));
    op_refused("and", "", "f32", 2, IN(a, a));
    op_refused("clip", "", "limit", 2, IN(a, b));
    cnr_tensor *free_batch = t_type(CNR_f32, "2x3");
    free_batch->dim[0] = CNR_DIM_SYMBOL(0);
    cnr_node *node = op_node(op_find("mul"), NULL, 0, IN(free_batch, t_type(CNR_f32, "3")), 2, 1);
    ok(node && node->outputs[0]->dim[0] == CNR_DIM_SYMBOL(0), "a symbol stays one");
    if (node) op_node_free(node);
}

int main(void) {
    op_open();
    units();
    operands();
    cnr_tensor *a = t_random(CNR_f32, "2x1x5x1", 1), *b = t_random(CNR_f32, "3x1x4", 2);
    cnr_tensor *c = t_random(CNR_f32, "2x3x1x1", 3);
    ranges("add", IN(a, b), 2);
    ranges("max", IN(a, b, c), 3);
    ranges("sigmoid", IN(c), 1);
    ranges("prelu", IN(t_random(CNR_f32, "2x3x4", 4), t_random(CNR_f32, "3x1", 5)), 2);
    whole_numbers();
    refusals();
    return op_done();
}
