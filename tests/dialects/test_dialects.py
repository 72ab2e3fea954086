"""The list of dialects, the view that a preset makes, and the names in errors."""

# ruff: noqa: E501 - a row of a table is one line

import json
import pickle
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Annotated

import pytest

from agentfs import AgentFSError, Limits, Policy, Toolset, Workspace, dialects
from agentfs.arguments.hints import Name
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName, call
from agentfs.dialects import Dialect
from agentfs.dialects.toolkit import Tools, offer, problem_of
from agentfs.errors import NoMatchError, NotFoundError
from agentfs.policy import VIEWED
from agentfs.results import GrepResult
from agentfs.tools.tool import Tool
from tests.dialects.answers import check
from tests.kit import described, error_of, put, refused

ROOT = Path(__file__).parents[2]


def small(workspace: Workspace) -> list[Tool]:
    return [
        Tool(function=workspace.read, name="show", effect="read"),
        Tool(function=workspace.write, name="put", effect="write"),
    ]


def test_the_dialects_of_the_package_are_found_and_each_makes_tools(ws):
    for name in dialects.names():
        assert dialects.find(name).name == name
        assert ws.tools(dialect=name).names
        assert ws.tools([], dialect=name).names == ()
    assert ws.tools(dialect="agentfs").names == ws.tools().names
    error = error_of(ws.tools, dialect="Waves")
    assert (error.code, error.details["nearest"]) == ("invalid_argument", "wave")
    assert "agentfs, wave" in error.hint
    assert ws.tools(["Grep", "Read"], dialect="wave").names == ("Grep", "Read")
    assert error_of(ws.tools, ["grep"], dialect="wave").code == "unknown_tool"


@pytest.mark.parametrize("name", ["wave", "agentfs"])
def test_a_name_that_is_taken_cannot_be_registered(name):
    assert "another dialect" in str(error_of(dialects.register, Dialect(name, small)))


class Counting(Tools):
    def __init__(self, workspace):
        super().__init__(workspace)
        self.calls = 0

    @offer(effect="read", name="Count")
    def count(self) -> str:
        """Count the calls."""
        self.calls += 1
        return f"{self.calls} in {self.workspace.limits.read_lines}"


def test_tools_that_share_state_are_methods_of_a_class(ws):
    own = Dialect("x", Counting.make, limits={"read_lines": 7})
    tools = own.tools(ws)
    assert tools.names == ("Count",)
    assert [tools.call("Count", {}).content for _ in range(2)] == ["1 in 7", "2 in 7"]
    assert own.tools(ws).call("Count", {}).content == "1 in 7", "each toolset has a state of its own"


def test_a_dialect_is_registered_once_and_may_be_registered_again(ws):
    own = dialects.register(Dialect("small-one", small))
    assert dialects.register(own) is own
    assert ws.tools(dialect="small-one", prefix="fs_").names == ("fs_show", "fs_put")
    assert "another dialect" in str(error_of(dialects.register, Dialect("small-one", small)))


def test_a_new_dialect_of_the_package_is_one_module_and_a_row(ws, monkeypatch):
    module = ModuleType("agentfs.dialects.small_two")
    module.DIALECT = Dialect("small-two", small, render=lambda context, _: replace(context.result, data="x"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    with pytest.raises(AgentFSError, match="no dialect 'small-two'"):
        ws.tools(dialect="small-two")
    monkeypatch.setattr(dialects, "BUILT_IN", {**dialects.BUILT_IN, "small-two": "small_two.DIALECT"})
    assert dialects.names().count("small-two") == 1
    tools = ws.tools(dialect="small-two")
    assert tools.call("put", {"path": "a.txt", "content": "x\n"}).data == "x"
    assert [schema["name"] for schema in tools.schemas("anthropic")] == ["show", "put"]


def test_a_renderer_is_given_the_workspace_with_the_preset(ws):
    given = []

    def render(context, workspace):
        given.append(workspace)
        return context.result

    Dialect("x", small, limits={"read_lines": 7}, render=render).tools(ws).call("none", {})
    assert [(workspace.root, workspace.limits.read_lines) for workspace in given] == [(ws.root, 7)]


def test_importing_agentfs_imports_no_dialect():
    code = "import sys, agentfs; print([name for name in sys.modules if name.startswith('agentfs.dialects')])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_the_preset_is_in_place_of_defaults_only(tmp_path):
    put(tmp_path, {"a.txt": "1\n2\n3\n4\n"})
    preset = Dialect("x", small, limits={"read_lines": 2}, policy={"overwrite": "always"})
    with Workspace(tmp_path, limits=Limits(read_lines=3), policy=Policy(overwrite="never")) as ws:
        view = preset.view(ws)
        assert view.read("a.txt").end_line == 3
        assert error_of(view.write, "a.txt", "6\n").code == "already_exists"
    with Workspace(tmp_path) as ws:
        view = preset.view(ws)
        assert view.read("a.txt").end_line == 2
        assert view.write("a.txt", "5\n").created is False
        assert (ws.limits, ws.policy) == (Limits(), Policy())


def test_a_view_confines_as_the_workspace_does(tmp_path):
    put(tmp_path, {"in/a": "1\n", "secret": "s"})
    (tmp_path / "in" / "link").symlink_to("../secret")
    with Workspace(tmp_path / "in") as ws:
        view = ws.view(limits=Limits(read_lines=1))
        for path in ("link", "../secret", str(tmp_path / "secret")):
            assert error_of(view.read, path).code == "outside_workspace"
        view.read("a")
        ws.write("a", "2\n")  # both share what was read
        view.close()
        assert error_of(ws.read, "a").code == "closed"


def test_a_view_cannot_change_confinement_or_protection(ws):
    other = {"read_only": True, "symlinks": "never", "allow": ("read",), "deny": ("*",)}
    for field, value in other.items():
        assert field not in VIEWED
        assert f"Policy.{field}" in str(error_of(ws.view, policy=replace(ws.policy, **{field: value})))


@described
def read(path: Annotated[str, Name("file")], offset: Annotated[int, Name("from")] = 1) -> str:
    raise NotFoundError(
        Advice(ParameterName("offset", quoted=True), f" or path={path}, call read: write, edit and grep"),
        hint=Joined(
            " ",
            Advice("Call ", call("read", path=path, offset=3), " first, or edit, write or grep by hand."),
            Advice("Call ", ToolName("write"), " to make it."),
            Advice("If it was that, ", Retry({"path": "call grep"}, ("offset",)), "."),
        ),
    )


def test_a_hint_names_only_offered_tools(ws):
    """Words such as "read", "edit" and "write" are English unless they name a tool, quoted or not."""
    shown = Tool(function=read, name="Show")
    said = 'Call fs_Show(file="a", from=3) first, or edit, write or grep by hand.'
    again = 'If it was that, pass file="call grep" and leave out from.'
    answer = Toolset([shown], prefix="fs_").call("fs_Show", {"file": "a", "from": 2})
    assert answer.data["hint"] == f"{said} {again}"
    assert answer.error["message"] == "`from` or path=a, call read: write, edit and grep"
    assert answer.data["details"]["suggested_calls"] == [
        {"name": "fs_Show", "arguments": {"file": "a", "from": 3}},
        {"name": "fs_Show", "arguments": {"file": "call grep"}},
    ]
    both = Toolset([shown, Tool(function=ws.write, name="Put")]).call("Show", {"file": "a"})
    assert "Call Put to make it." in both.data["hint"]


def test_an_error_keeps_its_class_and_its_details_and_is_pickled_whole():
    @described
    def edit(old_string: Annotated[str, Name("old_str")]) -> str:
        raise NoMatchError(
            Advice(ParameterName("old_string"), ' is not in "old_string.py"'), details={"cause": "absent"}
        )

    told = []
    offer = Tool(function=edit, render=lambda answer: told.append(answer.outcome))
    Toolset([offer]).call("edit", {"old_str": "x"})
    assert told[0].message == 'old_str is not in "old_string.py"'
    assert (type(told[0]), told[0].details) == (NoMatchError, {"cause": "absent"})
    caught = refused(lambda: read("a"), "not_found")
    again = pickle.loads(pickle.dumps(caught))
    assert str(again) == str(caught)
    assert again.to_dict() == caught.to_dict()
    assert again.hint.parts == caught.hint.parts
    assert again.details["suggested_calls"] == [{"name": "read", "arguments": {"path": "a", "offset": 3}}]


def test_a_footer_advises_only_visible_parameters(ws):
    ws.write(".gitignore", "build/\n")
    ws.write("build/a.py", "x\n")
    ws.write("b.py", "pass include_ignored=true\n")
    text = Toolset([ws.grep]).call("grep", {"pattern": "include_ignored"}).content
    assert "(pass include_ignored=true)]" in text

    @described
    def search(pattern: str) -> GrepResult:
        return ws.grep(pattern)

    hidden = Toolset([Tool(function=search, name="grep", methods={"grep": {}})])
    text = hidden.call("grep", {"pattern": "include_ignored"}).content
    assert text.count("include_ignored") == 1
    assert "left out: 1 hidden, 1 ignored by .gitignore:1 build/]" in text


def test_a_footer_under_a_change_names_offered_tools(ws):
    ws.write("a.txt", "".join(f"{n}\n" for n in range(300)))
    content = "".join(f"{n}\n" if n % 2 else "call read\n" for n in range(300))
    own = ws.write("a.txt", content)
    ws.undo()
    tools = Toolset([ws.write, Tool(function=ws.read, name="Read")])
    text = tools.call("write", {"path": "a.txt", "content": content}).content
    assert text.splitlines()[-1].endswith("call Read to see the file]")
    assert text.splitlines()[:-1] == own.text.splitlines()[:-1]


OWN = [
    ("put", {"file": "a.txt", "text": "1\n" * 300}, {"": {"ok": True, "file": "a.txt", "bytes": 600}}),
    ("put", {"file": "a.txt", "text": "1\n2\n" * 150}, {"ok": True}),  # no read is asked for
    ("cat", {"file": "a.txt"}, {"lines": [1, 200, 300]}),
    ("cat", {"file": "a.txt", "first": 2, "last": 3}, {"": {"ok": True, "text": "2\n1\n", "lines": [2, 3, 300]}}),
    ("find", {"name": "*.txt"}, {"": {"ok": True, "files": ["a.txt"], "left_out": 0}}),
    ("cat", {"file": "none/b.txt"}, {"ok": False, "hint~": "find"}), ("cat", {"file": "../x"}, {"ok": False}),
]  # fmt: skip


def test_the_example_of_an_own_dialect(ws, capsys):
    module = runpy.run_path(str(ROOT / "examples" / "own_dialect.py"))
    tools = ws.tools(dialect="own")
    assert tools.names == ("cat", "find", "put")
    for tool, given, wanted in OWN:
        result = tools.call(tool, given)
        assert json.loads(result.content) == result.data
        check(result.data, wanted)
    module["main"]()
    assert '"ok": false' in capsys.readouterr().out


def test_a_problem_has_three_parts(ws):
    seen = []

    def note(answer):
        seen.append(problem_of(answer))
        return answer.result

    @described
    def bug(path: str) -> str:
        return str(1 / (len(path) - 1))

    ws.write("a.txt", "x\nx\n")
    tools = Toolset([Tool(function=ws.edit, render=note), Tool(function=bug, render=note)])
    tools.call("edit", {"path": "a.txt", "old_string": "x", "new_string": "y"})
    tools.call("bug", {"path": "."})
    tools.call("bug", {"path": "ab"})
    ambiguous, internal, fine = seen
    assert (ambiguous.code, len(ambiguous.message.splitlines())) == ("ambiguous", 3)
    assert ambiguous.hint.startswith("Add lines")
    assert (internal.code, bool(internal.hint), fine) == ("internal", True, None)
