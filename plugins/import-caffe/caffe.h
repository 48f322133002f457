/* What the importer's files share. */
#ifndef CAFFE_H
#define CAFFE_H

#include "import_common.h"

#include "caffe.pb-c.h"

extern ProtobufCAllocator caffe_allocator; /* the host's memory */

/* Parses protobuf text into a new message of type `desc`; NULL with err filled. Fields that the
 * schema does not have are skipped. Released with protobuf_c_message_free_unpacked. */
ProtobufCMessage *caffe_parse_text(const ProtobufCMessageDescriptor *desc, const char *path,
                                   const char *text, cnr_error *err);

/* The import under way: blobs by name, a stack of bindings (the latest wins: in-place layers). */
typedef struct caffe_net {
    imp_net b;
    struct caffe_binding {
        const char *name;
        cnr_value value;
        int used;
    } * bindings;
    int32_t n_bindings, room;
    const Caffe__NetParameter *weights; /* NULL: none given */
    int32_t first_rank;                 /* of the first input; 0: none yet */
    int64_t first_count;                /* and its samples */
} caffe_net;

/* Adds the nodes of one layer; problems go to the graph. `blobs` are its weights (may be none). */
void caffe_layer(caffe_net *net, const Caffe__LayerParameter *layer, Caffe__BlobProto **blobs,
                 size_t n_blobs);
/* 1 when the layer's output shape does not tie down height and width. */
int caffe_layer_is_convolutional(const Caffe__LayerParameter *layer);
/* 1 for layers that only training or testing needs. */
int caffe_layer_is_skipped(const char *type);

/* v0.c: layers of 2013 as V1 layers, in place; 0 when memory runs out. Those that only pad are then
 * read by nobody. */
int caffe_upgrade_v0(const Caffe__NetParameter *net);
int caffe_is_padding(const Caffe__V1LayerParameter *layer);

void caffe_bind(caffe_net *net, const char *name, cnr_value value);
cnr_value caffe_bound(caffe_net *net, const char *name, const char *layer);
/* dims of a blob, legacy or not: returns the rank, -1 when they don't fit the data. */
int32_t caffe_blob_dims(const Caffe__BlobProto *blob, int64_t dim[CNR_MAX_RANK]);
int64_t caffe_blob_count(const Caffe__BlobProto *blob);
float caffe_blob_at(const Caffe__BlobProto *blob, int64_t i);

#endif
