/* dense, and gemm in the form of a fully connected layer: reads rows of weights once, in their
 * storage type, so that a single sample runs at memory speed. */
#include "support.h"

/* Plan of a dense layer for few samples. */
typedef struct dense_state {
    neon_chain chain;
    neon_stored as;
    int64_t batch, k, n, pitch; /* pitch: weights from one row to the next */
} dense_state;

#define SUM_BLOCK 1024
/* Floats of x that the L2 cache holds while weights pass through it. */
#define X_CACHED ((int64_t)192 << 10)
#define OUTPUTS_A_TASK 48
/* Rows of halves are padded with zeros to a multiple of the longest vector. */
#define HALF_ROW 16

/* True for a float32 product of x and a weight matrix; a gemm must be y = x * weight^T + bias. The
 * weight may be computed. */
static int fits(const cnr_node *node) {
    const cnr_tensor *x = cnr_own_input(node, 0), *weight = cnr_own_input(node, 1);
    const cnr_tensor *bias = cnr_own_input(node, 2);
    if (!x || !weight || weight->rank != 2 || x->rank < 1 || !neon_all_f32(node)) return 0;
    if (strcmp(node->desc->name, "gemm") == 0 &&
        (cnr_attr_int(node, "transA") || !cnr_attr_int(node, "transB") ||
         cnr_attr_float(node, "alpha") != 1.0 || (bias && cnr_attr_float(node, "beta") != 1.0)))
        return 0;
    if (cnr_span(x, 1, x->rank) != weight->dim[1]) return 0;
    return !bias || (cnr_count(bias) == weight->dim[0] &&
                     (bias->rank == 1 || (bias->rank == 2 && bias->dim[0] == 1)));
}

/* Takes dense f32 layers, with constant weights stored as `as`; for others out->why says why. */
static cnr_status accepts(neon_stored as, const cnr_device *device, const cnr_node *node,
                          cnr_accept *out) {
    (void)device;
    if (!fits(node)) return cnr_refuse(out, "dense f32 and a plain product are wanted");
    if (as != NEON_F32 && !cnr_is_constant(node->inputs[1]))
        return cnr_refuse(out, "constant weights are wanted");
    const int64_t dim[2] = {node->inputs[0]->dim[0], node->inputs[1]->dim[0]};
    cnr_take(node, out, as == NEON_F32 ? 600 : 610);
    out->epilogue = neon_chain_accepts_broadcast(node, 2, dim);
    out->ranges = 1 << 0 | 1 << 1;
    if (as != NEON_F32) out->prepared = 1 << 1;
    return CNR_OK;
}

/* ---- weights: as they are, or [n][pitch] of halves ---- */

/* Returns the number of stored weights from one row of k to the next. */
static int64_t pitch_of(neon_stored as, int64_t k) {
    return as == NEON_F32 ? k : cnr_round_up(k, HALF_ROW);
}

/* Bytes of the converted weights; 0: f32 is read in place. */
static cnr_status prepare_size(neon_stored as, const cnr_device *device, const cnr_node *node,
                               cnr_space *out, cnr_error *err) {
    const cnr_tensor *weight = node->inputs[1];
    (void)device, (void)err;
    if (as != NEON_F32)
        out->bytes = neon_stored_bytes(as, weight->dim[0] * pitch_of(as, weight->dim[1]));
    return CNR_OK;
}

/* Arguments of the tasks that convert weights to 16 bits. */
typedef struct dense_packing {
    neon_stored as;
    const cnr_tensor *weight;
    uint16_t *to;
} dense_packing;

/* Task i: converts some rows of the weights, padded to the pitch. */
static void pack_rows(void *arg, int64_t i, int32_t thread) {
    const dense_packing *p = arg;
    const int64_t k = p->weight->dim[1], pitch = pitch_of(p->as, k);
    const int64_t end = cnr_min(p->weight->dim[0], (i + 1) * OUTPUTS_A_TASK);
    (void)thread;
    for (int64_t row = i * OUTPUTS_A_TASK; row < end; row++) {
        uint16_t *to = p->to + row * pitch;
        neon_uk->narrow[p->as](neon_floats(p->weight) + row * k, to, k);
        memset(to + k, 0, (size_t)(pitch - k) * sizeof *to);
    }
}

/* Converts all rows on all threads; f32 weights are used as they are. */
static cnr_status prepare(neon_stored as, const cnr_device *device, const cnr_node *node,
                          void *blob, cnr_error *err) {
    dense_packing p = {as, node->inputs[1], blob};
    (void)err;
    if (as != NEON_F32)
        neon_parallel(device, cnr_div_up(p.weight->dim[0], OUTPUTS_A_TASK), pack_rows, &p);
    return CNR_OK;
}

/* ---- run ---- */

/* Notes sizes and the operators behind in *state; fails with CNR_E_MEMORY. */
static cnr_status plan(neon_stored as, const cnr_device *device, const cnr_node *node,
                       cnr_space *workspace, void **state, cnr_error *err) {
    (void)device;
    (void)workspace;
    dense_state *s = cnr_state(neon_host, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    neon_chain_plan(node, &s->chain);
    s->as = as;
    s->batch = node->inputs[0]->dim[0];
    s->n = node->inputs[1]->dim[0];
    s->k = node->inputs[1]->dim[1];
    s->pitch = pitch_of(as, s->k);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct dense_job {
    const dense_state *s;
    const cnr_run *run;
    const void *weight;
    neon_part part;
} dense_job;

/* Task i: computes some outputs of all samples, with bias and the operators behind. */
static void some_outputs(void *arg, int64_t i, int32_t thread) {
    const dense_job *job = arg;
    const dense_state *s = job->s;
    const neon_ukernels *uk = neon_uk;
    const cnr_node *node = job->run->node;
    const float *x = neon_floats(node->inputs[0]);
    const float *bias = neon_floats(cnr_own_input(node, 2));
    float *y = job->run->outputs[0]->data;
    const int64_t n0 = job->part.channel0 + i * OUTPUTS_A_TASK;
    const int64_t n1 = cnr_min(job->part.channel1, n0 + OUTPUTS_A_TASK);
    const int64_t m0 = job->part.image0, m1 = job->part.image1;
    /* For few samples, whole rows of weights are read sequentially; for many, blocks of both
     * operands stay in the cache. The order of the sum is the same. */
    const int64_t block = s->batch <= uk->dot_m ? cnr_max(1, s->k) : SUM_BLOCK;
    const int64_t step = s->batch * s->k <= X_CACHED ? uk->dot_n : n1 - n0;
    (void)thread;
    if (cnr_cancelled(job->run->stream)) return;
    for (int64_t from = n0; from < n1; from += step)
        for (int64_t k = 0; k < s->k || k == 0; k += block)
            for (int64_t j = from; j < cnr_min(n1, from + step); j += uk->dot_n)
                for (int64_t m = m0; m < m1; m += uk->dot_m)
                    uk->sdot[s->as](cnr_min(block, s->k - k), x + m * s->k + k, s->k,
                                    neon_stored_at(s->as, job->weight, j * s->pitch + k), s->pitch,
                                    y + m * s->n + j, s->n, cnr_min(uk->dot_m, m1 - m),
                                    cnr_min(uk->dot_n, n1 - j), bias ? bias + j : NULL, k > 0);
    if (s->chain.n)
        for (int64_t m = m0; m < m1; m++)
            neon_chain_run(&s->chain, node, y + m * s->n + n0, m * s->n + n0, n1 - n0);
}

/* Computes all outputs on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const dense_state *s = run->state;
    dense_job job = {s, run, s->as == NEON_F32 ? run->node->inputs[1]->data : run->blob_data,
                     neon_part_of(run)};
    (void)err;
    cnr_parallel(run->stream, cnr_div_up(job.part.channel1 - job.part.channel0, OUTPUTS_A_TASK),
                 some_outputs, &job);
    return CNR_OK;
}

NEON_WEIGHT_KERNELS(neon_dense, "dense", "_dot", "dense", neon_free_state)
NEON_WEIGHT_KERNELS(neon_gemm_dense, "gemm", "_dot", "gemm", neon_free_state)
