/* Rows of a net, rules that pick among them, and policies of the whole net: whatever they answer,
 * the net's numbers are right; what cannot be followed leaves the default plan, told once. */
#include "show/show.h"
#include "lab.h"
#include "store/store.h"
#include "keep/keep.h"
#include <unistd.h>

/* A net of a chain. */
static cnr_graph *chain_net(void) {
    cnr_graph *g = cnri_graph_new("chain");
    const cnr_tensor t = lab_type(2, 8, 6, 5);
    const cnr_value x = cnri_graph_input(g, "x", &t), side = lab_affine(g, x, 0.5, 1);
    cnr_value v = lab_blur(g, x, 8, 1);
    v = lab_affine(g, v, 2, -1);
    v = lab_op(g, "f_sum", v, side);
    v = lab_blur(g, v, 8, 2);
    v = lab_affine(g, v, 1, 3);
    cnri_graph_output(g, v, "out");
    return g;
}

static const char *const both[] = {"near", "far:0", NULL};

/* ---- a policy of this test ---- */

/* A policy whose answer is a C function. */
typedef struct scripted {
    cnri_policy policy;
    void (*answer)(struct scripted *s, const cnri_table *t, cnri_policy_answer *answers);
    int32_t asked, measured; /* rows with a measured time, the last time */
    uint32_t seed;
    cnr_status fails;
} scripted;

/* Answers by the function of `self`, and counts that it was asked; *notes as that gives them. */
static cnr_status place(cnri_policy *self, const cnri_table *t, cnri_policy_answer *answers,
                        char **notes, cnr_error *err) {
    scripted *s = (scripted *)self;
    s->asked++;
    s->measured = 0;
    for (int32_t i = 0; i < t->rows.n; i++) s->measured += t->rows.at[i].cost.from == CNRI_MEASURED;
    if (s->fails) return cnri_fail(err, s->fails, "made-up:7", "I never choose");
    s->answer(s, t, answers);
    *notes = cnri_strdup("[1]");
    return CNR_OK;
}

static void free_nothing(cnri_policy *self) { (void)self; }

/* A policy whose answers the function gives, on both devices. */
static scripted policy(void (*answer)(scripted *, const cnri_table *, cnri_policy_answer *)) {
    scripted s = {.policy = {.name = "made-up",
                             .where = "made-up:1",
                             .devices = both,
                             .place = place,
                             .free = free_nothing},
                  .answer = answer};
    return s;
}

/* Answers nothing: every node stays as it is. */
static void nothing(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    (void)t;
    (void)a;
}

/* The plan of a net, or NULL. */
static cnr_plan *plan_of(const cnr_graph *g, const cnri_plan_options *o) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    const cnr_tensor *types[] = {g->values.at[g->inputs.at[0]].type};
    if (cnri_plan_make(g, &lab_rt->devices, o, types, 1, &plan, &err))
        note("%s: %s", err.where, err.text);
    return plan;
}

/* True: the plans have the same decisions. */
static bool same_plan(const cnr_plan *a, const cnr_plan *b) {
    bool same = a && b && a->decisions.n == b->decisions.n && a->steps.n == b->steps.n;
    for (int32_t i = 0; same && i < a->decisions.n; i++) {
        const cnri_decision *x = &a->decisions.at[i], *y = &b->decisions.at[i];
        same = x->node == y->node && x->n_chain == y->n_chain && !strcmp(x->kernel, y->kernel) &&
               !strcmp(x->device, y->device);
    }
    return same;
}

/* ---- the table ---- */

/* Number of a row of the table; -1: it is not there. */
static int32_t find_row(const cnri_table *t, int32_t node, const char *kernel, const char *device,
                        const char *in) {
    for (int32_t i = 0; i < t->rows.n; i++) {
        const cnri_table_row *r = &t->rows.at[i];
        if (r->node == node && !strcmp(r->kernel, kernel) && !strcmp(r->layout_in, in) &&
            !strcmp(t->devices.at[r->device].name, device))
            return i;
    }
    return -1;
}

/* Tests: what the table holds. */
static void table(void) {
    cnr_graph *g = chain_net();
    const cnri_plan_options plain = {.device = "near"}, o = {.devices = both, .candidates = true};
    cnr_plan *without = plan_of(g, &plain), *plan = plan_of(g, &o);
    ok(without && !without->table, "nobody asks for rows: none are kept");
    ok(same_plan(without, plan),
       "they don't change the plan; the first of --devices is the default");
    const cnri_table *t = plan->table;
    is_int(t->nodes.n, 6, "a node each");
    int32_t chosen = 0, listed = 0, guessed = 0;
    bool sane = true;
    for (int32_t i = 0; i < t->rows.n; i++) {
        const cnri_table_row *r = &t->rows.at[i];
        const cnri_table_node *n = &t->nodes.at[r->node];
        chosen += r->by != NULL;
        guessed += r->cost.from == CNRI_GUESSED;
        sane = sane && r->cost.ns > 0 && r->bytes > 0 && r->takes >= 1 && i >= n->first &&
               i < n->first + n->n_rows;
    }
    for (int32_t i = 0; i < t->nodes.n; i++) listed += t->nodes.at[i].n_rows;
    is_int(chosen, plan->decisions.n, "as many rows are taken as kernels are in the plan");
    ok(sane && listed == t->rows.n && guessed > 0, "%d rows, each of its node, with a time",
       (int)t->rows.n);
    const int32_t block = find_row(t, 1, "near_blur_block", "near", "c4");
    const int32_t far = find_row(t, 1, "far_blur", "far:0", "plain");
    const int32_t next = find_row(t, 4, "near_blur_block", "near", "c4");
    const int32_t next_plain = find_row(t, 4, "near_blur", "near", "plain");
    if (ok(block >= 0 && far >= 0 && next >= 0 && next_plain >= 0, "kernels of both devices, in "
                                                                   "blocks too")) {
        ok(t->rows.at[block].takes == 3, "with what they take along");
        ok(cnri_table_between(t, block, next) == 0, "blocks to blocks: nothing lies between");
        ok(cnri_table_between(t, block, next_plain) > 0, "blocks to plain: a conversion");
        ok(cnri_table_between(t, far, next_plain) > 0, "from another device: a transfer");
        ok(cnri_table_between(t, next, block) == 0, "what isn't read costs nothing");
    }
    is_int(t->links.n, 2, "a link each way");
    ok(t->links.at[0].source == CNRI_GUESSED && t->links.at[0].ns_per_byte > 0, "of guessed cost");
    cnri_plan_free(without);
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

/* ---- answers that are followed ---- */

/* Answers with kernels in blocks. */
static void blocks_there(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    for (int32_t i = 0; i < t->rows.n; i++) {
        const cnri_table_row *r = &t->rows.at[i];
        if (!strcmp(r->kernel, "near_blur_block") && !strcmp(r->layout_in, "c4"))
            a[r->node].row = i;
    }
}

/* Answers with the far device for all. */
static void all_far(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    for (int32_t i = 0; i < t->nodes.n; i++)
        a[i] = (cnri_policy_answer){.row = -1, .n_parts = 1, .parts = {{"far:0", 1}}};
}

/* Answers with a half for each of two devices. */
static void halves(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    for (int32_t i = 0; i < t->nodes.n; i++)
        if (t->nodes.at[i].axes)
            a[i] = (cnri_policy_answer){.row = -1,
                                        .n_parts = 2,
                                        .axis = -1,
                                        .parts = {{"far:0", 0.5}, {"near", 0.5}}};
}

/* Decisions of the plan for this kernel and device. */
static int32_t decided(const cnr_plan *plan, const char *kernel, const char *device) {
    int32_t n = 0;
    for (int32_t i = 0; plan && i < plan->decisions.n; i++)
        n += (!kernel || !strcmp(plan->decisions.at[i].kernel, kernel)) &&
             (!device || !strcmp(plan->decisions.at[i].device, device));
    return n;
}

/* Tests: answers are followed. */
static void followed(void) {
    cnr_graph *g = chain_net();
    cnr_plan *plan;
    scripted s = policy(blocks_there);
    cnri_plan_options o = {.device = "near", .policy = &s.policy, .candidates = true};
    lab_check(g, &o, &plan, "rows that it picks");
    is_int(decided(plan, "near_blur_block", "near"), 2, "run");
    int32_t by = 0;
    for (int32_t i = 0; i < plan->table->rows.n; i++)
        by += plan->table->rows.at[i].by && !strcmp(plan->table->rows.at[i].by, "policy");
    is_int(by, 2, "and are told to be the policy's");
    is_text(plan->table->notes, "[1]", "with what it shows");
    cnri_plan_free(plan);
    s = policy(all_far);
    o.candidates = false;
    lab_check(g, &o, &plan, "a device for all");
    ok(decided(plan, NULL, "far:0") == plan->decisions.n && !plan->table, "runs all");
    is_int(plan->decisions.n, 3, "and fuses as it would by default");
    cnri_plan_free(plan);
    s = policy(halves);
    lab_check(g, &o, &plan, "every layer in two parts");
    is_int(plan->decisions.n, 12, "has two kernels");
    cnri_plan_free(plan);
    s = policy(all_far);
    cnri_part near = {"near", 1};
    cnri_placement there[] = {{.node = g->nodes.at[4]->name, .n_parts = 1, .parts = &near}};
    o.placements = there;
    o.n_placements = 1;
    lab_check(g, &o, &plan, "a layer placed by hand");
    is_int(decided(plan, NULL, "near"), 1, "stays where it was placed");
    cnri_plan_free(plan);
    static const char *const base[] = {"f_blur=near_blur_base", NULL};
    s = policy(blocks_there);
    o.n_placements = 0;
    o.kernels = base;
    lab_check(g, &o, &plan, "a kernel that is forced");
    is_int(decided(plan, "near_blur_base", "near"), 2, "goes before the policy's");
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

/* ---- answers that are not ---- */

/* Answers with a row that is not there. */
static void no_such_row(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    a[0].row = t->rows.n;
}
/* Answers with a row of another node. */
static void another_row(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    a[0].row = t->rows.n - 1;
}
/* Answers with a device that is not there. */
static void no_such_device(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    (void)t;
    a[1] = (cnri_policy_answer){.row = -1, .n_parts = 1, .parts = {{"mars", 1}}};
}
/* Answers with shares above 1. */
static void too_much(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    (void)t;
    a[1] = (cnri_policy_answer){.row = -1,
                                .n_parts = 2,
                                .axis = 1,
                                .parts = {{"near", 0.6}, {"far:0", 0.6}}};
}
/* Answers with a negative share. */
static void less_than_none(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    (void)t;
    a[1] = (cnri_policy_answer){.row = -1,
                                .n_parts = 2,
                                .axis = 1,
                                .parts = {{"near", -1}, {"far:0", 2}}};
}
/* Answers with a share of a device that is not there. */
static void not_there(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    (void)s;
    (void)t;
    a[1] = (cnri_policy_answer){.row = -1,
                                .n_parts = 2,
                                .axis = 3,
                                .parts = {{"near", 0.5}, {"far:0", 0.5}}};
}

static int32_t told;
/* A log: counts warnings of "policy" in `told`. */
static void count(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg;
    (void)text;
    told += level == CNR_LOG_WARN && strcmp(who, "policy") == 0;
}

/* A test: the answer is refused, with this reason. */
static void refused(const char *what, const char *why, cnr_status fails,
                    void (*answer)(scripted *, const cnri_table *, cnri_policy_answer *)) {
    cnr_graph *g = chain_net();
    scripted s = policy(answer);
    const cnri_plan_options plain = {.device = "near"};
    const cnri_plan_options o = {.device = "near", .policy = &s.policy, .candidates = true};
    s.fails = fails;
    told = 0;
    cnri_log_to(count, NULL, CNR_LOG_WARN);
    cnr_plan *usual = plan_of(g, &plain), *plan = plan_of(g, &o), *again = plan_of(g, &o);
    cnri_log_to(NULL, NULL, -1);
    ok(same_plan(usual, plan) && same_plan(usual, again), "%s: the default plan", what);
    ok(plan && plan->policy_failed && told == 1, "told once");
    if (plan) has_text(plan->table->failure, why, "why");
    cnri_plan_free(usual);
    cnri_plan_free(plan);
    cnri_plan_free(again);
    cnri_graph_free(g);
}

/* ---- as memo, by the record ---- */

/* A test: where the plan with this policy came from, by the cache in folder: `word`. */
static void origin_of(const char *folder, scripted *s, const char *word, const char *what) {
    const cnr_load_options load = {.size = sizeof load, .cache = folder};
    const cnri_plan_options o = {.device = "near", .policy = &s->policy};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnr_plan *plan = NULL;
    cnr_status status = cnri_model_from_graph(lab_rt, chain_net(), &load, &m, &err);
    if (!status) status = cnri_model_set_options(m, &o, &err);
    if (!status) status = cnr_plan_for(m, NULL, 0, &plan, &err);
    has_text(status ? err.text : plan->origin ? plan->origin : "none", word, what);
    cnr_plan_release(plan);
    cnr_release(m);
}

/* Tests: stored plans of a policy. */
static void stored(void) {
    char folder[] = "/tmp/cnnrun-policy-XXXXXX";
    scripted s = policy(halves);
    if (!ok(mkdtemp(folder) != NULL, "a folder")) return;
    origin_of(folder, &s, "miss", "its plan is stored");
    origin_of(folder, &s, "hit", "and taken over, its shares too");
    is_int(s.asked, 1, "without asking it again");
    s.policy.print[3] ^= 1;
    origin_of(folder, &s, "stale: policy changed", "until its text is another");
    is_int(s.asked, 2, "then it is asked");
    s.fails = CNR_E_SCRIPT;
    s.policy.print[3] ^= 2;
    origin_of(folder, &s, "stale: policy changed", "one that fails");
    origin_of(folder, &s, "stale: policy changed", "has no plan stored");
    cnri_cache_trim(folder, 0, NULL, 0);
    is_int(rmdir(folder), 0, "nothing else is left in the folder");
}

/* Times of cnri_measuring: made-up ones for the kernels, in *costs. */
static cnr_status clockwork(void *arg, const cnr_graph *segment, const char *device,
                            const char *const *kernels, int32_t n, cnri_cost *costs,
                            cnr_error *err) {
    (void)arg;
    (void)segment;
    (void)device;
    (void)err;
    for (int32_t i = 0; i < n; i++)
        costs[i] = (cnri_cost){.ns = strcmp(kernels[i], "near_blur_block") ? 5e3 : 1e3,
                               .remainder_ns = 500,
                               .joules = 2e-6,
                               .mhz = 1200};
    return CNR_OK;
}

/* Tests: times that were recorded. */
static void on_record(void) {
    cnr_graph *g = chain_net();
    scripted s = policy(nothing);
    cnri_measuring by_clockwork = {.time = clockwork};
    cnri_tuning t = {.measure = cnri_measure_missing, .arg = &by_clockwork};
    cnri_plan_options o = {.devices = both, .tuning = &t, .candidates = true, .policy = &s.policy};
    cnr_plan *plan = plan_of(g, &o);
    const int32_t block = plan ? find_row(plan->table, 1, "near_blur_block", "near", "c4") : -1;
    if (ok(block >= 0, "measured rows")) {
        const cnri_table_row *r = &plan->table->rows.at[block];
        ok(r->cost.from == CNRI_MEASURED && r->cost.ns == 500 && r->cost.joules == 1e-6 &&
               r->cost.mhz == 1200,
           "time of its own, energy, clock");
        ok(r->by && !strcmp(r->by, "record"), "taken by the record");
        is_text(cnri_row_why(plan->table, block), "the least time on record", "and why");
    }
    ok(s.measured > 1, "%d of the rows that a policy sees are measured", (int)s.measured);
    cnri_plan_free(plan);
    o.deterministic = true;
    plan = plan_of(g, &o);
    is_int(s.measured, 0, "none when no clock counts");
    cnri_plan_free(plan);
    cnri_vec_free(&t.rows);
    cnri_graph_free(g);
}

/* ---- any answer gives the right numbers ---- */

/* A number below n, at random. */
static uint32_t dice(uint32_t *state, uint32_t n) {
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % n;
}

/* Answers at random by s->seed: rows, devices or shares; some nodes stay as they are. */
static void at_random(scripted *s, const cnri_table *t, cnri_policy_answer *a) {
    for (int32_t i = 0; i < t->nodes.n; i++) {
        const cnri_table_node *n = &t->nodes.at[i];
        const uint32_t what = dice(&s->seed, 4);
        if (what == 0) continue;
        if (what == 1 && n->axes) {
            const double share = dice(&s->seed, 11) / 10.0;
            a[i] = (cnri_policy_answer){.row = -1,
                                        .n_parts = 2,
                                        .axis = -1,
                                        .parts = {{"far:0", share}, {"near", 1 - share}}};
        } else a[i].row = n->first + (int32_t)dice(&s->seed, (uint32_t)n->n_rows);
    }
}

/* Tests: random answers give right results. */
static void random_answers(void) {
    enum { CASES = 300 };
    cnr_graph *g = chain_net();
    cnr_error err = CNR_ERROR_INIT;
    int64_t n, m;
    float *want = lab_judge(g, &m, &err);
    int32_t right = 0, followed = 0;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        scripted s = policy(at_random);
        const cnri_plan_options o = {.device = seed % 2 ? "near" : "far:0", .policy = &s.policy};
        cnr_plan *plan = NULL;
        s.seed = seed;
        float *got = lab_run(g, &o, &n, &plan, &err);
        if (lab_same(got, n, want, m)) right++;
        else note("seed %u: %s: %s", seed, err.where, err.text);
        followed += plan && !plan->policy_failed;
        cnri_plan_free(plan);
        free(got);
    }
    is_int(right, CASES, "300 answers at random: the right numbers");
    is_int(followed, CASES, "each was followed");
    free(want);
    cnri_graph_free(g);
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(lab_open(&err) == CNR_OK, "the made-up plugin loads")) return done();
    cnri_log_to(NULL, NULL, -1);
    table();
    followed();
    refused("an error", "made-up:7: I never choose", CNR_E_SCRIPT, nothing);
    refused("a row that isn't there", "row of another node", 0, no_such_row);
    refused("a row of another node", "row of another node", 0, another_row);
    refused("a device that isn't there", "no rows of device \"mars\"", 0, no_such_device);
    refused("shares above 1", "1 in all", 0, too_much);
    refused("shares below 0", "from 0 to 1", 0, less_than_none);
    refused("a split of what can't be split", "can't be split", 0, not_there);
    stored();
    on_record();
    random_answers();
    cnr_close(lab_rt);
    return done();
}
