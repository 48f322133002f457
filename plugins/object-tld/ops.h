/* The tracker's stages as operators, and what their files share. */
#ifndef OBJECT_TLD_OPS_H
#define OBJECT_TLD_OPS_H

#include "tld.h"

extern const cnr_op tld_op_window_variance, tld_op_random_ferns, tld_op_correlation;
extern const cnr_kernel tld_cpu_window_variance, tld_cpu_random_ferns, tld_cpu_correlation;

/* A window as operators read it (i32 x, y, w, h), shifted and cut to lie within w x h pixels. */
typedef struct tld_window4 {
    int64_t x, y, w, h;
} tld_window4;
/* A window (x, y, w, h) at v, cut to a picture of w x h. */
static inline tld_window4 tld_within(const int32_t *v, int64_t w, int64_t h) {
    const int64_t x = cnr_max(0, cnr_min(v[0], w)), y = cnr_max(0, cnr_min(v[1], h));
    return (tld_window4){x, y, cnr_max(0, cnr_min(v[2], w - x)), cnr_max(0, cnr_min(v[3], h - y))};
}

/* [*lo, *hi): the indices of axis 0 that the run computes. */
static inline void tld_range(const cnr_run *run, int64_t *lo, int64_t *hi) {
    const int whole = run->range_axis != 0;
    *lo = whole ? 0 : run->range_begin;
    *hi = whole ? run->outputs[0]->dim[0] : run->range_end;
}

/* Checks type and rank of input `i`; then the size of one axis (below 0 or unknown: any). */
cnr_status tld_want(const cnr_node *node, int32_t i, int32_t dtype, int32_t rank, cnr_error *err);
/* Fails if input i has another size along the axis. */
cnr_status tld_want_size(const cnr_node *node, int32_t i, int32_t axis, int64_t size,
                         cnr_error *err);
/* Output 0 is f32, one number for each window. */
void tld_by_window(const cnr_node *node, cnr_tensor *const *outputs);
/* Method split_axes: axis 0, the windows; returns 1, or 0 if max is below 1. */
int32_t tld_split_windows(const cnr_node *node, cnr_split_axis *out, int32_t max);
/* Method region: inputs 1 and 4 by the range of windows, others as a whole. */
void tld_region_of(const cnr_node *node, int32_t axis, int64_t begin, int64_t end, int32_t port,
                   cnr_input_range *out);
/* Method plan_free: frees what plan kept. */
void tld_unplan(const cnr_device *device, void *state);

enum { TLD_PART = 1024 }; /* windows that a thread computes at a time */

#endif
