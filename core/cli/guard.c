/* Says which plugin it was when one ends the program while it is being opened: by exit, by a C++
 * exception that nobody catches, by a crash. The library installs no handlers; the program does. */
#define _GNU_SOURCE
#include "core/cli/cli.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const int crashes[] = {SIGSEGV, SIGILL, SIGFPE, SIGABRT};
static struct sigaction before[CNRI_COUNT(crashes)]; /* a handler can reach nothing but statics */

/* Only what a signal handler may call. */
static void tell(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(-CNR_E_STATE);
}

static void on_crash(int number) {
    const char *path = cnri_plugin_at_work();
    if (path) {
        tell("cnnrun: ");
        tell(path);
        tell(": crashed while it was being opened\n");
        _exit(-CNR_E_STATE);
    }
    for (size_t i = 0; i < CNRI_COUNT(crashes); i++) /* not ours: it happens again, unguarded */
        if (crashes[i] == number) sigaction(number, &before[i], NULL);
}

/* The registry's own handler, which runs before this one, has told. */
static void on_exit_call(void) {
    if (cnri_plugin_at_work()) _exit(-CNR_E_STATE);
}

void cnri_guard_install(void) {
    static char stack[1 << 16]; /* an endless recursion has none left */
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_crash;
    action.sa_flags = SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < CNRI_COUNT(crashes); i++) sigaction(crashes[i], &action, &before[i]);
    atexit(on_exit_call);
}
