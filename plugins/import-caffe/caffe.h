/* Shared by the importer's files. */
#ifndef CAFFE_H
#define CAFFE_H

#include "import_common.h"

#include "caffe.pb-c.h"

extern ProtobufCAllocator caffe_allocator; /* the host's memory */

/* Parses protobuf text into a new message of type `desc`; NULL with err filled. Skips fields that
 * the schema does not have. Freed with protobuf_c_message_free_unpacked. */
ProtobufCMessage *caffe_parse_text(const ProtobufCMessageDescriptor *desc, const char *path,
                                   const char *text, cnr_error *err);

/* The import in progress: blobs by name as a stack of bindings. The latest binding of a name wins,
 * as in-place layers need. */
typedef struct caffe_net {
    imp_net b;
    struct caffe_binding {
        const char *name;
        cnr_value value;
        int used;
    } * bindings;
    int32_t n_bindings, room;
    const Caffe__NetParameter *weights; /* NULL: no file of weights */
    const char *weights_path;
    const char *blobs_path; /* the file that the current layer's blobs lie in */
    int32_t first_rank;     /* of the first input; 0: none yet */
    int64_t first_count;    /* its number of samples */
} caffe_net;

/* Adds the nodes of one layer; problems go to the graph. `blobs` are its weights (may be none). */
void caffe_layer(caffe_net *net, const Caffe__LayerParameter *layer, Caffe__BlobProto **blobs,
                 size_t n_blobs);
/* 1 if the layer accepts any height and width, or is unknown; else 0. */
int caffe_layer_is_convolutional(const Caffe__LayerParameter *layer);
/* 1 if only training or testing needs a layer of this type; else 0. */
int caffe_layer_is_skipped(const char *type);

/* v0.c: converts layers of 2013 to V1 layers in place; 0: out of memory. No other layer reads the
 * output of those that only pad afterwards. */
int caffe_upgrade_v0(const Caffe__NetParameter *net);
/* 1 for a layer of old files that pads. */
int caffe_is_padding(const Caffe__V1LayerParameter *layer);

/* Lets a blob's name stand for a value. */
void caffe_bind(caffe_net *net, const char *name, cnr_value value);
/* Value of a blob; -1: there is none, a problem is noted. */
cnr_value caffe_bound(caffe_net *net, const char *name, const char *layer);
/* Dims of a blob, legacy or not. Returns the rank; -1: they do not match the data. */
int32_t caffe_blob_dims(const Caffe__BlobProto *blob, int64_t dim[CNR_MAX_RANK]);
/* Number of elements of a blob. */
int64_t caffe_blob_count(const Caffe__BlobProto *blob);
/* 1: the blob's data lies in the file, at *out. */
int caffe_blob_place(const Caffe__BlobProto *blob, imp_place *out);
/* Element i of a blob whose data does not lie in the file. */
float caffe_blob_at(const Caffe__BlobProto *blob, int64_t i);

#endif
