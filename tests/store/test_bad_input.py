"""A store, a network, a disk or another process that misbehaves during a pull or push."""

# ruff: noqa: E501 - a step of a table is one line

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from itertools import chain
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

import obstore
import pytest
from obstore.store import S3Store

from agentfs import AgentFSError, Policy
from agentfs.errors import FileIOError
from agentfs.fs import Root
from agentfs.store import StoredTree, objects, sync
from tests.conftest import part_or_all
from tests.history.judges import can_mount
from tests.kit import code_of, error_of
from tests.store.conftest import before, files, impatient, options, play, put, shared
from tests.store.proxy import Listener


def python(
    script: str, *arguments: str | os.PathLike[str], check: bool = True
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(os.fspath, arguments)]
    return subprocess.run(command, capture_output=True, check=check, text=True)


def in_a_process(expression: str, settings: dict, cache: os.PathLike) -> tuple[str, int]:
    """Return the value of an expression about a tree, and the peak of the memory in MiB."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom agentfs.store import StoredTree\n"
        "tree = StoredTree('s3://bucket', sys.argv[1], options=eval(sys.argv[2]))\n"
        f"print({expression})\n"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"
    )
    value, peak = python(script, cache, repr(settings)).stdout.splitlines()
    return value, int(peak) // 1024


def counts(result) -> dict[str, int]:
    return {reason: len(paths) for reason, paths in result.left_out.items()}


def keys(store) -> list[str]:
    return [each["path"] for page in obstore.list(store) for each in page]


@pytest.fixture
def plain(s3):
    """The bucket as boto3 sees it, which takes any key."""
    import boto3

    settings = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    return boto3.resource("s3", endpoint_url=s3.options["endpoint"], **settings).Bucket(s3.where[5:])


@pytest.mark.parametrize("key", ["../x", "a//b", "a/../b", "nul\0", "./x"])
def test_a_key_that_obstore_refuses_is_named_and_nothing_is_done(s3, plain, key):
    plain.put_object(Key="good", Body=b"good")
    plain.put_object(Key=key, Body=b"bad")
    error = error_of(s3("one").pull)
    assert error.code == "invalid_path"
    assert key.split("\0")[0].split("\n")[0].strip("/.") in error.message
    assert files(s3("one")) == {}


def test_keys_that_are_no_paths_here_are_counted_and_the_rest_arrives(s3, plain):
    bad = {
        "name too long": ["x" * 256, "/".join(["d" * 200] * 25), "/".join("d" * 300)],
        "protected": [".git/hooks/pre-commit", "sub/.env", ".envrc"],
        "reserved": [".AGENTFS/x", "a/agentfs.lock", ".agentfs-0123456789abcdef.tmp"],
    }
    good = {"good", "README", "readme", "ü/ä", " leading", "trailing ", "back\\slash", "\u202egpj.exe"}
    store = S3Store(s3.where[5:], **s3.options)
    for key in (*good, *chain(*bad.values()), ".agentfs/other"):
        obstore.put(store, key, b"text")
    tree = s3("one")
    result = tree.pull()
    assert set(files(tree)) == good
    assert len(result.pulled) == len(good)
    assert counts(result) == {reason: len(names) for reason, names in bad.items()}
    assert all(reason in result.text for reason in bad)
    assert tree.push().pushed == tree.push().deleted == ()
    assert len([*plain.objects.all()]) == sum(map(len, bad.values())) + len(good) + 2


def test_a_name_cannot_hide_in_the_text(memory):
    obstore.put(memory.where, "\u202egpj.exe", b"x")
    text = memory("cache").pull().text
    assert "\u202e" not in text
    assert r"\u202egpj.exe" in text


def test_keys_with_a_slash_at_an_end_are_counted(s3, plain):
    """obstore lists them as if they had none."""
    for key in ("/absolute", "directory/", "good/file"):
        plain.put_object(Key=key, Body=b"")
    result = s3("one").pull()
    assert result.pulled == ("good/file",)
    assert result.left_out == {"no object of this name": ("absolute", "directory")}


def test_a_key_below_a_file_is_counted_and_a_known_file_stays(memory):
    one, other = memory("one"), memory("other")
    put(one, {"readme": "known"})
    one.push()
    obstore.put(memory.where, "readme/below", b"below")
    result = one.pull()
    assert files(one) == {"readme": b"known"}
    assert result.left_out == {"not a directory": ("readme/below",)}
    result = other.pull()  # one of the two is there, and the other one is counted
    assert len(files(other)) == len(result.pulled) == len(result.left_out) == 1
    assert one.push().deleted == other.push().deleted == ()
    assert {*keys(memory.where)} == {".agentfs/tree", "readme", "readme/below"}


def test_a_twin_of_a_file_on_a_disk_that_ignores_case_is_counted(memory, monkeypatch):
    """Opening `readme` finds `README` there, so a push must not delete `readme` in the store."""
    one = memory("one")
    put(one, {"README": "text"})
    one.push()
    obstore.put(memory.where, "readme", b"text")
    real = Root.node
    monkeypatch.setattr(Root, "node", lambda root, path, **more: real(root, path.upper(), **more))
    assert [*one.pull().left_out.values()] == [("readme",)]
    assert one.push().deleted == ()
    assert "readme" in keys(memory.where)


def test_files_below_a_link_do_not_leave_the_tree(memory, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    tree = memory("cache")
    tree.pull()
    os.symlink(outside, Path(tree, "d"))
    obstore.put(memory.where, "d/planted", b"x")
    assert [*tree.pull().left_out.values()] == [("d/planted",)]
    assert [*outside.iterdir()] == []


@pytest.mark.parametrize(
    ("url", "options"),
    [*((url, {}) for url in ("s3:/x", "nothing://x", "s3://", "x", "")), ("s3://b", {"n": 1})],
)
def test_a_wrong_url_or_option(tmp_path, url, options):
    assert code_of(StoredTree, url, tmp_path / "cache", options=options) == "invalid_argument"


class Answers(Listener):
    """A server that gives every request the same answer."""

    headers: ClassVar[dict[str, str]] = {}

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        super().__init__()

    def answer(self, request: BaseHTTPRequestHandler) -> tuple[int, int, Iterable[bytes], dict[str, str]]:
        """Return the status, the size of the body, its pieces, and more headers."""
        return self.status, len(self.body), [self.body], {}

    def handle(self, request: BaseHTTPRequestHandler, _: bytes) -> None:
        status, size, pieces, more = self.answer(request)
        request.send_response(status)
        for name, value in {"Content-Length": str(size), **self.headers, **more}.items():
            request.send_header(name, value)
        request.end_headers()
        for piece in pieces if request.command != "HEAD" else ():
            request.wfile.write(piece)


class GeneratedStore(Answers):
    """An S3 server whose objects consist of zeros, with any number of keys and any sizes."""

    headers: ClassVar[dict[str, str]] = {
        "ETag": '"always-this"',
        "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
    }

    def __init__(self, sizes: dict[str, int]) -> None:
        super().__init__(200, b"")
        self.sizes, self.keys, self.requests = sizes, [*sizes], 0
        self.options = options(self.endpoint)

    def answer(self, request: BaseHTTPRequestHandler) -> tuple[int, int, Iterable[bytes], dict[str, str]]:
        self.requests += 1
        url = urlsplit(request.path)
        if key := unquote(url.path).removeprefix("/bucket").strip("/"):
            size = self.sizes[key]
            begin, end, more = 0, size, {}
            if asked := request.headers.get("Range"):
                begin, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", asked).groups())
                end, more = last + 1, {"Content-Range": f"bytes {begin}-{last}/{size}"}
            pieces = (bytes(min(2**20, end - at)) for at in range(begin, end, 2**20))
            return 206 if asked else 200, end - begin, pieces, more
        begin = int(parse_qs(url.query).get("continuation-token", ["0"])[0])
        entries = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>always-this</ETag><Size>{self.sizes[key]}</Size></Contents>"
            for key in self.keys[begin : begin + 1000]
        )
        more = begin + 1000 < len(self.keys)
        next_ = f"<NextContinuationToken>{begin + 1000}</NextContinuationToken>" if more else ""
        body = f"<ListBucketResult>{entries}{next_}</ListBucketResult>".encode()
        return 200, len(body), [body], {}


@pytest.mark.parametrize(("status", "s3_code"), [
    (403, "AccessDenied"), (403, "RequestTimeTooSkewed"), (403, "SignatureDoesNotMatch"),
    (400, "ExpiredToken"), (401, "Unauthorized"), (503, "SlowDown"),
    (500, "InternalError"), (400, "BadRequest"),
    (403, "Forbidden"),  # of other stores and proxies, which say no more; `pull` raised `io`
])  # fmt: skip
def test_an_answer_of_the_store_is_a_clear_error(tmp_path, status, s3_code):
    expected = "refused" if status in {401, 403} or s3_code == "ExpiredToken" else "io"
    with Answers(status, f"<Error><Code>{s3_code}</Code></Error>".encode()) as answers:
        tree = StoredTree("s3://bucket", tmp_path / "cache", options=impatient(answers.endpoint))
        put(tree, {"a": "a"})
        error = error_of(tree.pull)
        assert error.code == expected
        assert s3_code in error.message
        assert code_of(tree.push) in {expected, "io"}
    assert files(tree) == {"a": b"a"}


@pytest.mark.parametrize("what", ["bucket", "server", "answer"])
def test_a_store_that_is_not_there_or_does_not_answer(server, tmp_path, what):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings, message, hint = {
            "bucket": (server.options, "NoSuchBucket", "URL"),
            "server": (impatient("http://127.0.0.1:9/?token=SECRET"), "", ""),
            "answer": (impatient(f"http://127.0.0.1:{silent.getsockname()[1]}"), "", "continues"),
        }[what]
        if what == "answer":
            settings["client_options"] |= {"timeout": timedelta(seconds=0.3)}
            settings["retry_config"] = {"max_retries": 0}
        tree = StoredTree("s3://no-such-bucket", tmp_path / "cache", options=settings)
        put(tree, {"a": "a"})
        for call in (tree.pull, tree.push, tree.status):
            error = error_of(call)
            assert error.code == "io"
            assert message in error.message
            assert hint in error.hint
            assert "SECRET" not in str(error.to_dict())
    assert files(tree) == {"a": b"a"}


def test_a_store_that_ignores_conditions_is_refused(proxied, s3):
    """For example, in s3rver 30 of 30 creators of one object succeeded."""
    proxied.proxy.dropped_headers |= {"if-match", "if-none-match"}
    tree = proxied("one")
    put(tree, {"a": "a"})
    error = error_of(tree.push)
    assert error.code == "unsupported"
    assert "conditions" in error.message
    assert s3("other").pull().pulled == ()
    proxied.proxy.dropped_headers = {"connection"}
    assert tree.push().pushed == ("a",)


def test_a_delete_that_meets_a_change_of_another_worker(trees, monkeypatch):
    """Even between the comparison and the delete: the object is replaced on a condition before."""
    one, other = shared(trees, {"f": "1\n"})

    def overtaken(*_):
        put(other, {"f": "changed\n"})
        other.push()

    before(monkeypatch, objects.Objects, "delete", overtaken)
    put(one, {"f": None})
    assert one.push().conflicts == ("f",)
    assert trees("third").pull().pulled == ("f",)


def test_a_delete_that_is_cut_off_half_way(trees, monkeypatch):
    """The object that is left means a deletion to all others, and its name can be used again."""
    one, other = shared(trees, {"f": "1\n", "g": "1\n"})
    third = trees("third")

    def failing(*_):
        raise OSError

    put(one, {"f": None, "g": None})
    with monkeypatch.context() as patch:
        before(patch, obstore, "delete", failing)
        assert code_of(one.push) == "io"
    assert set(other.pull().deleted) >= {"f"}
    assert "f" not in third.pull().pulled
    assert other.pull().deleted == other.push().pushed == other.push().deleted == ()
    put(other, {"f": "again\n"})
    assert other.push().pushed == ("f",)
    third.pull()
    assert files(third)["f"] == b"again\n"
    assert one.push().conflicts == ("f",)  # its deletion has met a change
    assert "f" not in files(one)


def test_an_object_that_changes_between_list_and_get(s3, monkeypatch):
    one, other = s3("one"), s3("other")
    put(one, {"f": "1\n", "g": "1\n"})
    one.push()

    def late(_, path):
        if path == "f":
            monkeypatch.undo()
            put(one, {"f": "2\n", "g": None})
            one.push()

    before(monkeypatch, obstore, "get", late)
    other.pull()
    other.pull()
    assert files(other) == {"f": b"2\n"}
    assert other.status().to_push == ()


@pytest.mark.parametrize(
    "fault",
    ["truncate", "cut", pytest.param("lost", marks=pytest.mark.full), "unavailable", "delay", "repeat"],
)
def test_each_fault_of_the_network_alone(proxied, fault):
    one, other = proxied("one"), proxied("other")
    put(one, {f"f{number}": f"{number}\n" * 50 for number in range(6)})
    proxied.proxy.faults = {fault: 300}

    def until_done(call):
        for _ in range(50):
            try:
                return call()
            except AgentFSError as error:
                assert error.code in {"io", "refused"}, error  # noqa: PT017 - it may fail or not
        raise AssertionError

    until_done(one.push)
    until_done(other.pull)
    proxied.proxy.wait_for_repeats()  # a file that is created again after its deletion comes back
    put(one, {"f4": None, "f5": "changed\n"})
    until_done(one.push)
    until_done(other.pull)
    assert files(one) == files(other)
    assert len(files(one)) == 5
    assert until_done(one.status).to_push == ()
    assert proxied.proxy.seen[fault] > 2


def test_a_creation_that_arrives_again_after_the_deletion_brings_the_file_back(memory, monkeypatch):
    """A deletion leaves nothing in the store, so the condition of the creation is met again."""
    requests, real = [], obstore.put
    one, other = memory("one"), memory("other")
    monkeypatch.setattr(
        obstore, "put", lambda *given, **more: requests.append((given, more)) or real(*given, **more)
    )
    put(one, {"f": "text\n"})
    one.push()
    given, more = next(each for each in requests if each[0][1] == "f")
    put(one, {"f": None})
    assert one.push().deleted == ("f",)
    real(*given, **more)
    assert one.pull().pulled == other.pull().pulled == ("f",)
    assert files(one) == files(other) == {"f": b"text\n"}


def test_credentials_that_expire_during_a_push_and_a_pull(proxied):
    one, other, proxy = proxied("one"), proxied("other"), proxied.proxy
    put(one, {f"f{number}": f"{number}\n" for number in range(9)})
    expected, valid = files(one), proxy._fault
    for call, tree in ((one.push, one), (other.pull, other)):
        begun = len(proxy.requests)
        proxy._fault = lambda begun=begun: "expired" if len(proxy.requests) > begun + 4 else ""
        error = error_of(call)
        assert error.code == "refused"
        assert "ExpiredToken" in error.message
        assert "credentials" in error.hint
        assert files(tree).items() <= expected.items()
        proxy._fault = valid
        call()
        assert files(tree) == expected
    assert one.status().to_push == one.status().to_pull == ()


def test_a_file_that_changes_after_the_scan_of_a_push_is_sent_as_it_is(memory, monkeypatch):
    one = memory("one")
    put(one, {name: f"{name}\n" for name in "afgh"})

    def late(_, path, *_given):
        if path == "g":
            put(one, {"f": "second\n"})
            Path(one, "h").unlink(missing_ok=True)

    before(monkeypatch, obstore, "put", late)
    monkeypatch.setattr(sync, "_AT_ONCE", 1)
    assert set(one.push().pushed) >= {"f", "g"}
    monkeypatch.undo()
    one.push()
    assert bytes(obstore.get(memory.where, "f").bytes()) == b"second\n"
    assert "h" not in keys(memory.where)
    assert one.status().to_push == ()


def test_a_file_that_changes_after_the_scan_of_a_pull(memory, monkeypatch):
    one, other = shared(memory, {"f": "1\n2\n3\n4\n5\n"})
    put(one, {"f": "one\n2\n3\n4\n5\n"})
    one.push()
    put(other, {"f": "1\n2\n3\n4\nfive\n"})
    with monkeypatch.context() as patch:
        before(patch, obstore, "list", lambda *_: put(other, {"f": "1\n2\n3\n4\nFIVE\n"}))
        assert other.pull().merged == ("f",)
    assert files(other) == {"f": b"one\n2\n3\n4\nFIVE\n"}


def test_a_lost_answer_loses_no_line(proxied, server, tmp_path):
    """The push of `a` arrived. Its answer is lost, and another worker adds a line before the next push."""
    proxy = proxied.proxy
    proxied.options["retry_config"] = {"max_retries": 0}
    trees = {
        "one": proxied("one"),
        "other": StoredTree(proxied.where, tmp_path / "other", options=server.options),
    }
    play(
        trees.get,
        [("one", {"f": "base\n"}), ("one", "push"), ("one", {"f": "base\none\n"}), ("one", "status")],
    )
    real, proxy._fault = proxy._fault, lambda: "lost" if proxy.requests[-1][0] == "PUT" else ""
    assert code_of(trees["one"].push) == "io"
    proxy._fault = real
    play(trees.get, [
        ("other", "pull"), ("other", {"f": "base\none\nother\n"}), ("other", "push"), ("one", {"f": "ONE\none\n"}),
        ("one", "push", {"conflicts": ("f",)}),  # it cannot know that one of the two versions was its own
        ("one", "files", {"f": b"ONE\none\n"}), ("one", "kept", b"base\none\nother\n"),
        ("one", {"f": "base\none\nother\n"}), ("one", "push", {"conflicts": ()}),
    ])  # fmt: skip


@pytest.mark.parametrize("where", ["emptied", "another", "a page of a proxy"])
def test_a_store_without_the_tree_of_the_cache_does_not_empty_it(s3, plain, server, tmp_path, where):
    """obstore takes any answer for a listing, here an empty one."""
    one = s3("one")
    put(one, {"a": "a"})
    one.push()
    if where == "emptied":
        plain.objects.all().delete()
    url = f"s3://{server.bucket()}" if where == "another" else s3.where
    with Answers(200, b"<html>Please log in</html>") as answers:
        given = impatient(answers.endpoint) if where == "a page of a proxy" else server.options
        tree = StoredTree(url, tmp_path / "one", options=given)
        assert [code_of(call) for call in (tree.pull, tree.push, tree.status)] == ["conflict"] * 3
    assert files(one) == {"a": b"a"}


def test_a_cache_without_its_state_begins_again_and_a_damaged_one_is_named(s3):
    one = s3("one")
    play({"one": one}.get, [
        ("one", {"a": "a\n", "b": "b\n"}), ("one", "push"), ("one", {"b": "changed\n"}),
        ("one", lambda top: shutil.rmtree(top / ".agentfs")), ("one", "pull", {"conflicts": ("b",)}),
        ("one", lambda top: (top / ".agentfs/history.db").write_bytes(b"nonsense" * 1000)),
    ])  # fmt: skip
    assert code_of(one.pull) in {"io", "invalid_argument"}
    assert files(one) == {"a": b"a\n", "b": b"changed\n"}


def test_times_of_files_do_not_matter(trees):
    """A clock may be wrong, and may jump: contents decide."""
    one, other = trees("one"), trees("other")
    times = {"old": 0, "future": 4_000_000_000, "kept": 1_600_000_000}
    for content in (b"first\n", b"other\n"):
        for name, seconds in times.items():
            put(one, {name: content})
            os.utime(Path(one, name), (seconds, seconds))
        assert one.push().pushed == tuple(sorted(times))
        assert one.push().pushed == ()
        assert other.pull().pulled == tuple(sorted(times))
        assert files(one) == files(other)


def test_a_name_in_another_encoding_in_the_store(tmp_path):
    (tmp_path / "store").mkdir()
    tree = StoredTree(f"file://{tmp_path}/store", tmp_path / "cache")
    put(tree, {"good": "x"})
    tree.push()
    name = os.path.join(os.fsencode(tmp_path / "store"), b"latin-\xe9")
    Path(os.fsdecode(name)).write_bytes(b"x")
    error = error_of(tree.pull)
    assert error.code == "invalid_path"
    assert "latin-%E9" in error.message
    assert "rename" in error.hint
    os.remove(name)
    assert tree.pull().pulled == ()
    assert files(tree) == {"good": b"x"}


def test_a_changed_object_with_the_same_etag_is_found_by_its_size(tmp_path):
    with GeneratedStore({"f": 10}) as store:
        tree = StoredTree("s3://bucket", tmp_path / "cache", options=impatient(store.endpoint))
        assert (tree.pull().pulled, tree.pull().pulled) == (("f",), ())
        store.sizes["f"] = 20
        assert tree.pull().pulled == ("f",)
        assert files(tree) == {"f": bytes(20)}


@pytest.mark.full
@part_or_all(40)
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
def test_a_million_keys(tmp_path, every):
    """The keys are compared by one listing, in memory that is bounded."""
    count = 1_000_000 // every
    with GeneratedStore({f"d{number % 1000}/f{number}": 1 for number in range(count)}) as store:
        found, mebibytes = in_a_process("len(tree.status().to_pull)", store.options, tmp_path / "cache")
        assert found == str(count)
        assert store.requests == -(-count // 1000)
    assert mebibytes < 150 + count // 500


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
def test_many_large_objects_are_pulled_in_bounded_memory(tmp_path):
    with GeneratedStore({f"f{number}": 20 * 2**20 for number in range(12)}) as store:
        found, mebibytes = in_a_process("len(tree.pull().pulled)", store.options, tmp_path / "cache")
    assert found == "12"
    assert mebibytes < 256


def test_an_object_that_is_too_large_is_named_and_not_fetched(tmp_path):
    with GeneratedStore({"large": 5 * 10**9, "small": 1}) as store:
        result = StoredTree("s3://bucket", tmp_path / "cache", options=impatient(store.endpoint)).pull()
    assert (result.pulled, result.left_out, store.requests) == (("small",), {"too large": ("large",)}, 2)


def test_a_file_or_object_that_becomes_too_large_is_no_deletion(memory, monkeypatch):
    play(memory, [
        ("one", {"f": "small", "g": "small"}), ("one", "push"), ("other", "pull"), ("other", {"g": "large" * 10}), ("other", "push"),
        ("one", lambda _: [monkeypatch.setattr(module, "LARGEST_OBJECT", 40) for module in (sync, objects)]), ("one", {"f": "large" * 10}),
        ("one", "push", {"left_out": {"too large": ("f",)}}), ("one", "pull", {"left_out": {"too large": ("g",)}}), ("one", "push", {"deleted": ()}),
        ("one", "files", {"f": b"large" * 10, "g": b"small"}),
    ])  # fmt: skip


def test_another_process_with_the_same_cache(s3):
    one = s3("one")
    one.pull()
    script = (
        "import sys, time\nfrom agentfs.history.state_directory import StateDirectory\n"
        "held = StateDirectory(sys.argv[1])\nprint('held', flush=True)\ntime.sleep(60)"
    )
    command = [sys.executable, "-c", script, os.path.join(one, ".agentfs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert [code_of(call) for call in (one.pull, one.push, one.status)] == ["busy"] * 3
        process.kill()
    assert one.pull().pulled == ()


def test_a_read_only_policy(s3):
    one, other = s3("one"), s3("other", policy=Policy(read_only=True))
    put(one, {"a": "a\n"})
    one.push()
    assert other.pull().pulled == ("a",)
    assert code_of(other.push) == "read_only"


def test_names_and_files_that_no_store_can_have_are_left_out(s3):
    one = s3("one")
    put(one, dict.fromkeys(("good", os.fsdecode(b"latin-\xe9"), "line\nfeed", "Twin", "twin"), "x"))
    os.mkfifo(Path(one, "fifo"))
    result = one.push()
    assert result.pushed == ("Twin", "good", "twin")
    assert counts(result) == {"not a path in a store": 2, "not regular": 1}


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_pushed(trees, monkeypatch):
    one = trees("one")
    put(one, {"a": "a", "d/f": "x"})
    one.push()
    put(one, dict.fromkeys(("a", "b", "d/f", "d/g", "z"), "changed"))

    def failing(_, path):
        if path in ("a", "d/f"):
            raise FileIOError("Permission denied.")

    with monkeypatch.context() as patch:
        before(patch, Root, "node", failing)
        result = one.push()
    assert (result.pushed, result.deleted) == (("b", "d/g", "z"), ())
    assert result.left_out == {"io": ("a", "d/f")}
    assert one.push().pushed == ("a", "d/f")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_not_deleted_in_the_store(s3):
    one = s3("one")
    put(one, {"d/f": "x", "g": "x"})
    one.push()
    os.chmod(Path(one, "d"), 0)
    os.chmod(Path(one, "g"), 0)
    try:
        result = one.push()
        assert result.deleted == ()
        assert set(result.left_out["io"]) == {"d", "g"}
    finally:
        os.chmod(Path(one, "d"), 0o755)


@pytest.mark.skipif(not can_mount(), reason="only a user who may mount has a small disk")
def test_a_disk_that_becomes_full(tmp_path):
    """A pull to a disk of 1 MB, a push from it while it is full, and both once it has room."""
    script = """
import os, sys
from pathlib import Path
from obstore.store import MemoryStore
from agentfs import AgentFSError
from agentfs.store import StoredTree
store, small = MemoryStore(), Path(sys.argv[1])
one, other = StoredTree(store, sys.argv[2]), StoredTree(store, small / "cache")
filler = small / "filler"

def fill():
    with suppress(OSError), open(filler, "wb", buffering=0) as file:
        while file.write(bytes(1000)):
            pass

def code(call):
    try:
        call()
    except AgentFSError as error:
        return error.code

Path(one, "first").write_text("first")
one.push()
other.pull()
Path(one, "text").write_bytes(os.urandom(300_000))
one.push()
fill()
print(code(other.pull), sorted(os.listdir(other)))
filler.unlink()
print(other.pull().pulled)
Path(other, "own").write_bytes(os.urandom(100_000).replace(b"\\0", b""))
fill()
print(code(other.push), code(one.pull))
filler.unlink()
other.push()
one.pull()
print(Path(one, "own").read_bytes() == Path(other, "own").read_bytes())
"""
    for name in ("small", "one"):
        (tmp_path / name).mkdir()
    python = shlex.quote(sys.executable)
    mounted = f"mount -t tmpfs -o size=1m none {tmp_path}/small && exec {python} - {tmp_path}/small"
    command = ["unshare", "-m", "sh", "-c", f"{mounted} {tmp_path}/one"]
    script = "from contextlib import suppress" + script
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["io ['.agentfs', 'first']", "('text',)", "io None", "True"]


def test_texts_too_large_to_merge_are_conflicts(trees, monkeypatch):
    monkeypatch.setattr(sync, "MERGED_BYTES", 1000)
    text = b"line\n" * 1000
    play(trees, [
        ("one", {"large": text}), ("one", "push"), ("other", "pull"), ("one", {"large": b"one\n" + text}), ("one", "push", {"pushed": ("large",)}),
        ("other", "pull", {"pulled": ("large",)}), ("one", {"large": b"one\n" + text + b"end\n"}), ("other", {"large": text}), ("one", "push"),
        ("other", "push", {"conflicts": ("large",)}), ("other", "files", {"large": text}),
    ])  # fmt: skip


@pytest.mark.full
def test_an_interrupted_push_of_a_thousand_objects_continues(memory, monkeypatch):
    one, other = memory("one"), memory("other")
    put(one, {f"f{number:03}": f"{number}\n" for number in range(1000)})
    sent = []

    def failing(_, path, *_given):
        sent.extend([path] * path.startswith("f"))
        if path.startswith("f") and len(sent) == 500:
            raise KeyboardInterrupt

    before(monkeypatch, obstore, "put", failing)
    with pytest.raises(KeyboardInterrupt):
        one.push()
    again = one.push()
    assert 0 < len(again.pushed) <= 501
    assert again.conflicts == ()
    assert len(other.pull().pulled) == 1000
    assert files(one) == files(other)


def test_a_push_that_is_killed_after_an_object_was_stored(s3):
    """The state does not know that it was; another worker adds a line; then the push continues."""
    one, other = shared(s3, {"f": "base\n", "g": "base\n"})
    put(one, {"f": "base\none\n", "g": "base\none\n"})
    script = (
        "import obstore, os, sys\nfrom agentfs.store import StoredTree\nreal = obstore.put\n"
        "def put(*given, **more):\n    real(*given, **more)\n    os._exit(9)\n"
        "obstore.put = put\n"
        "StoredTree(sys.argv[1], sys.argv[2], options=eval(sys.argv[3])).push()"
    )
    assert python(script, s3.where, one, repr(s3.options), check=False).returncode == 9
    stored = other.pull().pulled
    put(other, dict.fromkeys(stored, "base\none\nother\n"))
    other.push()
    result = one.push()
    assert set(result.conflicts) == set(stored)  # it cannot know which version was its own
    assert {*stored, *result.pushed} == {"f", "g"}
    for name in stored:
        assert Path(one, ".agentfs/conflicts", name).read_bytes() == b"base\none\nother\n"


def test_obstore_is_not_imported_without_being_used_and_is_named_if_it_is_missing(tmp_path, monkeypatch):
    script = "import sys, agentfs.cli, agentfs.workspace; print('obstore' in sys.modules)"
    assert python(script).stdout == "False\n"
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    error = error_of(StoredTree, "memory://", tmp_path / "cache")
    assert error.code == "unsupported"
    assert "pip install obstore" in error.hint
