/* Optimisers as nodes: against hand formulas, in place, masked, hooked, the same on any number of
 * threads; dropout and batch statistics as training has them; which samples judge. */
#include "numeric.h"

enum { N = 5000 };

static float x0[N], g0[N], v0[N], s0[N];

/* A float attribute. */
static cnr_attr real(const char *name, double value) {
    return (cnr_attr){.name = name, .type = CNR_ATTR_FLOAT, .set = 1, .f = value, .i = value != 0};
}

/* Plans and runs one step of optimiser `op`: variables[0] is the weight, the others its
 * memories; all must change. */
static bool step_by_plan(cnr_runtime *rt, const char *op, const cnr_attr *attrs, int32_t n_attrs,
                         float rate, float step, float **variables, int32_t n,
                         const float *gradient) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_attr *list[8];
    cnr_value in[8], out[4];
    cnr_graph *g = cnri_graph_new("step");
    cnr_tensor number = {.size = sizeof number, .dtype = CNR_f32};
    cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32, .rank = 1, .dim = {N}};
    g->updates = true;
    in[0] = cnri_graph_input(g, "rate", &number);
    in[1] = cnri_graph_input(g, "step", &number);
    in[3] = cnri_graph_input(g, "gradient", &type);
    type.flags = CNR_TENSOR_VARIABLE;
    for (int32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", (int)i);
        type.data = variables[i];
        in[i == 0 ? 2 : 3 + i] = cnri_graph_borrow(g, name, &type);
    }
    for (int32_t i = 0; i < n_attrs; i++) list[i] = &attrs[i];
    cnri_graph_node(g, op, "update", NULL, in, 3 + n, list, n_attrs, out, n);
    cnr_value seen = -1; /* what reads the weight runs before it changes */
    cnri_graph_node(g, "neg", "before", NULL, &in[3], 1, NULL, 0, &seen, 1);
    cnri_graph_output(g, seen, "y");
    cnr_model *m = NULL;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    cnr_status status = cnri_model_from_graph(rt, g, NULL, &m, &err);
    if (!status) status = cnr_plan_for(m, NULL, 0, &plan, &err);
    if (!status) status = cnr_session_open(plan, &s, &err);
    cnr_tensor given[] = {number, number, type};
    given[0].data = &rate;
    given[1].data = &step;
    given[2].data = (void *)gradient;
    given[0].bytes = given[1].bytes = sizeof(float);
    given[2].bytes = N * sizeof(float);
    given[2].flags = 0;
    for (int32_t i = 0; i < 3 && !status; i++)
        status = cnr_session_set_input(s, i, &given[i], &err);
    if (!status) status = cnr_session_run(s, &err);
    if (status) note("%s: %s", err.where, err.text);
    cnr_session_close(s);
    if (plan) cnr_plan_release(plan);
    cnr_release(m);
    return status == CNR_OK;
}

/* The largest relative difference of N numbers. */
static double worst(const float *got, const double *want) {
    double most = 0;
    for (int i = 0; i < N; i++) {
        const double off = fabs((double)got[i] - want[i]) / (1 + fabs(want[i]));
        if (!(off <= most)) most = off;
    }
    return most;
}

/* The operator's steps against the formula, with these options. */
static void test_sgd(cnr_runtime *rt, double momentum, bool nesterov, double decay) {
    static float x[N], v[N];
    static double want_x[N], want_v[N];
    float *variables[] = {x, v};
    const double rate = (double)0.05f;
    cnr_attr attrs[] = {real("momentum", momentum), real("nesterov", nesterov),
                        real("weight_decay", decay)};
    attrs[1].type = CNR_ATTR_BOOL;
    for (int i = 0; i < N; i++) {
        x[i] = x0[i];
        v[i] = v0[i];
        want_x[i] = (double)x0[i];
        want_v[i] = (double)v0[i];
    }
    bool good = true;
    for (int k = 1; k <= 3; k++) {
        good = good && step_by_plan(rt, "sgd", attrs, 3, 0.05f, (float)k, variables, 2, g0);
        for (int i = 0; i < N; i++) {
            const double g = (double)g0[i] + decay * want_x[i];
            want_v[i] = momentum * want_v[i] + g;
            want_x[i] -= rate * (nesterov ? g + momentum * want_v[i] : want_v[i]);
        }
    }
    ok(good && worst(x, want_x) < 2e-6 && worst(v, want_v) < 2e-6,
       "sgd, momentum %g, nesterov %d, decay %g: three steps as by hand", momentum, nesterov,
       decay);
}

/* The operator's steps against the formula, with this decay. */
static void test_adam(cnr_runtime *rt, double decay) {
    static float x[N], m[N], s[N];
    static double want_x[N], want_m[N], want_s[N];
    float *variables[] = {x, m, s};
    const cnr_attr attrs[] = {real("weight_decay", decay), real("beta1", 0.8)};
    for (int i = 0; i < N; i++) {
        x[i] = x0[i];
        want_x[i] = (double)x0[i];
        m[i] = s[i] = 0;
        want_m[i] = want_s[i] = 0;
    }
    bool good = true;
    for (int k = 1; k <= 3; k++) {
        good = good && step_by_plan(rt, "adam", attrs, 2, 0.01f, (float)k, variables, 3, g0);
        for (int i = 0; i < N; i++) {
            const double g = (double)g0[i] + decay * want_x[i];
            want_m[i] = 0.8 * want_m[i] + 0.2 * g;
            want_s[i] = 0.999 * want_s[i] + 0.001 * g * g;
            const double mean = want_m[i] / (1 - pow(0.8, k));
            const double root = sqrt(want_s[i] / (1 - pow(0.999, k)));
            want_x[i] -= (double)0.01f * mean / (root + 1e-8);
        }
    }
    ok(good && worst(x, want_x) < 2e-6 && worst(m, want_m) < 2e-6 && worst(s, want_s) < 2e-6,
       "adam, decay %g: three steps as by hand", decay);
}

/* ---- a net with what differs in training ---- */

/* Adds a node of one input and one whole attribute; its output's value, or -1. */
static cnr_value add(cnr_graph *g, const char *op, const char *name, cnr_value x, const char *attr,
                     int64_t i) {
    const cnr_attr a = {.name = attr, .type = CNR_ATTR_INT, .set = 1, .i = i}, *list[] = {&a};
    cnr_value out = -1;
    cnri_graph_node(g, op, name, NULL, &x, 1, list, attr ? 1 : 0, &out, 1);
    return out;
}

/* A small net. */
static cnr_graph *net(void) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32, .rank = 4, .dim = {1, 3, 6, 6}};
    cnr_value x = cnri_graph_input(g, "data", &type);
    x = add(g, "batch_normalization", "bn", x, NULL, 0);
    x = add(g, "relu", NULL, x, NULL, 0);
    x = add(g, "dropout", "drop", x, NULL, 0);
    x = add(g, "dense", "ip", x, "out", 4);
    cnri_graph_output(g, x, "scores");
    return g;
}

enum { BATCH = 32, SAMPLE = 3 * 6 * 6 };

/* Fills the trainer's inputs and labels at random by the seed. */
static void fill_batch(cnri_trainer *t, uint64_t seed) {
    numeric_state = seed;
    for (int64_t i = 0; i < BATCH * SAMPLE; i++)
        t->inputs[i] = (float)(i / 36 % 3 + 1) * (float)(numeric_random() - 0.3);
    for (int64_t i = 0; i < BATCH; i++) t->labels[i] = (int32_t)(i % 4);
}

/* The trained weight of that name; NULL: there is none. */
static cnri_trained *weight_of(cnri_trainer *t, const char *name) {
    for (int32_t i = 0; i < t->weights.n; i++)
        if (strcmp(t->weights.at[i].name, name) == 0) return &t->weights.at[i];
    return NULL;
}

/* Trains some steps; *loss receives the last loss. */
static cnri_trainer *train(cnr_runtime *rt, cnr_graph *g, cnri_train_options o, int steps,
                           double *loss) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_trainer *t = NULL;
    int64_t correct;
    o.batch = BATCH;
    o.seed = 11;
    cnr_status status = cnri_trainer_open(rt, g, &o, &t, &err);
    for (int i = 0; i < steps && !status; i++) {
        fill_batch(t, 5 + (uint64_t)i);
        status = cnri_trainer_step(t, loss, &correct, &err);
    }
    if (!status) status = cnri_trainer_fetch(t, &err);
    if (status) note("%s: %s", err.where, err.text);
    return t;
}

/* A net with batch normalisation and dropout is trained; the same seed drops the same elements. */
static void test_training(cnr_runtime *rt) {
    double loss = 0;
    cnr_graph *g = net(), *again = net();
    cnri_trainer *t = train(rt, g, (cnri_train_options){.rate = 0.05, .momentum = 0.9}, 1, &loss);
    if (!ok(t != NULL, "a net with batch normalisation and dropout is trained")) return;
    double mean[3] = {0}, square[3] = {0};
    for (int64_t i = 0; i < BATCH * SAMPLE; i++) {
        mean[i / 36 % 3] += (double)t->inputs[i] / (BATCH * 36);
        square[i / 36 % 3] += (double)t->inputs[i] * (double)t->inputs[i] / (BATCH * 36);
    }
    const cnri_trained *m = weight_of(t, "bn.mean"), *v = weight_of(t, "bn.var");
    bool good = m && v;
    for (int c = 0; c < 3 && good; c++)
        good = fabs((double)m->data[c] - 0.1 * mean[c]) < 1e-5 &&
               fabs((double)v->data[c] - (0.9 + 0.1 * (square[c] - mean[c] * mean[c]))) < 1e-5;
    ok(good, "stored mean and variance follow the batch's");
    ok(m && !m->learned && v && !v->learned && weight_of(t, "bn.scale")->learned,
       "and are measured, not learned");
    const float first = weight_of(t, "ip.weight")->data[0];
    cnri_trainer_free(t);
    t = train(rt, again, (cnri_train_options){.rate = 0.05, .momentum = 0.9}, 1, &loss);
    ok(weight_of(t, "ip.weight")->data[0] == first, "the same seed drops the same elements");
    cnri_trainer_free(t);
    cnri_graph_free(again);
    cnri_graph_free(g);
}

/* ---- on any number of threads ---- */

/* The weights do not depend on the number of threads. */
static void test_threads(const char *optimizer) {
    float kept[SAMPLE * 4];
    for (int32_t threads = 1; threads <= 3; threads++) {
        const char *const dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
        const cnr_open_options options = {.size = sizeof options,
                                          .plugin_dirs = dirs,
                                          .no_default_dirs = 1,
                                          .threads = threads};
        cnr_runtime *rt = NULL;
        cnr_error err = CNR_ERROR_INIT;
        double loss = 0;
        if (cnr_open(&rt, &options, &err)) continue;
        cnr_graph *g = net();
        cnri_trainer *t =
            train(rt, g,
                  (cnri_train_options){.rate = 0.02, .optimizer = optimizer, .deterministic = true},
                  6, &loss);
        const cnri_trained *w = t ? weight_of(t, "ip.weight") : NULL;
        if (threads == 1 && w) memcpy(kept, w->data, sizeof kept);
        else
            ok(w && memcmp(kept, w->data, sizeof kept) == 0,
               "%s: %d threads train as one does, bit for bit", optimizer, (int)threads);
        cnri_trainer_free(t);
        cnri_graph_free(g);
        cnr_close(rt);
    }
}

/* ---- the hook and masks ---- */

/* A hook: doubles each gradient, and counts its calls in *arg. */
static cnr_status doubled(void *arg, cnr_graph *g, cnr_value weight, cnr_value *gradient,
                          cnr_error *err) {
    const cnr_value in[] = {*gradient, *gradient};
    (void)weight, (void)err;
    ++*(int *)arg;
    return cnri_graph_node(g, "add", NULL, NULL, in, 2, NULL, 0, gradient, 1);
}

/* The hook is asked once for each weight that is learned, and the optimizer gets what it makes of a
 * gradient. */
static void test_hook(cnr_runtime *rt) {
    int calls = 0;
    double loss = 0;
    cnr_graph *g[] = {net(), net(), net()};
    cnri_trainer *none = train(rt, g[0], (cnri_train_options){.rate = 0}, 1, &loss);
    cnri_trainer *plain = train(rt, g[1], (cnri_train_options){.rate = 0.02}, 1, &loss);
    cnri_trainer *twice =
        train(rt, g[2], (cnri_train_options){.rate = 0.01, .hook = doubled, .hook_arg = &calls}, 1,
              &loss);
    if (!ok(none && plain && twice, "trainers open")) return;
    const float *a = weight_of(plain, "ip.weight")->data, *b = weight_of(twice, "ip.weight")->data,
                *o = weight_of(none, "ip.weight")->data;
    double off = 0, moved = 0;
    for (int i = 0; i < SAMPLE * 4; i++) {
        off = fmax(off, fabs((double)a[i] - (double)b[i]));
        moved = fmax(moved, fabs((double)a[i] - (double)o[i]));
    }
    is_int(calls, 4, "the hook is asked once for each weight that is learned");
    ok(off < 1e-6 && moved > 1e-4, "and what it makes of a gradient is what the optimiser gets");
    cnri_trainer_free(none);
    cnri_trainer_free(plain);
    cnri_trainer_free(twice);
    for (int i = 0; i < 3; i++) cnri_graph_free(g[i]);
}

/* Optimizers that don't fit are refused. */
static void test_refused(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_trainer *t = NULL;
    cnr_graph *g = net();
    cnri_train_options o = {.batch = 4, .rate = 0.1, .optimizer = "relu"};
    is_int(cnri_trainer_open(rt, g, &o, &t, &err), CNR_E_NOT_FOUND, "relu is no optimiser");
    has_text(err.text, "adam", "those known are told");
    o.optimizer = "adam";
    o.momentum = 0.9;
    is_int(cnri_trainer_open(rt, g, &o, &t, &err), CNR_E_ARG, "adam has no momentum");
    has_text(err.text, "momentum", "which is told");
    cnri_graph_free(g);
}

/* ---- which samples judge ---- */

/* Samples are divided into training and validation by the seeds. */
static void test_parts(void) {
    cnr_error err = CNR_ERROR_INIT;
    int64_t *order = NULL, *other = NULL, held = 0, held_too = 0;
    cnri_train_options o = {.validation = 0.1, .validation_seed = 1, .seed = 4};
    is_int(cnri_train_parts(&o, 1000, &order, &held, &err), CNR_OK, "a tenth is held back");
    is_int(held, 100, "of a thousand, a hundred");
    int seen[1000] = {0};
    for (int i = 0; i < 1000; i++) seen[order[i]]++;
    int once = 0;
    for (int i = 0; i < 1000; i++) once += seen[i] == 1;
    is_int(once, 1000, "each sample is in one part, and in one only");
    o.seed = 5;
    cnri_train_parts(&o, 1000, &other, &held_too, &err);
    ok(memcmp(order, other, 1000 * sizeof *order) == 0, "training's seed changes nothing in that");
    cnri_free(other);
    o.validation_seed = 2;
    cnri_train_parts(&o, 1000, &other, &held_too, &err);
    ok(memcmp(order, other, 1000 * sizeof *order) != 0, "its own seed does");
    cnri_free(other);
    o.validation = 7;
    cnri_train_parts(&o, 1000, &other, &held_too, &err);
    is_int(held_too, 7, "from one on it is a number");
    cnri_free(other);
    o.validation = 1000;
    is_int(cnri_train_parts(&o, 1000, &other, &held_too, &err), CNR_E_ARG, "some must be left");
    cnri_free(order);
}

int main(void) {
    cnr_runtime *rt = numeric_open();
    if (!rt) return done();
    for (int i = 0; i < N; i++) {
        x0[i] = (float)(numeric_random() - 0.5);
        g0[i] = (float)(numeric_random() - 0.5);
        v0[i] = (float)(numeric_random() - 0.5);
        s0[i] = (float)numeric_random();
    }
    test_sgd(rt, 0, false, 0);
    test_sgd(rt, 0.9, false, 0);
    test_sgd(rt, 0.9, false, 0.01);
    test_sgd(rt, 0.9, true, 0.01);
    test_adam(rt, 0);
    test_adam(rt, 0.01);
    test_training(rt);
    test_hook(rt);
    test_refused(rt);
    test_parts();
    cnr_close(rt);
    test_threads("sgd");
    test_threads("adam");
    return done();
}
