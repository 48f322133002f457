/* cnnrun export NET -o FILE: writes a net in another format, by whichever exporter knows the name. */
#include "core/cli/cli.h"

typedef struct options {
    const char *output;
} options;

static const cnri_option option_rows[] = {
    {"--output", "FILE", CNRI_OPT_TEXT, offsetof(options, output), "the file to write", .letter = 'o'},
};
static const cnri_syntax syntax = {
    "export", "NET -o FILE", "Writes a net in the format that FILE's name says (see cnnrun plugins).",
    NULL, option_rows, CNRI_COUNT(option_rows), true, 1, 1, NULL};

int cnri_cmd_export(int argc, char **argv) {
    options opt = {0};
    cnri_args args;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, &opt, &code)) return code;
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    cnr_graph *graph = NULL;
    cnr_status status = CNR_OK;
    if (!opt.output) {
        code = cnri_usage_error(&args, "where to? -o FILE is wanted");
        cnri_args_free(&args);
        return code;
    }
    status = cnri_args_output(&args, opt.output, NULL, 0, &err);
    if (!status) status = cnri_args_open(&args, &rt, &err);
    if (!status) status = cnri_args_load_graph(&args, rt, args.operands.at[0], &graph, &err);
    if (!status) status = cnri_export(graph, opt.output, &err);
    if (status) code = cnri_complain(&args, &err);
    cnri_graph_free(graph);
    cnr_close(rt);
    cnri_args_free(&args);
    return code;
}
