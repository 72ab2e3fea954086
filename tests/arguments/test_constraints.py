"""Constraints of `Annotated` hints: enforced in the call, and stated in the description."""

import sys
import warnings
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from math import inf
from typing import Annotated, Literal, TypedDict

import pytest
from annotated_types import Ge, Gt, Interval, Len, Lt, MaxLen, MinLen, MultipleOf
from pydantic import AfterValidator, AliasChoices, AliasPath, BaseModel, Field, PositiveInt, StringConstraints

from agentfs import Toolset
from agentfs.tools.tool import tool
from tests.kit import described, error_of
from tests.provider_rules import CHECKERS, SCHEMA_OF, STRICT

MODES = [(name, False) for name in CHECKERS] + [(name, True) for name in STRICT]
REQUIRED = object()


def is_even(value):
    if value % 2:
        raise ValueError("an odd number")
    return value


def make(hint, default=REQUIRED):
    """Return a tool with a parameter of this hint, and the values that it was called with."""
    values = []

    @tool(effect="read")
    def tell(x: hint) -> str:
        values.append(x)
        return repr(x)

    tell.__doc__ = "Tell.\n\nArgs:\n    x: The value."

    if default is not REQUIRED:
        tell.__defaults__ = (default,)
    return Toolset([tell]), values


@dataclass
class Row:
    """A row.

    Attributes:
        x: A number.
    """

    x: Annotated[int, Ge(1)]


class Entry(TypedDict):
    """An entry.

    Attributes:
        x: A number.
    """

    x: Annotated[int, Ge(1)]


class Model(BaseModel):
    x: int = Field(description="A number.", ge=1)


class Trimmed(BaseModel):
    x: Annotated[str, StringConstraints(strip_whitespace=True, max_length=3)] = Field(description="A text.")


CASES = [
    (Annotated[int, Field(ge=1)], 1, 0, "`x`: Input should be greater than or equal to 1"),
    (Annotated[int, Ge(1)], "1", "x", '`x` must be an integer (minimum 1), not "x"'),
    (Annotated[int, Field(gt=1, description="more")], 2, 1, "`x`: Input should be greater than 1"),
    (Annotated[float, Interval(ge=0, lt=1)], 0.5, 1, "`x`: Input should be less than 1"),
    (PositiveInt, 1, 0, "greater than 0"),
    (Annotated[int, MultipleOf(5)], 10, 11, "a multiple of 5"),
    (Annotated[str, MinLen(1)], "none", "", "at least 1 character"),
    (Annotated[str, Field(max_length=2)], "ab", "abc", "at most 2 characters"),
    (Annotated[list[int], MinLen(1)], [1], [], "at least 1 item"),
    (Annotated[list[int], Len(1, 2)], [1, 2], [1, 2, 3], "at most 2 items"),
    (list[Annotated[int, Field(ge=1)]], [1], [1, 0], "`x[1]`: Input should be greater"),
    (dict[str, Annotated[int, Field(ge=1)]], {"a": 1}, {"a": 0}, "`x.a`: Input should be greater"),
    (Annotated[int, Field(ge=1)] | None, None, 0, "`x`: Input should be greater"),
    (Annotated[int | None, Field(ge=1)], None, 0, "`x`: Input should be greater"),
    (Annotated[int | list[int], Field(ge=1)], 1, 0, "`x`: Input should be greater"),
    (Annotated[date, Ge(date(2026, 1, 1))], "2026-01-01", "2025-12-31", "equal to 2026-01-01"),
    (Annotated[str, Field(pattern="^[a-z]+$")], "ab", "a1", "`x`: String should match pattern"),
    (Annotated[int, AfterValidator(is_even)], 2, 3, "`x`: Value error, an odd number"),
    (Annotated[str, StringConstraints(strip_whitespace=True, max_length=3)], " abc ", "abcd", "at most 3"),
    (Row, {"x": 1}, {"x": 0}, "`x.x`: Input should be greater"),
    (Entry, {"x": 1}, {"x": 0}, "`x.x`: Input should be greater"),
    (Model, {"x": 1}, {"x": 0}, "`x.x`: Input should be greater than or equal to 1"),
    (Trimmed, {"x": " abc "}, {"x": "abcd"}, "`x.x`: String should have at most 3 characters"),
]


@pytest.mark.parametrize(("hint", "good", "bad", "said"), CASES)
def test_a_constraint_is_enforced_in_the_call(hint, good, bad, said):
    """A model's value outside of the constraint reached the function."""
    tools, values = make(hint)
    assert tools.call("tell", {"x": good}).success
    refused = tools.call("tell", {"x": bad})
    assert refused.error["code"] == "invalid_argument"
    assert said in refused.content
    assert len(values) == 1


@pytest.mark.parametrize(("provider", "strict"), MODES)
@pytest.mark.parametrize("hint", [each[0] for each in CASES if not str(each[0]).startswith("dict")])
def test_a_schema_with_constraints_follows_the_rules_of_each_provider(provider, strict, hint):
    (schema,) = make(hint)[0].schemas(provider, strict=strict)
    assert CHECKERS[provider](schema, strict=strict) == []


@pytest.mark.parametrize(("hint", "shown", "said"), [
    (Annotated[int, Field(ge=1), Lt(5)], {"type": "integer"}, "an integer (exclusiveMaximum 5, minimum 1)"),
    (Annotated[str, Field(max_length=1, pattern="a")], {"type": "string"},
     "a string (maxLength 1, pattern a)"),
    (Annotated[list[Annotated[int, Ge(1)]], MaxLen(2)], {"type": "array", "items": {"type": "integer"}},
     "a list, each item an integer (minimum 1) (maxItems 2)"),
    (Annotated[int, Gt(0)] | None, {"type": ["integer", "null"]}, "an integer (exclusiveMinimum 0)"),
    (Annotated[int, AfterValidator(is_even)], {"type": "integer"}, ""),
])  # fmt: skip
def test_the_description_states_the_constraints(hint, shown, said):
    tools, values = make(hint, default=0)
    assert tools.call("tell", {}).success
    assert values == [0], "a default is not checked"
    tools = make(hint)[0]
    assert f"`x` is missing ({said or 'an integer'})" in tools.call("tell", {}).content
    text = "The value." + (f" Must be {said}." if said else "")
    for name in CHECKERS:
        described = SCHEMA_OF[name](tools.schemas(name)[0])["properties"]["x"]
        assert described == {**shown, "description": text}, name
    assert text in tools.functions()[0].__doc__


def test_a_field_describes_a_parameter_that_the_docstring_does_not():
    class Item(TypedDict):
        size: Annotated[int, Field(description="Its size.")]

    def tell(x: Annotated[int, Field(ge=1, description="From the field.")], y: Item) -> str:
        return f"{x} {y}"

    @described
    def told(x: Annotated[int, Field(description="From the field.")]) -> str:
        return f"{x}"

    tell.__doc__ = "Tell.\n\nArgs:\n    y: An item."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tools = Toolset([tell, told])
    first, second = (each["function"]["parameters"]["properties"] for each in tools.schemas("openai"))
    text = "From the field. Must be an integer (minimum 1)."
    assert first["x"] == {"type": "integer", "description": text}
    assert first["y"]["properties"]["size"]["description"] == "Its size."
    assert second["x"]["description"] == "Some x.", "from the docstring"


def test_constraints_that_pydantic_cannot_read_are_an_error_of_the_tool(monkeypatch):
    assert "`x`: Pydantic cannot read its constraints" in str(error_of(make, Annotated[int, Lt(inf)]))
    monkeypatch.setitem(sys.modules, "pydantic", None)  # another program may have annotated_types alone
    assert "`x`: Pydantic cannot read its constraints" in str(error_of(make, Annotated[int, Ge(1)]))


def test_a_schema_has_the_first_alias_of_several_and_the_call_accepts_it():
    """The schema had the name of the field, which the model then refused."""

    class Place(BaseModel):
        """A place.

        Attributes:
            zip_code: Its code.
            city: Its city.
        """

        zip_code: int = Field(validation_alias=AliasChoices(AliasPath("codes", 0), "zip", "plz"))
        city: str = Field("", validation_alias=AliasPath("names", 0))

    @described
    def tell(place: Place) -> str:
        return str(place.zip_code)

    tools = Toolset([tell])
    (schema,) = tools.schemas("openai")
    shown = SCHEMA_OF["openai"](schema)["properties"]["place"]
    assert list(shown["properties"]) == ["zip", "city"]
    assert shown["required"] == ["zip"]
    assert tools.call("tell", {"place": {"zip": 80331}}).content == "80331"


class Detail(StrEnum):
    NONE = "none"
    NULL = "null"
    EMPTY = ""
    FULL = "full"


class Mode(Enum):
    none = 1.5
    null = 2.5
    full = 3.5


CHOICES = Literal["none", "null", "", "full"]


@pytest.mark.parametrize("text", ["none", "null", ""])
@pytest.mark.parametrize("default", [REQUIRED, None, "full"])
@pytest.mark.parametrize(("hint", "choice"), [
    (CHOICES, str), (CHOICES | None, str), (CHOICES | int, str), (list[CHOICES], lambda text: [text]),
    (Detail, Detail), (Detail | None, Detail), (list[Detail] | None, lambda text: [Detail(text)]),
    (Mode, lambda text: Mode[text]), (Mode | None, lambda text: Mode[text]),
])  # fmt: skip
def test_a_choice_that_looks_like_null_is_itself(hint, choice, default, text):
    """A model's "none" was read as if it had left the parameter out."""
    if hint in (Mode, Mode | None) and not text:
        return  # no name of a member is empty
    tools, values = make(hint, default)
    assert tools.call("tell", {"x": text}).success
    assert values == [choice(text)]


@pytest.mark.parametrize(("hint", "default", "sent", "got"), [
    (CHOICES, "full", "None", "none"), (list[CHOICES], None, "null", ["null"]),
    (int | None, None, "none", None), (list[Literal["x"]] | None, None, "none", None),
])  # fmt: skip
def test_a_text_that_looks_like_null_is_null_if_it_is_no_choice(hint, default, sent, got):
    tools, values = make(hint, default)
    assert tools.call("tell", {"x": sent}).success
    assert values == [got]
