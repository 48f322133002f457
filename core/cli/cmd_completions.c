/* cnnrun completions: what a shell completes, made of the option tables. */
#include "core/cli/cli.h"

int cnri_cmd_completions(int argc, char **argv) {
    static const cnri_syntax syntax = {
        "completions", "bash|zsh|fish",
        "Prints what that shell completes of this program. bash: source <(cnnrun completions bash);\n"
        "zsh: into a file _cnnrun of a folder in fpath; fish: into completions/cnnrun.fish.",
        NULL, NULL, 0, false, 1, 1, NULL};
    cnri_args args;
    int code;
    if (!cnri_args_parse(&args, &syntax, argc, argv, NULL, &code)) return code;
    const char *shell = args.operands.at[0];
    if (strcmp(shell, "bash") != 0 && strcmp(shell, "zsh") != 0 && strcmp(shell, "fish") != 0)
        code = cnri_usage_error(&args, "wanted bash, zsh or fish, got \"%s\"", shell);
    else
        code = cnri_reference_all(shell);
    cnri_args_free(&args);
    return code;
}
