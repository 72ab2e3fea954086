"""Rules, modes and the callback, about commands and what they change."""

# ruff: noqa: E501 - a row of a table is one line

import asyncio
import re
import threading
import time
from functools import partial

import pytest

from agentfs import Deny, Limits, Policy, Workspace, connect
from tests.commands.conftest import PID, code_of, running
from tests.history.judges import snapshot
from tests.kit import in_threads, put, refused
from tests.remote.over_pipe import open_pipe

WAYS = pytest.mark.parametrize("way", ["staged", "recorded"])


def asker(requests, answer=True):
    def on_ask(request):
        requests.append(request)
        return answer

    return on_ask


def named(value):
    """Return a name for a case, which is the same in each process of a run."""
    return re.sub(r"<function .*? at 0x\w+>", "on_ask", str(value))


REFUSING = {"on_ask": asker([], answer=False)}
TESTS = "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.fail('broken')\n"
CHANGING = "printf x > src/a.py; rm README; mkdir new; printf n > new/n.txt"
NAMES = "printf x > out/a.lock; printf y > out/b.lock; printf z > n"


# Each is refused, and changes nothing: a rule, and the command.
@pytest.mark.parametrize(
    ("way", "rules", "command"),
    [
        ("staged", {"on_ask": asker([], Deny("not now"))}, "rm -r src; echo x > y"),
        ("recorded", REFUSING, "touch made"),
        *((way, rules, "echo; git push origin") for way in ("staged", "recorded") for rules in (
            {"deny": ["run(git push*)"]}, {"deny": ["run"]}, {"deny": ["*"]}, {"mode": "plan"})),
        # `deny=["change(test_*.py)"]` emptied the tests: `unittest` ran none of them, and said OK.
        *(("staged", {"deny": ["change(test_*.py)"]}, each) for each in ("echo x > test_it.py", "rm test_it.py")),
        # A test that wrote `README` overwrote it unasked.
        *(("staged", {"allow": ["read", "change(src/**)", "run(sh *)"]}, each) for each in (
            "sh -c 'echo x > README'", "sh -c 'touch src/n; touch n'", "touch src/other")),
        *((way, {"deny": ["delete(src/**)"]}, "rm src/a.py; mkdir src/a.py") for way in ("staged", "recorded")),
        ("staged", {"deny": ["delete(src/**)"]}, "rm src/a.py; touch made"),
        ("staged", {"ask": ["edit"], "allow": ["run", "change"], **REFUSING}, "echo more >> README; touch made"),
        # What it had changed was not taken back.
        ("recorded", {"deny": ["delete(src/**)"]}, "rm -r src; echo file > src"),
        *(("staged", {"deny": ["change(src/**)"]}, each) for each in ("mv src other", "touch fine; echo > src/new")),
        *(("recorded", {kind: ["read(src/**)"]}, "ls") for kind in ("deny", "ask")),
        # Its changes could not be taken back.
        ("recorded", {"deny": ["change(out/**)"]}, "printf x > out/a.o"),
        ("recorded", {"deny": ["change(src/**/*.lock)"]}, "true"),
        # Rules with a path did not hold for recorded commands.
        *(("recorded", {"deny": [rule]}, CHANGING) for rule in ("change(src/**)", "edit(src/a.py)", "delete(README)", "create(new/**)")),
        *(("recorded", rules, CHANGING) for rules in (
            {"ask": ["delete(README)"], "allow": ["*"]}, {"allow": ["read", "change(src/**)", "run"]},
            {"mode": "bypass", "deny": ["write(new/**)"]},
            {"allow": ["run", "*"], "ask": ["change(README)"], **REFUSING})),
        # Files in ignored directories were neither recorded nor judged by a rule without a slash.
        ("recorded", {"deny": ["change(*.lock)"]}, NAMES),
        ("recorded", {"ask": ["change(**/*.lock)"], "allow": ["*"], **REFUSING}, NAMES),
    ],
    ids=named,
)  # fmt: skip
def test_regression_a_refused_command_changes_nothing(opened, tree, way, rules, command):
    (tree / ".gitignore").write_text("out/\n")
    for directory in ("out", "src/out") if "src/**/*.lock" in str(rules) else ("out",):
        (tree / directory).mkdir()
    put(tree, {"out/a.o": "o", "out/a.lock": "old", "test_it.py": TESTS})
    before = snapshot(tree)
    ws = opened(way, **rules)
    answer = ws.tools(["run"]).call("run", {"command": command})
    assert (answer.error or {}).get("code") == "refused"
    if command == CHANGING:
        assert "exit status 0; what it has changed was taken back" in answer.content
    assert snapshot(tree) == before


@pytest.mark.parametrize(
    ("way", "rules", "command", "output"),
    [
        ("staged", {"deny": ["run(git push*)"]}, "echo git push", b"git push\n"),
        ("recorded", {"deny": ["run(git push*)"]}, "echo git push", b"git push\n"),
        ("staged", {"deny": ["change(test_*.py)"]}, "cat test_it.py", TESTS.encode()),
        ("staged", {"deny": ["change(test_*.py)"]}, "python3 -m unittest 2>&1 | grep -c FAILED", b"1\n"),
        ("staged", {"allow": ["run(ls*)"]}, "ls src", b"a.py\nb.py\n"),
        ("staged", {"allow": ["change(src/**)", "run(sh *)"]}, "sh -c 'echo x > src/n; cat src/n'", b"x\n"),
        ("staged", {"deny": ["change(src/**)"]}, "echo x > fine; cat fine", b"x\n"),
        ("recorded", {"deny": ["change(src/**)"]}, "printf x > out; cat out", b"x"),
        ("recorded", {"deny": ["change(*.lock)"]}, "printf x > out; cat out", b"x"),
        ("recorded", {"allow": ["read", "change(src/**)", "run"], "deny": ["change(README)"]}, "printf x > src/a.py; cat src/a.py README", b"xread me\n"),
    ],
    ids=named,
)  # fmt: skip
def test_regression_what_may_not_be_changed_stays_readable_for_a_command(
    opened, tree, way, rules, command, output
):
    (tree / "test_it.py").write_text(TESTS)
    assert opened(way, **rules).run(command).stdout == output


def test_a_staged_command_is_asked_about_once_with_its_changes(opened, tree):
    requests = []
    ws = opened("staged", on_ask=asker(requests))
    ws.run("sed -i s/two/TWO/ src/a.py; echo new > made")
    (request,) = requests
    assert (request.method, request.effect) == ("run", "execute")
    assert "-two\n+TWO" in request.diff
    assert {"made", "src/a.py"} <= set(request.paths)
    ws.run("cat README")
    ws.run("touch other", preview=True)
    assert len(requests) == 1


@WAYS
def test_an_ask_rule_on_the_command_asks_before_it_runs(opened, tree, way):
    requests = []
    ws = opened(way, on_ask=asker(requests, answer=False), ask=["run(touch*)"], allow=["run"])
    assert code_of(lambda: ws.run("true && touch made")) == "refused"
    assert not (tree / "made").exists()
    assert (requests[0].diff, requests[0].arguments["command"]) == ("", "true && touch made")
    assert ws.run("echo x").exit_status == 0
    assert len(requests) == 1


def test_a_background_command_is_asked_about_and_refused_by_rules_about_changes(opened):
    for rules in (REFUSING, {"deny": ["change(src/**)"]}):
        ws = opened("recorded", **rules)
        refused(lambda ws=ws: ws.run("true", background=True), "refused")


@pytest.mark.parametrize(("rule", "free", "asked"), [
    ("write(src/**)", "touch made", "touch src/made"),
    ("change(*.lock)", "echo x > free", "cat README >> uv.lock"),
])  # fmt: skip
def test_regression_an_ask_rule_about_changes_asks_and_does_not_block_the_file(
    opened, tree, rule, free, asked
):
    """`ask=["change(*.lock)"]` gave "Read-only file system" and never asked."""
    (tree / "uv.lock").write_text("one\n")
    requests = []
    ws = opened("staged", on_ask=asker(requests), ask=[rule], allow=["run", "change"])
    ws.run(free)
    assert requests == []
    ws.run(asked)
    assert [request.paths for request in requests] == [(asked.split()[-1],)]
    assert (tree / asked.split()[-1]).exists()


def test_a_refused_change_whose_content_is_not_kept_is_named(opened, tree):
    ws = opened("recorded", deny=["change(src/**)"], limits=Limits(file_bytes=1000))
    answer = ws.tools(["run"]).call("run", {"command": "head -c 5000 /dev/zero > src/a.py; printf x > y"})
    assert answer.error["code"] == "refused"
    assert 'except "src/a.py", whose content is not kept' in answer.content
    assert not (tree / "y").exists()


@WAYS
def test_an_allow_rule_matches_only_if_all_parts_do(opened, tree, way):
    """tests/permissions has the law for commands of a grammar."""
    ws = opened(way, allow=["run(git status)"])
    assert ws.run("git status").exit_status is not None
    pieces = ["touch made", "echo x > made", "$(touch made)", "`touch made`", "A=b git status", "git stash"]
    around = [
        "{}; git status", "git status && {}", "git status | {}", "git status\n{}", "({})", "bash -c '{}'",
    ]  # fmt: skip
    more = [
        "git status > made", "git status made $(touch made)", "PATH=. git status", "git status`touch made`",
    ]  # fmt: skip
    for command in [*more, *(each.format(piece) for each in around for piece in pieces)]:
        assert code_of(lambda command=command: ws.run(command)) == "refused", command
    assert not (tree / "made").exists()


@WAYS
def test_run_joins_the_tools_only_if_the_policy_has_it(opened, way, tree):
    ws = opened(way)
    ours = {"run"} if way == "staged" else {"run", "output", "stop"}
    assert {*ws.tools("all").names} & {"run", "output", "stop", "start"} == ours
    assert "run" not in ws.tools().names
    (schema,) = ws.tools(["run"]).schemas("anthropic")
    parameters = schema["input_schema"]["properties"]
    assert list(parameters) == ["command", "timeout", "cwd"]
    assert "no network, a `/tmp` of its own, and sees protected files empty" in schema["description"]
    assert "Seconds until it is stopped, at most 600" in parameters["timeout"]["description"]
    with Workspace(tree) as plain:
        assert "run" not in plain.tools("all").names
        refused(lambda: plain.tools(["run"]), "unknown_tool")


def test_a_model_may_start_in_the_background_if_it_can_stop(recorded):
    tools = recorded.tools(["run", "output", "stop"])
    started = tools.call("run", {"command": f"sleep 44.{PID}", "background": True})
    assert started.success
    assert tools.call("stop", {"id": started.data["id"]}).success


@WAYS
def test_a_models_timeout_is_clamped_and_a_programs_is_not(opened, way):
    ws = opened(way, limits=Limits(run_timeout=0.5, timeout=1.0))
    began = time.monotonic()
    answer = ws.tools(["run"]).call("run", {"command": "sleep 20", "timeout": 100})
    assert time.monotonic() - began < 10
    assert "Stopped after 0.5 s" in answer.content
    assert ws.run("sleep 1.5; echo end", timeout=20).stdout == b"end\n"
    tools = opened(way, limits=Limits(timeout=1.0)).tools(["run"])
    assert tools.call("run", {"command": "sleep 1.5; echo end", "timeout": 30}).success


@WAYS
@pytest.mark.parametrize("place", ["local", "connect"])
async def test_a_cancelled_call_ends_its_command(opened, place, way, tree):
    sleep = f"sleep 45.{PID}"
    ws = (
        opened(way)
        if place == "local"
        else connect(open_pipe(policy=Policy(run=way)), tree, policy=Policy(run=way))
    )
    with ws:
        task = asyncio.create_task(ws.tools(["run"]).acall("run", {"command": f"touch made; {sleep}"}))
        while not await asyncio.to_thread(running, sleep):  # noqa: ASYNC110 - a process tells nobody
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running(sleep), "it has ended when the cancellation is raised"
        assert way == "recorded" or not (tree / "made").exists()


@pytest.mark.parametrize("place", ["local", "connect"])
async def test_regression_a_call_whose_changes_are_applied_when_it_is_cancelled_returns(
    opened, place, tree, monkeypatch
):
    """It raised, as if nothing was changed."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_):
        begun.set()
        go_on.wait(5)

    monkeypatch.setattr("agentfs.commands.apply_effects.set_times", slow)
    policy = Policy(run="staged")
    ws = opened("staged") if place == "local" else connect(open_pipe(policy=policy), tree, policy=policy)
    with ws:
        task = asyncio.create_task(ws.tools(["run"]).acall("run", {"command": "touch made"}))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        await asyncio.sleep(0.05)
        go_on.set()
        result = await task
    assert result.success
    assert (tree / "made").exists()


@WAYS
def test_the_host_is_not_asked(opened, way, tree):
    ws = opened(way, on_ask=asker([], answer=False), deny=["run"])
    assert ws.host.run("touch made").exit_status == 0
    assert (tree / "made").exists()


def test_calls_from_several_threads(ws, tree):
    with in_threads(*(partial(ws.run, f"echo {n} > f{n}") for n in range(3))):
        pass
    assert sorted(path.name for path in tree.glob("f?")) == [f"f{n}" for n in range(3)]


def test_the_policy_of_a_view_cannot_change_the_way(staged):
    assert code_of(lambda: staged.view(policy=Policy(run="recorded"))) == "invalid_argument"
    assert code_of(lambda: staged.view(only=["src"]).run("true")) == "refused"
    assert staged.view(workdir="src").run("pwd").stdout.endswith(b"/tree/src\n")
