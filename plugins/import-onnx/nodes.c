/* ONNX nodes into ours. Names and attributes are ONNX's own in snake case, so most nodes need no
 * code: what follows the general road is what older operator sets said differently. */
#include "onnx.h"

#include <ctype.h>
#include <stdio.h>

enum { MAX_ATTRS = 32, MAX_PORTS = 1024, TEXT = 512 };

/* A node being converted: what graph_node will be given. Handlers change it first. */
typedef struct job {
    onnx_net *net;
    const Onnx__NodeProto *node;
    char op[128], name[TEXT];
    cnr_value in[MAX_PORTS], out[MAX_PORTS];
    int32_t n_in, n_out, n_made;
    cnr_attr attr[MAX_ATTRS];
    const cnr_attr *attrs[MAX_ATTRS];
    int32_t n_attrs;
    void *owned[MAX_ATTRS]; /* converted strings and lists */
    int32_t n_owned;
    int failed, done; /* done: the handler bound the outputs itself */
} job;

static void problem(job *j, const char *format, const char *detail) {
    char text[400];
    snprintf(text, sizeof text, format, detail);
    onnx_host->graph_problem(j->net->graph, j->net->path, "node %s (%s): %s", j->name,
                             j->node->op_type ? j->node->op_type : "", text);
    j->failed = 1;
}

static void *own(job *j, size_t bytes) {
    void *block = j->n_owned < MAX_ATTRS ? onnx_host->alloc(bytes + 1) : NULL;
    if (!block) {
        j->net->status = CNR_E_MEMORY;
        j->failed = 1;
        return NULL;
    }
    return j->owned[j->n_owned++] = block;
}

/* ---- attributes ---- */

static const Onnx__AttributeProto *proto(const job *j, const char *name) {
    for (size_t i = 0; i < j->node->n_attribute; i++)
        if (j->node->attribute[i]->name && strcmp(j->node->attribute[i]->name, name) == 0)
            return j->node->attribute[i];
    return NULL;
}
static int64_t proto_int(const job *j, const char *name, int64_t fallback) {
    const Onnx__AttributeProto *a = proto(j, name);
    return a && a->has_i ? a->i : fallback;
}

static cnr_attr *put(job *j, const char *name, int32_t type) {
    static cnr_attr none;
    if (j->n_attrs >= MAX_ATTRS) {
        problem(j, "too many attributes%s", "");
        return &none;
    }
    cnr_attr *a = &j->attr[j->n_attrs];
    memset(a, 0, sizeof *a);
    a->name = name;
    a->type = type;
    a->set = 1;
    j->attrs[j->n_attrs++] = a;
    return a;
}

static void drop(job *j, const char *name) {
    for (int32_t i = 0; i < j->n_attrs; i++)
        if (strcmp(j->attrs[i]->name, name) == 0) {
            j->attrs[i] = j->attrs[--j->n_attrs];
            return;
        }
}

static char *text_of(job *j, ProtobufCBinaryData s) {
    char *text = (char *)own(j, s.len);
    if (!text) return NULL;
    memcpy(text, s.data, s.len);
    text[s.len] = 0;
    return text;
}

static const cnr_attr_spec *spec_of(const cnr_op *op, const char *name) {
    for (int32_t i = 0; op && i < op->n_attrs; i++) {
        const cnr_attr_spec *s =
            (const cnr_attr_spec *)((const char *)op->attrs + (size_t)i * op->attr_spec_size);
        if (strcmp(s->name, name) == 0) return s;
    }
    return NULL;
}

/* Of other times or of training, without meaning for what is computed here. */
static int is_ignored(const char *name) {
    static const char *const names[] = {"consumed_inputs", "is_test", "spatial", "momentum",
                                        "training_mode", "seed", "output_sequence", "broadcast",
                                        "doc_string", "stash_type", "saturate"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return 1;
    return 0;
}

static void convert_attr(job *j, const cnr_op *op, const Onnx__AttributeProto *a) {
    const cnr_attr_spec *spec = spec_of(op, a->name);
    if (!spec) {
        if (!is_ignored(a->name)) problem(j, "attribute \"%s\" is not supported", a->name);
        return;
    }
    cnr_attr *out = put(j, spec->name, spec->type);
    switch (spec->type) {
    case CNR_ATTR_INT: case CNR_ATTR_BOOL: out->i = a->i; break;
    case CNR_ATTR_FLOAT: out->f = a->has_f ? (double)a->f : (double)a->i; break;
    case CNR_ATTR_ENUM: case CNR_ATTR_STRING: out->s = text_of(j, a->s); break;
    case CNR_ATTR_DTYPE:
        out->i = onnx_dtype((int32_t)a->i);
        if (a->has_s) { /* operator set 1 wrote the type's name, "FLOAT" */
            for (int32_t t = 0; t < 23 && !out->i; t++) {
                const char *name = onnx_dtype_name(t);
                size_t k = 0;
                while (k < a->s.len && name[k] && tolower(a->s.data[k]) == name[k]) k++;
                if (k == a->s.len && !name[k]) out->i = onnx_dtype(t);
            }
        }
        if (!out->i) problem(j, "data type %s is not supported", onnx_dtype_name((int32_t)a->i));
        break;
    case CNR_ATTR_INTS:
        out->n = (int64_t)a->n_ints;
        out->ints = a->ints;
        if (!a->n_ints && a->has_i) out->n = 1, out->ints = &a->i;
        break;
    case CNR_ATTR_FLOATS: {
        double *values = (double *)own(j, (a->n_floats + 1) * sizeof(double));
        for (size_t i = 0; values && i < a->n_floats; i++) values[i] = (double)a->floats[i];
        out->n = (int64_t)a->n_floats;
        out->floats = values;
        break;
    }
    default: problem(j, "attribute \"%s\" is of an unknown kind", a->name);
    }
}

/* ---- helpers for handlers ---- */

static cnr_value helper(job *j, const char *op, const cnr_value *in, int32_t n_in,
                        const cnr_attr *attr) {
    char name[TEXT + 24];
    cnr_value out = -1;
    snprintf(name, sizeof name, "%s.%s%d", j->name, op, (int)++j->n_made);
    onnx_host->graph_node(j->net->graph, op, name, j->net->path, in, n_in, attr ? &attr : NULL,
                          attr ? 1 : 0, &out, 1);
    return out;
}

static cnr_value constant_i64(job *j, const int64_t *values, int64_t n) {
    cnr_tensor t = {.size = sizeof t, .dtype = CNR_i64, .rank = 1, .dim = {n},
                    .flags = CNR_TENSOR_CONST, .data = (void *)values, .bytes = (uint64_t)n * 8};
    char name[TEXT + 24];
    snprintf(name, sizeof name, "%s.value%d", j->name, (int)++j->n_made);
    return onnx_host->graph_constant(j->net->graph, name, &t);
}

static const cnr_tensor *type_of(const job *j, cnr_value v) {
    return v < 0 ? NULL : onnx_host->graph_type(j->net->graph, v);
}

/* ---- handlers ---- */

/* Before operator set 7 the second operand was laid against the first from `axis` on. */
static void old_broadcast(job *j) {
    const cnr_tensor *x = type_of(j, j->in[0]), *y = type_of(j, j->n_in > 1 ? j->in[1] : -1);
    if (j->net->opset >= 7 || !proto(j, "axis") || !x || !y) return;
    int64_t axis = proto_int(j, "axis", 0), axes[CNR_MAX_RANK], n = 0;
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis + y->rank > x->rank) return problem(j, "axis does not fit%s", "");
    for (int64_t i = axis + y->rank; i < x->rank; i++) axes[n] = y->rank + n, n++;
    if (n == 0) return;
    const cnr_attr over = {.name = "axes", .type = CNR_ATTR_INTS, .n = n, .ints = axes};
    j->in[1] = helper(j, "unsqueeze", &j->in[1], 1, &over);
}

/* Before operator set 13: rows are everything from `axis` on, as one. */
static void old_softmax(job *j) {
    const cnr_tensor *x = type_of(j, j->in[0]);
    if (j->net->opset >= 13 || !x) return;
    int64_t axis = proto_int(j, "axis", 1);
    if (axis < 0) axis += x->rank;
    drop(j, "axis");
    if (x->rank == 0 || axis == x->rank - 1) {
        put(j, "axis", CNR_ATTR_INT)->i = -1;
        return;
    }
    const cnr_attr at = {.name = "axis", .type = CNR_ATTR_INT, .i = axis};
    const cnr_attr rows = {.name = "axis", .type = CNR_ATTR_INT, .i = 1};
    cnr_value flat = helper(j, "flatten", j->in, 1, &at);
    flat = helper(j, j->op, &flat, 1, &rows);
    snprintf(j->op, sizeof j->op, "reshape_like");
    j->in[1] = j->in[0];
    j->in[0] = flat;
    j->n_in = 2;
}

/* Before operator set 7 a slope without more was one a channel. */
static void prelu(job *j) {
    const cnr_tensor *x = type_of(j, j->in[0]), *slope = type_of(j, j->n_in > 1 ? j->in[1] : -1);
    int64_t axes[CNR_MAX_RANK], n = 0;
    if (j->net->opset >= 7 || !x || !slope || slope->rank != 1 || x->rank < 3) return;
    for (int32_t i = 2; i < x->rank; i++) axes[n] = 1 + n, n++;
    const cnr_attr over = {.name = "axes", .type = CNR_ATTR_INTS, .n = n, .ints = axes};
    j->in[1] = helper(j, "unsqueeze", &j->in[1], 1, &over);
}

static void batch_norm(job *j) {
    const Onnx__AttributeProto *training = proto(j, "training_mode");
    if (training && training->i) problem(j, "training_mode is not supported%s", "");
    if (proto_int(j, "spatial", 1) == 0) problem(j, "spatial = 0 is not supported%s", "");
    for (size_t i = 1; i < j->node->n_output; i++)
        if (j->node->output[i][0]) problem(j, "its training outputs are not supported%s", "");
    j->n_out = 1;
}

/* A constant: any of the forms of Constant. */
static void constant(job *j) {
    const Onnx__AttributeProto *value = proto(j, "value"), *a;
    cnr_tensor t = {.size = sizeof t, .flags = CNR_TENSOR_CONST};
    cnr_error err = CNR_ERROR_INIT;
    j->done = 1;
    if (value && value->t) {
        if (onnx_tensor(value->t, j->net->folder, j->name, &t, &err)) {
            problem(j, "%s", err.text);
            return;
        }
        if (j->n_owned < MAX_ATTRS) j->owned[j->n_owned++] = t.data;
    } else if ((a = proto(j, "value_float"))) {
        t.dtype = CNR_f32, t.data = (void *)&a->f, t.bytes = 4;
    } else if ((a = proto(j, "value_int"))) {
        t.dtype = CNR_i64, t.data = (void *)&a->i, t.bytes = 8;
    } else if ((a = proto(j, "value_floats"))) {
        t.dtype = CNR_f32, t.rank = 1, t.dim[0] = (int64_t)a->n_floats;
        t.data = a->floats, t.bytes = a->n_floats * 4;
    } else if ((a = proto(j, "value_ints"))) {
        t.dtype = CNR_i64, t.rank = 1, t.dim[0] = (int64_t)a->n_ints;
        t.data = a->ints, t.bytes = a->n_ints * 8;
    } else {
        return problem(j, "a constant of this form (sparse, string) is not supported%s", "");
    }
    /* An empty list has no address, and NULL would mean "not yet filled". */
    if (!t.data) t.data = (void *)"";
    j->out[0] = onnx_host->graph_constant(j->net->graph, j->node->output[0], &t);
}

/* The one element of `value` as a number and a type. */
static void constant_of_shape(job *j) {
    const Onnx__AttributeProto *value = proto(j, "value");
    if (!value || !value->t) return;
    cnr_tensor t;
    cnr_error err = CNR_ERROR_INIT;
    if (onnx_tensor(value->t, j->net->folder, j->name, &t, &err)) {
        problem(j, "%s", err.text);
        return;
    }
    if (cnr_count(&t) != 1) problem(j, "value must hold one element%s", "");
    else {
        double d = 0;
        switch (t.dtype) {
        case CNR_f32: d = (double)*(float *)t.data; break;
        case CNR_f64: d = *(double *)t.data; break;
        case CNR_f16: d = (double)cnr_f16_to_f32(*(uint16_t *)t.data); break;
        case CNR_bf16: d = (double)cnr_bf16_to_f32(*(uint16_t *)t.data); break;
        case CNR_i64: d = (double)*(int64_t *)t.data; break;
        case CNR_u64: d = (double)*(uint64_t *)t.data; break;
        case CNR_i32: d = *(int32_t *)t.data; break;
        case CNR_u32: d = *(uint32_t *)t.data; break;
        case CNR_i16: d = *(int16_t *)t.data; break;
        case CNR_u16: d = *(uint16_t *)t.data; break;
        case CNR_i8: d = *(int8_t *)t.data; break;
        default: d = *(uint8_t *)t.data; break;
        }
        put(j, "value", CNR_ATTR_FLOAT)->f = d;
        put(j, "dtype", CNR_ATTR_DTYPE)->i = t.dtype;
    }
    onnx_host->free(t.data);
}

static void pad(job *j) { /* "paddings" in operator set 1 */
    const Onnx__AttributeProto *old = proto(j, "paddings");
    if (!old) return;
    cnr_attr *a = put(j, "pads", CNR_ATTR_INTS);
    a->n = (int64_t)old->n_ints;
    a->ints = old->ints;
}

static void resize(job *j) {
    if (j->net->opset >= 11) return;
    /* Operator set 10 has scales as the second input and one fixed rule. */
    put(j, "coordinate_transformation_mode", CNR_ATTR_ENUM)->s = "asymmetric";
    put(j, "nearest_mode", CNR_ATTR_ENUM)->s = "floor";
    if (j->n_in == 2) {
        j->in[2] = j->in[1];
        j->in[1] = -1;
        j->n_in = 3;
    }
}

static void upsample(job *j) { /* scales: an attribute, then an input; else as resize of set 10 */
    const Onnx__AttributeProto *scales = proto(j, "scales");
    snprintf(j->op, sizeof j->op, "resize");
    put(j, "coordinate_transformation_mode", CNR_ATTR_ENUM)->s = "asymmetric";
    put(j, "nearest_mode", CNR_ATTR_ENUM)->s = "floor";
    const Onnx__AttributeProto *mode = proto(j, "mode");
    const char *text = mode ? text_of(j, mode->s) : NULL;
    put(j, "mode", CNR_ATTR_ENUM)->s = !text ? "nearest" : strstr(text, "linear") ? "linear" : text;
    if (scales && scales->n_floats) {
        cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 1,
                        .dim = {(int64_t)scales->n_floats}, .flags = CNR_TENSOR_CONST,
                        .data = scales->floats, .bytes = scales->n_floats * 4};
        char name[TEXT + 24];
        snprintf(name, sizeof name, "%s.scales", j->name);
        j->in[1] = onnx_host->graph_constant(j->net->graph, name, &t);
        j->n_in = 2;
    }
    if (j->n_in != 2) return problem(j, "scales are missing%s", "");
    j->in[2] = j->in[1];
    j->in[1] = -1;
    j->n_in = 3;
}

static void top_k(job *j) { /* k was an attribute before operator set 10 */
    const Onnx__AttributeProto *k = proto(j, "k");
    if (!k || j->n_in != 1) return;
    j->in[1] = constant_i64(j, &k->i, 1);
    j->n_in = 2;
}

static void group_norm(job *j) { /* up to operator set 20 scale and bias were one a group */
    const int64_t groups = proto_int(j, "num_groups", 1);
    const cnr_tensor *x = type_of(j, j->in[0]);
    if (j->net->opset >= 21 || !x || x->rank < 2 || x->dim[1] < 1 || j->n_in < 3) return;
    if (groups < 1 || x->dim[1] % groups) return problem(j, "num_groups does not fit%s", "");
    const int64_t turn[] = {-1, 1}, many[] = {1, x->dim[1] / groups};
    const cnr_attr column = {.name = "shape", .type = CNR_ATTR_INTS, .n = 2, .ints = turn};
    const cnr_attr flat = {.name = "shape", .type = CNR_ATTR_INTS, .n = 1, .ints = turn};
    const cnr_attr repeat = {.name = "repeats", .type = CNR_ATTR_INTS, .n = 2, .ints = many};
    for (int i = 1; i < 3; i++) { /* each group's value once for each of its channels */
        cnr_value v = helper(j, "reshape", &j->in[i], 1, &column);
        v = helper(j, "tile", &v, 1, &repeat);
        j->in[i] = helper(j, "reshape", &v, 1, &flat);
    }
}

static void refuse_subgraph(job *j) {
    problem(j, "control flow (%s) is not supported", j->node->op_type);
}

static const struct handler {
    const char *op; /* after renaming */
    void (*change)(job *);
    const char *takes; /* attributes that it reads itself, each in blanks */
} handlers[] = {
    {"add", old_broadcast, " axis "}, {"sub", old_broadcast, " axis "},
    {"mul", old_broadcast, " axis "}, {"div", old_broadcast, " axis "},
    {"pow", old_broadcast, " axis "}, {"and", old_broadcast, " axis "},
    {"or", old_broadcast, " axis "}, {"xor", old_broadcast, " axis "},
    {"equal", old_broadcast, " axis "}, {"less", old_broadcast, " axis "},
    {"greater", old_broadcast, " axis "}, {"prelu", prelu, ""},
    {"softmax", old_softmax, ""}, {"log_softmax", old_softmax, ""}, {"hardmax", old_softmax, ""},
    {"batch_normalization", batch_norm, ""}, {"resize", resize, ""},
    {"constant", constant, " value value_float value_int value_floats value_ints sparse_value "
                           "value_string value_strings "},
    {"constant_of_shape", constant_of_shape, " value "}, {"pad", pad, " paddings "},
    {"upsample", upsample, " scales mode width_scale height_scale "}, {"top_k", top_k, " k "},
    {"group_normalization", group_norm, ""}, {"if", refuse_subgraph, " then_branch else_branch "},
    {"loop", refuse_subgraph, " body "}, {"scan", refuse_subgraph, " body num_scan_inputs "},
};

static const struct handler *handler_of(const char *op) {
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0]; i++)
        if (strcmp(handlers[i].op, op) == 0) return &handlers[i];
    return NULL;
}

static int is_taken(const struct handler *h, const char *attr) {
    char word[130];
    snprintf(word, sizeof word, " %.120s ", attr);
    return h && strstr(h->takes, word) != NULL;
}

/* ---- the road of every node ---- */

/* "ConvTranspose" -> "conv_transpose", "ReduceL1" -> "reduce_l1", "IsNaN" -> "is_nan". */
static void snake(const char *camel, char *out, size_t room) {
    static const char *const special[][2] = {
        {"MatMul", "matmul"}, {"PRelu", "prelu"}, {"QLinearConv", "qlinear_conv"},
        {"QLinearMatMul", "qlinear_matmul"}, {"MatMulInteger", "matmul_integer"},
        {"IsNaN", "is_nan"}, {"GatherND", "gather_nd"}, {"ScatterND", "scatter_nd"},
        {"DynamicQuantizeLinear", "dynamic_quantize_linear"},
    };
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (strcmp(special[i][0], camel) == 0) {
            snprintf(out, room, "%s", special[i][1]);
            return;
        }
    size_t n = 0;
    for (size_t i = 0; camel[i] && n + 2 < room; i++) {
        const int upper = isupper((unsigned char)camel[i]);
        const int starts = upper && i > 0 &&
                           (!isupper((unsigned char)camel[i - 1]) ||
                            (camel[i + 1] && islower((unsigned char)camel[i + 1])));
        if (starts) out[n++] = '_';
        out[n++] = (char)tolower((unsigned char)camel[i]);
    }
    out[n] = 0;
}

static void name_node(job *j) {
    const char *given = j->node->name && *j->node->name ? j->node->name : NULL;
    cnr_value seen;
    if (given && !onnx_names_get(&j->net->nodes, given, &seen)) {
        if (onnx_names_set(&j->net->nodes, given, 0)) j->net->status = CNR_E_MEMORY;
    } else { /* unnamed, or a second one of that name: its first output is unique */
        given = j->node->n_output ? j->node->output[0] : "node";
    }
    snprintf(j->name, sizeof j->name, "%s", given);
}

static void bind_inputs(job *j) {
    if (j->node->n_input > MAX_PORTS) return problem(j, "too many inputs%s", "");
    for (size_t i = 0; i < j->node->n_input; i++) {
        const char *name = j->node->input[i];
        j->in[i] = -1;
        if (*name && !onnx_names_get(&j->net->values, name, &j->in[i]))
            problem(j, "it reads \"%s\", which nothing before it gives", name);
        else if (*name && j->in[i] < 0) j->failed = 1; /* follows from a problem already told */
        j->n_in = (int32_t)i + 1;
    }
    while (j->n_in > 0 && !j->node->input[j->n_in - 1][0]) j->n_in--;
}

static void convert(job *j) {
    const Onnx__NodeProto *node = j->node;
    const char *domain = node->domain ? node->domain : "";
    snake(node->op_type ? node->op_type : "", j->op, sizeof j->op);
    const cnr_op *op = onnx_host->find_op(j->op);
    const struct handler *handler = handler_of(j->op);
    if (*domain && strcmp(domain, "ai.onnx") != 0) {
        problem(j, "operators of the domain \"%s\" are not supported", domain);
        return;
    }
    if (!op && !handler) {
        problem(j, "operator %s is not supported", node->op_type ? node->op_type : "(none)");
        return;
    }
    if (node->n_output > MAX_PORTS) return problem(j, "too many outputs%s", "");
    j->n_out = (int32_t)node->n_output;
    while (j->n_out > 1 && !node->output[j->n_out - 1][0]) j->n_out--;
    for (int32_t i = 0; i < j->n_out; i++) j->out[i] = -1;
    bind_inputs(j);
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && !is_taken(handler, node->attribute[i]->name))
            convert_attr(j, op, node->attribute[i]);
    if (handler && !j->failed) handler->change(j);
    /* Ours would make a bias that is left out; in ONNX left out means none. */
    const cnr_attr_spec *bias = spec_of(op, "bias");
    if (bias && bias->type == CNR_ATTR_BOOL) put(j, "bias", CNR_ATTR_BOOL)->i = j->n_in > 2;
    if (j->failed || j->done) return;
    if (onnx_host->graph_node(j->net->graph, j->op, j->name, j->net->path, j->in, j->n_in, j->attrs,
                              j->n_attrs, j->out, j->n_out) == CNR_E_MEMORY)
        j->net->status = CNR_E_MEMORY;
}

void onnx_node(onnx_net *net, const Onnx__NodeProto *node) {
    job *j = (job *)onnx_host->alloc(sizeof *j); /* tens of kilobytes: not for the stack */
    if (!j) {
        net->status = CNR_E_MEMORY;
        return;
    }
    memset(j, 0, sizeof *j);
    j->net = net;
    j->node = node;
    name_node(j);
    convert(j);
    for (size_t i = 0; i < node->n_output && !net->status; i++)
        if (node->output[i][0] &&
            onnx_names_set(&net->values, node->output[i],
                           !j->failed && (int32_t)i < j->n_out ? j->out[i] : -1))
            net->status = CNR_E_MEMORY;
    for (int32_t i = 0; i < j->n_owned; i++) onnx_host->free(j->owned[i]);
    onnx_host->free(j);
}
