/* Finds inputs that decide shapes: small ones whose data an operator must know before anything
 * runs, such as the axes of a reduction. A plan then holds for their values only. */
#include "graph/graph.h"
#include "graph/parts.h"

/* True if `value` reaches, through pure nodes from index `from` on, a port whose data is needed for
 * planning. */
static bool reaches(const cnr_graph *g, cnr_value value, int32_t from) {
    for (int32_t i = from; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        const cnr_op *op = node->view.desc;
        for (int32_t k = 0; k < node->view.n_inputs; k++) {
            if (node->in[k] != value) continue;
            cnr_port port_buffer;
            const cnr_port *port = cnri_port_of(op, op->inputs, op->n_inputs, k, &port_buffer);
            if (port && port->flags & CNR_PORT_CONST) return true;
            if (!(op->flags & CNR_OP_PURE)) continue;
            for (int32_t o = 0; o < node->view.n_outputs; o++)
                if (node->view.outputs[o]->rank <= 1 && reaches(g, node->out[o], i + 1))
                    return true;
        }
    }
    return false;
}

bool cnri_value_decides_shapes(const cnr_graph *g, cnr_value value) {
    return g->values.at[value].type->rank <= 1 && reaches(g, value, 0);
}
