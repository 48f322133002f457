/* Names the plugin that ends the program: while it is being opened, by exit, by an uncaught C++
 * exception or by a crash; later, by a crash in one of its kernels or devices. Only the program
 * installs these handlers, not the library. */
#define _GNU_SOURCE
#include "front/front.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    int number;
    const char *name;
} crashes[] = {{SIGSEGV, "SIGSEGV"}, {SIGILL, "SIGILL"}, {SIGFPE, "SIGFPE"}, {SIGABRT, "SIGABRT"}};
static struct sigaction before[CNRI_COUNT(crashes)]; /* a handler can reach nothing but statics */

/* Writes to stderr with functions that signal handlers may call. */
static void tell(const char *text) {
    if (text && write(STDERR_FILENO, text, strlen(text)) < 0) _exit(-CNR_E_STATE);
}

/* Writes `lead` and up to 127 bytes of `name` to standard error. The name comes from a plugin or a
 * model, so control characters are written as '?'. Writes nothing if the name is empty. */
static void tell_name(const char *lead, const char *name) {
    char safe[128];
    size_t n = 0;
    if (!name || !*name) return;
    for (; name[n] && n < sizeof safe - 1; n++)
        safe[n] = (char)((unsigned char)name[n] < 0x20 || name[n] == 0x7f ? '?' : name[n]);
    safe[n] = 0;
    tell(lead);
    tell(safe);
}

void cnri_tell_activity(const cnri_activity *a) {
    tell(a->verb);
    tell_name(" ", a->name);
    tell_name(" for node ", a->node);
    tell_name(" on ", a->device);
}

const char *cnri_activity_plugin(const cnri_activity *a) {
    const cnri_plugin *owner = cnri_owner(a->descriptor);
    return owner ? owner->name : "(none)";
}

void cnri_tell_crash(const char *signal_name) {
    const cnri_activity *own = cnri_activity_of_thread(), *a = own ? own : cnri_activity_latest();
    if (!a) return;
    tell("cnnrun: ");
    tell_name(own ? "plugin " : "a thread crashed (", own ? cnri_activity_plugin(a) : signal_name);
    tell_name(own ? " crashed (" : ") while plugin ", own ? signal_name : cnri_activity_plugin(a));
    tell(own ? ") while " : " was ");
    cnri_tell_activity(a);
    tell("\n");
}

/* Handler of crashes: says what was being done, and lets the crash happen. */
static void on_crash(int number, siginfo_t *info, void *context) {
    const char *path = cnri_plugin_being_opened();
    (void)context;
    if (path) {
        tell("cnnrun: ");
        tell(path);
        tell(": crashed while it was being opened\n");
        _exit(-CNR_E_STATE);
    }
    for (size_t i = 0; i < CNRI_COUNT(crashes); i++) /* it happens again, unguarded */
        if (crashes[i].number == number) {
            cnri_tell_crash(crashes[i].name);
            sigaction(number, &before[i], NULL);
        }
    if (info->si_code <= 0) raise(number); /* sent, so it would not happen again */
}

/* Runs at exit, after the registry's own handler has printed its message. */
static void on_exit_call(void) {
    if (cnri_plugin_being_opened()) _exit(-CNR_E_STATE);
}

void cnri_guard_install(void) {
    static char stack[1 << 16]; /* an endless recursion has none left */
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_ONSTACK | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < CNRI_COUNT(crashes); i++)
        sigaction(crashes[i].number, &action, &before[i]);
    atexit(on_exit_call);
}
