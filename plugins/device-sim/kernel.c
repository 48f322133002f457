/* One kernel for all operators: the references compute the result, the model the time. */
#include "sim.h"

/* ---- supported nodes ---- */

static int plain(const cnr_tensor *t) { return !t || (!t->encoding && t->block <= 1); }

/* 1 if the operator has a reference that can compute it. */
static int can_run(const cnr_op *op) {
    return op->size >= offsetof(cnr_op, reference) + sizeof op->reference && op->reference;
}

/* Number of epilogue links that the references can apply in place. */
static int32_t chain_of(const cnr_node *node) {
    const cnr_tensor *first = node->outputs[0];
    int32_t n = 0;
    for (; n < node->n_epilogue; n++) {
        const cnr_node *e = node->epilogue[n]->node;
        const uint32_t want = CNR_OP_ELEMENTWISE | CNR_OP_RANGES;
        if ((e->desc->flags & want) != want || !can_run(e->desc) || e->n_outputs != 1) break;
        if (e->outputs[0]->dtype != first->dtype || !cnr_same_shape(e->outputs[0], first)) break;
        if (e->n_inputs > 2 && node->epilogue[n]->operand < 0) break;
    }
    return node->n_outputs == 1 && node->desc->flags & CNR_OP_RANGES ? n : 0;
}

/* Bits of the axes along which a node can be divided. */
static uint32_t axes_of(const cnr_node *node) {
    cnr_split_axis axes[CNR_MAX_RANK];
    const cnr_op *op = node->desc;
    uint32_t bits = 0;
    if (!(op->flags & CNR_OP_RANGES) || node->n_outputs != 1) return 0;
    if (op->flags & CNR_OP_ELEMENTWISE) return (1u << CNR_MAX_RANK) - 1;
    if (!op->split_axes) return 0;
    const int32_t n = op->split_axes(node, axes, CNR_MAX_RANK);
    for (int32_t i = 0; i < n && i < CNR_MAX_RANK; i++)
        if (axes[i].axis >= 0 && axes[i].axis < CNR_MAX_RANK) bits |= 1u << axes[i].axis;
    return bits;
}

/* ---- amount of work ---- */

/* Adds the floating-point operations of a node to *work. */
static void add_cost(const cnr_node *node, sim_work *work) {
    cnr_cost cost = {0};
    if (node->desc->cost) node->desc->cost(node, &cost);
    work->products += 2.0 * (double)cost.macs;
    work->flops += 2.0 * (double)cost.macs + (double)cost.flops;
}

/* Bytes and operations of a node with what follows it. */
static sim_work work_of(const cnr_node *node) {
    sim_work work = {.op = node->desc->name};
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]) work.bytes += (double)cnr_dense_bytes(node->inputs[i]);
    for (int32_t i = 0; i < node->n_outputs; i++)
        if (node->outputs[i]) work.bytes += (double)cnr_dense_bytes(node->outputs[i]);
    cnr_node head = *node;
    head.n_epilogue = 0;
    add_cost(&head, &work);
    for (int32_t i = 0; i < node->n_epilogue; i++) add_cost(node->epilogue[i]->node, &work);
    return work;
}

/* ---- the answer ---- */

/* Takes any node with a reference and dense tensors. */
static cnr_status accepts(const cnr_device *device, const cnr_node *node, cnr_accept *out) {
    for (int32_t i = 0; i < node->n_inputs; i++)
        if (!plain(node->inputs[i])) return CNR_OK;
    if (!can_run(node->desc)) return CNR_OK;
    for (int32_t i = 0; i < node->n_inputs; i++) out->in_block[i] = 0;
    out->score = 100;
    out->epilogue = chain_of(node);
    out->ranges = axes_of(node);
    const sim_work work = work_of(node);
    sim_lock();
    if (sim_extrapolates(sim_of(device), device->index, &work))
        out->flags |= CNR_ACCEPT_EXTRAPOLATED;
    sim_unlock();
    return CNR_OK;
}

/* ---- scratch: for the references, and for tensors that point to the data ---- */

static uint64_t rounded(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Returns the bytes of workspace that the node or an operator behind it needs, the largest. */
static uint64_t scratch_of(const cnr_node *node) {
    uint64_t most = 0;
    if (node->desc->reference_workspace) most = node->desc->reference_workspace(node);
    for (int32_t i = 0; i < node->n_epilogue; i++) {
        const cnr_node *e = node->epilogue[i]->node;
        const uint64_t bytes = e->desc->reference_workspace ? e->desc->reference_workspace(e) : 0;
        if (bytes > most) most = bytes;
    }
    return rounded(most);
}

/* Asks for that workspace and for copies of the tensors. */
static cnr_status plan(const cnr_device *device, const cnr_node *node, cnr_space *workspace,
                       void **state, cnr_error *err) {
    (void)device, (void)err;
    const uint64_t tensors = (uint64_t)(node->n_inputs + node->n_outputs);
    workspace->bytes = scratch_of(node) + tensors * (sizeof(cnr_tensor) + sizeof(cnr_tensor *));
    *state = NULL;
    return CNR_OK;
}

/* ---- results ---- */

/* Address of a tensor's data, in device memory or the host's. */
static void *data_of(const cnr_tensor *t) {
    return t->mem.handle ? (char *)t->mem.handle + t->mem.offset : t->data;
}

/* Applies an epilogue link by its operator's reference to `out`, in place. */
static cnr_status run_link(const cnr_run *run, const cnr_epilogue *e, cnr_tensor *const *in,
                           cnr_tensor *out, cnr_error *err) {
    const cnr_tensor *inputs[8] = {0};
    cnr_tensor *const outputs[1] = {out};
    cnr_node node = *e->node;
    for (int32_t i = 0; i < node.n_inputs && i < 8; i++)
        inputs[i] = i == e->chain_port                  ? out
                    : e->operand >= 0 && node.inputs[i] ? in[e->operand]
                                                        : node.inputs[i];
    node.inputs = inputs;
    node.outputs = (const cnr_tensor *const *)outputs;
    cnr_run part = *run;
    part.node = &node;
    part.outputs = outputs;
    return node.desc->reference(&part, err);
}

/* Computes the node by references, so that results are real. */
static cnr_status compute(const cnr_run *run, cnr_error *err) {
    const cnr_node *given = run->node;
    const int32_t n_in = given->n_inputs, n_out = given->n_outputs;
    char *at = (char *)run->workspace->handle + run->workspace->offset;
    cnr_tensor *tensors = (cnr_tensor *)(at + scratch_of(given));
    cnr_tensor **list = (cnr_tensor **)(tensors + n_in + n_out);
    for (int32_t i = 0; i < n_in + n_out; i++) {
        const cnr_tensor *t = i < n_in ? given->inputs[i] : run->outputs[i - n_in];
        list[i] = t ? &tensors[i] : NULL;
        if (!t) continue;
        tensors[i] = *t;
        tensors[i].data = data_of(t);
    }
    cnr_node node = *given;
    int32_t operands = 0;
    for (int32_t i = 0; i < given->n_epilogue; i++) operands += given->epilogue[i]->operand >= 0;
    node.n_inputs = n_in - operands;
    node.n_epilogue = 0;
    node.inputs = (const cnr_tensor *const *)list;
    node.outputs = (const cnr_tensor *const *)(list + n_in);
    cnr_run part = *run;
    part.node = &node;
    part.outputs = list + n_in;
    part.blob = NULL;
    part.workspace_data = at;
    cnr_status status = node.desc->reference(&part, err);
    for (int32_t i = 0; i < given->n_epilogue && !status; i++)
        status = run_link(&part, given->epilogue[i], list, list[n_in], err);
    for (int32_t i = 0; i < n_out && !status; i++) /* those whose size is known only now */
        if (list[n_in + i])
            memcpy(run->outputs[i]->dim, tensors[n_in + i].dim, sizeof tensors[0].dim);
    return status;
}

/* ---- time ---- */

/* Lets the time and energy of the node, or its part, pass on the simulated unit of the stream. */
static void charge(const cnr_run *run) {
    const cnr_node *node = run->node;
    const cnr_device *device = run->stream->device;
    sim_stream *s = run->stream->state;
    sim_work work = work_of(node);
    work.part = run->range_axis >= 0;
    if (work.part) {
        const int64_t all = run->outputs[0]->dim[run->range_axis];
        const double part = (double)(run->range_end - run->range_begin);
        const double share = all > 0 ? part / (double)all : 0;
        work.flops *= share;
        work.products *= share;
        work.bytes *= share;
    }
    sim_machine *m = sim_of(device);
    const uint64_t now = sim_now() + (uint64_t)(m->units[device->index].latency * 1e9);
    sim_lock();
    s->ready = sim_work_on(m, device->index, s->ready > now ? s->ready : now, &work);
    sim_unlock();
}

/* Computes the node unless the machine is dry, and lets its time pass. */
static cnr_status run(const cnr_run *run, cnr_error *err) {
    const int empty = run->range_axis >= 0 && run->range_begin >= run->range_end;
    if (empty) return CNR_OK;
    if (!sim_of(run->stream->device)->dry) {
        const cnr_status status = compute(run, err);
        if (status) return status;
    }
    charge(run);
    return CNR_OK;
}

const cnr_kernel sim_kernel = {
    .size = sizeof(cnr_kernel),
    .version = 1,
    .name = "simulated",
    .op = CNR_ANY_OP,
    .device = "sim",
    .accepts = accepts,
    .plan = plan,
    .run = run,
};
