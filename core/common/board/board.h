/* board: makes boards, and reads one that need not be in force. */
#ifndef CNRI_BOARD_H
#define CNRI_BOARD_H

#include "host/host.h"

/* Returns an empty board, to be freed with cnri_board_free; NULL: out of memory. */
cnri_board *cnri_board_new(void);
/* Sets an entry. For a list, `number` is its length. False: out of memory. */
bool cnri_board_set(cnri_board *b, const char *path, int32_t kind, double number, const char *text);
int32_t cnri_board_kind(const cnri_board *b, const char *path); /* 0: there is no such entry */
/* The path of entry i, and its *kind; NULL past the end, where *kind stays. */
const char *cnri_board_at(const cnri_board *b, int32_t i, int32_t *kind);
/* Call when all entries are set: computes the digest. */
cnr_status cnri_board_seal(cnri_board *b, cnr_error *err);
/* Entries of this board. A NULL board has none. */
int32_t cnri_board_get_count(const cnri_board *b, const char *path);
/* Copies the number at a path to *out; false: there is none, or it is no number. */
bool cnri_board_get_number(const cnri_board *b, const char *path, double *out);
/* Returns the interned text at a path; NULL: there is none, or it is no text. */
const char *cnri_board_get_text(const cnri_board *b, const char *path);

#endif
