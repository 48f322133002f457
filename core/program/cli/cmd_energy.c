/* cnnrun energy: the domains of meters, a log of them, their curves, and the energy of a
 * command. */
#include "cli/cli.h"
#include "watch/watch.h"
#include "people/people.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* Options of energy. */
typedef struct energy {
    const char *csv, *counter, *plot, *page;
    double seconds, idle;
} energy;

static const cnri_option options[] =
    {CNRI_OPTION(energy, csv, "--csv", "FILE",
                 "log, watch: a line each 50 ms: time, watts and joules of each domain",
                 .writes = true),
     CNRI_OPTION(energy, counter, "--counter", "FILE",
                 "log, watch: the joules so far, for any process to read "
                 "($XDG_RUNTIME_DIR/cnnrun-energy.json)",
                 .writes = true),
     CNRI_OPTION(energy, page, "--page", "WHERE",
                 "log, watch: a live page of the curves, on this port of this machine alone, or on "
                 "ADDRESS:PORT"),
     CNRI_OPTION(energy, seconds, "--seconds", "X", "log, watch: duration (until Ctrl-C)",
                 .max = 1e9),
     CNRI_OPTION(energy, idle, "--idle", "W",
                 "run: idle power of the machine (measured before the command and after it)",
                 .max = 1e9),
     CNRI_OPTION(energy, plot, "--plot", "FILE",
                 "log, watch: the curves, .svg or .png; their numbers beside it, as .csv",
                 .writes = true, .beside = ".csv")};

/* ---- list ---- */

/* Result: a meter's domain. */
typedef struct row {
    const char *name, *meter, *kind, *feeds, *error;
    char now[32], period[24];
    int32_t period_ms;
    bool estimated;
} row;
static const cnri_field row_fields[] = {CNRI_FIELD(row, "domain", name),
                                        CNRI_KEY(row, meter),
                                        CNRI_KEY(row, kind),
                                        CNRI_KEY(row, period_ms),
                                        CNRI_KEY(row, feeds),
                                        CNRI_KEY(row, estimated),
                                        CNRI_KEY(row, error),
                                        CNRI_ASIDE(row, "now", now),
                                        CNRI_ASIDE(row, "period", period)};
static const cnri_record row_record =
    CNRI_RECORD(row_fields,
                "{domain:-18} {meter:-10} {kind:-8} {period:-10} {now:-14}{feeds? feeds {feeds}}"
                "{estimated? (estimated)}{error? {error}}\n");

/* Prints a domain. */
static cnr_status tell_row(const cnri_call *call, const cnr_gauge *g, cnr_error *err) {
    const bool counter = g->quantity == CNR_QUANTITY_ENERGY;
    row r = {.name = g->name,
             .meter = g->plugin,
             .kind = counter ? "counter" : "power",
             .feeds = *g->feeds ? g->feeds : NULL,
             .error = g->status ? g->why : NULL,
             .now = "unread",
             .period_ms = g->period_ms,
             .estimated = g->estimated != 0};
    if (!g->status)
        snprintf(r.now, sizeof r.now, "%.6g %s", (double)g->value * 1e-6, counter ? "J" : "W");
    if (g->period_ms) snprintf(r.period, sizeof r.period, "%d ms", (int)g->period_ms);
    else snprintf(r.period, sizeof r.period, "any time");
    return cnri_tell(call, &row_record, &r, err);
}

/* Fills err: there is no meter. */
static cnr_status unmeasured(cnr_error *err) {
    return cnri_fail(err, CNR_E_NOT_FOUND, "", "unmeasured: no plugin finds a meter here");
}

/* energy list: prints the domains of all meters; CNR_E_NOT_FOUND: there are none. */
static cnr_status list(cnri_call *call, const energy *e, cnr_error *err) {
    cnr_gauge_list gauges = {0};
    int32_t n = 0;
    (void)e;
    cnr_status status = cnr_gauges(call->rt, NULL, NULL, &gauges, err);
    for (int32_t i = 0; i < gauges.n && !status; i++) {
        const int32_t quantity = gauges.at[i].quantity;
        if (quantity != CNR_QUANTITY_ENERGY && quantity != CNR_QUANTITY_POWER) continue;
        status = tell_row(call, &gauges.at[i], err);
        n++;
    }
    cnr_gauges_free(&gauges);
    return status || n ? status : unmeasured(err);
}

/* ---- what it came to ---- */

/* Result: energy of a command. */
typedef struct whole {
    double seconds;
    int32_t code;
    cnri_energy_shown e;
    double share;
} whole;
static const cnri_field whole_fields[] = {CNRI_KEY(whole, seconds),
                                          CNRI_FIELD(whole, "exit_code", code),
                                          CNRI_ENERGY_FIELDS(whole, e),
                                          CNRI_FIELD(whole, "sampler_share", share)};
static const cnri_record whole_record =
    CNRI_RECORD(whole_fields, "time      {seconds:.3f} s\n" CNRI_ENERGY_LINE);

/* Prints the energy of a command that ended with `code`, in all and by domain. */
static cnr_status tell_whole(const cnri_call *call, const cnr_energy *e, int code, cnr_error *err) {
    const whole w = {e->seconds, code, cnri_energy_show(e, "in all", 0), e->sampler_share};
    const cnr_status status = cnri_tell(call, &whole_record, &w, err);
    return status ? status : cnri_tell_domains(call, e, (double)NAN, err);
}

/* ---- curves in a terminal: a line a domain, its last readings as blocks ---- */

enum { WIDTH = 48, MAX_LINES = 32, EVERY = 2 /* WIDTH: readings in a curve */ };
/* The curves that energy watch draws. */
typedef struct curves {
    const cnri_call *call;
    cnri_power_page *page; /* where rows are shown; NULL: nowhere */
    bool terminal, blocks, watched;
    int64_t readings;
    int32_t drawn; /* lines that are on the screen now */
    float at[MAX_LINES][WIDTH];
} curves;

/* True if the terminal understands UTF-8. */
static bool speaks_utf8(void) {
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"}, *is = NULL;
    for (size_t i = 0; i < CNRI_COUNT(names) && (!is || !*is); i++) is = getenv(names[i]);
    return is && (strstr(is, "UTF-8") || strstr(is, "utf8"));
}

/* Draws the curve of one domain, in blocks of a line as high as its largest power. */
static void draw_line(const curves *c, int32_t line, const cnri_energy_row *r) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ":", "-", "=", "+", "*", "%", "#"};
    char text[WIDTH * 4 + 1] = "";
    size_t n = 0;
    float maximum = 0;
    for (int32_t i = 0; i < WIDTH; i++)
        if (c->at[line][i] > maximum) maximum = c->at[line][i];
    for (int32_t i = 0; i < WIDTH; i++) {
        const float part = maximum > 0 && c->at[line][i] > 0 ? c->at[line][i] / maximum : 0;
        const int32_t level = isfinite(c->at[line][i]) ? (int32_t)(part * 8 + 0.5f) : 0;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", (c->blocks ? blocks : plain)[level]);
    }
    cnri_say(stdout, "\r\033[K%-14s %s", r->names[line], text);
    if (isfinite(r->watts[line]))
        cnri_say(stdout, " %8.3f W (most %.3f) %10.3f J\n", r->watts[line], (double)maximum,
                 r->joules[line]);
    else cnri_say(stdout, " unread\n");
}

/* Draws all curves over those drawn before, by moving the cursor up. */
static void draw(curves *c, const cnri_energy_row *r) {
    const int32_t n = r->n < MAX_LINES ? r->n : MAX_LINES;
    if (c->drawn) cnri_say(stdout, "\033[%dA", (int)c->drawn);
    cnri_say(stdout, "\r\033[K%.1f s, of the whole machine\n", r->seconds);
    for (int32_t i = 0; i < n; i++) draw_line(c, i, r);
    c->drawn = n + 1;
    fflush(stdout);
}

/* Prints a row as JSON. */
static cnr_status tell_json_row(const cnri_energy_row *r, cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_real(&j, "time_s", r->seconds);
    cnri_json_object(&j, "watts");
    for (int32_t i = 0; i < r->n; i++) cnri_json_real(&j, r->names[i], r->watts[i]);
    cnri_json_end(&j);
    cnri_json_object(&j, "joules");
    for (int32_t i = 0; i < r->n; i++) cnri_json_real(&j, r->names[i], r->joules[i]);
    cnri_json_end(&j);
    return cnri_json_print(&j, err);
}

/* Prints one line a second where the output is no terminal. */
static cnr_status tell_plain_row(const cnri_energy_row *r, cnr_error *err) {
    cnri_say(stdout, "%.2f s", r->seconds);
    for (int32_t i = 0; i < r->n; i++) {
        if (isfinite(r->watts[i])) cnri_say(stdout, "  %s %.3f W", r->names[i], r->watts[i]);
        else cnri_say(stdout, "  %s unread", r->names[i]);
    }
    const bool written = cnri_say(stdout, "\n") >= 0 && fflush(stdout) == 0;
    return written ? CNR_OK
                   : cnri_fail(err, CNR_E_IO, "output", "can't write: %s", strerror(errno));
}

/* Takes one row: draws it, prints it, shows it on the page. */
static int32_t hear(void *arg, int32_t kind, const void *of) {
    curves *c = arg;
    const cnri_energy_row *r = of;
    cnr_error err = CNR_ERROR_INIT;
    if (kind != CNRI_EVENT_ENERGY) return 0;
    if (c->page && cnri_power_page_show(c->page, r, &err)) return cnri_complain(c->call, &err);
    if (!c->watched) return 0;
    for (int32_t i = 0; i < r->n && i < MAX_LINES; i++) {
        memmove(c->at[i], c->at[i] + 1, sizeof c->at[i] - sizeof c->at[i][0]);
        c->at[i][WIDTH - 1] = (float)r->watts[i];
    }
    const int64_t reading = c->readings++;
    cnr_status status = CNR_OK;
    if (c->call->common.json) status = tell_json_row(r, &err);
    else if (c->terminal && reading % EVERY == 0) draw(c, r);
    else if (!c->terminal && reading % (1000 / CNRI_SAMPLE_MS) == 0)
        status = tell_plain_row(r, &err);
    return status ? cnri_complain(c->call, &err) : 0;
}

/* ---- log and watch ---- */

/* Follows the meters until the time is over or it is stopped; watched: draws curves on the screen.
 */
static cnr_status follow(cnri_call *call, const energy *e, bool watched, cnr_error *err) {
    curves c = {.call = call,
                .watched = watched,
                .terminal = isatty(STDOUT_FILENO) == 1,
                .blocks = speaks_utf8()};
    const char *folder = getenv("XDG_RUNTIME_DIR");
    char *csv = e->plot && !e->csv ? cnri_path_with_ending(e->plot, ".csv") : NULL;
    char *counter = !e->counter && folder && *folder == '/'
                        ? cnri_path_join(folder, "cnnrun-energy.json")
                        : NULL;
    const cnri_follow_options o = {.seconds = e->seconds,
                                   .csv = csv ? csv : e->csv,
                                   .counter = counter ? counter : e->counter};
    cnr_energy got = {.size = sizeof got};
    cnr_observer observer = *cnri_watch(call);
    observer.arg = &c;
    observer.progress = NULL;
    observer.event = hear;
    if (!call->common.quiet && o.counter)
        cnri_say(stderr, "joules so far, for any process to read: %s\n", o.counter);
    cnr_status status = e->page ? cnri_power_page_open(call, e->page, &c.page, err) : CNR_OK;
    if (!status) status = cnri_energy_follow(call->rt, &o, &observer, &got, err);
    cnri_power_page_close(c.page);
    if (!status) status = tell_whole(call, &got, 0, err);
    if (!status && e->plot) status = cnri_app_draw(call, "power", o.csv, e->plot, err);
    cnr_energy_free(&got);
    cnri_free(csv);
    cnri_free(counter);
    return status;
}

/* energy log: writes readings to a CSV file until the end. */
static cnr_status keep_log(cnri_call *call, const energy *e, cnr_error *err) {
    return follow(call, e, false, err);
}

/* energy watch: draws the domains' power until the end. */
static cnr_status watch(cnri_call *call, const energy *e, cnr_error *err) {
    return follow(call, e, true, err);
}

/* ---- run ---- */

/* Prints the result apart from the command's own output on stdout: for people on standard error, as
 * JSON behind that output; code: the command's. */
static cnr_status tell_apart(const cnri_call *call, const cnr_energy *e, int code, cnr_error *err) {
    if (call->common.json) return tell_whole(call, e, code, err);
    fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return cnri_fail(err, CNR_E_IO, "output", "can't be told: %s", strerror(errno));
    const cnr_status status = tell_whole(call, e, code, err);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    return status;
}

/* energy run -- COMMAND: runs it and prints its energy; its exit code becomes ours. */
static cnr_status run_command(cnri_call *call, const energy *e, cnr_error *err) {
    cnr_energy got = {.size = sizeof got};
    const int32_t n = call->operands.n - 1;
    const cnr_energy_options o = {.size = sizeof o, .idle_watts = e->idle, .idle_behind = 1};
    int code = 0;
    call->stdout_taken = true;
    if (n < 1) {
        call->code =
            cnri_mistake("energy", NULL, "a command is missing: cnnrun energy run -- COMMAND...");
        return CNR_OK;
    }
    char **argv = cnri_alloc_zero(((size_t)n + 1) * sizeof *argv);
    if (!argv) return cnri_out_of_memory(err, "energy");
    for (int32_t i = 0; i < n; i++) argv[i] = (char *)(uintptr_t)call->operands.at[i + 1];
    cnr_status status = cnri_energy_command(call->rt, argv, &o, cnri_watch(call), &got, &code, err);
    cnri_free(argv);
    if (status == CNR_E_NOT_FOUND && code) {
        cnri_complain(call, err); /* and exits as shells do, not as we do */
        call->code = code;
        return CNR_OK;
    }
    if (!status) status = tell_apart(call, &got, code, err);
    if (!status) call->code = code;
    cnr_energy_free(&got);
    return status;
}

/* ---- the command ---- */

/* The subcommands by their first word; the names of some words alone would be operators. */
static const struct {
    const char *text;
    cnr_status (*run)(cnri_call *call, const energy *e, cnr_error *err);
} verbs[] = {{"list the domains", list},
             {"log what they draw", keep_log},
             {"watch it as it goes", watch},
             {"run a command", run_command}};

/* The command energy. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    char names[CNRI_COUNT(verbs)][16];
    const char *words[CNRI_COUNT(verbs)], *word = call->operands.at[0];
    for (size_t i = 0; i < CNRI_COUNT(verbs); i++) {
        snprintf(names[i], sizeof names[i], "%.*s", (int)strcspn(verbs[i].text, " "),
                 verbs[i].text);
        words[i] = names[i];
        if (strcmp(word, words[i]) != 0) continue;
        if (verbs[i].run == run_command || call->operands.n == 1)
            return verbs[i].run(call, values, err);
        call->code =
            cnri_mistake("energy", NULL, "one word too many: \"%s\"", call->operands.at[1]);
        return CNR_OK;
    }
    call->code = cnri_mistake("energy", cnri_nearest_word(word, words, CNRI_COUNT(words)),
                              "want list, log, watch or run, got \"%s\"", word);
    return CNR_OK;
}

const cnri_command cnri_cmd_energy = {
    .name = "energy",
    .example = "cnnrun energy run -- sleep 5",
    .operands = "list | log | watch | run -- COMMAND...",
    .summary =
        "Lists the domains of meters, keeps a log of them, shows them as they go, or tells what\n"
        "a command took. Readings are of the whole machine, not of a process.",
    .details =
        "run measures idle power for a second before the command and after it, and exits "
        "as\n"
        "the command does; people are told on stderr, JSON comes behind the command's own output. "
        "Joules\n"
        "net of idle are not told (null, and net_unmeasured says why) where something else was "
        "running\n"
        "before: --idle W tells it instead. Without a meter all is unmeasured, never 0, and so are "
        "the\n"
        "sums where a domain fails meanwhile. One that could not be read at first is named: "
        "missing.\n"
        "energy_source is measured, estimated, simulated (a board's, by its clock) or unmeasured.\n"
        "The counter is one line of JSON, replaced each 50 ms as a whole: {\"time_ns\", \"pid\",\n"
        "\"running\", \"domains\": [{\"meter\", \"name\", \"joules\"}]}: what a region of code "
        "took\n"
        "is the difference of two readings. watch --json: {\"time_s\", \"watts\": {NAME: W}, "
        "\"joules\":\n"
        "{NAME: J}} for each reading.",
    .results = CNRI_RESULTS(&row_record, &whole_record, &cnri_energy_domain),
    CNRI_OPTIONS(options),
    CNRI_VALUES(energy, .seconds = 0),
    .min_operands = 1,
    .max_operands = -1,
    .opens = cnri_call_open,
    .run = run,
};
