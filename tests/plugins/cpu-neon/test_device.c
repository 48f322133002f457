/* The CPU device: memory, views and their limits, streams, loops from several threads at once. */
#include "plugins/cpu-neon/neoncall.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define N 1000

static cnr_device device;

/* Tests: memory. */
static void memory(void) {
    const cnr_device_class *cls = neon_state.cls;
    cnr_error err = CNR_ERROR_INIT;
    cnr_mem mem = {.bytes = 4096}, part = {0}, other = {.bytes = 100};
    cnr_stream stream = {.size = sizeof stream};
    char text[16] = "";
    is_int(cls->stream_open(&device, &stream, &err), CNR_OK, "a stream opens");
    is_int(cls->alloc(&device, &mem, &err), CNR_OK, "memory is there");
    ok(((uintptr_t)mem.handle & 63) == 0, "and aligned");
    is_int(cls->write(&stream, &mem, 100, "hello", 6, &err), CNR_OK, "written at an offset");
    is_int(cls->view(&device, &mem, 96, 32, &part, &err), CNR_OK, "a part of it");
    is_int(cls->read(&stream, &part, 4, text, 6, &err), CNR_OK, "is read");
    is_text(text, "hello", "and holds what was written");
    ok((char *)cls->map(&stream, &part, 0, &err) == (char *)mem.handle + 96, "mapped in place");
    cls->unmap(&stream, &part, NULL);
    is_int(cls->view(&device, &mem, 4096, 0, &other, &err), CNR_OK, "an empty part at the end");
    is_int(cls->view(&device, &mem, 4090, 7, &other, &err), CNR_E_ARG, "none past the end");
    has_text(err.text, "within", "as it says");
    is_int(cls->view(&device, &mem, UINT64_MAX, 2, &other, &err), CNR_E_ARG, "nor one that wraps");
    is_int(cls->write(&stream, &part, 30, "hello", 6, &err), CNR_E_ARG, "no write past a part");
    is_int(cls->read(&stream, &part, 33, text, 0, &err), CNR_E_ARG, "no read from beyond it");
    is_int(cls->copy(&stream, &mem, &part, 33, &err), CNR_E_ARG, "no copy longer than it");
    is_int(cls->sync(&stream, &err), CNR_OK, "all is done at once");
    cls->unview(&device, &part);
    cls->free(&device, &mem);
    cnr_mem huge = {.bytes = UINT64_MAX - 4096};
    is_int(cls->alloc(&device, &huge, &err), CNR_E_MEMORY, "too much memory is refused");
    cnr_mem none = {.bytes = 0};
    ok(cls->alloc(&device, &none, &err) == CNR_OK && none.handle, "none at all is fine");
    cls->free(&device, &none);
    cls->stream_close(&stream);
}

/* ---- loops ---- */

/* Counts of a parallel loop. */
typedef struct loop {
    int counts[N]; /* plain: every index belongs to one call alone */
    atomic_int inside[4], clashes, calls;
} loop;

/* Task: counts its index. */
static void count(void *arg, int64_t i, int32_t thread) {
    loop *l = arg;
    if (thread < 0 || thread >= device.concurrency || atomic_fetch_add(&l->inside[thread], 1))
        atomic_fetch_add(&l->clashes, 1);
    l->counts[i]++;
    atomic_fetch_add(&l->calls, 1);
    atomic_fetch_sub(&l->inside[thread], 1);
}

/* Loops of all lengths; returns what went wrong. */
static void *many_loops(void *arg) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_stream stream = {.size = sizeof stream};
    static _Thread_local loop l;
    intptr_t bad = 0;
    (void)arg;
    device.cls->stream_open(&device, &stream, &err);
    for (int turn = 0; turn < 300; turn++) {
        const int n = turn * 37 % N;
        memset(&l, 0, sizeof l);
        stream.parallel(&stream, n, count, &l);
        if (atomic_load(&l.calls) != n || atomic_load(&l.clashes)) bad++;
        for (int i = 0; i < N; i++)
            if (l.counts[i] != (i < n)) bad++;
    }
    device.cls->stream_close(&stream);
    return (void *)bad;
}

/* Tests: parallel loops. */
static void loops(void) {
    pthread_t threads[3];
    ok(many_loops(NULL) == NULL, "every index once, no thread number twice at a time");
    for (int t = 0; t < 3; t++) pthread_create(&threads[t], NULL, many_loops, NULL);
    for (int t = 0; t < 3; t++) {
        void *bad;
        pthread_join(threads[t], &bad);
        ok(bad == NULL, "nor when several streams loop at once");
    }
}

/* Each index rests a while, so that every thread has some. */
static void halve(void *arg, int64_t i, int32_t thread) {
    (void)thread;
    volatile float x = 0x1p-126f;
    usleep(200);
    ((float *)arg)[i] = x / 2;
}

/* Workers flush denormals where the caller does, and only then. */
static void float_modes(void) {
    float half[64];
    cnr_error err = CNR_ERROR_INIT;
    cnr_stream stream = {.size = sizeof stream};
    if (neon_state.cls->stream_open(&device, &stream, &err) || !stream.parallel) return;
#if defined(__SSE__)
    for (int flush = 1; flush >= 0; flush--) {
        const unsigned was = __builtin_ia32_stmxcsr();
        int flushed = 0;
        if (flush) __builtin_ia32_ldmxcsr(was | 0x8000u);
        stream.parallel(&stream, 64, halve, half);
        __builtin_ia32_ldmxcsr(was);
        for (int i = 0; i < 64; i++) flushed += half[i] == 0;
        is_int(flushed, flush ? 64 : 0, "denormals on all threads as on the caller's");
    }
#else
    stream.parallel(&stream, 64, halve, half);
#endif
    neon_state.cls->stream_close(&stream);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_device_info info = {.size = sizeof info};
    neon_open();
    neon_use_isa(0);
    is_int(neon_state.cls->count(&err), 1, "one device");
    is_int(neon_state.cls->describe(0, &info, &err), CNR_OK, "is described");
    ok(info.score > 0 && info.name[0] && info.key[0], "with what it has");
    ok(info.concurrency >= 1 && info.concurrency <= sysconf(_SC_NPROCESSORS_CONF),
       "no more threads than cores");
    for (int32_t threads = 1; threads <= 4; threads += 3) {
        cnr_device_options options = {.size = sizeof options, .threads = threads};
        device = (cnr_device){.size = sizeof device, .cls = neon_state.cls, .name = "cpu"};
        is_int(neon_state.cls->open(&device, &options, &err), CNR_OK, "opens");
        is_int(device.concurrency, threads, "with the threads asked for");
        memory();
        loops();
        float_modes();
        neon_state.cls->close(&device);
    }
    { /* an allocation fails: an error, and nothing is left */
        device = (cnr_device){.size = sizeof device, .cls = neon_state.cls, .name = "cpu"};
        cnri_alloc_fail_at(1);
        is_int(neon_state.cls->open(&device, NULL, &err), CNR_E_MEMORY, "no memory, no device");
        cnri_alloc_fail_at(0);
        neon_state.cls->close(&device);
    }
    return op_done();
}
