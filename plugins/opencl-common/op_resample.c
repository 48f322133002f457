/* resize in the modes that weigh several inputs along each axis: cubic, with antialiasing, linear
 * of volumes. op_move.c has the others. */
#include "support.h"

#include "resample.cl.h"
#include "resize_node.h"

enum { AXES = 3, MOST = 1 << 24 }; /* largest place that a float holds exactly */

/* The last three axes; missing ones have size 1. */
typedef struct resample_state {
    const ocl_code *code;
    int64_t in[AXES], out[AXES], taps[AXES], planes;
    int32_t line;
} resample_state;

/* Reads the sizes; 0: not for this kernel. */
static int fits(const cnr_node *node, resize_plan *p, resample_state *s) {
    const cnr_tensor *x = cnr_own_input(node, 0), *y = node->outputs[0];
    if (!x || x->rank < 1 || !cnr_is_plain(x, 1u << CNR_f32) || !cnr_is_plain(y, 1u << CNR_f32))
        return 0;
    if (cnr_count(x) < 1 || cnr_count(y) < 1 || cnr_count(x) >= MOST || cnr_count(y) >= MOST)
        return 0;
    if (!resize_plan_of(ocl_host, node, p)) return 0;
    const int32_t outer = (int32_t)cnr_max(0, x->rank - AXES);
    s->planes = cnr_span(x, 0, outer);
    for (int32_t a = 0; a < outer; a++)
        if (!resize_stays(p, x, a)) return 0;
    for (int32_t i = 0; i < AXES; i++) {
        const int32_t a = x->rank - AXES + i;
        s->in[i] = a < 0 ? 1 : x->dim[a];
        s->out[i] = a < 0 ? 1 : y->dim[a];
        s->taps[i] = a < 0 ? 1 : resize_taps(p, a, x->dim[a]);
    }
    return 1;
}

/* Numbers of the table: a place and a weight for each tap. */
static int64_t table_size(const resample_state *s) {
    int64_t n = 0;
    for (int32_t i = 0; i < AXES; i++) n += 2 * s->out[i] * s->taps[i];
    return n;
}

/* Takes resize of the last three axes by constants; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    resize_plan p;
    resample_state s;
    (void)device;
    if (!fits(node, &p, &s))
        return cnr_refuse(out,
                          "f32, constant factors of the last three axes and no region are wanted");
    cnr_take(node, out, 290);
    for (int32_t i = 1; i < cnr_own_inputs(node) && i < 32; i++)
        if (node->inputs[i]) out->prepared |= 1u << i;
    return CNR_OK;
}

/* Sets out->bytes to those of the table. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    resize_plan p;
    resample_state s;
    (void)device, (void)err;
    if (fits(node, &p, &s)) out->bytes = (uint64_t)table_size(&s) * sizeof(float);
    return CNR_OK;
}

/* Fills the part of axis i (a of the tensor; below 0: missing) of the table. */
static void fill(const resize_plan *p, const resample_state *s, int32_t i, int32_t a,
                 resize_tap *room, float *table) {
    int64_t step = 1;
    for (int32_t k = i + 1; k < AXES; k++) step *= s->in[k];
    for (int64_t o = 0; o < s->out[i]; o++) {
        if (a < 0) room[0] = (resize_tap){0, 1};
        else resize_fill(p, a, o, s->in[i], step, s->taps[i], room);
        for (int64_t k = 0; k < s->taps[i]; k++, table += 2) {
            table[0] = (float)room[k].at;
            table[1] = (float)room[k].weight;
        }
    }
}

/* Fills the table of all axes. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    resize_plan p;
    resample_state s;
    float *table = blob;
    (void)device;
    if (!fits(node, &p, &s)) return CNR_OK; /* impossible: the node was accepted */
    const int64_t most = cnr_max(s.taps[0], cnr_max(s.taps[1], s.taps[2]));
    resize_tap *room = ocl_host->alloc((size_t)most * sizeof *room);
    if (!room) return ocl_host->fail(err, CNR_E_MEMORY, node->name, "no memory for its taps");
    for (int32_t i = 0; i < AXES; i++) {
        fill(&p, &s, i, node->inputs[0]->rank - AXES + i, room, table);
        table += 2 * s.out[i] * s.taps[i];
    }
    ocl_host->free(room);
    return CNR_OK;
}

/* Finds the device code and keeps the sizes in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/resample.cl", resample_cl);
    resize_plan sizes;
    ocl_plan p;
    (void)workspace;
    resample_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    fits(node, &sizes, s);
    s->line = ocl_of(device)->tune->line;
    ocl_plan_code(&p, &source, "resample", &s->code);
    return ocl_plan_end(&p, state);
}

/* Queues the code over all outputs. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const resample_state *s = run->state;
    const int64_t in[4] = {s->in[0], s->in[1], s->in[2]};
    const int64_t out[4] = {s->out[0], s->out[1], s->out[2]};
    const int64_t taps[4] = {s->taps[0], s->taps[1], s->taps[2]};
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, in, 4);
    ocl_arg_longs(&call, out, 4);
    ocl_arg_longs(&call, taps, 4);
    return ocl_launch(&call, out[0] * out[1] * out[2], s->planes, 1, s->line, err);
}

#define RESAMPLE(symbol, op_name) \
    OCL_KERNEL(symbol, op_name "_f32_taps", op_name, .accepts = accepts, \
               .prepare_size = prepare_size, .prepare = prepare, .plan = plan, .run = run)
RESAMPLE(ocl_resize_taps, "resize");
RESAMPLE(ocl_upsample_taps, "upsample");
