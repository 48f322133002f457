/* Programs are built on some threads at once: a first start waits for compilers more than for all
 * else. */
#define _GNU_SOURCE
#include "program.h"

#include <signal.h>
#include <unistd.h>

enum { MOST_BUILDERS = 16 };

/* A thread that builds programs; ended: it has found no more to do. */
typedef struct ocl_builder {
    pthread_t thread;
    ocl_device *device;
    int begun,
        ended; /* begun: a thread was made for it; ended: the thread is done but for being joined */
} ocl_builder;

/* The waiting program with the longest text, or NULL: the longest takes longest, mostly, so it is
 * begun first. The lock is held. */
static ocl_program *next_waiting(const ocl_device *d) {
    ocl_program *longest = NULL;
    size_t most = 0;
    for (ocl_program *p = d->programs; p; p = p->next) {
        const size_t n = p->state == OCL_WAITS ? strlen(p->source->text) + 1 : 0;
        if (n >= most && n > 0) {
            longest = p;
            most = n;
        }
    }
    return longest;
}

/* Builds a program and notes its state and reason. The lock is held before and after, but not
 * meanwhile. */
static void build(ocl_device *d, ocl_program *p) {
    p->state = OCL_BUILDS;
    pthread_mutex_unlock(&d->lock);
    const cnr_status status = ocl_program_build(d, p, &p->why);
    pthread_mutex_lock(&d->lock);
    p->state = status ? OCL_FAILED : OCL_DONE;
    pthread_cond_broadcast(&d->built);
}

/* The thread: builds programs until none waits. */
static void *work(void *arg) {
    ocl_builder *b = arg;
    ocl_device *d = b->device;
    pthread_mutex_lock(&d->lock);
    for (ocl_program *p; (p = next_waiting(d)) != NULL;) build(d, p);
    b->ended = 1;
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* Waits for the thread's end, if it was begun, and forgets it. */
static void leave(ocl_builder *b) {
    if (b->begun) pthread_join(b->thread, NULL);
    b->begun = b->ended = 0;
}

/* Number of threads: one for each processor, at most MOST_BUILDERS. */
static int32_t builders_wanted(void) {
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MOST_BUILDERS ? MOST_BUILDERS : (int32_t)n;
}

/* Starts a build. If no further thread can be made, the thread that waits builds. */
void ocl_builds_begin(ocl_device *d) {
    const size_t bytes = MOST_BUILDERS * sizeof *d->builders;
    if (!d->builders && (d->builders = ocl_host->alloc(bytes)) != NULL)
        memset(d->builders, 0, bytes);
    if (!d->builders) return;
    for (int32_t i = builders_wanted() - 1; i >= 0; i--) {
        ocl_builder *b = &d->builders[i];
        sigset_t all, before;
        if (b->begun && !b->ended) continue;
        leave(b);
        b->device = d;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the caller's own threads */
        b->begun = pthread_create(&b->thread, NULL, work, b) == 0;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return;
    }
}

/* Ends the threads that build, and frees them; programs that waited have failed. Nothing will be
 * built after it. */
void ocl_builds_end(ocl_device *d) {
    pthread_mutex_lock(&d->lock);
    for (ocl_program *p = d->programs; p; p = p->next)
        if (p->state == OCL_WAITS) p->state = OCL_FAILED;
    pthread_mutex_unlock(&d->lock);
    for (int32_t i = 0; d->builders && i < MOST_BUILDERS; i++) leave(&d->builders[i]);
    ocl_host->free(d->builders);
    d->builders = NULL;
}

/* ---- whoever waits ---- */

/* Creates the requested kernel once, and releases it, to see that it works; fails with OpenCL's
 * reason. */
static cnr_status look_at(const ocl_device *d, ocl_request *r, cnr_error *err) {
    cl_int code;
    cl_kernel kernel = ocl_cl.clCreateKernel(r->program->program, r->name, &code);
    if (!kernel) return ocl_fail(err, r->name, "clCreateKernel", code);
    ocl_cl.clGetKernelWorkGroupInfo(kernel, d->found->device, CL_KERNEL_WORK_GROUP_SIZE,
                                    sizeof r->code.most, &r->code.most, NULL);
    ocl_cl.clReleaseKernel(kernel);
    r->code.program = r->program->program;
    return CNR_OK;
}

/* Helps to build until the request's program is ready; fails with what the compiler says. The lock
 * is held. */
static cnr_status finish(ocl_device *d, ocl_request *r, cnr_error *err) {
    ocl_program *p = r->program;
    while (p->state == OCL_WAITS || p->state == OCL_BUILDS) {
        ocl_program *other = next_waiting(d);
        if (other) build(d, other);
        else pthread_cond_wait(&d->built, &d->lock);
    }
    r->told = 1;
    if (p->state == OCL_DONE) return r->code.program ? CNR_OK : look_at(d, r, err);
    return ocl_host->fail(err, p->why.code ? p->why.code : CNR_E_DEVICE, p->why.where, "%s",
                          p->why.text);
}

cnr_status ocl_planned(const cnr_device *device, cnr_error *err) {
    ocl_device *d = device->state;
    cnr_status status = CNR_OK;
    pthread_mutex_lock(&d->lock);
    for (ocl_program *p = d->programs; p; p = p->next)
        for (ocl_request *r = p->requests; r; r = r->next) {
            if (r->told || !pthread_equal(r->asker, pthread_self())) continue;
            const cnr_status one = finish(d, r, status ? NULL : err);
            if (!status) status = one;
        }
    pthread_mutex_unlock(&d->lock);
    return status;
}

cnr_status ocl_code_wait(const cnr_device *device, const ocl_code *code, cnr_error *err) {
    ocl_device *d = device->state;
    pthread_mutex_lock(&d->lock);
    const cnr_status status = finish(d, (ocl_request *)code, err); /* its first member */
    pthread_mutex_unlock(&d->lock);
    return status;
}
