/* The table of all judgements, and the process of one judgement. */
#include "conform/judging.h"
#include <pthread.h>
#include <stdio.h>

enum { REPEATS = 3 };

/* A row of the table of judgements. */
#define ROW(KIND, name, run, summary) \
    { CNR_KIND_##KIND, name, summary, cnri_judge_##run }
static const cnri_judgement judgements[] = {
    ROW(DEVICE, "describes itself", describe, "count, describe and most agree, keys differ"),
    ROW(DEVICE, "opens", open, "opens twice, again, with one thread and three"),
    ROW(DEVICE, "memory", memory, "blocks of all sizes keep apart; too much is refused"),
    ROW(DEVICE, "copies", copies, "both ways at every offset and size class, waited for and not"),
    ROW(DEVICE, "host memory", host_memory,
        "blocks of host_alloc keep apart and transfer right bytes"),
    ROW(DEVICE, "copies on the device", between, "copy moves so many bytes and no others"),
    ROW(DEVICE, "views", views, "parts of memory are what lies there"),
    ROW(DEVICE, "mapped memory", map, "what is mapped is what lies there"),
    ROW(DEVICE, "queue order", order, "queued work is done in order; after sync all of it is"),
    ROW(DEVICE, "waits", events, "a stream that waits for another's mark sees what it did"),
    ROW(DEVICE, "awaited marks", await, "await returns when what stood before the mark is done"),
    ROW(DEVICE, "parallel calls", parallel, "each call is made once, on more threads than cores"),
    ROW(DEVICE, "times between marks", marks, "elapsed lies within the clock's time"),
    ROW(DEVICE, "out of bounds", bounds,
        "transfers outside memory are refused, and no sync hides "
        "it"),
    ROW(DEVICE, "out of memory", starved, "each allocation fails once: an error, or right bytes"),
    ROW(DEVICE, "two threads", threads, "two streams in two threads do not disturb each other"),
    ROW(DEVICE, "cancelled", cancel, "a sync that is cancelled ends"),
    ROW(DEVICE, "closed while busy", busy_close, "nothing touches memory after its stream closed"),
    ROW(DEVICE, "fork", fork, "a child changes nothing for its parent, and can open it anew"),
    ROW(DEVICE, "facts", facts, "names and numbers that it tells are well-formed"),
    ROW(DEVICE, "claims", claims, "regions that it claims are computed in some net"),
    ROW(ENCODING, "loss", loss, "decode gives back what was encoded, nearly"),
    ROW(ENCODING, "encoded size", encoded_size,
        "encode fills its bytes, decode its tensor, no "
        "others"),
    ROW(ENCODING, "settings", settings, "each option at its ends and for each of its words"),
    ROW(ENCODING, "refusals", refusals, "other types and shapes: refused, or right"),
    ROW(ENCODING, "hostile bytes", hostile, "check refuses what decode could trip over"),
    ROW(CODEC, "round trip", codec, "decode gives back what was encoded, with the same key alone"),
    ROW(CODEC, "hostile bytes", codec_hostile, "decode stays within bounds, whatever it gets"),
    ROW(METER, "readings", meter, "domains and readings are possible ones"),
    ROW(METER, "no sensors", meter_absent, "where there is nothing it says so"),
    ROW(KNOB, "domains", knob, "bounds, steps and readings agree"),
    ROW(KNOB, "settings", knob_set, "what is set reads back, and restore puts it back"),
    ROW(KNOB, "no clocks", knob_absent, "where there is nothing it says so"),
    ROW(REWRITE, "answers", rewrite, "nets give with it what they give without it"),
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

/* ---- the child's side ---- */

/* A judgement that runs on a thread of its own; holds: its result. */
typedef struct thread_of {
    cnri_judging *j;
    cnri_judge_fn run;
    bool holds, repeats;
} thread_of;

/* Blocks that the plugin has of the host table. */
static _Atomic int64_t n_blocks;
static cnr_host uncounted;

/* Stands for the host's alloc, and counts the blocks of each thread. */
static void *count_alloc(size_t bytes) {
    void *block = uncounted.alloc(bytes);
    n_blocks += block != NULL;
    return block;
}
/* Stands for the host's resize, and counts new blocks. */
static void *count_resize(void *block, size_t bytes) {
    void *other = uncounted.resize(block, bytes);
    n_blocks += !block && other;
    return other;
}
/* Stands for the host's free, and counts the block off. */
static void count_free(void *block) {
    n_blocks -= block != NULL;
    uncounted.free(block);
}
/* Stands for the host's file_read, and counts its block. */
static cnr_status count_file(const char *path, uint64_t limit, void **data, uint64_t *bytes,
                             cnr_error *err) {
    const cnr_status status = uncounted.file_read(path, limit, data, bytes, err);
    n_blocks += !status;
    return status;
}

/* Lets blocks be counted from now on. */
static void count_blocks(void) {
    cnr_host *host = cnri_host_mutable();
    uncounted = *host;
    host->alloc = count_alloc;
    host->resize = count_resize;
    host->free = count_free;
    host->file_read = count_file;
}

/* Repeats what held: blocks that become more each time are never freed. */
static void judge_leaks(thread_of *t) {
    const int64_t first = n_blocks;
    bool grows = true;
    for (int32_t i = 0; i < REPEATS && t->holds; i++) {
        const int64_t was = n_blocks;
        t->holds = t->run(t->j);
        grows = grows && n_blocks > was;
    }
    if (t->holds && grows)
        t->holds = cnri_judging_fail(t->j, "it is done %d times, and %lld blocks are not freed",
                                     REPEATS, (long long)(n_blocks - first));
}

/* Thread: runs a judgement and, if it holds and can be repeated, looks for leaks. */
static void *run_judgement(void *arg) {
    thread_of *t = arg;
    if (t->repeats) count_blocks();
    t->holds = t->run(t->j);
    if (t->repeats && t->holds && !t->j->is_skipped) judge_leaks(t);
    return NULL;
}

/* Prints the line "found" with class number, index and full name of the device of that name for
 * the parent process, or the line "error" with the status and text if it is not found. Always
 * returns CNR_OK. */
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
    /* those that leave nothing of their own behind, and are quick */
    const bool repeats = row->run == cnri_judge_meter || row->run == cnri_judge_meter_absent ||
                         row->run == cnri_judge_knob_absent || row->run == cnri_judge_knob ||
                         row->run == cnri_judge_source_samples ||
                         row->run == cnri_judge_importer_samples ||
                         row->run == cnri_judge_encoded_size;
    thread_of t = {.j = &j, .run = row->run, .repeats = repeats};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_judgement, &t) != 0)
        return cnri_fail(err, CNR_E_STATE, "conform", "no thread could be begun");
    pthread_join(thread, NULL);
    cnri_work_tell(!t.holds       ? "fail"
                   : j.is_skipped ? "skip"
                                  : "pass",
                   j.cases, t.holds && !j.is_skipped ? NULL : j.why.at);
    cnri_text_free(&j.why);
    return CNR_OK;
}
