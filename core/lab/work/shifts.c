/* Shifts of biases: added to the float net's biases before it is quantised. */
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

cnr_status cnri_apply_shifts(const cnri_calibration *c, cnr_graph *g, const bool *wanted,
                             cnr_error *err) {
    for (int32_t i = 0; c->shifts && i < c->net->nodes.n; i++) {
        const cnr_value v = wanted[i] && c->shifts[i] ? cnri_bias_of(g, g->nodes.at[i]) : -1;
        if (v < 0) continue;
        cnri_value *value = &g->values.at[v];
        float *own = cnri_alloc((size_t)value->type->bytes + 1);
        if (!own) return cnri_out_of_memory(err, "quantize");
        for (int64_t k = 0; k < value->type->dim[0]; k++)
            own[k] = ((const float *)value->type->data)[k] + (float)c->shifts[i][k];
        if (!value->borrowed) cnri_free(value->type->data);
        value->type->data = own;
        value->borrowed = false;
        value->seal = NULL; /* the data is no longer the file's */
    }
    return CNR_OK;
}

void cnri_add_off(cnri_answer *a, const cnr_tensor *value, int64_t k, double off) {
    const int64_t inner = cnr_span(value, 2, value->rank), channel = k / inner % value->dim[1];
    a->off[channel * 2] += off;
    a->off[channel * 2 + 1]++;
}

void cnri_shifts_free(cnri_calibration *c) {
    for (int32_t i = 0; c->shifts && i < c->net->nodes.n; i++) cnri_free(c->shifts[i]);
    cnri_free(c->shifts);
    c->shifts = NULL;
}
