"""Nets: run, evaluate, profile, train, quantise, place."""

from __future__ import annotations

import os
from _collections_abc import Mapping
from time import perf_counter

from ._arrays import codes, dtypes, names, np, prefetch
from ._c import (TYPE_CHECKING, Handle, Lock, Observer, Options, call, check, ffi, lib, local, new_error, on_main_thread,
                 record, string, tensor)
from ._script import Detector, Found, Script, check_options

if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

    Read = TypeVar("Read")
    Array = Any  # numpy.ndarray, or any object that numpy.asarray takes without a copy: buffers, DLPack
    Picture = Any  # a path, a PIL image, or a uint8 array of H W, H W 1 or H W 3
    Result = Union["np.ndarray[Any, Any]", Dict[str, "np.ndarray[Any, Any]"]]
else:
    from ._named import NamedTuple

_from_buffer = ffi.from_buffer


class Value(NamedTuple):
    """An input or output. `shape` has None where a dimension is open; `dtype` is NumPy's name."""

    name: str
    shape: Tuple[Optional[int], ...]
    dtype: str


def _value(name: Any, kind: Any) -> Value:
    """Name, shape (None: an unknown size) and type of an input or output."""
    shape = tuple(d if d >= 0 else None for d in kind.dim[0:kind.rank])
    return Value(string(name), shape, names.get(kind.dtype, "opaque"))


def _to_numpy(c: Any) -> "np.ndarray[Any, Any]":
    """A copy of a tensor on the host."""
    if c.dtype not in names or c.encoding or c.data == ffi.NULL:
        raise TypeError("the tensor's type has no NumPy equivalent, or its data is encoded")
    dtype = dtypes[c.dtype]
    shape = tuple(c.dim[0:c.rank])
    out = np.empty(shape, dtype)
    if out.size:
        ffi.memmove(_address(out), c.data, out.nbytes)
    return out


def _from_numpy(value: Array) -> "np.ndarray[Any, Any]":
    """A C-contiguous array over the same memory where the layout allows, else a copy."""
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__") and hasattr(np, "from_dlpack") and not hasattr(value, "__array__"):
            value = np.from_dlpack(value)
        else:
            value = np.asarray(value)
    codes[value.dtype]
    array: "np.ndarray[Any, Any]" = np.ascontiguousarray(value) if value.ndim else value
    return array


def _address(array: "np.ndarray[Any, Any]") -> Any:
    """Where a C-contiguous array begins; valid while the array lives."""
    return _from_buffer(array) if array.size and array.ndim else ffi.cast("void *", array.ctypes.data)


def tensor_of(array: "np.ndarray[Any, Any]") -> Any:
    """A cnr_tensor over a C-contiguous array, valid while that lives."""
    return tensor(_address(array), array.shape, codes[array.dtype], array.nbytes)


def picture_array(picture: Picture) -> "np.ndarray[Any, Any]":
    """A PIL image or an array as uint8 of H W C with C 1 or 3, C-contiguous."""
    if hasattr(picture, "getbands"):
        picture = np.asarray(picture if picture.mode in ("L", "RGB") else picture.convert("RGB"))
    array = _from_numpy(picture)
    if array.dtype != np.uint8:
        raise TypeError(f"a picture is uint8, not {array.dtype}")
    if array.ndim == 2:
        array = array.reshape(*array.shape, 1)
    if array.ndim != 3 or array.shape[2] not in (1, 3):
        raise ValueError(f"a picture is H W, H W 1 or H W 3, not of shape {array.shape}")
    return array


class _Session:
    """A session for given shapes, used by one thread, with the memory that a call needs."""

    __slots__ = ("handle", "inputs", "outputs", "input_list", "output_list", "taken", "shapes", "err", "main", "slow")

    def __init__(self, model: Handle, arrays: Sequence["np.ndarray[Any, Any]"], n_outputs: int) -> None:
        """Plans the model for arrays of these shapes and opens a session."""
        own = [tensor_of(a) for a in arrays]
        plan, session = ffi.new("cnr_plan **"), ffi.new("cnr_session **")
        call(lib.cnr_plan_for, model.c, ffi.new("cnr_tensor *[]", own), len(own), plan)
        held = Handle(plan[0], lib.cnr_plan_release, model)
        call(lib.cnr_session_open, plan[0], session)
        self.handle = Handle(session[0], lib.cnr_session_close, held)
        self.inputs = ffi.new("cnr_tensor[]", len(own))
        for i, t in enumerate(own):
            self.inputs[i] = t[0]
        self.outputs = ffi.new("cnr_tensor[]", n_outputs)
        self.input_list = [self.inputs[i] for i in range(len(own))]
        self.output_list = [self.outputs[i] for i in range(n_outputs)]
        self.taken = ffi.new("int32_t[]", n_outputs)
        self.shapes: List[Tuple[Tuple[int, ...], Any]] = [((0,), np.dtype("u1"))] * n_outputs
        self.err = new_error()
        self.main = on_main_thread()
        self.slow = True

    def run(self, arrays: Sequence["np.ndarray[Any, Any]"]) -> List["np.ndarray[Any, Any]"]:
        """Runs C-contiguous arrays of the planned shapes; returns new arrays, one for each output."""
        for c, array in zip(self.input_list, arrays):
            c.data = _address(array)
        results = [np.empty(shape, dtype) for shape, dtype in self.shapes]
        for c, array in zip(self.output_list, results):
            c.data = _address(array)
        began = perf_counter() if self.main else 0.0
        # Runs under 2 ms need no cancellation; installing the signal handler takes as long as a small net.
        status = lib.cnrpy_run(self.handle.c, self.inputs, len(arrays), self.outputs, len(results), self.taken,
                               self.main and self.slow, self.err)
        if self.main:
            self.slow = perf_counter() - began > 0.002
        if status:
            check(status, self.err)
        for i, taken in enumerate(self.taken):
            if not taken:
                results[i] = _to_numpy(self.outputs[i])
                self.shapes[i] = results[i].shape, results[i].dtype
        return results


class Net:
    """A net with its weights. Made by `cnnrun.load`; may be used from several threads."""

    def __init__(self, model: Handle, runtime: Handle) -> None:
        """Wraps a loaded model."""
        self._model = model
        self._runtime = runtime
        self._lock = Lock()
        self._local = local()
        self._detector: Optional[Tuple[str, Detector]] = None
        c = model.c
        self.inputs: List[Value] = [
            _value(lib.cnr_input_name(c, i), lib.cnr_input_type(c, i)) for i in range(lib.cnr_input_count(c))]
        self.outputs: List[Value] = [
            _value(lib.cnr_output_name(c, i), lib.cnr_output_type(c, i)) for i in range(lib.cnr_output_count(c))]

    def __repr__(self) -> str:
        return f"<cnnrun.Net {self.inputs} -> {self.outputs}>"

    # ---- running ----

    def __call__(self, *inputs: Any, **named: Array) -> Result:
        """Runs the net.

        Takes arrays in the order of `inputs`, one dict by name, or names as keywords; or one picture: a
        path, a PIL image, or a uint8 array of H W or H W 3, prepared as the net says. Arrays have the
        shapes of `inputs`, any size where those are None, and the same dtype. C-contiguous arrays are
        read in place. Returns a new array, or a dict by name if the net has several outputs.
        Raises BadArgument for shapes and types that do not fit.
        """
        if len(inputs) == 1 and not named:
            if isinstance(inputs[0], (str, os.PathLike)):
                prefetch()
                return self._picture(inputs[0], _to_numpy)
            if type(inputs[0]) is np.ndarray and inputs[0].dtype != np.uint8 and len(self.outputs) == 1:
                return self.run(inputs)[0]
            if isinstance(inputs[0], dict):
                return self(**inputs[0])
            if self._is_picture(inputs[0]):
                return self._picture(inputs[0], _to_numpy)
        values = self.run([*inputs, *self._ordered(named, len(inputs))])
        return values[0] if len(values) == 1 else {o.name: v for o, v in zip(self.outputs, values)}

    def _ordered(self, named: Dict[str, Array], skip: int) -> List[Array]:
        """The arrays in the order of the inputs from `skip` on; ValueError: other names than these."""
        names = [i.name for i in self.inputs[skip:]]
        if set(names) != set(named):
            raise ValueError(f"inputs wanted: {names}; given: {sorted(named)}")
        return [named[n] for n in names]

    def run(self, inputs: Sequence[Array]) -> List["np.ndarray[Any, Any]"]:
        """Runs arrays in the order of `inputs`; returns the outputs in order, as new arrays.

        Shapes and types are those of `inputs`; an open dimension has any size, and a plan is made for each
        new one. Raises ValueError for another number of arrays, TypeError for a type that no net has, Error
        for shapes that do not fit.
        """
        arrays = [_from_numpy(x) for x in inputs]
        key = tuple([(a.shape, a.dtype) for a in arrays])
        try:
            session: _Session = self._local.sessions[key]
        except (AttributeError, KeyError):
            session = self._open(key, arrays)
        return session.run(arrays)

    def _open(self, key: Any, arrays: Sequence["np.ndarray[Any, Any]"]) -> _Session:
        """Opens a session for arrays of these shapes and keeps it under `key`."""
        if len(arrays) != len(self.inputs):
            raise ValueError(f"{len(self.inputs)} inputs wanted, {len(arrays)} given")
        with self._lock:
            session = _Session(self._model, arrays, len(self.outputs))
            sessions = self._local.__dict__.setdefault("sessions", {})
            if len(sessions) >= 8:
                sessions.pop(next(iter(sessions)))
            sessions[key] = session
        return session

    def _is_picture(self, x: Any) -> bool:
        """True: x is a picture (PIL's, or an 8-bit array [height, width] or [height, width, 1, 3 or 4]), not
        an input tensor."""
        return hasattr(x, "getbands") or (
            isinstance(x, np.ndarray) and x.dtype == np.uint8 and self.inputs[0].dtype != "uint8"
            and (x.ndim == 2 or x.ndim == 3 and x.shape[2] in (1, 3)))

    def _picture(self, x: Any, read: Callable[[Any], Read]) -> Read:
        """What `read` makes of the scores, a cnr_tensor that is gone with the next picture."""
        if isinstance(x, (str, os.PathLike)):
            out = ffi.new("cnr_tensor **")
            with self._lock:
                call(lib.cnr_run_picture, self._model.c, os.fsencode(x), out)
                return read(out[0])
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            self._write(os.path.join(folder, "%d.png"), picture_array(x))
            return self._picture(os.path.join(folder, os.listdir(folder)[0]), read)

    def _write(self, pattern: str, array: "np.ndarray[Any, Any]") -> None:
        """Writes the picture array to the file or pattern."""
        writer = ffi.new("cnr_writer **")
        call(lib.cnr_writer_open, self._runtime.c, os.fsencode(pattern), writer)
        err = new_error()
        status = lib.cnr_writer_put(writer[0], tensor_of(array), ffi.NULL, 2**64 - 1, err)
        call(lib.cnr_writer_close, writer[0])
        check(status, err)

    def topk(self, scores: Union[Array, Picture], k: int = 5) -> List[Tuple[Union[int, str], float]]:
        """The k largest scores, best first, each with its label, or its index where there is none.

        `scores` is what the net gave, or a path or PIL image to run it on; by path NumPy is not imported.
        """
        if isinstance(scores, (str, os.PathLike)) or hasattr(scores, "getbands"):
            return self._picture(scores, lambda c: self._best(c, k))
        return self._best(tensor_of(_from_numpy(scores)), k)

    def _best(self, scores: Any, k: int) -> List[Tuple[Union[int, str], float]]:
        """The k largest scores with the labels (their numbers where they have none), largest first."""
        best = ffi.new("cnr_top[]", max(k, 1))
        n = lib.cnr_topk(scores, k, best)
        return [(self.label(best[i].index) or best[i].index, best[i].score) for i in range(n)]

    def label(self, index: int) -> Optional[str]:
        """The name of class `index`, or None."""
        return string(lib.cnr_label(self._model.c, index)) or None

    # ---- objects in pictures ----

    def detector(self, **options: Any) -> Detector:
        """What finds things in pictures by this net, with the options of `cnnrun detect` as keywords.

        `score` (least, 0 to 1), `overlap` (of boxes of a class, 0 to 1), `across` (of different classes),
        `family` (decoder of the outputs), `size` ("416x416"), `longest` (pixels), `labels` (a file or a list)
        and preprocessing: `mean`, `std`, `scale`, `channels`, `letterbox`. Raises Error if no family fits.
        """
        return Detector(self._runtime, options, self._model, self._lock)

    def detect(self, picture: Picture, **options: Any) -> List[Found]:
        """Things in a picture, best first; keywords are those of `detector`.

        picture: a path, a PIL image, or uint8 of H W, H W 1 or H W 3. Boxes are left, top, width and height in
        its pixels, as a tracker takes them. The detector is kept for the next call with the same options.
        """
        key = repr(sorted(options.items()))
        if self._detector is None or self._detector[0] != key:
            self._detector = key, self.detector(**options)
        return self._detector[1](picture)

    # ---- weights and layers ----

    @property
    def weights(self) -> Dict[str, "np.ndarray[Any, Any]"]:
        """Copies of all weights by name. TypeError: one is encoded (sparse, int8 blocks)."""
        return {n: self.weight(n) for n in self.weight_names()}

    def weight_names(self) -> List[str]:
        """Names of all weights, in the order of the net."""
        c = self._model.c
        return [string(lib.cnr_weight_name(c, i)) for i in range(lib.cnr_weight_count(c))]

    def weight(self, name: str) -> "np.ndarray[Any, Any]":
        """A copy of a weight. Raises NotFound."""
        out = ffi.new("cnr_tensor **")
        call(lib.cnr_weight, self._model.c, name.encode(), out)
        return _to_numpy(out[0])

    def set_weight(self, name: str, value: Array) -> None:
        """Replaces a weight by one of the same shape and type. No thread may be running the net.

        Raises NotFound for a name that is not there, Error for another shape or type.
        """
        self._local = local()  # closes all sessions
        call(lib.cnr_set_weight, self._model.c, name.encode(), tensor_of(_from_numpy(value)))

    def layers(self) -> Iterator[Dict[str, Any]]:
        """The layers in order: name, op, flops (a multiply-accumulate is two), shape."""
        layer, index = ffi.new("cnr_layer *"), 0
        while True:
            layer.size = ffi.sizeof("cnr_layer")
            err = new_error()
            status = lib.cnr_layer_at(self._model.c, index, layer, err)
            if status == lib.CNR_E_NOT_FOUND:
                return
            check(status, err)
            yield dict(record(layer), shape=tuple(layer.type.dim[0:layer.type.rank]))
            index += 1

    def copy(self) -> Net:
        """A net of its own with its own weights."""
        out = ffi.new("cnr_model **")
        call(lib.cnr_copy, self._model.c, out)
        return Net(Handle(out[0], lib.cnr_release, self._runtime), self._runtime)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes .cnr, or the format of the exporter that takes the name, such as .onnx."""
        call(lib.cnr_save, self._model.c, os.fsencode(path))

    def place(self, node: str = "*", devices: Union[str, Sequence[str]] = (), *, axis: int = 0,
              shares: Optional[Sequence[float]] = None, policy: Optional[str] = None,
              policy_options: Optional[Mapping[str, Any]] = None) -> None:
        """Runs a node ("*": all others) on a device, or on several that share its output along `axis`.

        shares: a part for each device, 1 in all; None: equal ones. No devices: the wish is taken back. policy:
        the whole net as an installed policy ("fastest", "best") or a Lua file says; "" takes it back.
        Raises NotFound for a node or device that is not there. No thread may be running the net.
        """
        names = [devices] if isinstance(devices, str) else list(devices)
        given = Options("cnr_place_options", dict(node=None if policy is not None and not names else node, devices=names,
                                                  n_devices=len(names), axis=axis, shares=shares, policy=policy,
                                                  policy_options=policy_options))
        self._local = local()
        call(lib.cnr_place, self._model.c, given.c)

    # ---- long work: keywords are the members of the C struct of options ----

    def _work(self, function: Callable[..., int], options: str, result: str, free: Callable[[Any], None],
              given: Dict[str, Any], read: Callable[[Any], Dict[str, Any]], watch: Observer,
              *more: Any) -> Dict[str, Any]:
        """Runs a long C work with options; returns what `read` makes of its result, which `free` frees."""
        o = Options(options, given)
        out = ffi.new(f"{result} *", {"size": ffi.sizeof(result)})
        try:
            watch.run(function, self._model.c, o.c, watch.c, *more, out)
            return dict(record(out), **read(out))
        finally:
            free(out)

    def evaluate(self, data: str, *, progress: Optional[Callable[[Dict[str, Any]], Any]] = None,
                 report: Union[None, str, "os.PathLike[str]"] = None, **options: Any) -> Dict[str, Any]:
        """How often the net is right on labelled pictures: "mnist:DIR", a folder, "images:LIST".

        Keywords of `cnr_evaluate_options`: split, limit and batch (pictures), rows. Returns n, right, top1 and
        top5 (parts of 1), loss, seconds and confusion (int64, [label][answer], or None). With rows=1 also
        `rows`, a structured array with index, label, answer, share and label_share of each picture.
        report: an .html page to write, with the confusion matrix, calibration and the worst mistakes;
        its pictures want the plugin draw-cairo.
        """
        def read(out: Any) -> Dict[str, Any]:
            """The result as a dict; "confusion": int64 [labels, labels], rows are the true ones, or None."""
            more: Dict[str, Any] = {"confusion": None}
            n = out.labels
            if out.confusion != ffi.NULL:
                more["confusion"] = np.frombuffer(ffi.buffer(out.confusion, n * n * 8), np.int64).reshape(n, n).copy()
            if out.rows != ffi.NULL:
                kind = np.dtype([("index", "i8"), ("label", "i8"), ("answer", "i8"), ("share", "f8"),
                                 ("label_share", "f8")])
                size = out.n * ffi.sizeof("cnr_evaluated")
                more["rows"] = np.frombuffer(ffi.buffer(out.rows, size), kind).copy()
            return more

        given = dict(options, data=data, rows=int(bool(options.get("rows") or report)))
        result = self._work(lib.cnr_evaluate, "cnr_evaluate_options", "cnr_evaluation", lib.cnr_evaluation_free,
                            given, read, Observer(progress))
        if report:
            import json

            rows = result["rows"]
            about = {"output": os.fsdecode(report), "title": "Net", "data": data, "data_split": options.get("split"),
                     "named": not options.get("labels") and not options.get("offset")}
            about.update({k: result[k] for k in ("top1", "top5", "loss", "seconds")})
            columns = [np.ascontiguousarray(rows[name]) for name in rows.dtype.names]
            with self._lock:
                script = Script(self._runtime, "calls/eval_report.lua", self._model)
                script(json.dumps({k: v for k, v in about.items() if v is not None}), [tensor_of(x) for x in columns])
        return result

    def profile(self, **options: Any) -> Dict[str, Any]:
        """Time and memory of the net on made-up inputs; milliseconds, bytes.

        Keywords of `cnr_profile_options`: steps (default 1), batch, runs, warm, energy, trace. `rows` of
        the result has a dict for each step: pandas.DataFrame(net.profile()["rows"]).
        """
        def read(out: Any) -> Dict[str, Any]:
            """The result as a dict; "rows": one for each step."""
            return {"rows": [record(out.steps[i]) for i in range(out.n_steps)]}

        return self._work(lib.cnr_profile, "cnr_profile_options", "cnr_timing", lib.cnr_timing_free,
                          {"steps": 1, **options}, read, Observer())

    def train(self, data: str, *, on_epoch: Optional[Callable[[Dict[str, Any]], Any]] = None,
              progress: Optional[Callable[[Dict[str, Any]], Any]] = None, **options: Any) -> Dict[str, Any]:
        """Trains the net on `data`, a source ("mnist:DIR", a folder, "images:LIST"), from the weights that it has.

        Afterwards it has the weights of the best epoch on the validation part; masked weights stay 0. Keywords of
        `cnr_train_options`: epochs, batch, rate, momentum, limit, validation, seed, output (a .cnr file),
        checkpoint, test. `on_epoch` gets a dict of epoch, loss, top1, best, seconds; a true result stops. Returns a
        dict of epochs, best_epoch, best, test (parts of 1, or NaN), seconds. Raises an error if training fails.
        """
        settings = Options("cnr_train_options", {})
        lib.cnr_train_options_default(settings.c)
        for key, value in dict({"test": ""}, **options, data=data).items():
            settings.set(key, value)

        def event(kind: int, of: Any) -> Any:
            """Passes the end of an epoch to on_epoch and returns its answer, true to stop; None
            for other events."""
            if kind == lib.CNR_EVENT_EPOCH and on_epoch:
                return on_epoch(record(ffi.cast("cnr_epoch *", of)))
            return None

        out = ffi.new("cnr_train_result *", {"size": ffi.sizeof("cnr_train_result")})
        watch = Observer(progress, event)
        self._local = local()
        try:
            watch.run(lib.cnr_train_model, self._model.c, settings.c, watch.c, out)
            return record(out)
        finally:
            lib.cnr_train_result_free(out)

    def share(self, policy: str = "best", *, progress: Optional[Callable[[Dict[str, Any]], Any]] = None,
              **options: Any) -> Dict[str, Any]:
        """Measures the net on each device and has a policy share it among them, as `cnnrun place` does.

        The net then runs so, or on the device alone that is better. Keywords of `cnr_share_options`: devices
        (names), runs (timed, 5), batch (pictures), settings, folder (where the placement is kept), again.
        Returns alone (rows for each device), parts (node, device, share), and predicted, measured and chosen: name,
        seconds, joules, watts and edp of a run (NaN: unmeasured). No thread may be running the net.
        """
        def read(out: Any) -> Dict[str, Any]:
            """The result as a dict; "alone": a row for each device, "parts": the share of each node and device."""
            return {"alone": [record(out.alone[i]) for i in range(out.n_alone)],
                    "parts": [record(out.parts[i]) for i in range(out.n_parts)]}

        self._local = local()
        return self._work(lib.cnr_share, "cnr_share_options", "cnr_sharing", lib.cnr_sharing_free,
                          dict(options, policy=policy), read, Observer(progress))

    def quantize(self, data: str, *, progress: Optional[Callable[[Dict[str, Any]], Any]] = None,
                 **options: Any) -> Tuple[Net, Dict[str, Any]]:
        """A net of its own in 8-bit integers, calibrated on pictures, and a report.

        Keywords of `cnr_quantize_options`: limit and check (pictures), layers (a pattern), least (decibels),
        method, max_drop (points), equalize, correct_bias, all (1: layers that are slower here, too). The report
        has `layers` (rows), `warnings`, n_quantized, agree, decibels, lost (points, with max_drop) and held_back
        (the pictures that it was judged on).
        """
        def read(out: Any) -> Dict[str, Any]:
            """The result as a dict: layers, warnings and the accuracy before and after."""
            return {"layers": [record(out.layers[i]) for i in range(out.n_layers)],
                    "warnings": [string(out.warnings[i]) for i in range(out.n_warnings)],
                    "top1": (out.top1[0], out.top1[1]), "ms": (out.ms[0], out.ms[1])}

        net = ffi.new("cnr_model **")
        report = self._work(lib.cnr_quantize, "cnr_quantize_options", "cnr_quantizing", lib.cnr_quantizing_free,
                            dict(options, data=data), read, Observer(progress), net)
        return Net(Handle(net[0], lib.cnr_release, self._runtime), self._runtime), report

    def prune(self, schedule: Union[str, "os.PathLike[str]", Mapping[str, Any]], data: str, *,
              folder: Union[None, str, "os.PathLike[str]"] = None,
              on_step: Optional[Callable[[Dict[str, Any]], Any]] = None,
              **options: Any) -> Tuple[Net, Dict[str, Any]]:
        """A net of its own with fewer weights, by a schedule of cuts and training in turns, and a report.

        schedule: the name of an installed one (lenet5, alexnet, gradual, saliency, blocks, channels), a Lua
        file, or a dict of what such a file may say: {"layers": {"ip1": 0.1}, "rates": "once", "train":
        {"epochs": 1}}. data: labelled pictures, "mnist:DIR". folder: where work is kept, so that a pruning
        that was stopped goes on when it is called again; report.html and curves are there at the end. None:
        nothing is kept. Keywords are options of `cnnrun prune`: eval, limit, validation, seed, no_scan, restart.

        `on_step` gets each row as it is known: {"scan": layer, "keep", "accuracy", "loss"}, {"step", "kept",
        "cut", "accuracy", "loss"}; True stops the work, which raises Cancelled. The report has kept (part of
        1), bytes, bytes_dense, validation, validation_dense, test, ms, ms_dense and others.
        """
        import json

        check_options(options, "eval limit validation validation_seed seed no_scan restart load")
        if folder is None:
            import tempfile

            with tempfile.TemporaryDirectory() as temporary:
                net, report = self.prune(schedule, data, folder=temporary, on_step=on_step, **options)
                report["report"] = report["folder"] = None
                return net, report
        place = os.fsdecode(folder)
        os.makedirs(place, exist_ok=True)
        given, output = os.path.join(place, "given.cnr"), os.path.join(place, "output.cnr")
        self.save(given)
        wanted = dict(options, data=data, folder=place, output=output, model=given)
        if isinstance(schedule, Mapping):
            wanted["schedule"], path = dict(schedule), "calls/prune.lua"
        else:
            path = os.fsdecode(schedule)
            path = path if path.endswith(".lua") else f"prune/{path}.lua"
        last: Dict[str, Any] = {}

        def tell(text: str) -> Any:
            """Keeps the last line the script told, and passes a step to on_step; returns its
            answer, true to stop, or None."""
            last.clear()
            last.update(json.loads(text))
            return on_step(dict(last)) if on_step and "output" not in last else None

        Script(self._runtime, path)(json.dumps(wanted), tell=tell)
        out = ffi.new("cnr_model **")
        load = Options("cnr_load_options", {})
        call(lib.cnr_load, self._runtime.c, os.fsencode(output), load.c, out)
        return Net(Handle(out[0], lib.cnr_release, self._runtime), self._runtime), dict(last)
