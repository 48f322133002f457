/* The nodes of a GraphDef by name. */
#include "tensorflow.h"

#include <stdio.h>

static uint32_t hash(const char *name, size_t n) {
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)name[i]) * 16777619u;
    return h;
}

/* The place in the index where the name is, or would be. */
static uint32_t place(const tf_net *net, const char *name, size_t bytes) {
    for (uint32_t i = hash(name, bytes) & (net->room - 1);; i = (i + 1) & (net->room - 1)) {
        if (net->index[i] < 0) return i;
        const char *other = net->entries[net->index[i]].node->name;
        if (strlen(other) == bytes && memcmp(other, name, bytes) == 0) return i;
    }
}

/* A node with --option shape.NAME=H,W,C is an input whatever it is: the graph is cut there. */
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
    for (net->room = 64; net->room < 4 * n; net->room *= 2) {
    }
    net->entries = (tf_entry *)tf_block(net, (n + 1) * sizeof *net->entries);
    net->index = (int32_t *)tf_block(net, net->room * sizeof *net->index);
    if (!net->entries || !net->index)
        return imp_host->fail(err, CNR_E_MEMORY, net->b.path, "out of memory");
    for (uint32_t i = 0; i < net->room; i++) net->index[i] = -1;
    for (int32_t i = 0; i < net->n; i++) {
        const Tf__NodeDef *node = nodes[i];
        if (!node->name || !node->op)
            return imp_host->fail(err, CNR_E_FORMAT, net->b.path,
                                  "node %d has no name or no operator", (int)i);
        net->entries[i].node = node = cut(net, node);
        net->entries[i].row = tf_row_of(node->op);
        const uint32_t at = place(net, node->name, strlen(node->name));
        if (net->index[at] >= 0)
            return imp_host->fail(err, CNR_E_FORMAT, net->b.path, "two nodes are called \"%s\"",
                                  node->name);
        net->index[at] = i;
    }
    return CNR_OK;
}

tf_entry *tf_find(const tf_net *net, const char *name, size_t bytes) {
    const int32_t at = net->index[place(net, name, bytes)];
    return at < 0 ? NULL : &net->entries[at];
}

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

int tf_is_op(const tf_entry *e, const char *op) {
    return e && strcmp(e->node->op, op) == 0;
}

/* ---- memory that lives as long as the net ---- */

typedef struct block {
    struct block *next;
    max_align_t data[];
} block;

void *tf_block(tf_net *net, size_t bytes) {
    block *b = (block *)imp_host->alloc(sizeof *b + bytes);
    if (!b) {
        net->b.status = CNR_E_MEMORY;
        return NULL;
    }
    b->next = (block *)net->blocks;
    net->blocks = b;
    return memset(b->data, 0, bytes);
}

void tf_release(tf_net *net) {
    for (block *b = (block *)net->blocks, *next; b; b = next) {
        next = b->next;
        imp_host->free(b);
    }
}
