/* One plugin's file, judged in a process of its own: ending that, crashing it or staying forever costs
 * nobody else anything. */
#include "core/work/work.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_SECONDS = 4 };

static int judge(const char *path, int (*tell)(void *arg, const char *refused), void *arg) {
    cnri_graph_install(cnri_host_mutable());
    char *refused = cnri_plugin_check(path);
    const int code = tell(arg, refused);
    cnri_free(refused);
    return code;
}

/* What `judge` says, and through the pipe that it came back. */
static pid_t begin(const char *path, int (*tell)(void *arg, const char *refused), void *arg,
                   int *done) {
    const char word = 1;
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        const int code = judge(path, tell, arg);
        cnri_plugins_finish();
        fflush(stdout);
        _exit(write(ends[1], &word, 1) == 1 ? code : -CNR_E_IO);
    }
    close(ends[1]);
    if (child < 0) close(ends[0]);
    *done = ends[0];
    return child;
}

cnr_status cnri_judge_plugin(const char *path, int (*tell)(void *arg, const char *refused),
                             void *arg,
                             const cnr_observer *observer, int *code, cnr_error *err) {
    char word = 0;
    int state = 0, ready, done = -1;
    const pid_t child = begin(path, tell, arg, &done);
    if (child < 0) {
        *code = judge(path, tell, arg);
        return CNR_OK;
    }
    struct pollfd poll_done = {.fd = done, .events = POLLIN};
    do ready = poll(&poll_done, 1, MOST_SECONDS * 1000);
    while (ready < 0 && errno == EINTR && !cnri_stopped(observer));
    if (ready <= 0) kill(child, SIGKILL);
    const bool said = ready > 0 && read(done, &word, 1) == 1;
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {}
    close(done);
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : -CNR_E_STATE;
    if (said) return CNR_OK;
    if (ready == 0)
        return cnri_fail(err, CNR_E_STATE, path,
                         "refused: it did not come back within %d s of being "
                         "opened", MOST_SECONDS);
    if (WIFSIGNALED(state))
        return cnri_fail(err, CNR_E_STATE, path,
                         "refused: it was ended by signal %d while it was being "
                         "opened", WTERMSIG(state));
    return cnri_fail(err, CNR_E_STATE, path, "refused: it ended the process (exit code %d) while it was "
                     "being opened", *code);
}
