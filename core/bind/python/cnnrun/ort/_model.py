"""What an ONNX file says of itself: the few texts of a ModelProto that are no graph, and outputs that are no tensors."""

from __future__ import annotations

import mmap
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple, Union


class Told(NamedTuple):
    """An output of ai.onnx.ml that C gives as numbers: maps from names to numbers, or names instead of indices."""

    maps: bool
    names: List[Union[int, str]]

    @property
    def type(self) -> str:
        """ONNX Runtime's name of the output's type: a tensor of strings, or a sequence of maps
        from class to float."""
        key = "string" if isinstance(self.names[0], str) else "int64"
        return f"seq(map({key},tensor(float)))" if self.maps else "tensor(string)"

    def of(self, value: Any) -> Any:
        """What ONNX Runtime gives for C's tensor: a list of dicts, or an array of texts."""
        if self.maps:
            return [dict(sorted(zip(self.names, row))) for row in value.tolist()]
        out = value.astype(object)
        out[...] = [self.names[i] for i in value]
        return out


class ModelMetadata:
    """Texts of a model: producer, graph, domain, description, version and metadata of one's own."""

    def __init__(self) -> None:
        """An empty model's data."""
        self.producer_name = self.graph_name = self.domain = self.description = self.graph_description = ""
        self.version = 2**63 - 1  # ONNX Runtime's value if the file has none
        self.custom_metadata_map: Dict[str, str] = {}
        self.told: Dict[str, Told] = {}  # outputs that are not tensors of numbers


def _varint(data: Any, at: int) -> Tuple[int, int]:
    """The whole number at `at` of a protobuf message, and the place after it; ValueError: none ends there."""
    value = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise ValueError("no protobuf message")


def _fields(data: Any, at: int, end: int) -> Iterator[Tuple[int, Any]]:
    """Numbers and values of a message: whole numbers, or (begin, end) of what has a length."""
    while at < end:
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
        elif kind == 2:
            size, at = _varint(data, at)
            if at + size > end:
                raise ValueError("no protobuf message")
            yield key >> 3, (at, at + size)
            at += size
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("no protobuf message")


def _whole(data: Any, part: Tuple[int, int]) -> Iterator[int]:
    """Yields the signed 64-bit integers of a packed varint field at data[part[0]:part[1]]."""
    at = part[0]
    while at < part[1]:
        value, at = _varint(data, at)
        yield value - (1 << 64 if value >> 63 else 0)


def _told(data: Any, graph: Tuple[int, int]) -> Dict[str, Told]:
    """Outputs of ZipMap and of classifiers whose classes are texts, by name; and what they are passed on as."""
    out: Dict[str, Told] = {}
    for inner, node in _fields(data, *graph):
        if inner != 1:
            continue
        texts: Dict[int, str] = {1: "", 2: "", 4: ""}  # the first input and output, the operator
        names: List[Any] = []
        for number, part in _fields(data, *node):
            if not texts.get(number, "-"):
                texts[number] = bytes(data[part[0]:part[1]]).decode("utf-8", "replace")
            elif number == 5:
                attribute = list(_fields(data, *part))
                name = next((bytes(data[v[0]:v[1]]) for k, v in attribute if k == 1), b"")
                if not name.startswith(b"classlabels_"):
                    continue
                for k, v in attribute:
                    if k == 9:
                        names.append(bytes(data[v[0]:v[1]]).decode("utf-8", "replace"))
                    elif k == 8:
                        names += list(_whole(data, (v[0], v[1]))) if isinstance(v, tuple) else [v - (1 << 64 if v >> 63 else 0)]
        if texts[4] in ("Identity", "Reshape") and texts[1] in out:
            out[texts[2]] = out[texts[1]]
        elif texts[4] == "ZipMap" and names:
            out[texts[2]] = Told(True, names)
        elif texts[4].endswith("Classifier") and names and isinstance(names[0], str):
            out[texts[2]] = Told(False, names)
    return out


def _read(data: Any) -> ModelMetadata:
    """Producer, names and own properties of an ONNX model's bytes."""
    out = ModelMetadata()
    graph, learned = (0, 0), False

    def text(part: Tuple[int, int]) -> str:
        """Decodes the bytes data[part[0]:part[1]] as UTF-8; invalid bytes become replacement
        characters."""
        return bytes(data[part[0]:part[1]]).decode("utf-8", "replace")

    for number, value in _fields(data, 0, len(data)):
        if number == 5:
            out.version = value - (1 << 64 if value >> 63 else 0)
        elif number in (2, 4, 6):
            setattr(out, {2: "producer_name", 4: "domain", 6: "description"}[number], text(value))
        elif number == 8:
            learned |= data.find(b"ai.onnx.ml", *value) >= 0
        elif number == 7:
            graph = value
            for inner, part in _fields(data, *value):
                if inner in (2, 10):
                    setattr(out, "graph_name" if inner == 2 else "graph_description", text(part))
        elif number == 14:
            pair = {inner: text(part) for inner, part in _fields(data, *value)}
            out.custom_metadata_map[pair.get(1, "")] = pair.get(2, "")
    if learned:
        out.told = _told(data, graph)
    return out


def metadata_of(model: Union[str, bytes, "os.PathLike[str]"]) -> ModelMetadata:
    """Of a file or its bytes; empty where that is no ONNX."""
    try:
        if isinstance(model, bytes):
            return _read(model)
        if not os.fsdecode(model).endswith(".onnx"):
            return ModelMetadata()
        with open(model, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(data)
    except (OSError, ValueError, IndexError, TypeError, AttributeError):
        return ModelMetadata()  # loading reports the error
