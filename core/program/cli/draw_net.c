/* Draws a plan: writes it as DOT text and calls the application that draws it. */
#include "cli/draw_net.h"

/* Colours: devices fill their layers, kernels frame theirs. They repeat after the last one. */
static const char *const fills[] = {"#cfe2f3", "#fce5cd", "#d9ead3",
                                    "#ead1dc", "#fff2cc", "#d9d2e9"};
static const char *const frames[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b",
                                     "#e377c2", "#7f7f7f", "#bcbd22", "#17becf", "#ff7f0e"};

typedef CNRI_VEC(const char *) names;

/* A graph that is being drawn. */
typedef struct drawing {
    const cnr_plan *plan;
    const cnr_timing *timing; /* NULL: nothing was timed */
    double total_ms;
    names devices, kernels;
    cnri_text *out;
} drawing;

/* Index of a name, which is added if it is new. */
static int32_t index_of(names *list, const char *name) {
    for (int32_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i], name) == 0) return i;
    const char **slot = cnri_push(list);
    if (slot) *slot = name;
    return list->n > 0 ? list->n - 1 : 0;
}

/* Writes a quoted name; characters with a meaning in DOT and line ends are escaped. */
static void add_name(cnri_text *out, const char *text) {
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') cnri_text_add(out, "\\");
        cnri_text_add(out, "%c", (unsigned char)*text < ' ' ? ' ' : *text);
    }
}

/* Milliseconds of a node's steps; 0: not timed. */
static double ms_of(const drawing *d, const char *node) {
    double ms = 0;
    for (int32_t i = 0; d->timing && i < d->timing->n_steps; i++)
        if (d->timing->steps[i].node && strcmp(d->timing->steps[i].node, node) == 0)
            ms += d->timing->steps[i].ms;
    return ms;
}

/* The next step of the node, from `from` on; -1: there is none. */
static int32_t step_of(const cnr_plan *plan, int32_t node, int32_t from) {
    for (int32_t s = from; s < plan->steps.n; s++)
        if (plan->steps.at[s].kind == CNRI_STEP_KERNEL && plan->steps.at[s].node == node) return s;
    return -1;
}

/* Draws a layer: colours for device and kernel, its share of the time as line width. A node
 * without a step of its own is dashed: another step computes it, or it only names memory. */
static void add_node(drawing *d, int32_t i) {
    const cnri_node *node = d->plan->graph->nodes.at[i];
    int32_t step = step_of(d->plan, i, 0);
    cnri_text_add(d->out, "  n%d [label=\"", i);
    add_name(d->out, node->name);
    cnri_text_add(d->out, "\\n");
    add_name(d->out, node->view.desc->name);
    if (step < 0) {
        cnri_text_add(d->out, "\", style=\"rounded,dashed\"];\n");
        return;
    }
    const cnri_step_names first = cnri_step_names_of(d->plan, step);
    const double ms = ms_of(d, node->name), share = d->total_ms > 0 ? ms / d->total_ms : 0;
    cnri_text_add(d->out, "\\n");
    add_name(d->out, first.kernel);
    if (d->timing) cnri_text_add(d->out, "\\n%.3f ms, %.1f%%", ms, share * 100);
    cnri_text_add(d->out, "\", color=\"%s\", fillcolor=\"",
                  frames[(size_t)index_of(&d->kernels, first.kernel) % CNRI_COUNT(frames)]);
    for (int32_t n = 0; step >= 0; n++, step = step_of(d->plan, i, step + 1))
        cnri_text_add(d->out, "%s%s", n ? ":" : "",
                      fills[(size_t)index_of(&d->devices,
                                             cnri_step_names_of(d->plan, step).device) %
                            CNRI_COUNT(fills)]);
    cnri_text_add(d->out, "\"");
    if (d->timing) cnri_text_add(d->out, ", width=%.2f", 1 + 8 * share);
    cnri_text_add(d->out, "];\n");
}

/* Appends an edge from a value to a node or output. */
static void add_edge(const drawing *d, cnr_value v, char kind, int32_t to) {
    const cnri_value *value = &d->plan->graph->values.at[v];
    if (value->producer >= 0) cnri_text_add(d->out, "  n%d", value->producer);
    else cnri_text_add(d->out, "  v%d", v);
    cnri_text_add(d->out, " -> %c%d [label=\"", kind, to);
    for (int32_t k = 0; k < value->type->rank; k++)
        cnri_text_add(d->out, "%s%lld", k ? "x" : "", (long long)value->type->dim[k]);
    cnri_text_add(d->out, " %s\"];\n", cnr_dtype_name(value->type->dtype));
}

/* True for a value that nodes compute; weights are not drawn, because they would hide the net. */
static bool flows(const cnr_graph *g, cnr_value v) {
    return v >= 0 && (g->values.at[v].producer >= 0 || g->values.at[v].is_input);
}

/* Appends an input or output. */
static void add_end(const drawing *d, char kind, int32_t i, const char *name) {
    cnri_text_add(d->out, "  %c%d [shape=ellipse, label=\"", kind, i);
    add_name(d->out, name);
    cnri_text_add(d->out, "\"];\n");
}

/* Appends the legend of devices and kernels. */
static void add_legend(const drawing *d) {
    cnri_text_add(d->out, "  subgraph cluster_legend {\n    label=\"devices and kernels\";\n");
    for (int32_t i = 0; i < d->devices.n; i++) {
        cnri_text_add(d->out, "    d%d [fillcolor=\"%s\", color=\"#ffffff\", label=\"", i,
                      fills[(size_t)i % CNRI_COUNT(fills)]);
        add_name(d->out, d->devices.at[i]);
        cnri_text_add(d->out, "\"];\n");
    }
    for (int32_t i = 0; i < d->kernels.n; i++) {
        cnri_text_add(d->out, "    k%d [fillcolor=\"#ffffff\", color=\"%s\", label=\"", i,
                      frames[(size_t)i % CNRI_COUNT(frames)]);
        add_name(d->out, d->kernels.at[i]);
        cnri_text_add(d->out, "\"];\n    %s%d -> k%d [style=invis];\n", i ? "k" : "d",
                      i ? i - 1 : 0, i);
    }
    cnri_text_add(d->out, "  }\n");
}

void cnri_plan_dot(const cnr_plan *plan, const cnr_timing *timing, cnri_text *out) {
    drawing d = {.plan = plan, .timing = timing, .out = out};
    const cnr_graph *g = plan->graph;
    for (int32_t i = 0; timing && i < timing->n_steps; i++) d.total_ms += timing->steps[i].ms;
    cnri_text_add(out, "digraph net {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", "
                       "fillcolor=\"#ffffff\", penwidth=2, fontname=\"sans-serif\"];\n"
                       "  edge [fontname=\"sans-serif\", fontsize=10];\n");
    for (int32_t i = 0; i < g->inputs.n; i++)
        add_end(&d, 'v', g->inputs.at[i], g->values.at[g->inputs.at[i]].name);
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        add_node(&d, i);
        for (int32_t k = 0; k < node->view.n_inputs; k++)
            if (flows(g, node->in[k])) add_edge(&d, node->in[k], 'n', i);
    }
    for (int32_t i = 0; i < g->outputs.n; i++) {
        add_end(&d, 'o', i, g->outputs.names[i]);
        if (flows(g, g->outputs.at[i])) add_edge(&d, g->outputs.at[i], 'o', i);
    }
    add_legend(&d);
    cnri_text_add(out, "}\n");
    cnri_vec_free(&d.devices);
    cnri_vec_free(&d.kernels);
}

/* Writes a text to a file. */
static cnr_status write_text(const char *path, const cnri_text *text, cnr_error *err) {
    cnri_writer w;
    if (text->failed) return cnri_out_of_memory(err, path);
    cnr_status status = cnri_write_begin(&w, path, 0, err);
    if (status) return status;
    status = cnri_write(&w, text->at, text->n, err);
    if (!status) return cnri_write_commit(&w, err);
    cnri_write_abandon(&w);
    return status;
}

cnr_status cnri_draw_net(const cnri_call *call, const cnri_text *dot, const char *path,
                         cnr_error *err) {
    char *beside = cnri_path_with_ending(path, ".dot");
    cnr_status status = beside ? write_text(beside, dot, err) : cnri_out_of_memory(err, path);
    if (!status && strcmp(beside, path) != 0)
        status = cnri_app_draw(call, "graph", beside, path, err);
    cnri_free(beside);
    return status;
}
