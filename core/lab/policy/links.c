/* The devices and links of a table, and the cost of moving a value from one row to another; the
 * links that a plan's copies use. */
#include "policy/rows.h"

/* Guesses for links without a recorded time: fixed cost of a transfer, and cost of a byte. */
#define GUESS_NS_A_COPY 1e3
#define GUESS_NS_A_COPY_AWAY 2e4 /* for a copy from or to a device that is not the host */
#define GUESS_NS_A_BYTE 0.1
#define GUESS_NS_A_BYTE_AWAY 0.4

/* Appends a node, with the nodes that make its inputs, to the table that policies see. */
static cnr_status add_node(cnri_planner *p, cnri_table *t, int32_t node, cnr_error *err) {
    const cnri_node *n = p->graph->nodes.at[node];
    cnri_table_node *to = cnri_push(&t->nodes);
    int32_t **list = to ? cnri_push(&t->kept->lists) : NULL;
    if (!list || !(*list = cnri_alloc(((size_t)n->view.n_inputs + 1) * sizeof **list)))
        return cnri_no_memory(err);
    for (int32_t i = 0; i < n->view.n_inputs; i++) {
        const cnr_value v = n->in[i];
        if (v < 0 || cnri_is_weight(p->graph, v)) continue;
        (*list)[to->n_inputs++] = p->graph->values.at[v].producer;
    }
    to->inputs = *list;
    to->name = cnri_node_name(p, node);
    to->op = n->view.desc->name;
    to->flops = 2 * cnri_node_macs(&n->view);
    to->axes = cnri_split_axes(p, node);
    to->pieces = cnri_split_pieces(p, node, cnri_default_axis(to->axes));
    for (int32_t i = 0; i < n->view.n_outputs; i++)
        to->out_bytes += cnri_stored_bytes(n->view.outputs[i]);
    if (p->wish[node])
        to->wished = p->wish[node]->n_parts > 1 ? "several" : p->wish[node]->parts[0].device;
    to->forced = cnri_query_of(p, node, -1).forced_name;
    return CNR_OK;
}

/* Watts of a recorded row that has joules and a time; 0: NULL, or none. */
static double watts(const cnri_timed *row) {
    return row && row->cost.joules > 0 ? row->cost.joules / (row->cost.ns * 1e-9) : 0;
}

/* True if the table has rows of this device: it is one of the command's, else one of the
 * policy's; if neither names any, all are. */
static bool is_wanted(const cnri_planner *p, int32_t device) {
    const cnri_policy *policy = p->options->policy;
    const char *const *names = p->options->devices;
    if (!names && policy) names = policy->devices;
    if (!names) return true;
    for (; *names; names++)
        if (cnri_device_set_find(p->set, *names) == device) return true;
    return false;
}

/* Adds a device, with measured power and frequency, to the table that policies see. */
static cnr_status add_device(cnri_planner *p, cnri_table *t, int32_t device, cnr_error *err) {
    const cnr_device *d = p->plan->devices[device];
    const cnri_tuning *record = p->options->deterministic ? NULL : p->options->tuning;
    cnri_table_device *to = cnri_push(&t->devices);
    char key[CNRI_TUNING_KEY];
    if (!to) return cnri_no_memory(err);
    *to = (cnri_table_device){.name = d->name,
                              .cls = d->cls->name,
                              .host = cnri_is_host(d),
                              .wanted = is_wanted(p, device),
                              .units = d->concurrency};
    if (!record) return CNR_OK;
    const cnr_status status = cnri_tuning_device_key(p->set->at[device], key, err);
    const cnri_timed *idle = status ? NULL : cnri_tuning_find(record, key, CNRI_TUNING_IDLE);
    to->idle_watts = watts(idle);
    to->mhz = idle ? idle->cost.mhz : 0;
    return status;
}

/* Fills *link with the cost of transfers between two devices: from the record (unless
 * deterministic), or guessed. */
static cnr_status find_link(cnri_planner *p, int32_t from, int32_t to, cnri_table_link *link,
                            cnr_error *err) {
    const cnri_tuning *record = p->options->deterministic ? NULL : p->options->tuning;
    const bool away = !cnri_is_host(p->plan->devices[from]) || !cnri_is_host(p->plan->devices[to]);
    char key[CNRI_TUNING_KEY];
    *link = (cnri_table_link){from, to, away ? GUESS_NS_A_BYTE_AWAY : GUESS_NS_A_BYTE,
                              away ? GUESS_NS_A_COPY_AWAY : GUESS_NS_A_COPY, CNRI_GUESSED};
    if (!record) return CNR_OK;
    const cnr_status status = cnri_tuning_link_key(p->set->at[from], p->set->at[to], key, err);
    const cnri_timed *less = status ? NULL : cnri_tuning_find(record, key, CNRI_TUNING_COPY_LESS);
    const cnri_timed *more = status ? NULL : cnri_tuning_find(record, key, CNRI_TUNING_COPY_MORE);
    if (!less || !more) return status;
    const double more_ns = more->cost.ns > less->cost.ns ? more->cost.ns - less->cost.ns : 0;
    link->ns_per_byte = more_ns / (CNRI_TUNING_BYTES_MORE - CNRI_TUNING_BYTES_LESS);
    link->ns_fixed = less->cost.ns - link->ns_per_byte * CNRI_TUNING_BYTES_LESS;
    if (link->ns_fixed < 0) link->ns_fixed = 0;
    link->source = CNRI_MEASURED;
    return CNR_OK;
}

/* Adds the transfers from one device to another to the table. */
static cnr_status add_link(cnri_planner *p, cnri_table *t, int32_t from, int32_t to,
                           cnr_error *err) {
    cnri_table_link *link = cnri_push(&t->links);
    return link ? find_link(p, from, to, link, err) : cnri_no_memory(err);
}

/* True if the plan has costs of transfers between the two devices already. */
static bool has_link(const cnr_plan *plan, int32_t from, int32_t to) {
    for (int32_t i = 0; i < plan->links.n; i++)
        if (plan->links.at[i].from == from && plan->links.at[i].to == to) return true;
    return false;
}

/* Adds to the plan the costs of transfers for each pair of devices between which it copies. */
cnr_status cnri_plan_links(cnri_planner *p, cnr_error *err) {
    cnr_plan *plan = p->plan;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_COPY) continue;
        const int32_t from = plan->homes.at[s->from].device, to = plan->homes.at[s->to].device;
        if (has_link(plan, from, to)) continue;
        cnri_table_link *link = cnri_push(&plan->links);
        const cnr_status status = link ? find_link(p, from, to, link, err) : cnri_no_memory(err);
        if (status) return status;
    }
    return CNR_OK;
}

cnr_status cnri_table_add_devices_links(cnri_planner *p, cnri_table *t, cnr_error *err) {
    cnr_status status = CNR_OK;
    t->net = p->graph->name ? p->graph->name : "";
    for (int32_t i = 0; i < p->graph->nodes.n && !status; i++) status = add_node(p, t, i, err);
    for (int32_t d = 0; d < p->plan->n_devices && !status; d++) status = add_device(p, t, d, err);
    bool any = false; /* if none of the policy's devices exists, it sees all devices */
    for (int32_t d = 0; d < t->devices.n; d++) any = any || t->devices.at[d].wanted;
    for (int32_t d = 0; d < t->devices.n && !any; d++) t->devices.at[d].wanted = true;
    for (int32_t a = 0; a < p->plan->n_devices; a++)
        for (int32_t b = 0; b < p->plan->n_devices && !status; b++)
            if (a != b) status = add_link(p, t, a, b, err);
    return status;
}

/* ---- between two rows ---- */

/* Costs of transfers between two devices of the table, by their indices; NULL: none. */
static const cnri_table_link *link_of(const cnri_table *t, int32_t from, int32_t to) {
    for (int32_t i = 0; i < t->links.n; i++)
        if (t->links.at[i].from == from && t->links.at[i].to == to) return &t->links.at[i];
    return NULL;
}

/* Estimated ns from an output of candidate a to an input of candidate b: conversions and the
 * transfer. */
static double moving(const cnri_table *t, const cnri_candidate *a, int32_t out,
                     const cnri_candidate *b, int32_t in, double bytes) {
    const int32_t from[] = {cnri_layout(a, CNRI_OUT_BLOCK)[out],
                            cnri_layout(a, CNRI_OUT_CLASS)[out]};
    const int32_t to[] = {cnri_layout(b, CNRI_IN_BLOCK)[in], cnri_layout(b, CNRI_IN_CLASS)[in]};
    const double there = cnri_conversion_rate(t->devices.at[a->device].host) * bytes;
    const double here = cnri_conversion_rate(t->devices.at[b->device].host) * bytes;
    if (a->device == b->device) return from[0] == to[0] && from[1] == to[1] ? 0 : here;
    /* Values travel in the plain layout. */
    const cnri_table_link *link = link_of(t, a->device, b->device);
    const double travels = link ? link->ns_fixed + link->ns_per_byte * bytes : 0;
    return travels + (from[0] || from[1] ? there : 0) + (to[0] || to[1] ? here : 0);
}

double cnri_table_between(const cnri_table *t, int32_t a, int32_t b) {
    const cnri_candidate *from = &t->kept->at.at[a], *to = &t->kept->at.at[b];
    const cnr_value *out = cnri_kept_values(from) + from->n_in, *in = cnri_kept_values(to);
    double ns = 0;
    for (int32_t i = 0; i < from->n_out; i++)
        for (int32_t k = 0; k < to->n_in; k++)
            if (out[i] == in[k]) {
                ns += moving(t, from, i, to, k, (double)t->kept->value_bytes[out[i]]);
                break;
            }
    return ns;
}
