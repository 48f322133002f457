/* Makes the rows of a node on a device: the kernels that accept it, their layouts, and how much
 * of its chain they compute. */
#include "plan/planner.h"

/* The data that all rows of one query share. */
typedef struct query_context {
    cnri_planner *p;
    cnri_chain *chain;
    const cnri_kernel_query *q;
    const cnr_device *device;
    const char *key;
    bool offered; /* the inputs may keep the layouts that they have now */
} query_context;

/* ---- which layouts can be had ---- */

/* True if a tensor (weight: a constant one) can have this channel block and memory class on this
 * device. */
static bool layout_fits(const query_context *a, const cnr_tensor *t, bool weight, int32_t block,
                        int32_t memory_class) {
    const cnr_device *device = a->device;
    const bool split = a->q->axis >= 0;
    if (memory_class < 0 || memory_class >= device->n_memory) return false;
    const cnr_memory_class *m = &device->memory[memory_class];
    if (block > 1) {
        if (!a->p->layout || split || weight) return false;
        if (t->rank < 2 || t->dim[1] % block || cnr_dtype_bits(t->dtype) < 8) return false;
    }
    if (m->flags & CNR_MEMORY_IMAGE) {
        cnr_tensor shaped = *t;
        int64_t width, height;
        shaped.block = block;
        cnri_image_size(&shaped, &width, &height);
        if (split || width > m->max_width || height > m->max_height) return false;
    }
    return block >= 0;
}

/* True if the kernel's answer (blocks, classes, ranges) can be carried out; block 1 becomes 0. */
static bool answer_holds(const query_context *a, const cnri_view *v, const cnri_candidate *c) {
    int32_t *in_block = cnri_layout(c, CNRI_IN_BLOCK), *out_block = cnri_layout(c, CNRI_OUT_BLOCK);
    const int32_t *in_class = cnri_layout(c, CNRI_IN_CLASS);
    const int32_t *out_class = cnri_layout(c, CNRI_OUT_CLASS);
    if (a->q->axis >= 0 && !c->ranges) return false;
    for (int32_t i = 0; i < v->n_in; i++) {
        const bool gone = cnri_prepares(c->prepared, c->prepared_from, i);
        const bool weight = cnri_is_weight(a->p->graph, v->in[i]);
        if (in_block[i] == 1) in_block[i] = 0;
        if (gone && !weight) return false;
        if (v->node.inputs[i] && !gone &&
            !layout_fits(a, v->node.inputs[i], weight, in_block[i], in_class[i]))
            return false;
    }
    for (int32_t i = 0; i < v->n_out; i++) {
        if (out_block[i] == 1) out_block[i] = 0;
        if (!layout_fits(a, v->node.outputs[i], false, out_block[i], out_class[i])) return false;
    }
    return true;
}

/* Compares the encodings of the inputs with those that the kernel reads. 0: it can't read them,
 * 1: as they are, 2: once decoded. */
static int32_t encodings_fit(const cnr_kernel *k, const cnri_view *v) {
    const char *const *names = CNRI_HAS(k, encodings) ? k->encodings : NULL;
    bool as_is = true, dense = true;
    for (int32_t i = 0; i < v->n_in; i++) {
        const char *want = names && *names ? *names++ : "";
        if (!v->node.inputs[i]) continue;
        if (strcmp(want, cnri_name(v->node.inputs[i]->encoding)) != 0) as_is = false;
        if (want[0]) dense = false;
    }
    return as_is ? 1 : dense ? 2 : 0;
}

/* Fills blocks and classes with the layouts that the inputs have on the device now; plain if
 * `offered` is false. */
static void offer(const query_context *a, const cnri_view *v, bool offered, int32_t *blocks,
                  int32_t *classes) {
    const cnri_planner *p = a->p;
    for (int32_t i = 0; i < v->n_in; i++) {
        blocks[i] = classes[i] = 0;
        if (!offered || v->in[i] < 0 || v->in[i] >= p->n_offers) continue;
        if (p->offers[v->in[i]].device != a->q->device) continue;
        blocks[i] = p->offers[v->in[i]].block;
        classes[i] = p->offers[v->in[i]].memory_class;
    }
}

/* True if any input's layout is not plain; otherwise offering it repeats the plain query. */
static bool worth_offering(const query_context *a) {
    const cnri_chain *c = a->chain;
    for (int32_t i = 0; i < c->n_in[a->q->cap]; i++) {
        const cnr_value v = c->in[i];
        if (v < 0 || v >= a->p->n_offers || a->p->offers[v].device != a->q->device) continue;
        if (a->p->offers[v].block || a->p->offers[v].memory_class) return true;
    }
    return false;
}

/* ---- blocks that pass through ---- */

/* The channel block in which an element-wise node can process its operands unchanged; 0: none. */
static int32_t passing_block(const query_context *a, const cnri_view *v) {
    const cnri_planner *p = a->p;
    int32_t block = 0;
    if (!p->layout || a->q->axis >= 0 || v->n_out != 1) return 0;
    if (!(v->node.desc->flags & CNR_OP_ELEMENTWISE)) return 0;
    for (int32_t i = 0; i < v->n_chain; i++)
        if (!(v->node.epilogue[i]->node->desc->flags & CNR_OP_ELEMENTWISE)) return 0;
    for (int32_t i = 0; i < v->n_in; i++) {
        const cnr_tensor *t = v->node.inputs[i];
        if (!t || cnr_count(t) == 1) continue;
        if (!cnr_same_shape(t, v->node.outputs[0]) || cnri_is_weight(p->graph, v->in[i])) return 0;
        const cnri_offer *o = &p->offers[v->in[i]];
        if (!block && o->device == a->q->device && o->memory_class == 0) block = o->block;
    }
    return block > 1 ? block : 0;
}

/* Lets a candidate that works on any layout keep the block of its inputs, so that no conversion is
 * needed. */
static void pass_block(const query_context *a, cnri_candidate *c) {
    const cnri_view v = cnri_view_of(a->p, a->chain, c->n_chain, false);
    const int32_t block = passing_block(a, &v);
    if (!block) return;
    int32_t *in = cnri_layout(c, CNRI_IN_BLOCK);
    for (int32_t i = 0; i < v.n_in; i++)
        in[i] = v.node.inputs[i] && cnr_count(v.node.inputs[i]) != 1 ? block : 0;
    cnri_layout(c, CNRI_OUT_BLOCK)[0] = block;
    c->passes = true;
}

/* ---- what a row costs ---- */

/* Estimated ns to convert the inputs from the layouts in which they are offered. */
static double conversion_ns(const query_context *a, const cnri_view *v, const cnri_candidate *c) {
    const int32_t *block = cnri_layout(c, CNRI_IN_BLOCK), *memory = cnri_layout(c, CNRI_IN_CLASS);
    const double rate = cnri_conversion_rate(cnri_is_host(a->device));
    double ns = 0;
    for (int32_t i = 0; i < v->n_in; i++) {
        const cnr_value value = v->in[i];
        if (value < 0 || value >= a->p->n_offers || cnri_is_weight(a->p->graph, value)) continue;
        const cnri_offer *o = &a->p->offers[value];
        /* an operand that is computed later may still get the layout that the kernel wants */
        if (o->device < 0 && a->p->graph->values.at[value].producer >= 0) continue;
        const bool here = o->device == c->device;
        if (block[i] != (here ? o->block : 0) || memory[i] != (here ? o->memory_class : 0))
            ns += rate * (double)cnr_dense_bytes(v->node.inputs[i]);
    }
    return ns;
}

/* Cost guesses, used where neither the record nor the kernel gives a time. A good kernel does 10
 * billion multiply-accumulates a second on one core and reads 10 GB/s; references do a tenth of
 * that. Each call has a fixed cost. */
#define GUESS_NS_A_MAC 0.1
#define GUESS_NS_A_BYTE 0.1
#define GUESS_NS_A_PACKED_BYTE 0.35
#define GUESS_NS_A_CALL 1e3
#define GUESS_NS_A_CALL_AWAY 2e4 /* for a device that is not the host */

double cnri_guess_ns(const cnr_device *d, int32_t score, uint64_t bytes, uint64_t flops) {
    const double units = score && d->concurrency > 0 ? d->concurrency : 1;
    const double worse = score ? 2 - score / 1000.0 : 10;
    const double macs = (double)flops / 2 * GUESS_NS_A_MAC * worse / units;
    return (cnri_is_host(d) ? GUESS_NS_A_CALL : GUESS_NS_A_CALL_AWAY) +
           (double)bytes * GUESS_NS_A_BYTE * (score ? 1 : 10) + macs;
}

/* *bytes that the view's nodes read and write, and their *flops, where `own` is the first node;
 * as_stored: for an encoded weight only the stored part of these counts. */
void cnri_count_work(const cnri_view *v, const cnr_node *own, bool as_stored, uint64_t *bytes,
                     uint64_t *flops) {
    *bytes = 0;
    for (int32_t i = 0; i < v->n_in; i++) *bytes += cnri_stored_bytes(v->node.inputs[i]);
    for (int32_t i = 0; i < v->n_out; i++) *bytes += cnri_stored_bytes(v->node.outputs[i]);
    const double part = as_stored ? cnri_stored_share(&v->node) : 1;
    *flops = 2 * (uint64_t)(part * (double)cnri_node_macs(own));
    for (int32_t i = 0; i < v->n_chain; i++) *flops += 2 * cnri_node_macs(cnri_taken(&v->node, i));
}

/* Estimated ns of a candidate that was never timed. */
static double guess_of(const query_context *a, const cnri_view *v, const cnri_candidate *c) {
    uint64_t bytes, flops;
    const cnr_node *own = &a->p->graph->nodes.at[a->chain->node]->view;
    cnri_count_work(v, own, !c->dense, &bytes, &flops);
    return cnri_guess_ns(a->device, c->score, bytes, flops);
}

/* Sets the cost of a row: the recorded time of the whole chain; else the kernel's estimate, plus
 * a pass over memory for each operator of the chain that it leaves. */
static void find_cost(const query_context *a, const cnri_view *v, double estimate,
                      cnri_candidate *c) {
    const cnri_timed *seen =
        *a->key ? cnri_tuning_find(a->p->options->tuning, a->key, cnri_candidate_name(c)) : NULL;
    c->cost = (cnri_cost){0};
    c->around_ns = 0;
    if (seen) c->cost = seen->cost;
    else if (estimate > 0) c->cost = (cnri_cost){.from = CNRI_ESTIMATED, .ns = estimate};
    else {
        c->guess_ns = c->score ? guess_of(a, v, c) : 0;
        return;
    }
    c->around_ns = conversion_ns(a, v, c);
    if (!seen)
        c->around_ns += cnri_conversion_rate(true) * (a->q->cap - c->n_chain) *
                        (double)cnr_dense_bytes(v->node.outputs[0]);
}

/* ---- asking ---- */

/* True if this kernel did not return when it was timed. */
static bool hangs(const query_context *a, const cnr_kernel *k) {
    const cnri_timed *seen = *a->key && !a->q->forced_name
                                 ? cnri_tuning_find(a->p->options->tuning, a->key, k->name)
                                 : NULL;
    return seen && seen->cost.ns >= CNRI_TUNING_HANGS;
}

/* Asks a kernel to compute as much of the chain as it can; offered: with the offered layouts.
 * *takes false: it refuses the node. */
static cnr_status ask(const query_context *a, const cnr_kernel *k, bool offered, cnri_candidate *c,
                      bool *takes, cnr_error *err) {
    *takes = false;
    for (int32_t take = a->q->cap; take >= 0;) {
        cnri_view v = cnri_view_of(a->p, a->chain, take, false);
        if (encodings_fit(k, &v) != (c->dense ? 2 : 1)) return CNR_OK;
        const cnr_status status = c->dense ? cnri_chain_decode(a->p, a->chain, err) : CNR_OK;
        if (status) return status;
        if (c->dense) v = cnri_view_of(a->p, a->chain, take, true);
        c->n_in = v.n_in;
        c->n_out = v.n_out;
        cnr_accept answer = {.size = sizeof answer,
                             .in_block = cnri_layout(c, CNRI_IN_BLOCK),
                             .in_class = cnri_layout(c, CNRI_IN_CLASS),
                             .out_block = cnri_layout(c, CNRI_OUT_BLOCK),
                             .out_class = cnri_layout(c, CNRI_OUT_CLASS)};
        offer(a, &v, offered && a->q->axis < 0, answer.in_block, answer.in_class);
        memset(answer.out_block, 0, 2 * (size_t)v.n_out * sizeof *answer.out_block);
        cnr_status refused;
        CNRI_DURING(refused, k->accepts(a->device, &v.node, &answer), .verb = "asking kernel",
                    .descriptor = k, .name = k->name, .node = v.node.name,
                    .device = a->device->name);
        if (refused || answer.score <= 0) {
            a->p->rows.refusal = answer.why;
            return CNR_OK;
        }
        if (answer.epilogue < take &&
            !a->chain->region) { /* asks again for exactly the operators that it accepted */
            take = answer.epilogue < 0 ? 0 : answer.epilogue;
            continue;
        }
        c->n_chain = take;
        c->prepared = answer.prepared;
        c->splits = answer.ranges;
        c->extrapolated = (answer.flags & CNR_ACCEPT_EXTRAPOLATED) != 0;
        c->ranges = a->q->axis >= 0 && (answer.ranges >> a->q->axis & 1);
        if (a->chain->region && CNRI_HAS(k, prepare)) c->prepared_from = v.node.subgraph->n_varying;
        /* The operand that does not fit may belong to a later operator of the chain. */
        if (!answer_holds(a, &v, c)) {
            if (a->chain->region) return CNR_OK;
            take--;
            continue;
        }
        c->score = answer.score > 1000 ? 1000 : answer.score;
        find_cost(a, &v, answer.cost_ns, c);
        pass_block(a, c);
        *takes = true;
        return CNR_OK;
    }
    return CNR_OK;
}

/* Starts the next free row (device, kernel, way) and returns it; the caller counts it. The rows own
 * it. */
static cnri_candidate *blank(const query_context *a, const cnr_kernel *k, int32_t way) {
    cnri_rows *rows = &a->p->rows;
    cnri_candidate *c = &rows->at[rows->n];
    *c = (cnri_candidate){.device = a->q->device, .kernel = k, .way = way, .dense = way >> 1};
    c->layout = rows->layouts + (size_t)rows->n * rows->width;
    return c;
}

/* Asks a kernel once for each way: layouts as offered or plain, weights encoded or decoded. */
static cnr_status ask_ways(const query_context *a, const cnr_kernel *k, cnr_error *err) {
    /* Bits of way: offered or plain layouts, encoded or decoded weights. */
    for (int32_t way = 0; way < 4; way++) {
        bool takes;
        if (a->q->stored_choice ? way != a->q->stored_choice->way : (way & 1) && !a->offered)
            continue;
        cnri_candidate *c = blank(a, k, way);
        const cnr_status status = ask(a, k, a->offered && !(way & 1), c, &takes, err);
        if (status) return status;
        a->p->rows.n += takes;
    }
    return CNR_OK;
}

/* Adds the operator's reference, if the queried device has host memory and there is one. */
static void add_reference(const query_context *a) {
    const cnri_view v = cnri_view_of(a->p, a->chain, 0, false);
    if (!cnri_is_host(a->device) || !CNRI_HAS(v.node.desc, reference)) return;
    cnri_candidate *c = blank(a, NULL, 0);
    c->dense = true;
    c->ranges = a->q->axis >= 0 && (v.node.desc->flags & CNR_OP_RANGES);
    c->splits = v.node.desc->flags & CNR_OP_RANGES ? UINT32_MAX : 0;
    c->n_in = v.n_in;
    c->n_out = v.n_out;
    memset(c->layout, 0, 2 * (size_t)(v.n_in + v.n_out) * sizeof *c->layout);
    find_cost(a, &v, 0, c);
    pass_block(a, c);
    a->p->rows.n++;
}

/* ---- under a memory bound ---- */

/* Bytes of a value between nodes; 0: it is a weight, or there is none. */
static uint64_t passed_bytes(const cnr_graph *g, cnr_value v) {
    return v < 0 || cnri_is_weight(g, v) ? 0 : cnr_dense_bytes(g->values.at[v].type);
}

uint64_t cnri_arena_guess(const cnr_graph *g) {
    int32_t *last = cnri_alloc_zero(((size_t)g->values.n + 1) * sizeof *last); /* reader, from 1 */
    uint64_t live = 0, most = 0;
    if (!last) return 0;
    for (int32_t i = 0; i < g->nodes.n; i++)
        for (int32_t k = 0; k < g->nodes.at[i]->view.n_inputs; k++)
            if (g->nodes.at[i]->in[k] >= 0) last[g->nodes.at[i]->in[k]] = i + 1;
    for (int32_t i = 0; i < g->outputs.n; i++) last[g->outputs.at[i]] = g->nodes.n + 1;
    for (int32_t i = 0; i < g->inputs.n; i++) live += passed_bytes(g, g->inputs.at[i]);
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *n = g->nodes.at[i];
        for (int32_t k = 0; k < n->view.n_outputs; k++) live += passed_bytes(g, n->out[k]);
        most = cnr_max(most, live);
        for (int32_t k = 0; k < n->view.n_outputs; k++)
            if (last[n->out[k]] == 0) live -= passed_bytes(g, n->out[k]);
        for (int32_t k = 0; k < n->view.n_inputs; k++) {
            if (n->in[k] < 0 || last[n->in[k]] != i + 1) continue;
            live -= passed_bytes(g, n->in[k]);
            last[n->in[k]] = -1; /* the node may read it twice */
        }
    }
    cnri_free(last);
    return most;
}

/* Bytes of a row's blob and of the dense weights that it is made of. Huge if that is unknown, or if
 * it reads folded weights as they are: these lie in no file and would stay in memory. */
static uint64_t weight_bytes(const query_context *a, const cnri_candidate *c) {
    const cnri_view v = cnri_view_of(a->p, a->chain, c->n_chain, c->dense && a->chain->decoded);
    cnr_space space = {.size = sizeof space};
    if (c->kernel && CNRI_HAS(c->kernel, prepare_size) &&
        c->kernel->prepare_size(a->device, &v.node, &space, NULL))
        return UINT64_MAX / 4;
    for (int32_t k = 0; k < v.n_in; k++) {
        if (v.in[k] < 0 || !cnri_is_weight(a->p->graph, v.in[k])) continue;
        if (cnri_prepares(c->prepared, c->prepared_from, k))
            space.bytes += cnr_dense_bytes(a->p->graph->values.at[v.in[k]].type);
        else if (a->p->graph->values.at[v.in[k]].late) return UINT64_MAX / 4;
    }
    return space.bytes;
}

double cnri_passing_share(const cnr_graph *g, uint64_t room) {
    uint64_t all = 1;
    for (cnr_value v = 0; v < g->values.n; v++)
        if (cnri_is_weight(g, v) && g->values.at[v].uses > 0)
            all += cnri_stored_bytes(g->values.at[v].type);
    return all > room ? 1 - (double)room / (double)all : 0;
}

/* True if a row whose weights take so many bytes is left out; least: those of the smallest. */
static bool is_left_out(const query_context *a, const cnri_candidate *c, uint64_t bytes,
                        uint64_t least) {
    const uint64_t bound = a->p->plan->memory_bound, others = cnri_arena_guess(a->p->graph);
    if (bytes <= least) return false;
    if (a->p->left == CNRI_FITS_SLICED && c->kernel && bytes < UINT64_MAX / 4) {
        const cnri_view v = cnri_view_of(a->p, a->chain, c->n_chain, c->dense && a->chain->decoded);
        bytes /= (uint64_t)cnri_slice_most(&v.node);
    }
    return a->p->left == CNRI_IS_SMALLEST || others + bytes > bound;
}

/* Rows whose weights do not fit are left out where others fit; if none does, the smallest stays.
 * The others cost what packing takes again and again. */
static void leave_out_large(const query_context *a) {
    cnri_rows *rows = &a->p->rows;
    const uint64_t bound = a->p->plan->memory_bound, others = cnri_arena_guess(a->p->graph);
    const double share = cnri_passing_share(a->p->graph, bound > others ? bound - others : 0);
    uint64_t least = UINT64_MAX;
    int32_t n = 0;
    for (int32_t i = 0; i < rows->n; i++) {
        const uint64_t bytes = weight_bytes(a, &rows->at[i]);
        if (rows->at[i].kernel && bytes < least) least = bytes;
        rows->at[i].around_ns += share * GUESS_NS_A_PACKED_BYTE * (double)bytes;
    }
    for (int32_t i = 0; i < rows->n; i++) {
        const cnri_candidate *c = &rows->at[i];
        if (!is_left_out(a, c, weight_bytes(a, c), least)) rows->at[n++] = rows->at[i];
    }
    rows->n = n;
}

/* Room for as many rows as there can be, with layouts as wide as the longest chain makes them.
 * False: it failed. */
static bool make_room(cnri_rows *rows, int32_t maximum, size_t width) {
    if (rows->capacity >= maximum && rows->width >= width) return true;
    if (maximum < rows->capacity) maximum = rows->capacity;
    if (width < rows->width) width = rows->width;
    cnri_rows_free(rows);
    rows->at = cnri_alloc((size_t)maximum * sizeof *rows->at);
    rows->layouts = cnri_alloc((size_t)maximum * width * sizeof *rows->layouts);
    if (!rows->at || !rows->layouts) return false;
    rows->capacity = maximum;
    rows->width = width;
    return true;
}

void cnri_rows_free(cnri_rows *rows) {
    cnri_free(rows->at);
    cnri_free(rows->layouts);
    *rows = (cnri_rows){0};
}

cnr_status cnri_candidates_make(cnri_planner *p, cnri_chain *chain, const cnri_kernel_query *q,
                                const cnri_rule *rule, const char *key, cnr_error *err) {
    const cnr_kernel *const *kernels = NULL;
    const cnri_view all = cnri_view_of(p, chain, q->cap, false);
    query_context a = {p, chain, q, p->plan->devices[q->device], key, false};
    const int32_t n = cnri_kernels_for(all.node.desc, &kernels);
    /* The last operator of a chain has one output. */
    const int32_t n_out =
        chain->region ? all.n_out : p->graph->nodes.at[chain->node]->view.n_outputs;
    if (!make_room(&p->rows, 4 * n + 1, 2 * ((size_t)chain->n_in[chain->n] + (size_t)n_out)))
        return cnri_no_memory(err);
    p->rows.n = 0;
    p->rows.named = false;
    p->rows.refusal = NULL;
    if (q->stored_choice && strcmp(q->stored_choice->device, a.device->name) != 0) return CNR_OK;
    a.offered = p->layout && (q->stored_choice || worth_offering(&a)) && !passing_block(&a, &all);
    for (int32_t i = 0; i < n; i++) {
        if (!cnri_kernel_drives(kernels[i], a.device) || !rule->wants(q, kernels[i]) ||
            hangs(&a, kernels[i]))
            continue;
        p->rows.named = p->rows.named || q->forced_name;
        const cnr_status status = ask_ways(&a, kernels[i], err);
        if (status) return status;
    }
    add_reference(&a);
    if (p->plan->memory_bound && !q->stored_choice && !q->forced_name && !chain->region)
        leave_out_large(&a);
    return CNR_OK;
}
