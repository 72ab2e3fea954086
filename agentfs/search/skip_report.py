"""What a search left out, in words, and why one path is left out."""

import posixpath
import time

from agentfs.errors import AgentFSError
from agentfs.fs import Root, display_name
from agentfs.messages import Joined, Message, ParameterName, Retry
from agentfs.results import Skipped
from agentfs.text import one_line
from agentfs.tree.ignore_sources import RuleReader, slashed
from agentfs.tree.walk import VCS_NAMES

RULES_SHOWN = 2
RULE_CHARS = 80
_SECONDS = 0.5  # for saying why one path is left out

_WORDS = (
    ("hidden", "hidden"),
    ("ignored", "ignored"),
    ("vcs", "version control"),
    ("protected", "protected"),
    ("binary", "binary"),
    ("too_large", "too large"),
    ("undecodable", "undecodable"),
    ("unreadable", "unreadable"),
    ("symlink", "links"),
    ("special", "special files"),
    ("too_deep", "too deep to name"),
    ("long_lines", "with lines too long for a pattern that repeats groups"),
)
_REACHED = {
    "walk_entries": "the most entries that one walk looks at",
    "memory": "the most memory that one call may take",
}


# Opens hidden and ignored names in the same call.
OPENED = Retry({"include_ignored": True})


def describe_skipped(skipped: Skipped, *, can_open: bool) -> str:
    """Say what was left out, and how to get it.

    Args:
        skipped: What a walk counted.
        can_open: Whether `include_ignored` was not passed yet.

    Returns:
        A part of a footer; "" when nothing was left out.
    """
    said: list[str] = []
    for name, words in _WORDS:
        count = getattr(skipped, name)
        if count:
            said.append(f"{count} {words}{_say_rules(skipped.rules) if name == 'ignored' else ''}")
    left_out = f"left out: {', '.join(said)}" if said else ""
    if can_open and (skipped.hidden or skipped.ignored):
        left_out = Joined(" ", left_out, Message("(", OPENED, " for hidden and ignored)"))
    return Joined("; ", left_out, _describe_unread(skipped.unread_rules))


def _describe_unread(files: tuple[str, ...]) -> str:
    if not files:
        return ""
    more = len(files) - RULES_SHOWN
    shown = ", ".join(one_line(display_name(file)) for file in files[:RULES_SHOWN])
    others = f" and {more} more" if more > 0 else ""
    return f"rule files not read, as they are too large or cannot be: {shown}{others}"


def _say_rules(rules: dict[str, int]) -> str:
    if not rules:
        return ""
    ordered = sorted(rules.items(), key=lambda item: (-item[1], item[0]))
    shown = [one_line(rule)[:RULE_CHARS] for rule, _ in ordered[:RULES_SHOWN]]
    more = len(ordered) - len(shown)
    return f" by {', '.join(shown)}{f' and {more} more rules' if more else ''}"


def describe_stop(skipped: Skipped, timeout: float) -> str:
    """Say which limit ended a walk early.

    Args:
        skipped: What a walk counted.
        timeout: Seconds that it had.

    Returns:
        A part of a footer; "" when the walk came to its end.
    """
    if skipped.reached is None:
        return ""
    limit = f"{timeout:g} s" if skipped.reached == "timeout" else _REACHED[skipped.reached]
    stopped = f"stopped early after {limit}, so there may be more"
    return Joined(
        ": ", stopped, Message("search a smaller directory with ", ParameterName("path", quoted=True))
    )


def why_left_out(root: Root, path: str) -> str:
    """Say why a walk from the root does not come to a path.

    Args:
        root: The confined root.
        path: A path as shown.

    Returns:
        The part of the path that is left out with its reason, as `build/ (ignored by .gitignore:3 build/)`,
        or "" when none is.
    """
    shown_from, root = root, root.unrestricted
    reader = RuleReader(root, time.monotonic() + _SECONDS)
    expected = ""
    parts = posixpath.normpath(shown_from.path_from_top(path)).split("/")
    try:
        rules = reader.around()
        for count in range(1, len(parts) + 1):
            name, here = parts[count - 1], "/".join(parts[:count])
            is_dir = count < len(parts)
            shown = one_line(shown_from.display_path(here)) + ("/" if is_dir else "")
            if name.lower() in VCS_NAMES:
                return f"{shown} (version control, never searched)"
            if name.startswith("."):
                return f"{shown} (hidden)"
            with root.open_directory("/".join(parts[: count - 1])) as directory:
                base = slashed(directory.real_path)
                if directory.real_path == expected:
                    rules = reader.inside(directory, rules)
                else:  # behind a link
                    rules = reader.above(directory.real_path, through=True)
            expected = base + name
            rule = rules.decide(base, name, is_dir=is_dir)
            if rule is not None and not rule.negated:
                text = one_line(display_name(rule.text(shown_from.display_path_if_usable)))
                return f"{shown} (ignored by {text[:RULE_CHARS]})"
    except (AgentFSError, OSError):
        return ""
    return ""
