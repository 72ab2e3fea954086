"""Full texts of shortened results, kept under names such as `@out_1f3a` that `read` and `grep` accept."""

from collections import OrderedDict
from threading import Lock
from typing import NamedTuple

from agentfs.base.forks import watch_forks
from agentfs.base.lazy import hashlib
from agentfs.fs import Root
from agentfs.results import ReadResult, Result

MAX_OUTPUTS = 64
MAX_CHARS = 16 * 1024 * 1024
NO_LINE_IDS = "no line ids: this is not a file and cannot be edited"  # the note for an output


class Output(NamedTuple):
    """A kept text, or a file if `path` is set."""

    text: str
    path: str | None = None


class OutputStore:
    """Texts and files under names that are accepted as paths. Bounded and thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outputs = OrderedDict[str, Output]()
        watch_forks(self)

    def after_fork(self) -> None:
        """Replace the lock, because a thread of the parent may hold it."""
        self._lock = Lock()

    def keep(self, kept: Result | str, root: Root, kind: str = "out") -> str:
        """Return the name of a text or a result, and keep it if it is new.

        Args:
            kept: The text or result; the name of a page of a file refers to the file.
            root: The view in which the result names its file.
            kind: The name begins with `@` and this word.
        """
        if isinstance(kept, ReadResult) and self.get(kept.path, root) is None:
            output = Output("", root.resolve(kept.path, follow_last=False)[1])
        else:
            output = Output(kept if isinstance(kept, str) else kept.text)
        digest = hashlib.blake2b(
            f"{output.path or ''}\0{output.text}".encode("utf-8", "surrogatepass")
        ).hexdigest()
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

    def resolve(self, name: str, root: Root) -> Output:
        """Return the kept text of a name, or the file that a name or a path leads to."""
        return self.get(name, root) or Output("", name)

    def get(self, name: str, root: Root) -> Output | None:
        """Return the output of a name, or None if it is unknown or was dropped. `root` displays the path."""
        with self._lock:
            found = self._outputs.get(name)
        if found is None or found.path is None:
            return found
        return found._replace(path=root.display_path(found.path))
