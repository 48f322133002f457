/* Nodes that other plugins import or export (cnr_import_row). */
#include "export.h"

#include <stdio.h>

/* Converts an attribute as the file has it. 0: rows do not get attributes of this kind. */
static int attr_of(onnx_job *j, const Onnx__AttributeProto *a, cnr_attr *out) {
    enum { FLOAT = 1, INT, STRING, FLOATS = 6, INTS };
    *out = (cnr_attr){.name = a->name, .set = 1};
    switch (a->type) {
    case FLOAT: out->type = CNR_ATTR_FLOAT, out->f = (double)a->f; return 1;
    case INT: out->type = CNR_ATTR_INT, out->i = a->i; return 1;
    case STRING: out->type = CNR_ATTR_STRING, out->s = onnx_text(j, a->s); return out->s != NULL;
    case INTS:
        out->type = CNR_ATTR_INTS, out->n = (int64_t)a->n_ints, out->ints = a->ints;
        return 1;
    case FLOATS: {
        double *values = (double *)onnx_own(j, (a->n_floats + 1) * sizeof(double));
        for (size_t i = 0; values && i < a->n_floats; i++) values[i] = (double)a->floats[i];
        out->type = CNR_ATTR_FLOATS, out->n = (int64_t)a->n_floats, out->floats = values;
        return values != NULL;
    }
    default: return 0;
    }
}

int onnx_has_row(const onnx_job *j, const char *domain, const char *type) {
    return imp_host->find_import_row("onnx", domain, type, onnx_opset(j->net, domain)) != NULL;
}

void onnx_row(onnx_job *j, const char *domain, const char *type) {
    cnr_attr *attrs = (cnr_attr *)onnx_own(j, (j->node->n_attribute + 1) * sizeof *attrs);
    cnr_error err = CNR_ERROR_INIT;
    cnr_import_node node = {.size = sizeof node,
                            .version = onnx_opset(j->net, domain),
                            .format = "onnx",
                            .domain = domain,
                            .type = type,
                            .name = j->name,
                            .where = j->net->imp.path,
                            .n_inputs = j->n_in,
                            .n_outputs = j->n_out,
                            .inputs = j->in,
                            .attrs = attrs};
    for (size_t i = 0; attrs && i < j->node->n_attribute; i++) {
        const Onnx__AttributeProto *a = j->node->attribute[i];
        if (!a->name || !attr_of(j, a, &attrs[node.n_attrs]))
            return onnx_problem(j, "attribute \"%s\" is of a kind that plugins do not import",
                                a->name ? a->name : "");
        node.n_attrs++;
    }
    const cnr_status status =
        attrs ? imp_host->import_node(j->net->imp.graph, &node, j->out, &err) : CNR_E_MEMORY;
    j->done = 1;
    if (status == CNR_E_MEMORY) j->net->imp.status = status;
    else if (status) onnx_problem(j, "%s", err.text);
}

/* ---- writing ---- */

/* ONNX's name of our attribute by the row, in `text`; `name` itself if the row has no other. */
static const char *their_name(const cnr_import_row *row, const char *name, char *text,
                              size_t room) {
    for (const char *const *pair = row->attrs; pair && *pair; pair++) {
        const char *own = strchr(*pair, '=');
        if (!own || strcmp(own + 1, name) != 0) continue;
        snprintf(text, room, "%.*s", (int)(own - *pair), *pair);
        return text;
    }
    return name;
}

int out_plugin_row(out_job *j) {
    const cnr_import_row *row = imp_host->find_export_row("onnx", j->node->desc->name);
    if (!row) return 0;
    Onnx__NodeProto *n = out_node(j->w, row->type, j->in, j->n_in, j->out, j->n_out);
    if (n && row->domain) n->domain = out_text(j->w, row->domain);
    for (int32_t i = 0; i < j->node->n_attrs; i++) {
        char name[128];
        cnr_attr a = *j->node->attrs[i];
        a.name = out_text(j->w, their_name(row, a.name, name, sizeof name));
        out_put_attr(j->w, n, &a);
    }
    if (row->domain) out_use_domain(j->w, row->domain, row->version ? row->version : 1);
    return 1;
}
