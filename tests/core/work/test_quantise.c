/* Quantising: what it tells of layers and of both nets; typed asking and answering; stopping. */
#include "../../guests/guests.h"
#include "work/calibrate.h"
#include <math.h>
#include <unistd.h>

static char list[] = "/tmp/cnnrun-work-XXXXXX", spec[64];

/* Counts down; 1 at the end: stop. */
static int32_t count_down(void *arg, const cnr_progress *p) {
    (void)p;
    return --*(int64_t *)arg <= 0;
}

/* 100,000 numbers within 1, and one of 100 that would take 99% of the steps. */
static void methods(void) {
    enum { N = 100000 };
    float *v = cnri_alloc_zero((N + 1) * sizeof *v);
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 1, .dim = {N + 1}, .data = v};
    const cnri_range all = {-1, 100, true};
    cnri_histogram h = {0};
    for (int i = 0; i < N; i++) v[i] = (float)(i % 2001 - 1000) / 1000;
    v[N] = 100;
    cnri_histogram_add(&h, &all, &t);
    const cnri_range whole = cnri_range_by(CNRI_METHOD_MINMAX, false, &h, &all);
    ok(whole.low == -1 && whole.high == 100, "minmax holds all that was seen");
    for (int m = CNRI_METHOD_PERCENTILE; m < CNRI_METHODS; m++) {
        const cnri_range r = cnri_range_by((cnri_method)m, false, &h, &all);
        ok(r.low <= -0.8 && r.low >= -1.05 && r.high >= 0.9 &&
               r.high < (m == CNRI_METHOD_MSE ? 99 : 20),
           "%s cuts off the one that is far away: %g to %g", cnri_range_method_name((cnri_method)m),
           r.low, r.high);
    }
    const cnri_range kept = cnri_range_by(CNRI_METHOD_KL, true, &h, &all);
    ok(kept.high == 100, "but not with care, when it is a quarter of all");
    cnri_method method;
    cnr_error err = CNR_ERROR_INIT;
    ok(!cnri_range_method(NULL, &method, &err) && method == CNRI_METHOD_MINMAX, "minmax by itself");
    ok(cnri_range_method("mean", &method, &err) && strstr(err.text, "want auto, minmax"),
       "another name is refused: %s", err.text);
    cnri_free(h.bin);
    cnri_free(v);
}

/* A leaky, a bounding and two swish-like functions, by the node's first letter. */
static void curve(const cnr_node *node, const float *x, const float *y, float *out, int64_t n) {
    const char kind = node->name[0];
    (void)y;
    for (int64_t i = 0; i < n; i++)
        out[i] = kind == 'l'   ? fmaxf(x[i], 0.1f * x[i])
                 : kind == 'b' ? fmaxf(x[i], 0)
                 : kind == 'h' ? x[i] * fminf(fmaxf(x[i] / 6 + 0.5f, 0), 1)
                               : 1 / (1 + expf(-x[i]));
}

/* Tests: ranges of values in front of functions. */
static void functions(void) {
    const cnr_op op = {.size = sizeof op, .apply_f32 = curve};
    static const struct {
        const char *name;
        double low[2], high[2]; /* where the ends may be */
    } rows[] = {{"leaky", {-30, -29}, {9.8, 10}},
                {"bound", {-30, -30}, {10, 10}},
                {"hard swish", {-3.1, -2.8}, {9.8, 10}},
                {"sigmoid", {-7, -6}, {6, 7}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const cnr_node node = {.size = sizeof node, .desc = &op, .name = rows[i].name};
        const cnri_range r = cnri_range_before(&node, &(cnri_range){-30, 10, true});
        ok(r.low >= rows[i].low[0] && r.low <= rows[i].low[1] && r.high >= rows[i].high[0] &&
               r.high <= rows[i].high[1],
           "-30 to 10 before a %s: %g to %g", rows[i].name, r.low, r.high);
    }
}

/* Tests: a quantised net. */
static void quantised(const cnr_graph *net) {
    const cnr_load_options how = {.size = sizeof how, .device = "cpu"};
    cnri_quantise_options o = {.data = spec,
                               .limit = 10,
                               .check = -1,
                               .least = 10,
                               .max_drop = NAN,
                               .all = true,
                               .how = &how};
    cnri_quantising q;
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(!cnri_quantise(guests_rt, net, &o, NULL, &q, &err), "quantises: %s", err.text)) return;
    is_int(q.n_quantised, 4, "four layers of whole numbers");
    bool sane = q.n_layers == 4;
    for (int32_t i = 0; i < q.n_layers; i++)
        sane = sane && q.layers[i].quantised && q.layers[i].low < 0 && q.layers[i].high > 0 &&
               q.layers[i].decibels > 20;
    ok(sane, "each with what it was seen to hold, and its noise");
    ok(q.checked == 10 && q.agree == 1 && q.top1[0] == 1 && q.top1[1] == 1 && q.ms[1] > 0,
       "both nets read all digits");
    ok(q.n_float == 0 && q.method && strcmp(q.method, "auto") != 0, "ranges by %s", q.method);
    ok(!q.quantized->calibration && !cnri_graph_meta(q.quantized, "quantize"),
       "nothing of the asking stays with the net");
    cnri_quantising_free(&q);
    o.least = 38; /* above what the least exact layers reach */
    ok(!cnri_quantise(guests_rt, net, &o, NULL, &q, &err) && q.n_quantised < 4 && q.n_layers == 4,
       "a layer with too much noise stays float: %d", (int)q.n_quantised);
    ok(q.n_layers == 4 && q.layers[0].quantised == (q.layers[0].decibels >= 38), "and is told");
    cnri_quantising_free(&q);
    o.layers = "ip*";
    o.least = 10;
    o.check = 0;
    ok(!cnri_quantise(guests_rt, net, &o, NULL, &q, &err) && q.n_quantised == 2 && q.checked == 0,
       "only layers of such names, and no check");
    cnri_quantising_free(&q);
}

/* Noise over signal in the last layer of a net in 8 bits. */
static double noise_in_last(cnri_calibration *c, const bool *all) {
    cnri_answers answers = {0};
    cnr_graph *quantized = NULL;
    cnr_error err = CNR_ERROR_INIT;
    double noise = NAN;
    if (!cnri_quantized(c, all, &quantized, &answers, &err) && answers.n > 0 &&
        !cnri_compare(c, quantized, &answers, 10, &err))
        noise = answers.at[answers.n - 1].noise / answers.at[answers.n - 1].signal;
    if (!c->rounded) cnri_round_weights(c, &answers, &err);
    cnri_answers_free(&answers);
    cnri_graph_free(quantized);
    return noise;
}

/* Weights whose errors cancel on the pictures, beside weights that are rounded to the nearest. */
static void rounded(const cnr_graph *net) {
    cnri_samples samples;
    cnr_error err = CNR_ERROR_INIT;
    cnri_calibration c = {.rt = guests_rt,
                          .how = {.size = sizeof c.how, .device = "cpu"},
                          .net = net,
                          .samples = &samples,
                          .pictures = 10};
    bool *all = cnri_alloc_zero((size_t)net->nodes.n);
    memset(all, true, (size_t)net->nodes.n);
    if (cnri_samples_open(spec, "train", &samples, &err) || cnri_calibrate(&c, false, &err)) {
        ok(0, "calibrates: %s", err.text);
        return;
    }
    cnri_calibrate_by(&c, CNRI_METHOD_MINMAX, false);
    const double nearest = noise_in_last(&c, all), data = noise_in_last(&c, all);
    ok(data < nearest * 0.9, "rounding by data makes less noise: %g, not %g", data, nearest);
    int32_t layers = 0;
    bool kept = true;
    for (int32_t i = 0; c.rounded && i < net->nodes.n; i++) {
        const cnri_rounded *r = &c.rounded[i];
        if (!r->weights) continue;
        const cnr_tensor *w = net->values.at[r->w].type;
        const int64_t rows = w->dim[0], depth = cnr_count(w) / rows;
        layers++;
        for (int64_t row = 0; row < rows; row++) {
            double most[2] = {0, 0};
            for (int64_t k = row * depth; k < (row + 1) * depth; k++) {
                most[0] = fmax(most[0], fabs((double)((const float *)w->data)[k]));
                most[1] = fmax(most[1], fabs((double)r->weights[k]));
            }
            kept = kept && most[0] == most[1];
        }
    }
    ok(layers == 4 && kept, "%d layers, and the largest weight of each row stays", (int)layers);
    cnri_calibration_close(&c);
    cnri_samples_close(&samples);
    cnri_free(all);
}

/* Ten pictures; the float net is right on the first eight, and sure of all to nine tenths. */
static void points(void) {
    cnri_verdict float_net[10], same[10], others[10];
    float shares[2] = {0.9F, 0.1F};
    for (int i = 0; i < 10; i++) {
        float_net[i] = (cnri_verdict){.class = 0, .label = i < 8 ? 0 : 1, .shares = shares, .n = 2};
        same[i] = (cnri_verdict){.class = 0, .label = float_net[i].label};
        others[i] = (cnri_verdict){.class = i == 0 || i > 7, .label = float_net[i].label};
    }
    const cnri_verdicts before = {float_net, 10, 10}, as_it_was = {same, 10, 10},
                        after = {others, 10, 10};
    ok(cnri_points_lost(&before, &as_it_was) == 0, "the same answers lose nothing");
    const double lost = cnri_points_lost(&before, &after);
    ok(lost > 23.9 && lost < 24.1, "two that became right by chance excuse none: %g points", lost);
    for (int i = 0; i < 10; i++) float_net[i].label = -1;
    ok(cnri_points_lost(&before, &after) == 30, "without labels it is who answers otherwise");
    for (int i = 0; i < 10; i++) float_net[i].class = -1;
    ok(isnan(cnri_points_lost(&before, &after)), "of what is no class nothing is lost");
}

/* Tests: a budget of accuracy. */
static void budget(const cnr_graph *net) {
    const cnr_load_options how = {.size = sizeof how, .device = "cpu"};
    cnri_quantise_options o =
        {.data = spec, .limit = 10, .least = NAN, .max_drop = 100, .all = true, .how = &how};
    cnri_quantising q;
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(!cnri_quantise(guests_rt, net, &o, NULL, &q, &err), "a budget: %s", err.text)) return;
    ok(q.n_quantised == 4 && q.lost >= 0, "that is kept at once: %g points lost", q.lost);
    cnri_quantising_free(&q);
}

/* Tests: quantising is stopped. */
static void stopped(const cnr_graph *net) {
    cnri_quantise_options o =
        {.data = spec, .limit = 10, .check = -1, .least = 10, .max_drop = NAN, .all = true};
    cnri_quantising q;
    cnr_error err = CNR_ERROR_INIT;
    for (int64_t at = 1; at <= 15; at += 7) { /* calibrating, and checking */
        int64_t left = at;
        const cnr_observer observer = {.size = sizeof observer,
                                       .arg = &left,
                                       .progress = count_down};
        ok(cnri_quantise(guests_rt, net, &o, &observer, &q, &err) == CNR_E_CANCELLED && left == 0 &&
               !q.quantized,
           "stopped at call %d", (int)at);
    }
    o.data = "/nowhere/at/all";
    ok(cnri_quantise(guests_rt, net, &o, NULL, &q, &err) == CNR_E_NOT_FOUND, "no data: %s",
       err.text);
}

/* The host table, as a rewrite sees it. */
static void asked(const cnr_graph *net) {
    cnr_graph *g = cnri_graph_copy(net);
    bool *wanted = cnri_alloc_zero((size_t)g->nodes.n);
    cnri_range *ranges = cnri_alloc_zero((size_t)g->values.n * sizeof *ranges);
    cnr_error err = CNR_ERROR_INIT;
    double low = 0, high = 0;
    const cnr_value v = g->nodes.at[1]->out[0];
    ok(!cnri_host.graph_should_quantise(g, 1) && !cnri_host.graph_value_range(g, v, &low, &high),
       "nobody asks");
    ok(cnri_host.graph_set_quantised(g, v, v, 1, 0, 0) == CNR_E_ARG, "so nobody answers");
    wanted[1] = true;
    ranges[v] = (cnri_range){-0.1, 1.0 / 3, true};
    cnri_graph_request_quantise(g, wanted, ranges, &err);
    ok(cnri_host.graph_should_quantise(g, 1) == 1 && !cnri_host.graph_should_quantise(g, 0) &&
           !cnri_host.graph_should_quantise(g, g->nodes.n) &&
           !cnri_host.graph_should_quantise(g, -1),
       "one node is asked");
    ok(cnri_host.graph_value_range(g, v, &low, &high) == 1 && low == -0.1 && high == 1.0 / 3,
       "numbers come as they are");
    ok(!cnri_host.graph_value_range(g, 0, &low, &high) &&
           !cnri_host.graph_value_range(g, -1, &low, &high) &&
           !cnri_host.graph_value_range(g, g->values.n, &low, &high),
       "of others nothing is known");
    ok(cnri_host.graph_set_quantised(g, v, g->values.n, 1, 0, 0) == CNR_E_ARG &&
           cnri_host.graph_set_quantised(g, -1, v, 1, 0, 0) == CNR_E_ARG &&
           cnri_host.graph_set_quantised(g, v, v, 0, 0, 0) == CNR_E_ARG,
       "answers that are none");
    ok(!cnri_host.graph_set_quantised(g, v, 0, 0.5, 3, -1.5) &&
           cnri_graph_quantised_at(g, 0)->zero == 3 && !cnri_graph_quantised_at(g, 1),
       "an answer");
    cnri_graph_free(g);
    cnri_free(wanted);
    cnri_free(ranges);
}

int main(void) {
    static const char *const names[] = {"zero", "one", "two",   "three", "four",
                                        "five", "six", "seven", "eight", "nine"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *net = NULL;
    const int fd = mkstemp(list);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    for (int i = 0; f && i < 10; i++)
        fprintf(f, "%s/scripts/nets/digits/%s.png %d\n", CNRT_SOURCE_DIR, names[i], i);
    if (f) fclose(f);
    snprintf(spec, sizeof spec, "images:%s", list);
    if (guests_open(2, &err) ||
        cnri_load_graph(guests_rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", NULL, &net, &err)) {
        ok(0, "a net: %s", err.text);
        return done();
    }
    methods();
    functions();
    quantised(net);
    rounded(net);
    points();
    budget(net);
    stopped(net);
    asked(net);
    unlink(list);
    cnri_graph_free(net);
    cnr_close(guests_rt);
    return done();
}
