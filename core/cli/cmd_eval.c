/* cnnrun eval: how often a net is right on labelled pictures. */
#include "core/cli/runner.h"
#include <stdlib.h>

enum { TOP = 5, SMALL = 20 };

typedef struct eval {
    const char *data, *class_map;
    int64_t limit, batch;
    cnri_runner runner;
    cnri_samples samples;
    int64_t *map; /* class of the net -> label of the data; -1: none; NULL: the same */
    int64_t n_map, offset;
    int64_t done, right, among_top;
    int64_t *confusion; /* SMALL x SMALL: [label][answer] */
    int32_t *labels;    /* of the batch under way */
    int64_t filled;
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
        "class is the label plus N. JSON: {\"n\", \"top1\", \"top5\", \"seconds\"}, the middle "
        "two as\nfractions.",
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
        if (e->n_map < classes)
            status = cnri_fail(err, CNR_E_FORMAT, path, "%lld lines for %lld classes",
                               (long long)e->n_map, (long long)classes);
        else if (numbers < e->n_map && !map_names(e, words, e->n_map))
            status = cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    } else {
        status = cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    }
    cnri_free(words);
    cnri_free(text);
    return status;
}

/* ---- counting ---- */

static int64_t label_of(const eval *e, int64_t class) {
    if (e->map) return class < e->n_map ? e->map[class] : -1;
    return class - e->offset;
}

static cnr_status count(eval *e, const cnr_tensor *whole, int64_t slot, cnr_error *err) {
    cnr_tensor sample;
    cnr_top top[TOP];
    if (!cnri_runner_slice(&e->runner, whole, slot, &sample) || !cnri_is_classes(&sample))
        return cnri_fail(err, CNR_E_UNSUPPORTED, cnr_output_name(e->runner.model, 0),
                         "eval wants scores of classes, one list a picture");
    if (e->class_map && !e->map && !e->offset) {
        const cnr_status status = read_map(e, cnr_count(&sample), err);
        if (status) return status;
    }
    const int32_t n = cnr_topk(&sample, TOP, top);
    const int64_t label = e->labels[slot], class = label + e->offset;
    if (!e->map && (class < 0 || class >= cnr_count(&sample)))
        return cnri_fail(err, CNR_E_ARG, e->data,
                         "label %lld%s: the net tells %lld classes apart, from 0 on; want another "
                         "--class-map or data", (long long)label,
                         e->offset ? " with the offset" : "", (long long)cnr_count(&sample));
    e->done++;
    for (int32_t i = 0; i < n; i++)
        if (label_of(e, top[i].index) == label) {
            e->among_top++;
            e->right += i == 0;
            break;
        }
    const int64_t said = n ? label_of(e, top[0].index) : -1;
    if (e->confusion && label < SMALL && said >= 0 && said < SMALL)
        e->confusion[label * SMALL + said]++;
    return CNR_OK;
}

static cnr_status run_batch(eval *e, cnr_error *err) {
    const cnr_tensor *out;
    cnr_status status = e->filled ? cnri_runner_run(&e->runner, NULL, err) : CNR_OK;
    if (!status && e->filled) status = cnr_session_output(e->runner.session, 0, &out, err);
    for (int64_t i = 0; i < e->filled && !status; i++) status = count(e, out, i, err);
    e->filled = 0;
    return status;
}

static cnr_status add_sample(eval *e, const cnr_sample *sample, int64_t left, cnr_error *err) {
    cnr_status status = CNR_OK;
    if (sample->label < 0)
        return cnri_fail(err, CNR_E_ARG, sample->name,
                         "has no label; use folders named by class, or images:LIST");
    if (e->filled == 0)
        status = cnri_runner_shape(&e->runner, left < e->batch ? left : e->batch,
                                   &sample->picture, err);
    if (!status && !e->labels) {
        const int64_t room = e->runner.batch > e->batch ? e->runner.batch : e->batch;
        e->labels = cnri_alloc((size_t)room * sizeof *e->labels);
        if (!e->labels) status = cnri_fail(err, CNR_E_MEMORY, "labels", "out of memory");
    }
    if (!status) status = cnri_runner_put(&e->runner, e->filled, &sample->picture, err);
    if (status) return status;
    e->labels[e->filled++] = sample->label;
    return e->filled == e->runner.batch || e->filled == left ? run_batch(e, err) : CNR_OK;
}

static cnr_status measure(eval *e, int64_t n, cnr_error *err) {
    cnri_progress progress;
    cnr_status status = CNR_OK;
    char text[32];
    cnri_progress_begin(&progress, "eval", n, e->runner.args->common.quiet);
    for (int64_t i = 0; i < n && !status; i++) {
        cnr_sample sample;
        status = cnri_samples_read(&e->samples, i, &sample, err);
        if (status) break;
        status = add_sample(e, &sample, n - i + e->filled, err);
        cnri_free(sample.picture.data);
        if (!status && cnri_cancelled())
            status = cnri_fail(err, CNR_E_CANCELLED, "eval", "stopped");
        snprintf(text, sizeof text, "top-1 %.2f%%",
                 e->done ? 100.0 * (double)e->right / (double)e->done : 0.0);
        cnri_progress_show(&progress, i + 1, text);
    }
    cnri_progress_end(&progress);
    return status;
}

/* ---- report ---- */

static void print_confusion(const eval *e, int64_t classes) {
    cnri_say(stdout, "\nconfusion (row: label, column: answer)\n      ");
    for (int64_t c = 0; c < classes; c++) cnri_say(stdout, "%6lld", (long long)c);
    for (int64_t r = 0; r < classes; r++) {
        const char *name = e->map || e->offset ? NULL : cnr_label(e->runner.model, r);
        cnri_say(stdout, "\n%6lld", (long long)r);
        for (int64_t c = 0; c < classes; c++)
            cnri_say(stdout, "%6lld", (long long)e->confusion[r * SMALL + c]);
        if (name) cnri_say(stdout, "  %s", name);
    }
    cnri_say(stdout, "\n");
}

static cnr_status report(const eval *e, double seconds, cnr_error *err) {
    const double n = e->done ? (double)e->done : 1;
    const double top1 = (double)e->right / n, top5 = (double)e->among_top / n;
    if (e->runner.args->common.json) {
        cnri_json j;
        cnri_json_begin(&j);
        cnri_json_int(&j, "n", e->done);
        cnri_json_real(&j, "top1", top1);
        cnri_json_real(&j, "top5", top5);
        cnri_json_real(&j, "seconds", seconds);
        return cnri_json_print(&j, err);
    }
    cnri_say(stdout, "pictures  %lld\ntop-1     %.2f%%  (%lld)\ntop-5     %.2f%%  (%lld)\n",
             (long long)e->done, top1 * 100, (long long)e->right, top5 * 100,
             (long long)e->among_top);
    cnri_say(stdout, "time      %.2f s, %.1f pictures a second\n", seconds,
             seconds > 0 ? (double)e->done / seconds : 0.0);
    if (e->confusion) print_confusion(e, e->samples.info.classes);
    return CNR_OK;
}

static cnr_status run_eval(eval *e, const cnri_args *args, cnr_runtime *rt, cnr_error *err) {
    cnr_model *model;
    cnr_status status = cnri_args_load(args, rt, args->operands.at[0], &model, err);
    if (!status) status = cnri_runner_open(&e->runner, args, model, err);
    if (!status) status = cnri_samples_open(e->data, "eval", &e->samples, err);
    if (status) return status;
    const cnr_source_info *info = &e->samples.info;
    if (info->classes < 1)
        return cnri_fail(err, CNR_E_ARG, e->data,
                         "no labels; use folders named by class, or images:LIST");
    if (info->classes <= SMALL && !args->common.json) {
        e->confusion = cnri_alloc_zero((size_t)(SMALL * SMALL) * sizeof *e->confusion);
        if (!e->confusion) return cnri_fail(err, CNR_E_MEMORY, "confusion", "out of memory");
    }
    const uint64_t begin = cnri_now_ns();
    status = measure(e, e->limit > 0 && e->limit < info->count ? e->limit : info->count, err);
    return status ? status : report(e, (double)(cnri_now_ns() - begin) * 1e-9, err);
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
    cnri_samples_close(&e.samples);
    cnri_runner_close(&e.runner);
    cnri_free(e.map);
    cnri_free(e.labels);
    cnri_free(e.confusion);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
