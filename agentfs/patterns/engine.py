"""The engine of regular expressions: the `regex` module or, if it is not installed, Python's `re`.

`re` has no timeout and lets no other thread run while it matches. So a match that may take long runs in a
child process, which is killed when its time is over.
"""

import array
import contextlib
import os
import re
import socket
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Generator, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Literal

from agentfs.errors import FileIOError

_MOST_IDLE = 4  # children kept for the next match
# The child gets seconds, flags, the maximum number of matches, the position to start from, a pattern and a
# text. It answers with batches of matches, each after its length. Its own timer ends the child even if this
# process is killed.
_HEAD = struct.Struct("<dqqqqq")
_LENGTH = struct.Struct("<q")
_CHILD = """
import array, itertools, re, signal, struct, sys
read, write = sys.stdin.buffer.read, sys.stdout.buffer.write
while head := read(48):
    seconds, flags, most, position, *lengths = struct.unpack("<dqqqqq", head)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    pattern, text = (read(each).decode("utf-8", "surrogatepass") for each in lengths)
    found = itertools.islice(re.compile(pattern, flags).finditer(text, position), most)
    while True:
        batch = [at for match in itertools.islice(found, 4096) for at in match.span()]
        if not batch:
            signal.setitimer(signal.ITIMER_REAL, 0)
        write(struct.pack("<q", len(batch)) + array.array("q", batch).tobytes())
        sys.stdout.buffer.flush()
        if not batch:
            break
"""
# POSIX classes, which `re` silently reads as other sets.
_POSIX_CLASS = re.compile(r"(?<!\\)\[[^\]]*\[:\^?[A-Za-z]+:\]")


@cache
def engine_name() -> Literal["regex", "re"]:
    """Return the name of the engine."""
    return "re" if find_spec("regex") is None else "regex"


def engine() -> Any:
    """Return the `regex` module, or an object with the same names on top of `re`."""
    return _RE if engine_name() == "re" else import_module("regex")


def engine_note(pattern: str) -> str:
    """Return a note for the error about a pattern, if the cause may be that `re` is used; else ""."""
    if engine_name() == "regex" or not any(each in pattern for each in ("\\", "[:", "(?")):
        return ""
    return (
        " Python's `re` is used here, because the `regex` module is not installed: it lacks \\p{…}, "
        "[[:…:]] and lookbehind of varying length."
    )


def timeout_clock() -> float:
    """Return the time of the clock with which the engine measures a timeout."""
    # `regex` counts processor time of the process; a child is given wall-clock time.
    return time.monotonic() if engine_name() == "re" else time.process_time()


def _compile(source: str | bytes, flags: int = 0, *, cache_pattern: bool = True) -> Any:
    """Compile a pattern for `re`; a pattern of bytes has no timeout."""
    del cache_pattern  # `re` caches at most a few hundred patterns
    if isinstance(source, bytes):
        return re.compile(source, flags)
    if posix := _POSIX_CLASS.search(source):
        raise re.error("a POSIX class", source, posix.end() - 1)
    return _Expression(source, flags)


def untimed_steps() -> int:
    """Return the number of engine steps that are allowed without a timeout."""
    # Without a timeout `regex` is five times faster; sending a text to a child costs far more.
    return 500_000 if engine_name() == "re" else 50_000


class _Expression:
    """A compiled pattern of `re`, whose searches with a timeout run in a child process."""

    def __init__(self, source: str, flags: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            self._compiled = re.compile(source, flags)
        self.match, self.findall = self._compiled.match, self._compiled.findall

    def search(self, text: str, *, timeout: float | None = None, concurrent: bool = False) -> Any:
        """Find the first match; TimeoutError after `timeout` seconds."""
        del concurrent  # a child always lets other threads run
        if timeout is None:
            return self._compiled.search(text)
        found = [*self._in_child(text, 0, time.monotonic() + timeout, 1)]
        return found[0] if found else None

    def finditer(
        self,
        text: str,
        position: int = 0,
        end: int = sys.maxsize,
        *,
        timeout: float | None = None,
        concurrent: bool = False,
    ) -> Iterator[Any]:
        """Find all matches; TimeoutError if together they take more than `timeout` seconds."""
        del concurrent
        if timeout is None:
            return self._compiled.finditer(text, position, end)
        return self._in_child(text, position, time.monotonic() + timeout)

    def _in_child(
        self, text: str, position: int, deadline: float, most: int = sys.maxsize
    ) -> Generator["_Match"]:
        try:
            child = _idle.pop()
        except IndexError:
            child = _Child()
        try:
            for start, end in child.spans(self._compiled, text, position, deadline, most):
                yield _Match(self._compiled, text, start, end)
        except BaseException:  # GeneratorExit too: the rest of an answer would precede the next one
            child.end()
            raise
        if len(_idle) < _MOST_IDLE:
            _idle.append(child)
        else:
            child.end()


class _Match:
    """A match found by a child process."""

    def __init__(self, compiled: re.Pattern[str], text: str, start: int, end: int) -> None:
        self._compiled, self._text, self._span = compiled, text, (start, end)

    def span(self) -> tuple[int, int]:
        """Return start and end."""
        return self._span

    def expand(self, template: str) -> str:
        """Return the template, filled with the groups of the match."""
        start, end = self._span
        again = self._compiled.match(self._text, start)
        if again is None or again.end() != end:  # `search` found an empty match at the same position instead
            again = self._compiled.fullmatch(self._text, start, end)
        if again is None:
            raise re.error("the groups of a match cannot be found again", self._compiled.pattern)
        return again.expand(template)


class _Child:
    """A child process that finds matches."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command, end = [sys.executable, "-I", "-S", "-c", _CHILD], theirs.fileno()
            try:
                self._process = subprocess.Popen(  # noqa: S603 - Python itself, with a text of this module
                    command, stdin=end, stdout=end, stderr=subprocess.DEVNULL, start_new_session=True
                )
            except OSError as error:
                self._socket.close()
                raise FileIOError(
                    f"The system cannot start the process that matches the pattern: {error.strerror}.",
                    details={"errno": error.errno, "error": error.strerror},
                ) from None

    def spans(
        self, compiled: re.Pattern[str], text: str, position: int, deadline: float, most: int
    ) -> Iterator[tuple[int, int]]:
        """Yield start and end of each match; TimeoutError after the deadline, or if the child has ended."""
        pattern, data = (each.encode("utf-8", "surrogatepass") for each in (compiled.pattern, text))
        seconds = self._limit(deadline)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the read below reports it
            head = _HEAD.pack(seconds, compiled.flags, most, position, len(pattern), len(data))
            self._socket.sendall(head + pattern + data)
        while count := _LENGTH.unpack(self._read(_LENGTH.size, deadline))[0]:
            batch = array.array("q", self._read(count * 8, deadline))
            yield from zip(batch[::2], batch[1::2], strict=True)

    def end(self) -> None:
        """Kill the process."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _read(self, length: int, deadline: float) -> bytes:
        got = bytearray()
        while len(got) < length:
            self._limit(deadline)
            try:
                part = self._socket.recv(length - len(got))
            except ConnectionResetError:
                part = b""
            if not part:
                raise TimeoutError  # its timer or the out-of-memory killer has ended it
            got += part
        return bytes(got)

    def _limit(self, deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        return left


_idle: list[_Child] = []
if hasattr(os, "register_at_fork"):  # Windows lacks it, and agentfs can be imported there
    os.register_at_fork(after_in_child=_idle.clear)  # one child cannot answer two processes
# The names of the `regex` module that are used, on top of `re`.
_RE = SimpleNamespace(
    V0=0, I=re.IGNORECASE, M=re.MULTILINE, S=re.DOTALL, error=re.error, escape=re.escape, compile=_compile
)
