/* dense, and gemm with the form of a dense layer, for few samples: multiplies weights of 2 to 8
 * bits without decoding them to memory. */
#include "int8.h"
#include "packed.h"

enum {
    MOST_SAMPLES = 4, /* for more, weights decoded once are faster */
    GROUPS = 4        /* groups of rows in a task */
};

static int64_t depth_of(const cnr_node *node) { return node->inputs[1]->dim[1]; }

/* NULL, or why the node is refused. A gemm must be y = x * weight^T + bias. */
static const char *unfit(const cnr_node *node) {
    const cnr_tensor *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
    const cnr_tensor *b = cnr_own_input(node, 2);
    const uint32_t f32 = 1u << CNR_f32;
    if (!cnr_is_plain(x, f32) || !cnr_is_plain(y, f32) || (b && !cnr_is_plain(b, f32)) ||
        !w->encoding || !(w->flags & CNR_TENSOR_CONST) || w->rank != 2 || !w->data)
        return "f32 with a constant weight in this encoding is wanted";
    if (strcmp(node->desc->name, "gemm") == 0 &&
        (cnr_attr_int(node, "transA") || !cnr_attr_int(node, "transB") ||
         cnr_attr_float(node, "alpha") != 1.0 || (b && cnr_attr_float(node, "beta") != 1.0)))
        return "a plain product with a transposed weight is wanted";
    if (cnr_span(x, 1, x->rank) != w->dim[1]) return "the weight's columns are not the inputs";
    if (b && (cnr_count(b) != w->dim[0] || b->dim[b->rank - 1] != w->dim[0]))
        return "a bias for each output is wanted";
    if (y->dim[0] > MOST_SAMPLES) return "the samples are too many";
    return NULL;
}

/* Takes dense layers and gemm with weights in this encoding; for others out->why says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const char *why = unfit(node);
    if (why) return cnr_refuse(out, why);
    out->prepared = 1u << 1;
    out->ranges = 1u << 1;
    out->epilogue = int8_host->chain_length(node, node->outputs[0]->rank, node->outputs[0]->dim,
                                            node->n_epilogue);
    return cnr_take(node, out, 900);
}

/* Header of the blob, before the blocks of rows. Other bit widths are widened to the next of 2, 4
 * and 8. */
typedef struct packed_blob {
    int32_t bits, blocks; /* blocks: number in a row */
    float before, after;  /* the unit, as a factor of x and a factor of the sums */
    uint8_t reserved[INT8_PACKED_BYTES - 16];
} packed_blob;

/* Bits of a number as the kernel packs it: 2, 4 or 8, the first that holds the stored ones. */
static int32_t bits_of(const cnr_node *node) {
    const uint32_t stored = packed_header_of(node->inputs[1]).bits;
    return stored == 2 ? 2 : stored <= 4 ? 4 : 8;
}
/* Bytes of a packed group of INT8_PACKED_ROWS rows. */
static int64_t group_bytes(const packed_blob *b) {
    return (int64_t)b->blocks * INT8_PACKED_ROWS * INT8_PACKED_BYTES;
}

/* The head of the packed weights: bits, blocks, and the unit divided in a factor of x (if below 1)
 * or of the sums (above 1), so that neither step overflows or underflows where the product does
 * not. */
static packed_blob blob_of(const cnr_node *node) {
    const packed_header head = packed_header_of(node->inputs[1]);
    const double unit = packed_unit(&head);
    const int32_t bits = bits_of(node);
    return (packed_blob){.bits = bits,
                         .blocks = (int32_t)int8_packed_blocks(depth_of(node), bits),
                         .before = unit < 1 ? (float)unit : 1,
                         .after = unit < 1 ? 1 : (float)unit};
}

/* Sets out to the bytes of head and packed rows. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    const packed_blob blob = blob_of(node);
    (void)device;
    (void)err;
    out->alignment = 64;
    out->bytes = sizeof blob + (uint64_t)(cnr_div_up(node->inputs[1]->dim[0], INT8_PACKED_ROWS) *
                                          group_bytes(&blob));
    return CNR_OK;
}

/* Repacks the encoded numbers into data, in groups of rows, behind the head. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *data,
                          cnr_error *err) {
    const cnr_tensor *w = node->inputs[1];
    const packed_header head = packed_header_of(w);
    const packed_blob blob = blob_of(node);
    const int64_t rows = w->dim[0], depth = depth_of(node), block = int8_packed_block(blob.bits);
    const int64_t groups = cnr_div_up(rows, INT8_PACKED_ROWS);
    uint8_t *to = (uint8_t *)data + sizeof blob;
    (void)device;
    (void)err;
    memcpy(data, &blob, sizeof blob);
    memset(to, 0, (size_t)(groups * group_bytes(&blob)));
    for (int64_t r = 0; r < rows; r++) {
        uint8_t *row = to + r / INT8_PACKED_ROWS * group_bytes(&blob) +
                       r % INT8_PACKED_ROWS * INT8_PACKED_BYTES;
        for (int64_t i = 0; i < depth; i++) {
            const int64_t bit = i % block * blob.bits;
            const uint32_t code = (uint32_t)packed_number_at(w, &head, (uint64_t)(r * depth + i));
            row[i / block * INT8_PACKED_ROWS * INT8_PACKED_BYTES + bit / 8] |=
                (uint8_t)((code & ((1u << blob.bits) - 1)) << bit % 8);
        }
    }
    return CNR_OK;
}

/* Asks for workspace, in bytes, for the samples in the kernel's order; returns CNR_OK. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device;
    (void)state;
    (void)err;
    workspace->alignment = 64;
    workspace->bytes =
        (uint64_t)(node->outputs[0]->dim[0] * int8_packed_x_bytes(depth_of(node), bits_of(node)));
    return CNR_OK;
}

/* Arguments of the tasks of a run. */
typedef struct product {
    const cnr_run *run;
    const packed_blob *blob;
    const char *x; /* reordered samples, `pitch` bytes apart */
    int64_t pitch, samples, outputs, first, end;
} product;

/* Computes those rows of group `group` that lie in [p->first, p->end), for all samples. */
static void some_rows(const product *p, int64_t group) {
    const int64_t row = group * INT8_PACKED_ROWS;
    const int64_t begin = cnr_max(row, p->first), end = cnr_min(row + INT8_PACKED_ROWS, p->end);
    const uint8_t *w = (const uint8_t *)(p->blob + 1) + group * group_bytes(p->blob);
    const cnr_tensor *b = cnr_own_input(p->run->node, 2);
    for (int64_t n = 0; n < p->samples; n++) {
        const int64_t at = n * p->outputs + begin;
        float sums[INT8_PACKED_ROWS], *y = (float *)p->run->outputs[0]->data + at;
        int8_uk->packed_dot(w, p->blob->blocks, p->blob->bits, p->x + n * p->pitch, sums);
        for (int64_t r = begin; r < end; r++)
            y[r - begin] = sums[r - row] * p->blob->after + (b ? ((const float *)b->data)[r] : 0);
        cnr_chain_run(p->run->node, y, at, end - begin);
    }
}

/* Task index of the product `arg`: computes GROUPS groups of rows, or those left, from the index-th
 * part on. */
static void some_groups(void *arg, int64_t index, int32_t thread) {
    const product *p = arg;
    const int64_t begin = p->first / INT8_PACKED_ROWS + index * GROUPS;
    const int64_t end = cnr_min(begin + GROUPS, cnr_div_up(p->end, INT8_PACKED_ROWS));
    (void)thread;
    if (cnr_cancelled(p->run->stream)) return;
    for (int64_t group = begin; group < end; group++) some_rows(p, group);
}

/* Reorders the samples into the workspace, then computes the rows of the run's range on the
 * stream's threads; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const int64_t depth = node->inputs[1]->dim[1];
    const packed_blob *blob = run->blob_data;
    char *ordered = (char *)run->workspace_data;
    int64_t lo[CNR_MAX_RANK], hi[CNR_MAX_RANK];
    product p = {.run = run,
                 .blob = blob,
                 .x = ordered,
                 .pitch = int8_packed_x_bytes(depth, blob->bits),
                 .samples = run->outputs[0]->dim[0],
                 .outputs = run->outputs[0]->dim[1]};
    (void)err;
    cnr_range_of(run, lo, hi);
    p.first = lo[1];
    p.end = hi[1];
    for (int64_t n = 0; n < p.samples; n++)
        int8_uk->packed_order((const float *)node->inputs[0]->data + n * depth, depth, blob->bits,
                              blob->before, ordered + n * p.pitch);
    const int64_t groups = cnr_div_up(p.end, INT8_PACKED_ROWS) - p.first / INT8_PACKED_ROWS;
    cnr_parallel(run->stream, cnr_div_up(groups, GROUPS), some_groups, &p);
    return CNR_OK;
}

static const char *const encodings[] = {"", "int8", "", NULL};

/* Defines kernel `variable`, named kernel_name, of operator op_name on encoded weights. */
#define KERNEL(variable, kernel_name, op_name) \
    const cnr_kernel variable = {.size = sizeof(cnr_kernel), \
                                 .version = 1, \
                                 .name = kernel_name, \
                                 .op = op_name, \
                                 .device = "cpu", \
                                 .encodings = encodings, \
                                 .accepts = accepts, \
                                 .prepare_size = prepare_size, \
                                 .prepare = prepare, \
                                 .plan = plan, \
                                 .run = run}
KERNEL(int8_packed_dense, "dense_f32_few_bits", "dense");
KERNEL(int8_packed_gemm, "gemm_f32_few_bits", "gemm");
