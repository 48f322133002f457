/* SIGINT and SIGTERM: the first asks for a clean end, the second ends at once. */
#include "core/cli/cli.h"
#include <signal.h>
#include <stdatomic.h>

/* A handler can reach nothing but statics. */
static volatile sig_atomic_t cancelled;
static _Atomic(cnr_session *) watched;

static void on_signal(int number) {
    (void)number;
    cancelled = 1;
    cnr_session *session = atomic_load(&watched);
    if (session) cnr_session_cancel(session);
}

void cnri_signals_install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cnri_cancelled(void) {
    return cancelled != 0;
}

void cnri_signals_watch(cnr_session *session) {
    atomic_store(&watched, session);
    if (session && cancelled) cnr_session_cancel(session);
}
