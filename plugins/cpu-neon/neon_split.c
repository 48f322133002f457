/* split along any axis: a task copies some rows of the axes before it to all outputs, so that a
 * thread reads the rows that it has computed. */
#include "support.h"
#include "shapes.h"

/* Bytes of a task. */
#define TASK ((int64_t)1 << 15)

/* Plan of a split: rows of the input, their bytes, and each output's bytes of a row. */
typedef struct split_state {
    int64_t outer, rows; /* indices of the axes before; of a task */
    int64_t from;        /* bytes of x for each of them */
    int64_t to[];        /* and of each output */
} split_state;

/* Bytes of an element if t is dense on the host; 0: it is not. */
static int64_t element_of(const cnr_tensor *t) {
    if (!t || t->rank < 1 || !cnr_is_plain(t, 1u << t->dtype) || t->flags & CNR_TENSOR_DYNAMIC)
        return 0;
    return cnr_dtype_bits(t->dtype) / 8;
}

/* Takes a split of dense elements of whole bytes, along any axis; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    (void)device;
    for (int32_t o = 0; o < node->n_outputs; o++)
        if (!element_of(x) || element_of(node->outputs[o]) != element_of(x))
            return cnr_refuse(out, "whole bytes and known sizes are wanted");
    if (!x || shape_axis(cnr_attr_int(node, "axis"), x->rank) < 0)
        return cnr_refuse(out, "an axis of the input is wanted");
    return cnr_take(node, out, 400);
}

/* Notes rows and bytes of each output; *state keeps them. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    const int32_t axis = shape_axis(cnr_attr_int(node, "axis"), x->rank);
    const int64_t element = element_of(x);
    (void)device, (void)workspace;
    split_state *s =
        cnr_state(neon_host, node, sizeof *s + (size_t)node->n_outputs * sizeof s->to[0], err);
    if (!s) return CNR_E_MEMORY;
    s->outer = cnr_span(x, 0, axis);
    s->from = cnr_span(x, axis, x->rank) * element;
    s->rows = cnr_max(1, TASK / cnr_max(1, s->from));
    for (int32_t o = 0; o < node->n_outputs; o++)
        s->to[o] = cnr_span(node->outputs[o], axis, x->rank) * element;
    *state = s;
    return CNR_OK;
}

/* Task i: copies some rows' pieces to the outputs. */
static void some_rows(void *arg, int64_t i, int32_t thread) {
    const cnr_run *run = arg;
    const split_state *s = run->state;
    const char *x = run->node->inputs[0]->data;
    const int64_t end = cnr_min(s->outer, (i + 1) * s->rows);
    (void)thread;
    for (int64_t row = i * s->rows; row < end; row++) {
        const char *from = x + row * s->from;
        for (int32_t o = 0; o < run->node->n_outputs; from += s->to[o], o++)
            memcpy((char *)run->outputs[o]->data + row * s->to[o], from, (size_t)s->to[o]);
    }
}

/* Copies all rows on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const split_state *s = run->state;
    (void)err;
    cnr_parallel(run->stream, cnr_div_up(s->outer, s->rows), some_rows, (void *)run);
    return CNR_OK;
}

NEON_KERNEL(neon_split, "split_bytes", "split", plan, neon_free_state);
