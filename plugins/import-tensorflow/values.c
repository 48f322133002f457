/* Names to entries, and the two layouts of a value. */
#include "tensorflow.h"

#include <stdio.h>

static uint32_t hash(const char *name, size_t n) {
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)name[i]) * 16777619u;
    return h;
}

tf_entry *tf_find(const tf_net *net, const char *name, size_t bytes) {
    for (uint32_t i = hash(name, bytes) & (net->room - 1);; i = (i + 1) & (net->room - 1)) {
        if (net->index[i] < 0) return NULL;
        tf_entry *e = &net->entries[net->index[i]];
        const char *other = e->node->name ? e->node->name : "";
        if (strlen(other) == bytes && memcmp(other, name, bytes) == 0) return e;
    }
}

tf_entry *tf_input(const tf_net *net, const char *text, int32_t *output) {
    const char *colon = strrchr(text, ':');
    *output = 0;
    if (*text == '^') return NULL;
    size_t n = strlen(text);
    if (colon) {
        int32_t k = 0;
        for (const char *c = colon + 1; *c >= '0' && *c <= '9' && k < 1000; c++) k = k * 10 + (*c - '0');
        *output = k;
        n = (size_t)(colon - text);
    }
    return tf_find(net, text, n);
}

cnr_value tf_node(tf_net *net, const char *op, const char *name, const cnr_value *in, int32_t n_in,
                  const cnr_attr *const *attrs, int32_t n_attrs) {
    cnr_value out = -1;
    char own[80];
    if (!name) { /* a step of ours between theirs */
        snprintf(own, sizeof own, "step%d.%.40s", (int)++net->n_made, op);
        name = own;
    }
    if (tf_host->graph_node(net->graph, op, name, net->path, in, n_in, attrs, n_attrs, &out, 1) ==
        CNR_E_MEMORY)
        net->status = CNR_E_MEMORY;
    return out;
}

static cnr_value transpose(tf_net *net, cnr_value v, const int64_t perm[4]) {
    const cnr_attr a = {.name = "perm", .type = CNR_ATTR_INTS, .n = 4, .ints = perm};
    const cnr_attr *const list[] = {&a};
    return tf_node(net, "transpose", NULL, &v, 1, list, 1);
}

cnr_value tf_plain(tf_net *net, tf_twins *t) {
    static const int64_t back[] = {0, 2, 3, 1};
    if (t->plain < 0 && t->turned >= 0) t->plain = transpose(net, t->turned, back);
    return t->plain;
}

cnr_value tf_turned(tf_net *net, tf_twins *t) {
    static const int64_t forth[] = {0, 3, 1, 2};
    if (t->turned < 0 && t->plain >= 0) t->turned = transpose(net, t->plain, forth);
    return t->turned;
}

const cnr_tensor *tf_type(const tf_net *net, const tf_twins *t) {
    const cnr_value v = t->plain >= 0 ? t->plain : t->turned;
    return v < 0 ? NULL : tf_host->graph_type(net->graph, v);
}

int32_t tf_dims(const tf_net *net, const tf_twins *t, int64_t dim[CNR_MAX_RANK]) {
    const cnr_tensor *type = tf_type(net, t);
    if (!type || !type->dtype) return -1;
    memcpy(dim, type->dim, sizeof type->dim);
    if (t->plain < 0) { /* the turned one: N C H W */
        dim[1] = type->dim[2];
        dim[2] = type->dim[3];
        dim[3] = type->dim[1];
    }
    return type->rank;
}
