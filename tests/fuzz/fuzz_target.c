/* The fuzzer's entry: runs the target that CNNRUN_FUZZ_TARGET names; "list" prints all names. */
#include "tests/fuzz/targets.h"

/* libFuzzer calls it once. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
/* libFuzzer calls it with each input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *target;

/* Opens the library for the target that the program's name tells; returns 0. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const char *plugins = getenv("CNNRUN_FUZZ_PLUGINS");
    (void)argc, (void)argv;
    target = getenv("CNNRUN_FUZZ_TARGET");
    if (!fuzz_open(plugins ? plugins : CNRT_BUILD_DIR "/plugins")) exit(1);
    if (target && strcmp(target, "list") != 0 && fuzz_run(target, (const uint8_t *)"", 0) >= 0) {
        atexit(fuzz_close);
        return 0;
    }
    if (target && strcmp(target, "list") != 0)
        fprintf(stderr, "no target %s; the targets are:\n", target);
    fuzz_list(stdout);
    fuzz_close();
    exit(target && strcmp(target, "list") == 0 ? 0 : 1);
}

/* Gives the target one input; returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    fuzz_run(target, data, n);
    return 0;
}
