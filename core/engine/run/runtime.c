/* Runtimes: plugins, devices, and the front ends that turn files into graphs. */
#include "run/run.h"
#include "store/store.h"
#include <pthread.h>
#include <unistd.h>

/* ---- loaders: part of the registry, filled before or by cnr_open ---- */

enum { MAX_LOADERS = 16 };
static struct {
    pthread_mutex_t lock;
    const cnri_loader *at[MAX_LOADERS];
    int32_t n;
} loaders = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cnri_loader_add(const cnri_loader *loader) {
    bool known = false;
    pthread_mutex_lock(&loaders.lock);
    for (int32_t i = 0; i < loaders.n; i++) known = known || loaders.at[i] == loader;
    if (!known && loaders.n < MAX_LOADERS) loaders.at[loaders.n++] = loader;
    pthread_mutex_unlock(&loaders.lock);
}

/* Score for our own files, 100 by name or head, else 0; the native reader reports itself what is
 * wrong with a file. */
static int32_t native_accepts(const char *path, const uint8_t *head, size_t head_bytes) {
    const char *dot = strrchr(path, '.');
    const bool compiled = dot && strcmp(dot, CNRI_COMPILED_SUFFIX) == 0;
    return compiled || cnri_is_native(path) || cnri_cached_begins(head, head_bytes) ? 100 : 0;
}

/* Loads a native file as a graph, and its weights from options->weights; checks digests unless
 * no_verify. */
static cnr_status native_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                              cnr_graph **out, cnr_error *err) {
    (void)rt;
    const cnr_status status = cnri_store_read(path, !options->no_verify, out, err);
    return status ? status
                  : cnri_weights_fill(*out, options->weights, options->import_options, err);
}

static const cnri_loader native = {".cnr", native_accepts, native_load};

/* Runs once in a process: the host table is constant from the first runtime on. */
static void complete_core(void) {
    cnri_graph_install(cnri_host_mutable());
    cnri_loader_add(&native);
}

/* ---- services of libraries above the engine ---- */

static const cnri_services *registered;

void cnri_services_register(const cnri_services *services) {
    const cnri_services *none = NULL;
    if (__atomic_compare_exchange_n(&registered, &none, services, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        cnri_loader_add(services->loader);
}

static bool can_script(void) { return __atomic_load_n(&registered, __ATOMIC_ACQUIRE) != NULL; }

static const char scripts_need[] =
    "; the engine alone runs no Lua script: cnnrun does, and \"cnnrun convert NET.lua -o NET.cnr\" "
    "makes a file that needs none";

/* The registered services; NULL: the engine is alone, err says so for `what`. */
static const cnri_services *services_for(const char *what, cnr_error *err) {
    const cnri_services *services = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    if (!services)
        cnri_fail(err, CNR_E_UNSUPPORTED, what,
                  "is a script, and the engine alone runs none; link libcnnrun instead");
    return services;
}

cnr_status cnri_board_read(const char *spec, bool scene, cnri_board **out, cnr_error *err) {
    const cnri_services *services = services_for(spec, err);
    *out = NULL;
    return services ? services->board_read(spec, scene, out, err) : CNR_E_UNSUPPORTED;
}

cnr_status cnri_policy_open(const char *name, const char *text, const char *const *options,
                            cnri_policy **out, cnr_error *err) {
    const cnri_services *services = services_for(name, err);
    *out = NULL;
    return services ? services->policy_open(name, text, options, out, err) : CNR_E_UNSUPPORTED;
}

bool cnri_can_adapt(void) { return __atomic_load_n(&registered, __ATOMIC_ACQUIRE) != NULL; }

cnr_status cnri_adapt_begin(cnr_model *m, cnr_error *err) {
    const cnri_services *services = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    if (services) return services->adapt(m, 1, err);
    return cnri_fail(err, CNR_E_UNSUPPORTED, "adapt",
                     "the engine alone measures nothing; link libcnnrun instead");
}

/* ---- open and close ---- */

/* Puts the clock of that name in force; NULL: leaves the real one. CNR_E_NOT_FOUND: no such
 * clock. */
static cnr_status choose_clock(cnr_runtime *rt, const char *name, cnr_error *err) {
    if (!name) return CNR_OK;
    const cnr_clock *clock = cnri_descriptor_find(CNR_KIND_CLOCK, name);
    if (!clock) {
        const char *names[64];
        int32_t n = 0;
        for (; n < 64 && n < cnri_descriptor_count(CNR_KIND_CLOCK); n++)
            names[n] = cnri_item_name(CNR_KIND_CLOCK, cnri_descriptor_at(CNR_KIND_CLOCK, n));
        const char *near = cnri_nearest_word(name, names, n);
        return cnri_fail(err, CNR_E_NOT_FOUND, name, "no plugin brought a clock of that name%s%s",
                         near ? "; did you mean " : "", near ? near : "");
    }
    rt->clock = (cnri_clock){clock->now_ns, clock->wait_until, clock};
    cnri_clock_use(&rt->clock);
    return CNR_OK;
}

/* Keeps a copy of a text (NULL: none) in *to. */
static cnr_status keep_text(char **to, const char *text, cnr_error *err) {
    if (text) *to = cnri_strdup(text);
    return text && !*to ? cnri_out_of_memory(err, "cnnrun") : CNR_OK;
}

/* Reads a board file and puts the board in force. */
static cnr_status choose_board(cnr_runtime *rt, const char *spec, cnr_error *err) {
    const cnr_status status = cnri_board_read(spec, false, &rt->board, err);
    if (!status) cnri_board_use(rt->board);
    return status;
}

/* Name of the clock that the board asks for (simulated machines have their own); NULL: none. */
static const char *board_clock(const cnr_runtime *rt) {
    return rt->board ? cnri_board_text("clock") : NULL;
}

/* Opens a runtime in *out without what libraries above the engine add to cnr_open. */
cnr_status cnri_runtime_open(cnr_runtime **out, const cnr_open_options *options, cnr_error *err) {
    const cnr_status missing = cnri_require_arguments(err, "out", out, NULL);
    if (missing) return missing;
    *out = NULL;
    cnr_open_options given = {.size = sizeof given, .log_level = CNR_LOG_WARN};
    if (options) { /* the struct of an older caller is shorter */
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
        return cnri_out_of_memory(err, "cnnrun");
    }
    pthread_mutex_init(lock, NULL);
    rt->lock = lock;
    rt->options = given;
    rt->options.plugin_dirs = NULL; /* the caller's lists are valid only during this call */
    rt->pid = getpid();
    cnri_host_cpu_isa(given.cpu_isa);
    rt->options.cpu_isa = NULL;
    const cnri_plugin_search search = {given.plugin_dirs, !given.no_default_dirs,
                                       given.plugin_order, given.skip_plugins,
                                       given.linked_plugins};
    rt->options.plugin_order = rt->options.skip_plugins = NULL;
    rt->options.linked_plugins = NULL;
    const int32_t known = cnri_plugin_count();
    cnr_status status = cnri_plugins_search(&search, err);
    if (!status) cnri_plugins_warn(known);
    cnri_devices_init(&rt->devices, given.threads);
    if (!status && given.board) status = choose_board(rt, given.board, err);
    if (!status) status = choose_clock(rt, given.clock ? given.clock : board_clock(rt), err);
    rt->options.clock = rt->options.board = NULL;
    if (!status) status = keep_text(&rt->sysfs_root, given.sysfs_root, err);
    if (!status) status = keep_text(&rt->meter_address, given.meter_address, err);
    rt->options.sysfs_root = rt->options.meter_address = NULL;
    if (!status) status = cnri_devices_keep(&rt->devices, given.cache, err);
    rt->options.cache = NULL; /* the set has its own */
    if (status) cnri_runtime_free(rt);
    else *out = rt;
    return status;
}

void cnri_runtime_free(cnr_runtime *rt) {
    if (rt->sampler.at) rt->sampler.close(rt->sampler.at);
    cnri_vec_free(&rt->models);
    cnri_devices_close(&rt->devices);
    cnri_hang_finish();
    cnri_clock_leave(&rt->clock);
    cnri_free(rt->sysfs_root);
    cnri_free(rt->meter_address);
    cnri_board_leave(rt->board);
    cnri_board_free(rt->board);
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

/* The loader that accepts a file with a score above *score, the highest, which *score becomes;
 * NULL: none does. */
static const cnri_loader *best_loader(const char *path, const cnri_head *head, int32_t *score) {
    const cnri_loader *best = NULL;
    pthread_mutex_lock(&loaders.lock);
    for (int32_t i = 0; i < loaders.n; i++) {
        const int32_t s = loaders.at[i]->accepts(path, head->at, head->n);
        if (s > *score) {
            *score = s;
            best = loaders.at[i];
        }
    }
    pthread_mutex_unlock(&loaders.lock);
    return best;
}

int32_t cnri_load_score(const char *path) {
    cnri_head head;
    int32_t score = 0;
    if (cnri_file_head(path, &head, NULL) != CNR_OK) return 0;
    best_loader(path, &head, &score);
    cnri_importer_for(path, &head, &score);
    return score;
}

/* Fails with CNR_E_UNSUPPORTED: nothing reads the file; the message lists the known formats. */
static cnr_status no_loader(const char *path, cnr_error *err) {
    cnri_text known = {0};
    for (int32_t i = 0; i < loaders.n; i++)
        cnri_text_add(&known, "%s%s", known.n ? ", " : "", loaders.at[i]->name);
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_IMPORTER); i++)
        cnri_text_add(&known, "%s%s", known.n ? ", " : "",
                      cnri_item_name(CNR_KIND_IMPORTER, cnri_descriptor_at(CNR_KIND_IMPORTER, i)));
    const cnr_status status =
        cnri_fail(err, CNR_E_UNSUPPORTED, path,
                  "is in no format that is known here: want one of %s%s",
                  known.at && known.n ? known.at : "none", can_script() ? "" : scripts_need);
    cnri_text_free(&known);
    return status;
}

/* Imports a graph. Files of weights go to the importer, unless the first is native. */
static cnr_status import(const cnr_importer *importer, const char *path,
                         const cnr_load_options *options, cnr_graph **out, cnr_error *err) {
    const char *weights = options->weights;
    cnri_paths paths = {0};
    char **first = cnri_push(&paths);
    if (first) *first = cnri_strdup(path);
    cnr_status status = first && *first ? CNR_OK : cnri_out_of_memory(err, "cnnrun");
    const bool both = weights && cnri_weights_are_file(weights) && !cnri_is_native(weights);
    if (!status && both) status = cnri_paths_add(&paths, weights, err);
    const cnr_import_args args = {.size = sizeof args,
                                  .paths = (const char *const *)paths.at,
                                  .n_paths = paths.n,
                                  .options = options->import_options,
                                  .n_options = cnri_count_options(options->import_options)};
    if (!status) status = cnri_import(importer, &args, options->memory_bound > 0, out, err);
    cnri_paths_free(&paths);
    if (status || both || !weights) return status;
    (*out)->no_verify = options->no_verify;
    return cnri_weights_fill(*out, weights, NULL, err);
}

/* Fails unless each word names a rewrite or a step of planning. */
static cnr_status check_rewrites(const char *const *words, cnr_error *err) {
    CNRI_VEC(const char *) names = {0};
    const char *name, *summary, **slot;
    if (!words) return CNR_OK;
    for (int32_t i = 0; cnri_rewrite_at(i, &name, &summary); i++)
        if ((slot = cnri_push(&names)) != NULL) *slot = name;
    for (const char *const *step = cnri_plan_steps; *step; step++)
        if ((slot = cnri_push(&names)) != NULL) *slot = *step;
    if ((slot = cnri_push(&names)) != NULL) *slot = "all";
    cnr_status status = CNR_OK;
    for (; *words && !status; words++) {
        int32_t k = 0;
        while (k < names.n && strcmp(names.at[k], *words) != 0) k++;
        if (k < names.n) continue;
        cnri_text all = {0};
        for (k = 0; k < names.n; k++) cnri_text_add(&all, "%s%s", k ? ", " : "", names.at[k]);
        status = cnri_fail(err, CNR_E_NOT_FOUND, "no_rewrite", "no rewrite \"%s\"; there are: %s",
                           *words, all.at ? all.at : "");
        cnri_text_free(&all);
    }
    cnri_vec_free(&names);
    return status;
}

/* Loads a file into *out by the loader that fits it best; fails where none does. */
static cnr_status load_file(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                            cnr_graph **out, cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    cnri_head head;
    int32_t score = 0;
    const bool begun = rt && rt->begun.loader && strcmp(rt->begun.path, path) == 0;
    cnr_status status = check_rewrites(options->no_rewrite, err);
    if (!status && !begun) status = cnri_file_head(path, &head, err);
    if (status) return cnri_alloc_verdict(before, status, path, err);
    const cnri_loader *loader = begun ? rt->begun.loader : best_loader(path, &head, &score);
    const cnr_importer *importer =
        begun ? NULL : cnri_importer_for(path, &head, &score); /* if its score is higher */
    if (!loader && !importer) return cnri_explain_missing_plugins(no_loader(path, err), err);
    status = importer ? import(importer, path, options, out, err)
                      : loader->load(rt, path, options, out, err);
    status = cnri_alloc_verdict(before, status, path, err);
    if (!status) status = cnri_graph_status(*out, false, err);
    if (!status && options->labels) status = cnri_labels_read(*out, options->labels, err);
    if (status) {
        cnri_graph_free(*out);
        *out = NULL;
    }
    return cnri_explain_missing_plugins(status, err);
}

/* Loads a graph into *out without making a model (for show, convert, check). "net.prototxt,a.bin":
 * the net, and files of weights. */
cnr_status cnri_load_graph(cnr_runtime *rt, const char *word, const cnr_load_options *options,
                           cnr_graph **out, cnr_error *err) {
    cnr_load_options o = {.size = sizeof o};
    cnri_paths paths = {0};
    *out = NULL;
    if (options) o = *options;
    cnr_status status = cnri_paths_add(&paths, word, err);
    const char *weights = paths.n > 1 ? word + strlen(paths.at[0]) + 1 : NULL;
    if (!status && weights && o.weights)
        status = cnri_fail(err, CNR_E_ARG, word,
                           "has weights behind a comma, and others are given: %s", o.weights);
    if (weights) o.weights = weights;
    if (!status) status = load_file(rt, paths.at[0], &o, out, err);
    cnri_paths_free(&paths);
    return status;
}
