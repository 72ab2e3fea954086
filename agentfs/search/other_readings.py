"""Hints after a search that found nothing: other readings of its arguments that find something."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, NamedTuple

from agentfs.base.advice import Advice, FirstOf, Joined, Retry, call, plural
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError, InvalidPatternError, NotFoundError
from agentfs.fs import Root
from agentfs.patterns.syntax import MAX_CHARACTERS, as_plain_text, escape, from_basic_syntax, has_character
from agentfs.search.entries import FoundEntries
from agentfs.search.left_out import OPEN_IGNORED, why_skipped
from agentfs.search.options import GlobOptions, GrepOptions, ListOptions, as_list, has_wildcard, paths_of
from agentfs.search.probe import Probe, count_of_glob
from agentfs.search.searcher import Finding
from agentfs.shown.workspace_context import Context
from agentfs.tree.visit import MAX_EXCLUDED

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
# Options of `glob` that can exclude an entry whose name matches.
_FILTERS = (
    *("exclude", "types", "extensions", "min_depth", "max_depth", "size", "changed_within", "changed_before"),
)


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
            return Reading(fact, OPEN_IGNORED.arguments), False
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


def explain_no_entries(context: Context, options: GlobOptions, nothing: FoundEntries) -> tuple[str, bool]:
    """Return a hint with the first change of arguments that lets `glob` find something, or "".

    The second value is True if the skipped hidden and ignored names may have entries that it does not name.
    """
    probe = Probe(context)
    may_have_more = False
    if not options.include_ignored and (nothing.skipped.hidden or nothing.skipped.ignored):
        found = probe.all_entries(replace(options, include_ignored=True))
        if found is not None and found.total:
            why = why_skipped(context.root, found.entries[0].path) if found.entries else ""
            fact = f"{_or_more(found)} among hidden and ignored{f', as in {why}' if why else ''}"
            return Joined(": ", fact, OPEN_IGNORED), False
        may_have_more = found is None or not found.exact
    return _other_entries(probe, options), may_have_more


def _other_entries(probe: Probe, options: GlobOptions) -> str:
    """Return a hint with the first other reading of the arguments that finds something, or ""."""
    if any(glob.lower() != glob.upper() for glob in options.globs):
        found = probe.entries(options, any_case=True)
        if found is not None and found.entries:
            named = ", ".join(one_line(entry.path) for entry in found.entries)
            left = found.total - len(found.entries)
            return f"in another case: {named}{f' and {left} more' if left else ''}"
    for fact, globs in _other_globs(options.globs):
        if (found := probe.entries(replace(options, pattern=globs))) is not None and found.entries:
            more = f" and {found.total - 1} more" if found.total > 1 else ""
            shown = f"{fact} it matches {one_line(found.entries[0].path)}{more}"
            return FirstOf(Advice(f"{shown}: ", Retry({"pattern": globs})), shown)
    if options.types == "f" and (hint := _directories(probe, options)):
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


def _hint_of_syntax(options: GlobOptions) -> str:
    """Return a hint on a frequent mistake in the syntax of a pattern, or ""."""
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


def rooted_glob_hint(options: GlobOptions | GrepOptions) -> str:
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


def explain_glob_path(
    context: Context, options: GrepOptions | GlobOptions, error: NotFoundError, *, matching: bool = False
) -> None:
    """Add a hint to the error for a missing path that is a glob: the call that searches its files.

    Args:
        context: The root and the limits of the search.
        options: The arguments of the search.
        error: The error for the missing path.
        matching: Add the hint only if one of the files has a match.
    """
    path = options.path
    if not isinstance(path, str) or not has_wildcard(path):
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
