/* A judgement in its process: the table of all, and how they tell what comes of them. */
#include "conform/judging.h"
#include <cnnrun/cnnrun.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROW(KIND, name, run, summary) \
    { CNR_KIND_##KIND, name, summary, cnri_judge_##run }
static const cnri_judgement judgements[] = {
    ROW(DEVICE, "describes itself", describe, "count, describe and most agree, keys differ"),
    ROW(DEVICE, "opens", open, "opens twice, again, with one thread and three"),
    ROW(DEVICE, "memory", memory, "blocks of all sizes keep apart; too much is refused"),
    ROW(DEVICE, "copies", copies, "both ways at every offset and size class, waited for and not"),
    ROW(DEVICE, "copies on the device", between, "copy moves so many bytes and no others"),
    ROW(DEVICE, "views", views, "parts of memory are what lies there"),
    ROW(DEVICE, "mapped memory", map, "what is mapped is what lies there"),
    ROW(DEVICE, "queue order", order, "queued work is done in order; after sync all of it is"),
    ROW(DEVICE, "waits", events, "a stream that waits for another's mark sees what it did"),
    ROW(DEVICE, "awaited marks", await, "await returns when what stood before the mark is done"),
    ROW(DEVICE, "times between marks", marks, "elapsed lies within the clock's time"),
    ROW(DEVICE, "out of bounds", bounds, "transfers outside memory are refused, and no sync hides "
                                         "it"),
    ROW(DEVICE, "out of memory", starved, "each allocation fails once: an error, or right bytes"),
    ROW(DEVICE, "two threads", threads, "two streams in two threads do not disturb each other"),
    ROW(DEVICE, "cancelled", cancel, "a sync that is cancelled ends"),
    ROW(DEVICE, "closed while busy", busy_close, "nothing touches memory after its stream closed"),
    ROW(DEVICE, "fork", fork, "a child changes nothing for its parent, and can open it anew"),
    ROW(DEVICE, "facts", facts, "names and numbers that it tells are well-formed"),
    ROW(ENCODING, "loss", loss, "decode gives back what was encoded, nearly"),
    ROW(ENCODING, "encoded size", encoded_size, "encode fills its bytes, decode its tensor, no "
                                                "others"),
    ROW(ENCODING, "settings", settings, "each option at its ends and for each of its words"),
    ROW(ENCODING, "refusals", refusals, "other types and shapes: refused, or right"),
    ROW(ENCODING, "hostile bytes", hostile, "check refuses what decode could trip over"),
    ROW(METER, "readings", meter, "domains and readings are possible ones"),
    ROW(METER, "no sensors", meter_absent, "where there is nothing it says so"),
    ROW(KNOB, "domains", knob, "bounds, steps and readings agree"),
    ROW(KNOB, "settings", knob_set, "what is set reads back, and restore puts it back"),
    ROW(KNOB, "no clocks", knob_absent, "where there is nothing it says so"),
    ROW(SOURCE, "is asked", source_asked, "accepts takes any words and bytes"),
    ROW(SOURCE, "samples", source_samples, "pictures have the shape that their bytes have"),
    ROW(SOURCE, "damaged files", source_damaged, "cut and changed files: refused, or read"),
    ROW(IMPORTER, "is asked", importer_asked, "accepts takes any words and bytes"),
    ROW(IMPORTER, "samples", importer_samples, "makes nets that can be planned"),
    ROW(IMPORTER, "damaged files", importer_damaged, "cut and changed files: refused, or read"),
};
#undef ROW

bool cnri_conform_judgement(int32_t index, const char **kind, const char **name,
                            const char **summary) {
    if (index < 0 || index >= (int32_t)CNRI_COUNT(judgements)) return false;
    *kind = cnri_kind_name(judgements[index].kind);
    *name = judgements[index].name;
    *summary = judgements[index].summary;
    return true;
}

/* ---- telling ---- */

void cnri_judging_case(cnri_judging *j, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cnri_work_tell("case", j->cases++, text);
}

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

static bool is_status(int32_t status) {
    switch (status) {
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

static bool is_canary(const uint8_t *from, const uint8_t *to) {
    while (from < to && *from == CANARY) from++;
    return from == to;
}

bool cnri_edge_is_whole(const cnri_edge *e) {
    return is_canary(e->at - e->map > 4096 ? e->at - 4096 : e->map, e->at) &&
           is_canary(e->at + e->bytes, e->at + e->bytes + e->slack);
}

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

/* ---- the child's side ---- */

/* Allocations that fail are counted by thread, and those of a judgement fail on purpose. */
typedef struct thread_of {
    cnri_judging *j;
    cnri_judge_fn run;
    bool holds;
} thread_of;

static void *run_judgement(void *arg) {
    thread_of *t = arg;
    t->holds = t->run(t->j);
    return NULL;
}

/* Class and index of the device that answers to the name. */
static cnr_status tell_place(const char *name, cnr_error *err) {
    cnri_devices set;
    const cnri_device *d;
    cnri_devices_init(&set, 1);
    const cnr_status status = cnri_device_find(&set, name, &d, err);
    if (status) cnri_work_tell("error", -status, err->text);
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_DEVICE) && !status; i++) {
        char text[64];
        snprintf(text, sizeof text, "%d %s", (int)d->device.index, d->name);
        if (cnri_descriptor_at(CNR_KIND_DEVICE, i) == (const void *)d->device.cls)
            cnri_work_tell("found", i, text);
    }
    cnri_devices_close(&set);
    return CNR_OK;
}

cnr_status cnri_conform_work(const cnri_conform_options *o, const char *work, cnr_error *err) {
    int which = -1, descriptor = -1, index = 0;
    if (strcmp(work, "find") == 0) return tell_place(o->device, err);
    if (strncmp(work, "judge:", 6) != 0) return cnri_check_work(&o->check, work, err);
    if (sscanf(work, "judge:%d:%d:%d", &which, &descriptor, &index) != 3 || which < 0 ||
        which >= (int)CNRI_COUNT(judgements) || descriptor < 0 ||
        descriptor >= cnri_descriptor_count(judgements[which].kind))
        return cnri_fail(err, CNR_E_ARG, "--worker", "not for people");
    const cnri_judgement *row = &judgements[which];
    cnri_judging j = {.o = o,
                      .descriptor = cnri_descriptor_at(row->kind, descriptor),
                      .index = index,
                      .dice = cnri_dice_of((uint64_t)o->check.seed, row->name, index)};
    thread_of t = {.j = &j, .run = row->run};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_judgement, &t) != 0)
        return cnri_fail(err, CNR_E_STATE, "conform", "no thread could be begun");
    pthread_join(thread, NULL);
    cnri_work_tell(!t.holds ? "fail" : j.is_skipped ? "skip" : "pass", j.cases,
                   t.holds && !j.is_skipped ? NULL : j.why.at);
    cnri_text_free(&j.why);
    return CNR_OK;
}
