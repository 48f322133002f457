/* Strided copies: source and destination are strided views of the same elements. Used by transpose,
 * slice, concat, expand, shuffle. */
#ifndef STD_MOVE_H
#define STD_MOVE_H

#include "ops_kit.h"

#define MOVE_RANK (2 * CNR_MAX_RANK)

/* Element [i0, i1 ...] goes from in_at + sum i in[] to out_at + sum i out[]; strides in elements,
 * of any sign, 0 repeats. */
typedef struct move_map {
    int32_t rank;
    int64_t in_at, out_at;
    int64_t dim[MOVE_RANK], in[MOVE_RANK], out[MOVE_RANK];
} move_map;

/* Adds an axis of `dim` places to the map, with its element steps in input and output. */
static inline void move_axis(move_map *m, int64_t dim, int64_t in, int64_t out) {
    m->dim[m->rank] = dim;
    m->in[m->rank] = in;
    m->out[m->rank] = out;
    m->rank++;
}

/* Restricts the map to [begin, end) of `axis`. */
static inline void move_limit(move_map *m, int32_t axis, int64_t begin, int64_t end) {
    m->in_at += begin * m->in[axis];
    m->out_at += begin * m->out[axis];
    m->dim[axis] = end - begin;
}
/* Restricts the map to the run's range; the first axes of the map must be the output's. */
static inline void move_run_range(move_map *m, const cnr_run *run) {
    if (run->range_axis >= 0) move_limit(m, run->range_axis, run->range_begin, run->range_end);
}

/* size: bytes of an element: 1, 2, 4 or 8. */
void move_copy(size_t size, const void *in, void *out, const move_map *map);

/* The perm of a transpose without negative entries; infer has checked it. */
void move_perm(const cnr_node *node, int32_t rank, int32_t *perm);
/* start and step of a slice along each axis of its input, with 1; 0: they are not known. */
int move_slice(const cnr_node *node, int64_t *start, int64_t *step);

#endif
