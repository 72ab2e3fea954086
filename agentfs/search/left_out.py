"""Reports on what a search left out, and why."""

import posixpath
import time

from agentfs.base import call_context
from agentfs.base.advice import Advice, FirstOf, Joined, ParameterName, Retry, plural
from agentfs.base.visible import one_line
from agentfs.errors import AgentFSError
from agentfs.fs import Root, display_name
from agentfs.limits import Limits
from agentfs.results import Skipped
from agentfs.search.options import SearchOptions, paths_of
from agentfs.shown.read_tracker import ReadTracker
from agentfs.text import first_names
from agentfs.tree.gitignore import IgnoreRules
from agentfs.tree.ignore_sources import RuleReader, with_slash
from agentfs.tree.walk import VCS_NAMES

OPEN_IGNORED = Retry({"include_ignored": True})  # also includes hidden names
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
_WHY_SECONDS = 1.0  # time in which the rules above one path are read


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
        counted[opened - 1] = FirstOf(Advice(f"{last} (", OPEN_IGNORED, ")"), last)
    report = Advice("left out: ", Joined(", ", *counted)) if counted else ""
    unread = ""
    if skipped.unread_rules:
        unread = first_names([one_line(display_name(file)) for file in skipped.unread_rules], _MAX_RULES)
        unread = f"rule files not read, as they are too large or unreadable: {unread}"
    return Joined("; ", report, unread)


def report_of(
    options: SearchOptions, skipped: Skipped, tracker: ReadTracker, *, found: bool, can_open: bool = True
) -> str:
    """Return the skip report of a search: shorter if something was found, or if it repeats the last one."""
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


def why_skipped(root: Root, path: str) -> str:
    """Return why a walk skips a path, as `build/ (ignored by .gitignore:3 build/)`, or "" if it does not."""
    view, root = root, root.unrestricted
    reader = RuleReader(root, time.monotonic() + _WHY_SECONDS)
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
