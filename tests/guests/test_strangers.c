/* Operators that only the template plugin knows: folded, fused, laid out in blocks, split and
 * differentiated by a core that has never heard of them. */
#include "initial/initial.h"
#include "show/show.h"
#include "train/train.h"
#include "tap.h"
#include <math.h>

enum { N = 2, C = 16, H = 6, W = 5, COUNT = N * C * H * W, WEIGHTS = 64 };

static cnr_runtime *rt;
static float input[COUNT];
static CNRI_VEC(cnr_graph *) nets; /* plans borrow their weights, so they live to the end */

/* Opens the library with the template's plugin. */
static cnr_status open_plugins(cnr_error *err) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", CNRT_BUILD_DIR "/tests/guests/template",
                          CNRT_BUILD_DIR "/tests/core/plan/fake", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = 1,
                                      .no_default_dirs = 1,
                                      .log_level = CNR_LOG_ERROR};
    return cnr_open(&rt, &options, err);
}

/* ---- nets ---- */

/* Adds a node of one or two inputs with an attribute. */
static cnr_value op(cnr_graph *g, const char *name, cnr_value a, cnr_value b, const char *attr,
                    double x) {
    const cnr_value in[] = {a, b};
    const cnr_attr one = {.name = attr,
                          .type = x == (double)(int64_t)x && strcmp(attr, "threshold")
                                      ? CNR_ATTR_INT
                                      : CNR_ATTR_FLOAT,
                          .i = (int64_t)x,
                          .f = x};
    const cnr_attr *const list[] = {&one};
    cnr_value out = -1;
    cnri_graph_node(g, name, NULL, NULL, in, b >= 0 ? 2 : 1, list, *attr ? 1 : 0, &out, 1);
    return out;
}

/* Begins a net; *x receives its input. */
static cnr_graph *begin(cnr_value *x) {
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 4, .dim = {N, C, H, W}};
    cnr_graph *g = cnri_graph_new("strangers");
    *x = cnri_graph_input(g, "x", &t);
    return g;
}

/* Adds a channel_mix. */
static cnr_value mix(cnr_graph *g, cnr_value x, int64_t out) {
    return op(g, "channel_mix", x, -1, "out", (double)out);
}

/* batch_normalization with statistics that are far from 0 and 1 */
static cnr_value norm(cnr_graph *g, cnr_value x, int64_t channels) {
    cnr_value in[5] = {x}, out = -1;
    for (int k = 1; k < 5; k++) {
        float data[WEIGHTS];
        const cnr_tensor t = {.size = sizeof t,
                              .dtype = CNR_f32,
                              .rank = 1,
                              .dim = {channels},
                              .data = data,
                              .flags = CNR_TENSOR_CONST};
        for (int64_t c = 0; c < channels; c++)
            data[c] = k == 4 ? 0.5f + 0.1f * (float)c : (float)((c * 7 + k * 3) % 5) * 0.4f + 0.3f;
        in[k] = cnri_graph_constant(g, NULL, &t);
    }
    cnri_graph_node(g, "batch_normalization", NULL, NULL, in, 5, NULL, 0, &out, 1);
    return out;
}

/* A net in which an affine is folded. */
static cnr_graph *folded(void) {
    cnr_value x;
    cnr_graph *g = begin(&x);
    cnri_graph_output(g, op(g, "soft_threshold", norm(g, mix(g, x, 24), 24), -1, "threshold", 0.25),
                      "y");
    return g;
}

/* A net in which operators are fused. */
static cnr_graph *fused(void) {
    cnr_value x;
    cnr_graph *g = begin(&x);
    cnr_value v = op(g, "relu", mix(g, x, C), -1, "", 0);
    v = op(g, "soft_threshold", v, -1, "threshold", 0.25);
    cnri_graph_output(g, op(g, "add", v, x, "", 0), "y");
    return g;
}

/* A net in blocks of channels. */
static cnr_graph *blocked(void) {
    cnr_value x;
    cnr_graph *g = begin(&x);
    const cnr_value v = op(g, "soft_threshold", mix(g, x, 32), -1, "threshold", 0.25);
    cnri_graph_output(g, mix(g, v, 24), "y");
    return g;
}

/* ---- running ---- */

/* Answers of a net, *count numbers, which the caller frees; *plan: its plan, to be freed too. */
static float *run(cnr_graph *(*net)(void), const cnri_plan_options *o, cnr_plan **plan,
                  int64_t *count) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = net(), **slot = cnri_push(&nets);
    if (slot) *slot = g;
    cnr_session *s = NULL;
    cnr_tensor in = *g->values.at[g->inputs.at[0]].type;
    const cnr_tensor *types[] = {&in}, *out;
    float *copy = NULL;
    cnr_status status = cnri_fill_random(g, 5, &err);
    *plan = NULL;
    if (!status) status = cnri_graph_status(g, true, &err);
    if (!status) status = cnri_plan_make(g, &rt->devices, o, types, 1, plan, &err);
    in.data = input;
    if (!status) status = cnr_session_open(*plan, &s, &err);
    if (!status) status = cnr_session_set_input(s, 0, &in, &err);
    if (!status) status = cnr_session_run(s, &err);
    if (!status) status = cnr_session_output(s, 0, &out, &err);
    if (status) note("%s: %s", err.where, err.text);
    else if ((copy = malloc((size_t)out->bytes)) != NULL) {
        memcpy(copy, out->data, (size_t)out->bytes);
        *count = cnr_count(out);
    }
    cnr_session_close(s);
    return copy;
}

/* Steps of a kind. */
static int32_t steps(const cnr_plan *plan, cnri_step_kind kind) {
    int32_t n = 0;
    for (int32_t i = 0; plan && i < plan->steps.n; i++) n += plan->steps.at[i].kind == kind;
    return n;
}

static const char *const everything[] = {"fold-affine", "fuse", "layout", "alias", NULL};

/* Checks that the numbers with these options equal those without any rewriting, and returns the
 * plan with them, which the caller frees. `says` must occur in the JSON of show, or must not if it
 * begins with '!'; NULL: not checked. */
static cnr_plan *same(cnr_graph *(*net)(void), const cnri_plan_options *o, const char *says,
                      const char *what) {
    static const cnri_plan_options plain = {.device = "cpu", .no_rewrite = everything};
    cnr_plan *a = NULL, *b = NULL;
    int64_t n = 0, m = 0;
    float *x = run(net, o, &a, &n), *y = run(net, &plain, &b, &m);
    double off = x && y && n == m && n > 0 ? 0 : 1;
    for (int64_t i = 0; off < 1 && i < n; i++)
        off = fmax(off, fabs((double)x[i] - (double)y[i]) / (1 + fabs((double)y[i])));
    ok(off < 1e-5, "%s: the numbers are those of the plain net, within %.1e", what, off);
    cnri_text text = {0};
    if (a) cnri_plan_print(a, true, &text);
    const bool no = says && *says == '!';
    const bool there = says && text.at && strstr(text.at, says + no);
    if (says && !ok(text.at && there != no, "%s: %s%s", what, no ? "no " : "", says + no))
        note("%s", text.at);
    cnri_text_free(&text);
    cnri_plan_free(b);
    free(x);
    free(y);
    return a;
}

/* Tests: rewrites on strange operators. */
static void rewrites(void) {
    static const char *const no_fold[] = {"fold-affine", NULL}, *const no_fuse[] = {"fuse", NULL};
    static const char *const no_blocks[] = {"fuse", "layout", NULL};
    cnri_plan_options o = {.device = "cpu"};
    cnri_plan_free(same(folded, &o, "!\"op\":\"batch_normalization\"", "batch norm folded"));
    o.no_rewrite = no_fold;
    cnri_plan_free(same(folded, &o, "\"op\":\"batch_normalization\"", "not folded"));
    o.no_rewrite = NULL;
    cnri_plan_free(same(fused, &o, "\"kernel\":\"channel_mix_f32_block8+relu+soft_threshold+add\"",
                        "three fused behind it"));
    o.no_rewrite = no_fuse;
    cnri_plan_free(same(fused, &o, "!block8+", "not fused"));
    cnr_plan *plan = same(blocked, &o, "\"kernel\":\"channel_mix_f32_block8\"", "in blocks of 8");
    is_int(steps(plan, CNRI_STEP_KERNEL), 3, "three steps compute");
    is_int(steps(plan, CNRI_STEP_LAYOUT), 2, "x is converted and the answer; nothing between");
    bool passed = false, eight = true;
    for (int32_t i = 0; plan && i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL) continue;
        passed = passed || s->passes;
        eight = eight && plan->homes.at[s->out[0]].block_of == 8;
    }
    ok(passed && eight, "blocks of 8 go through the operator in the middle");
    cnri_plan_free(plan);
    o.no_rewrite = no_blocks;
    plan = same(blocked, &o, NULL, "layouts off");
    is_int(steps(plan, CNRI_STEP_LAYOUT), 0, "no conversions then");
    cnri_plan_free(plan);
}

/* Tests: strange operators are split. */
static void splits(void) {
    static const struct {
        int32_t axis;
        const char *what;
    } axes[] = {{0, "split over two devices by samples"},
                {1, "by output channels"},
                {2, "by rows"}};
    for (size_t i = 0; i < CNRI_COUNT(axes); i++) {
        cnri_part parts[] = {{"cpu", 0.5}, {"near", 0.5}};
        char all[] = "*";
        const cnri_placement w[] = {
            {.node = all, .n_parts = 2, .axis = axes[i].axis, .parts = parts}};
        const cnri_plan_options o = {.device = "cpu", .placements = w, .n_placements = 1};
        cnr_plan *plan = same(blocked, &o, "\"device\":\"cpu+near\"", axes[i].what);
        cnri_plan_free(plan);
    }
}

/* ---- gradient ---- */

/* A net that is trained. */
static cnr_graph *to_train(void) {
    cnr_value x, y = -1;
    cnr_graph *g = begin(&x);
    const cnr_value v = op(g, "soft_threshold", mix(g, x, 8), -1, "threshold", 0.05);
    const cnr_value w = mix(g, v, 3);
    cnri_graph_node(g, "global_average_pool", NULL, NULL, &w, 1, NULL, 0, &y, 1);
    cnri_graph_output(g, op(g, "flatten", y, -1, "", 0), "y");
    for (int32_t i = 0; i < g->values.n; i++)
        if (g->values.at[i].producer < 0 && !g->values.at[i].is_input)
            g->values.at[i].type->flags |= CNR_TENSOR_VARIABLE;
    return g;
}

/* The loss of a run. */
static double loss_of(cnr_session *s, cnr_error *err) {
    const cnr_tensor *out;
    if (cnr_session_run(s, err) || cnr_session_output(s, 0, &out, err)) return NAN;
    return (double)*(const float *)out->data;
}

/* Tests: gradients against differences. */
static void gradients(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_backward b = {0};
    const cnr_op *loss = NULL;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    cnr_graph *g = to_train();
    int32_t labels[N] = {0, 2};
    const cnri_plan_options o = {.device = "cpu", .training = true};
    cnr_status status = cnri_fill_random(g, 5, &err);
    if (!status) status = cnri_train_loss("softmax_cross_entropy", &loss, &err);
    if (!status) status = cnri_train_backward(g, loss, NULL, &b, &err);
    for (int32_t i = 0; i < b.weights.n && !status; i++)
        status = cnri_graph_output(g, b.weights.at[i].gradient, NULL);
    const cnr_tensor *types[] = {g->values.at[g->inputs.at[0]].type,
                                 status ? NULL : g->values.at[g->inputs.at[1]].type};
    if (!status) status = cnri_plan_make(g, &rt->devices, &o, types, 2, &plan, &err);
    if (!status) status = cnr_session_open(plan, &s, &err);
    cnr_tensor in = *types[0], want = status ? in : *types[1];
    in.data = input;
    want.data = labels;
    if (!status) status = cnr_session_set_input(s, 0, &in, &err);
    if (!status) status = cnr_session_set_input(s, 1, &want, &err);
    double first = status ? NAN : loss_of(s, &err);
    if (!ok(first > 0 && b.weights.n == 4, "%d weights have gradients, the loss is %.4f: %s: %s",
            (int)b.weights.n, first, err.where, err.text))
        return;
    int32_t checked = 0, wrong = 0;
    for (int32_t i = 0; i < b.weights.n; i++) {
        const char *name = g->values.at[b.weights.at[i].weight].name;
        cnr_tensor w = *g->values.at[b.weights.at[i].weight].type;
        const int64_t n = cnr_count(&w);
        const cnr_tensor *out;
        float *own = malloc((size_t)w.bytes), *got = malloc((size_t)w.bytes);
        loss_of(s, &err);
        memcpy(own, w.data, (size_t)w.bytes);
        if (cnr_session_output(s, 2 + i, &out, &err)) wrong++;
        else memcpy(got, out->data, (size_t)w.bytes);
        w.data = own;
        w.quant = NULL;
        for (int64_t k = 0; k<n; k += n> 16 ? n / 9 : 1) {
            const float was = own[k], step = 1e-2f;
            double side[2];
            for (int d = 0; d < 2; d++) {
                own[k] = was + (d ? -step : step);
                cnr_plan_set_weight(plan, name, &w, &err);
                side[d] = loss_of(s, &err);
            }
            own[k] = was;
            const double slope = (side[0] - side[1]) / (2 * (double)step);
            checked++;
            if (!(fabs(slope - (double)got[k]) < 2e-3 + 0.02 * fabs(slope))) {
                wrong++;
                note("%s[%d]: %g, by differences %g", name, (int)k, (double)got[k], slope);
            }
        }
        cnr_plan_set_weight(plan, name, &w, &err);
        free(own);
        free(got);
    }
    ok(checked > 20 && wrong == 0, "%d gradients agree with finite differences", (int)checked);
    cnr_session_close(s);
    cnri_plan_free(plan);
    cnri_backward_free(&b);
    cnri_graph_free(g);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(!open_plugins(&err), "plugins load, the template among them: %s", err.text))
        return done();
    for (int32_t i = 0; i < COUNT; i++) input[i] = (float)(i * 37 % 101) * 0.02f - 1;
    rewrites();
    splits();
    gradients();
    for (int32_t i = 0; i < nets.n; i++) cnri_graph_free(nets.at[i]);
    cnri_vec_free(&nets);
    cnr_close(rt);
    return done();
}
