"""The gate of a toolset: tools of the program's own under the rules, limits and record of a workspace."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TypedDict

import pytest

from agentfs import Allow, CallContext, Limits, Policy, Toolset, Workspace, tool
from agentfs.errors import ToolError
from agentfs.tools.tool import Tool
from tests.kit import code_of, described, error_of, put

WROTE = "echo x > y"


@described
def bash(command: str) -> str:
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout


@tool(effect="execute", rule="command")
@described
def shell(command: str) -> str:
    return bash(command)


@tool(effect="read")
@described
def look(path: Path) -> str:
    return f"seen {path}"


@tool(effect="write")
@described
def save(path: Path) -> str:
    return f"saved {path}"


@described
def big() -> str:
    return "".join(f"line {number}\n" for number in range(100_000))


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def offered(ws, *functions):
    """Return the tools of a workspace with functions of the program."""
    return ws.tools() + [*functions]  # noqa: RUF005 - a toolset


def outcome(policy, function, root, **arguments):
    with Workspace(root, policy=policy) as ws:
        result = offered(ws, function).call(function.__name__, arguments)
    return result.error["code"] if result.error else ""


@pytest.mark.parametrize(("policy", "code"), [
    (Policy(read_only=True), "read_only"), (Policy(mode="plan"), "refused"),
    (Policy(deny=["bash"]), "refused"),
    (Policy(deny=["change"]), "refused"), (Policy(deny=["delete"]), "refused"),
    (Policy(deny=["*"]), "refused"), (Policy(ask=["bash"]), "refused"), (Policy(allow=["edit"]), "refused"),
    (Policy(on_ask=lambda request: False), "refused"), (Policy(on_ask=lambda request: True), ""),
    (Policy(ask=["bash"], on_ask=lambda request: True), ""), (Policy(allow=["bash"]), ""),
    (Policy(allow=["bash"], on_ask=lambda request: False), ""), (Policy(mode="bypass", on_ask=bool), ""),
    (Policy(mode="accept_edits", on_ask=lambda request: False), "refused"), (Policy(), ""),
])  # fmt: skip
def test_a_function_without_a_declared_effect_counts_as_execute(root, policy, code):
    assert outcome(policy, bash, root, command=WROTE) == code
    assert (root / "y").exists() is (code == "")


@pytest.mark.parametrize("policy", [Policy(read_only=True), Policy(mode="plan")])
def test_a_declared_change_is_refused_in_plan_mode_and_a_read_is_not(root, policy):
    assert outcome(policy, save, root, path="a") in ("refused", "read_only")
    assert outcome(policy, look, root, path="a") == ""


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_past_its_timeout_is_answered_in_time(is_async):
    answered, ended = threading.Event(), threading.Event()

    @described
    def slow() -> str:
        answered.wait(30)
        ended.set()
        return "late"

    events = []
    tools = Toolset([slow], timeout=0.3, on_event=events.append)
    result = asyncio.run(tools.acall("slow")) if is_async else tools.call("slow")
    assert not ended.is_set()
    answered.set()
    assert result.error["code"] == "timeout"
    assert "may still run" in result.content
    assert (events[-1].exception.code, events[-1].kind) == ("timeout", "failed")
    assert "may still run" in events[-1].outcome.content
    assert ended.wait(10), "the function itself is not stopped"
    assert len(events) == 2, "its late result is dropped"


def test_an_async_function_past_its_timeout_is_cancelled():
    cancelled = []

    @described
    async def slow() -> str:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return "late"

    tools = Toolset([slow], timeout=0.2)
    for result in (tools.call("slow"), asyncio.run(tools.acall("slow"))):
        assert result.error["code"] == "timeout"
        assert "cancelled" in result.content
    assert cancelled == [True, True]


def test_the_time_of_a_question_does_not_count(root):
    def ask(request):
        time.sleep(2.2)
        return True

    @described
    def change(text: str) -> str:
        ws.write("a.txt", text)
        return "done"

    @tool(effect="none")
    @described
    def change_() -> str:
        return ""

    with Workspace(root, policy=Policy(on_ask=ask, allow=["change_"]), limits=Limits(timeout=2)) as ws:
        tools = Toolset([ws.read, tool(effect="read")(change), change_], workspace=ws)
        assert tools.call("change", {"text": "x"}).content == "done"
    assert (root / "a.txt").read_text() == "x"


def test_a_long_text_is_cut_in_the_middle_and_kept(root):
    with Workspace(root) as ws:
        result = offered(ws, big).call("big")
        assert len(result.content) < 100_000
        assert result.content.startswith("line 0\nline 1\n")
        assert result.content.endswith("line 99998\nline 99999\n")
        (note,) = [line for line in result.content.split("\n") if "left out" in line]
        head, tail = result.content.split(f"{note}\n")
        assert f"[{len(big()) - len(head) - len(tail)} characters left out; full text: read(path=" in note
        name = result.next["arguments"]["path"]
        assert name in note
        page = ws.tools().call("read", {**result.next["arguments"], "offset": 99_999})
        assert "line 99998" in page.content
    assert len(Toolset([big]).call("big").content) < 100_000


# Rules about tools of the program's own.


@pytest.mark.parametrize(("rules", "command", "code"), [
    ({"allow": ["shell(git status)"]}, "git status", ""),
    ({"allow": ["shell(git status)"]}, "git status; rm -rf x", "refused"),
    ({"allow": ["shell(git *)", "shell(ls)"]}, "git log && ls", ""),
    ({"allow": ["shell(git *)"]}, "git log `touch y`", "refused"),
    ({"allow": ["shell(git *)"]}, "git log > y", "refused"),
    ({"deny": ["shell(rm *)"]}, "true; rm -rf x", "refused"), ({"deny": ["shell(rm *)"]}, "true", ""),
    ({"ask": ["shell(git push*)"]}, "git  'push' -f", "refused"), ({"ask": ["shell(git push*)"]}, "true", ""),
    ({"ask": ["shell(git push*)"], "on_ask": lambda request: True}, "true && git push", ""),
])  # fmt: skip
def test_a_rule_with_a_text_is_about_the_simple_commands(root, rules, command, code):
    assert outcome(Policy(**rules), shell, root, command=command) == code


@pytest.mark.parametrize(("rule", "path", "refused"), [
    ("save(src/**)", "src/a.py", True), ("save(src/**)", "./lib/../src/a.py", True),
    ("save(src/**)", "a.py", False),
    ("write(*.lock)", "deep/x.lock", True), ("change(src/**)", "link/a.py", True),
    ("save(src/**)", "/src/a", False),
])  # fmt: skip
def test_a_rule_with_a_path_is_about_the_parameters_that_are_paths(root, rule, path, refused):
    (root / "src").mkdir()
    (root / "link").symlink_to("src")
    assert outcome(Policy(deny=[rule]), save, root, path=path) == ("refused" if refused else "")
    allowed = Policy(allow=[rule])
    assert outcome(allowed, save, root, path=path) == ("" if refused and "link" not in path else "refused")


class Member(TypedDict):
    path: Path


@pytest.mark.parametrize(("hint", "value"), [
    (set[Path], ["src/a"]), (tuple[Path, ...], ["b", "src/a"]), (tuple[Path, str], ["src/a", "b"]),
    (Path | list[Path], ["src/a"]), (str | Path, "src/a"), (list[list[Path]], [["src/a"]]),
    (dict[str, Path], {"a": "src/a"}), (list[Member] | None, [{"path": "src/a"}]),
])  # fmt: skip
def test_regression_a_rule_with_a_path_is_about_paths_at_any_depth(root, hint, value):
    def work(given) -> str:
        """Do it."""
        return "done"

    work.__annotations__["given"] = hint
    for rules in ({"deny": ["change(src/**)"]}, {"deny": ["work(src/**)"]}, {"allow": ["work(lib/**)"]}):
        assert outcome(Policy(**rules), tool(effect="write")(work), root, given=value) == "refused"


def test_regression_a_rule_is_about_one_text(root):
    @described
    def fetch(urls: list[str]) -> str:
        return "".join(urls)

    assert "not one text" in str(error_of(Toolset, [tool(effect="read", rule="urls")(fetch)]))


def test_a_rule_with_another_text(root):
    @tool(effect="read", rule="url")
    @described
    def fetch(url: str) -> str:
        return url

    deny = Policy(deny=["fetch(http://*)"])
    assert outcome(deny, fetch, root, url="http://example.org/a?b=[c]") == "refused"
    assert outcome(deny, fetch, root, url="https://example.org/") == ""


@pytest.mark.parametrize("rule", ["bash(git push*)", "nothing", "nothing(x)", "look( a/** )"])
def test_a_rule_that_cannot_hold_for_the_tools_is_an_error_of_the_toolset(root, rule):
    with Workspace(root, policy=Policy(deny=[rule])) as ws:
        assert code_of(offered, ws, bash, look) == "invalid_argument"


@pytest.mark.parametrize("rule", ["bash(", "bash)", "bash()", "", "bash(a", "a b", "(x)"])
def test_a_rule_with_a_wrong_spelling_is_an_error_of_the_policy(rule):
    assert "is not a rule" in str(error_of(Policy, deny=[rule]))


def test_a_rule_holds_for_a_tool_with_another_name_or_in_a_part_of_the_toolset(root):
    with Workspace(root, policy=Policy(deny=["bash"])) as ws:
        tools, renamed = offered(ws, bash), offered(ws, Tool(function=bash, name="terminal"))
        assert renamed.call("terminal", {"command": WROTE}).error["code"] == "refused"
        assert tools.only(["bash"]).call("bash", {"command": WROTE}).error["code"] == "refused"
        assert tools.only(["read"]).schemas(), "the rule named a tool of the whole toolset"


# The callback.


def test_the_request_names_the_tool_its_arguments_and_its_paths(root):
    asked = []
    policy = Policy(on_ask=lambda request: bool(asked.append(request)))
    with Workspace(root, policy=policy) as ws:
        tools = offered(ws, bash, save, look)
        tools.call("bash", {"command": WROTE})
        tools.call("save", {"path": "./a/../b\x1b.txt"})
        assert tools.call("look", {"path": "a"}).success
        assert tools.call("read", {"path": "a"}).error["code"] == "not_found"
    run, saved = asked
    found = (run.method, run.effect, run.tool, run.arguments)
    assert found == ("bash", "execute", "bash", {"command": WROTE})
    assert (saved.effect, saved.paths) == ("write", ("b⟦U+001B⟧.txt",))


def test_an_answer_may_change_the_arguments_which_are_judged_again(root):
    answers = iter([Allow({"command": "echo safe"}), Allow({"command": "rm x"}), Allow({"comand": "x"})])
    policy = Policy(on_ask=lambda request: next(answers), deny=["shell(rm *)"])
    with Workspace(root, policy=policy) as ws:
        tools = offered(ws, shell)
        assert tools.call("shell", {"command": WROTE}).content == "safe\n"
        assert tools.call("shell", {"command": WROTE}).error["code"] == "refused"
        assert tools.call("shell", {"command": WROTE}).error["code"] == "invalid_argument"
    assert not (root / "y").exists()


def test_the_event_loop_is_free_while_the_user_is_asked_about_an_async_tool(root):
    @described
    async def work() -> str:
        return "done"

    ticks = []

    def ask(request):
        time.sleep(0.3)
        return True

    async def main():
        async def tick():
            while True:
                ticks.append(True)
                await asyncio.sleep(0.01)

        with Workspace(root, policy=Policy(on_ask=ask)) as ws:
            ticking = asyncio.create_task(tick())
            result = await offered(ws, work).acall("work")
            ticking.cancel()
        return result

    assert asyncio.run(main()).content == "done"
    assert len(ticks) > 10


# The program itself, and functions that hold the workspace.


@pytest.mark.parametrize("rules", [{"mode": "plan"}, {"read_only": True}, {"deny": ["*"]}, {"ask": ["*"]}])
def test_the_host_is_not_asked_but_confined(root, rules):
    asked = []
    put(root, {".env": "KEY=1\n", "old.txt": "old\n"})
    with Workspace(root, policy=Policy(on_ask=asked.append, **rules)) as ws:
        assert code_of(ws.write, "a.txt", "x") in {"refused", "read_only"}
        assert ws.host.write("old.txt", "new\n").bytes_written == 4, "needs no read before"
        assert ws.host.undo().steps == 1
        assert ws.host.changes().files == ()
        assert code_of(ws.host.read, "../x") == "outside_workspace"
        assert code_of(ws.host.read, ".env") == code_of(ws.host.write, ".env", "") == "protected"
        asked.clear()
        ws.host.host.write("b.txt", "x")
        assert ws.host.policy.protect is ws.policy.protect
    assert asked == []
    assert (root / "old.txt").read_text() == "old\n"


def test_a_function_that_holds_the_workspace_stays_under_its_rules(root):
    @tool(effect="read")
    @described
    def sneaky(path: str) -> str:
        ws.write(path, "x")
        return "written"

    with Workspace(root, policy=Policy(deny=["write(secret/**)"])) as ws:
        tools = offered(ws, sneaky)
        assert tools.call("sneaky", {"path": "secret/a"}).error["code"] == "refused"
        assert tools.call("sneaky", {"path": "a"}).success


# The context.


def test_a_context_is_filled_in_and_not_shown(root):
    seen = []

    @tool(effect="none")
    @described
    def work(text: str, ctx: CallContext) -> str:
        ctx.progress(600)
        seen.append(ctx)
        return text

    progress = []
    with Workspace(root) as ws:
        tools = offered(ws, work)
        (schema,) = [each for each in tools.schemas("mcp") if each["name"] == "work"]
        assert [*schema["inputSchema"]["properties"]] == ["text"]
        tools.call("work", {"text": "a"}, context={"user": 7})
        asyncio.run(tools.acall("work", {"text": "a"}, context="b", on_progress=progress.append))
        call = {"type": "tool_use", "id": "toolu_1", "name": "work", "input": {"text": "a"}}
        tools.answer([call], context=3)
        tools.functions(context=4)[-1]("a")
        assert tools.call("work", {"text": "a", "ctx": {}}).error["code"] == "invalid_argument"
        assert [each.context for each in seen] == [{"user": 7}, "b", 3, 4]
        assert all(each.workspace is ws for each in seen)
    assert seen[2].id == "toolu_1"
    assert len({each.id for each in seen}) == 4
    assert progress == [600]
    assert time.monotonic() < seen[0].deadline <= time.monotonic() + 10
    assert not seen[0].cancelled


def test_a_context_that_is_taken_twice_is_an_error():
    @described
    def work(one: CallContext, two: CallContext | None = None) -> str:
        return ""

    assert "`one` and `two` both take the CallContext" in str(error_of(Toolset, [work]))


# Bad input.


@pytest.mark.parametrize("declare", [
    lambda: tool(effect="destroy")(bash), lambda: Toolset([Tool(function=bash, effect="destroy")]),
    lambda: Toolset([Tool(function=bash, rule="line")]),
])  # fmt: skip
def test_an_effect_or_a_parameter_that_does_not_exist_is_an_error(declare):
    assert code_of(declare) == "invalid_argument"


def test_whatever_a_tool_does_the_workspace_stays_usable(root):
    @described
    def objects() -> object:
        circle: list[object] = [object(), float("nan"), b"\xff", {1: 2}]
        circle.append(circle)
        return circle

    @described
    def surrogate() -> str:
        return "a\ud800b"

    @described
    def forks() -> str:
        child = os.fork()
        if child == 0:
            return "the child"
        os.waitpid(child, 0)
        return "the parent"

    with Workspace(root) as ws:
        tools = offered(ws, objects, surrogate, forks)
        assert tools.call("objects").success, "what is not JSON becomes text"
        text = tools.call("surrogate").content
        assert text.encode().decode() == text == "a\\ud800b"
        assert tools.call("forks").content == "the parent"
        assert ws.write("a.txt", "x").created


# Toolsets.


def test_two_tools_of_one_name_are_named_with_their_origin():
    @described
    def read(path: str) -> str:
        return path

    error = error_of(Toolset, [read, Tool(function=read)])
    assert re.search(r"named read: .*read.* and .*read", error.message)
    assert "prefix" in error.hint


def test_every_tool_of_every_toolset_has_events(root):
    seen = []
    with Workspace(root, on_event=seen.append) as ws:
        Toolset([ws.read, look]).call("look", {"path": "a"})
        (ws.tools(prefix="fs_") + [look]).call("fs_ls")  # noqa: RUF005 - a toolset
    assert [(each.kind, each.tool, each.called_as) for each in seen] == [
        ("started", "look", "look"), ("finished", "look", "look"),
        ("started", "ls", "fs_ls"), ("finished", "ls", "fs_ls"),
    ]  # fmt: skip


def test_reading_async_tools_run_side_by_side_and_changes_in_order():
    running, most, order = 0, 0, []

    @tool(effect="read")
    @described
    async def watch_it() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return ""

    @tool(effect="write")
    @described
    async def put(number: int) -> str:
        order.append(number)
        await asyncio.sleep(0.02 / number)
        order.append(number)
        return ""

    calls = [{"type": "tool_use", "id": str(n), "name": "watch_it", "input": {}} for n in range(3)]
    calls += [{"type": "tool_use", "id": f"p{n}", "name": "put", "input": {"number": n}} for n in (1, 2)]
    asyncio.run(Toolset([watch_it, put]).aanswer(calls))
    assert most == 3
    assert order == [1, 1, 2, 2]


@pytest.mark.parametrize(
    "value", [{("eu", 1): "done"}, float("nan"), {"a": float("inf")}, {1: {2, "x"}}, b"x"]
)
def test_regression_a_tool_that_has_acted_is_not_reported_as_failed_because_of_what_it_returned(value):
    """`{("eu", 1): "done"}` was a failure, and `nan` made `data` invalid JSON."""

    @described
    def act() -> object:
        return value

    result = Toolset([act]).call("act")
    assert result.success
    assert result.content
    json.dumps(result.to_dict(), allow_nan=False)


def test_regression_a_model_reads_only_the_type_of_an_exception_and_the_text_of_a_tool_error(caplog):
    """The text of an exception may hold a secret, such as the address of a database with its password."""

    class DB(Exception):  # noqa: N818 - as drivers of databases name it
        pass

    @described
    def broken() -> str:
        raise DB("cannot reach postgres://admin:hunter2@db/prod")

    @described
    def failing() -> str:
        raise ToolError("The order 7 is closed.", hint="Open another one.")

    tools, events = Toolset([broken, failing]), []
    result = Toolset(tools, on_event=events.append).call("broken")
    assert "hunter2" not in str(result.to_dict())
    assert "DB" in result.content
    assert "hunter2" in str(events[-1].exception)
    assert "hunter2" in caplog.text
    told = tools.call("failing")
    assert told.content == "The order 7 is closed.\nOpen another one."
    assert told.error == {"code": "failed", "message": "The order 7 is closed."}


def test_regression_a_call_within_an_event_loop_with_an_asynchronous_callback_is_an_error(tmp_path):
    """The callback waited for the loop that the call blocked."""
    loops = []

    async def ask(request):
        loops.append(asyncio.get_running_loop())
        return True

    async def main():
        with Workspace(tmp_path, policy=Policy(on_ask=ask)) as ws:
            error = error_of(ws.tools().call, "write", {"path": "a", "content": "x"})
            assert ("event loop" in error.message, "acall" in error.hint) == (True, True)
            assert (await ws.tools().acall("write", {"path": "a", "content": "x"})).success
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(main())
    assert (tmp_path / "a").read_text() == "x"


def test_regression_a_callback_cannot_change_the_arguments_that_it_is_shown(tmp_path):
    """A callback that changed `request.arguments` passed a deny rule."""

    def ask(request):
        request.arguments["path"] = "denied.txt"
        request.arguments.get("edits", [0]).clear()
        return True

    policy = Policy(on_ask=ask, deny=["change(denied.txt)"])
    with Workspace(tmp_path, policy=policy) as ws:
        ws.host.write("a.txt", "one")
        edits = [{"old_string": "one", "new_string": "two"}]
        assert ws.tools().call("multi_edit", {"path": "a.txt", "edits": edits}).success
        assert ws.tools().call("write", {"path": "b.txt", "content": "x"}).success

    @described
    def own(path: Path, names: list[str]) -> str:
        return f"{path} {names}"

    with Workspace(
        tmp_path, policy=Policy(on_ask=lambda request: not request.arguments["names"].clear())
    ) as ws:
        assert Toolset([own], workspace=ws).call("own", {"path": "x", "names": ["y"]}).content == "x ['y']"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_at_most_eight_frames_lie_between_a_call_and_the_work(tmp_path):
    (tmp_path / "a.txt").write_text("one\n")
    calls = {
        "read": ("read_path", {"path": "a.txt"}), "write": ("write_file", {"path": "b.txt", "content": "x"}),
        "grep": ("grep_files", {"pattern": "one"}), "ls": ("list_directory", {}),
        "edit": ("edit_file", {"path": "a.txt", "old_string": "one", "new_string": "two"}),
    }  # fmt: skip
    between = {}
    with Workspace(tmp_path) as ws:
        for name, (work, arguments) in calls.items():
            ws.tools().call(name, arguments)  # imports what it needs
            frames = []

            def note(frame, event, _, work=work, frames=frames):
                if event == "call" and frame.f_code.co_name == work and not frames:
                    while frame is not None:
                        frames.append(frame.f_code.co_name)
                        frame = frame.f_back if frame.f_code is not Toolset.call.__code__ else None

            sys.setprofile(note)
            try:
                ws.tools().call(name, arguments)
            finally:
                sys.setprofile(None)
            between[name] = frames[1:-1]
    assert {name: frames for name, frames in between.items() if len(frames) > 8} == {}
    assert all(between.values())
