"""Draws small ONNX nets by seed: one to three spatial dimensions, inputs with symbolic sizes, and nodes of
many operators, each tried on ONNX Runtime as it is drawn. A net comes with several sets of inputs."""
import numpy as np
import onnxruntime as ort
from onnx import TensorProto as T, helper as h, numpy_helper as nh

FLOAT, INT, BOOL = T.FLOAT, T.INT64, T.BOOL


def options():
    o = ort.SessionOptions()
    o.log_severity_level = 4
    o.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = 1
    return o


class Skip(Exception):
    """What was drawn can't be: the caller draws again."""


class Value:
    def __init__(self, name, arrays):
        self.name, self.arrays = name, arrays  # an array a set of inputs

    dtype = property(lambda self: self.arrays[0].dtype)
    rank = property(lambda self: self.arrays[0].ndim)
    is_float = property(lambda self: self.dtype == np.float32)

    def least(self, axis):
        """The least size of an axis, over all sets of inputs."""
        return min(a.shape[axis] for a in self.arrays)

    def fixed(self, axis):
        """True: an axis has one size in all sets."""
        return len({a.shape[axis] for a in self.arrays}) == 1

    def size(self, axis):
        """The size of an axis; Skip: it has several."""
        if not self.fixed(axis):
            raise Skip
        return self.arrays[0].shape[axis]


class Net:
    limit = 60000  # elements of a value

    def __init__(self, seed):
        """Draws a net by the seed."""
        self.r = np.random.RandomState(seed)
        self.seed = seed
        self.opset = int(self.r.choice([9, 11, 13, 16, 18, 20, 21, 23]))
        self.nodes, self.weights, self.inputs, self.values, self.used = [], [], [], [], set()
        self.n = 0
        self.n_sets = 3
        self.feeds = [dict() for _ in range(self.n_sets)]

    # ---- dice ----
    def pick(self, items):
        """One of the items."""
        return items[self.r.randint(len(items))]

    def chance(self, p=0.5):
        """True with probability p."""
        return self.r.rand() < p

    def whole(self, low, high):
        """A whole number from low to high."""
        return int(self.r.randint(low, high + 1))

    def name(self, prefix):
        """A new name."""
        self.n += 1
        return "%s%d" % (prefix, self.n)

    # ---- inputs and constants ----
    def noise(self, shape, scale=1.0):
        """Numbers at random in this shape."""
        return np.asarray(self.r.randn(*shape) * scale, "f4")

    def add_input(self, name, dims, make):
        """dims: numbers or names; the symbols' sizes are drawn once a set."""
        arrays = []
        for k in range(self.n_sets):
            arrays.append(make([self.sizes[k][d] if isinstance(d, str) else d for d in dims]))
            self.feeds[k][name] = arrays[-1]
        kind = h.np_dtype_to_tensor_dtype(arrays[0].dtype)
        self.inputs.append(h.make_tensor_value_info(name, kind, dims))
        v = Value(name, arrays)
        self.values.append(v)
        return v

    def const(self, array):
        """Adds a constant; returns its name."""
        array = np.asarray(array)
        name = self.name("w")
        self.weights.append(nh.from_array(array, name))
        return Value(name, [array] * self.n_sets)

    def weight(self, *shape):
        """Adds a weight at random."""
        fan = max(1, int(np.prod(shape[1:])))
        return self.const(self.noise(shape, 1.0 / np.sqrt(fan)))

    def left_out(self):
        """A Resize's region or scales that are not used: None from operator set 13 on. Before it they could not be left
        out, so an empty constant is added and returned."""
        return None if self.opset >= 13 else self.const(np.zeros(0, "f4"))

    def ints(self, values, as_input=0.15):
        """Axes, sizes: a constant, or now and then an input of the net, whose data decides shapes."""
        array = np.asarray(values, "i8")
        if array.ndim == 1 and self.chance(as_input) and len(self.inputs) < 5:
            name = self.name("in")
            self.inputs.append(h.make_tensor_value_info(name, INT, [len(array)]))
            for f in self.feeds:
                f[name] = array
            return Value(name, [array] * self.n_sets)
        return self.const(array)

    # ---- nodes ----
    def node(self, op, inputs, n_out=1, keep=None, **attrs):
        """Runs it on each set; adds it, and its outputs as values."""
        attrs = {k: v for k, v in attrs.items() if v is not None}
        outs = [self.name("v") for _ in range(n_out)]
        names = [i.name if i is not None else "" for i in inputs]
        node = h.make_node(op, names, outs, name=self.name(op.lower()), **attrs)
        given = {i.name: i for i in inputs if i is not None}
        infos = [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(v.dtype), [v.arrays[0].shape[0] if v.rank == 1 and v.fixed(0)
                                                                                  else None] * v.rank) for n, v in given.items()]
        graph = h.make_graph([node], "one", infos, [h.make_empty_tensor_value_info(o) for o in outs])
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", self.opset)], ir_version=10)
        try:
            session = ort.InferenceSession(model.SerializeToString(), options(), providers=["CPUExecutionProvider"])
            got = [session.run(None, {n: v.arrays[k] for n, v in given.items()}) for k in range(self.n_sets)]
        except Exception as e:
            raise Skip(str(e))
        if any(a.size > self.limit or a.ndim > 6 for g in got for a in g):
            raise Skip
        if not all(np.isfinite(a).all() for g in got for a in g if a.dtype.kind == "f"):
            raise Skip
        if any(np.abs(a).max(initial=0) > 1e6 for g in got for a in g if a.dtype == np.float32):
            raise Skip
        self.nodes.append(node)
        self.used.update(names)
        made = [Value(o, [g[i] for g in got]) for i, o in enumerate(outs)]
        for i in keep if keep is not None else range(n_out):
            self.values.append(made[i])
        return made[0]

    def listed(self, op, v, name, values, n_out=1, since=13, **attrs):
        """Axes or sizes as an input, or as the attribute that they were before that operator set."""
        if self.opset < since:
            return self.node(op, [v], n_out, **{name: values}, **attrs)
        return self.node(op, [v, self.ints(values)], n_out, **attrs)

    def some(self, test):
        """A value that passes the test, often a late one; Skip: there is none."""
        fits = [v for v in self.values if test(v)]
        if not fits:
            raise Skip
        late = fits[-4:]
        return self.pick(late if self.chance(0.8) else fits)

    def floats(self, least=0, most=6):
        """A float value of this rank."""
        return self.some(lambda v: v.is_float and least <= v.rank <= most)

    def image(self):
        """A float value of 3 to 5 axes."""
        return self.some(lambda v: v.is_float and 3 <= v.rank <= 5)

    def axis(self, v):
        """An axis of v, perhaps counted from the end."""
        return self.whole(-v.rank, v.rank - 1)

    def axes(self, v):
        """Some axes of v."""
        some = sorted(self.r.permutation(v.rank)[:self.whole(1, v.rank)].tolist())
        return [int(a) - (v.rank if self.chance(0.3) else 0) for a in some]


KINDS = {}


def kind(weight=1):
    """Registers a kind of node; weight: how often it is drawn."""
    def add(f):
        """Registers f."""
        KINDS[f.__name__] = (f, weight)
        return f
    return add


@kind(4)
def unary(n):
    """Adds an operator of one input."""
    ops = ["Relu", "LeakyRelu", "Elu", "Selu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Softplus", "Softsign", "Erf",
           "Abs", "Neg", "Floor", "Ceil", "Round", "Sign", "Sin", "Cos", "Atan", "Celu", "ThresholdedRelu", "Identity",
           "Gelu", "Mish", "Asinh", "Sinh", "Tan"]
    op, v = n.pick(ops), n.floats()
    n.node(op, [v], **({"alpha": float(n.r.rand())} if op in ("LeakyRelu", "Elu", "ThresholdedRelu", "Celu") else {}))


@kind()
def bounded_unary(n):
    """Adds an operator whose input has bounds."""
    v = n.floats()
    op = n.pick(["Sqrt", "Log", "Exp", "Reciprocal", "Acosh", "Asin", "Atanh"])
    u = n.node("Sigmoid", [v], keep=[]) if op in ("Exp", "Asin", "Atanh") else n.node("Abs", [v], keep=[])
    if op in ("Asin", "Atanh"):
        u = n.node("Mul", [u, n.const(np.float32(0.9))], keep=[])
    if op in ("Log", "Reciprocal", "Acosh"):
        u = n.node("Add", [u, n.const(np.float32(1.1))], keep=[])
    n.node(op, [u])


@kind()
def clip(n):
    """Adds a clip of some value, by attributes or inputs as the version has it; returns its
    output."""
    v = n.floats()
    low, high = -0.5 - n.r.rand(), 0.5 + n.r.rand()
    if n.opset < 11:
        return n.node("Clip", [v], **{k: x for k, x in (("min", low), ("max", high)) if n.chance(0.7)})
    low, high = n.const(np.float32(low)), n.const(np.float32(high))
    n.node("Clip", [v, low if n.chance(0.7) else None, high if n.chance(0.7) else None])


def partner(n, v):
    """Something that broadcasts with v: a constant of some of its dimensions, or a value of the same."""
    if n.chance(0.4):
        return n.some(lambda u: u.dtype == v.dtype and u.name != v.name)
    rank = n.whole(0, v.rank)
    shape = [v.arrays[0].shape[v.rank - rank + i] if v.fixed(v.rank - rank + i) and n.chance(0.6) else 1
             for i in range(rank)]
    return n.const(n.noise(shape))


@kind(4)
def binary(n):
    """Adds an operator of two inputs; returns its output."""
    v = n.floats()
    u = partner(n, v)
    pair = [v, u] if n.chance(0.7) else [u, v]
    op = n.pick(["Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum", "Div", "Pow", "PRelu", "Mod"])
    if op in ("Div", "Mod"):
        pair[1] = n.node("Add", [n.node("Abs", [pair[1]], keep=[]), n.const(np.float32(0.7))], keep=[])
    if op == "Pow":
        pair[0] = n.node("Add", [n.node("Abs", [pair[0]], keep=[]), n.const(np.float32(0.7))], keep=[])
        pair[1] = n.const(np.float32(n.pick([0.5, 2, 3, -1, 1.7])))
    if op in ("Max", "Min", "Mean", "Sum") and n.chance(0.3):
        pair.append(partner(n, v))
    n.node(op, pair, fmod=1 if op == "Mod" else None)


@kind(2)
def compare(n):
    """Adds a comparison."""
    v = n.floats()
    b = n.node(n.pick(["Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Equal"]), [v, partner(n, v)])
    how = n.whole(0, 3)
    if how == 0:
        n.node("Where", [b, v, partner(n, v)])
    elif how == 1:
        n.node("Not", [b])
    elif how == 2:
        n.node("Cast", [b], to=FLOAT)
    else:
        w = n.some(lambda u: u.dtype == bool)
        n.node(n.pick(["And", "Or", "Xor"]), [b, w])


@kind()
def cast(n):
    """Adds a cast."""
    v = n.floats()
    u = n.node("Cast", [v], to=n.pick([T.INT32, INT, T.DOUBLE, BOOL, T.FLOAT16, T.INT8]), keep=[0])
    if n.chance(0.7):
        n.node("Cast", [u], to=FLOAT)


def window(n, v, most=4):
    """kernel_shape, strides, dilations, pads of as many dimensions as v has in space, that fit all sets."""
    s = v.rank - 2
    k = [n.whole(1, min(most, 5 if s < 3 else 3)) for _ in range(s)]
    d = [n.pick([1, 1, 1, 2, 3]) for _ in range(s)]
    p = [n.whole(0, max(0, k[i] - 1)) for i in range(s)] + [n.whole(0, max(0, k[i] - 1)) for i in range(s)]
    for i in range(s):
        while v.least(2 + i) + p[i] + p[s + i] < (k[i] - 1) * d[i] + 1:
            if d[i] > 1:
                d[i] = 1
            elif k[i] > 1:
                k[i] -= 1
                p[i], p[s + i] = min(p[i], k[i] - 1), min(p[s + i], k[i] - 1)
            else:
                raise Skip
    return k, [n.pick([1, 1, 2, 3]) for _ in range(s)], d, p


def padding(n, p, dilations):
    """Attributes of padding."""
    how = n.pick(["given", "given", "none", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if how == "given":
        return {"pads": p}
    return {} if how == "none" else {"auto_pad": how}


@kind(8)
def conv(n):
    """Adds a convolution of a drawn window; returns its output."""
    v = n.image()
    c = v.size(1)
    group = n.pick([g for g in (1, 1, 2, 3, 4, c) if c % g == 0])
    out = group * n.whole(1, max(1, n.pick([12, 12, 48]) // group))
    k, s, d, p = window(n, v)
    if n.chance(0.4):
        k, d = [3 if v.least(2 + i) >= 3 else k[i] for i in range(v.rank - 2)], [1] * (v.rank - 2)
        s = [1] * (v.rank - 2) if n.chance() else s
        p = [1] * 2 * (v.rank - 2)
    w = n.weight(out, c // group, *k)
    b = n.const(n.noise([out])) if n.chance(0.7) else None
    y = n.node("Conv", [v, w] + ([b] if b else []), group=group, kernel_shape=k if n.chance(0.7) else None, strides=s,
               dilations=d, **padding(n, p, d))
    if n.chance(0.5):  # what is fused behind it
        if n.chance(0.4):
            y = n.node("BatchNormalization", [y] + [n.const(n.noise([out])) for _ in range(3)] +
                       [n.const(0.5 + np.abs(n.noise([out])))], epsilon=float(n.pick([1e-5, 1e-3])))
        n.node(n.pick(["Relu", "HardSwish", "LeakyRelu", "Sigmoid", "Tanh"]), [y])


@kind(3)
def conv_transpose(n):
    """Adds a transposed convolution."""
    v = n.image()
    if any(a.size == 0 for a in v.arrays):
        raise Skip  # ONNX Runtime makes something of nothing
    c, s = v.size(1), v.rank - 2
    group = n.pick([g for g in (1, 1, 2, c) if c % g == 0])
    k = [n.whole(1, 4) for _ in range(s)]
    strides = [n.whole(1, 3) for _ in range(s)]
    d = [n.pick([1, 1, 2]) for _ in range(s)]
    w = n.weight(c, n.whole(1, 4), *k)
    more = {}
    if n.chance(0.4):
        more["output_padding"] = [n.whole(0, max(strides[i], d[i]) - 1) for i in range(s)]
    if n.chance(0.5):
        more["pads"] = [n.whole(0, (k[i % s] - 1) * d[i % s]) // 2 for i in range(2 * s)]
    elif n.chance(0.3) and all(strides[i] <= (k[i] - 1) * d[i] + 1 for i in range(s)):  # else its shape isn't ONNX's
        more["auto_pad"] = n.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    b = [n.const(n.noise([group * w.arrays[0].shape[1]]))] if n.chance() else []
    n.node("ConvTranspose", [v, w] + b, group=group, strides=strides, dilations=d, **more)


@kind(5)
def pool(n):
    """Adds a pooling."""
    v = n.image()
    k, s, d, p = window(n, v)
    op = n.pick(["MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"])
    more = padding(n, p, d)
    if "SAME" in more.get("auto_pad", "") and any(b > a for a, b in zip(k, s)):
        more = {}  # ONNX Runtime's pools begin outside of the input then, or fail
    if "pads" not in more and any(v.least(2 + i) < (k[i] - 1) * d[i] + 1 for i in range(len(k))):
        raise Skip  # ONNX Runtime rounds towards 0, to one window
    if n.chance(0.4) and "auto_pad" not in more and (op != "LpPool" or n.opset >= 18):
        more["ceil_mode"] = 1
    if op == "MaxPool" or (op == "AveragePool" and n.opset >= 19) or (op == "LpPool" and n.opset >= 18):
        more["dilations"] = d if more.get("auto_pad") is None else [1] * len(d)
    if op == "AveragePool" and n.chance():
        more["count_include_pad"] = 1
    if op == "LpPool":
        more["p"] = n.whole(1, 3)
    n_out = 2 if op == "MaxPool" and n.chance(0.2) else 1
    n.node(op, [v], n_out, kernel_shape=k, strides=s, **more)


@kind()
def global_pool(n):
    """Adds a global pooling."""
    n.node(n.pick(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"]), [n.image()])


@kind(4)
def reduce(n):
    """Adds a reduction."""
    op = n.pick(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp",
                 "ReduceSumSquare"])
    v = n.floats(1)
    if any(a.size == 0 for a in v.arrays):
        raise Skip  # a mean of nothing
    axes = n.axes(v)
    keep = n.whole(0, 1)
    if n.chance(0.1):
        return n.node(op, [v], keepdims=keep)
    return n.listed(op, v, "axes", axes, since=13 if op == "ReduceSum" else 18, keepdims=keep)


@kind(2)
def softmax(n):
    """Adds a softmax."""
    v = n.floats(1)
    n.node(n.pick(["Softmax", "Softmax", "LogSoftmax", "Hardmax"]), [v], axis=n.axis(v))


@kind(2)
def arg(n):
    """Adds the place of an extreme."""
    v = n.floats(1)
    n.node(n.pick(["ArgMax", "ArgMin"]), [v], axis=n.axis(v), keepdims=n.whole(0, 1), select_last_index=n.whole(0, 1))


@kind()
def topk(n):
    """Adds a top-k."""
    v = n.floats(1)
    axis = n.axis(v)
    k = n.whole(1, max(1, v.least(axis)))
    if n.opset < 10:
        return n.node("TopK", [v], 2, k=k, axis=axis % v.rank)
    n.node("TopK", [v, n.ints([k])], 2, axis=axis, largest=n.whole(0, 1), sorted=1)


@kind(2)
def gather(n):
    """Adds a gather."""
    v = n.some(lambda v: v.rank >= 1)
    axis, low = n.whole(0, v.rank - 1), v.least(n.whole(0, v.rank - 1))
    low = v.least(axis)
    how = n.whole(0, 2)
    if how == 0:
        index = n.r.randint(-low, low, [n.whole(1, 3) for _ in range(n.whole(0, 2))])
        n.node("Gather", [v, n.const(np.asarray(index, n.pick(["i8", "i4"])))], axis=axis)
    elif how == 1:
        shape = [n.whole(1, v.least(i)) for i in range(v.rank)]
        n.node("GatherElements", [v, n.const(n.r.randint(-low, low, shape).astype("i8"))], axis=axis)
    else:
        depth = n.whole(1, v.rank)
        index = np.stack([n.r.randint(-v.least(i), v.least(i), [n.whole(1, 3)] * 1 + [2]) if False else
                          n.r.randint(-v.least(i), v.least(i), [3, 2]) for i in range(depth)], -1)
        n.node("GatherND", [v, n.const(index.astype("i8"))])


@kind()
def scatter(n):
    """Adds a scatter."""
    v = n.floats(1)
    axis = n.whole(0, v.rank - 1)
    more = {"reduction": n.pick(["none", "add", "mul"] + (["max", "min"] if n.opset >= 18 else []))} if n.opset >= 16 else {}
    if n.chance():
        shape = [n.whole(1, v.least(i)) for i in range(v.rank)]
        low = v.least(axis)
        one = n.r.permutation(low)[:shape[axis]]
        index = np.broadcast_to(one.reshape([-1 if i == axis else 1 for i in range(v.rank)]), shape).astype("i8")
        n.node("ScatterElements", [v, n.const(index.copy()), n.const(n.noise(shape))], axis=axis, **more)
    else:
        rows = n.r.permutation(v.least(0))[:2].reshape(-1, 1).astype("i8")
        tail = [v.size(i) for i in range(1, v.rank)]
        n.node("ScatterND", [v, n.const(rows), n.const(n.noise([len(rows)] + tail))], **more)


@kind(3)
def slice_(n):
    """Adds a slice."""
    v = n.some(lambda v: v.rank >= 1)
    axes = [a % v.rank for a in n.axes(v)]
    starts, ends, steps = [], [], []
    for a in axes:
        size = v.least(a)
        step = n.pick([1, 1, 2, -1, -2, 3]) if n.opset >= 10 else 1
        b, e = n.whole(-size, size - 1), n.pick([size, 1 << 40, -1, n.whole(-size, size)])
        if step < 0:
            e = n.pick([-1 - size, -(1 << 40), 0])
        starts, ends, steps = starts + [b], ends + [e], steps + [step]
    if n.opset < 10:
        return n.node("Slice", [v], starts=starts, ends=ends, axes=axes)
    n.node("Slice", [v, n.ints(starts, 0.05), n.ints(ends, 0.05), n.ints(axes, 0), n.ints(steps, 0)])


@kind(2)
def pad(n):
    """Adds a pad."""
    v = n.floats(1, 5)
    mode = n.pick(["constant", "constant", "reflect", "edge"] + (["wrap"] if n.opset >= 19 else []))
    room = [v.least(i) - 1 for i in range(v.rank)]
    p = [n.whole(-1 if mode == "constant" and room[i % v.rank] > 2 else 0, min(3, room[i % v.rank] if mode != "constant" else 3))
         if n.chance(0.5) else 0 for i in range(2 * v.rank)]
    if n.opset < 11:
        return n.node("Pad", [v], pads=p, mode=mode, value=float(n.pick([0, 1.5, -2])))
    value = [n.const(np.float32(n.pick([0, 1.5, -2])))] if mode == "constant" and n.chance(0.6) else []
    n.node("Pad", [v, n.ints(p)] + value, mode=mode)


@kind(3)
def concat(n):
    """Adds a concat."""
    v = n.floats(1)
    axis = n.axis(v)
    same = [u for u in n.values if u.dtype == v.dtype and u.rank == v.rank and all(
        a.shape[i] == b.shape[i] for a, b in zip(u.arrays, v.arrays) for i in range(v.rank) if i != axis % v.rank)]
    n.node("Concat", [v] + [n.pick(same) for _ in range(n.whole(1, 2))], axis=axis)


@kind(2)
def split(n):
    """Adds a split."""
    v = n.some(lambda v: v.rank >= 1)
    axis = n.whole(0, v.rank - 1)
    if n.opset >= 18 and n.chance(0.5):
        parts = n.whole(1, min(3, v.least(axis)))
        n.node("Split", [v], parts, axis=axis, num_outputs=parts)
        return
    size = v.size(axis)
    if size < 2:
        raise Skip
    first = n.whole(1, size - 1)
    n.listed("Split", v, "split", [first, size - first], 2, axis=axis)


@kind(2)
def resize(n):
    """Adds a resize."""
    v = n.image()
    if n.opset < 11:
        scales = np.array([1, 1] + [n.pick([1, 2, 3, 1.5]) for _ in range(v.rank - 2)], "f4")
        return n.node(n.pick(["Upsample"] if n.opset < 10 else ["Resize"]), [v, n.const(scales)], mode=n.pick(["nearest", "linear"]))
    mode = n.pick(["nearest", "linear", "linear", "cubic"])
    if mode == "cubic" and v.rank != 4:
        mode = "linear"
    where = n.pick(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"] +
                   (["half_pixel_symmetric"] if n.opset >= 19 else []))
    more = {"mode": mode, "coordinate_transformation_mode": where}
    if mode == "nearest":
        more["nearest_mode"] = n.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if n.opset >= 18 and mode != "nearest" and n.chance(0.3):
        more["antialias"] = 1
    if mode == "cubic":
        more["cubic_coeff_a"] = n.pick([-0.5, -0.75])
        more["exclude_outside"] = n.whole(0, 1)
    scales = [1.0, 1.0] + [n.pick([0.5, 1.0, 1.5, 2.0, 2.3, 0.7, 3.0]) for _ in range(v.rank - 2)]
    if where == "align_corners":  # of fractional lengths ONNX Runtime takes the whole ones, unlike ONNX's own tests
        scales = [1.0, 1.0] + [n.pick([1.0, 2.0, 3.0]) for _ in range(v.rank - 2)]
    if n.chance(0.7):
        n.node("Resize", [v, n.left_out(), n.const(np.asarray(scales, "f4"))], **more)
    else:
        sizes = [v.size(0), v.size(1)] + [n.whole(1, 9) for _ in range(v.rank - 2)]
        n.node("Resize", [v, n.left_out(), n.left_out(), n.ints(sizes)], **more)


@kind(3)
def move(n):
    """Adds an operator that moves elements."""
    v = n.some(lambda v: v.rank >= 1)
    how = n.whole(0, 6)
    if how == 0:
        n.node("Transpose", [v], perm=n.r.permutation(v.rank).tolist())
    elif how == 1:
        n.node("Flatten", [v], axis=n.whole(0, v.rank))
    elif how == 2:
        axes = sorted({n.whole(0, v.rank) for _ in range(n.whole(1, 2))})
        n.listed("Unsqueeze", v, "axes", axes)
    elif how == 3:
        axes = [i for i in range(v.rank) if v.fixed(i) and v.size(i) == 1]
        n.listed("Squeeze", v, "axes", axes) if axes else n.node("Squeeze", [v])
    elif how == 4:
        n.node("Tile", [v, n.ints([n.pick([1, 1, 2]) for _ in range(v.rank)])])
    elif how == 5:
        shape = [0 if n.chance(0.6) else 1 for _ in range(v.rank)]
        if 1 in shape:
            shape[shape.index(1)] = -1
        n.node("Reshape", [v, n.ints(shape)])
    else:
        n.node("Expand", [v, n.ints([n.whole(1, 2)] + [1] * v.rank)])


@kind(2)
def by_shape(n):
    """Sizes that are computed from a value's shape."""
    v = n.floats(2, 5)
    s = n.node("Shape", [v], keep=[])
    cut = n.whole(1, v.rank - 1)
    head = n.node("Slice", [s, n.const(np.array([0])), n.const(np.array([cut]))], keep=[])
    if n.chance():
        n.node("Reshape", [v, n.node("Concat", [head, n.const(np.array([-1]))], axis=0, keep=[])])
    else:
        n.node("ConstantOfShape", [head], value=h.make_tensor("t", FLOAT, [1], [0.5]))


@kind()
def blocks(n):
    """Adds an operator between channels and space."""
    v = n.some(lambda v: v.is_float and v.rank == 4)
    b = n.pick([2, 3])
    if n.chance():
        if v.size(1) % (b * b):
            raise Skip
        n.node("DepthToSpace", [v], blocksize=b, mode=n.pick(["DCR", "CRD"]))
    else:
        n.node("SpaceToDepth", [v], blocksize=b)


@kind(4)
def matmul(n):
    """Adds a matrix product."""
    v = n.floats(1, 4)
    k = v.arrays[0].shape[-1]
    if not v.fixed(v.rank - 1):
        u = n.node("Transpose", [v], perm=list(range(v.rank - 2)) + [v.rank - 1, v.rank - 2], keep=[]) if v.rank > 1 else v
        return n.node("MatMul", [v, u])
    lead = [a for a in v.arrays[0].shape[:-2]] if all(v.fixed(i) for i in range(v.rank - 2)) and n.chance(0.4) else []
    lead = [1 if n.chance(0.3) else a for a in lead]
    n.node("MatMul", [v, n.const(n.noise(lead + [k, n.whole(1, 20)], 1 / np.sqrt(max(k, 1))))])


@kind(3)
def gemm(n):
    """Adds a gemm."""
    v = n.floats(2, 5)
    if v.rank > 2:
        v = n.node("Flatten", [v], axis=n.pick([1, 1, 2]), keep=[])
    flip, other = n.whole(0, 1), n.whole(0, 1)
    k, m = v.size(0 if flip else 1), n.whole(1, 17)
    w = n.weight(m, k) if other else n.const(n.noise([k, m], 1 / np.sqrt(max(k, 1))))
    c = n.pick([None, [m], [1, m], [1], []])
    b = [] if c is None else [n.const(n.noise(c))]
    n.node("Gemm", [v, w] + b, transA=flip, transB=other, alpha=float(n.pick([1, 1, 0.5])), beta=float(n.pick([1, 1, 2])))


@kind()
def einsum(n):
    """Adds an einsum."""
    v = n.floats(2, 4)
    letters = "abcd"[:v.rank]
    k = v.size(v.rank - 1)
    how = n.whole(0, 3)
    if how == 0:
        n.node("Einsum", [v, n.weight(5, k)], equation="%s,z%s->%sz" % (letters, letters[-1], letters[:-1]))
    elif how == 1:
        n.node("Einsum", [v], equation="%s->%s" % (letters, letters[::-1]))
    elif how == 2:
        n.node("Einsum", [v, v], equation="%s,%s->%s" % (letters, letters, letters[:-1]))
    else:
        n.node("Einsum", [v, n.const(n.noise([k]))], equation="...%s,%s->..." % (letters[-1], letters[-1]))


@kind(3)
def norm(n):
    """Adds a normalisation."""
    how = n.whole(0, 6)
    if how == 6:
        if n.opset < 23:
            raise Skip
        v = n.floats(1, 5)
        axis = n.axis(v)
        shape = [v.size(i) for i in range(axis % v.rank, v.rank)]
        return n.node("RMSNormalization", [v, n.const(n.noise(shape))], axis=axis)
    if how == 0:
        if n.opset < 17:
            raise Skip
        v = n.floats(1, 5)
        axis = n.axis(v)
        shape = [v.size(i) for i in range(axis % v.rank, v.rank)]
        n.node("LayerNormalization", [v, n.const(n.noise(shape))] + ([n.const(n.noise(shape))] if n.chance() else []), axis=axis)
        return
    v = n.image()
    c = v.size(1)
    if how == 1:
        n.node("InstanceNormalization", [v, n.const(n.noise([c])), n.const(n.noise([c]))], epsilon=1e-3)
    elif how == 2:
        if n.opset < 21:
            raise Skip
        g = n.pick([g for g in (1, 2, 3, 4, c) if c % g == 0])
        n.node("GroupNormalization", [v, n.const(n.noise([c])), n.const(n.noise([c]))], num_groups=g, epsilon=1e-3)
    elif how == 3:
        n.node("LRN", [v], size=n.pick([1, 3, 5]), alpha=float(n.r.rand()), beta=0.75, bias=1.0)
    elif how == 4:
        n.node("LpNormalization", [n.node("Add", [v, n.const(np.float32(3))], keep=[])], axis=n.axis(v), p=n.whole(1, 2))
    else:
        n.node("BatchNormalization", [v] + [n.const(n.noise([c])) for _ in range(3)] + [n.const(0.5 + np.abs(n.noise([c])))])


@kind(2)
def recurrent(n):
    """Adds a recurrent layer; returns its output."""
    v = n.floats(3, 3)
    size, hidden = v.size(2), n.whole(1, 6)
    op = n.pick(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    if any(a.size == 0 for a in v.arrays):
        raise Skip  # ONNX Runtime leaves the states of no steps as they were in memory
    direction = n.pick(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    w = n.const(n.noise([d, gates * hidden, size], 1 / np.sqrt(max(size, 1))))
    r = n.const(n.noise([d, gates * hidden, hidden], 1 / np.sqrt(hidden)))
    b = n.const(n.noise([d, 2 * gates * hidden])) if n.chance() else None
    more = {"linear_before_reset": n.whole(0, 1)} if op == "GRU" else {}
    if n.chance(0.03):
        more["clip"] = 0.8
    peep = [None, None, None, n.const(n.noise([d, 3 * hidden]))] if op == "LSTM" and n.chance(0.2) else []
    n.node(op, [v, w, r, b] + ([None] * 0 if not peep else peep[:3] + peep[3:]), 3 if op == "LSTM" else 2, hidden_size=hidden,
           direction=direction, **more)


@kind(2)
def quantized(n):
    """Adds quantised operators."""
    v = n.floats(1)
    kind_ = n.pick(["u1", "i1"])
    scale, zero = n.const(np.float32(0.02 + 0.05 * n.r.rand())), n.const(np.array(n.whole(0, 100), kind_))
    how = n.whole(0, 3)
    if how == 0:
        q = n.node("QuantizeLinear", [v, scale, zero])
        n.node("DequantizeLinear", [q, scale, zero])
    elif how == 1:
        n.node("DynamicQuantizeLinear", [v], 3)
    elif how == 2:
        k = v.size(v.rank - 1)
        q = n.node("QuantizeLinear", [v, scale, zero])
        w = n.const(n.r.randint(-100, 100, [k, n.whole(1, 9)]).astype("i1"))
        if n.chance():
            n.node("MatMulInteger", [q, w] + ([zero] if n.chance() else []))
        else:
            n.node("QLinearMatMul", [q, scale, zero, w, n.const(np.float32(0.01)), n.const(np.int8(3)),
                                     n.const(np.float32(0.1)), zero])
    else:
        v = n.image()
        c, s = v.size(1), v.rank - 2
        q = n.node("QuantizeLinear", [v, scale, zero])
        out = n.whole(1, 6)
        w = n.const(n.r.randint(-100, 100, [out, c] + [n.whole(1, 3) for _ in range(s)]).astype("i1"))
        if n.chance():
            n.node("QLinearConv", [q, scale, zero, w, n.const(np.full(out, 0.01, "f4")), n.const(np.zeros(out, "i1")),
                                   n.const(np.float32(0.1)), zero])
        else:
            n.node("ConvInteger", [q, w] + ([zero] if n.chance() else []))


@kind(2)
def odd(n):
    """Adds a rare operator."""
    v = n.floats(1)
    how = n.whole(0, 6)
    if how == 0:
        n.node("CumSum", [v, n.const(np.int64(n.axis(v)))], exclusive=n.whole(0, 1), reverse=n.whole(0, 1))
    elif how == 1:
        a = n.node("ArgMax", [v], axis=n.axis(v), keepdims=0)
        n.node("OneHot", [a, n.const(np.int64(5)), n.const(np.array([-1, 2], "f4"))], axis=n.pick([-1, 0]))
    elif how == 2:
        v = n.floats(2)
        n.node("Trilu", [v, n.const(np.int64(n.whole(-2, 2)))], upper=n.whole(0, 1))
    elif how == 3:
        v = n.floats(2)
        lens = np.full([v.size(0)], min(2, v.least(1)), "i8")
        n.node("ReverseSequence", [v, n.const(lens)], batch_axis=0, time_axis=1)
    elif how == 4:
        n.node("Dropout", [v])
    elif how == 5:
        v = n.some(lambda v: v.is_float and v.rank == 4)
        grid = n.const((n.r.rand(v.size(0), 3, 4, 2) * 2.4 - 1.2).astype("f4"))
        if n.opset < 16:
            raise Skip
        names = ("linear", "cubic") if n.opset >= 20 else ("bilinear", "bicubic")
        n.node("GridSample", [v, grid], mode=n.pick([names[0], "nearest", names[1]]), align_corners=n.whole(0, 1),
               padding_mode=n.pick(["zeros", "border", "reflection"]))
    else:
        n.node("IsNaN", [v]) if n.chance() else n.node("IsInf", [v])


@kind(2)
def residual(n):
    """What kernels take along: a convolution, its shortcut, what follows."""
    v = n.image()
    c = v.size(1)
    y = n.node("Conv", [v, n.weight(c, c, *([3] * (v.rank - 2))), n.const(n.noise([c]))], pads=[1] * 2 * (v.rank - 2))
    if n.chance():
        y = n.node(n.pick(["Relu", "Sigmoid"]), [y])
    y = n.node("Add", [y, v] if n.chance() else [v, y])
    n.node(n.pick(["Relu", "HardSwish", "Tanh"]), [y])


@kind(2)
def gated(n):
    """A squeeze and excitation: a scale a channel from the mean over space."""
    v = n.image()
    c, s = v.size(1), v.rank - 2
    y = n.node("GlobalAveragePool", [v])
    y = n.node("Conv", [y, n.weight(max(1, c // 2), c, *([1] * s))])
    y = n.node("Relu", [y])
    y = n.node("Conv", [y, n.weight(c, max(1, c // 2), *([1] * s)), n.const(n.noise([c]))])
    n.node("Mul", [v, n.node("Sigmoid", [y])])


@kind(2)
def attention(n):
    """Adds attention."""
    v = n.floats(3, 4)
    k = v.size(v.rank - 1)
    q, w, e = (n.node("MatMul", [v, n.const(n.noise([k, 8], k ** -0.5))]) for _ in range(3))
    t = n.node("Transpose", [w], perm=list(range(v.rank - 2)) + [v.rank - 1, v.rank - 2])
    a = n.node("Softmax", [n.node("Mul", [n.node("MatMul", [q, t]), n.const(np.float32(0.35))])], axis=-1)
    n.node("MatMul", [a, e])


@kind(3)
def typed(n):
    """Operators on types other than f32."""
    v = n.floats(1)
    to, low = n.pick([(T.DOUBLE, -9), (T.INT32, -9), (INT, -9), (T.UINT8, 0), (T.INT8, -9), (T.FLOAT16, -9), (T.INT16, -9),
                      (T.UINT32, 0)])
    u = n.node("Clip", [v, n.const(np.float32(low)), n.const(np.float32(9))], keep=[])
    u = n.node("Cast", [n.node("Mul", [u, n.const(np.float32(5))], keep=[])], to=to, keep=[])
    number = lambda x: n.const(np.asarray(x, u.dtype))
    axis = n.axis(u)
    ops = [lambda: n.node(n.pick(["Add", "Sub", "Mul", "Max", "Min"]), [u, number(3)]),
           lambda: n.node(n.pick(["Relu", "Abs", "Sign", "Neg", "Identity", "Not"]), [u]),
           lambda: n.node("Clip", [u, number(1), number(7)]),
           lambda: n.node(n.pick(["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"]), [u]),
           lambda: n.node(n.pick(["ArgMax", "ArgMin"]), [u], axis=axis),
           lambda: n.node("TopK", [u, n.ints([max(1, u.least(axis) // 2)])], 2, axis=axis),
           lambda: n.node("Where", [n.node("Greater", [u, number(2)], keep=[]), u, number(1)]),
           lambda: n.node(n.pick(["Equal", "Less", "GreaterOrEqual"]), [u, number(4)]),
           lambda: n.node("Concat", [u, u], axis=axis),
           lambda: n.node("Pad", [u, n.ints([1] * (2 * u.rank)), number(2)]),
           lambda: n.node("MaxPool", [u], kernel_shape=[2] * (u.rank - 2), pads=[1] * (2 * (u.rank - 2))),
           lambda: n.node("Softmax", [u], axis=axis), lambda: n.node("CumSum", [u, n.const(np.int64(axis))]),
           lambda: n.node("MatMul", [u, number(n.r.randint(0, 4, [u.size(u.rank - 1), 5]))]),
           lambda: n.node("Resize", [u, n.left_out(), n.const(np.asarray([1] * (u.rank - 1) + [2], "f4"))], mode="nearest"),
           lambda: n.node("Div", [u, number(3)]), lambda: n.node("Pow", [u, number(2)]),
           lambda: n.node("Mod", [u, number(4)], fmod=1), lambda: n.node("Tile", [u, n.ints([2] * u.rank)]),
           lambda: n.node("BitShift", [u, number(1)], direction="LEFT"), lambda: n.node("BitwiseAnd", [u, number(6)]),
           lambda: n.node(n.pick(["Exp", "Sqrt", "Tanh", "Floor", "Sigmoid", "Erf"]), [u])]
    y = n.pick(ops)()
    if n.chance():
        n.node("Cast", [y], to=FLOAT)


@kind()
def integers(n):
    """Adds an operator on whole numbers."""
    v = n.some(lambda v: v.dtype in (np.int64, np.int32))
    how = n.whole(0, 3)
    if how == 0:
        n.node(n.pick(["Add", "Mul", "Sub", "Max", "Min"]), [v, n.const(np.asarray(n.whole(-3, 5), v.dtype))])
    elif how == 1:
        n.node("Mod", [v, n.const(np.asarray(n.pick([3, -3, 5]), v.dtype))])
    elif how == 2:
        n.node("Div", [v, n.const(np.asarray(n.pick([3, -3, 2]), v.dtype))])
    else:
        n.node("Cast", [v], to=FLOAT)


def draw(seed):
    """The model's bytes, the sets of inputs, and which operators it has; None: it can't be made."""
    n = Net(seed)
    names = sorted(KINDS)
    weights = np.array([KINDS[k][1] for k in names], float)
    spatial = n.pick([1, 2, 2, 3])
    n.sizes = [{"batch": [1, 2, 3][k] if n.chance(0.7) else 1,
                **{"s%d" % i: n.whole(*n.pick([(1, 4), (3, {1: 40, 2: 24, 3: 8}[spatial])])) for i in range(3)}} for k in range(n.n_sets)]
    dims = ["batch" if n.chance(0.7) else n.whole(1, 2), n.pick([1, 2, 3, 4, 6, 8, 16, 17, 32, 40])]
    dims += ["s%d" % i if n.chance(0.6) else n.whole(4, 9) for i in range(spatial)]
    n.add_input("x", dims, lambda shape: n.noise(shape))
    if n.chance(0.3):
        n.add_input("y", n.pick([["batch", 6], ["batch", 5, 4], dims]), lambda shape: n.noise(shape))
    want, tries = n.whole(3, 12), 0
    while len(n.nodes) < want and tries < 200:
        tries += 1
        before = (len(n.nodes), len(n.weights), len(n.inputs), len(n.values), set(n.used), [dict(f) for f in n.feeds])
        try:
            KINDS[names[n.r.choice(len(names), p=weights / weights.sum())]][0](n)
        except (Skip, ValueError, IndexError, ZeroDivisionError):
            n.nodes, n.weights, n.inputs, n.values = (n.nodes[:before[0]], n.weights[:before[1]], n.inputs[:before[2]],
                                                      n.values[:before[3]])
            n.used, n.feeds = before[4], before[5]
    return finished(n, seed)


def finished(n, seed):
    """What was drawn as a model, its inputs' sets, and its operators; None: it has no outputs."""
    made = {o for node in n.nodes for o in node.output}
    outs = [v for v in n.values if v.name in made and v.name not in n.used][-8:]
    if not outs:
        return None
    infos = [h.make_tensor_value_info(v.name, h.np_dtype_to_tensor_dtype(v.dtype), [None] * v.rank) for v in outs]
    graph = h.make_graph(n.nodes, "net%d" % seed, n.inputs, infos, n.weights)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", n.opset)], ir_version=10)
    return model, n.feeds, [node.op_type for node in n.nodes]
