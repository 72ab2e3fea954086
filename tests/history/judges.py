"""Judges of the journal: snapshots of a tree, and git."""

import os
import shutil
import subprocess
from pathlib import Path

from agentfs import Edit, LineChange, Workspace
from tests import kit

# Names for random calls on the tree that `original` makes.
FILES = ["a.txt", "b.bin", "run.sh", "d/one", "d/two", "d/e/deep", "new/x", "new/y/z", "link"]
FILES += ["sp ace", "q\"\\'t", "é", "dangling"]
Snapshot = dict[str, tuple[str, int, bytes]]


def original(top: Path) -> Path:
    """Make a tree with contents, modes and links of each kind."""
    (top / "d" / "e").mkdir(parents=True)
    (top / "empty").mkdir(mode=0o700)
    (top / "a.txt").write_bytes(b"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n")
    (top / "b.bin").write_bytes(b"\0\1\2" * 50)
    (top / "run.sh").write_bytes(b"#!/bin/sh\necho\n")
    (top / "run.sh").chmod(0o755)
    kit.put(top, {"d/one": b"caf\xe9\nlatin\n", "d/e/deep": b""})
    (top / "d" / "e" / "deep").chmod(0o640)
    (top / "link").symlink_to("d/one")
    (top / "dangling").symlink_to("new/target")
    return top


def snapshot(top: Path, *, directories: bool = True) -> Snapshot:
    """Everything in a tree: what it is, its permissions, its bytes; links by their target."""
    found: Snapshot = {}
    for path in sorted(top.rglob("*")):
        name = os.fsdecode(os.path.relpath(path, top))
        mode = path.lstat().st_mode & 0o777
        if path.is_symlink():
            found[name] = ("link", 0, os.fsencode(os.readlink(path)))
        elif path.is_file():
            found[name] = ("file", mode, path.read_bytes())
        elif directories:
            found[name] = ("directory", mode, b"")
    return found


def as_git_sees(tree: Snapshot) -> Snapshot:
    """The same with of each mode only what git keeps, and without directories."""
    return {
        name: (kind, mode & 0o100, data) for name, (kind, mode, data) in tree.items() if kind != "directory"
    }


def git_applied(original: Path, patch: bytes, scratch: Path) -> Snapshot:
    """Return the result of `git apply` on a copy of the original tree."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(original, scratch, symlinks=True)
    if patch:
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"],
            cwd=scratch,
            input=patch,
            capture_output=True,
            check=False,
            env={"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(scratch.parent)},
        )
        assert done.returncode == 0, (done.stderr.decode(), patch)
    return snapshot(scratch)


def can_mount() -> bool:
    """Return True if a test may mount something in its own name space."""
    command = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def reopening(kind, tmp_path, **options):
    """Yield a function that opens `root` anew if its kind is "state", so that its history goes on."""
    current = []
    (tmp_path / "root").mkdir(exist_ok=True)

    def reopen(**more):
        if not current or kind == "state" or more:
            for ws in current:
                ws.close()
            given = {"state": tmp_path / "state"} if kind == "state" else {"watch": kind == "watched"}
            current[:] = [Workspace(tmp_path / "root", **given, **options, **more)]
        return current[0]

    yield reopen
    for ws in current:
        ws.close()


def standing(ws):
    """The steps that can be undone, in order; the first of a transaction stands for all of them."""
    log = ws._journal.log
    return [log.step(unit[-1].number) for unit in reversed(log.units()[0])]


def undone(ws):
    """The steps that took back others, and can be redone."""
    log = ws._journal.log
    return [log.step(unit[-1].number) for unit in reversed(log.units()[1])]


def random_call(ws, draw, files, directories=()):
    """Make a random call; its error is raised, and KeyError by a transaction that is taken back."""
    name, other, text = draw.choice(files), draw.choice(files), f"one\n{draw.random()}\nthree\n"
    match draw.randrange(14):
        case 0 | 1:
            ws.write(name, text)
        case 2:
            ws.edit(name, "one", draw.choice(["one\none", "eins"]), replace_all=True)
        case 3:
            ws.multi_edit(name, [Edit("three", "drei"), Edit("drei", text)])
        case 4:
            for line_id in ws.read(name, line_ids=True).line_ids[:1]:
                ws.edit_lines(name, [LineChange(line_id=line_id, new_content=text)])
        case 5:
            kit.splice(ws, name, [(0, 1, "x")])
        case 6:
            ws.delete(draw.choice([*files, *directories]))
        case 7:
            ws.move(name, other)
        case 8 | 9:
            ws.undo(draw.choice([1, 1, 2, 3]))
        case 10:
            ws.redo(draw.choice([1, 1, 2]))
        case 11:
            ws.checkpoint(draw.choice("PQR"))
        case 12:
            ws.rollback(draw.choice("PQR"))
        case 13:
            with ws.transaction() as tx:
                tx.write(name, text)
                tx.write(other, text)
                tx.delete(draw.choice(files))
                tx.move(draw.choice(files), draw.choice(files))
                if draw.random() < 0.3:
                    raise KeyError
