"""`FrozenData`: the methods that frozen dataclasses share."""

from dataclasses import fields
from typing import Any, cast


class FrozenData:
    """The base of dataclasses with `frozen=True, eq=False, repr=False`.

    They compare, hash and print like other frozen dataclasses. Generating these methods for each class would
    take a tenth of the time of opening a workspace in a new process.
    """

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, each.name) for each in fields(cast("Any", self)) if each.compare)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, FrozenData) and type(other) is type(self):
            return self._compared() == other._compared()
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        shown = (
            f"{each.name}={getattr(self, each.name)!r}" for each in fields(cast("Any", self)) if each.repr
        )
        return f"{type(self).__qualname__}({', '.join(shown)})"
