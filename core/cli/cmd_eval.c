/* cnnrun eval: how often a net is right on labelled pictures. */
#include "core/cli/cli.h"

enum { SMALL = 20 }; /* most classes whose confusion is printed */

typedef struct eval {
    cnr_evaluate_options o;
    const char *class_map;
} eval;

static const cnri_option options[] = {
    CNRI_OPTION(eval, o.data, "--data", "SPEC",
                "labelled pictures: a directory, images:LIST, or another source's spec",
                .wanted = true),
    CNRI_OPTION(eval, o.limit, "--limit", "N", "only the first N (all)", .min = 1, .max = 1e15),
    CNRI_OPTION(eval, o.batch, "--batch", "N", "pictures at a time (8)", .min = 1, .max = 65536),
    CNRI_OPTION(eval, class_map, "--class-map", "FILE|offset:N",
                "when the net's classes have another order than the labels")};

static const cnri_field fields[] = {
    CNRI_FIELD(cnr_evaluation, "n", n),
    CNRI_FIELD(cnr_evaluation, "top1", top1),
    CNRI_FIELD(cnr_evaluation, "top5", top5),
    CNRI_FIELD(cnr_evaluation, "loss", loss),
    CNRI_FIELD(cnr_evaluation, "seconds", seconds),
    CNRI_ASIDE(cnr_evaluation, "right", right),
    CNRI_ASIDE(cnr_evaluation, "among_top", among_top)};
static const cnri_record record = CNRI_RECORD(fields,
    "pictures  {n}\ntop-1     {top1:.2%}  ({right})\ntop-5     {top5:.2%}  ({among_top})\n"
    "loss      {loss:.4f}\ntime      {seconds:.2f} s");

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

static cnr_status tell_json(const cnri_call *call, const cnr_evaluation *got, cnr_error *err) {
    cnri_json j;
    cnri_json_begin(&j);
    cnri_json_fields(&j, &record, got);
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

static cnr_status tell(const cnri_call *call, const cnr_evaluation *got, bool named, cnr_error *err) {
    if (call->common.json) return tell_json(call, got, err);
    const cnr_status status = cnri_tell(call, &record, got, err);
    if (status) return status;
    cnri_say(stdout, ", %.1f pictures a second\n",
             got->seconds > 0 ? (double)got->n / got->seconds : 0.0);
    if (got->labels <= SMALL) print_confusion(call->model, got, named);
    return CNR_OK;
}

static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    eval *e = values;
    int64_t *map = NULL;
    cnr_evaluation got = {.size = sizeof got};
    cnr_status status = read_map(e, call->model, &map, err);
    if (!status) status = cnr_evaluate(call->model, &e->o, cnri_watch(call), &got, err);
    cnri_watch_end(&call->watching);
    if (!status) status = tell(call, &got, !map && !e->o.offset, err);
    cnr_evaluation_free(&got);
    cnri_free(map);
    return status;
}

const cnri_command cnri_cmd_eval = {
    .name = "eval",
    .operands = "NET --data SPEC",
    .summary = "Runs a net on labelled pictures and counts right answers.",
    .details =
        "A class map has a line for each class of the net: the label's number, or a name; names\n"
        "stand for their place in sorted order (as folders of classes do). offset:N: the net's\n"
        "class is the label plus N. top1 and top5 are fractions, loss the mean of -log of what the\n"
        "label got; JSON has \"confusion\" too: a row of answers for each label (up to 1024 of them).",
    .results = CNRI_RESULTS(&record),
    CNRI_OPTIONS(options),
    CNRI_VALUES(eval, .o = {.size = sizeof(cnr_evaluate_options), .batch = 8}),
    .min_operands = 1,
    .max_operands = 1,
    .takes = CNRI_NETS | CNRI_PICTURES,
    .opens = CNRI_OPENS_MODEL,
    .run = run,
};
