/* Slices of a step, under a memory bound: a layer whose packed weights are large runs channel range
 * by channel range of its output, with a blob for each. A slice is a node of its own, whose tensors
 * are parts of the step's. So it needs no support by kernels: operators tell which part of each
 * input a range reads (input_range), and kernels are asked whether they take the slice. */
#include "plan/planner.h"

enum { LEAST_ROWS = 16 };

/* Cuts the tensor, in place, down to [begin, end) on `axis`; false: they don't lie side by side. */
static bool narrow(cnr_tensor *t, int32_t axis, int64_t begin, int64_t end) {
    const int64_t block = t->block > 1 ? t->block : 1;
    if (axis < 0 || (begin == 0 && end == t->dim[axis])) return true;
    if (t->encoding || t->quant || end > t->dim[axis] || cnr_span(t, 0, axis) != 1) return false;
    if (begin % block || end % block || (block > 1 && axis != 1)) return false;
    const uint64_t bits = (uint64_t)cnr_span(t, axis + 1, t->rank) * cnr_dtype_bits(t->dtype);
    const uint64_t offset = (uint64_t)begin * bits / 8;
    if (bits % 8) return false;
    if (t->data) t->data = (char *)t->data + offset;
    t->mem.offset += offset;
    t->dim[axis] = end - begin;
    t->bytes = cnr_dense_bytes(t);
    return true;
}

/* The part of input i that the channels [begin, end) read; false: they can't be cut out. Values are
 * read whole, since attributes such as the number of groups stay. */
static bool part_of(const cnr_plan *plan, const cnri_step *s, int32_t i, cnr_input_range *r) {
    const cnr_node *own = &plan->graph->nodes.at[s->node]->view;
    const cnr_tensor *t = s->view.inputs[i], *y = s->view.outputs[0];
    const cnr_input_range all = {-1, 0, 0}, channels = *r;
    *r = all;
    if (i >= own->n_inputs) {
        if (cnr_same_shape(t, y)) *r = channels;
        return r->axis >= 0 || cnr_count(t) == 1;
    }
    own->desc->input_range(&s->view, 1, channels.begin, channels.end, i, r);
    return r->axis < 0 || cnri_is_weight(plan->graph, plan->homes.at[s->in[i]].value);
}

/* Sets the slice's epilogues: the operators behind the node, with channels begin..end of their
 * tensors. False: it can't be. */
static bool narrow_links(const cnr_node *whole, int64_t begin, int64_t end, cnri_slice *out) {
    const cnr_tensor *y = whole->outputs[0];
    for (int32_t i = 0; i < whole->n_epilogue; i++) {
        cnri_slice_link *link = &out->links[i];
        link->epilogue = *whole->epilogue[i];
        link->node = *link->epilogue.node;
        const int32_t n = link->node.n_inputs;
        if (n > CNRI_SLICE_PORTS || !cnr_same_shape(link->node.outputs[0], y)) return false;
        for (int32_t k = 0; k <= n; k++) {
            const cnr_tensor *t = k < n ? link->node.inputs[k] : link->node.outputs[0];
            link->at[k] = t ? &link->tensors[k] : NULL;
            if (!t) continue;
            link->tensors[k] = *t;
            if (cnr_same_shape(t, y) && !narrow(&link->tensors[k], 1, begin, end)) return false;
        }
        link->node.inputs = link->at;
        link->node.outputs = &link->at[n];
        link->epilogue.node = &link->node;
        out->epilogue[i] = &link->epilogue;
    }
    out->node.epilogue = out->epilogue;
    return true;
}

bool cnri_slice_make(const cnr_plan *plan, const cnri_step *s, const cnr_node *whole, int32_t index,
                     cnri_slice *out) {
    const int64_t begin = index * s->slice, end = begin + s->slice;
    cnr_tensor *y = &out->tensors[s->n_in];
    out->node = *whole;
    for (int32_t i = 0; i < s->n_in; i++) {
        cnr_input_range r = {1, begin, end};
        out->inputs[i] = NULL;
        if (!whole->inputs[i]) continue;
        out->tensors[i] = *whole->inputs[i];
        out->inputs[i] = &out->tensors[i];
        if (!part_of(plan, s, i, &r) || !narrow(&out->tensors[i], r.axis, r.begin, r.end))
            return false;
    }
    *y = *whole->outputs[0];
    out->outputs[0] = y;
    out->node.inputs = out->inputs;
    out->node.outputs = (const cnr_tensor *const *)out->outputs;
    return narrow(y, 1, begin, end) && narrow_links(whole, begin, end, out);
}

/* True if the kernel computes the slice as it would the whole: with these layouts and operators. */
static bool is_taken(const cnr_plan *plan, const cnri_step *s) {
    cnri_slice part;
    int32_t blocks[CNRI_SLICE_INPUTS + 1], classes[CNRI_SLICE_INPUTS + 1] = {0};
    if (!cnri_slice_make(plan, s, &s->view, 0, &part)) return false;
    for (int32_t i = 0; i < s->n_in; i++) blocks[i] = part.inputs[i] ? part.inputs[i]->block : 0;
    blocks[s->n_in] = 0;
    cnr_accept a = {.size = sizeof a, .in_block = blocks, .in_class = classes};
    a.out_block = &blocks[s->n_in];
    a.out_class = &classes[s->n_in];
    if (s->kernel->accepts(plan->devices[s->device], &part.node, &a) || a.score <= 0) return false;
    for (int32_t i = 0; i < s->n_in; i++)
        if (part.inputs[i] && blocks[i] != part.inputs[i]->block) return false;
    return blocks[s->n_in] == part.outputs[0]->block && a.epilogue == s->view.n_epilogue &&
           a.prepared == s->prepared && classes[s->n_in] == 0;
}

/* True if late weights have the slice's channels as rows, since they are computed row by row. */
static bool has_rows(const cnr_plan *plan, const cnri_step *s) {
    for (int32_t i = 0; i < s->n_in; i++) {
        const cnr_value v = s->in[i] < 0 ? -1 : plan->homes.at[s->in[i]].value;
        const cnri_late *late = v < 0 ? NULL : plan->graph->values.at[v].late;
        if (late && (late->axis != 0 || s->view.inputs[i]->dim[0] != s->view.outputs[0]->dim[1]))
            return false;
    }
    return true;
}

int32_t cnri_slice_most(const cnr_node *node) {
    const cnr_tensor *y = node->n_outputs == 1 ? node->outputs[0] : NULL;
    cnr_input_range r = {-1, 0, 0};
    if (!y || y->rank < 2 || cnr_span(y, 0, 1) != 1 || !CNRI_HAS(node->desc, input_range)) return 1;
    node->desc->input_range(node, 1, 0, cnr_min(LEAST_ROWS, y->dim[1]), 0, &r);
    return r.axis >= 0 ? 1 : (int32_t)cnr_max(1, y->dim[1] / LEAST_ROWS);
}

void cnri_slice_choose(const cnr_plan *plan, cnri_step *s, uint64_t most) {
    const cnr_device *device = plan->devices[s->device];
    const cnr_tensor *y = s->view.outputs[0];
    cnr_space space = {.size = sizeof space};
    if (!s->kernel || !CNRI_HAS(s->kernel, prepare_size) || cnri_is_async(device)) return;
    if (s->n_in > CNRI_SLICE_INPUTS || s->view.n_epilogue > CNRI_SLICE_LINKS || s->n_out != 1 ||
        s->range_axis >= 0 || s->view.subgraph)
        return;
    if (!CNRI_HAS(s->view.desc, input_range) || s->passes || y->rank < 2 || !has_rows(plan, s))
        return;
    if (s->kernel->prepare_size(device, &s->view, &space, NULL) || !cnri_is_host(device)) return;
    uint64_t bytes = space.bytes; /* at the same time as what it is made of */
    for (int32_t i = 0; i < s->n_in && bytes; i++)
        if (s->in[i] >= 0 && cnri_step_prepares(s, i)) {
            const bool late = plan->graph->values.at[plan->homes.at[s->in[i]].value].late;
            bytes += (late ? 2 : 1) * cnr_dense_bytes(s->view.inputs[i]);
        }
    int32_t best = 0; /* the fewest slices that are small enough, else the most */
    for (int32_t n = 2; n <= y->dim[1] / LEAST_ROWS && bytes > most; n++) {
        if (y->dim[1] % n) continue;
        s->slices = n;
        s->slice = y->dim[1] / n;
        if (is_taken(plan, s)) best = n;
        if (best == n && bytes / (uint64_t)n <= most) break;
    }
    s->slices = best;
    s->slice = best ? y->dim[1] / best : 0;
}
