"""NumPy, imported when it is first wanted: in the background where C has to work for the answer first."""

from __future__ import annotations

import sys

from ._c import TYPE_CHECKING, lib

__all__ = ["codes", "dtypes", "names", "np", "prefetch"]

if TYPE_CHECKING:
    from typing import Any, Dict

    import numpy as np
else:
    class _Lazy:
        """Becomes NumPy's own namespace when something of it is asked for."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            self.__dict__.update(numpy.__dict__)
            return getattr(numpy, name)

    np = _Lazy()

_NAMES = {"f32": "float32", "f64": "float64", "f16": "float16", "i8": "int8", "u8": "uint8", "i16": "int16",
          "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64", "u64": "uint64", "bool": "bool"}
names: Dict[int, str] = {getattr(lib, f"CNR_{c}"): name for c, name in _NAMES.items()}


class _Dtypes(dict[int, "Any"]):
    """NumPy's types by C's number. KeyError: it has no such type."""

    def __missing__(self, code: int) -> Any:
        self[code] = dtype = np.dtype(names[code])
        return dtype


class _Codes(dict["Any", int]):
    """C's numbers by NumPy's type, in the machine's byte order. TypeError: C has no such type."""

    def __missing__(self, dtype: Any) -> int:
        """The library's code of a NumPy type, kept for the next time; TypeError: a type it has no code for."""
        for code in names:
            if dtypes[code] == dtype:
                self[dtype] = code
                return code
        raise TypeError(f"arrays of {dtype} are not supported")


dtypes = _Dtypes()
codes = _Codes()


def _import() -> None:
    """Imports NumPy where it is installed, so that later imports are quick."""
    try:
        import numpy  # noqa: F401
    except ImportError:
        pass  # an error is raised when it is used


def prefetch() -> None:
    """Begins to import NumPy. C code runs beside it, since it holds no lock of the interpreter."""
    if "numpy" not in sys.modules:
        import threading

        threading.Thread(target=_import, name="cnnrun imports numpy").start()
