/* rnn, gru, lstm: recurrent layers over a sequence. */
#include "ops_kit.h"

enum { FORWARD, REVERSE, BOTH };
enum { X, W, R, BIAS, LENGTHS, FIRST_H, FIRST_C, PEEPHOLES }; /* ports */

static const char *const directions[] = {"forward", "reverse", "bidirectional", NULL};
#define RECURRENT_ROWS \
    {.name = "direction", \
     .type = CNR_ATTR_ENUM, \
     .default_s = "forward", \
     .choices = directions, \
     .help = "order in which the sequence is read; both: D is 2"}, \
        {.name = "hidden_size", \
         .type = CNR_ATTR_INT, \
         .flags = CNR_ATTR_BOUNDED, \
         .min = 0, \
         .max = 1 << 20, \
         .help = "H; 0: the weight's"}, \
    { \
        .name = "layout", .type = CNR_ATTR_INT, .flags = CNR_ATTR_BOUNDED, .min = 0, .max = 0, \
        .help = "0: T comes before N" \
    }
static const cnr_attr_spec attrs[] = {RECURRENT_ROWS};
static const cnr_attr_spec gru_attrs[] =
    {RECURRENT_ROWS,
     {.name = "linear_before_reset",
      .type = CNR_ATTR_BOOL,
      .help = "the reset gate is applied after the product with r, not before it"}};
static const cnr_attr_spec lstm_attrs[] = {RECURRENT_ROWS,
                                           {.name = "input_forget",
                                            .type = CNR_ATTR_INT,
                                            .flags = CNR_ATTR_BOUNDED,
                                            .min = 0,
                                            .max = 0,
                                            .help = "0: input and forget gates are not coupled"}};
/* The row of an optional input NAME. */
#define OPTION(NAME, TEXT) \
    { .name = NAME, .flags = CNR_PORT_OPTIONAL, .help = TEXT }
#define RECURRENT_PORTS \
    {.name = "x", .help = "T N I"}, {.name = "w", .help = "D gates*H I"}, \
        {.name = "r", .help = "D gates*H H"}, OPTION("b", "D 2*gates*H: of w, then of r"), \
        OPTION("sequence_lens", "i32, one per sequence; none: T each"), \
        OPTION("initial_h", "D N H; none: 0")
static const cnr_port in[] = {RECURRENT_PORTS};
static const cnr_port lstm_in[] = {RECURRENT_PORTS, OPTION("initial_c", "D N H; none: 0"),
                                   OPTION("p", "D 3*H: peephole weights of i, o and f")};
static const cnr_port out[] = {{.name = "y", .help = "T D N H"},
                               OPTION("y_h", "the last h, D N H")};
static const cnr_port lstm_out[] = {{.name = "y", .help = "T D N H"},
                                    OPTION("y_h", "the last h, D N H"),
                                    OPTION("y_c", "the last c, D N H")};

/* FORWARD, REVERSE or BOTH, by the node's attribute. */
static int direction_of(const cnr_node *node) {
    return cnr_attr_is(node, "direction", "forward")   ? FORWARD
           : cnr_attr_is(node, "direction", "reverse") ? REVERSE
                                                       : BOTH;
}

/* Gives the outputs their shapes, for a cell of `gates` gates. */
static cnr_status infer_with(const cnr_node *node, int64_t gates, cnr_tensor *const *outputs,
                             cnr_error *err) {
    CNR_TRY(ops_want(node, X, OPS_FLOATS, 3, 3, err));
    const cnr_tensor *x = node->inputs[X];
    const int32_t dtype = x->dtype;
    const int64_t d = direction_of(node) == BOTH ? 2 : 1, given = cnr_attr_int(node, "hidden_size");
    CNR_TRY(ops_want(node, R, 1u << dtype, 3, 3, err));
    const int64_t h = node->inputs[R]->dim[2];
    if (h < 1 || h > 1 << 20 || (given && given != h))
        return ops_fail(err, CNR_E_SHAPE, node, "r has %lld columns, hidden_size is %lld",
                        (long long)h, (long long)given);
    const int64_t dims[][3] = {[W] = {d, gates * h, x->dim[2]}, [R] = {d, gates * h, h},
                               [BIAS] = {d, 2 * gates * h},     [LENGTHS] = {x->dim[1]},
                               [FIRST_H] = {d, x->dim[1], h},   [FIRST_C] = {d, x->dim[1], h},
                               [PEEPHOLES] = {d, 3 * h}};
    static const int32_t ranks[] = {3, 3, 3, 2, 1, 3, 3, 2};
    for (int32_t i = W; i < node->n_inputs; i++)
        CNR_TRY(ops_want_shape(node, i, i == LENGTHS ? CNR_i32 : dtype, ranks[i], dims[i], err));
    for (int32_t i = 0; i < node->n_outputs; i++) {
        const int64_t all[] = {x->dim[0], d, x->dim[1], h};
        outputs[i]->dtype = dtype;
        outputs[i]->rank = i == 0 ? 4 : 3;
        memcpy(outputs[i]->dim, all + (i > 0), (size_t)outputs[i]->rank * sizeof *all);
    }
    return CNR_OK;
}

/* The state of one sequence in one direction: h, c and scratch. Gates are stored one after the
 * other, `hidden` numbers each. */
typedef struct cell {
    const cnr_node *node;
    int32_t dtype;
    int64_t inputs, hidden, direction;
    double *h, *c, *scratch, *from_x, *from_h, *x;
} cell;
enum { VECTORS = 1 + 1 + 1 + 4 + 4 }; /* of H numbers; then one of I */

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }

/* Element i of optional input `port`; 0 where it is not given. */
static double of(const cell *k, int32_t port, int64_t i) {
    const cnr_tensor *t = cnr_own_input(k->node, port);
    return t ? ops_get(k->dtype, t->data, i) : 0;
}

OPS_INLINE double product(int32_t dtype, const void *m, int64_t at, const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += ops_get(dtype, m, at + i) * v[i];
    return sum;
}
/* Row `row` of the weight at input `port`, of n elements, times vector v. */
static double times(const cell *k, int32_t port, int64_t row, const double *v, int64_t n) {
    double sum;
    OPS_SPECIALISE(k->dtype, sum = product(dtype, k->node->inputs[port]->data, row * n, v, n));
    return sum;
}

/* Rows [row, row + n) of the recurrent weight times v, plus their bias. */
static void recur(const cell *k, int64_t gates, int64_t row, int64_t n, const double *v) {
    for (int64_t i = row; i < row + n; i++)
        k->from_h[i] = times(k, R, k->direction * gates * k->hidden + i, v, k->hidden) +
                       of(k, BIAS, (2 * k->direction + 1) * gates * k->hidden + i);
}

/* One step of a plain cell: h = tanh(from_x + R h). */
static void rnn_step(cell *k) {
    recur(k, 1, 0, k->hidden, k->h);
    for (int64_t i = 0; i < k->hidden; i++) k->h[i] = tanh(k->from_x[i] + k->from_h[i]);
}

/* One step of a GRU cell: updates h; gates lie in the order update, reset, new */
static void gru_step(cell *k) {
    const int64_t n = k->hidden;
    const int linear = cnr_attr_int(k->node, "linear_before_reset") != 0;
    recur(k, 3, 0, linear ? 3 * n : 2 * n, k->h);
    if (!linear) {
        for (int64_t i = 0; i < n; i++)
            k->scratch[i] = sigmoid(k->from_x[n + i] + k->from_h[n + i]) * k->h[i];
        recur(k, 3, 2 * n, n, k->scratch);
    }
    for (int64_t i = 0; i < n; i++) {
        const double z = sigmoid(k->from_x[i] + k->from_h[i]);
        const double r = linear ? sigmoid(k->from_x[n + i] + k->from_h[n + i]) : 1;
        k->h[i] = (1 - z) * tanh(k->from_x[2 * n + i] + r * k->from_h[2 * n + i]) + z * k->h[i];
    }
}

/* Peephole weight `i` times the cell state; 0 without peepholes, even if the state is not
 * finite. */
static double peep(const cell *k, int64_t i, double c) {
    return cnr_own_input(k->node, PEEPHOLES) ? of(k, PEEPHOLES, i) * c : 0;
}

/* One step of an LSTM cell: updates h and c; gates lie in the order input, output, forget, new */
static void lstm_step(cell *k) {
    const int64_t n = k->hidden, p = 3 * n * k->direction;
    recur(k, 4, 0, 4 * n, k->h);
    for (int64_t i = 0; i < n; i++) {
        double g[4];
        for (int a = 0; a < 4; a++) g[a] = k->from_x[a * n + i] + k->from_h[a * n + i];
        const double enter = sigmoid(g[0] + peep(k, p + i, k->c[i]));
        const double keep = sigmoid(g[2] + peep(k, p + 2 * n + i, k->c[i]));
        k->c[i] = keep * k->c[i] + enter * tanh(g[3]);
        k->h[i] = sigmoid(g[1] + peep(k, p + n + i, k->c[i])) * tanh(k->c[i]);
    }
}

/* The input weight times x at step `at`, plus its bias. */
static void enter(const cell *k, int64_t gates, int64_t at) {
    for (int64_t j = 0; j < k->inputs; j++) k->x[j] = of(k, X, at + j);
    for (int64_t i = 0; i < gates * k->hidden; i++)
        k->from_x[i] = times(k, W, k->direction * gates * k->hidden + i, k->x, k->inputs) +
                       of(k, BIAS, 2 * k->direction * gates * k->hidden + i);
}

/* Writes n numbers of the state into `output` from element `at`; nothing where the node has no
 * such output. */
static void write_state(const cnr_run *run, int32_t output, const double *from, int64_t at,
                        int64_t n) {
    if (output >= run->node->n_outputs) return;
    const cnr_tensor *y = run->outputs[output];
    for (int64_t i = 0; i < n; i++) ops_put(y->dtype, y->data, at + i, from ? from[i] : 0);
}

/* Computes all steps of each sample and direction by `step`. */
static cnr_status reference_with(const cnr_run *run, int64_t gates, void (*step)(cell *),
                                 cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[X], *lengths = cnr_own_input(node, LENGTHS);
    const int64_t times = x->dim[0], n = x->dim[1], d = run->outputs[0]->dim[1];
    const int direction = direction_of(node);
    cell k = {.node = node,
              .dtype = x->dtype,
              .inputs = x->dim[2],
              .hidden = run->outputs[0]->dim[3]};
    double **const parts[] = {&k.h, &k.c, &k.scratch, &k.from_x, &k.from_h};
    k.x = (double *)run->workspace_data + VECTORS * k.hidden;
    for (int i = 0; i < 5; i++)
        *parts[i] = (double *)run->workspace_data + (i < 4 ? i : i + 3) * k.hidden;
    for (int64_t s = 0; s < d * n; s++) { /* one sequence, one direction */
        const int64_t b = s % n, length = lengths ? elem_i64(lengths, b) : times;
        k.direction = s / n;
        if (length < 0 || length > times)
            return ops_fail(err, CNR_E_ARG, node, "a length of %lld, of at most %lld",
                            (long long)length, (long long)times);
        for (int64_t i = 0; i < k.hidden; i++) {
            k.h[i] = of(&k, FIRST_H, s * k.hidden + i);
            k.c[i] = of(&k, FIRST_C, s * k.hidden + i);
        }
        for (int64_t i = 0; i < times; i++) {
            const int back = direction == REVERSE || k.direction == 1;
            const int64_t t = back && i < length ? length - 1 - i : i;
            if (ops_cancelled(run)) return CNR_OK;
            if (i < length) {
                enter(&k, gates, (t * n + b) * k.inputs);
                step(&k);
            }
            write_state(run, 0, i < length ? k.h : NULL, ((t * d + k.direction) * n + b) * k.hidden,
                        k.hidden);
        }
        write_state(run, 1, k.h, s * k.hidden, k.hidden);
        write_state(run, 2, k.c, s * k.hidden, k.hidden);
    }
    return CNR_OK;
}

/* Method workspace: bytes of scratch that reference needs. */
static uint64_t workspace(const cnr_node *node) {
    const int64_t h = node->outputs[0]->dim[3], i = node->inputs[X]->dim[2];
    return h > 0 && i >= 0 ? (uint64_t)(h * VECTORS + i) * sizeof(double) : 0;
}

/* Method cost: counts the multiply-adds of a run. */
static void cost(const cnr_node *node, cnr_cost *c) {
    const cnr_tensor *x = node->inputs[X];
    const uint64_t steps = x->dim[0] < 0 || x->dim[1] < 0 ? 0 : (uint64_t)(x->dim[0] * x->dim[1]);
    c->macs = ops_mul(steps, ops_elements(node->inputs[W]) + ops_elements(node->inputs[R]));
}

/* Operator NAME, whose cell has GATES gates. */
#define RECURRENT_OP(NAME, GATES, SUMMARY, ATTRS, IN, OUT) \
    static cnr_status NAME##_infer(const cnr_node *node, cnr_tensor *const *outputs, \
                                   cnr_error *err) { \
        return infer_with(node, GATES, outputs, err); \
    } \
    static cnr_status NAME##_reference(const cnr_run *run, cnr_error *err) { \
        return reference_with(run, GATES, NAME##_step, err); \
    } \
    const cnr_op ops_##NAME = {CNR_OP_SIZES, \
                               .name = #NAME, \
                               .summary = SUMMARY, \
                               .flags = CNR_OP_PURE, \
                               CNR_OP_ATTRS(ATTRS), \
                               CNR_OP_PORTS(IN, OUT), \
                               .infer = NAME##_infer, \
                               .cost = cost, \
                               .reference = NAME##_reference, \
                               .reference_workspace = workspace}
RECURRENT_OP(rnn, 1, "Recurrent layer: h = tanh(W x + R h + b), with the previous h.", attrs, in,
             out);
RECURRENT_OP(gru, 3, "Recurrent layer with update and reset gates (GRU).", gru_attrs, in, out);
RECURRENT_OP(lstm, 4, "Recurrent layer with a cell and input, forget and output gates (LSTM).",
             lstm_attrs, lstm_in, lstm_out);
