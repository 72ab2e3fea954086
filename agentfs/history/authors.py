"""Who wrote each line of a file: the versions in the journal are replayed, by position. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import groupby
from typing import NamedTuple, Self

from agentfs.fs import Change, FileNode, Node
from agentfs.history.log import Author, Step, file_moves
from agentfs.text.diff import ReplacedLines, git_line_changes, line_count, split_lines
from agentfs.text.git_patch import Blob

OTHER: Author = ("other", "")


class Trace(NamedTuple):
    """The addition or removal of a line.

    `name` is the step and the index in its version, "" for another program. `touches_other` is True for lines
    of other programs, and for lines in their place.
    """

    author: Author
    name: str = ""
    touches_other: bool = False


class TracedHunk(NamedTuple):
    """Lines that differ from the base, with the origin of each new line, or of the deletion."""

    place: ReplacedLines
    origins: tuple[Trace, ...]


def is_text(node: Node | None, text: str) -> bool:
    """Return True for a file that git treats as text, or for none; `text` is its `text_of`."""
    return node is None or (isinstance(node, FileNode) and (text != "" or not node.size))


def text_of(node: Node | None) -> str:
    """Return the text of a file with one character for each byte, or "" if git does not treat it as text."""
    blob = Blob("", node.load() if isinstance(node, FileNode) else b"")
    return "" if blob.is_binary else blob.text


class TracedFile:
    """The lines of one file, each with its origin; None for a line of the first version."""

    def __init__(self, node: Node | None) -> None:
        self.node, self.text = node, text_of(node)
        self.first = self.text
        self.last = Trace(OTHER, touches_other=True)  # the origin of the last change
        self._restored: Trace | None = None  # that of an undo that came back to an earlier version
        self._lines: list[Trace | None] = [None] * line_count(self.text)
        self._removals: list[Trace | None] = [None] * (len(self._lines) + 1)  # of lines before each line

    def keep_version(self, versions: dict[str, Self]) -> None:
        """Keep the present version, by its digest."""
        if isinstance(self.node, FileNode | None):
            versions[_key(self.node)] = copy(self)

    def restore(self, version: Self, origin: Trace) -> None:
        """Go back to an earlier version, whose lines keep their authors."""
        self.node, self.text, self.last, self._restored = version.node, version.text, version.last, origin
        self._lines, self._removals = version._lines, version._removals

    def advance(self, node: Node | None, origin: Trace, births: Mapping[int, Author] | None = None) -> None:
        """Go on to the next version; `births` has the authors of lines that are not by its author."""
        if node == self.node:
            return
        self.node, self.last, self._restored, text = node, origin, None, text_of(node)
        if text == self.text:
            return
        lines: list[Trace | None] = []
        removals: list[Trace | None] = []
        self._removals, done = [*self._removals], 0
        for start, end, new_start, new_end in git_line_changes(self.text, text):
            lines += self._lines[done:start]
            removals += self._removals[done:start]
            replaced = filter(None, (*self._lines[start:end], *self._removals[start : end + 1]))
            touches = any(each.touches_other for each in replaced) or origin.author == OTHER
            added = [
                Trace((births or {}).get(at, origin.author), f"{origin.name}:{at}", touches)
                for at in range(new_start, new_end)
            ]
            lines += added
            removals += [None] * len(added)
            removed = None if added else Trace(origin.author, f"{origin.name}:{start}-", touches)
            self._removals[end], done = removed, end
        self.text = text
        self._lines = [*lines, *self._lines[done:]]
        self._removals = [*removals, *self._removals[done:]]

    def hunks(self, base_text: str) -> Iterator[TracedHunk]:
        """Yield the changes from a base to the present text, with the lines of each author apart."""
        # A line of the first version that differs from an accepted base was brought back.
        unknown = (self._restored if base_text != self.first else None) or self.last
        for a, b, c, d in git_line_changes(base_text, self.text):
            if c == d:
                yield TracedHunk(ReplacedLines(a, b, c, d), (self._removals[c] or unknown,))
                continue
            origins = [self._lines[at] or unknown for at in range(c, d)]
            runs = [[*run] for _, run in groupby(origins, key=lambda each: each.author)]
            # If others have lines among these, reversing any of them would also reverse lines of others.
            touches = any(each.touches_other for each in origins)
            start, old = c, a
            for run in runs:
                end = start + len(run)
                old_end = b if len(runs) == 1 or b - a != d - c else old + len(run)
                marked = tuple(each._replace(touches_other=touches) for each in run)
                yield TracedHunk(ReplacedLines(old, old_end, start, end), marked)
                start, old = end, old_end


def replay(steps: Sequence[Step], first_number: int) -> dict[str, TracedFile]:
    """Return the files that some steps have changed, by path, as the last of them left each."""
    files: dict[str, TracedFile] = {}
    restored = {change.after for step in steps if step.toggles is not None for change in step.changes}
    versions: dict[str, dict[str, TracedFile]] = {}  # by path and digest, those that an undo restores
    for number, step in enumerate(steps, first_number):
        author = ("command", step.label) if step.label else step.author
        births: dict[str, dict[int, Author]] = {}
        for path, start, end, other in step.by_others:
            births.setdefault(path, {}).update(dict.fromkeys(range(start, end), other))
        changed = [each for each in step.changes if _is_of_file(each)]
        for change in changed:
            if change.path not in files:
                files[change.path] = TracedFile(change.before)
            file = files[change.path]
            file.advance(change.before, Trace(OTHER, touches_other=True))
            if change.before in restored:
                file.keep_version(versions.setdefault(change.path, {}))
        for path, source in file_moves(step.changes).items():
            files[path], files[source] = files[source], TracedFile(None)
            files[path].last, files[path].first = Trace(author, str(number)), ""
        for change in changed:
            file, origin = files[change.path], Trace(author, str(number))
            known = versions.get(change.path, {}).get(_key(change.after))
            if step.toggles is not None and known is not None:
                file.restore(known, origin)
            else:
                file.advance(change.after, origin, births.get(change.path))
            if change.after in restored:
                file.keep_version(versions.setdefault(change.path, {}))
    return files


def _key(node: Node | None) -> str:
    return node.digest if isinstance(node, FileNode) else repr(node)


def _is_of_file(change: Change) -> bool:
    return not change.of_directory or any(
        isinstance(each, FileNode) for each in (change.before, change.after)
    )


def with_lines(node: FileNode, ranges: Sequence[tuple[int, int, str]], mode: int) -> FileNode:
    """Return a text file with ranges of its lines replaced, which are in order, and with a mode."""
    lines = split_lines(text_of(node))
    for start, end, new in reversed(ranges):
        lines[start:end] = [new]
    return FileNode.of(mode, "".join(lines).encode("latin-1"), node.metadata)
