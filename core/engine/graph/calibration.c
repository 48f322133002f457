/* Calibration data for rewrites: the nodes that are to be quantised, the ranges of values that
 * were measured, and the scales that rewrites chose. */
#include "graph/parts.h"

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

/* 1 if the user asked that this node be quantised. */
static int32_t is_requested(const cnr_graph *g, int32_t node) {
    return g->calibration && node >= 0 && node < g->nodes.n &&
           cnri_map_get(&g->calibration->requested, g->nodes.at[node]->name) != NULL;
}

/* *low and *high: smallest and largest number that a value had in calibration, with 1; 0: it was
 * not measured. */
static int32_t range_of(const cnr_graph *g, cnr_value value, double *low, double *high) {
    const struct cnri_calibration *c = g->calibration;
    if (!c || value < 0 || value >= c->n_ranges || !c->ranges[value].seen) return 0;
    *low = c->ranges[value].low;
    *high = c->ranges[value].high;
    return 1;
}

/* Notes how a rewrite quantised a value: scale, zero point and lowest number. */
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
    host->graph_should_quantise = is_requested;
    host->graph_value_range = range_of;
    host->graph_set_quantised = answer;
}
