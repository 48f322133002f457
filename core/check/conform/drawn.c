/* Draws random nets of the operators that a plugin's file names, in which rewrites may find
 * their patterns. */
#define _GNU_SOURCE
#include "initial/initial.h"
#include "conform/judging.h"
#include <string.h>

enum { MOST_OPS = 256, STEPS = 8, MOST_VALUES = 64, MOST_PORTS = 4, MOST_OUTPUTS = 8 };

/* Operators that a plugin's file names. `sure` ones are texts in it; others may be parts of
 * instructions, into which compilers turn comparisons with short texts. */
typedef struct named {
    const cnr_op *sure[MOST_OPS], *likely[MOST_OPS];
    int32_t n_sure, n_likely;
} named;

/* A plugin's file in memory, in which names are searched. */
typedef struct bytes {
    const char *at;
    size_t n;
} bytes;

/* True if the file contains n bytes of text. */
static bool has(const bytes *b, const char *text, size_t n) {
    return memmem(b->at, b->n, text, n) != NULL;
}

/* True if the name stands in the file with a NUL on both sides. */
static bool has_text(const bytes *b, const char *name) {
    char text[128];
    const size_t n = strlen(name);
    if (n + 2 > sizeof text) return false;
    memcpy(text + 1, name, n + 1);
    text[0] = 0;
    return has(b, text, n + 2);
}

/* True if the file contains the name's first 8 bytes, or its first 4 and its last 4. */
static bool has_parts(const bytes *b, const char *name) {
    const size_t n = strlen(name);
    if (n <= 4 || has(b, name, n < 8 ? n : 8)) return has(b, name, n < 8 ? n : 8);
    return has(b, name, 4) && has(b, name + n - 4, 4);
}

/* Finds the operators that the file names; all operators if it names none. */
static void find_ops(const cnri_plugin *p, named *out) {
    const int32_t count = cnri_descriptor_count(CNR_KIND_OPERATOR);
    cnr_error err = CNR_ERROR_INIT;
    void *data = NULL;
    uint64_t size = 0;
    if (cnri_host.file_read(p->path, UINT64_C(256) << 20, &data, &size, &err)) size = 0;
    const bytes file = {data, (size_t)size};
    for (int32_t all = 0; all < 2 && !out->n_likely; all++)
        for (int32_t i = 0; i < count && i < MOST_OPS; i++) {
            const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
            if (has_text(&file, op->name)) out->sure[out->n_sure++] = op;
            if (all || has_parts(&file, op->name)) out->likely[out->n_likely++] = op;
        }
    cnri_host.free(data);
}

/* Draws an operator, mostly one that the plugin surely names. */
static const cnr_op *draw_op(const named *ops, cnri_dice *dice) {
    if (ops->n_sure && cnri_dice_chance(dice, 60))
        return ops->sure[cnri_dice_below(dice, ops->n_sure)];
    return ops->likely[cnri_dice_below(dice, ops->n_likely)];
}

/* A net that is being drawn. */
typedef struct drawing {
    cnr_graph *g;
    cnri_dice dice;
    cnr_value values[MOST_VALUES];
    int32_t n;
} drawing;

/* Adds a constant that broadcasts to the tensor: one number, one for each channel, or one for each
 * element; negative: it failed. */
static cnr_value draw_constant(drawing *d, const cnr_tensor *like) {
    cnr_tensor t = {.size = sizeof t, .dtype = like->dtype, .rank = like->rank};
    const int64_t way = cnri_dice_below(&d->dice, 3);
    for (int32_t a = 0; a < t.rank; a++)
        t.dim[a] = way == 2 || (way == 1 && a == 1) ? like->dim[a] : 1;
    if (way == 0) t.rank = 0;
    if (cnr_count(&t) < 1 || cnr_dense_bytes(&t) > CNRI_CHECK_MOST_BYTES) return -1;
    t.flags = CNR_TENSOR_CONST;
    t.bytes = cnr_dense_bytes(&t);
    t.data = cnri_alloc((size_t)t.bytes + 8);
    if (!t.data) return -1;
    cnri_values_fill(&t, CNRI_VALUES_SIGNED, NULL, &d->dice);
    const cnr_value v = cnri_graph_constant(d->g, NULL, &t);
    cnri_free(t.data);
    return v;
}

/* The value for port `i`, usually the newest; -1: left out, so that the operator makes it. */
static cnr_value draw_input(drawing *d, const cnr_op *op, int32_t i, cnr_value first) {
    cnr_port row;
    const cnr_port *port = cnri_check_port(op, i, &row);
    if (port->flags & CNR_PORT_PARAMETER) return -1;
    if (port->flags & CNR_PORT_OPTIONAL && cnri_dice_chance(&d->dice, 60)) return -1;
    if (i > 0 && (port->flags & CNR_PORT_CONST || cnri_dice_chance(&d->dice, 30)))
        return draw_constant(d, cnri_graph_type(d->g, first));
    if (i > 0 && cnri_dice_chance(&d->dice, 30)) return first;
    return d->values[cnri_dice_chance(&d->dice, 75) ? d->n - 1
                                                    : (int32_t)cnri_dice_below(&d->dice, d->n)];
}

/* Draws attributes of an operator for an input like x; returns how many. */
static int32_t draw_attrs(drawing *d, const cnr_op *op, const cnr_tensor *x, cnr_attr *room,
                          cnri_draft *draft) {
    int32_t n = 0;
    memset(draft, 0, sizeof *draft);
    draft->op = op;
    draft->n_in = 1;
    draft->in[0].rank = x->rank;
    memcpy(draft->in[0].dim, x->dim, sizeof x->dim);
    cnri_draft_attrs(draft, &d->dice);
    const bool plain = cnri_dice_chance(&d->dice, 40); /* as little as there must be */
    for (int32_t i = 0; i < op->n_attrs && i < CNRI_CHECK_ATTRS; i++) {
        cnr_attr_spec space;
        const cnr_attr_spec *row = cnri_spec_at(op->attrs, op->attr_spec_size, i, &space);
        const cnri_draft_attr *a = &draft->attrs[i];
        if (!a->given || (plain && !(row->flags & CNR_ATTR_REQUIRED))) continue;
        room[n] = (cnr_attr){row->name, row->type, 1, a->i, a->f, NULL, a->n, a->ints, a->floats};
        if (row->type == CNR_ATTR_ENUM) room[n].s = row->choices[a->i];
        if (row->type == CNR_ATTR_STRING) room[n].s = cnri_draft_string(row, a);
        n++;
    }
    return n;
}

/* Adds a drawn node. False: the operator refuses it. */
static bool add_node(drawing *d, const cnr_op *op) {
    static cnri_draft draft; /* large; a judgement has one thread */
    cnr_attr room[CNRI_CHECK_ATTRS];
    const cnr_attr *attrs[CNRI_CHECK_ATTRS];
    cnr_value in[MOST_PORTS], out[MOST_PORTS];
    const int32_t n_in = op->n_inputs;
    const int32_t n_out = cnri_dice_chance(&d->dice, 80) ? 1 : op->n_outputs;
    if (n_in < 1 || n_in > MOST_PORTS || n_out < 1 || n_out > MOST_PORTS) return false;
    if (op->flags & (CNR_OP_LOSS | CNR_OP_OPTIMIZER)) return false;
    in[0] = -1;
    for (int32_t i = 0; i < n_in; i++) in[i] = draw_input(d, op, i, in[0]);
    if (in[0] < 0) return false;
    const int32_t n = draw_attrs(d, op, cnri_graph_type(d->g, in[0]), room, &draft);
    for (int32_t i = 0; i < n; i++) attrs[i] = &room[i];
    const cnr_status status =
        cnri_graph_node(d->g, op->name, NULL, NULL, in, n_in, attrs, n, out, n_out);
    const cnr_tensor *y = status ? NULL : cnri_graph_type(d->g, out[0]);
    if (!y || d->g->problems.n || y->flags & CNR_TENSOR_DYNAMIC || cnr_count(y) < 1 ||
        cnr_dense_bytes(y) > CNRI_CHECK_MOST_BYTES)
        return false;
    if (d->n < MOST_VALUES) d->values[d->n++] = out[0];
    return true;
}

/* Adds an f32 input of 2 or 4 dimensions of random sizes; negative: it failed. */
static cnr_value draw_x(drawing *d) {
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 4};
    if (cnri_dice_chance(&d->dice, 15)) t.rank = 2;
    t.dim[0] = 1 + cnri_dice_below(&d->dice, 2);
    t.dim[1] = 1 + cnri_dice_below(&d->dice, 8);
    for (int32_t a = 2; a < t.rank; a++) t.dim[a] = 3 + cnri_dice_below(&d->dice, 8);
    return cnri_graph_input(d->g, "x", &t);
}

/* Builds the net of these n steps, each from its own seed; free with cnri_graph_free. *wrong: the
 * first step that is refused, -1: none. NULL: out of memory. */
static cnr_graph *build(const cnr_op *const *ops, const uint64_t *seeds, int32_t n,
                        int32_t *wrong) {
    drawing d = {.g = cnri_graph_new("drawn"), .dice = {seeds[0]}};
    int32_t outputs = 0;
    *wrong = -1;
    if (!d.g) return NULL;
    d.g->renames = true;
    d.values[d.n++] = draw_x(&d);
    for (int32_t i = 0; i < n && *wrong < 0; i++) {
        d.dice.state = seeds[i];
        if (!add_node(&d, ops[i])) *wrong = i;
    }
    for (int32_t i = d.n - 1; i > 0 && outputs < MOST_OUTPUTS; i--)
        if (cnri_graph_uses(d.g, d.values[i]) == 0)
            outputs += cnri_graph_output(d.g, d.values[i], NULL) == CNR_OK;
    d.g->renames = false;
    return d.g;
}

cnr_graph *cnri_drawn_net(cnri_judging *j) {
    static named ops;
    const cnr_op *steps[STEPS];
    uint64_t seeds[STEPS];
    cnr_error err = CNR_ERROR_INIT;
    int32_t n = 2 + (int32_t)cnri_dice_below(&j->dice, STEPS - 1), wrong = 0;
    if (!ops.n_likely && j->o->plugin) find_ops(j->o->plugin, &ops);
    if (!ops.n_likely) return NULL;
    for (int32_t i = 0; i < n; i++) {
        steps[i] = draw_op(&ops, &j->dice);
        seeds[i] = cnri_dice_next(&j->dice);
    }
    for (int32_t tries = 0; n > 1 && tries < 40; tries++) { /* others in place of refused ones */
        cnr_graph *g = build(steps, seeds, n, &wrong);
        if (g && wrong < 0 && cnri_fill_random(g, seeds[0], &err) == CNR_OK) return g;
        if (g) cnri_graph_free(g);
        if (wrong < 0) return NULL;
        steps[wrong] = draw_op(&ops, &j->dice);
        seeds[wrong] = cnri_dice_next(&j->dice);
    }
    return NULL;
}
