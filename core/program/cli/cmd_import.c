/* cnnrun import: converts a model of another program to a native file. */
#include "cli/cli.h"
#include "store/store.h"
#include "people/people.h"

/* Options of import. */
typedef struct import {
    const char *out, *format;
} import;

static const cnri_option options[] =
    {CNRI_OPTION(import, out, "--output", "FILE", "the native file to write", .letter = 'o',
                 .wanted = true, .writes = true),
     CNRI_OPTION(import, format, "--format", "NAME",
                 "the importer to use (detected from the content)")};

/* Lists the settings that each importer takes as --option. */
static void list_options(void) {
    cnr_runtime *rt = NULL;
    const cnr_open_options quiet = {.size = sizeof quiet, .log_level = CNR_LOG_ERROR};
    cnr_error err = CNR_ERROR_INIT;
    if (cnr_open(&rt, &quiet, &err)) return;
    cnri_say(stdout, "\nImporters (cnnrun plugins tells more of them), and what each takes as "
                     "--option:\n");
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *importer = cnri_descriptor_at(CNR_KIND_IMPORTER, i);
        const char *const *row = cnri_importer_options(importer);
        cnri_say(stdout, "  %s%s\n", importer->name,
                 row ? *row ? "" : ": none" : ": it does not say");
        for (; row && *row; row++) {
            const size_t n = strcspn(*row, " ");
            cnri_say(stdout, "      %-18.*s %s\n", (int)n, *row, *row + n + strspn(*row + n, " "));
        }
    }
    cnr_close(rt);
}

/* Imports the model. A mean image that the importer has read is not treated as a picture again. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const import *im = values;
    cnri_common *c = &call->common;
    const cnri_import_options o = {.paths = call->operands.at,
                                   .n_paths = call->operands.n,
                                   .format = im->format,
                                   .settings = c->load.import_options,
                                   .n_settings = cnri_count_options(c->load.import_options),
                                   .weights = c->load.weights,
                                   .labels = c->load.labels,
                                   .mean = c->mean && !cnri_is_numbers(c->mean) ? c->mean : NULL,
                                   .no_verify = c->load.no_verify};
    bool mean_taken;
    cnr_status status = cnri_import_model(&o, &call->graph, &mean_taken, err);
    if (mean_taken) c->mean = NULL;
    if (!status) status = cnri_call_preprocess(call, call->graph, err);
    if (!status) status = cnri_store_write(call->graph, im->out, err);
    if (!status && !c->quiet)
        cnri_say(stderr, "%s: %d nodes, %lld parameters\n", im->out, call->graph->nodes.n,
                 (long long)cnri_parameters_of(call->graph));
    return status;
}

const cnri_command cnri_cmd_import = {
    .name = "import",
    .example = "cnnrun import model.pb -o model.cnr",
    .operands = "MODEL [WEIGHTS] -o OUT.cnr",
    .summary = "Turns a model of another program into the native file. The format is told by the\n"
               "content; the flags for pictures are kept with the net.",
    CNRI_OPTIONS(options),
    CNRI_VALUES(import, .out = NULL),
    .min_operands = 1,
    .max_operands = -1,
    .takes = CNRI_NETS | CNRI_PICTURES,
    .opens = cnri_call_open,
    .run = run,
    .more = list_options,
};
