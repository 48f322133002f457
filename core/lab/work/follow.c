/* Follows all meters: writes a log, a counter file for other processes, and rows for the
 * observer. */
#include "watch/watch.h"
#include "work/work.h"
#include "people/people.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Energy that is followed while it is used. */
typedef struct follow {
    const cnri_follow_options *o;
    const cnr_observer *observer;
    cnri_sampler *sampler;
    int32_t n;
    cnri_reading_point begin, last;
    double *watts, *joules;
    const char **names;
    cnri_writer csv;
    bool logging;
} follow;

/* ---- the log ---- */

/* Writes a column's name, quoted as in RFC 4180 if necessary. */
static void add_name(cnri_text *line, const char *name, const char *unit) {
    const bool quoted = strpbrk(name, ",\"") != NULL;
    cnri_text_add(line, ",%s", quoted ? "\"" : "");
    for (; *name; name++) cnri_text_add(line, *name == '"' ? "\"\"" : "%c", *name);
    cnri_text_add(line, "_%s%s", unit, quoted ? "\"" : "");
}

/* Appends a comma and the number, rounded; nothing but the comma for NaN. */
static void add_number(cnri_text *line, double value) {
    char text[40] = "";
    /* rounded to a millionth, finer than any sensor */
    if (isfinite(value)) cnri_print_double(text, sizeof text, round(value * 1e6) / 1e6);
    cnri_text_add(line, ",%s", text);
}

/* Writes a line of the table and frees it. */
static cnr_status write_line(follow *f, cnri_text *line, cnr_error *err) {
    cnri_text_add(line, "\n");
    cnr_status status = line->failed ? cnri_out_of_memory(err, "energy")
                                     : cnri_write(&f->csv, line->at, line->n, err);
    cnri_text_free(line);
    return status;
}

/* Writes the table's first line: time, then watts and joules of each domain. */
static cnr_status write_names(follow *f, cnr_error *err) {
    cnri_text line = {0};
    cnri_text_add(&line, "time_s");
    for (int32_t i = 0; i < f->n; i++) add_name(&line, f->names[i], "W");
    for (int32_t i = 0; i < f->n; i++) add_name(&line, f->names[i], "J");
    if (!cnri_clock_is_real()) cnri_text_add(&line, ",simulated");
    return write_line(f, &line, err);
}

/* Writes one row: seconds, then watts and joules of each domain. */
static cnr_status write_row(follow *f, double seconds, cnr_error *err) {
    cnri_text line = {0};
    char text[40];
    cnri_print_double(text, sizeof text, round(seconds * 1e6) / 1e6);
    cnri_text_add(&line, "%s", text);
    for (int32_t i = 0; i < f->n; i++) add_number(&line, f->watts[i]);
    for (int32_t i = 0; i < f->n; i++) add_number(&line, f->joules[i]);
    if (!cnri_clock_is_real()) cnri_text_add(&line, ",true");
    return write_line(f, &line, err);
}

/* ---- the counter: a file that is replaced as a whole, so that nobody reads half of one ---- */

/* Writes the counter file, which other programs read; running: it goes on. */
static cnr_status write_counter(const follow *f, uint64_t now, bool running, cnr_error *err) {
    cnri_text text = {0};
    cnri_writer w;
    cnri_text_add(&text, "{\"time_ns\":%llu,\"pid\":%ld,\"running\":%s,\"domains\":[",
                  (unsigned long long)now, (long)getpid(), running ? "true" : "false");
    for (int32_t i = 0; i < f->n; i++) {
        const cnri_sampled_domain *d = cnri_sampler_domain(f->sampler, i);
        char joules[40] = "null";
        if (isfinite(f->joules[i])) cnri_print_double(joules, sizeof joules, f->joules[i]);
        cnri_text_add(&text, "%s{\"meter\":", i ? "," : "");
        cnri_text_json(&text, d->meter->meter->name);
        cnri_text_add(&text, ",\"name\":");
        cnri_text_json(&text, d->desc->name);
        cnri_text_add(&text, ",\"joules\":%s}", joules);
    }
    cnri_text_add(&text, "]");
    cnri_text_simulated(&text);
    cnri_text_add(&text, "}\n");
    cnr_status status = text.failed ? cnri_out_of_memory(err, "energy")
                                    : cnri_write_begin(&w, f->o->counter, 0, err);
    if (!status) {
        status = cnri_write(&w, text.at, text.n, err);
        if (!status) status = cnri_write_commit(&w, err);
        else cnri_write_abandon(&w);
    }
    cnri_text_free(&text);
    return status;
}

/* ---- row by row ---- */

/* Adds the energy since the last row. A counter that shows no new value is taken to go on at its
 * last power. */
static void take(follow *f, const cnri_reading_point *now) {
    for (int32_t i = 0; i < f->n; i++) {
        const cnri_domain_totals *a = &f->last.at[i], *b = &now->at[i];
        const double passed = (double)(b->covered_ns - a->covered_ns) * 1e-9;
        f->joules[i] = b->status ? NAN : b->joules - f->begin.at[i].joules;
        if (b->status) f->watts[i] = NAN;
        else if (b->n > a->n) f->watts[i] = (b->sum - a->sum) / (b->n - a->n);
        else if (passed > 0 && !isfinite(f->watts[i]))
            f->watts[i] = (b->joules - a->joules) / passed;
    }
}

/* Reads the meters at their own pace; all: reads every meter now, so that the sums include all
 * time. */
static cnr_status step(follow *f, bool all, cnr_error *err) {
    cnri_reading_point now = {0};
    cnr_status status = cnri_sampler_point(f->sampler, all, &now, err);
    if (status) return status;
    const double seconds = (double)(now.now_ns - f->begin.now_ns) * 1e-9;
    take(f, &now);
    cnri_free(f->last.at);
    f->last = now;
    const cnri_energy_row row = {seconds, f->n, f->watts, f->joules, f->names};
    if (f->logging) status = write_row(f, seconds, err);
    if (!status && f->o->counter) status = write_counter(f, now.now_ns, true, err);
    if (!status && !cnri_notify_event(f->observer, CNRI_EVENT_ENERGY, &row))
        status = CNR_E_CANCELLED;
    return status;
}

/* Takes a row at each tick until the time (o->seconds; 0: no end) is over or it is stopped. */
static cnr_status steps(follow *f, cnr_error *err) {
    const uint64_t tick = (uint64_t)CNRI_SAMPLE_MS * 1000000u, begin = f->begin.now_ns;
    const uint64_t maximum = f->o->seconds > 0 ? (uint64_t)(f->o->seconds * 1e9) : UINT64_MAX;
    cnr_status status = CNR_OK;
    bool last = false;
    for (uint64_t now = begin; !status && !last;) {
        now += tick - (now - begin) % tick; /* a missed row is skipped */
        cnri_wait_until(now);
        last = now - begin >= maximum || cnri_stopped(f->observer);
        status = step(f, last, err);
        now = cnri_now_ns();
    }
    return status == CNR_E_CANCELLED ? CNR_OK : status;
}

/* Allocates the lists for f->n domains and opens the table, if a file is wanted. */
static cnr_status prepare(follow *f, cnr_error *err) {
    const size_t n = (size_t)f->n + 1;
    f->watts = cnri_alloc(n * sizeof *f->watts);
    f->joules = cnri_alloc(n * sizeof *f->joules);
    f->names = cnri_alloc(n * sizeof *f->names);
    if (!f->watts || !f->joules || !f->names) return cnri_out_of_memory(err, "energy");
    for (int32_t i = 0; i < f->n; i++) {
        f->watts[i] = NAN;
        f->names[i] = cnri_sampler_domain(f->sampler, i)->desc->name;
    }
    if (!f->o->csv) return CNR_OK;
    const cnr_status status = cnri_write_begin(&f->csv, f->o->csv, 0, err);
    f->logging = !status;
    return status ? status : write_names(f, err);
}

/* Ends counter and table, and fills the sums. */
static cnr_status finish(follow *f, cnr_status status, cnr_energy *out, cnr_error *err) {
    if (!status && f->o->counter) status = write_counter(f, f->last.now_ns, false, err);
    if (f->logging && !status) status = cnri_write_commit(&f->csv, err);
    else if (f->logging) cnri_write_abandon(&f->csv);
    if (!status) status = cnri_account(f->sampler, &f->begin, &f->last, 1, 0, out, err);
    return status;
}

cnr_status cnri_energy_follow(cnr_runtime *rt, const cnri_follow_options *options,
                              const cnr_observer *observer, cnr_energy *out, cnr_error *err) {
    follow f = {.o = options, .observer = observer};
    cnr_status status = cnri_energy_sampler(rt, &f.sampler, err);
    if (status) return status;
    f.n = cnri_sampler_count(f.sampler);
    if (f.n == 0)
        return cnri_fail(err, CNR_E_NOT_FOUND, "energy",
                         "unmeasured: no plugin finds a meter here");
    status = prepare(&f, err);
    if (!status) status = cnri_sampler_start(f.sampler, err);
    const bool started = !status;
    if (!status) status = cnri_sampler_point(f.sampler, true, &f.begin, err);
    if (!status) status = cnri_sampler_point(f.sampler, false, &f.last, err);
    if (!status) status = steps(&f, err);
    status = finish(&f, status, out, err);
    if (started) cnri_sampler_stop(f.sampler);
    cnri_free(f.begin.at);
    cnri_free(f.last.at);
    cnri_free(f.watts);
    cnri_free(f.joules);
    cnri_free(f.names);
    return status;
}
