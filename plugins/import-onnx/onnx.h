/* What the importer's files share. */
#ifndef ONNX_H
#define ONNX_H

#include <cnnrun/plugin.h>

#include "onnx.pb-c.h"

extern const cnr_host *onnx_host;
extern ProtobufCAllocator onnx_allocator; /* the host's memory */

extern const cnr_exporter onnx_exporter; /* export_onnx.c */

/* names.c: value names to graph values */
typedef struct onnx_names {
    struct onnx_slot {
        const char *name; /* belongs to the message */
        cnr_value value;
    } *slots;
    uint32_t n, room;
} onnx_names;
cnr_status onnx_names_set(onnx_names *names, const char *name, cnr_value value);
int onnx_names_get(const onnx_names *names, const char *name, cnr_value *out); /* 1: there */
void onnx_names_free(onnx_names *names);

/* The import under way. */
typedef struct onnx_net {
    struct cnr_graph *graph;
    const char *path;
    char *folder; /* where external data lies */
    int64_t opset;
    onnx_names values, nodes;
    cnr_status status; /* E_MEMORY once memory ran out */
} onnx_net;

/* nodes.c */
void onnx_node(onnx_net *net, const Onnx__NodeProto *node);

/* tensor.c */
/* ONNX's TensorProto.DataType to ours; CNR_DTYPE_NONE for strings, complex and unknown ones. */
int32_t onnx_dtype(int32_t data_type);
const char *onnx_dtype_name(int32_t data_type);
/* The tensor with its data in memory of host->alloc (out->data, free it). where: for messages. */
cnr_status onnx_tensor(const Onnx__TensorProto *proto, const char *folder, const char *where,
                       cnr_tensor *out, cnr_error *err);

#endif
