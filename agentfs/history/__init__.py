"""The journal of changes with undo, redo and checkpoints, patches, and the persistent history."""

from agentfs.history.journal import Journal, node_reader
from agentfs.history.timeline import Timeline

__all__ = ["Journal", "Timeline", "node_reader"]
