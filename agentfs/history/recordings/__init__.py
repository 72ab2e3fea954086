"""Recordings: changes by any process as steps of the journal, found by snapshots of the tree."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.history.recordings import recorded_calls as recorded_calls
    from agentfs.history.recordings import recording as recording

__getattr__ = lazy_submodules(__name__)
