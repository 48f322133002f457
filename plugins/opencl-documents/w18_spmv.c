/* dense with a pruned weight by W18's algorithm 3.7. */
#include "documents.h"

#include "rows.h"

/* What plan keeps for run: the code and where the packed matrix's parts lie. */
typedef struct spmv_state {
    const ocl_code *code;
    csr_rows_layout layout;
} spmv_state;

/* Takes products by a weight in compressed sparse rows. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const char *why = csr_rows_unfit(node);
    if (!why && cnr_count(node->inputs[0]) > INT32_MAX) why = OCL_WANTS_F32;
    CNR_TRY(documents_answer(device, node, why, out));
    out->prepared = out->score > 0 ? 1u << 1 : 0;
    return CNR_OK;
}

/* Method prepare: packs the node's weights into blob. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    (void)device;
    return csr_rows_make(node, blob, ocl_host, err);
}

/* Method plan: finds the device code and keeps what run needs in *state. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    ocl_plan p;
    (void)workspace;
    spmv_state *s = ocl_plan_begin(&p, device, node, sizeof *s, err);
    if (!s) return CNR_E_MEMORY;
    const csr_matrix m = csr_view(node->inputs[1]->data);
    s->layout = csr_rows_layout_of(&m);
    ocl_plan_code(&p, &documents_w18_source, "spmv", &s->code);
    return ocl_plan_end(&p, state);
}

/* Method run: queues the code over the run's range on its stream. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const spmv_state *s = run->state;
    const cnr_node *node = run->node;
    const cnr_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const cnr_tensor *bias = cnr_own_input(node, 2);
    const int64_t size[4] = {weight->dim[0], weight->dim[1], bias != NULL};
    const int64_t places[2] = {(int64_t)s->layout.index_at, (int64_t)s->layout.value_at};
    ocl_call call;
    ocl_begin(&call, run->stream, s->code);
    ocl_arg_buffer(&call, &x->mem);
    ocl_arg_buffer(&call, run->blob);
    ocl_arg_buffer(&call, bias ? &bias->mem : &x->mem);
    ocl_arg_buffer(&call, &run->outputs[0]->mem);
    ocl_arg_longs(&call, size, 4);
    ocl_arg_longs(&call, places, 2);
    return ocl_launch(&call, weight->dim[0], x->dim[0], 1, ocl_of(run->stream->device)->tune->line,
                      err);
}

static const char *const encodings[] = {"", "sparse-csr", "", NULL};

const cnr_kernel documents_w18_spmv = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "dense_f32_w18_csr_gpu",
    .op = "dense",
    .device = "opencl",
    .flags = CNR_KERNEL_BY_NAME_ONLY | CNR_KERNEL_SKIPS_ZEROS,
    .encodings = encodings,
    .accepts = accepts,
    .prepare_size = csr_rows_prepare_size,
    .prepare = prepare,
    .plan = plan,
    .plan_free = ocl_free_state,
    .run = run,
};
