/* Runs a net on pictures and records ranges of its values, and what quantising changed in them. */
#include "work/calibrate.h"
#include <math.h>

/* Makes a model in *out of a copy of `g`, with or without fusing of operators and rewrites of plans
 * (fuse): without, each value of `g` is computed and can be seen. */
cnr_status cnri_calibration_model(const cnri_calibration *c, const cnr_graph *g, bool fuse,
                                  cnr_model **out, cnr_error *err) {
    cnr_load_options how = c->how;
    const int32_t n = cnri_count_options(how.no_rewrite);
    const char **off = cnri_alloc_zero((size_t)(n + 3) * sizeof *off);
    cnr_graph *copy = cnri_graph_copy(g);
    cnr_status status = CNR_OK;
    *out = NULL;
    for (int32_t i = 0; off && i < n; i++) off[i] = how.no_rewrite[i];
    if (off && !fuse) off[n] = "fuse", off[n + 1] = "all";
    how.no_rewrite = off;
    if (!off || !copy) {
        cnri_graph_free(copy);
        status = cnri_out_of_memory(err, "quantize");
    } else {
        status = cnri_model_from_graph(c->rt, copy, &how, out, err);
    }
    cnri_free(off);
    return status;
}

/* ---- running over pictures ---- */

/* Argument of a session's tap functions. */
typedef struct tapped {
    cnri_calibration *c;
    const cnr_graph *g;
    cnri_answers *answers;
} tapped;

/* Runs one picture with a tap function that sees all values; with `input`, the net's input too. */
static cnr_status run_one(cnri_runner *r, cnr_tap_fn tap, void *arg, const cnri_calibration *c,
                          const cnr_tensor *picture, bool input, cnr_error *err) {
    cnr_status status = cnri_runner_shape(r, 1, picture, err);
    if (!status) status = cnri_runner_put(r, 0, picture, err);
    if (status) return status;
    if (input) tap(arg, NULL, 0, &r->input);
    cnr_session_tap(r->session, tap, arg);
    status = cnri_runner_run(r, NULL, err);
    if (!status && c->failed) status = cnri_out_of_memory(err, "quantize");
    return status;
}

cnr_value cnri_tapped_value(const cnr_graph *g, const char *node, int32_t output) {
    if (!node) return g->inputs.at[0];
    for (int32_t i = 0; i < g->nodes.n; i++)
        if (strcmp(g->nodes.at[i]->name, node) == 0)
            return output < g->nodes.at[i]->view.n_outputs ? g->nodes.at[i]->out[output] : -1;
    return -1;
}

/* Widens a range to all finite numbers of a tensor. */
static void widen(cnri_range *r, const cnr_tensor *t) {
    const float *v = t->data;
    const int64_t n = t->dtype == CNR_f32 ? cnr_count(t) : 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        if (!r->seen || v[i] < r->low) r->low = v[i];
        if (!r->seen || v[i] > r->high) r->high = v[i];
        r->seen = true;
    }
}

/* Session tap: widens the range of a value by the numbers that a node computed. */
static void tap_range(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    const tapped *t = arg;
    const cnr_value v = cnri_tapped_value(t->g, node, output);
    if (v >= 0) widen(&t->c->all[v], value);
}

/* Tap: counts the numbers of a value in its histogram. */
static void tap_count(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    const tapped *t = arg;
    const cnr_value v = cnri_tapped_value(t->g, node, output);
    if (v >= 0) cnri_histogram_add(&t->c->counts[v], &t->c->all[v], value);
}

/* Runs all calibration pictures through the net once; count: into the histograms of values, else
 * into their ranges. */
static cnr_status watch_all(cnri_calibration *c, bool count, cnr_error *err) {
    cnr_model *model = NULL;
    cnri_runner runner = {0};
    tapped arg = {c, c->net, NULL};
    cnr_status status = cnri_calibration_model(c, c->net, false, &model, err);
    if (!status) status = cnri_runner_open(&runner, model, c->observer, err);
    for (int64_t i = 0; i < c->pictures && !status; i++) {
        cnr_sample sample;
        if (!cnri_calibrates(c, i)) continue;
        if ((status = cnri_samples_read(c->samples, i, &sample, err)) != CNR_OK) break;
        status =
            run_one(&runner, count ? tap_count : tap_range, &arg, c, &sample.picture, true, err);
        cnri_free(sample.picture.data);
        if (!status)
            status = cnri_report_progress(c->observer, count ? "counting" : "calibrating", i + 1,
                                          c->pictures, err);
    }
    cnri_runner_close(&runner);
    cnr_release(model);
    return status;
}

cnr_status cnri_calibrate(cnri_calibration *c, bool count, cnr_error *err) {
    const size_t n = (size_t)c->net->values.n + 1;
    c->ranges = cnri_alloc_zero(n * sizeof *c->ranges);
    c->all = cnri_alloc_zero(n * sizeof *c->all);
    c->counts = count ? cnri_alloc_zero(n * sizeof *c->counts) : NULL;
    if (!c->ranges || !c->all || (count && !c->counts)) return cnri_out_of_memory(err, "quantize");
    const cnr_status status = watch_all(c, false, err);
    return status || !count ? status : watch_all(c, true, err);
}

/* True if the node applies a function of one input to each element of a value that it alone reads.
 */
static bool is_function(const cnr_graph *g, const cnri_node *node) {
    const cnr_op *op = node->view.desc;
    return node->view.n_inputs == 1 && node->view.n_outputs == 1 &&
           op->flags & CNR_OP_ELEMENTWISE && CNRI_HAS(op, apply_f32) && node->in[0] >= 0 &&
           g->values.at[node->in[0]].producer >= 0 && g->values.at[node->in[0]].uses == 1;
}

void cnri_calibrate_by(cnri_calibration *c, cnri_method method, bool careful) {
    for (int32_t v = 0; v < c->net->values.n; v++)
        c->ranges[v] =
            c->counts ? cnri_range_by(method, careful, &c->counts[v], &c->all[v]) : c->all[v];
    for (int32_t i = 0; i < c->net->nodes.n; i++) {
        const cnri_node *node = c->net->nodes.at[i];
        if (!is_function(c->net, node)) continue;
        cnri_range *r = &c->ranges[node->in[0]];
        *r = cnri_range_before(&node->view, r);
    }
}

/* Frees all lists of a calibration, not its net and pictures. */
void cnri_calibration_close(cnri_calibration *c) {
    cnri_shifts_free(c);
    cnri_rounded_free(c);
    for (int32_t v = 0; c->counts && v < c->net->values.n; v++) cnri_free(c->counts[v].bin);
    cnri_free(c->counts);
    cnri_free(c->all);
    cnri_free(c->ranges);
}

cnr_status cnri_calibration_watch(cnri_calibration *c, int64_t pictures, cnr_tap_fn tap, void *arg,
                                  cnr_error *err) {
    cnr_model *model = NULL;
    cnri_runner runner = {0};
    cnr_status status = cnri_calibration_model(c, c->net, false, &model, err);
    if (!status) status = cnri_runner_open(&runner, model, c->observer, err);
    for (int64_t i = 0; i < c->pictures && i < pictures && !status; i++) {
        cnr_sample sample;
        if (!cnri_calibrates(c, i)) continue;
        if ((status = cnri_samples_read(c->samples, i, &sample, err)) != CNR_OK) break;
        status = run_one(&runner, tap, arg, c, &sample.picture, true, err);
        cnri_free(sample.picture.data);
        if (!status && cnri_stopped(c->observer))
            status = cnri_fail(err, CNR_E_CANCELLED, "quantize", "stopped");
    }
    cnri_runner_close(&runner);
    cnr_release(model);
    return status;
}

/* ---- asking ---- */

/* Inserts an answer, in the order of the nodes that compute the values. False: it failed. */
static bool insert(const cnri_calibration *c, cnri_answers *answers, const cnri_answer *a) {
    const cnri_value *values = c->net->values.at;
    if (!cnri_push(answers)) return false;
    int32_t at = answers->n - 1;
    for (; at > 0 && values[answers->at[at - 1].as.real].producer > values[a->as.real].producer;
         at--)
        answers->at[at] = answers->at[at - 1];
    answers->at[at] = *a;
    return true;
}

/* True if the node is linear in weights. */
static bool is_layer(const cnri_node *node) {
    cnr_linear ports;
    return CNRI_HAS(node->view.desc, linear) && node->view.desc->linear(&node->view, &ports) == 1;
}

int32_t cnri_answer_node(const cnr_graph *net, const cnri_answer *a) {
    const int32_t node = net->values.at[a->as.real].producer;
    const cnr_value before =
        net->nodes.at[node]->view.n_inputs > 0 ? net->nodes.at[node]->in[0] : -1;
    const int32_t producer = before >= 0 ? net->values.at[before].producer : -1;
    if (!cnri_is_quantised(a) || is_layer(net->nodes.at[node]) || producer < 0) return node;
    return producer;
}

cnr_status cnri_quantized(const cnri_calibration *c, const bool *wanted, cnr_graph **out,
                          cnri_answers *answers, cnr_error *err) {
    const cnri_quantised_value *v;
    const int64_t before = cnri_alloc_failures();
    cnr_graph *g = cnri_graph_copy(c->net);
    cnr_status status = g ? cnri_graph_request_quantise(g, wanted, c->ranges, err)
                          : cnri_out_of_memory(err, "quantize");
    if (!status) status = cnri_graph_verify_weights(g, NULL, false, 0, err);
    if (!status) status = cnri_apply_shifts(c, g, wanted, err);
    if (!status) status = cnri_graph_rewrite(g, c->how.no_rewrite, NULL, 0, err);
    for (int32_t i = 0; !status && (v = cnri_graph_quantised_at(g, i)); i++) {
        const double top = v->low + UINT8_MAX * v->scale;
        const bool limited = c->ranges[v->real].seen && c->ranges[v->real].high > top + v->scale;
        cnri_answer a = {.as = *v, .high = limited ? top : INFINITY};
        a.has_function = cnri_answer_node(c->net, &a) != c->net->values.at[v->real].producer;
        if (!insert(c, answers, &a)) status = cnri_out_of_memory(err, "quantize");
    }
    status = cnri_alloc_verdict(before, status, "quantize", err);
    if (status) {
        cnri_graph_free(g);
        g = NULL;
    }
    *out = g;
    return status;
}

/* Frees the answers and what was kept for them; the list is empty then. */
void cnri_answers_free(cnri_answers *answers) {
    for (int32_t i = 0; i < answers->n; i++) {
        cnri_free(answers->at[i].kept);
        cnri_free(answers->at[i].off);
    }
    cnri_vec_free(answers);
    *answers = (cnri_answers){0};
}

/* True if the value is among the answers. */
static bool is_answered(const cnri_answers *answers, cnr_value real) {
    for (int32_t i = 0; i < answers->n; i++)
        if (answers->at[i].as.real == real) return true;
    return false;
}

/* The value of the quantised net that stands for a value of the net; -1: there is none. */
static cnr_value kept_as(const cnr_graph *net, const cnr_graph *quantized, cnr_value v) {
    for (int32_t i = 0; i < net->outputs.n; i++)
        if (net->outputs.at[i] == v) return quantized->outputs.at[i];
    return v < quantized->values.n && quantized->values.at[v].producer >= 0 ? v : -1;
}

cnr_status cnri_answers_add_watched(const cnri_calibration *c, const cnr_graph *quantized,
                                    const bool *watched, cnri_answers *answers, cnr_error *err) {
    for (cnr_value v = 0; v < c->net->values.n; v++) {
        if (!watched[v] || c->net->values.at[v].type->dtype != CNR_f32 || is_answered(answers, v))
            continue;
        const cnri_answer a = {.as = {.real = v, .stored = kept_as(c->net, quantized, v)}};
        if (a.as.stored >= 0 && !insert(c, answers, &a)) return cnri_out_of_memory(err, "quantize");
    }
    return CNR_OK;
}

/* ---- comparing ---- */

/* Tap: keeps the values that are compared later. */
static void tap_keep(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    const tapped *t = arg;
    const cnr_value v = cnri_tapped_value(t->g, node, output);
    for (int32_t i = 0; i < t->answers->n && v >= 0; i++) {
        cnri_answer *a = &t->answers->at[i];
        if (a->as.real != v || value->dtype != CNR_f32) continue;
        float *kept = cnri_resize(a->kept, (size_t)value->bytes + 1);
        if (!kept) {
            t->c->failed = CNR_E_MEMORY;
            return;
        }
        a->kept = kept;
        a->n = cnr_count(value);
        memcpy(kept, value->data, (size_t)value->bytes);
    }
}

void cnri_add_noise(cnri_answer *a, double real, double got) {
    if (!isfinite(real)) return;
    const double off = real - got;
    a->signal += real * real;
    a->noise += isfinite(off) ? off * off : INFINITY;
}

/* True if an 8-bit number is the lowest or highest of its type. */
static bool is_saturated(int32_t dtype, int32_t q) {
    const int32_t low = dtype == CNR_i8 ? INT8_MIN : 0;
    return q == low || q == low + UINT8_MAX;
}

/* True if the error of an element is that of the layer's sum. A function behind the layer, as leaky
 * ReLU, changes what is negative. */
static bool tells_shift(const cnri_answer *a, double real, double got) {
    return !a->has_function || (real > 0 && got > 0);
}

/* Adds one quantised value to the noise of its answer. */
static void compare_one(cnri_answer *a, const cnr_tensor *value) {
    const bool whole = cnri_is_quantised(a);
    if (a->n != cnr_count(value)) return;
    if (whole ? cnr_dtype_bits(value->dtype) != 8 : value->dtype != CNR_f32) return;
    for (int64_t k = 0; k < a->n; k++) {
        if (!whole) {
            cnri_add_noise(a, (double)a->kept[k], (double)((const float *)value->data)[k]);
            continue;
        }
        const int32_t q = value->dtype == CNR_i8 ? ((const int8_t *)value->data)[k]
                                                 : ((const uint8_t *)value->data)[k];
        const double got = a->as.scale * (q - a->as.zero);
        cnri_add_noise(a, fmin(fmax((double)a->kept[k], a->as.low), a->high), got);
        if (a->off && value->rank >= 2 && value->dim[1] == a->channels &&
            (double)a->kept[k] > a->as.low && (double)a->kept[k] < a->high &&
            !is_saturated(value->dtype, q) && tells_shift(a, (double)a->kept[k], got))
            cnri_add_off(a, value, k, (double)a->kept[k] - got);
    }
}

/* Session tap: compares the values of the quantised net with those kept of the float net. */
static void tap_compare(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    const tapped *t = arg;
    const cnr_value v = cnri_tapped_value(t->g, node, output);
    for (int32_t i = 0; i < t->answers->n && v >= 0; i++)
        if (t->answers->at[i].as.stored == v) compare_one(&t->answers->at[i], value);
}

cnr_status cnri_float_net_open(cnri_calibration *c, cnri_float_net *net, cnr_error *err) {
    *net = (cnri_float_net){0};
    CNR_TRY(cnri_calibration_model(c, c->net, false, &net->model, err));
    return cnri_runner_open(&net->runner, net->model, c->observer, err);
}

void cnri_float_net_close(cnri_float_net *net) {
    cnri_runner_close(&net->runner);
    cnr_release(net->model);
}

/* Runs one picture through both nets. */
static cnr_status compare_picture(tapped *args, cnri_runner *real, cnri_runner *quantized,
                                  int64_t picture, cnr_error *err) {
    cnri_calibration *c = args[0].c;
    cnr_sample sample;
    CNR_TRY(cnri_samples_read(c->samples, picture, &sample, err));
    cnr_status status = run_one(real, tap_keep, &args[0], c, &sample.picture, false, err);
    if (!status) status = run_one(quantized, tap_compare, &args[1], c, &sample.picture, false, err);
    cnri_free(sample.picture.data);
    if (!status && cnri_stopped(c->observer))
        status = cnri_fail(err, CNR_E_CANCELLED, "quantize", "stopped");
    return status;
}

cnr_status cnri_compare_with(cnri_calibration *c, cnri_float_net *net, const cnr_graph *quantized,
                             cnri_answers *answers, int64_t maximum, cnr_error *err) {
    cnr_model *model = NULL;
    cnri_runner runner = {0};
    tapped args[2] = {{c, c->net, answers}, {c, quantized, answers}};
    cnr_status status = cnri_calibration_model(c, quantized, false, &model, err);
    if (!status) status = cnri_runner_open(&runner, model, c->observer, err);
    for (int64_t i = 0, n = 0; i < c->pictures && n < maximum && !status; i++) {
        if (!(c->compares_held_back ? cnri_judges(c, i) : cnri_calibrates(c, i))) continue;
        n++;
        status = compare_picture(args, &net->runner, &runner, i, err);
    }
    cnri_runner_close(&runner);
    cnr_release(model);
    return status;
}

cnr_status cnri_compare(cnri_calibration *c, const cnr_graph *quantized, cnri_answers *answers,
                        int64_t maximum, cnr_error *err) {
    cnri_float_net net;
    cnr_status status = cnri_float_net_open(c, &net, err);
    if (!status) status = cnri_compare_with(c, &net, quantized, answers, maximum, err);
    cnri_float_net_close(&net);
    return status;
}

double cnri_decibels(const cnri_answer *a) {
    return a->noise > 0 ? 10 * log10(a->signal / a->noise) : INFINITY;
}
