"""Small models for examples: `from cnnrun.ort.datasets import get_example`."""

import os
import struct
import tempfile
from typing import Any, List, Tuple, Union

from .._runtime import load

_MODELS = {
    "sigmoid.onnx": """local c = require "cnnrun"
local x = c.input { "x", shape = { 3, 4, 5 } }
return c.net { name = "sigmoid", outputs = { c.sigmoid { "y", x } } }
""",
    "mul_1.onnx": """local c = require "cnnrun"
local x = c.input { "X", shape = { 3, 2 } }
return c.net { name = "mul", outputs = { c.mul { "Y", x, c.data { 1, 2, 3, 4, 5, 6, shape = { 3, 2 } } } } }
""",
}

# A logistic regression on length and width of iris petals: a row of coefficients for each class.
_BY = [-2.748, -1.17, 0.084, -0.907, 2.664, 2.077]
_SHIFT = [11.124, 3.225, -14.35]


def _varint(value: int) -> bytes:
    """Encodes a whole number >= 0 as a protobuf varint: 7 bits a byte, the lowest first."""
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _message(*fields: Tuple[int, Union[int, float, str, bytes]]) -> bytes:
    """A protobuf message of whole numbers, floats, texts and messages."""
    out = b""
    for number, value in fields:
        if isinstance(value, float):
            out += _varint(number << 3 | 5) + struct.pack("<f", value)
        elif isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return out


def _node(op: str, inputs: List[str], outputs: List[str], **attributes: Any) -> bytes:
    """A NodeProto of the domain ai.onnx.ml; attributes are texts, or lists of floats or of whole numbers."""
    fields: List[Tuple[int, Union[int, float, str, bytes]]] = [(1, name) for name in inputs]
    fields += [(2, name) for name in outputs]
    fields += [(3, op), (4, op), (7, "ai.onnx.ml")]
    for name, value in attributes.items():
        if isinstance(value, str):
            fields.append((5, _message((1, name), (4, value), (20, 3))))
        else:
            kind, number = (6, 7) if isinstance(value[0], float) else (7, 8)
            fields.append((5, _message((1, name), *((number, v) for v in value), (20, kind))))
    return _message(*fields)


def _iris() -> bytes:
    """Serialised ModelProto of an iris classifier: LinearClassifier, Normalizer, ZipMap."""
    classes = [0, 1, 2]
    nodes = [_node("LinearClassifier", ["float_input"], ["label", "scores"], coefficients=_BY, intercepts=_SHIFT,
                   classlabels_ints=classes, post_transform="LOGISTIC"),
             _node("Normalizer", ["scores"], ["shares"], norm="L1"),
             _node("ZipMap", ["shares"], ["probabilities"], classlabels_int64s=classes)]

    def tensor(kind: int, *shape: int) -> bytes:
        """A tensor type of ONNX, as protobuf: kind is its number, shape its sizes."""
        return _message((1, _message((1, kind), (2, _message(*((1, _message((1, d))) for d in shape))))))

    maps = _message((4, _message((1, _message((5, _message((1, 7), (2, tensor(1)))))))))
    graph = _message(*((1, n) for n in nodes), (2, "logreg_iris"),
                     (11, _message((1, "float_input"), (2, tensor(1, 3, 2)))),
                     (12, _message((1, "label"), (2, tensor(7, 3)))), (12, _message((1, "probabilities"), (2, maps))))
    return _message((1, 3), (2, "cnnrun"), (7, graph), (8, _message((1, "ai.onnx.ml"), (2, 1))))


def get_example(name: str) -> str:
    """The path of a model that is written for the example.

    "sigmoid.onnx" (3 4 5), "mul_1.onnx" (3 2), "logreg_iris.onnx" (3 2: length and width of petals; a label and
    probabilities). ValueError: there is no such example.
    """
    if name not in _MODELS and name != "logreg_iris.onnx":
        raise ValueError(f"no example {name!r}; there are {', '.join(_MODELS)}, logreg_iris.onnx")
    folder = tempfile.mkdtemp(prefix="cnnrun-example-")
    script, path = os.path.join(folder, "net.lua"), os.path.join(folder, name)
    if name not in _MODELS:
        with open(path, "wb") as file:
            file.write(_iris())
        return path
    with open(script, "w") as out:
        out.write(_MODELS[name])
    load(script).save(path)
    os.remove(script)
    return path
