/* Where plugins are searched for, which of several wins, and the list of all that were seen. */
#define _GNU_SOURCE
#include "core/host/loader.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    cnri_plugin plugin; /* first: what others see of it */
    dev_t device;
    ino_t inode;
} entry;

static struct {
    pthread_mutex_t lock;
    CNRI_VEC(entry *) all; /* in order of discovery; entries stay where they are */
    CNRI_VEC(char *) searched; /* folders, "PATH (not there)" among them */
    const char *at_work;   /* the path that is being opened */
    bool first; /* this load is: before it nobody had anything of the registry */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the list ---- */

static const cnri_plugin *loaded_by_name(const char *name) {
    for (int32_t i = 0; i < seen.all.n; i++) {
        const cnri_plugin *p = &seen.all.at[i]->plugin;
        if (p->desc && strcmp(p->name, name) == 0) return p;
    }
    return NULL;
}

/* The same file, if it is loaded, or was refused under this very path. */
static const cnri_plugin *seen_before(const struct stat *info, const char *path) {
    for (int32_t i = 0; i < seen.all.n; i++) {
        const entry *e = seen.all.at[i];
        if (e->device == info->st_dev && e->inode == info->st_ino &&
            (e->plugin.desc || strcmp(e->plugin.path, path) == 0))
            return &e->plugin;
    }
    return NULL;
}

static char *stem_of(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const size_t n = strlen(name);
    const bool so = n > 3 && strcmp(name + n - 3, ".so") == 0;
    return cnri_format("%.*s", (int)(so ? n - 3 : n), name);
}

static void free_entry(entry *e) {
    if (!e) return;
    cnri_free(e->plugin.path);
    cnri_free(e->plugin.name);
    cnri_free(e->plugin.version);
    cnri_free(e->plugin.refused);
    cnri_free(e);
}

static entry *new_entry(const char *path, const struct stat *info) {
    entry *e = cnri_alloc_zero(sizeof *e);
    if (!e) return NULL;
    e->device = info->st_dev;
    e->inode = info->st_ino;
    e->plugin.path = cnri_strdup(path);
    e->plugin.name = stem_of(path);
    e->plugin.version = cnri_strdup("");
    if (e->plugin.path && e->plugin.name && e->plugin.version) return e;
    free_entry(e);
    return NULL;
}

/* ---- while a plugin's own code runs for the first time ---- */

const char *cnri_plugin_at_work(void) {
    return __atomic_load_n(&seen.at_work, __ATOMIC_ACQUIRE);
}

/* At exit: a plugin that ends the process ends it without a word. */
static void tell_exit(void) {
    const char *path = cnri_plugin_at_work();
    if (path)
        cnri_log(CNR_LOG_ERROR, path, "ended the process while it was being opened: a plugin must "
                                      "return an error instead");
}

static bool open_plugin(cnri_plugin *p, const struct stat *info, bool strict) {
    static bool told_at_exit;
    if (!told_at_exit) told_at_exit = atexit(tell_exit) == 0;
    __atomic_store_n(&seen.at_work, p->path, __ATOMIC_RELEASE);
    const bool good = cnri_plugin_open(p, info, strict, loaded_by_name);
    if (seen.first) cnri_registry_settle();
    __atomic_store_n(&seen.at_work, NULL, __ATOMIC_RELEASE);
    return good;
}

/* ---- one file ---- */

typedef enum trust { TRUST_NAMED, TRUST_CHOSEN, TRUST_INSTALLED } trust;

static cnr_status out_of_memory(cnr_error *err, const char *path) {
    return cnri_fail(err, CNR_E_MEMORY, path, "no memory for a plugin");
}

/* `path` is absolute and real. *out: what is known of the plugin now. */
static cnr_status load_file(const char *path, trust how, const cnri_plugin **out, cnr_error *err) {
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return cnri_fail(err, CNR_E_NOT_FOUND, path, "is not a file");
    *out = seen_before(&info, path);
    if (*out) {
        if (strcmp((*out)->path, path) != 0)
            cnri_log(CNR_LOG_INFO, path, "skipped: the same file as %s", (*out)->path);
        return CNR_OK;
    }
    const int64_t before = cnri_alloc_failures();
    entry **slot = cnri_push(&seen.all);
    entry *e = slot ? new_entry(path, &info) : NULL;
    if (!e) {
        if (slot) seen.all.n--;
        return out_of_memory(err, path);
    }
    *slot = e;
    cnri_plugin *p = &e->plugin;
    if (!open_plugin(p, &info, how == TRUST_INSTALLED)) {
        if (!p->refused || cnri_alloc_failures() != before) { /* another try may do better */
            seen.all.n--;
            free_entry(e);
            return out_of_memory(err, path);
        }
        const bool twice = loaded_by_name(p->name) != NULL;
        if (how != TRUST_NAMED)
            cnri_log(twice ? CNR_LOG_INFO : CNR_LOG_WARN, path, "skipped: %s", p->refused);
    } else cnri_log(CNR_LOG_DEBUG, p->name, "loaded from %s", path);
    *out = p;
    return CNR_OK;
}

static cnr_status load_named(const char *path, cnr_error *err) {
    const cnri_plugin *p;
    const cnr_status status = load_file(path, TRUST_NAMED, &p, err);
    if (status != CNR_OK || p->desc) return status;
    return cnri_fail(err, CNR_E_VERSION, path, "refused: %s", p->refused);
}

/* ---- folders ---- */

static int is_library(const struct dirent *e) {
    const size_t n = strlen(e->d_name);
    return e->d_name[0] != '.' && n > 3 && strcmp(e->d_name + n - 3, ".so") == 0;
}

/* Kept for whoever finds nothing. */
static void note_searched(const char *path, bool there) {
    char *text = cnri_format("%s%s", path, there ? "" : " (not there)");
    for (int32_t i = 0; text && i < seen.searched.n; i++)
        if (strcmp(seen.searched.at[i], text) == 0) {
            cnri_free(text);
            return;
        }
    char **slot = text ? cnri_push(&seen.searched) : NULL;
    if (slot) *slot = text;
    else cnri_free(text);
}

/* All libraries of a folder in the order of their names. */
static cnr_status load_folder(const char *directory, trust how, cnr_error *err) {
    struct dirent **names = NULL;
    cnr_status status = CNR_OK;
    note_searched(directory, true);
    const int n = scandir(directory, &names, is_library, alphasort);
    if (n < 0)
        return cnri_fail(err, CNR_E_IO, directory, "can't be searched for plugins: %s",
                         strerror(errno));
    for (int i = 0; i < n; i++) {
        char *path = cnri_path_join(directory, names[i]->d_name);
        char *real = path ? realpath(path, NULL) : NULL;
        const cnri_plugin *p;
        cnr_error one = CNR_ERROR_INIT;
        cnr_status s = path ? CNR_OK : out_of_memory(&one, directory);
        if (s == CNR_OK) s = real ? load_file(real, how, &p, &one)
                                  : cnri_fail(&one, CNR_E_NOT_FOUND, path, "%s", strerror(errno));
        if (s == CNR_E_MEMORY && status == CNR_OK) {
            status = s;
            if (err) *err = one;
        } else if (s != CNR_OK) cnri_log(CNR_LOG_WARN, one.where, "skipped: %s", one.text);
        free(real);
        cnri_free(path);
        free(names[i]);
    }
    free(names);
    return status;
}

/* A folder or file that someone named: it must be there. */
static cnr_status load_given(const char *path, cnr_error *err) {
    struct stat info;
    char *real = realpath(path, NULL);
    if (!real || stat(real, &info) != 0) {
        free(real);
        return cnri_fail(err, CNR_E_NOT_FOUND, path, "no such folder of plugins: %s",
                         strerror(errno));
    }
    const cnr_status status = S_ISDIR(info.st_mode) ? load_folder(real, TRUST_CHOSEN, err)
                                                    : load_named(real, err);
    free(real);
    return status;
}

/* A folder that need not be there. */
static cnr_status load_if_there(const char *path, trust how, cnr_error *err) {
    char *real = realpath(path, NULL);
    if (!real) {
        note_searched(path, false);
        return CNR_OK;
    }
    const cnr_status status = load_folder(real, how, err);
    free(real);
    return status;
}

/* The environment's folders, unless we run with more rights than whoever set it. */
static cnr_status load_environment(cnr_error *err) {
    const char *at = secure_getenv("CNNRUN_PLUGIN_PATH");
    cnr_status status = CNR_OK;
    while (at && *at && status == CNR_OK) {
        const size_t n = strcspn(at, ":");
        char *path = cnri_format("%.*s", (int)n, at);
        if (!path) return out_of_memory(err, "CNNRUN_PLUGIN_PATH");
        if (path[0] == '/') status = load_if_there(path, TRUST_CHOSEN, err);
        else if (n > 0) /* it would depend on the current folder, where anyone may have put files */
            cnri_log(CNR_LOG_WARN, "CNNRUN_PLUGIN_PATH", "\"%s\" is skipped: want absolute paths",
                     path);
        cnri_free(path);
        at += n + (at[n] == ':');
    }
    return status;
}

static cnr_status load_defaults(cnr_error *err) {
    static const struct { const char *path; trust how; } places[] = {
        {"plugins", TRUST_CHOSEN}, /* a build tree */
        {"../lib/cnnrun/plugins", TRUST_INSTALLED},
        {CNRI_INSTALLED_PLUGINS, TRUST_INSTALLED}};
    char *home = cnri_executable_dir();
    cnr_status status = load_environment(err);
    for (size_t i = 0; i < CNRI_COUNT(places) && status == CNR_OK; i++) {
        if (places[i].path[0] != '/' && !home) continue;
        char *path = cnri_path_join(home, places[i].path);
        status = path ? load_if_there(path, places[i].how, err) : out_of_memory(err, home);
        cnri_free(path);
    }
    cnri_free(home);
    return status;
}

/* ---- what other rooms call ---- */

cnr_status cnri_plugins_load(const char *const *dirs, bool default_dirs, cnr_error *err) {
    cnr_status status = CNR_OK;
    const int64_t before = cnri_alloc_failures();
    pthread_mutex_lock(&seen.lock);
    seen.first = cnri_registry_size() == 0;
    for (; dirs && *dirs && status == CNR_OK; dirs++) status = load_given(*dirs, err);
    if (default_dirs && status == CNR_OK) status = load_defaults(err);
    pthread_mutex_unlock(&seen.lock);
    return cnri_alloc_verdict(before, status, "plugins", err);
}

static void none_text(cnri_text *out) {
    int32_t refused = 0;
    pthread_mutex_lock(&seen.lock);
    for (int32_t i = 0; i < seen.searched.n; i++)
        cnri_text_add(out, "%s%s", i ? ", " : "", seen.searched.at[i]);
    for (int32_t i = 0; i < seen.all.n; i++) refused += seen.all.at[i]->plugin.refused != NULL;
    pthread_mutex_unlock(&seen.lock);
    if (!out->at || !*out->at) cnri_text_add(out, "no folder");
    if (refused) cnri_text_add(out, "; %d refused", (int)refused);
}

cnr_status cnri_plugins_missed(cnr_status status, cnr_error *err) {
    if (!status || status == CNR_E_MEMORY || !err || cnri_registry_size() > 0) return status;
    cnri_text places = {0};
    const cnr_error was = *err;
    none_text(&places);
    if (places.at && !places.failed)
        cnri_fail(err, status, was.where,
                  "there are no plugins (looked for in %s; CNNRUN_PLUGIN_PATH and the options of "
                  "cnr_open name more folders): %s", places.at, was.text);
    cnri_text_free(&places);
    return status;
}

char *cnri_plugin_check(const char *path) {
    cnr_error err = CNR_ERROR_INIT;
    const cnri_plugin *p = NULL;
    char *real = realpath(path, NULL);
    if (!real) return cnri_format("can't be found: %s", strerror(errno));
    pthread_mutex_lock(&seen.lock);
    const cnr_status status = load_file(real, TRUST_NAMED, &p, &err);
    pthread_mutex_unlock(&seen.lock);
    free(real);
    if (status != CNR_OK) return cnri_strdup(err.text);
    return p->desc ? NULL : cnri_strdup(p->refused);
}

int32_t cnri_plugin_count(void) {
    pthread_mutex_lock(&seen.lock);
    const int32_t n = seen.all.n;
    pthread_mutex_unlock(&seen.lock);
    return n;
}

const cnri_plugin *cnri_plugin_at(int32_t index) {
    const cnri_plugin *p = NULL;
    pthread_mutex_lock(&seen.lock);
    if (index >= 0 && index < seen.all.n) p = &seen.all.at[index]->plugin;
    pthread_mutex_unlock(&seen.lock);
    return p;
}

bool cnri_plugin_item(int32_t index, int32_t item, int32_t *kind, const char **name) {
    const cnri_plugin *p = cnri_plugin_at(index);
    cnri_item it;
    if (!p || item < 0 || item >= p->n_items) return false;
    if (!cnri_registry_item(p->first + item, &it)) return false;
    *kind = it.kind;
    *name = cnri_item_name(it.kind, it.descriptor);
    return true;
}

void cnri_plugins_finish(void) {
    static bool finished;
    pthread_mutex_lock(&seen.lock);
    for (int32_t i = seen.all.n; i-- > 0 && !finished;) {
        const cnr_plugin *d = seen.all.at[i]->plugin.desc;
        if (d && CNRI_HAS(d, fini)) d->fini();
    }
    finished = true;
    pthread_mutex_unlock(&seen.lock);
}
