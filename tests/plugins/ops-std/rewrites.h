/* Nets that are run with rewrites and without, for tests of rewrites with the real operators. */
#ifndef CNRT_REWRITES_H
#define CNRT_REWRITES_H

#include "run/run.h"
#include "tap.h"
#include <math.h>

static cnr_runtime *rt;

/* Adds a weight at random. */
static inline cnr_value weight(cnr_graph *g, const char *name, int32_t rank, const int64_t *dim,
                               double low, double high) {
    static uint64_t state = 3;
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = rank};
    memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
    const int64_t n = cnr_count(&t);
    if (n < 1 || n > 4096) return -1;
    float *data = calloc(4096, sizeof *data);
    for (int64_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        data[i] = (float)(low + (high - low) * (double)(state >> 11) * 0x1p-53);
    }
    t.data = data;
    const cnr_value v = cnri_graph_constant(g, name, &t);
    free(data);
    return v;
}
/* A shape and its rank. */
#define DIMS(...) \
    (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[]) { __VA_ARGS__ }

/* Adds a node of n inputs. */
static inline cnr_value node(cnr_graph *g, const char *op, int32_t n, const cnr_value *in,
                             const cnr_attr *attr) {
    cnr_value out = -1;
    cnri_graph_node(g, op, NULL, NULL, in, n, &attr, attr ? 1 : 0, &out, 1);
    return out;
}
/* Adds a node of these inputs. */
#define NODE(g, op, attr, ...) \
    node(g, op, (int32_t)(sizeof((cnr_value[]){__VA_ARGS__}) / sizeof(cnr_value)), \
         (const cnr_value[]){__VA_ARGS__}, attr)

static const cnr_attr no_bias = {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1, .i = 0};

/* Adds a batch normalisation. */
static inline cnr_value affine(cnr_graph *g, const char *name, cnr_value x, int64_t c) {
    static const char *const parts[] = {"scale", "shift", "mean", "var"};
    cnr_value in[5] = {x};
    for (int i = 0; i < 4; i++) {
        char full[32];
        snprintf(full, sizeof full, "%s.%s", name, parts[i]);
        in[1 + i] = weight(g, full, DIMS(c), i == 3 ? .5 : -1, 2);
    }
    return node(g, "batch_normalization", 5, in, NULL);
}

/* Begins a net; *x receives its input. */
static inline cnr_graph *begin(cnr_value *x) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 4, .dim = {2, 4, 5, 5}};
    *x = cnri_graph_input(g, "x", &t);
    return g;
}

/* Of the graph that was compared last, with all rewrites: inputs of its clips, normalisations;
 * taps of its convolutions. */
static int32_t clip_inputs, norms, gathers, scaled, named, taps;

/* Counts the operators of a net. */
static inline void look(const cnr_graph *g) {
    clip_inputs = norms = gathers = scaled = named = taps = 0;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnr_node *node = &g->nodes.at[i]->view;
        for (int32_t k = 0; k < node->n_inputs && strcmp(node->desc->name, "clip") == 0; k++)
            clip_inputs += node->inputs[k] != NULL;
        const int32_t before = node->n_inputs ? g->values.at[g->nodes.at[i]->in[0]].producer : -1;
        scaled += strcmp(node->desc->name, "mul") == 0 && before >= 0 &&
                  strcmp(g->nodes.at[before]->view.desc->name, "matmul") == 0;
        named += strcmp(node->name, "matmul_1") == 0 || strcmp(node->name, "window") == 0;
        gathers += strcmp(node->desc->name, "gather") == 0;
        norms += strcmp(node->desc->name, "layer_normalization") == 0;
        if (strcmp(node->desc->name, "conv") == 0)
            taps += (int32_t)(node->inputs[1]->dim[2] * node->inputs[1]->dim[3]);
    }
}

/* Runs the graph with all rewrites and with none; they agree, and `nodes` are left. */
static inline void compare(cnr_graph *g, cnr_value y, int32_t nodes, const char *what) {
    static const char *const off[] = {"remove-dead",
                                      "remove-identity",
                                      "fold-constants",
                                      "fold-affine",
                                      "merge-transposes",
                                      "einsum-to-matmul",
                                      "fuse-activations",
                                      "clip-limits",
                                      "fuse-normalization",
                                      "gather-to-slice",
                                      "drop-copies",
                                      "drop-neutral",
                                      "scale-products",
                                      "trim-taps",
                                      "fold-pads",
                                      "fuse-rms",
                                      "merge-branches",
                                      "spread-row-norms",
                                      NULL};
    cnr_error err = CNR_ERROR_INIT;
    float input[200], *kept = NULL;
    int64_t n = 0;
    double worst = 0;
    cnri_graph_output(g, y, "y");
    for (int i = 0; i < 200; i++) input[i] = (float)sin(0.37 * i);
    const cnr_tensor in = {.size = sizeof in,
                           .dtype = CNR_f32,
                           .rank = 4,
                           .dim = {2, 4, 5, 5},
                           .data = input,
                           .bytes = sizeof input};
    for (int round = 0; round < 2; round++) {
        cnr_graph *copy = cnri_graph_copy(g);
        const cnr_load_options o = {.size = sizeof o, .no_rewrite = round ? off : NULL};
        cnr_model *model = NULL;
        cnr_plan *plan = NULL;
        const cnr_tensor *inputs[] = {&in}, *outputs[1] = {NULL};
        cnr_status status = cnri_model_from_graph(rt, copy, &o, &model, &err);
        if (!status) status = cnr_run_tensors(model, inputs, 1, outputs, 1, &err);
        if (!status) status = cnr_plan_for(model, NULL, 0, &plan, &err);
        if (status) {
            ok(0, "%s", what);
            note("%s: %s", err.where, err.text);
        } else {
            if (!round) is_int(plan->graph->nodes.n, nodes, what);
            if (!round) look(plan->graph);
            n = cnr_count(outputs[0]);
            if (!kept) kept = calloc(4096, sizeof *kept);
            for (int64_t i = 0; i < n; i++) {
                const float v = ((const float *)outputs[0]->data)[i];
                if (!round) kept[i] = v;
                else if (!(fabs(v - kept[i]) <= worst)) worst = fabs(v - kept[i]);
            }
        }
        if (model) cnr_release(model);
    }
    ok(n > 0 && worst < 1e-4, "%s: the outputs stay (%g)", what, worst);
    free(kept);
    cnri_graph_free(g);
}

/* Adds a transpose. */
static inline cnr_value transpose(cnr_graph *g, cnr_value x, int64_t a, int64_t b, int64_t c,
                                  int64_t d) {
    const cnr_attr perm = {.name = "perm",
                           .type = CNR_ATTR_INTS,
                           .set = 1,
                           .n = 4,
                           .ints = (const int64_t[]){a, b, c, d}};
    return NODE(g, "transpose", &perm, x);
}

/* Adds a constant number. */
static inline cnr_value number(cnr_graph *g, double value) {
    static int count;
    char name[16];
    float data = (float)value;
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 0, .data = &data};
    snprintf(name, sizeof name, "k%d", count++);
    return cnri_graph_constant(g, name, &t);
}
/* Adds a constant number. */
#define N(value) number(g, value)
/* Adds a product. */
#define MUL(a, b) NODE(g, "mul", NULL, a, b)
/* Adds a quotient. */
#define DIV(a, b) NODE(g, "div", NULL, a, b)
/* Adds a sum. */
#define ADD(a, b) NODE(g, "add", NULL, a, b)
/* Adds an operator of one input. */
#define OF(op, a) NODE(g, op, NULL, a)

/* Adds a mean over axes. */
static inline cnr_value mean_over(cnr_graph *g, cnr_value x, int32_t n, const int64_t *axes) {
    const cnr_attr rows = {.name = "axes", .type = CNR_ATTR_INTS, .set = 1, .n = n, .ints = axes};
    return NODE(g, "reduce_mean", &rows, x);
}
/* Adds a mean over these axes. */
#define MEAN(x, ...) \
    mean_over(g, x, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (const int64_t[]){__VA_ARGS__})
/* Adds a difference. */
#define SUB(a, b) NODE(g, "sub", NULL, a, b)
/* Adds a square. */
#define SQUARED(x) NODE(g, "pow", NULL, x, N(2))

/* Opens the runtime with the plugins of the build; 0: it failed, and a test says so. */
static inline int open_runtime(void) {
    const char *const dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options o = {.size = sizeof o, .plugin_dirs = dirs, .no_default_dirs = 1};
    cnr_error err = CNR_ERROR_INIT;
    if (!cnr_open(&rt, &o, &err)) return 1;
    ok(0, "a runtime opens: %s", err.text);
    return 0;
}

#endif
