/* Reductions, and SSD's layers: prior boxes and detection output. */
#include "layer.h"

#include <stdio.h>

void caffe_arg_max(caffe_job *j) {
    const Caffe__ArgMaxParameter *p = j->layer->argmax_param;
    if (p && (p->top_k != 1 || p->out_max_val))
        return caffe_problem(j, "top_k 1 without values is wanted");
    imp_attrs l = {.n = 0};
    cnr_value x = j->in[0];
    if (!p || !p->has_axis) {
        x = caffe_node(j, "flatten", ".flat", &x, 1, NULL);
        imp_int(&l, "axis", 1);
    } else {
        imp_int(&l, "axis", p->axis);
    }
    imp_bool(&l, "keepdims", 1);
    const cnr_value index = caffe_node(j, "arg_max", ".index", &x, 1, &l);
    imp_attrs f = {.n = 0};
    imp_dtype(&f, "to", CNR_f32);
    caffe_give(j, 0, caffe_node(j, "cast", "", &index, 1, &f));
}

void caffe_reduction(caffe_job *j) {
    const Caffe__ReductionParameter *p = j->layer->reduction_param;
    static const char *const ops[] = {"reduce_sum", "reduce_sum", "reduce_l1", "reduce_sum_square",
                                      "reduce_mean"};
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    const int64_t from = caffe_axis(j, p ? p->axis : 0);
    const int kind = p ? (int)p->operation : 1;
    int64_t axes[CNR_MAX_RANK], n = 0;
    if (!x || from < 0 || kind < 0 || kind > 4)
        return caffe_problem(j, "axis or operation is wrong");
    for (int64_t i = from; i < x->rank; i++) axes[n++] = i;
    imp_attrs l = {.n = 0};
    imp_ints(&l, "axes", axes, n);
    imp_bool(&l, "keepdims", 0);
    cnr_value y = caffe_node(j, ops[kind], "", j->in, 1, &l);
    if (p && p->coeff != 1)
        y = caffe_node(j, "mul", ".scaled", (cnr_value[]){y, caffe_scalar(j, (double)p->coeff)}, 2,
                       NULL);
    caffe_give(j, 0, y);
}

/* Converts the first floats, at most 64, to doubles in `out`; returns how many. */
static int64_t to_doubles(const float *from, size_t n, double *out) {
    size_t k = 0;
    for (; k < n && k < 64; k++) out[k] = (double)from[k];
    return (int64_t)k;
}

void caffe_prior_box(caffe_job *j) {
    const Caffe__PriorBoxParameter *p = j->layer->prior_box_param;
    double min[64], max[64], ratio[64], variance[64];
    if (!p || p->n_min_size == 0) return caffe_problem(j, "min_size is missing");
    imp_attrs l = {.n = 0};
    imp_floats(&l, "min_size", min, to_doubles(p->min_size, p->n_min_size, min));
    imp_floats(&l, "max_size", max, to_doubles(p->max_size, p->n_max_size, max));
    imp_floats(&l, "aspect_ratio", ratio, to_doubles(p->aspect_ratio, p->n_aspect_ratio, ratio));
    if (p->n_variance)
        imp_floats(&l, "variance", variance, to_doubles(p->variance, p->n_variance, variance));
    imp_bool(&l, "flip", p->flip);
    imp_bool(&l, "clip", p->clip);
    imp_float(&l, "offset", (double)p->offset);
    imp_float(&l, "step_h", (double)(p->has_step_h ? p->step_h : p->step));
    imp_float(&l, "step_w", (double)(p->has_step_w ? p->step_w : p->step));
    imp_int(&l, "img_h", p->has_img_h ? p->img_h : p->img_size);
    imp_int(&l, "img_w", p->has_img_w ? p->img_w : p->img_size);
    caffe_give(j, 0, caffe_node(j, "prior_box", "", j->in, 2, &l));
}

void caffe_detection_output(caffe_job *j) {
    static const char *const codes[] = {"CORNER", "CORNER", "CENTER_SIZE", "CORNER_SIZE"};
    const Caffe__DetectionOutputParameter *p = j->layer->detection_output_param;
    if (!p || p->num_classes < 1) return caffe_problem(j, "num_classes is missing");
    imp_attrs l = {.n = 0};
    imp_int(&l, "num_classes", p->num_classes);
    imp_bool(&l, "share_location", p->share_location);
    imp_int(&l, "background_label_id", p->background_label_id);
    imp_float(&l, "nms_threshold", p->nms_param ? (double)p->nms_param->nms_threshold : 0.3);
    imp_int(&l, "top_k", p->nms_param && p->nms_param->has_top_k ? p->nms_param->top_k : -1);
    imp_float(&l, "eta", p->nms_param ? (double)p->nms_param->eta : 1.0);
    imp_enum(&l, "code_type", codes[(unsigned)p->code_type & 3]);
    imp_bool(&l, "variance_encoded_in_target", p->variance_encoded_in_target);
    imp_int(&l, "keep_top_k", p->keep_top_k);
    imp_float(&l, "confidence_threshold",
              p->has_confidence_threshold ? (double)p->confidence_threshold : -1e30);
    caffe_give(j, 0, caffe_node(j, "detection_output", "", j->in, 3, &l));
}

void caffe_dropout(caffe_job *j) { caffe_give(j, 0, caffe_node(j, "dropout", "", j->in, 1, NULL)); }
