"""Parameters of richer types: the schema of each, and the value that the function receives."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum, IntEnum, StrEnum
from pathlib import Path, PurePosixPath
from typing import NotRequired, TypedDict

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from agentfs import Toolset
from agentfs.arguments.hints import kind_of
from agentfs.arguments.parameters import ArgumentReader
from tests.arguments.test_constraints import MODES, REQUIRED, make
from tests.kit import error_of
from tests.provider_rules import CHECKERS, SCHEMA_OF


class Color(Enum):
    RED = "red"
    DARK_BLUE = "dark-blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Shape(Enum):
    ROUND = (0, 0)
    SQUARE = (4, 90)


class Mode(StrEnum):
    FAST = "fast"
    SLOW = "slow"


class Window(TypedDict):
    """A window.

    Attributes:
        first: First line.
        last: Last line.
    """

    first: int
    last: NotRequired[int]


@dataclass(frozen=True)
class Job:
    """A job.

    Attributes:
        name: Its name.
        color: Its color.
        due: When it ends.
    """

    name: str
    color: Color = Color.RED
    due: date | None = None


class Address(BaseModel):
    """An address."""

    street: str = Field(description="Street.")
    zip_code: int = Field(description="Code.", ge=1, le=99_999, alias="zip")


class Person(BaseModel):
    """A person.

    Attributes:
        born: Birthday.
    """

    name: str = Field(description="Full name.", min_length=1)
    born: date
    color: Color = Field(Color.RED, description="Color.")
    homes: list[Address] = Field(default_factory=list, description="Addresses.")


# A hint, its default, what a model sends, and what the function receives.
KINDS = [
    (Color, REQUIRED, "red", Color.RED), (Path, REQUIRED, "src/a.py", Path("src/a.py")),
    (datetime, REQUIRED, "2026-01-31T09:30:00Z", datetime(2026, 1, 31, 9, 30, tzinfo=UTC)),
    (Job, REQUIRED, {"name": "build", "color": "dark-blue", "due": "2026-02-01"},
     Job("build", Color.DARK_BLUE, date(2026, 2, 1))),
    (Window, REQUIRED, {"first": 3}, {"first": 3}), (Level, Level.LOW, 2, Level.HIGH),
    (Person, REQUIRED, {"name": "Ada", "born": "1815-12-10", "homes": [{"street": "A", "zip": 7}]},
     Person(name="Ada", born=date(1815, 12, 10), homes=[Address(street="A", zip=7)])),
    (Shape | None, None, "SQUARE", Shape.SQUARE), (Mode, Mode.FAST, "slow", Mode.SLOW),
    (list[date] | None, None, ["2026-01-31"], [date(2026, 1, 31)]),
    (PurePosixPath, PurePosixPath("src"), "lib", PurePosixPath("lib")),
]  # fmt: skip


NULLS = {Window: {"last": None}, Person: {"color": None}}  # what a strict schema requires


@pytest.mark.parametrize(("provider", "strict"), MODES)
@pytest.mark.parametrize(("hint", "default", "sent", "value"), KINDS)
def test_every_kind_follows_each_providers_rules(provider, strict, hint, default, sent, value):
    tools, values = make(hint, default)
    (schema,) = tools.schemas(provider, strict=strict)
    assert CHECKERS[provider](schema, strict=strict) == []
    result = tools.call("tell", {"x": sent})
    assert (result.coercions, values) == ((), [value])
    assert type(values[0]) is type(value)
    if strict and "openai" in provider:
        sent = {**sent, **NULLS[hint]} if hint in NULLS else sent
        assert tools.call("tell", {"x": sent}).success
    if provider != "gemini" or not isinstance(sent, int):  # only strings are enumerated
        errors = Draft202012Validator(SCHEMA_OF[provider](schema)).iter_errors({"x": sent})
        assert [error.message for error in errors] == []


def schema_of(hint, default=REQUIRED):
    return make(hint, default)[0].schemas("anthropic")[0]["input_schema"]["properties"]["x"]


def test_the_schema_of_each_kind():
    text = {"type": "string", "description": "The value."}
    assert schema_of(Color) == {**text, "enum": ["red", "dark-blue"]}
    assert schema_of(Path) == text
    default = {"type": "integer", "enum": [1, 2], "description": "The value. Default 1."}
    assert schema_of(Level, Level.LOW) == default
    assert schema_of(Shape | None, None)["enum"] == ["ROUND", "SQUARE"]
    assert schema_of(Mode, Mode.FAST)["description"] == 'The value. Default "fast".'
    assert schema_of(PurePosixPath, PurePosixPath("src"))["description"] == 'The value. Default "src".'
    moment = "The value. Must be an ISO 8601 date and time, such as 2026-01-31T09:30:00+01:00."
    assert schema_of(datetime) == {**text, "description": moment}
    assert "such as 2026-01-31." in schema_of(list[date])["description"]
    assert schema_of(Window)["required"] == ["first"]
    person = schema_of(Person)
    assert person["required"] == ["name", "born"]
    assert person["properties"]["born"]["description"].startswith("Birthday. Must be")
    assert person["properties"]["homes"]["items"]["required"] == ["street", "zip"]


@pytest.mark.parametrize(("hint", "sent", "value"), [
    (Color, "RED", Color.RED), (Color, "Dark Blue", Color.DARK_BLUE), (Color, "DARK_BLUE", Color.DARK_BLUE),
    (Level, "2", Level.HIGH), (Level, "HIGH", Level.HIGH), (Mode, Mode.SLOW, Mode.SLOW),
    (PurePosixPath, "none", PurePosixPath("none")), (Job, '{"name": "x"}', Job("x")),
    (Window, {"first": "3"}, {"first": 3}),
])  # fmt: skip
def test_an_unambiguous_value_is_converted(hint, sent, value):
    tools, values = make(hint)
    assert tools.call("tell", {"x": sent}).success
    assert values == [value]


@pytest.mark.parametrize(("hint", "sent", "message"), [
    (Color, "rad", '`x` must be one of "red", "dark-blue", not "rad" (did you mean "red"?)'),
    (Level, True, "`x` must be one of 1, 2, not true"),
    (Path, 7, "`x` must be a path, not 7"), (Path, "a\0b", "`x` must be a path"),
    (datetime, "yesterday", "`x` must be an ISO 8601 date and time, such as 2026-01-31T09:30:00+01:00"),
    (list[date], ["2026-02-30"], '`x[0]` must be an ISO 8601 date, such as 2026-01-31, not "2026-02-30"'),
    (Window, {}, "`x.first` is missing"),
    (Person, {"name": "", "born": "1815-12-10"}, "`x.name`: String should have at least 1 char"),
    (Person, {"name": "A", "born": "1815-12-10", "homes": [{"street": "A", "zip": 0}]},
     "`x.homes[0].zip`: Input should be greater than or equal to 1"),
    (Person, {"name": "A", "born": "x"}, "`x.born` must be an ISO 8601 date"),
])  # fmt: skip
def test_a_wrong_value_is_named_with_its_place(hint, sent, message):
    result = make(hint)[0].call("tell", {"x": sent})
    assert result.error["code"] == "invalid_argument"
    assert message in result.content
    assert "pydantic.dev" not in result.content


DATES = st.dates().map(str) | st.datetimes().map(datetime.isoformat)
BORN = {"name": "x", "born": "2026-01-01"}
SAMPLES = ["red", "fast", 1, 2, {"name": "x"}, {"name": "x", "color": "red"}, BORN, {**BORN, "name": ""}]


@pytest.mark.parametrize("kind", [Color, Level, Mode, date, datetime, Path, Job, Person])
@given(value=st.none() | st.booleans() | st.integers() | st.text() | DATES | st.sampled_from(SAMPLES))
@example(value="2026-01-31")
@example(value="2026-01-31T09:30:00+01:00")
def test_pydantic_accepts_the_same_values(kind, value):
    reader = ArgumentReader()
    found = kind_of(kind).read(value, "value", reader)
    if reader.problems or reader.coercions:
        return
    try:
        expected = TypeAdapter(kind).validate_python(value)
    except ValidationError:
        # Pydantic's dates have fewer forms than those of Python's `fromisoformat`.
        assert kind in (date, datetime)
        expected = kind.fromisoformat(value.strip())
    assert found == expected
    assert type(found) is type(expected)


@given(name=st.text(max_size=5), born=st.dates(), zips=st.lists(st.integers(-2, 100_001), max_size=2))
def test_a_model_is_read_as_pydantic_reads_it(name, born, zips):
    sent = {"name": name, "born": str(born), "homes": [{"street": "A", "zip": number} for number in zips]}
    reader = ArgumentReader()
    found = kind_of(Person).read(sent, "person", reader)
    try:
        expected = Person.model_validate(sent)
    except ValidationError:
        assert reader.problems
    else:
        assert found == expected
        assert Draft202012Validator(Person.model_json_schema()).is_valid(sent)


@pytest.mark.filterwarnings("ignore:The tool")
def test_a_parameter_without_a_description_has_none_in_the_schema():
    @dataclass
    class Pair:
        """A pair.

        Attributes:
            one: First.
        """

        one: int
        two: int = 2

    class Named(BaseModel):
        name: str

    def use(pair: Pair, named: Named, count: int = 3) -> int:
        """Use."""
        return pair.two + count + len(named.name)

    tools = Toolset([use])
    shown = tools.schemas("anthropic")[0]["input_schema"]["properties"]
    assert shown["count"] == {"type": "integer", "description": "Default 3."}
    assert shown["named"]["properties"]["name"] == {"type": "string"}
    assert tools.call("use", {"pair": {"one": 1}, "named": {"name": "ab"}}).content == "7"
    assert "count: Default 3." in tools.functions()[0].__doc__


def test_models_dates_and_members_are_returned_as_json():
    def give() -> dict[str, object]:
        """Give."""
        return {"person": Person(name="Ada", born=date(1815, 12, 10)), "color": Color.RED, "path": Path("a")}

    person = {"name": "Ada", "born": "1815-12-10", "color": "red", "homes": []}
    given = {"person": person, "color": "red", "path": "a"}
    assert json.loads(Toolset([give]).call("give").content) == given


def test_a_hint_that_cannot_be_resolved_is_an_error():
    broken = dataclass(type("Broken", (), {"__annotations__": {"other": "Missing"}}))
    assert "the hints of Broken cannot be resolved" in str(error_of(make, broken))


@pytest.mark.parametrize(("hint", "kind"), [(str | Path, str), (Path | str, Path)])
def test_a_union_of_two_kinds_of_text_is_one_string(hint, kind):
    tools, values = make(hint)
    assert schema_of(hint)["type"] == "string"
    assert tools.call("tell", {"x": "a"}).success
    assert isinstance(values[0], kind)
