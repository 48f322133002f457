/* cnnrun export NET -o FILE: writes a net in another format, with the exporter that fits the
 * file name. */
#include "cli/cli.h"

/* Options of export. */
typedef struct output {
    const char *path;
} output;

static const cnri_option options[] = {CNRI_OPTION(output, path, "--output", "FILE",
                                                  "the file to write", .letter = 'o',
                                                  .wanted = true, .writes = true)};

/* The command export. */
static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    return cnri_export(call->graph, ((const output *)values)->path, err);
}

const cnri_command cnri_cmd_export = {
    .name = "export",
    .example = "cnnrun export net.lua -o model.EXT",
    .operands = "NET -o FILE",
    .summary = "Writes a net in the format that FILE's name says (see cnnrun plugins).",
    CNRI_OPTIONS(options),
    CNRI_VALUES(output, .path = NULL),
    CNRI_ONE_NET(cnri_call_graph),
    .run = run,
};
