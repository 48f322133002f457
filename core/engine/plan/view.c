/* A node with the operators behind it that could be its epilogue, and its views: with the first k
 * of them. */
#include "plan/planner.h"

enum { MAX_CHAINED = 64 };

/* Finds the input of `node` that `value` comes in by, and its only other operand (-1: none);
 * false if there are more of either. */
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

/* True if node `next` can be computed together with the chain that begins at `head`. */
static bool may_follow(const cnri_planner *p, int32_t head, int32_t next, cnr_value value) {
    const cnri_node *e = p->graph->nodes.at[next];
    const cnr_node *v = &e->view;
    int32_t port, other;
    if (!(v->desc->flags & CNR_OP_EPILOGUE) || v->n_outputs != 1) return false;
    const int32_t by = p->picks[next].absorbed_by;
    if (by >= 0 && by != head) return false; /* the other operand is computed by another node */
    if (!p->options->memo && p->wish[next] && p->wish[next] != p->wish[head])
        return false; /* a stored plan fixes how far the chain goes */
    if (!chain_ports(e, value, &port, &other)) return false;
    if (other >= 0 &&
        ((v->inputs[other]->flags & CNR_TENSOR_DYNAMIC) || v->inputs[other]->encoding))
        return false;
    if (v->outputs[0]->flags & CNR_TENSOR_DYNAMIC) return false;
    return !(v->desc->flags & CNR_OP_ELEMENTWISE) || cnr_same_shape(v->inputs[port], v->outputs[0]);
}

/* Finds the operators behind `node` that could be its epilogue and puts them into `chain` (NULL:
 * only counts). The number is limited to what kernels can take, so that nodes are not asked
 * about long chains. */
static int32_t follow(const cnri_planner *p, int32_t node, int32_t *chain) {
    const cnri_node *n = p->graph->nodes.at[node];
    int32_t length = 0;
    if (!p->fuse || n->view.n_outputs != 1 || (n->view.outputs[0]->flags & CNR_TENSOR_DYNAMIC))
        return 0;
    for (cnr_value v = n->out[0]; length < MAX_CHAINED; length++) {
        const int32_t next = p->only_user[v];
        if (next < 0 || !may_follow(p, node, next, v)) break;
        if (chain) chain[length] = next;
        v = p->graph->nodes.at[next]->out[0];
    }
    return length;
}

/* Allocates all lists in one block; the widest types come first. False: it failed. */
static bool make_room(cnri_chain *c, size_t n_in, size_t n) {
    const size_t bytes = 2 * n_in * sizeof(void *) + n * (sizeof *c->epilogues + sizeof(void *)) +
                         2 * n_in * sizeof *c->in + (2 * n + 1) * sizeof(int32_t);
    c->inputs = cnri_alloc(bytes);
    if (!c->inputs) return false;
    c->dense_inputs = c->inputs + n_in;
    c->epilogue = (const cnr_epilogue **)(c->dense_inputs + n_in);
    c->epilogues = (cnr_epilogue *)(c->epilogue + n);
    c->in = (cnr_value *)(c->epilogues + n);
    c->dense_in = c->in + n_in;
    c->at = (int32_t *)(c->dense_in + n_in);
    c->n_in = c->at + n;
    return true;
}

cnr_status cnri_chain_make(cnri_planner *p, int32_t node, cnri_chain *c, cnr_error *err) {
    const cnri_node *n = p->graph->nodes.at[node], *last = n;
    const int32_t length = follow(p, node, NULL);
    *c = (cnri_chain){.node = node, .n = length};
    if (!make_room(c, (size_t)n->view.n_inputs + (size_t)length, (size_t)length))
        return cnri_no_memory(err);
    follow(p, node, c->at);
    int32_t n_in = n->view.n_inputs;
    for (int32_t i = 0; i < n_in; i++) {
        c->in[i] = n->in[i];
        c->inputs[i] = n->view.inputs[i];
    }
    c->n_in[0] = n_in;
    for (int32_t i = 0; i < length; i++) {
        const cnri_node *e = p->graph->nodes.at[c->at[i]];
        int32_t other;
        c->epilogues[i] = (cnr_epilogue){.node = &e->view, .operand = -1};
        chain_ports(e, last->out[0], &c->epilogues[i].chain_port, &other);
        if (other >= 0) {
            c->in[n_in] = e->in[other];
            c->inputs[n_in] = e->view.inputs[other];
            c->epilogues[i].operand = n_in++;
        }
        c->epilogue[i] = &c->epilogues[i];
        c->n_in[i + 1] = n_in;
        last = e;
    }
    return CNR_OK;
}

void cnri_chain_free(cnri_chain *c) {
    if (!c->region) cnri_free((void *)c->inputs);
    *c = (cnri_chain){0};
}

cnri_view cnri_view_of(const cnri_planner *p, const cnri_chain *c, int32_t n_chain, bool dense) {
    if (c->region)
        return (cnri_view){.n_chain = c->n,
                           .n_in = c->region->n_inputs,
                           .n_out = c->region->n_outputs,
                           .in = c->in,
                           .out = c->out,
                           .node = *c->region};
    const cnri_node *n = p->graph->nodes.at[c->node];
    const cnri_node *last = n_chain ? p->graph->nodes.at[c->at[n_chain - 1]] : n;
    cnri_view v = {.n_chain = n_chain,
                   .n_in = c->n_in[n_chain],
                   .n_out = last->view.n_outputs,
                   .in = dense ? c->dense_in : c->in,
                   .out = last->out,
                   .node = n->view};
    v.node.n_inputs = v.n_in;
    v.node.n_outputs = v.n_out;
    v.node.n_epilogue = n_chain;
    v.node.inputs = dense ? c->dense_inputs : c->inputs;
    v.node.outputs = last->view.outputs;
    v.node.epilogue = n_chain ? c->epilogue : NULL;
    return v;
}

cnr_status cnri_chain_decode(cnri_planner *p, cnri_chain *c, cnr_error *err) {
    for (int32_t i = 0; i < c->n_in[c->n] && !c->decoded; i++) {
        c->dense_in[i] = c->in[i];
        c->dense_inputs[i] = c->inputs[i];
        if (!c->inputs[i] || !c->inputs[i]->encoding) continue;
        const cnr_status status = cnri_plan_twin(p, c->in[i], &c->dense_in[i], err);
        if (status) return status;
        c->dense_inputs[i] = p->graph->values.at[c->dense_in[i]].type;
    }
    c->decoded = true;
    return CNR_OK;
}

/* Makes a constant for the decoded data of an encoded one, once. The data is filled in when a
 * kernel that reads it is chosen (cnri_plan_twin_read): decoding large weights takes as long as
 * reading them, and a kernel for the encoding may be chosen instead. */
cnr_status cnri_plan_twin(cnri_planner *p, cnr_value encoded, cnr_value *dense, cnr_error *err) {
    for (int32_t i = 0; i < p->plan->twins.n; i++)
        if (p->plan->twins.at[i].encoded == encoded) {
            *dense = p->plan->twins.at[i].dense;
            return CNR_OK;
        }
    const cnri_value *value = &p->graph->values.at[encoded];
    const char *name = cnri_name(value->type->encoding);
    const cnr_encoding *how = cnri_descriptor_find(CNR_KIND_ENCODING, name);
    if (!how)
        return cnri_fail(err, CNR_E_NOT_FOUND, value->name,
                         "is stored in encoding \"%s\", which no loaded plugin knows", name);
    cnr_tensor type = *value->type;
    type.encoding = 0;
    type.bytes = cnr_dense_bytes(&type);
    if (type.bytes == UINT64_MAX)
        return cnri_fail(err, CNR_E_LIMIT, value->name, "is too large when decoded");
    if (!(type.data = cnri_alloc((size_t)type.bytes + 1))) return cnri_no_memory(err);
    char *label = cnri_format("%s (dense)", value->name ? value->name : "");
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
    return twin ? CNR_OK : cnri_no_memory(err);
}

cnr_status cnri_plan_twin_read(cnri_planner *p, cnr_value encoded, cnr_value *dense,
                               cnr_error *err) {
    cnr_status status = cnri_plan_twin(p, encoded, dense, err);
    for (int32_t i = 0; i < p->plan->twins.n && !status; i++) {
        cnri_twin *twin = &p->plan->twins.at[i];
        if (twin->encoded != encoded || twin->decoded) continue;
        const cnr_tensor *from = p->graph->values.at[encoded].type;
        const cnr_encoding *how =
            cnri_descriptor_find(CNR_KIND_ENCODING, cnri_name(from->encoding));
        status = how->decode(from, p->graph->values.at[*dense].type->data, err);
        twin->decoded = !status;
    }
    return status;
}
