/* Every operator with a gradient, in a graph, against differences; none may be forgotten. */
#include "numeric.h"

/* n_out: outputs, of which the last is read; negative: the first.
 * inputs: "2x3" weights within -0.9..0.9, "+2x3" 0.2..1.8, "^2x3" 1.5..3, "i1,2" constants i64,
 * "b2x3" truth values, "=3" no weight. attrs: "axis=1;kernel_shape=2,2;alpha=0.5;mode=word". */
static const struct {
    const char *op, *attrs, *inputs;
    int32_t n_out;
} cases[] = {
    {"dropout", "", "2x3", 1},
    {"dropout_drawn", "ratio=0.4;seed=7", "5x6 =", 1},
    {"flatten", "", "2x3x2", 1},
    {"identity", "", "2x3", 1},
    {"reshape_like", "", "2x6 3x4", 1},
    {"average_pool", "kernel_shape=2,2;strides=2,1;pads=1,0,0,1", "2x2x4x5", 1},
    {"average_pool", "kernel_shape=3,3;strides=2,2;ceil_mode=1", "1x2x6x6", 1},
    {"conv", "kernel_shape=3,3;pads=1,1,1,1;strides=2,1", "2x3x5x4 4x3x3x3 4", 1},
    {"conv", "kernel_shape=2,3;dilations=2,1;group=2", "1x4x5x5 6x2x2x3 6", 1},
    {"conv", "kernel_shape=3;bias=0", "2x2x7 3x2x3", 1},
    {"conv", "kernel_shape=2,2,2", "1x2x3x3x3 2x2x2x2x2 2", 1},
    {"conv_transpose", "kernel_shape=3,3;strides=2,2;pads=1,1,1,1", "1x3x4x4 3x2x3x3 2", 1},
    {"max_pool", "kernel_shape=2,2;strides=2,2", "2x2x4x4", 1},
    {"max_pool", "kernel_shape=3,3;strides=2,2;ceil_mode=1", "1x2x6x6", 1},
    {"global_average_pool", "", "2x3x3x4", 1},
    {"global_max_pool", "", "2x3x3x4", 1},
    {"dense", "", "2x3x2 4x6 4", 1},
    {"dense", "bias=0", "2x6 4x6", 1},
    {"gemm", "transB=1;alpha=0.5;beta=2.0", "3x4 2x4 2", 1},
    {"gemm", "transA=1", "4x3 4x2 3x2", 1},
    {"matmul", "", "2x3x4 4x2", 1},
    {"matmul", "", "2x3x4 2x4x2", 1},
    {"softmax", "axis=1", "3x4", 1},
    {"softmax", "axis=1", "2x3x2", 1},
    {"log_softmax", "axis=-1", "3x4", 1},
    {"relu", "", "3x5", 1},
    {"relu6", "", "3x5", 1},
    {"leaky_relu", "alpha=0.1", "3x5", 1},
    {"thresholded_relu", "alpha=0.3", "3x5", 1},
    {"elu", "alpha=0.7", "3x5", 1},
    {"selu", "", "3x5", 1},
    {"celu", "alpha=0.5", "3x5", 1},
    {"hard_sigmoid", "", "3x5", 1},
    {"hard_swish", "", "3x5", 1},
    {"sigmoid", "", "3x5", 1},
    {"swish", "", "3x5", 1},
    {"mish", "", "3x5", 1},
    {"gelu", "", "3x5", 1},
    {"softplus", "", "3x5", 1},
    {"softsign", "", "3x5", 1},
    {"tanh", "", "3x5", 1},
    {"erf", "", "3x5", 1},
    {"shrink", "lambd=0.3;bias=0.1", "3x5", 1},
    {"exp", "", "3x5", 1},
    {"log", "", "+3x5", 1},
    {"sqrt", "", "+3x5", 1},
    {"reciprocal", "", "+3x5", 1},
    {"sin", "", "3x5", 1},
    {"cos", "", "3x5", 1},
    {"tan", "", "3x5", 1},
    {"asin", "", "3x5", 1},
    {"acos", "", "3x5", 1},
    {"atan", "", "3x5", 1},
    {"sinh", "", "3x5", 1},
    {"cosh", "", "3x5", 1},
    {"asinh", "", "3x5", 1},
    {"acosh", "", "^3x5", 1},
    {"atanh", "", "3x5", 1},
    {"abs", "", "3x5", 1},
    {"neg", "", "3x5", 1},
    {"sign", "", "3x5", 1},
    {"floor", "", "3x5", 1},
    {"ceil", "", "3x5", 1},
    {"round", "", "3x5", 1},
    {"add", "", "2x3 2x3", 1},
    {"add", "", "2x3x4 3x1", 1},
    {"sub", "", "2x3 3", 1},
    {"mul", "", "2x3 2x1", 1},
    {"div", "", "2x3 +3", 1},
    {"sum", "", "2x3 2x3 3", 1},
    {"mean", "", "2x3 2x3", 1},
    {"pow", "", "+2x3 +3", 1},
    {"concat", "axis=1", "2x3 2x1 2x2", 1},
    {"reshape", "", "2x6 i3,4", 1},
    {"squeeze", "", "2x1x3 i1", 1},
    {"unsqueeze", "", "2x3 i1", 1},
    {"reduce_sum", "axes=1;keepdims=0", "2x3x2", 1},
    {"reduce_mean", "axes=0,2", "2x3x2", 1},
    {"prelu", "", "2x3x2 3x1", 1},
    {"clip", "min=-0.4;max=0.5", "3x5", 1},
    {"weighted_sum", "coeff=1.0,-2.0", "2x3 2x3", 1},
    {"where", "", "b2x3 2x3 3", 1},
    {"cast", "to=f64", "2x3", 1},
    {"cast_like", "", "2x3 2", 1},
    {"transpose", "perm=2,0,1", "2x3x4", 1},
    {"gather", "axis=1", "2x3x2 i2,0,2,-1", 1},
    {"slice", "", "4x5 i1,0 i3,4 i0,1", 1},
    {"split", "axis=1", "2x4 i1,3", 2},
    {"expand", "", "3x1 i2,3,4", 1},
    {"pad", "", "2x3 i0,1,2,0", 1},
    {"depth_to_space", "blocksize=2", "1x4x2x3", 1},
    {"space_to_depth", "blocksize=2", "1x2x4x2", 1},
    {"channel_shuffle", "group=2", "1x4x2x2", 1},
    {"batch_normalization", "epsilon=0.01", "2x3x2x2 3 3 =3 =+3", 1},
    {"instance_normalization", "epsilon=0.01", "2x3x2x2 3 3", 1},
    {"group_normalization", "num_groups=2;epsilon=0.01", "2x4x3 4 4", 1},
    {"group_normalization", "num_groups=2;epsilon=0.01", "2x6x2x2 2 2", 1},
    {"layer_normalization", "epsilon=0.01", "2x3x4 4 4", 1},
    {"layer_normalization", "axis=1;epsilon=0.01", "3x2x4 2x1 4", 1},
    {"layer_normalization", "bias=0;axis=-2;epsilon=0.01", "2x3x2 3x2", 1},
    {"batch_statistics", "epsilon=0.01", "3x2x2x2 2 2 =2 =+2", -5},
    {"batch_statistics", "", "4x3 3 3 =3 =+3", -5},
    {"lrn", "size=3;alpha=0.3;beta=0.75;bias=1.0", "1x5x2x2", 1},
    {"lrn_within", "size=3;alpha=0.3;beta=0.75", "1x2x4x4", 1},
    {"scale_bias", "", "2x3x2 3 3", 1},
    {"trilu", "upper=0", "2x3x4", 1},
    {"softmax_cross_entropy", "", "4x3 i0,2,1,1", 1},
    {"toy_loss", "", "2x3 i0,0", 1},
};

/* ---- reading the table ---- */

/* "2,3" into numbers; returns how many. */
static int32_t read_list(const char *text, char separator, int64_t *out) {
    int32_t n = 0;
    while (*text) {
        out[n++] = strtoll(text, (char **)&text, 10);
        if (*text == separator) text++;
        else break;
    }
    return n;
}

/* Attributes read from a text. */
typedef struct attr_list {
    cnr_attr at[8];
    const cnr_attr *list[8];
    int64_t ints[8][8];
    double floats[8][8];
    char text[256];
    int32_t n;
} attr_list;

/* Reads one attribute. */
static void read_attr(attr_list *l, char *text) {
    cnr_attr *a = &l->at[l->n];
    char *value = strchr(text, '=');
    *value++ = 0;
    *a = (cnr_attr){.name = text, .set = 1};
    if (strspn(value, "-0123456789,.") < strlen(value)) {
        a->type = CNR_ATTR_STRING;
        a->s = value;
    } else if (strchr(value, '.')) {
        int32_t n = 0;
        for (const char *at = value; *at; at += *at == ',') {
            const char *end = at;
            cnri_parse_double(at, &end, &l->floats[l->n][n++]);
            at = end;
        }
        a->type = n > 1 ? CNR_ATTR_FLOATS : CNR_ATTR_FLOAT;
        a->f = l->floats[l->n][0];
        a->floats = l->floats[l->n];
        a->n = n;
    } else {
        a->n = read_list(value, ',', l->ints[l->n]);
        a->type = a->n > 1 ? CNR_ATTR_INTS : CNR_ATTR_INT;
        a->i = l->ints[l->n][0];
        a->ints = l->ints[l->n];
    }
    l->list[l->n] = a;
    l->n++;
}

/* Adds the input that a text describes. */
static cnr_value read_input(cnr_graph *g, int32_t index, const char *text) {
    char name[16];
    cnr_tensor type = {.size = sizeof type};
    snprintf(name, sizeof name, "in%d", index);
    if (*text == 'i') {
        int64_t data[8];
        type.dtype = CNR_i64;
        type.rank = 1;
        type.dim[0] = read_list(text + 1, ',', data);
        type.data = data;
        return cnri_graph_constant(g, name, &type);
    }
    const bool fixed = *text == '=';
    text += fixed;
    const bool truth = *text == 'b', positive = *text == '+', large = *text == '^';
    type.rank = read_list(text + (truth || positive || large), 'x', type.dim);
    if (truth) {
        uint8_t data[64];
        for (int i = 0; i < 64; i++) data[i] = i % 3 == 0;
        type.dtype = CNR_bool;
        type.data = data;
        return cnri_graph_constant(g, name, &type);
    }
    const cnr_value v = numeric_weight(g, name, type,
                                       positive ? .2
                                       : large  ? 1.5
                                                : -.9,
                                       positive ? 1.8
                                       : large  ? 3
                                                : .9);
    if (fixed) g->values.at[v].type->flags &= ~(uint32_t)CNR_TENSOR_VARIABLE;
    return v;
}

/* Runs a case: gradients against differences. */
static void run_case(size_t i) {
    static attr_list l;
    char attrs[256], inputs[256], what[512], *rest = NULL;
    cnr_value in[8], out[8];
    const int32_t n_out = cases[i].n_out < 0 ? -cases[i].n_out : cases[i].n_out;
    int32_t n = 0;
    snprintf(attrs, sizeof attrs, "%s", cases[i].attrs);
    snprintf(inputs, sizeof inputs, "%s", cases[i].inputs);
    snprintf(what, sizeof what, "%s (%s) of %s", cases[i].op, cases[i].attrs, cases[i].inputs);
    l.n = 0;
    for (char *a = strtok_r(attrs, ";", &rest); a; a = strtok_r(NULL, ";", &rest)) read_attr(&l, a);
    cnr_graph *g = cnri_graph_new("case");
    for (char *t = strtok_r(inputs, " ", &rest); t; t = strtok_r(NULL, " ", &rest)) {
        in[n] = read_input(g, n, t);
        n++;
    }
    const bool is_loss =
        cnri_op_find(cases[i].op) && cnri_op_find(cases[i].op)->flags & CNR_OP_LOSS;
    if (is_loss) { /* the loss itself, on a value that an identity makes */
        cnri_graph_node(g, "identity", "x", NULL, in, 1, NULL, 0, out, 1);
        cnri_graph_output(g, out[0], "y");
        numeric_check(g, cases[i].op, what);
    } else {
        cnri_graph_node(g, cases[i].op, "x", NULL, in, n, l.list, l.n, out, n_out);
        cnri_graph_output(g, out[cases[i].n_out < 0 ? 0 : n_out - 1], "y");
        numeric_check(g, "toy_loss", what);
    }
    cnri_graph_free(g);
}

/* True: an operator has a case. */
static bool has_case(const char *op) {
    for (size_t i = 0; i < CNRI_COUNT(cases); i++)
        if (strcmp(cases[i].op, op) == 0) return true;
    return false;
}

int main(void) {
    cnr_runtime *rt = numeric_open();
    if (!rt) return done();
    for (size_t i = 0; i < CNRI_COUNT(cases); i++) {
        if (cnri_op_find(cases[i].op)) run_case(i);
        else ok(0, "there is an operator %s", cases[i].op);
    }
    for (int32_t i = 0; i < cnri_descriptor_count(CNR_KIND_OPERATOR); i++) {
        const cnr_op *op = cnri_descriptor_at(CNR_KIND_OPERATOR, i);
        const cnri_plugin *owner = cnri_owner(op);
        if (!CNRI_HAS(op, gradient) || !owner || strcmp(owner->name, "ops-std") != 0) continue;
        /* the gradient of one that rounds passes its steps: differences don't agree with it */
        if (op->flags & CNR_OP_ROUNDS) continue;
        if (!has_case(op->name)) ok(0, "%s has a gradient and a case here", op->name);
    }
    cnr_close(rt);
    return done();
}
