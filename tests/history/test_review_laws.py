"""The laws of `review`, on random histories of tools, commands, programs and others.

The judges are `git apply -R` with a patch that the test writes from the hunks, and a model that keeps the
author of each line.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentfs import Workspace
from agentfs.errors import ConflictError
from agentfs.results import FileReview, Hunk, Review
from tests.conftest import law, needs
from tests.history.judges import Snapshot, as_git_sees, snapshot

pytestmark = needs("git")

NAMES = ("a.txt", "b.txt", "d/c.txt", "d/new.txt")
AUTHORS = ("tool", "tool", "program", "command", "other")
Step = tuple[str, int, int, int, int, int]
EDITS = st.tuples(
    st.sampled_from(("edit", "edit", "edit", "edit", "delete", "move", "mode", "accept")),
    st.integers(0, len(NAMES) - 1),
    st.integers(0, len(AUTHORS) - 1),
    st.integers(0, 12),  # the first line
    st.integers(0, 3),  # how many lines are removed
    st.integers(0, 3),  # how many lines are added
)
HISTORIES = st.lists(EDITS, max_size=14)
SUBSETS = st.integers(0, 2**16)


class Model:
    """The lines of each file, each with its author; None for a line of the base."""

    def __init__(self, distinct: bool) -> None:
        self.files: dict[str, list[tuple[str, Any]]] = {}
        self.removed: dict[str, dict[str, Any]] = {}  # the remover of each line of the base
        self._distinct, self._count = distinct, 0

    def line(self) -> str:
        self._count += 1
        return f"line {self._count}\n" if self._distinct else f"{self._count % 3}\n"

    def text(self, name: str) -> str:
        return "".join(line for line, _ in self.files[name])


class Site:
    """A tree with a workspace, on which random steps are taken, and the model of it."""

    def __init__(self, top: Path, *, distinct: bool, state: Path | None = None) -> None:
        self.top, self.model, self.state = top / "tree", Model(distinct), state
        for name in NAMES[:3]:
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            self.model.files[name] = [(self.model.line(), None) for _ in range(10)]
            path.write_text(self.model.text(name))
        self.workspace = Workspace(self.top, state=state)
        self.touched: set[str] = set()
        self.accepted = False

    @contextmanager
    def written_by(self, author: str) -> Iterator[Any]:
        """Give a function that writes a text, or deletes, moves or changes the mode, as an author."""
        workspace, top = self.workspace, self.top

        def by_system(action: str, name: str, value: Any) -> None:
            path = top / name
            if action == "write":
                path.parent.mkdir(exist_ok=True)
                path.write_text(value)
            elif action == "delete":
                path.unlink()
            elif action == "move":
                (top / value).parent.mkdir(exist_ok=True)
                path.rename(top / value)
            else:
                path.chmod(value)

        def by_tool(action: str, name: str, value: Any) -> None:
            own = workspace.host if author == "program" else workspace
            if action == "write":
                own.write(name, value, overwrite=True)
            elif action == "delete":
                own.delete(name)
            elif action == "move":
                own.move(name, value)

        if author == "command":
            with workspace.recording("a command"):
                yield by_system
        else:
            yield by_system if author == "other" else by_tool

    def take(self, step: Step) -> None:
        action, which, whose, first, removed, added = step
        name, author, files = NAMES[which], AUTHORS[whose], self.model.files
        if action == "accept":
            self.workspace.apply_review(accept=[hunk.id for hunk in self.workspace.review().hunks])
            self.accepted = True
            for each in self.touched:
                self.model.removed[each] = {}
                if each in files:
                    files[each] = [(line, None) for line, _ in files[each]]
            return
        if author == "other" and name not in self.touched:
            return  # before its first step, it belongs to the base
        who = {"command": "command a command", "other": "another program"}.get(author)
        with self.written_by(author) as act:
            if action == "edit":
                lines = files.get(name, [])
                first = min(first, len(lines))
                before = "".join(line for line, _ in lines)
                new = [(self.model.line(), who or f"{author} write") for _ in range(added)]
                gone = lines[first : first + removed]
                made = [*lines[:first], *new, *lines[first + removed :]]
                if "".join(line for line, _ in made) == before and name in files:
                    return
                for line, by in gone:
                    if by is None:
                        self.model.removed.setdefault(name, {})[line] = who or f"{author} write"
                files[name] = made
                act("write", name, self.model.text(name))
            elif name not in files:
                return
            elif action == "delete":
                for line, by in files.pop(name):
                    if by is None:
                        self.model.removed.setdefault(name, {})[line] = who or f"{author} delete"
                act("delete", name, None)
            elif action == "move":
                to = NAMES[(which + 1) % len(NAMES)]
                if to in files or (author == "other" and to not in self.touched):
                    return
                self.touched.add(to)
                files[to] = files.pop(name)
                act("move", name, to)
            elif author in ("command", "other"):
                act("mode", name, 0o755 if not os.access(self.top / name, os.X_OK) else 0o644)
        if author != "other":
            self.touched.add(name)


def patch_of(files: Sequence[FileReview], chosen: set[str], modes: dict[str, tuple[int, int]]) -> bytes:
    """Write the patch of some hunks as git has it, without context."""
    parts: list[str] = []
    for file in files:
        hunks = [hunk for hunk in file.hunks if hunk.id in chosen]
        if not hunks:
            continue
        old = file.old_path or file.path
        parts.append(f"diff --git a/{old} b/{file.path}\n")
        was, now = modes[file.path]
        if file.kind == "created":
            parts.append(f"new file mode {now:o}\n")
        elif file.kind == "deleted":
            parts.append(f"deleted file mode {was:o}\n")
        elif any("mode" in hunk.note for hunk in hunks) or (file.kind == "renamed" and was != now):
            parts.append(f"old mode {was:o}\nnew mode {now:o}\n")
        if file.kind == "renamed":
            parts.append(f"rename from {old}\nrename to {file.path}\n")
        lined = [hunk for hunk in hunks if hunk.old_lines or hunk.new_lines]
        if lined:
            parts.append("--- /dev/null\n" if file.kind == "created" else f"--- a/{old}\n")
            parts.append("+++ /dev/null\n" if file.kind == "deleted" else f"+++ b/{file.path}\n")
        shift = 0  # git takes the place of old lines from the header, also if it inserts them
        for hunk in lined:
            old_start = hunk.new_start - bool(hunk.new_lines) - shift + bool(hunk.old_lines)
            shift += len(hunk.new_lines) - len(hunk.old_lines)
            head = f"-{old_start},{len(hunk.old_lines)} +{hunk.new_start},{len(hunk.new_lines)}"
            parts.append(f"@@ {head} @@\n")
            parts += [f"-{line}" for line in hunk.old_lines]
            parts += [f"+{line}" for line in hunk.new_lines]
    return "".join(parts).encode()


def git_reversed(tree: Path, patch: bytes, scratch: Path) -> Snapshot:
    shutil.copytree(tree, scratch, symlinks=True)
    if patch:
        command = ["git", "apply", "-R", "--unidiff-zero", "--whitespace=nowarn", "-"]
        done = subprocess.run(command, cwd=scratch, input=patch, capture_output=True, check=False)
        assert done.returncode == 0, (done.stderr.decode(), patch.decode())
    found = as_git_sees(snapshot(scratch))
    shutil.rmtree(scratch)
    return found


def modes_of(review: Review, original: Snapshot, present: Snapshot) -> dict[str, tuple[int, int]]:
    def mode(tree: Snapshot, name: str) -> int:
        return 0o100755 if name in tree and tree[name][1] & 0o100 else 0o100644

    return {
        file.path: (mode(original, file.old_path or file.path), mode(present, file.path))
        for file in review.files
    }


def check_origins(site: Site, review: Review) -> None:
    for file in review.files:
        lines = site.model.files.get(file.path, [])
        for hunk in file.hunks:
            for at, (text, origin) in enumerate(
                zip(hunk.new_lines, hunk.origins, strict=False), hunk.new_start - 1
            ):
                line, author = lines[at]
                assert line == text
                assert author in (None, str(origin)), (hunk, author)
            if hunk.old_lines and not hunk.new_lines:
                removers = site.model.removed.get(file.old_path or file.path, {})
                found = {removers.get(line) for line in hunk.old_lines}  # the last of them is named
                assert found & {None, str(hunk.origins[0])}, hunk


def taken(hunks: Sequence[Hunk], review: Review, subset: int) -> set[str]:
    """Return the ids of a subset, in which renames are whole."""
    chosen = {hunk.id for number, hunk in enumerate(hunks) if subset >> (number % 16) & 1}
    for file in review.files:
        ids = {hunk.id for hunk in file.hunks}
        if file.kind in ("renamed", "created") and ids & chosen:
            chosen |= ids
    return chosen


def check(history: Sequence[Step], subset: int, *, distinct: bool, kept: bool = False) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name).resolve()
        site = Site(top, distinct=distinct, state=top / "state" if kept else None)
        original = snapshot(site.top)
        for step in history:
            site.take(step)
        if kept:
            site.workspace.close()
            site.workspace = Workspace(site.top, state=site.state)
        with site.workspace as workspace:
            review = workspace.review()
            hunks = review.hunks
            assert len({hunk.id for hunk in hunks}) == len(hunks)
            if distinct and not any(step[0] == "move" for step in history):
                check_origins(site, review)
            present = snapshot(site.top)
            chosen = taken(hunks, review, subset)
            rest = {hunk.id for hunk in hunks} - chosen
            if not site.accepted:  # an accepted base is not a tree that git could start from
                modes = modes_of(review, original, present)
                expected = git_reversed(site.top, patch_of(review.files, chosen, modes), top / "scratch")
                if any(step[2] == 4 for step in history):  # lines beside those of others are a conflict
                    with suppress(ConflictError):
                        workspace.apply_review(reject=sorted(chosen))
                        workspace.undo() if chosen else None
                else:
                    workspace.apply_review(reject=sorted(chosen))
                    assert as_git_sees(snapshot(site.top)) == expected
                    workspace.undo() if chosen else None
                    assert snapshot(site.top) == present
                    workspace.apply_review(reject=[hunk.id for hunk in hunks])
                    assert snapshot(site.top) == original
                    workspace.undo() if hunks else None
                assert workspace.review().hunks == hunks
                assert snapshot(site.top) == present
            workspace.apply_review(accept=sorted(chosen))
            left = {hunk.id for hunk in workspace.review().hunks}
            if distinct and not any(step[2] == 4 for step in history):
                assert left == rest  # beside equal lines, and lines of others, the rest is compared anew
            assert snapshot(site.top) == present
            workspace.apply_review(accept=sorted(left))
            assert workspace.review().files == ()


LAWS = settings(
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@law(8, 150, HISTORIES, SUBSETS)
def test_distinct_lines(history: list[Step], subset: int):
    check(history, subset, distinct=True)


@law(8, 100, HISTORIES, SUBSETS)
def test_equal_lines(history: list[Step], subset: int):
    check(history, subset, distinct=False)


@law(6, 40, HISTORIES, SUBSETS)
def test_another_process(history: list[Step], subset: int):
    check(history, subset, distinct=True, kept=True)


@pytest.mark.long
@given(HISTORIES, SUBSETS, st.booleans())
@settings(LAWS, max_examples=2000)
def test_many_histories(history: list[Step], subset: int, distinct: bool):
    check(history, subset, distinct=distinct)


def test_regression_an_undo_beside_equal_lines_takes_no_line_for_its_own():
    """git may take another of two equal lines for the new one, which then was by the last undo."""
    check([("edit", 0, 0, 0, 0, 0)] * 3 + [("edit", 0, 0, 0, 0, 1)] * 2, 0, distinct=False)


@pytest.mark.parametrize(
    "history",
    [
        [("delete", 2, 0, 0, 0, 0), ("move", 1, 0, 0, 0, 0)],
        [("move", 2, 0, 0, 0, 0), ("edit", 2, 0, 0, 0, 0)],
    ],
    ids=["over a deleted file", "and written anew"],
)
def test_regression_a_moved_file_keeps_its_hunks_after_a_rejection_and_its_undo(history: list[Step]):
    """The place that a file had left was by another program, so the next rejection was a conflict."""
    check(history, 0, distinct=True)
