/* Inputs that decide shapes: a plan is made for their data, and answers for no other. */
#include "run/run.h"
#include "tap.h"
#include <unistd.h>

static const char net[] = "local c = require 'cnnrun'\n"
                          "local x = c.input { 'x', shape = { 2, 3 } }\n"
                          "local axes = c.input { 'axes', shape = { 1 }, dtype = 'i64' }\n"
                          "return c.net { name = 'sums', inputs = { x, axes }, outputs = { "
                          "c.reduce_sum { 'sum', x, axes } } }\n";

static float numbers[] = {1, 2, 3, 10, 20, 30};
static int64_t first = 0, second = 1, minus = -1;
static cnr_tensor x = {.size = sizeof x,
                       .dtype = CNR_f32,
                       .rank = 2,
                       .dim = {2, 3},
                       .bytes = sizeof numbers,
                       .data = numbers};

/* A tensor of one axis number. */
static cnr_tensor axes_of(int64_t *axis) {
    return (cnr_tensor){.size = sizeof(cnr_tensor),
                        .dtype = CNR_i64,
                        .rank = 1,
                        .dim = {1},
                        .bytes = 8,
                        .data = axis};
}

/* True: the output is what is wanted. */
static bool is_sum(const cnr_tensor *out, const float *want, int64_t n) {
    bool same = out && cnr_count(out) == n;
    for (int64_t i = 0; same && i < n; i++) same = ((const float *)out->data)[i] == want[i];
    return same;
}

static const float columns[] = {11, 22, 33}, rows[] = {6, 60};

/* Tests: runs with whole inputs. */
static void whole_runs(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor a = axes_of(&first), b = axes_of(&second), *out = NULL;
    ok(!cnr_run_tensors(m, (const cnr_tensor *[]){&x, &a}, 2, &out, 1, &err) &&
           is_sum(out, columns, 3),
       "axis 0: sums of columns %s", err.text);
    ok(!cnr_run_tensors(m, (const cnr_tensor *[]){&x, &b}, 2, &out, 1, &err) &&
           is_sum(out, rows, 2),
       "axis 1: sums of rows %s", err.text);
    ok(!cnr_run_tensors(m, (const cnr_tensor *[]){&x, &a}, 2, &out, 1, &err) &&
           is_sum(out, columns, 3),
       "axis 0 again %s", err.text);
}

/* Planning by shapes alone is an error for such inputs, whatever was run before. */
static void by_shapes(cnr_model *m, const char *when) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_plan *plan = NULL;
    cnr_tensor bare = axes_of(NULL);
    const bool made = !cnr_plan_for(m, (const cnr_tensor *[]){&x, &bare}, 2, &plan, &err);
    ok(!made, "no plan by shapes alone %s", when);
    has_text(err.text, "before it runs", "which says why");
    cnr_plan_release(plan);
    plan = NULL;
    ok(cnr_plan_for(m, NULL, 0, &plan, &err), "nor without shapes");
    cnr_plan_release(plan);
}

/* The session of a plan for one axis is given another. */
static void other_data(cnr_model *m) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_tensor a = axes_of(&first), b = axes_of(&second), c = axes_of(&minus), *out = NULL;
    cnr_plan *plan = NULL;
    cnr_session *s = NULL;
    ok(!cnr_plan_for(m, (const cnr_tensor *[]){&x, &b}, 2, &plan, &err) &&
           !cnr_session_open(plan, &s, &err),
       "a session for axis 1 %s", err.text);
    if (!s) return;
    ok(!cnr_session_set_input(s, 0, &x, &err) && !cnr_session_set_input(s, 1, &b, &err),
       "takes axis 1 %s", err.text);
    is_int(cnr_session_set_input(s, 1, &a, &err), CNR_E_STATE, "refuses axis 0");
    is_text(err.where, "axes", "by the input's name");
    has_text(err.text, "cnr_plan_for", "and says what to do");
    ok(cnr_session_set_input(s, 1, &c, &err), "-1 is other data, too");
    ok(!cnr_session_run(s, &err) && !cnr_session_output(s, 0, &out, &err) && is_sum(out, rows, 2),
       "what it runs then is axis 1 %s", err.text);
    is_int(cnr_plan_set_weight(plan, "axes", &a, &err), CNR_E_STATE,
           "nor is it a weight of the plan");
    cnr_session_close(s);
    cnr_plan_release(plan);
}

int main(void) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    char folder[] = "/tmp/cnnrun-test-bound-XXXXXX", path[80], cache[80], command[80];
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = 1,
                                      .no_default_dirs = 1};
    cnr_error err = CNR_ERROR_INIT;
    cnr_runtime *rt = NULL;
    if (!ok(mkdtemp(folder) && !cnr_open(&rt, &options, &err), "a runtime %s", err.text))
        return done();
    snprintf(path, sizeof path, "%s/sums.lua", folder);
    snprintf(cache, sizeof cache, "%s/cache", folder);
    FILE *file = fopen(path, "w");
    ok(file && fputs(net, file) >= 0 && fclose(file) == 0, "a net is written");
    const cnr_load_options loads[] = {{.size = sizeof(cnr_load_options), .device = "cpu"},
                                      {.size = sizeof(cnr_load_options),
                                       .device = "cpu",
                                       .cache = cache}};
    for (int32_t i = 0; i < 4; i++) { /* the last two with a cache, filled by the first of them */
        cnr_model *m = NULL;
        if (!ok(!cnr_load(rt, path, &loads[i / 2], &m, &err), "a net whose axes are an input %s",
                err.text))
            break;
        by_shapes(m, "at first");
        whole_runs(m);
        by_shapes(m, "after runs");
        other_data(m);
        cnr_release(m);
    }
    cnr_close(rt);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ok(system(command) == 0, "the folder can go");
    return done();
}
