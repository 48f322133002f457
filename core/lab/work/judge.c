/* Judges one plugin file in a process of its own, so that a plugin that ends, crashes or hangs
 * does no harm. */
#include "work/work.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SECONDS = 4, MAX_NEIGHBOUR_SECONDS = 60 };

/* In a child: opens the plugin alone, then beside the installed plugins, and writes a byte to the
 * pipe `opened` in between. Returns the exit code of j->tell. */
static int judge(const cnri_judged_plugin *j, int opened) {
    const char word = 1;
    cnri_graph_install(cnri_host_mutable());
    char *refused = cnri_plugin_check(j->path);
    const cnri_plugin *p = cnri_plugin_at(cnri_plugin_count() - 1);
    if (opened >= 0 && write(opened, &word, 1) != 1) _exit(-CNR_E_IO);
    if (!refused) {
        cnri_log_to(NULL, NULL, CNR_LOG_ERROR); /* messages about other plugins are not wanted */
        cnri_plugins_search(&j->neighbours, NULL);
    }
    const int code = j->tell(j->arg, p, refused);
    cnri_free(refused);
    return code;
}

/* Starts a process that calls `judge`, and returns it; -1: failed. *done: the pipe on which it
 * reports. */
static pid_t begin(const cnri_judged_plugin *j, int *done) {
    const char word = 1;
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
        const int code = judge(j, ends[1]);
        cnri_plugins_finish();
        fflush(stdout);
        _exit(write(ends[1], &word, 1) == 1 ? code : -CNR_E_IO);
    }
    close(ends[1]);
    if (child < 0) close(ends[0]);
    *done = ends[0];
    return child;
}

/* Waits `seconds` as poll does for the pipe `done`, and returns the same; *said: the process wrote
 * to it. */
static int await_word(int done, int seconds, const cnr_observer *observer, bool *said) {
    struct pollfd poll_done = {.fd = done, .events = POLLIN};
    char word = 0;
    int ready;
    do ready = poll(&poll_done, 1, seconds * 1000);
    while (ready < 0 && errno == EINTR && !cnri_stopped(observer));
    *said = ready > 0 && read(done, &word, 1) == 1;
    return ready;
}

cnr_status cnri_judge_plugin(const cnri_judged_plugin *j, const cnr_observer *observer, int *code,
                             cnr_error *err) {
    const char *path = j->path;
    int state = 0, ready, done = -1;
    bool said = false;
    const pid_t child = begin(j, &done);
    if (child < 0) {
        *code = judge(j, -1);
        return CNR_OK;
    }
    ready = await_word(done, MAX_SECONDS, observer, &said);
    const bool opened = said;
    if (opened) ready = await_word(done, MAX_NEIGHBOUR_SECONDS, observer, &said);
    if (ready <= 0) kill(child, SIGKILL);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR) {}
    close(done);
    *code = WIFEXITED(state) ? WEXITSTATUS(state) : -CNR_E_STATE;
    if (said) return CNR_OK;
    if (opened)
        return cnri_fail(err, CNR_E_STATE, path,
                         "it loads, but the installed plugins beside it do not (signal %d, exit "
                         "code %d)",
                         WIFSIGNALED(state) ? WTERMSIG(state) : 0, *code);
    if (ready == 0)
        return cnri_fail(err, CNR_E_STATE, path,
                         "refused: it did not come back within %d s of being "
                         "opened",
                         MAX_SECONDS);
    if (WIFSIGNALED(state))
        return cnri_fail(err, CNR_E_STATE, path,
                         "refused: it was ended by signal %d while it was being "
                         "opened",
                         WTERMSIG(state));
    return cnri_fail(err, CNR_E_STATE, path,
                     "refused: it ended the process (exit code %d) while it was "
                     "being opened",
                     *code);
}
