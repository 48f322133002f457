"""Small models for examples: `from cnnrun.ort.datasets import get_example`."""

import os
import tempfile

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


def get_example(name: str) -> str:
    """The path of a model that is written for the example: "sigmoid.onnx" (3 4 5), "mul_1.onnx" (3 2).

    ValueError: there is no such example.
    """
    if name not in _MODELS:
        raise ValueError(f"no example {name!r}; there are {', '.join(_MODELS)}")
    folder = tempfile.mkdtemp(prefix="cnnrun-example-")
    script, path = os.path.join(folder, "net.lua"), os.path.join(folder, name)
    with open(script, "w") as out:
        out.write(_MODELS[name])
    load(script).save(path)
    os.remove(script)
    return path
