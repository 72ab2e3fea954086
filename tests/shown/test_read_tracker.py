import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.shown import read_tracker as module
from agentfs.shown.read_tracker import ReadTracker
from agentfs.text.diff import ReplacedLines

HUNK = ReplacedLines(0, 1, 0, 1)


@pytest.mark.parametrize(("records", "whole", "partly"), [
    ([], "", "r1"),
    ([("read", "r1", "", 0, 0, 0)], "r1", ""),  # an empty file
    ([("read", "r1", None, 1, 5, 10), ("read", "r2", None, 6, 10, 10)], "", "r1 r2"),
    ([("write", "r1", "text"), ("read", "r1", "text", 1, 1, 10)], "r1", ""),
    ([("write", "r1", "one"), ("write", "r2", "text")], "r1 r2", ""),
    ([("read", "r1", "text", 1, 1, 1), ("read", "r1", None, 1, 1, 1)], "r1", ""),
    ([("edit", "r1", "r2", "x", [HUNK])], "", "r1 r2"),  # of a file that was never read
    ([("write", "r1", "a"), ("edit", "r1", "r2", "text", [HUNK])], "r2", ""),
    ([("write", "r1", "a"), ("edit", "other", "r3", "b", [HUNK])], "", "r3"),
    ([("read", "r1", None, 1, 50, 100), ("edit", "r1", "r2", "x\n" * 102, [ReplacedLines(9, 10, 9, 12)]),
      ("read", "r2", None, 53, 102, 102)], "r2", ""),
    ([("write", "r1", "a"), ("read", "r2", None, 1, 1, 2),
      ("edit", "r2", "r1", "text", [ReplacedLines(1, 2, 1, 2)])], "r1", ""),
])  # fmt: skip
def test_versions_of_a_file_are_known_each_for_itself(records, whole, partly):
    tracker = ReadTracker()
    for kind, *given_ in records:
        getattr(tracker, f"record_{kind}")("/a", *given_)
    assert [each for each in whole.split() if not tracker.fully_read("/a", each)] == []
    assert [each for each in partly.split() if tracker.fully_read("/a", each)] == []
    last = tracker.last("/a")
    assert (last is None) is (not records or records[0][0] == "edit")
    assert last is None or last.text == "text" or "text" not in str(records), "the newest text"
    tracker.forget()
    assert tracker.last("/a") is None
    assert not any(tracker.fully_read("/a", each) for each in ("r1", "r2", "r3"))


@pytest.mark.parametrize(("ranges", "hunk", "total", "expected"), [
    ([(1, 5)], ReplacedLines(1, 2, 1, 2), 10, ((1, 5),)),
    ([(1, 5)], ReplacedLines(1, 2, 1, 4), 12, ((1, 7),)),
    ([(1, 5)], ReplacedLines(6, 7, 6, 8), 11, ((1, 5),)),
    ([(6, 10)], ReplacedLines(1, 2, 1, 4), 12, ((8, 12),)),
    ([(1, 5)], ReplacedLines(3, 8, 3, 4), 6, ((1, 3),)),
    ([(1, 10)], ReplacedLines(0, 10, 0, 0), 0, ()),
    ([(3, 6)], ReplacedLines(4, 4, 4, 5), 11, ((3, 7),)),
    ([(3, 6)], ReplacedLines(2, 3, 2, 4), 12, ((3, 7),)),
])  # fmt: skip
def test_read_lines_move_with_their_text(ranges, hunk, total, expected):
    tracker = ReadTracker()
    for first, last in ranges:
        tracker.record_read("/a", "r1", None, first, last, 11)
    tracker.record_edit("/a", "r1", "r2", "x\n" * total, [hunk])
    version = tracker.last("/a")
    assert version is not None
    assert version.revision == "r2"
    assert version.ranges == expected


def test_memory_is_bounded_in_texts_files_and_versions(monkeypatch):
    one = module._size_of("x" * 1000)
    monkeypatch.setattr(module, "MAX_TEXT_BYTES", 10 * one)
    monkeypatch.setattr(module, "MAX_ONE_TEXT_BYTES", one)
    monkeypatch.setattr(module, "MAX_KNOWN_FILES", 20)
    monkeypatch.setattr(module, "MAX_VERSIONS", 3)
    tracker = ReadTracker()
    for number in range(50):
        tracker.record_write(f"/{number}", "r", chr(97 + number % 26) * 1000)
    texts = [version.text for number in range(50) if (version := tracker.last(f"/{number}")) is not None]
    assert len(texts) == 20
    assert sum(text is not None for text in texts) == 10
    assert texts[-1] is not None
    tracker.record_write("/49", "large", "x" * 1001)
    last = tracker.last("/49")
    assert last is not None
    assert last.text is None
    assert tracker.fully_read("/49", "large")
    for number in range(10):
        tracker.record_write("/v", f"r{number}", None)
    assert [tracker.fully_read("/v", f"r{number}") for number in range(10)] == [False] * 7 + [True] * 3


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 12)), max_size=12))
def test_fully_read_is_the_union_of_the_lines_read(reads):
    tracker = ReadTracker()
    lines: set[int] = set()
    for first, length in reads:
        last = min(first + length - 1, 30)
        tracker.record_read("/a", "r", None, first, last, 30)
        lines.update(range(first, last + 1))
    assert tracker.fully_read("/a", "r") is (lines == set(range(1, 31)))
    version = tracker.last("/a")
    if version is not None:
        edges = [line for line in range(1, 31) if line not in lines and line - 1 in {0, *lines}]
        ends = [line for line in range(1, 31) if line not in lines and line + 1 in {31, *lines}]
        assert version.missing() == tuple(zip(edges, ends, strict=True))
