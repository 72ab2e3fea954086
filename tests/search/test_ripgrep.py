"""The ripgrep engine and the RE2 filter: the same answers, or Python's; and nothing hidden when rg fails."""

import os
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentfs import Workspace
from agentfs.errors import InvalidArgumentError
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.rust_syntax import rust_syntax
from agentfs.patterns.syntax import read_syntax
from agentfs.search import ripgrep, searcher
from tests.conftest import needs

PATTERNS = [
    *[
        "value",
        r"\bvalue\b",
        "val|one",
        "(?i)VALUE",
        "^value$",
        r"\s+$",
        r"[^a-z]\d{2}",
        "a.c",
        "x?",
        "é",
        r"\w+é",
    ],
    *[
        r"\S+\s\S+",
        "[a-c]+",
        "(ab)+",
        "a{,2}b",
        "${x}",
        r"\(",
        "v\\x61lue",
        r"(?=value)v",
        r"(v)\1",
        r"\Avalue",
        "value one",
        "(?i)kiss",
        "(?i)ik|one$",
        r"value\b.",
        "-34|one",
    ],
]


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "plain.txt").write_text("value one\n a c\n12 -34\nab\n${x} (\n")
    (tmp_path / "crlf.txt").write_bytes(b"value\r\nabab \r\n")
    (tmp_path / "utf8.txt").write_text("caf\u00e9 value\u2028\n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9 a\xe9c\n")
    (tmp_path / "wide.txt").write_bytes("value\n".encode("utf-16"))
    (tmp_path / "wider.txt").write_bytes("value\n".encode("utf-32"))
    (tmp_path / "cjk.txt").write_bytes(b"\xfe\xff" + "\u65e5\u672c\n".encode("utf-16-be"))
    (tmp_path / "broken.txt").write_bytes(b"\xff\xfev\x00a")
    (tmp_path / "strange.txt").write_text("Ki\u017f\u017f \u0130\u212a\n")
    (tmp_path / "binary").write_bytes(b"value\0\n")
    (tmp_path / "ignored.log").write_text("value\n")
    (tmp_path / ".hidden").write_text("value\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "-e").mkdir()
    (tmp_path / "-e" / "odd\nname").write_text("value\n")
    return tmp_path


@needs("rg")
@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_engine_changes_no_answer(tree, pattern, everything):
    with Workspace(tree) as python, Workspace(tree, engine="ripgrep") as ripgrep:
        ours = python.grep(pattern, include_ignored=everything)
        theirs = ripgrep.grep(pattern, include_ignored=everything)
    for name in ("matches", "counts", "total_matches", "skipped", "searched_files", "exact"):
        assert getattr(theirs, name) == getattr(ours, name), name
    portable_here = rust_syntax(read_syntax(pattern), ignore_case=False) is not None
    assert theirs.engine == ("ripgrep" if portable_here else "python")


@pytest.mark.parametrize(
    "pattern", [r"(?=a)b", r"(a)\1", r"\Aa", "a++", r"\p{L}", "é", r"a\nb", "[[:alpha:]]"]
)
def test_what_could_mean_something_else_is_not_asked_for(pattern):
    assert rust_syntax(read_syntax(pattern), ignore_case=False) is None


CLASSES = [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", "[ab]", "[^a]", r"[\w.]", r"[^\s]"]
pieces = st.sampled_from([*"ab1_ -.", r"\.", *CLASSES, "(a|b)", "^", "$", r"\b", r"\B"])
repeats = st.sampled_from(["", "", "*", "+", "?", "{2}", "{,2}", "+?"])
patterns = st.lists(st.tuples(pieces, repeats).map("".join), min_size=1, max_size=5).map("".join)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(pattern=patterns, lines=st.lists(st.text("aabB1_ -.\t\x0b\x0c\x1c", max_size=6), max_size=4))
def test_a_portable_pattern_matches_whatever_the_pattern_matches(pattern, lines):
    re2 = pytest.importorskip("re2")
    try:
        compiled = compile_pattern(pattern)
    except ValueError:
        return
    asked = rust_syntax(read_syntax(pattern), ignore_case=False)
    if asked is None:
        return
    if any(compiled.expression.search(line) for line in lines):
        assert re2.search(asked, "\n".join([*lines, ""]))


def stand_in(tmp_path, body):
    path = tmp_path / "fake-rg"
    path.write_text(
        f"#!{sys.executable}\nimport sys, os, time\n"
        "if '--version' in sys.argv:\n    print('ripgrep 14.1.0')\n"
    )
    with path.open("a") as file:
        file.write(f"else:\n    {body}\n")
    path.chmod(0o755)
    ripgrep._version.cache_clear()
    return str(path)


@pytest.mark.skipif(os.name == "nt", reason="a script stands in for rg")
@pytest.mark.parametrize(
    "body",
    [
        "sys.exit(2)",
        "os.kill(os.getpid(), 9)",
        "sys.stdout.write('no/such/file')",
        "sys.stdout.write('plain.txt' + chr(0) + 'utf'); sys.stdout.flush(); os.kill(os.getpid(), 9)",
        "sys.stdout.buffer.write(b'plain.txt' + bytes(1) + b'crl')",
    ],
)
def test_python_searches_when_rg_fails(tree, tmp_path_factory, monkeypatch, body):
    monkeypatch.setenv("AGENTFS_RG", stand_in(tmp_path_factory.mktemp("bin"), body))
    with Workspace(tree, engine="ripgrep") as ws:
        result = ws.grep("value")
    assert (result.engine, result.total_files) == ("python", 6)


@pytest.mark.skipif(os.name == "nt", reason="a script stands in for rg")
def test_what_rg_names_is_opened_through_the_door_and_searched_again(tree, tmp_path_factory, monkeypatch):
    (tmp_path_factory.mktemp("outside") / "secret").write_text("value\n")
    names = ["../outside0/secret", "/etc/passwd", "plain.txt", "ignored.log", "latin.txt"]
    lies = f"sys.stdout.write(chr(0).join({names}) + chr(0))"
    monkeypatch.setenv("AGENTFS_RG", stand_in(tmp_path_factory.mktemp("bin"), lies))
    with Workspace(tree, engine="ripgrep") as ws:
        result = ws.grep("value")
    assert (result.engine, list(result.counts)) == ("ripgrep", ["plain.txt"])


@needs("rg")
def test_what_cannot_be_searched_counts_the_same(tree):
    (tree / "large.txt").write_text("x\n" * 100)
    (tree / "no.txt").write_text("other\n")
    with Workspace(tree) as python, Workspace(tree, engine="ripgrep") as ripgrep:
        ours = python.grep("value", max_filesize=150)
        theirs = ripgrep.grep("value", max_filesize=150)
    assert (theirs.engine, theirs.skipped.too_large) == ("ripgrep", 1)
    assert (theirs.skipped, theirs.searched_files) == (ours.skipped, ours.searched_files)


@pytest.mark.skipif(os.name == "nt", reason="a script stands in for rg")
@pytest.mark.parametrize("said", ["ripgrep 12.1.1", "grep (GNU grep) 3.8", ""])
def test_an_old_rg_is_refused_by_name(tree, tmp_path_factory, monkeypatch, said):
    path = tmp_path_factory.mktemp("bin") / "rg"
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)
    monkeypatch.setenv("AGENTFS_RG", str(path))
    with (
        Workspace(tree, engine="ripgrep") as ws,
        pytest.raises(InvalidArgumentError, match="no ripgrep of version"),
    ):
        ws.grep("value")


def test_rg_is_looked_for_where_it_was_named_then_in_the_extra_then_on_the_path(tmp_path, monkeypatch):
    found = {}
    for place in ("named", "extra", "path"):
        (tmp_path / place).mkdir()
        found[place] = tmp_path / place / ripgrep._NAME
        found[place].write_text("#!/bin/sh\necho 'ripgrep 14.1.0'\n")
        found[place].chmod(0o755)
    monkeypatch.setattr(ripgrep, "_version", lambda _: 14)
    monkeypatch.setenv("AGENTFS_RG", str(found["named"]))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setattr(ripgrep.sysconfig, "get_path", lambda _: str(tmp_path / "extra"))
    assert ripgrep.find_rg() == str(found["named"])
    monkeypatch.delenv("AGENTFS_RG")
    assert ripgrep.find_rg() == str(found["extra"])
    found["extra"].unlink()
    assert ripgrep.find_rg() == str(found["path"])
    found["path"].unlink()
    with pytest.raises(InvalidArgumentError, match="there is none"):
        ripgrep.find_rg()


@pytest.mark.skipif(os.name == "nt", reason="a script stands in for rg")
def test_a_slow_rg_is_stopped_in_time(tree, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("AGENTFS_RG", stand_in(tmp_path_factory.mktemp("bin"), "time.sleep(60)"))
    with Workspace(tree, engine="ripgrep") as ws:
        result = ws.grep("value", timeout=0.5)
    assert (result.exact, result.skipped.reached) == (False, "timeout")
    assert result.elapsed_ms < 20_000


@pytest.mark.skipif(os.name == "nt", reason="a script stands in for rg")
def test_files_that_rg_did_not_name_do_not_use_up_more_than_the_time(tmp_path, tmp_path_factory, monkeypatch):
    for number in range(400):
        (tmp_path / f"{number}.txt").write_text("value\n")

    def slowly(fd):
        time.sleep(0.01)
        return os.fstat(fd).st_size

    monkeypatch.setattr(searcher, "size_of", slowly)
    monkeypatch.setenv("AGENTFS_RG", stand_in(tmp_path_factory.mktemp("bin"), "sys.exit(1)"))
    with Workspace(tmp_path, engine="ripgrep") as ws:
        result = ws.grep("value", timeout=1)
    assert (result.engine, result.skipped.reached) == ("ripgrep", "timeout")
    assert result.searched_files < 400


def test_no_rg_or_an_old_one_is_a_clear_error(tree, monkeypatch):
    monkeypatch.setenv("AGENTFS_RG", "/no/such/rg")
    ripgrep._version.cache_clear()
    with (
        Workspace(tree, engine="ripgrep") as ws,
        pytest.raises(InvalidArgumentError, match="no ripgrep of version"),
    ):
        ws.grep("value")


def test_containment_says_that_rg_opens_paths_by_itself(tree):
    with Workspace(tree) as python, Workspace(tree, engine="ripgrep") as ripgrep:
        assert python.containment["engine"] == "python"
        assert ripgrep.containment == {**python.containment, "engine": "ripgrep"}
        assert ripgrep.view().containment["engine"] == "ripgrep"


@needs("rg")
def test_what_rg_reads_outside_or_of_protected_files_is_shown_by_nothing(tree, tmp_path_factory):
    # rg itself goes wherever a name leads while it runs: here a protected file, and a link that it is given.
    outside = tmp_path_factory.mktemp("outside") / "secret"
    outside.write_text("value of outside\n")
    (tree / ".env").write_text("value=of protected\n")
    (tree / "link").symlink_to(outside)
    with Workspace(tree, engine="ripgrep") as ws:
        result = ws.grep("value", include_ignored=True)
        assert result.engine == "ripgrep"
        assert result.skipped.protected == 1
        assert not {".env", "link"} & set(result.counts)
        assert "of outside" not in result.text
        assert "of protected" not in result.text
