/* Epochs: trains on shuffled batches of one part of the samples, then judges by the other part. */
#include "train/train.h"
#include <math.h>

/* State of xoshiro256**, seeded by splitmix64: a seed gives the same order everywhere. */
typedef struct random_state {
    uint64_t s[4];
} random_state;

/* Starts the random numbers from a seed. */
static void random_begin(random_state *r, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        r->s[i] = z ^ z >> 31;
    }
}

static uint64_t rotated(uint64_t x, int by) { return x << by | x >> (64 - by); }

/* Next 64 random bits (xoshiro256**) */
static uint64_t random_next(random_state *r) {
    uint64_t *s = r->s;
    const uint64_t result = rotated(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotated(s[3], 45);
    return result;
}

/* Shuffles a list of n indices in place (Fisher and Yates). */
static void shuffle(int64_t *order, int64_t n, random_state *r) {
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t k = (int64_t)(random_next(r) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

/* Fails for a sample without a label that the net tells apart, naming the sample. */
static cnr_status check_label(const cnri_trainer *t, const cnr_sample *s, cnr_error *err) {
    if (s->label >= 0 && s->label < t->classes) return CNR_OK;
    if (s->label == -1)
        return cnri_fail(err, CNR_E_ARG, s->name,
                         "the picture has no label; use folders named by class, or images:LIST");
    return cnri_fail(err, CNR_E_ARG, s->name,
                     "the picture has label %d, and the net tells %lld classes apart, from 0 on",
                     s->label, (long long)t->classes);
}

/* How a sample is put into a row of the batch: varied for the epoch, or unchanged. */
enum { AS_IT_IS = -1 };
/* Reads a sample, varied unless epoch is AS_IT_IS, and preprocesses it into row `row` of the
 * batch. */
static cnr_status read_sample(cnri_trainer *t, cnri_samples *samples, int64_t index, int64_t epoch,
                              int64_t row, cnr_error *err) {
    cnr_sample sample;
    memset(&sample, 0, sizeof sample);
    sample.size = sizeof sample;
    cnr_status status =
        epoch == AS_IT_IS ? cnri_samples_read(samples, index, &sample, err)
                          : cnri_samples_vary(samples, index, t->options.seed, epoch, &sample, err);
    if (status != CNR_OK) return status;
    cnr_tensor out = t->input;
    out.dim[0] = 1;
    out.bytes = (uint64_t)t->sample * sizeof(float);
    out.data = t->inputs + row * t->sample;
    status = check_label(t, &sample, err);
    if (status == CNR_OK)
        status = cnri_preprocess_apply(&t->preprocess, &sample.picture, &out, err);
    t->labels[row] = sample.label;
    cnri_free(sample.picture.data);
    return status;
}

/* A training that is under way. */
typedef struct loop {
    cnri_trainer *t;
    cnri_samples *samples;
    cnri_train_fn fn;
    void *arg;
    cnri_train_progress p;
    cnri_train_state state; /* beside p: sums of this epoch, and the loss of the first step */
    cnri_train_rows rows;
    uint8_t key[32];
    /* Order of the samples and number held back, as cnri_train_parts returns them. */
    int64_t *order, held;
    random_state random;
    /* asked: this rank wants to stop. agreed: some rank did when the last step was summed up. */
    bool asked, agreed;
    uint64_t begun, saved; /* ns: when training began, and when the last checkpoint was saved */
} loop;

/* Tells the observer how far it is; false: it wants to stop. */
static bool tell(loop *l) {
    const int64_t done = l->p.epoch * l->p.steps + l->p.step;
    const double part = (double)done / (double)(l->p.epochs * l->p.steps);
    l->p.seconds = (double)(cnri_now_ns() - l->begun) * 1e-9;
    l->p.left = done > 0 ? l->p.seconds / part - l->p.seconds : 0;
    return !l->fn || l->fn(l->arg, &l->p);
}

/* True if the loss is no number, or 100 times the first one, from where training does not
 * recover. The first one counts as at least 1, because a net that is trained already begins near
 * 0. */
static bool diverged(loop *l, double loss) {
    if (l->p.epoch == 0 && l->p.step == 0) l->state.start = loss > 1 ? loss : 1;
    l->p.diverged = !isfinite(loss) || loss > 100 * l->state.start;
    if (l->p.diverged) l->p.loss = loss;
    return l->p.diverged;
}

/* True if the caller's cancel flag is set. */
static bool is_cancelled(const cnri_trainer *t) {
    const volatile int32_t *flag = t->options.cancel;
    return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0;
}

/* Turns the error of a step that was cancelled into a normal stop. */
static cnr_status excuse(loop *l, cnr_status status) {
    if (status != CNR_E_CANCELLED || !is_cancelled(l->t) || cnri_group_ranks() > 1) return status;
    l->p.stopped = true;
    return CNR_OK;
}

/* Sums *loss and *correct, right answers, over all ranks' parts of the batch, and wishes to stop:
 * each message is a wait for the slowest rank. */
static cnr_status sum_up(loop *l, double *loss, int64_t *correct, cnr_error *err) {
    const cnri_trainer *t = l->t;
    if (cnri_group_ranks() == 1) return CNR_OK;
    double sums[] = {*loss * (double)t->options.batch / (double)t->batch, (double)*correct,
                     l->asked || is_cancelled(t)};
    const cnr_status status = cnri_group_sum(sums, 3, err);
    *loss = sums[0];
    *correct = (int64_t)sums[1];
    l->agreed = sums[2] > 0;
    return status;
}

/* Reads one batch and takes one step; *correct: pictures that were classified correctly. */
static cnr_status train_step(loop *l, double *loss, int64_t *correct, cnr_error *err) {
    const int64_t batch = l->t->batch;
    for (int64_t i = 0; i < l->t->options.batch; i++) {
        /* a set smaller than a batch is repeated */
        const int64_t at = l->held + (l->p.step * batch + l->t->first + i) % l->p.trained;
        const cnr_status status = read_sample(l->t, l->samples, l->order[at], l->p.epoch, i, err);
        if (status != CNR_OK) return status;
    }
    const cnr_status status = cnri_trainer_step(l->t, loss, correct, err);
    return status ? status : sum_up(l, loss, correct, err);
}

/* ---- checkpoints ---- */

/* Computes loss and accuracy of the epoch so far. */
static void take_means(loop *l) {
    if (l->p.step == 0) return;
    l->p.loss = l->state.loss / (double)l->p.step;
    l->p.accuracy = (double)l->state.correct / (double)(l->p.step * l->t->batch);
}

/* Notes where the training stands in l->state, and writes it as checkpoint if the options name one
 * (rank 0 only). */
static cnr_status save(loop *l, cnr_error *err) {
    const char *path = l->t->options.checkpoint;
    cnri_train_state *s = &l->state;
    s->epoch = l->p.epoch;
    s->step = l->p.step;
    s->taken = l->t->step;
    s->best_epoch = l->p.best_epoch;
    s->judged = l->p.judged;
    s->best = l->p.best;
    s->by = l->p.by;
    memcpy(s->metrics, l->p.best_metrics, sizeof s->metrics);
    s->rate = l->t->rate;
    s->seconds = (double)(cnri_now_ns() - l->begun) * 1e-9;
    l->saved = cnri_real_ns();
    if (!path || cnri_group_rank() > 0) return CNR_OK;
    return cnri_checkpoint_save(l->t, path, l->key, s, &l->rows, err);
}

/* Writes a checkpoint if the last is old enough, or the training was stopped. */
static cnr_status save_when_due(loop *l, cnr_error *err) {
    const double pause = l->t->options.checkpoint_seconds;
    const double gone = (double)(cnri_real_ns() - l->saved) * 1e-9;
    return l->p.stopped || gone >= (pause > 0 ? pause : 30) ? save(l, err) : CNR_OK;
}

/* Continues from a checkpoint; shuffles the order as the finished epochs did. */
static cnr_status go_on(loop *l, cnr_error *err) {
    const char *path = l->t->options.checkpoint;
    cnri_train_state *s = &l->state;
    if (!path && cnri_group_ranks() == 1) return CNR_OK;
    cnri_checkpoint_key(l->t, l->samples, l->key);
    cnr_status status = cnri_train_share_check(l->key, err);
    if (status || !path) return status;
    s->judged = s->best = -1;
    status = cnri_checkpoint_load(l->t, path, l->key, s, &l->rows, err);
    if (status) return status;
    l->p.epoch = s->epoch;
    l->p.step = s->step;
    l->t->step = s->taken;
    l->p.best_epoch = s->best_epoch;
    l->p.judged = s->judged;
    l->p.best = s->best;
    l->p.by = s->by;
    memcpy(l->p.best_metrics, s->metrics, sizeof s->metrics);
    l->t->rate = s->rate;
    take_means(l);
    l->begun -= (uint64_t)(s->seconds * 1e9);
    for (int64_t i = 0; i < s->epoch; i++) shuffle(l->order + l->held, l->p.trained, &l->random);
    return CNR_OK;
}

/* ---- epochs ---- */

/* Sets l->p.stopped on all ranks alike, if `here` or any rank was asked to stop, so that all stop
 * at the same step. */
static cnr_status should_stop(loop *l, bool here, cnr_error *err) {
    here = here || (cnri_group_ranks() > 1 && is_cancelled(l->t));
    return cnri_group_any(here, &l->p.stopped, err);
}

/* Trains one epoch, from the step where a checkpoint left off. */
static cnr_status train_epoch(loop *l, cnr_error *err) {
    shuffle(l->order + l->held, l->p.trained, &l->random);
    while (l->p.step < l->p.steps) {
        double loss = 0;
        int64_t correct = 0;
        cnr_status status = excuse(l, train_step(l, &loss, &correct, err));
        if (status != CNR_OK || l->p.stopped || diverged(l, loss)) return status;
        l->state.loss += loss;
        l->state.correct += correct;
        l->p.step++;
        take_means(l);
        l->asked = !tell(l) || (l->t->options.checkpoint && is_cancelled(l->t));
        l->p.stopped = cnri_group_ranks() > 1 ? l->agreed : l->asked;
        status = save_when_due(l, err);
        if (status != CNR_OK || l->p.stopped) return status;
    }
    return CNR_OK;
}

/* Fills err: stopped before any epoch was judged; kept: the checkpoint, or NULL. */
static cnr_status too_early(const cnri_trainer *t, const char *kept, cnr_error *err) {
    return cnri_fail(err, CNR_E_CANCELLED, t->net->name, "stopped before an epoch was judged: %s%s",
                     kept ? "what was done is in the checkpoint " : "nothing is kept",
                     kept ? kept : "");
}

/* Samples to judge, and what is kept of each of them for metrics; NULL without such. */
typedef struct judging {
    cnri_trainer *t;
    cnri_samples *samples;
    const int64_t *order; /* numbers of samples; NULL: the first ones */
    int64_t correct;
    float *scores;
    int32_t *labels;
} judging;

/* Judges the samples `first` to `end` of the order, batch by batch, and adds to the counts. */
static cnr_status judge_part(judging *j, int64_t first, int64_t end, cnr_error *err) {
    cnri_trainer *t = j->t;
    const int64_t batch = t->options.batch;
    for (; first < end; first += batch) {
        const int64_t n = end - first < batch ? end - first : batch;
        float *scores = j->scores ? j->scores + first * t->classes : NULL;
        int64_t correct = 0;
        cnr_status status = CNR_OK;
        for (int64_t i = 0; i < n && status == CNR_OK; i++)
            status = read_sample(t, j->samples, j->order ? j->order[first + i] : first + i,
                                 AS_IT_IS, i, err);
        if (status == CNR_OK) status = cnri_trainer_judge(t, n, &correct, scores, err);
        if (status == CNR_OK && is_cancelled(t)) status = CNR_E_CANCELLED;
        if (status == CNR_E_CANCELLED) return too_early(t, NULL, err);
        if (status != CNR_OK) return status;
        if (j->labels) memcpy(j->labels + first, t->labels, (size_t)n * sizeof *j->labels);
        j->correct += correct;
    }
    return CNR_OK;
}

/* Allocates room for the scores and labels of all judged pictures; nothing without metrics. */
static cnr_status keep_scores(judging *j, int64_t count, cnr_error *err) {
    const cnri_metrics *m = j->t->options.metrics;
    bool overflow = false;
    if (!m || m->n == 0) return CNR_OK;
    const size_t n = cnri_mul((size_t)count, (size_t)j->t->classes, &overflow);
    j->scores = overflow ? NULL : cnri_alloc_zero((n + 1) * sizeof *j->scores);
    j->labels = cnri_alloc_zero((size_t)(count + 1) * sizeof *j->labels);
    return j->scores && j->labels ? CNR_OK : cnri_out_of_memory(err, "scores for the metrics");
}

/* Scores and labels that other ranks judged are zeros here; labels are small enough for floats. */
static cnr_status gather(judging *j, int64_t count, cnr_error *err) {
    if (!j->scores || cnri_group_ranks() == 1) return CNR_OK;
    double *labels = cnri_alloc((size_t)(count + 1) * sizeof *labels);
    if (!labels) return cnri_out_of_memory(err, "scores for the metrics");
    for (int64_t i = 0; i < count; i++) labels[i] = j->labels[i];
    cnr_status status = cnri_group_sum(labels, count, err);
    for (int64_t i = 0; i < count; i++) j->labels[i] = (int32_t)labels[i];
    cnri_free(labels);
    return status ? status : cnri_group_sum_floats(j->scores, count * j->t->classes, err);
}

/* Computes the metrics of an epoch, and which number decides which epoch is best. */
static cnr_status measure(judging *j, int64_t count, cnri_judged *out, cnr_error *err) {
    const cnri_metrics *m = j->t->options.metrics;
    int32_t at = -1;
    bool least = false;
    cnr_status status = CNR_OK;
    out->by = out->share;
    if (!m || m->n == 0) return CNR_OK;
    status = cnri_metrics_compute(m, j->scores, count, j->t->classes, j->labels, out->metrics, err);
    if (!status) status = cnri_metrics_best(m, j->t->options.best_by, &at, &least, err);
    if (!status && at >= 0) out->by = least ? -out->metrics[at] : out->metrics[at];
    return status;
}

/* Judges count samples, each rank a part, into *out; CNR_E_CANCELLED on all ranks if one is
 * stopped. */
static cnr_status judge_all(cnri_trainer *t, cnri_samples *samples, const int64_t *order,
                            int64_t count, cnri_judged *out, cnr_error *err) {
    judging j = {.t = t, .samples = samples, .order = order};
    int64_t begin, end;
    bool stopped = false;
    cnri_group_part(count, &begin, &end);
    cnr_status status = keep_scores(&j, count, err);
    if (!status) status = judge_part(&j, begin, end, err);
    if (!status || status == CNR_E_CANCELLED)
        status = cnri_group_any(status != CNR_OK, &stopped, err);
    if (!status && stopped) status = too_early(t, NULL, err);
    double sum = (double)j.correct;
    if (!status) status = cnri_group_sum(&sum, 1, err);
    *out = (cnri_judged){.share = sum / (double)count, .n = count};
    if (!status) status = gather(&j, count, err);
    if (!status) status = measure(&j, count, out, err);
    cnri_free(j.scores);
    cnri_free(j.labels);
    return status;
}

static bool ended(const loop *l) { return l->p.stopped || l->p.diverged; }

/* Status after an early end: CNR_OK if an epoch was kept, else an error. */
static cnr_status verdict(const loop *l, cnr_error *err) {
    if (!ended(l) || l->p.best_epoch > 0) return CNR_OK;
    if (l->p.stopped) return too_early(l->t, l->t->options.checkpoint, err);
    if (l->t->step == 1) /* no step had changed the weights yet, so the rate is not to blame */
        return cnri_fail(err, CNR_E_STATE, l->t->net->name,
                         "the loss is no number on the first batch: nothing is kept; look at the "
                         "loss, the weights, and how pictures become the input");
    const char *what = isfinite(l->p.loss) ? "a hundred times what it was" : "no number any more";
    return cnri_fail(err, CNR_E_STATE, l->t->net->name,
                     "the loss is %s after %lld steps: nothing is kept; want a smaller rate", what,
                     (long long)l->t->step);
}

/* The status after a validation that failed: as `excuse` gives it for one process; of several, only
 * a stop is excused. */
static cnr_status excuse_judging(loop *l, cnr_status status) {
    if (cnri_group_ranks() == 1) return excuse(l, status);
    l->p.stopped = status == CNR_E_CANCELLED; /* true on all ranks */
    return l->p.stopped ? CNR_OK : status;
}

/* Judges an epoch on the held-back samples, and keeps its weights if it is the best. */
static cnr_status judge_epoch(loop *l, cnr_error *err) {
    cnri_judged now = {.share = -1};
    cnr_status status = cnri_train_share_statistics(l->t, err);
    if (status == CNR_OK && l->held > 0)
        status = excuse_judging(l, judge_all(l->t, l->samples, l->order, l->held, &now, err));
    if (status == CNR_OK && l->p.stopped) return save(l, err); /* and is judged from there */
    if (status != CNR_OK) return status;
    l->p.judged = now.share;
    memcpy(l->p.metrics, now.metrics, sizeof now.metrics);
    l->p.epoch++;
    /* The first one is kept in any case: a metric of it may be no number. */
    if (l->held > 0 && l->p.best_epoch > 0 && !(now.by > l->p.by)) return CNR_OK;
    status = cnri_trainer_keep(l->t, err);
    l->p.best = l->p.judged;
    l->p.by = now.by;
    memcpy(l->p.best_metrics, now.metrics, sizeof now.metrics);
    l->p.best_epoch = l->p.epoch;
    return status;
}

/* Adds the epoch's row for curves, and begins the next epoch. */
static cnr_status end_epoch(loop *l, cnr_error *err) {
    cnri_train_row *row = cnri_push(&l->rows);
    if (!row) return cnri_out_of_memory(err, l->t->net->name);
    *row = (cnri_train_row){l->p.epoch,
                            l->p.loss,
                            l->p.accuracy,
                            l->held > 0 ? l->p.judged : -1,
                            l->t->rate,
                            (double)(cnri_now_ns() - l->begun) * 1e-9,
                            {0}};
    memcpy(row->metrics, l->p.metrics, sizeof row->metrics);
    l->p.rows = l->rows.at;
    l->p.n_rows = l->rows.n;
    l->p.step = 0;
    l->state.loss = 0;
    l->state.correct = 0;
    return save(l, err);
}

/* Trains and judges all epochs, with a row and a report each, until the last or until it is
 * stopped. */
static cnr_status all_epochs(loop *l, cnr_error *err) {
    while (l->p.epoch < l->p.epochs) {
        cnr_status status = train_epoch(l, err);
        if (status != CNR_OK || ended(l)) return status;
        status = judge_epoch(l, err);
        if (status != CNR_OK || ended(l)) return status;
        status = end_epoch(l, err);
        if (status != CNR_OK) return status;
        l->p.epoch_done = true;
        status = should_stop(l, !tell(l), err);
        l->p.stopped = l->p.stopped && l->p.epoch < l->p.epochs;
        l->p.epoch_done = false;
        if (status != CNR_OK || l->p.stopped) return status;
    }
    return CNR_OK;
}

/* Fails for a source without samples, or with an unknown number of them. */
static cnr_status check_samples(const cnri_samples *s, const char *what, cnr_error *err) {
    if (s->info.count > 0) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, what,
                     s->info.count == 0 ? "there are none" : "a known number of them is wanted");
}

cnr_status cnri_train_parts(const cnri_train_options *o, int64_t count, int64_t **order,
                            int64_t *held, cnr_error *err) {
    const double part = o->validation < 1 ? o->validation * (double)count : o->validation;
    random_state random;
    *order = NULL;
    if (!(part >= 0) || part >= (double)count)
        return cnri_fail(err, CNR_E_ARG, "validation",
                         "of %lld samples %g are to be judged by: none is left to train on",
                         (long long)count, part);
    *held = part > 0 && part < 1 ? 1 : (int64_t)(part + 0.5);
    if (*held >= count) *held = count - 1;
    *order = cnri_alloc((size_t)count * sizeof **order);
    if (!*order) return cnri_out_of_memory(err, "training");
    for (int64_t i = 0; i < count; i++) (*order)[i] = i;
    random_begin(&random, o->validation_seed);
    if (*held > 0) shuffle(*order, count, &random);
    return CNR_OK;
}

/* The number of samples to use: o->limit, or all if that is 0 or more than there are. */
static int64_t limited(const cnri_train_options *o, const cnri_samples *samples) {
    const int64_t count = samples->info.count;
    return o->limit > 0 && o->limit < count ? o->limit : count;
}

cnr_status cnri_train_run(cnri_trainer *t, cnri_samples *samples, cnri_train_fn fn, void *arg,
                          cnri_train_progress *last, cnr_error *err) {
    loop l = {.t = t, .samples = samples, .fn = fn, .arg = arg, .begun = cnri_now_ns()};
    const int64_t before = cnri_alloc_failures();
    const int64_t count = limited(&t->options, samples), batch = t->batch;
    cnr_status status = check_samples(samples, "samples to train on", err);
    if (status == CNR_OK) status = cnri_train_parts(&t->options, count, &l.order, &l.held, err);
    if (status != CNR_OK) return status;
    l.p = (cnri_train_progress){.epochs = t->options.epochs,
                                .judged = -1,
                                .best = -1,
                                .trained = count - l.held,
                                .validated = l.held};
    l.p.steps = l.p.trained >= batch ? l.p.trained / batch : 1;
    t->steps = l.p.steps * l.p.epochs;
    l.saved = cnri_real_ns();
    random_begin(&l.random, t->options.seed);
    if (t->options.accumulate > t->steps)
        status = cnri_fail(err, CNR_E_ARG, "accumulate",
                           "%lld steps make an update, and the training has %lld",
                           (long long)t->options.accumulate, (long long)t->steps);
    if (status == CNR_OK) status = go_on(&l, err);
    if (status == CNR_OK) status = all_epochs(&l, err);
    status = cnri_alloc_verdict(before, status, t->net->name, err);
    cnri_free(l.order);
    if (status == CNR_OK) status = verdict(&l, err);
    if (status == CNR_OK) status = cnri_trainer_finish(t, err);
    cnri_vec_free(&l.rows);
    l.p.rows = NULL;
    if (last) *last = l.p;
    return status;
}

cnr_status cnri_train_score(cnr_runtime *rt, cnr_graph *net, const cnri_train_options *options,
                            cnri_samples *samples, bool validation, cnri_judged *out,
                            cnr_error *err) {
    cnri_trainer *t = NULL;
    int64_t *order = NULL, count = samples->info.count;
    cnr_status status = check_samples(samples, "samples to judge by", err);
    if (status == CNR_OK && validation)
        status = cnri_train_parts(options, limited(options, samples), &order, &count, err);
    if (status == CNR_OK && count == 0)
        status = cnri_fail(err, CNR_E_STATE, "validation", "there is no part to judge by");
    if (status == CNR_OK) status = cnri_trainer_open_judge(rt, net, options, &t, err);
    if (status == CNR_OK) status = judge_all(t, samples, order, count, out, err);
    cnri_trainer_free(t);
    cnri_free(order);
    return status;
}
