/* Starts the program again for one judgement, so that a crash or a hang ends only that
 * judgement. */
#define _GNU_SOURCE
#include "judge/judge.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A child process, and the end of its pipe. */
typedef struct child {
    pid_t pid;
    int from;
} child;

static bool cancelled(const cnri_check_options *o) { return o->cancelled && o->cancelled(); }

/* Starts the program with the same words and `--worker WORK`; *c: its process and the pipe of its
 * lines. False: it can't be started. */
static bool begin(const cnri_check_options *o, const char *work, child *c) {
    posix_spawn_file_actions_t actions;
    char program[] = "cnnrun", flag[] = "--worker";
    int ends[2], n = 0;
    char **words = cnri_alloc((size_t)(o->n_words + 4) * sizeof *words);
    if (!words || pipe2(ends, O_CLOEXEC) != 0) {
        cnri_free(words);
        return false;
    }
    words[n++] = program;
    for (int i = 0; i < o->n_words; i++) words[n++] = o->words[i];
    words[n++] = flag;
    words[n++] = (char *)(uintptr_t)work;
    words[n] = NULL;
    bool good = posix_spawn_file_actions_init(&actions) == 0;
    if (good) { /* spawn, not fork: no handler of a driver runs, none of its descriptors go along */
        good = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) == 0;
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
        good = good && posix_spawn_file_actions_addclosefrom_np(&actions, 3) == 0;
#endif
#endif
        good = good && posix_spawn(&c->pid, o->program ? o->program : "/proc/self/exe", &actions,
                                   NULL, words, environ) == 0;
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (!good) close(ends[0]);
    c->from = ends[0];
    cnri_free(words);
    return good;
}

/* Seconds for which a process's first thread could run but had no processor; 0: unknown. */
static double starved_seconds(pid_t pid) {
    char path[40];
    unsigned long long ran = 0, waited = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) return 0;
    const bool read = fscanf(file, "%llu %llu", &ran, &waited) == 2;
    fclose(file);
    return read ? (double)waited * 1e-9 : 0;
}

enum {
    MORE_TIME = 10
}; /* how often a child that other programs kept waiting gets its time again */

/* Calls `hear` for each whole line until the child ends or the check is cancelled. False: it
 * printed nothing for o->timeout seconds, although it had a processor for most of them. */
static bool listen_to(const cnri_check_options *o, const child *c,
                      void (*hear)(void *arg, char *line), void *arg) {
    char buffer[8192];
    size_t n = 0;
    double starved = 0;
    for (int32_t more = 0;; more++) {
        struct pollfd p = {.fd = c->from, .events = POLLIN};
        const int ready = poll(&p, 1, (int)(o->timeout * 1000));
        const double was = starved;
        if (cancelled(o)) return true;
        if (ready >= 0) starved = starved_seconds(c->pid);
        if (ready == 0 && (more >= MORE_TIME || starved - was < o->timeout / 2)) return false;
        if (ready <= 0) continue;
        more = 0;
        const ssize_t got = read(c->from, buffer + n, sizeof buffer - 1 - n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return true;
        for (ssize_t i = 0; i < got; i++) /* a driver's own words may hold any bytes */
            if (!buffer[n + (size_t)i]) buffer[n + (size_t)i] = ' ';
        n += (size_t)got;
        buffer[n] = 0;
        char *line = buffer;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            hear(arg, line);
        }
        n -= (size_t)(line - buffer);
        memmove(buffer, line, n);
        if (n == sizeof buffer - 1) n = 0; /* a line without end is nobody's */
    }
}

/* Waits for the child, killing it first if it never answered (spoke) or the check is cancelled;
 * `why`: how it ended, "" for well. */
static void end(const cnri_check_options *o, const child *c, bool spoke, char *why, size_t room) {
    int state = 0;
    if (!spoke || cancelled(o)) kill(c->pid, SIGKILL);
    close(c->from);
    while (waitpid(c->pid, &state, 0) < 0 && errno == EINTR) {}
    why[0] = 0;
    if (!spoke) snprintf(why, room, "did not end within %g s", o->timeout);
    else if (WIFSIGNALED(state))
        snprintf(why, room, "died of %s (signal %d)", strsignal(WTERMSIG(state)), WTERMSIG(state));
    else if (WEXITSTATUS(state)) snprintf(why, room, "ended with code %d", WEXITSTATUS(state));
}

bool cnri_child_run(const cnri_check_options *o, const char *work,
                    void (*hear)(void *arg, char *line), void *arg, char *why, size_t room) {
    child c;
    if (!begin(o, work, &c)) return false;
    end(o, &c, listen_to(o, &c, hear, arg), why, room);
    return true;
}
