/* Drafts: random attributes and inputs by an operator's schema. */
#include "judge/draft.h"

/* Draws a size near those of kernels' tiles, a prime, or 1. */
int64_t cnri_draw_size(cnri_dice *dice) {
    static const uint8_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10,  11,  12, 13,
                                    15, 16, 17, 19, 20, 23, 24, 25, 31, 32,  33,  37, 47,
                                    48, 49, 53, 63, 64, 65, 67, 96, 97, 127, 128, 129};
    const int64_t n = cnri_dice_chance(dice, 60) ? 12 : (int64_t)CNRI_COUNT(sizes);
    return sizes[cnri_dice_below(dice, n)];
}

const cnr_port *cnri_check_port(const cnr_op *op, int32_t i, cnr_port *room) {
    const int32_t row = i < op->n_inputs ? i : op->n_inputs - 1;
    const size_t bytes = op->port_size < sizeof *room ? op->port_size : sizeof *room;
    memset(room, 0, sizeof *room);
    memcpy(room, (const char *)op->inputs + (size_t)row * op->port_size, bytes);
    return room;
}

/* ---- attributes ---- */

/* Draws a plausible integer: a small number, an axis, a size of the first input, or one that a
 * refusal named. */
int64_t cnri_draw_likely(const cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    const cnri_draft_input *x = &d->in[0];
    const int64_t way = cnri_dice_below(dice, 10), part = 1 + cnri_dice_below(dice, 3);
    const int64_t channels = d->n_in > 0 && x->rank > 1 ? x->dim[1] : 2;
    if (way < 2 && hints && hints->n > 0) return hints->at[cnri_dice_below(dice, hints->n)];
    if (way < 3 && d->n_in > 0 && x->rank > 0) return x->dim[cnri_dice_below(dice, x->rank)];
    if (way < 5) return channels % part == 0 && way == 3 ? channels / part : channels * part;
    if (way < 6) return -cnri_dice_below(dice, 4);
    if (way < 7) return cnri_draw_size(dice);
    return cnri_dice_below(dice, 6);
}

/* Returns v, or a number near the bound that it exceeds, if the attribute has bounds. */
static int64_t in_bounds(const cnr_attr_spec *row, int64_t v) {
    if (!(row->flags & CNR_ATTR_BOUNDED)) return v;
    if (row->min > -1e15 && (double)v < row->min)
        v = (int64_t)row->min + (v < 0 ? -(v + 1) : v) % 4;
    return row->max < 1e15 && (double)v > row->max ? (int64_t)row->max : v;
}

/* Draws a number for an attribute, within its bounds. */
static double draw_real(const cnr_attr_spec *row, cnri_dice *dice) {
    static const double reals[] = {0, 1, 0.5, 2, -1, 0.1, 0.001, 3, -0.25, 6};
    double v = reals[cnri_dice_below(dice, (int64_t)CNRI_COUNT(reals))];
    if (cnri_dice_chance(dice, 30)) v = row->default_f * (v + 1);
    if (!(row->flags & CNR_ATTR_BOUNDED)) return v;
    return v < row->min ? row->min : v > row->max ? row->max : v;
}

/* Draws kernel sizes, strides, dilations (at least 1) and pads: small numbers, equal on all axes
 * or not. */
static void draw_spatial(cnri_draft_attr *a, const cnr_attr_spec *row, int32_t spatial,
                         cnri_dice *dice) {
    static const int8_t sizes[] = {1, 2, 3, 1, 2, 3, 3, 4, 5, 7, 11};
    const bool same = cnri_dice_chance(dice, 50);
    a->n = spatial * (row->flags & CNR_ATTR_SPATIAL_PAIRS ? 2 : 1);
    if (a->n < 1) a->n = 1;
    for (int32_t k = 0; k < a->n; k++) {
        a->ints[k] = k > 0 && same ? a->ints[0] : sizes[cnri_dice_below(dice, CNRI_COUNT(sizes))];
        if (row->flags & CNR_ATTR_SPATIAL_PAIRS && !(same && k > 0)) a->ints[k] /= 2;
        a->ints[k] = in_bounds(row, a->ints[k]);
    }
}

/* Draws a list: a permutation of the axes, some axes, sizes, or small numbers. */
static void draw_ints(const cnri_draft *d, cnri_draft_attr *a, const cnr_attr_spec *row,
                      cnri_dice *dice, const cnri_hints *hints) {
    const int32_t rank = d->n_in > 0 ? d->in[0].rank : 2;
    const int64_t way = cnri_dice_below(dice, 4);
    a->n = cnri_dice_chance(dice, 60) ? rank : (int32_t)cnri_dice_below(dice, 5);
    if (a->n > CNRI_CHECK_LIST) a->n = CNRI_CHECK_LIST;
    for (int32_t k = 0; k < a->n; k++) a->ints[k] = k;
    for (int32_t k = a->n - 1; way < 2 && k > 0; k--) {
        const int64_t other = cnri_dice_below(dice, k + 1), was = a->ints[k];
        a->ints[k] = a->ints[other];
        a->ints[other] = was;
    }
    if (way == 1 && a->n > 1) a->n = 1 + (int32_t)cnri_dice_below(dice, a->n - 1);
    for (int32_t k = 0; k < a->n; k++)
        a->ints[k] = in_bounds(row, way < 2 ? a->ints[k] : cnri_draw_likely(d, dice, hints));
}

const char *cnri_draft_string(const cnr_attr_spec *row, const cnri_draft_attr *a) {
    if (row->choices) return row->choices[a->i];
    return row->default_s ? row->default_s : "";
}

/* Draws attribute i of the draft again, by the dice; hints, of what kernels like, may be NULL. */
void cnri_draw_attr(cnri_draft *d, int32_t i, cnri_dice *dice, const cnri_hints *hints) {
    static const int8_t types[] = {CNR_f32, CNR_f32, CNR_f32, CNR_f16, CNR_i32,
                                   CNR_i64, CNR_u8,  CNR_i8,  CNR_f64, CNR_bool};
    cnr_attr_spec room;
    const cnr_attr_spec *row = cnri_spec_at(d->op->attrs, d->op->attr_spec_size, i, &room);
    cnri_draft_attr *a = &d->attrs[i];
    int32_t choices = 0;
    const int32_t spatial = d->n_in > 0 && d->in[0].rank > 2 ? d->in[0].rank - 2 : -1;
    a->given = row->flags & CNR_ATTR_REQUIRED || cnri_dice_chance(dice, hints ? 80 : 45);
    a->n = 0;
    if (row->type == CNR_ATTR_INT) a->i = in_bounds(row, cnri_draw_likely(d, dice, hints));
    else if (row->type == CNR_ATTR_BOOL) a->i = cnri_dice_below(dice, 2);
    else if (row->type == CNR_ATTR_FLOAT) a->f = draw_real(row, dice);
    else if (row->type == CNR_ATTR_DTYPE) a->i = types[cnri_dice_below(dice, CNRI_COUNT(types))];
    else if (row->type == CNR_ATTR_ENUM) {
        while (row->choices[choices]) choices++;
        a->i = cnri_dice_below(dice, choices);
    } else if (row->type == CNR_ATTR_FLOATS) {
        a->n = (int32_t)cnri_dice_below(dice, 5);
        if (spatial > 0 && cnri_dice_chance(dice, 40)) a->n = spatial + 2;
        const bool whole = cnri_dice_chance(dice, 40); /* factors mostly are */
        for (int32_t k = 0; k < a->n; k++)
            a->floats[k] =
                whole ? (double)(1 + cnri_dice_below(dice, 3)) : 0.5 + draw_real(row, dice);
    } else if (row->type == CNR_ATTR_STRING) {
        while (row->choices && row->choices[choices]) choices++;
        a->given = choices > 0; /* words have meanings that only examples tell */
        a->i = cnri_dice_below(dice, choices);
    } else if (row->flags & (CNR_ATTR_SPATIAL | CNR_ATTR_SPATIAL_PAIRS)) {
        draw_spatial(a, row, spatial, dice);
    } else {
        draw_ints(d, a, row, dice, hints);
    }
}

/* ---- inputs ---- */

int64_t cnri_draft_elements(const cnri_draft_input *in) {
    int64_t n = 1;
    for (int32_t i = 0; i < in->rank; i++)
        if (__builtin_mul_overflow(n, in->dim[i], &n)) return INT64_MAX;
    return n;
}

/* Draws a shape of at most `most` elements. */
static void draw_shape(cnri_draft_input *in, int64_t most, cnri_dice *dice) {
    static const int8_t ranks[] = {4, 4, 4, 4, 4, 3, 3, 2, 2, 2, 5, 1, 1, 0, 6};
    in->rank = ranks[cnri_dice_below(dice, CNRI_COUNT(ranks))];
    for (int32_t i = 0; i < in->rank; i++) {
        in->dim[i] = cnri_draw_size(dice);
        if (i == 0 && in->rank > 2 && in->dim[i] > 4) in->dim[i] = 1 + in->dim[i] % 3;
    }
    if (in->rank > 0 && cnri_dice_chance(dice, 2)) in->dim[cnri_dice_below(dice, in->rank)] = 0;
    while (cnri_draft_elements(in) > most) {
        int64_t *dim = &in->dim[cnri_dice_below(dice, in->rank)];
        *dim = (*dim + 1) / 2;
    }
}

int32_t cnri_draw_dtype(cnri_dice *dice) {
    static const int8_t rare[] = {CNR_f16, CNR_f16,  CNR_f64, CNR_bf16, CNR_i8,  CNR_u8, CNR_i32,
                                  CNR_i64, CNR_bool, CNR_i16, CNR_u16,  CNR_u32, CNR_u64};
    return cnri_dice_chance(dice, 72) ? CNR_f32 : rare[cnri_dice_below(dice, CNRI_COUNT(rare))];
}

/* Draws a list as input data: a shape, axes or sizes. */
static void draw_list(const cnri_draft *d, cnri_draft_input *in, cnri_dice *dice) {
    const int32_t rank = d->in[0].rank;
    const bool axes = cnri_dice_chance(dice, 30);
    in->values = CNRI_VALUES_LIST;
    in->constant = true;
    in->variable = false;
    in->dtype = cnri_dice_chance(dice, 80) ? CNR_i64 : cnri_draw_dtype(dice);
    in->rank = cnri_dice_chance(dice, 85);
    in->dim[0] = cnri_dice_chance(dice, 60) ? rank : cnri_dice_below(dice, 2 * CNR_MAX_RANK);
    if (in->dim[0] > CNRI_CHECK_LIST) in->dim[0] = CNRI_CHECK_LIST;
    for (int32_t k = 0; k < CNRI_CHECK_LIST; k++)
        in->list[k] = axes                                     ? k
                      : cnri_dice_chance(dice, 25) && rank > 0 ? d->in[0].dim[k % rank]
                                                               : cnri_dice_below(dice, 5) - 1;
}

/* Draws an input with the shape of the first one, or a part of it. */
static void draw_like(const cnri_draft *d, cnri_draft_input *in, cnri_dice *dice) {
    const cnri_draft_input *x =
        &d->in[cnri_dice_below(dice, 3) ? 0 : cnri_dice_below(dice, d->n_in)];
    const int64_t way = cnri_dice_below(dice, 100);
    in->rank = x->rank;
    memcpy(in->dim, x->dim, sizeof in->dim);
    if (way < 45 || x->rank == 0) return;
    const int64_t axis = cnri_dice_below(dice, x->rank);
    if (way < 60) { /* broadcast */
        for (int32_t i = 0; i < in->rank; i++)
            if (cnri_dice_chance(dice, 50)) in->dim[i] = 1;
    } else if (way < 78) { /* one number a channel */
        in->rank = 1;
        in->dim[0] = x->dim[x->rank > 1 && cnri_dice_chance(dice, 80) ? 1 : axis];
    } else if (way < 84) {
        in->rank = (int32_t)cnri_dice_below(dice, 2);
        in->dim[0] = 1;
    } else if (way < 94) {
        in->dim[axis] = cnri_draw_size(dice);
    } else { /* the last axes only */
        in->rank = x->rank - (int32_t)axis;
        for (int32_t i = 0; i < in->rank; i++) in->dim[i] = x->dim[i + axis];
    }
}

cnri_values cnri_draw_values(cnri_dice *dice) {
    static const int8_t kinds[] = {CNRI_VALUES_SIGNED, CNRI_VALUES_SIGNED,   CNRI_VALUES_SIGNED,
                                   CNRI_VALUES_SIGNED, CNRI_VALUES_SIGNED,   CNRI_VALUES_WIDE,
                                   CNRI_VALUES_WIDE,   CNRI_VALUES_POSITIVE, CNRI_VALUES_POSITIVE,
                                   CNRI_VALUES_SPARSE};
    if (cnri_dice_chance(dice, 4)) return CNRI_VALUES_MIDDLE;
    return (cnri_values)kinds[cnri_dice_below(dice, CNRI_COUNT(kinds))];
}

void cnri_draw_input(cnri_draft *d, int32_t i, cnri_dice *dice) {
    cnr_port room;
    cnri_draft_input *in = &d->in[i];
    const cnr_port *port = cnri_check_port(d->op, i, &room);
    const bool weight = port->flags & CNR_PORT_PARAMETER;
    *in = (cnri_draft_input){.present = true, .made = weight && cnri_dice_chance(dice, 85)};
    in->values = cnri_draw_values(dice);
    in->dtype = i > 0 && cnri_dice_chance(dice, 85) ? d->in[0].dtype : cnri_draw_dtype(dice);
    in->constant = cnri_dice_chance(dice, weight || (d->constants && i > 0) ? 85 : 6);
    in->variable = in->constant && cnri_dice_chance(dice, 8);
    if (port->flags & CNR_PORT_OPTIONAL && !weight) in->present = cnri_dice_chance(dice, 50);
    if (i == 0 || cnri_dice_chance(dice, 12)) draw_shape(in, d->elements, dice);
    else draw_like(d, in, dice);
    if (port->flags & CNR_PORT_CONST) draw_list(d, in, dice);
    else if (i > 0 && !weight && cnri_dice_chance(dice, 8)) draw_list(d, in, dice);
}

/* Draws the number of inputs of a variadic operator, and sets that of outputs. */
static void draw_count(cnri_draft *d, cnri_dice *dice) {
    cnr_port room;
    const cnr_op *op = d->op;
    d->n_in = op->n_inputs;
    if (op->n_inputs > 0 && cnri_check_port(op, op->n_inputs - 1, &room)->flags & CNR_PORT_VARIADIC)
        d->n_in = op->n_inputs - 1 + room.min + (int32_t)cnri_dice_below(dice, 4);
    if (d->n_in > CNRI_CHECK_PORTS) d->n_in = CNRI_CHECK_PORTS;
    d->n_out = 0;
    for (int32_t i = 0; i < op->n_outputs; i++) {
        cnr_port out = {0};
        memcpy(&out, (const char *)op->outputs + (size_t)i * op->port_size,
               op->port_size < sizeof out ? op->port_size : sizeof out);
        if (out.flags & CNR_PORT_VARIADIC)
            d->n_out = i + out.min + (int32_t)cnri_dice_below(dice, 3);
        else if (!(out.flags & CNR_PORT_OPTIONAL) || cnri_dice_chance(dice, 15)) d->n_out = i + 1;
    }
    if (d->n_out < 1) d->n_out = 1;
    if (d->n_out > CNRI_CHECK_PORTS) d->n_out = CNRI_CHECK_PORTS;
}

void cnri_draft_attrs(cnri_draft *d, cnri_dice *dice) {
    for (int32_t i = 0; i < d->op->n_attrs && i < CNRI_CHECK_ATTRS; i++)
        cnri_draw_attr(d, i, dice, NULL);
}

void cnri_draft_fresh(cnri_draft *d, const cnr_op *op, bool small, cnri_dice *dice) {
    static const int32_t sizes[] = {300, 2000, 2000, 6000, 6000, 40000, 150000};
    static const int32_t smaller[] = {30, 100, 300, 300, 1000, 1000, 4000};
    memset(d, 0, sizeof *d);
    d->op = op;
    d->known = small;
    d->elements = (small ? smaller : sizes)[cnri_dice_below(dice, CNRI_COUNT(sizes))];
    d->data_seed = cnri_dice_next(dice);
    d->chain_seed = cnri_dice_chance(dice, 60) ? cnri_dice_next(dice) | 1 : 0;
    d->constants = cnri_dice_chance(dice, 30);
    draw_count(d, dice);
    for (int32_t i = 0; i < d->n_in; i++) cnri_draw_input(d, i, dice);
    cnri_draft_attrs(d, dice);
}
