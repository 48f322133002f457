/* Graphs: values, inputs, constants, outputs, metadata, problems. */
#include "graph/parts.h"

void cnri_graph_no_memory(cnr_graph *g) { g->out_of_memory = true; }

/* A new empty net of this name (NULL: ""), for cnri_graph_free; NULL: out of memory. */
cnr_graph *cnri_graph_new(const char *name) {
    cnr_graph *g = cnri_alloc_zero(sizeof *g);
    if (!g) return NULL;
    g->insert_before = -1;
    g->name = cnri_strdup(name ? name : "");
    if (!g->name) {
        cnri_free(g);
        return NULL;
    }
    return g;
}

void cnri_value_clear(cnri_value *v) {
    cnri_value_drop(v);
    cnri_free((void *)v->type->quant);
    cnri_late_free(v->late);
    v->late = NULL;
    memset(v->type, 0, sizeof *v->type);
    v->type->size = sizeof *v->type;
    v->borrowed = false;
    v->seal = NULL;
}

void cnri_node_free(cnri_node *node) {
    if (!node) return;
    if (!node->borrowed) cnri_free((void *)node->view.attrs);
    cnri_free((void *)node->view.inputs);
    cnri_free(node->in);
    cnri_free(node->name);
    cnri_free(node->where);
    cnri_free(node);
}

void cnri_calibration_free(cnr_graph *g) {
    if (!g || !g->calibration) return;
    cnri_map_free(&g->calibration->requested);
    cnri_vec_free(&g->calibration->answers);
    cnri_free(g->calibration);
    g->calibration = NULL;
}

void cnri_graph_free(cnr_graph *g) {
    if (!g) return;
    for (int32_t i = 0; i < g->nodes.n; i++) cnri_node_free(g->nodes.at[i]);
    for (int32_t i = 0; i < g->values.n; i++) {
        if (!g->values.at[i].type) continue;
        cnri_value_clear(&g->values.at[i]);
        cnri_free(g->values.at[i].type);
        cnri_free(g->values.at[i].name);
    }
    for (int32_t i = 0; i < g->symbols.n; i++) cnri_free(g->symbols.at[i]);
    for (int32_t i = 0; i < g->problems.n; i++) {
        cnri_free(g->problems.at[i].where);
        cnri_free(g->problems.at[i].text);
    }
    for (int32_t i = 0; i < g->outputs.n; i++) cnri_free(g->outputs.names[i]);
    for (int32_t i = 0; i < g->meta.n; i++) {
        cnri_free(g->meta.keys[i]);
        cnri_free(g->meta.texts[i]);
    }
    cnri_vec_free(&g->nodes);
    cnri_vec_free(&g->values);
    cnri_vec_free(&g->inputs);
    cnri_vec_free(&g->symbols);
    cnri_vec_free(&g->problems);
    for (int32_t i = 0; i < g->warnings.n; i++) cnri_free(g->warnings.at[i]);
    cnri_vec_free(&g->warnings);
    cnri_free(g->ranges);
    cnri_free(g->outputs.at);
    cnri_free(g->outputs.names);
    cnri_free(g->meta.keys);
    cnri_free(g->meta.texts);
    cnri_map_free(&g->value_names);
    cnri_map_free(&g->node_names);
    cnri_calibration_free(g);
    if (g->file.at) cnri_unmap_file(&g->file);
    cnri_aside_close(g);
    cnri_free(g->seals.at);
    cnri_free(g->seals.file);
    cnri_free(g->name);
    cnri_free(g);
}

/* Notes a problem, of which the first fails the load later. */
static void problemv(cnr_graph *g, const char *where, const char *format, va_list args) {
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    cnri_problem *p = cnri_push(&g->problems);
    if (!p || !(p->where = cnri_strdup(where ? where : "")) || !(p->text = cnri_strdup(text)))
        cnri_graph_no_memory(g);
}

void CNRI_PRINTF(3, 4)
    cnri_graph_problem(cnr_graph *g, const char *where, const char *format, ...) {
    va_list args;
    va_start(args, format);
    problemv(g, where, format, args);
    va_end(args);
}

void cnri_graph_warn(cnr_graph *g, const char *where, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cnri_log(CNR_LOG_WARN, where, "%s", text);
    char *line = cnri_format("%s: %s", where && *where ? where : "net", text);
    char **slot = line ? cnri_push(&g->warnings) : NULL;
    if (slot) *slot = line;
    else cnri_free(line);
}

/* ---- values ---- */

/* Copies `quant` with its lists into one block, *out, for cnri_free; NULL gives NULL. False: memory
 * is out, and *out is NULL. */
bool cnri_quant_copy(const cnr_quant *quant, const cnr_quant **out) {
    *out = NULL;
    if (!quant) return true;
    const size_t n = quant->count > 0 ? (size_t)quant->count : 0;
    if (n > SIZE_MAX / 16) return false;
    cnr_quant *q = cnri_alloc(sizeof *q + n * (sizeof(float) + sizeof(int32_t)));
    if (!q) return false;
    float *scale = (float *)(q + 1);
    int32_t *zero = (int32_t *)(scale + n);
    *q = *quant;
    q->size = sizeof *q;
    memcpy(scale, quant->scale, n * sizeof *scale);
    if (quant->zero_point) memcpy(zero, quant->zero_point, n * sizeof *zero);
    q->scale = scale;
    q->zero_point = quant->zero_point ? zero : NULL;
    *out = q;
    return true;
}

cnr_value cnri_value_add(cnr_graph *g, const char *name, const cnr_tensor *type) {
    char *own = cnri_strdup(name);
    for (int32_t k = 2; own && cnri_map_get(&g->value_names, own); k++) {
        cnri_free(own);
        own = cnri_format("%s.%d", name, k);
    }
    cnr_tensor *t = cnri_alloc_zero(sizeof *t);
    const cnr_quant *quant = NULL;
    if (!own || !t || !cnri_quant_copy(type->quant, &quant)) goto failed;
    *t = *type;
    t->size = sizeof *t;
    t->quant = quant;
    t->data = NULL;
    t->dim_range = NULL;
    memset(&t->mem, 0, sizeof t->mem);
    if (cnri_map_set(&g->value_names, own, (void *)(intptr_t)(g->values.n + 1)) != CNR_OK)
        goto failed;
    cnri_value *v = cnri_push(&g->values);
    if (!v) {
        cnri_map_set(&g->value_names, own, NULL);
        goto failed;
    }
    v->name = own;
    v->type = t;
    v->producer = -1;
    return g->values.n - 1;
failed:
    cnri_free((void *)quant);
    cnri_free(t);
    cnri_free(own);
    cnri_graph_no_memory(g);
    return -1;
}

/* Adds `change` to the number of readers of a value; does nothing for -1. */
void cnri_value_use(cnr_graph *g, cnr_value value, int32_t change) {
    if (value >= 0) g->values.at[value].uses += change;
}

/* True for a size, unknown, or a symbol that the graph has. */
static bool valid_dim(const cnr_graph *g, int64_t dim) {
    return dim >= CNR_DIM_UNKNOWN || (dim >= CNR_DIM_SYMBOL(g->symbols.n - 1) && g->symbols.n > 0);
}

/* Returns NULL, or a text that says what is wrong with the type of an input or constant. */
static const char *type_fault(const cnr_graph *g, const cnr_tensor *type, bool constant) {
    if (!type) return "it has no type";
    if (cnr_dtype_bits(type->dtype) == 0) return "its element type is unknown";
    if (type->rank < 0 || type->rank > CNR_MAX_RANK) return "its rank is not 0 to 8";
    for (int32_t i = 0; i < type->rank; i++)
        if (constant ? type->dim[i] < 0 : !valid_dim(g, type->dim[i]))
            return "it has a dimension that is neither a size nor a symbol of this net";
    if (!cnri_dims_fit(type) || (constant && cnr_dense_bytes(type) == UINT64_MAX))
        return "it is too large";
    const cnr_quant *q = type->quant;
    if (q && (!q->scale || q->count < 1 || q->axis < -1 || q->axis >= type->rank ||
              q->count != (q->axis < 0 ? 1 : type->dim[q->axis])))
        return "its quantisation does not fit its shape";
    return NULL;
}

/* True if a new value may have this name; notes a problem otherwise. */
static bool name_free(cnr_graph *g, const char *what, const char *name) {
    if (!name || !name[0]) {
        cnri_graph_problem(g, "", "%s has no name", what);
        return false;
    }
    if (cnri_map_get(&g->value_names, name)) {
        cnri_graph_problem(g, name, "%s %s: there is already a value of that name", what, name);
        return false;
    }
    return true;
}

/* Adds a net input of this type, made dense and plain; its value, or -1 with a problem noted. */
cnr_value cnri_graph_input(cnr_graph *g, const char *name, const cnr_tensor *type) {
    if (!name_free(g, "input", name)) return -1;
    const char *fault = type_fault(g, type, false);
    if (fault) {
        cnri_graph_problem(g, name, "input %s: %s", name, fault);
        return -1;
    }
    cnr_tensor plain = *type;
    plain.encoding = 0;
    plain.block = 0;
    plain.flags = 0;
    plain.bytes = 0;
    const cnr_value v = cnri_value_add(g, name, &plain);
    cnr_value *slot = v >= 0 ? cnri_push(&g->inputs) : NULL;
    if (!slot) {
        cnri_graph_no_memory(g);
        return -1;
    }
    *slot = v;
    g->values.at[v].is_input = true;
    return v;
}

const char *cnri_graph_symbol_name(const cnr_graph *g, int32_t i) {
    return i >= 0 && i < g->symbols.n ? g->symbols.at[i] : NULL;
}

int32_t cnri_graph_symbol(cnr_graph *g, const char *name) {
    for (int32_t i = 0; i < g->symbols.n; i++)
        if (strcmp(g->symbols.at[i], name) == 0) return i;
    char *own = cnri_strdup(name);
    char **slot = own ? cnri_push(&g->symbols) : NULL;
    if (!slot) {
        cnri_free(own);
        cnri_graph_no_memory(g);
        return -1;
    }
    *slot = own;
    return g->symbols.n - 1;
}

/* Adds a constant without data, with a generated name if it has none. -1: see the problems. */
static cnr_value constant(cnr_graph *g, const char *name, const cnr_tensor *type, bool has_data) {
    const char *fault;
    char generated[32]; /* rewrites and gradients need not choose names */
    if (!name || !name[0]) {
        snprintf(generated, sizeof generated, "constant.%d", g->values.n);
        name = generated;
    }
    if (!name_free(g, "constant", name)) return -1;
    if ((fault = type_fault(g, type, true)) != NULL) {
        cnri_graph_problem(g, name, "constant %s: %s", name, fault);
        return -1;
    }
    cnr_tensor t = *type;
    t.block = 0;
    t.flags = (type->flags & CNR_TENSOR_VARIABLE) | (has_data ? CNR_TENSOR_CONST : 0u);
    if (!t.encoding) t.bytes = cnr_dense_bytes(&t);
    const cnr_value v = cnri_value_add(g, name, &t);
    if (v >= 0) g->values.at[v].unfilled = !has_data;
    return v;
}

cnr_value cnri_graph_constant_read(cnr_graph *g, const char *name, const cnr_tensor *type,
                                   cnri_read_fn read, void *state) {
    const cnr_value v = constant(g, name, type, true);
    if (v < 0) return -1;
    cnri_value *value = &g->values.at[v];
    const uint64_t bytes = value->type->bytes;
    cnr_status status = cnri_aside_put(g, read, state, bytes, &value->type->data);
    value->is_aside = value->type->data != NULL;
    if (value->is_aside) return v;
    if (!status && (bytes > SIZE_MAX || !(value->type->data = cnri_alloc(bytes ? bytes : 1))))
        status = CNR_E_MEMORY;
    if (!status) status = read(state, 0, value->type->data, bytes);
    if (!status) return v;
    if (status == CNR_E_MEMORY) cnri_graph_no_memory(g);
    else cnri_graph_problem(g, value->name, "constant %s: its data can't be read", value->name);
    return -1;
}

/* Reads from memory. */
static cnr_status read_memory(void *state, uint64_t offset, void *out, uint64_t bytes) {
    memcpy(out, (const uint8_t *)state + offset, (size_t)bytes);
    return CNR_OK;
}

cnr_value cnri_graph_constant(cnr_graph *g, const char *name, const cnr_tensor *type) {
    return type->data ? cnri_graph_constant_read(g, name, type, read_memory, type->data)
                      : constant(g, name, type, false);
}

cnr_value cnri_graph_borrow(cnr_graph *g, const char *name, const cnr_tensor *type) {
    const cnr_value v = constant(g, name, type, type->data != NULL);
    if (v < 0) return -1;
    g->values.at[v].borrowed = true;
    g->values.at[v].type->data = type->data;
    return v;
}

cnr_value cnri_graph_find(const cnr_graph *g, const char *value_name) {
    return (cnr_value)((intptr_t)cnri_map_get(&g->value_names, value_name) - 1);
}

/* Makes a value an output; name NULL or "": the value's name. CNR_E_ARG, with a problem noted: no
 * such value, or an output has this name. */
cnr_status cnri_graph_output(cnr_graph *g, cnr_value value, const char *name) {
    if (value < 0 || value >= g->values.n) {
        /* After an earlier problem a missing value is only its consequence. */
        if (g->problems.n == 0)
            cnri_graph_problem(g, name, "output %s has no value", name ? name : "");
        return CNR_E_ARG;
    }
    if (!name || !name[0]) name = g->values.at[value].name;
    for (int32_t i = 0; i < g->outputs.n; i++)
        if (strcmp(g->outputs.names[i], name) == 0) {
            cnri_graph_problem(g, name, "output %s: there is already an output of that name", name);
            return CNR_E_ARG;
        }
    if (g->outputs.n == g->outputs.capacity) {
        const int32_t capacity = g->outputs.capacity ? g->outputs.capacity * 2 : 4;
        cnr_value *at = cnri_resize(g->outputs.at, (size_t)capacity * sizeof *at);
        if (at) g->outputs.at = at;
        char **names = cnri_resize(g->outputs.names, (size_t)capacity * sizeof *names);
        if (names) g->outputs.names = names;
        if (!at || !names) goto failed;
        g->outputs.capacity = capacity;
    }
    char *own = cnri_strdup(name);
    if (!own) goto failed;
    g->outputs.at[g->outputs.n] = value;
    g->outputs.names[g->outputs.n++] = own;
    cnri_value_use(g, value, 1);
    return CNR_OK;
failed:
    cnri_graph_no_memory(g);
    return CNR_E_MEMORY;
}

/* ---- metadata ---- */

const char *cnri_graph_meta(const cnr_graph *g, const char *key) {
    const int32_t i = CNRI_INDEX_OF(g->meta.keys, g->meta.n, key);
    return i < 0 ? NULL : g->meta.texts[i];
}

/* Removes entry i of the metadata. */
static void meta_remove(cnr_graph *g, int32_t i) {
    cnri_free(g->meta.keys[i]);
    cnri_free(g->meta.texts[i]);
    g->meta.n--;
    for (; i < g->meta.n; i++) {
        g->meta.keys[i] = g->meta.keys[i + 1];
        g->meta.texts[i] = g->meta.texts[i + 1];
    }
}

cnr_status cnri_graph_set_meta(cnr_graph *g, const char *key, const char *text) {
    const int32_t i = CNRI_INDEX_OF(g->meta.keys, g->meta.n, key);
    if (!text) {
        if (i >= 0) meta_remove(g, i);
        return CNR_OK;
    }
    char *own = cnri_strdup(text), *own_key = NULL;
    if (!own) goto failed;
    if (i >= 0) {
        cnri_free(g->meta.texts[i]);
        g->meta.texts[i] = own;
        return CNR_OK;
    }
    if (g->meta.n == g->meta.capacity) {
        const int32_t capacity = g->meta.capacity ? g->meta.capacity * 2 : 8;
        char **keys = cnri_resize(g->meta.keys, (size_t)capacity * sizeof *keys);
        if (keys) g->meta.keys = keys;
        char **texts = cnri_resize(g->meta.texts, (size_t)capacity * sizeof *texts);
        if (texts) g->meta.texts = texts;
        if (!keys || !texts) goto failed;
        g->meta.capacity = capacity;
    }
    if (!(own_key = cnri_strdup(key))) goto failed;
    g->meta.keys[g->meta.n] = own_key;
    g->meta.texts[g->meta.n++] = own;
    return CNR_OK;
failed:
    cnri_free(own);
    cnri_graph_no_memory(g);
    return CNR_E_MEMORY;
}

/* ---- the verdict ---- */

/* True if `where` names the net itself; then its file need not be repeated in each problem. */
static bool is_net(const cnr_graph *g, const char *where) {
    const char *slash = strrchr(where, '/');
    return strcmp(where, g->name) == 0 || (slash && strcmp(slash + 1, g->name) == 0);
}

cnr_status cnri_graph_status(const cnr_graph *g, bool filled, cnr_error *err) {
    if (g->out_of_memory) return cnri_out_of_memory(err, g->name);
    if (g->problems.n > 0) {
        cnri_text all = {0};
        for (int32_t i = 0; i < g->problems.n; i++) {
            const cnri_problem *p = &g->problems.at[i];
            const bool named = p->where[0] && !is_net(g, p->where);
            cnri_text_add(&all, "%s%s%s%s", i ? "\n" : "", named ? p->where : "", named ? ": " : "",
                          p->text);
        }
        const char *report = all.at ? all.at : "", *plural = g->problems.n == 1 ? "" : "s";
        if (err && all.n + 64 <= sizeof err->text) {
            cnri_fail(err, CNR_E_ARG, g->name, "%d problem%s:\n%s", g->problems.n, plural, report);
        } else { /* more problems than the error record can hold */
            cnri_log(CNR_LOG_ERROR, g->name, "%d problem%s:\n%s", g->problems.n, plural, report);
            cnri_fail(err, CNR_E_ARG, g->name, "%d problem%s, told in the log; the first: %.*s",
                      g->problems.n, plural, (int)strcspn(report, "\n"), report);
        }
        cnri_text_free(&all);
        return CNR_E_ARG;
    }
    if (g->outputs.n == 0) return cnri_fail(err, CNR_E_ARG, g->name, "the net has no outputs");
    if (!filled) return CNR_OK;
    int32_t missing = 0;
    const char *first = NULL;
    for (int32_t i = 0; i < g->values.n; i++)
        if (g->values.at[i].unfilled && g->values.at[i].uses > 0) {
            if (missing++ == 0) first = g->values.at[i].name;
        }
    if (missing == 0) return CNR_OK;
    return cnri_fail(err, CNR_E_STATE, g->name,
                     "%d weight%s without data (the first: %s); a weights file is wanted", missing,
                     missing == 1 ? "" : "s", first);
}

void cnri_nodes_shifted(cnr_graph *g, int32_t first, int32_t by) {
    for (int32_t i = first; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        for (int32_t k = 0; k < node->view.n_outputs; k++)
            g->values.at[node->out[k]].producer += by;
    }
}
