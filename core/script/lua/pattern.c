/* Matches Lua's patterns by backtracking. Every step is charged to the script's budget, because
 * one find with a few stars could run for hours within a single instruction. */
#include "lua/pattern.h"
#include <ctype.h>
#include <string.h>

static const char *match(cnri_match *m, const char *s, const char *p);

/* ---- one character ---- */

/* The end, behind it, of the single item "x", ".", "%a" or "[...]" that begins at p; raises an
 * error if it is malformed. */
static const char *item_end(const cnri_match *m, const char *p) {
    const char c = *p++;
    if (c == '%') {
        if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (ends with '%%')");
        return p + 1;
    }
    if (c != '[') return p;
    if (p < m->pattern_end && *p == '^') p++;
    for (bool first = true;; first = false) { /* a ']' that comes first stands for itself */
        if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (missing ']')");
        if (*p == ']' && !first) return p + 1;
        if (*p == '%' && p + 1 < m->pattern_end) p++;
        p++;
    }
}

/* True if a character belongs to a class such as %a; upper case: if not. */
static bool in_class(int c, int class) {
    bool in;
    switch (tolower(class)) {
    case 'a': in = isalpha(c); break;
    case 'c': in = iscntrl(c); break;
    case 'd': in = isdigit(c); break;
    case 'g': in = isgraph(c); break;
    case 'l': in = islower(c); break;
    case 'p': in = ispunct(c); break;
    case 's': in = isspace(c); break;
    case 'u': in = isupper(c); break;
    case 'w': in = isalnum(c); break;
    case 'x': in = isxdigit(c); break;
    default: return class == c;
    }
    return isupper(class) ? !in : in;
}

/* True if c is in a set; p is behind the '[', end at the ']'. */
static bool in_set(int c, const char *p, const char *end) {
    const bool wanted = *p != '^';
    if (!wanted) p++;
    while (p < end) {
        if (*p == '%' && p + 1 < end) {
            if (in_class(c, (unsigned char)p[1])) return wanted;
            p += 2;
        } else if (p + 2 < end && p[1] == '-') {
            if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2]) return wanted;
            p += 3;
        } else if ((unsigned char)*p++ == c) return wanted;
    }
    return !wanted;
}

/* True if the character at s fits one item of the pattern. */
static bool matches_one(const cnri_match *m, const char *s, const char *p, const char *end) {
    if (s >= m->text_end) return false;
    const int c = (unsigned char)*s;
    switch (*p) {
    case '.': return true;
    case '%': return in_class(c, (unsigned char)p[1]);
    case '[': cnri_script_charge(m->L, (end - p) / 8); return in_set(c, p + 1, end - 1);
    default: return (unsigned char)*p == c;
    }
}

/* ---- repetition ---- */

/* Matches an item as often as possible, then the rest; returns the end, NULL: no match. */
static const char *match_longest(cnri_match *m, const char *s, const char *p, const char *end,
                                 ptrdiff_t minimum) {
    ptrdiff_t n = 0;
    while (matches_one(m, s + n, p, end)) n++;
    cnri_script_charge(m->L, n / 4);
    for (; n >= minimum; n--) {
        const char *e = match(m, s + n, end + 1);
        if (e) return e;
    }
    return NULL;
}

/* Matches an item as seldom as possible from s on, then the rest; returns the match's end, NULL:
 * none. */
static const char *match_shortest(cnri_match *m, const char *s, const char *p, const char *end) {
    for (;; s++) {
        const char *e = match(m, s, end + 1);
        if (e) return e;
        if (!matches_one(m, s, p, end)) return NULL;
    }
}

/* ---- captures, %b, %f ---- */

/* Begins a capture at s and matches the rest; returns the match's end, NULL: none, and the capture
 * is dropped. */
static const char *open_capture(cnri_match *m, const char *s, const char *p) {
    if (m->n == CNRI_CAPTURES) luaL_error(m->L, "too many captures in a pattern");
    const bool position = p + 1 < m->pattern_end && p[1] == ')';
    m->captures[m->n++] = (cnri_capture){s, position ? CNRI_CAPTURE_POSITION : CNRI_CAPTURE_OPEN};
    const char *e = match(m, s, p + (position ? 2 : 1));
    if (!e) m->n--;
    return e;
}

/* Ends the innermost open capture at s and matches the rest; returns the match's end, NULL: none,
 * and it is open again. */
static const char *close_capture(cnri_match *m, const char *s, const char *p) {
    int i = m->n - 1;
    while (i >= 0 && m->captures[i].n != CNRI_CAPTURE_OPEN) i--;
    if (i < 0) luaL_error(m->L, "malformed pattern (')' without '(')");
    m->captures[i].n = s - m->captures[i].at;
    const char *e = match(m, s, p + 1);
    if (!e) m->captures[i].n = CNRI_CAPTURE_OPEN;
    return e;
}

/* %1: matches the text of an earlier capture again. */
static const char *skip_same(cnri_match *m, const char *s, int digit) {
    const int i = digit - '1';
    if (i < 0 || i >= m->n || m->captures[i].n == CNRI_CAPTURE_OPEN)
        luaL_error(m->L, "no finished capture %%%c in a pattern", digit);
    const ptrdiff_t n = m->captures[i].n; /* that of a position matches nothing */
    cnri_script_charge(m->L, n / 16);
    if (n < 0 || m->text_end - s < n || memcmp(s, m->captures[i].at, (size_t)n) != 0) return NULL;
    return s + n;
}

/* %bxy: returns the place behind the y that balances the x at s; NULL: there is none. */
static const char *skip_balanced(cnri_match *m, const char *s, const char *p) {
    if (m->pattern_end - p < 2) luaL_error(m->L, "malformed pattern (%%b wants two characters)");
    if (s >= m->text_end || *s != p[0]) return NULL;
    cnri_script_charge(m->L, (m->text_end - s) / 8);
    int64_t open = 1;
    for (const char *q = s + 1; q < m->text_end; q++) {
        if (*q == p[1] && --open == 0) return q + 1;
        if (*q == p[0] && p[0] != p[1]) open++;
    }
    return NULL;
}

/* %f[set]: true if the character before s is not in the set, and the one at s is. p is at the
 * '['. */
static bool at_frontier(const cnri_match *m, const char *s, const char *p, const char *end) {
    const int before = s == m->text ? 0 : (unsigned char)s[-1];
    const int at = s >= m->text_end ? 0 : (unsigned char)*s;
    return !in_set(before, p + 1, end - 1) && in_set(at, p + 1, end - 1);
}

/* ---- the whole ---- */

/* Matches the text at s by the pattern from p on, in a loop; recursion only where it may have to
 * backtrack. Returns the match's end; NULL: none. */
static const char *follow(cnri_match *m, const char *s, const char *p) {
    while (p < m->pattern_end) {
        cnri_script_charge(m->L, 1);
        if (*p == '(') return open_capture(m, s, p);
        if (*p == ')') return close_capture(m, s, p);
        if (*p == '$' && p + 1 == m->pattern_end) return s == m->text_end ? s : NULL;
        if (*p == '%' && p + 1 < m->pattern_end) {
            const int kind = (unsigned char)p[1];
            if (kind == 'b' || isdigit(kind)) {
                s = kind == 'b' ? skip_balanced(m, s, p + 2) : skip_same(m, s, kind);
                if (!s) return NULL;
                p += kind == 'b' ? 4 : 2;
                continue;
            }
            if (kind == 'f') {
                if (p + 2 >= m->pattern_end || p[2] != '[')
                    luaL_error(m->L, "malformed pattern (%%f wants a set)");
                const char *end = item_end(m, p + 2);
                if (!at_frontier(m, s, p + 2, end)) return NULL;
                p = end;
                continue;
            }
        }
        const char *end = item_end(m, p);
        const char suffix = end < m->pattern_end ? *end : 0;
        if (suffix == '*') return match_longest(m, s, p, end, 0);
        if (suffix == '+') return match_longest(m, s, p, end, 1);
        if (suffix == '-') return match_shortest(m, s, p, end);
        const bool one = matches_one(m, s, p, end);
        if (suffix == '?') {
            const char *e = one ? match(m, s + 1, end + 1) : NULL;
            if (e) return e;
            p = end + 1;
        } else {
            if (!one) return NULL;
            s++;
            p = end;
        }
    }
    return s;
}

/* Matches the pattern from p on at s; returns the end of the match, NULL: none. */
static const char *match(cnri_match *m, const char *s, const char *p) {
    if (++m->depth > CNRI_PATTERN_DEPTH) luaL_error(m->L, "the pattern is too complex");
    const char *e = follow(m, s, p);
    m->depth--;
    return e;
}

const char *cnri_pattern_match(cnri_match *m, const char *s, const char *pattern) {
    m->n = m->depth = 0;
    return match(m, s, pattern);
}

void cnri_pattern_push(cnri_match *m, int i, const char *s, const char *e) {
    if (i == 0 && m->n == 0) {
        lua_pushlstring(m->L, s, (size_t)(e - s));
        return;
    }
    if (i >= m->n) luaL_error(m->L, "no capture %%%d in the pattern", i + 1);
    const cnri_capture *c = &m->captures[i];
    if (c->n == CNRI_CAPTURE_OPEN) luaL_error(m->L, "malformed pattern (missing ')')");
    if (c->n == CNRI_CAPTURE_POSITION) lua_pushinteger(m->L, c->at - m->text + 1);
    else lua_pushlstring(m->L, c->at, (size_t)c->n);
}

int cnri_pattern_push_all(cnri_match *m, const char *s, const char *e) {
    const int n = m->n > 0 ? m->n : 1;
    luaL_checkstack(m->L, n, "too many captures");
    for (int i = 0; i < n; i++) cnri_pattern_push(m, i, s, e);
    return n;
}
