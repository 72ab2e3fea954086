"""`Context`: what the work of a call needs of its workspace."""

from typing import NamedTuple

from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker


class Context(NamedTuple):
    """The root, the read history, the limits and the kept outputs of a workspace or a view."""

    root: Root
    tracker: ReadTracker
    limits: Limits
    outputs: OutputStore
