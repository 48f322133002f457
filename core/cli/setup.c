/* From parsed options to runtimes, models and graphs. */
#define _GNU_SOURCE
#include "core/cli/cli.h"
#include <stdlib.h>

static void print_log(void *arg, int32_t level, const char *who, const char *text) {
    static const char *const names[] = {"error: ", "warning: ", "", "debug: "};
    (void)arg;
    cnri_say_message(stderr, text, "cnnrun: %s%s%s", level >= 0 && level < 4 ? names[level] : "",
                     who ? who : "", who && *who ? ": " : "");
}

static int32_t log_level(const cnri_common *c) {
    return c->quiet ? CNR_LOG_ERROR : CNR_LOG_WARN + c->verbose;
}

const char *cnri_call_cache(const cnri_call *call) {
    const char *cache = call->common.cache, *folder = cache ? cache : secure_getenv("CNNRUN_CACHE");
    return folder && *folder ? folder : NULL;
}

cnr_status cnri_call_open(cnri_call *call, cnr_error *err) {
    const cnri_common *c = &call->common;
    const cnr_open_options options = {
        .size = sizeof options, .threads = (int32_t)c->threads, .log = print_log,
        .plugin_dirs = c->plugin_dirs.at, .log_level = log_level(c),
        .trust_scripts = c->trust, .clock = c->clock, .sysfs_root = c->sysfs_root,
        .meter_address = c->meter_address, .board = c->board, .cache = cnri_call_cache(call),
        .cpu_isa = c->cpu_isa};
    const cnr_status status = call->rt ? CNR_OK : cnr_open(&call->rt, &options, err);
    return status || call->governing ? status : cnri_call_govern(call, err);
}

static bool same_words(const cnri_words *a, const cnri_words *b) {
    bool same = a->n == b->n;
    for (int32_t i = 0; i < a->n && same; i++) same = strcmp(a->at[i], b->at[i]) == 0;
    return same;
}

bool cnri_call_reopen(const cnri_call *was, const cnri_call *now) {
    const cnri_common *a = &was->common, *b = &now->common;
    cnr_runtime *rt = was->rt;
    if (!same_words(&a->plugin_dirs, &b->plugin_dirs) || a->trust != b->trust ||
        a->board != b->board || a->clock != b->clock || a->sysfs_root != b->sysfs_root ||
        a->meter_address != b->meter_address || a->cpu_isa != b->cpu_isa)
        return true;
    if (a->cache != b->cache || rt->devices.n > 0) /* the texts are argv's: the same or not given */
        return a->cache != b->cache || a->threads != b->threads;
    rt->options.threads = rt->devices.options.threads = (int32_t)b->threads;
    cnri_log_to(print_log, NULL, log_level(b));
    return false;
}

/* ---- load options ---- */

void cnri_loading_free(cnri_loading *l) {
    cnri_free(l->names);
    cnri_free(l->values);
    cnri_free(l->text);
    cnri_free(l->devices);
    cnri_free(l->device_text);
    cnri_free(l->fallback);
    cnri_free(l->fallback_text);
}

/* Splits "batch=4" words. */
static cnr_status symbols_parse(const cnri_words *words, cnri_loading *s, cnr_error *err) {
    size_t bytes = 1;
    for (int32_t i = 0; i < words->n; i++) bytes += strlen(words->at[i]) + 1;
    s->names = cnri_alloc_zero((size_t)(words->n + 1) * sizeof *s->names);
    s->values = cnri_alloc_zero((size_t)(words->n + 1) * sizeof *s->values);
    s->text = cnri_alloc(bytes);
    if (!s->names || !s->values || !s->text)
        return cnri_fail(err, CNR_E_MEMORY, "--symbol", "out of memory");
    char *to = s->text;
    for (int32_t i = 0; i < words->n; i++) {
        const size_t n = strlen(words->at[i]) + 1;
        memcpy(to, words->at[i], n);
        char *equals = strchr(to, '=');
        if (!equals || equals == to || !cnri_parse_int(equals + 1, &s->values[i]) ||
            s->values[i] < 0)
            return cnri_fail(err, CNR_E_ARG, "--symbol", "wanted NAME=VALUE, got \"%s\"",
                             words->at[i]);
        *equals = 0;
        s->names[i] = to;
        to += n;
    }
    return CNR_OK;
}

/* "cpu,opencl:0" as a list; none of nothing. */
static cnr_status devices_parse(const char *option, const char *words, const char ***list, char **text,
                                cnr_error *err) {
    size_t n = 2;
    for (const char *p = words; p && *p; p++) n += *p == ',';
    *text = cnri_strdup(words ? words : "");
    *list = cnri_alloc_zero(n * sizeof **list);
    if (!*text || !*list) return cnri_fail(err, CNR_E_MEMORY, option, "out of memory");
    char *at = words ? *text : NULL;
    for (int32_t i = 0; at; i++) {
        char *comma = strchr(at, ',');
        if (comma) *comma++ = 0;
        if (!*at)
            return cnri_fail(err, CNR_E_ARG, option, "wanted names such as cpu,opencl:0");
        (*list)[i] = at;
        at = comma;
    }
    return CNR_OK;
}

cnr_status cnri_call_loading(const cnri_call *call, cnri_loading *s, cnr_error *err) {
    const cnri_common *c = &call->common;
    *s = (cnri_loading){.options = {.size = sizeof s->options}};
    cnr_status status = symbols_parse(&c->symbols, s, err);
    if (!status) status = devices_parse("--devices", c->devices, &s->devices, &s->device_text, err);
    if (!status)
        status = devices_parse("--fallback", c->fallback, &s->fallback, &s->fallback_text, err);
    if (status) return status;
    if (c->device && !*c->device)
        return cnri_fail(err, CNR_E_ARG, "--device", "wanted a name such as cpu");
    s->options = (cnr_load_options){
        .size = sizeof s->options, .n_symbols = c->symbols.n, .symbols = s->names,
        .symbol_values = s->values, .weights = c->weights,
        .weights_type = c->weights_type, .arithmetic = c->arithmetic, .labels = c->labels, .net = c->net,
        .no_rewrite = c->no_rewrite.at, .import_options = c->settings.at,
        .kernels = c->kernels.at, .device = c->device, .memory_bound = c->memory,
        .memory_limit = c->memory_limit, .deterministic = c->deterministic,
        .no_verify = c->no_verify, .cache = cnri_call_cache(call), .cache_bytes = c->cache_limit,
        .policy = c->policy, .policy_options = c->policy_options.at, .devices = s->devices,
        .fallback = s->fallback};
    return CNR_OK;
}

/* Those that are files, which importers claim. */
cnr_status cnri_call_weights(cnri_call *call, cnr_error *err) {
    const cnri_words *words = &call->operands;
    const int32_t most = call->command->max_operands, last = most < 0 ? words->n - 1 : words->n;
    cnri_text text = {0};
    if (call->rest > 0) return CNR_OK;
    for (call->rest = 1; call->rest < last &&
         cnri_weights_claimed(words->at[call->rest]); call->rest++)
        cnri_text_add(&text, text.n ? ",%s" : "%s", words->at[call->rest]);
    cnr_status status = CNR_OK;
    if (most > 0 && words->n - call->rest >= most)
        status = cnri_fail(err, CNR_E_ARG, NULL, "one word too many: \"%s\"",
                           words->at[call->rest + most - 1]);
    else if (text.failed) status = cnri_fail(err, CNR_E_MEMORY, "weights", "out of memory");
    else if (text.n && call->common.weights)
        status = cnri_fail(err, CNR_E_ARG, NULL, "weights are given twice: %s, and --weights %s",
                           text.at,
                           call->common.weights);
    else if (text.n) call->common.weights = call->weights = text.at;
    if (!call->weights) cnri_text_free(&text);
    return status;
}

cnr_status cnri_call_graph(cnri_call *call, cnr_error *err) {
    cnri_loading l = {0};
    cnr_status status = cnri_call_weights(call, err);
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
    if (!folder || c->policy || c->device || c->devices || c->kernels.n || c->deterministic)
        return CNR_OK;
    const cnr_status status = cnri_placing_follow(call->model, folder, &follows, err);
    if (!status && follows == CNRI_FOLLOWS_PLACEMENT && !c->quiet && !c->json)
        cnri_say(stderr, "cnnrun %s: by the placement that cnnrun place keeps in %s\n",
                 call->command->name, folder);
    if (!status && follows == CNRI_FOLLOWS_NONE_STALE)
        cnri_log(CNR_LOG_WARN, "place", "the placement in %s is for other devices or drivers: "
                 "\"cnnrun place\" makes another", folder);
    return status;
}

cnr_status cnri_call_model(cnri_call *call, cnr_error *err) {
    cnri_loading l = {0};
    cnr_status status = cnri_call_weights(call, err);
    if (!status) status = cnri_call_loading(call, &l, err);
    if (!status) status = cnr_load(call->rt, call->operands.at[0], &l.options, &call->model, err);
    if (!status) status = cnri_call_preprocess(call, call->model->graph, err);
    if (!status && call->command != &cnri_cmd_place && call->command != &cnri_cmd_tune)
        status = cnri_call_placed(call, err);
    cnri_loading_free(&l);
    return status;
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
    const cnri_step_words words[] = {
        {"--preset", c->preset}, {"--resize", c->resize}, {"--crop", c->crop}, {"--mean", c->mean},
        {"--std", c->std}, {"--scale", c->scale}, {"--channels", orders[c->channels]},
        {"--letterbox", c->letterbox ? "true" : NULL}};
    return cnri_preprocess_words(graph, words, CNRI_COUNT(words), err);
}
