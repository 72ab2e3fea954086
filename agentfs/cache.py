"""The full texts that a workspace keeps under names. Bounded and thread-safe."""

from collections import OrderedDict
from hashlib import blake2b
from threading import Lock
from typing import NamedTuple, TypeVar

from agentfs.advice import Advice, call
from agentfs.forks import watch_forks
from agentfs.policy import Policy
from agentfs.results import ReadResult, Result
from agentfs.text import with_note

MAX_OUTPUTS = 64
MAX_CHARS = 16 * 1024 * 1024
NO_LINE_IDS = "no line ids: this is no file, and cannot be edited"  # the note for an output

R = TypeVar("R", bound=Result)


class Output(NamedTuple):
    """What a name is for: a text, or the file at a path."""

    text: str
    path: str = ""


class OutputStore:
    """Texts and files under names such as `@out_1f3a`, which `read` and `grep` take for paths."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outputs = OrderedDict[str, Output]()
        watch_forks(self)

    def after_fork(self) -> None:
        """Replace the lock, which a thread of the parent may hold."""
        self._lock = Lock()

    def keep(self, kept: Result | str, kind: str = "out") -> str:
        """Return a new name for a text or a result, or the one that it has.

        The name of a page of a file refers to the file. `kind` is what the name begins with.
        """
        if isinstance(kept, ReadResult) and self.get(kept.path) is None:
            output = Output("", kept.path)
        else:
            output = Output(kept if isinstance(kept, str) else kept.whole or kept.text)
        digest = blake2b(f"{output.path}\0{output.text}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            size = 4
            while self._outputs.get(name := f"@{kind}_{digest[:size]}") not in (None, output):
                size += 1
            self._outputs[name] = output
            self._outputs.move_to_end(name)
            while len(self._outputs) > 1 and (
                len(self._outputs) > MAX_OUTPUTS
                or sum(len(each.text) for each in self._outputs.values()) > MAX_CHARS
            ):
                self._outputs.popitem(last=False)
            return name

    def keep_full_text(self, result: R, policy: Policy) -> R:
        """Keep the full text of a result that was cut if the policy says so; its text then has the name."""
        if result.whole is None or policy.overflow != "keep":
            return result
        return with_note(result, Advice("whole: ", call("read", path=self.keep(result))))

    def get(self, name: str) -> Output | None:
        """Return what a name is for; None if it is for nothing, or no longer."""
        with self._lock:
            return self._outputs.get(name)
