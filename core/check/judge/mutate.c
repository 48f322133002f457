/* Changes drafts a little, guided by what the last refusal named. */
#include "judge/draft.h"
#include <stdlib.h>

/* ---- what a refusal named ---- */

/* True for letters, digits and _. */
static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* True if the text contains the whole word. */
static bool has_word(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; n > 0 && (at = strstr(at, word)); at++)
        if ((at == text || !is_word(at[-1])) && !is_word(at[n])) return true;
    return false;
}

/* The number behind `word`: 5 for "want" in "want 5 along axis 2". -1: there is none, or it is
 * at least 5000. */
static int64_t number_after(const char *text, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)); at += n) {
        if (at[n] != ' ' || at[n + 1] < '0' || at[n + 1] > '9') continue;
        const long long v = strtoll(at + n + 1, NULL, 10);
        return v < 5000 ? v : -1;
    }
    return -1;
}

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

/* Adds the letters of a word to the digest; a word such as "u8" names a type. */
static void take_word(cnri_hints *h, const char *word, size_t n) {
    char name[8];
    int32_t type = CNR_DTYPE_NONE;
    size_t all = n;
    while (word[all] >= '0' && word[all] <= '9') all++;
    if (all < sizeof name && !letter(word[all])) {
        memcpy(name, word, all);
        name[all] = 0;
        type = cnri_dtype_of(name);
    }
    if (type && h->n_types < (int32_t)CNRI_COUNT(h->types)) h->types[h->n_types++] = type;
    for (size_t i = 0; i < n && !type; i++) h->text = (h->text ^ (uint8_t)word[i]) * 1099511628211u;
}

void cnri_hints_read(cnri_hints *h, const cnr_op *op, const char *text) {
    cnr_port room;
    *h = (cnri_hints){.text = 1469598103934665603u,
                      .input = -1,
                      .attr = -1,
                      .want = number_after(text, "want"),
                      .axis = number_after(text, "axis"),
                      .rank = number_after(text, "rank")};
    for (int32_t i = 0; i < op->n_attrs && i < CNRI_CHECK_ATTRS; i++) {
        cnr_attr_spec row;
        const char *name = cnri_spec_at(op->attrs, op->attr_spec_size, i, &row)->name;
        if (!has_word(text, name)) continue;
        h->attrs |= (uint64_t)1 << i;
        if (h->attr < 0) h->attr = i;
    }
    for (int32_t i = 0; i < op->n_inputs && i < CNRI_CHECK_PORTS; i++) {
        if (!has_word(text, cnri_check_port(op, i, &room)->name)) continue;
        h->inputs |= (uint64_t)1 << i;
        if (h->input < 0) h->input = i;
    }
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

/* ---- what it asks for ---- */

/* Handles "dimensions 5 and 7 must be equal": a dimension of one size gets the other size. False:
 * no input has one. */
static bool make_equal(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    if (hints->n < 2) return false;
    const int64_t k = cnri_dice_below(dice, 2);
    const int32_t from = (int32_t)cnri_dice_below(dice, d->n_in);
    for (int32_t i = 0; i < d->n_in; i++) {
        cnri_draft_input *in = &d->in[(from + i) % d->n_in];
        for (int32_t a = 0; a < in->rank; a++)
            if (in->dim[a] == hints->at[k] && cnri_draft_elements(in) <= d->elements) {
                in->dim[a] = hints->at[1 - k];
                return true;
            }
    }
    return false;
}

/* Does exactly what the refusal asks for. False: it failed. */
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

/* Handles "input dy: want 5 along axis 2": changes the input as the text suggests. False: it
 * failed. */
static bool repair(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    if (hints->input < 0) return make_equal(d, dice, hints);
    if (hints->input >= d->n_in) return false;
    cnri_draft_input *in = &d->in[hints->input];
    if (hints->constant && !in->constant) return in->constant = true;
    if (hints->n_types > 0 && (hints->n == 0 || cnri_dice_chance(dice, 60))) {
        const int32_t type = hints->types[cnri_dice_below(dice, hints->n_types)];
        in->dtype = type != in->dtype ? type : cnri_draw_dtype(dice);
        return true;
    }
    if (hints->n == 0) { /* its data, most likely */
        const bool middle = cnri_dice_chance(dice, 40);
        if (in->values == CNRI_VALUES_LIST) return false;
        in->values = middle ? CNRI_VALUES_MIDDLE : cnri_draw_values(dice);
        return true;
    }
    const int64_t a = hints->at[cnri_dice_below(dice, hints->n)];
    const int64_t b = hints->at[cnri_dice_below(dice, hints->n)];
    in->made = false;
    if (cnri_dice_chance(dice, 60) && follow(in, hints)) return true;
    if (cnri_dice_chance(dice, 25) && a <= CNR_MAX_RANK) in->rank = (int32_t)a;
    else if (b < in->rank && cnri_dice_chance(dice, 70)) in->dim[b] = a;
    else if (in->rank > 0) in->dim[cnri_dice_below(dice, in->rank)] = a;
    if (cnri_draft_elements(in) > 4 * d->elements) in->rank = 1;
    return true;
}

/* ---- changes of any kind ---- */

/* Changes one random size of one input in place, mostly to a number that the refusal named. */
static void change_dim(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    cnri_draft_input *in = &d->in[cnri_dice_below(dice, d->n_in)];
    const cnri_draft_input *from = &d->in[cnri_dice_below(dice, d->n_in)];
    if (in->rank == 0) return;
    int64_t *dim = &in->dim[cnri_dice_below(dice, in->rank)];
    const int64_t way = cnri_dice_below(dice, 4);
    if (way < 2 && hints->n) *dim = hints->at[cnri_dice_below(dice, hints->n)];
    else if (way == 2 && from->rank > 0) *dim = from->dim[cnri_dice_below(dice, from->rank)];
    else *dim = cnri_draw_size(dice);
    if (cnri_draft_elements(in) > 4 * d->elements) *dim = 1 + *dim % 3;
}

/* Changes one number of a list input in place; another input: nothing. */
static void change_list(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    cnri_draft_input *in = &d->in[cnri_dice_below(dice, d->n_in)];
    if (in->values != CNRI_VALUES_LIST) return;
    const int64_t k = cnri_dice_below(dice, CNRI_CHECK_LIST);
    in->list[k] = cnri_draw_likely(d, dice, hints);
}

/* Leaves an attribute out, unless it is required. */
static void leave_out(cnri_draft *d, int32_t attr) {
    cnr_attr_spec room;
    if (!(cnri_spec_at(d->op->attrs, d->op->attr_spec_size, attr, &room)->flags &
          CNR_ATTR_REQUIRED))
        d->attrs[attr].given = false;
}

/* Handles "either a or b": keeps one of the named ones at random and removes the others; false:
 * fewer than two are named. */
static bool keep_one(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    cnr_port room;
    const int32_t named = __builtin_popcountll(hints->attrs) + __builtin_popcountll(hints->inputs);
    if (named < 2) return false;
    int64_t left = cnri_dice_below(dice, named); /* until the one that stays */
    for (int32_t i = 0; i < CNRI_CHECK_ATTRS; i++) {
        if (!(hints->attrs >> i & 1)) continue;
        if (left-- == 0) d->attrs[i].given = true;
        else leave_out(d, i);
    }
    for (int32_t i = 0; i < d->n_in; i++) {
        if (!(hints->inputs >> i & 1)) continue;
        if (left-- == 0) d->in[i].present = true;
        else if (cnri_check_port(d->op, i, &room)->flags & CNR_PORT_OPTIONAL)
            d->in[i].present = false;
    }
    return true;
}

/* Replaces the size `was` by `to` wherever it occurs, in attributes and inputs. */
static void replace_size(cnri_draft *d, int64_t was, int64_t to) {
    cnr_attr_spec room;
    for (int32_t i = 0; i < d->op->n_attrs && i < CNRI_CHECK_ATTRS; i++)
        if (cnri_spec_at(d->op->attrs, d->op->attr_spec_size, i, &room)->type == CNR_ATTR_INT &&
            d->attrs[i].i == was)
            d->attrs[i].i = to;
    for (int32_t i = 0; i < d->n_in; i++)
        for (int32_t a = 0; a < d->in[i].rank; a++)
            if (d->in[i].dim[a] == was) d->in[i].dim[a] = to;
}

/* Rounds a size, mostly of channels, up to a multiple that kernels like, wherever it occurs, so
 * that what fitted still does. */
static void align(cnri_draft *d, cnri_dice *dice) {
    static const int8_t steps[] = {4, 8, 16, 16, 32};
    cnr_attr_spec room;
    const int64_t step = steps[cnri_dice_below(dice, CNRI_COUNT(steps))];
    const cnri_draft_input *in = &d->in[cnri_dice_below(dice, d->n_in)];
    const int32_t most = d->op->n_attrs < CNRI_CHECK_ATTRS ? d->op->n_attrs : CNRI_CHECK_ATTRS;
    const int32_t attr = (int32_t)cnri_dice_below(dice, most);
    int64_t was = in->rank > 0 ? in->dim[cnri_dice_below(dice, in->rank)] : 0;
    if (in->rank > 1 && cnri_dice_chance(dice, 70)) was = in->dim[1];
    if (most > 0 && d->attrs[attr].given && cnri_dice_chance(dice, 40) &&
        cnri_spec_at(d->op->attrs, d->op->attr_spec_size, attr, &room)->type == CNR_ATTR_INT)
        was = d->attrs[attr].i;
    if (was > 1) replace_size(d, was, cnr_round_up(was, step)); /* 1 broadcasts */
}

/* Adapts lists with a number for each spatial axis to the first input's rank. */
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

/* Makes an input constant, because some nodes are possible only with inputs known in advance. */
static void make_constant(cnri_draft *d) {
    d->constants = true;
    for (int32_t i = 1; i < d->n_in; i++) d->in[i].constant = true;
}

/* Changes rank and sizes of one random input in place. */
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
            if (in->dim[i] < 1) in->dim[i] = cnri_draw_size(dice);
        while (cnri_draft_elements(in) > 4 * d->elements && in->rank > 0) in->rank--;
    } else if (way == 2) {
        in->dtype = cnri_dice_chance(dice, 50) ? from->dtype : cnri_draw_dtype(dice);
    } else {
        in->present = true;
        in->made = false;
    }
}

/* Changes a draft in some way, led by the hints of a refusal. False: it failed. */
static bool mutate(cnri_draft *d, cnri_dice *dice, const cnri_hints *hints) {
    const int32_t n_attrs = d->op->n_attrs < CNRI_CHECK_ATTRS ? d->op->n_attrs : CNRI_CHECK_ATTRS;
    const int64_t way = cnri_dice_below(dice, 100);
    if (hints->attr >= 0 && cnri_dice_chance(dice, 30)) {
        cnri_draw_attr(d, hints->attr, dice, hints);
        if (cnri_dice_chance(dice, 30)) leave_out(d, hints->attr);
        return true;
    }
    if (cnri_dice_chance(dice, 10) && keep_one(d, dice, hints)) return true;
    if (cnri_dice_chance(dice, 40) && repair(d, dice, hints)) return true;
    if (hints->taken && d->n_in > 0 && cnri_dice_chance(dice, 15)) align(d, dice);
    else if (d->n_in == 0 || (way < 30 && n_attrs > 0)) {
        const int32_t attr = (int32_t)cnri_dice_below(dice, n_attrs);
        if (n_attrs > 0 && way < 6) leave_out(d, attr);
        else if (n_attrs > 0) cnri_draw_attr(d, attr, dice, hints);
    } else if (way < 34 && !d->constants) make_constant(d);
    else if (way < 54) change_dim(d, dice, hints);
    else if (way < 62) align(d, dice);
    else if (way < 72) change_list(d, dice, hints);
    else if (way < 84) change_shape(d, dice);
    else if (way < 97) cnri_draw_input(d, (int32_t)cnri_dice_below(dice, d->n_in), dice);
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
