/* Import rows: operators of model formats as data of plugins, found by format, domain and type. */
#include "graph/parts.h"

/* True if a row is for the node's operator domain; NULL and "" are the same. */
static bool is_domain(const char *row, const char *node) {
    return strcmp(row ? row : "", node ? node : "") == 0;
}

/* The row for a foreign operator: of several, that of the highest version not above `version`.
 * NULL: none. */
static const cnr_import_row *find_import_row(const char *format, const char *domain,
                                             const char *type, int32_t version) {
    const cnr_import_row *best = NULL, *row;
    for (int32_t i = 0; (row = cnri_descriptor_at(CNR_KIND_IMPORT_ROW, i)) != NULL; i++) {
        if (strcmp(row->format, format) != 0 || strcmp(row->type, type) != 0 ||
            !is_domain(row->domain, domain) || (version && row->version > version))
            continue;
        if (!best || row->version > best->version) best = row;
    }
    return best;
}

/* The operator's name for an attribute of the file, from the row's "file's=operator's". */
static const char *attr_name(const cnr_import_row *row, const char *name) {
    const size_t n = strlen(name);
    for (const char *const *pair = row->attrs; pair && *pair; pair++)
        if (strncmp(*pair, name, n) == 0 && (*pair)[n] == '=') return *pair + n + 1;
    return name;
}

/* Converts to the schema's type: files store truth values and floats as whole numbers, and
 * choices as texts. */
static void as_schema(const cnr_op *op, cnr_attr *a) {
    for (int32_t i = 0; i < op->n_attrs; i++) {
        cnr_attr_spec buffer;
        const cnr_attr_spec *spec = cnri_spec_at(op->attrs, op->attr_spec_size, i, &buffer);
        if (strcmp(spec->name, a->name) != 0) continue;
        if (a->type == CNR_ATTR_INT && spec->type == CNR_ATTR_FLOAT) a->f = (double)a->i;
        if (a->type == CNR_ATTR_INT &&
            (spec->type == CNR_ATTR_FLOAT || spec->type == CNR_ATTR_BOOL))
            a->type = spec->type;
        if (a->type == CNR_ATTR_STRING && spec->type == CNR_ATTR_ENUM) a->type = spec->type;
    }
}

/* Adds the node of our operator that a row without a hook names, with the foreign attributes
 * unchanged. */
static cnr_status as_operator(cnr_graph *g, const cnr_import_row *row, const cnr_import_node *node,
                              cnr_value *outputs, cnr_error *err) {
    const cnr_op *op = cnri_op_find(row->op);
    const size_t n = (size_t)node->n_attrs;
    cnr_attr *own = cnri_alloc((n + 1) * (sizeof *own + sizeof(cnr_attr *)));
    if (!own) return cnri_out_of_memory(err, node->where);
    const cnr_attr **list = (const cnr_attr **)(void *)(own + n + 1);
    for (size_t i = 0; i < n; i++) {
        own[i] = node->attrs[i];
        own[i].name = attr_name(row, own[i].name);
        if (op) as_schema(op, &own[i]);
        list[i] = &own[i];
    }
    const cnr_status status =
        cnri_graph_node(g, row->op, node->name, node->where, node->inputs, node->n_inputs, list,
                        node->n_attrs, outputs, node->n_outputs);
    cnri_free(own);
    return status ? cnri_fail(err, status, node->where, "%s %s is no node of operator %s",
                              node->type, node->name, row->op)
                  : CNR_OK;
}

/* Imports a foreign node by its row. CNR_E_NOT_FOUND: no plugin has one. */
static cnr_status import_node(cnr_graph *g, const cnr_import_node *node, cnr_value *outputs,
                              cnr_error *err) {
    const cnr_import_row *row =
        find_import_row(node->format, node->domain, node->type, node->version);
    if (!row) return CNR_E_NOT_FOUND;
    if (!row->import) return as_operator(g, row, node, outputs, err);
    const cnr_status status = row->import(&cnri_host, g, node, outputs, err);
    return cnri_plugin_status(err, status, node->where, row->name);
}

/* The row by which our operator is exported to a format; NULL: none. */
static const cnr_import_row *find_export_row(const char *format, const char *op) {
    const cnr_import_row *row;
    for (int32_t i = 0; (row = cnri_descriptor_at(CNR_KIND_IMPORT_ROW, i)) != NULL; i++)
        if (row->op && strcmp(row->op, op) == 0 && strcmp(row->format, format) == 0) return row;
    return NULL;
}

void cnri_import_rows_install(cnr_host *host) {
    host->find_import_row = find_import_row;
    host->import_node = import_node;
    host->find_export_row = find_export_row;
}
