"""Who wrote each line of a file: the versions in the journal are replayed, by position. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from agentfs.fs import Change, FileNode, Node
from agentfs.fs.node import EntryNode
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


BY_OTHERS = Trace(OTHER, touches_other=True)


class TracedHunk(NamedTuple):
    """Lines that differ from the base, with the origin of each new line, or of the deletion."""

    place: ReplacedLines
    origins: tuple[Trace, ...]

    @property
    def touches_other(self) -> bool:
        """True if it is not only of this workspace."""
        return any(each.touches_other for each in self.origins)


def is_text(node: Node | None, text: str) -> bool:
    """Return True for a file that git treats as text, or for none; `text` is its `text_of`."""
    return node is None or (isinstance(node, FileNode) and (text != "" or not node.size))


def text_of(node: Node | None) -> str:
    """Return the text of a file with one character for each byte, or "" if git does not treat it as text."""
    blob = Blob("", node.load() if isinstance(node, FileNode) else b"")
    return "" if blob.is_binary else blob.text


class TracedFile(NamedTuple):
    """One version of a file, with the origin of each line; None for a line of the first version."""

    node: Node | None
    text: str
    first: str  # the text of the first version
    lines: tuple[Trace | None, ...]
    removals: tuple[Trace | None, ...]  # of lines before each line, and at the end
    last: Trace = BY_OTHERS  # the origin of the last change
    restored: Trace | None = None  # that of an undo that came back to an earlier version

    @classmethod
    def of(cls, node: Node | None, last: Trace = BY_OTHERS) -> "TracedFile":
        """Return the first version of a file."""
        text = text_of(node)
        lines = (None,) * line_count(text)
        return cls(node, text, text, lines, (*lines, None), last)

    def advanced(
        self, node: Node | None, origin: Trace, births: Mapping[int, Author] | None = None
    ) -> "TracedFile":
        """Return the next version; `births` has the authors of lines that are not by its author."""
        if node == self.node:
            return self
        text = text_of(node)
        lines: list[Trace | None] = []
        removals: list[Trace | None] = []
        before, done = [*self.removals], 0
        for start, end, new_start, new_end in () if text == self.text else git_line_changes(self.text, text):
            gone, marks = self.lines[start:end], [*filter(None, before[start : end + 1])]
            touches = any(each.touches_other for each in (*filter(None, gone), *marks))
            touches = touches or origin.author == OTHER
            added = [
                Trace((births or {}).get(at, origin.author), f"{origin.name}:{at}", touches)
                for at in range(new_start, new_end)
            ]
            lines += [*self.lines[done:start], *added]
            removals += [*before[done:start], *[None] * len(added)]
            # Whoever removed a line of the base is still named if another removes what is in its place.
            if None in gone or (gone and not marks):
                marks = [Trace(origin.author, f"{origin.name}:{start}-")]
            before[end], done = marks[-1]._replace(touches_other=touches) if marks else None, end
        lines += self.lines[done:]
        removals += before[done:]
        return TracedFile(node, text, self.first, tuple(lines), tuple(removals), origin)

    def hunks(self, base_text: str) -> Iterator[TracedHunk]:
        """Yield the changes from a base to the present text, with the lines of each author apart."""
        # A line of the first version that differs from an accepted base was brought back.
        unknown = (self.restored if base_text != self.first else None) or self.last
        for a, b, c, d in git_line_changes(base_text, self.text):
            if c == d:
                yield TracedHunk(ReplacedLines(a, b, c, d), (self.removals[c] or unknown,))
                continue
            origins = [self.lines[at] or unknown for at in range(c, d)]
            runs = [[*run] for _, run in groupby(origins, key=lambda each: each.author)]
            # If others have lines among these, reversing any of them would also reverse lines of others.
            touches = any(each.touches_other for each in origins)
            start, old = c, a
            for run in runs:
                end = start + len(run)
                old_end = b if len(runs) == 1 or b - a != d - c else old + len(run)
                marked = tuple([each._replace(touches_other=True) for each in run] if touches else run)
                yield TracedHunk(ReplacedLines(old, old_end, start, end), marked)
                start, old = end, old_end


def replay(steps: Sequence[Step], first_number: int) -> dict[str, TracedFile]:
    """Return the files that some steps have changed, by path, as the last of them left each."""
    files: dict[str, TracedFile] = {}
    restored = {change.after for step in steps if step.toggles is not None for change in step.changes}
    versions: dict[tuple[str, Node | None], TracedFile] = {}  # those that an undo restores

    def put(path: str, file: TracedFile) -> None:
        files[path] = file
        if file.node in restored:
            versions[path, file.node] = file

    for number, step in enumerate(steps, first_number):
        author = ("command", step.label) if step.label else step.author
        origin = Trace(author, str(number))
        births: dict[str, dict[int, Author]] = {}
        for path, start, end, other in step.by_others:
            births.setdefault(path, {}).update(dict.fromkeys(range(start, end), other))
        changed = [each for each in step.changes if has_file(each)]
        for each in changed:
            known = files.get(each.path) or TracedFile.of(each.before)
            put(each.path, known.advanced(each.before, BY_OTHERS))
        moved = {path: files[source] for path, source in file_moves(step.changes).items()}
        for path, file in moved.items():
            files[path] = file._replace(first=files[path].first, last=origin, restored=None)
        for each in changed:
            path, version = each.path, versions.get((each.path, each.after))
            if step.toggles is not None and version is not None:
                put(path, version._replace(restored=origin))
            else:
                put(path, files[path].advanced(each.after, origin, births.get(path)))
    return files


def has_file(change: Change) -> bool:
    """Return True if a change is not only of a directory."""
    nodes = change.before, change.after
    return not change.of_directory or any(isinstance(node, EntryNode) for node in nodes)


def with_lines(node: FileNode, ranges: Sequence[tuple[int, int, str]], mode: int) -> FileNode:
    """Return a text file with ranges of its lines replaced, which are in order, and with a mode."""
    lines = split_lines(text_of(node))
    for start, end, new in reversed(ranges):
        lines[start:end] = [new]
    return FileNode.of(mode, "".join(lines).encode("latin-1"), node.metadata)
