/* Declarations shared by the files of matrix products. */
#ifndef OCL_OP_DENSE_H
#define OCL_OP_DENSE_H

#include "support.h"

/* y[z][i][j] = alpha * sum over k of a[z][i][k] * b[z][k][j] + beta * c[i][j], all by steps. */
typedef struct ocl_product {
    int64_t m, n, k, batch;
    int64_t a_row, a_step, b_column, b_step, c_row, c_column;
    int64_t a_batch, b_batch;
    double alpha, beta;
    const cnr_tensor *c; /* the addend of the product; NULL: none */
} ocl_product;

#define OCL_NO_PRODUCT "it is no plain product of dense f32, or the weight changes"

/* Fills p with the product that a dense, gemm or matmul is, and returns 1; 0: none that these
 * kernels compute. */
int ocl_product_of(const cnr_node *node, ocl_product *p);
/* As ocl_product_of, but 1 only for products of rows of a as they lie by one constant matrix b of
 * rank 2, with at most a bias. */
int ocl_product_packs(const cnr_node *node, ocl_product *p);
/* Takes a product with that score. */
cnr_status ocl_product_take(const cnr_node *node, cnr_accept *out, int32_t score);
/* Begins a kernel of operands as they are stored, for rows and columns of the run (row, column:
 * begin and end); 0: nothing is to be computed. split: parts of the sum and terms of each, which go
 * to `part` (NULL: the sum is whole). */
int ocl_product_begin(ocl_call *call, const cnr_run *run, const ocl_code *code,
                      const ocl_product *p, const ocl_chain *chain, const int64_t split[2],
                      const cnr_mem *part, int64_t *row, int64_t *column);
/* row and column: begin and end of the rows and columns that the run computes. */
void ocl_product_range(const cnr_run *run, const ocl_product *p, int64_t *row, int64_t *column);

#endif
