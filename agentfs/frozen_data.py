"""`FrozenData`: the methods that frozen dataclasses share."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, cast


class FrozenData:
    """The base of dataclasses with `frozen=True, eq=False, repr=False`.

    They compare, hash and print like other frozen dataclasses. Generating these methods for each class would
    take a tenth of the time of opening a workspace in a new process.
    """

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenData) and type(other) is type(self):
            return bool(_compared(self) == _compared(other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(_compared(self))

    def __repr__(self) -> str:
        shown = (each.name for each in fields(cast("Any", self)) if each.repr)
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _compared(data: FrozenData) -> Any:
    """Return the fields of an object to compare."""
    kind = cast("Any", type(data))  # for mypy, a class is not hashable
    return _getter(kind)(data)


@cache
def _getter(kind: type[Any]) -> Callable[[Any], Any]:
    names = [each.name for each in fields(kind) if each.compare]
    return attrgetter(*names) if names else type
