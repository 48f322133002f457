/* Trains on labelled pictures: keeps the best epoch, compares it with the existing file, and
 * writes it. */
#include "store/store.h"
#include "train/train.h"
#include "work/work.h"
#include "people/people.h"
#include "samples/samples.h"
#include <math.h>
#include <sys/stat.h>

/* A training that is under way. */
typedef struct job {
    cnr_error curves; /* why the curves could not be written */
    const cnri_train_task *task;
    cnr_train_options o;
    cnri_train_options how;
    const cnr_observer *observer;
    cnri_samples *samples;
    cnr_train_result *out;
    cnri_metrics metrics;
    bool is_there;
    cnri_judged there; /* of the file that is there, if it is to be compared with */
} job;

void cnr_train_options_default(cnr_train_options *options) {
    const cnr_train_options defaults = {.size = sizeof defaults,
                                        .policy = "cosine",
                                        .epochs = 6,
                                        .batch = 64,
                                        .rate = 0.02,
                                        .momentum = -1,
                                        .decay = 0.0005,
                                        .validation = 0.1,
                                        .validation_seed = 1,
                                        .seed = 1};
    if (!options) return;
    const uint32_t size =
        options->size < sizeof defaults ? options->size : (uint32_t)sizeof defaults;
    memcpy(options, &defaults, size);
    if (size >= sizeof size) options->size = size;
}

/* NaN for -1, which means: not measured. */
static double share(double x) { return x >= 0 ? x : (double)NAN; }

/* ---- curves ---- */

/* Appends a number unless it is negative, then `behind`. */
static void add_number(cnri_text *t, double x, const char *behind) {
    char number[40] = "";
    if (x >= 0) cnri_print_double(number, sizeof number, x);
    cnri_text_add(t, "%s%s", number, behind);
}

/* Appends a comma and a number; nothing but the comma for NaN. */
static void add_metric(cnri_text *t, double x) {
    char number[40] = "";
    if (!isnan(x)) cnri_print_double(number, sizeof number, x);
    cnri_text_add(t, ",%s", number);
}

/* Writes a CSV of all epochs so far, each time anew: whoever looks sees a whole table. */
static cnr_status write_curves(const char *path, const cnri_metrics *m,
                               const cnri_train_progress *p, cnr_error *err) {
    cnri_text t = {0};
    cnri_writer w;
    cnri_text_add(&t, "epoch,loss,train_accuracy,accuracy,rate,seconds");
    for (int32_t i = 0; i < m->n; i++) cnri_text_add(&t, ",%s", m->at[i]->name);
    cnri_text_add(&t, "\n");
    for (int32_t i = 0; i < p->n_rows; i++) {
        const cnri_train_row *r = &p->rows[i];
        const double columns[] = {(double)r->epoch, r->loss, r->accuracy,
                                  r->judged,        r->rate, r->seconds};
        for (size_t k = 0; k < CNRI_COUNT(columns); k++)
            add_number(&t, columns[k], k + 1 < CNRI_COUNT(columns) ? "," : "");
        for (int32_t k = 0; k < m->n; k++) add_metric(&t, r->metrics[k]);
        cnri_text_add(&t, "\n");
    }
    cnr_status status =
        t.failed ? cnri_out_of_memory(err, path) : cnri_write_begin(&w, path, 0, err);
    if (!status) {
        status = cnri_write(&w, t.at, t.n, err);
        if (!status) status = cnri_write_commit(&w, err);
        else cnri_write_abandon(&w);
    }
    cnri_text_free(&t);
    return status;
}

/* Appends the finished epoch to the curves, and tells the observer; false: stop, or the file can't
 * be written. */
static bool tell(void *arg, const cnri_train_progress *p) {
    job *j = arg;
    if (p->epoch_done && j->o.curves && write_curves(j->o.curves, &j->metrics, p, &j->curves))
        return false;
    if (p->epoch_done) {
        cnr_metric_value metrics[CNR_MAX_METRICS];
        cnri_metrics_tell(&j->metrics, p->judged >= 0 ? p->metrics : NULL, metrics);
        const cnr_epoch e = {.size = sizeof e,
                             .epoch = p->epoch,
                             .epochs = p->epochs,
                             .loss = p->loss,
                             .train_top1 = p->accuracy,
                             .top1 = share(p->judged),
                             .best = share(p->best),
                             .seconds = p->seconds,
                             .metrics = metrics,
                             .n_metrics = j->metrics.n};
        return cnri_notify_event(j->observer, CNR_EVENT_EPOCH, &e);
    }
    const cnr_progress now = {.size = sizeof now,
                              .what = "training",
                              .done = p->epoch * p->steps + p->step,
                              .total = p->steps * p->epochs,
                              .epoch = p->epoch + 1,
                              .top1 = p->accuracy,
                              .loss = p->loss};
    return cnri_notify_progress(j->observer, &now);
}

/* ---- the file that is there ---- */

/* Fails unless all ranks agree on whether the file exists, because all of them judge it. */
static cnr_status agree_on_file(const job *j, bool *there, cnr_error *err) {
    double seen = *there;
    const cnr_status status = cnri_group_sum(&seen, 1, err);
    if (status || cnri_group_ranks() == 1 || seen == 0 || seen == cnri_group_ranks()) return status;
    return cnri_fail(err, CNR_E_STATE, j->o.output,
                     "is seen by %d of %d processes: want a folder that all machines share, or "
                     "--overwrite",
                     (int)seen, (int)cnri_group_ranks());
}

/* Judges the net of the existing output file on the same pictures, to keep the better one. */
static cnr_status judge_there(job *j, cnr_error *err) {
    struct stat about;
    cnr_graph *g = NULL;
    cnr_error why = CNR_ERROR_INIT;
    bool there = j->o.output && !j->o.overwrite && stat(j->o.output, &about) == 0 && about.st_size;
    cnr_status status = agree_on_file(j, &there, err);
    if (status || !there) return status;
    status = cnri_store_read(j->o.output, true, &g, &why);
    if (!status)
        status = cnri_train_score(j->task->rt, g, &j->how, j->samples, true, &j->there, &why);
    cnri_graph_free(g);
    if (status == CNR_E_CANCELLED) return cnri_fail(err, status, why.where, "%s", why.text);
    if (status)
        return cnri_fail(err, CNR_E_STATE, j->o.output,
                         "is there already and can't be compared with (%s); --overwrite "
                         "replaces it",
                         why.text);
    j->is_there = true;
    (void)cnri_notify_event(j->observer, CNR_EVENT_REPLACES, &j->there.share);
    return CNR_OK;
}

/* Writes the net to options.output (NULL: nowhere); CNR_E_STATE if the file that is there is
 * better. */
static cnr_status write_net(const job *j, const cnri_train_progress *p, cnr_error *err) {
    if (!j->o.output) return CNR_OK;
    if (j->is_there && j->there.by > p->by && j->o.best_by)
        return cnri_fail(err, CNR_E_STATE, j->o.output,
                         "stays as it was, with a %s of %g; the best epoch, %lld, has %g "
                         "(--overwrite replaces it)",
                         j->o.best_by + (*j->o.best_by == '-'), fabs(j->there.by),
                         (long long)p->best_epoch, fabs(p->by));
    if (j->is_there && j->there.by > p->by)
        return cnri_fail(err, CNR_E_STATE, j->o.output,
                         "stays as it was, right on %.2f%%; the best epoch, %lld, on %.2f%% "
                         "(--overwrite replaces it)",
                         100 * j->there.share, (long long)p->best_epoch, 100 * p->best);
    return cnri_store_write(j->task->net, j->o.output, err);
}

/* ---- the test ---- */

/* Tests once, at the very end. A test set that is no split of its own was used for training. */
static cnr_status test(job *j, cnr_error *err) {
    cnri_samples samples;
    const char *spec = j->o.test ? j->o.test : j->o.data;
    if (!*spec) return CNR_OK;
    cnr_status status = cnri_augment_open(spec, "eval", &samples, err);
    if (status) return status;
    cnri_judged all = {.share = -1};
    if (j->o.test || samples.info.is_split)
        status = cnri_train_score(j->task->rt, j->task->net, &j->how, &samples, false, &all, err);
    j->out->test = share(all.share);
    j->out->tested = all.n;
    if (all.n > 0) cnri_metrics_tell(&j->metrics, all.metrics, j->out->test_metrics);
    cnri_samples_close(&samples);
    return status;
}

/* ---- all of it ---- */

/* Opens a trainer, trains, and writes the net if it is to be written. */
static cnr_status train(job *j, cnri_train_progress *last, cnr_error *err) {
    cnri_trainer *trainer = NULL;
    cnr_status status = cnri_trainer_open(j->task->rt, j->task->net, &j->how, &trainer, err);
    if (!status) status = judge_there(j, err);
    if (!status) status = cnri_train_run(trainer, j->samples, tell, j, last, err);
    cnri_trainer_free(trainer);
    if (!status) status = write_net(j, last, err);
    if (!status && j->curves.code)
        status = cnri_fail(err, j->curves.code, j->curves.where, "%s", j->curves.text);
    if (!status && j->o.checkpoint && !last->stopped) cnri_checkpoint_drop(j->o.checkpoint);
    return status;
}

/* Fills the result of an application from the last progress. */
static void take(const job *j, const cnri_train_progress *p) {
    cnr_train_result *out = j->out;
    out->ended = p->stopped ? CNR_TRAIN_STOPPED : p->diverged ? CNR_TRAIN_DIVERGED : 0;
    out->epochs = p->epoch;
    out->best_epoch = p->best_epoch;
    out->trained = p->trained;
    out->validated = p->validated;
    out->best = share(p->best);
    out->replaced = j->is_there ? j->there.share : (double)NAN;
    out->n_metrics = j->metrics.n;
    cnri_metrics_tell(&j->metrics, p->best >= 0 ? p->best_metrics : NULL, out->metrics);
    cnri_metrics_tell(&j->metrics, NULL, out->test_metrics);
    out->seconds = p->seconds;
}

/* Metrics are opened before any work, and the one to choose by has to be there. */
static cnr_status open_metrics(job *j, cnr_error *err) {
    const cnr_train_options *o = &j->o;
    int32_t index;
    bool least;
    CNR_TRY(cnri_metrics_open(o->metric_files, o->metrics, o->n_metrics, &j->metrics, err));
    j->how.metrics = &j->metrics;
    j->how.best_by = o->best_by;
    return cnri_metrics_best(&j->metrics, o->best_by, &index, &least, err);
}

/* Turns the options of an application into those of the trainer, which borrow them. */
static void take_how(job *j) {
    const cnr_train_options *o = &j->o;
    const cnr_load_options *how = j->task->how;
    j->how = (cnri_train_options){.loss = o->loss,
                                  .own_loss = j->task->own_loss,
                                  .optimizer = o->optimizer,
                                  .own_optimizer = j->task->own_optimizer,
                                  .clip = o->clip,
                                  .average = o->average,
                                  .accumulate = o->accumulate,
                                  .layer_rates = o->layer_rates,
                                  .freeze = o->freeze,
                                  .batch = o->batch,
                                  .epochs = o->epochs,
                                  .limit = o->limit,
                                  .rate = o->rate,
                                  .momentum = o->momentum,
                                  .nesterov = o->nesterov,
                                  .decay = o->decay,
                                  .beta1 = o->beta1,
                                  .beta2 = o->beta2,
                                  .epsilon = o->epsilon,
                                  .gamma = o->gamma,
                                  .power = o->power,
                                  .rate_epochs = o->rate_epochs,
                                  .checkpoint = o->checkpoint,
                                  .checkpoint_seconds = o->checkpoint_seconds,
                                  .schedule = o->schedule,
                                  .schedule_arg = o->schedule_arg,
                                  .validation = o->validation,
                                  .validation_seed = o->validation_seed,
                                  .seed = o->seed,
                                  .device = how->device,
                                  .deterministic = how->deterministic,
                                  .new_head = o->head > 0,
                                  .local_statistics = o->local_statistics != 0,
                                  .memory_limit = how->memory_limit,
                                  .keep_zeros = o->keep_zeros,
                                  .masked = j->task->masked,
                                  .n_masked = j->task->n_masked,
                                  .cancel = j->observer && CNRI_HAS(j->observer, cancel)
                                                ? j->observer->cancel
                                                : NULL};
}

/* Checks before training that all files can be written. */
static cnr_status check_written(const cnr_train_options *o, cnr_error *err) {
    const char *const paths[] = {o->output, o->curves, o->checkpoint};
    cnr_status status = CNR_OK;
    for (size_t i = 0; i < CNRI_COUNT(paths) && !status; i++)
        if (paths[i]) status = cnri_write_check(paths[i], NULL, 0, err);
    return status;
}

cnr_status cnri_train_net(const cnri_train_task *task, const cnr_train_options *options,
                          const cnr_observer *observer, cnr_train_result *out, cnr_error *err) {
    job j = {.task = task,
             .samples = task->samples,
             .observer = observer,
             .out = out,
             .curves = CNR_ERROR_INIT};
    cnri_train_progress last = {.best = -1};
    cnr_energy_region *region = NULL;
    cnri_samples own;
    cnr_status status = CNR_OK;
    CNRI_COPY_OPTIONS(j.o, options);
    *out = (cnr_train_result){.size = sizeof *out, .test = NAN};
    take_how(&j);
    status = cnri_rate_policy_of(j.o.policy, &j.how.policy, err);
    if (!status) status = check_written(&j.o, err);
    if (!status) status = open_metrics(&j, err);
    if (!status && !j.samples) {
        status = cnri_augment_open(j.o.data, j.o.split ? j.o.split : "train", &own, err);
        if (!status) j.samples = &own;
    }
    if (!status) status = cnri_energy_begin_if(task->rt, j.o.energy, observer, &region, err);
    if (!status) status = train(&j, &last, err);
    status = cnri_energy_close(region, status, 1, &out->energy, err);
    if (j.samples == &own) cnri_samples_close(&own);
    if (!status) take(&j, &last);
    if (!status && !last.stopped) status = test(&j, err);
    cnri_metrics_close(&j.metrics);
    if (status) cnr_train_result_free(out);
    return status;
}

void cnr_train_result_free(cnr_train_result *result) {
    if (result) cnri_energy_drop(&result->energy);
}

/* Layers that were listed before have the names of weights that may be others now. */
static cnr_status fold(cnr_model *m, cnr_error *err) {
    cnri_graph_free(m->layers);
    cnri_free((void *)m->layer_names);
    m->layers = NULL;
    m->layer_names = NULL;
    return cnri_train_fold(m->graph, err);
}

cnr_status cnri_train_weights(cnr_model *m, cnr_error *err) {
    cnr_status status = cnri_check_process(m->rt, err);
    if (!status) status = cnri_model_idle(m, err);
    if (!status) status = cnri_graph_verify_weights(m->graph, NULL, false, 0, err);
    return status ? status : fold(m, err);
}

const char *cnri_train_weight_name(const cnr_model *m, int32_t index) {
    for (cnr_value v = 0; v < m->graph->values.n; v++)
        if (cnri_train_is_weight(m->graph, v) && index-- == 0) return m->graph->values.at[v].name;
    return NULL;
}

cnr_status cnri_train_model(cnr_model *m, cnri_samples *samples, const cnri_own_loss *own_loss,
                            const cnri_own_optimizer *own_optimizer,
                            const cnr_train_options *options, const cnr_observer *observer,
                            cnr_train_result *out, cnr_error *err) {
    const cnr_load_options how = {.size = sizeof how,
                                  .device = m->plan_options.device,
                                  .deterministic = m->plan_options.deterministic,
                                  .memory_limit = m->plan_options.memory_limit};
    const cnri_train_task task = {.rt = m->rt,
                                  .net = m->graph,
                                  .how = &how,
                                  .samples = samples,
                                  .masked = (const char *const *)m->masked.at,
                                  .n_masked = m->masked.n,
                                  .own_loss = own_loss ? *own_loss : (cnri_own_loss){0},
                                  .own_optimizer =
                                      own_optimizer ? *own_optimizer : (cnri_own_optimizer){0}};
    cnr_status status = cnri_check_process(m->rt, err);
    if (!status && options && CNRI_HAS(options, head) && options->head > 0)
        status = cnri_fail(err, CNR_E_UNSUPPORTED, "head",
                           "is for nets that are trained from a "
                           "file; the sizes of one that is loaded stay");
    if (!status) status = cnri_train_weights(m, err);
    if (!status) cnri_model_drop_gradients(m);
    return status ? status : cnri_train_net(&task, options, observer, out, err);
}

cnr_status cnr_train_model(cnr_model *model, const cnr_train_options *options,
                           const cnr_observer *observer, cnr_train_result *out, cnr_error *err) {
    cnr_train_options o;
    cnr_train_result got = {.size = sizeof got};
    CNRI_COPY_OPTIONS(o, options);
    cnr_status status =
        cnri_require_arguments(err, "model", model, "options.data", o.data, "out", out, NULL);
    if (!status) status = CNRI_CHECK_RESULT_SIZE(out, got, err);
    if (!status) status = cnri_train_model(model, NULL, NULL, NULL, &o, observer, &got, err);
    if (!status) *out = got;
    return status;
}

cnr_status cnr_train(cnr_runtime *rt, const char *net, const cnr_load_options *load,
                     const cnr_train_options *options, const cnr_observer *observer,
                     cnr_train_result *out, cnr_error *err) {
    cnr_load_options how;
    cnr_train_options o;
    cnr_train_result got = {.size = sizeof got};
    cnr_graph *graph = NULL;
    char random[48];
    CNRI_COPY_OPTIONS(how, load);
    CNRI_COPY_OPTIONS(o, options);
    cnr_status status =
        cnri_require_arguments(err, "runtime", rt, "net", net, "options.data", o.data,
                               "options.output", o.output, "out", out, NULL);
    if (!status) status = CNRI_CHECK_RESULT_SIZE(out, got, err);
    if (status) return status;
    snprintf(random, sizeof random, "random:%llu", (unsigned long long)(o.seed >> 1));
    if (!how.weights) how.weights = random;
    status = cnri_check_process(rt, err);
    if (!status) status = cnri_load_graph(rt, net, &how, &graph, err);
    if (!status && o.head > 0) status = cnri_train_head(&graph, o.head, o.seed, err);
    const cnri_train_task task = {.rt = rt, .net = graph, .how = &how};
    if (!status) status = cnri_train_net(&task, &o, observer, &got, err);
    cnri_graph_free(graph);
    if (!status) *out = got;
    return status;
}
