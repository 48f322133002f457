/* Calibration: which nodes are asked to work on whole numbers, what values were seen to hold, and
 * what rewrites answered. For rewrites older than ABI 1.2 the same is spoken in metadata. */
#include "graph/parts.h"

static const char quantize[] = "quantize", range[] = "range.", quantized[] = "quantized.";

cnr_status cnri_graph_request_quantise(cnr_graph *g, const bool *wanted, const cnri_range *ranges,
                                       cnr_error *err) {
    cnri_calibration_free(g);
    g->calibration = cnri_alloc_zero(sizeof *g->calibration);
    if (!g->calibration) return cnri_out_of_memory(err, g->name);
    g->calibration->ranges = ranges;
    g->calibration->n_ranges = g->values.n;
    for (int32_t i = 0; i < g->nodes.n; i++)
        if (wanted[i] &&
            cnri_map_set(&g->calibration->requested, g->nodes.at[i]->name, g) != CNR_OK)
            return cnri_out_of_memory(err, g->name);
    return CNR_OK;
}

const cnri_quantised_value *cnri_graph_quantised_at(const cnr_graph *g, int32_t index) {
    if (!g->calibration || index >= g->calibration->answers.n) return NULL;
    return &g->calibration->answers.at[index];
}

/* ---- the host table's ---- */

static int32_t is_requested(const cnr_graph *g, int32_t node) {
    return g->calibration && node >= 0 && node < g->nodes.n &&
           cnri_map_get(&g->calibration->requested, g->nodes.at[node]->name) != NULL;
}

static int32_t range_of(const cnr_graph *g, cnr_value value, double *low, double *high) {
    const struct cnri_calibration *c = g->calibration;
    if (!c || value < 0 || value >= c->n_ranges || !c->ranges[value].seen) return 0;
    *low = c->ranges[value].low;
    *high = c->ranges[value].high;
    return 1;
}

static cnr_status answer(cnr_graph *g, cnr_value real, cnr_value stored, double scale, double zero,
                         double low) {
    if (!g->calibration || real < 0 || real >= g->calibration->n_ranges || stored < 0 ||
        stored >= g->values.n || !(scale > 0))
        return CNR_E_ARG;
    cnri_quantised_value *a = cnri_push(&g->calibration->answers);
    if (!a) return CNR_E_MEMORY;
    *a = (cnri_quantised_value){real, stored, scale, zero, low};
    return CNR_OK;
}

void cnri_calibration_install(cnr_host *host) {
    host->graph_quantise_asked = is_requested;
    host->graph_range = range_of;
    host->graph_quantised = answer;
}

/* ---- in metadata ---- */

cnr_status cnri_calibration_put(cnr_graph *g) {
    cnri_text names = {0};
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < g->nodes.n; i++)
        if (is_requested(g, i))
            cnri_text_add(&names, "%s%s", names.at ? "\n" : "", g->nodes.at[i]->name);
    if (names.failed) status = CNR_E_MEMORY;
    else if (names.at) status = cnri_graph_set_meta(g, quantize, names.at);
    cnri_text_free(&names);
    for (cnr_value v = 0; v < g->calibration->n_ranges && !status; v++) {
        char low[64], high[64];
        if (!g->calibration->ranges[v].seen) continue;
        cnri_print_double(low, sizeof low, g->calibration->ranges[v].low);
        cnri_print_double(high, sizeof high, g->calibration->ranges[v].high);
        char *key = cnri_format("%s%s", range, g->values.at[v].name);
        char *text = cnri_format("%s,%s", low, high);
        status = key && text ? cnri_graph_set_meta(g, key, text) : CNR_E_MEMORY;
        cnri_free(key);
        cnri_free(text);
    }
    return status;
}

/* Of those that there were when it was asked: its node is gone by now, and its name free. */
static cnr_value value_of(const cnr_graph *g, const char *name) {
    cnr_value v = g->calibration->n_ranges - 1;
    while (v >= 0 && strcmp(g->values.at[v].name, name) != 0) v--;
    return v;
}

/* "NAME,scale,zero,low", read from behind: names may hold commas. */
static cnr_status parse(cnr_graph *g, const char *value, const char *text) {
    double low, zero, scale, *const to[] = {&low, &zero, &scale};
    size_t end = strlen(text);
    for (size_t i = 0; i < CNRI_COUNT(to); i++) {
        const char *rest;
        size_t comma = end;
        while (comma > 0 && text[comma - 1] != ',') comma--;
        if (comma == 0 || !cnri_parse_double(text + comma, &rest, to[i]) || rest != text + end)
            return CNR_E_FORMAT;
        end = comma - 1;
    }
    char *name = cnri_format("%.*s", (int)end, text);
    if (!name) return CNR_E_MEMORY;
    const cnr_value stored = cnri_graph_find(g, name);
    cnri_free(name);
    const cnr_status status = answer(g, value_of(g, value), stored, scale, zero, low);
    return status == CNR_E_ARG ? CNR_E_FORMAT : status;
}

static bool starts_with(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

cnr_status cnri_calibration_take(cnr_graph *g, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = g->meta.n - 1; i >= 0; i--) {
        const char *key = g->meta.keys[i];
        if (!status && starts_with(key, quantized)) {
            status = parse(g, key + sizeof quantized - 1, g->meta.texts[i]);
            if (status) cnri_fail(err, status, key, "\"%s\" is no answer", g->meta.texts[i]);
        }
        if (strcmp(key, quantize) != 0 && !starts_with(key, range) && !starts_with(key, quantized))
            continue;
        char *copy = cnri_strdup(key); /* the entry goes while it is named */
        if (!copy) return cnri_out_of_memory(err, g->name);
        cnri_graph_set_meta(g, copy, NULL);
        cnri_free(copy);
    }
    return status;
}
