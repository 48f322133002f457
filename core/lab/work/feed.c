/* Pictures of a source through a net, each stage on a thread of its own:
 *
 *     read -> queue -> prepare -> queue -> run -> queue -> whoever takes them
 *
 * Queues are short. Where one is full, who fills it waits; of a live source the oldest in it is
 * lost instead, so that what comes out is of now. */
#include "work/work.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <time.h>

enum { STAGES = 3, MAX_ROOM = 8 };

/* Pictures between two stages. */
typedef struct queue {
    cnri_fed *at[MAX_ROOM];
    int32_t n, capacity;
    bool drops, ended;
    cnr_error why; /* the error that it ended with */
} queue;

/* Prepares inputs from pictures of one size. `lock` is held while it works, or is changed. */
typedef struct stage_net {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    cnri_preprocess preprocess;
    cnr_tensor type;
    int64_t dim[3]; /* of the pictures; 0: not set */
    cnr_model *model;
    cnr_plan *plan;
    cnr_session *session;
    int32_t turn; /* number of changes of the net so far */
    bool running; /* a run uses the session, without holding the lock */
} stage_net;

/* A source that is read, prepared and run by one thread each. */
struct cnri_feed {
    cnri_samples samples;
    pthread_mutex_t lock; /* protects all queues */
    pthread_cond_t changed;
    queue queues[STAGES];
    pthread_t threads[STAGES];
    int32_t started;
    bool stopping;
    int64_t lost;
    uint64_t trimmed_ns; /* ns: when unused pages were last given back */
    stage_net net;
};

/* Frees a fed picture with sample, input and outputs; NULL: nothing. */
void cnri_fed_free(cnri_fed *f) {
    if (!f) return;
    cnri_free(f->sample.picture.data);
    cnri_free(f->input.data);
    for (int32_t i = 0; i < f->n_outputs; i++) cnri_free(f->outputs[i].data);
    cnri_free(f->outputs);
    cnri_free(f);
}

/* ---- queues ---- */

/* Ends a queue with an error or none. */
static void end(cnri_feed *feed, queue *q, const cnr_error *why) {
    pthread_mutex_lock(&feed->lock);
    q->ended = true;
    q->why = *why;
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
}

/* Puts f into the queue, which owns it then. False: everything stops. */
static bool push(cnri_feed *feed, queue *q, cnri_fed *f) {
    cnri_fed *lost = NULL;
    pthread_mutex_lock(&feed->lock);
    while (q->n == q->capacity && !q->drops && !feed->stopping)
        pthread_cond_wait(&feed->changed, &feed->lock);
    if (q->n == q->capacity && !feed->stopping) {
        lost = q->at[0];
        memmove(q->at, q->at + 1, (size_t)--q->n * sizeof q->at[0]);
        feed->lost++;
    }
    const bool goes_on = !feed->stopping;
    if (goes_on) q->at[q->n++] = f;
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    cnri_fed_free(goes_on ? lost : f);
    return goes_on;
}

/* Takes the oldest item out of the queue, waiting for one; the caller owns it. NULL: the queue
 * ended (then *ended is true, else false), everything stops, or nothing came until until_ns of the
 * monotonic clock (0: no limit). */
static cnri_fed *pop(cnri_feed *feed, queue *q, uint64_t until_ns, bool *ended) {
    const struct timespec until = {(time_t)(until_ns / 1000000000u),
                                   (long)(until_ns % 1000000000u)};
    cnri_fed *f = NULL;
    pthread_mutex_lock(&feed->lock);
    while (!q->n && !q->ended && !feed->stopping) {
        if (!until_ns) pthread_cond_wait(&feed->changed, &feed->lock);
        else if (pthread_cond_timedwait(&feed->changed, &feed->lock, &until)) break;
    }
    if (q->n && !feed->stopping) {
        f = q->at[0];
        memmove(q->at, q->at + 1, (size_t)--q->n * sizeof q->at[0]);
        pthread_cond_broadcast(&feed->changed);
    }
    /* Read here, because later the queue may have ended with one more item. */
    *ended = !f && q->ended;
    pthread_mutex_unlock(&feed->lock);
    return f;
}

/* ---- stages ---- */

/* Thread: reads all samples into the first queue; an error ends that queue with the reason. */
static void *read_all(void *arg) {
    cnri_feed *feed = arg;
    cnr_error why = CNR_ERROR_INIT;
    for (int64_t i = 0; feed->samples.info.count < 0 || i < feed->samples.info.count; i++) {
        cnri_fed *f = cnri_alloc_zero(sizeof *f);
        if (!f) {
            cnri_fail(&why, CNR_E_MEMORY, "feed", "out of memory");
            break;
        }
        const cnr_status status = cnri_samples_read(&feed->samples, i, &f->sample, &why);
        if (status) {
            cnri_fed_free(f);
            if (cnri_samples_ended(&feed->samples, status)) why = (cnr_error)CNR_ERROR_INIT;
            break;
        }
        f->number = i;
        f->came_ns = cnri_real_ns();
        if (!push(feed, &feed->queues[0], f)) break;
    }
    end(feed, &feed->queues[0], &why);
    return NULL;
}

/* True if a picture has the size that the feed is attached for. */
static bool accepts_picture(const stage_net *n, const cnr_tensor *picture) {
    return n->dim[0] && memcmp(n->dim, picture->dim, sizeof n->dim) == 0;
}

/* Prepares the input of f if its picture has the expected size. An error is not kept: it occurs
 * again, and is reported, when the caller prepares the picture without the feed. */
static void prepare(stage_net *n, cnri_fed *f) {
    pthread_mutex_lock(&n->lock);
    if (accepts_picture(n, &f->sample.picture)) {
        cnr_tensor input = n->type;
        input.data = cnri_alloc((size_t)input.bytes + 1);
        if (input.data && cnri_preprocess_framed(&n->preprocess, &f->sample.picture, &input,
                                                 &f->framing, NULL) == CNR_OK) {
            f->input = input;
            f->turn = n->turn;
        } else {
            cnri_free(input.data);
        }
    }
    pthread_mutex_unlock(&n->lock);
}

/* Copies the outputs of the net's last run into f. CNR_E_MEMORY: f has those copied so far. */
static cnr_status copy_outputs(const stage_net *n, cnri_fed *f) {
    const int32_t count = cnr_output_count(n->model);
    f->outputs = cnri_alloc_zero((size_t)count * sizeof *f->outputs + 1);
    if (!f->outputs) return CNR_E_MEMORY;
    for (f->n_outputs = 0; f->n_outputs < count; f->n_outputs++) {
        const cnr_tensor *out;
        cnr_tensor *to = &f->outputs[f->n_outputs];
        const cnr_status status = cnr_session_output(n->session, f->n_outputs, &out, NULL);
        if (status) return status;
        *to = *out;
        to->bytes = cnr_dense_bytes(out);
        to->data = cnri_alloc((size_t)to->bytes + 1);
        if (!to->data) return CNR_E_MEMORY;
        memcpy(to->data, out->data, (size_t)to->bytes);
    }
    return CNR_OK;
}

/* Runs the net on a picture that was prepared for its current turn; f->ran: it was run, and f has
 * the outputs. */
static void run(stage_net *n, cnri_fed *f) {
    pthread_mutex_lock(&n->lock);
    n->running = f->input.data && f->turn == n->turn;
    pthread_mutex_unlock(&n->lock); /* lets the next picture be prepared meanwhile */
    if (!n->running) return;
    cnr_status status = cnr_session_set_input(n->session, 0, &f->input, NULL);
    f->begun_ns = cnri_real_ns();
    if (!status) status = cnr_session_run(n->session, NULL);
    f->ended_ns = cnri_real_ns();
    if (!status) status = copy_outputs(n, f);
    f->ran = !status;
    pthread_mutex_lock(&n->lock);
    n->running = false;
    pthread_cond_broadcast(&n->idle);
    pthread_mutex_unlock(&n->lock);
}

/* Thread: preprocesses pictures of the first queue for the net, into the second. */
static void *prepare_all(void *arg) {
    cnri_feed *feed = arg;
    cnri_fed *f;
    bool ended;
    while ((f = pop(feed, &feed->queues[0], 0, &ended)) != NULL) {
        prepare(&feed->net, f);
        if (!push(feed, &feed->queues[1], f)) break;
    }
    end(feed, &feed->queues[1], &feed->queues[0].why);
    return NULL;
}

/* Thread: runs the net for pictures of the second queue, into the third; frees prepared inputs. */
static void *run_all(void *arg) {
    cnri_feed *feed = arg;
    cnri_fed *f;
    bool ended;
    while ((f = pop(feed, &feed->queues[1], 0, &ended)) != NULL) {
        run(&feed->net, f);
        cnri_free(f->input.data);
        f->input.data = NULL;
        if (!push(feed, &feed->queues[2], f)) break;
    }
    end(feed, &feed->queues[2], &feed->queues[1].why);
    return NULL;
}

/* ---- from outside ---- */

/* Tells all threads and the source to stop, and joins the threads. */
static void stop(cnri_feed *feed) {
    pthread_mutex_lock(&feed->lock);
    feed->stopping = true;
    pthread_cond_broadcast(&feed->changed);
    pthread_mutex_unlock(&feed->lock);
    if (CNRI_HAS(feed->samples.source, stop)) feed->samples.source->stop(feed->samples.state);
    for (int32_t i = 0; i < feed->started; i++) pthread_join(feed->threads[i], NULL);
    feed->started = 0;
}

/* Undoes cnri_feed_attach: closes session and plan, frees the preprocessing; no picture size is
 * set. The net's lock is held, or no thread runs. */
static void unset(stage_net *n) {
    if (n->session) cnr_session_close(n->session);
    if (n->plan) cnr_plan_release(n->plan);
    cnri_preprocess_free(&n->preprocess);
    n->session = NULL;
    n->plan = NULL;
    n->dim[0] = 0;
}

/* Takes the net's lock when no run uses the session. */
static void lock_idle(cnri_feed *feed) {
    pthread_mutex_lock(&feed->net.lock);
    while (feed->net.running) pthread_cond_wait(&feed->net.idle, &feed->net.lock);
}

void cnri_feed_detach(cnri_feed *feed) {
    lock_idle(feed);
    unset(&feed->net);
    feed->net.turn++;
    pthread_mutex_unlock(&feed->net.lock);
}

/* Stops the threads, and frees the feed with all pictures; NULL: nothing. */
void cnri_feed_close(cnri_feed *feed) {
    if (!feed) return;
    stop(feed);
    for (int32_t i = 0; i < STAGES; i++)
        for (int32_t k = 0; k < feed->queues[i].n; k++) cnri_fed_free(feed->queues[i].at[k]);
    unset(&feed->net);
    cnri_samples_close(&feed->samples);
    pthread_cond_destroy(&feed->net.idle);
    pthread_mutex_destroy(&feed->net.lock);
    pthread_cond_destroy(&feed->changed);
    pthread_mutex_destroy(&feed->lock);
    cnri_free(feed);
}

/* Initialises the locks, and conditions on the monotonic clock. */
static void set_up(cnri_feed *feed) {
    pthread_condattr_t monotonic;
    pthread_mutex_init(&feed->lock, NULL);
    pthread_mutex_init(&feed->net.lock, NULL);
    pthread_cond_init(&feed->net.idle, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&feed->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int32_t i = 0; i < STAGES; i++) {
        feed->queues[i].capacity = feed->samples.info.is_live ? 1 : 2;
        feed->queues[i].drops = feed->samples.info.is_live && i < STAGES - 1;
    }
}

/* Opens a feed in *out, which owns the samples, after an error too. With a live source the latest
 * sample goes first, and older ones are dropped. */
cnr_status cnri_feed_open(cnri_samples *samples, cnri_feed **out, cnr_error *err) {
    static void *(*const stages[STAGES])(void *) = {read_all, prepare_all, run_all};
    cnri_feed *feed = *out = cnri_alloc_zero(sizeof *feed);
    if (!feed) {
        cnri_samples_close(samples);
        return cnri_out_of_memory(err, "feed");
    }
    feed->samples = *samples;
    memset(samples, 0, sizeof *samples);
    set_up(feed);
    for (; feed->started < STAGES; feed->started++)
        if (pthread_create(&feed->threads[feed->started], NULL, stages[feed->started], feed)) {
            cnri_feed_close(feed);
            *out = NULL;
            return cnri_fail(err, CNR_E_LIMIT, "feed", "no thread can be started");
        }
    return CNR_OK;
}

cnr_status cnri_feed_attach(cnri_feed *feed, cnr_model *model, cnri_preprocess *preprocess,
                            const cnr_tensor *type, const cnr_tensor *picture, cnr_error *err) {
    const cnr_tensor *shapes[] = {type};
    cnr_plan *plan = NULL;
    cnr_session *session = NULL;
    cnr_status status = cnr_plan_for(model, shapes, 1, &plan, err);
    if (!status) status = cnr_session_open(plan, &session, err);
    if (status) {
        if (plan) cnr_plan_release(plan);
        return status;
    }
    stage_net *n = &feed->net;
    lock_idle(feed);
    unset(n);
    n->preprocess = *preprocess;
    memset(preprocess, 0, sizeof *preprocess);
    n->model = model;
    n->plan = plan;
    n->session = session;
    n->type = *type;
    memcpy(n->dim, picture->dim, sizeof n->dim);
    n->turn++;
    pthread_mutex_unlock(&n->lock);
    return CNR_OK;
}

/* Gives unused memory back. Pictures of changing size leave holes between other blocks, which
 * glibc keeps, so memory would grow over hours. */
static void trim(cnri_feed *feed) {
#ifdef __GLIBC__
    const uint64_t now = cnri_real_ns();
    if (now - feed->trimmed_ns < UINT64_C(20000000000)) return;
    feed->trimmed_ns = now;
    malloc_trim(0);
#else
    (void)feed;
#endif
}

cnr_status cnri_feed_next(cnri_feed *feed, uint64_t until_ns, bool (*cancelled)(void),
                          cnri_fed **out, cnr_error *err) {
    queue *q = &feed->queues[STAGES - 1];
    bool ended;
    *out = NULL;
    for (;;) {
        const uint64_t step = cnri_real_ns() + 100000000;
        *out = pop(feed, q, until_ns && until_ns < step ? until_ns : step, &ended);
        if (*out) break;
        if (ended) {
            if (q->why.code) return cnri_fail(err, q->why.code, q->why.where, "%s", q->why.text);
            return cnri_fail(err, CNR_E_NOT_FOUND, "feed", "it has ended");
        }
        if (cancelled && cancelled()) return cnri_fail(err, CNR_E_CANCELLED, "feed", "stopped");
        if (until_ns && cnri_real_ns() >= until_ns) return CNR_OK;
    }
    pthread_mutex_lock(&feed->lock);
    (*out)->lost = feed->lost;
    pthread_mutex_unlock(&feed->lock);
    trim(feed);
    return CNR_OK;
}

bool cnri_feed_is_live(const cnri_feed *feed) { return feed->samples.info.is_live; }
