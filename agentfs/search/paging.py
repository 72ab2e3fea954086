"""What the searches check of their arguments, and the call that shows the next page."""

from collections.abc import Sequence
from typing import Any, TypeVar

from agentfs import call_context
from agentfs.errors import InvalidArgumentError, PastEndError
from agentfs.limits import Limits
from agentfs.messages import Message, NextCall, ParameterName
from agentfs.visible import literal

MAX_TIMEOUT = 30.0
PAGE_BYTES = 64 * 1024 * 1024  # of the typed data of one page
_BYTES_OF_TOKEN = 1024  # of these for each token that a model can be shown
ENTRY_BYTES = 560  # of an entry, at least, and of what is held of it meanwhile, as measured

_Choice = TypeVar("_Choice", bound=str)


class Page:
    """Which entries of a search are returned: those before memory ends, or time.

    Attributes:
        first: The number of the first, from 0.
        end: The number behind the last.
    """

    def __init__(self, first: int, size: int, room: int) -> None:
        """Name the entries.

        Args:
            first: The number of the first.
            size: How many there are at most.
            room: What they may take together, in bytes.
        """
        self._left = room
        self.first = first
        self.end = first + min(size, room // ENTRY_BYTES)

    def part(self, entries: list[Any], number: int) -> list[Any]:
        """Return those of some entries that are of the page.

        Args:
            entries: Entries that come one after the other.
            number: The number of the first.
        """
        return entries[max(self.first - number, 0) : max(self.end - number, 0)]

    def take(self, number: int, size: int) -> None:
        """Count an entry, after which the page ends if its bytes are all taken.

        Args:
            number: The number of the entry.
            size: Its bytes.
        """
        self._left -= size
        if self.is_full:
            self.end_before(number + 1)

    @property
    def is_full(self) -> bool:
        """Whether there is no memory left for more."""
        return self._left <= 0

    def end_before(self, number: int) -> None:
        """End the page before an entry, if it does not end sooner."""
        self.end = min(self.end, max(number, self.first))


def page_of(limit: int | None, offset: int, default: int, limits: Limits) -> Page:
    """Return the page that was asked for.

    Args:
        limit: The number of entries that was asked for, or None.
        offset: Entries before the page.
        default: The number when none was asked for.
        limits: What of the page a model can be shown: each entry takes a token at least.

    Raises:
        InvalidArgumentError: `limit` is under 1 or `offset` under 0 (invalid_argument).
    """
    if limit is not None and limit < 1:
        raise InvalidArgumentError(
            Message(ParameterName("limit", quoted=True), f" must be at least 1, not {limit}."),
            hint="Leave it out for the usual number.",
        )
    if offset < 0:
        raise InvalidArgumentError(
            Message(ParameterName("offset", quoted=True), f" must be 0 or more, not {offset}."),
            hint="It counts the entries to skip; 0 is the start.",
        )
    size = default if limit is None else limit
    if call_context.current.get() is None:
        return Page(offset, size, PAGE_BYTES)
    tokens = limits.output_tokens
    return Page(offset, min(size, tokens), min(_BYTES_OF_TOKEN * tokens, PAGE_BYTES))


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
            Message(
                ParameterName("offset", quoted=True), f" {offset} lies behind the last of {total} {noun}."
            ),
            hint="Use a smaller one; 0 is the start.",
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


def check_timeout(timeout: float | None, usual: float) -> float:
    """Return the seconds that a search may take.

    Args:
        timeout: What was asked for, or None.
        usual: The number when none was asked for.

    Raises:
        InvalidArgumentError: It is not over 0 (invalid_argument).
    """
    if timeout is None:
        return usual
    if not timeout > 0:
        raise InvalidArgumentError(
            Message(ParameterName("timeout", quoted=True), f" must be more than 0 seconds, not {timeout}."),
            hint=f"Leave it out for the usual {usual:g}; at most {MAX_TIMEOUT:g} are taken.",
            details={"argument": "timeout"},
        )
    return min(timeout, MAX_TIMEOUT)


def check_choice(argument: str, value: _Choice, choices: Sequence[str]) -> _Choice:
    """Return a value when it is one of a few.

    Args:
        argument: The name of the parameter.
        value: What was given.
        choices: What may be given.

    Raises:
        InvalidArgumentError: It is none of them (invalid_argument).
    """
    if value not in choices:
        raise InvalidArgumentError(
            Message(
                ParameterName(argument, quoted=True),
                f" must be one of {', '.join(choices)}, not {literal(value)}.",
            ),
            hint=f"Leave it out for {choices[0]}.",
            details={"argument": argument, "choices": list(choices)},
        )
    return value


def paths_of(path: str | Sequence[str]) -> list[str]:
    """Return the paths to search; "" is the root.

    Args:
        path: One path, or several.

    Raises:
        InvalidArgumentError: There is none (invalid_argument).
    """
    if isinstance(path, str):
        return [path or "."]
    if not path:
        raise InvalidArgumentError(
            "There is no path in the list.", hint='Pass one; "." is the root.', details={"argument": "path"}
        )
    return [each or "." for each in path]


def as_list(value: str | Sequence[str] | None) -> list[str]:
    """Return one or several texts as a list; an empty text stands for none.

    Args:
        value: One, several, or None.
    """
    if value is None:
        return []
    return [each for each in ([value] if isinstance(value, str) else value) if each]
