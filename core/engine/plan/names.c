/* What tells of a step and a node: names, work, parameters. */
#include "plan/plan.h"

uint64_t cnri_node_macs(const cnr_node *node) {
    cnr_cost cost = {0, 0};
    if (CNRI_HAS(node->desc, cost)) node->desc->cost(node, &cost);
    return cost.macs;
}

double cnri_stored_share(const cnr_node *node) {
    double part = 1;
    for (int32_t i = 0; i < node->n_inputs; i++) {
        const cnr_tensor *t = node->inputs[i];
        const int64_t n = t && t->encoding && t->data ? cnr_count(t) : 0;
        const cnr_encoding *e =
            n > 0 ? cnri_descriptor_find(CNR_KIND_ENCODING, cnri_name(t->encoding)) : NULL;
        if (e && CNRI_HAS(e, stored_count)) part *= (double)e->stored_count(t) / (double)n;
    }
    return part;
}

/* True if the value is neither an input nor computed. */
static bool is_weight(const cnr_graph *g, cnr_value v) {
    return v >= 0 && g->values.at[v].producer < 0 && !g->values.at[v].is_input;
}

/* Row of the port that input `i` belongs to; NULL when the operator has none. */
static const cnr_port *port_of(const cnr_op *op, int32_t i) {
    const size_t bytes = op->port_size ? op->port_size : sizeof(cnr_port);
    const int32_t row = i < op->n_inputs ? i : op->n_inputs - 1;
    return row < 0 ? NULL : (const cnr_port *)((const char *)op->inputs + (size_t)row * bytes);
}

uint64_t cnri_node_params(const cnr_graph *g, int32_t node, bool *seen) {
    const cnri_node *n = g->nodes.at[node];
    uint64_t sum = 0;
    for (int32_t i = 0; i < n->view.n_inputs; i++) {
        const cnr_value v = n->in[i];
        const cnr_port *port = port_of(n->view.desc, i);
        if (!is_weight(g, v) || seen[v] || !port) continue;
        if ((port->flags & (CNR_PORT_PARAMETER | CNR_PORT_STATISTIC)) != CNR_PORT_PARAMETER)
            continue;
        seen[v] = true;
        sum += (uint64_t)cnr_count(g->values.at[v].type);
    }
    return sum;
}

/* Name of the step's operator, or "(copy)" or "(layout)" for the core's own steps. */
static const char *group_of(const cnr_plan *plan, int32_t step) {
    const cnri_step *s = &plan->steps.at[step];
    switch (s->kind) {
    case CNRI_STEP_COPY: return "(copy)";
    case CNRI_STEP_LAYOUT: return "(layout)";
    case CNRI_STEP_KERNEL: break;
    }
    return s->view.desc->name;
}

/* Name of a step: that of its node, or of the value that it moves. The plan owns it. */
static const char *label_of(const cnr_plan *plan, int32_t step) {
    const cnri_step *s = &plan->steps.at[step];
    const int32_t home = s->from >= 0 ? s->from : s->n_out > 0 ? s->out[0] : -1;
    if (s->kind == CNRI_STEP_KERNEL && s->view.name) return s->view.name;
    const char *name = home >= 0 ? plan->graph->values.at[plan->homes.at[home].value].name : NULL;
    return name ? name : "";
}

/* Name of a step's kernel; "(reference)" without one, "" for a copy. */
static const char *kernel_of(const cnri_step *s) {
    if (s->kind != CNRI_STEP_KERNEL) return "";
    return s->kernel ? s->kernel->name : "(reference)";
}

cnri_step_names cnri_step_names_of(const cnr_plan *plan, int32_t step) {
    const cnri_step *s = &plan->steps.at[step];
    return (cnri_step_names){label_of(plan, step), group_of(plan, step), kernel_of(s),
                             plan->devices[s->device]->name};
}
