/* dense with a pruned weight by W18's algorithm 3.7: rows as ptr, indices and data. */
#include "documents.h"

#include "rows.h"

/* Takes dense layers with a constant matrix, which it prepares as sparse rows; for others out->why
 * says why. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    const char *why = csr_rows_unfit(node);
    if (why) return cnr_refuse(out, why);
    out->prepared = 1u << 1;
    return cnr_take(node, out, 1);
}

/* Stores the weight as sparse rows. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    (void)device;
    return csr_rows_make(node, blob, documents_host, err);
}

/* Multiplies the sparse rows with the input; returns CNR_OK. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const cnr_tensor *b = cnr_own_input(node, 2);
    const int64_t rows = weight->dim[0], columns = weight->dim[1];
    const uint32_t *ptr = (const uint32_t *)run->blob_data, *indices = ptr + rows + 1;
    const float *data = (const float *)(const void *)(indices + ptr[rows]);
    const float *bias = b ? (const float *)b->data : NULL, *vec = (const float *)x->data;
    float *out = (float *)run->outputs[0]->data;
    (void)err;
    for (int64_t n = 0; n < x->dim[0]; n++, vec += columns)
        for (int64_t row = 0; row < rows; row++) {
            float tmp = 0.0f;
            for (uint32_t j = ptr[row]; j < ptr[row + 1]; j++) tmp += data[j] * vec[indices[j]];
            *out++ = bias ? tmp + bias[row] : tmp;
        }
    return CNR_OK;
}

static const char *const encodings[] = {"", "sparse-csr", "", NULL};

const cnr_kernel documents_spmv = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "dense_f32_w18_csr",
    .op = "dense",
    .device = "cpu",
    .flags = CNR_KERNEL_BY_NAME_ONLY | CNR_KERNEL_SKIPS_ZEROS,
    .encodings = encodings,
    .accepts = accepts,
    .prepare_size = csr_rows_prepare_size,
    .prepare = prepare,
    .run = run,
};
