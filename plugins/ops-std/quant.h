/* Shared by the quantised operators. */
#ifndef STD_QUANT_H
#define STD_QUANT_H

#include "ops_kit.h"

#define QUANT_BYTES (1u << CNR_u8 | 1u << CNR_i8)
/* The row of an optional input NAME. */
#define QUANT_OPTION(NAME, TEXT) \
    { .name = NAME, .flags = CNR_PORT_OPTIONAL, .help = TEXT }

/* The input at a port; NULL if the node lacks it, or if port is negative: the operator does not
 * have it. */
static inline const cnr_tensor *quant_in(const cnr_node *node, int32_t port) {
    return port < 0 ? NULL : cnr_own_input(node, port);
}

/* Clamps to the range of u8 or i8; NaN becomes 0. */
static inline double quant_clamp(int32_t dtype, double v) {
    const double low = dtype == CNR_i8 ? -128 : 0, high = dtype == CNR_i8 ? 127 : 255;
    return v < low ? low : v > high ? high : v == v ? v : 0;
}

/* Converts an integer sum to steps of y: rounded to float, times x_scale w_scale / y_scale, which
 * is rounded once, and, if negative, times `slope`; then rounded to a whole number, ties to even.
 * In float32, as ONNX Runtime does. */
static inline double quant_steps_sloped(int64_t sum, double x_scale, double w_scale, double y_scale,
                                        float slope) {
    const float scale = (float)(x_scale * w_scale / y_scale), steps = (float)sum * scale;
    return (double)rintf(steps < 0 ? steps * slope : steps);
}
/* The same without a slope. */
static inline double quant_steps(int64_t sum, double x_scale, double w_scale, double y_scale) {
    return quant_steps_sloped(sum, x_scale, w_scale, y_scale, 1);
}

/* Defines an operator by its file's infer_with, cost_with and reference_with, for PREFIX_ports; the
 * arguments after the summary go into the descriptor. */
#define QUANT_OP(NAME, PREFIX, SUMMARY, ...) \
    static cnr_status NAME##_infer(const cnr_node *node, cnr_tensor *const *outputs, \
                                   cnr_error *err) { \
        return infer_with(node, &PREFIX##_ports, outputs[0], err); \
    } \
    static void NAME##_cost(const cnr_node *node, cnr_cost *c) { \
        cost_with(node, &PREFIX##_ports, c); \
    } \
    static cnr_status NAME##_reference(const cnr_run *run, cnr_error *err) { \
        return reference_with(run, &PREFIX##_ports, err); \
    } \
    const cnr_op ops_##NAME = {CNR_OP_SIZES, \
                               .name = #NAME, \
                               .summary = SUMMARY, \
                               .flags = CNR_OP_PURE, \
                               CNR_OP_PORTS(PREFIX##_in, PREFIX##_out), \
                               .infer = NAME##_infer, \
                               .cost = NAME##_cost, \
                               .reference = NAME##_reference, \
                               __VA_ARGS__}

#endif
