/* Memory runs out at the first, second, third ... allocation of planning and running: always an
 * error, never a crash, nothing lost (the sanitiser build tells), and once there is enough, an
 * answer. */
#include "../plan/lab.h"
#include <cnnrun/half.h>

/* A net. */
static cnr_graph *net(void) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_tensor t = lab_type(2, 8, 6, 5);
    uint16_t half[8];
    for (int32_t i = 0; i < 8; i++) half[i] = cnr_f32_to_f16(0.25f * (float)i);
    cnr_tensor w = {.size = sizeof w, .dtype = CNR_f32, .rank = 1, .dim = {8}, .data = half};
    w.flags = CNR_TENSOR_CONST;
    w.encoding = cnri_intern("f_halves");
    w.bytes = sizeof half;
    const cnr_value x = cnri_graph_input(g, "x", &t);
    const cnr_value a = lab_blur(g, x, 8, 1), b = lab_affine(g, a, 2, 1);
    const cnr_value c = lab_op(g, "f_blur", b, cnri_graph_constant(g, "w", &w));
    cnr_value cut[2], joined = lab_op(g, "f_join", c, lab_affine(g, x, 3, 0));
    cnri_graph_node(g, "f_cut", NULL, NULL, &joined, 1, NULL, 0, cut, 2);
    cnri_graph_output(g, lab_blur(g, lab_op(g, "f_sum", cut[0], cut[1]), 8, 3), "out");
    cnri_graph_output(g, lab_op(g, "f_some", a, -1), "some");
    return g;
}

/* Most allocations of a test; far more than any of these nets needs. */
enum { MOST = 20000 };

/* Fails each allocation of a plan in turn. */
static void starve(const cnr_graph *g, const cnri_plan_options *o, const char *what) {
    cnr_error err = CNR_ERROR_INIT;
    int64_t n = 0, count, wanted;
    int32_t other = 0;
    float *want = lab_judge(g, &wanted, &err), *got = NULL;
    for (n = 1; n < MOST && !got; n++) {
        err.code = 0;
        cnri_alloc_fail_at(n);
        got = lab_run(g, o, &count, NULL, &err);
        cnri_alloc_fail_at(0);
        if (!got && err.code != CNR_E_MEMORY && other++ == 0)
            note("allocation %d failing: %s: %s", (int)n, err.where, err.text);
    }
    ok(got && lab_same(got, count, want, wanted), "%s: an answer after %d failures", what,
       (int)n - 1);
    is_int(other, 0, "each of them is told as such");
    free(got);
    free(want);
}

/* Loads a net with its weights, plans and runs it, with the plugins of this build. True: all went
 * well; else see err. */
static bool load_and_run(cnr_error *err) {
    static float digit[784];
    cnr_tensor in = {.size = sizeof in, .dtype = CNR_f32, .rank = 4, .dim = {1, 1, 28, 28}};
    const cnr_tensor *list[] = {&in}, *out;
    cnr_load_options options = {.size = sizeof options, .device = "cpu"};
    cnr_model *m = NULL;
    cnr_top best[1];
    in.data = digit;
    for (int32_t i = 0; i < 784; i++) digit[i] = i % 28 == 14 && i > 100 && i < 680 ? 1 : 0;
    const char *path = CNRT_SOURCE_DIR "/scripts/nets/lenet5.cnr";
    cnr_status status = cnr_load(lab_rt, path, &options, &m, err);
    if (!status) status = cnr_run_tensors(m, list, 1, &out, 1, err);
    const bool good = !status && cnr_topk(out, 1, best) == 1 && best[0].index == 1;
    cnr_release(m);
    return good;
}

/* Fails each allocation of a run in turn. */
static void starve_run(void) {
    const char *dirs[] = {CNRT_BUILD_DIR "/plugins", NULL};
    const cnr_open_options options = {.size = sizeof options,
                                      .plugin_dirs = dirs,
                                      .threads = 1,
                                      .no_default_dirs = 1,
                                      .log_level = -1};
    cnr_error err = CNR_ERROR_INIT;
    cnr_close(lab_rt);
    lab_rt = NULL;
    if (!ok(!cnr_open(&lab_rt, &options, &err), "the build's plugins load: %s", err.text)) return;
    if (!ok(load_and_run(&err), "a stroke is a one: %s", err.text)) return;
    int32_t n = 1, other = 0;
    bool good = false;
    for (; n < MOST && !good; n++) {
        err.code = 0;
        cnri_alloc_fail_at(n);
        good = load_and_run(&err);
        cnri_alloc_fail_at(0);
        if (!good && err.code != CNR_E_MEMORY && other++ == 0)
            note("allocation %d failing: %d %s: %s", (int)n, (int)err.code, err.where, err.text);
    }
    ok(good, "load, plan and run: an answer after %d failures", (int)n - 1);
    is_int(other, 0, "each of them is told as such");
}

/* Tests: when any allocation of planning, loading or running fails, the error is CNR_E_MEMORY, and
 * with enough memory there is an answer. */
int main(void) {
    cnr_error err = CNR_ERROR_INIT;
    ok(lab_open(&err) == CNR_OK, "the made-up plugin loads");
    cnr_graph *g = net();
    cnri_part parts[] = {{"near", 0.5}, {"far:0", 0.5}};
    cnri_placement w[] = {{.node = g->nodes.at[0]->name, .n_parts = 2, .axis = 2, .parts = parts}};
    static const char *const blocks[] = {"f_blur=near_blur_block", NULL};
    static const char *const images[] = {"f_blur=far_blur_image", NULL};
    const cnri_plan_options plain = {.device = "near"};
    const cnri_plan_options blocked = {.device = "near", .kernels = blocks, .memory_bound = 100000};
    const cnri_plan_options image = {.device = "far:1", .kernels = images};
    const cnri_plan_options split = {.device = "far:1", .placements = w, .n_placements = 1};
    starve(g, &plain, "host memory");
    starve(g, &blocked, "blocks, a bound");
    starve(g, &image, "images on a far device");
    starve(g, &split, "a split layer and copies");
    cnri_graph_free(g);
    starve_run();
    cnr_close(lab_rt);
    return done();
}
