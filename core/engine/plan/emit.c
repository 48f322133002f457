/* Emits steps in an order in which every operand exists when it is read. */
#include "plan/planner.h"

static const cnr_input_range whole = {-1, 0, 0};

/* Finds the home of a weight that the kernel reads in a run: on its device or in host memory. */
static cnr_status constant_home(cnri_planner *p, cnr_value value, int32_t device,
                                int32_t memory_class, int32_t *home, cnr_error *err) {
    for (int32_t h = p->first_home[value]; h >= 0; h = p->reach.at[h].next) {
        const cnri_home *at = &p->plan->homes.at[h];
        if (p->reach.at[h].hidden) continue; /* only the prepare hook reads that home */
        if (at->device == device && at->memory_class == memory_class) {
            *home = h;
            return CNR_OK;
        }
    }
    cnr_status status = cnri_plan_home(p, value, device, memory_class, 0, false, home, err);
    if (status) return status;
    p->reach.at[*home].axis = -1;
    for (int32_t i = 0; i < p->plan->twins.n; i++)
        if (p->plan->twins.at[i].dense == value) p->plan->twins.at[i].kept = true;
    if (cnri_in_host(p->plan->devices[device], memory_class)) return CNR_OK;
    cnri_storage *s = cnri_push(&p->plan->storages);
    if (!s) return cnri_no_memory(err);
    cnri_home *h = &p->plan->homes.at[*home];
    h->storage = p->plan->storages.n - 1;
    s->device = device;
    s->memory_class = memory_class;
    s->constant = true;
    s->bytes = h->bytes ? h->bytes : 1;
    if (p->plan->devices[device]->memory[memory_class].flags & CNR_MEMORY_IMAGE)
        cnri_image_size(&h->type, &s->width, &s->height);
    return CNR_OK;
}

/* Brings an input of the graph to a device, just before it is first read there. */
static cnr_status begin_input(cnri_planner *p, cnr_value value, int32_t device, cnr_error *err) {
    int32_t home;
    if (p->first_home[value] >= 0 || !p->graph->values.at[value].is_input) return CNR_OK;
    const cnr_status status = cnri_plan_home(p, value, device, 0, 0, false, &home, err);
    if (status) return status;
    p->reach.at[home].axis = -1;
    for (int32_t i = 0; i < p->graph->inputs.n; i++)
        if (p->graph->inputs.at[i] == value) p->plan->input_homes[i] = home;
    return CNR_OK;
}

/* The part of input i that the candidate's range needs. Operands of the chain are read at the
 * places that are written. */
static cnr_input_range needed(const cnri_pick *pick, const cnri_node *head, const cnri_candidate *c,
                              int32_t i) {
    cnr_input_range r = whole;
    const cnr_tensor *in = pick->view.node.inputs[i], *out = pick->view.node.outputs[0];
    if (pick->axis < 0 || !c->ranges) return r;
    const bool alike = cnr_same_shape(in, out) && cnr_dtype_bits(in->dtype) >= 8;
    if (i >= head->view.n_inputs || head->view.desc->flags & CNR_OP_ELEMENTWISE)
        return alike ? (cnr_input_range){pick->axis, c->begin, c->end} : r;
    if (CNRI_HAS(head->view.desc, input_range))
        head->view.desc->input_range(&head->view, pick->axis, c->begin, c->end, i, &r);
    if (r.axis < 0 || r.axis >= in->rank || cnr_dtype_bits(in->dtype) < 8) return whole;
    if (r.begin < 0) r.begin = 0;
    if (r.end > in->dim[r.axis]) r.end = in->dim[r.axis];
    return r.begin < r.end ? r : whole;
}

/* Homes of the inputs of one part, with the layouts that its kernel wants; emits conversions. */
static cnr_status part_inputs(cnri_planner *p, int32_t node, const cnri_candidate *c, int32_t *in,
                              cnr_error *err) {
    const cnri_pick *pick = &p->picks[node];
    const int32_t *block = cnri_layout(c, CNRI_IN_BLOCK);
    const int32_t *memory = cnri_layout(c, CNRI_IN_CLASS);
    for (int32_t i = 0; i < pick->view.n_in; i++) {
        cnr_value v = pick->view.in[i];
        cnr_status status = CNR_OK;
        in[i] = -1;
        if (v < 0) continue;
        if (cnri_is_weight(p->graph, v)) {
            if (c->dense && pick->view.node.inputs[i]->encoding)
                status = cnri_plan_twin_read(p, v, &v, err);
            if (status) return status;
            /* only the prepare hook reads it, on the host */
            if (cnri_prepares(c->prepared, c->prepared_from, i)) {
                status = cnri_plan_home(p, v, c->device, 0, 0, true, &in[i], err);
                if (!status) p->reach.at[in[i]].axis = -1;
            } else status = constant_home(p, v, c->device, memory[i], &in[i], err);
        } else {
            status = begin_input(p, v, c->device, err);
            if (!status)
                status =
                    cnri_plan_ensure(p, v, c->device, memory[i], block[i],
                                     needed(pick, p->graph->nodes.at[node], c, i), &in[i], err);
        }
        if (status) return status;
    }
    return CNR_OK;
}

/* The home of the variable that output `output` must overwrite in place; -1: the output gets a
 * home of its own. */
static int32_t updated_home(const cnri_planner *p, int32_t node, const cnri_candidate *c,
                            int32_t output, const int32_t *in) {
    const cnri_pick *pick = &p->picks[node];
    const cnr_value v = pick->view.n_chain || pick->axis >= 0
                            ? -1
                            : cnri_node_updates(p->graph, p->graph->nodes.at[node], output);
    for (int32_t i = 0; v >= 0 && i < pick->view.n_in; i++)
        if (pick->view.in[i] == v && !cnri_prepares(c->prepared, c->prepared_from, i)) return in[i];
    return -1;
}

/* Emits copies of the variables that a step overwrites to their homes on other devices. */
static cnr_status spread_updates(cnri_planner *p, const cnri_step *step, cnr_error *err) {
    const int32_t *out = step->out, n_out = step->n_out;
    for (int32_t i = 0; i < n_out; i++) {
        const cnri_home from = p->plan->homes.at[out[i]];
        if (!cnri_is_weight(p->graph, from.value)) continue;
        for (int32_t h = p->first_home[from.value]; h >= 0; h = p->reach.at[h].next) {
            if (h == out[i] || p->reach.at[h].hidden ||
                p->plan->homes.at[h].storage == from.storage)
                continue;
            int32_t source = out[i]; /* a copy between two devices goes through the host */
            cnr_status status = CNR_OK;
            if (!cnri_is_host(p->plan->devices[from.device]) &&
                !cnri_is_host(p->plan->devices[p->plan->homes.at[h].device])) {
                int32_t host;
                status = cnri_plan_host(p, &host, err);
                if (!status) status = constant_home(p, from.value, host, 0, &source, err);
                if (!status) status = cnri_plan_copy(p, out[i], source, whole, err);
            }
            if (!status) status = cnri_plan_copy(p, source, h, whole, err);
            if (status) return status;
        }
    }
    return CNR_OK;
}

/* Makes the homes of one part's outputs, with the row's layouts; out: their numbers. */
static cnr_status part_outputs(cnri_planner *p, int32_t node, const cnri_candidate *c,
                               const int32_t *in, int32_t *out, cnr_error *err) {
    const cnri_pick *pick = &p->picks[node];
    const int32_t *block = cnri_layout(c, CNRI_OUT_BLOCK);
    const int32_t *memory = cnri_layout(c, CNRI_OUT_CLASS);
    const bool scratch = pick->axis >= 0 && !c->ranges;
    for (int32_t i = 0; i < pick->view.n_out; i++) {
        const cnr_value v = pick->view.out[i];
        int32_t home = updated_home(p, node, c, i, in);
        if (home >= 0) {
            out[i] = home;
            continue;
        }
        for (int32_t h = p->first_home[v]; !scratch && h >= 0; h = p->reach.at[h].next)
            if (p->plan->homes.at[h].device == c->device && !p->reach.at[h].hidden) home = h;
        cnr_status status = CNR_OK;
        if (home < 0)
            status = cnri_plan_home(p, v, c->device, memory[i], block[i], scratch, &home, err);
        if (status) return status;
        out[i] = home;
    }
    return CNR_OK;
}

/* Copies the part out of a scratch home, for a kernel that computed the whole output there. */
static cnr_status keep_part(cnri_planner *p, const cnri_pick *pick, const cnri_candidate *c,
                            int32_t scratch, cnr_error *err) {
    const cnr_value v = p->plan->homes.at[scratch].value;
    int32_t home = -1;
    for (int32_t h = p->first_home[v]; h >= 0; h = p->reach.at[h].next)
        if (p->plan->homes.at[h].device == c->device && !p->reach.at[h].hidden) home = h;
    cnr_status status = CNR_OK;
    if (home < 0) status = cnri_plan_home(p, v, c->device, 0, 0, false, &home, err);
    if (status) return status;
    return cnri_plan_copy(p, scratch, home, (cnr_input_range){pick->axis, c->begin, c->end}, err);
}

/* Emits the step of one part of a node for candidate c. `homes`: those of the inputs, then room for
 * the outputs; the step owns the array, which is freed on failure. */
static cnr_status emit_part(cnri_planner *p, int32_t node, const cnri_candidate *c, int32_t *homes,
                            cnr_error *err) {
    const cnri_pick *pick = &p->picks[node];
    cnr_status status = part_outputs(p, node, c, homes, homes + pick->view.n_in, err);
    cnri_step *s = status ? NULL : cnri_push(&p->plan->steps);
    if (!s) {
        cnri_free(homes);
        return status ? status : cnri_no_memory(err);
    }
    s->kind = CNRI_STEP_KERNEL;
    s->device = c->device;
    s->node = node;
    s->kernel = c->kernel;
    s->n_in = pick->view.n_in;
    s->n_out = pick->view.n_out;
    s->in = homes;
    s->out = homes + pick->view.n_in;
    s->from = s->to = s->blob = s->workspace = -1;
    s->prepared = c->prepared;
    s->prepared_from = c->prepared_from;
    s->passes = c->passes;
    s->extrapolated = c->extrapolated;
    s->ranges = c->splits;
    s->range_axis = c->ranges ? pick->axis : -1;
    s->range_begin = c->ranges ? c->begin : 0;
    s->range_end = c->ranges ? c->end : 0;
    const bool part = pick->axis >= 0;
    for (int32_t i = 0; i < pick->view.n_out && !status; i++) {
        const int32_t home = homes[pick->view.n_in + i];
        const cnr_input_range got = {part && c->ranges ? pick->axis : -1, c->begin, c->end};
        status = cnri_reach_add(p, home, got, err);
    }
    const cnri_step done = *s; /* a copy, because adding steps moves *s */
    if (!status) status = spread_updates(p, &done, err);
    if (!status && part && !c->ranges) status = keep_part(p, pick, c, homes[pick->view.n_in], err);
    return status;
}

/* True if the part belongs to this of two passes: parts on asynchronous devices are started
 * first, so that the others work at the same time. */
static bool in_pass(const cnri_planner *p, const cnri_pick *pick, const cnri_candidate *c,
                    int32_t pass) {
    if (pick->axis >= 0 && c->begin >= c->end) return false;
    return cnri_is_async(p->plan->devices[c->device]) == (pass == 0);
}

/* Emits the copies that the parts of a node need before any part starts. A copy queued behind a
 * kernel would wait for it. Copies that the host waits for go first. */
static cnr_status gather(cnri_planner *p, int32_t node, int32_t **homes, cnr_error *err) {
    const cnri_pick *pick = &p->picks[node];
    for (int32_t pass = 1; pass >= 0; pass--)
        for (int32_t i = 0; i < pick->n_parts; i++) {
            if (!in_pass(p, pick, &pick->parts[i], pass)) continue;
            homes[i] =
                cnri_alloc((size_t)(pick->view.n_in + pick->view.n_out + 1) * sizeof **homes);
            const cnr_status status = homes[i]
                                          ? part_inputs(p, node, &pick->parts[i], homes[i], err)
                                          : cnri_no_memory(err);
            if (status) return status;
        }
    return CNR_OK;
}

/* Emits the steps of all parts of one node. */
static cnr_status emit_node(cnri_planner *p, int32_t node, cnr_error *err) {
    const cnri_pick *pick = &p->picks[node];
    int32_t **homes = cnri_alloc_zero((size_t)(pick->n_parts + 1) * sizeof *homes);
    if (!homes) return cnri_no_memory(err);
    cnr_status status = gather(p, node, homes, err);
    for (int32_t pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < pick->n_parts && !status; i++)
            if (in_pass(p, pick, &pick->parts[i], pass)) {
                status = emit_part(p, node, &pick->parts[i], homes[i], err);
                homes[i] = NULL;
            }
    for (int32_t i = 0; i < pick->n_parts; i++) cnri_free(homes[i]);
    cnri_free(homes);
    return status;
}

/* Gives each output of the net a home in host memory that holds it whole. */
static cnr_status emit_outputs(cnri_planner *p, cnr_error *err) {
    const cnr_graph *g = p->graph;
    for (int32_t i = 0; i < g->outputs.n; i++) {
        const cnr_value v = g->outputs.at[i];
        p->plan->output_homes[i] = -1;
        if (cnri_is_weight(g, v)) continue;
        cnr_status status = begin_input(p, v, p->set->fallback, err);
        if (status) return status;
        int32_t device = -1;
        for (int32_t h = p->first_home[v]; h >= 0; h = p->reach.at[h].next)
            if (p->reach.at[h].axis == -1 && !p->reach.at[h].hidden)
                device = p->plan->homes.at[h].device;
        if (device < 0) status = cnri_plan_host(p, &device, err);
        if (!status)
            status = cnri_plan_ensure(p, v, device, 0, 0, whole, &p->plan->output_homes[i], err);
        if (status) return status;
    }
    return CNR_OK;
}

/* True if all outputs of a node are new values of variables. */
static bool only_updates(const cnr_graph *g, const cnri_node *node) {
    for (int32_t k = 0; k < node->view.n_outputs; k++)
        if (cnri_node_updates(g, node, k) < 0) return false;
    return node->view.n_outputs > 0;
}

cnr_status cnri_plan_emit(cnri_planner *p, cnr_error *err) {
    const cnr_graph *g = p->graph;
    int32_t *head_of = cnri_alloc((size_t)(p->n_picks + 1) * sizeof *head_of);
    p->n_first = g->values.n + g->values.n; /* room for a dense twin of each value */
    p->first_home = cnri_alloc((size_t)(p->n_first + 1) * sizeof *p->first_home);
    p->plan->input_homes = cnri_alloc((size_t)(g->inputs.n + 1) * sizeof(int32_t));
    p->plan->output_homes = cnri_alloc((size_t)(g->outputs.n + 1) * sizeof(int32_t));
    cnr_status status = CNR_OK;
    if (!head_of || !p->first_home || !p->plan->input_homes || !p->plan->output_homes)
        status = cnri_no_memory(err);
    for (int32_t i = 0; i < g->inputs.n && !status; i++) p->plan->input_homes[i] = -1;
    for (int32_t v = 0; v < p->n_first && !status; v++) p->first_home[v] = -1;
    /* A node is computed where the last operator of its chain is, as all operands exist there. */
    for (int32_t i = 0; i < p->n_picks && !status; i++) head_of[i] = -1;
    for (int32_t i = 0; i < p->n_picks && !status; i++) {
        const cnri_pick *pick = &p->picks[i];
        const int32_t n = pick->view.n_chain;
        if (pick->absorbed_by < 0) head_of[n ? pick->chain.at[n - 1] : i] = i;
    }
    /* Variables are overwritten after all steps that read them. */
    for (int32_t last = 0; last < 2; last++)
        for (int32_t i = 0; i < p->n_picks && !status; i++)
            if (head_of[i] >= 0 && only_updates(g, g->nodes.at[head_of[i]]) == (last == 1))
                status = emit_node(p, head_of[i], err);
    if (!status) status = emit_outputs(p, err);
    cnri_free(head_of);
    return status;
}
