"""Draws ONNX nets by seed as people write them: a stem, stages of blocks, a head. Each block has several spellings (attention,
normalisations, activations, windows, gates), with odd sizes, strides and groups. random_onnx.py draws single operators."""
import numpy as np
from onnx import TensorProto as T, helper as h

import random_onnx
from random_onnx import Net, Skip

BLOCKS = {}


def block(kind, weight=1):
    """Registers a block: of an `image` [N, C, spatial...], of `tokens` [N, L, C], or what leads from one to the other."""
    def add(f):
        BLOCKS[f.__name__] = (f, kind, weight)
        return f
    return add


class Builder(Net):
    """Operators with their inputs checked; what they give is not an output of the net unless nothing reads it."""

    limit = 400000

    def op(self, name, *inputs, n_out=1, **attrs):
        """A node of these values or arrays."""
        inputs = [self.const(i) if isinstance(i, (np.ndarray, np.generic)) else i for i in inputs]
        return self.node(name, inputs, n_out, **attrs)

    def outs(self, name, *inputs, n_out, **attrs):
        """All outputs of a node."""
        self.op(name, *inputs, n_out=n_out, **attrs)
        return self.values[-n_out:]

    def scalar(self, x):
        """A number as a scalar or as a vector of one."""
        return np.full(self.pick([[], [], [1]]), x, "f4")

    def swap(self, name, a, b):
        """A commutative operator, its operands in any order."""
        return self.op(name, a, b) if self.chance() else self.op(name, b, a)

    def vector(self, c, scale=0.3, base=0.0):
        """A number a channel."""
        return (base + self.noise([c], scale)).astype("f4")

    def sizes_of(self, v, axes):
        """The sizes of some axes as a vector, written in one of two ways."""
        s = self.op("Shape", v)
        if len(axes) == 1 and self.chance():
            return self.op("Unsqueeze", self.op("Gather", s, np.int64(axes[0])), np.array([0])) if self.opset >= 13 else \
                self.op("Unsqueeze", self.op("Gather", s, np.int64(axes[0])), axes=[0])
        return self.op("Gather", s, np.array(axes, "i8"))

    def reshape(self, v, dims):
        """Reshapes; dims: sizes, or ("axis", i): the size of v's axis i, read from its shape where it is not fixed or by chance."""
        dims = [v.arrays[0].shape[d[1]] if isinstance(d, tuple) and v.fixed(d[1]) and self.chance(0.6) else d for d in dims]
        if not any(isinstance(d, tuple) for d in dims):
            return self.op("Reshape", v, np.array(dims, "i8"))
        parts = [self.sizes_of(v, [d[1]]) if isinstance(d, tuple) else self.const(np.array([d], "i8")) for d in dims]
        return self.op("Reshape", v, self.op("Concat", *parts, axis=0))

    def mean(self, v, axes, keep=1, name="ReduceMean"):
        """A reduction as the operator set has it."""
        axes = [a - v.rank if self.chance(0.4) and a >= 0 else a for a in axes]
        if self.opset >= (13 if name == "ReduceSum" else 18):
            return self.op(name, v, np.array(axes, "i8"), keepdims=keep)
        return self.op(name, v, axes=axes, keepdims=keep)

    def slice(self, v, axis, begin, end, step=1):
        """A slice of one axis."""
        return self.op("Slice", v, np.array([begin]), np.array([end]), np.array([axis]), np.array([step]))

    def halves(self, v, axis, n=2):
        """n equal parts along an axis, by Split, slices, or gathers of a reshape."""
        size = v.size(axis)
        if size % n:
            raise Skip
        part = size // n
        if self.chance():
            return [self.slice(v, axis, i * part, (i + 1) * part) for i in range(n)]
        if self.opset >= 18 and self.chance():
            return self.outs("Split", v, n_out=n, axis=axis, num_outputs=n)
        if self.opset >= 13:
            return self.outs("Split", v, np.array([part] * n), n_out=n, axis=axis)
        return self.outs("Split", v, n_out=n, axis=axis, split=[part] * n)

    def pads(self, v, amounts):
        """A pad; a list of begins and ends of all axes."""
        return self.op("Pad", v, np.array(amounts, "i8"), mode=self.pick(["constant", "constant", "reflect", "edge"]))


# ---- pieces ----

def conv(n, v, out, k=None, stride=1, group=1, dilation=1, bias=None, same=True):
    """A convolution with windows of one or several sizes."""
    s, c = v.rank - 2, v.size(1)
    if c % group or out % group:
        raise Skip
    k = k if isinstance(k, list) else [k or n.pick([1, 3])] * s
    stride = stride if isinstance(stride, list) else [stride] * s
    pad = [(x - 1) * dilation // 2 for x in k] if same else [0] * s
    end = [(x - 1) * dilation - p for x, p in zip(k, pad)] if same else [0] * s
    if any(v.least(2 + i) + pad[i] + end[i] < (k[i] - 1) * dilation + 1 for i in range(s)):
        raise Skip
    w = n.noise([out, c // group] + k, 1 / np.sqrt(c // group * np.prod(k)))
    how = {"auto_pad": "SAME_UPPER"} if same and n.chance(0.15) and dilation == 1 else {"pads": pad + end}
    bias = n.chance(0.6) if bias is None else bias
    return n.op("Conv", v, w, *([n.vector(out)] if bias else []), kernel_shape=k, strides=stride, dilations=[dilation] * s, group=group,
                **how)


def channel_norm(n, v):
    """Batch, instance, group or layer normalisation of channels, or a scale and a shift that are written out."""
    c, s = v.size(1), v.rank - 2
    how, one = n.whole(0, 5), [c] + [1] * s
    if how <= 1:
        return n.op("BatchNormalization", v, n.vector(c, .2, 1), n.vector(c), n.vector(c), (.5 + n.r.rand(c)).astype("f4"),
                    epsilon=float(n.pick([1e-5, 1e-3])))
    if how == 2:
        return n.op("InstanceNormalization", v, n.vector(c, .2, 1), n.vector(c), epsilon=1e-5)
    if how == 3:
        return n.swap("Add", n.swap("Mul", v, n.vector(c, .2, 1).reshape(one)), n.vector(c).reshape(one))
    if how == 4:  # a group normalisation as exporters before operator set 18 write it
        g = n.pick([g for g in (1, 2, 4, 8) if c % g == 0])
        r = n.op("Reshape", v, np.array([0, g, -1]))
        y = n.op("InstanceNormalization", r, np.ones(g, "f4"), np.zeros(g, "f4"), epsilon=1e-5)
        y = n.op("Reshape", y, n.op("Shape", v))
        return n.swap("Add", n.swap("Mul", y, n.vector(c, .2, 1).reshape(one)), n.vector(c).reshape(one))
    m = n.mean(v, [1])  # a layer normalisation of the channels of an image
    d = n.op("Sub", v, m)
    var = n.mean(n.op("Mul", d, d) if n.chance() else n.op("Pow", d, n.scalar(2)), [1])
    y = n.op("Div", d, n.op("Sqrt", n.op("Add", var, n.scalar(1e-5))))
    return n.swap("Add", n.swap("Mul", y, n.vector(c, .2, 1).reshape(one)), n.vector(c).reshape(one))


def act(n, v):
    """An activation in one of its spellings."""
    how = n.whole(0, 13)
    if how <= 2:
        return n.op(n.pick(["Relu", "LeakyRelu", "Elu", "Sigmoid", "Tanh"]), v)
    if how == 3:
        return n.swap("Mul", v, n.op("Sigmoid", v))
    if how <= 5:  # GELU with erf
        e = n.op("Erf", n.op("Div", v, n.scalar(1.4142135)) if n.chance() else n.swap("Mul", v, n.scalar(0.70710677)))
        e, order = n.swap("Add", e, n.scalar(1)), n.whole(0, 2)
        if order == 0:
            return n.swap("Mul", n.swap("Mul", v, e), n.scalar(0.5))
        return n.swap("Mul", v, n.swap("Mul", e, n.scalar(0.5))) if order == 1 else n.swap("Mul", n.swap("Mul", v, n.scalar(0.5)), e)
    if how == 6:  # with tanh
        cube = n.op("Pow", v, n.scalar(3)) if n.chance() else n.op("Mul", n.op("Mul", v, v), v)
        t = n.op("Tanh", n.swap("Mul", n.swap("Add", v, n.swap("Mul", cube, n.scalar(0.044715))), n.scalar(0.7978845608)))
        return n.swap("Mul", n.swap("Mul", v, n.scalar(0.5)), n.swap("Add", t, n.scalar(1)))
    if how == 7:  # hard swish written out
        six = n.op("Clip", n.swap("Add", v, n.scalar(3)), np.float32(0), np.float32(6))
        return n.op("Div", n.swap("Mul", v, six), n.scalar(6)) if n.chance() else n.swap("Mul", v, n.swap("Mul", six, n.scalar(1 / 6)))
    if how == 8:
        return n.swap("Mul", v, n.op("Tanh", n.op("Softplus", v)))
    if how == 9:
        return n.op("PRelu", v, n.vector(v.size(1), .1, .2).reshape([-1] + [1] * (v.rank - 2))) if v.rank > 2 else n.op("Relu", v)
    if how == 10:
        return n.swap("Mul", v, n.op("HardSigmoid", v, alpha=1 / 6))
    if how == 11:
        return n.swap("Mul", v, n.op("Sigmoid", n.swap("Mul", v, n.scalar(1.702))))
    if how == 12 and n.opset >= 20:
        return n.op("Gelu", v, approximate=n.pick(["none", "tanh"]))
    return n.op("Clip", v, np.float32(0), np.float32(6))


def layer_norm(n, v):
    """A layer or RMS normalisation of the last axis in one of its spellings."""
    c = v.size(v.rank - 1)
    g, b, how = n.vector(c, .2, 1), n.vector(c), n.whole(0, 3)
    if how == 0 and n.opset >= 17:
        return n.op("LayerNormalization", v, g, *([b] if n.chance(0.8) else []), axis=-1, epsilon=1e-5)
    rms = how == 1
    d = v if rms else n.op("Sub", v, n.mean(v, [v.rank - 1]))
    square = n.op("Mul", d, d) if n.chance() else n.op("Pow", d, n.scalar(2))
    root = n.op("Sqrt", n.swap("Add", n.mean(square, [v.rank - 1]), n.scalar(1e-5)))
    y = n.op("Div", d, root) if n.chance() else n.swap("Mul", d, n.op("Div", n.scalar(1), root) if n.chance() else n.op("Reciprocal", root))
    y = n.swap("Mul", y, g)
    return y if rms or n.chance(0.2) else n.swap("Add", y, b)


def linear(n, v, out, bias=None):
    """A product with a weight, and a bias."""
    c = v.size(v.rank - 1)
    y = n.op("MatMul", v, n.noise([c, out], c ** -.5))
    return n.swap("Add", y, n.vector(out)) if (n.chance(0.8) if bias is None else bias) else y


def gate(n, v):
    """Squeeze and excitation."""
    c, s = v.size(1), v.rank - 2
    m = n.op("GlobalAveragePool", v) if n.chance() else n.mean(v, list(range(2, v.rank)))
    less = max(1, c // n.pick([2, 4]))
    if n.chance():
        y = conv(n, act(n, conv(n, m, less, 1)), c, 1)
    else:
        y = linear(n, n.op("Relu", linear(n, n.op("Flatten", m), less)), c)
        y = n.reshape(y, [("axis", 0), c] + [1] * s)
    return n.swap("Mul", v, n.op(n.pick(["Sigmoid", "HardSigmoid"]), y))


def join(n, y, v):
    """A shortcut, with a scale a channel now and then."""
    if n.chance(0.2):
        y = n.swap("Mul", y, n.vector(y.size(1), .3).reshape([-1] + [1] * (y.rank - 2)) if y.rank > 3 else n.vector(y.size(y.rank - 1)))
    return n.swap("Add", y, v)


# ---- blocks of images ----

@block("image", 3)
def plain(n, v):
    y = conv(n, v, n.pick([8, 16, 17, 24, 33]), n.pick([1, 3, 3, 5]), n.pick([1, 1, 2]))
    return act(n, channel_norm(n, y) if n.chance(0.7) else y)


@block("image")
def odd_conv(n, v):
    """Windows, strides and dilations that differ by axis, without padding that keeps sizes."""
    s = v.rank - 2
    return conv(n, v, n.pick([3, 12, 20]), [n.pick([1, 2, 3, 5, 7]) for _ in range(s)], [n.pick([1, 2, 3]) for _ in range(s)],
                1, n.pick([1, 1, 2]), same=n.chance())


@block("image", 2)
def bottleneck(n, v):
    c = v.size(1)
    y = act(n, channel_norm(n, conv(n, v, max(4, c // 2), 1)))
    g = n.pick([g for g in (1, 1, 2, 4) if max(4, c // 2) % g == 0])
    y = act(n, channel_norm(n, conv(n, y, max(4, c // 2), 3, group=g)))
    y = conv(n, y, c, 1)
    y = n.op("Add", channel_norm(n, y), v)
    return n.op("Relu", y) if n.chance(0.7) else y


@block("image", 2)
def inverted(n, v):
    c, e = v.size(1), v.size(1) * n.pick([2, 3])
    y = act(n, channel_norm(n, conv(n, v, e, 1)))
    y = act(n, channel_norm(n, conv(n, y, e, n.pick([3, 5]), n.pick([1, 1, 1, 2]), group=e)))
    y = conv(n, gate(n, y) if n.chance() else y, c, 1)
    return join(n, y, v) if y.arrays[0].shape == v.arrays[0].shape else y


@block("image")
def convnext(n, v):
    """A depthwise convolution, then linear layers with channels last."""
    c, last = v.size(1), v.rank - 1
    y = conv(n, v, c, n.pick([5, 7]), group=c)
    y = n.op("Transpose", y, perm=[0] + list(range(2, v.rank)) + [1])
    y = linear(n, act_last(n, linear(n, layer_norm(n, y), 2 * c)), c)
    return join(n, n.op("Transpose", y, perm=[0, last] + list(range(1, last))), v)


def act_last(n, v):
    """An activation where channels are last: none that has a number a channel."""
    for _ in range(4):
        try:
            return act(n, v) if v.rank > 3 and n.chance(0.9) else n.swap("Mul", v, n.op("Sigmoid", v))
        except Skip:
            pass
    return n.op("Relu", v)


@block("image")
def shuffle(n, v):
    c, s = v.size(1), v.rank - 2
    g = n.pick([g for g in (2, 3, 4) if c % g == 0] or [1])
    a, b = n.halves(v, 1) if c % 2 == 0 else (v, v)
    y = n.op("Concat", a, conv(n, act(n, b), b.size(1), 3, group=b.size(1)), axis=1)
    if y.size(1) % g:
        raise Skip
    y = n.reshape(y, [("axis", 0), g, y.size(1) // g] + [("axis", 2 + i) for i in range(s)])
    y = n.op("Transpose", y, perm=[0, 2, 1] + list(range(3, 3 + s)))
    return n.reshape(y, [("axis", 0), -1] + [("axis", 3 + i) for i in range(s)])


@block("image")
def dense(n, v):
    parts = [v]
    for _ in range(n.whole(1, 3)):
        t = n.op("Concat", *parts, axis=1) if len(parts) > 1 else v
        parts.append(conv(n, act(n, channel_norm(n, t)), n.pick([5, 8, 16]), 3))
    return n.op("Concat", *parts, axis=1)


@block("image")
def inception(n, v):
    s = v.rank - 2
    pool = n.op(n.pick(["MaxPool", "AveragePool"]), v, kernel_shape=[3] * s, strides=[1] * s, pads=[1] * (2 * s))
    ways = [n.op("Relu", conv(n, v, n.pick([4, 7, 16]), 1)), conv(n, n.op("Relu", conv(n, v, 6, 1)), n.pick([8, 11]), 3),
            conv(n, pool, n.pick([3, 8]), 1), conv(n, conv(n, v, 5, [1] * (s - 1) + [5]), 8, [5] + [1] * (s - 1))]
    return n.op("Concat", *ways[:n.whole(2, 4)], axis=1)


@block("image")
def pooled(n, v):
    s = v.rank - 2
    k = [n.pick([2, 2, 3]) for _ in range(s)]
    if any(v.least(2 + i) < k[i] for i in range(s)):
        raise Skip
    more = {"ceil_mode": 1} if n.chance(0.3) else {"pads": [x // 2 for x in k] * 2} if n.chance(0.4) else {}
    return n.op(n.pick(["MaxPool", "AveragePool"]), v, kernel_shape=k, strides=[n.pick([1, 2, 2]) for _ in range(s)], **more)


@block("image")
def up_and_down(n, v):
    """A level of a U-Net: half the size, back by a transposed convolution or a resize, cut, joined."""
    s, c = v.rank - 2, v.size(1)
    y = act(n, conv(n, v, c + 3, 3, 2))
    if n.chance():
        w = n.noise([c + 3, c, *[n.pick([2, 4])] * s], (c + 3) ** -.5)
        k = w.shape[-1]
        y = n.op("ConvTranspose", y, w, n.vector(c), strides=[2] * s, kernel_shape=[k] * s, pads=[(k - 2) // 2] * (2 * s))
    else:
        mode = n.pick(["nearest", "linear", "cubic"] if s == 2 else ["nearest", "linear"])
        y = n.op("Resize", y, n.left_out(), np.array([1, 1] + [2] * s, "f4"), mode=mode, nearest_mode="floor",
                 coordinate_transformation_mode=n.pick(["half_pixel", "asymmetric", "pytorch_half_pixel"]))
    end = n.op("Slice", y, np.array([0] * s), n.sizes_of(v, list(range(2, v.rank))) if n.chance(0.6) or not all(
        v.fixed(i) for i in range(2, v.rank)) else np.array(v.arrays[0].shape[2:]), np.array(list(range(2, v.rank))))
    return n.op("Concat", v, end, axis=1) if n.chance() else conv(n, n.op("Concat", end, v, axis=1), c, 1)


@block("image")
def aspp(n, v):
    """Dilated convolutions beside the mean over space, which is resized or broadcast."""
    c = n.pick([6, 16])
    m = act(n, conv(n, n.op("GlobalAveragePool", v), c, 1))
    if n.chance():
        size = n.op("Concat", n.sizes_of(m, [0, 1]), n.sizes_of(v, list(range(2, v.rank))), axis=0)
        m = n.op("Resize", m, n.left_out(), n.left_out(), size, mode=n.pick(["linear", "nearest"]))
    else:
        m = n.op("Expand", m, n.op("Concat", np.array([1, 1]), n.sizes_of(v, list(range(2, v.rank))), axis=0))
    ways = [conv(n, v, c, 1)] + [conv(n, v, c, 3, dilation=d) for d in (2, 3)[:n.whole(1, 2)]] + [m]
    return act(n, n.op("Concat", *ways, axis=1))


@block("image")
def gated_parts(n, v):
    """GLU and its kin: one half gates the other."""
    a, b = n.halves(conv(n, v, 2 * n.pick([6, 8, 17]), n.pick([1, 3])), 1)
    y = n.swap("Mul", n.op("Tanh", a) if n.chance() else a, n.op("Sigmoid", b) if n.chance(0.7) else b)
    return conv(n, y, n.pick([8, 12]), 1)


@block("image")
def blocks_of_space(n, v):
    if v.rank != 4:
        raise Skip
    if n.chance():
        y = conv(n, v, 4 * n.pick([3, 4, 8]), 3)
        return n.op("DepthToSpace", y, blocksize=2, mode=n.pick(["DCR", "CRD"]))
    return conv(n, n.op("Concat", *[n.op("Slice", n.op("Slice", v, np.array([i]), np.array([1 << 31]), np.array([2]), np.array([2])),
                                           np.array([j]), np.array([1 << 31]), np.array([3]), np.array([2]))
                                    for i in (0, 1) for j in (0, 1)], axis=1), 12, 3)


@block("image")
def attended(n, v):
    """Attention of channels and of places, as CBAM has them."""
    a = n.op("ReduceMax", v, axes=[1], keepdims=1) if n.opset < 18 else n.op("ReduceMax", v, np.array([1]), keepdims=1)
    y = n.op("Concat", a, n.mean(v, [1]), axis=1)
    return n.swap("Mul", gate(n, v), n.op("Sigmoid", conv(n, y, 1, n.pick([3, 7]), bias=False)))


@block("image")
def quantised(n, v):
    """A convolution between pairs of QuantizeLinear and DequantizeLinear."""
    if n.opset < 13:
        raise Skip
    c, out, s = v.size(1), n.pick([8, 16]), v.rank - 2
    signed = n.chance()
    step = n.const(np.float32(0.03 + 0.03 * n.r.rand()))  # no round numbers, of which sums lie between two steps
    pair = lambda x: n.op("DequantizeLinear", n.op("QuantizeLinear", x, step, z), step, z)
    z = n.const(np.array(0 if signed else 117, "i1" if signed else "u1"))
    w = n.r.randint(-127, 128, [out, c] + [3] * s).astype("i1")
    if n.chance():
        scale, zero, more = (0.01 * (0.5 + n.r.rand(out))).astype("f4"), np.zeros(out, "i1"), {"axis": 0}
    else:
        scale, zero, more = np.float32(0.005 + 0.01 * n.r.rand()), np.int8(0), {}
    bias = n.op("DequantizeLinear", n.r.randint(-999, 999, out).astype("i4"), (scale * step.arrays[0]).astype("f4"),
                np.zeros(out, "i4") if more else np.int32(0), **more)
    y = n.op("Conv", pair(v), n.op("DequantizeLinear", w, scale, zero, **more), bias, pads=[1] * (2 * s))
    return pair(n.op("Relu", y) if n.chance() else y)


@block("image")
def two_rates(n, v):
    """Two branches of other sizes that are added, as pyramids do."""
    s = v.rank - 2
    low = conv(n, v, v.size(1), 3, 2)
    up = n.op("Resize", low, n.left_out(), n.left_out(), n.op("Shape", v), mode=n.pick(["nearest", "linear"]),
              coordinate_transformation_mode=n.pick(["asymmetric", "half_pixel"]))
    return n.swap("Add", v, up)


@block("image")
def large_pad(n, v):
    s = v.rank - 2
    if any(v.least(2 + i) < 4 for i in range(s)):
        raise Skip
    a = [0, 0] + [n.whole(0, 3) for _ in range(s)] + [0, 0] + [n.whole(0, 3) for _ in range(s)]
    return conv(n, n.pads(v, a), n.pick([8, 9]), n.pick([3, 5]), same=False)


@block("image")
def own_windows(n, v):
    """Attention within windows of an image, shifted by a roll."""
    if v.rank != 4 or not (v.fixed(2) and v.fixed(3)):
        raise Skip
    c, hh, ww = v.arrays[0].shape[1:]
    m = next((m for m in (4, 3, 2, 7) if hh % m == 0 and ww % m == 0), None)
    if not m or c % 2:
        raise Skip
    y = n.op("Transpose", v, perm=[0, 2, 3, 1])
    if n.chance():
        for axis in (1, 2):
            y = n.op("Concat", n.slice(y, axis, 1, 1 << 40), n.slice(y, axis, 0, 1), axis=axis)
    t = n.reshape(y, [-1, hh // m, m, ww // m, m, c])
    t = n.op("Reshape", n.op("Transpose", t, perm=[0, 1, 3, 2, 4, 5]), np.array([-1, m * m, c]))
    t = heads(n, t, 2)
    t = n.op("Transpose", n.reshape(t, [-1, hh // m, ww // m, m, m, c]), perm=[0, 1, 3, 2, 4, 5])
    y = n.swap("Add", y, n.reshape(t, [-1, hh, ww, c]))
    return n.op("Transpose", y, perm=[0, 3, 1, 2])


# ---- blocks of tokens ----

def scores(n, q, k, scale):
    """Scaled products of queries and keys [..., L, d]: scaled before or behind, by one number or its root on both sides."""
    turned = n.op("Transpose", k, perm=list(range(k.rank - 2)) + [k.rank - 1, k.rank - 2])
    how = n.whole(0, 3)
    if how == 0:
        return n.op("MatMul", n.swap("Mul", q, n.scalar(scale)), turned)
    if how == 1:
        return n.op("MatMul", n.swap("Mul", q, n.scalar(scale ** .5)), n.swap("Mul", turned, n.scalar(scale ** .5)))
    if how == 2 and q.rank == 4:
        y = n.op("Einsum", q, k, equation="bhid,bhjd->bhij")
    else:
        y = n.op("MatMul", q, turned)
    return n.swap("Mul", y, n.scalar(scale)) if n.chance() else n.op("Div", y, n.scalar(1 / scale))


def masked(n, a):
    """Scores with a mask, a bias, or nothing."""
    how, size = n.whole(0, 5), a.arrays[0].shape
    if how >= 4 or not (a.fixed(a.rank - 1) and a.fixed(a.rank - 2)):
        return a
    low = np.tril(np.ones(size[-2:], bool))
    if how == 0:
        return n.swap("Add", a, np.where(low, 0, n.pick([-np.inf, -1e9, -1e4])).astype("f4"))
    if how == 1:
        return n.op("Where", low.reshape([1] * (a.rank - 2) + list(low.shape)), a, np.float32(n.pick([-1e9, -3.4e38])))
    if how == 2:
        return n.swap("Add", a, n.noise([size[1] if a.rank == 4 else 1, *size[-2:]], .5))
    return n.swap("Add", n.swap("Add", a, n.noise([1, 1, 1, size[-1]][-a.rank:], .5)), n.noise(size[-2:], .5))


def turned_pairs(n, v):
    """Rotary positions of [..., L, d]."""
    length, d = v.size(v.rank - 2), v.size(v.rank - 1)
    if d % 2:
        raise Skip
    angle = np.outer(np.arange(length), 1 / 10 ** (np.arange(0, d, 2) / d))
    angle = np.concatenate([angle, angle], 1)
    a, b = n.slice(v, v.rank - 1, 0, d // 2), n.slice(v, v.rank - 1, d // 2, 1 << 40)
    turned = n.op("Concat", n.op("Neg", b), a, axis=-1)
    return n.swap("Add", n.swap("Mul", v, np.cos(angle).astype("f4")), n.swap("Mul", turned, np.sin(angle).astype("f4")))


def three(n, t, h_, d):
    """Queries, keys and values [N, h, L, d] of [N, L, C], from one product or from three."""
    c, how = t.size(2), n.whole(0, 3)
    length = ("axis", 1)
    if how == 0:  # [N, L, 3, h, d], turned as a whole
        y = n.reshape(linear(n, t, 3 * h_ * d), [("axis", 0), length, 3, h_, d])
        y = n.op("Transpose", y, perm=[2, 0, 3, 1, 4])
        if n.chance():
            return [n.op("Gather", y, np.int64(i), axis=0) for i in range(3)]
        return [n.op("Reshape", p, np.array([-1, h_, 0, d])) if False else n.op("Squeeze", p, np.array([0])) if n.opset >= 13
                else n.op("Squeeze", p, axes=[0]) for p in n.halves(y, 0, 3)]
    parts = n.halves(linear(n, t, 3 * h_ * d), 2, 3) if how == 1 else [linear(n, t, h_ * d) for _ in range(3)]
    return [n.op("Transpose", n.reshape(p, [("axis", 0), length, h_, d]), perm=[0, 2, 1, 3]) for p in parts]


def fewer(n, t, h_, kv, d):
    """Keys or values of fewer heads, repeated for all."""
    y = n.op("Transpose", n.reshape(linear(n, t, kv * d, False), [("axis", 0), ("axis", 1), kv, d]), perm=[0, 2, 1, 3])
    y = n.op("Unsqueeze", y, np.array([2])) if n.opset >= 13 else n.op("Unsqueeze", y, axes=[2])
    y = n.op("Expand", y, np.array([1, 1, h_ // kv, 1, 1])) if n.chance() else n.op("Tile", y, np.array([1, 1, h_ // kv, 1, 1]))
    return n.reshape(y, [("axis", 0), h_, ("axis", 3), d])


def heads(n, t, h_):
    """Attention of [N, L, C] with several heads; returns the same shape."""
    c = t.size(2)
    d = c // h_ if c % h_ == 0 else n.pick([5, 8])
    if n.chance(0.2) and h_ % 2 == 0:
        q = n.op("Transpose", n.reshape(linear(n, t, h_ * d), [("axis", 0), ("axis", 1), h_, d]), perm=[0, 2, 1, 3])
        k, v = fewer(n, t, h_, h_ // 2, d), fewer(n, t, h_, h_ // 2, d)
    else:
        q, k, v = three(n, t, h_, d)
    if n.chance(0.2) and q.fixed(2):
        q, k = turned_pairs(n, q), turned_pairs(n, k)
    a = n.op("Softmax", masked(n, scores(n, q, k, d ** -.5)), axis=n.pick([-1, 3]))
    if n.chance(0.15):
        a = n.op("Dropout", a)
    y = n.op("MatMul", a, v)
    y = n.op("Transpose", y, perm=[0, 2, 1, 3])
    return linear(n, n.reshape(y, [("axis", 0), ("axis", 1), h_ * d]), c)


@block("tokens", 4)
def attention(n, t):
    return join(n, heads(n, layer_norm(n, t), n.pick([1, 2, 3, 4])), t)


@block("tokens", 2)
def feed_forward(n, t):
    c = t.size(2)
    y = layer_norm(n, t)
    if n.chance(0.3):
        y = n.swap("Mul", act_last(n, linear(n, y, 2 * c, False)), linear(n, y, 2 * c, False))
    else:
        y = act_last(n, linear(n, y, 2 * c))
    return join(n, linear(n, y, c), t)


@block("tokens")
def mixer(n, t):
    """A product along the tokens."""
    length = t.size(1)
    y = n.op("Transpose", layer_norm(n, t), perm=[0, 2, 1])
    y = linear(n, act_last(n, linear(n, y, n.pick([8, 19]))), length)
    return n.swap("Add", t, n.op("Transpose", y, perm=[0, 2, 1]))


@block("tokens")
def extra_token(n, t):
    """A learned token in front, and positions."""
    c = t.size(2)
    token = n.noise([1, 1, c], .5)
    if not (t.fixed(0) and t.size(0) == 1):
        token = n.op("Expand", token, n.op("Concat", n.sizes_of(t, [0]), np.array([-1, -1]) * 0 + 1, axis=0))
    y = n.op("Concat", token, t, axis=1)
    return n.swap("Add", y, n.noise([1, y.size(1), c], .3)) if y.fixed(1) else y


@block("tokens")
def along(n, t):
    """A convolution along the tokens, as conformers have it."""
    c = t.size(2)
    y = n.op("Transpose", layer_norm(n, t), perm=[0, 2, 1])
    a, b = n.halves(conv(n, y, 2 * c, 1), 1)
    y = conv(n, n.swap("Mul", a, n.op("Sigmoid", b)), c, n.pick([3, 7]), group=c)
    return n.swap("Add", n.op("Transpose", conv(n, act(n, channel_norm(n, y)), c, 1), perm=[0, 2, 1]), t)


@block("tokens")
def recurrent(n, t):
    """A recurrent layer, in either direction or both."""
    c, hidden, both = t.size(2), n.pick([4, 9, 16]), n.chance()
    kind, d = n.pick(["LSTM", "GRU", "RNN"]), 2 if both else 1
    g = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    x = n.op("Transpose", t, perm=[1, 0, 2])
    more = {"linear_before_reset": 1} if kind == "GRU" and n.chance(0.7) else {}
    zeros = []
    if n.chance(0.4):
        shape = n.op("Concat", np.array([d]), n.sizes_of(t, [0]), np.array([hidden]), axis=0)
        zero = n.op("ConstantOfShape", shape)
        zeros = [None, zero] + ([zero] if kind == "LSTM" else [])
    y = n.op(kind, x, n.noise([d, g * hidden, c], c ** -.5), n.noise([d, g * hidden, hidden], hidden ** -.5),
             n.noise([d, 2 * g * hidden], .1), *zeros, hidden_size=hidden, n_out=n.pick([1, 2]),
             direction="bidirectional" if both else n.pick(["forward", "reverse"]), **more)
    y = n.op("Transpose", y, perm=[2, 0, 1, 3])
    return linear(n, n.op("Reshape", y, np.array([0, 0, -1])), c)


@block("tokens")
def picked(n, t):
    """Tokens that are gathered, reversed or cut."""
    how, least = n.whole(0, 3), t.least(1)
    if how == 0:
        return n.op("Gather", t, n.r.randint(-least, least, [n.pick([1, 5, 17])]).astype("i8"), axis=1)
    if how == 1:
        return n.slice(t, 1, -1, -(1 << 40), -1)
    if how == 2:
        return n.swap("Add", t, n.op("CumSum", n.swap("Mul", t, n.scalar(.05)), np.int64(1)))
    score = n.mean(t, [2], 0)
    _, index = n.outs("TopK", score, np.array([max(1, least // 2)]), n_out=2, axis=1)
    index = n.op("Unsqueeze", index, np.array([2])) if n.opset >= 13 else n.op("Unsqueeze", index, axes=[2])
    index = n.op("Expand", index, np.array([1, 1, t.size(2)]))
    return n.op("GatherElements", t, index, axis=1)


@block("tokens")
def normed_products(n, t):
    """Cosine attention over channels: a product of normalised rows."""
    y = n.op("Transpose", linear(n, t, n.pick([8, 15])), perm=[0, 2, 1])
    if n.chance():
        y = n.op("LpNormalization", y, axis=2, p=2)
    else:
        norm = n.op("Clip", n.mean(y, [2], name="ReduceL2"), np.float32(1e-6), None)
        y = n.op("Div", y, n.op("Expand", norm, n.op("Shape", y)) if n.chance() else norm)
    a = n.op("Softmax", n.op("MatMul", y, n.op("Transpose", y, perm=[0, 2, 1])), axis=2)
    y = n.op("Transpose", n.op("MatMul", a, y), perm=[0, 2, 1])
    return linear(n, y, t.size(2))


# ---- from one to the other ----

@block("to tokens", 2)
def flattened(n, v):
    y = n.op("Flatten", v, axis=2) if v.rank == 2 else n.op("Reshape", v, np.array([0, 0, -1])) if n.chance() else \
        n.reshape(v, [("axis", 0), v.size(1), -1])
    return n.op("Transpose", y, perm=[0, 2, 1])


@block("to tokens")
def columns(n, v):
    """Rows and channels become the features of a column, as text readers do."""
    if v.rank != 4 or not v.fixed(2) or v.size(1) * v.size(2) > 300:
        raise Skip
    y = n.op("Transpose", v, perm=[0, 3, 1, 2])
    return n.op("Reshape", y, np.array([0, 0, v.size(1) * v.size(2)]))


@block("to image")
def square(n, t):
    """Tokens become an image of one or two spatial axes."""
    y = n.op("Transpose", t, perm=[0, 2, 1])
    length = t.size(1) if t.fixed(1) else 0
    side = next((s for s in (2, 3, 4, 5, 7) if length and length % s == 0), None)
    if not side:
        return y
    return n.reshape(y, [("axis", 0), t.size(2), side, length // side])


def head(n, v, is_tokens):
    """What ends a net."""
    if is_tokens:
        y = layer_norm(n, v) if n.chance() else v
        y = n.mean(y, [1], 0) if n.chance() else n.op("Gather", y, np.int64(0), axis=1) if n.chance() else y
        return linear(n, y, n.pick([10, 17]))
    how = n.whole(0, 3)
    if how == 0:
        return n.op("Softmax", conv(n, v, n.pick([3, 5]), 1), axis=1)
    m = n.op("GlobalAveragePool", v) if n.chance() else n.mean(v, list(range(2, v.rank)))
    y = n.op("Flatten", m) if n.chance() else n.reshape(m, [("axis", 0), -1])
    c = v.size(1)
    if n.chance():
        return n.op("Gemm", y, n.noise([10, c], c ** -.5), n.vector(10), transB=1)
    return n.op("Softmax", linear(n, y, 10), axis=1)


def step(n, v, is_tokens):
    """One more block; returns what it gives, and whether that is tokens."""
    kinds = ["tokens", "to image"] if is_tokens else ["image", "to tokens"]
    kind = kinds[1] if n.chance(0.12 if v.rank >= 4 or is_tokens else 0.3) else kinds[0]
    names = sorted(b for b in BLOCKS if BLOCKS[b][1] == kind)
    weights = np.array([BLOCKS[b][2] for b in names], float)
    got = BLOCKS[names[n.r.choice(len(names), p=weights / weights.sum())]][0](n, v)
    shape = got.arrays[0].shape
    if 0 in shape or max(np.abs(a).max(initial=0) for a in got.arrays) > 300:
        raise Skip
    return got, kind in ("tokens", "to tokens")


def draw(seed):
    """The model, the sets of inputs, and which operators it has."""
    n = Builder(seed)
    n.opset = int(n.pick([11, 12, 13, 14, 16, 17, 18, 20, 21, 23]))
    spatial = n.pick([1, 2, 2, 2, 2, 3])
    size = {1: (20, 90), 2: (7, 33), 3: (4, 9)}[spatial]
    fixed = n.chance(0.6)
    n.sizes = [{"batch": n.whole(1, 3), **{"s%d" % i: n.whole(*size) for i in range(3)}} for _ in range(n.n_sets)]
    is_tokens = n.chance(0.3)
    if is_tokens:
        dims = ["batch" if n.chance() else n.whole(1, 2), n.pick([1, 3, 9, 16, 17, 33, 49]) if fixed else "s0", n.pick([8, 12, 16, 17, 32])]
    else:
        dims = ["batch" if n.chance() else n.whole(1, 2), n.pick([1, 3, 3, 4, 8, 17, 32])]
        dims += [n.pick([size[1], n.whole(*size), 4 * (size[1] // 4)]) if fixed else "s%d" % i for i in range(spatial)]
    v = n.add_input("x", dims, lambda shape: n.noise(shape))
    want, tries, done = n.whole(2, 7), 0, 0
    while done < want and tries < 60:
        tries += 1
        before = (len(n.nodes), len(n.weights), len(n.values), set(n.used))
        try:
            v, is_tokens = (head(n, v, is_tokens), None) if done == want - 1 else step(n, v, is_tokens)
            done += 1
        except (Skip, ValueError, IndexError, ZeroDivisionError):
            n.nodes, n.weights, n.values = n.nodes[:before[0]], n.weights[:before[1]], n.values[:before[2]]
            n.used = before[3]
        if is_tokens is None:
            break
    return random_onnx.finished(n, seed)
