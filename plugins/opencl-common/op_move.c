/* Operators that only move elements (transpose, slice, gather, pad, shuffles, nearest resize),
 * and linear resize. The operator's own reference, run on elements that hold their own index,
 * tells where each output comes from. So one kernel serves all, and attributes are read in one
 * place only. */
#include "support.h"

#include "move.cl.h"

#include <math.h>

enum { MOST = 1 << 24, MOST_OUTPUTS = 16 }; /* largest index that a float holds exactly */

/* What plan keeps for run: the device code of each output, or one code that moves between whole
 * lines. */
typedef struct move_state {
    const ocl_code *code[MOST_OUTPUTS];
    int32_t line, between;
} move_state;

static const char *const movers[] = {"transpose",
                                     "slice",
                                     "split",
                                     "channel_shuffle",
                                     "depth_to_space",
                                     "space_to_depth",
                                     "crop",
                                     "expand",
                                     "tile",
                                     "resize",
                                     "upsample",
                                     "reorg",
                                     "gather",
                                     "gather_nd",
                                     "gather_elements",
                                     "pad",
                                     "trilu"};

/* 1: the word attribute `name` of the node is `word`. */
static int word_is(const cnr_node *node, const char *name, const char *word) {
    const cnr_attr *a = cnr_attr_find(node, name);
    const char *const *choices = NULL;
    for (int32_t i = 0; i < node->desc->n_attrs; i++)
        if (strcmp(node->desc->attrs[i].name, name) == 0) choices = node->desc->attrs[i].choices;
    return a && choices && strcmp(choices[a->i], word) == 0;
}

/* 1: the node is a resize or upsample. */
static int is_resize(const cnr_node *node) {
    return strcmp(node->desc->name, "resize") == 0 || strcmp(node->desc->name, "upsample") == 0;
}

/* 0: not for this kernel; 1: it moves; 2: it lies between, along the last two axes. */
static int kind_of(const cnr_node *node) {
    const cnr_tensor *x = cnr_own_input(node, 0), *y = node->outputs[0];
    int known = 0;
    for (size_t i = 0; i < sizeof movers / sizeof movers[0]; i++)
        known |= strcmp(node->desc->name, movers[i]) == 0;
    if (!known || !CNR_HAS(node->desc, reference) || !x || node->n_outputs > MOST_OUTPUTS) return 0;
    for (int32_t i = -1; i < node->n_outputs; i++) {
        const cnr_tensor *t = i < 0 ? x : node->outputs[i];
        if (!t || !cnr_is_plain(t, 1u << CNR_f32) || cnr_count(t) <= 0 || cnr_count(t) >= MOST)
            return 0;
    }
    if (!ocl_rest_is_constant(node)) return 0;
    if (!is_resize(node)) return 1;
    if (word_is(node, "coordinate_transformation_mode", "tf_crop_and_resize")) return 0;
    if (word_is(node, "mode", "nearest")) return 1;
    if (word_is(node, "mode", "cubic") || cnr_attr_int(node, "antialias") != 0 || x->rank < 3)
        return 0;
    for (int32_t i = 0; i < x->rank - 2; i++)
        if (x->dim[i] != y->dim[i]) return 0;
    return 2;
}

/* Takes nodes that only move f32 elements, by constants; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    if (!kind_of(node)) return cnr_refuse(out, "it does not only move f32 elements, by constants");
    cnr_take(node, out, 300);
    for (int32_t i = 1; i < cnr_own_inputs(node) && i < 32; i++)
        if (node->inputs[i]) out->prepared |= 1u << i;
    return CNR_OK;
}

/* Elements of all outputs together, as the operator's shapes say. */
static int64_t outputs_of(const cnr_node *node) {
    int64_t n = 0;
    for (int32_t i = 0; i < node->n_outputs; i++) n += cnr_count(node->outputs[i]);
    return n;
}

/* Method prepare_size: bytes of the packed weights; 0: none. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const cnr_tensor *y = node->outputs[0];
    (void)device, (void)err;
    if (kind_of(node) == 2)
        out->bytes = (uint64_t)(y->dim[y->rank - 1] + y->dim[y->rank - 2]) * 2 * sizeof(float);
    else out->bytes = (uint64_t)outputs_of(node) * 4 + sizeof(float); /* and what is added */
    return CNR_OK;
}

/* ---- asking the reference ---- */

typedef struct question { /* a copy of the node with data of our own */
    cnr_node node;
    cnr_tensor x, y[MOST_OUTPUTS];
    const cnr_tensor *inputs[32];
    cnr_tensor *outputs[MOST_OUTPUTS];
    float *room;
    void *work;
} question;

/* Asks for the room that the reference needs in q, with input elements that are their own
 * numbers. */
static cnr_status begin(question *q, const cnr_node *node, cnr_error *err) {
    const int64_t in = cnr_count(node->inputs[0]);
    const uint64_t work =
        CNR_HAS(node->desc, reference_workspace) ? node->desc->reference_workspace(node) : 0;
    q->node = *node;
    q->node.inputs = q->inputs;
    q->node.outputs = (const cnr_tensor *const *)q->outputs;
    q->node.n_inputs = cnr_own_inputs(node);
    q->node.n_epilogue = 0;
    q->x = *node->inputs[0];
    for (int32_t i = 0; i < q->node.n_inputs; i++) q->inputs[i] = node->inputs[i];
    q->inputs[0] = &q->x;
    q->room = ocl_host->alloc((size_t)(in + outputs_of(node)) * sizeof *q->room);
    q->work = ocl_host->alloc((size_t)work + 1);
    if (!q->room || !q->work)
        return ocl_host->fail(err, CNR_E_MEMORY, node->name, "no memory for its places");
    q->x.data = q->room;
    float *at = q->room + in;
    for (int32_t i = 0; i < node->n_outputs; i++) {
        q->y[i] = *node->outputs[i];
        q->y[i].data = at;
        q->outputs[i] = &q->y[i];
        at += cnr_count(&q->y[i]);
    }
    return CNR_OK;
}

/* Runs the operator's reference on q's numbered input, so that q's outputs tell where each
 * element comes from. */
static cnr_status ask(question *q, cnr_error *err) {
    const cnr_run run = {.size = sizeof run,
                         .range_axis = -1,
                         .node = &q->node,
                         .outputs = q->outputs,
                         .workspace_data = q->work};
    return q->node.desc->reference(&run, err);
}

/* Frees the room and workspace that `begin` allocated. */
static void end(question *q) {
    ocl_host->free(q->room);
    ocl_host->free(q->work);
}

/* Finds, along an axis, the two inputs of each output of a linear resize from a ramp, and their
 * weights from a comb. */
static cnr_status lines(question *q, int32_t axis, float *table, cnr_error *err) {
    const cnr_tensor *x = &q->x, *y = &q->y[0];
    const int64_t n = y->dim[axis], inner = cnr_span(x, axis + 1, x->rank),
                  step = cnr_span(y, axis + 1, y->rank);
    const float *answer = y->data;
    for (int32_t comb = 0; comb < 2; comb++) {
        for (int64_t i = 0; i < cnr_count(x); i++) {
            const int64_t k = i / inner % x->dim[axis];
            q->room[i] = (float)(comb ? k % 2 : k);
        }
        CNR_TRY(ask(q, err));
        for (int64_t i = 0; i < n; i++) {
            const float v = answer[i * step];
            if (!comb) table[2 * i] = floorf(v);
            else table[2 * i + 1] = fmodf(table[2 * i], 2) == 0 ? v : 1 - v;
        }
    }
    return CNR_OK;
}

/* Fills `table`: for each output element the index of its input; negative for elements that the
 * operator adds, whose values follow the table. Added elements are those that do not change when
 * all inputs do. */
static cnr_status places(question *q, int64_t n, int32_t *table, cnr_error *err) {
    const int64_t in = cnr_count(&q->x);
    const float *answer = q->room + in;
    float added = 0;
    for (int64_t i = 0; i < in; i++) q->room[i] = (float)i;
    CNR_TRY(ask(q, err));
    for (int64_t i = 0; i < n; i++) memcpy(&table[i], &answer[i], sizeof answer[i]);
    for (int64_t i = 0; i < in; i++) q->room[i] = (float)(i + 1);
    CNR_TRY(ask(q, err));
    for (int64_t i = 0; i < n; i++) {
        float before;
        memcpy(&before, &table[i], sizeof before);
        table[i] = answer[i] > before ? (int32_t)before : -1;
        if (table[i] < 0) added = answer[i];
    }
    memcpy(&table[n], &added, sizeof added);
    return CNR_OK;
}

/* Method prepare: packs the node's weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    question *q = ocl_host->alloc(sizeof *q);
    const cnr_tensor *y = node->outputs[0];
    (void)device;
    if (!q) return ocl_host->fail(err, CNR_E_MEMORY, node->name, "no memory for its places");
    memset(q, 0, sizeof *q);
    cnr_status status = begin(q, node, err);
    if (status == CNR_OK && kind_of(node) == 2) {
        float *rows = blob, *columns = rows + 2 * y->dim[y->rank - 2];
        status = lines(q, y->rank - 2, rows, err);
        if (status == CNR_OK) status = lines(q, y->rank - 1, columns, err);
    } else if (status == CNR_OK) {
        status = places(q, outputs_of(node), blob, err);
    }
    end(q);
    ocl_host->free(q);
    return status;
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/move.cl", move_cl);
    ocl_plan p;
    (void)workspace;
    move_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    s->line = ocl_of(device)->tune->line;
    s->between = kind_of(node) == 2;
    for (int32_t i = 0; i < node->n_outputs; i++)
        ocl_plan_code(&p, &source, s->between ? "move_between" : "move_by_table", &s->code[i]);
    return ocl_plan_end(&p, state);
}

/* Queues the move between whole lines of x and y, without a table. */
static cnr_status run_between(const cnr_run *run, const move_state *s, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0], *y = run->outputs[0];
    const int32_t r = x->rank;
    const int64_t in[4] = {x->dim[r - 2], x->dim[r - 1]}, out[4] = {y->dim[r - 2], y->dim[r - 1]};
    ocl_call call;
    ocl_begin(&call, run->stream, s->code[0]);
    ocl_arg_buffer(&call, &x->mem);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, &y->mem);
    ocl_arg_longs(&call, in, 4);
    ocl_arg_longs(&call, out, 4);
    return ocl_launch(&call, out[0] * out[1], cnr_span(y, 0, r - 2), 1, s->line, err);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const move_state *s = run->state;
    cnr_mem table = *run->blob;
    int64_t behind = outputs_of(run->node);
    if (s->between) return run_between(run, s, err);
    for (int32_t i = 0; i < run->node->n_outputs; i++) {
        const int64_t n = cnr_count(run->outputs[i]);
        ocl_call call;
        ocl_begin(&call, run->stream, s->code[i]);
        ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
        ocl_arg_buffer(&call, &table);
        ocl_arg_buffer(&call, &run->outputs[i]->mem);
        ocl_arg_int(&call, n);
        ocl_arg_int(&call, behind);
        CNR_TRY(ocl_launch(&call, n, 1, 1, s->line, err));
        table.offset += (uint64_t)n * 4;
        behind -= n;
    }
    return CNR_OK;
}

OCL_KERNEL(ocl_move, "move_f32", CNR_ANY_OP, .accepts = accepts, .prepare_size = prepare_size,
           .prepare = prepare, .plan = plan, .run = run);
