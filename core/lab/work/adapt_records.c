/* Stores the measurements of online tuning until the decision: the times of each way's runs and
 * steps. The next process makes the same ways in the same order and takes over their times instead
 * of running them again. The file is that of the later decision (adapt_kept.c), with the lines:
 *
 *   cnnrun adapt 1 | environment HEX | learning RUNS TRIALS STOPPED | by time
 *   and of each way: record INDEX NAME | state REHEARSED JUDGED STOPPED FAILED STEP
 *   run NS COST | race NS COST | step RUNS TOTAL LEAST */
#include "work/adapt.h"
#include <inttypes.h>
#include <stdio.h>

enum { MAX_BYTES = 1 << 24 };

void cnri_adapt_free_runs(cnri_adapt_runs *r) {
    cnri_vec_free(&r->ns);
    cnri_vec_free(&r->cost);
    cnri_vec_free(&r->raced_ns);
    cnri_vec_free(&r->raced_cost);
    cnri_vec_free(&r->steps);
    *r = (cnri_adapt_runs){0};
}

void cnri_adapt_free_records(cnri_adapt *a) {
    for (int32_t i = 0; i < a->records.n; i++) cnri_adapt_free_runs(&a->records.at[i].runs);
    cnri_vec_free(&a->records);
}

/* ---- steps ---- */

void cnri_adapt_note_steps(cnri_adapt_way *w) {
    const int32_t n = w->plan && w->profile ? w->plan->steps.n : 0;
    bool any = false;
    for (int32_t i = 0; i < n; i++) any = any || cnri_profile_of(w->profile, i).runs > 0;
    if (!any) return;
    w->runs.steps.n = 0;
    for (int32_t i = -1; i < n; i++) {
        cnri_step_time *to = cnri_push(&w->runs.steps);
        if (!to) {
            w->runs.steps.n = 0; /* without memory, the times are measured again */
            return;
        }
        *to = cnri_profile_of(w->profile, i);
    }
}

void cnri_adapt_put_steps(cnri_adapt_way *w) {
    if (!w->plan || !w->profile || w->runs.steps.n != w->plan->steps.n + 1) return;
    for (int32_t i = 0; i < w->runs.steps.n; i++)
        cnri_profile_put(w->profile, i - 1, &w->runs.steps.at[i]);
}

/* Index of a way in a->ways; their number: it is none of them. */
static int32_t index_of(const cnri_adapt *a, const cnri_adapt_way *w) {
    int32_t i = 0;
    while (i < a->ways.n && a->ways.at[i] != w) i++;
    return i;
}

bool cnri_adapt_take_record(cnri_adapt *a, cnri_adapt_way *w) {
    const int32_t index = index_of(a, w);
    if (w->looked_up) return false;
    w->looked_up = true;
    for (int32_t i = 0; i < a->records.n; i++) {
        cnri_adapt_record *r = &a->records.at[i];
        if (r->index != index || strcmp(r->name, w->name) != 0) continue;
        cnri_adapt_free_runs(&w->runs);
        w->runs = r->runs;
        r->runs = (cnri_adapt_runs){0};
        r->index = -1; /* taken */
        return true;
    }
    return false;
}

/* ---- reading ---- */

/* The text after `key` and a space at the beginning of the line; NULL: it begins otherwise. */
static const char *behind(const char *line, const char *key) {
    const size_t n = strlen(key);
    return strncmp(line, key, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

/* Parses two numbers and appends them to the two lists; false: malformed, or out of memory. */
static bool push_two(const char *text, void *first_list, void *second_list) {
    CNRI_VEC(double) *first = first_list, *second = second_list;
    double ns, cost, *a, *b;
    if (!cnri_adapt_take_two(text, &ns, &cost)) return false;
    if (!(a = cnri_push(first))) return false;
    *a = ns;
    if (!(b = cnri_push(second))) return false;
    *b = cost;
    return true;
}

/* Reads the times of a step from a line. False: malformed. */
static bool push_step(cnri_adapt_runs *r, const char *text) {
    uint64_t runs, total, least;
    if (sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &runs, &total, &least) != 3) return false;
    cnri_step_time *to = cnri_push(&r->steps);
    if (to) *to = (cnri_step_time){runs, total, least};
    return to != NULL;
}

/* Reads the state of a way from a line. False: malformed. */
static bool take_state(cnri_adapt_runs *r, const char *text) {
    int rehearsed, judged, stopped, failed, step;
    if (sscanf(text, "%d %d %d %d %d", &rehearsed, &judged, &stopped, &failed, &step) != 5)
        return false;
    r->rehearsed = rehearsed;
    r->judged = judged;
    r->stopped = stopped;
    r->failed = failed;
    r->stopped_at = step;
    return step >= 0;
}

/* Reads the first line of a record. False: malformed. */
static bool begin_record(cnri_adapt *a, const char *text) {
    int index, at = 0;
    if (sscanf(text, "%d %n", &index, &at) != 1 || !at) return false;
    cnri_adapt_record *r = cnri_push(&a->records);
    if (!r) return false;
    *r = (cnri_adapt_record){.index = index};
    return snprintf(r->name, sizeof r->name, "%s", text + at) > 0;
}

/* Reads one line of the records. False: malformed. */
static bool take_line(cnri_adapt *a, const char *line) {
    cnri_adapt_runs *r = a->records.n ? &a->records.at[a->records.n - 1].runs : NULL;
    const char *rest;
    if ((rest = behind(line, "record"))) return begin_record(a, rest);
    if (!r) return false;
    if ((rest = behind(line, "state"))) return take_state(r, rest);
    if ((rest = behind(line, "run"))) return push_two(rest, &r->ns, &r->cost);
    if ((rest = behind(line, "race"))) return push_two(rest, &r->raced_ns, &r->raced_cost);
    if ((rest = behind(line, "step"))) return push_step(r, rest);
    return false;
}

/* Reads a line before the records. Records with EDP are refused if there is no meter now. False: it
 * failed. */
static bool take_head(cnri_adapt *a, const char *line, bool *same) {
    const char *rest;
    int64_t *to[] = {&a->report.runs, &a->report.trials, &a->report.stopped};
    if (strcmp(line, "cnnrun adapt 1") == 0) return true;
    if ((rest = behind(line, "environment"))) {
        *same = strcmp(rest, a->environment) == 0;
        return true;
    }
    if ((rest = behind(line, "by"))) {
        const bool edp = strcmp(rest, "edp") == 0;
        if (!edp) a->report.by = "time";
        return !edp || a->sampler;
    }
    if (!(rest = behind(line, "learning"))) return false;
    return sscanf(rest, "%" SCNd64 " %" SCNd64 " %" SCNd64, to[0], to[1], to[2]) == 3;
}

/* Reads the file's text, which it cuts into lines; false: damaged, or another environment. */
static bool parse(cnri_adapt *a, char *text) {
    bool same = false, good = strstr(text, "\nlearning ") != NULL;
    for (char *at = text, *next; good && *at; at = next) {
        const size_t n = strcspn(at, "\n");
        next = at[n] ? at + n + 1 : at + n;
        at[n] = 0;
        good = a->records.n || behind(at, "record") ? same && take_line(a, at)
                                                    : take_head(a, at, &same);
    }
    return good && same;
}

cnr_status cnri_adapt_load_records(cnri_adapt *a, bool *found, cnr_error *err) {
    char *text = NULL;
    size_t bytes;
    const int64_t before = cnri_alloc_failures();
    const cnr_adapt_report untouched = a->report;
    *found = false;
    cnri_adapt_free_records(a);
    if (!a->path || cnri_read_kept(a->path, MAX_BYTES, &text, &bytes, NULL)) return CNR_OK;
    *found = parse(a, text);
    cnri_free(text);
    if (!*found) {
        a->report = untouched;
        cnri_adapt_free_records(a);
    }
    return cnri_alloc_verdict(before, CNR_OK, a->path, err);
}

/* ---- writing ---- */

/* Appends the record of a way: its state, and its runs' times and costs. */
static void add_runs(int32_t index, const cnri_adapt_way *w, cnri_text *out) {
    const cnri_adapt_runs *r = &w->runs;
    cnri_text_add(out, "record %d %s\nstate %d %d %d %d %d\n", (int)index, w->name, r->rehearsed,
                  r->judged, r->stopped, r->failed, (int)r->stopped_at);
    for (int32_t i = 0; i < r->ns.n; i++)
        cnri_adapt_add_numbers(out, "run", r->ns.at[i], r->cost.at[i]);
    for (int32_t i = 0; i < r->raced_ns.n; i++)
        cnri_adapt_add_numbers(out, "race", r->raced_ns.at[i], r->raced_cost.at[i]);
    for (int32_t i = 0; i < r->steps.n; i++)
        cnri_text_add(out, "step %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", r->steps.at[i].runs,
                      r->steps.at[i].total_ns, r->steps.at[i].least_ns);
}

cnr_status cnri_adapt_save_records(cnri_adapt *a, cnr_error *err) {
    cnri_text text = {0};
    if (!a->path) return CNR_OK;
    cnri_text_add(&text,
                  "cnnrun adapt 1\nenvironment %s\nlearning %" PRId64 " %" PRId64 " %" PRId64
                  "\nby %s\n",
                  a->environment, a->report.runs, a->report.trials, a->report.stopped,
                  a->report.by);
    for (int32_t i = 0; i < a->ways.n; i++) {
        cnri_adapt_note_steps(a->ways.at[i]);
        add_runs(i, a->ways.at[i], &text);
    }
    const cnr_status status = cnri_adapt_write(a, &text, err);
    cnri_text_free(&text);
    return status;
}
