"""Time that runs out, and callers that go away: what is found stands, and nobody else waits."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from agentfs import Workspace
from agentfs.base import call_context
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import LineSearch
from tests.kit import put

HOSTILE = "^(a|aa)+(?!.)"
LONG = "a" * 80 + "b"


TEXT = "".join(f"a{'ab' * (n % 4)} {n} b\n\n" for n in range(30)) + "last ab"


class Tired:
    """A compiled pattern whose time is over after some matches, for the first `times` times."""

    def __init__(self, compiled, after, times):
        self.compiled, self.after, self.times = compiled, after, times

    def finditer(self, text, *_, **__):
        self.times -= 1
        for number, match in enumerate(self.compiled.finditer(text)):
            if number >= self.after and self.times >= 0:
                raise TimeoutError
            yield match


def hits(pattern, seconds=20):
    return [
        (hit.start, hit.end, hit.spans) for hit in LineSearch(pattern, time.monotonic() + seconds).hits(TEXT)
    ]


@pytest.mark.parametrize("after", range(5))
@pytest.mark.parametrize("options", [{}, {"multiline": True}])
def test_a_slice_of_time_that_ends_early_loses_no_match(after, options):
    """The engine counts the processor time of all threads."""
    pattern = compile_pattern(r"(?:a|b)+\s*|\d", **options)
    assert hits(replace(pattern, expression=Tired(pattern.expression, after, times=3))) == hits(pattern)
    never = LineSearch(
        replace(pattern, expression=Tired(pattern.expression, after, 10**9)), time.monotonic() + 0.1
    )
    found = []
    with pytest.raises(TimeoutError):
        found.extend(never.hits(TEXT))
    assert sum(hit.matches for hit in found) == after, "what was found before the deadline is yielded"


def test_other_threads_do_not_use_up_the_time_of_a_search(tmp_path):
    # The engine counts the processor time of the whole process: eight threads use it eight times as fast.
    (tmp_path / "f").write_text("a" * 60 + "b\n")
    with Workspace(tmp_path) as ws, ThreadPoolExecutor(3) as pool:
        began = time.monotonic()
        for _ in range(3):
            pool.submit(ws.grep, HOSTILE, timeout=0.2)
        result = ws.grep(HOSTILE, timeout=0.2)
        took = time.monotonic() - began
    assert result.skipped.reached == "timeout"
    assert took >= 0.2


@pytest.mark.parametrize("mode", ["content", "count", "summary", "total", "files_with_matches"])
@pytest.mark.parametrize("limit", [1, 100])
def test_matches_found_before_the_deadline_are_counted(tmp_path, ws, mode, limit):
    put(tmp_path, {"a": "aaa\n", "b": f"aa\nno\na\n{LONG}\naaa\n", "c": "aaa\n"})
    ws.grep("warm")  # what is imported late does not count
    result = ws.grep(HOSTILE, output_mode=mode, limit=limit if mode != "total" else None, timeout=0.2)
    if mode == "files_with_matches" and limit == 1:
        assert (result.skipped.reached, list(result.counts)) in ((None, ["a"]), ("timeout", ["a"]))
        return
    assert (result.total_lines, result.total_files, result.exact) == (3, 2, False)
    assert result.skipped.reached == "timeout"
    assert "it was searching b" in result.text
    if mode in ("count", "summary") and limit > 1:
        assert {path: each.lines for path, each in result.counts.items()} == {"a": 1, "b": 2}
    if mode == "content" and limit > 1:
        assert [(m.path, m.line) for m in result.matches] == [("a", 1), ("b", 1), ("b", 3)]


@pytest.mark.full
def test_matches_in_the_line_of_the_timeout_are_kept(tmp_path):
    (tmp_path / "f").write_text("key " * 500 + "a" * 80 + "b\n")
    with Workspace(tmp_path) as ws:
        ws.grep("warm")
        result = ws.grep("key|(?:a|aa)+(?!.)", timeout=0.5)
        spanning = ws.grep("key|(?:a|aa)+(?!.)", timeout=0.5, multiline=True)
    for each in (result, spanning):
        assert (each.total_lines, each.exact, each.skipped.reached) == (1, False, "timeout")


@pytest.mark.parametrize("output_mode", ["content", "total"])
def test_a_search_ends_in_time_inside_one_long_file(tmp_path, output_mode):
    (tmp_path / "f").write_text(("a" * 200 + "b\n") * 20_000)
    doubling = "(?:a|a)" * 14 + "[cd]"  # a choice without a repeat
    with Workspace(tmp_path) as ws:
        for pattern in (r"(?:a+)+\d", r"(\w+)*:", r"a.*a.*a.*a.*c\w", "[ab]+?[ab]+?[ab]+?x?c", doubling):
            result = ws.grep(pattern, timeout=0.1, output_mode=output_mode)
            assert result.elapsed_ms < 8_000, pattern
            assert result.exact == (result.skipped.reached is None)


@pytest.mark.parametrize("length", [500, 100_000, 5_000_000])
@pytest.mark.parametrize("pattern", [r"a?[^c]*(?:a|b)a[ab]\d", r"^\w*[ab]*?\d\d", r"\w*\d"])
def test_a_search_of_flat_patterns_ends_in_time(tmp_path, length, pattern):
    """The engine takes the square of the length of a line for each; in short lines it has no timeout.

    In a line of 5 MB it looked at its clock every 3 seconds.
    """
    (tmp_path / "f").write_text(("a" * length + "\n") * (5_000_000 // length))
    with Workspace(tmp_path) as ws:
        began = time.process_time()
        results = [ws.grep(pattern, timeout=0.1, multiline=multiline) for multiline in (False, True)]
        assert time.process_time() - began < 1.5
        assert {result.skipped.reached for result in results} == {"timeout"}
        assert ws.grep(r"a+\n?", timeout=9, multiline=True).exact


@pytest.mark.parametrize("output_mode", ["content", "total"])
def test_a_long_literal_in_either_case_takes_no_longer_than_its_time(tmp_path, output_mode):
    # The literal search of `regex` takes the product of both lengths for these: 8 s for each.
    (tmp_path / "a").write_bytes(b"a" * (10 * 2**20))
    (tmp_path / "b").write_bytes(b"ba" * (5 * 2**20 - 500) + b"B" + b"A" * 900)
    with Workspace(tmp_path) as ws:
        for pattern in ("b" + "a" * 900, "bb" + "ab" * 440):
            began = time.process_time()
            result = ws.grep(pattern, ignore_case=True, output_mode=output_mode, timeout=2)
            assert time.process_time() - began < 3
            assert result.total_files == (pattern[1] == "a")


def test_a_cancelled_search_ends_soon():
    call = call_context.Execution("grep")
    compiled = compile_pattern(HOSTILE)
    search = LineSearch(compiled, time.monotonic() + 60)

    def run():
        call_context.current.set(call)
        with pytest.raises(call_context.Cancelled):
            list(search.hits(LONG))

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    call.abandon()
    thread.join(30)
    assert not thread.is_alive()


def test_many_cancelled_searches_do_not_delay_other_calls(tmp_path):
    (tmp_path / "hostile").write_text(f"{LONG}\n" * 3)

    async def run():
        with Workspace(tmp_path) as ws:
            tools = ws.tools()
            calls = [asyncio.create_task(tools.acall("grep", {"pattern": HOSTILE})) for _ in range(16)]
            await asyncio.sleep(0.1)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert all(call.cancelled() for call in calls)
            began = time.monotonic()
            result = await tools.acall("read", {"path": "hostile"})
            assert result.success
            return time.monotonic() - began

    assert asyncio.run(run()) < 5  # ten seconds each, four at a time, if they went on
