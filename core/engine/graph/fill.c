/* Fills weights: from data, or with random numbers by their initialisers. */
#include "graph/parts.h"
#include <math.h>

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

/* Start of the random numbers of one weight, from the seed and its name. */
static uint64_t stream_of(uint64_t seed, const char *name) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) h = (h ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    return h ^ seed * UINT64_C(0xd6e8feb86659fd93);
}

/* ---- one value ---- */

/* Draws one element by the weight's kind of initialisation; `deviation` is that of He's. *state
 * advances. */
static double sample(const cnr_init *init, double deviation, uint64_t *state) {
    if (init->kind == CNR_INIT_ONE) return 1;
    if (init->kind == CNR_INIT_CONST) return init->value;
    if (init->kind == CNR_INIT_HE) return deviation * cnri_random_normal(state);
    return 0;
}

/* Allocates the data of one weight and fills it; its type is f32, or converted from it. */
static cnr_status fill_one(cnri_value *v, uint64_t seed, double deviation, cnr_error *err) {
    cnr_tensor *t = v->type;
    const int64_t n = cnr_count(t);
    const uint64_t bytes = cnr_dense_bytes(t);
    void *own = n >= 0 && bytes <= SIZE_MAX / 2 ? cnri_alloc_zero(bytes ? bytes : 1) : NULL;
    if (!own) return cnri_out_of_memory(err, v->name);
    uint64_t state = stream_of(seed, v->name);
    for (int64_t i = 0; i < n; i++)
        if (!cnri_element_set(t->dtype, own, i, sample(&v->init, deviation, &state))) {
            cnri_free(own);
            return cnri_fail(err, CNR_E_UNSUPPORTED, v->name,
                             "weights of type %s can't be filled at random",
                             cnr_dtype_name(t->dtype));
        }
    t->data = own;
    t->bytes = bytes;
    t->flags |= CNR_TENSOR_CONST;
    v->unfilled = v->borrowed = false;
    return CNR_OK;
}

cnr_status cnri_graph_fill_random(cnr_graph *g, uint64_t seed, cnr_error *err) {
    double *deviation = cnri_alloc_zero(((size_t)g->values.n + 1) * sizeof *deviation);
    if (!deviation) return cnri_out_of_memory(err, g->name);
    /* weights that have data decide how the others are scaled */
    cnr_status status = cnri_graph_verify_weights(g, NULL, false, 0, err);
    if (!status) status = cnri_graph_spread(g, seed, deviation, err);
    for (int32_t k = 0; k < g->values.n && !status; k++)
        if (g->values.at[k].unfilled) status = fill_one(&g->values.at[k], seed, deviation[k], err);
    cnri_free(deviation);
    return status;
}
