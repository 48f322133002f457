"""The border to C: errors, owners, options and results. No other module calls cffi."""

from __future__ import annotations

import os
from _collections_abc import Mapping  # the origin of collections.abc.Mapping, faster to import
from _thread import get_native_id

from . import _cnnrun

TYPE_CHECKING = False  # importing typing and threading takes longer than all other imports
if TYPE_CHECKING:
    from threading import Lock as Lock, RLock, local as local
    from typing import Any, Callable, Dict, List, Optional, Sequence
else:
    from _thread import RLock, _local as local, allocate_lock as Lock

ffi: Any = _cnnrun.ffi
lib: Any = _cnnrun.lib

_lock = RLock()
_watched = local()  # the observer whose work runs on this thread


class Error(RuntimeError):
    """A call of C that failed.

    Attributes:
        status: the C status, negative; its name is in `name`.
        where: the file, layer ("net.lua:14"), node or plugin; may be empty.
        text: what was wrong and what was expected.
    """

    def __init__(self, status: int, where: str, text: str) -> None:
        self.status = status
        self.name = string(lib.cnr_status_text(status))
        self.where = where
        self.text = text
        super().__init__(f"{where}: {text}" if where else text or self.name)


class NotFound(Error, LookupError):
    """A file, device, node or operator that is not there."""


class BadArgument(Error, ValueError):
    """An argument, a shape or a format that does not fit."""


class Cancelled(Error):
    """Work that was stopped on its way."""


def string(text: Any) -> str:
    """A C text; "" for NULL."""
    return "" if text == ffi.NULL else str(ffi.string(text), "utf-8", "replace")


_KINDS = {
    lib.CNR_E_NOT_FOUND: NotFound,
    lib.CNR_E_ARG: BadArgument,
    lib.CNR_E_SHAPE: BadArgument,
    lib.CNR_E_FORMAT: BadArgument,
    lib.CNR_E_CANCELLED: Cancelled,
}


def on_main_thread() -> bool:
    """Whether this is the thread that the process began with, which gets Ctrl-C."""
    return get_native_id() == os.getpid()


def new_error() -> Any:
    """An empty error for a C call to fill."""
    return ffi.new("cnr_error *", {"size": ffi.sizeof("cnr_error")})


def check(status: int, err: Any) -> None:
    """Raises the error of a call that failed. A pending KeyboardInterrupt is raised instead."""
    if status == 0:
        return
    if status == lib.CNR_E_MEMORY:
        raise MemoryError(string(err.text))
    raise _KINDS.get(status, Error)(status, string(err.where), string(err.text))


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function of C whose last argument is a cnr_error."""
    err = new_error()
    check(function(*arguments, err), err)


class Handle:
    """An object of C, closed when its last user is gone: Python's own, then those made from it."""

    __slots__ = ("c", "_close", "_parent", "_users", "__weakref__")

    def __init__(self, c: Any, close: Callable[[Any], None], parent: Optional[Handle] = None) -> None:
        """Holds the C object c, which `close` frees; `parent` lives at least as long."""
        self.c = c
        self._close = close
        self._parent = parent
        self._users = 1
        if parent is not None:
            with _lock:
                parent._users += 1

    def _leave(self) -> None:
        """Counts one user less; with none left, closes the C object."""
        with _lock:
            self._users -= 1
            last = self._users == 0
        if last:
            self._close(self.c)
            self.c = ffi.NULL
            if self._parent is not None:
                self._parent._leave()

    def __del__(self) -> None:
        """Gives up this user of the handle, so that the C object is freed after its last user."""
        if hasattr(self, "_users"):
            self._leave()


def tensor(address: Any, shape: Sequence[int], dtype: int, nbytes: int) -> Any:
    """A cnr_tensor over memory at `address`, which it doesn't own or keep alive. ValueError:
    over 8 dimensions."""
    if len(shape) > 8:
        raise ValueError(f"{len(shape)} dimensions; a tensor has at most 8")
    return ffi.new(
        "cnr_tensor *",
        {"size": ffi.sizeof("cnr_tensor"), "dtype": dtype, "rank": len(shape), "dim": list(shape),
         "data": address, "bytes": nbytes},
    )


class Options:
    """An options struct of C, filled by keywords; the struct's own types say what a value must be."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        """A C structure `name` of options, with the given fields set; TypeError: an option it does not have."""
        self.keep: List[Any] = []
        self.c = ffi.new(f"{name} *")
        self.c.size = ffi.sizeof(name)
        self.fields = dict(ffi.typeof(name).fields)
        for key, value in given.items():
            self.set(key, value)

    def set(self, key: str, value: Any) -> None:
        """Sets one member; None leaves its default. TypeError: there is no such option."""
        if key == "size" or key.startswith("reserved") or key not in self.fields:
            known = ", ".join(k for k in self.fields if k != "size" and not k.startswith("reserved"))
            raise TypeError(f"unknown option {key!r}; known: {known}")
        if value is None:
            return
        kind = self.fields[key].type.cname
        if kind == "char *":
            setattr(self.c, key, self.text(value))
        elif kind == "char * *":
            setattr(self.c, key, self.texts(value))
        elif kind in ("double *", "int64_t *"):
            self.keep.append(ffi.new(kind.replace(" *", "[]"), list(value)))
            setattr(self.c, key, self.keep[-1])
        else:
            setattr(self.c, key, value)

    def text(self, value: Any) -> Any:
        """The text as C characters, which live as long as the options."""
        self.keep.append(ffi.new("char[]", os.fsencode(value)))
        return self.keep[-1]

    def texts(self, values: Any) -> Any:
        """A NULL-terminated list: of texts, of one text, or "name=value" from a mapping."""
        if isinstance(values, (str, os.PathLike)):
            values = [values]
        if isinstance(values, Mapping):
            values = [f"{k}={v}" for k, v in values.items()]
        self.keep.append(ffi.new("char *[]", [self.text(v) for v in values] + [ffi.NULL]))
        return self.keep[-1]


def record(struct: Any) -> Dict[str, Any]:
    """Numbers and texts of a result struct by name. Pointers to other structs are left out."""
    out: Dict[str, Any] = {}
    kind = ffi.typeof(struct)
    kind = kind.item if kind.kind == "pointer" else kind
    for name, field in kind.fields:
        if name == "size" or name.startswith("reserved"):
            continue
        value = getattr(struct, name)
        if field.type.kind == "primitive":
            out[name] = value
        elif field.type.cname == "char *":
            out[name] = None if value == ffi.NULL else string(value)
        elif field.type.cname.startswith("char["):
            out[name] = string(value)
        elif field.type.kind == "struct":
            out[name] = record(value)
    return out


class Observer:
    """Watches long work: calls `progress` and `event`, stops at Ctrl-C and when a callback raises.

    A callback gets a dict; what it returns other than None or False stops the work.
    """

    def __init__(self, progress: Optional[Callable[[Dict[str, Any]], Any]] = None,
                 event: Optional[Callable[[int, Any], Any]] = None) -> None:
        """Calls `progress` with a dict and `event` with kind and data while a C call runs."""
        self.progress = progress
        self.event = event
        self.raised: Optional[BaseException] = None
        self._self = ffi.new_handle(self)
        self.c = ffi.new("cnr_observer *", {"size": ffi.sizeof("cnr_observer"), "arg": self._self,
                                            "progress": lib.cnrpy_progress, "event": lib.cnrpy_event})

    def run(self, function: Callable[..., int], *arguments: Any) -> None:
        """Calls `function`; an exception of a callback is raised again behind it."""
        main = on_main_thread()
        err = new_error()
        flag = ffi.new("int32_t **")
        outer = getattr(_watched, "observer", None)
        _watched.observer = self
        try:
            if main:
                lib.cnrpy_watch_interrupt(flag)
                self.c.cancel = flag[0]
            status = function(*arguments, err)
        finally:
            if main:
                lib.cnrpy_unwatch_interrupt()
            _watched.observer = outer
        if self.raised is not None:
            raise self.raised
        check(status, err)

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> int:
        """Calls a Python function from C; 1: stop, because it returned true or raised (the exception comes
        out of run())."""
        try:
            return int(bool(function(*arguments)))
        except BaseException as e:  # passes to run(), not through C
            self.raised = e
            return 1


def _outside(kind: Any, error: BaseException, trace: Any) -> None:
    """Keeps what was raised on the way into a callback, as KeyboardInterrupt is."""
    observer: Observer = _watched.observer
    observer.raised = error


def cnrpy_progress(arg: Any, progress: Any) -> int:
    """C's progress: calls the observer's function; 1: stop."""
    self: Observer = ffi.from_handle(arg)
    return self._ask(self.progress, record(progress)) if self.progress else 0


def cnrpy_event(arg: Any, kind: int, of: Any) -> int:
    """C's event: calls the observer's function; 1: stop."""
    self: Observer = ffi.from_handle(arg)
    return self._ask(self.event, kind, of) if self.event else 0


def cnrpy_log(arg: Any, level: int, plugin: Any, text: Any) -> None:
    """C's log message: goes to the logger "cnnrun"."""
    import logging

    levels = {0: logging.ERROR, 1: logging.WARNING, 2: logging.INFO}
    logging.getLogger("cnnrun").log(levels.get(level, logging.DEBUG), "%s: %s", string(plugin), string(text))


ffi.def_extern(error=1, onerror=_outside)(cnrpy_progress)
ffi.def_extern(error=1, onerror=_outside)(cnrpy_event)
ffi.def_extern()(cnrpy_log)
