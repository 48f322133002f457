/* Small graphs that the rewrites change, for `cnnrun conform`. */
#include "graphs.h"

#include <stdio.h>

/* Adds the f32 input "x" of shape 1 x 3 x 6 x 5; returns it. */
static cnr_value input(graph *g) {
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 4, .dim = {1, 3, 6, 5}};
    return int8_host->graph_input(g, "x", &t);
}

/* Adds a quantize_linear or dequantize_linear (`op`) of x with this scale and no zero point;
 * returns its output, or -1. */
static cnr_value scaled(graph *g, const char *op, cnr_value x, float scale) {
    const cnr_value in[2] = {x, graph_f32(g, NULL, NULL, &scale, 1)};
    return graph_add(g, op, NULL, NULL, in, 2);
}

/* Ends an example with output y; fails with CNR_E_STATE where y is negative. */
static cnr_status output(graph *g, cnr_value y, cnr_error *err) {
    if (y < 0) return int8_host->fail(err, CNR_E_STATE, "example", "could not be built");
    return int8_host->graph_output(g, y, "y");
}

/* Example for fold-quantized: requantisation from one scale to another. */
cnr_status int8_example_fold(graph *g, cnr_error *err) {
    const cnr_value q = scaled(g, "quantize_linear", input(g), 0.02F);
    const cnr_value other =
        scaled(g, "quantize_linear", scaled(g, "dequantize_linear", q, 0.02F), 0.07F);
    return output(g, scaled(g, "dequantize_linear", other, 0.07F), err);
}

/* Example for quantized-pass-through: a layer that moves elements. */
cnr_status int8_example_pass(graph *g, cnr_error *err) {
    const cnr_value q = scaled(g, "quantize_linear", input(g), 0.02F);
    const cnr_value x = scaled(g, "dequantize_linear", q, 0.02F);
    return output(g, graph_add(g, "flatten", NULL, NULL, &x, 1), err);
}

/* Adds a convolution with 4 outputs, window 3 x 3 and made-up weights; returns its output, or
 * -1. */
static cnr_value convolve(graph *g, const char *name, cnr_value x) {
    const int64_t size[2] = {3, 3};
    const cnr_attr more[2] =
        {{.name = "out", .type = CNR_ATTR_INT, .set = 1, .i = 4},
         {.name = "kernel_shape", .type = CNR_ATTR_INTS, .set = 1, .n = 2, .ints = size}};
    const cnr_value in[3] = {x, -1, -1};
    return graph_add_with(g, "conv", name, NULL, more, 2, in, 3);
}

/* Example for equalize-channels: two convolutions and the maxima of the channels between them. */
cnr_status int8_example_equalize(graph *g, cnr_error *err) {
    const cnr_value a = convolve(g, "a", input(g));
    const cnr_value x = a < 0 ? -1 : graph_add(g, "relu", NULL, NULL, &a, 1);
    char key[256];
    if (x < 0) return output(g, x, err);
    snprintf(key, sizeof key, "channels.%.200s", int8_host->graph_value_name(g, x));
    CNR_TRY(int8_host->graph_set_meta(g, key, "4,0.5,2,1"));
    return output(g, convolve(g, "b", x), err);
}
