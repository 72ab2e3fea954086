"""The journal of changes with undo, redo and checkpoints, patches, and the persistent history."""

from typing import TYPE_CHECKING

from agentfs.history.journal import Journal, node_reader
from agentfs.history.timeline import Timeline
from agentfs.lazy import lazy_names

if TYPE_CHECKING:
    from agentfs.history.recorded_calls import record_calls

__all__ = ["Journal", "Timeline", "node_reader", "record_calls"]

__getattr__ = lazy_names(__name__, {"agentfs.history.recorded_calls": ["record_calls"]})
