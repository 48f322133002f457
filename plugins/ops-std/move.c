/* Strided copies: move.h. */
#include "move.h"

/* Drops axes of size 1 and merges adjacent axes whose strides allow it on both sides. */
static void simplify(move_map *m) {
    int32_t to = 0;
    for (int32_t a = 0; a < m->rank; a++) {
        if (m->dim[a] == 1) continue;
        if (to > 0 && m->in[to - 1] == m->in[a] * m->dim[a] &&
            m->out[to - 1] == m->out[a] * m->dim[a]) {
            m->dim[to - 1] *= m->dim[a];
        } else {
            m->dim[to] = m->dim[a];
            to++;
        }
        m->in[to - 1] = m->in[a];
        m->out[to - 1] = m->out[a];
    }
    m->rank = to;
    if (to == 0) move_axis(m, 1, 1, 1);
}

/* Copies n elements of `type` with a step in either array. */
#define COPY_LINE(type) \
    do { \
        const type *from = (const type *)in + in_at; \
        type *to = (type *)out + out_at; \
        for (int64_t i = 0; i < n; i++) to[i * out_step] = from[i * in_step]; \
    } while (0)

/* Copies n elements of `size` bytes; places and steps are in elements. */
static void copy_line(size_t size, const void *in, int64_t in_at, int64_t in_step, void *out,
                      int64_t out_at, int64_t out_step, int64_t n) {
    if (in_step == 1 && out_step == 1) {
        memcpy((uint8_t *)out + (size_t)out_at * size, (const uint8_t *)in + (size_t)in_at * size,
               (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: COPY_LINE(uint8_t); return;
    case 2: COPY_LINE(uint16_t); return;
    case 4: COPY_LINE(uint32_t); return;
    default: COPY_LINE(uint64_t); return;
    }
}

void move_copy(size_t size, const void *in, void *out, const move_map *map) {
    move_map m = *map;
    int64_t index[MOVE_RANK] = {0};
    for (int32_t a = 0; a < m.rank; a++)
        if (m.dim[a] <= 0) return;
    simplify(&m);
    const int32_t last = m.rank - 1;
    int64_t from = m.in_at, to = m.out_at;
    for (;;) {
        copy_line(size, in, from, m.in[last], out, to, m.out[last], m.dim[last]);
        int32_t a = last - 1;
        for (; a >= 0; a--) {
            from += m.in[a];
            to += m.out[a];
            if (++index[a] < m.dim[a]) break;
            from -= m.in[a] * m.dim[a];
            to -= m.out[a] * m.dim[a];
            index[a] = 0;
        }
        if (a < 0) return;
    }
}
