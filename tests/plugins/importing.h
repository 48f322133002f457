/* Shared by the importers' tests: a runtime with the built plugins, models from bytes, runs on
 * made-up inputs, and randomly damaged files. */
#ifndef CNRT_IMPORTING_H
#define CNRT_IMPORTING_H

#include "run/run.h"
#include "tap.h"
#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

#define CNRT_UNUSED __attribute__((unused))

static cnr_runtime *cnrt_runtime;
static char cnrt_dir[64];
static cnr_error cnrt_err = CNR_ERROR_INIT;

static void CNRT_UNUSED cnrt_quiet(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text;
}

/* 0: the importer was not built (its library is missing); skip the test. */
static int CNRT_UNUSED cnrt_begin(const char *importer) {
    static const char *const dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .threads = 1,
                                      .plugin_dirs = dirs,
                                      .no_default_dirs = 1,
                                      .log = cnrt_quiet};
    snprintf(cnrt_dir, sizeof cnrt_dir, "/tmp/cnrt-import-XXXXXX");
    if (!mkdtemp(cnrt_dir) || cnr_open(&cnrt_runtime, &options, &cnrt_err) != CNR_OK) {
        note("%s: %s", cnrt_err.where, cnrt_err.text);
        ok(0, "a runtime opens");
        exit(done());
    }
    return cnri_descriptor_find(CNR_KIND_IMPORTER, importer) != NULL;
}

static int CNRT_UNUSED cnrt_end(void) {
    char command[128];
    cnr_close(cnrt_runtime);
    snprintf(command, sizeof command, "rm -rf %s", cnrt_dir);
    if (system(command) != 0) note("%s was left", cnrt_dir);
    return done();
}

CNRT_UNUSED static const char *cnrt_path(const char *name) { /* in a folder of this test's own */
    static char path[4][256];
    static int next;
    char *out = path[next++ & 3];
    snprintf(out, sizeof path[0], "%s/%s", cnrt_dir, name);
    return out;
}

static void CNRT_UNUSED cnrt_write(const char *path, const void *data, size_t bytes) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, bytes, file) != bytes) ok(0, "%s is written", path);
    if (file) fclose(file);
}

CNRT_UNUSED static void *cnrt_read(const char *path, size_t *bytes) {
    char *data = NULL;
    if (cnri_read_file(path, 1 << 28, &data, bytes, &cnrt_err) != CNR_OK) {
        ok(0, "%s is read: %s", path, cnrt_err.text);
        exit(done());
    }
    return data;
}

/* Imports; NULL with cnrt_err filled: the importer's error, or the graph's problems. */
CNRT_UNUSED static cnr_graph *cnrt_import(const char *importer, const char *const *paths,
                                          int32_t n_paths, const char *const *options,
                                          int32_t n_options) {
    const cnr_importer *i = cnri_descriptor_find(CNR_KIND_IMPORTER, importer);
    const cnr_import_args args = {.size = sizeof args,
                                  .n_paths = n_paths,
                                  .paths = paths,
                                  .n_options = n_options,
                                  .options = options};
    cnr_graph *g = cnri_graph_new("net");
    cnrt_err = (cnr_error)CNR_ERROR_INIT;
    cnr_status status = i->import(&args, g, &cnrt_err);
    if (!status) status = cnri_graph_status(g, true, &cnrt_err);
    if (!status) return g;
    cnri_graph_free(g);
    return NULL;
}

/* One file and at most one option (NULL: none), as a model that runs; NULL as above. */
CNRT_UNUSED static cnr_model *cnrt_model(const char *importer, const char *path,
                                         const char *weights, const char *option) {
    const char *paths[] = {path, weights};
    cnr_model *m = NULL;
    cnr_graph *g = cnrt_import(importer, paths, weights ? 2 : 1, &option, option != NULL);
    if (g && cnri_model_from_graph(cnrt_runtime, g, NULL, &m, &cnrt_err) != CNR_OK) return NULL;
    return m;
}

/* Output 0 of a run on `n` floats as the first input; NULL with a note when it fails. */
CNRT_UNUSED static const cnr_tensor *cnrt_run(cnr_model *m, const float *data, const int64_t *dim,
                                              int32_t rank) {
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = rank, .data = (void *)data};
    const cnr_tensor *in = &t, *out = NULL;
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    t.bytes = cnr_dense_bytes(&t);
    if (!m || cnr_run_tensors(m, &in, 1, &out, 1, &cnrt_err) != CNR_OK) {
        note("%s: %s", cnrt_err.where, cnrt_err.text);
        return NULL;
    }
    return out;
}

static uint64_t cnrt_state = 1;
static uint32_t CNRT_UNUSED cnrt_random(void) { /* splitmix64 */
    uint64_t z = cnrt_state += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 32);
}
static void CNRT_UNUSED cnrt_noise(float *out, size_t n, uint64_t seed) { /* in [-1, 1) */
    cnrt_state = seed;
    for (size_t i = 0; i < n; i++) out[i] = (float)cnrt_random() / 2147483648.0f - 1;
}

/* Largest difference of the elements, relative to the largest of them above 1; 1e30: not alike. */
static double CNRT_UNUSED cnrt_distance(const cnr_tensor *a, const float *b, int64_t n) {
    double most = 0, size = 1;
    if (!a || !b || cnr_count(a) != n || a->dtype != CNR_f32) return 1e30;
    const float *x = (const float *)a->data;
    for (int64_t i = 0; i < n; i++) {
        if (!(fabs((double)x[i] - (double)b[i]) <= 1e30)) return 1e30;
        most = fmax(most, fabs((double)x[i] - (double)b[i]));
        size = fmax(size, fabs((double)b[i]));
    }
    return most / size;
}

/* One of: bits flipped, a word of extremes, a piece gone or doubled, the end gone. */
static size_t CNRT_UNUSED cnrt_damage(const uint8_t *from, size_t n, uint8_t *to) {
    static const uint32_t extremes[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000, 0x7f};
    size_t at = cnrt_random() % n, length = 1 + cnrt_random() % 64;
    if (cnrt_random() % 2) at = cnrt_random() % (n < 512 ? n : 512); /* headers come first */
    if (length > n - at) length = n - at;
    memcpy(to, from, n);
    switch (cnrt_random() % 6) {
    case 0:
    case 1:
        for (uint32_t k = 1 + cnrt_random() % 4; k > 0; k--)
            to[cnrt_random() % 2 ? at : cnrt_random() % n] ^= (uint8_t)(1u << cnrt_random() % 8);
        return n;
    case 2:
    case 3: {
        const uint32_t word = extremes[cnrt_random() % CNRI_COUNT(extremes)];
        memcpy(to + at, &word, n - at < 4 ? n - at : 4);
        return n;
    }
    case 4: memmove(to + at, to + at + length, n - at - length); return n - length;
    default: return at;
    }
}

/* Imports `count` damaged copies of paths[which]: each gives a graph or an error, in bounded
 * memory. The others of `paths` stay whole. */
static void CNRT_UNUSED cnrt_survives(const char *importer, const char *const *paths,
                                      int32_t n_paths, int32_t which, const char *option,
                                      int count) {
    size_t bytes;
    uint8_t *whole = cnrt_read(paths[which], &bytes), *copy = malloc(bytes + 1);
    const char *dot = strrchr(paths[which], '.');
    char name[64], given[8][256];
    const char *list[8];
    int refused = 0;
    const struct rlimit before = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit now, limit = {(rlim_t)3 << 30, RLIM_INFINITY};
    snprintf(name, sizeof name, "damaged%.20s", dot ? dot : "");
    for (int32_t i = 0; i < n_paths; i++) {
        snprintf(given[i], sizeof given[i], "%s", i == which ? cnrt_path(name) : paths[i]);
        list[i] = given[i];
    }
    if (getrlimit(RLIMIT_AS, &now) != 0) now = before;
    if (!TAP_SANITISED && setrlimit(RLIMIT_AS, &limit) != 0) note("memory is not limited");
    cnrt_state = 7;
    for (int i = 0; i < count; i++) {
        cnrt_write(given[which], copy, cnrt_damage(whole, bytes, copy));
        cnr_graph *g = cnrt_import(importer, list, n_paths, &option, option != NULL);
        refused += !g;
        if (!g && !cnrt_err.text[0]) ok(0, "damaged copy %d: refused without a word", i);
        cnri_graph_free(g);
    }
    if (!TAP_SANITISED) setrlimit(RLIMIT_AS, &now);
    ok(refused > 0, "%d damaged copies of %s: %d refused, no harm", count,
       strrchr(paths[which], '/') + 1, refused);
    free(copy);
    cnri_free(whole);
}

#endif
