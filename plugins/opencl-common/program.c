/* Programs: sources to kernels, built once a device, their binaries kept on disk. */
#define _GNU_SOURCE
#include "program.h"

#include <stdio.h>
#include <stdlib.h>

static const char *device_name(const ocl_device *d) { return d->found->name; }

/* ---- the source ---- */

/* The file under $CNNRUN_KERNEL_DIR, by host->alloc, with a #line of its own; NULL: none. */
static char *override_of(const ocl_source *source) {
    const char *folder = secure_getenv("CNNRUN_KERNEL_DIR");
    char path[1024], line[1100];
    if (!folder || !*folder) return NULL;
    snprintf(path, sizeof path, "%s/%s", folder, source->path);
    const int n = snprintf(line, sizeof line, "#line 1 \"%s\"\n", path);
    void *data = NULL;
    uint64_t bytes = 0;
    if (ocl_host->file_read(path, 1 << 24, &data, &bytes, NULL)) return NULL;
    char *text = ocl_host->alloc((size_t)n + (size_t)bytes + 1);
    if (text) {
        memcpy(text, line, (size_t)n);
        memcpy(text + n, data, (size_t)bytes + 1);
    }
    ocl_host->free(data);
    return text;
}

/* ---- building ---- */

/* The compiler's log, logged at this level; the caller owns the text. NULL: there is none. */
static char *build_log(const ocl_device *d, cl_program program, const ocl_source *source,
                       int level) {
    size_t bytes = 0;
    char *log = NULL;
    ocl_cl.clGetProgramBuildInfo(program, d->found->device, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    if (bytes > 0 && bytes < 1 << 24) log = ocl_host->alloc(bytes + 1);
    if (!log) return NULL;
    log[bytes] = 0;
    if (ocl_cl.clGetProgramBuildInfo(program, d->found->device, CL_PROGRAM_BUILD_LOG, bytes, log,
                                     NULL)) {
        ocl_host->free(log);
        return NULL;
    }
    if (*log)
        ocl_host->log(level, "opencl", "kernels/%s on %s:\n%s", source->path, device_name(d), log);
    return log;
}

/* Fails with the first line of the log that reports an error. */
static cnr_status build_failed(const ocl_device *d, cl_program program, const ocl_source *source,
                               cl_int code, cnr_error *err) {
    char *log = build_log(d, program, source, CNR_LOG_ERROR);
    if (!log) return ocl_fail(err, source->path, "clBuildProgram", code);
    const char *line = strstr(log, "error");
    while (line && line > log && line[-1] != '\n') line--;
    if (!line) line = log;
    char where[128];
    snprintf(where, sizeof where, "kernels/%s", source->path);
    const cnr_status status = ocl_host->fail(err, CNR_E_DEVICE, where, "does not build on %s: %.*s",
                                             device_name(d), (int)strcspn(line, "\n"), line);
    ocl_host->free(log);
    return status;
}

/* Creates the program's kernels and releases them, as some drivers compile only then, so that the
 * binary contains no code before. 0: failed. */
static int create_kernels(cl_program program) {
    cl_kernel kernels[16];
    cl_uint n = 0;
    if (ocl_cl.clCreateKernelsInProgram(program, 16, kernels, &n) != CL_SUCCESS) return 0;
    for (cl_uint i = 0; i < n && i < 16; i++) ocl_cl.clReleaseKernel(kernels[i]);
    return n > 0;
}

/* The program from the cache's binary; NULL: there is none that fits, and *why tells the reason. */
static cl_program from_binary(const ocl_device *d, const ocl_key *key, const char *options,
                              const char **why) {
    size_t bytes;
    cl_int code, status;
    unsigned char *binary = ocl_cache_load(d, key, &bytes, why);
    if (!binary) return NULL;
    const unsigned char *one = binary;
    cl_program program = ocl_cl.clCreateProgramWithBinary(d->context, 1, &d->found->device, &bytes,
                                                          &one, &status, &code);
    ocl_host->free(binary);
    *why = "refused by the driver";
    if (!program) return NULL;
    if (code == CL_SUCCESS && status == CL_SUCCESS &&
        ocl_cl.clBuildProgram(program, 1, &d->found->device, options, NULL, NULL) == CL_SUCCESS &&
        create_kernels(program))
        return program;
    ocl_cl.clReleaseProgram(program);
    return NULL;
}

/* Saves the program's binary in the cache under `key`. */
static void keep_binary(const ocl_device *d, cl_program program, const ocl_key *key) {
    size_t bytes = 0;
    if (ocl_cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, NULL) ||
        bytes == 0)
        return;
    unsigned char *binary = ocl_host->alloc(bytes);
    if (binary && ocl_cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof binary, &binary,
                                          NULL) == CL_SUCCESS)
        ocl_cache_store(d, key, binary, bytes);
    ocl_host->free(binary);
}

/* *out receives the program built from head and text; on failure err holds the build log. */
static cnr_status from_source(const ocl_device *d, const ocl_source *source, const char *head,
                              const char *text, const char *options, cl_program *out,
                              cnr_error *err) {
    const char *parts[] = {head, text};
    cl_int code;
    cl_program program = ocl_cl.clCreateProgramWithSource(d->context, 2, parts, NULL, &code);
    if (!program) return ocl_fail(err, source->path, "clCreateProgramWithSource", code);
    code = ocl_cl.clBuildProgram(program, 1, &d->found->device, options, NULL, NULL);
    cnr_status status = CNR_OK;
    if (code == CL_SUCCESS) ocl_host->free(build_log(d, program, source, CNR_LOG_DEBUG));
    if (code != CL_SUCCESS) status = build_failed(d, program, source, code, err);
    else if (!create_kernels(program))
        status = ocl_host->fail(err, CNR_E_DEVICE, source->path,
                                "its kernels can't be created on %s", device_name(d));
    if (status != CNR_OK) ocl_cl.clReleaseProgram(program);
    else *out = program;
    return status;
}

/* Adds 1 to *which under the device's lock. */
static void count(ocl_device *d, int32_t *which) {
    pthread_mutex_lock(&d->lock);
    ++*which;
    pthread_mutex_unlock(&d->lock);
}

cnr_status ocl_program_build(ocl_device *d, ocl_program *p, cnr_error *err) {
    char *own = override_of(p->source);
    const char *text = own ? own : p->source->text, *why = "not kept";
    const ocl_key key = ocl_cache_key(d, p->head, text, p->options);
    const int keep = !(d->found->quirks & OCL_NO_BINARIES);
    cnr_status status = CNR_OK;
    p->program = keep ? from_binary(d, &key, p->options, &why) : NULL;
    if (p->program) {
        count(d, &d->hits);
        ocl_host->log(CNR_LOG_DEBUG, "opencl", "kernels/%s: cache hit", p->source->path);
    } else {
        const uint64_t begin = ocl_host->now_ns();
        count(d, &d->misses);
        status = from_source(d, p->source, p->head, text, p->options, &p->program, err);
        if (status == CNR_OK) {
            if (keep) keep_binary(d, p->program, &key);
            ocl_host->log(CNR_LOG_INFO, "opencl", "kernels/%s: cache miss (%s), built in %.0f ms",
                          p->source->path, why, (double)(ocl_host->now_ns() - begin) / 1e6);
        }
    }
    ocl_host->free(own);
    return status;
}

/* ---- what is asked for ---- */

/* The device's program with this source (the same pointer), head and options, built or still to be
 * built, or NULL; one whose build failed is left out, so the next caller builds it again. d->lock
 * is held. */
static ocl_program *find_program(const ocl_device *d, const ocl_source *source, const char *head,
                                 const char *options) {
    ocl_program *p = d->programs;
    while (p && (p->source != source || p->state == OCL_FAILED || strcmp(p->options, options) ||
                 strcmp(p->head, head)))
        p = p->next;
    return p;
}

/* A new program in the device's list, not built yet; NULL: no memory. */
static ocl_program *add_program(ocl_device *d, const ocl_source *source, const char *head,
                                const char *options) {
    const size_t n = strlen(head) + 1, m = strlen(options) + 1;
    ocl_program *p = ocl_host->alloc(sizeof *p + n + m);
    if (!p) return NULL;
    *p = (ocl_program){.next = d->programs, .source = source, .why = CNR_ERROR_INIT};
    memcpy(p->head, head, n);
    p->options = memcpy(p->head + n, options, m);
    return d->programs = p;
}

/* A new request for kernel `name` of program p, in p's list; NULL: no memory. */
static ocl_request *add_request(ocl_device *d, ocl_program *p, const char *name) {
    ocl_request *r = ocl_host->alloc(sizeof *r + strlen(name) + 1);
    if (!r) return NULL;
    strcpy(r->name, name);
    *r = (ocl_request){.code = {.id = d->n_codes++, .kernel = r->name, .most = 1},
                       .program = p,
                       .asker = pthread_self(),
                       .next = p->requests};
    return p->requests = r;
}

cnr_status ocl_code_get(const cnr_device *device, const ocl_source *source, const char *head,
                        const char *options, const char *name, const ocl_code **out,
                        cnr_error *err) {
    ocl_device *d = device->state;
    char all[1024];
    if (!head) head = "\n";
    if ((size_t)snprintf(all, sizeof all, "-cl-std=CL1.%d -DMAD=%s %s",
                         d->found->level < 12 ? 1 : 2, d->tune->fused ? "fma" : "mad",
                         options) >= sizeof all)
        return ocl_host->fail(err, CNR_E_LIMIT, source->path, "too many build options");
    pthread_mutex_lock(&d->lock);
    ocl_program *p = find_program(d, source, head, all);
    const int old = p != NULL;
    if (!p) p = add_program(d, source, head, all);
    ocl_request *r = p ? add_request(d, p, name) : NULL;
    if (p && !old) ocl_builds_begin(d);
    pthread_mutex_unlock(&d->lock);
    if (!r) return ocl_host->fail(err, CNR_E_MEMORY, source->path, "no memory for a program");
    *out = &r->code;
    return CNR_OK;
}

/* Waits for builds, logs how many programs came from the cache, and frees the device's programs. */
void ocl_programs_free(ocl_device *d) {
    ocl_builds_end(d);
    if (d->hits + d->misses > 0)
        ocl_host->log(CNR_LOG_INFO, "opencl", "%s: %d programs from the cache, %d built",
                      device_name(d), (int)d->hits, (int)d->misses);
    while (d->programs) {
        ocl_program *p = d->programs;
        d->programs = p->next;
        while (p->requests) {
            ocl_request *r = p->requests;
            p->requests = r->next;
            ocl_host->free(r);
        }
        if (p->program) ocl_cl.clReleaseProgram(p->program);
        ocl_host->free(p);
    }
}
