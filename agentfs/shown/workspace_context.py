"""`Context`: what the work of a call needs of its workspace."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Context(NamedTuple):
    """The root, the read history, the limits and the kept outputs of a workspace or a view."""

    root: Root
    tracker: ReadTracker
    limits: Limits
    outputs: OutputStore


def watched(search: Callable[Concatenate[Context, _P], _R]) -> Callable[Concatenate[Context, _P], _R]:
    """Decorate a search so that it uses the kept tree of a watched root."""

    @wraps(search)
    def call(context: Context, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with context.root.watching() as root:
            return search(context._replace(root=root), *args, **kwargs)

    return call
