/* Adding a node: finds the operator, checks ports and attributes, makes missing parameters. */
#include "graph/parts.h"
#include <stdlib.h>

cnri_node *cnri_node_new(const cnr_op *op, const char *name, const char *where, int32_t n_inputs,
                         int32_t n_outputs) {
    const size_t n = (size_t)n_inputs + (size_t)n_outputs;
    cnri_node *node = cnri_alloc_zero(sizeof *node);
    if (!node) return NULL;
    node->name = cnri_strdup(name);
    node->where = where ? cnri_strdup(where) : NULL;
    node->in = cnri_alloc((n ? n : 1) * sizeof *node->in);
    const cnr_tensor **tensors = cnri_alloc_zero((n ? n : 1) * sizeof *tensors);
    node->view.inputs = tensors;
    if (!node->name || (where && !node->where) || !node->in || !tensors) {
        cnri_node_free(node);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) node->in[i] = -1;
    node->out = node->in + n_inputs;
    node->view.size = sizeof node->view;
    node->view.op = cnri_intern(op->name);
    node->view.desc = op;
    node->view.name = node->name;
    node->view.n_inputs = n_inputs;
    node->view.n_outputs = n_outputs;
    node->view.outputs = tensors + n_inputs;
    return node;
}

void cnri_node_link(cnr_graph *g, cnri_node *node) {
    const cnr_tensor **in = (const cnr_tensor **)node->view.inputs;
    const cnr_tensor **out = (const cnr_tensor **)node->view.outputs;
    for (int32_t i = 0; i < node->view.n_inputs; i++)
        in[i] = node->in[i] >= 0 ? g->values.at[node->in[i]].type : NULL;
    for (int32_t i = 0; i < node->view.n_outputs; i++)
        out[i] = node->out[i] >= 0 ? g->values.at[node->out[i]].type : NULL;
}

/* ---- ports ---- */

/* Row i of a plugin's table of ports, whose rows may be shorter than ours: copied, the rest 0. */
static const cnr_port *port_row(const cnr_op *op, const cnr_port *rows, int32_t i,
                                cnr_port *port_buffer) {
    const size_t stride = op->port_size;
    memset(port_buffer, 0, sizeof *port_buffer);
    memcpy(port_buffer, (const char *)rows + (size_t)i * stride,
           stride < sizeof *port_buffer ? stride : sizeof *port_buffer);
    return port_buffer;
}

const cnr_port *cnri_port_of(const cnr_op *op, const cnr_port *rows, int32_t n_rows, int32_t index,
                             cnr_port *port_buffer) {
    if (n_rows == 0) return NULL;
    if (index < n_rows) return port_row(op, rows, index, port_buffer);
    port_row(op, rows, n_rows - 1, port_buffer);
    return port_buffer->flags & CNR_PORT_VARIADIC ? port_buffer : NULL;
}

/* Number of outputs of the node: those requested, and at least those that the operator always
 * has. -1: more than it has. */
static int32_t output_count(const cnr_op *op, int32_t requested) {
    cnr_port port_buffer;
    int32_t n = requested;
    for (int32_t i = 0; i < op->n_outputs; i++) {
        port_row(op, op->outputs, i, &port_buffer);
        if (port_buffer.flags & CNR_PORT_VARIADIC)
            return n < i + port_buffer.min ? i + port_buffer.min : n;
        if (!(port_buffer.flags & CNR_PORT_OPTIONAL) && n < i + 1) n = i + 1;
    }
    return n > op->n_outputs ? -1 : n;
}

/* Number of inputs that the node stores: one for each fixed port even if omitted, so that hooks
 * may read inputs[port] without counting. -1: more than the operator has. */
static int32_t input_count(const cnr_op *op, int32_t given) {
    cnr_port port_buffer;
    int32_t fixed = op->n_inputs;
    bool variadic = false;
    if (fixed > 0) {
        port_row(op, op->inputs, fixed - 1, &port_buffer);
        variadic = port_buffer.flags & CNR_PORT_VARIADIC;
        fixed -= variadic;
    }
    if (given > fixed) return variadic ? given : -1;
    return fixed;
}

/* ---- complaints ---- */

/* The node that messages are about. */
typedef struct subject {
    cnr_graph *g;
    const char *where, *name, *op;
    int32_t n;
} subject;

static void CNRI_PRINTF(2, 3) complain(subject *p, const char *format, ...) {
    char text[768];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->n++;
    cnri_graph_problem(p->g, p->where, "%s (%s): %s", p->name, p->op, text);
}

/* Notes a problem of the attribute at `path`; `arg` is the node's context, as for complain(). */
static void attr_problem(void *arg, const char *path, const char *text) {
    complain(arg, "%s: %s", path, text);
}

cnr_status cnri_node_attrs(cnr_graph *g, const cnr_op *op, const char *name, const char *where,
                           const cnr_attr *const *attrs, int32_t n_attrs, int32_t spatial,
                           cnr_attr ***out) {
    subject p = {g, where, name, op->name, 0};
    *out = NULL;
    const cnr_status status = cnri_attrs_resolve(op->attrs, op->attr_spec_size, op->n_attrs, attrs,
                                                 n_attrs, spatial, attr_problem, &p, out);
    if (status == CNR_E_MEMORY) cnri_graph_no_memory(g);
    else if (status != CNR_OK && p.n == 0) complain(&p, "its attributes are not valid");
    if (status == CNR_OK && p.n > 0) {
        cnri_free(*out);
        *out = NULL;
        return CNR_E_ARG;
    }
    return status;
}

/* ---- parameters ---- */

/* Creates the weights that were left out. Needs the input types and the attributes. */
static void create_parameters(cnr_graph *g, cnri_node *node, subject *p) {
    const cnr_op *op = node->view.desc;
    cnr_port port_buffer;
    for (int32_t i = 0; i < op->n_inputs; i++) {
        port_row(op, op->inputs, i, &port_buffer);
        if (!(port_buffer.flags & CNR_PORT_PARAMETER) || (port_buffer.flags & CNR_PORT_VARIADIC))
            continue;
        if (node->in[i] >= 0 || !CNRI_HAS(op, parameters)) continue;
        cnr_tensor type = {.size = sizeof type};
        cnr_init init = {0};
        cnr_error err = CNR_ERROR_INIT;
        const cnr_status status = op->parameters(&node->view, i, &type, &init, &err);
        if (status == CNR_E_NOT_FOUND) continue;
        if (status != CNR_OK) {
            complain(p, "%s: %s", port_buffer.name, err.text);
            return; /* the next port would give the same message */
        }
        char *name = cnri_format("%s.%s", node->name, port_buffer.name);
        type.data = NULL;
        const int32_t before = g->problems.n;
        const cnr_value v = name ? cnri_graph_constant(g, name, &type) : -1;
        cnri_free(name);
        if (v < 0) {
            p->n += g->problems.n - before;
            if (g->problems.n == before) cnri_graph_no_memory(g);
            continue;
        }
        g->values.at[v].init = init;
        node->in[i] = v;
        cnri_node_link(g, node);
    }
}

/* Checks the inputs that must be given, after parameters were created. `given`: how many the
 * caller named. */
static void check_inputs(cnr_graph *g, cnri_node *node, int32_t given, subject *p) {
    const cnr_op *op = node->view.desc;
    cnr_port port_buffer;
    for (int32_t i = 0; i < node->view.n_inputs; i++) {
        const cnr_port *port = cnri_port_of(op, op->inputs, op->n_inputs, i, &port_buffer);
        if (node->in[i] >= 0 || !port || port->flags & CNR_PORT_OPTIONAL) continue;
        /* A value that is unknown here was reported as a problem before. */
        if (i < given && g->problems.n > 0) {
            p->n++;
            continue;
        }
        complain(p, "input %s is missing", port->name);
    }
    if (op->n_inputs == 0) return;
    port_row(op, op->inputs, op->n_inputs - 1, &port_buffer);
    const int32_t many = node->view.n_inputs - (op->n_inputs - 1);
    if (port_buffer.flags & CNR_PORT_VARIADIC && many < port_buffer.min)
        complain(p, "at least %d of input %s wanted, got %d", port_buffer.min, port_buffer.name,
                 many);
}

/* ---- names ---- */

/* A name that no node has, "stem_3", for cnri_free; NULL: out of memory. */
static char *fresh_name(cnr_graph *g, const char *stem) {
    /* The last number used for a stem is stored under a key that no name can have. */
    char *key = cnri_format("\x01%s", stem), *own = NULL;
    int64_t k = key ? (int64_t)(intptr_t)cnri_map_get(&g->node_names, key) : 0;
    while (key) {
        own = cnri_format("%s_%lld", stem, (long long)++k);
        if (!own || !cnri_map_get(&g->node_names, own)) break;
        cnri_free(own);
    }
    if (own && cnri_map_set(&g->node_names, key, (void *)(intptr_t)k) != CNR_OK) {
        cnri_free(own);
        own = NULL;
    }
    cnri_free(key);
    return own;
}

/* Gives the last node called `name` the name `fresh`, and returns its own, which the caller frees;
 * no such node: returns fresh. */
static char *swap_name(cnr_graph *g, const char *name, char *fresh) {
    for (int32_t i = g->nodes.n - 1; i >= 0; i--) {
        cnri_node *node = g->nodes.at[i];
        if (strcmp(node->name, name) != 0) continue;
        char *had = node->name;
        node->name = fresh;
        node->view.name = fresh;
        return had;
    }
    return fresh;
}

/* The node's name, for cnri_free: the user's, or "op_3"; NULL: out of memory. A duplicate is a
 * problem and gets a suffix. In a rewrite the node that had the name gets it, since the new node
 * stands for it. */
static char *take_name(cnr_graph *g, const char *op, const char *name, const char *where) {
    const bool given = name && name[0], twice = given && cnri_map_get(&g->node_names, name);
    if (twice && !g->renames)
        cnri_graph_problem(g, where, "%s (%s): there is already a node of that name", name, op);
    char *own = given && !twice ? cnri_strdup(name) : fresh_name(g, twice ? name : op);
    if (own && cnri_map_set(&g->node_names, own, (void *)(intptr_t)1) == CNR_OK)
        return twice && g->renames ? swap_name(g, name, own) : own;
    cnri_free(own);
    cnri_graph_no_memory(g);
    return NULL;
}

/* For a node that could not be made: gives each output that is still below 0 a new value of
 * unknown type, so that building goes on; it stays below 0 if memory is out. Always returns an
 * error: CNR_E_ARG, or CNR_E_MEMORY if the graph ran out of memory. */
static cnr_status give_unknown(cnr_graph *g, const char *name, cnr_value *outputs,
                               int32_t n_outputs) {
    const cnr_tensor unknown = {.size = sizeof unknown};
    for (int32_t i = 0; i < n_outputs; i++)
        if (outputs[i] < 0) outputs[i] = cnri_value_add(g, name, &unknown);
    return g->out_of_memory ? CNR_E_MEMORY : CNR_E_ARG;
}

/* Notes that there is no such operator, with a similar name if there is one. */
static cnr_status unknown_op(cnr_graph *g, const char *op, const char *name, const char *where) {
    const int32_t n = cnri_descriptor_count(CNR_KIND_OPERATOR);
    const char **names = cnri_alloc((size_t)(n ? n : 1) * sizeof *names);
    if (!names) {
        cnri_graph_no_memory(g);
        return CNR_E_MEMORY;
    }
    for (int32_t i = 0; i < n; i++)
        names[i] = ((const cnr_op *)cnri_descriptor_at(CNR_KIND_OPERATOR, i))->name;
    const char *near = cnri_nearest_word(op, names, n);
    cnri_graph_problem(g, where, "%s: unknown operator %s%s%s%s", name, op,
                       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    cnri_free(names);
    return CNR_E_NOT_FOUND;
}

/* ---- putting it together ---- */

/* Adds a value for each output, named NODE or NODE.PORT. False: out of memory. */
static bool make_outputs(cnr_graph *g, cnri_node *node) {
    const cnr_op *op = node->view.desc;
    const cnr_tensor unknown = {.size = sizeof unknown};
    for (int32_t i = 0; i < node->view.n_outputs; i++) {
        cnr_port port_buffer;
        const cnr_port *port = cnri_port_of(op, op->outputs, op->n_outputs, i, &port_buffer);
        char *name = i == 0 ? cnri_strdup(node->name)
                            : cnri_format("%s.%s", node->name, port ? port->name : "");
        node->out[i] = name ? cnri_value_add(g, name, &unknown) : -1;
        cnri_free(name);
        if (node->out[i] < 0) return false;
        g->values.at[node->out[i]].output = i;
    }
    cnri_node_link(g, node);
    return true;
}

/* Puts the node into the list; its outputs get their producer, and its inputs count a use. False:
 * it failed. */
static bool insert(cnr_graph *g, cnri_node *node) {
    const int32_t at = g->insert_before >= 0 ? g->insert_before : g->nodes.n;
    if (!cnri_push(&g->nodes)) return false;
    memmove(&g->nodes.at[at + 1], &g->nodes.at[at],
            (size_t)(g->nodes.n - 1 - at) * sizeof g->nodes.at[0]);
    g->nodes.at[at] = node;
    for (int32_t i = 0; i < node->view.n_outputs; i++) g->values.at[node->out[i]].producer = at;
    if (g->insert_before >= 0) {
        cnri_nodes_shifted(g, at + 1, 1);
        g->insert_before++;
    }
    for (int32_t i = 0; i < node->view.n_inputs; i++) cnri_value_use(g, node->in[i], 1);
    return true;
}

/* Sets the inputs and resolves the attributes; create: also makes weights that were left out. False
 * after a problem. *unsure: something about the inputs is not known yet. */
static bool fill_node(cnr_graph *g, cnri_node *node, const cnr_value *inputs, int32_t n_inputs,
                      const cnr_attr *const *attrs, int32_t n_attrs, bool create, subject *p) {
    bool unsure = false;
    for (int32_t i = 0; i < n_inputs; i++) {
        if (inputs[i] < -1 || inputs[i] >= g->values.n) {
            complain(p, "input %d is no value of this net", i);
            return false;
        }
        node->in[i] = inputs[i];
        if (inputs[i] >= 0 && cnri_is_type_unknown(g->values.at[inputs[i]].type)) unsure = true;
    }
    cnri_node_link(g, node);
    const cnr_tensor *x = node->view.n_inputs > 0 ? node->view.inputs[0] : NULL;
    const int32_t spatial = x && !cnri_is_type_unknown(x) && x->rank > 2 ? x->rank - 2 : -1;
    cnr_attr **resolved = NULL;
    const cnr_status status = cnri_node_attrs(g, node->view.desc, node->name, node->where, attrs,
                                              n_attrs, spatial, &resolved);
    node->view.attrs = (const cnr_attr *const *)resolved;
    node->view.n_attrs = resolved ? node->view.desc->n_attrs : 0;
    if (status != CNR_OK) p->n++;
    else if (create && x && !unsure) create_parameters(g, node, p);
    /* A missing parameter is reported only if no earlier problem explains it. */
    if (status == CNR_OK && p->n == 0 && !(unsure && g->problems.n > 0))
        check_inputs(g, node, n_inputs, p);
    return p->n == 0 && !g->out_of_memory;
}

/* Adds a node with n_outputs new values in `outputs` (-1 on failure). `create`: missing parameters
 * are created. */
static cnr_status add(cnr_graph *g, const char *op_name, const char *name, const char *where,
                      const cnr_value *inputs, int32_t n_inputs, const cnr_attr *const *attrs,
                      int32_t n_attrs, cnr_value *outputs, int32_t n_outputs, bool create) {
    for (int32_t i = 0; i < n_outputs; i++) outputs[i] = -1;
    const cnr_op *op = cnri_op_find(op_name);
    char *own = take_name(g, op ? op->name : op_name, name, where);
    if (!own) return CNR_E_MEMORY;
    subject p = {g, where, own, op ? op->name : op_name, 0};
    cnri_node *node = NULL;
    if (!op) {
        unknown_op(g, op_name, own, where);
        goto failed;
    }
    const int32_t n_in = input_count(op, n_inputs), n_out = output_count(op, n_outputs);
    if (n_in < 0) complain(&p, "takes %d inputs at most, got %d", op->n_inputs, n_inputs);
    if (n_out < 0) complain(&p, "has %d outputs, not %d", op->n_outputs, n_outputs);
    if (p.n > 0) goto failed;
    if (!(node = cnri_node_new(op, own, where, n_in, n_out))) {
        cnri_graph_no_memory(g);
        goto failed;
    }
    if (!fill_node(g, node, inputs, n_inputs, attrs, n_attrs, create, &p)) goto failed;
    if (!make_outputs(g, node)) goto failed;
    for (int32_t i = 0; i < n_outputs; i++) outputs[i] = node->out[i];
    if (cnri_node_infer(g, node) != CNR_OK) goto failed;
    if (!insert(g, node)) {
        cnri_graph_no_memory(g);
        goto failed;
    }
    cnri_free(own);
    return CNR_OK;
failed:
    cnri_node_free(node);
    give_unknown(g, own, outputs, n_outputs);
    cnri_free(own);
    return g->out_of_memory ? CNR_E_MEMORY : CNR_E_ARG;
}

cnr_status cnri_graph_node(cnr_graph *g, const char *op, const char *name, const char *where,
                           const cnr_value *inputs, int32_t n_inputs, const cnr_attr *const *attrs,
                           int32_t n_attrs, cnr_value *outputs, int32_t n_outputs) {
    return add(g, op, name, where, inputs, n_inputs, attrs, n_attrs, outputs, n_outputs, true);
}

cnr_status cnri_node_load(cnr_graph *g, const char *op, const char *name, const char *where,
                          const cnr_value *inputs, int32_t n_inputs, const cnr_attr *const *attrs,
                          int32_t n_attrs, cnr_value *outputs, int32_t n_outputs) {
    return add(g, op, name, where, inputs, n_inputs, attrs, n_attrs, outputs, n_outputs, false);
}
