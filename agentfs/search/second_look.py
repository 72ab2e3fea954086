"""The second look of a search that found nothing: other readings of its arguments that find something.

Each reading is a change of the arguments. All changes of the pattern are tried together, in one walk that
stops at the first file with a match. All short searches of a call share one time budget.
"""

import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from agentfs.base.advice import Advice, FirstOf, Joined, Retry, plural
from agentfs.base.lazy import html
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, InvalidPatternError, NotFoundError
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
from agentfs.search.file_reader import FileReader
from agentfs.search.files import ExcludedNames, FileSource
from agentfs.search.left_out import OPEN_IGNORED, reason_of
from agentfs.search.options import GlobOptions, GrepOptions, ListOptions, has_wildcard, paths_of
from agentfs.shown.workspace_context import Context
from agentfs.text.notebook import is_named_notebook, shown_text
from agentfs.tree.visit import MAX_EXCLUDED, Excluded
from agentfs.tree.walk import path_order

SECONDS = 1.0  # time budget for all short searches of one call
_MOST_ENTRIES = 200_000
# The most names of a short search among hidden and ignored ones, which often are most names of a tree. It
# takes about 50 ms.
_MOST_EXCLUDED = 4_000
_MOST_LISTED = 20_000
_MAX_NAMED = 3
_MAX_SPELLED = 200  # characters of a pattern that are looked for in other spellings
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_TYPOGRAPHIC = ("'‘’‚′", '"“”„″', "-‐‑–—−", " \u00a0\u2009\u202f")
_NOT_ASCII = tuple(each for each in "".join(_TYPOGRAPHIC) if not each.isascii())

_LETTER_ESCAPE = re.compile(r"\\[A-Za-z]")

NewArguments = dict[str, Any]


class Reading(NamedTuple):
    """Another reading of the arguments of `grep`, which finds something."""

    fact: str  # such as "In another case it matches 3 lines of a.py"
    changes: Mapping[str, Any]  # of the arguments
    match: str = ""  # the text of the first match

    def hint(self, options: GrepOptions) -> str:
        """Return the fact with the call of `grep` that shows it."""
        return _hint(self.fact, _retry(options, self.changes))


def _basic_syntax(options: GrepOptions) -> Iterator[NewArguments]:
    return ({"pattern": each} for each in from_basic_syntax(options.pattern))


def _plain_text(options: GrepOptions) -> Iterator[NewArguments]:
    for text in (escape(options.pattern), as_plain_text(options.pattern)):
        yield {"pattern": text}


def _other_form(options: GrepOptions) -> Iterator[NewArguments]:
    return ({"pattern": unicodedata.normalize(form, options.pattern)} for form in ("NFC", "NFD"))


def _spelled(options: GrepOptions, spell: Callable[[str], str], between: str = "") -> Iterator[NewArguments]:
    """Yield a pattern in which each literal character is spelled in several ways."""
    pattern = options.pattern
    if len(pattern) > _MAX_SPELLED:
        return
    syntax = literal_syntax(pattern) if options.fixed_strings else read_syntax(pattern)
    spelled, before = "", ""
    for token in syntax.tokens:
        is_character = token.kind == "character"
        spelled += between if is_character and before == "character" else ""
        spelled += spell(token.value) or token.text if is_character else token.text
        before = token.kind
    if spelled != syntax.source:
        yield {"pattern": spelled, "fixed_strings": False}


def _over_lines(options: GrepOptions) -> Iterator[NewArguments]:
    pattern = options.pattern
    if "\n" in pattern if options.fixed_strings else has_character(pattern, "\n"):
        yield {"multiline": True}


def _typographic_text(options: GrepOptions) -> Iterator[NewArguments]:
    return _spelled(options, lambda each: next((f"[{re.escape(s)}]" for s in _TYPOGRAPHIC if each in s), ""))


def _with_invisible(options: GrepOptions) -> Iterator[NewArguments]:
    return _spelled(options, lambda _: "", f"[{_INVISIBLE}]*")


def _as_regex(_: GrepOptions) -> Iterator[NewArguments]:
    yield {"fixed_strings": False}


def _without_entities(options: GrepOptions) -> Iterator[NewArguments]:
    yield {"pattern": html.unescape(options.pattern)}


def _in_any_case(options: GrepOptions) -> Iterator[NewArguments]:
    pattern = options.pattern if options.fixed_strings else _LETTER_ESCAPE.sub("", options.pattern)
    if pattern.lower() != pattern.upper():
        yield {"ignore_case": True}


class _Row(NamedTuple):
    fact: str  # the start of the fact
    changes: Callable[[GrepOptions], Iterator[NewArguments]]
    needs: tuple[str, ...] = ()  # a file without any of these characters need not be searched


_READINGS = (
    _Row("As a regular expression it matches", _as_regex),
    _Row("With | ( ) in place of \\| \\( \\) it matches", _basic_syntax),
    _Row("As plain text it matches", _plain_text),
    _Row("Over several lines it matches", _over_lines),
    _Row("In another case it matches", _in_any_case),
    _Row("Without its HTML entities it matches", _without_entities),
    _Row("In another Unicode form it matches", _other_form),
    _Row("With typographic quotes, dashes or spaces it matches", _typographic_text, _NOT_ASCII),
    _Row("With invisible characters in it it matches", _with_invisible, tuple(_INVISIBLE)),
)


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
        unchanged = _Alternative(options, "", {}, ends)
        hit, seen_all = _first_hit(context, options, [unchanged], ends, excluded)
        if hit is not None:
            where = reason_of(context.root, excluded, hit.path) or one_line(hit.path)
            fact = f"{plural(hit.lines, 'line')} in hidden or ignored files, as in {where}"
            return Reading(fact, OPEN_IGNORED.arguments, hit.match), False
        may_have_more = not seen_all or len(excluded) >= MAX_EXCLUDED
    if options.invert:
        return None, may_have_more
    hit = None
    for name in () if searched else ("glob", "type", "exclude"):
        if hit is None and getattr(options, name, None):
            without = _Alternative(options, f"Without {name} it matches", {name: None}, ends)
            hit, _ = _first_hit(context, without.options, [without], ends)
    if hit is None:
        hit, _ = _first_hit(context, options, _pattern_alternatives(options, ends), ends)
    if hit is None:
        return None, may_have_more
    return hit.reading(), may_have_more


class _Alternative:
    """A search with changed arguments; its pattern is compiled only if a file may match."""

    def __init__(
        self, options: GrepOptions, fact: str, changes: NewArguments, ends: float, needs: tuple[str, ...] = ()
    ) -> None:
        self.fact, self.changes, self._ends = fact, changes, ends
        self.options = replace(options, **changes)
        self.plan = Plan(needs) if needs and options.pattern.isascii() else self.options.literals()
        self._prefilter = Prefilter(self.plan, encoding=options.encoding)

    @cached_property
    def _search(self) -> LineSearch | None:
        """The search of a text; None if the pattern is not valid."""
        try:
            return LineSearch(self.options.compile(), self._ends)
        except InvalidPatternError:
            return None

    def hit_in(self, path: str, content: bytes) -> "_Hit | None":
        """Return the first match in a file."""
        may_match = is_named_notebook(path) or self._prefilter.may_match(content, len(content))
        if not may_match or self._search is None:
            return None
        text = shown_text(path, decode_content(content, self.options.encoding) or "")
        if not (hits := list(self._search.hits(text))):
            return None
        start, end = hits[0].spans[0]
        lines = sum(1 + text.count("\n", hit.start, hit.end) for hit in hits)
        return _Hit(self, path, lines, text[hits[0].start + start : hits[0].start + end])


class _Hit(NamedTuple):
    alternative: _Alternative  # the search that found it
    path: str
    lines: int  # the number of matching lines in the file
    match: str  # the text of the first match

    def reading(self) -> Reading:
        """Return the changes that find the file, with a sentence about it."""
        fact = f"{self.alternative.fact} {plural(self.lines, 'line')} of {one_line(self.path)}"
        return Reading(fact, self.alternative.changes, self.match)


def _pattern_alternatives(options: GrepOptions, ends: float) -> list[_Alternative]:
    """Return the searches for other readings of the pattern."""
    found: dict[str, _Alternative] = {}
    for row in _READINGS:
        for changes in row.changes(options):
            new = {name: value for name, value in changes.items() if value != getattr(options, name)}
            if new and repr(new) not in found:
                found[repr(new)] = _Alternative(options, row.fact, new, ends, row.needs)
    return list(found.values())


def _first_hit(
    context: Context,
    source: GrepOptions,
    alternatives: Sequence[_Alternative],
    ends: float,
    among: Sequence[Excluded] | None = None,
) -> tuple[_Hit | None, bool]:
    """Return the first file that one of several searches finds, and True if all files were searched.

    Args:
        context: The root and the limits.
        source: The options that say which files are searched.
        alternatives: The searches.
        ends: The `time.monotonic()` at which the look ends.
        among: Search only these names, which an earlier search left out.
    """
    if not alternatives:
        return None, True
    most = _MOST_ENTRIES if among is None else _MOST_EXCLUDED
    limits = replace(context.limits, walk_entries=min(most, context.limits.walk_entries))
    # The order of the paths must not decide which match a hint shows.
    source = replace(source, path=sorted(paths_of(source.path), key=path_order))
    files: Any = FileSource(context.root, context.outputs, limits, source, ends)
    if among is not None:
        files = ExcludedNames(context.root, limits, source, ends, among)
    prefilter = Prefilter(*(each.plan for each in alternatives), encoding=source.encoding)
    contents = FileReader(context.root, prefilter, limits.file_bytes, source.encoding, ends)
    try:
        for reader, entries in files.batches():
            for entry, content in contents.of(reader, entries):
                path = reader.path_of(entry)
                for each in alternatives if isinstance(content, bytes) else ():
                    if hit := each.hit_in(path, content):
                        return hit, True
    except (AgentFSError, TimeoutError):
        return None, False
    return None, (files.skipped.reached if among is None else files.reached) is None


def explain_pattern(context: Context, options: GrepOptions, error: InvalidPatternError) -> None:
    """Say what the escaped form of an invalid pattern finds; drop one that finds nothing."""
    if (suggestion := error.details.get("suggestion")) is None:
        return
    ends = time.monotonic() + SECONDS
    meant = _Alternative(options, "As plain text it matches", {"pattern": suggestion}, ends)
    hit, seen_all = _first_hit(context, meant.options, [meant], ends)
    if hit is not None:
        error.hint = hit.reading().hint(options)
    elif seen_all:
        error.details["suggestion"] = None
        error.hint = "As plain text it matches nothing."


def explain_no_entries(context: Context, options: GlobOptions, nothing: FoundEntries) -> tuple[str, bool]:
    """Return a hint with the change of arguments that lets `glob` find something, or "".

    The second value is True if the skipped hidden and ignored names may have entries that it does not name.
    """
    ends, may_have_more = time.monotonic() + SECONDS, False
    excluded = nothing.excluded
    if excluded and not options.include_ignored and options.globs and not options.regex:
        limits = replace(context.limits, walk_entries=min(_MOST_LISTED, context.limits.walk_entries))
        names = ExcludedNames(context.root, limits, options, ends, excluded)
        paths = [reader.path_of(entry) for reader, entries in names.batches() for entry in entries]
        if paths:
            where = reason_of(context.root, excluded, paths[0]) or one_line(paths[0])
            more = "" if names.reached is None else " or more"
            return Joined(
                ": ", f"{len(paths)}{more} among hidden and ignored, as in {where}", OPEN_IGNORED
            ), False
        may_have_more = names.reached is not None or len(excluded) >= MAX_EXCLUDED
    if any(glob.lower() != glob.upper() for glob in options.globs):
        found = first_entries(context, options, ends, any_case=True)
        if found is not None and found.entries:
            named = ", ".join(one_line(entry.path) for entry in found.entries)
            left = found.total - len(found.entries)
            return f"in another case: {named}{f' and {left} more' if left else ''}", may_have_more
    return "", may_have_more


def first_entries(
    context: Context, options: ListOptions | GlobOptions, ends: float, *, any_case: bool = False
) -> FoundEntries | None:
    """Return the first entries that `ls` or `glob` finds; None after an error."""
    limits = replace(context.limits, walk_entries=min(_MOST_ENTRIES, context.limits.walk_entries))
    page, seconds = Page(0, _MAX_NAMED, PAGE_BYTES), ends - time.monotonic()
    if seconds <= 0:
        return None
    try:
        return find_entries(
            context._replace(limits=limits), options, page=page, seconds=seconds, any_case=any_case
        )
    except AgentFSError:
        return None


def count_left_out(context: Context, options: ListOptions) -> str:
    """Return a text with the number of entries that `ignore` has excluded from a listing, or ""."""
    found = first_entries(context, replace(options, ignore=None), time.monotonic() + SECONDS)
    return f": ignore leaves out {_count(found, 'entry', 'entries')}" if found and found.total else ""


def count_of_glob(context: Context, options: GlobOptions, seconds: float = SECONDS) -> str:
    """Return the number of files that a glob finds, as `3 files`, or "" for none."""
    found = first_entries(context, options, time.monotonic() + seconds)
    return _count(found, "file", "files") if found and found.total else ""


def _count(found: FoundEntries, one: str, several: str) -> str:
    return f"{'' if found.exact else 'at least '}{plural(found.total, one, several)}"


def explain_glob_path(
    context: Context, options: GrepOptions | GlobOptions, error: NotFoundError, *, matching: bool = False
) -> None:
    """Add a hint to the error for a missing path that is a glob: the call that searches its files.

    With `matching`, one of the files must have a match.
    """
    path = options.path
    if not isinstance(path, str) or not has_wildcard(path):
        return
    ends = time.monotonic() + SECONDS
    for changes in _path_as_glob(options, path):
        if matching and isinstance(options, GrepOptions):
            meant = _Alternative(options, "", changes, ends)
            if _first_hit(context, meant.options, [meant], ends)[0] is None:
                continue
        glob = changes["pattern"] if isinstance(options, GlobOptions) else changes["glob"]
        if files := count_of_glob(context, GlobOptions(glob, changes.get("path", "."))):
            error.details["as_glob"] = changes
            error.hint = _hint(f"As a glob it leads to {files}", _retry(options, changes))
            return


def _path_as_glob(options: GrepOptions | GlobOptions, path: str) -> Iterator[NewArguments]:
    """Yield arguments that search the files of a path that is a glob."""
    if isinstance(options, GlobOptions):
        pattern = options.pattern
        if isinstance(pattern, str):
            between = "" if "/" in pattern or options.anchored else "**/"
            yield {"pattern": f"{path}/{between}{pattern.lstrip('/')}", "path": "."}
    elif not options.glob:
        parts = path.split("/")
        first = next(number for number, part in enumerate(parts) if has_wildcard(part))
        base, rest = "/".join(parts[:first]) or ".", "/".join(parts[first:])
        yield from ({"path": base, "glob": glob} for glob in (f"/{rest}", f"/{rest}/**"))


def _retry(options: GrepOptions | GlobOptions, changes: Mapping[str, Any]) -> Retry:
    """Return the call for the first page with changed arguments; leave out default values."""
    defaults = {each.name: each.default for each in fields(options)}
    changed = {**changes, **({"offset": 0} if options.offset else {})}
    without = tuple(name for name, value in changed.items() if value == defaults[name])
    return Retry({name: value for name, value in changed.items() if name not in without}, without)


def _hint(fact: str, retry: Retry) -> str:
    return FirstOf(Advice(f"{fact}: ", retry, "."), f"{fact}.")
