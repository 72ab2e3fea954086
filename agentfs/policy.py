"""The policy of one workspace: what may be changed, and how."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal, get_args, get_origin

from agentfs.errors import InvalidArgumentError
from agentfs.permissions.asking import Mode, Permission, Rule, rule_of

Overwrite = Literal["seen", "always", "never"]
Overflow = Literal["cut", "keep"]
Reread = Literal["full", "diff"]
Symlinks = Literal["inside", "never"]
Matching = Literal["tolerant", "exact"]

# What a view of a workspace may have otherwise than the workspace; all else confines or protects.
VIEWED = frozenset({"overwrite", "match", "reread", "overflow", "mode", "permission"})


@dataclass(frozen=True)
class Policy:
    """What a workspace allows; the first value of each field is the default.

    Attributes:
        read_only: Refuse every change.
        overwrite: What `write` may replace: only a file whose present version this workspace has "seen",
            "always" any file, or "never" an existing one.
        match: How an edit finds its old text: with the "tolerant" steps where it is not there exactly, or
            "exact" only.
        symlinks: Follow links that land "inside" the root, or "never" any.
        reread: What a read of lines that were shown before gives: the "full" text, or the "diff" since then,
            which is one line where nothing changed.
        overflow: What a text over `Limits.output_tokens` is: "cut", or cut and whole under a name to "keep",
            which `read` and `grep` take for a path.
        mode: "default"; "accept_edits" does not ask before the content of a file is changed; "plan" refuses
            every change; "bypass" asks nothing, and heeds `deny` alone.
        permission: What is asked before a method acts, or None.
        allow: Rules for calls that need no question, such as `edit(src/**)`. Where there are some and nobody
            to ask, other changes are refused.
        deny: Rules for calls that are refused whatever else holds.
    """

    read_only: bool = False
    overwrite: Overwrite = "seen"
    match: Matching = "tolerant"
    symlinks: Symlinks = "inside"
    reread: Reread = "full"
    overflow: Overflow = "cut"
    mode: Mode = "default"
    permission: Permission | None = None
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            literal = get_args(field.type) if get_origin(field.type) is Literal else ()
            choices = literal or ((False, True) if field.type is bool else ())
            if choices and (value not in choices or type(value) is not type(choices[0])):
                allowed = ", ".join(repr(choice) for choice in choices)
                msg = f"Policy.{field.name} must be one of {allowed}, not {value!r}."
                raise InvalidArgumentError(msg)
        if self.permission is not None and not callable(self.permission):
            raise InvalidArgumentError(f"Policy.permission must be a callable, not {self.permission!r}.")
        for name in ("allow", "deny"):
            rules = getattr(self, name)
            if isinstance(rules, str):
                raise InvalidArgumentError(f"Policy.{name} must be a list of rules, not {rules!r}.")
            object.__setattr__(self, name, tuple(rules))
        _ = self.allow_rules, self.deny_rules

    @cached_property
    def allow_rules(self) -> tuple[Rule, ...]:
        """The rules of `allow`, read."""
        return tuple(map(rule_of, self.allow))

    @cached_property
    def deny_rules(self) -> tuple[Rule, ...]:
        """The rules of `deny`, read."""
        return tuple(map(rule_of, self.deny))

    @cached_property
    def guards(self) -> bool:
        """Whether anything is to be looked at before a method acts."""
        unasked = self.mode == "bypass" or (self.permission is None and not self.allow)
        return self.mode == "plan" or bool(self.deny) or not unasked
