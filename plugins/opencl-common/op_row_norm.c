/* layer, instance and group normalisation: rows of consecutive elements by their own moments. */
#include "support.h"

#include "row_norm.cl.h"
#include "shapes.h"

enum { LINE = 128, PIECE = 2048, MOST_PIECES = 64 }; /* PIECE: elements at least, of a long row */

/* Element i of a row takes number i / each % n of an operand. */
typedef struct row_operand {
    int64_t each, n;
} row_operand;

/* What plan keeps for run: codes, epilogue and sizes of the rows. */
typedef struct row_norm_state {
    const ocl_code *code, *moments; /* moments: NULL where a row is not cut */
    ocl_chain chain;
    /* elements of a row; steps as row_norm.cl has them; rows in all */
    int64_t n, rows, step, count;
    row_operand operand[2];
    int32_t line, group; /* group: work-items a row or piece; 0: rows are work-items */
    int64_t cut, piece;  /* pieces of a row, elements of a piece */
    int32_t centred;     /* 0: RMS normalisation */
} row_norm_state;

/* Sizes of a layer or RMS normalisation into *s; 0: it is not one that rows can do. */
static int layer_shape(const cnr_node *node, const cnr_tensor *x, row_norm_state *s) {
    const int32_t axis = shape_axis(cnr_attr_int(node, "axis"), x->rank);
    if (axis < 0 || node->n_outputs != 1) return 0;
    s->n = cnr_span(x, axis, x->rank);
    s->rows = 1;
    for (int32_t i = 0; i < 2; i++) {
        const cnr_tensor *t = cnr_own_input(node, 1 + i);
        s->operand[i] = (row_operand){1, 1};
        if (t &&
            !shape_stretch(t, x->rank - axis, x->dim + axis, &s->operand[i].each, &s->operand[i].n))
            return 0;
    }
    return 1;
}

/* Sizes of a normalisation by groups into *s; of instance_normalization each channel is a group. 0:
 * not one that rows can do. */
static int group_shape(const cnr_node *node, const cnr_tensor *x, row_norm_state *s) {
    const cnr_tensor *scale = cnr_own_input(node, 1), *shift = cnr_own_input(node, 2);
    const int grouped = strcmp(node->desc->name, "group_normalization") == 0;
    if (x->rank < 2 || !scale || !shift || cnr_count(scale) != cnr_count(shift)) return 0;
    s->rows = grouped ? cnr_attr_int(node, "num_groups") : x->dim[1];
    if (s->rows < 1 || cnr_count(scale) % s->rows) return 0;
    s->n = x->dim[1] / s->rows * cnr_span(x, 2, x->rank);
    s->step = cnr_count(scale) / s->rows;
    for (int32_t i = 0; i < 2; i++)
        s->operand[i] = (row_operand){s->n / cnr_max(1, s->step), s->step};
    return 1;
}

/* Sizes of the node's rows into *s; 0: this kernel cannot do the node. */
static int shape_of(const cnr_node *node, row_norm_state *s) {
    const cnr_tensor *x = cnr_own_input(node, 0);
    if (!x || x->rank < 1 || !ocl_plain(node)) return 0;
    const int is_layer = strcmp(node->desc->name, "layer_normalization") == 0;
    if (!(is_layer ? layer_shape : group_shape)(node, x, s)) return 0;
    s->centred = !is_layer || cnr_attr_int(node, "centred");
    s->count = s->n > 0 ? cnr_count(x) / s->n : 0;
    return s->n > 0;
}

/* Takes f32 normalisations whose rows shape_of can read; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    row_norm_state s = {.n = 0};
    const cnr_tensor *y = node->outputs[0];
    (void)device;
    if (!shape_of(node, &s))
        return cnr_refuse(out, "dense f32, one output, and a scale along one stretch of axes are "
                               "wanted");
    cnr_take(node, out, 500);
    out->epilogue = ocl_chain_accepts(node, y->rank, y->dim);
    if (cnr_span(y, 1, y->rank) % s.n == 0) out->ranges = 1 << 0;
    return CNR_OK;
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/row_norm.cl", row_norm_cl);
    const ocl_tune *tune = ocl_of(device)->tune;
    ocl_plan p;
    row_norm_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, shape_of(node, s) ? NULL : "not for this kernel");
    s->line = tune->line;
    s->group = tune->gemv_line > 1 && s->n >= 32 ? LINE : 0;
    if (s->group) ocl_plan_options(&p, "-DLINE=%d ", LINE);
    ocl_plan_chain(&p, &s->chain);
    s->piece = cnr_max(PIECE, cnr_div_up(s->n, MOST_PIECES));
    s->cut = s->group && s->centred && s->count < 2 * (int64_t)ocl_of(device)->found->units
                 ? cnr_div_up(s->n, s->piece)
                 : 1;
    if (s->cut > 1) {
        ocl_plan_options(&p, "-DCUT=%d ", (int)s->cut);
        ocl_plan_code(&p, &source, "row_moments", &s->moments);
        workspace->bytes = (uint64_t)(s->count * s->cut) * 2 * sizeof(float);
    }
    ocl_plan_code(&p, &source, s->moments ? "row_scale" : "row_norm", &s->code);
    return ocl_plan_end(&p, state);
}

/* Begins a call of `code` for the rows [first, end): their tensors and sizes. */
static void begin(ocl_call *call, const cnr_run *run, const ocl_code *code, int64_t first,
                  int64_t end) {
    const row_norm_state *s = run->state;
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *scale = cnr_own_input(node, 1);
    const cnr_tensor *shift = cnr_own_input(node, 2);
    const int64_t shape[8] = {first,   end,
                              s->n,    s->rows,
                              s->step, (scale ? 1 : 0) | (shift ? 2 : 0) | (s->centred ? 0 : 4),
                              s->piece};
    const int64_t by[4] = {s->operand[0].each, s->operand[0].n, s->operand[1].each,
                           s->operand[1].n};
    const union {
        cl_float f;
        cl_int i;
    } epsilon = {(cl_float)cnr_attr_float(node, "epsilon")};
    ocl_begin(call, run->stream, code);
    ocl_arg_buffer(call, &x->mem);
    ocl_arg_buffer(call, scale ? &scale->mem : &x->mem);
    ocl_arg_buffer(call, shift ? &shift->mem : &x->mem);
    ocl_arg_buffer(call, &run->outputs[0]->mem);
    ocl_arg_buffer(call, s->moments ? run->workspace : &run->outputs[0]->mem);
    ocl_arg_longs(call, shape, 8);
    ocl_arg_longs(call, by, 4);
    ocl_arg_ints(call, &epsilon.i, 1);
    ocl_chain_args(call, &s->chain, node);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const row_norm_state *s = run->state;
    const int64_t samples = run->node->inputs[0]->dim[0], each = samples ? s->count / samples : 0;
    const int64_t first = run->range_axis < 0 ? 0 : run->range_begin * each;
    const int64_t end = run->range_axis < 0 ? s->count : run->range_end * each;
    const int64_t groups = (end - first) * s->cut;
    ocl_call call;
    if (s->moments) {
        begin(&call, run, s->moments, first, end);
        CNR_TRY(ocl_launch(&call, groups * s->group, 1, 1, s->group, err));
    }
    begin(&call, run, s->code, first, end);
    return ocl_launch(&call, groups * (s->group ? s->group : 1), 1, 1,
                      s->group ? s->group : s->line, err);
}

/* Registers the normalisation kernel of operator op_name. */
#define ROW(symbol, op_name) \
    OCL_KERNEL(symbol, op_name "_f32", op_name, .accepts = accepts, .plan = plan, .run = run);
ROW(ocl_layer_normalization, "layer_normalization")
ROW(ocl_instance_normalization, "instance_normalization")
ROW(ocl_group_normalization, "group_normalization")
