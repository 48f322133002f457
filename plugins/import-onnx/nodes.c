/* Converts ONNX nodes. Our names and attributes are ONNX's in snake case, so most nodes need no
 * code; forms.c handles the others. */
#include "export.h"

#include <ctype.h>
#include <stdio.h>

/* Bound on a file's attributes; forms add a few of their own. */
enum { MAX_ATTRS = IMP_MAX_ATTRS - 4 };

void onnx_problem(onnx_job *j, const char *format, const char *detail) {
    char text[400];
    snprintf(text, sizeof text, format, detail);
    imp_host->graph_problem(j->net->imp.graph, j->net->imp.path, "node %s (%s): %s", j->name,
                            j->node->op_type ? j->node->op_type : "", text);
    j->failed = 1;
}

void *onnx_own(onnx_job *j, size_t bytes) {
    void *block = imp_take(&j->net->pool, bytes + 1);
    if (!block) {
        j->net->imp.status = CNR_E_MEMORY;
        j->failed = 1;
    }
    return block;
}

cnr_value onnx_step(onnx_job *j, const char *op, const cnr_value *in, int32_t n_in,
                    const imp_attrs *attrs) {
    char suffix[64];
    snprintf(suffix, sizeof suffix, ".%.40s%d", op, (int)++j->n_made);
    return imp_node(&j->net->imp, op, j->name, suffix, in, n_in, attrs);
}

cnr_value onnx_step2(onnx_job *j, const char *op, cnr_value a, cnr_value b) {
    return onnx_step(j, op, (cnr_value[]){a, b}, 2, NULL);
}

/* ---- attributes ---- */

const Onnx__AttributeProto *onnx_proto(const onnx_job *j, const char *name) {
    for (size_t i = 0; i < j->node->n_attribute; i++)
        if (j->node->attribute[i]->name && strcmp(j->node->attribute[i]->name, name) == 0)
            return j->node->attribute[i];
    return NULL;
}
int64_t onnx_int(const onnx_job *j, const char *name, int64_t fallback) {
    const Onnx__AttributeProto *a = onnx_proto(j, name);
    return a && a->has_i ? a->i : fallback;
}

char *onnx_text(onnx_job *j, ProtobufCBinaryData s) {
    char *text = (char *)onnx_own(j, s.len);
    if (!text) return NULL;
    memcpy(text, s.data, s.len);
    text[s.len] = 0;
    return text;
}

/* An operator's attribute row of that name; NULL: none. */
static const cnr_attr_spec *spec_of(const cnr_op *op, const char *name) {
    for (int32_t i = 0; op && i < op->n_attrs; i++) {
        const cnr_attr_spec *s =
            (const cnr_attr_spec *)((const char *)op->attrs + (size_t)i * op->attr_spec_size);
        if (strcmp(s->name, name) == 0) return s;
    }
    return NULL;
}

/* 1 for attributes of old versions or of training, which do not affect the result. */
static int is_ignored(const char *name) {
    static const char *const names[] = {"consumed_inputs", "is_test",       "spatial",
                                        "momentum",        "training_mode", "seed",
                                        "output_sequence", "broadcast",     "doc_string",
                                        "stash_type",      "saturate"};
    return imp_is_one_of(name, names, CNR_ROWS(names));
}

/* Adds an attribute by our operator's row of its name; an unknown one is a problem. */
static void convert_attr(onnx_job *j, const cnr_op *op, const Onnx__AttributeProto *a) {
    const cnr_attr_spec *spec = spec_of(op, a->name);
    if (!spec) {
        if (!is_ignored(a->name)) onnx_problem(j, "attribute \"%s\" is not supported", a->name);
        return;
    }
    cnr_attr *out = imp_attr(&j->attrs, spec->name, spec->type);
    switch (spec->type) {
    case CNR_ATTR_INT:
    case CNR_ATTR_BOOL: out->i = a->i; break;
    case CNR_ATTR_FLOAT: out->f = a->has_f ? (double)a->f : (double)a->i; break;
    case CNR_ATTR_ENUM:
    case CNR_ATTR_STRING: out->s = onnx_text(j, a->s); break;
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
        if (!out->i)
            onnx_problem(j, "data type %s is not supported", onnx_dtype_name((int32_t)a->i));
        break;
    case CNR_ATTR_INTS:
        out->n = (int64_t)a->n_ints;
        out->ints = a->ints;
        if (!a->n_ints && a->has_i) out->n = 1, out->ints = &a->i;
        break;
    case CNR_ATTR_FLOATS: {
        double *values = (double *)onnx_own(j, (a->n_floats + 1) * sizeof(double));
        for (size_t i = 0; values && i < a->n_floats; i++) values[i] = (double)a->floats[i];
        out->n = (int64_t)a->n_floats;
        out->floats = values;
        break;
    }
    default: onnx_problem(j, "attribute \"%s\" is of an unknown kind", a->name);
    }
}

/* ---- conversion of a node ---- */

/* Writes ONNX's name of an operator in our form to `out`: "ConvTranspose" as "conv_transpose",
 * "ReduceL1" as "reduce_l1", "IsNaN" as "is_nan". */
static void snake(const char *camel, char *out, size_t room) {
    static const char *const special[][2] = {
        {"MatMul", "matmul"},
        {"PRelu", "prelu"},
        {"QLinearConv", "qlinear_conv"},
        {"QLinearMatMul", "qlinear_matmul"},
        {"MatMulInteger", "matmul_integer"},
        {"IsNaN", "is_nan"},
        {"GatherND", "gather_nd"},
        {"ScatterND", "scatter_nd"},
        {"DynamicQuantizeLinear", "dynamic_quantize_linear"},
        {"Col2Im", "col2im"},
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

/* Names the node; a name given twice gets a number. */
static void name_node(onnx_job *j) {
    const char *given = j->node->name && *j->node->name ? j->node->name : NULL;
    cnr_value seen;
    if (given && !onnx_names_get(&j->net->nodes, given, &seen)) {
        if (onnx_names_set(&j->net->nodes, given, 0)) j->net->imp.status = CNR_E_MEMORY;
    } else { /* unnamed, or the name is used already: the first output's name is unique */
        given = j->node->n_output ? j->node->output[0] : "node";
    }
    snprintf(j->name, sizeof j->name, "%s", given);
}

/* Finds the values of all inputs by name, -1 for those left out; an unknown name is a problem. */
static void bind_inputs(onnx_job *j) {
    if (j->node->n_input > ONNX_PORTS) return onnx_problem(j, "too many inputs%s", "");
    for (size_t i = 0; i < j->node->n_input; i++) {
        const char *name = j->node->input[i];
        j->in[i] = -1;
        if (*name && !onnx_names_get(&j->net->values, name, &j->in[i]))
            onnx_problem(j, "it reads \"%s\", which nothing before it gives", name);
        else if (*name && j->in[i] < 0) j->failed = 1; /* its problem was reported already */
        j->n_in = (int32_t)i + 1;
    }
    while (j->n_in > 0 && !j->node->input[j->n_in - 1][0]) j->n_in--;
}

/* 1 if a form reads the attribute itself. */
static int is_taken(const onnx_form *f, const char *attr) {
    char word[130];
    snprintf(word, sizeof word, " %.120s ", attr);
    return f && f->takes && strstr(f->takes, word) != NULL;
}

/* Converts a node by row, form or operator; what does not fit is noted as a problem and sets
 * j->failed. */
static void convert(onnx_job *j) {
    const Onnx__NodeProto *node = j->node;
    const char *domain = node->domain ? node->domain : "";
    const char *type = node->op_type ? node->op_type : "(none)";
    const int contrib = strcmp(domain, "com.microsoft") == 0;
    const int ml = strcmp(domain, "ai.onnx.ml") == 0;
    const onnx_form *form = contrib ? onnx_contrib_form(type) : ml ? onnx_ml_form(type) : NULL;
    const int theirs = !form && onnx_has_row(j, domain, type);
    if (strcmp(domain, "com.microsoft.nchwc") == 0 && !theirs)
        return onnx_problem(j,
                            "weights in the layout of the machine that wrote the file are not "
                            "supported%s; have ONNX Runtime save the model at "
                            "ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL",
                            "");
    if (*domain && !form && !theirs && strcmp(domain, "ai.onnx") != 0)
        return onnx_problem(j,
                            contrib || ml ? "this operator of %s is not supported"
                                          : "operators of the domain \"%s\" are not supported",
                            domain);
    if (form) snprintf(j->op, sizeof j->op, "%s", form->op);
    else snake(type, j->op, sizeof j->op);
    if (!form) form = onnx_form_of(j->op);
    /* an operator of ours that ONNX does not have may share its name with a later one of ONNX */
    const cnr_op *op = form || out_is_onnx(j->op) ? imp_host->find_op(j->op) : NULL;
    const int ours = (op || form) && (!*domain || strcmp(domain, "ai.onnx") == 0);
    if (!op && !form && !theirs) return onnx_problem(j, "operator %s is not supported", type);
    if (node->n_output > ONNX_PORTS) return onnx_problem(j, "too many outputs%s", "");
    j->n_out = (int32_t)node->n_output;
    while (j->n_out > 1 && !node->output[j->n_out - 1][0]) j->n_out--;
    for (int32_t i = 0; i < j->n_out; i++) j->out[i] = -1;
    bind_inputs(j);
    if (theirs && !ours) {
        if (!j->failed) onnx_row(j, domain, type);
        return;
    }
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && !is_taken(form, node->attribute[i]->name)) {
            if (j->attrs.n == MAX_ATTRS) return onnx_problem(j, "too many attributes%s", "");
            convert_attr(j, op, node->attribute[i]);
        }
    if (form && !j->failed) form->convert(j);
    if (j->failed || j->done) return;
    /* our operator would create a missing bias; in ONNX it means no bias */
    const cnr_attr_spec *bias = spec_of(imp_host->find_op(j->op), "bias");
    if (bias && bias->type == CNR_ATTR_BOOL) imp_bool(&j->attrs, "bias", j->n_in > 2);
    if (imp_host->graph_node(j->net->imp.graph, j->op, j->name, j->net->imp.path, j->in, j->n_in,
                             j->attrs.ptr, j->attrs.n, j->out, j->n_out) == CNR_E_MEMORY)
        j->net->imp.status = CNR_E_MEMORY;
    else if (j->after) j->after(j);
}

void onnx_node(onnx_net *net, const Onnx__NodeProto *node) {
    /* tens of kilobytes, too large for the stack */
    onnx_job *j = (onnx_job *)imp_host->alloc(sizeof *j);
    if (!j) {
        net->imp.status = CNR_E_MEMORY;
        return;
    }
    memset(j, 0, sizeof *j);
    j->net = net;
    j->node = node;
    name_node(j);
    convert(j);
    for (size_t i = 0; i < node->n_output && !net->imp.status; i++)
        if (node->output[i][0] && (j->failed || (int32_t)i < j->n_out) &&
            onnx_names_set(&net->values, node->output[i], j->failed ? -1 : j->out[i]))
            net->imp.status = CNR_E_MEMORY;
    imp_host->free(j);
}
