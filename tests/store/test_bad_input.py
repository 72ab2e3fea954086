"""A store, a network, a disk or another process that misbehaves during a pull or push."""

import http.server
import os
import subprocess
import sys
import threading
from pathlib import Path

import boto3
import obstore
import pytest
from obstore.store import MemoryStore, S3Store

from agentfs import AgentFSError, Policy
from agentfs.store import StoredTree
from tests.store.conftest import files, impatient, put
from tests.store.proxy import FaultyProxy


def code(call, *arguments) -> AgentFSError:
    with pytest.raises(AgentFSError) as caught:
        call(*arguments)
    return caught.value


@pytest.fixture
def plain(s3):
    """The bucket as boto3 sees it, which takes any key."""
    settings = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    return boto3.resource("s3", endpoint_url=s3.options["endpoint"], **settings).Bucket(s3.url[5:])


@pytest.mark.parametrize("key", ["../x", "a//b", "a/../b", "nul\0", "./x"])
def test_a_key_that_obstore_refuses_is_named_and_nothing_is_done(s3, plain, key):
    plain.put_object(Key="good", Body=b"good")
    plain.put_object(Key=key, Body=b"bad")
    error = code(s3("one").pull)
    assert error.code == "invalid_path"
    assert key.split("\0")[0].split("\n")[0].strip("/.") in error.message
    assert files(s3("one")) == {}


def test_keys_that_are_no_paths_here_are_counted_and_the_rest_arrives(s3, plain, tmp_path):
    bad = {
        "too long": ["x" * 256, "/".join(["d" * 200] * 25), "/".join("d" * 300)],
        "a file and a directory of one name": ["both", "Folded"],
        "names that fold to one": ["Readme", "README", "readme", "caf\u00e9", "cafe\u0301"],
        "protected": [".git/hooks/pre-commit", "sub/.env", ".envrc"],
        "reserved": [".AGENTFS/x", "a/agentfs.lock", ".agentfs-0123456789abcdef.tmp"],
    }
    store = S3Store(s3.url[5:], **s3.options)
    for keys in bad.values():
        for key in keys:
            obstore.put(store, key, b"bad")
    for key in (
        "good",
        "both/below",
        "folded/below",
        "ü/ä",
        " leading",
        "trailing ",
        "back\\slash",
        "\u202egpj.exe",
    ):
        obstore.put(store, key, b"good")
    obstore.put(store, ".agentfs/other", b"ours")
    tree = s3("one")
    result = tree.pull()
    good = {
        "good",
        "both/below",
        "folded/below",
        "ü/ä",
        " leading",
        "trailing ",
        "back\\slash",
        "\u202egpj.exe",
    }
    assert set(files(tree)) == good
    assert len(result.pulled) == len(good)
    assert {reason: len(paths) for reason, paths in result.left_out.items()} == {
        reason: len(keys) for reason, keys in bad.items()
    }
    assert all(reason in result.text for reason in bad)
    assert tree.push().pushed == ()
    assert tree.push().deleted == ()
    assert len([*plain.objects.all()]) == sum(map(len, bad.values())) + len(good) + 1


def test_a_name_cannot_hide_in_the_text(tmp_path):
    store = MemoryStore()
    obstore.put(store, "\u202egpj.exe", b"x")
    result = StoredTree(store, tmp_path / "cache").pull()
    assert "\u202e" not in result.text
    assert r"\u202egpj.exe" in result.text


def test_keys_with_a_slash_at_an_end_are_counted(s3, plain):
    """obstore lists them as if they had none."""
    for key in ("/absolute", "directory/", "good/file"):
        plain.put_object(Key=key, Body=b"")
    result = s3("one").pull()
    assert result.pulled == ("good/file",)
    assert result.left_out == {"no object of this name": ("absolute", "directory")}


def test_a_known_file_is_not_displaced_by_a_new_twin(tmp_path):
    store = MemoryStore()
    one = StoredTree(store, tmp_path / "one")
    put(one, "readme", "known")
    one.push()
    obstore.put(store, "README", b"twin")
    obstore.put(store, "readme/below", b"below")
    result = one.pull()
    assert files(one) == {"readme": b"known"}
    assert {path for paths in result.left_out.values() for path in paths} == {"README", "readme/below"}


def test_links_out_of_the_tree_are_neither_made_nor_pushed(trees):
    one, other = trees("one"), trees("other")
    put(one, "d/f", "x")
    for name, target in (
        ("up", "../x"),
        ("d/up", "../../x"),
        ("absolute", "/etc/passwd"),
        ("d/in", "../d/f"),
    ):
        os.symlink(target, Path(one, name))
    result = one.push()
    assert result.left_out == {"link out of the tree": ("absolute", "d/up", "up")}
    hostile = b'{"id": "x", "entries": {"up": "-> ../x", "absolute": "-> /etc", "d/in": "-> f", "p": 3}}'
    store = MemoryStore()
    obstore.put(store, ".agentfs/tree.json", hostile)
    tree = StoredTree(store, Path(other))
    error = code(tree.pull)
    assert error.code == "io"
    assert "damaged" in error.message
    obstore.put(store, ".agentfs/tree.json", hostile.replace(b', "p": 3', b""))
    assert tree.pull().left_out == {"link out of the tree": ("absolute", "up")}
    assert not os.path.lexists(Path(tree, "up"))
    assert os.readlink(Path(tree, "d/in")) == "f"


def test_files_below_a_link_do_not_leave_the_tree(tmp_path):
    store, outside = MemoryStore(), tmp_path / "outside"
    outside.mkdir()
    tree = StoredTree(store, tmp_path / "cache")
    tree.pull()
    os.symlink(outside, tmp_path / "cache" / "d")
    obstore.put(store, "d/planted", b"x")
    assert tree.pull().conflicts == ("d/planted",)
    assert [*outside.iterdir()] == []


def test_a_wrong_bucket(server, tmp_path):
    tree = StoredTree("s3://no-such-bucket", tmp_path / "cache", options=server.options)
    put(tree, "a", "a")
    for call in (tree.pull, tree.push, tree.status):
        error = code(call)
        assert error.code == "io"
        assert "NoSuchBucket" in error.message
        assert "URL" in error.hint
    assert files(tree) == {"a": b"a"}


@pytest.mark.parametrize("url", ["s3:/x", "nothing://x", "s3://", "x", ""])
def test_a_wrong_url(tmp_path, url):
    assert code(StoredTree, url, tmp_path / "cache").code == "invalid_argument"


def test_a_wrong_option(tmp_path):
    error = code(lambda: StoredTree("s3://bucket", tmp_path / "cache", options={"nothing": 1}))
    assert error.code == "invalid_argument"
    assert (
        code(lambda: StoredTree("memory://", tmp_path / "cache", max_concurrency=0)).code
        == "invalid_argument"
    )


class Answers(http.server.ThreadingHTTPServer):
    """A server that gives every request the same answer."""

    daemon_threads = True

    def __init__(self, status: int, body: bytes) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = do  # noqa: N815 - as the library names them

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


@pytest.mark.parametrize(
    ("status", "s3_code", "expected"),
    [
        (403, "AccessDenied", "refused"),
        (403, "RequestTimeTooSkewed", "refused"),
        (403, "SignatureDoesNotMatch", "refused"),
        (400, "ExpiredToken", "refused"),
        (401, "Unauthorized", "refused"),
        (503, "SlowDown", "io"),
        (500, "InternalError", "io"),
        (400, "BadRequest", "io"),
    ],
)
def test_an_answer_of_the_store_is_a_clear_error(tmp_path, status, s3_code, expected):
    with Answers(status, f"<Error><Code>{s3_code}</Code></Error>".encode()) as answers:
        endpoint = f"http://127.0.0.1:{answers.server_port}"
        tree = StoredTree("s3://bucket", tmp_path / "cache", options=impatient(endpoint))
        put(tree, "a", "a")
        error = code(tree.pull)
        assert error.code == expected
        assert s3_code in error.message
        assert code(tree.push).code in {expected, "io"}
    assert files(tree) == {"a": b"a"}


def test_a_page_in_place_of_an_answer_does_not_empty_the_cache(s3, tmp_path):
    """obstore takes any answer for a listing, here an empty one."""
    one = s3("one")
    put(one, "a", "a")
    one.push()
    with Answers(200, b"<html>Please log in</html>") as answers:
        endpoint = f"http://127.0.0.1:{answers.server_port}"
        tree = StoredTree(s3.url, tmp_path / "one", options=impatient(endpoint))
        assert {code(tree.pull).code, code(tree.push).code, code(tree.status).code} == {"conflict"}
    assert files(one) == {"a": b"a"}


def test_no_server_and_no_secret_in_the_message(tmp_path):
    settings = impatient("http://127.0.0.1:9/?token=SECRET")
    error = code(StoredTree("s3://bucket", tmp_path / "cache", options=settings).pull)
    assert error.code == "io"
    assert "SECRET" not in str(error.to_dict())


def test_a_store_that_ignores_conditions_is_refused(server, s3, monkeypatch):
    """For example, in s3rver 30 of 30 creators of one object succeeded."""
    real = obstore.put

    def put_without_condition(*given, mode=None, **more):
        return real(*given, **more)

    monkeypatch.setattr(obstore, "put", put_without_condition)
    tree = s3("one")
    put(tree, "a", "a")
    error = code(tree.push)
    assert error.code == "unsupported"
    assert "conditions" in error.message
    monkeypatch.undo()
    assert s3("other").pull().pulled == ()


def test_a_delete_that_meets_a_change_of_another_worker(s3, monkeypatch):
    """The check has passed; the condition of the delete itself stops it."""
    one, other = s3("one"), s3("other")
    put(one, "f", "1\n")
    one.push()
    other.pull()
    real = obstore.sign

    def overtaken(*arguments):
        monkeypatch.undo()
        put(other, "f", "changed\n")
        other.push()
        return real(*arguments)

    monkeypatch.setattr(obstore, "sign", overtaken)
    os.remove(Path(one, "f"))
    assert one.push().conflicts == ("f",)
    assert s3("third").pull().pulled == ("f",)


def test_an_object_that_changes_between_list_and_get(s3, monkeypatch):
    one, other = s3("one"), s3("other")
    put(one, "f", "1\n")
    put(one, "g", "1\n")
    one.push()
    real = obstore.get

    def late(store, path, **more):
        if path == "f":
            monkeypatch.undo()
            put(one, "f", "2\n")
            os.remove(Path(one, "g"))
            one.push()
        return real(store, path, **more)

    monkeypatch.setattr(obstore, "get", late)
    other.pull()
    other.pull()
    assert files(other) == {"f": b"2\n"}
    assert other.status().to_push == ()


@pytest.mark.parametrize("fault", ["truncate", "cut", "lost", "unavailable", "delay", "repeat"])
def test_each_fault_of_the_network_alone(server, tmp_path, fault):
    proxy = FaultyProxy(server.endpoint, seed=1)
    try:
        url = f"s3://{server.bucket()}"
        one = StoredTree(url, tmp_path / "one", options=impatient(proxy.endpoint), max_concurrency=4)
        other = StoredTree(url, tmp_path / "other", options=impatient(proxy.endpoint), max_concurrency=4)
        for number in range(12):
            put(one, f"f{number}", f"{number}\n" * 50)
        proxy.faults = {fault: 300}

        def until_done(call):
            for _ in range(50):
                try:
                    return call()
                except AgentFSError as error:
                    assert error.code in {"io", "refused"}, error  # noqa: PT017
            raise AssertionError

        until_done(one.push)
        until_done(other.pull)
        os.remove(Path(one, "f7"))
        put(one, "f8", "changed\n")
        until_done(one.push)
        until_done(other.pull)
        assert files(one) == files(other)
        assert len(files(one)) == 11
        assert until_done(one.status).to_push == until_done(one.status).conflicts == ()
        assert proxy.seen[fault] > 2
    finally:
        proxy.close()


def test_a_lost_answer_is_not_a_change_by_others(server, tmp_path):
    """The push of `a` arrived. Its answer is lost, and another worker adds a line before the next push."""
    proxy = FaultyProxy(server.endpoint)
    try:
        url = f"s3://{server.bucket()}"
        settings = impatient(proxy.endpoint) | {"retry_config": {"max_retries": 0}}
        one = StoredTree(url, tmp_path / "one", options=settings)
        other = StoredTree(url, tmp_path / "other", options=server.options)
        put(one, "f", "base\n")
        one.push()
        put(one, "f", "base\none\n")
        one.status()
        real, proxy._fault = proxy._fault, lambda: "lost" if proxy.requests[-1][0] == "PUT" else ""
        assert code(one.push).code == "io"
        proxy._fault = real
        other.pull()
        put(other, "f", "base\none\nother\n")
        other.push()
        put(one, "f", "ONE\none\n")
        result = one.push()
        assert result.conflicts == ()
        assert result.merged == ("f",)
        assert files(one)["f"] == b"ONE\none\nother\n"
    finally:
        proxy.close()


def test_an_emptied_store_does_not_empty_the_cache(s3, plain):
    one = s3("one")
    put(one, "a", "a")
    one.push()
    plain.objects.all().delete()
    for call in (one.pull, one.push, one.status):
        assert code(call).code == "conflict"
    assert files(one) == {"a": b"a"}


def test_a_cache_of_another_store_is_refused(s3, server, tmp_path):
    s3("one").pull()
    error = code(StoredTree(f"s3://{server.bucket()}", tmp_path / "one", options=server.options).pull)
    assert error.code == "invalid_argument"
    assert error.details["parameter"] == "cache"


def test_a_cache_without_its_state_begins_again(s3):
    import shutil

    one = s3("one")
    put(one, "a", "a\n")
    put(one, "b", "b\n")
    one.push()
    put(one, "b", "changed\n")
    shutil.rmtree(Path(one, ".agentfs"))
    assert one.pull().conflicts == ("b",)
    assert files(one) == {"a": b"a\n", "b": b"changed\n"}


def test_another_process_with_the_same_cache(s3):
    one = s3("one")
    one.pull()
    script = (
        "import sys, time\nfrom agentfs.history.storage.state_directory import StateDirectory\n"
        "held = StateDirectory(sys.argv[1])\nprint('held', flush=True)\ntime.sleep(60)"
    )
    command = [sys.executable, "-c", script, os.path.join(one, ".agentfs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        for call in (one.pull, one.push, one.status):
            error = code(call)
            assert error.code == "busy"
            assert str(process.pid) in error.message
        process.kill()
    assert one.pull().pulled == ()


def test_a_damaged_state(s3):
    one = s3("one")
    put(one, "a", "a\n")
    one.push()
    Path(one, ".agentfs/history.db").write_bytes(b"nonsense" * 1000)
    assert code(one.pull).code in {"io", "invalid_argument"}
    assert files(one) == {"a": b"a\n"}


def test_a_read_only_policy(s3):
    one, other = s3("one"), s3("other", policy=Policy(read_only=True))
    put(one, "a", "a\n")
    one.push()
    assert other.pull().pulled == ("a",)
    assert code(other.push).code == "read_only"
    with other.workspace() as workspace:
        assert code(workspace.write, "a", "x").code == "read_only"


def test_names_and_files_that_no_store_can_have_are_left_out(s3):
    one = s3("one")
    put(one, "good", "x")
    with open(os.path.join(os.fsencode(one), b"latin-\xe9"), "wb") as file:
        file.write(b"x")
    put(one, "line\nfeed", "x")
    put(one, "Twin", "x")
    put(one, "twin", "x")
    os.mkfifo(Path(one, "fifo"))
    result = one.push()
    assert result.pushed == ("good",)
    assert {reason: len(paths) for reason, paths in result.left_out.items()} == {
        "not UTF-8": 1,
        "not a path in a store": 1,
        "names that fold to one": 2,
        "special file": 1,
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_not_deleted_in_the_store(s3):
    one = s3("one")
    put(one, "d/f", "x")
    put(one, "g", "x")
    one.push()
    os.chmod(Path(one, "d"), 0)
    os.chmod(Path(one, "g"), 0)
    try:
        result = one.push()
        assert result.deleted == ()
        assert set(result.left_out["unreadable"]) == {"d", "g"}
    finally:
        os.chmod(Path(one, "d"), 0o755)


def test_a_full_disk(s3, tmp_path):
    one = s3("one")
    for number in range(20):
        put(one, f"f{number}", os.urandom(100_000))
    one.push()
    limited = (
        "import resource, sys\nresource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from agentfs.store import StoredTree\nfrom agentfs import AgentFSError\n"
        "try: StoredTree(sys.argv[1], sys.argv[2], options=eval(sys.argv[3])).pull()\n"
        "except AgentFSError as error: print(error.code)\n"
    )
    command = [sys.executable, "-c", limited, s3.url, tmp_path / "other", repr(s3.options)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout == "io\n", done.stderr
    other = s3("other")
    assert files(other) == {}
    assert len(other.pull().pulled) == 20
    assert files(one) == files(other)


def test_a_large_object_is_a_file_that_is_never_decoded(s3, monkeypatch):
    from agentfs.store import cache_state, local_tree, sync

    for module in (cache_state, local_tree, sync):
        monkeypatch.setattr(module, "LARGE", 1000)
    one, other = s3("one"), s3("other")
    put(one, "d/large", b"line\n" * 1000, 0o755)
    put(one, "small", b"x\n")
    one.push()
    other.pull()
    assert files(other) == files(one)
    assert Path(other, "d/large").stat().st_mode & 0o777 == 0o755
    for content in (b"other\n" * 2000, b"now small\n", b"large again\n" * 500):
        put(one, "d/large", content)
        one.push()
        assert other.pull().pulled == ("d/large",)
        assert files(other) == files(one)
    os.chmod(Path(one, "d/large"), 0o644)
    one.push()
    other.pull()
    assert Path(other, "d/large").stat().st_mode & 0o777 == 0o644
    put(one, "d/large", b"one\n" * 700)
    put(other, "d/large", b"other\n" * 700)
    one.push()
    assert other.push().conflicts == ("d/large",)
    assert other.pull().conflicts == ("d/large",)
    assert files(other)["d/large"] == b"other\n" * 700
    put(other, "d/large", b"one\n" * 700)
    assert other.pull().conflicts == ()
    os.remove(Path(one, "d/large"))
    one.push()
    assert other.pull().deleted == ("d/large",)
    assert set(files(other)) == {"small"}


def test_an_interrupted_push_continues(s3, monkeypatch):
    one, other = s3("one", max_concurrency=1), s3("other")
    for number in range(20):
        put(one, f"f{number:02}", f"{number}\n")
    real, sent = obstore.put, []

    def failing(store, path, *args, **more):
        if path.startswith("f"):
            sent.append(path)
            if len(sent) == 10:
                raise KeyboardInterrupt
        return real(store, path, *args, **more)

    monkeypatch.setattr(obstore, "put", failing)
    with pytest.raises(KeyboardInterrupt):
        one.push()
    first = len(sent)
    one.push()
    other.pull()
    assert files(one) == files(other)
    assert len(sent) - first < 20


def test_it_is_not_imported_without_being_used():
    script = "import sys, agentfs.cli, agentfs.workspace; print('obstore' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )


def test_without_obstore(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    error = code(StoredTree, "memory://", tmp_path / "cache")
    assert error.code == "unsupported"
    assert "pip install obstore" in error.hint


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of the memory from /proc")
def test_an_object_of_many_parts(s3):
    """It is sent and fetched in pieces, so that the memory is bounded."""
    size = 220 * 2**20
    one, other = s3("one"), s3("other")
    put(one, "small", "x\n")
    with open(Path(one, "large"), "wb") as file:
        file.truncate(size)
        file.write(b"first")
        file.seek(size - 4)
        file.write(b"last")
    assert one.push().pushed == ("large", "small")
    script = (
        "import sys\nfrom pathlib import Path\nfrom agentfs.store import StoredTree\n"
        "pulled = StoredTree(sys.argv[1], sys.argv[2], options=eval(sys.argv[3])).pull().pulled\n"
        "peak = Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        "print(pulled, int(peak) // 1024)"
    )
    command = [sys.executable, "-c", script, s3.url, other, repr(s3.options)]
    pulled, _, mebibytes = (
        subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip().rpartition(" ")
    )
    assert pulled == "('large', 'small')"
    assert int(mebibytes) < 200
    assert subprocess.run(["cmp", Path(one, "large"), Path(other, "large")], check=False).returncode == 0
