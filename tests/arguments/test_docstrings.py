"""Descriptions of parameters from docstrings and hints, of every form that programs write."""

import inspect
import json
from typing import Annotated, Literal, NewType
from uuid import UUID

import pytest

from agentfs import Toolset
from agentfs.arguments.docstrings import read_docstring
from tests.arguments.test_constraints import make


@pytest.mark.parametrize("after", [
    "", "\nThis is a closing paragraph.", "\nTodo:\n    Nothing.", "\nTodo: nothing.", "\n.. note:: text",
    "\nReturns:\n    It.\n\nThe end.",
])  # fmt: skip
def test_regression_text_after_the_parameters_erases_no_description(after):
    """A closing paragraph or an unknown section erased the description of every parameter."""
    text = f"Do it.\n\nArgs:\n    a: The a,\n        in two lines.\n    b (int): The b.\n{after}"
    assert read_docstring(text) == ("Do it.", {"a": "The a, in two lines.", "b": "The b."})


@pytest.mark.parametrize("more", [
    "    c (dict(str, int)): The c.\n",  # was a part of the text of `a`
    "\nKeyword Args:\n    c: The c.\n", "\nOther Parameters:\n    c: The c.\n",
])  # fmt: skip
def test_regression_a_type_with_parentheses_or_a_second_section_ends_no_item(more):
    text = f"Do it.\n\nArgs:\n    a: The a.\n{more}"
    assert read_docstring(text).parameters == {"a": "The a.", "c": "The c."}


def test_regression_a_text_in_annotated_is_the_description():
    def weather(city: Annotated[str, "The city"], unit: Annotated[str, "The unit"] = "C") -> str:
        return f"{city} {unit}"

    weather.__doc__ = "Tell.\n\nArgs:\n    unit: From the docstring."

    (schema,) = Toolset([weather]).schemas("anthropic")
    properties = schema["input_schema"]["properties"]
    assert properties["city"]["description"] == "The city"
    assert properties["unit"]["description"].startswith("From the docstring.")
    # The functions that agentfs makes describe their parameters so.
    (again,) = Toolset(Toolset([weather]).functions()).schemas("anthropic")
    assert again["input_schema"]["properties"]["city"]["description"] == "The city"


def test_regression_a_text_in_annotated_in_a_union_is_the_description():
    def weather(city: Annotated[str, "The city"] | None = None) -> str:
        """Tell."""
        return f"{city}"

    (schema,) = Toolset([weather]).schemas("anthropic")
    assert schema["input_schema"]["properties"]["city"]["description"] == "The city"


def test_regression_a_docstring_that_begins_with_the_parameters_has_them():
    """`inspect.getdoc` removes the indent of the items, which then ended the section."""

    def use(a: str, b: str) -> str:
        """Args:
        a: The a,
            in two lines.
        b: The b.
        """
        return a + b

    assert read_docstring(inspect.getdoc(use)) == ("", {"a": "The a, in two lines.", "b": "The b."})


UserId = NewType("UserId", int)
A_OR_NONE = Literal["a", None]  # noqa: PYI061 - as programs write it


@pytest.mark.parametrize(("hint", "sent", "got"), [
    *((hint, sent, None) for hint, sent in (
        (UserId, "x"), (A_OR_NONE, "b"), (set[int], ["x"]), (tuple[int, str], [1]),
        (tuple[int, str], [1, 2, 3]), (UUID, "x"))),
    (UserId, 7, "7"), (UserId, "7", "7"), (A_OR_NONE, "a", "'a'"), (A_OR_NONE, None, "None"),
    (set[int], [1, 1, "2"], "{1, 2}"), (frozenset[str], ["a"], "frozenset({'a'})"),
    (tuple[int, str], [1, "a"], "(1, 'a')"), (tuple[int, ...], [1, 2], "(1, 2)"),
    (UUID, "12345678123456781234567812345678", "UUID('12345678-1234-5678-1234-567812345678')"),
    (list[tuple[int, int]], [[1, 2]], "[(1, 2)]"), (UserId | None, None, "None"),
])  # fmt: skip
def test_regression_new_types_optional_choices_sets_tuples_and_uuids_are_parameters(hint, sent, got):
    tools, values = make(hint)
    for name in ("openai", "anthropic", "mcp", "gemini"):
        assert json.dumps(tools.schemas(name))
    result = tools.call("tell", {"x": sent})
    assert result.success is (got is not None), result.content
    if got is None:
        assert (result.error["code"], "`x" in result.content, values) == ("invalid_argument", True, [])
    else:
        assert result.content == got
