/* cnnrun sweep: runs a study at many points, each in a process of its own. */
#define _GNU_SOURCE
#include "cli/sweep.h"
#include "group/group.h"
#include "people/people.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define IN_POINT "CNNRUN_IN_SWEEP" /* an environment variable of the processes of points */

enum { MOST_JOBS = 256, SAID_BYTES = 64 << 10, LOOK_MS = 100, MOST_RESULT = 16 << 20 };

/* Options of sweep. */
typedef struct sweep {
    cnri_words grid;
    const char *seeds, *output, *metric, *pictures;
    int64_t random, random_seed, jobs, retries;
    double seconds, joules;
    bool resume;
    int64_t point; /* in a child: number of the point to run; else -1 */
} sweep;
/* A row of the table of options. */
#define ROW(member, name, ...) CNRI_OPTION(sweep, member, name, __VA_ARGS__)
static const cnri_option options[] =
    {ROW(grid, "--grid", "NAME=VALUES",
         "values of a parameter: A,B,C, log:LOW:HIGH:N or lin:LOW:HIGH:N (repeatable)"),
     ROW(seeds, "--seeds", "LIST", "each point with these seeds: 1..5 or 1,2,7 (1)"),
     ROW(random, "--random", "N", "N points drawn from the grid's ranges and lists, not all of it",
         .max = 1e6),
     ROW(random_seed, "--random-seed", "N", "other points (1)", .max = 1e15),
     ROW(output, "--output", "DIR", "where results go", .letter = 'o', .wanted = true),
     ROW(jobs, "--jobs", "N", "processes at a time, which share the processors (1)", .min = 1,
         .max = MOST_JOBS),
     ROW(retries, "--retries", "N", "how often a point that failed is run again (1)", .max = 100),
     ROW(resume, "--resume", NULL, "run only the points that DIR has no results of"),
     ROW(seconds, "--seconds", "S", "begin no more points after so long", .min = 1e-3, .max = 1e9),
     ROW(joules, "--joules", "J", "begin no more once the results named joules add up to this",
         .min = 1e-9, .max = 1e15),
     ROW(metric, "--metric", "NAME", "draw this result alone (all)"),
     ROW(pictures, "--pictures", "KIND", "png, svg or pdf (png)"),
     ROW(point, "--point", "N", NULL, .min = -1, .max = 1e6)};
#undef ROW

/* A child that runs a point. */
typedef struct job {
    pid_t pid;
    int from; /* descriptor of its output */
    int64_t point, tries;
    cnri_text said; /* the last part of its output */
} job;

/* A sweep that is under way. */
typedef struct state {
    cnri_call *call;
    const sweep *s;
    cnri_sweep_axes axes;
    int64_t n, next, done, failed, had; /* had: number of results from earlier runs */
    double joules;
    uint64_t begun_ns;
    CNRI_VEC(job) running;
    CNRI_VEC(int64_t) again; /* points to run again, in turn, and how often each was tried */
} state;

/* ---- points and their files ---- */

/* The file of a point, "DIR/points/NAME.json", and the begin of its line. */
typedef struct place {
    char *name, *path;
    cnri_text head;
} place;

/* Frees a point's name, path and text. */
static void leave(place *p) {
    cnri_free(p->name);
    cnri_free(p->path);
    cnri_text_free(&p->head);
}

/* Finds name, path and arguments of a point. */
static cnr_status place_of(const state *t, int64_t point, place *out, cnr_error *err) {
    cnri_lua_named *values = cnri_alloc((size_t)(t->axes.n + 1) * sizeof *values);
    cnri_drawn *room = cnri_alloc((size_t)(t->axes.n + 1) * sizeof *room);
    *out = (place){0};
    if (values && room) {
        cnri_point(&t->axes, t->s->random, (uint64_t)t->s->random_seed, point, values, room);
        cnri_text_add(&out->head, "{\"point\":");
        if (cnri_point_json(values, &out->head) && (out->name = cnri_point_name(values)))
            out->path = cnri_format("%s/points/%s.json", t->s->output, out->name);
    }
    cnri_free(values);
    cnri_free(room);
    return out->path ? CNR_OK : cnri_out_of_memory(err, "sweep");
}

/* The line of a point that was run, for cnri_free; NULL: it was not run. */
static char *result_of(const place *p) {
    char *text = NULL;
    size_t bytes;
    cnr_error none;
    if (cnri_read_file(p->path, MOST_RESULT, &text, &bytes, &none) != CNR_OK) return NULL;
    if (bytes > p->head.n && strncmp(text, p->head.at, p->head.n) == 0 && text[bytes - 1] == '\n')
        return text;
    cnri_free(text);
    return NULL;
}

/* Where the result of that name stands in a point's line, behind the point's own values; NULL:
 * it does not. */
static const char *find_result(const place *p, const char *line, const char *name) {
    char *word = cnri_format("\"%s\":", name);
    const char *at = word ? strstr(line + p->head.n, word) : NULL;
    if (at) at += strlen(word);
    cnri_free(word);
    return at;
}

/* Joules in a point's result line; 0: none. */
static double joules_in(const place *p, const char *line) {
    const char *at = find_result(p, line, "joules"), *end;
    double value = 0;
    return at && cnri_parse_double(at, &end, &value) ? value : 0;
}

/* Writes a text to a file. */
static cnr_status write_text(const char *path, const cnri_text *text, cnr_error *err) {
    cnri_writer w;
    if (text->failed) return cnri_out_of_memory(err, path);
    CNR_TRY(cnri_write_begin(&w, path, 0, err));
    cnr_status status = cnri_write(&w, text->at, text->n, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

/* ---- the child: one point ---- */

/* A result line that is being built. */
typedef struct line {
    cnri_json json;
    char list[128];          /* the list that is being written */
    CNRI_VEC(char *) unread; /* values of the point that the study never read */
} line;

/* Ends the JSON list that is being written; none: nothing. */
static void end_list(line *l) {
    if (*l->list) cnri_json_end(&l->json);
    *l->list = 0;
}

/* Adds a value to the result; values of the same name in a row become a list. */
static void add_result(void *arg, const cnri_lua_named *value) {
    line *l = arg;
    if (!value->is_item || strncmp(l->list, value->name, sizeof l->list - 1) != 0) end_list(l);
    if (value->is_item) {
        if (!*l->list) {
            cnri_json_list(&l->json, value->name);
            snprintf(l->list, sizeof l->list, "%s", value->name);
        }
        cnri_json_real(&l->json, NULL, value->number);
    } else if (value->text) cnri_json_text(&l->json, value->name, value->text);
    else if (value->is_flag) cnri_json_bool(&l->json, value->name, value->number != 0);
    else cnri_json_real(&l->json, value->name, value->number);
}

/* Notes a value that the study never read; without memory, nothing. */
static void add_unread(void *arg, const char *name) {
    line *l = arg;
    char *own = cnri_strdup(name), **slot = own ? cnri_push(&l->unread) : NULL;
    if (slot) *slot = own;
    else cnri_free(own);
}

/* Writes the list of values that were never read, unless it is empty, and frees it. */
static void write_unread(line *l) {
    if (l->unread.n > 0) cnri_json_list(&l->json, "unread");
    for (int32_t i = 0; i < l->unread.n; i++) cnri_json_text(&l->json, NULL, l->unread.at[i]);
    if (l->unread.n > 0) cnri_json_end(&l->json);
    for (int32_t i = 0; i < l->unread.n; i++) cnri_free(l->unread.at[i]);
    cnri_vec_free(&l->unread);
}

/* Fails if the study can't be read or is no study, before any point is begun. */
static cnr_status check_study(const state *t, cnr_error *err) {
    cnri_call *call = t->call;
    cnri_loading loading = {0};
    cnri_lua_program *program = NULL;
    const char *path = call->operands.at[0];
    CNR_TRY(cnri_call_loading(call, &loading, err));
    const cnri_lua_rights rights = {.trust = call->common.trust,
                                    .cancelled = cnri_cancelled,
                                    .watch = cnri_watch_script(call),
                                    .load = &loading.options};
    cnr_status status = cnri_lua_open(call->rt, path, call->operands.n - 1,
                                      (char **)call->operands.at + 1, &rights, &program, err);
    if (!status && !cnri_lua_is_main(program))
        status = cnri_fail(err, CNR_E_NOT_FOUND, path,
                           "no study: it returns no function that returns results");
    cnri_lua_close(program);
    cnri_loading_free(&loading);
    return status;
}

/* Runs the study with the point's values beside its words, and appends the results to the line. */
static cnr_status run_study(const state *t, const cnri_lua_named *values, line *l, cnr_error *err) {
    cnri_call *call = t->call;
    cnri_loading loading = {0};
    cnri_lua_program *program = NULL;
    const char *path = call->operands.at[0];
    CNR_TRY(cnri_call_loading(call, &loading, err));
    const cnri_lua_rights rights = {.trust = call->common.trust,
                                    .cancelled = cnri_cancelled,
                                    .watch = cnri_watch_script(call),
                                    .named = values,
                                    .load = &loading.options};
    cnr_status status = cnri_lua_open(call->rt, path, call->operands.n - 1,
                                      (char **)call->operands.at + 1, &rights, &program, err);
    cnri_signals_patient();
    if (!status) status = cnri_lua_results(program, add_result, add_unread, l, err);
    end_list(l);
    cnri_lua_close(program);
    cnri_loading_free(&loading);
    return status;
}

/* Runs one point, in a child process, and prints its result line; ends with the parent. */
static cnr_status run_point(state *t, cnr_error *err) {
    cnri_lua_named *values = cnri_alloc((size_t)(t->axes.n + 1) * sizeof *values);
    cnri_drawn *room = cnri_alloc((size_t)(t->axes.n + 1) * sizeof *room);
    line l = {0};
    place p = {0};
    const uint64_t begin = cnri_real_ns();
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody would read on */
    cnr_status status =
        values && room ? place_of(t, t->s->point, &p, err) : cnri_out_of_memory(err, "sweep");
    if (!status) {
        cnri_point(&t->axes, t->s->random, (uint64_t)t->s->random_seed, t->s->point, values, room);
        cnri_json_begin(&l.json);
        cnri_json_object(&l.json, "results");
        status = run_study(t, values, &l, err);
    }
    if (!status) {
        cnri_json_end(&l.json);
        cnri_json_real(&l.json, "seconds", (double)(cnri_real_ns() - begin) * 1e-9);
        write_unread(&l);
        cnri_json_end(&l.json);
        cnri_text_add(&p.head, ",%s\n", l.json.text.failed ? "" : l.json.text.at + 1);
        if (l.json.text.failed) p.head.failed = true;
        status = write_text(p.path, &p.head, err);
    }
    cnri_text_free(&l.json.text);
    leave(&p);
    cnri_free(values);
    cnri_free(room);
    return status;
}

/* ---- the parent: children that run at once ---- */

/* Starts a child for a point, with its share of the cores; *j: its process and pipe. */
static cnr_status spawn(const state *t, int64_t point, job *j, cnr_error *err) {
    char number[24], threads[24], flags[3][10] = {"--point", "--threads", "--group"};
    char alone[] = "none";
    const cnri_call *call = t->call;
    const int64_t cores = sysconf(_SC_NPROCESSORS_ONLN), each = cores / t->s->jobs;
    posix_spawn_file_actions_t actions;
    int ends[2], n = 0, failed;
    char **words = cnri_alloc((size_t)(call->argc + 8) * sizeof *words);
    if (!words) return cnri_out_of_memory(err, "sweep");
    snprintf(number, sizeof number, "%lld", (long long)point);
    snprintf(threads, sizeof threads, "%lld", (long long)(each > 1 ? each : 1));
    /* Before the caller's words, since behind "--" nothing is an option. */
    words[n++] = (char[]){"cnnrun"};
    if (call->argc > 0) words[n++] = call->argv[0];
    words[n++] = flags[0], words[n++] = number;
    if (!call->common.threads) words[n++] = flags[1], words[n++] = threads;
    words[n++] = flags[2], words[n++] = alone;
    for (int i = 1; i < call->argc; i++) words[n++] = call->argv[i];
    words[n] = NULL;
    failed = pipe2(ends, O_CLOEXEC) == 0 ? posix_spawn_file_actions_init(&actions) : errno;
    if (!failed) {
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
        failed = posix_spawn(&j->pid, "/proc/self/exe", &actions, NULL, words, environ);
        posix_spawn_file_actions_destroy(&actions);
        close(ends[1]);
        if (failed) close(ends[0]);
    }
    j->from = ends[0];
    j->point = point;
    cnri_free(words);
    return failed ? cnri_fail(err, CNR_E_IO, "sweep", "a process can't be started: %s",
                              strerror(failed))
                  : CNR_OK;
}

/* The last line of a child's output, inside it, without newlines; the text's end is cut. A constant
 * text if there is none. */
static const char *last_line(cnri_text *said) {
    while (said->n && strchr("\r\n ", said->at[said->n - 1])) said->at[--said->n] = 0;
    const char *end = said->n ? strrchr(said->at, '\n') : NULL;
    return end ? end + 1 : said->n ? said->at : "it said nothing";
}

/* Reports why a point failed, by the process's status `how`, and stores all of its output. */
static cnr_status keep_failure(state *t, job *j, const place *p, int how, cnr_error *err) {
    char *log = cnri_format("%s/failed/%s.txt", t->s->output, p->name);
    cnr_status status = log ? write_text(log, &j->said, err) : cnri_out_of_memory(err, "sweep");
    cnri_watch_end(&t->call->watching);
    if (!status && WIFSIGNALED(how))
        cnri_say(stderr, "cnnrun sweep: %s: died of %s; %s\n", p->name, strsignal(WTERMSIG(how)),
                 log);
    else if (!status)
        cnri_say(stderr, "cnnrun sweep: %s: %s; %s\n", p->name, last_line(&j->said), log);
    cnri_free(log);
    return status;
}

/* Handles a child that ended: stores its result, tries again, or reports a failure. */
static cnr_status reap(state *t, job *j, cnr_error *err) {
    int how = 0;
    place p;
    close(j->from);
    while (waitpid(j->pid, &how, 0) < 0 && errno == EINTR) {}
    cnr_status status = place_of(t, j->point, &p, err);
    char *result = status ? NULL : result_of(&p);
    if (result) {
        t->done++;
        t->joules += joules_in(&p, result);
        if (t->s->metric && t->done == 1 && !find_result(&p, result, t->s->metric))
            status = cnri_fail(err, CNR_E_NOT_FOUND, "--metric",
                               "%s: the study has no result of that name", t->s->metric);
    } else if (!status && !cnri_cancelled()) {
        status = keep_failure(t, j, &p, how, err);
        int64_t *point = j->tries < t->s->retries ? cnri_push(&t->again) : NULL;
        int64_t *tries = point ? cnri_push(&t->again) : NULL;
        if (tries) t->again.at[t->again.n - 2] = j->point, *tries = j->tries + 1;
        else t->failed++;
    }
    cnri_free(result);
    cnri_text_free(&j->said);
    leave(&p);
    t->running.at[j - t->running.at] = t->running.at[t->running.n - 1];
    t->running.n--;
    return status;
}

/* Reads the job's output and keeps its last part. False: the job closed its output. */
static bool read_output(job *j) {
    char some[4096];
    const ssize_t n = read(j->from, some, sizeof some);
    if (n < 0 && errno == EINTR) return true;
    if (n > 0 && j->said.n > SAID_BYTES) { /* the end is what tells */
        memmove(j->said.at, j->said.at + SAID_BYTES / 2, j->said.n - SAID_BYTES / 2);
        j->said.n -= SAID_BYTES / 2;
    }
    if (n > 0) cnri_text_bytes(&j->said, some, (size_t)n);
    return n > 0;
}

/* Waits up to LOOK_MS for output of the running jobs, reads it, and collects those that ended. */
static cnr_status read_output_of_jobs(state *t, cnr_error *err) {
    struct pollfd ready[MOST_JOBS];
    cnr_status status = CNR_OK;
    const int32_t n = t->running.n < MOST_JOBS ? t->running.n : MOST_JOBS;
    for (int32_t i = 0; i < n; i++)
        ready[i] = (struct pollfd){.fd = t->running.at[i].from, .events = POLLIN};
    if (poll(ready, (nfds_t)(n > 0 ? n : 0), LOOK_MS) <= 0) return CNR_OK;
    for (int32_t i = n - 1; i >= 0 && !status; i--) /* the last one takes a freed place */
        if (ready[i].revents && !read_output(&t->running.at[i]))
            status = reap(t, &t->running.at[i], err);
    return status;
}

/* True if neither time nor energy is used up, and nobody cancelled. */
static bool may_begin(const state *t) {
    const double spent = (double)(cnri_real_ns() - t->begun_ns) * 1e-9;
    return !cnri_cancelled() && !(t->s->seconds > 0 && spent >= t->s->seconds) &&
           !(t->s->joules > 0 && t->joules >= t->s->joules);
}

/* The next point without a result, and how often it was tried in *tries; -1: there is none. */
static int64_t next_point(state *t, int64_t *tries) {
    *tries = 0;
    for (; t->next < t->n; t->next++) {
        place p;
        cnr_error none;
        if (t->next % cnri_group_ranks() != cnri_group_rank()) continue; /* another rank's */
        char *result = place_of(t, t->next, &p, &none) ? NULL : result_of(&p);
        leave(&p);
        if (!result) return t->next++;
        t->had++;
        cnri_free(result);
    }
    if (t->again.n == 0) return -1;
    *tries = t->again.at[t->again.n - 1];
    t->again.n -= 2;
    return t->again.at[t->again.n];
}

/* Tells the observer how many points are done. */
static void show(state *t, const cnr_observer *observer) {
    const cnr_progress p = {.size = sizeof p,
                            .what = "points",
                            .done = t->had + t->done + t->failed,
                            .total = t->n,
                            .top1 = (double)NAN};
    if (observer->progress) observer->progress(observer->arg, &p);
}

/* Starts children until as many as wanted are running, or no point is left. */
static cnr_status begin_more(state *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    int64_t tries, point;
    while (!status && t->running.n < t->s->jobs && may_begin(t) &&
           (point = next_point(t, &tries)) >= 0) {
        job *j = cnri_push(&t->running);
        if (!j) return cnri_out_of_memory(err, "sweep");
        j->tries = tries;
        status = spawn(t, point, j, err);
        if (status) t->running.n--;
    }
    return status;
}

/* Runs points until none is left, time or energy is used up, or the sweep is cancelled, and waits
 * for all children. Points that failed are no error (t->failed counts them); returns our own first.
 */
static cnr_status run_all(state *t, cnr_error *err) {
    const cnr_observer *observer = cnri_watch(t->call);
    bool told_to_end = false;
    cnr_error late;
    cnr_status status = CNR_OK;
    cnri_signals_patient();
    for (;;) {
        if (!status) status = begin_more(t, err);
        if (!t->running.n) break;
        show(t, observer);
        for (int32_t i = 0; (cnri_cancelled() || status) && !told_to_end && i < t->running.n; i++)
            kill(t->running.at[i].pid, SIGTERM);
        told_to_end = cnri_cancelled() || status;
        const cnr_status heard = read_output_of_jobs(t, status ? &late : err);
        if (!status) status = heard;
    }
    cnri_watch_end(&t->call->watching);
    return status;
}

/* ---- results ---- */

/* True if the point's study read the parameter, by its line. */
static bool was_read(const place *p, const char *line, const char *parameter) {
    char *word = cnri_format("\"%s\"", parameter);
    const char *unread = find_result(p, line, "unread");
    const bool read = !unread || !word || !strstr(unread, word);
    cnri_free(word);
    return read;
}

/* Warns of parameters of several values that no point's study read: they change nothing. */
static void warn_of_unread(const state *t, const bool *read, int64_t done) {
    for (int32_t i = 0; i < t->axes.n && done > 0; i++)
        if (!read[i] && t->axes.at[i].values.n + t->axes.at[i].is_range > 1)
            cnri_log(CNR_LOG_WARN, t->call->operands.at[0],
                     "the study never reads p.%s, so its values change nothing",
                     t->axes.at[i].name);
}

/* Writes results.jsonl, one line for each point that was run, in the order of the grid; counts
 * them. read: receives for each axis whether some study read it. */
static cnr_status collect(const state *t, int64_t *done, bool *read, cnr_error *err) {
    char *path = cnri_format("%s/results.jsonl", t->s->output);
    cnri_text all = {0};
    cnr_status status = path ? CNR_OK : cnri_out_of_memory(err, "sweep");
    for (int64_t i = 0; i < t->n && !status; i++) {
        place p;
        status = place_of(t, i, &p, err);
        char *result = status ? NULL : result_of(&p);
        if (result) {
            cnri_text_bytes(&all, result, strlen(result));
            ++*done;
            for (int32_t k = 0; k < t->axes.n; k++)
                read[k] = read[k] || was_read(&p, result, t->axes.at[k].name);
        }
        cnri_free(result);
        leave(&p);
    }
    if (!status) status = write_text(path, &all, err);
    cnri_text_free(&all);
    cnri_free(path);
    return status;
}

/* Makes tables and pictures with an installed script. */
static cnr_status summarise(const state *t, cnr_error *err) {
    cnri_json j = {0};
    cnri_json_begin(&j);
    cnri_json_text(&j, "folder", t->s->output);
    if (t->s->metric) cnri_json_text(&j, "metric", t->s->metric);
    cnri_json_text(&j, "pictures", t->s->pictures);
    cnri_json_bool(&j, "table", !t->call->common.json);
    cnri_json_list(&j, "axes");
    for (int32_t i = 0; i < t->axes.n; i++) {
        cnri_json_object(&j, NULL);
        cnri_json_text(&j, "name", t->axes.at[i].name);
        cnri_json_bool(&j, "is_log", t->axes.at[i].is_log);
        cnri_json_end(&j);
    }
    cnri_json_end(&j);
    return cnri_call_script(t->call, "calls/sweep.lua", &j, NULL, 0, err);
}

/* Result of sweep: numbers of points, and seconds. */
typedef struct told {
    const char *output;
    int64_t points, done, failed, left;
    double seconds;
} told;
static const cnri_field fields[] = {CNRI_KEY(told, output), CNRI_KEY(told, points),
                                    CNRI_KEY(told, done),   CNRI_KEY(told, failed),
                                    CNRI_KEY(told, left),   CNRI_KEY(told, seconds)};
static const cnri_record record = CNRI_RECORD(
    fields,
    "{done} of {points} points are done{failed?, {failed} failed|}{left?, {left} are left: "
    "--resume goes on|}; {seconds:.1f} s; {output}/results.csv, summary.csv, results.jsonl\n");

/* Makes the folders of results, unless they are there: the output's, points and failed. */
static cnr_status make_folders(const sweep *s, cnr_error *err) {
    static const char *const parts[] = {"", "/points", "/failed"};
    struct stat info;
    for (size_t i = 0; i < CNRI_COUNT(parts); i++) {
        char *path = cnri_format("%s%s", s->output, parts[i]);
        const bool there =
            path && (mkdir(path, 0777) == 0 ||
                     (errno == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode)));
        if (!there) {
            const cnr_status status = path ? cnri_fail_errno(err, path, "can't be made a folder")
                                           : cnri_out_of_memory(err, s->output);
            cnri_free(path);
            return status;
        }
        cnri_free(path);
    }
    return CNR_OK;
}

/* Adds up the joules of earlier results. Without --resume, existing results are an error,
 * because they may be somebody's. */
static cnr_status check_results(state *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int64_t i = 0; i < t->n && !status; i++) {
        place p;
        status = place_of(t, i, &p, err);
        char *result = status ? NULL : result_of(&p);
        if (result && t->s->resume) t->joules += joules_in(&p, result);
        else if (result)
            status =
                cnri_fail(err, CNR_E_STATE, t->s->output,
                          "has results of these points: --resume goes on, or name another folder");
        cnri_free(result);
        leave(&p);
    }
    return status;
}

/* Runs this rank's points. All ranks look at existing results before any of them writes one, and
 * a failure counts for all ranks. */
static cnr_status run_shared(state *t, cnr_error *err) {
    cnr_status status = check_results(t, err);
    if (!status) status = cnri_group_barrier(err);
    t->begun_ns = cnri_real_ns();
    if (!status) status = run_all(t, err);
    double failed = (double)t->failed;
    if (!status) status = cnri_group_sum(&failed, 1, err);
    t->failed = (int64_t)failed;
    return status;
}

/* Runs the sweep with its children, then summarises it and prints the result. */
static cnr_status run_parent(state *t, cnr_error *err) {
    int64_t done = 0;
    bool *read = cnri_alloc_zero((size_t)t->axes.n + 1);
    cnr_status status = read ? run_shared(t, err) : cnri_out_of_memory(err, "sweep");
    if (!status && cnri_group_rank() == 0) status = collect(t, &done, read, err);
    if (!status) warn_of_unread(t, read, done);
    cnri_free(read);
    if (!status && done) status = summarise(t, err);
    const told told = {.output = t->s->output,
                       .points = t->n,
                       .done = done,
                       .failed = t->failed,
                       .left = t->n - done - t->failed,
                       .seconds = (double)(cnri_real_ns() - t->begun_ns) * 1e-9};
    if (!status) status = cnri_tell(t->call, &record, &told, err);
    if (!status && cnri_cancelled())
        status = cnri_fail(err, CNR_E_CANCELLED, t->s->output, "stopped; --resume goes on");
    if (!status && t->failed) t->call->code = 1;
    return status;
}

/* The command sweep. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const sweep *s = values;
    state t = {.call = call, .s = s};
    /* Processes that start such processes would have no end. */
    if (s->point < 0 && getenv(IN_POINT))
        return cnri_fail(err, CNR_E_STATE, "sweep", "a study of a sweep can't begin another one");
    setenv(IN_POINT, "1", 1);
    cnr_status status = make_folders(s, err);
    for (int32_t i = 0; i < s->grid.n && !status; i++)
        status = cnri_axis_parse(s->grid.at[i], &t.axes, err);
    if (!status) status = cnri_seeds_parse(s->seeds, &t.axes, err);
    if (!status && (t.n = cnri_points(&t.axes, s->random)) < 0)
        status = cnri_fail(err, CNR_E_ARG, "--grid", "more than a million points");
    if (!status && s->point >= t.n)
        status = cnri_fail(err, CNR_E_ARG, "--point", "want 0 to %lld", (long long)t.n - 1);
    if (!status && s->point < 0) status = check_study(&t, err);
    if (!status) status = s->point >= 0 ? run_point(&t, err) : run_parent(&t, err);
    cnri_sweep_axes_free(&t.axes);
    cnri_vec_free(&t.running);
    cnri_vec_free(&t.again);
    return status;
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    const sweep *s = values;
    if (cnri_call_prepares(&call->common))
        return "how pictures become a net's input is the study's: c.load(NET, { preset = ... })";
    if (strcmp(s->pictures, "png") != 0 && strcmp(s->pictures, "svg") != 0 &&
        strcmp(s->pictures, "pdf") != 0)
        return "--pictures: want png, svg or pdf";
    if (s->random && !s->grid.n) return "--random draws from what --grid names";
    if (s->random_seed != 1 && !s->random) return "--random-seed is for --random";
    return NULL;
}

const cnri_command cnri_cmd_sweep = {
    .name = "sweep",
    .example = "cnnrun sweep study.lua --grid rate=.01,.1 --seeds 1..3 -o out",
    .operands = "STUDY.lua [WORDS...] --grid NAME=VALUES... -o DIR",
    .summary = "Runs a study at many points, with several seeds each: a process a point.",
    .details =
        "A study is a Lua file that returns a function. It gets the WORDS as p[1], p[2] ..., the "
        "point's\nvalues by name and p.seed, and returns a table of results: numbers, texts, "
        "flags, "
        "or lists of\nnumbers, one an epoch.\n\n"
        "    return function(p)\n"
        "      local net <close> = require \"cnnrun\".load(p[1], { weights = \"random:\" .. p.seed "
        "})\n"
        "      net:train { data = p[2], rate = p.rate, seed = p.seed }\n"
        "      return { top1 = net:evaluate { data = p[2] }.top1 }\n"
        "    end\n\n"
        "DIR gets results.jsonl and results.csv (a row a point), summary.csv (mean, standard "
        "deviation and\n95% interval over the seeds), and a picture of each result over the first "
        "parameter with numbers,\nwith the interval as a band. A point that fails is told and run "
        "again; what it said lies in\nDIR/failed. Whoever was stopped goes on with --resume. The "
        "exit "
        "code is 1 if points failed.\n\n"
        "    cnnrun sweep study.lua scripts/nets/lenet5.lua mnist:DIR --grid rate=log:.001:.1:5 "
        "\\\n"
        "        --seeds 1..5 --jobs 2 -o out",
    .results = CNRI_RESULTS(&record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(sweep, .seeds = "1", .pictures = "png", .random_seed = 1, .jobs = 1, .retries = 1,
                .point = -1),
    .min_operands = 1,
    .max_operands = -1,
    .takes = CNRI_NETS | CNRI_PICTURES | CNRI_GROUP | CNRI_OWN_FILES,
    .opens = cnri_call_open,
    .wrong = wrong,
    .run = run,
};
