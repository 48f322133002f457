/* Runs many hostile cases in child processes: each must end in time, with little memory, without a
 * crash. After a crash a new child continues with the next case. */
#ifndef CNRT_EACH_H
#define CNRT_EACH_H

#include "tests/tap.h"
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Processor time, so that a busy machine has no effect; the wall time may be twelve times that.
 */
enum { EACH_SECONDS = 5 };

/* Cases that run in processes of their own, each by one(arg, i). */
typedef struct each {
    int (*one)(void *arg, int i); /* > 0: accepted, 0: refused */
    void *arg;
    uint64_t addresses; /* 0: no limit; sanitisers have none, since they reserve all addresses */
    long grown;         /* MB by which all cases together may enlarge the child; 0: no limit */
} each;

/* How many cases ended, were taken, and went wrong. */
typedef struct each_result {
    int done, taken, bad;
} each_result;

static uint64_t each_state;

__attribute__((unused)) static uint64_t each_dice(uint64_t sides) {
    uint64_t z = (each_state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return sides ? (z ^ (z >> 31)) % sides : 0;
}

/* Limits the seconds of a case. */
static void each_limit(int seconds) {
    const struct itimerval t = {{0, 0}, {seconds * (TAP_SANITISED ? 4 : 1), 0}};
    setitimer(ITIMER_PROF, &t, NULL);
    alarm((unsigned)seconds * 12);
}

/* The child: runs the `many` cases from `from` on, and reports the end of each to the pipe `to`. */
static void each_child(const each *e, int from, int many, int to) {
    struct rusage before, after;
    if (e->addresses && !TAP_SANITISED) {
        const struct rlimit limit = {(rlim_t)e->addresses, (rlim_t)e->addresses};
        setrlimit(RLIMIT_AS, &limit);
    }
    getrusage(RUSAGE_SELF, &before);
    for (int i = from; i < many; i++) {
        int told[2] = {i, 0};
        each_limit(EACH_SECONDS);
        told[1] = e->one(e->arg, i);
        each_limit(0);
        if (write(to, told, sizeof told) != sizeof told) _exit(5);
    }
    getrusage(RUSAGE_SELF, &after);
    const long grown = (after.ru_maxrss - before.ru_maxrss) / 1024;
    _exit(!TAP_SANITISED && e->grown && grown > e->grown ? 6 : 0);
}

/* Tells how case i went wrong, by the status of its process. */
static void each_tell(int i, int status) {
    if (!WIFSIGNALED(status)) {
        note("case %d: code %d%s", i, WEXITSTATUS(status),
             WEXITSTATUS(status) == 6 ? ": more memory than it is worth" : "");
        return;
    }
    const int number = WTERMSIG(status);
    note("case %d: %s", i,
         number == SIGPROF || number == SIGALRM ? "took too long" : strsignal(number));
}

__attribute__((unused)) static each_result each_run(const each *e, int many) {
    each_result r = {0, 0, 0};
    while (r.done < many && r.bad < 5) {
        int ends[2], told[2], status = 0;
        if (pipe(ends) != 0) exit(1);
        fflush(stdout);
        const pid_t pid = fork();
        if (pid == 0) {
            close(ends[0]);
            each_child(e, r.done, many, ends[1]);
        }
        close(ends[1]);
        while (read(ends[0], told, sizeof told) == sizeof told) {
            r.done = told[0] + 1;
            r.taken += told[1] > 0;
        }
        close(ends[0]);
        waitpid(pid, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
        each_tell(r.done, status);
        r.bad++;
        r.done++;
    }
    return r;
}

#endif
