"""The context of a search without a workspace."""

from agentfs import Limits
from agentfs.fs import Root
from agentfs.shown.outputs import OutputStore
from agentfs.shown.read_tracker import ReadTracker
from agentfs.shown.workspace_context import Context


def context_of(root: Root, limits: Limits) -> Context:
    return Context(root, ReadTracker(), limits, OutputStore())
