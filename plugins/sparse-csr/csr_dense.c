/* dense with a compressed weight on the CPU: a sparse matrix by one vector, or by a batch eight
 * pictures at a time, so that each weight read serves eight multiplications without gathers. */
#include "csr.h"

enum {
    LANES = 8,
    ROWS = 32,     /* a task: enough work to share out */
    DENSE_PART = 4 /* with more than this part of the numbers kept, dense kernels are faster */
};

/* Two vectors of the least that every processor here has: wider ones would be kept in memory. */
typedef float quad __attribute__((vector_size(4 * sizeof(float))));
typedef union lanes {
    quad half[2];
    float at[LANES];
} lanes;

static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
    const cnr_tensor *b = cnr_own_input(node, 2);
    const uint32_t f32 = 1u << CNR_f32;
    (void)device;
    if (!cnr_is_plain(x, f32) || !cnr_is_plain(y, f32) || (b && !cnr_is_plain(b, f32)) ||
        !w->encoding || !(w->flags & CNR_TENSOR_CONST))
        return cnr_refuse(out, "f32 with a constant weight in this encoding is wanted");
    /* Others read the weight decoded: more numbers, but one after the other. */
    const uint64_t all = (uint64_t)cnr_count(w);
    const int sparse = w->data && csr_view(w->data).head->entries <= all / DENSE_PART;
    out->prepared = 1u << 1;
    out->ranges = 1u << 1;
    out->epilogue = cnr_chain_length(node, y->rank, y->dim, node->n_epilogue, NULL);
    return cnr_take(node, out, sparse ? 900 : 50);
}

/* The blob is the stored form as it is: a kernel that reads it needs nothing better. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device;
    (void)err;
    out->bytes = node->inputs[1]->bytes;
    return CNR_OK;
}
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    (void)device;
    (void)err;
    memcpy(blob, node->inputs[1]->data, (size_t)node->inputs[1]->bytes);
    return CNR_OK;
}

static int64_t batch_of(const cnr_node *node) {
    return node->outputs[0]->dim[0];
}

/* Room for eight pictures' inputs side by side, when there are that many. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)err;
    (void)state;
    const cnr_tensor *x = node->inputs[0];
    if (batch_of(node) >= LANES)
        workspace->bytes = (uint64_t)cnr_span(x, 1, x->rank) * sizeof(lanes);
    return CNR_OK;
}

typedef struct job {
    const cnr_run *run;
    csr_matrix m;
    const float *x, *bias;
    const lanes *turned; /* of this group of pictures */
    float *y;
    int64_t first, end, picture, columns, outputs;
} job;

static float row_by_vector(const csr_matrix *m, uint64_t begin, uint64_t end, const float *x) {
    float sum[4] = {0, 0, 0, 0};
    uint64_t i = begin;
    if (m->head->index_bytes == 2) {
        const uint16_t *c = (const uint16_t *)m->column;
        for (; i + 4 <= end; i += 4)
            for (int k = 0; k < 4; k++) sum[k] += m->value[i + (uint64_t)k] * x[c[i + (uint64_t)k]];
    } else {
        const uint32_t *c = (const uint32_t *)m->column;
        for (; i + 4 <= end; i += 4)
            for (int k = 0; k < 4; k++) sum[k] += m->value[i + (uint64_t)k] * x[c[i + (uint64_t)k]];
    }
    for (; i < end; i++) sum[0] += m->value[i] * x[csr_column_at(m, i)];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static lanes row_by_group(const csr_matrix *m, uint64_t begin, uint64_t end, const lanes *x,
                          float bias) {
    quad low = (quad){0} + bias, high = low;
    if (m->head->index_bytes == 2) {
        const uint16_t *c = (const uint16_t *)m->column;
        for (uint64_t i = begin; i < end; i++) {
            low += m->value[i] * x[c[i]].half[0];
            high += m->value[i] * x[c[i]].half[1];
        }
    } else {
        const uint32_t *c = (const uint32_t *)m->column;
        for (uint64_t i = begin; i < end; i++) {
            low += m->value[i] * x[c[i]].half[0];
            high += m->value[i] * x[c[i]].half[1];
        }
    }
    return (lanes){{low, high}};
}

static void rows(void *arg, int64_t index, int32_t thread) {
    (void)thread;
    const job *j = (const job *)arg;
    const int64_t from = j->first + index * ROWS;
    const int64_t to = cnr_min(from + ROWS, j->end);
    const int64_t pictures = j->turned ? LANES : 1;
    for (int64_t r = from; r < to; r++) {
        const uint64_t begin = j->m.row_begin[r], end = j->m.row_begin[r + 1];
        const float bias = j->bias ? j->bias[r] : 0.0f;
        float *y = j->y + j->picture * j->outputs + r;
        if (j->turned) {
            const lanes sum = row_by_group(&j->m, begin, end, j->turned, bias);
            for (int l = 0; l < LANES; l++) y[l * j->outputs] = sum.at[l];
        } else {
            *y = bias + row_by_vector(&j->m, begin, end, j->x + j->picture * j->columns);
        }
    }
    for (int64_t p = j->picture; p < j->picture + pictures; p++)
        cnr_chain_run(j->run->node, j->y + p * j->outputs + from, p * j->outputs + from, to - from);
}

static cnr_status run(const cnr_run *run, cnr_error *err) {
    (void)err;
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *b = cnr_own_input(node, 2);
    job j = {.run = run, .m = csr_view(run->blob_data), .x = (const float *)x->data,
             .bias = b ? (const float *)b->data : NULL, .y = (float *)run->outputs[0]->data};
    j.columns = (int64_t)j.m.head->columns;
    j.outputs = (int64_t)j.m.head->rows;
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    cnr_range_of(run, lo, hi);
    j.first = lo[1];
    j.end = hi[1];
    const int64_t tasks = cnr_div_up(j.end - j.first, ROWS), batch = batch_of(node);
    for (; j.picture < batch;) {
        const int group = batch - j.picture >= LANES && run->workspace_data;
        if (group) {
            lanes *turned = (lanes *)run->workspace_data;
            for (int64_t c = 0; c < j.columns; c++)
                for (int l = 0; l < LANES; l++)
                    turned[c].at[l] = j.x[(j.picture + l) * j.columns + c];
            j.turned = turned;
        } else {
            j.turned = NULL;
        }
        cnr_parallel(run->stream, tasks, rows, &j);
        j.picture += group ? LANES : 1;
    }
    return CNR_OK;
}

static const char *const encodings[] = {"", "sparse-csr", "", NULL};

const cnr_kernel csr_dense_f32 = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "dense_f32_csr",
    .op = "dense",
    .device = "cpu",
    .encodings = encodings,
    .accepts = accepts,
    .prepare_size = prepare_size,
    .prepare = prepare,
    .plan = plan,
    .run = run,
};
