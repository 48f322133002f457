"""Named tuples as `typing` writes them, without importing that: it takes as long as all the rest of `import cnnrun`."""

from collections import namedtuple


class _Named(type):
    def __new__(kind, name, bases, space):
        if not bases:
            return super().__new__(kind, name, bases, space)
        made = namedtuple(name, list(space["__annotations__"]), module=space["__module__"])
        made.__doc__ = space.get("__doc__", made.__doc__)
        return made


class NamedTuple(metaclass=_Named):
    """Its subclasses are `collections.namedtuple`s of what they annotate."""
