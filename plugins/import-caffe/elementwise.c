/* Element-wise layers. */
#include "layer.h"

#include <stdio.h>

void caffe_relu(caffe_job *j) {
    const double slope = j->layer->relu_param ? (double)j->layer->relu_param->negative_slope : 0;
    imp_attrs l = {.n = 0};
    if (slope != 0) imp_float(&l, "alpha", slope);
    caffe_give(j, 0, caffe_node(j, slope != 0 ? "leaky_relu" : "relu", "", j->in, 1, &l));
}

void caffe_relu6(caffe_job *j) {
    imp_attrs l = {.n = 0};
    imp_float(&l, "min", 0);
    imp_float(&l, "max", 6);
    caffe_give(j, 0, caffe_node(j, "clip", "", j->in, 1, &l));
}

void caffe_prelu(caffe_job *j) {
    const int shared = j->layer->prelu_param && j->layer->prelu_param->channel_shared;
    const cnr_tensor *x = caffe_type(j, j->in[0]);
    const int64_t c = caffe_channels(j);
    if (j->failed) return;
    int64_t dim[CNR_MAX_RANK] = {shared ? 1 : c, 1, 1, 1, 1, 1, 1};
    const cnr_value slope = caffe_blob(j, 0, ".slope", dim, shared ? 1 : x->rank - 1, 1);
    if (j->failed) return;
    caffe_give(j, 0, caffe_node(j, "prelu", "", (cnr_value[]){j->in[0], slope}, 2, NULL));
}

void caffe_elu(caffe_job *j) {
    imp_attrs l = {.n = 0};
    imp_float(&l, "alpha", j->layer->elu_param ? (double)j->layer->elu_param->alpha : 1.0);
    caffe_give(j, 0, caffe_node(j, "elu", "", j->in, 1, &l));
}

void caffe_simple(caffe_job *j) { caffe_give(j, 0, caffe_node(j, j->op, "", j->in, 1, NULL)); }

void caffe_power(caffe_job *j) {
    const Caffe__PowerParameter *p = j->layer->power_param;
    cnr_value y = caffe_affine(j, j->in[0], p ? (double)p->scale : 1, p ? (double)p->shift : 0);
    if (p && p->power != 1)
        y = caffe_node(j, "pow", "", (cnr_value[]){y, caffe_scalar(j, (double)p->power)}, 2, NULL);
    caffe_give(j, 0, y);
}

void caffe_exponential(caffe_job *j) { /* Exp: base ^ (shift + scale * x); Log is its inverse */
    const Caffe__ExpParameter *e = j->layer->exp_param;
    const Caffe__LogParameter *g = j->layer->log_param;
    if (strcmp(j->layer->type, "Exp") == 0) {
        cnr_value y = caffe_affine(j, j->in[0], e ? (double)e->scale : 1, e ? (double)e->shift : 0);
        if (e && e->base_ > 0)
            y = caffe_node(j, "pow", "", (cnr_value[]){caffe_scalar(j, (double)e->base_), y}, 2,
                           NULL);
        else y = caffe_node(j, "exp", "", &y, 1, NULL);
        return caffe_give(j, 0, y);
    }
    cnr_value y = caffe_affine(j, j->in[0], g ? (double)g->scale : 1, g ? (double)g->shift : 0);
    y = caffe_node(j, "log", g && g->base_ > 0 ? ".natural" : "", &y, 1, NULL);
    if (g && g->base_ > 0) {
        const cnr_value base = caffe_scalar(j, (double)g->base_);
        const cnr_value unit = caffe_node(j, "log", ".base", &base, 1, NULL);
        y = caffe_node(j, "div", "", (cnr_value[]){y, unit}, 2, NULL);
    }
    caffe_give(j, 0, y);
}

void caffe_eltwise(caffe_job *j) {
    const Caffe__EltwiseParameter *p = j->layer->eltwise_param;
    const int kind = p ? (int)p->operation : CAFFE__ELTWISE_PARAMETER__ELTWISE_OP__SUM;
    const char *op = kind == CAFFE__ELTWISE_PARAMETER__ELTWISE_OP__PROD  ? "mul"
                     : kind == CAFFE__ELTWISE_PARAMETER__ELTWISE_OP__MAX ? "max"
                                                                         : "add";
    const int weighted = p && p->n_coeff > 0 && *op == 'a';
    if (weighted && (int32_t)p->n_coeff != j->n_in)
        return caffe_problem(j, "one coeff a bottom is wanted");
    cnr_value y = weighted ? caffe_affine(j, j->in[0], (double)p->coeff[0], 0) : j->in[0];
    for (int32_t i = 1; i < j->n_in; i++) {
        char suffix[24] = "";
        if (i + 1 < j->n_in) snprintf(suffix, sizeof suffix, ".part%d", (int)i);
        cnr_value x = j->in[i];
        if (weighted && p->coeff[i] == -1) {
            y = caffe_node(j, "sub", suffix, (cnr_value[]){y, x}, 2, NULL);
            continue;
        }
        if (weighted && p->coeff[i] != 1) {
            char factor[32];
            snprintf(factor, sizeof factor, ".weighted%d", (int)i);
            x = caffe_node(j, "mul", factor, (cnr_value[]){x, caffe_scalar(j, (double)p->coeff[i])},
                           2, NULL);
        }
        y = caffe_node(j, op, suffix, (cnr_value[]){y, x}, 2, NULL);
    }
    caffe_give(j, 0, y);
}

void caffe_axpy(caffe_job *j) { /* a * x + y, with one a for each channel */
    if (j->n_in != 3) return caffe_problem(j, "three bottoms are wanted");
    const cnr_tensor *a = caffe_type(j, j->in[0]), *x = caffe_type(j, j->in[1]);
    cnr_value factor = j->in[0];
    if (a && x && a->rank < x->rank) {
        int64_t axes[CNR_MAX_RANK], n = 0;
        for (int32_t i = a->rank; i < x->rank; i++) axes[n++] = i;
        imp_attrs l = {.n = 0};
        imp_ints(&l, "axes", axes, n);
        factor = caffe_node(j, "unsqueeze", ".factor", &factor, 1, &l);
    }
    const cnr_value product =
        caffe_node(j, "mul", ".product", (cnr_value[]){j->in[1], factor}, 2, NULL);
    caffe_give(j, 0, caffe_node(j, "add", "", (cnr_value[]){product, j->in[2]}, 2, NULL));
}

void caffe_threshold(caffe_job *j) {
    const double t = j->layer->threshold_param ? (double)j->layer->threshold_param->threshold : 0;
    const cnr_value over =
        caffe_node(j, "greater", ".over", (cnr_value[]){j->in[0], caffe_scalar(j, t)}, 2, NULL);
    imp_attrs l = {.n = 0};
    imp_dtype(&l, "to", CNR_f32);
    caffe_give(j, 0, caffe_node(j, "cast", "", &over, 1, &l));
}
