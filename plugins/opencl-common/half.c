/* Kernels whose weights are stored in f16: the f32 kernels with another prepare. Arithmetic
 * stays in f32 (vload_half needs no extension), or is in f16 on devices that support it. */
#define _GNU_SOURCE
#include "support.h"

#include "terms.cl.h"

#include <math.h>
#include <stdlib.h>

cnr_status ocl_half_accepts(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                            cnr_accept *out) {
    const cnr_status status = full->accepts(device, node, out);
    if (out->score > 0) out->score = (int32_t)cnr_min(1000, out->score + 5);
    return status;
}

/* Kernels read whole vectors of 16, and buffers end with whole floats. */
enum { BEHIND = 16 };
static const float MOST = 65520; /* from there on a half is infinite */

cnr_status ocl_half_size(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                         cnr_space *out, cnr_error *err) {
    CNR_TRY(full->prepare_size(device, node, out, err));
    out->bytes /= 2;
    if (out->memory_class != OCL_IMAGE)
        out->bytes = (uint64_t)cnr_round_up((int64_t)out->bytes, 4) + 2 * BEHIND;
    return CNR_OK;
}

cnr_status ocl_half_pack(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                         void *blob, cnr_error *err) {
    cnr_space whole = {.size = sizeof whole}, half = {.size = sizeof half};
    double some[256];
    CNR_TRY(full->prepare_size(device, node, &whole, err));
    CNR_TRY(ocl_half_size(full, device, node, &half, err));
    float *from = ocl_host->alloc((size_t)whole.bytes + 1);
    if (!from)
        return ocl_host->fail(err, CNR_E_MEMORY, node->name, "no memory to pack its weights");
    cnr_status status = full->prepare(device, node, from, err);
    const int64_t n = (int64_t)(whole.bytes / sizeof *from);
    memset(blob, 0, (size_t)half.bytes);
    for (int64_t at = 0; status == CNR_OK && at < n; at += 256) {
        const int64_t many = cnr_min(256, n - at);
        for (int64_t i = 0; i < many; i++) {
            some[i] = from[at + i];
            if (fabsf(from[at + i]) >= MOST && isfinite(from[at + i]) && status == CNR_OK)
                status = ocl_host->fail(err, CNR_E_UNSUPPORTED, node->name,
                                        "its weight %g is none in fp16: "
                                        "without --weights-type fp16 it is",
                                        (double)from[at + i]);
        }
        ocl_host->elements_write(CNR_f16, blob, at, many, CNR_f64, some);
    }
    ocl_host->free(from);
    return status;
}

/* ---- arithmetic ---- */

enum { ASKED_NOT, NONE, REAL, EMULATED };

/* True if the driver compiles f16 arithmetic: some drivers report it and fail to compile it. */
static int compiles(const ocl_device *d) {
    const char *text = (const char *)terms_cl_data;
    cl_int code;
    cl_program program = ocl_cl.clCreateProgramWithSource(d->context, 1, &text, NULL, &code);
    if (!program) return 0;
    code = ocl_cl.clBuildProgram(program, 1, &d->found->device,
                                 d->found->level < 12
                                     ? "-cl-std=CL1.1 -DMAD=mad -DHALF -DHALF_MATH -DPROBE"
                                     : "-cl-std=CL1.2 -DMAD=mad -DHALF -DHALF_MATH -DPROBE",
                                 NULL, NULL);
    ocl_cl.clReleaseProgram(program);
    return code == CL_SUCCESS;
}

int ocl_half_emulated(void) {
    const char *forced = secure_getenv("CNNRUN_OPENCL_HALF");
    return forced && strcmp(forced, "emulated") == 0;
}

/* How the device computes in 16 bits: EMULATED where that is switched on, REAL where a program with
 * cl_khr_fp16 builds, else NONE, which is logged with its reason. */
static int32_t ask(const ocl_device *d) {
    const char *name = d->device ? d->device->name : d->found->name;
    if (ocl_half_emulated()) return EMULATED;
    const int says = ocl_has_extension(d->found, "cl_khr_fp16");
    if (says && compiles(d)) return REAL;
    ocl_host->log(CNR_LOG_INFO, name, "no arithmetic in halves: %s",
                  says ? "a program with cl_khr_fp16 does not build" : "it has no cl_khr_fp16");
    return NONE;
}

/* Whether the device computes in 16 bits, asked once. */
static int32_t half_of(const cnr_device *device) {
    ocl_device *d = device->state;
    pthread_mutex_lock(&d->lock);
    if (d->half == ASKED_NOT) d->half = ask(d);
    const int32_t half = d->half;
    pthread_mutex_unlock(&d->lock);
    return half;
}

/* True if the rows of the window are short enough: sums in f16 begin anew at the end of each
 * row. */
static int row_fits(const cnr_node *node) {
    const cnr_tensor *weight = cnr_own_input(node, 1);
    return !weight || weight->rank < 3 || weight->dim[weight->rank - 1] <= CNR_F16_TERMS;
}

/* Accepts, if `full` does, a node for a kernel that multiplies in f16; its score lies half-way from
 * full's to 1000, so that it goes before all f32 kernels, as it does twice as many products a
 * cycle. Refuses where the device lacks halves or rows are too long. */
cnr_status ocl_math_accepts(const cnr_kernel *full, const cnr_device *device, const cnr_node *node,
                            cnr_accept *out) {
    if (half_of(device) == NONE) return cnr_refuse(out, "the device has no arithmetic in halves");
    if (!row_fits(node))
        return cnr_refuse(out, "a row of its window is longer than sums of halves");
    const cnr_status status = full->accepts(device, node, out);
    if (out->score > 0) out->score += (1000 - out->score) / 2;
    return status;
}

void ocl_plan_terms(ocl_plan *p, int how) {
    const char *text = (const char *)terms_cl_data;
    const size_t n = strlen(text), m = strlen(p->head) + 1;
    const int32_t half = how == OCL_F16_MATH ? half_of(p->device) : NONE;
    if (p->status != CNR_OK) return;
    if (how == OCL_F16_MATH && half == NONE)
        p->status = ocl_unless(p->node, "the device has no arithmetic in halves", p->err);
    else if (n + m > sizeof p->head)
        p->status =
            ocl_host->fail(p->err, CNR_E_LIMIT, p->node->name, "its epilogue is too long a source");
    else {
        memmove(p->head + n, p->head, m);
        memcpy(p->head, text, n);
    }
    if (how != OCL_F32) ocl_plan_options(p, "-DHALF ");
    if (how == OCL_F16_MATH) ocl_plan_options(p, "-DHALF_MATH ");
    if (half == EMULATED) ocl_plan_options(p, "-DHALF_EMULATED ");
}
