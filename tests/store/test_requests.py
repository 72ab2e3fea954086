"""How many requests a pull and a push make."""

from collections import Counter
from pathlib import Path

import obstore
import pytest
from obstore.store import MemoryStore

from agentfs.store import StoredTree
from tests.conftest import part_or_all
from tests.store.conftest import files, put

_COUNTED = ("list", "get", "head", "put", "delete", "copy", "sign")


@pytest.fixture
def calls(monkeypatch):
    """The calls of obstore, counted by name."""
    counted = Counter()

    def counting(name, real):
        def call(*args, **more):
            counted[name] += 1
            return real(*args, **more)

        return call

    for name in _COUNTED:
        monkeypatch.setattr(obstore, name, counting(name, getattr(obstore, name)))
    return counted


def test_ten_thousand_objects(tmp_path, calls):
    store = MemoryStore()
    for number in range(10_000):
        obstore.put(store, f"d{number % 100}/f{number}", b"%d\n" % number)
    tree = StoredTree(store, tmp_path / "cache")
    calls.clear()
    assert len(tree.pull().pulled) == 10_000
    assert calls == {"list": 1, "get": 10_000}
    calls.clear()
    assert tree.pull().pulled == ()
    assert calls == {"list": 1}
    put(tree, "d7/f7", "first\n")  # the first push tests the conditions of the store, and makes its record
    tree.push()
    put(tree, "d7/f7", "changed\n")
    calls.clear()
    assert tree.push().pushed == ("d7/f7",)
    assert calls == {"head": 1, "put": 1}
    calls.clear()
    assert tree.push().pushed == ()
    assert calls == {"head": 1}
    calls.clear()
    tree.status()
    assert calls == {"list": 1}


@part_or_all(20)
def test_requests_to_s3(server, s3, every):
    count = 10_000 // every
    tree, other = s3("one"), s3("other")
    for number in range(count):
        put(tree, f"d{number % 100}/f{number}", f"{number}\n")
    tree.push()
    other.pull()
    pages = -(-(count + 1) // 1000)  # with `.agentfs/tree.json`
    before = server.requests.copy()
    assert other.pull().pulled == ()
    assert server.requests - before == {"GET": pages}
    put(other, "d5/f5", "first\n")
    other.push()
    put(other, "d5/f5", "changed\n")
    before = server.requests.copy()
    assert other.push().pushed == ("d5/f5",)
    assert server.requests - before == {"HEAD": 1, "PUT": 1}
    before = server.requests.copy()
    assert tree.pull().pulled == ("d5/f5",)
    assert server.requests - before == {"GET": pages + 1}


def test_a_branch_costs_its_tree_no_listing(server, s3):
    tree = s3("one")
    put(tree, "~after", "x")
    put(tree, "!before", "x")
    for number in range(255):
        put(tree, f"f{number}", "x")
    tree.push()
    for name in ("a", "b", "c", "d"):
        tree.branch(name)
    before = server.requests.copy()
    assert tree.pull().pulled == ()
    assert (server.requests - before).total() <= 2  # 1,020 objects of branches would be two pages
    assert len(s3("other").pull().pulled) == 257


def test_a_conflict_is_downloaded_once(s3, calls):
    one, other = s3("one"), s3("other")
    put(one, "f", "1\n")
    one.push()
    other.pull()
    put(one, "f", "one\n")
    one.push()
    put(other, "f", "other\n")
    assert other.pull().conflicts == ("f",)
    calls.clear()
    assert other.pull().conflicts == ("f",)
    assert calls == {"list": 1}
    assert Path(other, ".agentfs/conflicts/f").exists()
    assert files(other)["f"] == b"other\n"


def test_progress_is_reported(s3):
    one, other = s3("one"), s3("other")
    for number in range(5):
        put(one, f"f{number}", "x")
    seen = []
    one.push(on_progress=lambda *given: seen.append(given))
    other.pull(on_progress=lambda *given: seen.append(given))
    one.branch("b", on_progress=lambda *given: seen.append(given))
    assert seen == [(done, 5) for done in range(1, 6)] * 3
