"""The journal of changes: undo, redo, checkpoints, recordings, patches, and the state directory."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules
from agentfs.history.journal import Journal

if TYPE_CHECKING:
    from agentfs.history import operations as operations
    from agentfs.history import recorded_calls as recorded_calls
    from agentfs.history import recording as recording
    from agentfs.history import report as report
    from agentfs.history import review as review
    from agentfs.history import state as state
    from agentfs.history import undo as undo

__all__ = ["Journal"]

__getattr__ = lazy_submodules(__name__)
