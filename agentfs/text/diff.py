"""Compare texts by lines, and make unified diffs."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from agentfs.text.compare import ChangedRange, changed_lines
from agentfs.text.display import cut_line, cut_mark, visible_lines
from agentfs.text.lines import common_ends, lf_view, line_start

# The most lines of both texts that are compared one by one, because longer lists need much memory.
MOST_LINES = 400_000
_TO_ESCAPE = re.compile('["\\\\\x00-\x1f\x7f\ud800-\udfff]')
_ANCHOR_CHARS = 400
DIFF_CONTEXT = 3  # unchanged lines around a change
_LINE_CHARS = 400


class ReplacedLines(NamedTuple):
    """A range of lines before a change, and the range that replaced it; 0-based, the end is exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


def unified_diff(
    before: str | None, after: str | None, path: str, changes: Sequence[ChangedRange] | None = None
) -> str:
    r"""Return the diff of one file as git writes it.

    A text whose lines end at a lone `\r` is compared in its LF view, because git does not split it.

    Args:
        before: The old text, or None for a new file.
        after: The new text, or None for a deleted file.
        path: The path to name.
        changes: The `line_changes` of the texts, if the caller knows them.

    Returns:
        The diff, or "" for equal texts.
    """
    if before == after:
        return ""
    old, new = before or "", after or ""
    if old == new:  # an empty file that is created or deleted has only a header
        return git_header(path, "" if before is None else "100644", "" if after is None else "100644")
    old, new = _as_git_reads(old, new)
    names = file_names(path, created=before is None, deleted=after is None)
    return "".join([names, *hunks(old, new, changes)])


def line_changes(before: str, after: str) -> tuple[ReplacedLines, ...]:
    """Return the line ranges that differ between two texts of any length, ascending and not touching."""
    return git_line_changes(*_as_git_reads(before, after))


def git_line_changes(before: str, after: str) -> tuple[ReplacedLines, ...]:
    r"""Return the line ranges that differ, as `line_changes`, but lines end only at `\n`, as in git."""
    start, old_end, new_end = _changed_part(before, after)
    line, old, new = before.count("\n", 0, start), before[start:old_end], after[start:new_end]
    old_count, new_count = line_count(old), line_count(new)
    changes: Sequence[ChangedRange] = [(0, old_count, 0, new_count)] if old or new else []
    if old_count + new_count > MOST_LINES:
        changes = _changes_of_halves(old, new) or changes
    elif max(old_count, new_count) > 1:  # most edits replace one line by another
        changes = changed_lines(split_lines(old), split_lines(new))
    return tuple(ReplacedLines(line + a, line + b, line + c, line + d) for a, b, c, d in changes)


def _changes_of_halves(old: str, new: str) -> list[ReplacedLines]:
    """Compare the halves of two texts, divided after a line that both have once; [] if there is none."""
    middle = old.find("\n", len(old) // 2)
    anchor = old[middle : middle + _ANCHOR_CHARS]
    if middle < 0 or not old.count(anchor) == new.count(anchor) == 1:
        return []
    end, new_end = middle + 1, new.index(anchor) + 1
    line, new_line = old.count("\n", 0, end), new.count("\n", 0, new_end)
    below = git_line_changes(old[end:], new[new_end:])
    moved = [ReplacedLines(line + a, line + b, new_line + c, new_line + d) for a, b, c, d in below]
    return [*git_line_changes(old[:end], new[:new_end]), *moved]


def _as_git_reads(old: str, new: str) -> tuple[str, str]:
    old_view = old if "\n" in old else lf_view(old)
    new_view = new if "\n" in new else lf_view(new)
    return (old, new) if old_view == new_view else (old_view, new_view)


def git_header(path: str, old_mode: str, new_mode: str, moved_from: str = "") -> str:
    """Return the lines above `---`."""
    head = f"diff --git {_quoted('a/' + (moved_from or path))} {_quoted('b/' + path)}\n"
    if not old_mode:
        return f"{head}new file mode {new_mode}\n"
    if not new_mode:
        return f"{head}deleted file mode {old_mode}\n"
    modes = "" if old_mode == new_mode else f"old mode {old_mode}\nnew mode {new_mode}\n"
    moved = f"rename from {_quoted(moved_from)}\nrename to {_quoted(path)}\n" if moved_from else ""
    return f"{head}{modes}{moved}"


def file_names(path: str, *, created: bool, deleted: bool, old_path: str = "") -> str:
    """Return the `---` and `+++` lines."""
    names = [
        "/dev/null" if created else _quoted("a/" + (old_path or path)),
        "/dev/null" if deleted else _quoted("b/" + path),
    ]
    # A name with a space is followed by a tab, for readers that would end it at the space.
    old, new = [name + "\t" if " " in name and name[0] != '"' else name for name in names]
    return f"--- {old}\n+++ {new}\n"


def _quoted(name: str) -> str:
    """Quote and escape a name with a quote, a backslash, a control character or invalid UTF-8."""
    quoted = _TO_ESCAPE.sub(_escape, name)
    return name if quoted == name else f'"{quoted}"'


def _escape(found: re.Match[str]) -> str:
    if found[0] in '"\\':
        return f"\\{found[0]}"
    return "".join(f"\\{byte:03o}" for byte in found[0].encode("utf-8", "surrogateescape"))


def hunks(old: str, new: str, changes: Sequence[ChangedRange] | None = None) -> list[str]:
    r"""Return the hunks of a unified diff in pieces. Lines end only at `\n`."""
    changes = git_line_changes(old, new) if changes is None else changes
    pieces: list[str] = []
    # The first line after the last change, and its offset in each text.
    old_line = old_at = new_at = 0
    for group in _grouped(changes):
        (first_old, _, first_new, _), (_, last_old, _, last_new) = group[0], group[-1]
        lead = min(DIFF_CONTEXT, first_old)
        shown = line_start(old, first_old - lead - old_line + 1, "\n", old_at)
        head = len(pieces)
        for old_start, old_stop, new_start, new_stop in group:
            removed = line_start(old, old_start - old_line + 1, "\n", old_at)
            added = new_at + removed - old_at  # the lines between two changes are the same
            old_at = line_start(old, old_stop - old_start + 1, "\n", removed)
            new_at = line_start(new, new_stop - new_start + 1, "\n", added)
            pieces += (
                _marked(" ", old[shown:removed]),
                _marked("-", old[removed:old_at]),
                _marked("+", new[added:new_at]),
            )
            old_line, shown = old_stop, old_at
        following = old[old_at : line_start(old, DIFF_CONTEXT + 1, "\n", old_at)]
        trail = line_count(following)
        old_range = _range(first_old - lead, last_old + trail)
        pieces.insert(head, f"@@ -{old_range} +{_range(first_new - lead, last_new + trail)} @@\n")
        pieces.append(_marked(" ", following))
    return pieces


def bounded_lines(lines: Sequence[str], max_chars: int) -> list[str]:
    r"""Return the first lines of a diff, up to `max_chars`. Hidden characters are shown, long lines cut.

    The `\r` of line ends is left out of a hunk in which all lines have it.
    """
    if "\r" in "".join(lines):
        lines = _without_equal_returns(lines)
    if max(map(len, lines), default=0) > _LINE_CHARS:
        lines = [cut_line(each, _LINE_CHARS) for each in _around_changes(lines)]
    shown: list[str] = []
    for line in visible_lines(lines):
        max_chars -= len(line) + 1
        if max_chars < 0:
            break
        shown.append(line)
    return shown


def _without_equal_returns(lines: Sequence[str]) -> list[str]:
    shown: list[str] = []
    starts = [at for at, line in enumerate(lines) if line.startswith(("@@ ", "--- "))]
    for start, end in pairwise([0, *starts, len(lines)]):
        # "\ No newline at end of file" follows a line that has no end.
        pairs = pairwise([*lines[start:end], ""])
        hunk = [(line, line[:1] in {" ", "+", "-"} and after[:1] != "\\") for line, after in pairs]
        is_equal = all(line.endswith("\r") for line, is_ended in hunk if is_ended)
        shown += [line[:-1] if is_equal and is_ended else line for line, is_ended in hunk]
    return shown


def _around_changes(lines: Sequence[str]) -> list[str]:
    """Leave out the beginning that a long removed line shares with the added one after it."""
    shown = list(lines)
    texts = [at for at, line in enumerate(lines) if line[:1] != "\\"]  # "\ No newline at end of file"
    for old, new in pairwise(texts):
        start = common_ends(lines[old][1:], lines[new][1:])[0] - _LINE_CHARS // 4
        if lines[old][:1] == "-" and lines[new][:1] == "+" and start > 0:
            for at in (old, new):
                shown[at] = f"{lines[at][0]}{cut_mark(start)}{lines[at][1 + start :]}"
    return shown


def _changed_part(old: str, new: str) -> tuple[int, int, int]:
    """Return the range of lines that covers all changes: its start, and its end in each text."""
    same, tail = common_ends(old, new)
    old_end, new_end = len(old) - tail, len(new) - tail
    if (old_end and old[old_end - 1] != "\n") or (new_end and new[new_end - 1] != "\n"):
        old_end = old.find("\n", old_end) + 1 or len(old)
    return old.rfind("\n", 0, same) + 1, old_end, len(new) - (len(old) - old_end)


def line_count(text: str) -> int:
    r"""Return the number of lines; only `\n` ends a line."""
    return text.count("\n") + (text[-1:] not in {"", "\n"})


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text with their ends; only `\n` ends a line."""
    # `bodies_of` would split a last line without `\n` at its `\r`; `StringIO` takes four times the memory.
    parts = text.split("\n")
    last = parts.pop()
    lines = [part + "\n" for part in parts]
    return [*lines, last] if last else lines


def _grouped(changes: Sequence[ChangedRange]) -> list[list[ChangedRange]]:
    """Group changes whose context lines touch or overlap."""
    groups: list[list[ChangedRange]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * DIFF_CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _range(start: int, end: int) -> str:
    if end - start == 1:
        return str(end)
    return f"{start + (end > start)},{end - start}"  # an empty range has the number of the line before it


def _marked(mark: str, lines: str) -> str:
    if not lines:
        return ""
    if lines.endswith("\n"):
        return mark + lines[:-1].replace("\n", f"\n{mark}") + "\n"
    return mark + lines.replace("\n", f"\n{mark}") + "\n\\ No newline at end of file\n"
