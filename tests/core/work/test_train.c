/* Training through the public header: events, the result, stopping; what is written is a net. */
#include "../../guests/guests.h"
#include <math.h>
#include <unistd.h>

/* What a training told. */
typedef struct heard {
    int64_t steps, epochs, stop_at;
    double replaces;
    cnr_epoch last;
} heard;

/* Counts steps; 1: stop. */
static int32_t hear_progress(void *arg, const cnr_progress *p) {
    heard *h = arg;
    h->steps++;
    return h->stop_at && p->done >= h->stop_at;
}

/* Keeps events. */
static int32_t hear_event(void *arg, int32_t kind, const void *of) {
    heard *h = arg;
    if (kind == CNR_EVENT_REPLACES) h->replaces = *(const double *)of;
    if (kind != CNR_EVENT_EPOCH) return 0;
    h->epochs++;
    h->last = *(const cnr_epoch *)of;
    return 0;
}

/* A metric that counts its calls and is their number in *value; fails unless all scores are
 * there. */
static cnr_status count_calls(void *arg, const cnr_tensor *scores, const int32_t *labels,
                              double *value, cnr_error *err) {
    int *calls = arg;
    (void)err;
    if (scores->rank != 2 || scores->dim[0] != 10 || scores->dim[1] != 10) return CNR_E_SHAPE;
    for (int i = 0; i < 10; i++)
        if (labels[i] < 0 || labels[i] > 9) return CNR_E_ARG;
    *value = ++*calls;
    return CNR_OK;
}

/* A loss that fails. */
static cnr_status fail(void *arg, const cnr_tensor *scores, const int32_t *labels, double *value,
                       cnr_error *err) {
    (void)arg;
    (void)scores;
    (void)labels;
    (void)value;
    (void)snprintf(err->text, sizeof err->text, "on purpose");
    return CNR_E_STATE;
}

/* A metric of the program's own is called and decides. */
static void test_metrics(const char *net, const cnr_train_options *given,
                         const cnr_observer *observer, heard *h) {
    cnr_error err = CNR_ERROR_INIT;
    int calls = 0;
    const cnr_metric mine = {.size = sizeof mine,
                             .name = "calls",
                             .compute = count_calls,
                             .arg = &calls},
                     bad = {.size = sizeof bad, .name = "bad", .compute = fail};
    const cnr_metric *list[] = {&mine}, *twice[] = {&mine, &mine}, *failing[] = {&bad};
    cnr_train_options o = *given;
    cnr_train_result r = {.size = sizeof r};
    o.metrics = list;
    o.n_metrics = 1;
    o.overwrite = 1;
    o.best_by = "-calls";
    *h = (heard){.replaces = -1};
    ok(!cnr_train(guests_rt, net, NULL, &o, observer, &r, &err) && r.best_epoch == 1 &&
           r.n_metrics == 1 && r.metrics[0].value == 1 && isnan(r.test_metrics[0].value) &&
           h->last.n_metrics == 1,
       "a metric of the caller's chooses the first epoch: %s", err.text);
    o.best_by = "none";
    ok(cnr_train(guests_rt, net, NULL, &o, observer, &r, &err) == CNR_E_NOT_FOUND,
       "none is called so: %s", err.text);
    o.best_by = NULL;
    o.metrics = twice;
    o.n_metrics = 2;
    ok(cnr_train(guests_rt, net, NULL, &o, observer, &r, &err) == CNR_E_ARG, "two of a name: %s",
       err.text);
    o.metrics = failing;
    o.n_metrics = 1;
    ok(cnr_train(guests_rt, net, NULL, &o, observer, &r, &err) == CNR_E_STATE &&
           strstr(err.text, "on purpose"),
       "one that fails ends the work");
}

int main(void) {
    static const char *const names[] = {"zero", "one", "two",   "three", "four",
                                        "five", "six", "seven", "eight", "nine"};
    char list[] = "/tmp/cnnrun-train-XXXXXX", spec[64], out[64];
    static const char net[] = CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua";
    cnr_error err = CNR_ERROR_INIT;
    heard h = {.replaces = -1};
    const cnr_observer observer = {.size = sizeof observer,
                                   .arg = &h,
                                   .progress = hear_progress,
                                   .event = hear_event};
    cnr_train_options o = {.size = sizeof o}, shorter = {.size = 12};
    cnr_train_result r = {.size = sizeof r};
    cnr_model *m = NULL;
    const int fd = mkstemp(list);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    for (int i = 0; f && i < 40; i++)
        fprintf(f, "%s/scripts/nets/digits/%s.png %d\n", CNRT_SOURCE_DIR, names[i % 10], i % 10);
    if (f) fclose(f);
    snprintf(spec, sizeof spec, "images:%s", list);
    snprintf(out, sizeof out, "%s.cnr", list);
    if (guests_open(2, &err)) {
        ok(0, "opens: %s", err.text);
        return done();
    }
    cnr_train_options_default(&o);
    cnr_train_options_default(&shorter);
    ok(o.epochs == 6 && o.batch == 64 && shorter.epochs == 0,
       "what is usual, as far as there is room");
    o.data = spec;
    o.output = out;
    o.batch = 10;
    o.epochs = 3;
    o.validation = 10;
    ok(!cnr_train(guests_rt, net, NULL, &o, &observer, &r, &err), "trains: %s", err.text);
    ok(r.ended == 0 && r.epochs == 3 && r.trained == 30 && r.validated == 10 && r.best_epoch >= 1,
       "three epochs");
    ok(h.epochs == 3 && h.steps == 9 && h.last.epoch == 3 && h.last.epochs == 3 &&
           h.last.best == r.best,
       "each is heard of, and each step: %d", (int)h.steps);
    ok(isnan(r.replaced) && h.replaces < 0, "nothing was there");
    ok(!cnr_load(guests_rt, out, NULL, &m, &err) && cnr_output_count(m) == 1, "the net is written");
    test_metrics(net, &o, &observer, &h);
    char kept[72], curves[72], line[200];
    int lines = 0;
    snprintf(kept, sizeof kept, "%s.ckpt", list);
    snprintf(curves, sizeof curves, "%s.csv", list);
    o.checkpoint = kept;
    o.curves = curves;
    o.overwrite = 1;
    h = (heard){.stop_at = 8, .replaces = -1}; /* behind two epochs of three */
    ok(!cnr_train(guests_rt, net, NULL, &o, &observer, &r, &err) && r.ended == CNR_TRAIN_STOPPED &&
           access(kept, F_OK) == 0,
       "stopped with a checkpoint, it is there: %s", err.text);
    h = (heard){.replaces = -1};
    ok(!cnr_train(guests_rt, net, NULL, &o, &observer, &r, &err) && r.epochs == 3 && h.steps == 1 &&
           h.epochs == 1,
       "and goes on from there: a step more, an epoch more");
    ok(access(kept, F_OK) != 0, "then the checkpoint is gone");
    f = fopen(curves, "r");
    while (f && fgets(line, sizeof line, f)) lines++;
    if (f) fclose(f);
    is_int(lines, 4, "curves have a line an epoch, those before it was stopped too");
    unlink(curves);
    o.checkpoint = o.curves = NULL;
    o.overwrite = 0;
    h = (heard){.stop_at = 1, .replaces = -1};
    o.seed = 9;
    ok(cnr_train(guests_rt, net, NULL, &o, &observer, &r, &err) != CNR_OK && h.epochs == 0 &&
           h.replaces >= 0,
       "stopped before an epoch was judged: nothing to write (%s)", err.text);
    ok(cnr_train(NULL, net, NULL, &o, NULL, &r, &err) == CNR_E_ARG, "no runtime");
    o.data = NULL;
    ok(cnr_train(guests_rt, net, NULL, &o, NULL, &r, &err) == CNR_E_ARG, "no data");
    unlink(list);
    unlink(out);
    cnr_close(guests_rt);
    return done();
}
