"""Rules, modes and the callback, about commands and what they change."""

import random
import runpy
import threading
import time
from pathlib import Path

import pytest

from agentfs import Deny, Limits, Policy, Workspace
from agentfs.errors import UnknownToolError

_here = runpy.run_path(str(Path(__file__).parent / "conftest.py"))
code_of, snapshot = _here["code_of"], _here["snapshot"]
PID, running = _here["PID"], _here["running"]
WAYS = pytest.mark.parametrize("way", ["staged", "recorded"])


def asker(requests, answer=True):
    def on_ask(request):
        requests.append(request)
        return answer

    return on_ask


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


def test_a_refusal_drops_everything(opened, tree):
    before = snapshot(tree)
    ws = opened("staged", on_ask=asker([], Deny("not now")))
    assert code_of(lambda: ws.run("rm -r src; echo x > y")) == "refused"
    assert snapshot(tree) == before


def test_a_recorded_command_is_asked_about_before_it_runs(opened, tree):
    requests = []
    ws = opened("recorded", on_ask=asker(requests, answer=False))
    assert code_of(lambda: ws.run("touch made")) == "refused"
    assert code_of(lambda: ws.run("touch made", background=True)) == "refused"
    assert [request.arguments["command"] for request in requests] == ["touch made"] * 2
    assert not (tree / "made").exists()


@WAYS
def test_an_ask_rule_on_the_command_asks_before_it_runs(opened, tree, way):
    requests = []
    ws = opened(way, on_ask=asker(requests, answer=False), ask=["run(touch*)"], allow=["run"])
    assert code_of(lambda: ws.run("true && touch made")) == "refused"
    assert not (tree / "made").exists()
    assert requests[0].diff == ""
    assert ws.run("echo x").exit_status == 0
    assert len(requests) == 1


@WAYS
def test_deny_rules_and_plan_mode(opened, tree, way):
    ws = opened(way, deny=["run(git push*)"])
    assert code_of(lambda: ws.run("echo; git push origin")) == "refused"
    assert ws.run("echo git push").exit_status == 0
    assert code_of(lambda: opened(way, deny=["run"]).run("true")) == "refused"
    assert code_of(lambda: opened(way, deny=["*"]).run("true")) == "refused"
    assert code_of(lambda: opened(way, mode="plan").run("true")) == "refused"


@WAYS
def test_an_allow_rule_matches_only_if_all_parts_do(opened, tree, way):
    ws = opened(way, allow=["run(git status)"])
    assert ws.run("git status").exit_status is not None
    pieces = ["touch made", "echo x > made", "$(touch made)", "`touch made`", "A=b git status", "git stash"]
    joints = ["; ", " && ", " || ", " | ", "\n", " & "]
    commands = [
        f"{first}{joint}{second}"
        for joint in joints
        for piece in pieces
        for first, second in ((piece, "git status"), ("git status", piece))
    ]
    commands += [
        "git status > made",
        "git status made $(touch made)",
        "(touch made)",
        "PATH=. git status",
        "git status`touch made`",
    ]
    commands += compounds(random.Random(7), 500)
    for command in commands:
        assert code_of(lambda command=command: ws.run(command)) == "refused", command
    assert not (tree / "made").exists()


BAD = (
    "touch made",
    "echo > made",
    "git stash",
    "git statu",
    "git status --x",
    "git statuses",
    "rm -rf .",
    "A=b git status",
    "GIT_DIR=. git status",
    "> made",
    "git  -c a=b status",
    "git status > made",
    "git status $(touch made)",
    "git status `touch made`",
    "git status <(touch made)",
    "env git status",
    "git status &> made",
    "git status >> made",
    "git status 2>made",
    "command git status",
    "! touch made",
    "git status ${x:=$(touch made)}",
    "eval git status",
    "exec git status",
    "gi\\\nt stash",
    "./git status",
    "git status <<< $(touch made)",
    "$'git' stash",
    "g''it stash",
    "git${IFS}stash",
    "alias git=touch",
    "function git { touch made; }",
    "git() { touch made; }",
    "coproc touch made",
    "time touch made",
)


def compounds(random: random.Random, count: int) -> list[str]:
    """Return distinct commands by a grammar, each with a part that is not `git status`."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[compound(random, 3)] = None
    return [*found]


def compound(random: random.Random, depth: int) -> str:
    bad = random.choice(BAD)
    if depth:
        bad = compound(random, depth - 1) if random.random() < 0.6 else bad
        good = random.choice(["git status", "git status", " git  status ", "git 'status'", '"git" status'])
        around = [
            "({})",
            "{{ {}; }}",
            "if {}; then git status; fi",
            "while {}; do git status; done",
            "bash -c '{}'",
        ]
        around += [
            "for i in 1; do {}; done",
            "case x in x) {};; esac",
            "git status; {}",
            "! {}",
            "time {}",
            "eval '{}'",
        ]
        joint = random.choice(
            ["; ", ";", " && ", "&&", " || ", "||", " | ", "|", "\n", " & ", "&", " |& ", "\r\n"]
        )
        shape = random.randrange(3)
        if shape == 0:
            return random.choice(around).format(bad)
        return f"{bad}{joint}{good}" if shape == 1 else f"{good}{joint}{bad}"
    return bad


def test_an_ask_rule_on_paths_asks_about_what_a_command_has_changed(opened, tree):
    requests = []
    ws = opened("staged", on_ask=asker(requests), ask=["write(src/**)"], allow=["run"])
    ws.run("touch made")
    assert requests == []
    ws.run("touch src/made")
    assert len(requests) == 1
    assert "src/made" in requests[0].paths


@WAYS
def test_run_joins_the_tools_only_if_the_policy_has_it(opened, way, tree):
    ws = opened(way)
    names = ws.tools("all").names
    assert "run" in names
    assert ("output" in names, "stop" in names) == ((way == "recorded"),) * 2
    assert "run" not in ws.tools().names
    assert "start" not in names
    (schema,) = ws.tools(["run"]).schemas("anthropic")
    assert list(schema["input_schema"]["properties"]) == ["command", "timeout", "cwd"]
    with Workspace(tree) as plain:
        assert "run" not in plain.tools("all").names
        with pytest.raises(UnknownToolError):
            plain.tools(["run"])


def test_a_model_may_start_in_the_background_if_it_can_stop(recorded):
    tools = recorded.tools(["run", "output", "stop"])
    started = tools.call("run", {"command": f"sleep 44.{PID}", "background": True})
    assert started.success
    assert tools.call("stop", {"id": started.data["id"]}).success


@WAYS
def test_a_models_timeout_is_clamped_and_a_programs_is_not(opened, way):
    from agentfs import Limits

    ws = opened(way, limits=Limits(run_timeout=0.5, timeout=5.0))
    began = time.monotonic()
    answer = ws.tools(["run"]).call("run", {"command": "sleep 20", "timeout": 100})
    assert time.monotonic() - began < 10
    assert "Stopped after 0.5 s" in answer.content
    assert ws.run("sleep 1; echo end", timeout=20).stdout == b"end\n"


@WAYS
def test_a_command_longer_than_the_timeout_of_other_calls_runs_as_a_tool(opened, way, tree):
    from agentfs import Limits

    ws = opened(way, limits=Limits(timeout=1.0))
    answer = ws.tools(["run"]).call("run", {"command": "sleep 2; touch made; echo end", "timeout": 30})
    assert answer.success, answer.content
    assert (tree / "made").exists()


@WAYS
async def test_a_cancelled_call_ends_its_command(opened, way, tree):
    import asyncio

    tools = opened(way).tools(["run"])
    task = asyncio.create_task(tools.acall("run", {"command": f"touch made; sleep 45.{PID}"}))
    while not await asyncio.to_thread(running, f"sleep 45.{PID}"):  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(100):
        if not await asyncio.to_thread(running, f"sleep 45.{PID}"):
            break
        await asyncio.sleep(0.05)
    assert not running(f"sleep 45.{PID}")
    if way == "staged":
        assert not (tree / "made").exists()


@WAYS
def test_the_host_is_not_asked(opened, way, tree):
    ws = opened(way, on_ask=asker([], answer=False), deny=["run"])
    assert ws.host.run("touch made").exit_status == 0
    assert (tree / "made").exists()


def test_calls_from_several_threads(ws, tree):
    threads = [threading.Thread(target=ws.run, args=(f"echo {n} > f{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.name for path in tree.glob("f?")) == [f"f{n}" for n in range(3)]


def test_the_policy_of_a_view_cannot_change_the_way(staged):
    assert code_of(lambda: staged.view(policy=Policy(run="recorded"))) == "invalid_argument"
    assert code_of(lambda: staged.view(only=["src"]).run("true")) == "refused"
    assert staged.view(workdir="src").run("pwd").stdout.endswith(b"/tree/src\n")


TESTS = "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.fail('broken')\n"


def test_regression_what_may_not_be_changed_stays_readable_for_a_command(opened, tree):
    """`deny=["change(test_*.py)"]` emptied the tests: `unittest` ran none of them, and said OK."""
    (tree / "test_it.py").write_text(TESTS)
    ws = opened("staged", deny=["change(test_*.py)"])
    done = ws.run("python3 -m unittest")
    assert done.exit_status != 0
    assert b"FAILED" in done.stderr
    assert ws.run("cat test_it.py").stdout.decode() == TESTS
    assert code_of(lambda: ws.run("echo x > test_it.py")) == "refused"
    assert code_of(lambda: ws.run("rm test_it.py")) == "refused"
    assert (tree / "test_it.py").read_text() == TESTS


def test_regression_an_ask_rule_about_changes_asks_and_does_not_block_the_file(opened, tree):
    """`ask=["change(*.lock)"]` gave "Read-only file system" and never asked."""
    (tree / "uv.lock").write_text("one\n")
    requests = []
    ws = opened("staged", on_ask=asker(requests), ask=["change(*.lock)"], allow=["run", "change"])
    assert ws.run("cat uv.lock; echo two >> uv.lock").stdout == b"one\n"
    assert [request.paths for request in requests] == [("uv.lock",)]
    assert (tree / "uv.lock").read_text() == "one\ntwo\n"
    ws.run("echo x > free.txt")
    assert len(requests) == 1


def test_regression_allow_rules_judge_each_path_that_a_command_has_changed(opened, tree):
    """A test that wrote `README` overwrote it unasked."""
    ws = opened("staged", allow=["read", "change(src/**)", "run(sh *)", "run(ls*)"])
    before = (tree / "README").read_text()
    assert ws.run("ls").exit_status == 0
    assert code_of(lambda: ws.run("sh -c 'echo x > README'")) == "refused"
    assert code_of(lambda: ws.run("sh -c 'echo x > src/n.txt; echo x > n.txt'")) == "refused"
    assert (tree / "README").read_text() == before
    assert not (tree / "src/n.txt").exists()
    ws.run("sh -c 'echo x > src/n.txt'")
    assert (tree / "src/n.txt").read_text() == "x\n"
    assert code_of(lambda: ws.run("touch src/other")) == "refused"


def test_a_recorded_command_is_refused_by_a_rule_about_reading(opened, tree):
    ws = opened("recorded", deny=["read(src/**)"])
    assert code_of(lambda: ws.run("ls")) == "refused"
    assert code_of(lambda: opened("recorded", ask=["read(src/**)"]).run("ls")) == "refused"


CHANGING = "printf x > src/a.py; rm README; mkdir new; printf n > new/n.txt"


@pytest.mark.parametrize(
    "rules",
    [
        {"deny": ["change(src/**)"]},
        {"deny": ["edit(src/a.py)"]},
        {"deny": ["delete(README)"]},
        {"deny": ["create(new/**)"]},
        {"ask": ["delete(README)"], "allow": ["*"]},
        {"allow": ["read", "change(src/**)", "run"]},
        {"mode": "bypass", "deny": ["write(new/**)"]},
    ],
    ids=str,
)
def test_regression_a_refused_change_of_a_recorded_command_is_taken_back(opened, tree, rules):
    """Rules with a path did not hold for recorded commands."""
    before = snapshot(tree)
    ws = opened("recorded", **rules)
    answer = ws.tools(["run"]).call("run", {"command": CHANGING})
    assert answer.error["code"] == "refused"
    assert "exit status 0; what it has changed was taken back" in answer.content
    assert snapshot(tree) == before


def test_an_allowed_change_of_a_recorded_command_stays(opened, tree):
    ws = opened("recorded", allow=["read", "change(src/**)", "run"], deny=["change(README)"])
    ws.run("printf x > src/a.py; cat README")
    assert (tree / "src/a.py").read_text() == "x"


def test_a_user_who_refuses_a_change_of_a_recorded_command_gets_it_back(opened, tree):
    requests, before = [], snapshot(tree)
    rules = {"allow": ["run", "*"], "ask": ["change(README)"]}
    ws = opened("recorded", on_ask=asker(requests, answer=False), **rules)
    assert code_of(lambda: ws.run(CHANGING)) == "refused"
    assert snapshot(tree) == before
    assert "README" in requests[0].paths
    ws.run("printf x > src/a.py")
    assert len(requests) == 1


def test_a_recorded_command_is_refused_if_its_changes_could_not_be_taken_back(opened, tree):
    (tree / ".gitignore").write_text("out/\n")
    (tree / "out").mkdir()
    (tree / "out/a.o").write_text("o")
    ws = opened("recorded", deny=["change(out/**)"])
    assert code_of(lambda: ws.run("printf x > out/a.o")) == "refused"
    assert (tree / "out/a.o").read_text() == "o"
    ws = opened("recorded", deny=["change(src/**)"])
    assert code_of(lambda: ws.run("true", background=True)) == "refused"
    ws.run("printf x > out/a.o")
    assert (tree / "out/a.o").read_text() == "x"


def test_a_refused_change_whose_content_is_not_kept_is_named(tree):
    rules = Policy(run="recorded", deny=["change(src/**)"])
    with Workspace(tree, policy=rules, limits=Limits(file_bytes=1000)) as ws:
        answer = ws.tools(["run"]).call("run", {"command": "head -c 5000 /dev/zero > src/a.py; printf x > y"})
    assert answer.error["code"] == "refused"
    assert 'except "src/a.py", whose content is not kept' in answer.content
    assert not (tree / "y").exists()


@pytest.mark.parametrize(
    "rules",
    [
        {"deny": ["change(*.lock)"]},
        {"ask": ["change(**/*.lock)"], "allow": ["*"], "on_ask": asker([], answer=False)},
    ],
)
def test_regression_a_rule_about_names_holds_in_ignored_directories(opened, tree, rules):
    """Files in ignored directories were neither recorded nor judged by a rule without a slash."""
    (tree / ".gitignore").write_text("out/\n")
    (tree / "out").mkdir()
    (tree / "out/a.lock").write_text("old")
    before = snapshot(tree)
    ws = opened("recorded", **rules)
    assert code_of(lambda: ws.run("printf x > out/a.lock; printf y > out/b.lock; printf z > n")) == "refused"
    assert snapshot(tree) == before
    ws.run("printf x > out/a.o")
    assert (tree / "out/a.o").read_text() == "x"


def test_a_rule_about_names_below_an_ignored_directory_refuses_a_recorded_command(opened, tree):
    (tree / ".gitignore").write_text("src/out/\n")
    (tree / "src/out").mkdir()
    ws = opened("recorded", deny=["change(src/**/*.lock)"])
    assert code_of(lambda: ws.run("true")) == "refused"
