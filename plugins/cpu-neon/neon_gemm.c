/* gemm and matmul: packs both operands; a constant right one in prepare. */
#include "gemm.h"
#include "support.h"

/* Plan of gemm, matmul or a dense layer. */
typedef struct gemm_state {
    neon_chain chain;
    int64_t m, n, k, a_rs, a_cs, b_rs, b_cs;
    int64_t outer;    /* products over matmul's leading axes */
    int64_t *offsets; /* of a and b, in floats, for each */
    float alpha, beta;
    /* whether there is a third input, even if beta is 0, which makes NaN of an infinity */
    int32_t adds;
    int32_t packed;
    neon_stored as; /* storage type of packed weights */
    int64_t room, rooms_at, a_at, floats;
    int64_t rows; /* rows of a task, which packs them itself; 0: all are packed first */
} gemm_state;

/* Floats of `a` that a task packs at most; they stay in the L2 cache. */
#define MANY_A ((int64_t)1 << 16)

/* Reads the sizes of gemm or dense into *s. 0: the kernel does not take it. */
static int shape_of_gemm(const cnr_node *node, gemm_state *s) {
    const cnr_tensor *a = cnr_own_input(node, 0), *b = cnr_own_input(node, 1);
    const cnr_tensor *c = cnr_own_input(node, 2);
    if (!a || !b || a->rank != 2 || b->rank != 2 || (c && c->rank > 2)) return 0;
    const int ta = cnr_attr_int(node, "transA") != 0, tb = cnr_attr_int(node, "transB") != 0;
    s->m = a->dim[ta];
    s->k = a->dim[!ta];
    s->n = b->dim[!tb];
    s->a_rs = ta ? 1 : s->k;
    s->a_cs = ta ? s->m : 1;
    s->b_rs = tb ? 1 : s->n;
    s->b_cs = tb ? s->k : 1;
    s->alpha = (float)cnr_attr_float(node, "alpha");
    s->beta = (float)cnr_attr_float(node, "beta");
    s->adds = c != NULL;
    s->outer = 1;
    return 1;
}

/* Reads the sizes and strides of matmul into s; 0: not taken. Leading axes of `a` count as rows if
 * b has none; a vector is a matrix of one row or column. */
static int shape_of_matmul(const cnr_node *node, gemm_state *s) {
    const cnr_tensor *a = cnr_own_input(node, 0), *b = cnr_own_input(node, 1);
    if (!a || !b || a->rank < 1 || b->rank < 1) return 0;
    s->k = a->dim[a->rank - 1];
    s->m = a->rank > 1 ? a->dim[a->rank - 2] : 1;
    s->n = b->rank > 1 ? b->dim[b->rank - 1] : 1;
    s->outer = 1;
    if (b->rank <= 2) s->m = cnr_span(a, 0, a->rank - 1);
    else {
        const cnr_tensor *y = node->outputs[0];
        if (a->rank < 2) return 0;
        s->outer = cnr_span(y, 0, y->rank - 2);
    }
    s->a_rs = s->k;
    s->b_rs = s->n;
    s->a_cs = s->b_cs = 1;
    s->alpha = 1.0f;
    return 1;
}

/* Whether tasks pack the rows of `a` that they multiply: if there are many products, or if `a`
 * exceeds the caches. */
static int rows_by_task(const cnr_device *device, const cnr_node *node, const gemm_state *s) {
    if (s->outer > 1) return 1;
    return s->packed && node->outputs[0]->rank != 2 && s->m * s->k > 4 * MANY_A &&
           s->m >= 96 * (int64_t)device->concurrency;
}

static int is_matmul(const cnr_node *node) { return strcmp(node->desc->name, "matmul") == 0; }

/* Zeroes *s and reads the sizes of the node into it. 0: the kernel does not take it. */
static int shape_of(const cnr_node *node, gemm_state *s) {
    memset(s, 0, sizeof *s);
    if (!neon_all_f32(node)) return 0;
    if (!(is_matmul(node) ? shape_of_matmul : shape_of_gemm)(node, s)) return 0;
    /* For matrices this small, packing costs more than the product. */
    s->packed = s->outer == 1 && cnr_is_constant(node->inputs[1]);
    return 1;
}

/* Takes dense f32 products, with constant right matrices stored as `as`; for others out->why says
 * why. */
static cnr_status accepts(neon_stored as, const cnr_device *device, const cnr_node *node,
                          cnr_accept *out) {
    gemm_state s;
    (void)device;
    if (!shape_of(node, &s)) return cnr_refuse(out, "dense f32 matrices are wanted");
    if (as != NEON_F32 && !s.packed) return cnr_refuse(out, "a constant right matrix is wanted");
    cnr_take(node, out, as == NEON_F32 ? 500 : 510);
    /* the epilogue's shape is that of the product */
    const cnr_tensor *y = node->outputs[0];
    out->epilogue = neon_chain_accepts_broadcast(node, y->rank, y->dim);
    if (s.outer == 1 && y->rank == 2 && y->dim[0] == s.m) out->ranges = 1 << 0;
    if (s.packed) out->prepared = 1 << 1;
    return CNR_OK;
}

/* Sets out->bytes to those of the packed right matrix; 0 if it is not constant. */
static cnr_status prepare_size(neon_stored as, const cnr_device *device, const cnr_node *node,
                               cnr_space *out, cnr_error *err) {
    gemm_state s;
    (void)device;
    (void)err;
    if (shape_of(node, &s) && s.packed) out->bytes = neon_stored_bytes(as, neon_packed_b(s.n, s.k));
    return CNR_OK;
}

/* Arguments of the tasks that pack the right matrix. */
typedef struct packing {
    neon_stored as;
    const gemm_state *s;
    const float *b;
    void *to;
} packing;

/* Task i of the packing `arg`: packs one panel. */
static void pack_right(void *arg, int64_t i, int32_t thread) {
    const packing *p = arg;
    (void)thread;
    neon_store_b(p->as, p->b, p->s->b_rs, p->s->b_cs, p->s->n, p->s->k, i, p->to);
}

/* Packs the right matrix on all threads. */
static cnr_status prepare(neon_stored as, const cnr_device *device, const cnr_node *node,
                          void *blob, cnr_error *err) {
    gemm_state s;
    packing p = {as, &s, neon_floats(node->inputs[1]), blob};
    (void)err;
    if (shape_of(node, &s) && s.packed)
        neon_parallel(device, cnr_div_up(s.n, neon_uk->nr), pack_right, &p);
    return CNR_OK;
}

/* Returns the offset, in elements, of product i of the leading axes in an operand t that broadcasts
 * to y. */
static int64_t outer_offset(const cnr_tensor *t, const cnr_tensor *y, int64_t i) {
    int64_t offset = 0, step = t->dim[t->rank - 1] * t->dim[t->rank - 2];
    for (int32_t axis = y->rank - 3, own = t->rank - 3; axis >= 0 && own >= 0; axis--, own--) {
        const int64_t at = i % y->dim[axis];
        i /= y->dim[axis];
        if (t->dim[own] > 1) offset += at * step;
        step *= t->dim[own];
    }
    return offset;
}

/* Finds sizes, offsets and workspace in *state; fails with CNR_E_MEMORY or CNR_E_SHAPE. */
static cnr_status plan(neon_stored as, const cnr_device *device, const cnr_node *node,
                       cnr_space *workspace, void **state, cnr_error *err) {
    gemm_state shape;
    if (!shape_of(node, &shape))
        return neon_host->fail(err, CNR_E_SHAPE, node->name, "wants dense f32 matrices");
    const size_t offsets = (size_t)cnr_max(0, shape.outer) * 2 * sizeof(int64_t);
    gemm_state *s = cnr_state(neon_host, node, sizeof *s + offsets, err);
    if (!s) return CNR_E_MEMORY;
    *s = shape;
    s->as = as;
    s->offsets = (int64_t *)(s + 1);
    for (int64_t i = 0; i < s->outer; i++) {
        for (int port = 0; port < 2; port++)
            s->offsets[2 * i + port] =
                s->outer > 1 ? outer_offset(node->inputs[port], node->outputs[0], i) : 0;
    }
    neon_chain_plan(node, &s->chain);
    s->room = cnr_round_up(neon_block_room(s->n, s->k), 16);
    if (rows_by_task(device, node, s)) {
        const int64_t shares = cnr_div_up(2 * (int64_t)device->concurrency, s->outer);
        const int64_t parts =
            cnr_max(device->concurrency > 1 ? shares : 1, cnr_div_up(s->m * s->k, MANY_A));
        s->rows = cnr_div_up(s->m, cnr_max(1, cnr_min(parts, s->m / 48)));
        s->rows = cnr_max(neon_uk->mr, cnr_round_up(s->rows, neon_uk->mr));
        s->a_at = s->room; /* in a thread's scratch */
        s->room += cnr_round_up(neon_packed_a(s->rows, s->k), 16);
    }
    s->rooms_at = neon_reserve(&s->floats, s->room * device->concurrency);
    if (s->outer == 1 && !s->rows) s->a_at = neon_reserve(&s->floats, neon_packed_a(s->m, s->k));
    workspace->bytes = (uint64_t)s->floats * sizeof(float);
    *state = s;
    return CNR_OK;
}

/* Arguments of the tasks of a product. */
typedef struct gemm_job {
    const gemm_state *s;
    const cnr_run *run;
    const float *a;
    float *packed, *y;
    int64_t m0; /* first row to compute */
} gemm_job;

/* Task i of the gemm_job `arg`: packs panel i of the first operand: mr rows. */
static void pack_panel_a(void *arg, int64_t i, int32_t thread) {
    const gemm_job *job = arg;
    const gemm_state *s = job->s;
    (void)thread;
    neon_pack_a(job->a, s->a_rs, s->a_cs, s->m, s->k, s->alpha, i, i + 1, job->packed);
}

/* Task i of the gemm_job `arg`: row m0 + i starts as beta * c, broadcast. */
static void start_row(void *arg, int64_t i, int32_t thread) {
    const gemm_job *job = arg;
    i += job->m0;
    const gemm_state *s = job->s;
    const cnr_tensor *t = cnr_own_input(job->run->node, 2);
    const int64_t step = t->rank > 0 && t->dim[t->rank - 1] != 1 ? 1 : 0;
    const int64_t row = t->rank == 2 && t->dim[0] != 1 ? i * t->dim[1] : 0;
    const float *c = neon_floats(t) + row;
    float *y = job->y + i * s->n;
    (void)thread;
    for (int64_t j = 0; j < s->n; j++) y[j] = s->beta * c[j * step];
}

/* Product i of matmul's leading axes; only its offsets differ. */
static neon_product product_at(const gemm_job *job, int64_t i) {
    const gemm_state *s = job->s;
    return (neon_product){
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .a = job->packed,
        .b_as = s->as,
        .b = s->packed ? job->run->blob_data : NULL,
        .pack = neon_pack_strided,
        .add = s->adds,
        .c = (float *)job->run->outputs[0]->data + i * s->m * s->n,
        .ldc = s->n,
        .chain = &s->chain,
        .node = job->run->node,
        .c_first = i * s->m * s->n,
    };
}

/* Task i of the gemm_job `arg`: computes some rows of one of many products; packs its part of `a`
 * in the thread's scratch. */
static void some_rows(void *arg, int64_t i, int32_t thread) {
    const gemm_job *job = arg;
    const gemm_state *s = job->s;
    const cnr_node *node = job->run->node;
    const int64_t parts = cnr_div_up(s->m, s->rows), at = i / parts, first = i % parts * s->rows;
    const int64_t m = cnr_min(s->rows, s->m - first);
    float *room = job->packed + thread * s->room;
    const float *a = neon_floats(node->inputs[0]) + s->offsets[2 * at] + first * s->a_rs;
    const neon_strided b = {neon_floats(node->inputs[1]) + s->offsets[2 * at + 1], s->b_rs,
                            s->b_cs};
    if (m < 1 || cnr_cancelled(job->run->stream)) return;
    neon_pack_a(a, s->a_rs, s->a_cs, m, s->k, s->alpha, 0, cnr_div_up(m, neon_uk->mr),
                room + s->a_at);
    neon_product p = product_at(job, at);
    p.m = m;
    p.a = room + s->a_at;
    p.pack_arg = &b;
    p.c += first * s->n;
    p.c_first += first * s->n;
    for (int64_t n = 0; n < s->n; n += NEON_NC)
        neon_block(&p, 0, m, n, cnr_min(s->n, n + NEON_NC), room);
}

/* Computes one product, or the rows of a range. */
static void run_one(const cnr_run *run, const gemm_state *s, float *scratch) {
    const int64_t m0 = run->range_axis == 0 ? run->range_begin : 0;
    const int64_t m1 = run->range_axis == 0 ? run->range_end : s->m;
    gemm_job job = {
        .s = s,
        .run = run,
        .a = neon_floats(run->node->inputs[0]),
        .packed = scratch + s->a_at,
        .y = run->outputs[0]->data,
        .m0 = m0,
    };
    const neon_strided b = {neon_floats(run->node->inputs[1]), s->b_rs, s->b_cs};
    neon_product p = product_at(&job, 0);
    p.pack_arg = &b;
    cnr_parallel(run->stream, cnr_div_up(s->m, neon_uk->mr), pack_panel_a, &job);
    if (p.add) cnr_parallel(run->stream, m1 - m0, start_row, &job);
    neon_multiply(&p, m0, m1, run->stream, scratch + s->rooms_at);
}

/* Computes all products on the stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const gemm_state *s = run->state;
    float *scratch = run->workspace_data;
    (void)err;
    if (s->outer == 1 && !s->rows) {
        run_one(run, s, scratch);
        return CNR_OK;
    }
    gemm_job job = {.s = s, .run = run, .packed = scratch + s->rooms_at};
    if (s->outer > 0)
        cnr_parallel(run->stream, s->outer * cnr_div_up(s->m, s->rows), some_rows, &job);
    return CNR_OK;
}

NEON_WEIGHT_KERNELS(neon_gemm_packed, "gemm", "_packed", "gemm", neon_free_state)
NEON_WEIGHT_KERNELS(neon_matmul_packed, "matmul", "_packed", "matmul", neon_free_state)
