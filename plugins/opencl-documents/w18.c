/* Host sides of W18's operators but for conv: products, im2col, max_pool, relu. */
#include "documents.h"

#include "op_dense.h"
#include "w18.cl.h"

const ocl_source documents_w18_source = OCL_SOURCE("documents/w18.cl", w18_cl);

/* ---- products: algorithms 3.2 and 3.3 ---- */

/* What plan keeps for run: the code and the product's sizes. */
typedef struct product_state {
    const ocl_code *code;
    ocl_product p;
} product_state;

/* Why the kernels cannot do the node, or NULL; *p receives the product. */
static const char *product_unfit(const cnr_node *node, ocl_product *p) {
    if (!ocl_product_of(node, p)) return OCL_NO_PRODUCT;
    if (p->a_step != 1 || p->a_row != p->k || p->alpha != 1 || p->batch != 1 ||
        (p->c && p->beta != 1))
        return "a plain product of rows is wanted";
    return NULL;
}

/* Takes products that the kernels can do on the device. */
static cnr_status product_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    ocl_product p;
    return documents_answer(device, node, product_unfit(node, &p), out);
}

/* Method plan of product: finds the device code and keeps what run needs in *state. */
static cnr_status product_plan(const cnr_device *device, const cnr_node *node, void **out,
                               const char *kernel, cnr_error *err) {
    ocl_plan p;
    product_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, product_unfit(node, &s->p));
    ocl_plan_code(&p, &documents_w18_source, kernel, &s->code);
    return ocl_plan_end(&p, out);
}

OCL_PLAN(plan_scalar, ((void)workspace, product_plan(device, node, state, "product_scalar", err)))
OCL_PLAN(plan_dot, ((void)workspace, product_plan(device, node, state, "product_dot", err)))

/* Queues the product p by `code`, one work-item for each element or block of it; fails where the
 * launch does. */
cnr_status documents_product_run(cnr_stream *stream, const ocl_code *code,
                                 const documents_product *p, cnr_error *err) {
    const ocl_device *d = ocl_of(stream->device);
    const int64_t size[4] = {p->rows, p->columns, p->inner, p->bias != NULL};
    const int64_t steps[8] = {p->right_row,     p->right_column, p->result_row,
                              p->result_column, p->bias_row,     p->bias_column};
    ocl_call call;
    ocl_begin(&call, stream, code);
    ocl_arg_buffer(&call, p->left);
    ocl_arg_buffer(&call, p->right);
    ocl_arg_buffer(&call, p->bias ? p->bias : p->left);
    ocl_arg_buffer(&call, p->result);
    ocl_arg_longs(&call, size, 4);
    ocl_arg_longs(&call, steps, 8);
    return ocl_launch(&call, p->rows, p->columns, 1, d->tune->dense_line, err);
}

/* Queues gemm as a product of A and the transposed B. */
static cnr_status run_gemm(const cnr_run *run, cnr_error *err) {
    const ocl_product *p = &((const product_state *)run->state)->p;
    const cnr_tensor *c = cnr_own_input(run->node, 2);
    const documents_product own = {.left = &run->node->inputs[0]->mem,
                                   .right = &run->node->inputs[1]->mem,
                                   .bias = c ? &c->mem : NULL,
                                   .result = &run->outputs[0]->mem,
                                   .rows = p->m,
                                   .columns = p->n,
                                   .inner = p->k,
                                   .right_row = p->b_step,
                                   .right_column = p->b_column,
                                   .result_row = p->n,
                                   .result_column = 1,
                                   .bias_row = p->c_row,
                                   .bias_column = p->c_column};
    return documents_product_run(run->stream, ((const product_state *)run->state)->code, &own, err);
}

/* The weight is the left matrix; samples are the columns of the right one. */
static cnr_status run_dense(const cnr_run *run, cnr_error *err) {
    const ocl_product *p = &((const product_state *)run->state)->p;
    const cnr_tensor *c = cnr_own_input(run->node, 2);
    const documents_product own = {.left = &run->node->inputs[1]->mem,
                                   .right = &run->node->inputs[0]->mem,
                                   .bias = c ? &c->mem : NULL,
                                   .result = &run->outputs[0]->mem,
                                   .rows = p->n,
                                   .columns = p->m,
                                   .inner = p->k,
                                   .right_row = 1,
                                   .right_column = p->k,
                                   .result_row = 1,
                                   .result_column = p->n,
                                   .bias_row = 1};
    return documents_product_run(run->stream, ((const product_state *)run->state)->code, &own, err);
}

DOCUMENTS_KERNEL(documents_w18_gemm_scalar, "gemm_f32_w18_scalar", "gemm",
                 .accepts = product_accepts, .plan = plan_scalar, .run = run_gemm);
DOCUMENTS_KERNEL(documents_w18_gemm_dot, "gemm_f32_w18_dot", "gemm", .accepts = product_accepts,
                 .plan = plan_dot, .run = run_gemm);
DOCUMENTS_KERNEL(documents_w18_dense_scalar, "dense_f32_w18_scalar", "dense",
                 .accepts = product_accepts, .plan = plan_scalar, .run = run_dense);
DOCUMENTS_KERNEL(documents_w18_dense_dot, "dense_f32_w18_dot", "dense", .accepts = product_accepts,
                 .plan = plan_dot, .run = run_dense);

/* ---- windows: algorithms 3.4 and 3.5 ---- */

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

cnr_status documents_windows_run(cnr_stream *stream, const ocl_code *code,
                                 const documents_window *w, const cnr_mem *x, const cnr_mem *y,
                                 int64_t planes, cnr_error *err) {
    const int64_t size[4] = {w->in[0], w->in[1], w->out[0], w->out[1]};
    const int64_t window[8] = {w->kernel[0], w->kernel[1], w->stride[0],
                               w->stride[1], w->pad[0],    w->pad[1]};
    ocl_call call;
    ocl_begin(&call, stream, code);
    ocl_arg_buffer(&call, x);
    ocl_arg_buffer(&call, y);
    ocl_arg_longs(&call, size, 4);
    ocl_arg_longs(&call, window, 8);
    return ocl_launch(&call, w->out[1], w->out[0], planes, ocl_of(stream->device)->tune->line, err);
}

/* What plan keeps for run: the code and the window. */
typedef struct window_state {
    const ocl_code *code;
    documents_window w;
} window_state;

/* Fills w and returns NULL, or returns why the node is not taken: a max_pool or im2col of f32, by
 * its kernel_shape. */
static const char *window_unfit(const cnr_node *node, documents_window *w) {
    cnr_window own;
    if (node->n_outputs > 1 && node->outputs[1]) return "it is asked for indices";
    if (!ocl_plain(node)) return OCL_WANTS_F32;
    if (ocl_host->window_resolve(node, node->inputs[0], NULL, &own) ||
        !documents_window_of(&own, w))
        return "two spatial axes without dilation are wanted";
    return NULL;
}

/* Takes convolutions whose window the kernels can do on the device. */
static cnr_status window_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    documents_window w;
    return documents_answer(device, node, window_unfit(node, &w), out);
}

/* Method plan of window: finds the device code and keeps what run needs in *state. */
static cnr_status window_plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                              void **state, cnr_error *err) {
    ocl_plan p;
    (void)workspace;
    window_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, window_unfit(node, &s->w));
    ocl_plan_code(&p, &documents_w18_source, node->desc->name, &s->code);
    return ocl_plan_end(&p, state);
}

/* Method run of window: queues the code over the run's range on its stream. */
static cnr_status window_run(const cnr_run *run, cnr_error *err) {
    const window_state *s = run->state;
    const cnr_tensor *x = run->node->inputs[0];
    return documents_windows_run(run->stream, s->code, &s->w, &x->mem, &run->outputs[0]->mem,
                                 x->dim[0] * x->dim[1], err);
}

DOCUMENTS_KERNEL(documents_w18_im2col, "im2col_f32_w18_gpu", "im2col", .accepts = window_accepts,
                 .plan = window_plan, .run = window_run);
DOCUMENTS_KERNEL(documents_w18_max_pool, "max_pool_f32_w18_gpu", "max_pool",
                 .accepts = window_accepts, .plan = window_plan, .run = window_run);

/* ---- activation: algorithm 3.6 ---- */

/* Takes relu of f32. */
static cnr_status relu_accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    return documents_answer(device, node, ocl_plain(node) ? NULL : OCL_WANTS_F32, out);
}

/* Method plan of relu: finds the device code and keeps what run needs in *state. */
static cnr_status relu_plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                            void **state, cnr_error *err) {
    ocl_plan p;
    (void)workspace;
    window_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_code(&p, &documents_w18_source, "relu", &s->code);
    return ocl_plan_end(&p, state);
}

/* Method run of relu: queues the code over the run's range on its stream. */
static cnr_status relu_run(const cnr_run *run, cnr_error *err) {
    const int64_t n = cnr_count(run->outputs[0]);
    ocl_call call;
    ocl_begin(&call, run->stream, ((const window_state *)run->state)->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_int(&call, n);
    return ocl_launch(&call, n, 1, 1, ocl_of(run->stream->device)->tune->line, err);
}

DOCUMENTS_KERNEL(documents_w18_relu, "relu_f32_w18_gpu", "relu", .accepts = relu_accepts,
                 .plan = relu_plan, .run = relu_run);
