/* Drafts: random attributes and inputs by an operator's schema, and small changes of them. */
#include "core/check/check.h"
#include <stdlib.h>

/* Sizes round the tiles that kernels work in, primes, and 1. */
static int64_t awkward(cnri_dice *dice) {
    static const uint8_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 15, 16,
                                    17, 19, 20, 23, 24, 25, 31, 32, 33, 37, 47, 48, 49, 53, 63,
                                    64, 65, 67, 96, 97, 127, 128, 129};
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

/* What an integer may well be: small, an axis, a size of the first input, what was asked for. */
static int64_t likely(const cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    const cnri_draft_input *x = &d->in[0];
    const int64_t way = cnri_dice_below(dice, 10), part = 1 + cnri_dice_below(dice, 3);
    const int64_t channels = d->n_in > 0 && x->rank > 1 ? x->dim[1] : 2;
    if (way < 2 && hints && hints->n > 0) return hints->at[cnri_dice_below(dice, hints->n)];
    if (way < 3 && d->n_in > 0 && x->rank > 0) return x->dim[cnri_dice_below(dice, x->rank)];
    if (way < 5) return channels % part == 0 && way == 3 ? channels / part : channels * part;
    if (way < 6) return -cnri_dice_below(dice, 4);
    if (way < 7) return awkward(dice);
    return cnri_dice_below(dice, 6);
}

static int64_t in_bounds(const cnr_attr_spec *row, int64_t v) {
    if (!(row->flags & CNR_ATTR_BOUNDED)) return v;
    if (row->min > -1e15 && (double)v < row->min)
        v = (int64_t)row->min + (v < 0 ? -(v + 1) : v) % 4;
    return row->max < 1e15 && (double)v > row->max ? (int64_t)row->max : v;
}

static double draw_real(const cnr_attr_spec *row, cnri_dice *dice) {
    static const double reals[] = {0, 1, 0.5, 2, -1, 0.1, 0.001, 3, -0.25, 6};
    double v = reals[cnri_dice_below(dice, (int64_t)CNRI_COUNT(reals))];
    if (cnri_dice_chance(dice, 30)) v = row->default_f * (v + 1);
    if (!(row->flags & CNR_ATTR_BOUNDED)) return v;
    return v < row->min ? row->min : v > row->max ? row->max : v;
}

/* Kernels, strides, dilations (1 or more) and pads: small numbers, the same on all axes or not. */
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

/* A permutation of the axes, some of them, sizes, or small numbers. */
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
        a->ints[k] = in_bounds(row, way < 2 ? a->ints[k] : likely(d, dice, hints));
}

const char *cnri_draft_string(const cnr_attr_spec *row, const cnri_draft_attr *a) {
    if (row->choices) return row->choices[a->i];
    return row->default_s ? row->default_s : "";
}

static void draw_attr(cnri_draft *d, int32_t i, cnri_dice *dice, const cnri_hints *hints) {
    static const int8_t types[] = {CNR_f32, CNR_f32, CNR_f32, CNR_f16, CNR_i32, CNR_i64, CNR_u8,
                                   CNR_i8, CNR_f64, CNR_bool};
    cnr_attr_spec room;
    const cnr_attr_spec *row = cnri_spec_at(d->op->attrs, d->op->attr_spec_size, i, &room);
    cnri_draft_attr *a = &d->attrs[i];
    int32_t choices = 0;
    const int32_t spatial = d->n_in > 0 && d->in[0].rank > 2 ? d->in[0].rank - 2 : -1;
    a->given = row->flags & CNR_ATTR_REQUIRED || cnri_dice_chance(dice, hints ? 80 : 45);
    a->n = 0;
    if (row->type == CNR_ATTR_INT) a->i = in_bounds(row, likely(d, dice, hints));
    else if (row->type == CNR_ATTR_BOOL) a->i = cnri_dice_below(dice, 2);
    else if (row->type == CNR_ATTR_FLOAT) a->f = draw_real(row, dice);
    else if (row->type == CNR_ATTR_DTYPE)
        a->i = types[cnri_dice_below(dice, CNRI_COUNT(types))];
    else if (row->type == CNR_ATTR_ENUM) {
        while (row->choices[choices]) choices++;
        a->i = cnri_dice_below(dice, choices);
    } else if (row->type == CNR_ATTR_FLOATS) {
        a->n = (int32_t)cnri_dice_below(dice, 5);
        for (int32_t k = 0; k < a->n; k++) a->floats[k] = 0.5 + draw_real(row, dice);
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

static int64_t elements_of(const cnri_draft_input *in) {
    int64_t n = 1;
    for (int32_t i = 0; i < in->rank; i++)
        if (__builtin_mul_overflow(n, in->dim[i], &n)) return INT64_MAX;
    return n;
}

static void draw_shape(cnri_draft_input *in, int64_t most, cnri_dice *dice) {
    static const int8_t ranks[] = {4, 4, 4, 4, 4, 3, 3, 2, 2, 2, 5, 1, 1, 0, 6};
    in->rank = ranks[cnri_dice_below(dice, CNRI_COUNT(ranks))];
    for (int32_t i = 0; i < in->rank; i++) {
        in->dim[i] = awkward(dice);
        if (i == 0 && in->rank > 2 && in->dim[i] > 4) in->dim[i] = 1 + in->dim[i] % 3;
    }
    if (in->rank > 0 && cnri_dice_chance(dice, 2)) in->dim[cnri_dice_below(dice, in->rank)] = 0;
    while (elements_of(in) > most) {
        int64_t *dim = &in->dim[cnri_dice_below(dice, in->rank)];
        *dim = (*dim + 1) / 2;
    }
}

static int32_t draw_dtype(cnri_dice *dice) {
    static const int8_t rare[] = {CNR_f16, CNR_f16, CNR_f64, CNR_bf16, CNR_i8, CNR_u8, CNR_i32,
                                  CNR_i64, CNR_bool, CNR_i16, CNR_u16, CNR_u32, CNR_u64};
    return cnri_dice_chance(dice, 72) ? CNR_f32 : rare[cnri_dice_below(dice, CNRI_COUNT(rare))];
}

/* A list that is data: a shape, axes, sizes. */
static void draw_list(const cnri_draft *d, cnri_draft_input *in, cnri_dice *dice) {
    const int32_t rank = d->in[0].rank;
    const bool axes = cnri_dice_chance(dice, 30);
    in->values = CNRI_VALUES_LIST;
    in->constant = true;
    in->variable = false;
    in->dtype = cnri_dice_chance(dice, 80) ? CNR_i64 : draw_dtype(dice);
    in->rank = cnri_dice_chance(dice, 85);
    in->dim[0] = cnri_dice_chance(dice, 60) ? rank : cnri_dice_below(dice, 2 * CNR_MAX_RANK);
    if (in->dim[0] > CNRI_CHECK_LIST) in->dim[0] = CNRI_CHECK_LIST;
    for (int32_t k = 0; k < CNRI_CHECK_LIST; k++)
        in->list[k] = axes                                     ? k
                      : cnri_dice_chance(dice, 25) && rank > 0 ? d->in[0].dim[k % rank]
                                                               : cnri_dice_below(dice, 5) - 1;
}

/* An input like the first one, in shape or in part. */
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
        in->dim[axis] = awkward(dice);
    } else { /* the last axes only */
        in->rank = x->rank - (int32_t)axis;
        for (int32_t i = 0; i < in->rank; i++) in->dim[i] = x->dim[i + axis];
    }
}

static cnri_values draw_values(cnri_dice *dice) {
    static const int8_t kinds[] = {CNRI_VALUES_SIGNED, CNRI_VALUES_SIGNED, CNRI_VALUES_SIGNED,
                                   CNRI_VALUES_SIGNED, CNRI_VALUES_SIGNED, CNRI_VALUES_WIDE,
                                   CNRI_VALUES_WIDE, CNRI_VALUES_POSITIVE, CNRI_VALUES_POSITIVE,
                                   CNRI_VALUES_SPARSE};
    if (cnri_dice_chance(dice, 4)) return CNRI_VALUES_MIDDLE;
    return (cnri_values)kinds[cnri_dice_below(dice, CNRI_COUNT(kinds))];
}

static void draw_input(cnri_draft *d, int32_t i, cnri_dice *dice) {
    cnr_port room;
    cnri_draft_input *in = &d->in[i];
    const cnr_port *port = cnri_check_port(d->op, i, &room);
    const bool weight = port->flags & CNR_PORT_PARAMETER;
    *in = (cnri_draft_input){.present = true, .made = weight && cnri_dice_chance(dice, 85)};
    in->values = draw_values(dice);
    in->dtype = i > 0 && cnri_dice_chance(dice, 85) ? d->in[0].dtype : draw_dtype(dice);
    in->constant = cnri_dice_chance(dice, weight || (d->constants && i > 0) ? 85 : 6);
    in->variable = in->constant && cnri_dice_chance(dice, 8);
    if (port->flags & CNR_PORT_OPTIONAL && !weight) in->present = cnri_dice_chance(dice, 50);
    if (i == 0 || cnri_dice_chance(dice, 12)) draw_shape(in, d->elements, dice);
    else draw_like(d, in, dice);
    if (port->flags & CNR_PORT_CONST) draw_list(d, in, dice);
    else if (i > 0 && !weight && cnri_dice_chance(dice, 8)) draw_list(d, in, dice);
}

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
        draw_attr(d, i, dice, NULL);
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
    for (int32_t i = 0; i < d->n_in; i++) draw_input(d, i, dice);
    cnri_draft_attrs(d, dice);
}

/* ---- changes ---- */

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool has_word(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; n > 0 && (at = strstr(at, word)); at++)
        if ((at == text || !is_word(at[-1])) && !is_word(at[n])) return true;
    return false;
}

/* "want 5 along axis 2": 5 behind "want"; -1: there is none. */
static int64_t number_behind(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n) {
        if (at[n] != ' ' || at[n + 1] < '0' || at[n + 1] > '9') continue;
        const long long v = strtoll(at + n + 1, NULL, 10);
        return v < 5000 ? v : -1;
    }
    return -1;
}

static bool letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The letters of a word go into the digest; "u8" is a type and says which. */
static void take_word(cnri_hints *h, const char *word, size_t n) {
    char name[8];
    int32_t type = CNR_DTYPE_NONE;
    size_t all = n;
    while (word[all] >= '0' && word[all] <= '9') all++;
    if (all < sizeof name && !letter(word[all])) {
        memcpy(name, word, all);
        name[all] = 0;
        type = cnr_dtype_of(name);
    }
    if (type && h->n_types < (int32_t)CNRI_COUNT(h->types)) h->types[h->n_types++] = type;
    for (size_t i = 0; i < n && !type; i++)
        h->text = (h->text ^ (uint8_t)word[i]) * 1099511628211u;
}

void cnri_hints_read(cnri_hints *h, const cnr_op *op, const char *text) {
    cnr_port room;
    *h = (cnri_hints){.text = 1469598103934665603u, .input = -1, .attr = -1,
                      .want = number_behind(text, "want"), .axis = number_behind(text, "axis"),
                      .rank = number_behind(text, "rank")};
    for (int32_t i = 0; i < op->n_attrs && i < CNRI_CHECK_ATTRS && h->attr < 0; i++) {
        cnr_attr_spec row;
        if (has_word(text, cnri_spec_at(op->attrs, op->attr_spec_size, i, &row)->name)) h->attr = i;
    }
    for (int32_t i = 0; i < op->n_inputs && h->input < 0; i++)
        if (has_word(text, cnri_check_port(op, i, &room)->name)) h->input = i;
    h->constant = has_word(text, "constant") || has_word(text, "constants");
    while (*text) {
        int64_t v = 0;
        const char *word = text;
        while (letter(*text)) text++;
        if (text > word) {
            take_word(h, word, (size_t)(text - word));
            continue;
        }
        if (*text < '0' || *text > '9') {
            h->text = (h->text ^ (uint8_t)*text++) * 1099511628211u;
            continue;
        }
        for (; *text >= '0' && *text <= '9'; text++)
            if (v < 100000) v = v * 10 + (*text - '0');
        if (h->n < (int32_t)CNRI_COUNT(h->at) && v < 5000) h->at[h->n++] = v;
    }
}

/* "dimensions 5 and 7 must be equal": one that is so long becomes as long as the other. */
static bool make_equal(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    if (hints->n < 2) return false;
    const int64_t k = cnri_dice_below(dice, 2);
    const int32_t from = (int32_t)cnri_dice_below(dice, d->n_in);
    for (int32_t i = 0; i < d->n_in; i++) {
        cnri_draft_input *in = &d->in[(from + i) % d->n_in];
        for (int32_t a = 0; a < in->rank; a++)
            if (in->dim[a] == hints->at[k] && elements_of(in) <= d->elements) {
                in->dim[a] = hints->at[1 - k];
                return true;
            }
    }
    return false;
}

/* Does to the letter what was asked for. */
static bool follow(cnri_draft_input *in, const cnri_hints *hints) {
    if (hints->rank >= 0 && hints->rank <= CNR_MAX_RANK) {
        for (int32_t i = in->rank; i < hints->rank; i++)
            if (in->dim[i] < 1) in->dim[i] = 1;
        in->rank = (int32_t)hints->rank;
    } else if (hints->want >= 0 && hints->axis >= 0 && hints->axis < in->rank)
        in->dim[hints->axis] = hints->want;
    else if (hints->want >= 0 && in->rank == 1) in->dim[0] = hints->want;
    else return false;
    return true;
}

/* "input dy: want 5 along axis 2": what it says, as far as it can be guessed. */
static bool repair(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    if (hints->input < 0) return make_equal(d, dice, hints);
    if (hints->input >= d->n_in) return false;
    cnri_draft_input *in = &d->in[hints->input];
    if (hints->constant && !in->constant) return in->constant = true;
    if (hints->n_types > 0 && (hints->n == 0 || cnri_dice_chance(dice, 60))) {
        const int32_t type = hints->types[cnri_dice_below(dice, hints->n_types)];
        in->dtype = type != in->dtype ? type : draw_dtype(dice);
        return true;
    }
    if (hints->n == 0) { /* its data, most likely */
        const bool middle = cnri_dice_chance(dice, 40);
        if (in->values == CNRI_VALUES_LIST) return false;
        in->values = middle ? CNRI_VALUES_MIDDLE : draw_values(dice);
        return true;
    }
    const int64_t a = hints->at[cnri_dice_below(dice, hints->n)];
    const int64_t b = hints->at[cnri_dice_below(dice, hints->n)];
    in->made = false;
    if (cnri_dice_chance(dice, 60) && follow(in, hints)) return true;
    if (cnri_dice_chance(dice, 25) && a <= CNR_MAX_RANK) in->rank = (int32_t)a;
    else if (b < in->rank && cnri_dice_chance(dice, 70)) in->dim[b] = a;
    else if (in->rank > 0) in->dim[cnri_dice_below(dice, in->rank)] = a;
    if (elements_of(in) > 4 * d->elements) in->rank = 1;
    return true;
}

static void change_dim(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    cnri_draft_input *in = &d->in[cnri_dice_below(dice, d->n_in)];
    const cnri_draft_input *from = &d->in[cnri_dice_below(dice, d->n_in)];
    if (in->rank == 0) return;
    int64_t *dim = &in->dim[cnri_dice_below(dice, in->rank)];
    const int64_t way = cnri_dice_below(dice, 4);
    if (way < 2 && hints->n) *dim = hints->at[cnri_dice_below(dice, hints->n)];
    else if (way == 2 && from->rank > 0) *dim = from->dim[cnri_dice_below(dice, from->rank)];
    else *dim = awkward(dice);
    if (elements_of(in) > 4 * d->elements) *dim = 1 + *dim % 3;
}

static void change_list(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    cnri_draft_input *in = &d->in[cnri_dice_below(dice, d->n_in)];
    if (in->values != CNRI_VALUES_LIST) return;
    const int64_t k = cnri_dice_below(dice, CNRI_CHECK_LIST);
    in->list[k] = likely(d, dice, hints);
}

static void leave_out(cnri_draft *d, int32_t attr) {
    cnr_attr_spec room;
    if (!(cnri_spec_at(d->op->attrs, d->op->attr_spec_size, attr, &room)->flags & CNR_ATTR_REQUIRED))
        d->attrs[attr].given = false;
}

/* Lists with a number for each spatial axis follow the first input's rank. */
static void fit_spatial(cnri_draft *d) {
    const int32_t spatial = d->n_in > 0 && d->in[0].rank > 2 ? d->in[0].rank - 2 : 1;
    for (int32_t i = 0; i < d->op->n_attrs && i < CNRI_CHECK_ATTRS; i++) {
        cnr_attr_spec room;
        cnri_draft_attr *a = &d->attrs[i];
        const cnr_attr_spec *row = cnri_spec_at(d->op->attrs, d->op->attr_spec_size, i, &room);
        if (!(row->flags & (CNR_ATTR_SPATIAL | CNR_ATTR_SPATIAL_PAIRS)) || a->n < 1) continue;
        const int32_t n = row->flags & CNR_ATTR_SPATIAL_PAIRS ? 2 * spatial : spatial;
        while (a->n < n && a->n < CNRI_CHECK_LIST) a->ints[a->n++] = a->ints[0];
        if (a->n > n) a->n = n;
    }
}

/* Much is asked only of what is known beforehand. */
static void make_constant(cnri_draft *d) {
    d->constants = true;
    for (int32_t i = 1; i < d->n_in; i++) d->in[i].constant = true;
}

static void change_shape(cnri_draft *d, cnri_dice *dice) {
    cnri_draft_input *in = &d->in[cnri_dice_below(dice, d->n_in)];
    const cnri_draft_input *from = &d->in[cnri_dice_below(dice, d->n_in)];
    const int64_t way = cnri_dice_below(dice, 4);
    if (way == 0) {
        in->rank = from->rank;
        memcpy(in->dim, from->dim, sizeof in->dim);
    } else if (way == 1) {
        in->rank = (int32_t)cnri_dice_below(dice, CNR_MAX_RANK);
        for (int32_t i = 0; i < in->rank; i++)
            if (in->dim[i] < 1) in->dim[i] = awkward(dice);
        while (elements_of(in) > 4 * d->elements && in->rank > 0) in->rank--;
    } else if (way == 2) {
        in->dtype = cnri_dice_chance(dice, 50) ? from->dtype : draw_dtype(dice);
    } else {
        in->present = true;
        in->made = false;
    }
}

static bool mutate(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    const int32_t n_attrs = d->op->n_attrs < CNRI_CHECK_ATTRS ? d->op->n_attrs : CNRI_CHECK_ATTRS;
    const int64_t way = cnri_dice_below(dice, 100);
    if (hints->attr >= 0 && cnri_dice_chance(dice, 30)) {
        draw_attr(d, hints->attr, dice, hints);
        if (cnri_dice_chance(dice, 30)) leave_out(d, hints->attr);
        return true;
    }
    if (cnri_dice_chance(dice, 40) && repair(d, dice, hints)) return true;
    if (d->n_in == 0 || (way < 30 && n_attrs > 0)) {
        if (n_attrs > 0) draw_attr(d, (int32_t)cnri_dice_below(dice, n_attrs), dice, hints);
    } else if (way < 34 && !d->constants) make_constant(d);
    else if (way < 62) change_dim(d, dice, hints);
    else if (way < 72) change_list(d, dice, hints);
    else if (way < 84) change_shape(d, dice);
    else if (way < 97) draw_input(d, (int32_t)cnri_dice_below(dice, d->n_in), dice);
    else {
        d->data_seed = cnri_dice_next(dice);
        d->chain_seed = cnri_dice_chance(dice, 60) ? cnri_dice_next(dice) | 1 : 0;
    }
    return false;
}

bool cnri_draft_mutate(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    const bool aimed = mutate(d, dice, hints);
    fit_spatial(d);
    return aimed;
}
