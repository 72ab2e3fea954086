"""`Context`: what the work of a call needs of its workspace."""

from typing import NamedTuple

from agentfs.fs import Root
from agentfs.limits import Limits
from agentfs.shown.read_tracker import ReadTracker


class Context(NamedTuple):
    """The root, the read history and the limits of a workspace or a view."""

    root: Root
    tracker: ReadTracker
    limits: Limits
