/* Conversions of a net between floats and whole numbers of 8 bits. */
#include "work/work.h"

/* True for tensors of 8-bit integers; booleans have 8 bits, too, but are none. */
static bool is_whole(const cnr_tensor *t) {
    return t && (t->dtype == CNR_u8 || t->dtype == CNR_i8);
}

int32_t cnri_converts(const cnri_node *node) {
    if (node->view.n_inputs < 1 || node->view.n_outputs < 1 || !node->view.inputs[0]) return 0;
    return is_whole(node->view.outputs[0]) - is_whole(node->view.inputs[0]);
}

/* Counts the conversions of a net to or from 8 bits, and the pairs: one to 8 bits right behind one
 * from 8 bits. */
cnri_conversions cnri_conversions_of(const cnr_graph *g) {
    cnri_conversions out = {0};
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        if (!cnri_converts(node)) continue;
        const int32_t before = g->values.at[node->in[0]].producer;
        out.n++;
        out.pairs +=
            cnri_converts(node) > 0 && before >= 0 && cnri_converts(g->nodes.at[before]) < 0;
    }
    return out;
}
