"""Scripts of cnnrun called from here: what finds things in pictures."""

from __future__ import annotations

import os

from ._c import TYPE_CHECKING, Handle, Lock, Observer, call, ffi, lib, string

if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

    from ._net import Picture

    Box = Tuple[float, float, float, float]
else:
    from ._named import NamedTuple


class Script:
    """A Lua script that returns a function of texts and tensors. One thread at a time."""

    def __init__(self, runtime: Handle, path: Union[str, "os.PathLike[str]"], model: Optional[Handle] = None) -> None:
        """Opens the script at path; `model`: the net it sees."""
        out = ffi.new("cnr_script **")
        call(lib.cnr_script_open, runtime.c, os.fsencode(path), model.c if model else ffi.NULL, out)
        self._handle = Handle(out[0], lib.cnr_script_close, model or runtime)

    def __call__(self, text: str, tensors: Sequence[Any] = (), *, tell: Optional[Callable[[str], Any]] = None) -> str:
        """Calls the function; `tell` gets what the script tells on its way, and stops it by True."""
        def event(kind: int, of: Any) -> Any:
            """Passes what the script tells to `tell` and returns its answer, true to stop; None
            for other events."""
            return tell(string(ffi.cast("char *", of))) if tell and kind == lib.CNR_EVENT_SCRIPT else None

        out = ffi.new("char **")
        watch = Observer(None, event)
        given = ffi.new("cnr_tensor *[]", list(tensors) or 1)
        watch.run(lib.cnr_script_call, self._handle.c, text.encode(), given, len(tensors), watch.c, out)
        return string(out[0])


def check_options(given: Mapping[str, Any], known: str) -> None:
    """Raises TypeError if a keyword of `given` is not among the words of `known` (separated by
    blanks)."""
    for key in given:
        if key not in known.split():
            raise TypeError(f"unknown option {key!r}; known: {', '.join(known.split())}")


class Found(NamedTuple):
    """A thing in a picture. Lengths are pixels of that picture.

    `score` is 0 to 1; `box` is left, top, width and height; `points` are (x, y) pairs where the net tells
    such (eyes, nose, corners of the mouth), else empty; `number` is that of the class.
    """

    label: str
    score: float
    box: Box
    points: Tuple[Tuple[float, float], ...]
    number: int


class Detector:
    """Finds things in pictures; made by `cnnrun.detector` and `Net.detector`. Threads take turns."""

    def __init__(self, runtime: Handle, options: Mapping[str, Any], model: Optional[Handle] = None,
                 lock: Optional[Lock] = None) -> None:
        """Makes a detector with options; model: its net, lock: held while the net runs."""
        given: Dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        check_options(given, "model score overlap across family size longest smallest swapped labels device option "
                             "channels mean std scale letterbox resize crop")
        if "model" in given:
            given["model"] = os.fsdecode(given["model"])
        import json

        self._lock = lock or Lock()
        self._script = Script(runtime, "calls/detect.lua", model)
        self._script(json.dumps(given))

    def __call__(self, picture: Picture) -> List[Found]:
        """What is in a picture, best first: a path, a PIL image, or uint8 of H W, H W 1 or H W 3.

        Raises Error for a picture that cannot be read, ValueError or TypeError for an array of another kind.
        """
        import json

        from ._net import picture_array, tensor_of

        if isinstance(picture, (str, os.PathLike)):
            with self._lock:
                text = self._script(os.fsdecode(picture))
        else:
            array = picture_array(picture)
            with self._lock:
                text = self._script("", [tensor_of(array)])
        return [Found(row["label"], row["score"], (row["box"][0], row["box"][1], row["box"][2], row["box"][3]),
                      tuple(zip(row.get("points", [])[::2], row.get("points", [])[1::2])), row["class"])
                for row in json.loads(text)]
