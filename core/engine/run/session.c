/* Sessions: the memory to run a plan in, its inputs and its outputs. */
#include "run/session.h"
#include <pthread.h>

/* True if that memory class of the device is host memory. */
static bool host_class(const cnr_device *device, int32_t memory_class) {
    return (device->memory[memory_class].flags & CNR_MEMORY_HOST) != 0;
}

/* ---- opening ---- */

/* Opens a stream on each device; s->opened: how many are open. */
static cnr_status open_streams(cnr_session *s, cnr_error *err) {
    const cnr_plan *plan = s->plan;
    for (int32_t i = 0; i < plan->n_devices; i++) {
        cnr_stream *stream = &s->streams[i];
        *stream =
            (cnr_stream){.size = sizeof *stream, .device = plan->devices[i], .cancel = &s->cancel};
        const cnr_status status = plan->devices[i]->cls->stream_open(plan->devices[i], stream, err);
        if (status) return status;
        s->opened = i + 1;
    }
    return CNR_OK;
}

/* Allocates the session's memory; storages of constants belong to the plan. */
static cnr_status allocate(cnr_session *s, cnr_error *err) {
    const cnr_plan *plan = s->plan;
    for (int32_t i = 0; i < plan->storages.n; i++) {
        const cnri_storage *at = &plan->storages.at[i];
        cnr_mem *mem = &s->mems[i];
        if (at->constant) {
            *mem = plan->constants[i];
            if (!mem->handle)
                return cnri_fail(err, CNR_E_STATE, "session",
                                 "a weight has no data yet: want the net's weights filled");
            continue;
        }
        mem->bytes = at->bytes ? at->bytes : 1;
        mem->memory_class = at->memory_class;
        mem->width = at->width;
        mem->height = at->height;
        const cnr_device *device = plan->devices[at->device];
        const cnr_status status = cnri_device_alloc(device, mem, err);
        if (status) {
            mem->handle = NULL;
            return status;
        }
    }
    return CNR_OK;
}

/* *out: a part of `whole`, which is a storage or stands for one; *viewed when it is to be given
 * back. */
static cnr_status part(cnr_session *s, int32_t storage, const cnr_mem *whole, uint64_t offset,
                       uint64_t bytes, cnr_mem *out, bool *viewed, cnr_error *err) {
    const cnri_storage *at = &s->plan->storages.at[storage];
    const cnr_device *device = s->plan->devices[at->device];
    const cnr_memory_class *m = &device->memory[at->memory_class];
    *out = *whole;
    if (at->constant || bytes == 0 || !(m->flags & CNR_MEMORY_PARTS)) return CNR_OK;
    if (CNRI_HAS(device->cls, view)) {
        const cnr_status status = device->cls->view(device, whole, offset, bytes, out, err);
        *viewed = status == CNR_OK;
        return status;
    }
    out->offset += offset;
    out->bytes = bytes;
    return CNR_OK;
}

cnr_status cnri_session_place(cnr_session *s, int32_t home, const cnr_mem *whole, uint64_t offset,
                              cnr_error *err) {
    const cnri_home *h = &s->plan->homes.at[home];
    const cnr_device *device = s->plan->devices[h->device];
    cnr_tensor *t = &s->tensors[home];
    if (s->viewed[home] && CNRI_HAS(device->cls, unview)) device->cls->unview(device, &t->mem);
    s->viewed[home] = false;
    *t = h->type;
    if (h->storage >= 0) {
        CNR_TRY(part(s, h->storage, whole ? whole : &s->mems[h->storage], offset, h->bytes, &t->mem,
                     &s->viewed[home], err));
        t->data = NULL;
        if (host_class(device, h->memory_class)) t->data = (char *)t->mem.handle + t->mem.offset;
    }
    s->flats[home] = *t;
    s->flats[home].block = 0;
    return CNR_OK;
}

/* Sets the addresses of all homes in the arena, by the plan's offsets. */
static cnr_status place_homes(cnr_session *s, cnr_error *err) {
    for (int32_t i = 0; i < s->plan->homes.n; i++)
        CNR_TRY(cnri_session_place(s, i, NULL, s->plan->homes.at[i].offset, err));
    return CNR_OK;
}

/* Fills the call of a step. Weights are seen through the graph's tensors, as in the plan; all
 * other values through this session's tensors. */
static cnr_status make_call(cnr_session *s, int32_t index, cnr_error *err) {
    const cnr_plan *plan = s->plan;
    const cnri_step *step = &plan->steps.at[index];
    cnri_call *call = &s->calls[index];
    if (step->kind != CNRI_STEP_KERNEL) return CNR_OK;
    const size_t n = (size_t)step->n_in + (size_t)step->n_out + 1;
    void **pointers = cnri_alloc(n * sizeof *pointers);
    if (!pointers) return cnri_out_of_memory(err, "session");
    call->inputs = (const cnr_tensor **)pointers;
    call->outputs = (cnr_tensor **)(pointers + step->n_in);
    cnr_tensor *own = step->passes ? s->flats : s->tensors;
    for (int32_t i = 0; i < step->n_in; i++) {
        const int32_t home = step->in[i];
        const bool ours = home >= 0 && plan->homes.at[home].storage >= 0;
        call->inputs[i] = ours ? &own[home] : step->view.inputs[i];
        if (ours && (own[home].flags & CNR_TENSOR_DYNAMIC)) call->dynamic = true;
    }
    for (int32_t i = 0; i < step->n_out; i++) {
        const cnri_home *h = &plan->homes.at[step->out[i]];
        /* An update of a variable. */
        call->outputs[i] =
            h->storage < 0 ? plan->graph->values.at[h->value].type : &own[step->out[i]];
    }
    call->view = step->view;
    call->view.inputs = call->inputs;
    call->view.outputs = (const cnr_tensor *const *)call->outputs;
    if (step->workspace < 0) return CNR_OK;
    call->has_workspace = true;
    return part(s, step->workspace, &s->mems[step->workspace], step->workspace_offset,
                step->workspace_space.bytes, &call->workspace, &call->viewed, err);
}

/* Allocates zeroed host memory for an input or output, kept in s->ends: from the device if it
 * offers such memory, else from the heap. NULL: out of memory. */
static void *make_end(cnr_session *s, const cnri_home *home, uint64_t bytes) {
    const cnr_device *device = s->plan->devices[home->device];
    cnri_end *end = &s->ends[s->n_ends++];
    if (bytes && !host_class(device, home->memory_class) && CNRI_HAS(device->cls, host_alloc))
        end->memory = device->cls->host_alloc(device, bytes);
    if (!end->memory) return end->memory = cnri_alloc_zero((size_t)bytes + 1);
    end->device = device;
    return memset(end->memory, 0, (size_t)bytes);
}

/* Makes the buffers of inputs and outputs that are not used in place, and all outputs' tensors. */
static cnr_status make_ends(cnr_session *s, cnr_error *err) {
    const cnr_graph *g = s->plan->graph;
    for (int32_t i = 0; i < g->inputs.n; i++) {
        const uint64_t bytes = cnr_dense_bytes(g->values.at[g->inputs.at[i]].type);
        const int32_t home = s->plan->input_homes[i];
        if (home < 0) continue;
        if (!(s->inputs[i] = make_end(s, &s->plan->homes.at[home], bytes)))
            return cnri_out_of_memory(err, "session");
    }
    for (int32_t i = 0; i < g->outputs.n; i++) {
        const int32_t home = s->plan->output_homes[i];
        cnr_tensor *out = &s->outputs[i];
        *out = *g->values.at[g->outputs.at[i]].type;
        out->bytes = cnr_dense_bytes(out);
        if (home < 0) continue; /* the output is a constant */
        const cnri_home *h = &s->plan->homes.at[home];
        if (host_class(s->plan->devices[h->device], h->memory_class)) {
            out->data = s->tensors[home].data;
            continue;
        }
        if (!(s->output_data[i] = make_end(s, h, h->bytes)))
            return cnri_out_of_memory(err, "session");
        out->data = s->output_data[i];
    }
    const uint64_t staging = cnri_staging_bytes(s->plan);
    for (int32_t i = 0; staging && i < 2; i++)
        if (!(s->staging[i] = cnri_alloc((size_t)staging)))
            return cnri_out_of_memory(err, "session");
    return CNR_OK;
}

/* Allocates the session's lists. False: out of memory. */
static bool make_lists(cnr_session *s) {
    const cnr_plan *p = s->plan;
    const size_t devices = (size_t)p->n_devices + 1, homes = (size_t)p->homes.n + 1;
    s->streams = cnri_alloc_zero(devices * sizeof *s->streams);
    s->finished = cnri_alloc_zero(devices * sizeof *s->finished);
    s->pending = cnri_alloc_zero(devices * sizeof *s->pending);
    s->mems = cnri_alloc_zero(((size_t)p->storages.n + 1) * sizeof *s->mems);
    s->tensors = cnri_alloc_zero(homes * sizeof *s->tensors);
    s->flats = cnri_alloc_zero(homes * sizeof *s->flats);
    s->viewed = cnri_alloc_zero(homes * sizeof *s->viewed);
    s->calls = cnri_alloc_zero(((size_t)p->steps.n + 1) * sizeof *s->calls);
    s->inputs = cnri_alloc_zero(((size_t)p->graph->inputs.n + 1) * sizeof *s->inputs);
    s->given = cnri_alloc_zero(((size_t)p->graph->inputs.n + 1) * sizeof *s->given);
    s->bound = cnri_alloc_zero(homes * sizeof *s->bound);
    s->outputs = cnri_alloc_zero(((size_t)p->graph->outputs.n + 1) * sizeof *s->outputs);
    s->output_data = cnri_alloc_zero(((size_t)p->graph->outputs.n + 1) * sizeof *s->output_data);
    s->ends = cnri_alloc_zero(((size_t)p->graph->inputs.n + (size_t)p->graph->outputs.n + 1) *
                              sizeof *s->ends);
    return s->streams && s->finished && s->pending && s->mems && s->tensors && s->flats &&
           s->viewed && s->calls && s->inputs && s->given && s->bound && s->outputs &&
           s->output_data && s->ends;
}

static uint64_t sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

/* Checks memory limits before anything is allocated: the arena in host memory, inputs and
 * outputs, and the batch that the caller puts together. Other devices check their own memory. */
static cnr_status afford(const cnr_plan *plan, cnr_error *err) {
    const cnr_graph *g = plan->graph;
    const uint64_t staging = cnri_staging_bytes(plan);
    uint64_t bytes = sum(staging, staging);
    for (int32_t i = 0; i < plan->storages.n; i++) {
        const cnri_storage *at = &plan->storages.at[i];
        if (!at->constant && host_class(plan->devices[at->device], at->memory_class))
            bytes = sum(bytes, at->bytes);
    }
    for (int32_t i = 0; i < g->inputs.n; i++) {
        const uint64_t one = cnr_dense_bytes(g->values.at[g->inputs.at[i]].type);
        if (plan->input_homes[i] >= 0) bytes = sum(bytes, sum(one, one));
    }
    for (int32_t i = 0; i < g->outputs.n; i++) {
        const int32_t home = plan->output_homes[i];
        const cnri_home *h = home < 0 ? NULL : &plan->homes.at[home];
        if (h && !host_class(plan->devices[h->device], h->memory_class))
            bytes = sum(bytes, h->bytes);
    }
    return cnri_memory_fits(bytes, plan->memory_limit, g->name && *g->name ? g->name : "session",
                            "activations, inputs and outputs", err);
}

/* Opens what the session needs. After an error the caller frees the half-open session. */
static cnr_status fill(cnr_session *s, cnr_error *err) {
    cnr_status status = make_lists(s) ? CNR_OK : cnri_out_of_memory(err, "session");
    if (!status) status = open_streams(s, err);
    if (!status) status = allocate(s, err);
    if (!status) status = place_homes(s, err);
    for (int32_t i = 0; i < s->plan->steps.n && !status; i++) status = make_call(s, i, err);
    if (!status) status = make_ends(s, err);
    return status ? status : cnri_residency_warm(s->plan, err);
}

/* Waits for and closes streams, and frees all that needs calls of devices; returns CNR_OK. */
static cnr_status release_devices(cnr_session *s, cnr_error *err) {
    const cnr_plan *p = s->plan;
    (void)err;
    for (int32_t i = 0; i < s->opened; i++) s->streams[i].device->cls->sync(&s->streams[i], NULL);
    for (int32_t i = 0; s->calls && i < p->steps.n; i++) {
        const cnri_call *call = &s->calls[i];
        const cnr_device *device = p->devices[p->steps.at[i].device];
        if (call->event) device->cls->event_free(device, call->event);
        if (call->viewed && CNRI_HAS(device->cls, unview))
            device->cls->unview(device, &s->calls[i].workspace);
    }
    for (int32_t i = 0; s->viewed && i < p->homes.n; i++) {
        const cnr_device *device = p->devices[p->homes.at[i].device];
        if (s->viewed[i] && CNRI_HAS(device->cls, unview))
            device->cls->unview(device, &s->tensors[i].mem);
    }
    for (int32_t i = 0; s->mems && i < p->storages.n; i++) {
        const cnr_device *device = p->devices[p->storages.at[i].device];
        if (!p->storages.at[i].constant && s->mems[i].handle)
            device->cls->free(device, &s->mems[i]);
    }
    for (int32_t i = 0; i < s->n_ends; i++)
        if (s->ends[i].device)
            s->ends[i].device->cls->host_free(s->ends[i].device, s->ends[i].memory);
    for (int32_t i = 0; i < s->opened; i++) s->streams[i].device->cls->stream_close(&s->streams[i]);
    return CNR_OK;
}

/* Frees the session. False: it is lost, and stays in memory with its plan, because a call that
 * never returns may use it. */
static bool release(cnr_session *s) {
    const cnr_plan *p = s->plan;
    const bool was_lost = s->lost;
    cnr_error why = CNR_ERROR_INIT;
    cnri_session_call(s, release_devices, &why);
    if (s->lost && !was_lost) cnri_log(CNR_LOG_WARN, why.where, "%s", why.text);
    if (s->lost) return false;
    cnri_worker_free(s->worker);
    for (int32_t i = 0; s->calls && i < p->steps.n; i++) cnri_free(s->calls[i].inputs);
    for (int32_t i = 0; i < s->n_ends; i++)
        if (!s->ends[i].device) cnri_free(s->ends[i].memory);
    void *lists[] = {s->streams, s->finished,   s->pending,    s->mems,  s->tensors, s->flats,
                     s->viewed,  s->calls,      s->inputs,     s->given, s->outputs, s->output_data,
                     s->ends,    s->staging[0], s->staging[1], s->bound};
    for (size_t i = 0; i < CNRI_COUNT(lists); i++) cnri_free(lists[i]);
    cnri_vec_free(&s->listeners);
    cnri_free(s);
    return true;
}

/* Opens a session of the plan in *out, or fails: no other device is tried. */
cnr_status cnri_session_open(cnr_plan *plan, cnr_session **out, cnr_error *err) {
    cnr_model *model = cnri_plan_model(plan);
    cnr_status status = model ? cnri_check_process(model->rt, err) : CNR_OK;
    if (!status) status = afford(plan, err);
    if (status) return status;
    const int64_t before = cnri_alloc_failures();
    cnr_session *s = cnri_alloc_zero(sizeof *s);
    if (!s) return cnri_out_of_memory(err, "session");
    s->plan = plan;
    s->model = model;
    status =
        cnri_plan_verify_weights(plan, false, model ? model->rt->devices.options.threads : 0, err);
    if (!status) status = cnri_session_call(s, fill, err);
    status = cnri_alloc_verdict(before, status, "session", err);
    if (!status && model) {
        pthread_mutex_lock(model->rt->lock);
        cnr_session **slot = cnri_push(&model->sessions);
        if (slot) {
            *slot = s;
            cnri_plan_retain(plan);
        } else {
            status = cnri_out_of_memory(err, "session");
        }
        pthread_mutex_unlock(model->rt->lock);
    }
    if (status) release(s);
    else *out = s;
    return status;
}

void cnr_session_close(cnr_session *s) {
    if (!s) return;
    cnr_model *model = s->model;
    cnr_plan *plan = s->plan;
    if (model) {
        pthread_mutex_lock(model->rt->lock);
        for (int32_t i = 0; i < model->sessions.n; i++)
            if (model->sessions.at[i] == s)
                model->sessions.at[i] = model->sessions.at[--model->sessions.n];
        if (model->session == s) model->session = NULL;
        pthread_mutex_unlock(model->rt->lock);
    }
    if (release(s) && model) cnr_plan_release(plan);
}

/* ---- inputs ---- */

/* Prints a type as "f32 [1,3]", cut to `capacity` bytes. */
static void type_text(const cnr_tensor *t, char *text, size_t capacity) {
    size_t at = (size_t)snprintf(text, capacity, "%s [", cnr_dtype_name(t->dtype));
    for (int32_t i = 0; i < t->rank && at < capacity; i++)
        at += (size_t)snprintf(text + at, capacity - at, "%s%lld", i ? "," : "",
                               (long long)t->dim[i]);
    if (at < capacity) snprintf(text + at, capacity - at, "]");
}

/* What an input or output must be: of the type of `v`, plain, with data if it is on the host. */
static cnr_status check_end(const cnri_value *v, const cnr_tensor *value, const char *what,
                            cnr_error *err) {
    const char *fault = cnri_tensor_fault(value);
    if (fault) return cnri_fail(err, CNR_E_ARG, v->name, "%s: %s", what, fault);
    if (value->dtype == v->type->dtype && cnr_same_shape(value, v->type) && !value->encoding &&
        value->block <= 1)
        return CNR_OK;
    char want[160], got[160];
    type_text(v->type, want, sizeof want);
    type_text(value, got, sizeof got);
    return cnri_fail(err, CNR_E_SHAPE, v->name, "%s: want %s, plain; got %s", what, want, got);
}

/* *out: the input or (is_output) output of that index; fails if there is none, or value (may be
 * NULL) isn't of its type. */
cnr_status cnri_session_end(const cnr_session *s, bool is_output, int32_t index,
                            const cnr_tensor *value, const cnri_value **out, cnr_error *err) {
    const cnr_graph *g = s->plan->graph;
    const char *what = is_output ? "output" : "input";
    const int32_t n = is_output ? g->outputs.n : g->inputs.n;
    if (index < 0 || index >= n)
        return cnri_fail(err, CNR_E_ARG, "session", "%s %d: want 0 to %d", what, (int)index,
                         (int)n - 1);
    *out = &g->values.at[is_output ? g->outputs.at[index] : g->inputs.at[index]];
    return value ? check_end(*out, value, what, err) : CNR_OK;
}

/* Copies data from the host into input `index`; fails for another type or shape than the plan's. */
cnr_status cnr_session_set_input(cnr_session *s, int32_t index, const cnr_tensor *value,
                                 cnr_error *err) {
    const cnri_value *v;
    CNR_TRY(cnri_require_arguments(err, "session", s, "value", value, NULL));
    CNR_TRY(cnri_session_end(s, false, index, value, &v, err));
    if (!value->data && cnr_count(value) > 0)
        return cnri_fail(err, CNR_E_ARG, v->name, "input has no data on the host");
    CNR_TRY(cnri_tensor_check(value, v->name, err));
    if (v->type->data && value->data &&
        memcmp(v->type->data, value->data, (size_t)v->type->bytes) != 0)
        return cnri_fail(err, CNR_E_STATE, v->name,
                         "input: its data decides shapes, and this plan is for "
                         "other data: want a plan made by cnr_plan_for with this data");
    if (s->given[index] == CNRI_BOUND)
        return cnri_fail(err, CNR_E_STATE, v->name, "input is bound to the caller's own memory");
    s->given[index] = CNRI_GIVEN;
    if (s->inputs[index] && value->data && value->data != s->inputs[index])
        memcpy(s->inputs[index], value->data, (size_t)cnr_dense_bytes(value));
    return CNR_OK;
}

void *cnri_session_input_buffer(const cnr_session *s, int32_t index) { return s->inputs[index]; }

cnr_plan *cnri_session_plan(const cnr_session *s) { return s->plan; }

/* ---- what watches ---- */

void cnr_session_tap(cnr_session *s, cnr_tap_fn fn, void *arg) {
    if (!s) return;
    s->tap = fn;
    s->tap_arg = arg;
}

void cnr_session_cancel(cnr_session *s) {
    if (s) __atomic_store_n(&s->cancel, 1, __ATOMIC_RELAXED);
}

void cnri_session_cancel_by(cnr_session *s, const volatile int32_t *flag) {
    if (s->lost) return;
    s->outer_cancel = flag;
    for (int32_t i = 0; i < s->opened; i++) s->streams[i].cancel = flag ? flag : &s->cancel;
}
