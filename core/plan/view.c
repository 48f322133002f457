/* A node as a kernel sees it with the first k of the operators behind it as its epilogue. */
#include "core/plan/planner.h"

enum { MOST_CHAINED = 64 };

/* The input of `node` through which `value` comes in, and the one other operand (-1 none); false
 * when there are more of either. */
static bool chain_ports(const cnri_node *node, cnr_value value, int32_t *port, int32_t *other) {
    *port = *other = -1;
    for (int32_t i = 0; i < node->view.n_inputs; i++) {
        if (node->in[i] < 0) continue;
        if (node->in[i] == value && *port < 0) *port = i;
        else if (*other < 0) *other = i;
        else return false;
    }
    return *port >= 0;
}

static bool may_follow(const cnri_planner *p, int32_t head, int32_t next, cnr_value value) {
    const cnri_node *e = p->graph->nodes.at[next];
    const cnr_node *v = &e->view;
    int32_t port, other;
    if (!(v->desc->flags & CNR_OP_EPILOGUE) || v->n_outputs != 1) return false;
    if (p->picks[next].absorbed) return false; /* by another of its operands */
    if (p->wish[next] && p->wish[next] != p->wish[head]) return false;
    if (!chain_ports(e, value, &port, &other)) return false;
    if (other >= 0 &&
        ((v->inputs[other]->flags & CNR_TENSOR_DYNAMIC) || v->inputs[other]->encoding))
        return false;
    if (v->outputs[0]->flags & CNR_TENSOR_DYNAMIC) return false;
    return !(v->desc->flags & CNR_OP_ELEMENTWISE) || cnr_same_shape(v->inputs[port], v->outputs[0]);
}

/* The operators behind `node` that could be its epilogue, into chain (NULL: only counted). More than
 * a kernel ever takes need not be offered: every node would be asked about all behind it. */
static int32_t follow(const cnri_planner *p, int32_t node, int32_t *chain) {
    const cnri_node *n = p->graph->nodes.at[node];
    int32_t length = 0;
    if (!p->fuse || n->view.n_outputs != 1 || (n->view.outputs[0]->flags & CNR_TENSOR_DYNAMIC))
        return 0;
    for (cnr_value v = n->out[0]; length < MOST_CHAINED; length++) {
        const int32_t next = p->only_user[v];
        if (next < 0 || !may_follow(p, node, next, v)) break;
        if (chain) chain[length] = next;
        v = p->graph->nodes.at[next]->out[0];
    }
    return length;
}

cnr_status cnri_pick_chain(cnri_planner *p, int32_t node, cnr_error *err) {
    cnri_pick *pick = &p->picks[node];
    const cnri_node *n = p->graph->nodes.at[node];
    const int32_t length = follow(p, node, NULL);
    pick->chain = cnri_alloc(((size_t)length + 1) * sizeof *pick->chain);
    if (!pick->chain) return cnri_no_memory(err);
    pick->n_chain = follow(p, node, pick->chain);
    const size_t n_in = (size_t)n->view.n_inputs + (size_t)length;
    const size_t n_out = (size_t)n->view.n_outputs, chain = (size_t)length;
    pick->in = cnri_alloc((n_in + 1) * sizeof *pick->in);
    pick->inputs = cnri_alloc((n_in + 1) * sizeof *pick->inputs);
    pick->outputs = cnri_alloc((n_out + 1) * sizeof *pick->outputs);
    pick->epilogues = cnri_alloc_zero((chain + 1) * sizeof *pick->epilogues);
    pick->epilogue = cnri_alloc((chain + 1) * sizeof *pick->epilogue);
    if (!pick->in || !pick->inputs || !pick->outputs || !pick->epilogues || !pick->epilogue)
        return cnri_no_memory(err);
    return cnri_pick_view(p, node, length, err);
}

cnr_status cnri_pick_view(cnri_planner *p, int32_t node, int32_t n_chain, cnr_error *err) {
    cnri_pick *pick = &p->picks[node];
    const cnri_node *n = p->graph->nodes.at[node], *last = n;
    (void)err;
    pick->n_in = n->view.n_inputs;
    for (int32_t i = 0; i < pick->n_in; i++) {
        pick->in[i] = n->in[i];
        pick->inputs[i] = n->view.inputs[i];
    }
    for (int32_t i = 0; i < n_chain; i++) {
        const cnri_node *e = p->graph->nodes.at[pick->chain[i]];
        int32_t other;
        chain_ports(e, last->out[0], &pick->epilogues[i].chain_port, &other);
        pick->epilogues[i].node = &e->view;
        pick->epilogues[i].operand = -1;
        if (other >= 0) {
            pick->in[pick->n_in] = e->in[other];
            pick->inputs[pick->n_in] = e->view.inputs[other];
            pick->epilogues[i].operand = pick->n_in++;
        }
        pick->epilogue[i] = &pick->epilogues[i];
        last = e;
    }
    pick->n_out = last->view.n_outputs;
    for (int32_t i = 0; i < pick->n_out; i++) pick->outputs[i] = last->view.outputs[i];
    pick->n_chain = n_chain;
    pick->view = n->view;
    pick->view.n_inputs = pick->n_in;
    pick->view.n_outputs = pick->n_out;
    pick->view.n_epilogue = n_chain;
    pick->view.inputs = pick->inputs;
    pick->view.outputs = pick->outputs;
    pick->view.epilogue = n_chain ? pick->epilogue : NULL;
    return CNR_OK;
}

/* A constant with the decoded data of an encoded one; made once. */
cnr_status cnri_plan_twin(cnri_planner *p, cnr_value encoded, cnr_value *dense, cnr_error *err) {
    for (int32_t i = 0; i < p->plan->twins.n; i++)
        if (p->plan->twins.at[i].encoded == encoded) {
            *dense = p->plan->twins.at[i].dense;
            return CNR_OK;
        }
    const cnri_value *value = &p->graph->values.at[encoded];
    const char *name = cnri_name(value->type->encoding);
    const cnr_encoding *how = cnri_find(CNR_KIND_ENCODING, name);
    if (!how)
        return cnri_fail(err, CNR_E_NOT_FOUND, value->name,
                         "is stored in encoding \"%s\", which no loaded plugin knows", name);
    cnr_tensor type = *value->type;
    type.encoding = 0;
    type.bytes = cnr_dense_bytes(&type);
    if (type.bytes == UINT64_MAX)
        return cnri_fail(err, CNR_E_LIMIT, value->name, "is too large when decoded");
    if (!(type.data = cnri_alloc((size_t)type.bytes + 1))) return cnri_no_memory(err);
    cnr_status status = how->decode(value->type, type.data, err);
    char *label = status ? NULL : cnri_format("%s (dense)", value->name ? value->name : "");
    cnri_twin *twin = label ? cnri_push(&p->plan->twins) : NULL;
    if (twin) {
        twin->encoded = encoded;
        *dense = twin->dense = cnri_graph_borrow(p->graph, label, &type);
        if (twin->dense < 0) {
            p->plan->twins.n--;
            twin = NULL;
        }
    }
    cnri_free(label);
    if (!twin) cnri_free(type.data);
    return status ? status : twin ? CNR_OK : cnri_no_memory(err);
}
