/* Finds the nodes of a GraphDef by name. */
#include "tensorflow.h"

#include <stdio.h>

/* The node, or a placeholder in its place if option shape.NAME=H,W,C makes it an input: the graph
 * is cut there. */
static const Tf__NodeDef *cut(tf_net *net, const Tf__NodeDef *node) {
    static char placeholder[] = "Placeholder";
    char key[300];
    snprintf(key, sizeof key, "shape.%.250s", node->name);
    if (strcmp(node->op, placeholder) == 0 || !imp_option(net->args, key)) return node;
    Tf__NodeDef *own = (Tf__NodeDef *)tf_block(net, sizeof *own);
    if (own) *own = (Tf__NodeDef){.base = node->base, .name = node->name, .op = placeholder};
    return own ? own : node;
}

cnr_status tf_index(tf_net *net, const Tf__NodeDef *const *nodes, size_t n, cnr_error *err) {
    net->n = (int32_t)n;
    net->entries = (tf_entry *)tf_block(net, (n + 1) * sizeof *net->entries);
    if (!net->entries) return imp_host->fail(err, CNR_E_MEMORY, net->b.path, "out of memory");
    for (int32_t i = 0; i < net->n; i++) {
        const Tf__NodeDef *node = nodes[i];
        if (!node->name || !node->op)
            return imp_host->fail(err, CNR_E_FORMAT, net->b.path,
                                  "node %d has no name or no operator", (int)i);
        net->entries[i].node = node = cut(net, node);
        net->entries[i].row = tf_row_of(node->op);
        if (tf_find(net, node->name, strlen(node->name)))
            return imp_host->fail(err, CNR_E_FORMAT, net->b.path, "two nodes are called \"%s\"",
                                  node->name);
        if (imp_host->map_set(&net->index, node->name, strlen(node->name), &net->entries[i]))
            return imp_host->fail(err, CNR_E_MEMORY, net->b.path, "out of memory");
    }
    return CNR_OK;
}

tf_entry *tf_find(const tf_net *net, const char *name, size_t bytes) {
    return (tf_entry *)imp_host->map_get(net->index, name, bytes);
}

/* The entry of "name" or "name:2", and its *output; NULL for "^name" (a control input) and unknown
 * names. */
tf_entry *tf_input(const tf_net *net, const char *text, int32_t *output) {
    const char *colon = strrchr(text, ':');
    *output = 0;
    if (*text == '^') return NULL;
    for (const char *c = colon ? colon + 1 : ""; *c >= '0' && *c <= '9' && *output < 10000; c++)
        *output = *output * 10 + (*c - '0');
    return tf_find(net, text, colon ? (size_t)(colon - text) : strlen(text));
}

const Tf__AttrValue *tf_node_attr(const Tf__NodeDef *node, const char *key) {
    for (size_t i = 0; i < node->n_attr; i++)
        if (node->attr[i]->key && strcmp(node->attr[i]->key, key) == 0) return node->attr[i]->value;
    return NULL;
}

int tf_is_op(const tf_entry *e, const char *op) { return e && strcmp(e->node->op, op) == 0; }

/* ---- memory that lives as long as the net ---- */

void *tf_block(tf_net *net, size_t bytes) {
    void *block = imp_take(&net->pool, bytes);
    if (!block) net->b.status = CNR_E_MEMORY;
    return block;
}

void tf_release(tf_net *net) {
    imp_host->map_free(net->index);
    imp_pool_free(&net->pool);
}
