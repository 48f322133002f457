/* Moves a session to the next allowed device when its device fails. */
#include "run/session.h"
#include <stddef.h>

/* Opens a session of a plan on the device that is next best. False: *why. */
static bool open_again(const cnr_plan *plan, const cnr_tensor *const *types, int32_t n,
                       cnr_session **out, cnr_error *why) {
    cnr_plan *other = NULL;
    cnr_status status = cnr_plan_for(cnri_plan_model(plan), types, n, &other, why);
    /* If that device fails too, the next one is tried. */
    if (!status) status = cnr_session_open(other, out, why);
    cnr_plan_release(other);
    return !status;
}

/* Moves a model off a device that failed, and opens a session there in *out. False: there is no
 * other device. */
static bool on_fallback(const cnr_plan *plan, cnr_status status, const cnr_error *why,
                        cnr_session **out) {
    const cnr_graph *g = plan->graph;
    cnr_error unused = CNR_ERROR_INIT;
    *out = NULL;
    if (plan->own_weights || !plan->n_devices ||
        !cnri_fall_back(cnri_plan_model(plan), plan->devices[0]->name, cnri_plan_version(plan),
                        status, why))
        return false;
    const cnr_tensor **types = cnri_alloc(((size_t)g->inputs.n + 1) * sizeof *types);
    if (!types) return false;
    for (int32_t i = 0; i < g->inputs.n; i++) types[i] = g->values.at[g->inputs.at[i]].type;
    const bool good = open_again(plan, types, g->inputs.n, out, &unused);
    if (!good && unused.code)
        cnri_log(CNR_LOG_ERROR, "fallback", "%s: %s", unused.where, unused.text);
    cnri_free(types);
    return good;
}

cnr_status cnr_session_open(cnr_plan *plan, cnr_session **out, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "plan", plan, "out", out, NULL);
    if (status) return status;
    status = cnri_session_open(plan, out, &why);
    if (!status || on_fallback(plan, status, &why, out)) return CNR_OK;
    return cnri_fail(err, status, why.where, "%s", why.text);
}

/* After a failure of the device, goes on with the session on the next one that is allowed; true: it
 * did. Not if listeners, taps or bound memory know the steps of one plan. */
bool cnri_session_move_to_fallback(cnr_session *s, cnr_status status, const cnr_error *why) {
    const cnr_graph *g = s->plan->graph;
    cnr_session *fresh;
    if (s->listeners.n || s->tap || s->n_bound || !on_fallback(s->plan, status, why, &fresh))
        return false;
    for (int32_t i = 0; i < g->inputs.n; i++) {
        const uint64_t bytes = cnr_dense_bytes(g->values.at[g->inputs.at[i]].type);
        fresh->given[i] = s->given[i];
        if (s->inputs[i] && fresh->inputs[i]) memcpy(fresh->inputs[i], s->inputs[i], (size_t)bytes);
    }
    cnr_session old; /* copies everything but `cancel`, which other threads may write at any time */
    memcpy(&old, s, offsetof(cnr_session, cancel));
    memcpy(s, fresh, offsetof(cnr_session, cancel));
    memcpy(fresh, &old, offsetof(cnr_session, cancel));
    cnri_session_cancel_by(s, old.outer_cancel); /* streams hold pointers into the session */
    cnri_session_cancel_by(fresh, NULL);
    cnr_session_close(fresh);
    return true;
}
