/* A rewrite: a ReLU before a max pooling moves behind it, where there are fewer elements. The
 * largest of values that are limited below is the largest value, limited. */
#include <cnnrun/kit.h>

static const cnr_host *host;

static int is(const cnr_node *node, const char *op) { return strcmp(node->desc->name, op) == 0; }

/* Node `at` is a max_pool of one output: its only reader's relu, or -1. */
static int32_t relu_before(const struct cnr_graph *g, int32_t at) {
    const cnr_value *in, *out;
    int64_t n;
    const cnr_node *pool = host->graph_node_at(g, at, &in, NULL);
    if (!is(pool, "max_pool") || pool->n_outputs != 1) return -1;
    const int64_t *pads = cnr_attr_ints(pool, "pads", &n);
    for (int64_t i = 0; i < n; i++)
        if (pads[i] != 0) return -1; /* a window of padding alone has no largest value */
    if (cnr_attr_int(pool, "ceil_mode") ||
        strncmp(cnr_attr_string(pool, "auto_pad"), "SAME", 4) == 0)
        return -1; /* nor has one beyond the end */
    const int32_t before = host->graph_producer(g, in[0]);
    if (before < 0 || !is(host->graph_node_at(g, before, NULL, &out), "relu")) return -1;
    return host->graph_use_count(g, out[0]) == 1 ? before : -1;
}

/* Two new nodes in front of the pooling, whose readers read the second of them; then the old ones
 * go. What graph_node_at returned lives until the graph changes. */
static cnr_status swap(struct cnr_graph *g, int32_t at, int32_t before) {
    const cnr_value *in, *out;
    const cnr_node *pool = host->graph_node_at(g, at, NULL, &out);
    host->graph_node_at(g, before, &in, NULL);
    const cnr_value x = in[0], old = out[0];
    cnr_value pooled = -1, y = -1;
    host->graph_insert_before(g, at);
    CNR_TRY(host->graph_node(g, "max_pool", pool->name, NULL, &x, 1, pool->attrs, pool->n_attrs,
                             &pooled, 1));
    CNR_TRY(host->graph_node(g, "relu", NULL, NULL, &pooled, 1, NULL, 0, &y, 1));
    CNR_TRY(host->graph_replace(g, old, y));
    CNR_TRY(host->graph_remove(g, at + 2));
    return host->graph_remove(g, before);
}

/* Method apply: swaps the first relu that a max_pool follows with it; 1: it did, so the host calls
 * again; 0: there is none; negative: failed. */
static int32_t apply(struct cnr_graph *g, cnr_error *err) {
    for (int32_t i = 0; i < host->graph_node_count(g); i++) {
        const int32_t before = relu_before(g, i);
        if (before < 0) continue;
        const cnr_status status = swap(g, i, before);
        if (status) return host->fail(err, status, "acme-pool-first", "a graph can't be changed");
        return 1;
    }
    return 0;
}

static const cnr_rewrite pool_first = {
    .size = sizeof(cnr_rewrite),
    .order = 500,
    .name = "acme-pool-first",
    .summary = "moves relu behind max_pool",
    .apply = apply,
};

/* Registers the rewrite. */
static cnr_status init(const cnr_host *h, struct cnr_registrar *registrar, cnr_error *err) {
    (void)err;
    host = h;
    return h->add(registrar, CNR_KIND_REWRITE, &pool_first);
}

CNR_PLUGIN("c-rewrite", "1.0", "an example rewrite", "MIT", init, CNR_TOUCHES_NOTHING)
