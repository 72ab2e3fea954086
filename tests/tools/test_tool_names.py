"""Tools: functions with other names, texts and output."""

import inspect
import json
from dataclasses import replace
from typing import Annotated

import pytest

from agentfs import ToolResult, Toolset, Workspace
from agentfs.arguments.hints import Name
from agentfs.base.advice import Joined, call
from agentfs.errors import NotFoundError
from agentfs.results import ReadResult
from agentfs.text.display import continuation, footer
from agentfs.tools.tool import RenderContext, Tool
from tests.kit import described, error_of
from tests.provider_rules import CHECKERS, SCHEMA_OF, STRICT
from tests.tool_calls import accepts


def look(
    pattern: str, path: str = ".",
    before: Annotated[int | None, Name("-B")] = None, after: Annotated[int | None, Name("-A")] = None,
    context: Annotated[int | None, Name("-C")] = None, limit: Annotated[int, Name("head_limit")] = 7,
    *, ignore_case: Annotated[bool, Name("-i")] = False,
) -> str:  # fmt: skip
    """Look for something.

    Args:
        pattern: What.
        path: File or directory.
        before: Lines before.
        after: Lines after.
        context: Lines around.
        limit: Most.
        ignore_case: Ignore case.
    """
    return json.dumps([pattern, path, context, limit, after, before, ignore_case])


GREP = Tool(function=look, name="Grep", text="Search, as others call it.", expose=("ignore_case",))


@described
def page(path: Annotated[str, Name("file_path")], offset: int = 1) -> ReadResult:
    if path == "missing":
        raise NotFoundError("There is no `missing`.", hint="Call ls.")
    if path == "bug":
        raise ZeroDivisionError
    following = call("page", path=path, offset=offset + 1)
    return ReadResult(
        path, "text", "a\n", 1, 1, 3, 6, "abc", text=Joined("\n", "1|a", footer(continuation(following))),
        next=following,
    )  # fmt: skip


def test_a_tool_has_a_name_a_text_and_names_of_parameters():
    schema = Toolset([GREP]).schemas("anthropic")[0]
    properties = schema["input_schema"]["properties"]
    assert (schema["name"], schema["description"]) == ("Grep", "Search, as others call it.")
    assert list(properties) == ["pattern", "path", "-B", "-A", "-C", "head_limit", "-i"]
    assert properties["head_limit"]["description"] == "Most. Default 7."
    assert properties["path"]["description"] == 'File or directory. Default ".".'


@pytest.mark.parametrize(("sent", "called"), [
    ({"pattern": "x"}, ["x", ".", None, 7, None, None, False]),
    ({"pattern": "x", "-A": 1, "-B": "2", "-C": 3, "-i": "true", "head_limit": 4},
     ["x", ".", 3, 4, 1, 2, True]),
    ({"pattern": "x", "A": 1, "B": 2, "C": 3, "i": True}, ["x", ".", 3, 7, 1, 2, True]),
    ({"pattern": "x", "after": 1, "context": 2, "limit": 3}, ["x", ".", 2, 3, 1, None, False]),
    ({"pattern": "x", "headLimit": 3, "Path": "y"}, ["x", "y", None, 3, None, None, False]),
])  # fmt: skip
def test_the_visible_names_and_those_of_the_function_are_accepted(sent, called):
    result = Toolset([GREP]).call("Grep", sent)
    assert result.success, result.content
    assert json.loads(result.content) == called


def test_problems_have_the_visible_names():
    result = Toolset([GREP]).call("Grep", {"pattern": "x", "-A": "many", "-a": 1, "after_all": 1})
    assert "`-A` must be an integer" in result.content
    assert "Grep takes pattern (required), path, -B, -A, -C, head_limit, -i." in result.content


def test_names_that_differ_only_in_case_are_distinct():
    @described
    def pair(one: Annotated[int, Name("-a")], two: Annotated[int, Name("-A")]) -> str:
        return json.dumps([one, two])

    assert Toolset([pair]).call("pair", {"-a": 1, "A": 2}).content == "[1, 2]"


@pytest.mark.parametrize("provider", CHECKERS)
def test_a_tool_follows_each_providers_rules_except_for_its_own_names(provider):
    for strict in (False, True) if provider in STRICT else (False,):
        tool = Toolset([GREP], prefix="fs_").schemas(provider, strict=strict)[0]
        wrong = CHECKERS[provider](tool, strict=strict)
        assert [problem for problem in wrong if not problem.endswith("is no name")] == []
        names = list(SCHEMA_OF[provider](tool)["properties"])
        assert names[2:4] == (["B", "A"] if provider == "gemini" else ["-B", "-A"])


@pytest.mark.parametrize("prefix", ["rye/file-system/", "fs/"])
def test_a_name_with_the_path_of_a_namespace_is_the_tool(prefix):
    assert Toolset([GREP]).call(f"{prefix}grep", {"pattern": "x"}).success


def test_a_function_made_from_a_tool_has_identifiers():
    function = Toolset([GREP]).functions()[0]
    names = list(inspect.signature(function).parameters)
    assert names == ["pattern", "path", "B", "A", "C", "head_limit", "i"]
    assert json.loads(function("x", A="1", i=True)) == ["x", ".", None, 7, 1, None, True]


def test_a_renderer_makes_every_result():
    def render(answer: RenderContext) -> ToolResult:
        text = f"<{type(answer.outcome).__name__} {dict(answer.arguments)}>"
        return ToolResult(answer.result.success, text, error=answer.result.error)

    tools = Toolset([Tool(function=page, name="Page", render=render)])
    assert tools.call("Page", {"file_path": "a"}).content == "<ReadResult {'path': 'a'}>"
    assert tools.call("Page", {"file_path": "missing"}).content == "<NotFoundError {'path': 'missing'}>"
    assert tools.call("Page", {"file_path": "bug"}).error["code"] == "internal"
    assert tools.call("Page", {}).content == "<InvalidArgumentError {}>"
    assert tools.call("pages", {}).error["code"] == "unknown_tool"


def test_a_renderer_that_fails_is_a_failure_of_the_call(caplog):
    tools = Toolset([Tool(function=page, render=lambda answer: answer.nothing)])
    assert tools.call("page", {"path": "a"}).error["code"] == "internal"
    assert caplog.records


def test_the_next_call_names_the_offered_tools():
    tools = Toolset([Tool(function=page, name="Page")], prefix="fs_")
    result = tools.call("fs_Page", {"file_path": "a"})
    assert result.next == {"name": "fs_Page", "arguments": {"file_path": "a", "offset": 2}}
    assert result.content == '1|a\n[more: fs_Page(file_path="a", offset=2)]'
    assert result.data["next"] == result.next
    assert accepts(tools, **result.next)


def test_hints_name_the_offered_tools(tmp_path):
    """With a prefix and with other names, in errors and changes, with a dialect and without."""
    (tmp_path / "a.txt").write_text("one\n" * 300)
    with Workspace(tmp_path) as ws:
        tools = ws.tools(prefix="fs_")
        unread = tools.call("fs_write", {"path": "a.txt", "content": "two\n"})
        assert 'fs_read(path="a.txt")' in unread.content
        assert "fs_edit" in unread.content
        assert unread.data["hint"] in unread.content
        assert 'fs_read(path="a.txt")' in tools.call("fs_ls", {"path": "a.txt"}).content
        renamed = Toolset([Tool(function=ws.read, name="Show"), ws.write])
        assert 'Show(path="a.txt")' in renamed.call("write", {"path": "a.txt", "content": "2\n"}).content
        assert renamed.call("Show", {"path": "a.txt"}).success
        many = "".join(f"call read {number}\n" if number % 9 else "one\n" for number in range(900))
        (tmp_path / "many.txt").write_text(many.replace("one", "two"))
        assert renamed.call("Show", {"path": "many.txt"}).success
        long = renamed.call("write", {"path": "many.txt", "content": many}).content.splitlines()
        assert long[-1].endswith("call Show to see the file]")
        editor = ws.tools(dialect="dominds", prefix="d_")
        assert 'd_read_file(path="a.txt")' in editor.call("d_list_dir", {"path": "a.txt"}).data["hint"]


def test_a_tool_stands_in_for_methods_of_other_names(ws):
    @described
    def show(file: str) -> str:
        return ws.read(file).content

    ws.write("a.txt", "1\n")
    viewer = Tool(function=show, methods={"read": {}}, renames={"path": "file"})
    hint = Toolset([ws.ls, viewer]).call("ls", {"path": "a.txt"}).data["hint"]
    assert hint == 'Call show(file="a.txt") to see its content.'
    assert Toolset([ws.ls]).call("ls", {"path": "a.txt"}).data["hint"] == ""


def test_a_toolset_renders_every_result_even_of_an_unknown_tool():
    def mark(answer: RenderContext) -> ToolResult:
        return replace(answer.result, content=f"<{answer.result.content}>")

    def fail(answer: RenderContext) -> ToolResult:
        raise ZeroDivisionError

    tools = Toolset([page], render=mark)
    assert tools.call("page", {"path": "a"}).content.startswith("<1|a")
    assert tools.call("pages").content.startswith("<There is no tool")
    broken = Toolset([page], render=fail).call("page", {"path": "a"})
    assert broken.content.startswith("page failed")
    assert broken.error["code"] == "internal"
    ours = Tool(function=page, render=lambda answer: replace(answer.result, content="own"))
    own = Toolset([ours], render=mark)
    assert own.call("page", {"path": "a"}).content == "own"


def test_a_call_that_no_tool_can_make_is_not_suggested():
    @described
    def first(path: str) -> ReadResult:
        return page(path)

    result = Toolset([Tool(function=first, methods={"page": {}})]).call("first", {"path": "a"})
    assert result.next is None
    assert result.content == "1|a\n[there is more]"


def twice(path: Annotated[str, Name("to")], to: str) -> None:
    """Name two parameters alike."""


def spaced(path: Annotated[str, Name("a b")]) -> None:
    """Name a parameter as no provider accepts it."""


def starred(*, path: str) -> None:
    """Need a parameter after the star."""


@pytest.mark.parametrize(("given", "message"), [
    (Tool(function=look, expose=("nothing",)), "no parameter `nothing`"),
    (twice, "two parameters are named `to`"), (spaced, "`path`: its name must consist"),
    (starred, "`path`: it is after the `*`, hidden from the model, and has no default"),
    (Tool(function=look, name="a/b"), "'a/b' cannot be a tool"),
])  # fmt: skip
def test_a_tool_that_does_not_fit_its_function_is_an_error(given, message):
    assert message in error_of(Toolset, [given]).message


def test_exposing_an_unknown_parameter_is_an_error():
    said = error_of(Toolset, [look], expose={"grep": ["before"]}).message
    assert "`expose` names grep, which is not offered" in said


def test_names_of_tools_are_those_of_methods_that_return_results(ws):
    """`tools("read")` was refused, because there is no tool 'r'."""
    for name in ("close", "tools", "root", "_root", "nothing", ""):
        error = error_of(ws.tools, [name])
        assert (error.code, "has no tool" in str(error)) == ("unknown_tool", True)
    assert ws.tools("read").names == ("read",)
    assert ws.tools(["read", "grep"]).names == ("read", "grep")
    assert ws.tools("Grep", dialect="wave").names == ("Grep",)
    assert ws.tools("all", dialect="wave").names == ws.tools(dialect="wave").names
    assert "has no tool 'reed'" in str(error_of(ws.tools, "reed"))
