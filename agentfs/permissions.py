"""Requests for permission, the answers to them, and rules that answer in advance: plain data."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from agentfs.errors import InvalidArgumentError

Mode = Literal["default", "accept_edits", "plan", "bypass"]
# What a method does to the files; one of "none" needs no permission.
Effect = Literal["none", "read", "search", "edit", "write", "change"]

# What a rule may name besides methods, with the effects that it means.
GROUPS: dict[str, tuple[Effect, ...]] = {
    "read": ("read",),
    "search": ("search",),
    "edit": ("edit",),
    "write": ("write",),
    "change": ("edit", "write", "change"),
    "*": ("read", "search", "edit", "write", "change"),
}
# Effects that leave the files as they are.
READING: tuple[Effect, ...] = ("none", "read", "search")
_RULE = re.compile(r"(?P<name>\*|[a-z][a-z0-9_]*)(?:\((?P<glob>[^\n]+)\))?")


@dataclass(frozen=True)
class PermissionRequest:
    """What a permission callback is given.

    Attributes:
        method: The method of the workspace that would act, such as "edit".
        effect: What it does: "read", "search", "edit" or "write" a file, or another "change". The preview of
            a change is a "read".
        arguments: What it is called with, as Python values. Print them with `repr`: a model sent them.
        paths: The paths of its arguments relative to the root, as given and with links resolved; for
            `replace` the paths of the files that it would change. Control characters are visible: `⟦U+001B⟧`.
        diff: The change as a unified diff, with control characters visible; "" when nothing changes, or when
            it cannot be known beforehand.
        tool: The name under which a model called, or None when the program called the method itself.
    """

    method: str
    effect: Effect
    arguments: Mapping[str, Any]
    paths: tuple[str, ...]
    diff: str = ""
    tool: str | None = None

    @property
    def changes(self) -> bool:
        """Whether it would change anything."""
        return self.effect in GROUPS["change"]


@dataclass(frozen=True)
class Allow:
    """Let the call happen.

    Attributes:
        arguments: Arguments to call with instead, by name; those not named stay as they are.
    """

    arguments: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        given: Any = self.arguments
        names: set[Any] = {*given} if isinstance(given, Mapping) else set() if given is None else {None}
        if not all(isinstance(name, str) for name in names):
            raise InvalidArgumentError(f"Allow.arguments must be a mapping by name or None, not {given!r}.")


@dataclass(frozen=True)
class Deny:
    """Do not let the call happen.

    Attributes:
        reason: Why, for the model.
    """

    reason: str = ""

    def __post_init__(self) -> None:
        reason: Any = self.reason
        if not isinstance(reason, str):
            raise InvalidArgumentError(f"Deny.reason must be a string, not {reason!r}.")


PermissionAnswer: TypeAlias = Allow | Deny | bool
Permission: TypeAlias = Callable[[PermissionRequest], PermissionAnswer | Awaitable[PermissionAnswer]]


class Rule(NamedTuple):
    """One rule: its text, the method or group that it names, and its glob, or None for anywhere."""

    text: str
    name: str
    glob: str | None

    def names(self, method: str, effect: Effect) -> bool:
        """Return whether it is about a method."""
        return self.name == method or effect in GROUPS.get(self.name, ())


def parse_rule(text: Any) -> Rule:
    """Return a rule such as `edit(src/**)` or `delete`; raise `invalid_argument` if it is none."""
    found = _RULE.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise InvalidArgumentError(
            f"{text!r} is no rule.",
            hint="Write a method or a group, and a glob: `edit(src/**)`, `delete`, `*`.",
        )
    return Rule(found[0], found["name"], found["glob"])
