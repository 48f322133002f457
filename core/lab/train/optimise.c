/* Turns a net's graph into one that trains: nodes in their training form and, behind the
 * gradients, the optimiser's nodes, which update the weights. */
#include "train/train.h"

/* ---- nodes as training has them ---- */

/* Turns a node into its form for training, by its operator's hook; *added: how many nodes more. */
static cnr_status train_node(cnr_graph *g, int32_t index, const cnr_training *training,
                             int32_t *added, cnr_error *err) {
    const cnri_node *node = g->nodes.at[index];
    const int32_t before = g->nodes.n, n = node->view.n_outputs;
    const char *where = node->where ? node->where : node->name;
    cnr_value *made = cnri_alloc(((size_t)n + 1) * sizeof *made);
    *added = 0;
    if (!made) return cnri_out_of_memory(err, g->name);
    for (int32_t i = 0; i < n; i++) made[i] = -1;
    cnri_graph_insert_before(g, index);
    cnr_status status =
        node->view.desc->training(&cnri_host, g, &node->view, node->in, training, made, err);
    cnri_graph_insert_before(g, -1);
    if (g->problems.n > 0 || g->out_of_memory) status = cnri_graph_status(g, false, err);
    *added = g->nodes.n - before;
    for (int32_t i = 0; i < n && status == CNR_OK; i++) {
        const cnr_value old = g->nodes.at[index + *added]->out[i];
        if (made[i] >= 0) status = cnri_graph_replace(g, old, made[i]);
        else if (g->values.at[old].uses > 0)
            status = cnri_fail(err, CNR_E_UNSUPPORTED, where, "output %d is not had in training",
                               (int)i);
    }
    cnri_free(made);
    return status == CNR_OK ? cnri_graph_remove(g, index + *added) : status;
}

/* True if all parameters of the node are frozen: it then works as in inference, and its
 * statistics stay. */
static bool is_frozen(const cnr_graph *g, const cnri_node *node) {
    const cnr_op *op = node->view.desc;
    bool any = false;
    for (int32_t k = 0; k < node->view.n_inputs && k < op->n_inputs; k++) {
        const char *row = (const char *)op->inputs + (size_t)k * op->port_size;
        const cnr_port *port = (const cnr_port *)(const void *)row;
        if (!(port->flags & CNR_PORT_PARAMETER) || node->in[k] < 0) continue;
        if (g->values.at[node->in[k]].type->flags & CNR_TENSOR_VARIABLE) return false;
        any = true;
    }
    return any;
}

cnr_status cnri_train_mode(cnr_graph *g, const cnr_training *shared, cnr_error *err) {
    cnr_status status = CNR_OK;
    uint64_t number = 0;
    g->renames = true;
    for (int32_t i = 0; i < g->nodes.n && status == CNR_OK; i++) {
        if (!CNRI_HAS(g->nodes.at[i]->view.desc, training)) continue;
        number++;
        if (is_frozen(g, g->nodes.at[i])) continue;
        cnr_training training = *shared;
        training.seed = (shared->seed + number) * UINT64_C(0x9e3779b97f4a7c15);
        int32_t added;
        status = train_node(g, i, &training, &added, err);
        i += added - 1;
    }
    g->renames = false;
    return status;
}

/* ---- the optimiser ---- */

/* Appends the operators that are optimisers, with commas between; returns the text, owned by
 * `known`, or "none". */
static const char *known_optimizers(cnri_text *known) {
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        if (op->flags & CNR_OP_OPTIMIZER)
            cnri_text_add(known, "%s%s", known->n ? ", " : "", op->name);
    }
    return known->n ? known->at : "none";
}

/* Finds an optimiser operator; name NULL: the first there is. CNR_E_NOT_FOUND, with all known:
 * none, or its ports are no optimiser's. */
cnr_status cnri_train_optimizer(const char *name, const cnr_op **out, cnr_error *err) {
    *out = name ? cnri_op_find(name) : cnri_train_op_with(CNR_OP_OPTIMIZER);
    if (*out && (*out)->flags & CNR_OP_OPTIMIZER && (*out)->n_inputs >= CNRI_OPTIMIZER_MEMORY &&
        (*out)->n_inputs <= CNRI_OPTIMIZER_MEMORY + CNRI_MAX_MEMORIES &&
        (*out)->n_outputs == (*out)->n_inputs - CNRI_OPTIMIZER_MEMORY + 1)
        return CNR_OK;
    cnri_text known = {0};
    cnri_fail(err, CNR_E_NOT_FOUND, name ? name : "training",
              "%s; optimisers known: %s; or a .lua file that returns one",
              *out ? "is no optimiser" : "no such optimiser", known_optimizers(&known));
    cnri_text_free(&known);
    return CNR_E_NOT_FOUND;
}

/* An operator's attribute row by name; NULL: none. */
static const cnr_attr_spec *attr_row(const cnr_op *op, const char *name) {
    for (int32_t i = 0; i < op->n_attrs; i++) {
        const char *row = (const char *)op->attrs + (size_t)i * op->attr_spec_size;
        const cnr_attr_spec *spec = (const cnr_attr_spec *)(const void *)row;
        if (strcmp(spec->name, name) == 0) return spec;
    }
    return NULL;
}

enum { MAX_SETTINGS = 6 };
/* Attributes of an optimiser's node: n of them, and pointers to them. */
typedef struct settings {
    cnr_attr at[MAX_SETTINGS];
    const cnr_attr *list[MAX_SETTINGS];
    int32_t n;
} settings;

/* Sets an optimiser's attribute. A negative value leaves the operator's default; a positive
 * one fails if the operator has no such attribute. */
static cnr_status set(settings *s, const cnr_op *op, const char *name, double value,
                      cnr_error *err) {
    const cnr_attr_spec *spec = attr_row(op, name);
    if (value < 0) return CNR_OK;
    if (!spec && value > 0) return cnri_fail(err, CNR_E_ARG, op->name, "has no %s", name);
    if (!spec) return CNR_OK;
    cnr_attr *a = &s->at[s->n];
    *a = (cnr_attr){.name = spec->name, .type = spec->type, .set = 1, .i = value != 0, .f = value};
    s->list[s->n++] = a;
    return CNR_OK;
}

/* Settings of the optimiser for one weight. Weight decay applies only if `decays`: never to a
 * bias. */
static cnr_status settings_of(const cnri_train_options *o, const cnr_op *op, bool decays,
                              settings *s, cnr_error *err) {
    const struct {
        const char *name;
        double value;
    } rows[MAX_SETTINGS] = {{"momentum", o->momentum},
                            {"nesterov", o->nesterov},
                            {"weight_decay", decays ? o->decay : 0},
                            {"beta1", o->beta1 > 0 ? o->beta1 : -1},
                            {"beta2", o->beta2 > 0 ? o->beta2 : -1},
                            {"epsilon", o->epsilon > 0 ? o->epsilon : -1}};
    cnr_status status = CNR_OK;
    s->n = 0;
    for (int32_t i = 0; i < MAX_SETTINGS && status == CNR_OK; i++)
        status = set(s, op, rows[i].name, rows[i].value, err);
    return status;
}

/* Adds a variable of the weight's type whose data stays in `data`; negative: it failed. */
static cnr_value add_state(cnr_graph *g, cnr_value weight, float *data) {
    cnr_tensor type = *cnri_graph_type(g, weight);
    type.data = data;
    type.flags = CNR_TENSOR_VARIABLE;
    return cnri_graph_borrow(g, NULL, &type);
}

cnr_status cnri_train_memory(cnri_trainer *t, cnr_graph *g, const cnri_gradient *at,
                             const char *name, cnr_value *out, cnr_error *err) {
    cnri_trained *w = &t->weights.at[at->index];
    if (w->n_memories == CNRI_MAX_MEMORIES)
        return cnri_fail(err, CNR_E_UNSUPPORTED, w->name,
                         "%s: an optimiser remembers at most %d things", name,
                         (int)CNRI_MAX_MEMORIES);
    float *data = cnri_alloc_zero((size_t)w->n * sizeof *data + 1);
    if (!data) return cnri_out_of_memory(err, w->name);
    const int32_t k = w->n_memories++;
    w->memory[k] = data;
    if (strcmp(name, CNRI_AVERAGE) == 0) {
        memcpy(data, w->data, (size_t)w->n * sizeof *data);
        w->judged = data;
    }
    *out = w->memories[k] = add_state(g, at->weight, data);
    return CNR_OK;
}

/* Multiplies a gradient by the mask that keeps zeros at zero. */
static cnr_status masked(cnr_graph *g, cnr_value weight, float *mask, cnr_value *gradient,
                         cnr_error *err) {
    const cnr_op *product = cnri_train_op_with(CNR_OP_MULTIPLIES);
    if (!product)
        return cnri_fail(err, CNR_E_NOT_FOUND, g->name,
                         "no loaded plugin has an operator that multiplies, as masks want");
    const cnr_value in[] = {*gradient, add_state(g, weight, mask)};
    return cnri_graph_node(g, product->name, NULL, NULL, in, 2, NULL, 0, gradient, 1);
}

/* Passes every gradient through the hook before it reaches the optimiser. */
static cnr_status hook_all(cnri_trainer *t, cnr_graph *g, cnri_backward *b, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < b->weights.n && status == CNR_OK && t->options.hook; i++)
        status = t->options.hook(t->options.hook_arg, g, b->weights.at[i].weight,
                                 &b->weights.at[i].gradient, err);
    if (status == CNR_OK) status = cnri_train_share(t, g, b, err);
    for (int32_t i = 0; i < b->weights.n && status == CNR_OK; i++) {
        cnri_gradient *at = &b->weights.at[i];
        const cnri_trained *w = &t->weights.at[at->index];
        if (w->mask) status = masked(g, at->weight, w->mask, &at->gradient, err);
    }
    return status;
}

/* Adds the optimiser's node for one weight, which updates the weight and its memories in place; its
 * settings come from the options. */
static cnr_status update(cnri_trainer *t, cnr_graph *g, const cnri_gradient *at, cnr_value rate,
                         cnr_value step, cnr_error *err) {
    const cnr_op *op = t->optimizer;
    const int32_t memories = op->n_inputs - CNRI_OPTIMIZER_MEMORY;
    cnri_trained *w = &t->weights.at[at->index];
    settings s;
    cnr_status status = settings_of(&t->options, op, w->decays, &s, err);
    if (status != CNR_OK) return status;
    cnr_value *in = cnri_alloc(2 * (size_t)op->n_inputs * sizeof *in), *out = in + op->n_inputs;
    if (!in) return cnri_out_of_memory(err, g->name);
    in[0] = rate;
    in[1] = step;
    in[2] = at->weight;
    in[3] = at->gradient;
    for (int32_t i = 0; i < memories && status == CNR_OK; i++)
        status = cnri_train_memory(t, g, at, "", &in[CNRI_OPTIMIZER_MEMORY + i], err);
    if (status == CNR_OK)
        cnri_graph_node(g, op->name, NULL, NULL, in, op->n_inputs, s.list, s.n, out, op->n_outputs);
    cnri_free(in);
    return status                                  ? status
           : g->problems.n > 0 || g->out_of_memory ? cnri_graph_status(g, false, err)
                                                   : CNR_OK;
}

/* Makes a gradient an output of the net. */
static cnr_status give_out(cnri_trainer *t, cnr_graph *g, const cnri_gradient *at, cnr_error *err) {
    int32_t *slot = cnri_push(&t->gradients);
    if (!slot) return cnri_out_of_memory(err, g->name);
    *slot = at->index;
    const cnr_status status = cnri_graph_output(g, at->gradient, t->weights.at[at->index].name);
    return status ? cnri_graph_status(g, false, err) : CNR_OK;
}

/* Lets the caller's own optimiser add the nodes for all weights. */
static cnr_status update_by_own(cnri_trainer *t, cnr_graph *g, const cnri_backward *b,
                                cnr_value rate, cnr_value step, cnr_error *err) {
    const cnri_own_optimizer *own = &t->options.own_optimizer;
    const int32_t nodes = g->nodes.n, values = g->values.n;
    cnr_status status = own->build(own->arg, t, g, b, rate, step, err);
    if (status == CNR_OK && (g->problems.n > 0 || g->out_of_memory))
        status = cnri_graph_status(g, false, err);
    return status ? status : cnri_train_digest(g, nodes, values, t->own_digest, err);
}

cnr_status cnri_train_optimise(cnri_trainer *t, cnr_graph *g, cnri_backward *b, cnr_value rate,
                               cnr_value step, cnr_error *err) {
    g->renames = g->updates = true;
    cnr_status status = hook_all(t, g, b, err);
    const bool own = t->options.own_optimizer.build != NULL;
    if (own && status == CNR_OK) status = update_by_own(t, g, b, rate, step, err);
    for (int32_t i = 0; i < b->weights.n && status == CNR_OK && !own; i++)
        status = t->optimizer ? update(t, g, &b->weights.at[i], rate, step, err)
                              : give_out(t, g, &b->weights.at[i], err);
    g->renames = false;
    return status;
}
