/* Which libraries api.c tries, one a line, and what comes of them. With -DNARROW as a 32-bit system
 * does, with -DFAKE this is a library with OpenCL's names instead; each does nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#ifdef FAKE
/* A function of OpenCL that fails. */
#define X(name) \
    int name(void); \
    int name(void) { return -1; }
#include "names.h" /* OCL_FUNCTION_LIST(X), as the test writes it */
#else
#include <CL/cl.h>
#ifdef NARROW
#undef __LP64__
#endif

/* In place of dlopen: prints the name; NULL for the names of a vendor's or the system's library. */
static void *tried(const char *name, int how) {
    printf("%s\n", name);
    return strncmp(name, "/vendor", 7) == 0 || name[0] != '/' ? NULL : dlopen(name, how);
}

#define dlopen tried
#include "api.c"

int main(void) {
    const char *why = NULL;
    const int opened = ocl_api_open(&why);
    printf("%s\n", opened ? "opened" : why);
    return 0;
}
#endif
