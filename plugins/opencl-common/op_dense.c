/* dense, gemm and matmul: a constant matrix packed in a buffer or an image, or all as stored. */
#include "op_dense.h"

#include "dense_packed.cl.h"
#include "matrix.cl.h"

/* Reads the product of a dense layer. 0: it is none that is taken. */
static int dense_product(const cnr_node *node, ocl_product *p) {
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    if (weight->rank != 2 || x->rank < 1 || cnr_span(x, 1, x->rank) != weight->dim[1]) return 0;
    p->m = x->dim[0];
    p->k = p->a_row = p->b_column = weight->dim[1];
    p->n = weight->dim[0];
    p->a_step = p->b_step = p->c_column = 1;
    p->c = cnr_own_input(node, 2);
    return !p->c || cnr_count(p->c) == p->n;
}

/* Fills *p with the product of gemm. 0: it is none that is taken. */
static int gemm_product(const cnr_node *node, ocl_product *p) {
    const cnr_tensor *a = cnr_own_input(node, 0), *b = cnr_own_input(node, 1);
    const cnr_tensor *c = cnr_own_input(node, 2);
    const int ta = cnr_attr_int(node, "transA") != 0, tb = cnr_attr_int(node, "transB") != 0;
    if (a->rank != 2 || b->rank != 2 || (c && c->rank > 2)) return 0;
    p->m = a->dim[ta ? 1 : 0];
    p->k = a->dim[ta ? 0 : 1];
    p->n = b->dim[tb ? 0 : 1];
    p->a_row = ta ? 1 : p->k;
    p->a_step = ta ? p->m : 1;
    p->b_column = tb ? p->k : 1;
    p->b_step = tb ? 1 : p->n;
    p->alpha = cnr_attr_float(node, "alpha");
    p->beta = cnr_attr_float(node, "beta");
    p->c = c;
    if (c && c->rank > 0 && c->dim[c->rank - 1] != 1) p->c_column = 1;
    if (c && c->rank == 2 && c->dim[0] != 1) p->c_row = c->dim[1];
    return 1;
}

/* 1 if the operand's leading axes are all the output's, or all 1; *step: elements between its
 * matrices, 0: one matrix for all. */
static int batch_of(const cnr_tensor *t, const cnr_tensor *y, int64_t batch, int64_t *step) {
    const int64_t own = cnr_span(t, 0, t->rank - 2);
    *step = own == 1 ? 0 : t->dim[t->rank - 2] * t->dim[t->rank - 1];
    if (own == 1) return 1;
    return own == batch && t->rank == y->rank;
}

/* Fills *p with the product of matmul. 0: it is none that is taken. */
static int matmul_product(const cnr_node *node, ocl_product *p) {
    const cnr_tensor *a = cnr_own_input(node, 0), *b = cnr_own_input(node, 1);
    const cnr_tensor *y = node->outputs[0];
    if (a->rank < 2 || b->rank < 2 || cnr_own_inputs(node) != 2) return 0;
    p->m = a->dim[a->rank - 2];
    p->k = a->dim[a->rank - 1];
    p->n = b->dim[b->rank - 1];
    p->batch = cnr_span(y, 0, y->rank - 2);
    p->a_row = p->k;
    p->b_step = p->n;
    p->a_step = p->b_column = 1;
    if (!batch_of(a, y, p->batch, &p->a_batch) || !batch_of(b, y, p->batch, &p->b_batch)) return 0;
    if (p->b_batch == 0 && p->a_batch == p->m * p->k) { /* one product of all rows */
        p->m *= p->batch;
        p->batch = 1;
        p->a_batch = 0;
    }
    return 1;
}

int ocl_product_of(const cnr_node *node, ocl_product *p) {
    *p = (ocl_product){.batch = 1, .alpha = 1, .beta = 1};
    if (!cnr_own_input(node, 0) || !cnr_own_input(node, 1) || !ocl_plain(node)) return 0;
    if (strcmp(node->desc->name, "gemm") == 0) return gemm_product(node, p);
    if (strcmp(node->desc->name, "matmul") == 0) return matmul_product(node, p);
    return dense_product(node, p);
}

int ocl_product_packs(const cnr_node *node, ocl_product *p) {
    if (!ocl_weight(cnr_own_input(node, 1)) || !ocl_product_of(node, p)) return 0;
    if (p->b_batch != 0 || node->inputs[1]->rank != 2) return 0;
    if (p->a_batch != 0 || p->batch == 1) p->m *= p->batch; /* one after another */
    else return 0;
    if (p->a_row != p->k || p->a_step != 1 || p->alpha != 1) return 0;
    return !p->c || (p->beta == 1 && p->c_row == 0 && p->c_column == 1);
}

/* What plan keeps for run: code, epilogue, the product, and samples of a work-item. */
typedef struct dense_state {
    const ocl_code *code;
    ocl_chain chain;
    ocl_product p;
    int64_t rows; /* samples a work-item */
    int32_t line;
} dense_state;

cnr_status ocl_product_take(const cnr_node *node, cnr_accept *out, int32_t score) {
    const cnr_tensor *y = node->outputs[0];
    out->epilogue = ocl_chain_accepts(node, y->rank, y->dim);
    if (y->rank == 2) out->ranges = 1 << 0 | 1 << 1;
    return cnr_take(node, out, score);
}

/* ---- packed ---- */

static const char unfit[] = OCL_NO_PRODUCT;

/* Takes products with packed weights in a buffer; for others out->why says why. */
static cnr_status accepts_buffer(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    ocl_product p;
    const int32_t score = ocl_of(device)->tune->dense_buffer;
    if (score <= 0 || !ocl_product_packs(node, &p)) return cnr_refuse(out, unfit);
    out->prepared = 1 << 1;
    return ocl_product_take(node, out, score);
}

/* Takes products with packed weights in an image; for others out->why says why. */
static cnr_status accepts_image(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const ocl_device *d = ocl_of(device);
    ocl_product p;
    if (d->n_memory <= OCL_IMAGE) return cnr_refuse(out, "the device has no images");
    if (d->tune->dense_image <= 0 || !ocl_product_packs(node, &p)) return cnr_refuse(out, unfit);
    if (cnr_div_up(p.n, 4) > d->memory[OCL_IMAGE].max_width ||
        p.k > d->memory[OCL_IMAGE].max_height)
        return cnr_refuse(out, "the weights do not fit an image");
    out->prepared = 1 << 1;
    return ocl_product_take(node, out, d->tune->dense_image);
}

/* Sets out to the size of the packed weights; fails where the node does not pack them. */
static cnr_status size_of_weights(const cnr_node *node, int32_t memory_class, cnr_space *out,
                                  cnr_error *err) {
    ocl_product p;
    if (!ocl_product_packs(node, &p))
        return ocl_host->fail(err, CNR_E_STATE, node->name, "its weights are not constant");
    out->bytes = (uint64_t)cnr_div_up(p.n, 4) * (uint64_t)p.k * 4 * sizeof(float);
    out->memory_class = memory_class;
    if (memory_class == OCL_IMAGE) {
        out->width = cnr_div_up(p.n, 4);
        out->height = p.k;
    }
    return CNR_OK;
}

/* Size of the packed weights in a buffer. */
static cnr_status buffer_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                              cnr_error *err) {
    (void)device;
    return size_of_weights(node, OCL_BUFFER, out, err);
}

/* Size of the packed weights in an image. */
static cnr_status image_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                             cnr_error *err) {
    (void)device;
    return size_of_weights(node, OCL_IMAGE, out, err);
}

/* Packs the weights into blob by 4 outputs; fails where the node does not pack them. */
static cnr_status pack(const cnr_device *device, const cnr_node *node, void *blob, cnr_error *err) {
    ocl_product p;
    float *to = blob;
    (void)device;
    if (!ocl_product_packs(node, &p))
        return ocl_host->fail(err, CNR_E_STATE, node->name, "its weights are not constant");
    const float *from = node->inputs[1]->data;
    const int64_t padded = cnr_div_up(p.n, 4) * 4;
    for (int64_t k = 0; k < p.k; k++)
        for (int64_t j = 0; j < padded; j++)
            *to++ = j < p.n ? from[k * p.b_step + j * p.b_column] : 0.0f;
    return CNR_OK;
}

/* Builds the code for packed weights, in an image or a buffer; how: their type. *out receives the
 * state. */
static cnr_status plan_packed(const cnr_device *device, const cnr_node *node, int image, int how,
                              void **out, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/dense_packed.cl", dense_packed_cl);
    ocl_plan p;
    dense_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, ocl_product_packs(node, &s->p) ? NULL : "not for this kernel");
    s->rows = s->p.m > 1 ? 4 : 1;
    s->line = ocl_of(device)->tune->dense_line;
    ocl_plan_options(&p, "-DROWS=%d %s", (int)s->rows, image ? "-DIMAGE " : "");
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_terms(&p, how);
    ocl_plan_code(&p, &source, "dense_packed", &s->code);
    return ocl_plan_end(&p, out);
}

/* Defines the plan function of a kernel. */
#define PLAN(name, image, how) \
    OCL_PLAN(name, ((void)workspace, plan_packed(device, node, image, how, state, err)))
PLAN(plan_buffer, 0, OCL_F32)
PLAN(plan_buffer_half, 0, OCL_F16)
PLAN(plan_buffer_math, 0, OCL_F16_MATH)
PLAN(plan_image, 1, OCL_F32)
PLAN(plan_image_math, 1, OCL_F16_MATH)

/* row and column: begin and end of the rows and columns that the run computes. */
void ocl_product_range(const cnr_run *run, const ocl_product *p, int64_t *row, int64_t *column) {
    row[0] = column[0] = 0;
    row[1] = p->m;
    column[1] = p->n;
    int64_t *part = run->range_axis == 0 ? row : column;
    if (run->range_axis < 0) return;
    part[0] = run->range_begin;
    part[1] = run->range_end;
}

/* Launches the kernel with packed weights, in a buffer or an image. */
static cnr_status run_packed(const cnr_run *run, int image, cnr_error *err) {
    const dense_state *s = run->state;
    const cnr_node *node = run->node;
    int64_t row[2], column[2];
    ocl_call call;
    ocl_product_range(run, &s->p, row, column);
    const int64_t first = column[0] / 4;
    const int64_t range[8] = {row[0], row[1], column[0], column[1], first};
    const int64_t shape[4] = {s->p.k, s->p.n, s->p.c != NULL};
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &node->inputs[0]->mem);
    if (image) ocl_arg_image(&call, run->blob);
    else ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, s->p.c ? &node->inputs[2]->mem : &node->inputs[0]->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, range, 8);
    ocl_arg_longs(&call, shape, 4);
    ocl_chain_args(&call, &s->chain, node);
    return ocl_launch(&call, cnr_div_up(column[1], 4) - first, cnr_div_up(row[1] - row[0], s->rows),
                      1, s->line, err);
}

static cnr_status run_buffer(const cnr_run *run, cnr_error *err) { return run_packed(run, 0, err); }
static cnr_status run_image(const cnr_run *run, cnr_error *err) { return run_packed(run, 1, err); }

/* ---- as stored ---- */

/* Takes any f32 product. */
static cnr_status accepts_plain(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    ocl_product p;
    (void)device;
    return ocl_product_of(node, &p) ? ocl_product_take(node, out, 100) : cnr_refuse(out, unfit);
}

/* Compiles the plain kernel, and keeps it with what run needs in *state; fails for want of memory,
 * or where the node is not taken. */
static cnr_status plan_plain(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                             void **state, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/matrix.cl", matrix_cl);
    ocl_plan p;
    (void)workspace;
    dense_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_plan_unless(&p, ocl_product_of(node, &s->p) ? NULL : "not for this kernel");
    s->line = ocl_of(device)->tune->dense_line;
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_code(&p, &source, "matrix", &s->code);
    return ocl_plan_end(&p, state);
}

/* Begins a kernel of operands as they are stored, for rows and columns of the run (row, column:
 * begin and end); 0: nothing is to be computed. split: parts of the sum and terms of each, which go
 * to `part` (NULL: the sum is whole). */
int ocl_product_begin(ocl_call *call, const cnr_run *run, const ocl_code *code,
                      const ocl_product *p, const ocl_chain *chain, const int64_t split[2],
                      const cnr_mem *part, int64_t *row, int64_t *column) {
    const cnr_node *node = run->node;
    ocl_product_range(run, p, row, column);
    if (row[0] >= row[1] || column[0] >= column[1] || p->batch < 1) return 0;
    const int64_t steps[8] = {p->a_row, p->a_step,   p->b_column, p->b_step,
                              p->c_row, p->c_column, p->n};
    const int64_t range[8] = {row[0], row[1],       column[0], column[1],
                              p->k,   p->c != NULL, split[0],  split[1]};
    const int64_t batch[4] = {p->a_batch, p->b_batch, p->m * p->n, p->batch};
    const union {
        cl_float f[2];
        cl_int i[2];
    } factors = {{(cl_float)p->alpha, (cl_float)p->beta}};
    ocl_begin(call, run->stream, code);
    ocl_arg_buffer(call, &node->inputs[0]->mem);
    ocl_arg_buffer(call, &node->inputs[1]->mem);
    ocl_arg_buffer(call, p->c ? &node->inputs[2]->mem : &node->inputs[0]->mem);
    ocl_arg_buffer(call, &run->outputs[0]->mem);
    if (part) ocl_arg_buffer(call, part);
    ocl_arg_longs(call, steps, 8);
    ocl_arg_longs(call, range, 8);
    ocl_arg_longs(call, batch, 4);
    ocl_arg_ints(call, factors.i, 2);
    ocl_chain_args(call, chain, node);
    return 1;
}

/* Launches the plain kernel on the run's stream (nothing for an empty range); fails if it can't be
 * queued. */
static cnr_status run_plain(const cnr_run *run, cnr_error *err) {
    const dense_state *s = run->state;
    const int64_t whole[2] = {1, s->p.k};
    int64_t row[2], column[2];
    ocl_call call;
    if (!ocl_product_begin(&call, run, s->code, &s->p, &s->chain, whole, NULL, row, column))
        return CNR_OK;
    return ocl_launch(&call, column[1] - column[0], row[1] - row[0], s->p.batch, s->line, err);
}

/* Defines the kernels of operator op_name: from buffers, from images, and plain. */
#define ROWS(op_name) \
    OCL_KERNEL(ocl_##op_name##_buffer, #op_name "_f32_buffer", #op_name, \
               .accepts = accepts_buffer, .prepare_size = buffer_size, .prepare = pack, \
               .plan = plan_buffer, .run = run_buffer); \
    OCL_KERNEL(ocl_##op_name##_image, #op_name "_f32_image", #op_name, .accepts = accepts_image, \
               .prepare_size = image_size, .prepare = pack, .plan = plan_image, .run = run_image); \
    OCL_KERNEL(ocl_##op_name##_plain, #op_name "_f32_plain", #op_name, .accepts = accepts_plain, \
               .plan = plan_plain, .run = run_plain);
ROWS(dense)
ROWS(gemm)
ROWS(matmul)
/* Defines the kernels of an operator with 16-bit weights. */
#define HALVES(op_name) \
    OCL_HALF_KERNEL(ocl_##op_name##_buffer_half, ocl_##op_name##_buffer, #op_name "_f16_buffer", \
                    #op_name, plan_buffer_half, run_buffer) \
    OCL_HALF_KERNEL(ocl_##op_name##_image_half, ocl_##op_name##_image, #op_name "_f16_image", \
                    #op_name, plan_image, run_image) \
    OCL_MATH_KERNEL(ocl_##op_name##_buffer_math, ocl_##op_name##_buffer_half, \
                    ocl_##op_name##_buffer, #op_name "_half_buffer", #op_name, plan_buffer_math, \
                    run_buffer) \
    OCL_MATH_KERNEL(ocl_##op_name##_image_math, ocl_##op_name##_image_half, ocl_##op_name##_image, \
                    #op_name "_half_image", #op_name, plan_image_math, run_image)
HALVES(dense)
HALVES(gemm)
