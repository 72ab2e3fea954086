"""What a call of `read` asked for, checked."""

from typing import Any, NamedTuple

from agentfs.errors import InvalidArgumentError, PastEndError
from agentfs.fs import quote
from agentfs.messages import Message, NextCall, ParameterName


class ReadRequest(NamedTuple):
    """The arguments of one read, checked.

    Attributes:
        offset: The first line, from 1, or a negative number to count from the end.
        limit: How many lines at most, or None.
        encoding: The encoding that was named, or None.
        raw: Whether a file is shown as its bytes are.
        column: The first character of each line.
        line_ids: Whether each line is given an id.
        room: Bytes beside each line where the caller lays the lines out by itself, or None.
    """

    offset: int = 1
    limit: int | None = None
    encoding: str | None = None
    raw: bool = False
    column: int = 1
    line_ids: bool = False
    room: int | None = None

    def first(self, path: str, total: int, noun: str = "line") -> int:
        """Return the number of the first line, 0 where there is none.

        Args:
            path: The path as shown.
            total: How many lines there are.
            noun: What they are.

        Raises:
            PastEndError: `past_end`: the offset lies behind the last.
        """
        if self.offset < 0:
            return max(total + self.offset + 1, min(total, 1))
        if self.offset <= total or (self.offset == 1 and total == 0):
            return min(self.offset, total)
        lines = f"{total} {noun}{'s' if total != 1 else ''}"
        hint = Message(
            "Pass an ",
            ParameterName("offset"),
            f" from 1 to {total}, or a negative one to count from the end.",
        )
        raise PastEndError(
            f"{quote(path)} has {lines}; offset {self.offset} is past its end.",
            hint=hint if total else "It is empty: there is nothing to read.",
            details={"path": path, "offset": self.offset, f"total_{noun}s": total},
        )

    def going_on(self, path: str, offset: int, *, column: int = 1) -> NextCall:
        """Return the call that goes on at a line; it names only what this call had named."""
        arguments: dict[str, Any] = {"path": path, "offset": offset}
        if self.limit is not None:
            arguments["limit"] = self.limit
        if self.encoding is not None:
            arguments["encoding"] = self.encoding
        if self.raw:
            arguments["raw"] = True
        if self.line_ids:
            arguments["line_ids"] = True
        if column > 1:
            arguments["column"] = column
        return {"name": "read", "arguments": arguments}


def asked_of(offset: Any, limit: Any, encoding: str | None, *, raw: Any, column: Any) -> ReadRequest:
    """Check the arguments of a read.

    Args:
        offset: A line from 1, or a negative number.
        limit: A number of lines from 1, or None.
        encoding: The name of a codec, or None; whether there is one shows when it is used.
        raw: Whether a file is shown as its bytes are.
        column: A character from 1.

    Returns:
        The same, checked.

    Raises:
        InvalidArgumentError: `invalid_argument`: one is of a wrong type or out of range.
    """
    if type(offset) is not int or offset == 0:
        raise _wrong("offset", "a line number from 1, or a negative number to count from the end", offset)
    if limit is not None and (type(limit) is not int or limit < 1):
        raise _wrong("limit", "a number of lines from 1", limit)
    if type(column) is not int or column < 1:
        raise _wrong("column", "the number of a character from 1", column)
    return ReadRequest(offset, limit, encoding, bool(raw), column)


def _wrong(name: str, wanted: str, value: object) -> InvalidArgumentError:
    details = {"argument": name, "value": repr(value)}
    return InvalidArgumentError(
        Message(ParameterName(name, quoted=True), f" must be {wanted}, not {value!r}."),
        hint="Leave it out to read from the start as far as fits.",
        details=details,
    )
