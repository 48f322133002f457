/* Runs the steps of a plan: queues them on the streams of their devices, and waits where steps
 * share bytes. */
#include "run/session.h"

static bool is_async(const cnr_device *device) { return CNRI_HAS(device->cls, event_record); }

/* True if the run was cancelled by the session or its owner. */
static bool cancelled(const cnr_session *s) {
    return __atomic_load_n(&s->cancel, __ATOMIC_RELAXED) != 0 ||
           (s->outer_cancel && __atomic_load_n(s->outer_cancel, __ATOMIC_RELAXED) != 0);
}

/* Fills err: cancelled. */
static cnr_status say_cancelled(cnr_error *err) {
    return cnri_fail(err, CNR_E_CANCELLED, "session", "cancelled");
}

/* Waits until all work of a device is done; upto: the last step that was queued. */
static cnr_status sync_device(cnr_session *s, int32_t device, int32_t upto, cnr_error *err) {
    cnr_stream *stream = &s->streams[device];
    cnr_status status;
    s->pending[device] = false;
    CNRI_DURING(status, stream->device->cls->sync(stream, err), .verb = "waiting for its device",
                .descriptor = stream->device->cls, .device = stream->device->name);
    if (!status && upto > s->finished[device]) s->finished[device] = upto;
    return status;
}

/* Starts the queued work of a device, by its method flush, and marks it as not pending. */
static void flush(cnr_session *s, int32_t device) {
    cnr_stream *stream = &s->streams[device];
    if (s->pending[device] && CNRI_HAS(stream->device->cls, flush))
        stream->device->cls->flush(stream);
    s->pending[device] = false;
}

/* Starts queued work of all devices. */
static void flush_all(cnr_session *s) {
    for (int32_t i = 0; i < s->plan->n_devices; i++)
        if (s->pending[i]) flush(s, i);
}

/* Waits until step `other` of the device has run. A device without events can only be waited for
 * as a whole, up to step `upto`. */
static cnr_status await(cnr_session *s, int32_t device, int32_t other, int32_t upto,
                        cnr_error *err) {
    const cnr_device *d = s->streams[device].device;
    if (!s->calls[other].event || !CNRI_HAS(d->cls, event_sync))
        return sync_device(s, device, upto, err);
    flush(s, device);
    cnr_status status;
    CNRI_DURING(status, d->cls->event_sync(d, s->calls[other].event, err),
                .verb = "waiting for its device", .descriptor = d->cls,
                .node = s->plan->steps.at[other].view.name, .device = d->name);
    if (!status && other > s->finished[device]) s->finished[device] = other;
    return status;
}

/* ---- one step ---- */

/* Waits for the steps of other devices that a step depends on, by an event on the device itself
 * where it can. */
static cnr_status wait_for(cnr_session *s, int32_t index, cnr_error *err) {
    const cnri_step *step = &s->plan->steps.at[index];
    cnr_stream *stream = &s->streams[step->device];
    for (int32_t i = 0; i < step->n_waits; i++) {
        const int32_t other = step->waits[i], device = s->plan->steps.at[other].device;
        if (s->finished[device] >= other) continue;
        cnr_status status;
        if (is_async(stream->device) && stream->device->cls == s->streams[device].device->cls &&
            s->calls[other].event && CNRI_HAS(stream->device->cls, event_wait)) {
            flush(s, device);
            status = stream->device->cls->event_wait(stream, s->calls[other].event, err);
        } else {
            status = await(s, device, other, index - 1, err);
        }
        if (status) return status;
    }
    return CNR_OK;
}

/* Computes the output shapes that are known only at run time, from the inputs of this run. */
static cnr_status lower_shapes(cnri_call *call, cnr_error *err) {
    enum { MOST = 16 };
    cnr_tensor made[MOST], *own[MOST] = {0};
    const int32_t n = call->view.n_outputs;
    if (n > MOST)
        return cnri_fail(err, CNR_E_LIMIT, call->view.name,
                         "more than %d outputs of shapes known only when running", (int)MOST);
    memset(made, 0, sizeof made);
    for (int32_t k = 0; k < n; k++) {
        made[k].size = sizeof made[k];
        own[k] = &made[k];
    }
    cnr_status status = call->view.desc->infer(&call->view, own, err);
    for (int32_t k = 0; k < n; k++) {
        cnr_tensor *t = call->outputs[k];
        cnri_free(made[k].data);
        if (status || cnr_count(&made[k]) < 0) continue;
        if (made[k].rank != t->rank || cnr_dense_bytes(&made[k]) > t->bytes)
            status = cnri_fail(err, CNR_E_SHAPE, call->view.name,
                               "output %d came out larger than was planned for", (int)k);
        else memcpy(t->dim, made[k].dim, sizeof t->dim);
    }
    return status;
}

/* Under a memory bound piece by piece, where the step reads more weights than fit. */
static cnr_status call_kernel(cnr_session *s, const cnri_step *step, cnr_run *run, cnr_error *err) {
    if (!step->kernel) return run->node->desc->reference(run, err);
    if (!step->piece) return step->kernel->run(run, err);
    const int64_t rows = run->outputs[0]->dim[step->piece_axis];
    cnr_status status = CNR_OK;
    run->range_axis = step->piece_axis;
    for (int64_t at = 0; at < rows && !status; at = run->range_end) {
        run->range_begin = at;
        run->range_end = cnr_min(rows, at + step->piece);
        status = step->kernel->run(run, err);
        cnri_raw_release(s->plan, step, at, run->range_end);
    }
    return status;
}

/* Runs a step, or one slice of it, with its prepared weights, which are held meanwhile. */
static cnr_status run_slice(cnr_session *s, int32_t index, int32_t slice, cnr_run *run,
                            cnr_error *err) {
    const cnri_step *step = &s->plan->steps.at[index];
    const cnri_call *call = &s->calls[index];
    cnr_stream *stream = &s->streams[step->device];
    cnri_slice part;
    cnr_mem *blob = NULL;
    cnr_status status = cnri_residency_acquire(s->plan, index, slice, &blob, err);
    if (status) return status;
    run->blob = blob;
    if (blob && (stream->device->memory[blob->memory_class].flags & CNR_MEMORY_HOST))
        run->blob_data = (char *)blob->handle + blob->offset;
    if (step->slices && cnri_slice_make(s->plan, step, &call->view, slice, &part)) {
        run->node = &part.node;
        run->outputs = part.outputs;
    }
    status = call_kernel(s, step, run, err);
    if (s->plan->raw.n && !step->piece) cnri_raw_release(s->plan, step, 0, 0);
    if (!blob) return status;
    /* one that does not stay may go at once: its user must be done */
    if (is_async(stream->device) && !cnri_residency_stays(s->plan, index)) {
        const cnr_status synced = sync_device(s, step->device, index, status ? NULL : err);
        if (!status) status = synced;
    }
    cnri_residency_release(s->plan, index, slice);
    return status;
}

/* Runs the step's kernel (or reference) on its device's stream; lowers dynamic shapes first. */
static cnr_status run_kernel(cnr_session *s, int32_t index, cnr_error *err) {
    const cnri_step *step = &s->plan->steps.at[index];
    cnri_call *call = &s->calls[index];
    cnr_stream *stream = &s->streams[step->device];
    cnr_status status = call->dynamic ? lower_shapes(call, err) : CNR_OK;
    if (status) return status;
    cnr_run run = {.size = sizeof run,
                   .range_axis = step->range_axis,
                   .node = &call->view,
                   .range_begin = step->range_begin,
                   .range_end = step->range_end,
                   .outputs = call->outputs,
                   .state = step->state,
                   .stream = stream};
    const cnr_memory_class *memory = stream->device->memory;
    if (call->has_workspace) {
        run.workspace = &call->workspace;
        if (memory[call->workspace.memory_class].flags & CNR_MEMORY_HOST)
            run.workspace_data = (char *)call->workspace.handle + call->workspace.offset;
    }
    cnri_activity activity = {.verb = step->kernel ? "running kernel" : "running the reference of",
                              .descriptor = step->kernel ? (const void *)step->kernel
                                                         : (const void *)call->view.desc,
                              .name = step->kernel ? step->kernel->name : call->view.desc->name,
                              .node = call->view.name,
                              .device = stream->device->name};
    cnri_activity_begin(&activity);
    for (int32_t i = 0; i < cnr_max(1, step->slices) && !status; i++)
        status = run_slice(s, index, i, &run, err);
    cnri_activity_end(&activity);
    return status;
}

/* Calls the tap with each output of a kernel's step, copied to plain host memory. */
static cnr_status tap_step(cnr_session *s, int32_t index, cnr_error *err) {
    const cnri_step *step = &s->plan->steps.at[index];
    const cnri_call *call = &s->calls[index];
    if (step->kind != CNRI_STEP_KERNEL) return CNR_OK;
    for (int32_t i = 0; i < step->n_out; i++) {
        cnr_tensor value = s->flats[step->out[i]];
        memcpy(value.dim, call->outputs[i]->dim, sizeof value.dim);
        void *copy = cnri_alloc((size_t)s->plan->homes.at[step->out[i]].bytes + 1);
        if (!copy) return cnri_out_of_memory(err, "session");
        const cnr_status status = cnri_download(s, step->out[i], copy, err);
        value.data = copy;
        value.mem = (cnr_mem){0};
        value.bytes = cnr_dense_bytes(&value);
        const cnri_value *of = &s->plan->graph->values.at[s->plan->homes.at[step->out[i]].value];
        const char *name =
            of->producer < 0 ? call->view.name : s->plan->graph->nodes.at[of->producer]->name;
        if (!status) s->tap(s->tap_arg, name, of->producer < 0 ? i : of->output, &value);
        cnri_free(copy);
        if (status) return status;
    }
    return CNR_OK;
}

/* Completes the error of a plugin that failed without a text or without a place. */
static void explain(const cnr_session *s, int32_t index, cnr_status status, cnr_error *err) {
    const cnri_step *step = &s->plan->steps.at[index];
    const char *name = step->kind == CNRI_STEP_KERNEL && step->view.name ? step->view.name : "";
    if (!err) return;
    cnri_plugin_status(err, status, name, step->kernel ? step->kernel->name : "the reference");
    if (!err->where[0]) snprintf(err->where, sizeof err->where, "%s", name);
}

/* Two events around a step, on a device that can report the time between them. */
typedef struct span {
    void *from, *to;
} span;

/* Records an event on a stream, if steps are timed. */
static cnr_status mark(const cnr_session *s, cnr_stream *stream, void **to, cnr_error *err) {
    if (!s->timed || !CNRI_HAS(stream->device->cls, event_elapsed)) return CNR_OK;
    return stream->device->cls->event_record(stream, to, err);
}

/* Counters of a step as text. */
typedef struct counters {
    char text[256];
    size_t n;
} counters;

/* Appends a counter, as text or number, if it fits. */
static void add_counter(void *arg, const char *name, const char *text, double value) {
    counters *c = arg;
    const size_t left = sizeof c->text - c->n;
    const int n = text ? snprintf(c->text + c->n, left, "%s%s=%s", c->n ? " " : "", name, text)
                       : snprintf(c->text + c->n, left, "%s%s=%.10g", c->n ? " " : "", name, value);
    if (n > 0 && (size_t)n < left) c->n += (size_t)n;
    else c->text[c->n] = 0; /* a counter that does not fit is left out whole */
}

/* Reads the time between a step's two events in ns (0: not known) and its counters. */
static uint64_t measure(const cnr_stream *stream, const span *t, counters *told) {
    const cnr_device *device = stream->device;
    const bool both = t->from && t->to;
    const int64_t ns = both ? device->cls->event_elapsed(device, t->from, t->to) : 0;
    if (both && CNRI_HAS(device->cls, counters))
        device->cls->counters(device, t->from, t->to, add_counter, told, NULL);
    if (t->from) device->cls->event_free(device, t->from);
    if (t->to) device->cls->event_free(device, t->to);
    return ns > 0 ? (uint64_t)ns : 0;
}

/* Runs or queues one step: waits for others, tells listeners, computes or moves. Clears err. */
static cnr_status run_step(cnr_session *s, int32_t index, cnr_error *err) {
    const cnri_step *step = &s->plan->steps.at[index];
    cnr_stream *stream = &s->streams[step->device];
    if (err) err->code = err->where[0] = err->text[0] = 0;
    cnr_status status = wait_for(s, index, err);
    if (status) return status;
    /* Other devices start their queued work while this one computes. */
    if (!is_async(stream->device)) flush_all(s);
    cnri_session_notify(s, CNRI_EVENT_STEP_BEGIN, index, 0, NULL);
    span span = {0};
    status = mark(s, stream, &span.from, err);
    if (!status && step->kind == CNRI_STEP_KERNEL) status = run_kernel(s, index, err);
    else if (!status)
        CNRI_DURING(status, cnri_transfer(s, step, err), .verb = "copying a value",
                    .descriptor = stream->device->cls, .device = stream->device->name);
    if (!status) status = mark(s, stream, &span.to, err);
    if (is_async(stream->device)) s->pending[step->device] = true;
    cnri_call *call = &s->calls[index];
    if (!status && step->marks && is_async(stream->device)) {
        if (call->event) stream->device->cls->event_free(stream->device, call->event);
        call->event = NULL;
        status = stream->device->cls->event_record(stream, &call->event, err);
    }
    if (!status && (s->sync || s->tap) && is_async(stream->device))
        status = sync_device(s, step->device, index, err);
    counters told = {{0}, 0};
    const uint64_t took_ns = measure(stream, &span, &told);
    cnri_session_notify(s, CNRI_EVENT_STEP_END, index, took_ns, told.n ? told.text : NULL);
    if (!status && s->tap) status = tap_step(s, index, err);
    if (status) explain(s, index, status, err);
    return status;
}

/* ---- a whole run ---- */

/* Copies the inputs that were set to their homes; bound ones need none. CNR_E_STATE: one wasn't. */
static cnr_status put_inputs(cnr_session *s, cnr_error *err) {
    const cnr_plan *plan = s->plan;
    for (int32_t i = 0; i < plan->graph->inputs.n; i++) {
        const int32_t home = plan->input_homes[i];
        if (home < 0) continue;
        if (s->given[i] == CNRI_BOUND) continue;
        if (!s->given[i])
            return cnri_fail(err, CNR_E_STATE,
                             plan->graph->values.at[plan->graph->inputs.at[i]].name,
                             "input %d was not set before the run", (int)i);
        const cnri_home *h = &plan->homes.at[home];
        cnr_stream *stream = &s->streams[h->device];
        cnr_status status = CNR_OK;
        if (s->tensors[home].data) memcpy(s->tensors[home].data, s->inputs[i], h->bytes);
        else if (h->bytes) {
            status = stream->device->cls->write(stream, &s->tensors[home].mem, 0, s->inputs[i],
                                                h->bytes, err);
            s->pending[h->device] = true;
        }
        if (status) return status;
    }
    return CNR_OK;
}

/* Prepares a session for a run: dynamic sizes at their maximum, no device finished or pending. */
static void reset(cnr_session *s) {
    const cnr_plan *plan = s->plan;
    for (int32_t i = 0; i < plan->homes.n; i++)
        if (plan->homes.at[i].type.flags & CNR_TENSOR_DYNAMIC)
            memcpy(s->tensors[i].dim, plan->homes.at[i].type.dim, sizeof s->tensors[i].dim);
    for (int32_t i = 0; i < plan->n_devices; i++) {
        s->finished[i] = -1;
        s->pending[i] = false;
    }
    s->done = false;
}

static void settle(cnr_session *s) { /* waits after an error, so that no work is under way */
    for (int32_t i = 0; i < s->plan->n_devices; i++)
        s->streams[i].device->cls->sync(&s->streams[i], NULL);
    s->running = false;
}

/* Starts a run: puts inputs and queues or runs all steps; fails if one is under way or it is
 * cancelled meanwhile. */
static cnr_status start(cnr_session *s, cnr_error *err) {
    if (s->running)
        return cnri_fail(err, CNR_E_STATE, "session", "a run is under way: wait for it first");
    cnr_status status = s->model ? cnri_check_process(s->model->rt, err) : CNR_OK;
    if (status) return status;
    s->running = true;
    s->began_ns = cnri_real_ns();
    reset(s);
    cnri_floats floats;
    cnri_floats_enter(&floats);
    cnri_session_notify(s, CNRI_EVENT_RUN_BEGIN, -1, 0, NULL);
    status = put_inputs(s, err);
    for (int32_t i = 0; i < s->plan->steps.n && !status; i++)
        status = cancelled(s) ? say_cancelled(err) : run_step(s, i, err);
    flush_all(s);
    if (status) settle(s);
    cnri_floats_leave(&floats);
    if (status && status != CNR_E_CANCELLED && cancelled(s)) status = say_cancelled(err);
    return status;
}

/* Runs the steps; if that fails, on a fallback device. A cancel counts through all attempts. */
static cnr_status start_somewhere(cnr_session *s, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    const cnr_status status = cnri_session_call(s, start, &why);
    if (!status) return CNR_OK;
    if (cnri_session_move_to_fallback(s, status, &why))
        return cancelled(s) ? say_cancelled(err) : start_somewhere(s, err);
    return cnri_fail(err, status, why.where, "%s", why.text);
}

cnr_status cnr_session_start(cnr_session *s, cnr_error *err) {
    const cnr_status status = cnri_require_arguments(err, "session", s, NULL);
    if (status) return status;
    if (!s->running) __atomic_store_n(&s->cancel, 0, __ATOMIC_RELAXED);
    return start_somewhere(s, err);
}

/* Waits for all devices and ends the run: CNR_E_STATE if there is none, else the first failure or
 * cancellation. */
static cnr_status wait_for_run(cnr_session *s, cnr_error *err) {
    cnr_status status = CNR_OK;
    if (!s->running)
        return cnri_fail(err, CNR_E_STATE, "session", "no run is under way: start one first");
    for (int32_t i = 0; i < s->plan->n_devices; i++) {
        const cnr_status one = sync_device(s, i, s->plan->steps.n, status ? NULL : err);
        if (!status) status = one;
    }
    cnri_session_notify(s, CNRI_EVENT_RUN_END, -1, 0, NULL);
    s->running = false;
    if (cancelled(s)) return say_cancelled(err);
    s->done = status == CNR_OK;
    if (s->done) s->last_run_ns = cnri_real_ns() - s->began_ns;
    return status;
}

cnr_status cnr_session_wait(cnr_session *s, cnr_error *err) {
    cnr_error why = CNR_ERROR_INIT;
    cnr_status status = cnri_require_arguments(err, "session", s, NULL);
    if (status) return status;
    status = cnri_session_call(s, wait_for_run, &why);
    if (!status) return CNR_OK;
    if (cnri_session_move_to_fallback(s, status, &why)) {
        status = cancelled(s) ? say_cancelled(err) : start_somewhere(s, err);
        return status ? status : cnr_session_wait(s, err);
    }
    return cnri_fail(err, status, why.where, "%s", why.text);
}

cnr_status cnri_session_repeat(cnr_session *s, int32_t step, int64_t rounds, cnr_error *err) {
    cnri_floats floats;
    cnr_status status = CNR_OK;
    if (!s->done || s->running)
        return cnri_fail(err, CNR_E_STATE, "session", "only what has run can be repeated");
    s->running = true;
    cnri_floats_enter(&floats);
    for (int64_t i = 0; i < rounds && !status; i++)
        status = cancelled(s) ? say_cancelled(err) : run_step(s, step, err);
    flush_all(s);
    if (status) settle(s);
    else status = sync_device(s, s->plan->steps.at[step].device, s->plan->steps.n, err);
    cnri_floats_leave(&floats);
    s->running = false;
    return status;
}

cnr_status cnr_session_run(cnr_session *s, cnr_error *err) {
    const cnr_status status = cnr_session_start(s, err);
    return status ? status : cnr_session_wait(s, err);
}

/* ---- what it gave ---- */

/* Copies the wanted output to the caller's memory. */
static cnr_status download(cnr_session *s, cnr_error *err) {
    return cnri_download(s, s->plan->output_homes[s->wanted], s->output_data[s->wanted], err);
}

cnr_status cnr_session_output(cnr_session *s, int32_t index, const cnr_tensor **out,
                              cnr_error *err) {
    if (out) *out = NULL;
    cnr_status status = cnri_require_arguments(err, "session", s, "out", out, NULL);
    if (status) return status;
    const cnr_graph *g = s->plan->graph;
    if (index < 0 || index >= g->outputs.n)
        return cnri_fail(err, CNR_E_ARG, "session", "output %d: want 0 to %d", (int)index,
                         (int)g->outputs.n - 1);
    if (!s->done || s->running)
        return cnri_fail(err, CNR_E_STATE, "session", "outputs are there when a run has succeeded");
    const int32_t home = s->plan->output_homes[index];
    cnr_tensor *t = &s->outputs[index];
    if (home >= 0) {
        memcpy(t->dim, s->tensors[home].dim, sizeof t->dim);
        t->bytes = cnr_dense_bytes(t);
    }
    *out = t;
    if (!s->output_data[index]) return CNR_OK;
    cnr_error why = CNR_ERROR_INIT;
    s->wanted = index;
    status = cnri_session_call(s, download, &why);
    if (!status) return CNR_OK;
    /* another's data would go with the device's memory */
    if (g->outputs.n == 1 && cnri_session_move_to_fallback(s, status, &why) &&
        !cnr_session_run(s, &why))
        return cnr_session_output(s, index, out, err);
    return cnri_fail(err, status, why.where, "%s", why.text);
}
