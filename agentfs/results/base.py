"""What every result has: a text for the model, the call that goes on, and fields ready for JSON."""

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Self, cast

from agentfs.messages import Message, Names, NextCall, say
from agentfs.values import Value

# The fields of a result that are no part of its data.
TEXTS = frozenset({"text", "whole", "made_by"})


@dataclass(frozen=True, eq=False, repr=False)
class Result(Value):
    """What every result has.

    Attributes:
        text: What the model is shown.
        next: The call that continues this result, or None when it is complete.
        whole: The text as it was before `Limits.output_tokens` cut it, or None where it did not.
        made_by: Of a search or a listing, the method and the arguments that it was made by.
    """

    text: str = field(default="", kw_only=True, repr=False)
    next: NextCall | None = field(default=None, kw_only=True)
    whole: str | None = field(default=None, kw_only=True, repr=False, compare=False)
    made_by: tuple[str, tuple[Any, ...], dict[str, Any]] | None = field(
        default=None, kw_only=True, repr=False, compare=False
    )

    def __str__(self) -> str:
        """Return `text`."""
        return self.text

    def in_names(self, names: Names) -> Self:
        """Return the result with its texts and its next call as the tools at hand name them."""
        changed: dict[str, Any] = {} if self.next is None else {"next": names.call(self.next)}
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Message):
                changed[each.name] = say(value, names)
            elif each.name == "notes":
                changed["notes"] = tuple(filter(None, (say(note, names) for note in value)))
        return replace(self, **changed) if changed else self

    def to_dict(self) -> dict[str, Any]:
        """Return the typed fields, ready for JSON; the texts are left out, as they show the same again."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name not in TEXTS}


def plain(value: Any) -> Any:
    """Return a value with its dataclasses as dictionaries and its tuples as lists, ready for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("list[Any]", value)]
    return value
