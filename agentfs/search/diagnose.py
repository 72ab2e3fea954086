"""Where a search that found nothing would have: in skipped files, or with the pattern read otherwise.

Nothing found is never the same as nothing searched.
"""

import posixpath
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from agentfs.errors import AgentFSError, NotFoundError
from agentfs.fs import Root, display_name
from agentfs.limits import Limits
from agentfs.messages import FirstOf, Message, Retry, plural
from agentfs.patterns.syntax import MAX_CHARACTERS, escape, from_basic_syntax, has_character
from agentfs.search.options import GrepOptions, has_wildcard
from agentfs.search.render import OPEN_IGNORED, RULE_CHARS
from agentfs.search.searcher import Finding, search
from agentfs.tree.ignore_sources import RuleReader, with_slash
from agentfs.tree.walk import MAX_EXCLUDED, VCS_NAMES, Excluded
from agentfs.visible import one_line

PROBE_ENTRIES = 200_000
PROBE_SECONDS = 1.0  # for all short searches of one call


@dataclass
class _Probe:
    """Short searches, all within one budget of time."""

    root: Root
    limits: Limits
    ends: float = field(default_factory=lambda: time.monotonic() + PROBE_SECONDS)

    def search(self, options: GrepOptions, among: Sequence[Excluded] | None = None) -> Finding | None:
        """Return what a search finds, or None for an error or no time."""
        seconds = self.ends - time.monotonic()
        if seconds <= 0:
            return None
        entries = min(PROBE_ENTRIES, self.limits.walk_entries)
        limits = replace(self.limits, timeout=seconds, walk_entries=entries)
        options = replace(options, output_mode="files_with_matches", limit=None, offset=0, timeout=None)
        try:
            return search(self.root, limits, options, among=among)
        except AgentFSError:
            return None


def diagnose(root: Root, limits: Limits, options: GrepOptions, nothing: Finding) -> list[str]:
    """Return a hint where a search without a match would have had one, if a short search shows one.

    First the hidden and ignored names that it skipped are searched, then all with other readings of the
    arguments, up to the first that matches.
    """
    probe = _Probe(root, limits)
    excluded = nothing.excluded
    if not options.include_ignored and excluded:
        found = probe.search(options, excluded)
        if found is not None and found.total_lines:
            where = why_skipped(root, next(iter(found.counts))) or one_line(next(iter(found.counts)))
            lines = _lines(found, exact=len(excluded) < MAX_EXCLUDED)
            return [_hint(f"{lines} in hidden or ignored files, as in {where}", OPEN_IGNORED)]
    for fact, changes in _other_readings(options, nothing):
        found = probe.search(replace(options, **changes))
        if found is not None and found.total_lines:
            where = one_line(next(iter(found.counts)))
            return [_hint(f"{fact} matches {_lines(found)}, as in {where}", _retry(options, changes))]
    return []


def _other_readings(options: GrepOptions, nothing: Finding) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what may have been meant, with the arguments to change."""
    pattern = options.pattern
    if not nothing.searched:
        yield from (
            (f"Without {name} it", {name: None})
            for name in ("glob", "type", "exclude", "max_depth")
            if getattr(options, name)
        )
    if options.fixed_strings:
        yield "As a regular expression it", {"fixed_strings": False}
    else:
        for each in from_basic_syntax(pattern):
            yield "With | in place of \\| it", {"pattern": each}
        escaped = escape(pattern)
        if "\\" not in pattern and escaped != pattern and len(escaped) <= MAX_CHARACTERS:
            yield "As plain text it", {"pattern": escaped}
    if not options.multiline and ("\n" in pattern if options.fixed_strings else has_character(pattern, "\n")):
        yield "Over several lines it", {"multiline": True}
    if not options.ignore_case and nothing.in_other_case and pattern.lower() != pattern.upper():
        yield "In another case it", {"ignore_case": True}


def explain_glob_path(
    root: Root, limits: Limits, options: GrepOptions, error: NotFoundError, *, matching: bool = False
) -> None:
    """Add to an error the call for the files of a path that is a glob; where `matching`, if one matches."""
    path = options.path
    if not isinstance(path, str) or not has_wildcard(path) or options.glob:
        return
    parts = path.split("/")
    first = next(number for number, part in enumerate(parts) if has_wildcard(part))
    base, rest = "/".join(parts[:first]) or ".", "/".join(parts[first:])
    probe = _Probe(root, limits)
    for glob in (f"/{rest}", f"/{rest}/**"):
        changes: dict[str, Any] = {"path": base, "glob": glob}
        found = probe.search(replace(options, **changes))
        if found is not None and (found.total_lines if matching else found.searched):
            files = plural(found.searched, "file")
            fact = f"As a glob it names {files} with {_lines(found, 'matching line')}"
            error.details["as_glob"] = changes
            error.hint = _hint(fact, _retry(options, changes))
            return


def _retry(options: GrepOptions, changes: Mapping[str, Any]) -> Retry:
    """Return the call with other arguments from its first page; what comes to a default is left out."""
    first_page = {"offset": 0} if options.offset else {}
    defaults = {each.name: each.default for each in fields(options)}
    changed = {**changes, **first_page}
    without = tuple(name for name, value in changed.items() if value == defaults[name])
    return Retry({name: value for name, value in changed.items() if name not in without}, without)


def _hint(fact: str, retry: Retry) -> str:
    return FirstOf(Message(f"{fact}: ", retry, "."), f"{fact}.")


def _lines(found: Finding, noun: str = "line", *, exact: bool = True) -> str:
    least = "" if exact and found.skipped.reached is None else "at least "
    return f"{least}{plural(found.total_lines, noun)}"


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
