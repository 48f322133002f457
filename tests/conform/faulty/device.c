/* Devices with memory of their own and a thread a stream, each with one planted fault:
 *
 *     stream: [job] -> [job] -> ...    its thread takes them in order
 *     mark: done, once its job has run; who waits for it waits for `changed`
 */
#include "faulty.h"
#include <pthread.h>

/* What the device does wrong. */
enum fault {
    NONE,
    EMPTY_COPY,  /* copy moves nothing */
    EMPTY_WAIT,  /* a stream does not wait for another's mark */
    EMPTY_SYNC,  /* sync returns at once */
    HIDDEN_LOSS, /* a job that fails is forgotten: sync says that all is well */
    LATE_RUN,    /* a kernel's job reads its cnr_run */
    SHORT_WRITE, /* writes of more than 4096 bytes at odd offsets lose the last one */
    CRASH,       /* at writes of 1023 bytes */
    HANG,        /* sync, once it is cancelled */
    ABANDONS,    /* a stream that closes leaves its thread behind, at work */
    SHARED,      /* all streams stage their writes in one buffer */
    UNCHECKED,   /* an allocation that fails is used */
    SILENT,      /* errors have no text */
    LIFO,        /* the newest job first */
    UNITLESS     /* tells no number of units */
};

/* A mark in a queue: whether it is done, and who holds it. */
typedef struct mark {
    int done, users;
} mark;

/* A job of a queue: a copy, a relu, or a mark. */
typedef struct job {
    struct job *next;
    char *to;
    const char *from;
    size_t n;
    int relu, fails;
    mark *signals, *awaits;
    const cnr_run *run;
} job;

/* A queue with its thread. */
typedef struct queue {
    pthread_t thread;
    job *first;
    int busy, quits, lost;
    enum fault fault;
} queue;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char stage[8 << 20];

static enum fault fault_of(const cnr_device *device);

/* ---- the thread ---- */

/* Computes relu of the job's numbers. */
static void compute(const job *j) {
    const float *x = (const float *)j->from;
    float *y = (float *)(void *)j->to;
    size_t n = j->n;
    if (j->run) n = (size_t)cnr_count(j->run->outputs[0]);
    for (size_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

/* Does one job on the queue's thread: waits for a mark, computes relu, or copies, with the queue's
 * fault. */
static void run_job(const queue *q, const job *j) {
    if (j->awaits) {
        pthread_mutex_lock(&lock);
        while (!j->awaits->done) pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
    } else if (j->relu) compute(j);
    else if (j->n && q->fault == SHARED && j->n <= sizeof stage) {
        memcpy(stage, j->from, j->n);
        if (j->n >= 1 << 19) faulty_host->wait_until(faulty_host->now_ns() + 2000000);
        memcpy(j->to, stage, j->n); /* what another stream staged meanwhile */
    } else if (j->n) memmove(j->to, j->from, j->n);
}

/* Counts one holder less; frees the mark without any. */
static void release(mark *m) {
    if (m && --m->users == 0) free(m);
}

/* Takes the next job: the last one, if that is the fault. */
static job *take(queue *q) {
    job *j = q->first, *before = NULL;
    if (q->fault == LIFO && !j->signals)
        while (j->next && !j->next->signals && !j->next->awaits) before = j, j = j->next;
    if (before) before->next = j->next;
    else q->first = j->next;
    return j;
}

/* Thread: does jobs until it is told to quit. */
static void *work(void *arg) {
    queue *q = arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!q->first && !q->quits) pthread_cond_wait(&changed, &lock);
        if (!q->first) break;
        job *j = take(q);
        q->busy = 1;
        pthread_mutex_unlock(&lock);
        if (!j->fails) run_job(q, j);
        pthread_mutex_lock(&lock);
        q->busy = 0;
        if (j->fails && q->fault != HIDDEN_LOSS) q->lost = 1;
        if (j->signals) j->signals->done = 1;
        release(j->signals);
        release(j->awaits);
        free(j);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Fails: out of memory. */
static cnr_status no_memory(const cnr_device *device, cnr_error *err) {
    return faulty_host->fail(err, CNR_E_MEMORY, device->name, "no memory");
}

/* Appends a copy of the job to the stream's queue; CNR_E_MEMORY. */
static cnr_status put(cnr_stream *stream, const job *what, cnr_error *err) {
    queue *q = stream->state;
    job *j = malloc(sizeof *j);
    if (!j) return no_memory(stream->device, err);
    *j = *what;
    j->next = NULL;
    pthread_mutex_lock(&lock);
    if (j->signals) j->signals->users++;
    if (j->awaits) j->awaits->users++;
    if (q->first) {
        job *last = q->first;
        while (last->next) last = last->next;
        last->next = j;
    } else q->first = j;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return CNR_OK;
}

/* ---- the class ---- */

/* Method count: one device. */
static int32_t count(cnr_error *err) {
    (void)err;
    return 1;
}

/* Method describe without the number of units. */
static cnr_status describe_unitless(int32_t index, cnr_device_info *out, cnr_error *err) {
    (void)index, (void)err;
    out->score = 1;
    snprintf(out->key, sizeof out->key, "queue");
    snprintf(out->name, sizeof out->name, "a thread and its queue");
    snprintf(out->driver, sizeof out->driver, "1.0");
    return CNR_OK;
}

/* Method describe of a device of one unit. */
static cnr_status describe(int32_t index, cnr_device_info *out, cnr_error *err) {
    out->concurrency = 1;
    return describe_unitless(index, out, err);
}

/* Method open: tells its memory class, with the fault that its name says. */
static cnr_status open_device(cnr_device *device, const cnr_device_options *o, cnr_error *err) {
    static const cnr_memory_class memory[] = {
        {.name = "queue", .flags = CNR_MEMORY_PARTS, .alignment = 64, .max_bytes = 1 << 28}};
    (void)o, (void)err;
    device->memory = memory;
    device->n_memory = 1;
    device->concurrency = 1;
    return CNR_OK;
}
static void close_device(cnr_device *device) { (void)device; }

/* Method alloc: memory into out; CNR_E_MEMORY for more than 256 MB. */
static cnr_status alloc(const cnr_device *device, cnr_mem *out, cnr_error *err) {
    out->offset = 0;
    out->handle = out->bytes > 1 << 28 ? NULL : faulty_host->alloc(out->bytes ? out->bytes : 1);
    if (!out->handle && fault_of(device) == SILENT) return CNR_E_MEMORY;
    return out->handle ? CNR_OK : no_memory(device, err);
}
/* Method free of memory: frees it at once. */
static void release_memory(const cnr_device *device, cnr_mem *mem) {
    (void)device;
    faulty_host->free(mem->handle);
}

/* 1: the bytes lie inside the memory. */
static int is_inside(const cnr_mem *mem, uint64_t offset, uint64_t bytes) {
    return offset <= mem->bytes && bytes <= mem->bytes - offset;
}

/* Method write: queues a copy. */
static cnr_status write_memory(cnr_stream *s, const cnr_mem *to, uint64_t offset, const void *from,
                               uint64_t n, cnr_error *err) {
    const enum fault fault = fault_of(s->device);
    job j = {.to = (char *)to->handle + to->offset + offset, .from = from, .n = (size_t)n};
    if (fault == SHORT_WRITE && offset % 2 && n > 4096) j.n--;
    if (fault == CRASH && n == 1023) abort();
    j.fails = !is_inside(to, offset, n);
    return put(s, &j, err);
}

/* Method read: queues a copy. */
static cnr_status read_memory(cnr_stream *s, const cnr_mem *from, uint64_t offset, void *to,
                              uint64_t n, cnr_error *err) {
    job j = {.to = to, .from = (char *)from->handle + from->offset + offset, .n = (size_t)n};
    j.fails = !is_inside(from, offset, n);
    return put(s, &j, err);
}

/* Method copy: queues it, or not, if that is the fault. */
static cnr_status copy_memory(cnr_stream *s, const cnr_mem *from, const cnr_mem *to, uint64_t n,
                              cnr_error *err) {
    job j = {.to = (char *)to->handle + to->offset,
             .from = (char *)from->handle + from->offset,
             .n = (size_t)n};
    if (fault_of(s->device) == EMPTY_COPY) return CNR_OK;
    j.fails = !is_inside(from, 0, n) || !is_inside(to, 0, n);
    return put(s, &j, err);
}

/* Method stream_open: starts the queue's thread. */
static cnr_status stream_open(const cnr_device *device, cnr_stream *s, cnr_error *err) {
    queue *q = calloc(1, sizeof *q);
    if (!q) return no_memory(device, err);
    q->fault = fault_of(device);
    if (q->fault == UNCHECKED) {
        volatile char *scratch = faulty_host->alloc(64);
        scratch[0] = 0;
        faulty_host->free((void *)(uintptr_t)scratch);
    }
    if (pthread_create(&q->thread, NULL, work, q) != 0) {
        free(q);
        return no_memory(device, err);
    }
    s->state = q;
    return CNR_OK;
}

/* Method stream_close: ends the queue's thread and frees it, or leaves it as a fault. */
static void stream_close(cnr_stream *s) {
    queue *q = s->state;
    pthread_mutex_lock(&lock);
    q->quits = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (q->fault == ABANDONS) {
        pthread_detach(q->thread);
        return;
    }
    pthread_join(q->thread, NULL);
    free(q);
}

/* Method sync: waits until the queue is empty, or not, if that is the fault. */
static cnr_status sync(cnr_stream *s, cnr_error *err) {
    queue *q = s->state;
    if (q->fault == EMPTY_SYNC) return CNR_OK;
    while (q->fault == HANG && cnr_cancelled(s)) faulty_host->wait_until(faulty_host->now_ns() + 1);
    pthread_mutex_lock(&lock);
    while (q->first || q->busy) pthread_cond_wait(&changed, &lock);
    const int lost = q->lost;
    pthread_mutex_unlock(&lock);
    if (lost && q->fault == SILENT) return CNR_E_DEVICE;
    return lost ? faulty_host->fail(err, CNR_E_DEVICE, s->device->name, "a job failed") : CNR_OK;
}

/* Method record: queues a mark, which *event receives. */
static cnr_status record(cnr_stream *s, void **event, cnr_error *err) {
    mark *m = calloc(1, sizeof *m);
    if (!m) return no_memory(s->device, err);
    m->users = 1;
    *event = m;
    return put(s, &(job){.signals = m}, err);
}

/* Method wait: the queue waits for another's mark, or not, if that is the fault. */
static cnr_status wait_event(cnr_stream *s, void *event, cnr_error *err) {
    if (fault_of(s->device) == EMPTY_WAIT) return CNR_OK;
    return put(s, &(job){.awaits = event}, err);
}

/* Method event_free. */
static void event_free(const cnr_device *device, void *event) {
    (void)device;
    pthread_mutex_lock(&lock);
    release(event);
    pthread_mutex_unlock(&lock);
}

/* Method await: waits on the host. */
static cnr_status await(const cnr_device *device, void *event, cnr_error *err) {
    const mark *m = event;
    (void)device, (void)err;
    pthread_mutex_lock(&lock);
    while (!m->done) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return CNR_OK;
}

/* The class of the device named `word`, with one fault or none. */
#define CLASS(word) CLASS_OF(word, describe)
/* The class of the device named `word` with this function describe. */
#define CLASS_OF(word, describes) \
    { \
        .size = sizeof(cnr_device_class), .flags = CNR_DEVICE_SINGLE, .name = word, \
        .family = word, .summary = "for tests", .count = count, .describe = describes, \
        .open = open_device, .close = close_device, .alloc = alloc, .free = release_memory, \
        .write = write_memory, .read = read_memory, .copy = copy_memory, \
        .stream_open = stream_open, .stream_close = stream_close, .sync = sync, \
        .event_record = record, .event_wait = wait_event, .event_free = event_free, \
        .event_sync = await \
    }
static const cnr_device_class classes[] =
    {CLASS("queue_sound"), CLASS("empty_copy"),  CLASS("empty_wait"),
     CLASS("empty_sync"),  CLASS("hidden_loss"), CLASS("late_run"),
     CLASS("short_write"), CLASS("crash"),       CLASS("hang"),
     CLASS("abandons"),    CLASS("shared"),      CLASS("unchecked"),
     CLASS("silent"),      CLASS("lifo"),        CLASS_OF("unitless", describe_unitless)};

static enum fault fault_of(const cnr_device *device) { return (enum fault)(device->cls - classes); }

/* ---- a kernel on the first one, and on the one whose jobs read their cnr_run ---- */

/* Method accepts: relu of f32. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!cnr_all_plain(node, 1u << CNR_f32)) return cnr_refuse(out, "f32 is wanted");
    return cnr_take(node, out, 100);
}

/* Method run: queues a relu. */
static cnr_status run_relu(const cnr_run *run, cnr_error *err) {
    const cnr_mem *x = &run->node->inputs[0]->mem, *y = &run->outputs[0]->mem;
    const job j = {.to = (char *)y->handle + y->offset,
                   .from = (const char *)x->handle + x->offset,
                   .n = (size_t)cnr_count(run->outputs[0]),
                   .relu = 1,
                   .run = fault_of(run->stream->device) == LATE_RUN ? run : NULL};
    return put(run->stream, &j, err);
}

static const cnr_kernel kernels[] = {{.size = sizeof(cnr_kernel),
                                      .version = 1,
                                      .name = "relu_queue_sound",
                                      .op = "relu",
                                      .device = "queue_sound",
                                      .accepts = accepts,
                                      .run = run_relu},
                                     {.size = sizeof(cnr_kernel),
                                      .version = 1,
                                      .name = "relu_late_run",
                                      .op = "relu",
                                      .device = "late_run",
                                      .accepts = accepts,
                                      .run = run_relu}};

cnr_status faulty_add_devices(struct cnr_registrar *r) {
#if !defined(FAULTY_SOUND) && !defined(FAULTY_DEVICES)
    return faulty_host->add(r, CNR_KIND_DEVICE, &classes[CRASH]);
#endif
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(classes); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_DEVICE, &classes[i]));
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(kernels); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_KERNEL, &kernels[i]));
    return CNR_OK;
}
