/* Choices that make themselves, by a clock that only the test's own kernels move: right answers in
 * every run, what is tried, stopped, kept, followed and learnt anew. */
#include "files/files.h"
#include "../../guests/guests.h"
#include <cnnrun/kit.h>
#include <cnnrun/lab.h>
#include <glob.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- kernels of max_pool: the reference, and so many microseconds ---- */

enum { USUAL, QUICK, SLOW, WRONG, N_KERNELS };
static int64_t takes_us[N_KERNELS] = {1000, 300, 50000, 1}, runs_of[N_KERNELS];
static uint64_t now = 1000;

static uint64_t read_clock(void) { return now; }

/* Runs the reference, slowed as the test wants; counts the kernel's runs. */
static cnr_status run_as(const cnr_run *r, int32_t kernel, cnr_error *err) {
    const cnr_status status = r->node->desc->reference(r, err);
    now += (uint64_t)takes_us[kernel] * 1000;
    runs_of[kernel]++;
    if (kernel == WRONG) memset(r->outputs[0]->data, 0, (size_t)cnr_dense_bytes(r->outputs[0]));
    return status;
}

/* A kernel with its own score. */
#define KERNEL(which, likes) \
    static cnr_status accept_##which(const cnr_device *d, const cnr_node *n, cnr_accept *out) { \
        (void)d; \
        (void)n; \
        out->score = likes; \
        return CNR_OK; \
    } \
    static cnr_status run_##which(const cnr_run *r, cnr_error *err) { \
        return run_as(r, which, err); \
    } \
    static const cnr_kernel kernel_##which = {.size = sizeof(cnr_kernel), \
                                              .version = 1, \
                                              .name = "test_" #which, \
                                              .op = "max_pool", \
                                              .device = "cpu", \
                                              .accepts = accept_##which, \
                                              .run = run_##which};
KERNEL(USUAL, 1000)
KERNEL(QUICK, 990)
KERNEL(SLOW, 980)
KERNEL(WRONG, 970)

/* Registers the kernels. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    const cnr_item items[] = {{CNR_KIND_KERNEL, &kernel_USUAL},
                              {CNR_KIND_KERNEL, &kernel_QUICK},
                              {CNR_KIND_KERNEL, &kernel_SLOW},
                              {CNR_KIND_KERNEL, &kernel_WRONG}};
    (void)err;
    return cnr_add_all(h, registrar, items, CNR_ROWS(items));
}

/* The plugin of the kernels. */
static const cnr_plugin *query(uint32_t host_abi) {
    static const cnr_plugin plugin = {.size = sizeof plugin,
                                      .magic = CNR_PLUGIN_MAGIC,
                                      .abi = CNR_ABI_WANTED,
                                      .signature = CNR_SIGNATURE,
                                      .name = "test-adapt",
                                      .version = "1",
                                      .summary = "pools that take as long as a test wants",
                                      .licence = "MIT",
                                      .init = init};
    (void)host_abi;
    return &plugin;
}

/* Opens the library with that plugin. */
static cnr_status open_runtime(cnr_error *err) {
    static const cnr_plugin *(*const linked[])(uint32_t) = {query, NULL};
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = 1,
                                      .no_default_dirs = 1,
                                      .linked_plugins = linked,
                                      .log_level = CNR_LOG_ERROR};
    return cnr_open(&guests_rt, &options, err);
}

/* ---- the net ---- */

static char folder[] = "/tmp/cnnrun-adapt-XXXXXX", policy[64];

/* A model of LeNet-5 on the CPU with a cache folder and these rules; adapts: 1. NULL, with a note:
 * it doesn't load. */
static cnr_model *load(const char *cache, int32_t adapts, const char *rules) {
    const cnr_load_options o = {.size = sizeof o,
                                .device = "cpu",
                                .cache = cache,
                                .policy = rules,
                                .adapt = adapts};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = NULL;
    if (cnr_load(guests_rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua", &o, &m, &err))
        note("%s: %s", err.where, err.text);
    return m;
}

/* What the model has learnt; a failure is only noted. */
static cnr_adapt_report report_of(cnr_model *m) {
    cnr_adapt_report r = {.size = sizeof r};
    cnr_error err = CNR_ERROR_INIT;
    if (cnr_adapt_state(m, &r, &err)) note("%s: %s", err.where, err.text);
    return r;
}

static float right[10];

/* Whether the answer for the digit is the usual one. */
static bool run(cnr_model *m, int32_t digit) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor in = {.size = sizeof in,
                           .dtype = CNR_f32,
                           .rank = 4,
                           .dim = {1, 1, 28, 28},
                           .data = guests_digits + digit * DIGIT,
                           .bytes = DIGIT * sizeof(float)},
                     *list = &in, *out;
    if (cnr_run_tensors(m, &list, 1, &out, 1, &err)) {
        note("%s: %s", err.where, err.text);
        return false;
    }
    for (int32_t i = 0; i < 10; i++)
        if (!(fabsf(((const float *)out->data)[i] - right[i]) < 1e-4f)) return false;
    return true;
}

/* Runs until it is settled, at most `most` times; returns how often. *all_right: no run failed;
 * *worst: of the runs' times over the default's. */
static int32_t settle(cnr_model *m, int32_t most, bool *all_right, double *worst) {
    *all_right = true;
    *worst = 0;
    for (int32_t i = 0; i < most; i++) {
        *all_right = run(m, 0) && *all_right;
        const cnr_adapt_report r = report_of(m);
        if (r.phase && strcmp(r.phase, "settled") == 0) return i;
        *worst = fmax(*worst, r.last_ms / 2);
    }
    return most;
}

/* Tests: the fastest kernel is learnt. */
static void learn(cnr_model *m) {
    bool all_right;
    double worst;
    const int32_t n = settle(m, 60, &all_right, &worst);
    const cnr_adapt_report r = report_of(m);
    ok(all_right, "every run has the right answer");
    ok(r.settled && n < 40, "it is settled after %d runs", (int)n);
    ok(r.n_kernels == 2 && strstr(r.kernels[0], "@cpu=test_QUICK") &&
           strstr(r.kernels[1], "@cpu=test_QUICK"),
       "by the quick kernel for both pools: %d, %s", (int)r.n_kernels,
       r.n_kernels ? r.kernels[0] : "none");
    ok(fabs(r.default_ms - 2) < 1e-6 && fabs(r.chosen_ms - 0.6) < 1e-6,
       "times are those of whole runs: %g and %g ms", r.default_ms, r.chosen_ms);
    ok(r.stopped > 0 && runs_of[SLOW] <= 2, "the slow kernel ran %d times and was stopped",
       (int)runs_of[SLOW]);
    ok(runs_of[WRONG] > 0, "the wrong kernel was tried, and gave no answer");
    ok(strcmp(r.by, "time") == 0 && r.learnt == 1 && !r.followed, "by time, in this process");
    note("the worst run took %.3g times the default's time", worst);
}

/* Tests: a policy is followed. */
static void follow(void) {
    cnr_model *m = load(folder, 1, policy);
    const int64_t slow = runs_of[SLOW], usual = runs_of[USUAL];
    ok(m && run(m, 0) && runs_of[SLOW] == slow && runs_of[USUAL] == usual,
       "the next start follows and tries nothing");
    const cnr_adapt_report r = report_of(m);
    ok(r.settled && r.followed && r.trials > 0 && r.n_kernels == 2 && !r.reason, "and says so: %s",
       r.decided ? r.decided : "nothing");
    cnr_release(m);
    m = load(folder, 1, NULL);
    ok(m && run(m, 0) && !report_of(m).followed, "other options have learnt nothing yet");
    cnr_release(m);
}

/* Tests: what is learnt is forgotten in time. */
static void learn_anew_in_time(void) {
    cnr_model *m = load(folder, 1, policy);
    bool good = m != NULL;
    for (int32_t i = 0; i < 20; i++) good = run(m, 0) && good;
    ok(good && report_of(m).followed, "20 runs that take as long as ever change nothing");
    takes_us[QUICK] = 1500;
    for (int32_t i = 0; i < 30 && report_of(m).followed; i++) good = run(m, 0) && good;
    const cnr_adapt_report r = report_of(m);
    ok(good && !r.settled && r.reason && strstr(r.reason, "a run takes 3 ms, it took 0.6"),
       "runs that take longer make it learn anew: %s", r.reason ? r.reason : "no reason");
    double worst;
    settle(m, 60, &good, &worst);
    ok(good && report_of(m).settled && strcmp(report_of(m).decided, "default") == 0,
       "and the default is the best now");
    takes_us[QUICK] = 300;
    cnr_release(m);
}

/* Tests: what is learnt elsewhere is not believed. */
static void learn_anew_elsewhere(void) {
    cnri_tuning times = {0};
    cnr_error err = CNR_ERROR_INIT;
    const cnri_cost cost = {.ns = 1};
    cnr_model *m = load(folder, 1, policy);
    ok(m && run(m, 0) && report_of(m).followed, "the default that was decided on is followed");
    cnr_release(m);
    ok(!cnri_tuning_set(&times, "00", "a kernel", cost, &err) &&
           !cnri_tuning_save(folder, &times, &err),
       "another record of times: %s", err.text);
    cnri_vec_free(&times.rows);
    m = load(folder, 1, policy);
    const cnr_adapt_report r = report_of(m);
    ok(!r.settled && r.reason && strstr(r.reason, "environment"),
       "another environment makes it learn anew: %s", r.reason ? r.reason : "no reason");
    cnr_release(m);
}

/* Weights can be changed at any time, which closes all plans. */
static void change_weights(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *m = load(NULL, 1, policy);
    const cnr_tensor *old;
    bool good = m != NULL;
    double worst;
    for (int32_t i = 0; i < 5; i++) good = run(m, 0) && good; /* while it learns */
    cnr_status status = cnr_weight(m, cnr_weight_name(m, 0), &old, &err);
    cnr_tensor same = status ? (cnr_tensor){0} : *old;
    same.data = status ? NULL : memcpy(cnri_alloc((size_t)old->bytes), old->data, old->bytes);
    if (!status) status = cnr_set_weight(m, cnr_weight_name(m, 0), &same, &err);
    ok(!status && run(m, 0), "a weight is set while it learns: %s", err.text);
    settle(m, 60, &good, &worst);
    if (!status) status = cnr_set_weight(m, cnr_weight_name(m, 0), &same, &err);
    ok(!status && good && run(m, 0) && report_of(m).settled && report_of(m).n_kernels == 2,
       "and behind that, which changes no decision: %s", err.text);
    cnri_free(same.data);
    ok(!cnr_adapt(m, 0, &err) && run(m, 0) &&
           cnr_adapt_state(m, &(cnr_adapt_report){.size = sizeof(cnr_adapt_report)}, &err) ==
               CNR_E_STATE,
       "it can be switched off");
    cnr_release(m);
}

/* Cuts the file of what was measured in the middle of a line. True: there was one. */
static bool damage(const char *cache) {
    glob_t found = {0};
    char *pattern = cnri_format("%s/*.adapt", cache);
    struct stat info;
    const bool good = pattern && glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc == 1 &&
                      stat(found.gl_pathv[0], &info) == 0 &&
                      truncate(found.gl_pathv[0], info.st_size - 3) == 0;
    globfree(&found);
    cnri_free(pattern);
    return good;
}

/* Starts of so many runs each, until it is settled; returns how many. *all_right: no run failed. */
static int32_t settle_in_starts(const char *cache, int32_t runs_each, bool *all_right) {
    *all_right = true;
    for (int32_t start = 1; start <= 60; start++) {
        cnr_model *m = load(cache, 1, policy);
        for (int32_t i = 0; i < runs_each; i++) *all_right = run(m, 0) && *all_right;
        const cnr_adapt_report r = report_of(m);
        const bool ended = r.settled && r.followed;
        if (ended)
            ok(r.n_kernels == 2 && fabs(r.default_ms - 2) < 1e-6 && fabs(r.chosen_ms - 0.6) < 1e-6,
               "what is decided is what one long start decides: %s", r.decided);
        cnr_release(m);
        if (ended) return start;
    }
    return 0;
}

/* Tests: many short starts learn together. */
static void learn_in_short_starts(void) {
    char *cache = cnri_format("%s/short", folder), *other = cnri_format("%s/two", folder);
    bool all_right;
    memset(runs_of, 0, sizeof runs_of);
    int32_t n = settle_in_starts(cache, 1, &all_right);
    ok(n > 3 && all_right, "starts of one run each: settled and followed by start %d", (int)n);
    ok(runs_of[SLOW] <= 4, "what was tried is not tried again: the slow kernel ran %d times",
       (int)runs_of[SLOW]);
    n = settle_in_starts(other, 3, &all_right);
    ok(n > 2 && all_right, "starts of three runs each: start %d", (int)n);
    cnri_free(cache);
    cache = cnri_format("%s/cut", folder);
    cnr_model *m = load(cache, 1, policy);
    for (int32_t i = 0; i < 5; i++) run(m, 0);
    cnr_release(m);
    ok(damage(cache), "a file of what was measured is cut short");
    m = load(cache, 1, policy);
    ok(m && run(m, 0) && report_of(m).trials == 0, "then it begins from the beginning");
    cnr_release(m);
    cnri_free(cache);
    cnri_free(other);
}

int main(void) {
    const cnri_clock clock = {.now_ns = read_clock};
    cnr_error err = CNR_ERROR_INIT;
    cnr_model *plain = open_runtime(&err) || !mkdtemp(folder) ? NULL : load(NULL, 0, NULL);
    if (!plain || !guests_load_digits(plain->graph)) {
        ok(0, "a net and a digit: %s", err.text);
        return done();
    }
    snprintf(policy, sizeof policy, "%s/rules.lua", folder);
    FILE *f = fopen(policy, "w");
    if (f) fputs("return { place = function() end, adapt = { window = 8, contest = 3 } }\n", f);
    if (f) fclose(f);
    const cnr_tensor in = {.size = sizeof in,
                           .dtype = CNR_f32,
                           .rank = 4,
                           .dim = {1, 1, 28, 28},
                           .data = guests_digits,
                           .bytes = DIGIT * sizeof(float)},
                     *list = &in, *out;
    ok(!cnr_run_tensors(plain, &list, 1, &out, 1, &err), "the net runs: %s", err.text);
    memcpy(right, out->data, sizeof right);
    memset(runs_of, 0, sizeof runs_of);
    cnri_clock_use(&clock);
    cnr_model *m = load(folder, 1, policy);
    if (ok(m != NULL, "a net that adapts is loaded")) learn(m);
    cnr_release(m);
    follow();
    learn_anew_in_time();
    learn_anew_elsewhere();
    change_weights();
    learn_in_short_starts();
    cnri_clock_leave(&clock);
    ok(cnr_load(guests_rt, CNRT_SOURCE_DIR "/scripts/nets/lenet5.lua",
                &(cnr_load_options){.size = sizeof(cnr_load_options),
                                    .adapt = 1,
                                    .deterministic = 1},
                &m, &err) == CNR_E_ARG,
       "what no clock decides can't adapt: %s", err.text);
    cnr_close(guests_rt);
    char *words[] = {"rm", "-r", folder, NULL};
    if (fork() == 0) execvp(words[0], words);
    return done();
}
