/* Shared by the importer's files. */
#ifndef ONNX_H
#define ONNX_H

#include "import_common.h"

#include "onnx.pb-c.h"

extern ProtobufCAllocator onnx_allocator; /* the host's memory */

extern const cnr_exporter onnx_exporter; /* export_onnx.c */

/* Maps value names to graph values. Stores value + 2 as a pointer, since values include -1 and NULL
 * means absent. */
typedef struct cnr_map *onnx_names;
/* Sets the value of a name. */
static inline cnr_status onnx_names_set(onnx_names *names, const char *name, cnr_value value) {
    return imp_host->map_set(names, name, strlen(name), (void *)((intptr_t)value + 2));
}
/* Sets *out to the value of a name; 0: there is none. */
static inline int onnx_names_get(const onnx_names *names, const char *name, cnr_value *out) {
    const intptr_t found = (intptr_t)imp_host->map_get(*names, name, strlen(name));
    if (found) *out = (cnr_value)(found - 2);
    return found != 0;
}

/* The import in progress. */
typedef struct onnx_net {
    imp_net imp;
    int64_t opset;
    const Onnx__ModelProto *model; /* NULL: of a single operator set */
    onnx_names values, nodes;
    imp_pool pool;
    struct onnx_branch {
        struct onnx_branch *next;
        Onnx__GraphProto *graph; /* NULL: damaged */
    } * branches;                /* of If nodes, kept because names point into them */
    int32_t depth;               /* nesting depth of the current branch */
} onnx_net;
typedef struct onnx_branch onnx_branch;

/* import_onnx.c: initializers of the net or of a branch */
void onnx_initializers(onnx_net *net, const Onnx__GraphProto *g);
/* Converts all nodes of a graph. */
void onnx_nodes(onnx_net *net, const Onnx__GraphProto *g);

/* nodes.c: conversion of a node. A job collects the arguments of graph_node; forms.c may change it
 * before. */
enum { ONNX_TEXT = 448, ONNX_PORTS = 1024 };
/* A node that is being converted. */
typedef struct onnx_job {
    onnx_net *net;
    const Onnx__NodeProto *node;
    char op[128], name[ONNX_TEXT];
    cnr_value in[ONNX_PORTS], out[ONNX_PORTS];
    int32_t n_in, n_out, n_made;
    imp_attrs attrs;
    int failed, done; /* done: the outputs are bound already */
    void (*after)(
        struct onnx_job *); /* changes the outputs of the node once it is added; or NULL */
} onnx_job;
/* Converts a node and binds its outputs. */
void onnx_node(onnx_net *net, const Onnx__NodeProto *node);
/* Adds a problem of the node, which is then skipped. */
void onnx_problem(onnx_job *j, const char *format, const char *detail);
/* Memory that lives as long as the net, for converted texts and lists; NULL fails the import. */
void *onnx_own(onnx_job *j, size_t bytes);
/* A text with its end, which lives as long as the net; NULL: out of memory. */
char *onnx_text(onnx_job *j, ProtobufCBinaryData s);
/* An attribute of the node; NULL: there is none. */
const Onnx__AttributeProto *onnx_proto(const onnx_job *j, const char *name);
/* Whole number of an attribute; `fallback`: there is none. */
int64_t onnx_int(const onnx_job *j, const char *name, int64_t fallback);
/* Adds another node of one output for the same ONNX node; attrs may be NULL. */
cnr_value onnx_step(onnx_job *j, const char *op, const cnr_value *in, int32_t n_in,
                    const imp_attrs *attrs);
/* onnx_step for two inputs and no attributes. */
cnr_value onnx_step2(onnx_job *j, const char *op, cnr_value a, cnr_value b);

/* forms.c: adapts nodes whose form differs from ours, or of older operator sets */
typedef void (*onnx_change)(onnx_job *);
typedef IMP_ROW(onnx_change) onnx_form;
/* How an operator's form changed with its operator set, or needs several nodes; NULL: nothing to
 * adapt. */
const onnx_form *onnx_form_of(const char *op);
/* Adds a constant for the node; dim may be NULL for rank 0. */
cnr_value onnx_constant(onnx_job *j, int32_t dtype, const void *data, const int64_t *dim,
                        int32_t rank);

/* attention.c: converts Attention */
void onnx_attention(onnx_job *j);
/* sequence.c: converts rotary positions; recurrent layers follow */
void onnx_rotary(onnx_job *j);    /* RotaryEmbedding of operator set 23 */
void onnx_recurrent(onnx_job *j); /* RNN, LSTM and GRU with the default activations */

/* contrib_attention.c: converts ONNX Runtime's own attentions and rotary positions */
void onnx_contrib_attention(onnx_job *j);
void onnx_multi_head(onnx_job *j);    /* MultiHeadAttention */
void onnx_grouped_query(onnx_job *j); /* GroupQueryAttention: causal, heads share keys */
void onnx_contrib_rotary(onnx_job *j);

/* fused.c: splits what ONNX Runtime's optimiser fused */
void onnx_fused_norm(onnx_job *j);   /* SkipLayerNormalization and its kind: sums, then norm */
void onnx_fused_embed(onnx_job *j);  /* EmbedLayerNormalization: rows of tables, then norm */
void onnx_fused_gelu(onnx_job *j);   /* BiasGelu, FastGelu */
void onnx_fused_matmul(onnx_job *j); /* FusedMatMul: transposes, a factor */
void onnx_fused_gemm(onnx_job *j);   /* FusedGemm: an activation */
void onnx_fused_conv(onnx_job *j);   /* FusedConv: a sum, an activation */
void onnx_fused_nhwc(onnx_job *j);   /* NhwcConv, NhwcFusedConv: channels last */
void onnx_rms_norm(onnx_job *j);     /* forms.c: RMSNormalization, SimplifiedLayerNormalization */

/* unpool.c: converts MaxUnpool; CenterCropPad follows */
void onnx_max_unpool(onnx_job *j);
void onnx_center(onnx_job *j); /* CenterCropPad: crops or pads alike on both sides */

/* contrib.c: forms of operators of the domain com.microsoft; NULL: not supported */
const onnx_form *onnx_contrib_form(const char *name);
/* ml.c: form of an operator of the domain ai.onnx.ml; NULL: unknown */
const onnx_form *onnx_ml_form(const char *name);

/* rows.c: 1 if another plugin imports the operator */
int onnx_has_row(const onnx_job *j, const char *domain, const char *type);
/* Converts a node by another plugin's import row. */
void onnx_row(onnx_job *j, const char *domain, const char *type);
/* The operator set of a domain; 0: not declared. */
int32_t onnx_opset(const onnx_net *net, const char *domain);

/* branch.c: converts If by both branches, or the one that is known */
void onnx_if(onnx_job *j);
/* Refuses a loop, as a problem. */
void onnx_loop(onnx_job *j);
void onnx_branches_free(onnx_net *net); /* frees the branches' messages */

/* tensor.c */
/* Our type for a TensorProto.DataType; CNR_DTYPE_NONE for strings, complex and unknown types. */
int32_t onnx_dtype(int32_t data_type);
/* Name of a TensorProto.DataType; "unknown". */
const char *onnx_dtype_name(int32_t data_type);
/* Fills *out with the tensor and its data, which belong to the message or are new: free *made by
 * host->free, even after an error. where: for messages. */
cnr_status onnx_tensor(const Onnx__TensorProto *proto, const char *model, const char *where,
                       cnr_tensor *out, void **made, cnr_error *err);

/* Adds the tensor to the graph as a constant; large data goes there without being in memory whole.
 * An error: *out is not set. *out -1: the graph has a problem. */
cnr_status onnx_tensor_constant(const Onnx__TensorProto *proto, struct cnr_graph *graph,
                                const char *model, const char *name, cnr_value *out,
                                cnr_error *err);

/* ---- others.c ---- */
/* Text on which framework writes files with this ending, and how to convert them to ONNX; NULL:
 * unknown. */
const char *onnx_other(const char *path);

#endif
