/* Implementation of element-wise operators of one operand (unary.h). */
#include "unary.h"

#include "broadcast.h"

const cnr_port unary_inputs[1] = {{.name = "x", .help = "any shape"}};
const cnr_port unary_outputs[1] = {{.name = "y", .help = "the shape of x"}};
const cnr_port unary_grad_inputs[2] = {
    {.name = "v", .help = "input or output of the forward operator"},
    {.name = "dy", .help = "gradient of its output"},
};

/* Values of the named attributes, in this order; missing ones are 0. */
static unary_coef coefficients(const cnr_node *node, const char *const *names) {
    double values[3] = {0, 0, 0};
    for (int i = 0; i < 3 && names[i]; i++) {
        const cnr_attr *a = cnr_attr_find(node, names[i]);
        if (a) values[i] = a->type == CNR_ATTR_FLOAT ? a->f : (double)a->i;
    }
    return (unary_coef){values[0], values[1], values[2]};
}

/* Method infer with the row's types: the output has the input's shape, and its type or bool. */
cnr_status unary_infer(const cnr_node *node, const unary_row *row, cnr_tensor *const *out,
                       cnr_error *err) {
    CNR_TRY(kit_dtype(node, 0, row->dtypes, err));
    ops_like(out[0], node->inputs[0]);
    if (row->to_bool) out[0]->dtype = CNR_bool;
    return CNR_OK;
}

/* Method reference: the row's formula over the run's range. */
cnr_status unary_reference(const cnr_run *run, const unary_row *row, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const unary_coef k = coefficients(run->node, row->coef);
    elem_domain domain = elem_domain_of(x->dtype);
    if ((domain == ELEM_I && !row->i64) || (domain == ELEM_U && !row->u64)) domain = ELEM_F;
    broadcast_walk w;
    (void)err;
    if (!broadcast_begin(&w, run, run->node->inputs, 1)) return CNR_OK;
    do {
        elem_run in, out;
        broadcast_load(&w, 0, x, domain, &in);
        if (domain == ELEM_F) row->f64(in.f, out.f, w.run, k);
        else if (domain == ELEM_I) row->i64(in.i, out.i, w.run, k);
        else row->u64(in.u, out.u, w.run, k);
        elem_store(y->dtype, y->data, w.out, w.run, domain, &out);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* Computes n elements by the row's f32 loop. */
void unary_apply(const cnr_node *node, const unary_row *row, const float *x, float *out,
                 int64_t n) {
    row->f32(x, out, n, coefficients(node, row->coef));
}

/* Method expression: the OpenCL formula with the attributes' values; its length, or -1. Replaces
 * "$a" by the coefficient's bits, so neither locale nor rounding matters. */
int32_t unary_expression(const cnr_node *node, const unary_row *row, char *text, size_t bytes) {
    const unary_coef k = coefficients(node, row->coef);
    const float values[3] = {(float)k.a, (float)k.b, (float)k.c};
    static const char digits[] = "0123456789abcdef";
    size_t used = 0;
    if (!row->opencl) return -1;
    for (const char *p = row->opencl; *p; p++) {
        char word[32] = {*p, 0};
        if (*p == '$') {
            uint32_t bits;
            memcpy(&bits, &values[*++p - 'a'], sizeof bits);
            memcpy(word, "as_float(0x00000000u)", 22);
            for (int i = 0; i < 8; i++) word[18 - i] = digits[bits >> (4 * i) & 15];
        }
        const size_t length = strlen(word);
        if (used + length + 1 > bytes) return -1;
        memcpy(text + used, word, length + 1);
        used += length;
    }
    return (int32_t)used;
}

/* Method gradient: a node NAME_grad of input or output and the output's gradient. */
cnr_status unary_gradient(const cnr_host *host, struct cnr_graph *graph, const cnr_node *node,
                          const unary_row *row, const cnr_value *inputs, const cnr_value *outputs,
                          const cnr_value *grad_out, const int32_t *want, cnr_value *grad_in) {
    const cnr_value in[] = {row->grad_of_y ? outputs[0] : inputs[0], grad_out[0]};
    if (!want[0] || grad_out[0] < 0) return CNR_OK;
    return host->graph_node(graph, row->grad, NULL, NULL, in, 2, node->attrs, node->n_attrs,
                            &grad_in[0], 1);
}

/* Method infer of the gradient: both inputs are floats that broadcast to one shape. */
cnr_status unary_grad_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    CNR_TRY(kit_dtype(node, 0, OPS_FLOATS, err));
    CNR_TRY(kit_dtype(node, 1, OPS_FLOATS, err));
    CNR_TRY(kit_broadcast(node, 0, 2, out[0], err));
    out[0]->dtype = node->inputs[1]->dtype;
    return CNR_OK;
}

/* Method reference of the gradient. */
cnr_status unary_grad_reference(const cnr_run *run, const unary_grad_row *row) {
    const cnr_tensor *v = run->node->inputs[0], *dy = run->node->inputs[1], *dx = run->outputs[0];
    const unary_coef k = coefficients(run->node, row->coef);
    broadcast_walk w;
    if (!broadcast_begin(&w, run, run->node->inputs, 2)) return CNR_OK;
    do {
        elem_run vs, dys, out;
        broadcast_load(&w, 0, v, ELEM_F, &vs);
        broadcast_load(&w, 1, dy, ELEM_F, &dys);
        row->f64(vs.f, dys.f, out.f, w.run, k);
        elem_store(dx->dtype, dx->data, w.out, w.run, ELEM_F, &out);
    } while (broadcast_next(&w));
    return CNR_OK;
}

/* out[i] = dy[i] times the function's derivative at v[i], for n elements, with the node's
 * coefficients. */
void unary_grad_apply(const cnr_node *node, const unary_grad_row *row, const float *v,
                      const float *dy, float *out, int64_t n) {
    row->f32(v, dy, out, n, coefficients(node, row->coef));
}
