/* The planner's candidates behind the rows of a table; inside policy/ only. */
#ifndef CNRI_POLICY_ROWS_H
#define CNRI_POLICY_ROWS_H

#include "plan/planner.h"
#include "policy/policy.h"

struct cnri_kept_rows {
    /* Parallel to the table's rows; behind `layout` follow the values. */
    CNRI_VEC(cnri_candidate) at;
    CNRI_VEC(int32_t *) lists;
    CNRI_VEC(char *) texts;
    uint64_t *value_bytes;
};
static inline const cnr_value *cnri_kept_values(const cnri_candidate *c) {
    return c->layout + 2 * (c->n_in + c->n_out);
}
/* links.c: adds nodes, devices and links to the table; fills the links of the plan's copies. */
cnr_status cnri_table_add_devices_links(cnri_planner *p, cnri_table *t, cnr_error *err);
cnr_status cnri_plan_links(cnri_planner *p, cnr_error *err);
/* answer.c: asks the policy, and chooses again by its answer. */
cnr_status cnri_policy_ask(cnri_planner *p, cnr_error *err);

#endif
