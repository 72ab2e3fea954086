"""The journal of changes: undo, redo, checkpoints, recordings, patches, and the state directory."""

from typing import TYPE_CHECKING

from agentfs.history.journal import Journal, node_reader
from agentfs.history.timeline import Timeline
from agentfs.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.history import methods as methods
    from agentfs.history import recorded_calls as recorded_calls
    from agentfs.history import recording as recording
    from agentfs.history import report as report
    from agentfs.history import state as state
    from agentfs.history import transaction as transaction

__all__ = ["Journal", "Timeline", "node_reader"]

__getattr__ = lazy_submodules(__name__)
