/* Selects the nodes to convert and their order, and the values that become outputs. */
#include "tensorflow.h"

#include <stdio.h>

/* 1 for operators without results for inference: assertions, summaries, savers. */
static int is_quiet(const char *op) {
    static const char *const ops[] = {"NoOp",      "Assert", "SaveV2",
                                      "RestoreV2", "Const",  "Placeholder"};
    return imp_is_one_of(op, ops, CNR_ROWS(ops)) || strstr(op, "Summary") != NULL;
}

/* 1 for the Identity of a Switch: a control input from it puts a node on that side of the
 * branch. */
static int is_side(const tf_net *net, const tf_entry *e) {
    int32_t output;
    return tf_is_op(e, "Identity") && e->node->n_input > 0 &&
           tf_is_op(tf_input(net, e->node->input[0], &output), "Switch");
}

/* The node of a control input "^NAME"; NULL: not a control input, or no such node. */
static tf_entry *controller(const tf_net *net, const char *text) {
    return *text == '^' ? tf_find(net, text + 1, strlen(text + 1)) : NULL;
}

/* The node of input i, which must be converted before `e`; NULL: none. */
static tf_entry *before(const tf_net *net, const tf_entry *e, size_t i) {
    int32_t output;
    tf_entry *from = tf_input(net, e->node->input[i], &output);
    tf_entry *side = controller(net, e->node->input[i]);
    return from ? from : is_side(net, side) ? side : NULL;
}

typedef void (*step)(tf_net *net, tf_entry *e);

/* Depth-first search: calls `done` once for each node that `root` needs, inputs first, in whatever
 * order the file has them; is_last: a loop is a problem now. */
static cnr_status visit(tf_net *net, int32_t root, int32_t *stack, step done, int is_last,
                        cnr_error *err) {
    int32_t depth = 0;
    stack[depth++] = root;
    while (depth > 0 && !net->b.status) {
        tf_entry *e = &net->entries[stack[depth - 1]];
        int32_t waiting = -1;
        if (e->state == 2) {
            depth--;
            continue;
        }
        e->state = 1;
        for (; e->next < e->node->n_input && waiting < 0; e->next++) {
            tf_entry *from = before(net, e, e->next);
            if (!from || from->state == 2) continue;
            if (from->state == 0) waiting = (int32_t)(from - net->entries);
            else if (is_last) {
                imp_host->graph_problem(net->b.graph, net->b.path,
                                        "node %s is part of a loop: control flow is not supported",
                                        from->node->name);
                from->failed = 1;
            }
        }
        if (waiting >= 0) {
            stack[depth++] = waiting;
            continue;
        }
        done(net, e);
        e->state = 2;
        depth--;
    }
    return net->b.status ? imp_host->fail(err, net->b.status, net->b.path, "out of memory")
                         : CNR_OK;
}

/* ---- first walk: what is needed and what is not supported ---- */

/* First walk: visits a node, so that its state says that it is needed. */
static void mark_needed(tf_net *net, tf_entry *e) {
    (void)net;
    (void)e; /* its state is enough */
}

/* 1 for operators of loops and branches. */
static int is_control_flow(const char *op) {
    static const char *const ops[] = {"Enter",          "Exit",        "NextIteration",
                                      "LoopCond",       "While",       "If",
                                      "StatelessWhile", "StatelessIf", "TensorArrayV3"};
    return imp_is_one_of(op, ops, CNR_ROWS(ops));
}

/* Why an operator is not supported, as a constant text; looped: the net has loops. */
static const char *why(const char *op, int looped) {
    if (is_control_flow(op) || (looped && (strcmp(op, "Switch") == 0 || strcmp(op, "Merge") == 0)))
        return "control flow is not supported";
    if (strstr(op, "PartitionedCall"))
        return "functions are not supported: freeze the graph with its functions inlined";
    if (strncmp(op, "Variable", 8) == 0 || strstr(op, "VariableOp") ||
        strcmp(op, "VarHandleOp") == 0)
        return "variables are not supported: freeze the graph, so that they become constants";
    return tf_row_of(op) ? NULL : "this operator is not supported";
}

static int is_live(const tf_entry *e) { return e->state == 2 && !e->dead; }

/* Reports each unsupported operator once, with its number of nodes. */
static void tell_unsupported(tf_net *net, int looped) {
    int32_t told = 0;
    for (int32_t i = 0; i < net->n && told < 200; i++) {
        const char *op = net->entries[i].node->op, *text = why(op, looped);
        int32_t n = 0;
        for (int32_t k = 0; text && k < net->n; k++)
            if (is_live(&net->entries[k]) && strcmp(net->entries[k].node->op, op) == 0) {
                if (k < i) break; /* reported already */
                n++;
            }
        if (n && is_live(&net->entries[i]) && ++told)
            imp_host->graph_problem(net->b.graph, net->b.path, "%d node%s %s (the first: %s): %s",
                                    (int)n, n > 1 ? "s" : "", op, net->entries[i].node->name, text);
    }
}

/* ---- outputs ---- */

/* Adds output k of a node as an output of the net. */
static cnr_status add_output(tf_net *net, tf_entry *e, int32_t k, const char *name) {
    tf_layouts *t = k < e->n_out && !e->failed && !e->dead ? &e->out[k] : NULL;
    if (!t || t->dead || (t->plain < 0 && t->turned < 0)) return CNR_OK;
    return imp_host->graph_output(net->b.graph, tf_plain(net, t), name);
}

/* Adds the values of a node that no other node reads. Constants are skipped: they are unused
 * conditions. */
static cnr_status add_outputs(tf_net *net, tf_entry *e) {
    cnr_status status = CNR_OK;
    for (int32_t k = 0; k < e->n_out && !status; k++) {
        char name[600];
        snprintf(name, sizeof name, k ? "%.500s:%d" : "%.500s", e->node->name, (int)k);
        if (!tf_known(net, &e->out[k])) status = add_output(net, e, k, name);
    }
    return status;
}

/* ---- building the graph ---- */

/* Marks the values that other nodes read, by node and output. */
static void mark_read(tf_net *net) {
    int32_t output;
    for (int32_t i = 0; i < net->n; i++) {
        const Tf__NodeDef *node = net->entries[i].node;
        for (size_t k = 0; k < node->n_input; k++) {
            tf_entry *from = tf_input(net, node->input[k], &output);
            if (!from && !is_quiet(node->op)) from = controller(net, node->input[k]);
            if (from) from->read = 1;
        }
    }
}

/* Walks to the requested outputs, in their order; is_last: as visit's. */
static cnr_status walk_to(tf_net *net, const char *outputs, int32_t *stack, step done, int is_last,
                          cnr_error *err) {
    cnr_status status = CNR_OK;
    for (size_t n; *outputs && !status; outputs += n + (outputs[n] == ',')) {
        char name[600];
        int32_t k;
        n = strcspn(outputs, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < 500 ? n : 500), outputs);
        tf_entry *e = tf_input(net, name, &k);
        if (!e && is_last)
            imp_host->graph_problem(net->b.graph, net->b.path, "outputs=%s: there is no such node",
                                    name);
        if (e) status = visit(net, (int32_t)(e - net->entries), stack, done, is_last, err);
        if (e && is_last && !status) status = add_output(net, e, k, name);
    }
    return status;
}

/* Walks to all outputs, with inputs before their readers; is_last: as visit's. */
static cnr_status walk(tf_net *net, int32_t *stack, step done, int is_last, cnr_error *err) {
    cnr_status status = CNR_OK;
    if (net->outputs) return walk_to(net, net->outputs, stack, done, is_last, err);
    for (int32_t i = 0; i < net->n && !status; i++) {
        tf_entry *e = &net->entries[i];
        if (e->read || is_quiet(e->node->op) || is_side(net, e)) continue;
        status = visit(net, i, stack, done, is_last, err);
        if (!status && is_last) status = add_outputs(net, e);
    }
    return status;
}

cnr_status tf_build(tf_net *net, cnr_error *err) {
    int32_t *stack = (int32_t *)tf_block(net, (size_t)(net->n + 1) * sizeof *stack);
    if (!stack) return imp_host->fail(err, CNR_E_MEMORY, net->b.path, "out of memory");
    mark_read(net);
    cnr_status status = walk(net, stack, mark_needed, 0, err);
    int looped = 0, refused = 0;
    for (int32_t i = 0; i < net->n; i++) {
        const tf_entry *e = &net->entries[i];
        looped |= tf_is_op(e, "Enter");
        refused |= e->state == 2 && is_control_flow(e->node->op);
    }
    if (!status && !refused) {
        /* Inputs keep the file's order. */
        for (int32_t i = 0; i < net->n; i++) {
            tf_entry *e = &net->entries[i];
            const int first = e->state == 2 && tf_is_op(e, "Placeholder");
            if (first) tf_convert(net, e);
            e->state = first ? 2 : 0;
            e->next = 0;
        }
        status = walk(net, stack, tf_convert, 1, err);
    }
    /* the graph has problems, so the import is refused */
    if (!status) tell_unsupported(net, looped);
    return status;
}
