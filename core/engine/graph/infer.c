/* Infers types of nodes' outputs, and their data where constants decide it; binds symbols. */
#include "graph/parts.h"

void cnri_type_print(const cnr_graph *g, const cnr_tensor *type, cnri_text *out) {
    if (!type) {
        cnri_text_add(out, "-");
        return;
    }
    if (cnri_is_type_unknown(type)) {
        cnri_text_add(out, "?");
        return;
    }
    cnri_text_add(out, "[");
    for (int32_t i = 0; i < type->rank; i++) {
        const char *symbol = type->dim[i] < CNR_DIM_UNKNOWN
                                 ? cnri_graph_symbol_name(g, CNR_SYMBOL_OF_DIM(type->dim[i]))
                                 : NULL;
        if (i) cnri_text_add(out, ",");
        if (type->dim[i] >= 0) cnri_text_add(out, "%lld", (long long)type->dim[i]);
        else cnri_text_add(out, "%s", symbol ? symbol : "?");
    }
    cnri_text_add(out, "] %s", cnr_dtype_name(type->dtype));
}

/* Adds a problem with the node's name, operator and input types. */
static void report(cnr_graph *g, const cnri_node *node, const char *text) {
    cnri_text types = {0};
    for (int32_t i = 0; i < node->view.n_inputs; i++) {
        cnr_port port_buffer;
        if (!node->view.inputs[i]) continue;
        const cnr_op *op = node->view.desc;
        const cnr_port *port = cnri_port_of(op, op->inputs, op->n_inputs, i, &port_buffer);
        cnri_text_add(&types, "%s%s ", types.n ? ", " : "", port ? port->name : "");
        cnri_type_print(g, node->view.inputs[i], &types);
    }
    cnri_graph_problem(g, node->where, "%s (%s) of %s: %s", node->name, node->view.desc->name,
                       types.at && types.n ? types.at : "nothing", text);
    cnri_text_free(&types);
}

/* ---- computing constants ---- */

/* True if a tensor has plain data, any of these flags, and at most `limit` elements. */
static bool known_constant(const cnr_tensor *t, int64_t limit, uint32_t flags) {
    const int64_t n = cnr_count(t);
    return t->data && t->flags & flags && !(t->flags & CNR_TENSOR_VARIABLE) && !t->encoding &&
           !t->quant && n >= 0 && n <= limit;
}

/* Allocates every output that has no data; false if memory is out. *made has a bit for each. */
static bool alloc_outputs(cnri_node *node, uint64_t *made) {
    for (int32_t i = 0; i < node->view.n_outputs; i++) {
        cnr_tensor *t = (cnr_tensor *)node->view.outputs[i];
        t->bytes = cnr_dense_bytes(t);
        if (t->bytes > SIZE_MAX / 2 || !(t->data = cnri_alloc_zero(t->bytes ? t->bytes : 1)))
            return false;
        *made |= UINT64_C(1) << i;
    }
    return true;
}

/* Computes a node by its operator's reference, with workspace from the heap. */
static cnr_status run_reference(cnri_node *node, cnr_error *err) {
    const cnr_op *op = node->view.desc;
    uint64_t bytes = 0;
    if (CNRI_HAS(op, reference_workspace)) bytes = op->reference_workspace(&node->view);
    if (bytes > SIZE_MAX / 2) return cnri_out_of_memory(err, node->name);
    void *work = bytes ? cnri_alloc(bytes) : NULL;
    if (bytes && !work) return cnri_out_of_memory(err, node->name);
    const cnr_mem mem = {.handle = work, .bytes = bytes};
    const cnr_run run = {.size = sizeof run,
                         .range_axis = -1,
                         .node = &node->view,
                         .outputs = (cnr_tensor *const *)node->view.outputs,
                         .workspace = bytes ? &mem : NULL,
                         .workspace_data = work};
    const cnr_status status = op->reference(&run, err);
    cnri_free(work);
    return cnri_plugin_status(err, status, node->name, op->name);
}

/* Computes the outputs if all inputs have one of `flags` and at most `limit` elements, and marks
 * them with the flag `as`. Returns 1 if it did, 0 if not, negative on failure. */
static int32_t evaluate(cnri_node *node, int64_t limit, uint32_t flags, uint32_t as,
                        cnr_error *err) {
    const cnr_op *op = node->view.desc;
    if (!(op->flags & CNR_OP_PURE) || !op->reference || node->view.n_outputs > 64) return 0;
    for (int32_t i = 0; i < node->view.n_inputs; i++)
        if (node->view.inputs[i] && !known_constant(node->view.inputs[i], limit, flags)) return 0;
    for (int32_t i = 0; i < node->view.n_outputs; i++) {
        const cnr_tensor *t = node->view.outputs[i];
        const int64_t n = cnr_count(t);
        if (t->data || n < 0 || n > limit) return 0;
    }
    uint64_t made = 0;
    cnr_status status = CNR_E_MEMORY;
    if (alloc_outputs(node, &made)) status = run_reference(node, err);
    else cnri_out_of_memory(err, node->name);
    for (int32_t i = 0; i < node->view.n_outputs; i++) {
        cnr_tensor *t = (cnr_tensor *)node->view.outputs[i];
        if (status == CNR_OK) {
            t->flags = as;
            t->bytes = cnr_dense_bytes(t);
        } else if (made >> i & 1) {
            cnri_free(t->data);
            t->data = NULL;
        }
    }
    return status == CNR_OK ? 1 : status;
}

/* Computes the outputs of a PURE node whose inputs are all constants of at most `limit` elements.
 * If the reference lowers a dimension here, that size is final, so the constant is not dynamic. */
int32_t cnri_node_evaluate(cnri_node *node, int64_t limit, cnr_error *err) {
    return evaluate(node, limit, CNR_TENSOR_CONST, CNR_TENSOR_CONST, err);
}

/* ---- what is known only at run ---- */

/* True if an input of the node has a size that is known only in a run. */
static bool reads_dynamic(const cnri_node *node) {
    for (int32_t i = 0; i < node->view.n_inputs; i++)
        if (node->view.inputs[i] && node->view.inputs[i]->flags & CNR_TENSOR_DYNAMIC) return true;
    return false;
}

/* True if the node reads late weights, whose data is computed when read (by fold-constants). */
static bool reads_late(const cnr_graph *g, const cnri_node *node) {
    for (int32_t i = 0; i < node->view.n_inputs; i++)
        if (node->in[i] >= 0 && g->values.at[node->in[i]].late) return true;
    return false;
}

/* Computes data from shapes that are upper bounds until the net runs, such as the number of
 * boxes found. The result is an upper bound as well: planning uses it, but it is no constant and
 * is computed again in each run. */
static cnr_status bound_outputs(cnri_node *node, cnr_error *err) {
    bool lowers = false; /* its own shape depends on data */
    for (int32_t i = 0; i < node->view.n_outputs; i++) {
        cnr_tensor *t = (cnr_tensor *)node->view.outputs[i];
        lowers = lowers || t->flags & CNR_TENSOR_DYNAMIC;
        t->flags = (t->flags & ~(uint32_t)CNR_TENSOR_CONST) | CNR_TENSOR_DYNAMIC;
    }
    const int32_t done =
        lowers ? 0
               : evaluate(node, CNRI_EAGER_ELEMENTS, CNR_TENSOR_CONST | CNR_TENSOR_DYNAMIC,
                          CNR_TENSOR_DYNAMIC, err);
    return done < 0 ? (cnr_status)done : CNR_OK;
}

/* ---- one node ---- */

/* True if the types of all inputs are known. */
static bool inputs_known(const cnri_node *node) {
    for (int32_t i = 0; i < node->view.n_inputs; i++)
        if (node->view.inputs[i] && cnri_is_type_unknown(node->view.inputs[i])) return false;
    return true;
}

/* Checks the types that an operator's infer hook returned; NULL, or a text of the fault. */
static const char *inferred_fault(const cnr_graph *g, cnr_tensor *t) {
    if (cnri_is_type_unknown(t)) return NULL; /* it will be known after binding */
    if (cnr_dtype_bits(t->dtype) == 0 || t->rank < 0 || t->rank > CNR_MAX_RANK)
        return "the operator gave its output no valid type";
    bool known = true;
    for (int32_t i = 0; i < t->rank; i++) {
        if (t->dim[i] < CNR_DIM_SYMBOL(g->symbols.n - 1) && t->dim[i] < CNR_DIM_UNKNOWN)
            return "the operator gave its output a dimension below zero";
        known = known && t->dim[i] >= 0;
    }
    if (!cnri_dims_fit(t)) return "its output is too large";
    if (!known) return NULL;
    t->bytes = cnr_dense_bytes(t);
    if (t->bytes == UINT64_MAX || t->bytes > INT64_MAX / 2) return "its output is too large";
    if (t->data) t->flags |= CNR_TENSOR_CONST;
    return NULL;
}

/* Verifies the file's weights that infer or a computation is about to read. Parameters that no
 * infer hook reads are skipped. */
static cnr_status inputs_sound(const cnr_graph *g, const cnri_node *node, cnr_error *err) {
    const cnr_op *op = node->view.desc;
    bool constant = true;
    cnr_port port_buffer;
    for (int32_t i = 0; i < node->view.n_inputs; i++)
        constant = constant && (!node->view.inputs[i] || node->view.inputs[i]->data);
    for (int32_t i = 0; i < node->view.n_inputs; i++) {
        if (node->in[i] < 0 || !g->values.at[node->in[i]].seal) continue;
        const cnr_port *port = cnri_port_of(op, op->inputs, op->n_inputs, i, &port_buffer);
        if (!constant && port && port->flags & CNR_PORT_PARAMETER) continue;
        const cnr_status status = cnri_value_verify(&g->values.at[node->in[i]], false, 0, err);
        if (status) return status;
    }
    return CNR_OK;
}

cnr_status cnri_node_infer(cnr_graph *g, cnri_node *node) {
    for (int32_t i = 0; i < node->view.n_outputs; i++)
        cnri_value_clear(&g->values.at[node->out[i]]);
    if (!inputs_known(node)) return CNR_OK;
    cnr_error err = CNR_ERROR_INIT;
    cnr_tensor *const *outputs = (cnr_tensor *const *)node->view.outputs;
    cnr_status status = inputs_sound(g, node, &err);
    if (!status) status = node->view.desc->infer(&node->view, outputs, &err);
    const char *fault =
        status != CNR_OK ? (err.text[0] ? err.text : "its inputs do not fit") : NULL;
    for (int32_t i = 0; !fault && i < node->view.n_outputs; i++)
        fault = inferred_fault(g, outputs[i]);
    if (!fault) {
        const int32_t done = reads_late(g, node) ? 0
                             : reads_dynamic(node)
                                 ? (int32_t)bound_outputs(node, &err)
                                 : cnri_node_evaluate(node, CNRI_EAGER_ELEMENTS, &err);
        if (done < 0) fault = err.text;
        if (done == CNR_E_MEMORY) status = CNR_E_MEMORY;
    }
    if (!fault) return CNR_OK;
    for (int32_t i = 0; i < node->view.n_outputs; i++)
        cnri_value_clear(&g->values.at[node->out[i]]);
    if (status == CNR_E_MEMORY) {
        cnri_graph_no_memory(g);
        return CNR_E_MEMORY;
    }
    report(g, node, fault);
    return CNR_E_SHAPE;
}

/* ---- binding ---- */

/* Finds sizes of symbols from the given types; 1 where no type has the symbol. */
static cnr_status bind_symbols(const cnr_graph *g, const cnr_tensor *const *types, int32_t n,
                               int64_t *sizes, cnr_error *err) {
    for (int32_t i = 0; i < g->symbols.n; i++) sizes[i] = -1;
    for (int32_t k = 0; k < n; k++) {
        const cnri_value *v = &g->values.at[g->inputs.at[k]];
        if (!types[k]) continue;
        if (types[k]->rank != v->type->rank)
            return cnri_fail(err, CNR_E_SHAPE, v->name, "rank %d wanted, got %d", v->type->rank,
                             types[k]->rank);
        for (int32_t i = 0; i < v->type->rank; i++) {
            const int64_t want = v->type->dim[i], got = types[k]->dim[i];
            int64_t *size = want < CNR_DIM_UNKNOWN ? &sizes[CNR_SYMBOL_OF_DIM(want)] : NULL;
            if (got < 0)
                return cnri_fail(err, CNR_E_SHAPE, v->name, "dimension %d is not known", i);
            if ((want >= 0 && got != want) || (size && *size >= 0 && *size != got))
                return cnri_fail(err, CNR_E_SHAPE, v->name, "dimension %d must be %lld, got %lld",
                                 i, (long long)(size ? *size : want), (long long)got);
            if (size) *size = got;
        }
    }
    const cnr_status status = cnri_ranges_check(g, sizes, err);
    for (int32_t i = 0; i < g->symbols.n; i++)
        if (sizes[i] < 0) sizes[i] = 1;
    return status;
}

/* Copies the data of an input that decides shapes; it is a constant from here on. */
static cnr_status bind_data(cnri_value *v, const void *data) {
    void *copy = cnri_alloc((size_t)v->type->bytes + 1);
    if (!copy) return CNR_E_MEMORY;
    memcpy(copy, data, (size_t)v->type->bytes);
    v->type->data = copy;
    v->type->flags |= CNR_TENSOR_CONST;
    v->is_input = v->borrowed = false;
    return CNR_OK;
}

/* Sets the sizes of the net's inputs from given types and symbols; sizes that nobody gave become 1,
 * and data of types[k] is copied into the input. Fails for a size too large. */
static cnr_status bind_inputs(cnr_graph *g, const cnr_tensor *const *types, int32_t n,
                              const int64_t *sizes, cnr_error *err) {
    for (int32_t k = 0; k < g->inputs.n; k++) {
        cnr_tensor *t = g->values.at[g->inputs.at[k]].type;
        for (int32_t i = 0; i < t->rank; i++) {
            if (t->dim[i] < CNR_DIM_UNKNOWN) t->dim[i] = sizes[CNR_SYMBOL_OF_DIM(t->dim[i])];
            else if (t->dim[i] < 0) t->dim[i] = k < n && types[k] ? types[k]->dim[i] : 1;
        }
        t->bytes = cnr_dense_bytes(t);
        if (!cnri_dims_fit(t))
            return cnri_fail(err, CNR_E_SHAPE, g->values.at[g->inputs.at[k]].name,
                             "it is too large");
        if (k < n && types[k] && types[k]->data &&
            bind_data(&g->values.at[g->inputs.at[k]], types[k]->data) != CNR_OK)
            return cnri_out_of_memory(err, g->name);
    }
    return CNR_OK;
}

/* Resolves the node's attributes again once the rank of input 0 is known, as some wait for it. */
static cnr_status resolve_late(cnr_graph *g, cnri_node *node) {
    const cnr_op *op = node->view.desc;
    const cnr_tensor *x = node->view.n_inputs > 0 ? node->view.inputs[0] : NULL;
    if (!x || cnri_is_type_unknown(x) || x->rank < 3) return CNR_OK;
    const cnr_attr **given = cnri_alloc((size_t)(node->view.n_attrs + 1) * sizeof *given);
    if (!given) {
        cnri_graph_no_memory(g);
        return CNR_E_MEMORY;
    }
    int32_t n = 0;
    for (int32_t i = 0; i < node->view.n_attrs; i++)
        if (node->view.attrs[i]->set) given[n++] = node->view.attrs[i];
    cnr_attr **resolved = NULL;
    const cnr_status status =
        cnri_node_attrs(g, op, node->name, node->where, given, n, x->rank - 2, &resolved);
    cnri_free(given);
    if (status != CNR_OK) return status;
    if (!node->borrowed) cnri_free((void *)node->view.attrs);
    node->borrowed = false;
    node->view.attrs = (const cnr_attr *const *)resolved;
    return CNR_OK;
}

/* Adds a problem, one at most, if an output's shape or a constant input of the node is still open
 * after binding. */
static void check_bound(cnr_graph *g, const cnri_node *node) {
    const cnr_op *op = node->view.desc;
    for (int32_t i = 0; i < node->view.n_outputs; i++) {
        const cnr_tensor *t = node->view.outputs[i];
        if (cnri_is_type_unknown(t) || cnr_count(t) < 0) {
            report(g, node, "the shape of its output can't be worked out before it runs");
            return;
        }
    }
    for (int32_t i = 0; i < node->view.n_inputs; i++) {
        cnr_port port_buffer;
        const cnr_port *port = cnri_port_of(op, op->inputs, op->n_inputs, i, &port_buffer);
        if (!port || !(port->flags & CNR_PORT_CONST) || !node->view.inputs[i]) continue;
        if (!node->view.inputs[i]->data)
            cnri_graph_problem(g, node->where, "%s (%s): input %s must be known before it runs",
                               node->name, op->name, port->name);
    }
}

cnr_status cnri_graph_bind(cnr_graph *g, const cnr_tensor *const *input_types, int32_t n,
                           cnr_error *err) {
    if (!input_types) n = 0;
    if (n > g->inputs.n)
        return cnri_fail(err, CNR_E_ARG, g->name, "%d inputs given, the net has %d", n,
                         g->inputs.n);
    int64_t *sizes = cnri_alloc((size_t)(g->symbols.n + 1) * sizeof *sizes);
    if (!sizes) return cnri_out_of_memory(err, g->name);
    cnr_status status = bind_symbols(g, input_types, n, sizes, err);
    if (status == CNR_OK) status = bind_inputs(g, input_types, n, sizes, err);
    cnri_free(sizes);
    if (status != CNR_OK) return status;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        cnri_node *node = g->nodes.at[i];
        const bool late = node->view.n_outputs > 0 && cnri_is_type_unknown(node->view.outputs[0]);
        if (late && resolve_late(g, node) != CNR_OK) continue;
        const int32_t before = g->problems.n;
        if (cnri_node_infer(g, node) == CNR_OK && inputs_known(node) && g->problems.n == before)
            check_bound(g, node);
    }
    return cnri_graph_status(g, false, err);
}
