/* Nets that change through the public header: copies, weights, masks, gradients, training in place,
 * whole numbers, files. */
#include "../../guests/guests.h"
#include <cnnrun/cnnrun.h>
#include <errno.h>
#include <math.h>
#include <unistd.h>

static char spec[64];
static const char *const first = "ip1.weight", *const last = "ip2.weight";

/* A weighted sum by which a weight is known again; NaN: there is none. */
static double sum(const cnr_model *m, const char *name) {
    const cnr_tensor *t = NULL;
    double s = 0;
    if (cnr_weight(m, name, &t, NULL)) return NAN;
    for (int64_t i = 0; i < cnr_count(t); i++)
        s += ((const float *)t->data)[i] * (double)(i % 7 + 1);
    return s;
}

/* How many numbers of a weight are 0; -1: there is none of the name. */
static int64_t zeros(const cnr_model *m, const char *name) {
    const cnr_tensor *t = NULL;
    int64_t n = 0;
    if (cnr_weight(m, name, &t, NULL)) return -1;
    for (int64_t i = 0; i < cnr_count(t); i++) n += ((const float *)t->data)[i] == 0;
    return n;
}

/* Writes a multiple of a weight back; every `hole`-th element is 0. */
static cnr_status scale(cnr_model *m, const char *name, float factor, int64_t hole,
                        cnr_error *err) {
    const cnr_tensor *t = NULL;
    cnr_status status = cnr_weight(m, name, &t, err);
    if (status) return status;
    cnr_tensor to = *t;
    float *data = malloc((size_t)t->bytes);
    for (int64_t i = 0; i < cnr_count(t); i++)
        data[i] = hole && i % hole == 0 ? 0 : factor * ((const float *)t->data)[i];
    to.data = data;
    status = cnr_set_weight(m, name, &to, err);
    free(data);
    return status;
}

/* The usual options of a training. */
static cnr_train_options usual(void) {
    cnr_train_options o = {.size = sizeof o};
    cnr_train_options_default(&o);
    o.data = spec;
    o.test = "";
    o.batch = 10;
    o.epochs = 1;
    o.validation = 0;
    return o;
}

/* Tests: a copy's weights change alone; unknown names, other shapes and changes while a plan is
 * held are refused. */
static void test_copies(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *copy = NULL;
    const cnr_tensor *t;
    const double before = sum(m, first);
    ok(cnr_weight_count(m) == 8 && cnr_weight_name(m, 8) == NULL, "eight weights");
    ok(!cnr_copy(m, &copy, &err) && sum(copy, first) == before, "a copy has the same weights");
    ok(!scale(copy, first, 2, 0, &err) &&
           fabs(sum(copy, first) - 2 * before) < 1e-6 * fabs(before) + 1e-6,
       "they change: %s", err.text);
    ok(sum(m, first) == before, "alone");
    ok(cnr_weight(m, "ip1.weigth", &t, &err) == CNR_E_NOT_FOUND && strstr(err.text, first),
       "a slip is told with what was meant: %s", err.text);
    cnr_tensor wrong =
        {.size = sizeof wrong, .dtype = CNR_f32, .rank = 1, .dim = {3}, .data = &err, .bytes = 12};
    ok(cnr_set_weight(copy, first, &wrong, &err) == CNR_E_SHAPE, "another shape: %s", err.text);
    ok(cnr_set_weight(copy, "data", &wrong, &err) == CNR_E_NOT_FOUND, "an input is no weight: %s",
       err.text);
    cnr_plan *plan = NULL;
    ok(!cnr_plan_for(copy, NULL, 0, &plan, &err) && scale(copy, first, 2, 0, &err) == CNR_E_STATE,
       "not while a plan is held: %s", err.text);
    cnr_plan_release(plan);
    ok(!scale(copy, first, 0.5f, 0, &err) &&
           fabs(sum(copy, first) - before) < 1e-4 * fabs(before) + 1e-4,
       "but then");
    cnr_release(copy);
}

/* A session runs with weights that were set meanwhile. */
static void test_runs_follow(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *out;
    float pixels[784], before[10], after[10];
    const cnr_tensor in = {.size = sizeof in,
                           .dtype = CNR_f32,
                           .rank = 4,
                           .dim = {1, 1, 28, 28},
                           .data = pixels,
                           .bytes = sizeof pixels},
                     *const list[] = {&in};
    for (int i = 0; i < 784; i++) pixels[i] = (float)(i % 13) / 13;
    cnr_model *copy = NULL;
    if (!ok(!cnr_copy(m, &copy, &err) && !cnr_run_tensors(copy, list, 1, &out, 1, &err), "runs: %s",
            err.text))
        return;
    memcpy(before, out->data, sizeof before);
    ok(!scale(copy, last, 0, 0, &err) && !cnr_run_tensors(copy, list, 1, &out, 1, &err),
       "and again");
    memcpy(after, out->data, sizeof after);
    ok(memcmp(before, after, sizeof before) != 0, "with the new weight");
    cnr_release(copy);
}

/* Masks of a copy, and training with them. */
static void test_masks(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_train_options o = usual();
    cnr_train_result r = {.size = sizeof r};
    cnr_model *copy = NULL, *again = NULL;
    ok(!cnr_copy(m, &copy, &err) && !scale(copy, first, 1, 3, &err) &&
           !cnr_mask(copy, first, 1, &err),
       "a third of a weight is 0, and masked: %s", err.text);
    const int64_t before = zeros(copy, first);
    const double was = sum(copy, first);
    o.optimizer = "adam";
    o.momentum = -1;
    o.beta1 = 0.8;
    ok(!cnr_train_model(copy, &o, NULL, &r, &err) && r.epochs == 1 && isnan(r.test), "trains: %s",
       err.text);
    ok(zeros(copy, first) == before && sum(copy, first) != was, "zeros stay, the rest moves");
    ok(!cnr_copy(copy, &again, &err) && !cnr_train_model(again, &o, NULL, &r, &err) &&
           zeros(again, first) == before,
       "a copy's as well");
    ok(!cnr_mask(again, first, 0, &err) && !cnr_train_model(again, &o, NULL, &r, &err) &&
           zeros(again, first) < before / 2,
       "let go, they move");
    ok(cnr_mask(copy, "nothing", 1, &err) == CNR_E_NOT_FOUND, "a mask of nothing: %s", err.text);
    o.beta1 = 0.5;
    o.optimizer = "sgd";
    ok(cnr_train_model(copy, &o, NULL, &r, &err) && strstr(err.text, "beta1"),
       "sgd has no beta1: %s", err.text);
    cnr_release(copy);
    cnr_release(again);
}

/* Scripts lie beside the program, as an installation has them. */
static void place_scripts(void) {
    char *folder = cnri_executable_dir();
    char *link = folder ? cnri_format("%s/../scripts", folder) : NULL;
    if (link && symlink(CNRT_SOURCE_DIR "/scripts", link) != 0 && errno != EEXIST)
        note("%s: no link", link);
    cnri_free(link);
    cnri_free(folder);
}

/* Trains with an optimiser in a file, by its name, and with the options around it. */
static void test_optimizer(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_train_options o = usual();
    cnr_train_result r = {.size = sizeof r};
    cnr_model *copy = NULL, *other = NULL;
    place_scripts();
    o.optimizer = "adamw";
    o.momentum = -1;
    o.rate = 0.001;
    ok(!cnr_copy(m, &copy, &err) && !cnr_copy(m, &other, &err) &&
           !cnr_train_model(copy, &o, NULL, &r, &err),
       "adamw trains: %s", err.text);
    o.clip = 1e-6;
    o.average = 0.5;
    o.accumulate = 1;
    o.layer_rates = "*=0.5";
    o.freeze = first;
    ok(!cnr_train_model(other, &o, NULL, &r, &err), "with more around it: %s", err.text);
    ok(sum(other, first) == sum(m, first) && sum(copy, first) != sum(m, first),
       "what is frozen stays");
    ok(sum(other, last) != sum(copy, last), "what is not moves less");
    o.beta1 = 0.5;
    o.optimizer = "sgd";
    ok(cnr_train_model(copy, &o, NULL, &r, &err) && strstr(err.text, "has no beta1"),
       "sgd.lua has no beta1: %s", err.text);
    cnr_release(copy);
    cnr_release(other);
}

/* Steps whose rate was asked for. */
typedef struct rates {
    int64_t n, steps;
    double worst;
} rates;

/* A rate by steps; notes a step out of order. */
static double rate(void *arg, int64_t step, int64_t steps) {
    rates *r = arg;
    if (step != r->n++) r->worst = 1;
    r->steps = steps;
    return 0;
}

/* A schedule: 0.01, and NAN from the middle on. */
static double no_rate(void *arg, int64_t step, int64_t steps) {
    (void)arg;
    return step * 2 < steps ? 0.01 : (double)NAN;
}

/* A hook sets the rate, which moves the weights. */
static void test_schedule(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_train_options o = usual();
    cnr_train_result r = {.size = sizeof r};
    rates seen = {0};
    const double before = sum(m, first);
    o.epochs = 2;
    o.decay = 0;
    o.schedule = rate;
    o.schedule_arg = &seen;
    const bool good = !cnr_train_model(m, &o, NULL, &r, &err);
    ok(good && seen.n == 8 && seen.steps == 8 && seen.worst == 0,
       "a schedule is asked for each of %d steps", (int)seen.n);
    ok(sum(m, first) == before, "and is what moves the weights: not at all");
    o.schedule = no_rate;
    ok(cnr_train_model(m, &o, NULL, &r, &err) == CNR_E_ARG && strstr(err.text, "step 4"),
       "no rate: %s", err.text);
    ok(sum(m, first) == before, "the net is as it was");
}

/* The loss of a batch; *g receives the gradients. */
static double loss_of(cnr_model *m, const cnr_tensor *in, const int32_t *labels, cnr_gradients *g) {
    cnr_error err = CNR_ERROR_INIT;
    *g = (cnr_gradients){.size = sizeof *g};
    if (cnr_gradients_of(m, NULL, in, labels, 3, g, &err)) note("%s: %s", err.where, err.text);
    return g->loss;
}

/* The gradient of a weight, or NULL. */
static const cnr_tensor *gradient(const cnr_gradients *g, const char *name) {
    for (int32_t i = 0; i < g->n; i++)
        if (strcmp(g->names[i], name) == 0) return g->at[i];
    return NULL;
}

/* Gradients of a batch, for all weights. */
static void test_gradients(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_gradients g;
    float pixels[3 * 784];
    static const int32_t labels[] = {3, 1, 7};
    const cnr_tensor in = {.size = sizeof in,
                           .dtype = CNR_f32,
                           .rank = 4,
                           .dim = {3, 1, 28, 28},
                           .data = pixels,
                           .bytes = sizeof pixels};
    const cnr_tensor *w = NULL;
    cnr_model *copy = NULL;
    for (int i = 0; i < 3 * 784; i++) pixels[i] = (float)((i * 37) % 101) / 101;
    if (!ok(!cnr_copy(m, &copy, &err), "a copy to derive")) return;
    const double loss = loss_of(copy, &in, labels, &g);
    ok(loss > 0 && g.n == 8 && cnr_count(g.scores) == 30, "loss %g, eight gradients", loss);
    double slope = 0; /* along the gradient of ip2.weight: the sum of its squares */
    const cnr_tensor *d = gradient(&g, last);
    if (!ok(d && !cnr_weight(copy, last, &w, &err), "one of ip2")) return;
    float *moved = malloc((size_t)w->bytes);
    for (int64_t i = 0; i < cnr_count(d); i++) {
        const double x = (double)((const float *)d->data)[i];
        slope += x * x;
        moved[i] = ((const float *)w->data)[i] - (float)(1e-3 * x / (1 + fabs(x)));
    }
    double expected = 0;
    for (int64_t i = 0; i < cnr_count(d); i++)
        expected += (double)((const float *)d->data)[i] *
                    ((double)moved[i] - (double)((const float *)w->data)[i]);
    cnr_tensor to = *w;
    to.data = moved;
    ok(!cnr_set_weight(copy, last, &to, &err), "a step of our own: %s", err.text);
    const double after = loss_of(copy, &in, labels, &g);
    ok(slope > 0 && after < loss && fabs(after - loss - expected) < 0.1 * fabs(expected),
       "changes the loss as its gradient says: %g, %g expected", after - loss, expected);
    const double held = loss_of(m, &in, labels, &g);
    ok(fabs(held - loss) < 1e-6, "the net it is a copy of has not moved");
    ok(!scale(copy, first, 1, 2, &err) && !cnr_mask(copy, first, 1, &err), "half of ip1 is masked");
    (void)loss_of(copy, &in, labels, &g);
    d = gradient(&g, first);
    int64_t wrong = 0;
    for (int64_t i = 0; d && i < cnr_count(d); i += 2) wrong += ((const float *)d->data)[i] != 0;
    ok(d && wrong == 0, "and has no gradient there");
    g = (cnr_gradients){.size = sizeof g};
    ok(cnr_gradients_of(copy, NULL, &in, labels, 2, &g, &err) == CNR_E_ARG, "labels for all: %s",
       err.text);
    static const int32_t high[] = {3, 1, 10};
    ok(cnr_gradients_of(copy, NULL, &in, high, 3, &g, &err) == CNR_E_ARG, "that there are: %s",
       err.text);
    const cnr_tensor flat = {.size = sizeof flat,
                             .dtype = CNR_f32,
                             .rank = 2,
                             .dim = {3, 784},
                             .data = pixels,
                             .bytes = sizeof pixels};
    ok(cnr_gradients_of(copy, NULL, &flat, labels, 3, &g, &err) == CNR_E_SHAPE, "a batch: %s",
       err.text);
    const cnr_gradient_options none = {.size = sizeof none, .loss = "sgd"};
    ok(cnr_gradients_of(copy, &none, &in, labels, 3, &g, &err) == CNR_E_NOT_FOUND, "a loss: %s",
       err.text);
    free(moved);
    cnr_release(copy);
}

/* What is told of each layer. */
static void test_layers(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_layer l = {.size = sizeof l};
    int32_t n = 0, weights = 0;
    double flops = 0;
    for (; !cnr_layer_at(m, n, &l, &err); n++) {
        weights += l.n_weights;
        flops += l.flops;
    }
    ok(err.code == CNR_E_NOT_FOUND && n > 6 && weights == 8, "%d layers: %s", (int)n, err.text);
    ok(flops > 4e6 && flops < 1e7, "%g operations", flops);
    ok(!cnr_layer_at(m, 0, &l, &err) && l.n_inputs == 1 &&
           strcmp(l.inputs[0], cnr_input_name(m, 0)) == 0 && l.type->dim[0] == 1,
       "the first reads the input, one picture");
}

/* A changed net is saved and loaded. */
static void test_files(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    char path[80];
    cnr_model *back = NULL;
    snprintf(path, sizeof path, "%s.cnr", spec + 7);
    ok(!cnr_save(m, path, &err) && !cnr_load(guests_rt, path, NULL, &back, &err) &&
           sum(back, first) == sum(m, first),
       "saved and back: %s", err.text);
    cnr_release(back);
    unlink(path);
    ok(cnr_save(m, "/tmp/net.nothing", &err) == CNR_E_UNSUPPORTED, "nobody writes that: %s",
       err.text);
}

/* A net is quantised after changes. */
static void test_quantised(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *small = NULL;
    cnr_quantizing q = {.size = sizeof q};
    const cnr_quantize_options o = {.size = sizeof o, .all = 1, .data = spec, .limit = 10};
    const double before = sum(m, first);
    ok(!cnr_quantize(m, &o, NULL, &small, &q, &err) && q.n_layers == 4 && q.n_quantized == 4 &&
           q.checked == 10 && strcmp(q.layers[0].name, "conv1") == 0,
       "four layers: %s", err.text);
    cnr_quantizing_free(&q);
    cnr_evaluation e = {.size = sizeof e};
    const cnr_evaluate_options how = {.size = sizeof how, .data = spec};
    ok(small && !cnr_evaluate(small, &how, NULL, &e, &err) && e.n == 40, "it runs: %s", err.text);
    cnr_evaluation_free(&e);
    cnr_release(small);
    ok(sum(m, first) == before, "the net is as it was");
    const cnr_quantize_options none = {.size = sizeof none, .data = "/nowhere"};
    ok(cnr_quantize(m, &none, NULL, &small, &q, &err) && !small, "no data: %s", err.text);
}

int main(void) {
    static const char *const names[] = {"zero", "one", "two",   "three", "four",
                                        "five", "six", "seven", "eight", "nine"};
    char list[] = "/tmp/cnnrun-change-XXXXXX";
    static const char net[] = CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua";
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    const int fd = mkstemp(list);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    for (int i = 0; f && i < 40; i++)
        fprintf(f, "%s/scripts/nets/digits/%s.png %d\n", CNRT_SOURCE_DIR, names[i % 10], i % 10);
    if (f) fclose(f);
    snprintf(spec, sizeof spec, "images:%s", list);
    if (guests_open(2, &err) || cnr_load(guests_rt, net, NULL, &m, &err)) {
        ok(0, "opens: %s", err.text);
        return done();
    }
    test_copies(m);
    test_runs_follow(m);
    test_masks(m);
    test_optimizer(m);
    test_gradients(m);
    test_layers(m);
    test_files(m);
    test_quantised(m);
    test_schedule(m);
    unlink(list);
    cnr_close(guests_rt);
    return done();
}
