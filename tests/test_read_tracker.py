import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentfs import read_tracker as module
from agentfs.line_ranges import Hunk
from agentfs.read_tracker import ReadTracker


def test_nothing_is_seen_at_first():
    shown = ReadTracker()
    assert not shown.seen("/a", "r1")
    assert shown.last("/a") is None


@pytest.mark.parametrize(
    ("reads", "whole", "missing"),
    [
        ([(1, 10)], True, ()),
        ([(1, 9)], False, ((10, 10),)),
        ([(2, 10)], False, ((1, 1),)),
        ([(1, 4), (5, 10)], True, ()),
        ([(5, 10), (1, 4)], True, ()),
        ([(1, 3), (5, 7), (9, 10)], False, ((4, 4), (8, 8))),
        ([(1, 3), (9, 10), (2, 9)], True, ()),
        ([(4, 3)], False, ((1, 10),)),
    ],
)
def test_reads_of_one_version_are_united(reads, whole, missing):
    shown = ReadTracker()
    for first, last in reads:
        shown.record_read("/a", "r", None, first, last, 10)
    version = shown.last("/a")
    assert version is not None
    assert shown.seen("/a", "r") is whole
    assert version.missing() == missing


def test_an_empty_file_is_seen_by_any_read():
    shown = ReadTracker()
    shown.record_read("/a", "r", "", 0, 0, 0)
    assert shown.seen("/a", "r")


def test_lines_of_different_versions_do_not_add_up():
    shown = ReadTracker()
    shown.record_read("/a", "r1", None, 1, 5, 10)
    shown.record_read("/a", "r2", None, 6, 10, 10)
    assert not shown.seen("/a", "r1")
    assert not shown.seen("/a", "r2")


def test_a_written_version_stays_seen_after_a_partial_read_of_it():
    shown = ReadTracker()
    shown.record_write("/a", "r", "text")
    shown.record_read("/a", "r", "text", 1, 1, 10)
    assert shown.seen("/a", "r")


def test_an_earlier_version_stays_seen():
    shown = ReadTracker()
    shown.record_write("/a", "r1", "one")
    shown.record_write("/a", "r2", "two")
    assert shown.seen("/a", "r1")
    last = shown.last("/a")
    assert last is not None
    assert (last.revision, last.text) == ("r2", "two")


def test_the_text_survives_a_read_that_has_none_at_hand():
    shown = ReadTracker()
    shown.record_read("/a", "r", "text", 1, 1, 1)
    shown.record_read("/a", "r", None, 1, 1, 1)
    last = shown.last("/a")
    assert last is not None
    assert last.text == "text"


def test_an_edit_carries_seen_and_gives_none():
    shown = ReadTracker()
    hunk = Hunk(0, 1, 0, 1)
    shown.record_edit("/never", "r1", "r2", "x", hunks=[hunk], total=1)
    assert shown.last("/never") is None
    shown.record_write("/a", "r1", "a")
    shown.record_edit("/a", "r1", "r2", "b", hunks=[hunk], total=1)
    assert shown.seen("/a", "r2")
    shown.record_edit("/a", "other", "r3", "c", hunks=[hunk], total=1)
    assert not shown.seen("/a", "r3")


@pytest.mark.parametrize(
    ("ranges", "hunk", "total", "expected"),
    [
        ([(1, 5)], Hunk(1, 2, 1, 2), 10, ((1, 5),)),
        ([(1, 5)], Hunk(1, 2, 1, 4), 12, ((1, 7),)),
        ([(1, 5)], Hunk(6, 7, 6, 8), 11, ((1, 5),)),
        ([(6, 10)], Hunk(1, 2, 1, 4), 12, ((8, 12),)),
        ([(1, 5)], Hunk(3, 8, 3, 4), 6, ((1, 3),)),
        ([(1, 10)], Hunk(0, 10, 0, 0), 0, ()),
        ([(3, 6)], Hunk(4, 4, 4, 5), 11, ((3, 7),)),
    ],
)
def test_lines_seen_are_carried_to_where_they_stand_now(ranges, hunk, total, expected):
    shown = ReadTracker()
    for first, last in ranges:
        shown.record_read("/a", "r1", None, first, last, 11)
    shown.record_edit("/a", "r1", "r2", None, hunks=[hunk], total=total)
    version = shown.last("/a")
    assert version is not None
    assert version.revision == "r2"
    assert version.ranges == expected


def test_reading_goes_on_after_an_edit_between_two_pages():
    shown = ReadTracker()
    shown.record_read("/a", "r1", None, 1, 50, 100)
    shown.record_edit("/a", "r1", "r2", None, hunks=[Hunk(9, 10, 9, 12)], total=102)
    shown.record_read("/a", "r2", None, 53, 102, 102)
    assert shown.seen("/a", "r2")


def test_an_edit_back_to_a_version_seen_whole_keeps_it_whole():
    shown = ReadTracker()
    shown.record_write("/a", "r1", "a")
    shown.record_read("/a", "r2", None, 1, 1, 2)
    shown.record_edit("/a", "r2", "r1", "a", hunks=[Hunk(1, 2, 1, 2)], total=2)
    assert shown.seen("/a", "r1")


def test_forget_forgets():
    shown = ReadTracker()
    shown.record_write("/a", "r", "text")
    shown.forget()
    assert shown.last("/a") is None
    assert not shown.seen("/a", "r")


def test_memory_is_bounded_in_texts_files_and_versions(monkeypatch):
    one = module._size_of("x" * 1000)
    monkeypatch.setattr(module, "MAX_TEXT_BYTES", 10 * one)
    monkeypatch.setattr(module, "MAX_ONE_TEXT_BYTES", one)
    monkeypatch.setattr(module, "MAX_FILES", 20)
    monkeypatch.setattr(module, "MAX_VERSIONS", 3)
    shown = ReadTracker()
    for number in range(50):
        shown.record_write(f"/{number}", "r", chr(97 + number % 26) * 1000)
    texts = [version.text for number in range(50) if (version := shown.last(f"/{number}")) is not None]
    assert len(texts) == 20
    assert sum(text is not None for text in texts) == 10
    assert texts[-1] is not None
    shown.record_write("/49", "large", "x" * 1001)
    last = shown.last("/49")
    assert last is not None
    assert last.text is None
    assert shown.seen("/49", "large")
    for number in range(10):
        shown.record_write("/v", f"r{number}", None)
    assert [shown.seen("/v", f"r{number}") for number in range(10)] == [False] * 7 + [True] * 3


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 12)), max_size=12))
def test_seen_is_the_union_of_the_lines_shown(reads):
    shown = ReadTracker()
    lines: set[int] = set()
    for first, length in reads:
        last = min(first + length - 1, 30)
        shown.record_read("/a", "r", None, first, last, 30)
        lines.update(range(first, last + 1))
    assert shown.seen("/a", "r") is (lines == set(range(1, 31)))
    version = shown.last("/a")
    if version is not None:
        gaps = {line for first, last in version.missing() for line in range(first, last + 1)}
        assert gaps == set(range(1, 31)) - lines
