"""Values and their binding, as ONNX Runtime has them; all memory is the host's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from .._arrays import np
from .._c import ffi

if TYPE_CHECKING:
    from . import InferenceSession

_TYPES = {"float32": "float", "float64": "double"}


def type_name(dtype: str) -> str:
    """ONNX Runtime's name of a type of NumPy: "float" of "float32"."""
    return _TYPES.get(dtype, dtype)


def _check_device(device: str) -> None:
    """Raises ValueError unless the device is "cpu"."""
    if device != "cpu":
        raise ValueError(f"memory of the device {device!r} cannot be bound; want 'cpu'")


def _at(address: int, shape: Sequence[int], dtype: Any) -> "np.ndarray[Any, Any]":
    """An array over memory that somebody else owns and keeps."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return np.frombuffer(ffi.buffer(ffi.cast("char *", address), size), kind).reshape(tuple(shape))


class OrtValue:
    """A tensor on the host."""

    def __init__(self, array: "np.ndarray[Any, Any]") -> None:
        """Wraps an array, without a copy."""
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: "np.ndarray[Any, Any]", device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A value over the array, without a copy where it is C-contiguous."""
        _check_device(device_type)
        return OrtValue(np.ascontiguousarray(numpy_obj))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0) -> OrtValue:
        """A value of zeros."""
        _check_device(device_type)
        return OrtValue(np.zeros(tuple(shape), element_type))

    def numpy(self) -> "np.ndarray[Any, Any]":
        """The value itself, without a copy."""
        return self._array

    def __dlpack__(self, **options: Any) -> Any:
        """The array by the DLPack protocol, without a copy."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        """DLPack's device of the array: the CPU."""
        return self._array.__dlpack_device__()

    def update_inplace(self, np_arr: "np.ndarray[Any, Any]") -> None:
        """Copies an array of the same shape into the value."""
        np.copyto(self._array, np_arr)

    def shape(self) -> List[int]:
        """The array's dimensions, as a list."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """The name of its type, such as "tensor(float)"."""
        return f"tensor({type_name(self._array.dtype.name)})"

    def data_ptr(self) -> int:
        """Address of the first element, valid while the value lives."""
        return int(self._array.ctypes.data)

    def device_name(self) -> str:
        """The text "cpu": memory is the host's."""
        return "cpu"

    def is_tensor(self) -> bool:
        """True."""
        return True

    def is_sparse_tensor(self) -> bool:
        """False: there are none."""
        return False

    def is_tensor_sequence(self) -> bool:
        """False: there are none."""
        return False

    def has_value(self) -> bool:
        """True."""
        return True


class IOBinding:
    """Inputs and outputs of runs by `InferenceSession.run_with_iobinding`."""

    def __init__(self, session: InferenceSession) -> None:
        """Bindings of a session; none yet."""
        self._session = session
        self.inputs: Dict[str, Any] = {}
        self._bound: Dict[str, Optional["np.ndarray[Any, Any]"]] = {}
        self._results: List[OrtValue] = []

    @property
    def outputs(self) -> List[str]:
        """Names of the outputs that are bound, in that order."""
        return list(self._bound)

    def bind_cpu_input(self, name: str, arr_on_cpu: "np.ndarray[Any, Any]") -> None:
        """Binds an array, which is read when the net runs."""
        self.inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        """Binds memory at an address, which must stay until the run is over."""
        _check_device(device_type)
        self.inputs[name] = _at(buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value, which is read when the net runs."""
        self.inputs[name] = ortvalue.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Optional[Sequence[int]] = None, buffer_ptr: Optional[int] = None) -> None:
        """Binds an output: to memory of the caller at an address, else to memory that each run makes."""
        _check_device(device_type)
        self._bound[name] = None if not buffer_ptr else _at(buffer_ptr, shape or (), element_type)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value of the output's shape and type, which runs write."""
        self._bound[name] = ortvalue.numpy()

    def take(self, values: Sequence["np.ndarray[Any, Any]"]) -> None:
        """The results of a run. ValueError: bound memory has another shape."""
        targets = list(self._bound.values()) or [None] * len(values)
        self._results = []
        for value, target in zip(values, targets):
            if target is not None:
                if target.shape != value.shape:
                    raise ValueError(f"an output of shape {value.shape} was bound to memory of {target.shape}")
                np.copyto(target, value)
            self._results.append(OrtValue(value if target is None else target))

    def get_outputs(self) -> List[OrtValue]:
        """The values of the last run, in the order in which outputs were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self) -> List["np.ndarray[Any, Any]"]:
        """Copies of the outputs of the last bound run, in order, as NumPy arrays."""
        return [v.numpy().copy() for v in self._results]

    def clear_binding_inputs(self) -> None:
        """Forgets all bound inputs; arrays that were bound are released."""
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets all bound outputs; the next run then gives every output of the model."""
        self._bound.clear()

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: memory is the host's."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: memory is the host's."""
