/* Evaluating through the public header: counts against a loop of cnr_run_picture, maps, observers.
 */
#include "../../guests/guests.h"
#include <math.h>
#include <unistd.h>

enum { DIGITS = 10 };
static const char *const names[DIGITS] = {"zero", "one", "two",   "three", "four",
                                          "five", "six", "seven", "eight", "nine"};
static char list[] = "/tmp/cnnrun-work-XXXXXX", spec[64];

/* Writes the path of digit i to out. */
static void picture(int32_t i, char *out, size_t room) {
    snprintf(out, room, CNRT_SOURCE_DIR "/scripts/nets/digits/%s.png", names[i]);
}

/* Writes a list of the ten digits with their labels, `shift` added, so that all can be wrong. True:
 * it could. */
static bool write_list(int32_t shift) {
    char path[1024];
    FILE *f = fopen(list, "w");
    for (int32_t i = 0; f && i < DIGITS; i++) {
        picture(i, path, sizeof path);
        fprintf(f, "%s %d\n", path, (int)((i + shift) % DIGITS));
    }
    return f && fclose(f) == 0;
}

/* Computes right answers and loss in a loop of the test's own. */
static int64_t by_hand(cnr_model *m, double *loss) {
    int64_t right = 0;
    char path[1024];
    *loss = 0;
    for (int32_t i = 0; i < DIGITS; i++) {
        const cnr_tensor *out;
        cnr_top top;
        cnr_error err = CNR_ERROR_INIT;
        picture(i, path, sizeof path);
        if (cnr_run_picture(m, path, &out, &err) || cnr_topk(out, 1, &top) != 1) return -1;
        right += top.index == i;
        *loss -= log(fmax((double)((const float *)out->data)[i], 1e-12)) / DIGITS;
    }
    return right;
}

/* What an evaluation told. */
typedef struct heard {
    int64_t calls, done, total, stop_at;
    double top1;
} heard;

/* Keeps what is told; 1: stop. */
static int32_t hear(void *arg, const cnr_progress *p) {
    heard *h = arg;
    h->calls++;
    h->done = p->done;
    h->total = p->total;
    h->top1 = p->top1;
    return h->stop_at && p->done >= h->stop_at;
}

/* Tests: what is counted. */
static void counts(cnr_model *m) {
    cnr_evaluate_options o = {.size = sizeof o, .data = spec, .batch = 3};
    cnr_evaluation e = {.size = sizeof e};
    cnr_error err = CNR_ERROR_INIT;
    heard h = {0};
    const cnr_observer observer = {.size = sizeof observer, .arg = &h, .progress = hear};
    double loss;
    int64_t trace = 0, all = 0;
    const int64_t right = by_hand(m, &loss);
    if (!ok(!cnr_evaluate(m, &o, &observer, &e, &err), "evaluates: %s", err.text)) return;
    is_int(e.n, DIGITS, "all pictures");
    is_int(e.right, right, "as many right as one by one");
    ok(right >= 9, "which are most: %d", (int)right);
    ok(e.top1 == (double)right / DIGITS && e.top5 >= e.top1 && e.top5 <= 1, "as parts of 1");
    ok(fabs(e.loss - loss) < 1e-5 && loss > 0, "the loss: %g, by hand %g", e.loss, loss);
    is_int(e.labels, DIGITS, "labels");
    for (int64_t i = 0; e.confusion && i < DIGITS * DIGITS; i++) {
        all += e.confusion[i];
        if (i % (DIGITS + 1) == 0) trace += e.confusion[i];
    }
    ok(all == e.n && trace == e.right,
       "the confusion has every answer, those right on its diagonal");
    ok(h.calls == DIGITS && h.done == DIGITS && h.total == DIGITS && h.top1 == e.top1,
       "the observer hears of each picture");
    cnr_evaluation_free(&e);
    o.limit = 4;
    ok(!cnr_evaluate(m, &o, NULL, &e, &err) && e.n == 4, "a limit, and no observer");
    cnr_evaluation_free(&e);
}

/* Tests: rows of pictures. */
static void rows_of(cnr_model *m) {
    cnr_evaluate_options o = {.size = sizeof o, .data = spec, .batch = 3, .rows = 1};
    cnr_evaluation e = {.size = sizeof e};
    cnr_error err = CNR_ERROR_INIT;
    double loss = 0;
    int64_t right = 0, good = 0;
    if (!ok(!cnr_evaluate(m, &o, NULL, &e, &err) && e.rows, "a row a picture: %s", err.text))
        return;
    for (int64_t i = 0; i < e.n; i++) {
        const cnr_evaluated *r = &e.rows[i];
        right += r->label == r->answer;
        loss -= log(fmax(r->label_share, 1e-12));
        good += r->index == i && r->label == i && r->share >= r->label_share && r->share <= 1 &&
                (r->label != r->answer || r->share == r->label_share);
    }
    ok(good == e.n && right == e.right, "with index, label, answer and shares");
    ok(fabs(loss / DIGITS - e.loss) < 1e-9, "which make up the loss");
    cnr_evaluation_free(&e);
    ok(!e.rows, "and are freed");
    o.validation = 0.5;
    o.validation_seed = 1;
    ok(!cnr_evaluate(m, &o, NULL, &e, &err) && e.n == DIGITS / 2, "a part: %s", err.text);
    good = 0;
    for (int64_t i = 0; i < e.n; i++) good += e.rows[i].index == e.rows[i].label;
    is_int(good, e.n, "has the source's indices");
    cnr_evaluation_free(&e);
    e = (cnr_evaluation){.size = offsetof(cnr_evaluation, rows)}; /* an older application's */
    ok(!cnr_evaluate(m, &o, NULL, &e, &err) && e.n == DIGITS / 2 && !e.rows,
       "a result that has no room for them: %s", err.text);
    cnr_evaluation_free(&e);
}

/* Tests: labels that are mapped. */
static void maps(cnr_model *m, int64_t right) {
    int64_t labels[DIGITS];
    cnr_evaluate_options o = {.size = sizeof o, .data = spec, .labels = labels, .n_labels = DIGITS};
    cnr_evaluation e = {.size = sizeof e};
    cnr_error err = CNR_ERROR_INIT;
    write_list(3);
    for (int64_t i = 0; i < DIGITS; i++) labels[i] = (i + 3) % DIGITS;
    ok(!cnr_evaluate(m, &o, NULL, &e, &err) && e.right == right, "labels of classes: %s", err.text);
    cnr_evaluation_free(&e);
    o.n_labels = 4;
    ok(cnr_evaluate(m, &o, NULL, &e, &err) == CNR_E_ARG, "too few of them: %s", err.text);
    o = (cnr_evaluate_options){.size = sizeof o, .data = spec, .offset = 5};
    ok(cnr_evaluate(m, &o, NULL, &e, &err) == CNR_E_ARG && strstr(err.text, "10 classes"),
       "labels beyond the classes: %s", err.text);
    write_list(0);
}

/* Tests: an evaluation is stopped. */
static void stopping(cnr_model *m) {
    const cnr_evaluate_options o = {.size = sizeof o, .data = spec, .batch = 2};
    cnr_evaluation e = {.size = sizeof e};
    heard h = {.stop_at = 4};
    volatile int32_t flag = 0;
    cnr_observer observer = {.size = sizeof observer, .arg = &h, .progress = hear};
    cnr_error err = CNR_ERROR_INIT;
    ok(cnr_evaluate(m, &o, &observer, &e, &err) == CNR_E_CANCELLED && h.done == 4,
       "progress that isn't 0 stops it");
    h = (heard){0};
    observer.cancel = &flag;
    flag = 1;
    ok(cnr_evaluate(m, &o, &observer, &e, &err) == CNR_E_CANCELLED && h.done < 2,
       "a flag stops the first run itself");
    flag = 0;
    ok(!cnr_evaluate(m, &o, &observer, &e, &err) && e.n == DIGITS, "and lets go again");
    cnr_evaluation_free(&e);
    observer.size = (uint32_t)offsetof(cnr_observer, cancel); /* an older application's */
    flag = 1;
    ok(!cnr_evaluate(m, &o, &observer, &e, &err), "a field that is not there is not read");
    cnr_evaluation_free(&e);
}

/* Tests: wrong calls are refused. */
static void refusals(cnr_model *m) {
    cnr_evaluate_options o = {.size = sizeof o};
    cnr_evaluation e = {.size = sizeof e}, none = {0};
    cnr_error err = CNR_ERROR_INIT;
    ok(cnr_evaluate(m, &o, NULL, &e, &err) == CNR_E_ARG, "no data");
    o.data = spec;
    ok(cnr_evaluate(NULL, &o, NULL, &e, &err) == CNR_E_ARG, "no model");
    ok(cnr_evaluate(m, &o, NULL, NULL, &err) == CNR_E_ARG, "no room for the result");
    ok(cnr_evaluate(m, &o, NULL, &none, &err) == CNR_E_ARG, "a result without its size");
    o.data = CNRT_SOURCE_DIR "/scripts/nets/digits/one.png";
    ok(cnr_evaluate(m, &o, NULL, &e, &err) == CNR_E_ARG, "pictures without labels: %s", err.text);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    double loss;
    const int fd = mkstemp(list);
    if (fd >= 0) close(fd);
    snprintf(spec, sizeof spec, "images:%s", list);
    cnr_model *m = guests_open(2, &err) ? NULL : guests_lenet(NULL);
    if (!m || fd < 0 || !write_list(0)) {
        ok(0, "a net and pictures: %s", err.text);
        return done();
    }
    counts(m);
    rows_of(m);
    maps(m, by_hand(m, &loss));
    stopping(m);
    refusals(m);
    unlink(list);
    cnr_close(guests_rt);
    return done();
}
