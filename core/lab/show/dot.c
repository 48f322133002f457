/* Prints a graph in the DOT language of Graphviz. */
#include "show/show.h"

/* Writes a quoted name; characters with a meaning in DOT are escaped. */
static void quoted(cnri_text *out, const char *text) {
    cnri_text_add(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') cnri_text_add(out, "\\");
        cnri_text_add(out, "%c", *text == '\n' ? ' ' : *text);
    }
    cnri_text_add(out, "\"");
}

/* Writes the label "FIRST | SECOND", quoted for DOT. */
static void labelled(cnri_text *out, const char *first, const char *second) {
    cnri_text t = {0};
    cnri_text_add(&t, "%s | %s", first, second);
    quoted(out, t.at ? t.at : "");
    cnri_text_free(&t);
}

/* Writes the edge from the producer of value `v`, or from the input itself, to node `to`. */
static void edge(const cnr_graph *g, cnr_value v, const char *to, cnri_text *out) {
    cnri_text type = {0};
    cnri_type_print(g, g->values.at[v].type, &type);
    const int32_t producer = g->values.at[v].producer;
    if (producer >= 0) cnri_text_add(out, "  n%d -> %s [label=", producer, to);
    else cnri_text_add(out, "  v%d -> %s [label=", v, to);
    quoted(out, type.at ? type.at : "");
    cnri_text_add(out, "];\n");
    cnri_text_free(&type);
}

void cnri_graph_dot(const cnr_graph *g, cnri_text *out) {
    cnri_text_add(out, "digraph ");
    quoted(out, g->name);
    cnri_text_add(out, " {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (int32_t i = 0; i < g->inputs.n; i++) {
        cnri_text_add(out, "  v%d [shape=ellipse, label=", g->inputs.at[i]);
        quoted(out, g->values.at[g->inputs.at[i]].name);
        cnri_text_add(out, "];\n");
    }
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        char to[32];
        snprintf(to, sizeof to, "n%d", i);
        cnri_text_add(out, "  %s [label=", to);
        labelled(out, node->name, node->view.desc->name);
        cnri_text_add(out, "];\n");
        /* Only values that nodes compute are drawn; weights would hide the net. */
        for (int32_t k = 0; k < node->view.n_inputs; k++) {
            const cnr_value v = node->in[k];
            if (v >= 0 && (g->values.at[v].producer >= 0 || g->values.at[v].is_input))
                edge(g, v, to, out);
        }
    }
    for (int32_t i = 0; i < g->outputs.n; i++) {
        char to[32];
        snprintf(to, sizeof to, "o%d", i);
        cnri_text_add(out, "  %s [shape=ellipse, label=", to);
        quoted(out, g->outputs.names[i]);
        cnri_text_add(out, "];\n");
        const cnr_value v = g->outputs.at[i];
        if (g->values.at[v].producer >= 0 || g->values.at[v].is_input) edge(g, v, to, out);
    }
    cnri_text_add(out, "}\n");
}
