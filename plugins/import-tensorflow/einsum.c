/* Converts Einsum of two operands to a matrix product: both are brought into the form batch, rows,
 * columns. */
#include "job.h"

enum { MOST = CNR_MAX_RANK };

/* The axes of an operand or of the result: letters, and '0', '1' ... for those of an ellipsis. */
typedef struct term {
    char letter[MOST];
    int32_t n;
    int64_t d[MOST];
} term;

/* Reads a term up to a comma, an arrow or the end, and returns the place behind; an ellipsis stands
 * for the axes of `rank` left over (rank -1: `elided`). NULL: not supported. */
static const char *read_term(const char *at, int32_t rank, int32_t elided, term *out) {
    int32_t named = 0;
    for (const char *c = at; *c && *c != ',' && *c != '-'; c++) named += *c != '.' && *c != ' ';
    if (rank >= 0) elided = rank - named;
    out->n = 0;
    for (; *at && *at != ',' && *at != '-'; at++) {
        if (*at == ' ') continue;
        const int dots = strncmp(at, "...", 3) == 0;
        for (int32_t i = 0; i < (dots ? elided : 1); i++) {
            const char letter = dots ? (char)('0' + i) : *at;
            if (out->n == MOST || memchr(out->letter, letter, (size_t)out->n)) return NULL;
            out->letter[out->n++] = letter;
        }
        if (dots) at += 2;
    }
    return rank >= 0 && out->n != rank ? NULL : at;
}

/* 1 if a term has the letter. */
static int has(const term *t, char letter) {
    return memchr(t->letter, letter, (size_t)t->n) != NULL;
}

/* Copies the letters of t that are in `a` and not in `b` to out; in_both: those in both. Returns
 * how many. */
static int32_t pick(const term *t, const term *a, const term *b, int in_both, char *out) {
    int32_t n = 0;
    for (int32_t i = 0; i < t->n; i++)
        if (has(a, t->letter[i]) && has(b, t->letter[i]) == in_both) out[n++] = t->letter[i];
    return n;
}

/* Adds a transpose of an operand to the given order of n letters, if it differs. */
static cnr_value ordered(tf_job *j, cnr_value x, const term *t, const char *letters, int32_t n) {
    int64_t perm[MOST] = {0};
    imp_attrs l = {.n = 0};
    int moved = 0;
    for (int32_t i = 0; i < n; i++) {
        perm[i] = (const char *)memchr(t->letter, letters[i], (size_t)t->n) - t->letter;
        moved |= perm[i] != i;
    }
    imp_ints(&l, "perm", perm, n);
    return moved ? tf_step(j, "transpose", &x, 1, &l) : x;
}

/* The product of the sizes of some letters; -1: one is open. */
static int64_t length(const term *t, const char *letters, int32_t n) {
    int64_t product = 1;
    for (int32_t i = 0; i < n; i++) {
        const int64_t d =
            t->d[(const char *)memchr(t->letter, letters[i], (size_t)t->n) - t->letter];
        if (d < 1 || product > INT32_MAX / d) return -1;
        product *= d;
    }
    return product;
}

/* Adds a reshape to the first `batch` axes unchanged, then n `others`, of which one may be open. */
static cnr_value shaped(tf_job *j, cnr_value x, int32_t batch, const int64_t *others, int32_t n) {
    int64_t shape[2 * MOST];
    int open = 0;
    for (int32_t i = 0; i < batch; i++) shape[i] = 0; /* 0 copies the axis */
    for (int32_t i = 0; i < n; i++) open += (shape[batch + i] = others[i]) < 0;
    if (open > 1 || batch + n > MOST)
        return tf_problem(j, "too many sizes of its inputs are open, or axes"), -1;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "shape", shape, batch + n);
    return tf_step(j, "reshape", &x, 1, &l);
}

/* Reads the node's equation, "ij,jk->ik"; 0: it is not supported. */
static int read_equation(tf_job *j, term *a, term *b, term *out) {
    const Tf__AttrValue *e = tf_attr(j, "equation");
    char text[64];
    if (!e || !e->has_s || e->s.len >= sizeof text || j->n_in != 2) return 0;
    memcpy(text, e->s.data, e->s.len);
    text[e->s.len] = 0;
    const int32_t ra = tf_in_dims(j, 0, a->d), rb = tf_in_dims(j, 1, b->d);
    if (ra < 0 || rb < 0) return 0;
    const char *at = read_term(text, ra, 0, a);
    if (!at || *at != ',') return 0;
    at = read_term(at + 1, rb, 0, b);
    if (!at || strncmp(at, "->", 2) != 0) return 0;
    int32_t elided = 0;
    for (int32_t i = 0; i < a->n + b->n; i++) {
        const char c = i < a->n ? a->letter[i] : b->letter[i - a->n];
        if (c >= '0' && c <= '9' && c - '0' >= elided) elided = c - '0' + 1;
    }
    at = read_term(at + 2, -1, elided, out);
    for (int32_t i = 0; at && i < out->n; i++)
        if (!has(a, out->letter[i]) && !has(b, out->letter[i])) return 0;
    return at != NULL && *at == 0;
}

void tf_op_einsum(tf_job *j) {
    term a, b, out;
    char batch[MOST], rows[MOST], columns[MOST], inner[MOST], order[2 * MOST];
    if (!read_equation(j, &a, &b, &out))
        return tf_problem(j, "only two operands without repeated letters are supported");
    const int32_t n_batch = pick(&out, &a, &b, 1, batch), n_rows = pick(&out, &a, &b, 0, rows),
                  n_columns = pick(&out, &b, &a, 0, columns);
    int32_t n_inner = 0;
    for (int32_t i = 0; i < a.n; i++)
        if (has(&b, a.letter[i]) && !has(&out, a.letter[i])) inner[n_inner++] = a.letter[i];
    if (n_batch + n_rows + n_inner != a.n || n_batch + n_columns + n_inner != b.n ||
        n_batch + n_rows + n_columns > MOST)
        return tf_problem(j, "letters of one operand alone that are summed are not supported");
    const int64_t left[] = {length(&a, rows, n_rows), length(&a, inner, n_inner)};
    const int64_t right[] = {length(&b, inner, n_inner), length(&b, columns, n_columns)};

    memcpy(order, batch, (size_t)n_batch);
    memcpy(order + n_batch, rows, (size_t)n_rows);
    memcpy(order + n_batch + n_rows, inner, (size_t)n_inner);
    cnr_value x = ordered(j, tf_in_plain(j, 0), &a, order, a.n);
    memcpy(order + n_batch, inner, (size_t)n_inner);
    memcpy(order + n_batch + n_inner, columns, (size_t)n_columns);
    cnr_value y = ordered(j, tf_in_plain(j, 1), &b, order, b.n);
    x = shaped(j, x, n_batch, left, 2);
    y = shaped(j, y, n_batch, right, 2);
    if (j->entry->failed) return;
    x = tf_last(j, "matmul", (cnr_value[]){x, y}, 2, NULL);

    term made = {.n = n_batch + n_rows + n_columns};
    int64_t lengths[2 * MOST];
    memcpy(made.letter, batch, (size_t)n_batch);
    for (int32_t i = 0; i < n_rows; i++) {
        made.letter[n_batch + i] = rows[i];
        lengths[i] = length(&a, &rows[i], 1);
    }
    for (int32_t i = 0; i < n_columns; i++) {
        made.letter[n_batch + n_rows + i] = columns[i];
        lengths[n_rows + i] = length(&b, &columns[i], 1);
    }
    x = shaped(j, x, n_batch, lengths, n_rows + n_columns);
    tf_give(j, 0, ordered(j, x, &made, out.letter, out.n));
}
