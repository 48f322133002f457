/* The module that links MPI. Sums use MPI_Iallreduce. MPI libraries transfer data only inside their
 * functions, so a thread calls MPI_Test while sums are pending, as do waiting threads. One lock
 * guards all calls (MPI_THREAD_SERIALIZED). Waiting threads sleep briefly instead of spinning:
 * there may be as many ranks as cores. */
#define _GNU_SOURCE
#include "group.h"
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_SUMS = 1024, SPINS = 500, PAUSE_NS = 30000, GIVE_UP_NS = 500000000, TURN_NS = 100000 };

/* A sum that is under way. */
typedef struct sum {
    void *data; /* NULL: the entry is free */
    MPI_Request request;
    int code; /* MPI's error code, when done */
    int done;
} sum;

static const cnr_host *host;
static struct {
    MPI_Comm all;
    pthread_mutex_t lock;
    pthread_cond_t more; /* signals new sums, or the end */
    pthread_t thread;
    sum sums[MOST_SUMS];
    int32_t under_way, has_thread, ends;
    const volatile int32_t *cancel;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* Fills err from MPI's error code; MPI_SUCCESS: CNR_OK. */
static cnr_status told(int code, const char *what, cnr_error *err) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (code == MPI_SUCCESS) return CNR_OK;
    MPI_Error_string(code, text, &n);
    return host->fail(err, CNR_E_IO, "group mpi", "%s: %s", what, text);
}

/* Sleeps for PAUSE_NS. */
static void pause_a_little(void) {
    const struct timespec pause = {0, PAUSE_NS};
    nanosleep(&pause, NULL);
}

/* Monotonic time in ns. */
static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- progress ---- */

/* Asks whether the sum has arrived; call it with the lock held. */
static void test(sum *s) {
    if (!s->data || s->done) return;
    s->code = MPI_Test(&s->request, &s->done, MPI_STATUS_IGNORE);
    if (s->code != MPI_SUCCESS) s->done = 1;
    g.under_way -= s->done != 0;
}

/* Lets all sums advance; call it with the lock held. */
static void test_all(void) {
    for (int i = 0; i < MOST_SUMS && g.under_way > 0; i++) test(&g.sums[i]);
}

/* Asks for short turns of this thread, which Linux from 6.12 on gives at once. Else a thread that
 * computes keeps the core for some milliseconds, in which no sum advances. Sleeps follow each turn,
 * so that little of the core is taken. Without this, sums take longer. */
static void take_short_turns(void) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } of; /* struct sched_attr, which not every C library has */
    if (syscall(SYS_sched_getattr, 0, &of, sizeof of, 0) != 0 || of.policy != SCHED_OTHER) return;
    of.size = sizeof of;
    of.runtime = TURN_NS;
    (void)syscall(SYS_sched_setattr, 0, &of, 0);
}

/* Thread: lets MPI go on with the sums that are under way, until the group ends. */
static void *progress(void *unused) {
    (void)unused;
    take_short_turns();
    pthread_mutex_lock(&g.lock);
    while (!g.ends) {
        if (g.under_way == 0) {
            pthread_cond_wait(&g.more, &g.lock);
            continue;
        }
        test_all();
        pthread_mutex_unlock(&g.lock);
        pause_a_little();
        pthread_mutex_lock(&g.lock);
    }
    pthread_mutex_unlock(&g.lock);
    return NULL;
}

/* Waits for *done. Ends if the process is asked to, since another rank may have ended. */
static cnr_status wait_for(sum *s, const char *what, cnr_error *err) {
    uint64_t asked = 0;
    for (int i = 0;; i++) {
        pthread_mutex_lock(&g.lock);
        test(s);
        const int done = s->done;
        pthread_mutex_unlock(&g.lock);
        if (done) return told(s->code, what, err);
        if (i < SPINS) sched_yield();
        else pause_a_little();
        if (!g.cancel || !__atomic_load_n(g.cancel, __ATOMIC_RELAXED)) continue;
        const uint64_t now = monotonic_ns();
        if (!asked) asked = now;
        else if (now - asked > GIVE_UP_NS)
            return host->fail(err, CNR_E_CANCELLED, "group mpi",
                              "%s: this process is to end, and another one of the job does not "
                              "answer: it has ended, or hangs",
                              what);
    }
}

/* ---- calls ---- */

/* The entry of a sum by its data; NULL: none. */
static sum *row_of(const void *data) {
    for (int i = 0; i < MOST_SUMS; i++)
        if (g.sums[i].data == data) return &g.sums[i];
    return NULL;
}

/* Begins to sum n numbers over all processes. */
static cnr_status sum_begin(void *data, int64_t n, int32_t dtype, cnr_error *err) {
    int code = MPI_SUCCESS;
    if (n > INT32_MAX)
        return host->fail(err, CNR_E_LIMIT, "group mpi", "a sum of more than 2147483647 numbers");
    pthread_mutex_lock(&g.lock);
    sum *s = row_of(NULL);
    if (s) {
        *s = (sum){.data = data};
        code = MPI_Iallreduce(MPI_IN_PLACE, data, (int)n, dtype == CNR_f64 ? MPI_DOUBLE : MPI_FLOAT,
                              MPI_SUM, g.all, &s->request);
        if (code) s->data = NULL;
        else g.under_way++;
        pthread_cond_signal(&g.more);
    }
    pthread_mutex_unlock(&g.lock);
    return s ? told(code, "a sum", err)
             : host->fail(err, CNR_E_LIMIT, "group mpi", "more than %d sums at a time",
                          (int)MOST_SUMS);
}

/* Lets all sums advance that are under way. */
static void advance(void) {
    pthread_mutex_lock(&g.lock);
    test_all();
    pthread_mutex_unlock(&g.lock);
}

/* Waits for that sum. */
static cnr_status sum_wait(void *data, cnr_error *err) {
    pthread_mutex_lock(&g.lock);
    sum *s = row_of(data);
    pthread_mutex_unlock(&g.lock);
    if (!s) return CNR_OK; /* another part of it was waited for already */
    const cnr_status status = wait_for(s, "a sum", err);
    pthread_mutex_lock(&g.lock);
    if (s->done) s->data = NULL;
    pthread_mutex_unlock(&g.lock);
    return status;
}

/* Sends `bytes` bytes from process 0 to all, in pieces of at most 1 GiB. */
static cnr_status broadcast(void *data, uint64_t bytes, cnr_error *err) {
    const uint64_t most = 1u << 30;
    for (uint64_t at = 0; at < bytes; at += most) {
        const int n = (int)(bytes - at < most ? bytes - at : most);
        sum s = {.data = data};
        pthread_mutex_lock(&g.lock);
        const int code = MPI_Ibcast((char *)data + at, n, MPI_BYTE, 0, g.all, &s.request);
        g.under_way += code == MPI_SUCCESS;
        pthread_mutex_unlock(&g.lock);
        CNR_TRY(told(code, "a broadcast", err));
        CNR_TRY(wait_for(&s, "a broadcast", err));
    }
    return CNR_OK;
}

/* Waits until all processes have come here. */
static cnr_status barrier(cnr_error *err) {
    sum s = {.data = &s};
    pthread_mutex_lock(&g.lock);
    const int code = MPI_Ibarrier(g.all, &s.request);
    g.under_way += code == MPI_SUCCESS;
    pthread_mutex_unlock(&g.lock);
    const cnr_status status = told(code, "a barrier", err);
    return status ? status : wait_for(&s, "a barrier", err);
}

static void abort_all(int32_t code) { MPI_Abort(MPI_COMM_WORLD, code); }

/* Ends the thread, then MPI. */
static void close_all(void) {
    pthread_mutex_lock(&g.lock);
    g.ends = 1;
    pthread_cond_signal(&g.more);
    pthread_mutex_unlock(&g.lock);
    if (g.has_thread) pthread_join(g.thread, NULL);
    MPI_Finalize();
}

/* Starts MPI and the thread; *rank and *ranks: this process and how many. CNR_E_STATE: MPI runs
 * already. */
static cnr_status open_all(const cnr_group_options *options, int32_t *rank, int32_t *ranks,
                           cnr_error *err) {
    int level = 0, there = 0, own = 0, n = 0;
    MPI_Initialized(&there);
    if (there)
        return host->fail(err, CNR_E_STATE, "group mpi", "this process uses MPI for other work");
    setenv("OMPI_MCA_opal_signal", "", 0); /* our own handlers report crashes */
    /* Rabenseifner's sums halve what each rank sends and adds. Open MPI's own choice for 2 and 3
     * ranks sends everything to one of them and back: a step of LeNet-5 took 9.3 ms, not 7.9. */
    setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0);
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
    if (!code) code = MPI_Comm_dup(MPI_COMM_WORLD, &g.all);
    if (!code) code = MPI_Comm_set_errhandler(g.all, MPI_ERRORS_RETURN);
    if (!code) code = MPI_Comm_rank(g.all, &own);
    if (!code) code = MPI_Comm_size(g.all, &n);
    if (code) return told(code, "MPI can't be started", err);
    g.cancel = options->cancel;
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); /* makes sleeps as short as requested */
    *rank = own;
    *ranks = n;
    g.has_thread = n > 1 && level >= MPI_THREAD_SERIALIZED &&
                   pthread_create(&g.thread, NULL, progress, NULL) == 0;
    return CNR_OK;
}

static const group_calls calls = {open_all, sum_begin, sum_wait,  broadcast,
                                  barrier,  abort_all, close_all, advance};

CNR_EXPORT const group_calls *group_calls_get(const cnr_host *with);
/* Returns the functions of the group, and keeps the host; the plugin calls it once the library is
 * loaded. */
const group_calls *group_calls_get(const cnr_host *with) {
    host = with;
    return &calls;
}
