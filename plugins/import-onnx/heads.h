/* Parts that the conversions of attention and of rotary positions share. */
#ifndef HEADS_H
#define HEADS_H

#include "onnx.h"

enum { HEADS = 1, ROWS = 2, COLUMNS = 3 }; /* axes of [batch, heads, rows, columns] */

/* ---- attention.c: nodes with few attributes ---- */

/* Input i of the node; -1: left out. */
static inline cnr_value onnx_input(const onnx_job *j, int32_t i) {
    return i < j->n_in ? j->in[i] : -1;
}
/* Adds a reshape of x to n sizes. */
cnr_value onnx_reshaped(onnx_job *j, cnr_value x, const int64_t *shape, int64_t n);
/* Adds a transpose of x. */
cnr_value onnx_swapped(onnx_job *j, cnr_value x, const int64_t *perm, int64_t n);
/* Adds an axis of size 1 to x. */
cnr_value onnx_at_axis(onnx_job *j, cnr_value x, int64_t axis);
/* Adds a cast of x; returns x if it has the type. */
cnr_value onnx_cast(onnx_job *j, cnr_value x, int32_t dtype);
/* Adds a constant number of that type. */
cnr_value onnx_number(onnx_job *j, double value, int32_t dtype);
/* Adds a constant number of the type of x. */
cnr_value onnx_number_like(onnx_job *j, double value, cnr_value x);
/* Adds a node of n inputs with an axis. */
cnr_value onnx_along(onnx_job *j, const char *op, const cnr_value *in, int32_t n, int64_t axis);
/* Adds every `step`-th element of an axis of x from `from` to `to`. */
cnr_value onnx_part(onnx_job *j, cnr_value x, int64_t axis, int64_t from, int64_t to, int64_t step);
/* Size of an axis of x; negative: not known. */
int64_t onnx_size_of(const onnx_job *j, cnr_value x, int32_t axis);
/* Float of an attribute; `fallback`: there is none. */
double onnx_float(const onnx_job *j, const char *name, double fallback);

/* ---- attention.c: the attention itself ---- */

/* One attention: the operands as [batch, heads, rows, columns], and their sizes. */
typedef struct onnx_heads {
    cnr_value q, k, v, bias;  /* bias: added to the scores; -1: none */
    cnr_value before;         /* earlier rows of k, which k has, too; -1: none */
    int64_t own, shared;      /* heads of q; of k and v, each for own / shared heads of q */
    int64_t rows, cols, size; /* of the scores (negative: open); of a head */
    double scale, cap;        /* factor of the scores; their limit, 0: none */
    int32_t dtype, packed;    /* packed: the operands had three axes */
} onnx_heads;

/* Adds the split into heads: [batch, rows, heads * columns] to [batch, heads, rows, columns]. */
cnr_value onnx_split_heads(onnx_job *j, cnr_value x, int64_t count);
/* Puts earlier rows (-1: none) before those of k and v, and reads the sizes. 0: they cannot be
 * converted, which is told. */
int onnx_heads_sizes(onnx_job *j, onnx_heads *h, cnr_value keys, cnr_value values);
/* Adds the number of rows of x, i64 [1]. */
cnr_value onnx_row_count(onnx_job *j, cnr_value x);
/* Adds the numbers of the rows of x as [rows], i64. */
cnr_value onnx_counted(onnx_job *j, cnr_value x);
/* Adds to the bias of the scores: 0 where the condition holds, `closed` elsewhere. */
void onnx_open_where(onnx_job *j, onnx_heads *h, cnr_value condition, double closed);
/* Adds `more` to the bias of the scores, h->bias. */
void onnx_add_bias(onnx_job *j, onnx_heads *h, cnr_value more);
/* Closes the columns after row i + earlier rows; lengths: the number of valid columns of each
 * sample, [batch, 1, 1, 1], the last of which belongs to the last row; -1: all. */
void onnx_causal(onnx_job *j, onnx_heads *h, cnr_value lengths);
/* Closes the columns from each sample's length on. */
void onnx_padding(onnx_job *j, onnx_heads *h, cnr_value lengths, double closed);
/* Adds all from the scores to the output, in the form of the operands, and returns it. `empty`:
 * rows without a column become 0. stage[i], or NULL: the scores after step i, see
 * `qk_matmul_output_mode`; with shared heads they have five axes. */
cnr_value onnx_heads_output(onnx_job *j, onnx_heads *h, int empty, cnr_value *stage);

/* ---- sequence.c ---- */

/* What turns rotary positions. */
typedef struct onnx_turn {
    cnr_value cosine, sine; /* [positions, columns / 2], or a table for each sample */
    cnr_value rows; /* the position of each row, [batch, rows]; -1: the tables have a row each */
    int64_t size;   /* columns that are turned; 0: all */
    int beside;     /* pairs are neighbours, else half a row apart */
} onnx_turn;
/* Adds x with rotary positions; `count`: its heads if it has three axes. -1: it cannot be
 * converted, which is told. */
cnr_value onnx_rotated(onnx_job *j, cnr_value x, int64_t count, const onnx_turn *turn);

#endif
