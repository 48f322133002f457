/* Operators that move elements and those that reduce: hand-worked values, aliases, gradients,
 * splits, unknown and hostile shapes. */
#include "opcall.h"

/* A list of inputs. */
#define IN(...) \
    (const cnr_tensor *[]) { __VA_ARGS__ }

/* Tests: values. */
static void values(void) {
    cnr_tensor *y[3], *x = t_of(CNR_f32, "2x3", (double[]){1, 2, 3, 4, 5, 6});
    op_call("pad", "mode=reflect;pads=0,2,0,3", y, 1, 1, x);
    t_near(y[0], (double[]){3, 2, 1, 2, 3, 2, 1, 2, 6, 5, 4, 5, 6, 5, 4, 5}, 0, "reflect");
    op_call("pad", "mode=wrap;pads=1,1,0,4", y, 1, 1, x);
    t_near(y[0], (double[]){6, 4, 5, 6, 4, 5, 6, 4, 3, 1, 2, 3, 1, 2, 3, 1, 6, 4, 5, 6, 4, 5, 6, 4},
           0, "wrap, further than the axis");
    op_call("pad", "mode=edge;pads=-1,1,2,-1", y, 1, 1, x);
    t_near(y[0], (double[]){4, 4, 5, 4, 4, 5, 4, 4, 5}, 0, "edge and negative pads");
    op_call("pad", "pads=1,-1,0,0;value=9", y, 1, 1, x);
    t_near(y[0], (double[]){9, 9, 2, 3, 5, 6}, 0, "constant");
    op_call("slice", "starts=-1;ends=-100;axes=1;steps=-2", y, 1, 1, x);
    t_near(y[0], (double[]){3, 1, 6, 4}, 0, "backwards by two");
    t_shape(y[0], "2x2", "its shape");
    op_call("slice", "starts=2,5;ends=1,9", y, 1, 1, x);
    t_shape(y[0], "0x0", "nothing is left");
    op_call("reorg", "stride=2", y, 1, 1,
            t_of(CNR_f32, "1x4x2x2",
                 (double[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}));
    t_near(y[0], (double[]){0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15}, 0,
           "Darknet's reorg");
    t_shape(y[0], "1x16x1x1", "its shape");
    cnr_tensor *back[1];
    op_call("reorg", "stride=2;reverse=1", back, 1, 1, t_random(CNR_f32, "1x8x3x2", 3));
    t_shape(back[0], "1x2x6x4", "reorg reversed");
    op_call("channel_shuffle", "group=2", y, 1, 1, t_of(CNR_i8, "1x4x1", (double[]){0, 1, 2, 3}));
    t_near(y[0], (double[]){0, 2, 1, 3}, 0, "channels dealt out");
    op_call("crop", "offset=1,0", y, 1, 2, t_of(CNR_f32, "1x1x2x3", (double[]){1, 2, 3, 4, 5, 6}),
            t_type(CNR_f32, "7x7x1x2"));
    t_near(y[0], (double[]){4, 5}, 0, "crop");
    op_call("top_k", "k=2;axis=0", y, 2, 1, t_of(CNR_f32, "4", (double[]){2, 9, 9, NAN}));
    t_near(y[1], (double[]){3, 1}, 0, "NaN is largest, the first of equals next");
    op_call("non_zero", "", y, 1, 1, t_of(CNR_i32, "2x2", (double[]){0, 4, 5, 0}));
    t_shape(y[0], "2x2", "two found");
    t_near(y[0], (double[]){0, 1, 1, 0}, 0, "and where");
    op_call("scatter_nd", "reduction=add", y, 1, 3, x, t_of(CNR_i64, "2x1", (double[]){1, 1}),
            t_of(CNR_f32, "2x3", (double[]){1, 1, 1, 10, 10, 10}));
    t_near(y[0], (double[]){1, 2, 3, 15, 16, 17}, 0, "two updates of one place add up");
    op_call("reduce_max", "axes=1", y, 1, 1, t_type(CNR_f32, "2x0") /* no elements */);
    t_near(y[0], (double[]){-INFINITY, -INFINITY}, 0, "the largest of nothing");
    op_call("reduce_log_sum_exp", "keepdims=0", y, 1, 1,
            t_of(CNR_f32, "2", (double[]){1000, 1000}));
    t_near(y[0], (double[]){1000.693147}, 1e-6, "no overflow");
}

/* Scales come as f32 from files: 17 / 1.7f and 10 * 2.3f are the whole numbers that were meant. */
static void single_precision(void) {
    cnr_tensor *y[1], *x = t_random(CNR_f32, "11", 1);
    for (int i = 0; i < 11; i++) t_set(x, i, i);
    op_call("resize", "coordinate_transformation_mode=asymmetric;nearest_mode=floor", y, 1, 3, x,
            NULL, t_of(CNR_f32, "1", (double[]){1.7}));
    is_int((int)t_get(y[0], 17), 10, "the nearest of 17 / 1.7");
    op_call("resize", "", y, 1, 3, t_random(CNR_f32, "10", 1), NULL,
            t_of(CNR_f32, "1", (double[]){2.3}));
    t_shape(y[0], "23", "10 times 2.3");
}

/* One element is the first, whatever fraction of a length it was rounded down from. */
static void one_element(void) {
    cnr_tensor *y[1];
    op_call("resize", "mode=linear;coordinate_transformation_mode=pytorch_half_pixel", y, 1, 3,
            t_of(CNR_f32, "3", (double[]){4, 10, 30}), NULL, t_of(CNR_f32, "1", (double[]){.5}));
    t_near(y[0], (double[]){4}, 1e-6, "pytorch_half_pixel of a length of 1.5");
}

/* Where output `output` of the operator lies in the input, in elements; negative: it is no view. */
static int view_offset(const char *name, const char *attrs, const cnr_tensor *x, int32_t output,
                       int32_t n_outputs) {
    const cnr_op *op = op_find(name);
    cnr_attr room[8];
    const cnr_attr *given[8];
    cnr_alias alias[8];
    const int32_t n = op_parse(op, attrs, room, 8);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    cnr_node *node = op_node(op, given, n, &x, 1, n_outputs);
    if (!node) return -2;
    const int32_t count = op->buffer_aliases(node, alias, 8);
    op_node_free(node);
    return count > output && alias[output].kind == CNR_ALIAS_VIEW ? (int)alias[output].offset : -1;
}

/* Tests: aliases. */
static void aliases(void) {
    const cnr_tensor *x = t_type(CNR_f32, "1x4x2x3");
    is_int(view_offset("slice", "starts=1;ends=3;axes=1", x, 0, 1), 6, "a slice of channels");
    is_int(view_offset("slice", "starts=1;ends=3;axes=3", x, 0, 1), -1, "not one of columns");
    is_int(view_offset("slice", "starts=1,1;ends=2,2;axes=1,2", x, 0, 1), 9, "one line");
    is_int(view_offset("split", "axis=1;split=1,3", x, 1, 2), 6, "a part of a split");
    is_int(view_offset("split", "axis=2", x, 0, 2), -1, "not across channels");
    is_int(view_offset("transpose", "perm=1,0,2,3", x, 0, 1), 0, "an axis of 1 moved");
    is_int(view_offset("transpose", "perm=0,2,1,3", x, 0, 1), -1, "not others");
    is_int(view_offset("reshape", "shape=4,-1", x, 0, 1), 0, "a reshape");
}

/* Tests: gradients. */
static void gradients(void) {
    cnr_tensor *x = t_random(CNR_f64, "2x3x4", 1), *z = t_random(CNR_f64, "2x2x4", 2);
    op_gradcheck("concat", "axis=1", 0, 2, IN(x, z));
    op_gradcheck("concat", "axis=1", 1, 2, IN(x, z));
    op_gradcheck("reshape", "shape=4,-1", 0, 1, IN(x));
    op_gradcheck("unsqueeze", "axes=0,2", 0, 1, IN(x));
    op_gradcheck("transpose", "perm=2,0,1", 0, 1, IN(x));
    op_gradcheck("slice", "starts=1,0;ends=3,2;axes=1,2", 0, 1, IN(x));
    op_gradcheck("pad", "pads=1,0,-1,0,2,1", 0, 1, IN(x));
    op_refused("pad", "pads=1,0,-1,0,2,1", "want 1 number", 3,
               IN(x, NULL, t_of(CNR_f64, "2", (double[]){1, 2})));
    const cnr_tensor *border = t_random(CNR_f64, "scalar", 5);
    for (int32_t port = 0; port < 3; port += 2)
        op_gradcheck("pad", "pads=1,0,-1,0,2,1", port, 3, IN(x, NULL, border));
    op_gradcheck("expand", "shape=5,2,3,4", 0, 1, IN(x));
    op_gradcheck("reduce_sum", "axes=0,2;keepdims=0", 0, 1, IN(x));
    op_gradcheck("reduce_mean", "axes=-1", 0, 1, IN(x));
    op_gradcheck("reduce_mean", "", 0, 1, IN(x));
    cnr_tensor *p = t_random(CNR_f64, "1x8x2x4", 3);
    op_gradcheck("depth_to_space", "blocksize=2;mode=CRD", 0, 1, IN(p));
    op_gradcheck("space_to_depth", "blocksize=2", 0, 1, IN(p));
    op_gradcheck("channel_shuffle", "group=2", 0, 1, IN(p));
    op_splitcheck("concat", "axis=1", 2, IN(x, z));
    op_splitcheck("transpose", "perm=2,0,1", 1, IN(x));
    op_splitcheck("expand", "shape=5,2,3,4", 1, IN(x));
    op_splitcheck("reduce_mean", "axes=1", 1, IN(x));
    op_splitcheck("reduce_max", "axes=0,2", 1, IN(x));
}

/* The output's dim `axis` of a node whose shapes are partly unknown; -100 when it is refused. */
static int64_t inferred(const char *name, const char *attrs, int32_t n_in,
                        const cnr_tensor *const *in, int32_t axis) {
    const cnr_op *op = op_find(name);
    cnr_attr room[8];
    const cnr_attr *given[8];
    const int32_t n = op_parse(op, attrs, room, 8);
    for (int32_t i = 0; i < n; i++) given[i] = &room[i];
    cnr_node *node = op_node(op, given, n, in, n_in, 1);
    if (!node) return -100;
    const int64_t dim = node->outputs[0]->dim[axis];
    if (node->outputs[0]->data) cnri_free(node->outputs[0]->data);
    op_node_free(node);
    return dim;
}

/* Tests: unknown dimensions. */
static void unknown(void) {
    const int64_t batch = CNR_DIM_SYMBOL(0);
    cnr_tensor *x = t_type(CNR_f32, "1x4x2"), *shape = t_type(CNR_i64, "3");
    x->dim[0] = batch;
    is_int(inferred("reshape", "shape=0,-1", 1, IN(x), 0), batch, "0 keeps a symbol");
    is_int(inferred("reshape", "shape=0,-1", 1, IN(x), 1), 8, "and -1 is still known");
    is_int(inferred("reshape", "shape=-1,8", 1, IN(x), 0), batch, "-1 may be the symbol");
    is_int(inferred("reshape", "", 2, IN(x, shape), 2), CNR_DIM_UNKNOWN, "a shape not known yet");
    is_int(inferred("slice", "starts=0;ends=9223372036854775807;axes=0", 1, IN(x), 0), batch,
           "the whole of an unknown axis");
    is_int(inferred("slice", "starts=0;ends=5;axes=0", 1, IN(x), 0), CNR_DIM_UNKNOWN,
           "a part of one");
    is_int(inferred("concat", "axis=0", 2, IN(x, x), 0), CNR_DIM_UNKNOWN, "two symbols in a row");
    is_int(inferred("concat", "axis=1", 2, IN(x, x), 0), batch, "beside one another");
    is_int(inferred("tile", "repeats=1,2,1", 1, IN(x), 0), batch, "not repeated");
    is_int(inferred("reduce_sum", "axes=1;keepdims=0", 1, IN(x), 1), 2, "an axis less");
    is_int(inferred("shape", "start=1", 1, IN(x), 0), 2, "of shape's dims");
    const double factors[] = {1, 2, 2};
    cnr_tensor *scales = t_of(CNR_f32, "3", factors);
    is_int(inferred("resize", "", 3, IN(x, NULL, scales), 0), batch, "resized by 1");
    is_int(inferred("resize", "", 3, IN(x, NULL, t_type(CNR_f32, "3")), 1), CNR_DIM_UNKNOWN,
           "by an unknown factor");
}

/* Tests: what is refused. */
static void refusals(void) {
    cnr_tensor *x = t_type(CNR_f32, "2x3"), *y[1];
    op_refused("reshape", "shape=4,2", "fit", 1, IN(x));
    op_refused("reshape", "shape=-1,-1", "twice", 1, IN(x));
    op_refused("reshape", "shape=-7", "dimension", 1, IN(x));
    op_refused("reshape", "shape=1,1,0", "keep", 1, IN(x));
    op_refused("transpose", "perm=0,0", "twice", 1, IN(x));
    op_refused("slice", "starts=0;ends=1;steps=0", "step", 1, IN(x));
    op_refused("slice", "starts=0,0,0;ends=1,1,1", "entries", 1, IN(x));
    op_refused("concat", "axis=0", "equal", 2, IN(x, t_type(CNR_f32, "2x4")));
    op_refused("concat", "axis=5", "axis", 1, IN(x));
    op_refused("squeeze", "axes=0", "not 1", 1, IN(x));
    op_refused("tile", "repeats=9223372036854775807,2", "large", 1, IN(x));
    op_refused("expand", "shape=2,5", "expand", 1, IN(x));
    op_refused("pad", "pads=-2,-2,-2,-2", "taken off", 1, IN(x));
    op_refused("pad", "pads=9223372036854775807,0,0,0", "large", 1, IN(x));
    op_refused("resize", "scales=0,1", "scale", 1, IN(x));
    op_refused("resize", "scales=1e300,1", "scale", 1, IN(x));
    op_refused("resize", "", "wanted", 1, IN(x));
    op_refused("depth_to_space", "blocksize=2", "divided", 1, IN(t_type(CNR_f32, "1x3x2x2")));
    op_refused("reduce_sum", "axes=0,-2", "twice", 1, IN(x));
    op_refused("top_k", "k=4", "of an axis", 1, IN(x));
    op_refused("split", "axis=0;split=1,2", "lengths", 1, IN(x));
    ok(op_try("gather", "", y, 1, 2,
              IN(t_random(CNR_f32, "3", 1), t_of(CNR_i64, "1", (double[]){3}))) == CNR_E_ARG,
       "an index past the end is refused at run");
    ok(op_try("gather_nd", "", y, 1, 2,
              IN(t_random(CNR_f32, "3", 1), t_of(CNR_i64, "1x1", (double[]){-4}))) == CNR_E_ARG,
       "and one before the begin");
}

int main(void) {
    op_open();
    values();
    single_precision();
    one_element();
    aliases();
    gradients();
    unknown();
    refusals();
    return op_done();
}
