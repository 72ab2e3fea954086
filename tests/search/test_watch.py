"""A watched workspace answers as one that is opened at that moment, whatever happens to the tree."""

import functools
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from agentfs import AgentFSError, Workspace
from agentfs.watch import kept_texts
from tests.search.watched import CALLS, LIMITS, check_same

# A campaign with many examples compares all calls at once; an ordinary run compares a third at a time.
EXAMPLES = os.environ.get("AGENTFS_WATCH_EXAMPLES")
PARTS = 1 if EXAMPLES else 3
DIRECTORIES = ["", "a", "b", "a/b", "a/b/c", ".hidden", "build", ".git", ".git/info", "lib"]
FILES = ["x.txt", "y.py", "build", ".gitignore", ".ignore", ".env", ".dot", "é.txt", "exclude", "HEAD"]
RULES = ["build/\n", "*.txt\n", "!x.txt\n", "y.py\nb\n", "", "# nothing\n", "/a\n"]
CONTENTS = [
    b"", b"needle\n", b"one\nNeedle two\nneedle\n", b"\x00needle\n", "\ufeffneedle é\n".encode(),
    "needle wide\n".encode("utf-16"), b"needle \xff latin\r\nneedle\r\n", b"x" * 40_000,
    b"hay\n" * 3000, b"hay\n" * 9000 + b"needle\n", "neeſdle ſ\n".encode(),
]  # fmt: skip


def put(path, content, mode="wb"):
    """Write a file; if it has become a FIFO, fail instead of waiting for a reader."""
    with open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK, 0o666)) as file:
        file.write(content)


def change(**given):
    """Return `rule` for a change by others, which the state of the tree may forbid."""

    def decorate(act):
        @functools.wraps(act)
        def run(self, **values):
            with suppress(OSError):
                act(self, **values)

        return rule(**given)(run)

    return decorate


class Changes(RuleBasedStateMachine):
    """Random changes by others and by the workspace itself; every search then compared with a cold one."""

    directories = st.sampled_from(DIRECTORIES)
    names = st.sampled_from(FILES)
    contents = st.sampled_from(CONTENTS)

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.base = Path(tempfile.mkdtemp(prefix="agentfs-watch-"))
        self.root = self.base / "root"
        self.outside = self.base / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        (self.outside / "x.txt").write_text("needle outside\n")
        self.watched = self.open()

    def open(self):
        return Workspace(self.root, limits=LIMITS, watch=True)

    def teardown(self):
        self.patch.undo()
        self.watched.close()
        shutil.rmtree(self.base, ignore_errors=True)

    @initialize(first_kept=st.sampled_from([1, 7, 1000]))
    def first_tree(self, first_kept):
        self.patch.setattr(kept_texts, "_FIRST_KEPT", first_kept)
        for directory in DIRECTORIES:
            (self.root / directory).mkdir(exist_ok=True)
            (self.root / directory / "x.txt").write_bytes(CONTENTS[2])
        (self.root / "linked").symlink_to("a")
        self.check(0)

    def at(self, directory, name):
        return self.root / directory / name

    @change(directory=directories, name=names, content=contents)
    def write(self, directory, name, content):
        put(self.at(directory, name), content)

    @change(directory=directories, content=contents)
    def append(self, directory, content):
        put(self.at(directory, "x.txt"), content, "ab")

    @change(directory=directories, size=st.sampled_from([0, 3, 20_000]))
    def truncate(self, directory, size):
        os.truncate(self.at(directory, "x.txt"), size)

    @change(directory=directories, content=contents, back=st.booleans())
    def write_same_size_and_time(self, directory, content, back):
        path = self.at(directory, "x.txt")
        status = path.stat()
        with path.open("r+b") as file:
            file.write(content[: status.st_size])
        if back:
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    @change(
        directory=st.sampled_from(["", "a", "a/b"]),
        text=st.sampled_from(RULES),
        name=st.sampled_from([".gitignore", ".ignore"]),
    )
    def rules(self, directory, text, name):
        put(self.at(directory, name), text.encode())

    @change(text=st.sampled_from(RULES))
    def exclude(self, text):
        (self.root / ".git/info").mkdir(parents=True, exist_ok=True)
        for name in ("objects", "refs"):
            (self.root / ".git" / name).mkdir(exist_ok=True)
        put(self.root / ".git/HEAD", b"ref: refs/heads/main\n")
        put(self.root / ".git/info/exclude", text.encode())

    @change(one=directories, other=directories, name=names, new=names)
    def rename(self, one, other, name, new):
        self.at(one, name).rename(self.at(other, new))

    @change(one=directories, other=directories)
    def move_directory(self, one, other):
        if one:
            self.at(one, "").rename(self.at(other, f"moved{len(one)}"))

    @change(directory=directories, stays=st.booleans(), write=st.booleans())
    def move_out(self, directory, stays, write):
        if directory:
            away = self.outside / "away"
            shutil.rmtree(away, ignore_errors=True)
            self.at(directory, "").rename(away)
            if write:
                put(away / "x.txt", b"needle while away\n")
            if not stays:
                away.rename(self.at(directory, ""))

    @change(directory=directories)
    def make(self, directory):
        self.at(directory, "").mkdir(parents=True)

    @rule(directory=directories)
    def remove_tree(self, directory):
        if directory:
            shutil.rmtree(self.at(directory, ""), ignore_errors=True)

    @change(directory=directories, content=contents)
    def delete_and_recreate(self, directory, content):
        if directory:
            shutil.rmtree(self.at(directory, ""), ignore_errors=True)
            self.at(directory, "").mkdir()
            put(self.at(directory, "x.txt"), content)

    @change(directory=directories, name=names)
    def delete(self, directory, name):
        self.at(directory, name).unlink()

    @change(directory=directories, name=names, mode=st.sampled_from([0o644, 0o755, 0o600]))
    def chmod(self, directory, name, mode):
        self.at(directory, name).chmod(mode)

    @change(
        one=directories, other=directories, name=names, new=names, content=contents, then=st.integers(0, 4)
    )
    def hard_link(self, one, other, name, new, content, then):
        os.link(self.at(one, name), self.at(other, new))
        if then:
            with self.at(other, new).open("r+b") as file:
                file.write(content)
        if then == 2:
            self.at(other, new).unlink()
        elif then == 3:
            self.at(other, new).rename(self.outside / "linked")
        elif then == 4:
            self.at(other, new).rename(self.at(one, "moved")).unlink()

    @change(
        directory=directories, name=names, to=st.sampled_from(["x.txt", "../a", "b", "/etc", "../outside"])
    )
    def link(self, directory, name, to):
        self.at(directory, name).symlink_to(to)

    @change(directory=directories, name=names)
    def replace_by_fifo(self, directory, name):
        self.at(directory, name).unlink()
        os.mkfifo(self.at(directory, name))

    @rule(directory=directories, content=contents)
    def own_change(self, directory, content):
        with suppress(AgentFSError):
            path = os.path.join(directory, "y.py")
            self.watched.write(path, content.decode("latin-1"), overwrite=True)

    @precondition(lambda self: self.watched.watch is not None)
    @rule()
    def forget(self):
        self.watched.forget()

    @rule(call=st.sampled_from(CALLS))
    def one_call(self, call):
        check_same(self.watched, self.root, [call])

    @rule(part=st.integers(0, PARTS - 1))
    def check(self, part):
        check_same(self.watched, self.root, CALLS[part::PARTS])


SETTINGS = settings(
    max_examples=int(EXAMPLES or "3"),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestChanges = Changes.TestCase
TestChanges.settings = SETTINGS
