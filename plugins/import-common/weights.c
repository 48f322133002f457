/* Assigns arrays to parameters, by name or by position, and reports those that do not fit. */
#include "weights.h"

#include <stdio.h>

enum { MOST_PARAMETERS = 1 << 16 };

/* Weights of files that are matched to a net's parameters. */
typedef struct job {
    imp_net *net; /* the graph under construction */
    const struct cnr_graph *wants;
    const imp_arrays *arrays;
    imp_layout layout;
    imp_parameter *at;
    int32_t n, room;
    uint8_t *used; /* by array: 1 once it is taken */
} job;

const struct cnr_graph *imp_net_of(const cnr_import_args *args) {
    return args->size >= offsetof(cnr_import_args, net) + sizeof args->net ? args->net : NULL;
}

/* ---- the net's parameters ---- */

/* 1 if the value is a parameter that was found already, or an input. */
static int is_known(const job *j, cnr_value v) {
    for (int32_t i = 0; i < j->n; i++)
        if (j->at[i].value == v) return 1;
    for (int32_t i = 0; i < imp_host->graph_input_count(j->wants); i++)
        if (imp_host->graph_input_at(j->wants, i) == v) return 1;
    return imp_host->graph_producer(j->wants, v) >= 0;
}

/* Adds a parameter: what input `port` of a node reads. 0: out of memory. */
static int add_parameter(job *j, cnr_value v, int32_t node, int32_t port) {
    if (j->n >= MOST_PARAMETERS || !imp_grow((void **)&j->at, j->n, &j->room, sizeof j->at[0]))
        return 0;
    imp_parameter *p = &j->at[j->n++];
    memset(p, 0, sizeof *p);
    p->value = v;
    p->name = imp_host->graph_value_name(j->wants, v);
    p->node = imp_host->graph_node_at(j->wants, node, NULL, NULL);
    p->at = node;
    p->layer = p->node->name;
    p->type = imp_host->graph_type(j->wants, v);
    p->array = -1;
    const cnr_op *op = p->node->desc;
    if (port >= op->n_inputs) port = op->n_inputs - 1;
    p->port =
        ((const cnr_port *)(const void *)((const char *)op->inputs + (size_t)port * op->port_size))
            ->name;
    return 1;
}

/* 1 if an operator's input is a parameter. */
static int is_parameter_port(const cnr_op *op, int32_t port) {
    return port < op->n_inputs && ((const cnr_port *)(const void *)((const char *)op->inputs +
                                                                    (size_t)port * op->port_size))
                                          ->flags &
                                      CNR_PORT_PARAMETER;
}

/* Collects, in the order of layers and ports, the parameters without data; with `all`, of a net
 * that lacks none, every parameter of its operators. 0: out of memory. */
static int collect(job *j, int all) {
    for (int32_t k = 0; k < imp_host->graph_node_count(j->wants); k++) {
        const cnr_value *in;
        const cnr_node *node = imp_host->graph_node_at(j->wants, k, &in, NULL);
        for (int32_t i = 0; i < node->n_inputs; i++) {
            if (in[i] < 0 || is_known(j, in[i])) continue;
            const int wanted = all ? is_parameter_port(node->desc, i)
                                   : !imp_host->graph_type(j->wants, in[i])->data;
            if (wanted && !add_parameter(j, in[i], k, i)) return 0;
        }
    }
    return 1;
}

/* ---- by name ---- */

/* Gives a parameter an array and marks it used; a second one is noted as a problem. */
static void choose(job *j, imp_parameter *p, int32_t array, int inverse) {
    if (p->array >= 0) {
        imp_host->graph_problem(j->net->graph, j->arrays->at[array].file,
                                "'%s' and '%s' both are %s", j->arrays->at[p->array].name,
                                j->arrays->at[array].name, p->name);
    } else {
        p->array = array;
        p->inverse = inverse;
    }
    j->used[array] = 1;
}

/* Assigns arrays by name, exact names first. Returns how many parameters got one. */
static int32_t match_names(job *j) {
    int32_t found = 0;
    for (int level = 2; level > 0; level--)
        for (int32_t i = 0; i < j->n; i++) {
            imp_parameter *p = &j->at[i];
            if (p->array >= 0) continue; /* matched at an earlier, more exact level */
            for (int32_t k = 0; k < j->arrays->n; k++) {
                int inverse;
                if (j->used[k]) continue;
                if (imp_name_level(j->arrays->at[k].name, p, &inverse) == level)
                    choose(j, p, k, inverse);
            }
            found += p->array >= 0;
        }
    return found;
}

/* ---- by position ---- */

/* Orders the parameters [from, to) of one normalisation by the words of option batch_norm. */
static void order_norm(job *j, int32_t from, int32_t to) {
    const char *text = j->layout.batch_norm, *word = text;
    int32_t k = from;
    for (size_t length; word && k < to; word += length) {
        word += strspn(word, ", ");
        if ((length = strcspn(word, ", ")) == 0) break;
        int32_t i = k;
        while (i < to && !imp_is_port_word(j->at[i].port, word, length)) i++;
        if (i == to) break;
        const imp_parameter p = j->at[i];
        memmove(&j->at[k + 1], &j->at[k], (size_t)(i - k) * sizeof p);
        j->at[k] = p;
        j->at[k++].inverse = imp_is_inverse(word, length);
    }
    if (k == to && !word[strspn(word, ", ")]) return;
    if (text)
        imp_host->graph_problem(j->net->graph, j->net->path,
                                "batch_norm=%s: %s wants words for %d "
                                "arrays, as \"beta,gamma,mean,inv_std\"",
                                text, j->at[from].layer, (int)(to - from));
    else
        imp_host->graph_problem(j->net->graph, j->net->path,
                                "the %d arrays of %s have no names: "
                                "say in which order they are, batch_norm = \"beta,gamma,mean,"
                                "inv_std\" (Lasagne) or \"gamma,beta,mean,var\" (Keras)",
                                (int)(to - from), j->at[from].layer);
}

/* Gives arrays to parameters by their order in each layer; another number of them is noted as a
 * problem. */
static void match_places(job *j) {
    for (int32_t i = 0, to; i < j->n; i = to) {
        for (to = i + 1; to < j->n && j->at[to].at == j->at[i].at; to++) {}
        if (to - i > 1 && strcmp(j->at[i].node->desc->name, "batch_normalization") == 0)
            order_norm(j, i, to);
    }
    for (int32_t i = 0; i < j->n && i < j->arrays->n; i++)
        choose(j, &j->at[i], i, j->at[i].inverse);
    if (j->n != j->arrays->n)
        imp_host->graph_problem(j->net->graph, j->net->path,
                                "%d arrays without names for %d parameters", (int)j->arrays->n,
                                (int)j->n);
}

/* ---- filling ---- */

/* Writes a parameter's array, or says why its shape does not fit. */
static cnr_status fill_one(job *j, const imp_parameter *p, cnr_error *err) {
    imp_view view;
    char is[160], wants[160];
    const imp_array *a = &j->arrays->at[p->array];
    if (imp_fit(j->wants, p, a, &j->layout, &view))
        return imp_write(j->net, p, j->arrays, &view, err);
    imp_layout other = j->layout;
    other.hwio = !other.hwio;
    imp_host->graph_problem(j->net->graph, a->file, "'%s' is %s, but %s wants %s%s", a->name,
                            imp_shape_text(a->dim, a->rank, is), p->name,
                            imp_shape_text(p->type->dim, p->type->rank, wants),
                            !imp_fit(j->wants, p, a, &other, &view) ? ""
                            : other.hwio ? " (layout = \"hwio\" would fit)"
                                         : " (layout = \"oihw\" would fit)");
    return CNR_OK;
}

/* Writes all parameters; one without an array is a problem. */
static cnr_status fill(job *j, cnr_error *err) {
    char text[160];
    cnr_status status = CNR_OK;
    for (int32_t i = 0; i < j->n && !status; i++) {
        const imp_parameter *p = &j->at[i];
        if (p->array >= 0) status = fill_one(j, p, err);
        else
            imp_host->graph_problem(j->net->graph, j->net->path, "no array for %s, %s", p->name,
                                    imp_shape_text(p->type->dim, p->type->rank, text));
    }
    for (int32_t k = 0; k < j->arrays->n && !status; k++) {
        const imp_array *a = &j->arrays->at[k];
        if (!j->used[k] && !imp_name_is_idle(a->name))
            imp_host->graph_problem(j->net->graph, a->file, "'%s', %s, is no parameter of the net",
                                    a->name, imp_shape_text(a->dim, a->rank, text));
    }
    return status;
}

cnr_status imp_weights(const cnr_import_args *args, imp_net *net, const imp_arrays *arrays,
                       cnr_error *err) {
    job j = {.net = net, .wants = imp_net_of(args), .arrays = arrays};
    cnr_status status = CNR_OK;
    imp_layout_read(args, net, &j.layout);
    j.used = (uint8_t *)imp_host->alloc((size_t)arrays->n + 1);
    if (j.used) memset(j.used, 0, (size_t)arrays->n + 1);
    if (!j.used || !collect(&j, 0) || (j.n == 0 && !collect(&j, 1)))
        status = imp_host->fail(err, CNR_E_MEMORY, net->path, "out of memory");
    if (!status && match_names(&j) == 0 &&
        (arrays->listed || arrays->n == 1 || imp_names_are_numbered(arrays)))
        match_places(&j);
    if (!status) status = fill(&j, err);
    imp_host->free(j.at);
    imp_host->free(j.used);
    return status;
}
