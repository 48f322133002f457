/* cnnrun verify PATH...: runs models on given inputs and compares their outputs with given ones. */
#include "cli/cli.h"
#include "people/people.h"

static const cnri_option options[] = {CNRI_OPTION(cnri_compare_options, rtol, "--tolerance", "R",
                                                  "relative tolerance of an element (1e-3)",
                                                  .max = 1),
                                      CNRI_OPTION(cnri_compare_options, atol, "--atol", "A",
                                                  "absolute tolerance (1e-7)", .max = 1e9)};

/* Result: a case. */
typedef struct verified {
    const char *name, *outcome, *why;
} verified;
static const cnri_field case_fields[] = {CNRI_FIELD(verified, "case", name),
                                         CNRI_KEY(verified, outcome), CNRI_KEY(verified, why)};
static const cnri_record case_record = CNRI_RECORD(case_fields, "");

static const cnri_field fields[] = {CNRI_FIELD(cnri_comparison, "passed", n[CNRI_CASE_RIGHT]),
                                    CNRI_FIELD(cnri_comparison, "failed", n[CNRI_CASE_WRONG]),
                                    CNRI_FIELD(cnri_comparison, "skipped", n[CNRI_CASE_SKIPPED])};
static const cnri_record record = CNRI_RECORD(fields, "");

/* Where cases are printed, and how many there were. */
typedef struct hearing {
    cnri_call *call;
    int32_t count;
} hearing;

/* ---- why, a line each ---- */

/* Appends n numbers as "[1,2]". */
static void add_list(const int64_t *at, int32_t n, cnri_text *out) {
    for (int32_t i = 0; i < n; i++) cnri_text_add(out, "%s%lld", i ? "," : "[", (long long)at[i]);
    cnri_text_add(out, n ? "]" : "[]");
}

/* Appends type and shape as "f32[1,2]". */
static void add_shape(const cnr_tensor *t, cnri_text *out) {
    cnri_text_add(out, "%s", cnr_dtype_name(t->dtype));
    add_list(t->dim, t->rank, out);
}

/* Appends the position of element i as "[0,3,1]". */
static void add_place(const cnr_tensor *t, int64_t i, cnri_text *out) {
    int64_t at[CNR_MAX_RANK];
    for (int32_t a = t->rank - 1; a >= 0; a--) {
        at[a] = i % t->dim[a];
        i /= t->dim[a];
    }
    add_list(at, t->rank, out);
}

/* Appends a difference as a comment line for people: type and shape, or number of elements and the
 * worst. */
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

/* Appends why a case is wrong or was skipped. */
static void why_of(const cnri_compared *c, cnri_text *out) {
    if (c->err)
        cnri_text_add(out, "%s%s%s\n", c->err->where, *c->err->where ? ": " : "", c->err->text);
    for (int32_t i = 0; i < c->n_differences; i++) add_difference(&c->differences[i], out);
}

/* ---- report ---- */

/* Prints a case as a line of TAP. */
static void report_tap(int32_t number, const cnri_compared *c, char *why) {
    cnri_say(stdout, "%sok %d - %s", c->outcome == CNRI_CASE_WRONG ? "not " : "", (int)number,
             c->name);
    if (c->outcome == CNRI_CASE_SKIPPED) {
        for (char *at = why; at && *at; at++)
            if (*at == '\n') *at = at[1] ? ';' : 0;
        cnri_say(stdout, " # SKIP %s", why ? why : "");
        why = NULL;
    }
    cnri_say(stdout, "\n");
    for (char *line = why; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        cnri_say(stdout, "%s%s\n", line[0] == '#' ? "" : "# ", line);
        line = end ? end + 1 : NULL;
    }
    fflush(stdout);
}

/* Prints a case as JSON; why: its text, whose last newline is cut off, or NULL. */
static void report_json(const cnri_call *call, const cnri_compared *c, char *why) {
    static const char *const words[] =
        {[CNRI_CASE_RIGHT] = "ok", [CNRI_CASE_WRONG] = "failed", [CNRI_CASE_SKIPPED] = "skipped"};
    const verified v = {c->name, words[c->outcome], why};
    const size_t n = why ? strlen(why) : 0;
    if (n && why[n - 1] == '\n') why[n - 1] = 0;
    (void)cnri_tell(call, &case_record, &v, NULL); /* main looks at what became of stdout */
}

/* Prints each case as it ends. */
static int32_t hear(void *arg, int32_t kind, const void *of) {
    hearing *h = arg;
    cnri_text why = {0};
    if (kind != CNRI_EVENT_CASE) return 0;
    why_of(of, &why);
    h->count++;
    if (h->call->common.json) report_json(h->call, of, why.at);
    else report_tap(h->count, of, why.at);
    cnri_text_free(&why);
    return 0;
}

/* Prints the totals, and for people the plan line of TAP. */
static void report_all(const hearing *h, const cnri_comparison *all) {
    const int32_t *n = all->n;
    (void)cnri_tell(h->call, &record, all, NULL);
    if (h->call->common.json) return;
    cnri_say(stdout, "1..%d\n", (int)h->count);
    cnri_say(stderr, "%d passed, %d failed, %d skipped\n", n[CNRI_CASE_RIGHT], n[CNRI_CASE_WRONG],
             n[CNRI_CASE_SKIPPED]);
}

/* Log function that drops all messages. */
static void quiet_log(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text; /* what is wrong is told in the TAP */
}

/* Compares the outputs of all models that the operands name with their stored ones; until the user
 * cancels. */
static cnr_status compare_all(cnri_call *call, const cnri_compare_options *o, cnr_error *err) {
    cnri_comparison all = {{0}}, one;
    hearing h = {.call = call};
    const cnr_observer observer = {.size = sizeof observer,
                                   .arg = &h,
                                   .event = hear,
                                   .cancel = cnri_signals_flag()};
    for (int32_t i = 0; i < call->operands.n && !call->code && !cnri_cancelled(); i++) {
        const cnr_status status =
            cnri_compare_models(call->rt, call->operands.at[i], o, &observer, &one, err);
        for (size_t k = 0; k < CNRI_COUNT(one.n); k++) all.n[k] += one.n[k];
        if (status == CNR_E_NOT_FOUND)
            call->code = cnri_mistake("verify", NULL, "%s: %s", err->where, err->text);
    }
    report_all(&h, &all);
    if (cnri_cancelled()) call->code = cnri_exit_code(CNR_E_CANCELLED);
    else if (!call->code && all.n[CNRI_CASE_WRONG]) call->code = 1;
    return CNR_OK;
}

/* The command verify. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    cnri_compare_options *o = values;
    cnri_loading how;
    cnr_status status = cnri_call_loading(call, &how, err);
    o->how = &how.options;
    if (call->common.verbose == 0) cnri_log_to(quiet_log, NULL, CNR_LOG_ERROR);
    if (!status) status = compare_all(call, o, err);
    cnri_loading_free(&how);
    return status;
}

const cnri_command cnri_cmd_verify = {
    .name = "verify",
    .example = "cnnrun verify tests/*",
    .operands = "PATH...",
    .summary = "Runs models on given inputs and compares with given outputs; prints TAP.",
    .details = "PATH is a folder with a model and test_data_set_0/input_0.*, output_0.* and so on "
               "from there;\n"
               "a folder of such folders; or a model X.* with X_output_0.* beside it,\n"
               "whose input's element i is i / n. Models and tensors are of any format that is "
               "read here.\n"
               "Shape and type must be equal, NaN only where it is expected. outcome is ok, failed "
               "or skipped.",
    .results = CNRI_RESULTS(&case_record, &record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(cnri_compare_options, .rtol = 1e-3, .atol = 1e-7),
    .min_operands = 1,
    .max_operands = -1,
    .takes = CNRI_NETS | CNRI_PICTURES,
    .opens = cnri_call_open,
    .run = run,
};
