"""Every loop over data that a tree or a model controls takes few steps, or looks at the clock.

Each row of `LOOPS` keeps one loop busy as long as possible, through the public surface.
"""
# ruff: noqa: E501 - a row of a table is one line

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentfs import AgentFSError, Edit, Limits, LineChange, Toolset, Workspace
from tests import kit

TIMEOUT = 0.2
MOST = 2.5  # total seconds of processor time; the goal is 0.8


def patient(ws: Workspace) -> Workspace:
    """Return the workspace without limits, to prepare the hostile call."""
    most = 2**40
    return ws.view(limits=Limits(timeout=30, read_lines=most, read_bytes=most, output_tokens=most))


def words(count: int, seed: int = 1) -> list[str]:
    return [f"value{(number * 7919 + seed) % 999_983:x}end" for number in range(count)]


def alternating(parts: int, mark: str) -> str:
    """Return groups of equal lines and unique lines in turn, between lines that occur once."""
    return "".join(
        f"unique {part}\n" + "".join(f"a\n{mark}{part * 90 + line}\n" for line in range(90))
        for part in range(parts)
    )


def on(text: str | None, call: Callable[[Workspace], Any], *, seen: str | None = None, ids: bool = False):
    """Prepare a call on a file with a text; if `seen` is given, that text is read before."""

    def prepare(ws: Workspace, top: Path) -> Callable[[], Any]:
        if seen is not None:
            (top / "f.txt").write_text(seen)
            patient(ws).read("f.txt", line_ids=ids)
        if text is not None:
            (top / "f.txt").write_text(text, encoding="utf-8")
        return lambda: call(ws)

    return prepare


def edit(text: str, old: str, new: str = "x = 1", *, replace_all: bool = False):
    return on(text, lambda ws: ws.edit("f.txt", old, new, replace_all))


def edit_lines(changes: Callable[[list[str]], list[LineChange]], after: str | None = None):
    """Prepare changes of lines by the ids of 40,000 lines; `after` is the content at that time."""

    def prepare(ws: Workspace, top: Path) -> Callable[[], Any]:
        (top / "f.txt").write_text("".join(f"l{number}\n" for number in range(40_000)))
        made = changes(list(patient(ws).read("f.txt", line_ids=True).line_ids))
        return on(after, lambda ws: ws.edit_lines("f.txt", made))(ws, top)

    return prepare


def undo_after(mine: str, others: str):
    def prepare(ws: Workspace, top: Path) -> Callable[[], Any]:
        (top / "f.txt").write_text(alternating(250, "b"))
        patient(ws).write("f.txt", mine, overwrite=True)
        return on(others, lambda ws: ws.undo())(ws, top)

    return prepare


def tool(dialect: str, name: str, text: str, **arguments: Any):
    def call(ws: Workspace) -> None:
        result = ws.tools(dialect=dialect).call(name, arguments)
        assert result.error is None or result.error["code"] != "internal", result.content[:300]

    return on(text, call)


def patch(text: str, *lines: str):
    given = "\n".join(["*** Begin Patch", "*** Update File: f.txt", *lines, "*** End Patch"])
    return tool("apply-patch", "apply_patch", text, input=given)


def names(count: int, name: Callable[[int], str], call: Callable[[Workspace], Any]):
    def prepare(ws: Workspace, top: Path) -> Callable[[], Any]:
        for number in range(count):
            (top / name(number)).touch()
        return lambda: call(ws)

    return prepare


PROSE = " ".join(words(60_000))
INDENTED = "x\n" * 350_000
LOOPS = {
    "names like a missing one": lambda: names(2000, lambda n: f"{n:04d}{'ab' * 93}", lambda ws: ws.read("ab" * 95)),
    "types like an unknown one": lambda: names(1, str, lambda ws: ws.grep("a", type="py" * 500_000)),
    "ids like an unknown one": lambda: edit_lines(lambda _: [LineChange(line_id="ab" * 500_000, new_content="x")] * 5),
    "places at another indentation": lambda: edit(INDENTED + "        if deep:\n            work()\n" * 2000, "if deep:\n    work()\n", "if deep:\n    w()\n"),
    "long blocks at another indentation": lambda: edit("    aaaa\n    b\n" * 1990, "aaaa\nb\n" * 1000, "aaaa\nc\n" * 1000),
    "overlapping occurrences": lambda: edit("a" * 9_000_000, "a" * 4_500_000),
    "occurrences, all of which are replaced": lambda: edit("ab" * 4_000_000, "a", "bc", replace_all=True),
    "what makes a place the only one": lambda: edit("a" * 4_000_900, "a" * 4_000_000),
    "words of a long line": lambda: edit(PROSE[:240_000], " ".join(words(400, 5))),
    "words of a longer line": lambda: edit(PROSE[:400_000], " ".join(words(1200, 5))),
    "words of many lines": lambda: edit(PROSE.replace(" ", "\n"), " ".join(words(1200, 5))),
    "tokens of one line": lambda: edit("ab c! " * 330, "ab d! " * 330),
    "lines that vote": lambda: edit("".join(f"ab{n}\n" * 50 for n in range(2600)), "".join(f"ab{n}\n" * 49 for n in range(1200))),
    "equal starts, each with a costly diff": lambda: edit(
        ("common line\n" + "".join(f"a\nb{n}\n" for n in range(100))) * 45,
        "common line\n" + "\n".join(f"a\nc{n}" for n in range(20_000)),
    ),
    "marks of cut lines": lambda: edit("a" * 1_000_000, "a" + "⟦+1 characters⟧" * 20_000),
    "digits of a line number": lambda: edit("abc\n" * 10, ("9" * 5000 + "|abc\n") * 2),
    "escapes": lambda: edit("\\n" * 400_000, "a\\nb" * 20_000),
    "white space": lambda: edit(" a" * 2_000_000, "a  a" * 50_000),
    "blank lines": lambda: edit("\n" * 150_000 + "foo bar baz\n" + "\n" * 45_000, "\n" * 75_000 + "foo  bar baz" + "\n" * 75_000),
    "long lines that are paired": lambda: edit(
        "\n".join(["head line"] + [f"{n} " + " ".join(words(3000, n)) for n in range(20)]),
        "\n".join(["head line"] + [f"k{n} " + " ".join(words(3000, n)) for n in range(10)]),
    ),
    "edits that fail": lambda: on("line\n" * 10, lambda ws: ws.multi_edit("f.txt", [Edit(f"none{n}", "x") for n in range(30_000)])),
    "edits that could never be": lambda: on("line\n" * 10, lambda ws: ws.multi_edit("f.txt", [Edit("", f"x{n}") for n in range(50_000)])),
    "spans at one offset": lambda: on("a\n", lambda ws: kit.splice(ws, "f.txt", [(0, 0, "x" * 50)] * 40_000)),
    "unknown ids": lambda: edit_lines(lambda _: [LineChange(line_id=f"{n:08x}", new_content="x") for n in range(20_000)]),
    "ids of lines that are gone": lambda: edit_lines(
        lambda ids: [LineChange(line_id=each, new_content="x") for each in ids[1:20_000:2]],
        "".join(f"l{n}\nx{n}\n" for n in range(0, 40_000, 2)),
    ),
    "ranges that overlap": lambda: edit_lines(lambda ids: [LineChange(start_line_id=ids[n], end_line_id=ids[-1 - n], new_content="x") for n in range(3000)]),
    "ranges that are apart": lambda: edit_lines(
        lambda ids: [
            LineChange(start_line_id=ids[n], end_line_id=ids[n + 1], new_content="x")
            for n in range(0, 20_000, 2)
        ]
    ),
    "parts of a diff": lambda: on(alternating(250, "b"), lambda ws: ws.write("f.txt", alternating(250, "c"), overwrite=True)),
    "parts of a diff that was not seen": lambda: on(alternating(250, "c"), lambda ws: ws.edit("f.txt", "unique 7\n", "z\n"), seen=alternating(250, "b")),
    "parts of a file with ids": lambda: on(alternating(250, "c"), lambda ws: ws.read("f.txt", line_ids=True), seen=alternating(250, "b"), ids=True),
    "parts of a merge": lambda: undo_after(alternating(250, "c"), alternating(250, "b") + "z\n"),
    "hunks of a patch": lambda: patch("line\n" * 100_000, *["@@ line\n-line\n+x"] * 20_000),
    "a hunk that is not there": lambda: patch(PROSE[:240_000], f"@@\n-{' '.join(words(400, 5))}\n+x"),
    "a missed edit of a dialect": lambda: tool(
        "text-editor",
        "str_replace_based_edit_tool",
        PROSE[:240_000],
        command="str_replace",
        path="f.txt",
        old_str=" ".join(words(400, 5)),
        new_str="x",
    ),
    "anchors of a patch": lambda: patch("".join(f"  line {n}\n" for n in range(100_000)), *(f"@@ line {n}" for n in range(500)), "-line\n+x"),
    "unknown parameters": lambda: on(None, lambda ws: ws.tools().call("grep", dict.fromkeys(map(str, range(300_000)), 1))),
    "searched paths": lambda: on(None, lambda ws: ws.ls([f"no{n}" for n in range(100_000)])),
    "the same path again and again": lambda: on(None, lambda ws: ws.glob("*", ["."] * 100_000)),
    "a type that is none": lambda: on(None, lambda ws: ws.grep("x", type="x" * 10_000_000)),
    "names of tools": lambda: on(None, lambda ws: ws.tools().call("reed" * 400_000, "{}")),
}  # fmt: skip


# Those that use up the time, or need much to prepare.
SLOW = {
    *("escapes", "ids of lines that are gone", "overlapping occurrences", "parts of a diff"),
    *("parts of a diff that was not seen", "parts of a file with ids", "parts of a merge"),
    *("a type that is none", "lines that vote", "names like a missing one"),
    *("ranges that are apart", "spans at one offset", "unknown ids"),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.full] * (name in SLOW)) for name in LOOPS]
)
def test_each_loop_ends_at_the_deadline(tmp_path, name):
    with Workspace(tmp_path, limits=Limits(timeout=TIMEOUT)) as ws:
        call = LOOPS[name]()(ws, tmp_path)
        begun = time.process_time()
        with suppress(AgentFSError):
            call()
        took = time.process_time() - begun
    assert took < MOST, f"{took:.1f} s"


async def test_a_cancelled_call_stops_looking_for_the_cause_of_a_missed_edit(tmp_path):
    (tmp_path / "f.txt").write_text(PROSE)
    with Workspace(tmp_path, limits=Limits(timeout=60)) as ws:
        tools = Toolset([ws.edit, ws.read], concurrency=1)
        arguments = {"path": "f.txt", "old_string": " ".join(words(1200, 5)), "new_string": "x"}
        call = asyncio.create_task(tools.acall("edit", arguments))
        await asyncio.sleep(0.1)
        begun = time.process_time()
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        assert (await tools.acall("read", {"path": "f.txt"})).success  # once the thread is free
    assert time.process_time() - begun < MOST
