/* Opens OpenCL's library at run time and looks its functions up. */
#define _GNU_SOURCE
#include "api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

ocl_api ocl_cl;

static const char *reason;

/* Libraries in the order in which they are tried. First the loader that finds all drivers, then
 * drivers that are libraries of OpenCL themselves: Mali's and PowerVR's. */
static const char *const libraries[] = {"libOpenCL.so.1",
                                        "libOpenCL.so",
                                        "libGLES_mali.so",
                                        "libmali.so",
                                        "libPVROCL.so",
#ifdef __ANDROID__ /* no loader; a vendor's folder is not searched by name */
#ifdef __LP64__
#define LIB "lib64/"
#else
#define LIB "lib/"
#endif
                                        "/vendor/" LIB "libOpenCL.so",
                                        "/system/vendor/" LIB "libOpenCL.so",
                                        "/system/" LIB "libOpenCL.so",
                                        "/vendor/" LIB "egl/libGLES_mali.so",
                                        "/system/vendor/" LIB "egl/libGLES_mali.so",
                                        "/vendor/" LIB "libPVROCL.so",
                                        "/system/vendor/" LIB "libPVROCL.so"
#undef LIB
#endif
};

/* Puts the functions of a library in force. 0: one lacks, and `reason` says which. */
static int look_up(void *library) {
    ocl_api api = {.library = library};
/* loads one function; leaves with 0 and a reason where the library lacks it */
#define X(name) \
    *(void **)&api.name = dlsym(library, #name); \
    if (!api.name) { \
        reason = "the OpenCL library lacks " #name; \
        return 0; \
    }
    OCL_FUNCTION_LIST(X)
#undef X
/* loads one function; NULL where the library lacks it */
#define X(name) *(void **)&api.name = dlsym(library, #name);
    OCL_OPTIONAL_LIST(X)
#undef X
    ocl_cl = api;
    return 1;
}

/* Opens a library. 0: it is none of OpenCL. */
static int open_library(const char *name) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library && look_up(library)) return 1;
    if (library) dlclose(library); /* nothing of it has been called yet */
    return 0;
}

/* Opens the first of the files in `list`, separated by colons, that has OpenCL; else `reason` says
 * there is none. */
static void open_listed(const char *list) {
    char name[1024];
    reason = "no library of CNNRUN_OPENCL has OpenCL";
    for (size_t n; *list; list += n + (list[n] == ':')) {
        n = strcspn(list, ":");
        if (n == 0 || n >= sizeof name) continue;
        memcpy(name, list, n);
        name[n] = 0;
        if (open_library(name)) return;
    }
}

/* Opens the library that the user chose, or the first that is there. */
static void open_once(void) {
    const char *chosen = secure_getenv("CNNRUN_OPENCL");
    if (chosen && strcmp(chosen, "none") == 0) {
        reason = "switched off by CNNRUN_OPENCL=none";
        return;
    }
    if (chosen && *chosen) {
        open_listed(chosen);
        return;
    }
#ifdef __ANDROID__
    reason = "no OpenCL library; an app's manifest names libOpenCL.so as uses-native-library";
#else
    reason = "no OpenCL library (libOpenCL.so.1 or a vendor's)";
#endif
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (open_library(libraries[i])) return;
}

int ocl_api_open(const char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    *why = reason;
    return ocl_cl.library != NULL;
}
