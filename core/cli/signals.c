/* SIGINT and SIGTERM: the first asks for a clean end, the second ends at once.
 *
 * Work that nobody polls for (filling weights, a script's loop) is ended a second after the first,
 * unless the command has said that somebody looks. */
#include "core/cli/cli.h"
#include <signal.h>
#include <unistd.h>

/* A handler can reach nothing but statics. */
static volatile int32_t cancelled, patient;

static void on_signal(int number) {
    (void)number;
    __atomic_store_n(&cancelled, 1, __ATOMIC_RELAXED);
    if (!patient) alarm(1);
}

static void on_alarm(int number) {
    static const char text[] = "cnnrun: stopped\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
    _exit(-CNR_E_CANCELLED);
}

/* A mapped model was cut short, or its disk failed: an error like any other that ends the program.
 * The library can't do this for those who embed it: see cnr_load. */
static void on_bus(int number, siginfo_t *info, void *context) {
    static const char text[] = "cnnrun: a model's file was cut short or can't be read any more\n";
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        signal(number, SIG_DFL); /* our own fault: it is done again, and ends the process */
        return;
    }
    cnri_write_drop_all();
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
    _exit(-CNR_E_IO);
}

void cnri_signals_install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_alarm;
    sigaction(SIGALRM, &action, NULL);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = on_bus;
    sigaction(SIGBUS, &action, NULL);
}

bool cnri_cancelled(void) {
    if (cancelled) alarm(0); /* whoever asks comes to an end by itself */
    return cancelled != 0;
}

void cnri_signals_patient(void) {
    patient = 1;
}

const volatile int32_t *cnri_signals_flag(void) {
    patient = 1;
    return &cancelled;
}
