"""Graphs for tensorflow_compare.py: operators of tensors, their shapes and their numbers."""
import numpy as np
import tensorflow as tf

from tensorflow_graphs import conv, graph, pictures, raw, v1

# ---- element by element ----


@graph
def activations(n):
    """Every activation of a convolution."""
    x = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4))
    return [
        f(x) for f in (tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.selu, tf.nn.softplus, tf.nn.softsign,
                       tf.tanh, tf.sigmoid, tf.nn.leaky_relu, tf.exp, tf.abs, tf.negative, tf.square,
                       tf.floor, tf.math.ceil, tf.round, tf.sign, tf.math.erf, tf.sin, tf.cos,
                       tf.math.expm1, lambda v: tf.tan(v * 0.1), tf.atan, tf.nn.gelu,
                       lambda v: v * tf.sigmoid(v), tf.math.erfc, tf.sinh, tf.cosh, tf.asinh)
    ] + [
        tf.nn.leaky_relu(x, alpha=0.05),
        tf.math.log(tf.abs(x) + 0.1),
        tf.math.log1p(tf.abs(x)),
        tf.sqrt(tf.abs(x)),
        tf.math.rsqrt(tf.abs(x) + 0.1),
        tf.math.reciprocal(x + 20.0),
        tf.nn.crelu(x), x * tf.nn.relu6(x + 3.0) * (1 / 6.0),
        tf.clip_by_value(x, -0.3, 0.7),
        tf.nn.log_softmax(x)
    ]


@graph
def prelu_pieces(n):
    """PReLU as nets write it of other operators."""
    x, alpha = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4)), n(4)
    return [
        tf.nn.relu(x) + alpha * (x - tf.abs(x)) * 0.5,
        tf.maximum(0.0, x) + alpha * tf.minimum(0.0, x),
        tf.nn.relu(x) - alpha * tf.nn.relu(-x),
        tf.where(x > 0, x, x * alpha)
    ]


@graph
def binaries(n):
    """The outputs of operators of two tensors, with broadcasting; of comparisons, logic and selections, too.

    n: makes numbers at random of a shape.
    """
    x, y = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4)), pictures((1, 5, 6, 4), "y")
    out = [
        f(x, y) for f in (tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum, tf.minimum,
                          tf.math.squared_difference, tf.math.floordiv, tf.math.floormod)
    ]
    for other in (n(4), n(6, 4), n(6, 1), n(5, 6, 4), n(1, 1, 1,
                                                        4), n(1, 5, 6,
                                                              1), n(1), n(), n(5, 1,
                                                                               1), n(2, 1, 5, 6, 4)):
        out += [x - other, other - x]
    flags = [
        f(x, y) for f in (tf.greater, tf.greater_equal, tf.less, tf.less_equal, tf.equal, tf.not_equal)
    ]
    out += [tf.cast(f, tf.float32) for f in flags]
    out += [
        tf.cast(tf.logical_and(flags[0], tf.logical_not(flags[4])), tf.int32),
        tf.where(tf.logical_or(flags[0], flags[2]), x, y),
        tf.pow(tf.abs(x), 1.7),
        tf.add_n([x, y, x]),
        v1.where(x > 0, x, y)
    ]
    return out


@graph
def between_ranks(n):
    """Turned pictures meet tensors of other ranks."""
    x = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4))
    m = tf.reduce_mean(x, [1, 2])  # rank 2
    s = tf.reduce_mean(x, 1)  # rank 3
    return [
        x * m, x + s, x - tf.reduce_max(x, 3, keepdims=True), x * tf.reshape(m, [1, 1, 1, 4]),
        tf.expand_dims(x, 0) + x,
        tf.reduce_sum(x), x / tf.reduce_sum(x)
    ]


# ---- shapes ----


def reduced(n, functions):
    """These reductions of a convolution over many axes."""
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    out = []
    for f in functions:
        for axes in [1, 2], [2, 1], [3], [-1], [1], [0, 3], [1, 2, 3], [-3, -2], [0, 1, 2, 3], 2:
            out += [f(x, axes), f(x, axes, keepdims=True)]
    return out + [
        tf.reduce_mean(x, tf.constant([], tf.int32)),
        tf.cast(tf.reduce_any(x > 1.0, 3), tf.int32),
        tf.cast(tf.reduce_all(x > -9.0, [1, 2], keepdims=True), tf.int32)
    ]


@graph
def means_and_sums(n):
    """Means and sums over many axes."""
    return reduced(n, (tf.reduce_mean, tf.reduce_sum))


@graph
def extremes_and_products(n):
    """Maxima, minima and products over many axes."""
    return reduced(n, (tf.reduce_max, tf.reduce_min, tf.reduce_prod))


@graph
def flatten(n):
    """Reshapes of known sizes, between other operators."""
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    return [
        tf.reshape(x, [2, -1]),
        tf.matmul(tf.reshape(x, [-1, 120]), n(120, 7)),
        tf.reshape(x, [2, 30, 4]),
        tf.reshape(x, [2, 6, 5, 4]),
        tf.reshape(x, [2, 5, 6, 2, 2]),
        tf.reshape(x, [-1]),
        tf.reshape(x[0], [1, 5, 6, 4])
    ]


@graph
def flatten_open(n):
    """Reshapes that keep an open batch, by its shape."""
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
    """Concatenations along every axis."""
    x, y = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4)), pictures((2, 5, 6, 4), "y")
    out = []
    for a in range(-4, 4):
        out += [
            tf.concat([x, x * 2.0], a),
            tf.concat([x, y], a),
            raw.Concat(concat_dim=a % 4, values=[y, x])
        ]
    m, s = pictures((2, 3), "m"), pictures((2, 3, 4), "s")
    return out + [tf.concat([m, m], 1), tf.concat([s, s, s], -1), tf.concat([s], 1)]


@graph
def splits(n):
    """Splits along every axis, even and uneven."""
    x, out = conv(pictures((2, 6, 6, 3)), n(3, 3, 3, 6)), []
    for a in -1, 1, 2, 3:
        out += [v * 2.0 for v in tf.split(x, 3, a)]
        out += [v + 1.0 for v in tf.split(x, [1, 4, 1], a)]
        out += [v + 1.0 for v in tf.split(x, [1, -1], a)]
    return out + [v + 1.0 for v in tf.unstack(x, axis=3)] + [v + 1.0 for v in tf.unstack(x, axis=0)]


@graph
def split_many(n):
    """A split into 100 outputs, some of which are read."""
    x = pictures((2, 100))
    return [tf.add_n(tf.split(x, 100, 1)[::3])]


@graph
def softmaxes(n):
    """Softmax and its logarithm, of several ranks."""
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    return [
        tf.nn.softmax(x),
        tf.nn.log_softmax(x),
        tf.nn.softmax(pictures((2, 9), "m")),
        tf.nn.softmax(pictures((2, 3, 9), "s")),
        tf.nn.softmax(pictures((2, 3, 2, 2, 9), "v")),
        tf.nn.softmax(x, axis=1)
    ]


@graph
def pads(n):
    """Constant and mirrored padding."""
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    p = [[0, 0], [1, 2], [3, 0], [0, 1]]
    mirror = [[0, 0], [1, 2], [3, 0], [0, 0]]
    return [
        tf.pad(x, p),
        tf.pad(x, p, constant_values=2.5),
        tf.pad(x, mirror, "REFLECT"),
        tf.pad(x, mirror, "SYMMETRIC"),
        tf.pad(pictures((2, 3), "m"), [[1, 0], [0, 2]]),
        conv(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), n(3, 3, 4, 2), 2, "VALID"),
        tf.pad(x, [[1, 1], [2, 2], [0, 5], [1, 1]], "SYMMETRIC")
    ]


@graph
def slices(n):
    """Slices in all forms of Python's brackets."""
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    return [
        tf.slice(x, [0, 1, 2, 0], [2, 3, -1, 2]), x[:, 1:3], x[..., 1:3], x[:, ::2, ::-1, :], x[0],
        x[..., 0], x[:, 1, ..., 2:], x[:, tf.newaxis, 2, :], x[:, -1], x[:, -3:-1, -1:, ::-2],
        x[1, ..., tf.newaxis, 1], x[:, 4:0:-2], x[:, 5::-1], x[:, :, -2],
        pictures((7, ), "v")[2:5],
        pictures((3, 7), "m")[:, -1], x[:, 2:2]
    ]


@graph
def slices_open(n):
    """Slices of sizes that are known only at run time."""
    x = pictures((None, 5, 6, 3))
    s = tf.shape(x)
    return [
        tf.slice(x, [0, 0, 0, 1], tf.stack([s[0], 5, 6, 1])), x[:, :s[1] - 2, 1:s[2]],
        tf.slice(x, tf.stack([0, s[1] - 2, 0, 0]), [-1, 2, -1, -1])
    ]


@graph
def moves(n):
    """Transposes, alone and around other operators."""
    x = conv(pictures((1, 5, 6, 3)), n(3, 3, 3, 4))
    return [tf.transpose(x, p) for p in ([0, 3, 1, 2], [0, 2, 1, 3], [3, 2, 1, 0], [0, 1, 2, 3])] + [
        tf.transpose(tf.nn.relu(tf.transpose(x, [0, 3, 1, 2])), [0, 2, 3, 1]),
        tf.squeeze(x),
        tf.squeeze(tf.reduce_mean(x, [1, 2], keepdims=True), [1, 2]),
        tf.expand_dims(x, 0),
        tf.squeeze(x[:, :1], [1]),
        tf.squeeze(x, [-4]),
        tf.expand_dims(x, -1),
        tf.expand_dims(x, 2),
        tf.tile(x, [2, 1, 3, 1]),
        tf.stack([x, x * 2.0], -1),
        tf.stack([x, x], 0),
        tf.stack([x, x], 2),
        tf.gather(x, [2, 0], axis=3),
        tf.gather(x, [[1, 0], [2, 2]], axis=1),
        tf.reverse(x, [1]),
        tf.reverse(x, [3]),
        tf.gather(pictures((5, 4), "m"), [1, 3]),
        tf.fill([2, 3], 1.5) * pictures((2, 3), "f"),
        tf.broadcast_to(x[:, :1], [3, 5, 6, 4]),
        tf.zeros_like(x) + x,
        tf.ones_like(x) - x,
        tf.cumsum(x, 3),
        tf.cumsum(x, 1, exclusive=True, reverse=True),
        tf.transpose(pictures((3, 4, 5), "s"), [2, 0, 1])
    ]


@graph
def channel_shuffle(n):
    """ShuffleNet's shuffle, with an open batch."""
    x = conv(pictures((None, 5, 6, 3)), n(3, 3, 3, 8))
    y = tf.reshape(x, [-1, 5, 6, 2, 4])
    y = tf.reshape(tf.transpose(y, [0, 1, 2, 4, 3]), [-1, 5, 6, 8])
    a, b = tf.split(y, 2, 3)
    return [tf.concat([conv(a, n(1, 1, 4, 4)), b], 3)]


@graph
def depths(n):
    """Depth to space, space to depth and to batch."""
    x = conv(pictures((2, 4, 6, 3)), n(3, 3, 3, 8))
    return [
        raw.DepthToSpace(input=x, block_size=2),
        raw.SpaceToDepth(input=x, block_size=2),
        raw.SpaceToBatchND(input=pictures((2, 6, 4), "s"), block_shape=[2], paddings=[[1, 1]])
    ]


@graph
def arg_maxima(n):
    """Indices of largest elements, and the largest k."""
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    values, indices = tf.nn.top_k(tf.reshape(x, [2, -1]), 3)
    return [
        tf.argmax(x, 3),
        tf.argmax(x, 1),
        tf.argmin(x, -1, output_type=tf.int32), values, indices,
        tf.one_hot(tf.argmax(x, 3), 4, 2.0, -1.0)
    ]


@graph
def numbers(n):
    """Casts and chains of whole numbers."""
    x = v1.placeholder(tf.int32, (2, 3), name="x")
    f = pictures((2, 3), "f")
    return [
        tf.cast(x, tf.float32) * 0.5,
        tf.cast(f * 20.0, tf.int32), x + 3, x * x - 7,
        tf.maximum(x, 5), x // 4, x % 4,
        tf.cast(f * 20.0, tf.int64),
        tf.cast(f, tf.float64) * 3.0,
        tf.cast(f > 0, tf.uint8),
        tf.cast(tf.cast(f, tf.float16), tf.float32)
    ]


@graph
def ranges(n):
    """Ranges and ranks of an open batch."""
    x = pictures((None, 4))
    rows = tf.cast(tf.range(tf.shape(x)[0]), tf.float32)
    return [
        x * tf.expand_dims(rows, 1), x + tf.cast(tf.rank(x), tf.float32),
        x / tf.cast(tf.size(x), tf.float32)
    ]


# ---- matrices ----


@graph
def matrices(n):
    """Matrix products, transposed and batched."""
    a, b = pictures((3, 4), "a"), pictures((4, 3), "b")
    c, d = pictures((2, 3, 4), "c"), pictures((2, 3, 4), "d")
    return [
        tf.matmul(a, n(4, 5)),
        tf.matmul(a, n(5, 4), transpose_b=True),
        tf.matmul(b, n(4, 2), transpose_a=True),
        tf.matmul(b, n(2, 4), transpose_a=True, transpose_b=True),
        tf.matmul(a, b),
        tf.matmul(c, d, transpose_b=True),
        tf.matmul(c, d, transpose_a=True),
        raw.BatchMatMulV2(x=c, y=n(4, 6)),
        raw.BatchMatMul(x=c, y=n(2, 4, 6)),
        tf.nn.bias_add(tf.matmul(a, n(4, 5)), n(5)),
        tf.tensordot(c, n(4, 5), [[2], [0]])
    ]


@graph
def einsums(n):
    """Einsum's equations that occur in nets."""
    c, d = pictures((2, 3, 4), "c"), pictures((2, 5, 4), "d")
    q, k = pictures((None, 6, 2, 4), "q"), pictures((None, 5, 2, 4), "k")
    return [
        tf.einsum("bij,bkj->bik", c, d),
        tf.einsum("bij,bkj->kib", c, d),
        tf.einsum("bij,jk->bik", c, n(4, 2)),
        tf.einsum("...j,jk->...k", c, n(4, 2)),
        tf.einsum("bij,ijk->bk", c, n(3, 4, 2)),
        tf.einsum("i,j->ji", n(3), pictures((2, ), "v")),
        tf.einsum("btnh,bsnh->bnts", q, k),
        tf.einsum("abcd,cde->abe", q, n(2, 4, 7))
    ]


# ---- files ----


@graph
def constants(n):
    """Constants of every type."""
    x = pictures((2, 3))
    out = []
    for kind in (tf.float16, tf.bfloat16, tf.float64, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32,
                 tf.int64, tf.bool, tf.uint32, tf.uint64):
        out += [
            tf.cast(tf.constant(v.astype(kind.as_numpy_dtype), kind), tf.float32) + x
            for v in (np.array([[1, 0, 3], [0, 1, 2]]), np.array(1))
        ]
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
        field = {
            tf.float32: "float_val",
            tf.float64: "double_val",
            tf.int64: "int64_val",
            tf.bool: "bool_val",
            tf.uint32: "uint32_val",
            tf.uint64: "uint64_val"
        }.get(kind, "int_val")
        getattr(p, field).extend(values)
    node = v1.get_default_graph().create_op("Const", [], [kind],
                                            attrs={
                                                "value": v1.AttrValue(tensor=p),
                                                "dtype": v1.AttrValue(type=kind.as_datatype_enum)
                                            })
    return node.outputs[0]


@graph
def dequantized(n):
    """Constants that are dequantised."""
    x, out = pictures((4, 6)), []
    for kind in tf.quint8, tf.qint8, tf.quint16, tf.qint16:
        info = np.iinfo(kind.name.replace("q", ""))
        q = packed(n(4, 6, low=info.min, high=info.max).astype(info.dtype), kind)
        for mode in "MIN_COMBINED", "MIN_FIRST", "SCALED":
            for low, high in ((-1.3, 2.1), (0.4, 3.0), (-3.0, -0.5), (0.0, 6.0)):
                out.append(x + raw.Dequantize(input=q, min_range=low, max_range=high, mode=mode))
        out.append(x + raw.Dequantize(
            input=q, min_range=-n(6, low=0.1), max_range=n(6, low=0.1), mode="SCALED", axis=1))
        out.append(
            x +
            raw.Dequantize(input=q, min_range=-1.0, max_range=1.0, mode="SCALED", narrow_range=True))
    return out


def packed(values, kind):
    """A constant whose values are packed bytes of this type."""
    p = v1.AttrValue().tensor
    p.dtype = kind.as_datatype_enum
    for d in values.shape:
        p.tensor_shape.dim.add().size = d
    p.tensor_content = values.tobytes()
    node = v1.get_default_graph().create_op("Const", [], [kind],
                                            attrs={
                                                "value": v1.AttrValue(tensor=p),
                                                "dtype": v1.AttrValue(type=kind.as_datatype_enum)
                                            })
    return node.outputs[0]


@graph
def fake_quantized(n):
    """FakeQuant with several limits."""
    x = conv(pictures((2, 5, 6, 3)), n(3, 3, 3, 4))
    f = raw.FakeQuantWithMinMaxVars
    return [
        f(inputs=x, min=-1.0, max=1.5),
        f(inputs=x, min=0.0, max=6.0, num_bits=4),
        f(inputs=x, min=-2.0, max=2.0, narrow_range=True),
        f(inputs=x, min=0.5, max=3.0),
        raw.FakeQuantWithMinMaxArgs(inputs=x, min=-3.0, max=2.0),
        raw.FakeQuantWithMinMaxVarsPerChannel(inputs=x, min=-n(4, low=0.5), max=n(4, low=0.5))
    ]


@graph
def fused(n):
    """What the graph optimiser writes; its names begin with an underscore, so nodes are given others."""
    x = pictures()
    make = v1.get_default_graph().create_op
    T, S, N = (lambda t: v1.AttrValue(type=t), lambda s: v1.AttrValue(s=s.encode()),
               lambda i: v1.AttrValue(i=i))

    def node(op, a, w, args, ops, **more):
        """A fused node of that operator with its arguments."""
        attrs = {
            "T": T(1),
            "num_args": N(len(args)),
            "fused_ops": v1.AttrValue(list=v1.AttrValue.ListValue(s=[o.encode() for o in ops])),
            **more
        }
        return make(op, [a, tf.constant(w)] + [tf.constant(v) for v in args], [tf.float32],
                    attrs=attrs,
                    name=op[1:]).outputs[0]

    window = {
        "strides": v1.AttrValue(list=v1.AttrValue.ListValue(i=[1, 2, 2, 1])),
        "padding": S("SAME")
    }
    conv2d = dict(window, TArgs=v1.AttrValue(list=v1.AttrValue.ListValue(type=[1])), num_host_args=N(0))
    w, b = n(3, 3, 6, 4), n(4)
    out = [
        node("_FusedConv2D", x, w, [b], ops, **conv2d)
        for ops in (["BiasAdd"], ["BiasAdd", "Relu"], ["BiasAdd", "Relu6"], ["BiasAdd", "Elu"])
    ]
    out.append(
        node("_FusedConv2D",
             x,
             w, [b], ["BiasAdd", "LeakyRelu"],
             leakyrelu_alpha=v1.AttrValue(f=0.3),
             **conv2d))
    out.append(
        node("_FusedConv2D",
             x,
             w, [n(4), n(4), n(4), n(4, low=0.2)], ["FusedBatchNorm", "Relu"],
             epsilon=v1.AttrValue(f=1e-2),
             **dict(conv2d, TArgs=v1.AttrValue(list=v1.AttrValue.ListValue(type=[1] * 4)))))
    out.append(
        node("_FusedDepthwiseConv2dNative", x, n(3, 3, 6, 1), [n(6)], ["BiasAdd", "Relu6"], **window))
    out.append(node("_FusedMatMul", pictures((2, 5), "m"), n(5, 4), [b], ["BiasAdd", "Relu"]))
    return out


@graph
def no_shape(n):
    """An input without a shape."""
    x = v1.placeholder(tf.float32, None, name="x")
    return [tf.nn.relu(conv(x, n(3, 3, 6, 4), 2))]


@graph
def open_batch(n):
    """A net with an open batch."""
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
def ssd_decoded(n):
    """The decoding of boxes by anchors, class by class suppressed."""
    raw_boxes, scores = pictures((1, 50, 4), "raw"), pictures((1, 50), "scores")
    anchors = tf.constant(n(50, 4, low=0.1, high=0.9))
    y, x, h, w = tf.unstack(tf.transpose(tf.reshape(raw_boxes, [-1, 4])))
    ay, ax, ah, aw = tf.unstack(tf.transpose(anchors))
    y, x, h, w = y / 10.0 * ah + ay, x / 10.0 * aw + ax, tf.exp(h / 5.0) * ah, tf.exp(w / 5.0) * aw
    boxes = tf.transpose(tf.stack([y - h / 2.0, x - w / 2.0, y + h / 2.0, x + w / 2.0]))
    keep = tf.image.non_max_suppression(boxes, tf.reshape(scores, [-1]), 10, 0.5, 0.1)
    return [boxes, tf.gather(boxes, keep)]


@graph
def dropout_by_placeholder(n):
    """Dropout whose rate is an input."""
    keep = v1.placeholder(tf.float32, name="keep_prob")
    x = pictures((2, 8))
    noise = v1.random_uniform(tf.shape(x), seed=1)
    return [tf.matmul(x / keep * tf.floor(noise + keep), n(8, 3))]
