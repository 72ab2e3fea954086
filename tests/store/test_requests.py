"""The number of requests of a pull and a push."""

from collections import Counter

import obstore
import pytest
from obstore.store import MemoryStore

from agentfs.store import StoredTree
from scripts import store_fleet
from tests.store.conftest import before, put


@pytest.fixture
def calls(monkeypatch):
    counted = Counter()
    for name in ("list", "get", "put", "delete"):
        before(monkeypatch, obstore, name, lambda *_, name=name: counted.update([name]))
    return counted


@pytest.mark.full
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
    put(tree, {"d7/f7": "first\n"})  # the first push tests the conditions of the store, and makes its record
    tree.push()
    put(tree, {"d7/f7": "changed\n"})
    calls.clear()
    assert tree.push().pushed == ("d7/f7",)
    assert calls == {"get": 1, "put": 1}
    calls.clear()
    assert tree.push().pushed == ()
    assert calls == {"get": 1}
    calls.clear()
    tree.status()
    assert calls == {"list": 1}


@pytest.mark.full
def test_the_simulated_workers_make_the_requests_of_real_ones(server, s3):
    """In S3's prices, a listing costs as much as a PUT; both are GET in HTTP."""

    def requests_of(call):
        before = server.requests.copy()
        call()
        return server.requests - before

    def in_http(expected):
        return Counter(GET=expected["LIST"] + expected["GET"], PUT=expected["PUT"])

    one, other = s3("one"), s3("other")
    count = 1005
    put(one, {f"f{number}": "1\n2\n3\n4\n5\n" for number in range(count)})
    first = requests_of(one.push)
    assert count + 1 <= first["PUT"] <= count + 4  # `.agentfs/tree`, and the test of conditions
    assert requests_of(other.pull) == in_http(store_fleet.pull_requests(count + 1, count))
    assert requests_of(other.pull) == in_http(store_fleet.pull_requests(count + 1, 0))
    put(other, {"f0": "one\n2\n3\n4\n5\n"})
    other.push()  # the first one of a cache tests the conditions
    put(other, dict.fromkeys(("f1", "f2", "f3"), "one\n2\n3\n4\n5\n"))
    assert requests_of(other.push) == in_http(store_fleet.push_requests(3, 0))
    put(one, dict.fromkeys(("f1", "f2", "f4"), "1\n2\n3\n4\nfive\n"))
    assert requests_of(one.push) == in_http(store_fleet.push_requests(3, 2))
    put(one, {"f3": "another\n2\n3\n4\n5\n"})
    assert requests_of(one.push) == in_http(store_fleet.push_requests(0, 1))  # a conflict
    assert requests_of(one.pull) == in_http(store_fleet.pull_requests(count + 1, 2))  # the conflict again
