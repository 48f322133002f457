/* Opens a plugin's second module, in the folder named like the plugin. */
#define _GNU_SOURCE
#include "late.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why others could change this file's code, as for plugins; NULL: they can't. */
static const char *weakness(const char *path) {
    struct stat file;
    if (stat(path, &file) != 0) return NULL; /* dlopen reports why */
    if (file.st_mode & S_IWOTH) return "can be written by anyone";
    if (file.st_uid != 0 && file.st_uid != geteuid()) return "belongs to another user";
    return NULL;
}

/* NULL if a module is no less safe by its permissions than its plugin; else why it is refused. A
 * plugin with unsafe permissions was reported when it was loaded. */
static const char *weaker(const char *plugin, const char *path) {
    char folder[PATH_MAX];
    if (weakness(plugin)) return NULL;
    const char *why = weakness(path);
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    return why ? why : weakness(folder);
}

late_fn late_function(const cnr_host *host, const void *of, const char *module, const char *symbol,
                      cnr_error *err) {
    Dl_info about;
    char path[PATH_MAX];
    if (!dladdr(of, &about) || !about.dli_fname) {
        host->fail(err, CNR_E_IO, module, "nobody knows where the plugin lies");
        return NULL;
    }
    const char *slash = strrchr(about.dli_fname, '/');
    const int n = snprintf(path, sizeof path, "%.*s/%s.so",
                           (int)(slash ? slash - about.dli_fname : 0), about.dli_fname, module);
    if (n < 0 || (size_t)n >= sizeof path) {
        host->fail(err, CNR_E_LIMIT, module, "the path is too long");
        return NULL;
    }
    const char *why = weaker(about.dli_fname, path);
    if (why) {
        host->fail(err, CNR_E_IO, path, "it or its folder %s", why);
        return NULL;
    }
    if (access(path, F_OK) != 0) {
        host->fail(err, CNR_E_IO, path,
                   "this part of the plugin is not installed (in Debian: cnnrun-%.*s)",
                   (int)strcspn(module, "/"), module);
        return NULL;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL),
         *at = library ? dlsym(library, symbol) : NULL;
    late_fn function = NULL;
    if (at)
        memcpy(&function, &at,
               sizeof function); /* ISO C has no cast from an object to a function */
    else host->fail(err, CNR_E_IO, path, "%s", dlerror());
    return function;
}
