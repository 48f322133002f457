/* Runs a net on pictures: shapes, plans, sessions and batches for run, eval and bench. */
#include "core/cli/runner.h"

/* --symbol NAME=VALUE for symbol `k` of the graph; -1: not given. */
static int64_t symbol_value(const cnri_args *args, const cnr_graph *g, int32_t k) {
    const cnri_words *words = &args->common.symbols;
    int64_t value;
    if (k < 0 || k >= g->symbols.n) return -1;
    const size_t n = strlen(g->symbols.at[k]);
    for (int32_t i = 0; i < words->n; i++)
        if (strncmp(words->at[i], g->symbols.at[k], n) == 0 && words->at[i][n] == '=' &&
            cnri_parse_int(words->at[i] + n + 1, &value))
            return value;
    return -1;
}

void cnri_input_shape(const cnri_args *args, const cnr_graph *g, int32_t index, int64_t batch,
                      const cnri_preprocess *p, const cnr_tensor *picture, cnr_tensor *out) {
    int64_t size[2] = {1, 1};
    const bool fixed = p && cnri_picture_size(p, picture, size);
    *out = *g->values.at[g->inputs.at[index]].type;
    const bool last = out->rank == 4 && (out->dim[3] == 1 || out->dim[3] == 3) &&
                      out->dim[1] != 1 && out->dim[1] != 3;
    for (int32_t i = 0; i < out->rank; i++) {
        if (out->dim[i] >= 0) continue;
        const int32_t k = out->dim[i] == CNR_DIM_UNKNOWN ? -1 : CNR_SYMBOL_OF_DIM(out->dim[i]);
        const int64_t given = symbol_value(args, g, k), usual = cnri_dim_default(g, out->dim[i]);
        const int32_t side = i - (last ? 1 : 2); /* 0 height, 1 width */
        const bool is_side = out->rank == 4 && (side == 0 || side == 1);
        if (given >= 0) out->dim[i] = given;
        else if (i == 0) out->dim[i] = batch;
        else if (is_side && fixed) out->dim[i] = size[side];
        else if (usual > 0) out->dim[i] = usual;
        else if (is_side) out->dim[i] = size[side];
        else out->dim[i] = out->rank == 4 && (!p || p->channels != 1) ? 3 : 1;
    }
}

cnr_status cnri_input_shapes(const cnri_args *args, const cnr_model *model, int64_t batch,
                             cnr_tensor *shapes, const cnr_tensor **list, cnr_error *err) {
    const cnr_tensor any = {.rank = 3, .dim = {224, 224, 3}};
    for (int32_t i = 0; i < cnr_input_count(model); i++) {
        cnri_preprocess p;
        const cnr_status status =
            cnri_preprocess_read(model->graph, cnr_input_name(model, i), &p, err);
        if (status) return status;
        cnri_input_shape(args, model->graph, i, batch, &p, &any, &shapes[i]);
        if (batch != 1 && shapes[i].rank > 1) shapes[i].dim[0] = batch;
        cnri_preprocess_free(&p);
        list[i] = &shapes[i];
    }
    return CNR_OK;
}

bool cnri_is_classes(const cnr_tensor *sample) {
    int32_t wide = 0;
    for (int32_t i = 0; i < sample->rank; i++) wide += sample->dim[i] != 1;
    return wide == 1;
}

cnr_status cnri_runner_open(cnri_runner *r, const cnri_args *args, cnr_model *model,
                            cnr_error *err) {
    memset(r, 0, sizeof *r);
    r->args = args;
    r->model = model;
    if (cnr_input_count(model) != 1)
        return cnri_fail(err, CNR_E_UNSUPPORTED, model->path,
                         "pictures go into nets of one input; this one has %d",
                         cnr_input_count(model));
    return cnri_preprocess_read(model->graph, cnr_input_name(model, 0), &r->preprocess, err);
}

static void let_go(cnri_runner *r) {
    cnri_signals_watch(NULL);
    if (r->session) cnr_session_close(r->session);
    if (r->plan) cnr_plan_release(r->plan);
    cnri_free(r->input.data);
    r->session = NULL;
    r->plan = NULL;
    r->input.data = NULL;
}

void cnri_runner_close(cnri_runner *r) {
    let_go(r);
    cnri_preprocess_free(&r->preprocess);
}

/* A plan for the wanted batch, where the net allows it. */
static cnr_status plan_for(cnri_runner *r, int64_t batch, cnr_tensor *shape, cnr_error *err) {
    const cnr_tensor *shapes[] = {shape};
    const int64_t fixed = shape->rank > 0 ? shape->dim[0] : 1;
    if (shape->rank > 0 && fixed != batch) {
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
    cnri_input_shape(r->args, r->model->graph, 0, batch, &r->preprocess, picture, &shape);
    if (r->session && cnr_same_shape(&shape, &r->input)) return CNR_OK;
    let_go(r);
    cnr_status status = plan_for(r, batch, &shape, err);
    if (!status) status = cnri_residency_warm(r->plan, err);
    if (!status) status = cnr_session_open(r->plan, &r->session, err);
    if (status) return status;
    r->input = shape;
    r->input.bytes = cnr_dense_bytes(&shape);
    r->input.data = r->input.bytes < SIZE_MAX ? cnri_alloc_zero((size_t)r->input.bytes) : NULL;
    if (!r->input.data) return cnri_fail(err, CNR_E_MEMORY, "input", "out of memory");
    r->batch = shape.rank > 1 ? shape.dim[0] : 1;
    cnri_signals_watch(r->session);
    return CNR_OK;
}

bool cnri_runner_slice(const cnri_runner *r, const cnr_tensor *whole, int64_t slot,
                       cnr_tensor *out) {
    *out = *whole;
    if (whole->rank < 1 || whole->dim[0] != r->batch) return r->batch == 1;
    out->dim[0] = 1;
    out->bytes = whole->bytes / (uint64_t)r->batch;
    out->data = (char *)whole->data + out->bytes * (uint64_t)slot;
    return true;
}

cnr_status cnri_runner_put(cnri_runner *r, int64_t slot, const cnr_tensor *picture,
                           cnr_error *err) {
    cnr_tensor one;
    cnri_runner_slice(r, &r->input, slot, &one);
    return cnri_preprocess_apply(&r->preprocess, picture, &one, err);
}

cnr_status cnri_runner_run(cnri_runner *r, uint64_t *ns, cnr_error *err) {
    const cnr_tensor *out;
    const uint64_t begin = cnri_now_ns();
    cnr_status status = cnr_session_set_input(r->session, 0, &r->input, err);
    if (!status) status = cnr_session_run(r->session, err);
    for (int32_t i = 0; i < cnr_output_count(r->model) && !status; i++)
        status = cnr_session_output(r->session, i, &out, err);
    if (ns) *ns = cnri_now_ns() - begin;
    return status;
}
