/* A watchdog cancels a session's run that takes too long. */
#ifndef CNRI_WATCHDOG_H
#define CNRI_WATCHDOG_H

#include "run/run.h"
#include <pthread.h>
#include <time.h>

/* Cancels a session that runs too long. */
typedef struct cnri_watchdog {
    cnr_session *session;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct timespec until;
    bool watches, done, late;
} cnri_watchdog;

/* Cancels the session's run after `ms` milliseconds unless it ends before; 0: never. */
void cnri_watchdog_begin(cnri_watchdog *w, cnr_session *session, int64_t ms);
/* Ends the watchdog. True: it cancelled the run. */
bool cnri_watchdog_end(cnri_watchdog *w);

#endif
