"""Explain an edit that fails with `no_match` or `ambiguous`, and suggest the text that was meant.

Causes are tried from the most certain to mere guesses. Each shows numbered lines of the file.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise, zip_longest
from typing import NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, Joined, ParameterName, Retry, ToolName, call
from agentfs.base.lazy import difflib
from agentfs.editing.match import (
    BLANK,
    MOST_COUNTED,
    NEW,
    OLD,
    comparable,
    lines_around,
    occurrences,
    tolerant_matches,
)
from agentfs.errors import AmbiguousError, DeadlineExceededError, NoMatchError
from agentfs.fs import quote
from agentfs.text import (
    CUT_MARK,
    View,
    bodies_of,
    changed_lines,
    count_lines,
    cut_line,
    lf_view,
    line_ranges,
    numbered,
    pieces_of,
    plural,
    visible,
)

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
_NUMBERS = tuple(
    re.compile(rf"[ ]*L?([0-9]{{1,18}})(?: [0-9a-f]{{6,}})?{separator}")
    for separator in (r"\|", r"\t", "→", ": ", ":", "- ", "-", "  ", r"\. ", " ")
)
# Characters that a reader does not see. The soft hyphen and the mark of a byte order are among them.
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_UNSEEN = re.compile(rf"[\s{_INVISIBLE}]+|\w[\u0300-\u036f]+")
_VISIBLE_BLANKS = str.maketrans({" ": "·", "\t": "→", "\u00a0": "⍽"})


class KnownTexts(NamedTuple):
    """Texts that were read: versions of the file, the latest first, and other files with their paths."""

    versions: Callable[[], list[str]] = list
    other_files: Callable[[], list[tuple[str, str]]] = list


def has_other_cause(view: str, old: str, new: str, known: KnownTexts) -> bool:
    """Return True if the edit is already applied, or an earlier version of the file had the old text.

    The edit then does not mean a place that only resembles the old text.
    """
    return bool(_already_applied(view, old, new)) or any(
        old in text for text in map(lf_view, known.versions()) if text != view
    )


def explain_no_match(
    view: str, old: str, new: str, path: str, known: KnownTexts | None = None
) -> NoMatchError:
    """Return the error for an old text that was not found; `details["cause"]` gives the cause."""
    miss = _Miss(view, old, new, path, known or KnownTexts())
    why = "; the texts are too large to look for similar text."
    if comparable(view, old, new):
        why = ", and no text in it is similar."
        causes = (
            miss.line_numbers,
            miss.escapes,
            miss.changed,
            miss.applied,
            miss.unseen,
            miss.in_other_file,
            miss.near,
        )
        try:
            for find_cause in causes:
                call_context.check()
                if error := find_cause():
                    return error
        except DeadlineExceededError:
            why = ", and there was no time to look for similar text."
    return miss.absent(why)


@dataclass(frozen=True)
class _Miss:
    """An old text that a file does not have. Each method looks for one cause."""

    view: str
    old: str
    new: str
    path: str
    known: KnownTexts

    def line_numbers(self) -> NoMatchError | None:
        plain = without_line_numbers(self.old)
        spans = _found(self.view, plain) if plain else []
        if not spans:
            return None
        return self._error(
            "line_numbers_included",
            f": it has line numbers before its lines. Without them, {self._have(spans)} it:",
            spans,
            hint=Advice("Leave the line numbers out of ", OLD, " and ", NEW, "."),
        )

    def escapes(self) -> NoMatchError | None:
        plain = self.old
        for escape, character in ((r"\n", "\n"), (r"\t", "\t"), (r"\"", '"')):
            plain = plain.replace(escape, character)
        spans = _found(self.view, plain) if plain != self.old else []
        if not spans:
            return None
        return self._error(
            "whitespace" if "\\n" in self.old or "\\t" in self.old else "near",
            f": it has line ends, tabs or quotes as escapes. Without them, {self._have(spans)} it:",
            spans,
            hint=Advice(
                r"Pass line ends, tabs and quotes as they are, not as \n, \t or \"; also in ", NEW, "."
            ),
        )

    def changed(self) -> NoMatchError | None:
        for before in map(lf_view, self.known.versions()):
            found = before.find(self.old) if before != self.view else -1
            if found < 0 or not comparable(before, self.old, ""):
                continue
            old_lines, now_lines = bodies_of(before), self._lines
            first = before.count("\n", 0, found)
            last = first + self.old.removesuffix("\n").count("\n")
            start, end = _lines_now(old_lines, now_lines, first, last)
            span = self._widened(self._span(start, end)) if start < end else self._span(start, start)
            if self.new and self.new in self.view[slice(*span)]:
                return self._applied([span])
            gone = [line for line in old_lines[first : last + 1] if line not in now_lines[start:end]]
            what = f"has changed; now {self._have([span])}:" if start < end else "is gone."
            return self._error(
                "changed_since_shown",
                f" any more: a version shown earlier had it, but it {what}",
                [span] if start < end else [],
                places=[f"was: {_excerpt(line)}" for line in gone[:_MOST_LINES]],
                hint=Advice("Adapt ", OLD, " and ", NEW, " to the change."),
            )
        return None

    def applied(self) -> NoMatchError | None:
        spans = _already_applied(self.view, self.old, self.new)
        return self._applied(spans) if spans else None

    def _applied(self, spans: Sequence[Span]) -> NoMatchError:
        return self._error(
            "already_applied",
            Advice(", but ", NEW, f" is: {self._have(spans)} it already:"),
            spans,
            suggestion="",
            hint="Nothing needs to be done, unless another place was meant.",
        )

    def unseen(self) -> NoMatchError | None:
        """Find the old text with other white space, invisible characters or Unicode forms."""
        wanted = _seen(self.old)
        if not wanted:
            return None
        bare = View(self.view, pieces_of(_UNSEEN, self.view, _seen_part), _seen(self.view))
        spans = [bare.span(start, len(wanted)) for start in occurrences(bare.text, wanted)]
        spans = [self._widened(span) for span in spans if self._is_whole(span)]
        if not spans:
            return None
        same = "".join(self.view[slice(*spans[0])].split()) == "".join(self.old.split())
        what = "this white space" if same else "these invisible characters or Unicode forms"
        return self._error(
            "whitespace" if same else "near",
            f" with {what}; {self._have(spans)} the same text with other {what.partition(' ')[2]}:",
            spans,
            places=self._differences(spans[0]),
            hint="" if len(spans) == 1 else "Copy one of them, with the lines around it.",
        )

    def _is_whole(self, span: Span) -> bool:
        """Return True if a span cuts no word, and no line if the old text has several."""
        start, end = span
        first, last = lines_around(self.view, start, max(end - 1, start))
        if "\n" in self.old.strip("\n") or self.old.endswith("\n"):
            return not self.view[end:last].strip() and not ("\n" in self.old and self._cuts(first, start))
        return not (_in_word(self.view, start) or _in_word(self.view, end))

    def _cuts(self, first: int, start: int) -> bool:
        return bool(self.view[first:start].strip()) and _in_word(self.view, start)

    def in_other_file(self) -> NoMatchError | None:
        if len(_seen(self.old)) < _LEAST_CHARACTERS:
            return None
        paths = [path for path, text in self.known.other_files() if self.old in lf_view(text)][:_MOST_PLACES]
        if not paths:
            return None
        return self._error(
            "other_file",
            f", but it is in {', '.join(map(quote, paths))}, which was also shown.",
            hint=Advice("If that file was meant, ", Retry({"path": paths[0]}), "."),
            other_paths=paths,
        )

    def near(self) -> NoMatchError | None:
        blocks = closest_blocks(self._lines, self.old.removesuffix("\n").split("\n"), self.new.split("\n"))
        if not blocks:
            return None
        spans = [self._span(*block) for block in blocks]
        if "\n" not in self.old.strip("\n"):
            spans = [_part_of_line(self.view, span, self.old) for span in spans]
        spans = [self._widened(span) for span in spans]
        text = self.view[slice(*spans[0])] if len(spans) == 1 else ""
        numbers = self._numbers(spans)
        come = "comes closest" if len(spans) == 1 and numbers[0][0] == numbers[0][1] else "come closest"
        usable = len(text) <= _MOST_LONGER * len(self.old) and not re.search(CUT_MARK, self.new)
        around = call("read", path=self.path, offset=max(1, blocks[0][0] - 4))
        return self._error(
            "near",
            f"; {line_ranges(numbers)} {come if len(spans) == 1 else 'come equally close'}:",
            spans,
            suggestion=text if usable else "",
            places=self._differences(spans[0]) if len(spans) == 1 else (),
            hint=Joined(
                " ",
                self._mark_hint(),
                Advice(
                    "Copy ", OLD, " from the file exactly, white space included and without line numbers."
                ),
                Advice("To see more, call ", around, "."),
            ),
        )

    def absent(self, why: str) -> NoMatchError:
        total = count_lines(self.view)
        grep = Advice(ToolName("grep"), " for a word of it")
        look = Joined(", or ", call("read", path=self.path), grep)
        return self._error(
            "absent",
            why,
            hint=Joined(
                " ",
                self._mark_hint(),
                f"The file has {plural(total, 'line')}.",
                Advice("Call ", look, ", and copy the text from there."),
            ),
            total_lines=total,
        )

    def _mark_hint(self) -> str:
        """Explain the mark that stands for the part of a long line that was not shown."""
        mark = re.search(CUT_MARK, self.old)
        meaning = f"{mark[0]} stands for a part of a long line that was not shown" if mark else ""
        return meaning and Advice(f"{meaning}: use only parts that were shown in ", OLD, " and ", NEW, ".")

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
            places = [*(line for span in spans[:_MOST_PLACES] for line in self._shown(span)), *places]
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
        return [
            (bisect_right(self._starts, start), bisect_right(self._starts, max(end - 1, start)))
            for start, end in spans
        ]

    def _have(self, spans: Sequence[Span]) -> str:
        numbers = self._numbers(spans)
        one = len(numbers) == 1 and numbers[0][0] == numbers[0][1]
        return f"{line_ranges(numbers)} {'has' if one else 'have'}"

    def _shown(self, span: Span) -> list[str]:
        first, last = self._numbers([span])[0]
        lines = [cut_line(line, _LINE_CHARS) for line in self._lines[first - 1 : last]]
        more = [f"[and {len(lines) - _MOST_LINES} more]"] if len(lines) > _MOST_LINES else []
        return numbered(lines[:_MOST_LINES], first) + more

    def _widened(self, span: Span) -> Span:
        """Extend a span by the white space around it that an edit would include.

        This is the indentation of the first line, if the old or the new text is indented, the blanks at the
        end of the last line, and as many line ends as the old text has at either end.
        """
        view, (start, end) = self.view, span
        line, line_end = lines_around(view, start, end)
        indented = any(text.lstrip("\n")[:1] in {" ", "\t"} for text in (self.old, self.new))
        if indented and not view[line:start].strip(BLANK):
            start = line
        # Stripping is linear; a search for white space at the end is not.
        before = self.old[: len(self.old) - len(self.old.lstrip())]
        after = self.old[len(self.old.rstrip()) :]
        for _ in range(before.count("\n")):
            above = view.rfind("\n", 0, max(0, start - 1)) + 1
            if not view.endswith("\n", 0, start) or view[above : start - 1].strip(BLANK):
                break
            start = above
        if not view[end:line_end].strip(BLANK):
            end = line_end
            most = after.count("\n")
            found = re.compile(rf"(?:[ \t]*\n){{0,{most}}}").match(view, end)
            end = found.end() if found else end
        return start, end

    def _differences(self, span: Span) -> list[str]:
        """Describe the first differences between the file and the old text."""
        first, last = self._numbers([span])[0]
        lines, old_lines = self._lines[first - 1 : last], self.old.removesuffix("\n").split("\n")
        found: list[str] = []
        for old_start, old_end, start, end in changed_lines(old_lines, lines):
            places = range(first + start, first + end)
            for wrong, number in zip_longest(old_lines[old_start:old_end], places):
                if number is None:
                    found.append(f"the file lacks: {_excerpt(wrong or '')}")
                    continue
                right = self._lines[number - 1]
                if wrong is None:
                    found.append(f"the old text lacks line {number}: {_excerpt(right)}")
                elif _seen(wrong) == _seen(right):
                    found.append(f"line {number} is {_revealed(right)}, the old text has {_revealed(wrong)}")
                else:
                    found.append(f"in line {number}, the old text has: {_excerpt(wrong)}")
        more = len(found) - _MOST_DIFFERENCES
        return found[:_MOST_DIFFERENCES] + ([f"[{plural(more, 'more difference')}]"] if more > 0 else [])


def without_line_numbers(text: str) -> str:
    """Return a text without the ascending line numbers before its lines, or "" if it has none."""
    lines = text.split("\n")
    for pattern in _NUMBERS:
        matches = [pattern.match(line) for line in lines]
        if any(match is None and line.strip() for match, line in zip(matches, lines, strict=True)):
            continue
        numbers = [int(match[1]) for match in matches if match is not None]
        if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            pairs = zip(matches, lines, strict=True)
            return "\n".join(line[match.end() :] if match else line for match, line in pairs)
    return ""


def _found(view: str, text: str) -> list[Span]:
    if not text.strip():
        return []
    if found := occurrences(view, text):
        return [(start, start + len(text)) for start in found]
    return [(match.start, match.end) for match in tolerant_matches(view, text, "")[1]]


def _already_applied(view: str, old: str, new: str) -> list[Span]:
    """Find the new text if it is long enough to be recognised, and is not part of the old text."""
    if len(_seen(new)) < _LEAST_CHARACTERS or _seen(new) in _seen(old):
        return []
    return [(start, start + len(new)) for start in occurrences(view, new)]


def _seen(text: str) -> str:
    """Return a text without white space and invisible characters, in the composed Unicode form."""
    return _UNSEEN.sub(_seen_part, text)


def _seen_part(found: re.Match[str]) -> str:
    part = found[0]
    return unicodedata.normalize("NFC", part) if part[-1] >= "\u0300" and part[0].isalnum() else ""


def _in_word(text: str, at: int) -> bool:
    return 0 < at < len(text) and bool(_WORD.match(text[at - 1]) and _WORD.match(text[at]))


def _lines_now(old: Sequence[str], now: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """Return the range of lines that has replaced the lines from `first` to `last`."""
    start = end = None
    shift = 0
    for old_start, old_end, new_start, new_end in (
        *changed_lines(old, now),
        (len(old),) * 2 + (len(now),) * 2,
    ):
        if start is None and first < old_end:
            start = new_start if first >= old_start else first + shift
        if end is None and last < old_end:
            end = new_end if last >= old_start else last + shift + 1
        shift = new_end - old_end
    start = first + shift if start is None else start
    return start, max(start, last + shift + 1 if end is None else end)


def closest_blocks(lines: Sequence[str], block: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the ranges of lines that are most similar to a block; several if they are equally close.

    Lines that both have vote for a place; without any, the longest line is compared with each. The text that
    is to replace the block decides between equal places.
    """
    wanted, present = [line.strip() for line in block], [line.strip() for line in lines]
    counts = Counter(present)
    indexes: dict[str, list[int]] = {}
    for index, line in enumerate(wanted):
        if _WORD.search(line) and 0 < counts[line] <= _MOST_COMMON:
            indexes.setdefault(line, []).append(index)
    votes = Counter[int]()
    for number, line in enumerate(present):
        for index in indexes.get(line, ()):
            votes[number - index] += len(line)
    most = max(votes.values(), default=0)
    starts = [start for start, count in votes.items() if count == most] or _similar_starts(present, wanted)
    if len(starts) > 1:
        starts = _most_similar(starts[:_MOST_COMMON], present, wanted)
        kept = {line.strip() for line in new} - {""}
        reach = max(len(wanted), len(new))
        shared = [sum(line in kept for line in present[max(at, 0) : at + reach]) for at in starts]
        starts = [at for at, count in zip(starts, shared, strict=True) if count == max(shared)]
    blocks = dict.fromkeys(_aligned(present, wanted, max(start, 0)) for start in sorted(starts))
    # A block that lies in another one differs from it only in the line that voted.
    return [(a, b) for a, b in blocks if not any(c <= a and b <= d and (a, b) != (c, d) for c, d in blocks)]


def _most_similar(starts: Sequence[int], lines: Sequence[str], block: Sequence[str]) -> list[int]:
    """Return the starts at which lines are most similar to a block."""
    matcher = difflib.SequenceMatcher(None, "", "\n".join(block)[:_MOST_CHARACTERS], autojunk=False)
    ratios: dict[int, float] = {}
    for start in starts:
        call_context.check()
        low = max(start, 0)
        matcher.set_seq1("\n".join(lines[low : start + len(block)])[:_MOST_CHARACTERS])
        ratios[start] = matcher.ratio()
    best = max(ratios.values())
    return [start for start, ratio in ratios.items() if ratio == best]


def _similar_starts(lines: Sequence[str], block: Sequence[str]) -> list[int]:
    """Return the starts of a block whose longest line is most similar to a line of the file."""
    longest = max(range(len(block)), key=lambda index: len(block[index]))
    line = block[longest][:_LINE_CHARS]
    if not _WORD.search(line):
        return []
    matcher = difflib.SequenceMatcher(None, "", line, autojunk=False)
    best, starts = _LEAST_SIMILARITY, list[int]()
    for number, other in enumerate(lines[:_MOST_COMPARED]):
        call_context.check()
        matcher.set_seq1(other[:_LINE_CHARS])
        if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best:
            inside = len(other) > len(line) and _share_inside(line, other) >= _LEAST_SIMILARITY
            if not inside or best > _LEAST_SIMILARITY:
                continue
            ratio = _LEAST_SIMILARITY
        else:
            ratio = matcher.ratio()
        if ratio > best:
            best, starts = ratio, []
        if ratio >= best:
            starts.append(number - longest)
    return starts


def _share_inside(part: str, line: str) -> float:
    """Return the share of the words of a part that a longer line has."""
    words = re.findall(r"\w+", part)
    return sum(len(word) for word in words if word in line) / max(sum(map(len, words)), 1)


def _aligned(lines: Sequence[str], block: Sequence[str], start: int) -> tuple[int, int]:
    """Return the range of lines that corresponds to a block, which may have more or fewer lines."""
    count = len(block)
    window = lines[start : start + count + max(3, count // 2)]
    pairs: list[tuple[int, int]] = []
    old_at = new_at = 0
    ends = ((len(block),) * 2 + (len(window),) * 2,)
    for old_start, old_end, new_start, new_end in (*changed_lines(block, window), *ends):
        pairs += zip(range(old_at, old_start), range(new_at, new_start), strict=True)
        old_at, new_at = old_end, new_end
    pairs = [pair for pair in pairs if _WORD.search(block[pair[0]])]
    if not pairs:
        return start, min(len(lines), start + count)
    last_index, last = pairs[-1]
    return start, min(len(lines), start + max(last + count - last_index, 1))


def _part_of_line(view: str, span: Span, old: str) -> Span:
    """Find the part of one line that corresponds to an old text, from its first to its last word."""
    line = view[slice(*span)]
    start, end = span[0] + len(line) - len(line.lstrip()), span[0] + len(line.rstrip())
    if "\n" in line or max(len(line), len(old)) > 2 * _MOST_CHARACTERS:
        return start, end
    tokens = list(_TOKEN.finditer(line))
    words = _TOKEN.findall(old)
    matcher = difflib.SequenceMatcher(None, words, [token[0] for token in tokens], autojunk=False)
    same = [each for each in matcher.get_matching_blocks() if each.size]
    if same and same[0].a == 0:
        start = span[0] + tokens[same[0].b].start()
    if same and same[-1].a + same[-1].size == len(words):
        end = span[0] + tokens[same[-1].b + same[-1].size - 1].end()
    return start, max(end, start)


def _excerpt(line: str) -> str:
    return visible(cut_line(line, _LINE_CHARS))


def _revealed(line: str) -> str:
    """Return a line in which blanks, invisible characters and combining marks can be seen."""
    shown = visible(cut_line(line, _LINE_CHARS).translate(_VISIBLE_BLANKS))
    return f"`{''.join(f'⟦U+{ord(each):04X}⟧' if unicodedata.combining(each) else each for each in shown)}`"


def explain_ambiguous(view: str, old: str, starts: Sequence[int], path: str) -> AmbiguousError:
    """Return the error for an old text that occurs at several offsets, with the line of each."""
    counts = (view.count("\n", start, end) for start, end in pairwise((0, *starts)))
    lines = [1 + number for number in accumulate(counts)]
    exact = len(starts) < MOST_COUNTED
    places: list[str] = []
    for start, number in zip(starts[: 2 * _MOST_PLACES], lines, strict=False):
        line = view[slice(*lines_around(view, start, start))]
        places += numbered([cut_line(line, _LINE_CHARS)], number, width=len(str(lines[-1])))
    at_least = "" if exact else "at least "
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
            "lines": lines[: 2 * _MOST_PLACES],
            "line_count": old.rstrip("\n").count("\n") + 1,
            "places": places,
        },
    )
