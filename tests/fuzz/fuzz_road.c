/* The fuzz target: one road, named by CNNRUN_FUZZ_ROAD; "list" prints their names. */
#include "tests/fuzz/roads.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char *road;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const char *plugins = getenv("CNNRUN_FUZZ_PLUGINS");
    (void)argc, (void)argv;
    road = getenv("CNNRUN_FUZZ_ROAD");
    if (!roads_open(plugins ? plugins : CNRT_BUILD_DIR "/plugins")) exit(1);
    if (road && strcmp(road, "list") != 0 && roads_run(road, (const uint8_t *)"", 0) >= 0) {
        atexit(roads_close);
        return 0;
    }
    if (road && strcmp(road, "list") != 0) fprintf(stderr, "no road %s; there are:\n", road);
    roads_list(stdout);
    roads_close();
    exit(road && strcmp(road, "list") == 0 ? 0 : 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    roads_run(road, data, n);
    return 0;
}
