"""What the command line prints: for a terminal without characters that act on it, and in colour."""

import os
import re
import sys
from typing import Any

from agentfs.text import shown_controls, to_json


def print_text(text: str, *, coloured: bool = False) -> None:
    """Print a text on standard output.

    Args:
        text: The text.
        coloured: Whether a terminal shows line numbers, footers and the lines of a diff in colour.
    """
    if sys.stdout.isatty():
        text = shown_controls(text)
    print(_in_colour(text) if coloured and _takes_colour() else text)


def print_json(value: Any, *, indent: int | None = None) -> None:
    """Print a value as JSON on standard output.

    Args:
        value: The value.
        indent: The spaces of each level; None for one line.
    """
    print(to_json(value, indent=indent))


def print_patch(patch: bytes) -> None:
    """Print a patch: byte for byte, but on a terminal.

    Args:
        patch: The patch.
    """
    if sys.stdout.isatty():
        print_text(patch.decode("utf-8", "backslashreplace").removesuffix("\n"), coloured=True)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(patch)


def print_error(text: str) -> None:
    """Print a text on standard error, as far as that is open.

    Args:
        text: The text.
    """
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - what Python makes of a closed one
        return
    try:
        print(shown_controls(text) if sys.stderr.isatty() else text, file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = None  # the exit status says it; Python would try again at exit, and change that


def _takes_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def _in_colour(text: str) -> str:
    lines: list[str] = []
    in_diff = False
    for line in text.split("\n"):
        in_diff = in_diff or line.startswith("@@ ")
        if in_diff and line[:1] in ("+", "-", "@"):
            code = {"+": "32", "-": "31", "@": "36"}[line[0]]
            lines.append(f"\033[{code}m{line}\033[0m")
        elif line.startswith("[") and line.endswith("]"):
            lines.append(f"\033[2m{line}\033[0m")
        else:
            lines.append(re.sub(r"^(\s*\d+)([|:-])", "\033[32m\\1\033[0m\\2", line))
    return "\n".join(lines)
