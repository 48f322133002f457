/* Quantising: calibrates on pictures, lets rewrites quantise layers until all of them are good
 * enough, and compares both nets. */
#include "work/calibrate.h"
#include "people/people.h"
#include "samples/samples.h"
#include <fnmatch.h>
#include <math.h>

/* A net that is being quantised. */
typedef struct job {
    const cnri_quantise_options *o;
    const cnr_graph *given; /* the net before any change, which both nets are compared with */
    cnri_calibration c;
    cnri_samples own;
    cnri_quantising *out; /* owns its nets until the work is done */
    cnri_answers answers;
    cnri_sensitivity sensitivity;
    bool *wanted;  /* by node of net: is to be quantised */
    bool *watched; /* by value of net: all layers, and the values that outputs are computed from */
    double *given_up;       /* by node of net: decibels of a layer that was given up; else NaN */
    const char **float_for; /* by node of net: why it stays float, one of the texts below */
    cnri_layer_ns *times;   /* by node of net */
    double least;
    /* Answers of the float net on the held-back pictures, if max_drop was given. */
    cnri_verdicts said;
    cnri_answers outputs; /* signal and noise of the net's outputs */
    /* Judged: number of pictures whose answer is a class. */
    int64_t labelled, right[2], agree, judged;
    CNRI_VEC(double) ns[2]; /* of each picture, by net */
} job;

/* ---- quantising, until every value is good enough ---- */

/* The first value that is too noisy, because later ones may be noisy only due to it. NULL: none
 * is. */
static const cnri_answer *too_noisy(const job *q) {
    for (int32_t i = 0; i < q->answers.n; i++)
        if (!(cnri_decibels(&q->answers.at[i]) >= q->least)) return &q->answers.at[i];
    return NULL;
}

/* COMPARED: most pictures on which signal and noise are measured. */
enum { COMPARED = 16, LEAST_DECIBELS = 10 };

/* Frees the quantised net and its answers; returns the status that it was given. */
static cnr_status forget(job *q, cnr_status status) {
    cnri_answers_free(&q->answers);
    cnri_graph_free(q->out->quantized);
    q->out->quantized = NULL;
    return status;
}

/* Compares all layers that could be quantised, even those that are not to be, with the float
 * net. */
static cnr_status watch(job *q, cnr_error *err) {
    bool *all = cnri_alloc_zero((size_t)q->out->net->nodes.n + 1);
    if (!all) return cnri_out_of_memory(err, "quantize");
    memset(all, true, (size_t)q->out->net->nodes.n);
    const cnr_status status = cnri_quantized(&q->c, all, &q->out->quantized, &q->answers, err);
    cnri_free(all);
    if (!status) q->watched = cnri_values_behind(q->out->net, &q->answers);
    q->sensitivity = (cnri_sensitivity){.c = &q->c, .watched = q->watched};
    return forget(q, status ? status : q->watched ? CNR_OK : cnri_out_of_memory(err, "quantize"));
}

/* Reasons for which a layer stays in floats. */
static const char for_noise[] = "noise", for_accuracy[] = "accuracy", for_time[] = "time";

/* True if a layer stays in floats for that reason. */
static bool stay_float_for(const job *q, const char *why) {
    for (int32_t i = 0; i < q->out->net->nodes.n; i++)
        if (q->float_for[i] == why) return true;
    return false;
}

/* Fails with CNR_E_NOT_FOUND and the reason why no layer is left to quantise. */
static cnr_status none_left(const job *q, const char *bad, double decibels, cnr_error *err) {
    if (!bad && stay_float_for(q, for_accuracy))
        return cnri_fail(err, CNR_E_NOT_FOUND, q->out->net->name,
                         "no layer is left to be quantised: with any of them more points are lost "
                         "than --max-drop %g allows",
                         q->o->max_drop);
    if (!bad)
        return cnri_fail(err, CNR_E_NOT_FOUND, q->out->net->name, "no layer can be quantised%s%s",
                         q->o->layers ? " whose name fits --layers " : "",
                         q->o->layers ? q->o->layers : "");
    return cnri_fail(err, CNR_E_NOT_FOUND, q->out->net->name,
                     "no layer is left to be quantised: with the last ones \"%s\" had a signal to "
                     "noise of "
                     "%.1f dB, and --min-snr wants %.1f",
                     bad, decibels, q->least);
}

/* Notes the layers that left `wanted` since the answers were made, with reason `why` and
 * `decibels` (NaN: their own). True: there were such layers. */
static bool note_dropped(job *q, const char *why, double decibels) {
    bool any = false;
    for (int32_t i = 0; i < q->answers.n; i++) {
        const cnri_answer *a = &q->answers.at[i];
        const int32_t node = cnri_answer_node(q->out->net, a);
        if (!cnri_is_quantised(a) || q->wanted[node]) continue;
        q->given_up[node] = isnan(decibels) ? cnri_decibels(a) : decibels;
        q->float_for[node] = why;
        any = true;
    }
    return any;
}

/* Drops the layer that makes most of the noise; *spoiled: the layer that was too noisy, with its
 * noise in *decibels. */
static cnr_status drop_noisy(job *q, const cnri_answer *bad, const char **spoiled, double *decibels,
                             cnr_error *err) {
    const cnr_graph *net = q->out->net;
    *decibels = cnri_decibels(bad);
    *spoiled = net->nodes.at[cnri_answer_node(net, bad)]->name;
    const cnr_status status = cnri_drop_noisiest(&q->sensitivity, &q->answers, bad->as.real,
                                                 pow(10, -q->least / 10), q->wanted, err);
    if (!status) note_dropped(q, for_noise, *decibels);
    return status;
}

/* Takes the layers that cost most accuracy out of q->wanted, until the rest costs no more than
 * allowed. */
static cnr_status drop_inaccurate(job *q, cnr_error *err) {
    int32_t n, *order = cnri_alloc(((size_t)q->answers.n + 1) * sizeof *order);
    cnr_status status = order ? CNR_OK : cnri_out_of_memory(err, "quantize");
    if (!status && q->said.n == 0) status = cnri_verdicts_of(&q->c, q->given, true, &q->said, err);
    if (!status && isnan(cnri_points_lost(&q->said, &q->said)))
        status = cnri_fail(err, CNR_E_ARG, "--max-drop",
                           "the net's answers are no classes, so no points can be lost; "
                           "--min-snr bounds the noise instead");
    if (!status) status = cnri_noisiest_first(&q->sensitivity, &q->answers, order, &n, err);
    if (!status)
        status = cnri_keep_within(&q->c, &q->said, q->o->max_drop, order, n, q->wanted,
                                  &q->out->lost, err);
    cnri_free(order);
    return status;
}

/* Once all layers are good enough, takes out layers for accuracy together, then for speed.
 * *again: some were taken out. */
static cnr_status drop_more(job *q, bool *again, cnr_error *err) {
    *again = false;
    cnr_status status = isnan(q->o->max_drop) ? CNR_OK : drop_inaccurate(q, err);
    if (!status) *again = note_dropped(q, for_accuracy, NAN);
    if (status || *again || q->o->all || q->c.how.deterministic) return status;
    status = cnri_drop_slower(&q->c, q->wanted, q->times, err);
    if (!status) *again = note_dropped(q, for_time, NAN);
    return status;
}

/* Noise over signal (a ratio of sums of squares) in the values that the outputs are computed
 * from. */
static double noise_in(const cnri_answers *answers) {
    double all = 0, behind = 0;
    for (int32_t i = 0; i < answers->n; i++) {
        const cnri_answer *a = &answers->at[i];
        const double noise = a->noise > 0 ? a->noise / a->signal : 0;
        all += noise;
        if (!cnri_is_quantised(a)) behind += noise;
    }
    return behind > 0 ? behind : all;
}

/* Quantises the wanted layers and compares the result with the float net. */
static cnr_status quantise_and_compare(job *q, cnr_error *err) {
    cnr_status status = cnri_quantized(&q->c, q->wanted, &q->out->quantized, &q->answers, err);
    if (!status)
        status = cnri_answers_add_watched(&q->c, q->out->quantized, q->watched, &q->answers, err);
    return status ? status : cnri_compare(&q->c, q->out->quantized, &q->answers, COMPARED, err);
}

/* Noise in the outputs if the wanted layers are quantised as they are now, and how many there are.
 */
static cnr_status noise_now(job *q, double *noise, int32_t *layers, cnr_error *err) {
    const cnr_status status = quantise_and_compare(q, err);
    *layers = q->answers.n;
    *noise = noise_in(&q->answers);
    return forget(q, status);
}

/* MOST: pictures of a pass that corrects; LEAST: of large nets, where it was not asked for. */
enum { MOST_PICTURES = 16, LEAST_PICTURES = 4 };
static const double WORK =
    2.5e11; /* multiplications, beyond which a correction has fewer pictures */

/* Number of pictures to correct biases by: fewer for large nets, as each layer takes a pass over
 * the pictures. */
static int64_t pictures_to_correct(const job *q, int32_t layers) {
    const cnr_graph *net = q->out->net;
    double work = 0;
    for (int32_t i = 0; i < net->nodes.n; i++)
        work += (double)cnri_node_macs(&net->nodes.at[i]->view) * layers;
    if (q->o->correct_bias || !(work * MOST_PICTURES > WORK)) return MOST_PICTURES;
    return (int64_t)fmax(LEAST_PICTURES, WORK / work);
}

/* True if a wanted layer has a bias that can be corrected. */
static bool has_bias(const job *q) {
    const cnr_graph *net = q->out->net;
    for (int32_t i = 0; i < net->nodes.n; i++)
        if (q->wanted[i] && cnri_bias_of(net, net->nodes.at[i]) >= 0) return true;
    return false;
}

/* Corrects biases before any layer is given up for noise. Keeps the correction if it reduces
 * noise in the outputs, of the held-back pictures if that was asked for. A mean error of fewer than
 * LEAST_PICTURES pictures says nothing. */
static cnr_status correct_biases(job *q, cnr_error *err) {
    const bool slow = q->o->correct_bias;
    double before, after = NAN;
    int32_t layers;
    if (!has_bias(q)) {
        if (slow) q->out->bias_gain = 0;
        return CNR_OK;
    }
    if (!slow && q->o->limit > 0 && q->o->limit < LEAST_PICTURES) return CNR_OK;
    q->c.compares_held_back = slow;
    cnr_status status = noise_now(q, &before, &layers, err);
    q->c.compares_held_back = false;
    if (status || !(before > 0)) return status;
    status = cnri_correct_biases(&q->c, q->wanted, pictures_to_correct(q, layers), err);
    q->c.compares_held_back = slow;
    if (!status) status = noise_now(q, &after, &layers, err);
    q->c.compares_held_back = false;
    if (slow) q->out->bias_gain = status ? NAN : 10 * log10(before / after);
    if (!(after < before)) cnri_shifts_free(&q->c);
    return status;
}

/* Quantises the wanted layers again and again, without those whose noise is too high, until none
 * is. */
static cnr_status quantise_the_good(job *q, cnr_error *err) {
    const char *spoiled = NULL;
    double decibels = 0;
    cnr_status status = watch(q, err);
    if (!status) status = correct_biases(q, err);
    for (bool again = true; again && !status;) {
        status = cnri_quantized(&q->c, q->wanted, &q->out->quantized, &q->answers, err);
        if (status) break;
        q->out->n_quantised = q->answers.n;
        if (q->answers.n == 0 && !stay_float_for(q, for_time))
            return none_left(q, spoiled, decibels, err);
        if (q->answers.n == 0) {
            /* It was measured with layers that have left since. */
            if (!isnan(q->out->lost)) q->out->lost = 0;
            return CNR_OK;
        }
        status = cnri_answers_add_watched(&q->c, q->out->quantized, q->watched, &q->answers, err);
        if (!status) status = cnri_compare(&q->c, q->out->quantized, &q->answers, COMPARED, err);
        const cnri_answer *bad = status ? NULL : too_noisy(q);
        if (!bad) spoiled = NULL; /* from here on layers leave for other reasons than noise */
        if (bad) status = drop_noisy(q, bad, &spoiled, &decibels, err);
        else if (!status) status = drop_more(q, &again, err);
        if (again || status) status = forget(q, status);
    }
    return status;
}

/* ---- training for whole numbers ---- */

/* Trains a copy of the net, with weights of its own; if that made it better, it replaces the net
 * and is quantised anew, with the same layers and ranges. */
static cnr_status train_and_quantise(job *q, cnr_error *err) {
    cnr_graph *own = NULL;
    cnri_quantising *out = q->out;
    cnr_status status = cnri_graph_clone(out->net, &own, err);
    if (status) return status;
    status =
        cnri_train_for_bytes(&q->c, q->o, &q->answers, own, &out->best_epoch, out->trained, err);
    if (status || out->best_epoch == 0) {
        cnri_graph_free(own);
        return status;
    }
    (void)forget(q, CNR_OK);
    cnri_graph_free(out->net);
    out->net = own;
    q->c.net = own;
    cnri_shifts_free(&q->c); /* were of other weights */
    cnri_rounded_free(&q->c);
    return quantise_and_compare(q, err);
}

/* Rounds the weights of all layers that could be quantised. */
static cnr_status round_weights(job *q, cnr_error *err) {
    bool *all = cnri_alloc_zero((size_t)q->out->net->nodes.n + 1);
    if (!all) return cnri_out_of_memory(err, "quantize");
    memset(all, true, (size_t)q->out->net->nodes.n);
    cnr_status status = cnri_quantized(&q->c, all, &q->out->quantized, &q->answers, err);
    cnri_free(all);
    if (!status) status = cnri_round_weights(&q->c, &q->answers, err);
    return forget(q, status);
}

/* ---- by which ranges ---- */

/* *out: noise of the net with one method of choosing ranges. */
static cnr_status noise_by(job *q, cnri_method method, double *out, cnr_error *err) {
    cnri_calibrate_by(&q->c, method, true);
    const cnr_status status = quantise_and_compare(q, err);
    *out = noise_in(&q->answers);
    return forget(q, status);
}

/* Computes ranges by the method; CNRI_METHOD_AUTO: tries all on the same pictures and takes the one
 * with the least noise. */
static cnr_status choose_ranges(job *q, cnri_method method, cnr_error *err) {
    double best = INFINITY;
    cnr_status status = CNR_OK;
    q->out->method = cnri_range_method_name(method);
    cnri_calibrate_by(&q->c, method, false);
    if (method != CNRI_METHOD_AUTO) return CNR_OK;
    status = watch(q, err);
    for (int32_t i = CNRI_METHOD_MINMAX; i < CNRI_METHODS && !status; i++) {
        double noise;
        status = noise_by(q, (cnri_method)i, &noise, err);
        if (!status && i > CNRI_METHOD_MINMAX && !(noise < best)) continue;
        best = noise;
        method = (cnri_method)i;
    }
    cnri_free(q->watched); /* computed again with the chosen ranges */
    q->watched = NULL;
    cnri_calibrate_by(&q->c, method, true);
    q->out->method = cnri_range_method_name(method);
    return status;
}

/* Rewrites the net as plans do, so that no value is measured that rewriting removes. */
static cnr_status rewritten(job *q, const cnr_graph *net, cnr_error *err) {
    q->out->net = cnri_graph_copy(net);
    if (!q->out->net) return cnri_out_of_memory(err, "quantize");
    const cnr_status status = cnri_graph_rewrite(q->out->net, q->c.how.no_rewrite, NULL, 0, err);
    if (status) return status;
    q->c.net = q->out->net;
    if (q->o->equalise) {
        const cnr_status equal = cnri_equalise(&q->c, q->out->net, err);
        if (equal) return equal;
    }
    q->wanted = cnri_alloc_zero((size_t)(q->out->net->nodes.n + 1) * sizeof *q->wanted);
    q->given_up = cnri_alloc_zero((size_t)(q->out->net->nodes.n + 1) * sizeof *q->given_up);
    q->float_for = cnri_alloc_zero((size_t)(q->out->net->nodes.n + 1) * sizeof *q->float_for);
    q->times = cnri_alloc_zero((size_t)(q->out->net->nodes.n + 1) * sizeof *q->times);
    if (!q->wanted || !q->given_up || !q->float_for || !q->times)
        return cnri_out_of_memory(err, "quantize");
    for (int32_t i = 0; i < q->out->net->nodes.n; i++) q->given_up[i] = NAN;
    for (int32_t i = 0; i < q->out->net->nodes.n; i++)
        q->wanted[i] =
            !q->o->layers || fnmatch(q->o->layers, q->out->net->nodes.at[i]->name, 0) == 0;
    return CNR_OK;
}

/* ---- both nets side by side ---- */

/* True for floating-point types. */
static bool is_real(int32_t dtype) {
    return dtype == CNR_f32 || dtype == CNR_f16 || dtype == CNR_bf16 || dtype == CNR_f64;
}

/* Adds a picture to the signal and noise of each output. */
static cnr_status compare_outputs(job *q, cnri_runner *runners, cnr_error *err) {
    for (int32_t k = 0; k < cnr_output_count(runners[0].model); k++) {
        const cnr_tensor *is[2];
        cnri_answer *a = &q->outputs.at[k];
        for (int i = 0; i < 2; i++) {
            const cnr_status status = cnr_session_output(runners[i].session, k, &is[i], err);
            if (status) return status;
        }
        if (!is_real(is[0]->dtype) || !cnr_same_shape(is[0], is[1])) continue;
        for (int64_t n = 0; n < cnr_count(is[0]); n++)
            cnri_add_noise(a, cnri_element(is[0]->dtype, is[0]->data, n),
                           cnri_element(is[1]->dtype, is[1]->data, n));
    }
    return CNR_OK;
}

/* Runs one picture through both nets, keeps the times, and counts in q->out whether they agree. */
static cnr_status check_one(job *q, cnri_runner *runners, const cnr_sample *sample,
                            cnr_error *err) {
    int64_t said[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        const cnr_tensor *out;
        cnr_tensor one;
        uint64_t ns;
        cnr_status status = cnri_runner_shape(&runners[i], 1, &sample->picture, err);
        if (!status) status = cnri_runner_put(&runners[i], 0, &sample->picture, err);
        if (!status && q->out->checked == 0)
            status = cnri_runner_run(&runners[i], NULL, err); /* warms up */
        if (!status) status = cnri_runner_run(&runners[i], &ns, err);
        if (!status) status = cnr_session_output(runners[i].session, 0, &out, err);
        if (status) return status;
        double *kept = cnri_push(&q->ns[i]);
        if (!kept) return cnri_out_of_memory(err, "quantize");
        *kept = (double)ns;
        if (cnri_runner_slice(&runners[i], out, 0, &one)) said[i] = cnri_best_class(&one);
        q->right[i] += sample->label >= 0 && said[i] == sample->label;
    }
    q->out->checked++;
    q->labelled += sample->label >= 0;
    q->judged += said[0] >= 0;
    q->agree += said[0] == said[1] && said[0] >= 0;
    return compare_outputs(q, runners, err);
}

/* *n: how many pictures are checked, at most `maximum`; *order: which ones, for cnri_free; NULL:
 * the first. If there are no others, those that trained the net are left out. */
static cnr_status choose_checked(const job *q, const cnri_samples *samples, int64_t maximum,
                                 int64_t **order, int64_t *n, cnr_error *err) {
    int64_t there = samples->info.count;
    cnr_status status = CNR_OK;
    *order = NULL;
    if (q->out->best_epoch > 0 && (q->o->samples || !samples->info.is_split))
        status = cnri_unseen_by_training(samples->info.count, order, &there, err);
    *n = maximum < there ? maximum : there;
    return status;
}

/* Runs both nets on at most `maximum` pictures, and notes agreement, times and decibels in the
 * result. */
static cnr_status check(job *q, int64_t maximum, cnr_error *err) {
    const cnr_graph *nets[2] = {q->given, q->out->quantized};
    cnr_model *models[2] = {NULL, NULL};
    cnri_runner runners[2] = {{0}, {0}};
    cnri_samples own = {0}, *samples = q->o->samples ? q->o->samples : &own;
    cnr_status status = q->o->samples ? CNR_OK : cnri_augment_open(q->o->data, "eval", &own, err);
    int64_t n = 0, *order = NULL;
    if (!status) status = choose_checked(q, samples, maximum, &order, &n, err);
    for (int i = 0; i < 2 && !status; i++) {
        status = cnri_calibration_model(&q->c, nets[i], true, &models[i], err);
        if (!status) status = cnri_runner_open(&runners[i], models[i], q->c.observer, err);
    }
    for (int32_t i = 0; i < q->out->net->outputs.n && !status; i++)
        if (!cnri_push(&q->outputs)) status = cnri_out_of_memory(err, "quantize");
    for (int64_t i = 0; i < n && !status; i++) {
        cnr_sample sample;
        if ((status = cnri_samples_read(samples, order ? order[i] : i, &sample, err)) != CNR_OK)
            break;
        status = check_one(q, runners, &sample, err);
        cnri_free(sample.picture.data);
        if (!status) status = cnri_report_progress(q->c.observer, "checking", i + 1, n, err);
    }
    for (int i = 0; i < 2; i++) {
        cnri_runner_close(&runners[i]);
        cnr_release(models[i]);
    }
    if (!q->o->samples) cnri_samples_close(&own);
    cnri_free(order);
    return status;
}

/* ---- the result ---- */

static double share(int64_t part, int64_t all) { return all ? (double)part / (double)all : NAN; }

/* Bytes of all weights of a net that are used. */
static int64_t weight_bytes(const cnr_graph *g) {
    int64_t sum = 0;
    for (int32_t i = 0; i < g->values.n; i++) {
        const cnri_value *v = &g->values.at[i];
        if (v->producer < 0 && !v->is_input && v->uses > 0) sum += (int64_t)v->type->bytes;
    }
    return sum;
}

/* The quantised value that a node computes; NULL: none. */
static const cnri_answer *answer_of(const job *q, int32_t node) {
    for (int32_t i = 0; i < q->answers.n; i++)
        if (cnri_is_quantised(&q->answers.at[i]) &&
            cnri_answer_node(q->out->net, &q->answers.at[i]) == node)
            return &q->answers.at[i];
    return NULL;
}

enum { SLOWER_PERCENT = 5, WORSE_POINTS = 1, AGREE_PERCENT = 95, OUTPUT_DECIBELS = 10 };

/* Says that the quantised net's outputs are useless. */
static cnr_status nothing_in_common(const job *q, cnr_error *err) {
    return cnri_fail(
        err, CNR_E_STATE, q->out->net->name,
        "on %lld pictures the quantised net's outputs have nothing in common with the float net's "
        "(signal to noise %.1f dB): raise --min-snr, calibrate on pictures like those that "
        "it will see, or leave layers out by --layers; --check 0 compares nothing",
        (long long)q->out->checked, q->out->decibels);
}

/* Warns if the quantised net is slower or worse than the float net. CNR_E_STATE: its outputs
 * have nothing in common with those of the float net. */
static cnr_status warn(const job *q, cnr_error *err) {
    const cnri_quantising *out = q->out;
    const char *name = out->net->name;
    const double points = (out->top1[0] - out->top1[1]) * 100;
    char advice[96];
    if (out->decibels <= 0 && !(out->agree > 0)) return nothing_in_common(q, err);
    if (isfinite(q->least))
        snprintf(advice, sizeof advice, "a higher --min-snr (%g) leaves more layers in floats",
                 q->least);
    else
        snprintf(advice, sizeof advice, "a lower --max-drop (%g) leaves more layers in floats",
                 q->o->max_drop);
    if (out->n_quantised > 0 && out->ms[1] * 100 > out->ms[0] * (100 + SLOWER_PERCENT))
        cnri_graph_warn(out->quantized, name,
                        "the quantised net is slower here: %.3f ms a picture, %.3f "
                        "in floats",
                        out->ms[1], out->ms[0]);
    if (points >= WORSE_POINTS)
        cnri_graph_warn(out->quantized, name,
                        "the quantised net is less accurate by %.1f points: top-1 "
                        "%.2f%%, %.2f%% in floats",
                        points, out->top1[1] * 100, out->top1[0] * 100);
    if (out->agree * 100 < AGREE_PERCENT && out->best_epoch == 0) /* other weights, other answers */
        cnri_graph_warn(out->quantized, name,
                        "the quantised net gives the float net's answer to %.2f%% of "
                        "the pictures only; %s",
                        out->agree * 100, advice);
    if (isnan(out->agree) && out->decibels < OUTPUT_DECIBELS)
        cnri_graph_warn(out->quantized, name,
                        "the quantised net's outputs differ from the float net's: "
                        "signal to noise %.1f dB; %s",
                        out->decibels, advice);
    return CNR_OK;
}

/* Fills the result's rows of layers, with node names owned by the net. */
static cnr_status take(job *q, cnr_error *err) {
    cnri_quantising *out = q->out;
    const int32_t n = out->net->nodes.n;
    out->layers = cnri_alloc_zero((size_t)(n + 1) * sizeof *out->layers);
    if (!out->layers) return cnri_out_of_memory(err, "quantize");
    for (int32_t i = 0; i < n; i++) {
        const cnri_answer *a = answer_of(q, i);
        const cnri_node *node = out->net->nodes.at[i];
        if (!a && isnan(q->given_up[i])) continue;
        const cnri_range *r = &q->c.all[node->out[0]];
        const double *ns = q->times[i].ns;
        out->layers[out->n_layers++] =
            (cnri_quantised_layer){.name = node->name,
                                   .low = r->low,
                                   .high = r->high,
                                   .decibels = a ? cnri_decibels(a) : q->given_up[i],
                                   .quantised = a != NULL,
                                   .ms = {ns[0] > 0 ? ns[0] * 1e-6 : NAN,
                                          ns[1] > 0 ? ns[1] * 1e-6 : NAN},
                                   .float_for = a ? NULL : q->float_for[i]};
    }
    out->n_float = out->n_layers - out->n_quantised;
    out->agree = share(q->agree, q->judged);
    out->decibels = NAN;
    for (int32_t i = 0; i < q->outputs.n; i++)
        if (q->outputs.at[i].signal > 0 || q->outputs.at[i].noise > 0)
            out->decibels = fmin(out->decibels, cnri_decibels(&q->outputs.at[i]));
    cnr_wilson_interval(out->agree, q->judged, out->agree_range);
    for (int i = 0; i < 2; i++) {
        out->top1[i] = share(q->right[i], q->labelled);
        cnr_wilson_interval(out->top1[i], q->labelled, out->top1_range[i]);
        out->bytes[i] = weight_bytes(i ? out->quantized : out->net);
        out->ms[i] = out->checked ? cnri_median(q->ns[i].at, q->ns[i].n) * 1e-6 : 0;
    }
    if (out->n_quantised == 0)
        cnri_graph_warn(out->quantized, out->net->name,
                        "no layer is faster in 8 bits here: all stay float; --all quantises them");
    return out->checked ? warn(q, err) : CNR_OK;
}

/* Least number of pictures for holding some back. */
enum { LEAST_TO_HOLD_BACK = 2 * CNRI_HELD_BACK };

/* Calibrates, quantises and compares a net by the job's options, into the job's result. */
static cnr_status quantise_all(job *q, const cnr_graph *net, cnr_error *err) {
    const int64_t limit = q->o->limit > 0 ? q->o->limit : 100;
    cnr_status status =
        q->o->samples ? CNR_OK : cnri_augment_open(q->o->data, "train", &q->own, err);
    if (status) return status;
    q->c.samples = q->o->samples ? q->o->samples : &q->own;
    q->c.pictures = limit < q->c.samples->info.count ? limit : q->c.samples->info.count;
    const bool judges = !isnan(q->o->max_drop) || q->o->correct_bias;
    q->c.holds_back = judges && q->c.pictures >= LEAST_TO_HOLD_BACK;
    for (int64_t i = 0; judges && i < q->c.pictures; i++)
        q->out->held_back += cnri_judges(&q->c, i);
    if ((status = rewritten(q, net, err)) != CNR_OK) return status;
    cnri_method method;
    status = cnri_range_method(q->o->method, &method, err);
    if (!status) status = cnri_calibrate(&q->c, method != CNRI_METHOD_MINMAX, err);
    if (!status) cnri_calibrate_by(&q->c, CNRI_METHOD_MINMAX, false);
    if (!status) status = round_weights(q, err);
    if (!status) status = choose_ranges(q, method, err);
    if (!status) status = quantise_the_good(q, err);
    if (!status && q->o->epochs > 0 && q->answers.n > 0) status = train_and_quantise(q, err);
    if (!status && q->o->check) status = check(q, q->o->check < 0 ? limit : q->o->check, err);
    return status ? status : take(q, err);
}

cnr_status cnri_quantise(cnr_runtime *rt, const cnr_graph *net,
                         const cnri_quantise_options *options, const cnr_observer *observer,
                         cnri_quantising *out, cnr_error *err) {
    job q = {.o = options, .given = net, .out = out, .c = {.rt = rt, .observer = observer}};
    q.least = !isnan(options->least)     ? options->least
              : isnan(options->max_drop) ? LEAST_DECIBELS
                                         : -INFINITY;
    *out = (cnri_quantising){.lost = NAN, .bias_gain = NAN, .trained = {NAN, NAN}};
    CNRI_COPY_OPTIONS(q.c.how, options->how);
    const int64_t before = cnri_alloc_failures();
    cnr_status status = quantise_all(&q, net, err);
    if (!options->samples) cnri_samples_close(&q.own);
    cnri_answers_free(&q.answers);
    cnri_answers_free(&q.outputs);
    cnri_sensitivity_free(&q.sensitivity);
    for (int i = 0; i < 2; i++) cnri_vec_free(&q.ns[i]);
    cnri_free(q.watched);
    cnri_free(q.wanted);
    cnri_free(q.given_up);
    cnri_free(q.float_for);
    cnri_free(q.times);
    cnri_verdicts_free(&q.said);
    cnri_calibration_free(out->quantized);
    cnri_calibration_close(&q.c);
    status = cnri_alloc_verdict(before, status, net->name, err);
    if (status) cnri_quantising_free(out);
    return status;
}

/* Frees both nets and the layers, and zeroes the result. */
void cnri_quantising_free(cnri_quantising *q) {
    cnri_graph_free(q->quantized);
    cnri_graph_free(q->net);
    cnri_free(q->layers);
    *q = (cnri_quantising){0};
}
