/* A net's own nodes as cases: each kernel of a device that could run a node, at the node's shapes,
 * types, weights, attributes and what follows it, in the layouts of the plan and where the plan has
 * it in memory.
 *
 * Pairs of a node and a kernel are numbered, so that one can be run again, and a run goes on behind
 * one that ended the process. Nodes that differ in nothing but their weights are one case. */
#include "judge/net.h"

/* Multiplications of a reference that is computed whole; of larger ones three ranges are. */
enum { MAX_WORK = 24 << 20, GROUPS = 5, OFFERS = 2 };

typedef struct spot {   /* a node that stands for all nodes like it */
    int32_t node, step; /* step: of the plan, that runs it; -1: it has no step of its own */
    int32_t n_chain, chain[CNRI_CHECK_CHAIN];
    uint64_t key;
} spot;

/* The nodes of a net that are checked. */
typedef struct survey {
    const cnri_net_work *w;
    cnr_graph *g;
    /* User, by value: the only node that reads it, -1: none; steps, by node: its step, -1: none. */
    int32_t *user, *steps;
    CNRI_VEC(spot) spots;
    cnri_case c;
    cnri_trial t;
    int64_t pairs, found; /* number of pairs, and of pairs run so far */
    int32_t kernel;       /* the kernel reported last */
} survey;

/* Fills err: out of memory. */
static cnr_status no_memory(cnr_error *err) {
    return cnri_fail(err, CNR_E_MEMORY, "kernelcheck", "out of memory");
}

/* ---- which nodes ---- */

/* True if a tensor has a type and known size. */
static bool known(const cnr_tensor *t) {
    return t && cnr_dtype_bits(t->dtype) > 0 && cnr_count(t) >= 0;
}

/* True if a node of a net can be checked. */
static bool can_be_a_case(const cnri_node *n) {
    const cnr_node *v = &n->view;
    if (!CNRI_HAS(v->desc, reference) || v->n_inputs > CNRI_CHECK_PORTS ||
        v->n_outputs > CNRI_CHECK_PORTS)
        return false;
    for (int32_t i = 0; i < v->n_inputs; i++)
        if (v->inputs[i] && (!known(v->inputs[i]) || v->inputs[i]->flags & CNR_TENSOR_VARIABLE))
            return false;
    for (int32_t i = 0; i < v->n_outputs; i++)
        if (!known(v->outputs[i])) return false;
    return v->n_outputs > 0;
}

/* *port: the input that `value` comes in by; *other: the only other operand, or -1. False: there
 * are more of either, or none of the first. */
static bool ports(const cnri_node *n, cnr_value value, int32_t *port, int32_t *other) {
    *port = *other = -1;
    for (int32_t i = 0; i < n->view.n_inputs; i++) {
        if (n->in[i] < 0) continue;
        if (n->in[i] == value && *port < 0) *port = i;
        else if (*other < 0 && n->in[i] != value) *other = i;
        else return false;
    }
    return *port >= 0;
}

/* True if the node could be computed together with the one that computes `value`, as in
 * planning. */
static bool follows(const survey *s, int32_t node, cnr_value value) {
    const cnri_node *n = s->g->nodes.at[node];
    const cnr_node *v = &n->view;
    int32_t port, other;
    if (!(v->desc->flags & CNR_OP_EPILOGUE) || v->n_outputs != 1 || !can_be_a_case(n)) return false;
    if (!ports(n, value, &port, &other) || v->outputs[0]->flags & CNR_TENSOR_DYNAMIC) return false;
    if (other >= 0 && (v->inputs[other]->flags & CNR_TENSOR_DYNAMIC || v->inputs[other]->encoding))
        return false;
    return !(v->desc->flags & CNR_OP_ELEMENTWISE) || cnr_same_shape(v->inputs[port], v->outputs[0]);
}

/* Fills p->chain with the nodes that could be computed together with p's node, one behind the
 * other; at most CNRI_CHECK_CHAIN. */
static void find_chain(const survey *s, spot *p) {
    const cnri_node *n = s->g->nodes.at[p->node];
    if (n->view.n_outputs != 1 || n->view.outputs[0]->flags & CNR_TENSOR_DYNAMIC) return;
    for (cnr_value v = n->out[0]; p->n_chain < CNRI_CHECK_CHAIN;) {
        const int32_t next = s->user[v];
        if (next < 0 || !follows(s, next, v)) return;
        p->chain[p->n_chain++] = next;
        v = s->g->nodes.at[next]->out[0];
    }
}

/* ---- a node as a case; first its types ---- */

/* Copies a tensor's type, without its data, block and memory. */
static void take_type(cnr_tensor *to, const cnr_tensor *from) {
    *to = *from;
    to->data = NULL;
    to->block = 0;
    to->mem = (cnr_mem){0};
}

/* Fills link i of the case's chain with the types of `node`, which reads *value; then sets *value
 * to the output of the node. */
static void add_chain_link(survey *s, int32_t i, int32_t node, cnr_value *value) {
    const cnri_node *n = s->g->nodes.at[node];
    cnri_link *link = &s->c.chain[i];
    memset(link, 0, sizeof *link);
    ports(n, *value, &link->port, &link->other);
    take_type(&link->in[0], n->view.inputs[link->port]);
    link->inputs[link->port] = &link->in[0];
    if (link->other >= 0) {
        take_type(&link->in[1], n->view.inputs[link->other]);
        link->inputs[link->other] = &link->in[1];
    }
    take_type(&link->out, n->view.outputs[0]);
    link->outputs[0] = &link->out;
    link->node = n->view;
    link->node.inputs = link->inputs;
    link->node.outputs = link->outputs;
    *value = n->out[0];
}

/* Takes types and attributes of a node into a case. */
static void take_types(survey *s, const spot *p) {
    cnri_case *c = &s->c;
    const cnri_node *n = s->g->nodes.at[p->node];
    memset(c, 0, sizeof *c);
    c->node = n->view;
    c->node.inputs = c->inputs;
    c->node.outputs = c->outputs;
    for (int32_t i = 0; i < n->view.n_inputs; i++) {
        cnr_port room;
        if (!n->view.inputs[i]) continue;
        take_type(&c->in[i], n->view.inputs[i]);
        c->inputs[i] = &c->in[i];
        c->listed[i] = (cnri_check_port(n->view.desc, i, &room)->flags & CNR_PORT_CONST) != 0;
    }
    for (int32_t i = 0; i < n->view.n_outputs; i++) {
        take_type(&c->out[i], n->view.outputs[i]);
        memcpy(c->most[i], c->out[i].dim, sizeof c->most[i]);
        c->outputs[i] = &c->out[i];
    }
    cnr_value value = n->out[0];
    for (int32_t i = 0; i < p->n_chain; i++) add_chain_link(s, i, p->chain[i], &value);
    c->n_chain = p->n_chain;
}

/* ---- which stand for which ---- */

/* Home of an input of the planned step; -1: none. */
static int32_t home_of(const survey *s, const spot *p, int32_t input) {
    const cnri_step *step = p->step < 0 ? NULL : &s->w->plan->steps.at[p->step];
    return step && input < step->n_in ? step->in[input] : -1;
}

/* Channel block of input 0 in the plan; 0: none. */
static int32_t block_of(const survey *s, const spot *p) {
    const int32_t home = home_of(s, p, 0);
    return home < 0 ? 0 : s->w->plan->homes.at[home].block_of;
}

/* Adds bytes to the 64-bit FNV-1a hash h, and returns it. */
static uint64_t digest(uint64_t h, const void *data, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Makes the key of a spot: attributes, types, what follows, layouts, and numbers that decide
 * shapes. False: it failed. */
static bool key_of(survey *s, spot *p) {
    const cnri_node *n = s->g->nodes.at[p->node];
    cnri_text text = {0};
    const int32_t block = block_of(s, p);
    take_types(s, p);
    cnri_case_text(&s->c, &text);
    p->key = digest(UINT64_C(0xcbf29ce484222325) + (uint64_t)block, text.at, text.n);
    for (int32_t i = 0; i < n->view.n_inputs; i++) {
        const cnr_tensor *t = n->view.inputs[i];
        if (!t) continue;
        if (t->quant) p->key += (uint64_t)p->node; /* its scale is in no text */
        if (t->data && t->bytes <= 512 && !cnri_dtype_floats(t->dtype))
            p->key = digest(p->key, t->data, t->bytes);
    }
    const bool good = text.at != NULL;
    cnri_text_free(&text);
    return good;
}

/* Adds a node, unless an equal one is there. */
static cnr_status add_spot(survey *s, int32_t node, cnr_error *err) {
    spot p = {.node = node, .step = s->steps[node]};
    if (!can_be_a_case(s->g->nodes.at[node])) return CNR_OK;
    find_chain(s, &p);
    if (!key_of(s, &p)) return no_memory(err);
    for (int32_t i = 0; i < s->spots.n; i++)
        if (s->spots.at[i].key == p.key) return CNR_OK;
    spot *slot = cnri_push(&s->spots);
    if (!slot) return no_memory(err);
    *slot = p;
    return CNR_OK;
}

/* Finds all nodes of the plan to check, with their chains, into s->spots. */
static cnr_status find_spots(survey *s, cnr_error *err) {
    cnr_graph *g = s->g;
    const cnr_plan *plan = s->w->plan;
    s->user = cnri_alloc(((size_t)g->values.n + 1) * sizeof *s->user);
    s->steps = cnri_alloc(((size_t)g->nodes.n + 1) * sizeof *s->steps);
    if (!s->user || !s->steps) return no_memory(err);
    for (int32_t i = 0; i < g->values.n; i++) s->user[i] = -1;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *n = g->nodes.at[i];
        s->steps[i] = -1;
        for (int32_t k = 0; k < n->view.n_inputs; k++)
            if (n->in[k] >= 0 && g->values.at[n->in[k]].uses == 1) s->user[n->in[k]] = i;
    }
    for (int32_t i = 0; i < plan->steps.n; i++)
        if (plan->steps.at[i].kind == CNRI_STEP_KERNEL) s->steps[plan->steps.at[i].node] = i;
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < g->nodes.n && !status; i++) status = add_spot(s, i, err);
    return status;
}

/* ---- then its data ---- */

/* Allocates t's data of that many bytes, all zero. */
static cnr_status room_for(cnr_tensor *t, uint64_t bytes, cnr_error *err) {
    t->bytes = bytes;
    t->data = bytes < SIZE_MAX ? cnri_alloc_zero((size_t)bytes + 1) : NULL;
    return t->data ? CNR_OK : no_memory(err);
}

/* Fills an input: with the net's weight, or with drawn numbers in place of computed ones, which
 * change with `attempt`. */
static cnr_status fill(survey *s, cnr_tensor *t, cnr_tensor *encoded, const cnr_tensor *from,
                       cnr_value v, int32_t attempt, cnr_error *err) {
    static const cnri_values floats[] = {CNRI_VALUES_SIGNED, CNRI_VALUES_POSITIVE,
                                         CNRI_VALUES_POSITIVE};
    cnri_dice dice = {s->w->seed + (uint64_t)v};
    cnr_status status;
    if (from->flags & CNR_TENSOR_CONST) {
        cnri_late_keep(s->g, v);
        if (!from->data)
            return cnri_fail(err, CNR_E_STATE, s->g->values.at[v].name,
                             "has no data: give --weights");
        if (from->encoding) {
            const cnr_encoding *how =
                cnri_descriptor_find(CNR_KIND_ENCODING, cnri_name(from->encoding));
            *encoded = *t;
            t->encoding = 0;
            t->quant = NULL;
            status = room_for(encoded, from->bytes, err);
            if (!status) memcpy(encoded->data, from->data, (size_t)from->bytes);
            if (!status) status = room_for(t, cnr_dense_bytes(t), err);
            return status ? status : how->decode(from, t->data, err);
        }
        status = room_for(t, cnr_dense_bytes(t), err);
        if (!status) memcpy(t->data, from->data, (size_t)t->bytes);
        return status;
    }
    status = room_for(t, cnr_dense_bytes(t), err);
    if (status) return status;
    const bool small = cnr_dtype_bits(t->dtype) <= 8;
    if (cnri_dtype_floats(t->dtype)) cnri_values_fill(t, floats[attempt], NULL, &dice);
    else if (attempt < 2)
        cnri_values_fill(t, small ? CNRI_VALUES_WIDE : CNRI_VALUES_POSITIVE, NULL, &dice);
    return CNR_OK;
}

/* Chooses three ranges of a large node for the reference: the beginning, the end and a part
 * between, on the longest possible axis. */
static void choose_parts(survey *s) {
    cnri_case *c = &s->c;
    const cnr_op *op = c->node.desc;
    const cnr_tensor *y = &c->out[0];
    cnr_cost cost = {0};
    int64_t longest = 1, step = 1;
    if (CNRI_HAS(op, cost)) op->cost(&c->node, &cost);
    const double work = (double)cost.macs + (double)cost.flops;
    if (work <= MAX_WORK || !(op->flags & CNR_OP_RANGES) || c->node.n_outputs != 1) return;
    for (int32_t i = 0; i < c->n_chain; i++)
        if (!(c->chain[i].node.desc->flags & CNR_OP_ELEMENTWISE)) return;
    for (int32_t a = 0; a < y->rank; a++) {
        const int64_t alignment = cnri_ways_alignment(&c->node, a);
        if (alignment < 1 || y->dim[a] / alignment <= longest) continue;
        longest = y->dim[a] / alignment;
        step = alignment;
        c->part_axis = a;
    }
    const int64_t all = y->dim[c->part_axis];
    const int64_t each = cnr_max(1, (int64_t)((double)longest * MAX_WORK / work / 3)) * step;
    if (longest < 6 || 3 * each >= all) return;
    const int64_t middle = all / 2 / step * step;
    const int64_t parts[3][2] = {{0, each},
                                 {middle, middle + each},
                                 {(all - each) / step * step, all}};
    memcpy(c->parts, parts, sizeof parts);
    c->n_parts = 3;
}

/* Fills a case from a node of the net. */
static cnr_status take(survey *s, const spot *p, int32_t attempt, cnr_error *err) {
    const cnri_node *n = s->g->nodes.at[p->node];
    cnri_case *c = &s->c;
    cnr_status status = CNR_OK;
    take_types(s, p);
    for (int32_t i = 0; i < n->view.n_inputs && !status; i++)
        if (c->inputs[i])
            status = fill(s, &c->in[i], &c->encoded[i], n->view.inputs[i], n->in[i], attempt, err);
    for (int32_t i = 0; i < n->view.n_outputs && !status; i++)
        status = room_for(&c->out[i], cnr_dense_bytes(&c->out[i]), err);
    for (int32_t i = 0; i < c->n_chain && !status; i++) {
        const cnri_node *e = s->g->nodes.at[p->chain[i]];
        cnri_link *link = &c->chain[i];
        cnr_tensor none;
        if (link->other >= 0)
            status = fill(s, &link->in[1], &none, e->view.inputs[link->other], e->in[link->other],
                          attempt, err);
        if (!status) status = room_for(&link->out, cnr_dense_bytes(&link->out), err);
    }
    for (int32_t i = 0; i < c->n_chain; i++) c->chain[i].in[0].data = cnri_case_out(c, i, 0)->data;
    c->lenient = attempt == 2;
    if (!status) choose_parts(s);
    return status;
}

/* ---- a node by all kernels ---- */

/* Number of the group of kernels that store weights and multiply alike, which share a reference. */
static int32_t group_of(const cnr_kernel *k) {
    const uint32_t flags = CNRI_HAS(k, flags) ? k->flags : 0;
    return flags & CNR_KERNEL_BF16_MATH  ? 4
           : flags & CNR_KERNEL_F16_MATH ? 3
           : flags & CNR_KERNEL_BF16     ? 2
           : flags & CNR_KERNEL_F16      ? 1
                                         : 0;
}

/* True if the inputs are encoded as the kernel reads them. */
static bool suits(survey *s, const cnr_kernel *k) {
    const char *const *names = CNRI_HAS(k, encodings) ? k->encodings : NULL;
    s->c.dense = !names;
    for (int32_t i = 0; names && *names && i < s->c.node.n_inputs; i++, names++) {
        const cnr_tensor *t = &s->c.encoded[i];
        if (**names && (!t->data || strcmp(cnri_name(t->encoding), *names) != 0)) return false;
    }
    return true;
}

/* Places inputs and outputs at the plan's offsets. */
static void place(survey *s, const spot *p) {
    cnri_trial *t = &s->t;
    const cnr_plan *plan = s->w->plan;
    cnri_dice dice = {s->w->seed + p->key};
    cnri_trial_scatter(t, &dice);
    if (p->step < 0) return;
    const cnri_step *step = &plan->steps.at[p->step];
    for (int32_t i = 0; i < t->n_in; i++) {
        const int32_t home = home_of(s, p, i);
        if (home >= 0) t->in_at[i] = plan->homes.at[home].offset % 4096;
    }
    for (int32_t i = 0; i < t->n_out && i < step->n_out; i++)
        t->out_at[i] = plan->homes.at[step->out[i]].offset % 4096;
    if (step->workspace >= 0) t->work_at = step->workspace_offset % 4096;
}

/* Reports the pair, so that a crash from here on is counted for it. */
static void begin_pair(survey *s, const spot *p, int32_t kernel, int64_t number) {
    if (s->kernel != kernel) cnri_work_tell("kernel", kernel, NULL);
    s->kernel = kernel;
    cnri_work_tell("draw", number, s->g->nodes.at[p->node]->name);
}

/* Asks the kernel and runs it if it accepts. `number`: of the pair. */
static void one_pair(survey *s, const spot *p, int32_t kernel, int32_t offer, int64_t number) {
    const cnr_kernel *k = cnri_descriptor_at(CNR_KIND_KERNEL, kernel);
    cnri_text text = {0}, why = {0};
    cnr_error err = CNR_ERROR_INIT;
    const char *refusal = NULL;
    const int32_t block = offer ? block_of(s, p) : 0;
    if (!suits(s, k)) return;
    if (!cnri_trial_ask_for(&s->t, s->w->device, k, &s->c, block, &refusal)) return;
    place(s, p);
    cnri_text_add(&text, "%s: ", s->g->nodes.at[p->node]->name);
    cnri_case_text(&s->c, &text);
    cnri_trial_text(&s->t, &text);
    cnri_work_tell("case", number, text.at);
    cnr_status status = cnri_judge_reference(&s->c, s->t.links, s->w->seed, &err);
    bool good = !status;
    if (status) cnri_text_add(&why, "the reference fails: %s", err.text);
    else good = cnri_trial_run(&s->t, false, &why);
    cnri_work_tell(good ? "pass" : "fail", number, good ? "0 0" : why.at);
    s->found++;
    cnri_text_free(&text);
    cnri_text_free(&why);
}

/* True if a kernel is for the node and is to be checked. */
static bool wanted_here(const survey *s, const spot *p, int32_t kernel) {
    const cnr_kernel *k = cnri_descriptor_at(CNR_KIND_KERNEL, kernel);
    const char *op = s->g->nodes.at[p->node]->view.desc->name;
    return (strcmp(k->op, CNR_ANY_OP) == 0 || strcmp(k->op, op) == 0) &&
           s->w->wants(s->w->arg, k, op);
}

/* Finds data for which the reference's results are numbers; in the end any data. False: failed. */
static bool find_data(survey *s, const spot *p, int32_t group, int64_t number) {
    static const cnr_kernel like[GROUPS] = {{.size = sizeof(cnr_kernel)},
                                            {.size = sizeof(cnr_kernel), .flags = CNR_KERNEL_F16},
                                            {.size = sizeof(cnr_kernel), .flags = CNR_KERNEL_BF16},
                                            {.size = sizeof(cnr_kernel),
                                             .flags = CNR_KERNEL_F16_MATH},
                                            {.size = sizeof(cnr_kernel),
                                             .flags = CNR_KERNEL_BF16_MATH}};
    cnr_error err = CNR_ERROR_INIT;
    cnr_status status = CNR_E_STATE;
    for (int32_t attempt = 0; attempt < 3 && status; attempt++) {
        cnri_case_free(&s->c);
        status = take(s, p, attempt, &err);
        if (status) break;
        cnri_case_round(&s->c, &like[group]);
        status = cnri_judge_reference(&s->c, s->c.n_chain, s->w->seed, &err);
    }
    if (status) {
        cnri_text why = {0};
        cnri_text_add(&why, "%s: %s", s->g->nodes.at[p->node]->name, err.text);
        cnri_work_tell("odd", number, why.at);
        cnri_text_free(&why);
    }
    return !status;
}

/* Checks one node of the net with all its kernels; those before w->first are skipped. */
static void one_spot(survey *s, int32_t index) {
    const spot *p = &s->spots.at[index];
    const int32_t n = cnri_descriptor_count(CNR_KIND_KERNEL);
    const int64_t first = index * s->pairs;
    if (s->w->only >= 0 ? s->w->only < first || s->w->only >= first + s->pairs
                        : first + s->pairs <= s->w->first)
        return;
    for (int32_t group = 0; group < GROUPS; group++) {
        bool there = false, odd = false;
        for (int32_t i = 0; i < n * OFFERS && !odd; i++) {
            const int32_t k = i / OFFERS, offer = i % OFFERS;
            const int64_t number = first + i;
            if (group_of(cnri_descriptor_at(CNR_KIND_KERNEL, k)) != group || !wanted_here(s, p, k))
                continue;
            if (s->w->only >= 0 ? number != s->w->only : number < s->w->first) continue;
            if (offer && block_of(s, p) <= 1) continue;
            begin_pair(s, p, k, number);
            odd = !there && !find_data(s, p, group, number);
            there = true;
            if (!odd) one_pair(s, p, k, offer, number);
        }
    }
    cnri_case_free(&s->c);
}

/* Judges the plan as a whole, if that is wanted. */
static void whole(survey *s) {
    const cnri_net_work *w = s->w;
    const int64_t number = s->spots.n * s->pairs;
    cnri_text why = {0};
    if (!w->whole || (w->only >= 0 ? w->only != number : w->first > number)) return;
    cnri_work_tell("kernel", -1, NULL);
    cnri_work_tell("case", number, "the plan");
    const bool good = w->whole(w->whole_arg, number, &why);
    cnri_work_tell(good ? "pass" : "fail", number, good ? "0 0" : why.at);
    cnri_text_free(&why);
}

cnr_status cnri_net_run(const cnri_net_work *w, cnr_error *err) {
    static survey s; /* state of the survey; static, because it is large */
    memset(&s, 0, sizeof s);
    s.w = w;
    s.g = w->plan->graph;
    s.kernel = -2;
    s.pairs = (int64_t)cnri_descriptor_count(CNR_KIND_KERNEL) * OFFERS;
    cnr_status status = find_spots(&s, err);
    memset(&s.c, 0, sizeof s.c); /* types alone so far */
    for (int32_t i = 0; i < s.spots.n && !status; i++) {
        char total[24];
        snprintf(total, sizeof total, "%d", (int)s.spots.n);
        cnri_work_tell("spot", i, total);
        one_spot(&s, i);
    }
    if (!status) whole(&s);
    if (!status) cnri_work_tell("end", s.found, NULL);
    cnri_vec_free(&s.spots);
    cnri_free(s.user);
    cnri_free(s.steps);
    return status;
}
