/* Listeners of a session: added, called, removed. Steps are timed only while one wants it. */
#include "run/session.h"
#include <string.h>

/* ---- timing ---- */

/* Frees the events of a device's steps. */
static void free_marks(const cnr_session *s, int32_t device) {
    for (int32_t i = 0; i < s->plan->steps.n; i++) {
        cnri_call *call = &s->calls[i];
        if (s->plan->steps.at[i].device != device || !call->event) continue;
        s->streams[device].device->cls->event_free(s->streams[device].device, call->event);
        call->event = NULL;
    }
}

/* Opens the stream again with or without timing, because queues that can be timed are slower.
 * The new stream exists before the old one is closed. */
static cnr_status reopen(cnr_session *s, int32_t device, bool timed, cnr_error *err) {
    cnr_stream *old = &s->streams[device];
    const cnr_device_class *cls = old->device->cls;
    cnr_stream fresh = {.size = sizeof fresh,
                        .device = old->device,
                        .cancel = s->outer_cancel ? s->outer_cancel : &s->cancel,
                        .flags = timed ? CNR_STREAM_TIMED : 0};
    cnr_status status = cnri_plugin_status(err, cls->sync(old, err), old->device->name, "waiting");
    if (!status)
        status = cnri_plugin_status(err, cls->stream_open(old->device, &fresh, err),
                                    old->device->name, "opening a stream");
    if (status) return status;
    free_marks(s, device);
    cls->stream_close(old);
    *old = fresh;
    return CNR_OK;
}

/* Opens streams anew with or without timing (timed), on devices that time events; nothing if it is
 * so already. */
static cnr_status set_timed(cnr_session *s, bool timed, cnr_error *err) {
    for (int32_t i = 0; i < s->plan->n_devices && s->timed != timed; i++) {
        if (!CNRI_HAS(s->streams[i].device->cls, event_elapsed)) continue;
        const cnr_status status = reopen(s, i, timed, err);
        if (status) return status;
    }
    s->timed = timed;
    return CNR_OK;
}

/* True if a listener wants times. */
static bool any_sync(const cnr_session *s) {
    for (int32_t i = 0; i < s->listeners.n; i++)
        if (s->listeners.at[i].sync) return true;
    return false;
}

/* ---- adding and removing ---- */

/* Adds a listener; *id: its number, for its removal. CNR_E_STATE: a run is under way. */
static cnr_status add(cnr_session *s, cnri_listener listener, int32_t *id, cnr_error *err) {
    if (s->running)
        return cnri_fail(err, CNR_E_STATE, "session", "a run is under way: wait for it first");
    cnri_listener *slot = cnri_push(&s->listeners);
    if (!slot) return cnri_fail(err, CNR_E_MEMORY, "session", "no memory for a listener");
    *slot = listener;
    *id = slot->id = ++s->last_listener;
    const cnr_status status = listener.sync ? set_timed(s, true, err) : CNR_OK;
    if (status) cnr_session_unlisten(s, *id);
    s->sync = any_sync(s);
    return status;
}

cnr_status cnri_session_listen(cnr_session *s, cnri_event_fn fn, void *arg, bool sync, int32_t *id,
                               cnr_error *err) {
    return add(s, (cnri_listener){.fn = fn, .arg = arg, .sync = sync}, id, err);
}

cnr_status cnr_session_listen(cnr_session *s, uint32_t flags, cnr_run_fn fn, void *arg, int32_t *id,
                              cnr_error *err) {
    int32_t own;
    const cnr_status status = cnri_require_arguments(err, "session", s, NULL);
    if (status) return status;
    if (!fn) return cnri_fail(err, CNR_E_ARG, "fn", "wanted, got NULL");
    return add(s, (cnri_listener){.run_fn = fn, .arg = arg, .sync = flags & CNR_LISTEN_TIMES},
               id ? id : &own, err);
}

void cnr_session_unlisten(cnr_session *s, int32_t id) {
    for (int32_t i = 0; s && i < s->listeners.n; i++) {
        if (s->listeners.at[i].id != id) continue;
        memmove(&s->listeners.at[i], &s->listeners.at[i + 1],
                (size_t)(--s->listeners.n - i) * sizeof *s->listeners.at);
        s->sync = any_sync(s);
        /* If that fails, the streams stay slow but correct. */
        if (!s->sync && !s->running) set_timed(s, false, NULL);
        return;
    }
}

/* ---- telling ---- */

/* Calls an application's listener with an event in the public form. */
static void tell_application(const cnr_session *s, const cnri_listener *listener,
                             const cnri_event *e) {
    static const int32_t kinds[] = {[CNRI_EVENT_RUN_BEGIN] = CNR_RUN_BEGIN,
                                    [CNRI_EVENT_RUN_END] = CNR_RUN_END,
                                    [CNRI_EVENT_STEP_BEGIN] = CNR_STEP_BEGIN,
                                    [CNRI_EVENT_STEP_END] = CNR_STEP_END};
    cnr_run_event event = {.size = sizeof event,
                           .kind = kinds[e->kind],
                           .step = e->step,
                           .now_ns = e->now_ns,
                           .took_ns = e->took_ns};
    if (e->step >= 0) {
        const cnri_step_names names = cnri_step_names_of(s->plan, e->step);
        event.node = names.node;
        event.op = names.op;
        event.kernel = names.kernel;
        event.device = names.device;
    }
    listener->run_fn(listener->arg, &event);
}

/* Writes the devices that run steps of the plan to `out`, separated by commas, cut to `capacity`
 * bytes. */
static void name_devices(const cnr_plan *plan, char *out, size_t capacity) {
    size_t n = 0;
    *out = 0;
    for (int32_t d = 0; d < plan->n_devices && n < capacity; d++) {
        int32_t i = 0;
        while (i < plan->steps.n && plan->steps.at[i].device != d) i++;
        if (i < plan->steps.n)
            n += (size_t)snprintf(out + n, capacity - n, "%s%s", n ? "," : "",
                                  plan->devices[d]->name);
    }
}

void cnri_session_notify(const cnr_session *s, cnri_event_kind kind, int32_t step, uint64_t took_ns,
                         const char *counters) {
    const cnr_model *model = step < 0 ? cnri_plan_model(s->plan) : NULL;
    if (model && model->rt->passes.tell) {
        char devices[64];
        name_devices(s->plan, devices, sizeof devices);
        model->rt->passes.tell(model->rt->passes.arg, kind == CNRI_EVENT_RUN_BEGIN, devices);
    }
    if (s->listeners.n == 0) return;
    const cnri_event event = {kind, step, s->plan, s->sync ? cnri_now_ns() : 0, took_ns, counters};
    for (int32_t i = 0; i < s->listeners.n; i++) {
        const cnri_listener *listener = &s->listeners.at[i];
        if (listener->fn) listener->fn(listener->arg, &event);
        else tell_application(s, listener, &event);
    }
}
