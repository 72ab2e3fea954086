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
from agentfs.errors import InvalidArgumentError
from tests.arguments.test_constraints import MODES, make
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


received = {}
SOURCES = PurePosixPath("src")


def take(
    color: Color,
    where: Path,
    at: datetime,
    job: Job,
    window: Window,
    person: Person,
    level: Level = Level.LOW,
    shape: Shape | None = None,
    mode: Mode = Mode.FAST,
    days: list[date] | None = None,
    base: PurePosixPath = SOURCES,
) -> str:
    """Take values.

    Args:
        color: A color.
        where: A place.
        at: A time.
        job: A job.
        window: A window.
        person: A person.
        level: A level.
        shape: A shape.
        mode: A mode.
        days: Some days.
        base: A directory.
    """
    received.update(locals())
    return "taken"


ARGUMENTS = {
    "color": "red", "where": "src/a.py", "at": "2026-01-31T09:30:00Z", "window": {"first": 3}, "level": 2,
    "job": {"name": "build", "color": "dark-blue", "due": "2026-02-01"}, "shape": "SQUARE",
    "person": {"name": "Ada", "born": "1815-12-10", "homes": [{"street": "A", "zip": 7}]},
    "days": ["2026-01-31"],
}  # fmt: skip


@pytest.mark.parametrize(("provider", "strict"), MODES)
def test_every_kind_follows_each_providers_rules(provider, strict):
    (schema,) = Toolset([take]).schemas(provider, strict=strict)
    assert CHECKERS[provider](schema, strict=strict) == []
    nulls = {"mode": None, "base": None} if strict and "openai" in provider else {}
    sent = json.loads(json.dumps(ARGUMENTS | nulls))
    if nulls:
        sent["window"]["last"] = sent["person"]["color"] = None
    if provider == "gemini":  # only strings are enumerated
        sent["shape"] = "ROUND"
    errors = Draft202012Validator(SCHEMA_OF[provider](schema)).iter_errors(sent)
    assert [error.message for error in errors] == []
    assert Toolset([take]).call("take", sent).content == "taken"


def test_the_function_receives_typed_values():
    result = Toolset([take]).call("take", ARGUMENTS)
    assert (result.content, result.coercions) == ("taken", ())
    assert received == {
        "color": Color.RED, "where": Path("src/a.py"), "at": datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
        "job": Job("build", Color.DARK_BLUE, date(2026, 2, 1)), "window": {"first": 3},
        "person": Person(name="Ada", born=date(1815, 12, 10), homes=[Address(street="A", zip=7)]),
        "level": Level.HIGH, "shape": Shape.SQUARE, "mode": Mode.FAST, "days": [date(2026, 1, 31)],
        "base": PurePosixPath("src"),
    }  # fmt: skip


def test_the_schema_of_each_kind():
    (schema,) = Toolset([take]).schemas("anthropic")
    shown = schema["input_schema"]["properties"]
    assert shown["color"] == {"type": "string", "enum": ["red", "dark-blue"], "description": "A color."}
    assert shown["level"] == {"type": "integer", "enum": [1, 2], "description": "A level. Default 1."}
    assert shown["shape"]["enum"] == ["ROUND", "SQUARE"]
    assert shown["mode"]["description"] == 'A mode. Default "fast".'
    assert shown["where"] == {"type": "string", "description": "A place."}
    assert shown["base"]["description"] == 'A directory. Default "src".'
    assert shown["at"] == {
        "type": "string",
        "description": "A time. Must be an ISO 8601 date and time, such as 2026-01-31T09:30:00+01:00.",
    }
    assert "such as 2026-01-31." in shown["days"]["description"]
    assert shown["window"]["required"] == ["first"]
    assert shown["person"]["required"] == ["name", "born"]
    assert shown["person"]["properties"]["born"]["description"].startswith("Birthday. Must be")
    assert shown["person"]["properties"]["homes"]["items"]["required"] == ["street", "zip"]


@pytest.mark.parametrize(("changed", "value"), [
    ({"color": "RED"}, Color.RED), ({"color": "Dark Blue"}, Color.DARK_BLUE),
    ({"color": "DARK_BLUE"}, Color.DARK_BLUE), ({"level": "2"}, Level.HIGH), ({"level": "HIGH"}, Level.HIGH),
    ({"mode": Mode.SLOW}, Mode.SLOW), ({"base": "none"}, PurePosixPath("none")),
    ({"job": '{"name": "x"}'}, Job("x")), ({"window": {"first": "3"}}, {"first": 3}),
])  # fmt: skip
def test_an_unambiguous_value_is_converted(changed, value):
    assert Toolset([take]).call("take", {**ARGUMENTS, **changed}).success
    assert received[next(iter(changed))] == value


@pytest.mark.parametrize(("changed", "message"), [
    ({"color": "rad"}, '`color` must be one of "red", "dark-blue", not "rad" (did you mean "red"?)'),
    ({"level": True}, "`level` must be one of 1, 2, not true"),
    ({"where": 7}, "`where` must be a path, not 7"), ({"where": "a\0b"}, "`where` must be a path"),
    ({"at": "yesterday"}, "`at` must be an ISO 8601 date and time, such as 2026-01-31T09:30:00+01:00"),
    ({"days": ["2026-02-30"]}, '`days[0]` must be an ISO 8601 date, such as 2026-01-31, not "2026-02-30"'),
    ({"window": {}}, "`window.first` is missing"),
    ({"person": {"name": "", "born": "1815-12-10"}}, "`person.name`: String should have at least 1 char"),
    ({"person": {"name": "A", "born": "1815-12-10", "homes": [{"street": "A", "zip": 0}]}},
     "`person.homes[0].zip`: Input should be greater than or equal to 1"),
    ({"person": {"name": "A", "born": "x"}}, "`person.born` must be an ISO 8601 date"),
])  # fmt: skip
def test_a_wrong_value_is_named_with_its_place(changed, message):
    result = Toolset([take]).call("take", {**ARGUMENTS, **changed})
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
        """A name."""

        name: str

    def use(pair: Pair, named: Named, count: int = 3) -> int:
        """Use.

        Args:
            pair: Two numbers.
            named: A name.
        """
        return pair.two + count + len(named.name)

    tools = Toolset([use])
    (schema,) = tools.schemas("anthropic")
    assert schema["input_schema"]["properties"]["count"] == {"type": "integer", "description": "Default 3."}
    assert schema["input_schema"]["properties"]["named"]["properties"]["name"] == {"type": "string"}
    assert tools.call("use", {"pair": {"one": 1}, "named": {"name": "ab"}}).content == "7"
    assert "count: Default 3." in tools.functions()[0].__doc__


def test_models_dates_and_members_are_returned_as_json():
    def give() -> dict[str, object]:
        """Give."""
        return {"person": Person(name="Ada", born=date(1815, 12, 10)), "color": Color.RED, "path": Path("a")}

    assert json.loads(Toolset([give]).call("give").content) == {
        "person": {"name": "Ada", "born": "1815-12-10", "color": "red", "homes": []},
        "color": "red",
        "path": "a",
    }


def test_a_hint_that_cannot_be_resolved_is_an_error():
    broken = dataclass(type("Broken", (), {"__annotations__": {"other": "Missing"}}))
    with pytest.raises(InvalidArgumentError, match="the hints of Broken cannot be resolved"):
        make(broken)


def test_a_union_of_two_kinds_of_text_is_one_string():
    for hint, kind in ((str | Path, str), (Path | str, Path)):
        tools, values = make(hint)
        assert tools.schemas("anthropic")[0]["input_schema"]["properties"]["x"]["type"] == "string"
        assert tools.call("tell", {"x": "a"}).success
        assert isinstance(values[0], kind)
