"""Exceptions by ONNX Runtime's names."""

from ..._c import BadArgument as InvalidArgument
from ..._c import Error as Fail
from ..._c import NotFound as NoSuchFile

InvalidGraph = InvalidArgument
InvalidProtobuf = InvalidArgument
NotImplemented = Fail
RuntimeException = Fail

__all__ = ["Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile", "NotImplemented",
           "RuntimeException"]
