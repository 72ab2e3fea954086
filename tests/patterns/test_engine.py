"""Without the `regex` module, `re` finds the same matches, ends in time and names its limits."""

import errno
import os
import subprocess
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentfs import Workspace
from agentfs.errors import FileIOError, InvalidPatternError
from agentfs.patterns import engine
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import LineSearch

SLOW = r"(a|aa)+(?!.)"
SLOW_TEXT = "a" * 60 + "b"


@pytest.fixture
def by_re(monkeypatch):
    monkeypatch.setattr(engine, "engine_name", lambda: "re")
    yield
    end_children()


def end_children():
    while engine._idle:
        engine._idle.pop().end()


def spans(pattern, text, **options):
    found = LineSearch(compile_pattern(pattern, **options), time.monotonic() + 20)
    return [(hit.start, hit.end, hit.spans) for hit in found.hits(text)]


PATTERNS = [
    "ab",
    "a+b?",
    r"\bdef (\w+)\(",
    r"(?<name>a)(?P=name)",
    r"(a|b)*c",
    r"((a+)+)$",
    r"^\s*#",
    r"[^ab\n]",
    r"[[({]",
    r"(?i)AB|ba",
    r"(?<=a)b(?!c)",
    r"a{2,3}",
    r"x{b}",
    r"\x41|\t",
    r"(?>a+)b",
    r"a++b",
]


def test_the_matches_are_those_of_regex():
    @settings(max_examples=25)
    @given(st.booleans(), st.booleans(), st.text(alphabet="abcAB(# \n\t{}[é", max_size=60))
    def law(multiline, ignore_case, text):
        options = {"multiline": multiline, "ignore_case": ignore_case}
        for pattern in PATTERNS:
            expected = spans(pattern, text, **options)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(engine, "engine_name", lambda: "re")
                assert spans(pattern, text, **options) == expected, pattern

    law()
    end_children()


def test_an_endless_search_ends_at_its_deadline_and_lets_other_threads_run(by_re):
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.01):
            ticks.append(1)

    other = threading.Thread(target=tick)
    other.start()
    search = LineSearch(compile_pattern(SLOW), time.monotonic() + 1.0)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        list(search.hits(SLOW_TEXT))
    stop.set()
    other.join()
    assert time.monotonic() - started < 3
    assert len(ticks) > 20
    assert spans("(x|xx)+$", "xxx") == [(0, 3, [(0, 3)])]  # the next search has a new child


def test_a_search_that_ends_early_leaves_no_child_process(by_re):
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        with pytest.raises(TimeoutError):
            list(compile_pattern(SLOW).expression.finditer(SLOW_TEXT, timeout=0.05))
    assert engine._idle == []
    assert len(os.listdir("/dev/fd")) <= before


def test_a_killed_child_is_a_timeout_and_not_a_wrong_answer(by_re):
    expression = compile_pattern("(a|b)+").expression
    assert [each.span() for each in expression.finditer("ab", timeout=5)] == [(0, 2)]
    engine._idle[-1]._process.kill()
    engine._idle[-1]._process.wait()
    with pytest.raises(TimeoutError):
        list(expression.finditer("ab", timeout=5))
    assert [each.span() for each in expression.finditer("ab", timeout=5)] == [(0, 2)]


def test_a_child_ends_at_its_deadline_after_its_parent_was_killed(tmp_path):
    program = f"""
from agentfs.patterns import engine
engine.engine_name = lambda: "re"
assert list(engine.engine().compile("a").finditer("a", timeout=5))
print(engine._idle[0]._process.pid, flush=True)
list(engine.engine().compile({SLOW!r}).finditer({SLOW_TEXT!r}, timeout=2))
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        child = int(process.stdout.readline())
        time.sleep(0.5)
        process.kill()
    until = time.monotonic() + 20
    while is_running(child):
        assert time.monotonic() < until
        time.sleep(0.05)


def is_running(number):
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(number)], capture_output=True, check=False)
    return shown.stdout.strip()[:1] not in (b"", b"Z")


def test_a_process_that_cannot_start_is_a_typed_error(by_re, monkeypatch, tmp_path):
    def fails(*_, **__):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(engine.subprocess, "Popen", fails)
    (tmp_path / "a").write_text("a" * 6000)
    with Workspace(tmp_path) as ws, pytest.raises(FileIOError, match="temporarily unavailable") as caught:
        ws.grep(SLOW, multiline=True)
    assert caught.value.errno == errno.EAGAIN


def test_another_thread_may_take_the_last_idle_child(by_re):
    class Taken(list):
        def __bool__(self):
            return True

    expression = compile_pattern("(a|b)+").expression
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_idle", Taken())
        assert [each.span() for each in expression.finditer("ab", timeout=5)] == [(0, 2)]
        engine._idle.pop().end()


def test_the_first_match_is_found_alone_and_its_child_is_kept(by_re):
    expression = compile_pattern("(a|aa)+[bc]").expression
    assert expression.search("ab" + SLOW_TEXT[:-1], timeout=5).span() == (0, 2)  # a second one has no end
    (child,) = engine._idle
    assert expression.search("dd", timeout=5) is None
    assert engine._idle == [child]


def test_a_forked_process_has_children_of_its_own(by_re):
    expression = compile_pattern("(a|b)+").expression
    matched = [each.span() for each in expression.finditer("ab", timeout=5)]
    used = engine._idle[-1]._process.pid
    forked = os.fork()
    if forked == 0:
        again = [each.span() for each in expression.finditer("ab", timeout=5)]
        other = engine._idle.pop()
        other.end()
        os._exit(0 if again == matched and other._process.pid != used else 1)
    assert os.waitpid(forked, 0)[1] == 0
    assert engine._idle[-1]._process.pid == used


def test_very_many_matches_come_in_batches(by_re):
    text = "ab" * 50_000
    found = compile_pattern("(a|b)").expression.finditer(text, timeout=20)
    assert sum(1 for _ in found) == 100_000


@pytest.mark.parametrize("pattern", [r"\p{Lu}", r"[[:alpha:]]+", r"(?<=a+)b", r"\X", r"(?|a|b)", r"\m\w"])
def test_features_that_re_lacks_are_refused_with_the_reason(by_re, pattern):
    with pytest.raises(InvalidPatternError, match="Python's `re` is used here") as caught:
        compile_pattern(pattern)
    assert caught.value.code == "invalid_pattern"


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a(b", r"this \( is never closed at character 2"),
        ("a)", r"this \) closes nothing"),
        ("[a", "never closed"),
    ],
)
def test_re_explains_mistakes_like_regex(by_re, pattern, reason):
    with pytest.raises(InvalidPatternError, match=reason) as caught:
        compile_pattern(pattern)
    assert "`re`" not in str(caught.value)


def test_replace_expands_groups(by_re, tmp_path):
    (tmp_path / "a.py").write_text("name(1)\n" + "x" * 5000 + " (ab)(ab)ab\nname(2)\n")
    with Workspace(tmp_path) as ws:
        ws.replace(r"((?<word>a)b)+$|name\((\d)\)", r"<\g<word>\3>", regex=True)
    assert (tmp_path / "a.py").read_text() == "<1>\n" + "x" * 5000 + " (ab)(ab)<a>\n<2>\n"
