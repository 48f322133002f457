/* Plans of one model wanted by several threads at once: different shapes are planned side by side,
 * since no lock of the runtime is held meanwhile; the same shape is planned once. */
#include "run/run.h"
#include "tap.h"
#include <pthread.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t came = PTHREAD_COND_INITIALIZER;
static int32_t planning, wanted;
static bool met;

/* A log sink that blocks: each planning thread logs a message about its cache, and waits here
 * until `wanted` threads plan. */
static void hear(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg;
    (void)level;
    if (!who || strcmp(who, "cache") != 0 || !strstr(text, "miss")) return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&lock);
    if (++planning >= wanted) met = true;
    pthread_cond_broadcast(&came);
    while (!met && pthread_cond_timedwait(&came, &lock, &until) == 0) {}
    pthread_mutex_unlock(&lock);
}

/* A request of one thread for a plan. */
typedef struct asking {
    cnr_model *model;
    int64_t batch;
    cnr_plan *plan;
    cnr_status status;
} asking;

/* Thread: asks for a plan. */
static void *ask(void *arg) {
    asking *a = arg;
    cnr_tensor shape = {.size = sizeof shape,
                        .dtype = CNR_f32,
                        .rank = 4,
                        .dim = {a->batch, 1, 28, 28}};
    const cnr_tensor *list[] = {&shape};
    a->status = cnr_plan_for(a->model, list, 1, &a->plan, NULL);
    return NULL;
}

/* Tests: several threads ask at once for plans of the same sizes (same), or of different ones. */
static void at_once(cnr_model *m, asking *all, bool same) {
    pthread_t threads[THREADS];
    planning = 0;
    met = false;
    wanted = same ? 1 : THREADS;
    for (int32_t i = 0; i < THREADS; i++) {
        all[i] = (asking){.model = m, .batch = same ? 9 : 1 + i};
        pthread_create(&threads[i], NULL, ask, &all[i]);
    }
    for (int32_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* Tests: the model changes while a plan is made. */
static void changed_meanwhile(cnr_model *m) {
    asking a = {.model = m, .batch = 17};
    pthread_t thread;
    cnri_plan_options o = {.device = "cpu"};
    struct timespec little = {0, 1000000};
    planning = 0;
    met = false;
    wanted = 2; /* this thread is the second */
    pthread_create(&thread, NULL, ask, &a);
    for (int32_t now = 0; now == 0; nanosleep(&little, NULL)) {
        pthread_mutex_lock(&lock);
        now = planning;
        pthread_mutex_unlock(&lock);
    }
    ok(!cnri_model_set_options(m, &o, NULL), "options change while a plan is made");
    hear(NULL, 0, "cache", "miss");
    pthread_join(thread, NULL);
    ok(!a.status && a.plan, "whoever asked for it gets it");
    asking later = {.model = m, .batch = 17};
    ask(&later);
    ok(!later.status && later.plan && later.plan != a.plan, "and who asks later gets another");
    cnr_plan_release(a.plan);
    cnr_plan_release(later.plan);
}

int main(void) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    char cache[] = "/tmp/cnnrun-test-plans-XXXXXX", command[80];
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = 1,
                                      .no_default_dirs = 1,
                                      .log = hear,
                                      .log_level = CNR_LOG_INFO};
    cnr_runtime *rt = NULL;
    cnr_model *m = NULL;
    asking all[THREADS];
    cnr_error err = CNR_ERROR_INIT;
    wanted = 1;
    const cnr_load_options load = {.size = sizeof load, .device = "cpu", .cache = mkdtemp(cache)};
    if (!ok(!cnr_open(&rt, &options, &err) &&
                !cnr_load(rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", &load, &m, &err),
            "LeNet loads %s", err.text))
        return done();
    at_once(m, all, false);
    ok(met, "plans for four shapes are made side by side");
    bool good = true, different = true;
    for (int32_t i = 0; i < THREADS; i++) {
        good = good && !all[i].status && all[i].plan;
        for (int32_t k = 0; k < i; k++) different = different && all[i].plan != all[k].plan;
        cnr_plan_release(all[i].plan);
    }
    ok(good && different, "and are four");
    is_int(cnri_plans_count(m), THREADS, "all are kept");
    at_once(m, all, true);
    is_int(planning, 1, "four who want one shape have it planned once");
    for (int32_t i = 0; i < THREADS; i++) {
        good = good && !all[i].status && all[i].plan == all[0].plan;
        cnr_plan_release(all[i].plan);
    }
    ok(good, "and get the same plan");
    changed_meanwhile(m);
    cnr_close(rt);
    snprintf(command, sizeof command, "rm -r %s", cache);
    ok(system(command) == 0, "the cache can go");
    return done();
}
