"""The journal of changes with undo, redo and checkpoints, patches, and the persistent history."""

from agentfs.history.journal import Journal, node_reader
from agentfs.history.timeline import Move, Timeline

__all__ = ["Journal", "Move", "Timeline", "node_reader"]
