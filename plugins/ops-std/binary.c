/* Arithmetic, comparison and logic of two or more operands that broadcast; each is a row of
 * formulas. Integer arithmetic wraps; division truncates, and division by zero gives 0. */
#include "broadcast.h"

static const cnr_port pair[] = {{.name = "a", .help = "an operand"},
                                {.name = "b", .help = "the other operand; the two broadcast"}};
static const cnr_port many[] = {
    {.name = "x", .flags = CNR_PORT_VARIADIC, .min = 1, .help = "operands; they broadcast"}};
static const cnr_port result[] = {{.name = "y", .help = "the result in the broadcast shape"}};

/* x to the power y; overflow wraps around. For y < 0: 1 or -1 for an x of 1 or -1, else 0. */
static int64_t wrap_pow(int64_t x, int64_t y) {
    uint64_t base = (uint64_t)x, power = 1;
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    for (; y; y >>= 1, base *= base)
        if (y & 1) power *= base;
    return (int64_t)power;
}

/* x to the power y, modulo 2^64. */
static uint64_t wrap_upow(uint64_t x, uint64_t y) {
    uint64_t power = 1;
    for (; y; y >>= 1, x *= x)
        if (y & 1) power *= x;
    return power;
}

/* Division by 0 and of the smallest number by -1 are undefined in C. */
static int64_t divide(int64_t x, int64_t y) {
    if (y == 0) return 0;
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

/* The larger of x and y; not-a-number where either is. */
#define LARGER(x, y) ((x) != (x) || (x) > (y) ? (x) : (y))
/* The smaller of x and y; not-a-number where either is. */
#define LESSER(x, y) ((x) != (x) || (x) < (y) ? (x) : (y))

/* ---- gradients ---- */

/* Adds the gradient `g` of operand `i`, given in the output's shape. */
static void flow(kit_build *b, const cnr_node *node, const int32_t *want, int32_t i, cnr_value g,
                 cnr_value *grad_in) {
    if (want[i]) grad_in[i] = kit_unbroadcast(b, g, node->outputs[0], node->inputs[i]);
}

/* Method gradient of add: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status add_gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    (void)inputs, (void)outputs;
    for (int32_t i = 0; grad_out[0] >= 0 && i < node->n_inputs; i++)
        flow(&b, node, want, i, grad_out[0], grad_in);
    return kit_built(&b, node, err);
}

/* Method gradient of mean: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status mean_gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    (void)inputs, (void)outputs;
    if (grad_out[0] < 0) return CNR_OK;
    const cnr_value share =
        kit_node2(&b, "mul", grad_out[0],
                  kit_constant(&b, node->outputs[0]->dtype, 1.0 / node->n_inputs));
    for (int32_t i = 0; i < node->n_inputs; i++) flow(&b, node, want, i, share, grad_in);
    return kit_built(&b, node, err);
}

/* Method gradient of sub: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status sub_gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    (void)inputs, (void)outputs;
    if (grad_out[0] < 0) return CNR_OK;
    flow(&b, node, want, 0, grad_out[0], grad_in);
    if (want[1]) flow(&b, node, want, 1, kit_node1(&b, "neg", grad_out[0]), grad_in);
    return kit_built(&b, node, err);
}

/* Method gradient of mul: adds nodes that compute the wanted gradients of the inputs. */
static cnr_status mul_gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    (void)outputs;
    for (int32_t i = 0; grad_out[0] >= 0 && i < 2; i++)
        if (want[i])
            flow(&b, node, want, i, kit_node2(&b, "mul", grad_out[0], inputs[1 - i]), grad_in);
    return kit_built(&b, node, err);
}

/* y = a / b: da = g / b, db = -g y / b */
static cnr_status div_gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    if (grad_out[0] < 0 || (!want[0] && !want[1])) return CNR_OK;
    const cnr_value share = kit_node2(&b, "div", grad_out[0], inputs[1]);
    flow(&b, node, want, 0, share, grad_in);
    if (want[1]) {
        const cnr_value down = kit_node1(&b, "neg", kit_node2(&b, "mul", share, outputs[0]));
        flow(&b, node, want, 1, down, grad_in);
    }
    return kit_built(&b, node, err);
}

/* ---- folding into the operator before: a constant for each channel ---- */

/* The second operand if it is a constant of one element (*step 0) or one for each channel (*step
 * 1); else NULL. */
static const float *channel_operand(const cnr_node *node, int64_t channels, int64_t *step) {
    const cnr_tensor *x = node->inputs[0], *b = cnr_own_input(node, 1);
    if (node->n_inputs < 2 || !b || !b->data || b->dtype != CNR_f32 || x->dtype != CNR_f32 ||
        b->encoding || b->rank > x->rank || x->rank < 2 || x->dim[1] != channels ||
        !(b->flags & CNR_TENSOR_CONST) || b->flags & CNR_TENSOR_VARIABLE)
        return NULL;
    const int32_t axis = 1 - (x->rank - b->rank);
    *step = cnr_count(b) > 1;
    if (*step && (axis < 0 || b->dim[axis] != channels || cnr_count(b) != channels)) return NULL;
    return cnr_count(b) > 0 ? b->data : NULL;
}

/* y = SCALE x + SHIFT, as functions of the second operand v. */
#define AFFINE(SYMBOL, SCALE, SHIFT) \
    static int32_t SYMBOL##_affine(const cnr_node *node, int64_t channels, float *scale, \
                                   float *shift) { \
        int64_t step; \
        const float *known = channel_operand(node, channels, &step); \
        for (int64_t c = 0; known && c < channels; c++) { \
            const float v = known[c * step]; \
            (void)v, scale[c] = SCALE, shift[c] = SHIFT; \
        } \
        return known != NULL; \
    }
AFFINE(add, 1, v)
AFFINE(sub, 1, -v)
AFFINE(mul_op, v, 0)
#define div_affine NULL /* dividing by a denormal number has no such scale */

/* ---- rows ---- symbol, name, summary, types, y as double and float F, as signed I, as unsigned U,
 * gradient, OpenCL, flags. OP_PAIR: two operands; OP_MANY: one or more. */
/* x op y for int64_t x and y, wrapping around. */
#define SIGNED_WRAP(op) (int64_t)((uint64_t)x op(uint64_t) y)
/* Calls PAIR for each operator of two inputs, MANY for each of any number. */
#define FOLDS(PAIR, MANY) \
    PAIR(add, "add", "a + b", OPS_NUMBERS, x + y, SIGNED_WRAP(+), x + y, add_gradient, "x + y", 0) \
    PAIR(sub, "sub", "a - b", OPS_NUMBERS, x - y, SIGNED_WRAP(-), x - y, sub_gradient, "x - y", 0) \
    PAIR(mul_op, "mul", "a b", OPS_NUMBERS, x *y, SIGNED_WRAP(*), x *y, mul_gradient, "x * y", \
         CNR_OP_MULTIPLIES) \
    PAIR(div, "div", "a / b; integers round towards zero", OPS_NUMBERS, x / y, divide(x, y), \
         y ? x / y : 0, div_gradient, "x / y", 0) \
    MANY(max, "max", "the largest of the operands; NaN where one is NaN", OPS_NUMBERS, \
         LARGER(x, y), LARGER(x, y), LARGER(x, y), NULL, "(x > y || x != x ? x : y)", 0, 0) \
    MANY(min, "min", "the smallest of the operands; NaN where one is NaN", OPS_NUMBERS, \
         LESSER(x, y), LESSER(x, y), LESSER(x, y), NULL, "(x < y || x != x ? x : y)", 0, 0) \
    MANY(sum, "sum", "the sum of the operands", OPS_NUMBERS, x + y, SIGNED_WRAP(+), x + y, \
         add_gradient, "x + y", 0, CNR_OP_ADDS) \
    MANY(mean, "mean", "the mean of the operands", OPS_FLOATS, x + y, x, x, mean_gradient, NULL, \
         1, 0)

/* symbol and name, summary, types, one formula for F, I and U */
/* clang-format off */
#define TESTS(TEST) \
    TEST(equal, "a = b", OPS_WHOLE, x == y) \
    TEST(less, "a < b", OPS_NUMBERS, x < y) \
    TEST(greater, "a > b", OPS_NUMBERS, x > y) \
    TEST(less_or_equal, "a <= b", OPS_NUMBERS, x <= y) \
    TEST(greater_or_equal, "a >= b", OPS_NUMBERS, x >= y)
/* clang-format on */

/* symbol, name, summary, types, formula on integers */
/* clang-format off */
#define BITS(BIT) \
    BIT(and, "and", "logical and", ELEM_BOOL, (x && y)) \
    BIT(or, "or", "logical or", ELEM_BOOL, (x || y)) \
    BIT(xor, "xor", "logical exclusive or", ELEM_BOOL, (!x != !y)) \
    BIT(bitwise_and, "bitwise_and", "and of each bit", OPS_INTS, x & y) \
    BIT(bitwise_or, "bitwise_or", "or of each bit", OPS_INTS, x | y) \
    BIT(bitwise_xor, "bitwise_xor", "exclusive or of each bit", OPS_INTS, x ^ y)
/* clang-format on */

/* Methods infer, reference and cost of operator SYMBOL. */
#define HOOKS(SYMBOL) \
    static cnr_status SYMBOL##_infer(const cnr_node *node, cnr_tensor *const *out, \
                                     cnr_error *err) { \
        return fold_infer(node, &SYMBOL##_row, out, err); \
    } \
    static cnr_status SYMBOL##_reference(const cnr_run *run, cnr_error *err) { \
        return fold_reference(run, &SYMBOL##_row, err); \
    }

/* Descriptor of operator NAME with these ports. */
#define DESCRIPTOR(SYMBOL, NAME, SUMMARY, PORTS, FLAGS, ...) \
    const cnr_op ops_##SYMBOL = {CNR_OP_SIZES, \
                                 .name = NAME, \
                                 .summary = SUMMARY, \
                                 .flags = \
                                     CNR_OP_ELEMENTWISE | CNR_OP_PURE | CNR_OP_RANGES | (FLAGS), \
                                 CNR_OP_PORTS(PORTS, result), \
                                 .infer = SYMBOL##_infer, \
                                 .cost = fold_cost, \
                                 .reference = SYMBOL##_reference, \
                                 __VA_ARGS__};

/* Loops of an arithmetic operator in the four computed types, and its row. */
#define ARITHMETIC(SYMBOL, DTYPES, F, I, U, OPENCL, MEAN) \
    FOLD_LOOP(double, SYMBOL##_f64, F) \
    FOLD_LOOP(float, SYMBOL##_f32, F) \
    FOLD_LOOP(int64_t, SYMBOL##_i64, I) \
    FOLD_LOOP(uint64_t, SYMBOL##_u64, U) \
    static const fold_row SYMBOL##_row = {.dtypes = DTYPES, \
                                          .f64 = SYMBOL##_f64, \
                                          .f32 = SYMBOL##_f32, \
                                          .i64 = SYMBOL##_i64, \
                                          .u64 = SYMBOL##_u64, \
                                          .opencl = OPENCL, \
                                          .mean = MEAN}; \
    HOOKS(SYMBOL) \
    static void SYMBOL##_apply(const cnr_node *node, const float *x, const float *y, float *out, \
                               int64_t n) { \
        (void)node; \
        if (y) SYMBOL##_row.f32(x, y, out, n); \
        else if (out != x) memcpy(out, x, (size_t)n * sizeof *x); \
    } \
    static int32_t SYMBOL##_expression(const cnr_node *node, char *text, size_t bytes) { \
        (void)node; \
        return fold_expression(&SYMBOL##_row, text, bytes); \
    }

/* An operator of two inputs, with its gradient. */
#define PAIR(SYMBOL, NAME, SUMMARY, DTYPES, F, I, U, GRADIENT, OPENCL, FLAGS) \
    ARITHMETIC(SYMBOL, DTYPES, F, I, U, OPENCL, 0) \
    DESCRIPTOR(SYMBOL, NAME, SUMMARY, pair, CNR_OP_EPILOGUE | (FLAGS), .gradient = GRADIENT, \
               .apply_f32 = SYMBOL##_apply, .expression = SYMBOL##_expression, \
               .channel_affine = SYMBOL##_affine)
/* A kernel can fuse only a node of two operands; it checks that itself. */
#define MANY(SYMBOL, NAME, SUMMARY, DTYPES, F, I, U, GRADIENT, OPENCL, MEAN, FLAGS) \
    ARITHMETIC(SYMBOL, DTYPES, F, I, U, OPENCL, MEAN) \
    DESCRIPTOR(SYMBOL, NAME, SUMMARY, many, FLAGS, .gradient = GRADIENT, \
               .apply_f32 = MEAN ? NULL : SYMBOL##_apply, \
               .expression = MEAN ? NULL : SYMBOL##_expression)
FOLDS(PAIR, MANY)

/* Defines a comparison of two operands, whose result is bool. */
#define TEST(SYMBOL, SUMMARY, DTYPES, FORMULA) \
    FOLD_LOOP(double, SYMBOL##_f64, FORMULA) \
    FOLD_LOOP(int64_t, SYMBOL##_i64, FORMULA) \
    FOLD_LOOP(uint64_t, SYMBOL##_u64, FORMULA) \
    static const fold_row SYMBOL##_row = {.dtypes = DTYPES, \
                                          .to_bool = 1, \
                                          .f64 = SYMBOL##_f64, \
                                          .i64 = SYMBOL##_i64, \
                                          .u64 = SYMBOL##_u64}; \
    HOOKS(SYMBOL) \
    DESCRIPTOR(SYMBOL, #SYMBOL, SUMMARY, pair, 0, .aliases = NULL)
TESTS(TEST)

/* Defines an operator on the bits of whole numbers. */
#define BIT(SYMBOL, NAME, SUMMARY, DTYPES, FORMULA) \
    FOLD_LOOP(int64_t, SYMBOL##_i64, FORMULA) \
    FOLD_LOOP(uint64_t, SYMBOL##_u64, FORMULA) \
    static const fold_row SYMBOL##_row = {.dtypes = DTYPES, \
                                          .i64 = SYMBOL##_i64, \
                                          .u64 = SYMBOL##_u64}; \
    HOOKS(SYMBOL) \
    DESCRIPTOR(SYMBOL, NAME, SUMMARY, pair, 0, .aliases = NULL)
BITS(BIT)

/* ---- pow: base and exponent may differ in type; the result has the base's ---- */

/* Method infer of pow: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status pow_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    for (int32_t i = 0; i < 2; i++) CNR_TRY(ops_want(node, i, OPS_NUMBERS, 0, CNR_MAX_RANK, err));
    out[0]->dtype = node->inputs[0]->dtype;
    return kit_broadcast(node, 0, 2, out[0], err);
}

/* Method reference of pow: a to the power b, broadcast. */
static cnr_status pow_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *p = run->node->inputs[1], *y = run->outputs[0];
    elem_domain domain = elem_domain_of(x->dtype);
    if (ops_is_float(p->dtype)) domain = ELEM_F;
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, run->node->inputs, 2)) return CNR_OK;
    do {
        elem_run a, b;
        broadcast_load(&w, 0, x, domain, &a);
        broadcast_load(&w, 1, p, domain, &b);
        for (int64_t i = 0; i < w.run; i++) {
            if (domain == ELEM_F) a.f[i] = pow(a.f[i], b.f[i]);
            else if (domain == ELEM_I) a.i[i] = wrap_pow(a.i[i], b.i[i]);
            else a.u[i] = wrap_upow(a.u[i], b.u[i]);
        }
        elem_store(y->dtype, y->data, w.out, w.run, domain, &a);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* out[i] = x[i] to the power y[i], for n elements of a fused epilogue. */
static void pow_apply(const cnr_node *node, const float *x, const float *y, float *out, int64_t n) {
    (void)node;
    for (int64_t i = 0; i < n; i++) out[i] = powf(x[i], y[i]);
}

/* Writes the OpenCL formula into text; its length, or -1: too long. */
static int32_t pow_expression(const cnr_node *node, char *text, size_t bytes) {
    (void)node;
    if (bytes < 10) return -1;
    memcpy(text, "pow(x, y)", 10);
    return 9;
}

/* y = a^b: da = g b a^(b - 1) = g b y / a; db = g y log a */
static cnr_status pow_gradient(OPS_GRADIENT_ARGS) {
    kit_build b = {host, graph, CNR_OK};
    if (grad_out[0] < 0) return CNR_OK;
    if (want[0]) {
        const int32_t dtype = node->inputs[0]->dtype;
        const cnr_attr to = {.name = "to", .type = CNR_ATTR_DTYPE, .set = 1, .i = dtype};
        cnr_value power = inputs[1];
        if (node->inputs[1]->dtype != dtype) power = kit_node(&b, "cast", &power, 1, &to, 1);
        const cnr_value less = kit_node2(&b, "sub", power, kit_constant(&b, dtype, 1));
        const cnr_value slope = kit_node2(&b, "mul", power, kit_node2(&b, "pow", inputs[0], less));
        flow(&b, node, want, 0, kit_node2(&b, "mul", grad_out[0], slope), grad_in);
    }
    if (want[1] && node->inputs[1]->dtype != node->outputs[0]->dtype)
        return ops_fail(err, CNR_E_UNSUPPORTED, node,
                        "an exponent of another type than the base's has no gradient");
    if (want[1]) {
        const cnr_value slope = kit_node2(&b, "mul", outputs[0], kit_node1(&b, "log", inputs[0]));
        flow(&b, node, want, 1, kit_node2(&b, "mul", grad_out[0], slope), grad_in);
    }
    return kit_built(&b, node, err);
}

DESCRIPTOR(pow, "pow", "a to the power b", pair, CNR_OP_EPILOGUE, .gradient = pow_gradient,
           .apply_f32 = pow_apply, .expression = pow_expression)

/* ---- mod: the sign of the divisor, or with fmod of the dividend ---- */

static const cnr_attr_spec mod_attrs[] = {
    {.name = "fmod",
     .type = CNR_ATTR_BOOL,
     .help = "1: the result has the sign of a, as in C; 0: that of b"}};

/* Method infer of mod: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status mod_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    static const fold_row row = {.dtypes = OPS_NUMBERS};
    return fold_infer(node, &row, out, err);
}

/* Remainder of x / y with y's sign (c_sign: x's); 0 where y is 0. */
static int64_t remainder_of(int64_t x, int64_t y, int c_sign) {
    if (y == 0 || y == -1) return 0;
    const int64_t r = x % y;
    return !c_sign && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* Method reference of mod: the remainder of a / b, broadcast. */
static cnr_status mod_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *d = run->node->inputs[1], *y = run->outputs[0];
    const elem_domain domain = elem_domain_of(x->dtype);
    const int c_sign = cnr_attr_int(run->node, "fmod") != 0;
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, run->node->inputs, 2)) return CNR_OK;
    do {
        elem_run a, b;
        broadcast_load(&w, 0, x, domain, &a);
        broadcast_load(&w, 1, d, domain, &b);
        for (int64_t i = 0; i < w.run; i++) {
            if (domain == ELEM_I) {
                a.i[i] = remainder_of(a.i[i], b.i[i], c_sign);
            } else if (domain == ELEM_U) {
                a.u[i] = b.u[i] ? a.u[i] % b.u[i] : 0;
            } else {
                const double r = fmod(a.f[i], b.f[i]);
                a.f[i] = !c_sign && r != 0 && (r < 0) != (b.f[i] < 0) ? r + b.f[i] : r;
            }
        }
        elem_store(y->dtype, y->data, w.out, w.run, domain, &a);
    } while (broadcast_next(&w));
    return CNR_OK;
}

DESCRIPTOR(mod, "mod", "the remainder of a / b", pair, 0, CNR_OP_ATTRS(mod_attrs))

/* ---- bit_shift ---- */

static const char *const directions[] = {"LEFT", "RIGHT", NULL};
static const cnr_attr_spec bit_shift_attrs[] = {{.name = "direction",
                                                 .type = CNR_ATTR_ENUM,
                                                 .flags = CNR_ATTR_REQUIRED,
                                                 .choices = directions,
                                                 .help = "direction of the shift"}};

/* Method infer of bit_shift: checks the inputs' types and shapes, and gives each output its own. */
static cnr_status bit_shift_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    static const fold_row row = {.dtypes = OPS_INTS};
    return fold_infer(node, &row, out, err);
}

/* a shifted left or right by `by` bits, of a type of `bits` bits. A shift by at least the type's
 * width, or by a negative number, gives 0; a signed right shift gives the sign. */
static uint64_t shift(uint64_t a, uint64_t by, unsigned bits, int left, int is_signed) {
    if (left) return by < bits ? a << by : 0;
    if (!is_signed) return by < bits ? a >> by : 0;
    const int64_t v = (int64_t)a;
    const unsigned n = by < bits ? (unsigned)by : 63;
    return (uint64_t)(v < 0 ? ~(~v >> n) : v >> n);
}

/* Method reference of bit_shift: a with its bits shifted by b, broadcast. */
static cnr_status bit_shift_reference(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *const *in = run->node->inputs, *y = run->outputs[0];
    const int left = cnr_attr_is(run->node, "direction", "LEFT");
    const elem_domain domain = elem_domain_of(y->dtype);
    const unsigned bits = cnr_dtype_bits(y->dtype);
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, in, 2)) return CNR_OK;
    do {
        elem_run a, b;
        broadcast_load(&w, 0, in[0], domain, &a);
        broadcast_load(&w, 1, in[1], domain, &b);
        for (int64_t i = 0; i < w.run; i++)
            a.u[i] = shift(a.u[i], b.u[i], bits, left, domain == ELEM_I);
        elem_store(y->dtype, y->data, w.out, w.run, domain, &a);
    } while (broadcast_next(&w));
    return CNR_OK;
}

DESCRIPTOR(bit_shift, "bit_shift", "a with its bits shifted by b", pair, 0,
           CNR_OP_ATTRS(bit_shift_attrs))
