/* cnnrun check FILE...: verifies every digest of .cnr files. */
#include "core/cli/cli.h"
#include "core/store/store.h"

static const cnri_syntax syntax = {
    .command = "check",
    .operands = "FILE...",
    .summary = "Verifies the digests of native model files (.cnr): header, directory, every tensor.",
    .details = "Exit code 0 when all files are sound. Damaged tensors are named on stderr.",
    .min_operands = 1,
    .max_operands = -1,
};

/* One file; returns its exit code. */
static int check_file(const cnri_args *args, const char *path) {
    cnr_error err = CNR_ERROR_INIT;
    int32_t bad = 0;
    const cnr_status status = cnri_store_check(path, &bad, &err);
    if (status != CNR_OK) cnri_complain_beside(args, &err);
    const bool good = status == CNR_OK && bad == 0;
    if (args->common.json) {
        cnri_json j = {0};
        cnri_json_begin(&j);
        cnri_json_text(&j, "file", path);
        cnri_json_bool(&j, "ok", good);
        cnri_json_int(&j, "damaged", bad);
        cnri_json_text(&j, "error", status == CNR_OK ? NULL : err.text);
        cnr_error print = CNR_ERROR_INIT;
        if (cnri_json_print(&j, &print) != CNR_OK) return cnri_complain(args, &print);
    } else if (status == CNR_OK) {
        if (good) cnri_say(stdout, "%s: ok\n", path);
        else cnri_say(stdout, "%s: %d damaged tensor%s\n", path, bad, bad == 1 ? "" : "s");
    }
    if (good) return 0;
    return status == CNR_OK ? -CNR_E_FORMAT : -(int)status;
}

int cnri_cmd_check(int argc, char **argv) {
    cnri_args args;
    int code = 0;
    if (!cnri_args_parse(&args, &syntax, argc, argv, NULL, &code)) return code;
    code = 0;
    for (int32_t i = 0; i < args.operands.n; i++) {
        const int one = check_file(&args, args.operands.at[i]);
        if (one) code = one;
    }
    cnri_args_free(&args);
    return code;
}
