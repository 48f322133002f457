/* Libraries of drivers, loaded at run time so that nothing links them. */
#include "gauge.h"
#include <dlfcn.h>
#include <stdio.h>

void *gauge_library(const char *root, const char *name, cnr_error *err) {
    char path[GAUGE_PATH];
    const int n = snprintf(path, sizeof path, "%s/usr/lib/%s", root, name);
    if (n < 0 || (size_t)n >= sizeof path) {
        gauge_host->fail(err, CNR_E_LIMIT, root, "the path is too long");
        return NULL;
    }
    void *library = dlopen(strcmp(root, "/") == 0 ? name : path, RTLD_NOW | RTLD_LOCAL);
    if (!library) gauge_host->fail(err, CNR_E_NOT_FOUND, name, "%s", dlerror());
    return library;
}

int gauge_symbol(void *library, const char *name, void *to) {
    void *at = dlsym(library, name);
    memcpy(to, &at, sizeof at);
    return at != NULL;
}
