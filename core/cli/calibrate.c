/* A net watched while it runs on pictures: ranges of its values, what quantising did to them. */
#include "core/cli/calibrate.h"
#include <math.h>

static const char asked[] = "quantize", range[] = "range.", answered[] = "quantized.";

static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "quantize", "out of memory");
}

/* Rewrites left out by the user, and `more` (may be NULL). To be freed. */
static const char **left_out(const cnri_args *args, const char *more) {
    const cnri_words *words = &args->common.no_rewrite;
    const char **list = cnri_alloc_zero((size_t)(words->n + 2) * sizeof *list);
    for (int32_t i = 0; list && i < words->n; i++) list[i] = words->at[i];
    if (list) list[words->n] = more;
    return list;
}

cnr_status cnri_model_of(const cnri_args *args, cnr_runtime *rt, const cnr_graph *g, bool fuse,
                         cnr_model **out, cnr_error *err) {
    const char **off = left_out(args, fuse ? NULL : "fuse");
    cnr_graph *copy = cnri_graph_copy(g);
    const cnr_load_options options = {.size = sizeof options, .no_rewrite = off,
                                      .device = args->common.device,
                                      .memory_bound = args->common.memory,
                                      .deterministic = args->common.deterministic};
    cnr_status status = CNR_OK;
    *out = NULL;
    if (!off || !copy) {
        cnri_graph_free(copy);
        status = no_memory(err);
    } else {
        status = cnri_model_from_graph(rt, copy, &options, out, err);
    }
    cnri_free(off);
    return status;
}

/* ---- running over pictures ---- */

typedef struct tapped {
    cnri_calibration *c;
    const cnr_graph *g;
    cnri_answers *answers;
} tapped;

static cnr_status run_one(cnri_runner *r, cnr_tap_fn tap, tapped *arg, const cnr_tensor *picture,
                          cnr_error *err) {
    cnr_status status = cnri_runner_shape(r, 1, picture, err);
    if (!status) status = cnri_runner_put(r, 0, picture, err);
    if (status) return status;
    cnr_session_tap(r->session, tap, arg);
    status = cnri_runner_run(r, NULL, err);
    if (!status && arg->c->failed) status = no_memory(err);
    if (!status && cnri_cancelled())
        status = cnri_fail(err, CNR_E_CANCELLED, "quantize", "stopped");
    return status;
}

/* The value that a tap tells of. */
static cnr_value value_of(const cnr_graph *g, const char *node, int32_t output) {
    for (int32_t i = 0; i < g->nodes.n; i++)
        if (strcmp(g->nodes.at[i]->name, node) == 0)
            return output < g->nodes.at[i]->view.n_outputs ? g->nodes.at[i]->out[output] : -1;
    return -1;
}

static void widen(cnri_range *r, const cnr_tensor *t) {
    const float *v = t->data;
    const int64_t n = t->dtype == CNR_f32 ? cnr_count(t) : 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        if (!r->seen || v[i] < r->low) r->low = v[i];
        if (!r->seen || v[i] > r->high) r->high = v[i];
        r->seen = true;
    }
}

static void tap_range(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    const tapped *t = arg;
    const cnr_value v = value_of(t->g, node, output);
    if (v >= 0) widen(&t->c->ranges[v], value);
}

cnr_status cnri_calibrate(cnri_calibration *c, cnr_error *err) {
    cnr_model *model = NULL;
    cnri_runner runner = {0};
    cnri_progress progress;
    tapped arg = {c, c->net, NULL};
    cnr_status status = cnri_model_of(c->args, c->rt, c->net, false, &model, err);
    if (!status) status = cnri_runner_open(&runner, model, c->observer, err);
    cnri_progress_begin(&progress, "calibrating", c->pictures, c->args->common.quiet);
    for (int64_t i = 0; i < c->pictures && !status; i++) {
        cnr_sample sample;
        if ((status = cnri_samples_read(&c->samples, i, &sample, err)) != CNR_OK) break;
        status = run_one(&runner, tap_range, &arg, &sample.picture, err);
        if (!status) widen(&c->ranges[c->net->inputs.at[0]], &runner.input);
        cnri_free(sample.picture.data);
        cnri_progress_show(&progress, i + 1, NULL);
    }
    cnri_progress_end(&progress);
    cnri_runner_close(&runner);
    cnr_release(model);
    return status;
}

/* ---- asking ---- */

static cnr_status ask(const cnri_calibration *c, const bool *wanted, cnr_graph *g, cnr_error *err) {
    cnri_text names = {0};
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < c->net->nodes.n; i++)
        if (wanted[i])
            cnri_text_add(&names, "%s%s", names.at ? "\n" : "", c->net->nodes.at[i]->name);
    if (names.failed) status = CNR_E_MEMORY;
    else status = cnri_graph_set_meta(g, asked, names.at ? names.at : "");
    for (cnr_value v = 0; v < c->net->values.n && !status; v++) {
        char low[64], high[64];
        if (!c->ranges[v].seen) continue;
        cnri_print_double(low, sizeof low, c->ranges[v].low);
        cnri_print_double(high, sizeof high, c->ranges[v].high);
        char *key = cnri_format("%s%s", range, c->net->values.at[v].name);
        char *text = cnri_format("%s,%s", low, high);
        status = key && text ? cnri_graph_set_meta(g, key, text) : CNR_E_MEMORY;
        cnri_free(key);
        cnri_free(text);
    }
    cnri_text_free(&names);
    return status ? no_memory(err) : CNR_OK;
}

/* "NAME,scale,zero,low", read from behind: names may hold commas. */
static bool parse(const cnr_graph *g, const char *text, cnri_answer *a) {
    double *const to[] = {&a->low, &a->zero, &a->scale};
    size_t end = strlen(text);
    for (size_t i = 0; i < CNRI_COUNT(to); i++) {
        const char *rest;
        size_t comma = end;
        while (comma > 0 && text[comma - 1] != ',') comma--;
        if (comma == 0 || !cnri_parse_double(text + comma, &rest, to[i]) || rest != text + end)
            return false;
        end = comma - 1;
    }
    char *name = cnri_format("%.*s", (int)end, text);
    a->stored = name ? cnri_graph_find(g, name) : -1;
    cnri_free(name);
    return a->stored >= 0 && a->scale > 0;
}

/* Keeps them in the order of the nodes that make them. */
static bool insert(const cnri_calibration *c, cnri_answers *answers, const cnri_answer *a) {
    const cnri_value *values = c->net->values.at;
    if (!cnri_push(answers)) return false;
    int32_t at = answers->n - 1;
    for (; at > 0 && values[answers->at[at - 1].real].producer > values[a->real].producer; at--)
        answers->at[at] = answers->at[at - 1];
    answers->at[at] = *a;
    return true;
}

static cnr_status read_answers(const cnri_calibration *c, const cnr_graph *g, cnri_answers *answers,
                               cnr_error *err) {
    const size_t n = sizeof answered - 1;
    for (int32_t i = 0; i < g->meta.n; i++) {
        if (strncmp(g->meta.keys[i], answered, n) != 0) continue;
        cnri_answer a = {.real = cnri_graph_find(c->net, g->meta.keys[i] + n)};
        if (a.real < 0 || !parse(g, g->meta.texts[i], &a))
            return cnri_fail(err, CNR_E_FORMAT, g->meta.keys[i], "\"%s\" is no answer",
                             g->meta.texts[i]);
        if (!insert(c, answers, &a)) return no_memory(err);
    }
    return CNR_OK;
}

cnr_status cnri_quantized(const cnri_calibration *c, const bool *wanted, cnr_graph **out,
                          cnri_answers *answers, cnr_error *err) {
    const int64_t before = cnri_alloc_failures();
    const char **off = left_out(c->args, NULL);
    cnr_graph *g = cnri_graph_copy(c->net);
    cnr_status status = off && g ? ask(c, wanted, g, err) : no_memory(err);
    if (!status) status = cnri_graph_sound(g, NULL, 0, err);
    if (!status) status = cnri_graph_rewrite(g, off, err);
    if (!status) status = read_answers(c, g, answers, err);
    status = cnri_alloc_verdict(before, status, "quantize", err);
    cnri_free(off);
    if (status) {
        cnri_graph_free(g);
        g = NULL;
    }
    *out = g;
    return status;
}

void cnri_quantized_clean(cnr_graph *g) {
    cnri_graph_set_meta(g, asked, NULL);
    for (int32_t i = g->meta.n - 1; i >= 0; i--) {
        if (i >= g->meta.n) continue;
        const char *key = g->meta.keys[i];
        if (strncmp(key, range, sizeof range - 1) && strncmp(key, answered, sizeof answered - 1))
            continue;
        char *copy = cnri_strdup(key);
        if (copy) cnri_graph_set_meta(g, copy, NULL);
        cnri_free(copy);
    }
}

void cnri_answers_free(cnri_answers *answers) {
    for (int32_t i = 0; i < answers->n; i++) cnri_free(answers->at[i].kept);
    cnri_vec_free(answers);
}

/* ---- comparing ---- */

static void tap_keep(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    const tapped *t = arg;
    const cnr_value v = value_of(t->g, node, output);
    for (int32_t i = 0; i < t->answers->n && v >= 0; i++) {
        cnri_answer *a = &t->answers->at[i];
        if (a->real != v || value->dtype != CNR_f32) continue;
        float *kept = cnri_resize(a->kept, (size_t)value->bytes + 1);
        if (!kept) {
            t->c->failed = CNR_E_MEMORY;
            return;
        }
        a->kept = kept;
        a->n = cnr_count(value);
        memcpy(kept, value->data, (size_t)value->bytes);
    }
}

static void tap_compare(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    const tapped *t = arg;
    const cnr_value v = value_of(t->g, node, output);
    const bool is_signed = value->dtype == CNR_i8;
    for (int32_t i = 0; i < t->answers->n && v >= 0; i++) {
        cnri_answer *a = &t->answers->at[i];
        if (a->stored != v || a->n != cnr_count(value)) continue;
        if (cnr_dtype_bits(value->dtype) != 8) continue;
        for (int64_t k = 0; k < a->n; k++) {
            const int32_t q = is_signed ? ((const int8_t *)value->data)[k]
                                        : ((const uint8_t *)value->data)[k];
            const double real = fmax((double)a->kept[k], a->low);
            const double off = real - a->scale * (q - a->zero);
            a->signal += real * real;
            a->noise += off * off;
        }
    }
}

cnr_status cnri_compare(cnri_calibration *c, const cnr_graph *quantized, cnri_answers *answers,
                        int64_t most, cnr_error *err) {
    cnr_model *models[2] = {NULL, NULL};
    cnri_runner runners[2] = {{0}, {0}};
    tapped args[2] = {{c, c->net, answers}, {c, quantized, answers}};
    cnr_status status = cnri_model_of(c->args, c->rt, c->net, false, &models[0], err);
    if (!status) status = cnri_model_of(c->args, c->rt, quantized, false, &models[1], err);
    for (int i = 0; i < 2 && !status; i++)
        status = cnri_runner_open(&runners[i], models[i], c->observer, err);
    for (int64_t i = 0; i < c->pictures && i < most && !status; i++) {
        cnr_sample sample;
        if ((status = cnri_samples_read(&c->samples, i, &sample, err)) != CNR_OK) break;
        status = run_one(&runners[0], tap_keep, &args[0], &sample.picture, err);
        if (!status) status = run_one(&runners[1], tap_compare, &args[1], &sample.picture, err);
        cnri_free(sample.picture.data);
    }
    for (int i = 0; i < 2; i++) {
        cnri_runner_close(&runners[i]);
        cnr_release(models[i]);
    }
    return status;
}

double cnri_decibels(const cnri_answer *a) {
    return a->noise > 0 ? 10 * log10(a->signal / a->noise) : INFINITY;
}
