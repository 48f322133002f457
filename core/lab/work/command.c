/* Runs a command of the system's and tells what the machine took meanwhile. */
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

/* What we ignore for ourselves the command shall not. */
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

/* Ctrl-C at a terminal reaches all of the foreground by itself, the command too. */
static bool has_it_already(int number) {
    return number == SIGINT && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

/* Without descriptors of processes (before Linux 5.3) it is looked for more often. */
static int wait_for(pid_t child, const cnr_observer *observer) {
    const int fd = (int)syscall(SYS_pidfd_open, child, 0);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    bool passed_on = false;
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
        poll(&ready, fd >= 0, fd >= 0 ? LOOK_MS : 2);
        if (passed_on || !cnri_stopped(observer)) continue;
        const int32_t signal_number = *observer->cancel; /* programs of ours put the signal there */
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
