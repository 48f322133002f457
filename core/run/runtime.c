/* Runtimes: plugins, devices, and the front ends that turn files into graphs. */
#include "core/run/run.h"
#include "core/store/store.h"
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- loaders: part of the registry, filled before or by cnr_open ---- */

enum { MOST_LOADERS = 16 };
static struct {
    pthread_mutex_t lock;
    const cnri_loader *at[MOST_LOADERS];
    int32_t n;
} loaders = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cnri_loader_add(const cnri_loader *loader) {
    bool known = false;
    pthread_mutex_lock(&loaders.lock);
    for (int32_t i = 0; i < loaders.n; i++) known = known || loaders.at[i] == loader;
    if (!known && loaders.n < MOST_LOADERS) loaders.at[loaders.n++] = loader;
    pthread_mutex_unlock(&loaders.lock);
}

static bool ends_with(const char *text, const char *tail) {
    const size_t n = strlen(text), k = strlen(tail);
    return n > k && strcmp(text + n - k, tail) == 0;
}

/* The reader says itself what is wrong with a file; the name is enough to hand it over. */
static int32_t native_accepts(const char *path, const uint8_t *head, size_t head_bytes) {
    (void)head;
    (void)head_bytes;
    return ends_with(path, ".cnr") ? 100 : 0;
}

static cnr_status native_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                              cnr_graph **out, cnr_error *err) {
    (void)rt;
    (void)options;
    return cnri_store_read(path, out, err);
}

static const cnri_loader native = {".cnr", native_accepts, native_load};

/* ---- open and close ---- */

static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "cnnrun", "out of memory");
}

/* Once a process: the host table is constant from the first runtime on. */
static void complete_core(void) {
    cnri_graph_install(cnri_host_mutable());
    cnri_loader_add(&native);
    cnri_front_ends_add();
}

cnr_status cnr_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err) {
    *out = NULL;
    cnr_open_options given = {.size = sizeof given, .log_level = CNR_LOG_WARN};
    if (options) { /* an older caller's struct is shorter */
        const size_t n = options->size < sizeof given ? options->size : sizeof given;
        memset(&given, 0, sizeof given);
        memcpy(&given, options, n);
        if (given.log) cnri_log_to(given.log, given.log_arg, given.log_level);
    }
    static pthread_once_t completed = PTHREAD_ONCE_INIT;
    pthread_once(&completed, complete_core);
    cnr_runtime *rt = cnri_alloc_zero(sizeof *rt);
    pthread_mutex_t *lock = cnri_alloc_zero(sizeof *lock);
    if (!rt || !lock) {
        cnri_free(rt);
        cnri_free(lock);
        return no_memory(err);
    }
    pthread_mutex_init(lock, NULL);
    rt->lock = lock;
    rt->options = given;
    rt->options.plugin_dirs = NULL; /* the caller's, only good until we return */
    rt->pid = getpid();
    cnr_status status = cnri_plugins_load(given.plugin_dirs, !given.no_default_dirs, err);
    if (!status) status = cnri_devices_find(&rt->devices, given.threads, err);
    if (status) cnr_close(rt);
    else *out = rt;
    return status;
}

void cnr_close(cnr_runtime *rt) {
    if (!rt) return;
    while (rt->models.n > 0) cnr_release(rt->models.at[rt->models.n - 1]);
    cnri_vec_free(&rt->models);
    cnri_devices_close(&rt->devices);
    pthread_mutex_destroy(rt->lock);
    cnri_free(rt->lock);
    cnri_free(rt);
}

cnr_status cnri_check_process(const cnr_runtime *rt, cnr_error *err) {
    if (rt->pid == getpid()) return CNR_OK;
    return cnri_fail(err, CNR_E_STATE, "cnnrun",
                     "opened before a fork: the child has no threads or devices of it; want "
                     "cnr_open called in the child");
}

/* ---- graphs from files ---- */

static const cnri_loader *best_loader(const char *path, const uint8_t *head, size_t n,
                                      int32_t *score) {
    const cnri_loader *best = NULL;
    pthread_mutex_lock(&loaders.lock);
    for (int32_t i = 0; i < loaders.n; i++) {
        const int32_t s = loaders.at[i]->accepts(path, head, n);
        if (s > *score) {
            *score = s;
            best = loaders.at[i];
        }
    }
    pthread_mutex_unlock(&loaders.lock);
    return best;
}

static const cnr_importer *best_importer(const char *path, const uint8_t *head, size_t n,
                                         int32_t *score) {
    const cnr_importer *best = NULL;
    for (int32_t i = 0; i < cnri_count(CNR_KIND_IMPORTER); i++) {
        const cnr_importer *one = cnri_at(CNR_KIND_IMPORTER, i);
        const int32_t s = one->accepts(path, head, n);
        if (s > *score) {
            *score = s;
            best = one;
        }
    }
    return best;
}

static cnr_status nobody(const char *path, cnr_error *err) {
    cnri_text known = {0};
    for (int32_t i = 0; i < loaders.n; i++)
        cnri_text_add(&known, "%s%s", known.n ? ", " : "", loaders.at[i]->name);
    for (int32_t i = 0; i < cnri_count(CNR_KIND_IMPORTER); i++)
        cnri_text_add(&known, "%s%s", known.n ? ", " : "",
                      cnri_item_name(CNR_KIND_IMPORTER, cnri_at(CNR_KIND_IMPORTER, i)));
    const cnr_status status = cnri_fail(err, CNR_E_UNSUPPORTED, path,
                                        "is in no format that is known here: want one of %s",
                                        known.at && known.n ? known.at : "none");
    cnri_text_free(&known);
    return status;
}

/* The graph is only to be looked at. */
static bool is_none(const char *weights) {
    return weights && strcmp(weights, "none") == 0;
}

static bool is_random(const char *weights) {
    return weights && strncmp(weights, "random:", 7) == 0;
}

/* What an importer may take as a second file: neither ours nor a wish for random numbers. */
static bool is_foreign(const char *weights) {
    return weights && !is_none(weights) && !is_random(weights) && !ends_with(weights, ".cnr");
}

static cnr_status import(const cnr_importer *importer, const char *path,
                         const cnr_load_options *options, cnr_graph **out, cnr_error *err) {
    const char *paths[2] = {path, options->weights};
    cnr_import_args args = {.size = sizeof args, .paths = paths, .n_paths = 1};
    if (is_foreign(options->weights)) args.n_paths = 2;
    args.options = options->import_options;
    while (args.options && args.options[args.n_options]) args.n_options++;
    const char *slash = strrchr(path, '/');
    cnr_graph *g = cnri_graph_new(slash ? slash + 1 : path);
    if (!g) return no_memory(err);
    cnr_status status = importer->import(&args, g, err);
    if (g->problems.n || g->out_of_memory)
        status = cnri_graph_verdict(g, false, err); /* all that is wrong, not the last */
    else if (status && err && err->code != (int32_t)status) /* failed without a word */
        cnri_fail(err, status, path, "%s", cnr_status_text(status));
    if (status) cnri_graph_free(g);
    else *out = g;
    return status;
}

static cnr_status fill(cnr_graph *g, const char *weights, bool imported, cnr_error *err) {
    int64_t seed;
    if (!weights || is_none(weights) || (imported && is_foreign(weights))) return CNR_OK;
    if (!is_random(weights)) return cnri_store_fill(g, weights, err);
    if (!cnri_parse_int(weights + 7, &seed))
        return cnri_fail(err, CNR_E_ARG, weights, "want random:SEED with a whole number");
    return cnri_graph_fill_random(g, (uint64_t)seed, err);
}

cnr_status cnri_load_graph(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                           cnr_graph **out, cnr_error *err) {
    static const cnr_load_options defaults = {.size = sizeof defaults};
    uint8_t head[4096];
    size_t n = 0;
    struct stat info;
    if (!options) options = &defaults;
    *out = NULL;
    if (stat(path, &info) != 0) return cnri_fail(err, CNR_E_NOT_FOUND, path, "no such file");
    if (S_ISREG(info.st_mode)) {
        FILE *file = fopen(path, "rb");
        if (!file)
            return cnri_fail(err, CNR_E_IO, path, "can't be opened: %s", strerror(errno));
        n = fread(head, 1, sizeof head, file);
        fclose(file);
    }
    int32_t score = 0;
    const cnri_loader *loader = best_loader(path, head, n, &score);
    const cnr_importer *importer = best_importer(path, head, n, &score); /* if it is surer */
    if (!loader && !importer) return nobody(path, err);
    if (!importer && options->import_options && options->import_options[0])
        return cnri_fail(err, CNR_E_ARG, path, "takes no option \"%s\": no importer reads it",
                         options->import_options[0]);
    cnr_status status = importer ? import(importer, path, options, out, err)
                                 : loader->load(rt, path, options, out, err);
    if (!status) status = fill(*out, options->weights, importer != NULL, err);
    if (!status) status = cnri_graph_verdict(*out, false, err);
    if (status) {
        cnri_graph_free(*out);
        *out = NULL;
    }
    return status;
}
