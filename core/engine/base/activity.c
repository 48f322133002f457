/* Records which plugin call each thread is in, so that signal handlers can name it. */
#include "base/base.h"
#include <unistd.h>

static _Thread_local const cnri_activity *own;
static const cnri_activity *latest; /* The activity that any thread of the process began last. */
static _Thread_local cnri_watched *watcher;

/* Publishes the thread's present activity to its watcher. If the watcher has given up the thread,
 * it pauses for ever. */
static void publish(const cnri_activity *now) {
    pthread_mutex_lock(&watcher->lock);
    watcher->now = now;
    watcher->count++;
    const bool given_up = watcher->given_up;
    pthread_mutex_unlock(&watcher->lock);
    while (given_up) pause();
}

void cnri_activity_begin(cnri_activity *a) {
    a->outer = own;
    own = a;
    __atomic_store_n(&latest, a, __ATOMIC_RELEASE);
    if (watcher) publish(a);
}

void cnri_activity_end(const cnri_activity *a) {
    const cnri_activity *mine = a;
    if (watcher) publish(a->outer);
    own = a->outer;
    __atomic_compare_exchange_n(&latest, &mine, a->outer, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

const cnri_activity *cnri_activity_of_thread(void) { return own; }

const cnri_activity *cnri_activity_latest(void) {
    return __atomic_load_n(&latest, __ATOMIC_ACQUIRE);
}

/* ---- of a thread that another waits for ---- */

void cnri_activity_watch(cnri_watched *watched) { watcher = watched; }

bool cnri_activity_is_watched(void) { return watcher != NULL; }

bool cnri_activity_moved(cnri_watched *watched, uint64_t *count) {
    pthread_mutex_lock(&watched->lock);
    const bool moved = watched->count != *count;
    *count = watched->count;
    pthread_mutex_unlock(&watched->lock);
    return moved;
}

/* Copies a text (NULL: "") into a field of fixed size, cut to fit. */
static void copy(char *to, size_t room, const char *text) {
    snprintf(to, room, "%s", text ? text : "");
}

/* Copies what the thread does now into `call` if it is still in its call number `count`; give_up
 * also marks the call as abandoned. False: that call has ended. */
static bool tell_now(cnri_watched *watched, uint64_t count, bool give_up, cnri_hung *call) {
    pthread_mutex_lock(&watched->lock);
    const cnri_activity *now = watched->now;
    const bool there = now && watched->count == count;
    if (there) {
        copy(call->verb, sizeof call->verb, now->verb);
        copy(call->name, sizeof call->name, now->name);
        copy(call->node, sizeof call->node, now->node);
        copy(call->device, sizeof call->device, now->device);
    }
    watched->given_up = there && give_up;
    pthread_mutex_unlock(&watched->lock);
    return there;
}

bool cnri_activity_give_up(cnri_watched *watched, uint64_t count, cnri_hung *call) {
    return tell_now(watched, count, true, call);
}

bool cnri_activity_now(cnri_watched *watched, uint64_t count, cnri_hung *call) {
    return tell_now(watched, count, false, call);
}
