"""Threads and event loops: calls off the loop, several at once."""

from typing import TYPE_CHECKING

from agentfs.base.lazy import lazy_submodules

if TYPE_CHECKING:
    from agentfs.concurrency import runner as runner

__getattr__ = lazy_submodules(__name__)
