/* nn.gModule of nngraph: modules as nodes of a graph.
 *
 * forwardnodes lists the nodes in the order in which they run. What a node reads its data.mapindex
 * says: at i the `data` table of the node that gives input i. */
#include "torch7.h"

#include <stdio.h>

enum { MOST_NODES = 1024 };

typedef struct t7_done { /* a node that has run */
    const t7_value *data;
    t7_flow out;
} t7_done;

/* The outputs of the nodes in data.mapindex: one value, or several as a table. 0: failed. */
static int gather(t7_job *j, const t7_done *done, int64_t n_done, const t7_value *data,
                  t7_flow *in) {
    const t7_value *map = t7_field(data, "mapindex"), *from;
    in->n = 0;
    if (map && map->n > 4 * T7_MAX_BRANCHES) return t7_problem(j, "a node reads too many"), 0;
    for (int64_t i = 1; (from = t7_item(map, i)) != NULL; i++) {
        int64_t k = 0;
        if (j->net->n_layers++ > T7_MAX_LAYERS)
            return t7_problem(j, "there are too many layers"), 0;
        while (k < n_done && done[k].data != from) k++;
        if (k == n_done || in->n == T7_MAX_BRANCHES)
            return t7_problem(j, "a node reads one that has not run"), 0;
        if (i == 1 && !t7_item(map, 2)) {
            *in = done[k].out;
            return 1;
        }
        if (done[k].out.is_table) return t7_problem(j, "a node reads tables of tables"), 0;
        in->at[in->n++] = done[k].out.at[0];
    }
    in->is_table = 1;
    return in->n > 0 || (t7_problem(j, "a node reads nothing"), 0);
}

/* Converts the next node, done[n_done], whose inputs are among the n_done before it; `number` names
 * its layer. Returns 1, or 0 with a problem. */
static int run_node(t7_job *j, t7_done *done, int64_t n_done, int64_t number) {
    t7_done *own = &done[n_done];
    const t7_value *module = t7_field(own->data, "module");
    const int64_t pick = t7_int(own->data, "selectindex", 0);
    const size_t path = strlen(j->name) - strlen(j->kind);
    char name[256];
    t7_flow in;
    if (n_done == 0) in = *j->in;
    else if (!gather(j, done, n_done, own->data, &in)) return 0;
    own->out = in;
    if (pick) {
        if (!in.is_table || pick < 1 || pick > in.n)
            return t7_problem(j, "a node picks a value that is not there"), 0;
        own->out = (t7_flow){.n = 1};
        own->out.at[0] = in.at[pick - 1];
    } else if (module) {
        snprintf(name, sizeof name, "%.*s%lld", path > 140 ? 140 : (int)path, j->name,
                 (long long)number);
        t7_module(j->net, module, name, &in, &own->out);
    }
    return 1;
}

void t7_graph(t7_job *j) {
    const t7_value *nodes = t7_field(j->m, "forwardnodes"), *node;
    int64_t n = 0, i = 0;
    while (n <= MOST_NODES && t7_item(nodes, n + 1)) n++;
    if (n < 2 || n > MOST_NODES) return t7_problem(j, "it has no forwardnodes, or too many");
    t7_done *done = (t7_done *)imp_host->alloc((size_t)n * sizeof *done);
    if (!done) {
        j->net->b.status = CNR_E_MEMORY;
        return;
    }
    for (; i < n; i++) { /* the first node is the input, the last is the output */
        node = t7_item(nodes, i + 1);
        if (!(done[i].data = t7_field(node, "data")) || !run_node(j, done, i, i)) break;
    }
    if (i == n) *j->out = done[n - 1].out;
    else if (!j->failed) t7_problem(j, "a node has no data");
    imp_host->free(done);
}
