/* The board in force: values of a file that describes the machine, as plugins read them. */
#include "host/internal.h"
#include <pthread.h>

/* Plugins are shared by the whole process, so one board is in force for all of it. */
static const cnri_board *in_force;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void cnri_board_free(cnri_board *b) {
    if (b) b->free(b);
}

void cnri_board_use(const cnri_board *b) {
    pthread_mutex_lock(&lock);
    in_force = b;
    pthread_mutex_unlock(&lock);
}

void cnri_board_leave(const cnri_board *b) {
    pthread_mutex_lock(&lock);
    if (in_force == b) in_force = NULL;
    pthread_mutex_unlock(&lock);
}

/* The entry at a path such as "units.2.name" in the board in force; all zeros if there is none. */
static cnri_board_entry look_up(const char *path) {
    pthread_mutex_lock(&lock);
    const cnri_board_entry e =
        in_force && path ? in_force->look(in_force, path) : (cnri_board_entry){0};
    pthread_mutex_unlock(&lock);
    return e;
}

int32_t cnri_board_count(const char *path) {
    const cnri_board_entry e = look_up(path);
    return e.kind == CNRI_BOARD_LIST ? (int32_t)e.number : 0;
}

int32_t cnri_board_number(const char *path, double *out) {
    const cnri_board_entry e = look_up(path);
    if (e.kind != CNRI_BOARD_NUMBER) return 0;
    if (out) *out = e.number;
    return 1;
}

const char *cnri_board_text(const char *path) {
    const cnri_board_entry e = look_up(path);
    return e.kind == CNRI_BOARD_TEXT ? cnri_name(e.text) : NULL;
}
