/* Parses an array's header; converts its elements to numbers. */
#include "numpy.h"

#include <stdio.h>

int np_begins(const uint8_t *first, size_t *from) {
    *from = first[6] == 1 ? 10 : 12;
    return memcmp(first, "\x93NUMPY", 6) == 0 && first[6] >= 1 && first[6] <= 3;
}

/* ---- the Python literal ---- */

/* The head of an array, as text. */
typedef struct parser {
    const char *at, *end, *wrong;
} parser;

/* Notes what is wrong; returns 0. */
static int fail(parser *p, const char *wrong) {
    if (!p->wrong) p->wrong = wrong;
    return 0;
}

/* Next character that is no space; 0: the end. */
static char peek(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
    return p->at < p->end ? *p->at : 0;
}

/* Skips blanks, then takes the character c if it is next and returns 1. 0: another one is next, or
 * something was wrong before, and then nothing is skipped. */
static int take(parser *p, char c) {
    if (p->wrong || peek(p) != c) return 0;
    p->at++;
    return 1;
}

/* Reads 'text' or "text", without escapes: *out and *n, inside the head; 0: it is none. */
static int read_string(parser *p, const char **out, size_t *n) {
    const char quote = peek(p);
    if (quote != '\'' && quote != '"') return fail(p, "a text in quotes is wanted");
    *out = ++p->at;
    while (p->at < p->end && *p->at != quote && *p->at != '\\' && (unsigned char)*p->at >= ' ')
        p->at++;
    *n = (size_t)(p->at - *out);
    return take(p, quote) || fail(p, "a text does not end");
}

/* Takes a word if it is next; 0: it is not. */
static int read_word(parser *p, const char *word) {
    const size_t n = strlen(word);
    peek(p);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return 0;
    p->at += n;
    return 1;
}

/* Reads a whole number from 0 on into *out; 0: it is none. */
static int read_size(parser *p, int64_t *out) {
    if (peek(p) < '0' || *p->at > '9') return fail(p, "its shape holds something else than sizes");
    for (*out = 0; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *p->at - '0', out))
            return fail(p, "its shape is too large");
    if (p->at < p->end && *p->at == 'L') p->at++; /* Python 2 wrote 10L */
    return 1;
}

/* Reads (), (3,) or (3, 4) into h; a single size needs its comma. 0: malformed. */
static int read_shape(parser *p, np_head *h) {
    int comma = 1;
    if (!take(p, '(')) return fail(p, "its shape is no tuple");
    while (peek(p) != ')') {
        if (!comma) return fail(p, "its shape is no tuple");
        if (h->rank == CNR_MAX_RANK) return fail(p, "it has more than 8 axes");
        if (!read_size(p, &h->dim[h->rank++])) return 0;
        comma = take(p, ',');
    }
    return take(p, ')') && (h->rank != 1 || comma || fail(p, "its shape is no tuple"));
}

/* What NumPy's kind of type is, for messages, if it is not a number; NULL: it is. */
static const char *strange(char kind) {
    switch (kind) {
    case 'O': return "Python objects";
    case 'U':
    case 'S':
    case 'a': return "texts";
    case 'V': return "structures or raw bytes";
    case 'c': return "complex numbers";
    case 'M':
    case 'm': return "dates";
    default: return "an unknown type";
    }
}

/* Reads the element type; 0: it is none, and why receives the text for one that is not supported.
 */
static int read_type(parser *p, np_head *h, char why[200]) {
    static const struct {
        char name[3];
        int32_t dtype;
    } known[] = {{"f2", CNR_f16}, {"f4", CNR_f32}, {"f8", CNR_f64}, {"i1", CNR_i8},
                 {"i2", CNR_i16}, {"i4", CNR_i32}, {"i8", CNR_i64}, {"u1", CNR_u8},
                 {"u2", CNR_u16}, {"u4", CNR_u32}, {"u8", CNR_u64}, {"b1", CNR_bool}};
    static const char wanted[] = "want f2, f4, f8, i1 to i8, u1 to u8 or b1";
    const char *text;
    size_t n;
    if (peek(p) == '[' || peek(p) == '(') {
        snprintf(why, 200, "its elements are structures (several fields each); %s", wanted);
        return fail(p, why);
    }
    if (!read_string(p, &text, &n)) return 0;
    const int order = n > 0 && strchr("<>=|", text[0]) != NULL;
    for (int32_t i = 0; i < CNR_ROWS(known); i++)
        if (n - (size_t)order == 2 && memcmp(text + order, known[i].name, 2) == 0)
            h->dtype = known[i].dtype;
    if (!h->dtype) {
        const char kind = n > (size_t)order ? text[order] : 0;
        const int number = kind && strchr("fiu", kind) != NULL;
        snprintf(why, 200, "its elements are '%.*s' (%s); %s", n < 40 ? (int)n : 40, text,
                 number ? "numbers of another size" : strange(kind), wanted);
        return fail(p, why);
    }
    h->width = text[order + 1] - '0';
    h->swapped = text[0] == '>' && h->width > 1;
    return 1;
}

/* Reads the dictionary with type, order and shape. 0: failed. */
static int read_fields(parser *p, np_head *h, char why[200]) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    int seen = 0, comma = 1;
    if (!take(p, '{')) return fail(p, "its head is no dictionary");
    while (peek(p) != '}') {
        const char *key;
        size_t n;
        int which = 0;
        if (!comma) return fail(p, "a comma is missing in its head");
        if (!read_string(p, &key, &n)) return 0;
        while (which < 3 && (strlen(keys[which]) != n || memcmp(keys[which], key, n) != 0)) which++;
        if (which == 3 || seen & 1 << which) return fail(p, "its head has an odd or a second key");
        if (!take(p, ':')) return fail(p, "a colon is missing in its head");
        seen |= 1 << which;
        if (which == 0 && !read_type(p, h, why)) return 0;
        if (which == 1 && !(h->fortran = read_word(p, "True")) && !read_word(p, "False"))
            return fail(p, "fortran_order is neither True nor False");
        if (which == 2 && !read_shape(p, h)) return 0;
        comma = take(p, ',');
    }
    if (seen != 7) return fail(p, "its head lacks descr, fortran_order or shape");
    return take(p, '}') && (peek(p) == 0 && p->at == p->end ? 1 : fail(p, "text behind its head"));
}

const char *np_read_head(const char *text, size_t n, np_head *out, char why[200]) {
    parser p = {.at = text, .end = text + n};
    memset(out, 0, sizeof *out);
    if (!read_fields(&p, out, why)) return p.wrong ? p.wrong : "its head ends early";
    out->count = imp_count(out->dim, out->rank);
    if (out->count < 0 || out->count > (int64_t)1 << 56) return "its shape is too large";
    return NULL;
}

/* ---- elements ---- */

double np_element(const np_head *h, const void *data, int64_t i) {
    const uint8_t *from = (const uint8_t *)data + i * h->width;
    union {
        uint8_t at[8];
        double aligned;
    } stored;
    double v;
    for (int32_t k = 0; k < h->width; k++) stored.at[k] = from[h->swapped ? h->width - 1 - k : k];
    imp_host->elements_read(h->dtype, &stored, 0, 1, 1, CNR_f64, &v);
    return h->dtype == CNR_bool ? v != 0 : v;
}
