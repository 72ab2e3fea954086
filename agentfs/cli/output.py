"""Input and output of the command line."""

import sys

from agentfs.base.visible import escape_controls
from agentfs.errors import EncodingError, FileIOError, InvalidArgumentError

FAILED = 2  # the exit status of a command that failed


def print_text(text: str) -> None:
    """Print a line or lines on standard output. On a terminal, control characters are escaped."""
    write_output(f"{escape_controls(text) if sys.stdout.isatty() else text}\n")


def write_output(data: bytes | str = b"") -> None:
    """Write to standard output and flush it; raise BrokenPipeError if its reader is gone."""
    if isinstance(data, str):
        data = data.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        sys.stdout = None  # or Python complains again when it flushes at exit
        if isinstance(error, BrokenPipeError):
            raise
        raise FileIOError(f"Standard output cannot be written: {error.strerror}.") from None


def input_text() -> str:
    """Return the text of standard input, with its line ends."""
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        raise InvalidArgumentError("Standard input is closed.")
    try:
        return sys.stdin.buffer.read().decode(sys.stdin.encoding)
    except UnicodeDecodeError as error:
        raise EncodingError(f"Standard input is not text in {error.encoding}.") from None


def print_error(text: str) -> None:
    """Print on standard error, unless it is closed."""
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        return
    try:
        print(escape_controls(text) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None  # or Python fails again at exit and changes the exit status
