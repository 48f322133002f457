/* Calls of devices that may hang. If the caller can go on without the device, or gave a time
 * limit, the call runs on a thread of its own. When one call into a plugin exceeds the limit,
 * that thread is given up: it never returns, the memory it may still use is not freed, and the
 * device is lost. In all other cases the call runs on the caller's thread, and a watchdog thread
 * reports a call that exceeds the limit; the program then ends. */
#include "host/host.h"
#include <time.h>
#include <unistd.h>

enum { LOOKS = 8 }; /* times that the watchdog looks within the limit */

/* A thread that makes calls which may never return, and that can be abandoned. */
struct cnri_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    cnri_hang_fn fn; /* the call that it runs now; NULL: none */
    void *arg;
    const cnr_device *device; /* a device that can hang */
    const cnri_limits *limits;
    cnr_status status;
    cnr_error error;
    cnri_watched watched;
    bool ends;
    pid_t pid; /* the process that has the thread; a child after fork has none */
};

/* ---- the thread ---- */

/* The thread: makes each call that it is given, keeps status and error in the worker, until it is
 * told to end. */
static void *work(void *arg) {
    cnri_worker *w = arg;
    cnri_activity_watch(&w->watched);
    pthread_mutex_lock(&w->lock);
    while (!w->ends) {
        if (!w->fn) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        cnri_limits_set_thread(w->limits);
        w->error = (cnr_error)CNR_ERROR_INIT;
        CNRI_DURING(w->status, w->fn(w->arg, &w->error), .verb = "running a call",
                    .descriptor = w->device->cls, .device = w->device->name);
        pthread_mutex_lock(&w->lock);
        w->fn = NULL;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Makes a condition variable that uses the monotonic clock. */
static void init_condition(pthread_cond_t *changed) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Starts a worker; NULL: out of memory or threads. */
static cnri_worker *new_worker(void) {
    cnri_worker *w = cnri_alloc_zero(sizeof *w);
    if (!w) return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->watched.lock, NULL);
    init_condition(&w->changed);
    w->pid = getpid();
    if (pthread_create(&w->thread, NULL, work, w) == 0) return w;
    cnri_free(w);
    return NULL;
}

void cnri_worker_free(cnri_worker *w) {
    if (!w || w->pid != getpid()) return;
    pthread_mutex_lock(&w->lock);
    w->ends = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->watched.lock);
    pthread_mutex_destroy(&w->lock);
    cnri_free(w);
}

/* ---- who waits for it ---- */

bool cnri_device_can_hang(const cnr_device *device) {
    return device->of_host && !(device->cls->flags & CNR_DEVICE_HOST) && cnri_clock_is_real();
}

/* Waits at most ns nanoseconds on a condition variable of the monotonic clock. */
static void wait_ns(pthread_cond_t *changed, pthread_mutex_t *lock, uint64_t ns) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const uint64_t sum = (uint64_t)until.tv_nsec + ns % 1000000000u;
    until.tv_sec += (time_t)(ns / 1000000000u + sum / 1000000000u);
    until.tv_nsec = (long)(sum % 1000000000u);
    pthread_cond_timedwait(changed, lock, &until);
}

/* The guard's device with this name; else one whose calls can hang; NULL: there is neither. */
static const cnr_device *device_of(const cnri_hang_guard *g, const char *name) {
    const cnr_device *able = NULL;
    for (int32_t i = 0; i < g->n_devices; i++) {
        if (strcmp(g->devices[i]->name, name) == 0) return g->devices[i];
        if (!able && cnri_device_can_hang(g->devices[i])) able = g->devices[i];
    }
    return able;
}

/* Says which call hangs, and for how long it has not returned. */
static cnr_status describe(const cnri_hang_guard *g, const cnri_hung *call, cnr_error *err) {
    return cnri_fail(err, CNR_E_DEVICE, device_of(g, call->device)->name,
                     "hangs: %s%s%s%s%s has not returned for %g s", call->verb,
                     *call->name ? " " : "", call->name, *call->node ? ", node " : "", call->node,
                     (double)g->limit_ns * 1e-9);
}

/* Waits until the worker is done. The lock is held on return, unless *gone: it was given up. */
static cnr_status wait_for(cnri_worker *w, const cnri_hang_guard *g, bool *gone, cnr_error *err) {
    uint64_t since = cnri_real_ns(), count = 0;
    while (w->fn) {
        cnri_hung call;
        wait_ns(&w->changed, &w->lock, g->limit_ns / LOOKS + 1);
        if (!w->fn) break;
        const uint64_t now = cnri_real_ns();
        if (cnri_activity_moved(&w->watched, &count)) {
            since = now;
        } else if (now - since >= g->limit_ns && cnri_activity_give_up(&w->watched, count, &call)) {
            *gone = true;
            cnri_device_lose(device_of(g, call.device));
            return describe(g, &call, err);
        }
    }
    return w->status ? cnri_fail(err, w->status, w->error.where, "%s", w->error.text) : CNR_OK;
}

/* ---- the watchdog of calls on their callers' threads ---- */

/* A call on the caller's own thread that the watching thread looks at. */
typedef struct watched_call {
    struct watched_call *next;
    const cnri_hang_guard *guard;
    cnri_watched watched;
    uint64_t since, count;
    bool told;
} watched_call;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    pid_t pid; /* the process that has the thread; 0: there is no thread */
    bool idle, ends;
    watched_call *calls;
    cnri_hang_told_fn told;
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER};

void cnri_hang_tell(cnri_hang_told_fn fn) { dog.told = fn; }

/* Reports once that a call hangs; nothing is given up. */
static void tell(watched_call *c) {
    cnri_hung call;
    cnr_error err = CNR_ERROR_INIT;
    if (!cnri_activity_now(&c->watched, c->count, &call)) return;
    c->told = true;
    describe(c->guard, &call, &err);
    if (dog.told) dog.told(&err);
    else cnri_log(CNR_LOG_ERROR, err.where, "%s; it is waited for", err.text);
}

/* Reports calls that exceed their limit. Returns the shortest limit, 0 without calls. */
static uint64_t look_at_calls(void) {
    const uint64_t now = cnri_real_ns();
    uint64_t least = 0;
    for (watched_call *c = dog.calls; c; c = c->next) {
        const uint64_t limit = c->guard->limit_ns;
        if (!least || limit < least) least = limit;
        if (cnri_activity_moved(&c->watched, &c->count)) c->since = now;
        else if (!c->told && now - c->since >= limit) tell(c);
    }
    return least;
}

/* The watching thread: looks at all calls until the program ends. */
static void *watch_calls(void *arg) {
    pthread_mutex_lock(&dog.lock);
    while (!dog.ends) {
        const uint64_t least = look_at_calls();
        dog.idle = !least;
        if (least) wait_ns(&dog.changed, &dog.lock, least / LOOKS + 1);
        else pthread_cond_wait(&dog.changed, &dog.lock);
    }
    pthread_mutex_unlock(&dog.lock);
    return arg;
}

/* Wakes the watchdog; the lock is held. If its thread can't be started, nothing is reported. */
static void wake_dog(void) {
    if (dog.pid == getpid()) {
        if (dog.idle) pthread_cond_signal(&dog.changed);
        dog.idle = false;
        return;
    }
    init_condition(&dog.changed);
    dog.ends = dog.idle = false;
    if (pthread_create(&dog.thread, NULL, watch_calls, NULL) == 0) dog.pid = getpid();
}

void cnri_hang_finish(void) {
    pthread_mutex_lock(&dog.lock);
    const bool runs = dog.pid == getpid() && !dog.calls;
    dog.ends = runs;
    if (runs) pthread_cond_signal(&dog.changed);
    if (runs) dog.pid = 0;
    const pthread_t thread = dog.thread;
    pthread_mutex_unlock(&dog.lock);
    if (runs) pthread_join(thread, NULL);
}

/* Makes a call on this thread, listed meanwhile for the watching thread, and returns its status. */
static cnr_status call_here(const cnri_hang_guard *g, cnri_hang_fn fn, void *arg, cnr_error *err) {
    const cnr_device *device = device_of(g, "");
    watched_call c = {.guard = g,
                      .since = cnri_real_ns(),
                      .watched = {.lock = PTHREAD_MUTEX_INITIALIZER}};
    pthread_mutex_lock(&dog.lock);
    c.next = dog.calls;
    dog.calls = &c;
    wake_dog();
    pthread_mutex_unlock(&dog.lock);
    cnri_activity_watch(&c.watched);
    cnr_status status;
    CNRI_DURING(status, fn(arg, err), .verb = "running a call", .descriptor = device->cls,
                .device = device->name);
    cnri_activity_watch(NULL);
    pthread_mutex_lock(&dog.lock);
    watched_call **at = &dog.calls;
    while (*at != &c) at = &(*at)->next;
    *at = c.next;
    pthread_mutex_unlock(&dog.lock);
    return status;
}

/* ---- either way ---- */

/* True if a device of the guard can hang. */
static bool any_can_hang(const cnri_hang_guard *g) {
    for (int32_t i = 0; i < g->n_devices; i++)
        if (cnri_device_can_hang(g->devices[i])) return true;
    return false;
}

cnr_status cnri_hang_call(cnri_worker **worker, const cnri_hang_guard *g, cnri_hang_fn fn,
                          void *arg, cnr_error *err) {
    bool gone = false;
    for (int32_t i = 0; i < g->n_devices; i++)
        if (cnri_device_is_lost(g->devices[i]))
            return cnri_fail(err, CNR_E_DEVICE, g->devices[i]->name,
                             "was lost: a call of it hangs");
    if (cnri_activity_is_watched() || !any_can_hang(g)) return fn(arg, err);
    if (!g->gives_up) return call_here(g, fn, arg, err);
    if (!*worker || (*worker)->pid != getpid()) *worker = new_worker();
    cnri_worker *w = *worker;
    if (!w) return fn(arg, err); /* no thread can be made: run the call without protection */
    pthread_mutex_lock(&w->lock);
    w->arg = arg;
    w->device = device_of(g, "");
    w->limits = cnri_limits_of_thread();
    w->fn = fn;
    pthread_cond_signal(&w->changed);
    const cnr_status status = wait_for(w, g, &gone, err);
    pthread_mutex_unlock(&w->lock);
    if (gone) *worker = NULL;
    return status;
}

/* ---- single calls of a device ---- */

/* On the heap, because a thread that was given up keeps using it. */
typedef struct device_job {
    const cnr_device *device;
    cnr_mem mem;
    void *data;
    uint64_t bytes;
    bool writes;
} device_job;

/* Makes one device call on a worker, limited to the device's time. *out: what an allocation gave.
 */
static cnr_status run_job(const device_job *job, cnri_hang_fn fn, cnr_mem *out, cnr_error *err) {
    bool gives_up;
    const uint64_t ms = cnri_device_hang_ms(job->device, &gives_up);
    const cnri_hang_guard g = {&job->device, 1, (ms ? ms : CNRI_HANG_MS) * 1000000u, gives_up};
    device_job *own = cnri_alloc(sizeof *own);
    cnri_worker *worker = NULL;
    if (!own) return cnri_out_of_memory(err, job->device->name);
    *own = *job;
    const cnr_status status = cnri_hang_call(&worker, &g, fn, own, err);
    if (cnri_device_is_lost(job->device)) return status;
    cnri_worker_free(worker);
    if (out) *out = own->mem;
    cnri_free(own);
    return status;
}

/* Allocates device memory; an allocation without a handle is an error. */
static cnr_status allocate(void *arg, cnr_error *err) {
    device_job *job = arg;
    const cnr_device *d = job->device;
    cnr_status status = d->cls->alloc(d, &job->mem, err);
    if (status == CNR_OK && !job->mem.handle)
        status = cnri_fail(err, CNR_E_DEVICE, d->name, "gave no memory for %llu bytes",
                           (unsigned long long)job->mem.bytes);
    return cnri_plugin_status(err, status, d->name, "allocating");
}

cnr_status cnri_device_alloc(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    const device_job job = {.device = device, .mem = *out};
    return run_job(&job, allocate, out, err);
}

/* Copies between host and device (job->writes: to it) on a stream of its own, and waits. */
static cnr_status copy(void *arg, cnr_error *err) {
    const device_job *job = arg;
    const cnr_device_class *cls = job->device->cls;
    cnr_stream stream = {.size = sizeof stream, .device = job->device};
    cnr_status status = cls->stream_open(job->device, &stream, err);
    if (status) return status;
    status = job->writes ? cls->write(&stream, &job->mem, 0, job->data, job->bytes, err)
                         : cls->read(&stream, &job->mem, 0, job->data, job->bytes, err);
    const cnr_status synced = cls->sync(&stream, status ? NULL : err);
    cls->stream_close(&stream);
    return status ? status : synced;
}

cnr_status cnri_device_upload(const cnr_device *device, const cnr_mem *mem, const void *data,
                              uint64_t bytes, cnr_error *err) {
    const device_job job = {device, *mem, (void *)(uintptr_t)data, bytes, true};
    return run_job(&job, copy, NULL, err);
}

cnr_status cnri_device_download(const cnr_device *device, const cnr_mem *mem, void *data,
                                uint64_t bytes, cnr_error *err) {
    const device_job job = {device, *mem, data, bytes, false};
    return run_job(&job, copy, NULL, err);
}
