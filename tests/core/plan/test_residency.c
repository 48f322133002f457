/* Prepared weights: under a bound, replaced, decoded; the answers stay the same. */
#include "lab.h"
#include <cnnrun/half.h>

/* Five layers; near prepares doubles, far floats. */
static cnr_graph *deep_net(void) {
    cnr_graph *g = cnri_graph_new("deep");
    const cnr_tensor t = lab_type(1, 64, 3, 3);
    cnr_value v = cnri_graph_input(g, "x", &t);
    for (uint32_t i = 0; i < 5; i++) v = lab_blur(g, v, 64, i);
    cnri_graph_output(g, v, "out");
    return g;
}

/* What values between steps take, which counts in a bound, too. */
static uint64_t arena_of(const cnr_graph *g, const cnri_plan_options *options) {
    cnri_plan_options o = *options;
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    o.memory_bound = 0;
    const cnr_tensor *types[] = {g->values.at[g->inputs.at[0]].type};
    ok(!cnri_plan_make(g, &lab_rt->devices, &o, types, 1, &plan, &err), "its arena: %s", err.text);
    const uint64_t bytes = plan ? plan->arena_bytes : 0;
    cnri_plan_free(plan);
    return bytes;
}

/* Tests: bounds of memory. */
static void bounds(void) {
    enum { BLOB = 64 * 8 };
    cnr_graph *g = deep_net();
    cnr_plan *plan;
    cnri_residency_stats stats;
    cnri_plan_options o = {.device = "near"};
    lab_check(g, &o, &plan, "without a bound");
    cnri_residency_stats_of(plan, &stats);
    is_int((long long)stats.prepared, 5, "each blob is prepared once");
    is_int((long long)plan->weight_bytes, 5 * BLOB, "and counted");
    cnri_plan_free(plan);
    const uint64_t arena = arena_of(g, &o);
    o.memory_bound = arena + 3 * BLOB;
    lab_check(g, &o, &plan, "under a bound of three of five");
    cnri_residency_stats_of(plan, &stats);
    is_int((long long)stats.peak, 3 * BLOB, "the bound is used and held");
    ok(stats.evicted >= 4, "blobs came and went: %d", (int)stats.evicted);
    cnri_plan_free(plan);
    o.memory_bound = arena + BLOB;
    lab_check(g, &o, &plan, "under a bound of one");
    cnri_residency_stats_of(plan, &stats);
    is_int((long long)stats.peak, BLOB, "one at a time");
    cnri_plan_free(plan);
    static const char *const blob[] = {"f_blur=far_blur_blob", NULL};
    o = (cnri_plan_options){.device = "far:0", .kernels = blob};
    o.memory_bound = arena_of(g, &o) + 600;
    lab_check(g, &o, &plan, "on a device with a queue, two of five");
    cnri_residency_stats_of(plan, &stats);
    is_int((long long)stats.peak, 512, "the bound is held there too");
    cnri_plan_free(plan);
    cnr_error err = CNR_ERROR_INIT;
    int64_t n;
    o = (cnri_plan_options){.device = "near", .memory_bound = arena + BLOB - 1};
    ok(!lab_run(g, &o, &n, NULL, &err), "a bound below the largest blob is refused");
    has_text(err.text, "512", "saying what is wanted");
    cnri_graph_free(g);
}

/* Tests: shared weights are packed once. */
static void shared(void) {
    cnr_graph *g = cnri_graph_new("twice");
    const cnr_tensor t = lab_type(1, 8, 3, 3);
    const cnr_value x = cnri_graph_input(g, "x", &t), w = lab_weight(g, "w", 8, 1);
    cnri_graph_output(g, lab_op(g, "f_blur", lab_op(g, "f_blur", x, w), w), "out");
    cnr_plan *plan;
    cnri_residency_stats stats;
    const cnri_plan_options o = {.device = "near"};
    lab_check(g, &o, &plan, "two nodes with the same weights");
    cnri_residency_stats_of(plan, &stats);
    is_int((long long)stats.prepared, 1, "share one blob");
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

/* out[0] of a blur by one weight of ones and zeros follows the weight. */
static void replaced(const char *device) {
    cnr_graph *g = cnri_graph_new("renew");
    const cnr_tensor t = lab_type(1, 4, 1, 1);
    const cnr_value x = cnri_graph_input(g, "x", &t);
    cnri_graph_output(g, lab_op(g, "f_blur", x, lab_weight(g, "w", 4, 1)), "out");
    const cnri_plan_options o = {.device = device};
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    const cnr_tensor *out, *types[1] = {&t};
    float in[4] = {1, 2, 3, 4}, now[4] = {1, 10, 100, 1000};
    cnr_tensor input = t, weight = {.size = sizeof weight, .dtype = CNR_f32, .rank = 1, .dim = {4}};
    input.data = in;
    weight.data = now;
    weight.bytes = sizeof now;
    ok(!cnri_plan_make(g, &lab_rt->devices, &o, types, 1, &plan, &err) &&
           !cnr_session_open(plan, &s, &err) && !cnr_session_set_input(s, 0, &input, &err) &&
           !cnr_session_run(s, &err),
       "%s: runs with the old weights", device);
    ok(!cnr_plan_set_weight(plan, "w", &weight, &err), "new weights are taken: %s", err.text);
    ok(!cnr_session_run(s, &err) && !cnr_session_output(s, 0, &out, &err) &&
           ((const float *)out->data)[3] == 8000 && ((const float *)out->data)[1] == 40,
       "the same session answers by them");
    weight.dim[0] = 3;
    ok(cnr_plan_set_weight(plan, "w", &weight, &err) != CNR_OK, "a wrong shape is refused");
    is_int(cnr_plan_set_weight(plan, "nosuch", &weight, &err), CNR_E_NOT_FOUND,
           "so is a wrong name");
    cnr_session_close(s);
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

/* Tests: encoded weights. */
static void encoded(void) {
    cnr_graph *g = cnri_graph_new("halves"), *h = cnri_graph_new("dense");
    const cnr_tensor t = lab_type(1, 4, 3, 2);
    uint16_t half[4];
    float full[4] = {0.5f, -2, 3, 0.25f};
    for (int32_t i = 0; i < 4; i++) half[i] = cnr_f32_to_f16(full[i]);
    cnr_tensor w = {.size = sizeof w, .dtype = CNR_f32, .rank = 1, .dim = {4}, .data = half};
    w.flags = CNR_TENSOR_CONST;
    w.encoding = cnri_intern("f_halves");
    w.bytes = sizeof half;
    cnr_value x = cnri_graph_input(g, "x", &t);
    cnri_graph_output(g, lab_op(g, "f_blur", x, cnri_graph_constant(g, "w", &w)), "out");
    w.encoding = 0;
    w.data = full;
    w.bytes = sizeof full;
    x = cnri_graph_input(h, "x", &t);
    cnri_graph_output(h, lab_op(h, "f_blur", x, cnri_graph_constant(h, "w", &w)), "out");
    static const char *const plain[] = {"f_blur=reference", NULL};
    const cnri_plan_options all[] = {{.device = "near"},
                                     {.device = "far:0"},
                                     {.device = "near", .kernels = plain}};
    cnr_error err = CNR_ERROR_INIT;
    int64_t a, b;
    float *want = lab_judge(h, &a, &err);
    for (int32_t i = 0; i < 3; i++) {
        float *got = lab_run(g, &all[i], &b, NULL, &err);
        ok(lab_same(got, b, want, a),
           "weights in an encoding that no kernel reads are decoded (%d): %s", (int)i, err.text);
        free(got);
    }
    free(want);
    cnri_graph_free(g);
    cnri_graph_free(h);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    ok(lab_open(&err) == CNR_OK, "the made-up plugin loads");
    bounds();
    shared();
    replaced("near");
    replaced("far:1");
    encoded();
    cnr_close(lab_rt);
    return done();
}
