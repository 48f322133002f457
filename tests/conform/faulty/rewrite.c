/* Rewrites that leave out the second of two relus, each with one planted fault. */
#include "faulty.h"

static int is(const cnr_node *node, const char *op) { return strcmp(node->desc->name, op) == 0; }

/* If node `i` is `op` and reads the output of a relu: that output or, with `past`, the relu's
 * input. -1: it is not. */
static cnr_value read_by(const struct cnr_graph *g, int32_t i, const char *op, int past) {
    const cnr_value *in, *first_in, *first_out;
    if (!is(faulty_host->graph_node_at(g, i, &in, NULL), op)) return -1;
    const int32_t before = faulty_host->graph_producer(g, in[0]);
    if (before < 0 || !is(faulty_host->graph_node_at(g, before, &first_in, &first_out), "relu"))
        return -1;
    return past ? first_in[0] : first_out[0];
}

/* Leaves out nodes of `op`; past: also behind an output. */
static int32_t leave_out(struct cnr_graph *g, const char *op, int past, cnr_error *err) {
    for (int32_t i = 0; i < faulty_host->graph_node_count(g); i++) {
        const cnr_value *out, to = read_by(g, i, op, past);
        faulty_host->graph_node_at(g, i, NULL, &out);
        if (to < 0 || faulty_host->graph_use_count(g, out[0]) == 0) continue;
        if (faulty_host->graph_replace(g, out[0], to) || faulty_host->graph_remove(g, i))
            return faulty_host->fail(err, CNR_E_STATE, "rewrite", "can't be left out");
        return 1;
    }
    return 0;
}

static int32_t sound(struct cnr_graph *g, cnr_error *err) { return leave_out(g, "relu", 0, err); }
static int32_t both(struct cnr_graph *g, cnr_error *err) { return leave_out(g, "relu", 1, err); }
/* Fault: always claims a change. */
static int32_t endless(struct cnr_graph *g, cnr_error *err) {
    (void)g, (void)err;
    return 1;
}
/* Fault: never changes anything. */
static int32_t never(struct cnr_graph *g, cnr_error *err) {
    (void)g, (void)err;
    return 0;
}

/* A net that has nothing to leave out. */
static cnr_status example(struct cnr_graph *g, cnr_error *err) {
    const cnr_tensor type = {.size = sizeof type, .dtype = CNR_f32, .rank = 1, .dim = {3}};
    const cnr_value x = faulty_host->graph_input(g, "x", &type);
    cnr_value y = -1;
    (void)err;
    CNR_TRY(faulty_host->graph_node(g, "sigmoid", NULL, NULL, &x, 1, NULL, 0, &y, 1));
    return faulty_host->graph_output(g, y, "y");
}

/* A rewrite with this hook. */
#define REWRITE(word, change) \
    { \
        .size = sizeof(cnr_rewrite), .order = 900, .name = word, .summary = "for tests", \
        .apply = change \
    }
static const cnr_rewrite rewrites[] = {REWRITE("rewrite_sound", sound),
                                       REWRITE("rewrite_both", both),
                                       REWRITE("rewrite_endless", endless),
                                       REWRITE("rewrite_never", never),
                                       {.size = sizeof(cnr_rewrite),
                                        .order = 900,
                                        .name = "rewrite_example",
                                        .summary = "for tests",
                                        .apply = sound,
                                        .example = example}};

cnr_status faulty_add_rewrites(struct cnr_registrar *r) {
    for (int32_t i = FAULTY_FIRST; i < FAULTY_PAST(rewrites); i++)
        CNR_TRY(faulty_host->add(r, CNR_KIND_REWRITE, &rewrites[i]));
    return CNR_OK;
}
