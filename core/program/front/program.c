/* The frame around the commands of a program: signals, crashes, output errors, exit code. */
#include "front/front.h"
#include "people/people.h"
#include <errno.h>
#include <malloc.h>
#include <unistd.h>

/* Makes all threads use one heap. Frames are allocated on one thread and freed on another, and
 * with a heap for each thread that wastes tens of megabytes in an hour. Sessions, where speed
 * counts, allocate nothing. */
static void share_heap(void) {
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
}

/* Ends the program because a device's call does not return and nothing can go on without it. */
static void end_hanging(const cnr_error *why) {
    cnri_complain_at_once(why);
    cnri_exit_hooks_run();
    _exit(-CNR_E_DEVICE);
}

int cnri_program(int argc, char **argv, int (*run)(int argc, char **argv)) {
    share_heap();
    cnri_signals_install(cnri_error_at_once);
    cnri_guard_install();
    cnri_hang_tell(end_hanging);
    cnri_errors_begin(argc, argv);
    int code = run(argc, argv);
    if (code != -CNR_E_MEMORY && cnri_alloc_failures() > 0) {
        cnri_say(stderr, "cnnrun: out of memory: what came about is not whole\n");
        code = -CNR_E_MEMORY;
    }
    cnri_plugins_finish();
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        cnri_say(stderr, "cnnrun: output: can't write%s%s\n", errno ? ": " : "",
                 errno ? strerror(errno) : "");
        code = -CNR_E_IO;
    }
    if (cnri_devices_any_lost()) { /* exit handlers of its driver may hang as it does */
        fflush(stderr);
        _exit(code);
    }
    return code;
}
