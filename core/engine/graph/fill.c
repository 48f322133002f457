/* Fills weights from data. */
#include "graph/parts.h"

cnr_status cnri_graph_fill(cnr_graph *g, cnr_value value, const cnr_tensor *data, cnr_error *err) {
    if (value < 0 || value >= g->values.n || !data || !data->data)
        return cnri_fail(err, CNR_E_ARG, g->name, "no such weight, or no data for it");
    cnri_value *v = &g->values.at[value];
    if (v->producer >= 0 || v->is_input)
        return cnri_fail(err, CNR_E_ARG, v->name, "it is computed, not a weight");
    if (data->dtype != v->type->dtype || !cnr_same_shape(data, v->type)) {
        cnri_text t = {0};
        cnri_type_print(g, v->type, &t);
        cnri_text_add(&t, " wanted, got ");
        cnri_type_print(g, data, &t);
        cnri_fail(err, CNR_E_SHAPE, v->name, "%s", t.at ? t.at : "");
        cnri_text_free(&t);
        return CNR_E_SHAPE;
    }
    const uint64_t bytes = data->encoding ? data->bytes : cnr_dense_bytes(data);
    const cnr_quant *quant = NULL;
    void *own = bytes <= SIZE_MAX / 2 ? cnri_alloc(bytes ? bytes : 1) : NULL;
    if (!own || !cnri_quant_copy(data->quant, &quant)) {
        cnri_free(own);
        return cnri_out_of_memory(err, v->name);
    }
    memcpy(own, data->data, bytes);
    cnri_value_drop(v);
    cnri_free((void *)v->type->quant);
    v->type->data = own;
    v->type->bytes = bytes;
    v->type->encoding = data->encoding;
    v->type->quant = quant;
    v->type->flags |= CNR_TENSOR_CONST;
    v->borrowed = v->unfilled = false;
    v->seal = NULL;
    cnri_late_free(v->late); /* the data no longer depends on another weight */
    v->late = NULL;
    return CNR_OK;
}

/* ---- by name ---- */

static void CNRI_PRINTF(2, 3) misfit(cnri_filling *f, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    cnri_text_add(&f->misfits, "%s%s", f->n++ ? "; " : "", line);
}

cnr_status cnri_filling_add(cnri_filling *f, const char *name, const cnr_tensor *data,
                            cnr_error *err) {
    const cnr_value to = cnri_graph_find(f->graph, name);
    if (to < 0) {
        misfit(f, "%s is not in the net", name);
        return CNR_OK;
    }
    const cnr_status status = data ? cnri_graph_fill(f->graph, to, data, err) : CNR_E_FORMAT;
    if (status == CNR_E_MEMORY) return status;
    if (status != CNR_OK) misfit(f, "%s: %s", name, err ? err->text : "does not fit");
    return CNR_OK;
}

cnr_status cnri_filling_end(cnri_filling *f, cnr_status status, const char *path, cnr_error *err) {
    const cnr_graph *g = f->graph;
    if (status != CNR_OK) cnri_fail(err, status, path, "out of memory");
    for (int32_t i = 0; i < g->values.n && status == CNR_OK; i++)
        if (g->values.at[i].unfilled && g->values.at[i].uses > 0)
            misfit(f, "%s is not in the file", g->values.at[i].name);
    if (status == CNR_OK && f->n > 0) {
        const char *text = f->misfits.at ? f->misfits.at : "";
        /* More misfits than the error record can hold. */
        if (!err || f->misfits.n + 64 > sizeof err->text)
            cnri_log(CNR_LOG_ERROR, path, "weights do not fit the net: %s", text);
        status = cnri_fail(err, CNR_E_SHAPE, path, "%d weight%s not fit the net: %s", f->n,
                           f->n == 1 ? " does" : "s do", text);
    }
    cnri_text_free(&f->misfits);
    return status;
}
