/* Converts If: only the branch of a known condition, or both with a selection between their
 * results. Loops are refused. */
#include "onnx.h"

enum { MAX_DEPTH = 8 }; /* bound on nested branches */

/* Unpacks the branch in attribute `name`; values point into the message, so the net keeps it until
 * the import ends. NULL: failed. */
static Onnx__GraphProto *unpacked(onnx_job *j, const char *name) {
    const Onnx__AttributeProto *a = onnx_proto(j, name);
    onnx_branch *b = (onnx_branch *)imp_host->alloc(sizeof *b);
    if (!b) {
        j->net->imp.status = CNR_E_MEMORY;
        return NULL;
    }
    b->graph =
        a && a->has_g ? onnx__graph_proto__unpack(&onnx_allocator, a->g.len, a->g.data) : NULL;
    b->next = j->net->branches;
    j->net->branches = b;
    if (!b->graph) onnx_problem(j, "its %s is missing or damaged", name);
    else if (b->graph->n_output != (size_t)j->n_out)
        onnx_problem(j, "its %s gives another number of values", name);
    return j->failed ? NULL : b->graph;
}

/* 1 if the branch gives a tensor without elements, as exporters write for an empty input (no box
 * found). The other branch gives the same then. */
static int gives_nothing(const Onnx__GraphProto *g) {
    if (g->n_node != 1 || g->n_output != 1 || g->n_initializer) return 0;
    const Onnx__NodeProto *n = g->node[0];
    if (!n->op_type || strcmp(n->op_type, "Constant") != 0 || n->n_attribute != 1) return 0;
    const Onnx__TensorProto *t = n->attribute[0]->t;
    for (size_t i = 0; t && i < t->n_dims; i++)
        if (t->dims[i] == 0) return 1;
    return 0;
}

/* Converts the nodes of a branch; out: its outputs. */
static void take(onnx_job *j, const Onnx__GraphProto *g, cnr_value *out) {
    j->net->depth++;
    onnx_initializers(j->net, g);
    onnx_nodes(j->net, g);
    j->net->depth--;
    for (int32_t i = 0; i < j->n_out; i++) {
        const char *name = g->output[i]->name ? g->output[i]->name : "";
        if (!onnx_names_get(&j->net->values, name, &out[i]))
            onnx_problem(j, "no node of its branch gives \"%s\"", name);
        else if (out[i] < 0) j->failed = 1; /* reported already */
    }
}

/* Selects between the results of both branches, which are both computed, since nodes have no side
 * effects; results must have the same types. */
static void choose(onnx_job *j, const cnr_value *yes, const cnr_value *no) {
    for (int32_t i = 0; i < j->n_out; i++) {
        const cnr_tensor *a = imp_type(&j->net->imp, yes[i]), *b = imp_type(&j->net->imp, no[i]);
        int alike = a && b && a->dtype == b->dtype && a->rank == b->rank;
        for (int32_t d = 0; alike && d < a->rank; d++) alike = a->dim[d] == b->dim[d];
        if (!alike)
            return onnx_problem(j,
                                "branches that give different shapes, by a condition known only "
                                "at run, are not supported%s",
                                "");
        const cnr_value in[] = {j->in[0], yes[i], no[i]};
        j->out[i] = onnx_step(j, "where", in, 3, NULL);
    }
}

void onnx_if(onnx_job *j) {
    const cnr_tensor *condition = imp_type(&j->net->imp, j->in[0]);
    j->done = 1;
    if (j->net->depth >= MAX_DEPTH) return onnx_problem(j, "branches lie too %s", "deep");
    const Onnx__GraphProto *yes = unpacked(j, "then_branch"), *no = unpacked(j, "else_branch");
    if (!yes || !no) return;
    if (condition && condition->flags & CNR_TENSOR_CONST && condition->dtype == CNR_bool &&
        cnr_count(condition) == 1)
        return take(j, *(const uint8_t *)condition->data ? yes : no, j->out);
    if (gives_nothing(yes) || gives_nothing(no))
        return take(j, gives_nothing(yes) ? no : yes, j->out);
    cnr_value *either = (cnr_value *)onnx_own(j, 2 * (size_t)j->n_out * sizeof *either);
    if (!either) return;
    take(j, yes, either);
    if (!j->failed) take(j, no, either + j->n_out);
    if (!j->failed) choose(j, either, either + j->n_out);
}

void onnx_loop(onnx_job *j) { onnx_problem(j, "loops (%s) are not supported", j->node->op_type); }

/* Frees the messages of all branches. */
void onnx_branches_free(onnx_net *net) {
    while (net->branches) {
        onnx_branch *next = net->branches->next;
        if (net->branches->graph)
            onnx__graph_proto__free_unpacked(net->branches->graph, &onnx_allocator);
        imp_host->free(net->branches);
        net->branches = next;
    }
}
