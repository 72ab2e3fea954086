"""Permission requests, the answers of a callback, and the rules of a policy: plain data."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from agentfs.errors import InvalidArgumentError

Mode = Literal["default", "accept_edits", "plan", "bypass"]
# The effect of a tool: it needs no permission, changes nothing, changes files, or may do anything.
Effect = Literal["none", "read", "write", "execute"]
READING: tuple[Effect, ...] = ("none", "read")
# The action on a path.
Action = Literal["read", "create", "edit", "delete"]
_CHANGES = frozenset({"create", "edit", "delete"})
# The names of rules about what happens to a path, whichever tool does it.
GROUPS: dict[str, frozenset[str]] = {
    "read": frozenset({"read"}),
    "create": frozenset({"create"}),
    "edit": frozenset({"edit"}),
    "delete": frozenset({"delete"}),
    "write": frozenset({"create", "edit"}),
    "change": _CHANGES,
    "*": _CHANGES | {"read", "execute"},
}
DO_NOT_RETRY = "Do not try again in any way; tell the user, or go on without it."  # the hint of a refusal
_RULE = r"(?P<name>\*|[A-Za-z_][A-Za-z0-9_]*)(?:\((?P<subject>[^\n]+)\))?"
# Patterns that match other files than their author meant, each with its correction.
_MISTAKES = {
    r"!.*": "a rule has no exceptions; write another rule",
    r"['\"`].*": "leave out the quotes",
    r"(.*/)?\s.*|.*(?<!\\)\s(/.*)?": "leave out the space at the beginning or end of a name",
    r"~[^/]*/.*|~": "`~` stands for no directory; write a path relative to the root",
}


class ProposedChange(NamedTuple):
    """The change of one file that a call would make.

    Attributes:
        path: The file, relative to the root.
        old_text: Its text now; None if it does not exist, or is not text, or is too large to show.
        new_text: Its text after the change; None as for `old_text`.
    """

    path: str
    old_text: str | None
    new_text: str | None


@dataclass(frozen=True)
class PermissionRequest:
    """The call that a permission callback decides about.

    Attributes:
        method: The method of the workspace, such as "edit", or the name of another tool; "transaction" for
            the end of a transaction.
        effect: "read", "write" for a change, or "execute" for a tool that may do anything. The preview of a
            change is a "read".
        arguments: The arguments as Python values. Print them with `repr`: a model sent them.
        paths: The paths in the arguments relative to the root, as given and with links resolved, and every
            path that the call would change. Control characters are visible: `⟦U+001B⟧`.
        diff: The changes as a unified diff, with control characters visible; "" if nothing changes or the
            change is not known in advance.
        tool: The name of the tool that a model called, or None if the program called the method itself.
        files: For `delete`: the number of files and links that would be deleted; otherwise None.
        changes: The changes of files, in order of path; () if there are none or they are not known.
    """

    method: str
    effect: Effect
    arguments: Mapping[str, Any]
    paths: tuple[str, ...]
    diff: str = ""
    tool: str | None = None
    files: int | None = None
    changes: tuple[ProposedChange, ...] = ()


@dataclass(frozen=True)
class Allow:
    """Allow the call.

    Attributes:
        arguments: Arguments to replace, by name; all others stay as they are.
    """

    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        given: Any = self.arguments
        names: set[Any] = {*given} if isinstance(given, Mapping) else set() if given is None else {None}
        if not all(isinstance(name, str) for name in names):
            raise InvalidArgumentError(f"Allow.arguments must be a mapping by name or None, not {given!r}.")


@dataclass(frozen=True)
class Deny:
    """Refuse the call.

    Attributes:
        reason: The reason that the model is told.
    """

    reason: str = ""

    def __post_init__(self) -> None:
        reason: Any = self.reason
        if not isinstance(reason, str):
            raise InvalidArgumentError(f"Deny.reason must be a string, not {reason!r}.")


PermissionAnswer: TypeAlias = Allow | Deny | bool
OnAsk: TypeAlias = Callable[[PermissionRequest], PermissionAnswer | Awaitable[PermissionAnswer]]


class Rule(NamedTuple):
    """A rule such as `edit(src/**)` or `bash(git push*)`.

    Attributes:
        text: The rule as a text.
        name: What happens to a path, or a tool.
        subject: The text in parentheses, or None.
        glob: The same as a glob for paths, without `.` and empty names, or None.
    """

    text: str
    name: str
    subject: str | None
    glob: str | None


def is_about_changes(rule: Rule) -> bool:
    """Return True for a rule about changes of some paths."""
    return rule.glob is not None and not _CHANGES.isdisjoint(GROUPS.get(rule.name, ()))


def parse_rule(text: Any) -> Rule:
    """Parse a rule such as `edit(src/**)` or `delete`; raise `invalid_argument` for any other text."""
    found = re.fullmatch(_RULE, text) if isinstance(text, str) else None
    if found is None:
        raise InvalidArgumentError(
            f"{text!r} is not a rule.",
            hint="Write a tool or a group, with or without its subject: `edit(src/**)`, `delete`, `*`.",
        )
    subject = found["subject"]
    return Rule(found[0], found["name"], subject, None if subject is None else _plain(subject))


def check_path_rule(rule: Rule) -> None:
    """Raise `invalid_argument` if the glob of a rule matches other files than its author meant."""
    if rule.subject is not None and (mistake := mistake_in(rule.subject)):
        raise InvalidArgumentError(f"The rule `{rule.text}` does not match what it seems to: {mistake}.")


@lru_cache(1024)  # each `Policy` checks the default patterns
def mistake_in(pattern: str) -> str:
    """Return the correction of a pattern that matches other files than its author meant, or ""."""
    return next((said for mistake, said in _MISTAKES.items() if re.fullmatch(mistake, pattern)), "")


def _plain(glob: str) -> str:
    """Return a glob without the parts of a path that name nothing: `.`, and empty ones."""
    first, *_ = parts = glob.split("/")
    names = [part for part in parts if part not in ("", ".")]
    start = f"{first}/" if first in ("", ".") else ""
    return start + "/".join(names) + "/" * (parts[-1] in ("", ".")) if names else "**"
