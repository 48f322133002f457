/* cnnrun eval: measures how often a net is right on labelled pictures. */
#include "cli/cli.h"
#include "people/people.h"

enum { SMALL = 20 }; /* most classes whose confusion matrix is printed */

/* Options of eval. */
typedef struct eval {
    cnr_evaluate_options o;
    const char *class_map, *output;
    bool no_energy;
} eval;

static const cnri_option options[] =
    {CNRI_OPTION(eval, o.data, "--data", "SPEC",
                 "labelled pictures: a directory, images:LIST, or another source's spec",
                 .wanted = true),
     CNRI_OPTION(eval, o.limit, "--limit", "N", "only the first N (all)", .min = 1, .max = 1e15),
     CNRI_OPTION(eval, o.split, "--split", "NAME", "which split of the source: train, eval (eval)"),
     CNRI_OPTION(eval, o.validation, "--validation", "X",
                 "only the part of the pictures that train with the "
                 "same X judges epochs by; wants --split train",
                 .max = 1e15),
     CNRI_OPTION(eval, o.validation_seed, "--validation-seed", "N", "seed that selects them (1)",
                 .max = 1e15),
     CNRI_OPTION(eval, o.batch, "--batch", "N", "batch size (8)", .min = 1, .max = 65536),
     CNRI_OPTION(eval, class_map, "--class-map", "FILE|offset:N",
                 "map from the net's classes to the labels, if their order differs"),
     CNRI_OPTION(eval, output, "--output", "FILE",
                 "an .html page: confusion matrix, calibration, the worst mistakes as pictures",
                 .letter = 'o', .writes = true),
     CNRI_OPTION(eval, o.metric_files, "--metric", "LIST",
                 "measures beside top-1: .lua files that return a function(scores, labels), or "
                 "shipped ones: f1, balanced, cross_entropy"),
     CNRI_OPTION(eval, no_energy, "--no-energy", NULL, "ask no meter")};

/* Result of eval. */
typedef struct result {
    cnr_evaluation r;
    double fps, top1_range[2], top5_range[2];
    cnri_energy_shown e;
} result;
static const cnri_field fields[] = {CNRI_KEY_IN(result, r, n),
                                    CNRI_KEY_IN(result, r, top1),
                                    CNRI_FIELD(result, "top1_low", top1_range[0]),
                                    CNRI_FIELD(result, "top1_high", top1_range[1]),
                                    CNRI_KEY_IN(result, r, top5),
                                    CNRI_FIELD(result, "top5_low", top5_range[0]),
                                    CNRI_FIELD(result, "top5_high", top5_range[1]),
                                    CNRI_KEY_IN(result, r, loss),
                                    CNRI_KEY_IN(result, r, seconds),
                                    CNRI_ASIDE(result, "right", r.right),
                                    CNRI_ASIDE(result, "among_top", r.among_top),
                                    CNRI_ENERGY_FIELDS(result, e),
                                    CNRI_ASIDE(result, "rate", fps)};
static const cnri_record record =
    CNRI_RECORD(fields, "pictures  {n}\n"
                        "top-1     {top1:.2%}  ({right}; 95% interval {top1_low:.1%} to "
                        "{top1_high:.1%})\n"
                        "top-5     {top5:.2%}  ({among_top}; 95% interval {top5_low:.1%} to "
                        "{top5_high:.1%})\n"
                        "loss      {loss:.4f}\ntime      {seconds:.2f} s, {rate:.1f} pictures a "
                        "second\n" CNRI_ENERGY_LINE);

/* Reads --class-map, a file or offset:N, into *map, for cnri_free; NULL: it was not given. */
static cnr_status read_map(eval *e, const cnr_model *model, int64_t **map, cnr_error *err) {
    static const char offset[] = "offset:";
    const char *text = e->class_map;
    if (!text) return CNR_OK;
    if (strncmp(text, offset, sizeof offset - 1) != 0) {
        const cnr_status status = cnri_class_map_read(text, model, map, &e->o.n_labels, err);
        e->o.labels = *map;
        return status;
    }
    if (cnri_parse_int(text + sizeof offset - 1, &e->o.offset)) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, "--class-map", "wanted offset:N, got \"%s\"", text);
}

/* Prints the confusion matrix, rows by label, columns by answer; named: with the classes' names. */
static void print_confusion(const cnr_model *model, const cnr_evaluation *got, bool named) {
    cnri_say(stdout, "\nconfusion (row: label, column: answer)\n      ");
    for (int64_t c = 0; c < got->labels; c++) cnri_say(stdout, "%6lld", (long long)c);
    for (int64_t r = 0; r < got->labels; r++) {
        const char *name = named ? cnr_label(model, r) : NULL;
        cnri_say(stdout, "\n%6lld", (long long)r);
        for (int64_t c = 0; c < got->labels; c++)
            cnri_say(stdout, "%6lld", (long long)got->confusion[r * got->labels + c]);
        if (name) cnri_say(stdout, "  %s", name);
    }
    cnri_say(stdout, "\n");
}

/* Prints the result as JSON. */
static cnr_status tell_json(const cnri_call *call, const result *all, cnr_error *err) {
    const cnr_evaluation *got = &all->r;
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_fields(&j, &record, all);
    cnri_json_metrics(&j, "metrics", got->metrics, got->n_metrics);
    if (got->confusion) cnri_json_list(&j, "confusion");
    for (int64_t r = 0; got->confusion && r < got->labels; r++) {
        cnri_json_list(&j, NULL);
        for (int64_t c = 0; c < got->labels; c++)
            cnri_json_int(&j, NULL, got->confusion[r * got->labels + c]);
        cnri_json_end(&j);
    }
    if (got->confusion) cnri_json_end(&j);
    cnri_json_warnings(&j, call->model->graph);
    return cnri_json_print(&j, err);
}

/* Prints the result; named: with the classes' names. */
static cnr_status tell(const cnri_call *call, const cnr_evaluation *got, bool named,
                       cnr_error *err) {
    result all = {.r = *got,
                  .fps = got->seconds > 0 ? (double)got->n / got->seconds : 0.0,
                  .e = cnri_energy_show(got->energy, "a picture", 1)};
    cnr_wilson_interval(got->top1, got->n, all.top1_range);
    cnr_wilson_interval(got->top5, got->n, all.top5_range);
    cnr_status status =
        call->common.json ? tell_json(call, &all, err) : cnri_tell(call, &record, &all, err);
    if (!status) status = cnri_tell_domains(call, got->energy, all.e.fps, err);
    if (!status && !call->common.json) cnri_say_metrics("", got->metrics, got->n_metrics);
    if (!status && !call->common.json && got->labels <= SMALL)
        print_confusion(call->model, got, named);
    return status;
}

/* Writes the rows through a script, as one tensor for each member; the first three hold whole
 * numbers. */
static cnr_status write_rows(const cnri_call *call, cnri_json *j, const cnr_evaluation *got,
                             cnr_error *err) {
    enum { WHOLE = 3, MEMBERS = 5 };
    const size_t n = (size_t)got->n;
    cnr_tensor columns[MEMBERS];
    const cnr_tensor *at[MEMBERS];
    int64_t *numbers = cnri_alloc((WHOLE * n + 1) * sizeof *numbers);
    double *shares = cnri_alloc(((MEMBERS - WHOLE) * n + 1) * sizeof *shares);
    for (size_t i = 0; numbers && shares && i < n; i++) {
        const cnr_evaluated *row = &got->rows[i];
        numbers[i] = row->index;
        numbers[n + i] = row->label;
        numbers[2 * n + i] = row->answer;
        shares[i] = row->share;
        shares[n + i] = row->label_share;
    }
    for (size_t i = 0; i < MEMBERS; i++) {
        columns[i] = (cnr_tensor){.size = sizeof columns[i],
                                  .dtype = i < WHOLE ? CNR_i64 : CNR_f64,
                                  .rank = 1,
                                  .dim = {got->n},
                                  .bytes = n * 8,
                                  .data = i < WHOLE ? (void *)(numbers + i * n)
                                                    : (void *)(shares + (i - WHOLE) * n)};
        at[i] = &columns[i];
    }
    const cnr_status status =
        numbers && shares ? cnri_call_script(call, "calls/eval_report.lua", j, at, MEMBERS, err)
                          : cnri_out_of_memory(err, "report");
    cnri_free(numbers);
    cnri_free(shares);
    return status;
}

/* Writes the report of -o as a web page; named: with the classes' names. */
static cnr_status write_report(const cnri_call *call, const eval *e, const cnr_evaluation *got,
                               bool named, cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_text(&j, "output", e->output);
    cnri_json_text(&j, "title", call->operands.at[0]);
    cnri_json_text(&j, "data", e->o.data);
    if (e->o.split) cnri_json_text(&j, "data_split", e->o.split);
    cnri_json_real(&j, "top1", got->top1);
    cnri_json_real(&j, "top5", got->top5);
    cnri_json_real(&j, "loss", got->loss);
    cnri_json_real(&j, "seconds", got->seconds);
    cnri_json_metrics(&j, "metrics", got->metrics, got->n_metrics);
    cnri_json_bool(&j, "named", named);
    return write_rows(call, &j, got, err);
}

/* The command eval. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    eval *e = values;
    int64_t *map = NULL;
    cnr_evaluation got = {.size = sizeof got};
    e->o.energy = !e->no_energy;
    e->o.rows = e->output != NULL;
    cnr_status status = read_map(e, call->model, &map, err);
    if (!status) status = cnr_evaluate(call->model, &e->o, cnri_watch(call), &got, err);
    cnri_watch_end(&call->watching);
    const bool named = !map && !e->o.offset;
    if (!status) status = tell(call, &got, named, err);
    if (!status && e->output) status = write_report(call, e, &got, named, err);
    cnr_evaluation_free(&got);
    cnri_free(map);
    return status;
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const cnri_call *call, const void *values) {
    const eval *e = values;
    const char *split = e->o.split, *dot = e->output ? strrchr(e->output, '.') : NULL;
    (void)call;
    if (e->output && (!dot || strcmp(dot, ".html") != 0))
        return "-o: wanted a name that ends with .html";
    return split && strcmp(split, "train") != 0 && strcmp(split, "eval") != 0
               ? "--split: want train or eval"
               : NULL;
}

const cnri_command cnri_cmd_eval = {
    .name = "eval",
    .example = "cnnrun eval net.cnr --data FOLDER -o report.html",
    .operands = "NET --data SPEC",
    .summary = "Runs a net on labelled pictures and counts right answers.",
    .details =
        "A class map has a line for each class of the net: the label's number, or a name; names\n"
        "stand for their place in sorted order (as folders of classes do). offset:N: the net's\n"
        "class is the label plus N. top1 and top5 are fractions, loss the mean of -log of what "
        "the\n"
        "label got. top1_low to top1_high is Wilson's 95% interval for so many pictures; top-5 has "
        "one too.\nJSON has \"confusion\" too: a row of answers for each label (up to 1024 of "
        "them).\n"
        "Joules are a picture's, with reading it, and of the whole machine; a line a domain "
        "follows.\n"
        "The page of -o holds all of it in one file: the confusion matrix, recall and precision of "
        "labels,\n"
        "how often answers of a share are right, and the mistakes with the highest shares. Its "
        "pictures and\n"
        "curves want the plugin draw-cairo.",
    .results = CNRI_RESULTS(&record, &cnri_energy_domain),
    CNRI_OPTIONS(options),
    CNRI_VALUES(eval,
                .o = {.size = sizeof(cnr_evaluate_options), .batch = 8, .validation_seed = 1}),
    CNRI_ONE_NET_SHARED(cnri_call_model),
    .wrong = wrong,
    .run = run,
};
