"""The policy of one workspace: what may be changed, and how."""

from dataclasses import dataclass, fields
from typing import Literal, get_args

from agentfs.errors import InvalidArgumentError

Overwrite = Literal["seen", "always", "never"]
Symlinks = Literal["inside", "never"]


@dataclass(frozen=True)
class Policy:
    """What a workspace allows; the first value of each field is the default.

    Attributes:
        read_only: Refuse every change.
        overwrite: What `write` may replace: only a file whose present version this workspace has "seen",
            "always" any file, or "never" an existing one.
        symlinks: Follow links that land "inside" the root, or "never" any.
    """

    read_only: bool = False
    overwrite: Overwrite = "seen"
    symlinks: Symlinks = "inside"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            choices = get_args(field.type) or ((False, True) if field.type is bool else ())
            if choices and (value not in choices or type(value) is not type(choices[0])):
                allowed = ", ".join(repr(choice) for choice in choices)
                msg = f"Policy.{field.name} must be one of {allowed}, not {value!r}."
                raise InvalidArgumentError(msg)
