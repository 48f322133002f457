#!/usr/bin/env python3
"""Makes tests/fuzz/corpus/: one or two tiny, sound files a format, by hand and by our own writers.

    tests/fuzz/make_corpus.py [BUILD]
"""
import io, os, struct, subprocess, sys, tempfile, zipfile, zlib

build = sys.argv[1] if len(sys.argv) > 1 else "build"
here = os.path.dirname(os.path.abspath(__file__))


def put(target, name, data):
    """Writes a case."""
    folder = os.path.join(here, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as out:
        out.write(data)


def pair(first, second):
    """Two files as one case."""
    return b"PAIR" + struct.pack("<I", len(first)) + first + second


# ---- protobuf by hand ----
def varint(n):
    """A whole number in protobuf's form."""
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    """A field of a whole number."""
    return varint(field << 3) + varint(n)


def bits(field, *values):
    """A field of floats."""
    data = struct.pack("<%df" % len(values), *values)
    return field_of(field, data)


def field_of(field, data):
    """A protobuf field of bytes or text: number and type 2, length, data."""
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


# ---- Caffe ----
PROTOTXT = b"""name: "tiny"
input: "data" input_dim: 1 input_dim: 2 input_dim: 6 input_dim: 6
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 group: 2 } }
layer { name: "b" type: "BatchNorm" bottom: "c" top: "c" }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" relu_param { negative_slope: 0.1 } }
layer { name: "p" type: "Pooling" bottom: "c" top: "p"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "e" type: "Eltwise" bottom: "p" bottom: "p" top: "e"
  eltwise_param { operation: SUM coeff: 1 coeff: -1 } }
layer { name: "k" type: "Concat" bottom: "p" bottom: "e" top: "k" }
layer { name: "f" type: "InnerProduct" bottom: "k" top: "f" inner_product_param { num_output: 3 } }
layer { name: "s" type: "Softmax" bottom: "f" top: "s" }
"""


def blob(shape, values):
    """A blob of Caffe."""
    return field_of(7, field_of(7, field_of(1, b"".join(map(varint, shape)))) + bits(5, *values))


def caffe_layer(name, kind, *blobs):
    """A layer of Caffe."""
    return field_of(100, field_of(1, name) + field_of(2, kind) + b"".join(blobs))


model = field_of(1, "tiny") + caffe_layer(
    "c", "Convolution", blob([4, 1, 3, 3], [i / 10 for i in range(36)]), blob([4], [0, 1, 2, 3]))
model += caffe_layer("b", "BatchNorm", blob([4], [0.5] * 4), blob([4], [1.0] * 4), blob([1], [1.0]))
model += caffe_layer("f", "InnerProduct", blob([3, 72], [0.1] * 216), blob([3], [0.0] * 3))
put("import-caffe", "tiny.prototxt", PROTOTXT)
put("import-caffe", "tiny.pair", pair(PROTOTXT, model))

# ---- Darknet ----
CFG = b"""[net]
height=8
width=8
channels=3
[convolutional]
batch_normalize=1
filters=2
size=3
stride=1
pad=1
activation=leaky
[maxpool]
size=2
stride=2
[upsample]
stride=2
[shortcut]
from=-3
activation=linear
[route]
layers=-1,-2
[convolutional]
filters=18
size=1
stride=1
activation=linear
[yolo]
mask=0,1,2
anchors=1,2, 3,4, 5,6
classes=1
num=3
"""
put("import-darknet", "tiny.cfg", CFG)
put("import-darknet", "tiny.pair",
    pair(CFG, struct.pack("<iiiQ", 0, 2, 0, 7) + struct.pack("<152f", *[0.1] * 152)))

# ---- TensorFlow ----


def tf_attr(key, value):
    """An attribute of TensorFlow."""
    return field_of(5, field_of(1, key) + field_of(2, value))


def tf_node(name, op, inputs=(), *attrs):
    """A node of TensorFlow."""
    return field_of(1, field_of(1, name) + field_of(2, op) +
                    b"".join(field_of(3, i) for i in inputs) + b"".join(attrs))


def tf_shape(*dims):
    """A shape of TensorFlow."""
    return b"".join(field_of(2, number(1, d)) for d in dims)


def tf_const(name, dims, values):
    """A constant of TensorFlow."""
    tensor = number(1, 1) + field_of(2, tf_shape(*dims)) + \
        field_of(4, struct.pack("<%df" % len(values), *values))
    return tf_node(name, "Const", (), tf_attr("dtype", number(6, 1)),
                   tf_attr("value", field_of(8, tensor)))


FLOAT = tf_attr("T", number(6, 1))
graph = tf_node("x", "Placeholder", (), tf_attr("dtype", number(6, 1)),
                tf_attr("shape", field_of(7, tf_shape(1, 4, 4, 2))))
graph += tf_const("w", [3, 3, 2, 3], [0.1] * 54) + tf_const("b", [3], [1.0, 2.0, 3.0])
ones = field_of(1, field_of(3, b"\x01\x01\x01\x01"))
graph += tf_node("c", "Conv2D", ("x", "w"), FLOAT, tf_attr("strides", ones),
                 tf_attr("padding", field_of(2, "SAME")))
graph += tf_node("a", "BiasAdd", ("c", "b"), FLOAT) + tf_node("r", "Relu6", ("a",), FLOAT)
graph += tf_node("s", "Softmax", ("r",), FLOAT)
put("import-tensorflow", "tiny.pb", graph)


def tf_whole(name, *values, dims=None, kind=3):
    """A constant of whole numbers."""
    tensor = number(1, kind) + field_of(2, tf_shape(*([len(values)] if dims is None else dims))) + \
        b"".join(number(11 if kind == 10 else 7, v) for v in values)
    return tf_node(name, "Const", (), tf_attr("dtype", number(6, kind)),
                   tf_attr("value", field_of(8, tensor)))


# Sizes out of a shape, a branch, a dropout that is off, a function, 8 bits.
graph = tf_node("x", "Placeholder", (), tf_attr("dtype", number(6, 1)),
                tf_attr("shape", field_of(7, field_of(2, number(1, 2 ** 64 - 1)) + tf_shape(2, 2, 1))))
graph += tf_node("s", "Shape", ("x",)) + tf_whole("at", 0) + tf_whole("to", 1) + tf_whole("four", 4, dims=())
graph += tf_node("n", "StridedSlice", ("s", "at", "to", "to"), tf_attr("shrink_axis_mask", number(3, 1)))
graph += tf_node("p", "Pack", ("n", "four")) + tf_node("f", "Reshape", ("x", "p"))
graph += tf_whole("no", 0, dims=(), kind=10) + tf_node("sw", "Switch", ("f", "no"))
graph += tf_node("odd", "Odd", ("sw:1",)) + tf_node("neg", "Neg", ("sw",)) + tf_node("m", "Merge", ("neg", "odd"))
graph += tf_const("keep", [], [1.0]) + tf_node("u", "RandomUniform", ("p",))
graph += tf_node("ua", "AddV2", ("u", "keep")) + tf_node("uf", "Floor", ("ua",)) + tf_node("d", "Mul", ("m", "uf"))
quantised = number(1, 12) + field_of(2, tf_shape(4)) + field_of(4, b"\0\x40\x80\xff")
graph += tf_node("q", "Const", (), tf_attr("dtype", number(6, 12)), tf_attr("value", field_of(8, quantised)))
graph += tf_const("low", [], [-1.0]) + tf_const("high", [], [1.0])
graph += tf_node("dq", "Dequantize", ("q", "low", "high"), tf_attr("mode", field_of(2, "MIN_FIRST")))
graph += tf_node("call", "PartitionedCall", ("d", "dq"), tf_attr("f", field_of(10, field_of(1, "sum"))))
signature = field_of(1, "sum") + field_of(2, field_of(1, "a")) + field_of(2, field_of(1, "b")) + \
    field_of(3, field_of(1, "out"))
body = field_of(1, "y") + field_of(2, "AddV2") + field_of(3, "a") + field_of(3, "b")
graph += field_of(2, field_of(1, field_of(1, signature) + field_of(3, body) +
                              field_of(4, field_of(1, "out") + field_of(2, "y:z:0"))))
put("import-tensorflow", "folded.pb", graph)

# ---- ONNX: a tensor by hand, a net by our exporter ----
put("import-onnx", "tensor.pb", number(1, 2) + number(1, 3) + number(2, 1) + field_of(8, "t") +
    field_of(9, struct.pack("<6f", *range(6))))


def learnt(op, ins, outs, **attributes):
    """A node of ai.onnx.ml: attributes are whole numbers in a list, floats in a tuple, words in a text."""
    node = b"".join(field_of(1, i) for i in ins) + b"".join(field_of(2, o) for o in outs)
    node += field_of(4, op) + field_of(7, "ai.onnx.ml")
    for name, value in attributes.items():
        if isinstance(value, str):
            body = b"".join(field_of(9, word) for word in value.split()) if " " in value else field_of(4, value)
        elif isinstance(value, tuple):
            body = bits(7, *value)
        else:
            body = b"".join(number(8, v) for v in value)
        node += field_of(5, field_of(1, name) + body)
    return field_of(1, node)


def info(field, name, *dim):
    """An input or output of ONNX."""
    shape = field_of(2, b"".join(field_of(1, number(1, d)) for d in dim))
    return field_of(field, field_of(1, name) + field_of(2, field_of(1, number(1, 1) + shape)))


TREE = dict(nodes_treeids=[0, 0, 0, 0, 0, 1], nodes_nodeids=[0, 1, 2, 3, 4, 0], nodes_featureids=[1, 0, 0, 0, 0, 0],
            nodes_values=(.5, 0., -.5, 0., 0., 0.), nodes_truenodeids=[1, 0, 3, 0, 0, 0], nodes_falsenodeids=[2, 0, 4, 0, 0, 0],
            nodes_modes="BRANCH_LEQ LEAF BRANCH_LEQ LEAF LEAF LEAF", nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 0])
graph = learnt("Imputer", "x", "i", imputed_value_floats=(1.,)) + learnt("Scaler", "i", "s", offset=(1., 2.), scale=(2.,))
graph += learnt("TreeEnsembleClassifier", "s", ["tl", "ts"], class_treeids=[0, 0, 0, 1], class_nodeids=[1, 3, 4, 0],
                class_ids=[0, 0, 0, 0], class_weights=(.1, .2, .3, .4), classlabels_strings="no yes", **TREE)
graph += learnt("TreeEnsembleRegressor", "s", "t", target_treeids=[0, 0, 0, 1], target_nodeids=[1, 3, 4, 0],
                target_ids=[0, 0, 0, 0], target_weights=(1., 2., 3., 4.), aggregate_function="AVERAGE", **TREE)
graph += learnt("LinearClassifier", "s", "lp", coefficients=(1., 2., 3., 4.), intercepts=(0., 1.), classlabels_ints=[7, 8],
                post_transform="SOFTMAX")
graph += learnt("Normalizer", "p", "n", norm="MAX") + learnt("ZipMap", "n", "z", classlabels_int64s=[7, 8])
graph += info(11, "x", 3, 2) + b"".join(field_of(12, field_of(1, name)) for name in ("tl", "ts", "t", "l", "z"))
put("import-onnx", "learnt.onnx", number(1, 8) + field_of(8, number(2, 15)) +
    field_of(8, field_of(1, "ai.onnx.ml") + number(2, 3)) + field_of(7, graph))


# ---- pictures and digits ----


def chunk(kind, data):
    """A chunk of PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


rows = b"".join(b"\0" + bytes(range(i, i + 9)) for i in range(3))
put("source-images", "tiny.png", b"\x89PNG\r\n\x1a\n" +
    chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 3, 8, 2, 0, 0, 0)) +
    chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PICTURES = os.path.join(here, "../plugins/source-images/pictures")
for name in ("rle8.bmp", "palette.bmp", "bits.pbm", "woven.gif", "lzw.tif", "turned.tif", "bits.tif",
             "lossy.webp", "rgb.avif", "rgb.heic", "grey.pgm"):  # drawn by make_pictures.py there
    with open(os.path.join(PICTURES, name), "rb") as drawn:
        put("source-images", name, drawn.read())
put("source-mnist", "tiny.pair", pair(struct.pack(">IIII", 0x803, 2, 4, 4) + bytes(range(32)),
                                      struct.pack(">II", 0x801, 2) + b"\x03\x07"))

# ---- attributes ----
put("schema", "conv.bin",
    bytes([6, 0, 3, 3, 1, 0, 64, 0, 0, 0, 0, 1, 66, 2, 5, 64, 0, 0, 0, 2, 65, 8, 66, 8]))

# ---- weights for the net of tiny.lua: NumPy's by name and by place, MXNet's ----
WEIGHTS = {"conv1.weight": (4, 1, 3, 3), "conv1.bias": (4,), "bn1.beta": (4,), "bn1.gamma": (4,),
           "bn1.mean": (4,), "bn1.inv_std": (4,), "fc.weight": (36, 3), "fc.bias": (3,)}


def count(shape):
    """Elements of a shape."""
    return count(shape[1:]) * shape[0] if shape else 1


def npy(shape, kind, order="False"):
    """A file of NumPy."""
    head = "{'descr': '%s', 'fortran_order': %s, 'shape': %r, }" % (kind, order, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    code = "%s%d%s" % (kind[0], count(shape), {"2": "e", "4": "f", "8": "d"}[kind[2]])
    values = struct.pack(code, *[1 + i / 8 for i in range(count(shape))])
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + values


def archive(names, method, kind, order="False"):
    """An archive of NumPy files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as members:
        for name, shape in zip(names, WEIGHTS.values()):
            members.writestr(zipfile.ZipInfo(name + ".npy"), npy(shape, kind, order), method)
    return out.getvalue()


put("weights", "named.npz", archive(WEIGHTS, zipfile.ZIP_DEFLATED, "<f4"))
put("weights", "placed.npz",
    archive(["arr_%d" % i for i in range(8)], zipfile.ZIP_STORED, ">f2", "True"))
params = struct.pack("<QQQ", 0x112, 0, 8)
for shape in WEIGHTS.values():
    params += struct.pack("<IiI%dqiii" % len(shape), 0xF993FAC9, 0, len(shape), *shape, 1, 0, 0)
    params += struct.pack("<%df" % count(shape), *[1.5] * count(shape))
params += struct.pack("<Q", 8)
for name in WEIGHTS:
    name = "arg:" + name.replace(".", "_")
    params += struct.pack("<Q", len(name)) + name.encode()
put("weights", "tiny.params", params)

# ---- MXNet: a symbol with the same parameters ----
SYMBOL = """{"nodes": [
{"op": "null", "name": "data", "attrs": {"__shape__": "(0, 2, 6, 6)"}, "inputs": []},
{"op": "null", "name": "conv1_weight", "inputs": []},
{"op": "null", "name": "conv1_bias", "inputs": []},
{"op": "Convolution", "name": "c", "attrs": {"kernel": "(3, 3)", "num_filter": "4", "pad": "(1, 1)",
 "num_group": "2"}, "inputs": [[0, 0], [1, 0], [2, 0, 0]]},
{"op": "LeakyReLU", "name": "r", "attr": {"act_type": "elu", "slope": "0.5"}, "inputs": [[3, 0]]},
{"op": "SliceChannel", "name": "s", "param": {"num_outputs": "2"}, "inputs": [[4, 0]]},
{"op": "broadcast_mul", "name": "m", "inputs": [[5, 0], [5, 1]]},
{"op": "_PlusScalar", "name": "p", "param": {"scalar": "1e-1"}, "inputs": [[6, 0]]},
{"op": "Pooling", "name": "g", "attrs": {"kernel": "(2, 2)", "stride": "(2, 2)", "pool_type": "avg",
 "pooling_convention": "full"}, "inputs": [[7, 0]]},
{"op": "Reshape", "name": "q", "attrs": {"shape": "(0, -4, 2, -1, -2)"}, "inputs": [[8, 0]]}],
"arg_nodes": [0, 1, 2], "heads": [[9, 0], [4, 0]]}
"""
put("import-mxnet", "tiny.pair", pair(SYMBOL.encode(), params))


# ---- Torch7: Linear, Dropout and a table's sum, binary and as text ----
class Torch:
    def __init__(self, ascii):
        """A writer of Torch7's format, as text or binary."""
        self.out, self.ascii, self.index, self.seen = b"", ascii, 0, {}

    def number(self, kind, value):
        """Writes a number."""
        self.out += b"%g\n" % value if self.ascii else struct.pack("<" + kind, value)

    def text(self, text):
        """Writes a text."""
        self.number("i", len(text))
        self.out += text.encode() + (b"\n" if self.ascii else b"")

    def begin(self, kind):
        """Begins an object."""
        self.index += 1
        self.number("i", kind)
        self.number("i", self.index)

    def value(self, v):
        """Writes a value of Lua."""
        if isinstance(v, str):
            self.number("i", 2)
            self.text(v)
        elif isinstance(v, bool):
            self.number("i", 5)
            self.number("i", int(v))
        elif isinstance(v, (int, float)):
            self.number("i", 1)
            self.number("d", v)
        elif isinstance(v, dict) and id(v) in self.seen:
            self.number("i", 3)
            self.number("i", self.seen[id(v)])
        elif isinstance(v, dict):
            self.begin(3)
            self.seen[id(v)] = self.index
            self.number("i", len(v))
            for key, item in v.items():
                self.value(key)
                self.value(item)
        else:
            self.object(*v)

    def object(self, kind, content):
        """Writes an object of a class."""
        self.begin(4)
        self.text("V 1")
        self.text(kind)
        if kind == "torch.FloatTensor":
            self.number("i", len(content))
            for i in range(len(content)):
                self.number("q", content[i])
            for i in range(len(content)):
                self.number("q", count(content[i + 1:]))
            self.number("q", 1)
            self.value(("torch.FloatStorage", count(content)))
        elif kind == "torch.FloatStorage":
            self.number("q", content)
            for i in range(content):
                self.number("f", i / 2)
        else:
            self.value(content)


def listed(*items):
    """Modules of a container."""
    return {"modules": {i + 1: item for i, item in enumerate(items)}}


TORCH = ("nn.Sequential", listed(
    ("nn.Linear", {"weight": ("torch.FloatTensor", (4, 3)), "bias": ("torch.FloatTensor", (4,))}),
    ("nn.Dropout", {"p": 0.5, "train": False}),
    ("nn.ConcatTable", listed(("nn.Identity", {}), ("nn.Threshold", {"threshold": 0, "val": 0}))),
    ("nn.CAddTable", {}), ("nn.Narrow", {"dimension": 2, "index": 2, "length": -1}),
    ("nn.LogSoftMax", {})))
START = {"mapindex": {}}
FIRST = {"module": ("nn.Linear", {"weight": ("torch.FloatTensor", (2, 3))}), "mapindex": {1: START}}
SUM = {"module": ("nn.JoinTable", {"dimension": 2}), "mapindex": {1: FIRST, 2: START}}
NODES = enumerate((START, FIRST, SUM, {"mapindex": {1: SUM}}))
GRAPH = ("nn.gModule", {
    "modules": {1: FIRST["module"]},
    "forwardnodes": {i + 1: ("nngraph.Node", {"data": data}) for i, data in NODES}})
for name, net, ascii in (("binary.t7", TORCH, False), ("ascii.t7", TORCH, True),
                         ("graph.t7", GRAPH, False)):
    torch = Torch(ascii)
    torch.value(net)
    put("import-torch7", name, torch.out)

# ---- CNNdroid: one layer with a file, which the fuzzers call "weights" ----
NETFILE = b"""root_directory: "/sdcard/tiny/"
allocated_ram: 1
execution_mode: "sequential"
auto_tuning: "off"
layer {
  type: "Convolution"
  name: "c"
  parameters_file: "weights"
  pad: 1
  stride: 1
}
layer { type: "Pooling" pool: "max" kernel_size: 2 stride: 2 }
layer { type: "LRN" norm_region: "across_channels" local_size: 3 alpha: 1e-4 beta: 0.75 }
layer { type: "ReLU" }
"""


def message(*dim):
    """A message of CNNdroid's weights."""
    if not dim:
        return b"\xca\x3f\x80\x00\x00"
    return bytes([0x90 | dim[0]]) + message(*dim[1:]) * dim[0]


put("import-cnndroid", "tiny.pair", pair(NETFILE, message(4, 2, 3, 3) + message(4)))

# ---- ours ----
with open(os.path.join(here, "tiny.lua"), encoding="utf8") as script:
    LUA = script.read()
put("lua", "tiny.lua", LUA.encode())
with tempfile.TemporaryDirectory() as folder:
    for target, name in (("native", "tiny.cnr"), ("import-onnx", "tiny.onnx")):
        path = os.path.join(folder, name)
        command = "convert" if name.endswith(".cnr") else "export"
        subprocess.run([os.path.join(build, "cnnrun"), command, os.path.join(here, "tiny.lua"),
                        "--weights", "random:1", "-o", path], check=True)
        with open(path, "rb") as file:
            put(target, name, file.read())

# ---- a tracker's model, behind options and alone: small ferns, few patches ----
SETTINGS = ["ferns=2", "comparisons=5", "positives=3", "negatives=4", "warps_first=2", "warps=1"]
with tempfile.TemporaryDirectory() as folder:
    pixels = bytes((i * 2654435761 & 0xFFFFFFFF) >> 24 for i in range(64 * 48))
    for i in (1, 2):
        with open(os.path.join(folder, "%d.pgm" % i), "wb") as frame:
            frame.write(b"P5 64 48 255\n" + pixels)
    model = os.path.join(folder, "model")
    subprocess.run([os.path.join(build, "cnnrun"), "track", os.path.join(folder, "*.pgm"), "-q", "--box",
                    "8,8,24,24", "--save", model] + [w for s in SETTINGS for w in ("--set", s)],
                   check=True, stdout=subprocess.DEVNULL)
    with open(model, "rb") as file:
        saved = file.read()
    put("object-tld", "model", saved)
    put("object-tld", "options.pair", pair("\n".join(SETTINGS + ["box=8,8,24,24"]).encode(), saved))
