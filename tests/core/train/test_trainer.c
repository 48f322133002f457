/* Training end to end on made-up pictures: it learns, repeats itself, masks, stops, keeps the best.
 */
#include "initial/initial.h"
#include "numeric.h"
#include <unistd.h>

enum { SIDE = 8, COUNT = 480, HELD = 240, STEPS = (COUNT - HELD) / 16 };

/* ---- a source of its own: bars, upright (0), lying (1) or both (2), with noise ---- */

/* Method read of a source of bars. */
static cnr_status bars_read(void *state, int64_t index, cnr_sample *out, cnr_error *err) {
    const uint64_t split = 1;
    uint8_t *seen = state; /* how often each was read */
    if (seen) seen[index]++;
    uint64_t s = split * 1000003 + (uint64_t)index * 7919 + 17;
    uint8_t *data = cnri_alloc(SIDE * SIDE);
    if (!data) return cnri_fail(err, CNR_E_MEMORY, "bars", "out of memory");
    out->label = (int32_t)(index % 3);
    const int row = (int)(index / 3 % SIDE), column = (int)(index / 24 % SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) {
        s = s * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const bool bar =
            (out->label != 1 && i % SIDE == column) || (out->label != 0 && i / SIDE == row);
        data[i] = (uint8_t)((s >> 58) + (bar ? 150 : 0));
    }
    out->picture = (cnr_tensor){.size = sizeof(cnr_tensor),
                                .dtype = CNR_u8,
                                .rank = 3,
                                .dim = {SIDE, SIDE, 1},
                                .data = data,
                                .bytes = SIDE * SIDE};
    return CNR_OK;
}
static void bars_close(void *state) { (void)state; }
static const cnr_source bars = {.size = sizeof(cnr_source),
                                .name = "bars",
                                .syntax = "bars",
                                .read = bars_read,
                                .close = bars_close};

static uint8_t seen[COUNT];
/* The source of bars as samples: COUNT of 3 classes. */
static cnri_samples samples_of(void) {
    return (cnri_samples){.source = &bars,
                          .state = seen,
                          .info = {.size = sizeof(cnr_source_info), .count = COUNT, .classes = 3}};
}

/* Adds a node of one input. */
static cnr_value add(cnr_graph *g, const char *op, const char *name, cnr_value x, const char *attr,
                     int64_t i, const char *attr2, int64_t i2) {
    const cnr_attr a = {.name = attr, .type = CNR_ATTR_INT, .set = 1, .i = i},
                   b = {.name = attr2, .type = CNR_ATTR_INT, .set = 1, .i = i2};
    const cnr_attr *list[] = {&a, &b};
    cnr_value out = -1;
    cnri_graph_node(g, op, name, NULL, &x, 1, list, attr2 ? 2 : attr ? 1 : 0, &out, 1);
    return out;
}

/* Written for one picture; trained in batches. */
static cnr_graph *net(void) {
    cnr_graph *g = cnri_graph_new("bars");
    const cnr_tensor type = {.size = sizeof type,
                             .dtype = CNR_f32,
                             .rank = 4,
                             .dim = {1, 1, SIDE, SIDE}};
    cnr_value x = cnri_graph_input(g, "data", &type);
    cnri_graph_set_meta(g, "input.data.scale", "0.00390625");
    x = add(g, "conv", "conv1", x, "kernel", 3, "out", 6);
    x = add(g, "relu", NULL, x, NULL, 0, NULL, 0);
    x = add(g, "max_pool", NULL, x, "kernel", 2, "stride", 2);
    x = add(g, "dropout", NULL, x, NULL, 0, NULL, 0);
    x = add(g, "dense", "ip1", x, "out", 3, NULL, 0);
    x = add(g, "softmax", "prob", x, NULL, 0, NULL, 0);
    cnri_graph_output(g, x, "prob");
    return g;
}

/* What a training told, and where it is stopped. */
typedef struct watcher {
    int64_t calls, epochs, stop_at, cancel_at;
    int32_t cancelled;
    double first, last, left;
} watcher;
/* Keeps what is told; true: stop. */
static bool watch(void *arg, const cnri_train_progress *p) {
    watcher *w = arg;
    if (w->calls++ == 0) w->first = p->loss;
    w->last = p->loss;
    w->left = p->left;
    w->epochs += p->epoch_done;
    if (w->calls == w->cancel_at) __atomic_store_n(&w->cancelled, 1, __ATOMIC_RELAXED);
    return w->calls != w->stop_at;
}

/* Trains the net on the bars, watched by w, with the last progress in *last; the status of opening
 * or training. */
static cnr_status train(cnr_runtime *rt, cnr_graph *g, const cnri_train_options *o, watcher *w,
                        cnri_train_progress *last, cnr_error *err) {
    cnri_trainer *t = NULL;
    cnri_samples samples = samples_of();
    cnr_status status = cnri_trainer_open(rt, g, o, &t, err);
    if (status != CNR_OK) return status;
    status = cnri_train_run(t, &samples, watch, w, last, err);
    cnri_trainer_free(t);
    return status;
}

/* Numbers of the weight called `name`, which the graph owns. */
static const float *weight(const cnr_graph *g, const char *name) {
    return cnri_graph_type(g, cnri_graph_find(g, name))->data;
}

static const cnri_train_options usual = {.batch = 16,
                                         .epochs = 25,
                                         .rate = .05,
                                         .momentum = .9,
                                         .decay = .0005,
                                         .policy = CNRI_RATE_COSINE,
                                         .seed = 5,
                                         .validation = .5,
                                         .validation_seed = 3,
                                         .deterministic = true};

/* A small net learns, the same way each time. */
static void test_learns(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = net(), *again = net(), *other = net();
    cnri_train_progress p = {0};
    watcher w = {0};
    if (!ok(train(rt, g, &usual, &w, &p, &err) == CNR_OK, "a net is trained"))
        note("%s: %s", err.where, err.text);
    ok(p.best > .85, "it learns what bars are, a half of what it sees dropped");
    note("right on %.1f%%, loss %.3f to %.3f", 100 * p.best, w.first, w.last);
    ok(w.last < w.first / 3, "the loss falls");
    is_int(w.epochs, 25, "each epoch is told");
    is_int(w.calls, 25 * STEPS + 25, "each step too");
    is_int(cnri_graph_type(g, g->inputs.at[0])->dim[0], 1, "the net's own input stays as it was");
    w = (watcher){0};
    train(rt, again, &usual, &w, &p, &err);
    ok(memcmp(weight(g, "conv1.weight"), weight(again, "conv1.weight"), 54 * sizeof(float)) == 0,
       "the same seed gives the same weights, bit for bit");
    cnri_train_options o = usual;
    o.seed = 6;
    o.epochs = 1;
    train(rt, other, &o, &w, &p, &err);
    ok(memcmp(weight(g, "conv1.weight"), weight(other, "conv1.weight"), 54 * sizeof(float)) != 0,
       "another seed gives others");
    cnri_graph_free(g);
    cnri_graph_free(again);
    cnri_graph_free(other);
}

/* The rate follows each policy. */
static void test_policies(cnr_runtime *rt) {
    for (int i = CNRI_RATE_FIXED; i <= CNRI_RATE_COSINE; i++) {
        cnr_error err = CNR_ERROR_INIT;
        cnri_train_options o = usual;
        cnri_train_progress p = {0};
        watcher w = {0};
        cnr_graph *g = net();
        o.policy = (cnri_rate_policy)i;
        o.epochs = 10;
        ok(train(rt, g, &o, &w, &p, &err) == CNR_OK && p.best > .6, "rate policy %d learns", i);
        cnri_graph_free(g);
    }
}

/* Training that is stopped keeps the best weights. */
static void test_stop(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_train_progress p = {0};
    watcher w = {.stop_at = 3};
    cnr_graph *g = net();
    cnri_fill_random(g, 5, &err);
    const float first = weight(g, "conv1.weight")[0];
    is_int(train(rt, g, &usual, &w, &p, &err), CNR_E_CANCELLED, "stopped in the first epoch");
    ok(p.best < 0 && p.stopped && w.calls == 3, "before anything was judged");
    ok(weight(g, "conv1.weight")[0] == first, "the net's weights are what they were");
    cnri_graph_free(g);
    g = net();
    w = (watcher){.stop_at = 40};
    is_int(train(rt, g, &usual, &w, &p, &err), CNR_OK, "stopped in a later one");
    ok(p.best > 0 && p.best_epoch > 0 && p.epoch == 2 && p.stopped, "the best so far is kept");
    ok(w.left > 0, "and how long it would have taken was told");
    cnri_graph_free(g);
}

/* Training stopped by a flag, as Ctrl-C does, before an epoch was judged: the checkpoint has the
 * steps so far. */
static void test_stop_with_checkpoint(cnr_runtime *rt) {
    char path[64];
    cnr_error err = CNR_ERROR_INIT;
    cnri_train_progress p = {0};
    watcher w = {.cancel_at = STEPS - 2};
    cnri_train_options o = usual;
    cnr_graph *g = net(), *whole = net();
    snprintf(path, sizeof path, "/tmp/test_trainer.%d", (int)getpid());
    o.epochs = 2;
    o.checkpoint = path;
    o.checkpoint_seconds = 1e9;
    o.cancel = &w.cancelled;
    is_int(train(rt, g, &o, &w, &p, &err), CNR_E_CANCELLED, "cancelled in the first epoch");
    ok(w.epochs == 0 && access(path, F_OK) == 0 && strstr(err.text, path),
       "what was done is in the checkpoint, and told: %s", err.text);
    w = (watcher){0};
    is_int(train(rt, g, &o, &w, &p, &err), CNR_OK, "and is gone on with");
    is_int(w.calls, STEPS + 2 + 2, "behind the steps that were done");
    o.checkpoint = NULL;
    w = (watcher){0};
    train(rt, whole, &o, &w, &p, &err);
    ok(memcmp(weight(g, "conv1.weight"), weight(whole, "conv1.weight"), 54 * sizeof(float)) == 0,
       "to the same end as one that nobody stopped");
    unlink(path);
    cnri_graph_free(g);
    cnri_graph_free(whole);
}

/* Observer that makes the rate explode at the end of each epoch, and goes on; so the weights that
 * one training kept are trained on. */
static bool worsen(void *arg, const cnri_train_progress *p) {
    cnri_trainer *t = arg;
    if (p->epoch_done) t->options.rate = 1e6;
    return true;
}

/* Training that diverges is told. */
static void test_diverges(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_trainer *t = NULL;
    cnri_train_progress p = {0};
    cnri_judged score = {0};
    cnr_graph *g = net();
    cnri_samples samples = samples_of();
    cnri_train_options o = usual;
    o.policy = CNRI_RATE_FIXED;
    is_int(cnri_trainer_open(rt, g, &o, &t, &err), CNR_OK, "a trainer opens");
    is_int(cnri_train_run(t, &samples, worsen, t, &p, &err), CNR_OK,
           "diverging behind a good epoch is no error");
    ok(p.diverged && !p.stopped && p.epoch == 1, "it ends training, and is told");
    ok(p.best_epoch == 1, "the best epoch is kept");
    cnri_trainer_free(t);
    is_int(cnri_train_score(rt, g, &o, &samples, true, &score, &err), CNR_OK, "the net is judged");
    ok(score.share == p.best, "and is what it was then");
    cnri_graph_free(g);
}

/* Masked weights stay zero. */
static void test_mask(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_trainer *t = NULL;
    cnr_graph *g = net();
    static const char *const masked[] = {"conv1.weight"};
    cnri_train_options o = usual;
    o.masked = masked;
    o.n_masked = 1;
    is_int(cnri_fill_random(g, 5, &err), CNR_OK, "weights");
    float *first = cnri_graph_type(g, cnri_graph_find(g, masked[0]))->data;
    for (int i = 0; i < 54; i += 3) first[i] = 0;
    is_int(cnri_trainer_open(rt, g, &o, &t, &err), CNR_OK, "a trainer opens, one of them masked");
    cnri_samples samples = samples_of();
    cnri_train_progress p;
    is_int(cnri_train_run(t, &samples, NULL, NULL, &p, &err), CNR_OK, "it trains");
    const float *w = weight(g, "conv1.weight");
    int zeros = 0, moved = 0;
    for (int i = 0; i < 54; i++) {
        zeros += i % 3 == 0 && w[i] == 0;
        moved += i % 3 != 0 && w[i] != 0;
    }
    ok(zeros == 18 && moved == 36, "what is masked stays 0, the rest does not");
    ok(p.best > .9, "and it still learns");
    cnri_trainer_free(t);
    cnri_graph_free(g);
}

/* Options that make no sense are refused. */
static void test_refused(cnr_runtime *rt) {
    cnr_error err = CNR_ERROR_INIT;
    cnri_trainer *t = NULL;
    cnri_train_progress p;
    watcher w = {0};
    cnr_graph *g = net();
    cnri_train_options o = usual;
    o.momentum = 1;
    is_int(cnri_trainer_open(rt, g, &o, &t, &err), CNR_E_ARG, "momentum 1 is refused");
    o = usual;
    o.rate = 1e6;
    o.epochs = 3;
    is_int(train(rt, g, &o, &w, &p, &err), CNR_E_STATE, "a rate that explodes is told");
    has_text(err.text, "want a smaller rate", "with advice");
    cnri_graph_free(g);
    g = cnri_graph_new("two");
    const cnr_tensor type = {.size = sizeof type,
                             .dtype = CNR_f32,
                             .rank = 4,
                             .dim = {1, 1, SIDE, SIDE}};
    cnr_value x = cnri_graph_input(g, "data", &type);
    x = add(g, "dense", "ip", x, "out", 2, NULL, 0);
    cnri_graph_output(g, x, "two");
    is_int(train(rt, g, &usual, &w, &p, &err), CNR_E_ARG, "labels that the net has no class for");
    has_text(err.text, "2 classes", "are told");
    cnri_graph_free(g);
}

/* Sizes of a file whose product is more than 64 bits hold. */
static void test_large(cnr_runtime *rt) {
    const int64_t dims[][4] = {{1, INT64_C(1) << 40, INT64_C(1) << 40, 1},
                               {0, INT64_C(1) << 62, 2, 2},
                               {-1, INT64_C(1) << 32, INT64_C(1) << 32, -1},
                               {1, -1, -1, 1}};
    for (int i = 0; i < 4; i++) {
        cnr_error err = CNR_ERROR_INIT;
        cnr_graph *g = cnri_graph_new("large");
        cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32, .rank = 4};
        memcpy(type.dim, dims[i], sizeof dims[i]);
        cnr_value x = cnri_graph_input(g, "data", &type);
        if (i < 3) {
            ok(x < 0, "an input of sizes that overflow is refused");
        } else {
            cnri_train_options o = usual;
            cnri_trainer *t = NULL;
            x = add(g, "global_avg_pool", "pool", x, NULL, 0, NULL, 0);
            cnri_graph_output(g, x, "prob");
            is_int(cnri_trainer_open_judge(rt, g, &o, &t, &err), CNR_E_SHAPE,
                   "unknown sizes are none: -1 times -1");
            cnri_trainer_free(t);
        }
        cnri_graph_free(g);
    }
}

int main(void) {
    cnr_runtime *rt = numeric_open();
    if (!rt) return done();
    test_learns(rt);
    test_policies(rt);
    test_stop(rt);
    test_stop_with_checkpoint(rt);
    test_diverges(rt);
    test_mask(rt);
    test_refused(rt);
    test_large(rt);
    cnr_close(rt);
    return done();
}
