"""A class on `Value` is as the dataclass that makes its own methods: the standard library judges."""

from dataclasses import FrozenInstanceError, dataclass, field, make_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agentfs
from agentfs import events, results
from agentfs.values import Value


@dataclass(frozen=True, eq=False, repr=False)
class Ours(Value):
    """With each kind of field."""

    a: Any
    b: Any = 0
    hidden: Any = field(default=None, repr=False)
    apart: Any = field(default=None, compare=False)


Theirs = make_dataclass(
    "Ours",
    [
        ("a", Any),
        ("b", Any, 0),
        ("hidden", Any, field(default=None, repr=False)),
        ("apart", Any, field(default=None, compare=False)),
    ],
    frozen=True,
)

values = st.one_of(st.integers(0, 2), st.sampled_from(["", "x"]), st.none(), st.booleans())
fields = st.tuples(values, values, values, values)


@given(fields, fields)
def test_it_compares_hashes_and_shows_as_a_dataclass_does(one, other):
    assert (Ours(*one) == Ours(*other)) == (Theirs(*one) == Theirs(*other))
    assert hash(Ours(*one)) == hash(Theirs(*one))
    assert repr(Ours(*one)) == repr(Theirs(*one))


def test_another_class_with_the_same_fields_is_not_equal():
    @dataclass(frozen=True, eq=False, repr=False)
    class Other(Ours):
        """The same fields."""

    assert Ours(1) != Other(1)
    assert Ours(1) != Theirs(1)
    assert Ours(1) != 1


def test_what_cannot_be_hashed_says_so():
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ours([]))


def test_a_value_that_holds_itself_can_be_shown():
    held: list[Any] = []
    value = Ours(held)
    held.append(value)
    assert repr(value) == "Ours(a=[...], b=0, apart=None)"


def test_all_public_values_are_frozen_and_compare_by_their_fields():
    found = 0
    publics = {name: getattr(module, name) for module in (agentfs, results, events) for name in dir(module)}
    for name, public in publics.items():
        if isinstance(public, type) and issubclass(public, Value) and public is not Value:
            found += 1
            assert public.__dataclass_params__.frozen, name
    assert found > 25
    count = results.FileCount(1, 2)
    assert count == results.FileCount(1, 2) != results.FileCount(2, 2)
    with pytest.raises(FrozenInstanceError):
        count.lines = 3
