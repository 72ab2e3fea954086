"""Reports on what a search left out, and why."""

from collections.abc import Sequence

from agentfs.base import call_context
from agentfs.base.advice import Advice, FirstOf, Joined, ParameterName, Retry, plural
from agentfs.base.visible import one_line
from agentfs.fs import Root, display_name
from agentfs.limits import Limits
from agentfs.results import Skipped
from agentfs.search.options import SearchOptions
from agentfs.text.display import first_names
from agentfs.tree.walk import MAX_LISTED, Excluded

OPEN_IGNORED = Retry({"include_ignored": True})  # also includes hidden names
_RULE_CHARS = 80
_MAX_RULES = 2
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
    ("too_deep", "too deep", "too deep"),
    ("long_lines", "file with lines too long for the pattern", "files with lines too long for the pattern"),
)
_NEVER_SEARCHED = frozenset({"vcs", "binary"})
_REACHED = {
    "walk_entries": "the most entries that one walk looks at",
    "directory_entries": f"the first {MAX_LISTED} entries of one directory",
    "memory": "the most memory that one call may take",
}


def skip_report(skipped: Skipped, *, can_open: bool, found: bool = False) -> str:
    """Report what was skipped.

    Args:
        skipped: What was skipped.
        can_open: True to add how to search hidden and ignored names.
        found: True if the search found something; then names that are never searched are not mentioned.

    Returns:
        The report, or "" if there is nothing to say.
    """
    unsaid = _NEVER_SEARCHED if found else frozenset[str]()
    counted: list[str] = []
    for name, one, several in _REASONS:
        if name not in unsaid and (count := getattr(skipped, name)):
            rules = _rules(skipped.rules, 1 if found else _MAX_RULES) if name == "ignored" else ""
            counted.append(plural(count, one, several) + rules)
    # Hidden and ignored names come first.
    if can_open and (opened := bool(skipped.hidden) + bool(skipped.ignored)):
        last = counted[opened - 1]
        counted[opened - 1] = FirstOf(Advice(f"{last} (", OPEN_IGNORED, ")"), last)
    report = Advice("left out: ", Joined(", ", *counted)) if counted else ""
    unread = first_names([one_line(display_name(file)) for file in skipped.unread_rules], _MAX_RULES)
    said = f"rule files not read, as they are too large or unreadable: {unread}" if unread else ""
    return Joined("; ", report, said)


def _rules(rules: dict[str, int], most: int) -> str:
    ordered = sorted(rules, key=lambda rule: (-rules[rule], rule))
    shown = ", ".join(one_line(rule)[:_RULE_CHARS] for rule in ordered[:most])
    more = f" and {plural(len(rules) - most, 'more rule')}" if len(rules) > most else ""
    return f" by {shown}{more}" if rules else ""


def stop_report(skipped: Skipped, options: SearchOptions, limits: Limits, ended_in: str = "") -> str:
    """Return which limit ended a search early, and in which file, or "" if it was complete."""
    if skipped.reached is None:
        return ""
    seconds = call_context.granted(options.timeout, limits.timeout)
    limit = _REACHED.get(skipped.reached, f"{seconds:g} s")
    where = f" (it was searching {one_line(display_name(ended_in))})" if ended_in else ""
    advice = Advice("search a smaller directory with ", ParameterName("path", quoted=True))
    return Joined(": ", f"stopped early after {limit}{where}, so there may be more", advice)


def reason_of(root: Root, excluded: Sequence[Excluded], path: str) -> str:
    """Return why a walk left out a path, as `build/ (ignored by .gitignore:3 build/)`, or ""."""
    for each in excluded:
        shown = display_name(each.path)
        if path == shown or path.startswith(f"{shown}/"):
            name = one_line(shown) + ("/" if path != shown else "")
            if each.rule is None:
                return f"{name} (hidden)"
            rule = one_line(display_name(each.rule.text(root.display_path_if_usable)))
            return f"{name} (ignored by {rule[:_RULE_CHARS]})"
    return ""
