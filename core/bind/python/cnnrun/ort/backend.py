"""The ONNX backend interface: prepare a model, run it."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from . import InferenceSession, SessionOptions


class Prepared:
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        """Wraps a session."""
        self._session = session

    def run(self, inputs: Any, **options: Any) -> List[Any]:
        """Runs one array, or a list of them in the order of the model's inputs; all outputs in order."""
        given: Sequence[Any] = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        names = [i.name for i in self._session.get_inputs()]
        if len(given) != len(names):
            raise ValueError(f"{len(names)} inputs wanted, {len(given)} given")
        return list(self._session.run(None, dict(zip(names, given))))


def supports_device(device: str) -> bool:
    """Whether models run on "CPU"; others are named by `InferenceSession`'s providers."""
    return device == "CPU"


def is_compatible(model: Any, device: Optional[str] = None, **options: Any) -> bool:
    """True if the model can be loaded on the device; tries it and drops the result. Never raises
    for a bad model."""
    try:
        prepare(model, device or "CPU")
    except (RuntimeError, ValueError, LookupError):
        return False
    return True


def prepare(model: Any, device: Optional[str] = None, **options: Any) -> Prepared:
    """Loads a path, bytes, a session, or what has `SerializeToString` (onnx.ModelProto)."""
    if device is not None and not supports_device(device):
        raise RuntimeError(f"device {device!r} is not supported; want CPU")
    if isinstance(model, Prepared):
        return model
    if isinstance(model, InferenceSession):
        return Prepared(model)
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    settings = SessionOptions()
    for key, value in options.items():
        setattr(settings, key, value)
    return Prepared(InferenceSession(model, sess_options=settings, providers=["CPUExecutionProvider"]))


def run_model(model: Any, inputs: Any, device: Optional[str] = None, **options: Any) -> List[Any]:
    """Prepares the model and runs it once; returns the list of outputs. Raises what prepare
    raises."""
    return prepare(model, device, **options).run(inputs)


run = run_model
