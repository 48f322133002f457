/* A net as JSON in the form of X19, section 4.2: environment, structure, and digests of what is
 * bound to it. Names have no colon and are unique; "NAME:K" is output K of a node with several. */
#include "cli/draw_net.h"

typedef CNRI_VEC(char *) names;

/* Adds a name without colons that is unlike all before; NULL: out of memory. Free with
 * free_names. */
static const char *add_name(names *all, const char *wanted, const char *kind) {
    char **slot = cnri_push(all);
    if (!slot) return NULL;
    for (int32_t k = 0;; k++) {
        bool taken = false;
        cnri_free(*slot);
        if (k) *slot = cnri_format("%s_%d", wanted && *wanted ? wanted : kind, (int)k);
        else *slot = cnri_strdup(wanted && *wanted ? wanted : kind);
        if (!*slot) return NULL;
        for (char *at = *slot; *at; at++)
            if (*at == ':') *at = '_';
        for (int32_t i = 0; i + 1 < all->n && !taken; i++) taken = strcmp(all->at[i], *slot) == 0;
        if (!taken) return *slot;
    }
}

/* Adds an object with key and value. */
static void add_pair(cnri_json *j, const char *key, const char *value) {
    cnri_json_object(j, NULL);
    cnri_json_text(j, "key", key);
    cnri_json_text(j, "value", value);
    cnri_json_end(j);
}

/* Adds driver, hardware and version. */
static void add_environment(cnri_json *j, const cnri_call *call, const cnr_plan *plan) {
    char abi[32];
    cnri_text driver = {0}, hardware = {0};
    snprintf(abi, sizeof abi, "abi %d.%d", CNR_ABI_MAJOR, CNR_ABI_MINOR);
    for (int32_t i = 0; i < plan->n_devices; i++) {
        const cnri_device *d = NULL;
        if (cnri_device_find(&call->rt->devices, plan->devices[i]->name, &d, NULL)) continue;
        cnri_text_add(&driver, "%s%s", i ? ", " : "", d->info.driver);
        cnri_text_add(&hardware, "%s%s", i ? ", " : "", d->info.name);
    }
    cnri_json_object(j, "environment");
    cnri_json_text(j, "DNNCLversion", CNNRUN_VERSION);
    cnri_json_text(j, "DNNCLrtversion", abi);
    cnri_json_text(j, "Driverversion", driver.at);
    cnri_json_text(j, "Hardwareversion", hardware.at);
    cnri_json_end(j);
    cnri_text_free(&driver);
    cnri_text_free(&hardware);
}

/* True for a constant with at least two dimensions that a node computes with. */
static bool is_filter(const cnr_graph *g, cnr_value value) {
    for (int32_t i = 0; i < g->nodes.n && g->values.at[value].type->rank > 1; i++)
        for (int32_t k = 1; k < g->nodes.at[i]->view.n_inputs; k++)
            if (g->nodes.at[i]->in[k] == value) return true;
    return false;
}

/* Adds a value of the graph. */
static void add_tensor(cnri_json *j, const cnr_graph *g, cnr_value value, const char *name) {
    const cnri_value *v = &g->values.at[value];
    cnri_text shape = {0};
    for (int32_t i = 0; i < v->type->rank; i++)
        cnri_text_add(&shape, "%s%lld", i ? "," : "",
                      v->type->dim[i] < 0 ? -1LL : (long long)v->type->dim[i]); /* -1: open */
    cnri_json_object(j, NULL);
    cnri_json_text(j, "name", name);
    cnri_json_text(j, "tensortype",
                   v->is_input           ? "Placeholder"
                   : is_filter(g, value) ? "Filter"
                                         : "Const");
    cnri_json_list(j, "attrs");
    add_pair(j, "datatype", cnr_dtype_name(v->type->dtype));
    add_pair(j, "datashape", shape.at ? shape.at : "");
    cnri_json_end(j);
    cnri_json_end(j);
    cnri_text_free(&shape);
}

/* Adds the inputs of a node. */
static void add_inputs(cnri_json *j, const cnr_graph *g, const cnri_node *node,
                       const names *tensors, const names *nodes) {
    cnri_json_list(j, "inputs");
    for (int32_t k = 0; k < node->view.n_inputs; k++) {
        const cnr_value v = node->in[k];
        const int32_t from = v < 0 ? -1 : g->values.at[v].producer;
        char *text = v < 0      ? NULL
                     : from < 0 ? cnri_strdup(tensors->at[v])
                     : g->nodes.at[from]->view.n_outputs > 1
                         ? cnri_format("%s:%d", nodes->at[from], (int)g->values.at[v].output)
                         : cnri_strdup(nodes->at[from]);
        cnri_json_text(j, NULL, text);
        j->text.failed = j->text.failed || (v >= 0 && !text);
        cnri_free(text);
    }
    cnri_json_end(j);
}

/* Adds a node. */
static void add_node(cnri_json *j, const cnr_graph *g, int32_t index, const names *tensors,
                     const names *nodes) {
    const cnri_node *node = g->nodes.at[index];
    cnri_json_object(j, NULL);
    cnri_json_text(j, "name", nodes->at[index]);
    cnri_json_text(j, "optype", node->view.desc->name);
    add_inputs(j, g, node, tensors, nodes);
    cnri_json_list(j, "attrs");
    for (int32_t k = 0; k < node->view.n_attrs; k++) {
        cnri_text attr = {0};
        cnri_attr_print(node->view.attrs[k], &attr);
        add_pair(j, node->view.attrs[k]->name, attr.at ? attr.at : "");
        cnri_text_free(&attr);
    }
    cnri_json_end(j);
    cnri_json_end(j);
}

/* Adds the digests of the constants of each operation; weights without data have none. */
static void add_static_data(cnri_json *j, const cnr_graph *g, const names *tensors,
                            const names *nodes) {
    cnri_json_list(j, "weights");
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        bool begun = false;
        for (int32_t k = 0; k < node->view.n_inputs; k++) {
            const cnri_value *v = node->in[k] < 0 ? NULL : &g->values.at[node->in[k]];
            uint8_t digest[32];
            char hex[65];
            if (!v || v->producer >= 0 || v->is_input || !v->type->data) continue;
            if (v->seal) memcpy(digest, v->seal->digest, sizeof digest);
            else
                cnri_sha256_of(v->type->data,
                               v->type->encoding ? v->type->bytes : cnr_dense_bytes(v->type),
                               digest);
            cnri_hex(digest, sizeof digest, hex);
            if (!begun) {
                cnri_json_object(j, NULL);
                cnri_json_text(j, "name", nodes->at[i]);
                cnri_json_list(j, "staticdata");
            }
            begun = true;
            add_pair(j, tensors->at[node->in[k]], hex);
        }
        if (begun) {
            cnri_json_end(j);
            cnri_json_end(j);
        }
    }
    cnri_json_end(j);
}

/* Frees all names. */
static void free_names(names *all) {
    for (int32_t i = 0; i < all->n; i++) cnri_free(all->at[i]);
    cnri_vec_free(all);
}

cnr_status cnri_graph_json(const cnri_call *call, const cnr_plan *plan, cnr_error *err) {
    const cnr_graph *g = call->model->graph;
    names all = {0}, tensors = {0}, nodes = {0}; /* the latter point into the first */
    cnri_json j = {0};
    bool good = true;
    for (int32_t i = 0; i < g->nodes.n && good; i++) {
        char **slot = cnri_push(&nodes);
        good = slot && (*slot = (char *)(uintptr_t)add_name(&all, g->nodes.at[i]->name,
                                                            g->nodes.at[i]->view.desc->name));
    }
    for (cnr_value v = 0; v < g->values.n && good; v++) {
        char **slot = cnri_push(&tensors);
        good = slot != NULL;
        if (good && g->values.at[v].producer < 0)
            good = (*slot = (char *)(uintptr_t)add_name(&all, g->values.at[v].name, "tensor"));
    }
    cnri_json_begin(&j);
    if (good) {
        add_environment(&j, call, plan);
        cnri_json_list(&j, "structure");
        for (cnr_value v = 0; v < g->values.n; v++)
            if (g->values.at[v].producer < 0) add_tensor(&j, g, v, tensors.at[v]);
        for (int32_t i = 0; i < g->nodes.n; i++) add_node(&j, g, i, &tensors, &nodes);
        cnri_json_end(&j);
        add_static_data(&j, g, &tensors, &nodes);
    }
    cnri_vec_free(&tensors);
    cnri_vec_free(&nodes);
    free_names(&all);
    if (good) return cnri_json_print(&j, err);
    cnri_text_free(&j.text);
    return cnri_out_of_memory(err, "--graph-json");
}
