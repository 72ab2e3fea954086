import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs.shown import read_tracker as module
from agentfs.shown.read_tracker import ReadTracker
from agentfs.text.diff import ReplacedLines


def test_nothing_is_read_at_first():
    tracker = ReadTracker()
    assert not tracker.fully_read("/a", "r1")
    assert tracker.last("/a") is None


@pytest.mark.parametrize(("reads", "whole", "missing"), [
    ([(1, 10)], True, ()),
    ([(1, 9)], False, ((10, 10),)),
    ([(2, 10)], False, ((1, 1),)),
    ([(1, 4), (5, 10)], True, ()),
    ([(5, 10), (1, 4)], True, ()),
    ([(1, 3), (5, 7), (9, 10)], False, ((4, 4), (8, 8))),
    ([(1, 3), (9, 10), (2, 9)], True, ()),
    ([(4, 3)], False, ((1, 10),)),
])  # fmt: skip
def test_reads_of_one_version_are_united(reads, whole, missing):
    tracker = ReadTracker()
    for first, last in reads:
        tracker.record_read("/a", "r", None, first, last, 10)
    version = tracker.last("/a")
    assert version is not None
    assert tracker.fully_read("/a", "r") is whole
    assert version.missing() == missing


def test_an_empty_file_is_fully_read_by_any_read():
    tracker = ReadTracker()
    tracker.record_read("/a", "r", "", 0, 0, 0)
    assert tracker.fully_read("/a", "r")


def test_lines_of_different_versions_do_not_add_up():
    tracker = ReadTracker()
    tracker.record_read("/a", "r1", None, 1, 5, 10)
    tracker.record_read("/a", "r2", None, 6, 10, 10)
    assert not tracker.fully_read("/a", "r1")
    assert not tracker.fully_read("/a", "r2")


def test_a_written_version_stays_fully_read_after_a_partial_read_of_it():
    tracker = ReadTracker()
    tracker.record_write("/a", "r", "text")
    tracker.record_read("/a", "r", "text", 1, 1, 10)
    assert tracker.fully_read("/a", "r")


def test_an_earlier_version_stays_fully_read():
    tracker = ReadTracker()
    tracker.record_write("/a", "r1", "one")
    tracker.record_write("/a", "r2", "two")
    assert tracker.fully_read("/a", "r1")
    last = tracker.last("/a")
    assert last is not None
    assert (last.revision, last.text) == ("r2", "two")


def test_a_read_without_text_keeps_the_known_text():
    tracker = ReadTracker()
    tracker.record_read("/a", "r", "text", 1, 1, 1)
    tracker.record_read("/a", "r", None, 1, 1, 1)
    last = tracker.last("/a")
    assert last is not None
    assert last.text == "text"


def test_an_edit_keeps_read_lines_and_adds_none():
    tracker = ReadTracker()
    hunk = ReplacedLines(0, 1, 0, 1)
    tracker.record_edit("/never", "r1", "r2", "x", [hunk])
    assert tracker.last("/never") is None
    tracker.record_write("/a", "r1", "a")
    tracker.record_edit("/a", "r1", "r2", "b", [hunk])
    assert tracker.fully_read("/a", "r2")
    tracker.record_edit("/a", "other", "r3", "c", [hunk])
    assert not tracker.fully_read("/a", "r3")


@pytest.mark.parametrize(("ranges", "hunk", "total", "expected"), [
    ([(1, 5)], ReplacedLines(1, 2, 1, 2), 10, ((1, 5),)),
    ([(1, 5)], ReplacedLines(1, 2, 1, 4), 12, ((1, 7),)),
    ([(1, 5)], ReplacedLines(6, 7, 6, 8), 11, ((1, 5),)),
    ([(6, 10)], ReplacedLines(1, 2, 1, 4), 12, ((8, 12),)),
    ([(1, 5)], ReplacedLines(3, 8, 3, 4), 6, ((1, 3),)),
    ([(1, 10)], ReplacedLines(0, 10, 0, 0), 0, ()),
    ([(3, 6)], ReplacedLines(4, 4, 4, 5), 11, ((3, 7),)),
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


def test_reading_goes_on_after_an_edit_between_two_pages():
    tracker = ReadTracker()
    tracker.record_read("/a", "r1", None, 1, 50, 100)
    tracker.record_edit("/a", "r1", "r2", "x\n" * 102, [ReplacedLines(9, 10, 9, 12)])
    tracker.record_read("/a", "r2", None, 53, 102, 102)
    assert tracker.fully_read("/a", "r2")


def test_an_edit_back_to_a_version_fully_read_keeps_it_whole():
    tracker = ReadTracker()
    tracker.record_write("/a", "r1", "a")
    tracker.record_read("/a", "r2", None, 1, 1, 2)
    tracker.record_edit("/a", "r2", "r1", "a\nb", [ReplacedLines(1, 2, 1, 2)])
    assert tracker.fully_read("/a", "r1")


def test_forget_forgets():
    tracker = ReadTracker()
    tracker.record_write("/a", "r", "text")
    tracker.forget()
    assert tracker.last("/a") is None
    assert not tracker.fully_read("/a", "r")


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
        gaps = {line for first, last in version.missing() for line in range(first, last + 1)}
        assert gaps == set(range(1, 31)) - lines
