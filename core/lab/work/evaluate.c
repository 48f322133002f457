/* Measures how often a net is right on labelled pictures. */
#include "train/train.h"
#include "work/work.h"
#include "samples/samples.h"
#include <math.h>

enum { TOP = 5, MAX_LABELS = 1024 }; /* MAX_LABELS: most labels of a confusion matrix */

/* An evaluation that is under way. */
typedef struct job {
    cnr_evaluate_options o;
    const cnr_observer *observer;
    cnri_runner runner;
    cnri_samples *samples;
    cnr_evaluation *out;
    double loss;
    int32_t *labels;  /* labels of the current batch */
    int64_t *indices; /* sample indices of the pictures in the current batch */
    int64_t filled;
    int64_t first, n; /* this rank's part of the pictures that are looked at */
    int64_t all;      /* number of pictures of all ranks together */
    cnri_metrics metrics;
    float *scores;  /* scores of all pictures, for metrics; NULL: there are no metrics */
    int32_t *meant; /* label class of each picture, for metrics */
    int64_t classes;
    bool repeats; /* the same pictures are run again to measure energy; nothing is kept of them */
} job;

/* Label of a class of the net; -1: it has none. */
static int64_t label_of(const job *j, int64_t class) {
    if (j->o.labels) return class < j->o.n_labels ? j->o.labels[class] : -1;
    return class - j->o.offset;
}

/* The shares that the scores give to the label's classes, and to class `answer` (-1: none).
 * Scores that are no shares are turned into shares by softmax. */
static cnr_evaluated shares_of(const job *j, const cnr_tensor *sample, int64_t label,
                               int64_t answer) {
    const int64_t n = cnr_count(sample);
    const bool shares = cnri_are_shares(sample);
    double maximum = -INFINITY, all = 0, meant = 0, answered = 0;
    for (int64_t i = 0; i < n; i++)
        maximum = fmax(maximum, cnri_element(sample->dtype, sample->data, i));
    for (int64_t i = 0; i < n; i++) {
        const double score = cnri_element(sample->dtype, sample->data, i);
        const double part = shares ? score : exp(score - maximum);
        all += part;
        if (label_of(j, i) == label) meant += part;
        if (i == answer) answered = part;
    }
    return (cnr_evaluated){.label = label,
                           .answer = answer >= 0 ? label_of(j, answer) : -1,
                           .share = answered / all,
                           .label_share = meant / all};
}

/* Fails if a label is none of the net's classes, or the class map is too short for them. */
static cnr_status check(const job *j, const cnr_tensor *sample, int64_t label, cnr_error *err) {
    const int64_t classes = cnr_count(sample), class = label + j->o.offset;
    if (j->o.labels && j->o.n_labels < classes)
        return cnri_fail(err, CNR_E_ARG, j->o.data, "the class map has %lld rows for %lld classes",
                         (long long)j->o.n_labels, (long long)classes);
    if (j->o.labels || (class >= 0 && class < classes)) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, j->o.data,
                     "label %lld%s: the net tells %lld classes apart, from 0 on; want another "
                     "class map or data",
                     (long long)label, j->o.offset ? " with the offset" : "", (long long)classes);
}

/* The class that stands for the label; -1: none does. */
static int64_t class_of(const job *j, int64_t label, int64_t classes) {
    if (!j->o.labels) return label + j->o.offset;
    for (int64_t i = 0; i < classes; i++)
        if (label_of(j, i) == label) return i;
    return -1;
}

/* Keeps a picture's scores and label for the metrics, if there are any; the first picture tells how
 * many classes there are. */
static cnr_status keep_scores(job *j, const cnr_tensor *sample, int64_t label, cnr_error *err) {
    bool overflow = false;
    if (j->metrics.n == 0 || j->repeats) return CNR_OK;
    if (!j->scores) {
        j->classes = cnr_count(sample);
        const size_t n = cnri_mul((size_t)j->all, (size_t)j->classes, &overflow);
        j->scores = overflow ? NULL : cnri_alloc_zero((n + 1) * sizeof *j->scores);
        j->meant = cnri_alloc_zero((size_t)(j->all + 1) * sizeof *j->meant);
        if (!j->scores || !j->meant) return cnri_out_of_memory(err, "scores for the metrics");
    }
    const int64_t at = j->first + j->out->n;
    for (int64_t i = 0; i < j->classes; i++)
        j->scores[at * j->classes + i] = (float)cnri_element(sample->dtype, sample->data, i);
    j->meant[at] = (int32_t)class_of(j, label, j->classes);
    return CNR_OK;
}

/* Counts one picture of the batch as right or wrong. */
static cnr_status count(job *j, const cnr_tensor *whole, int64_t slot, cnr_error *err) {
    cnr_evaluation *e = j->out;
    cnr_tensor sample;
    cnr_top top[TOP];
    if (!cnri_runner_slice(&j->runner, whole, slot, &sample) || !cnri_is_classes(&sample))
        return cnri_fail(err, CNR_E_UNSUPPORTED, cnr_output_name(j->runner.model, 0),
                         "only scores of classes can be judged, one list a picture");
    const int64_t label = j->labels[slot];
    cnr_status status = check(j, &sample, label, err);
    if (!status) status = keep_scores(j, &sample, label, err);
    if (status) return status;
    const int32_t n = cnr_topk(&sample, TOP, top);
    e->n++;
    for (int32_t i = 0; i < n; i++)
        if (label_of(j, top[i].index) == label) {
            e->among_top++;
            e->right += i == 0;
            break;
        }
    cnr_evaluated row = shares_of(j, &sample, label, n ? top[0].index : -1);
    row.index = j->indices[slot];
    if (e->rows) e->rows[j->first + e->n - 1] = row;
    j->loss -= log(fmax(row.label_share, 1e-12));
    if (e->confusion && label < e->labels && row.answer >= 0 && row.answer < e->labels)
        e->confusion[label * e->labels + row.answer]++;
    return CNR_OK;
}

/* Runs the pictures collected, counts right answers and losses, and empties the batch. */
static cnr_status run_batch(job *j, cnr_error *err) {
    const cnr_tensor *out;
    cnr_status status = j->filled ? cnri_runner_run(&j->runner, NULL, err) : CNR_OK;
    if (!status && j->filled) status = cnr_session_output(j->runner.session, 0, &out, err);
    for (int64_t i = 0; i < j->filled && !status; i++) status = count(j, out, i, err);
    j->filled = 0;
    return status;
}

/* Adds a picture to the batch, which is run when full. */
static cnr_status add_sample(job *j, const cnr_sample *sample, int64_t index, int64_t left,
                             cnr_error *err) {
    cnr_status status = CNR_OK;
    if (sample->label < 0)
        return cnri_fail(err, CNR_E_ARG, sample->name,
                         "has no label; use folders named by class, or images:LIST");
    if (j->filled == 0)
        status = cnri_runner_shape(&j->runner, left < j->o.batch ? left : j->o.batch,
                                   &sample->picture, err);
    if (!status && !j->labels) {
        const int64_t capacity = j->runner.batch > j->o.batch ? j->runner.batch : j->o.batch;
        j->labels = cnri_alloc((size_t)capacity * sizeof *j->labels);
        j->indices = cnri_alloc((size_t)capacity * sizeof *j->indices);
        if (!j->labels || !j->indices) status = cnri_out_of_memory(err, "labels");
    }
    if (!status) status = cnri_runner_put(&j->runner, j->filled, &sample->picture, err);
    if (status) return status;
    j->indices[j->filled] = index;
    j->labels[j->filled++] = sample->label;
    return j->filled == j->runner.batch || j->filled == left ? run_batch(j, err) : CNR_OK;
}

void cnr_wilson_interval(double part, int64_t n, double out[2]) {
    if (!out) return;
    const double z = 1.959964, all = (double)n;
    const double middle = (part + z * z / (2 * all)) / (1 + z * z / all);
    const double half =
        z / (1 + z * z / all) * sqrt(part * (1 - part) / all + z * z / (4 * all * all));
    out[0] = isnan(part) || part > 0 ? middle - half : 0;
    out[1] = isnan(part) || part < 1 ? middle + half : 1;
}

/* Computes shares of right answers and mean loss from the counts, into the result. */
static void sum_up(job *j) {
    cnr_evaluation *e = j->out;
    const double n = e->n ? (double)e->n : 1;
    e->top1 = (double)e->right / n;
    e->top5 = (double)e->among_top / n;
    e->loss = j->loss / n;
}

/* Evaluates j->n samples of `order` from j->first on; NULL: in the source's order. */
static cnr_status all_samples(job *j, const int64_t *order, cnr_error *err) {
    const int64_t n = j->n;
    cnr_progress p = {.size = sizeof p, .what = "eval", .total = n};
    cnr_status status = CNR_OK;
    while (p.done < n && !status) {
        cnr_sample sample;
        const int64_t index = order ? order[j->first + p.done] : j->first + p.done;
        status = cnri_samples_read(j->samples, index, &sample, err);
        if (status) break;
        status = add_sample(j, &sample, index, n - p.done + j->filled, err);
        cnri_free(sample.picture.data);
        sum_up(j);
        p.done++;
        p.top1 = j->out->top1;
        p.loss = j->out->loss;
        if (!status && !cnri_notify_progress(j->observer, &p))
            status = cnri_fail(err, CNR_E_CANCELLED, "eval", "stopped");
    }
    return status;
}

/* Selects the samples: all, the first ones, or, of these, the part that training holds back.
 * *order: *n indices for cnri_free; NULL: 0 .. n - 1. */
static cnr_status choose_samples(const job *j, int64_t **order, int64_t *n, cnr_error *err) {
    const cnri_train_options part = {.validation = j->o.validation,
                                     .validation_seed = j->o.validation_seed};
    const int64_t count = j->samples->info.count;
    *order = NULL;
    *n = j->o.limit > 0 && j->o.limit < count ? j->o.limit : count;
    return j->o.validation > 0 ? cnri_train_parts(&part, *n, order, n, err) : CNR_OK;
}

/* Repeats the same pictures, uncounted, until the meters have measured enough; *times: how often
 * in all. */
static cnr_status repeat_until_measured(job *j, cnr_energy_region *region, const int64_t *order,
                                        int64_t *times, cnr_error *err) {
    cnr_evaluation *kept = j->out, ignored = {.size = sizeof ignored, .labels = kept->labels};
    cnr_status status = CNR_OK;
    const double loss = j->loss;
    j->out = &ignored;
    j->repeats = true;
    for (*times = 1; region && !status && !cnr_energy_long_enough(region); ++*times)
        status = all_samples(j, order, err);
    j->out = kept;
    j->loss = loss;
    return status;
}

/* Sums the rows over all ranks; rows that other ranks filled are zeros here. */
static cnr_status sum_rows(cnr_evaluated *rows, int64_t n, cnr_error *err) {
    enum { MEMBERS = 5 };
    double *all = cnri_alloc((size_t)n * MEMBERS * sizeof *all);
    if (!all) return cnri_out_of_memory(err, "rows");
    for (int64_t i = 0; i < n; i++) {
        const double members[MEMBERS] = {(double)rows[i].index, (double)rows[i].label,
                                         (double)rows[i].answer, rows[i].share,
                                         rows[i].label_share};
        memcpy(all + i * MEMBERS, members, sizeof members);
    }
    const cnr_status status = cnri_group_sum(all, n * MEMBERS, err);
    for (int64_t i = 0; i < n && !status; i++) {
        const double *m = all + i * MEMBERS;
        rows[i] = (cnr_evaluated){(int64_t)m[0], (int64_t)m[1], (int64_t)m[2], m[3], m[4]};
    }
    cnri_free(all);
    return status;
}

/* Sums the confusion matrix over all ranks, into each rank's. */
static cnr_status sum_confusion(cnr_evaluation *e, cnr_error *err) {
    const int64_t n = e->labels * e->labels;
    double *all = cnri_alloc((size_t)n * sizeof *all);
    if (!all) return cnri_out_of_memory(err, "confusion");
    for (int64_t i = 0; i < n; i++) all[i] = (double)e->confusion[i];
    const cnr_status status = cnri_group_sum(all, n, err);
    for (int64_t i = 0; i < n && !status; i++) e->confusion[i] = (int64_t)all[i];
    cnri_free(all);
    return status;
}

/* Adds up the counts and losses of all ranks, into each rank's; n: pictures of this rank. */
static cnr_status sum_over_ranks(job *j, int64_t n, cnr_error *err) {
    cnr_evaluation *e = j->out;
    double sums[] = {(double)e->n, (double)e->right, (double)e->among_top, j->loss};
    if (cnri_group_ranks() == 1) return CNR_OK;
    cnr_status status = cnri_group_sum(sums, (int64_t)CNRI_COUNT(sums), err);
    e->n = (int64_t)sums[0];
    e->right = (int64_t)sums[1];
    e->among_top = (int64_t)sums[2];
    j->loss = sums[3];
    sum_up(j);
    if (!status && e->confusion) status = sum_confusion(e, err);
    return !status && e->rows && n > 0 ? sum_rows(e->rows, n, err) : status;
}

/* Ranks know the number of classes from the net, where they judged no picture themselves. */
static cnr_status gather_scores(job *j, cnr_error *err) {
    if (cnri_group_ranks() == 1) return CNR_OK;
    double most = (double)j->classes;
    const int32_t ranks = cnri_group_ranks();
    double *classes = cnri_alloc_zero((size_t)ranks * sizeof *classes);
    double *meant = cnri_alloc_zero((size_t)(j->all + 1) * sizeof *meant);
    cnr_status status = classes && meant ? CNR_OK : cnri_out_of_memory(err, "metrics");
    if (!status) classes[cnri_group_rank()] = most;
    if (!status) status = cnri_group_sum(classes, ranks, err);
    for (int32_t i = 0; !status && i < ranks; i++) most = fmax(most, classes[i]);
    j->classes = (int64_t)most;
    const size_t n = (size_t)(j->all * j->classes + 1);
    if (!status && !j->scores) j->scores = cnri_alloc_zero(n * sizeof *j->scores);
    if (!status && !j->meant) j->meant = cnri_alloc_zero((size_t)(j->all + 1) * sizeof *j->meant);
    if (!status && (!j->scores || !j->meant)) status = cnri_out_of_memory(err, "metrics");
    for (int64_t i = 0; !status && i < j->all; i++) meant[i] = j->meant[i];
    if (!status) status = cnri_group_sum(meant, j->all, err);
    for (int64_t i = 0; !status && i < j->all; i++) j->meant[i] = (int32_t)meant[i];
    if (!status) status = cnri_group_sum_floats(j->scores, j->all * j->classes, err);
    cnri_free(classes);
    cnri_free(meant);
    return status;
}

/* Computes the metrics from the scores of all pictures, into the result; without metrics:
 * nothing. */
static cnr_status measure(job *j, cnr_error *err) {
    double values[CNR_MAX_METRICS] = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (j->metrics.n == 0) return CNR_OK;
    cnr_status status = gather_scores(j, err);
    if (!status && j->all > 0)
        status =
            cnri_metrics_compute(&j->metrics, j->scores, j->all, j->classes, j->meant, values, err);
    if (status) return status;
    j->out->n_metrics = j->metrics.n;
    cnri_metrics_tell(&j->metrics, values, j->out->metrics);
    return CNR_OK;
}

cnr_status cnri_evaluate(cnr_model *model, cnri_samples *samples,
                         const cnr_evaluate_options *options, const cnr_observer *observer,
                         cnr_evaluation *out, cnr_error *err) {
    const cnr_source_info *info = &samples->info;
    job j = {.observer = observer, .samples = samples, .out = out};
    CNRI_COPY_OPTIONS(j.o, options);
    *out = (cnr_evaluation){.size = sizeof *out};
    if (j.o.batch <= 0) j.o.batch = 8;
    if (!j.o.data) j.o.data = "data";
    if (info->classes < 1)
        return cnri_fail(err, CNR_E_ARG, j.o.data,
                         "no labels; use folders named by class, or images:LIST");
    out->labels = info->classes;
    if (out->labels <= MAX_LABELS) {
        const size_t n = (size_t)(out->labels * out->labels);
        out->confusion = cnri_alloc_zero(n * sizeof *out->confusion);
        if (!out->confusion) return cnri_out_of_memory(err, "confusion");
    }
    cnr_energy_region *region = NULL;
    int64_t *order, n;
    cnr_status status = choose_samples(&j, &order, &n, err);
    j.all = n;
    if (!status)
        status = cnri_metrics_open(j.o.metric_files, j.o.metrics, j.o.n_metrics, &j.metrics, err);
    if (!status && j.o.rows && n > 0) {
        out->rows = cnri_alloc_zero((size_t)n * sizeof *out->rows);
        if (!out->rows) status = cnri_out_of_memory(err, "rows");
    }
    if (!status) status = cnri_runner_open(&j.runner, model, observer, err);
    if (!status) status = cnri_energy_begin_if(model->rt, j.o.energy, observer, &region, err);
    const uint64_t begin = cnri_now_ns();
    int64_t times = 1, end;
    cnri_group_part(n, &j.first, &end);
    j.n = end - j.first;
    if (!status) status = all_samples(&j, order, err);
    out->seconds = (double)(cnri_now_ns() - begin) * 1e-9;
    if (!status) status = repeat_until_measured(&j, region, order, &times, err);
    const int64_t own = out->n * times; /* the joules are those of this process's machine */
    if (!status) status = sum_over_ranks(&j, n, err);
    if (!status) status = measure(&j, err);
    status = cnri_energy_close(region, status, own, &out->energy, err);
    cnri_energy_check_plan(out->energy, j.runner.plan);
    cnri_runner_close(&j.runner);
    cnri_metrics_close(&j.metrics);
    cnri_free(j.labels);
    cnri_free(j.indices);
    cnri_free(j.scores);
    cnri_free(j.meant);
    cnri_free(order);
    if (status) cnr_evaluation_free(out);
    return status;
}

cnr_status cnr_evaluate(cnr_model *model, const cnr_evaluate_options *options,
                        const cnr_observer *observer, cnr_evaluation *out, cnr_error *err) {
    cnr_evaluate_options o;
    cnr_evaluation got = {.size = sizeof got};
    cnri_samples samples;
    CNRI_COPY_OPTIONS(o, options);
    cnr_status status =
        cnri_require_arguments(err, "model", model, "options.data", o.data, "out", out, NULL);
    if (!status && out->size < offsetof(cnr_evaluation, rows))
        status = CNRI_CHECK_RESULT_SIZE(out, got, err);
    /* The caller's struct is older and has no room for rows. */
    if (!status && out->size < sizeof got) o.rows = 0;
    if (!status) status = cnri_augment_open(o.data, o.split ? o.split : "eval", &samples, err);
    if (status) return status;
    status = cnri_evaluate(model, &samples, &o, observer, &got, err);
    cnri_samples_close(&samples);
    if (!status) CNRI_COPY_RESULT(out, got);
    return status;
}

void cnr_evaluation_free(cnr_evaluation *e) {
    if (!e) return;
    cnri_free(e->confusion);
    if (CNRI_HAS(e, rows)) {
        cnri_free(e->rows);
        e->rows = NULL;
    }
    e->confusion = NULL;
    cnri_energy_drop(&e->energy);
}
