"""`ls`, `glob` and `find`: entries by name, type, size and time, a page at a time."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

from agentfs import call_context
from agentfs.errors import AgentFSError, NotFoundError
from agentfs.fs import DirEntry, Root, unicode_duplicates_among, watched
from agentfs.limits import Limits
from agentfs.messages import FirstOf, Joined, Message, ParameterName, Retry, plural
from agentfs.patterns.compile import compile_pattern
from agentfs.patterns.line_search import untimed_length
from agentfs.patterns.syntax import has_character
from agentfs.read_tracker import ReadTracker
from agentfs.results import Entry, GlobResult, ListResult
from agentfs.search.collect import (
    PAGE_BYTES,
    Filter,
    Names,
    Page,
    Query,
    bind_globs,
    check_offset,
    collect,
    collect_in_order,
    page_of,
)
from agentfs.search.diagnose import PROBE_ENTRIES, PROBE_SECONDS, why_skipped
from agentfs.search.options import (
    FindOptions,
    GlobOptions,
    ListOptions,
    as_list,
    has_wildcard,
    next_page,
    opens_hidden,
    parse_extensions,
    parse_moment,
    parse_size,
    parse_types,
    paths_of,
    seconds_of,
)
from agentfs.search.render import OPEN_IGNORED, path_lines, report_of, stop_report
from agentfs.text import Shrink, continuation, fitted, footer, notes_of
from agentfs.tree.globs import compile_descent, compile_exclude, compile_globs, hidden_names
from agentfs.tree.ignore_sources import with_slash
from agentfs.tree.walk import Walk, entry_name
from agentfs.visible import one_line

_LEAST_SIZE = 10 * 1024  # of a file, to be shown in a listing of several levels

_MAX_NAMED = 3
# Arguments of `glob` and `find` that leave out entries whose name matches.
_FILTERS = (
    *("exclude", "types", "extensions", "min_depth", "max_depth", "size", "changed_within", "changed_before"),
)
_NameTest = Callable[[str], bool]
_R = TypeVar("_R", ListResult, GlobResult)


@watched
def list_directory(
    root: Root, limits: Limits, options: ListOptions, tracker: ReadTracker | None = None
) -> ListResult:
    """List a directory, or several; each directory in it is followed by what lies in that."""
    page = page_of(options.limit, options.offset, limits.list_entries, limits)
    paths = paths_of(options.path)
    exclude = as_list(options.ignore)
    deadline = call_context.deadline(limits.timeout)
    walk = Walk(
        root,
        paths,
        max_entries=limits.walk_entries,
        deadline=deadline,
        hidden=opens_hidden(options),
        ignored=options.include_ignored,
        depth=options.depth,
        others=True,
        directories=True,
        listing=True,
        exclude=compile_exclude(bind_globs(root, exclude, paths[:1])) if exclude else None,
        keep=page.end if len(paths) == 1 else None,
        key=_SORT_KEYS[options.sort],
    )
    found = collect_in_order(_listed_names(walk, several=len(paths) > 1), page, deadline)
    found.add_skipped(walk.skipped)
    skipped, entries = found.skipped, found.entries
    least = 0 if options.depth == 1 else _LEAST_SIZE
    lines = path_lines([(entry.path, _entry_tail(entry, least)) for entry in entries])
    nothing = ""
    if not entries:
        has, is_ = ("has", "is") if len(paths) == 1 else ("have", "are")
        left_out = _count_of_ignored(root, limits, options) if exclude and not found.total else ""
        nothing = f"{has} nothing to show" if skipped or left_out else f"{is_} empty"
        nothing = f"{', '.join(map(one_line, paths))} {nothing}{left_out}."
    alike = ", ".join(one_line(path) for path in unicode_duplicates_among(entry.path for entry in entries))
    if alike:
        alike = f"names that look the same, in two Unicode forms: {alike}"
    result = ListResult(entries, found.total, skipped)
    return _fitted_page(limits, options, page, result, lines, nothing, "entries", tracker, alike)


def _count_of_ignored(root: Root, limits: Limits, options: ListOptions) -> str:
    """Say how many entries `ignore` has left out, as a short search counts them; "" for none."""
    brief = replace(limits, timeout=PROBE_SECONDS, walk_entries=min(PROBE_ENTRIES, limits.walk_entries))
    listed = list_directory(root, brief, replace(options, ignore=None, limit=1, offset=0))
    least = "" if listed.skipped.reached is None else "at least "
    leaves = f": ignore leaves out {least}{plural(listed.total, 'entry', 'entries')}"
    return leaves if listed.total else ""


def _listed_names(walk: Walk, *, several: bool) -> Iterator[Names]:
    """Yield the names in each directory, with several paths those that were not in one before."""
    seen: set[str] = set()
    for visit in walk:
        names = visit.entries(directories_first=True)
        if several:
            real_prefix = with_slash(visit.directory.real_path)
            names = [listed for listed in names if real_prefix + listed.name not in seen]
            seen.update(real_prefix + listed.name for listed in names)
        yield visit.directory.entry, names, visit.more


def _by_change(listed: DirEntry) -> Any:
    try:
        return -listed.stat(follow_symlinks=False).st_mtime, listed.name
    except OSError:
        return 0.0, listed.name


def _by_size(listed: DirEntry) -> Any:
    try:
        size = 0 if listed.is_dir(follow_symlinks=False) else listed.stat(follow_symlinks=False).st_size
    except OSError:
        size = 0
    return -size, listed.name


_SORT_KEYS: dict[str, Callable[[DirEntry], Any]] = {
    "name": entry_name,
    "modified": _by_change,
    "size": _by_size,
}


def _entry_tail(entry: Entry, least_size: int) -> str:
    """Return what `ls` shows behind the path of an entry: a size, a target or a kind."""
    tail = "  (protected)" if entry.protected and not entry.is_dir else ""
    if entry.type == "symlink":
        return f"{tail} -> {'(outside the workspace)' if entry.target is None else one_line(entry.target)}"
    if entry.is_dir:
        return f"{tail}/"
    if entry.type == "other":
        return f"{tail}  (special file)"
    size = entry.size or 0
    return f"{tail}  {_size_text(size)}" if size >= least_size else tail


def _size_text(size: int) -> str:
    amount = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.0f} TB"


@watched
def glob_files(
    root: Root, limits: Limits, options: GlobOptions, tracker: ReadTracker | None = None
) -> GlobResult:
    """Find the files whose path matches a glob."""
    patterns = as_list(options.pattern)
    hint = ""
    if any("[" in each.replace("\\[", "") for each in patterns):
        hint = "[ ] matches one character of a set: write \\[ for the bracket itself"
    try:
        return _search(root, limits, options, patterns, hint, tracker)
    except NotFoundError as error:
        _explain_glob_path(root, limits, options, error)
        raise


def _explain_glob_path(root: Root, limits: Limits, options: GlobOptions, error: NotFoundError) -> None:
    """Add to an error the call that finds the files where the path is a glob too."""
    path, pattern = options.path, options.pattern
    if isinstance(path, str) and has_wildcard(path) and isinstance(pattern, str):
        joined = f"{path}/{'' if '/' in pattern or options.anchored else '**/'}{pattern.lstrip('/')}"
        brief = replace(limits, timeout=PROBE_SECONDS, walk_entries=min(PROBE_ENTRIES, limits.walk_entries))
        with suppress(AgentFSError):
            found = glob_files(root, brief, replace(options, path=".", pattern=joined, offset=0))
            if found.total:
                error.details["as_glob"] = {"pattern": joined}
                retry = Retry({"pattern": joined}, ("path", *(["offset"] if options.offset else [])))
                count = f"{'' if found.exact else 'at least '}{plural(found.total, 'file')}"
                error.hint = Message(f"As a glob it leads to {count}: ", retry, ".")


@watched
def find_files(
    root: Root, limits: Limits, options: FindOptions, tracker: ReadTracker | None = None
) -> GlobResult:
    """Find entries by name, type, size and time, as fd does."""
    pattern, hint = options.pattern, ""
    if pattern and not options.full_path and has_character(pattern, "/"):
        retry = Message(Retry({"full_path": True}), " to look in paths, or use ", ParameterName("glob"))
        hint = Joined(": ", "no name has a '/' in it", retry)
    patterns = [*as_list(options.glob), *as_list(pattern)]
    return _search(root, limits, options, patterns, hint, tracker)


def _filter_of(options: GlobOptions | FindOptions) -> Filter:
    """Return what an entry must be besides its name."""
    if isinstance(options, GlobOptions):
        return Filter(types=parse_types(options.types), links_as_files=True)
    within, before = options.changed_within, options.changed_before
    sizes = [options.size] if isinstance(options.size, str) else options.size or ()
    return Filter(
        parse_types(options.types),
        tuple(map(parse_size, sizes)),
        after=None if within is None else parse_moment(within, "changed_within"),
        before=None if before is None else parse_moment(before, "changed_before"),
        follow=options.follow_symlinks,
    )


def _name_test(root: Root, limits: Limits, options: GlobOptions | FindOptions) -> _NameTest | None:
    """Return the test of a path for what `find` has besides globs."""
    if isinstance(options, GlobOptions):
        return None
    by_pattern = _regex_test(root, limits, options) if options.pattern else None
    if options.extensions is None:
        return by_pattern
    return _both(_extension_test(parse_extensions(options.extensions)), by_pattern)


def _extension_test(ends: tuple[str, ...]) -> _NameTest:
    return lambda path: path[path.rfind("/") + 1 :].lower().endswith(ends, 1)


def _regex_test(root: Root, limits: Limits, options: FindOptions) -> _NameTest:
    """Return the test of a path below the search directory for the regular expression."""
    deadline = call_context.deadline(seconds_of(options.timeout, limits))
    compiled = compile_pattern(options.pattern or "", ignore_case=options.ignore_case)
    search = compiled.expression.search
    untimed = untimed_length(compiled.plan)
    start = root.entry(paths_of(options.path)[0]).path if options.full_path else "."
    prefix = "" if start == "." else f"{start}/"

    def matches(path: str) -> bool:
        text = prefix + path if options.full_path else path[path.rfind("/") + 1 :]
        if len(text) <= untimed:
            return search(text) is not None
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return search(text, timeout=left, concurrent=True) is not None

    return matches


def _both(one: _NameTest | None, other: _NameTest | None) -> _NameTest | None:
    """Return the test that passes what two tests pass; None for no test at all."""
    if one is None or other is None:
        return one or other
    return lambda path: one(path) and other(path)


def _of_lower(test: _NameTest | None) -> _NameTest | None:
    """Return a test that is given its path in lower case."""
    return None if test is None else lambda path: test(path.lower())


def _search(
    root: Root,
    limits: Limits,
    options: GlobOptions | FindOptions,
    patterns: Sequence[str],
    hint: str,
    tracker: ReadTracker | None,
) -> GlobResult:
    """Search, then look for what was meant when nothing was found, and render."""
    began = time.monotonic()
    is_glob = isinstance(options, GlobOptions)
    noun = "files" if is_glob else "entries"
    argument = "pattern" if is_glob else "glob"
    paths = paths_of(options.path)
    globs = bind_globs(
        root, as_list(options.pattern if isinstance(options, GlobOptions) else options.glob), paths, argument
    )
    opened = hidden_names(globs)

    def query(*, everything: bool = False, any_case: bool = False, without: Sequence[str] = ()) -> Query:
        asked = replace(options, **{name: _default(options, name) for name in without})
        kind, by_name = _filter_of(asked), _name_test(root, limits, asked)
        exclude = bind_globs(root, as_list(asked.exclude), paths, argument)
        hidden = everything or opens_hidden(asked)
        wanted = [glob.lower() for glob in globs] if any_case else globs
        # A walk that opens no hidden name meets none, so the matcher need not test for one either.
        compiled = partial(compile_globs, wanted, anchored=asked.anchored, hidden=hidden or opened is None)
        directories = "d" in kind.kinds and bool(globs)
        tests = (
            compiled() if globs or is_glob else None,
            compiled(directories=True) if directories else None,
            compile_descent(wanted, anchored=asked.anchored),
        )
        matches, matches_directory, enter = map(_of_lower, tests) if any_case else tests
        return Query(
            asked,
            paths,
            kind,
            matches=_both(matches, by_name),
            matches_directory=_both(matches_directory, by_name),
            hidden=hidden or opened or False,
            ignored=everything or asked.include_ignored,
            enter=enter,
            exclude=compile_exclude(exclude) if exclude else None,
        )

    page = page_of(options.limit, options.offset, limits.glob_results, limits)
    deadline = call_context.deadline(seconds_of(options.timeout, limits))
    found = collect(root, query(), page, max_entries=limits.walk_entries, deadline=deadline)
    nothing = ""
    if not found.total:
        nothing = f"0 {noun} match"
        nothing += f" {', '.join(map(one_line, patterns))}" if patterns else ""
        nothing += "" if paths == ["."] else f" in {', '.join(map(one_line, paths))}"
        deadline = call_context.deadline(PROBE_SECONDS)
        other = ""
        if not options.include_ignored and (found.skipped.hidden or found.skipped.ignored):
            other = _hint_of_skipped(root, query(everything=True), deadline)
        if not other and any(glob.lower() != glob.upper() for glob in globs):
            other = _hint_of_case(root, query(any_case=True), deadline)
        given = [name for name in _FILTERS if getattr(options, name, None) != _default(options, name)]
        for without in [*([name] for name in given), given][: len(given) + (len(given) > 1)]:
            other = other or _hint_of_filters(root, query(without=without), without, deadline)
        hint = other or hint
        nothing = Joined("; ", nothing, hint) if hint else f"{nothing}."
    lines = path_lines([(each.path, "/" if each.type == "directory" else "") for each in found.entries])
    result = GlobResult(
        found.entries,
        found.total,
        found.skipped,
        exact=found.skipped.reached is None,
        elapsed_ms=int((time.monotonic() - began) * 1000),
        nothing=() if found.total else (nothing,),
    )
    return _fitted_page(limits, options, page, result, lines, nothing, noun, tracker)


def _default(options: GlobOptions | FindOptions, name: str) -> Any:
    return next((each.default for each in fields(options) if each.name == name), None)


def _hint_of_filters(root: Root, query: Query, without: Sequence[str], deadline: float) -> str:
    """Say how much a short search finds without some filters; "" for nothing."""
    found = collect(root, query, Page(0, 1, PAGE_BYTES), max_entries=PROBE_ENTRIES, deadline=deadline)
    if not found.total:
        return ""
    count = f"{found.total}{'' if found.skipped.reached is None else ' or more'}"
    shown = f", such as {one_line(found.entries[0].path)}" if found.entries else ""
    fact = f"{count} without {' and '.join(without)}{shown}"
    return FirstOf(Message(f"{fact}: ", Retry({}, tuple(without))), fact)


def _hint_of_case(root: Root, query: Query, deadline: float) -> str:
    """Name what a short search finds whose names differ from the globs in case alone; "" for nothing."""
    page = Page(0, _MAX_NAMED, PAGE_BYTES)
    found = collect(root, query, page, max_entries=PROBE_ENTRIES, deadline=deadline)
    named = ", ".join(one_line(entry.path) for entry in found.entries)
    more = found.total - len(found.entries)
    return f"in another case: {named}{f' and {more} more' if more else ''}" if named else ""


def _hint_of_skipped(root: Root, query: Query, deadline: float) -> str:
    """Say what a short search among hidden and ignored names finds too; "" for nothing."""
    page = Page(0, 1, PAGE_BYTES)
    found = collect(root, query, page, max_entries=PROBE_ENTRIES, deadline=deadline)
    if not found.total:
        return ""
    count = f"{found.total}{'' if found.skipped.reached is None else ' or more'}"
    why = why_skipped(root, found.entries[0].path) if found.entries else ""
    return Joined(": ", f"{count} among hidden and ignored{f', as in {why}' if why else ''}", OPEN_IGNORED)


def _fitted_page(
    limits: Limits,
    options: ListOptions | GlobOptions | FindOptions,
    page: Page,
    result: _R,
    lines: list[str],
    nothing: str,
    noun: str,
    tracker: ReadTracker | None,
    note: str = "",
) -> _R:
    """Give a result its text, as much as the budget holds, and the call for the rest."""
    total, skipped, first = result.total, result.skipped, page.first
    reached = skipped.reached is not None
    if not reached and (total or options.method == "ls"):
        check_offset(first, total, noun)
    counted = f"at least {total}" if reached else f"{total}"
    skipped_report = report_of(options, skipped, tracker, found=total > 0)

    def answer(count: int) -> _R:
        end = min(page.end, total) if count >= len(lines) else first + count
        following = next_page(options, end) if end < total else None
        notes = notes_of(
            f"{noun} {first + 1}-{end} of {counted}" if total and (first or following or reached) else "",
            continuation(following),
            skipped_report,
            stop_report(skipped, seconds_of(options.timeout, limits)),
            note,
        )
        text = Joined("\n", "\n".join(lines[:count]) if lines else nothing, footer(*notes))
        return replace(result, truncated=following is not None, next=following, text=text, notes=notes)

    return fitted(limits, Shrink(max(min(len(lines), limits.output_tokens), 1), answer))
