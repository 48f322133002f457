/* Weight replacement: new weights in a plan that is in use answer as a plan does that was made for
 * them, prepared or plain, with and without a bound; training changes weights the same way. */
#include "train/train.h"
#include "guests.h"

static const char *const packed[] = {"dense=dense_f32_turned", NULL};
static const char *const names[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                    "ip1.weight",   "ip1.bias",   "ip2.weight",   "ip2.bias"};

static float was[MOST_DIGITS * 10], got[MOST_DIGITS * 10], want[MOST_DIGITS * 10];

/* A copy of the weight with every number changed a little; free it with cnri_free. */
static cnr_tensor changed(const cnr_graph *g, const char *name, uint32_t seed) {
    const cnr_value v = cnri_graph_find(g, name);
    cnr_tensor t = {0};
    if (v < 0) return t;
    t = *g->values.at[v].type;
    float *data = cnri_alloc((size_t)t.bytes);
    for (int64_t i = 0; i < cnr_count(&t); i++) {
        seed = seed * 1664525u + 1013904223u;
        data[i] = ((const float *)t.data)[i] * (0.75f + (float)(seed >> 8) * 0x1p-25f);
    }
    t.data = data;
    t.quant = NULL;
    return t;
}

/* Tests: weights are replaced between runs. */
static void replace(const cnri_plan_options *o, int32_t n, const char *what) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = guests_lenet(o), *judge = guests_lenet(o);
    cnr_plan *plan = NULL;
    bool good =
        m && judge && !guests_run(m, n, 1, was, &err) && !cnr_plan_for(m, NULL, 0, &plan, &err);
    int32_t plans = m ? cnri_plans_count(m) : 0, alike = 0;
    for (size_t i = 0; i < CNRI_COUNT(names) && good; i++) { /* one after the other, in one plan */
        cnr_tensor w = changed(judge->graph, names[i], (uint32_t)i + 7);
        good = w.data && !cnr_plan_set_weight(plan, names[i], &w, &err) &&
               !guests_run(m, n, 1, got, &err) &&
               !cnri_graph_fill(judge->graph, cnri_graph_find(judge->graph, names[i]), &w, &err) &&
               !cnri_model_set_options(judge, o, &err) && /* its plans are made anew */
               !guests_run(judge, n, 1, want, &err);
        cnri_free(w.data);
        alike += good && memcmp(got, want, sizeof got) == 0 && memcmp(got, was, sizeof got) != 0;
        memcpy(was, got, sizeof was);
    }
    ok(good, "%s: weights are replaced in a plan in use: %s", what, err.text);
    is_int(alike, (int)CNRI_COUNT(names), "each time it answers as a plan made for them");
    is_int(cnri_plans_count(m), plans, "and no plan was made for it");
    float one[4] = {0};
    const cnr_tensor bad = {.size = sizeof bad,
                            .dtype = CNR_f32,
                            .rank = 1,
                            .dim = {4},
                            .data = one,
                            .bytes = sizeof one};
    is_int(cnr_plan_set_weight(plan, "conv1.bias", &bad, &err), CNR_E_SHAPE, "no wrong shape");
    is_int(cnr_plan_set_weight(plan, "conv9.bias", &bad, &err), CNR_E_NOT_FOUND, "nor wrong name");
    ok(!guests_run(m, n, 1, got, &err) && memcmp(got, was, sizeof got) == 0,
       "which leaves all as it was");
    cnr_plan_release(plan);
    cnr_release(m);
    cnr_release(judge);
}

/* After some steps the plan that training judges by answers as one made of the trained weights. */
static void trained(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    const cnr_load_options load = {.size = sizeof load, .weights = "random:3"};
    const cnri_train_options options =
        {.batch = 10, .epochs = 1, .rate = 0.05, .momentum = 0.9, .seed = 1, .device = "cpu"};
    cnri_trainer *t = NULL;
    const char *net = CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua";
    if (!ok(!cnri_load_graph(guests_rt, net, &load, &g, &err) &&
                !cnri_trainer_open(guests_rt, g, &options, &t, &err),
            "a trainer: %s", err.text))
        return;
    int64_t correct = 0, right = 0, by_plan = 0;
    double loss, first = 0;
    cnr_status status = CNR_OK;
    const cnr_plan *const plan = t->plan, *const judge = t->judge_plan;
    const int32_t plans = cnri_plans_count(t->model) + cnri_plans_count(t->judge);
    for (int32_t step = 0; step < 8 && !status; step++) {
        memcpy(t->inputs, guests_digits, (size_t)(10 * t->sample) * sizeof *t->inputs);
        memcpy(t->labels, guests_labels, 10 * sizeof *t->labels);
        status = cnri_trainer_step(t, &loss, &correct, &err);
        if (step == 0) first = loss;
    }
    memcpy(t->inputs, guests_digits, (size_t)(10 * t->sample) * sizeof *t->inputs);
    memcpy(t->labels, guests_labels, 10 * sizeof *t->labels);
    if (!status) status = cnri_trainer_judge(t, 10, &right, NULL, &err);
    ok(!status && loss < first, "eight steps on ten digits: loss %.3f to %.3f: %s", first, loss,
       err.text);
    ok(t->plan == plan && t->judge_plan == judge &&
           cnri_plans_count(t->model) + cnri_plans_count(t->judge) == plans,
       "in the plans there were from the start");
    status = cnri_trainer_keep(t, &err);
    if (!status) status = cnri_trainer_finish(t, &err);
    cnri_trainer_free(t);
    cnr_model *m = NULL;
    if (!status) status = cnri_model_from_graph(guests_rt, g, NULL, &m, &err); /* takes g over */
    memset(got, 0, sizeof got);
    if (!status) status = guests_run(m, 10, 1, got, &err);
    by_plan = guests_right(got, 10);
    ok(!status && by_plan == right, "a new plan of these weights: %d of ten right, as judged: %s",
       (int)by_plan, err.text);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(!guests_open(1, &err), "plugins load: %s", err.text)) return done();
    cnr_model *m = guests_lenet(NULL);
    int32_t n = m ? guests_load_digits(m->graph) : 0;
    if (!ok(n >= 10, "%d digits", n)) return done();
    if (n > 40) n = 40;
    const cnri_plan_options plain = {.device = "cpu"};
    const cnri_plan_options blobs = {.device = "cpu", .kernels = packed};
    const cnri_plan_options bound = {.device = "cpu",
                                     .kernels = packed,
                                     .memory_bound = 1700000 + 512000};
    replace(&plain, n, "dense layers' weights read as they are");
    replace(&blobs, n, "all weights prepared");
    replace(&bound, n, "under a bound");
    trained();
    cnr_close(guests_rt);
    return done();
}
