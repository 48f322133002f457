/* Inlines functions: each call becomes the function's nodes, whose names begin with the call's, and
 * an IdentityN of the results. Newer Keras wraps some convolutions so, and SavedModels the whole
 * net. */
#include "tensorflow.h"

#include <stdio.h>

/* Nodes that are written out from functions. */
typedef struct writer {
    tf_net *net;
    const Tf__Library *library;
    const Tf__NodeDef **nodes;
    int32_t n, room;
    size_t most; /* bound on the number of nodes: recursive functions would not end */
} writer;

/* Adds a node. 0: out of memory. */
static int add(writer *w, const Tf__NodeDef *node) {
    if (!imp_grow((void **)&w->nodes, w->n, &w->room, sizeof w->nodes[0]))
        return w->net->b.status = CNR_E_MEMORY, 0;
    w->nodes[w->n++] = node;
    return 1;
}

/* The function that a node calls, owned by the file; NULL: none. */
static const Tf__Function *callee(const writer *w, const Tf__NodeDef *node) {
    if (!node->op || !strstr(node->op, "PartitionedCall")) return NULL;
    const Tf__AttrValue *f = tf_node_attr(node, "f");
    for (size_t i = 0; f && f->func && f->func->name && i < w->library->n_function; i++) {
        const Tf__Function *one = w->library->function[i];
        if (one->signature && one->signature->name &&
            strcmp(one->signature->name, f->func->name) == 0)
            return one;
    }
    return NULL;
}

/* Returns the name CALL/NAME; with an output number, and after `mark`, which denotes a control
 * input. The net owns it; NULL: out of memory. */
static char *inner(writer *w, const char *mark, const char *call, const char *name, size_t n,
                   int output) {
    const size_t room = strlen(call) + n + 32;
    char *text = (char *)tf_block(w->net, room);
    if (text && output) snprintf(text, room, "%s%s/%.*s:%d", mark, call, (int)n, name, output);
    else if (text) snprintf(text, room, "%s%s/%.*s", mark, call, (int)n, name);
    return text;
}

/* The index of a named output as in "batch_mean:0"; other inputs give the index, "output:2". */
static int output_of(const char *port) {
    static const struct {
        const char *name;
        int output;
    } second[] = {{"indices:", 1}, {"output_true:", 1}, {"batch_mean:", 1}, {"batch_variance:", 2}};
    const char *colon = strchr(port, ':');
    for (size_t i = 0; i < sizeof second / sizeof second[0]; i++)
        if (strncmp(port, second[i].name, strlen(second[i].name)) == 0) return second[i].output;
    int k = 0;
    for (const char *c = colon ? colon + 1 : port; *c >= '0' && *c <= '9' && k < 10000; c++)
        k = k * 10 + (*c - '0');
    return k;
}

/* An input of a function's node in the form of a graph's: the argument, ^node, or node:index, from
 * node:port:index. */
static char *input(writer *w, const Tf__Function *f, const Tf__NodeDef *call, const char *text) {
    const char *colon = strchr(text, ':');
    size_t given = 0;
    if (*text == '^') return inner(w, "^", call->name, text + 1, strlen(text + 1), 0);
    if (colon) return inner(w, "", call->name, text, (size_t)(colon - text), output_of(colon + 1));
    for (size_t i = 0; i < f->signature->n_input_arg && given < call->n_input; i++, given++) {
        const char *name = f->signature->input_arg[i]->name;
        if (*call->input[given] == '^') break;
        if (name && strcmp(name, text) == 0) return call->input[given];
    }
    return inner(w, "", call->name, text, strlen(text), 0);
}

/* A copy of a node with room for other inputs; NULL: out of memory. */
static Tf__NodeDef *copy(writer *w, const Tf__NodeDef *from, size_t n_input) {
    Tf__NodeDef *node = (Tf__NodeDef *)tf_block(w->net, sizeof *node);
    char **inputs = (char **)tf_block(w->net, (n_input + 1) * sizeof *inputs);
    if (!node || !inputs) return NULL;
    *node = *from;
    node->n_input = n_input;
    node->input = inputs;
    return node;
}

/* What a function returns under a name; NULL: nothing. */
static const char *returned(const Tf__Function *f, const char *name) {
    for (size_t i = 0; i < f->n_ret && name; i++)
        if (f->ret[i]->key && f->ret[i]->value && strcmp(f->ret[i]->key, name) == 0)
            return f->ret[i]->value;
    return NULL;
}

/* Writes the function that a node calls in its place. 0: failed. */
static int write_out(writer *w, size_t at, const Tf__Function *f) {
    static char identity[] = "IdentityN";
    const Tf__NodeDef *call = w->nodes[at];
    const size_t results = f->signature->n_output_arg;
    Tf__NodeDef *end = copy(w, call, results);
    if (!end) return 0;
    for (size_t i = 0; i < results; i++) {
        const char *value = returned(f, f->signature->output_arg[i]->name);
        end->input[i] = input(w, f, call, value ? value : "");
        if (!end->input[i]) return 0;
    }
    end->op = identity;
    w->nodes[at] = end;
    for (size_t i = 0; i < f->n_node_def && (size_t)w->n < w->most; i++) {
        const Tf__NodeDef *from = f->node_def[i];
        Tf__NodeDef *node = copy(w, from, from->n_input);
        if (!node || !add(w, node)) return 0;
        for (size_t k = 0; k < from->n_input; k++)
            if (!(node->input[k] = input(w, f, call, from->input[k]))) return 0;
        if (from->name &&
            !(node->name = inner(w, "", call->name, from->name, strlen(from->name), 0)))
            return 0;
    }
    return 1;
}

/* The graph's nodes, *n, with all function calls inlined; from host->alloc, NULL: out of memory. */
const Tf__NodeDef **tf_write_out(tf_net *net, const Tf__GraphDef *def, size_t *n) {
    writer w = {.net = net, .library = def->library, .most = 1024 + 16 * def->n_node};
    int good = 1;
    for (size_t i = 0; def->library && i < def->library->n_function; i++)
        w.most += 16 * def->library->function[i]->n_node_def;
    for (size_t i = 0; i < def->n_node && good; i++) good = add(&w, def->node[i]);
    for (size_t i = 0; i < (size_t)w.n && good && def->library; i++) {
        const Tf__Function *f = w.nodes[i]->name ? callee(&w, w.nodes[i]) : NULL;
        if (f && (size_t)w.n + f->n_node_def <= w.most) good = write_out(&w, i, f);
    }
    *n = (size_t)w.n;
    if (good) return w.nodes;
    imp_host->free(w.nodes);
    return NULL;
}
