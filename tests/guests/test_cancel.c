/* Cancel: a run of a large net stops within 50 ms of being asked to, wherever it is. What is judged
 * is the work done after that, in time of processors: others on the machine make no difference to
 * it. */
#include "guests.h"
#include <math.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
enum { TRIES = 4, LIMIT_MS = 500 }; /* code that is checked is slower: no measure of anything */
#else
enum { TRIES = 12, LIMIT_MS = 50 };
#endif

/* Fills weights that have no data; their values do not change the time. */
static cnr_status fill(cnr_graph *g, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t v = 0; v < g->values.n && !status; v++) {
        if (!g->values.at[v].unfilled) continue;
        cnr_tensor t = *g->values.at[v].type;
        const int64_t n = cnr_count(&t);
        float *data = cnri_alloc((size_t)n * sizeof *data);
        if (!data) return CNR_E_MEMORY;
        uint32_t s = (uint32_t)v + 1;
        for (int64_t i = 0; i < n; i++) {
            s = s * 1664525u + 1013904223u;
            data[i] = ((float)(s >> 8) * 0x1p-24f - 0.5f) * 0.02f;
        }
        t.data = data;
        t.bytes = cnr_dense_bytes(&t);
        status = cnri_graph_fill(g, v, &t, err);
        cnri_free(data);
    }
    return status;
}

/* The net's modules are looked for beside it: a folder that has them there. */
static cnr_status load_net(const cnr_load_options *load, cnr_graph **out, cnr_error *err) {
    char folder[] = "/tmp/cnnrun-net-XXXXXX", net[64], command[4 * sizeof CNRT_SOURCE_DIR + 300];
    if (!mkdtemp(folder)) return cnri_fail(err, CNR_E_IO, folder, "can't be made");
    snprintf(net, sizeof net, "%s/vgg16.lua", folder);
    snprintf(command, sizeof command,
             "cp '" CNRT_SOURCE_DIR "/scripts/nets/vgg16.lua' %s && "
             "cp -r '" CNRT_SOURCE_DIR "/scripts/lib' %s",
             folder, folder);
    const cnr_status status = system(command) == 0
                                  ? cnri_load_graph(guests_rt, net, load, out, err)
                                  : cnri_fail(err, CNR_E_IO, folder, "can't be filled");
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0) note("%s stays", folder);
    return status;
}

/* Milliseconds that the process has worked. */
static double worked_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* A session to stop, and when. */
typedef struct stopper {
    cnr_session *session;
    int64_t after_ns;
    uint64_t asked;
    double worked; /* ms of all threads until it was asked */
} stopper;

/* Thread: waits, notes the time and the work done so far, then cancels the session of the stopper
 * `arg`. */
static void *stop(void *arg) {
    stopper *s = arg;
    const struct timespec nap = {s->after_ns / 1000000000, s->after_ns % 1000000000};
    nanosleep(&nap, NULL);
    s->asked = cnri_now_ns();
    s->worked = worked_ms();
    cnr_session_cancel(s->session);
    return NULL;
}

int main(void) {
    const cnr_load_options load = {.size = sizeof load, .weights = "none", .device = "cpu"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = NULL;
    cnr_model *m = NULL;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    if (!ok(!guests_open(0, &err), "plugins load: %s", err.text)) return done();
    cnr_status status = load_net(&load, &g, &err);
    if (!status) status = fill(g, &err);
    if (!status) status = cnri_model_from_graph(guests_rt, g, &load, &m, &err);
    if (!status) status = cnr_plan_for(m, NULL, 0, &plan, &err);
    if (!status) status = cnr_session_open(plan, &s, &err);
    if (!ok(!status, "VGG-16 is planned: %s: %s", err.where, err.text)) return done();
    cnr_tensor in = *plan->graph->values.at[plan->graph->inputs.at[0]].type;
    in.data = cnri_alloc_zero((size_t)cnr_dense_bytes(&in));
    status = cnr_session_set_input(s, 0, &in, &err);
    double whole = 1e9;
    for (int32_t i = 0; i < 2 && !status; i++) {
        const uint64_t begin = cnri_now_ns();
        status = cnr_session_run(s, &err);
        whole = fmin(whole, (double)(cnri_now_ns() - begin) * 1e-6);
    }
    if (!ok(!status, "VGG-16 runs, in %.0f ms: %s", whole, err.text)) return done();
    const double limit = LIMIT_MS * (double)sysconf(_SC_NPROCESSORS_ONLN);
    int32_t cancelled = 0, late = 0;
    for (int32_t i = 0; i < TRIES; i++) {
        stopper one = {.session = s, .after_ns = (int64_t)(whole * 1e6 * (i + 1) / (TRIES + 2))};
        pthread_t thread;
        pthread_create(&thread, NULL, stop, &one);
        const uint64_t begin = cnri_now_ns();
        const cnr_status code = cnr_session_run(s, &err);
        const uint64_t now = cnri_now_ns();
        const double worked = worked_ms();
        pthread_join(thread, NULL);
        if (code != CNR_E_CANCELLED) { /* it was done before: the machine has grown faster */
            whole = fmin(whole, (double)(now - begin) * 1e-6);
            continue;
        }
        cancelled++;
        late += worked - one.worked > limit;
        note("asked after %4.0f ms, stopped %.2f ms later, %.2f ms of work",
             (double)one.after_ns * 1e-6, (double)(now - one.asked) * 1e-6, worked - one.worked);
    }
    ok(cancelled >= TRIES / 2, "%d of %d runs were under way when asked", cancelled, TRIES);
    ok(late == 0, "all but %d stopped within %d ms on each processor", late, LIMIT_MS);
    is_int(cnr_session_run(s, &err), CNR_OK, "and the session runs again after that");
    cnri_free(in.data);
    cnr_session_close(s);
    cnr_plan_release(plan);
    cnr_close(guests_rt);
    return done();
}
