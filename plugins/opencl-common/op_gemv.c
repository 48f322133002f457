/* dense, gemm and matmul of few rows by a constant matrix, which is read once. */
#include "op_dense.h"

#include "gemv.cl.h"

enum { MOST_ROWS = 16 };

/* Plan of a matrix times few vectors. */
typedef struct gemv_state {
    const ocl_code *code;
    ocl_chain chain;
    ocl_product p;
    int64_t samples, pitch;
    int32_t line, out;
} gemv_state;

/* 1 if the device's tune has this kernel and the product fits. */
static int takes(const cnr_device *device, const cnr_node *node, ocl_product *p) {
    return ocl_of(device)->tune->gemv_line > 0 && ocl_product_packs(node, p) && p->m <= MOST_ROWS;
}

/* Takes products of few rows; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    ocl_product p;
    if (!takes(device, node, &p))
        return cnr_refuse(out, "few rows by a constant matrix are wanted");
    out->prepared = 1 << 1;
    return ocl_product_take(node, out, 700);
}

static int64_t pitch_of(const ocl_product *p) { return cnr_round_up(p->k, 16); }

/* Sets out->bytes to the packed matrix's size; fails where the node is not taken. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    ocl_product p;
    if (!takes(device, node, &p))
        return ocl_host->fail(err, CNR_E_STATE, node->name, OCL_NO_PRODUCT);
    out->bytes = (uint64_t)(p.n * pitch_of(&p)) * sizeof(float);
    return CNR_OK;
}

/* Packs the matrix into blob; fails where the node is not taken. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    ocl_product p;
    if (!takes(device, node, &p))
        return ocl_host->fail(err, CNR_E_STATE, node->name, OCL_NO_PRODUCT);
    const float *from = node->inputs[1]->data;
    const int64_t pitch = pitch_of(&p);
    float *to = blob;
    for (int64_t j = 0; j < p.n; j++, to += pitch)
        for (int64_t k = 0; k < pitch; k++)
            to[k] = k < p.k ? from[k * p.b_step + j * p.b_column] : 0.0f;
    return CNR_OK;
}

/* Builds the code; half: weights are f16. *out receives the state. */
static cnr_status plan_as(const cnr_device *device, const cnr_node *node, void **out, int half,
                          cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/gemv.cl", gemv_cl);
    const ocl_tune *tune = ocl_of(device)->tune;
    ocl_plan p;
    gemv_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, takes(device, node, &s->p) ? NULL : OCL_NO_PRODUCT);
    s->samples = s->p.m > 4 ? 8 : s->p.m > 2 ? 4 : s->p.m;
    s->pitch = pitch_of(&s->p);
    s->line = tune->gemv_line;
    s->out = s->samples > 4 && tune->gemv_out > 2 ? 2 : tune->gemv_out; /* registers */
    ocl_plan_options(&p, "-DLINE=%d -DVW=%d -DOUT=%d -DSAMPLES=%d %s%s", (int)s->line,
                     tune->gemv_wide, (int)s->out, (int)s->samples,
                     s->p.k % tune->gemv_wide ? "" : "-DALIGNED ", half ? "-DHALF " : "");
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_code(&p, &source, "gemv", &s->code);
    return ocl_plan_end(&p, out);
}

OCL_PLAN(plan, ((void)workspace, plan_as(device, node, state, 0, err)))

OCL_PLAN(plan_half, ((void)workspace, plan_as(device, node, state, 1, err)))

/* Launches the kernel that plan compiled on the run's stream; fails if it can't be queued. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const gemv_state *s = run->state;
    const cnr_node *node = run->node;
    int64_t row[2], column[2];
    ocl_call call;
    ocl_product_range(run, &s->p, row, column);
    const int64_t range[8] = {row[0], row[1], column[0], column[1]};
    const int64_t shape[4] = {s->p.k, s->p.n, s->p.c != NULL, s->pitch};
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &node->inputs[0]->mem);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, s->p.c ? &node->inputs[2]->mem : &node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, range, 8);
    ocl_arg_longs(&call, shape, 4);
    ocl_chain_args(&call, &s->chain, node);
    return ocl_launch(&call, cnr_div_up(column[1] - column[0], s->out) * s->line,
                      cnr_div_up(row[1] - row[0], s->samples), 1, s->line, err);
}

/* Defines the kernel of operator op_name for products of few rows. */
#define ROW(op_name) \
    OCL_KERNEL(ocl_##op_name##_gemv, #op_name "_f32_gemv", #op_name, .accepts = accepts, \
               .prepare_size = prepare_size, .prepare = prepare, .plan = plan, .run = run);
ROW(dense)
ROW(gemm)
ROW(matmul)
OCL_HALF_KERNEL(ocl_dense_gemv_half, ocl_dense_gemv, "dense_f16_gemv", "dense", plan_half, run)
OCL_HALF_KERNEL(ocl_gemm_gemv_half, ocl_gemm_gemv, "gemm_f16_gemv", "gemm", plan_half, run)
