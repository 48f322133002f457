/* cnnrun import: a model of another program to the native file. */
#include "core/cli/cli.h"
#include "core/store/store.h"

typedef struct import {
    const char *out, *labels, *format;
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

/* A mean image that the importer has read is no picture for the flag any more. */
static cnr_status run_import(const import *im, cnri_args *args, cnr_graph **graph, cnr_error *err) {
    const char *mean = args->common.mean;
    const cnri_import_options o = {
        .paths = args->operands.at, .n_paths = args->operands.n, .format = im->format,
        .settings = args->common.settings.at, .n_settings = args->common.settings.n,
        .weights = args->common.weights, .labels = im->labels,
        .mean = mean && !cnri_is_numbers(mean) ? mean : NULL, .no_verify = args->common.no_verify};
    bool mean_taken;
    const cnr_status status = cnri_import_model(&o, graph, &mean_taken, err);
    if (mean_taken) args->common.mean = NULL;
    return status ? status : cnri_args_preprocess(args, *graph, err);
}

int cnri_cmd_import(int argc, char **argv) {
    import im = {0};
    cnri_args args;
    cnr_runtime *rt = NULL;
    cnr_graph *graph = NULL;
    cnr_error err = CNR_ERROR_INIT;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &im, &code)) return code;
    if (!im.out) {
        code = cnri_usage_error(&args, "-o OUT.cnr is missing");
    } else {
        const char *const more[] = {im.labels};
        cnr_status status = cnri_args_output(&args, im.out, more, CNRI_COUNT(more), &err);
        if (!status) status = cnri_args_open(&args, &rt, &err);
        if (!status) status = run_import(&im, &args, &graph, &err);
        if (!status) status = cnri_store_write(graph, im.out, &err);
        if (status) code = cnri_complain(&args, &err);
        else tell(&args, &im, graph);
    }
    cnri_graph_free(graph);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
