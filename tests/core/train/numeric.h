/* Runs graphs in f64 by references, with a loss for any shape, and compares gradients with
 * differences.
 */
#ifndef CNRT_NUMERIC_H
#define CNRT_NUMERIC_H

#include "host/internal.h"
#include "train/train.h"
#include "tap.h"
#include <math.h>

/* ---- toy_loss: the sum of scores, each times a weight of its own; labels are not looked at ----
 */

static double numeric_pattern(int64_t i) { return 1 + 0.5 * sin(0.7 + 1.3 * (double)i); }
/* Method infer of a loss: one number. */
static cnr_status numeric_loss_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    (void)err;
    out[0]->dtype = node->inputs[0]->dtype;
    out[0]->rank = 0;
    return CNR_OK;
}
/* Method reference of a loss: the sum of x times a fixed pattern. */
static cnr_status numeric_loss_run(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    double sum = 0;
    (void)err;
    for (int64_t i = 0; i < cnr_count(x); i++) sum += ((double *)x->data)[i] * numeric_pattern(i);
    *(double *)run->outputs[0]->data = sum;
    return CNR_OK;
}
/* Method infer of its gradient. */
static cnr_status numeric_grad_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    (void)err;
    out[0]->dtype = node->inputs[1]->dtype;
    out[0]->rank = node->inputs[1]->rank;
    memcpy(out[0]->dim, node->inputs[1]->dim, sizeof out[0]->dim);
    return CNR_OK;
}
/* Method reference of its gradient. */
static cnr_status numeric_grad_run(const cnr_run *run, cnr_error *err) {
    const double d = *(const double *)run->node->inputs[0]->data;
    (void)err;
    for (int64_t i = 0; i < cnr_count(run->outputs[0]); i++)
        ((double *)run->outputs[0]->data)[i] = d * numeric_pattern(i);
    return CNR_OK;
}
/* Method gradient of the loss: adds toy_loss_grad of the output's gradient and input 0. */
static cnr_status numeric_gradient(const struct cnr_host *host, struct cnr_graph *graph,
                                   const cnr_node *node, const cnr_value *inputs,
                                   const cnr_value *outputs, const cnr_value *grad_out,
                                   const int32_t *want, cnr_value *grad_in, cnr_error *err) {
    const cnr_value in[] = {grad_out[0], inputs[0]};
    (void)node, (void)outputs, (void)want, (void)err;
    return host->graph_node(graph, "toy_loss_grad", NULL, NULL, in, 2, NULL, 0, grad_in, 1);
}

static const cnr_port numeric_ports[] = {{.name = "a"}, {.name = "b"}};
static const cnr_op numeric_ops[] = {
    {.size = sizeof(cnr_op),
     .version = 1,
     .name = "toy_loss",
     .summary = "made up",
     .flags = CNR_OP_LOSS,
     .port_size = sizeof(cnr_port),
     .n_inputs = 2,
     .n_outputs = 1,
     .inputs = numeric_ports,
     .outputs = numeric_ports,
     .infer = numeric_loss_infer,
     .reference = numeric_loss_run,
     .gradient = numeric_gradient},
    {.size = sizeof(cnr_op),
     .version = 1,
     .name = "toy_loss_grad",
     .summary = "made up",
     .port_size = sizeof(cnr_port),
     .n_inputs = 2,
     .n_outputs = 1,
     .inputs = numeric_ports,
     .outputs = numeric_ports,
     .infer = numeric_grad_infer,
     .reference = numeric_grad_run},
};

/* A runtime with the plugins of the build, and the operators above; NULL: it can't be opened. */
static cnr_runtime *numeric_open(void) {
    static const cnri_plugin plugin = {.name = (char *)"numeric", .version = (char *)"1"};
    const char *const dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .no_default_dirs = 1};
    cnr_runtime *rt = NULL;
    cnr_error err = CNR_ERROR_INIT;
    if (cnr_open(&rt, &options, &err) != CNR_OK) {
        ok(0, "a runtime opens: %s", err.text);
        return NULL;
    }
    struct cnr_registrar r = {.plugin = &plugin, .open = true};
    for (size_t i = 0; i < CNRI_COUNT(numeric_ops); i++)
        cnri_registrar_add(&r, CNR_KIND_OPERATOR, &numeric_ops[i]);
    if (cnri_registry_commit(&r) != CNR_OK) ok(0, "operators register");
    cnri_registrar_free(&r);
    return rt;
}

/* ---- values ---- */

static uint64_t numeric_state = 1;
/* The next number in [0, 1), at random. */
static double numeric_random(void) {
    numeric_state = numeric_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (double)(numeric_state >> 11) * 0x1p-53;
}

__attribute__((unused)) static cnr_value numeric_weight(cnr_graph *g, const char *name,
                                                        cnr_tensor type, double low, double high) {
    const int64_t n = cnr_count(&type);
    double *data = calloc((size_t)n + 1, sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = low + (high - low) * numeric_random();
    type.dtype = CNR_f64;
    type.flags = CNR_TENSOR_VARIABLE;
    type.data = data;
    const cnr_value v = cnri_graph_constant(g, name, &type);
    free(data);
    return v;
}

/* Runs every node by its reference; each output gets memory that stays with the graph. */
__attribute__((unused)) static cnr_status numeric_run(cnr_graph *g, cnr_error *err) {
    for (int32_t i = 0; i < g->nodes.n; i++) {
        cnri_node *node = g->nodes.at[i];
        const cnr_op *op = node->view.desc;
        for (int32_t k = 0; k < node->view.n_outputs; k++) {
            cnr_tensor *t = (cnr_tensor *)node->view.outputs[k];
            if (t->data && t->flags & CNR_TENSOR_CONST) continue;
            if (!t->data) t->data = cnri_alloc_zero(cnr_dense_bytes(t) + 1);
        }
        const uint64_t bytes =
            CNRI_HAS(op, reference_workspace) ? op->reference_workspace(&node->view) : 0;
        void *work = malloc(bytes + 1);
        const cnr_run run = {.size = sizeof run,
                             .range_axis = -1,
                             .node = &node->view,
                             .outputs = (cnr_tensor *const *)node->view.outputs,
                             .workspace_data = work};
        const cnr_status status = op->reference(&run, err);
        free(work);
        if (status != CNR_OK) return status;
    }
    return CNR_OK;
}

__attribute__((unused)) static double numeric_loss(cnr_graph *g, cnr_value loss) {
    cnr_error err = CNR_ERROR_INIT;
    if (numeric_run(g, &err) != CNR_OK) return NAN;
    return *(const double *)cnri_graph_type(g, loss)->data;
}

/* The gradient of each VARIABLE constant of `g` against central differences. The graph has one
 * output; it is changed. */
__attribute__((unused)) static bool numeric_check(cnr_graph *g, const char *loss_name,
                                                  const char *what) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_op *loss = NULL;
    cnri_backward b = {0};
    cnr_status status = cnri_graph_bind(g, NULL, 0, &err);
    if (status == CNR_OK) status = cnri_train_loss(loss_name, &loss, &err);
    const int32_t n_forward = g->values.n;
    if (status == CNR_OK) status = cnri_train_backward(g, loss, NULL, &b, &err);
    if (status == CNR_OK) {
        for (int32_t i = 0; i < g->inputs.n; i++) { /* labels */
            cnr_tensor *t = g->values.at[g->inputs.at[i]].type;
            if (!t->data) t->data = cnri_alloc_zero(cnr_dense_bytes(t) + 1);
            for (int64_t k = 0; k < cnr_count(t) && t->dtype == CNR_i32; k++)
                ((int32_t *)t->data)[k] = (int32_t)(k % 2);
        }
        status = numeric_run(g, &err);
    }
    if (status != CNR_OK) {
        ok(0, "%s", what);
        note("%s: %s", err.where, err.text);
        return false;
    }
    double worst = 0;
    int64_t checked = 0;
    for (cnr_value v = 0; v < n_forward; v++) {
        cnri_value *value = &g->values.at[v];
        if (value->producer >= 0 || value->is_input) continue;
        if (!(value->type->flags & CNR_TENSOR_VARIABLE)) continue;
        const double *gradient = NULL;
        for (int32_t i = 0; i < b.weights.n; i++)
            if (b.weights.at[i].weight == v)
                gradient = cnri_graph_type(g, b.weights.at[i].gradient)->data;
        const int64_t n = cnr_count(value->type);
        if (n < 0 || n > 4096) continue;
        double *copy = calloc(4096, sizeof *copy);
        for (int64_t i = 0; i < n; i++) copy[i] = gradient ? gradient[i] : 0;
        double *x = value->type->data;
        for (int64_t i = 0; i<n; i += n> 60 ? 7 : 1) {
            const double kept = x[i], h = 1e-6;
            x[i] = kept + h;
            const double above = numeric_loss(g, b.loss);
            x[i] = kept - h;
            const double below = numeric_loss(g, b.loss);
            x[i] = kept;
            const double want = (above - below) / (2 * h);
            const double off = fabs(want - copy[i]) / (1 + fabs(want));
            if (!(off <= worst)) worst = off;
            checked++;
        }
        free(copy);
    }
    cnri_backward_free(&b);
    const bool good = ok(checked > 0 && worst < 5e-6, "%s", what);
    if (!good) note("%lld elements, worst difference %g", (long long)checked, worst);
    return good;
}

#endif
