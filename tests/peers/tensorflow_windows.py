"""Graphs for tensorflow_compare.py: windows over pictures, and normalisation."""
import tensorflow as tf

from tensorflow_graphs import conv, graph, pictures, raw, v1

# ---- windows ----


@graph
def conv_paddings(n):
    """Convolutions by padding, stride and window."""
    x = pictures()
    out = []
    for padding in "SAME", "VALID":
        for stride in 1, 2, 3:
            for k in (3, 3), (1, 1), (2, 5):
                out.append(conv(x, n(*k, 6, 4), stride, padding))
    return out


@graph
def conv_explicit(n):
    """A convolution with explicit padding."""
    x = pictures()
    return [conv(x, n(3, 3, 6, 5), 2, "EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 3, 0, 0])]


@graph
def conv_dilated(n):
    """Dilated convolutions."""
    x = pictures((1, 12, 13, 4))
    return [
        raw.Conv2D(input=x, filter=n(3, 3, 4, 5), strides=[1] * 4, padding=p, dilations=[1, 2, 3, 1])
        for p in ("SAME", "VALID")
    ]


@graph
def conv_dilated_by_batch(n):
    """A dilated convolution as space to batch and back."""
    x = pictures((1, 12, 13, 4))
    y = raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[2, 2], [2, 3]])
    y = conv(y, n(3, 3, 4, 5), 1, "VALID")
    return [tf.nn.relu(raw.BatchToSpaceND(input=y, block_shape=[2, 2], crops=[[0, 0], [0, 1]]))]


@graph
def conv_dilated_one_axis(n):
    """A dilated convolution of one axis as space to batch and back."""
    x = pictures((2, 15, 3))
    y = raw.SpaceToBatchND(input=x, block_shape=[3], paddings=[[3, 3]])
    y = tf.nn.conv1d(y, n(3, 3, 4), 1, "VALID")
    return [raw.BatchToSpaceND(input=y, block_shape=[3], crops=[[0, 0]])]


@graph
def conv_dilated_open_batch(n):
    """A dilated convolution as space to batch, with an open batch."""
    x = pictures((None, 12, 12, 4))
    y = raw.SpaceToBatchND(input=x, block_shape=[2, 2], paddings=[[2, 2], [2, 2]])
    y = conv(y, n(3, 3, 4, 5), 1, "VALID")
    return [raw.BatchToSpaceND(input=y, block_shape=[2, 2], crops=[[0, 0], [0, 0]])]


@graph
def conv_grouped(n):
    """A convolution of several groups."""
    return [conv(pictures(), n(3, 3, 2, 9), 1, "SAME")]


@graph
def depthwise(n):
    """Depthwise convolutions."""
    x = pictures()
    return [
        raw.DepthwiseConv2dNative(input=x, filter=n(3, 3, 6, m), strides=[1, s, s, 1], padding=p)
        for m in (1, 3) for s in (1, 2) for p in ("SAME", "VALID")
    ] + [
        raw.DepthwiseConv2dNative(
            input=x, filter=n(3, 3, 6, 1), strides=[1, 1, 1, 1], padding="SAME", dilations=[1, 2, 2, 1])
    ]


@graph
def conv_transposed(n):
    """Transposed convolutions by window, stride and size."""
    x = pictures((2, 5, 6, 3))
    out = []
    for k, s, p, h, w in ((3, 2, "SAME", 10, 12), (3, 2, "SAME", 9, 11), (3, 2, "VALID", 11, 13),
                          (3, 2, "VALID", 12, 14), (2, 2, "VALID", 10, 12), (4, 3, "SAME", 14, 17),
                          (1, 2, "SAME", 9, 12), (5, 1, "SAME", 5, 6)):
        out.append(
            raw.Conv2DBackpropInput(input_sizes=[2, h, w, 4],
                                    filter=n(k, k, 4, 3),
                                    out_backprop=x,
                                    strides=[1, s, s, 1],
                                    padding=p))
    return out


@graph
def conv_transposed_open_batch(n):
    """A transposed convolution whose size has an open batch."""
    x = pictures((None, 5, 6, 3))
    size = tf.stack([tf.shape(x)[0], 10, 12, 4])
    y = raw.Conv2DBackpropInput(input_sizes=size,
                                filter=n(3, 3, 4, 3),
                                out_backprop=x,
                                strides=[1, 2, 2, 1],
                                padding="SAME")
    return [tf.nn.bias_add(y, n(4))]


@graph
def conv_transposed_open_sizes(n):
    """Transposed convolutions whose sizes are all open."""
    x = pictures((None, None, None, 3))
    s = tf.shape(x)
    out = []
    for k, stride, padding, over in (4, 2, "SAME", 0), (3, 2, "VALID", 1), (2, 3, "VALID", 0):
        size = tf.stack([s[0], s[1] * stride + over, s[2] * stride + over, 4])
        out.append(
            raw.Conv2DBackpropInput(
                input_sizes=size,
                filter=n(k, k, 4, 3),
                out_backprop=x,
                strides=[1, stride, stride, 1],
                padding=padding))
    return out


@graph
def conv_nchw(n):
    """A convolution in NCHW, which only some TensorFlow runs."""
    x = pictures(
        (2, 6, 9, 11))  # the processor's own TensorFlow runs no NCHW convolution: transposed round it
    w, b = n(3, 3, 6, 4), n(4)
    y = raw.Conv2D(input=x, filter=w, strides=[1, 1, 2, 2], padding="SAME", data_format="NCHW")
    y = raw.BiasAdd(value=y, bias=b, data_format="NCHW")
    return [
        raw.MaxPool(input=tf.nn.relu(y),
                    ksize=[1, 1, 2, 2],
                    strides=[1, 1, 2, 2],
                    padding="VALID",
                    data_format="NCHW")
    ]


@graph
def bias_nchw(n):
    """Biases in NCHW, of several ranks."""
    return [
        raw.BiasAdd(value=pictures((2, 6, 3, 4)), bias=n(6), data_format="NCHW"),
        raw.BiasAdd(value=pictures((2, 6), "m"), bias=n(6)),
        raw.BiasAdd(value=pictures((2, 5, 6), "s"), bias=n(6)),
        raw.BiasAdd(value=pictures((2, 3, 4, 5, 6), "v"), bias=n(6)),
        raw.BiasAdd(value=pictures((2, 6, 5), "t"), bias=n(6), data_format="NCHW")
    ]


@graph
def conv_1d(n):
    """Convolution and pooling of one axis."""
    x = pictures((2, 20, 3))
    y = tf.nn.conv1d(x, n(5, 3, 8), stride=2, padding="SAME")
    y = tf.nn.relu(tf.nn.bias_add(y, n(8)))
    y = tf.nn.pool(y, [2], "MAX", padding="VALID", strides=[2])
    return [tf.reshape(y, [2, -1])]


@graph
def conv_3d(n):
    """Convolution and pooling of three axes."""
    x = pictures((1, 5, 6, 7, 3))
    y = raw.Conv3D(input=x, filter=n(3, 2, 3, 3, 4), strides=[1, 1, 2, 1, 1], padding="SAME")
    y = tf.nn.relu(tf.nn.bias_add(y, n(4)))
    a = raw.MaxPool3D(input=y, ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="SAME")
    b = raw.AvgPool3D(input=y, ksize=[1, 2, 2, 2, 1], strides=[1, 1, 1, 1, 1], padding="SAME")
    return [a, b, tf.reduce_mean(y, [1, 2, 3]), tf.concat([y, y], 4), tf.reshape(y, [1, -1])]


@graph
def pools(n):
    """Poolings by kind, window, stride and padding."""
    x = pictures((2, 10, 13, 3))
    return [
        op(**{value: x}, ksize=[1, k, k, 1], strides=[1, s, s, 1], padding=p)
        for op, value in ((raw.MaxPool, "input"), (raw.AvgPool, "value"))
        for k, s in ((2, 2), (3, 2), (3, 1), (2, 3)) for p in ("SAME", "VALID")
    ] + [
        raw.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
        raw.MaxPool(input=x,
                    ksize=[1, 3, 3, 1],
                    strides=[1, 2, 2, 1],
                    padding="EXPLICIT",
                    explicit_paddings=[0, 0, 1, 0, 1, 1, 0, 0]),
        raw.MaxPool(input=x, ksize=[1, 1, 1, 3], strides=[1, 1, 1, 3], padding="VALID")
    ]


@graph
def resizes(n):
    """Resizes by method, size and grid."""
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
    return [
        raw.ResizeBicubic(images=x, size=[10, 13], half_pixel_centers=True),
        raw.ResizeBicubic(images=x, size=[7, 9])
    ]


@graph
def resize_open(n):
    """Resizes to sizes that follow from open ones."""
    x = pictures((None, None, None, 3))
    y = conv(x, n(3, 3, 3, 4), 2)
    y = raw.ResizeNearestNeighbor(images=y, size=tf.shape(y)[1:3] * 2, half_pixel_centers=True)
    return [raw.ResizeBilinear(images=y, size=tf.shape(x)[1:3])]


@graph
def resize_of_bytes(n):
    """A resize of a picture of bytes."""
    x = v1.placeholder(tf.uint8, (1, 6, 6, 3), name="x")
    return [raw.ResizeBilinear(images=tf.cast(x, tf.float32), size=[4, 4]) / 255.0]


@graph
def response_normalisation(n):
    """Local response normalisation."""
    x = conv(pictures((1, 5, 5, 3)), n(3, 3, 3, 16))
    return [raw.LRN(input=x, depth_radius=2, bias=1.0, alpha=1e-1, beta=0.75), raw.LRN(input=x)]


# ---- normalisation ----


def norm(x, n, c, op=raw.FusedBatchNormV3, **more):
    """A fused batch normalisation of c channels."""
    return op(x=x,
              scale=n(c, low=0.5),
              offset=n(c),
              mean=n(c),
              variance=n(c, low=0.2, high=2.0),
              is_training=False,
              **more)[0]


@graph
def batch_norms(n):
    """Fused batch normalisations of all versions."""
    y = conv(pictures(), n(3, 3, 6, 4))
    return [
        norm(y, n, 4, raw.FusedBatchNorm, epsilon=1e-3),
        norm(y, n, 4, raw.FusedBatchNormV2),
        norm(y, n, 4, raw.FusedBatchNormV3, epsilon=1.1e-5),
        norm(pictures((2, 3, 4, 5), "z"), n, 5)
    ]


@graph
def batch_norm_nchw(n):
    """A batch normalisation in NCHW."""
    return [norm(pictures((2, 6, 3, 4)), n, 6, data_format="NCHW")]


@graph
def batch_norm_3d(n):
    """A batch normalisation of three axes."""
    return [norm(pictures((2, 3, 4, 5, 6)), n, 6, data_format="NDHWC")]


@graph
def batch_norm_unfused(n):
    """Batch normalisations written of other operators."""
    y = conv(pictures(), n(3, 3, 6, 4))
    mean, var, gamma, beta = (tf.constant(n(4)), tf.constant(n(4, low=0.3)), tf.constant(n(4)),
                              tf.constant(n(4)))
    scale = tf.math.rsqrt(var + 1e-3) * gamma
    a = y * scale + (beta - mean * scale)
    matrix = tf.matmul(pictures((2, 5), "m"), n(5, 4))
    return [
        tf.nn.relu6(a),
        tf.nn.batch_normalization(matrix, mean, var, beta, gamma, 1e-3),
        raw.AddV2(x=scale * y, y=beta),
        raw.Sub(x=beta, y=y)
    ]


def in_training(n, flag):
    """A branch for training, chosen by the flag."""
    y = conv(pictures(), n(3, 3, 6, 4))
    y = v1.cond(flag, lambda: tf.nn.dropout(y, rate=0.4) * 3.0, lambda: tf.identity(y))
    z = v1.cond(flag, lambda: tf.constant(n(4)), lambda: tf.constant(n(4)))
    return [tf.nn.relu(y + z)]


@graph
def training_switch_default(n):
    """A branch for training, off by default."""
    return in_training(n, v1.placeholder_with_default(False, [], name="is_training"))


@graph
def training_switch_constant(n):
    """A branch for training by a constant."""
    flag = tf.constant(True)
    return in_training(n, tf.logical_not(flag))


@graph
def training_switch_nested(n):
    """Branches for training inside each other."""
    flag = v1.placeholder_with_default(False, [], name="is_training")
    x = pictures((2, 4))
    y = v1.cond(flag, lambda: x * 2.0,
                lambda: v1.cond(tf.logical_not(flag), lambda: x + 5.0, lambda: x - 1.0))
    return [y * y]


@graph
def dropout_off(n):
    """Dropout that a default switches off."""
    keep = v1.placeholder_with_default(1.0, [], name="keep_prob")
    x = pictures((2, 8))
    noise = v1.random_uniform(tf.shape(x), seed=1)
    return [tf.matmul(x / keep * tf.floor(noise + keep), n(8, 3))]


@graph
def dropout_off_by_rate(n):
    """Dropout whose rate is 0 by default."""
    rate = v1.placeholder_with_default(0.0, [], name="rate")
    x = conv(pictures(), n(3, 3, 6, 4))
    noise = v1.random_uniform(tf.shape(x), seed=1)
    mask = tf.cast(noise >= rate, tf.float32)
    return [x * (1.0 / (1.0 - rate)) * mask]


@graph
def layer_norm(n):
    """Layer normalisation written of other operators."""
    x = pictures((2, 7, 8))
    mean, var = tf.nn.moments(x, [-1], keepdims=True)
    y = (x - mean) * tf.math.rsqrt(var + 1e-6) * n(8) + n(8)
    p = conv(pictures((1, 5, 6, 3), "p"), n(3, 3, 3, 8))
    m, v = tf.nn.moments(p, [1, 2], keepdims=True)
    q = tf.math.squared_difference(p, m)
    return [y, (p - m) / tf.sqrt(v + 1e-5), q, tf.nn.l2_normalize(p, 3), tf.nn.l2_normalize(p, [1, 2])]


@graph
def group_norm(n):
    """Group normalisation written of other operators."""
    x = conv(pictures((2, 4, 6, 3)), n(3, 3, 3, 8))
    g = tf.reshape(x, [2, 4, 6, 2, 4])
    mean, var = tf.nn.moments(g, [1, 2, 4], keepdims=True)
    return [tf.reshape((g - mean) * tf.math.rsqrt(var + 1e-5), [2, 4, 6, 8]) * n(8)]


# ---- detection ----


def ssd_boxes(n, x):
    """Box and class heads as the object detection API has them, less the decoding."""
    f = tf.nn.relu6(norm(conv(x, n(3, 3, 3, 8), 2), n, 8))
    boxes, scores = [], []
    for _ in range(2):
        f = tf.nn.relu6(
            norm(
                raw.DepthwiseConv2dNative(input=f,
                                          filter=n(3, 3, 8, 1),
                                          strides=[1, 2, 2, 1],
                                          padding="SAME"), n, 8))
        size = tf.shape(f)
        b, s = tf.nn.bias_add(conv(f, n(1, 1, 8, 12)),
                              n(12)), tf.nn.bias_add(conv(f, n(1, 1, 8, 9)), n(9))
        boxes.append(tf.reshape(b, tf.stack([size[0], size[1] * size[2] * 3, 1, 4])))
        scores.append(tf.reshape(s, tf.stack([size[0], size[1] * size[2] * 3, 3])))
    return [tf.squeeze(tf.concat(boxes, 1), 2, name="boxes"), tf.sigmoid(tf.concat(scores, 1))]


@graph
def ssd_heads(n):
    """The heads of an SSD detector."""
    return ssd_boxes(n, pictures((None, 32, 32, 3)) * (2.0 / 255.0) - 1.0)


@graph
def ssd_cut(n):
    """As the object detection API exports it, each picture scaled in a loop: cut behind that."""
    image = v1.placeholder(tf.uint8, (None, None, None, 3), name="image_tensor")

    def scaled(x):
        """A picture scaled to 32 x 32."""
        return tf.squeeze(raw.ResizeBilinear(images=tf.expand_dims(x, 0), size=[32, 32]), 0)

    with v1.name_scope("Preprocessor"):
        x = v1.map_fn(scaled, tf.cast(image, tf.float32))
        x = tf.subtract(x * (2.0 / 255.0), 1.0, name="sub")
    return ssd_boxes(n, x)
