/* Plans of made-up nets: fusion, blocks, aliases, devices, splits, each against the references. */
#include "lab.h"
#include "run/session.h"

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

/* Tests: fused nodes. */
static void fusion(void) {
    cnr_graph *g = chain_net();
    cnr_plan *plan;
    cnri_plan_options o = {.device = "near"};
    lab_check(g, &o, &plan, "blur takes affine and sum along");
    is_int(lab_steps(plan, CNRI_STEP_KERNEL), 3, "three kernels are left of six nodes");
    is_int(plan->steps.at[1].view.n_epilogue, 2, "two operators behind the first blur");
    is_int(plan->steps.at[1].view.epilogue[1]->operand, 2, "the sum's operand is a third input");
    cnri_plan_free(plan);
    static const char *const off[] = {"fuse", NULL};
    o.no_rewrite = off;
    lab_check(g, &o, &plan, "the same without fusion");
    is_int(lab_steps(plan, CNRI_STEP_KERNEL), 6, "six kernels then");
    cnri_plan_free(plan);
    cnri_graph_output(g, g->nodes.at[1]->out[0], "blurred");
    o.no_rewrite = NULL;
    lab_check(g, &o, &plan, "a value that is an output as well");
    is_int(lab_steps(plan, CNRI_STEP_KERNEL), 5, "is not fused away, nor what is behind it");
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

/* Tests: layouts. */
static void layouts(void) {
    cnr_graph *g = chain_net();
    cnr_plan *plan;
    static const char *const kernels[] = {"f_blur=near_blur_block", NULL};
    static const char *const fuse[] = {"fuse", NULL}, *const both[] = {"fuse", "layout", NULL};
    cnri_plan_options o = {.device = "near", .kernels = kernels};
    lab_check(g, &o, &plan, "in blocks of four channels, fused");
    cnri_plan_free(plan);
    o.no_rewrite = fuse;
    lab_check(g, &o, &plan, "in blocks, not fused");
    is_int(lab_steps(plan, CNRI_STEP_LAYOUT), 3,
           "x, its side branch and the output are converted; blocks pass through the rest");
    cnri_plan_free(plan);
    o.no_rewrite = both;
    o.kernels = NULL;
    lab_check(g, &o, &plan, "layouts switched off");
    is_int(lab_steps(plan, CNRI_STEP_LAYOUT), 0, "no conversions then");
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

/* Tests: aliases. */
static void aliases(void) {
    cnr_graph *g = cnri_graph_new("alias");
    const cnr_tensor t = lab_type(2, 8, 4, 8);
    const cnr_value x = cnri_graph_input(g, "x", &t);
    const cnr_value a = lab_blur(g, x, 8, 1), b = lab_affine(g, x, 3, 1);
    cnr_value cut[2];
    const cnr_value both = lab_op(g, "f_join", a, b);
    cnri_graph_node(g, "f_cut", NULL, NULL, &both, 1, NULL, 0, cut, 2);
    const cnr_value sum = lab_op(g, "f_sum", cut[0], cut[1]);
    cnri_graph_output(g, lab_op(g, "f_view", sum, -1), "out");
    cnr_plan *plan;
    cnri_plan_options o = {.device = "near"};
    lab_check(g, &o, &plan, "join, cut and view");
    is_int(lab_steps(plan, CNRI_STEP_KERNEL), 3, "cost nothing: blur, affine and sum are left");
    const long long least = 2 * (long long)t.bytes + 64; /* the blur's workspace */
    is_int((long long)plan->arena_bytes, least, "all values share the join's bytes");
    is_int((long long)plan->bound_bytes, least, "and that is the bound");
    cnri_plan_free(plan);
    static const char *const off[] = {"alias", NULL};
    o.no_rewrite = off;
    lab_check(g, &o, &plan, "aliases switched off");
    is_int(lab_steps(plan, CNRI_STEP_KERNEL), 6, "all six run");
    cnri_plan_free(plan);
    cnri_graph_free(g);

    g = cnri_graph_new("kept");
    const cnr_value y = cnri_graph_input(g, "x", &t), p = lab_affine(g, y, 2, 0);
    cnri_graph_output(g, lab_affine(g, p, 3, 0), "first");
    cnri_graph_output(g, lab_affine(g, p, 5, 0), "second");
    cnri_graph_output(g, lab_op(g, "f_join", p, p), "twice");
    cnri_graph_output(g, y, "input");
    o.no_rewrite = NULL;
    lab_check(g, &o, &plan, "what is read later is not overwritten, joined twice, or lost");
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

/* Checks that a session's inputs and outputs are in memory from far's host_alloc, which lies 64
 * bytes behind a mark. */
static void ends_in_host_memory_of(cnr_plan *plan) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_session *s = NULL;
    const char *input = NULL;
    if (cnr_session_open(plan, &s, &err) == CNR_OK) input = cnri_session_input_buffer(s, 0);
    ok(input && strcmp(input - 64, "of far") == 0, "the input lies in host memory of the device");
    ok(s && strcmp((const char *)s->outputs[0].data - 64, "of far") == 0, "and so does the output");
    if (s) cnr_session_close(s);
}

/* Tests: several devices. */
static void devices(void) {
    cnr_graph *g = chain_net();
    cnr_plan *plan;
    cnri_plan_options o = {.device = "far:0"};
    lab_check(g, &o, &plan, "all on a device with memory of its own");
    ends_in_host_memory_of(plan);
    is_int(lab_steps(plan, CNRI_STEP_COPY), 0, "without copies between layers");
    cnri_plan_free(plan);
    static const char *const images[] = {"f_blur=far_blur_image", NULL};
    o.kernels = images;
    lab_check(g, &o, &plan, "in images of four channels a pixel");
    bool image = false;
    for (int32_t i = 0; i < plan->storages.n; i++)
        image =
            image || (plan->storages.at[i].memory_class == 1 && plan->storages.at[i].width == 5);
    ok(image, "an image of the tensor's width was planned");
    cnri_plan_free(plan);
    cnri_part near = {"near", 1}, far = {"far:1", 1};
    cnri_placement there[] = {{.node = (char *)"*", .n_parts = 1, .parts = &near},
                              {.node = g->nodes.at[4]->name, .n_parts = 1, .parts = &far}};
    o = (cnri_plan_options){.placements = there, .n_placements = 2};
    lab_check(g, &o, &plan, "one layer elsewhere");
    is_int(lab_steps(plan, CNRI_STEP_COPY), 2, "there and back");
    cnri_plan_free(plan);
    cnr_error err = CNR_ERROR_INIT;
    int64_t n;
    snprintf(far.device, sizeof far.device, "mars");
    ok(!lab_run(g, &o, &n, NULL, &err), "an unknown device is refused");
    has_text(err.text, "near", "naming those there");
    cnri_graph_free(g);
}

/* Steps of the plan that this kernel does. */
static int32_t steps_by(const cnr_plan *plan, const char *kernel) {
    int32_t n = 0;
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        n += s->kernel && strcmp(s->kernel->name, kernel) == 0;
    }
    return n;
}

/* One kernel packs a weight and another reads the same weight while it runs: the device must
 * have it, whichever comes first. */
static void shared_weight(void) {
    for (int32_t first = 0; first < 2; first++) {
        cnr_graph *g = cnri_graph_new("shared");
        const cnr_tensor type = lab_type(1, 8, 6, 5);
        char forced[64];
        const char *kernels[] = {forced, NULL};
        const cnri_plan_options o = {.device = "far:0", .kernels = kernels};
        cnr_plan *plan;
        const cnr_value weight = lab_weight(g, "w", 8, 3);
        cnr_value v = cnri_graph_input(g, "x", &type);
        for (int32_t i = 0; i < 2; i++) v = lab_op(g, "f_blur", v, weight);
        cnri_graph_output(g, v, "out");
        snprintf(forced, sizeof forced, "%s=far_blur_blob", g->nodes.at[first]->name);
        lab_check(g, &o, &plan, "a weight that one kernel packs and another reads");
        is_int(steps_by(plan, "far_blur_blob"), 1, "one of each");
        cnri_plan_free(plan);
        cnri_graph_free(g);
    }
}

/* Copies that the host's part of a layer waits for must be queued before the other part, behind
 * which they would wait. */
static void side_by_side(const cnr_graph *g) {
    cnri_part parts[] = {{"near", 0.5}, {"far:0", 0.5}};
    cnri_placement w[] = {{.node = (char *)"*", .n_parts = 2, .axis = 2, .parts = parts}};
    const cnri_plan_options o = {.device = "near", .placements = w, .n_placements = 1};
    cnr_plan *plan;
    int32_t waited = 0, behind = 0;
    lab_check(g, &o, &plan, "every layer in two parts");
    for (int32_t i = 0; i < plan->steps.n; i++) {
        const cnri_step *s = &plan->steps.at[i];
        if (s->kind != CNRI_STEP_KERNEL || strcmp(plan->devices[s->device]->name, "near") != 0)
            continue;
        for (int32_t k = 0; k < s->n_waits; k++)
            for (int32_t begun = 0; begun < i; begun++) {
                const cnri_step *other = &plan->steps.at[begun];
                if (other->node != s->node || other->device == s->device) continue;
                waited++;
                behind += s->waits[k] > begun;
            }
    }
    ok(waited > 0 && behind == 0,
       "%d parts on the host wait, %d of them for what was queued behind "
       "the other part",
       (int)waited, (int)behind);
    cnri_plan_free(plan);
}

/* Tests: kernels that store weights in the wanted type. */
static void stored_as_asked(void) {
    static const uint32_t stores[] = {0, CNR_KERNEL_BF16, CNR_KERNEL_F16};
    static const char *const all[] = {"f_blur=near_blur", NULL};
    cnr_graph *g = chain_net();
    cnr_plan *plan;
    cnri_plan_options o = {.device = "near"};
    for (int i = 0; i < 3; i++) {
        o.stores = stores[i];
        lab_check(g, &o, &plan, "weights as they are, or as halves");
        is_int(steps_by(plan, "near_blur_half"), i == 2 ? 2 : 0,
               "the kernel that stores fp16 has the least score");
        cnri_plan_free(plan);
    }
    o.kernels = all;
    lab_check(g, &o, &plan, "another is forced");
    is_int(steps_by(plan, "near_blur_half"), 0, "and goes before it");
    cnri_plan_free(plan);
    cnri_graph_free(g);
}

/* Tests: forced kernels. */
static void forced_kernels(void) {
    cnr_graph *g = chain_net();
    cnr_plan *plan;
    char word[64];
    const char *own[] = {word, NULL}, *all[] = {"f_blur=near_blur_base", NULL};
    const char *both[] = {"f_blur=near_blur_base", word, NULL};
    cnri_plan_options o = {.device = "near"};
    snprintf(word, sizeof word, "%s=near_blur_base", g->nodes.at[1]->name);
    lab_check(g, &o, &plan, "a baseline of the highest score");
    is_int(steps_by(plan, "near_blur_base"), 0, "is never chosen");
    cnri_plan_free(plan);
    o.kernels = all;
    lab_check(g, &o, &plan, "forced for an operator");
    is_int(steps_by(plan, "near_blur_base"), 2, "it runs all of them");
    cnri_plan_free(plan);
    o.kernels = own;
    lab_check(g, &o, &plan, "forced for a node");
    is_int(steps_by(plan, "near_blur_base"), 1, "it runs that one");
    cnri_plan_free(plan);
    snprintf(word, sizeof word, "%s=reference", g->nodes.at[1]->name);
    o.kernels = both;
    lab_check(g, &o, &plan, "a node's own word goes before its operator's");
    is_int(steps_by(plan, "near_blur_base"), 1, "so the other is forced");
    cnri_plan_free(plan);
    snprintf(word, sizeof word, "%s=far_blur", g->nodes.at[1]->name);
    o.kernels = own;
    cnr_error err = CNR_ERROR_INIT;
    int64_t n;
    ok(!lab_run(g, &o, &n, NULL, &err),
       "a kernel of another device can't be forced for a node here");
    has_text(err.text, "was asked for but does not take this node", "and that is told");
    cnri_graph_free(g);
}

/* Tests: nodes split over devices. */
static void splits(void) {
    cnr_graph *g = chain_net();
    cnr_plan *plan;
    cnri_part parts[] = {{"near", 0.4}, {"far:0", 0.6}};
    cnri_part three[] = {{"far:1", 0.25}, {"far:0", 0.25}, {"near", 0.5}};
    for (int32_t axis = 1; axis <= 2; axis++) {
        cnri_placement w[] = {
            {.node = g->nodes.at[4]->name, .n_parts = 2, .axis = axis, .parts = parts}};
        cnri_plan_options o = {.device = "near", .placements = w, .n_placements = 1};
        lab_check(g, &o, &plan, axis == 1 ? "split along channels" : "split along rows, with halo");
        uint64_t down = 0;
        for (int32_t i = 0; i < plan->steps.n; i++) {
            const cnri_step *s = &plan->steps.at[i];
            if (s->kind == CNRI_STEP_COPY && s->region.axis == axis)
                down += (uint64_t)(s->region.end - s->region.begin);
        }
        ok(down > 0 && down < (axis == 1 ? 17 : 13), "only the ranges are copied: %d", (int)down);
        cnri_plan_free(plan);
        w[0].n_parts = 3;
        w[0].parts = three;
        o.device = "far:1";
        lab_check(g, &o, &plan, "in three parts, two of them far");
        cnri_plan_free(plan);
        w[0].node = (char *)"*";
        lab_check(g, &o, &plan, "every layer in three parts");
        cnri_plan_free(plan);
        static const char *const slow[] = {"f_blur=reference", NULL};
        o.kernels = slow;
        w[0].n_parts = 2;
        w[0].parts = parts;
        lab_check(g, &o, &plan, "a reference that takes no ranges computes all and keeps its part");
        cnri_plan_free(plan);
    }
    side_by_side(g);
    for (int32_t promised = 0; promised < 2; promised++) {
        static const char *const references[] = {"f_affine=reference", "f_sum=reference", NULL};
        static const char *const off[] = {"fuse", NULL};
        const int32_t node = promised ? 5 : 3; /* f_affine, f_sum */
        cnri_placement w[] = {
            {.node = g->nodes.at[node]->name, .n_parts = 2, .axis = 2, .parts = parts}};
        cnri_plan_options o = {.device = "near",
                               .placements = w,
                               .n_placements = 1,
                               .kernels = references,
                               .no_rewrite = off};
        lab_check(g, &o, &plan, promised ? "a reference in ranges" : "one that promises none");
        int32_t parted = 0, whole = 0;
        for (int32_t i = 0; i < plan->steps.n; i++) {
            const cnri_step *s = &plan->steps.at[i];
            if (s->kind != CNRI_STEP_KERNEL || s->node != node) continue;
            parted += s->range_axis == 2;
            whole += s->range_axis < 0;
        }
        ok(promised ? parted == 2 && !whole : whole == 2 && !parted,
           promised ? "is asked for its parts alone" : "is asked for all each time");
        cnri_plan_free(plan);
    }
    cnri_placement bad[] = {
        {.node = g->nodes.at[4]->name, .n_parts = 2, .axis = 3, .parts = parts}};
    cnri_plan_options o = {.device = "near", .placements = bad, .n_placements = 1};
    cnr_error err = CNR_ERROR_INIT;
    int64_t n;
    ok(!lab_run(g, &o, &n, NULL, &err), "an axis that it is not split along is refused");
    has_text(err.text, "1, 2", "naming those it can be");
    cnri_graph_free(g);
}

/* Tests: outputs of unknown size. */
static void dynamic(void) {
    cnr_graph *g = cnri_graph_new("some");
    const cnr_tensor t = lab_type(1, 2, 3, 4);
    const cnr_value x = cnri_graph_input(g, "x", &t), some = lab_op(g, "f_some", x, -1);
    const cnr_value v = lab_affine(g, lab_op(g, "f_view", some, -1), 2, 0);
    cnri_graph_output(g, v, "out");
    cnri_plan_options o = {.device = "far:0"};
    cnr_error err = CNR_ERROR_INIT;
    int64_t n, want = 0;
    for (int64_t k = 0; k < 24; k++) want += (float)((k * 37) % 64) / 32.0f - 1.0f > 0;
    float *got = lab_run(g, &o, &n, NULL, &err);
    ok(got && n == want, "a shape known only when running: %d of %d", (int)n, (int)want);
    if (!got) note("%s: %s", err.where, err.text);
    free(got);
    cnri_graph_free(g);
}

/* ---- random nets, placements and options ---- */

static uint32_t dice_state;
/* A number below n, at random. */
static uint32_t dice(uint32_t n) {
    dice_state = dice_state * 1664525u + 1013904223u;
    return (dice_state >> 8) % n;
}

/* A net at random. */
static cnr_graph *random_net(void) {
    cnr_graph *g = cnri_graph_new("random");
    cnr_tensor t = lab_type(2, 8, 6, 5);
    cnr_value values[64];
    int32_t n = 0;
    values[n++] = cnri_graph_input(g, "x", &t);
    if (dice(2)) values[n++] = cnri_graph_input(g, "y", &t);
    for (int32_t i = 0, nodes = 3 + (int32_t)dice(12); i < nodes; i++) {
        const cnr_value v = values[dice(3) ? (uint32_t)n - 1 : dice((uint32_t)n)];
        const cnr_tensor *type = g->values.at[v].type;
        const uint32_t kind = dice(8);
        if (kind < 2) values[n++] = lab_affine(g, v, 0.5, 0.25 * i);
        else if (kind < 5) values[n++] = lab_blur(g, v, type->dim[1], (uint32_t)i);
        else if (kind == 7 && type->dim[0] % 2 == 0 && type->dim[0] > 2) {
            cnr_value cut[2];
            cnri_graph_node(g, "f_cut", NULL, NULL, &v, 1, NULL, 0, cut, 2);
            values[n++] = cut[0];
            values[n++] = cut[1];
        } else {
            cnr_value other = -1;
            for (int32_t k = 0; k < n; k++)
                if (cnr_same_shape(g->values.at[values[k]].type, type) && dice(2))
                    other = values[k];
            if (other < 0) continue;
            values[n++] = lab_op(g, kind == 6 && type->dim[0] < 8 ? "f_join" : "f_sum", v, other);
        }
    }
    cnri_graph_output(g, values[n - 1], "last");
    if (dice(2)) cnri_graph_output(g, values[dice((uint32_t)n)], "some");
    return g;
}

/* 1 equal, 0 refused for a reason, -1 wrong */
static int32_t random_case(uint32_t seed) {
    static const char *const kernels[3][3] = {{NULL},
                                              {"f_blur=near_blur_block", NULL},
                                              {"f_blur=far_blur_image", "f_sum=reference", NULL}};
    static const char *const offs[4][2] = {{NULL},
                                           {"fuse", NULL},
                                           {"alias", NULL},
                                           {"layout", NULL}};
    static const char *const names[] = {"near", "far:0", "far:1"};
    cnri_part parts[16][3];
    cnri_placement wish[16];
    dice_state = seed * 2654435761u + 1;
    cnr_graph *g = random_net();
    int32_t n = 0;
    for (int32_t i = 0; i < g->nodes.n && n < 16; i++) {
        const uint32_t kind = dice(4);
        const bool blur = strcmp(g->nodes.at[i]->view.desc->name, "f_blur") == 0;
        if (kind == 0) continue;
        wish[n] = (cnri_placement){.node = g->nodes.at[i]->name, .n_parts = 1, .parts = parts[n]};
        parts[n][0].ratio = 1;
        snprintf(parts[n][0].device, 32, "%s", names[dice(3)]);
        if (kind == 3 && blur) {
            wish[n].n_parts = 3;
            wish[n].axis = 1 + (int32_t)dice(2);
            for (int32_t k = 0; k < 3; k++) {
                snprintf(parts[n][k].device, 32, "%s", names[k]);
                parts[n][k].ratio = k == 0 ? 0.5 : 0.25;
            }
        }
        n++;
    }
    cnri_plan_options o = {.device = names[dice(3)],
                           .placements = wish,
                           .n_placements = n,
                           .no_rewrite = offs[dice(4)],
                           .kernels = kernels[dice(6) % 3]};
    if (dice(3) == 0) o.memory_bound = 200000;
    int64_t a, b;
    cnr_error err = CNR_ERROR_INIT;
    float *want = lab_judge(g, &a, &err), *got = lab_run(g, &o, &b, NULL, &err);
    /* a forced kernel that does not take some node is a proper refusal */
    const bool refused = !got && err.code == CNR_E_ARG;
    const bool good = refused || lab_same(got, b, want, a);
    if (!good) {
        note("seed %u: %s: %s; %lld against %lld", seed, err.where, err.text, (long long)b,
             (long long)a);
        for (int64_t i = 0; got && want && i < a && i < b; i++)
            if (!lab_same(&got[i], 1, &want[i], 1)) {
                note("first at %lld: got %g, want %g", (long long)i, got[i], want[i]);
                break;
            }
    }
    free(want);
    free(got);
    cnri_graph_free(g);
    return good ? !refused : -1;
}

int main(int argc, char **argv) {
    cnr_error err = CNR_ERROR_INIT;
    if (!ok(lab_open(&err) == CNR_OK, "the made-up plugin loads")) {
        note("%s: %s", err.where, err.text);
        return done();
    }
    if (argc > 1) return random_case((uint32_t)atoi(argv[1])) < 0;
    fusion();
    layouts();
    aliases();
    devices();
    shared_weight();
    splits();
    stored_as_asked();
    forced_kernels();
    dynamic();
    int32_t good = 0, bad = 0;
    const int32_t cases = 1000;
    for (int32_t i = 0; i < cases; i++) {
        const int32_t one = random_case((uint32_t)i);
        good += one > 0;
        bad += one < 0;
    }
    ok(bad == 0 && good > cases / 2,
       "random nets on random devices: %d equal to the references, "
       "%d wrong",
       (int)good, (int)bad);
    cnr_close(lab_rt);
    return done();
}
