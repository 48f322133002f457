/* A sweep from an application or a script: the program's command in a process of its own. */
#define _GNU_SOURCE
#include "group/group.h"
#include "work/work.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LOOK_MS = 100, SAID_BYTES = 64 << 10, MOST_PATH = 4096 };

typedef CNRI_VEC(char *) words;

/* Appends a word, which the list then owns; false: no memory. */
static bool add(words *w, char *own) {
    char **slot = own ? cnri_push(w) : NULL;
    if (slot) *slot = own;
    else cnri_free(own);
    return slot != NULL;
}

/* Adds "KEY VALUE" unless value is NULL. False: out of memory. */
static bool add_text(words *w, const char *key, const char *value) {
    return !value || (add(w, cnri_strdup(key)) && add(w, cnri_strdup(value)));
}

/* Adds "KEY VALUE" unless value is 0 or less. False: out of memory. */
static bool add_whole(words *w, const char *key, int64_t value) {
    return value <= 0 ||
           (add(w, cnri_strdup(key)) && add(w, cnri_format("%lld", (long long)value)));
}

/* Adds "KEY VALUE" unless value is 0 or less. False: out of memory. */
static bool add_real(words *w, const char *key, double value) {
    char number[40];
    if (!(value > 0)) return true;
    cnri_print_double(number, sizeof number, value);
    return add_text(w, key, number);
}

/* The caller's words stand behind "--", so that none of them is taken for an option. False: it
 * failed. */
static bool add_all(words *w, const cnr_sweep_options *o) {
    bool good = add(w, cnri_strdup("cnnrun")) && add(w, cnri_strdup("sweep")) &&
                add(w, cnri_strdup("--json")) && add_text(w, "--group", "none");
    for (int64_t i = 0; i < o->n_grid && good; i++) good = add_text(w, "--grid", o->grid[i]);
    good = good && add_text(w, "--seeds", o->seeds) && add_text(w, "--output", o->output) &&
           add_whole(w, "--jobs", o->jobs) && add_whole(w, "--random", o->random) &&
           add_whole(w, "--random-seed", (int64_t)o->random_seed) &&
           add_real(w, "--seconds", o->seconds) && add_real(w, "--joules", o->joules) &&
           add_text(w, "--pictures", o->pictures) &&
           (!o->resume || add(w, cnri_strdup("--resume"))) &&
           (!o->trust || add(w, cnri_strdup("--trust"))) && add_text(w, "--", o->study);
    for (int64_t i = 0; i < o->n_words && good; i++) good = add(w, cnri_strdup(o->words[i]));
    return good && cnri_push(w); /* the last one is NULL */
}

/* Path of the program to start: o->program, else this process's program if it is cnnrun, else
 * "cnnrun". self: room for the path. */
static const char *program_of(const cnr_sweep_options *o, char self[MOST_PATH]) {
    const ssize_t n = readlink("/proc/self/exe", self, MOST_PATH - 1);
    self[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(self, '/');
    if (o->program) return o->program;
    return slash && strcmp(slash + 1, "cnnrun") == 0 ? self : "cnnrun";
}

/* A child process and what it printed. */
typedef struct child {
    pid_t pid;
    int from[2]; /* its output and its errors */
    cnri_text said[2];
} child;

/* Starts a program with pipes for its stdout and stderr, and /dev/null as stdin. */
static cnr_status spawn(child *c, const char *program, words *w, cnr_error *err) {
    int ends[2][2];
    posix_spawn_file_actions_t actions;
    int failed = pipe2(ends[0], O_CLOEXEC) ? errno : 0;
    if (!failed && pipe2(ends[1], O_CLOEXEC)) {
        failed = errno;
        close(ends[0][0]);
        close(ends[0][1]);
    }
    if (failed) return cnri_fail(err, CNR_E_IO, "sweep", "no pipe: %s", strerror(failed));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[0][1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1][1], STDERR_FILENO);
    failed = posix_spawnp(&c->pid, program, &actions, NULL, w->at, environ);
    posix_spawn_file_actions_destroy(&actions);
    for (int i = 0; i < 2; i++) {
        close(ends[i][1]);
        c->from[i] = ends[i][0];
        if (failed) close(ends[i][0]);
    }
    if (!failed) return CNR_OK;
    return cnri_fail(err, CNR_E_NOT_FOUND, program,
                     "can't be started for the sweep: %s; name the program cnnrun",
                     strerror(failed));
}

/* Appends some output of the child to c->said[i], which keeps only the last part; false: the pipe
 * is closed. */
static bool read_some(child *c, int i) {
    char some[4096];
    const ssize_t n = read(c->from[i], some, sizeof some);
    if (n < 0 && errno == EINTR) return true;
    if (n > 0 && c->said[i].n > SAID_BYTES) { /* the end is what tells */
        memmove(c->said[i].at, c->said[i].at + SAID_BYTES / 2, c->said[i].n - SAID_BYTES / 2);
        c->said[i].n -= SAID_BYTES / 2;
    }
    if (n > 0) cnri_text_bytes(&c->said[i], some, (size_t)n);
    return n > 0;
}

/* Collects the child's output until it has ended; returns its wait status. *stopped: the observer
 * ended it. */
static int listen(child *c, const cnr_observer *observer, bool *stopped) {
    const cnr_progress p = {.size = sizeof p, .what = "sweep"};
    bool open[2] = {true, true};
    int how = 0;
    while (open[0] || open[1]) {
        struct pollfd ready[2];
        for (int i = 0; i < 2; i++)
            ready[i] = (struct pollfd){.fd = open[i] ? c->from[i] : -1, .events = POLLIN};
        if (poll(ready, 2, LOOK_MS) > 0)
            for (int i = 0; i < 2; i++)
                if (open[i] && ready[i].revents) open[i] = read_some(c, i);
        if (*stopped || cnri_notify_progress(observer, &p)) continue;
        *stopped = true;
        kill(c->pid, SIGTERM);
    }
    for (int i = 0; i < 2; i++) close(c->from[i]);
    while (waitpid(c->pid, &how, 0) < 0 && errno == EINTR) {}
    return how;
}

/* Number behind a key in JSON text; -1: none. */
static double number_in(const cnri_text *said, const char *key) {
    const char *at = said->n ? strstr(said->at, key) : NULL, *end;
    double value = 0;
    return at && cnri_parse_double(at + strlen(key), &end, &value) ? value : -1;
}

/* Fills the result with numbers of the JSON that the child printed. */
static void read_result(const cnri_text *said, cnr_sweep_result *out) {
    out->points = (int64_t)number_in(said, "\"points\":");
    out->done = (int64_t)number_in(said, "\"done\":");
    out->failed = (int64_t)number_in(said, "\"failed\":");
    out->left = (int64_t)number_in(said, "\"left\":");
    out->seconds = number_in(said, "\"seconds\":");
}

/* Fails with what the command said last, without its own name. */
static cnr_status pass_error(child *c, cnr_error *err) {
    static const char name[] = "cnnrun sweep: ";
    cnri_text *said = &c->said[1];
    while (said->n && strchr("\r\n ", said->at[said->n - 1])) said->at[--said->n] = 0;
    const char *text = said->n ? said->at : "it ended without a result";
    for (const char *at; (at = strstr(text, name)) != NULL;) text = at + sizeof name - 1;
    return cnri_fail(err, CNR_E_STATE, "sweep", "%.*s", (int)strcspn(text, "\n"), text);
}

/* Runs the sweep in a child process, the command `sweep` of the program, and reads its result. */
static cnr_status run(const cnr_sweep_options *o, const cnr_observer *observer,
                      cnr_sweep_result *out, cnr_error *err) {
    char self[MOST_PATH];
    words w = {0};
    child c = {.pid = -1};
    bool stopped = false;
    cnr_status status =
        add_all(&w, o) ? spawn(&c, program_of(o, self), &w, err) : cnri_out_of_memory(err, "sweep");
    if (!status) {
        const int how = listen(&c, observer, &stopped);
        read_result(&c.said[0], out);
        if (stopped) status = cnri_fail(err, CNR_E_CANCELLED, o->output, "stopped; resume goes on");
        else if (!WIFEXITED(how) || out->points < 0) status = pass_error(&c, err);
    }
    for (int i = 0; i < 2; i++) cnri_text_free(&c.said[i]);
    for (int32_t i = 0; i < w.n; i++) cnri_free(w.at[i]);
    cnri_vec_free(&w);
    return status;
}

cnr_status cnr_sweep(const cnr_sweep_options *options, const cnr_observer *observer,
                     cnr_sweep_result *out, cnr_error *err) {
    cnr_sweep_options o;
    cnr_sweep_result got = {.size = sizeof got};
    CNRI_COPY_OPTIONS(o, options);
    cnr_status status = cnri_require_arguments(err, "options.study", o.study, "options.output",
                                               o.output, "out", out, NULL);
    if (!status) status = CNRI_CHECK_RESULT_SIZE(out, got, err);
    /* Of several processes the first one runs it for all. */
    if (!status && cnri_group_rank() == 0) status = run(&o, observer, &got, err);
    if (!status) status = cnri_group_broadcast(&got, sizeof got, err);
    if (!status) *out = got;
    return status;
}
