/* cnnrun run: what a net says of pictures; and experiments, which are scripts with a main. */
#include "core/cli/cli.h"
#include "core/lua/script.h"
#include <glob.h>
#include <math.h>
#include <unistd.h>

enum { BAR = 30, MAX_SCORES = 1 << 20 };

typedef struct run {
    int64_t top;
    const char *output; /* of scripts */
    const cnri_args *args;
    cnri_watching watching;
    cnri_runner runner;
    cnr_top *scores; /* room for all of output 0's classes */
    int64_t room;
} run;

static const cnri_option options[] = {
    {"--top", "K", CNRI_OPT_INT, offsetof(run, top), "how many answers a picture (5)", 1, 1000000,
     NULL, 0},
    {"--output", "DIR", CNRI_OPT_TEXT, offsetof(run, output),
     "a folder that a script may write to; it is made", 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "run",
    .operands = "NET PICTURE...",
    .summary = "Runs a net on pictures and prints the best classes of each. The word run may be\n"
               "left out. Directories, globs and label lists stand for the pictures in them.\n"
               "A script that returns a function is run instead: cnnrun SCRIPT.lua WORDS...",
    .details = "JSON, a line a picture: {\"input\", \"ms\", \"top\": [{\"index\", \"label\", "
               "\"score\"}]};\nother outputs as \"outputs\": [{\"name\", \"dims\", \"lowest\", "
               "\"highest\", \"average\"}].",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 2,
    .max_operands = -1,
};

/* ---- one answer ---- */

/* Letters, not bytes, so that columns line up. */
static int32_t columns(const char *text) {
    int32_t n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

static void print_bars(const cnr_model *model, const cnr_top *top, int32_t n, bool shares) {
    char number[24];
    int32_t widest = 1;
    for (int32_t i = 0; i < n; i++) {
        const char *label = cnr_label(model, top[i].index);
        snprintf(number, sizeof number, "%lld", (long long)top[i].index);
        const int32_t w = columns(label ? label : number);
        if (w > widest) widest = w;
    }
    if (widest > 40) widest = 40;
    const double least = n ? (double)top[n - 1].score : 0, most = n ? (double)top[0].score : 0;
    for (int32_t i = 0; i < n; i++) {
        char bar[BAR + 1];
        const char *label = cnr_label(model, top[i].index);
        const double score = (double)top[i].score;
        const double part = shares ? score : most > least ? (score - least) / (most - least) : 1;
        const int32_t marks = part > 0 ? (int32_t)(part * BAR + 0.5) : 0;
        snprintf(number, sizeof number, "%lld", (long long)top[i].index);
        if (!label) label = number;
        memset(bar, '#', sizeof bar);
        bar[marks > BAR ? BAR : marks] = 0;
        cnri_say(stdout, "  %s%*s ", label, columns(label) < widest ? widest - columns(label) : 0,
                 "");
        if (shares) cnri_say(stdout, "%6.2f%%  %s\n", score * 100, bar);
        else cnri_say(stdout, "%10.4g  %s\n", score, bar);
    }
}

static void json_top(cnri_json *j, const cnr_model *model, const cnr_top *top, int32_t n) {
    cnri_json_list(j, "top");
    for (int32_t i = 0; i < n; i++) {
        cnri_json_object(j, NULL);
        cnri_json_int(j, "index", top[i].index);
        cnri_json_text(j, "label", cnr_label(model, top[i].index));
        cnri_json_real(j, "score", (double)top[i].score);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

/* An output that isn't scores of classes: its shape and range. */
static void describe(cnri_json *j, const char *name, const cnr_tensor *t) {
    double low = INFINITY, high = -INFINITY, sum = 0;
    const int64_t n = cnr_count(t);
    const float *values = t->dtype == CNR_f32 ? t->data : NULL;
    for (int64_t i = 0; values && i < n; i++) {
        const double v = (double)values[i];
        if (v < low) low = v;
        if (v > high) high = v;
        sum += v;
    }
    if (!j) {
        cnri_say(stdout, "  %s %s", name, cnr_dtype_name(t->dtype));
        for (int32_t i = 0; i < t->rank; i++)
            cnri_say(stdout, "%s%lld", i ? "x" : " ", (long long)t->dim[i]);
        if (values && n > 0)
            cnri_say(stdout, "  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)n);
        cnri_say(stdout, "\n");
        return;
    }
    cnri_json_object(j, NULL);
    cnri_json_text(j, "name", name);
    cnri_json_list(j, "dims");
    for (int32_t i = 0; i < t->rank; i++) cnri_json_int(j, NULL, t->dim[i]);
    cnri_json_end(j);
    cnri_json_real(j, "lowest", values ? low : NAN);
    cnri_json_real(j, "highest", values ? high : NAN);
    cnri_json_real(j, "average", values ? sum / (double)n : NAN);
    cnri_json_end(j);
}

static cnr_status outputs(run *r, cnri_json *j, int32_t first, cnr_error *err) {
    const cnr_tensor *t;
    cnr_status status = CNR_OK;
    const int32_t n = cnr_output_count(r->runner.model);
    if (first >= n) return CNR_OK;
    if (j) cnri_json_list(j, "outputs");
    for (int32_t i = first; i < n && !status; i++) {
        status = cnr_session_output(r->runner.session, i, &t, err);
        if (!status) describe(j, cnr_output_name(r->runner.model, i), t);
    }
    if (j) cnri_json_end(j);
    return status;
}

static cnr_status room_for(run *r, int64_t n, cnr_error *err) {
    if (n <= r->room) return CNR_OK;
    cnri_free(r->scores);
    r->scores = cnri_alloc((size_t)n * sizeof *r->scores);
    r->room = r->scores ? n : 0;
    return r->scores ? CNR_OK : cnri_fail(err, CNR_E_MEMORY, "scores", "out of memory");
}

static cnr_status answer(run *r, const char *name, uint64_t ns, cnr_error *err) {
    const bool json = r->args->common.json;
    const cnr_tensor *whole;
    cnr_tensor sample;
    cnr_status status = cnr_session_output(r->runner.session, 0, &whole, err);
    if (status) return status;
    const bool classes = cnri_runner_slice(&r->runner, whole, 0, &sample) &&
                         cnri_is_classes(&sample) && cnr_count(&sample) <= MAX_SCORES;
    int32_t all = 0, shown = 0;
    if (classes) {
        const int64_t n = cnr_count(&sample);
        if ((status = room_for(r, n, err)) != CNR_OK) return status;
        all = cnr_topk(&sample, (int32_t)n, r->scores);
        shown = all < r->top ? all : (int32_t)r->top;
    }
    if (!json) {
        const bool shares = classes && cnri_are_shares(&sample);
        cnri_say(stdout, "%s  %s%.2f ms\n", name, classes && !shares ? "(scores)  " : "",
                 (double)ns * 1e-6);
        print_bars(r->runner.model, r->scores, shown, shares);
        return outputs(r, NULL, classes ? 1 : 0, err);
    }
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "input", name);
    cnri_json_real(&j, "ms", (double)ns * 1e-6);
    if (classes) json_top(&j, r->runner.model, r->scores, shown);
    status = outputs(r, &j, classes ? 1 : 0, err);
    cnri_json_warnings(&j, r->runner.model->graph);
    if (!status) return cnri_json_print(&j, err);
    cnri_text_free(&j.text);
    return status;
}

/* ---- pictures ---- */

static cnr_status run_sample(run *r, const cnr_sample *sample, cnr_error *err) {
    uint64_t ns;
    cnr_status status = cnri_runner_shape(&r->runner, 1, &sample->picture, err);
    if (!status) status = cnri_runner_put(&r->runner, 0, &sample->picture, err);
    if (!status) status = cnri_runner_run(&r->runner, &ns, err);
    return status ? status : answer(r, sample->name, ns, err);
}

/* A picture that can't be read doesn't stop the rest; the exit code tells of it. */
static bool one_failed(const run *r, const cnr_error *err, int *code) {
    *code = cnri_complain(r->args, err);
    return err->code == CNR_E_FORMAT || err->code == CNR_E_NOT_FOUND || err->code == CNR_E_IO ||
           err->code == CNR_E_LIMIT || err->code == CNR_E_UNSUPPORTED;
}

/* False: leave now. */
static bool run_spec(run *r, const char *spec, int *code) {
    cnri_samples samples;
    cnr_error err = CNR_ERROR_INIT;
    if (cnri_samples_open(spec, "eval", &samples, &err)) return one_failed(r, &err, code);
    bool go_on = true;
    for (int64_t i = 0; go_on && (samples.info.count < 0 || i < samples.info.count); i++) {
        cnr_sample sample;
        cnr_error why = CNR_ERROR_INIT;
        if (cnri_samples_read(&samples, i, &sample, &why)) {
            if (samples.info.count < 0 && why.code == CNR_E_NOT_FOUND) break;
            go_on = one_failed(r, &why, code);
            continue;
        }
        if (run_sample(r, &sample, &why)) {
            *code = cnri_complain(r->args, &why);
            go_on = false;
        }
        cnri_free(sample.picture.data);
        if (cnri_cancelled()) {
            *code = cnri_exit_code(CNR_E_CANCELLED);
            go_on = false;
        }
    }
    cnri_samples_close(&samples);
    return go_on;
}

/* The shell leaves a glob in quotes to us. */
static bool run_operand(run *r, const char *word, int *code) {
    glob_t found;
    if (!strpbrk(word, "*?[") || access(word, F_OK) == 0) return run_spec(r, word, code);
    if (glob(word, 0, NULL, &found) != 0) return run_spec(r, word, code);
    bool go_on = true;
    for (size_t i = 0; go_on && i < found.gl_pathc; i++)
        go_on = run_spec(r, found.gl_pathv[i], code);
    globfree(&found);
    return go_on;
}

/* rt NULL: yet to be opened */
static int run_pictures(cnri_args *args, run *r, cnr_runtime *rt) {
    cnr_model *model;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    r->args = args;
    cnr_status status = rt ? CNR_OK : cnri_args_open(args, &rt, &err);
    if (!status) status = cnri_args_load(args, rt, args->operands.at[0], &model, &err);
    if (!status) status = cnri_runner_open(&r->runner, model, cnri_watch(&r->watching, args), &err);
    if (status) code = cnri_complain(args, &err);
    for (int32_t i = 1; !status && i < args->operands.n; i++)
        if (!run_operand(r, args->operands.at[i], &code)) break;
    cnri_runner_close(&r->runner);
    cnri_free(r->scores);
    if (rt) cnri_lua_drop(rt);
    cnr_close(rt);
    return code;
}

/* ---- scripts, whose top level says what they are ---- */

static bool is_script(const char *path) {
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".lua") == 0;
}

/* Runs the script's top level. False: that was all, *code is the exit code; else it is a net, which
 * *rt holds to be loaded. */
static bool begin_script(const cnri_args *args, const char *output, int argc, char **argv,
                         cnr_runtime **rt, int *code) {
    const cnri_lua_rights rights = {args->common.trust, output, cnri_cancelled};
    cnri_lua_program *p = NULL;
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = cnri_args_open(args, rt, &err);
    if (!status)
        status = cnri_lua_open(*rt, argv[0], argc - 1, argv + 1, &rights, &p, &err);
    if (!status && !cnri_lua_is_main(p)) {
        cnri_lua_hold(*rt, argv[0], p);
        return true;
    }
    if (!status) {
        cnri_signals_patient(); /* a file that is being written is written to its end */
        status = cnri_lua_main(p, code, &err);
    }
    if (status) *code = cnri_complain(args, &err);
    cnri_lua_close(p);
    cnr_close(*rt);
    *rt = NULL;
    return false;
}

int cnri_cmd_run(int argc, char **argv) {
    run r = {.top = 5};
    cnri_args early, args;
    cnr_runtime *rt = NULL;
    int code = 0, first;
    /* Words behind an experiment are its own; so options end at the first operand for now. */
    if (!cnri_args_parse_leading(&early, &syntax, argc, argv, &r, &first, &code)) return code;
    if (first < argc && is_script(argv[first]) && access(argv[first], R_OK) == 0 &&
        !begin_script(&early, r.output, argc - first, argv + first, &rt, &code)) {
        cnri_args_free(&early);
        return code;
    }
    r = (run){.top = 5};
    bool good = cnri_args_parse(&args, &syntax, argc, argv, &r, &code);
    if (good && r.output) {
        code = cnri_usage_error(&args, "--output is for scripts that return a function");
        cnri_args_free(&args);
        good = false;
    }
    if (rt && (!good || cnri_args_reopen(&early, &args, rt))) {
        cnri_lua_drop(rt);
        cnr_close(rt);
        rt = NULL;
    }
    cnri_args_free(&early);
    if (!good) return code;
    code = run_pictures(&args, &r, rt);
    cnri_args_free(&args);
    return code;
}
