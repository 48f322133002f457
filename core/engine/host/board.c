/* The board in force: values of a file that describes the machine, as plugins read them. */
#include "host/internal.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One number or text of a board. */
typedef struct entry {
    int32_t kind; /* an enum cnri_board_kind */
    double number;
    cnr_id text;
} entry;

/* Paths and their numbers or texts, as a board file gives them. */
struct cnri_board {
    cnri_map index; /* path -> 1 + its index in `at` */
    CNRI_VEC(entry) at;
    CNRI_VEC(cnr_id) paths; /* the path of each entry */
    cnr_id digest;
};

/* Plugins are shared by the whole process, so one board is in force for all of it. */
static const cnri_board *in_force;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- making one ---- */

cnri_board *cnri_board_new(void) { return cnri_alloc_zero(sizeof(cnri_board)); }

void cnri_board_free(cnri_board *b) {
    if (!b) return;
    cnri_map_free(&b->index);
    cnri_vec_free(&b->at);
    cnri_vec_free(&b->paths);
    cnri_free(b);
}

/* The entry of a path; NULL: there is none. */
static entry *find(const cnri_board *b, const char *path) {
    const uintptr_t i = b && path ? (uintptr_t)cnri_map_get(&b->index, path) : 0;
    return i ? &b->at.at[i - 1] : NULL;
}

/* The entry of a path, added if there is none; NULL: out of memory. */
static entry *make(cnri_board *b, const char *path) {
    entry *e = find(b, path);
    if (e) return e;
    cnr_id *name = cnri_push(&b->paths);
    e = name ? cnri_push(&b->at) : NULL;
    if (!e || cnri_map_set(&b->index, path, (void *)(uintptr_t)b->at.n)) return NULL;
    *name = cnri_intern(path);
    return *name ? e : NULL;
}

bool cnri_board_set(cnri_board *b, const char *path, int32_t kind, double number,
                    const char *text) {
    const cnr_id id = kind == CNRI_BOARD_TEXT ? cnri_intern(text) : 0;
    entry *e = make(b, path);
    if (!e || (kind == CNRI_BOARD_TEXT && *text && !id)) return false;
    *e = (entry){kind, number, id};
    return true;
}

int32_t cnri_board_kind(const cnri_board *b, const char *path) {
    const entry *e = find(b, path);
    return e ? e->kind : 0;
}

const char *cnri_board_at(const cnri_board *b, int32_t i, int32_t *kind) {
    if (i >= b->at.n) return NULL;
    *kind = b->at.at[i].kind;
    return cnri_name(b->paths.at[i]);
}

/* Compares two paths, for qsort. */
static int by_path(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Call when all entries are set. Sorts the paths before the digest, because scripts give tables in
 * any order. */
cnr_status cnri_board_seal(cnri_board *b, cnr_error *err) {
    const char **paths = cnri_alloc((size_t)(b->at.n + 1) * sizeof *paths);
    cnri_text all = {0};
    uint8_t digest[32];
    char hex[65];
    for (int32_t i = 0; paths && i < b->at.n; i++) paths[i] = cnri_name(b->paths.at[i]);
    if (paths) qsort(paths, (size_t)b->at.n, sizeof *paths, by_path);
    for (int32_t i = 0; paths && i < b->at.n; i++) {
        const entry *e = find(b, paths[i]);
        char number[40];
        cnri_print_double(number, sizeof number, e->number);
        cnri_text_add(&all, "%s=%d %s %s\n", paths[i], (int)e->kind, number, cnri_name(e->text));
    }
    cnri_sha256_of(all.at ? all.at : "", all.n, digest);
    cnri_hex(digest, 8, hex);
    b->digest = cnri_intern(hex);
    const bool failed = !paths || all.failed || !b->digest;
    cnri_free(paths);
    cnri_text_free(&all);
    return failed ? cnri_out_of_memory(err, "board") : CNR_OK;
}

/* ---- one by itself ---- */

int32_t cnri_board_get_count(const cnri_board *b, const char *path) {
    const entry *e = find(b, path);
    return e && e->kind == CNRI_BOARD_LIST ? (int32_t)e->number : 0;
}

bool cnri_board_get_number(const cnri_board *b, const char *path, double *out) {
    const entry *e = find(b, path);
    if (!e || e->kind != CNRI_BOARD_NUMBER) return false;
    *out = e->number;
    return true;
}

const char *cnri_board_get_text(const cnri_board *b, const char *path) {
    const entry *e = find(b, path);
    return e && e->kind == CNRI_BOARD_TEXT ? cnri_name(e->text) : NULL;
}

/* ---- in force ---- */

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
static entry look_up(const char *path) {
    pthread_mutex_lock(&lock);
    const entry *e = find(in_force, path);
    const entry copy = e ? *e : (entry){0};
    pthread_mutex_unlock(&lock);
    return copy;
}

int32_t cnri_board_count(const char *path) {
    const entry e = look_up(path);
    return e.kind == CNRI_BOARD_LIST ? (int32_t)e.number : 0;
}

int32_t cnri_board_number(const char *path, double *out) {
    const entry e = look_up(path);
    if (e.kind != CNRI_BOARD_NUMBER) return 0;
    if (out) *out = e.number;
    return 1;
}

const char *cnri_board_text(const char *path) {
    pthread_mutex_lock(&lock);
    const cnr_id digest = in_force ? in_force->digest : 0;
    pthread_mutex_unlock(&lock);
    if (path && !*path) return digest ? cnri_name(digest) : NULL;
    const entry e = look_up(path);
    return e.kind == CNRI_BOARD_TEXT ? cnri_name(e.text) : NULL;
}
