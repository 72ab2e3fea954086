"""Who wrote each line of a file, followed from a base through its versions. Pure: no disk access."""

from collections.abc import Iterable, Iterator
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


def by_another(node: Node | None, author: Author = OTHER) -> Version:
    """Return the version of a node that another program has written, which is not in the journal."""
    return Version(author, node.digest if isinstance(node, FileNode) else repr(node))


# An unchanged line is its index in the base; a new one has its version and its index there.
Line = int | tuple[Version, int]


def is_text(node: Node | None, text: str) -> bool:
    """Return True for a file that git treats as text; `text` is its `text_of`."""
    return isinstance(node, FileNode) and (not node.size or text != "")


def text_of(node: Node | None) -> str:
    """Return the text of a file with one character for each byte, or "" if it is not text."""
    blob = Blob("", node.load() if isinstance(node, FileNode) else b"")
    return "" if blob.is_binary else blob.text


class TracedFile:
    """The lines of a file since its base, each with the version that brought it."""

    def __init__(self, base: Node | None) -> None:
        self._rest_on(base, text_of(base))

    def _rest_on(self, base: Node | None, text: str) -> None:
        self.base = self.node = base
        self.base_text = self.text = text
        self._lines: list[Line] = list(range(line_count(text)))
        self._removed: dict[int, tuple[Version, int]] = {}  # by the index in the base
        self._last = Version(OTHER)

    def advance(
        self, node: Node | None, version: Version, others: Iterable[tuple[int, int, Author]] = ()
    ) -> None:
        """Go on to the next version; `others` are ranges of its lines by other authors."""
        if node == self.node:
            return
        self.node, self._last = node, version
        text = text_of(node)
        if text == self.text:
            return
        old, lines, end = self._lines, list[Line](), 0
        for start, old_end, new_start, new_end in git_line_changes(self.text, text):
            lines += old[end:start]
            lines += zip(repeat(version), range(new_start, new_end), strict=False)
            for at in range(start, old_end):
                if isinstance(line := old[at], int):
                    self._removed[line] = version, at
            end = old_end
        lines += old[end:]
        for start, stop, author in others:
            by = version._replace(author=author)
            for index in range(start, min(stop, len(lines))):
                if lines[index] == (version, index):
                    lines[index] = by, index
        self.text, self._lines = text, lines

    def changes(self) -> list[ReplacedLines]:
        """Return the line ranges that differ between the base and the present version.

        Each change stays as it is when other lines are changed or accepted, even among equal lines. So only
        lines between two lines that no version has touched are compared.
        """
        old, new = split_lines(self.base_text), split_lines(self.text)
        found: list[ReplacedLines] = []
        old_end = new_end = 0
        for at, line in enumerate([*self._lines, len(old)]):
            if isinstance(line, int):
                if (line, at) != (old_end, new_end):
                    region = ReplacedLines(old_end, line, new_end, at)
                    before, after = old[old_end:line], new[new_end:at]
                    if set(before).isdisjoint(after):
                        found.append(region)
                    else:
                        found += [
                            ReplacedLines(a + old_end, b + old_end, c + new_end, d + new_end)
                            for a, b, c, d in git_line_changes("".join(before), "".join(after))
                        ]
                old_end, new_end = line + 1, at + 1
        return found

    def text_of(self, node: Node | None) -> str:
        """Return the text of the base or the present version, or of any other node."""
        if node is self.base or node is self.node:
            return self.base_text if node is self.base else self.text
        return text_of(node)

    def births(self, start: int, end: int) -> Iterator[tuple[Version, str]]:
        """Yield for each line of a range its version, and a name of the line that lasts as long as it."""
        for line in self._lines[start:end]:
            if isinstance(line, int):  # compared with another base, in which the line is not
                yield self._last, f"={line}"
            else:
                yield line[0], f"{line[0].name}:{line[1]}"

    def authors(self) -> Iterator[tuple[int, int, Author]]:
        """Yield the ranges of new lines, each with their author."""
        start = 0
        for author, lines in groupby(
            self._lines, lambda each: None if isinstance(each, int) else each[0].author
        ):
            end = start + sum(1 for _ in lines)
            if author is not None:
                yield start, end, author
            start = end

    def death(self, start: int, end: int) -> tuple[Version, str]:
        """Return the version that removed a range of lines of the base, and a lasting name as in `births`."""
        for line in reversed(range(start, end)):
            if line in self._removed:
                version, at = self._removed[line]
                return version, f"{version.name}-{at}"
        return self._last, self._last.name

    def accept(self, node: Node | None, accepted: Iterable[ReplacedLines]) -> None:
        """Take over a new base: the old one with some of `changes`, whose lines now count as unchanged."""
        chosen, lines, removed = set(accepted), list[Line](), dict[int, tuple[Version, int]]()
        changes, position, end = self.changes(), 0, 0
        for change in changes:
            start, stop, new_start, new_end = change
            lines += range(position, position + start - end)
            position, end = position + start - end, stop
            if change in chosen:
                lines += range(position, position + new_end - new_start)
                position += new_end - new_start
                continue
            lines += self._lines[new_start:new_end]
            removed |= {
                position + line - start: self._removed[line]
                for line in range(start, stop)
                if line in self._removed
            }
            position += stop - start
        rest = line_count(self.base_text) - end
        new = split_lines(self.text)
        ranges = [(a, b, "".join(new[c:d])) for a, b, c, d in changes if (a, b, c, d) in chosen]
        self.base, self.base_text = node, spliced(self.base_text, ranges)
        self._lines, self._removed = [*lines, *range(position, position + rest)], removed

    def rest_on(self, node: Node | None) -> None:
        """Make the present version the base."""
        self._rest_on(node, text_of(node))


def spliced(text: str, ranges: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with ranges of its lines replaced; they are in order and do not overlap."""
    lines = split_lines(text)
    pieces: list[str] = []
    end = 0
    for start, stop, new in ranges:
        pieces += [*lines[end:start], new]
        end = stop
    return "".join([*pieces, *lines[end:]])
