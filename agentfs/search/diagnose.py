"""Why something was not found: a path that is skipped, directories of the same name, patterns read otherwise.

Nothing found is never the same as nothing searched.
"""

import posixpath
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice

from agentfs.errors import AgentFSError, NotFoundError
from agentfs.fs import Root, display_name, quote
from agentfs.limits import Limits
from agentfs.messages import FirstOf, Joined, Message, Retry, plural
from agentfs.patterns.compile import MAX_CHARACTERS, escape
from agentfs.search.options import GrepOptions
from agentfs.search.render import OPEN_IGNORED, RULE_CHARS
from agentfs.search.searcher import Found, search
from agentfs.tree.ignore_sources import RuleReader, with_slash
from agentfs.tree.walk import MAX_EXCLUDED, VCS_NAMES, Excluded, Walk
from agentfs.visible import one_line

PROBE_ENTRIES = 200_000
PROBE_SECONDS = 0.5  # for each short search
_SUGGESTION_ENTRIES = 100_000
_SUGGESTION_SECONDS = 0.2
_MAX_SUGGESTIONS = 3


def diagnose(root: Root, limits: Limits, options: GrepOptions, excluded: Sequence[Excluded]) -> list[str]:
    """Return hints where a search without a match would have had one, found by two short searches.

    The first is among the hidden and ignored names that the search skipped; the second takes the pattern
    literally where it was a regular expression, and the other way round.
    """
    brief = replace(limits, timeout=PROBE_SECONDS, walk_entries=min(PROBE_ENTRIES, limits.walk_entries))
    hints: list[str] = []
    if not options.include_ignored and excluded:
        found = _probe(root, brief, options, excluded)
        if found is not None:
            where = why_skipped(root, next(iter(found.counts))) or one_line(next(iter(found.counts)))
            lines = _lines(found, exact=len(excluded) < MAX_EXCLUDED)
            hints.append(_hint(f"{lines} in hidden or ignored files, as in {where}", OPEN_IGNORED))
    escaped = escape(options.pattern)
    if options.fixed_strings:
        found = _probe(root, brief, replace(options, fixed_strings=False))
        if found is not None:
            fact = f"As a regular expression it matches {_lines(found)}"
            hints.append(_hint(fact, Retry({}, ("fixed_strings",))))
    elif "\\" not in options.pattern and escaped != options.pattern and len(escaped) <= MAX_CHARACTERS:
        found = _probe(root, brief, replace(options, fixed_strings=True))
        if found is not None:
            first = one_line(next(iter(found.counts)))
            fact = f"As plain text it is on {_lines(found)}, as in {first}"
            hints.append(_hint(fact, Retry({"pattern": escaped})))
    return hints


def _probe(
    root: Root, limits: Limits, options: GrepOptions, among: Sequence[Excluded] | None = None
) -> Found | None:
    """Return what a short search finds, or None for nothing or an error."""
    options = replace(options, output_mode="files_with_matches", limit=None, offset=0, timeout=None)
    try:
        found = search(root, limits, options, among=among)
    except AgentFSError:
        return None
    return found if found.total_lines else None


def _hint(fact: str, retry: Retry) -> str:
    return FirstOf(Message(f"{fact}: ", retry, "."), f"{fact}.")


def _lines(found: Found, *, exact: bool = True) -> str:
    if exact and found.skipped.reached is None:
        return plural(found.total_lines, "line")
    return f"at least {plural(found.total_lines, 'line')}"


def why_skipped(root: Root, path: str) -> str:
    """Say why a walk from the root does not come to a path, as `build/ (ignored by .gitignore:3 build/)`."""
    view, root = root, root.unrestricted
    reader = RuleReader(root, time.monotonic() + PROBE_SECONDS)
    expected = ""
    parts = posixpath.normpath(view.path_from_top(path)).split("/")
    try:
        rules = reader.outside_root()
        for count, name in enumerate(parts, 1):
            is_dir = count < len(parts)
            shown = one_line(view.display_path("/".join(parts[:count]))) + ("/" if is_dir else "")
            if name.lower() in VCS_NAMES:
                return f"{shown} (version control, never searched)"
            if name.startswith("."):
                return f"{shown} (hidden)"
            with root.open_directory("/".join(parts[: count - 1])) as directory:
                base = with_slash(directory.real_path)
                if directory.real_path == expected:
                    rules = reader.inside(directory, rules)
                else:  # behind a link
                    rules = reader.above(directory.real_path, through=True)
            expected = base + name
            rule = rules.match(base, name, is_dir=is_dir)
            if rule is not None and not rule.negated:
                text = one_line(display_name(rule.text(view.display_path_if_usable)))
                return f"{shown} (ignored by {text[:RULE_CHARS]})"
    except (AgentFSError, OSError):
        return ""
    return ""


def suggest_files(root: Root, path: str, error: NotFoundError) -> None:
    """Add to an error where files of the same name are, as far as a short walk finds them."""
    name = path.rstrip("/").rpartition("/")[2].casefold()
    if not name:
        return
    known = set(error.details.get("similar", ()))
    files = map(root.display_path, _named(root, lambda each: each.casefold() == name, directories=False))
    found = list(islice((path for path in files if path not in known), _MAX_SUGGESTIONS))
    if found:
        error.details["elsewhere"] = found
        error.hint = Joined(" ", f"There is {' and '.join(map(quote, found))}.", error.hint)


@contextmanager
def suggest_directories(root: Root) -> Generator[None]:
    """Add to a `not_found` the directories whose path ends so, when no name beside it was similar."""
    try:
        yield
    except NotFoundError as error:
        path = error.details.get("path")
        parts = [part for part in path.split("/") if part not in ("", ".", "..")] if path else []
        if parts and not error.details.get("similar"):
            ending = "/" + "/".join(parts)
            directories = _named(root, lambda name: name == parts[-1], directories=True)
            alike = (each for each in directories if f"/{display_name(each)}".endswith(ending))
            found = [root.display_path(each) for each in islice(alike, _MAX_SUGGESTIONS)]
            if found:
                error.details["similar"] = found
                error.hint = Joined(" ", f"Did you mean {' or '.join(map(quote, found))}?", error.hint)
        raise


def _named(root: Root, wanted: Callable[[str], bool], *, directories: bool) -> Iterator[str]:
    """Yield the real paths of the files, or directories, whose name is wanted."""
    walk = Walk(
        root.top,
        root.usable_directories,
        max_entries=_SUGGESTION_ENTRIES,
        deadline=time.monotonic() + _SUGGESTION_SECONDS,
        directories=directories,
        others=directories,
    )
    with suppress(AgentFSError):
        for visit in walk:
            listed = visit.files if not directories else [visit.child] if visit.child is not None else []
            prefix = with_slash(visit.directory.real_path)
            yield from (prefix + each.name for each in listed if wanted(each.name))
