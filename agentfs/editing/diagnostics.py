"""What is said when an old text is not in the file: why, what stands there instead, and what to pass.

Pure: texts in, an error out. The causes are tried from the one that can be proven best to the one that can
only be guessed, and each shows the file's own text, with line numbers.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agentfs import call_context
from agentfs.editing import causes
from agentfs.editing.causes import Span
from agentfs.editing.closest import Block, closest
from agentfs.editing.match import MOST_COUNTED, comparable
from agentfs.errors import AmbiguousError, DeadlineExceededError, NoMatchError
from agentfs.fs import quote
from agentfs.messages import Joined, Message, ParameterName, Retry, ToolName, call
from agentfs.text import (
    bodies_of,
    changed_lines,
    count_lines,
    cut_line,
    lf_view,
    line_ranges,
    numbered,
    plural,
    visible,
)

MOST_SHOWN = 20
MOST_PLACES = 5
MOST_DIFFERENT = 3
MOST_ELIDED = 60
# A suggestion that is so many times longer than the old text stands for something else.
MOST_LONGER = 20
LINE_CHARS = 200
_MOST_MATCHES = 10
_MOST_ADDED = 8
_MATCH_CHARS = 160
OLD, NEW = ParameterName("old_string"), ParameterName("new_string")
_ELIDED = re.compile(r"\s*(#|//|--|/\*|<!--)?\s*(\.\.\.|…)")


def _none() -> list[tuple[str, str]]:
    return []


@dataclass(frozen=True)
class KnownTexts:
    """What this workspace has shown, as far as it can explain a miss.

    Attributes:
        versions: The texts of this file that were shown, the latest first.
        others: Returns the paths and texts of the other files shown.
    """

    versions: Sequence[str] = ()
    others: Callable[[], list[tuple[str, str]]] = field(default=_none)


def has_other_cause(view: str, old: str, new: str, known: KnownTexts) -> bool:
    """Tell whether a miss has a reason better than that the old text was written a little differently.

    Then a place that only resembles the old text is not the one that was meant.

    Args:
        view: The text in its LF view.
        old: The old text, likewise.
        new: The new text, likewise.
        known: What this workspace has shown.

    Returns:
        Whether a version shown earlier has the old text, or the file has the new one.
    """
    return bool(causes.there_already(view, old, new)) or any(
        old in text for text in map(lf_view, known.versions) if text != view
    )


@dataclass(frozen=True)
class _Miss:
    """One miss to be explained."""

    view: str
    old: str
    new: str
    path: str

    def error(
        self,
        cause: str,
        said: str,
        *,
        spans: Sequence[Span] = (),
        hint: str = "",
        suggestion: str = "",
        places: Sequence[str] = (),
        more: dict[str, object] | None = None,
    ) -> NoMatchError:
        details: dict[str, object] = {"path": self.path, "cause": cause, **(more or {})}
        if spans:
            lines = self._lines(spans)
            details["lines"] = list(lines[0])
            if len(lines) > 1:
                details["all_lines"] = [list(pair) for pair in lines[:MOST_PLACES]]
            shown: list[str] = []
            for span, (first, _) in zip(spans[:MOST_PLACES], lines, strict=False):
                shown += self._shown(span, first)
            details["places"] = [*shown, *places]
        elif places:
            details["places"] = list(places)
        if suggestion.strip() and self.view.count(suggestion) == 1 and suggestion != self.new:
            details["suggestion"] = suggestion
            hint = hint or Message("Pass the lines shown as ", OLD, ", exactly, without the numbers.")
        message = Message(OLD, f" is not in {quote(self.path)}", said)
        return NoMatchError(message, hint=hint, details=details)

    def _lines(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        """Return the first and the last line of each span; they are in order."""
        found: list[tuple[int, int]] = []
        line, position = 1, 0
        for start, end in spans:
            line += self.view.count("\n", position, start)
            position = start
            found.append((line, line + self.view[start:end].removesuffix("\n").count("\n")))
        return found

    def _shown(self, span: Span, first: int) -> list[str]:
        start = self.view.rfind("\n", 0, span[0]) + 1
        end = self.view.find("\n", max(span[1] - 1, start))
        lines = self.view[start : end if end >= 0 else len(self.view)].split("\n")
        shown = numbered([cut_line(line, LINE_CHARS) for line in lines[:MOST_SHOWN]], first)
        return shown + ([f"[and {len(lines) - MOST_SHOWN} more]"] if len(lines) > MOST_SHOWN else [])

    def where(self, spans: Sequence[Span]) -> str:
        ranges = self._lines(spans)
        one = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        return f"{line_ranges(ranges)} {'has' if one else 'have'}"

    def text(self, spans: Sequence[Span]) -> str:
        return self.view[spans[0][0] : spans[0][1]] if len(spans) == 1 else ""


def explain_no_match(
    view: str, old: str, new: str, path: str, known: KnownTexts | None = None
) -> NoMatchError:
    """Explain why an old text was not found.

    Args:
        view: The text in its LF view.
        old: The old text, likewise.
        new: The new text, likewise.
        path: The path as shown.
        known: What this workspace has shown.

    Returns:
        The error, to be raised; `details["cause"]` says why.
    """
    known = known or KnownTexts()
    missed = _Miss(view, old, new, path)
    why = ", and nothing there is close to it."
    if comparable(view, old, new):
        steps: list[Callable[[], NoMatchError | None]] = [
            lambda: _misspelled(missed),
            lambda: _changed(missed, known),
            lambda: _applied(missed),
            lambda: _blanks(missed),
            lambda: _capitals(missed),
            lambda: _near(missed, known),
        ]
        try:
            for step in steps:
                call_context.check()
                if (found := step()) is not None:
                    return found
        except DeadlineExceededError:
            why = ", and there was no time to look for what is close to it."
    else:
        why = "; what is close to it was not looked for, as there is too much to compare."
    total = count_lines(view)
    return _elsewhere(missed, known) or missed.error(
        "absent",
        why,
        hint=Joined(
            " ",
            f"The file has {plural(total, 'line')}.",
            Message(
                "Call ",
                Joined(", or ", call("read", path=path), Message(ToolName("grep"), " for a word of it")),
                ", and copy the text from there.",
            ),
        ),
        more={"total_lines": total},
    )


def _misspelled(missed: _Miss) -> NoMatchError | None:
    spans, meant = causes.without_numbers(missed.view, missed.old)
    if spans:
        return missed.error(
            "line_numbers_included",
            f": it has line numbers before its lines. Without them, {missed.where(spans)} it:",
            spans=spans,
            suggestion=missed.text(spans),
            hint=Message("Leave the numbers and the mark after them out of ", OLD, " and ", NEW, "."),
        )
    spans, meant = causes.unescaped(missed.view, missed.old)
    if spans and meant != missed.old:
        return missed.error(
            "whitespace" if "\\n" in missed.old or "\\t" in missed.old else "near",
            f": it has backslashes where the file has none. Without them, {missed.where(spans)} it:",
            spans=spans,
            suggestion=missed.text(spans),
            hint=Message(
                r"Pass line ends, tabs and quotes as they are, not as \n, \t or \" in the text; also in ",
                NEW,
                ".",
            ),
        )
    return None


def _changed(missed: _Miss, known: KnownTexts) -> NoMatchError | None:
    for version in known.versions:
        before = lf_view(version)
        found = causes.since(missed.view, missed.old, before) if before != missed.view else None
        if found is None:
            continue
        span, was, part = found
        now = missed.view[span[0] : span[1]]
        if missed.new and missed.new in now and missed.new not in was:
            return _already(missed, [span])
        lost = [f"was: {visible(cut_line(line, LINE_CHARS))}" for line in _only_in(was, now)]
        gone = span[0] == span[1]
        return missed.error(
            "changed_since_shown",
            f" any more: it was in a version shown earlier, and {'is gone' if gone else 'has changed'}"
            f"{'.' if gone else '; now ' + missed.where([span]) + ':'}",
            spans=[] if gone else [span],
            suggestion=part,
            places=lost[:MOST_SHOWN],
            hint=Joined(
                " ",
                Message("Take the change into ", OLD, " and ", NEW, "."),
                Message("Call ", call("read", path=missed.path), " to see all of it."),
            ),
        )
    return None


def _only_in(one: str, other: str) -> list[str]:
    mine, theirs = one.split("\n"), other.split("\n")
    return [line for start, end, _, _ in changed_lines(mine, theirs) for line in mine[start:end]]


def _blanks(missed: _Miss) -> NoMatchError | None:
    spans = causes.but_for_blanks(missed.view, missed.old, missed.new)
    if not spans:
        return None
    return missed.error(
        "whitespace",
        f" with this white space; {missed.where(spans)} the same text with other white space:",
        spans=spans,
        suggestion=missed.text(spans),
        places=_different(missed, spans[0], marked=True),
        hint="" if len(spans) == 1 else "Copy the white space of one of them, with lines around it.",
    )


def _capitals(missed: _Miss) -> NoMatchError | None:
    spans = causes.but_for_case(missed.view, missed.old)
    if not spans:
        return None
    return missed.error(
        "near",
        f" with these capitals; {missed.where(spans)} the same text with others:",
        spans=spans,
        suggestion=missed.text(spans),
        hint="" if len(spans) == 1 else "Copy one of them exactly, with lines around it.",
    )


def _already(missed: _Miss, spans: Sequence[Span]) -> NoMatchError:
    return missed.error(
        "already_applied",
        Message(", but ", NEW, f" is: {missed.where(spans)} it already:"),
        spans=spans,
        hint="Nothing needs to be done, unless another place was meant.",
    )


def _applied(missed: _Miss) -> NoMatchError | None:
    spans = causes.there_already(missed.view, missed.old, missed.new)
    if not spans:
        return None
    blocks = closest(bodies_of(missed.view), missed.old.split("\n"))
    if blocks:
        # What comes closest to the old text is then the new one; otherwise it stands somewhere by chance.
        spans = [
            span
            for span in spans
            if any(
                missed.view.count("\n", 0, span[0]) + 1 <= block.end
                and missed.view.count("\n", 0, span[1] - 1) + 1 >= block.start + 1
                for block in blocks
            )
        ]
    return _already(missed, spans) if spans else None


def _near(missed: _Miss, known: KnownTexts) -> NoMatchError | None:
    lines = bodies_of(missed.view)
    blocks = closest(lines, missed.old.split("\n"))
    if not blocks:
        return None
    alike = any(_much_alike(lines[block.start : block.end], missed.old) for block in blocks)
    if not alike and (other := _elsewhere(missed, known)):
        return other
    elided = any(_ELIDED.match(line) and line not in lines for line in missed.old.split("\n"))
    if elided:
        blocks = [_to_the_end(lines, block, missed.new) for block in blocks]
    spans = [_span(missed, lines, block) for block in blocks]
    one = len(blocks) == 1
    text = missed.text(spans)
    comes = "comes" if one and blocks[0].end - blocks[0].start == 1 else "come"
    where = f"{line_ranges([(block.start + 1, block.end) for block in blocks])} {comes}"
    around = call("read", path=missed.path, offset=max(1, blocks[0].start - 4))
    return missed.error(
        "near",
        f"; {where} closest:" if one else f"; {where} equally close:",
        spans=spans,
        suggestion=text if len(text) <= MOST_LONGER * len(missed.old) else "",
        places=_different(missed, spans[0]) if one else (),
        hint=Joined(
            " ",
            "Give every line in full: `...` stands for nothing." if elided else "",
            Message("Copy ", OLD, " from the file exactly, white space included and without line numbers."),
            Message("To see more, call ", around, "."),
        ),
    )


def _span(missed: _Miss, lines: Sequence[str], block: Block) -> Span:
    """Return the part of a block that the old text stands for."""
    start = sum(map(len, lines[: block.start])) + block.start
    text = "\n".join(lines[block.start : block.end])
    wanted = missed.old.strip()
    if "\n" in text or "\n" in wanted:
        body = text.strip()
        first = text.find(body)
        last = first + len(body)
    else:
        first, last = causes.part_of(text, wanted)
    return causes.widened(missed.view, (start + first, start + last), missed.old, missed.new)


def _to_the_end(lines: Sequence[str], block: Block, new: str) -> Block:
    """Let a block whose end was left out reach to the line that ends the new text too."""
    last = new.rstrip().rpartition("\n")[2].strip()
    reach = range(block.start, min(len(lines), block.end + MOST_ELIDED))
    ends = [number for number in reach if last and lines[number].strip() == last]
    return Block(block.start, ends[0] + 1) if ends else block


def _much_alike(lines: Sequence[str], old: str) -> bool:
    wanted = {line.strip() for line in old.split("\n") if line.strip()}
    return len(wanted & {line.strip() for line in lines}) * 2 > len(wanted)


def _elsewhere(missed: _Miss, known: KnownTexts) -> NoMatchError | None:
    paths = causes.in_others(missed.old, [(path, lf_view(text)) for path, text in known.others()])
    if not paths:
        return None
    named = ", ".join(quote(path) for path in paths[:MOST_PLACES])
    return missed.error(
        "other_file",
        f", but it is in {named}, which was shown too.",
        hint=Message("If that file was meant, ", Retry({"path": paths[0]}), "."),
        more={"other_paths": paths[:MOST_PLACES]},
    )


def _different(missed: _Miss, span: Span, *, marked: bool = False) -> list[str]:
    """Say in which lines the file and the old text differ, the first few of them."""
    first = missed.view.count("\n", 0, span[0]) + 1
    start = missed.view.rfind("\n", 0, span[0]) + 1
    theirs = missed.view[start : span[1]].removesuffix("\n").split("\n")
    mine = missed.old.removesuffix("\n").split("\n")
    said: list[str] = []
    for old_start, old_end, new_start, new_end in changed_lines(mine, theirs):
        for index in range(max(old_end - old_start, new_end - new_start)):
            wrong = mine[old_start + index] if old_start + index < old_end else None
            right = theirs[new_start + index] if new_start + index < new_end else None
            number = first + new_start + min(index, max(new_end - new_start - 1, 0))
            said.append(_difference(number, wrong, right, marked=marked))
    more = len(said) - MOST_DIFFERENT
    return [*said[:MOST_DIFFERENT], *([f"[{plural(more, 'more difference')}]"] if more > 0 else [])]


def _difference(number: int, wrong: str | None, right: str | None, *, marked: bool) -> str:
    show = _blanks_shown if marked else _line_shown
    if wrong is None:
        return f"the old text lacks line {number}: {show(right or '')}"
    if right is None:
        return f"the file lacks, near line {number}: {show(wrong)}"
    if marked:
        return f"line {number} is {show(right)} and the old text has {show(wrong)}"
    return f"in line {number}, the old text has: {show(wrong)}"


def _line_shown(line: str) -> str:
    return visible(cut_line(line, LINE_CHARS))


def _blanks_shown(line: str) -> str:
    shown = line.replace(" ", "·").replace("\t", "→").replace("\u00a0", "⍽")
    return f"`{visible(cut_line(shown, LINE_CHARS))}`"


def explain_ambiguous(view: str, old: str, starts: Sequence[int], path: str) -> AmbiguousError:
    """Name each place where an old text stands, with its line.

    Args:
        view: The text in its LF view.
        old: The old text.
        starts: The offsets where it stands, in order.
        path: The path as shown.

    Returns:
        The error, to be raised; `details["unique"]` has for each place a longer old text that only it has,
        where a few lines more make one.
    """
    lines: list[int] = []
    line, position = 1, 0
    for start in starts:
        line += view.count("\n", position, start)
        position = start
        lines.append(line)
    exact = len(starts) < MOST_COUNTED
    shown: list[str] = []
    unique: list[dict[str, object]] = []
    for start, number in zip(starts[:_MOST_MATCHES], lines, strict=False):
        place = _place(view, start, number, len(str(lines[-1])))
        longer = _unique(view, old, start, starts) if exact else None
        if longer is not None:
            before, end = longer
            unique.append({"line": number, "old_string": view[before:end]})
            place += _added(view, (start, start + len(old)), longer)
        shown.append(place)
    more = len(starts) - len(shown)
    at_least = "" if exact else "at least "
    if more:
        shown.append(f"[and {at_least}{more} more]")
    return AmbiguousError(
        Message(OLD, f" is in {quote(path)} {at_least}{len(starts)} times; it must be there exactly once."),
        hint=Message(
            Joined(
                ", or ",
                Message(
                    "Add lines before or after it to ", OLD, " (and to ", NEW, ") until it is there once"
                ),
                Message("pass ", ParameterName("replace_all"), " to replace each"),
            ),
            ".",
        ),
        details={
            "path": path,
            "count": len(starts),
            "exact": exact,
            "lines": lines[:_MOST_MATCHES],
            "line_count": old.rstrip("\n").count("\n") + 1,
            "places": shown,
            "unique": unique,
        },
    )


def _place(view: str, start: int, number: int, width: int) -> str:
    first = view.rfind("\n", 0, start) + 1
    end = view.find("\n", start)
    line = view[first : end if end >= 0 else len(view)]
    return numbered([cut_line(line, _MATCH_CHARS)], number, width=width)[0]


def _unique(view: str, old: str, start: int, starts: Sequence[int]) -> tuple[int, int] | None:
    """Return the least widening to whole lines before or after a place that no other place has."""
    before = view.rfind("\n", 0, start) + 1
    after = _line_end(view, start + len(old))
    for added in range(_MOST_ADDED + 1):
        for low, high in ((before, start + len(old)), (start, after)):
            wide = view[low:high]
            others = (other - (start - low) for other in starts if other != start)
            if not any(other >= 0 and view.startswith(wide, other) for other in others):
                return low, high
        if added < _MOST_ADDED:
            before = view.rfind("\n", 0, max(before - 1, 0)) + 1 if before > 1 else 0
            after = _line_end(view, min(after + 1, len(view)))
    return None


def _line_end(view: str, position: int) -> int:
    end = view.find("\n", position)
    return end if end >= 0 else len(view)


def _added(view: str, span: tuple[int, int], wide: tuple[int, int]) -> str:
    """Say which line makes a place the only one: the first or the last that was added."""
    if wide[0] < span[0]:
        line = view[wide[0] : span[0]].partition("\n")[0]
        return f"  [only here after: {visible(cut_line(line, _MATCH_CHARS))}]" if line.strip() else ""
    line = view[span[1] : wide[1]].rpartition("\n")[2]
    return f"  [only here before: {visible(cut_line(line, _MATCH_CHARS))}]" if line.strip() else ""
