/* Choice by measurement: only tuning asks a clock, the record of what it saw decides from then on,
 * always the same way; a deterministic plan looks at neither. */
#include "core/plan/lab.h"
#include "store/store.h"
#include "work/work.h"
#include "keep/keep.h"
#include <unistd.h>

/* A net. */
static cnr_graph *net(void) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor t = lab_type(1, 8, 6, 5);
    cnr_value x = cnri_graph_input(g, "x", &t);
    for (uint32_t i = 0; i < 3; i++) x = lab_blur(g, x, 8, 2 + i);
    cnri_graph_output(g, lab_affine(g, x, 2, 1), "y");
    return g;
}

/* ---- times that we make up ---- */

/* A clock that makes one kernel the fastest. */
typedef struct clockwork {
    const char *fast; /* this kernel is the fastest */
    int32_t asked;
} clockwork;

/* Times that are made up. */
static cnr_status made_up(void *arg, const cnr_graph *segment, const char *device,
                          const char *const *kernels, int32_t n, cnri_cost *costs, cnr_error *err) {
    clockwork *c = arg;
    (void)device;
    (void)err;
    c->asked++;
    for (int32_t i = 0; i < n; i++)
        if (segment->nodes.n > 0) costs[i].ns = strcmp(kernels[i], c->fast) == 0 ? 1e3 : 1e9;
    return CNR_OK;
}

/* Decisions of the plan for a kernel. */
static int32_t count_kernel(const cnr_plan *plan, const char *name) {
    int32_t n = 0;
    for (int32_t i = 0; plan && i < plan->decisions.n; i++)
        n += strcmp(plan->decisions.at[i].kernel, name) == 0;
    return n;
}

/* Recorded nanoseconds of a kernel. */
static double ns_of(const cnri_tuning *t, const char *key, const char *kernel) {
    const cnri_timed *row = cnri_tuning_find(t, key, kernel);
    return row ? row->cost.ns : -1;
}

/* A plan by a record of times, or (deterministic) without looking at it. */
static cnr_plan *plan_by(cnri_tuning *t, bool deterministic) {
    const cnri_plan_options o = {.device = "near", .tuning = t, .deterministic = deterministic};
    static cnr_graph *g;
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    if (!g) g = net();
    const cnr_tensor *types[] = {g->values.at[g->inputs.at[0]].type};
    if (cnri_plan_make(g, &lab_rt->devices, &o, types, 1, &plan, &err))
        note("%s: %s", err.where, err.text);
    return plan;
}

/* Tests: the record decides. */
static void decides(const char *fast, const char *slow) {
    clockwork c = {.fast = fast};
    cnri_measuring with = {made_up, &c};
    cnri_tuning t = {.measure = cnri_measure_missing, .arg = &with};
    cnr_plan *plan = plan_by(&t, false);
    is_int(count_kernel(plan, fast), 3, fast);
    is_int(count_kernel(plan, slow), 0, "what was slow is not taken");
    ok(c.asked >= 1 && c.asked <= 3 && t.rows.n >= 2,
       "%d layers measured, alike ones once, "
       "%d times on record",
       (int)c.asked, (int)t.rows.n);
    cnri_plan_free(plan);
    const int32_t asked = c.asked;
    cnri_text text = {0};
    cnri_tuning read = {.arg = &c};
    cnr_error err = CNR_ERROR_INIT;
    cnri_tuning_print(&t, &text);
    ok(!cnri_tuning_parse(&read, text.at, &err) && read.rows.n == t.rows.n &&
           memcmp(read.rows.at, t.rows.at, (size_t)t.rows.n * sizeof *t.rows.at) == 0,
       "the record reads back as it was written");
    int32_t alike = 0;
    for (int32_t i = 0; i < 20; i++) {
        plan = plan_by(&read, false);
        alike += count_kernel(plan, fast) == 3;
        cnri_plan_free(plan);
    }
    is_int(alike, 20, "planned by it 20 times: 20 times the same");
    is_int(c.asked, asked, "without measuring again");
    cnri_vec_free(&t.rows);
    cnri_vec_free(&read.rows);
    cnri_text_free(&text);
}

/* Tests: without a record's times. */
static void deterministic(void) {
    clockwork c = {.fast = "near_blur_block"};
    cnri_measuring with = {made_up, &c};
    cnri_tuning t = {.measure = cnri_measure_missing, .arg = &with};
    cnr_plan *plain = plan_by(NULL, false), *plan = plan_by(&t, true);
    bool same = plan && plain && plan->decisions.n == plain->decisions.n;
    for (int32_t i = 0; same && i < plan->decisions.n; i++)
        same = strcmp(plan->decisions.at[i].kernel, plain->decisions.at[i].kernel) == 0;
    ok(same && c.asked == 0 && t.rows.n == 0, "a deterministic plan asks no clock, goes by scores");
    cnri_plan_free(plain);
    cnri_plan_free(plan);
}

/* Appends the digest line that shows a record is complete; free with cnri_free. */
static char *sealed(const char *rows) {
    uint8_t digest[32];
    char hex[65];
    cnri_sha256_of(rows, strlen(rows), digest);
    cnri_hex(digest, sizeof digest, hex);
    return cnri_format("%s{\"sha256\":\"%s\"}\n", rows, hex);
}

/* Tests: malformed lines. */
static void malformed(void) {
    static const char text[] =
        "{\"key\":\"ab\",\"kernel\":\"k\",\"ns\":5}\nnonsense\n{\"key\":\"ab\"\n"
        "{\"key\":\"0123456789012345678901234567890123456789\",\"kernel\":\"k\",\"ns\":5}\n"
        "{\"key\":\"cd\",\"kernel\":\"k\",\"ns\":-1}\n"
        "{\"key\":\"cd\",\"kernel\":\"k\",\"ns\":nan}\n"
        "{\"key\":\"cd\",\"kernel\":\"k\",\"ns\":1e300}\n"
        "{\"key\":\"ef\",\"kernel\":\"k\",\"ns\":7}\n";
    cnri_tuning t = {0};
    cnr_error err = CNR_ERROR_INIT;
    char *whole = sealed(text);
    ok(!cnri_tuning_parse(&t, whole, &err) && t.rows.n == 2 && ns_of(&t, "ab", "k") == 5 &&
           ns_of(&t, "ef", "k") == 7,
       "lines that are malformed are passed over");
    cnri_vec_free(&t.rows);
    whole[30] ^= 1;
    is_int(cnri_tuning_parse(&t, whole, &err), CNR_E_FORMAT,
           "a record that was changed is refused");
    is_int(cnri_tuning_parse(&t, text, &err), CNR_E_FORMAT, "so is one that was cut short");
    is_int(cnri_tuning_parse(&t, "", &err), CNR_E_FORMAT, "and an empty one");
    ok(t.rows.n == 0, "nothing of them is believed");
    cnri_free(whole);
}

/* A record of any size is read and looked up without looking at each row for each other: this one
 * took half an hour when it was. */
static void large(void) {
    enum { ROWS = 150000 };
    cnri_text text = {0};
    cnri_tuning t = {0};
    cnr_error err = CNR_ERROR_INIT;
    int64_t right = 0;
    char key[20];
    for (int i = ROWS - 1; i >= 0; i--) /* the order that is worst for whoever inserts */
        cnri_text_add(&text, "{\"key\":\"%08d\",\"kernel\":\"k\",\"ns\":%d}\n", i, i + 1);
    char *whole = sealed(text.at);
    is_int(cnri_tuning_parse(&t, whole, &err), CNR_OK, "150,000 rows are read");
    for (int i = 0; i < ROWS; i++) {
        snprintf(key, sizeof key, "%08d", i);
        right += ns_of(&t, key, "k") == i + 1;
    }
    is_int(right, ROWS, "and each is found");
    ok(!cnri_tuning_set(&t, "00000007x", "a", (cnri_cost){.ns = 1}, &err) && t.rows.n == ROWS + 1 &&
           !cnri_tuning_set(&t, "00000007x", "a", (cnri_cost){.ns = 2}, &err) &&
           t.rows.n == ROWS + 1 && ns_of(&t, "00000007x", "a") == 2 &&
           ns_of(&t, "00000008", "k") == 9,
       "another takes its place among them");
    cnri_free(whole);
    cnri_text_free(&text);
    cnri_vec_free(&t.rows);
}

/* ---- with the clock, and the cache ---- */

/* Plans the net with that cache folder; writes plan->origin ("hit", "miss: ...", "stale: ...") or
 * "none" to room and returns it. */
static const char *origin_of(const char *folder, char *room, size_t bytes) {
    const cnr_load_options load = {.size = sizeof load, .device = "near", .cache = folder};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnr_plan *plan = NULL;
    snprintf(room, bytes, "none");
    if (!cnri_model_from_graph(lab_rt, net(), &load, &m, &err) &&
        !cnr_plan_for(m, NULL, 0, &plan, &err))
        snprintf(room, bytes, "%s", plan->origin ? plan->origin : "none");
    cnr_plan_release(plan);
    cnr_release(m);
    return room;
}

/* Tests: measured times. */
static void measured(void) {
    char folder[] = "/tmp/cnnrun-tune-XXXXXX", origin[512];
    const cnr_load_options load = {.size = sizeof load, .device = "near"};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    cnr_plan *plan = NULL;
    cnri_tuning t = {0}, back = {0};
    uint8_t print[16];
    if (!ok(mkdtemp(folder) && !cnri_model_from_graph(lab_rt, net(), &load, &m, &err), "a folder"))
        return;
    has_text(origin_of(folder, origin, sizeof origin), "miss", "a stored plan");
    has_text(origin_of(folder, origin, sizeof origin), "hit", "that is taken over");
    const cnr_tensor *types[] = {m->graph->values.at[m->graph->inputs.at[0]].type};
    const cnr_status status = cnri_tune(m, types, 1, false, &t, NULL, &plan, &err);
    ok(!status && t.rows.n >= 2, "by the real clock: %d times on record: %s", (int)t.rows.n,
       err.text);
    ok(!cnri_tuning_save(folder, &t, &err) && !cnri_tuning_load(folder, &back, print, &err) &&
           back.rows.n == t.rows.n,
       "kept in the folder");
    has_text(origin_of(folder, origin, sizeof origin), "stale: tuning changed",
             "a plan from before the record is stale");
    has_text(origin_of(folder, origin, sizeof origin), "hit", "and made by it then");
    cnri_plan_free(plan);
    cnr_release(m);
    cnri_vec_free(&t.rows);
    cnri_vec_free(&back.rows);
    cnri_cache_trim(folder, 0, NULL, 0);
    char *record = cnri_path_join(folder, "tuning.jsonl");
    unlink(record);
    cnri_free(record);
    is_int(rmdir(folder), 0, "nothing else is left in the folder");
}

int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(lab_open(&err) == CNR_OK, "the made-up plugin loads")) return done();
    cnri_log_to(NULL, NULL, -1);
    decides("near_blur_block", "near_blur");
    decides("near_blur", "near_blur_block");
    deterministic();
    malformed();
    large();
    measured();
    cnr_close(lab_rt);
    return done();
}
