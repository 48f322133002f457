"""ONNX Runtime's interface for inference: `import cnnrun.ort as onnxruntime`."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence, Union

from .._arrays import np
from .._net import Net, Value
from .._runtime import runtime
from ._model import ModelMetadata, Told, metadata_of
from ._values import IOBinding, OrtValue, type_name

class SessionOptions:
    """Options of a session. `intra_op_num_threads` (0: all cores) and `enable_profiling` have an effect.

    Others are accepted: nets are always optimised, and one device runs one step at a time.
    """

    def __init__(self) -> None:
        """ONNX Runtime's default options."""
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level: Any = None
        self.execution_mode: Any = None
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self._entries: Dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Stores a configuration entry for get_session_config_entry; no entry has an effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added. KeyError: it was not."""
        return self._entries[key]


class RunOptions:
    """Options of a run; accepted for compatibility."""

    def __init__(self) -> None:
        """Accepted for compatibility: default options of a run; only kept."""
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False


class ExecutionMode:
    """Accepted for compatibility."""

    ORT_SEQUENTIAL, ORT_PARALLEL = 0, 1


class GraphOptimizationLevel:
    """Accepted for compatibility; nets are always optimised."""

    ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL = 0, 1, 2, 99


class NodeArg:
    """An input or output: name, type as "tensor(float)", shape with None or a name where it is open."""

    def __init__(self, value: Value, told: Optional[Told] = None) -> None:
        """Name, type and shape of an input or output, in ONNX Runtime's words."""
        self.name = value.name
        self.type = told.type if told else f"tensor({type_name(value.dtype)})"
        self.shape: List[Optional[int]] = [] if told and told.maps else list(value.shape)

    def __repr__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"


def get_available_providers() -> List[str]:
    """The providers by ONNX Runtime's names: OpenCL devices count as one of our own."""
    families = {d["family"] for d in runtime().devices()}
    return [name for family, name in (("opencl", "OpenCLExecutionProvider"), ("cpu", "CPUExecutionProvider"))
            if family in families]


def get_device() -> str:
    """The text "CPU", as ONNX Runtime calls the device of backends."""
    return "CPU"


class InferenceSession:
    """A net, as ONNX Runtime's class of that name. Takes a file of any known format.

    The first of `providers` decides the device: CPUExecutionProvider or OpenCLExecutionProvider.
    """

    def __init__(self, path_or_bytes: Union[str, bytes, "os.PathLike[str]"],
                 sess_options: Optional[SessionOptions] = None, providers: Optional[Sequence[Any]] = None,
                 provider_options: Optional[Sequence[Dict[Any, Any]]] = None) -> None:
        """Loads an ONNX model by path or bytes; providers that are unknown are left out, and with none left the CPU is used."""
        names = [p if isinstance(p, str) else p[0] for p in providers or ["CPUExecutionProvider"]]
        known = {"CPUExecutionProvider": "cpu", "OpenCLExecutionProvider": "opencl"}
        usable = [n for n in names if n in known] or ["CPUExecutionProvider"]
        threads = sess_options.intra_op_num_threads if sess_options else 0
        self._options = sess_options or SessionOptions()
        self._providers = usable
        self._net: Net
        device = known[usable[0]]
        self._profiles = sess_options.profile_file_prefix if sess_options and sess_options.enable_profiling else ""
        self._metadata = metadata_of(path_or_bytes)
        if isinstance(path_or_bytes, bytes):
            import tempfile

            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "net.onnx")
                with open(path, "wb") as out:
                    out.write(path_or_bytes)
                self._net = runtime(threads).load(path, device=device)
        else:
            self._net = runtime(threads).load(path_or_bytes, device=device)

    def get_inputs(self) -> List[NodeArg]:
        """The inputs in order."""
        return [NodeArg(v) for v in self._net.inputs]

    def get_outputs(self) -> List[NodeArg]:
        """The outputs in order."""
        return [NodeArg(v, self._metadata.told.get(v.name)) for v in self._net.outputs]

    def get_providers(self) -> List[str]:
        """The providers in use."""
        return list(self._providers)

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of the model; empty texts for files that are no ONNX."""
        return self._metadata

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._options

    def run(self, output_names: Optional[Sequence[str]], input_feed: Dict[str, Any], run_options: Any = None) -> List[Any]:
        """Runs the net; outputs in the order of `output_names`, or all. ValueError: a name is unknown.

        Outputs are arrays; those of ZipMap are lists of dicts, and classes whose names are texts come as such.
        """
        told = self._metadata.told
        values: List[Any] = self._run(output_names, input_feed)
        if not told:
            return values
        names = output_names or [v.name for v in self._net.outputs]
        return [told[n].of(v) if n in told else v for n, v in zip(names, values)]

    def _run(self, output_names: Optional[Sequence[str]],
             input_feed: Dict[str, Any]) -> List["np.ndarray[Any, Any]"]:
        """Runs the net on arrays by name; returns the outputs of these names (None: all); ValueError: missing
        or unknown names."""
        names = [v.name for v in self._net.inputs]
        missing = [n for n in names if n not in input_feed]
        unknown = [n for n in input_feed if n not in names]
        if missing or unknown:
            raise ValueError(f"inputs missing: {missing}; unknown: {unknown}; the net has {names}")
        given = [input_feed[n] for n in names]
        values = self._net.run([v.numpy() if isinstance(v, OrtValue) else v for v in given])
        if not output_names:
            return values
        by_name = {v.name: value for v, value in zip(self._net.outputs, values)}
        lost = [n for n in output_names if n not in by_name]
        if lost:
            raise ValueError(f"unknown outputs: {lost}; the net has {list(by_name)}")
        return [by_name[n] for n in output_names]

    def run_with_ort_values(self, output_names: Optional[Sequence[str]], input_dict_ort_values: Dict[str, OrtValue],
                            run_options: Any = None) -> List[OrtValue]:
        """As `run`, from and to OrtValues, which are all tensors of numbers."""
        return [OrtValue(v) for v in self._run(output_names, dict(input_dict_ort_values))]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs that are bound before a run; memory is the host's."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Runs from the inputs to the outputs that are bound."""
        iobinding.take(self._run(iobinding.outputs or None, dict(iobinding.inputs)))

    def end_profiling(self) -> str:
        """Writes a trace of one more run on made-up inputs, which Chrome and Perfetto read; the file's name.

        ValueError: the session was made without enable_profiling.
        """
        if not self._profiles:
            raise ValueError("end_profiling wants a session with SessionOptions.enable_profiling")
        import time

        name = f"{self._profiles}_{time.strftime('%Y-%m-%d_%H-%M-%S')}.json"
        self._net.profile(runs=1, trace=name)
        return name
