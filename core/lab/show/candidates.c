/* The candidates from which a plan is chosen, for applications and for printing. */
#include "show/show.h"
#include "keep/keep.h"

/* Makes a plan in *out that the caller owns, by the times on record in the cache; `table`: with the
 * table of candidates. */
cnr_status cnri_plan_for_inspection(const cnr_model *m, const cnr_tensor *const *types, int32_t n,
                                    bool table, cnr_plan **out, cnr_error *err) {
    cnri_plan_options options = m->plan_options;
    cnri_tuning record = {0};
    uint8_t print[16];
    cnr_error why = CNR_ERROR_INIT;
    *out = NULL;
    if (m->cache && !options.deterministic && cnri_tuning_load(m->cache, &record, print, &why))
        cnri_log(CNR_LOG_WARN, "cache", "%s: %s", why.where, why.text);
    options.tuning = record.rows.n ? &record : NULL;
    options.candidates = table;
    const int64_t before = cnri_alloc_failures();
    cnr_status status = cnri_plan_make(m->graph, &m->rt->devices, &options, types, n, out, err);
    status = cnri_alloc_verdict(before, status, m->path ? m->path : "model", err);
    cnri_vec_free(&record.rows);
    if (!status) cnri_plans_check_stores(m, &options, *out);
    if (!status) return CNR_OK;
    cnri_plan_free(*out);
    *out = NULL;
    return status;
}

/* Row `row` of the table as the public struct, in ms and joules; texts belong to the table. */
static cnr_candidate candidate_of(const cnri_table *t, int32_t row) {
    const cnri_table_row *r = &t->rows.at[row];
    const bool joules = r->cost.joules > 0;
    return (cnr_candidate){.size = sizeof(cnr_candidate),
                           .takes = r->takes,
                           .node = t->nodes.at[r->node].name,
                           .op = t->nodes.at[r->node].op,
                           .kernel = r->kernel,
                           .device = t->devices.at[r->device].name,
                           .layout_in = r->layout_in,
                           .layout_out = r->layout_out,
                           .encodings = r->encodings,
                           .ns = r->cost.ns,
                           .joules = r->cost.joules,
                           .mhz = r->cost.mhz,
                           .ns_from = cnri_source_name(r->cost.from),
                           .joules_from = joules ? cnri_source_name(r->cost.from) : NULL,
                           .bytes = r->bytes,
                           .flops = r->flops,
                           .score = r->score,
                           .splits = r->splits,
                           .by = r->by,
                           .why = r->by ? cnri_row_why(t, row) : NULL,
                           .share = r->share,
                           .extrapolated = r->extrapolated};
}

/* Makes the public list from the plan's table. The list owns the plan. */
static cnr_status fill(cnr_plan *plan, cnr_candidate_list *got, cnr_error *err) {
    const cnri_table *t = plan->table;
    got->plan = plan;
    got->policy = t->policy;
    got->failure = t->failure;
    got->notes = t->notes;
    got->at = cnri_alloc(((size_t)t->rows.n + 1) * sizeof *got->at);
    if (!got->at) return cnri_out_of_memory(err, "candidates");
    for (int32_t i = 0; i < t->rows.n; i++) got->at[got->n++] = candidate_of(t, i);
    return CNR_OK;
}

cnr_status cnr_candidates(cnr_model *m, const cnr_tensor *const *shapes, int32_t n_shapes,
                          cnr_candidate_list *out, cnr_error *err) {
    cnr_candidate_list got = {.size = sizeof got};
    cnr_status status = cnri_require_arguments(err, "model", m, "out", out, NULL);
    if (!status && out->size < sizeof got)
        status = cnri_fail(err, CNR_E_ARG, "out", "its size is to be set before the call");
    if (!status) status = cnri_check_process(m->rt, err);
    if (status) return status;
    *out = got;
    const int32_t n = m->graph->inputs.n;
    cnr_tensor *types = cnri_alloc(((size_t)n + 1) * sizeof *types);
    const cnr_tensor **list = cnri_alloc(((size_t)n + 1) * sizeof *list);
    cnr_plan *plan = NULL;
    if (!types || !list) status = cnri_out_of_memory(err, "candidates");
    if (!status) status = cnri_plan_types(m, shapes, n_shapes, types, err);
    for (int32_t i = 0; i < n && !status; i++) list[i] = &types[i];
    if (!status) status = cnri_plan_for_inspection(m, list, n, true, &plan, err);
    if (!status) status = fill(plan, &got, err);
    cnri_free(types);
    cnri_free((void *)list);
    if (status) cnr_candidates_free(&got);
    else *out = got;
    return status;
}

void cnr_candidates_free(cnr_candidate_list *list) {
    if (!list) return;
    cnri_free(list->at);
    cnri_plan_free(list->plan);
    *list = (cnr_candidate_list){.size = sizeof *list};
}
