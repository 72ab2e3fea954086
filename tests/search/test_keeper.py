"""A watched workspace keeps the rest of its tree between calls, in a thread that never disturbs one."""

import logging
import os
import threading
import time
from itertools import pairwise

import pytest

from agentfs import Workspace
from agentfs.base import call_context
from agentfs.search import grep_text
from agentfs.watch import keeper
from tests.kit import put, wait_for
from tests.search.watched import check_same

FILES = 1300  # the first call keeps 1000 directories and texts


@pytest.fixture
def tree(tmp_path):
    put(tmp_path, {f"d{number % 20}/f{number}.txt": f"needle {number}\n" for number in range(FILES)})
    return tmp_path


def keepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "agentfs-keeper"]


@pytest.mark.full
def test_one_call_is_enough_to_keep_a_tree(tree):
    with Workspace(tree, watch=True) as ws:
        assert ws.grep("needle 17$").total_matches == 1
        wait_for(lambda: ws.watch.texts == FILES)
        wait_for(lambda: not keepers())  # nothing is left to keep
        check_same(ws, tree)
        (tree / "d0" / "f0.txt").write_text("another needle\n")
        assert ws.grep("another needle").total_matches == 1


@pytest.mark.parametrize("watch", ["calls", False])
def test_with_calls_only_or_without_watching_no_thread_runs(tree, watch):
    with Workspace(tree, watch=watch) as ws:
        ws.grep("needle")
        assert not keepers()
        kept = ws.watch and ws.watch.texts
        time.sleep(0.3)
        assert (ws.watch and ws.watch.texts) == kept
        assert kept is None or kept < FILES


@pytest.mark.full
@pytest.mark.parametrize("end", ["close", "fork"])
def test_the_thread_ends(tree, monkeypatch, end):
    working = threading.Event()

    def keep_files(*_) -> bool:
        working.set()
        while True:  # ends when it is interrupted
            call_context.step(0)

    monkeypatch.setattr(grep_text, "keep_files", keep_files)
    ws = Workspace(tree, watch=True)
    ws.grep("needle")
    assert working.wait(60)
    if end == "fork":
        source, target = os.pipe()
        if (child := os.fork()) == 0:
            try:
                os.write(target, f"{len(keepers())} {ws.grep('needle 17$').total_matches}".encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(source, 100) == b"0 1"
        os.close(source)
        os.close(target)
    ws.close()
    assert not keepers()


def test_a_call_stops_the_search_between_calls(tree, monkeypatch):
    searches: list[str] = []

    def keep_files(*_) -> bool:
        searches.append("began")
        try:
            while True:
                time.sleep(0.002)
                call_context.step(0)
        except call_context.Cancelled:
            searches.append("stopped")
            raise

    monkeypatch.setattr(grep_text, "keep_files", keep_files)
    with Workspace(tree, watch=True) as ws:
        ws.grep("needle")
        for _ in range(2):
            count = len(searches)
            wait_for(lambda count=count: len(searches) > count and searches[-1] == "began")
            ws.ls("d1")
            wait_for(lambda: searches[-1] == "stopped")


def test_the_thread_rests_as_long_as_it_works(monkeypatch):
    monkeypatch.setattr(keeper, "_REST_SECONDS", 0.01)
    times: list[tuple[float, float]] = []

    def search() -> bool:
        began = time.monotonic()
        time.sleep(0.05)
        times.append((began, time.monotonic()))
        return len(times) == 4

    keeps = keeper.Keeper(search)
    keeps.start()
    wait_for(lambda: not keepers())
    for (began, ended), (next_began, _) in pairwise(times):
        assert next_began - ended >= (ended - began) * 0.99
    keeps.start()  # it may start again
    wait_for(lambda: len(times) > 4)
    keeps.stop()


def test_a_failed_search_is_logged_once_and_ends_the_thread(tree, monkeypatch, caplog):
    monkeypatch.setattr(grep_text, "keep_files", lambda *_: 1 / 0)
    with Workspace(tree, watch=True) as ws, caplog.at_level(logging.ERROR, "agentfs"):
        ws.grep("needle")
        wait_for(lambda: caplog.records and not keepers())
        assert "ZeroDivisionError" in caplog.text
        assert ws.grep("needle 17$").total_matches == 1


def test_a_protected_file_is_not_kept(tmp_path):
    put(tmp_path, {".env": "SECRET=needle\n", **{f"f{number}.txt": "x\n" for number in range(1100)}})
    with Workspace(tmp_path, watch=True) as ws:
        ws.grep("needle")
        wait_for(lambda: not keepers())
        assert ws.watch.texts == 1100
        assert ws.grep("needle").total_matches == 0
