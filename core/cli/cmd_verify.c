/* cnnrun verify PATH...: models with given inputs and outputs. */
#include "core/cli/cli.h"

typedef struct verify {
    double rtol, atol;
    const cnri_args *args;
    int32_t count;
} verify;

static const cnri_option option_rows[] = {
    {"--tolerance", "R", CNRI_OPT_REAL, offsetof(verify, rtol),
     "relative tolerance of an element (1e-3)", .min = 0, .max = 1},
    {"--atol", "A", CNRI_OPT_REAL, offsetof(verify, atol), "absolute tolerance (1e-7)", .min = 0,
     .max = 1e9},
};
static const cnri_syntax syntax = {
    .command = "verify",
    .operands = "PATH...",
    .summary = "Runs models on given inputs and compares with given outputs; prints TAP.",
    .details =
        "PATH is a folder with a model and test_data_set_0/input_0.*, output_0.* and so on from there;\n"
        "a folder of such folders; or a model X.* with X_output_0.* beside it,\n"
        "whose input's element i is i / n. Models and tensors are of any format that is read here.\n"
        "Shape and type must be equal, NaN only where it is expected. JSON, a line a case: {\"case\",\n"
        "\"outcome\", \"why\"}, outcome ok, failed or skipped; and {\"passed\", \"failed\", "
        "\"skipped\"}.",
    .options = option_rows,
    .n_options = CNRI_COUNT(option_rows),
    .nets = true,
    .min_operands = 1,
    .max_operands = -1,
};

/* ---- why, a line each ---- */

static void add_shape(const cnr_tensor *t, cnri_text *out) {
    cnri_text_add(out, "%s[", cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank; i++)
        cnri_text_add(out, "%s%lld", i ? "," : "", (long long)t->dim[i]);
    cnri_text_add(out, "]");
}

static void add_place(const cnr_tensor *t, int64_t i, cnri_text *out) {
    int64_t at[CNR_MAX_RANK];
    for (int32_t a = t->rank - 1; a >= 0; a--) {
        at[a] = i % t->dim[a];
        i /= t->dim[a];
    }
    cnri_text_add(out, "[");
    for (int32_t a = 0; a < t->rank; a++)
        cnri_text_add(out, "%s%lld", a ? "," : "", (long long)at[a]);
    cnri_text_add(out, "]");
}

static void add_difference(const cnri_difference *d, cnri_text *out) {
    if (d->type) {
        cnri_text_add(out, "# %s is ", d->output);
        add_shape(&d->got, out);
        cnri_text_add(out, ", ");
        add_shape(&d->want, out);
        cnri_text_add(out, " is wanted\n");
        return;
    }
    cnri_text_add(out, "# %s: %lld of %lld elements differ, the most at ", d->output,
                  (long long)d->wrong, (long long)d->n);
    add_place(&d->want, d->worst, out);
    cnri_text_add(out, ": got %.9g, want %.9g\n", d->got_value, d->want_value);
}

static void why_of(const cnri_compared *c, cnri_text *out) {
    if (c->err)
        cnri_text_add(out, "%s%s%s\n", c->err->where, *c->err->where ? ": " : "", c->err->text);
    for (int32_t i = 0; i < c->n_differences; i++) add_difference(&c->differences[i], out);
}

/* ---- report ---- */

static void report_tap(const verify *v, const cnri_compared *c, char *why) {
    if (c->outcome == CNRI_CASE_SKIPPED) {
        for (char *at = why; at && *at; at++)
            if (*at == '\n') *at = at[1] ? ';' : 0;
        cnri_say(stdout, "ok %d - %s # SKIP %s\n", v->count, c->name, why ? why : "");
        return;
    }
    cnri_say(stdout, "%sok %d - %s\n", c->outcome == CNRI_CASE_RIGHT ? "" : "not ", v->count,
             c->name);
    for (char *line = why; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        cnri_say(stdout, "%s%s\n", line[0] == '#' ? "" : "# ", line);
        line = end ? end + 1 : NULL;
    }
}

static void report_json(const cnri_compared *c, char *why) {
    static const char *const words[] = {[CNRI_CASE_RIGHT] = "ok", [CNRI_CASE_WRONG] = "failed",
                                        [CNRI_CASE_SKIPPED] = "skipped"};
    const size_t n = why ? strlen(why) : 0;
    cnri_json json;
    if (n && why[n - 1] == '\n') why[n - 1] = 0;
    cnri_json_begin(&json);
    cnri_json_text(&json, "case", c->name);
    cnri_json_text(&json, "outcome", words[c->outcome]);
    cnri_json_text(&json, "why", why);
    (void)cnri_json_print(&json, NULL); /* main looks at what became of stdout */
}

static int32_t hear(void *arg, int32_t kind, const void *of) {
    verify *v = arg;
    cnri_text why = {0};
    if (kind != CNRI_EVENT_CASE) return 0;
    why_of(of, &why);
    v->count++;
    if (v->args->common.json) report_json(of, why.at);
    else report_tap(v, of, why.at);
    fflush(stdout);
    cnri_text_free(&why);
    return 0;
}

static void report_all(const verify *v, const cnri_comparison *all) {
    const int32_t *n = all->n;
    if (!v->args->common.json) {
        cnri_say(stdout, "1..%d\n", v->count);
        cnri_say(stderr, "%d passed, %d failed, %d skipped\n", n[CNRI_CASE_RIGHT],
                 n[CNRI_CASE_WRONG], n[CNRI_CASE_SKIPPED]);
        return;
    }
    cnri_json json;
    cnri_json_begin(&json);
    cnri_json_int(&json, "passed", n[CNRI_CASE_RIGHT]);
    cnri_json_int(&json, "failed", n[CNRI_CASE_WRONG]);
    cnri_json_int(&json, "skipped", n[CNRI_CASE_SKIPPED]);
    (void)cnri_json_print(&json, NULL);
}

static void quiet_log(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text; /* what is wrong is told in the TAP */
}

static int run_verify(verify *v, const cnri_args *args, cnr_runtime *rt) {
    cnri_comparison all = {{0}}, one;
    cnri_loading how;
    cnr_error err = CNR_ERROR_INIT;
    const cnri_compare_options o = {.rtol = v->rtol, .atol = v->atol, .how = &how.options};
    const cnr_observer observer = {.size = sizeof observer, .arg = v, .event = hear,
                                   .cancel = cnri_signals_flag()};
    int code = 0;
    if (cnri_args_loading(args, &how, &err)) code = cnri_complain(args, &err);
    for (int32_t i = 0; i < args->operands.n && !code && !cnri_cancelled(); i++) {
        const char *path = args->operands.at[i];
        const cnr_status status = cnri_compare_models(rt, path, &o, &observer, &one, &err);
        for (size_t k = 0; k < CNRI_COUNT(one.n); k++) all.n[k] += one.n[k];
        if (status == CNR_E_NOT_FOUND) code = cnri_usage_error(args, "%s: %s", err.where, err.text);
    }
    cnri_loading_free(&how);
    report_all(v, &all);
    if (cnri_cancelled()) return cnri_exit_code(CNR_E_CANCELLED);
    return code ? code : all.n[CNRI_CASE_WRONG] ? 1 : 0;
}

int cnri_cmd_verify(int argc, char **argv) {
    verify v = {.rtol = 1e-3, .atol = 1e-7};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &v, &code)) return code;
    v.args = &args;
    if (cnri_args_open(&args, &rt, &err)) {
        code = cnri_complain(&args, &err);
    } else {
        if (args.common.verbose == 0) cnri_log_to(quiet_log, NULL, CNR_LOG_ERROR);
        code = run_verify(&v, &args, rt);
    }
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
