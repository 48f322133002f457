/* Operators of several operands that broadcast: iteration over their elements, and rows of formulas
 * for those that fold operands pairwise. */
#ifndef STD_BROADCAST_H
#define STD_BROADCAST_H

#include "ops_kit.h"

#define BROADCAST_MAX 64 /* operands of one node */

/* Iterates over the output's range in runs. Dims are merged where all operands allow it; the last
 * one is cut into runs of at most ELEM_RUN, along which operand k has stride inner[k] and the
 * output 1. */
typedef struct broadcast_walk {
    int32_t rank, n;
    int64_t dim[CNR_MAX_RANK + 1], index[CNR_MAX_RANK + 1];
    int64_t stride[BROADCAST_MAX + 1][CNR_MAX_RANK + 1]; /* [n] is the output */
    int64_t at[BROADCAST_MAX + 1], inner[BROADCAST_MAX + 1];
    int64_t out, run; /* the run's first element in the output, and its length */
    int64_t left;
} broadcast_walk;

/* Start and continue the iteration. operands[k] may be NULL. False: there is no (further) run. */
int broadcast_begin(broadcast_walk *w, const cnr_run *run, const cnr_tensor *const *operands,
                    int32_t n);
/* Steps to the next run of elements; 0: all are done. */
int broadcast_next(broadcast_walk *w);
/* Loads operand k's elements of the walk's present run into `out`, as numbers of the domain. */
static inline void broadcast_load(const broadcast_walk *w, int32_t k, const cnr_tensor *t,
                                  elem_domain domain, elem_run *out) {
    elem_load(t->dtype, t->data, w->at[k], w->inner[k], w->run, domain, out);
}

/* y = f(f(x0, x1), x2) ..., all of one type. */
typedef struct fold_row {
    uint32_t dtypes;
    int32_t to_bool;
    void (*f64)(const double *x, const double *y, double *out, int64_t n);
    void (*f32)(const float *x, const float *y, float *out, int64_t n);
    void (*i64)(const int64_t *x, const int64_t *y, int64_t *out, int64_t n);
    void (*u64)(const uint64_t *x, const uint64_t *y, uint64_t *out, int64_t n);
    const char *opencl;
    int32_t mean; /* divides the sum by the number of operands */
} fold_row;

/* Method infer with the row's types: the output has the operands' broadcast shape. */
cnr_status fold_infer(const cnr_node *node, const fold_row *row, cnr_tensor *const *out,
                      cnr_error *err);
/* Method reference: folds the operands from the left by the row's formula. */
cnr_status fold_reference(const cnr_run *run, const fold_row *row, cnr_error *err);
/* Method expression: the row's OpenCL formula into text; its length, or -1. */
int32_t fold_expression(const fold_row *row, char *text, size_t bytes);
/* Method cost: an operation an output element for each operand after the first. */
void fold_cost(const cnr_node *node, cnr_cost *out);

/* A loop NAME over n elements of x and y by FORMULA. */
#define FOLD_LOOP(type, NAME, FORMULA) \
    static void NAME(const type *xs, const type *ys, type *out, int64_t n) { \
        typedef type T; \
        for (int64_t at = 0; at < n; at++) { \
            const T x = xs[at], y = ys[at]; \
            (void)x, (void)y; \
            out[at] = (T)(FORMULA); \
        } \
    }

#endif
