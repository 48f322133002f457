#!/usr/bin/env python3
"""Judges the TensorFlow importer by TensorFlow: made-up graphs of both ages and Keras's nets, frozen, through
both on the same noise; for each the largest absolute difference over the largest absolute value (TAP).

    tensorflow_compare.py [--keras] [NAME...]       NAME: a part of the names that are wanted
"""
import argparse, os, subprocess, sys, tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
v1 = tf.compat.v1
v1.disable_control_flow_v2()  # conditions as Switch and Merge, which freezing leaves
raw = tf.raw_ops
GRAPHS = {}
LIMITS = {"resize_bicubic": 2e-3}


def graph(make):
    """A function that builds a graph out of placeholders; what it returns becomes the outputs."""
    GRAPHS[make.__name__] = make
    return make


class Noise:
    def __init__(self):
        self.random = np.random.RandomState(5)

    def __call__(self, *shape, low=-1.0, high=1.0, dtype="f4"):
        return np.asarray(self.random.rand(*shape) * (high - low) + low, dtype)


def pictures(shape=(2, 9, 11, 6), name="x", dtype=tf.float32):
    return v1.placeholder(dtype, shape, name=name)


def conv(x, w, stride=1, padding="SAME", **more):
    return raw.Conv2D(input=x, filter=w, strides=[1, stride, stride, 1], padding=padding, **more)


# ---- windows ----


@graph
def conv_paddings(n):
    x = pictures()
    out = []
    for padding in "SAME", "VALID":
        for stride in 1, 2, 3:
            for k in (3, 3), (1, 1), (2, 5):
                out.append(conv(x, n(*k, 6, 4), stride, padding))
    return out


@graph
def conv_explicit(n):
    x = pictures()
    return [conv(x, n(3, 3, 6, 5), 2, "EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 3, 0, 0])]


@graph
def conv_dilated(n):
    x = pictures((1, 12, 13, 4))
    return [raw.Conv2D(input=x, filter=n(3, 3, 4, 5), strides=[1] * 4, padding=p, dilations=[1, 2, 3, 1])
            for p in ("SAME", "VALID")]


@graph
def conv_dilated_by_batch(n):
    x = pictures((1, 12, 13, 4))
    y = raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[2, 2], [2, 3]])
    y = conv(y, n(3, 3, 4, 5), 1, "VALID")
    return [tf.nn.relu(raw.BatchToSpaceND(input=y, block_shape=[2, 2], crops=[[0, 0], [0, 1]]))]


@graph
def conv_dilated_one_axis(n):
    x = pictures((2, 15, 3))
    y = raw.SpaceToBatchND(input=x, block_shape=[3], paddings=[[3, 3]])
    y = tf.nn.conv1d(y, n(3, 3, 4), 1, "VALID")
    return [raw.BatchToSpaceND(input=y, block_shape=[3], crops=[[0, 0]])]


@graph
def conv_dilated_open_batch(n):
    x = pictures((None, 12, 12, 4))
    y = raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[2, 2], [2, 2]])
    y = conv(y, n(3, 3, 4, 5), 1, "VALID")
    return [raw.BatchToSpaceND(input=y, block_shape=[2, 2], crops=[[0, 0], [0, 0]])]


@graph
def conv_grouped(n):
    return [conv(pictures(), n(3, 3, 2, 9), 1, "SAME")]


@graph
def depthwise(n):
    x = pictures()
    return [raw.DepthwiseConv2dNative(input=x, filter=n(3, 3, 6, m), strides=[1, s, s, 1], padding=p)
            for m in (1, 3) for s in (1, 2) for p in ("SAME", "VALID")] + [
        raw.DepthwiseConv2dNative(input=x, filter=n(3, 3, 6, 1), strides=[1, 1, 1, 1], padding="SAME",
                                  dilations=[1, 2, 2, 1])]


@graph
def conv_transposed(n):
    x = pictures((2, 5, 6, 3))
    out = []
    for k, s, p, h, w in ((3, 2, "SAME", 10, 12), (3, 2, "SAME", 9, 11), (3, 2, "VALID", 11, 13),
                          (3, 2, "VALID", 12, 14), (2, 2, "VALID", 10, 12), (4, 3, "SAME", 14, 17),
                          (1, 2, "SAME", 9, 12), (5, 1, "SAME", 5, 6)):
        out.append(raw.Conv2DBackpropInput(input_sizes=[2, h, w, 4], filter=n(k, k, 4, 3), out_backprop=x,
                                           strides=[1, s, s, 1], padding=p))
    return out


@graph
def conv_transposed_open_batch(n):
    x = pictures((None, 5, 6, 3))
    size = tf.stack([tf.shape(x)[0], 10, 12, 4])
    y = raw.Conv2DBackpropInput(input_sizes=size, filter=n(3, 3, 4, 3), out_backprop=x,
                                strides=[1, 2, 2, 1], padding="SAME")
    return [tf.nn.bias_add(y, n(4))]


@graph
def conv_nchw(n):
    x = pictures((2, 6, 9, 11))  # the processor's own TensorFlow runs no NCHW convolution: transposed round it
    w, b = n(3, 3, 6, 4), n(4)
    y = raw.Conv2D(input=x, filter=w, strides=[1, 1, 2, 2], padding="SAME", data_format="NCHW")
    y = raw.BiasAdd(value=y, bias=b, data_format="NCHW")
    return [raw.MaxPool(input=tf.nn.relu(y), ksize=[1, 1, 2, 2], strides=[1, 1, 2, 2], padding="VALID",
                        data_format="NCHW")]


@graph
def bias_nchw(n):
    return [raw.BiasAdd(value=pictures((2, 6, 3, 4)), bias=n(6), data_format="NCHW"),
            raw.BiasAdd(value=pictures((2, 6), "m"), bias=n(6)),
            raw.BiasAdd(value=pictures((2, 5, 6), "s"), bias=n(6)),
            raw.BiasAdd(value=pictures((2, 3, 4, 5, 6), "v"), bias=n(6)),
            raw.BiasAdd(value=pictures((2, 6, 5), "t"), bias=n(6), data_format="NCHW")]


@graph
def conv_1d(n):
    x = pictures((2, 20, 3))
    y = tf.nn.conv1d(x, n(5, 3, 8), stride=2, padding="SAME")
    y = tf.nn.relu(tf.nn.bias_add(y, n(8)))
    y = tf.nn.pool(y, [2], "MAX", padding="VALID", strides=[2])
    return [tf.reshape(y, [2, -1])]


@graph
def conv_3d(n):
    x = pictures((1, 5, 6, 7, 3))
    y = raw.Conv3D(input=x, filter=n(3, 2, 3, 3, 4), strides=[1, 1, 2, 1, 1], padding="SAME")
    y = tf.nn.relu(tf.nn.bias_add(y, n(4)))
    a = raw.MaxPool3D(input=y, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
    b = raw.AvgPool3D(input=y, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    return [a, b, tf.reduce_mean(y, [1, 2, 3]), tf.concat([y, y], 4), tf.reshape(y, [1, -1])]


@graph
def pools(n):
    x = pictures((2, 10, 13, 3))
    return [op(**{value: x}, ksize=[1, k, k, 1], strides=[1, s, s, 1], padding=p)
            for op, value in ((raw.MaxPool, "input"), (raw.AvgPool, "value"))
            for k, s in ((2, 2), (3, 2), (3, 1), (2, 3)) for p in ("SAME", "VALID")] + [
        raw.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
        raw.MaxPool(input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="EXPLICIT",
                    explicit_paddings=[0, 0, 1, 0, 1, 1, 0, 0]),
        raw.MaxPool(input=x, ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="VALID")]


@graph
def resizes(n):
    x = pictures((2, 5, 7, 3))
    out = []
    for h, w in ((10, 14), (3, 4), (13, 9), (1, 1), (5, 7)):
        for op in raw.ResizeBilinear, raw.ResizeNearestNeighbor:
            for how in {}, {"align_corners": True}, {"half_pixel_centers": True}:
                out.append(op(images=x, size=[h, w], **how))
    return out


@graph
def resize_bicubic(n):
    """TensorFlow takes its cubic from a table of 1,024 entries."""
    x = pictures((2, 5, 7, 3))
    return [raw.ResizeBicubic(images=x, size=[10, 13], half_pixel_centers=True), raw.ResizeBicubic(images=x, size=[7, 9])]


@graph
def resize_open(n):
    x = pictures((None, None, None, 3))
    y = conv(x, n(3, 3, 3, 4), 2)
    y = raw.ResizeNearestNeighbor(images=y, size=tf.shape(y)[1:3] * 2, half_pixel_centers=True)
    return [raw.ResizeBilinear(images=y, size=tf.shape(x)[1:3])]


@graph
def resize_of_bytes(n):
    x = v1.placeholder(tf.uint8, (1, 6, 6, 3), name="x")
    return [raw.ResizeBilinear(images=tf.cast(x, tf.float32), size=[4, 4]) / 255.0]


@graph
def response_normalisation(n):
    x = conv(pictures((1, 5, 5, 3)), n(3, 3, 3, 16))
    return [raw.LRN(input=x, depth_radius=2, bias=1.0, alpha=1e-1, beta=0.75), raw.LRN(input=x)]


# ---- normalisation ----


def norm(x, n, c, op=raw.FusedBatchNormV3, **more):
    return op(x=x, scale=n(c, low=.5), offset=n(c), mean=n(c), variance=n(c, low=.2, high=2.0),
              is_training=False, **more)[0]


@graph
def batch_norms(n):
    y = conv(pictures(), n(3, 3, 6, 4))
    return [norm(y, n, 4, raw.FusedBatchNorm, epsilon=1e-3), norm(y, n, 4, raw.FusedBatchNormV2),
            norm(y, n, 4, raw.FusedBatchNormV3, epsilon=1.1e-5), norm(pictures((2, 3, 4, 5), "z"), n, 5)]


@graph
def batch_norm_nchw(n):
    return [norm(pictures((2, 6, 3, 4)), n, 6, data_format="NCHW")]


@graph
def batch_norm_3d(n):
    return [norm(pictures((2, 3, 4, 5, 6)), n, 6, data_format="NDHWC")]


@graph
def batch_norm_unfused(n):
    y = conv(pictures(), n(3, 3, 6, 4))
    mean, var, gamma, beta = tf.constant(n(4)), tf.constant(n(4, low=.3)), tf.constant(n(4)), tf.constant(n(4))
    scale = tf.math.rsqrt(var + 1e-3) * gamma
    a = y * scale + (beta - mean * scale)
    matrix = tf.matmul(pictures((2, 5), "m"), n(5, 4))
    return [tf.nn.relu6(a), tf.nn.batch_normalization(matrix, mean, var, beta, gamma, 1e-3),
            raw.AddV2(x=scale * y, y=beta), raw.Sub(x=beta, y=y)]


def in_training(n, flag):
    y = conv(pictures(), n(3, 3, 6, 4))
    y = v1.cond(flag, lambda: tf.nn.dropout(y, rate=0.4) * 3.0, lambda: tf.identity(y))
    z = v1.cond(flag, lambda: tf.constant(n(4)), lambda: tf.constant(n(4)))
    return [tf.nn.relu(y + z)]


@graph
def training_switch_default(n):
    return in_training(n, v1.placeholder_with_default(False, [], name="is_training"))


@graph
def training_switch_constant(n):
    flag = tf.constant(True)
    return in_training(n, tf.logical_not(flag))


@graph
def training_switch_nested(n):
    flag = v1.placeholder_with_default(False, [], name="is_training")
    x = pictures((2, 4))
    y = v1.cond(flag, lambda: x * 2.0, lambda: v1.cond(tf.logical_not(flag), lambda: x + 5.0, lambda: x - 1.0))
    return [y * y]


@graph
def dropout_off(n):
    keep = v1.placeholder_with_default(1.0, [], name="keep_prob")
    x = pictures((2, 8))
    noise = v1.random_uniform(tf.shape(x), seed=1)
    return [tf.matmul(x / keep * tf.floor(noise + keep), n(8, 3))]


@graph
def dropout_off_by_rate(n):
    rate = v1.placeholder_with_default(0.0, [], name="rate")
    x = conv(pictures(), n(3, 3, 6, 4))
    noise = v1.random_uniform(tf.shape(x), seed=1)
    mask = tf.cast(noise >= rate, tf.float32)
    return [x * (1.0 / (1.0 - rate)) * mask]


@graph
def layer_norm(n):
    x = pictures((2, 7, 8))
    mean, var = tf.nn.moments(x, [-1], keepdims=True)
    y = (x - mean) * tf.math.rsqrt(var + 1e-6) * n(8) + n(8)
    p = conv(pictures((1, 5, 6, 3), "p"), n(3, 3, 3, 8))
    m, v = tf.nn.moments(p, [1, 2], keepdims=True)
    q = tf.math.squared_difference(p, m)
    return [y, (p - m) / tf.sqrt(v + 1e-5), q, tf.nn.l2_normalize(p, 3), tf.nn.l2_normalize(p, [1, 2])]


@graph
def group_norm(n):
    x = conv(pictures((2, 4, 6, 3)), n(3, 3, 3, 8))
    g = tf.reshape(x, [2, 4, 6, 2, 4])
    mean, var = tf.nn.moments(g, [1, 2, 4], keepdims=True)
    return [tf.reshape((g - mean) * tf.math.rsqrt(var + 1e-5), [2, 4, 6, 8]) * n(8)]


# ---- element by element ----


@graph
def activations(n):
    x = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4))
    return [f(x) for f in (tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.selu, tf.nn.softplus, tf.nn.softsign, tf.tanh,
                           tf.sigmoid, tf.nn.leaky_relu, tf.exp, tf.abs, tf.negative, tf.square, tf.floor,
                           tf.math.ceil, tf.round, tf.sign, tf.math.erf, tf.sin, tf.cos, tf.math.expm1, lambda v: tf.tan(v * .1),
                           tf.atan, tf.nn.gelu, lambda v: v * tf.sigmoid(v), tf.math.erfc, tf.sinh, tf.cosh, tf.asinh)] + [
        tf.nn.leaky_relu(x, alpha=0.05), tf.math.log(tf.abs(x) + 0.1), tf.math.log1p(tf.abs(x)),
        tf.sqrt(tf.abs(x)), tf.math.rsqrt(tf.abs(x) + .1), tf.math.reciprocal(x + 20.0), tf.nn.crelu(x),
        x * tf.nn.relu6(x + 3.0) * (1 / 6.0), tf.clip_by_value(x, -0.3, 0.7), tf.nn.log_softmax(x)]


@graph
def prelu_pieces(n):
    x, alpha = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4)), n(4)
    return [tf.nn.relu(x) + alpha * (x - tf.abs(x)) * 0.5, tf.maximum(0.0, x) + alpha * tf.minimum(0.0, x),
            tf.nn.relu(x) - alpha * tf.nn.relu(-x), tf.where(x > 0, x, x * alpha)]


@graph
def binaries(n):
    x, y = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4)), pictures((1, 5, 6, 4), "y")
    out = [f(x, y) for f in (tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum, tf.minimum,
                             tf.math.squared_difference, tf.math.floordiv, tf.math.floormod)]
    for other in (n(4), n(6, 4), n(6, 1), n(5, 6, 4), n(1, 1, 1, 4), n(1, 5, 6, 1), n(1), n(), n(5, 1, 1),
                  n(2, 1, 5, 6, 4)):
        out += [x - other, other - x]
    flags = [f(x, y) for f in (tf.greater, tf.greater_equal, tf.less, tf.less_equal, tf.equal, tf.not_equal)]
    out += [tf.cast(f, tf.float32) for f in flags]
    out += [tf.cast(tf.logical_and(flags[0], tf.logical_not(flags[4])), tf.int32),
            tf.where(tf.logical_or(flags[0], flags[2]), x, y), tf.pow(tf.abs(x), 1.7), tf.add_n([x, y, x]),
            v1.where(x > 0, x, y)]
    return out


@graph
def between_ranks(n):
    """Turned pictures meet tensors of other ranks."""
    x = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4))
    m = tf.reduce_mean(x, [1, 2])          # rank 2
    s = tf.reduce_mean(x, 1)               # rank 3
    return [x * m, x + s, x - tf.reduce_max(x, 3, keepdims=True), x * tf.reshape(m, [1, 1, 1, 4]),
            tf.expand_dims(x, 0) + x, tf.reduce_sum(x), x / tf.reduce_sum(x)]


# ---- shapes ----


def reduced(n, functions):
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    out = []
    for f in functions:
        for axes in [1, 2], [2, 1], [3], [-1], [1], [0, 3], [1, 2, 3], [-3, -2], [0, 1, 2, 3], 2:
            out += [f(x, axes), f(x, axes, keepdims=True)]
    return out + [tf.reduce_mean(x, tf.constant([], tf.int32)),
                  tf.cast(tf.reduce_any(x > 1.0, 3), tf.int32),
                  tf.cast(tf.reduce_all(x > -9.0, [1, 2], keepdims=True), tf.int32)]


@graph
def means_and_sums(n):
    return reduced(n, (tf.reduce_mean, tf.reduce_sum))


@graph
def extremes_and_products(n):
    return reduced(n, (tf.reduce_max, tf.reduce_min, tf.reduce_prod))


@graph
def flatten(n):
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    return [tf.reshape(x, [2, -1]), tf.matmul(tf.reshape(x, [-1, 120]), n(120, 7)),
            tf.reshape(x, [2, 30, 4]), tf.reshape(x, [2, 6, 5, 4]), tf.reshape(x, [2, 5, 6, 2, 2]),
            tf.reshape(x, [-1]), tf.reshape(x[0], [1, 5, 6, 4])]


@graph
def flatten_open(n):
    x = conv(pictures((None, 5, 6, 3)), n(3, 3, 3, 4))
    s = tf.shape(x)
    y = tf.reshape(x, tf.stack([s[0], 120]))
    z = tf.reshape(x, tf.stack([s[0], -1]))
    prod = tf.reduce_prod(s[1:])
    w = tf.reshape(x, tf.concat([s[:1], [prod]], 0))
    sq = tf.reshape(tf.reduce_mean(x, [1, 2]), tf.stack([s[0], 1, 1, 4]))
    return [tf.matmul(y, n(120, 3)), z, w, x * tf.sigmoid(conv(sq, n(1, 1, 4, 4)))]


@graph
def concats(n):
    x, y = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4)), pictures((2, 5, 6, 4), "y")
    out = []
    for a in range(-4, 4):
        out += [tf.concat([x, x * 2.0], a), tf.concat([x, y], a), raw.Concat(concat_dim=a % 4, values=[y, x])]
    m, s = pictures((2, 3), "m"), pictures((2, 3, 4), "s")
    return out + [tf.concat([m, m], 1), tf.concat([s, s, s], -1), tf.concat([s], 1)]


@graph
def splits(n):
    x, out = conv(pictures((2, 6, 6, 3)), n(3, 3, 3, 6)), []
    for a in -1, 1, 2, 3:
        out += [v * 2.0 for v in tf.split(x, 3, a)]
        out += [v + 1.0 for v in tf.split(x, [1, 4, 1], a)]
        out += [v + 1.0 for v in tf.split(x, [1, -1], a)]
    return out + [v + 1.0 for v in tf.unstack(x, axis=3)] + [v + 1.0 for v in tf.unstack(x, axis=0)]


@graph
def split_many(n):
    x = pictures((2, 100))
    return [tf.add_n(tf.split(x, 100, 1)[::3])]


@graph
def softmaxes(n):
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    return [tf.nn.softmax(x), tf.nn.log_softmax(x), tf.nn.softmax(pictures((2, 9), "m")),
            tf.nn.softmax(pictures((2, 3, 9), "s")), tf.nn.softmax(pictures((2, 3, 2, 2, 9), "v")),
            tf.nn.softmax(x, axis=1)]


@graph
def pads(n):
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    p = [[0, 0], [1, 2], [3, 0], [0, 1]]
    mirror = [[0, 0], [1, 2], [3, 0], [0, 0]]
    return [tf.pad(x, p), tf.pad(x, p, constant_values=2.5), tf.pad(x, mirror, "REFLECT"),
            tf.pad(x, mirror, "SYMMETRIC"), tf.pad(pictures((2, 3), "m"), [[1, 0], [0, 2]]),
            conv(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), n(3, 3, 4, 2), 2, "VALID"),
            tf.pad(x, [[1, 1], [2, 2], [0, 5], [1, 1]], "SYMMETRIC")]


@graph
def slices(n):
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    return [tf.slice(x, [0, 1, 2, 0], [2, 3, -1, 2]), x[:, 1:3], x[..., 1:3], x[:, ::2, ::-1, :], x[0], x[..., 0],
            x[:, 1, ..., 2:], x[:, tf.newaxis, 2, :], x[:, -1], x[:, -3:-1, -1:, ::-2], x[1, ..., tf.newaxis, 1],
            x[:, 4:0:-2], x[:, 5::-1], x[:, :, -2], pictures((7,), "v")[2:5], pictures((3, 7), "m")[:, -1],
            x[:, 2:2]]


@graph
def slices_open(n):
    x = pictures((None, 5, 6, 3))
    s = tf.shape(x)
    return [tf.slice(x, [0, 0, 0, 1], tf.stack([s[0], 5, 6, 1])), x[:, :s[1] - 2, 1:s[2]],
            tf.slice(x, tf.stack([0, s[1] - 2, 0, 0]), [-1, 2, -1, -1])]


@graph
def moves(n):
    x = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4))
    return [tf.transpose(x, p) for p in ([0, 3, 1, 2], [0, 2, 1, 3], [3, 2, 1, 0], [0, 1, 2, 3])] + [
        tf.transpose(tf.nn.relu(tf.transpose(x, [0, 3, 1, 2])), [0, 2, 3, 1]),
        tf.squeeze(x), tf.squeeze(tf.reduce_mean(x, [1, 2], keepdims=True), [1, 2]), tf.expand_dims(x, 0),
        tf.squeeze(x[:, :1], [1]), tf.squeeze(x, [-4]), tf.expand_dims(x, -1), tf.expand_dims(x, 2),
        tf.tile(x, [2, 1, 3, 1]), tf.stack([x, x * 2.0], -1), tf.stack([x, x], 0), tf.stack([x, x], 2),
        tf.gather(x, [2, 0], axis=3), tf.gather(x, [[1, 0], [2, 2]], axis=1), tf.reverse(x, [1]), tf.reverse(x, [3]),
        tf.gather(pictures((5, 4), "m"), [1, 3]), tf.fill([2, 3], 1.5) * pictures((2, 3), "f"),
        tf.broadcast_to(x[:, :1], [3, 5, 6, 4]), tf.zeros_like(x) + x, tf.ones_like(x) - x,
        tf.cumsum(x, 3), tf.cumsum(x, 1, exclusive=True, reverse=True), tf.transpose(pictures((3, 4, 5), "s"), [2, 0, 1])]


@graph
def channel_shuffle(n):
    x = conv(pictures((None, 5, 6, 3)), n(3, 3, 3, 8))
    y = tf.reshape(x, [-1, 5, 6, 2, 4])
    y = tf.reshape(tf.transpose(y, [0, 1, 2, 4, 3]), [-1, 5, 6, 8])
    a, b = tf.split(y, 2, 3)
    return [tf.concat([conv(a, n(1, 1, 4, 4)), b], 3)]


@graph
def depths(n):
    x = conv(pictures((2, 4, 6, 3)), n(3, 3, 3, 8))
    return [raw.DepthToSpace(input=x, block_size=2), raw.SpaceToDepth(input=x, block_size=2),
            raw.SpaceToBatchND(input=pictures((2, 6, 4), "s"), block_shape=[2], paddings=[[1, 1]])]


@graph
def arg_maxima(n):
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    values, indices = tf.nn.top_k(tf.reshape(x, [2, -1]), 3)
    return [tf.argmax(x, 3), tf.argmax(x, 1), tf.argmin(x, -1, output_type=tf.int32), values, indices,
            tf.one_hot(tf.argmax(x, 3), 4, 2.0, -1.0)]


@graph
def numbers(n):
    """Casts and chains of whole numbers."""
    x = v1.placeholder(tf.int32, (2, 3), name="x")
    f = pictures((2, 3), "f")
    return [tf.cast(x, tf.float32) * 0.5, tf.cast(f * 20.0, tf.int32), x + 3, x * x - 7, tf.maximum(x, 5), x // 4,
            x % 4, tf.cast(f * 20.0, tf.int64), tf.cast(f, tf.float64) * 3.0, tf.cast(f > 0, tf.uint8),
            tf.cast(tf.cast(f, tf.float16), tf.float32)]


@graph
def ranges(n):
    x = pictures((None, 4))
    rows = tf.cast(tf.range(tf.shape(x)[0]), tf.float32)
    return [x * tf.expand_dims(rows, 1), x + tf.cast(tf.rank(x), tf.float32), x / tf.cast(tf.size(x), tf.float32)]


# ---- matrices ----


@graph
def matrices(n):
    a, b = pictures((3, 4), "a"), pictures((4, 3), "b")
    c, d = pictures((2, 3, 4), "c"), pictures((2, 3, 4), "d")
    return [tf.matmul(a, n(4, 5)), tf.matmul(a, n(5, 4), transpose_b=True), tf.matmul(b, n(4, 2), transpose_a=True),
            tf.matmul(b, n(2, 4), transpose_a=True, transpose_b=True), tf.matmul(a, b),
            tf.matmul(c, d, transpose_b=True), tf.matmul(c, d, transpose_a=True), raw.BatchMatMulV2(x=c, y=n(4, 6)),
            raw.BatchMatMul(x=c, y=n(2, 4, 6)), tf.nn.bias_add(tf.matmul(a, n(4, 5)), n(5)),
            tf.tensordot(c, n(4, 5), [[2], [0]])]


# ---- files ----


@graph
def constants(n):
    x = pictures((2, 3))
    out = []
    for kind in (tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64,
                 tf.bool, tf.uint32, tf.uint64):
        out += [tf.cast(tf.constant(v.astype(kind.as_numpy_dtype), kind), tf.float32) + x for v in (np.array([[1, 0, 3], [0, 1, 2]]), np.array(1))]
        out += [tf.cast(repeated(kind, [2, 3], [1, 0, 1, 1]), tf.float32) + x]
    return out


def repeated(kind, shape, values):
    """A constant in typed values, fewer than its elements; the last one repeats."""
    p = tf.compat.v1.AttrValue().tensor
    p.dtype = kind.as_datatype_enum
    for d in shape:
        p.tensor_shape.dim.add().size = d
    if kind in (tf.float16, tf.bfloat16):
        p.half_val.extend(np.array(values, kind.as_numpy_dtype).view("u2").tolist())
    else:
        field = {tf.float32: "float_val", tf.float64: "double_val", tf.int64: "int64_val", tf.bool: "bool_val",
                 tf.uint32: "uint32_val", tf.uint64: "uint64_val"}.get(kind, "int_val")
        getattr(p, field).extend(values)
    node = v1.get_default_graph().create_op("Const", [], [kind], attrs={
        "value": v1.AttrValue(tensor=p), "dtype": v1.AttrValue(type=kind.as_datatype_enum)})
    return node.outputs[0]


@graph
def dequantized(n):
    x, out = pictures((4, 6)), []
    for kind in tf.quint8, tf.qint8, tf.quint16, tf.qint16:
        info = np.iinfo(kind.name.replace("q", ""))
        q = packed(n(4, 6, low=info.min, high=info.max).astype(info.dtype), kind)
        for mode in "MIN_COMBINED", "MIN_FIRST", "SCALED":
            for low, high in ((-1.3, 2.1), (0.4, 3.0), (-3.0, -0.5), (0.0, 6.0)):
                out.append(x + raw.Dequantize(input=q, min_range=low, max_range=high, mode=mode))
        out.append(x + raw.Dequantize(input=q, min_range=-n(6, low=.1), max_range=n(6, low=.1), mode="SCALED", axis=1))
        out.append(x + raw.Dequantize(input=q, min_range=-1., max_range=1., mode="SCALED", narrow_range=True))
    return out


def packed(values, kind):
    p = v1.AttrValue().tensor
    p.dtype = kind.as_datatype_enum
    for d in values.shape:
        p.tensor_shape.dim.add().size = d
    p.tensor_content = values.tobytes()
    node = v1.get_default_graph().create_op("Const", [], [kind], attrs={
        "value": v1.AttrValue(tensor=p), "dtype": v1.AttrValue(type=kind.as_datatype_enum)})
    return node.outputs[0]


@graph
def fake_quantized(n):
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    f = raw.FakeQuantWithMinMaxVars
    return [f(inputs=x, min=-1.0, max=1.5), f(inputs=x, min=0.0, max=6.0, num_bits=4),
            f(inputs=x, min=-2.0, max=2.0, narrow_range=True), f(inputs=x, min=.5, max=3.0),
            raw.FakeQuantWithMinMaxArgs(inputs=x, min=-3.0, max=2.0),
            raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=-n(4, low=.5), max=n(4, low=.5))]


@graph
def fused(n):
    """What the graph optimiser writes; its names begin with an underscore, so nodes are given others."""
    x = pictures()
    make = v1.get_default_graph().create_op
    T, S, N = (lambda t: v1.AttrValue(type=t), lambda s: v1.AttrValue(s=s.encode()), lambda i: v1.AttrValue(i=i))

    def node(op, a, w, args, ops, **more):
        attrs = {"T": T(1), "num_args": N(len(args)), "fused_ops": v1.AttrValue(
            list=v1.AttrValue.ListValue(s=[o.encode() for o in ops])), **more}
        return make(op, [a, tf.constant(w)] + [tf.constant(v) for v in args], [tf.float32], attrs=attrs,
                    name=op[1:]).outputs[0]

    window = {"strides": v1.AttrValue(list=v1.AttrValue.ListValue(i=[1, 2, 2, 1])), "padding": S("SAME")}
    conv2d = dict(window, TArgs=v1.AttrValue(list=v1.AttrValue.ListValue(type=[1])), num_host_args=N(0))
    w, b = n(3, 3, 6, 4), n(4)
    out = [node("_FusedConv2D", x, w, [b], ops, **conv2d) for ops in (
        ["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "Relu6"], ["BiasAdd", "Elu"])]
    out.append(node("_FusedConv2D", x, w, [b], ["BiasAdd", "LeakyRelu"], leakyrelu_alpha=v1.AttrValue(f=.3), **conv2d))
    out.append(node("_FusedConv2D", x, w, [n(4), n(4), n(4), n(4, low=.2)], ["FusedBatchNorm", "Relu"],
                    epsilon=v1.AttrValue(f=1e-2), **dict(conv2d, TArgs=v1.AttrValue(
                        list=v1.AttrValue.ListValue(type=[1] * 4)))))
    out.append(node("_FusedDepthwiseConv2dNative", x, n(3, 3, 6, 1), [n(6)], ["BiasAdd", "Relu6"], **window))
    out.append(node("_FusedMatMul", pictures((2, 5), "m"), n(5, 4), [b], ["BiasAdd", "Relu"]))
    return out


@graph
def no_shape(n):
    x = v1.placeholder(tf.float32, None, name="x")
    return [tf.nn.relu(conv(x, n(3, 3, 6, 4), 2))]


@graph
def open_batch(n):
    x = pictures((None, 8, 8, 3))
    y = tf.nn.relu(tf.nn.bias_add(conv(x, n(3, 3, 3, 4), 2), n(4)))
    return [tf.nn.softmax(tf.matmul(tf.reshape(y, [-1, 64]), n(64, 10)))]


@graph
def in_and_out(n):
    """Several inputs, several outputs, control inputs, chains of identities."""
    b, a = pictures((2, 4, 4, 3), "second_made_first"), pictures((2, 8), "another")
    with tf.control_dependencies([tf.no_op(), v1.assert_positive(tf.constant(1))]):
        y = tf.identity(tf.identity(conv(b, n(3, 3, 3, 2))))
    y, z = tf.identity_n([y, a])
    z = tf.stop_gradient(raw.CheckNumerics(tensor=z, message="?"))
    return [tf.matmul(z, n(8, 3)), tf.identity(y), a - 1.0]


@graph
def ssd_heads(n):
    """Box and class heads as the object detection API has them, less the decoding."""
    x = pictures((None, 32, 32, 3))
    f = tf.nn.relu6(norm(conv(x * (2.0 / 255.0) - 1.0, n(3, 3, 3, 8), 2), n, 8))
    boxes, scores = [], []
    for _ in range(2):
        f = tf.nn.relu6(norm(raw.DepthwiseConv2dNative(input=f, filter=n(3, 3, 8, 1), strides=[1, 2, 2, 1],
                                                       padding="SAME"), n, 8))
        size = tf.shape(f)
        b, s = tf.nn.bias_add(conv(f, n(1, 1, 8, 12)), n(12)), tf.nn.bias_add(conv(f, n(1, 1, 8, 9)), n(9))
        boxes.append(tf.reshape(b, tf.stack([size[0], size[1] * size[2] * 3, 1, 4])))
        scores.append(tf.reshape(s, tf.stack([size[0], size[1] * size[2] * 3, 3])))
    return [tf.squeeze(tf.concat(boxes, 1), 2, name="boxes"), tf.sigmoid(tf.concat(scores, 1))]


@graph
def ssd_decoded(n):
    """The decoding of boxes by anchors, class by class suppressed."""
    raw_boxes, scores = pictures((1, 50, 4), "raw"), pictures((1, 50), "scores")
    anchors = tf.constant(n(50, 4, low=.1, high=.9))
    y, x, h, w = tf.unstack(tf.transpose(tf.reshape(raw_boxes, [-1, 4])))
    ay, ax, ah, aw = tf.unstack(tf.transpose(anchors))
    y, x, h, w = y / 10. * ah + ay, x / 10. * aw + ax, tf.exp(h / 5.) * ah, tf.exp(w / 5.) * aw
    boxes = tf.transpose(tf.stack([y - h / 2., x - w / 2., y + h / 2., x + w / 2.]))
    keep = tf.image.non_max_suppression(boxes, tf.reshape(scores, [-1]), 10, 0.5, 0.1)
    return [boxes, tf.gather(boxes, keep)]


# ---- Keras ----

KERAS = {"MobileNet": 128, "MobileNetV2": 96, "MobileNetV3Small": 96, "MobileNetV3Large": 96, "ResNet50": 64,
         "ResNet50V2": 64, "InceptionV3": 96, "InceptionResNetV2": 96, "Xception": 96, "DenseNet121": 64,
         "NASNetMobile": 96, "EfficientNetB0": 64, "EfficientNetV2B0": 64, "VGG16": 48, "ConvNeXtTiny": 64}


def keras_net(name):
    make = getattr(tf.keras.applications, name)
    tf.keras.utils.set_random_seed(3)
    size = KERAS[name]
    # random scores behind a softmax are nearly equal: judged before it
    net = make(weights=None, input_shape=(size, size, 3), classes=37, classifier_activation=None)
    for layer in net.layers:  # statistics as training leaves them, not 0 and 1
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            names = [w.name for w in layer.weights]
            layer.set_weights([np.random.uniform(.5, 1.5, w.shape) if n in ("gamma", "moving_variance")
                               else .1 * np.random.randn(*w.shape) for n, w in zip(names, layer.get_weights())])
    run = tf.function(lambda x: net(x, training=False)).get_concrete_function(
        tf.TensorSpec([None, size, size, 3], tf.float32))
    return convert_variables_to_constants_v2(run).graph.as_graph_def(), {"batch": 2}


# ---- the judge ----


def made(name):
    with tf.Graph().as_default() as g:
        for k, y in enumerate(GRAPHS[name](Noise())):
            tf.identity(y, name="output%d" % k)
        return g.as_graph_def()


def leaves(definition):
    """The outputs of a graph made here; of Keras's the nodes that no other reads."""
    names = [node.name for node in definition.node]
    made_here = [n for n in ("output%d" % k for k in range(len(names))) if n in names]
    read = {i.split(":")[0].lstrip("^") for node in definition.node for i in node.input}
    return made_here or [n.name for n in definition.node if n.name not in read and n.op not in ("NoOp", "Const")]


def fed(g, names):
    random, given = np.random.RandomState(7), {}
    for node in g.get_operations():
        if node.type != "Placeholder":
            continue
        t = node.outputs[0]
        shape = [2, 9, 11, 6] if t.shape.rank is None else [d or (2 if k == 0 else 8) for k, d in enumerate(t.shape)]
        kind = t.dtype.as_numpy_dtype
        given[node.name] = (random.rand(*shape) * 2 - 1 if t.dtype.is_floating
                            else random.randint(0, 100, shape)).astype(kind)
    return given


def judge(args, name, work):
    definition = keras_net(name)[0] if name in KERAS else made(name)
    path = os.path.join(args.keep or work, name + ".pb")
    with open(path, "wb") as out:
        out.write(definition.SerializeToString())
    names = leaves(definition)
    with tf.Graph().as_default() as g, v1.Session() as session:
        tf.import_graph_def(definition, name="")
        given = fed(g, names)
        want = session.run([n + ":0" for n in names], {k + ":0": v for k, v in given.items()})
    options = ["--option", "shape=9,11,6"] if name == "no_shape" else []
    net = os.path.join(work, "net.cnr")
    done = subprocess.run([args.cnnrun, "import", path, "-o", net] + options, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    got = run_ours(args.cnnrun, net, given, work)
    if len(got) != len(want):
        raise ValueError("%d outputs, TensorFlow has %d" % (len(got), len(want)))
    worst, largest, faults = 0.0, 0.0, []
    for k, (a, b) in enumerate(zip(got, want)):
        a, b = np.asarray(a), np.asarray(b)
        largest = max(largest, float(np.abs(b.astype("f8")).max()) if b.size else 0)
        d = difference(a, b)
        if not d <= LIMITS.get(name, args.limit):
            faults.append("%s: %s %s, TensorFlow %s %s: %.2g" % (names[k], a.shape, a.dtype, b.shape, b.dtype, d))
        worst = max(worst, d)
    if faults:
        raise ValueError("\n".join(faults))
    return worst, largest


def run_ours(cnnrun, net, given, work):
    paths = []
    for k, value in enumerate(given.values()):
        paths.append(os.path.join(work, "in%d.npy" % k))
        np.save(paths[-1], value)
    prefix = os.path.join(work, "out")
    done = subprocess.run([cnnrun, "--trust", os.path.join(HERE, "outputs.lua"), net, prefix] + paths,
                          capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    out = []
    while os.path.exists("%s%d.npy" % (prefix, len(out) + 1)):
        out.append(np.load("%s%d.npy" % (prefix, len(out) + 1)))
    return out


def difference(a, b):
    if a.shape != b.shape or (a.dtype.kind == "f") != (b.dtype.kind == "f"):
        return float("inf")
    if not b.size:
        return 0.0
    a, b = np.asarray(a, "f8"), np.asarray(b, "f8")
    worst = np.abs(a - b).max() / (np.abs(b).max() or 1)
    return float(worst) if np.isfinite(worst) else float("inf")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keras", action="store_true", help="Keras's nets, in place of the made-up graphs")
    parser.add_argument("--cnnrun", default=os.path.join(ROOT, "build", "cnnrun"))
    parser.add_argument("--limit", type=float, default=1e-4)
    parser.add_argument("--keep", metavar="DIR", help="leave the graphs here")
    args = parser.parse_args()
    names = [n for n in (KERAS if args.keras else GRAPHS)
             if not args.names or any(part in n for part in args.names)]
    failed = 0
    for k, name in enumerate(names, 1):
        with tempfile.TemporaryDirectory() as work:
            try:
                worst, largest = judge(args, name, work)
                if not largest:
                    raise ValueError("nothing but zeros")
                print("ok %d - %s: %.2g (largest value %.3g)" % (k, name, worst, largest), flush=True)
            except Exception as e:  # a refusal is a failure to tell of, not a reason to stop
                print("not ok %d - %s\n# %s" % (k, name, str(e).replace("\n", "\n# ")), flush=True)
                failed += 1
    print("1..%d" % len(names))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
