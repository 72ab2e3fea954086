"""Colours on a terminal: paths and matches as by `rg`, listings as by `ls`, diffs as by git."""

import os
import re
import sys

from agentfs.base.advice import Style, StyleKind

_LS_KINDS: dict[str, StyleKind] = {"di": "directory", "ln": "symlink"}
_CODES: dict[StyleKind, str] = {
    "path": "35",
    "number": "32",
    "match": "1;31",
    "directory": "01;34",
    "symlink": "01;36",
    "added": "32",
    "removed": "31",
    "hunk": "36",
    "header": "1",
    "footer": "2",
}


def uses_color(choice: str) -> bool:
    """Return True if `--color` or, with "auto", a terminal asks for colours."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def color_style() -> Style:
    """Return the style that puts the codes of colours around texts; `LS_COLORS` sets those of listings."""
    found = re.findall(r"(?:^|:)(di|ln)=([\d;]+)(?=:|$)", os.environ.get("LS_COLORS", ""))
    codes = {**_CODES, **{_LS_KINDS[key]: code for key, code in found}}

    def colored(kind: StyleKind, text: str) -> str:
        code = codes.get(kind)
        return f"\033[{code}m{text}\033[0m" if code and text else text

    return colored
