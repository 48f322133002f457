/* kernelcheck --net in a child process: the net on a device, its whole plan step by step, and
 * then as applications run it. Models and plans are not freed, because the process ends. */
#include "judge/judge.h"
#include "kernelcheck/kernelcheck.h"
#include "people/people.h"
#include <math.h>

typedef struct kept { /* Output number `output` of a node: n floats, owned. */
    char name[120];
    int32_t output;
    int64_t n;
    float *data;
} kept;

/* Values of a run that are kept. */
typedef struct heard {
    CNRI_VEC(kept) at;
    int64_t number; /* number of the case that is reported */
    bool starved;
} heard;

/* Loads the net and plans it; plainly: without fusion and other rewrites. */
static cnr_status load(const cnri_checked_net *net, const char *device, bool plainly,
                       cnr_model **out, cnri_shapes *shapes, cnr_plan **plan, cnr_error *err) {
    static const char *const off[] = {"fuse", "alias", "layout", NULL};
    cnr_load_options o = {.size = sizeof o,
                          .weights = net->weights,
                          .device = device,
                          .deterministic = 1,
                          .no_rewrite = plainly ? off : NULL,
                          .weights_type = plainly ? NULL : net->weights_type,
                          .arithmetic = plainly ? NULL : net->arithmetic};
    bool filled = true;
    cnr_status status = cnr_load(net->rt, net->path, &o, out, err);
    if (status == CNR_E_NOT_FOUND && !net->weights) { /* a script whose weights are in no file */
        o.weights = "random:1";
        status = cnr_load(net->rt, net->path, &o, out, err);
    }
    for (int32_t i = 0; !status && i < (*out)->graph->values.n; i++)
        filled = filled && !(*out)->graph->values.at[i].unfilled;
    if (!status && !filled) status = cnri_weights_fill((*out)->graph, "random:1", NULL, err);
    if (!status) status = cnri_input_shapes(*out, 1, shapes, err);
    if (!status) status = cnr_plan_for(*out, shapes->list, shapes->n, plan, err);
    return status;
}

cnr_status cnri_checked_open(void *arg, const char *device, cnr_plan **plan, const cnr_device **on,
                             cnr_error *err) {
    cnri_checked_net *net = arg;
    cnr_model *model;
    cnr_status status = load(net, device, false, &model, &net->shapes, &net->plan, err);
    *on = NULL;
    if (status) return status;
    *plan = net->plan;
    for (int32_t i = 0; i < net->plan->n_devices; i++)
        if (strcmp(net->plan->devices[i]->name, device) == 0) *on = net->plan->devices[i];
    return *on ? CNR_OK : cnri_device_open(&net->rt->devices, device, on, err);
}

/* ---- the plan as a whole ---- */

/* Session tap: keeps a copy of an f32 value of the run; others are dropped. h->starved: out of
 * memory. */
static void keep(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    heard *h = arg;
    if (value->dtype != CNR_f32 || value->encoding) return;
    const size_t bytes = (size_t)cnr_dense_bytes(value);
    kept *slot = cnri_push(&h->at);
    float *data = slot ? cnri_alloc(bytes + 1) : NULL;
    if (!data) {
        if (slot) h->at.n--;
        h->starved = true;
        return;
    }
    memcpy(data, value->data, bytes);
    *slot = (kept){.output = output, .n = cnr_count(value), .data = data};
    snprintf(slot->name, sizeof slot->name, "%s", node);
}

/* Reports each step before it runs; each ends before the next begins, so the last one reported
 * is the one that ended the process. */
static void hear_step(void *arg, const cnri_event *e) {
    const heard *h = arg;
    if (e->kind != CNRI_EVENT_STEP_BEGIN) return;
    const cnri_step_names names = cnri_step_names_of(e->plan, e->step);
    cnri_text text = {0};
    cnri_text_add(&text, "the plan, at %s: %s on %s", names.node, names.kernel, names.device);
    cnri_work_tell("case", h->number, text.at);
    cnri_text_free(&text);
}

/* Sets all inputs to made-up numbers. */
static cnr_status put_inputs(cnr_session *s, const cnri_shapes *shapes, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < shapes->n && !status; i++) {
        cnr_tensor t = shapes->at[i];
        t.bytes = cnr_dense_bytes(&t);
        t.data = t.bytes < SIZE_MAX ? cnri_alloc((size_t)t.bytes + 1) : NULL;
        if (!t.data) return cnri_fail(err, CNR_E_MEMORY, "kernelcheck", "out of memory");
        cnri_fill_made_up(&t);
        status = cnr_session_set_input(s, i, &t, err);
        cnri_free(t.data);
    }
    return status;
}

/* Runs a plan once in a session at *out, and keeps the outputs of its nodes in *h; tells: it hears
 * of each step, too. */
static cnr_status listen_to(cnr_plan *plan, const cnri_shapes *shapes, bool tells, heard *h,
                            cnr_session **out, cnr_error *err) {
    int32_t id;
    cnr_status status = cnr_session_open(plan, out, err);
    if (!status) status = put_inputs(*out, shapes, err);
    if (!status && tells) status = cnri_session_listen(*out, hear_step, h, true, &id, err);
    if (status) return status;
    cnr_session_tap(*out, keep, h);
    status = cnr_session_run(*out, err);
    cnr_session_tap(*out, NULL, NULL);
    if (tells) cnr_session_unlisten(*out, id);
    if (!status && h->starved)
        status = cnri_fail(err, CNR_E_MEMORY, "kernelcheck", "out of memory");
    return status;
}

/* True if the answers differ by at most `part` of the largest number. */
static bool answers_agree(const kept *a, const kept *b, double part, cnri_text *why) {
    double maximum = 0, apart = 0;
    for (int64_t i = 0; i < a->n && a->n == b->n; i++) {
        const double x = (double)a->data[i], y = (double)b->data[i];
        if (isfinite(y)) maximum = fmax(maximum, fabs(y));
        if (x == y || (isnan(x) && isnan(y))) continue;
        apart = isfinite(x - y) ? fmax(apart, fabs(x - y)) : INFINITY;
    }
    if (a->n == b->n && apart <= part * maximum + 1e-6) return true;
    cnri_text_add(why,
                  "%s, output %d: off by %.3g from what each node alone gives, whose largest is "
                  "%.3g",
                  a->name, (int)a->output, apart, maximum);
    return false;
}

/* Compares all values that both runs have; false, with why: one differs by more than `part` of its
 * size. */
static bool compare(const heard *planned, const heard *plain, double part, cnri_text *why) {
    for (int32_t i = 0; i < planned->at.n; i++)
        for (int32_t k = 0; k < plain->at.n; k++) {
            const kept *a = &planned->at.at[i], *b = &plain->at.at[k];
            if (a->output == b->output && strcmp(a->name, b->name) == 0 &&
                !answers_agree(a, b, part, why))
                return false;
        }
    return true;
}

/* Runs the plan three times without waiting for steps, as applications do; devices may record a
 * run and replay it. */
static cnr_status run_freely(cnr_session *s, heard *out, cnr_error *err) {
    cnr_status status = CNR_OK;
    const cnr_graph *g = cnri_session_plan(s)->graph;
    for (int32_t turn = 0; turn < 3 && !status; turn++) status = cnr_session_run(s, err);
    for (int32_t i = 0; i < g->outputs.n && !status; i++) {
        const cnr_tensor *value;
        const int32_t by = g->values.at[g->outputs.at[i]].producer;
        status = cnr_session_output(s, i, &value, err);
        if (!status && by >= 0)
            keep(out, g->nodes.at[by]->view.name, g->values.at[g->outputs.at[i]].output, value);
    }
    return status;
}

/* Compares a planned run of the net with a plain one; false, with why. */
bool cnri_checked_whole(void *arg, int64_t number, cnri_text *why) {
    cnri_checked_net *net = arg;
    heard planned = {.number = number}, plain = {.number = number}, freely = {0};
    const cnri_device *host;
    cnr_model *model;
    cnr_session *s, *other;
    cnri_shapes shapes = {0};
    cnr_plan *plan;
    cnr_error err = CNR_ERROR_INIT;
    const double part = net->weights_type || net->arithmetic ? 0.1 : 0.01;
    cnr_status status = cnri_guard_workspaces(net->plan)
                            ? listen_to(net->plan, &net->shapes, true, &planned, &s, &err)
                            : cnri_fail(&err, CNR_E_MEMORY, "kernelcheck", "out of memory");
    cnri_unguard_workspaces();
    if (!status) status = run_freely(s, &freely, &err);
    if (!status) status = cnri_device_best(&net->rt->devices, true, &host, &err);
    if (!status) status = load(net, host->name, true, &model, &shapes, &plan, &err);
    if (!status) status = listen_to(plan, &shapes, false, &plain, &other, &err);
    if (status) cnri_text_add(why, "%s: %s", err.where, err.text);
    return !status && compare(&planned, &plain, part, why) && compare(&freely, &plain, part, why);
}
