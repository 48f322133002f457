/* Rewrites: each keeps the net's output, does what it says, and can be switched off. */
#include "core/graph/toy.h"
#include <math.h>

static const float weights[] = {.5f, -1, 2, .25f, 3, -.5f}, biases[] = {.1f, -.2f};
static const float scales[] = {2, -3}, shifts[] = {.5f, 1}, more[] = {.5f, .5f};
static const float picture[] = {1, 2, 3, -4, 5, -6};

static const cnr_attr no_bias = {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1};
static const cnr_attr *const without[] = {&no_bias};

typedef cnr_value (*build_fn)(cnr_graph *g, cnr_value x);

/* Builds, runs, rewrites, runs again; checks the node count and that the outputs agree. */
static cnr_graph *rewritten(build_fn build, const char *const *off, int32_t nodes,
                            const char *what) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = cnri_graph_new("net");
    const cnr_value x = toy_input(g, "x", TOY_TYPE(CNR_f32, 2, 3));
    cnri_graph_output(g, build(g, x), "out");
    int64_t n = 0, m = 0;
    float *before = NULL, *after = NULL;
    const float *inputs[] = {picture};
    if (cnri_graph_bind(g, NULL, 0, &err) == CNR_OK) before = toy_run(g, inputs, &n);
    cnr_graph *copy = cnri_graph_copy(g);
    if (cnri_graph_rewrite(copy, off, NULL, 0, &err) == CNR_OK) after = toy_run(copy, inputs, &m);
    ok(before && after && n == m && toy_close(before, after, n), "%s: outputs stay", what);
    if (!before || !after) note("%s: %s", err.where, err.text);
    is_int(copy->nodes.n, nodes, what);
    /* The original has not changed. */
    float *again = toy_run(g, inputs, &m);
    ok(again && toy_close(before, again, n), "%s: the original too", what);
    free(before);
    free(after);
    free(again);
    cnri_graph_free(g);
    return copy;
}

/* Adds a linear node of x, with or without a bias; returns its output. */
static cnr_value linear(cnr_graph *g, cnr_value x, bool bias) {
    const cnr_value w = toy_const(g, "w", TOY_TYPE(CNR_f32, 2, 3), weights),
                    b = bias ? toy_const(g, "b", TOY_TYPE(CNR_f32, 2), biases) : -1;
    return bias ? TOY_NODE(g, "toy_linear", "fc", NULL, 0, x, w, b)
                : TOY_NODE(g, "toy_linear", "fc", without, 1, x, w, b);
}

/* Adds an affine node. */
static cnr_value affine(cnr_graph *g, cnr_value x, const char *name, const float *by) {
    char s[32], b[32];
    snprintf(s, sizeof s, "%s.s", name);
    snprintf(b, sizeof b, "%s.b", name);
    const cnr_value scale = toy_const(g, s, TOY_TYPE(CNR_f32, 2), by),
                    shift = toy_const(g, b, TOY_TYPE(CNR_f32, 2), shifts);
    return TOY_NODE(g, "toy_affine", name, NULL, 0, x, scale, shift);
}

/* A net for the test of identities. */
static cnr_value identities(cnr_graph *g, cnr_value x) {
    cnr_value y = TOY_NODE(g, "toy_pass", NULL, NULL, 0, x);
    y = TOY_NODE(g, "toy_pass", NULL, NULL, 0, y);
    y = TOY_NODE(g, "toy_rectify", NULL, NULL, 0, y);
    return TOY_NODE(g, "toy_pass", NULL, NULL, 0, y);
}
/* A net of an identity alone. */
static cnr_value only_identity(cnr_graph *g, cnr_value x) {
    return TOY_NODE(g, "toy_pass", NULL, NULL, 0, x);
}
/* A net with a node that nobody reads. */
static cnr_value dead(cnr_graph *g, cnr_value x) {
    TOY_NODE(g, "toy_rectify", NULL, NULL, 0, TOY_NODE(g, "toy_rectify", NULL, NULL, 0, x));
    return TOY_NODE(g, "toy_rectify", "kept", NULL, 0, x);
}
/* A net that computes with constants. */
static cnr_value constants(cnr_graph *g, cnr_value x) {
    const cnr_value k = toy_const(g, "k", TOY_TYPE(CNR_f32, 2, 3), weights);
    const cnr_value kk = TOY_NODE(g, "toy_sum", "kk", NULL, 0, k, k);
    const cnr_value r = TOY_NODE(g, "toy_rectify", "r", NULL, 0, kk);
    return TOY_NODE(g, "toy_sum", "out", NULL, 0, r, x);
}
/* A net in which an affine follows a bias. */
static cnr_value bias_affine(cnr_graph *g, cnr_value x) {
    return affine(g, linear(g, x, true), "bn", scales);
}
/* A net of two affines. */
static cnr_value plain_affines(cnr_graph *g, cnr_value x) {
    return affine(g, affine(g, linear(g, x, false), "bn", scales), "sc", more);
}
/* A net in which weights are shared. */
static cnr_value shared_weights(cnr_graph *g, cnr_value x) {
    const cnr_value a = linear(g, x, true);
    const cnr_value b = TOY_NODE(g, "toy_linear", "fc2", NULL, 0, x, cnri_graph_find(g, "w"),
                                 cnri_graph_find(g, "b"));
    return TOY_NODE(g, "toy_sum", NULL, NULL, 0, affine(g, a, "bn", scales), b);
}
/* A net in which a value is read twice. */
static cnr_value value_read_twice(cnr_graph *g, cnr_value x) {
    const cnr_value a = linear(g, x, true);
    return TOY_NODE(g, "toy_sum", NULL, NULL, 0, affine(g, a, "bn", scales), a);
}
/* A net whose weight is not constant. */
static cnr_value variable_weight(cnr_graph *g, cnr_value x) {
    const cnr_value y = bias_affine(g, x);
    g->values.at[cnri_graph_find(g, "w")].type->flags |= CNR_TENSOR_VARIABLE;
    return y;
}

/* ---- a plugin's rewrites: one that never comes to rest, one that fails ---- */

static int32_t restless_calls;
/* A rewrite that always claims a change. */
static int32_t restless(cnr_graph *g, cnr_error *err) {
    (void)g, (void)err;
    restless_calls++;
    return 1;
}
/* A rewrite that fails. */
static int32_t failing(cnr_graph *g, cnr_error *err) {
    return cnri_fail(err, CNR_E_STATE, g->name, "it failed");
}
static const cnr_rewrite of_plugin[] = {
    {sizeof(cnr_rewrite), 5, "toy-restless", "changes nothing, for ever", restless, 0, 0, NULL},
    {sizeof(cnr_rewrite), 6, "toy-failing", "fails", failing, 0, 0, NULL},
};

/* A log that says nothing. */
static void quiet(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text;
}

/* Rewrites of plugins are listed and applied; one that never ends is stopped, one that fails fails
 * the whole. */
static void test_plugins(void) {
    cnr_error err = CNR_ERROR_INIT;
    const char *name, *summary;
    toy_register(CNR_KIND_REWRITE, &of_plugin[0]);
    bool seen = false;
    for (int32_t i = 0; cnri_rewrite_at(i, &name, &summary); i++)
        seen = seen || strcmp(name, "toy-restless") == 0;
    ok(seen, "plugins' rewrites are listed");
    cnri_graph_free(rewritten(dead, NULL, 1, "with a restless rewrite"));
    ok(restless_calls > 1 && restless_calls < 1000, "which is stopped some time");
    toy_register(CNR_KIND_REWRITE, &of_plugin[1]);
    cnr_graph *g = cnri_graph_new("net");
    cnri_graph_output(g, dead(g, toy_input(g, "x", TOY_TYPE(CNR_f32, 1))), "out");
    is_int(cnri_graph_rewrite(g, NULL, NULL, 0, &err), CNR_E_STATE,
           "a failing one fails the whole");
    is_text(err.text, "it failed", "with its own words");
    const char *const off[] = {"toy-failing", "toy-restless", NULL};
    is_int(cnri_graph_rewrite(g, off, NULL, 0, &err), CNR_OK, "unless switched off");
    cnri_graph_free(g);
}

int main(void) {
    cnri_log_to(quiet, NULL, CNR_LOG_ERROR);
    toy_begin();
    cnri_graph_free(rewritten(identities, NULL, 1, "identities go"));
    cnri_graph_free(rewritten(only_identity, NULL, 1, "but not one between input and output"));
    const char *const no_identity[] = {"remove-identity", NULL};
    cnri_graph_free(rewritten(identities, no_identity, 4, "identities stay when asked to"));
    cnri_graph_free(rewritten(dead, NULL, 1, "the dead go"));
    const char *const no_dead[] = {"remove-dead", NULL};
    cnri_graph_free(rewritten(dead, no_dead, 3, "the dead stay when asked to"));
    cnri_graph_free(rewritten(constants, NULL, 1, "constants are folded"));
    cnr_graph *g = rewritten(bias_affine, NULL, 1, "an affine after a linear with bias");
    ok(cnri_graph_type(g, g->nodes.at[0]->in[1])->data != NULL, "the weight has data");
    cnri_graph_free(g);
    const char *const no_affine[] = {"fold-affine", NULL};
    cnri_graph_free(rewritten(bias_affine, no_affine, 2, "affines stay when asked to"));
    cnri_graph_free(rewritten(plain_affines, NULL, 1, "two affines, and no bias before"));
    cnri_graph_free(rewritten(shared_weights, NULL, 3, "shared weights are copied"));
    cnri_graph_free(rewritten(value_read_twice, NULL, 3, "a value read twice is not folded"));
    cnri_graph_free(rewritten(variable_weight, NULL, 2, "weights in training are not folded"));
    test_plugins();
    return done();
}
