/* Copies whose source and destination are strided views of the same elements: what transposing,
 * slicing, joining, expanding and shuffling are made of. */
#ifndef STD_MOVE_H
#define STD_MOVE_H

#include "kit.h"

#define MOVE_RANK (2 * CNR_MAX_RANK)

/* Element [i0, i1 ...] goes from in_at + sum i in[] to out_at + sum i out[]; strides in elements,
 * of any sign, 0 repeats. */
typedef struct move_map {
    int32_t rank;
    int64_t in_at, out_at;
    int64_t dim[MOVE_RANK], in[MOVE_RANK], out[MOVE_RANK];
} move_map;

static inline void move_axis(move_map *m, int64_t dim, int64_t in, int64_t out) {
    m->dim[m->rank] = dim;
    m->in[m->rank] = in;
    m->out[m->rank] = out;
    m->rank++;
}

/* size: bytes of an element, 1 2 4 or 8. */
void move_copy(size_t size, const void *in, void *out, const move_map *map);

#endif
