/* cnnrun import: a model of another program to the native file. */
#include "core/cli/cli.h"
#include "core/store/store.h"

typedef struct import {
    const char *out, *labels, *format;
    char *mean_setting;
} import;

static const cnri_option options[] = {
    {"--output", "FILE", CNRI_OPT_TEXT, offsetof(import, out), "the native file to write", 0, 0,
     NULL, 'o'},
    {"--labels", "FILE", CNRI_OPT_TEXT, offsetof(import, labels),
     "names of the classes, one a line", 0, 0, NULL, 0},
    {"--format", "NAME", CNRI_OPT_TEXT, offsetof(import, format),
     "the importer to use (told by the content)", 0, 0, NULL, 0},
};

/* What each importer takes as --option. */
static void list_options(void) {
    cnr_runtime *rt = NULL;
    const cnr_open_options quiet = {.size = sizeof quiet, .log_level = CNR_LOG_ERROR};
    cnr_error err = CNR_ERROR_INIT;
    if (cnr_open(&rt, &quiet, &err)) return;
    cnri_say(stdout, "\nImporters (cnnrun plugins tells more of them), and what each takes as --option:\n");
    for (int32_t i = 0; i < cnri_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *importer = cnri_at(CNR_KIND_IMPORTER, i);
        const char *const *row = cnri_importer_options(importer);
        cnri_say(stdout, "  %s%s\n", importer->name, row ? *row ? "" : ": none" : ": it does not say");
        for (; row && *row; row++)
            cnri_say(stdout, "      %-18.*s %s\n", (int)strcspn(*row, " "), *row,
                     *row + strcspn(*row, " ") + strspn(*row + strcspn(*row, " "), " "));
    }
    cnr_close(rt);
}

static const cnri_syntax syntax = {
    .command = "import",
    .operands = "MODEL [WEIGHTS] -o OUT.cnr",
    .summary = "Turns a model of another program into the native file. The format is told by the\n"
               "content; the flags for pictures are kept with the net.",
    .more = list_options,
    .options = options,
    .n_options = CNRI_COUNT(options),
    .nets = true,
    .min_operands = 1,
    .max_operands = 8,
};

/* ---- which importer ---- */

static cnr_status none_fits(const char *where, const char *what, cnr_error *err) {
    cnri_text known = {0};
    for (int32_t i = 0; i < cnri_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *importer = cnri_at(CNR_KIND_IMPORTER, i);
        cnri_text_add(&known, "%s%s", i ? ", " : "", importer->name);
    }
    const cnr_status status =
        cnri_fail(err, CNR_E_UNSUPPORTED, where, "%s; there are: %s", what,
                  known.at && *known.at ? known.at : "none (no importer plugin was found)");
    cnri_text_free(&known);
    return status;
}

static cnr_status find(const char *name, const char *path, const cnr_importer **out,
                       cnr_error *err) {
    cnri_head head;
    int32_t score = 0;
    *out = name ? cnri_find(CNR_KIND_IMPORTER, name) : NULL;
    if (*out) return CNR_OK;
    if (name) return none_fits("--format", "no importer has this name", err);
    const cnr_status status = cnri_file_head(path, &head, err);
    if (status) return status;
    *out = cnri_importer_for(path, &head, &score);
    return *out ? CNR_OK : none_fits(path, "no importer knows this file", err);
}

/* ---- labels ---- */

/* One a line; quotes round a whole line go. */
static cnr_status set_labels(cnr_graph *graph, const char *path, cnr_error *err) {
    char *text;
    size_t bytes;
    int64_t n = 0, named = 0;
    cnri_text clean = {0};
    cnr_status status = cnri_read_file(path, 16 << 20, &text, &bytes, err);
    if (status) return status;
    for (char *line = text, *next; *line; line = next) {
        char *end = line + strcspn(line, "\r\n");
        next = end + strspn(end, "\r");
        if (*next == '\n') next++;
        if (end - line >= 2 && (*line == '\'' || *line == '"') && end[-1] == *line) {
            line++;
            end--;
        }
        cnri_text_add(&clean, "%s%.*s", n ? "\n" : "", (int)(end - line), line);
        n++;
        if (end > line) named = n; /* empty lines at the end are none */
    }
    status = cnri_labels_check(graph, named, path, err);
    if (status) goto out;
    if (clean.failed || cnri_host.graph_set_meta(graph, "labels", clean.at ? clean.at : ""))
        status = cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
out:
    cnri_text_free(&clean);
    cnri_free(text);
    return status;
}

/* ---- mean images in a format of the importer's ---- */

/* A file for --mean that no source reads becomes the importer's setting. */
static cnr_status hand_over_mean(import *im, cnri_args *args, cnr_error *err) {
    const char *path = args->common.mean;
    cnri_samples samples;
    cnr_error why = CNR_ERROR_INIT;
    if (!path || cnri_is_numbers(path)) return CNR_OK;
    if (cnri_samples_open(path, NULL, &samples, &why) == CNR_OK) {
        cnri_samples_close(&samples);
        return CNR_OK;
    }
    if (why.code != CNR_E_UNSUPPORTED) return cnri_fail(err, why.code, why.where, "%s", why.text);
    const char **slot = cnri_push(&args->common.settings);
    im->mean_setting = cnri_format("mean_file=%s", path);
    if (!slot || !im->mean_setting) return cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    *slot = im->mean_setting;
    args->common.mean = NULL;
    return CNR_OK;
}

static cnr_status no_mean(const import *im, cnr_error *err) {
    return cnri_fail(err, CNR_E_UNSUPPORTED, strchr(im->mean_setting, '=') + 1,
                     "neither a picture nor a mean image of this importer");
}

static cnr_status check_mean_taken(const import *im, const cnr_graph *graph, cnr_error *err) {
    bool taken = im->mean_setting == NULL;
    for (int32_t i = 0; i < graph->inputs.n && !taken; i++) {
        char key[300];
        snprintf(key, sizeof key, "input.%.200s.mean",
                 graph->values.at[graph->inputs.at[i]].name);
        taken = cnri_host.graph_meta(graph, key) != NULL;
    }
    return taken ? CNR_OK : no_mean(im, err);
}

/* ---- the whole ---- */

static cnr_status run_importer(const import *im, const cnr_importer *importer,
                               const cnri_args *args, cnr_graph **graph, cnr_error *err) {
    const cnr_import_args how = {
        .size = sizeof how,
        .n_paths = args->operands.n,
        .paths = args->operands.at,
        .n_options = args->common.settings.n,
        .options = args->common.settings.at,
    };
    if (im->mean_setting && !cnri_importer_takes(importer, "mean_file")) return no_mean(im, err);
    const cnr_status status = cnri_import(importer, &how, graph, err);
    if (!status) (*graph)->no_verify = args->common.no_verify;
    return status ? status : cnri_weights_fill(*graph, args->common.weights, NULL, err);
}

static void tell(const cnri_args *args, const import *im, const cnr_graph *graph) {
    int64_t parameters = 0;
    for (int32_t i = 0; i < graph->values.n; i++) {
        const cnri_value *v = &graph->values.at[i];
        if (v->producer < 0 && !v->is_input && v->type->data) parameters += cnr_count(v->type);
    }
    if (!args->common.quiet)
        cnri_say(stderr, "%s: %d nodes, %lld parameters\n", im->out, graph->nodes.n,
                 (long long)parameters);
}

int cnri_cmd_import(int argc, char **argv) {
    import im = {0};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_graph *graph = NULL;
    const cnr_importer *importer = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &im, &code)) return code;
    if (!im.out) {
        code = cnri_usage_error(&args, "-o OUT.cnr is missing");
    } else {
        const char *const more[] = {im.labels};
        cnr_status status = cnri_args_output(&args, im.out, more, CNRI_COUNT(more), &err);
        if (!status) status = cnri_args_open(&args, &rt, &err);
        if (!status) status = find(im.format, args.operands.at[0], &importer, &err);
        if (!status) status = hand_over_mean(&im, &args, &err);
        if (!status) status = run_importer(&im, importer, &args, &graph, &err);
        if (!status) status = check_mean_taken(&im, graph, &err);
        if (!status) status = cnri_graph_verdict(graph, true, &err);
        if (!status) status = cnri_args_preprocess(&args, graph, &err);
        if (!status && im.labels) status = set_labels(graph, im.labels, &err);
        if (!status) status = cnri_store_write(graph, im.out, &err);
        if (status) code = cnri_complain(&args, &err);
        else tell(&args, &im, graph);
    }
    cnri_free(im.mean_setting);
    cnri_graph_free(graph);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
