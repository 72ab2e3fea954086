"""The command line `agentfs`: tools, schemas, `mcp`, `serve`, `run` and the history."""

import os
import sys
from collections.abc import Sequence

from agentfs.cli.output import FAILED, OutputError, print_error, write_output
from agentfs.cli.parser import parse_command_line
from agentfs.errors import AgentFSError

__all__ = ["main"]

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments; by default those of the process.

    Returns:
        The exit status: 0 for success, 1 if a search found nothing, 2 if the command failed or was malformed.
    """
    # Names are UTF-8 even if the locale is another one, as with LC_ALL=C.
    if argv is None and sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - this command
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - None if it is closed
        print_error("agentfs: Standard output is closed.")
        return FAILED
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")
    try:
        status = _run(sys.argv[1:] if argv is None else argv)
        write_output()
    except AgentFSError as error:
        print_error(f"agentfs: {error}")
        return FAILED
    except OutputError as failure:
        sys.stdout = None  # or Python complains again when it flushes at exit
        if isinstance(failure.__cause__, BrokenPipeError):  # the reader is gone, as after `| head`
            return 0
        reason = getattr(failure.__cause__, "strerror", None)
        print_error(f"agentfs: Standard output cannot be written: {reason}.")
        return FAILED
    except OSError as error:
        name = "" if error.filename is None else f" on {error.filename!r}"
        print_error(f"agentfs: The system failed{name}: {error.strerror or error}.")
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _run(argv: Sequence[str]) -> int:
    try:
        run, options = parse_command_line(argv)
    except SystemExit as end:  # argparse has printed help or an error
        return end.code if isinstance(end.code, int) else FAILED
    return run(options)
