/* Building graphs: types, parameters, names, problems, binding, copies. */
#include "initial/initial.h"
#include "show/show.h"
#include "core/graph/toy.h"

/* A log that says nothing. */
static void quiet(void *arg, int32_t level, const char *who, const char *text) {
    (void)arg, (void)level, (void)who, (void)text;
}

/* A whole attribute. */
static cnr_attr attr_int(const char *name, int64_t i) {
    return (cnr_attr){.name = name, .type = CNR_ATTR_INT, .set = 1, .i = i};
}

/* Weights that are left out are made by the operator, with sizes that follow from its input. */
static void test_parameters(void) {
    cnr_graph *g = cnri_graph_new("net");
    const int32_t batch = cnri_graph_symbol(g, "batch");
    is_int(cnri_graph_symbol(g, "batch"), batch, "a symbol has one number");
    const cnr_value x = toy_input(g, "data", TOY_TYPE(CNR_f32, CNR_DIM_SYMBOL(batch), 3));
    const cnr_attr out = attr_int("out", 5);
    const cnr_attr none = {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1};
    const cnr_value y = TOY_NODE(g, "toy_linear", "fc", (const cnr_attr *[]){&out}, 1, x);
    const cnr_value z = TOY_NODE(g, "toy_linear", NULL, ((const cnr_attr *[]){&out, &none}), 2, y);
    cnri_graph_output(g, z, "scores");
    cnr_error err = CNR_ERROR_INIT;
    is_int(cnri_graph_status(g, false, &err), CNR_OK, "a sound graph is accepted");
    is_int(cnri_graph_status(g, true, &err), CNR_E_STATE, "but not while weights lack data");
    has_text(err.text, "fc.weight", "which are named");
    const cnr_value w = cnri_graph_find(g, "fc.weight");
    ok(w >= 0 && cnri_graph_type(g, w)->dim[0] == 5 && cnri_graph_type(g, w)->dim[1] == 3,
       "the weight has the shape that the operator says");
    ok(cnri_graph_find(g, "fc.bias") >= 0, "the bias was made");
    ok(cnri_graph_find(g, "toy_linear_1.bias") < 0, "bias = false: none was made");
    is_text(cnri_graph_value_name(g, z), "toy_linear_1", "a nameless node gets a name");
    is_int(cnri_graph_type(g, z)->dim[0], CNR_DIM_SYMBOL(batch), "the symbol flows through");
    is_int(cnri_fill_random(g, 7, &err), CNR_OK, "weights are filled at random");
    is_int(cnri_graph_status(g, true, &err), CNR_OK, "and then the graph is whole");
    const float *data = cnri_graph_type(g, w)->data;
    double sum = 0;
    for (int i = 0; i < 15; i++) sum += data[i] * data[i];
    ok(sum > 0.5 && sum < 60, "their spread follows the fan-in");
    float same[15];
    memcpy(same, data, sizeof same);
    cnr_graph *copy = cnri_graph_copy(g);
    cnr_tensor batch4 = TOY_TYPE(CNR_f32, 4, 3);
    is_int(cnri_graph_bind(copy, (const cnr_tensor *[]){&batch4}, 1, &err), CNR_OK, "a copy binds");
    is_int(cnri_graph_type(copy, z)->dim[0], 4, "to the batch given");
    is_int(cnri_graph_type(g, z)->dim[0], CNR_DIM_SYMBOL(batch), "which leaves the original alone");
    ok(cnri_graph_type(copy, w)->data == data, "weights are shared");
    cnr_tensor wrong = TOY_TYPE(CNR_f32, 4, 2);
    cnr_graph *other = cnri_graph_copy(g);
    is_int(cnri_graph_bind(other, (const cnr_tensor *[]){&wrong}, 1, &err), CNR_E_SHAPE,
           "a wrong shape is refused");
    has_text(err.text, "must be 3, got 2", "saying what was wanted");
    cnri_graph_free(other);
    cnri_graph_free(copy);
    float ones[15] = {1};
    cnr_tensor fill = TOY_TYPE(CNR_f32, 5, 3);
    fill.data = ones;
    is_int(cnri_graph_fill(g, w, &fill, &err), CNR_OK, "a weight is replaced");
    fill.dim[0] = 3;
    fill.dim[1] = 5;
    is_int(cnri_graph_fill(g, w, &fill, &err), CNR_E_SHAPE, "not by another shape");
    has_text(err.text, "[5,3] f32 wanted, got [3,5] f32", "and both are told");
    cnri_text dot = {0};
    cnri_graph_dot(g, &dot);
    has_text(dot.at, "fc | toy_linear", "the dot text has the node");
    has_text(dot.at, "[batch,3] f32", "and symbols by name");
    cnri_text_free(&dot);
    cnri_graph_free(g);
}

/* All mistakes are reported in one pass, and none twice. */
static void test_problems(void) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_value x = toy_input(g, "data", TOY_TYPE(CNR_f32, 1, 2, 8, 8));
    const cnr_attr bad = {.name = "kernel",
                          .type = CNR_ATTR_INTS,
                          .set = 1,
                          .n = 2,
                          .ints = (const int64_t[]){3, 0}};
    const cnr_attr odd = {.name = "mood", .type = CNR_ATTR_INT, .set = 1};
    cnr_value y = TOY_NODE(g, "toy_window", "w1", ((const cnr_attr *[]){&bad, &odd}), 2, x);
    ok(y >= 0, "a failed node still gives a value");
    y = TOY_NODE(g, "toy_rectify", "r1", NULL, 0, y);
    ok(y >= 0 && g->problems.n == 2, "what follows it is not complained about");
    y = TOY_NODE(g, "toy_rectifi", "r2", NULL, 0, y);
    y = TOY_NODE(g, "toy_rectify", "w1", NULL, 0, y);
    const cnr_value s = TOY_NODE(g, "toy_linear", "s1", NULL, 0, x);
    cnri_graph_node(g, "toy_sum", "s2", "net.lua:9", (const cnr_value[]){x, s}, 2, NULL, 0, &y, 1);
    TOY_NODE(g, "toy_rectify", "many", NULL, 0, x, x);
    cnri_graph_node(g, "toy_affine", "few", NULL, &x, 1, NULL, 0, &y, 1);
    cnri_graph_node(g, "toy_sum", "no", NULL, NULL, 0, NULL, 0, &y, 1);
    cnri_graph_node(g, "toy_pass", "none", NULL, (const cnr_value[]){4711}, 1, NULL, 0, &y, 1);
    toy_input(g, "data", TOY_TYPE(CNR_f32, 1));
    toy_input(g, "worse", TOY_TYPE(CNR_f32, -7));
    toy_const(g, "minus", TOY_TYPE(CNR_f32, -1), "");
    cnri_graph_output(g, y, "out");
    cnri_graph_output(g, y, "out");
    const char *want[] = {"mood: unknown attribute",
                          "kernel[2]: want 1 to 100, got 0",
                          "unknown operator toy_rectifi; did you mean toy_rectify?",
                          "w1 (toy_rectify): there is already a node of that name",
                          "the width of x is not known",
                          "takes 1 inputs at most, got 2",
                          "input scale is missing",
                          "input shift is missing",
                          "at least 1 of input x wanted",
                          "is no value of this net",
                          "already a value of that name",
                          "neither a size nor a symbol",
                          "neither a size nor a symbol",
                          "already an output of that name"};
    is_int(g->problems.n, (int)CNRI_COUNT(want), "there are as many problems as mistakes");
    for (int32_t i = 0; i < g->problems.n && i < (int)CNRI_COUNT(want); i++)
        has_text(g->problems.at[i].text, want[i], want[i]);
    is_text(g->problems.at[0].where, "net:1", "with their place");
    cnr_error err = CNR_ERROR_INIT;
    is_int(cnri_graph_status(g, false, &err), CNR_E_ARG, "the graph is refused");
    has_text(err.text, "14 problems", "with all of them");
    cnri_graph_free(g);

    g = cnri_graph_new("net");
    const cnr_value a = toy_input(g, "a", TOY_TYPE(CNR_f32, 2)),
                    b = toy_input(g, "b", TOY_TYPE(CNR_f32, 3));
    TOY_NODE(g, "toy_sum", "sum", NULL, 0, a, b);
    is_text(g->problems.at[0].text, "sum (toy_sum) of x [2] f32, x [3] f32: shapes differ",
            "a shape problem names node, operator and shapes");
    is_int(cnri_graph_status(g, false, &err), CNR_E_ARG, "and is one");
    cnri_graph_free(g);

    g = cnri_graph_new("net");
    is_int(cnri_graph_status(g, false, &err), CNR_E_ARG, "no outputs: refused");
    cnri_graph_free(g);
}

/* Shapes that a graph computes itself. */
static void test_shapes(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = cnri_graph_new("net");
    const int64_t delta[] = {0, 0};
    const cnr_value x = toy_input(g, "x", TOY_TYPE(CNR_f32, 2, 6)),
                    d = toy_const(g, "delta", TOY_TYPE(CNR_i64, 2), delta);
    cnr_value shape = TOY_NODE(g, "toy_shape", "shape", NULL, 0, x);
    shape = TOY_NODE(g, "toy_sum", "same", NULL, 0, shape, d);
    ok(cnri_graph_type(g, shape)->data != NULL, "constants are computed while building");
    cnr_value y = TOY_NODE(g, "toy_reshape", "reshape", NULL, 0, x, shape);
    is_int(cnri_graph_type(g, y)->dim[1], 6, "so a reshape has a type at once");
    cnri_graph_free(g);

    g = cnri_graph_new("net");
    const int32_t n = cnri_graph_symbol(g, "n");
    const cnr_value u = toy_input(g, "u", TOY_TYPE(CNR_f32, CNR_DIM_SYMBOL(n), 4, 3));
    shape = TOY_NODE(g, "toy_shape", "shape", NULL, 0, u);
    ok(!cnri_graph_type(g, shape)->data, "the shape of a symbol is not known");
    y = TOY_NODE(g, "toy_reshape", "reshape", NULL, 0, u, shape);
    ok(cnri_is_type_unknown(cnri_graph_type(g, y)), "nor the type it decides");
    const cnr_attr k = attr_int("kernel", 2);
    y = TOY_NODE(g, "toy_window", "late", (const cnr_attr *[]){&k}, 1, y);
    cnri_graph_output(g, y, NULL);
    is_int(cnri_graph_status(g, false, &err), CNR_OK, "which is no problem yet");
    cnr_graph *copy = cnri_graph_copy(g);
    const cnr_tensor given = TOY_TYPE(CNR_f32, 7, 4, 3);
    is_int(cnri_graph_bind(copy, (const cnr_tensor *[]){&given}, 1, &err), CNR_OK, "it binds");
    is_int(cnri_graph_type(copy, y)->dim[0], 7, "and then all types are known");
    int64_t count;
    cnr_attr_ints(&copy->nodes.at[copy->nodes.n - 1]->view, "kernel", &count);
    is_int(count, 1, "and spatial attributes have an entry an axis");
    cnri_graph_free(copy);
    cnri_graph_free(g);

    g = cnri_graph_new("net");
    const cnr_value p = toy_input(g, "p", TOY_TYPE(CNR_f32, 4)),
                    q = toy_input(g, "q", TOY_TYPE(CNR_i64, 1));
    y = TOY_NODE(g, "toy_reshape", "reshape", NULL, 0, p, q);
    cnri_graph_output(g, y, NULL);
    is_int(cnri_graph_bind(g, NULL, 0, &err), CNR_E_ARG, "a shape given at run time is refused");
    has_text(err.text, "can't be worked out", "in words");
    cnri_graph_free(g);
}

/* Nodes are added, replaced and removed. */
static void test_edit(void) {
    cnr_graph *g = cnri_graph_new("net");
    const cnr_value x = toy_input(g, "x", TOY_TYPE(CNR_f32, 4, 2));
    cnr_value half[2];
    cnri_graph_node(g, "toy_halves", "h", NULL, &x, 1, NULL, 0, half, 2);
    is_text(cnri_graph_value_name(g, half[1]), "h.z", "further outputs are named by their port");
    const cnr_value a = TOY_NODE(g, "toy_rectify", "a", NULL, 0, half[0]);
    const cnr_value b = TOY_NODE(g, "toy_sum", "b", NULL, 0, a, half[1], a);
    cnri_graph_output(g, b, "out");
    is_int(cnri_graph_uses(g, a), 2, "uses are counted");
    is_int(cnri_graph_remove(g, 1), CNR_E_STATE, "a node in use stays");
    cnri_graph_insert_before(g, 1);
    const cnr_value c = TOY_NODE(g, "toy_pass", "c", NULL, 0, half[0]);
    is_int(cnri_graph_producer(g, c), 1, "a node goes before another");
    is_int(cnri_graph_producer(g, a), 2, "which moves on");
    is_int(cnri_graph_replace(g, half[0], c), CNR_OK, "a value is replaced by what is made of it");
    is_int(g->nodes.at[1]->in[0], half[0], "which keeps reading it");
    is_int(g->nodes.at[2]->in[0], c, "while others read the new one");
    is_int(cnri_graph_replace(g, half[0], b), CNR_E_STATE, "a later value can't be read earlier");
    is_int(cnri_graph_replace(g, b, a), CNR_OK, "an output is replaced");
    is_text(g->outputs.names[0], "out", "and keeps its name");
    is_int(cnri_graph_remove(g, 3), CNR_OK, "then its node can go");
    is_int(cnri_graph_find(g, "b"), -1, "with its name");
    is_int(cnri_graph_uses(g, a), 1, "and its uses");
    cnri_graph_set_meta(g, "labels", "cat\ndog");
    cnri_graph_set_meta(g, "labels", "dog");
    is_text(cnri_graph_meta(g, "labels"), "dog", "metadata is replaced");
    cnri_graph_set_meta(g, "labels", NULL);
    ok(!cnri_graph_meta(g, "labels"), "and removed");
    cnri_graph_free(g);
}

/* Every allocation on the way fails once: an error each time, and (under a sanitiser) no leak. */
static void test_no_memory(void) {
    int32_t failures = 0, wrong = 0;
    for (int64_t n = 1; n < 2000; n++) {
        cnr_error err = CNR_ERROR_INIT;
        cnri_alloc_fail_at(n);
        cnr_graph *g = cnri_graph_new("net"), *copy = NULL;
        cnr_status status = CNR_E_MEMORY;
        if (g) {
            const float one[] = {1, 2, 3};
            const cnr_value x = toy_input(g, "x", TOY_TYPE(CNR_f32, 1, 3));
            cnr_value y = TOY_NODE(g, "toy_linear", "fc", NULL, 0, x);
            const cnr_value k = toy_const(g, "k", TOY_TYPE(CNR_f32, 1, 3), one);
            const cnr_value kk = TOY_NODE(g, "toy_sum", NULL, NULL, 0, k, k, x);
            y = TOY_NODE(g, "toy_linear", NULL, NULL, 0, kk);
            cnri_graph_output(g, y, "y");
            cnri_graph_set_meta(g, "a", "b");
            status = cnri_graph_status(g, false, &err);
            if (status == CNR_OK) status = cnri_fill_random(g, 1, &err);
            if (status == CNR_OK && !(copy = cnri_graph_copy(g))) status = CNR_E_MEMORY;
            if (status == CNR_OK) status = cnri_graph_bind(copy, NULL, 0, &err);
            if (status == CNR_OK) status = cnri_graph_rewrite(copy, NULL, NULL, 0, &err);
        }
        cnri_graph_free(copy);
        cnri_graph_free(g);
        cnri_alloc_fail_at(0);
        if (status == CNR_OK) break;
        failures++;
        if (status != CNR_E_MEMORY) {
            if (!wrong++) note("allocation %lld: status %d, %s", (long long)n, status, err.text);
        }
    }
    ok(failures > 50 && failures < 1999, "allocations were made to fail (%d)", failures);
    is_int(wrong, 0, "each was reported as lack of memory");
}

int main(void) {
    cnri_log_to(quiet, NULL, CNR_LOG_ERROR);
    toy_begin();
    test_parameters();
    test_problems();
    test_shapes();
    test_edit();
    test_no_memory();
    return done();
}
