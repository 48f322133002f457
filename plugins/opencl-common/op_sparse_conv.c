/* conv with a weight stored as compressed sparse rows: each entry multiplies a run of pixels. */
#include "op_conv.h"
#include "op_sparse.h"

#include "sparse_conv.cl.h"

/* What plan keeps for run: the codes of the sums and of a padded copy (NULL: none), epilogue,
 * window and sizes. */
typedef struct state {
    const ocl_code *code, *pad; /* pad: NULL where no padding is laid out */
    ocl_chain chain;
    ocl_shape shape; /* including the padding that `pad` adds to the input */
    int64_t in[3], begin[3];
    int32_t block, pixels, line, has_bias;
} state;

enum { MOST_REACH = 65535, BEGIN_AT = 2 }; /* rows and columns of a window; words of the blob */
enum { SHORT_ROW = 576 };

/* 1 if the kernel reads a padded copy of its input: on a processor, where a loop takes 16 pixels at
 * once and then asks no edges, and only if there is padding. */
static int pads(const cnr_device *device, const ocl_shape *s) {
    return ocl_of(device)->tune->rows && (s->begin[1] || s->begin[2] || s->end[1] || s->end[2]);
}
/* Adds the padding of rows and columns to the input's size, and drops it from the window: it is
 * laid out. */
static void lay_out(ocl_shape *s) {
    for (int32_t i = 1; i < 3; i++) {
        s->in[i] += s->begin[i] + s->end[i];
        s->begin[i] = s->end[i] = 0;
    }
}

/* Fills what the node's kernel needs; NULL, or the reason why there is no kernel. */
static const char *resolve(const cnr_node *node, ocl_shape *s) {
    const cnr_tensor *x = cnr_own_input(node, 0), *w = cnr_own_input(node, 1);
    const cnr_tensor *b = cnr_own_input(node, 2);
    const uint32_t f32 = 1u << CNR_f32;
    cnr_window window;
    if (!x || !w || !cnr_is_plain(x, f32) || !cnr_is_plain(node->outputs[0], f32) ||
        (b && !cnr_is_plain(b, f32)) || !w->encoding || !(w->flags & CNR_TENSOR_CONST))
        return "f32 with a constant weight in this encoding is wanted";
    if (!ocl_sparse_is_plain(w)) return "it is compressed further, and decoded first";
    if (x->rank < 3 || w->rank != x->rank) return "ranks differ";
    const char *why = ocl_host->window_resolve(node, x, w->dim + 2, &window);
    if (why) return why;
    ocl_shape_of(&window, x, node->outputs[0], ocl_conv_group(node), 1, s);
    if (!ocl_is_flat(s)) return "two spatial axes at most";
    if (s->k[1] * s->dilation[1] > MOST_REACH || s->k[2] * s->dilation[2] > MOST_REACH)
        return "its window is too large";
    if (s->begin[1] < 0 || s->begin[2] < 0 || s->end[1] < 0 || s->end[2] < 0)
        return "padding that is none is not for it";
    if (cnr_count(x) < 1 || cnr_count(node->outputs[0]) < 1 || cnr_count(x) > INT32_MAX ||
        cnr_count(node->outputs[0]) > INT32_MAX || cnr_count(w) > INT32_MAX)
        return OCL_WANTS_F32;
    if (s->n * s->c >
        INT32_MAX / ((s->in[1] + s->begin[1] + s->end[1]) * (s->in[2] + s->begin[2] + s->end[2])))
        return OCL_WANTS_F32;
    if (s->m / s->group % csr_view(w->data).head.block)
        return "its blocks reach from group to group";
    return NULL;
}

/* Whether that is less work than the dense kernels': of measurements on PoCL with AVX-512. On a GPU
 * whole nets gained by it (SqueezeNet) whose rows are short, and lost (ResNet-50) whose are long.
 */
static int is_worth_it(const ocl_tune *tune, const csr_header *h, const ocl_shape *s) {
    if (!tune->rows && h->columns > SHORT_ROW) return 0;
    const double most = h->block > 1 ? 0.3 : s->k[1] * s->k[2] > 1 ? 0.13 : 0.2;
    const double stored = (double)(h->entries * h->block), all = (double)(h->rows * h->columns);
    return stored <= most * all &&
           h->columns >= 16; /* of few columns, rows cost more than they save */
}

/* Takes convolutions by a weight in compressed sparse rows; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    ocl_shape s;
    const char *why = resolve(node, &s);
    if (why) return cnr_refuse(out, why);
    const csr_header h = csr_view(node->inputs[1]->data).head;
    out->prepared = 1 << 1;
    out->ranges = 1 << 0 | 1 << 1 | 1 << 2;
    out->epilogue = ocl_chain_accepts(node, node->inputs[0]->rank, node->outputs[0]->dim);
    return cnr_take(node, out, is_worth_it(ocl_of(device)->tune, &h, &s) ? 995 : 50);
}

/* ---- the blob, as the kernel's source draws it ---- */

/* Where the taps begin in the packed weight, in words. */
static int64_t taps_at(const csr_header *h) {
    return cnr_round_up(BEGIN_AT + (int64_t)csr_blocks(h) + 1, 2);
}

/* Method prepare_size: bytes of the packed weights; 0: none. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const csr_header h = csr_view(node->inputs[1]->data).head;
    const uint64_t words = (uint64_t)taps_at(&h) + h.entries * (2u + h.block);
    (void)device;
    if (words > INT32_MAX)
        return ocl_host->fail(err, CNR_E_LIMIT, node->name, "the weight is too large");
    out->bytes = words * 4;
    out->memory_class = OCL_BUFFER;
    return CNR_OK;
}

/* Method prepare: packs the node's weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    const csr_matrix m = csr_view(node->inputs[1]->data);
    const int64_t at = taps_at(&m.head), block = m.head.block, columns = (int64_t)m.head.columns;
    uint32_t *words = (uint32_t *)blob, *tap = words + at;
    float *value = (float *)(void *)(tap + 2 * m.head.entries);
    uint32_t *column = (uint32_t *)ocl_host->alloc((uint64_t)(columns + 1) * 8);
    ocl_shape s;
    uint64_t cursor = 0;
    if (!column) return ocl_host->fail(err, CNR_E_MEMORY, node->name, "out of memory");
    float *row = (float *)(void *)(column + columns + 1);
    const cnr_status status = ocl_unless(node, resolve(node, &s), err);
    if (status != CNR_OK) {
        ocl_host->free(column);
        return status;
    }
    if (pads(device, &s)) lay_out(&s);
    memset(blob, 0, (size_t)at * 4);
    words[0] = (uint32_t)at;
    words[1] = (uint32_t)(at + 2 * (int64_t)m.head.entries);
    memcpy(words + BEGIN_AT, m.row_begin, (m.blocks + 1) * 4);
    for (uint64_t b = 0; b < m.blocks; b++) {
        const uint64_t first = m.row_begin[b], n = m.row_begin[b + 1] - first;
        csr_columns(&m, b, &cursor, column);
        for (uint64_t i = 0; i < n; i++) {
            const int64_t c = column[i] / (s.k[1] * s.k[2]), t = column[i] % (s.k[1] * s.k[2]);
            const int64_t ky = t / s.k[2] * s.dilation[1], kx = t % s.k[2] * s.dilation[2];
            *tap++ = (uint32_t)((c * s.in[1] + ky) * s.in[2] + kx);
            *tap++ = (uint32_t)(ky << 16 | kx);
        }
        for (int64_t r = 0; r < block; r++) {
            csr_values(&m, b, (uint64_t)r, first, n, row);
            for (uint64_t i = 0; i < n; i++) value[(int64_t)(first + i) * block + r] = row[i];
        }
    }
    ocl_host->free(column);
    return CNR_OK;
}

/* ---- planning and running ---- */

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **out, cnr_error *err) {
    static const ocl_source source = OCL_SOURCE("common/sparse_conv.cl", sparse_conv_cl);
    const ocl_tune *tune = ocl_of(device)->tune;
    ocl_plan p;
    state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    ocl_shape *g = &s->shape;
    const int padded = ocl_plan_unless(&p, resolve(node, g)) && pads(device, g);
    memcpy(s->in, g->in, sizeof s->in);
    memcpy(s->begin, g->begin, sizeof s->begin);
    if (padded) {
        lay_out(g);
        workspace->bytes = (uint64_t)(g->n * g->c * g->in[1] * g->in[2]) * sizeof(float);
    }
    s->block = csr_view(node->inputs[1]->data).head.block;
    s->pixels = tune->rows ? 16 : 1;
    s->line = tune->rows ? 1 : tune->line;
    s->has_bias = cnr_own_input(node, 2) != NULL;
    const int edges = g->begin[1] || g->begin[2] || g->end[1] || g->end[2];
    ocl_plan_options(&p, "-DBLOCK=%d -DPIXELS=%d -DEDGES=%d -DSH=%d -DSW=%d ", (int)s->block,
                     (int)s->pixels, edges, (int)g->stride[1], (int)g->stride[2]);
    ocl_plan_chain(&p, &s->chain);
    ocl_plan_code(&p, &source, "sparse_conv", &s->code);
    if (padded) ocl_plan_code(&p, &source, "sparse_pad", &s->pad);
    return ocl_plan_end(&p, out);
}

/* Queues the code that copies the input's rows into the padded workspace. */
static cnr_status lay_rows(const cnr_run *run, const state *s, cnr_error *err) {
    const ocl_shape *g = &s->shape;
    const int64_t rows = g->n * g->c * g->in[1];
    const int64_t shape[8] = {s->in[1],    s->in[2],    g->in[1], g->in[2],
                              s->begin[1], s->begin[2], rows};
    ocl_call call;
    ocl_begin(&call, run->stream, s->pad);
    ocl_arg_buffer(&call, &run->node->inputs[0]->mem);
    ocl_arg_buffer(&call, run->workspace);
    ocl_arg_longs(&call, shape, 8);
    return ocl_launch(&call, rows, 1, 1, s->line, err);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const state *s = run->state;
    const ocl_shape *g = &s->shape;
    const cnr_mem *x = s->pad ? run->workspace : &run->node->inputs[0]->mem;
    ocl_call call;
    ocl_box box;
    if (s->pad) CNR_TRY(lay_rows(run, s, err));
    ocl_box_of(run, g, &box);
    const int64_t wide = cnr_div_up(box.end[4] - box.begin[4], s->pixels);
    const int64_t first = box.begin[1] / s->block, end = cnr_div_up(box.end[1], s->block);
    const int64_t shape[16] =
        {g->c, g->c / g->group, 1, g->in[1], g->in[2],    1,           g->out[1],   g->out[2],
         g->m, g->m / g->group, 0, 0,        g->begin[1], g->begin[2], s->has_bias, g->n};
    const int64_t range[16] =
        {0,    box.begin[3], box.begin[4], 1,          box.end[3] - box.begin[3],
         wide, box.end[4],   box.begin[1], box.end[1], box.begin[0],
         first};
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, x);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, s->has_bias ? &run->node->inputs[2]->mem : x);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, shape, 16);
    ocl_arg_longs(&call, range, 16);
    ocl_chain_args(&call, &s->chain, run->node);
    return ocl_launch(&call, wide * (box.end[3] - box.begin[3]), end - first,
                      box.end[0] - box.begin[0], s->line, err);
}

static const char *const encodings[] = {"", "sparse-csr", "", NULL};

OCL_KERNEL(ocl_conv_sparse, "conv_f32_csr", "conv", .encodings = encodings, .accepts = accepts,
           .prepare_size = prepare_size, .prepare = prepare, .plan = plan, .run = run,
           .flags = CNR_KERNEL_SKIPS_ZEROS);
