/* Guarded host memory; inside check/ only. */
#ifndef CNRI_CHECK_FENCE_H
#define CNRI_CHECK_FENCE_H

#include "judge/judge.h"

/* Data at the end of a page behind which nothing can be accessed. */
typedef struct cnri_fence {
    uint8_t *map, *first, *data; /* first: begin of the canary before data */
    size_t all;
    uint64_t bytes;
    uint8_t *before; /* copy of data as last filled */
} cnri_fence;

/* Maps `bytes` bytes between pages that can't be accessed and bytes of a known pattern; false: out
 * of memory. */
bool cnri_fence_make(cnri_fence *f, uint64_t bytes, uint32_t alignment);
/* Fills with data; NULL: with the byte `poison`. */
void cnri_fence_fill(cnri_fence *f, const void *data, uint8_t poison);
/* True if the canary (and, if `bytes`, the data) is unchanged. `name` is for `why`. */
bool cnri_fence_check(const cnri_fence *f, bool bytes, const char *name, cnri_text *why);
void cnri_fence_free(cnri_fence *f); /* unmaps it; never made: nothing */

#endif
