/* C functions for the Python module: a whole run in one call, and Ctrl-C while C code runs. */
#include <cnnrun/cnnrun.h>
#include <signal.h>
#include <string.h>

/* State of the signal handler. Only the main thread and the handler write it. */
static cnr_session *volatile running;
static volatile int32_t interrupted;
static int watching;
static struct sigaction previous;

/* Handler of Ctrl-C: cancels the run and calls the handler from before. */
static void on_interrupt(int number, siginfo_t *info, void *context) {
    cnr_session *session = running;
    interrupted = 1;
    if (session) cnr_session_cancel(session);
    if (previous.sa_flags & SA_SIGINFO) previous.sa_sigaction(number, info, context);
    else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
        previous.sa_handler(number);
}

/* Installs the handler. It also calls the interpreter's handler, which raises KeyboardInterrupt
 * when C code has returned. */
static void watch(void) {
    struct sigaction own = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO};
    sigemptyset(&own.sa_mask);
    interrupted = 0;
    if (!watching) sigaction(SIGINT, &own, &previous);
    watching = 1;
}

/* Installs the handler; *flag points to what it sets. */
static void cnrpy_watch_interrupt(const volatile int32_t **flag) {
    *flag = &interrupted;
    watch();
}

/* Restores the SIGINT handler from before cnrpy_watch_interrupt; nothing if none was set. */
static void cnrpy_unwatch_interrupt(void) {
    if (watching) sigaction(SIGINT, &previous, NULL);
    watching = 0;
}

/* Copies an output to the memory of `to` and returns 1 if type and shape are equal. Otherwise sets
 * `to` to the output. */
static int take(const cnr_tensor *from, cnr_tensor *to) {
    const int fits = to->data && from->data && !from->encoding && from->dtype == to->dtype &&
                     cnr_same_shape(from, to);
    if (fits) memcpy(to->data, from->data, (size_t)cnr_dense_bytes(from));
    else *to = *from;
    return fits;
}

/* Runs a session: sets inputs, runs, takes outputs; *taken: outputs written in place. */
static int run_all(cnr_session *session, const cnr_tensor *inputs, int32_t n_inputs,
                   cnr_tensor *outputs, int32_t n_outputs, int32_t *taken, cnr_error *err) {
    const cnr_tensor *out;
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < n_inputs && !status; i++)
        status = cnr_session_set_input(session, i, &inputs[i], err);
    if (!status) status = cnr_session_run(session, err);
    for (int32_t i = 0; i < n_outputs && !status; i++) {
        status = cnr_session_output(session, i, &out, err);
        if (!status) taken[i] = take(out, &outputs[i]);
    }
    return status;
}

/* Sets all inputs, runs, and takes all outputs (taken[i] 1: copied). watched 1: the caller is the
 * main thread, and SIGINT cancels the run. */
static int cnrpy_run(cnr_session *session, const cnr_tensor *inputs, int32_t n_inputs,
                     cnr_tensor *outputs, int32_t n_outputs, int32_t *taken, int32_t watched,
                     cnr_error *err) {
    if (!watched) return run_all(session, inputs, n_inputs, outputs, n_outputs, taken, err);
    running = session;
    watch();
    const int status = run_all(session, inputs, n_inputs, outputs, n_outputs, taken, err);
    cnrpy_unwatch_interrupt();
    running = NULL;
    return status;
}
