/* Calls of `parallel` that overlap: an item of the first thread is stopped at a moment drawn by
 * chance, anywhere within it, until a second thread has computed other items. Memory that items
 * share without a lock is then overwritten at once, while threads that run freely rarely meet in
 * small cases.
 *
 *     first thread   item 0 | item 1 ..stopped....................... rest of item 1 | item 2
 *     second thread                            item n-1 | item n-2
 *
 * A timer's signal stops the first thread, or, where the processor can do that, the trap behind a
 * drawn number of single instructions: items may take less time than a signal is late. An item
 * that holds a lock which the second thread waits for is let go after a while. */
#define _GNU_SOURCE
#include "judge/trial.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    ALL_STOPS = 150,        /* most stops in a process: what is shared was met long before */
    STOPS = 6,              /* most items that are stopped in one call */
    ITEMS = 2,              /* items that the second thread computes meanwhile */
    AHEAD_NS = 40000,       /* from setting the timer to the signal */
    LATE_NS = 4000,         /* a signal comes so late, about */
    MOST_STEPS = 4096,      /* most single instructions before a stop */
    PATIENCE_NS = 300000000 /* an item that is stopped for longer holds a lock */
};

/* The call under way. The first thread and the second take items by their flags. */
static struct {
    pid_t process, thread; /* those of the first thread, for which these were made */
    sem_t go;              /* wakes the second thread */
    timer_t timer;
    void (*fn)(void *arg, int64_t i, int32_t thread);
    void *arg;
    int64_t n;
    atomic_uchar *taken;
    atomic_int wanted, done; /* numbers of requests to the second thread, and of those it met */
    volatile int64_t steps;  /* instructions before the stop; negative: there is none */
} call;

/* Time of the system, whatever clock a plugin puts in force. */
static uint64_t ns_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Computes up to `most` items from the last one down that nobody has taken. */
static void compute_last(int most) {
    for (int64_t i = call.n - 1; i >= 0 && most > 0; i--) {
        if (atomic_exchange(&call.taken[i], 1)) continue;
        call.fn(call.arg, i, 1);
        most--;
    }
}

/* The second thread: meets one request after another, for as long as the process lives. */
static void *serve(void *arg) {
    for (;;) {
        while (sem_wait(&call.go) != 0) continue;
        compute_last(ITEMS);
        atomic_fetch_add(&call.done, 1);
    }
    return arg;
}

/* Waits until the second thread has met all requests, or no longer than `patience` (0: forever). */
static void await_second(uint64_t patience) {
    const uint64_t end = ns_now() + patience;
    while (atomic_load(&call.done) != atomic_load(&call.wanted) && (!patience || ns_now() < end))
        sched_yield();
}

/* The signal's handler: stops the first thread while the second computes. */
static void stop(int signal) {
    (void)signal;
    if (!call.n || atomic_load(&call.done) != atomic_load(&call.wanted)) return;
    atomic_fetch_add(&call.wanted, 1);
    sem_post(&call.go);
    await_second(PATIENCE_NS);
}

#if defined(__x86_64__)
enum { TRAP_FLAG = 0x100 }; /* of the flags register: a trap follows each instruction */

/* The trap's handler: counts instructions, and stops behind the last. */
static void step(int signal, siginfo_t *info, void *context) {
    (void)info;
    if (call.steps-- > 0) return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    stop(signal);
}

/* Lets the processor trap behind each instruction, for a drawn number of them; false: it can't. */
static bool begin_steps(cnri_dice *dice) {
    const int64_t most =
        16 << cnri_dice_below(dice, 9); /* short items are as likely as long ones */
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (sigaction(SIGTRAP, &action, NULL) != 0) return false;
    call.steps = cnri_dice_below(dice, cnr_min(most, MOST_STEPS));
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
    return true;
}

/* Ends the traps, if the item was shorter. */
static void end_steps(void) {
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(uint64_t)TRAP_FLAG);
}
#else
static bool begin_steps(cnri_dice *dice) { return (void)dice, false; }
static void end_steps(void) {}
#endif

/* Makes the second thread of this process, and the timer of this thread; false: there is none. */
static bool get_ready(void) {
    const pid_t process = getpid(), thread = (pid_t)syscall(SYS_gettid);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 4};
    const struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
    pthread_t second;
    if (call.process == process && call.thread == thread) return true;
    event._sigev_un._tid = thread;
    if (sigaction(event.sigev_signo, &action, NULL) != 0 ||
        timer_create(CLOCK_MONOTONIC, &event, &call.timer) != 0)
        return false;
    call.thread = thread;
    if (call.process == process) return true; /* another thread made the second one */
    if (sem_init(&call.go, 0, 0) != 0 || pthread_create(&second, NULL, serve, NULL) != 0)
        return false;
    pthread_detach(second);
    call.process = process;
    return true;
}

/* Sets the timer, waits, and returns so that the signal comes within what takes `length` ns. */
static void aim(cnri_dice *dice, uint64_t length) {
    const uint64_t at = ns_now() + AHEAD_NS;
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)}};
    const uint64_t back = cnri_dice_below(dice, (int64_t)length + LATE_NS);
    timer_settime(call.timer, TIMER_ABSTIME, &when, NULL);
    while (ns_now() + back < at + LATE_NS) continue;
}

/* Ends a call: no signal comes any more, and the second thread is idle. */
static void end_call(void) {
    const struct itimerspec never = {0};
    timer_settime(call.timer, 0, &never, NULL);
    await_second(0);
    call.n = 0;
}

void cnri_overlap_parallel(cnr_stream *stream, int64_t n,
                           void (*fn)(void *arg, int64_t i, int32_t thread), void *arg) {
    static cnri_dice dice;
    static int64_t all;
    atomic_uchar *taken = n > 1 && !call.n && get_ready() ? cnri_alloc_zero((size_t)n) : NULL;
    uint64_t longest = 0;
    (void)stream;
    if (!taken) {
        for (int64_t i = 0; i < n; i++) fn(arg, i, 0);
        return;
    }
    call.fn = fn, call.arg = arg, call.taken = taken, call.n = n;
    for (int64_t i = 0, stops = 0; i < n; i++) {
        const bool stopped = i > 0 && stops < STOPS && all < ALL_STOPS &&
                             (n <= STOPS || cnri_dice_below(&dice, 3) > 0);
        if (atomic_exchange(&taken[i], 1)) continue;
        const uint64_t begin = ns_now();
        all += stopped;
        if (stopped && (stops++ % 3 == 0 || !begin_steps(&dice))) aim(&dice, longest);
        fn(arg, i, 0);
        if (stopped) end_steps();
        else longest = (uint64_t)cnr_max((int64_t)longest, (int64_t)(ns_now() - begin));
    }
    end_call();
    cnri_free(taken);
}
