"""The acceptance table of hostile inputs: each row by the workspace's methods.

The number of a row stands in the name or the id of its tests. Rows 51 and 52 are of Windows, shown on their
text. Other rows are with what they are about:

* 38 to 40, swapped directories: `tests/faults/test_races.py`
* 45, sparse files: `tests/faults/test_endless.py`
* 46, 48, 49 and 58, long lines, binary files and endless patterns: `tests/search`
* 53 to 57, encodings, modes and hard links: `tests/editing/test_encodings.py`, `tests/fs/test_batch.py`
* 62, forged footers: `tests/reading/test_page.py`; 64, unread files: `tests/editing/test_write.py`
"""

import os
import pty
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentfs import AgentFSError, Edit, Limits, LineChange, Workspace
from tests import kit
from tests.fs.mechanisms import change
from tests.kit import put, refused

SECRET = "the secret outside"
OPENING = ("read", "write", "edit", "multi_edit", "edit_lines", "splice", "grep")
OUT = "outside_workspace"


class Arena:
    """A workspace, with a secret in a directory beside its root."""

    def __init__(self, top: Path, ws: Workspace) -> None:
        self.top, self.out, self.ws = top, top.parent / "out", ws

    def code(self, call: Callable[[], Any]) -> str:
        """Return "ok" or the code of the error. Fail if the answer shows anything from outside."""
        try:
            said = call()
        except AgentFSError as error:
            text = str(error) + str(error.details)
            code = error.code
        else:
            text, code = str(getattr(said, "text", said)) + str(said), "ok"
        assert SECRET not in text
        return code

    def by_every_method(self, path: str) -> dict[str, str]:
        """Return the code of each method that takes a path, given this one."""
        ws = self.ws
        calls: dict[str, Callable[[], Any]] = {
            "read": lambda: ws.read(path),
            "write": lambda: ws.write(path, "x\n", overwrite=True),
            "edit": lambda: ws.edit(path, "secret", "x"),
            "multi_edit": lambda: ws.multi_edit(path, [Edit("secret", "x")]),
            "edit_lines": lambda: ws.edit_lines(path, [LineChange(line_id="abcdef", new_content="x")]),
            "splice": lambda: kit.splice(ws, path, [(0, 1, "x")]),
            "ls": lambda: ws.ls(path),
            "glob": lambda: ws.glob("*", path),
            "find": lambda: kit.find(ws, path),
            "grep": lambda: ws.grep("secret", path),
            "move to": lambda: ws.move("f", path),
            "move": lambda: ws.move(path, "moved"),
            "delete": lambda: ws.delete(path),
        }
        return {name: self.code(call) for name, call in calls.items()}

    def outside(self) -> list[tuple[str, bytes, int]]:
        """Return the content of the outside directory."""
        found = [p for name in ("out", "rootevil") for p in (self.top.parent / name).rglob("*")]
        return sorted((str(p), p.read_bytes() if p.is_file() else b"", p.lstat().st_mode) for p in found)


@pytest.fixture
def arena(tmp_path):
    top = tmp_path / "root"
    put(top, {"f": "f\n", "a/t": "a/t\n", "a/b/t": "a/b/t\n"})
    put(tmp_path, dict.fromkeys(["out/f", "out/secret", "rootevil/f", "rootevil/secret"], SECRET))
    with Workspace(top) as ws:
        made = Arena(top, ws)
        before = made.outside()
        yield made
        assert made.outside() == before


def rows(table: dict[str, list[Any]], *names: str) -> Any:
    """Parametrize by a table of rows of one number, which becomes the id."""
    params = [
        pytest.param(*(each if len(names) > 1 else [each]), id=f"{row}-{number}")
        for row, those in table.items()
        for number, each in enumerate(those)
    ]
    return pytest.mark.parametrize(names, params)


# No method shows or changes anything outside.
@rows({
    "1": [("..", OUT)],
    "2": [("../", OUT)],
    "3": [("a/../../x", OUT), ("a/../../out/secret", OUT)],
    "4": [("../root/f", OUT)],
    "7": [("/etc/passwd", OUT)],
    "9": [("{root}evil/f", OUT)],
    "10": [("{root}/../out/secret", OUT)],
    "11": [("", "invalid_path")],
    "12": [("f\0.txt", "invalid_path")],
    "13": [("a\ud800", "invalid_path")],
    "14": [("x" * 256, "name_too_long"), ("abcd/" * 1000 + "x", "name_too_long")],
    "16": [("C:\\Users\\x", "invalid_path"), ("\\\\host\\share\\x", "invalid_path")],
    "19": [("f/", "not_a_directory"), ("f/x", "not_a_directory"), ("f/.", "not_a_directory")],
}, "path", "outcome")  # fmt: skip
def test_paths_that_every_method_refuses(arena, path, outcome):
    codes = arena.by_every_method(path.replace("{root}", arena.ws.root))
    if not path:  # searches take an empty directory as the root, because models fill in optional arguments
        assert {codes.pop(name) for name in ("ls", "glob", "find", "grep")} == {"ok"}
    assert set(codes.values()) == {outcome}, codes
    assert sorted(os.listdir(arena.top)) == ["a", "f"]
    assert (arena.top / "f").read_text() == "f\n"


@rows({
    "5": [("a/../f", "f\n")],
    "8": [("{root}/f", "f\n")],
    "17": [("[...slug]/p.tsx", "odd"), ("a..b", "odd")],
    "18": [("./a//./t", "a/t\n")],
    "20": [(name, "odd") for name in ("-rf", "a b", "$(x)", "*", "~", "é")],
}, "path", "outcome")  # fmt: skip
def test_paths_that_stay_inside_work(arena, path, outcome):
    path = path.replace("{root}", arena.ws.root)
    if outcome == "odd":
        arena.ws.write(path, "odd")
        assert (arena.top / path).read_text() == "odd"
        assert path in arena.ws.glob("**").text.splitlines()
    assert arena.ws.read(path).content == outcome
    assert arena.ws.edit(path, outcome.strip(), "changed").replacements == 1
    assert arena.ws.grep("changed", path).total_matches == 1


@rows(
    {"15": [("~/x", "`~` is not expanded"), ("%2e%2e/out/secret", ""), ("file:///etc/passwd", "URL")]},
    *("path", "outcome"),
)
def test_spellings_of_other_systems_are_literal(arena, path, outcome):
    error = refused(lambda: arena.ws.read(path), "not_found")
    assert outcome in error.hint
    arena.ws.write(path, "literal")
    assert (arena.top / path).read_text() == "literal"


@rows({"19": [
    ("f/..", "not_a_directory"), ("a", "not_a_file"), ("a/", "not_a_file"), (".", "not_a_file"),
    ("a/none", "not_found"), ("none/../f", "not_found"),
]}, "path", "outcome")  # fmt: skip
def test_a_path_that_leads_to_no_file_is_not_opened(arena, path, outcome):
    assert arena.code(lambda: arena.ws._root.open_file(path)) == outcome


@rows({"21": ["a\nb", "a\x1b[2Jb", "a\u202eb"]}, "path")
def test_a_name_of_several_lines_is_shown_on_one(arena, path):
    arena.ws.write(path, "odd\n")
    shown = path.replace("\n", "⟦U+000A⟧").replace("\x1b", "⟦U+001B⟧").replace("\u202e", "⟦U+202E⟧")
    for text in (arena.ws.ls().text, arena.ws.glob("*").text, arena.ws.grep("odd").text):
        assert path not in text
        assert any(line.lstrip('"').startswith(shown) for line in text.splitlines()), text
    assert arena.ws.read(path).content == "odd\n"


def test_22_a_name_that_is_not_utf8_is_listed_and_leads_back(arena):
    (arena.top / os.fsdecode(b"caf\xe9")).write_text("odd")
    (name,) = arena.ws.glob("caf*").files
    assert name.path == "caf\\xe9"
    assert arena.ws.read(name.path).content == "odd"
    arena.ws.write("caf\\xe9", "new")
    assert sorted(os.listdir(os.fsencode(arena.top))) == [b"a", b"caf\xe9", b"f"]


def test_23_names_that_look_alike_are_two_files_and_one_alone_is_found(arena):
    one, two = "caf\u00e9", "cafe\u0301"
    arena.ws.write(one, "composed")
    read = arena.ws.read(two)
    assert (read.content, read.path) == ("composed", two)
    assert read.notes == (f'the name is "{one}", in another Unicode form or with other spaces',)
    arena.ws.write(two, "composed again")
    arena.ws.edit(two, " again", "")
    assert not (arena.top / two).exists()
    (arena.top / two).write_text("decomposed")
    assert [arena.ws.read(name).content for name in (one, two)] == ["composed", "decomposed"]


def test_6_two_dots_after_a_link_resolve_as_in_the_system(arena):
    (arena.top / "l").symlink_to("a/b")
    assert arena.ws.read("l/../t").content == "a/t\n" == (arena.top / "l" / ".." / "t").read_text()


# A link as the target of a move, moved and deleted: the link itself is changed, never its target.
LINK_ITSELF = ("already_exists", "ok", "not_found")


@rows({
    "24": [("l", "{out}"), ("l", "{out}/secret"), ("l", "a/../../out/secret"), ("l", "{out}/none")],
    "25": [("l/", "{out}")],
    "26": [("l/.", "{out}")],
    "27": [("l/secret", "{out}")],
    "28": [("l/secret", "../out"), ("l/root/../out/secret", ".."), ("l/out/secret", ".."),
           ("a/l/secret", "../../out")],
    "30": [("chain", "chain1"), ("chain/secret", "chain1")],
    "34": [("l", "/proc/self/root{out}/secret"), ("l/{out}/secret", "/proc/self/root"),
           ("l", "/proc/self/fd/0"), ("l/x", "/proc/self/cwd")],
}, "path", "outcome")  # fmt: skip
def test_links_that_lead_out_are_refused(arena, path, outcome):
    (arena.top / "chain1").symlink_to("a/chain2")
    (arena.top / "a" / "chain2").symlink_to(arena.out)
    link = "a/l" if path.startswith("a/") else path.split("/", 1)[0]
    os.symlink(outcome.replace("{out}", str(arena.out)), arena.top / link)
    assert arena.code(lambda: arena.ws._root.open_directory(path.replace("{out}", str(arena.out)))) == OUT
    codes = arena.by_every_method(path.replace("{out}", str(arena.out)))
    taken, *itself = LINK_ITSELF
    if path.rstrip("/.") == link:  # the link itself may be moved, not its target
        assert [codes.pop("move"), codes.pop("delete")] == itself
    if path == link:
        assert codes.pop("move to") == taken
    assert set(codes.values()) == {OUT}, codes


@rows({"29": [("l/t", "a"), ("l/t", "{root}/a"), ("l", "a/t"), ("l", "{root}/a/t")]}, "path", "outcome")
def test_links_that_stay_inside_are_followed(arena, path, outcome):
    os.symlink(outcome.replace("{root}", arena.ws.root), arena.top / "l")
    assert arena.ws.read(path).content == "a/t\n"
    assert '[through a link to "a/t"' in arena.ws.read(path).text
    assert any('"a/t"' in note for note in arena.ws.edit(path, "a/t", "changed").notes)
    assert "link" not in arena.ws.read("a/t").text
    assert (arena.top / "a" / "t").read_text() == "changed\n"
    assert (arena.top / "l").is_symlink()
    assert f"l -> {os.readlink(arena.top / 'l')}" in arena.ws.ls().text


def test_31_link_loops_end_with_an_error(arena):
    (arena.top / "loop").symlink_to("loop")
    (arena.top / "l0").symlink_to("f")
    for number in range(1, 42):
        (arena.top / f"l{number}").symlink_to(f"l{number - 1}")
    assert arena.ws.read("l39").content == "f\n"
    assert arena.code(lambda: arena.ws._root.open_directory("loop/x")) == "link_loop"
    for path in ("loop", "l40"):
        codes = arena.by_every_method(path)
        assert (codes.pop("move to"), codes.pop("move"), codes.pop("delete")) == LINK_ITSELF
        assert set(codes.values()) == {"link_loop"}, codes
        (arena.top / "moved").unlink()


def test_32_a_dangling_link_out_creates_nothing(arena):
    """One that leads inside creates its target (row 33)."""
    (arena.top / "l").symlink_to(arena.out / "new")
    (arena.top / "m").symlink_to("a/new")
    assert arena.code(lambda: arena.ws.write("l", "x", overwrite=True)) == OUT
    assert not (arena.out / "new").exists()
    arena.ws.write("m", "x")
    assert (arena.top / "a" / "new").read_text() == "x"
    assert (arena.top / "l").is_symlink()
    assert (arena.top / "m").is_symlink()


def test_35_links_that_expand_past_the_path_limit(arena):
    spelled = [chr(ord("a") + number) * 240 for number in range(20)]
    directory = os.open(arena.top, os.O_RDONLY)
    for number, name in enumerate(spelled):
        os.mkdir(name, dir_fd=directory)
        os.symlink(name, f"l{number}", dir_fd=directory)
        below = os.open(name, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.symlink(arena.out / "secret", "end", dir_fd=directory)
    os.close(directory)
    path = "/".join([*(f"l{number}" for number in range(20)), "end"])
    assert (arena.top / path).resolve().is_relative_to(arena.top), "the naive check calls it inside"
    assert (arena.top / path).read_text() == SECRET, "and the naive open is outside"
    codes = arena.by_every_method(path)
    last = codes.pop("move to"), codes.pop("move"), codes.pop("delete")
    assert last == LINK_ITSELF or {*last} == {"name_too_long"}  # as a path, it is not valid for the system
    assert set(codes.values()) <= {OUT, "name_too_long"}, codes


def test_36_a_link_to_a_protected_file_is_protected(arena):
    (arena.top / ".env").write_text("PASSWORD=hunter2\n")
    (arena.top / "notes.md").symlink_to(".env")
    codes = arena.by_every_method("notes.md")
    assert {codes[name] for name in OPENING} == {"protected"}
    assert (arena.top / ".env").read_text() == "PASSWORD=hunter2\n"


def test_37_a_link_to_files_that_run_code_changes_nothing(arena):
    put(arena.top, {".git/config": "[core]\n"})
    (arena.top / "cfg.json").symlink_to(".git/config")
    assert arena.code(lambda: arena.ws.write("cfg.json", "x", overwrite=True)) == "protected"
    assert arena.code(lambda: arena.ws.edit("cfg.json", "core", "x")) == "protected"
    assert (arena.top / ".git" / "config").read_text() == "[core]\n"


def test_41_a_directory_moved_out_during_a_write(arena):
    """The file lands in the moved directory or the write is refused. Nothing is created at the old path."""
    moved = arena.top.parent / "moved"

    def compute(_: object) -> bytes:
        if not moved.exists():
            (arena.top / "a").rename(moved)
        return b"written"

    code = arena.code(lambda: change(arena.ws._root, "a/t", compute, max_bytes=99))
    assert code in {"ok", "not_found", "io", "busy"}
    assert (moved / "t").read_bytes() == (b"written" if code == "ok" else b"a/t\n")
    assert sorted(os.listdir(moved)) == ["b", "t"], "no temporary is left"
    assert os.listdir(arena.top) == ["f"]


def bind(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as plug:
        plug.bind(path)


def make_device(path: str) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no devices may be made here")


@pytest.mark.parametrize(
    "make", [os.mkfifo, bind, make_device], ids=["42 a FIFO", "43 a socket", "43 a device"]
)
def test_42_a_fifo(arena, monkeypatch, make):
    """No method waits for a special file or reads it; one may move it."""
    monkeypatch.chdir(arena.top)
    path = "special"
    make(path)
    inode = (arena.top / path).lstat().st_ino
    begun = time.process_time()
    codes = arena.by_every_method(path)
    searched = arena.ws.grep("x", include_ignored=True).skipped.special
    assert time.process_time() - begun < 0.05 * (len(codes) + 1)
    assert searched >= 1
    assert {codes[name] for name in OPENING} == {"not_regular"}, codes
    (found,) = (each for each in arena.top.rglob("*") if each.lstat().st_ino == inode)
    assert not stat.S_ISREG(found.lstat().st_mode)


def test_43_a_tty():
    one, two = pty.openpty()
    try:
        directory, name = os.path.split(os.ttyname(two))
        with Workspace("/") as ws:
            refused(lambda: ws.read(f"{directory}/{name}"), "not_regular")
    finally:
        os.close(one)
        os.close(two)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs procfs")
def test_44_an_endless_file_of_size_0(arena):
    with Workspace("/proc/self", limits=Limits(read_bytes=2000)) as ws:
        page = ws.read("maps")
        assert page.truncated_by == "bytes"
        assert len(page.content) <= 2000
        with ws._root.open_file("maps") as file:
            assert file.stat.st_size == 0
            assert len(file.read(100)) == 100


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """A tree of 5,000 levels, with a file at its top."""
    top = tmp_path_factory.mktemp("deep")
    (top / "t").write_text("top\n")
    handle = os.open(top, os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    yield top
    subprocess.run(["rm", "-rf", str(top)], check=True)  # too deep for shutil


@pytest.mark.full
def test_47_more_entries_than_the_walk_limit_and_a_tree_5000_deep(arena, deep):
    with Workspace(deep, limits=Limits(timeout=30)) as ws:
        found = ws.glob("**", types="d")
        assert found.skipped.too_deep == 1
        assert "too deep" in found.text
        assert ws.grep("top").total_matches == 1
        assert ws.ls(depth=0).skipped.too_deep == 1
    for number in range(300):
        (arena.top / "a" / f"n{number}").touch()
    with Workspace(arena.top, limits=Limits(walk_entries=200)) as ws:
        for result in (ws.glob("**"), ws.grep("f"), ws.ls("a"), kit.find(ws)):
            assert result.skipped.reached == "walk_entries"
            assert "stopped early" in result.text


READ = [
    ".ENV",
    ".Env.",
    ".env::$DATA",
    ".Git/config",
    "GIT~1/config",
    ".git::$INDEX_ALLOCATION/config",
    ".ENV~",
]
WRITE = [".Git/HEAD", ".git /HEAD", ".git./HEAD", "GIT~1/HEAD", ".git::$INDEX_ALLOCATION/HEAD"]
WRITE += [".g\u200cit/HEAD"]


@rows({"50": [*((each, "read") for each in READ), *((each, "write") for each in WRITE)]}, "path", "outcome")
def test_other_spellings_of_protected_names(arena, path, outcome):
    assert arena.code(lambda: arena.ws.write(path, "x", overwrite=True)) == "protected"
    assert sorted(os.listdir(arena.top)) == ["a", "f"]
    place = arena.top / path  # another name on this file system, and protected all the same
    place.parent.mkdir(exist_ok=True)
    place.write_text("here\n")
    codes = arena.by_every_method(path)
    assert {codes[name] for name in ("write", "edit", "delete", "move")} == {"protected"}, codes
    assert codes["move to"] in {"protected", "already_exists"}
    assert codes["read"] == ("protected" if outcome == "read" else "ok")


@rows({
    "59": [("(?:" + "()" * 160 + "){500}", "invalid_pattern"), ("(?:a{1000}){1000}", "invalid_pattern")],
    "60": [("foo(", "invalid_pattern"), ("a|" * 50_000, "invalid_pattern"), ("(?=f)", "ok")],
}, "path", "outcome")  # fmt: skip
def test_huge_and_invalid_patterns_end_quickly(arena, path, outcome):
    begun = time.process_time()
    assert arena.code(lambda: arena.ws.grep(path)) == outcome
    assert time.process_time() - begun < 1.0


@rows(
    {"61": [("**/../../*", OUT), ("../*", OUT), ("/etc/*", "ok"), ("{a,b}" * 20, "invalid_pattern")]},
    *("path", "outcome"),
)
def test_globs_that_lead_out_or_expand_endlessly_find_nothing_outside(arena, path, outcome):
    begun = time.process_time()
    assert arena.code(lambda: arena.ws.glob(path)) == outcome
    assert arena.code(lambda: arena.ws.grep("f", glob=path)) == outcome
    assert arena.code(lambda: kit.find(arena.ws, glob=path)) == outcome
    assert time.process_time() - begun < 2.0
