/* Small graphs that rewrites change, for conform to judge them by. */
#include "ops_kit.h"

/* Adds a net input of f32 [rows, columns]. */
static cnr_value input(kit_build *b, const char *name, int64_t rows, int64_t columns) {
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 2, .dim = {rows, columns}};
    return ops_host->graph_input(b->graph, name, &t);
}

/* Makes y the net's output. */
static cnr_status output(kit_build *b, cnr_value y) {
    return b->status ? b->status : ops_host->graph_output(b->graph, y, "y");
}

/* Example net for the rewrite of activations. SiLU: x * sigmoid(x). */
cnr_status ops_example_activations(struct cnr_graph *g, cnr_error *err) {
    kit_build b = {ops_host, g, CNR_OK};
    const cnr_value x = input(&b, "x", 3, 5);
    (void)err;
    return output(&b, kit_node2(&b, "mul", x, kit_node1(&b, "sigmoid", x)));
}

/* Example net for the rewrite of normalisations. (x - mean) / sqrt(variance + epsilon) along the
 * last axis. */
cnr_status ops_example_normalization(struct cnr_graph *g, cnr_error *err) {
    const int64_t last = -1;
    const cnr_attr axes = kit_attr_ints("axes", &last, 1);
    kit_build b = {ops_host, g, CNR_OK};
    const cnr_value x = input(&b, "x", 3, 8);
    const cnr_value centred = kit_node2(&b, "sub", x, kit_node(&b, "reduce_mean", &x, 1, &axes, 1));
    const cnr_value square = kit_node2(&b, "mul", centred, centred);
    const cnr_value variance = kit_node(&b, "reduce_mean", &square, 1, &axes, 1);
    const cnr_value sum = kit_node2(&b, "add", variance, kit_constant(&b, CNR_f32, 1e-5));
    (void)err;
    return output(&b, kit_node2(&b, "div", centred, kit_node1(&b, "sqrt", sum)));
}

/* Example net for the rewrite of einsum. A product of a matrix and a transposed one. */
cnr_status ops_example_einsum(struct cnr_graph *g, cnr_error *err) {
    const cnr_attr equation = {.name = "equation",
                               .type = CNR_ATTR_STRING,
                               .set = 1,
                               .s = "ij,kj->ik"};
    kit_build b = {ops_host, g, CNR_OK};
    const cnr_value in[2] = {input(&b, "x", 3, 5), input(&b, "w", 4, 5)};
    (void)err;
    return output(&b, kit_node(&b, "einsum", in, 2, &equation, 1));
}

/* Example net for the rewrite of gather. Every second row. */
cnr_status ops_example_gather(struct cnr_graph *g, cnr_error *err) {
    int64_t rows[3] = {1, 3, 5};
    const cnr_tensor t = {.size = sizeof t,
                          .dtype = CNR_i64,
                          .rank = 1,
                          .dim = {3},
                          .flags = CNR_TENSOR_CONST,
                          .bytes = sizeof rows,
                          .data = rows};
    kit_build b = {ops_host, g, CNR_OK};
    const cnr_value x = input(&b, "x", 7, 4);
    (void)err;
    return output(&b, kit_node2(&b, "gather", x, ops_host->graph_constant(g, NULL, &t)));
}

/* Example net for the rewrite of scales. (x / 8) w, as attention divides. */
cnr_status ops_example_scale(struct cnr_graph *g, cnr_error *err) {
    kit_build b = {ops_host, g, CNR_OK};
    const cnr_value x = input(&b, "x", 3, 5), w = input(&b, "w", 5, 4);
    const cnr_value scaled = kit_node2(&b, "mul", x, kit_constant(&b, CNR_f32, 0.125));
    (void)err;
    return output(&b, kit_node2(&b, "matmul", scaled, w));
}

/* 1 tanh(x) + 0.5, by an operation with a default factor. */
cnr_status ops_example_neutral(struct cnr_graph *g, cnr_error *err) {
    kit_build b = {ops_host, g, CNR_OK};
    const cnr_value x = kit_node1(&b, "tanh", input(&b, "x", 3, 5));
    const cnr_value same = kit_node2(&b, "mul", kit_constant(&b, CNR_f32, 1), x);
    (void)err;
    return output(&b, kit_node2(&b, "add", same, kit_constant(&b, CNR_f32, 0.5)));
}

/* softmax(q k^T) v of two heads, with the rows before the heads. */
cnr_status ops_example_attention(struct cnr_graph *g, cnr_error *err) {
    static const char *const names[] = {"q", "k", "v"};
    static const int64_t turned[] = {0, 1, 3, 2}, order[] = {0, 2, 1, 3};
    const cnr_tensor t = {.size = sizeof t, .dtype = CNR_f32, .rank = 4, .dim = {1, 2, 5, 4}};
    const cnr_attr perm = kit_attr_ints("perm", turned, 4);
    kit_build b = {ops_host, g, CNR_OK};
    cnr_value in[3];
    (void)err;
    for (int i = 0; i < 3; i++) in[i] = ops_host->graph_input(g, names[i], &t);
    const cnr_value k = kit_node(&b, "transpose", &in[1], 1, &perm, 1);
    const cnr_value scores = kit_node1(&b, "softmax", kit_node2(&b, "matmul", in[0], k));
    const cnr_value y = kit_node2(&b, "matmul", scores, in[2]);
    const cnr_attr rows_first = kit_attr_ints("perm", order, 4);
    return output(&b, kit_node(&b, "transpose", &y, 1, &rows_first, 1));
}

/* A 3x3 window with a dilation of 4 on 3x3 pixels, of which the middle tap alone is seen. */
cnr_status ops_example_taps(struct cnr_graph *g, cnr_error *err) {
    static const int64_t four[] = {4, 4, 4, 4};
    float weight[2 * 2 * 9];
    const cnr_tensor x = {.size = sizeof x, .dtype = CNR_f32, .rank = 4, .dim = {1, 2, 3, 3}};
    cnr_tensor w = {.size = sizeof w,
                    .dtype = CNR_f32,
                    .rank = 4,
                    .dim = {2, 2, 3, 3},
                    .flags = CNR_TENSOR_CONST,
                    .bytes = sizeof weight,
                    .data = weight};
    const cnr_attr attrs[] = {kit_attr_ints("dilations", four, 2),
                              kit_attr_ints("pads", four, 4),
                              {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1}};
    kit_build b = {ops_host, g, CNR_OK};
    (void)err;
    for (int i = 0; i < 36; i++) weight[i] = (float)(i % 7) - 3;
    const cnr_value in[] = {ops_host->graph_input(g, "x", &x),
                            ops_host->graph_constant(g, NULL, &w)};
    return output(&b, kit_node(&b, "conv", in, 2, attrs, CNR_ROWS(attrs)));
}

/* A border of zeros in front of a convolution with padding of its own, and of an average. */
cnr_status ops_example_pads(struct cnr_graph *g, cnr_error *err) {
    static const int64_t ones[] = {1, 1, 1, 1}, two[] = {2, 2}, border[] = {0, 0, 1, 1, 0, 0, 0, 1};
    float weight[2 * 2 * 9];
    const cnr_tensor x = {.size = sizeof x, .dtype = CNR_f32, .rank = 4, .dim = {1, 2, 6, 5}};
    cnr_tensor w = {.size = sizeof w,
                    .dtype = CNR_f32,
                    .rank = 4,
                    .dim = {2, 2, 3, 3},
                    .flags = CNR_TENSOR_CONST,
                    .bytes = sizeof weight,
                    .data = weight};
    const cnr_attr attrs[] = {kit_attr_ints("pads", ones, 4),
                              {.name = "bias", .type = CNR_ATTR_BOOL, .set = 1}};
    const cnr_attr window = kit_attr_ints("kernel_shape", two, 2);
    const cnr_attr pads = kit_attr_ints("pads", border, 8);
    kit_build b = {ops_host, g, CNR_OK};
    (void)err;
    for (int i = 0; i < 36; i++) weight[i] = (float)(i % 7) - 3;
    const cnr_value first = ops_host->graph_input(g, "x", &x);
    const cnr_value in[] = {kit_node(&b, "pad", &first, 1, &pads, 1),
                            ops_host->graph_constant(g, NULL, &w)};
    const cnr_value y = kit_node(&b, "conv", in, 2, attrs, CNR_ROWS(attrs));
    const cnr_value again = kit_node(&b, "pad", &y, 1, &pads, 1);
    return output(&b, kit_node(&b, "average_pool", &again, 1, &window, 1));
}

/* A linear layer of two axes of rows, normalised as one axis, and a second one without a product.
 */
cnr_status ops_example_rows(struct cnr_graph *g, cnr_error *err) {
    float data[15];
    const cnr_tensor x = {.size = sizeof x, .dtype = CNR_f32, .rank = 3, .dim = {2, 4, 5}};
    const cnr_tensor rows = {.size = sizeof rows, .dtype = CNR_f32, .rank = 2, .dim = {8, 3}};
    cnr_tensor w = {.size = sizeof w,
                    .dtype = CNR_f32,
                    .rank = 2,
                    .dim = {5, 3},
                    .flags = CNR_TENSOR_CONST,
                    .bytes = sizeof data,
                    .data = data};
    cnr_tensor v = w;
    kit_build b = {ops_host, g, CNR_OK};
    (void)err;
    for (int i = 0; i < 15; i++) data[i] = 0.5f + (float)(i % 4);
    v.rank = 1, v.dim[0] = 3, v.bytes = 3 * sizeof(float);
    const cnr_value first = ops_host->graph_input(g, "x", &x);
    const cnr_value product = kit_node2(&b, "matmul", first, ops_host->graph_constant(g, NULL, &w));
    const cnr_value four = ops_host->graph_constant(g, NULL, &v);
    cnr_value list[] = {kit_reshape(&b, product, &rows), four, four, four, four};
    list[0] = kit_node(&b, "batch_normalization", list, 5, NULL, 0);
    list[0] = kit_node1(&b, "tanh", list[0]);
    return output(&b, kit_node(&b, "batch_normalization", list, 5, NULL, 0));
}

/* A window of 3 by 3, one of 1 by 1, and a normalisation, of one input. */
cnr_status ops_example_branches(struct cnr_graph *g, cnr_error *err) {
    static const int64_t ones[] = {1, 1, 1, 1};
    float data[2 * 2 * 9];
    const cnr_tensor x = {.size = sizeof x, .dtype = CNR_f32, .rank = 4, .dim = {1, 2, 5, 4}};
    cnr_tensor w = {.size = sizeof w,
                    .dtype = CNR_f32,
                    .rank = 4,
                    .dim = {2, 2, 3, 3},
                    .flags = CNR_TENSOR_CONST,
                    .bytes = sizeof data,
                    .data = data};
    const cnr_attr pads = kit_attr_ints("pads", ones, 4);
    cnr_tensor small = w, v = w;
    kit_build b = {ops_host, g, CNR_OK};
    (void)err;
    for (int i = 0; i < 36; i++) data[i] = 0.5f + (float)(i % 7);
    small.dim[2] = small.dim[3] = 1, small.bytes = 4 * sizeof(float);
    v.rank = 1, v.dim[0] = 2, v.bytes = 2 * sizeof(float);
    const cnr_value first = ops_host->graph_input(g, "x", &x);
    const cnr_value four = ops_host->graph_constant(g, NULL, &v);
    const cnr_value wide[] = {first, ops_host->graph_constant(g, NULL, &w)};
    const cnr_value narrow[] = {first, ops_host->graph_constant(g, NULL, &small), four};
    const cnr_value norm[] = {first, four, four, four, four};
    cnr_value y = kit_node2(&b, "add", kit_node(&b, "conv", narrow, 3, NULL, 0),
                            kit_node(&b, "conv", wide, 2, &pads, 1));
    y = kit_node2(&b, "add", y, kit_node(&b, "batch_normalization", norm, 5, NULL, 0));
    return output(&b, y);
}

/* A row over the root of its mean square, times a constant. */
cnr_status ops_example_rms(struct cnr_graph *g, cnr_error *err) {
    static const int64_t last[] = {-1};
    float data[5];
    const cnr_tensor x = {.size = sizeof x, .dtype = CNR_f32, .rank = 3, .dim = {2, 3, 5}};
    const cnr_tensor v = {.size = sizeof v,
                          .dtype = CNR_f32,
                          .rank = 1,
                          .dim = {5},
                          .flags = CNR_TENSOR_CONST,
                          .bytes = sizeof data,
                          .data = data};
    const cnr_attr axes = kit_attr_ints("axes", last, 1);
    kit_build b = {ops_host, g, CNR_OK};
    (void)err;
    for (int i = 0; i < 5; i++) data[i] = 0.5f + (float)(i % 3);
    const cnr_value first = ops_host->graph_input(g, "x", &x);
    const cnr_value square = kit_node2(&b, "mul", first, first);
    const cnr_value mean = kit_node(&b, "reduce_mean", &square, 1, &axes, 1);
    const cnr_value root =
        kit_node1(&b, "sqrt", kit_node2(&b, "add", mean, kit_constant(&b, CNR_f32, 1e-5)));
    const cnr_value y = kit_node2(&b, "div", first, root);
    return output(&b, kit_node2(&b, "mul", y, ops_host->graph_constant(g, NULL, &v)));
}
