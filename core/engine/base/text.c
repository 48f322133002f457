/* Text: growing strings, JSON quoting, numbers that no locale touches, suggestions. */
#include "base/base.h"
#include <ctype.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- the C locale, for this thread and moment ---- */

static locale_t plain;
static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* Switches this thread to the locale "C". The program that embeds cnnrun may have set one that
 * writes 0,5. */
static locale_t enter_plain(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain);
    return plain ? uselocale(plain) : (locale_t)0;
}

/* Returns to the thread's locale from before enter_plain() */
static void leave_plain(locale_t before) {
    if (before) uselocale(before);
}

/* ---- numbers ---- */

/* First character at or after p that is no digit. */
static const char *skip_digits(const char *p) {
    while (*p >= '0' && *p <= '9') p++;
    return p;
}

/* The end of a decimal number, "inf" or "nan" at `text`, or NULL. */
static const char *number_end(const char *text) {
    const char *p = text, *start;
    if (*p == '+' || *p == '-') p++;
    if (strncasecmp(p, "inf", 3) == 0 || strncasecmp(p, "nan", 3) == 0) return p + 3;
    start = p;
    p = skip_digits(p);
    int digits = (int)(p != start);
    if (*p == '.') {
        start = p + 1;
        p = skip_digits(start);
        digits |= (int)(p != start);
        if (!digits) return NULL;
    }
    if (!digits) return NULL;
    if (*p == 'e' || *p == 'E') {
        const char *exponent = p + 1 + (p[1] == '+' || p[1] == '-');
        if (*exponent >= '0' && *exponent <= '9') p = skip_digits(exponent);
    }
    return p;
}

bool cnri_parse_double(const char *text, const char **end, double *out) {
    const char *stop = text ? number_end(text) : NULL;
    char *read;
    if (!stop) return false;
    const locale_t before = enter_plain();
    *out = strtod(text, &read);
    leave_plain(before);
    /* strtod accepts more than cnnrun does: it reads 0x10, which here is 0 followed by "x10".
     * "infinity" and "nan(1)" have the same value as their first three letters. */
    if (read != stop && stop[-1] == '0') *out = *text == '-' ? -0.0 : 0.0;
    if (end) *end = stop;
    else if (*stop) return false;
    return true;
}

/* Prints the number with the fewest digits from `minimum` to `maximum` that reads back as the same
 * value: as a float, or as a double. Returns the text's length. */
static int32_t print_shortest(char *buffer, size_t capacity, double value, int minimum, int maximum,
                              bool as_float) {
    if (isnan(value)) return snprintf(buffer, capacity, "nan");
    if (isinf(value)) return snprintf(buffer, capacity, value < 0 ? "-inf" : "inf");
    char text[40];
    int n = 0;
    const locale_t before = enter_plain();
    for (int digits = minimum; digits <= maximum; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, value);
        if (as_float ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) break;
    }
    leave_plain(before);
    snprintf(buffer, capacity, "%s", text);
    return n;
}

/* Prints the shortest text that reads back as the number. 15 digits print every double that was
 * written with 15; only subnormals hold fewer. */
int32_t cnri_print_double(char *buffer, size_t capacity, double value) {
    return print_shortest(buffer, capacity, value, fabs(value) < DBL_MIN ? 1 : 15, 17, false);
}

int32_t cnri_print_float(char *buffer, size_t capacity, float value) {
    return print_shortest(buffer, capacity, (double)value, fabsf(value) < FLT_MIN ? 1 : 6, 9, true);
}

/* Reads a decimal number, all of the text; false: it is none, or beyond int64 (*out stays). */
bool cnri_parse_int(const char *text, int64_t *out) {
    if (!text) return false;
    const bool negative = *text == '-';
    const char *p = text + (*text == '-' || *text == '+');
    int64_t value = 0;
    if (!*p) return false;
    for (; *p; p++) {
        if (*p < '0' || *p > '9') return false;
        const int digit = *p - '0';
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (negative ? __builtin_sub_overflow(value, digit, &value)
                     : __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *out = value;
    return true;
}

bool cnri_parse_seed(const char *text, uint64_t *out) {
    int64_t value;
    if (!cnri_parse_int(text, &value) || value < 0) return false;
    *out = (uint64_t)value;
    return true;
}

/* ---- suggestions ---- */

enum { LONGEST_WORD = 63 };

static int minimum(int a, int b) { return a < b ? a : b; }

/* Edit distance of n and m letters: insertions, deletions, replacements and swaps of neighbours
 * that turn a into b. Case is ignored. Both at most LONGEST_WORD long. */
static int edits(const char *a, int n, const char *b, int m) {
    int row[3][LONGEST_WORD + 1];
    for (int j = 0; j <= m; j++) row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3];
        const int *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            const int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            now[j] = minimum(minimum(last[j], now[j - 1]) + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]))
                now[j] = minimum(now[j], before[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

int32_t cnri_index_of(const void *rows, int32_t n, size_t bytes, const char *text) {
    for (int32_t i = 0; i < n; i++) {
        const char *const *row = (const void *)((const char *)rows + (size_t)i * bytes);
        if (*row && strcmp(*row, text) == 0) return i;
    }
    return -1;
}

bool cnri_is_listed(const char *const *list, const char *text) {
    for (; list && *list; list++)
        if (strcmp(*list, text) == 0) return true;
    return false;
}

const char *cnri_nearest_word(const char *word, const char *const *candidates, int32_t n) {
    const size_t length = word ? strlen(word) : 0;
    const char *best = NULL;
    int best_edits = 0;
    if (length == 0 || length > LONGEST_WORD) return NULL;
    for (int32_t i = 0; i < n; i++) {
        const size_t other = candidates[i] ? strlen(candidates[i]) : 0;
        if (other == 0 || other > LONGEST_WORD) continue;
        /* The dashes in front of an option say nothing about how alike two are. */
        const size_t dashes = word[0] == '-' ? strspn(candidates[i], "-") : 0;
        const int letters = (int)((length > other ? length : other) - dashes), limit = letters / 3;
        const int e = edits(word, (int)length, candidates[i], (int)other);
        if (e <= (limit > 1 ? limit : 1) && e < (int)length && (!best || e < best_edits)) {
            best = candidates[i];
            best_edits = e;
        }
    }
    return best;
}

/* ---- growing strings ---- */

/* Makes room for `more` bytes and an end mark; false: out of memory, or it failed before. */
static bool make_room(cnri_text *t, size_t more) {
    if (t->failed) return false;
    if (t->capacity - t->n > more) return true; /* one more byte for the end */
    size_t capacity = t->capacity ? t->capacity : 128;
    while (capacity - t->n <= more) {
        if (capacity > SIZE_MAX / 2) return !(t->failed = true);
        capacity *= 2;
    }
    char *larger = cnri_resize(t->at, capacity);
    if (!larger) return !(t->failed = true);
    t->at = larger;
    t->capacity = capacity;
    t->at[t->n] = 0;
    return true;
}

/* Appends formatted text in the C locale; t->failed: out of memory, or a bad format. */
static void addv(cnri_text *t, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    const locale_t before = enter_plain();
    const int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0) t->failed = true;
    else if (make_room(t, (size_t)n)) {
        vsnprintf(t->at + t->n, (size_t)n + 1, format, args);
        t->n += (size_t)n;
    }
    leave_plain(before);
}

void cnri_text_add(cnri_text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    addv(t, format, args);
    va_end(args);
}

void cnri_text_free(cnri_text *t) {
    cnri_free(t->at);
    *t = (cnri_text){0};
}

char *cnri_format(const char *format, ...) {
    cnri_text t = {0};
    va_list args;
    va_start(args, format);
    addv(&t, format, args);
    va_end(args);
    if (t.failed) cnri_text_free(&t);
    return t.at;
}

int cnri_utf8(const char *s, size_t n, uint32_t *code) {
    const unsigned char *u = (const unsigned char *)s;
    *code = n ? u[0] : 0;
    if (n == 0) return 0;
    if (u[0] < 0x80) return 1;
    if (u[0] < 0xc2 || u[0] > 0xf4) return 0;
    const int length = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    const unsigned low = u[0] == 0xe0 ? 0xa0 : u[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned high = u[0] == 0xed ? 0x9f : u[0] == 0xf4 ? 0x8f : 0xbf;
    if (n < (size_t)length || u[1] < low || u[1] > high) return 0;
    *code = u[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((u[i] & 0xc0) != 0x80) return 0;
        *code = *code << 6 | (u[i] & 0x3fu);
    }
    return length;
}

bool cnri_is_unprintable(uint32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) ||                          /* C0, DEL and C1 */
           c == 0x61c || c == 0x200e || c == 0x200f ||                     /* marks of direction */
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || /* lines, overrides */
           c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c < 0xe0080);
}

void cnri_text_bytes(cnri_text *t, const char *bytes, size_t n) {
    if (!make_room(t, n)) return;
    memcpy(t->at + t->n, bytes, n);
    t->n += n;
    t->at[t->n] = 0;
}

bool cnri_matches_pattern(const char *pattern, const char *text) {
    /* Position of the last star, and where its match ends so far. */
    const char *star = NULL, *after = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            after = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++after;
        } else return false;
    }
    return pattern[strspn(pattern, "*")] == 0;
}
