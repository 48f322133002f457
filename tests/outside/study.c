/* An application that studies a net: devices, times, placement, evaluating, training with an
 * observer. Builds as C and as C++.  study NET LIST OUT.cnr: LIST has lines "picture label". */
#include <cnnrun/cnnrun.h>
#include <stdio.h>
#include <string.h>

/* Prints an error; 1. */
static int fail(const cnr_error *err) {
    fprintf(stderr, "%s: %s\n", err->where, err->text);
    return 1;
}

/* Counts progress. */
static int32_t hear_progress(void *arg, const cnr_progress *p) {
    (void)p;
    ++*(int *)arg;
    return 0;
}

/* Prints an epoch. */
static int32_t hear_event(void *arg, int32_t kind, const void *of) {
    const cnr_epoch *e = (const cnr_epoch *)of;
    (void)arg;
    if (kind == CNR_EVENT_EPOCH) printf("epoch %d of %d\n", (int)e->epoch, (int)e->epochs);
    return 0;
}

/* Prints the devices. */
static int list_devices(cnr_runtime *rt, cnr_error *err) {
    cnr_device_entry e;
    int n = 0;
    memset(&e, 0, sizeof e);
    e.size = sizeof e;
    for (; cnr_device_at(rt, n, &e, err) == CNR_OK; n++) printf("device %s\n", e.name);
    return n;
}

/* Prints a profile of the net; returns the status. */
static int profile(cnr_model *net, const cnr_observer *observer, cnr_error *err) {
    cnr_profile_options o;
    cnr_timing t;
    memset(&o, 0, sizeof o);
    memset(&t, 0, sizeof t);
    o.size = sizeof o;
    o.runs = 5;
    o.steps = 1;
    t.size = sizeof t;
    if (cnr_profile(net, &o, observer, &t, err)) return fail(err);
    printf("profile %d runs, %s steps, first on %s\n", (int)t.runs, t.n_steps > 3 ? "some" : "few",
           t.n_steps ? t.steps[0].device : "none");
    cnr_timing_free(&t);
    return 0;
}

/* Places a node. */
static int place(cnr_model *net, const char *node, cnr_error *err) {
    static const char *const cpu = "cpu";
    cnr_place_options o;
    memset(&o, 0, sizeof o);
    o.size = sizeof o;
    o.node = node;
    o.devices = &cpu;
    o.n_devices = 1;
    return cnr_place(net, &o, err) ? fail(err) : 0;
}

/* Prints an evaluation of the net; returns the status. */
static int evaluate(cnr_model *net, const char *data, const cnr_observer *observer,
                    cnr_error *err) {
    cnr_evaluate_options o;
    cnr_evaluation e;
    memset(&o, 0, sizeof o);
    memset(&e, 0, sizeof e);
    o.size = sizeof o;
    o.data = data;
    e.size = sizeof e;
    if (cnr_evaluate(net, &o, observer, &e, err)) return fail(err);
    printf("right %d of %d\n", (int)e.right, (int)e.n);
    cnr_evaluation_free(&e);
    return 0;
}

/* Trains a net into `out`, and prints the result; returns the status. */
static int train(cnr_runtime *rt, const char *net, const char *data, const char *out,
                 const cnr_observer *observer, cnr_error *err) {
    cnr_train_options o;
    cnr_train_result r;
    memset(&o, 0, sizeof o);
    memset(&r, 0, sizeof r);
    o.size = sizeof o;
    r.size = sizeof r;
    cnr_train_options_default(&o);
    o.data = data;
    o.output = out;
    o.batch = 5;
    o.epochs = 2;
    o.validation = 5;
    o.overwrite = 1;
    if (cnr_train(rt, net, NULL, &o, observer, &r, err)) return fail(err);
    printf("trained on %d, best epoch %s\n", (int)r.trained, r.best_epoch > 0 ? "kept" : "lost");
    return 0;
}

int main(int argc, char **argv) {
    cnr_runtime *rt = NULL;
    cnr_model *net = NULL;
    char data[1100];
    int calls = 0, status = 1;
    cnr_error err = CNR_ERROR_INIT;
    cnr_observer observer;
    if (argc != 4) return 2;
    memset(&observer, 0, sizeof observer);
    observer.size = sizeof observer;
    observer.arg = &calls;
    observer.progress = hear_progress;
    observer.event = hear_event;
    snprintf(data, sizeof data, "images:%s", argv[2]);
    if (cnr_open(&rt, NULL, &err)) return fail(&err);
    if (cnr_load(rt, argv[1], NULL, &net, &err)) fail(&err);
    else if (list_devices(rt, &err) > 0)
        status = place(net, "*", &err) || profile(net, &observer, &err) ||
                 evaluate(net, data, &observer, &err) ||
                 train(rt, argv[1], data, argv[3], &observer, &err);
    printf("%s heard\n", calls > 20 ? "much" : "little");
    cnr_close(rt);
    return status;
}
