/* Kernels of the documents for OpenCL devices that are not this plugin's: the other OpenCL plugins
 * open them. The state of such a device is opencl-common's, of which each plugin has
 * a copy of its own. Whether the two copies agree is asked before anything of a device is touched.
 */
#ifndef OPENCL_DOCUMENTS_H
#define OPENCL_DOCUMENTS_H

#include "support.h"

extern const cnr_kernel documents_w18_gemm_scalar, documents_w18_gemm_dot,
    documents_w18_dense_scalar, documents_w18_dense_dot, documents_w18_im2col,
    documents_w18_max_pool, documents_w18_relu, documents_w18_conv_scalar, documents_w18_conv_dot,
    documents_w18_spmv;
extern const cnr_kernel documents_s16_naive, documents_s16_padded, documents_s16_rows,
    documents_s16_tiles, documents_s16_local, documents_s16_float4, documents_s16_unrolled;

/* Why kernels here cannot run on the device; NULL: they can. */
const char *documents_device_unfit(const cnr_device *device);
/* Refuses with the first reason there is, or takes the node plainly. */
cnr_status documents_answer(const cnr_device *device, const cnr_node *node, const char *why,
                            cnr_accept *out);

/* Defines kernel `symbol` of these documents, which is chosen only by its name. */
#define DOCUMENTS_KERNEL(symbol, text, op_name, ...) \
    const cnr_kernel symbol = {.size = sizeof(cnr_kernel), \
                               .version = 1, \
                               .name = text, \
                               .op = op_name, \
                               .device = "opencl", \
                               .flags = CNR_KERNEL_BY_NAME_ONLY, \
                               .plan_free = ocl_free_state, \
                               __VA_ARGS__}

/* ---- w18.c ---- */

extern const ocl_source documents_w18_source;

/* A window over two spatial axes without dilation. */
typedef struct documents_window {
    int64_t in[2], out[2], kernel[2], stride[2], pad[2];
} documents_window;

/* *w receives the window in two axes; 0: the kernels have none such. */
int documents_window_of(const cnr_window *own, documents_window *w);
/* Launches a kernel that has im2col's arguments, on `planes` planes. */
cnr_status documents_windows_run(cnr_stream *stream, const ocl_code *code,
                                 const documents_window *w, const cnr_mem *x, const cnr_mem *y,
                                 int64_t planes, cnr_error *err);

/* Operands of a product, where they lie, and by which steps: right and result and bias between
 * rows and columns. */
typedef struct documents_product {
    const cnr_mem *left, *right, *bias, *result; /* the product's memories; bias NULL: none */
    int64_t rows, columns, inner;
    int64_t right_row, right_column, result_row, result_column, bias_row, bias_column;
} documents_product;

/* Queues the product p by `code`, one work-item for each element or block of it; fails where the
 * launch does. */
cnr_status documents_product_run(cnr_stream *stream, const ocl_code *code,
                                 const documents_product *p, cnr_error *err);

#endif
