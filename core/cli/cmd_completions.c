/* cnnrun completions: what a shell completes, made of the option tables. */
#include "core/cli/cli.h"

static cnr_status run(cnri_call *call, void *values, cnr_error *err) {
    const char *shell = call->operands.at[0];
    (void)values;
    if (strcmp(shell, "man") != 0 && cnri_reference(shell)) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, NULL, "wanted bash, zsh or fish, got \"%s\"", shell);
}

const cnri_command cnri_cmd_completions = {
    .name = "completions", .operands = "bash|zsh|fish",
    .summary =
        "Prints what that shell completes of this program. bash: source <(cnnrun completions bash);\n"
        "zsh: into a file _cnnrun of a folder in fpath; fish: into completions/cnnrun.fish.",
    .min_operands = 1, .max_operands = 1,
    .run = run,
};
