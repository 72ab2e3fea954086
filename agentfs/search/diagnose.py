"""Reports on what a search left out, and hints after a search that found nothing.

Hints come from a few short searches within one time budget: in skipped files, and with other readings of the
arguments.
"""

import posixpath
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple

from agentfs.base import call_context
from agentfs.base.advice import Advice, FirstOf, Joined, ParameterName, Retry, call, plural
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, InvalidPatternError, NotDirectoryError, NotFoundError
from agentfs.fs import ReadBuffer, Root, display_name, quote
from agentfs.limits import Limits
from agentfs.patterns.syntax import MAX_CHARACTERS, as_plain_text, escape, from_basic_syntax, has_character
from agentfs.results import Skipped
from agentfs.search.entries import PAGE_BYTES, FoundEntries, Page, find_entries
from agentfs.search.grep_files import FileSource
from agentfs.search.options import (
    FindOptions,
    GlobOptions,
    GrepOptions,
    ListOptions,
    SearchOptions,
    as_list,
    has_wildcard,
    paths_of,
)
from agentfs.search.searcher import Finding, search
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context, watched
from agentfs.text import HEAD, first_names
from agentfs.tree.gitignore import IgnoreRules
from agentfs.tree.ignore_sources import RuleReader, with_slash
from agentfs.tree.visit import MAX_EXCLUDED, Excluded
from agentfs.tree.walk import VCS_NAMES, path_order
from agentfs.watch.kept_walk import search_walk

_OPEN_IGNORED = Retry({"include_ignored": True})  # also includes hidden names
_RULE_CHARS = 80
_MAX_RULES = 2
_WITH_LONG_LINES = "with lines too long for the pattern"
_REASONS = (  # reason: the words for one name and for several
    ("hidden", "hidden", "hidden"),
    ("ignored", "ignored", "ignored"),
    ("vcs", "version control directory", "version control directories"),
    ("protected", "protected by the policy", "protected by the policy"),
    ("binary", "binary", "binary"),
    ("too_large", "too large", "too large"),
    ("undecodable", "undecodable", "undecodable"),
    ("unreadable", "unreadable", "unreadable"),
    ("symlink", "link", "links"),
    ("special", "special file", "special files"),
    ("too_deep", "too deep to name", "too deep to name"),
    ("long_lines", f"file {_WITH_LONG_LINES}", f"files {_WITH_LONG_LINES}"),
)
_NEVER_SEARCHED = frozenset({"vcs", "binary"})
_SAID_ONCE = frozenset({"hidden", "ignored"})  # other reasons mean an incomplete answer
_REACHED = {
    "walk_entries": "the most entries that one walk looks at",
    "memory": "the most memory that one call may take",
}
_SPACES = re.compile(r"(?:\\?[ \t]){2,}")
_SPACED_BAR = re.compile(r" +(?<!\\)\|\ *|(?<!\\)\| +")
# Characters that models write around a pattern.
_ADDITIONS = {
    "the quotes": re.compile(r"(?P<quote>[\"'`])(?P<pattern>.+)(?P=quote)(?P<flags>)", re.DOTALL),
    "the slashes": re.compile(r"/(?P<pattern>.+)/(?P<flags>[a-z]*)", re.DOTALL),
    "the options": re.compile(r"(?P<flags>(?:-[A-Za-z]+ +)+)(?P<pattern>.+)", re.DOTALL),
    "the stars": re.compile(r"\*+(?P<pattern>[^*]+)\**(?P<flags>)"),
}
_LOOKS_LIKE_GLOB = re.compile(r"\*[\w*./-]+")
_EXTENDED_GLOB = re.compile(r"[!@+]\(")
_SUFFIX = re.compile(r"(?<=[^*/.])\.\w+$")  # of a glob that names a file, after a letter
_FLAGS = {"i": "ignore_case", "w": "word", "F": "fixed_strings"}  # letters of `/x/i` and `-i x`
PROBE_ENTRIES = 200_000
# The most names of a short search among hidden and ignored ones, which often are most names of a tree. It
# takes about 50 ms.
_SEARCHED_EXCLUDED = 4_000
_LISTED_EXCLUDED = 20_000
PROBE_SECONDS = 1.0  # time budget for all short searches of one call
_MAX_NAMED = 3
# Arguments of `glob` and `find` that can exclude an entry whose name matches.
_FILTERS = (
    *("exclude", "types", "extensions", "min_depth", "max_depth", "size", "changed_within", "changed_before"),
)


def skip_report(skipped: Skipped, *, can_open: bool, found: bool = False, repeated: bool = False) -> str:
    """Report what was skipped.

    Args:
        skipped: What was skipped.
        can_open: True to add how to search hidden and ignored names.
        found: True if the search found something; then names that are never searched are not mentioned.
        repeated: True if the last report was the same; then hidden and ignored names are not mentioned.

    Returns:
        The report, or "" if there is nothing to say.
    """
    nothing = frozenset[str]()
    unsaid = (_NEVER_SEARCHED if found else nothing) | (_SAID_ONCE if repeated else nothing)
    counted: list[str] = []
    for name, one, several in _REASONS:
        if name not in unsaid and (count := getattr(skipped, name)):
            rules = _rules(skipped.rules, 1 if found else _MAX_RULES) if name == "ignored" else ""
            counted.append(plural(count, one, several) + rules)
    if not counted and not skipped.unread_rules:
        return ""
    opened = bool(skipped.hidden) + bool(
        skipped.ignored
    )  # the first of `counted`, which the model can search
    if can_open and not repeated and opened:
        last = counted[opened - 1]
        counted[opened - 1] = FirstOf(Advice(f"{last} (", _OPEN_IGNORED, ")"), last)
    report = Advice("left out: ", Joined(", ", *counted)) if counted else ""
    unread = ""
    if skipped.unread_rules:
        unread = first_names([one_line(display_name(file)) for file in skipped.unread_rules], _MAX_RULES)
        unread = f"rule files not read, as they are too large or unreadable: {unread}"
    return Joined("; ", report, unread)


def report_of(
    options: SearchOptions, skipped: Skipped, tracker: ReadTracker, *, found: bool, can_open: bool = True
) -> str:
    """Return the skip report of a search; it is shorter after a find, and if it repeats the last one."""
    report = skip_report(skipped, can_open=can_open and not options.include_ignored, found=found)
    paths = paths_of(options.path)
    if tracker.was_said((options.method, *paths), str(report)) and found:
        return skip_report(skipped, can_open=False, found=True, repeated=True)
    return report


def _rules(rules: dict[str, int], most: int) -> str:
    ordered = sorted(rules, key=lambda rule: (-rules[rule], rule))
    shown = ", ".join(one_line(rule)[:_RULE_CHARS] for rule in ordered[:most])
    more = f" and {plural(len(rules) - most, 'more rule')}" if len(rules) > most else ""
    return f" by {shown}{more}" if rules else ""


def stop_report(skipped: Skipped, options: SearchOptions, limits: Limits) -> str:
    """Return which limit ended a search early, or "" if it was complete."""
    if skipped.reached is None:
        return ""
    if skipped.reached == "timeout":
        limit = f"{call_context.granted(options.timeout, limits.timeout):g} s"
    else:
        limit = _REACHED[skipped.reached]
    advice = Advice("search a smaller directory with ", ParameterName("path", quoted=True))
    return Joined(": ", f"stopped early after {limit}, so there may be more", advice)


class Probe:
    """Short searches within one time budget; each returns None after an error or if no time is left."""

    def __init__(self, context: Context, seconds: float | None = None) -> None:
        self._context = context
        self._ends = time.monotonic() + (PROBE_SECONDS if seconds is None else seconds)

    def lines(self, options: GrepOptions, among: Sequence[Excluded] | None = None) -> Finding | None:
        """Return the findings of `grep`."""
        seconds = self._ends - time.monotonic()
        if seconds <= 0:
            return None
        options = replace(options, output_mode="content", limit=1, offset=0, timeout=None)
        # The order of the paths must not decide which match a hint shows.
        options = replace(options, path=sorted(paths_of(options.path), key=path_order))
        if options.files is not None and options.listed is not None:
            options = replace(options, files=sorted(options.listed, key=path_order))
        most = PROBE_ENTRIES if among is None else _SEARCHED_EXCLUDED
        context = _limited(self._context, most, timeout=seconds)
        try:
            return search(context, options, among=among)
        except AgentFSError:
            return None

    def files_with_returns(self, options: GrepOptions) -> list[str]:
        r"""Return the files of a search that end lines with `\r\n`."""
        root, _, limits, _ = _limited(self._context, PROBE_ENTRIES)
        buffer, found = ReadBuffer(limits.file_bytes), list[str]()

        def has_returns(source: Any) -> bool:
            data, length = buffer.data, buffer.fill(source)
            return length >= 0 and data.find(b"\r\n", 0, length) >= 0 > data.find(0, 0, min(length, HEAD))

        with suppress(AgentFSError, TimeoutError):
            for batch in FileSource(root, limits, options, self._ends, None, {}).batches():
                for reader, entry in batch:
                    if True in (outcome for _, outcome in reader.read_files([entry], has_returns)):
                        found.append(reader.path_of(entry))
                    if time.monotonic() > self._ends:
                        return found
        return found

    def entries(
        self, options: ListOptions | GlobOptions | FindOptions, *, any_case: bool = False
    ) -> FoundEntries | None:
        """Return the entries that `ls`, `glob` or `find` finds; None if there are none."""
        found = self.all_entries(options, any_case=any_case)
        return found if found is not None and found.total else None

    def all_entries(
        self, options: ListOptions | GlobOptions | FindOptions, *, any_case: bool = False
    ) -> FoundEntries | None:
        """Return the entries that `ls`, `glob` or `find` finds, also if there are none."""
        seconds, page = self._ends - time.monotonic(), Page(0, _MAX_NAMED, PAGE_BYTES)
        if seconds <= 0:
            return None
        context = _limited(self._context, _LISTED_EXCLUDED if options.include_ignored else PROBE_ENTRIES)
        try:
            return find_entries(context, options, page=page, seconds=seconds, any_case=any_case)
        except AgentFSError:
            return None


def _limited(context: Context, walk_entries: int, **limits: Any) -> Context:
    """Return a context with other limits; its walks look at no more than so many entries."""
    walk_entries = min(walk_entries, context.limits.walk_entries)
    return context._replace(limits=replace(context.limits, walk_entries=walk_entries, **limits))


class Reading(NamedTuple):
    """Another reading of the arguments of `grep`, which finds something."""

    fact: str  # such as "In another case it matches 3 lines, as in a.py"
    changes: Mapping[str, Any]  # of the arguments; none if no call finds it
    match: str = ""  # the text of the first match

    def hint(self, options: GrepOptions) -> str:
        """Return the fact with the call of `grep` that shows it."""
        return _hint(self.fact, _retry(options, self.changes)) if self.changes else f"{self.fact}."


def other_reading(context: Context, options: GrepOptions, nothing: Finding) -> tuple[Reading | None, bool]:
    """Return how a search without a match would find one, or None.

    Short searches try the skipped hidden and ignored names first, then other readings of the arguments, up
    to the first match.

    Args:
        context: The root and the limits of the search.
        options: The arguments of the search.
        nothing: The findings of the search, without a match.

    Returns:
        The reading, and True if the skipped hidden and ignored names may have a match that it does not name.
    """
    probe, root = Probe(context), context.root
    excluded, may_have_more = nothing.excluded, False
    if not options.include_ignored and excluded:
        found = probe.lines(options, excluded)
        if found is not None and found.total_lines:
            where = why_skipped(root, found.matches[0].path) or one_line(found.matches[0].path)
            lines = _lines(found, exact=len(excluded) < MAX_EXCLUDED)
            fact = f"{lines} in hidden or ignored files, as in {where}"
            return Reading(fact, _OPEN_IGNORED.arguments), False
        may_have_more = found is None or not found.exact or len(excluded) >= MAX_EXCLUDED
    reading = _first_that_finds(probe, options, _other_readings(root, options, nothing))
    return reading or _about_returns(probe, options), may_have_more


def _first_that_finds(
    probe: Probe, options: GrepOptions, readings: Iterable[tuple[str, dict[str, Any]]]
) -> Reading | None:
    for fact, changes in readings:
        found = probe.lines(replace(options, **changes))
        if found is not None and found.total_lines:
            first = found.matches[0]
            start, end = first.spans[0]
            text = first.text[start:end]
            return Reading(f"{fact} {_lines(found)}, as in {one_line(first.path)}", changes, text)
    return None


def _about_returns(probe: Probe, options: GrepOptions) -> Reading | None:
    r"""Explain a pattern with `\r`, which no line has."""
    if "\r" in options.pattern or (not options.fixed_strings and "\\r" in options.pattern):
        files = probe.files_with_returns(options)
        what = f"lines end with \\r\\n in {plural(len(files), 'searched file')}"
        where = f", such as {one_line(files[0])}" if files else ""
        return Reading(f"Lines are matched without their ends; {what}{where}", {})
    return None


def _other_readings(
    root: Root, options: GrepOptions, nothing: Finding
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield other readings of the arguments: the beginning of the hint, and the changed arguments."""
    pattern = options.pattern
    if not nothing.searched:
        if (directory := _directory_of(root, options)) is not None:
            yield f"In the directory {one_line(directory)} it matches", {"path": directory, "glob": None}
        yield from (
            (f"Without {name} it matches", {name: None})
            for name in ("glob", "type", "exclude", "max_depth")
            if getattr(options, name)
        )
    if options.fixed_strings:
        yield "As a regular expression it matches", {"fixed_strings": False}
    else:
        for each in from_basic_syntax(pattern):
            operators = "| in place of \\|" if "\\|" in pattern else "( ) in place of \\( \\)"
            yield f"With {operators} it matches", {"pattern": each}
        for escaped in dict.fromkeys([escape(pattern), as_plain_text(pattern)]):
            if escaped != pattern and len(escaped) <= MAX_CHARACTERS:
                yield "As plain text it matches", {"pattern": escaped}
        if (single := pattern.replace("\\\\", "\\")) != pattern:
            yield "With one backslash in place of two it matches", {"pattern": single}
        if (without := re.sub(r"\\([<>])", r"\1", pattern)) != pattern:
            yield "With < and > in place of \\< and \\> it matches", {"pattern": without}
        if (spaced := _SPACES.sub(r"\\s+", pattern)) != pattern:
            yield "With \\s+ in place of several spaces it matches", {"pattern": spaced}
        if (without := _SPACED_BAR.sub("|", pattern)) != pattern:
            yield "Without the spaces around | it matches", {"pattern": without}
    for added, expression in _ADDITIONS.items():
        if found := expression.fullmatch(pattern):
            flags = {_FLAGS[letter]: True for letter in found["flags"] if letter in _FLAGS}
            yield f"Without {added} it matches", {"pattern": found["pattern"], **flags}
    if not options.multiline and ("\n" in pattern if options.fixed_strings else has_character(pattern, "\n")):
        yield "Over several lines it matches", {"multiline": True}
    if not options.ignore_case and nothing.in_other_case and pattern.lower() != pattern.upper():
        yield "In another case it matches", {"ignore_case": True}


def _directory_of(root: Root, options: GrepOptions) -> str | None:
    """Return the directory that a glob names, if it is the only glob."""
    globs, paths = as_list(options.glob), paths_of(options.path)
    if len(globs) == len(paths) == 1:
        with suppress(AgentFSError):
            entry = root.entry(f"{paths[0]}/{globs[0]}")
            return entry.path if entry.is_dir else None
    return None


def explain_pattern(context: Context, options: GrepOptions, error: InvalidPatternError) -> None:
    """Replace the advice for an invalid pattern by a reading of it that finds something, if any does."""
    suggestion = error.details.get("suggestion")
    if suggestion is None:
        return
    probe, given = Probe(context), options.path
    if _LOOKS_LIKE_GLOB.fullmatch(options.pattern) and isinstance(given, str):
        path: dict[str, Any] = {} if given == "." else {"path": given}
        if files := count_of_glob(probe, GlobOptions(options.pattern, **path)):
            error.details["suggestion"] = None
            fact, advice = f"As a glob it names {files}", call("glob", pattern=options.pattern, **path)
            error.hint = FirstOf(Advice(f"{fact}: call ", advice, "."), f"{fact}.")
            return
    found = probe.lines(replace(options, pattern=suggestion))
    if found is None or found.skipped.reached is not None:
        return  # nothing is known of the suggestion
    others = _other_readings(context.root, options, replace(found, searched=1))
    readings: list[tuple[str, dict[str, Any]]] = [
        ("As plain text it matches", {"pattern": suggestion}),
        *others,
    ]
    reading = _first_that_finds(probe, options, readings)
    error.details["suggestion"] = None if reading is None else reading.changes.get("pattern")
    error.hint = "As plain text it matches nothing." if reading is None else reading.hint(options)


def explain_no_entries(
    context: Context, options: GlobOptions | FindOptions, nothing: FoundEntries
) -> tuple[str, bool]:
    """Return a hint with the first change of arguments that lets `glob` or `find` find something, or "".

    The second value is True if the skipped hidden and ignored names may have entries that it does not name.
    """
    probe = Probe(context)
    may_have_more = False
    if not options.include_ignored and (nothing.skipped.hidden or nothing.skipped.ignored):
        found = probe.all_entries(replace(options, include_ignored=True))
        if found is not None and found.total:
            why = why_skipped(context.root, found.entries[0].path) if found.entries else ""
            fact = f"{_or_more(found)} among hidden and ignored{f', as in {why}' if why else ''}"
            return Joined(": ", fact, _OPEN_IGNORED), False
        may_have_more = found is None or not found.exact
    return _other_entries(probe, options), may_have_more


def _other_entries(probe: Probe, options: GlobOptions | FindOptions) -> str:
    """Return a hint with the first other reading of the arguments that finds something, or ""."""
    if any(glob.lower() != glob.upper() for glob in options.globs):
        found = probe.entries(options, any_case=True)
        if found is not None and found.entries:
            named = ", ".join(one_line(entry.path) for entry in found.entries)
            left = found.total - len(found.entries)
            return f"in another case: {named}{f' and {left} more' if left else ''}"
    for fact, globs in _other_globs(options.globs):
        changes: dict[str, Any] = {"pattern" if isinstance(options, GlobOptions) else "glob": globs}
        if (found := probe.entries(replace(options, **changes))) is not None and found.entries:
            more = f" and {found.total - 1} more" if found.total > 1 else ""
            shown = f"{fact} it matches {one_line(found.entries[0].path)}{more}"
            return FirstOf(Advice(f"{shown}: ", Retry(changes)), shown)
    if isinstance(options, FindOptions) and (hint := pattern_as_glob(probe, options)):
        return hint
    if isinstance(options, GlobOptions) and options.types == "f" and (hint := _directories(probe, options)):
        return hint
    defaults: dict[str, Any] = {each.name: each.default for each in fields(options)}
    names = [each for each in _FILTERS if getattr(options, each) != defaults.get(each)]
    for without in [*([name] for name in names), names][: len(names) + (len(names) > 1)]:
        found = probe.entries(replace(options, **{name: defaults[name] for name in without}))
        if found is not None:
            shown = f", such as {one_line(found.entries[0].path)}" if found.entries else ""
            fact = f"{_or_more(found)} without {' and '.join(without)}{shown}"
            return FirstOf(Advice(f"{fact}: ", Retry({}, tuple(without))), fact)
    return rooted_glob_hint(options) or _hint_of_syntax(options)


def _directories(probe: Probe, options: GlobOptions) -> str:
    """Return a hint with the call that lists the first directory that matches a glob, or ""."""
    found = probe.entries(replace(options, types="d", include_ignored=True))
    if found is None or not found.entries:
        return ""
    path = found.entries[0].path
    fact = f"{one_line(path)} is a directory{' (and more match)' if found.total > 1 else ''}"
    return FirstOf(Advice(f"{fact}: call ", call("ls", path=path)), fact)


def pattern_as_glob(probe: Probe, options: FindOptions, fact: str = "as a glob it matches") -> str:
    """Return a hint with the call that takes `pattern` as a glob, if that finds something, or ""."""
    pattern = options.pattern
    if not pattern or options.globs or not has_wildcard(pattern):
        return ""
    found = probe.entries(replace(options, pattern=None, glob=pattern))
    if found is None or not found.entries:
        return ""
    more = " and more" if found.total > 1 else ""
    retry = Retry({"glob": pattern}, ("pattern",))
    return _hint(f"{fact} {one_line(found.entries[0].path)}{more}", retry)


def _hint_of_syntax(options: GlobOptions | FindOptions) -> str:
    """Return a hint on a frequent mistake in the syntax of a pattern, or ""."""
    if isinstance(options, FindOptions):
        if not options.pattern or options.full_path or not has_character(options.pattern, "/"):
            return ""
        retry = Advice(Retry({"full_path": True}), " to look in paths, or use ", ParameterName("glob"))
        return Joined(": ", "no name has a '/' in it", retry)
    extended = any(_EXTENDED_GLOB.search(glob) for glob in options.globs)
    return "!( ), @( ) and +( ) have no meaning in a glob: use { } for alternatives" if extended else ""


def _other_globs(globs: Sequence[str]) -> Iterator[tuple[str, str | list[str]]]:
    """Yield other readings of globs: how they are read, and the globs, a text if there is only one."""
    readings: dict[str, Callable[[str], str]] = {
        "with \\[ for the bracket itself": lambda glob: glob.replace("\\[", "[").replace("[", "\\["),
        "with / in place of \\": lambda glob: glob.replace("\\", "/"),
        "as a glob in place of a regular expression": _glob_of_regex,
        "with another suffix": lambda glob: _SUFFIX.sub(".*", glob),
    }
    for fact, read in readings.items():
        if (read_so := [read(glob) for glob in globs]) != list(globs):
            yield fact, read_so[0] if len(read_so) == 1 else read_so


def _glob_of_regex(pattern: str) -> str:
    """Return a regular expression without anchors and escapes, with stars for `.*`."""
    if ".*" not in pattern and "\\." not in pattern:
        return pattern
    return pattern.removeprefix("^").removesuffix("$").replace(".*", "*").replace("\\.", ".")


def rooted_glob_hint(options: GlobOptions | FindOptions | GrepOptions) -> str:
    """Return a hint if a glob begins with `/`, which may have been meant as the root of the system."""
    rooted = any(glob.startswith("/") for glob in options.globs)
    fact = (
        "a '/' at the start of a glob means the search directory; nothing outside the workspace is searched"
    )
    return fact if rooted else ""


def _or_more(found: FoundEntries) -> str:
    return f"{found.total}{'' if found.exact else ' or more'}"


def count_left_out(context: Context, options: ListOptions) -> str:
    """Return a text with the number of entries that `ignore` has excluded from a listing, or ""."""
    found = Probe(context).entries(replace(options, ignore=None))
    if found is None:
        return ""
    least = "" if found.exact else "at least "
    return f": ignore leaves out {least}{plural(found.total, 'entry', 'entries')}"


def count_of_glob(probe: Probe, options: GlobOptions) -> str:
    """Return the number of files that a glob finds, as `3 files`, or "" for none."""
    found = probe.entries(options)
    return f"{'' if found.exact else 'at least '}{plural(found.total, 'file')}" if found else ""


def explain_glob_path(
    context: Context,
    options: GrepOptions | GlobOptions | FindOptions,
    error: NotFoundError,
    *,
    matching: bool = False,
) -> None:
    """Add a hint to the error for a missing path that is a glob: the call that searches its files.

    Args:
        context: The root and the limits of the search.
        options: The arguments of the search.
        error: The error for the missing path.
        matching: Add the hint only if one of the files has a match.
    """
    path = options.path
    if isinstance(options, FindOptions) or not isinstance(path, str) or not has_wildcard(path):
        return
    probe, fact = Probe(context), ""
    for changes in _path_as_glob(options, path):
        if isinstance(options, GlobOptions):
            count = count_of_glob(probe, replace(options, **changes))
            fact = f"As a glob it leads to {count}" if count else ""
        elif (found := probe.lines(replace(options, **changes))) is not None:
            files = f"{plural(found.searched, 'file')}, {found.total_files} of them"
            is_explained = found.total_lines if matching else found.searched
            fact = f"As a glob it names {files} with {_lines(found, 'matching line')}" if is_explained else ""
        if fact:
            error.details["as_glob"] = changes
            error.hint = _hint(fact, _retry(options, changes))
            return


def _path_as_glob(options: GrepOptions | GlobOptions, path: str) -> Iterator[dict[str, Any]]:
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
    first_page = {"offset": 0} if options.offset else {}
    defaults = {each.name: each.default for each in fields(options)}
    changed = {**changes, **first_page}
    without = tuple(name for name, value in changed.items() if value == defaults[name])
    return Retry({name: value for name, value in changed.items() if name not in without}, without)


def _hint(fact: str, retry: Retry) -> str:
    return FirstOf(Advice(f"{fact}: ", retry, "."), f"{fact}.")


def _lines(found: Finding, noun: str = "line", *, exact: bool = True) -> str:
    least = "" if exact and found.skipped.reached is None else "at least "
    return f"{least}{plural(found.total_lines, noun)}"


def why_skipped(root: Root, path: str) -> str:
    """Return why a walk skips a path, as `build/ (ignored by .gitignore:3 build/)`, or "" if it does not."""
    view, root = root, root.unrestricted
    reader = RuleReader(root, time.monotonic() + PROBE_SECONDS)
    expected, rules = "", IgnoreRules()
    parts = posixpath.normpath(view.path_from_top(path)).split("/")
    try:
        for count, name in enumerate(parts, 1):
            is_dir = count < len(parts)
            shown = one_line(view.display_path("/".join(parts[:count]))) + ("/" if is_dir else "")
            if name.lower() in VCS_NAMES:
                return f"{shown} (version control, never searched)"
            if name.startswith("."):
                return f"{shown} (hidden)"
            with root.open_directory("/".join(parts[: count - 1])) as directory:
                base = with_slash(directory.real_path)
                if directory.real_path == expected and not directory.is_top:
                    rules = reader.inside(directory, rules)
                else:  # the top of a tree, or reached through a link
                    rules = reader.above(directory.real_path, through=True)
            expected = base + name
            rule = rules.match(base, name, is_dir=is_dir)
            if rule is not None and not rule.negated:
                text = one_line(display_name(rule.text(view.display_path_if_usable)))
                return f"{shown} (ignored by {text[:_RULE_CHARS]})"
    except (AgentFSError, OSError):
        return ""
    return ""


_MAX_ENTRIES = 100_000
_SECONDS = 0.2
_MAX_SUGGESTIONS = 3
_MAX_CORRECTIONS = 4  # wrong names of one path that are corrected
# Characters that models add to a path: quotes, `@`, `file://`, and a line number after it.
_DECORATION = re.compile(
    r"^(?:file:(?://)?)?[@\s\"'`]+|^file:(?://)?|(?:[:#(]L?[0-9][-:,0-9L]*\)?)?[\s\"'`]*$"
)
_ALIAS = re.compile(r"^@/")  # of the source directory, in JavaScript projects
_OF_DIRECTORIES = frozenset({"ls", "glob", "find"})  # methods whose `path` is a directory


@watched
def explain_missing(context: Context, method: str, error: NotFoundError) -> None:
    """Add a hint to the error for a missing path: its new name, a glob, other slashes, the name elsewhere.

    Args:
        context: The root, the limits, and the paths that this workspace has moved.
        method: The name of the method.
        error: The error for the missing path.
    """
    path = error.details.get("path")
    if not path or "as_glob" in error.details:
        return
    root, tracker, *_ = context
    if (moved := _moved_to(root, tracker, path)) is not None:
        others = [each for each in error.details.get("similar", ()) if each != moved]
        error.details.update(moved_to=moved, similar=[moved, *others])
        error.hint = f"It was moved to {quote(moved)}."
        return
    if has_wildcard(path) and (files := count_of_glob(Probe(context, _SECONDS), GlobOptions(path))):
        error.hint = Advice(
            f"As a glob it matches {files}: call ", call("glob", pattern=path), " to see them."
        )
        return
    several = re.findall(r"[^\s,]+", path)
    if len(several) > 1 and all(_is_there(root, each) for each in several):
        retries = [Advice(Retry({"path": each})) for each in several]
        error.hint = Advice("Each path needs a call of its own: ", Joined("; ", *retries), ".")
        return
    straight = _DECORATION.sub("", _ALIAS.sub("", path)).replace("\\", "/")
    given = error.details.get("similar", ())
    with suppress(AgentFSError):
        is_there = straight != path and _is_there(root, straight)
        alike = _Alike([root.entry(straight).path]) if is_there else _alike(root, tracker, straight, method)
        # A link that leads nowhere has the name itself.
        found = [each for each in alike.paths if each != path]
        if not found or (found == list(given) and method not in _OF_DIRECTORIES):
            return
        error.details["similar"] = found
        meant = f"Did you mean {' or '.join(map(quote, found))}?"
        is_dir = root.entry(found[0]).is_dir
        if method in _OF_DIRECTORIES and not is_dir:
            read = Advice(meant, " It is a file: call ", call("read", path=found[0]), ".")
            error.hint = FirstOf(read, f"{meant} It is a file.")
        elif alike.has_more:
            name, more = posixpath.basename(straight), "More may have this name"
            hints: list[str] = [f"{meant} {more}."]
            if not is_dir and not has_wildcard(name):
                hints.insert(0, Advice(f"{meant} {more}: call ", call("glob", pattern=f"**/{name}"), "."))
            error.hint = FirstOf(*hints)
        elif found != list(given):
            error.hint = meant if is_there or given else Joined(" ", meant, error.hint)


def _moved_to(root: Root, tracker: ReadTracker, path: str) -> str | None:
    """Return the path to which this workspace has moved a missing path, if it is there and may be named."""
    with suppress(AgentFSError):
        real_path = tracker.moved_to(root.real_path(path, creating=True))
        shown = None if real_path is None else root.display_path_if_usable(real_path)
        return shown if shown is not None and root.exists(shown) else None
    return None


def _is_there(root: Root, path: str) -> bool:
    with suppress(AgentFSError):  # it may lead outside
        return root.exists(path)
    return False


class _Alike(NamedTuple):
    """Existing paths that a missing path may mean, the most similar first."""

    paths: list[str]
    has_more: bool = False  # more paths have the same name, or there was no time to look for them


def _alike(root: Root, tracker: ReadTracker, path: str, method: str) -> _Alike:
    """Return paths with similar names, else paths elsewhere with the same name."""
    began = time.monotonic()
    parts = [part for part in path.removeprefix(root.path).split("/") if part not in ("", ".", "..")]
    found = _corrected(root, parts, _MAX_CORRECTIONS) or _without_prefix(root, parts)
    fitting = [each for each in found if root.entry(each).is_dir is (method in _OF_DIRECTORIES)]
    # If half of the time is gone, a walk would not end in time.
    if fitting or not parts or time.monotonic() - began > _SECONDS / 2:
        return _Alike(fitting or found)
    wanted = [part.casefold() for part in reversed(parts)]
    named, is_complete = _named(root, wanted[0])
    ranked: list[tuple[int, bool, bool, str]] = []
    for real_path, is_directory, is_link in named:
        names = reversed(display_name(real_path).casefold().split("/"))
        same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(names, wanted, strict=False))))
        if same == len(parts) if is_directory else method not in _OF_DIRECTORIES:
            was_shown = tracker.knows(real_path)
            ranked.append((-same, not was_shown, is_link, root.display_path(real_path)))
    ranked.sort(key=itemgetter(0, 1, 2))
    if ranked:
        best = sum(same == ranked[0][0] for same, *_ in ranked)
        elsewhere = [path for *_, path in ranked[:_MAX_SUGGESTIONS]]
        return _Alike(elsewhere, best > _MAX_SUGGESTIONS or not is_complete)
    is_file = posixpath.splitext(parts[-1])[1] and method not in _OF_DIRECTORIES
    return _Alike([] if is_file else found)


def _without_prefix(root: Root, parts: Sequence[str]) -> list[str]:
    """Return the path without its first names, such as that of the project, if it exists then."""
    for count, name in enumerate(parts[:-1], 1):
        rest = "/".join(parts[count:])
        if (name == posixpath.basename(root.path) or "/" in rest) and root.exists(rest):
            return [rest]
    return []


def _corrected(root: Root, parts: Sequence[str], most: int) -> list[str]:
    """Return the path if it exists, else existing paths in which similar names replace the missing ones.

    At most `most` names are replaced by others, besides those that differ only in case.
    """
    path = "/".join(parts)
    try:
        root.entry(path)
    except NotDirectoryError:
        return []
    except NotFoundError as error:
        similar = error.details.get("similar", ())
        for near in similar:
            end = near.count("/") + 1
            given = "/".join(parts[:end])
            if near != given and near.casefold() == given.casefold():
                return _corrected(root, [*near.split("/"), *parts[end:]], most)
        others = [[*near.split("/"), *parts[near.count("/") + 1 :]] for near in similar if most]
        return [found for other in others for found in _corrected(root, other, most - 1)]
    return [path]


def _named(root: Root, name: str) -> tuple[list[tuple[str, bool, bool]], bool]:
    """Return the entries with this name in any case, and False if there was no time for all.

    Each entry is its real path, is_directory, and is_link.
    """
    walk = search_walk(root)(
        root.top,
        root.usable_directories,
        max_entries=_MAX_ENTRIES,
        deadline=time.monotonic() + _SECONDS,
        directories=True,
        others=True,
    )
    found: list[tuple[str, bool, bool]] = []
    for visit in walk:
        prefix = with_slash(visit.directory.real_path)
        found += [
            (prefix + listed.name, listed is visit.child, listed.is_symlink())
            for listed in (*visit.files, *filter(None, [visit.child]))
            if listed.name.casefold() == name
        ]
    return found, walk.skipped.reached is None
