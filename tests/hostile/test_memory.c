/* Memory runs out at the n-th allocation of importing, planning and running real nets, for good or
 * for that one: an error that says so, or the same answer; no crash, and nothing lost (the
 * sanitised build tells). CNNRUN_STARVE sets how many places are tried of each net (60); 0: all of
 * them. sweep.t does the same to the program's commands. */
#include "tests/fuzz/targets.h"
#include "tests/tap.h"
#include <dirent.h>

/* How many places fail. */
static int64_t places(void) {
    const char *wanted = getenv("CNNRUN_STARVE");
    return wanted ? atoll(wanted) : 60;
}

/* Loads and runs a net on zeros. Returns 1 on success, with a fingerprint of the result in *print.
 */
static int load_and_run(const char *path, const char *weights, uint8_t print[16], cnr_error *err) {
    const cnr_load_options options = {.size = sizeof options, .device = "cpu", .weights = weights};
    cnr_model *m = NULL;
    cnr_status status = cnr_load(fuzz.rt, path, &options, &m, err);
    cnr_tensor in = {.size = sizeof in};
    const cnr_tensor *list[] = {&in}, *out = NULL;
    if (!status) {
        in = *m->graph->values.at[m->graph->inputs.at[0]].type;
        for (int32_t i = 0; i < in.rank; i++)
            if (in.dim[i] < 0) {
                const int64_t size = cnri_dim_default(m->graph, in.dim[i]);
                in.dim[i] = size > 0 ? size : i < 2 ? 1 : 227;
            }
        in.flags = 0;
        in.bytes = cnr_dense_bytes(&in);
        in.data =
            calloc(1, (size_t)in.bytes + 1); /* Not counted: calloc is not the core's allocator. */
        if (in.data) status = cnr_run_tensors(m, list, 1, &out, 1, err);
    }
    const int good = !status && out && cnr_count(out) > 1;
    if (good) cnri_fingerprint(out->data, cnr_dense_bytes(out), print);
    cnr_release(m);
    free(in.data);
    return good;
}

/* Fails each allocation of loading and running, only that one (once) or all from it on; answers of
 * runs that succeed must be `answer`. */
static void starve_how(const char *path, const char *weights, const char *what, int once,
                       int64_t count, const uint8_t answer[16]) {
    const int64_t tries = places(), step = tries && count > tries ? count / tries : 1;
    int64_t failed = 0;
    int32_t other = 0;
    for (int64_t n = 1; n <= count; n += step) {
        cnr_error err = CNR_ERROR_INIT;
        uint8_t print[16];
        if (once) cnri_alloc_fail_once(n);
        else cnri_alloc_fail_at(n);
        const int good = load_and_run(path, weights, print, &err);
        cnri_alloc_fail_at(0);
        failed += !good;
        if (good ? memcmp(print, answer, sizeof print) == 0 : err.code == CNR_E_MEMORY) continue;
        if (other++ < 3)
            note("allocation %lld: %s: %s", (long long)n, good ? "another answer" : err.where,
                 err.text);
    }
    ok(failed > 0 && other == 0, "%s: %lld allocations, %s in %lld places", what, (long long)count,
       once ? "one failing" : "failing", (long long)failed);
}

/* The same, once and from then on. */
static void starve(const char *path, const char *weights, const char *what) {
    cnr_error err = CNR_ERROR_INIT;
    uint8_t answer[16], again[16];
    if (!ok(load_and_run(path, weights, answer, &err), "%s: an answer", what)) {
        note("%s: %s", err.where, err.text);
        return;
    }
    const int64_t before = cnri_alloc_count();
    load_and_run(path, weights, again, &err);
    const int64_t count = cnri_alloc_count() - before;
    starve_how(path, weights, what, 0, count, answer);
    starve_how(path, weights, what, 1, count, answer);
    ok(load_and_run(path, weights, again, &err) && memcmp(again, answer, sizeof answer) == 0,
       "%s: and the answer again", what);
}

/* Loads each small valid file with its target, with each allocation failing in turn. */
static void starve_file(const char *name, const char *path) {
    size_t n;
    uint8_t *data = fuzz_read(path, &n);
    if (!data || fuzz_run(name, data, n) < 1) {
        skip(path, "not taken here");
        cnri_free(data);
        return;
    }
    const int64_t before = cnri_alloc_count();
    fuzz_run(name, data, n);
    const int64_t count = cnri_alloc_count() - before;
    int64_t refused = 0;
    for (int64_t k = 1; k <= count; k++) {
        cnri_alloc_fail_at(k);
        refused += fuzz_run(name, data, n) == 0;
        cnri_alloc_fail_at(0);
    }
    ok((refused > 0 || count == 0) && fuzz_run(name, data, n) == 1,
       "%s %s: %lld allocations, refused at %lld", name, strrchr(path, '/') + 1, (long long)count,
       (long long)refused);
    cnri_free(data);
}

/* The same for each case of the corpus. */
static void starve_corpus(const char *folder) {
    DIR *d = opendir(folder), *in;
    char sub[700], path[1200];
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || strcmp(e->d_name, "schema") == 0) continue;
        snprintf(sub, sizeof sub, "%s/%s", folder, e->d_name);
        in = opendir(sub);
        for (struct dirent *f; in && (f = readdir(in));) {
            if (f->d_name[0] == '.') continue;
            snprintf(path, sizeof path, "%s/%s", sub, f->d_name);
            starve_file(e->d_name, path);
        }
        if (in) closedir(in);
    }
    if (d) closedir(d);
}

int main(void) {
    const char *shared = tap_shared();
    char model[1200], weights[1200];
    if (!fuzz_open(CNRT_BUILD_DIR "/plugins")) return 1;
    starve_corpus(CNRT_SOURCE_DIR "/tests/fuzz/corpus");
    starve(CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", NULL, "LeNet-5 from Lua");
    if (shared) {
        snprintf(model, sizeof model, "%s/caffe/squeezenet_v1.1/deploy.prototxt", shared);
        snprintf(weights, sizeof weights,
                 "%s/caffe/squeezenet_v1.1/squeezenet_v1.1_fp16values.caffemodel", shared);
        starve(model, weights, "SqueezeNet from Caffe");
    } else skip("SqueezeNet from Caffe", "no ../shared/data");
    fuzz_close();
    return done();
}
