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
        if type(other) is not type(self):
            return NotImplemented
        compared = _compared(cast("Any", type(self)))
        return bool(compared(self) == compared(other))

    def __hash__(self) -> int:
        return hash(_compared(cast("Any", type(self)))(self))

    def __repr__(self) -> str:
        shown = (each.name for each in fields(cast("Any", self)) if each.repr)
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


@cache
def _compared(kind: Any) -> Callable[[Any], Any]:
    """Return a function that returns the fields of an object to compare."""
    names = [each.name for each in fields(kind) if each.compare]
    return attrgetter(*names) if names else type
