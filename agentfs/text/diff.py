"""Which lines differ between two texts, and the one writer of patches that `git apply` takes."""

import base64
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from hashlib import sha1
from itertools import accumulate
from typing import NamedTuple

from agentfs.text.display import cut_line, cut_mark
from agentfs.text.lines import lf_view
from agentfs.visible import visible

Change = tuple[int, int, int, int]  # start and end in old, start and end in new

# Lines of both texts that are compared one by one: a list of more would take more memory than a call may.
MOST_LINES = 400_000
# `difflib` compares all pairs of equal lines again for each block that it finds. Texts that could take more
# comparisons than this are divided at the lines that occur exactly once in each text. Only the cheapest parts
# are compared: together they take no more comparisons than this.
_MAX_COMPARISONS = 10_000_000
# Lines further ahead than this are counted in steps of so many characters, nearer ones one by one.
_NEAR = 64
_STEP = 4096
_ANCHOR_CHARS = 400
_LINE_CHARS = 400
_BASE85_LINE = 52


class Blob(NamedTuple):
    """Mode and content of a file or link as git has them; an empty mode if there is nothing."""

    mode: str
    content: bytes

    @property
    def name(self) -> str:
        """The hash by which git names the content."""
        digest = sha1(b"blob %d\0" % len(self.content) + self.content, usedforsecurity=False).hexdigest()
        return digest if self.mode else "0" * 40

    @property
    def is_binary(self) -> bool:
        """Whether git shows no lines of the content."""
        return b"\0" in self.content

    @property
    def text(self) -> str:
        """The content with a character for each byte, so that any encoding comes through."""
        return self.content.decode("latin-1")


def git_patch(path: str, before: Blob, after: Blob, moved_from: str = "") -> bytes:
    """Return the patch of one file or link that `git apply` takes; `moved_from` is its old path."""
    if before.mode and after.mode and before.mode[:3] != after.mode[:3]:
        # To git, a link in place of a file is a deletion and a creation.
        nothing = Blob("", b"")
        return git_patch(moved_from or path, before, nothing) + git_patch(path, nothing, after)
    if before == after and not moved_from:
        return b""
    head = _git_header(path, before.mode, after.mode, moved_from)
    if before.content == after.content:
        return head.encode()
    if before.is_binary or after.is_binary:
        # Without the names of the contents git applies no binary patch.
        head += f"index {before.name}..{after.name}\nGIT binary patch\n"
        return head.encode() + _literal(after.content) + _literal(before.content)
    head += _names(path, created=not before.mode, deleted=not after.mode, old_path=moved_from)
    return head.encode() + "".join(hunks(before.text, after.text)).encode("latin-1")


def unified_diff(
    before: str | None,
    after: str | None,
    path: str,
    *,
    context: int = 3,
    changes: Sequence[Change] | None = None,
) -> str:
    r"""Return the change of one file as git writes it; None is no file.

    A text whose lines end at a lone `\r` is compared in its LF view, since git knows no such lines. A caller
    that knows the `line_changes` passes them.
    """
    if before == after:
        return ""
    old, new = before or "", after or ""
    if old == new:  # an empty file has no hunk, so git names it in the extended header alone
        return _git_header(path, "" if before is None else "100644", "" if after is None else "100644")
    old, new = _as_git_reads(old, new)
    names = _names(path, created=before is None, deleted=after is None)
    return "".join([names, *hunks(old, new, context, changes)])


def line_changes(before: str, after: str) -> list[Change]:
    """Return which lines of a text were replaced, in order and apart, whatever the length of the texts."""
    return _line_changes(*_as_git_reads(before, after))


def _as_git_reads(old: str, new: str) -> tuple[str, str]:
    old_view = old if "\n" in old else lf_view(old)
    new_view = new if "\n" in new else lf_view(new)
    return (old, new) if old_view == new_view else (old_view, new_view)


def _git_header(path: str, old_mode: str, new_mode: str, moved_from: str = "") -> str:
    head = f"diff --git {_quoted('a/' + (moved_from or path))} {_quoted('b/' + path)}\n"
    if not old_mode:
        return f"{head}new file mode {new_mode}\n"
    if not new_mode:
        return f"{head}deleted file mode {old_mode}\n"
    modes = "" if old_mode == new_mode else f"old mode {old_mode}\nnew mode {new_mode}\n"
    moved = f"rename from {_quoted(moved_from)}\nrename to {_quoted(path)}\n" if moved_from else ""
    return f"{head}{modes}{moved}"


def _names(path: str, *, created: bool, deleted: bool, old_path: str = "") -> str:
    """Return the two lines with names before the hunks."""
    names = [
        "/dev/null" if created else _quoted("a/" + (old_path or path)),
        "/dev/null" if deleted else _quoted("b/" + path),
    ]
    # A tab ends a name with a space in it, for readers that would stop at the space.
    old, new = (name + "\t" if " " in name and name[0] != '"' else name for name in names)
    return f"--- {old}\n+++ {new}\n"


def _quoted(name: str) -> str:
    """Return a name in quotes, with escapes, if it holds a quote, a backslash, a control or no UTF-8."""
    escapes: dict[str, int | str | None] = {
        each: f"\\{each}"
        if each in '"\\'
        else "".join(f"\\{byte:03o}" for byte in each.encode("utf-8", "surrogateescape"))
        for each in name
        if each in '"\\\x7f' or each < " " or "\ud800" <= each <= "\udfff"
    }
    return f'"{name.translate(str.maketrans(escapes))}"' if escapes else name


def _literal(data: bytes) -> bytes:
    packed = zlib.compress(data)
    lines = [b"literal %d" % len(data)]
    for start in range(0, len(packed), _BASE85_LINE):
        line = packed[start : start + _BASE85_LINE]
        length = len(line) + (ord("A") - 1 if len(line) <= 26 else ord("a") - 27)
        lines.append(bytes([length]) + base64.b85encode(line, pad=True))
    return b"\n".join(lines) + b"\n\n"


def hunks(old: str, new: str, context: int = 3, changes: Sequence[Change] | None = None) -> Iterator[str]:
    r"""Yield the hunks of a unified diff in pieces; lines end at `\n` and nowhere else."""
    changes = _line_changes(old, new) if changes is None else changes
    before, after = _LineRanges(old), _LineRanges(new)
    for group in _grouped(changes, context):
        (first_old, _, first_new, _), (_, last_old, _, last_new) = group[0], group[-1]
        lead = min(context, first_old)
        position = first_old - lead
        body: list[str] = []
        for old_start, old_stop, new_start, new_stop in group:
            body.append(_marked(" ", before.text(position, old_start)))
            body.append(_marked("-", before.text(old_start, old_stop)))
            body.append(_marked("+", after.text(new_start, new_stop)))
            position = old_stop
        following = before.text(last_old, last_old + context)
        trail = _count(following)
        old_range = _range(first_old - lead, last_old + trail)
        yield f"@@ -{old_range} +{_range(first_new - lead, last_new + trail)} @@\n"
        yield from body
        yield _marked(" ", following)


def _line_changes(old: str, new: str) -> list[Change]:
    changes: list[Change] = []
    left = MOST_LINES
    for old_line, new_line, old_part, new_part in _differing_parts(old, new, 0, 0):
        old_count, new_count = _count(old_part), _count(new_part)
        left -= old_count + new_count
        found = [(0, old_count, 0, new_count)]
        if left >= 0:
            found = changed_lines(_lines(old_part), _lines(new_part))
        changes += [(old_line + a, old_line + b, new_line + c, new_line + d) for a, b, c, d in found]
    return changes


def _differing_parts(old: str, new: str, old_line: int, new_line: int) -> Iterator[tuple[int, int, str, str]]:
    """Yield the parts in which two texts differ, each with the indexes of its first lines.

    A part that is too long to be compared is divided at lines that both texts have exactly once.
    """
    start, old_end, new_end = _changed_part(old, new)
    above = old.count("\n", 0, start)
    old_line, new_line = old_line + above, new_line + above
    old, new = old[start:old_end], new[start:new_end]
    if old.count("\n") + new.count("\n") > MOST_LINES:
        middle = old.find("\n", len(old) // 2)
        anchor = old[middle : middle + _ANCHOR_CHARS]
        if middle >= 0 and old.count(anchor) == new.count(anchor) == 1:
            old_middle, new_middle = middle + 1, new.index(anchor) + 1
            yield from _differing_parts(old[:old_middle], new[:new_middle], old_line, new_line)
            old_line, new_line = (
                old_line + old.count("\n", 0, old_middle),
                new_line + new.count("\n", 0, new_middle),
            )
            yield from _differing_parts(old[old_middle:], new[new_middle:], old_line, new_line)
            return
    if old or new:
        yield old_line, new_line, old, new


def changed_lines(
    old: Sequence[str], new: Sequence[str], within: Sequence[Change] | None = None
) -> list[Change]:
    """Return which lines were replaced, in order and apart: `difflib`'s answer, in bounded time.

    If all changes are known to lie `within` some ranges, only these are compared.
    """
    parts = [_narrowed(old, new, part) for part in within or [(0, len(old), 0, len(new))]]
    costs = [_comparisons(old[a:b], new[c:d]) for a, b, c, d in parts]
    if sum(costs) > _MAX_COMPARISONS:
        parts = [smaller for part in parts for smaller in _divided(old, new, part)]
        costs = [_comparisons(old[a:b], new[c:d]) for a, b, c, d in parts]
    # The cheapest parts first, so that a costly one does not leave the others out.
    by_cost = sorted(range(len(parts)), key=costs.__getitem__)
    sums = list(accumulate(costs[number] for number in by_cost))
    compared = set(by_cost[: bisect_right(sums, _MAX_COMPARISONS)])
    changes: list[Change] = []
    for number, part in enumerate(parts):
        if number in compared:
            changes += _difflib_changes(old, new, part)
        elif part[0] < part[1] or part[2] < part[3]:
            changes.append(part)
    return changes


def _narrowed(old: Sequence[str], new: Sequence[str], part: Change) -> Change:
    """Return a range of both texts without the lines that are the same at its start and its end."""
    old_start, old_end, new_start, new_end = part
    shortest = min(old_end - old_start, new_end - new_start)
    head = next((at for at in range(shortest) if old[old_start + at] != new[new_start + at]), shortest)
    rest = shortest - head
    tail = next((at for at in range(rest) if old[old_end - 1 - at] != new[new_end - 1 - at]), rest)
    return old_start + head, old_end - tail, new_start + head, new_end - tail


def bounded_lines(lines: Iterable[str], max_chars: int) -> list[str]:
    """Return the first lines of a diff as a model sees them: visible, long ones cut, `max_chars` in all."""
    shown: list[str] = []
    for line in lines:
        part = visible(line if len(line) <= _LINE_CHARS else cut_line(line, _LINE_CHARS))
        max_chars -= len(part) + 1
        if max_chars < 0:
            break
        shown.append(part)
    return shown


def around_changes(lines: Sequence[str]) -> list[str]:
    """Return lines of a diff, long ones without most of what they share with the line that they replace."""
    shown = list(lines)
    removed: list[int] = []
    for index, line in enumerate(lines):
        if line[:1] == "-":
            removed = [*removed, index] if index and lines[index - 1][:1] == "-" else [index]
        elif line[:1] != "+":
            removed = []
        elif removed:
            old = removed.pop(0)
            start = common_prefix(line[1:], lines[old][1:]) - _LINE_CHARS // 4
            if start > 0 and max(len(line), len(lines[old])) > _LINE_CHARS:
                for each in (old, index):
                    shown[each] = f"{lines[each][0]}{cut_mark(start)}{lines[each][1 + start :]}"
    return shown


def common_prefix(one: str, other: str) -> int:
    """Return how many characters two texts share at their start."""
    # Comparing slices is memcmp: halving the doubtful part compares each character about twice.
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(one: str, other: str, most: int) -> int:
    """Return how many characters two texts share at their end, up to `most`."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


class _LineRanges:
    """Ranges of the lines of a text, taken in order without splitting it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = self._offset = 0

    def text(self, start: int, end: int) -> str:
        """Return the lines from one index up to another; they do not lie before those taken last."""
        begin = self._at(start)
        return self._text[begin : self._at(end)]

    def _at(self, line: int) -> int:
        while line - self._line > _NEAR:
            ahead = self._text.count("\n", self._offset, self._offset + _STEP)
            if ahead >= line - self._line or self._offset >= len(self._text):
                break
            self._line += ahead
            self._offset += _STEP
        for _ in range(line - self._line):
            self._offset = self._text.find("\n", self._offset) + 1 or len(self._text)
        self._line = line
        return min(self._offset, len(self._text))


def _changed_part(old: str, new: str) -> tuple[int, int, int]:
    """Return the part of whole lines that has all changes: its start, its end in old and in new."""
    same = common_prefix(old, new)
    tail = common_suffix(old, new, min(len(old), len(new)) - same)
    old_end, new_end = len(old) - tail, len(new) - tail
    if not all(end == 0 or text[end - 1] == "\n" for text, end in ((old, old_end), (new, new_end))):
        old_end = old.find("\n", old_end) + 1 or len(old)
    return old.rfind("\n", 0, same) + 1, old_end, len(new) - (len(old) - old_end)


def _count(text: str) -> int:
    return text.count("\n") + (text[-1:] not in {"", "\n"})


def _lines(text: str) -> list[str]:
    # A part of a text with `\n` may itself have none, so `bodies_of` could take another line end.
    parts = text.split("\n")
    last = parts.pop()
    lines = [part + "\n" for part in parts]
    return [*lines, last] if last else lines


def _grouped(changes: Sequence[Change], context: int) -> list[list[Change]]:
    """Put changes together whose lines of context touch."""
    groups: list[list[Change]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * context:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _range(start: int, end: int) -> str:
    if end - start == 1:
        return str(end)
    return f"{start + (end > start)},{end - start}"  # an empty range is named by the line before it


def _marked(mark: str, lines: str) -> str:
    if not lines:
        return ""
    if lines.endswith("\n"):
        return mark + lines[:-1].replace("\n", f"\n{mark}") + "\n"
    return mark + lines.replace("\n", f"\n{mark}") + "\n\\ No newline at end of file\n"


def _divided(old: Sequence[str], new: Sequence[str], part: Change) -> list[Change]:
    """Return the ranges between the lines that occur exactly once in a range of both texts."""
    old_from, old_end, new_from, new_end = part
    pairs = _unique_common_lines(old[old_from:old_end], new[new_from:new_end])
    parts: list[Change] = []
    old_at, new_at = old_from, new_from
    for old_line, new_line in pairs:
        parts.append((old_at, old_from + old_line, new_at, new_from + new_line))
        old_at, new_at = old_from + old_line + 1, new_from + new_line + 1
    return [*parts, (old_at, old_end, new_at, new_end)]


def _difflib_changes(old: Sequence[str], new: Sequence[str], part: Change) -> Iterator[Change]:
    old_start, old_end, new_start, new_end = part
    before, after = old[old_start:old_end], new[new_start:new_end]
    if set(before).isdisjoint(after):
        yield from [part] if before or after else ()
        return
    for tag, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            yield old_start + a, old_start + b, new_start + c, new_start + d


def _comparisons(old: Sequence[str], new: Sequence[str]) -> int:
    """Return an upper bound of the lines that `difflib` would compare: for each block, every pair."""
    if not old or not new:
        return 0
    counts = Counter(new)
    pairs = sum(counts[line] for line in old if line in counts)
    return (len(old) + pairs) * min(len(old), len(new), max(pairs, 1))


def _unique_common_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the lines that occur once in each text, in an order that both have: a longest rising sequence."""
    old_counts, new_counts = Counter(old), Counter(new)
    indexes = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [(at, indexes[line]) for at, line in enumerate(old) if old_counts[line] == 1 and line in indexes]
    last: list[int] = []  # the least last index of a rising sequence of each length
    ends: list[int] = []  # and which pair it is of
    before: list[int] = []
    for number, (_, index) in enumerate(pairs):
        length = bisect_left(last, index)
        before.append(ends[length - 1] if length else -1)
        last[length : length + 1] = [index]
        ends[length : length + 1] = [number]
    rising: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        rising.append(pairs[number])
        number = before[number]
    return rising[::-1]
