/* Models, plans by shape, sessions: the application's side, on made-up operators. */
#include "../plan/lab.h"
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* x [batch, 4, 3, 2] -> blurs -> affine */
static cnr_model *deep_model(const cnri_plan_options *options, uint32_t blurs) {
    cnr_graph *g = cnri_graph_new("net");
    cnr_tensor t = lab_type(1, 4, 3, 2);
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    t.dim[0] = CNR_DIM_SYMBOL(cnri_graph_symbol(g, "batch"));
    cnr_value x = cnri_graph_input(g, "x", &t);
    for (uint32_t i = 0; i < blurs; i++) x = lab_blur(g, x, 4, 2 + i);
    cnri_graph_output(g, lab_affine(g, x, 2, 1), "y");
    cnri_graph_set_meta(g, "labels", "cat\ndog\r\nhen");
    if (cnri_model_from_graph(lab_rt, g, NULL, &m, &err)) note("%s: %s", err.where, err.text);
    if (m && options) cnri_model_set_options(m, options, &err);
    return m;
}

static cnr_model *model(const cnri_plan_options *options) { return deep_model(options, 1); }

/* An input of this batch over data, which it fills with -11 to 12 over and over. */
static cnr_tensor input_of(int64_t batch, float *data) {
    cnr_tensor t = lab_type(batch, 4, 3, 2);
    t.data = data;
    for (int64_t i = 0; i < cnr_count(&t); i++) data[i] = (float)(i % 24) - 11;
    return t;
}

/* Tests: batches. */
static void batches(void) {
    const cnri_plan_options o = {.device = "near"};
    cnr_model *m = model(&o);
    cnr_error err = CNR_ERROR_INIT;
    const int64_t sizes[] = {1, 3, 16, 1};
    static float data[64 * 24], first[24];
    const cnr_tensor *out;
    bool same = true;
    for (int32_t i = 0; i < 4; i++) {
        const cnr_tensor in = input_of(sizes[i], data), *list[] = {&in};
        if (!ok(!cnr_run_tensors(m, list, 1, &out, 1, &err), "batch %d runs: %s", (int)sizes[i],
                err.text))
            return;
        if (i == 0) memcpy(first, out->data, sizeof first);
        for (int64_t k = 0; k < cnr_count(out); k++)
            same = same && ((const float *)out->data)[k] == first[k % 24];
    }
    ok(same, "each sample has the same answer in every batch");
    is_int(cnri_plans_count(m), 3, "three shapes, three plans");
    for (int64_t b = 1; b <= 20; b++) {
        const cnr_tensor in = input_of(b, data), *list[] = {&in};
        if (cnr_run_tensors(m, list, 1, &out, 1, &err)) break;
    }
    is_int(cnri_plans_count(m), 8, "no more than eight are kept");
    cnr_plan *a = NULL, *b = NULL;
    ok(!cnr_plan_for(m, NULL, 0, &a, &err) && !cnr_plan_for(m, NULL, 0, &b, &err) && a == b,
       "a shape asked for twice gives the same plan");
    cnr_plan_release(a);
    cnr_plan_release(b);
    cnr_tensor bad = input_of(1, data);
    const cnr_tensor *list[] = {&bad};
    bad.dim[1] = 5;
    ok(cnr_run_tensors(m, list, 1, &out, 1, &err) != CNR_OK, "a wrong shape is refused: %s",
       err.text);
    bad = input_of(1, data);
    bad.dtype = CNR_f64;
    is_int(cnr_run_tensors(m, list, 1, &out, 1, &err), CNR_E_SHAPE, "so is a wrong type");
    has_text(err.text, "want f32 [1,4,3,2]", "saying what is wanted");
    is_text(cnr_label(m, 1), "dog", "labels come from the metadata");
    ok(cnr_label(m, 3) == NULL && cnr_label(m, -1) == NULL, "and end");
    is_text(cnr_input_name(m, 0), "x", "the input's name");
    is_text(cnr_output_name(m, 0), "y", "the output's name");
    cnr_release(m);
}

/* Tests: the largest values. */
static void topk(void) {
    float v[] = {1, NAN, 5, 3, 5, -1};
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 1, .dim = {6}, .data = v};
    cnr_top best[8];
    is_int(cnr_topk(&t, 3, best), 3, "three of six");
    ok(best[0].index == 2 && best[1].index == 4 && best[2].index == 3, "ties by index, NaN last");
    is_int(cnr_topk(&t, 8, best), 6, "no more than there are");
    is_int(best[5].index, 1, "NaN is the last of all");
}

/* ---- what watches and stops a run ---- */

/* Events that came. */
typedef struct heard {
    int32_t begins, ends, steps;
    bool order;
} heard;

/* Counts events in *arg, a `heard`, and notes if one is out of order. */
static void hear(void *arg, const cnri_event *e) {
    heard *h = arg;
    if (e->kind == CNRI_EVENT_RUN_BEGIN) h->begins++;
    if (e->kind == CNRI_EVENT_RUN_END) h->ends++;
    if (e->kind == CNRI_EVENT_STEP_BEGIN && e->step != h->steps) h->order = false;
    if (e->kind == CNRI_EVENT_STEP_END) h->steps++;
    if (e->now_ns == 0) h->order = false;
}

/* Values that were watched. */
typedef struct tapped {
    char names[256];
    float first[8];
    int32_t n;
} tapped;

/* Keeps the node's name, and the first number of the first eight values. */
static void tap(void *arg, const char *node, int32_t output, const cnr_tensor *value) {
    tapped *t = arg;
    (void)output;
    snprintf(t->names + strlen(t->names), sizeof t->names - strlen(t->names), "%s ", node);
    if (t->n < 8) t->first[t->n++] = ((const float *)value->data)[0];
}

/* Tests: watched values. */
static void watching(const char *device) {
    static const char *const off[] = {"fuse", NULL};
    const cnri_plan_options o = {.device = device, .no_rewrite = off};
    cnr_model *m = model(&o);
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    const cnr_tensor *out;
    static float data[24];
    const cnr_tensor in = input_of(1, data);
    heard h = {.order = true};
    tapped t = {.n = 0};
    ok(!cnr_plan_for(m, NULL, 0, &plan, &err) && !cnr_session_open(plan, &s, &err),
       "%s: a session opens", device);
    is_int(cnr_session_run(s, &err), CNR_E_STATE, "it wants its input first");
    has_text(err.where, "x", "by name");
    is_int(cnr_session_output(s, 0, &out, &err), CNR_E_STATE, "and has no outputs before it ran");
    cnr_session_set_input(s, 0, &in, &err);
    int32_t id = 0;
    cnri_session_listen(s, hear, &h, true, &id, &err);
    cnr_session_tap(s, tap, &t);
    ok(!cnr_session_run(s, &err) && !cnr_session_output(s, 0, &out, &err), "then it runs");
    ok(h.begins == 1 && h.ends == 1 && h.steps == plan->steps.n && h.order, "events in order");
    ok(t.n == 2 && t.first[1] == ((const float *)out->data)[0] && t.first[1] == 2 * t.first[0] + 1,
       "the tap saw both values: %s", t.names);
    cnr_session_unlisten(s, id);
    cnr_session_run(s, &err);
    is_int(h.begins, 1, "a listener that was sent away hears no more");
    is_int(cnr_session_wait(s, &err), CNR_E_STATE, "nothing to wait for");
    ok(!cnr_session_start(s, &err) && cnr_session_start(s, &err) == CNR_E_STATE &&
           !cnr_session_wait(s, &err),
       "one run at a time");
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const bool told = cnr_session_run(s, &err) == CNR_E_STATE && strstr(err.text, "fork");
        _exit(told ? 0 : 1);
    }
    int code = 1;
    waitpid(child, &code, 0);
    is_int(code, 0, "a child after fork is told so");
    cnr_session_close(s);
    cnr_plan_release(plan);
    cnr_release(m);
}

/* A session to stop, and whether it has ended. */
typedef struct stopper {
    cnr_session *session;
    int over;
} stopper;

/* Thread: stops the session until it has ended. */
static void *stop_it(void *arg) {
    stopper *s = arg;
    const struct timespec nap = {0, 20000000};
    while (!__atomic_load_n(&s->over,
                            __ATOMIC_RELAXED)) { /* before the run has begun it is of no use */
        nanosleep(&nap, NULL);
        cnr_session_cancel(s->session);
    }
    return NULL;
}

/* Tests: a run is stopped. */
static void cancel(void) {
    cnr_graph *g = cnri_graph_new("slow");
    const cnr_tensor t = lab_type(1, 1, 1, 4);
    cnri_graph_output(g, lab_op(g, "f_wait", cnri_graph_input(g, "x", &t), -1), "y");
    const cnr_tensor *types[] = {&t};
    const cnri_plan_options o = {.device = "near"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    float data[4] = {0};
    cnr_tensor in = t;
    const cnr_tensor *out;
    in.data = data;
    pthread_t thread;
    ok(!cnri_plan_make(g, &lab_rt->devices, &o, types, 1, &plan, &err) &&
           !cnr_session_open(plan, &s, &err) && !cnr_session_set_input(s, 0, &in, &err),
       "a slow net");
    stopper one = {.session = s};
    pthread_create(&thread, NULL, stop_it, &one);
    is_int(cnr_session_run(s, &err), CNR_E_CANCELLED,
           "a run that has no other end is cancelled from another thread");
    __atomic_store_n(&one.over, 1, __ATOMIC_RELAXED);
    is_int(cnr_session_output(s, 0, &out, &err), CNR_E_STATE, "and leaves no outputs");
    pthread_join(thread, NULL);
    cnr_session_close(s);
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

enum { MOVES = 60, TRIES = 3000 };

/* A session to stop at any time. */
typedef struct canceller {
    cnr_session *session; /* NULL: none yet, or the one that was there is cancelled */
    int *closed, over, in_time;
} canceller;

/* Cancels each session once, right behind its first move. */
static void *cancel_once(void *arg) {
    canceller *c = arg;
    uint32_t seed = 1;
    while (!__atomic_load_n(&c->over, __ATOMIC_SEQ_CST)) {
        cnr_session *s = __atomic_load_n(&c->session, __ATOMIC_SEQ_CST);
        if (!s || !__atomic_load_n(c->closed, __ATOMIC_SEQ_CST)) continue;
        seed = seed * 1664525u + 1013904223u;
        for (uint32_t i = seed >> 22; i > 0; i--) __atomic_signal_fence(__ATOMIC_SEQ_CST);
        cnr_session_cancel(s);
        c->in_time = __atomic_load_n(c->closed, __ATOMIC_SEQ_CST) < MOVES;
        __atomic_store_n(&c->session, NULL, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

/* A net whose device fails, and so does each of those that it moves to. */
static cnr_session *failing(cnr_model **m, cnr_error *err) {
    const char *next[MOVES + 1] = {NULL};
    for (int32_t i = 0; i < MOVES; i++) next[i] = "near";
    const cnri_plan_options o = {.device = "near", .fallback = next};
    float data[4] = {0};
    cnr_tensor t = lab_type(1, 1, 1, 4);
    cnr_graph *g = cnri_graph_new("failing");
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    cnri_graph_output(g, lab_op(g, "f_fail", cnri_graph_input(g, "x", &t), -1), "y");
    if (!cnri_model_from_graph(lab_rt, g, NULL, m, err) && !cnri_model_set_options(*m, &o, err) &&
        !cnr_plan_for(*m, NULL, 0, &plan, err) && !cnr_session_open(plan, &s, err)) {
        t.data = data;
        (void)cnr_session_set_input(s, 0, &t, err);
    }
    cnr_plan_release(plan);
    return s;
}

/* A cancel while the session moves to another device is noticed at any moment. */
static void cancel_while_moving(void) {
    void *plugin = dlopen(CNRT_BUILD_DIR "/tests/core/plan/fake/fake.so", RTLD_NOW | RTLD_NOLOAD);
    canceller c = {.closed = plugin ? dlsym(plugin, "fake_closed") : NULL};
    pthread_t thread;
    int32_t lost = 0, heard = 0;
    if (!ok(c.closed != NULL, "the device counts streams that close")) return;
    cnri_log_to(NULL, NULL, CNR_LOG_ERROR); /* each move is a warning */
    pthread_create(&thread, NULL, cancel_once, &c);
    for (int32_t i = 0; i < TRIES && !lost; i++) {
        cnr_error err = CNR_ERROR_INIT;
        cnr_model *m = NULL;
        cnr_session *s = failing(&m, &err);
        if (!s) break;
        __atomic_store_n(c.closed, 0, __ATOMIC_SEQ_CST);
        __atomic_store_n(&c.session, s, __ATOMIC_SEQ_CST);
        const cnr_status status = cnr_session_run(s, &err);
        while (__atomic_load_n(c.closed, __ATOMIC_SEQ_CST) &&
               __atomic_load_n(&c.session, __ATOMIC_SEQ_CST))
            sched_yield();
        heard += status == CNR_E_CANCELLED;
        lost += c.in_time && status != CNR_E_CANCELLED;
        cnr_session_close(s);
        cnr_release(m);
    }
    __atomic_store_n(&c.over, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    dlclose(plugin);
    ok(heard > 0 && !lost, "no cancel is lost between two moves: %d heard", (int)heard);
}

/* Tests: denormals count as 0. */
static void denormals(void) {
#if defined(__SSE__) || defined(__aarch64__) || defined(__arm__)
    cnr_graph *g = cnri_graph_new("tiny");
    const cnr_tensor t = lab_type(1, 1, 1, 2);
    cnri_graph_output(g, lab_affine(g, cnri_graph_input(g, "x", &t), 1, 0), "y");
    const cnr_tensor *types[] = {&t}, *out = NULL;
    const cnri_plan_options o = {.device = "near"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    float data[2] = {1e-40f, 1};
    cnr_tensor in = t;
    in.data = data;
    ok(!cnri_plan_make(g, &lab_rt->devices, &o, types, 1, &plan, &err) &&
           !cnr_session_open(plan, &s, &err) && !cnr_session_set_input(s, 0, &in, &err) &&
           !cnr_session_run(s, &err) && !cnr_session_output(s, 0, &out, &err),
       "tiny numbers run");
    ok(out && ((const float *)out->data)[0] == 0 && ((const float *)out->data)[1] == 1,
       "denormals are flushed in a run");
    volatile float tiny = 1e-40f, half = 0.5f;
    ok(tiny * half > 0, "and are back after it");
    cnr_session_close(s);
    cnri_plan_free(plan);
    cnri_graph_free(g);
#else
    skip("denormals", "no flush mode known for this processor");
#endif
}

/* ---- four sessions at once on one plan ---- */

/* A thread with a session of its own. */
typedef struct worker {
    cnr_plan *plan;
    int32_t id, times;
    bool failed, wavered;
    float answer;
} worker;

/* Thread: runs its session and compares answers. */
static void *work(void *arg) {
    worker *w = arg;
    cnr_session *s = NULL;
    cnr_error err = CNR_ERROR_INIT;
    float data[24];
    const cnr_tensor in = input_of(1, data), *out;
    for (int32_t i = 0; i < 24; i++) data[i] += (float)w->id;
    w->failed = cnr_session_open(w->plan, &s, &err) != CNR_OK;
    for (int32_t i = 0; i < w->times && !w->failed; i++) {
        w->failed = cnr_session_set_input(s, 0, &in, &err) || cnr_session_run(s, &err) ||
                    cnr_session_output(s, 0, &out, &err);
        if (w->failed) break;
        const float got = ((const float *)out->data)[5];
        w->wavered = w->wavered || (i > 0 && got != w->answer);
        w->answer = got;
    }
    cnr_session_close(s);
    return NULL;
}

/* Bytes of the arena that a plan with these options has; a test fails if there is none. */
static uint64_t arena_of(const cnri_plan_options *o) {
    cnr_model *m = deep_model(o, 4);
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    ok(!cnr_plan_for(m, NULL, 0, &plan, &err), "its arena: %s", err.text);
    const uint64_t bytes = plan ? cnr_plan_arena_bytes(plan) : 0;
    cnr_plan_release(plan);
    cnr_release(m);
    return bytes;
}

/* Tests: threads with sessions of their own. */
static void threads(const char *device, uint64_t bound) {
    static const char *const off[] = {"fuse", NULL};
    static const char *const blob[] = {"f_blur=far_blur_blob", NULL};
    cnri_plan_options o = {.device = device,
                           .no_rewrite = off,
                           .kernels = device[0] == 'f' ? blob : NULL};
    if (bound) o.memory_bound = arena_of(&o) + bound;
    cnr_model *m = deep_model(&o, 4);
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    pthread_t thread[4];
    worker w[4];
    int32_t wrong = 0;
    if (!ok(!cnr_plan_for(m, NULL, 0, &plan, &err), "a plan to share: %s", err.text)) return;
    for (int32_t i = 0; i < 4; i++) {
        w[i] = (worker){.plan = plan, .id = i, .times = 50};
        pthread_create(&thread[i], NULL, work, &w[i]);
    }
    for (int32_t i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        worker alone = {.plan = plan, .id = i, .times = 1};
        work(&alone);
        wrong += w[i].failed || w[i].wavered || alone.failed || w[i].answer != alone.answer;
    }
    is_int(wrong, 0, "four sessions at once have each its own answers");
    cnri_residency_stats stats;
    cnri_residency_stats_of(plan, &stats);
    ok(!bound || (stats.peak <= bound && stats.evicted > 10),
       "the bound held: %d of %d bytes, %d "
       "times a blob went",
       (int)stats.peak, (int)bound, (int)stats.evicted);
    cnr_plan_release(plan);
    cnr_release(m);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(lab_open(&err) == CNR_OK, "the made-up plugin loads")) return done();
    batches();
    topk();
    watching("near");
    watching("far:0");
    cancel();
    cancel_while_moving();
    denormals();
    threads("near", 0);
    threads("near", 80); /* blobs are of 32 bytes: one stays, one comes and goes */
    threads("far:0", 0);
    threads("far:0", 32);
    cnr_close(lab_rt);
    return done();
}
