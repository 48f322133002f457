/* Shared by the exporter's files. The message points into the graph's memory and into blocks that
 * are freed together, so its parts are not freed one by one. After running out of memory the writer
 * goes on, but nothing is saved. */
#ifndef ONNX_EXPORT_H
#define ONNX_EXPORT_H

#include "onnx.h"

enum { OUT_MAX_PORTS = 1024 };

/* The model that is being written. */
typedef struct out_writer {
    const struct cnr_graph *graph;
    imp_pool pool;
    Onnx__NodeProto **nodes;
    size_t n_nodes, nodes_room;
    Onnx__TensorProto **tensors;
    size_t n_tensors, tensors_room;
    Onnx__OperatorSetIdProto *sets[16]; /* domains of other plugins */
    size_t n_sets;
    int32_t n_made, problems;
    int no_memory;
} out_writer;

/* The node that is being written: names of its inputs and outputs. */
typedef struct out_job {
    out_writer *w;
    const cnr_node *node;
    const char *in[OUT_MAX_PORTS], *out[OUT_MAX_PORTS];
    int32_t n_in, n_out;
} out_job;

/* ---- export_message.c ---- */

/* Zeroed memory that lives as long as the writer; NULL: no memory. */
void *out_make(out_writer *w, size_t bytes);
/* A copy of a text in the pool; NULL: out of memory. */
char *out_text(out_writer *w, const char *s);
/* Reports why the node can't be exported; the export fails at its end. */
void out_unsupported(out_writer *w, const cnr_node *node, const char *why);

/* the TensorProto.DataType of our type; 0: ONNX has no such type */
int32_t out_data_type(int32_t dtype);
/* Adds a tensor, whose data is not copied. */
void out_tensor(out_writer *w, const char *name, int32_t dtype, const int64_t *dim, int32_t rank,
                const void *data, uint64_t bytes);
/* Copies a constant into the model; returns its name. */
const char *out_constant(out_writer *w, int32_t dtype, const int64_t *dim, int32_t rank,
                         const void *data, uint64_t bytes);
/* Adds a constant with n whole numbers, and returns its name. */
const char *out_ints(out_writer *w, const int64_t *values, int64_t n);
/* Adds a constant with n floats, and returns its name. */
const char *out_floats(out_writer *w, const double *values, int64_t n);
/* Adds a constant number (f32), and returns its name. */
const char *out_scalar(out_writer *w, double value);

/* Adds a node; the caller adds its attributes. NULL: out of memory; the functions for attributes
 * accept it. */
Onnx__NodeProto *out_node(out_writer *w, const char *op, const char *const *in, int32_t n_in,
                          const char *const *out, int32_t n_out);
/* Adds an attribute with a whole number. */
void out_put_int(out_writer *w, Onnx__NodeProto *n, const char *name, int64_t value);
/* Adds an attribute with k whole numbers. */
void out_put_ints(out_writer *w, Onnx__NodeProto *n, const char *name, const int64_t *v, int64_t k);
/* Adds an attribute of ours as ONNX has it. */
void out_put_attr(out_writer *w, Onnx__NodeProto *n, const cnr_attr *from);
/* Notes that the model uses an operator set, at least in that version. */
void out_use_domain(out_writer *w, const char *domain, int32_t version);
/* Returns a new name for a value between two of our nodes. */
const char *out_between(out_writer *w);

/* ---- kinds of operators; they return 0 for another kind ---- */

/* Exports the node by another plugin's row; 0: there is none. */
int out_plugin_row(out_job *j);
/* Exports the node by the row of an ONNX operator; 0: there is none. */
int out_row(out_job *j);
/* Exports the node as several ONNX operators; 0: it is none of those that need several. */
int out_own(out_job *j);
/* 1 if ONNX has our operator under the same name, in camel case, and with the same meaning; else
 * 0. */
int out_is_onnx(const char *op);
/* export_quantized.c: writes a quantised node between DequantizeLinear and QuantizeLinear; 0: it is
 * none */
int out_quantized(out_job *j);
/* Adds to `n` the attributes of the job's node that ONNX operator `op` has. */
void out_attrs_of(out_job *j, Onnx__NodeProto *n, const char *op);

#endif
