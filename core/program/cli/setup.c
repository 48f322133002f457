/* From parsed options to runtimes, models and graphs. */
#include "cli/cli.h"
#include "lua/script.h"
#include "people/people.h"

/* Ends governor, group and held script of a call. */
static void close_all(cnri_call *call) {
    cnri_call_end_govern(call);
    cnri_call_leave_group(call);
    if (call->rt) cnri_lua_drop(call->rt);
}

/* Fails if --mode reference is combined with a device on which references, which are plain C, can't
 * run. */
static cnr_status check_reference(cnri_call *call, cnr_error *err) {
    const cnri_common *c = &call->common;
    const char *device = c->load.device                        ? c->load.device
                         : c->load.devices && *c->load.devices ? c->load.devices[0]
                                                               : NULL;
    const cnr_device *found;
    if (!c->mode || strcmp(c->mode, "reference") != 0 || !device || !*device) return CNR_OK;
    CNR_TRY(cnri_device_open(&call->rt->devices, device, &found, err));
    if (found->memory[0].flags & CNR_MEMORY_HOST) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, "--mode",
                     "reference needs a device with host memory: want --device cpu or none, got %s",
                     device);
}

cnr_status cnri_call_open(cnri_call *call, cnr_error *err) {
    cnr_status status = cnri_call_runtime(call, err);
    call->closes = close_all;
    if (!status) status = check_reference(call, err);
    if (!status && call->command->takes & CNRI_GROUP) status = cnri_call_join_group(call, err);
    return status || call->governing ? status : cnri_call_govern(call, err);
}

/* ---- load options ---- */

void cnri_loading_free(cnri_loading *l) {
    cnri_free(l->names);
    cnri_free(l->values);
    cnri_free(l->text);
}

/* Splits words such as "batch=4" into names and values. */
static cnr_status symbols_parse(const char *const *words, cnri_loading *s, cnr_error *err) {
    const int32_t n = cnri_count_options(words);
    size_t bytes = 1;
    for (int32_t i = 0; i < n; i++) bytes += strlen(words[i]) + 1;
    s->names = cnri_alloc_zero((size_t)(n + 1) * sizeof *s->names);
    s->values = cnri_alloc_zero((size_t)(n + 1) * sizeof *s->values);
    s->text = cnri_alloc(bytes);
    if (!s->names || !s->values || !s->text) return cnri_out_of_memory(err, "--symbol");
    char *to = s->text;
    for (int32_t i = 0; i < n; i++) {
        const size_t length = strlen(words[i]) + 1;
        memcpy(to, words[i], length);
        char *equals = strchr(to, '=');
        if (!equals || equals == to || !cnri_parse_int(equals + 1, &s->values[i]) ||
            s->values[i] < 0)
            return cnri_fail(err, CNR_E_ARG, "--symbol", "wanted NAME=VALUE, got \"%s\"", words[i]);
        *equals = 0;
        s->names[i] = to;
        to += length;
    }
    s->options.n_symbols = n;
    s->options.symbols = s->names;
    s->options.symbol_values = s->values;
    return CNR_OK;
}

cnr_status cnri_call_loading(const cnri_call *call, cnri_loading *s, cnr_error *err) {
    const cnr_load_options *given = &call->common.load;
    *s = (cnri_loading){.options = *given};
    s->options.size = sizeof s->options;
    s->options.cache = cnri_call_named_cache(call);
    CNR_TRY(cnri_cache_limit(given->cache_bytes, &s->options.cache_bytes, err));
    if (given->device && !*given->device)
        return cnri_fail(err, CNR_E_ARG, "--device", "wanted a name such as cpu");
    return symbols_parse(given->symbols, s, err);
}

bool cnri_call_prepares(const cnri_common *c) {
    return c->preset || c->resize || c->crop || c->mean || c->std || c->scale || c->channels ||
           c->letterbox;
}

/* True if a file holds weights, or a net with them: it is native, or an importer knows it. */
static bool holds_weights(const char *path) {
    cnri_head head;
    int32_t score = 0;
    if (cnri_file_head(path, &head, NULL)) return false;
    return cnri_is_native(path) || cnri_store_begins(head.at, head.n) ||
           cnri_importer_for(path, &head, &score);
}

/* Takes the operands behind the net that importers accept as files of weights. Others that the
 * command wants stay. */
cnr_status cnri_call_weights(cnri_call *call, cnr_error *err) {
    const cnri_words *words = &call->operands;
    const int32_t maximum = call->command->max_operands,
                  others = (int32_t)cnr_max(call->command->min_operands - 1, 0),
                  last = maximum < 0 ? words->n - 1 : words->n - others;
    cnri_text text = {0};
    if (call->next_operand > 0) return CNR_OK;
    for (call->next_operand = 1;
         call->next_operand < last && holds_weights(words->at[call->next_operand]);
         call->next_operand++)
        cnri_text_add(&text, text.n ? ",%s" : "%s", words->at[call->next_operand]);
    cnr_status status = CNR_OK;
    if (maximum > 0 && words->n - call->next_operand >= maximum)
        status = cnri_fail(err, CNR_E_ARG, NULL, "one word too many: \"%s\"",
                           words->at[call->next_operand + maximum - 1]);
    else if (text.failed) status = cnri_out_of_memory(err, "weights");
    else if (text.n && call->common.load.weights)
        status = cnri_fail(err, CNR_E_ARG, NULL, "weights are given twice: %s, and --weights %s",
                           text.at, call->common.load.weights);
    else if (text.n) call->common.load.weights = call->weights = text.at;
    if (!call->weights) cnri_text_free(&text);
    return status;
}

cnr_status cnri_call_graph(cnri_call *call, cnr_error *err) {
    cnri_loading l = {0};
    cnr_status status = cnri_call_open(call, err);
    if (!status) status = cnri_call_weights(call, err);
    if (!status) status = cnri_call_loading(call, &l, err);
    if (!status)
        status = cnri_load_graph(call->rt, call->operands.at[0], &l.options, &call->graph, err);
    if (!status) status = cnri_call_preprocess(call, call->graph, err);
    cnri_loading_free(&l);
    return status;
}

cnr_status cnri_call_placed(cnri_call *call, cnr_error *err) {
    const cnri_common *c = &call->common;
    const char *folder = cnri_call_cache(call);
    cnri_follows follows;
    const cnr_load_options *o = &c->load;
    if (!folder || o->policy || o->device || o->devices || o->kernels || o->deterministic ||
        call->model->graph->is_compiled)
        return CNR_OK;
    const cnr_status status = cnri_placing_follow(call->model, folder, &follows, err);
    if (!status && follows == CNRI_FOLLOWS_PLACEMENT && !c->quiet && !c->json)
        cnri_say(stderr, "cnnrun %s: by the placement that cnnrun place keeps in %s\n",
                 call->command->name, folder);
    if (!status && follows == CNRI_FOLLOWS_NONE_STALE)
        cnri_log(CNR_LOG_WARN, "place",
                 "the placement in %s is for other devices or drivers: "
                 "\"cnnrun place\" makes another",
                 folder);
    return status;
}

cnr_status cnri_call_model_unplaced(cnri_call *call, cnr_error *err) {
    cnri_loading l = {0};
    cnr_status status = cnri_call_open(call, err);
    if (!status) status = cnri_call_weights(call, err);
    if (!status) status = cnri_call_loading(call, &l, err);
    if (!status) status = cnr_load(call->rt, call->operands.at[0], &l.options, &call->model, err);
    if (!status) status = cnri_call_preprocess(call, call->model->graph, err);
    cnri_loading_free(&l);
    return status;
}

cnr_status cnri_call_model(cnri_call *call, cnr_error *err) {
    const cnr_status status = cnri_call_model_unplaced(call, err);
    return status ? status : cnri_call_placed(call, err);
}

cnr_status cnri_call_model_of_graph(cnri_call *call, cnr_error *err) {
    cnri_loading l;
    cnr_status status = cnri_call_loading(call, &l, err);
    if (!status) {
        status = cnri_model_from_graph(call->rt, call->graph, &l.options, &call->model, err);
        call->graph = NULL;
    }
    cnri_loading_free(&l);
    return status;
}

cnr_status cnri_call_preprocess(const cnri_call *call, cnr_graph *graph, cnr_error *err) {
    static const char *const orders[] = {NULL, "rgb", "bgr", "gray"};
    const cnri_common *c = &call->common;
    const cnri_step_words words[] = {{"--preset", c->preset},
                                     {"--resize", c->resize},
                                     {"--crop", c->crop},
                                     {"--mean", c->mean},
                                     {"--std", c->std},
                                     {"--scale", c->scale},
                                     {"--channels", orders[c->channels]},
                                     {"--letterbox", c->letterbox}};
    return cnri_preprocess_words(graph, words, CNRI_COUNT(words), err);
}
