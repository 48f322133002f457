/* CLBlast's SGEMM on the first OpenCL device: the least and the median time of some runs, as JSON.
 */
#define CL_TARGET_OPENCL_VERSION 120
#define _POSIX_C_SOURCE 200809L
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*sgemm_fn)(int layout, int a, int b, size_t m, size_t n, size_t k, float alpha,
                        cl_mem x, size_t x_at, size_t x_pitch, cl_mem y, size_t y_at,
                        size_t y_pitch, float beta, cl_mem z, size_t z_at, size_t z_pitch,
                        cl_command_queue *queue, cl_event *event);
enum { ROW_MAJOR = 101, AS_IT_IS = 111, MOST_RUNS = 200 };

/* Milliseconds by the monotonic clock. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Compares two doubles, for qsort. */
static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A device buffer of n made-up numbers. */
static cl_mem matrix(cl_context context, size_t n) {
    float *data = malloc(n * sizeof *data);
    cl_int code = CL_OUT_OF_HOST_MEMORY;
    cl_mem m = NULL;
    for (size_t i = 0; data && i < n; i++) data[i] = (float)(i * 7919 % 2003) / 1001 - 1;
    if (data)
        m = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, n * sizeof *data,
                           data, &code);
    free(data);
    return code == CL_SUCCESS ? m : NULL;
}

int main(int argc, char **argv) {
    cl_platform_id platform;
    cl_device_id device;
    cl_int code = CL_SUCCESS;
    double ms[MOST_RUNS];
    void *library = dlopen("libclblast.so.1", RTLD_NOW);
    const sgemm_fn sgemm = library ? (sgemm_fn)dlsym(library, "CLBlastSgemm") : NULL;
    if (argc != 5) return fprintf(stderr, "bench_clblast M N K RUNS\n"), 2;
    if (!sgemm) return fprintf(stderr, "no libclblast.so.1\n"), 77;
    const size_t m = strtoul(argv[1], NULL, 10), n = strtoul(argv[2], NULL, 10);
    const size_t k = strtoul(argv[3], NULL, 10), runs = strtoul(argv[4], NULL, 10);
    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return fprintf(stderr, "no OpenCL device\n"), 77;
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    cl_command_queue queue = context ? clCreateCommandQueue(context, device, 0, &code) : NULL;
    cl_mem a = context ? matrix(context, m * k) : NULL, b = context ? matrix(context, k * n) : NULL;
    cl_mem c = context ? matrix(context, m * n) : NULL;
    if (!queue || !a || !b || !c || runs < 1 || runs > MOST_RUNS)
        return fprintf(stderr, "no memory\n"), 1;
    for (size_t i = 0; i <= runs; i++) { /* the first builds its programs */
        const double begin = now();
        code = sgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, m, n, k, 1, a, 0, k, b, 0, n, 0, c, 0, n,
                     &queue, NULL);
        if (code || (code = clFinish(queue))) return fprintf(stderr, "CLBlastSgemm: %d\n", code), 1;
        if (i > 0) ms[i - 1] = now() - begin;
    }
    qsort(ms, runs, sizeof *ms, by_size);
    printf("{\"m\":%zu,\"n\":%zu,\"k\":%zu,\"ms_least\":%.4f,\"ms_median\":%.4f}\n", m, n, k, ms[0],
           ms[runs / 2]);
    return 0;
}
