/* cnr_share: placement by measuring, for applications: on the processor alone, kept and found
 * again. */
#include "../../tap.h"
#include <cnnrun/cnnrun.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char net[] = CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua";

/* Tests: a model is shared among devices. */
static void share_on(cnr_model *model, const char *folder) {
    cnr_error err = CNR_ERROR_INIT;
    const char *const devices[] = {"cpu", NULL};
    const cnr_share_options o = {.size = sizeof o,
                                 .policy = CNRT_SOURCE_DIR "/scripts/place/fastest.lua",
                                 .devices = devices,
                                 .runs = 1,
                                 .folder = folder};
    cnr_sharing s = {.size = sizeof s};
    if (!ok(cnr_share(model, &o, NULL, &s, &err) == CNR_OK, "a net is placed: %s", err.text))
        return;
    is_int(s.n_alone, 1, "one device alone");
    ok(strcmp(s.alone[0].name, "cpu") == 0, "the processor");
    ok(s.alone[0].seconds > 0 && s.measured.seconds > 0, "which takes time");
    ok(s.n_parts > 0 && strcmp(s.parts[0].device, "cpu") == 0 && s.parts[0].share == 1,
       "all of each node is there");
    ok(s.file != NULL && !s.found, "it is kept");
    cnr_sharing_free(&s);
    cnr_sharing_free(&s);
    is_int(cnr_share(model, &o, NULL, &s, &err), CNR_OK, "once more");
    ok(s.found && s.n_alone == 0 && s.n_parts > 0,
       "it is found, and nothing measured but its plan");
    cnr_sharing_free(&s);
}

/* Another model of the same net follows the kept placement; a model of another net does not. */
static void follow_in(cnr_runtime *rt, const char *folder) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_load_options load = {.size = sizeof load, .weights = "random:1"};
    const char *const nets[] = {net, CNRT_SOURCE_DIR "/scripts/nets/cifar10_quick.lua"};
    for (int32_t i = 0; i < 2; i++) {
        cnr_model *model = NULL;
        int32_t follows = 7;
        if (!ok(cnr_load(rt, nets[i], &load, &model, &err) == CNR_OK, "%s", nets[i])) return;
        is_int(cnr_follow(model, folder, &follows, &err), CNR_OK, "asked for what is kept");
        is_int(follows, !i, i ? "of another net nothing is" : "which it follows");
        is_int(cnr_follow(model, "/nowhere", &follows, &err), CNR_OK,
               "in a folder that is not there");
        is_int(follows, 0, "is nothing");
        is_int(cnr_follow(model, NULL, &follows, &err), CNR_E_ARG, "a folder is wanted");
        cnr_release(model);
    }
}

/* Real and simulated devices keep to their own clocks. */
static void mix_clocks(const char *folder) {
    static const char board[] = "return { clock = \"simulated\", simulate = true, dry = true, "
                                "rails = { { name = \"chip\" } },\n"
                                "units = { { name = \"gpu4\", rail = \"chip\", host = true, launch "
                                "= 0, power = { static = 1 },\n"
                                "classes = { { op = \"*\", gflops = 1, gbytes = 1 } } } } }\n";
    char path[256];
    snprintf(path, sizeof path, "%s/board.lua", folder);
    FILE *f = fopen(path, "w");
    if (!ok(f && fputs(board, f) >= 0 && fclose(f) == 0, "a board is written")) return;
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    cnr_model *model = NULL;
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL}, *const devices[] = {"cpu", "sim:gpu4",
                                                                                NULL};
    const cnr_open_options open = {.size = sizeof open,
                                   .plugin_dirs = dirs,
                                   .no_default_dirs = 1,
                                   .threads = 1,
                                   .board = path};
    const cnr_load_options load = {.size = sizeof load, .weights = "random:1"};
    const cnr_share_options o = {.size = sizeof o,
                                 .policy = CNRT_SOURCE_DIR "/scripts/place/fastest.lua",
                                 .devices = devices,
                                 .runs = 1};
    cnr_sharing s = {.size = sizeof s};
    if (!ok(cnr_open(&rt, &open, &err) == CNR_OK &&
                cnr_load(rt, net, &load, &model, &err) == CNR_OK,
            "a board: %s", err.text))
        return;
    is_int(cnr_share(model, &o, NULL, &s, &err), CNR_E_ARG,
           "real beside simulated devices are refused");
    ok(strcmp(err.where, "cpu") == 0 && strstr(err.text, "sim:gpu4"), "by name: %s: %s", err.where,
       err.text);
    cnr_close(rt);
}

int main(void) {
    char folder[] = "/tmp/cnnrun-share-XXXXXX";
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    cnr_model *model = NULL;
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options open = {.size = sizeof open,
                                   .plugin_dirs = dirs,
                                   .no_default_dirs = 1,
                                   .threads = 1};
    const cnr_load_options load = {.size = sizeof load, .weights = "random:1"};
    cnr_sharing s = {.size = sizeof s};
    if (!mkdtemp(folder)) return 1;
    if (!ok(cnr_open(&rt, &open, &err) == CNR_OK &&
                cnr_load(rt, net, &load, &model, &err) == CNR_OK,
            "a net: %s", err.text))
        return 1;
    share_on(model, folder);
    follow_in(rt, folder);
    is_int(cnr_share(model, NULL, NULL, &s, &err), CNR_E_ARG, "a policy is wanted");
    const cnr_share_options unknown = {.size = sizeof unknown, .policy = "bset"};
    ok(cnr_share(model, &unknown, NULL, &s, &err) != CNR_OK && strstr(err.where, "bset"),
       "one that there is");
    cnr_close(rt);
    mix_clocks(folder);
    return done();
}
