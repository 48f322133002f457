/* Runs a net on pictures: shapes, plans, sessions and batches, for all other work. */
#include "work/work.h"

cnr_status cnri_runner_open(cnri_runner *r, cnr_model *model, const cnr_observer *observer,
                            cnr_error *err) {
    memset(r, 0, sizeof *r);
    r->observer = observer;
    r->model = model;
    if (cnr_input_count(model) != 1)
        return cnri_fail(err, CNR_E_UNSUPPORTED, model->path,
                         "pictures go into nets of one input; this one has %d",
                         cnr_input_count(model));
    r->axis = cnri_picture_axes(cnr_input_type(model, 0)).batch;
    const cnr_status status =
        cnri_preprocess_read(model->graph, cnr_input_name(model, 0), &r->preprocess, err);
    r->preprocess.memory_limit = model->plan_options.memory_limit;
    return status;
}

/* Closes session and plan, unless the session is an adaptation's, and frees the input. */
static void let_go(cnri_runner *r) {
    if (r->session && !r->adapts) cnr_session_close(r->session);
    if (r->plan) cnr_plan_release(r->plan);
    cnri_free(r->own);
    r->session = NULL;
    r->plan = NULL;
    r->own = r->input.data = NULL;
}

/* Closes session and plan, and frees the preprocessing. */
void cnri_runner_close(cnri_runner *r) {
    let_go(r);
    cnri_preprocess_free(&r->preprocess);
}

/* Makes a plan for the wanted batch, or for the batch that the net allows, which shape->dim[0] then
 * is. */
static cnr_status plan_for(cnri_runner *r, int64_t batch, cnr_tensor *shape, cnr_error *err) {
    const cnr_tensor *shapes[] = {shape};
    if (r->axis == 0 && shape->dim[0] != batch) {
        const int64_t fixed = shape->dim[0];
        cnr_error why = CNR_ERROR_INIT;
        shape->dim[0] = batch;
        if (cnr_plan_for(r->model, shapes, 1, &r->plan, &why) == CNR_OK) return CNR_OK;
        shape->dim[0] = fixed;
    }
    return cnr_plan_for(r->model, shapes, 1, &r->plan, err);
}

cnr_status cnri_runner_shape(cnri_runner *r, int64_t batch, const cnr_tensor *picture,
                             cnr_error *err) {
    cnr_tensor shape;
    const cnri_sizes from = {.batch = batch, .preprocess = &r->preprocess, .picture = picture};
    cnri_model_sizes(r->model, 0, from, &shape);
    if (r->plan && batch == r->requested_batch && cnr_same_shape(&shape, &r->requested_shape))
        return CNR_OK;
    let_go(r);
    /* Requested_shape is compared with the next request, since the plan's batch may differ. */
    r->requested_shape = shape;
    r->requested_batch = batch;
    cnr_status status = plan_for(r, batch, &shape, err);
    if (!status && !r->adapts) status = cnri_residency_warm(r->plan, err);
    if (!status && !r->adapts) status = cnr_session_open(r->plan, &r->session, err);
    if (status) return status;
    r->input = shape;
    r->input.bytes = cnr_dense_bytes(&shape);
    /* No step reads the input; pictures are checked all the same. */
    if (r->adapts || !cnri_session_input_buffer(r->session, 0)) {
        r->own = r->input.bytes < SIZE_MAX ? cnri_alloc_zero((size_t)r->input.bytes) : NULL;
        if (!r->own) return cnri_out_of_memory(err, "input");
    }
    r->batch = r->axis == 0 ? shape.dim[0] : 1;
    if (!r->adapts && r->observer && CNRI_HAS(r->observer, cancel))
        cnri_session_cancel_by(r->session, r->observer->cancel);
    return CNR_OK;
}

/* Makes *out part `slot` of `n` along the first axis. */
static void slice(const cnr_tensor *whole, int64_t slot, int64_t n, cnr_tensor *out) {
    *out = *whole;
    out->dim[0] = 1;
    out->bytes = whole->bytes / (uint64_t)n;
    out->data = (char *)whole->data + out->bytes * (uint64_t)slot;
}

bool cnri_runner_slice(const cnri_runner *r, const cnr_tensor *whole, int64_t slot,
                       cnr_tensor *out) {
    *out = *whole;
    /* The net has no batch axis: everything belongs to the picture. */
    if (r->axis != 0) return true;
    if (whole->rank < 1 || whole->dim[0] != r->batch) return r->batch == 1;
    slice(whole, slot, r->batch, out);
    return true;
}

/* Points r->input at the memory that the session reads, or at the runner's own where there is
 * none. */
static void find_input(cnri_runner *r) {
    void *buffer = r->adapts ? NULL : cnri_session_input_buffer(r->session, 0);
    r->input.data = buffer ? buffer : r->own;
}

cnr_status cnri_runner_put(cnri_runner *r, int64_t slot, const cnr_tensor *picture,
                           cnr_error *err) {
    find_input(r);
    cnr_tensor one = r->input;
    if (r->axis == 0) slice(&r->input, slot, r->batch, &one);
    return cnri_preprocess_apply(&r->preprocess, picture, &one, err);
}

/* Runs a model that adapts; the session is the one that gave the answer. */
static cnr_status run_adapting(cnri_runner *r, cnr_error *err) {
    const cnr_tensor *list[] = {&r->input};
    cnr_status status = cnri_adapt_run(r->model, list, 1, &r->session, err);
    if (status || r->session) return status;
    const cnr_tensor *out;
    status = cnri_run_plainly(r->model, list, 1, &out, cnr_output_count(r->model) > 0, err);
    r->session = r->model->session;
    return status;
}

cnr_status cnri_runner_run(cnri_runner *r, uint64_t *ns, cnr_error *err) {
    const cnr_tensor *out;
    const uint64_t begin = cnri_now_ns();
    find_input(r);
    cnr_status status =
        r->adapts ? run_adapting(r, err) : cnr_session_set_input(r->session, 0, &r->input, err);
    if (!status && !r->adapts) status = cnr_session_run(r->session, err);
    for (int32_t i = 0; i < cnr_output_count(r->model) && !status; i++)
        status = cnr_session_output(r->session, i, &out, err);
    if (ns) *ns = cnri_now_ns() - begin;
    return status;
}
