/* The operators of W18's chapter 3 (Hu Wang's thesis of 2018) for a processor, in the thesis' own
 * form: one thread, no vectors, no tiles. All are CNR_KERNEL_BY_NAME_ONLY. */
#ifndef DOCUMENTS_H
#define DOCUMENTS_H

#include <cnnrun/kit.h>

extern const cnr_host *documents_host;

extern const cnr_op documents_im2col;
extern const cnr_kernel documents_im2col_kernel, documents_conv, documents_gemm, documents_dense,
    documents_spmv, documents_max_pool, documents_relu;

/* A kernel that runs only if --kernel names it. */
#define DOCUMENTS_KERNEL(symbol, text, op_name, ...) \
    const cnr_kernel symbol = {.size = sizeof(cnr_kernel), \
                               .version = 1, \
                               .name = text, \
                               .op = op_name, \
                               .device = "cpu", \
                               .flags = CNR_KERNEL_BY_NAME_ONLY, \
                               __VA_ARGS__}

/* Implements accepts for nodes whose own inputs and outputs are all dense f32; refuses others.
 * Takes no operators behind the node. */
cnr_status documents_accept_plain(const cnr_node *node, cnr_accept *out);

/* Steps between windows over a picture and what they skip, along rows (0) and columns (1). */
typedef struct documents_window {
    int64_t in[2], out[2], kernel[2], stride[2], pad[2];
} documents_window;

/* Fills `w` for a window over two spatial axes without dilation; 0: it is none. */
int documents_window_of(const cnr_window *own, documents_window *w);
/* The window of a conv; 0: it has other axes or is dilated. */
int documents_conv_window(const cnr_node *node, cnr_window *own);

#endif
