/* A watchdog: a thread that waits for the end of a run, or until the run exceeds its time. */
#include "work/watchdog.h"
#include <signal.h>

/* Thread: cancels the session if the time is over before the run is; sets w->late. */
static void *watch(void *arg) {
    cnri_watchdog *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->done && !w->late)
        w->late = pthread_cond_timedwait(&w->ended, &w->lock, &w->until) != 0 && !w->done;
    if (w->late) cnr_session_cancel(w->session);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void cnri_watchdog_begin(cnri_watchdog *w, cnr_session *session, int64_t ms) {
    pthread_condattr_t attr;
    sigset_t all, before;
    *w = (cnri_watchdog){.session = session};
    if (ms <= 0) return;
    /* The machine's clock, even if a plugin's clock is in force. */
    clock_gettime(CLOCK_MONOTONIC, &w->until);
    const int64_t ns = w->until.tv_nsec + ms % 1000 * 1000000;
    w->until.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    w->until.tv_nsec = (long)(ns % 1000000000);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->ended, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&w->lock, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the caller's own threads only */
    w->watches = pthread_create(&w->thread, NULL, watch, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (w->watches) return;
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->ended);
}

bool cnri_watchdog_end(cnri_watchdog *w) {
    if (!w->watches) return false;
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->ended);
    return w->late;
}
