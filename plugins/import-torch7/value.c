/* Access to a tree of Lua values: fields, lists, tensors. */
#include "torch7.h"

/* bound on the length of a list of modules, so that a search is fast */
enum { MOST_ITEMS = 1 << 14 };

int t7_is(const t7_value *v, const char *text) {
    return v && v->text && v->n_text == strlen(text) && memcmp(v->text, text, v->n_text) == 0;
}

/* The table of a value or object; NULL: none. */
static const t7_value *table_of(const t7_value *v) {
    if (v && v->kind == T7_OBJECT) v = v->content;
    return v && v->kind == T7_TABLE ? v : NULL;
}

const t7_value *t7_field(const t7_value *v, const char *name) {
    v = table_of(v);
    for (int64_t i = 0; v && i < v->n; i++)
        if (v->pairs[2 * i]->kind == T7_STRING && t7_is(v->pairs[2 * i], name))
            return v->pairs[2 * i + 1]->kind == T7_NIL ? NULL : v->pairs[2 * i + 1];
    return NULL;
}

const t7_value *t7_item(const t7_value *v, int64_t index) {
    v = table_of(v);
    if (v && v->n > MOST_ITEMS) return NULL;
    /* starts at the expected place: lists are mostly in order */
    for (int64_t k = 0; v && k < v->n; k++) {
        const int64_t i = (k + index - 1) % v->n;
        const t7_value *key = v->pairs[2 * i];
        if (key->kind == T7_NUMBER && key->number == (double)index) return v->pairs[2 * i + 1];
    }
    return NULL;
}

double t7_number(const t7_value *v, const char *field, double fallback) {
    const t7_value *at = t7_field(v, field);
    return at && at->kind == T7_NUMBER ? at->number : fallback;
}

int64_t t7_int(const t7_value *v, const char *field, int64_t fallback) {
    const double number = t7_number(v, field, (double)fallback);
    return number > -1e9 && number < 1e9 ? (int64_t)number : fallback;
}

int t7_bool(const t7_value *v, const char *field, int fallback) {
    const t7_value *at = t7_field(v, field);
    return at && at->kind == T7_BOOLEAN ? at->number != 0 : fallback;
}

int t7_class(const t7_value *m, char *out, size_t room) {
    static const char *const packages[] = {"nn.", "cudnn.", "inn.", "fbnn."};
    if (!m || m->kind != T7_OBJECT || !m->text) return 0;
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; i++) {
        const size_t k = strlen(packages[i]);
        if (m->n_text <= k || m->n_text - k >= room || memcmp(m->text, packages[i], k)) continue;
        memcpy(out, m->text + k, m->n_text - k);
        out[m->n_text - k] = 0;
        return 1;
    }
    return 0;
}

/* ---- tensors ---- */

/* Element i of a storage as a number. */
static double element(const t7_value *storage, int64_t i) {
    const t7_element *e = storage->element;
    double v, room; /* aligned copy: elements may lie at any address */
    memcpy(&room, storage->data + i * e->bytes, (size_t)e->bytes);
    imp_host->elements_read(e->dtype, &room, 0, 1, 1, CNR_f64, &v);
    return v;
}

int64_t t7_count(const t7_value *t) {
    if (!t || t->kind != T7_TENSOR || !t->content) return -1;
    const t7_value *s = t->content;
    const int64_t room = s->kind == T7_STORAGE ? s->n : 0;
    const int64_t n = t->rank < 1 ? 0 : imp_count(t->dim, t->rank);
    int64_t last = t->n - 1; /* index of the last element that it refers to */
    if (n <= 0) return n;
    if (n > room || last < 0 || last >= room) return -1;
    for (int32_t i = 0; i < t->rank; i++) {
        const int64_t stride = t->dim[t->rank + i], steps = t->dim[i] - 1;
        if (stride < 0 || (steps && stride > (room - 1 - last) / steps)) return -1;
        last += stride * steps;
    }
    return n;
}

/* Writes all elements of a tensor, in order, to out. */
void t7_floats(const t7_value *t, float *out) {
    const int64_t n = t7_count(t), *stride = t->dim + t->rank;
    int64_t at[T7_MAX_DIMS] = {0}, from = t->n - 1;
    for (int64_t i = 0; i < n; i++) {
        out[i] = (float)element(t->content, from);
        for (int32_t a = t->rank - 1; a >= 0; a--) {
            from += stride[a];
            if (++at[a] < t->dim[a]) break;
            from -= stride[a] * t->dim[a];
            at[a] = 0;
        }
    }
}

/* Writes the integers of a torch.LongStorage, tensor or list to out, at most max; returns how many,
 * -1: it is none of these. */
int32_t t7_ints(const t7_value *v, int64_t *out, int32_t max) {
    int64_t n = -1;
    if (v && v->kind == T7_STORAGE && v->data) n = v->n;
    else if (v && v->kind == T7_TENSOR && v->rank == 1) n = t7_count(v);
    else if (table_of(v)) n = table_of(v)->n;
    if (n < 0 || n > max) return -1;
    for (int64_t i = 0; i < n; i++) {
        double number;
        if (v->kind == T7_STORAGE) {
            number = element(v, i);
        } else if (v->kind == T7_TENSOR) {
            number = element(v->content, v->n - 1 + i * v->dim[1]);
        } else {
            const t7_value *item = t7_item(v, i + 1);
            if (!item || item->kind != T7_NUMBER) return -1;
            number = item->number;
        }
        if (!(number > -1e15 && number < 1e15)) return -1;
        out[i] = (int64_t)number;
    }
    return (int32_t)n;
}
