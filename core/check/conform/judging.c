/* Code that judgements share: reporting, and host memory with guarded ends. */
#include "conform/judging.h"
#include <cnnrun/cnnrun.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- telling ---- */

void cnri_judging_case(cnri_judging *j, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cnri_work_tell("case", j->cases++, text);
}

/* Appends a formatted reason, if there is none yet. */
static void say(cnri_judging *j, const char *format, va_list args) {
    char text[1500];
    vsnprintf(text, sizeof text, format, args);
    if (!j->why.n) cnri_text_add(&j->why, "%s", text);
}

bool cnri_judging_fail(cnri_judging *j, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(j, format, args);
    va_end(args);
    return false;
}

bool cnri_judging_skip(cnri_judging *j, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(j, format, args);
    va_end(args);
    j->is_skipped = true;
    return true;
}

/* True if the number is a cnr_status. */
static bool is_status(int32_t status) {
    switch (status) {
/* Case of one status. */
#define X(name, value, text) case value:
        CNR_STATUS_LIST(X)
#undef X
        return true;
    default: return false;
    }
}

bool cnri_judging_spoke(cnri_judging *j, const char *call, cnr_status status,
                        const cnr_error *err) {
    if (!is_status(status))
        return cnri_judging_fail(j, "%s returned %d, which is no status", call, (int)status);
    if (status == CNR_OK || memchr(err->text, 0, sizeof err->text) != err->text) return true;
    return cnri_judging_fail(j, "%s failed (%s) without a text that says why", call,
                             cnr_status_text(status));
}

bool cnri_judging_ok(cnri_judging *j, const char *call, cnr_status status, const cnr_error *err) {
    if (status == CNR_OK) return true;
    if (!cnri_judging_spoke(j, call, status, err)) return false;
    return cnri_judging_fail(j, "%s failed: %.600s", call, err->text);
}

/* True if the text fits the array of `room` bytes and is not empty; else false, with a finding
 * about `what`. */
bool cnri_judging_name(cnri_judging *j, const char *what, const char *text, size_t room) {
    if (!memchr(text, 0, room)) return cnri_judging_fail(j, "%s has no end", what);
    if (!*text) return cnri_judging_fail(j, "%s is empty", what);
    return true;
}

/* ---- memory and bytes ---- */

enum { CANARY = 0xc3 };

bool cnri_edge_make(cnri_edge *e, size_t bytes, size_t alignment) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t used = (bytes + alignment - 1) / alignment * alignment;
    const size_t inner = (used + 64 + page - 1) / page * page;
    *e = (cnri_edge){.all = inner + page, .bytes = bytes, .slack = used - bytes};
    e->map = mmap(NULL, e->all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (e->map == MAP_FAILED || mprotect(e->map + inner, page, PROT_NONE) != 0) {
        cnri_edge_free(e);
        return false;
    }
    e->at = e->map + inner - used;
    memset(e->map, CANARY, (size_t)(e->at - e->map));
    memset(e->at + bytes, CANARY, e->slack);
    return true;
}

/* True if all bytes from `from` up to `to` are still the canary. */
static bool is_canary(const uint8_t *from, const uint8_t *to) {
    while (from < to && *from == CANARY) from++;
    return from == to;
}

bool cnri_edge_is_whole(const cnri_edge *e) {
    return is_canary(e->at - e->map > 4096 ? e->at - 4096 : e->map, e->at) &&
           is_canary(e->at + e->bytes, e->at + e->bytes + e->slack);
}

/* Unmaps the block; never made: nothing. */
void cnri_edge_free(cnri_edge *e) {
    if (e->map && e->map != MAP_FAILED) munmap(e->map, e->all);
    *e = (cnri_edge){0};
}

void cnri_pattern(uint8_t *to, size_t n, uint64_t round) {
    cnri_dice dice = {round};
    for (size_t i = 0; i < n; i += 8) {
        const uint64_t word = cnri_dice_next(&dice);
        memcpy(to + i, &word, n - i < 8 ? n - i : 8);
    }
}

size_t cnri_first_difference(const void *a, const void *b, size_t n) {
    const uint8_t *x = a, *y = b;
    if (n == 0 || memcmp(a, b, n) == 0) return n;
    size_t at = 0;
    while (x[at] == y[at]) at++;
    return at;
}
