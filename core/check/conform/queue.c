/* Devices: the order of what is queued, what is seen after waiting, and marks between streams.
 *
 * Work that takes some milliseconds is queued first, so that whoever does not wait is found out. */
#include "conform/judging.h"

enum { TURNS = 12, SMALL = 4096, LOADS = 6 };

/* Two streams of a device, with work that keeps it busy. */
typedef struct queueing {
    cnri_bay b;
    cnr_stream other; /* a second stream */
    bool has_other;
    cnr_mem large, a, b_mem;
    uint8_t *load; /* the data written to `large` */
    uint8_t old[SMALL], now[SMALL], got[SMALL];
} queueing;

/* Opens the device, two streams with these flags, and memory; false, with a finding. End q in
 * either case. */
static bool begin(queueing *q, cnri_judging *j, uint32_t flags) {
    memset(q, 0, sizeof *q);
    q->load = cnri_alloc_zero(4 * CNRI_MIB);
    if (!q->load) return cnri_judging_fail(j, "out of memory");
    return cnri_bay_open(&q->b, j, 0) &&
           (q->b.has_stream = cnri_bay_stream(&q->b, &q->b.stream, flags)) &&
           (q->has_other = cnri_bay_stream(&q->b, &q->other, flags)) &&
           cnri_bay_alloc(&q->b, &q->large, 4 * CNRI_MIB) && cnri_bay_alloc(&q->b, &q->a, SMALL) &&
           cnri_bay_alloc(&q->b, &q->b_mem, SMALL);
}

/* Waits for both streams, frees the memories and closes all, as far as it is open. */
static void end(queueing *q) {
    cnr_error err = CNR_ERROR_INIT;
    if (q->b.has_stream) q->b.cls->sync(&q->b.stream, &err);
    if (q->has_other) q->b.cls->sync(&q->other, &err);
    cnri_bay_free(&q->b, &q->large);
    cnri_bay_free(&q->b, &q->a);
    cnri_bay_free(&q->b, &q->b_mem);
    if (q->has_other) q->b.cls->stream_close(&q->other);
    cnri_bay_close(&q->b);
    cnri_free(q->load);
}

/* Calls judge for `rounds` rounds with streams of these flags, until one is false. */
static bool judge_rounds(cnri_judging *j, uint32_t flags, int32_t rounds,
                         bool (*judge)(queueing *q, int32_t turn)) {
    queueing *q = cnri_alloc(sizeof *q);
    if (!q) return cnri_judging_fail(j, "out of memory");
    bool good = begin(q, j, flags);
    for (int32_t turn = 0; turn < rounds && good; turn++) {
        cnri_judging_case(j, "round %d", (int)turn);
        good = judge(q, turn);
    }
    end(q);
    cnri_free(q);
    return good;
}

/* True if reading the memory now gives `want`. */
static bool is(queueing *q, const uint8_t *want, const char *when) {
    const size_t at = cnri_first_difference(want, q->got, SMALL);
    return at == SMALL || cnri_judging_fail(q->b.j, "%s byte %zu is 0x%02x; it should be 0x%02x",
                                            when, at, q->got[at], want[at]);
}

/* Fills the patterns of old and new data for a round. */
static void patterns(queueing *q, int32_t turn) {
    cnri_pattern(q->old, SMALL, 2 * (uint64_t)turn);
    cnri_pattern(q->now, SMALL, 2 * (uint64_t)turn + 1);
    memset(q->got, 0, SMALL);
}

/* ---- one stream ---- */

/* Writes old to a, copies a to b, writes new to a, and reads b, which must be old. False: it
 * failed. */
static bool in_order(queueing *q, int32_t turn) {
    cnri_bay *b = &q->b;
    cnr_stream *s = &b->stream;
    cnr_error err = CNR_ERROR_INIT;
    patterns(q, turn);
    bool good = cnri_bay_load(b, s, &q->large, q->load, turn % LOADS) &&
                cnri_bay_write(b, s, &q->a, 0, q->old, SMALL);
    if (good && CNRI_HAS(b->cls, copy))
        good = cnri_judging_ok(b->j, "copy", b->cls->copy(s, &q->a, &q->b_mem, SMALL, &err), &err);
    else good = good && cnri_bay_write(b, s, &q->b_mem, 0, q->old, SMALL);
    good = good && cnri_bay_write(b, s, &q->a, 0, q->now, SMALL) &&
           cnri_bay_read(b, s, &q->b_mem, 0, q->got, SMALL) && cnri_bay_sync(b, s) &&
           is(q, q->old, "a copy that was queued before the next write: after sync");
    return good && cnri_bay_read(b, s, &q->a, 0, q->got, SMALL) && cnri_bay_sync(b, s) &&
           is(q, q->now, "a write that was queued last:");
}

/* True if, after sync, host memory may be reused and a second stream sees the results. */
static bool is_done(queueing *q, int32_t turn) {
    cnri_bay *b = &q->b;
    cnr_stream *s = &b->stream;
    uint8_t from[SMALL];
    patterns(q, turn);
    memcpy(from, q->now, SMALL);
    bool good = cnri_bay_write(b, s, &q->a, 0, q->old, SMALL) && cnri_bay_sync(b, s) &&
                cnri_bay_load(b, s, &q->large, q->load, LOADS) &&
                cnri_bay_write(b, s, &q->a, 0, from, SMALL) && cnri_bay_sync(b, s);
    memset(from, 0xee, SMALL);
    return good && cnri_bay_read(b, &q->other, &q->a, 0, q->got, SMALL) &&
           cnri_bay_sync(b, &q->other) &&
           is(q, q->now, "sync returned, and another stream reads the memory:");
}

/* True if each call has finished when it returns, on a device that queues nothing. */
static bool is_immediate(queueing *q, int32_t turn) {
    cnri_bay *b = &q->b;
    patterns(q, turn);
    if (!cnri_bay_write(b, &b->stream, &q->a, 0, q->now, SMALL)) return false;
    if (!cnri_bay_read(b, &q->other, &q->a, 0, q->got, SMALL)) return false;
    return is(q, q->now, "without record, calls end before they return:");
}

/* One round: in order, done after a sync, and at once on a device that queues nothing. */
static bool is_ordered(queueing *q, int32_t turn) {
    const bool good = in_order(q, turn) && is_done(q, turn + TURNS);
    return good && (CNRI_HAS(q->b.cls, event_record) || is_immediate(q, turn + 2 * TURNS));
}

/* Judges that work of one stream is done in order. False: a finding says why it isn't so. */
bool cnri_judge_order(cnri_judging *j) { return judge_rounds(j, 0, TURNS, is_ordered); }

/* ---- marks ---- */

/* Records an event on a stream. False: it failed. */
static bool record(queueing *q, cnr_stream *s, void **event) {
    cnr_error err = CNR_ERROR_INIT;
    *event = NULL;
    return cnri_judging_ok(q->b.j, "record", q->b.cls->event_record(s, event, &err), &err);
}

/* Starts queued work of a stream, if the class has a method for it. */
static void flush(queueing *q, cnr_stream *s) {
    if (CNRI_HAS(q->b.cls, flush)) q->b.cls->flush(s);
}

/* Frees an event; NULL: none. */
static void forget(queueing *q, void *event) {
    if (event && CNRI_HAS(q->b.cls, event_free)) q->b.cls->event_free(&q->b.device, event);
}

/* Transfers that keep a queue busy in a turn: ever more, since on a busy machine the thread that
 * judges may itself be late. */
static int32_t loads_of(int32_t turn) { return LOADS * (1 + turn); }

/* One stream writes late; another waits for its event and must read the new data. False: failed. */
static bool waits(queueing *q, int32_t turn) {
    cnri_bay *b = &q->b;
    cnr_stream *s = turn % 2 ? &q->other : &b->stream, *t = turn % 2 ? &b->stream : &q->other;
    cnr_error err = CNR_ERROR_INIT;
    void *event = NULL;
    patterns(q, turn);
    bool good = cnri_bay_write(b, s, &q->a, 0, q->old, SMALL) && cnri_bay_sync(b, s) &&
                cnri_bay_load(b, s, &q->large, q->load, loads_of(turn)) &&
                cnri_bay_write(b, s, &q->a, 0, q->now, SMALL) && record(q, s, &event);
    flush(q, s);
    good = good && cnri_judging_ok(b->j, "wait", b->cls->event_wait(t, event, &err), &err) &&
           cnri_bay_read(b, t, &q->a, 0, q->got, SMALL) && cnri_bay_sync(b, t) &&
           is(q, q->now, "a stream waited for the mark behind a write, and reads the memory:") &&
           cnri_bay_sync(b, s);
    forget(q, event);
    return good;
}

/* Judges that another stream waits for an event; skipped without events. False: a finding says why
 * it isn't so. */
bool cnri_judge_events(cnri_judging *j) {
    const cnr_device_class *cls = j->descriptor;
    if (!CNRI_HAS(cls, event_record)) return cnri_judging_skip(j, "its streams finish at once");
    if (!CNRI_HAS(cls, event_wait)) return cnri_judging_skip(j, "the class has no wait");
    return judge_rounds(j, 0, TURNS, waits);
}

/* True if work before an event is done after waiting for it, while later work may still run. */
static bool awaits(queueing *q, int32_t turn) {
    cnri_bay *b = &q->b;
    cnr_stream *s = &b->stream;
    cnr_error err = CNR_ERROR_INIT;
    void *event = NULL;
    patterns(q, turn);
    bool good = cnri_bay_load(b, s, &q->large, q->load, loads_of(turn)) &&
                cnri_bay_write(b, s, &q->a, 0, q->now, SMALL) &&
                cnri_bay_read(b, s, &q->a, 0, q->got, SMALL) && record(q, s, &event) &&
                cnri_bay_load(b, s, &q->large, q->load, 2);
    flush(q, s);
    good = good &&
           cnri_judging_ok(b->j, "await", b->cls->event_sync(&b->device, event, &err), &err) &&
           is(q, q->now, "await returned; of what was read before the mark") && cnri_bay_sync(b, s);
    forget(q, event);
    return good;
}

/* Judges that the host can wait for an event; skipped without event_sync. False: a finding says why
 * it isn't so. */
bool cnri_judge_await(cnri_judging *j) {
    const cnr_device_class *cls = j->descriptor;
    if (!CNRI_HAS(cls, event_record) || !CNRI_HAS(cls, event_sync))
        return cnri_judging_skip(j, "the class has no event_sync");
    return judge_rounds(j, 0, TURNS, awaits);
}

/* False, with a finding: the ns between two events is negative, or more than the wall clock's. */
static bool is_timed(queueing *q, int32_t turn) {
    cnri_bay *b = &q->b;
    cnr_stream *s = &b->stream;
    void *from = NULL, *to = NULL;
    const uint64_t before = cnri_now_ns();
    bool good = record(q, s, &from) && cnri_bay_load(b, s, &q->large, q->load, 1 + turn) &&
                record(q, s, &to) && cnri_bay_sync(b, s);
    const uint64_t wall = cnri_now_ns() - before;
    const int64_t ns = good ? b->cls->event_elapsed(&b->device, from, to) : 0;
    if (good && ns > (int64_t)wall + 1000000)
        good =
            cnri_judging_fail(b->j, "elapsed says %lld ns between two marks; only %llu ns went by",
                              (long long)ns, (unsigned long long)wall);
    if (good && ns < -1) /* -1: it can't tell */
        good = cnri_judging_fail(b->j, "elapsed says %lld ns", (long long)ns);
    forget(q, from);
    forget(q, to);
    return good;
}

/* Judges the time between two events of a timed stream; skipped without event_elapsed. False: a
 * finding says why it isn't so. */
bool cnri_judge_marks(cnri_judging *j) {
    const cnr_device_class *cls = j->descriptor;
    if (!CNRI_HAS(cls, event_record) || !CNRI_HAS(cls, event_elapsed))
        return cnri_judging_skip(j, "the class has no event_elapsed");
    return judge_rounds(j, CNR_STREAM_TIMED, 4, is_timed);
}

/* ---- threads of a host device ---- */

enum { MOST_CALLS = 1000, MOST_THREADS = 64 };

/* What calls of one `parallel` have done. */
typedef struct calls {
    _Atomic int32_t times[MOST_CALLS]; /* by call */
    _Atomic int32_t inside[MOST_THREADS], clashes, wrong;
    int64_t n;
    int32_t threads;
} calls;

/* Counts a call, and notes whether another one with its number of thread is under way. */
static void count_call(void *arg, int64_t i, int32_t thread) {
    calls *c = arg;
    if (i < 0 || i >= c->n || thread < 0 || thread >= c->threads) {
        c->wrong++;
        return;
    }
    const bool watched = thread < MOST_THREADS; /* of larger devices, the first threads */
    if (watched && c->inside[thread]++) c->clashes++;
    for (volatile int k = 0; k < 2000; k++) {}
    c->times[i]++;
    if (watched) c->inside[thread]--;
}

/* Judges one `parallel` of n calls. */
static bool judge_calls(cnri_bay *b, calls *c, int64_t n) {
    memset(c, 0, sizeof *c);
    c->n = n;
    c->threads = b->device.concurrency;
    b->stream.parallel(&b->stream, n, count_call, c);
    for (int64_t i = 0; i < n; i++)
        if (c->times[i] != 1)
            return cnri_judging_fail(b->j, "parallel made call %lld %d times before it returned",
                                     (long long)i, (int)c->times[i]);
    if (c->wrong)
        return cnri_judging_fail(b->j,
                                 "parallel made %d calls with another number than 0 to %lld "
                                 "or another thread than 0 to %d",
                                 (int)c->wrong, (long long)n - 1, c->threads - 1);
    return !c->clashes ||
           cnri_judging_fail(b->j, "parallel made two calls at a time with one number of thread, "
                                   "so that they share scratch memory");
}

bool cnri_judge_parallel(cnri_judging *j) {
    static const int64_t counts[] = {0, 1, 2, 3, 17, MOST_CALLS};
    static calls c;
    cnri_bay b = {0};
    bool good = cnri_bay_begin(&b, j);
    const bool has = good && b.stream.parallel;
    for (int32_t turn = 0; turn < 20 && has && good; turn++)
        for (size_t i = 0; i < CNRI_COUNT(counts) && good; i++) {
            cnri_judging_case(j, "%lld calls on up to %d threads", (long long)counts[i],
                              (int)b.device.concurrency);
            good = judge_calls(&b, &c, counts[i]);
        }
    cnri_bay_close(&b);
    return good && !has ? cnri_judging_skip(j, "its streams have no parallel") : good;
}
