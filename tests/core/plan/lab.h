/* For tests of planning and running: nets of made-up operators, run on made-up devices. */
#ifndef CNRT_LAB_H
#define CNRT_LAB_H

#include "run/run.h"
#include "tap.h"

static cnr_runtime *lab_rt;

__attribute__((unused)) static cnr_status lab_open(cnr_error *err) {
    const char *dirs[] = {CNRT_BUILD_DIR "/tests/core/plan/fake", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .no_default_dirs = 1,
                                      .log_level = CNR_LOG_ERROR};
    return cnr_open(&lab_rt, &options, err);
}

__attribute__((unused)) static cnr_tensor lab_type(int64_t n, int64_t c, int64_t h, int64_t w) {
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 4, .dim = {n, c, h, w}};
    t.bytes = cnr_dense_bytes(&t);
    return t;
}

__attribute__((unused)) static cnr_value lab_affine(cnr_graph *g, cnr_value x, double a, double b) {
    const cnr_attr fa = {.name = "a", .type = CNR_ATTR_FLOAT, .f = a};
    const cnr_attr fb = {.name = "b", .type = CNR_ATTR_FLOAT, .f = b};
    const cnr_attr *const attrs[] = {&fa, &fb};
    cnr_value out = -1;
    cnri_graph_node(g, "f_affine", NULL, NULL, &x, 1, attrs, 2, &out, 1);
    return out;
}

__attribute__((unused)) static cnr_value lab_op(cnr_graph *g, const char *op, cnr_value x,
                                                cnr_value y) {
    const cnr_value in[2] = {x, y};
    cnr_value out = -1;
    cnri_graph_node(g, op, NULL, NULL, in, y >= 0 ? 2 : 1, NULL, 0, &out, 1);
    return out;
}

/* A constant of `n` numbers that depend on `seed`. */
__attribute__((unused)) static cnr_value lab_weight(cnr_graph *g, const char *name, int64_t n,
                                                    uint32_t seed) {
    float data[4096];
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 1, .dim = {n}, .data = data};
    t.flags = CNR_TENSOR_CONST;
    t.bytes = cnr_dense_bytes(&t);
    for (int64_t i = 0; i < n; i++)
        data[i] = 0.125f * (float)((uint32_t)(i * 7 + 3 + (int64_t)seed * 13) % 11u) - 0.5f;
    return cnri_graph_constant(g, name, &t);
}

__attribute__((unused)) static cnr_value lab_blur(cnr_graph *g, cnr_value x, int64_t channels,
                                                  uint32_t seed) {
    char name[32];
    snprintf(name, sizeof name, "w%u.%d", seed, (int)g->values.n);
    return lab_op(g, "f_blur", x, lab_weight(g, name, channels, seed));
}

/* Plans, runs twice on the scaled numbers 0 .. n, and returns all outputs in one array. */
__attribute__((unused)) static float *lab_run(const cnr_graph *g, const cnri_plan_options *options,
                                              int64_t *count, cnr_plan **keep, cnr_error *err) {
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    const cnr_tensor *types[4];
    float *all = NULL;
    *count = 0;
    for (int32_t i = 0; i < g->inputs.n; i++) types[i] = g->values.at[g->inputs.at[i]].type;
    cnr_status status =
        cnri_plan_make(g, &lab_rt->devices, options, types, g->inputs.n, &plan, err);
    if (!status) status = cnr_session_open(plan, &s, err);
    for (int32_t i = 0; i < g->inputs.n && !status; i++) {
        cnr_tensor in = *types[i];
        float *data = malloc((size_t)cnr_dense_bytes(&in) + 1);
        if (!data) abort();
        for (int64_t k = 0; k < cnr_count(&in); k++)
            data[k] = (float)((k * 37 + i * 11) % 64) / 32.0f - 1.0f;
        in.data = data;
        status = cnr_session_set_input(s, i, &in, err);
        free(data);
    }
    for (int32_t turn = 0; turn < 2 && !status; turn++) status = cnr_session_run(s, err);
    for (int32_t i = 0; i < g->outputs.n && !status; i++) {
        const cnr_tensor *out;
        status = cnr_session_output(s, i, &out, err);
        if (status) break;
        const int64_t n = cnr_count(out);
        all = realloc(all, (size_t)(*count + n + 1) * sizeof *all);
        if (!all) abort();
        memcpy(all + *count, out->data, (size_t)n * sizeof *all);
        *count += n;
    }
    if (status) {
        free(all);
        all = NULL;
    }
    cnr_session_close(s);
    if (keep) *keep = plan;
    else cnri_plan_free(plan);
    return all;
}

/* The same by references alone, without sharing, fusing or moving. */
__attribute__((unused)) static float *lab_judge(const cnr_graph *g, int64_t *count,
                                                cnr_error *err) {
    static const char *const off[] = {"fuse", "alias", "layout", NULL};
    static const char *const kernels[] = {"f_blur=reference", "f_affine=reference",
                                          "f_sum=reference", NULL};
    const cnri_plan_options options = {.device = "near", .no_rewrite = off, .kernels = kernels};
    return lab_run(g, &options, count, NULL, err);
}

__attribute__((unused)) static bool lab_same(const float *a, int64_t n, const float *b, int64_t m) {
    if (!a || !b || n != m) return false;
    for (int64_t i = 0; i < n; i++) {
        const float d = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i], size = b[i] < 0 ? -b[i] : b[i];
        if (!(d <= 1e-4f * (size + 1.0f))) return false;
    }
    return true;
}

__attribute__((unused)) static int32_t lab_steps(const cnr_plan *plan, int32_t kind) {
    int32_t n = 0;
    for (int32_t i = 0; plan && i < plan->steps.n; i++)
        n += (int32_t)plan->steps.at[i].kind == kind;
    return n;
}

/* Runs with `options` and compares with the references; the caller frees *plan. */
__attribute__((unused)) static int lab_check(const cnr_graph *g, const cnri_plan_options *options,
                                             cnr_plan **plan, const char *what) {
    int64_t n, m;
    cnr_error err = CNR_ERROR_INIT;
    float *want = lab_judge(g, &m, &err), *got = lab_run(g, options, &n, plan, &err);
    const int good = ok(lab_same(got, n, want, m), "%s", what);
    if (!good) {
        note("%s: %s; %lld against %lld", err.where, err.text, (long long)n, (long long)m);
        for (int64_t i = 0; got && want && i < n && i < m; i++)
            if (!lab_same(&got[i], 1, &want[i], 1)) {
                note("first at %lld: got %g, want %g", (long long)i, got[i], want[i]);
                break;
            }
    }
    free(want);
    free(got);
    return good;
}

#endif
