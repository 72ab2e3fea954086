"""Permission requests, the answers of a callback, and the rules of a policy: plain data."""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from agentfs.base.frozen_data import frozen
from agentfs.errors import InvalidArgumentError

Mode = Literal["default", "accept_edits", "plan", "bypass"]
# The effect of a method on files. "manage" deletes, moves or restores them; "none" needs no permission.
Effect = Literal["none", "read", "search", "edit", "write", "manage"]
READING: tuple[Effect, ...] = ("none", "read", "search")
CHANGING: tuple[Effect, ...] = ("edit", "write", "manage")
# The names besides those of methods that a rule may have, with the effects that each covers.
GROUPS: dict[str, tuple[Effect, ...]] = {
    "read": ("read",),
    "search": ("search",),
    "edit": ("edit",),
    "write": ("write",),
    "manage": ("manage",),
    "change": CHANGING,
    "*": ("read", "search", *CHANGING),
}
_RULE = r"(?P<name>\*|[a-z][a-z0-9_]*)(?:\((?P<glob>[^\n]+)\))?"
# Patterns that match other files than their author meant, each with its correction.
_MISTAKES = {
    r"!.*": "a rule has no exceptions; write another rule",
    r"['\"`].*": "leave out the quotes",
    r"(.*/)?\s.*|.*(?<!\\)\s(/.*)?": "leave out the space at the beginning or end of a name",
    r"~[^/]*/.*|~": "`~` stands for no directory; write a path relative to the root",
}


@frozen
class PermissionRequest:
    """The call that a permission callback decides about.

    Attributes:
        method: The method of the workspace, such as "edit".
        effect: "read", "search", "edit", "write", or "manage" for a method that deletes, moves or restores
            files. The preview of a change is a "read".
        arguments: The arguments as Python values. Print them with `repr`: a model sent them.
        paths: The paths in the arguments relative to the root, as given and with links resolved; for
            `replace` the paths of the files that it would change. Control characters are visible: `⟦U+001B⟧`.
        diff: The change as a unified diff, with control characters visible; "" if nothing changes or the
            change is not known in advance.
        tool: The name of the tool that a model called, or None if the program called the method itself.
        files: For `delete`: the number of files and links that would be deleted; otherwise None.
    """

    method: str
    effect: Effect
    arguments: Mapping[str, Any]
    paths: tuple[str, ...]
    diff: str = ""
    tool: str | None = None
    files: int | None = None

    @property
    def changes(self) -> bool:
        """True if the call would change files."""
        return self.effect in CHANGING


@frozen
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


@frozen
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
Permission: TypeAlias = Callable[[PermissionRequest], PermissionAnswer | Awaitable[PermissionAnswer]]


class Rule(NamedTuple):
    """A rule such as `edit(src/**)`: its text, the method or group, and the glob, or None for any path."""

    text: str
    name: str
    glob: str | None

    def names(self, method: str, effect: Effect) -> bool:
        """Return True if the rule is about a method with this effect."""
        return self.name == method or effect in GROUPS.get(self.name, ())


def parse_rule(text: Any) -> Rule:
    """Parse a rule such as `edit(src/**)` or `delete`; raise `invalid_argument` for any other text."""
    found = re.fullmatch(_RULE, text) if isinstance(text, str) else None
    if found is None:
        raise InvalidArgumentError(
            f"{text!r} is not a rule.",
            hint="Write a method or a group, with or without a glob: `edit(src/**)`, `delete`, `*`.",
        )
    glob = found["glob"]
    if glob is None:
        return Rule(found[0], found["name"], None)
    if mistake := mistake_in(glob):
        raise InvalidArgumentError(f"The rule `{found[0]}` does not match what it seems to: {mistake}.")
    return Rule(found[0], found["name"], _plain(glob))


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
