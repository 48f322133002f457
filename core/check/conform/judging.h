/* One judgement in its process; inside conform/ only. */
#ifndef CNRI_CONFORM_JUDGING_H
#define CNRI_CONFORM_JUDGING_H

#include "conform/conform.h"
#include "graph/graph.h"

/* A judgement that is under way in a child process. */
typedef struct cnri_judging {
    const cnri_conform_options *o;
    const void *descriptor;
    int32_t index;   /* of a device, within its class */
    cnri_text why;   /* why it fails or is skipped */
    bool is_skipped; /* the judgement returned true, but nothing could be judged */
    int64_t cases;   /* number of cases begun so far */
    cnri_dice dice;
} cnri_judging;

/* A judgement. True: it passed, or was skipped. */
typedef bool (*cnri_judge_fn)(cnri_judging *j);

/* A judgement of one kind of descriptor. */
typedef struct cnri_judgement {
    int32_t kind;
    const char *name, *summary;
    cnri_judge_fn run;
} cnri_judgement;

/* ---- judging.c ---- */
/* Begins a case. Its text is reported if the process crashes or hangs before the next case. */
void cnri_judging_case(cnri_judging *j, const char *format, ...) CNRI_PRINTF(2, 3);
/* Sets the reason and returns false. */
bool cnri_judging_fail(cnri_judging *j, const char *format, ...) CNRI_PRINTF(2, 3);
/* Sets the reason, marks the judgement as skipped, and returns true. */
bool cnri_judging_skip(cnri_judging *j, const char *format, ...) CNRI_PRINTF(2, 3);
/* Checks the result of a plugin's call. False, with a reason: it failed, or returned no valid
 * status. */
bool cnri_judging_ok(cnri_judging *j, const char *call, cnr_status status, const cnr_error *err);
/* Checks a call that may fail. False, with a reason: it failed without a valid status or without
 * a text. */
bool cnri_judging_spoke(cnri_judging *j, const char *call, cnr_status status, const cnr_error *err);
/* True if the text fits the array and is not empty. */
bool cnri_judging_name(cnri_judging *j, const char *what, const char *text, size_t room);

/* Host memory that ends, rounded up to its alignment, where a page begins that nobody may touch:
 *     | canary ... | bytes | canary, less than the alignment | no access | */
typedef struct cnri_edge {
    uint8_t *map, *at;
    size_t all, bytes, slack;
} cnri_edge;
/* Maps `bytes` bytes that end (up to alignment) at a page that can't be accessed; false: out of
 * memory. */
bool cnri_edge_make(cnri_edge *e, size_t bytes, size_t alignment);
bool cnri_edge_is_whole(const cnri_edge *e); /* true if nothing was written before or behind it */
void cnri_edge_free(cnri_edge *e);           /* unmaps it; never made: nothing */

/* Fills memory with bytes that depend on their position and on `round`. */
void cnri_pattern(uint8_t *to, size_t n, uint64_t round);
/* Index of the first byte in which two memories differ; n: they are equal. */
size_t cnri_first_difference(const void *a, const void *b, size_t n);

/* ---- device.c: an open device with a stream ---- */
/* An open device with a stream, for judgements. */
typedef struct cnri_bay {
    cnri_judging *j;
    cnr_device device;
    const cnr_device_class *cls;
    int32_t memory_class; /* the first memory class that is no image */
    bool is_host;         /* the host can use the memory in place */
    cnr_stream stream;
    volatile int32_t cancel;
    bool is_open, has_stream;
    char name[48];
} cnri_bay;

/* Opens the judged device of the class, without a stream. threads 0: its own number. False:
 * `why` says what failed. */
bool cnri_bay_open(cnri_bay *b, cnri_judging *j, int32_t threads);
/* Opens a stream of the device. False: it failed. */
bool cnri_bay_stream(cnri_bay *b, cnr_stream *out, uint32_t flags);
/* Opens the device, with more threads than cores, and a stream. */
bool cnri_bay_begin(cnri_bay *b, cnri_judging *j);
void cnri_bay_close(cnri_bay *b); /* closes stream and device, as far as they are open */
/* Allocates `bytes` in the class that is judged, into *out, for cnri_bay_free. False: it failed,
 * with a finding. */
bool cnri_bay_alloc(cnri_bay *b, cnr_mem *out, uint64_t bytes);
/* Frees the memory and clears it; accepts memory that was never allocated. */
void cnri_bay_free(cnri_bay *b, cnr_mem *mem);
/* Queue a transfer and wait for it; false: it failed. */
bool cnri_bay_write(cnri_bay *b, cnr_stream *s, const cnr_mem *to, uint64_t at, const void *from,
                    uint64_t n);
/* Reads n bytes from byte `at` on. False: it failed. */
bool cnri_bay_read(cnri_bay *b, cnr_stream *s, const cnr_mem *from, uint64_t at, void *to,
                   uint64_t n);
/* Waits until all queued work is done. False: it failed. */
bool cnri_bay_sync(cnri_bay *b, cnr_stream *s);
/* Queues some milliseconds of work: writes `from` to all of `to`, `times` times. False: failed. */
bool cnri_bay_load(cnri_bay *b, cnr_stream *s, const cnr_mem *to, const void *from, int32_t times);
/* True if streams work asynchronously; else each call has finished when it returns. */
bool cnri_bay_queues(const cnri_bay *b);

#define CNRI_MIB ((size_t)1 << 20)

/* ---- the judgements; what each asks stands in the table of work.c ---- */
/* Codecs: data of many lengths comes back. */
bool cnri_judge_codec(cnri_judging *j);
/* Codecs: bytes that were changed, cut or drawn. */
bool cnri_judge_codec_hostile(cnri_judging *j);
/* Judges what the class tells of its devices. */
bool cnri_judge_describe(cnri_judging *j);
/* Judges opening and closing, also of two devices at once. False: a finding says why it isn't
 * so. */
bool cnri_judge_open(cnri_judging *j);
/* Judges allocation: sizes, alignment, and refusal of what is too large. False: a finding says why
 * it isn't so. */
bool cnri_judge_memory(cnri_judging *j);
/* Judges writes and reads at many offsets and sizes, also overlapping ones. False: a finding says
 * why it isn't so. */
bool cnri_judge_copies(cnri_judging *j);
/* Judges host_alloc: memory that the device copies from and to; skipped without it. False: a
 * finding says why it isn't so. */
bool cnri_judge_host_memory(cnri_judging *j);
/* Judges copies between two memories of the device; skipped without `copy`. False: a finding says
 * why it isn't so. */
bool cnri_judge_between(cnri_judging *j);
/* Judges views of parts of a memory; skipped if memory has no parts. False: a finding says why it
 * isn't so. */
bool cnri_judge_views(cnri_judging *j);
/* Judges map and unmap: the host sees and changes the memory's bytes; skipped without them. False:
 * a finding says why it isn't so. */
bool cnri_judge_map(cnri_judging *j);
/* Judges that work of one stream is done in order. False: a finding says why it isn't so. */
bool cnri_judge_order(cnri_judging *j);
/* Judges that another stream waits for an event; skipped without events. False: a finding says why
 * it isn't so. */
bool cnri_judge_events(cnri_judging *j);
/* Judges that the host can wait for an event; skipped without event_sync. False: a finding says why
 * it isn't so. */
bool cnri_judge_await(cnri_judging *j);
/* Calls on a host device's threads. */
bool cnri_judge_parallel(cnri_judging *j);
/* Events give the time between them. */
bool cnri_judge_marks(cnri_judging *j);
/* Judges that accesses beyond the end of a memory are refused. False: a finding says why it isn't
 * so. */
bool cnri_judge_bounds(cnri_judging *j);
/* Judges that when each allocation fails once, errors are reported and nothing leaks. False: a
 * finding says why it isn't so. */
bool cnri_judge_starved(cnri_judging *j);
/* Judges streams in several threads at once. False: a finding says why it isn't so. */
bool cnri_judge_threads(cnri_judging *j);
/* Judges that work that is cancelled meanwhile ends with its error. False: a finding says why it
 * isn't so. */
bool cnri_judge_cancel(cnri_judging *j);
/* Four rounds: closes a stream that has writes queued, and frees the host memory that they read.
 * Whoever still works after the close crashes. False: the work could not be queued. */
bool cnri_judge_busy_close(cnri_judging *j);
/* Judges that the device works on beside child processes that end or open it. False: a finding says
 * why it isn't so. */
bool cnri_judge_fork(cnri_judging *j);
/* Judges the device's properties: names and numbers; skipped without the method. False: a finding
 * says why it isn't so. */
bool cnri_judge_facts(cnri_judging *j);

/* Judges that decoded numbers are as close as the encoding promises. False: a finding says why it
 * isn't so. */
bool cnri_judge_loss(cnri_judging *j);
/* Judges that encode_size gives the bytes that encode fills. False: a finding says why it isn't
 * so. */
bool cnri_judge_encoded_size(cnri_judging *j);
/* Judges each option of the encoding at the ends of its range. False: a finding says why it isn't
 * so. */
bool cnri_judge_settings(cnri_judging *j);
/* Judges that types and shapes that don't fit are refused, with an error. False: a finding says why
 * it isn't so. */
bool cnri_judge_refusals(cnri_judging *j);
/* Judges that damaged data is refused by check, or decoded within bounds. False: a finding says why
 * it isn't so. */
bool cnri_judge_hostile(cnri_judging *j);

/* Judges a meter's domains and readings. False: a finding says why it isn't so. */
bool cnri_judge_meter(cnri_judging *j);
/* Judges that open fails below an empty folder, where there is nothing to measure. False: a finding
 * says why it isn't so. */
bool cnri_judge_meter_absent(cnri_judging *j);
/* Judges a knob's domains, steps and saved state, without setting anything. False: a finding says
 * why it isn't so. */
bool cnri_judge_knob(cnri_judging *j);
/* Judges that frequencies can be set, read back and restored; skipped if knobs are to be left.
 * False: a finding says why it isn't so. */
bool cnri_judge_knob_set(cnri_judging *j);
/* Judges that open fails below an empty folder, where there is no knob. False: a finding says why
 * it isn't so. */
bool cnri_judge_knob_absent(cnri_judging *j);

/* ---- drawn.c: a net of a few nodes; NULL: none came of what was drawn ---- */
/* A net of a few drawn nodes; NULL: none came of what was drawn. */
cnr_graph *cnri_drawn_net(cnri_judging *j);
/* Judges that nets give the same results after the rewrite. False: a finding says why it isn't
 * so. */
bool cnri_judge_rewrite(cnri_judging *j);
/* Judges that claimed regions are sound and leave no node out of order; skipped without claim.
 * False: a finding says why it isn't so. */
bool cnri_judge_claims(cnri_judging *j);

/* Judges what accepts says of words and files that are not the source's own. False: a finding says
 * why it isn't so. */
bool cnri_judge_source_asked(cnri_judging *j);
/* Judges that the source reads the samples given, twice alike; skipped without any. False: a
 * finding says why it isn't so. */
bool cnri_judge_source_samples(cnri_judging *j);
/* Judges that the source reads damaged samples without crashing; skipped without any. False: a
 * finding says why it isn't so. */
bool cnri_judge_source_damaged(cnri_judging *j);
/* Judges what accepts says of words and files that are not the importer's own. False: a finding
 * says why it isn't so. */
bool cnri_judge_importer_asked(cnri_judging *j);
/* Judges that the importer reads the samples given, twice alike; skipped without any. False: a
 * finding says why it isn't so. */
bool cnri_judge_importer_samples(cnri_judging *j);
/* Judges that the importer reads damaged samples without crashing; skipped without any. False: a
 * finding says why it isn't so. */
bool cnri_judge_importer_damaged(cnri_judging *j);

#endif
