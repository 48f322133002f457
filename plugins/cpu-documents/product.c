/* gemm and dense by W18's algorithm 3.1: three loops, the right matrix read down its columns. */
#include "documents.h"
#include "shapes.h"

/* result[i][j] = sum over k of left[i][k] * right[k][j], by steps, + bias. */
typedef struct product {
    int64_t rows, columns, inner;
    int64_t right_row, right_column, result_row, result_column;
    int64_t bias_row, bias_column;
    const float *left, *right, *bias; /* bias NULL: none */
    float *result;
} product;

/* Multiplies with three plain loops. */
static cnr_status multiply(const cnr_run *run, const product *p) {
    for (int64_t i = 0; i < p->rows; i++) {
        for (int64_t j = 0; j < p->columns; j++) {
            float res = 0.0f;
            for (int64_t k = 0; k < p->inner; k++)
                res += p->left[i * p->inner + k] * p->right[k * p->right_row + j * p->right_column];
            if (p->bias) res += p->bias[i * p->bias_row + j * p->bias_column];
            p->result[i * p->result_row + j * p->result_column] = res;
        }
        if (cnr_cancelled(run->stream)) break;
    }
    return CNR_OK;
}

/* Takes gemm without factors and without a transposed a; for others out->why says why. */
static cnr_status accepts_gemm(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (cnr_attr_int(node, "transA") || cnr_attr_float(node, "alpha") != 1 ||
        (cnr_own_input(node, 2) && cnr_attr_float(node, "beta") != 1))
        return cnr_refuse(out, "a plain product of rows is wanted");
    return documents_accept_plain(node, out);
}

/* Computes gemm with the plain loops; CNR_E_SHAPE: c does not broadcast. */
static cnr_status run_gemm(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *a = node->inputs[0], *y = run->outputs[0], *c = cnr_own_input(node, 2);
    const int64_t rows = y->dim[0], columns = y->dim[1], inner = a->dim[1];
    const int transposed = cnr_attr_int(node, "transB") != 0;
    int64_t steps[CNR_MAX_RANK] = {0};
    if (c && !shape_strides(c, y, steps))
        return documents_host->fail(err, CNR_E_SHAPE, node->name, "c does not broadcast");
    const product p = {.rows = rows,
                       .columns = columns,
                       .inner = inner,
                       .right_row = transposed ? 1 : columns,
                       .right_column = transposed ? inner : 1,
                       .result_row = columns,
                       .result_column = 1,
                       .bias_row = steps[0],
                       .bias_column = steps[1],
                       .left = (const float *)a->data,
                       .right = (const float *)node->inputs[1]->data,
                       .bias = c ? (const float *)c->data : NULL,
                       .result = (float *)y->data};
    return multiply(run, &p);
}

/* Takes dense layers whose weight is a matrix; for others out->why says why. */
static cnr_status accepts_dense(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (node->inputs[1]->rank != 2 ||
        cnr_span(node->inputs[0], 1, node->inputs[0]->rank) != node->inputs[1]->dim[1])
        return cnr_refuse(out, "a matrix of as many columns as a sample has numbers is wanted");
    return documents_accept_plain(node, out);
}

/* The weight is the left matrix, samples are the right one's columns. */
static cnr_status run_dense(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const cnr_tensor *bias = cnr_own_input(node, 2);
    (void)err;
    const product p = {.rows = weight->dim[0],
                       .columns = x->dim[0],
                       .inner = weight->dim[1],
                       .right_row = 1,
                       .right_column = weight->dim[1],
                       .result_row = 1,
                       .result_column = weight->dim[0],
                       .bias_row = 1,
                       .left = (const float *)weight->data,
                       .right = (const float *)x->data,
                       .bias = bias ? (const float *)bias->data : NULL,
                       .result = (float *)run->outputs[0]->data};
    return multiply(run, &p);
}

DOCUMENTS_KERNEL(documents_gemm, "gemm_f32_w18", "gemm", .accepts = accepts_gemm, .run = run_gemm);
DOCUMENTS_KERNEL(documents_dense, "dense_f32_w18", "dense", .accepts = accepts_dense,
                 .run = run_dense);
