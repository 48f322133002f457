/* What the converters of nodes share: the node under way, attributes, values. */
#ifndef TF_JOB_H
#define TF_JOB_H

#include "tensorflow.h"

enum { TF_MAX_IN = 256, TF_MAX_ATTRS = 12 };

typedef struct tf_job {
    tf_net *net;
    tf_entry *entry;
    const char *op, *name;
    tf_twins *in[TF_MAX_IN]; /* data inputs only */
    int32_t n_in;
} tf_job;

/* Attributes for one node of ours. */
typedef struct tf_attrs {
    cnr_attr at[TF_MAX_ATTRS];
    const cnr_attr *ptr[TF_MAX_ATTRS];
    int32_t n;
} tf_attrs;

/* ---- build.c ---- */

void tf_problem(tf_job *j, const char *text);
const Tf__AttrValue *tf_attr(const tf_job *j, const char *key);
int tf_attr_is(const tf_job *j, const char *key, const char *value);
int64_t tf_attr_int(const tf_job *j, const char *key, int64_t fallback);
int tf_attr_bool(const tf_job *j, const char *key);
double tf_attr_float(const tf_job *j, const char *key, double fallback);
cnr_attr *tf_put(tf_attrs *l, const char *name, int32_t type);
void tf_put_int(tf_attrs *l, const char *name, int64_t v);
void tf_put_bool(tf_attrs *l, const char *name, int v);
void tf_put_float(tf_attrs *l, const char *name, double v);
void tf_put_enum(tf_attrs *l, const char *name, const char *v);
void tf_put_ints(tf_attrs *l, const char *name, const int64_t *v, int64_t n);
void tf_give(tf_job *j, int32_t k, cnr_value plain, cnr_value turned);
cnr_value tf_in_plain(tf_job *j, int32_t k);
cnr_value tf_in_turned(tf_job *j, int32_t k);
int32_t tf_in_dims(const tf_job *j, int32_t k, int64_t *dim);
cnr_value tf_step(tf_job *j, const char *op, const char *name, const cnr_value *in, int32_t n,
                  const tf_attrs *l);
cnr_value tf_constant(tf_job *j, const cnr_tensor *t);
cnr_value tf_constant_f32(tf_job *j, const float *v, int64_t n, int32_t rank);
/* The integers of input k when they are known now; -1 with a problem otherwise. */
int64_t tf_known_ints(tf_job *j, int32_t k, int64_t *out, int64_t max);
/* An axis of theirs as one of the twin that is used: turned ones have C at 1. */
int64_t tf_turn_axis(int64_t axis);
int tf_is_nchw(const tf_job *j);
/* A picture input as N C H W, whatever data_format says of it. */
cnr_value tf_picture(tf_job *j, int32_t k);
void tf_give_picture(tf_job *j, cnr_value v);

/* ---- the converters, one a kind of operator ---- */

void tf_op_add_n(tf_job *j);
void tf_op_arg_max(tf_job *j);
void tf_op_batch_mat_mul(tf_job *j);
void tf_op_batch_norm(tf_job *j);
void tf_op_bias_add(tf_job *j);
void tf_op_binary(tf_job *j);
void tf_op_cast(tf_job *j);
void tf_op_concat(tf_job *j);
void tf_op_constant_node(tf_job *j);
void tf_op_conv(tf_job *j);
void tf_op_conv_input_grad(tf_job *j);
void tf_op_depth_space(tf_job *j);
void tf_op_dequantize(tf_job *j);
void tf_op_expand_dims(tf_job *j);
void tf_op_fill(tf_job *j);
void tf_op_gather(tf_job *j);
void tf_op_leaky_relu(tf_job *j);
void tf_op_lrn(tf_job *j);
void tf_op_mat_mul(tf_job *j);
void tf_op_pack(tf_job *j);
void tf_op_pad(tf_job *j);
void tf_op_pass(tf_job *j);
void tf_op_placeholder(tf_job *j);
void tf_op_pool(tf_job *j);
void tf_op_reduce(tf_job *j);
void tf_op_reshape(tf_job *j);
void tf_op_resize(tf_job *j);
void tf_op_rsqrt(tf_job *j);
void tf_op_select_op(tf_job *j);
void tf_op_shape(tf_job *j);
void tf_op_slice(tf_job *j);
void tf_op_softmax(tf_job *j);
void tf_op_space_batch(tf_job *j);
void tf_op_split(tf_job *j);
void tf_op_squared(tf_job *j);
void tf_op_squeeze(tf_job *j);
void tf_op_strided_slice(tf_job *j);
void tf_op_tile(tf_job *j);
void tf_op_transpose(tf_job *j);
void tf_op_unary(tf_job *j);

/* One operand through `op`: it stays in the layout it has (elementwise.c). */
void tf_apply(tf_job *j, const char *op, const tf_attrs *l);
/* The converter of element-wise operators by name; NULL: none. */
void (*tf_elementwise(const char *op, int32_t *min_in))(tf_job *);

#endif
