/* The kernels that this plugin registers. */
#ifndef NEON_KERNELS_H
#define NEON_KERNELS_H

#include <cnnrun/kernel.h>

/* Calls X(name) for each kernel of the plugin, in the order of registration. */
/* clang-format off */
#define NEON_KERNEL_LIST(X) \
    X(neon_conv_grad_input) \
    X(neon_conv_grad_input_turned) \
    X(neon_conv_grad_input_depthwise) \
    X(neon_conv_grad_weight) \
    X(neon_conv_winograd_planes) \
    X(neon_conv_winograd_volume) \
    X(neon_conv_grad_input_winograd) \
    X(neon_conv_grad_weight_winograd) \
    X(neon_conv_transpose) \
    X(neon_dense) \
    X(neon_dense_f16) \
    X(neon_dense_bf16) \
    X(neon_gemm_dense) \
    X(neon_gemm_dense_f16) \
    X(neon_gemm_dense_bf16) \
    X(neon_gemm_packed) \
    X(neon_gemm_packed_f16) \
    X(neon_gemm_packed_bf16) \
    X(neon_norm_blocked) \
    X(neon_matmul_narrow) \
    X(neon_matmul_packed) \
    X(neon_matmul_packed_f16) \
    X(neon_matmul_packed_bf16) \
    X(neon_max_pool) \
    X(neon_average_pool) \
    X(neon_max_pool_grad) \
    X(neon_average_pool_grad) \
    X(neon_softmax) \
    X(neon_conv_depthwise) \
    X(neon_conv_gemm) \
    X(neon_conv_gemm_f16) \
    X(neon_conv_gemm_bf16) \
    X(neon_conv_blocked) \
    X(neon_conv_blocked_f16) \
    X(neon_conv_blocked_bf16) \
    X(neon_conv_blocked_pairs) \
    X(neon_conv_blocked_depthwise) \
    X(neon_max_pool_blocked) \
    X(neon_average_pool_blocked) \
    X(neon_global_average_pool_blocked) \
    X(neon_global_max_pool_blocked) \
    X(neon_concat) \
    X(neon_channel_shuffle) \
    X(neon_resize_blocked) \
    X(neon_transpose) \
    X(neon_resize) \
    X(neon_upsample) \
    X(neon_slice_blocked) \
    X(neon_channelwise_blocked) X(neon_prelu) \
    X(neon_conv_winograd) \
    X(neon_conv_winograd_f16) \
    X(neon_conv_winograd_bf16) \
    X(neon_conv_winograd_2) \
    X(neon_conv_winograd_2_f16) \
    X(neon_conv_winograd_2_bf16) \
    X(neon_global_average_pool) \
    X(neon_global_max_pool) \
    X(neon_batch_normalization) \
    X(neon_lrn) \
    X(neon_layer_normalization) \
    X(neon_instance_normalization) \
    X(neon_group_normalization) \
    X(neon_attention) X(neon_grid_sample) \
    X(neon_reduce_sum) \
    X(neon_reduce_mean) \
    X(neon_reduce_max) \
    X(neon_reduce_min) \
    X(neon_split) \
    X(neon_reduce_l1) \
    X(neon_reduce_l2) \
    X(neon_reduce_squares) \
    X(neon_lstm) \
    X(neon_gru) \
    X(neon_rnn) \
    X(neon_batch_statistics) \
    X(neon_batch_statistics_grad) \
    X(neon_batch_moments) \
    X(neon_batch_statistics_sums) \
    X(neon_sgd_step) \
    X(neon_adam_step) \
    X(neon_elementwise) \
    X(neon_reference)
/* clang-format on */

/* Declares one kernel. */
#define X(name) extern const cnr_kernel name;
NEON_KERNEL_LIST(X)
#undef X

extern const cnr_kernel *const neon_kernels[]; /* NULL-terminated */

#endif
