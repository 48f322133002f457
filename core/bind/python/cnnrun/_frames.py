"""Pictures one behind the other, and what follows a thing through them."""

from __future__ import annotations

import os

from ._c import TYPE_CHECKING, Error, Handle, call, ffi, lib, string, tensor
from ._net import _from_numpy, _to_numpy, tensor_of

if TYPE_CHECKING:
    from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

    import numpy as np

    from ._script import Box
else:
    from ._named import NamedTuple


class Frame(NamedTuple):
    """A picture (uint8, H W 3 or H W 1), its time in a video in seconds (None: it has none), its name."""

    picture: "np.ndarray[Any, Any]"
    seconds: Optional[float]
    name: str


def _lacks_video(runtime: Handle, spec: str) -> str:
    """What to do where a source cannot be read because no plugin reads videos, or ""."""
    entry, index = ffi.new("cnr_plugin_entry *", {"size": ffi.sizeof("cnr_plugin_entry")}), 0
    if not (os.path.isfile(spec) or spec.startswith("/dev/") or "://" in spec):
        return ""
    while lib.cnr_plugin_at(runtime.c, index, entry, ffi.NULL) == 0:
        if string(entry.name) == "source-video" and entry.refused == ffi.NULL:
            return ""
        index += 1
    return ("; videos, cameras and streams want the plugin source-video, which the wheel lacks: install "
            "cnnrun-source-video, and name its folder in CNNRUN_PLUGIN_PATH")


class Frames:
    """The pictures of a video, a camera, a stream or a folder; made by `cnnrun.frames`.

    Only the current one is in memory. `close()`, or the end of a `with` block, lets a camera go.
    """

    def __init__(self, runtime: Handle, spec: str) -> None:
        """Opens the source `spec`; cnnrun.Error where it cannot be read."""
        out = ffi.new("cnr_reader **")
        try:
            call(lib.cnr_reader_open, runtime.c, spec.encode(), out)
        except Error as e:
            raise type(e)(e.status, e.where, e.text + _lacks_video(runtime, spec)) from None
        self._handle: Optional[Handle] = Handle(out[0], lib.cnr_reader_close, runtime)
        self._out = ffi.new("cnr_tensor **"), ffi.new("uint64_t *"), ffi.new("char **")

    def __iter__(self) -> Frames:
        """Returns the iterator itself: frames can be iterated once."""
        return self

    def __next__(self) -> Frame:
        """Raises Error for a picture that cannot be read; the next call goes on behind it."""
        if self._handle is None:
            raise StopIteration
        picture, time_ns, name = self._out
        call(lib.cnr_reader_next, self._handle.c, picture, time_ns, name)
        if picture[0] == ffi.NULL:
            raise StopIteration
        seconds = None if time_ns[0] == 2**64 - 1 else time_ns[0] * 1e-9
        return Frame(_to_numpy(picture[0]), seconds, string(name[0]))

    def close(self) -> None:
        """Lets the camera or file go; there are no more pictures."""
        self._handle = None

    def __enter__(self) -> Frames:
        """Returns the frames; leaving the block closes the source."""
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


class Tracker:
    """Follows one object through pictures and learns while it does (TLD); made by `cnnrun.tracker`.

    Pictures are uint8 arrays of H W 3 or H W 1. A box is left, top, width and height in pixels.
    """

    def __init__(self, runtime: Handle, options: Sequence[str]) -> None:
        """Makes a tracker with the command's words as options."""
        words = [ffi.new("char[]", word.encode()) for word in options]
        out = ffi.new("cnr_instance **")
        call(lib.cnr_object_make, runtime.c, b"tld", ffi.new("char *[]", [*words, ffi.NULL]), out)
        self._handle = Handle(out[0], lib.cnr_object_free, runtime)

    def _call(self, method: bytes, results: int, picture: "np.ndarray[Any, Any]", *more: Any) -> List[Any]:
        """Calls a method of the tracker with a picture and more tensors; returns its result tensors."""
        array = _from_numpy(picture)
        held = [tensor_of(array), *more]
        out = ffi.new("cnr_tensor *[]", max(results, 1))
        call(lib.cnr_object_call, self._handle.c, method, ffi.new("cnr_tensor *[]", held), len(held), out, results)
        return [_to_numpy(out[i]).tolist() for i in range(results)]

    def init(self, picture: "np.ndarray[Any, Any]", box: Sequence[float]) -> None:
        """Learns what is in the box (left, top, width, height in pixels); Error for one outside the picture."""
        numbers = ffi.new("double[]", [float(v) for v in box])
        self._call(b"init", 0, picture, tensor(numbers, (len(box),), lib.CNR_f64, 8 * len(box)))

    def track(self, picture: "np.ndarray[Any, Any]") -> Tuple[Optional[Box], float]:
        """The object's box in the next picture and a confidence of 0 to 1; None while it is not seen."""
        box, confidence = self._call(b"track", 2, picture)
        return (None if confidence < 0 else (box[0], box[1], box[2], box[3])), confidence


def spec_of(source: Union[str, "os.PathLike[str]"]) -> str:
    """The source as the text that the library wants."""
    return os.fsdecode(source)
