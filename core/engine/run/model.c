/* Models: a graph, its labels, and the options of its plans. */
#include "run/run.h"
#include <pthread.h>

/* Fills err: out of memory. */
static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "model", "out of memory");
}

/* ---- making and releasing ---- */

/* Splits the labels of the net's metadata into lines. False: out of memory. */
static bool copy_labels(cnr_model *m) {
    const char *text = cnri_graph_meta(m->graph, "labels");
    while (text && *text) {
        const size_t n = strcspn(text, "\n");
        char **grown = cnri_resize(m->labels, (size_t)(m->n_labels + 1) * sizeof *grown);
        if (!grown) return false;
        m->labels = grown;
        const size_t shown = n && text[n - 1] == '\r' ? n - 1 : n;
        if (!(grown[m->n_labels] = cnri_format("%.*s", (int)shown, text))) return false;
        m->n_labels++;
        text += n + (text[n] == '\n');
    }
    return true;
}

/* Copies the sizes of symbols from the options. False: out of memory. */
static bool copy_symbols(cnr_model *m, const cnr_load_options *o) {
    if (!o || o->n_symbols <= 0) return true;
    m->symbols = cnri_alloc_zero((size_t)o->n_symbols * sizeof *m->symbols);
    m->symbol_values = cnri_alloc((size_t)o->n_symbols * sizeof *m->symbol_values);
    if (!m->symbols || !m->symbol_values) return false;
    for (int32_t i = 0; i < o->n_symbols; i++) {
        if (!(m->symbols[i] = cnri_strdup(o->symbols[i]))) return false;
        m->symbol_values[i] = o->symbol_values[i];
        m->n_symbols++;
    }
    return true;
}

/* Takes the ranges of symbols from the options. */
static cnr_status take_ranges(cnr_model *m, const cnr_load_options *o, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (const char *const *r = o ? o->symbol_ranges : NULL; r && *r && !status; r++)
        status = cnri_graph_add_range(m->graph, *r, err);
    return status;
}

/* Adds the model's sizes of symbols to *from; nothing is copied. */
static void take_symbols(const cnr_model *m, cnri_sizes *from) {
    from->symbols = (const char *const *)m->symbols;
    from->values = m->symbol_values;
    from->n_symbols = m->n_symbols;
}

void cnri_model_sizes(const cnr_model *m, int32_t index, cnri_sizes from, cnr_tensor *out) {
    take_symbols(m, &from);
    cnri_input_sizes(m->graph, index, &from, out);
}

/* Fills the shapes of all inputs, with 224 x 224 pixels where nothing else is known. */
static cnr_status default_sizes(const cnr_graph *g, const cnri_sizes *wanted, cnr_tensor *shapes,
                                const cnr_tensor **list, cnr_error *err) {
    const cnr_tensor any = {.rank = 3, .dim = {224, 224, 3}};
    cnri_preprocess p;
    cnri_sizes from = *wanted;
    from.preprocess = &p;
    from.picture = &any;
    cnr_status status = cnri_symbols_check(g, wanted, err);
    for (int32_t i = 0; i < g->inputs.n && !status; i++) {
        const cnri_value *input = &g->values.at[g->inputs.at[i]];
        status = cnri_preprocess_read(g, input->name, &p, err);
        if (status) break;
        cnri_input_sizes(g, i, &from, &shapes[i]);
        if (from.batch > 1 && cnri_picture_axes(input->type).batch == 0)
            shapes[i].dim[0] = from.batch; /* a net for another size may still accept the shape */
        cnri_preprocess_free(&p);
        list[i] = &shapes[i];
    }
    return status;
}

cnr_status cnri_model_default_sizes(const cnr_model *m, int64_t batch, cnr_tensor *shapes,
                                    const cnr_tensor **list, cnr_error *err) {
    cnri_sizes from = {.batch = batch};
    take_symbols(m, &from);
    return default_sizes(m->graph, &from, shapes, list, err);
}

cnr_status cnri_input_shapes(const cnr_model *model, int64_t batch, cnri_shapes *out,
                             cnr_error *err) {
    const int32_t n = cnr_input_count(model);
    out->n = n;
    out->at = cnri_alloc_zero((size_t)(n + 1) * sizeof *out->at);
    out->list = cnri_alloc_zero((size_t)(n + 1) * sizeof *out->list);
    if (!out->at || !out->list) return cnri_fail(err, CNR_E_MEMORY, "inputs", "out of memory");
    return cnri_model_default_sizes(model, batch, out->at, out->list, err);
}

void cnri_shapes_free(cnri_shapes *s) {
    cnri_free(s->at);
    cnri_free(s->list);
    *s = (cnri_shapes){0};
}

/* Checks that given symbols exist, and fills m->input_types with the inputs' types at the sizes
 * that are set. */
static cnr_status bind_inputs(cnr_model *m, cnr_error *err) {
    const cnr_graph *g = m->graph;
    const cnri_sizes given = {.symbols = (const char *const *)m->symbols,
                              .n_symbols = m->n_symbols};
    const cnr_status status = cnri_symbols_check(g, &given, err);
    if (status) return status;
    for (int32_t i = 0; i < g->inputs.n; i++) {
        cnr_tensor *t = cnri_push(&m->input_types);
        if (!t) return no_memory(err);
        cnri_model_sizes(m, i, (cnri_sizes){0}, t);
    }
    return CNR_OK;
}

/* Sets the preprocessing of all inputs from a preset. */
static cnr_status take_preset(cnr_model *m, const char *preset, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < m->graph->inputs.n && !status; i++)
        status = cnri_preprocess_set(m->graph, cnr_input_name(m, i), "preset", preset, err);
    return status;
}

/* Warns of labels that are not as many as the classes, and of preprocessing with odd units. */
static void warn_of_metadata(cnr_model *m) {
    cnr_error why = CNR_ERROR_INIT;
    int32_t named = m->n_labels;
    while (named > 0 && !m->labels[named - 1][0]) named--;
    if (cnri_labels_check(m->graph, named, NULL, &why))
        cnri_graph_warn(m->graph, m->graph->name, "%s", why.text);
    for (int32_t i = 0; i < m->graph->inputs.n; i++) {
        cnri_preprocess p;
        if (cnri_preprocess_read(m->graph, cnr_input_name(m, i), &p, NULL)) continue;
        if (cnri_preprocess_units(&p, NULL, &why))
            cnri_graph_warn(m->graph, m->graph->name, "%s", why.text);
        cnri_preprocess_free(&p);
    }
}

/* True if the operator has a kernel of that name, or it is "reference". */
static bool has_kernel(const cnr_op *op, const char *name) {
    const cnr_kernel *const *kernels;
    const int32_t n = cnri_kernels_for(op, &kernels);
    for (int32_t i = 0; i < n; i++)
        if (strcmp(kernels[i]->name, name) == 0) return true;
    return strcmp(name, "reference") == 0;
}

/* True if the first `length` bytes of text are the name. */
static bool is_name(const char *name, const char *text, size_t length) {
    return name && strlen(name) == length && strncmp(name, text, length) == 0;
}

/* Fails unless the net has the node or operator, and that has the kernel. */
static cnr_status look_for(const cnr_graph *g, const char *word, size_t length, const char *kernel,
                           cnr_error *err) {
    CNRI_VEC(const char *) names = {0};
    bool there = false, good = false;
    for (int32_t i = 0; i < g->nodes.n && !good; i++) {
        const char *const both[] = {g->nodes.at[i]->name, g->nodes.at[i]->view.desc->name};
        for (int k = 0; k < 2; k++) {
            const char **slot = both[k] ? cnri_push(&names) : NULL;
            if (slot) *slot = both[k];
            if (!is_name(both[k], word, length)) continue;
            there = true;
            good = good || has_kernel(g->nodes.at[i]->view.desc, kernel);
        }
    }
    char key[256];
    snprintf(key, sizeof key, "%.*s", (int)(length < 255 ? length : 255), word);
    const char *near = cnri_nearest_word(key, names.at, names.n);
    cnr_status status = CNR_OK;
    if (!there)
        status =
            cnri_fail(err, CNR_E_NOT_FOUND, word, "no node or operator \"%s\" is in the net%s%s",
                      key, near ? "; did you mean " : "", near ? near : "");
    else if (!good)
        status =
            cnri_fail(err, CNR_E_NOT_FOUND, word,
                      "it has no kernel \"%s\"; cnnrun ops OPERATOR lists the kernels", kernel);
    cnri_vec_free(&names);
    return status;
}

/* Checks NODE=KERNEL or NODE@DEVICE=KERNEL; a node's name may contain an @ too. "*=KERNEL" is for
 * all nodes that have the kernel, "*=" forces none. */
static cnr_status check_kernel(const cnr_model *m, const char *word, cnr_error *err) {
    const char *equals = strchr(word, '='), *at = equals;
    if (strcmp(word, "*=") == 0) return CNR_OK;
    if (strncmp(word, "*=", 2) == 0) {
        for (int32_t i = 0; i < m->graph->nodes.n; i++)
            if (has_kernel(m->graph->nodes.at[i]->view.desc, word + 2)) return CNR_OK;
        return cnri_fail(err, CNR_E_NOT_FOUND, word, "no node has a kernel \"%s\"", word + 2);
    }
    if (!equals || equals == word || !equals[1])
        return cnri_fail(err, CNR_E_ARG, word,
                         "want NODE=KERNEL, OPERATOR=KERNEL or NODE@DEVICE=KERNEL");
    while (at > word && *at != '@') at--;
    bool whole = at == word;
    for (int32_t i = 0; i < m->graph->nodes.n; i++)
        whole = whole || is_name(m->graph->nodes.at[i]->name, word, (size_t)(equals - word));
    cnr_status status =
        look_for(m->graph, word, (size_t)((whole ? equals : at) - word), equals + 1, err);
    if (status || whole) return status;
    const cnri_device *found;
    char *device = cnri_format("%.*s", (int)(equals - at - 1), at + 1);
    status = device ? cnri_device_find(&m->rt->devices, device, &found, err) : no_memory(err);
    cnri_free(device);
    return status;
}

/* CNR_KERNEL_... bits of the kernels that options allow to be chosen, by how they store weights and
 * compute. */
static uint32_t stores_of(const cnr_load_options *o) {
    static const uint32_t weights[] = {0, CNR_KERNEL_F16, CNR_KERNEL_BF16},
                          arithmetic[] = {0, CNR_KERNEL_F16_MATH,
                                          CNR_KERNEL_BF16_MATH | CNR_KERNEL_BF16};
    return weights[cnri_choice(cnri_weights_types, o->weights_type)] |
           arithmetic[cnri_choice(cnri_arithmetics, o->arithmetic)];
}

/* Opens the policy of the options, or else the net's own. */
static cnr_status open_policy(const cnr_model *m, const cnr_load_options *o, cnri_policy **out,
                              cnr_error *err) {
    const char *own = cnri_graph_meta(m->graph, CNRI_POLICY_META);
    const char *name = cnri_graph_meta(m->graph, CNRI_POLICY_META ".name");
    const char *const *options = o ? o->policy_options : NULL;
    if (o && o->policy && *o->policy) return cnri_policy_open(o->policy, NULL, options, out, err);
    if (!own || !*own || (o && o->policy)) return CNR_OK;
    return cnri_policy_open(name ? name : "policy", own, options, out, err);
}

/* A copy of a text that the caller may lack; false: out of memory. */
static bool copy_text(char **to, const char *text) {
    return !text || (*to = cnri_strdup(text)) != NULL;
}

/* Takes the folder of stored plans and how they are stored from the options. */
static cnr_status take_cache(cnr_model *m, const cnr_load_options *o, cnr_error *err) {
    m->cache_bytes = o->cache_bytes;
    m->cache_fifo = o->cache_policy && strcmp(o->cache_policy, "fifo") == 0;
    if (!copy_text(&m->cache, o->no_cache || cnri_kept_disabled() ? NULL : o->cache) ||
        !copy_text(&m->cache_codec, o->cache_codec) ||
        !copy_text(&m->cache_key_file, o->cache_key_file))
        return no_memory(err);
    return cnri_devices_keep(&m->rt->devices, m->cache, err);
}

/* Fills a new model from its load options (NULL: none), which it checks, with copies. */
static cnr_status fill(cnr_model *m, const cnr_load_options *o, cnr_error *err) {
    cnri_plan_options options = {0};
    void *held[CNRI_N_LOAD_OPTIONS] = {NULL};
    for (const char *const *k = o ? o->kernels : NULL; k && *k; k++) {
        const cnr_status status = check_kernel(m, *k, err);
        if (status) return status;
    }
    if (o) {
        CNR_TRY(cnri_load_check(o, err));
        cnri_load_take(o, &options);
        options.stores = stores_of(o);
        CNR_TRY(take_cache(m, o, err));
    }
    cnri_plan_defaults(m->graph, &options);
    cnr_status status = open_policy(m, o, &options.policy, err);
    if (status) return status;
    const bool copied = cnri_load_defaults(m->graph, &options, held) &&
                        cnri_plan_options_copy(&options, &m->plan_options);
    for (int32_t i = 0; i < CNRI_N_LOAD_OPTIONS; i++) cnri_free(held[i]);
    cnri_policy_release(options.policy);
    if (!copied) return no_memory(err);
    if (!copy_symbols(m, o) || !copy_labels(m)) return no_memory(err);
    CNR_TRY(take_ranges(m, o, err));
    status = o && o->preset ? take_preset(m, o->preset, err) : CNR_OK;
    if (status) return status;
    warn_of_metadata(m);
    return bind_inputs(m, err);
}

/* Makes a model in *out and takes ownership of the graph, also on failure. */
cnr_status cnri_model_from_graph(cnr_runtime *rt, cnr_graph *graph, const cnr_load_options *options,
                                 cnr_model **out, cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    *out = NULL;
    cnr_model *m = cnri_alloc_zero(sizeof *m);
    if (!m) {
        cnri_graph_free(graph);
        return no_memory(err);
    }
    m->rt = rt;
    m->graph = graph;
    cnr_status status = cnri_plans_open(m, err);
    if (!status) status = fill(m, options, err);
    status = cnri_alloc_verdict(before, status, "model", err);
    if (!status) {
        pthread_mutex_lock(rt->lock);
        cnr_model **slot = cnri_push(&rt->models);
        if (slot) *slot = m;
        else status = no_memory(err);
        pthread_mutex_unlock(rt->lock);
    }
    if (status) cnr_release(m);
    else *out = m;
    return status;
}

/* Makes the model adapt, if the caller (asked) or the net's metadata wishes it. The net's own wish
 * is void where nobody can measure, or nobody is to. */
cnr_status cnri_adapt_if_wanted(cnr_model *m, bool asked, cnr_error *err) {
    const char *own = cnri_graph_meta(m->graph, "plan.adapt");
    const bool can = !m->plan_options.deterministic && cnri_can_adapt();
    return asked || (can && own && strcmp(own, "1") == 0) ? cnri_adapt_begin(m, err) : CNR_OK;
}

cnr_status cnr_load(cnr_runtime *rt, const char *path, const cnr_load_options *options,
                    cnr_model **out, cnr_error *err) {
    cnr_load_options given = {.size = sizeof given};
    cnr_graph *g = NULL;
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "runtime", rt, "path", path, "out", out, NULL);
    if (status) return status;
    if (options) /* the struct of an older caller is shorter */
        memcpy(&given, options, options->size < sizeof given ? options->size : sizeof given);
    if (given.n_symbols > 0)
        status = cnri_require_arguments(err, "symbols", given.symbols, "symbol_values",
                                        given.symbol_values, NULL);
    if (!status) status = cnri_check_process(rt, err);
    if (!status) status = cnri_load_graph(rt, path, &given, &g, err);
    if (!status && (status = cnri_graph_status(g, true, err)) != CNR_OK) cnri_graph_free(g);
    if (!status) status = cnri_model_from_graph(rt, g, &given, out, err);
    if (!status && !((*out)->path = cnri_strdup(path))) status = no_memory(err);
    if (!status && !given.cache && !given.no_cache) {
        (*out)->cache = cnri_kept_plans();
        (*out)->own_cache = (*out)->cache != NULL;
    }
    if (!status) status = cnri_adapt_if_wanted(*out, given.adapt, err);
    if (!status || !*out) return status;
    cnr_release(*out);
    *out = NULL;
    return status;
}

void cnr_release(cnr_model *m) {
    if (!m) return;
    if (m->adapting.free) m->adapting.free(m->adapting.state);
    while (m->sessions.n > 0) cnr_session_close(m->sessions.at[m->sessions.n - 1]);
    cnri_model_drop_gradients(m);
    for (int32_t i = 0; i < m->masked.n; i++) cnri_free(m->masked.at[i]);
    cnri_vec_free(&m->masked);
    cnri_graph_free(m->layers);
    cnri_free((void *)m->layer_names);
    cnri_plans_close(m);
    pthread_mutex_lock(m->rt->lock);
    for (int32_t i = 0; i < m->rt->models.n; i++)
        if (m->rt->models.at[i] == m) {
            for (int32_t k = i + 1; k < m->rt->models.n; k++)
                m->rt->models.at[k - 1] = m->rt->models.at[k];
            m->rt->models.n--;
        }
    pthread_mutex_unlock(m->rt->lock);
    cnri_plan_options_free(&m->plan_options);
    for (int32_t i = 0; i < m->n_labels; i++) cnri_free(m->labels[i]);
    for (int32_t i = 0; i < m->n_symbols; i++) cnri_free(m->symbols[i]);
    cnri_free(m->labels);
    cnri_free(m->symbols);
    cnri_free(m->symbol_values);
    cnri_free(m->path);
    cnri_free(m->cache);
    cnri_free(m->cache_codec);
    cnri_free(m->cache_key_file);
    cnri_vec_free(&m->sessions);
    cnri_vec_free(&m->input_types);
    if (!m->lost) cnri_graph_free(m->graph);
    cnri_free(m);
}

uint64_t cnr_plan_arena_bytes(const cnr_plan *plan) { return plan ? plan->arena_bytes : 0; }

uint64_t cnr_plan_weight_bytes(const cnr_plan *plan) { return plan ? plan->weight_bytes : 0; }

/* True if no step reads the weight itself, only a constant that a rewrite made of it. */
static bool is_folded(const cnr_graph *g, cnr_value v) {
    for (cnr_value i = 0; i < g->values.n; i++)
        if (g->values.at[i].late && g->values.at[i].late->from == v) return true;
    return g->values.at[v].uses == 0;
}

/* True if the sessions of this plan have moved, or will move, to a fallback device. */
static bool left_behind(const cnr_plan *plan) {
    cnr_model *m = cnri_plan_model(plan);
    if (!m) return false;
    pthread_mutex_lock(m->rt->lock);
    const bool left =
        m->plan_options.on_fallback && cnri_plan_version(plan) != cnri_plans_version(m);
    pthread_mutex_unlock(m->rt->lock);
    return left;
}

cnr_status cnr_plan_set_weight(cnr_plan *plan, const char *name, const cnr_tensor *value,
                               cnr_error *err) {
    cnr_status status =
        cnri_require_arguments(err, "plan", plan, "name", name, "value", value, NULL);
    if (!status) status = cnri_tensor_check(value, name, err);
    if (!status && left_behind(plan))
        status = cnri_fail(err, CNR_E_STATE, name,
                           "the net goes on on another device: ask for a plan anew");
    if (status) return status;
    const cnr_value v = cnri_graph_find(plan->graph, name);
    if (v < 0 || plan->graph->values.at[v].producer >= 0 || plan->graph->values.at[v].is_input ||
        is_folded(plan->graph, v))
        return cnri_fail(err, CNR_E_NOT_FOUND, name,
                         "is no weight of this plan (a rewrite may have folded it: see "
                         "no_rewrite)");
    if (cnri_value_decides_shapes(plan->graph, v))
        return cnri_fail(err, CNR_E_STATE, name,
                         "its data decides shapes, for which this plan was made: "
                         "want a plan made by cnr_plan_for with this data");
    if (value->encoding !=
        plan->graph->values.at[v].type->encoding) /* kernels were chosen for the encoding */
        return cnri_fail(err, CNR_E_SHAPE, name,
                         "is encoded otherwise than the weight of this plan");
    status = cnri_graph_fill(plan->graph, v, value, err);
    plan->own_weights = plan->own_weights || !status;
    return status ? status : cnri_residency_renew(plan, v, err);
}

/* ---- what the net takes and gives ---- */

const char *cnr_label(const cnr_model *m, int64_t index) {
    return m && index >= 0 && index < m->n_labels ? m->labels[index] : NULL;
}

int32_t cnr_input_count(const cnr_model *m) { return m ? m->graph->inputs.n : 0; }

int32_t cnr_output_count(const cnr_model *m) { return m ? m->graph->outputs.n : 0; }

const char *cnr_input_name(const cnr_model *m, int32_t i) {
    return i >= 0 && i < cnr_input_count(m) ? m->graph->values.at[m->graph->inputs.at[i]].name
                                            : NULL;
}

const char *cnr_output_name(const cnr_model *m, int32_t i) {
    return i >= 0 && i < cnr_output_count(m) ? m->graph->outputs.names[i] : NULL;
}

const cnr_tensor *cnr_input_type(const cnr_model *m, int32_t i) {
    return i >= 0 && i < cnr_input_count(m) ? m->graph->values.at[m->graph->inputs.at[i]].type
                                            : NULL;
}

const cnr_tensor *cnr_output_type(const cnr_model *m, int32_t i) {
    return i >= 0 && i < cnr_output_count(m) ? m->graph->values.at[m->graph->outputs.at[i]].type
                                             : NULL;
}

void cnri_model_drop_gradients(cnr_model *m) {
    if (m->learner.state) m->learner.free(m->learner.state);
    m->learner = (cnri_learner){0};
}

void cnr_close(cnr_runtime *rt) {
    if (!rt) return;
    while (rt->models.n > 0) cnr_release(rt->models.at[rt->models.n - 1]); /* one may be sampling */
    cnri_runtime_free(rt);
}
