"""Runs convolutional networks.

    import cnnrun
    net = cnnrun.load("squeezenet.onnx")
    scores = net("dog.jpg")
    for label, score in net.topk(scores, 5): ...

A net may be shared by threads: each has its own session, and the interpreter's lock is released while
C code runs. Errors are `cnnrun.Error`, with the status, place and text of C. Ctrl-C stops work that is
under way with KeyboardInterrupt.
"""

from ._c import BadArgument, Cancelled, Error, NotFound
from ._frames import Frame, Frames, Tracker
from ._net import Net, Value
from ._runtime import (Energy, Governing, Runtime, detector, devices, energy, frames, govern, load, plugins, runtime,
                       track, tracker)
from ._script import Detector, Found

__all__ = [
    "BadArgument", "Cancelled", "Detector", "Energy", "Error", "Found", "Frame", "Frames", "Governing", "Net",
    "NotFound", "Runtime", "Tracker", "Value", "detector", "devices", "energy", "frames", "govern", "load", "plugins",
    "runtime", "track", "tracker",
]
