"""The storage of the history: contents and steps, in memory or in a state directory on SQLite."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.history.storage import state as state

__getattr__ = lazy_submodules(__name__)
