"""The second look of a search that found nothing: other readings of its arguments that find something.

Each reading is a change of the arguments. All changes of the pattern are tried together, in one walk that
stops at the first file with a match. All short searches of a call share one time budget.
"""

import re
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from agentfs.base.advice import Advice, FirstOf, Joined, Retry, plural
from agentfs.base.lazy import html
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, InvalidPatternError
from agentfs.patterns.line_search import LineSearch
from agentfs.patterns.prefilter import Prefilter, decode_content
from agentfs.patterns.search_plan import Plan
from agentfs.patterns.syntax import (
    as_plain_text,
    escape,
    from_basic_syntax,
    has_character,
    literal_syntax,
    read_syntax,
)
from agentfs.search.entries import PAGE_BYTES, FoundEntries, Page, find_entries
from agentfs.search.files import ExcludedNames, FileReader, FileSource
from agentfs.search.left_out import OPEN_IGNORED, reason_of
from agentfs.search.options import GlobOptions, GrepOptions, paths_of
from agentfs.shown.workspace_context import Context
from agentfs.text.notebook import is_named_notebook, shown_text
from agentfs.tree.walk import MAX_EXCLUDED, Excluded, path_order

SECONDS = 1.0  # time budget for all short searches of one call
_MOST_ENTRIES = 200_000
# How many hidden and ignored names a short search looks at, which takes about 50 ms. Often most names of a
# tree are hidden or ignored.
_MOST_EXCLUDED = 4_000
_MOST_LISTED = 20_000
_MAX_NAMED = 3
# With this many lines in hidden and ignored files, a summary is suggested, which has 10 files a page.
_MANY_LINES = 30
_SUMMARY = {"output_mode": "summary", "limit": 10}
_MAX_SPELLED = 200  # characters of the longest pattern that is looked for in other spellings
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_TYPOGRAPHIC = ("'‘’‚′", '"“”„″', "-‐‑–—−", " \u00a0\u2009\u202f")
_NOT_ASCII = "".join(each for each in "".join(_TYPOGRAPHIC) if not each.isascii())
_CODE = re.compile(r"[^\\*+?{|^$]*\w[\[(][^\\*+?{|^$]*")  # an index or a call, without signs of a regex

NewArguments = dict[str, Any]
# The start of a sentence, the change, and characters: a file without any of them need not be searched.
_Row = tuple[str, NewArguments, str]


class Reading(NamedTuple):
    """Another reading of the arguments of `grep`, which finds something."""

    fact: str  # such as "In another case it matches 3 lines of a.py"
    changes: Mapping[str, Any]  # of the arguments
    match: str = ""  # the text of the first match
    path: str = ""  # the first file
    lines: int = 0  # the number of matching lines in this file; of hidden and ignored files, in all

    def hint(self, options: GrepOptions) -> str:
        """Return the fact with the call that shows it: the first page, without default values."""
        defaults = {each.name: each.default for each in fields(options)}
        changed = {**self.changes, **({"offset": 0} if options.offset else {})}
        without = tuple(name for name, value in changed.items() if value == defaults[name])
        retry = Retry({name: value for name, value in changed.items() if name not in without}, without)
        return FirstOf(Advice(f"{self.fact}: ", retry, "."), f"{self.fact}.")


def _readings(options: GrepOptions) -> Iterator[_Row]:
    """Yield the readings of a pattern, the likeliest first; some are the pattern itself."""
    pattern, is_fixed = options.pattern, options.fixed_strings
    yield "As a regular expression it matches", {"fixed_strings": False}, ""
    for text in from_basic_syntax(pattern):
        yield "With | ( ) in place of \\| \\( \\) it matches", {"pattern": text}, ""
    for text in (escape(pattern), as_plain_text(pattern)):
        yield "As plain text it matches", {"pattern": text}, ""
    if "\n" in pattern if is_fixed else has_character(pattern, "\n"):
        # In it `.` would match line ends too, and the match would have the rest of the file.
        tokens = () if is_fixed else read_syntax(pattern).tokens
        lines = "".join(r"[^\n]" if each.kind == "any" else each.text for each in tokens) or pattern
        yield "Over several lines it matches", {"multiline": True, "pattern": lines}, ""
    yield "In another case it matches", {"ignore_case": True}, ""
    yield "Without its HTML entities it matches", {"pattern": html.unescape(pattern)}, ""
    for form in ("NFC", "NFD"):
        if (text := unicodedata.normalize(form, pattern)) != pattern:
            changes = {"pattern": _in_ascii(escape(text) if is_fixed else text), "fixed_strings": False}
            yield "In another Unicode form it matches", changes, ""
    if len(pattern) <= _MAX_SPELLED:
        spelled = {"pattern": _spelled(options, _TYPOGRAPHIC, ""), "fixed_strings": False}
        yield "With typographic quotes, dashes or spaces it matches", spelled, _NOT_ASCII
        spelled = {"pattern": _spelled(options, (), f"[{_INVISIBLE}]*"), "fixed_strings": False}
        yield "With invisible characters in it it matches", spelled, _INVISIBLE


def _spelled(options: GrepOptions, classes: Sequence[str], between: str) -> str:
    """Return the pattern with the class of each literal character, and a pattern between two of them."""
    syntax = literal_syntax(options.pattern) if options.fixed_strings else read_syntax(options.pattern)
    spelled, before = "", ""
    for token in syntax.tokens:
        is_character = token.kind == "character"
        alike = next((each for each in classes if is_character and token.value in each), "")
        spelled += between if is_character and before == "character" else ""
        spelled += f"[{_in_ascii(re.escape(alike))}]" if alike else token.text
        before = token.kind
    return spelled


def _in_ascii(pattern: str) -> str:
    """Return a pattern with escapes for other characters, which may look like those that found nothing."""
    return pattern.encode("ascii", "backslashreplace").decode()


def second_look(
    context: Context, options: GrepOptions, excluded: Sequence[Excluded], *, searched: int
) -> tuple[Reading | None, bool]:
    """Return how a search without a match would find one, or None.

    Args:
        context: The root and the limits of the search.
        options: The arguments of the search.
        excluded: The hidden and ignored names that it left out.
        searched: The number of files that it searched.

    Returns:
        The reading, and True if the skipped hidden and ignored names may have a match that it does not name.
    """
    ends, may_have_more = time.monotonic() + SECONDS, False
    if excluded and not options.include_ignored:
        unchanged = ("", dict(OPEN_IGNORED.arguments), "")
        found, seen_all = _first_reading(context, options, [unchanged], ends, excluded)
        if found is not None:
            where = reason_of(context.root, excluded, found.path) or one_line(found.path)
            lines = plural(found.lines, "line") if seen_all else f"{found.lines} or more lines"
            fact = f"{lines} in hidden or ignored files, as in {where}"
            page = _SUMMARY if options.by_line and found.lines >= _MANY_LINES else {}
            return found._replace(fact=fact, changes={**found.changes, **page}), False
        may_have_more = not seen_all or len(excluded) >= MAX_EXCLUDED
    if options.invert:
        return None, may_have_more
    for name in () if searched else ("glob", "type", "exclude"):
        if getattr(options, name):
            without = (f"Without {name} it matches", {name: None}, "")
            if (found := _first_reading(context, options, [without], ends)[0]) is not None:
                return found, may_have_more
    return _first_reading(context, options, list(_readings(options)), ends)[0], may_have_more


class _Alternative:
    """A search with changed arguments; its pattern is compiled only if a file may match."""

    def __init__(self, options: GrepOptions, row: _Row, ends: float) -> None:
        self._fact, self.changes, needs = row
        self._ends = ends
        self.options = replace(options, **self.changes)
        self.plan = Plan(tuple(needs)) if needs and options.pattern.isascii() else self.options.literals()
        self._prefilter = Prefilter(self.plan, encoding=options.encoding)

    @cached_property
    def _search(self) -> LineSearch | None:
        """The search of a text; None if the pattern is not valid."""
        try:
            return LineSearch(self.options.compile(), self._ends)
        except InvalidPatternError:
            return None

    def reading_of(self, path: str, content: bytes) -> Reading | None:
        """Return the reading if it finds something in a file."""
        may_match = is_named_notebook(path) or self._prefilter.may_match(content, len(content))
        if not may_match or self._search is None:
            return None
        text = shown_text(path, decode_content(content, self.options.encoding) or "")
        if not (hits := list(self._search.hits(text))):
            return None
        match = text[hits[0].start :][slice(*hits[0].spans[0])]
        lines = sum(1 + text.count("\n", hit.start, hit.end) for hit in hits)
        fact = f"{self._fact} {plural(lines, 'line')} of {one_line(path)}"
        return Reading(fact, self.changes, match, path, lines)


def _first_reading(
    context: Context,
    options: GrepOptions,
    rows: Sequence[_Row],
    ends: float,
    among: Sequence[Excluded] | None = None,
) -> tuple[Reading | None, bool]:
    """Return the first reading that finds something in the first file, and True if all files were searched.

    Among names that a search left out, the lines of further files are added, up to `_MANY_LINES`.

    Args:
        context: The root and the limits.
        options: The arguments of the search. A single reading can also change which files are searched.
        rows: The readings to try; those without a change are left out.
        ends: The `time.monotonic()` at which the look ends.
        among: Search only these names, which an earlier search left out.
    """
    changed: dict[str, _Row] = {}
    for fact, changes, needs in rows:
        new = {name: value for name, value in changes.items() if value != getattr(options, name)}
        if new:
            changed.setdefault(repr(new), (fact, new, needs))
    alternatives = [_Alternative(options, row, ends) for row in changed.values()]
    if not alternatives:
        return None, True
    most = _MOST_ENTRIES if among is None else _MOST_EXCLUDED
    limits = replace(context.limits, walk_entries=min(most, context.limits.walk_entries))
    source = alternatives[0].options if len(alternatives) == 1 and among is None else options
    # The order of the paths must not decide which match a hint shows.
    source = replace(source, path=sorted(paths_of(source.path), key=path_order))
    context = context._replace(limits=limits)
    files: Any = FileSource(context, source, ends)
    if among is not None:
        files = ExcludedNames(context, source, ends, among)
    prefilter = Prefilter(*(each.plan for each in alternatives), encoding=options.encoding)
    contents = FileReader(context.root, prefilter, limits.file_bytes, options.encoding, ends)
    found: Reading | None = None
    try:
        for reader, entries in files.batches():
            for entry, content in contents.of(reader, entries):
                for each in alternatives if isinstance(content, bytes) else ():
                    if (reading := each.reading_of(reader.path_of(entry), content)) is not None:
                        lines = reading.lines + (found.lines if found else 0)
                        found = (found or reading)._replace(lines=lines)
                        if among is None or lines >= _MANY_LINES:
                            return found, among is None
    except (AgentFSError, TimeoutError):
        return found, False
    return found, (files.walk.skipped.reached if among is None else files.reached) is None


def plain_text_reading(context: Context, options: GrepOptions) -> Reading | None:
    """Return the plain text of a pattern that has matches, if it reads like code and does not match itself.

    For example, `dict[str, Any]` matches "dicts", but not "dict[str, Any]".
    """
    ends = time.monotonic() + SECONDS
    is_code = not (options.fixed_strings or options.invert) and _CODE.fullmatch(options.pattern)
    if not is_code or any(LineSearch(options.compile(), ends).hits(options.pattern)):
        return None
    plain = ("As plain text it matches", {"pattern": escape(options.pattern)}, "")
    return _first_reading(context, options, [plain], ends)[0]


def explain_no_entries(context: Context, options: GlobOptions, nothing: FoundEntries) -> tuple[str, bool]:
    """Return a hint with the change of arguments that lets `glob` find something, or "".

    The second value is True if the skipped hidden and ignored names may have entries that it does not name.
    """
    ends, may_have_more = time.monotonic() + SECONDS, False
    excluded = nothing.excluded
    if excluded and not options.include_ignored and options.globs and not options.regex:
        limits = replace(context.limits, walk_entries=min(_MOST_LISTED, context.limits.walk_entries))
        names = ExcludedNames(context._replace(limits=limits), options, ends, excluded)
        paths = [reader.path_of(entry) for reader, entries in names.batches() for entry in entries]
        if paths:
            where = reason_of(context.root, excluded, paths[0]) or one_line(paths[0])
            more = "" if names.reached is None else " or more"
            count = f"{len(paths)}{more} among hidden and ignored, as in {where}"
            return Joined(": ", count, OPEN_IGNORED), False
        may_have_more = names.reached is not None or len(excluded) >= MAX_EXCLUDED
    if any(glob.lower() != glob.upper() for glob in options.globs):
        found = first_entries(context, replace(options, case="insensitive"), ends)
        if found is not None and found.entries:
            named = ", ".join(one_line(entry.path) for entry in found.entries)
            left = found.total - len(found.entries)
            return f"in another case: {named}{f' and {left} more' if left else ''}", may_have_more
    return "", may_have_more


def first_entries(
    context: Context, options: GlobOptions, ends: float, most: int = _MAX_NAMED
) -> FoundEntries | None:
    """Return the first entries that `glob` finds; None after an error."""
    limits = replace(context.limits, walk_entries=min(_MOST_ENTRIES, context.limits.walk_entries))
    page, seconds = Page(0, most, PAGE_BYTES), ends - time.monotonic()
    try:
        return find_entries(context._replace(limits=limits), options, page=page, seconds=seconds)
    except AgentFSError:
        return None
