/* Opens a plugin's second module, which lies in the folder that has the plugin's name. */
#define _GNU_SOURCE
#include "late.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

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
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *at = library ? dlsym(library, symbol) : NULL;
    late_fn function = NULL;
    if (at) memcpy(&function, &at, sizeof function); /* ISO C has no cast from an object to a function */
    else host->fail(err, CNR_E_IO, path, "%s", dlerror());
    return function;
}
