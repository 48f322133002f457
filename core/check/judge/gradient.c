/* Gradients: the graph that the hook builds, run by references, against differences of the
 * operator's own reference along drawn directions. */
#include "judge/judge.h"
#include "graph/graph.h"
#include <math.h>

/* Most elements: with more, every difference step would cross a corner of the function
 * somewhere, so nothing could be judged. */
enum { DIRECTIONS = 14, SINGLES = 8, FEW = 11, MANY = 32, MAX_ELEMENTS = 1 << 14 };
static const uint64_t most_bytes = (uint64_t)64 << 20, most_work = 1 << 20;

/* An operator's gradient, compared with differences. */
typedef struct gradient {
    cnri_case c;
    cnr_graph *graph;
    void **data; /* by value of the graph */
    cnr_value in[CNRI_CHECK_PORTS], out[CNRI_CHECK_PORTS];
    cnr_value grad_out[CNRI_CHECK_PORTS], grad_in[CNRI_CHECK_PORTS];
    int32_t want[CNRI_CHECK_PORTS];
    /* Weight of each output element in the sum whose derivative is taken. */
    double *weight[CNRI_CHECK_PORTS];
    bool holes; /* some outputs are NaN or infinite */
    cnri_dice dice;
} gradient;

/* ---- the case, in doubles where the operator takes them ---- */

/* Makes a case in 64-bit floats from a draft. False: it can't be judged. */
static bool build(gradient *g, const cnri_draft *from) {
    static cnri_draft d; /* large; a worker has one thread */
    cnr_error err = CNR_ERROR_INIT;
    cnr_cost cost = {0};
    cnr_port port;
    d = *from;
    d.specials = false; /* differences of NaN tell nothing */
    for (int32_t i = 0; i < d.n_in; i++)
        if (cnri_dtype_floats(d.in[i].dtype)) d.in[i].dtype = CNR_f64;
    for (int32_t i = 0; i < d.op->n_attrs && i < CNRI_CHECK_ATTRS; i++) {
        cnr_attr_spec room;
        const cnr_attr_spec *row = cnri_spec_at(d.op->attrs, d.op->attr_spec_size, i, &room);
        if (row->type == CNR_ATTR_DTYPE && cnri_dtype_floats((int32_t)d.attrs[i].i))
            d.attrs[i].i = CNR_f64;
    }
    if (cnri_case_build(&g->c, &d, false, &err)) {
        cnri_case_free(&g->c);
        d = *from;
        d.specials = false;
        if (cnri_case_build(&g->c, &d, false, &err)) return false;
    }
    if (CNRI_HAS(d.op, cost)) d.op->cost(&g->c.node, &cost);
    if (cost.macs + cost.flops > most_work) return false;
    for (int32_t i = 0; i < g->c.node.n_inputs; i++) {
        const cnr_tensor *x = g->c.inputs[i];
        if (!x) continue;
        if (x->dtype == CNR_f16 || x->dtype == CNR_bf16 || cnr_count(x) > MAX_ELEMENTS)
            return false;
        const bool label = d.op->flags & CNR_OP_LOSS && i > 0;
        g->want[i] =
            !label && cnri_dtype_floats(x->dtype) && from->in[i].values != CNRI_VALUES_LIST &&
            !(cnri_check_port(d.op, i, &port)->flags & (CNR_PORT_STATISTIC | CNR_PORT_CONST));
    }
    for (int32_t i = 0; i < g->c.node.n_outputs; i++)
        if (g->c.out[i].flags & CNR_TENSOR_DYNAMIC || cnr_count(&g->c.out[i]) > MAX_ELEMENTS)
            return false;
    return true;
}

/* Moves inputs off the grid on which values are drawn, where corners and ties lie. */
static void jitter(gradient *g) {
    for (int32_t i = 0; i < g->c.node.n_inputs; i++) {
        cnr_tensor *x = &g->c.in[i];
        if (!g->c.inputs[i] || !g->want[i]) continue;
        for (int64_t k = 0; k < cnr_count(x); k++) {
            const double by = (double)cnri_dice_below(&g->dice, 1 << 20) / (1 << 20) - 0.5;
            cnri_element_set(x->dtype, x->data, k,
                             cnri_element(x->dtype, x->data, k) + by * 0x1p-8);
        }
    }
}

/* ---- the graph of node and gradient ---- */

/* True if the output is a statistic, which has no gradient. */
static bool is_statistic(const cnr_op *op, int32_t output) {
    cnr_port port = {0};
    const char *rows = (const char *)op->outputs;
    if (output >= op->n_outputs) output = op->n_outputs - 1; /* the last one repeats */
    const size_t size = op->port_size < sizeof port ? op->port_size : sizeof port;
    memcpy(&port, rows + (size_t)output * op->port_size, size);
    return (port.flags & CNR_PORT_STATISTIC) != 0;
}

/* Draws the weights of an output's elements in the weighted sum, and adds its gradient as an input;
 * false: it failed. */
static bool weigh_output(gradient *g, int32_t i) {
    const cnr_tensor *y = &g->c.out[i];
    const int64_t n = cnr_count(y);
    char name[32];
    g->grad_out[i] = -1;
    if (!cnri_dtype_floats(y->dtype) || is_statistic(g->c.node.desc, i)) return true;
    cnr_tensor type = *y;
    type.flags = 0;
    type.data = NULL;
    snprintf(name, sizeof name, "dy%d", (int)i);
    g->grad_out[i] = cnri_graph_input(g->graph, name, &type);
    g->weight[i] = cnri_alloc((size_t)(n + 1) * sizeof(double));
    for (int64_t k = 0; g->weight[i] && k < n; k++)
        g->weight[i][k] = (double)(cnri_dice_below(&g->dice, 4096) - 2048) / 1024;
    return g->weight[i] != NULL && g->grad_out[i] >= 0;
}

/* The weighted sum of the outputs; *size: the sum of absolute values. NaN: the reference failed. */
static double sum(gradient *g, double *size) {
    cnr_tensor *outs[CNRI_CHECK_PORTS];
    cnr_error err = CNR_ERROR_INIT;
    double total = 0;
    *size = 0;
    for (int32_t i = 0; i < g->c.node.n_outputs; i++) outs[i] = &g->c.out[i];
    if (cnri_judge_call(&g->c.node, outs, &err)) return NAN;
    for (int32_t i = 0; i < g->c.node.n_outputs; i++)
        for (int64_t k = 0; g->weight[i] && k < cnr_count(outs[i]); k++) {
            if (g->weight[i][k] == 0) continue;
            const double v = g->weight[i][k] * cnri_element(outs[i]->dtype, outs[i]->data, k);
            total += v;
            *size += fabs(v);
        }
    return total;
}

/* Gives outputs that are NaN or infinite the weight 0; false if nothing is left to judge. */
static bool weigh_numbers(gradient *g) {
    double size;
    bool any = false;
    sum(g, &size);
    for (int32_t i = 0; i < g->c.node.n_outputs; i++)
        for (int64_t k = 0; g->weight[i] && k < cnr_count(&g->c.out[i]); k++)
            if (isfinite(cnri_element(g->c.out[i].dtype, g->c.out[i].data, k))) any = true;
            else {
                g->weight[i][k] = 0;
                g->holes = true;
            }
    return any;
}

/* Builds the graph of the gradient by the operator's hook. False: it failed. */
static bool compose(gradient *g, cnr_error *err) {
    const cnr_node *node = &g->c.node;
    const cnr_op *op = node->desc;
    const cnr_attr *given[CNRI_CHECK_ATTRS];
    int32_t n = 0;
    char name[32];
    g->graph = cnri_graph_new("gradient");
    if (!g->graph) return false;
    g->graph->renames = true;
    for (int32_t i = 0; i < node->n_inputs; i++) {
        g->in[i] = -1;
        if (!g->c.inputs[i]) continue;
        snprintf(name, sizeof name, "x%d", (int)i);
        cnr_tensor type = g->c.in[i];
        if (type.flags & CNR_TENSOR_CONST) g->in[i] = cnri_graph_constant(g->graph, name, &type);
        else {
            type.data = NULL;
            g->in[i] = cnri_graph_input(g->graph, name, &type);
        }
    }
    for (int32_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i]->set) given[n++] = node->attrs[i];
    cnr_status status = cnri_graph_node(g->graph, op->name, "node", NULL, g->in, node->n_inputs,
                                        given, n, g->out, node->n_outputs);
    for (int32_t i = 0; i < node->n_outputs && !status; i++)
        if (!weigh_output(g, i)) status = CNR_E_MEMORY;
    if (!status && !weigh_numbers(g)) {
        cnri_fail(err, CNR_E_UNSUPPORTED, NULL, "nothing can be told of no numbers");
        return false;
    }
    if (status || g->graph->problems.n) {
        cnri_graph_status(g->graph, false, err);
        return false;
    }
    for (int32_t i = 0; i < node->n_inputs; i++) {
        g->grad_in[i] = -1;
        if (g->in[i] >= 0 || g->graph->nodes.at[0]->in[i] < 0) continue;
        cnri_fail(err, CNR_E_UNSUPPORTED, NULL,
                  "the graph made weights of which the case has none");
        return false;
    }
    status = op->gradient(&cnri_host, g->graph, &g->graph->nodes.at[0]->view, g->in, g->out,
                          g->grad_out, g->want, g->grad_in, err);
    if (!status && (g->graph->problems.n || g->graph->out_of_memory))
        status = cnri_graph_status(g->graph, false, err) ? CNR_E_ARG : CNR_E_STATE;
    return status == CNR_OK;
}

/* ---- running it ---- */

/* Sets what is known before the run: inputs, constants, and gradients of the outputs. */
static void seed(gradient *g) {
    for (int32_t v = 0; v < g->graph->values.n; v++) g->data[v] = g->graph->values.at[v].type->data;
    for (int32_t i = 0; i < g->c.node.n_inputs; i++)
        if (g->in[i] >= 0) g->data[g->in[i]] = g->c.in[i].data;
}

/* Computes a node of that graph by its reference. False: it failed. */
static bool run_node(gradient *g, const cnri_node *node, cnr_error *err) {
    cnr_tensor in[64], out[16], *outs[16];
    const cnr_tensor *seen_in[64], *seen_out[16];
    cnr_node view = node->view;
    if (view.n_inputs > 64 || view.n_outputs > 16) return false;
    for (int32_t i = 0; i < view.n_inputs; i++) {
        seen_in[i] = NULL;
        if (node->in[i] < 0) continue;
        in[i] = *g->graph->values.at[node->in[i]].type;
        in[i].data = g->data[node->in[i]];
        in[i].bytes = cnr_dense_bytes(&in[i]);
        seen_in[i] = &in[i];
    }
    for (int32_t i = 0; i < view.n_outputs; i++) {
        out[i] = *g->graph->values.at[node->out[i]].type;
        out[i].bytes = cnr_dense_bytes(&out[i]);
        if (cnr_count(&out[i]) < 0 || out[i].bytes > most_bytes) return false;
        out[i].data = g->data[node->out[i]] = cnri_alloc((size_t)out[i].bytes + 1);
        if (!out[i].data) return false;
        seen_out[i] = outs[i] = &out[i];
    }
    view.inputs = seen_in;
    view.outputs = seen_out;
    return cnri_judge_call(&view, outs, err) == CNR_OK;
}

/* Computes the whole graph. False: it failed. */
static bool evaluate(gradient *g, cnr_error *err) {
    bool good = true;
    const size_t n = (size_t)g->graph->values.n;
    g->data = cnri_alloc_zero((n + 1) * sizeof *g->data);
    if (!g->data) return false;
    seed(g);
    for (int32_t i = 0; i < g->c.node.n_outputs && good; i++) {
        const cnr_tensor *y = &g->c.out[i];
        if (g->grad_out[i] < 0) continue;
        void *dy = g->data[g->grad_out[i]] = cnri_alloc((size_t)cnr_dense_bytes(y) + 1);
        for (int64_t k = 0; dy && k < cnr_count(y); k++)
            cnri_element_set(y->dtype, dy, k, g->weight[i][k]);
        good = dy != NULL;
    }
    for (int32_t i = 0; i < g->graph->nodes.n && good; i++)
        good = run_node(g, g->graph->nodes.at[i], err);
    return good;
}

/* Frees the graph, the case and all data of a gradient's judgement. */
static void free_all(gradient *g) {
    for (int32_t v = 0; g->data && v < g->graph->values.n; v++) {
        const cnri_value *value = &g->graph->values.at[v];
        bool own = value->producer >= 0;
        for (int32_t i = 0; i < g->c.node.n_outputs; i++) own = own || g->grad_out[i] == v;
        if (own) cnri_free(g->data[v]);
    }
    cnri_free(g->data);
    if (g->graph) cnri_graph_free(g->graph);
    for (int32_t i = 0; i < CNRI_CHECK_PORTS; i++) cnri_free(g->weight[i]);
    cnri_case_free(&g->c);
}

/* ---- differences ---- */

/* A direction in which an input is changed. */
typedef struct direction {
    int32_t port;
    int64_t first; /* index of the only changed element, or of the first */
    double *by;    /* change of each element, mostly 0 */
} direction;

/* The weighted sum of outputs after a step of length h; *size: sum of absolute values. */
static double step_along(gradient *g, const direction *d, const double *from, double h,
                         double *size) {
    cnr_tensor *x = &g->c.in[d->port];
    for (int64_t k = 0; k < cnr_count(x); k++)
        cnri_element_set(x->dtype, x->data, k, from[k] + h * d->by[k]);
    return sum(g, size);
}

/* Estimates the derivative *out from differences, and how far it can be off, *doubt, which is large
 * at corners. False: either is not finite. */
static bool derive(gradient *g, const direction *d, const double *from, double *out,
                   double *doubt) {
    const bool wide = g->c.in[d->port].dtype == CNR_f64;
    const double h = wide ? 1e-5 : 8e-3, e = wide ? 0x1p-52 : 0x1p-23;
    double size, up, down, near_up, near_down;
    const double here = step_along(g, d, from, 0, &size);
    up = step_along(g, d, from, h, &size);
    down = step_along(g, d, from, -h, &size);
    near_up = step_along(g, d, from, h / 4, &size);
    near_down = step_along(g, d, from, -h / 4, &size);
    step_along(g, d, from, 0, &size);
    const double coarse = (up - down) / (2 * h), fine = (near_up - near_down) / (h / 2);
    const double corner = fabs(near_up - 2 * here + near_down) / (h / 4);
    *out = fine;
    *doubt =
        2 * fabs(coarse - fine) + corner + 64 * e * (size + fabs(here)) / h + 1e-5 * fabs(fine);
    return isfinite(fine) && isfinite(*doubt);
}

/* Draws a direction: one element, a few, or many. */
static void draw_direction(gradient *g, int32_t number, direction *d) {
    const int64_t n = cnr_count(&g->c.in[d->port]);
    const int64_t many = number < SINGLES ? 1 : number < FEW ? 6 : n < MANY ? n : MANY;
    memset(d->by, 0, (size_t)n * sizeof *d->by);
    d->first = cnri_dice_below(&g->dice, n);
    for (int64_t k = 0; k < many; k++) {
        const int64_t at = many == n ? k : k == 0 ? d->first : cnri_dice_below(&g->dice, n);
        d->by[at] = cnri_dice_chance(&g->dice, 50) ? 1 : -1;
    }
    if (many == 1) d->by[d->first] = 1;
}

/* The derivative along the direction, computed from the gradient that the operator's hook gives; 0:
 * the hook gives none. */
static double hook_says(const gradient *g, const direction *d) {
    const cnr_tensor *x = &g->c.in[d->port];
    const cnr_value v = g->grad_in[d->port];
    double total = 0;
    if (v < 0) return 0;
    const cnr_tensor *type = g->graph->values.at[v].type;
    for (int64_t k = 0; k < cnr_count(x); k++)
        if (d->by[k] != 0) total += d->by[k] * cnri_element(type->dtype, g->data[v], k);
    return total;
}

/* Compares the gradient of one input with differences in several directions; false, with why.
 * *judged: some could be compared. `from` keeps the input's numbers meanwhile. */
static bool judge_port(gradient *g, int32_t port, direction *d, double *from, bool *judged,
                       cnri_text *why) {
    const cnr_tensor *x = &g->c.in[port];
    const int64_t n = cnr_count(x);
    cnr_port row;
    d->port = port;
    for (int64_t k = 0; k < n; k++) from[k] = cnri_element(x->dtype, x->data, k);
    for (int32_t number = 0; number < DIRECTIONS && n > 0; number++) {
        double want, doubt;
        draw_direction(g, number, d);
        if (!derive(g, d, from, &want, &doubt)) continue;
        const double got = hook_says(g, d), most = fmax(fabs(got), fabs(want));
        if (g->holes && !isfinite(got)) continue;
        if (doubt >= most && most > 0) continue; /* nothing can be told */
        *judged = true;
        if (fabs(got - want) <= doubt) continue;
        cnri_text_add(why,
                      "the gradient of input %d (%s) along %s %lld: %.9g, differences say %.9g",
                      (int)port, cnri_check_port(g->c.node.desc, port, &row)->name,
                      number < SINGLES ? "element" : "a direction through", (long long)d->first,
                      got, want);
        if (g->grad_in[port] < 0) cnri_text_add(why, "; the hook gave none");
        return false;
    }
    return true;
}

/* True if gradients have the types and shapes of their inputs. */
static bool right_types(const gradient *g, cnri_text *why) {
    for (int32_t i = 0; i < g->c.node.n_inputs; i++) {
        if (g->grad_in[i] < 0 || !g->want[i]) continue;
        const cnr_tensor *t = g->graph->values.at[g->grad_in[i]].type;
        if (cnr_same_shape(t, &g->c.in[i]) && t->dtype == g->c.in[i].dtype) continue;
        cnri_text_add(why, "the gradient of input %d is ", (int)i);
        cnri_case_type(t, why);
        cnri_text_add(why, ", the input ");
        cnri_case_type(&g->c.in[i], why);
        return false;
    }
    return true;
}

/* Judges the gradients of all inputs that are wanted; false, with why. */
static bool judge_all(gradient *g, bool *judged, cnri_text *why) {
    bool good = true;
    double *room = cnri_alloc((size_t)MAX_ELEMENTS * 2 * sizeof *room);
    direction d = {.by = room};
    if (!room) return true;
    for (int32_t i = 0; i < g->c.node.n_inputs && good; i++)
        if (g->c.inputs[i] && g->want[i])
            good = judge_port(g, i, &d, room + MAX_ELEMENTS, judged, why);
    cnri_free(room);
    return good;
}

/* Judges the gradients with respect to all inputs, or to input 0 alone (first_only). *good: none is
 * wrong, else `why` says which; *judged: one could be compared. */
static cnr_status judge_wanted(gradient *g, const cnri_draft *d, bool first_only, bool *judged,
                               bool *good, cnri_text *why) {
    cnr_error err = CNR_ERROR_INIT;
    memset(g, 0, sizeof *g);
    g->dice.state = d->data_seed ^ 0x6772616469656e74u;
    if (build(g, d)) {
        for (int32_t i = 1; i < g->c.node.n_inputs && first_only; i++) g->want[i] = 0;
        jitter(g);
        if (!compose(g, &err) || !evaluate(g, &err)) {
            *good = err.code == CNR_E_UNSUPPORTED; /* it says itself that it has none here */
            if (!*good) cnri_text_add(why, "the gradient can't be had: %s", err.text);
        } else *good = right_types(g, why) && judge_all(g, judged, why);
    }
    free_all(g);
    return err.code;
}

bool cnri_gradient_run(const cnri_draft *d, bool *judged, cnri_text *why) {
    static gradient g;
    bool good = true;
    *judged = false;
    if (d->op->flags & CNR_OP_ROUNDS) return true; /* it passes steps: no difference can tell */
    if (judge_wanted(&g, d, false, judged, &good, why) == CNR_E_UNSUPPORTED)
        judge_wanted(&g, d, true, judged, &good, why);
    return good;
}
