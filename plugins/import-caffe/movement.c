/* Layers that move elements: concat, slice, reshape, crop and similar. */
#include "layer.h"

#include <stdio.h>

void caffe_concat(caffe_job *j) {
    const Caffe__ConcatParameter *p = j->layer->concat_param;
    const int64_t axis = p ? (p->has_concat_dim ? (int64_t)p->concat_dim : p->axis) : 1;
    caffe_give(j, 0, imp_concat(&j->net->b, j->name, j->in, j->n_in, axis));
}

void caffe_slice(caffe_job *j) {
    const Caffe__SliceParameter *p = j->layer->slice_param;
    const int64_t axis =
        caffe_axis(j, p ? (p->has_slice_dim ? (int64_t)p->slice_dim : p->axis) : 1);
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    const size_t n = j->layer->n_top;
    int64_t sizes[CAFFE_MAX_NAMES], begin = 0;
    cnr_value out[CAFFE_MAX_NAMES];
    if (!x || axis < 0 || axis >= x->rank || x->dim[axis] < 1 || n > CAFFE_MAX_NAMES || n < 1)
        return caffe_problem(j, "axis is out of range or its size not known");
    if (p && p->n_slice_point && p->n_slice_point != n - 1)
        return caffe_problem(j, "one slice_point less than tops is wanted");
    for (size_t i = 0; i < n; i++) {
        int64_t end = x->dim[axis];
        if (i + 1 < n)
            end = p && p->n_slice_point ? (int64_t)p->slice_point[i]
                                        : x->dim[axis] / (int64_t)n * (int64_t)(i + 1);
        if (end <= begin || end > x->dim[axis]) return caffe_problem(j, "slice_point must rise");
        sizes[i] = end - begin;
        begin = end;
    }
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", axis);
    imp_ints(&l, "split", sizes, (int64_t)n);
    for (size_t i = 0; i < n; i++) out[i] = -1;
    imp_host->graph_node(j->net->b.graph, "split", j->name, j->net->b.path, j->in, 1, l.ptr, l.n,
                         out, (int32_t)n);
    for (size_t i = 0; i < n; i++) caffe_give(j, i, out[i]);
}

void caffe_split(caffe_job *j) {
    for (size_t i = 0; i < j->layer->n_top; i++) caffe_give(j, i, j->in[0]);
}

/* Gives output 0 the input in another shape. */
static void reshape_to(caffe_job *j, const int64_t *shape, int64_t n) {
    caffe_give(j, 0, imp_reshape(&j->net->b, j->name, "", j->in[0], shape, n));
}

void caffe_flatten(caffe_job *j) {
    const Caffe__FlattenParameter *p = j->layer->flatten_param;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    if (!x || x->rank < 1) {
        j->failed = 1;
        return;
    }
    const int64_t from = caffe_axis(j, p ? p->axis : 1), to = caffe_axis(j, p ? p->end_axis : -1);
    int64_t shape[CNR_MAX_RANK], n = 0;
    if (from < 0 || to < from || to >= x->rank) return caffe_problem(j, "axis is out of range");
    for (int64_t i = 0; i < from; i++) shape[n++] = 0;
    shape[n++] = -1;
    for (int64_t i = to + 1; i < x->rank; i++) {
        if (x->dim[i] < 0) return caffe_problem(j, "the sizes behind end_axis are not known");
        shape[n++] = x->dim[i];
    }
    reshape_to(j, shape, n);
}

void caffe_reshape(caffe_job *j) {
    const Caffe__ReshapeParameter *p = j->layer->reshape_param;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    int64_t shape[CNR_MAX_RANK], n = 0;
    if (!p || !p->shape) return caffe_problem(j, "shape is missing");
    if (!x) {
        j->failed = 1;
        return;
    }
    const int64_t from = p->axis < 0 ? p->axis + x->rank + 1 : p->axis;
    const int64_t to = p->num_axes < 0 ? x->rank : from + p->num_axes;
    if (from < 0 || to > x->rank || from > to) return caffe_problem(j, "axis is out of range");
    if (from + (int64_t)p->shape->n_dim + x->rank - to > CNR_MAX_RANK)
        return caffe_problem(j, "too many axes");
    for (int64_t i = 0; i < from; i++) shape[n++] = 0;
    for (size_t i = 0; i < p->shape->n_dim; i++) {
        int64_t d = p->shape->dim[i];
        /* 0 copies the axis at the same position of the reshaped part; this is our meaning too
         * while positions agree */
        if (d == 0 && n != from + (int64_t)i) d = x->dim[from + (int64_t)i];
        shape[n++] = d;
    }
    for (int64_t i = to; i < x->rank; i++) {
        if (n != i && x->dim[i] < 0)
            return caffe_problem(j, "the sizes behind num_axes are not known");
        shape[n] = n == i ? 0 : x->dim[i];
        n++;
    }
    reshape_to(j, shape, n);
}

void caffe_permute(caffe_job *j) {
    const Caffe__PermuteParameter *p = j->layer->permute_param;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    int64_t perm[CNR_MAX_RANK], n = 0;
    int seen[CNR_MAX_RANK] = {0};
    if (!p || !x) return caffe_problem(j, "order is missing");
    for (size_t i = 0; i < p->n_order; i++) {
        if ((int32_t)p->order[i] >= x->rank || seen[p->order[i]])
            return caffe_problem(j, "bad order");
        seen[p->order[i]] = 1;
        perm[n++] = p->order[i];
    }
    for (int32_t i = 0; i < x->rank; i++)
        if (!seen[i]) perm[n++] = i;
    caffe_give(j, 0, imp_transpose(&j->net->b, j->name, "", j->in[0], perm, n));
}

void caffe_crop(caffe_job *j) { /* crops to the size of bottom 1, from `axis` on */
    const Caffe__CropParameter *p = j->layer->crop_param;
    const cnr_tensor *x = caffe_type(j, j->in[0]),
                     *like = caffe_type(j, j->n_in > 1 ? j->in[1] : -1);
    const int64_t axis = caffe_axis(j, p ? p->axis : 2);
    int64_t offset[CNR_MAX_RANK], n = 0;
    if (!x || !like || axis < 0 || axis >= x->rank)
        return caffe_problem(j, "axis or bottoms do not fit");
    for (int64_t i = axis; i < x->rank; i++, n++)
        offset[n] = !p || p->n_offset == 0 ? 0
                                           : p->offset[p->n_offset == 1          ? 0
                                                       : (size_t)n < p->n_offset ? (size_t)n
                                                                                 : 0];
    imp_attrs l = {.n = 0};
    imp_int(&l, "axis", axis);
    imp_ints(&l, "offset", offset, n);
    caffe_give(j, 0, caffe_node(j, "crop", "", j->in, 2, &l));
}

void caffe_crop_center(caffe_job *j) { /* crops crop_size at both ends of each axis */
    const Caffe__CropCenterParameter *p = j->layer->crop_center_param;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    int64_t axes[CNR_MAX_RANK], from[CNR_MAX_RANK], to[CNR_MAX_RANK], n = 0;
    if (!p || !x || (int32_t)p->n_crop_size != x->rank)
        return caffe_problem(j, "one crop_size an axis is wanted");
    for (int32_t i = 0; i < x->rank; i++)
        if (p->crop_size[i]) {
            axes[n] = i;
            from[n] = p->crop_size[i];
            to[n++] = -(int64_t)p->crop_size[i];
        }
    if (n == 0) return caffe_give(j, 0, j->in[0]);
    imp_attrs l = {.n = 0};
    imp_ints(&l, "starts", from, n);
    imp_ints(&l, "ends", to, n);
    imp_ints(&l, "axes", axes, n);
    caffe_give(j, 0, caffe_node(j, "slice", "", j->in, 1, &l));
}

void caffe_tile(caffe_job *j) {
    const Caffe__TileParameter *p = j->layer->tile_param;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    const int64_t axis = caffe_axis(j, p ? p->axis : 1);
    int64_t repeats[CNR_MAX_RANK];
    if (!p || !x || axis < 0 || axis >= x->rank) return caffe_problem(j, "axis is out of range");
    for (int32_t i = 0; i < x->rank; i++) repeats[i] = i == axis ? p->tiles : 1;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "repeats", repeats, x->rank);
    caffe_give(j, 0, caffe_node(j, "tile", "", j->in, 1, &l));
}

void caffe_shuffle(caffe_job *j) {
    imp_attrs l = {.n = 0};
    imp_int(&l, "group",
            j->layer->shuffle_channel_param ? j->layer->shuffle_channel_param->group : 1);
    caffe_give(j, 0, caffe_node(j, "channel_shuffle", "", j->in, 1, &l));
}

void caffe_interpolate(caffe_job *j) { /* to given sizes, or to the size of bottom 1 */
    static const Caffe__InterpParameter none = CAFFE__INTERP_PARAMETER__INIT;
    const Caffe__InterpParameter *p = j->layer->interp_param ? j->layer->interp_param : &none;
    const cnr_tensor *x = caffe_type(j, j->in[0]), *like = caffe_type(j, j->in[j->n_in - 1]);
    int64_t sizes[2];
    if (!x || !like || x->rank != 4 || like->rank != 4)
        return caffe_problem(j, "four dimensions are wanted");
    for (int i = 0; i < 2; i++) {
        int64_t d = like->dim[2 + i];
        if (j->n_in == 1) {
            const int64_t given = i == 0 ? p->height : p->width;
            if (p->shrink_factor > 1) d = (d - 1) / p->shrink_factor + 1;
            if (p->zoom_factor > 1) d = d + (d - 1) * (p->zoom_factor - 1);
            if (given > 0) d = given;
        }
        if (like->dim[2 + i] < 1 || d < 1) return caffe_problem(j, "its sizes are not known");
        sizes[i] = d;
    }
    if (p->pad_beg || p->pad_end) return caffe_problem(j, "padding is not supported");
    imp_attrs l = {.n = 0};
    const int64_t axes[] = {2, 3};
    imp_enum(&l, "mode", "linear");
    imp_enum(&l, "coordinate_transformation_mode", "align_corners");
    imp_ints(&l, "axes", axes, 2);
    cnr_tensor t = {.size = sizeof t,
                    .dtype = CNR_i64,
                    .rank = 1,
                    .dim = {2},
                    .flags = CNR_TENSOR_CONST,
                    .data = sizes,
                    .bytes = sizeof sizes};
    char name[512];
    snprintf(name, sizeof name, "%.450s.sizes", j->name);
    const cnr_value size = imp_host->graph_constant(j->net->b.graph, name, &t);
    caffe_give(j, 0, caffe_node(j, "resize", "", (cnr_value[]){j->in[0], -1, -1, size}, 4, &l));
}

void caffe_upsample(caffe_job *j) { /* repeats each pixel in a square */
    const Caffe__UpsampleParameter *p = j->layer->upsample_param;
    const int64_t scale = p ? p->scale : 2;
    if (scale < 1) return caffe_problem(j, "scale must be above 0");
    caffe_give(j, 0, imp_upscale(&j->net->b, j->name, j->in[0], scale, 0));
}
