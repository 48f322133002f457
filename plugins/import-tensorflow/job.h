/* Shared by the converters of nodes: the current node, its attributes and values. */
#ifndef TF_JOB_H
#define TF_JOB_H

#include "tensorflow.h"

/* A node that is being converted. */
typedef struct tf_job {
    tf_net *net;
    tf_entry *entry;
    const char *op, *name;
    const char *ours;   /* our operator from the table */
    tf_layouts **in;    /* n_in data inputs, without control inputs */
    cnr_value *scratch; /* room for as many values */
    int32_t n_in;
} tf_job;

/* ---- job.c ---- */

/* Notes a problem of the node and marks it as failed. */
void tf_problem(tf_job *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An attribute of the node; NULL: there is none. */
const Tf__AttrValue *tf_attr(const tf_job *j, const char *key);
/* 1 if an attribute has that text. */
int tf_attr_is(const tf_job *j, const char *key, const char *value);
/* Whole number of an attribute; `fallback`: there is none. */
int64_t tf_attr_int(const tf_job *j, const char *key, int64_t fallback);
/* 1 if an attribute is true. */
int tf_attr_bool(const tf_job *j, const char *key);
/* Number of an attribute; `fallback`: there is none. */
double tf_attr_float(const tf_job *j, const char *key, double fallback);
/* A list of integers, and its length *n; NULL and 0: there is none. */
const int64_t *tf_attr_ints(const tf_job *j, const char *key, int64_t *n);
/* Our type of a type attribute; 0: none. */
int32_t tf_attr_dtype(const tf_job *j, const char *key);

/* Adds a node for a step of the conversion, and returns its output; tf_last adds the last one,
 * which has the node's name. */
cnr_value tf_step(tf_job *j, const char *op, const cnr_value *in, int32_t n, const imp_attrs *l);
/* Adds the node that gets the name of the TensorFlow node; returns its output. */
cnr_value tf_last(tf_job *j, const char *op, const cnr_value *in, int32_t n, const imp_attrs *l);
/* Adds a cast of a value; returns it if it has the type. */
cnr_value tf_cast(tf_job *j, cnr_value v, int32_t dtype);
/* Adds a constant number of float32. */
cnr_value tf_scalar(tf_job *j, double value);
/* Adds an unsqueeze: n axes of size 1 at `from`. */
cnr_value tf_unsqueeze(tf_job *j, cnr_value v, int64_t from, int64_t n);
/* Adds a constant vector of n numbers, as int64 or bool. */
cnr_value tf_vector(tf_job *j, const int64_t *values, int64_t n, int32_t dtype);

/* Input k in TensorFlow's layout; -1: there is none. */
cnr_value tf_in_plain(tf_job *j, int32_t k);
/* Returns the rank of input k and sets its sizes; -1: unknown. */
int32_t tf_in_dims(const tf_job *j, int32_t k, int64_t *dim);
/* Input k in the layout that exists; the one with channels on axis 1 (*turned) if both do. */
cnr_value tf_in_any(tf_job *j, int32_t k, int *turned);
/* Sets output k, in TensorFlow's layout. */
void tf_give(tf_job *j, int32_t k, cnr_value plain);
/* Sets output k, with channels on axis 1. */
void tf_give_turned(tf_job *j, int32_t k, cnr_value v, int32_t rank);
/* Sets output k to v, which is in TensorFlow's layout or (turned) has channels first. */
void tf_give_as(tf_job *j, int32_t k, cnr_value v, int turned, int32_t rank);
/* Our index of an axis, which may count from the end, where channels come last or (turned) are
 * moved to axis 1. */
int64_t tf_axis(int64_t axis, int32_t rank, int turned);
/* 1 if data_format is NCHW; pictures are converted as N C H W in any case. */
int tf_is_nchw(const tf_job *j);
/* Input k as a picture with channels on axis 1, transposed if need be; -1: there is none. */
cnr_value tf_picture(tf_job *j, int32_t k, int32_t rank);
/* Sets output 0 from a picture with channels on axis 1. */
void tf_give_picture(tf_job *j, cnr_value v, int32_t rank);

/* ---- sizes.c: integers that shapes are computed from ---- */

/* The integers of input k, some possibly open; -1: unknown, or more than max. */
int64_t tf_in_sizes(const tf_job *j, int32_t k, tf_size *out, int64_t max);
/* Writes the sizes of input k, which must all be known, to out; returns how many, at most max, -1
 * with a problem. */
int64_t tf_known_ints(tf_job *j, int32_t k, int64_t *out, int64_t max);
/* Tracks the sizes in the node's result if it is a short list of integers; a constant if all are
 * known. */
void tf_note_sizes(tf_job *j);

/* ---- noise.c: random numbers of a disabled dropout ---- */

int tf_noise(tf_job *j); /* 1: the node handles random numbers and has been converted */

/* ---- converters, one for each type of operator ---- */

void tf_op_add_n(tf_job *j);               /* AddN: the sum of all inputs */
void tf_op_any_all(tf_job *j);             /* Any and All */
void tf_op_arg_max(tf_job *j);             /* ArgMax and ArgMin */
void tf_op_batch_mat_mul(tf_job *j);       /* BatchMatMul, operands transposed if asked for */
void tf_op_batch_norm(tf_job *j);          /* FusedBatchNorm, with fixed statistics only */
void tf_op_bias_add(tf_job *j);            /* BiasAdd, in either layout */
void tf_op_binary(tf_job *j);              /* an operator of two operands that broadcast */
void tf_op_cast(tf_job *j);                /* Cast; an unknown type is a problem */
void tf_op_concat(tf_job *j);              /* Concat and ConcatV2; the axis must be known */
void tf_op_constant_node(tf_job *j);       /* Const */
void tf_op_conv(tf_job *j);                /* Conv2D, Conv3D, depthwise, and fused ones */
void tf_op_conv_input_grad(tf_job *j);     /* Conv2D- and Conv3DBackpropInput */
void tf_op_cum_sum(tf_job *j);             /* Cumsum; the axis must be known */
void tf_op_depth_space(tf_job *j);         /* DepthToSpace and SpaceToDepth */
void tf_op_dequantize(tf_job *j);          /* Dequantize, as casts and factors */
void tf_op_einsum(tf_job *j);              /* Einsum of two operands, as a matrix product */
void tf_op_expand(tf_job *j);              /* Fill and BroadcastTo */
void tf_op_expand_dims(tf_job *j);         /* ExpandDims; the axis must be known */
void tf_op_fake_quantize(tf_job *j);       /* FakeQuantWithMinMax... */
void tf_op_filled_like(tf_job *j);         /* ZerosLike and OnesLike */
void tf_op_floor_div(tf_job *j);           /* FloorDiv, rounding down */
void tf_op_gather(tf_job *j);              /* Gather along a known axis */
void tf_op_identity_n(tf_job *j);          /* IdentityN: all inputs as they are */
void tf_op_leaky_relu(tf_job *j);          /* LeakyRelu */
void tf_op_lrn(tf_job *j);                 /* LRN: alpha is that of a sum */
void tf_op_mat_mul(tf_job *j);             /* MatMul, and fused ones */
void tf_op_merge(tf_job *j);               /* Merge: the first input that isn't dead */
void tf_op_mod(tf_job *j);                 /* Mod and FloorMod */
void tf_op_non_max_suppression(tf_job *j); /* NonMaxSuppression, as indices */
void tf_op_not_equal(tf_job *j);           /* NotEqual, as not(equal) */
void tf_op_one_hot(tf_job *j);             /* OneHot */
void tf_op_pack(tf_job *j);                /* Pack: stacks along a new axis */
void tf_op_pad(tf_job *j);                 /* Pad and others; paddings must be known */
void tf_op_pass(tf_job *j);                /* Identity and others: input 0 as it is */
void tf_op_placeholder(tf_job *j);         /* Placeholder: an input, or a given constant */
void tf_op_pool(tf_job *j);                /* MaxPool and AvgPool */
void tf_op_random(tf_job *j);              /* random numbers, which only noise may read */
void tf_op_range(tf_job *j);               /* Range */
void tf_op_rank(tf_job *j);                /* Rank, a constant; must be known */
void tf_op_reduce(tf_job *j);              /* Mean, Sum and others along known axes */
void tf_op_reshape(tf_job *j);             /* Reshape */
void tf_op_resize(tf_job *j);              /* ResizeBilinear, nearest and cubic */
void tf_op_reverse(tf_job *j);             /* ReverseV2 along known axes */
void tf_op_select(tf_job *j);              /* Select and SelectV2 */
void tf_op_shape(tf_job *j);               /* Shape and Size */
void tf_op_shifted(tf_job *j);             /* ours with a step before or behind it */
void tf_op_slice(tf_job *j);               /* Slice */
void tf_op_softmax(tf_job *j);             /* Softmax and LogSoftmax, over the channels */
void tf_op_space_batch(tf_job *j);         /* SpaceToBatchND and BatchToSpaceND */
void tf_op_split(tf_job *j);               /* Split and SplitV along a known axis */
void tf_op_squared(tf_job *j);             /* Square and SquaredDifference */
void tf_op_squeeze(tf_job *j); /* Squeeze along squeeze_dims or axis; neither: all axes of size 1 */
void tf_op_strided_slice(tf_job *j); /* StridedSlice with its masks */
void tf_op_switch(tf_job *j);        /* Switch: output 1 if true, else 0 */
void tf_op_theirs(tf_job *j);        /* an operator that another plugin brings */
void tf_op_tile(tf_job *j);          /* Tile; the repeats must be known */
void tf_op_top_k(tf_job *j);         /* TopKV2 */
void tf_op_transpose(tf_job *j);     /* Transpose; the order must be known */
void tf_op_unary(tf_job *j);         /* an operator of one operand, without attributes */
void tf_op_unpack(tf_job *j);        /* Unpack: parts along an axis, without it */
void tf_op_with_default(tf_job *j);  /* PlaceholderWithDefault */

/* Applies `op` to the only operand, in the layout that it has (elementwise.c). */
void tf_apply(tf_job *j, const char *op, const imp_attrs *l);
/* Applies `op` to the first n inputs with broadcasting; channels-first if one input is and the
 * others can be, else in the file's layout. */
void tf_broadcast(tf_job *j, const char *op, int32_t n, const imp_attrs *l);

#endif
