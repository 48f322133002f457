/* Opens one plugin: checks the file and its description, and lets it register. */
#include "host/loader.h"
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Records why the plugin is refused. Returns false, so that callers can return it. */
CNRI_PRINTF(2, 3) static bool refuse(cnri_plugin *p, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cnri_free(p->refused);
    p->refused = cnri_strdup(text);
    return false;
}

/* ---- the file ---- */

/* Why a plugin's file or folder can't be trusted; NULL: it can. */
static const char *weakness(const struct stat *info) {
    if (info->st_mode & S_IWOTH) return "can be written by anyone";
    if (info->st_uid != 0 && info->st_uid != geteuid()) return "belongs to another user";
    return NULL;
}

/* False, with p->refused: others can change the file, and nobody chose its folder (strict), or the
 * process has more rights than its user. Elsewhere it only warns. */
static bool file_is_trusted(cnri_plugin *p, const struct stat *file, bool strict) {
    struct stat folder;
    char *path = cnri_path_dir(p->path);
    if (!path) return false;
    const char *why = weakness(file), *what = "the file";
    if (!why && stat(path, &folder) == 0) {
        why = weakness(&folder);
        what = "its folder";
    }
    cnri_free(path);
    if (!why) return true;
    if (strict || getauxval(AT_SECURE)) return refuse(p, "%s %s", what, why);
    cnri_log(CNR_LOG_WARN, p->path, "%s %s", what, why);
    return true;
}

/* True if the plugin's file fits this machine; otherwise notes why it is refused. */
static bool needs_are_met(cnri_plugin *p) {
    bool failed = false;
    char *why = cnri_needs_unmet(p->path, &failed);
    if (failed) return false;
    if (!why) return true;
    cnri_free(p->refused);
    p->refused = why;
    return false;
}

/* ---- second modules ---- */

/* Opens a plugin's second module. NULL, or why it can't be opened, for cnri_free. */
static char *module_fault(const char *path) {
    struct stat file;
    const char *why = stat(path, &file) == 0 ? weakness(&file) : NULL;
    if (why) return cnri_format("%s: the file %s", path, why);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL) ? NULL : cnri_strdup(dlerror());
}

/* True for a name that ends in ".so", for scandir. */
static int is_module(const struct dirent *e) {
    const size_t n = strlen(e->d_name);
    return n > 3 && strcmp(e->d_name + n - 3, ".so") == 0;
}

char *cnri_plugin_lacks(const cnri_plugin *p) {
    struct dirent **names = NULL;
    char *why = NULL, *folder = cnri_format("%.*s", (int)strlen(p->path) - 3, p->path);
    const int n = folder && p->desc ? scandir(folder, &names, is_module, alphasort) : -1;
    for (int i = 0; i < n; i++) {
        char *path = why ? NULL : cnri_path_join(folder, names[i]->d_name);
        if (path) why = module_fault(path);
        cnri_free(path);
        free(names[i]);
    }
    free(names);
    cnri_free(folder);
    return why;
}

/* ---- what it says of itself ---- */

/* Byte order that a plugin's signature names. */
static const char *order_name(uint32_t signature) {
    const uint32_t order = signature >> 24;
    return order == 1 ? "little-endian" : order == 2 ? "big-endian" : "unknown";
}

/* Compares the ABI signature; false, with p->refused naming the part that differs. */
static bool signature_fits(cnri_plugin *p, uint32_t got) {
    static const char *const parts[] = {"pointers", "size_t", "long"};
    const uint32_t want = CNR_SIGNATURE;
    for (int i = 0; i < 3; i++) {
        const unsigned g = got >> 8 * i & 0xff, w = want >> 8 * i & 0xff;
        if (g != w)
            return refuse(p, "built with %s of %u bytes, want %u (signature %08x, want %08x)",
                          parts[i], g, w, (unsigned)got, (unsigned)want);
    }
    if (got >> 24 != want >> 24)
        return refuse(p, "built for %s byte order, want %s (signature %08x, want %08x)",
                      order_name(got), order_name(want), (unsigned)got, (unsigned)want);
    return true;
}

/* True if a plugin of ABI `got` (major << 16 | minor) can run here; otherwise refuses it. */
static bool abi_fits(cnri_plugin *p, uint32_t got) {
    const unsigned major = got >> 16, minor = got & 0xffff;
    if (major != CNR_ABI_MAJOR)
        return refuse(p,
                      "built for ABI %u.%u, this host has %u.%u: build it again with this host's "
                      "headers, after the list of changes in core/docs/abi.md",
                      major, minor, CNR_ABI_MAJOR, CNR_ABI_MINOR);
    if (minor > CNR_ABI_MINOR)
        return refuse(p,
                      "wants ABI %u.%u, this host has %u.%u: build it with a lower "
                      "CNR_ABI_WANTED, or use a newer host",
                      major, minor, CNR_ABI_MAJOR, CNR_ABI_MINOR);
    return true;
}

/* True if a plugin's description is sound; otherwise refuses it. */
static bool description_fits(cnri_plugin *p, const cnr_plugin *d) {
    if (!d) return refuse(p, "declines this host (ABI %d.%d)", CNR_ABI_MAJOR, CNR_ABI_MINOR);
    if (d->magic != CNR_PLUGIN_MAGIC)
        return refuse(p, "wrong magic %08x, want %08x: not a plugin of this program",
                      (unsigned)d->magic, CNR_PLUGIN_MAGIC);
    const uint32_t minimum = (uint32_t)offsetof(cnr_plugin, fini);
    if (d->size < minimum)
        return refuse(p, "its description has %u bytes, want %u or more", (unsigned)d->size,
                      (unsigned)minimum);
    if (!signature_fits(p, d->signature) || !abi_fits(p, d->abi)) return false;
    if (!d->name || !*d->name) return refuse(p, "has no name");
    if (!d->init) return refuse(p, "has no init");
    return true;
}

/* Opens a plugin and asks for its description; NULL: refused. */
static const cnr_plugin *query(cnri_plugin *p) {
    /* The library is never closed: some vendors' libraries that plugins load crash if they are. */
    void *library = dlopen(p->path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        refuse(p, "can't be opened: %s", dlerror());
        return NULL;
    }
    void *symbol = dlsym(library, "cnr_plugin_query");
    if (!symbol) {
        refuse(p, "does not export cnr_plugin_query");
        return NULL;
    }
    cnr_plugin_query_fn ask;
    memcpy(&ask, &symbol, sizeof ask); /* ISO C has no cast from an object to a function */
    const cnr_plugin *d = ask(CNR_ABI);
    return description_fits(p, d) ? d : NULL;
}

/* Copies name and version from the description. False: out of memory. */
static bool take_names(cnri_plugin *p, const cnr_plugin *d) {
    char *name = cnri_strdup(d->name), *version = cnri_strdup(d->version ? d->version : "");
    if (!name || !version) {
        cnri_free(name);
        cnri_free(version);
        return false;
    }
    cnri_free(p->name);
    cnri_free(p->version);
    p->name = name;
    p->version = version;
    return true;
}

/* ---- registration ---- */

/* Runs the plugin's init; false, with p->refused: it failed. Its descriptors are registered only if
 * all of it succeeded. */
static bool initialise(cnri_plugin *p, const cnr_plugin *d) {
    struct cnr_registrar registrar = {.plugin = p, .open = true};
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = d->init(&cnri_host, &registrar, &err);
    registrar.open = false;
    if (status != CNR_OK)
        refuse(p, "its init failed: %s%s%s%s%s", err.where, err.where[0] ? ": " : "",
               err.text[0] || registrar.fault[0] ? err.text : "no reason given",
               err.text[0] && registrar.fault[0] ? "; " : "", registrar.fault);
    else {
        if (registrar.fault[0]) cnri_log(CNR_LOG_WARN, p->name, "%s", registrar.fault);
        status = cnri_registrar_settle(&registrar);
        p->desc = d; /* set before the commit, after which other threads may read it */
        p->first = cnri_registry_size();
        p->n_items = registrar.staged.n;
        if (status == CNR_OK) status = cnri_registry_commit(&registrar);
        if (status != CNR_OK) p->desc = NULL;
        if (status != CNR_OK) p->n_items = 0;
        if (status == CNR_OK) { /* the plugin owns them from here on */
            p->n_collisions = registrar.collisions.n;
            p->collisions = registrar.collisions.at;
            memset(&registrar.collisions, 0, sizeof registrar.collisions);
        }
    }
    cnri_registrar_free(&registrar);
    return status == CNR_OK;
}

/* Takes a plugin unless it is to be skipped or its name is taken, and runs its init. False: it is
 * not loaded. */
static bool take(cnri_plugin *p, const cnr_plugin *d, cnri_plugin_known_fn known,
                 bool (*skip)(const char *name), bool *skipped) {
    if (!d || !take_names(p, d)) return false;
    *skipped = skip && skip(p->name);
    if (*skipped) return false;
    const cnri_plugin *other = known(p->name);
    if (other) return refuse(p, "a plugin of that name is loaded already, from %s", other->path);
    return initialise(p, d);
}

bool cnri_plugin_open(cnri_plugin *p, const struct stat *info, bool strict,
                      cnri_plugin_known_fn known, bool (*skip)(const char *name), bool *skipped) {
    if (!file_is_trusted(p, info, strict) || !needs_are_met(p)) return false;
    return take(p, query(p), known, skip, skipped);
}

bool cnri_plugin_link(cnri_plugin *p, const cnr_plugin *d, cnri_plugin_known_fn known,
                      bool (*skip)(const char *name), bool *skipped) {
    return description_fits(p, d) && take(p, d, known, skip, skipped);
}
