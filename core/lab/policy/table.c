/* Makes a table of all rows of a net on every device of the plan, with those picked marked. */
#include "policy/rows.h"

#define GUESS_NS_A_VIEW 1.0 /* for a step whose output shares the bytes of its input */

/* The layouts that a value may have, as a list for each value and device. */
typedef struct offers_seen {
    CNRI_VEC(cnri_offer) at;
    CNRI_VEC(int32_t) next; /* next layout of the same value */
    int32_t *first;         /* by value: its first layout; -1: none */
} offers_seen;

/* A table that is being filled. */
typedef struct tabling {
    cnri_planner *p;
    cnri_table *t;
    offers_seen seen;
    cnri_offer *offers; /* the layouts offered now, in place of the planner's */
    int32_t node;
} tabling;

/* ---- what could be offered to a node ---- */

/* Notes, once, a layout in which a value may be available. False: out of memory. */
static bool add_offer(offers_seen *s, cnr_value v, cnri_offer o) {
    for (int32_t i = s->first[v]; i >= 0; i = s->next.at[i]) {
        const cnri_offer *was = &s->at.at[i];
        if (was->device == o.device && was->block == o.block && was->memory_class == o.memory_class)
            return true;
    }
    cnri_offer *slot = cnri_push(&s->at);
    int32_t *next = slot ? cnri_push(&s->next) : NULL;
    if (!next) return false;
    *slot = o;
    *next = s->first[v];
    s->first[v] = s->at.n - 1;
    return true;
}

/* True if that layout was noted for the value. */
static bool could_be(const offers_seen *s, cnr_value v, const cnri_offer *o) {
    for (int32_t i = s->first[v]; i >= 0; i = s->next.at[i])
        if (memcmp(&s->at.at[i], o, sizeof *o) == 0) return true;
    return false;
}

/* Offers layout `o` in all inputs that could have it, else plain. NULL: plain in all. */
static void set_offers(tabling *g, const cnri_chain *chain, const cnri_offer *o) {
    for (int32_t i = 0; i < chain->n_in[chain->n]; i++) {
        const cnr_value v = chain->in[i];
        if (v < 0) continue;
        g->offers[v] = (cnri_offer){.device = -1};
        if (o && v < g->p->n_offers && could_be(&g->seen, v, o)) g->offers[v] = *o;
    }
}

/* ---- what a row says ---- */

/* A copy of the text that the table keeps; NULL: out of memory. */
static const char *keep_text(cnri_table *t, const char *text) {
    for (int32_t i = t->kept->texts.n - 1; i >= 0; i--)
        if (t->kept->texts.at[i] && strcmp(t->kept->texts.at[i], text) == 0)
            return t->kept->texts.at[i];
    char **slot = cnri_push(&t->kept->texts);
    return slot ? *slot = cnri_strdup(text) : NULL;
}

/* Appends a layout as text: "c8 image", "plain". */
static void add_layout(cnri_text *out, const cnr_device *d, int32_t block, int32_t memory_class) {
    if (block > 1) cnri_text_add(out, "c%d", (int)block);
    if (memory_class > 0)
        cnri_text_add(out, "%s%s", block > 1 ? " " : "", d->memory[memory_class].name);
    else if (block <= 1) cnri_text_add(out, "plain");
}

/* Text of the layouts without weights: "plain", or one for each if they differ: "c4,plain". The
 * table owns it; NULL: no memory. */
static const char *layout_text(tabling *g, const cnri_candidate *c, const cnr_value *values,
                               int32_t n, const int32_t *block, const int32_t *memory) {
    const cnr_device *d = g->p->plan->devices[c->device];
    int32_t first = -1;
    bool alike = true;
    cnri_text text = {0};
    for (int32_t i = 0; i < n; i++) {
        if (values[i] < 0 || cnri_is_weight(g->p->graph, values[i])) continue;
        if (first < 0) first = i;
        if (block[i] != block[first] || memory[i] != memory[first]) alike = false;
    }
    for (int32_t i = 0; i < n; i++) {
        if (values[i] < 0 || cnri_is_weight(g->p->graph, values[i])) continue;
        if (alike && i != first) continue;
        if (text.n) cnri_text_add(&text, ",");
        add_layout(&text, d, block[i], memory[i]);
    }
    const char *kept = text.failed ? NULL : keep_text(g->t, text.n ? text.at : "plain");
    cnri_text_free(&text);
    return kept;
}

/* Encoding of a candidate's weight: its name, "decoded", or "". */
static const char *encodings_text(const cnri_view *v, const cnri_candidate *c) {
    for (int32_t i = 0; i < v->n_in; i++)
        if (v->node.inputs[i] && v->node.inputs[i]->encoding)
            return c->dense ? "decoded" : cnri_name(v->node.inputs[i]->encoding);
    return "";
}

/* Estimated ns of a row that was not timed. */
static double guess_ns(const cnri_planner *p, const cnr_node *node, const cnr_device *d,
                       const cnri_table_row *row) {
    if (!row->score && cnri_only_shares(p, node)) return GUESS_NS_A_VIEW;
    return cnri_guess_ns(d, row->score, row->bytes, row->flops);
}

/* Keeps a copy of the planner's candidate, with its layouts and the values that it reads and
 * writes; false: no memory. */
static bool keep_candidate(cnri_table *t, const cnri_candidate *c, const cnri_view *v) {
    const size_t n = (size_t)(c->n_in + c->n_out);
    int32_t **list = cnri_push(&t->kept->lists);
    cnri_candidate *kept = list ? cnri_push(&t->kept->at) : NULL;
    if (!kept) return false;
    *kept = *c;
    *list = kept->layout = cnri_alloc((3 * n + 1) * sizeof **list);
    if (!*list) return false;
    memcpy(kept->layout, c->layout, 2 * n * sizeof **list);
    memcpy(kept->layout + 2 * n, v->in, (size_t)c->n_in * sizeof **list);
    memcpy(kept->layout + 2 * n + c->n_in, v->out, (size_t)c->n_out * sizeof **list);
    return true;
}

/* True if two candidates differ in nothing that a policy could choose. */
static bool same_candidate(const cnri_candidate *a, const cnri_candidate *b) {
    return a->kernel == b->kernel && a->device == b->device && a->n_chain == b->n_chain &&
           a->dense == b->dense && a->way >> 2 == b->way >> 2 && a->n_in == b->n_in &&
           a->n_out == b->n_out &&
           memcmp(a->layout, b->layout, 2 * (size_t)(a->n_in + a->n_out) * sizeof *a->layout) == 0;
}

/* Adds a candidate as a row of the table; nothing if the node has that row. */
static cnr_status add_row(tabling *g, const cnri_chain *chain, const cnri_candidate *c,
                          cnr_error *err) {
    cnri_table *t = g->t;
    const cnri_table_node *node = &t->nodes.at[g->node];
    for (int32_t i = node->first; i < t->rows.n; i++)
        if (same_candidate(&t->kept->at.at[i], c)) return CNR_OK;
    const cnri_view v = cnri_view_of(g->p, chain, c->n_chain, false);
    const cnr_device *d = g->p->plan->devices[c->device];
    cnri_table_row *row = cnri_push(&t->rows);
    if (!row || !keep_candidate(t, c, &v)) return cnri_no_memory(err);
    *row = (cnri_table_row){.node = g->node,
                            .device = c->device,
                            .takes = c->n_chain + 1,
                            .score = c->score,
                            .kernel = cnri_candidate_name(c),
                            .cost = c->cost,
                            .splits = c->splits != 0,
                            .extrapolated = c->extrapolated,
                            .encodings = encodings_text(&v, c)};
    row->layout_in = layout_text(g, c, v.in, v.n_in, cnri_layout(c, CNRI_IN_BLOCK),
                                 cnri_layout(c, CNRI_IN_CLASS));
    row->layout_out = layout_text(g, c, v.out, v.n_out, cnri_layout(c, CNRI_OUT_BLOCK),
                                  cnri_layout(c, CNRI_OUT_CLASS));
    if (!row->layout_in || !row->layout_out) return cnri_no_memory(err);
    const cnr_node *own = &g->p->graph->nodes.at[chain->node]->view;
    cnri_count_work(&v, own, !c->dense, &row->bytes, &row->flops);
    if (row->cost.remainder_ns > 0) row->cost.joules *= 1 - row->cost.remainder_ns / row->cost.ns;
    row->cost.ns -= row->cost.remainder_ns;
    row->guess = guess_ns(g->p, own, d, row);
    if (row->cost.ns <= 0) row->cost.ns = row->guess;
    for (int32_t i = 0; i < v.n_out; i++)
        if (!add_offer(&g->seen, v.out[i],
                       (cnri_offer){c->device, cnri_layout(c, CNRI_OUT_BLOCK)[i],
                                    cnri_layout(c, CNRI_OUT_CLASS)[i]}))
            return cnri_no_memory(err);
    t->nodes.at[g->node].n_rows++;
    return CNR_OK;
}

/* ---- all rows of a node ---- */

/* True for all kernels that a policy may choose. */
static bool wants_all(const cnri_kernel_query *q, const cnr_kernel *k) {
    return (!cnri_kernel_only_forced(k) && cnri_kernel_storage_allowed(q, k)) ||
           (q->forced_name && strcmp(q->forced_name, k->name) == 0);
}

/* Adds the rows of a node under the layout o of its inputs (NULL: plain) */
static cnr_status rows_under(tabling *g, cnri_chain *chain, const cnri_kernel_query *q,
                             const char *key, const cnri_offer *o, cnr_error *err) {
    static const cnri_rule all = {.name = "all", .wants = wants_all};
    cnri_planner *p = g->p;
    cnri_offer *const own = p->offers;
    set_offers(g, chain, o);
    p->offers = g->offers;
    cnr_status status = cnri_candidates_make(p, chain, q, &all, key, err);
    p->offers = own;
    for (int32_t i = 0; i < p->rows.n && !status; i++)
        status = add_row(g, chain, &p->rows.at[i], err);
    return status;
}

/* Adds the rows of a node on one device, for each layout of its inputs. */
static cnr_status rows_on(tabling *g, cnri_chain *chain, cnri_kernel_query *q, cnr_error *err) {
    char key[CNRI_TUNING_KEY];
    cnr_status status = cnri_tuning_begin(g->p, chain, q, key, err);
    if (!status) status = rows_under(g, chain, q, key, NULL, err);
    for (int32_t i = 0; i < chain->n_in[chain->n] && !status; i++) {
        const cnr_value v = chain->in[i];
        if (v < 0 || v >= g->p->n_offers || cnri_is_weight(g->p->graph, v)) continue;
        for (int32_t k = g->seen.first[v]; k >= 0 && !status; k = g->seen.next.at[k]) {
            const cnri_offer o = g->seen.at.at[k];
            if (o.device == q->device && (o.block || o.memory_class))
                status = rows_under(g, chain, q, key, &o, err);
        }
    }
    return status;
}

/* Scales guessed times by the ratio of measured time to guess of the fastest measured row, so
 * that both can be compared. */
static void scale_guesses(cnri_table *t, int32_t first) {
    const cnri_table_row *minimum = NULL;
    for (int32_t i = first; i < t->rows.n; i++) {
        const cnri_table_row *r = &t->rows.at[i];
        if (r->cost.from == CNRI_MEASURED && (!minimum || r->cost.ns < minimum->cost.ns))
            minimum = r;
    }
    const double factor = minimum && minimum->guess > 0 ? minimum->cost.ns / minimum->guess : 1;
    for (int32_t i = first; i < t->rows.n; i++)
        if (t->rows.at[i].cost.from == CNRI_GUESSED)
            t->rows.at[i].cost.ns = t->rows.at[i].guess * factor;
}

/* Adds the rows of a node on all devices. */
static cnr_status rows_of(tabling *g, int32_t node, cnr_error *err) {
    cnri_planner *p = g->p;
    cnri_pick *pick = &p->picks[node];
    cnri_chain own = {0}, *chain = &pick->chain;
    cnr_status status = CNR_OK;
    if (pick->absorbed_by >= 0 || chain->region)
        status = cnri_chain_make(p, node, chain = &own, err);
    cnri_kernel_query q = cnri_query_of(p, node, -1);
    /* A node computed together with another is not timed by itself. */
    q.unmeasured = pick->absorbed_by >= 0;
    q.cap = chain->n;
    if (q.dynamic) q.cap = 0;
    g->node = node;
    g->t->nodes.at[node].first = g->t->rows.n;
    for (int32_t d = 0; d < p->plan->n_devices && !status; d++) {
        const int32_t first = g->t->rows.n;
        cnri_query_set_device(p, &q, d);
        status = rows_on(g, chain, &q, err);
        scale_guesses(g->t, first);
    }
    cnri_chain_free(&own);
    for (int32_t i = 0; p->plan->regions && i < p->plan->regions->at.n && !status; i++) {
        const cnri_region *r = &p->plan->regions->at.at[i];
        if (r->chain.node == node) status = add_row(g, &r->chain, &r->row, err);
    }
    return status;
}

/* ---- making and marking ---- */

/* Sets each device's mean watts while it works, and its highest clock, from all measured rows. */
static void find_busy(cnri_table *t) {
    for (int32_t d = 0; d < t->devices.n; d++) {
        double joules = 0, ns = 0;
        for (int32_t i = 0; i < t->rows.n; i++) {
            const cnri_table_row *row = &t->rows.at[i];
            if (row->device != d || !(row->cost.joules > 0)) continue;
            joules += row->cost.joules;
            ns += row->cost.ns;
            if (row->cost.mhz > t->devices.at[d].mhz) t->devices.at[d].mhz = row->cost.mhz;
        }
        if (ns > 0) t->devices.at[d].busy_watts = joules / (ns * 1e-9);
    }
}

/* Fills the table: devices, nodes, rows and transfers between devices. */
static cnr_status fill(tabling *g, cnr_error *err) {
    const cnri_planner *p = g->p;
    cnri_table *t = g->t;
    const size_t n = (size_t)p->graph->values.n + 1;
    cnr_status status = CNR_OK;
    g->seen.first = cnri_alloc(n * sizeof *g->seen.first);
    /* Room for a dense twin of each value. */
    g->offers = cnri_alloc_zero(2 * n * sizeof *g->offers);
    t->kept = cnri_alloc_zero(sizeof *t->kept);
    if (!g->seen.first || !g->offers || !t->kept) return cnri_no_memory(err);
    for (size_t v = 0; v < n; v++) g->seen.first[v] = -1;
    status = cnri_table_add_devices_links(g->p, t, err);
    for (int32_t i = 0; i < p->graph->nodes.n && !status; i++) status = rows_of(g, i, err);
    if (status) return status;
    find_busy(t);
    t->kept->value_bytes = cnri_alloc_zero(((size_t)p->graph->values.n + 1) * sizeof(uint64_t));
    if (!t->kept->value_bytes) return cnri_no_memory(err);
    for (int32_t v = 0; v < p->graph->values.n; v++)
        t->kept->value_bytes[v] = cnri_stored_bytes(p->graph->values.at[v].type);
    return CNR_OK;
}

/* Makes the plan's table of costs; the plan owns it, also after an error. */
static cnr_status make(cnri_planner *p, cnr_error *err) {
    tabling g = {.p = p, .t = cnri_alloc_zero(sizeof *g.t)};
    if (!g.t) return cnri_no_memory(err);
    p->plan->table = g.t;
    const cnr_status status = fill(&g, err);
    cnri_free(g.seen.first);
    cnri_vec_free(&g.seen.at);
    cnri_vec_free(&g.seen.next);
    cnri_free(g.offers);
    return status;
}

/* The table's row of a part in its layouts, or in others if a split or neighbours changed them;
 * NULL: none. */
static cnri_table_row *row_of(cnri_table *t, int32_t node, const cnri_candidate *part) {
    const cnri_table_node *n = &t->nodes.at[node];
    cnri_table_row *near = NULL;
    for (int32_t i = n->first; i < n->first + n->n_rows; i++) {
        const cnri_candidate *c = &t->kept->at.at[i];
        if (same_candidate(c, part)) return &t->rows.at[i];
        if (c->kernel != part->kernel || c->device != part->device) continue;
        if (!near || c->n_chain == part->n_chain) near = &t->rows.at[i];
    }
    return near;
}

/* Notes in the table which rows the plan takes, by which rule, and which nodes are computed with
 * others. */
static void mark(cnri_planner *p) {
    cnri_table *t = p->plan->table;
    for (int32_t i = 0; i < t->rows.n; i++) t->rows.at[i].by = NULL;
    for (int32_t i = 0; i < p->n_picks; i++) {
        const cnri_pick *pick = &p->picks[i];
        const int32_t by = pick->absorbed_by;
        t->nodes.at[i].with = by >= 0 ? t->nodes.at[by].name : NULL;
        for (int32_t k = 0; by < 0 && k < pick->n_parts; k++) {
            const cnri_candidate *part = &pick->parts[k];
            cnri_table_row *row = row_of(t, i, part);
            if (!row) continue;
            const int64_t dim = pick->axis < 0 ? 1 : pick->view.node.outputs[0]->dim[pick->axis];
            const double size = dim > 0 ? (double)dim : 1;
            row->by = part->by;
            row->share = pick->axis < 0 ? 1 : (double)(part->end - part->begin) / size;
        }
    }
}

/* Frees a table with all that it keeps; NULL: nothing. */
static void free_table(cnri_table *t) {
    if (!t) return;
    struct cnri_kept_rows *kept = t->kept;
    for (int32_t i = 0; kept && i < kept->lists.n; i++) cnri_free(kept->lists.at[i]);
    for (int32_t i = 0; kept && i < kept->texts.n; i++) cnri_free(kept->texts.at[i]);
    if (kept) {
        cnri_vec_free(&kept->at);
        cnri_vec_free(&kept->lists);
        cnri_vec_free(&kept->texts);
        cnri_free(kept->value_bytes);
    }
    cnri_free(kept);
    cnri_vec_free(&t->rows);
    cnri_vec_free(&t->nodes);
    cnri_vec_free(&t->devices);
    cnri_vec_free(&t->links);
    cnri_free(t->notes);
    cnri_free(t->failure);
    cnri_free(t);
}

/* ---- what the planner calls ---- */

/* Marks the rows that rules took; if `asks`, asks the policy and marks again. */
static cnr_status choose(cnri_planner *p, bool asks, cnr_error *err) {
    mark(p);
    const cnr_status status = asks ? cnri_policy_ask(p, err) : CNR_OK;
    if (!status) mark(p);
    return status;
}

void cnri_policies_register(void) {
    static const cnri_chooser chooser = {make, choose, cnri_plan_links, free_table};
    cnri_chooser_register(&chooser);
}
