/* Cost of a net on one device alone, by a table of candidates: the cheapest row of each node, and
 * the layout conversions and copies between these rows. */
#include "show/show.h"

/* Index of the cheapest row of the node on that device; negative: there is none. */
static int32_t least_on(const cnri_table *t, int32_t node, int32_t device) {
    const cnri_table_node *n = &t->nodes.at[node];
    int32_t minimum = -1;
    for (int32_t i = n->first; i < n->first + n->n_rows; i++)
        if (t->rows.at[i].device == device &&
            (minimum < 0 || t->rows.at[i].cost.ns < t->rows.at[minimum].cost.ns))
            minimum = i;
    return minimum;
}

/* Index of the cheapest row of the node on that device, or else on the first other wanted device
 * that has one; -1: none. */
static int32_t least_of(const cnri_table *t, int32_t node, int32_t device) {
    int32_t row = least_on(t, node, device);
    for (int32_t d = 0; d < t->devices.n && row < 0; d++)
        if (t->devices.at[d].wanted) row = least_on(t, node, d);
    return row;
}

/* Returns the last of the nodes that the row computes; each is the first reader of the previous
 * one. Sets `taken` for all but the row's own node. */
static int32_t last_of(const cnri_table_row *row, const int32_t *user, bool *taken) {
    int32_t at = row->node;
    for (int32_t k = 1; k < row->takes && user[at] >= 0; k++) taken[at = user[at]] = true;
    return at;
}

cnr_status cnri_table_alone(const cnri_table *t, int32_t device, cnri_cost *out, cnr_error *err) {
    const int32_t n = t->nodes.n;
    int32_t *user = cnri_alloc(2 * ((size_t)n + 1) * sizeof *user),
            *from = user ? user + n + 1 : NULL;
    bool *taken = cnri_alloc_zero((size_t)n + 1), metered = true;
    double idle = 0, ns = 0, joules = 0;
    for (int32_t i = 0; user && i < n; i++) user[i] = from[i] = -1;
    for (int32_t i = n - 1; user && i >= 0; i--)
        for (int32_t k = 0; k < t->nodes.at[i].n_inputs; k++)
            if (t->nodes.at[i].inputs[k] >= 0) user[t->nodes.at[i].inputs[k]] = i;
    for (int32_t d = 0; d < t->devices.n; d++)
        if (t->devices.at[d].idle_watts > idle) idle = t->devices.at[d].idle_watts;
    for (int32_t i = 0; user && taken && i < n; i++) {
        const int32_t minimum = taken[i] ? -1 : least_of(t, i, device);
        if (minimum < 0) continue;
        const cnri_table_row *row = &t->rows.at[minimum];
        double moved = 0;
        for (int32_t k = 0; k < t->nodes.at[i].n_inputs; k++) {
            const int32_t input = t->nodes.at[i].inputs[k];
            if (input >= 0 && from[input] >= 0)
                moved += cnri_table_between(t, from[input], minimum);
        }
        ns += row->cost.ns + moved;
        metered = metered && row->cost.joules > 0;
        joules += row->cost.joules + moved * 1e-9 * idle;
        from[i] = from[last_of(row, user, taken)] = minimum;
    }
    const bool capacity = user && taken;
    cnri_free(user);
    cnri_free(taken);
    const double watts = t->devices.at[device].busy_watts;
    *out = (cnri_cost){.ns = ns, .joules = metered ? joules : watts > 0 ? watts * ns * 1e-9 : 0};
    return capacity ? CNR_OK : cnri_fail(err, CNR_E_MEMORY, "plan", "out of memory while planning");
}
