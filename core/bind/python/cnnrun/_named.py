"""Named tuples as `typing` writes them, without importing that: it takes as long as all the rest of `import cnnrun`."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Named(type):
    def __new__(kind, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(kind, name, bases, space)
        made = namedtuple(name, list(space["__annotations__"]), module=space["__module__"])  # type: ignore[misc]
        made.__doc__ = space.get("__doc__", made.__doc__)
        return made


class NamedTuple(metaclass=_Named):
    """Its subclasses are `collections.namedtuple`s of what they annotate."""
