/* Devices: judges that failures are reported and do no harm elsewhere: threads, cancel, close,
 * fork. */
#define _GNU_SOURCE
#include "conform/judging.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- outside memory ---- */

enum { INSIDE = 1000 };

/* True if a transfer that is impossible (writes: to the device, else from it) is refused, by the
 * call or by the next sync; false, with a finding. */
static bool is_refused(cnri_judging *j, bool writes, uint64_t at, uint64_t n) {
    static uint8_t data[2 * INSIDE];
    cnri_bay b = {0};
    cnr_mem mem = {0};
    cnr_error err = CNR_ERROR_INIT;
    const char *call = writes ? "write" : "read";
    cnri_judging_case(j, "%s of %llu bytes at %llu, of a memory of %d", call, (unsigned long long)n,
                      (unsigned long long)at, INSIDE);
    bool good = cnri_bay_begin(&b, j) && cnri_bay_alloc(&b, &mem, INSIDE);
    if (good) {
        cnr_status status = writes ? b.cls->write(&b.stream, &mem, at, data, n, &err)
                                   : b.cls->read(&b.stream, &mem, at, data, n, &err);
        good = cnri_judging_spoke(j, call, status, &err);
        if (good && !status) status = b.cls->sync(&b.stream, &err);
        good = good && cnri_judging_spoke(j, "sync", status, &err);
        if (good && !status)
            good = cnri_judging_fail(j,
                                     "%s of %llu bytes at offset %llu of a memory of %d bytes: "
                                     "neither the call nor sync says that it failed",
                                     call, (unsigned long long)n, (unsigned long long)at, INSIDE);
    }
    cnri_bay_free(&b, &mem);
    cnri_bay_close(&b);
    return good;
}

/* Judges that accesses beyond the end of a memory are refused. False: a finding says why it isn't
 * so. */
bool cnri_judge_bounds(cnri_judging *j) {
    bool good = true;
    for (int32_t writes = 0; writes < 2 && good; writes++)
        good = is_refused(j, writes, INSIDE, 1) && is_refused(j, writes, 0, INSIDE + 1) &&
               is_refused(j, writes, 900, 101) && is_refused(j, writes, UINT64_MAX - 7, 16);
    return good;
}

/* ---- allocations that fail ---- */

enum { STEPS = 2048, PLACES = 60 };

/* What one attempt opens and allocates while memory is short, to be closed by attempt_end. */
typedef struct attempt {
    cnr_device device;
    cnr_stream streams[2];
    cnr_mem mem[2];
    void *event;
    bool open, streaming[2];
    uint8_t in[STEPS], out[STEPS];
} attempt;

/* Opens the device, streams and memory and copies as a session does, until something fails; *t has
 * what is open, and the status is the first failure. */
static cnr_status attempt_all(attempt *t, const cnr_device_class *cls, int32_t class_index,
                              cnr_error *err) {
    cnr_status status = cls->open(&t->device, NULL, err);
    t->open = !status;
    for (int32_t i = 0; i < 2 && !status; i++) {
        t->streams[i] = (cnr_stream){.size = sizeof t->streams[i], .device = &t->device};
        status = cls->stream_open(&t->device, &t->streams[i], err);
        t->streaming[i] = !status;
        t->mem[i] = (cnr_mem){.bytes = STEPS, .memory_class = class_index};
        if (!status) status = cls->alloc(&t->device, &t->mem[i], err);
        if (status) t->mem[i].handle = NULL;
    }
    if (!status) status = cls->write(&t->streams[0], &t->mem[0], 0, t->in, STEPS, err);
    cnr_mem *from = &t->mem[0];
    if (!status && CNRI_HAS(cls, copy)) {
        status = cls->copy(&t->streams[0], &t->mem[0], &t->mem[1], STEPS, err);
        from = &t->mem[1];
    }
    if (!status && CNRI_HAS(cls, event_record)) {
        status = cls->event_record(&t->streams[0], &t->event, err);
        if (!status && CNRI_HAS(cls, flush)) cls->flush(&t->streams[0]);
        if (!status && CNRI_HAS(cls, event_wait))
            status = cls->event_wait(&t->streams[1], t->event, err);
        else if (!status) status = cls->sync(&t->streams[0], err);
    }
    if (!status) status = cls->read(&t->streams[1], from, 0, t->out, STEPS, err);
    for (int32_t i = 0; i < 2; i++) {
        const cnr_status synced =
            t->streaming[i] ? cls->sync(&t->streams[i], status ? NULL : err) : CNR_OK;
        if (!status) status = synced;
    }
    return status;
}

/* Frees and closes all that an attempt has, as far as it got. */
static void attempt_end(attempt *t, const cnr_device_class *cls) {
    if (t->event && CNRI_HAS(cls, event_free)) cls->event_free(&t->device, t->event);
    for (int32_t i = 0; i < 2; i++)
        if (t->mem[i].handle) cls->free(&t->device, &t->mem[i]);
    for (int32_t i = 0; i < 2; i++)
        if (t->streaming[i]) cls->stream_close(&t->streams[i]);
    if (t->open) cls->close(&t->device);
}

/* True if a failure of the host's allocation n is reported. *counted: number of allocations. */
static bool is_said(cnri_judging *j, const char *name, int32_t class_index, int64_t n,
                    int64_t *counted) {
    static attempt t;
    const cnr_device_class *cls = j->descriptor;
    cnr_error err = CNR_ERROR_INIT;
    memset(&t, 0, sizeof t);
    t.device = (cnr_device){.size = sizeof t.device, .index = j->index, .cls = cls, .name = name};
    cnri_pattern(t.in, STEPS, (uint64_t)n + 5);
    const int64_t before = cnri_alloc_count();
    if (n) cnri_alloc_fail_once(n);
    const cnr_status status = attempt_all(&t, cls, class_index, &err);
    *counted = cnri_alloc_count() - before;
    cnri_alloc_fail_at(0);
    bool good = cnri_judging_spoke(j, "a call", status, &err);
    if (good && n == 0) good = cnri_judging_ok(j, "a session", status, &err);
    if (good && !status && memcmp(t.in, t.out, STEPS) != 0)
        good =
            cnri_judging_fail(j, "no call and no sync says that anything failed, and the bytes are "
                                 "wrong");
    attempt_end(&t, cls);
    return good;
}

/* Judges that when each allocation fails once, errors are reported and nothing leaks. False: a
 * finding says why it isn't so. */
bool cnri_judge_starved(cnri_judging *j) {
    cnri_bay b = {0};
    int64_t all = 0, ignored;
    if (!cnri_bay_open(&b, j, 0)) {
        cnri_bay_close(&b);
        return false;
    }
    const int32_t class_index = b.memory_class;
    cnri_bay_close(&b);
    cnri_judging_case(j, "all allocations succeed");
    bool good = is_said(j, b.name, class_index, 0, &all);
    for (int64_t n = 1; n <= all && n <= PLACES && good; n++) {
        cnri_judging_case(j, "allocation %lld of %lld fails", (long long)n, (long long)all);
        good = is_said(j, b.name, class_index, n, &ignored);
    }
    return good && is_said(j, b.name, class_index, 0, &all);
}

/* ---- two threads ---- */

enum { SHARE = 1 << 20, LAPS = 24 };

/* A thread that works on a stream of its own. */
typedef struct runner {
    cnri_bay *b;
    cnr_stream stream;
    pthread_t thread;
    uint64_t seed;
    uint8_t in[SHARE + 8 * LAPS], out[SHARE];
    char why[400];
} runner;

/* Copies large blocks, so that most of the time is the device's. False: it failed. */
static bool lap(runner *r, uint64_t number, cnr_error *err) {
    const cnr_device_class *cls = r->b->cls;
    const uint64_t n = SHARE - (number * 7919 + r->seed) % 5000;
    const uint8_t *in = r->in + 8 * number;
    cnr_mem mem = {.bytes = n, .memory_class = r->b->memory_class};
    cnr_status status = cls->alloc(&r->b->device, &mem, err);
    if (status) return false;
    status = cls->write(&r->stream, &mem, 0, in, n, err);
    if (!status) status = cls->read(&r->stream, &mem, 0, r->out, n, err);
    const cnr_status synced = cls->sync(&r->stream, status ? NULL : err);
    cls->free(&r->b->device, &mem);
    if (status || synced) return false;
    if (memcmp(in, r->out, n) == 0) return true;
    snprintf(err->text, sizeof err->text,
             "bytes of one stream do not come back while another runs");
    return false;
}

/* Thread: writes and reads LAPS times on a stream of its own and compares; r->why: the first
 * difference or error. */
static void *laps(void *arg) {
    runner *r = arg;
    cnr_error err = CNR_ERROR_INIT;
    bool good = r->b->cls->stream_open(&r->b->device, &r->stream, &err) == CNR_OK;
    const bool open = good;
    cnri_pattern(r->in, sizeof r->in, r->seed);
    for (uint64_t i = 0; i < LAPS && good; i++) good = lap(r, i, &err);
    if (open) r->b->cls->stream_close(&r->stream);
    if (!good) snprintf(r->why, sizeof r->why, "%.380s", *err.text ? err.text : "a call failed");
    return NULL;
}

/* Judges streams in several threads at once. False: a finding says why it isn't so. */
bool cnri_judge_threads(cnri_judging *j) {
    enum { THREADS = 4 };
    cnri_bay b = {0};
    runner *list = cnri_alloc_zero(THREADS * sizeof *list);
    int32_t begun = 0;
    if (!list) return cnri_judging_fail(j, "out of memory");
    cnri_judging_case(j, "%d streams in as many threads", THREADS);
    bool good = cnri_bay_open(&b, j, 0);
    for (int32_t i = 0; i < THREADS && good; i++) {
        list[i].b = &b;
        list[i].stream = (cnr_stream){.size = sizeof list[i].stream, .device = &b.device};
        list[i].seed = 1000 * (uint64_t)i;
        good = pthread_create(&list[i].thread, NULL, laps, &list[i]) == 0;
        if (!good) cnri_judging_fail(j, "no thread could be begun");
        begun += good;
    }
    for (int32_t i = 0; i < begun; i++) pthread_join(list[i].thread, NULL);
    for (int32_t i = 0; i < begun && good; i++)
        if (*list[i].why) good = cnri_judging_fail(j, "%s", list[i].why);
    cnri_bay_close(&b);
    cnri_free(list);
    return good;
}

/* ---- cancel and close, while it works ---- */

/* A device with a few milliseconds of work in its queue. */
typedef struct busy {
    cnri_bay b;
    cnr_mem large;
    cnri_edge from;
} busy;

/* Opens the device and queues the work. False: it failed. */
static bool busy_begin(busy *w, cnri_judging *j) {
    memset(w, 0, sizeof *w);
    if (!cnri_edge_make(&w->from, 4 * CNRI_MIB, 1)) return cnri_judging_fail(j, "out of memory");
    return cnri_bay_begin(&w->b, j) && cnri_bay_alloc(&w->b, &w->large, 4 * CNRI_MIB) &&
           cnri_bay_load(&w->b, &w->b.stream, &w->large, w->from.at, 8);
}

/* Frees the memories and closes the device and the stream. */
static void busy_end(busy *w) {
    cnri_bay_free(&w->b, &w->large);
    cnri_bay_close(&w->b);
    cnri_edge_free(&w->from);
}

/* Judges that work that is cancelled meanwhile ends with its error. False: a finding says why it
 * isn't so. */
bool cnri_judge_cancel(cnri_judging *j) {
    static busy w;
    bool good = true;
    for (int32_t turn = 0; turn < 3 && good; turn++) {
        cnr_error err = CNR_ERROR_INIT;
        cnri_judging_case(j, "cancelled while it works, round %d", (int)turn);
        good = busy_begin(&w, j);
        __atomic_store_n(&w.b.cancel, 1, __ATOMIC_RELAXED);
        const cnr_status status = good ? w.b.cls->sync(&w.b.stream, &err) : CNR_OK;
        if (good && status != CNR_E_CANCELLED) good = cnri_judging_ok(j, "sync", status, &err);
        else good = good && cnri_judging_spoke(j, "sync", status, &err);
        if (w.b.has_stream) w.b.cls->stream_close(&w.b.stream);
        w.b.has_stream = false;
        busy_end(&w);
    }
    return good;
}

/* Waits, so that a thread left running can do harm while someone looks. */
static void give_time(const cnri_bay *b) {
    enum { GRACE_NS = 20000000 };
    if (cnri_bay_queues(b)) cnri_host.wait_until(cnri_now_ns() + GRACE_NS);
}

bool cnri_judge_busy_close(cnri_judging *j) {
    static busy w;
    bool good = true;
    for (int32_t turn = 0; turn < 4 && good; turn++) {
        cnri_judging_case(j, "a stream that is closed while it works, round %d", (int)turn);
        good = busy_begin(&w, j);
        if (w.b.has_stream) w.b.cls->stream_close(&w.b.stream);
        w.b.has_stream = false;
        cnri_edge_free(&w.from); /* whoever still reads it dies of it */
        give_time(&w.b);
        busy_end(&w);
    }
    return good;
}

/* ---- fork ---- */

/* True if the device still copies data correctly. */
static bool round_trip(cnri_bay *b) {
    uint8_t in[512], out[512] = {0};
    cnr_mem mem = {0};
    cnri_pattern(in, sizeof in, 99);
    const bool good = cnri_bay_alloc(b, &mem, sizeof in) &&
                      cnri_bay_write(b, &b->stream, &mem, 0, in, sizeof in) &&
                      cnri_bay_read(b, &b->stream, &mem, 0, out, sizeof out) &&
                      cnri_bay_sync(b, &b->stream);
    cnri_bay_free(b, &mem);
    if (!good) return false;
    return memcmp(in, out, sizeof in) == 0 || cnri_judging_fail(b->j, "bytes do not come back");
}

/* Waits for the child; returns how it ended, 0: well; else the signal, or 1. */
static int wait_for(pid_t child) {
    int state = 0;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {}
    return WIFSIGNALED(state) ? WTERMSIG(state) : WEXITSTATUS(state) != 0;
}

/* True if a process that forked before it asked for devices can open one. */
static bool opens_in_child(cnri_judging *j) {
    const pid_t child = fork();
    if (child < 0) return cnri_judging_fail(j, "no process could be begun");
    if (child == 0) {
        cnri_bay b = {0};
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* who hangs ends with us, whom the time limit kills */
        const bool good = cnri_bay_begin(&b, j) && round_trip(&b);
        cnri_bay_close(&b);
        _exit(good ? 0 : 1);
    }
    const int how = wait_for(child);
    if (how == 0) return true;
    return cnri_judging_fail(j,
                             "a process that was forked before devices were asked for can't use "
                             "one: it %s",
                             how == 1 ? "failed" : strsignal(how));
}

/* Judges that the device works on beside child processes that end or open it. False: a finding says
 * why it isn't so. */
bool cnri_judge_fork(cnri_judging *j) {
    static busy w;
    cnri_judging_case(j, "opened in a child");
    bool good = opens_in_child(j);
    for (int32_t turn = 0; turn < 3 && good; turn++) {
        cnri_judging_case(j, "a child that ends at once, while the device works");
        good = busy_begin(&w, j);
        const pid_t child = good ? fork() : -1;
        if (child == 0) _exit(0);
        if (good && child < 0) good = cnri_judging_fail(j, "no process could be begun");
        if (child > 0) wait_for(child);
        good = good && cnri_bay_sync(&w.b, &w.b.stream) && round_trip(&w.b);
        busy_end(&w);
    }
    return good;
}
