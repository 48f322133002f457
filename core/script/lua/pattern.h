/* Inside the room: Lua's patterns, matched with a budget of steps. */
#ifndef CNRI_LUA_PATTERN_H
#define CNRI_LUA_PATTERN_H

#include "lua/state.h"

enum { CNRI_CAPTURES = 32, CNRI_PATTERN_DEPTH = 180 };

/* A part of a match in parentheses. */
typedef struct cnri_capture {
    const char *at;
    ptrdiff_t n; /* length; CAPTURE_OPEN: not closed yet; CAPTURE_PLACE: a position, () */
} cnri_capture;
enum { CNRI_CAPTURE_OPEN = -1, CNRI_CAPTURE_POSITION = -2 };

/* State of a match: text and pattern, captures so far, and depth of recursion. */
typedef struct cnri_match {
    lua_State *L;
    const char *text, *text_end, *pattern_end;
    cnri_capture captures[CNRI_CAPTURES];
    int n, depth;
} cnri_match;

/* The end of the match of `pattern` at `s`; NULL: no match. Raises an error for a malformed
 * pattern, or if the script's budget is used up. */
const char *cnri_pattern_match(cnri_match *m, const char *s, const char *pattern);
/* Pushes capture i; if the pattern has none and i is 0, the whole match [s, e). */
void cnri_pattern_push(cnri_match *m, int i, const char *s, const char *e);
/* Pushes all captures, or the whole match; returns their number. */
int cnri_pattern_push_all(cnri_match *m, const char *s, const char *e);

#endif
