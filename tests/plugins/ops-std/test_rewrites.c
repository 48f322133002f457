/* Rewrites with the real operators: affine folding into convolutions, merging transposes, Einstein
 * sums as matmul, what changes nothing; test_fusions.c has those that make one operator of several.
 */
#include "rewrites.h"

/* As TensorFlow's graphs have batch norms: a product and a sum, of a number a channel or of one. */
static void by_operands(void) {
    cnr_value x;
    cnr_graph *g = begin(&x);
    cnr_value y = NODE(g, "conv", &no_bias, x, weight(g, "w", DIMS(6, 4, 3, 3), -1, 1));
    y = NODE(g, "mul", NULL, y, weight(g, "scale", DIMS(6, 1, 1), -1, 2));
    y = NODE(g, "add", NULL, y, weight(g, "shift", DIMS(1, 6, 1, 1), -1, 2));
    y = NODE(g, "sub", NULL, y, weight(g, "less", DIMS(1), -1, 2));
    compare(g, y, 1, "conv, and a product, a sum and a difference by channel");
    g = begin(&x);
    y = NODE(g, "conv", &no_bias, x, weight(g, "w", DIMS(6, 4, 1, 1), -1, 1));
    y = NODE(g, "mul", NULL, y, weight(g, "along", DIMS(5), -1, 2));
    compare(g, y, 2, "but not where the numbers are of another axis");
}

/* ---- gathers that are slices ---- */

/* Adds a gather. */
static cnr_value gathered(cnr_graph *g, cnr_value x, int64_t axis, int32_t n, int64_t *indices) {
    static int count;
    char name[16];
    snprintf(name, sizeof name, "at%d", count++);
    const cnr_tensor t = {.size = sizeof t,
                          .dtype = CNR_i64,
                          .rank = n > 0,
                          .dim = {n},
                          .data = indices};
    const cnr_attr along = {.name = "axis", .type = CNR_ATTR_INT, .set = 1, .i = axis};
    return NODE(g, "gather", &along, x, cnri_graph_constant(g, name, &t));
}

/* Tests: gathers become slices. */
static void slices(void) {
    static struct {
        int64_t axis, indices[3];
        int32_t n, gathers, nodes; /* n 0: one index without an axis */
        const char *what;
    } rows[] = {{1, {2}, 0, 0, 4, "one index"},
                {-1, {-1}, 0, 0, 4, "one from the end, of the last axis"},
                {0, {1}, 1, 0, 3, "one that keeps its axis"},
                {2, {1, 2, 3}, 3, 0, 3, "a range"},
                {2, {-5, 2, -1}, 3, 0, 3, "every second"},
                {1, {2, 1}, 2, 1, 3, "a falling range stays"},
                {1, {0, 1, 3}, 3, 1, 3, "unequal steps stay"},
                {1, {1, 1}, 2, 1, 3, "an index twice stays"}};
    for (size_t i = 0; i < CNR_ROWS(rows); i++) {
        cnr_value x;
        cnr_graph *g = begin(&x);
        const cnr_value y = gathered(g, OF("tanh", x), rows[i].axis, rows[i].n, rows[i].indices);
        compare(g, OF("sin", y), rows[i].nodes, rows[i].what);
        is_int(gathers, rows[i].gathers, "and the gathers that are left");
    }
}

/* ---- branches of one input ---- */

/* A convolution with a window of `high` by `wide`, so padded, in steps and groups. */
static cnr_value branch(cnr_graph *g, const char *name, cnr_value x, int64_t high, int64_t wide,
                        const int64_t pads[4], int64_t step, int64_t group) {
    const int64_t steps[] = {step, step};
    const cnr_attr list[] =
        {{.name = "pads", .type = CNR_ATTR_INTS, .set = 1, .n = 4, .ints = pads},
         {.name = "strides", .type = CNR_ATTR_INTS, .set = 1, .n = 2, .ints = steps},
         {.name = "group", .type = CNR_ATTR_INT, .set = 1, .i = group}};
    const cnr_attr *attrs[] = {&list[0], &list[1], &list[2], &no_bias};
    const cnr_value in[] = {x, weight(g, name, DIMS(4, 4 / group, high, wide), -1, 1)};
    cnr_value y = -1;
    cnri_graph_node(g, "conv", name, NULL, in, 2, attrs, 4, &y, 1);
    return y;
}

/* Sums of branches become one convolution where one window lies within the other. */
static void branches(void) {
    static const int64_t none[4] = {0}, around[] = {1, 1, 1, 1}, side[] = {0, 1, 0, 1},
                         below[] = {0, 0, 2, 2};
    for (int group = 1; group <= 4; group *= 2)
        for (int step = 1; step <= 2; step++) {
            cnr_value x;
            cnr_graph *g = begin(&x);
            x = OF("tanh", x);
            cnr_value y = ADD(branch(g, "a", x, 1, 1, none, step, group),
                              branch(g, "b", x, 3, 3, around, step, group));
            y = ADD(affine(g, "after", branch(g, "c", x, 1, 3, side, step, group), 4), y);
            if (step == 1) y = ADD(y, affine(g, "norm", x, 4));
            compare(g, OF("sin", y), 3, "branches of several windows");
        }
    cnr_value x;
    cnr_graph *g = begin(&x);
    x = OF("tanh", x);
    compare(g, ADD(branch(g, "a", x, 1, 3, side, 1, 1), branch(g, "b", x, 3, 3, below, 1, 1)), 4,
            "windows that lie apart stay");
    g = begin(&x);
    x = OF("tanh", x);
    compare(g, ADD(branch(g, "a", x, 1, 1, none, 1, 2), branch(g, "b", x, 3, 3, around, 1, 4)), 4,
            "branches of other groups stay");
    g = begin(&x);
    x = OF("tanh", x);
    const cnr_value a = branch(g, "a", x, 1, 1, none, 1, 1);
    compare(g, MUL(a, ADD(a, branch(g, "b", x, 3, 3, around, 1, 1))), 5,
            "a branch that others read stays");
}

/* ---- normalisations of rows ---- */

/* Reshapes to so many columns. */
static cnr_value columns(cnr_graph *g, cnr_value x, int64_t n) {
    const int64_t dim[] = {-1, n};
    const cnr_attr shape = {.name = "shape", .type = CNR_ATTR_INTS, .set = 1, .n = 2, .ints = dim};
    return NODE(g, "reshape", &shape, x);
}

/* A linear layer of several axes of rows that is normalised as rows: a product and a sum are left,
 * beside the reshape. Without a product: three operations. */
static void row_norms(void) {
    static const struct {
        int bias, product;
        int32_t nodes;
        const char *what;
    } rows[] = {{0, 1, 5, "a product that is normalised by rows"},
                {1, 1, 5, "a product with a bias"},
                {0, 0, 6, "rows of anything else"}};
    for (size_t i = 0; i < CNR_ROWS(rows); i++) {
        cnr_value x;
        cnr_graph *g = begin(&x);
        cnr_value y = OF("tanh", x);
        if (rows[i].product) y = NODE(g, "matmul", NULL, y, weight(g, "w", DIMS(5, 6), -1, 1));
        if (rows[i].bias) y = ADD(weight(g, "bias", DIMS(6), -1, 1), y);
        y = affine(g, "norm", columns(g, y, rows[i].product ? 6 : 5), rows[i].product ? 6 : 5);
        compare(g, OF("sin", y), rows[i].nodes, rows[i].what);
    }
}

/* ---- borders that become padding ---- */

static void borders(void) {
    enum { AVERAGE = 1, CEIL = 2, OWN = 4, VALID = 8 };
    static const struct {
        int64_t pads[8]; /* before each axis, then after */
        double value;
        int flags;
        int32_t nodes;
        const char *what;
    } rows[] =
        {{{0, 0, 2, 1, 0, 0, 0, 2}, 0, 0, 3, "a border that is not the same at all edges"},
         {{0, 0, 1, 1, 0, 0, 1, 1}, 0, OWN, 3, "a border beside the node's own padding"},
         {{0, 0, 2, 2, 0, 0, 2, 2}, 0, OWN, 4, "windows within padding alone: it stays"},
         {{0, 0, 1, 1, 0, 0, 1, 1}, 0, VALID, 3, "a node that wants no padding itself"},
         {{0, 0, 1, 1, 0, 0, 1, 1}, 0.5, 0, 4, "a border of other numbers stays"},
         {{0, 0, 1, 0, 0, 0, -1, 0}, 0, 0, 4, "a border that crops stays"},
         {{0, 0, 0, 0, 1, 0, 0, 0}, 0, 0, 4, "a border of the batch stays"},
         {{0, 0, 1, 1, 0, 0, 0, 1}, 0, AVERAGE, 3, "an average of the whole window"},
         {{0, 0, 1, 1, 0, 0, 0, 1}, 0, AVERAGE | CEIL, 4, "windows beyond the edge: it stays"},
         {{0, 0, 1, 1, 0, 0, 0, 1},
          0,
          AVERAGE | OWN,
          4,
          "an average with its own divisor: it stays"}};
    for (size_t i = 0; i < CNR_ROWS(rows); i++) {
        const int64_t ones[] = {1, 1, 1, 1}, window[] = {3, 3}, steps[] = {2, 2};
        const cnr_attr
            border = {.name = "pads",
                      .type = CNR_ATTR_INTS,
                      .set = 1,
                      .n = 8,
                      .ints = rows[i].pads},
            value = {.name = "value", .type = CNR_ATTR_FLOAT, .set = 1, .f = rows[i].value},
            strides = {.name = "strides", .type = CNR_ATTR_INTS, .set = 1, .n = 2, .ints = steps},
            kernel = {.name = "kernel_shape",
                      .type = CNR_ATTR_INTS,
                      .set = 1,
                      .n = 2,
                      .ints = window},
            own = {.name = "pads", .type = CNR_ATTR_INTS, .set = 1, .n = 4, .ints = ones},
            valid = {.name = "auto_pad", .type = CNR_ATTR_ENUM, .set = 1, .s = "VALID"},
            ceil = {.name = "ceil_mode", .type = CNR_ATTR_BOOL, .set = 1, .i = 1};
        const cnr_attr *around[] = {&border, &value}, *attrs[6] = {&kernel, &strides};
        int32_t n = 2;
        cnr_value x, y, padded;
        cnr_graph *g = begin(&x);
        x = OF("tanh", x);
        cnri_graph_node(g, "pad", NULL, NULL, &x, 1, around, 2, &padded, 1);
        const cnr_value in[] = {padded, rows[i].flags & AVERAGE
                                            ? -1
                                            : weight(g, "w", DIMS(3, 4, 3, 3), -1, 1)};
        if (!(rows[i].flags & AVERAGE)) attrs[n++] = &no_bias;
        if (rows[i].flags & OWN) attrs[n++] = &own;
        if (rows[i].flags & VALID) attrs[n++] = &valid;
        if (rows[i].flags & CEIL) attrs[n++] = &ceil;
        cnri_graph_node(g, rows[i].flags & AVERAGE ? "average_pool" : "conv", "window", NULL, in,
                        rows[i].flags & AVERAGE ? 1 : 2, attrs, n, &y, 1);
        compare(g, OF("sin", y), rows[i].nodes, rows[i].what);
    }
}

/* ---- taps that meet nothing but padding ---- */

/* Convolutions whose outer taps read only padding. */
static void dilated(void) {
    enum { BATCH_NORM = 1, AUTO = 2 };
    static const struct {
        int64_t dilation, stride, pads[4]; /* top, left, bottom, right */
        int flags;
        int32_t taps, nodes;
        const char *what;
    } rows[] =
        {{5, 1, {5, 5, 5, 5}, 0, 1, 3, "further than the picture: the middle tap is left"},
         {4, 1, {4, 4, 4, 4}, 0, 9, 3, "taps that meet the edge stay"},
         {5, 2, {5, 5, 5, 5}, 0, 1, 3, "with a stride"},
         {5, 1, {0, 5, 10, 5}, 0, 1, 3, "rows padded below alone"},
         {3,
          1,
          {6, 3, 0, 3},
          0,
          6,
          3,
          "a row above the picture goes, one that meets the last row stays"},
         {5, 1, {0}, AUTO, 1, 3, "padding that follows from the sizes"},
         {5, 1, {5, 5, 5, 5}, BATCH_NORM, 1, 3, "of weights that a normalisation is folded into"}};
    for (size_t i = 0; i < CNR_ROWS(rows); i++) {
        const int64_t both[] = {rows[i].dilation, rows[i].dilation},
                      steps[] = {rows[i].stride, rows[i].stride}, window[] = {3, 3};
        const cnr_attr
            dilations = {.name = "dilations",
                         .type = CNR_ATTR_INTS,
                         .set = 1,
                         .n = 2,
                         .ints = both},
            strides = {.name = "strides", .type = CNR_ATTR_INTS, .set = 1, .n = 2, .ints = steps},
            kernel = {.name = "kernel_shape",
                      .type = CNR_ATTR_INTS,
                      .set = 1,
                      .n = 2,
                      .ints = window},
            pads = {.name = "pads", .type = CNR_ATTR_INTS, .set = 1, .n = 4, .ints = rows[i].pads},
            same = {.name = "auto_pad", .type = CNR_ATTR_ENUM, .set = 1, .s = "SAME_UPPER"};
        const cnr_attr *attrs[] = {&dilations, &strides, &kernel, &no_bias,
                                   rows[i].flags & AUTO ? &same : &pads};
        cnr_value x, y;
        cnr_graph *g = begin(&x);
        const cnr_value in[] = {OF("tanh", x), weight(g, "w", DIMS(3, 4, 3, 3), -1, 1)};
        cnri_graph_node(g, "conv", "window", NULL, in, 2, attrs, CNR_ROWS(attrs), &y, 1);
        if (rows[i].flags & BATCH_NORM) y = affine(g, "norm", y, 3);
        compare(g, OF("sin", y), rows[i].nodes, rows[i].what);
        is_int(taps, rows[i].taps, "and the taps that are left");
        is_int(named, 1, "under the name that the node had");
    }
}

/* ---- products of scaled operands ---- */

/* Tests: scales. */
static void scales(void) {
    cnr_value x;
    cnr_graph *g = begin(&x);
    cnr_value a = OF("tanh", x), b = OF("sin", x);
    compare(g, NODE(g, "matmul", NULL, MUL(a, N(0.25)), b), 4, "a scaled left operand");
    is_int(scaled, 1, "and products that are scaled");
    is_int(named, 1, "and the product keeps its name");
    g = begin(&x);
    a = OF("tanh", x), b = OF("sin", x);
    compare(g, NODE(g, "matmul", NULL, MUL(a, N(0.25)), MUL(N(0.5), b)), 5, "both scaled");
    is_int(scaled, 1, "and products that are scaled, then scaled again");
    g = begin(&x);
    a = MUL(OF("tanh", x), N(0.25)), b = OF("sin", x);
    compare(g, NODE(g, "add", NULL, NODE(g, "matmul", NULL, a, b), a), 5,
            "one that others read stays");
    is_int(scaled, 0, "and no product is scaled");
    g = begin(&x);
    a = OF("tanh", x), b = OF("sin", x);
    compare(g, NODE(g, "matmul", NULL, MUL(a, weight(g, "w", DIMS(5), -1, 1)), b), 4,
            "another factor for each column stays");
    is_int(scaled, 0, "and no product is scaled");
}

/* ---- copies that change nothing ---- */

/* Adds a cast. */
static cnr_value cast(cnr_graph *g, cnr_value x, int32_t dtype) {
    const cnr_attr to = {.name = "to", .type = CNR_ATTR_DTYPE, .set = 1, .i = dtype};
    return NODE(g, "cast", &to, x);
}

/* x [2, 4, 5, 5] with the slices `first` and `second` of its first axis replaced. */
static cnr_value scattered(cnr_graph *g, cnr_value x, int64_t first, int64_t second) {
    int64_t data[] = {first, second};
    const cnr_tensor t = {.size = sizeof t,
                          .dtype = CNR_i64,
                          .rank = 2,
                          .dim = {2, 1},
                          .data = data};
    return NODE(g, "scatter_nd", NULL, OF("tanh", x), cnri_graph_constant(g, "to", &t),
                OF("sin", x));
}

/* Tests: copies are left out. */
static void copies(void) {
    cnr_value x;
    cnr_graph *g = begin(&x);
    compare(g, OF("sin", cast(g, OF("tanh", x), CNR_f32)), 2, "a cast to the same type");
    g = begin(&x);
    compare(g, cast(g, x, CNR_f32), 1, "which stays between an input and an output");
    g = begin(&x);
    compare(g, cast(g, cast(g, OF("tanh", x), CNR_f16), CNR_f32), 3, "casts there and back stay");
    g = begin(&x);
    compare(g, OF("abs", scattered(g, x, 0, 1)), 3, "a scatter that replaces all");
    g = begin(&x);
    compare(g, OF("abs", scattered(g, x, 1, 0)), 4, "one in another order stays");
    g = begin(&x);
    compare(g, OF("abs", scattered(g, x, 1, 1)), 4, "one that leaves a slice stays");
    const int64_t dims[] = {2, 4, 5, 5};
    const cnr_attr shape = {.name = "shape", .type = CNR_ATTR_INTS, .set = 1, .n = 4, .ints = dims};
    g = begin(&x);
    x = OF("tanh", x);
    const cnr_value wide = NODE(g, "expand", &shape, MEAN(x, -1));
    compare(g, OF("sin", SUB(wide, x)), 4, "an expansion that broadcasting makes needless");
    g = begin(&x);
    x = NODE(g, "expand", &shape, MEAN(OF("tanh", x), -1));
    compare(g, OF("sin", ADD(x, weight(g, "row", DIMS(5), -1, 1))), 5,
            "one that decides the shape stays");
}

/* ---- arithmetic that changes nothing ---- */

/* Nodes that change nothing are taken away, others stay. */
static void neutral(void) {
    cnr_value x;
    cnr_graph *g = begin(&x);
    compare(g, OF("sin", MUL(N(1), OF("tanh", x))), 2, "a product by 1");
    g = begin(&x);
    x = OF("tanh", x);
    x = NODE(g, "pow", NULL, NODE(g, "sub", NULL, NODE(g, "div", NULL, x, N(1)), N(0)), N(1));
    compare(g, OF("sin", x), 2, "a quotient and a power by 1, less 0");
    g = begin(&x);
    compare(g, OF("sin", NODE(g, "div", NULL, N(1), OF("exp", x))), 3, "1 divided by x stays");
    g = begin(&x);
    compare(g, MUL(N(1), x), 1, "a product between an input and an output stays");
    g = begin(&x);
    compare(g, OF("sin", MUL(OF("tanh", x), weight(g, "w", DIMS(1, 1, 1, 1, 1), 1, 1))), 3,
            "a number with more axes than x stays");
}

int main(void) {
    cnr_value x, y;
    if (!open_runtime()) return done();

    cnr_graph *g = begin(&x);
    y = NODE(g, "conv", NULL, x, weight(g, "w", DIMS(6, 4, 3, 3), -1, 1),
             weight(g, "b", DIMS(6), -1, 1));
    compare(g, affine(g, "bn", y, 6), 1, "conv and batch_normalization");

    g = begin(&x);
    y = NODE(g, "conv", &no_bias, x, weight(g, "w", DIMS(6, 4, 3, 3), -1, 1));
    y = affine(g, "bn1", y, 6);
    y = affine(g, "bn2", y, 6);
    compare(g, NODE(g, "relu", NULL, y), 2, "conv without bias and two of them");

    g = begin(&x);
    y = NODE(g, "conv_transpose", &no_bias, x, weight(g, "w", DIMS(4, 6, 3, 3), -1, 1));
    compare(g, affine(g, "bn", y, 6), 1, "conv_transpose: another weight axis");

    g = begin(&x);
    y = NODE(g, "dense", NULL, x, weight(g, "w", DIMS(3, 100), -.1, .1),
             weight(g, "b", DIMS(3), -1, 1));
    compare(g, affine(g, "bn", y, 3), 1, "dense");
    by_operands();

    g = begin(&x);
    const cnr_attr groups = {.name = "group", .type = CNR_ATTR_INT, .set = 1, .i = 2};
    y = NODE(g, "conv", &groups, x, weight(g, "w", DIMS(6, 2, 3, 3), -1, 1),
             weight(g, "b", DIMS(6), -1, 1));
    compare(g, affine(g, "bn", y, 6), 1, "conv in groups");

    g = begin(&x);
    y = NODE(g, "relu", NULL, transpose(g, transpose(g, x, 0, 2, 3, 1), 0, 3, 1, 2));
    compare(g, y, 1, "inverse transposes vanish");
    g = begin(&x);
    y = transpose(g, transpose(g, transpose(g, x, 0, 2, 3, 1), 1, 0, 2, 3), 3, 2, 1, 0);
    compare(g, NODE(g, "relu", NULL, y), 2, "three become one");
    g = begin(&x);
    compare(g, transpose(g, transpose(g, x, 0, 2, 3, 1), 0, 3, 1, 2), 1,
            "an output stays computed");
    g = begin(&x);
    const cnr_value t = transpose(g, x, 0, 2, 3, 1);
    const cnr_value u = transpose(g, t, 0, 3, 1, 2);
    const cnr_value v = transpose(g, t, 0, 3, 1, 2);
    y = NODE(g, "add", NULL, NODE(g, "relu", NULL, u), NODE(g, "relu", NULL, v));
    compare(g, y, 3, "a transpose that two read");

    static const struct {
        const char *equation;
        int32_t nodes;
        const char *what;
    } sums[] = {{"abcd,abed->abce", 1, "an einsum is matmul of a transpose"},
                {"abcd,abde->abce", 1, "one that is matmul as it stands"},
                {"abcd,bcde->ae", 2, "several axes summed over"},
                {"abcd,abcd->ba", 4, "none left of either operand"},
                {"abcc,abcd->abd", 1, "a diagonal stays an einsum"},
                {"abcd,abef->abf", 1, "a sum within one operand too"}};
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        g = begin(&x);
        const cnr_attr sum = {.name = "equation",
                              .type = CNR_ATTR_STRING,
                              .set = 1,
                              .s = sums[i].equation};
        const cnr_value w = i == 2 ? weight(g, "w", DIMS(4, 5, 5, 3), -1, 1)
                                   : weight(g, "w", DIMS(2, 4, 5, 5), -1, 1);
        compare(g, NODE(g, "einsum", &sum, x, w), sums[i].nodes, sums[i].what);
    }
    copies();
    neutral();
    scales();
    slices();
    borders();
    branches();
    row_norms();
    dilated();
    cnr_close(rt);
    return done();
}
