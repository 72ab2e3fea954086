"""`is_current`: whether what a result shows still stands. Never old itself."""

import os
import pickle

import pytest

from agentfs import Limits, Policy, Workspace
from agentfs.errors import InvalidArgumentError, RefusedError

MAKE = {
    "read": lambda ws: ws.read("a.txt"),
    "a page": lambda ws: ws.read("a.txt", 2, 1),
    "a directory": lambda ws: ws.read("in"),
    "read_many": lambda ws: ws.read_many(["a.txt", "in/b.txt"]),
    "ls": lambda ws: ws.ls(depth=0),
    "glob": lambda ws: ws.glob("*.txt"),
    "find": lambda ws: ws.find("in", types="f", sort="size"),
    "grep": lambda ws: ws.grep("one", context=0),
    "counts": lambda ws: ws.grep("one", output_mode="count"),
    "a total": lambda ws: ws.grep("one", output_mode="total"),
    "grep of what was found": lambda ws: ws.grep("one", files=ws.find()),
    "write": lambda ws: ws.write("new.txt", "new\n"),
    "edit": lambda ws: ws.edit("a.txt", "two", "2"),
    "splice": lambda ws: ws.splice("a.txt", [(0, 0, "zero ")]),
}
SEES = {
    "a.txt": {
        "read", "a page", "read_many", "ls", "glob", "grep", "counts", "a total", "grep of what was found",
        "edit", "splice",
    },
    "in/b.txt": {"a directory", "read_many", "ls", "glob", "find", "grep", "counts", "a total",
                 "grep of what was found"},
    "new.txt": {"write"},
}  # fmt: skip


@pytest.fixture
def ws(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "in/b.txt").write_text("one\n")
    with Workspace(tmp_path) as workspace:
        yield workspace


@pytest.mark.parametrize("make", MAKE)
def test_a_result_is_current_until_something_that_it_shows_changes(ws, make):
    result = MAKE[make](ws)
    assert ws.is_current(result)
    assert ws.is_current(result), "asking changes nothing"


@pytest.mark.parametrize(
    ("path", "make"), [(path, make) for path, made in SEES.items() for make in sorted(made)]
)
def test_what_changes_a_file_outdates_what_shows_it(ws, tmp_path, path, make):
    result = MAKE[make](ws)
    changed = tmp_path / path
    before = changed.stat()
    text = changed.read_text()
    # The same size and the old time: what looks at those alone is fooled.
    changed.write_text(text.replace("one", "eno").replace("new", "wen"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    by_content = make not in {"ls", "glob", "find", "a directory"}
    assert ws.is_current(result) is not by_content
    changed.write_text(text + "one\n")
    assert not ws.is_current(result)
    changed.unlink()
    assert not ws.is_current(result)
    changed.write_text(text)
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    if make != "ls":  # which shows the time of the directory too
        assert ws.is_current(result), "it stands there again"


@pytest.mark.parametrize("make", ["ls", "glob", "find", "a directory", "grep", "counts", "a total"])
def test_what_is_new_outdates_what_would_show_it(ws, tmp_path, make):
    result = MAKE[make](ws)
    (tmp_path / "in/c.txt").write_text("one\n")
    assert not ws.is_current(result)


def test_what_a_search_does_not_show_is_of_no_matter(ws, tmp_path):
    result = ws.grep("one", "in")
    (tmp_path / "a.txt").write_text("one one one\n")
    assert ws.is_current(result)
    page = ws.read("a.txt")
    (tmp_path / "in/b.txt").unlink()
    assert ws.is_current(page)
    assert not ws.is_current(result)


def test_a_large_file_is_told_by_what_the_system_says_of_it(tmp_path):
    (tmp_path / "large.txt").write_text("x\n" * 2000)
    with Workspace(tmp_path, limits=Limits(file_bytes=1000)) as ws:
        page = ws.read("large.txt")
        assert page.revision.startswith("~")
        assert ws.is_current(page)
        (tmp_path / "large.txt").write_text("y\n" * 2000)
        assert not ws.is_current(page)
    (tmp_path / "a.txt").write_text("x\n")
    with Workspace(tmp_path) as ws:
        page = ws.read("a.txt")
        (tmp_path / "a.txt").write_text("x\n" * 2000)
        assert not ws.view(limits=Limits(file_bytes=1000)).is_current(page)


def test_asking_counts_as_no_read(ws, tmp_path):
    page = ws.read("a.txt", 1, 1)
    assert ws.is_current(page)
    assert ws.tools().call("write", {"path": "a.txt", "content": "x"}).error["code"] == "unread"


def test_kept_answers_and_other_results(ws):
    name = ws.keep("some text\n")
    kept = ws.read(name)
    assert ws.is_current(kept)
    for number in range(70):
        ws.keep(f"{number}")
    assert not ws.is_current(kept)
    with pytest.raises(InvalidArgumentError, match="CheckpointResult"):
        ws.is_current(ws.checkpoint())


def test_a_preview_is_current_once_it_is_made(ws):
    would = ws.edit("a.txt", "two", "2", preview=True)
    assert not ws.is_current(would)
    ws.edit("a.txt", "two", "2")
    assert ws.is_current(would)


def test_what_is_not_allowed_any_more_is_not_told(ws, tmp_path):
    result = ws.grep("one")
    with Workspace(tmp_path, policy=Policy(deny=("search",))) as other, pytest.raises(RefusedError):
        other.is_current(result)


def test_what_made_a_result_is_no_part_of_its_data(ws):
    result = ws.grep("one", path="in")
    assert result.made_by == ("grep", ("one",), {"path": "in"})
    assert "made_by" not in result.to_dict()
    assert "made_by" not in ws.tools().schemas("mcp-structured")[-1]["outputSchema"]["properties"]
    assert ws.is_current(pickle.loads(pickle.dumps(result)))
    assert ws.tool_names().count("is_current") == 0
