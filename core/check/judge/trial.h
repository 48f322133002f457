/* Memory of a trial with guard bands; inside check/ only. */
#ifndef CNRI_CHECK_TRIAL_H
#define CNRI_CHECK_TRIAL_H

#include "judge/fence.h"
#include <cnnrun/cnnrun.h>

/* Memory on the device:   | guard | bytes | guard |   Images have no guards: they have no offsets
 */
typedef struct cnri_piece {
    const cnr_device *device;
    cnr_stream *stream;
    cnr_mem whole, mem; /* mem: the part that the kernel sees */
    void *host;         /* address of mem; NULL: the device has no host memory */
    uint64_t head, bytes, total;
    uint8_t *before; /* copy of all of it as last filled */
    bool made, viewed;
} cnri_piece;

/* `at`: offset in bytes that it would have in an arena. False: it failed. */
bool cnri_piece_make(cnri_piece *p, cnr_stream *stream, const cnr_space *space, uint64_t at,
                     cnri_text *why);
/* Fills the piece with `data` (NULL: with bytes `poison`), and its guards. False: writing to the
 * device failed, see why. */
bool cnri_piece_fill(cnri_piece *p, const void *data, uint8_t poison, cnri_text *why);
/* True if the guards (and, if `bytes`, the data) are unchanged. `data` (may be NULL) gets the
 * bytes; `name` is for `why`. */
bool cnri_piece_check(cnri_piece *p, bool bytes, const char *name, void *data, cnri_text *why);
void cnri_piece_free(cnri_piece *p); /* frees it; never made: nothing */
/* Appends a failed call as text; true if it did not fail. */
bool cnri_said(cnri_text *why, const char *what, cnr_status status, const cnr_error *err);

/* One way of running a kernel. */
typedef struct cnri_way {
    uint8_t poison;
    int32_t in_place; /* the input whose memory output 0 uses; -1: none */
    int32_t axis;     /* -1: the whole output */
    int64_t begin, end;
} cnri_way;

/* A kernel with all that its calls need. */
typedef struct cnri_stage {
    cnri_trial *t;
    cnr_stream stream;
    bool open, planned, has_blob, has_workspace;
    void *state;
    cnri_piece in[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN], out[CNRI_CHECK_PORTS], blob, workspace;
    cnri_fence constant[CNRI_CHECK_PORTS + CNRI_CHECK_CHAIN]; /* the inputs for plan and prepare */
    cnri_piece load; /* memory for work that keeps a queue busy */
    /* Dimensions of the outputs before any were lowered. */
    int64_t dims[CNRI_CHECK_PORTS][CNR_MAX_RANK];
} cnri_stage;

/* overlap.c: cnr_stream.parallel of a second kind: stops items of one thread, at moments drawn by
 * chance, until another has computed others. One call at a time. */
void cnri_overlap_parallel(cnr_stream *stream, int64_t n,
                           void (*fn)(void *arg, int64_t i, int32_t thread), void *arg);

/* ask.c: sets the node as the kernel sees it, with the first `links` operators behind it,
 * without data that is computed later. */
void cnri_trial_view(cnri_trial *t, int32_t links);

/* True if the kernel reads input i in prepared form. */
static inline bool cnri_trial_prepared(const cnri_trial *t, int32_t i) {
    return i < 32 && (t->answer.prepared >> i & 1);
}

/* *width and *height in pixels of a tensor in an image class: the last dimension is a row of
 * pixels, a channel block one pixel. */
static inline void cnri_trial_image(const cnr_tensor *t, int32_t block, int64_t *width,
                                    int64_t *height) {
    const int64_t b = block > 1 ? block : 1, count = cnr_count(t);
    *width = t->rank > 0 ? t->dim[t->rank - 1] : 1;
    if (block > 1 && t->rank == 2) *width = t->dim[1] / b;
    *height = *width > 0 && count > 0 ? count / b / *width : 0;
}

#endif
