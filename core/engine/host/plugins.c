/* Where plugins are searched for, in which order they load, and the list of all that were found. */
#define _GNU_SOURCE
#include "host/loader.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A plugin file that was found; device and inode tell whether it is the same file again. */
typedef struct entry {
    cnri_plugin plugin; /* first member: other files see only this */
    dev_t device;
    ino_t inode;
} entry;

static struct {
    pthread_mutex_t lock;
    CNRI_VEC(entry *) all;     /* in order of discovery; entries keep their address */
    CNRI_VEC(char *) searched; /* folders; a missing one is "PATH (not there)" */
    CNRI_VEC(char *) skipped;  /* names of plugins that this load skipped on request */
    const char *only;          /* (optional) loads plugins of this name alone, for now */
    const char *at_work;       /* path of the plugin being opened */
    bool first; /* true during the first load, when no other thread can have read the registry */
    const cnri_plugin_search *search; /* the search under way */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the list ---- */

/* The loaded plugin of that name; NULL: there is none. */
static const cnri_plugin *loaded_by_name(const char *name) {
    for (int32_t i = 0; i < seen.all.n; i++) {
        const cnri_plugin *p = &seen.all.at[i]->plugin;
        if (p->desc && strcmp(p->name, name) == 0) return p;
    }
    return NULL;
}

/* The entry of the same file, if it is loaded or was refused under this path; NULL: neither. */
static const cnri_plugin *seen_before(const struct stat *info, const char *path) {
    for (int32_t i = 0; i < seen.all.n; i++) {
        const entry *e = seen.all.at[i];
        if (e->device == info->st_dev && e->inode == info->st_ino &&
            (e->plugin.desc || strcmp(e->plugin.path, path) == 0))
            return &e->plugin;
    }
    return NULL;
}

/* File name without folder and ".so"; free it with cnri_free. */
static char *stem_of(const char *path) {
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const size_t n = strlen(name);
    const bool has_suffix = n > 3 && strcmp(name + n - 3, ".so") == 0;
    return cnri_format("%.*s", (int)(has_suffix ? n - 3 : n), name);
}

/* Frees an entry and its texts. */
static void free_entry(entry *e) {
    if (!e) return;
    cnri_free(e->plugin.path);
    cnri_free(e->plugin.name);
    cnri_free(e->plugin.version);
    cnri_free(e->plugin.refused);
    cnri_free(e->plugin.collisions);
    cnri_free(e);
}

/* An entry for a file, named after it until its description is read; NULL: out of memory. */
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

const char *cnri_plugin_being_opened(void) {
    return __atomic_load_n(&seen.at_work, __ATOMIC_ACQUIRE);
}

/* Runs at exit: reports a plugin that ended the process, which otherwise ends silently. */
static void tell_exit(void) {
    const char *path = cnri_plugin_being_opened();
    if (path)
        cnri_log(CNR_LOG_ERROR, path,
                 "ended the process while it was being opened: a plugin must "
                 "return an error instead");
}

/* True if the current search skips plugins of that name. */
static bool is_skipped(const char *name) {
    return seen.search && cnri_is_listed(seen.search->skip, name);
}

/* True if a plugin of that name, which its library tells, is not to be loaded now. */
static bool is_left_out(const char *name) {
    return is_skipped(name) || (seen.only && strcmp(name, seen.only) != 0);
}

/* Opens one plugin; while it does, its path is known to messages of crashes. True: it is loaded. */
static bool open_plugin(cnri_plugin *p, const struct stat *info, bool strict, bool *skipped) {
    static bool told_at_exit;
    if (!told_at_exit) told_at_exit = atexit(tell_exit) == 0;
    __atomic_store_n(&seen.at_work, p->path, __ATOMIC_RELEASE);
    const bool good = cnri_plugin_open(p, info, strict, loaded_by_name, is_left_out, skipped);
    if (seen.first) cnri_registry_settle();
    __atomic_store_n(&seen.at_work, NULL, __ATOMIC_RELEASE);
    return good;
}

/* ---- one file ---- */

/* How a plugin came to be opened: named by file, in a folder that the user chose, or installed. */
typedef enum trust { TRUST_NAMED, TRUST_CHOSEN, TRUST_INSTALLED } trust;

/* Fills err for a lack of memory. */
static cnr_status out_of_memory(cnr_error *err, const char *path) {
    return cnri_fail(err, CNR_E_MEMORY, path, "no memory for a plugin");
}

/* True if the name is among the plugins that are built with this cnnrun (CMakeLists.txt); only the
 * name is compared. */
static bool is_shipped(const char *name) {
    static const char all[] = "," CNRI_SHIPPED_PLUGINS ",";
    const char *at = strstr(all, name);
    for (; at; at = strstr(at + 1, name))
        if (*name && at > all && at[-1] == ',' && at[strlen(name)] == ',') return true;
    return false;
}

/* Sets the precedence. The plugin's own name must be the one that its file name gives. */
static void set_precedence(cnri_plugin *p, const char *stem) {
    const cnri_plugin_search *s = seen.search;
    if (s && (cnri_is_listed(s->order, stem) || cnri_is_listed(s->order, p->name)))
        p->precedence = CNRI_ORDERED;
    else if (is_shipped(stem) && strcmp(stem, p->name) == 0) p->precedence = CNRI_SHIPPED;
}

/* Loads a file; `path` is absolute and has no links. *out: the plugin; NULL: it is skipped. */
static cnr_status load_file(const char *path, trust how, const cnri_plugin **out, cnr_error *err) {
    struct stat info;
    bool skipped = false;
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
    char *stem = cnri_strdup(p->name);
    if (!stem) skipped = true;
    const bool good = stem && !(skipped = is_skipped(stem)) &&
                      open_plugin(p, &info, how == TRUST_INSTALLED, &skipped);
    if (stem && !skipped) set_precedence(p, stem);
    cnri_free(stem);
    if (skipped && seen.only) { /* its turn comes later */
        seen.all.n--;
        free_entry(e);
        return CNR_OK;
    }
    if (skipped) {
        cnri_log(CNR_LOG_INFO, p->name, "skipped, as asked: %s", path);
        char **name = cnri_push(&seen.skipped);
        if (name) *name = cnri_strdup(p->name);
        seen.all.n--;
        free_entry(e);
        return name && *name ? CNR_OK : out_of_memory(err, path);
    }
    if (!good) {
        /* A new attempt may succeed, because memory was out. */
        if (!p->refused || cnri_alloc_failures() != before) {
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

/* Loads a plugin named by its file; one that is refused is an error. */
static cnr_status load_named(const char *path, cnr_error *err) {
    const cnri_plugin *p;
    const cnr_status status = load_file(path, TRUST_NAMED, &p, err);
    if (status != CNR_OK || !p || p->desc) return status;
    return cnri_fail(err, CNR_E_VERSION, path, "refused: %s", p->refused);
}

/* Loads a plugin that is linked into the program; it must load, and only once. */
static cnr_status load_linked(cnr_plugin_query_fn query, cnr_error *err) {
    const struct stat none = {0};
    const cnr_plugin *d = query(CNR_ABI);
    bool skipped = false;
    for (int32_t i = 0; i < seen.all.n; i++)
        if (d && seen.all.at[i]->plugin.desc == d) return CNR_OK;
    entry **slot = cnri_push(&seen.all), *e = slot ? new_entry("(linked)", &none) : NULL;
    if (!e) {
        if (slot) seen.all.n--;
        return out_of_memory(err, "linked plugins");
    }
    *slot = e;
    const bool good = cnri_plugin_link(&e->plugin, d, loaded_by_name, is_skipped, &skipped);
    if (seen.first) cnri_registry_settle();
    if (good) set_precedence(&e->plugin, e->plugin.name);
    if (good) return CNR_OK;
    const cnr_status status = skipped             ? CNR_OK
                              : e->plugin.refused ? cnri_fail(err, CNR_E_VERSION, e->plugin.name,
                                                              "refused: %s", e->plugin.refused)
                                                  : out_of_memory(err, e->plugin.name);
    seen.all.n--;
    free_entry(e);
    return status;
}

/* ---- folders ---- */

/* True for a visible name that ends in ".so", for scandir. */
static int is_library(const struct dirent *e) {
    const size_t n = strlen(e->d_name);
    return e->d_name[0] != '.' && n > 3 && strcmp(e->d_name + n - 3, ".so") == 0;
}

/* Remembers a folder, which is there or not, for the message that no plugin was found. */
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

/* A file to load, with all that its place in the order depends on. */
typedef struct candidate {
    char *path; /* absolute and without links */
    trust how;
    bool home; /* in one of cnnrun's own folders */
} candidate;

typedef CNRI_VEC(candidate) candidates;

/* Appends a file to the list of those to open, with a copy of its path; home: it lies in one of
 * cnnrun's own folders. */
static cnr_status add_candidate(candidates *list, const char *path, trust how, bool home,
                                cnr_error *err) {
    candidate *slot = cnri_push(list);
    char *copy = slot ? cnri_strdup(path) : NULL;
    if (copy) *slot = (candidate){copy, how, home};
    else if (slot) list->n--;
    return copy ? CNR_OK : out_of_memory(err, path);
}

/* Adds all libraries of a folder (home: one of ours), by name; fails if it can't be read. */
static cnr_status add_folder(candidates *list, const char *directory, trust how, bool home,
                             cnr_error *err) {
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
        if (path && !real) cnri_log(CNR_LOG_WARN, path, "skipped: %s", strerror(errno));
        if (!path && !status) status = out_of_memory(err, directory);
        if (real && !status) status = add_candidate(list, real, how, home, err);
        free(real);
        cnri_free(path);
        free(names[i]);
    }
    free(names);
    return status;
}

/* Adds a folder or file that the user named: it must exist. */
static cnr_status add_given(candidates *list, const char *path, cnr_error *err) {
    struct stat info;
    char *real = realpath(path, NULL);
    if (!real || stat(real, &info) != 0) {
        free(real);
        return cnri_fail(err, CNR_E_NOT_FOUND, path, "no such plugin file or folder: %s",
                         strerror(errno));
    }
    const cnr_status status = S_ISDIR(info.st_mode)
                                  ? add_folder(list, real, TRUST_CHOSEN, false, err)
                                  : add_candidate(list, real, TRUST_NAMED, false, err);
    free(real);
    return status;
}

/* Adds the plugins of a folder (home: one of cnnrun's own), or notes that it was searched and isn't
 * there. */
static cnr_status add_if_there(candidates *list, const char *path, trust how, bool home,
                               cnr_error *err) {
    char *real = realpath(path, NULL);
    if (!real) {
        note_searched(path, false);
        return CNR_OK;
    }
    const cnr_status status = add_folder(list, real, how, home, err);
    free(real);
    return status;
}

/* Adds folders of the environment variable, unless the process has more rights than its user. */
static cnr_status add_environment(candidates *list, cnr_error *err) {
    const char *at = secure_getenv("CNNRUN_PLUGIN_PATH");
    cnr_status status = CNR_OK;
    while (at && *at && status == CNR_OK) {
        const size_t n = strcspn(at, ":");
        char *path = cnri_format("%.*s", (int)n, at);
        if (!path) return out_of_memory(err, "CNNRUN_PLUGIN_PATH");
        if (path[0] == '/') status = add_if_there(list, path, TRUST_CHOSEN, false, err);
        /* A relative path would depend on the current folder, where anyone may put files. */
        else if (n > 0)
            cnri_log(CNR_LOG_WARN, "CNNRUN_PLUGIN_PATH", "\"%s\" is skipped: want absolute paths",
                     path);
        cnri_free(path);
        at += n + (at[n] == ':');
    }
    return status;
}

/* Adds folder `from`, relative to `home`. home NULL: adds nothing. */
static cnr_status add_below(candidates *list, const char *home, const char *from, trust how,
                            cnr_error *err) {
    char *path = home ? cnri_path_join(home, from) : NULL;
    const cnr_status status = path   ? add_if_there(list, path, how, true, err)
                              : home ? out_of_memory(err, home)
                                     : CNR_OK;
    cnri_free(path);
    return status;
}

/* Appends the plugins of the built-in places: beside the program, beside the library, the
 * installed folder. */
static cnr_status add_defaults(candidates *list, cnr_error *err) {
    char *home = cnri_executable_dir(), *library = cnri_library_dir();
    const struct {
        const char *home, *path;
        trust how;
    } places[] = {{home, "plugins", TRUST_CHOSEN}, /* a build tree */
                  {home, "../lib/cnnrun/plugins", TRUST_INSTALLED},
                  {library, "plugins", TRUST_CHOSEN}, /* a build tree, a Python package */
                  {library, "cnnrun/plugins", TRUST_INSTALLED},
                  {"/", CNRI_INSTALLED_PLUGINS, TRUST_INSTALLED}};
    cnr_status status = add_environment(list, err);
    for (size_t i = 0; i < CNRI_COUNT(places) && status == CNR_OK; i++)
        status = add_below(list, places[i].home, places[i].path, places[i].how, err);
    cnri_free(home);
    cnri_free(library);
    return status;
}

/* ---- the order ---- */

/* Whether the file tells a plugin's name (CNR_PLUGIN writes it there). name NULL: any. */
static bool tells(const char *path, const char *name) {
    char *told = cnri_needs_name(path);
    const bool same = told && (!name || strcmp(told, name) == 0);
    cnri_free(told);
    return same;
}

/* Rank in the load order: plugins in `order` first, in that order; then those built with this
 * cnnrun, first from its own folders; then all others. -1: out of memory. */
static int32_t place_of(const candidate *c, const char *const *order, int32_t n_order) {
    char *stem = stem_of(c->path);
    if (!stem) return -1;
    const bool shipped = is_shipped(stem);
    int32_t place = 0;
    while (place < n_order && strcmp(order[place], stem) != 0 &&
           (shipped || !tells(c->path, order[place])))
        place++;
    if (place == n_order) place += shipped ? (c->home ? 0 : 1) : 2;
    cnri_free(stem);
    return place;
}

/* Loads the plugin of that name, which no file has or tells: among libraries of other makers that
 * tell none, which must be open for that. What is wrong with them is told when their turn comes. */
static cnr_status load_by_own_name(const candidates *list, const char *name, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < list->n && !status; i++) {
            const cnri_plugin *p;
            char *stem = stem_of(list->at[i].path);
            if (!stem) return out_of_memory(err, list->at[i].path);
            const bool shipped = is_shipped(stem), named = strcmp(stem, name) == 0;
            cnri_free(stem);
            if (named || (!shipped && tells(list->at[i].path, name))) return CNR_OK;
            if (pass == 0 || shipped || tells(list->at[i].path, NULL)) continue;
            seen.only = name;
            status = load_file(list->at[i].path, list->at[i].how, &p, err);
            seen.only = NULL;
            if (status != CNR_E_MEMORY) status = CNR_OK;
        }
    return status;
}

/* Opens all of the list, those that `order` names first. */
static cnr_status load_all(const candidates *list, const char *const *order, cnr_error *err) {
    int32_t n_order = 0;
    cnr_status status = CNR_OK;
    while (order && order[n_order]) n_order++;
    for (int32_t place = 0; place < n_order + 3; place++) {
        if (place < n_order && (status = load_by_own_name(list, order[place], err))) return status;
        for (int32_t i = 0; i < list->n; i++) {
            const candidate *c = &list->at[i];
            const int32_t at = place_of(c, order, n_order);
            const cnri_plugin *p;
            cnr_error one = CNR_ERROR_INIT;
            if (at != place && at >= 0) continue;
            cnr_status s = at < 0                  ? out_of_memory(&one, c->path)
                           : c->how == TRUST_NAMED ? load_named(c->path, &one)
                                                   : load_file(c->path, c->how, &p, &one);
            if (s && s != CNR_E_MEMORY && c->how != TRUST_NAMED) {
                cnri_log(CNR_LOG_WARN, one.where, "skipped: %s", one.text);
                s = CNR_OK;
            }
            if (s && !status && err) *err = one;
            if (s && !status) status = s;
            if (status && (at < 0 || c->how == TRUST_NAMED)) return status;
        }
    }
    return status;
}

/* Warns of a name in --plugin-order or similar that no plugin has; it may be a mistake, or for
 * another machine. */
static void warn_of_unknown(const candidates *list, const char *const *names, const char *option) {
    CNRI_VEC(const char *) known = {0};
    CNRI_VEC(char *) stems = {0};
    for (int32_t i = 0; names && *names && i < list->n; i++) {
        char *stem = stem_of(list->at[i].path), **slot = stem ? cnri_push(&stems) : NULL;
        if (slot) *slot = stem;
        else cnri_free(stem);
    }
    for (int32_t i = 0; i < seen.all.n; i++) {
        const char **slot = cnri_push(&known);
        if (slot) *slot = seen.all.at[i]->plugin.name;
    }
    for (int32_t i = 0; i < stems.n + seen.skipped.n; i++) {
        const char **slot = cnri_push(&known);
        if (slot) *slot = i < stems.n ? stems.at[i] : seen.skipped.at[i - stems.n];
    }
    for (; names && *names; names++) {
        if (CNRI_INDEX_OF(known.at, known.n, *names) >= 0) continue;
        const char *near = cnri_nearest_word(*names, known.at, known.n);
        cnri_log(CNR_LOG_WARN, option, "no plugin \"%s\" was found%s%s", *names,
                 near ? "; did you mean " : "", near ? near : "");
    }
    for (int32_t i = 0; i < stems.n; i++) cnri_free(stems.at[i]);
    cnri_vec_free(&stems);
    cnri_vec_free(&known);
}

/* ---- what other rooms call ---- */

cnr_status cnri_plugins_search(const cnri_plugin_search *search, cnr_error *err) {
    cnr_status status = CNR_OK;
    candidates list = {0};
    const int64_t before = cnri_alloc_failures();
    pthread_mutex_lock(&seen.lock);
    seen.first = cnri_registry_size() == 0;
    seen.search = search;
    for (const cnr_plugin_query_fn *query = search->linked; query && *query && !status; query++)
        status = load_linked(*query, err);
    for (const char *const *dir = search->dirs; dir && *dir && !status; dir++)
        status = add_given(&list, *dir, err);
    if (search->default_dirs && !status) status = add_defaults(&list, err);
    if (!status) status = load_all(&list, search->order, err);
    if (!status) warn_of_unknown(&list, search->order, "--plugin-order");
    if (!status) warn_of_unknown(&list, search->skip, "--skip-plugin");
    seen.search = NULL;
    for (int32_t i = 0; i < seen.skipped.n; i++) cnri_free(seen.skipped.at[i]);
    cnri_vec_free(&seen.skipped);
    pthread_mutex_unlock(&seen.lock);
    for (int32_t i = 0; i < list.n; i++) cnri_free(list.at[i].path);
    cnri_vec_free(&list);
    return cnri_alloc_verdict(before, status, "plugins", err);
}

cnr_status cnri_plugins_load(const char *const *dirs, bool default_dirs, cnr_error *err) {
    const cnri_plugin_search search = {.dirs = dirs, .default_dirs = default_dirs};
    return cnri_plugins_search(&search, err);
}

/* Appends why there are no plugins: which folders were searched, how many files were refused. */
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

cnr_status cnri_explain_missing_plugins(cnr_status status, cnr_error *err) {
    if (!status || status == CNR_E_MEMORY || !err || cnri_registry_size() > 0) return status;
    cnri_text places = {0};
    const cnr_error was = *err;
    none_text(&places);
    if (places.at && !places.failed)
        cnri_fail(err, status, was.where,
                  "there are no plugins (looked for in %s; CNNRUN_PLUGIN_PATH and the options of "
                  "cnr_open name more folders): %s",
                  places.at, was.text);
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

const char *cnri_plugins_searched(int32_t index) {
    pthread_mutex_lock(&seen.lock);
    const char *folder = index >= 0 && index < seen.searched.n ? seen.searched.at[index] : NULL;
    pthread_mutex_unlock(&seen.lock);
    return folder;
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
        if (d && CNRI_HAS(d, fini) && !cnri_devices_any_lost()) d->fini();
    }
    finished = true;
    pthread_mutex_unlock(&seen.lock);
}
