"""What happens to calls, for whoever watches: plain data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agentfs.values import Value


@dataclass(frozen=True, eq=False, repr=False)
class Coercion(Value):
    """One thing that a model did not send as the schema has it, and that was taken all the same.

    Attributes:
        parameter: Which argument, such as `limit` or `edits[0].old_string`.
        rule: What was done: `"10" as integer`, `alias "file_path"`, `JSON text as a list`.
    """

    parameter: str
    rule: str


@dataclass(frozen=True, eq=False, repr=False)
class Event(Value):
    """One thing that happened to a call.

    Attributes:
        kind: "started"; then "finished", "refused" (the call was wrong, or not allowed) or "failed" (it could
            not be done, or broke).
        tool: The name by which the tool was called.
        call: A number that the events of one call share.
        code: The code of the error, or "".
        elapsed_ms: Milliseconds since the start.
        sent_chars: Characters of the arguments, when they came as text.
        content_chars: Characters of the answer.
        tokens: An estimate of the tokens of the answer.
        skipped: What was left out, by reason, with how often.
        coercions: What was not sent as the schema has it.
        format: The format of the answer, where a tool has several, or "".
    """

    kind: Literal["started", "finished", "refused", "failed"]
    tool: str
    call: int
    code: str = ""
    elapsed_ms: float = 0.0
    sent_chars: int = 0
    content_chars: int = 0
    tokens: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    coercions: tuple[Coercion, ...] = ()
    format: str = ""


OnEvent: TypeAlias = Callable[[Event], object]
