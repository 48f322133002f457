/* Rewrites, and whether claims lead to regions. Rewrites: nets with and without what they change
 * give the same answers, by the references alone. The nets are those of --net or shipped ones, and
 * drawn ones. */
#include "initial/initial.h"
#include "conform/judging.h"
#include "run/run.h"
#include <math.h>

enum { DRAWN = 3000, ENOUGH = 40, MOST_PASSES = 64, MOST_IN = 64, MOST_OUT = 16 };

/* ---- what a graph gives ---- */

/* Computes a node by its operator's reference; data: by value. False: it failed. */
static bool run_node(const cnr_graph *g, const cnri_node *node, void **data, cnr_error *err) {
    cnr_tensor in[MOST_IN], out[MOST_OUT], *outs[MOST_OUT];
    const cnr_tensor *seen_in[MOST_IN], *seen_out[MOST_OUT];
    cnr_node view = node->view;
    if (view.n_inputs > MOST_IN || view.n_outputs > MOST_OUT) return false;
    for (int32_t i = 0; i < view.n_inputs; i++) {
        seen_in[i] = node->in[i] < 0 ? NULL : &in[i];
        if (node->in[i] < 0) continue;
        in[i] = *g->values.at[node->in[i]].type;
        in[i].data = data[node->in[i]];
        in[i].bytes = cnr_dense_bytes(&in[i]);
    }
    for (int32_t i = 0; i < view.n_outputs; i++) {
        out[i] = *g->values.at[node->out[i]].type;
        out[i].bytes = cnr_dense_bytes(&out[i]);
        if (cnr_count(&out[i]) < 0 || out[i].bytes > (UINT64_C(64) << 20)) return false;
        out[i].data = data[node->out[i]] = cnri_alloc((size_t)out[i].bytes + 8);
        if (!out[i].data) return false;
        seen_out[i] = outs[i] = &out[i];
    }
    view.inputs = seen_in;
    view.outputs = seen_out;
    return cnri_judge_call(&view, outs, err) == CNR_OK;
}

/* Frees the values computed by evaluate (those that aren't the graph's own) and their list. */
static void forget(const cnr_graph *g, void **data) {
    for (int32_t v = 0; data && v < g->values.n; v++)
        if (data[v] != g->values.at[v].type->data) cnri_free(data[v]);
    cnri_free(data);
}

/* Data of all values, by number, computed by the references with inputs drawn from `seed`; NULL:
 * it can't be run. */
static void **evaluate(const cnr_graph *g, uint64_t seed, cnr_error *err) {
    void **data = cnri_alloc_zero(((size_t)g->values.n + 1) * sizeof *data);
    bool good = data != NULL;
    for (int32_t v = 0; good && v < g->values.n; v++) data[v] = g->values.at[v].type->data;
    for (int32_t i = 0; good && i < g->inputs.n; i++) {
        cnr_tensor t = *g->values.at[g->inputs.at[i]].type;
        cnri_dice dice = cnri_dice_of(seed, "input", i);
        good = cnr_count(&t) >= 0;
        if (!good || t.data) continue;
        t.data = data[g->inputs.at[i]] = cnri_alloc((size_t)cnr_dense_bytes(&t) + 8);
        if ((good = t.data != NULL)) cnri_values_fill(&t, CNRI_VALUES_SIGNED, NULL, &dice);
    }
    for (int32_t i = 0; i < g->nodes.n && good; i++) good = run_node(g, g->nodes.at[i], data, err);
    if (good) return data;
    forget(g, data);
    return NULL;
}

/* True if the answers differ by at most a part of the largest number. */
static bool same_answer(cnri_judging *j, const cnr_tensor *t, const void *a, const void *b,
                        int32_t output) {
    double maximum = 0, apart = 0;
    for (int64_t k = 0; k < cnr_count(t); k++) {
        const double x = cnri_element(t->dtype, a, k), y = cnri_element(t->dtype, b, k);
        if (isfinite(x)) maximum = fmax(maximum, fabs(x));
        if (x == y || (isnan(x) && isnan(y))) continue;
        apart = isfinite(x - y) ? fmax(apart, fabs(x - y)) : INFINITY;
    }
    if (apart <= 1e-4 * maximum + 1e-6) return true;
    return cnri_judging_fail(j, "output %d is off by %.3g from what it is without, at most %.3g",
                             (int)output, apart, maximum);
}

/* True if two nets give the same results on inputs drawn from the seed; false, with a finding.
 * *ran: the first net could be computed, else the result is true. */
static bool same_answers(cnri_judging *j, const cnr_graph *before, const cnr_graph *after,
                         uint64_t seed, bool *ran) {
    cnr_error err = CNR_ERROR_INIT;
    void **a = evaluate(before, seed, &err), **b = NULL;
    *ran = a != NULL;
    if (!a) return true; /* nothing can be told */
    bool good = (b = evaluate(after, seed, &err)) != NULL;
    if (!good) cnri_judging_fail(j, "the net that it makes can't be run: %s", err.text);
    for (int32_t i = 0; i < before->outputs.n && good; i++) {
        const cnr_value x = before->outputs.at[i], y = after->outputs.at[i];
        good = same_answer(j, before->values.at[x].type, a[x], b[y], i);
    }
    forget(before, a);
    if (b) forget(after, b);
    return good;
}

/* ---- one net ---- */

/* True if the outputs have the same types and shapes; false, with a finding. */
static bool same_outputs(cnri_judging *j, const cnr_graph *before, const cnr_graph *after) {
    if (before->outputs.n != after->outputs.n || before->inputs.n != after->inputs.n)
        return cnri_judging_fail(j, "the net has other inputs or outputs than before");
    for (int32_t i = 0; i < before->outputs.n; i++) {
        const cnr_tensor *x = cnri_graph_type(before, before->outputs.at[i]);
        const cnr_tensor *y = cnri_graph_type(after, after->outputs.at[i]);
        if (!cnr_same_shape(x, y) || x->dtype != y->dtype)
            return cnri_judging_fail(j, "output %d has another shape or type than before", (int)i);
    }
    return true;
}

/* A rewrite that quantises must change nothing unless it is asked to. */
static bool quantises, applies;
/* Stands for the host's function: notes that a rewrite asked for quantisation, and answers no. */
static int32_t should_quantise(const struct cnr_graph *g, int32_t node) {
    (void)g, (void)node;
    quantises = quantises || applies;
    return 0;
}

/* Applies the rewrite until it changes nothing; *changes: number of changes that it reports. False:
 * it failed. */
static bool apply(cnri_judging *j, cnr_graph *g, int32_t *changes) {
    const cnr_rewrite *r = j->descriptor;
    cnr_error err = CNR_ERROR_INIT;
    *changes = 0;
    for (int32_t pass = 0;; pass++) {
        g->renames = applies = true;
        const int32_t n = r->apply(g, &err);
        g->renames = applies = false;
        g->insert_before = -1;
        if (n < 0) return cnri_judging_fail(j, "apply failed: %s", err.text);
        if (g->problems.n)
            return cnri_judging_fail(j, "it made a wrong net: %s", g->problems.at[0].text);
        if (n == 0) return true;
        *changes += n;
        if (pass >= MOST_PASSES) return cnri_judging_fail(j, "it changes without end");
    }
}

/* Applies other plugins' rewrites first, because this one may be written for their results; false:
 * it failed. */
static bool rewrite_by_others(cnri_judging *j, cnr_graph *g) {
    const char *off[64] = {NULL};
    cnr_error err = CNR_ERROR_INIT;
    int32_t n = 0;
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_REWRITE) && n < 63; i++) {
        const cnr_rewrite *r = cnri_descriptor_at(CNR_KIND_REWRITE, i);
        if (cnri_owner(r) == j->o->plugin) off[n++] = r->name;
    }
    return cnri_graph_rewrite(g, off, NULL, 0, &err) == CNR_OK;
}

/* Judges the rewrite on a graph; false, with a finding. *fired: it changed something, and answers
 * could be compared. */
static bool judge_graph(cnri_judging *j, const cnr_graph *g, bool *fired) {
    cnr_error err = CNR_ERROR_INIT;
    bool good = true;
    *fired = false;
    for (int32_t others = 0; others < 2 && good && !*fired; others++) {
        cnr_graph *before = NULL, *after = NULL;
        int32_t changes = 0;
        bool ran = true;
        if (cnri_graph_clone(g, &before, &err) == CNR_OK &&
            (!others || rewrite_by_others(j, before)) &&
            cnri_graph_clone(before, &after, &err) == CNR_OK) {
            good = apply(j, after, &changes) && (!changes || same_outputs(j, before, after));
            for (uint64_t seed = 1; seed < 4 && good && changes && ran; seed++)
                good = same_answers(j, before, after, seed, &ran);
        }
        *fired = changes && ran;
        if (before) cnri_graph_free(before);
        if (after) cnri_graph_free(after);
    }
    return good;
}

/* ---- the nets ---- */

/* Judges the rewrite on a net of a file with random weights; false, with a finding. *fired: it
 * changed something. */
static bool judge_file(cnri_judging *j, const char *path, bool *fired) {
    const cnr_load_options o = {.size = sizeof o, .weights = "random:1"};
    cnr_error err = CNR_ERROR_INIT;
    cnri_shapes shapes = {0};
    cnr_model *model;
    cnr_graph *g = NULL;
    cnri_judging_case(j, "%s", path);
    cnr_status status = cnr_load(j->o->rt, path, &o, &model, &err);
    if (!status) status = cnri_input_shapes(model, 1, &shapes, &err);
    if (!status) status = cnri_graph_clone(model->graph, &g, &err);
    if (!status) status = cnri_graph_bind(g, shapes.list, shapes.n, &err);
    const bool good = status ? cnri_judging_ok(j, "load", status, &err) : judge_graph(j, g, fired);
    if (g) cnri_graph_free(g);
    cnri_shapes_free(&shapes);
    return good;
}

/* Judges the rewrite on the graph that it brings itself, if any; false, with a finding. *fired
 * counts a change. */
static bool judge_example(cnri_judging *j, int32_t *fired) {
    const cnr_rewrite *r = j->descriptor;
    cnr_error err = CNR_ERROR_INIT;
    bool once = false;
    if (!CNRI_HAS(r, example)) return true;
    cnri_judging_case(j, "its example");
    cnr_graph *g = cnri_graph_new("example");
    if (!g) return cnri_judging_fail(j, "out of memory");
    cnr_status status = r->example(g, &err);
    if (!status) status = cnri_graph_status(g, false, &err);
    if (!status) status = cnri_fill_random(g, j->o->check.seed, &err);
    bool good = cnri_judging_ok(j, "example", status, &err) && judge_graph(j, g, &once);
    if (good && !once) good = cnri_judging_fail(j, "it does not change its own example");
    *fired += once;
    cnri_graph_free(g);
    return good;
}

/* Judges the rewrite on drawn nets; *fired grows by those that it changed. False, with a finding
 * about a net. */
static bool judge_drawn(cnri_judging *j, int32_t *fired) {
    bool good = true;
    for (int32_t i = 0; i < DRAWN && *fired < ENOUGH && good; i++) {
        cnr_graph *g = cnri_drawn_net(j);
        bool once = false;
        if (!g) continue;
        if (i % 50 == 0) cnri_judging_case(j, "drawn nets from number %d on", (int)i);
        good = judge_graph(j, g, &once);
        if (!good) {
            cnri_text_add(&j->why, " (drawn net %d of seed %lld:", (int)i,
                          (long long)j->o->check.seed);
            for (int32_t k = 0; k < g->nodes.n; k++)
                cnri_text_add(&j->why, " %s", g->nodes.at[k]->view.desc->name);
            cnri_text_add(&j->why, ")");
        }
        *fired += once;
        cnri_graph_free(g);
    }
    return good;
}

/* Judges that nets give the same results after the rewrite. False: a finding says why it isn't
 * so. */
bool cnri_judge_rewrite(cnri_judging *j) {
    int32_t fired = 0, files = 0;
    cnri_host_mutable()->graph_should_quantise = should_quantise;
    for (const char *const *net = j->o->nets; net && *net; net++, files++) {
        bool once = false;
        if (!judge_file(j, *net, &once)) return false;
        fired += once;
    }
    if (!judge_example(j, &fired) || !judge_drawn(j, &fired)) return false;
    if (!fired && quantises)
        return cnri_judging_skip(j, "it quantises, and only `cnnrun quantize` asks for that");
    return fired > 0 || cnri_judging_fail(j,
                                          "it changes none of %d nets and none of %d drawn ones; "
                                          "it needs an example, or --net FILE",
                                          (int)files, (int)DRAWN);
}

/* ---- devices that claim regions ---- */

/* Number of steps that compute a region, in a plan of the net on the device; -1: `why` says what
 * failed. */
static int32_t regions_of(cnri_judging *j, const char *path, const char *device) {
    const cnr_load_options o = {.size = sizeof o, .weights = "random:1", .device = device};
    cnr_error err = CNR_ERROR_INIT;
    cnri_shapes shapes = {0};
    cnr_model *model;
    cnr_plan *plan;
    int32_t n = 0;
    cnri_judging_case(j, "%s", path);
    cnr_status status = cnr_load(j->o->rt, path, &o, &model, &err);
    if (!status) status = cnri_input_shapes(model, 1, &shapes, &err);
    if (!status) status = cnr_plan_for(model, shapes.list, shapes.n, &plan, &err);
    for (int32_t i = 0; !status && i < plan->steps.n; i++)
        n += plan->steps.at[i].view.subgraph != NULL;
    cnri_shapes_free(&shapes);
    return cnri_judging_ok(j, path, status, &err) ? n : -1;
}

/* Judges that claimed regions are sound and leave no node out of order; skipped without claim.
 * False: a finding says why it isn't so. */
bool cnri_judge_claims(cnri_judging *j) {
    const cnr_device_class *cls = j->descriptor;
    int32_t nets = 0, found = 0;
    if (!CNRI_HAS(cls, claim)) return cnri_judging_skip(j, "the class has no claim");
    for (const char *const *net = j->o->nets; net && *net; net++, nets++) {
        const int32_t n = regions_of(j, *net, cls->family);
        if (n < 0) return false;
        found += n;
    }
    if (!nets) return cnri_judging_skip(j, "there is no net to plan");
    return found > 0 ||
           cnri_judging_fail(j,
                             "no region that it claims is computed in any of %d nets; --net FILE "
                             "names one that it is for",
                             (int)nets);
}
