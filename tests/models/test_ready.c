/* A native file of 244 MB is ready at once: it is mapped, not read. */
#define _GNU_SOURCE 1
#include "base/base.h"
#include "run/run.h"
#include "tap.h"
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 5 };

/* A log that says nothing. */
static void quiet(void *arg, int32_t level, const char *plugin, const char *text) {
    (void)arg, (void)level, (void)plugin, (void)text;
}

/* Least milliseconds until a net has answered; *weights receives their bytes. */
static double best_ms(cnr_runtime *rt, const char *path, int64_t *weights) {
    double best = 1e9;
    for (int i = 0; i < TRIES; i++) {
        cnr_error err = CNR_ERROR_INIT;
        cnr_model *model = NULL;
        const uint64_t begun = cnri_now_ns();
        if (!is_int(cnr_load(rt, path, NULL, &model, &err), CNR_OK, "it is loaded")) {
            note("%s: %s", err.where, err.text);
            return best;
        }
        const double ms = (double)(cnri_now_ns() - begun) / 1e6;
        *weights = 0;
        for (int32_t k = 0; k < model->graph->values.n; k++) {
            const cnri_value *v = &model->graph->values.at[k];
            if (v->producer < 0 && v->type->data) *weights += (int64_t)cnr_dense_bytes(v->type);
        }
        cnr_release(model);
        if (ms < best) best = ms;
    }
    return best;
}

int main(void) {
    char path[] = "/tmp/cnnrun-ready-XXXXXX.cnr";
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip("a native file of 244 MB", "left out: a time under a sanitiser says nothing");
    return done();
#endif
    const cnr_open_options options = {.size = sizeof options,
                                      .log = quiet,
                                      .plugin_dirs =
                                          (const char *const[]){CNRT_BUILD_DIR "/plugins", NULL}};
    is_int(cnr_open(&rt, &options, &err), CNR_OK, "the runtime opens");
    const int file = mkstemps(path, 4);
    if (file >= 0) close(file);
    char *command = NULL;
    if (asprintf(&command,
                 "'%s/cnnrun' convert '%s/scripts/nets/alexnet.lua' -q "
                 "--weights random:1 -o %s",
                 CNRT_BUILD_DIR, CNRT_SOURCE_DIR, path) > 0 &&
        is_int(system(command), 0, "AlexNet with random weights, converted")) {
        struct stat st = {0};
        stat(path, &st);
        ok(st.st_size > 243000000 && st.st_size < 245000000, "a file of %lld bytes",
           (long long)st.st_size);
        int64_t weights = 0;
        const double ms = best_ms(rt, path, &weights);
        is_int(weights, 4 * 60965224LL, "with all its weights");
        ok(ms < 50, "ready in %.2f ms (best of %d; wanted 10, on a busy machine 50)", ms, TRIES);
    }
    free(command);
    cnr_close(rt);
    unlink(path);
    return done();
}
