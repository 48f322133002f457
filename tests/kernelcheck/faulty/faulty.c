/* Kernels that compute by the operator's reference and then do one thing wrong: what kernelcheck is
 * for. `sound` does nothing wrong. */
#include "faulty.h"
#include <math.h>

const cnr_host *faulty_host;

/* Any node of f32 with one output of some size. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    (void)device;
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i] && node->inputs[i]->dtype != CNR_f32) return CNR_OK;
    if (node->n_outputs != 1 || cnr_count(node->outputs[0]) < 2) return CNR_OK;
    out->score = 10;
    for (int32_t i = 0; i < node->n_inputs; i++) out->in_block[i] = 0;
    return CNR_OK;
}

/* Method accepts that also takes ranges. */
static cnr_status accepts_ranges(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_status status = accepts(device, node, out);
    out->ranges = 0xff;
    return status;
}

/* Takes links of one operand along. */
static cnr_status accepts_chain(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const cnr_status status = accepts(device, node, out);
    for (int32_t i = 0; i < node->n_epilogue; i++) {
        if (!node->epilogue[i]->node->desc->apply_f32 || node->epilogue[i]->operand >= 0) break;
        if (node->epilogue[i]->node->outputs[0]->dtype != CNR_f32) break;
        out->epilogue = i + 1;
    }
    return status;
}

/* The weight is copied by prepare. */
static cnr_status accepts_prepared(const cnr_device *device, const cnr_node *node,
                                   cnr_accept *out) {
    const cnr_tensor *w = node->n_inputs > 1 ? node->inputs[1] : NULL;
    if (!w || !(w->flags & CNR_TENSOR_CONST)) return CNR_OK;
    out->prepared = 1u << 1;
    return accepts(device, node, out);
}

/* Method prepare_size: sets out->bytes; returns CNR_OK. */
static cnr_status prepare_size(const cnr_device *device, const cnr_node *node, cnr_space *out,
                               cnr_error *err) {
    (void)device;
    (void)err;
    out->bytes = node->inputs[1]->bytes;
    return CNR_OK;
}

/* Method prepare. */
static cnr_status prepare(const cnr_device *device, const cnr_node *node, void *blob,
                          cnr_error *err) {
    (void)device;
    (void)err;
    memcpy(blob, node->inputs[1]->data, (size_t)node->inputs[1]->bytes);
    return CNR_OK;
}

/* Fault: packs too much. */
static cnr_status prepare_too_much(const cnr_device *device, const cnr_node *node, void *blob,
                                   cnr_error *err) {
    const cnr_status status = prepare(device, node, blob, err);
    ((volatile char *)blob)[node->inputs[1]->bytes] = 1;
    return status;
}

/* ---- what is common to all ---- */

/* The right result, by the reference. */
static cnr_status right(const cnr_run *run, cnr_error *err) {
    cnr_run own = *run;
    const cnr_op *op = run->node->desc;
    const uint64_t bytes = op->reference_workspace ? op->reference_workspace(run->node) : 0;
    own.workspace_data = bytes ? faulty_host->alloc((size_t)bytes) : NULL;
    if (bytes && !own.workspace_data)
        return faulty_host->fail(err, CNR_E_MEMORY, "faulty", "no memory");
    const cnr_status status = op->reference(&own, err);
    faulty_host->free(own.workspace_data);
    return status;
}

static float *result(const cnr_run *run) { return (float *)run->outputs[0]->data; }

static int64_t last(const cnr_run *run) { return cnr_count(run->outputs[0]) - 1; }

/* ---- the faults ---- */

static cnr_status sound(const cnr_run *run, cnr_error *err) { return right(run, err); }

/* Fault: writes past the output. */
static cnr_status overrun(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    ((volatile float *)run->outputs[0]->data)[last(run) + 1] = 0;
    return status;
}

/* Fault: writes before the output. */
static cnr_status underrun(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    ((volatile float *)run->outputs[0]->data)[-1] = 0;
    return status;
}

/* Fault: leaves the last element. */
static cnr_status unwritten(const cnr_run *run, cnr_error *err) {
    const float was = result(run)[last(run)];
    const cnr_status status = right(run, err);
    result(run)[last(run)] = was;
    return status;
}

/* Padding counts as ones along the first row of each picture. */
static cnr_status border(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    int64_t n;
    const int64_t *pads = cnr_attr_ints(run->node, "pads", &n);
    const cnr_tensor *y = run->outputs[0];
    if (n > 0 && pads[0] > 0 && y->rank > 2)
        for (int64_t i = 0; i < y->dim[0] * y->dim[1]; i++)
            result(run)[i * cnr_span(y, 2, y->rank)] += 1;
    return status;
}

/* The last group is computed as the first. */
static cnr_status group(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    const int64_t groups = cnr_attr_int(run->node, "group");
    const cnr_tensor *y = run->outputs[0];
    const int64_t part = y->dim[1] / groups * cnr_span(y, 2, y->rank);
    for (int64_t n = 0; n < y->dim[0] && groups > 1; n++) {
        float *picture = result(run) + n * groups * part;
        memcpy(picture + (groups - 1) * part, picture, (size_t)part * sizeof(float));
    }
    return status;
}

/* Fault: an illegal instruction. */
static cnr_status illegal(const cnr_run *run, cnr_error *err) {
    if (run->outputs[0]->dim[0] % 2) __builtin_trap();
    return right(run, err);
}

/* Fault: a wild address. */
static cnr_status wild(const cnr_run *run, cnr_error *err) {
    const uintptr_t nowhere = (uintptr_t)run->outputs[0]->dim[0];
    if (nowhere % 2) *(volatile float *)nowhere = 1;
    return right(run, err);
}

/* Fault: does not end. */
static cnr_status endless(const cnr_run *run, cnr_error *err) {
    volatile int64_t turns = 0;
    while (run->outputs[0]->dim[0] > 2) turns++;
    return right(run, err);
}

/* Writes all of the output whatever range was asked for. */
static cnr_status range(const cnr_run *run, cnr_error *err) {
    cnr_run whole = *run;
    whole.range_axis = -1;
    return right(&whole, err);
}

/* Leaves the last index of its range out. */
/* Right as far as rounding tells, but the last bit hangs on how it is asked. */
static cnr_status unsteady(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    uint32_t bits;
    float *first = result(run) + cnr_pieces_of(run).first;
    if (run->range_axis < 0 || run->range_begin == run->range_end) return status;
    memcpy(&bits, first, sizeof bits);
    bits ^= 1u;
    memcpy(first, &bits, sizeof bits);
    return status;
}

/* Fault: leaves the last of a range. */
static cnr_status range_short(const cnr_run *run, cnr_error *err) {
    cnr_run part = *run;
    if (part.range_axis >= 0) part.range_end--;
    return right(&part, err);
}

/* Fault: writes outside of its range. */
static cnr_status clobbered(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    const cnr_tensor *x = run->node->inputs[0];
    if (x->data && cnr_count(x) > 0 && x->data != run->outputs[0]->data) ((float *)x->data)[0] += 1;
    return status;
}

/* Wrong by a thousandth in one element: no crash and no pattern. */
static cnr_status inexact(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    result(run)[last(run) / 2] *= 1.001f;
    result(run)[last(run) / 2] += 0.001f;
    return status;
}

/* Computes the node and leaves out what it said it would compute behind it. */
static cnr_status no_chain(const cnr_run *run, cnr_error *err) { return right(run, err); }

/* Right, but for what rounding may do to sums: no chain behind it may make a fault of that. */
static cnr_status rounded(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    float most = 0;
    for (int64_t i = 0; i <= last(run); i++) {
        const float v = result(run)[i];
        if (isfinite(v) && fabsf(v) > most) most = fabsf(v);
    }
    for (int64_t i = 0; i <= last(run); i++)
        result(run)[i] += i % 2 ? most * 0x1p-21f : most * -0x1p-22f;
    for (int32_t k = 0; k < run->node->n_epilogue && !status; k++) {
        const cnr_node *node = run->node->epilogue[k]->node;
        node->desc->apply_f32(node, result(run), NULL, result(run), last(run) + 1);
    }
    return status;
}

/* Passes channel blocks on, and one element with them is wrong. */
static cnr_status accepts_blocks(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    const int32_t offered = out->in_block[0];
    const cnr_status status = accepts(device, node, out);
    out->in_block[0] = out->out_block[0] = offered;
    return status;
}

/* Fault: mistakes the layout in blocks. */
static cnr_status blocked(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    if (run->outputs[0]->block > 1) result(run)[0] += 1;
    return status;
}

/* The weight was consumed by prepare; this one still looks at it. */
static cnr_status not_prepared(const cnr_run *run, cnr_error *err) { return right(run, err); }

/* Fault: uses a weight of its own. */
static cnr_status blob_changed(const cnr_run *run, cnr_error *err) {
    cnr_tensor weight = *run->node->inputs[1];
    const cnr_tensor *inputs[8];
    cnr_node node = *run->node;
    cnr_run own = *run;
    for (int32_t i = 0; i < node.n_inputs && i < 8; i++) inputs[i] = node.inputs[i];
    weight.data = run->blob_data;
    inputs[1] = &weight;
    node.inputs = inputs;
    own.node = &node;
    const cnr_status status = right(&own, err);
    ((float *)run->blob_data)[0] += 1;
    return status;
}

/* Wants one float of workspace and uses two. */
static cnr_status plan_little(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                              void **state, cnr_error *err) {
    (void)device;
    (void)node;
    (void)state;
    (void)err;
    workspace->bytes = sizeof(float);
    return CNR_OK;
}

/* Fault: writes past its scratch. */
static cnr_status workspace(const cnr_run *run, cnr_error *err) {
    ((volatile float *)run->workspace_data)[1] = 1;
    return right(run, err);
}

/* Wrong at the shape of a digit's picture alone, which no draw is likely to hit. */
static cnr_status particular(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    const cnr_tensor *x = run->node->inputs[0];
    if (x->rank == 4 && x->dim[1] == 1 && x->dim[2] == 28 && x->dim[3] == 28)
        result(run)[last(run)] += 1;
    return status;
}

/* The same shape ends the process. */
static cnr_status lethal(const cnr_run *run, cnr_error *err) {
    const cnr_tensor *x = run->node->inputs[0];
    if (x->rank == 4 && x->dim[1] == 1 && x->dim[2] == 28 && x->dim[3] == 28) __builtin_trap();
    return right(run, err);
}

/* Reads an element past the end of its input. */
static cnr_status peeking(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    const cnr_tensor *x = run->node->inputs[0];
    result(run)[last(run)] += 1e-30f * ((volatile const float *)x->data)[cnr_count(x)];
    return status;
}

/* Believes that its output begins at a page. */
static cnr_status misplaced(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    if ((uintptr_t)result(run) % 4096) result(run)[0] += 1;
    return status;
}

/* As a maximum that passes NaN over. */
static cnr_status loses_nan(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    for (int64_t i = 0; i <= last(run); i++)
        if (result(run)[i] != result(run)[i]) result(run)[i] = 0;
    return status;
}

/* What padding lanes do that are multiplied by 0: a NaN goes to the sample's other results too. */
static cnr_status spreads_nan(const cnr_run *run, cnr_error *err) {
    const cnr_status status = right(run, err);
    float sum = 0;
    for (int64_t i = 0; i <= last(run); i++) sum += result(run)[i] * 0;
    if (sum != sum) result(run)[0] = result(run)[last(run)] = sum;
    return status;
}

/* ---- an encoding that loses three of four weights ---- */

/* Method encode_size: *bytes of the image; fails unless the weight is f32. */
static cnr_status encode_size(const cnr_tensor *dense, const cnr_attr *const *attrs,
                              uint64_t *bytes, cnr_error *err) {
    (void)attrs;
    if (dense->dtype != CNR_f32)
        return faulty_host->fail(err, CNR_E_UNSUPPORTED, "faulty", "f32 is wanted");
    *bytes = cnr_dense_bytes(dense);
    return CNR_OK;
}

/* Method encode. */
static cnr_status encode(const cnr_tensor *dense, const cnr_attr *const *attrs, void *out,
                         uint64_t bytes, cnr_error *err) {
    (void)attrs;
    (void)err;
    memcpy(out, dense->data, (size_t)bytes);
    return CNR_OK;
}

/* Method check: does nothing and returns CNR_OK. */
static cnr_status check(const cnr_tensor *encoded, cnr_error *err) {
    (void)encoded;
    (void)err;
    return CNR_OK;
}

/* Method decode, with a fault. */
static cnr_status decode(const cnr_tensor *encoded, void *dense, cnr_error *err) {
    const int64_t n = cnr_count(encoded);
    (void)err;
    for (int64_t i = 0; i < n; i++)
        ((float *)dense)[i] = i % 4 ? 0 : ((const float *)encoded->data)[i];
    return CNR_OK;
}

static const cnr_encoding lossy_encoding = {.size = sizeof lossy_encoding,
                                            .version = 1,
                                            .name = "faulty-lossy",
                                            .encode_size = encode_size,
                                            .encode = encode,
                                            .check = check,
                                            .decode = decode};
static const char *const lossy_encodings[] = {"", "faulty-lossy", NULL};

/* A kernel that is right for what that decodes to. */
static cnr_status lossy(const cnr_run *run, cnr_error *err) {
    cnr_tensor weight = *run->node->inputs[1];
    const cnr_tensor *inputs[8];
    cnr_node node = *run->node;
    cnr_run own = *run;
    const uint64_t bytes = cnr_dense_bytes(&weight);
    for (int32_t i = 0; i < node.n_inputs && i < 8; i++) inputs[i] = node.inputs[i];
    void *data = faulty_host->alloc((size_t)bytes + 1);
    if (!data) return faulty_host->fail(err, CNR_E_MEMORY, "faulty", "no memory");
    decode(&weight, data, err);
    weight.data = data;
    weight.bytes = bytes;
    weight.encoding = 0;
    inputs[1] = &weight;
    node.inputs = inputs;
    own.node = &node;
    const cnr_status status = right(&own, err);
    faulty_host->free(data);
    return status;
}

/* A kernel of this fault. */
#define KERNEL(name_, op_, ...) \
    { \
        .size = sizeof(cnr_kernel), .version = 1, .name = "faulty_" #name_, .op = op_, \
        .device = "cpu", .run = name_, __VA_ARGS__ \
    }
static const cnr_kernel kernels[] = {
    KERNEL(sound, "conv", .accepts = accepts),
    KERNEL(overrun, "conv", .accepts = accepts),
    KERNEL(underrun, "softmax", .accepts = accepts),
    KERNEL(unwritten, "max_pool", .accepts = accepts),
    KERNEL(border, "conv", .accepts = accepts),
    KERNEL(group, "conv", .accepts = accepts),
    KERNEL(illegal, "relu", .accepts = accepts),
    KERNEL(wild, "add", .accepts = accepts),
    KERNEL(endless, "relu", .accepts = accepts),
    KERNEL(range, "conv", .accepts = accepts_ranges),
    KERNEL(range_short, "conv", .accepts = accepts_ranges),
    KERNEL(unsteady, "conv", .accepts = accepts_ranges),
    KERNEL(clobbered, "average_pool", .accepts = accepts),
    KERNEL(inexact, "dense", .accepts = accepts),
    KERNEL(no_chain, "conv", .accepts = accepts_chain),
    KERNEL(lossy, "dense", .accepts = accepts, .encodings = lossy_encodings),
    KERNEL(rounded, "conv", .accepts = accepts_chain),
    KERNEL(blocked, "tanh", .accepts = accepts_blocks),
    KERNEL(not_prepared, "dense", .accepts = accepts_prepared, .prepare_size = prepare_size,
           .prepare = prepare),
    KERNEL(blob_changed, "dense", .accepts = accepts_prepared, .prepare_size = prepare_size,
           .prepare = prepare),
    {.size = sizeof(cnr_kernel),
     .version = 1,
     .name = "faulty_blob_overrun",
     .op = "dense",
     .device = "cpu",
     .run = sound,
     .accepts = accepts_prepared,
     .prepare_size = prepare_size,
     .prepare = prepare_too_much},
    KERNEL(particular, "conv", .accepts = accepts),
    KERNEL(lethal, "conv", .accepts = accepts),
    KERNEL(peeking, "tanh", .accepts = accepts),
    KERNEL(misplaced, "relu", .accepts = accepts),
    KERNEL(workspace, "sigmoid", .accepts = accepts, .plan = plan_little),
    KERNEL(loses_nan, "relu", .accepts = accepts),
    KERNEL(spreads_nan, "max_pool", .accepts = accepts),
};

/* Registers all. */
static cnr_status init(const cnr_host *from, struct cnr_registrar *registrar, cnr_error *err) {
    cnr_status status = CNR_OK;
    (void)err;
    faulty_host = from;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0] && !status; i++)
        status = faulty_host->add(registrar, CNR_KIND_KERNEL, &kernels[i]);
    if (!status) status = faulty_host->add(registrar, CNR_KIND_ENCODING, &lossy_encoding);
    if (!status) status = faulty_add_ops(registrar);
    if (!status) status = faulty_add_lonely(registrar);
    return status;
}

CNR_PLUGIN_ENTRY {
    static const cnr_plugin plugin = {.size = sizeof plugin,
                                      .magic = CNR_PLUGIN_MAGIC,
                                      .abi = CNR_ABI,
                                      .signature = CNR_SIGNATURE,
                                      .name = "faulty",
                                      .version = "1",
                                      .summary = "planted faults",
                                      .licence = "MIT",
                                      .init = init};
    (void)host_abi;
    return &plugin;
}
