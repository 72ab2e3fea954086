"""Another process swaps a directory for a link out of the root, as fast as it can, during all calls."""

import ctypes
import errno
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from agentfs import AgentFSError, Limits, Policy, Workspace
from agentfs.watch import inotify
from tests import kit
from tests.tree_difference import snapshot

SECRET = "the secret outside"
ATTACK = """
import ctypes, sys, time
exchange = ctypes.CDLL(None).renameat2
pause, *paths = sys.argv[1:]
pairs = [(one.encode(), two.encode()) for one, two in zip(paths[::2], paths[1::2])]
print("begun", flush=True)
while True:
    for one, two in pairs:
        exchange(-100, one, -100, two, 2)
    if float(pause): time.sleep(float(pause))
"""
# The number of calls of each kind among 20.
MIX = ["read"] * 12 + ["write"] * 3 + ["mkdir", "ls", "glob", "grep", "entry"]
WATCHED_MIX = ["grep", "glob", "grep", "find", "grep all", "ls", "grep", "glob all", "write", "mkdir"]
# The path was the link, the link came and went during the call, grep opened a directory in its place, or a
# write found a file that it had not made.
ALLOWED = {"inside", "outside_workspace", "link_loop", "not_found", "not_a_directory", "not_a_file", "unread"}
ALLOWED |= {"busy"}

ATTACKS: dict[Path, ExitStack] = {}  # by the root under attack
needs_exchange = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "renameat2"),
    reason="the attacker needs renameat2",
)
pytestmark = needs_exchange


@contextmanager
def attacking(*pairs: tuple[Path, Path], pause: float = 0) -> Iterator[None]:
    """Exchange the two paths of each pair repeatedly, in another process."""
    command = [sys.executable, "-c", ATTACK, str(pause), *(str(path) for pair in pairs for path in pair)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as attacker:
        try:
            attacker.stdout.readline()
            yield
        finally:
            attacker.kill()


@pytest.fixture
def arena(tmp_path, request):
    """A root with a directory under attack, beside an outside directory with the same names.

    Its parameter is the number of seconds between two swaps, 0 by default.
    """
    top = tmp_path / "root"
    for way in (top / "a" / "b", tmp_path / "out"):
        (way / "sub").mkdir(parents=True)
        text = SECRET if way.name == "out" else "inside"
        (way / "t").write_text(text)
        (way / "sub" / "t").write_text(text)
        (way / "large").write_text(f"{text}\n" * 20)
    (tmp_path / "out" / "outside-name").write_text(SECRET)
    (top / "a" / "decoy").symlink_to(tmp_path / "out")
    with ExitStack() as ATTACKS[top]:
        pause = getattr(request, "param", 0)
        ATTACKS[top].enter_context(attacking((top / "a" / "b", top / "a" / "decoy"), pause=pause))
        yield top


def calls(ws: Workspace):
    number = count()
    return {
        "read": lambda: ws.read("a/b/t").text,
        "write": lambda: ws.write("a/b/made", f"made {next(number)}").text,
        "mkdir": lambda: ws.write(f"a/b/new{next(number) % 50}/deep/x", "x").text,
        "ls": lambda: ws.ls("a/b", depth=2).text,
        "glob": lambda: ws.glob("**", "a/b").text,
        "grep": lambda: ws.grep("secret|inside", "a/b").text,
        "grep all": lambda: ws.grep("secret|inside").text,
        "glob all": lambda: ws.glob("**").text,
        "find": lambda: kit.find(ws, "a/b").text,
        "entry": lambda: str(ws._root.entry("a/b/t")),
        "edit": lambda: ws.edit("a/b/t", "inside", "inside", preview=True).text,
        "make": lambda: ws.write("a/b/outside-name", "made").text,
        "append": lambda: ws.append("a/b/made", "appended\n").text,
        "delete all": lambda: ws.delete("a/b", recursive=True).text,
        "stat": lambda: str(ws.stat("a/b/t")),
        "delete": lambda: ws.delete("a/b/outside-name").text,
        "move": lambda: ws.move("a/b/t", "a/b/t2").text,
        "move back": lambda: ws.move("a/b/t2", "a/b/t").text,
        "move out": lambda: ws.move("moving", "a/b/moved").text,
        "move in": lambda: ws.move("a/b/moved", "moving").text,
        "transaction": lambda: transaction(ws),
        "undo": lambda: ws.undo().text,
    }


def transaction(ws: Workspace) -> str:
    with ws.transaction() as tx:
        tx.write("a/b/one", "1")
        tx.write("a/b/sub/two", "2")
    return "done"


DENIED = ("outside_workspace", "link_loop", "refused")  # outcomes of a call that met the link
MOST_TIMES = 50  # a busy machine may run the attacker or the calls for a while without the other


def hammer(top, operations, least, mix=MIX, *, names=True, watch=False) -> Counter[str]:
    """Make calls and count their outcomes. With `names`, a name from outside in an answer is an escape.

    The calls go on until more than `least` have succeeded and have met the link, so that the test shows the
    same however busy the machine is. A watched workspace searches the larger files in windows.
    """
    limits = Limits(file_bytes=64) if watch else None
    policy = Policy(overwrite="always")
    outside = snapshot(top.parent / "out")
    outcomes: Counter[str] = Counter()
    with Workspace(top, policy=policy, limits=limits, watch=watch) as ws:
        kinds = calls(ws)
        for number in range(operations * MOST_TIMES):
            met = sum(outcomes[each] for each in DENIED)
            if number >= operations and outcomes["inside"] > least[0] and met > least[1]:
                break
            try:
                shown = kinds[mix[number % len(mix)]]()
            except AgentFSError as error:
                shown, outcome = str(error) + str(error.details), error.code
            else:
                outcome = "inside"
            # The size and name of an outside file must not show either.
            named = "outside-name" in shown and names
            escaped = SECRET in shown or named or f"size={len(SECRET)}," in shown
            outcomes["ESCAPE" if escaped else outcome] += 1
        else:
            pytest.fail(f"the attack, or the calls, met nothing: {outcomes}")
    assert snapshot(top.parent / "out") == outside
    print(dict(outcomes))  # noqa: T201 - the figures, with -s
    return outcomes


def no_events() -> inotify.Inotify:
    raise OSError(errno.ENOSYS, "no inotify")


@pytest.mark.parametrize("operations", [
    200, pytest.param(2000, marks=pytest.mark.full), pytest.param(1_000_000, marks=pytest.mark.long),
])  # fmt: skip
def test_calls_during_swaps_lead_nowhere_outside(arena, monkeypatch, operations):
    outcomes = hammer(arena, operations, (operations / 20, operations / 20))
    assert set(outcomes) <= ALLOWED, outcomes


@pytest.mark.full
@pytest.mark.parametrize("events", [True, False], ids=["events", "cold"])
# Without a pause thousands of events wait for each call.
@pytest.mark.parametrize(("arena", "operations"), [
    (0, 100), pytest.param(0.0001, 1_000_000, marks=pytest.mark.long),
], indirect=["arena"])  # fmt: skip
def test_searches_of_a_watched_tree_lead_nowhere_outside(arena, monkeypatch, events, operations):
    if not events:
        monkeypatch.setattr(inotify, "Inotify", no_events)
    outcomes = hammer(arena, operations, (operations / 10, operations / 20), WATCHED_MIX, watch=True)
    assert set(outcomes) <= ALLOWED, outcomes


@pytest.mark.parametrize(
    "operations", [100, pytest.param(500, marks=pytest.mark.full), pytest.param(9000, marks=pytest.mark.long)]
)
def test_deletes_moves_and_transactions_during_swaps_change_nothing_outside(arena, monkeypatch, operations):
    (arena / "moving").write_text("inside")
    mix = ["make", "delete", "move", "move back", "move out", "move in", "edit", "transaction", "undo"]
    mix += ["make", "append", "stat", "delete all", "undo"]
    outcomes = hammer(arena, operations, (20, min(100, operations // 5)), mix, names=False)
    others = {"already_exists", "refused", "stale", "conflict", "no_change", "invalid_argument", "no_match"}
    assert set(outcomes) <= ALLOWED | others, outcomes
    ATTACKS[arena].close()
    assert not [path for path in arena.rglob("*") if ".agentfs-" in path.name]
    assert not [path for path in arena.rglob("*") if path.is_file() and SECRET in path.read_text()]


def test_the_same_attack_beats_checking_before_opening(arena):
    # Some hundred tries are enough if two processes run in parallel.
    for _ in range(1_000_000):
        path = arena / "a" / "b" / "t"
        try:
            if path.resolve().is_relative_to(arena) and SECRET in path.read_text():
                return
        except OSError:
            continue
    pytest.fail("the attack was none")
