/* rnn, gru and lstm: the products with the inputs are computed for all steps at once; then one
 * work-group runs the steps of each sequence. */
#include "support.h"

#include "recurrent.cl.h"

enum { X, W, R, BIAS, LENGTHS, FIRST_H, FIRST_C, PEEPHOLES };         /* ports */
enum { GIVEN_H = 1, GIVEN_C = 2, LAST_H = 4, LAST_C = 8, BACK = 16 }; /* flags of recur */

/* Sizes of a recurrent node: steps, samples, directions, features in, hidden features, gates. */
typedef struct recurrent {
    int64_t steps, n, directions, inputs, hidden, gates;
} recurrent;

/* What plan keeps for run: the code of the inputs' product and of the steps. */
typedef struct recurrent_state {
    const ocl_code *project, *recur;
    recurrent shape;
    int32_t line, group, flags;
} recurrent_state;

static int is_plain(const cnr_tensor *t) { return !t || cnr_is_plain(t, 1u << CNR_f32); }

/* Gates of the node's cell: 4 of lstm, 3 of gru, 1 of rnn. */
static int64_t gates_of(const cnr_node *node) {
    return strcmp(node->desc->name, "lstm") == 0 ? 4 : strcmp(node->desc->name, "gru") == 0 ? 3 : 1;
}

/* Why the kernel is not for the node; NULL, and its sizes. */
static const char *shape_of(const cnr_device *device, const cnr_node *node, recurrent *s) {
    const cnr_tensor *x = cnr_own_input(node, X), *w = cnr_own_input(node, W),
                     *r = cnr_own_input(node, R), *bias = cnr_own_input(node, BIAS);
    for (int32_t i = 0; i < cnr_own_inputs(node); i++)
        if (!is_plain(node->inputs[i])) return "dense f32 is wanted";
    for (int32_t i = 0; i < node->n_outputs; i++)
        if (!is_plain(node->outputs[i])) return "dense f32 is wanted";
    if (!x || !cnr_is_constant(w) || !cnr_is_constant(r) || (bias && !cnr_is_constant(bias)))
        return "constant weights are wanted";
    if (cnr_own_input(node, LENGTHS) || cnr_own_input(node, PEEPHOLES))
        return "it knows neither lengths of sequences nor peepholes";
    if (!node->outputs[0]) return "it stores the states of all steps";
    *s = (recurrent){x->dim[0], x->dim[1], w->dim[0], x->dim[2], r->dim[2], gates_of(node)};
    if (s->gates == 3 && !cnr_attr_int(node, "linear_before_reset"))
        return "the reset gate must stand behind the product";
    if (s->steps < 1 || s->n < 1 || s->inputs < 1) return "it is empty";
    const uint64_t local = (uint64_t)((2 + s->gates) * s->hidden) * sizeof(float);
    return local > ocl_of(device)->found->local_bytes ? "the state does not fit local memory"
                                                      : NULL;
}

/* Takes f32 recurrent nodes that shape_of can read; else out tells why not. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    recurrent s;
    const char *why = shape_of(device, node, &s);
    if (why) return cnr_refuse(out, why);
    cnr_take(node, out, 400);
    out->prepared = 1 << W | 1 << R | (cnr_own_input(node, BIAS) ? 1 << BIAS : 0);
    return CNR_OK;
}

static int64_t row_of(const recurrent *s) { return s->gates * s->hidden; }

/* Method prepare_size: bytes of the packed weights; 0: none. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    recurrent s;
    CNR_TRY(ocl_unless(node, shape_of(device, node, &s), err));
    out->bytes = (uint64_t)(s.directions * (s.inputs + s.hidden + 2) * row_of(&s)) * sizeof(float);
    return CNR_OK;
}

/* Writes `from`, [rows][columns], to `to` as [columns][rows]; returns the end of what it wrote. */
static float *transposed(const float *from, int64_t rows, int64_t columns, float *to) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < columns; k++) to[k * rows + i] = from[i * columns + k];
    return to + rows * columns;
}

/* Method prepare: packs the node's weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    recurrent s;
    const cnr_tensor *bias = cnr_own_input(node, BIAS);
    CNR_TRY(ocl_unless(node, shape_of(device, node, &s), err));
    const float *w = node->inputs[W]->data, *r = node->inputs[R]->data;
    const int64_t row = row_of(&s);
    float *to = blob;
    for (int64_t d = 0; d < s.directions; d++) {
        to = transposed(w + d * row * s.inputs, row, s.inputs, to);
        to = transposed(r + d * row * s.hidden, row, s.hidden, to);
        for (int64_t i = 0; i < 2 * row; i++)
            *to++ = bias ? ((const float *)bias->data)[2 * d * row + i] : 0;
    }
    return CNR_OK;
}

/* Flags of the device code: direction, and which optional inputs are given. */
static int32_t flags_of(const cnr_node *node) {
    int32_t flags = cnr_attr_is(node, "direction", "reverse") ? BACK : 0;
    if (cnr_own_input(node, FIRST_H)) flags |= GIVEN_H;
    if (gates_of(node) == 4 && cnr_own_input(node, FIRST_C)) flags |= GIVEN_C;
    if (node->n_outputs > 1 && node->outputs[1]) flags |= LAST_H;
    if (node->n_outputs > 2 && node->outputs[2]) flags |= LAST_C;
    return flags;
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/recurrent.cl", recurrent_cl);
    ocl_plan p;
    recurrent_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    if (!ocl_plan_unless(&p, shape_of(device, node, &s->shape))) return ocl_plan_end(&p, state);
    const int64_t row = row_of(&s->shape), most = (int64_t)ocl_of(device)->most_group;
    s->line = ocl_of(device)->tune->line;
    s->flags = flags_of(node);
    for (s->group = 32; s->group < row && s->group < 256 && 2 * s->group <= most;) s->group *= 2;
    workspace->bytes =
        (uint64_t)(s->shape.directions * s->shape.steps * s->shape.n * row) * sizeof(float);
    ocl_plan_options(&p, "-DH=%d -DG=%d -DGATES=%d ", (int)s->shape.hidden, (int)row,
                     (int)s->shape.gates);
    ocl_plan_code(&p, &source, "project", &s->project);
    ocl_plan_code(&p, &source, "recur", &s->recur);
    return ocl_plan_end(&p, state);
}

/* The memory of an optional tensor, or another where there is none. */
static void buffer(ocl_call *call, const cnr_tensor *t, const cnr_mem *other) {
    ocl_arg_buffer(call, t ? &t->mem : other);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const recurrent_state *s = run->state;
    const recurrent *r = &s->shape;
    const cnr_node *node = run->node;
    const cnr_mem *x = &node->inputs[X]->mem, *y = &run->outputs[0]->mem;
    const int64_t shape[4] = {r->steps, r->n, r->directions, r->inputs};
    ocl_call call;
    ocl_begin(&call, run->stream, s->project);
    ocl_arg_buffer(&call, x);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_longs(&call, shape, 4);
    CNR_TRY(ocl_launch(&call, row_of(r), r->steps * r->n, r->directions, s->line, err));
    ocl_begin(&call, run->stream, s->recur);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_buffer(&call, run->blob);
    buffer(&call, s->flags & GIVEN_H ? node->inputs[FIRST_H] : NULL, x);
    buffer(&call, s->flags & GIVEN_C ? node->inputs[FIRST_C] : NULL, x);
    ocl_arg_buffer(&call, y);
    buffer(&call, s->flags & LAST_H ? run->outputs[1] : NULL, y);
    buffer(&call, s->flags & LAST_C ? run->outputs[2] : NULL, y);
    ocl_arg_longs(&call, shape, 4);
    ocl_arg_int(&call, s->flags);
    int32_t group = s->group; /* not more than the built kernel may have */
    while (group > 1 && group > (int32_t)call.code->most) group /= 2;
    return ocl_launch(&call, r->n * r->directions * group, 1, 1, group, err);
}

/* Registers the recurrent kernel of operator op_name. */
#define ROW(symbol, op_name) \
    OCL_KERNEL(symbol, op_name "_f32", op_name, .accepts = accepts, .prepare_size = prepare_size, \
               .prepare = prepare, .plan = plan, .run = run);
ROW(ocl_rnn, "rnn")
ROW(ocl_gru, "gru")
ROW(ocl_lstm, "lstm")
