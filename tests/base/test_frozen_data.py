"""`frozen` makes classes that behave as those of `dataclass(frozen=True)`."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field

import pytest

from agentfs.base.frozen_data import frozen, with_values
from agentfs.results import Entry


def declared():
    class Base:
        first: int
        second: str = "b"
        third: dict[str, int] = field(default_factory=dict[str, int])
        values: tuple[int, ...] = field(default=(), kw_only=True, repr=False)
        self_made: int = field(default=3, compare=False)

        def __post_init__(self) -> None:
            if self.first < 0:
                raise ValueError("first")

    return Base


OURS, THEIRS = frozen(declared()), dataclass(frozen=True)(declared())
CALLS = [
    ((), {}), ((1,), {}), ((1, "x"), {}), ((-1,), {}), ((1, "x", {"a": 1}, 5), {}),
    ((1, "x", {"a": 1}, 5, (1,)), {}), ((1,), {"first": 1}), ((1,), {"other": 1}),
    ((1, "x", {"a": 1}), {"values": (1,)}), ((), {"first": 1, "third": {}, "self_made": 4}),
]  # fmt: skip


def outcome(kind, arguments, named):
    try:
        made = kind(*arguments, **named)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return repr(made), vars(made)


@pytest.mark.parametrize(("arguments", "named"), CALLS)
def test_objects_are_made_as_by_a_dataclass(arguments, named):
    assert outcome(OURS, arguments, named) == outcome(THEIRS, arguments, named)


def test_parameters_are_those_of_a_dataclass_and_defaults_are_not_shared():
    ours, theirs = (
        [(each.name, each.kind, each.annotation) for each in inspect.signature(kind).parameters.values()]
        + [each.name for each in dataclasses.fields(kind)]
        for kind in (OURS, THEIRS)
    )
    assert ours == theirs
    assert OURS(1).third is not OURS(1).third


def test_objects_cannot_be_changed_but_compared_copied_and_pickled():
    entry = Entry("a/b", "b", "file", is_dir=False, size=3)
    with pytest.raises(FrozenInstanceError):
        entry.size = 4
    with pytest.raises(FrozenInstanceError):
        del entry.size
    larger = with_values(entry, size=4)
    assert larger == dataclasses.replace(entry, size=4) != entry
    assert copy.deepcopy(entry) == pickle.loads(pickle.dumps(entry)) == entry
    assert len({entry, copy.copy(entry), larger}) == 2
    assert OURS(1, self_made=1) == OURS(1, self_made=2)
