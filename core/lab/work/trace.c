/* Writes a run as a file for Chrome's tracing and Perfetto: when each step ran, one row for each
 * device. */
#include "work/work.h"
#include "people/people.h"

/* A trace that is being written, in Chrome's format. */
typedef struct tracing {
    cnri_text text;
    const cnr_plan *plan;
    uint64_t run_ns, step_ns; /* ns at which run and step began */
} tracing;

static double micro(uint64_t ns) { return (double)ns * 1e-3; }

/* Row of a device in the trace, from 1. */
static int32_t row_of(const tracing *t, const char *device) {
    int32_t i = 0;
    while (i < t->plan->n_devices && strcmp(t->plan->devices[i]->name, device) != 0) i++;
    return i + 1;
}

/* Appends a step, and the bytes that it moved. */
static void add_step(tracing *t, const cnri_event *e) {
    const cnri_step_names names = cnri_step_names_of(t->plan, e->step);
    const uint64_t took = e->took_ns ? e->took_ns : e->now_ns - t->step_ns;
    cnri_transfer_row moved;
    cnri_text_add(&t->text,
                  ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":",
                  (int)row_of(t, names.device), micro(t->step_ns - t->run_ns), micro(took));
    cnri_text_json(&t->text, names.node ? names.node : names.op);
    cnri_text_add(&t->text, ",\"cat\":");
    cnri_text_json(&t->text, names.op);
    cnri_text_add(&t->text, ",\"args\":{\"kernel\":");
    cnri_text_json(&t->text, names.kernel ? names.kernel : "");
    if (cnri_step_transfer(t->plan, e->step, &moved))
        cnri_text_add(&t->text, ",\"bytes\":%llu", (unsigned long long)moved.bytes);
    if (e->counters) {
        cnri_text_add(&t->text, ",\"counters\":");
        cnri_text_json(&t->text, e->counters);
    }
    cnri_text_add(&t->text, "}}");
}

/* Event function of the session: appends steps and runs to the trace, in microseconds. */
static void hear(void *arg, const cnri_event *e) {
    tracing *t = arg;
    if (e->kind == CNRI_EVENT_RUN_BEGIN) t->run_ns = e->now_ns;
    if (e->kind == CNRI_EVENT_STEP_BEGIN) t->step_ns = e->now_ns;
    if (e->kind == CNRI_EVENT_STEP_END) add_step(t, e);
    if (e->kind == CNRI_EVENT_RUN_END)
        cnri_text_add(&t->text,
                      ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":0,\"ts\":0,\"dur\":%.3f,"
                      "\"name\":\"run\"}",
                      micro(e->now_ns - t->run_ns));
}

/* Appends the name of row `row`; 0 is that of runs. */
static void add_row(tracing *t, int32_t row, const char *name) {
    cnri_text_add(&t->text,
                  "%s\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\","
                  "\"args\":{\"name\":",
                  row ? "," : "", (int)row);
    cnri_text_json(&t->text, name);
    cnri_text_add(&t->text, "}}");
}

cnr_status cnri_trace_run(cnr_session *s, const char *path, cnr_error *err) {
    tracing t = {.plan = cnri_session_plan(s)};
    cnri_writer w;
    int32_t id = 0;
    cnri_text_add(&t.text, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
    add_row(&t, 0, "run");
    for (int32_t i = 0; i < t.plan->n_devices; i++) add_row(&t, i + 1, t.plan->devices[i]->name);
    cnr_status status = cnri_session_listen(s, hear, &t, true, &id, err);
    if (!status) status = cnr_session_run(s, err);
    cnr_session_unlisten(s, id);
    cnri_text_add(&t.text, "\n]");
    cnri_text_simulated(&t.text);
    cnri_text_add(&t.text, "}\n");
    if (!status && t.text.failed) status = cnri_out_of_memory(err, path);
    if (!status) status = cnri_write_begin(&w, path, 0, err);
    if (!status) {
        status = cnri_write(&w, t.text.at, t.text.n, err);
        if (status) cnri_write_abandon(&w);
        else status = cnri_write_commit(&w, err);
    }
    cnri_text_free(&t.text);
    return status;
}
