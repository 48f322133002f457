"""Runtimes: loaded plugins and open devices; what they tell of the machine."""

from __future__ import annotations

import os

from ._c import TYPE_CHECKING, Handle, Lock, Observer, Options, call, check, ffi, lib, new_error, record
from ._frames import Frames, Tracker, spec_of
from ._net import Net
from ._script import Detector

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, Union

    from ._script import Box

_default: Dict[Any, "Runtime"] = {}
_lock = Lock()


class Runtime:
    """Loaded plugins and open devices. Most programs need none: `cnnrun.load` shares one.

    Keywords are the members of the C struct `cnr_open_options`: `threads` of the CPU device (0: one
    for each core), `plugin_dirs`, `log_level`, `trust_scripts`, `sysfs_root`, `board` and others.
    Messages go to the logger "cnnrun".
    """

    def __init__(self, **options: Any) -> None:
        """Opens the library with fields of cnr_open_options; cnnrun.Error where that fails."""
        given = Options("cnr_open_options", options)
        given.c.log = lib.cnrpy_log
        out = ffi.new("cnr_runtime **")
        call(lib.cnr_open, out, given.c)
        self._handle = Handle(out[0], lib.cnr_close)

    def load(self, path: Union[str, "os.PathLike[str]"], *, symbols: Optional[Mapping[str, int]] = None,
             **options: Any) -> Net:
        """Loads a net: .cnr, .lua, .onnx, or what an importer recognises.

        Keywords are the members of the C struct `cnr_load_options`, such as `weights` (files, or
        "random:SEED"), `device` ("cpu", "opencl:0"), `preset`, `labels`, `cache`, `kernels`,
        `memory_limit` (bytes), `fallback`, `weights_type` ("fp16"). `symbols` gives the sizes of open
        dimensions by name. Raises NotFound, BadArgument or Error with the file and line.
        """
        given = Options("cnr_load_options", options)
        if symbols:
            given.set("symbols", list(symbols))
            given.set("symbol_values", list(symbols.values()))
            given.c.n_symbols = len(symbols)
        out = ffi.new("cnr_model **")
        call(lib.cnr_load, self._handle.c, os.fsencode(path), given.c, out)
        return Net(Handle(out[0], lib.cnr_release, self._handle), self._handle)

    def _rows(self, function: Any, kind: str) -> List[Dict[str, Any]]:
        """All entries that `function` lists, as dicts of the fields of `kind`."""
        rows: List[Dict[str, Any]] = []
        entry = ffi.new(f"{kind} *")
        while True:
            err = new_error()
            entry.size = ffi.sizeof(kind)
            status = function(self._handle.c, len(rows), entry, err)
            if status == lib.CNR_E_NOT_FOUND:
                return rows
            check(status, err)
            rows.append(record(entry))

    def devices(self) -> List[Dict[str, Any]]:
        """All devices, best first: name, family, hardware, driver, plugin, concurrency, memory_bytes."""
        return self._rows(lib.cnr_device_at, "cnr_device_entry")

    def plugins(self) -> List[Dict[str, Any]]:
        """All plugins that were found: name, version, file, summary, refused (None: it is loaded)."""
        return self._rows(lib.cnr_plugin_at, "cnr_plugin_entry")

    def detector(self, model: Union[str, "os.PathLike[str]"], **options: Any) -> Detector:
        """What finds things in pictures: `model` is a net's file, "DESCRIPTION,WEIGHTS", or a folder of MTCNN's.

        Keywords are those of `Net.detector`, and device ("cpu"), smallest (MTCNN: pixels of a face), swapped.
        """
        return Detector(self._handle, dict(options, model=model))

    def frames(self, source: Union[str, "os.PathLike[str]"]) -> Frames:
        """The pictures of a video, a camera ("/dev/video0"), a stream, a folder or "frame-%03d.png"."""
        return Frames(self._handle, spec_of(source))

    def tracker(self, **options: Union[int, float, str]) -> Tracker:
        """What follows one object through pictures; keywords are the tracker's options, such as `seed`."""
        return Tracker(self._handle, [f"{name}={value}" for name, value in options.items()])

    def track(self, source: Union[str, "os.PathLike[str]"], box: Sequence[float], **options: Union[int, float, str],
              ) -> Iterator[Tuple[Optional[float], Optional[Box], float]]:
        """Follows what the box holds in the first picture: (seconds, box or None, confidence) of each other one."""
        tracker = self.tracker(**options)
        with self.frames(source) as frames:
            for first in frames:
                tracker.init(first.picture, box)
                break
            for frame in frames:
                yield (frame.seconds, *tracker.track(frame.picture))

    def energy(self, **options: Any) -> Energy:
        """A `with` block whose energy is measured; see `Energy`."""
        return Energy(self._handle, options)

    def govern(self, policy: Optional[str] = None, **options: Any) -> Governing:
        """A `with` block beside which a frequency policy runs; see `Governing`."""
        return Governing(self._handle, dict(options, policy=policy))


class Energy:
    """Energy of a `with` block, of the whole machine. Its members are there when the block has ended.

    `result` holds joules, joules_net (above idle), watts, idle_watts, seconds, edp (joules times
    seconds), source (0: unmeasured, 1 measured, 2 estimated, 3 simulated), why, and `domains`, a row for
    each meter's domain. A number that cannot be told is NaN. Keywords: `no_idle`, `idle_watts`.
    """

    def __init__(self, runtime: Handle, options: Mapping[str, Any]) -> None:
        """Options of cnr_energy_options; nothing is measured yet."""
        self._runtime = runtime
        self._options = Options("cnr_energy_options", options)
        self._region: Any = ffi.NULL
        self.result: Dict[str, Any] = {}

    def __enter__(self) -> Energy:
        """Begins to measure the energy of the block (cnr_energy_begin); an interrupt ends that
        with KeyboardInterrupt."""
        out = ffi.new("cnr_energy_region **")
        watch = Observer()
        watch.run(lib.cnr_energy_begin, self._runtime.c, self._options.c, watch.c, out)
        self._region = out[0]
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        """Ends; `result` then has the joules and seconds."""
        region, self._region = self._region, ffi.NULL
        out = ffi.new("cnr_energy *", {"size": ffi.sizeof("cnr_energy")})
        call(lib.cnr_energy_end, region, 1, out)
        self.result = energy_of(out)
        lib.cnr_energy_free(out)


def energy_of(energy: Any) -> Dict[str, Any]:
    """A cnr_energy as a dict, its domains as rows."""
    out = record(energy)
    out["domains"] = [record(energy.at[i]) for i in range(energy.n)]
    return out


class Governing:
    """A frequency policy beside a `with` block: "edp", "fixed,at=lowest" or a Lua file.

    All frequencies are put back at the end. `result` then holds runs, late, ticks, switches, seconds,
    joules, fps and others of the C struct `cnr_governed`. Keywords are those of `cnr_govern_options`.
    """

    def __init__(self, runtime: Handle, options: Mapping[str, Any]) -> None:
        """Options of cnr_govern_options; nothing is governed yet."""
        self._runtime = runtime
        self._options = Options("cnr_govern_options", options)
        self._governing: Any = ffi.NULL
        self.result: Dict[str, Any] = {}

    def __enter__(self) -> Governing:
        """Begins to govern the clocks for the block (cnr_govern_begin), and raises what that
        fails with."""
        out = ffi.new("cnr_governing **")
        call(lib.cnr_govern_begin, self._runtime.c, self._options.c, out)
        self._governing = out[0]
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        """Ends and restores the clocks; `result` then tells what was done."""
        governing, self._governing = self._governing, ffi.NULL
        out = ffi.new("cnr_governed *", {"size": ffi.sizeof("cnr_governed")})
        call(lib.cnr_govern_end, governing, out)
        self.result = record(out)
        self.result["tick_rows"] = [record(out.ticks_at[i]) for i in range(out.n_ticks)]
        lib.cnr_governed_free(out)


def runtime(threads: int = 0) -> Runtime:
    """The runtime that `load` shares, by its number of threads (0: one for each core)."""
    with _lock:
        if threads not in _default:
            _default[threads] = Runtime(threads=threads)
        return _default[threads]


def load(path: Union[str, "os.PathLike[str]"], *, threads: int = 0,
         symbols: Optional[Mapping[str, int]] = None, **options: Any) -> Net:
    """Loads a net with the shared runtime; `Runtime.load` tells the keywords."""
    return runtime(threads).load(path, symbols=symbols, **options)


def devices() -> List[Dict[str, Any]]:
    """All devices of this machine, best first; see `Runtime.devices`."""
    return runtime().devices()


def energy(**options: Any) -> Energy:
    """Energy of a `with` block: `with cnnrun.energy() as e: ...`, then `e.result`."""
    return runtime().energy(**options)


def govern(policy: Optional[str] = None, **options: Any) -> Governing:
    """A frequency policy beside a `with` block: `with cnnrun.govern("edp") as g: ...`."""
    return runtime().govern(policy, **options)


def plugins() -> List[Dict[str, Any]]:
    """All plugins that were found, refused ones too; see `Runtime.plugins`."""
    return runtime().plugins()


def frames(source: Union[str, "os.PathLike[str]"]) -> Frames:
    """Pictures one behind the other: `for picture, seconds, name in cnnrun.frames("film.mp4")`."""
    return runtime().frames(source)


def detector(model: Union[str, "os.PathLike[str]"], **options: Any) -> Detector:
    """What finds things in pictures: `cnnrun.detector("yolox_nano.onnx")("street.jpg")`; see `Runtime.detector`."""
    return runtime().detector(model, **options)


def tracker(**options: Union[int, float, str]) -> Tracker:
    """What follows one object through pictures; see `Tracker`."""
    return runtime().tracker(**options)


def track(source: Union[str, "os.PathLike[str]"], box: Sequence[float],
          **options: Union[int, float, str]) -> Iterator[Tuple[Optional[float], Optional[Box], float]]:
    """Follows what is in the box of a video's first picture; see `Runtime.track`."""
    return runtime().track(source, box, **options)
