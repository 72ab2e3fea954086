"""Answers kept whole under a short name, such as `@out_1f3a`, which `read` and `grep` take for a path."""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

MAX_OUTPUTS = 64
MAX_CHARS = 16 * 1024 * 1024


class Output(NamedTuple):
    """What stands under a name.

    Attributes:
        text: The text, for an answer.
        path: The file, for a name that follows it; else "".
    """

    text: str
    path: str = ""


class OutputStore:
    """The answers kept last; the oldest go first. Thread-safe and bounded."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[str, Output] = OrderedDict()
        self._chars = 0

    def keep(self, output: Output, kind: str = "out") -> str:
        """Keep something under a new name, or the name that it has.

        Args:
            output: What to keep.
            kind: What the name begins with, after the `@`.

        Returns:
            The name.
        """
        from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, which an import of agentfs should not

        digest = blake2b(f"{output.path}\0{output.text}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            size = 4
            while self._kept.get(f"@{kind}_{digest[:size]}", output) != output:
                size += 1
            name = f"@{kind}_{digest[:size]}"
            if name not in self._kept:
                self._chars += len(output.text)
            self._kept[name] = output
            self._kept.move_to_end(name)
            while len(self._kept) > 1 and (len(self._kept) > MAX_OUTPUTS or self._chars > MAX_CHARS):
                _, dropped = self._kept.popitem(last=False)
                self._chars -= len(dropped.text)
            return name

    def get(self, name: str) -> Output | None:
        """Return what stands under a name; None when nothing does, or no longer."""
        with self._lock:
            return self._kept.get(name)
