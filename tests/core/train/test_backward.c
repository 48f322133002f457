/* Backward graphs of whole nets: branches, shared weights, absorbed operators, what is refused. */
#include "numeric.h"

/* Adds a node of n inputs; its one output's value, or -1. */
static cnr_value node(cnr_graph *g, const char *op, const char *name, int32_t n,
                      const cnr_value *in) {
    cnr_value out = -1;
    cnri_graph_node(g, op, name, NULL, in, n, NULL, 0, &out, 1);
    return out;
}
/* Adds a node of these inputs. */
#define NODE(g, op, name, ...) \
    node(g, op, name, (int32_t)(sizeof((cnr_value[]){__VA_ARGS__}) / sizeof(cnr_value)), \
         (const cnr_value[]){__VA_ARGS__})

/* Adds a weight of a x b (rank 2) or a (rank 1) numbers from -0.9 to 0.9; its value. */
static cnr_value weight(cnr_graph *g, const char *name, int32_t rank, int64_t a, int64_t b) {
    cnr_tensor t = {.size = sizeof t, .rank = rank, .dim = {a, b}};
    return numeric_weight(g, name, t, -.9, .9);
}

/* x -> relu -> + -> relu, with x read three times and one weight in two places. */
static cnr_graph *branches(void) {
    cnr_graph *g = cnri_graph_new("branches");
    const cnr_value x = weight(g, "x", 2, 3, 4), w = weight(g, "w", 2, 4, 4),
                    v = weight(g, "v", 2, 2, 4), b = weight(g, "b", 1, 4, 0),
                    c = weight(g, "c", 1, 2, 0);
    const cnr_value a = NODE(g, "dense", "a", x, w, b), t = NODE(g, "tanh", "t", a);
    const cnr_value d = NODE(g, "dense", "d", t, w, b); /* the same weights again */
    const cnr_value s = NODE(g, "sum", "s", a, d, t, x);
    const cnr_value m = NODE(g, "mul", "m", s, s);
    const cnr_value y = NODE(g, "dense", "y", m, v, c);
    cnri_graph_output(g, NODE(g, "softmax", "p", y), "p");
    return g;
}

/* Gradients of nets against differences. */
static void test_nets(void) {
    cnr_graph *g = branches();
    numeric_check(g, "softmax_cross_entropy", "branches and shared weights, softmax absorbed");
    cnr_error err = CNR_ERROR_INIT;
    is_int(cnri_graph_rewrite(g, NULL, NULL, 0, &err), CNR_OK, "what is not read is dead");
    bool left = false;
    for (int32_t i = 0; i < g->nodes.n; i++)
        left = left || strcmp(g->nodes.at[i]->view.desc->name, "softmax") == 0;
    ok(!left, "as the softmax is");
    cnri_graph_free(g);
    g = branches();
    numeric_check(g, "toy_loss", "the same through softmax's own gradient");
    cnri_graph_free(g);
}

/* Only the gradients of wanted weights are made. */
static void test_want(void) {
    cnr_error err = CNR_ERROR_INIT;
    cnr_graph *g = branches();
    const cnr_op *loss;
    cnri_backward b;
    weight(g, "apart", 2, 2, 2);
    const char *fixed[] = {"x", "w"};
    for (int i = 0; i < 2; i++)
        g->values.at[cnri_graph_find(g, fixed[i])].type->flags &= ~(uint32_t)CNR_TENSOR_VARIABLE;
    cnri_graph_bind(g, NULL, 0, &err);
    is_int(cnri_train_loss(NULL, &loss, &err), CNR_OK, "some loss is found without a name");
    is_int(cnri_train_backward(g, loss, NULL, &b, &err), CNR_OK, "only some weights are trained");
    is_int(b.weights.n, 3, "and only those have gradients");
    for (int32_t i = 0; i < b.weights.n; i++)
        ok(cnr_same_shape(cnri_graph_type(g, b.weights.at[i].weight),
                          cnri_graph_type(g, b.weights.at[i].gradient)),
           "%s's has its shape", g->values.at[b.weights.at[i].weight].name);
    is_int(g->outputs.n, 2, "loss and scores are the outputs");
    cnri_backward_free(&b);
    cnri_graph_free(g);
}

/* Losses and nets that can't be trained are refused. */
static void test_refused(void) {
    cnr_error err = CNR_ERROR_INIT;
    const cnr_op *loss = NULL;
    cnri_backward b;
    is_int(cnri_train_loss("nonsense", &loss, &err), CNR_E_NOT_FOUND, "an unknown loss");
    has_text(err.text, "softmax_cross_entropy", "lists those there are");
    is_int(cnri_train_loss("relu", &loss, &err), CNR_E_NOT_FOUND, "an operator that is no loss");
    cnri_train_loss("softmax_cross_entropy", &loss, &err);
    cnr_graph *g = cnri_graph_new("hard");
    const cnr_value x = weight(g, "x", 2, 3, 4);
    cnri_graph_output(g, NODE(g, "hardmax", "h", x), "h");
    is_int(cnri_train_backward(g, loss, NULL, &b, &err), CNR_E_UNSUPPORTED, "no gradient: refused");
    has_text(err.text, "h (hardmax) has no gradient", "with the node's name");
    cnri_graph_free(g);
    g = cnri_graph_new("still");
    const cnr_value y = weight(g, "y", 2, 3, 4);
    g->values.at[y].type->flags &= ~(uint32_t)CNR_TENSOR_VARIABLE;
    cnri_graph_output(g, NODE(g, "relu", "r", y), "r");
    is_int(cnri_train_backward(g, loss, NULL, &b, &err), CNR_E_ARG, "nothing to train: refused");
    cnri_graph_output(g, y, "second");
    is_int(cnri_train_backward(g, loss, NULL, &b, &err), CNR_E_UNSUPPORTED, "two outputs: refused");
    cnri_graph_free(g);
}

int main(void) {
    cnr_runtime *rt = numeric_open();
    if (!rt) return done();
    test_nets();
    test_want();
    test_refused();
    cnr_close(rt);
    return done();
}
