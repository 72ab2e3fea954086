"""Changes in directories with very many names, or with names that are listed slowly."""

import os
import time
from collections.abc import Iterator
from typing import Self

import pytest

from agentfs import Workspace
from tests.kit import put, refused


class Counted:
    """An `os.scandir` that counts its entries and is slow for each."""

    seen = 0
    pause = 0.0

    def __init__(self, real) -> None:
        self.real = real
        self.close = real.close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[os.DirEntry]:
        for entry in self.real:
            Counted.seen += 1
            time.sleep(Counted.pause)
            yield entry


@pytest.fixture(scope="module")
def many_names(tmp_path_factory):
    top = tmp_path_factory.mktemp("many")
    (top / "d").mkdir()
    for number in range(3000):
        (top / "d" / f"{number}").touch()
    return top


@pytest.fixture
def many(many_names, monkeypatch):
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda *path: Counted(real(*path)))
    monkeypatch.setattr(Counted, "seen", 0)
    with Workspace(many_names) as ws:
        yield ws


def test_delete_does_not_list_all_of_a_large_directory(many):
    error = refused(lambda: many.delete("d"), "not_a_file")
    assert "(at least 100 entries)" in str(error)
    assert error.details["entries"] == 100
    assert Counted.seen <= 200


def test_delete_counts_the_entries_of_a_small_directory(ws, tmp_path):
    put(tmp_path, dict.fromkeys(["d/a", "d/b", "d/c"], ""))
    assert "(3 entries)" in str(refused(lambda: ws.delete("d"), "not_a_file"))


@pytest.mark.parametrize("content", [b"never read\n", b"\x00binary", "\u00e9\n".encode("latin-1"), b""])
def test_delete_needs_no_earlier_read(ws, tmp_path, content):
    file = tmp_path / "f"
    file.write_bytes(content)
    file.chmod(0o640)
    ws.delete("f")
    assert not file.exists()
    ws.undo()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (content, 0o640)
    ws.read("f")
    file.write_bytes(content + b"changed after it was read\n")
    with ws.transaction() as tx:
        tx.delete("f")
    assert not file.exists()
    ws.undo()
    assert file.read_bytes() == content + b"changed after it was read\n"


@pytest.mark.full  # it measures time
@pytest.mark.parametrize(("call", "code"), [
    (lambda ws: ws.delete("d"), "not_a_file"), (lambda ws: ws.edit("d/none", "x", "y"), "not_found"),
    (lambda ws: ws.write("d/new", "x"), None), (lambda ws: ws.write("d/n\u00fc", "x"), None),
], ids=["delete", "edit", "write", "write twin"])  # fmt: skip
def test_a_slow_directory_does_not_delay_a_call(many, monkeypatch, call, code):
    """Listing all names would take 15 seconds."""
    monkeypatch.setattr(Counted, "pause", 0.005)
    start = time.monotonic()
    refused(lambda: call(many), code) if code else call(many)
    assert time.monotonic() - start < 5


def test_a_file_that_comes_and_goes_during_the_delete_makes_it_stale(ws, tmp_path, monkeypatch):
    """It was `io` with "Directory not empty", although the directory is empty again."""
    (tmp_path / "d").mkdir()
    real = os.rmdir

    def rmdir(path, **options):
        (tmp_path / "d" / "new").touch()
        try:
            real(path, **options)
        finally:
            (tmp_path / "d" / "new").unlink()

    monkeypatch.setattr(os, "rmdir", rmdir)
    refused(lambda: ws.delete("d"), "stale")
    assert (tmp_path / "d").is_dir()
    monkeypatch.undo()
    ws.delete("d")
