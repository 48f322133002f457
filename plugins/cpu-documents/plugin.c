/* Registers the documents' operator and kernels. */
#include "documents.h"

const cnr_host *documents_host;

cnr_status documents_accept_plain(const cnr_node *node, cnr_accept *out) {
    if (!cnr_all_plain(node, 1u << CNR_f32)) return cnr_refuse(out, "dense f32 is wanted");
    return cnr_take(node, out, 1);
}

int documents_window_of(const cnr_window *own, documents_window *w) {
    if (own->spatial != 2 || own->dilation[0] != 1 || own->dilation[1] != 1) return 0;
    for (int i = 0; i < 2; i++) {
        w->in[i] = own->in[i];
        w->out[i] = own->out[i];
        w->kernel[i] = own->kernel[i];
        w->stride[i] = own->stride[i];
        w->pad[i] = own->pad_begin[i];
    }
    return 1;
}

int documents_conv_window(const cnr_node *node, cnr_window *own) {
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    return x->rank == 4 && !documents_host->window_resolve(node, x, weight->dim + 2, own);
}

/* Registers the operator im2col and all kernels. */
static cnr_status init(const cnr_host *host, struct cnr_registrar *registrar, cnr_error *err) {
    static const cnr_item items[] = {
        {CNR_KIND_OPERATOR, &documents_im2col}, {CNR_KIND_KERNEL, &documents_im2col_kernel},
        {CNR_KIND_KERNEL, &documents_conv},     {CNR_KIND_KERNEL, &documents_gemm},
        {CNR_KIND_KERNEL, &documents_dense},    {CNR_KIND_KERNEL, &documents_spmv},
        {CNR_KIND_KERNEL, &documents_max_pool}, {CNR_KIND_KERNEL, &documents_relu},
    };
    (void)err;
    documents_host = host;
    return cnr_add_all(host, registrar, items, CNR_ROWS(items));
}

CNR_PLUGIN("cpu-documents", "0.1.0",
           "the documents' operators as naive loops on one thread, and im2col", "MIT", init,
           CNR_TOUCHES_NOTHING)
