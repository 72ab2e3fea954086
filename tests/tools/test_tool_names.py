"""Tool specs: callables with other names, texts, defaults and output."""

import inspect
import json
from dataclasses import replace

import pytest

from agentfs import ToolResult, Toolset, Workspace
from agentfs.base.advice import Joined, call
from agentfs.errors import InvalidArgumentError, NotFoundError
from agentfs.results import ReadResult
from agentfs.text import continuation, footer
from agentfs.tools.spec import RenderContext, ToolSpec
from tests.provider_rules import CHECKERS, SCHEMA_OF, STRICT
from tests.tool_calls import accepts
from tests.tool_samples import search


def look(
    pattern: str, path: str = ".", context: int | None = None, limit: int = 10,
    *, after: int | None = None, before: int | None = None, ignore_case: bool = False,
) -> str:  # fmt: skip
    """Look for something.

    Args:
        pattern: What.
        path: Where.
        context: Lines around.
        limit: Most.
        after: Lines after.
        before: Lines before.
        ignore_case: Ignore case.
    """
    return json.dumps([pattern, path, context, limit, after, before, ignore_case])


GREP = ToolSpec(
    look,
    name="Grep",
    description="Search, as others call it.",
    parameters={"after": "-A", "before": "-B", "context": "-C", "ignore_case": "-i", "limit": "head_limit"},
    descriptions={"path": "File or directory."},
    expose=("after", "before", "ignore_case"),
    preset={"limit": 7},
    order=("pattern", "path", "before", "after"),
    aliases=("search/grep",),
)


def page(path: str, offset: int = 1) -> ReadResult:
    """Show a page.

    Args:
        path: File.
        offset: Line.
    """
    if path == "missing":
        raise NotFoundError("There is no `missing`.", hint="Call ls.")
    if path == "bug":
        raise ZeroDivisionError
    following = call("page", path=path, offset=offset + 1)
    return ReadResult(
        path, "text", "a\n", 1, 1, 3, 6, "abc", text=Joined("\n", "1|a", footer(continuation(following))),
        next=following,
    )  # fmt: skip


def test_the_spec_sets_names_descriptions_order_and_defaults():
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
def test_the_names_of_the_spec_and_of_the_callable_are_accepted(sent, called):
    result = Toolset([GREP]).call("Grep", sent)
    assert result.success, result.content
    assert json.loads(result.content) == called


def test_problems_have_the_names_of_the_spec():
    result = Toolset([GREP]).call("Grep", {"pattern": "x", "-A": "many", "-a": 1, "after_all": 1})
    assert "`-A` must be an integer" in result.content
    assert "Grep takes pattern (required), path, -B, -A, -C, head_limit, -i." in result.content


def test_names_that_differ_only_in_case_are_distinct():
    spec = ToolSpec(look, parameters={"after": "-a", "before": "-A"}, expose=("after", "before"))
    called = Toolset([spec]).call("look", {"pattern": "x", "-a": 1, "A": 2})
    assert json.loads(called.content)[4:6] == [1, 2]


def test_aliases_of_a_tool_can_be_called_but_are_not_listed():
    tools = Toolset([GREP])
    assert tools.names == ("Grep",)
    assert tools.call("search/grep", {"pattern": "x"}).success


def test_a_hidden_parameter_has_its_preset_and_cannot_be_sent():
    tools = Toolset([ToolSpec(look, hide=("path",), preset={"path": "src", "ignore_case": True})])
    assert json.loads(tools.call("look", {"pattern": "x"}).content) == [
        "x",
        "src",
        None,
        10,
        None,
        None,
        True,
    ]
    for hidden in ("path", "ignore_case"):
        assert tools.call("look", {"pattern": "x", hidden: "y"}).error["code"] == "invalid_argument"


@pytest.mark.parametrize("provider", CHECKERS)
def test_a_spec_follows_each_providers_rules_except_for_its_own_names(provider):
    for strict in (False, True) if provider in STRICT else (False,):
        tool = Toolset([GREP], prefix="fs_").schemas(provider, strict=strict)[0]
        wrong = CHECKERS[provider](tool, strict=strict)
        assert [problem for problem in wrong if not problem.endswith("is no name")] == []
        names = list(SCHEMA_OF[provider](tool)["properties"])
        assert names[2:4] == (["B", "A"] if provider == "gemini" else ["-B", "-A"])


def test_a_function_made_from_a_spec_has_identifiers():
    function = Toolset([GREP]).functions()[0]
    assert list(inspect.signature(function).parameters) == [
        "pattern",
        "path",
        "B",
        "A",
        "C",
        "head_limit",
        "i",
    ]
    assert json.loads(function("x", A="1", i=True)) == ["x", ".", None, 7, 1, None, True]


def test_a_renderer_makes_every_result():
    def render(answer: RenderContext) -> ToolResult:
        kind = type(answer.outcome).__name__
        return ToolResult(
            answer.result.success, f"<{kind} {dict(answer.arguments)}>", error=answer.result.error
        )

    tools = Toolset([ToolSpec(page, name="Page", parameters={"path": "file_path"}, render=render)])
    assert tools.call("Page", {"file_path": "a"}).content == "<ReadResult {'path': 'a'}>"
    assert tools.call("Page", {"file_path": "missing"}).content == "<NotFoundError {'path': 'missing'}>"
    assert tools.call("Page", {"file_path": "bug"}).error["code"] == "internal"
    assert tools.call("Page", {}).content == "<InvalidArgumentError {}>"
    assert tools.call("pages", {}).error["code"] == "unknown_tool"


def test_a_renderer_that_fails_is_a_failure_of_the_call(caplog):
    tools = Toolset([ToolSpec(page, render=lambda answer: answer.nothing)])
    assert tools.call("page", {"path": "a"}).error["code"] == "internal"
    assert caplog.records


def test_the_next_call_names_the_offered_tools():
    tools = Toolset([ToolSpec(page, name="Page", parameters={"path": "file_path"})], prefix="fs_")
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
        file = {"path": "file"}
        renamed = Toolset(
            [ToolSpec(ws.read, name="Show", parameters=file), ToolSpec(ws.write, parameters=file)]
        )
        assert 'Show(file="a.txt")' in renamed.call("write", {"file": "a.txt", "content": "2\n"}).content
        assert renamed.call("Show", {"file": "a.txt"}).success
        many = "".join(f"call read {number}\n" if number % 9 else "one\n" for number in range(900))
        (tmp_path / "many.txt").write_text(many.replace("one", "two"))
        assert renamed.call("Show", {"file": "many.txt"}).success
        long = renamed.call("write", {"file": "many.txt", "content": many}).content.splitlines()
        assert long[-1].endswith("call Show to see the file]")
        editor = ws.tools(dialect="dominds", prefix="d_")
        assert 'd_read_file(path="a.txt")' in editor.call("d_list_dir", {"path": "a.txt"}).data["hint"]


def test_a_spec_stands_in_for_methods_of_other_names(ws):
    def show(file: str) -> str:
        """Show a file.

        Args:
            file: The file.
        """
        return ws.read(file).content

    ws.write("a.txt", "1\n")
    viewer = ToolSpec(show, methods={"read": {}}, renames={"path": "file"})
    hint = Toolset([ws.ls, viewer]).call("ls", {"path": "a.txt"}).data["hint"]
    assert hint == 'Call show(file="a.txt") to see its content.'
    assert Toolset([ws.ls]).call("ls", {"path": "a.txt"}).data["hint"] == ""


def test_a_toolset_renders_every_result_even_of_an_unknown_tool():
    def mark(answer: RenderContext) -> ToolResult:
        return replace(answer.result, content=f"<{answer.result.content}>")

    def fail(answer: RenderContext) -> ToolResult:
        raise ZeroDivisionError

    tools = Toolset([ToolSpec(page, render=mark)], render=mark)
    assert tools.call("page", {"path": "a"}).content.startswith("<<1|a")
    assert tools.call("pages").content.startswith("<There is no tool")
    broken = Toolset([ToolSpec(page, render=fail)], render=mark).call("page", {"path": "a"})
    assert broken.content.startswith("<page failed")
    assert broken.error["code"] == "internal"


def test_a_call_that_no_tool_can_make_is_not_suggested():
    result = Toolset([ToolSpec(page, hide=("offset",))]).call("page", {"path": "a"})
    assert result.next is None
    assert result.content == "1|a\n[there is more]"


def test_parameters_after_the_star_are_exposed_by_name():
    tools = Toolset([look, search], expose={"look": ["after"], "search": ["secret"]})
    assert list(tools.schemas()[0]["function"]["parameters"]["properties"])[-1] == "after"
    assert json.loads(tools.call("look", {"pattern": "x", "after": 3}).content)[4] == 3


@pytest.mark.parametrize(("spec", "message"), [
    (ToolSpec(look, expose=("nothing",)), "no parameter `nothing`"),
    (ToolSpec(look, parameters={"nothing": "x"}), "no parameter `nothing`"),
    (ToolSpec(look, parameters={"path": "pattern"}), "two parameters are named `pattern`"),
    (ToolSpec(look, parameters={"path": "a b"}), "`path`: its name must consist"),
    (ToolSpec(look, hide=("pattern",)), "`pattern` is hidden"),
    (ToolSpec(look, name="a/b"), "'a/b' cannot be a tool"),
])  # fmt: skip
def test_a_spec_that_does_not_fit_its_callable_is_an_error(spec, message):
    with pytest.raises(InvalidArgumentError) as caught:
        Toolset([spec])
    assert message in caught.value.message


def test_exposing_an_unknown_parameter_is_an_error():
    with pytest.raises(InvalidArgumentError, match="`expose` names grep, which is not offered"):
        Toolset([look], expose={"grep": ["before"]})


def test_a_workspace_offers_its_methods_by_name_with_a_prefix(tmp_path):
    with Workspace(tmp_path) as ws:
        ws.write("a.txt", "one\ntwo\nthree\n")
        tools = ws.tools(["read", "grep"], prefix="fs_")
        assert tools.names == ("fs_read", "fs_grep")
        result = tools.call("fs_read", {"path": "a.txt", "limit": 1})
        assert 'more: fs_read(path="a.txt", offset=2' in result.content
        assert accepts(tools, **result.next)


def test_only_methods_that_return_results_are_tools(tmp_path):
    with Workspace(tmp_path) as ws:
        for name in ("close", "tools", "root", "_root", "nothing"):
            with pytest.raises(InvalidArgumentError.__mro__[1], match="has no tool"):
                ws.tools([name])
