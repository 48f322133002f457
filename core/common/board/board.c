/* Boards: values by path, with a digest of all. */
#include "board/board.h"
#include <stdlib.h>
#include <string.h>

/* Implementation of cnri_board: entries in order, an index from path to entry number + 1, and the
 * digest's text. */
typedef struct board {
    cnri_board base;
    cnri_map index; /* path -> 1 + its index in `at` */
    CNRI_VEC(cnri_board_entry) at;
    CNRI_VEC(cnr_id) paths; /* the path of each entry */
    cnr_id digest;
} board;

/* The entry at a path, owned by the board; NULL: there is none, or an argument is NULL. */
static cnri_board_entry *find(const cnri_board *of, const char *path) {
    const board *b = (const board *)of;
    const uintptr_t i = b && path ? (uintptr_t)cnri_map_get(&b->index, path) : 0;
    return i ? &b->at.at[i - 1] : NULL;
}

/* Method look of cnri_board: copy of the entry at a path, all zeros if none; path "" gives the
 * digest. */
static cnri_board_entry look(const cnri_board *b, const char *path) {
    const cnri_board_entry *e = find(b, path);
    const cnri_board_entry digest = {CNRI_BOARD_TEXT, 0, ((const board *)b)->digest};
    return !*path && digest.text ? digest : e ? *e : (cnri_board_entry){0};
}

/* Method free of cnri_board: frees the entries, the index and the struct. */
static void free_board(cnri_board *of) {
    board *b = (board *)of;
    cnri_map_free(&b->index);
    cnri_vec_free(&b->at);
    cnri_vec_free(&b->paths);
    cnri_free(b);
}

cnri_board *cnri_board_new(void) {
    board *b = cnri_alloc_zero(sizeof *b);
    if (b) b->base = (cnri_board){look, free_board};
    return b ? &b->base : NULL;
}

/* The entry at a path; makes an empty one if there is none. NULL: out of memory. */
static cnri_board_entry *make(board *b, const char *path) {
    cnri_board_entry *e = find(&b->base, path);
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
    cnri_board_entry *e = make((board *)b, path);
    if (!e || (kind == CNRI_BOARD_TEXT && *text && !id)) return false;
    *e = (cnri_board_entry){kind, number, id};
    return true;
}

int32_t cnri_board_kind(const cnri_board *b, const char *path) {
    const cnri_board_entry *e = find(b, path);
    return e ? e->kind : 0;
}

/* The path of entry i, and its *kind; NULL past the end, where *kind stays. */
const char *cnri_board_at(const cnri_board *of, int32_t i, int32_t *kind) {
    const board *b = (const board *)of;
    if (i >= b->at.n) return NULL;
    *kind = b->at.at[i].kind;
    return cnri_name(b->paths.at[i]);
}

/* Compares two paths by bytes, for qsort. */
static int by_path(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the paths before the digest, because scripts give tables in any order. */
cnr_status cnri_board_seal(cnri_board *of, cnr_error *err) {
    board *b = (board *)of;
    const char **paths = cnri_alloc((size_t)(b->at.n + 1) * sizeof *paths);
    cnri_text all = {0};
    uint8_t digest[32];
    char hex[65];
    for (int32_t i = 0; paths && i < b->at.n; i++) paths[i] = cnri_name(b->paths.at[i]);
    if (paths) qsort(paths, (size_t)b->at.n, sizeof *paths, by_path);
    for (int32_t i = 0; paths && i < b->at.n; i++) {
        const cnri_board_entry *e = find(of, paths[i]);
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

int32_t cnri_board_get_count(const cnri_board *b, const char *path) {
    const cnri_board_entry *e = find(b, path);
    return e && e->kind == CNRI_BOARD_LIST ? (int32_t)e->number : 0;
}

bool cnri_board_get_number(const cnri_board *b, const char *path, double *out) {
    const cnri_board_entry *e = find(b, path);
    if (!e || e->kind != CNRI_BOARD_NUMBER) return false;
    *out = e->number;
    return true;
}

const char *cnri_board_get_text(const cnri_board *b, const char *path) {
    const cnri_board_entry *e = find(b, path);
    return e && e->kind == CNRI_BOARD_TEXT ? cnri_name(e->text) : NULL;
}
