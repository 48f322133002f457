/* From a net to one that computes its loss and gradients: walks the nodes backwards and lets each
 * operator add the nodes of its own gradient. */
#include "core/train/train.h"

typedef struct share { cnr_value value, gradient; } share;

typedef struct walk {
    cnr_graph *g;
    const cnr_op *sum;
    bool *needed;          /* by value: a weight to train, or made of one */
    int32_t n_values;      /* of the forward graph */
    CNRI_VEC(share) shares; /* gradients of values, as they come in; several are summed */
} walk;

void cnri_backward_free(cnri_backward *b) { cnri_vec_free(&b->weights); }

/* ---- operators by what they say of themselves ---- */

const cnr_op *cnri_train_op_with(uint32_t flag) {
    for (int32_t i = 0; i < cnri_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_at(CNR_KIND_OPERATOR, i);
        if (op->flags & flag) return op;
    }
    return NULL;
}

cnr_status cnri_train_loss(const char *name, const cnr_op **out, cnr_error *err) {
    *out = name ? cnri_op(name) : cnri_train_op_with(CNR_OP_LOSS);
    if (*out && (*out)->flags & CNR_OP_LOSS && CNRI_HAS(*out, gradient)) return CNR_OK;
    cnri_text known = {0};
    for (int32_t i = 0; i < cnri_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_at(CNR_KIND_OPERATOR, i);
        if (op->flags & CNR_OP_LOSS)
            cnri_text_add(&known, "%s%s", known.n ? ", " : "", op->name);
    }
    cnri_fail(err, CNR_E_NOT_FOUND, name ? name : "training", "%s; losses known: %s",
              *out ? "is no loss" : "no such loss", known.n ? known.at : "none");
    cnri_text_free(&known);
    return CNR_E_NOT_FOUND;
}

/* ---- which values matter ---- */

static bool is_real(const cnr_tensor *t) {
    return t->dtype == CNR_f32 || t->dtype == CNR_f64 || t->dtype == CNR_f16 ||
           t->dtype == CNR_bf16;
}

bool cnri_train_fed_as(const cnr_graph *g, cnr_value value, uint32_t flag) {
    for (int32_t i = 0; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        const cnr_op *op = node->view.desc;
        for (int32_t k = 0; k < node->view.n_inputs && k < op->n_inputs; k++) {
            const char *row = (const char *)op->inputs + (size_t)k * op->port_size;
            const cnr_port *port = (const cnr_port *)(const void *)row;
            if (node->in[k] == value && port->flags & flag) return true;
        }
    }
    return false;
}

static void mark_needed(walk *w) {
    for (int32_t i = 0; i < w->n_values; i++) {
        const cnri_value *v = &w->g->values.at[i];
        w->needed[i] = v->producer < 0 && !v->is_input && v->type->flags & CNR_TENSOR_VARIABLE &&
                       !cnri_train_fed_as(w->g, i, CNR_PORT_STATISTIC); /* measured, not learned */
    }
    for (int32_t i = 0; i < w->g->nodes.n; i++) {
        const cnri_node *node = w->g->nodes.at[i];
        bool any = false;
        for (int32_t k = 0; k < node->view.n_inputs; k++)
            any = any || (node->in[k] >= 0 && w->needed[node->in[k]]);
        for (int32_t k = 0; k < node->view.n_outputs && any; k++)
            w->needed[node->out[k]] = is_real(node->view.outputs[k]);
    }
}

/* ---- gradients of values ---- */

static cnr_status give(walk *w, cnr_value value, cnr_value gradient, cnr_error *err) {
    share *s = cnri_push(&w->shares);
    if (!s) return cnri_fail(err, CNR_E_MEMORY, w->g->name, "out of memory");
    *s = (share){value, gradient};
    return CNR_OK;
}

/* The gradient of `value`: -1 when nothing flows; the sum when it is read at several places. */
static cnr_status gather(walk *w, cnr_value value, cnr_value *out, cnr_error *err) {
    int32_t n = 0;
    *out = -1;
    for (int32_t i = 0; i < w->shares.n; i++)
        if (w->shares.at[i].value == value) {
            *out = w->shares.at[i].gradient;
            n++;
        }
    if (n < 2) return CNR_OK;
    if (!w->sum)
        return cnri_fail(err, CNR_E_NOT_FOUND, w->g->values.at[value].name,
                         "is read at %d places, and no loaded plugin has an operator that sums", n);
    cnr_value *terms = cnri_alloc((size_t)n * sizeof *terms);
    if (!terms) return cnri_fail(err, CNR_E_MEMORY, w->g->name, "out of memory");
    n = 0;
    for (int32_t i = 0; i < w->shares.n; i++)
        if (w->shares.at[i].value == value) terms[n++] = w->shares.at[i].gradient;
    const cnr_status status =
        cnri_graph_node(w->g, w->sum->name, NULL, NULL, terms, n, NULL, 0, out, 1);
    cnri_free(terms);
    return status == CNR_OK ? CNR_OK : cnri_graph_verdict(w->g, false, err);
}

/* ---- one node ---- */

typedef struct hook_lists {
    cnr_value *in, *out, *grad_out, *grad_in;
    int32_t *want;
} hook_lists;

static void *carve(char **at, size_t n, size_t bytes) {
    void *list = *at;
    *at += n * bytes;
    return list;
}

/* The lists of a node's hook in one block; the node's own, since it may move as nodes are added. */
static void *make_lists(const cnri_node *node, hook_lists *l) {
    const size_t in = (size_t)node->view.n_inputs, out = (size_t)node->view.n_outputs;
    char *block = cnri_alloc((3 * in + 2 * out + 1) * sizeof(int32_t)), *at = block;
    if (!block) return NULL;
    l->in = carve(&at, in, sizeof *l->in);
    l->grad_in = carve(&at, in, sizeof *l->grad_in);
    l->want = carve(&at, in, sizeof *l->want);
    l->out = carve(&at, out, sizeof *l->out);
    l->grad_out = carve(&at, out, sizeof *l->grad_out);
    return block;
}

static cnr_status fill_lists(walk *w, const cnri_node *node, hook_lists *l, bool *flows,
                             cnr_error *err) {
    *flows = false;
    for (int32_t i = 0; i < node->view.n_outputs; i++) {
        l->out[i] = node->out[i];
        const cnr_status status = gather(w, node->out[i], &l->grad_out[i], err);
        if (status != CNR_OK) return status;
        *flows = *flows || l->grad_out[i] >= 0;
    }
    bool wanted = false;
    for (int32_t i = 0; i < node->view.n_inputs; i++) {
        l->in[i] = node->in[i];
        l->grad_in[i] = -1;
        l->want[i] = node->in[i] >= 0 && w->needed[node->in[i]];
        wanted = wanted || l->want[i];
    }
    *flows = *flows && wanted;
    return CNR_OK;
}

static cnr_status backward_node(walk *w, const cnri_node *node, cnr_error *err) {
    const cnr_op *op = node->view.desc;
    hook_lists l;
    bool flows;
    void *block = make_lists(node, &l);
    if (!block) return cnri_fail(err, CNR_E_MEMORY, node->name, "out of memory");
    cnr_status status = fill_lists(w, node, &l, &flows, err);
    if (status == CNR_OK && flows) {
        const char *where = node->where ? node->where : node->name;
        if (!CNRI_HAS(op, gradient))
            status = cnri_fail(err, CNR_E_UNSUPPORTED, where, "%s (%s) has no gradient", node->name,
                               op->name);
        else
            status = op->gradient(&cnri_host, w->g, &node->view, l.in, l.out, l.grad_out, l.want,
                                  l.grad_in, err);
        if (w->g->problems.n > 0 || w->g->out_of_memory)
            status = cnri_graph_verdict(w->g, false, err);
        for (int32_t i = 0; i < node->view.n_inputs && status == CNR_OK; i++)
            if (l.want[i] && l.grad_in[i] >= 0) status = give(w, l.in[i], l.grad_in[i], err);
    }
    cnri_free(block);
    return status;
}

/* ---- the whole ---- */

cnr_value cnri_train_input(cnr_graph *g, const char *name, const cnr_tensor *type) {
    char room[32];
    snprintf(room, sizeof room, "%s", name);
    for (int32_t k = 2; cnri_graph_find(g, room) >= 0; k++)
        snprintf(room, sizeof room, "%s.%d", name, (int)k);
    return cnri_graph_input(g, room, type);
}

static cnr_value add_labels(cnr_graph *g, int64_t batch) {
    const cnr_tensor type = {
        .size = sizeof type, .dtype = CNR_i32, .rank = 1, .dim = {batch}};
    return cnri_train_input(g, "labels", &type);
}

/* Adds the loss, on what it wants to see: an operator that it absorbs is passed by. */
static cnr_status add_loss(cnr_graph *g, const cnr_op *loss, cnri_backward *b, cnr_error *err) {
    if (g->outputs.n != 1)
        return cnri_fail(err, CNR_E_UNSUPPORTED, g->name,
                         "a net to be trained has one output, this one has %d", g->outputs.n);
    b->scores = g->outputs.at[0];
    const int32_t producer = g->values.at[b->scores].producer;
    const cnri_node *last = producer >= 0 ? g->nodes.at[producer] : NULL;
    if (last && CNRI_HAS(loss, absorbs) && last->view.desc == cnri_op(loss->absorbs))
        b->scores = last->in[0];
    const cnr_tensor *scores = cnri_graph_type(g, b->scores);
    if (scores->rank < 1)
        return cnri_fail(err, CNR_E_SHAPE, g->name, "the net's output has no batch");
    b->labels = add_labels(g, scores->dim[0]);
    const cnr_value in[] = {b->scores, b->labels};
    cnri_graph_node(g, loss->name, NULL, NULL, in, 2, NULL, 0, &b->loss, 1);
    return g->problems.n > 0 || g->out_of_memory ? cnri_graph_verdict(g, false, err) : CNR_OK;
}

static cnr_status seed(walk *w, const cnri_backward *b, cnr_error *err) {
    float one = 1;
    double one64 = 1;
    cnr_tensor type = *cnri_graph_type(w->g, b->loss);
    if (cnr_count(&type) != 1 || (type.dtype != CNR_f32 && type.dtype != CNR_f64))
        return cnri_fail(err, CNR_E_SHAPE, w->g->name, "the loss is not one number");
    type.data = type.dtype == CNR_f32 ? (void *)&one : (void *)&one64;
    const cnr_value v = cnri_graph_constant(w->g, "loss.gradient", &type);
    return v < 0 ? cnri_graph_verdict(w->g, false, err) : give(w, b->loss, v, err);
}

static cnr_status collect(walk *w, cnri_backward *b, cnr_error *err) {
    for (cnr_value v = 0; v < w->n_values; v++) {
        const cnri_value *value = &w->g->values.at[v];
        cnr_value gradient;
        if (!w->needed[v] || value->producer >= 0) continue;
        const cnr_status status = gather(w, v, &gradient, err);
        if (status != CNR_OK) return status;
        if (gradient < 0) continue;
        cnri_gradient *slot = cnri_push(&b->weights);
        if (!slot) return cnri_fail(err, CNR_E_MEMORY, w->g->name, "out of memory");
        *slot = (cnri_gradient){v, gradient, -1};
    }
    if (b->weights.n > 0) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, w->g->name, "no weight that the loss depends on");
}

/* Loss and scores instead of what the net gave. */
static cnr_status set_outputs(cnr_graph *g, const cnri_backward *b, cnr_error *err) {
    for (int32_t i = 0; i < g->outputs.n; i++) {
        g->values.at[g->outputs.at[i]].uses--;
        cnri_free(g->outputs.names[i]);
    }
    g->outputs.n = 0;
    cnri_graph_output(g, b->loss, "loss");
    cnri_graph_output(g, b->scores, "scores");
    return cnri_graph_verdict(g, false, err);
}

cnr_status cnri_train_backward(cnr_graph *g, const cnr_op *loss, cnri_backward *out,
                               cnr_error *err) {
    *out = (cnri_backward){0};
    cnr_status status = add_loss(g, loss, out, err);
    if (status != CNR_OK) return status;
    walk w = {.g = g, .sum = cnri_train_op_with(CNR_OP_ADDS), .n_values = g->values.n};
    const int32_t n_nodes = g->nodes.n;
    w.needed = cnri_alloc_zero((size_t)w.n_values * sizeof *w.needed);
    if (!w.needed) return cnri_fail(err, CNR_E_MEMORY, g->name, "out of memory");
    mark_needed(&w);
    status = seed(&w, out, err);
    g->renames = true;
    for (int32_t i = n_nodes - 1; i >= 0 && status == CNR_OK; i--)
        status = backward_node(&w, g->nodes.at[i], err);
    g->renames = false;
    if (status == CNR_OK) status = collect(&w, out, err);
    if (status == CNR_OK) status = set_outputs(g, out, err);
    cnri_free(w.needed);
    cnri_vec_free(&w.shares);
    if (status != CNR_OK) cnri_backward_free(out);
    return status;
}
