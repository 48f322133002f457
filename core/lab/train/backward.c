/* Makes a net compute its loss and gradients: walks the nodes backwards, and each operator adds
 * the nodes of its own gradient. */
#include "train/train.h"

/* One part of the gradient of a value. */
typedef struct share {
    cnr_value value, gradient;
} share;

/* A net through which gradients are derived backwards. */
typedef struct walk {
    cnr_graph *g;
    const cnr_op *sum;
    bool *needed;     /* by value: it is a weight to train, or computed from one */
    int32_t n_values; /* number of values of the forward graph */
    /* Parts of the gradients of values; several parts of one value are summed. */
    CNRI_VEC(share) shares;
} walk;

void cnri_backward_free(cnri_backward *b) { cnri_vec_free(&b->weights); }

/* ---- operators by what they say of themselves ---- */

const cnr_op *cnri_train_op_with(uint32_t flag) {
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        if (op->flags & flag) return op;
    }
    return NULL;
}

cnr_status cnri_train_loss(const char *name, const cnr_op **out, cnr_error *err) {
    *out = name ? cnri_op_find(name) : cnri_train_op_with(CNR_OP_LOSS);
    if (*out && (*out)->flags & CNR_OP_LOSS && CNRI_HAS(*out, gradient)) return CNR_OK;
    cnri_text known = {0};
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        if (op->flags & CNR_OP_LOSS) cnri_text_add(&known, "%s%s", known.n ? ", " : "", op->name);
    }
    cnri_fail(err, CNR_E_NOT_FOUND, name ? name : "training",
              "%s; losses known: %s; or a .lua file that returns one",
              *out ? "is no loss" : "no such loss", known.n ? known.at : "none");
    cnri_text_free(&known);
    return CNR_E_NOT_FOUND;
}

/* ---- losses and optimisers in files ---- */

static const cnri_train_files *registered;

void cnri_train_files_register(const cnri_train_files *files) {
    __atomic_store_n(&registered, files, __ATOMIC_RELEASE);
}

/* Passes an error on, with its text; but CNR_E_NOT_FOUND becomes CNR_OK, as the caller reports that
 * there is no such file. */
static cnr_status opened(cnr_status status, const cnr_error *why, cnr_error *err) {
    if (!status || status == CNR_E_NOT_FOUND) return CNR_OK;
    return cnri_fail(err, status, why->where, "%s", why->text);
}

cnr_status cnri_loss_file_open(const char *name, cnri_own_loss *out, cnr_error *err) {
    const cnri_train_files *files = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    cnr_error why = CNR_ERROR_INIT;
    *out = (cnri_own_loss){0};
    return opened(files ? files->open_loss(name, out, &why) : CNR_OK, &why, err);
}

void cnri_loss_file_close(cnri_own_loss *loss) {
    const cnri_train_files *files = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    if (files && loss->build) files->close_loss(loss);
    *loss = (cnri_own_loss){0};
}

cnr_status cnri_optimizer_file_open(const char *name, cnri_own_optimizer *out, cnr_error *err) {
    const cnri_train_files *files = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    cnr_error why = CNR_ERROR_INIT;
    *out = (cnri_own_optimizer){0};
    return opened(files ? files->open_optimizer(name, out, &why) : CNR_OK, &why, err);
}

void cnri_optimizer_file_close(cnri_own_optimizer *optimizer) {
    const cnri_train_files *files = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    if (files && optimizer->build) files->close_optimizer(optimizer);
    *optimizer = (cnri_own_optimizer){0};
}

cnr_status cnri_metric_file_open(const char *name, cnri_metrics *to, cnr_error *err) {
    const cnri_train_files *files = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    void *file = NULL;
    if (!files)
        return cnri_fail(err, CNR_E_NOT_FOUND, name, "nothing here runs the scripts of metrics");
    const cnr_status status = files->open_metrics(name, to, &file, err);
    if (file) to->files[to->n_files++] = file;
    return status;
}

void cnri_metrics_close(cnri_metrics *m) {
    const cnri_train_files *files = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
    for (int32_t i = 0; i < m->n_files; i++) files->close_metrics(m->files[i]);
    *m = (cnri_metrics){0};
}

/* ---- which values matter ---- */

/* True for floating-point types. */
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

/* Sets w->needed for each value that is a weight to train (no statistic) or computed from one. */
static void mark_needed(walk *w) {
    for (int32_t i = 0; i < w->n_values; i++) {
        const cnri_value *v = &w->g->values.at[i];
        /* A statistic: measured, not learned. */
        w->needed[i] = v->producer < 0 && !v->is_input && v->type->flags & CNR_TENSOR_VARIABLE &&
                       !cnri_train_fed_as(w->g, i, CNR_PORT_STATISTIC);
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

/* Adds a part to the gradient of a value. */
static cnr_status give(walk *w, cnr_value value, cnr_value gradient, cnr_error *err) {
    share *s = cnri_push(&w->shares);
    if (!s) return cnri_out_of_memory(err, w->g->name);
    *s = (share){value, gradient};
    return CNR_OK;
}

/* *out: the gradient of `value`, the sum of its parts if several nodes read it; -1: no gradient
 * reaches it. */
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
    if (!terms) return cnri_out_of_memory(err, w->g->name);
    n = 0;
    for (int32_t i = 0; i < w->shares.n; i++)
        if (w->shares.at[i].value == value) terms[n++] = w->shares.at[i].gradient;
    const cnr_status status =
        cnri_graph_node(w->g, w->sum->name, NULL, NULL, terms, n, NULL, 0, out, 1);
    cnri_free(terms);
    return status == CNR_OK ? CNR_OK : cnri_graph_status(w->g, false, err);
}

/* ---- one node ---- */

/* Lists that an operator's gradient hook gets. */
typedef struct hook_lists {
    cnr_value *in, *out, *grad_out, *grad_in;
    int32_t *want;
} hook_lists;

/* Returns the next place in a block, and moves *at behind n elements of `bytes` bytes each. Nothing
 * is checked. */
static void *carve(char **at, size_t n, size_t bytes) {
    void *list = *at;
    *at += n * bytes;
    return list;
}

/* Allocates the lists for a node's gradient hook in one block, because nodes may move while others
 * are added. Returns it, for cnri_free; NULL: out of memory. */
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

/* Fills the lists of a node; *flows: a gradient flows through it to something needed. */
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

/* Adds the nodes that compute the gradients of one node's inputs; CNR_E_UNSUPPORTED: its operator
 * has no gradient, and one is needed. */
static cnr_status backward_node(walk *w, const cnri_node *node, cnr_error *err) {
    const cnr_op *op = node->view.desc;
    hook_lists l;
    bool flows;
    void *block = make_lists(node, &l);
    if (!block) return cnri_out_of_memory(err, node->name);
    cnr_status status = fill_lists(w, node, &l, &flows, err);
    if (status == CNR_OK && flows) {
        const char *where = node->where ? node->where : node->name;
        if (!CNRI_HAS(op, gradient))
            status =
                cnri_fail(err, CNR_E_UNSUPPORTED, where,
                          "can't be trained because %s (%s) has no gradient", node->name, op->name);
        else
            status = op->gradient(&cnri_host, w->g, &node->view, l.in, l.out, l.grad_out, l.want,
                                  l.grad_in, err);
        if (w->g->problems.n > 0 || w->g->out_of_memory)
            status = cnri_graph_status(w->g, false, err);
        for (int32_t i = 0; i < node->view.n_inputs && status == CNR_OK; i++)
            if (l.want[i] && l.grad_in[i] >= 0) status = give(w, l.in[i], l.grad_in[i], err);
    }
    cnri_free(block);
    return status;
}

/* ---- the whole ---- */

cnr_value cnri_train_input(cnr_graph *g, const char *name, const cnr_tensor *type) {
    char unique[32];
    snprintf(unique, sizeof unique, "%s", name);
    for (int32_t k = 2; cnri_graph_find(g, unique) >= 0; k++)
        snprintf(unique, sizeof unique, "%s.%d", name, (int)k);
    return cnri_graph_input(g, unique, type);
}

/* Adds the input for the labels, i32 [batch]; negative: it failed. */
static cnr_value add_labels(cnr_graph *g, int64_t batch) {
    const cnr_tensor type = {.size = sizeof type, .dtype = CNR_i32, .rank = 1, .dim = {batch}};
    return cnri_train_input(g, "labels", &type);
}

cnr_status cnri_train_digest(const cnr_graph *g, int32_t nodes, int32_t values, uint8_t digest[32],
                             cnr_error *err) {
    cnri_text t = {0};
    cnri_sha256 sum;
    cnri_sha256_begin(&sum);
    for (int32_t i = nodes; i < g->nodes.n; i++) {
        const cnri_node *node = g->nodes.at[i];
        cnri_text_add(&t, "%s", node->view.desc->name);
        for (int32_t k = 0; k < node->view.n_inputs; k++)
            cnri_text_add(&t, " %d", (int)node->in[k]);
        for (int32_t k = 0; k < node->view.n_attrs; k++) {
            cnri_text_add(&t, " ");
            cnri_attr_print(node->view.attrs[k], &t);
        }
    }
    if (t.n) cnri_sha256_add(&sum, t.at, t.n);
    for (int32_t v = values; v < g->values.n; v++) {
        const cnr_tensor *type = g->values.at[v].type;
        if (type->data) cnri_sha256_add(&sum, type->data, type->bytes);
    }
    cnri_sha256_end(&sum, digest);
    const bool failed = t.failed;
    cnri_text_free(&t);
    return failed ? cnri_out_of_memory(err, g->name) : CNR_OK;
}

/* Adds the nodes of the caller's own loss and sets b->loss; fails if it adds weights or inputs of
 * its own. */
static cnr_status build_own_loss(cnr_graph *g, const cnri_own_loss *own, const cnri_loss_inputs *in,
                                 cnri_backward *b, cnr_error *err) {
    const int32_t nodes = g->nodes.n, values = g->values.n;
    b->loss = -1;
    g->renames = true;
    cnr_status status = own->build(own->arg, g, in, &b->loss, err);
    g->renames = false;
    if (status == CNR_OK && (g->problems.n > 0 || g->out_of_memory))
        status = cnri_graph_status(g, false, err);
    for (int32_t v = values; v < g->values.n && status == CNR_OK; v++)
        if (g->values.at[v].producer < 0 && !g->values.at[v].type->data)
            status = cnri_fail(err, CNR_E_UNSUPPORTED, g->values.at[v].name,
                               "a loss can have no weights and no inputs of its own");
    if (status == CNR_OK && b->loss < 0)
        status = cnri_fail(err, CNR_E_ARG, g->name, "the loss computes nothing");
    return status ? status : cnri_train_digest(g, nodes, values, b->digest, err);
}

/* Adds the loss. If it absorbs the net's last operator (a softmax), it reads that one's input. */
static cnr_status add_loss(cnr_graph *g, const cnr_op *loss, const cnri_own_loss *own,
                           cnri_backward *b, cnr_error *err) {
    if (g->outputs.n != 1)
        return cnri_fail(err, CNR_E_UNSUPPORTED, g->name,
                         "a net to be trained has one output, this one has %d", g->outputs.n);
    b->scores = g->outputs.at[0];
    const int32_t producer = g->values.at[b->scores].producer;
    const cnri_node *last = producer >= 0 ? g->nodes.at[producer] : NULL;
    cnr_value logits = b->scores;
    if (last && loss && CNRI_HAS(loss, absorbs) && last->view.desc == cnri_op_find(loss->absorbs))
        logits = last->in[0];
    if (!own || !own->build) b->scores = logits;
    const cnr_tensor *scores = cnri_graph_type(g, b->scores);
    if (scores->rank < 1)
        return cnri_fail(err, CNR_E_SHAPE, g->name, "the net's output has no batch");
    const int64_t batch = scores->dim[0], count = cnr_count(scores);
    b->labels = add_labels(g, batch);
    if (own && own->build && b->labels >= 0) {
        const cnri_loss_inputs own_in = {b->scores, logits, b->labels, batch,
                                         batch > 0 && count > 0 ? count / batch : 0};
        return build_own_loss(g, own, &own_in, b, err);
    }
    const cnr_value in[] = {b->scores, b->labels};
    cnri_graph_node(g, loss->name, NULL, NULL, in, 2, NULL, 0, &b->loss, 1);
    return g->problems.n > 0 || g->out_of_memory ? cnri_graph_status(g, false, err) : CNR_OK;
}

/* Fails because the loss is of that type. */
static cnr_status refuse_loss(const cnr_graph *g, const cnr_tensor *type, cnr_error *err) {
    cnri_text text = {0};
    cnri_type_print(g, type, &text);
    cnri_fail(err, CNR_E_SHAPE, g->name,
              "the loss is %s, not one number f32 or f64; reduce_mean { ..., keepdims = false } "
              "makes one",
              text.at ? text.at : "");
    cnri_text_free(&text);
    return CNR_E_SHAPE;
}

/* Starts with the gradient 1 of the loss, which must be one number. */
static cnr_status seed(walk *w, const cnri_backward *b, cnr_error *err) {
    float one = 1;
    double one64 = 1;
    cnr_tensor type = *cnri_graph_type(w->g, b->loss);
    if (cnr_count(&type) != 1 || (type.dtype != CNR_f32 && type.dtype != CNR_f64))
        return refuse_loss(w->g, &type, err);
    type.data = type.dtype == CNR_f32 ? (void *)&one : (void *)&one64;
    const cnr_value v = cnri_graph_constant(w->g, "loss.gradient", &type);
    return v < 0 ? cnri_graph_status(w->g, false, err) : give(w, b->loss, v, err);
}

/* Lists in b the weights that got a gradient, with it. CNR_E_ARG: the loss depends on no weight. */
static cnr_status collect(walk *w, cnri_backward *b, cnr_error *err) {
    for (cnr_value v = 0; v < w->n_values; v++) {
        const cnri_value *value = &w->g->values.at[v];
        cnr_value gradient;
        if (!w->needed[v] || value->producer >= 0) continue;
        const cnr_status status = gather(w, v, &gradient, err);
        if (status != CNR_OK) return status;
        if (gradient < 0) continue;
        cnri_gradient *slot = cnri_push(&b->weights);
        if (!slot) return cnri_out_of_memory(err, w->g->name);
        *slot = (cnri_gradient){v, gradient, -1};
    }
    if (b->weights.n > 0) return CNR_OK;
    return cnri_fail(err, CNR_E_ARG, w->g->name,
                     "can't be trained because the loss depends on no weight");
}

/* Makes loss and scores the outputs, in place of the net's. */
static cnr_status set_outputs(cnr_graph *g, const cnri_backward *b, cnr_error *err) {
    for (int32_t i = 0; i < g->outputs.n; i++) {
        g->values.at[g->outputs.at[i]].uses--;
        cnri_free(g->outputs.names[i]);
    }
    g->outputs.n = 0;
    cnri_graph_output(g, b->loss, "loss");
    cnri_graph_output(g, b->scores, "scores");
    return cnri_graph_status(g, false, err);
}

cnr_status cnri_train_backward(cnr_graph *g, const cnr_op *loss, const cnri_own_loss *own,
                               cnri_backward *out, cnr_error *err) {
    *out = (cnri_backward){0};
    cnr_status status = add_loss(g, loss, own, out, err);
    if (status != CNR_OK) return status;
    walk w = {.g = g, .sum = cnri_train_op_with(CNR_OP_ADDS), .n_values = g->values.n};
    const int32_t n_nodes = g->nodes.n;
    w.needed = cnri_alloc_zero((size_t)w.n_values * sizeof *w.needed);
    if (!w.needed) return cnri_out_of_memory(err, g->name);
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
