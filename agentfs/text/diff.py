"""Unified diffs that `git apply` takes."""

from collections.abc import Iterator, Sequence

from agentfs.text.common_lines import Change, changes_between, grouped
from agentfs.text.lines import lf_view

# Lines of both texts that are compared one by one: a list of more would take more memory than a call may.
MOST_LINES = 400_000
_STEP = 65_536


def unified_diff(
    before: str | None,
    after: str | None,
    path: str,
    *,
    context: int = 3,
    changes: Sequence[Change] | None = None,
) -> str:
    r"""Write the change of one file as git does.

    A text whose lines end at a lone `\r` is compared in its LF view, since git knows no such lines.

    Args:
        before: The text as it was; None when there was no file.
        after: The text as it is; None when there is no file any more.
        path: The path relative to the root, with `/`.
        context: Unchanged lines around each change.
        changes: Which lines were replaced, where that is known. It is used for texts of so many lines that
            they are not compared line by line; what is not known then counts as one change.

    Returns:
        The diff, its lines ended by `\n`; "" when nothing changed.
    """
    if before == after:
        return ""
    old, new = before or "", after or ""
    if old == new:
        return _empty_file(path, created=before is None)
    viewed = tuple(text if "\n" in text else lf_view(text) for text in (old, new))
    if viewed[0] != viewed[1]:
        old, new = viewed
    names = (
        "/dev/null" if before is None else _name("a/" + path),
        "/dev/null" if after is None else _name("b/" + path),
    )
    return "".join([f"--- {names[0]}\n+++ {names[1]}\n", *hunks(old, new, context, changes)])


def _empty_file(path: str, *, created: bool) -> str:
    # There is no hunk to carry it: git says it in the extended header alone.
    done = "new" if created else "deleted"
    return f"diff --git {_quoted('a/' + path)} {_quoted('b/' + path)}\n{done} file mode 100644\n"


def _name(name: str) -> str:
    quoted = _quoted(name)
    # A tab ends a name with a space in it, for readers that would stop at the space.
    return quoted + "\t" if quoted == name and " " in name else quoted


def _quoted(name: str) -> str:
    if not any(character in '"\\' or character < " " or character == "\x7f" for character in name):
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\{ord(c):03o}" if c < " " or c == "\x7f" else c for c in escaped) + '"'


def hunks(old: str, new: str, context: int = 3, changes: Sequence[Change] | None = None) -> Iterator[str]:
    r"""Yield what a unified diff has below the names of the files, in pieces.

    Args:
        old: The text as it was; its lines end at `\n` and nowhere else.
        new: The text as it is.
        context: Unchanged lines around each change.
        changes: As for `unified_diff`.
    """
    start, old_end, new_end = _changed_window(old, new, context)
    if old.count("\n", start, old_end) + new.count("\n", start, new_end) > MOST_LINES:
        yield from _known(old, new, changes or [_whole_change(old, new)], context)
        return
    skipped = old.count("\n", 0, start)
    old_lines = _lines(old[start:old_end])
    new_lines = _lines(new[start:new_end])
    for group in grouped(changes_between(old_lines, new_lines), context):
        old_from, old_to = group[0][0], group[-1][1]
        lead = min(context, old_from)
        trail = min(context, len(old_lines) - old_to)
        new_from, new_to = group[0][2] - lead, group[-1][3] + trail
        ranges = _range(skipped, old_from - lead, old_to + trail), _range(skipped, new_from, new_to)
        yield f"@@ -{ranges[0]} +{ranges[1]} @@\n"
        at = old_from - lead
        for old_start, old_stop, new_start, new_stop in group:
            yield from (_marked(" ", line) for line in old_lines[at:old_start])
            yield from (_marked("-", line) for line in old_lines[old_start:old_stop])
            yield from (_marked("+", line) for line in new_lines[new_start:new_stop])
            at = old_stop
        yield from (_marked(" ", line) for line in old_lines[at : old_to + trail])


def _known(old: str, new: str, changes: Sequence[Change], context: int) -> Iterator[str]:
    """Yield hunks for changes that are known, without a list of the lines."""
    before, after = _Lines(old), _Lines(new)
    total = before.count()
    for group in grouped(changes, context):
        lead = min(context, group[0][0])
        trail = min(context, total - group[-1][1])
        old_from, old_to = group[0][0] - lead, group[-1][1] + trail
        new_from, new_to = group[0][2] - lead, group[-1][3] + trail
        yield f"@@ -{_range(0, old_from, old_to)} +{_range(0, new_from, new_to)} @@\n"
        at = old_from
        for old_start, old_stop, new_start, new_stop in group:
            yield _all_marked(" ", before.text(at, old_start))
            yield _all_marked("-", before.text(old_start, old_stop))
            yield _all_marked("+", after.text(new_start, new_stop))
            at = old_stop
        yield _all_marked(" ", before.text(at, old_to))


class _Lines:
    """Lines of a text, taken from its start on without splitting it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = self._offset = 0

    def count(self) -> int:
        """Return how many lines there are."""
        return self._text.count("\n") + (self._text[-1:] not in {"", "\n"})

    def text(self, start: int, end: int) -> str:
        """Return the lines from one number up to another, from 0; they do not lie before those taken last."""
        begin = self._at(start)
        return self._text[begin : self._at(end)]

    def _at(self, line: int) -> int:
        while self._line < line and self._offset < len(self._text):
            ahead = self._text.count("\n", self._offset, self._offset + _STEP)
            if ahead < line - self._line:
                self._line += ahead
                self._offset += _STEP
                continue
            for _ in range(line - self._line):
                self._offset = self._text.index("\n", self._offset) + 1
            self._line = line
        return min(self._offset, len(self._text))


def _whole_change(old: str, new: str) -> Change:
    """Return as one change all lines between those that two texts share at their start and end."""
    start, old_end, new_end = _changed_window(old, new, 0)
    first = old.count("\n", 0, start)
    return (
        first,
        first + _Lines(old[start:old_end]).count(),
        first,
        first + _Lines(new[start:new_end]).count(),
    )


def _all_marked(mark: str, lines: str) -> str:
    if not lines:
        return ""
    if lines.endswith("\n"):
        return mark + lines[:-1].replace("\n", f"\n{mark}") + "\n"
    return mark + lines.replace("\n", f"\n{mark}") + "\n\\ No newline at end of file\n"


def _changed_window(old: str, new: str, context: int) -> tuple[int, int, int]:
    """Find the part with all changes and `context` lines around it: its start, its end in old and in new."""
    shortest = min(len(old), len(new))
    same = _common_prefix(old, new, shortest)
    tail = _common_suffix(old, new, shortest - same)
    start = old.rfind("\n", 0, same) + 1
    for _ in range(context):
        start = old.rfind("\n", 0, max(start - 1, 0)) + 1
    old_end, new_end = len(old) - tail, len(new) - tail
    if not (_at_line_start(old, old_end) and _at_line_start(new, new_end)):
        old_end = _next_line(old, old_end)
    for _ in range(context):
        old_end = _next_line(old, old_end)
    return start, old_end, len(new) - (len(old) - old_end)


def _common_prefix(old: str, new: str, most: int) -> int:
    # Comparing slices is memcmp: halving the doubtful part looks at each character about twice.
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(old: str, new: str, most: int) -> int:
    low, high = 0, most
    old_size, new_size = len(old), len(new)
    while low < high:
        middle = (low + high + 1) // 2
        if old[old_size - middle : old_size - low] == new[new_size - middle : new_size - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _at_line_start(text: str, position: int) -> bool:
    return position == 0 or text[position - 1] == "\n"


def _next_line(text: str, position: int) -> int:
    return text.find("\n", position) + 1 or len(text)


def _lines(text: str) -> list[str]:
    # A window of a text with `\n` may itself have none, so the rule of `split_lines` is already decided here.
    parts = text.split("\n")
    last = parts.pop()
    lines = [part + "\n" for part in parts]
    return [*lines, last] if last else lines


def _range(skipped: int, start: int, end: int) -> str:
    length = end - start
    # An empty range is named by the line before it.
    first = skipped + start + (1 if length else 0)
    return str(first) if length == 1 else f"{first},{length}"


def _marked(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"
