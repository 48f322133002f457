/* Recordings of loads, frequencies, watts and degrees: written and read as CSV, and replayed. */
#include "govern/govern.h"
#include <math.h>
#include <string.h>

enum { TRACE_BYTES = 64 << 20, MAX_COLUMNS = 128 };
static const char *const kinds[] = {"time", "hz", "load", "temperature", "cores", "watts", "runs"};

/* ---- writing ---- */

/* Writes a number rounded to a multiple of 1 / places, after the text `before`. */
static void cell(cnri_text *out, const char *before, double value, double places) {
    char number[40] = "";
    if (!isnan(value)) cnri_print_double(number, sizeof number, round(value * places) / places);
    cnri_text_add(out, "%s%s", before, number);
}

void cnri_trace_header(const cnri_seen *s, const char *note, cnri_text *out) {
    while (note && *note) {
        const size_t n = strcspn(note, "\n");
        cnri_text_add(out, "# %.*s\n", (int)n, note);
        note += n + (note[n] == '\n');
    }
    cnri_text_add(out, "time");
    for (int32_t i = 0; i < s->n_knobs; i++)
        cnri_text_add(out, ",%s.hz,%s.load,%s.temperature,%s.cores", s->knobs[i].name,
                      s->knobs[i].name, s->knobs[i].name, s->knobs[i].name);
    for (int32_t i = 0; i < s->n_meters; i++)
        cnri_text_add(out, ",%s.%s", s->meters[i].name,
                      s->meters[i].quantity == CNR_QUANTITY_TEMPERATURE ? "temperature" : "watts");
    cnri_text_add(out, ",runs\n");
}

void cnri_trace_row(const cnri_seen *s, cnri_text *out) {
    cell(out, "", s->time, 1e4);
    for (int32_t i = 0; i < s->n_knobs; i++) {
        const cnri_seen_knob *k = &s->knobs[i];
        cell(out, ",", (double)k->hz, 1);
        cell(out, ",", k->load, 1e4);
        cell(out, ",", k->temperature, 1e2);
        cell(out, ",", k->cores >= 0 ? k->cores : (double)NAN, 1);
    }
    for (int32_t i = 0; i < s->n_meters; i++) {
        const cnri_seen_meter *m = &s->meters[i];
        cell(out, ",", m->quantity == CNR_QUANTITY_TEMPERATURE ? m->temperature : m->watts, 1e4);
    }
    cnri_text_add(out, ",%lld\n", (long long)s->runs.count);
}

/* ---- reading ---- */

/* The CNRI_COLUMN_... kind of a column, by the word behind its dot; -1: unknown. */
static int32_t kind_of(const char *word) {
    for (int32_t i = 0; i < (int32_t)CNRI_COUNT(kinds); i++)
        if (strcmp(word, kinds[i]) == 0) return i;
    return -1;
}

/* Adds a column by its name of n bytes. */
static cnr_status read_column(cnri_trace *t, const char *path, const char *word, size_t n,
                              cnr_error *err) {
    char name[128];
    if (n >= sizeof name || t->columns.n == MAX_COLUMNS)
        return cnri_fail(err, CNR_E_LIMIT, path, "more columns than %d, or a name that is too long",
                         (int)MAX_COLUMNS);
    memcpy(name, word, n);
    name[n] = 0;
    char *dot = strrchr(name, '.');
    const int32_t what = kind_of(dot ? dot + 1 : name);
    if (what < 0 || (!dot && what != CNRI_COLUMN_TIME && what != CNRI_COLUMN_RUNS))
        return cnri_fail(err, CNR_E_FORMAT, path,
                         "the column \"%s\": want time, runs, or NAME.hz, .load, .temperature, "
                         ".cores, .watts",
                         name);
    cnri_trace_column *c = cnri_push(&t->columns);
    if (!c) return cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    if (dot) *dot = 0;
    *c = (cnri_trace_column){.what = what};
    snprintf(c->name, sizeof c->name, "%.63s", dot ? name : "");
    return CNR_OK;
}

/* Reads the names of the columns from the line; fails without a time column. */
static cnr_status read_header(cnri_trace *t, const char *path, const char *line, cnr_error *err) {
    cnr_status status = CNR_OK;
    const char *end = line + strcspn(line, "\r\n");
    while (line <= end && !status) {
        size_t n = strcspn(line, ",\r\n");
        status = read_column(t, path, line, n, err);
        line += n + 1;
    }
    if (!status && !cnri_trace_column_of(t, "", CNRI_COLUMN_TIME))
        status = cnri_fail(err, CNR_E_FORMAT, path, "has no column \"time\"");
    return status;
}

/* Makes room for one more row in all columns. False: out of memory. */
static bool grow(cnri_trace *t) {
    if (t->n < t->capacity) return true;
    const int32_t capacity = t->capacity ? t->capacity * 2 : 256;
    for (int32_t i = 0; i < t->columns.n; i++) {
        double *at = cnri_resize(t->columns.at[i].at, (size_t)capacity * sizeof *at);
        if (!at) return false;
        t->columns.at[i].at = at;
    }
    t->capacity = capacity;
    return true;
}

/* Reads one row; an empty cell is NAN. */
static cnr_status read_row(cnri_trace *t, const char *path, const char *line, int32_t number,
                           cnr_error *err) {
    char where[256];
    snprintf(where, sizeof where, "%.200s:%d", path, (int)number);
    if (!grow(t)) return cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    for (int32_t i = 0; i < t->columns.n; i++) {
        cnri_trace_column *c = &t->columns.at[i];
        const char *end = line;
        double value = NAN;
        if (*line != ',' && *line != '\n' && *line != '\r' && *line &&
            (!cnri_parse_double(line, &end, &value) || isinf(value)))
            return cnri_fail(err, CNR_E_FORMAT, where, "want a number for %s%s%s, got \"%.*s\"",
                             c->name, *c->name ? "." : "", kinds[c->what],
                             (int)strcspn(line, ",\r\n"), line);
        const bool last = i + 1 == t->columns.n;
        if (last ? *end && !strchr("\r\n", *end) : *end != ',')
            return cnri_fail(err, CNR_E_FORMAT, where, "want %d cells, got %s", (int)t->columns.n,
                             last ? "more" : "fewer");
        c->at[t->n] = value;
        line = end + (*end == ',');
    }
    const double *time = cnri_trace_column_of(t, "", CNRI_COLUMN_TIME)->at;
    if (isnan(time[t->n]) || (t->n && time[t->n] <= time[t->n - 1]))
        return cnri_fail(err, CNR_E_FORMAT, where, "the time does not rise");
    t->n++;
    return CNR_OK;
}

cnr_status cnri_trace_read(const char *path, cnri_trace *out, cnr_error *err) {
    char *text;
    size_t bytes;
    cnri_text note = {0};
    *out = (cnri_trace){0};
    cnr_status status = cnri_read_file(path, TRACE_BYTES, &text, &bytes, err);
    if (status) return status;
    int32_t number = 0;
    for (const char *line = text; *line && !status;
         line += strcspn(line, "\n"), line += *line == '\n') {
        const int n = (int)strcspn(line, "\r\n");
        number++;
        if (*line == '#')
            cnri_text_add(&note, "%s%.*s", note.n ? "\n" : "", n > 1 ? n - 2 : 0,
                          line + (n > 1 ? 2 : 1));
        else if (n > 0 && out->columns.n == 0) status = read_header(out, path, line, err);
        else if (n > 0) status = read_row(out, path, line, number, err);
    }
    if (!status && out->n < 2) status = cnri_fail(err, CNR_E_FORMAT, path, "holds no two rows");
    if (!status) out->note = cnri_strdup(note.at ? note.at : "");
    if (!status && !out->note) status = cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    cnri_text_free(&note);
    cnri_free(text);
    if (status) cnri_trace_free(out);
    return status;
}

/* Frees columns and note, and zeroes t. */
void cnri_trace_free(cnri_trace *t) {
    for (int32_t i = 0; i < t->columns.n; i++) cnri_free(t->columns.at[i].at);
    cnri_vec_free(&t->columns);
    cnri_free(t->note);
    *t = (cnri_trace){0};
}

const cnri_trace_column *cnri_trace_column_of(const cnri_trace *t, const char *name, int32_t what) {
    for (int32_t i = 0; i < t->columns.n; i++)
        if (t->columns.at[i].what == what && (!name || strcmp(t->columns.at[i].name, name) == 0))
            return &t->columns.at[i];
    return NULL;
}

/* ---- replay: the cycles that were worked, at other frequencies ---- */

/* The frequency column of knob number `knob`; knobs are the frequency columns that have a load
 * column. NULL: fewer. */
static const cnri_trace_column *hz_column(const cnri_trace *t, int32_t knob) {
    for (int32_t i = 0; i < t->columns.n; i++) {
        const cnri_trace_column *c = &t->columns.at[i];
        if (c->what == CNRI_COLUMN_HZ && cnri_trace_column_of(t, c->name, CNRI_COLUMN_LOAD) &&
            knob-- == 0)
            return c;
    }
    return NULL;
}

static double at(const cnri_trace_column *c, int32_t row) { return c ? c->at[row] : (double)NAN; }

cnr_status cnri_replay_open(const cnri_trace *t, cnri_replay *out, cnr_error *err) {
    *out = (cnri_replay){.trace = t, .joules = NAN};
    while (out->n_knobs < CNRI_MAX_KNOBS && hz_column(t, out->n_knobs)) out->n_knobs++;
    return out->n_knobs ? CNR_OK
                        : cnri_fail(err, CNR_E_FORMAT, "trace",
                                    "it has no frequency with a load: want NAME.hz and NAME.load");
}

/* Number of the row that is valid at the replay's time: the last one not after it. */
static int32_t row_at(const cnri_replay *r) {
    const double *time = cnri_trace_column_of(r->trace, "", CNRI_COLUMN_TIME)->at;
    int32_t low = 0, high = r->trace->n - 1;
    while (low < high) {
        const int32_t middle = (low + high + 1) / 2;
        if (time[middle] - time[0] <= r->time + 1e-9) low = middle;
        else high = middle - 1;
    }
    return low;
}

void cnri_replay_pass(cnri_replay *r, double seconds) {
    const double *time = cnri_trace_column_of(r->trace, "", CNRI_COLUMN_TIME)->at;
    r->time += seconds;
    r->period = seconds;
    r->over = r->time > time[r->trace->n - 1] - time[0];
}

/* Describes the knobs; their steps are the frequencies that were recorded. */
static void describe(const cnri_replay *r, cnri_seen *s) {
    *s = (cnri_seen){.n_knobs = r->n_knobs,
                     .watts = NAN,
                     .joules = NAN,
                     .temperature = NAN,
                     .runs = {.seconds = NAN, .cycle = NAN, .joules = NAN}};
    for (int32_t i = 0; i < r->n_knobs; i++) {
        const cnri_trace_column *hz = hz_column(r->trace, i);
        cnri_seen_knob *k = &s->knobs[i];
        memcpy(k->name, hz->name, sizeof k->name);
        k->cores = -1;
        k->writable = 1;
        for (int32_t row = 0; row < r->trace->n; row++) {
            const uint64_t step = hz->at[row] > 0 ? (uint64_t)hz->at[row] : 0;
            int32_t j = k->n_steps;
            while (j > 0 && k->steps[j - 1] > step) j--;
            if (!step || (j > 0 && k->steps[j - 1] == step) || k->n_steps == CNRI_MAX_STEPS)
                continue;
            memmove(&k->steps[j + 1], &k->steps[j], (size_t)(k->n_steps - j) * sizeof *k->steps);
            k->steps[j] = step;
            k->n_steps++;
        }
        k->min_hz = k->n_steps ? k->steps[0] : 0;
        k->max_hz = k->n_steps ? k->steps[k->n_steps - 1] : 0;
        k->asked = 0;
    }
}

/* The load at the frequency in force: recorded cycles and backlog, as a part of the cycles
 * available. */
static void look_at_knob(cnri_replay *r, int32_t i, int32_t row, cnri_seen_knob *k) {
    const cnri_trace_column *hz = hz_column(r->trace, i);
    const double was = at(hz, row),
                 load = at(cnri_trace_column_of(r->trace, hz->name, CNRI_COLUMN_LOAD), row);
    const double now = r->asked[i] > 0 ? r->asked[i] : was;
    k->hz = now > 0 ? (uint64_t)now : 0;
    k->load = NAN;
    k->temperature = at(cnri_trace_column_of(r->trace, hz->name, CNRI_COLUMN_TEMPERATURE), row);
    if (isnan(load) || !(now > 0) || !(was > 0)) return;
    const double wanted = load * was * r->period + r->backlog[i], most = now * r->period;
    k->load = r->period > 0 ? fmin(wanted / most, 1) : load;
    r->backlog[i] = fmax(wanted - most, 0);
}

/* Shows a governor the recording's values at the replay's time. */
static cnr_status look(void *arg, cnri_seen *s, cnr_error *err) {
    cnri_replay *r = arg;
    const int32_t row = row_at(r);
    (void)err;
    if (s->n_knobs == 0) describe(r, s);
    s->period = r->period;
    s->time = r->time;
    for (int32_t i = 0; i < s->n_knobs; i++) look_at_knob(r, i, row, &s->knobs[i]);
    const cnri_trace_column *runs = cnri_trace_column_of(r->trace, "", CNRI_COLUMN_RUNS);
    const int64_t count = runs && !isnan(runs->at[row]) ? (int64_t)runs->at[row] : s->runs.count;
    s->runs.fresh = count > s->runs.count ? count - s->runs.count : 0;
    s->runs.count = count;
    return CNR_OK;
}

/* Notes the frequency that a governor asks for; the recording stays as it is. */
static cnr_status set(void *arg, int32_t knob, uint64_t hz, int32_t cores, cnr_error *err) {
    (void)cores, (void)err;
    ((cnri_replay *)arg)->asked[knob] = (double)hz;
    return CNR_OK;
}

cnri_machine cnri_replay_machine(cnri_replay *r) { return (cnri_machine){r, look, set}; }
