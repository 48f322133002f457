/* Runs a command and measures the machine's energy meanwhile. */
#define _GNU_SOURCE
#include "work/work.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LOOK_MS = 20, NOT_STARTED = 127 };

/* Starts the command, with default handling of the signals that this process ignores. *child: its
 * process. Returns 0, or an errno. */
static int start(char *const *argv, pid_t *child) {
    posix_spawnattr_t how;
    sigset_t defaults;
    int failed = posix_spawnattr_init(&how);
    if (failed) return failed;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGXFSZ);
    failed = posix_spawnattr_setsigdefault(&how, &defaults);
    if (!failed) failed = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
    if (!failed) failed = posix_spawnp(child, argv[0], NULL, &how, argv, environ);
    posix_spawnattr_destroy(&how);
    return failed;
}

/* True if the terminal has sent this signal to the command as well: Ctrl-C reaches all processes
 * in the foreground. */
static bool has_it_already(int number) {
    return number == SIGINT && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Waits for the command to end; returns its exit code, or 128 + the signal that ended it. A stopped
 * observer ends it by a signal. Before Linux 5.3 there are no process descriptors, so it looks
 * repeatedly. */
static int wait_for(pid_t child, const cnr_observer *observer) {
    const int fd = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    bool passed_on = false;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        poll(&ready, fd >= 0, fd >= 0 ? LOOK_MS : 2);
        if (passed_on || !cnri_stopped(observer)) continue;
        /* Our programs store the number of the signal there. */
        const int32_t signal_number = *observer->cancel;
        const int number =
            signal_number == SIGINT || signal_number == SIGHUP ? signal_number : SIGTERM;
        if (!has_it_already(number)) kill(child, number);
        passed_on = true;
    }
    if (fd >= 0) close(fd);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

cnr_status cnri_energy_command(cnr_runtime *rt, char *const *argv,
                               const cnr_energy_options *options, const cnr_observer *observer,
                               cnr_energy *out, int *exit_code, cnr_error *err) {
    cnr_energy_region *region;
    pid_t child;
    cnr_status status = cnr_energy_begin(rt, options, observer, &region, err);
    if (status) return status;
    const int failed = start(argv, &child);
    if (failed) {
        *exit_code = NOT_STARTED;
        cnr_energy_end(region, 1, NULL, NULL);
        return cnri_fail(err, failed == ENOMEM ? CNR_E_MEMORY : CNR_E_NOT_FOUND, argv[0],
                         "can't be started: %s", strerror(failed));
    }
    *exit_code = wait_for(child, observer);
    return cnr_energy_end(region, 1, out, err);
}
