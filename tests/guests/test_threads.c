/* Real kernels in many sessions at once, cancelled and closed in the middle: for the thread
 * sanitiser, and what was not cancelled is right. */
#include "guests.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SESSIONS = 3, RUNS = 40, MOST_OUT = 64 };

static const char net_text[] =
    "local c = require 'cnnrun'\n"
    "return c.net { name = 'threads', input = { 'data', shape = { 1, 3, 40, 40 } },\n"
    "  c.conv2d { 'wide', out = 16, kernel = 3, pad = 1 }, c.relu {},\n"
    "  c.conv2d { 'deep', out = 16, kernel = 3, pad = 1, groups = 16 }, c.clip { min = 0, max = 6 "
    "},\n"
    "  c.conv2d { 'point', out = 24, kernel = 1 }, c.maxpool { kernel = 2, stride = 2 },\n"
    "  c.conv2d { 'last', out = 32, kernel = 3, stride = 2 }, c.lrn { size = 5 },\n"
    "  c.avgpool { kernel = 2, stride = 2 }, c.flatten {}, c.dense { 'fc', out = 10 }, c.softmax "
    "{} }\n";

/* A thread with a session of its own. */
typedef struct racer {
    pthread_t thread;
    cnr_session *session;
    const float *want;
    int64_t n;
    int32_t right, wrong, cancelled, failed;
} racer;

static atomic_int running;

/* Thread: runs its session and compares. */
static void *race(void *arg) {
    racer *r = arg;
    cnr_error err = CNR_ERROR_INIT;
    for (int32_t i = 0; i < RUNS; i++) {
        const cnr_tensor *out;
        const cnr_status status = cnr_session_run(r->session, &err);
        r->cancelled += status == CNR_E_CANCELLED;
        r->failed += status && status != CNR_E_CANCELLED;
        if (status || cnr_session_output(r->session, 0, &out, &err)) continue;
        if (memcmp(out->data, r->want, (size_t)r->n * sizeof *r->want) == 0) r->right++;
        else r->wrong++;
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* Opens a session of a plan. */
static cnr_status open_session(cnr_plan *plan, const cnr_tensor *in, cnr_session **out) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = cnr_session_open(plan, out, &err);
    if (!status) status = cnr_session_set_input(*out, 0, in, &err);
    if (status) note("%s: %s", err.where, err.text);
    return status;
}

/* Cancels some runs while they compute; the other runs must give the answer of a run alone. */
static void cancelled(cnr_plan *plan, const cnr_tensor *in, const float *want, int64_t n) {
    racer racers[SESSIONS] = {0};
    int32_t right = 0, wrong = 0, stopped = 0, failed = 0;
    atomic_store(&running, SESSIONS);
    for (int32_t i = 0; i < SESSIONS; i++) {
        racers[i] = (racer){.want = want, .n = n};
        if (open_session(plan, in, &racers[i].session)) return;
    }
    for (int32_t i = 0; i < SESSIONS; i++)
        pthread_create(&racers[i].thread, NULL, race, &racers[i]);
    for (uint32_t turn = 1; atomic_load(&running) > 0; turn = turn * 1664525u + 1013904223u) {
        usleep((turn >> 8) % 300);
        cnr_session_cancel(racers[(turn >> 16) % SESSIONS].session);
    }
    for (int32_t i = 0; i < SESSIONS; i++) {
        pthread_join(racers[i].thread, NULL);
        cnr_session_close(racers[i].session);
        right += racers[i].right;
        wrong += racers[i].wrong;
        stopped += racers[i].cancelled;
        failed += racers[i].failed;
    }
    ok(wrong == 0 && failed == 0 && right + stopped == SESSIONS * RUNS,
       "%d runs were right, %d cancelled, %d wrong, %d failed", right, stopped, wrong, failed);
}

/* Thread: stops a session. */
static void *stop(void *arg) {
    cnr_session_cancel(arg);
    return NULL;
}

/* Queued, asked to stop by another thread, closed before anybody waited. */
static void closed(cnr_plan *plan, const cnr_tensor *in) {
    int32_t started = 0;
    for (int32_t i = 0; i < 10; i++) {
        cnr_error err = CNR_ERROR_INIT;
        cnr_session *s;
        pthread_t thread;
        if (open_session(plan, in, &s)) return;
        pthread_create(&thread, NULL, stop, s);
        const cnr_status status = cnr_session_start(s, &err);
        started += status == CNR_OK || status == CNR_E_CANCELLED;
        pthread_join(thread, NULL);
        cnr_session_close(s);
    }
    is_int(started, 10, "sessions are closed in the middle");
}

/* Tests: threads on one net. */
static void all(const char *path, const char *weights) {
    const cnr_load_options load = {.size = sizeof load, .device = "cpu", .weights = weights};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnr_plan *plan = NULL;
    cnr_session *alone = NULL;
    const cnr_tensor *out;
    float want[MOST_OUT];
    cnr_status status = cnr_load(guests_rt, path, &load, &m, &err);
    if (!status) status = cnr_plan_for(m, NULL, 0, &plan, &err);
    if (!ok(!status, "a net: %s: %s", err.where, err.text)) return;
    cnr_tensor in = *plan->graph->values.at[plan->graph->inputs.at[0]].type;
    in.bytes = cnr_dense_bytes(&in);
    float *data = in.data = cnri_alloc((size_t)in.bytes);
    for (int64_t i = 0; i < cnr_count(&in); i++) data[i] = (float)(i * 37 % 101) * 0.01f;
    status = open_session(plan, &in, &alone);
    if (!status) status = cnr_session_run(alone, &err);
    if (!status) status = cnr_session_output(alone, 0, &out, &err);
    if (ok(!status && cnr_count(out) <= MOST_OUT, "alone: %s", err.text)) {
        const int64_t n = cnr_count(out);
        memcpy(want, out->data, (size_t)n * sizeof *want);
        cancelled(plan, &in, want, n);
        closed(plan, &in);
        status = cnr_session_run(alone, &err);
        if (!status) status = cnr_session_output(alone, 0, &out, &err);
        ok(!status && memcmp(out->data, want, (size_t)n * sizeof *want) == 0,
           "the one that was alone still says the same");
    }
    cnr_session_close(alone);
    cnr_plan_release(plan);
    cnr_release(m);
    cnri_free(data);
}

int main(void) {
    char folder[] = "/tmp/cnnrun-threads-XXXXXX", path[64];
    cnr_error err = CNR_ERROR_INIT;
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = 2,
                                      .no_default_dirs = 1,
                                      .log_level = CNR_LOG_ERROR};
    if (!ok(mkdtemp(folder) && !cnr_open(&guests_rt, &options, &err), "plugins load: %s", err.text))
        return done();
    snprintf(path, sizeof path, "%s/net.lua", folder);
    FILE *file = fopen(path, "w");
    if (!file || fputs(net_text, file) < 0 || fclose(file) != 0) note("can't write %s", path);
    all(path, "random:1");
    all(CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", NULL);
    unlink(path);
    rmdir(folder);
    cnr_close(guests_rt);
    return done();
}
