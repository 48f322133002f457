/* An OpenCL library for tests: passes each call on to the machine's own, but lies, counts, refuses
 * and fails as the environment says.
 *
 *     SHIM_VERSION=1.1      what each device says it is; calls that came with 1.2 end the process (99)
 *     SHIM_NAME=text        each device's name
 *     SHIM_LOCAL=1          local memory is said to be memory of its own; 2: a part of the global one
 *     SHIM_FAIL="NAME N C"  from its N-th call on NAME fails with code C
 *     SHIM_HANG=text        kernels with that in their names never end: nor does who waits for them
 *     SHIM_BUILD_MS=N       a program takes so much longer to build
 *     SHIM_CALLS=file       where to say at the end how often each was called, "NAME COUNT" a line; and of
 *                           builds_at_once the most
 *     SHIM_ALONE=1          one thread at a time makes programs and kernels
 *     SHIM_LIBRARY=file     the library to pass calls on to
 *     SHIM_SOURCES=folder   programs as they are built: PROGRAM.cl, and their options as PROGRAM.options
 *     SHIM_LAUNCHES=file    a line a launch: kernel, PROGRAM, work-items and those of a group (three
 *                           directions each), bytes of local and private memory
 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `code`: the argument that gets the error of a function that returns a handle; -1: it returns the
 * code. */
/* clang-format off */
#define EACH(X) \
    X(clGetPlatformIDs, -1) X(clGetPlatformInfo, -1) X(clGetDeviceIDs, -1) X(clCreateContext, 5) \
    X(clReleaseContext, -1) X(clCreateCommandQueue, 3) X(clReleaseCommandQueue, -1) \
    X(clCreateBuffer, 4) X(clReleaseMemObject, -1) X(clCreateProgramWithSource, 4) \
    X(clCreateProgramWithBinary, 6) X(clGetProgramInfo, -1) \
    X(clGetProgramBuildInfo, -1) X(clReleaseProgram, -1) X(clCreateKernel, 2) \
    X(clCreateKernelsInProgram, -1) X(clReleaseKernel, -1) X(clSetKernelArg, -1) \
    X(clGetKernelWorkGroupInfo, -1) X(clEnqueueNDRangeKernel, -1) X(clEnqueueReadBuffer, -1) \
    X(clEnqueueWriteBuffer, -1) X(clEnqueueCopyBuffer, -1) X(clEnqueueReadImage, -1) \
    X(clEnqueueWriteImage, -1) X(clEnqueueCopyImage, -1) X(clEnqueueMapBuffer, 9) \
    X(clEnqueueUnmapMemObject, -1) X(clWaitForEvents, -1) X(clGetEventInfo, -1) \
    X(clGetEventProfilingInfo, -1) X(clReleaseEvent, -1) X(clFlush, -1) X(clFinish, -1) \
    X(clCreateImage2D, 7) X(clEnqueueMarker, -1) X(clEnqueueWaitForEvents, -1)
/* clang-format on */

/* Those that a device of 1.1 does not have. */
/* clang-format off */
#define EACH_NEW(X) \
    X(clCreateImage, 5) X(clEnqueueMarkerWithWaitList, -1) X(clEnqueueBarrierWithWaitList, -1)
/* clang-format on */

enum {
/* Number of a function. */
#define X(name, code) AT_##name,
    EACH (X) EACH_NEW(X)
#undef X
        AT_clGetDeviceInfo,
    AT_clBuildProgram,
    AT_clGetExtensionFunctionAddressForPlatform,
    COUNT
};
static const char *const names[] = {
/* Name of a function. */
#define X(name, code) #name,
    EACH (X) EACH_NEW(X)
#undef X
        "clGetDeviceInfo",
    "clBuildProgram", "clGetExtensionFunctionAddressForPlatform"};
static int calls[COUNT], builds, builds_at_once;

/* Writes how often each function was called. */
static void say_calls(void) {
    FILE *out = getenv("SHIM_CALLS") ? fopen(getenv("SHIM_CALLS"), "w") : NULL;
    for (int i = 0; out && i < COUNT; i++) fprintf(out, "%s %d\n", names[i], calls[i]);
    if (out) fprintf(out, "builds_at_once %d\n", builds_at_once);
    if (out) fclose(out);
}

/* The true function of OpenCL by its name; NULL: there is none. */
static void *real(const char *name) {
    static void *library;
    if (!library) {
        const char *chosen = getenv("SHIM_LIBRARY");
        library = dlopen(chosen ? chosen : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
        atexit(say_calls);
    }
    void *f = library ? dlsym(library, name) : NULL;
    if (!f) {
        fprintf(stderr, "shim: there is no %s\n", name);
        _exit(98);
    }
    return f;
}

/* The code that the call of function `at` is to fail with; 0: none. Counts its calls. */
static int fails(int at) {
    char name[64];
    int from, code;
    const char *wish = getenv("SHIM_FAIL");
    const int n = __atomic_add_fetch(&calls[at], 1, __ATOMIC_RELAXED);
    if (!wish || sscanf(wish, "%63s %d %d", name, &from, &code) != 3) return 0;
    return strcmp(name, names[at]) == 0 && n >= from ? code : 0;
}

typedef intptr_t word;

/* Fails a call with `code`: in its error argument `at`, or by what it returns. */
static word failed(int code, int at, const word *words) {
    if (at < 0) return code;
    if (words[at]) *(cl_int *)words[at] = code;
    return 0;
}

/* 1: an old OpenCL is to be played. */
static int old(void) {
    const char *version = getenv("SHIM_VERSION");
    return version && strcmp(version, "1.2") < 0;
}

static int hung;

/* Whether the call is not passed on, as the queue stands still from the first kernel of the name
 * on. */
static int hangs(int at, const word *words) {
    const char *name = getenv("SHIM_HANG");
    if (!name) return 0;
    if (at == AT_clEnqueueNDRangeKernel && !hung) {
        char own[256] = "";
        __typeof__(&clGetKernelInfo) ask = (__typeof__(ask))real("clGetKernelInfo");
        ask((cl_kernel)words[1], CL_KERNEL_FUNCTION_NAME, sizeof own, own, NULL);
        hung = strstr(own, name) != NULL;
    }
    if (hung && (at == AT_clFinish || at == AT_clWaitForEvents))
        for (;;) pause();
    if (hung && at == AT_clGetEventInfo && words[1] == CL_EVENT_COMMAND_EXECUTION_STATUS)
        *(cl_int *)words[3] = CL_RUNNING;
    return hung && (at == AT_clGetEventInfo || at == AT_clEnqueueNDRangeKernel);
}

/* The true function, with its type. */
#define REAL(name) ((__typeof__(&name))real(#name))

/* Writes the launch of a kernel. */
static void say_launch(const word *words) {
    static FILE *out;
    const cl_kernel kernel = (cl_kernel)words[1];
    const size_t *items = (const size_t *)words[4], *group = (const size_t *)words[5];
    char name[256] = "";
    cl_program program = NULL;
    cl_ulong local = 0, own = 0;
    if (!getenv("SHIM_LAUNCHES") || (!out && !(out = fopen(getenv("SHIM_LAUNCHES"), "w")))) return;
    REAL(clGetKernelInfo)(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL);
    REAL(clGetKernelInfo)(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, NULL);
    REAL(clGetKernelWorkGroupInfo)
    (kernel, NULL, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local, &local, NULL);
    REAL(clGetKernelWorkGroupInfo)
    (kernel, NULL, CL_KERNEL_PRIVATE_MEM_SIZE, sizeof own, &own, NULL);
    fprintf(out, "%s %p", name, (void *)program);
    for (int i = 0; i < 3; i++) fprintf(out, " %zu", i < words[2] ? items[i] : 1);
    for (int i = 0; i < 3; i++) fprintf(out, " %zu", i < words[2] ? group[i] : 1);
    fprintf(out, " %llu %llu\n", (unsigned long long)local, (unsigned long long)own);
    fflush(out);
}

/* Keeps a program's text in a file. */
static void keep(const char *folder, cl_program program, const char *kind, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%p.%s", folder, (void *)program, kind);
    FILE *out = fopen(path, "w");
    if (out) fputs(text, out);
    if (out) fclose(out);
}

/* Keeps a program's source and options. */
static void keep_source(cl_program program, const char *options) {
    const char *folder = getenv("SHIM_SOURCES");
    size_t n = 0;
    if (!folder || REAL(clGetProgramInfo)(program, CL_PROGRAM_SOURCE, 0, NULL, &n) != CL_SUCCESS)
        return;
    char *text = calloc(n + 1, 1);
    if (text && REAL(clGetProgramInfo)(program, CL_PROGRAM_SOURCE, n, text, NULL) == CL_SUCCESS) {
        keep(folder, program, "cl", text);
        keep(folder, program, "options", options ? options : "");
    }
    free(text);
}

/* 1: function `at` makes, asks or releases programs or kernels (their builds are not meant). */
static int of_programs(int at) {
    return at == AT_clCreateProgramWithSource || at == AT_clCreateProgramWithBinary ||
           at == AT_clGetProgramInfo || at == AT_clReleaseProgram || at == AT_clCreateKernel ||
           at == AT_clCreateKernelsInProgram || at == AT_clReleaseKernel;
}

/* With SHIM_ALONE one thread at a time makes programs and kernels. */
static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
/* Lets one program call go at a time; 1: the lock is held. */
static int begin_alone(int program) {
    return program && getenv("SHIM_ALONE") && pthread_mutex_lock(&alone) == 0;
}
/* Gives the lock back, if it is held. */
static void end_alone(int held) {
    if (held) pthread_mutex_unlock(&alone);
}

/* The library's names are the real ones; the header's prototypes stand in the way of defining them.
 */
#define X(name, at) \
    word shim_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, \
                     word j, word k) __asm__(#name);
EACH (X) EACH_NEW(X)
#undef X
/* All take words only, so as many are passed on as any of them takes. */
#define PASS(name, at, new) \
    word shim_##name(word a, word b, word c, word d, word e, word f, word g, word h, word i, \
                     word j, word k) { \
        static word (*to)(word, word, word, word, word, word, word, word, word, word, word); \
        const word words[] = {a, b, c, d, e, f, g, h, i, j, k}; \
        const int code = fails(AT_##name); \
        if (new &&old()) { \
            fprintf(stderr, "shim: " #name " came with 1.2\n"); \
            _exit(99); \
        } \
        if (!to) to = (__typeof__(to))real(#name); \
        if (!code && hangs(AT_##name, words)) return 0; \
        if (AT_##name == AT_clEnqueueNDRangeKernel) say_launch(words); \
        if (code) return failed(code, at, words); \
        const int held = begin_alone(of_programs(AT_##name)); \
        const word result = to(a, b, c, d, e, f, g, h, i, j, k); \
        end_alone(held); \
        return result; \
    }
/* Passes a function on. */
#define X(name, at) PASS(name, at, 0)
EACH (X)
#undef X
/* Passes a function on that may fail. */
#define X(name, at) PASS(name, at, 1)
    EACH_NEW(X)
#undef X

/* Gives an answer of `bytes` bytes as OpenCL does. */
static cl_int give(const void *from, size_t bytes, size_t room, void *out, size_t *n) {
    if (n) *n = bytes;
    if (!out) return CL_SUCCESS;
    if (room < bytes) return CL_INVALID_VALUE;
    memcpy(out, from, bytes);
    return CL_SUCCESS;
}

/* In place of OpenCL's: limits that the environment names. */
cl_int clGetDeviceInfo(cl_device_id id, cl_device_info what, size_t room, void *out, size_t *n) {
    static __typeof__(&clGetDeviceInfo) to;
    const char *version = getenv("SHIM_VERSION"), *name = getenv("SHIM_NAME");
    const char *local = getenv("SHIM_LOCAL");
    char text[256];
    const int code = fails(AT_clGetDeviceInfo);
    if (code) return code;
    if (what == CL_DEVICE_VERSION && version) {
        snprintf(text, sizeof text, "OpenCL %s shim", version);
        return give(text, strlen(text) + 1, room, out, n);
    }
    if (what == CL_DEVICE_NAME && name) return give(name, strlen(name) + 1, room, out, n);
    if (what == CL_DEVICE_LOCAL_MEM_TYPE && local) {
        const cl_device_local_mem_type type = atoi(local) == 1 ? CL_LOCAL : CL_GLOBAL;
        return give(&type, sizeof type, room, out, n);
    }
    if (!to) to = (__typeof__(to))real("clGetDeviceInfo");
    return to(id, what, room, out, n);
}

/* In place of OpenCL's: keeps the source, then builds. */
cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id *ids, const char *options,
                      void(CL_CALLBACK *done)(cl_program, void *), void *data) {
    static __typeof__(&clBuildProgram) to;
    const int code = fails(AT_clBuildProgram);
    if (code) return code;
    if (old() && options && strstr(options, "-cl-std=CL1.2")) return CL_INVALID_BUILD_OPTIONS;
    if (!to) to = (__typeof__(to))real("clBuildProgram");
    keep_source(program, options);
    const int now = __atomic_add_fetch(&builds, 1, __ATOMIC_RELAXED);
    if (now > builds_at_once) builds_at_once = now;
    if (getenv("SHIM_BUILD_MS")) usleep(1000 * (useconds_t)atoi(getenv("SHIM_BUILD_MS")));
    const int held = begin_alone(1);
    const cl_int built = to(program, n, ids, options, done, data);
    end_alone(held);
    __atomic_sub_fetch(&builds, 1, __ATOMIC_RELAXED);
    return built;
}

/* The driver's own function, which passes by here; NULL: it has none, or is to fail. */
void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name) {
    static __typeof__(&clGetExtensionFunctionAddressForPlatform) to;
    if (fails(AT_clGetExtensionFunctionAddressForPlatform)) return NULL;
    if (!to) to = (__typeof__(to))real("clGetExtensionFunctionAddressForPlatform");
    return to(platform, name);
}
