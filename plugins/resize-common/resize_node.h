/* How the nodes resize and upsample resize each axis, for kernels. */
#ifndef RESIZE_NODE_H
#define RESIZE_NODE_H

#include "resize_taps.h"
#include "shapes.h"

#include <cnnrun/kit.h>

/* 1: the node is an upsample, 0: a resize. */
static inline int resize_is_upsample(const cnr_node *node) {
    return strcmp(node->desc->name, "upsample") == 0;
}

/* Writes the numbers of an input, or else of an attribute, to `values`; returns how many, 0:
 * neither is given, -1: not known, or too many. */
static inline int64_t resize_numbers(const cnr_host *host, const cnr_node *node, int32_t port,
                                     const char *attr, double *values) {
    const cnr_tensor *t = cnr_own_input(node, port);
    const cnr_attr *a = cnr_attr_find(node, attr);
    const int64_t n = t ? cnr_count(t) : 0;
    if (n > CNR_MAX_RANK || (n > 0 && !cnr_is_constant(t))) return -1;
    if (n > 0) host->elements_read(t->dtype, t->data, 0, 1, n, CNR_f64, values);
    if (n > 0 || !a || a->n > CNR_MAX_RANK) return n;
    for (int64_t i = 0; i < a->n; i++)
        values[i] = a->type == CNR_ATTR_INTS ? (double)a->ints[i] : a->floats[i];
    return a->n;
}

/* Number of the choice that an attribute has; 0 if it is not there. */
static inline int resize_choice(const cnr_node *node, const char *name) {
    const cnr_attr *a = cnr_attr_find(node, name);
    return a ? (int)a->i : 0;
}

/* Reads how axes are resized, after infer has checked it; 0: they are not constant, or a region is
 * taken. */
static inline int resize_plan_of(const cnr_host *host, const cnr_node *node, resize_plan *p) {
    const cnr_tensor *x = node->inputs[0], *y = node->outputs[0];
    const int upsample = resize_is_upsample(node);
    double by[CNR_MAX_RANK] = {0};
    int64_t n_axes = 0;
    const int64_t *axes = upsample ? NULL : cnr_attr_ints(node, "axes", &n_axes);
    memset(p, 0, sizeof *p);
    p->mode = resize_choice(node, "mode");
    if (upsample && p->mode > RESIZE_LINEAR) p->mode = RESIZE_LINEAR;
    p->grid = upsample ? RESIZE_ASYMMETRIC : resize_choice(node, "coordinate_transformation_mode");
    p->rounding = upsample ? 2 : resize_choice(node, "nearest_mode");
    p->exclude = cnr_attr_int(node, "exclude_outside") != 0;
    p->antialias = cnr_attr_int(node, "antialias") != 0;
    p->a = cnr_attr_float(node, "cubic_coeff_a");
    const int64_t n_scales = resize_numbers(host, node, upsample ? 1 : 2, "scales", by);
    const int64_t n = n_scales || upsample ? n_scales : resize_numbers(host, node, 3, "sizes", by);
    if (n < 0 || n > x->rank || p->grid == RESIZE_CROP_AND_RESIZE) return 0;
    if (!n_scales && resize_choice(node, "keep_aspect_ratio_policy")) return 0;
    for (int32_t a = 0; a < x->rank; a++) {
        p->scale[a] = 1;
        p->size[a] = y->dim[a];
    }
    for (int64_t i = 0; i < n; i++) {
        const int32_t a = shape_axis(n_axes ? axes[i] : x->rank - n + i, x->rank);
        if (a < 0) return 0;
        p->scale[a] = n_scales ? by[i] : by[i] / (double)x->dim[a];
    }
    return 1;
}

/* 1 if axis a keeps its size and scale, else 0. */
static inline int resize_stays(const resize_plan *p, const cnr_tensor *x, int32_t a) {
    return p->scale[a] == 1 && p->size[a] == x->dim[a];
}

#endif
