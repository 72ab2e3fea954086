import asyncio
import inspect
import json
import logging
import typing
from dataclasses import dataclass

import pytest
from hypothesis import example
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import create_model

from agentfs.arguments.parameters import ArgumentReader
from agentfs.errors import NotFoundError
from agentfs.results import Edit, Image, ReadResult, ToolResult
from agentfs.tools.tool import tool_of
from agentfs.tools.toolset import Toolset
from tests.conftest import law
from tests.kit import described, error_of
from tests.provider_rules import SCHEMA_OF
from tests.tool_samples import CLOSED, change, measure, search
from tests.tool_samples import settings as set_values

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NAMES = [
    "path", "pattern", "edits", "old_string", "file_path", "glob", "limit", "offset", "output_mode", "points",
    "values", "text", "content",
]  # fmt: skip


@described
def show(path: str, limit: int | None = None) -> ReadResult:
    if path == "missing":
        details = {"places": ["near: here"]}
        raise NotFoundError("There is no file `missing`.", hint="Call ls.", details=details)
    if path == "broken":
        raise OSError(5, "Input/output error", "/outside/secret")
    if path == "bug":
        raise ZeroDivisionError

    return ReadResult(
        path, "text", "a\n", 1, 1, 3, 6, "abc", images=(Image("QQ==", "image/png"),), text="1|a",
        next={"name": "show", "arguments": {"path": path, "limit": 2}},
    )  # fmt: skip


def test_a_result_has_text_data_images_path_and_next():
    result = Toolset([show]).call("show", '{"path": "a.txt"}')
    assert (result.success, result.content, result.error, result.file_path) == (True, "1|a", None, "a.txt")
    assert result.short_result == "Read a.txt: lines 1-1 of 3"
    assert result.images == (Image("QQ==", "image/png"),)
    assert result.data["content"] == "a\n"
    assert result.next == {"name": "show", "arguments": {"path": "a.txt", "limit": 2}}
    assert json.loads(json.dumps(result.to_dict()))["images"] == [{"data": "QQ==", "media_type": "image/png"}]


@law(30, 100, st.dictionaries(st.sampled_from(["pattern", "path", "glob", "output_mode", "limit", "x"]),
                       JSON | st.sampled_from(["content", "10", 5, True, None, ["a"]])))  # fmt: skip
def test_arguments_by_the_schema_need_no_coercion(arguments):
    toolset = Toolset([search])
    schema = SCHEMA_OF["openai"](toolset.schemas()[0])
    reader = ArgumentReader()
    reader.read_members(tool_of(search).parameters, arguments)
    if not reader.problems and not reader.coercions:
        assert Draft202012Validator(schema).is_valid(arguments)
    else:
        text, limit = arguments.get("glob"), arguments.get("limit")
        lenient_string = isinstance(text, str) and text.lstrip().startswith("[")
        number = isinstance(limit, float) or (isinstance(limit, int) and abs(limit) >= 2**63)
        assert lenient_string or number or not Draft202012Validator(schema).is_valid(arguments)


def test_a_domain_error_becomes_a_failed_result_with_its_hint():
    result = Toolset([show]).call("show", {"path": "missing"})
    assert not result.success
    assert result.content == "There is no file `missing`.\nnear: here\nCall ls."
    assert result.error == {"code": "not_found", "message": "There is no file `missing`."}
    assert result.data["hint"] == "Call ls."
    assert result.file_path == "missing"


@pytest.mark.parametrize(("path", "text"), [("broken", "OSError"), ("bug", "ZeroDivisionError")])
def test_any_other_exception_is_logged_and_reported_without_paths(path, text, caplog):
    with caplog.at_level(logging.ERROR, "agentfs"):
        result = Toolset([show]).call("show", {"path": path})
    assert result.error["code"] == "internal"
    assert text in result.content
    assert "/outside" not in str(result.to_dict())
    assert caplog.records[0].exc_info


def test_wrong_arguments_are_reported_with_the_parameters():
    result = Toolset([search]).call("search", {"limit": "x", "patern": "y"})
    assert result.error["code"] == "invalid_argument"
    assert result.content == (
        'search was not run: there is no parameter "patern" (did you mean `pattern`?); `pattern` is missing '
        '(a string); `limit` must be an integer, not "x".\n'
        "search takes pattern (required), path, glob, output_mode, ignore_case, limit."
    )


@pytest.mark.parametrize(("name", "message"), [
    ("serach", 'no tool "serach" (did you mean `search`?)'), ("", 'no tool ""'), (None, "no tool null"),
    (["search"], "no tool a list"), ("\ud800", 'no tool "\\ud800"'),
])  # fmt: skip
def test_an_unknown_tool_is_reported_with_the_names(name, message):
    result = Toolset([search, show]).call(name, {})
    assert result.error["code"] == "unknown_tool"
    assert message in result.content
    assert "The tools are search, show." in result.content


@dataclass
class Thing:
    size: int


@pytest.mark.parametrize(("returned", "content"), [
    ("text", "text"), ({"a": [1, "ü"]}, '{"a": [1, "ü"]}'), (None, "null"), (Thing(3), '{"size": 3}'),
    ({1, 2}, "[1, 2]"), ((1, 2), "[1, 2]"), (True, "true"), (object, "<class 'object'>"),
    (ToolResult(True, "as it is"), "as it is"),
])  # fmt: skip
def test_any_return_value_is_shown(returned, content):
    @described
    def tool() -> object:
        return returned

    shown = Toolset([tool]).call("tool")
    assert shown.success
    assert shown.content.strip('"') == content


@law(40, 300,
     name=st.sampled_from([*(tool.__name__ for tool in CLOSED), "show", "settings", "grep"]) | st.text(),
     arguments=JSON | st.text() | st.dictionaries(st.sampled_from(NAMES) | st.text(), JSON))  # fmt: skip
@example("search", {"pattern": "x", "glob": float("nan")})
@example("search", {1: 2, None: 3, "pattern": ()})
def test_any_call_returns_a_tool_result(name, arguments):
    toolset = Toolset([*CLOSED, show, set_values])
    for sent in (arguments, json.dumps(arguments)):
        result = toolset.call(name, sent)
        assert isinstance(result, ToolResult)
        assert result.success is (result.error is None)
        assert result.error is None or result.error["code"] in ("unknown_tool", "invalid_argument")
        json.dumps(result.to_dict())


@pytest.mark.parametrize("arguments", [
    '{"pattern": ' * 100_000, '{"path": "' + "x" * 1_000_000, '{"pattern": "x", "limit": 1e400}',
    '{"pattern": "\\ud800"}', 5, 1.5, True, [], object(), {"pattern": "x" * 5_000_000},
])  # fmt: skip
def test_hostile_arguments_give_a_result(arguments):
    assert isinstance(Toolset([search]).call("search", arguments), ToolResult)


def test_functions_are_plain_functions_that_return_text():
    toolset = Toolset([search, change])
    found, changed = toolset.functions(hints="plain")
    assert (found.__name__, inspect.isfunction(found)) == ("search", True)
    assert str(inspect.signature(found)) == (
        "(pattern: str, path: str = '.', glob: str | None = None, output_mode: str = 'content', "
        "ignore_case: bool = False, limit: int | None = 100) -> str"
    )
    assert typing.get_type_hints(found)["limit"] == int | None
    assert typing.get_type_hints(changed) == {"path": str, "edits": list[Edit], "return": str}
    assert found.__doc__ == (
        "Search the contents of files.\n\nA second paragraph.\n\nArgs:\n"
        "    pattern: Regular expression: `a|b`.\n"
        '    path: Where. Default ".".\n'
        "    glob: Only files that match\n"
        '    output_mode: What to show. One of "content", "files_with_matches". Default "content".\n'
        "    ignore_case: Ignore case. Default false.\n"
        "    limit: Most matches; null: all. Default 100.\n\n"
        "Returns:\n    The result as text, or the error.\n"
    )


def test_functions_describe_parameters_in_their_hints():
    """Pydantic is what most frameworks make schemas with; the others read the text itself."""
    for hints in ("text", "field"):
        (found,) = Toolset([search]).functions(hints=hints)
        signature = inspect.signature(found).parameters
        members = {name: (each.annotation, ...) for name, each in signature.items()}
        schema = create_model("Search", **members).model_json_schema()["properties"]
        assert schema["pattern"]["description"] == "Regular expression: `a|b`."
        assert schema["output_mode"]["enum"] == ["content", "files_with_matches"]
        assert all(each["description"] for each in schema.values())
        assert found.__annotations__["pattern"] == signature["pattern"].annotation
    (found,) = Toolset([search]).functions()
    assert found.__annotations__["pattern"].__metadata__[0] == "Regular expression: `a|b`."
    assert typing.get_type_hints(found)["limit"] == int | None


def test_functions_convert_arguments_and_return_errors_as_text():
    found, changed, measured = Toolset([search, change, measure]).functions()
    assert json.loads(found("x", limit="5"))["limit"] == 5
    assert "did you mean" in found("x", limitt=5)
    assert json.loads(changed("a", [{"oldString": "a", "new_string": "b"}]))[0]["old_string"] == "a"
    assert "Point(x=1" in measured(points=[{"x": 1}])
    assert measured() == Toolset([measure]).call("measure").content
    for given, named in (("x", {"pattern": "y"}), ("abcdefgh", {})):
        with pytest.raises(TypeError):
            found(*given, **named)


def undocumented(a, _b: int, c: complex, d: int, *, e) -> None:
    """
    Args:
        a: One.
        c: Three.
    """


def test_a_callable_that_cannot_be_a_tool_is_an_error_with_every_problem():
    said = error_of(Toolset, [undocumented]).message
    lacks = "has no text before the sections", "`a`: it has no type hint", "`_b`", "made from complex", "`e`"
    assert [lack for lack in lacks if lack not in said] == []


@pytest.mark.parametrize("target", [lambda: None, 7, asyncio.sleep])
def test_lambdas_values_and_functions_without_hints_are_refused(target):
    assert "cannot be a tool" in str(error_of(Toolset, [target]))
