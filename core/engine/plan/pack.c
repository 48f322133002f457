/* Has kernels prepare weights. The lock of the residency is held. */
#include "plan/residency.h"

/* Rows of a late weight that threads compute. */
typedef struct late_job {
    const cnr_graph *g;
    cnr_value v;
    int64_t first, rows, tasks;
    float *to;
} late_job;

/* One task: computes its share of the rows. */
static void late_rows(void *arg, int64_t i, int32_t thread) {
    const late_job *j = arg;
    (void)thread;
    for (int64_t row = i * j->rows / j->tasks; row < (i + 1) * j->rows / j->tasks; row++)
        cnri_late_write(j->g, j->v, j->first + row, j->to);
}

/* Verifies a weight just before it is packed, when its data is in the caches anyway, so that no
 * more than one weight of a file is in memory. */
static cnr_status weight_sound(const cnr_plan *plan, const cnr_device *device, cnr_value v,
                               cnr_error *err) {
    const int32_t threads = (int32_t)cnr_max(1, device->concurrency);
    return cnri_value_verify(&plan->graph->values.at[v], false, threads, err);
}

/* Computes a late weight, or its rows of a slice, into the scratch memory, which late weights use
 * one after the other, on all threads. */
static cnr_status make_late(cnr_plan *plan, const cnri_blob *b, cnr_value v, cnr_error *err) {
    struct cnri_residency *r = plan->residency;
    const cnri_step *s = &plan->steps.at[b->step];
    const cnr_device *device = plan->devices[s->device];
    cnri_value *value = &plan->graph->values.at[v];
    cnr_stream stream = {.size = sizeof stream, .device = device};
    cnr_status status = weight_sound(plan, device, value->late->from, err);
    if (status) return status;
    if (r->late == v) return CNR_OK; /* it is in the scratch memory already */
    if (r->late >= 0) { /* another late weight of the same node holds the scratch memory */
        cnri_late_keep(plan->graph, v);
        return CNR_OK;
    }
    const int64_t rows = cnri_late_rows(plan->graph, v);
    const uint64_t row = value->type->bytes / (uint64_t)cnr_max(1, rows);
    const int64_t first = b->slice * s->slice, n = s->slices ? s->slice : rows;
    if (r->scratch_bytes < (uint64_t)n * row) {
        cnri_free(r->scratch);
        r->scratch_bytes = 0;
        r->scratch = cnri_alloc((size_t)((uint64_t)n * row) + 1);
        if (!r->scratch) return cnri_no_memory(err);
        r->scratch_bytes = (uint64_t)n * row;
    }
    if ((status = device->cls->stream_open(device, &stream, err))) return status;
    /* row 0's place */
    float *whole = (float *)((uintptr_t)r->scratch - (uintptr_t)((uint64_t)first * row));
    late_job job = {plan->graph, v, first, n, 1, whole};
    job.tasks = cnr_min(job.rows, 4 * (int64_t)cnr_max(1, device->concurrency));
    cnr_parallel(&stream, job.tasks, late_rows, &job);
    device->cls->stream_close(&stream);
    if (plan->memory_bound) cnri_value_release_pages(plan->graph, v);
    r->late = v;
    r->late_home = value->type->data;
    value->type->data = whole;
    return CNR_OK;
}

/* Ends the use of a late weight's data. */
static void end_late(cnr_plan *plan) {
    struct cnri_residency *r = plan->residency;
    if (r->late >= 0) plan->graph->values.at[r->late].type->data = r->late_home;
    r->late = -1;
}

void cnri_residency_drop_scratch(struct cnri_residency *r) {
    cnri_free(r->scratch);
    r->scratch = NULL;
    r->scratch_bytes = 0;
}

/* Decodes weights that only prepare reads, for one call (`begin`), and frees them after it. */
static cnr_status decode_inputs(cnr_plan *plan, const cnri_blob *b, bool begin, cnr_error *err) {
    const cnri_step *s = &plan->steps.at[b->step];
    const cnr_device *device = plan->devices[s->device];
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < s->n_in && !status; i++) {
        if (s->in[i] < 0) continue;
        const cnr_value v = plan->homes.at[s->in[i]].value;
        cnr_tensor *type = plan->graph->values.at[v].type;
        if (begin) status = weight_sound(plan, device, v, err);
        if (begin && !status && plan->graph->values.at[v].late) status = make_late(plan, b, v, err);
        for (int32_t t = 0; t < plan->twins.n && !status; t++) {
            const cnri_twin *twin = &plan->twins.at[t];
            if (twin->dense != v || twin->kept) continue;
            if (begin) status = weight_sound(plan, device, twin->encoded, err);
            if (status) break;
            if (!begin) {
                cnri_free(type->data);
                type->data = NULL;
            } else if (!type->data) {
                const cnr_tensor *from = plan->graph->values.at[twin->encoded].type;
                const cnr_encoding *how =
                    cnri_descriptor_find(CNR_KIND_ENCODING, cnri_name(from->encoding));
                if (!(type->data = cnri_alloc((size_t)type->bytes + 1)))
                    status = cnri_no_memory(err);
                else status = how->decode(from, type->data, err);
            }
        }
        if (begin && !status && cnri_is_weight(plan->graph, v) && !type->data)
            status = cnri_fail(err, CNR_E_STATE, plan->graph->values.at[v].name,
                               "has no data yet: want the net's weights filled before it runs");
    }
    if (!begin) end_late(plan);
    return status;
}

bool cnri_residency_reads(const cnr_plan *plan, cnr_value v) {
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        for (int32_t k = 0; k < s->n_in; k++)
            if (s->in[k] >= 0 && plan->homes.at[s->in[k]].value == v &&
                !(s->blob >= 0 && cnri_step_prepares(s, k)))
                return true;
    }
    return false;
}

void cnri_blob_release_inputs(const cnr_plan *plan, const cnri_step *s) {
    for (int32_t k = 0; k < s->n_in; k++) {
        const cnr_value v = s->in[k] < 0 ? -1 : plan->homes.at[s->in[k]].value;
        if (v >= 0 && cnri_step_prepares(s, k) && !cnri_residency_reads(plan, v))
            cnri_value_release_pages(plan->graph, v);
    }
}

cnr_status cnri_blob_prepare(cnr_plan *plan, const cnri_blob *b, const cnr_mem *mem,
                             cnr_error *err) {
    const cnri_step *s = &plan->steps.at[b->step];
    const cnr_node *view = &s->view;
    cnri_slice part;
    const cnr_device *device = plan->devices[s->device];
    const bool host = cnri_in_host(device, mem->memory_class);
    void *data = host ? (char *)mem->handle + mem->offset : cnri_alloc((size_t)mem->bytes + 1);
    if (!data) return cnri_no_memory(err);
    const int64_t before = cnri_alloc_failures();
    cnr_status status = decode_inputs(plan, b, true, err);
    if (s->slices && cnri_slice_make(plan, s, view, b->slice, &part)) view = &part.node;
    if (!status) {
        CNRI_DURING(status, s->kernel->prepare(device, view, data, err),
                    .verb = "preparing weights of kernel", .descriptor = s->kernel,
                    .name = s->kernel->name, .node = s->view.name, .device = device->name);
        status = cnri_plugin_status(err, status, s->view.name, s->kernel->name);
    }
    status = cnri_alloc_verdict(before, status, s->view.name, err);
    decode_inputs(plan, b, false, NULL);
    if (!host) {
        if (!status) status = cnri_device_upload(device, mem, data, mem->bytes, err);
        cnri_free(data);
    }
    return status;
}

cnr_status cnri_blob_size(cnr_plan *plan, cnri_step *s, cnr_error *err) {
    const cnr_device *device = plan->devices[s->device];
    const cnr_node *view = &s->view;
    cnri_slice part;
    if (s->slices && cnri_slice_make(plan, s, view, 0, &part)) view = &part.node;
    s->blob_space = (cnr_space){.size = sizeof(cnr_space)};
    cnr_status status =
        cnri_plugin_status(err, s->kernel->prepare_size(device, view, &s->blob_space, err),
                           s->view.name, s->kernel->name);
    if (!status && (s->blob_space.bytes > INT64_MAX / 4 || s->blob_space.memory_class < 0 ||
                    s->blob_space.memory_class >= device->n_memory))
        status = cnri_fail(err, CNR_E_LIMIT, s->view.name,
                           "kernel \"%s\" wants a blob that cannot be had", s->kernel->name);
    return status;
}
