/* Opens OpenCL's library at run time and looks its functions up. */
#define _GNU_SOURCE
#include "api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

ocl_api ocl_cl;

static const char *reason;

/* The loader that finds all drivers comes first; then drivers that are their own. */
static const char *const libraries[] = {"libOpenCL.so.1", "libOpenCL.so", "libGLES_mali.so",
                                        "libmali.so"};

static int look_up(void *library) {
    ocl_api api = {.library = library};
#define X(name) \
    *(void **)&api.name = dlsym(library, #name); \
    if (!api.name) { \
        reason = "the OpenCL library lacks " #name; \
        return 0; \
    }
    OCL_FUNCTION_LIST(X)
#undef X
#define X(name) *(void **)&api.name = dlsym(library, #name);
    OCL_OPTIONAL_LIST(X)
#undef X
    ocl_cl = api;
    return 1;
}

static void open_once(void) {
    const char *chosen = secure_getenv("CNNRUN_OPENCL");
    reason = "no OpenCL library (libOpenCL.so.1 or a vendor's)";
    if (chosen && strcmp(chosen, "none") == 0) {
        reason = "switched off by CNNRUN_OPENCL=none";
        return;
    }
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        if (chosen && *chosen && i > 0) return;
        void *library = dlopen(chosen && *chosen ? chosen : libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (library && look_up(library)) return;
        if (library) dlclose(library); /* nothing of it has been called yet */
    }
}

int ocl_api_open(const char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    *why = reason;
    return ocl_cl.library != NULL;
}
