/* Signals. SIGINT, SIGTERM and SIGHUP: the first asks for a clean end, the second ends at once.
 *
 * Work that nobody polls for (filling weights, a script's loop) is ended a second after the first,
 * unless the command has said that somebody looks. However a signal ends the process, files that
 * were being written are removed. */
#include "front/front.h"
#include "people/people.h"
#include <signal.h>
#include <unistd.h>

/* Static, because a handler can reach nothing else. */
static volatile int32_t cancelled /* by this signal */, patient;
static void (*tell_at_once)(const char *text, int code);

/* Ends the process by that signal, after its exit hooks. */
static void end_by(int number) {
    cnri_exit_hooks_run();
    signal(number, SIG_DFL);
    raise(number); /* comes when the handler returns */
}

/* Prints what still keeps the program busy, for the user who pressed Ctrl-C. */
static void tell_waited_for(void) {
    static const char begin[] = "cnnrun: stopping; plugin ", middle[] = " is ",
                      end[] = "; Ctrl-C again ends the program\n";
    const cnri_activity *a = cnri_activity_of_thread();
    const char *plugin = a ? cnri_activity_plugin(a) : "";
    if (!a || write(STDERR_FILENO, begin, sizeof begin - 1) < 0 ||
        write(STDERR_FILENO, plugin, strlen(plugin)) < 0 ||
        write(STDERR_FILENO, middle, sizeof middle - 1) < 0)
        return;
    cnri_tell_activity(a);
    if (write(STDERR_FILENO, end, sizeof end - 1) < 0) return;
}

/* Handler: cancels; the second signal ends the process. */
static void on_signal(int number) {
    if (cancelled) {
        end_by(number);
        return;
    }
    if (number == SIGINT) tell_waited_for();
    __atomic_store_n(&cancelled, number, __ATOMIC_RELAXED);
    if (!patient) alarm(1);
}

/* Handler of the alarm: ends a process that did not end by itself. */
static void on_alarm(int number) {
    (void)number;
    cnri_exit_hooks_run();
    tell_at_once("stopped", cnri_exit_code(CNR_E_CANCELLED));
    _exit(cnri_exit_code(CNR_E_CANCELLED));
}

/* Installs a handler. */
static void install(int number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = (int)SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* Handles SIGBUS: a mapped model was cut short, or its disk failed. It is reported like other
 * errors that end the program. The library can't do this for programs that embed it: see
 * cnr_load. */
static void on_bus(int number, siginfo_t *info, void *context) {
    (void)context;
    if (info->si_code != BUS_ADRERR) {
        cnri_tell_crash("SIGBUS");
        signal(number, SIG_DFL); /* it is done again, and ends the process */
        if (info->si_code <= 0) raise(number);
        return;
    }
    cnri_exit_hooks_run();
    tell_at_once("a model's file was cut short or can't be read any more", -CNR_E_IO);
    _exit(-CNR_E_IO);
}

void cnri_signals_install(void (*tell)(const char *text, int code)) {
    static const int ends[] = {SIGQUIT, SIGPIPE, SIGXCPU};
    struct sigaction before;
    tell_at_once = tell;
    install(SIGINT, on_signal);
    install(SIGTERM, on_signal);
    /* whoever started us with nohup wants us to stay */
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        install(SIGHUP, on_signal);
    install(SIGALRM, on_alarm);
    for (size_t i = 0; i < CNRI_COUNT(ends); i++)
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            install(ends[i], end_by);
    signal(SIGXFSZ, SIG_IGN); /* a file that grows too large is an error like others */
    struct sigaction bus;
    memset(&bus, 0, sizeof bus);
    bus.sa_flags = SA_SIGINFO;
    bus.sa_sigaction = on_bus;
    sigemptyset(&bus.sa_mask);
    sigaction(SIGBUS, &bus, NULL);
}

bool cnri_cancelled(void) {
    if (cancelled) alarm(0); /* whoever asks comes to an end by itself */
    return cancelled != 0;
}

int cnri_exit_code(int32_t status) {
    if (status == CNR_E_CANCELLED && cancelled) return 128 + cancelled;
    return status < 0 && status > -100 ? -status : status != 0;
}

void cnri_signals_patient(void) { patient = 1; }

const volatile int32_t *cnri_signals_flag(void) {
    patient = 1;
    return &cancelled;
}
