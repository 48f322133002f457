/* The input elements that contribute to an output position of resize, along one axis. */
#ifndef RESIZE_TAPS_H
#define RESIZE_TAPS_H

#include <cnnrun/op.h>
#include <math.h>

/* In the order of the choices of coordinate_transformation_mode, and of mode. */
enum {
    RESIZE_HALF_PIXEL,
    RESIZE_HALF_PIXEL_SYMMETRIC,
    RESIZE_PYTORCH_HALF_PIXEL,
    RESIZE_ALIGN_CORNERS,
    RESIZE_ASYMMETRIC,
    RESIZE_CROP_AND_RESIZE,
    RESIZE_TF_HALF_PIXEL
};
enum { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC };

/* How a tensor is resized: its axes' scales, sizes and rules. */
typedef struct resize_plan {
    int known; /* scales, sizes and axes are known */
    int mode, grid, rounding, exclude, antialias;
    double a, outside;
    double scale[CNR_MAX_RANK]; /* output over input size of each axis; 0: unknown */
    int64_t size[CNR_MAX_RANK]; /* output dims; < 0 unknown */
    /* ends of the region of interest, as fractions of each axis */
    double begin[CNR_MAX_RANK], end[CNR_MAX_RANK];
} resize_plan;

/* One input place of an axis and its weight in an output place. */
typedef struct resize_tap {
    int64_t at; /* times the axis's stride; -1: outside the region */
    double weight;
} resize_tap;

/* Maximum number of taps of an output position along axis a. */
static inline int64_t resize_taps(const resize_plan *p, int32_t a, int64_t in) {
    if (p->scale[a] == 1 && p->size[a] == in && p->grid != RESIZE_CROP_AND_RESIZE) return 1;
    if (p->mode == RESIZE_NEAREST) return 1;
    const double scale = p->antialias && p->scale[a] < 1 ? p->scale[a] : 1;
    const double reach = p->mode == RESIZE_LINEAR ? 1 : 2;
    const double half = ceil(reach / scale);
    return 2 * (int64_t)fmin(half, 4 * (double)in + 4); /* no output reads more */
}

/* Output position i divided by the scale. In single precision, like other frameworks: its rounding
 * decides which pixel is nearest where a position falls between two. */
static inline double resize_divided(const resize_plan *p, double i, double scale) {
    return p->mode == RESIZE_NEAREST ? (double)((float)i / (float)scale) : i / scale;
}

/* The input coordinate of output position i along axis a, whose input has `in` elements. */
static inline double resize_source(const resize_plan *p, int32_t a, int64_t i, int64_t in) {
    const double scale = p->scale[a], size = (double)in;
    const double length = p->grid == RESIZE_CROP_AND_RESIZE ? (double)p->size[a] : scale * size;
    switch (p->grid) {
    case RESIZE_ALIGN_CORNERS: return length == 1 ? 0 : (double)i * (size - 1) / (length - 1);
    case RESIZE_ASYMMETRIC: return resize_divided(p, (double)i, scale);
    case RESIZE_TF_HALF_PIXEL: return resize_divided(p, (double)i + 0.5, scale);
    /* 0 if the axis has one element, even if its size was rounded down from a fraction */
    case RESIZE_PYTORCH_HALF_PIXEL:
        return p->size[a] == 1 ? 0 : resize_divided(p, (double)i + 0.5, scale) - 0.5;
    case RESIZE_CROP_AND_RESIZE: {
        const double span = p->end[a] - p->begin[a];
        if (length == 1) return (p->begin[a] + p->end[a]) * (size - 1) / 2;
        return p->begin[a] * (size - 1) + (double)i * span * (size - 1) / (length - 1);
    }
    case RESIZE_HALF_PIXEL_SYMMETRIC:
        return size / 2 * (1 - (double)p->size[a] / length) +
               resize_divided(p, (double)i + 0.5, scale) - 0.5;
    default: return resize_divided(p, (double)i + 0.5, scale) - 0.5;
    }
}

/* Weight of a cubic interpolation with coefficient a at distance x. */
static inline double resize_cubic(double x, double a) {
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    return 0;
}

/* The input place nearest to x, by the plan's rounding, which may lie outside the input. */
static inline int64_t resize_nearest(const resize_plan *p, double x) {
    const double base = floor(x), part = x - base;
    int up = 0;
    if (part != 0) {
        if (p->rounding == 0) up = part > 0.5;
        else if (p->rounding == 1) up = part >= 0.5;
        else up = p->rounding == 3;
    }
    return (int64_t)base + up;
}

/* `at` limited to the places of an axis, [0, in) */
static inline int64_t resize_inside(int64_t at, int64_t in) {
    return at < 0 ? 0 : at >= in ? in - 1 : at;
}

/* taps receives the n taps of output place i of axis a, which has `in` places of `stride`
 * elements. */
static inline void resize_fill(const resize_plan *p, int32_t a, int64_t i, int64_t in,
                               int64_t stride, int64_t n, resize_tap *taps) {
    const double x = resize_source(p, a, i, in);
    const int identity = p->scale[a] == 1 && p->size[a] == in && p->grid != RESIZE_CROP_AND_RESIZE;
    double sum = 0;
    if (p->grid == RESIZE_CROP_AND_RESIZE && !(x >= 0 && x <= (double)in - 1)) {
        taps[0].at = -1;
        return;
    }
    if (identity || p->mode == RESIZE_NEAREST) {
        taps[0] =
            (resize_tap){resize_inside(identity ? i : resize_nearest(p, (double)(float)x), in) *
                             stride,
                         1};
        return;
    }
    const double scale = p->antialias && p->scale[a] < 1 ? p->scale[a] : 1;
    const int64_t first = (int64_t)floor(x) - n / 2 + 1;
    for (int64_t k = 0; k < n; k++) {
        const double d = ((double)(first + k) - x) * scale;
        double w = p->mode == RESIZE_LINEAR ? fmax(0, 1 - fabs(d)) : resize_cubic(d, p->a);
        if (p->exclude && (first + k < 0 || first + k >= in)) w = 0;
        taps[k] = (resize_tap){resize_inside(first + k, in) * stride, w};
        sum += w;
    }
    for (int64_t k = 0; k < n && sum != 0; k++) taps[k].weight /= sum;
}

#endif
