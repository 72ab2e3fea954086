"""Pages of a whole: the checks of `limit` and `offset`, and the call that goes on."""

from typing import Any

from agentfs.errors import InvalidArgumentError, PastEndError
from agentfs.results import NextCall


def check_page(limit: int | None, offset: int, default: int) -> int:
    """Return the number of entries that a page has.

    Args:
        limit: What was asked for, or None.
        offset: Entries before the page.
        default: The number when none was asked for.

    Raises:
        InvalidArgumentError: `limit` is under 1 or `offset` under 0 (invalid_argument).
    """
    if limit is not None and limit < 1:
        raise InvalidArgumentError(
            f"`limit` must be at least 1, not {limit}.", hint="Leave `limit` out for the usual number."
        )
    if offset < 0:
        raise InvalidArgumentError(
            f"`offset` must be 0 or more, not {offset}.",
            hint="It counts the entries to skip; 0 is the start.",
        )
    return default if limit is None else limit


def check_offset(offset: int, total: int, noun: str) -> None:
    """Refuse an offset behind the last entry; 0 is always a start.

    Args:
        offset: Entries before the page.
        total: Entries there are.
        noun: What they are, in the plural.

    Raises:
        PastEndError: There is nothing at the offset (past_end).
    """
    if offset and offset >= total:
        raise PastEndError(
            f"`offset` {offset} lies behind the last of {total} {noun}.",
            hint="Use a smaller `offset`; 0 is the start.",
            details={"offset": offset, "total": total},
        )


def next_page(name: str, offset: int, **arguments: tuple[Any, Any]) -> NextCall:
    """Return the call that shows the next page.

    Args:
        name: The tool.
        offset: Where the next page starts.
        **arguments: Each argument with its default; what is the default is not repeated.
    """
    said = {key: value for key, (value, default) in arguments.items() if value != default}
    return NextCall(name=name, arguments={**said, "offset": offset})
