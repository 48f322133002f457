/* cnnrun eval: how often a net is right on labelled pictures. */
#include "core/cli/cli.h"
#include <stdlib.h>

enum { SMALL = 20 }; /* most classes whose confusion is printed */

typedef struct eval {
    const char *data, *class_map;
    int64_t limit, batch;
    int64_t *map; /* class of the net -> label of the data; NULL: the class is label + offset */
    int64_t n_map, offset;
} eval;

static const cnri_option options[] = {
    {"--data", "SPEC", CNRI_OPT_TEXT, offsetof(eval, data),
     "labelled pictures: a directory, images:LIST, or another source's spec", 0, 0, NULL, 0},
    {"--limit", "N", CNRI_OPT_INT, offsetof(eval, limit), "only the first N (all)", 1, 1e15, NULL,
     0},
    {"--batch", "N", CNRI_OPT_INT, offsetof(eval, batch), "pictures at a time (8)", 1, 65536, NULL,
     0},
    {"--class-map", "FILE|offset:N", CNRI_OPT_TEXT, offsetof(eval, class_map),
     "when the net's classes have another order than the labels", 0, 0, NULL, 0},
};

static const cnri_syntax syntax = {
    .command = "eval",
    .operands = "NET --data SPEC",
    .summary = "Runs a net on labelled pictures and counts right answers.",
    .details =
        "A class map has a line for each class of the net: the label's number, or a name; names\n"
        "stand for their place in sorted order (as folders of classes do). offset:N: the net's\n"
        "class is the label plus N. JSON: {\"n\", \"top1\", \"top5\", \"loss\", \"seconds\", "
        "\"confusion\"}:\ntops as fractions, the mean of -log of what the label got, and a row of "
        "answers for each\nlabel (up to 1024 of them).",
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 1,
};

/* ---- class maps ---- */

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Place of each name among the sorted ones. */
static bool map_names(eval *e, char **names, int64_t n) {
    char **sorted = cnri_alloc((size_t)n * sizeof *sorted);
    if (!sorted) return false;
    memcpy(sorted, names, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_text);
    for (int64_t i = 0; i < n; i++) {
        char **place = bsearch(&names[i], sorted, (size_t)n, sizeof *sorted, by_text);
        e->map[i] = place - sorted;
    }
    cnri_free(sorted);
    return true;
}

/* The first `classes` lines of `text`, cut into words in place; returns how many there are. */
static int64_t first_words(char *text, char **words, int64_t classes) {
    int64_t n = 0;
    while (*text && n < classes) {
        text += strspn(text, " \t\r\n");
        if (!*text) break;
        words[n++] = text;
        char *line = text + strcspn(text, "\n");
        const bool last = *line == 0;
        *line = 0;
        text[strcspn(text, " \t\r")] = 0;
        text = last ? line : line + 1;
    }
    return n;
}

/* How many the net tells apart; all that fit memory where its output is of open size. */
static int64_t classes_of(const cnr_model *model) {
    cnr_tensor scores = *cnr_output_type(model, 0);
    if (scores.rank > 0) scores.dim[0] = 1;
    const int64_t n = cnr_count(&scores);
    return n > 0 ? n : INT64_C(1) << 20;
}

static cnr_status read_map(eval *e, int64_t classes, cnr_error *err) {
    static const char offset[] = "offset:";
    const char *path = e->class_map;
    if (strncmp(path, offset, sizeof offset - 1) == 0)
        return cnri_parse_int(path + sizeof offset - 1, &e->offset)
                   ? CNR_OK
                   : cnri_fail(err, CNR_E_ARG, "--class-map", "wanted offset:N, got \"%s\"", path);
    char *text;
    size_t bytes;
    cnr_status status = cnri_read_file(path, 64 << 20, &text, &bytes, err);
    if (status) return status;
    char **words = cnri_alloc((size_t)classes * sizeof *words);
    e->map = cnri_alloc((size_t)classes * sizeof *e->map);
    if (words && e->map) {
        e->n_map = first_words(text, words, classes);
        int64_t numbers = 0;
        while (numbers < e->n_map && cnri_parse_int(words[numbers], &e->map[numbers])) numbers++;
        if (numbers < e->n_map && !map_names(e, words, e->n_map))
            status = cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    } else {
        status = cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    }
    cnri_free(words);
    cnri_free(text);
    return status;
}

/* ---- report ---- */

static void print_confusion(const eval *e, const cnr_model *model, const cnr_evaluation *got) {
    cnri_say(stdout, "\nconfusion (row: label, column: answer)\n      ");
    for (int64_t c = 0; c < got->labels; c++) cnri_say(stdout, "%6lld", (long long)c);
    for (int64_t r = 0; r < got->labels; r++) {
        const char *name = e->map || e->offset ? NULL : cnr_label(model, r);
        cnri_say(stdout, "\n%6lld", (long long)r);
        for (int64_t c = 0; c < got->labels; c++)
            cnri_say(stdout, "%6lld", (long long)got->confusion[r * got->labels + c]);
        if (name) cnri_say(stdout, "  %s", name);
    }
    cnri_say(stdout, "\n");
}

static void json_confusion(cnri_json *j, const cnr_evaluation *got) {
    if (!got->confusion) return;
    cnri_json_list(j, "confusion");
    for (int64_t r = 0; r < got->labels; r++) {
        cnri_json_list(j, NULL);
        for (int64_t c = 0; c < got->labels; c++)
            cnri_json_int(j, NULL, got->confusion[r * got->labels + c]);
        cnri_json_end(j);
    }
    cnri_json_end(j);
}

static cnr_status report(const eval *e, const cnri_args *args, const cnr_model *model,
                         const cnr_evaluation *got, cnr_error *err) {
    if (args->common.json) {
        cnri_json j;
        cnri_json_begin(&j);
        cnri_json_int(&j, "n", got->n);
        cnri_json_real(&j, "top1", got->top1);
        cnri_json_real(&j, "top5", got->top5);
        cnri_json_real(&j, "loss", got->loss);
        cnri_json_real(&j, "seconds", got->seconds);
        json_confusion(&j, got);
        cnri_json_warnings(&j, model->graph);
        return cnri_json_print(&j, err);
    }
    cnri_say(stdout, "pictures  %lld\ntop-1     %.2f%%  (%lld)\ntop-5     %.2f%%  (%lld)\n",
             (long long)got->n, got->top1 * 100, (long long)got->right, got->top5 * 100,
             (long long)got->among_top);
    cnri_say(stdout, "loss      %.4f\n", got->loss);
    cnri_say(stdout, "time      %.2f s, %.1f pictures a second\n", got->seconds,
             got->seconds > 0 ? (double)got->n / got->seconds : 0.0);
    if (got->labels <= SMALL) print_confusion(e, model, got);
    return CNR_OK;
}

static cnr_status run_eval(eval *e, const cnri_args *args, cnr_runtime *rt, cnr_error *err) {
    cnr_model *model;
    cnri_watching watching;
    cnr_evaluation got = {.size = sizeof got};
    cnr_status status = cnri_args_load(args, rt, args->operands.at[0], &model, err);
    if (!status && e->class_map) status = read_map(e, classes_of(model), err);
    if (status) return status;
    const cnr_evaluate_options o = {.size = sizeof o, .data = e->data, .limit = e->limit,
                                    .batch = e->batch, .labels = e->map, .n_labels = e->n_map,
                                    .offset = e->offset};
    status = cnr_evaluate(model, &o, cnri_watch(&watching, args), &got, err);
    cnri_watch_end(&watching);
    if (!status) status = report(e, args, model, &got, err);
    cnr_evaluation_free(&got);
    return status;
}

int cnri_cmd_eval(int argc, char **argv) {
    eval e = {.batch = 8};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &e, &code)) return code;
    if (!e.data) {
        code = cnri_usage_error(&args, "--data SPEC is missing");
    } else {
        cnr_status status = cnri_args_open(&args, &rt, &err);
        if (!status) status = run_eval(&e, &args, rt, &err);
        if (status) code = cnri_complain(&args, &err);
    }
    cnri_free(e.map);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
