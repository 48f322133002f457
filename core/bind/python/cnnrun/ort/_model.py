"""What an ONNX file says of itself: the few texts of a ModelProto that are no graph."""

from __future__ import annotations

import mmap
import os
from typing import Any, Dict, Iterator, Tuple, Union


class ModelMetadata:
    """Texts of a model: producer, graph, domain, description, version and metadata of one's own."""

    def __init__(self) -> None:
        self.producer_name = self.graph_name = self.domain = self.description = self.graph_description = ""
        self.version = 2**63 - 1  # as ONNX Runtime has it where the file has none
        self.custom_metadata_map: Dict[str, str] = {}


def _varint(data: Any, at: int) -> Tuple[int, int]:
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


def _read(data: Any) -> ModelMetadata:
    out = ModelMetadata()

    def text(part: Tuple[int, int]) -> str:
        return bytes(data[part[0]:part[1]]).decode("utf-8", "replace")

    for number, value in _fields(data, 0, len(data)):
        if number == 5:
            out.version = value - (1 << 64 if value >> 63 else 0)
        elif number in (2, 4, 6):
            setattr(out, {2: "producer_name", 4: "domain", 6: "description"}[number], text(value))
        elif number == 7:
            for inner, part in _fields(data, *value):
                if inner in (2, 10):
                    setattr(out, "graph_name" if inner == 2 else "graph_description", text(part))
        elif number == 14:
            pair = {inner: text(part) for inner, part in _fields(data, *value)}
            out.custom_metadata_map[pair.get(1, "")] = pair.get(2, "")
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
        return ModelMetadata()  # loading tells what is wrong
