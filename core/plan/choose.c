/* Which kernel runs a node, in which layout, and how much of what follows it computes as well. */
#include "core/plan/planner.h"

/* What moving a byte between layouts is taken to cost: read and write at about 10 GB/s, and far
 * more where it must pass through the host. */
#define NS_A_BYTE 0.2
#define NS_A_BYTE_AWAY 2.0

int32_t *cnri_choice_layout(const cnri_choice *c, const cnri_pick *pick, int32_t which) {
    switch (which) {
    case CNRI_IN_BLOCK: return c->layout;
    case CNRI_IN_CLASS: return c->layout + pick->n_in;
    case CNRI_OUT_BLOCK: return c->layout + 2 * pick->n_in;
    default: return c->layout + 2 * pick->n_in + pick->n_out;
    }
}

/* Can a tensor have this block and class on this device? */
static bool layout_fits(const cnri_planner *p, const cnri_pick *pick, const cnr_device *device,
                        const cnr_tensor *t, bool weight, int32_t block, int32_t memory_class) {
    if (memory_class < 0 || memory_class >= device->n_memory) return false;
    const cnr_memory_class *m = &device->memory[memory_class];
    if (block > 1) {
        if (!p->layout || pick->axis >= 0 || weight) return false;
        if (t->rank < 2 || t->dim[1] % block || cnr_dtype_bits(t->dtype) < 8) return false;
    }
    if (m->flags & CNR_MEMORY_IMAGE) {
        cnr_tensor shaped = *t;
        int64_t width, height;
        shaped.block = block;
        cnri_image_size(&shaped, &width, &height);
        if (pick->axis >= 0 || width > m->max_width || height > m->max_height) return false;
    }
    return block >= 0;
}

/* Encodings of the inputs against what the kernel reads: 0 no, 1 as they are, 2 when decoded. */
static int32_t encodings_fit(const cnr_kernel *k, const cnri_pick *pick) {
    const char *const *names = CNRI_HAS(k, encodings) ? k->encodings : NULL;
    bool as_is = true, dense = true;
    for (int32_t i = 0; i < pick->n_in; i++) {
        const char *want = names && *names ? *names++ : "";
        if (!pick->inputs[i]) continue;
        if (strcmp(want, cnri_name(pick->inputs[i]->encoding)) != 0) as_is = false;
        if (want[0]) dense = false;
    }
    return as_is ? 1 : dense ? 2 : 0;
}

/* Replaces encoded inputs of the view by their dense twins. */
static cnr_status decode_view(cnri_planner *p, cnri_pick *pick, cnr_error *err) {
    for (int32_t i = 0; i < pick->n_in; i++) {
        if (!pick->inputs[i] || !pick->inputs[i]->encoding) continue;
        const cnr_status status = cnri_plan_twin(p, pick->in[i], &pick->in[i], err);
        if (status) return status;
        pick->inputs[i] = p->graph->values.at[pick->in[i]].type;
    }
    return CNR_OK;
}

/* What the inputs are stored as on the device now; plain when not offered. */
static void offer(const cnri_planner *p, const cnri_pick *pick, int32_t device, bool offered,
                  int32_t *blocks, int32_t *classes) {
    for (int32_t i = 0; i < pick->n_in; i++) {
        blocks[i] = classes[i] = 0;
        if (!offered || pick->in[i] < 0 || pick->in[i] >= p->n_offers) continue;
        if (p->offers[pick->in[i]].device != device) continue;
        blocks[i] = p->offers[pick->in[i]].block;
        classes[i] = p->offers[pick->in[i]].memory_class;
    }
}

static double conversion_ns(const cnri_planner *p, const cnri_pick *pick, const cnri_choice *c) {
    const int32_t *block = cnri_choice_layout(c, pick, CNRI_IN_BLOCK);
    const int32_t *memory = cnri_choice_layout(c, pick, CNRI_IN_CLASS);
    const double rate =
        cnri_is_host(p->plan->devices[c->device]) ? NS_A_BYTE : NS_A_BYTE_AWAY;
    double ns = 0;
    for (int32_t i = 0; i < pick->n_in; i++) {
        const cnr_value v = pick->in[i];
        if (v < 0 || v >= p->n_offers || cnri_is_weight(p->graph, pick->in[i])) continue;
        const bool here = p->offers[v].device == c->device;
        if (block[i] != (here ? p->offers[v].block : 0) ||
            memory[i] != (here ? p->offers[v].memory_class : 0))
            ns += rate * (double)cnr_dense_bytes(pick->inputs[i]);
    }
    return ns;
}

/* Is the answer one that can be kept? */
static bool answer_holds(const cnri_planner *p, const cnri_pick *pick, const cnri_choice *c) {
    const cnr_device *device = p->plan->devices[c->device];
    int32_t *in_block = cnri_choice_layout(c, pick, CNRI_IN_BLOCK);
    int32_t *out_block = cnri_choice_layout(c, pick, CNRI_OUT_BLOCK);
    const int32_t *in_class = cnri_choice_layout(c, pick, CNRI_IN_CLASS);
    const int32_t *out_class = cnri_choice_layout(c, pick, CNRI_OUT_CLASS);
    if (pick->axis >= 0 && !c->ranges) return false;
    for (int32_t i = 0; i < pick->n_in; i++) {
        const bool gone = i < 32 && (c->prepared >> i & 1);
        if (in_block[i] == 1) in_block[i] = 0;
        if (gone && !cnri_is_weight(p->graph, pick->in[i])) return false;
        if (pick->inputs[i] && !gone &&
            !layout_fits(p, pick, device, pick->inputs[i], cnri_is_weight(p->graph, pick->in[i]),
                         in_block[i], in_class[i]))
            return false;
    }
    for (int32_t i = 0; i < pick->n_out; i++) {
        if (out_block[i] == 1) out_block[i] = 0;
        if (!layout_fits(p, pick, device, pick->outputs[i], false, out_block[i], out_class[i]))
            return false;
    }
    return true;
}

/* Asks one kernel; c->score is 0 when it will not. The view is left with the chain it takes. */
static cnr_status ask(cnri_planner *p, int32_t node, const cnr_kernel *k, int32_t cap,
                      bool offered, cnri_choice *c, cnr_error *err) {
    cnri_pick *pick = &p->picks[node];
    const cnr_device *device = p->plan->devices[c->device];
    const bool dense = c->dense;
    c->score = 0;
    for (int32_t take = cap; take >= 0;) {
        cnri_pick_view(p, node, take, err);
        const int32_t fit = encodings_fit(k, pick);
        if (fit != (dense ? 2 : 1)) return CNR_OK;
        const cnr_status status = dense ? decode_view(p, pick, err) : CNR_OK;
        if (status) return status;
        cnr_accept a = {.size = sizeof a};
        a.in_block = cnri_choice_layout(c, pick, CNRI_IN_BLOCK);
        a.in_class = cnri_choice_layout(c, pick, CNRI_IN_CLASS);
        a.out_block = cnri_choice_layout(c, pick, CNRI_OUT_BLOCK);
        a.out_class = cnri_choice_layout(c, pick, CNRI_OUT_CLASS);
        offer(p, pick, c->device, offered && pick->axis < 0, a.in_block, a.in_class);
        memset(a.out_block, 0, 2 * (size_t)pick->n_out * sizeof *a.out_block);
        if (k->accepts(device, &pick->view, &a) || a.score <= 0) return CNR_OK;
        if (a.epilogue < take) { /* ask again for exactly what it would take */
            take = a.epilogue < 0 ? 0 : a.epilogue;
            continue;
        }
        c->kernel = k;
        c->n_chain = take;
        c->prepared = a.prepared;
        c->ranges = pick->axis >= 0 && (a.ranges >> pick->axis & 1);
        if (!answer_holds(p, pick, c)) { /* an operand may be what does not fit */
            take--;
            continue;
        }
        c->score = a.score > 1000 ? 1000 : a.score;
        const double seen = p->key[0] ? cnri_tuning_ns(p->options->tuning, p->key, k->name) : -1;
        c->measured = seen > 0;
        c->ns = a.cost_ns > 0 ? a.cost_ns + conversion_ns(p, pick, c) : -1;
        if (c->measured) c->ns = seen + conversion_ns(p, pick, c); /* of the whole chain */
        else if (c->ns > 0) /* what it leaves over makes a pass over memory each */
            c->ns += NS_A_BYTE * (cap - take) * (double)cnr_dense_bytes(pick->outputs[0]);
        return CNR_OK;
    }
    return CNR_OK;
}

static bool better(const cnri_choice *a, const cnri_choice *b) {
    if (b->score == 0) return a->score > 0;
    if (a->score == 0) return false;
    if (a->measured != b->measured) return a->measured;
    if (a->ns > 0 && b->ns > 0 && a->ns != b->ns) return a->ns < b->ns;
    if (a->score != b->score) return a->score > b->score;
    return a->n_chain > b->n_chain;
}

/* The kernel that the options force under this name, or NULL. */
static const char *forced_as(const cnri_planner *p, const char *name) {
    const size_t n = strlen(name);
    for (const char *const *k = p->options->kernels; k && *k; k++)
        if (strncmp(*k, name, n) == 0 && (*k)[n] == '=') return *k + n + 1;
    return NULL;
}

/* For the node itself, else for its operator. */
static const char *forced(const cnri_planner *p, int32_t node) {
    const char *only = forced_as(p, cnri_node_name(p, node));
    return only ? only : forced_as(p, p->graph->nodes.at[node]->view.desc->name);
}

bool cnri_kernel_only_forced(const cnr_kernel *k) {
    return CNRI_HAS(k, flags) && k->flags & CNR_KERNEL_FORCED;
}

bool cnri_kernel_drives(const cnr_kernel *k, const cnr_device *device) {
    return strcmp(k->device, device->cls->name) == 0 || strcmp(k->device, device->cls->family) == 0;
}

/* The best kernel on c->device; c->score 0 when there is none. `trial` is scratch of c's shape. */
static cnr_status best_kernel(cnri_planner *p, int32_t node, int32_t cap, bool offered,
                              cnri_choice *c, cnri_choice *trial, cnr_error *err) {
    const cnr_kernel *const *kernels = NULL;
    const cnr_device *device = p->plan->devices[c->device];
    const cnr_op *op = p->graph->nodes.at[node]->view.desc;
    const int32_t n = cnri_kernels_for(op, &kernels);
    const char *only = forced(p, node);
    const cnri_decision *told = p->told;
    bool seen = false;
    c->score = 0;
    if (told && strcmp(told->device, device->name) != 0) return CNR_OK;
    for (int32_t i = 0; i < n; i++) {
        if (!cnri_kernel_drives(kernels[i], device)) continue;
        if (only ? strcmp(kernels[i]->name, only) != 0 : cnri_kernel_only_forced(kernels[i])) continue;
        if (told && strcmp(kernels[i]->name, told->kernel) != 0) continue;
        seen = true;
        for (int32_t way = 0; way < 4; way++) { /* offered or plain, encoded or decoded */
            if (told ? way != told->way : (way & 1) && !offered) continue;
            trial->device = c->device;
            trial->way = way;
            trial->dense = way >> 1;
            trial->passes = false;
            const cnr_status status =
                ask(p, node, kernels[i], cap, offered && !(way & 1), trial, err);
            if (status) return status;
            if (!better(trial, c)) continue;
            const cnri_choice was = *c;
            *c = *trial;
            c->begin = was.begin;
            c->end = was.end;
            trial->layout = was.layout;
        }
    }
    const bool own = only && forced_as(p, cnri_node_name(p, node)) == only;
    if ((seen || own) && only && c->score == 0 && strcmp(only, "reference") != 0)
        return cnri_fail(err, CNR_E_ARG, cnri_node_name(p, node),
                         "kernel \"%s\" was asked for but does not take this node", only);
    return CNR_OK;
}

/* The block in which an element-wise node can simply work through its operands; 0 none. */
static int32_t passing_block(const cnri_planner *p, const cnri_pick *pick, int32_t device) {
    int32_t block = 0;
    if (!p->layout || pick->axis >= 0 || pick->n_out != 1) return 0;
    if (!(pick->view.desc->flags & CNR_OP_ELEMENTWISE)) return 0;
    for (int32_t i = 0; i < pick->n_chain; i++)
        if (!(pick->epilogues[i].node->desc->flags & CNR_OP_ELEMENTWISE)) return 0;
    for (int32_t i = 0; i < pick->n_in; i++) {
        const cnr_tensor *t = pick->inputs[i];
        const cnr_value v = pick->in[i];
        if (!t || cnr_count(t) == 1) continue;
        if (!cnr_same_shape(t, pick->outputs[0]) || cnri_is_weight(p->graph, v)) return 0;
        if (!block && p->offers[v].device == device && p->offers[v].memory_class == 0)
            block = p->offers[v].block;
    }
    return block > 1 ? block : 0;
}

static void pass_block(const cnri_pick *pick, cnri_choice *c, int32_t block) {
    int32_t *in = cnri_choice_layout(c, pick, CNRI_IN_BLOCK);
    for (int32_t i = 0; i < pick->n_in; i++)
        in[i] = pick->inputs[i] && cnr_count(pick->inputs[i]) != 1 ? block : 0;
    cnri_choice_layout(c, pick, CNRI_OUT_BLOCK)[0] = block;
    c->passes = true;
}

static cnr_status use_reference(cnri_planner *p, int32_t node, cnri_choice *c, cnr_error *err) {
    cnri_pick *pick = &p->picks[node];
    const cnr_op *op = p->graph->nodes.at[node]->view.desc;
    if (!CNRI_HAS(op, reference))
        return cnri_fail(
            err, CNR_E_UNSUPPORTED, cnri_node_name(p, node),
            "operator \"%s\" has no reference, and no kernel takes this node on \"%s\"", op->name,
            p->plan->devices[c->device]->name);
    cnri_pick_view(p, node, 0, err);
    c->kernel = NULL;
    c->n_chain = c->way = 0;
    c->prepared = 0;
    c->ranges = pick->axis >= 0 && (op->flags & CNR_OP_RANGES);
    c->passes = false;
    c->dense = true;
    memset(c->layout, 0, 2 * (size_t)(pick->n_in + pick->n_out) * sizeof *c->layout);
    return decode_view(p, pick, err);
}

/* Chooses for one part; with `moved`, on the device with host memory that takes what is left. */
static cnr_status choose_part(cnri_planner *p, int32_t node, int32_t cap, cnri_choice *c,
                              cnri_choice *trial, cnr_error *err) {
    cnri_pick *pick = &p->picks[node];
    const char *only = forced(p, node);
    bool dynamic = only && strcmp(only, "reference") == 0;
    for (int32_t i = 0; i < p->graph->nodes.at[node]->view.n_inputs; i++)
        if (pick->inputs[i] && (pick->inputs[i]->flags & CNR_TENSOR_DYNAMIC)) dynamic = true;
    for (;;) {
        cnri_pick_view(p, node, cap, err);
        const int32_t block = passing_block(p, pick, c->device);
        cnr_status status = CNR_OK;
        c->score = 0;
        if (!dynamic) status = cnri_tuning_begin(p, node, c->device, err);
        if (!dynamic && !status)
            status = best_kernel(p, node, cap, p->layout && !block, c, trial, err);
        if (status) return status;
        const bool host = cnri_is_host(p->plan->devices[c->device]);
        if (c->score == 0 && host) status = use_reference(p, node, c, err);
        if (status) return status;
        if (c->score > 0 || host) {
            cnri_pick_view(p, node, c->n_chain, err);
            const int32_t still = passing_block(p, pick, c->device);
            if (still) pass_block(pick, c, still);
            return CNR_OK;
        }
        if ((status = cnri_plan_host(p, &c->device, err)) != CNR_OK) return status;
    }
}

static cnr_status choose_node(cnri_planner *p, int32_t node, cnr_error *err) {
    cnri_pick *pick = &p->picks[node];
    cnr_status status = cnri_plan_parts(p, node, pick, err);
    if (status || (status = cnri_pick_chain(p, node, err))) return status;
    const size_t room = 2 * ((size_t)pick->n_in + (size_t)pick->view.n_outputs +
                             (size_t)p->graph->nodes.at[node]->view.n_outputs) + 1;
    int32_t cap = pick->n_chain;
    cnri_choice trial = {.layout = cnri_alloc_zero(room * sizeof *trial.layout)};
    if (!trial.layout) return cnri_no_memory(err);
    for (int32_t i = 0; i < pick->n_parts && !status; i++)
        if (!(pick->parts[i].layout = cnri_alloc_zero(room * sizeof(int32_t))))
            status = cnri_no_memory(err);
    for (bool agreed = false; !agreed && !status;) { /* all parts take the same chain along */
        int32_t least = cap;
        agreed = true;
        for (int32_t i = 0; i < pick->n_parts && !status; i++) {
            status = cnri_memo_tell(p, node, i, &p->told, err);
            if (!status && p->told && p->told->n_chain < cap) cap = least = p->told->n_chain;
            if (!status) status = choose_part(p, node, cap, &pick->parts[i], &trial, err);
            if (!status) status = cnri_memo_agrees(p, node, &pick->parts[i], err);
            if (pick->parts[i].n_chain < least) least = pick->parts[i].n_chain;
        }
        p->told = NULL;
        if (pick->n_parts > 1 && least < cap) agreed = false;
        cap = least;
    }
    cnri_free(trial.layout);
    if (status) return status;
    cnri_pick_view(p, node, cap, err);
    if ((status = cnri_memo_keep(p, node, err)) != CNR_OK) return status;
    for (int32_t i = 0; i < cap; i++) p->picks[pick->chain[i]].absorbed = true;
    const cnri_node *last = p->graph->nodes.at[cap ? pick->chain[cap - 1] : node];
    for (int32_t i = 0; i < pick->n_out; i++) {
        struct cnri_offer *o = &p->offers[last->out[i]];
        o->device = pick->parts[0].device;
        o->block = cnri_choice_layout(&pick->parts[0], pick, CNRI_OUT_BLOCK)[i];
        o->memory_class = cnri_choice_layout(&pick->parts[0], pick, CNRI_OUT_CLASS)[i];
    }
    return CNR_OK;
}

static void find_only_users(cnri_planner *p) {
    const cnr_graph *g = p->graph;
    for (int32_t v = 0; v < p->n_offers; v++) p->only_user[v] = -2;
    for (int32_t i = 0; i < g->nodes.n; i++)
        for (int32_t k = 0; k < g->nodes.at[i]->view.n_inputs; k++) {
            const cnr_value v = g->nodes.at[i]->in[k];
            if (v >= 0) p->only_user[v] = p->only_user[v] == -2 ? i : -1;
        }
    for (int32_t i = 0; i < g->outputs.n; i++) p->only_user[g->outputs.at[i]] = -1;
}

cnr_status cnri_plan_choose(cnri_planner *p, cnr_error *err) {
    const cnr_graph *g = p->graph;
    p->n_offers = g->values.n;
    p->n_picks = g->nodes.n;
    p->offers = cnri_alloc_zero((size_t)(g->values.n + 1) * sizeof *p->offers);
    p->only_user = cnri_alloc((size_t)(g->values.n + 1) * sizeof *p->only_user);
    p->picks = cnri_alloc_zero((size_t)(g->nodes.n + 1) * sizeof *p->picks);
    if (!p->offers || !p->only_user || !p->picks) return cnri_no_memory(err);
    for (int32_t v = 0; v < p->n_offers; v++) p->offers[v].device = -1;
    find_only_users(p);
    for (int32_t i = 0; i < p->n_picks; i++) {
        if (p->picks[i].absorbed) continue;
        const cnr_status status = choose_node(p, i, err);
        if (status) return status;
    }
    return CNR_OK;
}
