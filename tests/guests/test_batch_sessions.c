/* Dynamic batch and company: batches of 1, 3 and 16 through one model, four sessions at once on one
 * plan, runtimes opened and used by several threads. The thread sanitiser watches this one. */
#include "guests.h"
#include "work/work.h"
#include <pthread.h>

enum { DIGITS = 48, SESSIONS = 4 }; /* a multiple of all batches */

static float one[MOST_DIGITS * 10], many[MOST_DIGITS * 10];

/* Digits behind those that there are: the same again. */
static void fill_up(int32_t n) {
    for (int32_t i = n; i < DIGITS; i++) {
        memcpy(guests_digits + i * DIGIT, guests_digits + (i - n) * DIGIT, DIGIT * sizeof(float));
        guests_labels[i] = guests_labels[i - n];
    }
}

/* Tests: batches in turn. */
static void batches(cnr_model *m) {
    static const int32_t sizes[] = {1, 3, 16, 1, 3, 16};
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plans[CNRI_COUNT(sizes)] = {NULL};
    for (size_t i = 0; i < CNRI_COUNT(sizes); i++) {
        double off = 0;
        memset(many, 0, sizeof many);
        if (!ok(!guests_run(m, DIGITS, sizes[i], many, &err), "batches of %d: %s", (int)sizes[i],
                err.text))
            continue;
        if (i == 0) memcpy(one, many, sizeof one);
        for (int32_t k = 0; k < DIGITS * 10; k++) {
            const double d = (double)many[k] - (double)one[k];
            if (d > off || -d > off) off = d > 0 ? d : -d;
        }
        ok(off < 1e-6 && guests_right(many, DIGITS) == guests_right(one, DIGITS),
           "answers as one by one, within %.1e", off);
        const cnr_tensor in = {.size = sizeof in,
                               .dtype = CNR_f32,
                               .rank = 4,
                               .dim = {sizes[i], 1, 28, 28}};
        const cnr_tensor *list[] = {&in};
        ok(!cnr_plan_for(m, list, 1, &plans[i], &err) && (i < 3 || plans[i] == plans[i - 3]),
           i < 3 ? "a plan for it" : "the plan that was made before");
    }
    is_int(cnri_plans_count(m), 3, "three plans in all");
    for (size_t i = 0; i < CNRI_COUNT(sizes); i++) cnr_plan_release(plans[i]);
}

/* ---- four sessions on one plan ---- */

/* A thread with a session of its own. */
typedef struct worker {
    cnr_plan *plan;
    int32_t id, wrong;
    cnr_status status;
} worker;

/* Thread: runs its session and compares. */
static void *work(void *arg) {
    worker *w = arg;
    cnr_session *s = NULL;
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor *out;
    w->status = cnr_session_open(w->plan, &s, &err);
    for (int32_t i = 0; i < DIGITS && !w->status; i++) {
        const int32_t at = (i + w->id * 11) % DIGITS; /* each in an order of its own */
        const cnr_tensor in = {.size = sizeof in,
                               .dtype = CNR_f32,
                               .rank = 4,
                               .dim = {1, 1, 28, 28},
                               .data = guests_digits + at * DIGIT,
                               .bytes = DIGIT * sizeof(float)};
        w->status = cnr_session_set_input(s, 0, &in, &err);
        if (!w->status) w->status = cnr_session_run(s, &err);
        if (!w->status) w->status = cnr_session_output(s, 0, &out, &err);
        if (!w->status) w->wrong += memcmp(out->data, one + at * 10, 10 * sizeof(float)) != 0;
    }
    cnr_session_close(s);
    return NULL;
}

/* Tests: sessions of one plan. */
static void sessions(const cnri_plan_options *o, const char *what) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = guests_lenet(o);
    cnr_plan *plan = NULL;
    pthread_t thread[SESSIONS];
    worker w[SESSIONS];
    int32_t wrong = 0, failed = 0;
    if (!ok(m && !guests_run(m, DIGITS, 1, one, &err) && !cnr_plan_for(m, NULL, 0, &plan, &err),
            "%s: a plan to share: %s", what, err.text))
        return;
    for (int32_t i = 0; i < SESSIONS; i++) {
        w[i] = (worker){.plan = plan, .id = i};
        pthread_create(&thread[i], NULL, work, &w[i]);
    }
    for (int32_t i = 0; i < SESSIONS; i++) {
        pthread_join(thread[i], NULL);
        wrong += w[i].wrong;
        failed += w[i].status != CNR_OK;
    }
    ok(wrong == 0 && failed == 0, "four sessions at once: each its own answers");
    cnr_plan_release(plan);
    cnr_release(m);
}

/* ---- a bound batch that is not the one asked for ---- */

/* Counts runs. */
static void count_run(void *arg, const cnri_event *e) {
    *(int32_t *)arg += e->kind == CNRI_EVENT_RUN_BEGIN;
}

/* A listener goes with its session: who is heard in each batch shows that one session runs all. */
static void bound_batch(void) {
    static const char *const names[] = {"batch"};
    static const int64_t sizes[] = {8};
    const cnr_load_options load = {.size = sizeof load,
                                   .device = "cpu",
                                   .n_symbols = 1,
                                   .symbols = names,
                                   .symbol_values = sizes};
    const cnr_tensor picture = {.size = sizeof picture,
                                .dtype = CNR_u8,
                                .rank = 3,
                                .dim = {28, 28, 1},
                                .bytes = DIGIT};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnri_runner r = {.model = NULL};
    int32_t runs = 0, id;
    uint64_t ns;
    cnr_status status =
        cnr_load(guests_rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", &load, &m, &err);
    if (!status) status = cnri_runner_open(&r, m, NULL, &err);
    for (int32_t i = 0; i < 3 && !status; i++) {
        status = cnri_runner_shape(&r, 3, &picture, &err);
        if (!status && i == 0)
            status = cnri_session_listen(r.session, count_run, &runs, false, &id, &err);
        if (!status) status = cnri_runner_run(&r, &ns, &err);
    }
    ok(!status, "batches of 3 where the net's is bound to 8: %s", err.text);
    is_int(runs, 3, "one session runs them all");
    cnri_runner_close(&r);
    cnr_release(m);
}

/* ---- runtimes of their own ---- */

/* Thread: opens a runtime of its own. */
static void *own_runtime(void *arg) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = 1,
                                      .no_default_dirs = 1,
                                      .log_level = CNR_LOG_ERROR};
    const cnr_load_options load = {.size = sizeof load, .device = "cpu"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    cnr_model *m = NULL;
    float scores[MOST_DIGITS * 10];
    bool good = true;
    for (int32_t i = 0; i < 3 && good; i++) {
        good = !cnr_open(&rt, &options, &err) &&
               !cnr_load(rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", &load, &m, &err) &&
               !guests_run(m, 6, 3, scores, &err) && guests_right(scores, 6) >= 5;
        cnr_close(rt);
    }
    *(bool *)arg = good;
    return NULL;
}

/* Tests: two runtimes at once. */
static void runtimes(void) {
    pthread_t thread[2];
    bool good[2] = {false, false};
    for (int32_t i = 0; i < 2; i++) pthread_create(&thread[i], NULL, own_runtime, &good[i]);
    for (int32_t i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    ok(good[0] && good[1], "two threads open, use and close a runtime each, three times over");
}

/* Tests, partly by the core's own interface: batches, sessions at once on a plan, a bound batch,
 * runtimes in threads. */
int main(void) {
    static const char *const packed[] = {"dense=dense_f32_turned", NULL};
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(!guests_open(2, &err), "plugins load: %s", err.text)) return done();
    const cnri_plan_options plain = {.device = "cpu"};
    const cnri_plan_options bound = {.device = "cpu",
                                     .kernels = packed,
                                     .memory_bound = 1602000 + 408576};
    cnr_model *m = guests_lenet(&plain);
    const int32_t n = m ? guests_load_digits(m->graph) : 0;
    if (!ok(n > 0, "%d digits", n)) return done();
    fill_up(n);
    batches(m);
    sessions(&plain, "plain");
    sessions(&bound, "blobs that come and go");
    bound_batch();
    runtimes(); /* beside one that is open */
    cnr_close(guests_rt);
    runtimes();
    return done();
}
