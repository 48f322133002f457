/* The profiler hears every step, and what is printed of plans and profiles is what was planned. */
#include "show/show.h"
#include "../plan/lab.h"
#include "profile/profile.h"

/* How many lines of the text begin with `start`. */
static int32_t lines_with(const char *text, const char *start) {
    int32_t n = 0;
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        n += strncmp(at, start, strlen(start)) == 0;
    return n;
}

/* The plan of a net on a device. */
static cnr_plan *plan_of(cnr_graph *g, const char *device) {
    const cnr_tensor *types[] = {g->values.at[g->inputs.at[0]].type};
    const cnri_plan_options o = {.device = device};
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    if (cnri_plan_make(g, &lab_rt->devices, &o, types, 1, &plan, &err)) note("%s", err.text);
    return plan;
}

/* ---- listeners ---- */

/* Events that came. */
typedef struct heard {
    int32_t runs, steps, timed;
    uint64_t took;
    const char *device;
} heard;
/* Counts events. */
static void hear(void *arg, const cnr_run_event *e) {
    heard *h = arg;
    h->runs += e->kind == CNR_RUN_END;
    if (e->kind != CNR_STEP_END) return;
    h->steps++;
    h->timed += e->now_ns > 0;
    h->took += e->took_ns;
    h->device = e->node && *e->op && e->kernel ? e->device : NULL;
}

/* Tests: listeners of a session with and without times come, go and are refused while a run is
 * under way. */
static void listened(cnr_graph *g) {
    cnr_plan *plan = plan_of(g, "far:0");
    cnr_session *s = NULL;
    cnr_error err = CNR_ERROR_INIT;
    static float data[2 * 8 * 6 * 5];
    cnr_tensor in = lab_type(2, 8, 6, 5);
    heard plain = {0}, timed = {0}, other = {0};
    int32_t a = 0, b = 0, c = 0;
    in.data = data;
    cnr_session_open(plan, &s, &err);
    cnr_session_set_input(s, 0, &in, &err);
    is_int(cnr_session_listen(s, 0, hear, &plain, &a, &err), CNR_OK, "an application listens");
    cnr_session_run(s, &err);
    ok(plain.runs == 1 && plain.steps == plan->steps.n && plain.timed == 0 && plain.took == 0,
       "to runs and steps, by no clock");
    ok(plain.device != NULL, "with the names of each");
    cnr_session_listen(s, CNR_LISTEN_TIMES, hear, &timed, &b, &err);
    cnr_session_listen(s, 0, hear, &other, &c, &err);
    is_int(cnr_session_run(s, &err), CNR_OK, "another wants times");
    ok(timed.timed == plan->steps.n, "and is told the clock");
    ok(timed.took > 0 && timed.took < 1000 && timed.took % 7 == 0, "and by far's own events: %d ns",
       (int)timed.took);
    cnr_session_unlisten(s, b);
    cnr_session_unlisten(s, b);
    cnr_session_unlisten(s, 0);
    const uint64_t took = plain.took;
    is_int(cnr_session_run(s, &err), CNR_OK, "it goes");
    ok(timed.runs == 1 && plain.runs == 3 && other.runs == 2, "alone; the others still listen");
    ok(plain.took == took, "and queues that time no longer cost anybody");
    is_int(cnr_session_listen(s, 0, NULL, NULL, NULL, &err), CNR_E_ARG, "nobody can't listen");
    cnr_session_start(s, &err);
    is_int(cnr_session_listen(s, CNR_LISTEN_TIMES, hear, &timed, &b, &err), CNR_E_STATE,
           "nor anybody while a run is under way");
    cnr_session_wait(s, &err);
    cnr_session_close(s);
    cnri_plan_free(plan);
}

/* Tests: profiles of a run. */
static void profiled(cnr_graph *g, const char *device) {
    cnr_plan *plan = plan_of(g, device);
    cnr_session *s = NULL;
    cnr_error err = CNR_ERROR_INIT;
    static float data[2 * 8 * 6 * 5];
    cnr_tensor in = lab_type(2, 8, 6, 5);
    in.data = data;
    cnri_profile *p = cnri_profile_new(plan);
    ok(p && !cnr_session_open(plan, &s, &err) && !cnr_session_set_input(s, 0, &in, &err),
       "a session on %s", device);
    int32_t id;
    is_int(cnri_session_listen(s, cnri_profile_hear, p, true, &id, &err), CNR_OK, "it listens");
    for (int32_t i = 0; i < 3; i++) cnr_session_run(s, &err);
    cnri_profile_reset(p);
    for (int32_t i = 0; i < 5; i++) cnr_session_run(s, &err);
    uint64_t sum = 0;
    bool five = true;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step_time t = cnri_profile_of(p, i);
        sum += t.total_ns;
        five = five && t.runs == 5 && t.least_ns * 5 <= t.total_ns;
    }
    ok(five, "every step was timed five times");
    ok(sum > 0 && sum <= cnri_profile_of(p, -1).total_ns, "steps take no longer than the runs");
    bool right = true;
    double flops = 0;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step_time t = cnri_profile_of(p, i);
        cnr_step_timing row;
        cnri_profile_row(p, i, &row);
        right = right && row.step == i && row.node && row.op && *row.op && row.device &&
                (uint64_t)(row.ms * 5e6 + 0.5) == t.total_ns && row.ms_min <= row.ms * (1 + 1e-9);
        flops += row.flops;
    }
    ok(right, "a row a step");
    is_int((long long)flops, 2 * 2 * 3 * 480, "work of all steps");
    cnr_session_close(s);
    cnri_profile_free(p);
    cnri_plan_free(plan);
}

/* Tests: the printed profile. */
static void printed(cnr_graph *g) {
    cnr_plan *plan = plan_of(g, "near");
    cnri_text text = {0};
    char want[200];
    cnri_plan_print(plan, true, &text);
    is_int(lines_with(text.at, "{\"node\":"), g->nodes.n, "a line a node, fused ones too");
    snprintf(want, sizeof want,
             "\"params\":16,\"macs\":%d,\"arena_bytes\":%llu,"
             "\"arena_bound_bytes\":%llu,\"weights_bytes\":128}\n",
             2 * 3 * 480, (unsigned long long)plan->arena_bytes,
             (unsigned long long)plan->bound_bytes);
    has_text(text.at, want, "the net's sums");
    has_text(text.at, "\"kernel\":\"near_blur+f_affine\"", "what is fused is said");
    cnri_text_free(&text);
    cnri_plan_print(plan, false, &text);
    has_text(text.at, "(fused)", "a table for people");
    cnri_text_free(&text);
    cnri_plan_free(plan);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    ok(lab_open(&err) == CNR_OK, "the made-up plugin loads");
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor t = lab_type(2, 8, 6, 5);
    const cnr_value x = lab_affine(g, cnri_graph_input(g, "x", &t), 1, 1);
    cnri_graph_output(g, lab_blur(g, lab_affine(g, lab_blur(g, x, 8, 1), 2, 0), 8, 2), "y");
    printed(g);
    profiled(g, "near");
    profiled(g, "far:0");
    listened(g);
    cnri_graph_free(g);
    cnr_close(lab_rt);
    return done();
}
