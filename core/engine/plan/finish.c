/* Finishes a plan: node views on the homes' tensors, kernel states, constants on devices. */
#include "plan/planner.h"

/* The tensor that a step sees for a home; NULL: negative. For a weight it is the graph's own, whose
 * address stays and whose data may be replaced; for other values it is the home's. */
static const cnr_tensor *tensor_seen_by(const cnr_plan *plan, const cnri_step *s, int32_t home) {
    if (home < 0) return NULL;
    const cnri_home *h = &plan->homes.at[home];
    if (cnri_is_weight(plan->graph, h->value) && h->storage < 0)
        return plan->graph->values.at[h->value].type;
    return s->passes ? &h->flat : &h->type;
}

/* Builds s->view, the node that a step's kernel sees: its tensors and epilogues. */
static cnr_status view_step(cnri_planner *p, cnri_step *s, cnr_error *err) {
    const cnri_pick *pick = &p->picks[s->node];
    const size_t n_in = (size_t)s->n_in, n_out = (size_t)s->n_out,
                 n = (size_t)pick->view.node.n_epilogue;
    const size_t bytes = n * sizeof(cnr_epilogue) + (n_in + n_out + n + 1) * sizeof(void *);
    cnr_epilogue *epilogues = cnri_alloc(bytes);
    if (!epilogues) return cnri_no_memory(err);
    const cnr_epilogue **epilogue = (const cnr_epilogue **)(epilogues + n);
    const cnr_tensor **inputs = (const cnr_tensor **)(epilogue + n), **outputs = inputs + n_in;
    s->view_memory = epilogues;
    for (size_t i = 0; i < n_in; i++) inputs[i] = tensor_seen_by(p->plan, s, s->in[i]);
    for (size_t i = 0; i < n_out; i++) outputs[i] = tensor_seen_by(p->plan, s, s->out[i]);
    for (size_t i = 0; i < n; i++) {
        epilogues[i] = pick->chain.epilogues[i];
        epilogue[i] = &epilogues[i];
    }
    s->view = pick->view.node;
    s->view.inputs = inputs;
    s->view.outputs = outputs;
    s->view.epilogue = n ? epilogue : NULL;
    return CNR_OK;
}

/* Asks the step's kernel, by its first slice if it has slices, for its workspace and state; the
 * reference only for bytes. */
static cnr_status plan_kernel(cnri_planner *p, cnri_step *s, cnr_error *err) {
    const cnr_device *device = p->plan->devices[s->device];
    const cnr_node *view = &s->view;
    cnri_slice part;
    if (s->slices && cnri_slice_make(p->plan, s, view, 0, &part)) view = &part.node;
    s->workspace_space = (cnr_space){.size = sizeof(cnr_space)};
    s->blob_space = (cnr_space){.size = sizeof(cnr_space)};
    if (!s->kernel) {
        const cnr_op *op = s->view.desc;
        if (CNRI_HAS(op, reference_workspace))
            s->workspace_space.bytes = op->reference_workspace(&s->view);
        return CNR_OK;
    }
    if (CNRI_HAS(s->kernel, plan)) {
        cnr_status status;
        CNRI_DURING(status, s->kernel->plan(device, view, &s->workspace_space, &s->state, err),
                    .verb = "planning kernel", .descriptor = s->kernel, .name = s->kernel->name,
                    .node = s->view.name, .device = device->name);
        status = cnri_plugin_status(err, status, s->view.name, s->kernel->name);
        if (status) return status;
    }
    if (s->workspace_space.bytes > INT64_MAX / 4 || s->workspace_space.memory_class < 0 ||
        s->workspace_space.memory_class >= device->n_memory)
        return cnri_fail(err, CNR_E_LIMIT, cnri_node_name(p, s->node),
                         "kernel \"%s\" wants a workspace that cannot be had", s->kernel->name);
    return CNR_OK;
}

/* Computes the folded weights that a step reads unprepared, since kernels may look at them. Under a
 * bound a quarter of the room is spent on that, in *left: a weight for which it does not suffice is
 * noted in plan->unfolded instead. */
static cnr_status keep_folded(cnri_planner *p, const cnri_step *s, uint64_t *left, cnr_error *err) {
    cnr_plan *plan = p->plan;
    for (int32_t k = 0; k < s->n_in; k++) {
        const cnr_value v = s->in[k] < 0 ? -1 : plan->homes.at[s->in[k]].value;
        const cnri_value *value = v < 0 ? NULL : &plan->graph->values.at[v];
        if (!value || !value->late || cnri_step_prepares(s, k)) continue;
        if (!plan->memory_bound || value->type->bytes <= *left || value->late->from >= p->n_given) {
            *left -= cnr_min(*left, value->type->bytes);
            cnri_late_keep(plan->graph, v);
            continue;
        }
        cnr_value *slot = cnri_push(&plan->unfolded);
        if (!slot) return cnri_no_memory(err);
        *slot = value->late->from;
    }
    return CNR_OK;
}

/* Builds the nodes that kernels see, slices them under a memory bound, and lets kernels plan. */
cnr_status cnri_plan_views(cnri_planner *p, cnr_error *err) {
    cnr_plan *plan = p->plan;
    const uint64_t values = cnri_arena_guess(p->graph);
    const uint64_t room = plan->memory_bound > values ? plan->memory_bound - values : 0;
    const bool slices = plan->memory_bound && cnri_passing_share(p->graph, room / 16 * 15) > 0;
    const int32_t known = plan->unfolded.n;
    uint64_t left = room / 4;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL) continue;
        cnr_status status = view_step(p, s, err);
        if (!status) status = keep_folded(p, s, &left, err);
        if (!status && slices) cnri_slice_choose(plan, s, room / 16 * (uint64_t)p->slice_share);
        if (!status && plan->unfolded.n == known) status = plan_kernel(p, s, err);
        if (status) return status;
    }
    if (plan->unfolded.n == known) return CNR_OK;
    return cnri_fail(err, CNR_E_LIMIT, "plan", "folded weights do not fit the memory bound");
}

/* Puts a constant into device memory. A weight without data is skipped: such a plan can be shown
 * but not run. */
static cnr_status put_constant(cnr_plan *plan, const cnri_home *h, cnr_error *err) {
    const cnr_device *device = plan->devices[h->device];
    const cnr_tensor *data = plan->graph->values.at[h->value].type;
    const cnri_storage *storage = &plan->storages.at[h->storage];
    cnr_mem *mem = &plan->constants[h->storage];
    if (!data->data) return CNR_OK;
    if (!mem->handle) {
        mem->bytes = storage->bytes;
        mem->width = storage->width;
        mem->height = storage->height;
        mem->memory_class = storage->memory_class;
        const cnr_status status = cnri_device_alloc(device, mem, err);
        if (status) {
            mem->handle = NULL;
            return status;
        }
    }
    if (h->bytes == 0) return CNR_OK;
    return cnri_device_upload(device, mem, data->data, h->bytes, err);
}

/* Writes weights that kernels read on devices without host memory; `only` -1: all of them. */
cnr_status cnri_plan_constants(cnr_plan *plan, cnr_value only, cnr_error *err) {
    if (!plan->constants) {
        plan->constants = cnri_alloc_zero((size_t)(plan->storages.n + 1) * sizeof *plan->constants);
        if (!plan->constants) return cnri_no_memory(err);
    }
    for (int32_t i = 0; i < plan->homes.n; i++) {
        const cnri_home *h = &plan->homes.at[i];
        if (h->storage < 0 || !plan->storages.at[h->storage].constant) continue;
        if (only >= 0 && h->value != only) continue;
        const cnr_status status = put_constant(plan, h, err);
        if (status) return status;
    }
    return CNR_OK;
}

cnr_status cnri_plan_fetch(const cnr_plan *plan, cnr_value value, cnr_error *err) {
    for (int32_t i = 0; i < plan->homes.n; i++) {
        const cnri_home *h = &plan->homes.at[i];
        if (h->value != value || h->storage < 0 || !plan->storages.at[h->storage].constant)
            continue;
        /* all homes of the value hold the same data */
        return cnri_device_download(plan->devices[h->device], &plan->constants[h->storage],
                                    plan->graph->values.at[value].type->data, h->bytes, err);
    }
    return CNR_OK;
}
