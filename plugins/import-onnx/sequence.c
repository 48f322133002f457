/* Converts rotary positions and recurrent layers into simpler nodes. */
#include "heads.h"

#include <strings.h>

/* ---- rotary positions ---- */

/* Adds the cosines or sines of each row, with an axis for the heads. */
static cnr_value angles(onnx_job *j, const onnx_turn *turn, cnr_value table, int64_t axis) {
    if (turn->rows >= 0) table = onnx_along(j, "gather", (cnr_value[]){table, turn->rows}, 2, 0);
    return onnx_at_axis(j, table, axis);
}

/* Adds x with pairs of columns turned by the angles; the pairs are neighbours, or lie half a row
 * apart. */
static cnr_value turned(onnx_job *j, cnr_value x, const onnx_turn *turn, int64_t size,
                        int64_t axis) {
    const int step = turn->beside ? 2 : 1;
    const cnr_value a = onnx_part(j, x, COLUMNS, 0, turn->beside ? size : size / 2, step);
    const cnr_value b = onnx_part(j, x, COLUMNS, turn->beside ? 1 : size / 2, size, step);
    const cnr_value cosine = angles(j, turn, turn->cosine, axis);
    const cnr_value sine = angles(j, turn, turn->sine, axis);
    cnr_value both[] = {onnx_step2(j, "sub", onnx_step2(j, "mul", a, cosine),
                                   onnx_step2(j, "mul", b, sine)),
                        onnx_step2(j, "add", onnx_step2(j, "mul", a, sine),
                                   onnx_step2(j, "mul", b, cosine))};
    if (!turn->beside) return onnx_along(j, "concat", both, 2, COLUMNS);
    for (int i = 0; i < 2; i++) both[i] = onnx_at_axis(j, both[i], COLUMNS + 1);
    return onnx_reshaped(j, onnx_along(j, "concat", both, 2, COLUMNS + 1),
                         (int64_t[]){0, 0, 0, size}, 4);
}

cnr_value onnx_rotated(onnx_job *j, cnr_value x, int64_t count, const onnx_turn *turn) {
    const cnr_tensor *t = imp_type(&j->net->imp, x);
    if (!t || (t->rank != 3 && t->rank != 4) || (t->rank == 3 && count < 1))
        return onnx_problem(j, "wants four axes, or three and num_heads%s", ""), -1;
    const int packed = t->rank == 3;
    const int64_t whole = packed ? t->dim[2] / count : t->dim[3];
    const int64_t size = turn->size ? turn->size : whole;
    if (whole < 1 || size > whole || size < 2 || size % 2)
        return onnx_problem(j, "the size of a head is unknown, odd or too small%s", ""), -1;
    if (packed) x = onnx_reshaped(j, x, (int64_t[]){0, 0, count, whole}, 4);
    const cnr_value part = size < whole ? onnx_part(j, x, COLUMNS, 0, size, 1) : x;
    cnr_value y = turned(j, part, turn, size, packed ? 2 : 1);
    if (size < whole) {
        const cnr_value rest = onnx_part(j, x, COLUMNS, size, whole, 1);
        y = onnx_along(j, "concat", (cnr_value[]){y, rest}, 2, COLUMNS);
    }
    return packed ? onnx_reshaped(j, y, (int64_t[]){0, 0, count * whole}, 3) : y;
}

/* RotaryEmbedding of operator set 23: its algorithm is given in ONNX's text of the operator. */
void onnx_rotary(onnx_job *j) {
    if (j->n_in < 3) return onnx_problem(j, "cosines and sines are missing%s", "");
    const onnx_turn turn = {.cosine = j->in[1],
                            .sine = j->in[2],
                            .rows = onnx_input(j, 3),
                            .size = onnx_int(j, "rotary_embedding_dim", 0),
                            .beside = onnx_int(j, "interleaved", 0) != 0};
    j->out[0] = onnx_rotated(j, j->in[0], onnx_int(j, "num_heads", 0), &turn);
    j->done = 1;
}

/* ---- recurrent layers ---- */

/* Gives the outputs back with the batch first. */
static void batch_first(onnx_job *j) {
    static const int64_t all[] = {2, 0, 1, 3}, last[] = {1, 0, 2};
    for (int32_t i = 0; i < j->n_out; i++)
        if (j->out[i] >= 0 && j->node->output[i][0])
            j->out[i] =
                i ? onnx_swapped(j, j->out[i], last, 3) : onnx_swapped(j, j->out[i], all, 4);
}

/* Accepts the default activations only, also if they are written out. */
void onnx_recurrent(onnx_job *j) {
    static const char *const usual[] = {"sigmoid", "tanh", "tanh"};
    static const int64_t turn[] = {1, 0, 2};
    const Onnx__AttributeProto *list = onnx_proto(j, "activations");
    const size_t from = strcmp(j->op, "rnn") == 0, n = strcmp(j->op, "lstm") == 0 ? 3 : 2 - from;
    for (size_t i = 0; list && i < list->n_strings; i++) {
        const char *name = onnx_text(j, list->strings[i]);
        if (name && strcasecmp(name, usual[from + i % n]) != 0)
            onnx_problem(j, "activation %s is not supported", name);
    }
    if (!onnx_int(j, "layout", 0)) return;
    const int32_t turns[] = {0, 5, 6}; /* x and the first states */
    for (int i = 0; i < 3; i++)
        if (onnx_input(j, turns[i]) >= 0)
            j->in[turns[i]] = onnx_swapped(j, j->in[turns[i]], turn, 3);
    j->after = batch_first;
}
