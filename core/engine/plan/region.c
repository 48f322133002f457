/* Regions: connected nodes that the class of a device claims, each computed in one step by a kernel
 * for CNR_REGION.
 *
 *   claim --checked--> region --its kernel is asked--> row --taken: cost, policy, memo--> pick
 *
 * Nodes are chosen one by one first, as if there were none. A region is taken if that would bring
 * one of its nodes to another device, or cost more. */
#include "plan/planner.h"
#include <math.h>
#include <stdlib.h>

enum { MAX_CLAIMS = 4096 };

static const cnr_op region_op = {.size = sizeof region_op,
                                 .version = 1,
                                 .name = CNR_REGION,
                                 .summary = "what a device computes in one step"};

/* ---- some nodes of a graph as a subgraph ---- */

/* Nodes of a net as a subgraph with numbers of its own. */
typedef struct cnri_part_of_graph {
    cnr_subgraph subgraph;
    int32_t *nodes; /* nodes: indices in the graph, ascending */
    cnr_value *values, *out;
    /* Number: by value of the graph, its number in the subgraph; -1: not in it. */
    int32_t *ports, *number;
    const cnr_tensor **types, **inputs, **outputs;
    cnr_subnode *members;
} part;

/* Frees the lists and the struct; NULL: nothing. */
static void free_part(part *s) {
    if (!s) return;
    cnri_free(s->nodes);
    cnri_free(s->values);
    cnri_free(s->out);
    cnri_free(s->ports);
    cnri_free(s->number);
    cnri_free((void *)s->types);
    cnri_free((void *)s->inputs);
    cnri_free((void *)s->outputs);
    cnri_free(s->members);
    cnri_free(s);
}

/* Allocates the lists. False: out of memory. */
static bool make_room(part *s, const cnr_graph *g, const int32_t *nodes, int32_t n) {
    size_t ports = 1;
    for (int32_t i = 0; i < n; i++)
        ports +=
            (size_t)(g->nodes.at[nodes[i]]->view.n_inputs + g->nodes.at[nodes[i]]->view.n_outputs);
    s->nodes = cnri_alloc(((size_t)n + 1) * sizeof *s->nodes);
    s->values = cnri_alloc(ports * sizeof *s->values);
    s->out = cnri_alloc(ports * sizeof *s->out);
    /* Ports of the nodes, and the outputs of the whole subgraph. */
    s->ports = cnri_alloc(2 * ports * sizeof *s->ports);
    s->number = cnri_alloc(((size_t)g->values.n + 1) * sizeof *s->number);
    s->types = cnri_alloc(ports * sizeof *s->types);
    s->inputs = cnri_alloc(ports * sizeof *s->inputs);
    s->outputs = cnri_alloc(ports * sizeof *s->outputs);
    s->members = cnri_alloc(((size_t)n + 1) * sizeof *s->members);
    return s->nodes && s->values && s->out && s->ports && s->number && s->types && s->inputs &&
           s->outputs && s->members;
}

/* Adds a value under the next number. */
static void add_value(part *s, const cnr_graph *g, cnr_value v) {
    s->number[v] = s->subgraph.n_values;
    s->values[s->subgraph.n_values] = v;
    s->types[s->subgraph.n_values++] = g->values.at[v].type;
}

/* Numbers the values: inputs that change first, then constants, then computed values. */
static void number_values(part *s, const cnr_graph *g) {
    enum { INSIDE = -2 };
    const int32_t n = s->subgraph.n_nodes;
    for (int32_t v = 0; v < g->values.n; v++) s->number[v] = -1;
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < g->nodes.at[s->nodes[i]]->view.n_outputs; k++)
            s->number[g->nodes.at[s->nodes[i]]->out[k]] = INSIDE;
    for (int32_t constants = 0; constants < 2; constants++) {
        for (int32_t i = 0; i < n; i++)
            for (int32_t k = 0; k < g->nodes.at[s->nodes[i]]->view.n_inputs; k++) {
                const cnr_value v = g->nodes.at[s->nodes[i]]->in[k];
                if (v >= 0 && s->number[v] == -1 && cnri_is_weight(g, v) == (constants == 1))
                    add_value(s, g, v);
            }
        if (!constants) s->subgraph.n_varying = s->subgraph.n_values;
    }
    s->subgraph.n_inputs = s->subgraph.n_values;
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < g->nodes.at[s->nodes[i]]->view.n_outputs; k++)
            add_value(s, g, g->nodes.at[s->nodes[i]]->out[k]);
}

/* Fills the members and the numbers of their inputs and outputs; returns the place behind them. */
static int32_t *add_members(part *s, const cnr_graph *g) {
    int32_t *at = s->ports;
    for (int32_t i = 0; i < s->subgraph.n_nodes; i++) {
        const cnri_node *node = g->nodes.at[s->nodes[i]];
        s->members[i] = (cnr_subnode){&node->view, at, at + node->view.n_inputs};
        for (int32_t k = 0; k < node->view.n_inputs; k++)
            *at++ = node->in[k] < 0 ? -1 : s->number[node->in[k]];
        for (int32_t k = 0; k < node->view.n_outputs; k++) *at++ = s->number[node->out[k]];
    }
    return at;
}

/* True if a node of the graph is in the subgraph, whose nodes ascend. */
static bool is_member(const part *s, int32_t node) {
    for (int32_t low = 0, high = s->subgraph.n_nodes; low < high;) {
        const int32_t middle = low + (high - low) / 2;
        if (s->nodes[middle] == node) return true;
        if (s->nodes[middle] < node) low = middle + 1;
        else high = middle;
    }
    return false;
}

/* Collects in `to` the values that nodes outside read. *early: one of those nodes comes before
 * the region's last node. */
static void find_outputs(part *s, const cnr_graph *g, int32_t *to, bool *early) {
    cnr_subgraph *c = &s->subgraph;
    bool *read = (bool *)s->outputs; /* reuses memory that is not needed yet */
    memset(read, 0, (size_t)c->n_values * sizeof *read);
    *early = false;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        const bool member = is_member(s, i);
        for (int32_t k = 0; k < node->view.n_inputs && !member; k++) {
            const int32_t at = node->in[k] < 0 ? -1 : s->number[node->in[k]];
            if (at < c->n_inputs) continue;
            read[at] = true;
            *early = *early || i < s->nodes[c->n_nodes - 1];
        }
    }
    for (int32_t i = 0; i < g->outputs.n; i++) {
        const int32_t at = s->number[g->outputs.at[i]];
        if (at >= c->n_inputs) read[at] = true;
    }
    c->outputs = to;
    for (int32_t i = c->n_inputs; i < c->n_values; i++)
        if (read[i]) {
            s->out[c->n_outputs] = s->values[i];
            to[c->n_outputs++] = i;
        }
}

/* Makes a subgraph of these nodes (ascending indices); NULL: out of memory. */
static part *make_part(const cnr_graph *g, const int32_t *nodes, int32_t n, bool *early) {
    part *s = cnri_alloc_zero(sizeof *s);
    if (!s || !make_room(s, g, nodes, n)) {
        free_part(s);
        return NULL;
    }
    memcpy(s->nodes, nodes, (size_t)n * sizeof *nodes);
    s->subgraph = (cnr_subgraph){.size = sizeof s->subgraph,
                                 .n_nodes = n,
                                 .nodes = s->members,
                                 .values = s->types};
    number_values(s, g);
    find_outputs(s, g, add_members(s, g), early);
    for (int32_t i = 0; i < s->subgraph.n_inputs; i++) s->inputs[i] = s->types[i];
    for (int32_t i = 0; i < s->subgraph.n_outputs; i++)
        s->outputs[i] = s->types[s->subgraph.outputs[i]];
    return s;
}

/* ---- what may be claimed ---- */

/* True if a tensor is neither encoded, dynamic nor a variable. */
static bool is_plain(const cnr_tensor *t) {
    return !t || !(t->encoding || t->flags & (CNR_TENSOR_DYNAMIC | CNR_TENSOR_VARIABLE));
}

/* True if the node runs on that device, unless a policy moves it. */
static bool belongs(const cnri_planner *p, int32_t node, int32_t device) {
    const cnri_placement *w = p->wish[node];
    if (w && w->n_parts > 1) return false;
    return device == (w ? cnri_device_set_find(p->set, w->parts[0].device) : p->set->fallback);
}

/* True if a device may see this node when it claims regions. */
static bool is_shown(const cnri_planner *p, int32_t node, int32_t device) {
    const cnri_node *n = p->graph->nodes.at[node];
    if (!belongs(p, node, device) && (p->wish[node] || !p->options->policy)) return false;
    if (cnri_query_of(p, node, -1).forced_name || n->view.n_outputs == 0) return false;
    for (int32_t k = 0; k < n->view.n_inputs; k++)
        if (!is_plain(n->view.inputs[k])) return false;
    for (int32_t k = 0; k < n->view.n_outputs; k++)
        if (!is_plain(n->view.outputs[k]) || cnri_node_updates(p->graph, n, k) >= 0) return false;
    return true;
}

/* The claims of one device, as they come in. */
typedef struct claims {
    cnri_planner *p;
    const part *shown;
    int32_t device;
    cnr_status status;
    cnr_error *err;
} claims;

/* True if all nodes are connected: one reads what the other computes, or both read a value. */
static bool is_connected(const part *s) {
    const cnr_subgraph *c = &s->subgraph;
    int32_t *seen = cnri_alloc_zero(((size_t)c->n_values + (size_t)c->n_nodes + 1) * sizeof *seen);
    int32_t reached = 0, before = -1;
    for (int32_t *node = seen ? seen + c->n_values : NULL; seen && reached != before;) {
        before = reached;
        for (int32_t i = 0; i < c->n_nodes; i++) {
            const cnr_subnode *m = &c->nodes[i];
            /* The arrays of all nodes lie side by side. */
            const int32_t ports = m->node->n_inputs + m->node->n_outputs;
            bool touches = i == 0;
            for (int32_t k = 0; k < ports; k++)
                touches = touches || (m->inputs[k] >= 0 && seen[m->inputs[k]]);
            if (!touches || node[i]) continue;
            node[i] = 1;
            reached++;
            for (int32_t k = 0; k < ports; k++)
                if (m->inputs[k] >= 0) seen[m->inputs[k]] = 1;
        }
    }
    cnri_free(seen);
    return reached == c->n_nodes;
}

/* What is wrong with a claim, as a constant text for a warning; NULL: nothing. */
static const char *fault_of(const claims *s, const cnr_claim *claim) {
    const int32_t most = s->shown->subgraph.n_nodes;
    if (claim->size < sizeof *claim) return "it is smaller than a cnr_claim";
    if (!claim->kernel) return "it names no kernel";
    if (claim->n_nodes < 1 || claim->n_nodes > most || !claim->nodes) return "it has no nodes";
    for (int32_t i = 0; i < claim->n_nodes; i++)
        if (claim->nodes[i] < 0 || claim->nodes[i] >= most ||
            (i && claim->nodes[i] <= claim->nodes[i - 1]))
            return "its nodes are not ascending numbers of the graph that was shown";
    return s->p->plan->regions->at.n < MAX_CLAIMS ? NULL : "there are too many";
}

/* ---- from a claim to a row ---- */

/* True for the region kernel that the claim names. */
static bool wants_by_name(const cnri_kernel_query *q, const cnr_kernel *k) {
    return strcmp(k->op, CNR_REGION) == 0 && strcmp(k->name, q->forced_name) == 0;
}

/* Fills the chain of a region: its first node, with the others behind it. False: it failed. */
static bool fill_chain(cnri_region *r, const cnr_graph *g) {
    part *s = r->parts;
    const cnr_subgraph *c = &s->subgraph;
    const int32_t n = c->n_nodes;
    r->node = (cnr_node){.size = sizeof r->node,
                         .op = cnri_intern(CNR_REGION),
                         .desc = &region_op,
                         .name = g->nodes.at[s->nodes[0]]->name,
                         .n_inputs = c->n_inputs,
                         .n_outputs = c->n_outputs,
                         .inputs = s->inputs,
                         .outputs = s->outputs,
                         .subgraph = c};
    int32_t *n_in = cnri_resize(s->number, ((size_t)n + 1) * sizeof *n_in);
    if (!n_in) return false;
    s->number = n_in; /* the numbers by value are no longer needed */
    for (int32_t i = 0; i <= n; i++) n_in[i] = c->n_inputs;
    r->chain = (cnri_chain){.node = s->nodes[0],
                            .n = n - 1,
                            .at = s->nodes + 1,
                            .n_in = n_in,
                            .in = s->values,
                            .inputs = s->inputs,
                            .out = s->out};
    return true;
}

/* Asks the claim's kernel about the region; *takes: it takes it. */
static cnr_status ask_kernel(claims *s, cnri_region *r, const cnr_claim *claim, bool *takes,
                             cnr_error *err) {
    static const cnri_rule named = {.name = "claimed", .wants = wants_by_name};
    cnri_planner *p = s->p;
    cnri_chain chain = r->chain;
    chain.region = &r->node;
    const cnri_kernel_query q = {.node = chain.node,
                                 .device = r->device,
                                 .axis = -1,
                                 .cap = chain.n,
                                 .forced_name = claim->kernel};
    char key[CNRI_TUNING_KEY];
    CNR_TRY(cnri_tuning_begin_region(p, &chain, r->device, claim->kernel, key, err));
    CNR_TRY(cnri_candidates_make(p, &chain, &q, &named, key, err));
    *takes = p->rows.n > 0 && p->rows.at[0].kernel;
    if (!*takes) return CNR_OK;
    const cnri_candidate *row = &p->rows.at[0];
    const size_t n = 2 * (size_t)(row->n_in + row->n_out);
    r->row = *row;
    r->row.layout = cnri_alloc((n + 1) * sizeof *row->layout);
    if (!r->row.layout) return cnri_no_memory(err);
    memcpy(r->row.layout, row->layout, n * sizeof *row->layout);
    if (r->row.cost.ns <= 0 && claim->cost_ns > 0)
        r->row.cost = (cnri_cost){.from = CNRI_ESTIMATED, .ns = claim->cost_ns};
    if (r->row.cost.joules <= 0 && claim->joules > 0) r->row.cost.joules = claim->joules;
    return CNR_OK;
}

/* Frees a region's lists and its parts; the region becomes empty. */
static void free_region(cnri_region *r) {
    cnri_free(r->row.layout);
    free_part(r->parts);
    *r = (cnri_region){0};
}

/* The region's part of a decision's `way`: its number, from 1 on, and bits of a digest of its
 * nodes, so that a stored plan does not mistake another region for its own. */
enum { NUMBER_BITS = 13, DIGEST_BITS = 15 };

/* Number of a candidate's way that differs between regions: their number and a digest of their
 * nodes. */
static int32_t way_of(const part *s, int32_t number) {
    uint32_t digest = 2166136261u;
    for (int32_t i = 0; i < s->subgraph.n_nodes; i++)
        digest = (digest ^ (uint32_t)s->nodes[i]) * 16777619u;
    digest ^= digest >> DIGEST_BITS;
    return number << 2 | (int32_t)(digest & ((1u << DIGEST_BITS) - 1)) << (2 + NUMBER_BITS);
}

static int32_t number_of(int32_t way) { return way >> 2 & ((1 << NUMBER_BITS) - 1); }

/* Adds a claimed region if it is sound and its kernel takes it; *why: why not. */
static cnr_status add_region(claims *s, const cnr_claim *claim, const char **why) {
    cnri_planner *p = s->p;
    int32_t *nodes = cnri_alloc(((size_t)claim->n_nodes + 1) * sizeof *nodes);
    cnri_region r = {.device = s->device};
    bool early = false, takes = false;
    if (!nodes) return cnri_no_memory(s->err);
    for (int32_t i = 0; i < claim->n_nodes; i++) nodes[i] = s->shown->nodes[claim->nodes[i]];
    r.parts = make_part(p->graph, nodes, claim->n_nodes, &early);
    cnri_free(nodes);
    cnr_status status = r.parts && fill_chain(&r, p->graph) ? CNR_OK : cnri_no_memory(s->err);
    if (!status && early) *why = "a node outside reads a value of it before its last node";
    else if (!status && !is_connected(r.parts)) *why = "its nodes are not connected";
    else if (!status) status = ask_kernel(s, &r, claim, &takes, s->err);
    if (!status && !*why && !takes) *why = "no kernel of that name for \"(region)\" takes it";
    cnri_region *slot = status || *why ? NULL : cnri_push(&p->plan->regions->at);
    if (!slot) {
        free_region(&r);
        return status || *why ? status : cnri_no_memory(s->err);
    }
    r.row.way = way_of(r.parts, p->plan->regions->at.n);
    *slot = r;
    return CNR_OK;
}

/* Takes one claim from the device; logs why it is refused. */
static void take_claim(void *arg, const cnr_claim *claim) {
    claims *s = arg;
    const char *why = s->status || !claim ? "" : fault_of(s, claim);
    if (!why) s->status = add_region(s, claim, &why);
    if (why && *why)
        cnri_log(CNR_LOG_WARN, "plan", "a region that %s claims is refused: %s",
                 s->p->plan->devices[s->device]->name, why);
}

/* Shows a device the nodes that it may compute (as one subgraph), and notes its valid claims. */
static cnr_status ask_device(cnri_planner *p, int32_t device, cnr_error *err) {
    const cnr_device *d = p->plan->devices[device];
    int32_t *nodes = cnri_alloc(((size_t)p->graph->nodes.n + 1) * sizeof *nodes), n = 0;
    bool early;
    if (!nodes) return cnri_no_memory(err);
    for (int32_t i = 0; i < p->graph->nodes.n; i++)
        if (is_shown(p, i, device)) nodes[n++] = i;
    part *shown = n ? make_part(p->graph, nodes, n, &early) : NULL;
    cnri_free(nodes);
    if (!n) return CNR_OK;
    if (!shown) return cnri_no_memory(err);
    claims s = {p, shown, device, CNR_OK, err};
    cnr_status status;
    CNRI_DURING(status, d->cls->claim(d, &shown->subgraph, take_claim, &s, err),
                .verb = "claiming regions", .descriptor = d->cls, .name = d->cls->name,
                .device = d->name);
    if (!s.status) s.status = cnri_plugin_status(err, status, d->name, d->cls->name);
    free_part(shown);
    return s.status;
}

cnr_status cnri_regions_find(cnri_planner *p, cnr_error *err) {
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < p->plan->n_devices && !p->options->training && !status; i++) {
        if (!CNRI_HAS(p->plan->devices[i]->cls, claim)) continue;
        if (!p->plan->regions) p->plan->regions = cnri_alloc_zero(sizeof *p->plan->regions);
        status = p->plan->regions ? ask_device(p, i, err) : cnri_no_memory(err);
    }
    /* The address does not change from here on. */
    for (int32_t i = 0; p->plan->regions && i < p->plan->regions->at.n; i++)
        p->plan->regions->at.at[i].chain.region = &p->plan->regions->at.at[i].node;
    return status;
}

void cnri_regions_free(struct cnri_regions *regions) {
    for (int32_t i = 0; regions && i < regions->at.n; i++) free_region(&regions->at.at[i]);
    if (regions) cnri_vec_free(&regions->at);
    cnri_free(regions);
}

/* ---- which are taken ---- */

const cnri_region *cnri_region_of(const cnri_planner *p, const cnri_candidate *c) {
    return c && c->way >> 2 ? &p->plan->regions->at.at[number_of(c->way) - 1] : NULL;
}

const cnri_region *cnri_region_at(const cnri_planner *p, int32_t node) {
    for (int32_t i = 0; p->plan->regions && i < p->plan->regions->at.n; i++) {
        const cnri_region *r = &p->plan->regions->at.at[i];
        if (r->taken && r->chain.node == node) return r;
    }
    return NULL;
}

/* Time of a candidate in ns: measured, or estimated. */
static double ns_of(const cnri_planner *p, const cnri_candidate *c, const cnri_view *v,
                    const cnr_node *own) {
    uint64_t bytes, flops;
    if (c->cost.ns > 0) return c->cost.ns;
    cnri_count_work(v, own, !c->dense, &bytes, &flops);
    return cnri_guess_ns(p->plan->devices[c->device], c->score, bytes, flops);
}

/* Nanoseconds saved against running its nodes one by one. Infinite if one of them would run on
 * another device by default; negative if one of them must run elsewhere. */
static double gain_of(const cnri_planner *p, const cnri_region *r) {
    const cnri_view all = cnri_view_of(p, &r->chain, r->chain.n, false);
    bool elsewhere = false;
    double ns = 0;
    for (int32_t i = -1; i < r->chain.n; i++) {
        const int32_t node = i < 0 ? r->chain.node : r->chain.at[i];
        const cnri_pick *pick = &p->picks[node];
        if (!belongs(p, node, r->device)) return -1;
        /* The node that it is computed together with counts. */
        if (pick->absorbed_by >= 0) continue;
        if (pick->parts[0].device != r->device) elsewhere = true;
        ns += ns_of(p, &pick->parts[0], &pick->view, &p->graph->nodes.at[node]->view);
    }
    if (p->options->forced_region)
        return r->chain.n + 1 == p->graph->nodes.n &&
                       strcmp(r->row.kernel->name, p->options->forced_region) == 0
                   ? INFINITY
                   : -1;
    if (elsewhere) return INFINITY;
    return ns - ns_of(p, &r->row, &all, &p->graph->nodes.at[r->chain.node]->view);
}

/* A region and the ns that it saves. */
typedef struct ranked {
    int32_t region;
    double gain;
} ranked;

/* Compares gains, the largest first, then region numbers, for qsort. */
static int by_gain(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->gain != y->gain) return x->gain > y->gain ? -1 : 1;
    return x->region - y->region;
}

/* True if no node of the region belongs to a taken region; marks its nodes in `has` then. */
static bool occupy(bool *has, const cnri_region *r) {
    bool is_free = !has[r->chain.node];
    for (int32_t i = 0; i < r->chain.n; i++) is_free = is_free && !has[r->chain.at[i]];
    for (int32_t i = -1; i < r->chain.n && is_free; i++)
        has[i < 0 ? r->chain.node : r->chain.at[i]] = true;
    return is_free;
}

bool cnri_regions_take(cnri_planner *p) {
    const int32_t n = p->plan->regions ? p->plan->regions->at.n : 0;
    if (!n) return false;
    ranked *order = cnri_alloc((size_t)n * sizeof *order);
    bool *has = cnri_alloc_zero((size_t)p->graph->nodes.n + 1), any = false;
    for (int32_t i = 0; order && i < n; i++)
        order[i] = (ranked){i, gain_of(p, &p->plan->regions->at.at[i])};
    if (order) qsort(order, (size_t)n, sizeof *order, by_gain);
    for (int32_t i = 0; order && has && i < n && order[i].gain > 0; i++) {
        cnri_region *r = &p->plan->regions->at.at[order[i].region];
        if (!occupy(has, r)) continue;
        r->rule = isinf(order[i].gain) ? "device" : "cost";
        any = true;
    }
    cnri_free(order);
    cnri_free(has);
    cnri_regions_reset(p);
    return any;
}

void cnri_regions_reset(cnri_planner *p) {
    for (int32_t i = 0; p->plan->regions && i < p->plan->regions->at.n; i++)
        p->plan->regions->at.at[i].taken = p->plan->regions->at.at[i].rule;
}

/* Takes the regions that the stored plan took; CNR_E_VERSION: one is claimed no longer. */
cnr_status cnri_regions_follow_memo(cnri_planner *p, cnr_error *err) {
    const cnri_memo *memo = p->options->memo;
    for (int32_t i = 0; i < memo->decisions.n; i++) {
        const cnri_decision *d = &memo->decisions.at[i];
        const int32_t number = number_of(d->way);
        if (!number) continue;
        cnri_region *r = p->plan->regions && number <= p->plan->regions->at.n
                             ? &p->plan->regions->at.at[number - 1]
                             : NULL;
        if (!r || r->chain.node != d->node || r->row.way >> 2 != d->way >> 2)
            return cnri_fail(err, CNR_E_VERSION, d->device, "no longer claims region %d",
                             (int)number);
        CNR_TRY(cnri_memo_check(p, d->node, d, &r->row, err));
        r->taken = "stored";
    }
    return CNR_OK;
}
