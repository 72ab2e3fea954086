"""Who wrote each line of a file, followed from a base through its versions. Pure: no disk access."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, repeat
from typing import NamedTuple

from agentfs.fs import FileNode, Node
from agentfs.text.diff import ReplacedLines, git_line_changes, line_count, split_lines
from agentfs.text.git_patch import Blob

Author = tuple[str, str]  # as `call_context.author`
OTHER: Author = ("other", "")


class Version(NamedTuple):
    """One version of a file: its author, and a name that no other version has."""

    author: Author
    name: str = ""


class LineEvent(NamedTuple):
    """The addition of a line, with its index in that version, or its removal, with its index before."""

    version: Version
    at: int = 0

    @property
    def name(self) -> str:
        """A name that lasts as long as the line."""
        return f"{self.version.name}:{self.at}"


class Line(NamedTuple):
    """A line of the base, unless it was added since; and of the present version, unless it was removed."""

    added: LineEvent | None = None
    removed: LineEvent | None = None


_UNCHANGED = Line()


class TracedHunk(NamedTuple):
    """Lines that differ between the base and the present version, each with its event."""

    place: ReplacedLines
    old: Sequence[Line]
    new: Sequence[Line]


def by_another(node: Node | None, author: Author = OTHER) -> Version:
    """Return the version of a node that another program has written, which is not in the journal."""
    return Version(author, node.digest if isinstance(node, FileNode) else repr(node))


def is_text(node: Node | None, text: str) -> bool:
    """Return True for a file that git treats as text, or for none; `text` is its `text_of`."""
    return node is None or (isinstance(node, FileNode) and (text != "" or not node.size))


def text_of(node: Node | None) -> str:
    """Return the text of a file with one character for each byte, or "" if git does not treat it as text."""
    blob = Blob("", node.load() if isinstance(node, FileNode) else b"")
    return "" if blob.is_binary else blob.text


class TracedFile:
    """The lines of a file since its base, each with the version that added or removed it.

    The lines of both are in one list, as in a weave. `home` is the path of the base.
    """

    def __init__(self, base: Node | None, home: str) -> None:
        self.base = self.node = base
        self.home = home
        self.base_text = self.text = text_of(base)
        self.last = LineEvent(Version(OTHER))
        self._lines = [_UNCHANGED] * line_count(self.text)

    def advance(
        self, node: Node | None, version: Version, births: Mapping[int, LineEvent] | None = None
    ) -> None:
        """Go on to the next version; `births` has the additions of lines, by index, by other versions."""
        if node == self.node:
            return
        self.node, self.last, text = node, LineEvent(version), text_of(node)
        if text == self.text:
            return
        born = births or {}
        present = [at for at, line in enumerate(self._lines) if line.removed is None]
        present.append(len(self._lines))
        lines: list[Line] = []
        done = 0
        for start, end, new_start, new_end in git_line_changes(self.text, text):
            lines += self._lines[done : present[start]]
            done = present[end - 1] + 1 if end > start else present[start]
            removals = map(LineEvent, repeat(version), range(start, end))
            for line in self._lines[present[start] : done]:
                removed = line.removed or next(removals)
                if line.added is None:
                    lines.append(Line(None, removed))
            lines += [Line(born.get(at) or LineEvent(version, at)) for at in range(new_start, new_end)]
        self.text, self._lines = text, [*lines, *self._lines[done:]]

    def hunks(self) -> list[TracedHunk]:
        """Return the changes between the base and the present version.

        Each change stays as it is when other lines are changed or accepted, even among equal lines. So only
        lines between two lines that no version has touched are compared.
        """
        base, present = split_lines(self.base_text), split_lines(self.text)
        found: list[TracedHunk] = []
        old_end = new_end = 0
        for is_unchanged, run in groupby(self._lines, _UNCHANGED.__eq__):
            lines = [*run]
            old = [line for line in lines if line.added is None]
            new = [line for line in lines if line.removed is None]
            old_start, old_end = old_end, old_end + len(old)
            new_start, new_end = new_end, new_end + len(new)
            if is_unchanged:
                continue
            before, after = base[old_start:old_end], present[new_start:new_end]
            changes: Iterable[ReplacedLines] = [ReplacedLines(0, len(old), 0, len(new))]
            if not {*before}.isdisjoint(after):
                changes = git_line_changes("".join(before), "".join(after))
            for a, b, c, d in changes:
                place = ReplacedLines(old_start + a, old_start + b, new_start + c, new_start + d)
                found.append(TracedHunk(place, old[a:b], new[c:d]))
        return found

    def births(self) -> Iterator[LineEvent | None]:
        """Yield the addition of each present line; None for a line of the base."""
        return (line.added for line in self._lines if line.removed is None)

    def against(self, base: Node | None, home: str) -> "TracedFile":
        """Return the file compared with another base."""
        if base == self.base:
            return self
        kept = Version(self.last.version.author, "kept")  # what only the other base does not have
        births = {at: birth or LineEvent(kept, at) for at, birth in enumerate(self.births())}
        made = TracedFile(base, home)
        made.advance(self.node, self.last.version, births)
        return made

    def accept(self, ranges: Sequence[tuple[int, int]], *, mode: bool) -> None:
        """Take changes over into the base if all their new lines are in `ranges`, and optionally the mode.

        An empty range is the place of a deletion.
        """
        if not (is_text(self.base, self.base_text) and is_text(self.node, self.text)):
            return
        accepted = {at for start, end in ranges for at in range(start, end)}
        gaps = {start for start, end in ranges if start == end}
        present = split_lines(self.text)
        lines: list[Line] = []
        rebased: list[tuple[int, int, str]] = []
        done = 0
        for (old_start, old_end, start, end), old, new in self.hunks():
            lines += [_UNCHANGED] * (start - done)
            if accepted.issuperset(range(start, end)) if end > start else start in gaps:
                lines += [_UNCHANGED] * (end - start)
                rebased.append((old_start, old_end, "".join(present[start:end])))
            else:
                lines += [*old, *new]
            done = end
        self._lines = [*lines, *[_UNCHANGED] * (len(present) - done)]
        if isinstance(self.node, FileNode) and (mode or rebased):
            base = self.base if isinstance(self.base, FileNode) else replace(self.node, load=bytes, size=0)
            self.base = with_lines(base, rebased, self.node.mode if mode else base.mode)
            self.base_text = text_of(self.base)


def with_lines(node: FileNode, ranges: Sequence[tuple[int, int, str]], mode: int) -> FileNode:
    """Return a text file with ranges of its lines replaced, which are in order, and with a mode."""
    lines = split_lines(text_of(node))
    for start, end, new in reversed(ranges):
        lines[start:end] = [new]
    return FileNode.of(mode, "".join(lines).encode("latin-1"), node.metadata)
