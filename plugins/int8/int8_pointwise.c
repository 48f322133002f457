/* qlinear_add, qlinear_mul, qlinear_table, qlinear_global_average_pool on the CPU, plain or on
 * channel blocks. */
#include "blocked.h"

#include <math.h>

enum { CHUNK = 16384, REAL = 1u << CNR_f32, BYTES = 1u << CNR_u8 | 1u << CNR_i8 };

/* The block size if it is one that kernels support, else 0 (plain). */
static int32_t offered(int32_t block) { return block == 8 || block == 16 ? block : 0; }

/* Whether the inputs [from, n), except those in `values`, are known constants. */
static int all_known(const cnr_node *node, uint32_t values) {
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (!(values >> i & 1) && !int8_is_scalar(node->inputs[i], REAL | BYTES)) return 0;
    return 1;
}

static double real_of(const cnr_tensor *t) { return (double)*(const float *)t->data; }

static int is_usable(float factor) { return isnormal(factor); }

/* ---- sum and product ---- */

/* Plan of qlinear_add or qlinear_mul. */
typedef struct pair_state {
    int8_pair how;
    int multiplies, form;
} pair_state;

static int multiplies(const cnr_node *node) { return strcmp(node->desc->name, "qlinear_mul") == 0; }

/* Whether b has a's channels and size 1 in all other axes. */
static int is_by_channel(const cnr_tensor *a, const cnr_tensor *b) {
    if (a->rank < 3 || a->rank != b->rank || a->dim[1] != b->dim[1] || a->dim[0] != b->dim[0])
        return 0;
    return cnr_span(b, 2, b->rank) == 1;
}

int int8_pair_form(const cnr_tensor *a, const cnr_tensor *b, int multiplies) {
    if (cnr_same_shape(a, b)) return INT8_PAIR_SAME;
    if (multiplies && is_by_channel(a, b)) return INT8_PAIR_CHANNEL;
    int32_t from = 0; /* axis of b */
    while (from < b->rank && b->dim[from] == 1) from++;
    if (b->rank > a->rank) return INT8_PAIR_NONE;
    for (int32_t i = from; i < b->rank; i++)
        if (b->dim[i] != a->dim[a->rank - b->rank + i]) return INT8_PAIR_NONE;
    return INT8_PAIR_ROW;
}

/* Computes the factors of a and b from the scales. */
static void factors(const cnr_node *node, int8_pair *how) {
    const cnr_tensor *const *in = node->inputs;
    const double a = real_of(in[INT8_A_SCALE]), b = real_of(in[INT8_B_SCALE]);
    const double y = real_of(in[INT8_PAIR_Y_SCALE]);
    how->a_factor = multiplies(node) ? (float)(a * b / y) : (float)(a / y);
    how->b_factor = (float)(b / y);
}

/* Takes qlinear_add and qlinear_mul; for others out->why says why. */
static cnr_status pair_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *a = node->inputs[INT8_A], *b = node->inputs[INT8_B];
    int8_pair how;
    (void)device;
    if (!all_known(node, 0x09)) return cnr_refuse(out, "constant scales are wanted");
    factors(node, &how);
    if (!is_usable(how.a_factor) || (!multiplies(node) && !is_usable(how.b_factor)))
        return cnr_refuse(out, "a scale is no number, or a denormal");
    const int form = int8_pair_form(a, b, multiplies(node));
    if (form == INT8_PAIR_NONE || cnr_count(b) < 1)
        return cnr_refuse(out, "operands of one shape, a number a channel or a row are wanted");
    const int32_t block = form == INT8_PAIR_ROW ? 0 : offered(out->in_block[INT8_A]);
    cnr_take(node, out, 300);
    out->in_block[INT8_A] = out->out_block[0] = block;
    if (form == INT8_PAIR_SAME) out->in_block[INT8_B] = block;
    out->prepared = 0xf6;
    return CNR_OK;
}

/* Allocates a state with the factors and zero points of a, b and y. Fails with CNR_E_MEMORY. */
static cnr_status pair_plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                            void **state, cnr_error *err) {
    const cnr_tensor *const *in = node->inputs;
    (void)device;
    (void)workspace;
    pair_state *s = cnr_state(int8_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    factors(node, &s->how);
    s->multiplies = multiplies(node);
    s->form = int8_pair_form(in[INT8_A], in[INT8_B], s->multiplies);
    s->how.a_flip = in[INT8_A]->dtype == CNR_i8 ? 0x80 : 0;
    s->how.b_flip = in[INT8_B]->dtype == CNR_i8 ? 0x80 : 0;
    s->how.a_zero = int8_byte_at(in[INT8_A_ZERO], 0) + s->how.a_flip;
    s->how.b_zero = int8_byte_at(in[INT8_B_ZERO], 0) + s->how.b_flip;
    s->how.zero = int8_byte_at(in[INT8_PAIR_Y_ZERO], 0);
    int8_bounds(in[INT8_PAIR_Y_ZERO]->dtype, s->how.zero, &s->how.low, &s->how.high);
    *state = s;
    return CNR_OK;
}

/* Elements of a task: CHUNK, or where b is a row, as many whole rows of `row` elements as that
 * takes, rounded up. */
static int64_t pair_step(const pair_state *s, int64_t row) {
    return s->form == INT8_PAIR_ROW ? cnr_div_up(CHUNK, row) * row : CHUNK;
}

/* Task i of the cnr_run `arg`: computes one chunk. */
static void pair_chunk(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const pair_state *s = run->state;
    const cnr_tensor *a = run->node->inputs[INT8_A];
    const uint8_t *x = a->data, *by = run->node->inputs[INT8_B]->data;
    uint8_t *y = run->outputs[0]->data;
    (void)thread;
    if (s->form == INT8_PAIR_CHANNEL) { /* i: index of a plane of channel blocks */
        const int64_t block = cnr_max(1, a->block), plane = cnr_span(a, 2, a->rank);
        int8_uk->scale(x + i * plane * block, plane, block, by + i * block, &s->how,
                       y + i * plane * block);
        return;
    }
    const int64_t row = s->form == INT8_PAIR_ROW ? cnr_count(run->node->inputs[INT8_B]) : CHUNK;
    const int64_t end = cnr_min(cnr_count(a), (i + 1) * pair_step(s, row));
    for (int64_t at = i * pair_step(s, row); at < end; at += row)
        (s->multiplies ? int8_uk->mul : int8_uk->add)(x + at,
                                                      s->form == INT8_PAIR_ROW ? by : by + at,
                                                      cnr_min(row, end - at), &s->how, y + at);
}

/* Computes everything on the stream's threads; returns CNR_OK. */
static cnr_status pair_run(const cnr_run *run, cnr_error *err) {
    const pair_state *s = run->state;
    const cnr_tensor *a = run->node->inputs[INT8_A];
    (void)err;
    cnr_parallel(run->stream,
                 s->form == INT8_PAIR_CHANNEL
                     ? a->dim[0] * a->dim[1] / cnr_max(1, a->block)
                     : cnr_div_up(cnr_count(a), pair_step(s, cnr_count(run->node->inputs[INT8_B]))),
                 pair_chunk, (void *)run);
    return CNR_OK;
}

/* ---- table ---- */

/* Takes qlinear_table with a constant table, in the layout that is offered; for others out->why
 * says why. */
static cnr_status table_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const int32_t block = offered(out->in_block[0]);
    (void)device;
    if (!cnr_is_constant(node->inputs[1])) return cnr_refuse(out, "a constant table is wanted");
    return int8_blocked_take(node, out, 300, block, block);
}

/* Task i of the cnr_run `arg`: looks up one chunk. */
static void table_chunk(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const int64_t at = i * CHUNK, n = cnr_min(CHUNK, cnr_count(run->outputs[0]) - at);
    (void)thread;
    int8_uk->table((const uint8_t *)run->node->inputs[0]->data + at, n, run->node->inputs[1]->data,
                   (uint8_t *)run->outputs[0]->data + at);
}

/* Looks up everything on the stream's threads; returns CNR_OK. */
static cnr_status table_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    cnr_parallel(run->stream, cnr_div_up(cnr_count(run->outputs[0]), CHUNK), table_chunk,
                 (void *)run);
    return CNR_OK;
}

/* ---- mean of planes ---- */

/* Plan of qlinear_global_average_pool. */
typedef struct mean_state {
    int8_pair how; /* only the fields of a are used */
} mean_state;

/* The factor from the sum of a plane to its quantised mean: x_scale / (y_scale * elements). */
static float mean_factor(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0];
    return (float)(real_of(node->inputs[1]) /
                   (real_of(node->inputs[3]) * (double)cnr_span(x, 2, x->rank)));
}

/* Takes qlinear_global_average_pool; for others out->why says why. */
static cnr_status mean_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = node->inputs[0];
    const int32_t block = offered(out->in_block[0]);
    (void)device;
    if (!all_known(node, 1)) return cnr_refuse(out, "constant scales are wanted");
    const int64_t plane = cnr_span(x, 2, x->rank);
    if (plane < 1 || plane > 1 << 22 || !is_usable(mean_factor(node)))
        return cnr_refuse(out, "sums that fit 32 bits and a scale that is a number are wanted");
    int8_blocked_take(node, out, 300, block, 0);
    out->prepared = 0x1e;
    return CNR_OK;
}

/* Allocates a state with factor and zero points. Fails with CNR_E_MEMORY. */
static cnr_status mean_plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                            void **state, cnr_error *err) {
    const cnr_tensor *const *in = node->inputs;
    (void)device;
    (void)workspace;
    mean_state *s = cnr_state(int8_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->how.a_flip = in[0]->dtype == CNR_i8 ? 0x80 : 0;
    s->how.a_zero = int8_byte_at(in[2], 0) + s->how.a_flip;
    s->how.a_factor = mean_factor(node);
    s->how.zero = int8_byte_at(in[INT8_MEAN_Y_ZERO], 0);
    int8_bounds(in[INT8_MEAN_Y_ZERO]->dtype, s->how.zero, &s->how.low, &s->how.high);
    *state = s;
    return CNR_OK;
}

/* Task i of the cnr_run `arg`: mean of one plane. */
static void mean_plane(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const mean_state *s = run->state;
    const cnr_tensor *x = run->node->inputs[0];
    const int64_t block = cnr_max(1, x->block), plane = cnr_span(x, 2, x->rank);
    (void)thread;
    int8_uk->mean((const uint8_t *)x->data + i * plane * block, plane, block, &s->how,
                  (uint8_t *)run->outputs[0]->data + i * block);
}

/* Means of all planes on the stream's threads; returns CNR_OK. */
static cnr_status mean_run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    (void)err;
    cnr_parallel(run->stream, x->dim[0] * x->dim[1] / cnr_max(1, x->block), mean_plane,
                 (void *)run);
    return CNR_OK;
}

/* Defines kernel `variable` of operator op_name from the functions WHICH_accepts and WHICH_run. */
#define POINTWISE(variable, op_name, which, plan_fn, unplan_fn) \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = 1, \
                                 .name = op_name "_int8", \
                                 .op = op_name, \
                                 .device = "cpu", \
                                 .accepts = which##_accepts, \
                                 .plan = plan_fn, \
                                 .plan_free = unplan_fn, \
                                 .run = which##_run}
POINTWISE(int8_add, "qlinear_add", pair, pair_plan, int8_free_state);
POINTWISE(int8_mul, "qlinear_mul", pair, pair_plan, int8_free_state);
POINTWISE(int8_table, "qlinear_table", table, NULL, NULL);
POINTWISE(int8_mean, "qlinear_global_average_pool", mean, mean_plan, int8_free_state);
