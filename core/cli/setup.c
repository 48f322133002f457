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

/* Lists for the core end in a NULL, which the parser leaves behind the words. */
static const char *const *terminated(const cnri_words *words) {
    return words->n > 0 ? words->at : NULL;
}

cnr_status cnri_args_output(const cnri_args *args, const char *path, const char *const *more,
                            int32_t n, cnr_error *err) {
    const char *const files[] = {args->common.weights, args->common.mean};
    const struct { const char *const *at; int32_t n; } lists[] = {
        {args->operands.at, args->operands.n},
        {args->common.settings.at, args->common.settings.n},
        {files, CNRI_COUNT(files)},
        {more, n}};
    cnri_words words = {0};
    bool good = true;
    for (size_t i = 0; i < CNRI_COUNT(lists); i++)
        for (int32_t k = 0; k < lists[i].n && good; k++) {
            const char **slot = cnri_push(&words);
            if ((good = slot != NULL)) *slot = lists[i].at[k];
        }
    const cnr_status status = good ? cnri_write_check(path, words.at, words.n, err)
                                   : cnri_fail(err, CNR_E_MEMORY, "options", "out of memory");
    cnri_vec_free(&words);
    return status;
}

const char *const *cnri_args_no_rewrite(const cnri_args *args) {
    return terminated(&args->common.no_rewrite);
}

const char *cnri_args_cache(const cnri_args *args) {
    const char *folder = args->common.cache ? args->common.cache : secure_getenv("CNNRUN_CACHE");
    return folder && *folder ? folder : NULL;
}

cnr_status cnri_args_open(const cnri_args *args, cnr_runtime **rt, cnr_error *err) {
    const cnri_common *c = &args->common;
    cnr_open_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.threads = (int32_t)c->threads;
    options.plugin_dirs = terminated(&c->plugin_dirs);
    options.log = print_log;
    options.log_level = c->quiet ? CNR_LOG_ERROR : CNR_LOG_WARN + c->verbose;
    options.trust_scripts = c->trust;
    options.clock = c->clock;
    options.sysfs_root = c->sysfs_root;
    options.meter_address = c->meter_address;
    options.board = c->board;
    options.cache = cnri_args_cache(args);
    if (c->plugin_dirs.n && !options.plugin_dirs)
        return cnri_fail(err, CNR_E_MEMORY, "options", "out of memory");
    return cnr_open(rt, &options, err);
}

static bool same_words(const cnri_words *a, const cnri_words *b) {
    bool same = a->n == b->n;
    for (int32_t i = 0; i < a->n && same; i++) same = strcmp(a->at[i], b->at[i]) == 0;
    return same;
}

bool cnri_args_reopen(const cnri_args *was, const cnri_args *now, cnr_runtime *rt) {
    const cnri_common *a = &was->common, *b = &now->common;
    if (!same_words(&a->plugin_dirs, &b->plugin_dirs) || a->trust != b->trust ||
        a->board != b->board || a->clock != b->clock) return true;
    if (a->cache != b->cache || rt->devices.n > 0) /* the texts are argv's: the same or not given */
        return a->cache != b->cache || a->threads != b->threads;
    rt->options.threads = rt->devices.options.threads = (int32_t)b->threads;
    cnri_log_to(print_log, NULL, b->quiet ? CNR_LOG_ERROR : CNR_LOG_WARN + b->verbose);
    return false;
}

/* ---- load options ---- */

void cnri_loading_free(cnri_loading *l) {
    cnri_free(l->names);
    cnri_free(l->values);
    cnri_free(l->text);
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

/* Every --no-rewrite is one that there is. */
static cnr_status check_rewrites(const cnri_words *words, cnr_error *err) {
    CNRI_VEC(const char *) names = {0};
    const char *name, *summary, **slot;
    for (int32_t i = 0; cnri_rewrite_at(i, &name, &summary); i++)
        if ((slot = cnri_push(&names)) != NULL) *slot = name;
    for (const char *const *step = cnri_plan_steps; *step; step++)
        if ((slot = cnri_push(&names)) != NULL) *slot = *step;
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < words->n && !status; i++) {
        int32_t k = 0;
        while (k < names.n && strcmp(names.at[k], words->at[i]) != 0) k++;
        if (k < names.n) continue;
        cnri_text all = {0};
        for (k = 0; k < names.n; k++) cnri_text_add(&all, "%s%s", k ? ", " : "", names.at[k]);
        status = cnri_fail(err, CNR_E_NOT_FOUND, "--no-rewrite", "no rewrite \"%s\"; there are: %s",
                           words->at[i], all.at ? all.at : "");
        cnri_text_free(&all);
    }
    cnri_vec_free(&names);
    return status;
}

cnr_status cnri_args_loading(const cnri_args *args, cnri_loading *s, cnr_error *err) {
    const cnri_common *c = &args->common;
    cnr_load_options *options = &s->options;
    memset(s, 0, sizeof *s);
    options->size = sizeof *options;
    cnr_status status = symbols_parse(&c->symbols, s, err);
    if (!status) status = check_rewrites(&c->no_rewrite, err);
    if (status) return status;
    if (c->device && !*c->device)
        return cnri_fail(err, CNR_E_ARG, "--device", "wanted a name such as cpu");
    options->n_symbols = c->symbols.n;
    options->symbols = s->names;
    options->symbol_values = s->values;
    options->weights = c->weights;
    options->net = c->net;
    options->no_rewrite = terminated(&c->no_rewrite);
    options->import_options = terminated(&c->settings);
    options->kernels = terminated(&c->kernels);
    options->device = c->device;
    options->memory_bound = c->memory;
    options->memory_limit = c->memory_limit;
    options->deterministic = c->deterministic;
    options->no_verify = c->no_verify;
    options->cache = cnri_args_cache(args);
    options->cache_bytes = c->cache_limit;
    if ((c->no_rewrite.n && !options->no_rewrite) || (c->settings.n && !options->import_options))
        return cnri_fail(err, CNR_E_MEMORY, "options", "out of memory");
    return CNR_OK;
}

cnr_status cnri_args_load_graph(const cnri_args *args, cnr_runtime *rt, const char *path,
                                cnr_graph **out, cnr_error *err) {
    cnri_loading l;
    *out = NULL;
    cnr_status status = cnri_args_loading(args, &l, err);
    if (!status) status = cnri_load_graph(rt, path, &l.options, out, err);
    if (!status) status = cnri_args_preprocess(args, *out, err);
    if (status) {
        cnri_graph_free(*out);
        *out = NULL;
    }
    cnri_loading_free(&l);
    return status;
}

cnr_status cnri_args_load(const cnri_args *args, cnr_runtime *rt, const char *path,
                          cnr_model **out, cnr_error *err) {
    cnri_loading l;
    *out = NULL;
    cnr_status status = cnri_args_loading(args, &l, err);
    if (!status) status = cnr_load(rt, path, &l.options, out, err);
    if (!status) status = cnri_args_preprocess(args, (*out)->graph, err);
    cnri_loading_free(&l);
    return status;
}

cnr_status cnri_args_model(const cnri_args *args, cnr_runtime *rt, cnr_graph *graph,
                           cnr_model **out, cnr_error *err) {
    cnri_loading l;
    *out = NULL;
    cnr_status status = cnri_args_loading(args, &l, err);
    if (status) cnri_graph_free(graph);
    else status = cnri_model_from_graph(rt, graph, &l.options, out, err);
    cnri_loading_free(&l);
    return status;
}

/* ---- preprocessing flags ---- */

/* Prints C H W values as the list that metadata holds. */
static cnr_status list_of(const float *values, int64_t n, cnri_text *out, cnr_error *err) {
    char number[64];
    for (int64_t i = 0; i < n; i++) {
        cnri_print_double(number, sizeof number, (double)values[i]);
        cnri_text_add(out, i ? ",%s" : "%s", number);
    }
    return out->failed ? cnri_fail(err, CNR_E_MEMORY, "--mean", "out of memory") : CNR_OK;
}

/* A mean image may be a picture. */
static cnr_status mean_of_picture(const char *path, cnri_text *out, cnr_error *err) {
    cnri_samples samples;
    cnr_sample sample;
    cnr_status status = cnri_samples_open(path, NULL, &samples, err);
    if (status) return status;
    memset(&sample, 0, sizeof sample);
    sample.size = sizeof sample;
    status = cnri_samples_read(&samples, 0, &sample, err);
    cnri_samples_close(&samples);
    if (status) return status;
    const cnr_tensor *t = &sample.picture;
    const int64_t pixels = t->dim[0] * t->dim[1], channels = t->dim[2];
    float *planes = cnri_alloc((size_t)(pixels * channels) * sizeof *planes);
    for (int64_t c = 0; planes && c < channels; c++)
        for (int64_t i = 0; i < pixels; i++)
            planes[c * pixels + i] = ((const uint8_t *)t->data)[i * channels + c];
    status = planes ? list_of(planes, pixels * channels, out, err)
                    : cnri_fail(err, CNR_E_MEMORY, path, "out of memory");
    cnri_free(planes);
    cnri_free(sample.picture.data);
    return status;
}

bool cnri_is_numbers(const char *text) {
    const char *end;
    double first;
    return cnri_parse_double(text, &end, &first) && (*end == 0 || *end == ',' || *end == ' ');
}

static cnr_status mean_text(const char *text, cnri_text *out, cnr_error *err) {
    if (!cnri_is_numbers(text)) return mean_of_picture(text, out, err);
    cnri_text_add(out, "%s", text);
    return out->failed ? cnri_fail(err, CNR_E_MEMORY, "--mean", "out of memory") : CNR_OK;
}

static bool takes_pictures(const cnr_graph *g, cnr_value input) {
    const int32_t rank = g->values.at[input].type->rank;
    return rank >= 2 && rank <= 4;
}

/* What the flags make of the steps: units that can't be, and a crop that is scaled afterwards. */
static cnr_status check_steps(const cnri_common *c, cnr_graph *graph, cnr_value input,
                              cnr_error *err) {
    cnri_preprocess p;
    const char *name = graph->values.at[input].name;
    const cnr_tensor *type = graph->values.at[input].type;
    const cnri_axes axes = cnri_picture_axes(type);
    cnr_status status = cnri_preprocess_read(graph, name, &p, err);
    if (status) return status;
    if (c->mean || c->std) status = cnri_preprocess_units(&p, "--mean, --std", err);
    const int64_t *size = axes.height >= 0 ? type->dim + axes.height : NULL;
    if (c->crop && size && p.crop_h > 0 && size[0] > 0 && size[1] > 0 &&
        (p.crop_h != size[0] || p.crop_w != size[1]))
        cnri_graph_warn(graph, "--crop", "%lld x %lld is scaled to the net's %lld x %lld: is "
                        "another crop meant?", (long long)p.crop_h, (long long)p.crop_w,
                        (long long)size[0], (long long)size[1]);
    cnri_preprocess_free(&p);
    return status;
}

cnr_status cnri_args_preprocess(const cnri_args *args, cnr_graph *graph, cnr_error *err) {
    static const char *const orders[] = {NULL, "rgb", "bgr", "gray"};
    const cnri_common *c = &args->common;
    cnri_text mean = {0};
    cnr_status status = c->mean ? mean_text(c->mean, &mean, err) : CNR_OK;
    const struct { const char *flag, *text; } flags[] = {
        {"--preset", c->preset}, /* first: the others change it */
        {"--resize", c->resize}, {"--crop", c->crop},   {"--mean", mean.at},
        {"--std", c->std},       {"--scale", c->scale}, {"--channels", orders[c->channels]},
        {"--letterbox", c->letterbox ? "true" : NULL},
    };
    for (int32_t i = 0; i < graph->inputs.n && !status; i++) {
        const cnr_value input = graph->inputs.at[i];
        if (!takes_pictures(graph, input)) continue;
        for (size_t f = 0; f < CNRI_COUNT(flags) && !status; f++)
            if (flags[f].text)
                status = cnri_preprocess_set(graph, graph->values.at[input].name,
                                             flags[f].flag + 2, flags[f].text, err);
        if (!status) status = check_steps(c, graph, input, err);
    }
    cnri_text_free(&mean);
    return status;
}
