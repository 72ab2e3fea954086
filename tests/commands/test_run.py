"""`run`: what a command's result has, in both ways of running."""

# ruff: noqa: E501 - a row of a table is one line

import os
import resource
import shlex
import shutil
import sys
import time

import pytest

from agentfs import Limits
from agentfs.commands.outside import Outside
from agentfs.commands.system_calls import filter_of_calls
from tests.commands.conftest import PID, SECRET, running
from tests.dialects.answers import check
from tests.history.judges import snapshot
from tests.kit import refused

PYTHON = shlex.quote(sys.executable)  # as a word of a command line
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
RESERVE = (
    f"import mmap; mmap.mmap(-1, {2 * MEMORY}, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)"  # unreserved
)
USUAL = "import multiprocessing, tempfile; multiprocessing.Lock(); tempfile.TemporaryFile(); print('works')"
SOCKETS = "import socket\nfor each in (1, 2, 10, 16, 38, 40): socket.socket(each, 3 if each == 16 else 2)"
# A command, its other arguments, and what its result has.
RESULTS = {
    "streams are separate, and the text joins them in order": ("echo out; sleep .1; echo err >&2; sleep .1; echo end; exit 3", {}, {
        "exit_status": 3, "stdout": b"out\nend\n", "stderr": b"err\n", "text~": "out\nerr\nend\n", "text^": "Exit status 3, ",
        "truncated": False, "timed_out": False}),
    "stdin is empty": ("wc -c", {}, {"stdout~": b"0\n"}), "stdin is given": ("wc -c", {"stdin": "four"}, {"stdout~": b"4\n"}),
    "stdin is big": ("wc -c", {"stdin": b"x" * 100_000}, {"stdout~": b"100000\n"}),
    "stdin is not read": ("true", {"stdin": b"x" * 1_000_000}, {"exit_status": 0}),
    "controls are visible and hide nothing that follows": (r"printf '\033[2J\033[8mhidden\xff\r\n'", {}, {
        "text~": "⟦U+001B⟧[2J⟦U+001B⟧[8mhidden\\xff\n", "text!": "\x1b", "stdout": b"\x1b[2J\x1b[8mhidden\xff\r\n"}),
    "a killed command has the status of a shell": ("kill -9 $$", {}, {"exit_status": 137, "stdout": b""}),
    "regression_processes_that_end_with_a_command_are_counted": ("nohup sleep 60 > /dev/null 2>&1 & echo started", {}, {
        "text~": "1 process in the background: ended with the command"}),
    "regression_vim_ends_without_a_terminal": ("vim README; echo $?", {"timeout": 20}, {
        "timed_out": False, "stdout~": b"\n1\n", "stderr~": b"Input is not from a terminal"} if shutil.which("vim") else {}),
    "interactive programs end": ("less README; python3; bash -i; cat; read x", {"timeout": 20}, {"exit_status": 1, "timed_out": False}),
    "no process in the background": ("echo x | cat; (exit 3)", {}, {"text!": "in the background"}),
    "regression_a_server_that_reaches_its_timeout_is_not_only_given_more_time": ("sleep 60", {"timeout": 0.3}, {"text~": "start it with `&`"}),
}  # fmt: skip
STAGED = {
    "regression_a_command_without_network_is_told": ("echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6", {}, {"text~": "has no network"}),
    "not of another command": ("echo fine", {}, {"text!": "has no network"}),
    "regression_a_directory_that_cannot_be_renamed_is_named": ('python3 -c \'import os; os.rename("src", "lib")\'', {}, {
        "exit_status": 1, "text~": "cannot be renamed in one step"}),
    "regression_a_hard_link_of_a_user_is_named": ("echo fatal: hardlink different from source at x", {}, {"text~": "--no-hardlinks"}),
    "regression_groups_of_a_user_are_named": ("echo a: Value too large for defined data type", {}, {"text~": "has one group here"}),
    "it can be moved": ("mv src lib && ls lib", {}, {"stdout^": b"a.py"}),
    "its processes are ended first if no memory is left": ("cat /proc/self/oom_score_adj", {}, {"stdout": b"1000\n"}),
    # Programs with AddressSanitizer did not start.
    "regression_a_program_may_reserve_more_memory_than_there_is": (f'{PYTHON} -SIc "{RESERVE}"', {}, {"exit_status": 0}),
    "usual programs work within the limits": (f'{PYTHON} -c "{USUAL}"; echo x > /dev/null', {}, {"stdout": b"works\n"}),
    "a killed command says nothing else": ("kill -9 $$", {}, {"stderr": b""}),
    "regression_no_user_namespaces_and_no_rare_sockets_in_a_staged_command": (
        f"unshare -U true || echo refused; {PYTHON} -SIc {shlex.quote(SOCKETS)}", {}, {
        "stdout": b"refused\n", "stderr~": b"Address family not supported"} if filter_of_calls(os.uname().machine) else {}),
    "a file from the future can be changed": ("touch -d 2033-01-01 README; echo more >> README", {}, {"changes/files#": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_the_result_of_a_command(ws, name):
    command, given, wanted = RESULTS[name]
    result = ws.run(command, **given)
    check(result, {**wanted, "confinement": ws.policy.run})
    if result.timed_out:
        following = result.next["arguments"]
        assert following.get("background") is True or (
            ws.policy.run == "staged" and following["timeout"] > 0.3
        )


@pytest.mark.parametrize("name", STAGED)
def test_the_result_of_a_staged_command(staged, tree, name):
    command, given, wanted = STAGED[name]
    os.utime(tree / "README", (2_000_000_000, 2_000_000_000))
    check(staged.run(command, **given), wanted)


def test_the_errors_of_a_command_come_with_its_output(staged):
    command = "echo said; echo wrong >&2; mkdir .vscode; echo {} > .vscode/tasks.json; exit 4"
    error = refused(lambda: staged.run(command), "protected")
    said = {"exit_status": 4, "stdout": "said\n", "stderr": "wrong\n", "paths~": ".vscode/tasks.json"}
    check(error.details, said)
    assert "said\nwrong" in str(error)


def test_cwd_and_environment(ws, tree, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    result = ws.run(
        "pwd; env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'", cwd="src", env={"MINE": "yes"}
    )
    assert result.stdout.startswith(os.fsencode(tree / "src") + b"\n")
    assert b"MINE=yes\n" in result.stdout
    if ws.policy.run == "staged":
        assert SECRET.encode() not in result.stdout
    assert b"AWS_SECRET_ACCESS_KEY" not in ws.run("env").stdout


def test_long_output_shows_head_and_tail_and_keeps_the_rest(ws):
    result = ws.run("seq 1 100000")
    assert result.stdout.count(b"\n") == 100_000
    assert len(result.text) < 32_000
    assert "100000 lines of output:\n1\n2\n" in result.text
    assert "\n99999\n100000\n" in result.text
    name = result.text.split('read(path="')[1].split('"')[0]
    assert "50000" in ws.read(name, offset=50_000, limit=1).text


@pytest.mark.full
def test_endless_output_is_cut_at_the_limit_in_bounded_memory(opened):
    ws = opened("recorded", limits=Limits(file_bytes=1_000_000))
    result = ws.run("yes 0123456789 | head -c 300000000; echo; echo last")
    assert result.truncated
    assert len(result.stdout) == 1_000_000
    assert "last\n" in result.text


def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_call(ws):
    began = time.monotonic()
    result = ws.run(f"sleep 30.{PID} & echo started")
    assert time.monotonic() - began < 5
    assert (result.exit_status, result.stdout) == (0, b"started\n")
    assert not running(f"sleep 30.{PID}")


def test_regression_a_program_with_many_open_files_runs_commands(ws):
    """`select` takes no descriptor above 1023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    try:
        assert ws.run("echo done").stdout == b"done\n"
    finally:
        for each in held:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_processes_that_leave_the_group_end_with_the_call(ws):
    ws.run(f"setsid nohup sleep 31.{PID} >/dev/null 2>&1 & disown; (setsid sleep 31.{PID} &) ; true")
    assert not running(f"sleep 31.{PID}")


@pytest.mark.parametrize(
    "command",
    [f"sleep 32.{PID}", f"trap '' TERM; while true; do sleep 32.{PID}; done"],
    ids=["sleeps", "ignores TERM"],  # the same in every process of the suite
)
def test_a_timeout_ends_all_processes_and_returns_the_text_so_far(ws, tree, command):
    before = snapshot(tree)
    began = time.monotonic()
    result = ws.run(f"echo begun; echo x > made; {command}", timeout=0.7)
    assert time.monotonic() - began < 6
    assert result.exit_status is None
    assert result.timed_out
    assert result.stdout == b"begun\n"
    assert result.text.startswith("Stopped after 0.7 s")
    assert result.next is not None
    assert result.next["name"] == "run"
    assert not running(f"sleep 32.{PID}")
    if ws.policy.run == "staged":
        assert snapshot(tree) == before
    else:
        assert [change.path for change in result.changes.files] == ["made"]


@pytest.mark.parametrize(("arguments", "code"), [
    *((each, "invalid_argument") for each in (
        ("",), (" \n",), ("a\0b",), ("a\ud800b",), ("x" * 10_000_000,), *(("true", each) for each in (0, -1, float("nan"), float("inf"))))),
    (("true", 5, "README"), "not_a_directory"), (("true", 5, "gone"), "not_found"),
    *((("true", 5, each), "outside_workspace") for each in ("/etc", "..")),
], ids=lambda value: str(value)[:40])  # fmt: skip
def test_bad_arguments_are_refused(ws, arguments, code):
    refused(lambda: ws.run(*arguments), code)
    for env in ({"A=B": "c"}, {"A": "b\0c"}):
        refused(lambda: ws.run("true", env=env), "invalid_argument")  # noqa: B023 - called at once


def test_what_the_policy_does_not_allow_is_not_run(opened, tree):
    refused(lambda: opened(None).run("touch made"), "unsupported")
    for options in ({"preview": True}, {"network": True}):
        refused(lambda more=options: opened("recorded").run("touch made", **more), "unsupported")
    refused(lambda: opened("sandbox"), "invalid_argument")
    for way in ("staged", "recorded"):
        refused(lambda: opened(way, read_only=True).run("touch made"), "read_only")  # noqa: B023 - called at once
    assert not (tree / "made").exists()


def test_a_path_that_vanishes_while_a_command_is_staged_is_not_an_error(staged, monkeypatch):
    """It is gone when bubblewrap comes to it."""
    gone = ["--ro-bind", "/gone-in-tests", "/gone-in-tests"]
    staged.run("true")  # afterwards, it is known how to make a sandbox here
    more, seen = iter([gone, []]), Outside.arguments.fget
    monkeypatch.setattr(Outside, "arguments", property(lambda view: [*seen(view), *next(more)]))
    assert staged.run("echo fine").stdout == b"fine\n"
    monkeypatch.setattr(Outside, "arguments", property(lambda view: [*seen(view), *gone]))
    error = refused(lambda: staged.run("touch made"), "io")
    assert gone[1] in error.details["reason"]
