/* Whole nets for applications: save one, or make a quantised one. */
#include "store/store.h"
#include "work/work.h"
#include <math.h>

cnr_status cnr_save(cnr_model *m, const char *path, cnr_error *err) {
    const cnr_status status = cnri_require_arguments(err, "model", m, "path", path, NULL);
    if (status) return status;
    return cnri_is_native(path) ? cnri_store_write(m->graph, path, err)
                                : cnri_export(m->graph, path, err);
}

cnr_status cnri_encode_model(cnr_model *m, const char *encoding, const char *layers,
                             cnri_encoded *out, cnr_error *err) {
    cnri_encode_options o = {.layers = layers};
    cnr_attr **settings = NULL;
    cnr_status status = cnri_encoding_parse(encoding, &o.encoding, &settings, err);
    o.settings = (const cnr_attr *const *)settings;
    if (!status) status = cnri_check_process(m->rt, err);
    if (!status) status = cnri_model_idle(m, err);
    if (!status) cnri_model_drop_gradients(m);
    if (!status) status = cnri_encode_weights(m->graph, &o, out, err);
    cnri_free(settings);
    return status;
}

/* ---- quantising ---- */

/* Frees the warnings of a result. */
static void free_warnings(cnr_quantizing *q) {
    for (int32_t i = 0; i < q->n_warnings; i++) cnri_free(q->warnings[i]);
    cnri_free(q->warnings);
    q->warnings = NULL;
    q->n_warnings = 0;
}

/* Copies the rows of layers to the result. */
static cnr_status take_layers(const cnri_quantising *q, cnr_quantizing *out, cnr_error *err) {
    out->layers = cnri_alloc_zero(((size_t)q->n_layers + 1) * sizeof *out->layers);
    out->layer_ms = cnri_alloc_zero(((size_t)q->n_layers * 2 + 1) * sizeof *out->layer_ms);
    for (int32_t i = 0; out->layers && out->layer_ms && i < q->n_layers; i++) {
        const cnri_quantised_layer *l = &q->layers[i];
        char *name = cnri_strdup(l->name);
        if (!name) break;
        out->layers[out->n_layers++] =
            (cnr_quantized_layer){name, l->low, l->high, l->decibels, l->quantised, l->float_for};
        memcpy(out->layer_ms + (size_t)i * 2, l->ms, sizeof l->ms);
    }
    if (out->layer_ms && out->n_layers == q->n_layers) return CNR_OK;
    cnr_quantizing_free(out);
    return cnri_out_of_memory(err, "quantize");
}

/* Copies the warnings of a net to the result. */
static cnr_status take_warnings(const cnr_graph *g, cnr_quantizing *out, cnr_error *err) {
    out->warnings = cnri_alloc_zero(((size_t)g->warnings.n + 1) * sizeof *out->warnings);
    for (int32_t i = 0; out->warnings && i < g->warnings.n; i++) {
        if (!(out->warnings[i] = cnri_strdup(g->warnings.at[i]))) break;
        out->n_warnings++;
    }
    return out->n_warnings == g->warnings.n && out->warnings ? CNR_OK
                                                             : cnri_out_of_memory(err, "quantize");
}

/* Makes a model of the quantised net, and fills the result. */
static cnr_status take(const cnr_model *m, const cnri_quantising *q, cnr_model **net,
                       cnr_quantizing *out, cnr_error *err) {
    cnr_graph *graph;
    *out = (cnr_quantizing){.size = sizeof *out,
                            .n_quantized = q->n_quantised,
                            .checked = q->checked,
                            .agree = q->agree,
                            .top1 = {q->top1[0], q->top1[1]},
                            .ms = {q->ms[0], q->ms[1]},
                            .decibels = q->decibels,
                            .n_float = q->n_float,
                            .method = q->method,
                            .lost = q->lost,
                            .held_back = q->held_back,
                            .bias_gain = q->bias_gain,
                            .best_epoch = q->best_epoch,
                            .trained = {q->trained[0], q->trained[1]}};
    memcpy(out->top1_range, q->top1_range, sizeof out->top1_range);
    memcpy(out->agree_range, q->agree_range, sizeof out->agree_range);
    cnr_status status = take_layers(q, out, err);
    if (!status) status = take_warnings(q->quantized, out, err);
    if (!status) status = cnri_graph_clone(q->quantized, &graph, err);
    if (!status) status = cnri_model_like(m, graph, net, err);
    if (status) cnr_quantizing_free(out);
    return status;
}

cnr_status cnri_quantize_model(cnr_model *m, cnri_samples *samples,
                               const cnr_quantize_options *options, const cnr_observer *observer,
                               cnr_model **net, cnr_quantizing *out, cnr_error *err) {
    cnri_quantising q;
    const int64_t check = options->check;
    const cnr_load_options how = {.size = sizeof how,
                                  .device = m->plan_options.device,
                                  .deterministic = m->plan_options.deterministic,
                                  .memory_limit = m->plan_options.memory_limit};
    const cnri_quantise_options o = {.data = options->data,
                                     .samples = samples,
                                     .layers = options->layers,
                                     .limit = options->limit,
                                     .check = check > 0   ? check
                                              : check < 0 ? 0
                                                          : -1,
                                     .least = options->least,
                                     .max_drop = options->max_drop,
                                     .all = options->all,
                                     .equalise = options->equalize,
                                     .correct_bias = options->correct_bias,
                                     .method = options->method,
                                     .epochs = options->epochs,
                                     .batch = options->batch,
                                     .rate = options->rate,
                                     .seed = options->seed ? options->seed : 1,
                                     .keep_zeros = options->keep_zeros,
                                     .how = &how};
    cnr_status status = cnri_check_process(m->rt, err);
    if (!status) status = cnri_quantise(m->rt, m->graph, &o, observer, &q, err);
    if (status) return status;
    status = take(m, &q, net, out, err);
    cnri_quantising_free(&q);
    return status;
}

cnr_status cnr_quantize(cnr_model *m, const cnr_quantize_options *options,
                        const cnr_observer *observer, cnr_model **net, cnr_quantizing *out,
                        cnr_error *err) {
    cnr_quantize_options o;
    cnr_quantizing got = {.size = sizeof got};
    /* Size of the struct in version 1.2. */
    const uint32_t minimum = offsetof(cnr_quantizing, decibels);
    CNRI_COPY_OPTIONS(o, options);
    if (net) *net = NULL;
    cnr_status status = cnri_require_arguments(err, "model", m, "options.data", o.data, "net", net,
                                               "out", out, NULL);
    if (!status && out->size < minimum)
        status = cnri_fail(err, CNR_E_ARG, "out", "its size is to be set before the call");
    if (o.least == 0) o.least = NAN;
    o.max_drop = o.max_drop == 0 ? NAN : fmax(0, o.max_drop);
    if (!status) status = cnri_quantize_model(m, NULL, &o, observer, net, &got, err);
    if (status) return status;
    CNRI_COPY_RESULT(out, got);
    if (!CNRI_HAS(out, n_warnings)) free_warnings(&got);
    if (!CNRI_HAS(out, layer_ms)) cnri_free(got.layer_ms);
    return status;
}

void cnr_quantizing_free(cnr_quantizing *q) {
    if (!q) return;
    if (CNRI_HAS(q, n_warnings)) free_warnings(q);
    if (CNRI_HAS(q, layer_ms)) {
        cnri_free(q->layer_ms);
        q->layer_ms = NULL;
    }
    for (int32_t i = 0; i < q->n_layers; i++) cnri_free((void *)q->layers[i].name);
    cnri_free(q->layers);
    q->layers = NULL;
    q->n_layers = 0;
}
