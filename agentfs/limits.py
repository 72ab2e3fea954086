"""The limits of one workspace: what bounds an answer, a file and a search."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

from agentfs.errors import InvalidArgumentError

MIB = 1024 * 1024
LARGEST = 2**63 - 1  # of the integers that are taken, and sent


@dataclass(frozen=True)
class Limits:
    """Bounds on what one call may read, show and cost.

    A result says what a limit cut, and has the call that gets the rest.

    Attributes:
        read_lines: Lines that one read shows.
        read_bytes: Bytes of formatted text that one read returns.
        line_chars: Characters of one line that a read shows.
        line_overhead: Bytes that `read_bytes` counts for each line beside its text, if a program formats the
            lines itself; None counts what the text of the result shows.
        list_entries: Entries that one `ls` shows.
        glob_results: Files that one `glob` returns.
        grep_results: Entries (of its output mode) that one `grep` returns.
        grep_line_chars: Characters of one line that a `grep` shows.
        context_lines: Lines of context on either side that a `grep` may be asked for.
        image_bytes: Bytes of the largest image that a read shows.
        image_side: Pixels of its longer side; larger images are scaled down where the `media` extra is.
        file_bytes: Size of the largest file that is searched or edited, at most 200 MiB.
        walk_entries: Directory entries that one walk looks at.
        watch_bytes: Bytes of the names and texts that a watched workspace keeps in memory.
        snapshot_bytes: Bytes of the files whose contents a recording keeps; of the others it reports changes.
        timeout: Seconds that one call may take; a change that has begun is completed.
        output_tokens: Tokens of the text of one result; a longer text is cut, and says so.
        count_tokens: Counts the tokens of a text, as the model at hand does; None estimates them.
    """

    read_lines: int = 2000
    read_bytes: int = 51_200
    line_chars: int = 2000
    line_overhead: int | None = None
    list_entries: int = 500
    glob_results: int = 200
    grep_results: int = 100
    grep_line_chars: int = 400
    context_lines: int = 20
    image_bytes: int = 3_750_000
    image_side: int = 2000
    file_bytes: int = 10 * MIB
    walk_entries: int = 2_000_000
    watch_bytes: int = 512 * MIB
    snapshot_bytes: int = 512 * MIB
    timeout: float = 10.0
    output_tokens: int = 20_000
    count_tokens: Callable[[str], int] | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "count_tokens":
                if value is not None and not callable(value):
                    msg = f"Limits.count_tokens must be a callable or None, not {value!r}."
                    raise InvalidArgumentError(msg)
                continue
            if field.name == "line_overhead" and (value is None or (type(value) is int and value == 0)):
                continue
            wanted = (int, float) if field.name == "timeout" else (int,)
            if isinstance(value, bool) or not isinstance(value, wanted) or not value > 0:
                msg = f"Limits.{field.name} must be a positive number, not {value!r}."
                raise InvalidArgumentError(msg)
            cap = _CAPS.get(field.name, LARGEST)
            if value > cap:
                msg = f"Limits.{field.name} may be at most {cap}, not {value!r}."
                raise InvalidArgumentError(msg)


# A program may raise this one only so far: a file is in memory whole.
HARD_FILE_BYTES = 200 * MIB
_CAPS = {"file_bytes": HARD_FILE_BYTES, "timeout": math.inf}
