/* cnnrun run: classifies pictures with a net; also runs experiments, which are scripts with a
 * main. */
#include "cli/cli.h"
#include "lua/script.h"
#include "people/people.h"
#include <glob.h>
#include <math.h>
#include <unistd.h>

enum { BAR = 30, WIDEST = 40 };

/* Options of run. */
typedef struct run {
    int64_t top, every, repeat;
    double from, to;
    const char *output; /* word of --output, for scripts */
    bool energy;
} run;

static const cnri_option options[] =
    {CNRI_OPTION(run, top, "--top", "K", "how many answers a picture (5)", .min = 1, .max = 1e6),
     CNRI_OPTION(run, every, "--every", "N", "each Nth frame of a video, or picture (1)", .min = 1,
                 .max = 1e9),
     CNRI_OPTION(run, from, "--from", "SECONDS", "start position in the video", .min = 0,
                 .max = 1e9),
     CNRI_OPTION(run, to, "--to", "SECONDS", "and up to then", .min = 0, .max = 1e9),
     CNRI_OPTION(run, repeat, "--repeat", "N",
                 "run all of it N times; without --json the last is told", .min = 1, .max = 1e9),
     CNRI_OPTION(run, output, "--output", "DIR", "a folder that a script may write to; it is made"),
     CNRI_OPTION(run, energy, "--energy", NULL, "what the pictures took, where there is a meter")};

/* Result: energy of all pictures. */
typedef struct whole {
    cnri_energy_shown e;
} whole;
static const cnri_field whole_fields[] = {CNRI_ENERGY_FIELDS(whole, e)};
static const cnri_record whole_record = CNRI_RECORD(whole_fields, CNRI_ENERGY_LINE);

/* ---- one answer ---- */

/* Width of a text in characters, not bytes, so that columns are aligned. */
static int32_t columns(const char *text) {
    int32_t n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

/* The label of a class; without one its number, written to `number`, which is returned. */
static const char *name_of(const cnr_model *model, int64_t class, char number[24]) {
    const char *label = cnr_label(model, class);
    snprintf(number, 24, "%lld", (long long)class);
    return label ? label : number;
}

/* Prints the classes with their scores as bars. */
static void print_bars(const cnr_model *model, const cnri_recognised *a) {
    char number[24], bar[BAR + 1];
    int32_t widest = 1;
    for (int32_t i = 0; i < a->n; i++) {
        const int32_t w = columns(name_of(model, a->top[i].index, number));
        if (w > widest) widest = w < WIDEST ? w : WIDEST;
    }
    const double minimum = a->n ? (double)a->top[a->n - 1].score : 0;
    const double maximum = a->n ? (double)a->top[0].score : 0;
    for (int32_t i = 0; i < a->n; i++) {
        const char *name = name_of(model, a->top[i].index, number);
        const double score = (double)a->top[i].score;
        const double part = a->shares           ? score
                            : maximum > minimum ? (score - minimum) / (maximum - minimum)
                                                : 1;
        const int32_t marks = part > 0 ? (int32_t)(part * BAR + 0.5) : 0;
        memset(bar, '#', sizeof bar);
        bar[marks > BAR ? BAR : marks] = 0;
        cnri_say(stdout, "  %-*s ", widest, name);
        cnri_say(stdout, a->shares ? "%6.2f%%  %s\n" : "%10.4g  %s\n",
                 a->shares ? score * 100 : score, bar);
    }
}

/* Adds the best classes as a JSON list of index, label and score. */
static void json_top(cnri_json *j, const cnr_model *model, const cnri_recognised *a) {
    cnri_json_list(j, "top");
    for (int32_t i = 0; i < a->n; i++) {
        cnri_json_object(j, NULL);
        cnri_json_int(j, "index", a->top[i].index);
        cnri_json_text(j, "label", cnr_label(model, a->top[i].index));
        cnri_json_real(j, "score", (double)a->top[i].score);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

/* Prints shape and range of an output that has no scores of classes. */
static void print_output(const char *name, const cnr_tensor *t) {
    const cnri_extent r = cnri_extent_of(t);
    cnri_say(stdout, "  %s %s", name, cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++)
        cnri_say(stdout, "%s%lld", i ? "x" : " ", (long long)t->dim[i]);
    if (cnr_count(t) > 0)
        cnri_say(stdout, "  min %.6g  max %.6g  mean %.6g", r.low, r.high, r.mean);
    cnri_say(stdout, "\n");
}

/* Adds an output's shape and range as JSON. */
static void json_output(cnri_json *j, const char *name, const cnr_tensor *t) {
    const cnri_extent r = cnri_extent_of(t);
    cnri_json_object(j, NULL);
    cnri_json_text(j, "name", name);
    cnri_json_list(j, "dims");
    for (int32_t i = 0; i < t->rank; i++) cnri_json_int(j, NULL, t->dim[i]);
    cnri_json_end(j);
    cnri_json_real(j, "lowest", r.low);
    cnri_json_real(j, "highest", r.high);
    cnri_json_real(j, "average", r.mean);
    cnri_json_end(j);
}

/* Prints the outputs that aren't class scores: into j, or for people if j is NULL. */
static cnr_status outputs(const cnr_model *model, const cnri_recognised *a, cnri_json *j,
                          cnr_error *err) {
    const cnr_tensor *t;
    const int32_t first = a->classes, n = cnr_output_count(model);
    cnr_status status = CNR_OK;
    if (first >= n) return CNR_OK;
    if (j) cnri_json_list(j, "outputs");
    for (int32_t i = first; i < n && !status; i++) {
        status = cnr_session_output(a->session, i, &t, err);
        if (!status && j) json_output(j, cnr_output_name(model, i), t);
        else if (!status) print_output(cnr_output_name(model, i), t);
    }
    if (j) cnri_json_end(j);
    return status;
}

/* Adds how the plan was found in the cache: hit, weights-replaced, miss or stale, and why. */
static void json_cache(cnri_json *j, cnr_model *model) {
    cnr_plan *plan = NULL;
    if (!model->cache && !model->graph->is_compiled) return;
    if (cnr_plan_for(model, NULL, 0, &plan, NULL) || !plan->origin) return;
    const size_t n = strcspn(plan->origin, ":");
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)n, plan->origin);
    cnri_json_text(j, "cache", word);
    if (plan->origin[n]) cnri_json_text(j, "cache_why", plan->origin + n + 2);
}

/* Adds what an adapting net tried in this run, or has decided. */
static void json_adapt(cnri_json *j, cnr_model *model) {
    cnr_adapt_report r = {.size = sizeof r};
    if (cnr_adapt_state(model, &r, NULL)) return;
    cnri_json_object(j, "adapt");
    cnri_json_text(j, "phase", r.phase);
    if (r.trying) cnri_json_text(j, "trying", r.trying);
    if (r.reason) cnri_json_text(j, "reason", r.reason);
    cnri_json_int(j, "trials", r.trials);
    cnri_json_int(j, "stopped", r.stopped);
    cnri_json_real(j, "run_ms", r.last_ms);
    if (r.prepare_ms > 0) cnri_json_real(j, "prepare_ms", r.prepare_ms);
    if (r.default_ms > 0) cnri_json_real(j, "default_ms", r.default_ms);
    if (r.settled) {
        cnri_json_text(j, "decided", r.decided);
        cnri_json_text(j, "by", r.by);
        cnri_json_real(j, "chosen_ms", r.chosen_ms);
        cnri_json_real(j, "cost", r.chosen_cost);
        cnri_json_real(j, "cost_of_default", r.chosen_cost / r.default_cost);
        cnri_json_int(j, "runs_until_settled", r.runs_until_settled);
        cnri_json_int(j, "followed", r.followed);
        cnri_json_list(j, "kernels");
        for (int32_t i = 0; i < r.n_kernels; i++) cnri_json_text(j, NULL, r.kernels[i]);
        cnri_json_end(j);
        cnri_json_list(j, "devices");
        for (int32_t i = 0; i < r.n_devices; i++) cnri_json_text(j, NULL, r.devices[i]);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

/* Prints what the net says of a picture. */
static cnr_status tell(const cnri_call *call, const cnri_recognised *a, cnr_error *err) {
    cnri_json j;
    if (!call->common.json) {
        cnri_say(stdout, "%s  %s%.2f ms\n", a->picture,
                 a->classes && !a->shares ? "(scores)  " : "", a->ms);
        print_bars(call->model, a);
        return outputs(call->model, a, NULL, err);
    }
    cnri_json_begin(&j);
    cnri_json_text(&j, "input", a->picture);
    if (!isnan(a->seconds)) cnri_json_real(&j, "seconds", a->seconds);
    cnri_json_real(&j, "ms", a->ms);
    if (a->classes) json_top(&j, call->model, a);
    const cnr_status status = outputs(call->model, a, &j, err);
    json_adapt(&j, call->model);
    json_cache(&j, call->model);
    cnri_json_warnings(&j, call->model->graph);
    if (!status) return cnri_json_print(&j, err);
    cnri_text_free(&j.text);
    return status;
}

/* What events are told. */
typedef struct answer_context {
    cnri_call *call;
    int32_t n_told;
    int64_t left; /* repetitions that follow the present one */
} answer_context;

/* Names the application for nets whose outputs are no scores: this command shows them as numbers.
 */
static void name_application(const answer_context *h, const cnri_recognised *a) {
    const bool first = h->n_told == 1 && !a->err && !a->classes;
    if (first && !h->call->common.json && !h->call->common.quiet)
        cnri_say(stderr, "outputs as numbers; for boxes, masks or places: cnnrun detect NET "
                         "PICTURE\n");
}

/* Prints the answer for a picture, or why it can't be read, which sets the exit code. Returns
 * not 0 to stop. */
static int32_t show_answer(void *arg, int32_t kind, const void *of) {
    answer_context *h = arg;
    cnri_call *call = h->call;
    const cnri_recognised *a = of;
    cnr_error err = CNR_ERROR_INIT;
    if (h->left > 0 && !call->common.json && !a->err) return 0;
    if (kind != CNRI_EVENT_PICTURE) return 0;
    const bool failed = !a->err && tell(call, a, &err) != CNR_OK;
    h->n_told += !a->err;
    name_application(h, a);
    if (a->err || failed) call->code = cnri_complain(call, a->err ? a->err : &err);
    if (!isnan(a->seconds)) fflush(stdout); /* of a camera the next may be long in coming */
    return failed;
}

/* ---- pictures ---- */

/* Adds the files that an operand names; globs in quotes are expanded here. False: it failed. */
static bool add_operand(const char *word, cnri_words *out, glob_t *found) {
    const size_t had = found->gl_pathc;
    const char **slot;
    if (!strpbrk(word, "*?[") || access(word, F_OK) == 0 ||
        glob(word, had ? GLOB_APPEND : 0, NULL, found) != 0) {
        if ((slot = cnri_push(out)) != NULL) *slot = word;
        return slot;
    }
    for (size_t i = had; i < found->gl_pathc; i++) {
        if ((slot = cnri_push(out)) == NULL) return false;
        *slot = found->gl_pathv[i];
    }
    return true;
}

/* Event function: counts the pictures that were recognised. */
static int32_t count(void *arg, int32_t kind, const void *of) {
    answer_context *h = arg;
    h->n_told += kind == CNRI_EVENT_PICTURE && !((const cnri_recognised *)of)->err;
    return 0;
}

/* Repeats the pictures without printing until the meters have measured enough, since a short
 * time is inaccurate. */
static cnr_status repeat(answer_context *h, const cnri_words *pictures, const cnr_selection *choice,
                         int32_t top, cnr_observer observer, cnr_energy_region *region,
                         cnr_error *err) {
    cnr_status status = CNR_OK;
    observer.event = count;
    for (int32_t before = 0;
         region && !status && h->n_told > before && !cnr_energy_long_enough(region);) {
        before = h->n_told;
        status =
            cnri_recognise(h->call->model, pictures->at, pictures->n, choice, top, &observer, err);
    }
    return status;
}

/* Prints the energy of one picture, including reading it and printing its answer. */
static cnr_status tell_energy(const cnri_call *call, cnr_energy *e, int32_t pictures,
                              cnr_error *err) {
    const whole w = {cnri_energy_show(e, "a picture", 1)};
    cnr_status status = pictures > 0 ? cnri_tell(call, &whole_record, &w, err) : CNR_OK;
    if (!status && pictures > 0) status = cnri_tell_domains(call, e, w.e.fps, err);
    cnri_energy_drop(&e);
    return status;
}

/* Recognises all pictures that the operands name, prints each, and the energy of all. */
static cnr_status run_pictures(cnri_call *call, void *values, cnr_error *err) {
    const run *r = values;
    cnr_energy_region *region = NULL;
    cnr_energy *energy = NULL;
    cnri_words pictures = {0};
    glob_t found = {0};
    cnr_status status = CNR_OK;
    cnr_observer observer = *cnri_watch(call);
    observer.progress = NULL;
    observer.event = show_answer;
    for (int32_t i = call->next_operand; i < call->operands.n && !status; i++)
        if (!add_operand(call->operands.at[i], &pictures, &found))
            status = cnri_out_of_memory(err, "pictures");
    const cnr_selection choice = {.size = sizeof choice,
                                  .every = (int32_t)r->every,
                                  .from_ns = (uint64_t)(r->from * 1e9 + 0.5),
                                  .to_ns = (uint64_t)(r->to * 1e9 + 0.5)};
    answer_context h = {.call = call};
    observer.arg = &h;
    if (!status) status = cnri_energy_begin_if(call->rt, r->energy, &observer, &region, err);
    for (h.left = r->repeat; h.left-- > 0 && !status;)
        status = cnri_recognise(call->model, pictures.at, pictures.n, &choice, (int32_t)r->top,
                                &observer, err);
    if (!status) status = repeat(&h, &pictures, &choice, (int32_t)r->top, observer, region, err);
    status = cnri_energy_close(region, status, h.n_told, &energy, err);
    if (energy) status = tell_energy(call, energy, h.n_told, err);
    cnri_vec_free(&pictures);
    if (found.gl_pathc) globfree(&found);
    /* what could not be told was complained of already */
    return status == CNR_E_CANCELLED && call->code && !cnri_cancelled() ? CNR_OK : status;
}

/* ---- scripts, whose top level says what they are ---- */

/* The script that a word names, which may be a shipped one; NULL: there is none. */
static const char *script_of(cnri_call *call, const char *word) {
    const size_t n = strlen(word);
    if (access(word, R_OK) != 0) return call->script = cnri_lua_app(word);
    return n > 4 && strcmp(word + n - 4, ".lua") == 0 ? word : NULL;
}

/* The first option of c.load that was given in front of the script; NULL: none. */
static const cnri_load_option *load_option_of(const cnr_load_options *o) {
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) {
        const cnri_load_option *row = &cnri_load_options[i];
        const void *at = (const char *)o + row->at;
        const bool is_set = row->kind == CNRI_LOAD_FLAG || row->kind == CNRI_LOAD_NOT
                                ? *(const uint32_t *)at != 0
                            : row->kind == CNRI_LOAD_BYTES ? *(const uint64_t *)at != 0
                                                           : *(const void *const *)at != NULL;
        if (*row->key && is_set) return row;
    }
    return NULL;
}

/* Runs an experiment's main, which loads its nets itself; options for loading are a mistake.
 * Returns the exit code. */
static int run_experiment(cnri_call *call, cnri_lua_program *p, const char *path) {
    const cnri_load_option *lost = load_option_of(&call->common.load);
    cnr_error err = CNR_ERROR_INIT;
    if (lost)
        return cnri_mistake("run", NULL,
                            "%s has no use here: %s loads its nets itself, as by c.load(NET, { %s "
                            "= ... }); options behind its name are its own",
                            lost->option, path, lost->key);
    cnri_signals_patient(); /* a file that is being written is written to its end */
    const cnr_status status = cnri_lua_main(p, &call->code, &err);
    return status ? cnri_complain(call, &err) : call->code;
}

/* Runs the script's top level. False: everything is done. True: it is a net, which call->rt
 * holds for loading. */
static bool begin_script(cnri_call *call, const char *output, const char *path, int argc,
                         char **argv) {
    const cnri_lua_rights rights = {.trust = call->common.trust,
                                    .output = output,
                                    .cancelled = cnri_cancelled,
                                    .watch = cnri_watch_script(call)};
    cnri_lua_program *p = NULL;
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = cnri_call_open(call, &err);
    if (!status) status = cnri_lua_open(call->rt, path, argc - 1, argv + 1, &rights, &p, &err);
    if (!status && !cnri_lua_is_main(p)) {
        cnri_lua_hold(call->rt, argv[0], p);
        return true;
    }
    if (!status && cnri_lua_is_application(p)) {
        call->code = cnri_application_run(call, p, path, output, argc, argv);
        return false;
    }
    call->code = status ? cnri_complain(call, &err) : run_experiment(call, p, path);
    cnri_lua_close(p);
    return false;
}

/* Handles experiments before options are parsed: the words behind one are its own, so parsing stops
 * at the first operand. False: the command is done. */
static bool leads(cnri_call *call, void *values) {
    cnri_call early = {.command = call->command, .argc = call->argc, .argv = call->argv},
              now = early;
    const run *r = values;
    int first;
    bool go_on = cnri_call_parse(&early, values, &first);
    const char *script = go_on && first < call->argc ? script_of(call, call->argv[first]) : NULL;
    if (script)
        go_on = begin_script(&early, r->output, script, call->argc - first, call->argv + first);
    call->code = early.code;
    if (go_on && early.rt) {
        go_on = cnri_call_parse(&now, values, NULL);
        call->code = now.code;
        if (go_on && !cnri_call_reopen(&early, &now)) {
            call->rt = early.rt; /* open already, with the net that was read */
            early.rt = NULL;
            call->governing = early.governing;
            call->closes = early.closes;
            early.governing = NULL;
            early.closes = NULL;
        }
    }
    cnri_call_free(&now);
    cnri_call_free(&early);
    return go_on;
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    (void)call;
    return ((const run *)values)->output ? "--output is for scripts that return a function" : NULL;
}

const cnri_command cnri_cmd_run = {
    .name = "run",
    .example = "cnnrun net.lua picture.jpg --top 3",
    .operands = "NET PICTURE...",
    .summary = "Runs a net on pictures, or each frame of a video, and prints the best classes. The "
               "word run may be\n"
               "left out. Directories, globs and label lists stand for the pictures in them.\n"
               "A script that returns a function is run instead: cnnrun SCRIPT.lua WORDS...",
    .details =
        "JSON, a line a picture: {\"input\", of a video \"seconds\", \"ms\", \"top\": "
        "[{\"index\", \"label\", "
        "\"score\"}]};\nother outputs as \"outputs\": [{\"name\", \"dims\", \"lowest\", "
        "\"highest\", \"average\"}].\n"
        "With --adapt also \"adapt\": what was tried, or is decided (\"phase\": \"settled\").\n"
        "With --energy a line follows that tells a picture's, then one a domain.",
    CNRI_OPTIONS(options),
    CNRI_VALUES(run, .top = 5, .every = 1, .repeat = 1),
    .min_operands = 2,
    .max_operands = -1,
    .takes = CNRI_NETS | CNRI_PICTURES,
    .opens = cnri_call_model,
    .leads = leads,
    .wrong = wrong,
    .run = run_pictures,
};
