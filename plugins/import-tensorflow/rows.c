/* Nodes that other plugins import (cnr_import_row): inputs as in the file, and the attributes that
 * are numbers, texts, truth values or lists of numbers. */
#include "job.h"

#include <stdio.h>

/* A text with its end; NULL: out of memory. */
static const char *text_of(tf_job *j, ProtobufCBinaryData s) {
    char *text = (char *)tf_block(j->net, s.len + 1);
    if (text) memcpy(text, s.data, s.len);
    return text;
}

/* Turns an attribute into one of ours. 0: not supported. */
static int attr_of(tf_job *j, const Tf__AttrValue *a, cnr_attr *out) {
    if (a->has_i) out->type = CNR_ATTR_INT, out->i = a->i;
    else if (a->has_b) out->type = CNR_ATTR_BOOL, out->i = a->b;
    else if (a->has_f) out->type = CNR_ATTR_FLOAT, out->f = (double)a->f;
    else if (a->has_s) out->type = CNR_ATTR_STRING, out->s = text_of(j, a->s);
    else if (a->list && a->list->n_i)
        out->type = CNR_ATTR_INTS, out->n = (int64_t)a->list->n_i, out->ints = a->list->i;
    else return 0; /* types of elements and shapes, which the graph has */
    return out->type != CNR_ATTR_STRING || out->s;
}

void tf_op_theirs(tf_job *j) {
    const Tf__NodeDef *node = j->entry->node;
    cnr_attr *attrs = (cnr_attr *)tf_block(j->net, (node->n_attr + 1) * sizeof *attrs);
    cnr_value *out = (cnr_value *)tf_block(j->net, (size_t)j->entry->n_out * sizeof *out);
    cnr_error err = CNR_ERROR_INIT;
    if (!attrs || !out) return;
    int32_t n = 0;
    for (size_t i = 0; i < node->n_attr; i++) {
        if (!node->attr[i]->key || !node->attr[i]->value) continue;
        attrs[n] = (cnr_attr){.name = node->attr[i]->key, .set = 1};
        n += attr_of(j, node->attr[i]->value, &attrs[n]);
    }
    for (int32_t i = 0; i < j->n_in; i++) j->scratch[i] = tf_in_plain(j, i);
    for (int32_t i = 0; i < j->entry->n_out; i++) out[i] = -1;
    const cnr_import_node given = {.size = sizeof given,
                                   .format = "tensorflow",
                                   .type = j->op,
                                   .name = j->name,
                                   .where = j->net->b.path,
                                   .n_inputs = j->n_in,
                                   .n_outputs = 1,
                                   .inputs = j->scratch,
                                   .n_attrs = n,
                                   .attrs = attrs};
    const cnr_status status = imp_host->import_node(j->net->b.graph, &given, out, &err);
    if (status) return tf_problem(j, "%s", err.text);
    tf_give(j, 0, out[0]);
}
