"""What modules that agents import at every turn need of `typing`, at a fifth of what it costs.

`typing` itself takes as long to import as twenty modules, and each of its named tuples three
times as long to make. A type checker sees the names of `typing`. Standard library only.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any as Any
    from typing import Generic as Generic
    from typing import NamedTuple as NamedTuple
    from typing import NoReturn as NoReturn
    from typing import TextIO as TextIO
    from typing import TypeVar as TypeVar
else:
    Any = NoReturn = TextIO = object  # stand in annotations only, which nobody evaluates

    class _Made(type):
        """Makes of a class body with annotations a tuple whose items have their names."""

        def __new__(mcs, name, bases, body):
            if not bases:
                return super().__new__(mcs, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            made.__annotations__ = fields
            for key, value in body.items():
                if key not in fields and key not in ("__module__", "__annotations__"):
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Made):
        """As `typing.NamedTuple`, for classes whose annotations are strings."""

    class Generic:
        """As `typing.Generic`; of what it is said to be made says nothing to Python."""

        def __class_getitem__(cls, kind):
            return cls

    def TypeVar(name):
        """As `typing.TypeVar`, for `Generic`."""
        return name
