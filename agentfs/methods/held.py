"""What the methods of a workspace work on, and share."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agentfs.limits import Limits
from agentfs.messages import Joined, Message, call
from agentfs.policy import Policy
from agentfs.results import ReadResult, Result

if TYPE_CHECKING:  # loaded when a tree is opened
    from agentfs.cache import FileCache
    from agentfs.fs import Root
    from agentfs.history import Journal
    from agentfs.output_store import OutputStore
    from agentfs.read_tracker import ReadTracker

_R = TypeVar("_R", bound=Result)


class Held:
    """The parts of a workspace; `Workspace` makes them."""

    policy: Policy
    limits: Limits
    engine: Literal["python", "ripgrep"]
    _root: "Root"
    _shown: "ReadTracker"
    _indexes: "FileCache[Any]"
    _outputs: "OutputStore"
    _journal: "Journal"

    def keep(self, kept: Result | str, *, kind: str = "out") -> str:
        """Keep an answer whole under a short name, which `read` and `grep` take for a path.

        Args:
            kept: A text, or a result. Of a page of a file the name stands for the file and follows it.
            kind: What the name begins with, after the `@`.

        Returns:
            The name, such as `@out_1f3a`. The oldest are dropped first.
        """
        from agentfs.output_store import Output

        if isinstance(kept, ReadResult) and self._outputs.get(kept.path) is None:
            return self._outputs.keep(Output("", kept.path), kind)
        return self._outputs.keep(Output(kept if isinstance(kept, str) else kept.whole or kept.text), kind)

    def _whole_kept(self, result: _R) -> _R:
        """Say where the whole text of an answer is, if it was cut and the policy keeps it."""
        if result.whole is None or self.policy.overflow != "keep":
            return result
        whole = Message("[whole: ", call("read", path=self.keep(result)), "]")
        return replace(result, text=Joined("\n", result.text, whole))
