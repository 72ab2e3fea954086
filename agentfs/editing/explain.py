"""Explain an edit that fails with `no_match` or `ambiguous`, and suggest the text that was meant.

Possible causes are tried from the most certain to mere guesses. Each shows numbered lines of the file.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, zip_longest
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName, call
from agentfs.editing import lookalikes
from agentfs.editing.lookalikes import Span
from agentfs.editing.match import MOST_COUNTED, NEW, OLD, comparable, lines_around
from agentfs.errors import AmbiguousError, DeadlineExceededError, NoMatchError
from agentfs.fs import Change, FileNode, quote
from agentfs.reading.notebook import AS_JSON
from agentfs.text import (
    CUT_MARK,
    LineNames,
    bodies_of,
    changed_lines,
    count_lines,
    cut_line,
    lf_view,
    plural,
    visible,
)

_MOST_LINES = 20
_MOST_PLACES = 5
_MOST_DIFFERENCES = 3
_MOST_ELIDED = 60
# A text this many times longer than the old text is not suggested.
_MOST_LONGER = 20
_LINE_CHARS = 200
_MOST_PAIRED = 4000  # characters compared in each line
_MOST_MATCHES = 10
_MOST_ADDED = 8
_MATCH_CHARS = 160
_VISIBLE_BLANKS = str.maketrans({" ": "·", "\t": "→", "\u00a0": "⍽"})
_WORD = re.compile(r"\w+")
_HIDDEN_BLANK = re.compile("[ \t]$|\u00a0| \t|(?<=[^\t])\t")  # which a reader of the line does not notice
_NUMBERS = LineNames()
_CELL_MARKS = "marks of a cell"
_BEFORE_LINES = {_CELL_MARKS: lookalikes.without_cell_marks, "line numbers": lookalikes.without_line_numbers}
_ELIDED = re.compile(r"\s*(#|//|--|/\*|<!--)?\s*(\.\.\.|…)")


class KnownTexts(NamedTuple):
    """Texts that were read: versions of the file, the latest first, and other files with their paths."""

    versions: Callable[[], list[str]] = list
    other_files: Callable[[], list[tuple[str, str]]] = list


def has_other_cause(view: str, old: str, new: str, known: KnownTexts) -> bool:
    """Return True if the edit is already applied, or an earlier version of the file had the old text.

    The edit then does not mean a place that only resembles the old text.
    """
    return bool(lookalikes.already_applied(view, old, new)) or any(
        old in text for text in map(lf_view, known.versions()) if text != view
    )


def explain_no_match(
    view: str, old: str, new: str, path: str, known: KnownTexts | None = None, names: LineNames = _NUMBERS
) -> NoMatchError:
    """Return the error for an old text that was not found; `details["cause"]` gives the cause."""
    diagnosis = _Diagnosis(view, old, new, path, known or KnownTexts(), names)
    why = "; the texts are too large to look for similar text."
    if comparable(view, old, new):
        why = ", and no text in it is similar."
        try:
            for find_cause in (
                diagnosis.misspelled,
                diagnosis.changed_since_read,
                diagnosis.applied,
                diagnosis.other_white_space,
                diagnosis.other_characters,
                diagnosis.applied_with_few_changes,
                diagnosis.in_other_file,
                diagnosis.near,
            ):
                call_context.check()
                if error := find_cause():
                    return error
        except DeadlineExceededError:
            why = ", and there was no time to look for similar text."
    return diagnosis.in_other_file() or diagnosis.absent(why)


def explain_review(error: NoMatchError, reviewed: Sequence[Change], olds: Sequence[str]) -> NoMatchError:
    """Return the error with a hint if a review has taken back or edited lines of an old text."""
    wanted = {line.strip() for old in olds for line in lf_view(old).split("\n")} - {""}
    for change in reviewed:
        before, after = (
            {line.strip() for line in node.load().decode("utf-8", "replace").splitlines()}
            if isinstance(node, FileNode)
            else set[str]()
            for node in (change.before, change.after)
        )
        if wanted & (before - after):
            hint = Joined(" ", "The user took back or edited this change in a review.", error.hint)
            return NoMatchError(error.message, hint=hint, details={**error.details, "reviewed": True})
    return error


def explain_earlier_edit(
    view: str, old: str, path: str, file: str, names: LineNames = _NUMBERS
) -> NoMatchError:
    """Return the error for an old text that an earlier edit of the same call has changed."""
    first, end = (file.count("\n", 0, offset) for offset in (file.index(old), file.index(old) + len(old)))
    lines = first + 1, max(first + 1, end + (not old.endswith("\n")))
    former = lookalikes.former_text(view, old, file)
    now = view[slice(*former.span)].removesuffix("\n") if former else ""
    details: dict[str, object] = {
        "path": path,
        "cause": "earlier_edit",
        "caused_by_earlier_edit": True,
        **_lines_of(names, [lines]),
        "places": [_excerpt(line) for line in now.split("\n")[:_MOST_LINES]] if now else [],
    }
    if former and former.text.strip() and view.count(former.text) == 1:
        details["suggestion"] = former.text
    changes = f"and an earlier edit {'changes that to:' if now else 'changes that.'}"
    return NoMatchError(
        Advice(OLD, f" is {names.ranges([lines])} of {quote(path)}, {changes}"),
        hint="Base this edit on the outcome of the earlier one, or join the two.",
        details=details,
    )


@dataclass(frozen=True)
class _Diagnosis:
    view: str
    old: str
    new: str
    path: str
    known: KnownTexts
    names: LineNames

    def misspelled(self) -> NoMatchError | None:
        for what, find in _BEFORE_LINES.items():
            if (self.names.cells or what != _CELL_MARKS) and (spans := find(self.view, self.old)):
                return self._error(
                    "line_numbers_included",
                    f": it has {what} before its lines. Without them, {self._lines_have(spans)} it:",
                    spans,
                    hint=Advice(f"Leave the {what} out of ", OLD, " and ", NEW, "."),
                )
        if spans := lookalikes.without_escapes(self.view, self.old):
            how = r"Pass line ends, tabs and quotes as they are, not as \n, \t or \" in the text; also in "
            return self._error(
                "whitespace" if "\\n" in self.old or "\\t" in self.old else "near",
                f": it has backslashes where the file has none. Without them, {self._lines_have(spans)} it:",
                spans,
                hint=Advice(how, NEW, "."),
            )
        return None

    def changed_since_read(self) -> NoMatchError | None:
        for before in map(lf_view, self.known.versions()):
            former = lookalikes.former_text(self.view, self.old, before) if before != self.view else None
            if former is None:
                continue
            span = former.span
            now = self.view[span[0] : span[1]]
            if self.new and self.new in now and self.new not in former.lines:
                return self._already_applied([span])
            old_lines = former.lines.split("\n")
            lost = [
                f"was: {_excerpt(line)}"
                for start, end, _, _ in changed_lines(old_lines, now.split("\n"))
                for line in old_lines[start:end]
            ]
            spans = [span] if span[0] < span[1] else []
            what = f"has changed; now {self._lines_have(spans)}:" if spans else "is gone."
            return self._error(
                "changed_since_shown",
                f" any more: a version shown earlier had it, but it {what}",
                spans,
                suggestion=former.text,
                places=lost[:_MOST_LINES],
                hint=Joined(
                    " ",
                    Advice("Adapt ", OLD, " and ", NEW, " to the change."),
                    Advice("Call ", call("read", path=self.path), " to see all of it."),
                ),
            )
        return None

    def applied(self) -> NoMatchError | None:
        spans = lookalikes.already_applied(self.view, self.old, self.new)
        view_lines, old_lines = bodies_of(self.view), self.old.split("\n")
        blocks = lookalikes.closest_blocks(view_lines, old_lines) if spans else []
        shared = [lookalikes.shared_lines(old_lines, view_lines[start:end]) for start, end in blocks]
        if blocks and lookalikes.shared_lines(old_lines, self.new.split("\n")) <= max(shared):
            # The new text counts as applied only at the place that is most similar to the old text.
            lines = self._lines(spans)
            spans = [
                span
                for span, (first, last) in zip(spans, lines, strict=True)
                if any(first <= end and last > start for start, end in blocks)
            ]
        return self._already_applied(spans) if spans else None

    def applied_with_few_changes(self) -> NoMatchError | None:
        spans = lookalikes.applied_with_few_changes(self.view, self.old, self.new)
        return self._already_applied(spans) if spans else None

    def _already_applied(self, spans: Sequence[Span]) -> NoMatchError:
        return self._error(
            "already_applied",
            Advice(", but ", NEW, f" is: {self._lines_have(spans)} it already:"),
            spans,
            suggestion="",
            hint="Nothing needs to be done, unless another place was meant.",
        )

    def other_white_space(self) -> NoMatchError | None:
        spans = lookalikes.ignoring_white_space(self.view, self.old, self.new)
        if not spans:
            return None
        return self._error(
            "whitespace",
            f" with this white space; {self._lines_have(spans)} the same text with other white space:",
            spans,
            places=self._differences(spans[0], blanks=True),
            hint="" if len(spans) == 1 else "Copy the white space of one of them, with the lines around it.",
        )

    def other_characters(self) -> NoMatchError | None:
        spans = lookalikes.ignoring_characters(self.view, self.old)
        if not spans:
            return None
        what = "capitals, quotes or ellipses"
        return self._error(
            "near",
            f" with these {what}; {self._lines_have(spans)} the same text with others:",
            spans,
            hint="" if len(spans) == 1 else "Copy one of them exactly, with the lines around it.",
        )

    def near(self) -> NoMatchError | None:
        lines = bodies_of(self.view)
        old_lines = self.old.split("\n")
        blocks = self._most_like_new(lines, lookalikes.closest_blocks(lines, old_lines))
        if not blocks:
            return None
        elided = any(_ELIDED.match(line) and line not in lines for line in old_lines)
        if elided:
            blocks = [self._with_elided_end(lines, block) for block in blocks]
        spans = [self._span_of(lines, block) for block in blocks]
        one = len(blocks) == 1
        ranges = self._lines(spans)
        comes = "comes" if one and ranges[0][0] == ranges[0][1] else "come"
        where = self.names.ranges(ranges)
        text = self._text(spans)
        is_other = len(text) > _MOST_LONGER * len(self.old)
        first = self.names.place(blocks[0][0] + 1)[0] or max(1, blocks[0][0] - 4)
        around = call("read", path=self.path, offset=first)
        return self._error(
            "near",
            f"; {where} {comes} closest:" if one else f"; {where} {comes} equally close:",
            spans,
            suggestion="" if is_other or re.search(CUT_MARK, self.new) else text,
            places=self._differences(spans[0]) if one else (),
            hint=Joined(
                " ",
                "Give every line in full: `...` does not match lines left out." if elided else "",
                self._mark_hint(),
                Advice(
                    "Copy ", OLD, " from the file exactly, white space included and without line numbers."
                ),
                Advice("To see more, call ", around, "."),
            ),
        )

    def _most_like_new(self, lines: Sequence[str], blocks: Sequence[Span]) -> Sequence[Span]:
        """Choose among equally close blocks by the lines that the new text keeps, if they tell one."""
        if len(blocks) < 2 or not self.new.strip():
            return blocks
        new_lines = self.new.split("\n")
        shared: list[int] = []
        for start, end in blocks:
            call_context.check()
            reach = max(end, start + len(new_lines))
            shared.append(lookalikes.shared_lines(new_lines, lines[start:reach]))
        best = [block for block, count in zip(blocks, shared, strict=True) if count == max(shared)]
        return best if len(best) == 1 else blocks

    def _mark_hint(self) -> str:
        """Explain the mark that stands for the part of a long line that was not shown."""
        mark = re.search(CUT_MARK, self.old)
        meaning = f"{mark[0]} stands for a part of a long line that was not shown" if mark else ""
        return meaning and Advice(f"{meaning}: use only parts that were shown in ", OLD, " and ", NEW, ".")

    def _with_elided_end(self, lines: Sequence[str], block: Span) -> Span:
        """Extend a block to the line that ends the new text, since `...` stood for the lines up to it."""
        start, end = block
        last = self.new.rstrip().rpartition("\n")[2].strip()
        reach = range(start, min(len(lines), end + _MOST_ELIDED))
        return start, next((n + 1 for n in reach if last and lines[n].strip() == last), end)

    def _span_of(self, lines: Sequence[str], block: Span) -> Span:
        """Return the part of a block that corresponds to the old text."""
        offset = sum(map(len, lines[: block[0]])) + block[0]
        text = "\n".join(lines[block[0] : block[1]])
        start, end = lookalikes.part_of_line(text, self.old.strip())
        return lookalikes.widened(self.view, (offset + start, offset + end), self.old, self.new)

    def in_other_file(self) -> NoMatchError | None:
        files = [(path, lf_view(text)) for path, text in self.known.other_files()]
        paths = lookalikes.files_with(self.old, files)[:_MOST_PLACES]
        if not paths:
            return None
        return self._error(
            "other_file",
            f", but it is in {', '.join(map(quote, paths))}, which was also shown.",
            hint=Advice("If that file was meant, ", Retry({"path": paths[0]}), "."),
            other_paths=paths,
        )

    def absent(self, why: str) -> NoMatchError:
        total, cells = count_lines(self.view), len(self.names.cells)
        grep = Advice(ToolName("grep"), " for a word of it")
        look = Joined(", or ", call("read", path=self.path), grep)
        return self._error(
            "absent",
            why,
            hint=Joined(
                " ",
                self._mark_hint(),
                f"The file has {plural(cells, 'cell') if cells else plural(total, 'line')}.",
                Advice("Call ", look, ", and copy the text from there."),
            ),
            total_lines=total,
        )

    def _error(
        self,
        cause: str,
        why: str,
        spans: Sequence[Span] = (),
        *,
        hint: str = "",
        suggestion: str | None = None,
        places: Sequence[str] = (),
        **more: object,
    ) -> NoMatchError:
        """Return the error, which shows the lines of the spans; a single span is also the suggestion."""
        details: dict[str, object] = {"path": self.path, "cause": cause, **more}
        if spans:
            lines = self._lines(spans)
            details |= _lines_of(self.names, lines)
            shown = zip(spans[:_MOST_PLACES], lines, strict=False)
            places = [*(line for span, (first, _) in shown for line in self._numbered(span, first)), *places]
        if places:
            details["places"] = list(places)
        suggestion = self._text(spans) if suggestion is None else suggestion
        in_one_cell = not spans or _is_in_one_cell(self.view, spans[0], self.names)
        if not in_one_cell:
            hint = Joined(" ", hint, "Edit the text of each cell by itself.", AS_JSON)
        is_new = suggestion.strip() and suggestion != self.new
        if is_new and in_one_cell and self.view.count(suggestion) == 1:
            details["suggestion"] = suggestion
            hint = hint or Advice("Pass exactly these lines as ", OLD, ", without the numbers.")
        message = Advice(OLD, f" is not in {quote(self.path)}", why)
        return NoMatchError(message, hint=hint, details=details)

    def _text(self, spans: Sequence[Span]) -> str:
        return self.view[spans[0][0] : spans[0][1]] if len(spans) == 1 else ""

    def _lines(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        """Return the numbers of the first and the last line of each span."""
        firsts = _line_numbers(self.view, [start for start, _ in spans])
        return [
            (first, first + self.view[start:end].removesuffix("\n").count("\n"))
            for first, (start, end) in zip(firsts, spans, strict=True)
        ]

    def _lines_have(self, spans: Sequence[Span]) -> str:
        ranges = self._lines(spans)
        one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        return f"{self.names.ranges(ranges)} {'has' if one else 'have'}"

    def _numbered(self, span: Span, first: int) -> list[str]:
        lines = self.view[slice(*lines_around(self.view, span[0], max(span[1] - 1, span[0])))].split("\n")
        shown = self.names.numbered([cut_line(line, _LINE_CHARS) for line in lines[:_MOST_LINES]], first)
        return shown + ([f"[and {len(lines) - _MOST_LINES} more]"] if len(lines) > _MOST_LINES else [])

    def _differences(self, span: Span, *, blanks: bool = False) -> list[str]:
        """Describe the first differences between the file and the old text."""
        first = self.view.count("\n", 0, span[0]) + 1
        start = self.view.rfind("\n", 0, span[0]) + 1
        file_lines = self.view[start : span[1]].removesuffix("\n").split("\n")
        old_lines = self.old.removesuffix("\n").split("\n")
        found: list[str] = []
        for old_start, old_end, new_start, new_end in changed_lines(old_lines, file_lines):
            number = first + new_start
            for wrong, right in _paired(old_lines[old_start:old_end], file_lines[new_start:new_end]):
                found.append(_difference(self.names.one(number), wrong, right, blanks=blanks))
                number = min(number + (right is not None), first + max(new_end - 1, new_start))
        more = len(found) - _MOST_DIFFERENCES
        return found[:_MOST_DIFFERENCES] + ([f"[{plural(more, 'more difference')}]"] if more > 0 else [])


def _lines_of(names: LineNames, ranges: Sequence[tuple[int, int]]) -> dict[str, object]:
    """Return the details that name line ranges."""
    lines = [[names.place(line)[1] for line in each] for each in ranges[:_MOST_PLACES]]
    details: dict[str, object] = {"lines": lines[0]}
    if names.cells:
        details["cells"] = [names.place(first)[0] for first, _ in ranges[:_MOST_PLACES]]
    if len(ranges) > 1:
        details["all_lines"] = lines
    return details


def _is_in_one_cell(view: str, span: Span, names: LineNames) -> bool:
    first, last = (view.count("\n", 0, offset) + 1 for offset in (span[0], max(span[1] - 1, span[0])))
    return names.place(first)[0] == names.place(last)[0]


def _paired(old: Sequence[str], lines: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Pair the lines of both sides, with the shorter side placed where they share the most words."""
    shorter, longer = sorted((old, lines), key=len)
    words = [
        [set(_WORD.findall(line[:_MOST_PAIRED])) for line in side[:_MOST_LINES]] for side in (shorter, longer)
    ]

    def shared(shift: int) -> int:
        return sum(len(one & other) for one, other in zip(words[0], words[1][shift:], strict=False))

    at = max(range(len(words[1]) - len(words[0]) + 1), key=shared)
    padded = [*[None] * at, *shorter]
    pairs = zip_longest(padded, longer) if shorter is old else zip_longest(longer, padded)
    return iter(pairs)


def _difference(place: str, wrong: str | None, right: str | None, *, blanks: bool) -> str:
    actual, expected = (_excerpt(line or "", blanks=blanks) for line in (right, wrong))
    if blanks and wrong is not None and right is not None and not _HIDDEN_BLANK.search(right):
        return f"in {place}, the old text has {expected}"  # the line itself is shown above
    if wrong is None:
        return f"the old text lacks {place}: {actual}"
    if right is None:
        return f"near {place}, the file lacks: {expected}"
    if blanks:
        return f"{place} is {actual} and the old text has {expected}"
    return f"in {place}, the old text has: {expected}"


def _excerpt(line: str, *, blanks: bool = False) -> str:
    text = visible(cut_line(line.translate(_VISIBLE_BLANKS) if blanks else line, _LINE_CHARS))
    return f"`{text}`" if blanks else text


def explain_ambiguous(
    view: str, old: str, starts: Sequence[int], path: str, names: LineNames = _NUMBERS
) -> AmbiguousError:
    """Return the error for an old text that occurs at several offsets, with the line of each.

    `details["unique"]` has a longer old text for each place that becomes unique with a few more lines.
    """
    lines = _line_numbers(view, starts)
    exact = len(starts) < MOST_COUNTED
    places: list[str] = []
    unique: list[dict[str, object]] = []
    for start, number in zip(starts[:_MOST_MATCHES], lines, strict=False):
        line = view[slice(*lines_around(view, start, start))]
        place = names.numbered([cut_line(line, _MATCH_CHARS)], number, width=len(str(lines[-1])))[0]
        longer = _unique(view, old, start, starts) if exact else None
        if longer is not None and _is_in_one_cell(view, longer, names):
            unique.append({"line": names.place(number)[1], "old_string": view[longer[0] : longer[1]]})
            place += _added_line(view, (start, start + len(old)), longer)
        places.append(place)
    at_least = "" if exact else "at least "
    if more := len(starts) - len(places):
        places.append(f"[and {at_least}{more} more]")
    extend = Advice("Add lines before or after it to ", OLD, " (and to ", NEW, ") until it is unique")
    replace_all = Advice("pass ", ParameterName("replace_all"), " to replace each")
    return AmbiguousError(
        Advice(OLD, f" is in {quote(path)} {at_least}{len(starts)} times; it must be there exactly once."),
        hint=Advice(Joined(", or ", extend, replace_all), "."),
        details={
            "path": path,
            "count": len(starts),
            "exact": exact,
            "lines": [names.place(line)[1] for line in lines[:_MOST_MATCHES]],
            **({"cells": [names.place(line)[0] for line in lines[:_MOST_MATCHES]]} if names.cells else {}),
            "line_count": old.rstrip("\n").count("\n") + 1,
            "places": places,
            "unique": unique,
        },
    )


def _line_numbers(view: str, offsets: Sequence[int]) -> list[int]:
    """Return the line numbers of ascending offsets."""
    counts = (view.count("\n", start, end) for start, end in pairwise((0, *offsets)))
    return [1 + lines for lines in accumulate(counts)]


def _unique(view: str, old: str, start: int, starts: Sequence[int]) -> Span | None:
    """Extend a match by the fewest lines, before or after it, that make it unique."""
    before, after = start, start + len(old)
    for _ in range(_MOST_ADDED + 1):
        before, after = lines_around(view, before, after)
        for low, high in ((before, start + len(old)), (start, after)):
            call_context.check()
            longer = view[low:high]
            others = (other - (start - low) for other in starts if other != start)
            if not any(other >= 0 and view.startswith(longer, other) for other in others):
                return low, high
        before, after = max(before - 1, 0), min(after + 1, len(view))
    return None


def _added_line(view: str, span: Span, longer: Span) -> str:
    """Show the outermost added line, by which the match becomes unique."""
    before = longer[0] < span[0]
    added = view[longer[0] : span[0]] if before else view[span[1] : longer[1]]
    line = added.partition("\n")[0] if before else added.rpartition("\n")[2]
    distance = max(added.count("\n"), 1)
    side, way = ("preceded", "above") if before else ("followed", "below")
    place = f", {plural(distance, 'line')} {way}," if distance > 1 else ""
    return f"  [{side} only here{place} by: {visible(cut_line(line, _MATCH_CHARS))}]" if line.strip() else ""
