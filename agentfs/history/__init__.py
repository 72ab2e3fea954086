"""The journal of changes with undo, redo and checkpoints, patches, and the persistent history."""

from agentfs.history.journal import Journal, Move, node_reader
from agentfs.history.timeline import Step, Timeline

__all__ = ["Journal", "Move", "Step", "Timeline", "node_reader"]
