/* Rounded weights and shifts of biases, which the float net gets before it is quantised. */
#include "work/calibrate.h"

cnr_value cnri_bias_of(const cnr_graph *g, const cnri_node *node) {
    cnr_linear ports;
    if (!CNRI_HAS(node->view.desc, linear) || node->view.desc->linear(&node->view, &ports) != 1)
        return -1;
    const int32_t port = ports.bias_port;
    const cnr_value v = port >= 0 && port < node->view.n_inputs ? node->in[port] : -1;
    const cnr_tensor *t = v >= 0 ? g->values.at[v].type : NULL;
    return t && t->rank == 1 && t->dtype == CNR_f32 && !t->encoding && t->data &&
                   t->flags & CNR_TENSOR_CONST && g->values.at[v].uses == 1
               ? v
               : -1;
}

/* Replaces a constant by `data`, which it owns then. */
static void replace_data(cnri_value *value, float *data) {
    if (!value->borrowed) cnri_free(value->type->data);
    value->type->data = data;
    value->borrowed = false;
    value->seal = NULL; /* the data is no longer the file's */
}

/* Gives the net's weight a copy of the rounded weights, which it owns; false: out of memory. */
static bool give_weights(cnr_graph *g, const cnri_rounded *rounded) {
    cnri_value *value = &g->values.at[rounded->w];
    float *own = cnri_alloc((size_t)value->type->bytes + 1);
    if (!own) return false;
    memcpy(own, rounded->weights, (size_t)value->type->bytes);
    replace_data(value, own);
    return true;
}

/* Gives the net's bias v, by row, a copy of itself with `shift` and `more` added, which it owns;
 * either may be NULL. False: out of memory. */
static bool shift_bias(cnr_graph *g, cnr_value v, const double *shift, const double *more) {
    cnri_value *value = &g->values.at[v];
    float *own = cnri_alloc((size_t)value->type->bytes + 1);
    if (!own) return false;
    for (int64_t k = 0; k < value->type->dim[0]; k++)
        own[k] = ((const float *)value->type->data)[k] +
                 (float)((shift ? shift[k] : 0) + (more ? more[k] : 0));
    replace_data(value, own);
    return true;
}

cnr_status cnri_apply_shifts(const cnri_calibration *c, cnr_graph *g, const bool *wanted,
                             cnr_error *err) {
    for (int32_t i = 0; i < c->net->nodes.n; i++) {
        const cnri_rounded *rounded = c->rounded && c->rounded[i].weights ? &c->rounded[i] : NULL;
        const double *shift = c->shifts ? c->shifts[i] : NULL;
        if (!wanted[i] || (!rounded && !shift)) continue;
        const cnr_value bias = cnri_bias_of(g, g->nodes.at[i]);
        if (rounded && !give_weights(g, rounded)) return cnri_out_of_memory(err, "quantize");
        if (bias >= 0 && !shift_bias(g, bias, shift, rounded ? rounded->shift : NULL))
            return cnri_out_of_memory(err, "quantize");
    }
    return CNR_OK;
}

void cnri_add_off(cnri_answer *a, const cnr_tensor *value, int64_t k, double off) {
    const int64_t inner = cnr_span(value, 2, value->rank), channel = k / inner % value->dim[1];
    a->off[channel * 2] += off;
    a->off[channel * 2 + 1]++;
}

/* Frees the shifts of all nodes. */
void cnri_shifts_free(cnri_calibration *c) {
    for (int32_t i = 0; c->shifts && i < c->net->nodes.n; i++) cnri_free(c->shifts[i]);
    cnri_free(c->shifts);
    c->shifts = NULL;
}

void cnri_rounded_free(cnri_calibration *c) {
    for (int32_t i = 0; c->rounded && i < c->net->nodes.n; i++) {
        cnri_free(c->rounded[i].weights);
        cnri_free(c->rounded[i].shift);
    }
    cnri_free(c->rounded);
    c->rounded = NULL;
}
