"""`Limits`: the bounds of one result, one file and one search."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

from agentfs.errors import InvalidArgumentError

MIB = 1024 * 1024
LARGEST = 2**63 - 1  # the largest integer that is accepted or sent


@dataclass(frozen=True)
class Limits:
    """Bounds of what one call may read, show and cost.

    A result reports what a limit cut and the call that gets the rest.

    Attributes:
        read_lines: Lines that one read shows.
        read_bytes: Bytes of formatted text that one read returns.
        line_chars: Characters of one line that a read shows.
        list_entries: Entries that one `ls` shows.
        glob_results: Files that one `glob` returns.
        grep_results: Entries (of its output mode) that one `grep` returns.
        grep_line_chars: Characters of one line that a `grep` shows.
        file_bytes: Size of the largest file that is edited or kept for undo, at most 200 MiB.
        walk_entries: Directory entries that one walk visits.
        watch_bytes: Bytes of the names and texts that a watched workspace keeps in memory.
        snapshot_bytes: Bytes of file contents that a recording keeps. Of other files it only reports changes.
            Also the bytes of the largest directory that `delete` removes with its contents.
        timeout: Seconds that one call may take; a change that has begun is completed.
        run_timeout: Seconds that a model may let one command run.
        apply_timeout: Seconds that the changes of a staged command may take until the first is made.
        output_tokens: Tokens of the text of one result; a longer text is cut and says so.
        count_tokens: Counts the tokens of a text like the model in use; None estimates them.
    """

    read_lines: int = 2000
    read_bytes: int = 51_200
    line_chars: int = 2000
    list_entries: int = 500
    glob_results: int = 200
    grep_results: int = 100
    grep_line_chars: int = 400
    file_bytes: int = 10 * MIB
    walk_entries: int = 2_000_000
    watch_bytes: int = 512 * MIB
    snapshot_bytes: int = 512 * MIB
    timeout: float = 10.0
    run_timeout: float = 600.0
    apply_timeout: float = 120.0
    output_tokens: int = 20_000
    count_tokens: Callable[[str], int] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if problem := _problem(field.name, value):
                raise InvalidArgumentError(f"Limits.{field.name} {problem}, not {value!r}.")

    @classmethod
    def unlimited(cls) -> Self:
        """Return limits that cut nothing, for programs that bring their own. Never give them to a model.

        Returns:
            Limits that no call reaches in practice. Only the 200 MiB of `file_bytes` remain, because a file
            that is edited is in memory.
        """
        most: dict[str, Any] = {field.name: _CAPS.get(field.name, LARGEST) for field in fields(cls)}
        most |= dict.fromkeys(_SECONDS, _DECADES)
        most["count_tokens"] = None
        return cls(**most)


# A whole file is in memory, so `file_bytes` has a ceiling.
HARD_FILE_BYTES = 200 * MIB
_SECONDS = ("timeout", "run_timeout", "apply_timeout")
_DECADES = 1e9  # seconds; `connect` sends only finite numbers
_CAPS = {"file_bytes": HARD_FILE_BYTES, **dict.fromkeys(_SECONDS, math.inf)}


def _problem(name: str, value: Any) -> str:
    """Return the reason why a value is wrong, as the rest of a sentence, or ""."""
    if name == "count_tokens":
        return "" if value is None or callable(value) else "must be a callable or None"
    wanted = (int, float) if name in _SECONDS else (int,)
    if isinstance(value, bool) or not isinstance(value, wanted) or not value > 0:
        return "must be a positive number"
    cap = _CAPS.get(name, LARGEST)
    return f"may be at most {cap}" if value > cap else ""
