/* Plans of a net at its default sizes: to look at, or made and stored for quick starts. */
#include "work/work.h"

/* Plans for the default sizes at `batch`, in *out; `table`: keeps the table. The caller frees the
 * plan with cnri_plan_free. */
cnr_status cnri_plan_default_sizes(const cnr_model *model, int64_t batch, bool table,
                                   cnr_plan **out, cnr_error *err) {
    cnri_shapes shapes;
    *out = NULL;
    cnr_status status = cnri_input_shapes(model, batch, &shapes, err);
    if (!status) status = cnri_plan_for_inspection(model, shapes.list, shapes.n, table, out, err);
    cnri_shapes_free(&shapes);
    return status;
}

cnr_status cnri_warm(cnr_model *model, int64_t batch, cnri_warmed *out, cnr_error *err) {
    const uint64_t begin = cnri_now_ns();
    cnri_shapes shapes;
    cnri_residency_stats stats;
    cnr_plan *plan = NULL;
    const char *name;
    uint64_t bytes;
    *out = (cnri_warmed){.batch = batch};
    cnr_status status = cnri_input_shapes(model, batch, &shapes, err);
    if (!status) status = cnr_plan_for(model, shapes.list, shapes.n, &plan, err);
    if (!status) status = cnri_residency_warm(plan, err);
    cnri_shapes_free(&shapes);
    if (!status) {
        for (; cnri_residency_blob(plan, out->blobs, &name, &bytes); out->blobs++)
            out->blob_bytes += bytes;
        cnri_residency_stats_of(plan, &stats);
        out->prepared = stats.prepared;
        out->taken_over = stats.kept;
        out->ms = (double)(cnri_now_ns() - begin) * 1e-6;
        snprintf(out->origin, sizeof out->origin, "%s", plan->origin ? plan->origin : "not kept");
    }
    cnr_plan_release(plan);
    return status;
}
