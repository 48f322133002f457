/* Folds a scale and shift of each channel into the weights and bias of the node before it. */
#include "graph/parts.h"

/* A linear operator (convolution or dense) and the scale and shift per channel behind it. */
typedef struct fold {
    cnr_graph *g;
    cnri_node *linear, *affine;
    cnr_linear ports;
    int64_t channels;
    float *scale, *shift;
} fold;

/* True for data that is known, dense f32 and not about to change. */
static bool foldable(const cnr_tensor *t) {
    return t && t->dtype == CNR_f32 && t->data && t->flags & CNR_TENSOR_CONST &&
           !(t->flags & CNR_TENSOR_VARIABLE) && !t->encoding && !t->quant;
}

/* The only node that reads `value`; NULL if several or none do, or if the net outputs it. */
static cnri_node *only_reader(const cnr_graph *g, cnr_value value, int32_t from) {
    if (g->values.at[value].uses != 1) return NULL;
    for (int32_t i = from; i < g->nodes.n; i++)
        for (int32_t k = 0; k < g->nodes.at[i]->view.n_inputs; k++)
            if (g->nodes.at[i]->in[k] == value) return g->nodes.at[i];
    return NULL;
}

/* True if node `index` and its reader can be folded; fills *f except for scale and shift. */
static bool matches(cnr_graph *g, int32_t index, fold *f) {
    cnri_node *node = g->nodes.at[index];
    const cnr_op *op = node->view.desc;
    if (!CNRI_HAS(op, linear) || node->view.n_outputs < 1) return false;
    f->g = g;
    f->linear = node;
    if (op->linear(&node->view, &f->ports) != 1) return false;
    f->affine = only_reader(g, node->out[0], index + 1);
    if (!f->affine || f->affine->in[0] != node->out[0]) return false;
    if (!CNRI_HAS(f->affine->view.desc, channel_affine)) return false;
    const cnr_tensor *y = node->view.outputs[0];
    if (y->rank < 2 || y->dim[1] < 1) return false;
    f->channels = y->dim[1];
    const int32_t w = f->ports.weight_port, b = f->ports.bias_port, axis = f->ports.weight_axis;
    if (w < 0 || w >= node->view.n_inputs || !foldable(node->view.inputs[w])) return false;
    if (g->values.at[node->in[w]].unfolded) return false;
    const cnr_tensor *weight = node->view.inputs[w];
    if (axis < 0 || axis >= weight->rank || weight->dim[axis] != f->channels) return false;
    if (b < 0 || b >= node->view.n_inputs) return false;
    const cnr_tensor *bias = node->view.inputs[b];
    return !bias || (foldable(bias) && cnr_count(bias) == f->channels);
}

/* Makes a new constant for input `port`, because the model's own weight may be shared. False: it
 * failed. */
static bool replace_constant(fold *f, int32_t port, const char *stem, const cnr_tensor *type) {
    char *name = cnri_format("%s.folded", stem);
    cnr_tensor t = *type;
    t.flags = CNR_TENSOR_CONST;
    const cnr_value v = name ? cnri_value_add(f->g, name, &t) : -1;
    cnri_free(name);
    if (v < 0) return false;
    f->g->values.at[v].type->data = type->data; /* the value owns the data now */
    cnri_value_use(f->g, f->linear->in[port], -1);
    f->linear->in[port] = v;
    cnri_value_use(f->g, v, 1);
    cnri_node_link(f->g, f->linear);
    return true;
}

/* Scales the weight: when it is read (late.c), or at once. False: it failed. */
static bool scale_weight(fold *f) {
    const int32_t port = f->ports.weight_port;
    const cnr_value from = f->linear->in[port];
    cnr_tensor t = *f->linear->view.inputs[port];
    t.data = cnri_alloc_sparse(t.bytes ? t.bytes : 1);
    if (!t.data) return false;
    if (!replace_constant(f, port, f->g->values.at[from].name, &t)) {
        cnri_free(t.data);
        return false;
    }
    const cnr_value to = f->linear->in[port];
    if (!cnri_late_add(f->g, to, from, f->ports.weight_axis, f->scale, f->channels)) return false;
    if (!f->g->late_folds || f->g->calibration) cnri_late_keep(f->g, to);
    return true;
}

/* Scales the bias and adds the shift; makes a bias if there is none. False: out of memory. */
static bool shift_bias(fold *f) {
    const int32_t port = f->ports.bias_port;
    const cnr_tensor *old = f->linear->view.inputs[port];
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 1, .dim = {f->channels}};
    if (old) t = *old;
    t.bytes = (uint64_t)f->channels * sizeof(float);
    const float *from = old ? old->data : NULL;
    float *to = cnri_alloc(t.bytes);
    if (!to) return false;
    for (int64_t c = 0; c < f->channels; c++)
        to[c] = (from ? from[c] * f->scale[c] : 0) + f->shift[c];
    t.data = to;
    const char *stem = old ? f->g->values.at[f->linear->in[port]].name : f->linear->name;
    if (replace_constant(f, port, stem, &t)) return true;
    cnri_free(to);
    return false;
}

/* Folds scale and shift into weight and bias, and removes the node that applied them. */
static cnr_status fold_pair(fold *f, cnr_error *err) {
    const cnr_value from = f->affine->out[0], to = f->linear->out[0];
    const int32_t index = f->g->values.at[from].producer;
    if (!scale_weight(f) || !shift_bias(f)) return cnri_out_of_memory(err, f->linear->name);
    cnr_status status = cnri_graph_replace(f->g, from, to);
    if (status == CNR_OK) status = cnri_graph_remove(f->g, index);
    if (status != CNR_OK) return cnri_fail(err, status, f->linear->name, "can't be folded");
    return CNR_OK;
}

int32_t cnri_fold_affine(cnr_graph *g, cnr_error *err) {
    int32_t changes = 0;
    for (int32_t i = 0; i < g->nodes.n; i++) {
        fold f = {0};
        if (!matches(g, i, &f)) continue;
        f.scale = cnri_alloc((size_t)f.channels * 2 * sizeof *f.scale);
        if (!f.scale) return cnri_out_of_memory(err, g->name);
        f.shift = f.scale + f.channels;
        const int32_t affine =
            f.affine->view.desc->channel_affine(&f.affine->view, f.channels, f.scale, f.shift);
        const cnr_status status = affine == 1 ? fold_pair(&f, err) : CNR_OK;
        cnri_free(f.scale);
        for (int32_t k = 0; g->releases && k < f.linear->view.n_inputs; k++)
            if (f.linear->in[k] >= 0) cnri_value_release_pages(g, f.linear->in[k]);
        if (status != CNR_OK) return status;
        if (affine != 1) continue;
        changes++;
        i--; /* another scale may follow */
    }
    return changes;
}
