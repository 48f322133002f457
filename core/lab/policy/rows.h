/* The planner's candidates behind the rows of a table; inside policy/ only. */
#ifndef CNRI_POLICY_ROWS_H
#define CNRI_POLICY_ROWS_H

#include "plan/planner.h"
#include "policy/policy.h"

/* What a table keeps beside its rows: each row's candidate, and the lists and texts that they point
 * to. */
struct cnri_kept_rows {
    /* Parallel to the table's rows; behind `layout` follow the values. */
    CNRI_VEC(cnri_candidate) at;
    CNRI_VEC(int32_t *) lists;
    CNRI_VEC(char *) texts;
    uint64_t *value_bytes;
};
/* The values of a kept candidate: n_in inputs, then n_out outputs, behind its layouts in the same
 * block. */
static inline const cnr_value *cnri_kept_values(const cnri_candidate *c) {
    return c->layout + 2 * (c->n_in + c->n_out);
}
/* links.c: adds nodes, devices and links to the table; fills the links of the plan's copies. */
cnr_status cnri_table_add_devices_links(cnri_planner *p, cnri_table *t, cnr_error *err);
/* Adds to the plan the costs of transfers for each pair of devices between which it copies. */
cnr_status cnri_plan_links(cnri_planner *p, cnr_error *err);
/* answer.c: asks the policy, and chooses again by its answer. */
cnr_status cnri_policy_ask(cnri_planner *p, cnr_error *err);
/* measure.c */
/* Whether the node computes nothing: its output shares the bytes of its input. */
bool cnri_only_shares(const cnri_planner *p, const cnr_node *node);

#endif
