/* Prints findings of judgements as TAP or JSON, and writes them as a report. */
#include "cli/conform.h"
#include "kernelcheck/kernelcheck.h"
#include "lua/script.h"
#include "people/people.h"
#include <cnnrun/version.h>

/* Result: a judgement. */
typedef struct row {
    const char *kind, *name, *device, *judgement, *result, *why;
    int64_t cases;
    double seconds;
    bool failed, skipped;
    int32_t number;
} row;
static const cnri_field fields[] = {CNRI_KEY(row, kind),
                                    CNRI_KEY(row, name),
                                    CNRI_MAYBE(row, "device", device),
                                    CNRI_KEY(row, judgement),
                                    CNRI_KEY(row, result),
                                    CNRI_KEY(row, why),
                                    CNRI_KEY(row, cases),
                                    CNRI_KEY(row, seconds),
                                    CNRI_ASIDE(row, "failed", failed),
                                    CNRI_ASIDE(row, "skipped", skipped),
                                    CNRI_ASIDE(row, "number", number)};
const cnri_record cnri_conform_record =
    CNRI_RECORD(fields, "{failed?not }ok {number} - {kind} {name}{device? on {device}}: "
                        "{judgement}{skipped? # SKIP {why}|{failed?: {why}}}\n");

/* Where findings are printed, and the parts of the report: TAP, HTML, JSON. */
typedef struct telling {
    cnri_call *call;
    const cnri_conform_call *c;
    int32_t n;
    cnri_text tap, html, json, plain; /* parts of the report */
    cnr_error err;                    /* error of writing */
} telling;

/* ---- rows of the report ---- */

/* Appends a text with characters of HTML escaped. */
static void add_html(cnri_text *out, const char *text) {
    for (; text && *text; text++)
        if (*text == '<') cnri_text_add(out, "&lt;");
        else if (*text == '&') cnri_text_add(out, "&amp;");
        else if (*text == '"') cnri_text_add(out, "&quot;");
        else if ((unsigned char)*text < ' ') cnri_text_add(out, " ");
        else cnri_text_bytes(out, text, 1);
}

/* Appends a cell of a table. */
static void add_cell(cnri_text *out, const char *text) {
    cnri_text_add(out, "<td>");
    add_html(out, text);
    cnri_text_add(out, "</td>");
}

/* Adds a finding to all parts of the report. */
static void add_rows(telling *t, const row *r) {
    cnri_json j;
    cnri_text_say(&t->tap, "%sok %d - %s %s%s%s: %s", r->failed ? "not " : "", (int)r->number,
                  r->kind, r->name, r->device ? " on " : "", r->device ? r->device : "",
                  r->judgement);
    cnri_text_say(&t->tap, "%s%s\n",
                  r->skipped  ? " # SKIP "
                  : r->failed ? ": "
                              : "",
                  r->why ? r->why : "");
    cnri_json_begin(&j);
    cnri_json_fields(&j, &cnri_conform_record, r);
    cnri_json_end(&j);
    cnri_text_add(&t->json, "%s%s", t->n > 1 ? ",\n" : "", j.text.at ? j.text.at : "");
    cnri_text_free(&j.text);
    cnri_text_say(&t->plain, "%-8s %s %s%s%s: %s%s%s\n", r->result, r->kind, r->name,
                  r->device ? " on " : "", r->device ? r->device : "", r->judgement,
                  r->why ? ": " : "", r->why ? r->why : "");
    cnri_text_add(&t->html, "<tr class=\"%s\">", r->result);
    add_cell(&t->html, r->result);
    add_cell(&t->html, r->kind);
    add_cell(&t->html, r->name);
    add_cell(&t->html, r->device);
    add_cell(&t->html, r->judgement);
    cnri_text_add(&t->html, "<td>%lld</td>", (long long)r->cases);
    add_cell(&t->html, r->why);
    cnri_text_add(&t->html, "</tr>\n");
}

/* Prints a finding, and adds it to the reports; an error of writing is kept in t->err. */
static void found(void *arg, const cnri_finding *f) {
    static const char *const words[] = {[CNRI_VERDICT_FAILS] = "failed",
                                        [CNRI_VERDICT_HOLDS] = "passed",
                                        [CNRI_VERDICT_SKIPPED] = "skipped"};
    telling *t = arg;
    const row r = {.kind = f->kind,
                   .name = f->name,
                   .device = f->device,
                   .judgement = f->judgement,
                   .result = words[f->verdict],
                   .why = f->why,
                   .cases = f->cases,
                   .seconds = f->seconds,
                   .failed = f->verdict == CNRI_VERDICT_FAILS,
                   .skipped = f->verdict == CNRI_VERDICT_SKIPPED,
                   .number = ++t->n};
    if (t->c->output) add_rows(t, &r);
    (void)cnri_tell(t->call, &cnri_conform_record, &r, &t->err);
    fflush(stdout);
}

/* Prints a remark as a comment line: to stderr if stdout has JSON. */
static void note(void *arg, const char *text) {
    const telling *t = arg;
    cnri_say(t->call->common.json ? stderr : stdout, "# %s\n", text);
}

/* ---- the report ---- */

/* Ending of a path, with its dot; "": none. */
static const char *ending_of(const char *path) {
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot ? dot : "";
}

/* The `wrong` hook of both commands: NULL, or what is wrong with -o's ending. The first member of
 * `values` is a cnri_conform_call. */
const char *cnri_conform_wrong(const cnri_call *call, const void *values) {
    const cnri_conform_call *c = values;
    const char *ending = ending_of(c->output);
    (void)call;
    if (!c->output || strcmp(ending, ".html") == 0 || strcmp(ending, ".json") == 0 ||
        strcmp(ending, ".tap") == 0 || strcmp(ending, ".txt") == 0)
        return NULL;
    return "-o: wanted a name that ends with .html, .json, .tap or .txt";
}

/* The subject of the report: "acme 1.0", or the name of the device. */
static char *subject_of(const cnri_conform_call *c) {
    const cnri_plugin *p = c->o.plugin;
    return p ? cnri_format("%s %s", p->name, p->version) : cnri_strdup(c->o.device);
}

/* Builds the report as a web page. */
static void write_html(const telling *t, const char *subject, const cnri_conform_totals *sum,
                       cnri_text *out) {
    cnri_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    add_html(out, subject);
    cnri_text_add(out,
                  ": conformance</title>\n<style>body{font:15px sans-serif;margin:2em}"
                  "table{border-collapse:collapse}td,th{border:1px solid #ccc;padding:.2em .6em;"
                  "text-align:left;vertical-align:top}.failed{background:#fbd5d5}"
                  ".passed td:first-child{background:#d8f5d8}.skipped{color:#777}</style></head>\n"
                  "<body><h1>");
    add_html(out, subject);
    cnri_text_add(out,
                  "</h1>\n<p>%d judgements: %d failed, %d skipped; %lld cases, seed %lld. "
                  "cnnrun %s, plugin ABI %d.%d.</p>\n<table><tr><th>result</th><th>kind</th>"
                  "<th>name</th><th>device</th><th>judgement</th><th>cases</th><th>why</th></tr>\n",
                  (int)sum->findings, (int)sum->failed, (int)sum->skipped, (long long)sum->cases,
                  (long long)t->c->o.check.seed, CNNRUN_VERSION, (int)CNR_ABI_MAJOR,
                  (int)CNR_ABI_MINOR);
    cnri_text_add(out, "%s</table></body></html>\n", t->html.at ? t->html.at : "");
}

/* Builds the report as JSON. */
static void write_json(const telling *t, const char *subject, const cnri_conform_totals *sum,
                       cnri_text *out) {
    cnri_text_add(out, "{\"subject\":");
    cnri_text_json(out, subject);
    cnri_text_add(out,
                  ",\"cnnrun\":\"%s\",\"abi\":\"%d.%d\",\"seed\":%lld,\"judgements\":%d,"
                  "\"failed\":%d,\"skipped\":%d,\"cases\":%lld,\"findings\":[\n%s\n]}\n",
                  CNNRUN_VERSION, (int)CNR_ABI_MAJOR, (int)CNR_ABI_MINOR,
                  (long long)t->c->o.check.seed, (int)sum->findings, (int)sum->failed,
                  (int)sum->skipped, (long long)sum->cases, t->json.at ? t->json.at : "");
}

/* Builds the report as text. */
static void write_text(const telling *t, const char *subject, const cnri_conform_totals *sum,
                       cnri_text *out) {
    cnri_text_add(out,
                  "%s: %d judgements, %d failed, %d skipped; %lld cases, seed %lld; cnnrun %s, "
                  "plugin ABI %d.%d\n",
                  subject, (int)sum->findings, (int)sum->failed, (int)sum->skipped,
                  (long long)sum->cases, (long long)t->c->o.check.seed, CNNRUN_VERSION,
                  (int)CNR_ABI_MAJOR, (int)CNR_ABI_MINOR);
    cnri_text_add(out, "%s", t->plain.at ? t->plain.at : "");
}

/* Writes the report. */
static cnr_status write_report(const telling *t, const cnri_conform_totals *sum, cnr_error *err) {
    const char *path = t->c->output, *ending = ending_of(path);
    cnri_text text = {0};
    cnri_writer w;
    char *subject = subject_of(t->c);
    const char *of = subject ? subject : "";
    if (strcmp(ending, ".html") == 0) write_html(t, of, sum, &text);
    else if (strcmp(ending, ".json") == 0) write_json(t, of, sum, &text);
    else if (strcmp(ending, ".txt") == 0) write_text(t, of, sum, &text);
    else cnri_text_add(&text, "%s1..%d\n", t->tap.at ? t->tap.at : "", (int)sum->findings);
    cnr_status status = text.failed || !subject ? cnri_out_of_memory(err, path)
                                                : cnri_write_begin(&w, path, 0, err);
    if (!status) {
        status = cnri_write(&w, text.at, text.n, err);
        if (!status) status = cnri_write_commit(&w, err);
        else cnri_write_abandon(&w);
    }
    cnri_free(subject);
    cnri_text_free(&text);
    return status;
}

/* ---- the command ---- */

/* Fails if no judgement has the name of --only. */
static cnr_status check_only(const char *only, cnr_error *err) {
    CNRI_VEC(const char *) names = {0};
    const char *kind, *name, *summary, *near;
    for (int32_t i = 0; only && cnri_conform_judgement(i, &kind, &name, &summary); i++) {
        const char **slot = cnri_push(&names);
        if (slot) *slot = name;
        if (strcmp(name, only) == 0) only = NULL;
    }
    const char **last = cnri_push(&names);
    if (last) *last = "names"; /* of a plugin, in the parent */
    if (only && (strcmp(only, "names") == 0 || strcmp(only, "expression") == 0)) only = NULL;
    near = only ? cnri_nearest_word(only, names.at, names.n) : NULL;
    cnri_vec_free(&names);
    if (!only) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, "--only", "no judgement \"%s\"%s%s%s", only,
                     near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* Finds shipped nets to try regions on, if none was named. */
static cnr_status find_nets(cnri_conform_call *c, char *found[2], cnr_error *err) {
    static const char *const names[] = {"check/forms.lua", "nets/lenet5.lua"};
    const bool none = c->nets.n == 0;
    bool good = true;
    for (size_t i = 0; i < CNRI_COUNT(names) && none && good; i++) {
        const char **slot = cnri_push(&c->nets);
        good = slot != NULL;
        if (good && (*slot = found[i] = cnri_lua_shipped(names[i])) == NULL) c->nets.n--;
    }
    const char **end = good ? cnri_push(&c->nets) : NULL;
    if (!end) return cnri_out_of_memory(err, "conform");
    *end = NULL;
    c->o.nets = c->nets.at;
    return CNR_OK;
}

cnr_status cnri_conform_command(cnri_call *call, cnri_conform_call *c, cnr_error *err) {
    cnri_conform_options *o = &c->o;
    char *shipped[2] = {NULL, NULL};
    cnri_checked_net net = {.rt = call->rt};
    cnri_conform_totals sum = {0};
    telling t = {.call = call, .c = c, .err = CNR_ERROR_INIT};
    o->check.words = call->argv;
    o->check.n_words = call->argc;
    o->check.arg = &t;
    o->check.note = note;
    o->check.cancelled = cnri_cancelled;
    o->sysfs_root = call->common.sysfs_root;
    o->meter_address = call->common.meter_address;
    if (check_only(o->only, err)) return CNR_E_ARG;
    o->check.open_net = cnri_checked_open;
    o->check.whole_net = cnri_checked_whole;
    o->check.net_arg = &net;
    if (c->worker && c->nets.n) net.path = o->check.net = c->nets.at[c->nets.n - 1];
    if (c->worker && strncmp(c->worker, "net:", 4) == 0) o->check.plugin = NULL; /* a net's all */
    o->rt = call->rt;
    if (find_nets(c, shipped, err)) return CNR_E_MEMORY;
    if (c->worker) return cnri_conform_work(o, c->worker, err);
    o->arg = &t;
    o->found = found;
    const bool tap = !call->common.json;
    if (tap) cnri_say(stdout, "# seed %lld\n", (long long)o->check.seed);
    cnr_status status = cnri_conform_run(o, &sum, err);
    if (tap && sum.findings)
        cnri_say(stdout, "1..%d\n# %d judgements, %lld cases, %d failed, %d skipped\n",
                 (int)sum.findings, (int)sum.findings, (long long)sum.cases, (int)sum.failed,
                 (int)sum.skipped);
    if (!status && t.err.code) status = cnri_fail(err, t.err.code, t.err.where, "%s", t.err.text);
    if (!status && c->output) status = write_report(&t, &sum, err);
    if (sum.failed) call->code = 1;
    if (cnri_cancelled()) call->code = cnri_exit_code(CNR_E_CANCELLED);
    cnri_text_free(&t.tap);
    cnri_text_free(&t.html);
    cnri_text_free(&t.plain);
    cnri_text_free(&t.json);
    for (size_t i = 0; i < CNRI_COUNT(shipped); i++) cnri_free(shipped[i]);
    return status;
}
