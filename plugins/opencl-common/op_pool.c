/* max_pool and average_pool. */
#include "support.h"

#include "pool.cl.h"
#include "pool_row.cl.h"

enum { MOST_WIDE = 1024 }; /* most elements of a row in registers and on the stack */

/* What plan keeps for run: code, epilogue, window, and which pooling it is. */
typedef struct pool_state {
    const ocl_code *code;
    ocl_chain chain;
    ocl_shape shape;
    int32_t line, max, include, rows;
} pool_state;

/* Takes f32 poolings of at most three spatial axes whose windows resolve; else out tells why
 * not. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    cnr_window w;
    (void)device;
    if (!cnr_own_input(node, 0) || !ocl_plain(node)) return cnr_refuse(out, OCL_WANTS_F32);
    const char *why = ocl_host->window_resolve(node, node->inputs[0], NULL, &w);
    if (why) return cnr_refuse(out, why);
    cnr_take(node, out, 500);
    out->epilogue = ocl_chain_accepts(node, node->inputs[0]->rank, node->outputs[0]->dim);
    out->ranges = 1 << 0 | 1 << 1 | 1 << 2;
    return CNR_OK;
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    static const ocl_source single = OCL_SOURCE("common/pool.cl", pool_cl);
    static const ocl_source row = OCL_SOURCE("common/pool_row.cl", pool_row_cl);
    cnr_window w;
    ocl_plan p;
    (void)workspace;
    const char *why = ocl_host->window_resolve(node, node->inputs[0], NULL, &w);
    if (why) return ocl_host->fail(err, CNR_E_SHAPE, node->name, "%s", why);
    pool_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_shape_of(&w, node->inputs[0], node->outputs[0], 1, 0, &s->shape);
    s->line = ocl_of(device)->tune->line;
    s->max = strcmp(node->desc->name, "max_pool") == 0;
    s->include = cnr_attr_int(node, "count_include_pad") != 0;
    s->rows = ocl_of(device)->tune->rows && ocl_is_flat(&s->shape) && s->shape.in[2] <= MOST_WIDE &&
              s->shape.out[2] <= s->shape.in[2];
    ocl_plan_chain(&p, &s->chain);
    if (s->rows) ocl_plan_window(&p, &s->shape);
    if (s->rows) ocl_plan_options(&p, "-DWIDE=%d ", (int)s->shape.in[2]);
    ocl_plan_options(&p, s->max ? "-DMAX " : "-DMEAN ");
    ocl_plan_code(&p, s->rows ? &row : &single, s->rows ? "pool_row" : "pool", &s->code);
    return ocl_plan_end(&p, state);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const pool_state *s = run->state;
    const cl_int ends[4] = {(cl_int)s->shape.end[0], (cl_int)s->shape.end[1],
                            (cl_int)s->shape.end[2], s->include};
    ocl_call call;
    ocl_box box;
    ocl_box_of(run, &s->shape, &box);
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_shape_args(&call, &s->shape, &box, 0, 0, 1, 0);
    if (!s->rows) ocl_window_args(&call, &s->shape);
    ocl_arg_ints(&call, ends, 4);
    ocl_chain_args(&call, &s->chain, run->node);
    if (s->rows)
        return ocl_launch(&call, box.end[3] - box.begin[3], box.end[1] - box.begin[1],
                          box.end[0] - box.begin[0], 1, err);
    return ocl_launch(&call,
                      (box.end[2] - box.begin[2]) * (box.end[3] - box.begin[3]) *
                          (box.end[4] - box.begin[4]),
                      box.end[1] - box.begin[1], box.end[0] - box.begin[0], s->line, err);
}

OCL_KERNEL(ocl_max_pool, "max_pool_f32", "max_pool", .accepts = accepts, .plan = plan, .run = run);
OCL_KERNEL(ocl_average_pool, "average_pool_f32", "average_pool", .accepts = accepts, .plan = plan,
           .run = run);
