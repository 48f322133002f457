/* Which row of a node is taken, and by whom: rules in the order in which they are asked, each a pure
 * function of the rows. */
#include "core/plan/planner.h"

bool cnri_kernel_only_forced(const cnr_kernel *k) {
    return CNRI_HAS(k, flags) && k->flags & CNR_KERNEL_FORCED;
}

bool cnri_kernel_stores_so(const cnri_question *q, const cnr_kernel *k) {
    const uint32_t asked = CNR_KERNEL_F16 | CNR_KERNEL_BF16 | CNR_KERNEL_F16_MATH;
    const uint32_t stores = CNRI_HAS(k, flags) ? k->flags & asked : 0;
    return (stores & ~q->stores) == 0;
}

bool cnri_kernel_drives(const cnr_kernel *k, const cnr_device *device) {
    return strcmp(k->device, device->cls->name) == 0 || strcmp(k->device, device->cls->family) == 0;
}

/* ---- what rules are made of ---- */

static bool always(const cnri_question *q) {
    (void)q;
    return true;
}

static bool usual(const cnri_question *q, const cnr_kernel *k) {
    return !cnri_kernel_only_forced(k) && cnri_kernel_stores_so(q, k);
}

/* The least of both, where both are known; else the higher score; else the longer chain. */
static bool better(const cnri_candidate *a, const cnri_candidate *b) {
    if (!a->score || !b->score) return a->score > b->score; /* the reference comes last */
    const double x = a->cost.ns + a->around_ns, y = b->cost.ns + b->around_ns;
    if (a->cost.ns > 0 && b->cost.ns > 0 && x != y) return x < y;
    if (a->score != b->score) return a->score > b->score;
    return a->n_chain > b->n_chain;
}

/* As halves, and as it was asked for, or there were no such row; of weights as the net has them. */
static bool as_asked(const cnri_candidate *c) {
    return c->kernel && CNRI_HAS(c->kernel, flags) && !c->dense &&
           c->kernel->flags & (CNR_KERNEL_F16 | CNR_KERNEL_BF16 | CNR_KERNEL_F16_MATH);
}

/* The best of those whose numbers are at least as sure as that; who stores weights as was asked goes
 * before who does not, and so who multiplies so. */
static int32_t best(const cnri_rows *rows, cnri_source least) {
    int32_t found = -1;
    bool asked = false;
    for (int32_t i = 0; i < rows->n; i++) asked = asked || as_asked(&rows->at[i]);
    for (int32_t i = 0; i < rows->n; i++) {
        const cnri_candidate *c = &rows->at[i];
        if (asked && !as_asked(c)) continue;
        if (least > CNRI_GUESSED && (c->cost.from < least || !c->kernel)) continue;
        if (found < 0 || better(c, &rows->at[found])) found = i;
    }
    return found;
}

static int32_t by_score(const cnri_question *q, const cnri_rows *rows) {
    (void)q;
    return best(rows, CNRI_GUESSED);
}

/* ---- by a stored plan: one row is made, and it is that or none ---- */

static bool is_stored(const cnri_question *q) {
    return q->told != NULL;
}

static bool wants_stored(const cnri_question *q, const cnr_kernel *k) {
    return strcmp(k->name, q->told->kernel) == 0;
}

/* ---- inputs whose sizes are known when it runs: kernels are made for sizes ---- */

static bool is_dynamic(const cnri_question *q) {
    return q->dynamic;
}

static bool wants_none(const cnri_question *q, const cnr_kernel *k) {
    (void)q;
    (void)k;
    return false;
}

/* ---- forced by name ---- */

static bool is_forced(const cnri_question *q) {
    return q->only != NULL;
}

static bool wants_forced(const cnri_question *q, const cnr_kernel *k) {
    return strcmp(k->name, q->only) == 0;
}

/* The reference by its name; or where no kernel of that name is known to the device. */
static int32_t by_force(const cnri_question *q, const cnri_rows *rows) {
    const int32_t i = best(rows, CNRI_GUESSED);
    const bool reference = strcmp(q->only, cnri_reference_name) == 0;
    if (i < 0 || rows->at[i].kernel || reference) return i;
    return rows->named || q->own ? -1 : i;
}

/* ---- by a policy of the whole net: its row, or what is most like it among today's neighbours ---- */

static bool is_answered(const cnri_question *q) {
    return q->answer != NULL;
}

static bool wants_answered(const cnri_question *q, const cnr_kernel *k) {
    return k == q->answer->kernel;
}

static bool alike(const cnri_candidate *a, const cnri_candidate *b) {
    return a->n_chain == b->n_chain && a->n_in == b->n_in && a->n_out == b->n_out &&
           memcmp(a->layout, b->layout, 2 * (size_t)(a->n_in + a->n_out) * sizeof *a->layout) == 0;
}

static int32_t by_answer(const cnri_question *q, const cnri_rows *rows) {
    for (int32_t i = 0; i < rows->n; i++)
        if (rows->at[i].kernel == q->answer->kernel && alike(&rows->at[i], q->answer)) return i;
    return best(rows, CNRI_GUESSED);
}

/* ---- by the record, by score ---- */

static bool is_untimed(const cnri_question *q) {
    return q->untimed;
}

static int32_t by_record(const cnri_question *q, const cnri_rows *rows) {
    (void)q;
    return best(rows, CNRI_MEASURED);
}

static const cnri_rule rules[] = {
    {"stored", is_stored, wants_stored, by_score},
    {"dynamic", is_dynamic, wants_none, by_score},
    {"forced", is_forced, wants_forced, by_force},
    {"policy", is_answered, wants_answered, by_answer},
    {"deterministic", is_untimed, usual, by_score},
    {"record", always, usual, by_record}, /* where it has times */
    {"score", always, usual, by_score},
};

const cnri_rule *cnri_rule_for(const cnri_question *q) {
    const cnri_rule *rule = rules;
    while (!rule->says(q)) rule++;
    return rule;
}

int32_t cnri_rule_pick(const cnri_rule **rule, const cnri_question *q, const cnri_rows *rows) {
    const int32_t i = (*rule)->pick(q, rows);
    if (i >= 0 || (*rule)->pick != by_record) return i;
    return (++*rule)->pick(q, rows);
}
