/* Made-up operators, registered without a plugin, and an interpreter that runs graphs by their
 * references. Tests of the rooms above graph/ use them in place of real operators. */
#ifndef CNRT_TOY_H
#define CNRT_TOY_H

#include "graph/graph.h"
#include "host/internal.h"
#include "tap.h"

/* Ports of a toy operator: these inputs, and y. */
#define TOY_PORTS(...) \
    (const cnr_port[]){__VA_ARGS__}, (const cnr_port[]) { \
        { .name = "y" } \
    }

/* Method infer: the output is like the input. */
static cnr_status toy_same(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    (void)err;
    *out[0] = (cnr_tensor){.size = sizeof(cnr_tensor),
                           .dtype = node->inputs[0]->dtype,
                           .rank = node->inputs[0]->rank};
    memcpy(out[0]->dim, node->inputs[0]->dim, sizeof out[0]->dim);
    return CNR_OK;
}

/* Method reference of relu on floats; returns CNR_OK. */
static cnr_status toy_rectify_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    const float *x = run->node->inputs[0]->data;
    float *y = run->outputs[0]->data;
    for (int64_t i = 0; i < cnr_count(run->outputs[0]); i++) y[i] = x[i] > 0 ? x[i] : 0;
    return CNR_OK;
}

/* Method reference of a copy of input 0; returns CNR_OK. */
static cnr_status toy_pass_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    memcpy(run->outputs[0]->data, run->node->inputs[0]->data, cnr_dense_bytes(run->outputs[0]));
    return CNR_OK;
}

/* ---- toy_sum: x + y + ..., any number, same shapes, any of f32 and i64 ---- */

/* Method infer of a sum: CNR_E_SHAPE unless all inputs have one shape, which is the output's. */
static cnr_status toy_sum_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    for (int32_t i = 1; i < node->n_inputs; i++)
        if (!cnr_same_shape(node->inputs[0], node->inputs[i]))
            return cnri_fail(err, CNR_E_SHAPE, node->name, "shapes differ");
    return toy_same(node, out, err);
}

/* Method reference of a sum of all inputs, element by element; returns CNR_OK. */
static cnr_status toy_sum_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    for (int64_t i = 0; i < cnr_count(run->outputs[0]); i++) {
        double sum = 0;
        for (int32_t k = 0; k < run->node->n_inputs; k++) {
            const cnr_tensor *x = run->node->inputs[k];
            sum += x->dtype == CNR_i64 ? (double)((int64_t *)x->data)[i] : ((float *)x->data)[i];
        }
        if (run->outputs[0]->dtype == CNR_i64) ((int64_t *)run->outputs[0]->data)[i] = (int64_t)sum;
        else ((float *)run->outputs[0]->data)[i] = (float)sum;
    }
    return CNR_OK;
}

/* ---- toy_linear: y = x W' + b ---- */

/* Method infer of a linear node; CNR_E_SHAPE unless x and w are matrices that fit. */
static cnr_status toy_linear_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1];
    if (x->rank != 2 || w->rank != 2 || (x->dim[1] >= 0 && x->dim[1] != w->dim[1]))
        return cnri_fail(err, CNR_E_SHAPE, node->name, "want x [n,k] and weight [m,k]");
    *out[0] = (cnr_tensor){.size = sizeof(cnr_tensor),
                           .dtype = x->dtype,
                           .rank = 2,
                           .dim = {x->dim[0], w->dim[0]}};
    return CNR_OK;
}

/* Method parameters of a linear node: gives *out the weight's or bias's shape. */
static cnr_status toy_linear_parameters(const cnr_node *node, int32_t port, cnr_tensor *out,
                                        cnr_init *init, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    if (port == 2 && !cnr_attr_int(node, "bias")) return CNR_E_NOT_FOUND;
    if (x->rank != 2 || x->dim[1] < 0)
        return cnri_fail(err, CNR_E_SHAPE, node->name, "the width of x is not known");
    *out = (cnr_tensor){.size = sizeof(cnr_tensor),
                        .dtype = CNR_f32,
                        .rank = port == 1 ? 2 : 1,
                        .dim = {cnr_attr_int(node, "out"), x->dim[1]}};
    *init = (cnr_init){port == 1 ? CNR_INIT_HE : CNR_INIT_ZERO, x->dim[1], 0};
    return CNR_OK;
}

/* Method linear of a linear node: weight is input 1, bias input 2, outputs along the weight's axis
 * 0; returns 1. */
static int32_t toy_linear_linear(const cnr_node *node, cnr_linear *out) {
    (void)node;
    *out = (cnr_linear){1, 2, 0};
    return 1;
}

/* Method reference of a linear node, x w' + bias (NULL: none); returns CNR_OK. */
static cnr_status toy_linear_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *x = run->node->inputs[0], *w = run->node->inputs[1];
    const cnr_tensor *b = run->node->inputs[2];
    for (int64_t n = 0; n < x->dim[0]; n++)
        for (int64_t m = 0; m < w->dim[0]; m++) {
            double sum = b ? ((float *)b->data)[m] : 0;
            for (int64_t k = 0; k < x->dim[1]; k++)
                sum += (double)((float *)x->data)[n * x->dim[1] + k] *
                       ((float *)w->data)[m * x->dim[1] + k];
            ((float *)run->outputs[0]->data)[n * w->dim[0] + m] = (float)sum;
        }
    return CNR_OK;
}

/* ---- toy_affine: y[:,c] = x[:,c] * scale[c] + shift[c] ---- */

/* Method channel_affine of an affine node: copies scale and shift; 0: they are no constants, one a
 * channel. */
static int32_t toy_affine_channels(const cnr_node *node, int64_t channels, float *scale,
                                   float *shift) {
    const cnr_tensor *s = node->inputs[1], *b = node->inputs[2];
    if (!s->data || !b->data || cnr_count(s) != channels) return 0;
    memcpy(scale, s->data, (size_t)channels * sizeof *scale);
    memcpy(shift, b->data, (size_t)channels * sizeof *shift);
    return 1;
}

/* Method reference of an affine node, x * scale + shift by channel; returns CNR_OK. */
static cnr_status toy_affine_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_tensor *x = run->node->inputs[0];
    const float *s = run->node->inputs[1]->data, *b = run->node->inputs[2]->data;
    for (int64_t i = 0; i < cnr_count(x); i++) {
        const int64_t c = i % x->dim[1];
        ((float *)run->outputs[0]->data)[i] = ((float *)x->data)[i] * s[c] + b[c];
    }
    return CNR_OK;
}

/* ---- toy_shape and toy_reshape ---- */

/* Method infer: the output is the input's shape. */
static cnr_status toy_shape_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0];
    *out[0] =
        (cnr_tensor){.size = sizeof(cnr_tensor), .dtype = CNR_i64, .rank = 1, .dim = {x->rank}};
    if (cnr_count(x) < 0) return CNR_OK;
    int64_t *data = cnri_alloc((size_t)x->rank * sizeof *data + 1);
    if (!data) return cnri_fail(err, CNR_E_MEMORY, node->name, "out of memory");
    memcpy(data, x->dim, (size_t)x->rank * sizeof *data);
    out[0]->data = data;
    return CNR_OK;
}

/* Method infer of a reshape by a constant input. */
static cnr_status toy_reshape_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    const cnr_tensor *x = node->inputs[0], *shape = node->inputs[1];
    if (!shape->data) return CNR_OK; /* the type stays unknown */
    cnr_tensor t = {.size = sizeof t, .dtype = x->dtype, .rank = (int32_t)cnr_count(shape)};
    memcpy(t.dim, shape->data, (size_t)t.rank * sizeof(int64_t));
    if (cnr_count(x) >= 0 && cnr_count(x) != cnr_count(&t))
        return cnri_fail(err, CNR_E_SHAPE, node->name, "element counts differ");
    *out[0] = t;
    return CNR_OK;
}

/* ---- toy_window: has spatial attributes and an enumeration; toy_halves: two outputs ---- */

/* Method infer: two outputs, each half of the input. */
static cnr_status toy_halves_infer(const cnr_node *node, cnr_tensor *const *out, cnr_error *err) {
    if (node->inputs[0]->rank < 1) return cnri_fail(err, CNR_E_SHAPE, node->name, "a scalar");
    for (int32_t i = 0; i < 2; i++) {
        *out[i] = *node->inputs[0];
        out[i]->data = NULL;
        out[i]->flags = 0;
        out[i]->quant = NULL;
        if (out[i]->dim[0] >= 0) out[i]->dim[0] /= 2;
    }
    return CNR_OK;
}

/* Method reference: cuts the input in two. */
static cnr_status toy_halves_run(const cnr_run *run, cnr_error *err) {
    (void)err;
    const uint64_t bytes = cnr_dense_bytes(run->outputs[0]);
    memcpy(run->outputs[0]->data, run->node->inputs[0]->data, bytes);
    memcpy(run->outputs[1]->data, (char *)run->node->inputs[0]->data + bytes, bytes);
    return CNR_OK;
}

static const char *const toy_modes[] = {"near", "far", NULL};
static const cnr_attr_spec toy_window_attrs[] = {
    {.name = "kernel",
     .type = CNR_ATTR_INTS,
     .flags = CNR_ATTR_REQUIRED | CNR_ATTR_SPATIAL | CNR_ATTR_BOUNDED,
     .min = 1,
     .max = 100,
     .help = "extent"},
    {.name = "mode", .type = CNR_ATTR_ENUM, .choices = toy_modes, .default_s = "near"},
    {.name = "label", .type = CNR_ATTR_STRING},
    {.name = "weights", .type = CNR_ATTR_FLOATS},
    {.name = "alpha", .type = CNR_ATTR_FLOAT, .default_f = 0.5},
    {.name = "to", .type = CNR_ATTR_DTYPE},
};
static const cnr_attr_spec toy_linear_attrs[] = {
    {.name = "out",
     .type = CNR_ATTR_INT,
     .flags = CNR_ATTR_BOUNDED,
     .min = 1,
     .max = 1e6,
     .default_i = 1},
    {.name = "bias", .type = CNR_ATTR_BOOL, .default_i = 1},
};

/* A toy operator. */
#define TOY(n, version_, flags_, n_in, infer_, run_, ...) \
    { \
        .size = sizeof(cnr_op), .version = version_, .name = n, .summary = "made up", \
        .flags = flags_, .attr_spec_size = sizeof(cnr_attr_spec), .port_size = sizeof(cnr_port), \
        .n_inputs = n_in, .n_outputs = 1, .infer = infer_, .reference = run_, __VA_ARGS__ \
    }

static const cnr_port toy_x[] = {{.name = "x"}, {.name = "y"}};
static const cnr_port toy_many[] = {{.name = "x", .flags = CNR_PORT_VARIADIC, .min = 1}};
static const cnr_port toy_y[] = {{.name = "y"}, {.name = "z"}};
static const cnr_port toy_linear_ports[] = {{.name = "x"},
                                            {.name = "weight", .flags = CNR_PORT_PARAMETER},
                                            {.name = "bias",
                                             .flags = CNR_PORT_PARAMETER | CNR_PORT_OPTIONAL}};
static const cnr_port toy_affine_ports[] = {{.name = "x"}, {.name = "scale"}, {.name = "shift"}};
static const cnr_port toy_reshape_ports[] = {{.name = "x"},
                                             {.name = "shape", .flags = CNR_PORT_CONST}};

static const cnr_op toy_ops[] = {
    TOY("toy_rectify", 1, CNR_OP_PURE | CNR_OP_ELEMENTWISE | CNR_OP_EPILOGUE, 1, toy_same,
        toy_rectify_run, .inputs = toy_x, .outputs = toy_y),
    TOY("toy_pass", 1, CNR_OP_PURE | CNR_OP_PASS, 1, toy_same, toy_pass_run, .inputs = toy_x,
        .outputs = toy_y),
    TOY("toy_sum", 1, CNR_OP_PURE, 1, toy_sum_infer, toy_sum_run, .inputs = toy_many,
        .outputs = toy_y),
    TOY("toy_linear", 3, CNR_OP_PURE, 3, toy_linear_infer, toy_linear_run,
        .inputs = toy_linear_ports, .outputs = toy_y, .attrs = toy_linear_attrs, .n_attrs = 2,
        .parameters = toy_linear_parameters, .linear = toy_linear_linear),
    TOY("toy_affine", 1, CNR_OP_PURE, 3, toy_same, toy_affine_run, .inputs = toy_affine_ports,
        .outputs = toy_y, .channel_affine = toy_affine_channels),
    TOY("toy_shape", 1, CNR_OP_PURE, 1, toy_shape_infer, toy_pass_run, .inputs = toy_x,
        .outputs = toy_y),
    TOY("toy_reshape", 1, CNR_OP_PURE, 2, toy_reshape_infer, toy_pass_run,
        .inputs = toy_reshape_ports, .outputs = toy_y),
    TOY("toy_window", 1, CNR_OP_PURE, 1, toy_same, toy_pass_run, .inputs = toy_x, .outputs = toy_y,
        .attrs = toy_window_attrs, .n_attrs = 6),
    {.size = sizeof(cnr_op),
     .version = 1,
     .name = "toy_halves",
     .summary = "made up",
     .flags = CNR_OP_PURE,
     .port_size = sizeof(cnr_port),
     .n_inputs = 1,
     .n_outputs = 2,
     .inputs = toy_x,
     .outputs = toy_y,
     .infer = toy_halves_infer,
     .reference = toy_halves_run},
};

__attribute__((unused)) static void toy_register(int32_t kind, const void *descriptor) {
    static const cnri_plugin plugin = {.name = (char *)"toy", .version = (char *)"1"};
    struct cnr_registrar r = {.plugin = &plugin, .open = true};
    if (cnri_registrar_add(&r, kind, descriptor) != CNR_OK || cnri_registry_commit(&r) != CNR_OK)
        ok(0, "a descriptor registers");
    cnri_registrar_free(&r);
}

__attribute__((unused)) static void toy_begin(void) {
    cnri_graph_install(cnri_host_mutable());
    for (size_t i = 0; i < CNRI_COUNT(toy_ops); i++) toy_register(CNR_KIND_OPERATOR, &toy_ops[i]);
}

/* ---- shorthands ---- */

__attribute__((unused)) static cnr_tensor toy_type(int32_t dtype, int32_t rank,
                                                   const int64_t *dim) {
    cnr_tensor t = {.size = sizeof t, .dtype = dtype, .rank = rank};
    for (int32_t i = 0; i < rank; i++) t.dim[i] = dim[i];
    return t;
}
/* A type of this dtype and these sizes. */
#define TOY_TYPE(dtype, ...) \
    toy_type(dtype, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
             (const int64_t[]){__VA_ARGS__})

__attribute__((unused)) static cnr_value toy_input(cnr_graph *g, const char *name,
                                                   cnr_tensor type) {
    return cnri_graph_input(g, name, &type);
}

__attribute__((unused)) static cnr_value toy_const(cnr_graph *g, const char *name, cnr_tensor type,
                                                   const void *data) {
    type.data = (void *)data;
    return cnri_graph_constant(g, name, &type);
}

/* A node of one output; -1 ends the inputs. */
#define TOY_NODE(g, op, name, attrs, n_attrs, ...) \
    toy_node(g, op, name, attrs, n_attrs, (const cnr_value[]){__VA_ARGS__}, \
             (int32_t)(sizeof((cnr_value[]){__VA_ARGS__}) / sizeof(cnr_value)))
__attribute__((unused)) static cnr_value toy_node(cnr_graph *g, const char *op, const char *name,
                                                  const cnr_attr *const *attrs, int32_t n_attrs,
                                                  const cnr_value *in, int32_t n_in) {
    cnr_value out = -1;
    cnri_graph_node(g, op, name, "net:1", in, n_in, attrs, n_attrs, &out, 1);
    return out;
}

/* ---- the interpreter ---- */

/* Output 0 of a bound graph for inputs (host data), as new memory; NULL when something failed. */
__attribute__((unused)) static float *toy_run(cnr_graph *g, const float *const *inputs,
                                              int64_t *count) {
    cnr_error err = CNR_ERROR_INIT;
    void **made = calloc((size_t)g->values.n + 1, sizeof *made);
    float *result = NULL;
    for (int32_t i = 0; i < g->inputs.n; i++)
        g->values.at[g->inputs.at[i]].type->data = (void *)inputs[i];
    bool good = true;
    for (int32_t i = 0; i < g->nodes.n && good; i++) {
        cnri_node *node = g->nodes.at[i];
        for (int32_t k = 0; k < node->view.n_outputs; k++) {
            cnr_tensor *t = g->values.at[node->out[k]].type;
            if (t->data) continue;
            t->data = made[node->out[k]] = malloc(cnr_dense_bytes(t) + 1);
        }
        const cnr_run run = {.size = sizeof run,
                             .range_axis = -1,
                             .node = &node->view,
                             .outputs = (cnr_tensor *const *)node->view.outputs};
        good = node->view.desc->reference(&run, &err) == CNR_OK;
    }
    const cnr_tensor *out = g->values.at[g->outputs.at[0]].type;
    if (good && out->data) {
        *count = cnr_count(out);
        result = malloc(cnr_dense_bytes(out) + 1);
        memcpy(result, out->data, cnr_dense_bytes(out));
    }
    for (int32_t i = 0; i < g->inputs.n; i++) g->values.at[g->inputs.at[i]].type->data = NULL;
    for (int32_t i = 0; i < g->values.n; i++) {
        if (!made[i]) continue;
        g->values.at[i].type->data = NULL;
        free(made[i]);
    }
    free(made);
    return result;
}

__attribute__((unused)) static bool toy_close(const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float d = a[i] - b[i], m = a[i] < 0 ? -a[i] : a[i];
        if (!(d <= 1e-5f * (1 + m) && d >= -1e-5f * (1 + m))) return false;
    }
    return true;
}

#endif
