"""The engine of regular expressions: the `regex` module or, if it is not installed, Python's `re`.

`re` has no timeout. So it is used only for patterns whose work has a known bound, on lines that are not too
long for it.
"""

import re
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Literal

UNTIMED_STEPS = 50_000  # the engine's steps without a timeout, which makes `regex` five times slower
MOST_STEPS_OF_RE = 200_000_000  # for one line; they take a few seconds
# POSIX classes, which `re` silently reads as other sets.
_POSIX_CLASS = re.compile(r"(?<!\\)\[[^\]]*\[:\^?[A-Za-z]+:\]")


@cache
def engine_name() -> Literal["regex", "re"]:
    """Return the name of the engine."""
    return "re" if find_spec("regex") is None else "regex"


def engine() -> Any:
    """Return the `regex` module, or an object with the same names on top of `re`."""
    return RE if engine_name() == "re" else import_module("regex")


def engine_note(pattern: str) -> str:
    """Return a note for the error about a pattern, if the cause may be that `re` is used; else ""."""
    if engine_name() == "regex" or not any(each in pattern for each in ("\\", "[:", "(?")):
        return ""
    return (
        " Python's `re` is used here, because the `regex` module is not installed: it lacks \\p{…}, "
        "[[:…:]] and lookbehind of varying length."
    )


def _compile(source: str | bytes, flags: int = 0, *, cache_pattern: bool = True) -> Any:
    """Compile a pattern for `re`; a pattern of bytes has no timeout."""
    del cache_pattern  # `re` caches at most a few hundred patterns
    if isinstance(source, bytes):
        return re.compile(source, flags)
    if posix := _POSIX_CLASS.search(source):
        raise re.error("a POSIX class", source, posix.end() - 1)
    return _Expression(source, flags)


class _Expression:
    """A compiled pattern of `re` with the signatures of `regex`; the timeouts have no effect."""

    def __init__(self, source: str, flags: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            self._compiled = re.compile(source, flags)
        self.match, self.findall = self._compiled.match, self._compiled.findall

    def search(self, text: str, **_: Any) -> re.Match[str] | None:
        """Find the first match."""
        return self._compiled.search(text)

    def finditer(
        self, text: str, position: int = 0, end: int = sys.maxsize, **_: Any
    ) -> Iterator[re.Match[str]]:
        """Find all matches between two positions."""
        return self._compiled.finditer(text, position, end)


# The names of the `regex` module that are used, on top of `re`.
RE = SimpleNamespace(
    V0=0, I=re.IGNORECASE, M=re.MULTILINE, S=re.DOTALL, error=re.error, escape=re.escape, compile=_compile
)
