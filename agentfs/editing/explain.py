"""Explain an edit that fails with `no_match` or `ambiguous`, and suggest the text that was meant.

Causes are tried from the most certain to mere guesses. Each shows numbered lines of the file.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product, zip_longest
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName, call, plural, shortened
from agentfs.base.lazy import difflib
from agentfs.base.visible import visible
from agentfs.editing.match import (
    MOST_COUNTED,
    NEW,
    OLD,
    comparable,
    lines_around,
    occurrences,
    tolerant_matches,
    without_line_numbers,
)
from agentfs.errors import AmbiguousError, DeadlineExceededError, NoMatchError
from agentfs.fs import quote
from agentfs.shown.workspace_context import Context
from agentfs.text.compare import changed_lines
from agentfs.text.display import CUT_MARK, cut_line, line_ranges, numbered
from agentfs.text.lines import bodies_of, count_lines, lf_view

Span = tuple[int, int]

_MOST_LINES = 20  # of one place that are shown
_MOST_PLACES = 5
_MOST_DIFFERENCES = 3
_MOST_LONGER = 20  # a text this many times longer than the old text is not suggested
_MOST_COMMON = 50  # a line that occurs more often says little about a place
_LINE_CHARS = 200
_LEAST_CHARACTERS = 8  # without white space, of a text that is recognised as applied or in another file
_LEAST_SIMILARITY = 0.6  # by difflib, of two lines
_MOST_CHARACTERS = 300  # of two blocks that are compared; the time grows with the square
_MOST_COMPARED = 20_000  # lines that are compared with one line of the old text
_WORD = re.compile(r"\w")
_TOKEN = re.compile(r"\w+|[^\w\s]")
# White space, and characters that a reader does not see: the soft hyphen and byte order mark are among them.
_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
_UNSEEN = str.maketrans(
    "", "", "".join([_SPACES, *map(chr, range(0x2000, 0x200B)), "\xad\u200b\u200c\u200d\u2060\ufeff"])
)
_VISIBLE_BLANKS = str.maketrans({" ": "·", "\t": "→", "\u00a0": "⍽"})


class KnownTexts(NamedTuple):
    """The texts that a workspace has read; none without a context."""

    context: Context | None = None
    real_path: str = ""

    def versions(self) -> list[str]:
        """Return the texts of the file, the latest first."""
        if self.context is None:
            return []
        return [lf_view(each.text or "") for each in self.context.tracker.versions_with_text(self.real_path)]

    def other_files(self) -> list[tuple[str, str]]:
        """Return the paths and texts of other files."""
        if self.context is None:
            return []
        root, tracker, _, _ = self.context
        read = tracker.other_texts(self.real_path)
        return [(root.display_path(path), lf_view(text)) for path, text in read if root.may_show(path)]


def has_other_cause(view: str, old: str, new: str, known: KnownTexts) -> bool:
    """Return True if the edit is already applied, or an earlier version of the file had the old text.

    The edit then does not mean a place that only resembles the old text.
    """
    return bool(_already_applied(view, old, new)) or any(
        old in text for text in known.versions() if text != view
    )


def explain_no_match(
    view: str, old: str, new: str, path: str, known: KnownTexts | None = None
) -> NoMatchError:
    """Return the error for an old text that was not found; `details["cause"]` gives the cause."""
    miss = _Miss(view, old, new, path, known or KnownTexts())
    if not comparable(view, old, new):
        return miss.absent("; the texts are too large to look for similar text.")
    causes = miss.misread, miss.changed, miss.applied, miss.unseen, miss.in_other_file, miss.near
    try:
        for find_cause in causes:
            call_context.check()
            if error := find_cause():
                return error
    except DeadlineExceededError:
        return miss.absent(", and there was no time to look for similar text.")
    return miss.absent(", and no text in it is similar.")


@dataclass(frozen=True)
class _Miss:
    """An old text that a file does not have. Each method looks for one cause."""

    view: str
    old: str
    new: str
    path: str
    known: KnownTexts

    def misread(self) -> NoMatchError | None:
        """Find the old text without line numbers, or with escapes read as characters."""
        plain = self.old.replace(r"\n", "\n").replace(r"\t", "\t").replace(r"\"", '"')
        blanks = plain.count("\n") > self.old.count("\n") or plain.count("\t") > self.old.count("\t")
        for cause, text, what in (
            ("line_numbers_included", without_line_numbers(self.old), "line numbers before its lines"),
            ("whitespace" if blanks else "near", plain, "line ends, tabs or quotes as escapes"),
        ):
            if text.strip() and text != self.old and (spans := self._found(text)):
                return self._error(
                    cause,
                    f": it has {what}. Without them, {self._have(spans)} it:",
                    spans,
                    hint=Advice(f"Leave out the {what} in ", OLD, " and ", NEW, "."),
                )
        return None

    def _found(self, text: str) -> list[Span]:
        exact = [(start, start + len(text)) for start in occurrences(self.view, text)]
        return exact or [(match.start, match.end) for match in tolerant_matches(self.view, text, "")[1]]

    def changed(self) -> NoMatchError | None:
        """Find the old text in a version that was shown earlier."""
        for before in self.known.versions():
            found = before.find(self.old) if before != self.view else -1
            if found < 0 or not comparable(before, self.old, ""):
                continue
            lines = bodies_of(before)
            first = before.count("\n", 0, found)
            last = first + self.old.removesuffix("\n").count("\n")
            start, end = lines_now(lines, self._lines, first, last)
            span = self._widened(self._span(start, end))
            if self.new and self.new in self.view[slice(*span)]:
                return self.applied([span])
            gone = [line for line in lines[first : last + 1] if line not in self._lines[start:end]]
            what = f"has changed; now {self._have([span])}:" if start < end else "is gone."
            return self._error(
                "changed_since_shown",
                f" any more: a version shown earlier had it, but it {what}",
                [span] if start < end else [],
                places=[f"was: {excerpt(line)}" for line in gone[:_MOST_LINES]],
                hint=Advice("Adapt ", OLD, " and ", NEW, " to the change."),
            )
        return None

    def applied(self, found: Sequence[Span] = ()) -> NoMatchError | None:
        """Find the new text."""
        spans = found or _already_applied(self.view, self.old, self.new)
        if not spans:
            return None
        return self._error(
            "already_applied",
            Advice(", but ", NEW, f" is: {self._have(spans)} it already:"),
            spans,
            suggestion="",
            hint="Nothing needs to be done, unless another place was meant.",
        )

    def unseen(self) -> NoMatchError | None:
        """Find the old text with other white space, invisible characters or Unicode forms."""
        wanted, seen = _seen(self.old), _seen(self.view)
        spans: list[Span] = []
        at = before = 0
        for start in occurrences(seen, wanted) if wanted else ():
            call_context.check()
            at, before = _offset(self.view, start - before, at), start
            span = at, _offset(self.view, len(wanted) - 1, at) + 1
            if not unicodedata.combining(seen[start + len(wanted) :][:1] or " ") and self._is_whole(span):
                spans.append(self._widened(span))
        if not spans:
            return None
        same = "".join(self.view[slice(*spans[0])].split()) == "".join(self.old.split())
        what = "white space" if same else "invisible characters or Unicode forms"
        return self._error(
            "whitespace" if same else "near",
            f" with such {what}; {self._have(spans)} the same text with other {what}:",
            spans,
            places=self._differences(spans[0]),
            hint="" if len(spans) == 1 else "Copy one of them, with the lines around it.",
        )

    def _is_whole(self, span: Span) -> bool:
        """Return True if a span cuts no word and, if the old text has several lines, not the last line."""
        view, (start, end) = self.view, span
        if "\n" in self.old and view[end : lines_around(view, start, end)[1]].strip():
            return False
        ends = (view[max(at - 1, 0) : at + 1] for at in (start, end))
        return not any(len(_WORD.findall(each)) == 2 for each in ends)

    def in_other_file(self) -> NoMatchError | None:
        if len(_seen(self.old)) < _LEAST_CHARACTERS:
            return None
        paths = [path for path, text in self.known.other_files() if self.old in text][:_MOST_PLACES]
        if not paths:
            return None
        return self._error(
            "other_file",
            f", but it is in {', '.join(map(quote, paths))}, which was also shown.",
            hint=Advice("If that file was meant, ", Retry({"path": paths[0]}), "."),
            other_paths=paths,
        )

    def near(self) -> NoMatchError | None:
        """Find the most similar lines."""
        blocks = closest_blocks(self._lines, self.old.removesuffix("\n").split("\n"))
        if not blocks:
            return None
        spans = [self._span(*block) for block in blocks]
        if "\n" not in self.old.strip("\n"):
            spans = [_part_of_line(self.view, span, self.old) for span in spans]
        spans = [self._widened(span) for span in spans]
        one = len(spans) == 1
        text = self.view[slice(*spans[0])] if one else ""
        come = "comes closest" if one and "\n" not in text.strip() else "come closest"
        usable = len(text) <= _MOST_LONGER * len(self.old) and not re.search(CUT_MARK, self.new)
        around = call("read", path=self.path, offset=max(1, blocks[0][0] - 4))
        copy = Advice("Copy ", OLD, " from the file exactly, white space included and without line numbers.")
        return self._error(
            "near",
            f"; {line_ranges(self._numbers(spans))} {come}:",
            spans,
            suggestion=text if usable else "",
            places=self._differences(spans[0]) if one else (),
            hint=Joined(" ", copy, Advice("To see more, call ", around, ".")),
        )

    def absent(self, why: str) -> NoMatchError:
        look = Joined(", or ", call("read", path=self.path), Advice(ToolName("grep"), " for a word of it"))
        total = count_lines(self.view)
        hint = Advice(f"The file has {plural(total, 'line')}. Call ", look, ", and copy the text from there.")
        return self._error("absent", why, hint=hint, total_lines=total)

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
            lines = [list(each) for each in self._numbers(spans)][:_MOST_PLACES]
            details |= {"lines": lines[0], **({"all_lines": lines} if len(spans) > 1 else {})}
            places = [*(line for first, last in lines for line in self._shown(first, last)), *places]
        if places:
            details["places"] = list(places)
        if suggestion is None:
            suggestion = self.view[slice(*spans[0])] if len(spans) == 1 else ""
        if suggestion.strip() and suggestion != self.new and self.view.count(suggestion) == 1:
            details["suggestion"] = suggestion
            hint = hint or Advice("Pass exactly these lines as ", OLD, ", without the numbers.")
        return NoMatchError(Advice(OLD, f" is not in {quote(self.path)}", why), hint=hint, details=details)

    @cached_property
    def _lines(self) -> list[str]:
        return bodies_of(self.view)

    @cached_property
    def _starts(self) -> list[int]:
        return [*accumulate((len(line) + 1 for line in self._lines), initial=0)]

    def _span(self, start: int, end: int) -> Span:
        """Return the span of the lines from `start` to `end`, without the last line end."""
        return self._starts[start], max(min(self._starts[end] - 1, len(self.view)), self._starts[start])

    def _numbers(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        """Return the numbers of the first and the last line of each span."""
        ends = ((start, max(end - 1, start)) for start, end in spans)
        return [(bisect_right(self._starts, start), bisect_right(self._starts, end)) for start, end in ends]

    def _have(self, spans: Sequence[Span]) -> str:
        numbers = self._numbers(spans)
        one = len(numbers) == 1 and numbers[0][0] == numbers[0][1]
        return f"{line_ranges(numbers)} {'has' if one else 'have'}"

    def _shown(self, first: int, last: int) -> list[str]:
        shown = [cut_line(line, _LINE_CHARS) for line in self._lines[first - 1 : last]]
        return shortened(numbered(shown, first), _MOST_LINES, "line")

    def _widened(self, span: Span) -> Span:
        """Extend a span by the white space around it that an edit would include.

        This is the indentation of the first line, if the old or the new text is indented, the blanks at the
        end of the last line, and as many line ends as the old text has at either end.
        """
        view, old, (start, end) = self.view, self.old, span
        line, line_end = lines_around(view, start, end)
        indented = any(text.lstrip("\n")[:1] in {" ", "\t"} for text in (old, self.new))
        if indented and not view[line:start].strip():
            start = line
        for _ in range(old[: len(old) - len(old.lstrip())].count("\n")):
            above = view.rfind("\n", 0, max(0, start - 1)) + 1
            if start == line and not view[above:start].strip():
                start = line = above
        if not view[end:line_end].strip():
            end = line_end
            for _ in range(old[len(old.rstrip()) :].count("\n")):
                below = view.find("\n", end) + 1
                end = below if not view[end:below].strip() and below else end
        return start, end

    def _differences(self, span: Span) -> list[str]:
        """Show the first lines that differ, with visible blanks."""
        [(first, _)] = self._numbers([span])
        there, old = (each.removesuffix("\n").split("\n") for each in (self.view[slice(*span)], self.old))
        found: list[str] = []
        for a, b, c, d in changed_lines(old, there):
            for wrong, right, number in zip_longest(old[a:b], there[c:d], range(first + c, first + d)):
                has = "" if wrong is None else f"the old text has {_revealed(wrong)}"
                found.append(", ".join(filter(None, [right and f"line {number} is {_revealed(right)}", has])))
        return shortened(found, _MOST_DIFFERENCES, "difference")


def _already_applied(view: str, old: str, new: str) -> list[Span]:
    """Find the new text if it is long enough to be recognised, and is not part of the old text."""
    if len(_seen(new)) < _LEAST_CHARACTERS or _seen(new) in _seen(old):
        return []
    return [(start, start + len(new)) for start in occurrences(view, new)]


def _seen(text: str) -> str:
    """Return a text without white space and invisible characters, in the decomposed Unicode form."""
    text = text.translate(_UNSEEN)
    return text if text.isascii() else unicodedata.normalize("NFD", text)


def _offset(text: str, seen: int, at: int) -> int:
    """Return the offset in a text after `at` of the character at an offset in `_seen` of the rest."""
    for size in (1 << 16, 1 << 8, 1):
        while (count := len(_seen(text[at : at + size]))) <= seen and at < len(text):
            at, seen = at + size, seen - count
    return at


def lines_now(old: Sequence[str], now: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Return the range of lines that has replaced the lines from `first` to `last`."""
    start, end = first, last + 1
    for old_start, old_end, new_start, new_end in changed_lines(old, now):
        if old_start <= first:
            start = new_start if first < old_end else first + new_end - old_end
        if old_start <= last:
            end = new_end if last < old_end else last + 1 + new_end - old_end
    return start, max(start, end)


def closest_blocks(lines: Sequence[str], block: Sequence[str]) -> list[tuple[int, int]]:
    """Return the ranges of lines that are most similar to a block; several if they are equally close.

    Lines that both have vote for a place; without any, the longest line is compared with each.
    """
    wanted, present = [line.strip() for line in block], [line.strip() for line in lines]
    counts, votes = Counter(present), Counter[int]()
    indexes: dict[str, list[int]] = {}
    for index, line in enumerate(wanted):
        if counts[line] <= _MOST_COMMON and _WORD.search(line):
            indexes.setdefault(line, []).append(index)
    for number, line in enumerate(present):
        for index in indexes.get(line, ()):
            votes[number - index] += len(line)
    most = max(votes.values(), default=None)
    starts: Sequence[int] = [start for start, count in votes.items() if count == most][:_MOST_COMMON]
    # The part of the block that is compared, and the similarity that a place must have.
    first, count, best = 0, len(wanted), 0.0
    if not starts:
        first, count, best = max(range(len(wanted)), key=lambda at: len(wanted[at])), 1, _LEAST_SIMILARITY
        starts = range(-first, min(len(present), _MOST_COMPARED) - first)
    text = "\n".join(wanted[first : first + count])[:_MOST_CHARACTERS]
    words = re.findall(r"\w+", text)
    matcher = difflib.SequenceMatcher(None, "", text, autojunk=False)
    closest: list[int] = []
    for start in starts if words else ():
        call_context.check()
        other = "\n".join(present[max(start + first, 0) : start + first + count])[:_MOST_CHARACTERS]
        matcher.set_seq1(other)
        ratio = 0.0
        if matcher.real_quick_ratio() >= best and matcher.quick_ratio() >= best:
            ratio = matcher.ratio()
        elif sum(len(word) for word in words if word in other) >= best * sum(map(len, words)):
            ratio = _LEAST_SIMILARITY  # most of its words are in a longer line
        if ratio > best:
            best, closest = ratio, []
        if ratio == best:
            closest.append(max(start, 0))
    blocks = dict.fromkeys((start, _end_of(present, wanted, start)) for start in sorted(closest))
    # A block that lies in another one differs from it only in the line that voted.
    return [(a, b) for a, b in blocks if not any(c <= a and b <= d and (a, b) != (c, d) for c, d in blocks)]


def _end_of(lines: Sequence[str], block: Sequence[str], start: int) -> int:
    """Return the end of the lines at `start` that correspond to a block; they may be more or fewer."""
    end = start + len(block)
    window = lines[start : end + max(3, len(block) // 2)]
    present = set(window)
    for after, line in enumerate(reversed(block), 1):
        if line in present and _WORD.search(line):  # as many lines follow as in the block
            ends = (start + at + after for at, each in enumerate(window) if each == line)
            end = min(ends, key=lambda each: abs(each - end))
            break
    return max(min(len(lines), end), start + 1)


def _part_of_line(view: str, span: Span, old: str) -> Span:
    """Find the part of a line that has the first and the last word of an old text, and about its length."""
    line, old = view[slice(*span)], old.strip()
    is_short = "\n" not in line and max(len(line), len(old)) <= 2 * _MOST_CHARACTERS
    words, tokens = (_TOKEN.findall(old), [*_TOKEN.finditer(line)]) if is_short else ([""], [])
    starts = [each.start() for each in tokens if each[0] == words[0]] or [len(line) - len(line.lstrip())]
    ends = [each.end() for each in tokens if each[0] == words[-1]] or [len(line.rstrip())]
    start, end = min(product(starts, ends), key=lambda each: abs(each[1] - each[0] - len(old)))
    return span[0] + start, span[0] + max(end, start)


def excerpt(line: str) -> str:
    """Return a line of a file as an error shows it."""
    return visible(cut_line(line, _LINE_CHARS))


def _revealed(line: str) -> str:
    """Return a line in which blanks, invisible characters and combining marks can be seen."""
    shown = visible(cut_line(line, _LINE_CHARS).translate(_VISIBLE_BLANKS))
    return f"`{''.join(f'⟦U+{ord(each):04X}⟧' if unicodedata.combining(each) else each for each in shown)}`"


def explain_ambiguous(view: str, old: str, starts: Sequence[int], path: str) -> AmbiguousError:
    """Return the error for an old text that occurs at several offsets, with the line of each."""
    lines = [view.count("\n", 0, start) + 1 for start in starts[: 2 * _MOST_PLACES]]
    exact = len(starts) < MOST_COUNTED
    at_least = "" if exact else "at least "
    places: list[str] = []
    for start, number in zip(starts, lines, strict=False):
        line = cut_line(view[slice(*lines_around(view, start, start))], _LINE_CHARS)
        places += numbered([line], number, width=len(str(lines[-1])))
    if more := len(starts) - len(places):
        places.append(f"[and {at_least}{more} more]")
    extend = Advice("Add lines before or after it to ", OLD, " (and to ", NEW, ") until it is unique")
    return AmbiguousError(
        Advice(OLD, f" is in {quote(path)} {at_least}{len(starts)} times; it must be there exactly once."),
        hint=Advice(extend, ", or pass ", ParameterName("replace_all"), " to replace each."),
        details={
            "path": path,
            "count": len(starts),
            "exact": exact,
            "lines": lines,
            "line_count": old.rstrip("\n").count("\n") + 1,
            "places": places,
        },
    )
